"""Submissions that come again: their packets are decoded and checked once, and recognized by their words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

# Executes a packet that was decoded and checked before: the words, and its place in them. True where the queue may not
# go on with the packet behind it.
Quick = Callable[[list[int], int], bool | None]
Row = tuple[int, int, Quick, tuple[int, ...]]  # of a packet: place, end, what executes it, words that decide it


class Harmless:
  """What executes a packet that cannot fail or block, and is not seen at work."""

  __slots__ = ("run",)

  def __init__(self, run: Quick) -> None:
    self.run = run

  def __call__(self, words: list[int], at: int) -> None:
    self.run(words, at)


def nothing(words: list[int], at: int) -> None:
  """A packet that does nothing here."""


@dataclass(eq=False)
class Plan:
  """The packets of a submission, by the places where they begin.

  `steps` has what executes a packet and where the next one begins. `ways` begin with packets that are harmless: what
  executes these, with their places; how many packets it is with the one behind them; that one, its place and where the
  next begins.
  """

  steps: dict[int, tuple[Quick, int]]
  ways: dict[int, tuple[tuple[tuple[Quick, int], ...], int, Quick, int, int]]


def planned(rows: Iterable[Row], end: int) -> Plan:
  """The plan of a submission of `end` words."""
  plan = Plan({}, {})
  before: list[tuple[Quick, int]] = []
  first = count = 0
  for start, stop, run, _ in rows:
    plan.steps[start] = run, stop
    count += 1
    if stop != end and run is nothing:
      continue
    if stop != end and isinstance(run, Harmless):
      before.append((run.run, start))
      continue
    plan.ways[first] = tuple(before), count, run, start, stop
    before, first, count = [], stop, 0
  return plan
