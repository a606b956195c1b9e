"""Submissions that come again: what they name is known by their words, all but those that hold data.

A driver's submissions differ from those before in few words: the value that they signal, where the arguments lie. Their
positions are found once, by the long way (`World.follow`). From then on words that are the same but for these are a
known `Plan`, which gives the same as the long way would. What no plan holds of goes the long way.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from tinyhw.queues.effects import Effect

Plan = TypeVar("Plan")
PLANS: Final = 1 << 12  # that are kept
SHAPES: Final = 16      # of words of one length


def holes(positions: list[int]) -> int:
  """A mask without the dwords at these positions."""
  mask = 0
  for at in positions: mask |= 0xFFFF_FFFF << 32 * at
  return mask


def signalling(effect: Effect, value: int) -> Effect:
  """The effect with another value."""
  return Effect(effect.does, effect.address, effect.size, value, effect.compare, effect.mask, effect.clock)


@dataclass(slots=True)
class _Shape(Generic[Plan]):
  """Words of one length whose holes are at the same positions."""
  mask: int
  plans: dict[int, Plan]


class Plans(Generic[Plan]):
  """Plans by words."""

  def __init__(self) -> None:
    self._shapes: dict[int, list[_Shape[Plan]]] = {}
    self._count = 0

  def find(self, raw: bytes, fits: Callable[[Plan], bool] | None = None) -> Plan | None:
    """The plan of words that are the same but for its holes."""
    shapes = self._shapes.get(len(raw))
    if shapes is None: return None
    words = int.from_bytes(raw, "little")
    for shape in shapes:
      plan = shape.plans.get(words & shape.mask)
      if plan is not None and (fits is None or fits(plan)): return plan
    return None

  def keep(self, raw: bytes, hidden: int, plan: Plan) -> None:
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
