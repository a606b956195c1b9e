"""Schedules by the structure of a graph: what a program computes again and again is scheduled once.

`outline` says what the nodes that are to be computed look like, with the memory that they read numbered in the order in
which it is met, and so are the values of Variables. Graphs of one outline differ in memory and values alone; the
schedule of the first, kept in terms of the numbers (`Planned`), serves all of them. What is in the outline is all that
`schedule` sees: operations, types, arguments, and which memory and which values are the same.
"""
from __future__ import annotations

import math
import struct
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tinyhw.core.kept import Kept
from tinyhw.core.lazy import cached_property
from tinyhw.devices.buffer import Buffer, GroupBuffer, buffer_of, new_node, part_sizes
from tinyhw.devices.profile import span
from tinyhw.devices.registry import Device
from tinyhw.engine import arena
from tinyhw.engine.run import LoadedKernel, Step, kernels_for
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.group import Cut, is_group, members
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.size import Values, changed, highest, value_of, with_value
from tinyhw.ir.uop import UOp

if TYPE_CHECKING:
  from tinyhw.compile.spread import Spread

_LONGEST = 20_000  # nodes of an outline that is kept
_INT = frozenset({int})
_LAYOUTS = 8  # of the memory of one schedule

Move = tuple[Ops, DType, Any]
View = tuple[int, tuple[Move, ...]]
"""Movements of numbered memory, the first one first."""


@dataclass(eq=False)
class Outline:
  """Graphs with their memory and values numbered: in its rows, each DEFINE_VAR has the number of its value for it.
  `nodes`: sources first; `rows`: what each is, in terms of earlier ones."""
  nodes: list[UOp]
  rows: list[tuple[Any, ...]]
  memory: list[UOp]          # BUFFERs by number
  inputs: dict[int, int]     # place of a node that is in memory -> number
  over: set[int]             # places of nodes above one that is in memory without being it
  wanted: tuple[int, ...]    # places
  values: dict[UOp, int]     # DEFINE_VARs with their values -> number

  def numbered(self, variable: UOp) -> UOp:
    """The DEFINE_VAR as the rows have it."""
    if not variable.src: return variable
    return with_value(variable, self.values.setdefault(variable, len(self.values)))

  @property
  def key(self) -> Any: return self.wanted, tuple(self.rows)

  def buffers(self) -> list[Buffer]:
    """The numbered memory, where a group's counts as that of its members, one after the other."""
    found = [buffer_of(b) for b in self.memory]
    return found if not any(b.cut or is_group(b.device) for b in found) else [p for b in found for p in b.parts]


def _computed(u: UOp) -> tuple[UOp, ...]:
  """The sources that the value is computed of: those behind the first one of a DETACH are for gradients alone."""
  return u.src if u.op is not Ops.DETACH else u.src[:1]


def outline(wanted: Sequence[UOp], home: Callable[[UOp], UOp | None], may: Container[int] | None = None) -> Outline:
  """What the nodes look like down to those that have a `home`, the BUFFER that holds their elements. `may`: the ids of
  all nodes but BUFFERs that can have one."""
  place: dict[UOp, int] = {}
  number: dict[UOp, int] = {}
  rows: list[tuple[Any, ...]] = []
  inputs: dict[int, int] = {}
  over: set[int] = set()
  result = Outline([], rows, [], inputs, over, (), {})
  stack: list[UOp | None] = list(reversed(wanted))
  pop, push = stack.pop, stack.append
  while stack:
    if (u := pop()) is None:               # the next one's sources are done
      u = pop()
      assert u is not None
      if u in place: continue
    else:
      if u in place: continue
      if u.op is Ops.BUFFER: found: UOp | None = u
      else: found = home(u) if may is None or id(u) in may else None
      # A constant that somebody has put into memory is one all the same.
      if found is not None and u.op is not Ops.BUFFER and u.base.op is Ops.CONST: found = None
      if found is not None:
        at = inputs[len(rows)] = number.setdefault(found, len(number))
        if found is not u: over.add(len(rows))
        place[u] = len(rows)
        device, size, shape = found.arg.device, found.arg.size, u.shape
        if type(size) is not int: size = changed(size, result.numbered)
        if not _INT.issuperset(map(type, shape)): shape = changed(shape, result.numbered)
        rows.append((at, u.dtype, device, size, shape, found.arg.cut))
        continue
      if u.op is Ops.DEFINE_VAR:
        place[u] = len(rows)
        rows.append((u.op, result.numbered(u)))
        continue
      if u.src:
        push(u)
        push(None)
        for s in reversed(_computed(u)):
          if s not in place: push(s)
        continue
    sources = [place[s] for s in _computed(u)]
    if over and not over.isdisjoint(sources): over.add(len(rows))
    arg = u.arg
    if u.op in GroupOp.MOVEMENT:
      if not _INT.issuperset(map(type, arg)): arg = changed(arg, result.numbered)
    elif u.op is Ops.DETACH or u.op is Ops.CONTIGUOUS: arg = None  # it is for gradients, too
    # A float is known by its bits: 0.0 equals -0.0, and NaN differs from itself.
    elif type(arg) is float: arg = struct.pack("<d", arg)
    place[u] = len(rows)
    rows.append((u.op, u.dtype, arg, *sources))
  result.nodes, result.memory, result.wanted = list(place), list(number), tuple(place[u] for u in wanted)
  return result


@dataclass(eq=False)
class Item:
  """A kernel, or a copy, over numbered memory."""
  ast: UOp
  device: str
  buffers: tuple[int, ...]
  values: Values             # numbers of values

  @property
  def kernel(self) -> LoadedKernel | None:
    """The kernel, where its device has it."""
    opened = Device.get(self.device)
    return None if opened is None else opened.kernels.get(self.ast)


class Grouped(NamedTuple):
  """A node on a group of devices that is in memory now: its place in the outline, and its parts' numbers."""
  place: int
  numbers: tuple[int, ...]
  device: str
  size: int
  dtype: DType
  cut: Cut | None


@dataclass(eq=False)
class Planned:
  """A schedule over numbered memory: first what the graph reads (`Outline.buffers`), then what is `made`."""
  items: list[Item]
  made: list[tuple[str, int, DType]]
  outputs: list[tuple[int, View]] = field(default_factory=list)
  """Places of the outline's nodes that are in memory now, and where."""
  grouped: list[Grouped] = field(default_factory=list)
  _shared: Kept[frozenset[int], tuple[dict[int, int], list[arena.SharedPlace]]] = field(
    default_factory=lambda: Kept(_LAYOUTS))

  @cached_property
  def room(self) -> int:
    """Bytes of everything that is made."""
    return sum(highest(size) * dtype.itemsize for _, size, dtype in self.made)

  def shared(self, read: int, kept: frozenset[int]) -> tuple[dict[int, int], list[arena.SharedPlace]]:
    """Where what is made besides the `kept` numbers may lie together (`arena.places`). `read`: how many are read."""
    if (known := self._shared.get(kept)) is not None: return known
    loose = [(n, device, highest(size) * dtype.itemsize) for n, (device, size, dtype) in enumerate(self.made, read)
             if n not in kept]
    return self._shared.keep(kept, arena.places(arena.lives([i.buffers for i in self.items], loose)))

  def run(self, memory: Sequence[Buffer], values: Sequence[int], go: Callable[[list[Step]], None],
          kept: frozenset[int] | None = None) -> list[Buffer]:
    """Do it with this memory for what the graph reads, and these values by number; all numbered memory. Only the values
    of `kept` numbers are there afterwards, if they are said."""
    made_now = self.made if not values else [(d, changed(size, _valued(values)), t) for d, size, t in self.made]
    place, places = ({}, []) if kept is None else self.shared(len(memory), kept)
    areas = [Buffer(p.device, p.nbytes, dtypes.uint8) for p in places]
    buffers = [*memory, *(Buffer(*row) if (at := place.get(n)) is None else areas[at].sharing(*row[1:])
                          for n, row in enumerate(made_now, len(memory)))]
    kernels = [None if i.ast.op is Ops.COPY else i.kernel for i in self.items]
    missing = [n for n, i in enumerate(self.items) if kernels[n] is None and i.ast.op is not Ops.COPY]
    if missing:
      made = kernels_for([(self.items[n].ast, self.items[n].device) for n in missing])
      for n, kernel in zip(missing, made): kernels[n] = kernel
    steps = [Step.of(k, tuple([buffers[n] for n in i.buffers]), {v: values[n] for v, n in i.values.items()})
             for k, i in zip(kernels, self.items)]
    go(steps)
    return buffers

  def places(self, memory: Sequence[UOp | None], values: Sequence[int], buffers: Sequence[Buffer],
             kept: frozenset[int] | None = None) -> list[tuple[int, UOp]]:
    """After `run`: the graph over memory that each computed node has become. `memory` are the nodes of what was read,
    where it has one."""
    change = _valued(values)
    nodes = {n: node for n, node in enumerate(memory) if node is not None}
    found = []
    for place, (number, moves) in self.outputs:
      if kept is not None and number >= len(memory) and number not in kept: continue
      node = nodes.get(number)
      if node is None: node = nodes[number] = new_node(buffers[number])
      for op, dtype, arg in moves: node = UOp(op, dtype, (node,), changed(arg, change) if values else arg)
      found.append((place, node))
    for g in self.grouped:
      parts = [buffers[n] for n in g.numbers]
      size = changed(g.size, change) if values else g.size
      found.append((g.place, new_node(GroupBuffer(g.device, size, g.dtype, g.cut, parts))))
    return found


def _valued(values: Sequence[int]) -> Callable[[UOp], UOp]:
  """What gives DEFINE_VARs, which have numbers for values, the values of these numbers."""
  return lambda v: with_value(v, values[value_of(v)]) if v.src else v


_planned: Kept[Any, Planned] = Kept(1024)


def planned(graph: Outline) -> Planned:
  """The schedule for graphs of this outline."""
  key = graph.key
  if (known := _planned.get(key)) is not None: return known
  with span("schedule", "schedule", nodes=len(graph.rows)): made = _plan(graph)
  return made if len(graph.rows) > _LONGEST else _planned.keep(key, made)


def _plan(graph: Outline) -> Planned:
  """Schedule the graph with other memory in the place of its own, so that nothing of this one is kept alive."""
  from tinyhw.compile import schedule
  memory = [UOp.new_buffer(b.arg.device, changed(b.arg.size, graph.numbered), b.dtype, b.arg.cut) for b in graph.memory]
  split = {b: _members(b) if is_group(b.arg.device) else [b] for b in memory}
  number, nodes = {part: k for k, part in enumerate(p for b in memory for p in split[b])}, list[UOp]()
  for at, (u, row) in enumerate(zip(graph.nodes, graph.rows)):
    if at in graph.inputs: nodes.append(memory[graph.inputs[at]].reshape(row[4]))
    elif u.op is Ops.DEFINE_VAR: nodes.append(row[1])
    else:
      arg = row[2] if u.op in GroupOp.MOVEMENT else u.arg
      nodes.append(UOp(u.op, u.dtype, tuple(nodes[k] for k in row[3:]), arg))
  wanted = {nodes[k] for k in graph.wanted}
  becomes: dict[UOp, Spread] = {}
  if any(is_group(u.device) for u in nodes):
    from tinyhw.compile.spread import Parts, spread
    becomes = spread([nodes[k] for k in graph.wanted], split)
    for u in wanted:
      if isinstance(found := becomes[u], Parts): becomes[u] = found.each(UOp.contiguous, found.axis)
  def roots(u: UOp) -> tuple[UOp, ...]:
    found = becomes.get(u, u)
    return (found,) if isinstance(found, UOp) else found.nodes
  plan = schedule(list(dict.fromkeys(r for k in graph.wanted for r in roots(nodes[k]))))
  made: list[tuple[str, int, DType]] = []

  def numbered(buffer: UOp) -> int:
    if (known := number.get(buffer)) is None:
      known = number[buffer] = len(number)
      made.append((buffer.arg.device, buffer.arg.size, buffer.dtype))
    return known

  def view(node: UOp) -> View:
    moves: list[Move] = []
    while node.op is not Ops.BUFFER:
      assert node.op in GroupOp.MOVEMENT, f"{node.op.name} in what a schedule has made of a node"
      moves.append((node.op, node.dtype, node.arg))
      node = node.src[0]
    return numbered(node), tuple(reversed(moves))

  items = [Item(i.ast, i.device, tuple(numbered(b) for b in i.buffers), dict(i.values)) for i in plan.items]
  outputs, grouped = [], []
  for at, u in enumerate(nodes):
    # What was realized on the way need not be computed again, if it is the very node that others may ask for.
    if u not in wanted and (at in graph.inputs or at in graph.over or not all(r in plan.becomes for r in roots(u))):
      continue
    views = [view(plan.becomes.get(r, r)) for r in roots(u)]
    if isinstance(parts := becomes.get(u, u), UOp): outputs.append((at, views[0]))
    elif all(op is Ops.RESHAPE for _, moves in views for op, _, _ in moves):
      cut = None if parts.axis is None else (math.prod(u.shape[:parts.axis]), parts.sizes)
      grouped.append(Grouped(at, tuple(n for n, _ in views), str(u.device), u.size, u.dtype, cut))
  return Planned(items, made, outputs, grouped)


def _members(buffer: UOp) -> list[UOp]:
  """Memory on each device of a group."""
  arg = buffer.arg
  return [UOp.new_buffer(d, n, buffer.dtype)
          for d, n in zip(members(arg.device), part_sizes(arg.device, arg.size, arg.cut))]
