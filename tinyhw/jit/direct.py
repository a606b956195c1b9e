"""Replays without a graph: one call of native code, and tensors that are memory until somebody asks for their node.

A `Direct` does what `Capture.replay` does, for captures whose launches a driver can take as one function
(`Runner.prepared`) and that have nothing of Variables in them. It first sees, by comparing objects, whether everything
is as it has to be. Where something is not, it has done nothing: the capture does that call, or says what is wrong.
"""
from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tinyhw.devices.buffer import Buffer, BufferView, buffer_of
from tinyhw.engine.run import listened
from tinyhw.function import random
from tinyhw.function.core import TensorBase
from tinyhw.ir.ops import Ops
from tinyhw.jit.arguments import rebuilt, state
from tinyhw.jit.capture import Capture, Made
from tinyhw.jit.recording import Slot

if TYPE_CHECKING:
  from tinyhw.ir.uop import UOp
  from tinyhw.jit.arguments import Quick


class Unlike(enum.Enum):
  """In the place of a result: the call is not one that can be replayed directly."""
  UNLIKE = "unlike"


UNLIKE: Final = Unlike.UNLIKE
Place = tuple[int, BufferView]
"""Where a value is after a replay: the number of a buffer, and what it looks like there."""


class Direct:
  """See the module. Made by `direct`; who calls it holds the lock of the TinyJit."""
  __slots__ = ("_state", "_skip", "_arguments", "_slots", "_empty", "_keys", "_fresh", "_launch", "_launched",
               "_device", "_single", "_result", "_values", "_gradients", "_places")

  def __init__(self, capture: Capture, quick: Quick, launch: Callable[..., object], launched: Sequence[int],
               number: dict[int, int]) -> None:
    outcome = capture.outcome
    self._state, self._skip, self._device = quick.state, quick.skip, capture.devices[0]
    self._arguments = capture.arguments
    self._slots = [s for s in capture.slots if s.argument is None]
    self._empty = [slot for slot, _, had_none in outcome.gradients if had_none]
    self._keys = [key if used else None for key, used in capture.keys]
    self._fresh = [(b.size, b.dtype, b.nbytes) for b in capture.fresh]
    self._launch, self._launched = launch, None if [*launched] == [*range(len(number))] else launched
    def place(graph: UOp) -> Place: return number[id(buffer_of(graph.base))], BufferView(graph)
    made = outcome.made()
    self._places = {id(m): place(m.graph) for m in made}
    self._values = [(slot, *place(graph)) for slot, graph in outcome.values]
    self._gradients = [(slot, gradient) for slot, gradient, _ in outcome.gradients]
    self._result, self._single = outcome.result, None
    if [outcome.result] == made and not self._values and not self._gradients and not made[0].requires_grad:
      self._single = made[0].cls, *self._places[id(made[0])]

  def __call__(self, args: tuple[Any, ...]) -> Any:
    """The result of a call with these arguments, or UNLIKE."""
    memory: list[Any] = []
    given, device = args[self._skip:], self._device
    if state() != self._state or len(given) != len(self._arguments) or device.closed or listened(): return UNLIKE
    for slot, t in zip(self._arguments, given):
      if not isinstance(t, TensorBase) or (found := slot.quick(t)) is None: return UNLIKE
      if found._owner is not device: return UNLIKE
      memory.append(found)
    if len(given) > 1 and len(set(map(id, given))) < len(given): return UNLIKE
    for slot in self._slots:
      tensor = slot.present(given)
      if tensor is None or (found := slot.quick(tensor)) is None or found._owner is not device: return UNLIKE
      memory.append(found)
    for slot in self._empty:
      if (leaf := slot.present(given)) is not None and leaf._grad is not None: return UNLIKE
    for key in self._keys:
      data = random.generator.next()
      if key is not None: memory.append(Buffer(key.device, key.size, key.dtype).copyin(memoryview(data)))
    name = device.name
    for size, dtype, nbytes in self._fresh:
      memory.append(new := Buffer(name, size, dtype))
      new._owner, new._allocation = device, device.alloc(nbytes)
    if self._launched is None: self._launch(*[b._allocation.address for b in memory])
    else: self._launch(*[memory[n]._allocation.address for n in self._launched])
    if self._single is None: return self._give(given, memory)
    cls, n, view = self._single
    return cls._holding((memory[n], view))

  def _give(self, given: Sequence[TensorBase], memory: Sequence[Buffer]) -> Any:
    """Put the values where they belong; the result."""
    made: dict[int, TensorBase] = {}
    def tensor(place: Slot | Made) -> Any:
      if isinstance(place, Slot): return place.find(given)
      if (found := made.get(id(place))) is None:
        n, view = self._places[id(place)]
        found = made[id(place)] = place.cls._holding((memory[n], view))
        if place.requires_grad: found.requires_grad = True
        if place.grad is not None: found._grad = tensor(place.grad)
      return found
    for slot, n, view in self._values:
      if (target := slot.present(given)) is not None:
        target._hold((memory[n], view))
        slot.view = view
    for slot, gradient in self._gradients:
      if (leaf := slot.present(given)) is not None: leaf._grad = None if gradient is None else tensor(gradient)
    return rebuilt(self._result, tensor, (Slot, Made))


def direct(capture: Capture, quick: Quick) -> Direct | None:
  """The direct replay of a capture, if there can be one."""
  slots, outcome = [*capture.arguments, *(s for s in capture.slots if s.argument is None)], capture.outcome
  if len(capture.devices) != 1: return None
  sources = [*(s.alias for s in slots), *(key for key, used in capture.keys if used), *capture.fresh]
  known = [b for b in sources if b is not None]
  name = capture.devices[0].name
  if len(known) != len(sources) or any(s.fixed for s in slots): return None
  if not all(type(b.size) is int and b.device == name for b in known): return None
  number = {id(b): n for n, b in enumerate(known)}
  graphs = [*(m.graph for m in outcome.made()), *(graph for _, graph in outcome.values)]
  bases = [g.base for g in graphs]
  # What two values show is one node, and constants have no memory: such a capture replays by graphs.
  if len(set(bases)) != len(bases): return None
  if not all(b.op is Ops.BUFFER and id(buffer_of(b)) in number for b in bases): return None
  prepared = capture.plan.prepared(known)
  return None if prepared is None else Direct(capture, quick, *prepared, number)
