"""What a TinyJit learns of a call while its function runs: what it reads, writes, draws and makes.

A replay of `TinyJit` overwrites nothing that anybody can name. The recording watches which tensors
the function reads, by buffers of their own. A replay takes their memory as it is then, and gives
new memory to results and to what was assigned. What it could not do again is refused while it is
recorded.
"""
from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from tinyhw.core.errors import InvalidArgument
from tinyhw.devices.buffer import Buffer, BufferView, new_node
from tinyhw.devices.watch import Watcher, watched
from tinyhw.engine.binding import known_value
from tinyhw.engine.realize import in_order, memory_of
from tinyhw.engine.run import Step
from tinyhw.function.core import TensorBase, grad_enabled, learning
from tinyhw.function.views import overlap
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.size import value_of
from tinyhw.ir.uop import UOp, named_in
from tinyhw.jit.arguments import kind_of


class Slot:
  """A tensor that a replay finds anew: an argument, a tensor that existed before the call, or the gradient of one.

  In the recorded steps its memory goes by a buffer of its own, `alias` (None for no elements): so they say which
  tensor was meant where several share their memory.
  """
  __slots__ = ("place", "argument", "owner", "shown", "kind", "before", "inside", "alias", "written", "fixed",
               "view", "_tensor", "_last")

  def __init__(self, place: str, tensor: TensorBase, argument: int | None, owner: Slot | None, shown: TensorBase):
    self.place, self.argument, self.owner = place, argument, owner
    self.shown: TensorBase | None = shown     # what the function has in its place; none once the recording is over
    self.kind = kind_of(tensor)
    self.before = self.inside = tensor._uop   # its graph before the call, and the one that the function sees
    self.alias: Buffer | None = None
    self.written = False                      # whether the function has assigned to it
    self.fixed = False                        # whether Python has read the value, which must stay then
    self.view: BufferView | None = None             # how its elements lay in memory at the last direct replay
    self._tensor = weakref.ref(tensor)
    self._last: tuple[weakref.ref[UOp], weakref.ref[Buffer]] | None = None

  @property
  def changed(self) -> bool:
    """Whether the function gave it another value. What other threads do to it is not the function's."""
    return self.written and self.shown is not None and self.shown._uop is not self.inside

  def present(self, given: Sequence[TensorBase]) -> TensorBase | None:
    """The tensor in a call with these arguments, if there is one."""
    if self.argument is not None: return given[self.argument]
    if self.owner is None: return self._tensor()
    owner = self.owner.present(given)
    return None if owner is None else owner.grad

  def find(self, given: Sequence[TensorBase]) -> TensorBase:
    """The tensor in a call with these arguments. Raises where it is none that the recorded steps can take."""
    tensor = self.present(given)
    if tensor is None: raise InvalidArgument(f"{self.place} is gone", hint="assign to a tensor, do not replace it")
    tensor._followed()
    if self.argument is not None: return tensor
    last = self._last
    if last is not None and last[0]() is tensor._uop and tensor.requires_grad is self.kind.learns and not self.fixed:
      return tensor                           # as it was at the last replay
    if (kind := kind_of(tensor)) != self.kind:
      raise InvalidArgument(f"{self.place} was {self.kind} when a TinyJit recorded, and is {kind}", hint="reset() it")
    if self.fixed and tensor._uop is not self.before:
      raise InvalidArgument(f"{self.place} was read into Python when a TinyJit recorded, and has another value now",
                            hint="reset() it, or compute with the tensor")
    return tensor

  def memory(self, tensor: TensorBase) -> Buffer:
    """The tensor's elements in order. Raises where its shape has other values than its Variables have now."""
    for v in named_in(tensor._uop.shape):
      if (now := known_value(v.arg)) != value_of(v):
        raise InvalidArgument(f"{self.place} was made with {v.arg.name} = {value_of(v)}, and {v.arg.name} "
                              f"{'has no value' if now is None else f'is {now}'} now",
                              hint="bind the Variable first, then make the tensors of that call")
    last = self._last
    if last is not None and last[0]() is tensor._uop and (known := last[1]()) is not None: return known
    found = in_order(tensor._uop) or memory_of(tensor)
    if self.alias is not None and found.cut != self.alias.cut:
      raise InvalidArgument(f"{self.place} lay otherwise on its devices when a TinyJit recorded",
                            hint="shard() it as it was then, or reset() the TinyJit")
    self._last = weakref.ref(tensor._uop), weakref.ref(found)
    return found

  def quick(self, tensor: TensorBase) -> Buffer | None:
    """The tensor's elements in order, where they are in memory and the tensor is of this kind; else None."""
    kind = self.kind
    if tensor._view is not None:
      if self.written: return None            # what it is a view of is to know
      tensor._followed()
    if (tensor.requires_grad and tensor.is_leaf) is not kind.learns: return None
    if (held := tensor.held) is not None:
      view = held[1]
      if view is self.view: return held[0]
      if not view.plain or view.shape != kind.shape or view.dtype is not kind.dtype or view.device != kind.device:
        return None
      self.view = view
      return held[0]
    node, last = tensor._uop, self._last
    if last is not None and last[0]() is node: return last[1]()
    if node.dtype is not kind.dtype or node.device != kind.device or node.shape != kind.shape: return None
    if (found := in_order(node)) is not None: self._last = weakref.ref(node), weakref.ref(found)
    return found


class Makes(Watcher[TensorBase, Step]):
  """Knows the tensors that a function makes."""

  def __init__(self) -> None:
    super().__init__()
    self._made: dict[int, weakref.ref[TensorBase]] = {}
    self._learned: list[TensorBase] = []
    self._unsaid: list[TensorBase] = []       # that have got a gradient, and nobody has said that they learn

  def made(self, tensor: TensorBase) -> None: self._made[id(tensor)] = weakref.ref(tensor)

  def learned(self, tensor: TensorBase) -> None:
    if not self.owns(tensor): self._learned.append(tensor)

  def forget_histories(self) -> None:
    """What the function made stays on its side: tensors that existed before are leaves again."""
    for tensor in self._learned: tensor._forget()
    self._learned = []

  def made_gradients(self) -> bool:
    """Whether leaves have gradients that the function made."""
    return any(t.grad is not None and self.owns(t.grad) for t in (*learning(), *self._unsaid))

  def graded(self, tensor: TensorBase) -> None:
    if not tensor.requires_grad and not self.owns(tensor): self._unsaid.append(tensor)

  def owns(self, tensor: TensorBase) -> bool:
    """Whether the function made the tensor."""
    found = self._made.get(id(tensor))
    return found is not None and found() is tensor

  def left(self, known: set[int]) -> list[str]:
    """The tensors of the function that live on, except those with a known id, in words."""
    return [str(kind_of(t)) for r in list(self._made.values()) if (t := r()) is not None and id(t) not in known]


@dataclass(eq=False)
class Gradient:
  """A leaf's gradient before the call."""
  leaf: TensorBase
  before: TensorBase | None
  slot: Slot | None = None


class Recording(Makes):
  """Watches the call that will be replayed. What a replay could not do again is refused."""

  def __init__(self, where: str, leaves_gradients: bool = False):
    super().__init__()
    self.where = where
    self._leaves_gradients = leaves_gradients  # as far as the first call showed: then they are computed on the way
    self.slots: dict[int, Slot] = {}          # by the id of `shown`
    self.steps: list[Step] = []
    self._first = UOp.new_buffer("", 0, dtypes.uint8).arg.uid   # BUFFERs made from now on have greater numbers
    self.keys: list[Buffer] = []
    self.gradients = [Gradient(t, t.grad) for t in learning()]
    self._written: list[Slot] = []
    self._read_after: set[tuple[Slot, Slot]] = set()  # what was written, and what was used then
    self._graded: set[int] = set()            # ids of tensors whose gradient this thread has changed

  def hides(self, node: UOp, home: UOp) -> bool:
    # What others have computed with a Variable's value is none for other values.
    return bool(home.arg.uid < self._first and node.variables)

  def refuse(self, why: str, hint: str) -> InvalidArgument:
    """The error that ends the recording."""
    return InvalidArgument(f"while it records, {why}", where=self.where, hint=hint)

  def argument(self, number: int, place: str, tensor: TensorBase) -> TensorBase:
    """What the function gets for an argument: a tensor of the same value and without a history."""
    shown = type(tensor)._wrap(tensor._uop)
    if tensor.is_leaf:
      if tensor._learns is not None: shown.requires_grad = tensor._learns
      shown.grad = tensor.grad
    slot = self._enter(Slot(f"argument {place}", tensor, number, None, shown), tensor)
    if shown.requires_grad: self.gradients.append(Gradient(shown, shown.grad, slot))
    return shown

  def slot(self, tensor: TensorBase) -> Slot:
    """The slot of a tensor that existed before."""
    if (found := self.slots.get(id(tensor))) is not None: return found
    # An argument's gradient is looked for first: its leaf is among the tensors that existed before, too.
    holder = next((g for g in reversed(self.gradients) if g.before is tensor), None)
    owner = None if holder is None else holder.slot or self.slot(holder.leaf)
    place = "a tensor that the function uses" if owner is None else f"the gradient of {owner.place}"
    return self._enter(Slot(f"{place} ({kind_of(tensor)})", tensor, None, owner, tensor), tensor)

  def _enter(self, slot: Slot, tensor: TensorBase) -> Slot:
    with watched(None):
      shown = slot.shown
      assert shown is not None
      if (shape := tensor._uop.shape) and 0 in shape: pass
      else:
        slot.alias = slot.memory(tensor).alias()
        slot.before = tensor._uop             # in memory now
        slot.inside = shown._uop = new_node(slot.alias).reshape(shape)
    self.slots[id(shown)] = slot
    return slot

  def read(self, tensor: TensorBase) -> None:
    if (known := self.slots.get(id(tensor))) is not None:
      self._read_after.update((slot, known) for slot in self._written)
      return
    if self.owns(tensor): return
    with watched(None):
      if not tensor.is_leaf and grad_enabled():
        raise self.refuse(f"its function uses a tensor ({kind_of(tensor)}) whose history began outside of it",
                          "compute it inside of the function, or detach() it")
      slot = self.slot(tensor)
    self._read_after.update((other, slot) for other in self._written)

  def wrote(self, tensor: TensorBase) -> None:
    self.read(tensor)
    if (slot := self.slots.get(id(tensor))) is not None and not slot.written:
      slot.written = True
      self._written.append(slot)

  def graded(self, tensor: TensorBase) -> None:
    super().graded(tensor)
    self._graded.add(id(tensor))
    if not self.owns(tensor) and not any(g.leaf is tensor for g in self.gradients):
      self.gradients.append(Gradient(tensor, tensor.grad, self.slots.get(id(tensor))))

  def also(self) -> list[UOp]:
    if not self._leaves_gradients: return []
    return [g.leaf.grad._uop for g in self.left_gradients() if g.leaf.grad is not None and self.owns(g.leaf.grad)]

  def left_gradients(self) -> list[Gradient]:
    """The leaves that the function gave another gradient, or took it from."""
    return [g for g in self.gradients if id(g.leaf) in self._graded and g.leaf.grad is not g.before]

  def to_host(self, tensor: TensorBase) -> None:
    self.read(tensor)
    slot = self.slots.get(id(tensor))
    if slot is None or slot.argument is not None or slot.changed:
      with watched(None): what = kind_of(tensor) if slot is None else slot.place
      raise self.refuse(f"its function reads a value into Python ({what}), which replays would take for theirs",
                        "return the tensor and read it after the call, or compute with it")
    slot.fixed = True

  def ran(self, step: Step) -> None:
    for v, value in zip(step.kernel.spec.variables if step.kernel is not None else (), step.values):
      if known_value(v) != value:
        raise self.refuse(f"its function computes with {v.name} = {value}, which is no value of the day",
                          "bind Variables before the call, and make what it is given after that")
    self.steps.append(step)
  def drew(self, key: Buffer) -> None: self.keys.append(key)

  def outside(self, what: str) -> None:
    raise self.refuse(f"{what}, which a replay would not do", "do it outside of the function")

  def check_ends(self, known: set[int]) -> None:
    """Refuse what a replay could not see: a tensor that is kept, or that was meant in two ways."""
    if self.left(known): gc.collect()         # a cycle of Python's is no keeper
    if kept := self.left(known):
      raise self.refuse(f"its function keeps a tensor that it made ({kept[0]}), and a replay does not make another",
                        "return it in a list, tuple or dict, or assign it to a tensor that exists before")
    arguments = {id(t): s for s in self.slots.values() if s.argument is not None and (t := s._tensor()) is not None}
    for slot in self.slots.values():
      twin = arguments.get(id(slot.shown))
      if twin is not None and (slot.changed or twin.changed):
        raise self.refuse(f"{twin.place} is also used by the function itself, and gets another value",
                          "assign to it by one of the two ways")
    for slot, other in self._read_after:
      if slot is other or slot.argument is None and other.argument is None or not slot.changed: continue
      with watched(None): shared = overlap(cast(Any, slot._tensor()), cast(Any, other._tensor()))
      if shared:
        raise self.refuse(f"{slot.place} gets another value, and {other.place}, a view of the same, is used then",
                          "give it one of the two, and make the view inside of the function")

  def leave(self) -> None:
    """Give the tensors that were only read their own graphs back."""
    for slot in self.slots.values():
      if slot.shown is not None and slot.shown._uop is slot.inside: slot.shown._uop = slot.before
      slot.shown = None
