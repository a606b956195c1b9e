"""What a recorded call of TinyJit was: the steps, what they read, and what they leave behind."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from tinyhw.core.errors import InvalidArgument, ValueLost
from tinyhw.devices.buffer import Buffer, GroupBuffer, buffer_of, memory, new_node
from tinyhw.engine import arena
from tinyhw.engine.binding import with_present_value
from tinyhw.engine.realize import forget, placed, realize
from tinyhw.engine.run import Step
from tinyhw.function import random
from tinyhw.function.core import TensorBase
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.size import changed, substituted
from tinyhw.ir.uop import UOp
from tinyhw.jit.arguments import Call, rebuilt, tensors
from tinyhw.jit.recording import Recording, Slot
from tinyhw.jit.replay import Replay

Graph = Callable[[UOp], UOp]
Template = tuple[UOp | None, tuple[tuple[Ops, DType, Any], ...]]


@dataclass(eq=False)
class Made:
  """A tensor that the function made: its graph over memory, where a replay puts other memory."""
  cls: type[TensorBase]
  graph: UOp
  requires_grad: bool
  grad: Place | None

  def graphs(self) -> list[UOp]:
    """Its graph and that of its gradient."""
    return [self.graph, *(self.grad.graphs() if isinstance(self.grad, Made) else [])]


Place = Slot | Made
"""Where a replay finds a tensor of its outcome."""


class Outcome:
  """What a recorded call leaves behind. Made inside of the recording: what is not in memory yet, is computed."""

  def __init__(self, recording: Recording, result: Any):
    self._recording = recording
    self._places: dict[int, Place] = {}
    leaves = recording.left_gradients()
    new = [*tensors(result), *(g.leaf.grad for g in leaves if g.leaf.grad is not None)]
    new += [t.grad for t in new if t.grad is not None]
    realize(*new, *(s.shown for s in recording.slots.values() if s.shown is not None and s.changed))
    for t in new:
      if recording.owns(t): t._view = None  # replays make values of their own
    self.result = rebuilt(result, self._place)
    self.gradients = [(g.slot or recording.slot(g.leaf), None if g.leaf.grad is None else self._place(g.leaf.grad),
                       g.before is None) for g in leaves]
    """(leaf, its new gradient or None, whether it had none before)"""
    self.values = [(s, _in_place(s.shown)) for s in recording.slots.values() if s.shown is not None and s.changed]
    recording.check_ends(set(self._places))

  def _place(self, tensor: TensorBase) -> Place:
    if (found := self._places.get(id(tensor))) is not None: return found
    if not self._recording.owns(tensor): found = self._recording.slot(tensor)
    else:
      found = Made(type(tensor), _in_place(tensor), tensor.requires_grad and tensor.is_leaf, None)
      if tensor.grad is not None: found.grad = self._place(tensor.grad)
    self._places[id(tensor)] = found
    return found

  def __bool__(self) -> bool: return bool(self._places or self.values or self.gradients)

  def made(self) -> list[Made]:
    """The tensors that each replay makes."""
    return [p for p in self._places.values() if isinstance(p, Made)]

  def graphs(self) -> Iterable[UOp]:
    """The graphs of all values that it shows."""
    for made in self.made(): yield made.graph
    for _, graph in self.values: yield graph

  def give(self, given: Sequence[TensorBase], graph: Graph) -> Any:
    """Put the values where they belong, for a call with these arguments; returns the result."""
    made: dict[int, TensorBase] = {}
    def tensor(place: Place) -> TensorBase:
      if isinstance(place, Slot): return place.find(given)
      if (found := made.get(id(place))) is None:
        found = made[id(place)] = place.cls._wrap(graph(place.graph))
        if found.requires_grad is not place.requires_grad: found.requires_grad = place.requires_grad
        if place.grad is not None: found.grad = cast(Any, tensor(place.grad))
      return found
    for slot, value in self.values:
      if (target := slot.present(given)) is not None: target._given(graph(value))
    for slot, gradient, _ in self.gradients:
      if (leaf := slot.present(given)) is not None:
        leaf.grad = None if gradient is None else cast(Any, tensor(gradient))
    return _filled(self.result, tensor)


def _in_place(tensor: TensorBase) -> UOp:
  """The graph of a realized tensor, as movements of memory."""
  if not tensor.numel(): return UOp.const(tensor.dtype, 0, tensor._device, tensor.shape)
  found = placed(tensor._uop)
  assert found is not None, "it was realized"
  return found


def _filled(thing: Any, tensor: Callable[[Place], TensorBase]) -> Any:
  """A result with tensors in their places."""
  return rebuilt(thing, tensor, (Slot, Made))


class Capture:
  """The steps of one call with all that another call has to put in other places."""
  __slots__ = ("call", "where", "plan", "outcome", "keys", "fresh", "slots", "arguments", "devices", "_templates",
               "__weakref__")

  def __init__(self, call: Call, recording: Recording, outcome: Outcome):
    self.call, self.where, self.outcome, steps = call, recording.where, outcome, recording.steps
    self._templates: dict[UOp, Template] = {}
    shown = {b for g in outcome.graphs() for u in g.toposort() if u.op is Ops.BUFFER for b in buffer_of(u).parts}
    written = {b for s in steps for b in s.written}
    used = shown.union(*(s.buffers for s in steps))
    self.keys = [(key, not used.isdisjoint(key.parts)) for key in recording.keys]
    self.fresh = [b for b in dict.fromkeys(b for s in steps for b in s.written) if b in shown]
    self.slots = [s for s in recording.slots.values()
                  if s.fixed or s.alias is not None and not used.isdisjoint(s.alias.parts)]
    self.arguments = [s for s in recording.slots.values() if s.argument is not None]
    self.devices = list(dict.fromkeys(s.kernel.device for s in steps if s.kernel is not None))
    self.plan = Replay(_together(steps, written - shown))
    forget(written - shown)   # each replay writes it again: no node of a graph may be said to be there

  def replay(self, given: Sequence[TensorBase]) -> Any:
    """Do it again with other arguments."""
    for device in self.devices:
      if device.closed:
        raise ValueLost(f"what {self.where} recorded went when the device was {device.closed}", where=device.name,
                        hint="reset() it, and give it tensors of the new device")
    swap: dict[int, Buffer] = {}
    def put(old: Buffer, new: Buffer) -> None: swap.update(zip(map(id, old.parts), new.parts))
    for slot in self.slots:
      if slot.alias is not None: put(slot.alias, slot.memory(slot.find(given)))
    for leaf, _, had_none in self.outcome.gradients:
      if had_none and (holder := leaf.present(given)) is not None and holder.grad is not None:
        raise InvalidArgument(f"{leaf.place} had no gradient when it was recorded, and has one now", where=self.where,
                              hint="call zero_grad() at the same place each time")
    for key, used in self.keys:
      data = random.generator.next()
      if used: put(key, memory(key.device, key.size, key.dtype).copyin(memoryview(data)))
    for b in self.fresh: swap[id(b)] = Buffer(b.device, changed(b.size, with_present_value), b.dtype)
    self.plan.run(swap)
    nodes: dict[UOp, UOp] = {}
    def graph(template: UOp) -> UOp:
      base, moves = self._templates.get(template) or self._template(template)
      if base is None: return substituted(template, {}, with_present_value) if template.variables else template
      if (found := nodes.get(base)) is None:
        found = nodes[base] = _swapped(base, swap)
      for op, dtype, arg in moves:
        found = UOp(op, dtype, (found,), changed(arg, with_present_value) if template.variables else arg)
      return found
    return self.outcome.give(given, graph)

  def _template(self, graph: UOp) -> Template:
    """A graph over memory as movements of a BUFFER; None for one that has no memory."""
    moves: list[tuple[Ops, DType, Any]] = []
    u = graph
    while u.op in GroupOp.MOVEMENT:
      moves.append((u.op, u.dtype, u.arg))
      u = u.src[0]
    made = self._templates[graph] = (u if u.op is Ops.BUFFER else None), tuple(reversed(moves))
    return made


def _swapped(base: UOp, swap: dict[int, Buffer]) -> UOp:
  """A BUFFER over the memory that a replay has in the place of its own."""
  old = buffer_of(base)
  new = [swap.get(id(p), p) for p in old.parts]
  if all(p is q for p, q in zip(old.parts, new)): return base
  return new_node(new[0] if old is old.parts[0] else GroupBuffer(old.device, old.size, old.dtype, old.cut, new))


def _together(steps: list[Step], loose: set[Buffer]) -> list[Step]:
  """The steps with those buffers, which nobody sees, in memory that they share."""
  if not arena.planning(): return steps
  number = {b: n for n, b in enumerate(dict.fromkeys(b for s in steps for b in s.buffers))}
  wanted = [(n, b.device, b.nbytes) for b, n in number.items() if b in loose]
  place, places = arena.places(arena.lives([[number[b] for b in s.buffers] for s in steps], wanted))
  areas = [Buffer(p.device, p.nbytes, dtypes.uint8) for p in places]
  now = {b: areas[at].sharing(b.size, b.dtype) for b, n in number.items() if (at := place.get(n)) is not None}
  return [Step(s.kernel, tuple([now.get(b, b) for b in s.buffers]), s.values) for s in steps]
