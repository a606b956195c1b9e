"""Atomics and strong loads whose result a thread looks at: those by which it may learn what others have done.

What watched code hears of other warps by them, of those that have changed what was there, does not depend on which of
two came first: had the other one come second, the thread would have seen another value, and gone another way.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable

from tinyhw.emulator.check.ptx.effects import Effects


def listening(does: dict[int, Effects], following: Callable[[int], Iterable[int]]) -> frozenset[int]:
  """The lines of them."""
  return frozenset(k for k, d in does.items() if d.results and speaks(d) and _decides(k, does, following))


def speaks(d: Effects) -> bool:
  """Whether it is an atomic, or a load or store that synchronizes."""
  if "async" in d.modifiers: return False
  return d.opcode in {"atom", "red"} or d.strong and d.opcode in {"ld", "st"}


def _decides(first: int, does: dict[int, Effects], following: Callable[[int], Iterable[int]]) -> bool:
  """Whether what a line gives is compared, or decides where threads go."""
  known: dict[int, frozenset[int]] = {}
  todo = [(k, frozenset(does[first].results)) for k in following(first)]
  while todo:
    k, more = todo.pop()
    before = known.get(k, frozenset[int]())
    if k not in does or more <= before: continue
    now = known[k] = before | more
    d = does[k]
    reads = any(r in now for r in (*d.addresses, *d.sources, *d.read))
    if d.guard in now or reads and d.opcode in {"setp", "set", "brx", "selp", "slct"}: return True
    after = now | {*d.results} if reads else now if d.guard is not None else now - {*d.results}
    if after: todo += [(t, after) for t in following(k)]
  return False
