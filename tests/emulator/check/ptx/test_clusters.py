"""Kernels of clusters under the checks: watched code lets none pass in which the reference finds something, and tells
the same as that.

Blocks see each other's shared memory, and are ordered by barriers of the cluster, mbarriers of other blocks, copies in
bulk to them, multicasts and stores that tell an mbarrier; some of what orders them is left out.
"""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import tinyhw
from tests.emulator.check.ptx.test_random import BEGIN, REGISTERS, SUM, WARPS, Draw
from tests.emulator.check.ptx.test_watched import passed, told
from tests.emulator.ptx.test_ptx import kernel
from tests.strength import THOROUGH, seeds

MORE = REGISTERS + """.shared .align 8 .b64 far[2]; .shared .align 8 .b64 from_all; .reg .b32 %rank, %away, %mine, %its;
  .reg .b64 %any, %there; .reg .b16 %both; .reg .pred %leads;"""
# out of each block lies behind that of the block before; %its is the place of the next block's thread
HEAD = """mov.u32 %v3, %ctaid.x; mul.wide.u32 %m, %v3, 1024; add.u64 %b, %b, %m; add.u64 %o, %o, %m;"""
TEAM = """mov.u32 %rank, %cluster_ctarank; add.u32 %away, %rank, 1; rem.u32 %away, %away, BLOCKS;
  mapa.shared::cluster.u32 %its, %own, %away; cvt.u64.u32 %any, %own; cvta.shared.u64 %any, %any;
  mapa.u64 %there, %any, %away; mov.u16 %both, 3; setp.eq.u32 %leads, %rank, 0; and.pred %leads, %leads, %first;
  @%first mbarrier.init.shared.b64 [far], THREADS; @%first mbarrier.init.shared.b64 [far+8], 1;
  @%first mbarrier.init.shared.b64 [from_all], 1;"""
MEET = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"


class Team(Draw):
  """A kernel of a cluster, piece by piece."""

  def __init__(self, rng: random.Random, faults: float, blocks: int) -> None:
    super().__init__(rng, faults)
    self.blocks = blocks
    self.phases = [0] * 6

  def far(self) -> str:
    """An access to the next block's memory by all threads."""
    at = self.rng.choice(["", "+1024", "+2048"])
    return self.rng.choice([
      f"ld.shared::cluster.u32 %v0, [%its{at}];", f"st.shared::cluster.u32 [%its{at}], %v1;",
      f"ld.u32 %v0, [%there{at}];", f"st.u32 [%there{at}], %v0;", f"ld.shared::cluster.u32 %v1, [%own{at}];",
      f"ld.u32 %v1, [%any{at}];", f"@%even ld.shared::cluster.u32 %v0, [%its{at}];",
      "mapa.shared::cluster.u32 %mine, %s, 0; ld.shared::cluster.u32 %v0, [%mine+4096];",
      "mapa.shared::cluster.u32 %mine, %s, 1; st.shared::cluster.u32 [%mine+4096], 5;",
      "mapa.shared::cluster.u32 %mine, %s, 0; red.relaxed.cluster.shared::cluster.add.u32 [%mine+4100], 1;"])

  def meet(self) -> str: return self.order(MEET)

  def split(self) -> str:
    """Between an arrival and its wait others may be behind it."""
    how = self.rng.choice(["release", "release", "relaxed"])
    return f"barrier.cluster.arrive.{how}.aligned; {self.touch()} {self.far()} barrier.cluster.wait.acquire.aligned;"

  def waits(self, k: int, at: str) -> str:
    """A wait for the next phase of an mbarrier."""
    parity, wait = self.phases[k] & 1, self.label()
    self.phases[k] += 1
    return f"{wait}: mbarrier.try_wait.parity.shared.b64 %over, [{at}], {parity}; @!%over bra {wait};"

  def arrivals(self) -> str:
    """All threads arrive at the next block's mbarrier, and wait for their own one."""
    test = self.waits(3, "far")
    return f"""mov.u32 %mine, far; mapa.shared::cluster.u32 %mine, %mine, %away;
      mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%mine]; {self.order(test)}"""

  def copied(self) -> str:
    """A block copies some of its memory to the next one."""
    test = self.waits(4, "far+8")
    return f"""{self.order("fence.proxy.async;")} {self.order(MEET)}
      @%first mbarrier.arrive.expect_tx.shared.b64 %m, [far+8], 256; {MEET}
      mov.u32 %mine, far; mapa.shared::cluster.u32 %mine, %mine, %away; mapa.shared::cluster.u32 %v4, %s, %away;
      @%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
        [%v4+{self.rng.choice([1024, 2048])}], [%s+{self.rng.choice([0, 2048])}], 256, [%mine+8]; and.b32 %v4, %t, 31;
      {self.order(test)}"""

  def multicast(self) -> str:
    """The first block has both get bytes of global memory."""
    test = self.waits(5, "from_all")
    give = "setp.lt.u32 %over, %rank, 2; and.pred %over, %over, %first;"
    if self.blocks > 2: return self.meet()
    return f"""{give} @%over mbarrier.arrive.expect_tx.shared.b64 %m, [from_all], 256; {MEET}
      @%leads cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [%s+{self.rng.choice([1024, 2048])}], [%f], 256, [from_all], %both; {self.order(test)}"""

  def sent(self) -> str:
    """A thread stores to the next block, and tells its mbarrier; or adds there."""
    test = self.waits(4, "far+8")
    how = self.rng.choice(["st.async.weak.shared::cluster.mbarrier::complete_tx::bytes",
                           "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add"])
    return f"""@%first mbarrier.arrive.expect_tx.shared.b64 %m, [far+8], 4; {self.order("fence.proxy.async;")} {MEET}
      mov.u32 %mine, far; mapa.shared::cluster.u32 %mine, %mine, %away;
      @%first {how}.u32 [%its+{self.rng.choice([1024, 2048])}], %v2, [%mine+8]; {self.order(test)}"""

  def reduced(self) -> str:
    """A block adds its memory to global memory."""
    return f"""{self.order("fence.proxy.async;")} {self.order("bar.sync 0;")}
      @%first cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%b], [%s+{self.rng.choice([0, 1024])}], 512;
      @%first cp.async.bulk.commit_group; {self.order("@%first cp.async.bulk.wait_group 0;")}"""

  def loop(self) -> str:
    head, before = self.label(), [*self.phases]
    body = " ".join(self.piece(0) for _ in range(self.rng.randrange(2, 4)))
    if any((a - b) & 1 for a, b in zip(self.phases, before)): return body
    return (f"mov.u32 %round, 0; {head}: {body} add.u32 %round, %round, 1; setp.lt.u32 %over, %round, 3; "
            f"@%over bra {head};")

  def kinds(self) -> list[Callable[[], str]]:
    return [*super().kinds(), self.far, self.far, self.far, self.meet, self.meet, self.meet, self.split, self.arrivals,
            self.copied, self.multicast, self.sent, self.reduced]

  def text(self) -> str:
    pieces = " ".join(self.piece() for _ in range(self.rng.randrange(3, 9)))
    return cluster(f"{self.order('fence.proxy.async;')} {self.order(MEET)} {pieces} {MEET}", self.blocks)


def cluster(body: str, blocks: int, warps: int = WARPS) -> str:
  """A kernel whose blocks are in clusters of so many."""
  team = TEAM.replace("BLOCKS", str(blocks)).replace("THREADS", str(32 * warps))
  begin = BEGIN.replace(str(32 * WARPS), str(32 * warps))
  source = kernel(f"{HEAD} {begin} {team} {body}", MORE, ".param .u64 out, .param .u64 from")
  source = source.replace(".param .u64 from) {", f".param .u64 from) .reqnctapercluster {blocks} {{", 1)
  return source.replace(".visible .entry", SUM + ".visible .entry", 1)


def arrays() -> list[np.ndarray[tuple[int, ...], np.dtype[np.uint32]]]:
  return [np.zeros(4096, np.uint32), np.arange(4096, dtype=np.uint32)]


@pytest.mark.parametrize("seed", seeds([7]))
def test_random_clusters_are_told_the_same(seed: int, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  rng = random.Random(seed)
  blocks = rng.choice([2, 2, 3])
  source = Team(rng, rng.choice([0.0, 0.05, 0.3]), blocks).text()
  reference, found = told(source, "k", 2 * blocks, 32 * WARPS, arrays(), 0, monkeypatch)
  assert reference == found, source


STORED = "st.shared.u32 [%own], %rank;"
ENDED = f"{MEET} st.global.u32 [%o], %v0; {MEET}"
CASES = [  # what is done, or left out; whether that is found
  ("another block's memory", f"{MEET} {STORED} {MEET} ld.shared::cluster.u32 %v0, [%its]; {ENDED}", False),
  ("no barrier before a read", f"{MEET} {STORED} ld.shared::cluster.u32 %v0, [%its]; {ENDED}", True),
  ("by generic addresses", f"{MEET} {STORED} {MEET} ld.u32 %v0, [%there]; {ENDED}", False),
  ("no barrier behind a read", f"{MEET} {STORED} {MEET} ld.u32 %v0, [%there]; st.shared.u32 [%own], 9; {ENDED}", True),
  ("a barrier of the block alone", f"{MEET} {STORED} bar.sync 0; ld.u32 %v0, [%there]; {ENDED}", True),
  ("an arrival that says nothing",
   f"{MEET} {STORED} {MEET.replace('release', 'relaxed')} ld.u32 %v0, [%there]; {ENDED}", True),
  ("arrivals and waits apart", f"""{MEET} {STORED} barrier.cluster.arrive.aligned; ld.shared.u32 %v1, [%own];
     barrier.cluster.wait.aligned; ld.u32 %v0, [%there]; {ENDED}""", False),
  ("a store between them", f"""{MEET} barrier.cluster.arrive.aligned; {STORED} barrier.cluster.wait.aligned;
     ld.u32 %v0, [%there]; {ENDED}""", True),
  ("an mbarrier of the next block's", f"""{MEET} {STORED} mov.u32 %mine, far;
     mapa.shared::cluster.u32 %mine, %mine, %away;
     mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%mine];
     L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %over, [far], 0; @!%over bra L;
     mapa.shared::cluster.u32 %its, %own, %away; ld.shared::cluster.u32 %v0, [%its]; {ENDED}""", False),
  ("no barrier behind mbarrier.init", f"""mov.u32 %mine, far; mapa.shared::cluster.u32 %mine, %mine, %away;
     mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%mine]; {ENDED}""", True)]


@pytest.mark.parametrize(("what", "body", "found"), CASES if THOROUGH else CASES[:2], ids=[
  c[0] for c in (CASES if THOROUGH else CASES[:2])])
def test_what_is_left_out(what: str, body: str, found: bool, passed: Counter[bool],
                          monkeypatch: pytest.MonkeyPatch) -> None:
  """Right ones run in compiled code alone."""
  reference, watched = told(cluster(body, 2, 2), "k", 4, 64, arrays(), 0, monkeypatch)
  assert reference == watched and bool(reference) == found
  assert passed[not found] and not passed[found]


@pytest.mark.parametrize("left_out", ["", MEET])
def test_clusters_of_many_warps(left_out: str, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  """Nine blocks of eight warps: more than a block can have."""
  body = f"{MEET} {STORED} {MEET} ld.shared::cluster.u32 %v0, [%its]; {ENDED}"
  if left_out: body = body.replace(f"{STORED} {MEET}", STORED, 1)
  reference, watched = told(cluster(body, 9, 8), "k", 9, 256, arrays(), 0, monkeypatch)
  assert reference == watched and bool(reference) == bool(left_out)
  assert passed == {not left_out: 1}


INITS = """@%first mbarrier.init.shared.b64 [own], 1; st.shared.u32 [%own], %rank;"""
USES = """mov.u32 %mine, own; mapa.shared::cluster.u32 %mine, %mine, %away;
  @%first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%mine];"""


@pytest.mark.parametrize(("fence", "use", "found"), [
  ("fence.mbarrier_init.release.cluster;", USES, False), ("fence.acq_rel.cluster;", USES, False), ("", USES, True),
  ("fence.proxy.async;", USES, True), ("fence.acq_rel.cluster;", "ld.shared::cluster.u32 %v0, [%its];", False),
  ("membar.gl;", "ld.shared::cluster.u32 %v0, [%its];", False),
  ("fence.mbarrier_init.release.cluster;", "ld.shared::cluster.u32 %v0, [%its];", True)])
def test_a_fence_speaks_for_a_relaxed_arrival(fence: str, use: str, found: bool,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
  """As the manual initializes mbarriers, and CUTLASS: the arrival alone says nothing."""
  body = f"""{INITS} {fence} barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;
    {use} {MEET} st.global.u32 [%o], %v0;"""
  source = cluster(body, 2, 2).replace(".shared .align 8 .b64 far[2];", ".shared .align 8 .b64 own, far[2];")
  reference, watched = told(source, "k", 4, 64, arrays(), 0, monkeypatch)
  assert reference == watched and bool(reference) == found


@pytest.mark.parametrize(("given", "found"), [("0", False), ("%t", True)])
def test_a_warp_that_copies_the_same_in_bulk(given: str, found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
  """CUTLASS has all threads of a warp store one tile: what is there already is no hazard."""
  source = kernel(f"""{BEGIN} and.b32 %v4, {given}, 1; shl.b32 %v4, %v4, 7; add.u32 %s, %s, %v4;
    fence.proxy.async; bar.sync 0; cp.async.bulk.global.shared::cta.bulk_group [%b], [%s], 128;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; bar.sync 0;
    st.global.u32 [%o], 7;""", REGISTERS, ".param .u64 out, .param .u64 from")
  reference, watched = told(source, "k", 1, 32, arrays(), 0, monkeypatch)
  assert reference == watched and ("a copy in bulk writes" in reference) == found


@pytest.mark.parametrize("waits", [True, False])
def test_what_is_added_in_bulk(waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
  """Several warps may combine with the same bytes, without waiting for each other; what is stored there has to wait."""
  monkeypatch.setenv("EMU", "ref")
  source = kernel(f"""{BEGIN} fence.proxy.async; bar.sync 0; setp.eq.u32 %first, %v4, 0;
    @%first cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%b], [%s], 128;
    @%first cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%b], [%s], 128;
    @%first cp.async.bulk.commit_group; {"@%first cp.async.bulk.wait_group 0; bar.sync 0;" if waits else ""}
    setp.lt.u32 %first, %t, 32; @%first st.global.u32 [%o], 7;""", REGISTERS, ".param .u64 out, .param .u64 from")
  found = tinyhw.launch(source, "k", 1, 64, arrays(), "EMU", check="report").findings or ()
  assert {f.kind for f in found} == (set() if waits else {"race", "wait"})


__all__ = ["passed"]
