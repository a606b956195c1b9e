"""What programs of PTX seldom do: stacks that grow, branches to many places, windows of memory, all of printf."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.strength import THOROUGH
from tinyhw import Texture
from tinyhw.core.errors import DecodeError, MachineFault, PageFault, Unsupported
from tinyhw.emulator.ptx.memory.spaces import LOCAL_WINDOW, SHARED_WINDOW

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
REGISTERS = """.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>, %t; .reg .f32 %f<20>; .reg .f64 %d<9>;
    .reg .b64 %l<20>, %o;
  .reg .b64 %b;"""


@pytest.fixture(params=["ref", "both"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
  monkeypatch.setenv("EMU", request.param)
  return str(request.param)


def run(
  body: str,
  *more: Any,
  threads: int = 32,
  outer: str = "",
  params: str = "",
  size: int = 1,
  blocks: int = 1,
  cluster: Any = None,
  dtype: Any = np.uint32,
  **named: Any,
) -> Any:
  """What threads store from [%o] on: `size` words each, which lie behind each other; %b is the array, %t the thread."""
  text = f"""{HEAD}{outer}.visible .entry k (.param .u64 out{params}) {{
  {REGISTERS}
  ld.param.u64 %b, [out]; mov.u32 %t, %tid.x; mov.u32 %r0, %ctaid.x; mad.lo.u32 %r0, %r0, {threads}, %t;
  mad.wide.u32 %o, %r0, {4 * size}, %b;
  {body}
  ret;
}}"""
  out = np.zeros((threads * blocks, size), dtype)
  return tinyhw.launch(text, "k", blocks, threads, [out, *more], "EMU", cluster=cluster, **named)[0]


def st(*names: str) -> str:
  return "".join(f"st.global.u32 [%o+{4 * k}], {n};" for k, n in enumerate(names))


# ---- the stack


def test_a_stack_that_grows(engine: str) -> None:
  """Memory from alloca is the thread's own, aligned, behind what there is; stackrestore gives it back."""
  body = """.local .align 16 .b8 a[20]; st.local.u32 [a], 5; stacksave.u64 %l1; alloca.u64 %l2, 20, 64;
    alloca.u64 %l3, 4; alloca.u64 %l8, 8;
  st.local.u32 [%l2], %t; add.u32 %r1, %t, 100; st.local.u32 [%l3], %r1; ld.local.u32 %r2, [%l2];
    ld.local.u32 %r3, [%l3];
  stackrestore.u64 %l1; alloca.u64 %l4, 8, 16; sub.u64 %l5, %l2, %l1; sub.u64 %l6, %l3, %l2; sub.u64 %l7, %l4, %l1;
    sub.u64 %l9, %l8, %l3;
  and.b64 %l2, %l2, 63; ld.local.u32 %r4, [a]; cvt.u32.u64 %r5, %l5; cvt.u32.u64 %r6, %l6; cvt.u32.u64 %r7, %l7;
    cvt.u32.u64 %r8, %l2;
  cvt.u32.u64 %r9, %l9;"""
  out = run(body + st("%r2", "%r3", "%r4", "%r5", "%r6", "%r7", "%r8", "%r9"), size=8)
  n = np.arange(32)
  assert (out[:, 0] == n).all() and (out[:, 1] == n + 100).all()
  assert (out[:, 2:] == (5, 32, 24, 0, 0, 8)).all()  # a frame of 32 bytes; 20 bytes, aligned to 8; 4 bytes


@pytest.mark.left("call")
def test_threads_have_stacks_of_different_heights(engine: str) -> None:
  """Threads that part, allocate and meet keep their own ends; calls begin behind the highest."""
  outer = """.func (.reg .b32 r) sum (.reg .b32 x) { .local .b32 v; .reg .b32 %s; st.local.u32 [v], x;
    ld.local.u32 %s, [v];
    add.u32 r, %s, 1; ret; }
"""
  body = """stacksave.u64 %l1; setp.lt.u32 %p1, %t, 7; @%p1 bra A; setp.lt.u32 %p2, %t, 20; @%p2 bra E;
    alloca.u64 %l2, 64; bra B;
A: alloca.u64 %l2, 16; B: st.local.u32 [%l2], %t;
E: stacksave.u64 %l3; sub.u64 %l4, %l3, %l1; cvt.u32.u64 %r1, %l4; call (%r2), sum, (%t); mov.u32 %r3, 77;
  setp.ge.u32 %p3, %t, 7; and.pred %p3, %p3, %p2; @!%p3 ld.local.u32 %r3, [%l2];"""
  out = run(
    body.replace("%p2 bra E", "%p2 bra E").replace("setp.lt.u32 %p1", "setp.lt.u32 %p2, %t, 20; setp.lt.u32 %p1")
    + st("%r1", "%r2", "%r3"),
    outer=outer,
    size=3,
  )
  n = np.arange(32)
  assert (out[:, 0] == np.where(n < 7, 16, np.where(n < 20, 0, 64))).all() and (out[:, 1] == n + 1).all()
  assert (out[:, 2] == np.where((n >= 7) & (n < 20), 77, n)).all()


# ---- control


def test_a_branch_to_many_places(engine: str) -> None:
  body = """rem.u32 %r1, %t, 3; mov.u32 %r2, 0; T: .branchtargets A, B, C; brx.idx %r1, T;
A: mov.u32 %r2, 10; bra E; B: mov.u32 %r2, 20; bra E; C: mov.u32 %r2, 30; E: mov.u32 %r3, 1; brx.idx %r3, U;
U: .branchtargets A, X; X:"""
  assert (run(body + st("%r2"))[:, 0] == np.array([10, 20, 30])[np.arange(32) % 3]).all()


@pytest.mark.left("redux")
def test_members_may_be_in_registers_of_vectors(engine: str) -> None:
  """Members that each thread computes: those of a warp's first thread count; warps that are complete go on."""
  body = """shr.u32 %r1, %t, 5; setp.eq.u32 %p1, %r1, 0; selp.b32 %r2, 0x0000FFFF, 0xFFFF0000, %p1; and.b32 %r3, %t, 31;
    shl.b32 %r4, 1, %r3; and.b32 %r5, %r4, %r2; setp.ne.u32 %p2, %r5, 0; add.u32 %r2, %r2, 0; mov.u32 %r6, 0;
    mov.u32 %r7, 0;
    @!%p2 bra E; setp.eq.u32 %p3, %t, 3; @%p3 bra L; redux.sync.add.u32 %r6, %t, %r2; bra E;
    L: redux.sync.add.u32 %r6, %t, %r2; E:"""
  text = body.replace("setp.eq.u32 %p3, %t, 3; @%p3 bra L;", "").replace(
    "bra E; L: redux.sync.add.u32 %r6, %t, %r2;", ""
  )
  out = run(text + st("%r6"), threads=64)[:, 0]
  wanted = np.zeros(64, int)
  wanted[:16], wanted[48:] = sum(range(16)), sum(range(48, 64))
  assert (out == wanted).all()


def test_threads_of_a_warp_wait_for_each_other_from_several_branches(engine: str) -> None:
  """bar.warp.sync where members come one after the other; two warps wait at one place at different times."""
  body = """and.b32 %r1, %t, 31; shr.u32 %r2, %t, 5; mov.u32 %r3, 0; setp.lt.u32 %p1, %r1, 9; add.u32 %r4, %r2, %r2;
L: setp.ge.u32 %p2, %r3, %r4; @%p2 bra M; add.u32 %r3, %r3, 1; bra L;
M: @%p1 bra A; add.u32 %r3, %r3, 100; bra J; A: add.u32 %r3, %r3, 200;
J: shfl.sync.bfly.b32 %r5, %r3, 31, 31, -1;"""
  out = run(body + st("%r5"), threads=96)[:, 0]
  n = np.arange(96)
  assert (out == np.where((n % 32 ^ 31) < 9, 200, 100) + 2 * (n // 32)).all()


def test_a_warp_in_part_counts_as_a_whole_one(engine: str) -> None:
  """At a barrier for some threads: 50 threads are two warps, which are 64; who only arrives counts so too."""
  body = """.shared .b32 s; setp.lt.u32 %p1, %t, 32; mov.u32 %r1, 0; @%p1 bra A;
    st.shared.u32 [s], 7; bar.arrive 1, 64; bra E;
A: bar.sync 1, 64; ld.shared.u32 %r1, [s]; E: bar.sync 2, 64;"""
  for threads in (50, 33, 64):
    assert (run(body + st("%r1"), threads=threads)[:, 0] == np.where(np.arange(threads) < 32, 7, 0)).all()


def test_barriers_say_who_is_missing() -> None:
  """Of those that it is for, or of the block's threads that live."""
  for line, text in (
    (
      "setp.lt.u32 %p1, %t, 32; @!%p1 bra B; bar.sync 1, 64; B: bar.sync 2, 96;",
      "barrier 1 never completes: 32 of 64 threads",
    ),
    ("setp.lt.u32 %p1, %t, 32; @!%p1 bra B; bar.sync 1; B: bar.sync 2;", "barrier 1 never completes: 32 of 96 threads"),
    (
      "setp.lt.u32 %p1, %t, 40; @!%p1 exit; setp.lt.u32 %p1, %t, 32; @!%p1 bra B; bar.sync 1; B: bar.sync 2;",
      "32 of 40 threads",
    ),
  ):
    with pytest.raises(MachineFault, match=text):
      run(line, threads=96)


def test_wmma_saturates_with_a_sign(engine: str) -> None:
  """Sums of bytes that pass the ends of 32 bits, from an accumulator below and above zero."""
  a = np.full(256, 100, np.int8)
  for start, sign in ((-(1 << 31) + 5, -1), ((1 << 31) - 5, 1), (-7, 1)):
    c8 = "{" + ", ".join(f"%r{k}" for k in range(2, 10)) + "}"
    body = f"""ld.param.u64 %l1, [a]; ld.param.u64 %l2, [b]; ld.param.u64 %l3, [c];
      wmma.load.a.sync.aligned.row.m16n16k16.s8 {{%r10, %r11}}, [%l1];
      wmma.load.b.sync.aligned.col.m16n16k16.s8 {{%r12, %r13}}, [%l2];
      wmma.load.c.sync.aligned.row.m16n16k16.s32 {c8}, [%l3];
      wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32.satfinite {c8}, {{%r10, %r11}}, {{%r12, %r13}}, {c8};
      wmma.store.d.sync.aligned.row.m16n16k16.s32 [%b], {c8};"""
    out = run(
      body,
      a,
      (a * sign).astype(np.int8),
      np.full(256, start, np.int32),
      size=8,
      params=", .param .u64 a, .param .u64 b, .param .u64 c",
    ).view(np.int32)
    assert (out == np.clip(start + sign * 160000, -(1 << 31), (1 << 31) - 1)).all()


def test_old_votes_have_guards(engine: str) -> None:
  """Forms without .sync: those whose guard is true take part, of those that are here."""
  body = """setp.lt.u32 %p1, %t, 12; setp.lt.u32 %p2, %t, 5; mov.u32 %r1, 0; mov.u32 %r2, 9; mov.u32 %r3, 9;
    @%p1 vote.ballot.b32 %r1, %p2; @%p1 vote.all.pred %p3, %p1; selp.u32 %r2, 1, 0, %p3;
    @!%p1 vote.any.pred %p4, %p2; selp.u32 %r3, 1, 0, %p4;
    @%p1 activemask.b32 %r4;"""
  out = run(body.replace(".target sm_90a", "") + st("%r1", "%r2", "%r3", "%r4"), size=4)
  n = np.arange(32)
  assert (out[:, 0] == np.where(n < 12, 31, 0)).all() and (out[:12, 1] == 1).all() and not out[:, 2].any()
  assert (out[:12, 3] == 0xFFF).all()


# ---- memory


def test_a_shared_variable_that_is_only_named_in_a_sum(engine: str) -> None:
  """Of the module: a kernel that names it has it, whatever it is named in."""
  outer = ".shared .align 8 .b8 other[8]; .shared .align 8 .b8 mine[16];\n"
  body = "mov.u32 %r1, mine+8; st.shared.u32 [%r1], %t; ld.shared.u32 %r2, [mine+8]; st.global.u32 [%o], %r2;"
  assert run(body, outer=outer, threads=1).tolist() == [[0]]
  plain = "mov.u32 %r1, mine+8; st.global.u32 [%o], %r1;"
  assert run(plain, outer=outer, threads=1).tolist() == [[8]]


def test_windows_of_the_address_space(engine: str) -> None:
  """isspacep at both ends of each space: shared and local windows, parameters, constants; all else is global."""
  spaces = ("shared", "shared::cluster", "local", "param", "const", "global")
  outer = ".const .b8 first[16]; .const .align 16 .b8 c[20]; .global .b8 g[16];\n"
  body = (
    "cvta.const.u64 %l2, c; ld.param.u64 %l1, [at]; mov.b64 %l3, out; cvta.param.u64 %l3, %l3; cvta.global.u64 %l5, g;"
  )
  values = ["%l1", "%l2", "%l2+19", "%l2+20", "%l3", "%l3+15", "%l3+16", "%l3-1", "%l5"]
  reads = ""
  for k, v in enumerate(values):
    name, _, more = v.partition("+")
    if "-" in v:
      name, _, less = v.partition("-")
    reads += f"add.u64 %l4, {name}, {more or (-int(less) if '-' in v else 0)}; mov.u32 %r1, 0;"
    for s, space in enumerate(spaces):
      reads += f"isspacep.{space} %p1, %l4; selp.u32 %r2, {1 << s}, 0, %p1; or.b32 %r1, %r1, %r2;"
    reads += f"st.global.u32 [%o+{4 * k}], %r1;"
  big = 1 << 32
  for at, space in (
    (SHARED_WINDOW - 1, 32),
    (SHARED_WINDOW, 3),
    (SHARED_WINDOW + big - 1, 3),
    (LOCAL_WINDOW - 1, 0),
    (LOCAL_WINDOW, 4),
    (LOCAL_WINDOW + big - 1, 4),
    (LOCAL_WINDOW + big, 0),
  ):
    out = run(body + reads, np.uint64(at), outer=outer, params=", .param .u64 at", threads=1, size=len(values))[
      0
    ].tolist()
    # the window of parameters lies in that of global memory; between and behind the windows nothing is
    assert out[0] == space and out[1:] == [16, 16, 32, 40, 40, 32, 32, 32], hex(at)


def test_parameters_through_registers(engine: str) -> None:
  """ld.param with an address in a register: a kernel's lie in global memory, a function's on its stack."""
  outer = """.func (.param .b32 r) f (.param .b32 x) { .reg .b32 %a, %v; mov.b32 %a, x; ld.param.u32 %v, [%a];
    add.u32 %v, %v, 1;
    st.param.u32 [r], %v; ret; }
"""
  out = run(
    "mov.b64 %l1, more; ld.param.u32 %r1, [%l1+4]; call (%r2), f, (%t);" + st("%r1", "%r2"),
    np.array([3, 4], np.uint32).view(np.uint64)[0],
    params=", .param .u64 more",
    outer=outer,
    size=2,
  )
  assert (out[:, 0] == 4).all() and (out[:, 1] == np.arange(32) + 1).all()


def test_addresses_before_a_name(engine: str) -> None:
  outer = ".global .align 16 .b32 a[4] = {1, 2, 3, 4}; .global .align 16 .b32 b[4] = {5, 6, 7, 8};\n"
  body = ".shared .b32 s[2]; .shared .b32 z[2]; st.shared.u32 [z-4], 9; ld.shared.u32 %r4, [s+4];"
  out = run(
    body + "ld.global.u32 %r1, [b-16]; ld.global.u32 %r2, [b+12]; ld.u32 %r3, [b-4];" + st("%r1", "%r2", "%r3", "%r4"),
    outer=outer,
    size=4,
  )
  assert (out == (1, 8, 4, 9)).all()


def test_a_tensor_map_by_a_generic_address(engine: str) -> None:
  body = """.shared .align 128 .b8 m[128]; mov.u32 %r1, m; cvt.u64.u32 %l1, %r1; cvta.shared.u64 %l1, %l1;
    setp.eq.u32 %p1, %t, 0;
    shl.b32 %r2, %t, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], 0; bar.warp.sync -1; @!%p1 bra E;
    tensormap.replace.tile.box_dim.b1024.b32 [%l1], 1, 77; E: bar.warp.sync -1; ld.shared.u32 %r4, [%r3];"""
  from tinyhw.emulator.ptx.memory.tensormap import TensorMap

  out = run(body + st("%r4"))[:, 0].astype(np.uint32)
  assert TensorMap.decode(out.tobytes()) == TensorMap(box=(0, 77, 0, 0, 0))


def test_mbarriers_by_generic_addresses(engine: str) -> None:
  body = """.shared .align 8 .b64 bar; mov.u32 %r1, bar; cvt.u64.u32 %l1, %r1; cvta.shared.u64 %l1, %l1;
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.b64 [%l1], 32; bar.warp.sync -1; mbarrier.arrive.b64 %l2, [%l1];
    W: mbarrier.try_wait.b64 %p2, [%l1], %l2; @!%p2 bra W;
    mbarrier.pending_count.b64 %r2, %l2; mbarrier.test_wait.parity.b64 %p3, [%l1], 0; selp.u32 %r3, 1, 0, %p3;"""
  out = run(body + st("%r2", "%r3"), size=2)
  assert sorted(out[:, 0].tolist()) == list(range(1, 33)) and (out[:, 1] == 1).all()


def test_copies_that_meet_unmapped_memory() -> None:
  """Faults of single threads in bulk: read and written, of global memory."""
  head = """.shared .align 128 .b8 s[256]; .shared .align 8 .b64 bar; mov.u64 %l1, 0x50; setp.ne.u32 %p4, %t, 37;
    @%p4 bra E;
    mbarrier.init.shared.b64 [bar], 1;
"""
  for line, text in (
    (
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%l1], 32, [bar];",
      "read of 32 bytes at 0x50",
    ),
    ("cp.async.bulk.global.shared::cta.bulk_group [%l1], [s], 32;", "write of 32 bytes at 0x50"),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%l1], [s], 32;", "read of 32 bytes at 0x50"),
    ("mov.u64 %l1, 0x40; tensormap.replace.tile.rank.global.b1024.b32 [%l1], 1;", "read of 128 bytes at 0x40"),
  ):
    with pytest.raises(PageFault, match=text) as caught:
      run(head + line + " E:", threads=64)
    assert (caught.value.wave, caught.value.lane) == (1, 5), line


def test_boxes_that_meet_unmapped_memory() -> None:
  from tinyhw.emulator.ptx.memory.tensormap import TensorMap

  m = TensorMap(0x50, (64, 0, 0, 0, 0), (0,) * 4, (16, 0, 0, 0, 0), (1, 0, 0, 0, 0), 1, 2)
  set_ = "add.u64 %l1, %b, 127; and.b64 %l1, %l1, -128;" + "".join(
    f"st.global.u32 [%l1+{4 * k}], {w};" for k, w in enumerate(struct.unpack("<32I", m.encode()))
  )
  for line, text in (
    (
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%l1, {%r1}], [bar];",
      "read of 4 bytes at 0x50",
    ),
    ("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%l1, {%r1}], [s];", "write of 4 bytes at 0x50"),
  ):
    body = f""".shared .align 128 .b8 s[256]; .shared .align 8 .b64 bar; setp.ne.u32 %p4, %t, 37; @%p4 bra E;
    mov.u32 %r1, 0;
      mbarrier.init.shared.b64 [bar], 1; {set_} {line} E:"""
    with pytest.raises(PageFault, match=text) as caught:
      run(body, threads=64, size=4)
    assert (caught.value.wave, caught.value.lane) == (1, 5)
    steps = set_.replace(f"[%l1+{4 * 24}]", "[%l1+96]")
    assert steps == set_
  stepped = TensorMap(0x50, (64, 8, 0, 0, 0), (256, 0, 0, 0), (16, 2, 0, 0, 0), (1, 2, 0, 0, 0), 2, 2)
  set_ = "add.u64 %l1, %b, 127; and.b64 %l1, %l1, -128;" + "".join(
    f"st.global.u32 [%l1+{4 * k}], {w};" for k, w in enumerate(struct.unpack("<32I", stepped.encode()))
  )
  with pytest.raises(Unsupported, match="of a tensor map with steps of elements"):
    run(
      f".shared .align 128 .b8 s[256]; {set_} "
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%l1, {%t, %t}], [s];",
      threads=1,
      size=64,
    )


def test_an_mbarrier_of_another_block() -> None:
  """st.async tells an mbarrier that lies with the value: here they are in two blocks of a cluster."""
  body = """.shared .align 8 .b64 bar; .shared .b32 v; setp.ne.u32 %p1, %t, 0; @%p1 bra E;
    mbarrier.init.shared.b64 [bar], 1;
    mov.u32 %r1, v; mov.u32 %r2, bar; mapa.shared::cluster.u32 %r3, %r1, 0; mapa.shared::cluster.u32 %r4, %r2, 1;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], 5, [%r4]; E: barrier.cluster.arrive;
    barrier.cluster.wait;"""
  with pytest.raises(MachineFault, match="the mbarrier is in another block's shared memory than the value"):
    run(body, blocks=2, cluster=2)


def test_an_mbarrier_counts_no_further() -> None:
  body = """.shared .align 128 .b8 s[256]; .shared .align 8 .b64 bar; setp.ne.u32 %p4, %t, 37; @%p4 bra E;
    mbarrier.init.shared.b64 [bar], 2;
    mbarrier.complete_tx.relaxed.cta.shared.b64 [bar], 1048575;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%b], 16, [bar]; E:"""
  with pytest.raises(
    MachineFault, match="-1,048,591 bytes to come: an mbarrier counts to 1,048,575, at 0x100"
  ) as caught:
    run(body, threads=64)
  assert (caught.value.wave, caught.value.lane) == (1, 5)


def test_descriptors_beyond_shared_memory() -> None:
  body = """.shared .align 128 .b8 s[256]; mov.u32 %r1, s; mov.u64 %l1, 0x0000001000080000;
    mov.u64 %l2, 0x0000001000080100;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %l1, %l2, 1, 1, 1, 0, 0;"""
  with pytest.raises(MachineFault, match="of shared memory, which has 256 bytes"):
    run(body, threads=128)


def test_wmma_with_the_strides_of_its_shape(engine: str) -> None:
  """Without a stride rows (or columns) follow each other: what is stored is what was loaded."""
  words = np.arange(256, dtype=np.float32)
  for order, wanted in (("row", words), ("col", words.reshape(16, 16).T.reshape(-1))):
    registers = "{" + ", ".join(f"%f{k}" for k in range(8)) + "}"
    body = f"""ld.param.u64 %l1, [in]; wmma.load.c.sync.aligned.row.m16n16k16.f32 {registers}, [%l1];
      wmma.store.d.sync.aligned.{order}.m16n16k16.f32 [%b], {registers};"""
    out = run(body, words, params=", .param .u64 in", size=8, dtype=np.float32)
    assert (out.reshape(-1) == wanted).all()


REDUCTIONS = {
  "add": lambda a, b: a + b,
  "min": np.minimum,
  "max": np.maximum,
  "and": np.bitwise_and,
  "or": np.bitwise_or,
  "xor": np.bitwise_xor,
  "inc": lambda a, b: np.where(a >= b, 0, a + 1),
  "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - 1),
}
OF = {
  "add": "u32 s32 u64 f16 bf16",
  "min": "u32 s32 u64 s64 f16 bf16",
  "max": "u32 s32 u64 s64 f16 bf16",
  "and": "b32 b64",
  "or": "b32 b64",
  "xor": "b32 b64",
  "inc": "u32",
  "dec": "u32",
}


@pytest.mark.left("cp.reduce.async.bulk")
@pytest.mark.parametrize("operation", OF)
def test_reductions_in_bulk(operation: str, engine: str) -> None:
  """Every operation and type on 16 bytes of each of two threads, against NumPy."""
  if engine == "both" and operation not in {"add", "inc"} and not THOROUGH:
    pytest.skip("two in the quick run")
  rng = np.random.default_rng(5)
  for t in OF[operation].split():
    kind = {"b32": "u4", "b64": "u8", "u32": "u4", "s32": "i4", "u64": "u8", "s64": "i8", "f16": "f2", "bf16": "u2"}[t]
    a, b = (rng.integers(0, 1 << 62, 16, np.int64).view(kind)[: 32 // np.dtype(kind).itemsize] for _ in range(2))
    if t == "f16":
      a, b = (rng.integers(-50, 50, 16).astype(np.float16) for _ in range(2))
    if t == "bf16":
      a, b = ((rng.integers(-50, 50, 16).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for _ in range(2))
    if operation in {"inc", "dec"}:
      a[:6], b[:6] = (0, 5, 7, 7, 0, 9), (3, 5, 6, 9, 0, 9)
    noftz = ".noftz" if t in {"f16", "bf16"} and operation == "add" else ""
    body = f""".shared .align 128 .b8 s[32]; ld.param.u64 %l1, [x]; ld.param.u64 %l2, [y]; shl.b32 %r1, %t, 4;
    cvt.u64.u32 %l3, %r1;
      add.u64 %l1, %l1, %l3; add.u64 %l2, %l2, %l3; mov.u32 %r2, s; add.u32 %r2, %r2, %r1;
    ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%l2];
      st.shared.v4.u32 [%r2], {{%r4, %r5, %r6, %r7}}; fence.proxy.async;
      cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}{noftz}.{t} [%l1], [%r2], 16;
    ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%l1];"""
    out = run(body + st("%r4", "%r5", "%r6", "%r7"), a, b, params=", .param .u64 x, .param .u64 y", threads=2, size=4)
    x, y = ((v.astype(np.uint32) << 16).view(np.float32) if t == "bf16" else v for v in (a, b))
    wanted = np.asarray(REDUCTIONS[operation](x, y)).astype(x.dtype)
    if t == "bf16":
      wanted = (wanted.view(np.uint32) >> 16).astype(np.uint16)
    assert out.tobytes() == wanted.tobytes(), t


# ---- values


def signed(x: int) -> int:
  return x - (x >> 31 << 32)


def test_decimals_are_constants_of_any_float(engine: str) -> None:
  body = "add.f32 %f1, 0.1, 0.0; mov.b32 %r1, %f1; mov.f16 %h1, 1.5; cvt.u32.u16 %r2, %h1;"
  body += "add.f64 %d1, 0.1, 0.0; mov.b64 {%r3, %r4}, %d1;"
  body = body.replace("mov.f16 %h1, 1.5;", ".reg .f16 %g; add.f16 %g, 1.5, 0.25; mov.b16 %h1, %g;")
  out = run(body + st("%r1", "%r2", "%r3", "%r4"), size=4)
  low, high = struct.unpack("<2I", struct.pack("<d", 0.1))
  assert (out == (struct.unpack("<I", struct.pack("<f", 0.1))[0], 0x3F00, low, high)).all()
  with pytest.raises(DecodeError, match="a floating-point constant for b8"):
    run("st.global.b8 [%o], 1.5;")
  with pytest.raises(Unsupported, match=r"unsupported PTX operand g\[1\]"):
    run("mov.u32 %r1, g[1];", outer=".global .b32 g[2][2];\n")


def rounded(x: Fraction, mode: str) -> int:
  """The bits of a bf16 next to a number that is not 0."""
  sign, x = (0x8000, -x) if x < 0 else (0, x)
  exponent = 0
  while x >= 256:
    x, exponent = x / 2, exponent + 1
  while x < 128:
    x, exponent = x * 2, exponent - 1
  low = int(x)
  rest = x - low
  up = (
    rest > Fraction(1, 2) or rest == Fraction(1, 2) and low & 1
    if mode == "rn"
    else rest > 0 and (mode == ("rm" if sign else "rp"))
  )
  return sign | ((127 + 7 + exponent) << 7) + (low + int(bool(up)) - 128)


def test_integers_of_64_bits_as_bf16() -> None:
  """Rounded once, also where they are near a tie that 53 bits do not tell."""
  values = [
    s * (m << k) + e
    for k in (40, 47, 55)
    for m in (129, 130, 131, 255)
    for e in (-1, 0, 1, 1 << k - 1, (1 << k - 1) + 1, (1 << k - 1) - 1)
    for s in (1, -1)
  ]
  values += [(1 << 63) - 1, -(1 << 63), (1 << 62) + 1, 3, -7, 511, 513]
  for kind, mode in ((k, m) for k in ("s64", "u64") for m in ("rn", "rz", "rm", "rp")):
    given = [v & (1 << 64) - 1 for v in values if -(1 << 63) <= v < 1 << 63]
    body = f"""ld.param.u64 %l1, [in]; mad.wide.u32 %l1, %t, 8, %l1; ld.global.u64 %l2, [%l1];
    cvt.{mode}.bf16.{kind} %h1, %l2;
      cvt.u32.u16 %r1, %h1;"""
    out = run(body + st("%r1"), np.array(given, np.uint64), params=", .param .u64 in", threads=len(given))[
      :, 0
    ].tolist()
    wanted = [rounded(Fraction(v if kind == "u64" else v - (v >> 63 << 64)), mode) for v in given]
    assert out == wanted, (kind, mode)


# ---- textures


@pytest.mark.left("tex")
def test_a_guard_of_all_threads_that_is_false(engine: str) -> None:
  """No texture is looked at: the handle is none."""
  body = "setp.gt.u32 %p1, %t, 99; mov.u64 %l1, 8; mov.f32 %f1, 0f40400000; "
  body += "@%p1 tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%l1, {%t}]; mov.b32 %r1, %f1;"
  assert (run(body + st("%r1"))[:, 0] == 0x40400000).all()


@pytest.mark.left("tex")
def test_levels_of_layers_and_clamps(engine: str) -> None:
  """Linear filtering between levels of a layered texture; coordinates of clamp_ogl end at the array's edge."""
  base = np.arange(2 * 4 * 8, dtype=np.float32).reshape(2, 4, 8) * 10
  level = np.full((2, 2, 4), 1000, np.float32) + np.arange(2, dtype=np.float32)[:, None, None] * 500
  t = Texture(base, "a2d", levels=(level,), mip_filter="linear", normalized=True)
  body = """ld.param.u64 %l1, [t]; mov.u32 %r1, 1; mov.f32 %f5, 0f3F000000; mov.f32 %f6, 0f3F000000;
    mov.f32 %f7, 0f3E800000;
    tex.level.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%l1, {%r1, %f5, %f6, %f6}], %f7; mov.b32 %r2, %f1;"""
  out = run(body + st("%r2"), t, params=", .param .u64 t").view(np.float32)
  assert (out == 0.75 * base[1, 2, 4] + 0.25 * 1500).all()
  line = Texture(np.array([1, 2, 4, 8], np.float32), "1d", filter="linear", address="clamp_ogl", border=(100, 0, 0, 0))
  at = np.array([-5, -0.5, 0, 0.25, 0.5, 2, 3.5, 3.75, 4, 9], np.float32)
  body = """ld.param.u64 %l1, [t]; ld.param.u64 %l2, [at]; mad.wide.u32 %l2, %t, 4, %l2; ld.global.f32 %f5, [%l2];
    tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%l1, {%f5}]; mov.b32 %r2, %f1;"""
  out = run(body + st("%r2"), line, at, params=", .param .u64 t, .param .u64 at", threads=len(at)).view(np.float32)[
    :, 0
  ]
  around = np.array([100, 1, 2, 4, 8, 100], float)
  x = np.clip(at.astype(float), 0, 4) + 0.5
  low = np.floor(x).astype(int)
  assert np.array_equal(
    out, ((1 - (x - low)) * around[low] + (x - low) * around[np.minimum(low + 1, 5)]).astype(np.float32)
  )


@pytest.mark.left("sust")
def test_signed_components_are_clipped(engine: str) -> None:
  surface = tinyhw.Surface(np.zeros(4, np.int8), "1d")
  body = """ld.param.u64 %l1, [t]; sub.u32 %r1, %t, 2; mul.lo.u32 %r1, %r1, 127; sust.p.1d.b32.trap [%l1, {%t}], %r1;"""
  text = f"{HEAD}.visible .entry k (.param .u64 t) {{ {REGISTERS} mov.u32 %t, %tid.x; {body} ret; }}"
  assert tinyhw.launch(text, "k", 1, 4, [surface], "EMU")[0].tolist() == [-128, -127, 0, 127]


# ---- what is printed

LIBC = ctypes.CDLL(None)
PRINTED: list[tuple[str, tuple[Any, ...]]] = [
  ("plain", ()),
  ("100%%", ()),
  ("%d|%i|%u", (-5, 7, 4000000000)),
  ("%x %X %o %#x %#o", (255, 255, 8, 255, 8)),
  ("[%5d|%-5d|%05d|%+d|% d]", (42, 42, 42, 42, 42)),
  ("[%*d|%-*d|%.*d]", (6, 42, 6, 42, 4, 42)),
  ("[%8.3f|%-8.2f|%+.1e|%g]", (3.14159, 2.5, 12345.678, 1e-7)),
  ("[%.*f|%*.*f]", (2, 1.005, 9, 3, 2.0)),
  ("%G %E %F", (1e20, 1.5, 2.5)),
  ("%lld %llu %llx", (("q", -(1 << 40)), ("q", 1 << 63), ("q", 0xABCDEF0123))),
  ("%ld %lu", (("q", -7), ("q", 9))),
  ("%hd %hhu", (5, 200)),
  ("%c%c%c", (65, 98, 33)),
  ("%d %f %d %s %d", (1, 2.5, 3, "text", 4)),
  ("[%10s|%-10s|%.2s]", ("ab", "cd", "efg")),
  ("%s", ("",)),
  ("%zu %jd %td", (("q", 1), ("q", -2), ("q", 3))),
  ("%5%", ()),
  ("%i%%", (50,)),
  ("%.0f %5.1f%%", (2.5, 99.5)),
]


@pytest.mark.parametrize("where", ["local", "global"])
@pytest.mark.parametrize(("form", "given"), PRINTED, ids=[f for f, _ in PRINTED])
def test_printf_prints_what_c_prints(
  form: str, given: tuple[Any, ...], where: str, capsys: pytest.CaptureFixture[str]
) -> None:
  """Arguments lie behind each other, each aligned to its size: in a thread's stack, or in an array."""
  strings = {x: f"str{k}" for k, x in enumerate(dict.fromkeys(x for x in given if isinstance(x, str)))}
  outer = ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
  for text, name in (*strings.items(), (form, "format")):
    outer += f".global .b8 {name}[{len(text) + 1}] = {{{', '.join(map(str, text.encode() + bytes(1)))}}};\n"
  at, stores, native = 0, "", list[Any]()
  for x in given:
    size = 4 if isinstance(x, int) else 8
    at = -(-at // size) * size
    if isinstance(x, str):
      stores += f"mov.u64 %l5, {strings[x]}; st.u64 [%l6+{at}], %l5;"
    elif isinstance(x, float):
      stores += f"mov.f64 %d1, 0d{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}; st.f64 [%l6+{at}], %d1;"
    else:
      register, value = ("%r5", x) if size == 4 else ("%l5", x[1])
      stores += f"mov.b{8 * size} {register}, {value}; st.b{8 * size} [%l6+{at}], {register};"
    native.append(
      ctypes.c_char_p(x.encode())
      if isinstance(x, str)
      else ctypes.c_double(x)
      if isinstance(x, float)
      else ctypes.c_int(x)
      if isinstance(x, int)
      else ctypes.c_int64(x[1])
    )
    at += size
  place = (
    "mov.u64 %l6, %o;"
    if where == "global"
    else ".local .align 8 .b8 buffer[96]; mov.u64 %l6, buffer; cvta.local.u64 %l6, %l6;"
  )
  body = f"""{place} {stores} mov.u64 %l7, format; {{ .param .b64 f; .param .b64 a; .param .b32 r;
    st.param.b64 [f], %l7; st.param.b64 [a], %l6;
    call.uni (r), vprintf, (f, a); }}"""
  run(body, outer=outer, threads=1, size=24)
  buffer = ctypes.create_string_buffer(256)
  LIBC.snprintf(buffer, ctypes.c_size_t(256), form.encode(), *native)
  assert capsys.readouterr().out == buffer.value.decode()


def test_printf_of_threads_in_order_and_its_result(capsys: pytest.CaptureFixture[str]) -> None:
  """Arguments of the call in registers; a null string; the result is how many arguments the format has."""
  outer = """.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .b8 format[9] = {37, 100, 32, 37, 115, 44, 0};
"""
  body = """setp.ge.u32 %p1, %t, 30; mov.u32 %r2, 5; @!%p1 bra E; st.global.u32 [%o], %t; st.global.u64 [%o+8], 0;
    mov.u64 %l1, format;
    { .param .b32 r; st.param.b32 [r], 77; call.uni (r), vprintf, (%l1, %o); ld.param.b32 %r2, [r]; } E:"""
  out = run(body + "st.global.u32 [%o+4], %r2;", outer=outer, size=4)
  assert capsys.readouterr().out == "30 (null),31 (null)," and out[:, 1].tolist() == [5] * 30 + [2, 2]


def test_printf_of_strings_on_stacks(capsys: pytest.CaptureFixture[str]) -> None:
  """Each thread's own, of several warps; a string ends at its zero, and begins anywhere."""
  outer = """.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .b8 format[4] = {37, 115, 59, 0};
"""
  body = """.local .align 8 .b8 mine[16]; .local .align 8 .b8 words[8]; .reg .b64 %m, %w;
    mov.u64 %m, mine; cvta.local.u64 %m, %m; mov.u64 %w, words; cvta.local.u64 %w, %w;
    add.u32 %r2, %t, 48; st.u8 [%m+3], %r2; add.u32 %r2, %r2, 1; st.u8 [%m+4], %r2; st.u8 [%m+5], 0;
    add.u64 %l2, %m, 3; st.u64 [%w], %l2; mov.u64 %l1, format;
    and.b32 %r2, %t, 3; setp.ne.u32 %p1, %r2, 2; @%p1 bra E;
    { .param .b32 r; call.uni (r), vprintf, (%l1, %w); } E:"""
  run(body, outer=outer, threads=64)
  assert capsys.readouterr().out == "".join(f"{chr(48 + t)}{chr(49 + t)};" for t in range(2, 64, 4))


def test_an_assertion_that_fails() -> None:
  """What device code's assert() calls: the text, the file and line; the thread is the first."""
  outer = """.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d,
  .param .b64 e) .noreturn;
.global .b8 text[6] = {120, 32, 62, 32, 48, 0};
.global .b8 file[5] = {97, 46, 99, 117, 0};
"""
  body = """setp.lt.u32 %p1, %t, 37; @%p1 bra E; mov.u64 %l1, text; mov.u64 %l2, file; mov.u64 %l3, 0; mov.u64 %l4, 1;
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %l1;
    st.param.b64 [b], %l2;
      st.param.b32 [c], 4242; st.param.b64 [d], %l3; st.param.b64 [e], %l4; call.uni __assertfail, (a, b, c, d, e);
    } E:"""
  with pytest.raises(MachineFault, match=r"assertion failed: x > 0 \(a\.cu:4242\)") as caught:
    run(body, outer=outer, threads=64)
  assert (caught.value.wave, caught.value.lane) == (1, 5)


TAKEN: dict[str, Callable[[int, int], int]] = {
  "f4e": lambda n, k: n + k,
  "b4e": lambda n, k: (n - k) % 8,
  "rc8": lambda n, k: n,
  "ecl": lambda n, k: max(n, k),
  "ecr": lambda n, k: min(n, k),
  "rc16": lambda n, k: n % 2 * 2 + k % 2,
}


@pytest.mark.parametrize("mode", TAKEN)
def test_which_bytes_prmt_takes(mode: str, engine: str) -> None:
  """Each mode by its rule, for each selector."""
  body = "".join(f"prmt.b32.{mode} %r{n + 1}, 0x43424140, 0x47464544, {n};" for n in range(4))
  out = run(body + st("%r1", "%r2", "%r3", "%r4"), size=4)[0].astype(np.uint32)
  assert [*out.tobytes()] == [0x40 + TAKEN[mode](n, k) for n in range(4) for k in range(4)]


def test_prmt_takes_bytes_or_their_signs(engine: str) -> None:
  """Of each byte of two words; with the selector's high bit, its sign eight times."""
  words = (0x7F80FF00, 0x81016E92)
  selectors = [n | (n + 3 & 15) << 4 | (n + 7 & 15) << 8 | (15 - n) << 12 for n in range(16)]
  body = "".join(f"prmt.b32 %r{n + 1}, {words[0]}, {words[1]}, {x};" for n, x in enumerate(selectors))
  given = struct.pack("<2I", *words)
  out = run(body + st(*(f"%r{n + 1}" for n in range(16))), size=16)[0].astype(np.uint32)
  for found, x in zip(out.tolist(), selectors):
    taken = [(given[x >> 4 * k & 7], x >> 4 * k & 8) for k in range(4)]
    assert [*found.to_bytes(4, "little")] == [(0xFF if b & 0x80 else 0) if sign else b for b, sign in taken], hex(x)


def test_products_of_video_that_pass_every_end(engine: str) -> None:
  """vmad of the greatest factors: what saturates stays at the end, what does not keeps its low bits."""
  top = 0xFFFFFFFF
  cases = [(a, b, c) for a in (top, 0x80000000, 3) for b in (top, 0x80000000) for c in (top, 0, 0x7FFFFFFF)]
  forms = {"vmad.s32.u32.u32.sat %r1, -{}, {}, {};": (lambda a, b, c: signed(c) - a * b, 1),
           "vmad.s32.u32.u32.sat %r1, {}, {}, -{};": (lambda a, b, c: a * b - signed(c), 1),
           "vmad.u32.u32.u32.sat %r1, {}, {}, {};": (lambda a, b, c: a * b + c, 0),
           "vmad.s32.s32.s32.sat %r1, {}, {}, {};": (lambda a, b, c: signed(a) * signed(b) + signed(c), 1),
           "vmad.u32.u32.u32 %r1, {}, {}, {};": (lambda a, b, c: a * b + c, None)}
  for text, (model, kind) in forms.items():
    lines = [text.format(*(f"%r{k}" for k in (4, 5, 6)))] * len(cases)
    body = "".join(f"mov.u32 %r4, {a}; mov.u32 %r5, {b}; mov.u32 %r6, {c}; {line} st.global.u32 [%o+{4 * k}], %r1;"
                   for k, (line, (a, b, c)) in enumerate(zip(lines, cases)))
    out = run(body, threads=1, size=len(cases))[0].tolist()
    low, high = ((0, top), (-(1 << 31), (1 << 31) - 1))[kind or 0]
    wanted = [model(*x) if kind is None else min(max(model(*x), low), high) for x in cases]
    assert out == [x & top for x in wanted], text
