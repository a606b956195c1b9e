"""Submissions that come again: their packets are decoded and checked once, and recognized by their words.

Only the data of such a submission is read anew. The emulator keeps a dispatch that compiled code
ran to its end as it was before its first instruction (`emulator/jit/amdgcn/repeat.py`): the next
one with other user SGPRs is a call, after the code in memory, the mappings and the form were found
to be the same. One of many workgroups, which may run in any order, is kept in parts (`parts.py`). A
submission of such dispatches, of registers, user data and semaphores becomes one native call as a
whole (`onecall.py`); it is looked for where the last time it followed, and what it does not know,
or somebody watches, goes the longer way. None of it changes what is checked, counted or computed:
`tests/mock/test_plans.py` runs each beside a mock that remembers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Executes a packet that was decoded and checked before: the words, and its place in them. True where the queue may not
# go on with the packet behind it.
Quick = Callable[[list[int], int], bool | None]
Size = tuple[int, int, int]


@dataclass(frozen=True)
class Nothing:
  """A packet that does nothing here but count, under this name."""

  counted: tuple[str, str, str] | None = None


@dataclass(frozen=True)
class UserData:
  """A SET_SH_REG whose payload goes to `count` registers of user data from the first on."""

  first: int
  count: int


@dataclass(frozen=True)
class Registers:
  """Writes of registers that are not user data: absolute offset, value, why it has no effect."""

  pairs: tuple[tuple[int, int, str | None], ...]


@dataclass(frozen=True)
class Release:
  """A RELEASE_MEM that stores its 64 bits of data at an aligned address, and tells nobody."""

  address: int


@dataclass(frozen=True)
class Await:
  """A WAIT_REG_MEM until the 32 bits at an aligned address, under a mask, are at least its reference."""

  address: int
  mask: int


@dataclass(frozen=True)
class Dispatch:
  """A DISPATCH_DIRECT."""

  size: Size
  initiator: int


Part = Nothing | UserData | Registers | Release | Await | Dispatch  # what a packet does, where `onecall` can do it
# Of a packet: place, end, what executes it, the words that decide it, what it does where that is simple.
Row = tuple[int, int, Quick, tuple[int, ...], Part | None]


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
  next begins. `parts` has what they do, by place, where all of it is simple; `deciding` the words that decide that.
  """

  parts: tuple[tuple[int, int, Part], ...] | None
  deciding: tuple[int, ...]
  needs: bool  # whether its first dispatch depends on registers that it does not write
  words: tuple[int, ...]
  steps: dict[int, tuple[Quick, int]]
  ways: dict[int, tuple[tuple[tuple[Quick, int], ...], int, Quick, int, int]]
  followed: int = 0  # times


def planned(rows: Sequence[Row], words: Sequence[int], settings: Sequence[int]) -> Plan:
  """The plan of a submission. `settings`: the registers that decide a dispatch."""
  end, parts = len(words), tuple((start, stop, part) for start, stop, _, _, part in rows if part is not None)
  deciding = tuple(k for row in rows for k in row[3])
  plan = Plan(parts if len(parts) == len(rows) else None, deciding, _needs(parts, settings), tuple(words), {}, {})
  before: list[tuple[Quick, int]] = []
  first = count = 0
  for start, stop, run, _, _ in rows:
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


def _needs(parts: Sequence[tuple[int, int, Part]], settings: Sequence[int]) -> bool:
  missing = set(settings)
  for _, _, part in parts:
    if isinstance(part, Dispatch):
      return bool(missing)
    if isinstance(part, Registers):
      missing -= {offset for offset, _, _ in part.pairs}
  return False
