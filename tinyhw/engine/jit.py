"""TinyJit: runs a function once as it is, records the second call's work, and from the third call on only replays it.

A call gives what the function itself would give, or raises. The function takes Tensors, and other arguments that stay
the same; it returns Tensors, or lists, tuples and dictionaries of them. A replay reads anew what the function reads:
its arguments, every tensor that existed before the recorded call (parameters, optimizer state), the values of
Variables, and random numbers. It gives new values to the tensors that the function assigned to, to the gradients that
it left, and to its results, which are new tensors each time. Nothing is overwritten: whatever else was made from a
value keeps it.

What a replay cannot do again is refused while it is recorded: reading a value into Python (`item`, `numpy`), keeping a
tensor where only Python knows of it, a gradient through a tensor that was computed outside. Arguments and results carry
no history. What the function does beside computing tensors happens in the first two calls only. A TinyJit that is
called while another one records is a part of that one.

Threads may share a TinyJit: its calls take turns. A recording belongs to its thread, and there is one at a time: what
other threads do meanwhile is not part of it. A function that waits, while it is recorded, for a thread that records
waits for ever.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from tinyhw.core.environment import variable
from tinyhw.core.errors import InvalidArgument, ValueLost
from tinyhw.core.locks import RECORDING, lock, shared_lock
from tinyhw.engine import arena, random
from tinyhw.engine.arguments import Arguments, Call, Quick, rebuilt, tensors
from tinyhw.engine.binding import with_present_value
from tinyhw.engine.buffer import Buffer, buffer_of, new_node
from tinyhw.engine.realize import forget, in_order, placed, realize
from tinyhw.engine.recording import Makes, Recording, Slot
from tinyhw.engine.replay import Replay
from tinyhw.engine.run import Step
from tinyhw.engine.watch import watched, watching
from tinyhw.function.core import TensorBase
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.size import changed, substituted
from tinyhw.ir.uop import UOp

Function = TypeVar("Function", bound=Callable[..., Any])
Graph = Callable[[UOp], UOp]
Template = tuple[UOp | None, tuple[tuple[Ops, DType, Any], ...]]
_recording = shared_lock(RECORDING)  # a recording changes the graphs of tensors that others may record too


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

  def graphs(self) -> Iterable[UOp]:
    """The graphs of all values that it shows."""
    for place in self._places.values():
      if isinstance(place, Made): yield place.graph
    for _, graph in self.values: yield graph

  def give(self, given: list[TensorBase], graph: Graph) -> Any:
    """Put the values where they belong, for a call with these arguments; returns the result."""
    made: dict[int, TensorBase] = {}
    def tensor(place: Place) -> TensorBase:
      if isinstance(place, Slot): return place.find(given)
      if (found := made.get(id(place))) is None:
        found = made[id(place)] = place.cls._wrap(graph(place.graph))
        found.requires_grad = place.requires_grad
        if place.grad is not None: found.grad = cast(Any, tensor(place.grad))
      return found
    for slot, value in self.values:
      if (target := slot.present(given)) is not None: target.uop = graph(value)
    for slot, gradient, _ in self.gradients:
      if (leaf := slot.present(given)) is not None:
        leaf.grad = None if gradient is None else cast(Any, tensor(gradient))
    return _filled(self.result, tensor)


def _in_place(tensor: TensorBase) -> UOp:
  """The graph of a realized tensor, as movements of memory."""
  if not tensor.numel(): return UOp.const(tensor.dtype, 0, tensor.device, tensor.shape)
  found = placed(tensor._uop)
  assert found is not None, "it was realized"
  return found


def _filled(thing: Any, tensor: Callable[[Place], TensorBase]) -> Any:
  """A result with tensors in their places."""
  return rebuilt(thing, tensor, (Slot, Made))


class Capture:
  """The steps of one call with all that another call has to put in other places."""
  __slots__ = ("call", "where", "plan", "outcome", "keys", "fresh", "slots", "devices", "_templates")

  def __init__(self, call: Call, recording: Recording, outcome: Outcome):
    self.call, self.where, self.outcome, steps = call, recording.where, outcome, recording.steps
    self._templates: dict[UOp, Template] = {}
    shown = {buffer_of(u) for g in outcome.graphs() for u in g.toposort() if u.op is Ops.BUFFER}
    written = {b for s in steps for b in s.written}
    used = shown.union(*(s.buffers for s in steps))
    self.keys = [(key, key in used) for key in recording.keys]
    self.fresh = [b for b in dict.fromkeys(b for s in steps for b in s.written) if b in shown]
    self.slots = [s for s in recording.slots.values() if s.alias in used or s.fixed]
    self.devices = list(dict.fromkeys(s.kernel.device for s in steps if s.kernel is not None))
    self.plan = Replay(_together(steps, written - shown))
    forget(written - shown)   # each replay writes it again: no node of a graph may be said to be there

  def replay(self, given: list[TensorBase]) -> Any:
    """Do it again with other arguments."""
    for device in self.devices:
      if device.closed:
        raise ValueLost(f"what {self.where} recorded went when the device was {device.closed}", where=device.name,
                        hint="reset() it, and give it tensors of the new device")
    swap = {id(slot.alias): slot.memory(slot.find(given)) for slot in self.slots if slot.alias is not None}
    for leaf, _, had_none in self.outcome.gradients:
      if had_none and (holder := leaf.present(given)) is not None and holder.grad is not None:
        raise InvalidArgument(f"{leaf.place} had no gradient when it was recorded, and has one now", where=self.where,
                              hint="call zero_grad() at the same place each time")
    for key, used in self.keys:
      data = random.generator.next()
      if used: swap[id(key)] = Buffer(key.device, key.size, key.dtype).copyin(memoryview(data))
    for b in self.fresh: swap[id(b)] = Buffer(b.device, changed(b.size, with_present_value), b.dtype)
    self.plan.run(swap)
    nodes: dict[UOp, UOp] = {}
    def graph(template: UOp) -> UOp:
      base, moves = self._templates.get(template) or self._template(template)
      if base is None: return substituted(template, {}, with_present_value) if template.variables else template
      if (found := nodes.get(base)) is None:
        memory = swap.get(id(buffer_of(base)))
        found = nodes[base] = base if memory is None else new_node(memory)
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


def _together(steps: list[Step], loose: set[Buffer]) -> list[Step]:
  """The steps with those buffers, which nobody sees, in memory that they share."""
  if not arena.planning(): return steps
  number = {b: n for n, b in enumerate(dict.fromkeys(b for s in steps for b in s.buffers))}
  wanted = [(n, b.device, b.nbytes) for b, n in number.items() if b in loose]
  place, places = arena.places(arena.lives([[number[b] for b in s.buffers] for s in steps], wanted))
  areas = [Buffer(p.device, p.nbytes, dtypes.uint8) for p in places]
  now = {b: areas[at].sharing(b.size, b.dtype) for b, n in number.items() if (at := place.get(n)) is not None}
  return [Step(s.kernel, tuple([now.get(b, b) for b in s.buffers]), s.values) for s in steps]


class TinyJit(Generic[Function]):
  """`f = TinyJit(f)`, or as a decorator; each instance has its own of a method. `JIT=0` in the environment turns it
  off."""
  __slots__ = ("function", "capture", "_called", "_arguments", "_skip", "_methods", "_lock", "_quick")

  def __init__(self, function: Function, method: bool = False):
    self.function = function
    self._lock = lock()                       # held for each call
    self.capture: Capture | None = None
    self._called = False
    self._quick: Quick | None = None          # of the recorded call
    self._arguments = Arguments(function)
    self._skip = int(method)                  # arguments that belong to this TinyJit itself: an instance's own
    self._methods: dict[int, tuple[Callable[[], Any], TinyJit[Any]]] = {}

  def reset(self) -> None:
    """Forget what was recorded: the next call runs as it is again."""
    with self._lock: self._called, self.capture, self._quick = False, None, None

  @property
  def captured(self) -> bool:
    """Whether calls replay."""
    return self.capture is not None

  def __get__(self, instance: Any, owner: Any = None) -> Any:
    if instance is None: return self
    with self._lock:
      found = self._methods.get(id(instance))
      if found is None or found[0]() is not instance:
        found = self._methods[id(instance)] = self._reference(instance), TinyJit(self.function, True)
      return _Bound(found[1], instance)

  def _reference(self, instance: Any) -> Callable[[], Any]:
    """A weak reference that forgets the instance's TinyJit with it."""
    key = id(instance)
    try: return weakref.ref(instance, lambda _: self._methods.pop(key, None))
    except TypeError: return lambda: instance  # it cannot be referred to weakly, so it stays

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    if variable("JIT", b"JIT") == "0" or watching() is not None: return self.function(*args, **kwargs)
    with self._lock: return self._call(args, kwargs)

  def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if self.capture is not None and self._quick is not None and not kwargs and self._quick.serves(args):
      given = list(args)
      if not all(in_order(t._uop) for t in given): realize(*given)
      return self.capture.replay(given)
    call = self._arguments.call(args, kwargs, self._skip)
    if self.capture is not None: self.capture.call.check(call, self.capture.where)
    given = [t for _, t in call.tensors]
    realize(*given)                           # all in one schedule
    if self.capture is not None: return self.capture.replay(given)
    if self._called:
      with _recording: return self._record(call, args, kwargs)
    result = self._first(call, args, kwargs)
    self._called = True
    return result

  def _first(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The first call: nothing but that histories stay on their side."""
    inside = {id(t): t if t.is_leaf else t._wrap(t._uop.detach()) for _, t in call.tensors}
    graphs = {id(t): inside[id(t)]._uop for _, t in call.tensors}
    with watched(makes := Makes()):
      result = self.function(*rebuilt(args, lambda t: inside[id(t)]), **rebuilt(kwargs, lambda t: inside[id(t)]))
    given = {id(inside[id(t)]): t for _, t in call.tensors}
    for _, t in call.tensors:
      if (shown := inside[id(t)]) is not t and shown._uop is not graphs[id(t)]: t.uop = shown._uop
    def outside(t: TensorBase) -> TensorBase:
      return given.get(id(t), t) if t.is_leaf or not makes.owns(t) else t._wrap(t._uop.detach())
    realize(*tensors(result))
    return rebuilt(result, outside)

  def _record(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = getattr(self.function, "__qualname__", type(self.function).__name__)
    recording = Recording(f"TinyJit({name})")
    inside = {id(t): recording.argument(i, place, t) for i, (place, t) in enumerate(call.tensors)}
    try:
      with watched(recording):
        outcome = Outcome(recording, self.function(*rebuilt(args, lambda t: inside[id(t)]),
                                                   **rebuilt(kwargs, lambda t: inside[id(t)])))
      if not recording.steps and not outcome:
        raise InvalidArgument("its function did no work on a device and gives nothing", where=recording.where)
      capture = Capture(call, recording, outcome)
    finally: recording.leave()
    given = [t for _, t in call.tensors]
    result = outcome.give(given, lambda graph: graph)
    # The call was checked as it began; only now may the arguments go.
    self._quick = Quick.of(args, kwargs, capture.call)
    capture.call.forget_tensors()
    self.capture = capture
    return result


class _Bound:
  """A TinyJit looked up on an instance: calls pass the instance first."""
  __slots__ = ("jit", "instance")

  def __init__(self, jit: TinyJit[Any], instance: Any): self.jit, self.instance = jit, instance
  def __call__(self, *args: Any, **kwargs: Any) -> Any: return self.jit(self.instance, *args, **kwargs)
  def __getattr__(self, name: str) -> Any: return getattr(self.jit, name)


def jit(function: Function) -> Function:
  """TinyJit as a decorator that keeps the function's type."""
  return cast(Function, TinyJit(function))
