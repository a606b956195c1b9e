"""From an expanded graph to the linear program: every node in the outermost place where its ranges are open.

Output loops nest in the order of their axes; the loops of a reduction stand where its operands' output loops are open,
and all reductions over the same ranges share one nest.
"""
from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from tinyhw.ir.dtype import dtypes
from tinyhw.ir.uop import Axis, Ops, UOp


@dataclass(eq=False)
class _Nest:
  """The loops of one or more reductions, and what stands in them."""
  loops: list[UOp]
  depth: int = 0                                 # output loops that are open around it
  body: list[UOp] = field(default_factory=list)  # in the order of the graph
  outside: dict[UOp, None] = field(default_factory=dict)   # nodes that the body needs from outside
  stores: bool = False                           # whether it is there for what it stores


def _loops(u: UOp) -> tuple[UOp, ...]:
  """The loops that a node ends: those of a reduction, of the stores before a BARRIER, or its own of kind ORDER."""
  if u.op is Ops.STORE: return tuple(r for r in u.ranges if r.op is Ops.RANGE and r.arg.kind is Axis.ORDER)
  return tuple(s for s in u.src if s.op is Ops.RANGE) if u.op is Ops.REDUCE or u.op is Ops.BARRIER else ()


class _Linearizer:
  def __init__(self, sink: UOp) -> None:
    self.nodes = list(sink.toposort())
    loops = [u for u in self.nodes if u.op is Ops.RANGE]
    self.outer = sorted((r for r in loops if r.arg.kind is Axis.LOOP), key=lambda r: int(r.arg.axis))
    self.level = {r: i + 1 for i, r in enumerate(self.outer)}
    self.nest_of: dict[UOp, _Nest] = {}          # by range
    self.nests: list[_Nest] = []
    for u in self.nodes:
      if not (loops_ := _loops(u)) or loops_[0] in self.nest_of: continue
      nest = _Nest(sorted(loops_, key=lambda r: int(r.arg.axis)), stores=u.op is Ops.STORE)
      self.nests.append(nest)
      for r in nest.loops: self.nest_of[r] = nest
    # A register is set up before its loops.
    self.inside: dict[UOp, _Nest | None] = {
      u: next((self.nest_of[r] for r in u.ranges if r in self.nest_of), None)
      if u.op not in (Ops.DEFINE_ACC, Ops.SINK) else None for u in self.nodes}
    self.follow_memory()
    for u in self.nodes:
      if (nest_ := self.inside[u]) is None: continue
      if u.op is not Ops.RANGE: nest_.body.append(u)
      for s in u.src:
        if self.inside[s] is not nest_: nest_.outside[s] = None
    self.depth: dict[UOp, int] = {}
    self.place()
    self.out: list[UOp] = []
    self.final: dict[UOp, UOp] = {}

  def follow_memory(self) -> None:
    """What a loop loads of the memory that it stores to is loaded in each iteration, also where the place stays."""
    changed = {u.src[0].src[0]: self.nest_of[_loops(u)[0]] for u in self.nodes if u.op is Ops.STORE and _loops(u)}
    for u in self.nodes if changed else ():
      if self.inside[u] is not None or u.op is Ops.SINK: continue
      if u.op is Ops.LOAD: self.inside[u] = changed.get(u.src[0].src[0])
      else: self.inside[u] = next((nest for s in u.src if (nest := self.inside[s]) is not None and nest.stores), None)

  def place(self) -> None:
    """Gives every node and nest the number of output loops around it: the least that its operands allow."""
    while True:
      before = [n.depth for n in self.nests]
      for u in self.nodes:
        own = max((self.level.get(r, 0) for r in u.ranges), default=0)
        self.depth[u] = max([own, *(self.depth[s] for s in u.src)])
        if (nest := self.inside[u]) is not None: nest.depth = max(nest.depth, self.depth[u])
        if u.op is not Ops.STORE and (loops_ := _loops(u)):
          self.depth[u] = max(self.depth[u], self.nest_of[loops_[0]].depth)
      if before == [n.depth for n in self.nests]: break
    # A register is set anew in each iteration of the loops around its nest.
    for u in self.nodes:
      if u.op is Ops.REDUCE: self.depth[u.src[0].src[0]] = self.nest_of[u.src[1]].depth

  def emit(self, u: UOp) -> None:
    """Appends a node, with the results of reductions in place of REDUCEs."""
    if u.op is Ops.REDUCE:
      self.final[u] = self.final[u.src[0]]
      return
    sources = u.src[:1] if u.op is Ops.DEFINE_ACC else u.src
    if u.op is Ops.STORE: sources = u.src[:2]
    if u.op is Ops.BARRIER: sources = tuple(s for s in sources if s.op is Ops.STORE)
    src = tuple(self.final[s] for s in sources)
    self.final[u] = new = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
    self.out.append(new)

  def emit_nest(self, nest: _Nest) -> None:
    """Appends the loops of a nest with their bodies."""
    level = {r: i for i, r in enumerate(nest.loops)}
    for i, r in enumerate(nest.loops):
      self.emit(r)
      for u in nest.body:
        if max((level[s] for s in u.ranges if s in level), default=0) == i: self.emit(u)
    for r in reversed(nest.loops): self.out.append(UOp(Ops.ENDRANGE, dtypes.void, (self.final[r],)))

  def run(self) -> tuple[UOp, ...]:
    """The program."""
    done: set[Hashable] = set()
    for d in range(len(self.outer) + 1):
      if d: self.emit(self.outer[d - 1])
      for u in self.nodes:
        if self.inside[u] is None and self.depth[u] == d and u.op is not Ops.SINK: self.unit(u, d, done)
      for nest in self.nests:
        if nest.stores and nest.depth == d: self.unit(nest, d, done)
    for r in reversed(self.outer): self.out.append(UOp(Ops.ENDRANGE, dtypes.void, (self.final[r],)))
    return tuple(self.out)

  def unit(self, first: UOp | _Nest, depth: int, done: set[Hashable]) -> None:
    """Appends a node of this depth after all that it needs at this depth."""
    stack: list[UOp | _Nest] = [first]
    while stack:
      unit = stack[-1]
      if unit in done:
        stack.pop()
        continue
      if isinstance(unit, _Nest): sources: list[UOp] = list(unit.outside)
      else: sources = list(unit.src[:1] if unit.op is Ops.DEFINE_ACC else unit.src)
      needs: list[UOp | _Nest] = []
      for s in sources:
        owner = self.inside[s]
        if owner is not None:
          if owner not in done and owner.depth == depth: needs.append(owner)
        elif s not in done and self.depth[s] == depth and s not in self.level: needs.append(s)
      if needs:
        stack += needs[::-1]
        continue
      done.add(unit)
      stack.pop()
      if isinstance(unit, _Nest): self.emit_nest(unit)
      elif unit not in self.level: self.emit(unit)


def linearize(sink: UOp) -> tuple[UOp, ...]:
  """The linear program of an expanded graph."""
  return _Linearizer(sink).run()
