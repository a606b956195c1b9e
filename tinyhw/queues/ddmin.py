"""Delta debugging: the smallest part of a whole that still shows what the whole shows (Zeller and Hildebrandt, 2002).

    minimal(range(2000), lambda part: 1234 in part)   # [1234]

What is tried are complements: pieces are left out, from the last to the first, ever smaller ones. The result is
1-minimal: without any one of its elements it no longer shows, as far as `shows` is a function of what it is asked.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def minimal(whole: Iterable[T], shows: Callable[[list[T]], bool], once: bool = False) -> list[T]:
  """The elements that remain, in their order. `shows` is taken to hold for the whole, and is not asked about it.
  With `once` single elements are gone over once: what became useless only then may stay."""
  kept = list(whole)
  if not kept or shows([]): return []
  size = len(kept)
  while size > 1:
    size = -(-size // 2)
    kept = _without(kept, size, shows)
    size = min(size, len(kept))
  while len(kept) > 1 and not once:  # what was needed at its time may have become useless since
    fewer = _without(kept, 1, shows)
    if len(fewer) == len(kept): break
    kept = fewer
  return kept


def _without(kept: list[T], size: int, shows: Callable[[list[T]], bool]) -> list[T]:
  """One sweep: each piece of so many elements is left out where it can be."""
  at = len(kept)
  while at > 0:
    start = max(at - size, 0)
    fewer = kept[:start] + kept[at:]
    if fewer and shows(fewer): kept = fewer
    at = start
  return kept


def first(count: int, shows: Callable[[int], bool]) -> int:
  """The first of so many prefixes at which it shows (bisection); `shows(count - 1)` is taken to hold."""
  low, high = 0, count - 1
  while low < high:
    middle = (low + high) // 2
    if shows(middle): high = middle
    else: low = middle + 1
  return low
