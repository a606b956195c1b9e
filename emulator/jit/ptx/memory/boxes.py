"""Boxes of tensors that a tensor map describes, and columns of pixels (im2col), as LLVM IR."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx.memory.moves import TRACKED, changed, combine, deliver, place_name
from tinyhw.emulator.jit.ptx.routine import Routine, Variable
from tinyhw.emulator.jit.values import BOOL, Value, convert
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory import spaces, tensor
from tinyhw.emulator.ptx.memory.tensormap import ALIGN, COLUMN, CORNERS, SIZE, SWIZZLES, TYPES, place_of
from tinyhw.emulator.values.ops import I64, U64

_LINE: Final = tensor.LINE  # bytes that swizzles exchange pieces in
_ROW: Final = 256 * 8  # bytes that a row of a box may have
_FLOATS: Final = frozenset({"f16", "f32", "f64", "bf16"})
_PLAIN: Final = _FLOATS | {"u8", "u16", "u32", "s32", "u64", "s64"}  # elements that are copied as they are
_REDUCED: Final = {"inc": frozenset({"u32"}), "dec": frozenset({"u32"})}


class Tensor:
  """What a routine reads of a tensor map, checked. `c` are coordinates."""

  def __init__(self, r: Routine, rank: int, c: Sequence[Value], noted: str = "") -> None:
    self.r, self.rank = r, rank
    if noted == TRACKED: r.ask("own.map", r["map"], r.number(SIZE), r["lane"])
    at = r["map"]
    r.need((at & ALIGN - 1) == 0)
    self._at = r.ask(place_name(spaces.GENERIC), at, r.number(SIZE), r.number(Access.READ))
    r.need(self.field("rank") == rank - 1)
    for name in ("interleave", "atomicity"): r.need(self.field(name) == 0)
    self.kind, fill, self.swizzle = self.field("kind"), self.field("fill"), self.field("swizzle")
    kind = self.kind
    r.need((kind < len(TYPES)) & (fill < 2) & (self.swizzle < SWIZZLES.index(128) + 1))
    known = sum(1 << n for n, (t, _) in enumerate(TYPES) if t in _PLAIN)
    floats = sum(1 << n for n, (t, _) in enumerate(TYPES) if t in _FLOATS)
    sizes = sum((size.bit_length() - 1) << 4 * n for n, (_, size) in enumerate(TYPES) if size)
    self.log = r.number(sizes) >> kind * 4 & 15
    self.size = r.number(1) << self.log
    r.need(r.o.where(fill == 0, r.number(known), r.number(floats)) >> kind & 1 != 0)
    self.blank = r.o.where(fill == 0, r.number(0), self._nan())
    self.address = self.field("address")
    r.need((self.address & 15) == 0)
    self.strides, self.extents = [self.size], list[Value]()
    for k in range(rank):
      if k:
        stride = self.field("strides", k - 1)
        r.need((stride < 1 << 40) & ((stride & 15) == 0))
        self.strides.append(stride)
      extent = self.field("dims", k)
      self.extents.append(r.o.where(extent == 0, r.number(1 << 32), extent))
    self.box = self.boxes()
    self.row = self.box[0] << self.log
    width = r.number(16) << self.swizzle
    fits = (self.row == width) if rank > 1 else self.row <= width
    r.need(((self.row & 15) == 0) & ((self.swizzle == 0) | fits))
    self.bytes = self.row
    for box in self.box[1:]: self.bytes = self.bytes * box
    self._inside(c)

  def boxes(self) -> list[Value]:
    """How many elements each way are copied."""
    r, out = self.r, [self.field("box", k) for k in range(self.rank)]
    r.need(self.field("im2col") == 0)
    for k, box in enumerate(out): r.need((box - 1 < 256) & (self.field("steps", k) - 1 < (8 if not k else 1)))
    return out

  def field(self, name: str, k: int = 0) -> Value:
    """A field's value."""
    at, size = place_of(name, k)
    return convert(self.r.load(self._at + at, operands.unsigned(size)), U64)

  def _nan(self) -> Value:
    """Eight bytes of NaN."""
    r = self.r
    found = r.number(0)
    for size, nan in tensor.NAN.items():
      found = r.o.where(self.size == size, r.number(nan * ((1 << 64) - 1) // ((1 << 8 * size) - 1)), found)
    return found

  def _inside(self, c: Sequence[Value]) -> None:
    """What of the box is in the tensor: in each dimension from an element on to another one."""
    r = self.r
    self.at = c
    self.low, self.high, empty, cut = list[Value](), list[Value](), r.const(BOOL, 0), r.const(BOOL, 0)
    for x, extent, box in zip(c, self.extents, self.box):
      below, above = -x.view(I64), (extent - x).view(I64)
      low, high = r.o.max(below, 0), r.o.min(box.view(I64), above)
      empty, cut = empty | (high <= low), cut | (low != 0) | (high != box.view(I64))
      self.low.append(low.view(U64))
      self.high.append(high.view(U64))
    self.some, self.whole = ~empty, ~cut

  def reach(self, kind: int) -> Value:
    """How far the host's addresses are from the tensor's; 0 where nothing of the box is in it."""
    r, apart = self.r, Variable(self.r, self.r.number(0))
    with r.when(self.some):
      first = last = self.address
      for x, low, high, stride in zip(self.at, self.low, self.high, self.strides):
        end = x + high - 1
        r.need((end < 1 << 20) | (stride < 1 << 28))  # their product must not wrap
        first, last = first + (x + low) * stride, last + end * stride
      host = r.ask(place_name("global"), first, last - first + self.size, r.number(kind))
      apart.set(host - first)
    return apart.get()

  def rows(self, run: Callable[[Value, Value, Value], None]) -> None:
    """Run `run(number of the row, whether it is in the tensor, the address of its first element)` for each."""
    r, number = self.r, Variable(self.r, self.r.number(0))
    with ExitStack() as stack:
      inside, at = r.const(BOOL, 1), self.address + self.at[0] * self.size
      for k in range(self.rank - 1, 0, -1):
        x = stack.enter_context(r.each(self.box[k])) + self.at[k]
        inside, at = inside & (x < self.extents[k]), at + x * self.strides[k]
      run(number.get(), inside, at)
      number.set(number.get() + 1)

  def pieces(self, offset: Value, number: Value, move: Callable[[Value, Value, Value | None], None]) -> None:
    """Run `move(bytes from the row's start, bytes from the box's, how many, None for a piece)` for a row of shared
    memory: piece by piece, or for the whole row where its pieces lie together."""
    r, start = self.r, number * self.row
    with r.when(self.swizzle == 0): move(r.number(0), start, self.row)
    with r.when(self.swizzle != 0):
      mask = (r.number(1) << self.swizzle) - 1
      with r.each(self.row >> 4) as k:
        at = offset + start + (k << 4)
        move(k << 4, (at ^ (at >> 7 & mask) << 4) - offset, None)


class Column(Tensor):
  """The channels of some pixels, see `emulator.ptx.memory.tensor.Column`; `moved` are the offsets from the filter's
  place."""

  def __init__(self, r: Routine, rank: int, c: Sequence[Value], moved: Sequence[Value], noted: str = "") -> None:
    super().__init__(r, rank, c, noted)
    self.moved, self.window = moved, list[tuple[Value, Value]]()
    most = CORNERS[rank]
    for k, x in enumerate(c[1:rank - 1]):
      lower, upper = (self._corner(name, k, most) for name in ("lower", "upper"))
      last = (self.extents[k + 1] - 1).view(I64) + upper
      r.need((lower <= x.view(I64)) & (x.view(I64) <= last))
      self.window.append((lower, last))
    for offset in moved: r.need(offset < 2 * most)

  def _corner(self, name: str, k: int, most: int) -> Value:
    value = convert(self.field(name, k).view(I64) << 48 >> 48, I64)
    self.r.need((value + most).view(U64) < 2 * most)
    return value

  def boxes(self) -> list[Value]:
    channels, pixels = self.field("box", 0), self.field("box", 1)
    r, self.steps = self.r, [self.field("steps", k) for k in range(1, self.rank)]
    r.need((self.field("im2col") == 1) & (channels - 1 < 256) & (pixels - 1 < COLUMN))
    r.need(self.field("steps", 0) - 1 < 8)
    for step in self.steps: r.need(step - 1 < 8)
    return [channels, pixels]

  def _inside(self, c: Sequence[Value]) -> None:
    super()._inside(c[:1])  # of the channels
    self.at = c

  def rows(self, run: Callable[[Value, Value, Value], None]) -> None:
    r = self.r
    places = [Variable(r, x) for x in self.at[1:]]
    first = self.address + (self.at[0] + self.low[0]) * self.size
    with r.each(self.box[1]) as number:
      inside, at, carry = self.some, first, r.const(BOOL, 1)
      for k, place in enumerate(places):
        x = place.get() + self.moved[k] if k < len(self.moved) else place.get()
        inside, at = inside & (x < self.extents[k + 1]), at + x * self.strides[k + 1]
      run(number, inside, at)
      for place, (low, high), step in zip(places, self.window, self.steps):
        new = place.get() + step
        over = new.view(I64) > high
        place.set(r.o.where(carry, r.o.where(over, low.view(U64), new), place.get()))
        carry = carry & over
      places[-1].set(r.o.where(carry, places[-1].get() + 1, places[-1].get()))


def column_load(rank: int, several: bool, noted: str) -> Routine:
  """Copies a column of pixels into shared memory; `noted`: in cells (`spans`)."""
  names, moved = [f"c{k}" for k in range(rank)], [f"o{k}" for k in range(rank - 2)]
  r = Routine(f"column.load.{rank}d{'.cast' * several}",
              ("map", "to", "barrier", *["blocks"] * several, *names, *moved, *["lane"] * (noted == TRACKED)))
  m = Column(r, rank, [r[n] for n in names], [r[n] for n in moved], noted)
  offset = r["to"]
  r.need((offset & _LINE - 1) == 0)
  blank, mixed = r.room("blank", _ROW), r.room("mixed", _ROW)
  low, many = m.low[0] << m.log, m.high[0] - m.low[0] << m.log
  with r.each(m.row >> 3) as k:
    for where in (blank, mixed): r.store(where + (k << 3), m.blank)

  def fill(host: Value) -> None:
    def row(number: Value, inside: Value, at: Value) -> None:
      source = Variable(r, blank)
      with r.when(inside):
        if noted == TRACKED: r.ask("note.fetched", at, many)
        found = r.ask(place_name("global"), at, many, r.number(Access.READ))
        source.set(r.o.where(m.whole, found, mixed))
        with r.when(~m.whole): r.move(mixed + low, found, many)
      of = source.get()
      m.pieces(offset, number, lambda k, to, n: r.move(host + to, of + k, n))
    m.rows(row)
  deliver(r, "shared", True, offset, m.bytes, m.bytes + _LINE - 1 & -_LINE, several, fill, noted=noted)
  changed(r)
  return r


def tensor_load(rank: int, several: bool, noted: str) -> Routine:
  """Copies a box of a tensor into shared memory; `noted`: in cells (`spans`)."""
  names = [f"c{k}" for k in range(rank)]
  r = Routine(f"box.load.{rank}d{'.cast' * several}", ("map", "to", "barrier", *["blocks"] * several,
                                                        *names, *["lane"] * (noted == TRACKED)))
  m = Tensor(r, rank, [r[n] for n in names], noted)
  offset = r["to"]
  r.need((offset & _LINE - 1) == 0)
  apart = m.reach(Access.READ)
  blank, mixed = r.room("blank", _ROW), r.room("mixed", _ROW)
  low, many = m.low[0] << m.log, m.high[0] - m.low[0] << m.log
  with r.when(~m.whole), r.each(m.row >> 3) as k:
    for where in (blank, mixed): r.store(where + (k << 3), m.blank)

  def fill(host: Value) -> None:
    def row(number: Value, inside: Value, at: Value) -> None:
      inside = inside & m.some
      source = Variable(r, blank)
      with r.when(inside):
        if noted == TRACKED: r.ask("note.fetched", at + low, many)
        whole = many == m.row
        source.set(r.o.where(whole, at + apart, mixed))
        with r.when(~whole): r.move(mixed + low, at + apart + low, many)
      found = source.get()
      m.pieces(offset, number, lambda k, to, n: r.move(host + to, found + k, n))
    m.rows(row)
  deliver(r, "shared", True, offset, m.bytes, m.bytes + _LINE - 1 & -_LINE, several, fill,
          noted=noted)
  changed(r)
  return r


def column_store(rank: int, operation: str, noted: str) -> Routine:
  """Copies what is in shared memory into a column of pixels, or combines its elements with it; `noted`: in cells
  (`spans`)."""
  names = [f"c{k}" for k in range(rank)]
  r = Routine(f"column.store.{rank}d{'.' * bool(operation)}{operation}",
              ("map", "to", *names, *["lane"] * (noted == TRACKED)))
  m = Column(r, rank, [r[n] for n in names], [], noted)
  kinds, host = _source(r, m, operation)
  if noted: r.ask("note.read", host, m.bytes)
  mixed = r.room("mixed", _ROW)
  low, many = m.low[0] << m.log, m.high[0] - m.low[0] << m.log
  access = r.number(Access.WRITE | Access.READ if operation else Access.WRITE)
  for act in (False, True):  # first everything is looked at
    def row(number: Value, inside: Value, at: Value, act: bool = act) -> None:
      with r.when(inside):
        found = r.ask(place_name("global"), at, many, access)
        if not act: return
        if noted: _far(r, operation, at, many)
        m.pieces(r["to"], number, lambda k, of, n: r.move(mixed + k, host + of, n))
        _put(r, m, operation, kinds, found, mixed + low, many)
    m.rows(row)
  changed(r)
  return r


def _source(r: Routine, m: Tensor, operation: str) -> tuple[dict[int, str], Value]:
  """(the types of elements that an operation is for, where the box lies in this process)."""
  kinds = {n: t for n, (t, _) in enumerate(TYPES) if t in _REDUCED.get(operation, _PLAIN)}
  if operation: r.need(r.number(sum(1 << n for n in kinds)) >> m.kind & 1 != 0)
  r.need((r["to"] & _LINE - 1) == 0)
  return kinds, r.ask(place_name("shared"), r["to"], m.bytes + _LINE - 1 & -_LINE, r.number(Access.READ))


def _put(r: Routine, m: Tensor, operation: str, kinds: dict[int, str], to: Value, source: Value, many: Value) -> None:
  """Copy or combine so many bytes of a row."""
  if not operation: return r.move(to, source, many)
  for n, t in kinds.items():
    with r.when(m.kind == n), r.each(many >> m.log) as k:
      combine(r, operation, t, to + (k << m.log), source + (k << m.log))
  return None


def _far(r: Routine, operation: str, at: Value, many: Value) -> None:
  """Note that global memory is written, or changed."""
  if operation: r.ask("looks.far", at, many)
  r.ask("note.far", at, many)


def tensor_store(rank: int, operation: str, noted: str) -> Routine:
  """Copies a box of shared memory into a tensor, or combines its elements with it; `noted`: in cells (`spans`)."""
  names = [f"c{k}" for k in range(rank)]
  r = Routine(f"box.store.{rank}d{'.' * bool(operation)}{operation}",
              ("map", "to", *names, *["lane"] * (noted == TRACKED)))
  m = Tensor(r, rank, [r[n] for n in names], noted)
  apart = m.reach(Access.WRITE | Access.READ if operation else Access.WRITE)
  kinds, host = _source(r, m, operation)
  if noted: r.ask("note.read", host, m.bytes)
  mixed = r.room("mixed", _ROW)
  low, many = m.low[0] << m.log, m.high[0] - m.low[0] << m.log

  def row(number: Value, inside: Value, at: Value) -> None:
    with r.when(inside & m.some):
      if noted: _far(r, operation, at + low, many)
      m.pieces(r["to"], number, lambda k, of, n: r.move(mixed + k, host + of, n))
      _put(r, m, operation, kinds, at + apart + low, mixed + low, many)
  m.rows(row)
  changed(r)
  return r
