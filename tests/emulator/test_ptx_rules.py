"""Compiled code by rule: reductions of any members, calls at the end of a text, each kind of matrix, columns of pixels
at the ends of a tensor, values of which the bits count. The reference is the witness, or Python."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.emulator.test_ptx_engines import HEAD, IN, OUT, both, kernel, run
from tests.emulator.test_ptx_engines_bulk import BARRIER, COLUMN_STORES, COLUMNS, KINDS, SHARED, TENSOR, data, outcomes
from tests.emulator.test_ptx_engines_remote import PLACES, several
from tinyhw.emulator.jit.ptx import layout
from tinyhw.emulator.jit.ptx.code import kept
from tinyhw.emulator.jit.ptx.matrix import ELEMENTS
from tinyhw.emulator.ptx.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.emulator.ptx.tensormap import TensorMap
from tinyhw.isa.ptx import parse

# ---- reductions of a warp

FOLDS: dict[str, Any] = {
  "add": lambda v: sum(v), "min": min, "max": max, "and": lambda v: int(np.bitwise_and.reduce(np.array(v, np.int64))),
  "or": lambda v: int(np.bitwise_or.reduce(np.array(v, np.int64))),
  "xor": lambda v: int(np.bitwise_xor.reduce(np.array(v, np.int64)))}


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
    "STATUS", "EXIT", "ACTIVE", "ALIVE", "NUMBER", "EXPECTED", "VOTES", "EVERY", "ARRIVED", "TICKET", "PHASE", "STRAND"}
  context = ("MAPPINGS TABLE SITES PARAMS PARAMS_AT MODULE SHARED_SIZE LOCAL_SIZE GRID DYNAMIC STRANDS HELPER CLOCK "
             "CHANGES CLUSTER CLUSTERED APART STRIDE WORKSPACE MULTICAST ADDRESSES DATA HOSTS CONTEXT_SIZE")
  state = ("STATUS EXIT ACTIVE ALIVE LEFT BLOCK STRAND NUMBER SHARED LOCAL EXPECTED VOTES EVERY ARRIVED TICKET PHASE "
           "COUNTS COMMITTED")
  sizes = {**three, **dict.fromkeys(words, 4), "MULTICAST": 16, "ADDRESSES": 256, "DATA": 2048, "HOSTS": 256}
  for names in (context.split(), state.split()):
    end = 0
    for name in names:
      at, size = getattr(layout, name), sizes.get(name, 8)
      assert end <= at < end + (64 if name == "ADDRESSES" else 8) and at % (4 if size % 8 else 8) == 0, name
      end = at + size
  assert end <= layout.HEADER == 128 and layout.SLOW.bit_count() == 1 and layout.SLOW > 1024
  ends = (layout.RUN, layout.END, layout.BARRIER, layout.YIELD, layout.LEAVE, layout.POLL, layout.CLUSTER_BARRIER)
  assert ends == (*range(7),) and (layout.ROW, layout.SPAN, layout.BARRIERS) == (32, 24, 16)
