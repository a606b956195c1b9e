"""Which realized nodes one kernel computes together, each stored in memory of its own.

A node joins others of the same elements when it reads one of them element by element, so that it need not be loaded
again (an optimizer's moments and parameter, what follows a product that is wanted itself), or when it reads the same
memory in the same way (the sum and the greatest of a tensor). Nodes with reductions join those that reduce what they
read over the same axes only: a product stays alone with what follows it. A reduction also joins one over the same rows
whose result it spreads over them (a mean and a deviation), where kernels go from row to row (`goes_by_rows`).

So an optimizer's step is one kernel a parameter.
"""
from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.size import highest
from tinyhw.ir.uop import UOp

_ALONE = (Ops.COPY, Ops.ASSIGN, Ops.SCATTER)
_MOST_RESULTS, _MOST_BUFFERS, _MOST_NODES = 8, 16, 300    # of one kernel

# Devices whose kernels go from row to row, and the rows that suit them: elements that stay near, work for all threads.
_ROW_DEVICES = frozenset({"LLVM", "C"})
_LONGEST_ROW, _MANY_ROWS, _MOST_IN_FEW_ROWS = 1 << 15, 32, 1 << 14


def goes_by_rows(device: str | None, shape: tuple[int, ...], rows: int) -> bool:
  """Whether several reductions of `shape` to so many rows may be one kernel of the device."""
  if (device or "").partition(":")[0] not in _ROW_DEVICES: return False
  if not all(isinstance(s, int) for s in shape): return False
  size = math.prod(shape)
  return size <= rows * _LONGEST_ROW and (size <= _MOST_IN_FEW_ROWS or rows >= _MANY_ROWS)


Reduction = tuple[tuple[int, ...], tuple[int, ...]]
"""Shape of what is reduced, and the axes."""


def squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
  """A shape without the axes of one element."""
  return tuple([s for s in shape if s != 1])


@dataclass(eq=False)
class FusionGroup:
  """Nodes of one kernel. `apart`: what they read otherwise than element by element."""
  members: list[UOp]
  shape: tuple[int, ...]
  reads: dict[UOp, None] = field(default_factory=dict)        # what other kernels make, and BUFFERs
  apart: set[UOp] = field(default_factory=set)
  spread: dict[UOp, set[tuple[tuple[int, ...], ...]]] = field(default_factory=dict)  # by EXPANDs from and to shapes
  accesses: set[UOp] = field(default_factory=set)             # movements of what is read, of at least all elements
  reductions: set[Reduction] = field(default_factory=set)
  nodes: int = 0
  open: bool = True                                           # whether others may join

  def take(self, other: FusionGroup) -> None:
    """Add another group's nodes."""
    self.members += other.members
    self.reads.update(other.reads)
    self.apart |= other.apart
    for u, shapes in other.spread.items(): self.spread.setdefault(u, set()).update(shapes)
    self.accesses |= other.accesses
    self.reductions |= other.reductions
    self.nodes += other.nodes


def _looked_at(u: UOp, stops: Collection[UOp]) -> FusionGroup:
  """A node alone: what its kernel reads, and how."""
  group = FusionGroup([u], squeezed(u.shape))
  seen: set[tuple[UOp, bool]] = set()
  value = u.src[0] if u.op is Ops.CONTIGUOUS else u
  stack = [(value, True)]
  while stack:
    v, alike = stack.pop()
    if (v, alike) in seen: continue
    seen.add((v, alike))
    if v.op is Ops.BUFFER or v in stops and v is not u:
      group.reads[v] = None
      if not alike: group.apart.add(v)
      group.accesses.add(v)
      continue
    if v.op in GroupOp.MOVEMENT:
      below = v.src[0]
      if alike and v.op is Ops.RESHAPE and squeezed(v.shape) == squeezed(below.shape): stack.append((below, True))
      else:
        if v.op is Ops.EXPAND and not alike and (row := _whole(below, stops)) is not None:
          group.spread.setdefault(row, set()).add((below.shape, v.shape))
          group.reads[row] = None
          continue
        while below.op in GroupOp.MOVEMENT and below not in stops: below = below.src[0]
        if below.op is Ops.BUFFER or below in stops: group.accesses.add(v)
        stack.append((v.src[0], False))
      continue
    if v.op is Ops.REDUCE_AXIS:
      group.reductions.add((v.src[0].shape, v.arg[1]))
      alike = False
    elif v.op not in GroupOp.ELEMENTWISE: alike = False
    stack += [(s, alike) for s in v.src]
  # What is small is no reason to compute together, and neither is a part of something.
  least = highest(u.size)
  group.accesses = {a for a in group.accesses if highest(a.size) >= least and highest(a.base.size) >= least}
  group.nodes = len(seen)
  return group


def _whole(u: UOp, stops: Collection[UOp]) -> UOp | None:
  """What is realized and reshaped by axes of one element alone."""
  while u not in stops and u.op is Ops.RESHAPE and squeezed(u.shape) == squeezed(u.src[0].shape): u = u.src[0]
  return u if u in stops else None


class _Grouping:
  def __init__(self, stops: Collection[UOp]) -> None:
    self.stops = stops
    self.group_of: dict[UOp, FusionGroup] = {}
    self.by_access: dict[UOp, list[FusionGroup]] = {}

  def add(self, u: UOp) -> None:
    """Puts the next node into a group."""
    alone = _looked_at(u, self.stops)
    # What depends on values of launches stays what it is for all of them: a chain of updates is one kernel, many times.
    alone.open = not u.variables and u in self.stops and u.op not in _ALONE and all(isinstance(s, int) for s in u.shape)
    found = next((g for g in self.candidates(alone) if self.fits(alone, g)), None) if alone.open else None
    if found is None: found = alone
    else: found.take(alone)
    self.group_of[u] = found
    if found.open:
      for a in alone.accesses:
        if found not in (groups := self.by_access.setdefault(a, [])): groups.append(found)

  def candidates(self, alone: FusionGroup) -> Iterable[FusionGroup]:
    """Groups that a node has something in common with: those it reads from, then those that read the same."""
    for r in reversed(alone.reads):
      if r in self.group_of: yield self.group_of[r]
    for a in alone.accesses: yield from reversed(self.by_access.get(a, [])[-4:])

  def fits(self, alone: FusionGroup, group: FusionGroup) -> bool:
    """Whether a node may be computed in a group's kernel."""
    if not group.open or group.shape != alone.shape or group.members[0].device != alone.members[0].device: return False
    reads = group.reads.keys() | alone.reads.keys()
    if len(group.members) >= _MOST_RESULTS or group.nodes + alone.nodes > _MOST_NODES: return False
    if len(reads) + len(group.members) + 1 > _MOST_BUFFERS: return False
    members = set(group.members)
    if members & alone.apart: return False
    if rows := members & alone.spread.keys(): return self.in_rows(alone, group, rows)
    if alone.reductions:
      # Sums of the same over the same axes go through it once.
      if alone.reductions != group.reductions: return False
      if not (alone.accesses <= group.accesses or group.accesses <= alone.accesses): return False
      if members & alone.reads.keys(): return False
    elif group.reductions and not members & alone.reads.keys(): return False     # it has nothing of the sum
    return not any(self.needs(r, group) for r in alone.reads if r not in members)

  def in_rows(self, alone: FusionGroup, group: FusionGroup, rows: set[UOp]) -> bool:
    """Whether a node, which spreads members over the rows that they are of, is computed with them."""
    if len(group.reductions) != 1 or alone.reductions != group.reductions: return False
    ((shape, axes),) = group.reductions
    kept = tuple(1 if a in axes else size for a, size in enumerate(shape))
    if squeezed(kept) != group.shape or any(alone.spread[r] != {(kept, shape)} for r in rows): return False
    if not group.accesses <= alone.accesses: return False
    if not goes_by_rows(group.members[0].device, shape, math.prod(kept)): return False
    return not any(self.needs(r, group) for r in alone.reads if r not in group.members)

  def needs(self, node: UOp, group: FusionGroup) -> bool:
    """Whether a node is computed after a group."""
    stack, seen = [self.group_of.get(node)], set[FusionGroup]()
    while stack:
      g = stack.pop()
      if g is None or g in seen: continue
      if g is group: return True
      seen.add(g)
      stack += [self.group_of.get(r) for r in g.reads]
    return False


def groups(realized: Iterable[UOp], stops: Collection[UOp]) -> dict[UOp, list[UOp]]:
  """For each realized node those that its kernel computes, itself too. `realized` come sources first; kernels read
  those that are `stops`."""
  grouping = _Grouping(stops)
  for u in realized: grouping.add(u)
  return {u: g.members for u, g in grouping.group_of.items()}
