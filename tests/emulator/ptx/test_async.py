"""mbarriers, bulk copies and clusters of PTX against models of their own, and what they refuse."""
from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw
from tests.emulator.compiled import compiled_too
from tests.strength import THOROUGH, examples
from tinyhw.core.errors import Deadlock, InvalidArgument, MachineFault, PageFault

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"


def kernel(body: str, declarations: str = "", params: str = ".param .u64 out", directives: str = "") -> str:
  """A kernel whose threads have their index in %t, their block's in %c and the address of `out` in %o."""
  return f"""{HEAD}.visible .entry k ({params}) {directives} {{
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>, %t, %c; .reg .b64 %l<20>, %o;
  {declarations}
  ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; setp.eq.u32 %p1, %t, 0;
  {body}
  ret;
}}"""


@pytest.fixture(autouse=True)
def engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
  """Both engines, for each test or, in the quick run, for some."""
  if THOROUGH or not zlib.crc32(request.node.name.encode()) % 3: compiled_too(monkeypatch)


def run(text: str, *args: Any, grid: Any = 1, threads: Any = 32, shared: int = 0) -> list[Any]:
  return list(tinyhw.launch(text, "k", grid, threads, list(args), "EMU", shared))


# ---- mbarriers

class Model:
  """An mbarrier as section 9.7.13.15 says it."""

  def __init__(self, count: int) -> None: self.expected = self.pending = count; self.tx = self.phase = 0

  def settle(self) -> None:
    if not self.pending and not self.tx: self.phase, self.pending = self.phase + 1, self.expected


KINDS = ["arrive", "count", "expect", "tx", "complete", "drop", "test", "parity"]
OPERATIONS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 4)), max_size=25)


@given(count=st.integers(1, 6), operations=OPERATIONS)
@settings(max_examples=examples(40), deadline=None)
def test_an_mbarrier_is_as_the_manual_says(count: int, operations: list[tuple[str, int]]) -> None:
  """One thread's operations: the state's pending count, and whether phases have ended."""
  m, lines, wanted = Model(count), [f"mbarrier.init.shared.b64 [bar], {count};"], list[int]()
  states: list[int] = []

  def note(register: str, value: int) -> None:
    lines.append(f"st.global.u32 [%o+{4 * len(wanted)}], {register};")
    wanted.append(value)
  for kind, n in operations:
    many = 1 if kind in {"arrive", "tx"} else n
    if kind in {"arrive", "count", "tx", "drop"}:
      if many > m.pending or kind == "drop" and many >= m.expected: continue
      before = m.pending
      states.append(m.phase)
      if kind == "tx": m.tx += n
      if kind == "drop": m.expected -= many
      m.pending -= many
      m.settle()
      text = {"arrive": "arrive.shared.b64 %l1, [bar]", "count": f"arrive.release.cta.shared::cta.b64 %l1, [bar], {n}",
              "tx": f"arrive.expect_tx.shared.b64 %l1, [bar], {n}", "drop": f"arrive_drop.shared.b64 %l1, [bar], {n}"}
      lines.append(f"mbarrier.{text[kind]}; mbarrier.pending_count.b64 %r1, %l1;")
      note("%r1", before)
    elif kind == "expect":
      m.tx += n
      lines.append(f"mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], {n};")
      m.settle()
    elif kind == "complete":
      m.tx -= n
      m.settle()
      lines.append(f"mbarrier.complete_tx.shared::cta.b64 [bar], {n};")
    elif kind == "parity":
      lines.append(f"mbarrier.test_wait.parity.shared.b64 %p2, [bar], {n & 1}; selp.u32 %r1, 1, 0, %p2;")
      note("%r1", int(m.phase & 1 != n & 1))
    elif states:
      lines.append("mbarrier.try_wait.acquire.cta.shared.b64 %p2, [bar], %l1; selp.u32 %r1, 1, 0, %p2;")
      note("%r1", int(m.phase != states[-1])) if m.phase - states[-1] < 4 else lines.pop()
  out, = run(kernel("\n".join(lines), ".shared .b64 bar;"), np.zeros(len(wanted) + 1, np.uint32), threads=1)
  assert out[:-1].tolist() == wanted


def test_threads_wait_for_each_other_in_phases() -> None:
  """A ring of two stages between a producer's warp and a consumer's, as compilers write pipelines."""
  text = kernel("""
    @%p1 mbarrier.init.shared.b64 [full], 32; @%p1 mbarrier.init.shared.b64 [empty], 32; bar.sync 0;
    setp.ge.u32 %p2, %t, 32; and.b32 %r1, %t, 31; mov.u32 %r2, buf; mad.lo.u32 %r2, %r1, 4, %r2; mov.u32 %r3, 0;
    mov.u32 %r9, 0;
    @%p2 bra CONSUMER;
P:  and.b32 %r4, %r3, 1; xor.b32 %r4, %r4, 1;
PW: mbarrier.try_wait.parity.shared.b64 %p3, [empty], %r4; @!%p3 bra PW;
    mad.lo.u32 %r5, %r3, 100, %r1; st.shared.u32 [%r2], %r5; mbarrier.arrive.shared.b64 _, [full];
    add.u32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 7; @%p4 bra P; bra DONE;
CONSUMER: and.b32 %r4, %r3, 1;
CW: mbarrier.try_wait.parity.shared.b64 %p3, [full], %r4; @!%p3 bra CW;
    ld.shared.u32 %r5, [%r2]; add.u32 %r9, %r9, %r5; mbarrier.arrive.shared.b64 _, [empty];
    add.u32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 7; @%p4 bra CONSUMER;
    mad.wide.u32 %l1, %r1, 4, %o; st.global.u32 [%l1], %r9;
DONE:""", ".shared .b64 full, empty; .shared .b32 buf[32];")
  out, = run(text, np.zeros(32, np.uint32), threads=64)
  assert (out == 2100 + 7 * np.arange(32)).all()


def test_asynchronous_copies_arrive() -> None:
  text = kernel("""@%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0;
    mul.lo.u32 %r1, %t, 4; cvt.u64.u32 %l1, %r1; ld.param.u64 %l2, [src]; add.u64 %l2, %l2, %l1; mov.u32 %r2, buf;
    add.u32 %r2, %r2, %r1;
    setp.gt.u32 %p2, %t, 9;
    cp.async.ca.shared.global [%r2], [%l2], 4, %p2; cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
    cp.async.mbarrier.arrive.shared.b64 [bar]; mbarrier.arrive.shared.b64 %l3, [bar];
W:  mbarrier.test_wait.shared.b64 %p3, [bar], %l3; @!%p3 bra W;
    ld.shared.u32 %r3, [%r2]; add.u64 %l4, %o, %l1; st.global.u32 [%l4], %r3;""",
                ".shared .b64 bar; .shared .b32 buf[32];", ".param .u64 out, .param .u64 src")
  a = np.arange(5, 37, dtype=np.uint32)
  assert (run(text, np.zeros(32, np.uint32), a)[0] == np.where(np.arange(32) > 9, 0, a)).all()


@pytest.mark.parametrize(("body", "message"), [
  ("mbarrier.arrive.shared.b64 _, [bar];", "no mbarrier has been initialized"),
  ("mbarrier.init.shared.b64 [bar], 0;", "0 arrivals"),
  ("mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.shared.b64 _, [bar], 2;",
   "2 arrive at an mbarrier that waits for 1"),
  ("mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.noComplete.shared.b64 _, [bar], 1;", "noComplete completes"),
  ("mbarrier.init.shared.b64 [bar], 1; mbarrier.inval.shared.b64 [bar]; mbarrier.expect_tx.shared.b64 [bar], 4;",
   "no mbarrier"),
  ("mbarrier.init.shared.b64 [bar+4], 1;", "misaligned mbarrier"),
  ("mbarrier.init.b64 [%o], 1;", "outside of shared memory"),
  ("mbarrier.init.shared.b64 [bar], 1; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
   "[buf], [%o], 24, [bar];", "multiples of 16"),
  ("mbarrier.init.shared.b64 [bar], 1; mov.u64 %l1, 4096; "
   "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [%l1], 32, [bar];", "0x1000"),
  ("cp.async.bulk.global.shared::cta.bulk_group [%o], [buf], 4096;", "read of 4,096 bytes"),
  ("mapa.shared::cluster.u32 %r1, %r1, 1;", "a rank of a cluster that has 1"),
  ("barrier.cluster.wait;", "without an arrival"),
  ("barrier.cluster.arrive; barrier.cluster.arrive;", "twice"),
])
def test_what_is_no_use_is_a_fault(body: str, message: str) -> None:
  with pytest.raises(MachineFault, match=message) as caught:
    run(kernel(f"@!%p1 bra E; {body}\nE:", ".shared .align 16 .b8 buf[64]; .shared .b64 bar;"), np.zeros(64, np.uint32))
  assert caught.value.line and caught.value.source and isinstance(caught.value, PageFault) == (message == "0x1000")


def test_a_wait_that_nobody_ends() -> None:
  with pytest.raises(Deadlock, match="32 waves|a wave waits|waves wait"):
    run(kernel("""@%p1 mbarrier.init.shared.b64 [bar], 33; bar.sync 0; mbarrier.arrive.shared.b64 %l1, [bar];
W:  mbarrier.try_wait.shared.b64 %p2, [bar], %l1; @!%p2 bra W;""", ".shared .b64 bar;"), np.zeros(1, np.uint32))


# ---- bulk copies

def test_bulk_copies_there_and_back() -> None:
  text = kernel("""@!%p1 bra W; mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [%o], 512, [bar];
W:  bar.sync 0;
X:  mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra X;
    mov.u32 %r1, buf; mad.lo.u32 %r1, %t, 4, %r1; ld.shared.u32 %r2, [%r1]; mul.lo.u32 %r2, %r2, 3;
    st.shared.u32 [%r1], %r2;
    bar.sync 0; @!%p1 bra E; cp.async.bulk.global.shared::cta.bulk_group [%o], [buf], 512; cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
E:""", ".shared .align 16 .b8 buf[512]; .shared .b64 bar;")
  assert (run(text, np.arange(128, dtype=np.uint32), threads=128)[0] == 3 * np.arange(128)).all()


REDUCTIONS = [("add", "f32", np.add), ("add", "u64", np.add), ("min", "s32", np.minimum), ("max", "u32", np.maximum),
              ("xor", "b64", np.bitwise_xor), ("and", "b32", np.bitwise_and), ("add.noftz", "f16", np.add),
              ("max", "f16", np.fmax), ("inc", "u32", lambda a, b: np.where(a >= b, 0, a + 1)),
              ("dec", "u32", lambda a, b: np.where((a == 0) | (a > b), b, a - 1))]


@pytest.mark.parametrize(("operation", "t", "model"), REDUCTIONS, ids=[f"{o}-{t}" for o, t, _ in REDUCTIONS])
def test_bulk_reductions(operation: str, t: str, model: Any) -> None:
  dtype = np.dtype({"b": "u", "u": "u", "s": "i", "f": "f"}[t[0]] + str(int(t[1:]) // 8))
  rng = np.random.default_rng(3)
  a, b = (rng.integers(0, 9, 256 // dtype.itemsize).astype(dtype) for _ in range(2))
  text = kernel(f"""ld.param.u64 %l1, [src]; mul.wide.u32 %l2, %t, 8; add.u64 %l3, %l1, %l2; ld.global.u64 %l4, [%l3];
    mov.u32 %r1, buf; mad.lo.u32 %r1, %t, 8, %r1; st.shared.u64 [%r1], %l4; bar.sync 0; @!%p1 bra E;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}.{t} [%o], [buf], 256;
E:""", ".shared .align 16 .b8 buf[256];", ".param .u64 out, .param .u64 src")
  assert (run(text, a, b)[0] == model(a, b).astype(dtype)).all()


# ---- clusters

def test_blocks_of_a_cluster_see_each_other() -> None:
  """Each reads its neighbour's shared memory, adds to the first one's, and knows where it is."""
  text = kernel("""mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x;
    mad.lo.u32 %r5, %r2, %r3, %c;
    @%p1 st.shared.u32 [v], %r5; @%p1 st.shared.u32 [sum], 0;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    mov.u32 %r6, v; add.u32 %r7, %r1, 1; rem.u32 %r7, %r7, 6; mapa.shared::cluster.u32 %r8, %r6, %r7;
    ld.shared::cluster.u32 %r9, [%r8]; getctarank.shared::cluster.u32 %r10, %r8; mad.lo.u32 %r9, %r10, 1000, %r9;
    mov.u64 %l1, sum; cvta.shared.u64 %l1, %l1; mapa.u64 %l2, %l1, 0; atom.add.u32 %r11, [%l2], 1;
    barrier.cluster.arrive; barrier.cluster.wait;
    mad.wide.u32 %l3, %r5, 8, %o; @%p1 st.global.u32 [%l3], %r9; setp.eq.and.u32 %p2, %r1, 0, %p1;
    ld.shared.u32 %r12, [sum];
    @%p1 st.global.u32 [%l3+4], %r12;""", ".shared .b32 v, sum;", directives=".reqnctapercluster 3, 2")
  out = run(text, np.zeros((4, 6, 2), np.uint32), grid=(6, 4), threads=48)[0]
  for y in range(4):
    for x in range(6):
      rank = (x % 3 + y % 2 * 3 + 1) % 6
      neighbour = (y // 2 * 2 + rank // 3) * 6 + x // 3 * 3 + rank % 3
      assert out[y, x].tolist() == [rank * 1000 + neighbour, 48 * 6 if (x % 3, y % 2) == (0, 0) else 0]


def test_a_multicast_reaches_its_blocks() -> None:
  text = kernel("""mov.u32 %r1, %cluster_ctarank; ld.param.u64 %l1, [src]; mov.u32 %r4, buf; mov.u32 %r5, %r4;
    @%p1 mbarrier.init.shared.b64 [bar], 1; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
    @%p1 st.shared.u32 [buf], 7; barrier.cluster.arrive; barrier.cluster.wait;
    setp.eq.and.u32 %p2, %r1, 2, %p1; mov.b16 %h1, 11; @!%p2 bra W;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [buf], [%l1], 16, [bar], %h1;
W:  setp.eq.u32 %p4, %r1, 2; @%p4 bra R;
X:  mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra X;
R:  ld.shared.u32 %r2, [buf]; mad.wide.u32 %l2, %c, 4, %o; @%p1 st.global.u32 [%l2], %r2;
    barrier.cluster.arrive; barrier.cluster.wait;""", ".shared .align 16 .b32 buf[4]; .shared .b64 bar;",
                ".param .u64 out, .param .u64 src", ".reqnctapercluster 4")
  assert run(text, np.zeros(4, np.uint32), np.full(4, 99, np.uint32), grid=4)[0].tolist() == [99, 99, 7, 99]


def test_stores_and_reductions_of_another_block() -> None:
  text = kernel("""mov.u32 %r1, %cluster_ctarank; @%p1 mbarrier.init.shared.b64 [bar], 1;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16; @%p1 st.shared.v2.u32 [buf+8], {5, 6};
    barrier.cluster.arrive; barrier.cluster.wait; @!%p1 bra X;
    xor.b32 %r2, %r1, 1; mov.u32 %r3, buf; mapa.shared::cluster.u32 %r4, %r3, %r2; mov.u32 %r5, bar;
    mapa.shared::cluster.u32 %r6, %r5, %r2; add.u32 %r7, %r1, 40;
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r4], {%r7, %r1}, [%r6];
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4+8], %r7, [%r6];
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.u32 [%r4+12], %r7, [%r6];
X:  mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra X;
    mul.wide.u32 %l1, %c, 16; add.u64 %l1, %l1, %o; ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [buf];
    @%p1 st.global.v4.u32 [%l1], {%r8, %r9, %r10, %r11}; barrier.cluster.arrive; barrier.cluster.wait;""",
                ".shared .align 16 .b32 buf[4]; .shared .b64 bar;", directives=".reqnctapercluster 2")
  out = run(text, np.zeros(8, np.uint32), grid=2)[0]
  assert out.tolist() == [41, 1, 46, 41, 40, 0, 45, 40]


def test_a_launch_asks_for_a_cluster() -> None:
  text = kernel("""mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %clusterid.x; mad.lo.u32 %r3, %r2, 10, %r1;
    mad.wide.u32 %l1, %c, 4, %o; @%p1 st.global.u32 [%l1], %r3; setp.eq.u32 %p2, %c, 7; @%p2 trap;""")
  nine = np.zeros(9, np.uint32)
  with pytest.raises(MachineFault) as caught: tinyhw.launch(text, "k", 9, 32, [nine], "EMU", cluster=3)
  assert caught.value.workgroup == (7, 0, 0)
  place = """mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z; mad.lo.u32 %r2, %r3, 10, %r2;
    mad.lo.u32 %r1, %r2, 10, %r1; setp.eq.u32 %p2, %r1, AT; @%p2 trap;"""
  for x, y, z in ((3, 0, 0), (1, 5, 0), (2, 3, 1), (0, 4, 2), (3, 5, 2)):
    for cluster in ((2, 3, 1), (1, 2, 3), (4, 1, 1)):
      body = place.replace("AT", str(x + 10 * y + 100 * z))
      with pytest.raises(MachineFault) as caught: tinyhw.launch(kernel(body), "k", (4, 6, 3), 32, [nine], "EMU",
                                                                cluster=cluster)
      assert caught.value.workgroup == (x, y, z), cluster
  out = tinyhw.launch(text.replace("trap", "ret"), "k", 9, 32, [nine], "EMU", cluster=3)[0]
  assert out.tolist() == [0, 1, 2, 10, 11, 12, 20, 21, 22]
  with pytest.raises(InvalidArgument, match="divide the grid"):
    tinyhw.launch(text, "k", 8, 32, [nine], "EMU", cluster=(3, 1))


def test_clusters_that_do_not_fit() -> None:
  text = kernel("", directives=".reqnctapercluster 2")
  with pytest.raises(InvalidArgument, match="divide the grid"): run(text, np.zeros(1, np.uint32), grid=3)
  far = kernel("""mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p2, %r1, 1; @%p2 exit; mov.u32 %r2, 0;
    mapa.shared::cluster.u32 %r3, %r2, 1;
    nanosleep.u32 9; ld.shared::cluster.u32 %r4, [%r3];""", ".shared .b32 v[4];", directives=".reqnctapercluster 2")
  with pytest.raises(MachineFault, match="has ended"): run(far, np.zeros(1, np.uint32), grid=2)
  never = kernel("""mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p2, %r1, 1; @%p2 bra W; barrier.cluster.arrive;
    barrier.cluster.wait; ret;
W:  bar.sync 1, 64;""", directives=".reqnctapercluster 2")
  with pytest.raises(MachineFault, match="never completes"): run(never, np.zeros(1, np.uint32), grid=2)
