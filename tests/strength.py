"""The two strengths of the tests: the quick and seeded one of every day, and the thorough one (`make test THOROUGH=1`).

A test that draws says how much through these functions, so that one variable turns it up. Each thorough run draws new
seeds; its first line says them as `THOROUGH=SEED`, which repeats these draws (Hypothesis keeps its own failures). What
it finds goes into the test as an explicit `@example(...)` (or a case of its own), so that the quick run keeps it.
"""
from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
VARIABLE = "THOROUGH"
TIMES = 20  # examples of the thorough run for each of the quick one: about an hour on two cores

THOROUGH: bool = os.environ.get(VARIABLE, "") not in ("", "0")
if os.environ.get(VARIABLE) == "1":  # pytest's workers inherit the seed: what they collect has to be the same
  os.environ[VARIABLE] = str(random.SystemRandom().randrange(2, 1 << 32))
SEED = int(os.environ[VARIABLE]) if THOROUGH else 0


def examples(n: int) -> int:
  """How many examples, rounds or programs to draw where the quick run draws `n`."""
  return n * TIMES if THOROUGH else n


def some(wanted: Sequence[T], of: int) -> list[T]:
  """One in `of` of the cases; all in a thorough run."""
  return list(wanted) if THOROUGH else list(wanted[::of])


def seed(n: int) -> int:
  """A seed for one generator: `n` itself, or a new one in a thorough run."""
  return random.Random(f"{SEED} {n}").getrandbits(32) if THOROUGH else n


def seeds(wanted: Iterable[int]) -> list[int]:
  """Seeds to parametrize a test with: `wanted`, and in a thorough run many times as many new ones after them."""
  quick = list(wanted)
  return quick + [seed(n) for n in range(examples(len(quick)) - len(quick))]
