"""Compiled code by rule: reductions of any members, calls at the end of a text, each kind of matrix, columns of pixels
at the ends of a tensor, values of which the bits count. The reference is the witness, or Python."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.emulator.jit.ptx import test_jit as test_ptx_engines
from tests.emulator.jit.ptx.test_bulk import (
  BARRIER,
  COLUMN_STORES,
  COLUMNS,
  KINDS,
  SHARED,
  TENSOR,
  around,
  data,
  outcomes,
  storing,
)
from tests.emulator.jit.ptx.test_jit import HEAD, IN, OUT, both, kernel, run
from tests.emulator.jit.ptx.test_remote import PLACES, several
from tinyhw.core.errors import Deadlock, DecodeError, MachineFault, PageFault, WatchdogExpired
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.engines import ptx_compiled
from tinyhw.emulator.engines.both import EnginesDiffer
from tinyhw.emulator.engines.ptx import turns
from tinyhw.emulator.jit import servers
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.code import kept
from tinyhw.emulator.jit.ptx.module.code import kernel as compiled_kernel
from tinyhw.emulator.jit.ptx.tensorcore.matrix import ELEMENTS
from tinyhw.emulator.jit.refusal import CompilerFailed, NotCompiled
from tinyhw.emulator.ptx.launch.grid import Dispatch, Grid
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.memory.tensormap import TensorMap
from tinyhw.emulator.ptx.module import builtin
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.module.merge import linked
from tinyhw.emulator.ptx.program import Program
from tinyhw.emulator.schedule import ended
from tinyhw.emulator.simt import Stats
from tinyhw.isa.ptx import parse

# ---- reductions of a warp

FOLDS: dict[str, Any] = {
  "add": lambda v: sum(v), "min": min, "max": max, "and": lambda v: int(np.bitwise_and.reduce(np.array(v, np.int64))),
  "or": lambda v: int(np.bitwise_or.reduce(np.array(v, np.int64))),
  "xor": lambda v: int(np.bitwise_xor.reduce(np.array(v, np.int64)))}


@pytest.mark.left("redux")
@pytest.mark.parametrize("values", [
  [-5, -3, -2**31, -7], [2**31 - 1, 4, 9, 2**31 - 1], [-2**31] * 4, [0, 1, 2, 3], [-1, -1, -1, -1], [-1, 1, -2**31, 7]])
@pytest.mark.parametrize("members", [0xFFFF_FFFF, 0x1, 0x8000_0000, 0x0F0F_0F0F])
def test_reductions_of_any_members(values: list[int], members: int) -> None:
  """Those who are not there count for nothing, whatever the values of the others are."""
  forms = [("add", "s32"), ("min", "s32"), ("max", "s32"), ("add", "u32"), ("min", "u32"), ("max", "u32"),
           ("and", "b32"), ("or", "b32"), ("xor", "b32")]
  body = "".join(f"mov.u32 %r2, 0; @%p1 redux.sync.{o}.{t} %r2, %r1, {members:#x}; st.global.u32 [%l2+{4 * k}], %r2;"
                 for k, (o, t) in enumerate(forms))
  text = kernel(f"""mad.wide.u32 %l1, %t, 4, %in; ld.global.u32 %r1, [%l1]; mad.wide.u32 %l2, %t, 64, %out;
    mov.u32 %r3, {members:#x}; shr.u32 %r3, %r3, %t; and.b32 %r3, %r3, 1; setp.eq.u32 %p1, %r3, 1; {body}""")
  each = [values[k % len(values)] for k in range(32)]
  found, stats = both(text, b"".join((v % (1 << 32)).to_bytes(4, "little") for v in each), block=32)
  assert not stats.helped
  there = [k for k in range(32) if members >> k & 1]
  cells = found[:2048].view(np.uint32).reshape(32, 16)
  for k, (o, t) in enumerate(forms):
    mine = [each[i] % (1 << 32) if t[0] != "s" else each[i] for i in there]
    assert {*cells[there, k].tolist()} == {FOLDS[o](mine) % (1 << 32)}, (o, t)
    assert not cells[[i for i in range(32) if i not in there], k].any()


# ---- calls

CALLED = f"""{HEAD}.func put (.param .b64 at, .param .b32 x) {{
  .reg .b64 %a; .reg .b32 %x; ld.param.b64 %a, [at]; ld.param.b32 %x, [x]; st.global.u32 [%a], %x; TAIL }}
.func twice (.param .b64 at, .param .b32 x) {{
  .reg .b64 %a; .reg .b32 %x; ld.param.b64 %a, [at]; ld.param.b32 %x, [x];
  {{ .param .b64 p; st.param.b64 [p], %a; .param .b32 q; st.param.b32 [q], %x; call put, (p, q); }} LAST }}
.visible .entry k (.param .u64 in, .param .u64 out) {{
  .reg .b64 %l<3>; .reg .b32 %t, %r<3>; .reg .pred %p<3>; ld.param.u64 %l1, [out]; mov.u32 %t, %tid.x;
  mad.wide.u32 %l1, %t, 16, %l1; setp.lt.u32 %p1, %t, 9; add.u32 %r1, %t, 100;
  {{ .param .b64 p; st.param.b64 [p], %l1; .param .b32 q; st.param.b32 [q], %r1; call FIRST, (p, q); }} END }}"""


@pytest.mark.parametrize("tail", ["", "ret;"])
@pytest.mark.parametrize("last", ["", "ret;", "st.global.u32 [%a+4], %x;", "st.global.u32 [%a+4], %x; ret;"])
@pytest.mark.parametrize("end", ["", "ret;", "st.global.u32 [%l1+8], %r1;", "@%p1 st.global.u32 [%l1+8], %r1; ret;"])
@pytest.mark.parametrize("first", ["put", "twice"])
def test_calls_near_the_end_of_a_text(first: str, end: str, last: str, tail: str) -> None:
  """Control goes on behind each of them, whatever is there, and if there is nothing."""
  if first == "put" and last: return
  text = CALLED
  for name, part in (("TAIL", tail), ("LAST", last), ("END", end), ("FIRST", first)): text = text.replace(name, part)
  found, stats = both(text, bytes(16), block=32)
  cells = found[:512].view(np.uint32).reshape(32, 4)
  assert cells[:, 0].tolist() == [100 + k for k in range(32)] and not stats.helped
  assert (cells[:, 1] != 0).all() == (first == "twice" and "st" in last)
  assert cells[:, 2].tolist() == [100 + k if "st" in end and ("@" not in end or k < 9) else 0 for k in range(32)]


# ---- matrices

SHAPES = {"f16": "m16n8k16.row.col.f32.f16.f16.f32", "bf16": "m16n8k16.row.col.f32.bf16.bf16.f32",
          "tf32": "m16n8k8.row.col.f32.tf32.tf32.f32", "s8": "m16n8k32.row.col.s32.s8.s8.s32",
          "u8": "m16n8k32.row.col.s32.u8.u8.s32", "s4": "m16n8k64.row.col.s32.s4.s4.s32",
          "u4": "m16n8k64.row.col.s32.u4.u4.s32", "e4m3": "m16n8k32.row.col.f32.e4m3.e4m3.f32",
          "e5m2": "m16n8k32.row.col.f32.e5m2.e5m2.f32", "b1": "m16n8k256.row.col.s32.b1.b1.s32.and.popc",
          "f64": "m8n8k4.row.col.f64.f64.f64.f64"}


@pytest.mark.parametrize("t", sorted(ELEMENTS))
def test_each_kind_of_matrix_is_compiled(t: str) -> None:
  """None is the reference's, and what comes is what it gives."""
  assert {*SHAPES} == {*ELEMENTS}
  shape = SHAPES[t]
  float_ = "s32" not in shape
  if t == "f64":
    loads = "ld.global.f64 %d1, [%l1]; ld.global.f64 %d2, [%l1+8];"
    line = f"mma.sync.aligned.{shape} {{%d3, %d4}}, {{%d1}}, {{%d2}}, {{%d1, %d2}};"
    stores = "st.global.f64 [%l2], %d3; st.global.f64 [%l2+8], %d4;"
  else:
    c = "f" if float_ else "r"
    loads = "".join(f"ld.global.u32 %r{k + 1}, [%l1+{4 * k}];" for k in range(6)) + (
      "".join(f"mov.f32 %f{k + 1}, 0f3F800000;" for k in range(8)) if float_ else
      "".join(f"mov.u32 %r{k + 8}, {k};" for k in range(8)))
    def regs(first: int, n: int, letter: str) -> str:
      return "{" + ", ".join(f"%{letter}{first + k}" for k in range(n)) + "}"
    first = 1 if float_ else 8
    line = (f"mma.sync.aligned.{shape} {regs(first + 4, 4, c)}, {regs(1, 4, 'r')}, {regs(5, 2, 'r')}, "
            f"{regs(first, 4, c)};")
    stores = "".join(f"st.global.b32 [%l2+{4 * k}], %{c}{first + 4 + k};" for k in range(4))
  text = kernel(f"mad.wide.u32 %l1, %t, 32, %in; mad.wide.u32 %l2, %t, 16, %out; {loads} {line} {stores}")
  rng = np.random.default_rng(3)
  if t == "f64": raw = rng.integers(-8, 9, 4 * 32).astype(np.float64).tobytes()
  elif t in ("f16", "bf16", "tf32", "e4m3", "e5m2"):
    one = {"f16": 0x3C003C00, "bf16": 0x3F803F80, "tf32": 0x3F800000, "e4m3": 0x38383838, "e5m2": 0x3C3C3C3C}[t]
    raw = np.where(rng.integers(0, 2, 8 * 32), one, 0).astype(np.uint32).tobytes()
  else: raw = rng.integers(0, 1 << 32, 8 * 32, dtype=np.uint32).tobytes()
  _, stats = both(text, raw, block=32)
  assert not stats.helped and not stats.interpreted


# ---- copies

@pytest.mark.parametrize("policy", [0, 3, 4, 1 << 40])
@pytest.mark.parametrize("size", [4, 8, 16])
def test_a_policy_of_a_cache_is_no_size(policy: int, size: int) -> None:
  """It says nothing of what is copied."""
  text = kernel(f"""mad.wide.u32 %l1, %t, 16, %in; mov.u32 %r2, s; mad.lo.u32 %r2, %t, 16, %r2; mov.u64 %l4, {policy};
    cp.async.ca.shared.global.L2::cache_hint [%r2], [%l1], {size}, %l4; cp.async.wait_all; bar.sync 0;
    ld.shared.u32 %r3, [%r2]; mad.wide.u32 %l2, %t, 4, %out; st.global.u32 [%l2], %r3;""",
    ".shared .align 16 .b8 s[1024];\n")
  raw = np.arange(1, 257, dtype=np.uint32)
  found, stats = both(text, raw.tobytes(), block=64)
  assert found[:256].view(np.uint32).tolist() == raw[::4].tolist() and not stats.helped


@pytest.mark.parametrize("stores", [False, True])
@pytest.mark.parametrize("operation", ["", "add"])
def test_columns_of_pixels_at_each_end_of_the_channels(stores: bool, operation: str) -> None:
  """Inside, past the beginning, past the end; the reference does nothing for compiled code."""
  if operation and not stores: return
  base = OUT + (1 << 15) if stores else IN + TENSOR + SHARED
  m = TensorMap(base, (10, 4, 3, 0, 0), (48, 192, 0, 0), (8, 5, 0, 0, 0), (1, 1, 1, 0, 0), 3, KINDS["f32"], 0, 0, 0, 0,
                1, (-1, 0, 0), (1, 0, 0))
  tensor = np.random.default_rng(2).integers(0, 0x3B, 4096, np.uint8).tobytes()
  for start in (-8, -7, -3, 0, 2, 3, 9, 10):
    numbers = {"to": 128, "threads": 1, "expected": 8 * 5 * 4, "barrier": BARRIER, "c0": start, "c1": -1, "c2": 1}
    raw = bytearray(data(m, b"" if stores else tensor, **numbers))
    shared = np.frombuffer(raw, np.uint8, SHARED, TENSOR)
    shared &= 0x3B
    (reference, compiled), stats = outcomes(COLUMN_STORES[3, operation] if stores else COLUMNS[3], bytes(raw), block=32)
    assert (reference == compiled).all() and stats is not None and not stats.helped and not stats.interpreted


@pytest.mark.parametrize("line", ["multimem.st.weak.b32 [%l8], %r1;", "multimem.red.relaxed.gpu.add.u32 [%l8], %r1;",
                                  "multimem.ld_reduce.add.u32 %r2, [%l8]; st.global.u32 [%l9+1024], %r2;",
                                  "multimem.ld_reduce.max.s32 %r2, [%l8]; st.global.u32 [%l9+1024], %r2;"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_all_places_of_an_address(line: str, count: int) -> None:
  """However many there are; the reference does nothing for compiled code."""
  content = np.random.default_rng(7).integers(0, 0x3C, 4096, np.uint8).tobytes()
  wanted, _ = several(line, content, "ref", PLACES[:count], 0)
  found, stats = several(line, content, "jit", PLACES[:count], 0)
  assert not isinstance(wanted, str) and found == wanted and not stats.helped


# ---- what is at hand, and numbers whose bits count

def test_a_compiled_form_is_at_hand() -> None:
  """Once the kernel has run, also for another program of the same text; of another one it is not."""
  text = kernel("st.global.u32 [%out], 31337;")
  def program(source: str) -> Program: return Program(link(parse(source)), "k", 0x4_0000_0000)
  one = (32, 1, 1)
  assert not kept(program(text), one)
  run(text, "k", bytes(16), "jit", block=32)
  assert kept(program(text), one) and not kept(program(text.replace("31337", "31338")), one)
  assert not kept(program(text), (64, 1, 1)) and not kept(program(text), one, True)


@pytest.mark.parametrize("bits", [0x7FC12345, 0x7F800001, 0xFFC12345, 0x7F800000, 0xFF800000, 0xBF800000])
def test_bits_of_a_number_that_is_moved(bits: int) -> None:
  """What is not computed keeps them, on whichever way it comes; a computed NaN is the canonical one."""
  text = kernel(f"""mad.wide.u32 %l1, %t, 4, %in; ld.global.f32 %f1, [%l1]; setp.lt.u32 %p1, %t, 16;
    @%p1 add.f32 %f2, %f1, %f1; @!%p1 mov.f32 %f2, 0f{bits:08X}; mov.f32 %f3, %f2; selp.f32 %f4, %f3, %f1, %p1;
    selp.f32 %f5, %f1, %f3, %p1; max.f32 %f6, %f5, %f5; mad.wide.u32 %l2, %t, 16, %out;
    st.global.v4.f32 [%l2], {{%f2, %f3, %f4, %f5}}; st.global.f32 [%l2+2048], %f6;""")
  raw = np.full(32, 0x7FC00001, np.uint32)
  found, _ = both(text, raw.tobytes(), block=32)
  cells = found[:512].view(np.uint32).reshape(32, 4)
  assert (cells[:16, :2] == 0x7FFFFFFF).all() and (cells[16:, [0, 1, 3]] == bits).all()


def test_fields_lie_side_by_side() -> None:
  """In a launch's context and in a strand's state: each at a multiple of its size, none over another one, no hole of
  eight bytes between them, but what vectors begin with; what a turn can end with has numbers of its own."""
  three, words = {"GRID": 12, "CLUSTERED": 12}, {
    "STATUS", "EXIT", "ACTIVE", "ALIVE", "NUMBER", "EXPECTED", "VOTES", "EVERY", "ARRIVED", "TICKET", "PHASE", "STRAND",
    "EPOCH", "GROUPS", "ISSUED", "WAITED"}
  context = ("MAPPINGS TABLE SITES PARAMS PARAMS_AT MODULE SHARED_SIZE LOCAL_SIZE GRID DYNAMIC STRANDS HELPER CLOCK "
             "CHANGES CLUSTER CLUSTERED APART STRIDE WORKSPACE MULTICAST CELLS CELLS_SIZE CELLS_FAR EPOCHS "
             "WRITTEN SEEN COPIES ORDER TEAM USED AGGREGATE SYSTEM ADDRESSES DATA HOSTS TOLD CONTEXT_SIZE")
  state = ("STATUS EXIT ACTIVE ALIVE LEFT BLOCK STRAND NUMBER SHARED LOCAL EXPECTED VOTES EVERY ARRIVED TICKET PHASE "
           "COUNTS COMMITTED EPOCH GROUPS ISSUED WAITED")
  sizes = {**three, **dict.fromkeys(words, 4), **dict.fromkeys(("ADDRESSES", "HOSTS", "TOLD"), 256), "MULTICAST": 16,
           "DATA": 2048}
  for names in (context.split(), state.split()):
    end = 0
    for name in names:
      at, size = getattr(layout, name), sizes.get(name, 8)
      assert end <= at < end + (64 if name == "ADDRESSES" else 8) and at % (4 if size % 8 else 8) == 0, name
      end = at + size
  assert end <= layout.HEADER == 128 and layout.SLOW.bit_count() == 1 and layout.SLOW > 1024
  ends = (layout.RUN, layout.END, layout.BARRIER, layout.YIELD, layout.LEAVE, layout.POLL, layout.CLUSTER_BARRIER)
  assert ends == (*range(7),) and (layout.ROW, layout.SPAN, layout.BARRIERS) == (32, 24, 16)


# ---- addresses

def test_addresses_of_32_bits_that_fall() -> None:
  """From thread to thread, in shared memory: each has what another one stored."""
  text = kernel("""mad.wide.u32 %l1, %t, 8, %in; ld.global.u64 %l2, [%l1]; mov.u32 %r1, s; mad.lo.s32 %r2, %t, -8, %r1;
    st.shared.u64 [%r2+248], %l2; bar.warp.sync -1; ld.shared.u32 %r3, [%r2+252]; mad.lo.u32 %r4, %t, 8, %r1;
    ld.shared.u32 %r5, [%r4]; mad.wide.u32 %l3, %t, 8, %out; st.global.v2.u32 [%l3], {%r3, %r5};""",
                ".shared .align 16 .b8 s[256];\n")
  raw = np.random.default_rng(5).integers(0, 1 << 32, (32, 2), np.uint32)
  found, _ = both(text, raw.tobytes(), block=32)
  cells = found[:256].view(np.uint32).reshape(32, 2)
  assert (cells[:, 0] == raw[:, 1]).all() and (cells[:, 1] == raw[::-1, 0]).all()


@pytest.mark.left("st.u32", "ld.u32")
def test_a_variable_of_the_stack_by_its_name_at_a_generic_address() -> None:
  """The reference does it, and compiled code goes on."""
  text = kernel(""".local .align 8 .b8 before[8]; .local .b32 mine; st.local.u32 [before], 77; st.u32 [mine], %t;
    ld.u32 %r1, [mine]; add.u32 %r1, %r1, 5; mad.wide.u32 %l3, %t, 4, %out; st.global.u32 [%l3], %r1;""")
  found, stats = both(text, b"", block=64)
  assert found[:256].view(np.uint32).tolist() == [*range(5, 69)] and stats.helped == {"st.u32": 2, "ld.u32": 2}


@pytest.mark.left("alloca")
def test_room_for_some_threads() -> None:
  """A guarded alloca is the reference's, and so is the kernel around it."""
  text = kernel("""and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1; mov.u64 %l1, 0; mov.u32 %r2, 0;
    @%p1 alloca.u64 %l1, 16; @%p1 st.local.u32 [%l1], %t; @%p1 ld.local.u32 %r2, [%l1]; mad.wide.u32 %l3, %t, 4, %out;
    st.global.u32 [%l3], %r2;""")
  found, stats = both(text, b"", block=32, refused=True)
  assert found[:128].view(np.uint32).tolist() == [t * (t & 1) for t in range(32)]
  assert stats.interpreted == {"alloca.u64 (no compiled form)": 1}


def test_code_that_llvm_does_not_make(monkeypatch: pytest.MonkeyPatch) -> None:
  """The reference runs the kernel; it is said once, with the kernel's name."""
  def job(*_: Any, **__: Any) -> Any: raise CompilerFailed("LLVM has ended")
  monkeypatch.setattr(servers, "job", job)
  linked = link(parse(kernel("st.global.u32 [%out], 31339;")))
  program = Program(linked, "k", 0x4_0000_0000)
  with pytest.warns(RuntimeWarning, match="kernel k is interpreted, which is slow: LLVM has ended") as told:
    for _ in range(2):
      with pytest.raises(NotCompiled, match="LLVM has ended"): compiled_kernel(program, (32, 1, 1))
  assert len(told) == 1 and told[0].filename == __file__


# ---- threads of a warp that meet

MEETINGS: dict[str, Any] = {  # an instruction of all threads of a warp, and what each has of it: of their numbers v
  "shfl.sync.bfly.b32 %r2, %r1, 5, 31, -1;": lambda v: v[np.arange(32) ^ 5],
  "shfl.sync.down.b32 %r2, %r1, 3, 31, -1;": lambda v: np.concatenate([v[3:], v[29:]]),
  "redux.sync.add.u32 %r2, %r1, -1;": lambda v: np.full(32, v.sum() & 0xFFFFFFFF),
  "vote.sync.ballot.b32 %r2, %p3, -1;": lambda v: np.full(32, sum(int(x & 1) << k for k, x in enumerate(v))),
  "match.any.sync.b32 %r2, %r4, -1;": lambda v: np.array(
    [sum(int(x % 3 == y % 3) << k for k, x in enumerate(v)) for y in v]),
  "bar.warp.sync -1; mov.u32 %r2, %r1;": lambda v: v}


@pytest.mark.left("shfl", "redux", "vote", "match", "bar.warp")
@pytest.mark.parametrize("meeting", MEETINGS)
def test_threads_that_come_to_meet_one_after_the_other(meeting: str) -> None:
  """Some of a warp wait for the others, which come by the way of a loop; warps that are complete do not wait, and some
  wait from a later turn of the loop on."""
  turn = np.zeros((6, 32), np.uint32)
  turn[1, 7:20], turn[2], turn[3, 5:], turn[3, 9] = 1, 2, 1, 2
  turn[4], turn[5] = np.arange(32) % 4, np.arange(32) % 2 * 2 + 1
  value = np.random.default_rng(3).integers(0, 1 << 32, (6, 32), np.uint32)
  text = kernel(f"""mad.wide.u32 %l1, %t, 4, %in; ld.global.u32 %r1, [%l1]; ld.global.u32 %r3, [%l1+768];
    rem.u32 %r4, %r1, 3; and.b32 %r5, %r1, 1; setp.eq.u32 %p3, %r5, 1; mov.u32 %r6, 0; mov.u32 %r2, 0;
    TOP: setp.ne.u32 %p1, %r6, %r3; @%p1 bra LATER; {meeting}
    LATER: add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 4; @%p2 bra TOP; mad.wide.u32 %l2, %t, 4, %out;
    st.global.u32 [%l2], %r2;""")
  found, _ = both(text, value.tobytes() + turn.tobytes(), block=192)
  cells = found[:768].view(np.uint32).reshape(6, 32)
  for warp, values in zip(cells, value): assert warp.tolist() == MEETINGS[meeting](values).tolist()


def test_a_barrier_lets_those_go_on_that_wait_for_it() -> None:
  """And no others: warps 1 and 2 meet while warp 0 still waits for warp 3 at another one."""
  text = kernel("""mov.u32 %r1, s; mad.lo.u32 %r2, %t, 4, %r1; mad.lo.u32 %r3, %t, 7, 3; st.shared.u32 [%r2], %r3;
    shr.u32 %r4, %t, 5; setp.ne.u32 %p1, %r4, 0; setp.eq.u32 %p2, %r4, 3; @%p1 bra OTHERS; bar.sync 1, 64; bra END;
    OTHERS: @%p2 bra LAST; bar.sync 2, 64; bra END; LAST: bar.sync 1, 64;
    END: xor.b32 %r5, %t, 96; mad.lo.u32 %r5, %r5, 4, %r1; ld.shared.u32 %r6, [%r5]; mad.wide.u32 %l1, %t, 4, %out;
    st.global.u32 [%l1], %r6;""", ".shared .align 16 .b8 s[512];\n")
  found, _ = both(text, b"", block=128)
  assert found[:512].view(np.uint32).tolist() == [7 * (t ^ 96) + 3 for t in range(128)]


# ---- atomics and reductions, whatever the values and threads

def test_exchanges_of_16_bytes_where_either_half_differs() -> None:
  """Both halves must be as they are compared with; what is new comes as a whole."""
  text = kernel("""mad.wide.u32 %l1, %t, 32, %in; ld.global.v2.u64 {%l2, %l3}, [%l1];
    ld.global.v2.u64 {%l4, %l5}, [%l1+16]; .reg .b128 %c, %n, %o; mov.b128 %c, {%l2, %l3}; mov.b128 %n, {%l4, %l5};
    mad.wide.u32 %l6, %t, 16, %out;
    mov.u64 %l7, 5; mov.u64 %l8, 6; st.global.v2.u64 [%l6], {%l7, %l8}; atom.global.cas.b128 %o, [%l6], %c, %n;
    mov.b128 {%l9, %l10}, %o; st.global.v2.u64 [%l6+4096], {%l9, %l10};""")
  given = np.array([(low, high, new, 9) for new in (6, 7) for low in (5, 6, 0) for high in (6, 5, 0)], np.uint64)
  found, _ = both(text, np.resize(given, (32, 4)).tobytes(), block=len(given))
  cells = found.view(np.uint64).reshape(-1, 2)
  for row, (low, high, new, more) in zip(cells.tolist(), given.tolist()):
    assert row == ([new, more] if (low, high) == (5, 6) else [5, 6])
  assert (cells[256:256 + len(given)] == [5, 6]).all()


@pytest.mark.parametrize("values", [[-5, -3, -2**31, -7, -9], [2**31 - 1, 4, 9, 2**31 - 1, 3], [7], [-1] * 8])
def test_reductions_of_a_warp_that_is_not_full(values: list[int]) -> None:
  """Threads that there are not count for nothing, in compiled code too."""
  forms = [("add", "s32"), ("min", "s32"), ("max", "s32"), ("add", "u32"), ("min", "u32"), ("max", "u32"),
           ("and", "b32"), ("or", "b32"), ("xor", "b32")]
  body = "".join(f"redux.sync.{o}.{t} %r2, %r1, -1; st.global.u32 [%l2+{4 * k}], %r2;"
                 for k, (o, t) in enumerate(forms))
  text = kernel(f"mad.wide.u32 %l1, %t, 4, %in; ld.global.u32 %r1, [%l1]; mad.wide.u32 %l2, %t, 64, %out; {body}")
  raw = np.array([*range(32), *values], np.int64).astype(np.uint32)
  found, _ = both(text, raw.tobytes(), block=len(raw))
  cells = found[:64 * len(raw)].view(np.uint32).reshape(-1, 16)
  for k, (operation, t) in enumerate(forms):
    numbers = [int(np.int32(np.uint32(v & 0xFFFFFFFF))) if t == "s32" else v & 0xFFFFFFFF for v in values]
    assert set(cells[32:, k].tolist()) == {FOLDS[operation](numbers) & 0xFFFFFFFF}, (operation, t)


# ---- blocks of a cluster

def test_ranks_of_addresses_that_have_one() -> None:
  """Of an address of another block it is known which one's, and `mapa` goes on from there to a third one."""
  text = kernel("""mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, s; add.u32 %r2, %r2, 8; mov.u64 %l1, s;
    add.u64 %l1, %l1, 8; cvta.shared.u64 %l1, %l1; mad.wide.u32 %l2, %r1, 128, %out;
    getctarank.shared::cluster.u32 %r9, %r2;
    getctarank.u64 %r10, %l1; st.global.v2.u32 [%l2+112], {%r9, %r10}; mov.u32 %r3, 0;
    A: mapa.shared::cluster.u32 %r4, %r2, %r3; getctarank.shared::cluster.u32 %r5, %r4;
    add.u32 %r6, %r3, 1; rem.u32 %r6, %r6, 3; mapa.shared::cluster.u32 %r7, %r4, %r6;
    getctarank.shared::cluster.u32 %r8, %r7; st.global.v2.u32 [%l2], {%r5, %r8};
    mapa.u64 %l3, %l1, %r3; getctarank.u64 %r5, %l3; mapa.u64 %l4, %l3, %r6; getctarank.u64 %r8, %l4;
    st.global.v2.u32 [%l2+8], {%r5, %r8}; mapa.shared::cluster.u32 %r9, %r2, %r6; setp.eq.u32 %p1, %r9, %r7;
    mapa.u64 %l5, %l1, %r6; setp.eq.u64 %p2, %l4, %l5; selp.u32 %r5, 1, 0, %p1; selp.u32 %r8, 1, 0, %p2;
    st.global.v2.u32 [%l2+16], {%r5, %r8}; add.u64 %l2, %l2, 24; add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 3;
    @%p3 bra A;""", ".shared .align 16 .b8 s[64];\n").replace("out) {", "out) .reqnctapercluster 3 {", 1)
  found, _ = both(text, b"", grid=3, block=1)
  for rank, row in enumerate(found[:384].view(np.uint32).reshape(3, 32).tolist()):
    for k in range(3): assert row[6 * k:6 * k + 6] == [k, (k + 1) % 3, k, (k + 1) % 3, 1, 1]
    assert row[28:30] == [rank, rank]


# ---- accesses of 32 bytes, and what engines that differ are told of

def test_elements_of_32_bytes_anywhere() -> None:
  """Each thread's where it likes, and of some of them alone."""
  eight = ", ".join(f"%r{k}" for k in range(4, 12))
  text = kernel(f"""mul.lo.u32 %r1, %t, 13; and.b32 %r1, %r1, 31; mad.wide.u32 %l1, %r1, 32, %in;
    ld.global.v8.b32 {{{eight}}}, [%l1]; mul.lo.u32 %r2, %t, 7; and.b32 %r2, %r2, 31; mad.wide.u32 %l2, %r2, 32, %out;
    setp.lt.u32 %p1, %r1, 20; st.global.v8.b32 [%l2], {{{eight}}}; @%p1 ld.global.v8.b32 {{{eight}}}, [%l1+1024];
    @%p1 st.global.v8.b32 [%l2+2048], {{{eight}}};""").replace("sm_90a", "sm_120a")
  raw = np.random.default_rng(6).integers(0, 1 << 32, (64, 8), np.uint32)
  found, _ = both(text, raw.tobytes(), block=32)
  cells = found[:4096].view(np.uint32).reshape(-1, 8)
  for t in range(32):
    source, target = t * 13 & 31, t * 7 & 31
    assert (cells[target] == raw[source]).all()
    assert (cells[64 + target] == (raw[32 + source] if source < 20 else 0)).all()


@pytest.mark.parametrize("count", [1, 8, 11])
def test_engines_that_differ(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """The error has the kernel, how many dwords differ and what both have in the first eight; or how each ended."""
  reference = ptx_compiled.turns

  def turns(grid: Any, how: str) -> Any:
    yield from reference(grid, how)
    for k in range(count): grid.space.write(OUT + 8 * k, (k + 1).to_bytes(4, "little"))
  monkeypatch.setattr(ptx_compiled, "turns", turns)
  with pytest.raises(EnginesDiffer) as caught: run(kernel("st.global.u32 [%out+800], 9;"), "k", b"", "both", block=1)
  head, _, rows = str(caught.value).partition(": ")
  assert head == f"{count} dwords of memory differ after k"
  assert rows.split("; ") == [f"{OUT + 8 * k:#x}: reference 0x00000000, compiled {k + 1:#010x}"
                              for k in range(min(count, 8))]

  def faulty(grid: Any, how: str) -> Any:
    yield from reference(grid, how)
    raise MachineFault("of the test")
  monkeypatch.setattr(ptx_compiled, "turns", faulty)
  with pytest.raises(EnginesDiffer) as caught: run(kernel("st.global.u32 [%out], 9;"), "k", b"", "both", block=1)
  assert str(caught.value) == "the reference ended well, compiled code raised MachineFault: of the test"


@pytest.mark.parametrize(("block", "error", "told"), [
  (64, PageFault(OUT, "read", 4), PageFault), (1, PageFault(OUT, "read", 4), EnginesDiffer),
  (64, Deadlock("of the test"), EnginesDiffer), (1, WatchdogExpired("of the test"), WatchdogExpired)])
def test_whose_fault_comes_first_is_no_difference(block: int, error: MachineFault, told: type[Exception],
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
  """Of several warps it is a matter of turns; so is where a run stands when its time is over."""
  def turns(grid: Any, how: str) -> Any:
    yield None
    raise error
  monkeypatch.setattr(ptx_compiled, "turns", turns)
  with pytest.raises((MachineFault, EnginesDiffer)) as caught:
    run(kernel("st.global.u32 [%out+0x40000000], 9;"), "k", b"", "both", block=block)
  assert type(caught.value) is told


# ---- limits of tensor maps, each at its edge and one over

def edges(rank: int) -> list[tuple[str, TensorMap, dict[str, int], bool]]:
  """(what, a map for columns of pixels, numbers of a copy, whether that is none too many)."""
  def five(numbers: Any, count: int = 5) -> Any: return (*numbers, *[0] * (count - len(numbers)))
  plain = TensorMap(IN + TENSOR + SHARED, five((8, 6, 5, 4, 3)[:rank]), five((32, 192, 960, 3840)[:rank - 1], 4),
                    five((8, 4)), five((1,) * rank), rank, KINDS["f32"], im2col=1)
  small = replace(plain, kind=KINDS["u8"], box=five((16, 4)))
  most, out = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}[rank], list[tuple[str, TensorMap, dict[str, int], bool]]()
  for number in ("size", "of", "far")[:rank - 2]:
    out += [(f"{number} {x}", plain, {number: x}, x < 2 * most) for x in (2 * most - 1, 2 * most) if x < 1 << 16]
  for k in range(rank - 2):
    last = plain.dims[k + 1] - 1
    for name in ("lower", "upper"):
      for x in (-most, most - 1, most, -most - 1) if rank > 3 else (-most, most - 1):
        corners = five([x if j == k else 0 for j in range(3)], 3)
        numbers = {f"c{k + 1}": x if name == "lower" else 0}
        good = -most <= x < most and (x <= last if name == "lower" else last + x >= 0)
        out.append((f"{name} {k} {x}", replace(plain, **{name: corners}), numbers, good))  # type: ignore[arg-type]
    out += [(f"c{k + 1} {x}", plain, {f"c{k + 1}": x}, 0 <= x <= last) for x in (0, -1, last, last + 1)]
  for k in range(rank):
    for x in (0, 1, 8, 9):
      steps = tuple(x if j == k else s for j, s in enumerate(plain.steps))
      out.append((f"step {k} {x}", replace(plain, steps=steps), {}, 1 <= x <= 8))
  for channels, pixels in ((16, 1), (16, 1024), (16, 0), (16, 1025), (256, 4), (272, 4), (0, 4), (8, 4)):
    out.append((f"{channels} x {pixels}", replace(small, box=five((channels, pixels))), {},
                16 <= channels <= 256 and 1 <= pixels <= 1024))
  for change, good in (({"address": plain.address + 8}, False), ({"address": plain.address + 16}, True),
                       ({"rank": rank % 5 + 1}, False), ({"fill": 1}, True), ({"fill": 2}, False),
                       ({"kind": 16}, False), ({"swizzle": 1}, True), ({"swizzle": 5}, False), ({"im2col": 2}, False),
                       ({"strides": (32, 1 << 40, *plain.strides[2:])}, False),
                       ({"strides": (40, *plain.strides[1:])}, False)):
    out.append((str(change), replace(plain, **change), {}, good))  # type: ignore[arg-type]
  return out


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_limits_of_columns(rank: int) -> None:
  """What is within them compiled code does by itself; what is not, both engines refuse in the same words."""
  tensor = np.random.default_rng(8).integers(0, 256, 1 << 15, np.uint8).tobytes()
  for what, m, more, good in edges(rank):
    numbers = {"threads": 1, "expected": m.box[0] * m.box[1] * m.size if m.kind < len(KINDS) else 0,
               "barrier": BARRIER, **more}
    (reference, compiled), stats = outcomes(COLUMNS[rank], data(m, tensor, **numbers), block=32)
    assert isinstance(reference, tuple) != good, (what, reference)
    if not good: assert reference == compiled, what
    else: assert (reference == compiled).all() and stats is not None and not stats.helped, what


# ---- copies from one mapping of memory to the next

class Parted(AddressSpace):
  """Memory of which each 4 KiB are a mapping of their own."""

  def map(self, start: int, size: int, region: Region, *more: Any, **others: Any) -> Any:
    for at in range(0, size, 4096): found = super().map(start + at, 4096, Region("part", 4096), *more, **others)
    return found


@pytest.mark.left("cp")
@pytest.mark.parametrize("operation", ["", "add"])
def test_copies_across_mappings(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """The reference does what compiled code cannot: of a copy that it has looked at in vain nothing has happened."""
  monkeypatch.setattr(test_ptx_engines, "AddressSpace", Parted)
  border, shared = (1 << 15) + 4096, np.random.default_rng(4).integers(0, 64, SHARED, np.uint8)
  for row in (0, 4, 7):  # the one that is parted
    base = OUT + border - 48 * row - 16
    for rank, text, m in (
        (2, storing(2, operation), TensorMap(base, (8, 12, 0, 0, 0), (48, 0, 0, 0), (8, 8, 0, 0, 0), (1,) * 5, 2,
                                             KINDS["u32"])),
        (3, COLUMN_STORES[3, operation], TensorMap(base, (8, 4, 4, 0, 0), (48, 192, 0, 0), (8, 8, 0, 0, 0), (1,) * 5, 3,
                                                   KINDS["u32"], im2col=1))):
      raw = bytearray(data(m, b"", to=128, threads=1))
      raw[TENSOR:TENSOR + SHARED] = shared.tobytes()
      (reference, compiled), stats = outcomes(text, bytes(raw), block=32)
      assert (reference == compiled).all() and stats is not None and stats.helped.total() == 1
      wanted = shared[128:128 + 256].reshape(8, 32)
      for k in range(8):
        place = base - OUT + 48 * k
        assert (compiled[place:place + 32] == wanted[k]).all(), (rank, row, k)
    for size in (96, 4096):
      line = (f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}.u32" if operation else
              "cp.async.bulk.global.shared::cta.bulk_group")
      text = around(f"cvt.u64.u32 %l4, %far; add.u64 %l4, %l4, {OUT}; @%p2 {line} [%l4], [%to], %size;")
      raw = bytearray(data(TensorMap(), b"", to=128, threads=1, size=size, far=base - OUT))
      raw[TENSOR:TENSOR + SHARED] = shared.tobytes()
      (reference, compiled), stats = outcomes(text, bytes(raw), block=32)
      assert (reference == compiled).all() and stats is not None
      assert (compiled[base - OUT:base - OUT + size] == shared[128:128 + size]).all()


# ---- time

def test_clocks_that_have_passed_32_bits() -> None:
  """Each register has its own part of what has been executed, on both engines."""
  text = kernel("""mov.u32 %r1, %clock_hi; mov.u32 %r2, %globaltimer_hi; mov.u64 %l1, %clock64; mov.u32 %r3, %clock;
    shr.u64 %l2, %l1, 32; cvt.u32.u64 %r4, %l2; cvt.u32.u64 %r5, %l1; st.global.v4.u32 [%out], {%r1, %r2, %r4, %r3};
    st.global.u32 [%out+16], %r5;""")
  for how in ("ref", "jit"):
    space = AddressSpace("clocks")
    for at in (IN, OUT, 0x3_0000_0000): space.map(at, 4096, Region("data", 4096))
    space.write(0x3_0000_0000, IN.to_bytes(8, "little") + OUT.to_bytes(8, "little"))
    d = Dispatch(Program(link(parse(text)), "k", 0x4_0000_0000), (1, 1, 1), (1, 1, 1), 0x3_0000_0000, 16)
    ended(turns(Grid(space, d, 1000, Stats(steps=(0x17 << 32) + 0x12345678)), how))
    cells = np.frombuffer(space.read(OUT, 20), np.uint32).tolist()
    assert cells[:3] == [0x17] * 3 and all(0x12345678 <= c < 0x12355678 for c in cells[3:])


# ---- what is seldom: texts without an end, functions that are provided, places without code

def test_a_text_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
  """64 KiB of it are enough."""
  monkeypatch.setattr(spaces, "read_some", lambda *_: b"a" * 300)
  group: Any = None
  assert builtin._text(group, 0, 0, 0) == b"a" * (1 << 16)


def test_functions_that_are_provided() -> None:
  """Those that who links has, and those that the driver has; others are missing. Lines keep their files' numbers."""
  head = ".version 8.0\n.target sm_80\n.address_size 64\n"
  first = head + '.pragma "own";\n.file 1 "a.cu"\n.extern .func mine ();\n.visible .func f () {\n.loc 1 5 3\n'
  first += "call mine;\nret;\n}"
  second = head + '.file 1 "b.cu"\n.visible .func g () {\n.loc 1 7 3\nret;\n}'
  texts = [("a", first), ("b", second)]
  whole = linked(texts, frozenset({"mine"}))
  assert '.file 2 "b.cu"' in whole and ".loc 2 7 3" in whole
  for others in (frozenset[str](), frozenset({"malloc"}), frozenset({"other"})):
    with pytest.raises(DecodeError, match="^Undefined reference to 'mine' in 'a'$"): linked(texts, others)


def test_no_code_is_at_a_place() -> None:
  program = Program(link(parse(kernel(""))), "k", 0x4_0000_0000)
  with pytest.raises(MachineFault, match="control went where no code is"): program.at(1)


def test_atomics_of_threads_in_two_spaces() -> None:
  """Each changes its own; what comes behind is done by all of them."""
  text = kernel("""mov.u64 %l1, s; cvta.shared.u64 %l1, %l1; and.b32 %r1, %t, 3; setp.eq.u32 %p1, %r1, 1;
    add.u64 %l2, %out, 1024; selp.u64 %l3, %l1, %l2, %p1; mov.u32 %r3, 7; @%p1 mov.u32 %r3, 100; st.shared.u32 [s], 5;
    bar.warp.sync -1; atom.add.u32 %r2, [%l3], %r3; mad.wide.u32 %l4, %t, 4, %out; add.u32 %r4, %t, 50;
    st.global.u32 [%l4], %r4; bar.warp.sync -1; ld.shared.u32 %r5, [s]; st.global.u32 [%l2+4], %r5;
    atom.global.add.u32 _, [%l2+8], 3; atom.global.exch.b32 _, [%l2+12], %t;""",
                ".shared .align 8 .b32 s;\n")
  found, _ = both(text, b"", block=32)
  cells = found[:1040].view(np.uint32)
  assert cells[:32].tolist() == [*range(50, 82)]
  assert cells[256:].tolist() == [7 * 24, 5 + 100 * 8, 3 * 32, 31]
