"""Submissions that come again: what they name is known by their words, all but those that hold data.

A driver's submissions differ from those before in few words: the value that they signal, where the arguments lie. Their
positions are found once, by the long way (`World.follow`). From then on words that are the same but for these are of a
known `SubmissionPlan`, and only these are read (`KnownSubmission`). What no plan holds of goes the long way (`Named`).
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from tinyhw.core.mapped import PAGE
from tinyhw.queues.effects import Does, Effect

T = TypeVar("T")
PLANS: Final = 1 << 12  # that are kept
SHAPES: Final = 16      # of words of one length


@dataclass(slots=True)
class Named:
  """What a submission leads to and names: words behind its ring, effects and roots in the order of a `Follow`, launches
  by (entry, argument bytes, 0 for nobody says)."""
  pieces: list[tuple[int, bytes]]
  effects: list[Effect]
  launches: list[tuple[int, int]]
  roots: list[tuple[int, int]]
  packets: Counter[str] | None = field(default=None, compare=False)  # by kind; None where some words are none


@dataclass(slots=True, eq=False)
class SubmissionPlan:
  """What all submissions of a plan name. They differ in the values of the effects at the places `valued`, in the roots
  at the places `loose`, which have no size, and in roots with a size, which stand at `arguments` among the others. What
  a recorder asks for each time is put together once."""
  effects: list[Effect]
  valued: list[int]
  launches: list[tuple[int, int]]
  roots: list[tuple[int, int]]
  loose: list[int]
  arguments: int
  watched: list[tuple[int, int]] = field(init=False)    # (address, bytes) of waits and signals
  # of signals: (address, value, place among `KnownSubmission.values` or -1)
  told: list[tuple[int, int, int]] = field(init=False)
  signalled: dict[int, int] = field(init=False)         # bytes of these, by their address
  stamped: list[int] = field(init=False)                # pages of all that they write

  def __post_init__(self) -> None:
    self.watched = watched(self.effects)
    self.stamped = stamped(self.effects)
    writes = [(n, e) for n, e in enumerate(self.effects) if sets(e)]
    self.told = [(e.address, e.value, self.valued.index(n) if n in self.valued else -1) for n, e in writes]
    self.signalled = {e.address: e.size for _, e in writes}


@dataclass(slots=True)
class KnownSubmission:
  """A submission of a plan, by what differs: the values of its effects, roots with and without a size."""
  plan: SubmissionPlan
  pieces: list[tuple[int, bytes]]
  values: list[int]
  arguments: list[tuple[int, int]]
  loose: list[int]

  def named(self) -> Named:
    """All that it names."""
    plan = self.plan
    effects, roots = plan.effects.copy(), plan.roots.copy()
    for place, value in zip(plan.valued, self.values): effects[place] = effects[place]._replace(value=value)
    for place, value in zip(plan.loose, self.loose): roots[place] = value, 0
    roots[plan.arguments:plan.arguments] = self.arguments
    return Named(self.pieces, effects, plan.launches.copy(), roots)


def watched(effects: list[Effect]) -> list[tuple[int, int]]:
  """(address, bytes) of what is waited for and signalled."""
  return [(e.address, e.size) for e in effects if e.does is Does.WAIT or e.does is Does.SIGNAL]


def stamped(effects: list[Effect]) -> list[int]:
  """Pages that values and times are written to."""
  return [e.address // PAGE for e in effects if e.does is Does.SIGNAL or e.does is Does.STAMP]


def sets(effect: Effect) -> bool:
  """Whether an effect leaves its value in memory."""
  return effect.does is Does.SIGNAL and not effect.compare


def holes(positions: list[int]) -> int:
  """A mask without the dwords at these positions."""
  mask = 0
  for at in positions: mask |= 0xFFFF_FFFF << 32 * at
  return mask


@dataclass(slots=True)
class _Shape(Generic[T]):
  """Words of one length whose holes are at the same positions."""
  mask: int
  plans: dict[int, T]


class Plans(Generic[T]):
  """Plans by words."""

  def __init__(self) -> None:
    self._shapes: dict[int, list[_Shape[T]]] = {}
    self._count = 0

  def find(self, raw: bytes, fits: Callable[[T], bool] | None = None) -> T | None:
    """The plan of words that are the same but for its holes."""
    shapes = self._shapes.get(len(raw))
    if shapes is None: return None
    words = int.from_bytes(raw, "little")
    for shape in shapes:
      plan = shape.plans.get(words & shape.mask)
      if plan is not None and (fits is None or fits(plan)): return plan
    return None

  def keep(self, raw: bytes, hidden: int, plan: T) -> None:
    """Remember a plan of words; `hidden` are the bits of its holes."""
    if self._count >= PLANS: self._shapes, self._count = {}, 0
    mask = (1 << 8 * len(raw)) - 1 & ~hidden
    shapes = self._shapes.setdefault(len(raw), [])
    shape = next((s for s in shapes if s.mask == mask), None)
    if shape is None:
      if len(shapes) >= SHAPES: return
      shapes.append(shape := _Shape(mask, {}))
    shape.plans[int.from_bytes(raw, "little") & mask] = plan
    self._count += 1
