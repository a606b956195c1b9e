"""Random kernels under the checks: watched code lets none pass in which the reference finds something, and tells the
same as that.

Warps share memory, and are ordered by barriers of the block and of some warps, by mbarriers, groups of copies, fences,
atomics and calls; some of what orders them is left out. All of them end: who arrives is never left out.
"""
from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from tests.emulator.check.ptx.test_watched import passed, told
from tests.emulator.ptx.test_ptx import kernel
from tests.emulator.ptx.test_triton import FILES, drawn
from tests.strength import THOROUGH, seeds
from tinyhw.emulator.jit.ptx.launch import detect
from tinyhw.isa.ptx import parse

WARPS = 4
NAMES = ["3.4.0-bf16", "3.4.0-fp8", "3.9.0-bf16", "3.9.0-fp8"]
REGISTERS = """.shared .align 128 .b8 s[8192]; .shared .align 8 .b64 bars[4]; .shared .align 8 .b64 full;
  .reg .b32 %s, %q, %own, %next,
  %lane, %w, %v<6>, %phase, %round; .reg .b64 %m, %f, %g, %h; .reg .pred %first, %role, %even, %over;"""
SUM = """
.func (.reg .b32 %sum) two(.reg .b64 %at) {
  .reg .b32 %x, %y;
  ld.u32 %x, [%at]; ld.u32 %y, [%at+1024]; add.u32 %sum, %x, %y;
  ret;
}
"""
BEGIN = f"""
  mov.u32 %s, s; mov.u32 %q, bars; shr.u32 %w, %t, 5; mad.lo.u32 %own, %t, 4, %s; setp.eq.u32 %first, %t, 0;
  xor.b32 %next, %t, 32; mad.lo.u32 %next, %next, 4, %s; xor.b32 %lane, %t, 1; mad.lo.u32 %lane, %lane, 4, %s;
  mov.u32 %v0, %t; mov.u32 %v1, 1; mov.u32 %v2, 2; mov.u32 %phase, 0; and.b32 %v3, %w, 1; setp.eq.u32 %even, %v3, 0;
  xor.b32 %v3, %t, 64; mad.wide.u32 %h, %v3, 4, %b; and.b32 %v4, %t, 31; mov.u32 %v5, 0; ld.param.u64 %f, [from];
  mad.wide.u32 %g, %t, 4, %f; mov.u64 %m, %b;
  @%first mbarrier.init.shared.b64 [%q], {32 * WARPS}; @%first mbarrier.init.shared.b64 [%q+8], {32 * WARPS};
  @%first mbarrier.init.shared.b64 [full], 1;
  st.shared.u32 [%own], %t; st.shared.u32 [%own+1024], 7; st.shared.u32 [%own+2048], 8; st.shared.u32 [%own+4096], 9;
"""


class Draw:
  """A kernel, piece by piece. What orders warps is left out now and then."""

  def __init__(self, rng: random.Random, faults: float) -> None:
    self.rng, self.faults, self.labels = rng, faults, 0
    self.phases = [0, 0, 0]  # of the mbarriers
    self.pairs = 0  # of barriers that pairs of warps have met at
    self.tracks = rng.random() < 0.3  # what is stored is read, too

  def order(self, text: str) -> str:
    """What may be left out."""
    return "" if self.rng.random() < self.faults else text

  def label(self) -> str:
    self.labels += 1
    return f"L{self.labels}"

  def touch(self) -> str:
    """An access by all threads."""
    rng = self.rng
    at = rng.choice(["%own", "%own", "%next", "%lane"]) + rng.choice(["", "+1024", "+2048"])
    return rng.choice([
      f"ld.shared.u32 %v0, [{at}];", f"ld.shared.u32 %v0, [{at}];", f"st.shared.u32 [{at}], %v1;",
      f"st.shared.u32 [{at}], %v0;", "st.shared.u32 [%s+4096], %v2;", "ld.shared.u32 %v0, [%s+4096];",
      "ld.shared.v2.u32 {%v0, %v1}, [%s+1024];", "st.global.u32 [%o], %v0;", "ld.global.u32 %v1, [%g];",
      *["ld.global.u32 %v1, [%h];"] * self.tracks,
      "@%even st.shared.u32 [%own+2048], %v1;", "@!%even ld.shared.u32 %v1, [%next+2048];",
      "st.shared.u8 [%own+1], 3;", "atom.shared.add.u32 %v3, [%s+4100], 1;", "red.shared.add.u32 [%s+4100], 2;",
      "ld.shared.u32 %v0, [%s+4100];"])

  def block(self) -> str: return self.order("bar.sync 0;")

  def some(self) -> str:
    """A barrier of as many threads as there are, or the warps in pairs."""
    if self.rng.random() < 0.4: return self.order(f"barrier.sync 5, {32 * WARPS};")
    return self.order(f"shr.u32 %v3, %w, 1; add.u32 %v3, %v3, 2; bar.sync %v3, {64};")

  def warp(self) -> str:
    return self.order(self.rng.choice(["bar.warp.sync -1;", "shfl.sync.bfly.b32 %v3, %v0, 1, 31, -1;"]))

  def producers(self) -> str:
    """Even warps arrive, odd ones wait; each pair has a barrier."""
    use, give = self.rng.choice(["ld.shared.u32 %v0, [%next];", "st.shared.u32 [%next], %v1;"]), self.label()
    over, write = self.label(), self.rng.choice(["st.shared.u32 [%own], %v1;", "ld.shared.u32 %v0, [%own];"])
    wait = self.rng.random() >= self.faults
    self.pairs += 1
    pair = f"shr.u32 %v3, %w, 1; add.u32 %v3, %v3, {6 + 2 * (self.pairs % 4)}; @%even bra {give};"
    if not wait: return f"{pair} {use} bra {over}; {give}: {write} {over}:"
    return f"{pair} bar.sync %v3, 64; {use} bra {over}; {give}: {write} bar.arrive %v3, 64; {over}:"

  def mbarrier(self) -> str:
    """All arrive at an mbarrier, and wait for it."""
    k = self.rng.randrange(2)
    at, parity, wait = f"[%q+{8 * k}]", self.phases[k] & 1, self.label()
    self.phases[k] += 1
    arrive = f"mbarrier.arrive.shared.b64 %m, {at};"
    between = self.touch() if self.rng.random() < 0.3 else ""
    test = f"{wait}: mbarrier.try_wait.parity.shared.b64 %over, {at}, {parity}; @!%over bra {wait};"
    if self.rng.random() < 0.3: return f"{arrive} {between} {test}"
    return f"{arrive} {between} {self.order(test)}" if between else f"{arrive} {test}"

  def copies(self) -> str:
    """A group of copies."""
    to = self.rng.choice(["%own+1024", "%next+2048"])
    more = f"cp.async.ca.shared.global [%own+{self.rng.choice([1024, 2048])}], [%g], 4; cp.async.commit_group;"
    text = f"cp.async.ca.shared.global [{to}], [%g], 4; cp.async.commit_group;"
    if self.rng.random() < 0.3: return text + more + self.order("cp.async.wait_group 1;") + self.touch() + self.order(
      "cp.async.wait_all;")
    return text + self.order("cp.async.wait_group 0;")

  def bulk(self) -> str:
    """A copy in bulk into shared memory, that all wait for."""
    parity, wait = self.phases[2] & 1, self.label()
    self.phases[2] += 1
    at = self.rng.choice([1024, 2048])
    copy = f"""@%first mbarrier.arrive.expect_tx.shared.b64 %m, [full], 512;
      @%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s+{at}], [%f], 512, [full];"""
    test = f"{wait}: mbarrier.try_wait.parity.shared.b64 %over, [full], {parity}; @!%over bra {wait};"
    return copy + (self.touch() if self.rng.random() < 0.3 else "") + self.order(test)

  def store(self) -> str:
    """A copy in bulk out of shared memory."""
    return f"""{self.order("fence.proxy.async;")} {self.order("bar.sync 0;")}
      @%first cp.async.bulk.global.shared::cta.bulk_group [%b], [%s+{self.rng.choice([0, 1024, 2048])}], 512;
      @%first cp.async.bulk.commit_group; {self.order("@%first cp.async.bulk.wait_group.read 0;")}"""

  def call(self) -> str:
    at = self.rng.choice(["%own", "%next", "%lane"])
    return f"cvt.u64.u32 %m, {at}; cvta.shared.u64 %m, %m; call (%v0), two, (%m);"

  def loop(self) -> str:
    """Some pieces again and again; mbarriers have even numbers of phases behind each."""
    head, before = self.label(), [*self.phases]
    body = " ".join(self.piece(0) for _ in range(self.rng.randrange(2, 5)))
    for k in range(3):
      if (self.phases[k] - before[k]) & 1: return body
    self.labels += 1
    return (f"mov.u32 %round, 0; {head}: {body} add.u32 %round, %round, 1; setp.lt.u32 %over, %round, 3; "
            f"@%over bra {head};")

  def piece(self, deep: int = 1) -> str:
    """The next one."""
    return self.rng.choice([*self.kinds(), self.loop] if deep else self.kinds())()

  def kinds(self) -> list[Callable[[], str]]:
    """What a piece may be."""
    return [self.touch, self.touch, self.block, self.block, self.some, self.warp, self.producers, self.mbarrier,
            self.mbarrier, self.copies, self.bulk, self.store, self.call]

  def text(self) -> str:
    pieces = " ".join(self.piece() for _ in range(self.rng.randrange(3, 9)))
    end = "st.global.u32 [%o], %v0;" if self.rng.random() < 0.5 else ""
    source = kernel(f"{BEGIN} {self.order('fence.proxy.async;')} {self.order('bar.sync 0;')} {pieces} {end}", REGISTERS,
                    ".param .u64 out, .param .u64 from")
    return source.replace(".visible .entry", SUM + ".visible .entry", 1)


@pytest.mark.parametrize("seed", seeds(range(6)))
def test_random_kernels_are_told_the_same(seed: int, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  rng = random.Random(seed)
  source = Draw(rng, rng.choice([0.0, 0.05, 0.3])).text()
  arrays = [np.zeros(256, np.uint32), np.arange(256, dtype=np.uint32)]
  reference, found = told(source, "k", 2, 32 * WARPS, arrays, 0, monkeypatch)
  assert reference == found, source


SAME = [  # stores of four warps to the places of one, between barriers of some warps; whether it is found
  ("STORE %v2;", False), ("STORE %v2; STORE %v2;", False), ("STORE %v1; STORE %v2;", True),
  ("@%first STORE %t; STORE 0;", False), ("@%even STORE 5; STORE %v2;", True), ("STORE %v0;", True),
  ("STORE 5; bar.sync 0; STORE %v2; bar.sync 0; STORE 5;", False)]


@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize(("body", "found"), SAME, ids=[s[0] for s in SAME])
def test_stores_of_the_same_bytes(body: str, found: bool, space: str, passed: Counter[bool],
                                  monkeypatch: pytest.MonkeyPatch) -> None:
  """Right where nobody sees whose store it was; what was there before counts, too."""
  store = f"st.{space}.u32 [{'%q' if space == 'shared' else '%m'}],"
  source = kernel(f"""{BEGIN} mad.lo.u32 %q, %v4, 4, %s; mad.wide.u32 %m, %v4, 4, %b; barrier.sync 5, {32 * WARPS};
    {body.replace("STORE", store)}""", REGISTERS, ".param .u64 out, .param .u64 from")
  arrays = [np.zeros(256, np.uint32), np.arange(256, dtype=np.uint32)]
  reference, watched = told(source, "k", 2, 32 * WARPS, arrays, 0, monkeypatch)
  assert reference == watched and bool(reference) == found
  assert found or passed[True]


def test_clocks_begin_again(passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  """Many blocks, each with clocks that go on from those of the block before."""
  monkeypatch.setattr(detect, "RESTART", 100)
  monkeypatch.setattr(detect, "COHORT", 2)
  again = Counter[str]()
  real = detect.Watching._cells

  def cells(launch: detect.Watching) -> None:
    again["begun"] += 1
    real(launch)
  monkeypatch.setattr(detect.Watching, "_cells", cells)
  wait = "L: mbarrier.try_wait.parity.shared.b64 %over, [%q], 0; @!%over bra L;"
  for text, found in ((wait, False), ("", True)):
    source = kernel(f"{BEGIN} bar.sync 0; st.shared.u32 [%own], 3; mbarrier.arrive.shared.b64 %m, [%q]; {text}"
                    "ld.shared.u32 %v0, [%next]; red.global.add.u32 [%b], %v0;", REGISTERS,
                    ".param .u64 out, .param .u64 from")
    arrays = [np.zeros(256, np.uint32), np.arange(256, dtype=np.uint32)]
    reference, watched = told(source, "k", 16, 32 * WARPS, arrays, 0, monkeypatch)
    assert reference == watched and bool(reference) == found
  assert passed[True] == passed[False] == 1 and again["begun"] > 3


ORDERS = ["", "wgmma.wait_group", "fence.proxy.async", "wgmma.fence", "bar.sync", "cp.async.bulk.wait_group"]


@pytest.mark.parametrize("name", NAMES if THOROUGH else ["3.9.0-bf16"])
def test_pipelines_of_triton(name: str, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  """Kernels with tensor maps that they make, mbarriers, copies in bulk and wgmma run in compiled code alone; what is
  found where all that orders them in one way is left out is told as by the reference."""
  row, source, rng = json.loads(FILES[name + ".json"]), FILES[name + ".ptx"].decode(), np.random.default_rng(5)
  constants = row["constants"]
  m, n, k = constants["BM"], constants["BN"], constants["BK"] + 32
  (a, _), (b, _) = drawn(rng, row["name"], (m, k)), drawn(rng, row["name"], (k, n))
  out = np.zeros((m, n), np.float32 if row["name"] in {"fp8", "bf16"} else np.float16)
  args = [x.view(f"V{x.itemsize}") for x in (a, b, out)] + [m, n, k]
  args += [np.zeros(row["scratch"] + 128, np.uint8)] * (len(parse(source).entries[row["kernel"]].params) - len(args))
  for left_out in ORDERS if THOROUGH else ORDERS[:1]:
    text = re.sub(rf"^\s*(@!?%p\d+ )?{re.escape(left_out)}[^;]*;", "", source, flags=re.M) if left_out else source
    reference, watched = told(text, row["kernel"], 1, row["threads"], args, row["shared"], monkeypatch)
    assert reference == watched, left_out
    if left_out in ORDERS[:2]: assert bool(reference) == bool(left_out)
  assert passed[True]


WGMMA = """mov.u32 %v5, 0; L: add.u32 %v4, %own, %v5; st.shared.u32 [%v4], 0; add.u32 %v5, %v5, 512;
  setp.lt.u32 %over, %v5, 4096; @%over bra L; fence.proxy.async; bar.sync 0; mov.b64 %m, 0x0000001000080000;
  mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %m, %m, 1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; st.shared.u32 [%own], 7;"""


def test_products_of_warpgroups(passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  """What orders products, and each of it left out."""
  for left_out in ("", "fence.proxy.async;", "bar.sync 0;", "wgmma.fence.sync.aligned;",
                   "wgmma.wait_group.sync.aligned 0;"):
    body = WGMMA.replace(left_out, "") if left_out else WGMMA + "add.f32 %f4, %f0, %f1;"
    source = kernel(f"{BEGIN} barrier.sync 0; {body}", REGISTERS, ".param .u64 out, .param .u64 from")
    arrays = [np.zeros(256, np.uint32), np.arange(256, dtype=np.uint32)]
    reference, watched = told(source, "k", 1, 32 * WARPS, arrays, 0, monkeypatch)
    assert reference == watched and bool(reference) == bool(left_out), left_out
  assert passed[True] == 1


__all__ = ["passed"]
