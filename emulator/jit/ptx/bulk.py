"""Copies in bulk and of tensors' boxes as LLVM IR, by one thread of a warp; and changes of tensor maps.

A routine looks every address up and checks everything before it changes anything. Where it cannot do it (several
threads, a fault, a map or mapping of a rarer kind) nothing has happened, and the reference does the instruction.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx import access, helped, layout
from tinyhw.emulator.jit.ptx.emit import Lanes
from tinyhw.emulator.jit.ptx.routine import Routine, Variable, defined
from tinyhw.emulator.jit.values import BOOL, Untranslatable, Value, convert
from tinyhw.emulator.ptx import addresses, copies, memory, operands, tensor
from tinyhw.emulator.ptx.mbarrier import EXPECTED, LIMIT, PHASE, TX, VALID
from tinyhw.emulator.ptx.scope import Line
from tinyhw.emulator.ptx.tensormap import ALIGN, FIELDS, ORDINALS, SIZE, SWIZZLES, TYPES, USED, place_of
from tinyhw.emulator.values.ops import DTYPES, I32, I64, U32, U64
from tinyhw.isa.ptx.forms import SIZES, Form
from tinyhw.isa.ptx.model import Operand

_BLOCKS: Final = 16  # that a mask of a multicast can name
_LINE: Final = tensor.LINE  # bytes that swizzles exchange pieces in
_ROW: Final = 256 * 8  # bytes that a row of a box may have
_RANKS: Final = memory.RANK
_FLOATS: Final = frozenset({"f16", "f32", "f64", "bf16"})
_PLAIN: Final = _FLOATS | {"u8", "u16", "u32", "s32", "u64", "s64"}  # elements that are copied as they are
_REDUCED: Final = {"inc": frozenset({"u32"}), "dec": frozenset({"u32"})}


# ---- addresses

def place(space: str, clustered: bool) -> str:
  """Looks so many bytes up at an address of a space: where they are in this process, or 0 where not all are there."""
  r = Routine(_place(space), ("address", "size", "access"), "i64")
  where = Variable(r, r.number(0))
  at, size = r["address"], r["size"]
  if space == memory.GENERIC:
    shared = at - memory.SHARED_WINDOW < memory.WINDOW
    with r.when(shared): where.set(r.ask(_place("shared"), at - memory.SHARED_WINDOW, size, r["access"]))
    with r.when(~shared): where.set(r.ask(_place("global"), at, size, r["access"]))
  elif space == "shared":
    low, rank = at & (1 << _RANKS) - 1, at >> _RANKS
    r.need(low + size <= r.word("context", layout.SHARED_SIZE))
    where.set(r.word("state", layout.SHARED) + low)
    if not clustered: r.need(rank == 0)
    else:
      with r.when(rank != 0):
        cluster = r.word("context", layout.CLUSTER)
        r.need(rank <= cluster)
        block = r.word("state", layout.BLOCK)
        away = rank - 1 - (block - block // cluster * cluster)
        r.ask("lives", away)
        where.set(where.get() + away * r.word("context", layout.APART))
  else:
    row = r.room("row", layout.ROW)
    r.ask("find", f"ptr {r.pointer(row)}", at, size, "i64 0", r["access"])
    where.set(at + r.load(row + 16))
  return r.text(where.get())


def _place(space: str) -> str: return f"place.{space or 'generic'}"


def completed() -> str:
  """An mbarrier's word when so many bytes have come, or 0 where none is there, or it cannot count them."""
  r = Routine("completed", ("word", "count"), "i64")
  word, count, field = r["word"], r["count"], LIMIT - 1
  r.need(word >> VALID != 0)
  tx = ((word << 64 - TX - 21).view(I64) >> 43).view(U64) - count
  r.need(tx + (LIMIT - 1) < 2 * LIMIT - 1)
  pending, expected, phase = word & field, word >> EXPECTED & field, word >> PHASE & 3
  ends = (pending == 0) & (tx == 0)
  phase = r.o.where(ends, phase + 1 & 3, phase)
  pending = r.o.where(ends, expected, pending)
  return r.text(pending | expected << EXPECTED | (tx & (1 << 21) - 1) << TX | phase << PHASE | r.number(1 << VALID))


class _Told:
  """The mbarrier that a routine tells of the bytes, at an address of shared memory; none where there is no address."""

  def __init__(self, r: Routine, address: Value | None, size: Value) -> None:
    self._r, self._size = r, size
    self.host = None if address is None else self._look(address)

  def _look(self, address: Value) -> Value:
    """Where it is; it can count the bytes."""
    r = self._r
    r.need((address & 7) == 0)
    host = r.ask(_place("shared"), address, r.number(8), r.number(Access.READ | Access.WRITE))
    r.ask("completed", r.load(host), self._size)
    return host

  def tell(self) -> None:
    """The bytes have come."""
    r = self._r
    if self.host is not None: r.store(self.host, r.ask("completed", r.load(self.host), self._size))

  def apart(self, start: Value, size: Value) -> None:
    """It must not lie in what is written."""
    if self.host is not None: self._r.need((self.host + 8 <= start) | (self.host >= start + size))


def _changed(r: Routine) -> None:
  """Who polls looks again."""
  at = r.of("ptrtoint ptr %context to i64") + layout.CHANGES
  r.store(at, r.load(at) + 1)


def _to(r: Routine, space: str, barrier: bool, to: Value, size: Value, room: Value, several: bool,
        write: Callable[[Value], None]) -> None:
  """Have `write(host)` write bytes to an address, or at its place in each block of a mask, and their mbarriers told.
  `room` are the bytes there that must be there."""
  def target(at: Value, where: Value | None) -> tuple[Value, _Told]:
    host = r.ask(_place(space), at, room, r.number(Access.WRITE))
    told = _Told(r, where, size)
    told.apart(host, room)
    return host, told
  host, told = target(to, r["barrier"] if barrier else None)
  if not several:
    write(host)
    told.tell()
    return
  low = (1 << _RANKS) - 1
  r.need(r["blocks"] != 0)
  for act in (False, True):  # first everything is looked at
    with r.each(r.number(_BLOCKS)) as k, r.when((r["blocks"] >> k & 1) != 0):
      rank = k + 1 << _RANKS
      host, told = target(to & low | rank, r["barrier"] & low | rank)
      if act:
        write(host)
        told.tell()


# ---- bytes that lie together

def _combine(r: Routine, operation: str, t: str, to: Value, source: Value) -> None:
  """An element becomes what it and another one are together."""
  raw, dtype = operands.unsigned(SIZES[t]), operands.dtype_of(t)
  old, new = r.load(to, raw).view(dtype), r.load(source, raw).view(dtype)
  r.store(to, copies.combined(r.o, operation, t, old, new).view(raw))


def linear(target: str, source: str, barrier: bool, several: bool, align: int, operation: str, t: str) -> Routine:
  """Copies, or combines elements of a type, between two state spaces. The routine is not done yet."""
  name = ".".join(["copied", target or "generic", source or "generic", *["told"] * barrier, *["cast"] * several,
                   str(align), *([operation, t] if operation else [])])
  r = Routine(name, ("to", "source", "size", *["barrier"] * barrier, *["blocks"] * several))
  to, of, size = r["to"], r["source"], r["size"]
  r.need(((to | of | size) & align - 1) == 0)
  r.need(size != 0)
  host_of = r.ask(_place(source), of, size, r.number(Access.READ))

  def fill(host: Value) -> None:
    if not operation: return r.move(host, host_of, size)
    r.need((host - host_of >= size) & (host_of - host >= size))
    with r.each(size // SIZES[t]) as k: _combine(r, operation, t, host + k * SIZES[t], host_of + k * SIZES[t])
  _to(r, target, barrier, to, size, size, several, fill)
  _changed(r)
  return r


# ---- boxes of tensors

class _Map:
  """What a routine reads of a tensor map, checked."""

  def __init__(self, r: Routine, rank: int, c: Sequence[Value]) -> None:
    self.r, self.rank = r, rank
    at = r["map"]
    r.need((at & ALIGN - 1) == 0)
    self._at = r.ask(_place(memory.GENERIC), at, r.number(SIZE), r.number(Access.READ))
    r.need(self.field("rank") == rank - 1)
    for name in ("interleave", "atomicity", "im2col"): r.need(self.field(name) == 0)
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
    self.strides, self.extents, self.box = [self.size], list[Value](), list[Value]()
    for k in range(rank):
      if k:
        stride = self.field("strides", k - 1)
        r.need((stride < 1 << 40) & ((stride & 15) == 0))
        self.strides.append(stride)
      extent, box = self.field("dims", k), self.field("box", k)
      r.need((box - 1 < 256) & (self.field("steps", k) - 1 < (8 if not k else 1)))
      self.extents.append(r.o.where(extent == 0, r.number(1 << 32), extent))
      self.box.append(box)
    self.row = self.box[0] << self.log
    width = r.number(16) << self.swizzle
    fits = (self.row == width) if rank > 1 else self.row <= width
    r.need(((self.row & 15) == 0) & ((self.swizzle == 0) | fits))
    self.bytes = self.row
    for box in self.box[1:]: self.bytes = self.bytes * box
    self._inside(c)

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
      host = r.ask(_place("global"), first, last - first + self.size, r.number(kind))
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


def tensor_load(rank: int, several: bool) -> Routine:
  """Copies a box of a tensor into shared memory."""
  names = [f"c{k}" for k in range(rank)]
  r = Routine(f"box.load.{rank}d{'.cast' * several}", ("map", "to", "barrier", *["blocks"] * several, *names))
  m = _Map(r, rank, [r[n] for n in names])
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
        whole = many == m.row
        source.set(r.o.where(whole, at + apart, mixed))
        with r.when(~whole): r.move(mixed + low, at + apart + low, many)
      found = source.get()
      m.pieces(offset, number, lambda k, to, n: r.move(host + to, found + k, n))
    m.rows(row)
  _to(r, "shared", True, offset, m.bytes, m.bytes + _LINE - 1 & -_LINE, several, fill)
  _changed(r)
  return r


def tensor_store(rank: int, operation: str) -> Routine:
  """Copies a box of shared memory into a tensor, or combines its elements with it."""
  names = [f"c{k}" for k in range(rank)]
  r = Routine(f"box.store.{rank}d{'.' * bool(operation)}{operation}", ("map", "to", *names))
  m = _Map(r, rank, [r[n] for n in names])
  kinds = {n: t for n, (t, _) in enumerate(TYPES) if t in _REDUCED.get(operation, _PLAIN)}
  if operation: r.need(r.number(sum(1 << n for n in kinds)) >> m.kind & 1 != 0)
  offset = r["to"]
  r.need((offset & _LINE - 1) == 0)
  apart = m.reach(Access.WRITE | Access.READ if operation else Access.WRITE)
  host = r.ask(_place("shared"), offset, m.bytes + _LINE - 1 & -_LINE, r.number(Access.READ))
  mixed = r.room("mixed", _ROW)
  low, many = m.low[0] << m.log, m.high[0] - m.low[0] << m.log

  def row(number: Value, inside: Value, at: Value) -> None:
    with r.when(inside & m.some):
      m.pieces(offset, number, lambda k, of, n: r.move(mixed + k, host + of, n))
      to, source = at + apart + low, mixed + low
      if not operation: r.move(to, source, many)
      else:
        for n, t in kinds.items():
          with r.when(m.kind == n), r.each(many >> m.log) as k:
            _combine(r, operation, t, to + (k << m.log), source + (k << m.log))
  m.rows(row)
  _changed(r)
  return r


def replaced(space: str) -> Routine:
  """Changes a field of a tensor map; what lies between its fields becomes 0."""
  r = Routine(f"replaced.{space or 'generic'}", ("map", "offset", "width", "value"))
  r.need((r["map"] & ALIGN - 1) == 0)
  at = r.ask(_place(space), r["map"], r.number(SIZE), r.number(Access.READ | Access.WRITE))
  for width, dtype in ((1, DTYPES["u8"]), (4, U32), (8, U64)):
    with r.when(r["width"] == width):
      if width == 1: r.need(r["value"] < 1 << 8)
      r.store(at + r["offset"], convert(r["value"], dtype))
  between, size = place_of("")
  r.store(at + between, r.const(U32, 0))
  for k in range(USED, SIZE): r.store(at + k, r.const(DTYPES["u8"], 0))
  _changed(r)
  return r


# ---- instructions

def _one(g: Lanes, line: Line, k: int, routine: Routine, given: Sequence[Value], together: bool = False) -> None:
  """Have a routine act for the one thread that executes an instruction, or the first one where they do it `together`;
  where it does not, the reference does."""
  e = g.e
  places = [place(s, g.plan.clustered) for s in ("global", "shared", memory.GENERIC)]
  defined(e, *places, completed(), routine.text())
  e.declared.update(routine.declared)
  guard = operands.predicate(line)
  here = g.active_bits
  if guard is not None: here = e.op(f"and i32 {g.bits(guard(g))}, {here}")
  before, e.side = e.side, True
  some, alone, other, done = (e.new_label(name) for name in ("some", "alone", "other", "done"))
  e.do(f"br i1 {e.op(f'icmp eq i32 {here}, 0')}, label %{done}, label %{some}")
  e.start(some)
  lane = e.op(f"call i32 @llvm.cttz.i32(i32 {here}, i1 true)")
  rest = "0" if together else e.op(f"and i32 {here}, {e.op(f'sub i32 {here}, 1')}")
  e.do(f"br i1 {e.op(f'icmp eq i32 {rest}, 0')}, label %{alone}, label %{other}")
  e.start(alone)
  texts = [x.text if not x.wide else e.op(f"extractelement {x.type} {x.text}, i32 {lane}") for x in given]
  passed = "".join(f", i64 {text}" for text in texts)
  good = e.op(f"call i1 @{routine.name}(ptr %context, ptr %state{passed})")
  e.do(f"br i1 {good}, label %{done}, label %{other}, !prof !1")
  e.start(other)
  helped.emit(g, k)
  e.do(f"br label %{done}")
  e.start(done)
  e.side = before


def _address(g: Lanes, line: Line, operand: Operand, space: str) -> Value:
  found: Value = addresses.address(g.code, line, operand, space)(g)
  return convert(found.view(U32 if found.dtype.itemsize == 4 else U64), U64)


def _signed(g: Lanes, line: Line, operand: Operand) -> Value:
  found: Value = operands.reader(g.code, line, operand, "s32")(g)
  return convert(convert(found.view(I32), I64), U64)


def cp(g: Lanes, line: Line, form: Form) -> None:
  """cp.async.bulk, cp.reduce.async.bulk and their .tensor."""
  i, m = line.instruction, form.modifiers
  if m & {"commit_group", "wait_group", "wait_all", "prefetch", "cp_mask"}: raise Untranslatable("no compiled form")
  operation = copies.reduction(m)
  several = "multicast::cluster" in m
  if several and not g.plan.clustered: raise Untranslatable("outside of clusters")
  target, source = copies.ends(line)
  if "tensor" in m: return _tensor(g, line, form, target == "shared", several, operation)
  told = "bulk_group" not in m
  routine = linear(target, source, told, several, 16, operation, form.type if operation else "")
  given = [_address(g, line, i.operands[0], target), _address(g, line, i.operands[1], source),
           convert(operands.reader(g.code, line, i.operands[2], "u32")(g), U64)]
  if told: given.append(_address(g, line, i.operands[3], "shared"))
  if several: given.append(convert(operands.reader(g.code, line, i.operands[4], "u16")(g), U64))
  return _one(g, line, g.index, routine, given)


def _tensor(g: Lanes, line: Line, form: Form, loads: bool, several: bool, operation: str) -> None:
  i, m = line.instruction, form.modifiers
  if m & tensor.OTHERS: raise Untranslatable("no compiled form")
  rank = next(int(x[0]) for x in m if x in {"1d", "2d", "3d", "4d", "5d"})
  box, plain = (1, 0) if loads else (0, 1)
  base, parts = tensor.parts(line, i.operands[box], rank)
  given = [_address(g, line, base, memory.GENERIC), _address(g, line, i.operands[plain], "shared")]
  at = [_signed(g, line, p) for p in parts]
  if loads:
    given.append(_address(g, line, i.operands[2], "shared"))
    if several: given.append(convert(operands.reader(g.code, line, i.operands[3], "u16")(g), U64))
    return _one(g, line, g.index, tensor_load(rank, several), [*given, *at])
  return _one(g, line, g.index, tensor_store(rank, operation), [*given, *at])


@access.emits("tensormap")
def tensormap(g: Lanes, line: Line, form: Form, info: object) -> None:
  """tensormap.replace and tensormap.cp_fenceproxy."""
  i, m = line.instruction, form.modifiers
  if "cp_fenceproxy" in m:
    routine = linear("global", "shared", False, False, 1, "", "")
    given = [_address(g, line, i.operands[0], "global"), _address(g, line, i.operands[1], "shared")]
    return _one(g, line, g.index, routine, [*given, g.o.const("u64", SIZE)], together=True)
  name, rest = i.modifiers[2], [*i.operands]
  space = memory.space_of(m)
  at = _address(g, line, rest.pop(0), space)
  ordinal = operands.immediate(line, rest.pop(0), "u32") if len(rest) > 1 else 0
  field = ORDINALS.get(name) or FIELDS.get(name, name)
  count = {"dims": 5, "strides": 4, "box": 5, "steps": 5}.get(field, 1)
  if ordinal is None or int(ordinal) >= count: raise Untranslatable("of such a field")
  offset, width = place_of(field, int(ordinal))
  value = operands.reader(g.code, line, rest[0], form.type)(g)
  const = g.o.const
  _one(g, line, g.index, replaced(space), [at, const("u64", offset), const("u64", width), convert(value, U64)])
