"""Random lives of tensors against NumPy: viewed, computed, realized, read, assigned, copied, differentiated, jitted.

    python -m tinyhw.tools.fuzz.views                              1,000 chains on LLVM, PYTHON, and two mock AMD cards
    python -m tinyhw.tools.fuzz.views --chains 100000 --seed 0     the long form
    python -m tinyhw.tools.fuzz.views --devices LLVM --seed 3 --only 17      chain 17 of seed 3 again, told step by step

A chain is a few tensors on a few devices and a random sequence of steps on them; NumPy's arrays go the same way
beside them, and whatever is read must be equal. Values are small integers, so that every type holds them exactly. The
chain's number and the seed decide everything. `World` is also what the test of this name drives with hypothesis.
"""
from __future__ import annotations

import argparse
import copy
import os
import pickle
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from tinyhw.core.errors import Error
from tinyhw.devices import registry
from tinyhw.ir.dtype import dtypes
from tinyhw.jit.jit import TinyJit
from tinyhw.tensor.tensor import Tensor

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")

DEVICES = ("LLVM", "PYTHON", "AMD", "AMD:1")
# Most lives have the same few types and shapes, so that most kernels are there already: compiling one costs more than
# all else in a chain.
TYPES = (dtypes.int32,) * 9 + (dtypes.uint8, dtypes.float32, dtypes.bool)
SHAPES = ((2, 3),) * 8 + ((3,),) * 4 + ((2, 2), (4,), (1, 3), (2, 1, 3), (2, 3, 2), (), (1,))
LARGEST = 30      # elements of a tensor: what grows beyond is cut
EXACT = 1 << 20   # greatest magnitude that takes part in arithmetic: float32 holds all of it, also a product of few


class Chooser(Protocol):
  """Where the decisions come from: a seed, or hypothesis."""

  def below(self, count: int) -> int:
    """One of 0..count-1."""


class Seeded:
  """Decisions of a pseudo-random generator."""

  def __init__(self, seed: str) -> None: self._random = random.Random(seed)
  def below(self, count: int) -> int: return self._random.randrange(count)


def pick(choose: Chooser, things: Sequence[T]) -> T:
  """One of the things."""
  return things[choose.below(len(things))]


class WrongValue(Exception):
  """A value that differs from NumPy's, or an error where NumPy has a value. The message is the whole story."""


Movement = Callable[[Array], Array]


@dataclass(eq=False)
class Seen:
  """That an entry is a view of another: `to` gives NumPy's view of an array. What is written to it `goes_up`, or is
  its own from then on."""
  of: Entry
  to: Movement
  up: Seen | None
  goes_up: bool


@dataclass(eq=False)
class Entry:
  """A tensor and what it must hold, and what it is a view of."""
  name: str
  tensor: Any  # a Tensor; None when it is dropped
  array: Array
  view: Seen | None = None


def own(array: Array) -> Array:
  """A copy that lies in memory as the array does."""
  if not array.size: return array.copy()
  ends = [(n - 1) * s // array.itemsize for n, s in zip(array.shape, array.strides)]
  first = -sum(min(e, 0) for e in ends)
  memory = np.empty(first + sum(max(e, 0) for e in ends) + 1, array.dtype)
  copied = np.lib.stride_tricks.as_strided(memory[first:], array.shape, array.strides)
  copied[...] = array
  return copied


def shorter(array: Array, axis: int, choose: Chooser) -> list[tuple[int, int]]:
  """Bounds that cut an axis at one end."""
  bounds = [(0, s) for s in array.shape]
  size = array.shape[axis]
  bounds[axis] = pick(choose, [(1, size), (0, size - 1), (0, min(size, 2)), (size - 1, size)]) if size else (0, 0)
  return bounds


def factors(count: int) -> list[tuple[int, ...]]:
  """Shapes of up to three axes with that many elements."""
  found: list[tuple[int, ...]] = [(count,), (1, count), (count, 1)]
  for a in range(2, count):
    if count % a: continue
    found.append((a, count // a))
    found += [(a, b, count // a // b) for b in range(2, count // a) if count // a % b == 0]
  return found


def viewed(text: str, x: Tensor, a: Array, to: Movement) -> tuple[str, Tensor, Array, Movement | None]:
  """A view, and how NumPy makes it, unless it copies."""
  view = to(a)
  return text, x, view, to if not a.size or np.shares_memory(view, a) else None


def moved(x: Tensor, a: Array, choose: Chooser) -> tuple[str, Tensor, Array, Movement | None]:
  """One movement: its text, the tensor, NumPy's, and how NumPy makes it where it is a view, which may be written to."""
  kinds = ["reshape", "flatten"]
  if a.ndim: kinds += ["permute", "T", "flip", "shrink", "pad", "index", "slice", "step", "take", "expand", "roll"]
  if a.size * 2 <= LARGEST: kinds += ["broadcast", "repeat"]
  kind = pick(choose, kinds)
  axis = choose.below(a.ndim) if a.ndim else 0
  if kind == "flatten": return viewed(".flatten()", x.flatten(), a, lambda a: a.reshape(-1))
  if kind == "reshape":
    shape = pick(choose, factors(a.size))
    return viewed(f".reshape{shape}", x.reshape(shape), a, lambda a: a.reshape(shape))
  if kind == "T": return viewed(".T", x.T, a, lambda a: a.T)
  if kind == "permute":
    order = list(range(a.ndim))
    for i in range(a.ndim): order.insert(i, order.pop(i + choose.below(a.ndim - i)))
    return viewed(f".permute({order})", x.permute(order), a, lambda a: a.transpose(order))
  if kind == "flip": return f".flip({axis})", x.flip(axis), np.flip(a, axis), None
  if kind == "shrink":
    bounds = shorter(a, axis, choose)
    return viewed(f".shrink({bounds})", x.shrink(bounds), a, lambda a: a[tuple(slice(*b) for b in bounds)])
  if kind == "pad":
    if a.size * 2 > LARGEST: return ".flip()", x.flip(), np.flip(a), None
    padding = [(0, 0)] * a.ndim
    padding[axis] = pick(choose, [(1, 0), (0, 1), (1, 1)])
    return f".pad({padding})", x.pad(padding), np.pad(a, padding), None
  if kind in ("index", "slice", "step", "take"):
    size = a.shape[axis]
    if not size: return viewed(".T", x.T, a, lambda a: a.T)
    position = choose.below(size)
    what: Any = {"index": position, "slice": slice(position, None), "take": [position, choose.below(size)],
                 "step": pick(choose, [slice(None, None, 2), slice(None, None, -1), slice(position, None, -2)])}[kind]
    where = (slice(None),) * axis + (what,)
    text = f"[{axis}: {what}]"
    return (text, x[where], a[where], None) if kind == "take" else viewed(text, x[where], a, lambda a: a[*where, ...])
  if kind == "expand":
    shape = tuple(2 if s == 1 and a.size * 2 <= LARGEST else s for s in a.shape)
    return viewed(f".expand{shape}", x.expand(shape), a, lambda a: np.broadcast_to(a, shape))
  if kind == "roll": return f".roll(1, {axis})", x.roll(1, axis), np.roll(a, 1, axis), None
  if kind == "broadcast":
    return viewed(".expand(2, ...)", x.expand(2, *x.shape), a, lambda a: np.broadcast_to(a, (2, *a.shape)))
  times = 2, *[1] * max(a.ndim - 1, 0)
  return ".repeat(2, ...)", x.repeat(times), np.tile(a, times), None


def again(tensor: Tensor) -> Tensor:
  """A tensor, pickled and back."""
  found = pickle.loads(pickle.dumps(tensor))
  assert isinstance(found, Tensor)
  return found


def same(found: Array, wanted: Array) -> bool:
  """Whether two arrays have one shape and equal elements."""
  return found.shape == wanted.shape and found.dtype == wanted.dtype and bool(np.array_equal(found, wanted))


@dataclass(eq=False)
class World:
  """Tensors beside their arrays. Each step changes both; whatever is read is compared."""
  devices: Sequence[str]
  entries: list[Entry] = field(default_factory=list)
  story: list[str] = field(default_factory=list)
  made: int = 0

  def tell(self, text: str) -> None:
    """Add a line to the story."""
    self.story.append(text)

  def wrong(self, why: str) -> WrongValue:
    """The error with the story."""
    return WrongValue("\n".join([*self.story, why]))

  def add(self, tensor: Tensor, array: Array, text: str, of: Entry | None = None, to: Movement | None = None) -> Entry:
    """A new entry, perhaps a view of another one; shape, type and device are compared at once."""
    if of is None or to is None: entry = Entry(f"t{self.made}", tensor, np.array(array, order="C"))
    else: entry = Entry(f"t{self.made}", tensor, array, Seen(of, to, of.view, not text.count("expand")))
    self.made += 1
    self.tell(f"{entry.name} = {text}")
    if not self.fits(tensor, array):
      raise self.wrong(f"{entry.name} is {tensor.shape} {tensor.dtype}, NumPy's {array.shape} {array.dtype}")
    self.entries.append(entry)
    if len(self.entries) > 8: self.forget(0)
    return entry

  def fits(self, tensor: Tensor, array: Array) -> bool:
    """Whether an array of such a shape and type goes with the tensor."""
    return tensor.shape == array.shape and bool(tensor.dtype.numpy == array.dtype)

  def forget(self, number: int) -> None:
    """Drop an entry: views of it know it, but not its tensor."""
    gone = self.entries.pop(number)
    gone.tensor = None
    self.tell(f"del {gone.name}")

  # ---- steps

  def make(self, choose: Chooser) -> Entry:
    """A tensor from host data, from a computation of it, or from constants alone."""
    device, dtype, shape = pick(choose, self.devices), pick(choose, TYPES), pick(choose, SHAPES)
    count, kind = int(np.prod(shape)), pick(choose, ["data", "data", "computed", "constants", "full"])
    array = (np.arange(count).reshape(shape) % (2 if dtype.is_bool else 100)).astype(dtype.numpy)
    if kind == "full":
      value = bool(count % 2) if dtype.is_bool else 3
      full = Tensor.full(shape, value, device=device, dtype=dtype)
      return self.add(full, np.full(shape, value, dtype.numpy), f"full {shape} {dtype} {device}")
    if kind == "constants" and not dtype.is_bool and count > 1:
      line = Tensor.arange(count, device=device).cast(dtype)
      return self.add(line.reshape(shape), array, f"Tensor.arange({count}).reshape{shape} {dtype} {device}")
    tensor = Tensor(array, device=device)
    text = f"Tensor of arange {shape} {dtype} {device}"
    if kind == "data": return self.add(tensor, array, text)
    return self.compute(choose, self.add(tensor, array, text))

  def any(self, choose: Chooser) -> Entry:
    """One of the entries; a new one where there is none."""
    return pick(choose, self.entries) if self.entries else self.make(choose)

  def move(self, choose: Chooser) -> Entry:
    """A view of an entry."""
    entry = self.any(choose)
    text, view, array, to = moved(entry.tensor, entry.array, choose)
    return self.add(view, array, entry.name + text, entry, to)

  def partner(self, choose: Chooser, entry: Entry) -> Entry:
    """An entry of the same shape, type and device; the entry itself at least."""
    like = [e for e in self.entries if e.array.shape == entry.array.shape and e.array.dtype == entry.array.dtype
            and e.tensor.device == entry.tensor.device]
    return pick(choose, like or [entry])

  def compute(self, choose: Chooser, entry: Entry | None = None) -> Entry:
    """An elementwise result of one or two entries."""
    a = entry or self.any(choose)
    b = self.partner(choose, a)
    if a.array.dtype == np.bool_:
      return self.add(a.tensor.logical_not(), ~a.array, f"{a.name}.logical_not()")
    if max(np.abs(e.array.astype(np.int64)).max(initial=0) for e in (a, b)) > EXACT:
      return self.add(a.tensor.maximum(b.tensor), np.maximum(a.array, b.array), f"{a.name}.maximum({b.name})")
    kind = choose.below(4)
    one = a.array.dtype.type(1)
    if kind == 0: return self.add(a.tensor + 1, a.array + one, f"{a.name} + 1")
    if kind == 1: return self.add(a.tensor + b.tensor, a.array + b.array, f"{a.name} + {b.name}")
    if kind == 2: return self.add((a.tensor < b.tensor).where(a.tensor, b.tensor + 1),
                                  np.where(a.array < b.array, a.array, b.array + one), f"where {a.name} < {b.name}")
    return self.add(a.tensor.maximum(b.tensor), np.maximum(a.array, b.array), f"{a.name}.maximum({b.name})")

  def reduce(self, choose: Chooser) -> Entry:
    """A sum or a maximum along one axis or all."""
    entry = self.any(choose)
    x, a = entry.tensor, entry.array
    axis = choose.below(a.ndim) if a.ndim and choose.below(3) else None
    if choose.below(2) and a.size and (axis is None or a.shape[axis]):
      return self.add(x.max(axis), np.asarray(a.max(axis)), f"{entry.name}.max({axis})")
    if np.abs(a.astype(np.int64)).sum() > EXACT: return self.move(choose)
    total = x.sum(axis)
    return self.add(total, np.asarray(a.sum(axis, dtype=total.dtype.numpy)), f"{entry.name}.sum({axis})")

  def cat(self, choose: Chooser) -> Entry:
    """Two entries side by side."""
    a = self.any(choose)
    b = self.partner(choose, a)
    if not a.array.ndim or a.array.size * 2 > LARGEST or not a.array.size: return self.move(choose)
    axis = choose.below(a.array.ndim)
    return self.add(a.tensor.cat(b.tensor, dim=axis), np.concatenate([a.array, b.array], axis),
                    f"{a.name}.cat({b.name}, dim={axis})")

  def realize(self, choose: Chooser) -> None:
    """Some entries, in one schedule."""
    chosen = [self.any(choose) for _ in range(1 + choose.below(3))]
    self.tell(f"{chosen[0].name}.realize({', '.join(e.name for e in chosen[1:])})")
    chosen[0].tensor.realize(*(e.tensor for e in chosen[1:]))

  def read(self, choose: Chooser, entry: Entry | None = None) -> None:
    """The value of an entry, by one of the ways."""
    entry = entry or self.any(choose)
    x, a = entry.tensor, entry.array
    kind = pick(choose, ["numpy", "tolist", "data", "item" if a.size == 1 else "numpy"])
    self.tell(f"{entry.name}.{kind}()")
    found: Any = getattr(x, kind)()
    if kind == "data": found = np.frombuffer(found, a.dtype).reshape(a.shape)
    elif kind == "numpy":
      found, kept = found.copy(), found
      kept[...] = 0         # the array is the caller's: nothing shares its memory
    else: found = np.array(found, a.dtype).reshape(a.shape)
    if not same(found, a): raise self.wrong(f"{entry.name} reads {found.tolist()}, NumPy has {a.tolist()}")

  def above(self, entry: Entry) -> list[tuple[Seen, bool]]:
    """What an entry is a view of, up to the last one that is still there; and whether each is."""
    chain: list[tuple[Seen, bool]] = []
    at = entry.view
    while at is not None:
      there = at.of in self.entries
      chain.append((at, there))
      at = at.of.view if there else at.up
    while chain and not chain[-1][1]: chain.pop()
    return chain

  def goes_up(self, entry: Entry) -> list[tuple[Seen, bool]]:
    """The same for a change. What nothing goes up from is no view from then on; what lies in it is forgotten."""
    chain = self.above(entry)
    if (end := next((n for n, (seen, _) in enumerate(chain) if not seen.goes_up), None)) is None: return chain
    while end and not chain[end - 1][1]: end -= 1
    last = chain[end - 1][0].of if end else entry
    last.array, last.view = np.array(last.array, order="C"), None
    for e in [*self.entries]:
      if e is not entry and any(seen.of is last for seen, _ in self.above(e)): self.forget(self.entries.index(e))
    return self.above(entry)

  def put(self, entry: Entry, array: Array) -> None:
    """Another value for an entry, for what it is a view of, and for all views of that."""
    if not np.size(array): return
    chain = self.goes_up(entry)
    top = chain[-1][0].of if chain else entry
    value = np.array(array)
    repeats = any(n > 1 and s == 0 for n, s in zip(top.array.shape, top.array.strides))
    top.array = np.array(top.array, order="C") if repeats else own(top.array)
    part = top.array
    for seen, _ in reversed(chain): part = seen.to(part)
    part[...] = value
    entry.array = part
    for e in self.entries:
      if (views := self.above(e)) and views[-1][0].of is top:
        e.array = top.array
        for seen, _ in reversed(views): e.array = seen.to(e.array)

  def assign(self, choose: Chooser) -> None:
    """Another value for an entry, wholly or in part: what it is a view of changes with it, what else was made from the
    old one, and is no view, keeps it."""
    entry = self.any(choose)
    x, a = entry.tensor, entry.array
    other = self.partner(choose, entry)
    kind = choose.below(6)
    if kind > 3 and a.dtype != np.bool_ and np.abs(a.astype(np.int64)).max(initial=0) <= EXACT:
      n = a.dtype.type(kind)
      if a.ndim and a.shape[0] and choose.below(2):
        at = choose.below(a.shape[0])
        self.tell(f"{entry.name}[{at}] += {kind}")
        x[at] += kind
        array = entry.array.copy()
        array[at] += n
        return self.put(entry, array)
      self.tell(f"{entry.name} += {kind}")
      x += kind
      self.put(entry, entry.array + n)
    elif a.ndim and a.shape[0] and kind < 2:
      at, value = choose.below(a.shape[0]), other.array[0].copy()
      self.tell(f"{entry.name}[{at}] = {other.name}[0]")
      if kind: x[at].assign(other.tensor[0])
      else: x[at] = other.tensor[0]
      array = entry.array.copy()
      array[at] = value
      self.put(entry, array)
    else:
      self.tell(f"{entry.name}.assign({other.name})")
      x.assign(other.tensor)
      self.put(entry, other.array)

  def copy(self, choose: Chooser) -> Entry:
    """An entry on a device, or in memory of its own, or without its history, or by a protocol of Python's."""
    entry = self.any(choose)
    kind = choose.below(7)
    if kind == 4: return self.add(copy.copy(entry.tensor), entry.array, f"copy.copy({entry.name})")
    if kind == 5: return self.add(copy.deepcopy([entry.tensor])[0], entry.array, f"copy.deepcopy([{entry.name}])[0]")
    if kind == 6:
      device = entry.tensor.device
      found = self.add(again(entry.tensor), entry.array, f"{entry.name}, pickled and back")
      if found.tensor.device != device: raise self.wrong(f"it is on {found.tensor.device}")
      return found
    if kind == 0: return self.add(entry.tensor.contiguous(), entry.array, f"{entry.name}.contiguous()")
    if kind == 1:
      return self.add(entry.tensor.detach(), entry.array, f"{entry.name}.detach()", entry, lambda a: a.view())
    device = pick(choose, self.devices)
    moved = entry.tensor.to(device)
    if moved is entry.tensor: return entry  # as documented: it is there already
    found = self.add(moved, entry.array, f"{entry.name}.to({device!r})")
    if found.tensor.device != device: raise self.wrong(f"it is on {found.tensor.device}")
    return found

  def drop(self, choose: Chooser) -> None:
    """Forget an entry."""
    if self.entries: self.forget(choose.below(len(self.entries)))

  def differentiate(self, choose: Chooser) -> None:
    """The gradient through a chain of views of a leaf, of which some are realized and read on the way.

    Movements take each element of the result from one of the leaf's, or from nowhere: so the gradient is a sum by
    places, which the same movements of the leaf's places (from 1 on, 0 is nowhere) give.
    """
    shape = pick(choose, SHAPES)
    count = int(np.prod(shape))
    numbers = np.arange(count, dtype=np.float32).reshape(shape)
    leaf = Tensor(numbers, device=pick(choose, self.devices), requires_grad=True)
    self.tell(f"w = leaf {shape} on {leaf.device}")
    original = None
    ways: tuple[Callable[[Tensor], Tensor], ...] = (copy.copy, copy.deepcopy, again)
    if choose.below(2): original, leaf = leaf, pick(choose, ways)(leaf)
    places: Array = np.arange(1, count + 1).reshape(shape)
    x = leaf
    for _ in range(choose.below(4)):
      text, x, places, _ = moved(x, places, choose)
      self.tell(f"w = w{text}")
      if not choose.below(3):
        self.tell("w.numpy()" if choose.below(2) else "w.realize()")
        if not same(x.numpy(), np.where(places > 0, places - 1, 0).astype(np.float32)):
          raise self.wrong(f"it reads {x.tolist()}, the places are {places.tolist()}")
    weight = np.arange(1, places.size + 1, dtype=np.float32).reshape(places.shape)
    loss = (x * Tensor(weight, device=leaf.device)).sum()
    if choose.below(2): loss.realize()
    loss.backward()
    wanted = np.bincount(places.reshape(-1), weight.reshape(-1), count + 1)[1:].reshape(shape).astype(np.float32)
    assert leaf.grad is not None
    if not same(leaf.grad.numpy(), wanted): raise self.wrong(f"gradient {leaf.grad.tolist()}, not {wanted.tolist()}")
    if original is not None and original.grad is not None: raise self.wrong("the gradient of a copy is the original's")

  def jit(self, choose: Chooser) -> None:
    """Some calls of a TinyJit that gives views of its argument and adds to a state; all results are kept."""
    entry = replace(self.any(choose))  # it may be dropped meanwhile
    a = entry.array
    logical = a.dtype == np.bool_
    state = Tensor(np.zeros_like(a), device=entry.tensor.device)
    total = np.zeros_like(a)
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
      state.assign(state ^ x if logical else state.maximum(x))
      return x.flatten().flip(0), state.T
    function = TinyJit(step)
    for _ in range(2 + choose.below(3)):
      other = self.partner(choose, entry)
      total = total ^ other.array if logical else np.maximum(total, other.array)
      flipped, turned = function(other.tensor)
      self.add(flipped, other.array.reshape(-1)[::-1], f"f({other.name})[0]")
      self.add(turned, total.T, f"f({other.name})[1]")
      if not choose.below(3): self.read(choose)
    if not same(state.numpy(), total): raise self.wrong(f"the state is {state.tolist()}, not {total.tolist()}")

  def check(self, choose: Chooser) -> None:
    """Read every entry, in some order."""
    waiting = list(self.entries)
    while waiting: self.read(choose, waiting.pop(choose.below(len(waiting))))


STEPS = ("move", "move", "move", "move", "compute", "reduce", "cat", "realize", "realize", "read", "read", "assign",
         "copy", "drop", "make")
RARE = ("differentiate", "jit")
CHANGING = ("move", "move", "move", "assign", "assign", "assign", "copy", "drop", "read")  # views that are changed


def chain(devices: Sequence[str], choose: Chooser, steps: int = 9) -> World:
  """One life: some steps, then everything is read. Raises Wrong."""
  world = World(devices)
  try:
    world.make(choose)
    kinds = STEPS if choose.below(3) else CHANGING
    for _ in range(3 + choose.below(steps)): getattr(world, pick(choose, kinds))(choose)
    if not choose.below(8): getattr(world, pick(choose, RARE))(choose)
    world.check(choose)
  except WrongValue: raise
  except (Error, AssertionError, TypeError, ValueError, KeyError, IndexError) as error:
    raise world.wrong(f"{type(error).__name__}: {error}") from error
  return world


def campaign(doc: str, module: str, life: Callable[[Sequence[str], Chooser], World]) -> int:
  """Run the lives that the command line asks for; the exit status is 1 where one is wrong."""
  head, _, examples = doc.partition("\n\n")
  parser = argparse.ArgumentParser(prog=f"python -m {module}", description=head, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--chains", type=int, default=1000, help="how many (default: 1000)")
  parser.add_argument("--first", type=int, default=0, help="number of the first chain")
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--only", type=int, help="one chain, with its story")
  parser.add_argument("--devices", default=",".join(DEVICES), help=f"names, with commas (default: {','.join(DEVICES)})")
  options = parser.parse_args()
  devices = tuple(options.devices.split(","))
  os.environ.setdefault("MOCKGPU", "gfx1100,gfx1100")  # AMD is a mock machine unless the user has chosen
  if options.only is not None:
    print("\n".join(life(devices, Seeded(f"{options.seed}.{options.only}")).story))
    return 0
  registry.KERNELS = 1 << 20  # small ones
  start, wrong, steps = time.monotonic(), 0, 0
  for number in range(options.first, options.first + options.chains):
    try: steps += len(life(devices, Seeded(f"{options.seed}.{number}")).story)
    except WrongValue as error:
      wrong += 1
      print(f"chain {number}:\n{error}\n", flush=True)
    if sys.stderr.isatty() and number % 100 == 0: print(f"{number} chains, {wrong} wrong", end="\r", file=sys.stderr)
    elif number % 5000 == 4999: print(f"{number + 1} chains, {wrong} wrong", file=sys.stderr, flush=True)
  seconds = time.monotonic() - start
  print(f"{options.chains} chains on {', '.join(devices)}, seed {options.seed}: {options.chains - wrong} right, "
        f"{wrong} wrong; {steps} steps, {seconds:.0f} s")
  return 1 if wrong else 0


if __name__ == "__main__": sys.exit(campaign(__doc__ or "", "tinyhw.tools.fuzz.views", chain))
