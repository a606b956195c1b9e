"""Which vector registers are still wanted where blocks of a program end: what nobody reads again needs no store.

A block tells what it read and what it wrote before reading it, as its instructions were translated; a register is
wanted where a block that follows reads it, or does not write it and goes on to one that does. Only blocks of which all
lanes are active take part: others keep what they do not write. A wave that is left to the reference in the middle of a
block does there what the block would have done.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyhw.emulator.jit.amdgcn.state import Registers


@dataclass(frozen=True)
class End:
  """What a block with all lanes active read and wrote, and how it ends. `onward` has the blocks with all lanes active
  that it goes on to, or is None where it may go elsewhere; `stored` has the line that stores each register there."""
  read: frozenset[int]
  written: frozenset[int]
  onward: Sequence[int] | None
  stored: Mapping[int, int]

  @classmethod
  def of(cls, r: Registers, end: tuple[Sequence[str], Mapping[int, int]] | None) -> End:
    """That of the block that has just been translated: the labels that it goes on to, if that is all that it does, and
    the lines of its stores."""
    read = frozenset(range(r.vgprs)) if r.any_read else frozenset(r.read)
    if end is None or any(label[0] != "f" for label in end[0]): return cls(read, frozenset(r.written), None, {})
    return cls(read, frozenset(r.written), [int(label[1:]) for label in end[0]], end[1])


def unwanted(ends: Mapping[int, End], vgprs: int) -> dict[int, list[int]]:
  """The lines of each block that store what is not wanted."""
  everything = frozenset(range(vgprs))
  wanted: dict[int, frozenset[int]] = dict.fromkeys(ends, frozenset())  # where a block begins

  def after(end: End) -> frozenset[int]:
    if end.onward is None: return everything
    return frozenset[int]().union(*(wanted.get(k, everything) for k in end.onward))
  changed = True
  while changed:
    changed = False
    for k in reversed(list(ends)):
      now = ends[k].read | after(ends[k]) - ends[k].written
      changed |= now != wanted[k]
      wanted[k] = now
  return {k: [line for n, line in end.stored.items() if n not in after(end)] for k, end in ends.items()}
