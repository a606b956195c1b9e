"""Kernels with tcgen05 under the checks: watched code lets none pass in which the reference finds something, tells the
same as that, and runs right ones to their end.

Warps load and store tensor memory, two threads have tensor cores multiply, copy and shift there, and commit that to
mbarriers; some of what orders them is left out.
"""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from tests.emulator.check.ptx.test_watched import passed, told
from tests.emulator.tensor_memory import COLUMNS, LANES, once, text
from tests.strength import seeds
from tinyhw.emulator.jit.ptx.launch import notes

USED = 64  # columns
# %l10 describes the matrix that the products take, %r14 a product of 128 rows and 16 columns; %own is a thread's place
DECLARED = """.reg .b32 %own, %it; .reg .pred %other, %over; .shared .align 8 .b64 second;
  setp.eq.u32 %other, %tid.x, 64; @%other mbarrier.init.shared.b64 [second], 1;"""
BEGIN = f"""mad.lo.u32 %own, %t, 4, %s; mov.u32 %it, second;
  cvt.u64.u32 %l10, %s; shr.u64 %l10, %l10, 4; add.u64 %l10, %l10, {1 << 46 | 8 << 16 | 16 << 32};
  mov.u32 %r14, {1 << 4 | 2 << 17 | 8 << 24};"""


class Draw:
  """A kernel, piece by piece. What orders threads is left out now and then."""

  def __init__(self, rng: random.Random, faults: float) -> None:
    self.rng, self.faults, self.labels = rng, faults, 0
    self.phases = [0, 0]

  def order(self, text: str) -> str: return "" if self.rng.random() < self.faults else text

  def column(self) -> int: return self.rng.choice([0, 16, 48])

  def touch(self) -> str:
    """Warps, each in its own lanes; or shared memory."""
    at = self.column()
    return self.rng.choice([
      f"tcgen05.ld.sync.aligned.32x32b.x2.b32 {{%v0, %v1}}, [%q+{at}]; tcgen05.wait::ld.sync.aligned;",
      f"tcgen05.st.sync.aligned.32x32b.x2.b32 [%q+{at}], {{%t, %t}}; tcgen05.wait::st.sync.aligned;",
      f"tcgen05.ld.sync.aligned.16x64b.x1.b32 {{%v0}}, [%q+{at}];", "st.shared.u32 [%own], %t;",
      "ld.shared.u32 %v2, [%own+2048];"])

  def block(self) -> str: return self.order("bar.sync 0;")

  def work(self) -> str:
    """One of two threads has tensor cores do something, and commits it; all wait."""
    k = self.rng.randrange(2)
    who, mbarrier = (("%p1", "%m"), ("%other", "%it"))[k]
    parity, self.labels = self.phases[k] & 1, self.labels + 1
    label = f"N{self.labels}"
    self.phases[k] += 1
    at, other = self.column(), self.column()
    what = self.rng.choice([
      f"@{who} tcgen05.mma.cta_group::1.kind::f16 [%r20], %l10, %l10, %r14, 1;",
      f"@{who} tcgen05.mma.cta_group::1.kind::f16 [%r20], [%r21], %l10, %r14, 0;",
      f"@{who} tcgen05.cp.cta_group::1.128x128b [%r20], %l10;", f"@{who} tcgen05.shift.cta_group::1.down [%r20];"])
    commit = f"@{who} tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{mbarrier}];"
    wait = f"{label}: mbarrier.try_wait.parity.shared.b64 %over, [{mbarrier}], {parity}; @!%over bra {label};"
    fence = self.order("fence.proxy.async.shared::cta;")
    between = self.touch() if self.rng.random() < 0.3 else ""
    return (f"{fence} {self.order('bar.sync 0;')} add.u32 %r20, %d, {at}; add.u32 %r21, %d, {other}; {what} {commit} "
            f"{between} {self.order(wait)}")

  def text(self) -> str:
    kinds: list[Callable[[], str]] = [self.touch, self.touch, self.block, self.block, self.work, self.work]
    body = " ".join(self.rng.choice(kinds)() for _ in range(self.rng.randrange(3, 9)))
    return source(f"{BEGIN} {self.order('bar.sync 0;')} {body} bar.sync 0;")


def source(body: str, **more: int) -> str: return text(body, 8192, columns=USED, declared=DECLARED, **more)


def arrays(blocks: int = 1) -> list[np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]:
  return [*np.zeros((2, 4 * blocks * LANES * COLUMNS), np.uint8), np.zeros(blocks * 8192, np.uint8)]


@pytest.mark.parametrize("seed", seeds([3, 4]))
def test_random_kernels_are_told_the_same(seed: int, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  rng = random.Random(seed)
  kernel = Draw(rng, rng.choice([0.0, 0.1, 0.3])).text()
  reference, found = told(kernel, "k", 1, LANES, arrays(), 0, monkeypatch)
  assert reference == found, kernel


MMA = "tcgen05.mma.cta_group::1.kind::f16 [%d], %l10, %l10, %r14, 0;"
BLOCK = "bar.sync 0;"
LEFT_OUT = ["", "mbarrier.try_wait.parity.shared.b64 %p9, [%m], 0; @!%p9 bra WAIT;", "fence.proxy.async.shared::cta;"]


@pytest.mark.parametrize("left_out", LEFT_OUT)
def test_what_is_left_out(left_out: str, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  """A right kernel runs in compiled code alone."""
  kernel = source(BEGIN + once(MMA))
  assert left_out in kernel
  reference, found = told(kernel.replace(left_out, "", 1), "k", 1, LANES, arrays(), 0, monkeypatch)
  assert reference == found and bool(reference) == bool(left_out)
  assert passed == {not left_out: 1}


@pytest.mark.parametrize("left_out", ["", "barrier.cluster.arrive; barrier.cluster.wait;"])
def test_pairs_of_blocks(left_out: str, passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  """The first block multiplies for both; then each reads its part."""
  product = MMA.replace("::1", "::2").replace("%r14", "%r15")
  more = BEGIN + f"mov.u32 %r15, {1 << 4 | 2 << 17 | 16 << 24};"
  kernel = source(more + once(product, 2, True), cluster=2, pair=2)
  head, behind = kernel.split("FILL:")
  kernel = f"{head}FILL:{behind.replace(left_out, '', 1)}" if left_out else kernel
  reference, found = told(kernel, "k", 2, LANES, arrays(2), 0, monkeypatch)
  assert reference == found and bool(reference) == bool(left_out)
  assert passed == {not left_out: 1}


def test_memory_that_is_not_given_back(passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  reference, found = told(source("", ends=False), "k", 1, LANES, arrays(), 0, monkeypatch)
  assert reference == found and "not given back" in reference and not passed[True]


def test_a_mistake_of_ours_is_told(passed: Counter[bool], monkeypatch: pytest.MonkeyPatch) -> None:
  """Where nothing of tensor memory is noted, what is wrong passes: the tests above would see that."""
  real = notes.Notes._touched
  monkeypatch.setattr(notes.Notes, "_touched", lambda own, area, *more: None if area.tensor else real(own, area, *more))
  told(source(BEGIN + once(MMA)).replace(LEFT_OUT[1], "", 1), "k", 1, LANES, arrays(), 0, monkeypatch)
  assert passed == {True: 1}


__all__ = ["passed"]
