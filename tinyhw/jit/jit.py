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
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from tinyhw.core.environment import variable
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.locks import RECORDING, lock, shared_lock
from tinyhw.devices import watch
from tinyhw.devices.watch import watched, watching
from tinyhw.engine.realize import in_order, realize
from tinyhw.engine.run import shown
from tinyhw.function.core import TensorBase
from tinyhw.jit.arguments import Arguments, Call, Quick, rebuilt, tensors
from tinyhw.jit.capture import Capture, Outcome
from tinyhw.jit.direct import UNLIKE, Direct, direct
from tinyhw.jit.recording import Makes, Recording

Function = TypeVar("Function", bound=Callable[..., Any])
_recording = shared_lock(RECORDING)  # a recording changes the graphs of tensors that others may record too


class TinyJit(Generic[Function]):
  """`f = TinyJit(f)`, or as a decorator; each instance has its own of a method. `JIT=0` in the environment turns it
  off."""
  __slots__ = ("function", "capture", "_called", "_arguments", "_skip", "_methods", "_lock", "_quick", "_direct",
               "_leaves_gradients")

  def __init__(self, function: Function, method: bool = False, *, prune: bool = False):
    # Nothing is said by `prune`, tinygrad's wish that what depends on no argument is not done again: a replay reads
    # anew what may have changed, and the rest has the values that it had.
    self.function = function
    self._lock = lock()                       # held for each call
    self.capture: Capture | None = None
    self._called = False
    self._quick: Quick | None = None          # of the recorded call
    self._direct: Direct | None = None
    self._leaves_gradients = False            # whether the first call left gradients
    self._arguments = Arguments(function)
    self._skip = int(method)                  # arguments that belong to this TinyJit itself: an instance's own
    self._methods: dict[int, tuple[Callable[[], Any], TinyJit[Any]]] = {}

  def reset(self) -> None:
    """Forget what was recorded: the next call runs as it is again."""
    with self._lock: self._called, self.capture, self._quick, self._direct = False, None, None, None

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
    if self._direct is not None and not kwargs and not watch.active:
      with self._lock:
        if (replayed := self._direct) is not None and (result := replayed(args)) is not UNLIKE: return result
    if variable("JIT", b"JIT") == "0" or watching() is not None: return self.function(*args, **kwargs)
    with self._lock: return self._call(args, kwargs)

  def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if self.capture is not None and self._quick is not None and not kwargs and self._quick.serves(args):
      given = list(args[self._skip:])
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
    makes.forget_histories()
    self._leaves_gradients = makes.made_gradients()
    given = {id(inside[id(t)]): t for _, t in call.tensors}
    for _, t in call.tensors:
      if (shown := inside[id(t)]) is not t and shown._uop is not graphs[id(t)]: t.uop = shown._uop
    def outside(t: TensorBase) -> TensorBase:
      return given.get(id(t), t) if t.is_leaf or not makes.owns(t) else t._wrap(t._uop.detach())
    realize(*(found := tensors(result)))
    for t in found:
      if makes.owns(t): t._view = None        # as what replays give
    return rebuilt(result, outside)

  def _record(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = getattr(self.function, "__qualname__", type(self.function).__name__)
    recording = Recording(f"TinyJit({name})", self._leaves_gradients)
    inside = {id(t): recording.argument(i, place, t) for i, (place, t) in enumerate(call.tensors)}
    try:
      with watched(recording):
        outcome = Outcome(recording, self.function(*rebuilt(args, lambda t: inside[id(t)]),
                                                   **rebuilt(kwargs, lambda t: inside[id(t)])))
      if not recording.steps and not outcome:
        raise InvalidArgument("its function did no work on a device and gives nothing", where=recording.where)
      capture = Capture(call, recording, outcome)
    finally:
      recording.forget_histories()
      recording.leave()
    given = [t for _, t in call.tensors]
    result = outcome.give(given, lambda graph: graph)
    # The call was checked as it began; only now may the arguments go.
    self._quick = Quick.of(args, kwargs, capture.call, self._skip)
    capture.call.forget_tensors()
    self.capture, self._direct = capture, None if self._quick is None or shown() else direct(capture, self._quick)
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
