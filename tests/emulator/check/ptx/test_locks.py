"""Locks, flags and counters by atomics and strong loads order warps in watched code, as in the reference; and what else
once was the reference's alone: threads of one warp, gaps between arrays, wmma, generic addresses of both spaces."""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from tests.emulator.check.ptx.test_random import BEGIN as RANDOM
from tests.emulator.check.ptx.test_random import REGISTERS, WARPS, Draw
from tests.emulator.check.ptx.test_watched import passed, told
from tests.emulator.ptx.test_ptx import kernel
from tests.strength import THOROUGH, seeds

MEMORY = """.shared .align 128 .b8 s[8192]; .shared .b32 lock, flag, count; .reg .b32 %s, %v, %w, %x, %own, %its;
  .reg .pred %first, %all, %q; .reg .b32 %a<8>;"""
BEGIN = """mov.u32 %s, s; shr.u32 %w, %t, 5; and.b32 %x, %t, 31; setp.eq.u32 %first, %x, 0; setp.eq.u32 %all, %t, 0;
  mad.lo.u32 %own, %t, 4, %s; xor.b32 %its, %t, 32; mad.lo.u32 %its, %its, 4, %s;
  @%all st.shared.u32 [lock], 0; @%all st.shared.u32 [flag], 0; @%all st.shared.u32 [count], 0;
  @%all st.shared.u32 [%s+4096], 0; bar.sync 0;"""
TAKE = "T: atom.acquire.cta.shared.cas.b32 %v, [lock], 0, 1; setp.ne.u32 %q, %v, 0; @%q bra T;"
GIVE = "atom.release.cta.shared.exch.b32 %v, [lock], 0;"
USE = "ld.shared.u32 %r1, [%s+4096]; add.u32 %r1, %r1, 1; st.shared.u32 [%s+4096], %r1;"
LOCKED = f"""@!%first bra E; TAKE {USE} GIVE E: bar.warp.sync -1; bar.sync 0; ld.shared.u32 %r2, [%s+4096];
  st.global.u32 [%o], %r2;"""
WAIT = "W: ld.acquire.cta.shared.u32 %v, [flag]; setp.eq.u32 %q, %v, 0; @%q bra W;"
# warp 0 waits for what warp 1 has stored: it runs first
FLAGGED = """setp.eq.u32 %p2, %w, 1; @%p2 bra P; WAIT ld.shared.u32 %r2, [%its]; st.global.u32 [%o], %r2; bra E;
  P: st.shared.u32 [%own], 7; bar.warp.sync -1; STORE E:"""
COUNTED = """st.shared.u32 [%own], %t; bar.warp.sync -1; mov.u32 %v, 0;
  @%first atom.acq_rel.cta.shared.add.u32 %v, [count], 1; shfl.sync.idx.b32 %v, %v, 0, 31, -1; setp.ne.u32 %q, %v, LAST;
  @%q bra E; ld.shared.u32 %r2, [%own]; ld.shared.u32 %r3, [%its]; add.u32 %r2, %r2, %r3;
  mad.wide.u32 %l1, %x, 4, %b; st.global.u32 [%l1], %r2; E:"""
TILE = """mad.lo.u32 %r1, %t, 16, %s; mov.u32 %r2, 0x3c003c00; add.u32 %r2, %r2, %w;
  st.shared.v4.u32 [%r1], {%r2, %r2, %r2, %r2}; BARRIER xor.b32 %r3, %w, 1; mad.lo.u32 %r3, %r3, 512, %s;
  wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, [%r3];
  bar.sync 0; mad.lo.u32 %r4, %w, 512, %s;
  wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%r4], {%a0, %a1, %a2, %a3};
  xor.b32 %r5, %x, 5; mad.lo.u32 %r4, %r5, 16, %r4; ld.shared.u32 %r6, [%r4]; st.global.u32 [%o], %r6;"""
MIXED = """cvt.u64.u32 %l1, %own; cvta.shared.u64 %l1, %l1; cvt.u64.u32 %l2, %its; cvta.shared.u64 %l2, %l2;
  xor.b32 %r1, %t, 32; mad.wide.u32 %l3, %r1, 4, %b; and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0;
  selp.b64 %l1, %l1, %o, %p1; selp.b64 %l2, %l2, %l3, %p1; st.u32 [%l1], %t; BARRIER ld.u32 %r4, [%l2];
  bar.sync 0; st.global.u32 [%o], %r4;"""
WARP = """xor.b32 %r1, %t, 1; mad.lo.u32 %r1, %r1, 4, %s; st.shared.u32 [%own], %t; BARRIER ld.shared.u32 %r2, [%r1];
  st.global.u32 [%o], %r2;"""
UNLIKE = """setp.lt.u32 %p2, %t, 32; @!%p2 bra E; cp.async.ca.shared.global [%own], [%o], 4; cp.async.commit_group;
  cp.async.wait_group 0; E: cp.async.ca.shared.global [%own+1024], [%o], 4; cp.async.commit_group; BARRIER bar.sync 0;
  ld.shared.u32 %r2, [%its+1024]; bar.sync 0; st.global.u32 [%o], %r2;"""


def given(text: str, **more: str) -> str:
  """A kernel with words for what it needs, some of them in another way."""
  words = {"TAKE": TAKE, "GIVE": GIVE, "WAIT": WAIT, "STORE": "@%first st.release.cta.shared.u32 [flag], 1;",
           "BARRIER": "bar.sync 0;", "LAST": "1", **more}
  for word, instead in words.items(): text = text.replace(word, instead)
  return text


CASES = [  # what is done or left out, the kernel, whether that is found
  ("a lock", given(LOCKED), False), ("nobody takes it", given(LOCKED, TAKE=""), True),
  ("it is given without an atomic", given(LOCKED, GIVE="st.shared.u32 [lock], 0;"), True),
  ("an atomic that is no lock", given(LOCKED, TAKE="atom.shared.add.u32 %v, [lock], 1;", GIVE=""), True),
  ("a flag", given(FLAGGED), False), ("a plain flag", given(FLAGGED, STORE="@%first st.shared.u32 [flag], 1;"), True),
  ("nobody waits for it", given(FLAGGED, WAIT=""), True),
  ("nobody looks at it", given(FLAGGED, WAIT="ld.acquire.cta.shared.u32 %v, [flag];"), True),
  ("the last one", given(COUNTED), False), ("the first one", given(COUNTED, LAST="0"), True),
  ("wmma", given(TILE), False), ("wmma without a barrier", given(TILE, BARRIER=""), True),
  ("both spaces", given(MIXED), False), ("both spaces without a barrier", given(MIXED, BARRIER=""), True),
  ("threads of a warp", given(WARP, BARRIER="bar.warp.sync -1;"), False),
  ("threads of a warp apart", given(WARP, BARRIER=""), True),
  ("groups of some warps", given(UNLIKE, BARRIER="cp.async.wait_group 0;"), False),
  ("that nobody waits for", given(UNLIKE, BARRIER=""), True)]
QUICK = ["a lock", "nobody takes it"]
CHOSEN = [c for c in CASES if THOROUGH or c[0] in QUICK]


@pytest.mark.parametrize(("what", "body", "found"), CHOSEN, ids=[c[0] for c in CHOSEN])
def test_orders(what: str, body: str, found: bool, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  """Right kernels run in compiled code alone; of others both engines tell the same."""
  reference, watched = told(kernel(BEGIN + body, MEMORY), "k", 3, 64, [np.zeros(1024, np.uint32)], 0, monkeypatch)
  assert reference == watched and bool(reference) == found
  assert passed[not found] and not passed[found]


GAPS = [("", False), ("@%p1 st.shared.u32 [%r2+4], 3;", True), ("@%p1 ld.shared.u32 %r4, [%r3-4];", True)]


@pytest.mark.parametrize(("body", "found"), GAPS if THOROUGH else GAPS[1:2])
def test_what_lies_between_arrays(body: str, found: bool, passed: Counter[bool],
                                  monkeypatch: pytest.MonkeyPatch) -> None:
  source = kernel(f"""mov.u32 %r2, q; mov.u32 %r3, u; setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [%r2], 3; {body}
    bar.sync 0; ld.shared.u32 %r5, [%r2]; st.global.u32 [%o], %r5;""",
                  ".shared .align 16 .b8 q[4]; .shared .align 16 .b8 u[256];")
  reference, watched = told(source, "k", 3, 64, [np.zeros(1024, np.uint32)], 0, monkeypatch)
  assert reference == watched and bool(reference) == found and ("where no array is" in reference) == found
  assert passed[not found] and not passed[found]


@pytest.mark.parametrize("fence", ["fence.proxy.async;", ""] if THOROUGH else [""])
def test_units_read_what_several_warps_stored(fence: str, passed: Counter[bool],
                                              monkeypatch: pytest.MonkeyPatch) -> None:
  """The same bytes, by stores that a fence makes visible to copies, or not."""
  source = kernel(f"""{BEGIN} mad.lo.u32 %r1, %x, 4, %s; st.shared.u32 [%r1], %x; {fence} bar.sync 0;
    @%all cp.async.bulk.global.shared::cta.bulk_group [%b], [%s], 128; @%all cp.async.bulk.commit_group;
    @%all cp.async.bulk.wait_group 0;""", MEMORY)
  reference, watched = told(source, "k", 2, 64, [np.zeros(1024, np.uint32)], 0, monkeypatch)
  assert reference == watched and bool(reference) == (not fence)
  assert passed[bool(fence)] and not passed[not fence]


class Locks(Draw):
  """A random kernel whose warps take locks, set and wait for flags, and count each other, too. Some of that is left
  out; who gives and sets never is."""

  def place(self) -> str:
    """Bytes that all warps use."""
    return self.rng.choice(["[%s+4096]", "[%s+4104]", "[%s+4108]"])

  def lock(self) -> str:
    """The first thread of each warp uses some place under a lock, or none."""
    at, own, over, take = self.place(), self.rng.choice(["lock", "lock", "lock+4"]), self.label(), self.label()
    taken = self.order(f"{take}: atom.acquire.cta.shared.cas.b32 %v3, [{own}], 0, 1; setp.ne.u32 %over, %v3, 0;"
                       f"@%over bra {take};")
    give = self.rng.choice([f"atom.release.cta.shared.exch.b32 %v3, [{own}], 0;",
                            f"st.release.cta.shared.u32 [{own}], 0;"])
    use = self.rng.choice([f"st.shared.u32 {at}, %v1;", f"ld.shared.u32 %v0, {at};",
                           f"ld.shared.u32 %v0, {at}; add.u32 %v0, %v0, 1; st.shared.u32 {at}, %v0;"])
    return f"setp.eq.u32 %lead, %v4, 0; @!%lead bra {over}; {taken} {use} {give} {over}: bar.warp.sync -1;"

  def flag(self) -> str:
    """Odd warps wait for even ones, or even ones for odd ones, by a number that grows."""
    self.pairs += 1
    role, wait, over, give = self.rng.choice(["%even", "!%even"]), self.label(), self.label(), self.label()
    at = "mov.u32 %flag, flags; shr.u32 %v3, %w, 1; mad.lo.u32 %flag, %v3, 4, %flag;"
    waits = self.order(f"{wait}: ld.acquire.cta.shared.u32 %v3, [%flag]; setp.lt.u32 %over, %v3, {self.pairs};"
                       f"@%over bra {wait};")
    use = self.rng.choice(["ld.shared.u32 %v0, [%next];", "st.shared.u32 [%next], %v1;"])
    write = self.rng.choice(["st.shared.u32 [%own], %v1;", "ld.shared.u32 %v0, [%own];"])
    return (f"{at} setp.eq.u32 %lead, %v4, 0; @{role} bra {give}; {waits} {use} bra {over}; {give}: {write}"
            f"{self.order('bar.warp.sync -1;')} @%lead st.release.cta.shared.u32 [%flag], {self.pairs}; {over}:")

  def counter(self) -> str:
    """The last warp that has come reads what the others have written."""
    over, last = self.label(), self.rng.choice([WARPS - 1, WARPS - 1, 0])
    return f"""st.shared.u32 [%own+2048], %v0; bar.warp.sync -1; setp.eq.u32 %lead, %v4, 0; mov.u32 %v3, 0;
      @%lead atom.acq_rel.cta.shared.inc.u32 %v3, [lock+8], {WARPS - 1}; shfl.sync.idx.b32 %v3, %v3, 0, 31, -1;
      setp.ne.u32 %over, %v3, {last}; @%over bra {over}; ld.shared.u32 %v0, [%own+2048];
      ld.shared.u32 %v0, [%next+2048]; {over}:"""

  def kinds(self) -> list[Callable[[], str]]:
    return [self.touch, self.block, self.block, self.some, self.warp, self.mbarrier, self.lock, self.lock, self.lock,
            self.flag, self.flag, self.counter]

  def loop(self) -> str: return self.lock()

  def text(self) -> str:
    pieces = " ".join(self.piece() for _ in range(self.rng.randrange(3, 8)))
    clear = "st.shared.u32 [lock], 0; @%first st.shared.u32 [lock+4], 0; @%first st.shared.u32 [lock+8], 0;"
    first = f"@%first {clear} @%first st.shared.v2.u32 [flags], {{0, 0}}; bar.sync 0;"
    return kernel(f"{RANDOM} {first} {pieces}", REGISTERS + """.shared .align 8 .b32 lock[4];
      .shared .align 8 .b32 flags[2]; .reg .pred %lead; .reg .b32 %flag;""", ".param .u64 out, .param .u64 from")


@pytest.mark.parametrize("seed", seeds([23]))
def test_random_kernels_are_told_the_same(seed: int, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  rng = random.Random(seed)
  source = Locks(rng, rng.choice([0.0, 0.05, 0.3])).text()
  arrays = [np.zeros(256, np.uint32), np.arange(256, dtype=np.uint32)]
  reference, found = told(source, "k", 2, 32 * WARPS, arrays, 0, monkeypatch)
  assert reference == found, source


__all__ = ["passed"]
