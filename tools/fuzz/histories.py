"""Random lives of tensors that learn, against dual numbers: computed, viewed, changed in place, realized, derived.

    python -m tinyhw.tools.fuzz.histories                              1,000 lives on LLVM, PYTHON, two mock AMD cards
    python -m tinyhw.tools.fuzz.histories --chains 100000 --seed 0     the long form
    python -m tinyhw.tools.fuzz.histories --devices LLVM --seed 3 --only 17      life 17 of seed 3 again, step by step

Beside each tensor goes a NumPy array of dual numbers, which know their derivatives by every element of every leaf: what
is derived backward here is derived forward there, through NumPy's own movements. All numbers are small integers in
float64, so both are exact and must be equal, whatever was realized, read or changed in place on the way.
"""
from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.ir.dtype import dtypes
from tinyhw.tensor.tensor import Tensor
from tinyhw.tools.fuzz.views import Array, Chooser, Entry, World, WrongValue, campaign, pick, same

SHAPES: Final = ((2, 3),) * 6 + ((3,),) * 4 + ((2, 2), (3, 2), (), (1, 3), (2, 1, 3))
EXACT: Final = 1 << 18  # greatest value or derivative that is multiplied: what float64 holds of it is exact
STEPS: Final = ("move", "move", "compute", "compute", "compute", "product", "total", "side_by_side", "realize", "read",
                "change", "change", "change", "copy", "drop", "leaf", "leaf", "backward")


class Dual:
  """A number and its derivatives by variables, those that are 0 left out."""
  __slots__ = ("value", "by")

  def __init__(self, value: float, by: Mapping[int, float] | None = None) -> None:
    self.value, self.by = value, {k: v for k, v in (by or {}).items() if v}

  def __add__(self, other: Any) -> Dual:
    other = other if isinstance(other, Dual) else Dual(other)
    return Dual(self.value + other.value, {k: self.by.get(k, 0) + other.by.get(k, 0) for k in {*self.by, *other.by}})

  def __mul__(self, other: Any) -> Dual:
    other = other if isinstance(other, Dual) else Dual(other)
    return Dual(self.value * other.value, {k: self.by.get(k, 0) * other.value + self.value * other.by.get(k, 0)
                                           for k in {*self.by, *other.by}})

  __radd__, __rmul__ = __add__, __mul__
  def __neg__(self) -> Dual: return self.__mul__(-1)
  def __sub__(self, other: Dual) -> Dual: return self + other * -1
  def __lt__(self, other: Dual) -> bool: return self.value < other.value
  def __ge__(self, other: Dual) -> bool: return self.value >= other.value

  @property
  def size(self) -> float:
    """The greatest of its numbers, without their signs."""
    return max(map(abs, (self.value, *self.by.values())))


def as_dual(number: Any) -> Dual:
  """What NumPy pads with is no dual number."""
  return number if isinstance(number, Dual) else Dual(number)


def duals(numbers: Array) -> Array:
  """Constants."""
  out = np.empty(numbers.shape, object)
  for at in np.ndindex(numbers.shape): out[at] = Dual(float(numbers[at]))
  return out


def plain(array: Array) -> Array:
  """The values."""
  return np.array([as_dual(d).value for d in array.reshape(-1)], np.float64).reshape(array.shape)


def without(array: Array) -> Array:
  """The values as constants."""
  return duals(plain(array))


@dataclass(eq=False)
class Learning(World):
  """Tensors beside arrays of dual numbers. `leaves` has the variables of each leaf by the entry's name, `graded` what
  its gradient must be by now."""
  leaves: dict[str, Array] = field(default_factory=dict)
  graded: dict[str, Array | None] = field(default_factory=dict)
  numbers: Any = field(default_factory=itertools.count)

  def add(self, tensor: Tensor, array: Array, text: str, of: Entry | None = None, to: Any = None) -> Entry:
    array = np.asarray(array, object)
    if of is not None and to is not None: return super().add(tensor, array, text, of, to)
    padded = np.empty(array.size, object)
    padded[:] = [as_dual(d) for d in array.reshape(-1)]
    return super().add(tensor, padded.reshape(array.shape), text)

  def fits(self, tensor: Tensor, array: Array) -> bool:
    return tensor.shape == array.shape and tensor.dtype is dtypes.float64

  def forget(self, number: int) -> None:
    name = self.entries[number].name
    super().forget(number)
    self.leaves.pop(name, None)

  def fine(self, *entries: Entry) -> bool:
    """Whether products of them are exact."""
    return all(d.size <= EXACT for e in entries for d in e.array.reshape(-1))

  def variables(self, entry: Entry, numbers: Array) -> None:
    """Have an entry be a leaf of new variables."""
    array: Any = duals(numbers)
    names = np.array([next(self.numbers) for _ in range(array.size)], int).reshape(array.shape)
    for at in np.ndindex(array.shape): array[at].by = {int(names[at]): 1}
    entry.array = array
    self.leaves[entry.name] = names

  # ---- steps

  def leaf(self, choose: Chooser) -> Entry:
    """A new leaf, mostly like another one."""
    shape, device = pick(choose, SHAPES), pick(choose, self.devices)
    if choose.below(3) and (others := [e for e in self.entries if e.name in self.leaves]):
      like = pick(choose, others)
      shape, device = like.array.shape, like.tensor.device
    numbers = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape) - choose.below(3)
    entry = self.add(Tensor(numbers, device=device, requires_grad=True), duals(numbers), f"leaf {shape} on {device}")
    self.variables(entry, numbers)
    self.graded[entry.name] = None
    return entry

  def make(self, choose: Chooser) -> Entry:
    """A leaf, seldom a constant."""
    if choose.below(4): return self.leaf(choose)
    shape, device = pick(choose, SHAPES), pick(choose, self.devices)
    numbers = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
    return self.add(Tensor(numbers, device=device), duals(numbers), f"constant {shape} on {device}")

  def compute(self, choose: Chooser, entry: Entry | None = None) -> Entry:
    a = entry or self.any(choose)
    b = self.partner(choose, a)
    x, y, kind = a.tensor, b.tensor, choose.below(6)
    if kind == 0: return self.add(x + y, a.array + b.array, f"{a.name} + {b.name}")
    if kind == 1: return self.add(x - y, a.array - b.array, f"{a.name} - {b.name}")
    if kind == 2: return self.add((x < y).where(x, y + 1), np.where(a.array < b.array, a.array, b.array + 1),
                                  f"where {a.name} < {b.name}")
    if kind == 3: return self.add(x.relu(), np.where(plain(a.array) > 0, a.array, duals(0 * plain(a.array))),
                                  f"{a.name}.relu()")
    if not self.fine(a, b): return self.add(-x, -a.array, f"-{a.name}")
    if kind == 4: return self.add(x * y, a.array * b.array, f"{a.name} * {b.name}")
    return self.add(x.square(), a.array * a.array, f"{a.name}.square()")

  def product(self, choose: Chooser) -> Entry:
    """A product of two matrices."""
    a = self.any(choose)
    b = self.partner(choose, a)
    if a.array.ndim != 2 or not a.array.size or not self.fine(a, b): return self.compute(choose, a)
    return self.add(a.tensor @ b.tensor.T, a.array.dot(b.array.T), f"{a.name} @ {b.name}.T")

  def total(self, choose: Chooser) -> Entry:
    """A sum, or a maximum where it is one element's."""
    entry = self.any(choose)
    x, a = entry.tensor, entry.array
    axis = choose.below(a.ndim) if a.ndim and choose.below(3) else None
    if not a.size or not self.fine(entry): return self.move(choose)
    values = plain(a)
    most = values.max(axis, keepdims=True)
    if choose.below(2) and ((values == most).sum(axis) == 1).all():
      found = np.asarray(a.max(axis), object)
      return self.add(x.max(axis), found, f"{entry.name}.max({axis})")
    return self.add(x.sum(axis), np.asarray(a.sum(axis), object), f"{entry.name}.sum({axis})")

  def side_by_side(self, choose: Chooser) -> Entry:
    """Two entries in one."""
    return self.cat(choose)

  def copy(self, choose: Chooser) -> Entry:
    """An entry elsewhere, or its value alone."""
    entry = self.any(choose)
    kind = choose.below(3)
    if kind == 0: return self.add(entry.tensor.contiguous(), entry.array, f"{entry.name}.contiguous()")
    if kind == 1: return self.add((entry.tensor * 1).detach(), without(entry.array), f"({entry.name} * 1).detach()")
    device = pick(choose, self.devices)
    moved = entry.tensor.to(device)
    return entry if moved is entry.tensor else self.add(moved, entry.array, f"{entry.name}.to({device!r})")

  def change(self, choose: Chooser) -> None:
    """An entry changes in place, and what it is a view of, too; leaves only as a whole, or where no history is kept."""
    entry = self.any(choose)
    other = self.partner(choose, entry)
    x, y = entry.tensor, other.tensor
    if entry.name in self.leaves: return self.assigned(choose, entry, other)
    up = itertools.takewhile(lambda found: found[0].goes_up, self.above(entry))
    owner = next((s.of.name for s, there in up if there and s.of.name in self.leaves), None)
    kind = choose.below(3)
    if not entry.array.ndim or not entry.array.shape[0]: kind = 0
    at = choose.below(entry.array.shape[0]) if kind else 0
    self.tell((f"{entry.name} += {other.name}", f"{entry.name}[{at}] = {other.name}[0] + 1",
               f"{entry.name}[{at}] *= 2")[kind] + (f", of the leaf {owner}: refused" if owner else ""))
    try:
      if kind == 0: entry.tensor += y
      elif kind == 1: x[at] = y[0] + 1
      else: x[at] *= 2
    except InvalidArgument:
      if owner is None: raise
      return None
    if owner is not None and entry.array.size: raise self.wrong("a view of a leaf was changed")
    old = other.array.copy()
    array = entry.array.copy()
    if kind == 0: array = array + (array if other is entry else old)
    elif kind == 1: array[at] = old[0] + 1 if old.ndim > 1 else as_dual(old[0]) + 1
    else: array[at] = array[at] * 2
    return self.put(entry, array)

  def assigned(self, choose: Chooser, leaf: Entry, other: Entry) -> None:
    """A leaf gets another value, perhaps with all that are like it."""
    leaves = [leaf]
    if not choose.below(3):
      leaves = [e for e in self.entries if e.name in self.leaves and e.array.shape == leaf.array.shape
                and e.tensor.device == leaf.tensor.device]
    more = choose.below(2)
    value, numbers = other.tensor, plain(other.array) + more
    self.tell(f"with Tensor.no_grad(): {', '.join(e.name for e in leaves)} get {other.name}{' + 1' * more}")
    with Tensor.no_grad():
      if more: value = value + 1
      for entry in leaves: entry.tensor.assign(value)
    for entry in leaves:          # the same variables: it is derived by what the leaf was, too
      new: Any = duals(numbers)
      for at in np.ndindex(new.shape): new[at] = Dual(new[at].value, {int(self.leaves[entry.name][at]): 1.0})
      self.put(entry, new)

  def backward(self, choose: Chooser) -> None:
    """A weighted sum of one or two entries is derived, perhaps once more; leaves that have a gradient add to it."""
    parts: list[tuple[Tensor, Dual]] = []
    device = pick(choose, self.devices)
    for number in range(1 + choose.below(2)):
      entry = self.any(choose)
      if not entry.array.size or not self.fine(entry): return
      weight = np.arange(1, entry.array.size + 1, dtype=np.float64).reshape(entry.array.shape) + number
      parts.append(((entry.tensor * Tensor(weight, device=entry.tensor.device)).sum().to(device),
                    sum((as_dual(d) * w for d, w in zip(entry.array.reshape(-1), weight.reshape(-1))), Dual(0))))
      self.tell(f"{'loss +=' if number else 'loss ='} ({entry.name} * ({number + 1}, {number + 2}, ...)).sum()")
    loss, total = parts[0] if len(parts) == 1 else (parts[0][0] + parts[1][0], parts[0][1] + parts[1][1])
    if not choose.below(3):
      self.tell("loss.realize()")
      if loss.item() != total.value: raise self.wrong(f"it is {loss.item()}, not {total.value}")
    for _ in range(1 + (not choose.below(4))):
      self.tell("loss.backward()")
      known = {number for names in self.leaves.values() for number in names.reshape(-1).tolist()}
      try: loss.backward(retain_graph=True)
      except InvalidArgument:
        if total.by.keys() & known: raise
        continue
      for name, names in self.leaves.items():
        found = np.array([total.by.get(int(n), 0) for n in names.reshape(-1)], np.float64).reshape(names.shape)
        if not found.any(): continue
        before = self.graded[name]
        self.graded[name] = found if before is None else before + found
    self.gradients()
    if not choose.below(3):
      for entry in self.entries:
        if entry.name in self.leaves: entry.tensor.grad, self.graded[entry.name] = None, None
      self.tell("all gradients are forgotten")

  def gradients(self) -> None:
    """Compare those of all leaves."""
    for entry in self.entries:
      if entry.name not in self.leaves: continue
      found, wanted = entry.tensor.grad, self.graded[entry.name]
      zeros = np.zeros(entry.array.shape)
      if not same(zeros if found is None else found.numpy(), zeros if wanted is None else wanted):
        raise self.wrong(f"{entry.name}.grad is {found if found is None else found.tolist()}, not "
                         f"{(zeros if wanted is None else wanted).tolist()}")

  def read(self, choose: Chooser, entry: Entry | None = None) -> None:
    entry = entry or self.any(choose)
    self.tell(f"{entry.name}.numpy()")
    found, wanted = entry.tensor.numpy(), plain(entry.array)
    if not same(found, wanted): raise self.wrong(f"{entry.name} reads {found.tolist()}, not {wanted.tolist()}")

  def check(self, choose: Chooser) -> None:
    super().check(choose)
    self.gradients()


def life(devices: Sequence[str], choose: Chooser, steps: int = 14) -> Learning:
  """One life: some steps, a derivation of what is left, then everything is read. Raises Wrong."""
  world = Learning(devices)
  try:
    world.leaf(choose)
    for _ in range(4 + choose.below(steps)): getattr(world, pick(choose, STEPS))(choose)
    world.backward(choose)
    world.check(choose)
  except WrongValue: raise
  except (Error, AssertionError, AttributeError, TypeError, ValueError, KeyError, IndexError) as error:
    raise world.wrong(f"{type(error).__name__}: {error}") from error
  return world


if __name__ == "__main__": sys.exit(campaign(__doc__ or "", "tinyhw.tools.fuzz.histories", life))
