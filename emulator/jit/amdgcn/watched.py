"""Accesses of watched code: beside each access to memory one to its shadows, which say who wrote, and who touched it.

Whatever may be a finding of the checks leads to `fault`. LDS has cells (`cells`). What was written of scratch lies in a
copy of it, as ones; who touched a dword of global memory last between two barriers lies in a cell of its own, in a copy
of the mapping: the number of what runs there (20 bits), the wave that wrote it (6) and the one that read it (6), MANY
for several. Cells with another number are empty: whatever a workgroup does between two barriers is done before another
one comes.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tinyhw.core.memory import Access
from tinyhw.emulator.amdgcn.memory.tables import STORES
from tinyhw.emulator.check.amdgcn.effects import kind_of
from tinyhw.emulator.check.amdgcn.paths import Proof
from tinyhw.emulator.jit.amdgcn.access import Accesses
from tinyhw.emulator.jit.amdgcn.cells import (
  ATOMICS,
  COMPARES,
  KNOWN,
  LOAD,
  MANY,
  STORE,
  Cells,
  block_load,
  block_store,
)
from tinyhw.emulator.jit.amdgcn.context import (
  KNOWN_OUT,
  LDS_CELLS,
  LDS_SIZE,
  MAPPINGS,
  SHADOWS_IN,
  SHADOWS_OUT,
  TABLE,
)
from tinyhw.emulator.jit.amdgcn.moves import EVERY
from tinyhw.emulator.jit.amdgcn.outline import Outlined
from tinyhw.emulator.jit.amdgcn.shadows import Shadows
from tinyhw.emulator.jit.amdgcn.site import Site
from tinyhw.emulator.jit.amdgcn.state import HERE, LDS, ME, Registers
from tinyhw.emulator.jit.values import BOOL, Emitter, Untranslatable, Value, convert, gather
from tinyhw.emulator.jit.vectors import chained, interleaved, scatter
from tinyhw.emulator.values.ops import I32, U32, U64
from tinyhw.isa.amdgcn import Instruction

READ, WRITE, SCALAR, LATE = Access.READ, Access.WRITE, 16, 32  # what a row of the table serves
FIRST: Final = 4096  # the number's first bit in a cell
TILE: Final = 16  # lanes that often have one place, or the same places as the 16 lanes before
ROW: Final = 64  # bytes of a mapping in the table: start, size, distance to the host, what it serves, distance to cells
FIND: Final = f"""
define private i1 @find(ptr %context, ptr %site, i64 %address, i64 %extent, i64 %access) noinline {{
  %count.at = getelementptr i8, ptr %context, i64 {MAPPINGS}
  %count = load i64, ptr %count.at
  %table.at = getelementptr i8, ptr %context, i64 {TABLE}
  %table = load ptr, ptr %table.at
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %other ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %try, label %none
try:
  %row = getelementptr [{ROW} x i8], ptr %table, i64 %i
  %start = load i64, ptr %row
  %size.at = getelementptr i8, ptr %row, i64 8
  %size = load i64, ptr %size.at
  %relative = sub i64 %address, %start
  %here = icmp ult i64 %relative, %size
  %next = add i64 %i, 1
  br i1 %here, label %found, label %other
found:
  %allowed.at = getelementptr i8, ptr %row, i64 24
  %allowed = load i64, ptr %allowed.at
  %common = and i64 %allowed, %access
  %legal = icmp eq i64 %common, %access
  %end = add i64 %relative, %extent
  %inside = icmp ule i64 %end, %size
  %good = and i1 %legal, %inside
  br i1 %good, label %take, label %other
other:
  br label %loop
take:
  %distance.at = getelementptr i8, ptr %row, i64 16
  %distance = load i64, ptr %distance.at
  %cells.at = getelementptr i8, ptr %row, i64 32
  %cells = load i64, ptr %cells.at
  store i64 %start, ptr %site
  %site.size = getelementptr i8, ptr %site, i64 8
  store i64 %size, ptr %site.size
  %site.distance = getelementptr i8, ptr %site, i64 16
  store i64 %distance, ptr %site.distance
  %site.cells = getelementptr i8, ptr %site, i64 24
  store i64 %cells, ptr %site.cells
  ret i1 true
none:
  ret i1 false
}}
"""


@dataclass(frozen=True)
class _Near:
  """An access to LDS: where that and its cells lie, what the wave puts into cells, each lane's offset, bytes a lane."""
  r: Registers
  base: str
  cells: str
  here: str
  used: Value
  width: int


@dataclass(frozen=True)
class _Shape:
  """Where the dwords of an access are: `run` of them from each place on, and which one's each lane has, counted in
  accesses. `mask` says which are there, of the lanes one after the other."""
  places: tuple[Value, ...]
  run: int
  lanes: Sequence[int]
  mask: str | None = None


class _Inside(Accesses):
  """The accesses of one function: which site it serves is an argument."""

  races = False

  def _number(self, site: Site) -> str: return "%index"

  def _require(self, condition: Value) -> None:
    """Go on where it holds; else the reference has to look."""
    on = self.e.new_label("on")
    self._branch(condition, on, self.fault)
    self.e.start(on)

  def _nobody(self, r: Registers, bad: Value) -> None:
    """Go on where it holds in no active lane."""
    lanes = bad if r.full else bad & r.active()
    n = self.e.lanes
    bits = self.e.op(f"bitcast <{n} x i1> {lanes.in_lanes()} to i{n}")
    self._require(Value(self.e, self.e.op(f"icmp eq i{n} {bits}, 0"), BOOL, False))

  def _move(self, r: Registers, base: str, offsets: Value, width: int, stride: int,
            words: Sequence[Value] | None) -> list[Value]:
    after = self.e.new_label("moved")
    parts = self._served(r, base, offsets, width, stride, words, after)
    self.e.start(after)
    return self._merged(parts, max(1, width // 4)) if words is None else []

  # ---- shadows

  def _known(self, r: Registers, base: str, offsets: Value, width: int, stride: int, kind: str, clean: bool,
             exact: Sequence[Value] = ()) -> None:
    """What of it was written: a load leaves masks of what was not, a store notes it, an atomic needs all of it."""
    e, n, count = self.e, self.e.lanes, max(1, width // 4)
    parts = (0xFF, 0) if width == 1 else (0xFFFF, 0) if width == 2 else (0xFFFF, 0xFFFF0000)
    if kind == "store":
      words = [*exact]
      for k in range(count if not exact else 0):
        word: Value = e.const(U32, 0xFFFFFFFF)
        for h in (0, 1) if not clean else ():
          at = self._context(SHADOWS_IN + 16 * k + 8 * h)
          lanes = Value(e, e.op(f"bitcast i{n} {e.op(f'load i{n}, ptr {at}, align 8')} to <{n} x i1>"), BOOL, True)
          word = word & r.o.where(lanes, e.const(U32, 0xFFFF if h else 0xFFFF0000), e.const(U32, 0xFFFFFFFF))
        words.append(Value(e, word.in_lanes(), U32, True))
      self._move(r, base, offsets, width, stride, words)
      return
    for k, word in enumerate(self._move(r, base, offsets, width, stride, None)):
      if stride != 4:
        e.do(f"store <{n} x i32> {word.in_lanes()}, ptr {self._context(KNOWN_OUT + k * 4 * n)}, align 4")
      for h, part in enumerate(parts):
        bad = (word & part) != part if part else None
        if kind != "load":
          if bad is not None: self._nobody(r, bad)
          continue
        bits = "0"
        if bad is not None:
          lanes = bad if r.full else bad & r.active()
          bits = e.op(f"bitcast <{n} x i1> {lanes.in_lanes()} to i{n}")
        e.do(f"store i{n} {bits}, ptr {self._context(SHADOWS_OUT + 16 * k + 8 * h)}, align 8")

  def _cells(self, r: Registers, base: str, offsets: Value, at: Value, width: int, kind: str) -> None:
    """Who touches it. `at` has the low bits of the addresses, `offsets` say where the cells are."""
    e, step = self.e, min(width, 4)
    self._nobody(r, (at & 3) > 4 - step)  # parts of two dwords
    low = at & 3
    if step < 4: offsets = offsets - (convert(low, U64) if offsets.dtype.itemsize == 8 else low.view(I32))
    width = max(width, 4)
    me = Value(e, e.op(f"load i32, ptr {e.op(f'getelementptr i32, ptr %state, i64 {ME}')}"), U32, False)
    mine, number = me & 63, me & ~(FIRST - 1) & 0xFFFFFFFF
    o, new = r.o, []
    bad: Value | None = None
    for cell in self._move(r, base, offsets, width, 4, None):
      other = cell ^ number
      other = o.where(other < FIRST, other, e.const(U32, 0))
      writer, reader = other >> 6, other & 63
      written, read = (writer != 0) & (writer != mine), (reader != 0) & (reader != mine)
      if kind == "load":  # beside a comparison, which looks again at what it read
        clash = written & (writer != COMPARES)
        reader = o.where(read, e.const(U32, MANY), mine)
      elif kind == "store": clash, writer = written | read, mine
      elif kind == "compare":
        clash = written & (writer < COMPARES)
        writer = o.where(writer == mine, e.const(U32, MANY), o.where(writer < COMPARES, e.const(U32, COMPARES), writer))
      else:
        clash = written & (writer != ATOMICS) & (writer != COMPARES) | read
        writer = o.where(writer == mine, e.const(U32, MANY), e.const(U32, ATOMICS))
      bad = clash if bad is None else bad | clash
      new.append(Value(e, (number | writer << 6 | reader).in_lanes(), U32, True))
    assert bad is not None
    self._nobody(r, bad)
    self._move(r, base, offsets, width, 4, new)

  # ---- memories

  def far(self, r: Registers, addresses: Value, site: Site, words: Sequence[Value] | None, *,  # type: ignore[override]
          access: int, race: str) -> list[Value]:
    """Global memory at a 64-bit address in each lane. `race` is what cells are told, "" for nothing; without words
    nothing is stored."""
    e = self.e
    before, e.side = e.side, True
    addresses = Value(e, addresses.in_lanes(), U64, True)
    width = Value(e, str(site.width), U64, False, site.width)
    index, row = self._site(site)

    def inside() -> Value:
      start, size = self._row(row)
      good = (addresses - start <= size - width) & (size >= width)
      if not r.full: good = good | ~r.active()
      return self._every(good)
    fast, miss, slow = (e.new_label(x) for x in ("fast", "miss", "slow"))
    self._branch(inside(), fast, miss)
    e.start(miss)
    self._find(row, self._leader(r, addresses), width, access)
    self._branch(inside(), fast, slow)
    e.start(slow)
    self._hand_over(self._leader(r, addresses), r.active(), ())
    self._callback(index, None)
    self._find(row, self._leader(r, addresses), width, access)
    self._branch(inside(), fast, self.fault)
    e.start(fast)
    pointers = addresses + self._distance(row)
    loaded = self._move(r, "", pointers, site.width, 4, words) if words is None or words else []
    if race:
      cells = self._load64(e.op(f"getelementptr i8, ptr {row}, i64 24"))
      self._cells(r, "", addresses + cells, convert(addresses, U32), site.width, race)
    e.side = before
    return loaded

  def shared(self, r: Registers, at: Value, site: Site, words: Sequence[Value] | None, clean: bool,
             kind: str) -> list[Value]:
    """A workgroup's LDS. Lanes that are switched off take the place of one that is not: to look at it twice changes
    nothing, and costs less than to leave them out."""
    e, width = self.e, site.width
    before, e.side = e.side, True
    at = Value(e, at.in_lanes(), U32, True)
    over, parts = e.new_label("over"), list[tuple[str, list[Value]]]()
    if not r.full:
      some = e.new_label("some")
      parts.append((e.label, [e.const(U32, 0)] * max(1, width // 4)))
      e.do(f"br i1 {(r.to_bits(r.active()) != 0).text}, label %{some}, label %{over}")
      e.start(some)
    lane = self._first_lane(r)
    first = Value(e, e.op(f"extractelement {at.type} {at.text}, i32 {lane.text}"), U32, False)
    used = at if r.full else r.o.where(r.active(), at, first)
    size = self._load64(self._context(LDS_SIZE))
    self._require(size >= width)
    wrong = used > convert(size, U32) - width
    if width > 1: wrong = wrong | ((used & min(width, 4) - 1) != 0)
    self._require(r.to_bits(wrong) == 0)
    base = e.op(f"load ptr, ptr {e.op(f'getelementptr i32, ptr %state, i64 {LDS}')}")
    here = e.op(f"load i32, ptr {e.op(f'getelementptr i32, ptr %state, i64 {HERE}')}")
    near = _Near(r, base, self._behind(base, LDS_CELLS), here, used, width)
    for holds, shape in self._shapes(near, first - lane * width, kind) if clean else ():
      here_, on = e.new_label("here"), e.new_label("on")
      e.do(f"br i1 {holds.text}, label %{here_}, label %{on}")
      e.start(here_)
      self._touch(near, shape, kind)
      loaded = self._moved(near, shape, words)
      parts.append((e.label, loaded))
      e.do(f"br label %{over}")
      e.start(on)
    loaded = self._anyhow(near, words, clean, kind)
    parts.append((e.label, loaded))
    e.do(f"br label %{over}")
    e.start(over)
    e.side = before
    return self._merged(parts, max(1, width // 4)) if words is None else []

  def _shapes(self, near: _Near, start: Value, kind: str) -> Iterator[tuple[Value, _Shape]]:
    """(what holds there, where all lanes' dwords are) of the usual patterns; `start` is where that of lane 0 would be
    if the lanes followed one another."""
    e, r, used, width, n = self.e, near.r, near.used, near.width, self.e.lanes
    if width < 4 or kind not in {LOAD, STORE}: return
    count, lanes = width // 4, range(n)
    mask = None if r.full else _repeated(e, self._mask_text(r), count)
    if width != 12:
      follow = used == start + e.vector(U32, [k * width for k in lanes])
      if not r.full: follow = follow | ~r.active()
      yield self._every(follow), _Shape((start,), n * count, lanes, mask)
    if kind == STORE: return
    if width != 12 and r.full:
      again = used == start + e.vector(U32, [k % TILE * width for k in lanes])
      yield self._every(again), _Shape((start,), TILE * count, [k % TILE for k in lanes])
    t, order = used.type, ", ".join(f"i32 {k // TILE * TILE}" for k in lanes)
    rows = Value(e, e.op(f"shufflevector {t} {used.text}, {t} poison, <{n} x i32> <{order}>"), U32, True)
    yield self._every(used == rows), _Shape(self._each(near, range(0, n, TILE)), count, [k // TILE for k in lanes])

  def _each(self, near: _Near, lanes: Iterable[int]) -> tuple[Value, ...]:
    """The offsets of some lanes' dwords."""
    used = near.used if near.width >= 4 else near.used & 0xFFFFFFFC
    return tuple(Value(self.e, self.e.op(f"extractelement {used.type} {used.text}, i32 {k}"), U32, False)
                 for k in lanes)

  def _first_lane(self, r: Registers) -> Value:
    """The lowest active lane."""
    if r.full: return self.e.const(U32, 0)
    return convert(r.o.trailing_zeros(r.to_bits(r.active())), U32)

  def _touch(self, near: _Near, shape: _Shape, kind: str) -> None:
    """Go on where no cell makes the access a finding, and have them note it; a load leaves what nobody has written."""
    e, run = self.e, shape.run
    pointers = [self._at(near.cells, "i32", place.text) for place in shape.places]
    cells = Cells(e, run * len(pointers), near.here)
    old = chained(e, [block_load(e, run, p, shape.mask) for p in pointers], run)
    turned = cells.turned(old, kind)
    self._require(~Value(e, cells.some(turned.bad, shape.mask), BOOL, False))
    note, noted = e.new_label("note"), e.new_label("noted")
    if kind == LOAD:
      e.do(f"br i1 {cells.some(cells.op('icmp ne', old, turned.new), shape.mask)}, label %{note}, label %{noted}")
      e.start(note)
    for k, p in enumerate(pointers):
      order = ", ".join(f"i32 {x}" for x in range(k * run, (k + 1) * run))
      part = turned.new if len(pointers) == 1 else e.op(
        f"shufflevector {cells.t} {turned.new}, {cells.t} poison, <{run} x i32> <{order}>")
      block_store(e, run, part, p, shape.mask)
    if kind != LOAD: return
    e.do(f"br label %{noted}")
    e.start(noted)
    self._written(near, shape, cells, old)

  def _moved(self, near: _Near, shape: _Shape, words: Sequence[Value] | None) -> list[Value]:
    """The access itself."""
    e = self.e
    pointers = [self._at(near.base, "i32", place.text) for place in shape.places]
    if words is None:
      return self._of_lanes(near, shape, chained(e, [block_load(e, shape.run, p, shape.mask) for p in pointers],
                                                 shape.run))
    block_store(e, shape.run, interleaved(e, [w.view(U32).in_lanes() for w in words], "i32"), pointers[0], shape.mask)
    return []

  def _of_lanes(self, near: _Near, shape: _Shape, dwords: str) -> list[Value]:
    """The dwords of each lane among those of a shape."""
    e, count = self.e, max(1, near.width // 4)
    t, out = f"<{shape.run * len(shape.places)} x i32>", []
    for k in range(count):
      order = ", ".join(f"i32 {lane * count + k}" for lane in shape.lanes)
      out.append(e.op(f"shufflevector {t} {dwords}, {t} poison, <{e.lanes} x i32> <{order}>"))
    return [Value(e, x, U32, True) for x in out]

  def _anyhow(self, near: _Near, words: Sequence[Value] | None, clean: bool, kind: str) -> list[Value]:
    """Dwords, or parts of some, at a place of each lane's own."""
    e, width = self.e, near.width
    if kind == STORE and (width < 4 or not clean):
      for k in range(max(1, width // 4)): self._stored(near, k, clean)
    else: self._touch(near, _Shape(self._each(near, range(e.lanes)), max(1, width // 4), range(e.lanes)), kind)
    offsets = near.used.view(I32)
    if words is None: return self._gather(near.base, offsets, width, 4, EVERY)
    if words: self._scatter(near.base, offsets, words, width, 4, self._mask_text(near.r))
    return []

  def _stored(self, near: _Near, k: int, clean: bool) -> None:
    """The cells of dwords of which a store may not write everything: byte after byte, for several lanes may store to
    bytes of one dword."""
    e, r, width = self.e, near.r, min(near.width, 4)
    cells = Cells(e, e.lanes, near.here)
    dwords = (near.used if width == 4 else near.used & 0xFFFFFFFC) + 4 * k
    pointers = self._at(near.cells, dwords.type, dwords.text)
    given: Value = e.const(U32, (1 << width) - 1)
    for h in (0, 1) if not clean else ():
      bits = e.op(f"load i{e.lanes}, ptr {self._context(SHADOWS_IN + 16 * k + 8 * h)}, align 8")
      lanes = Value(e, e.op(f"bitcast i{e.lanes} {bits} to <{e.lanes} x i1>"), BOOL, True)
      given = r.o.where(lanes, given & (3 if h else 12), given)
    touched: Value = e.const(U32, (1 << width) - 1)
    byte = near.used & 3
    if width < 4: given, touched = given << byte, touched << byte
    for place in range(0, 4, width):
      old = gather(e, "i32", pointers, EVERY)
      known = Value(e, old, U32, True) & ~touched & KNOWN | given
      turned = cells.turned(old, STORE, known.in_lanes())
      self._require(~Value(e, cells.some(turned.bad, None), BOOL, False))
      lanes = r.active() if width == 4 else r.active() & (byte == place)
      scatter(e, "i32", e.lanes, turned.new, pointers, lanes.in_lanes(), 4)

  def _written(self, near: _Near, shape: _Shape, cells: Cells, old: str) -> None:
    """Leave which lanes have loaded what nobody has written."""
    e, r, n = self.e, near.r, self.e.lanes
    part, all_, on = e.new_label("partly"), e.new_label("written"), e.new_label("told")
    missing = cells.some(cells.op("icmp ne", cells.op("and", old, KNOWN), KNOWN), shape.mask)
    e.do(f"br i1 {missing}, label %{part}, label %{all_}, !prof !2")

    def leave(k: int, h: int, bits: str) -> None:
      e.do(f"store i{n} {bits}, ptr {self._context(SHADOWS_OUT + 16 * k + 8 * h)}, align 8")
    e.start(all_)
    for k in range(max(1, near.width // 4)):
      for h in (0, 1): leave(k, h, "0")
    e.do(f"br label %{on}")
    e.start(part)
    for k, cell in enumerate(self._of_lanes(near, shape, old)):
      if near.width < 4: halves = [(cell & KNOWN) >> (near.used & 3) & (1 << near.width) - 1]
      else: halves = [cell & 3, cell >> 2 & 3]
      for h, half in enumerate(halves):
        leave(k, h, r.to_bits((half != (1 << min(near.width, 2)) - 1) & r.active()).text)
      if len(halves) == 1: leave(k, 1, "0")
    e.do(f"br label %{on}")
    e.start(on)

  def _behind(self, base: str, distance: int) -> str:
    return self.e.op(f"getelementptr i8, ptr {base}, i64 {self._load64(self._context(distance)).text}")

  def private(self, r: Registers, base: Value, offsets: Value, ok: Value, told: Value, site: Site,
              words: Sequence[Value] | None, stride: int, clean: bool, exact: Sequence[Value]) -> list[Value]:
    """Scratch: at offsets from the wave's. `exact` are the bits that were written, where they are known so well."""
    e = self.e
    before, e.side = e.side, True
    self._require(ok)
    offsets = Value(e, offsets.in_lanes(), U32, True)
    count = max(1, site.width // 4)
    used = offsets if r.full else r.o.where(r.active(), offsets, e.const(U32, 0))
    extent = self._largest(used) + ((count - 1) * stride + min(site.width, 4))
    index, row = self._site(site)
    fast, miss, slow = (e.new_label(x) for x in ("fast", "miss", "slow"))

    def inside() -> Value:
      start, size = self._row(row)
      relative = base - start
      return (relative <= size) & (relative + extent <= size) & (extent < 1 << 31)
    self._branch(inside(), fast, miss)
    e.start(miss)
    self._find(row, base, extent, READ | WRITE)
    self._branch(inside(), fast, slow)
    e.start(slow)
    self._hand_over(base, r.active(), ())
    self._callback(index, None)
    self._find(row, base, extent, READ | WRITE)
    self._branch(inside(), fast, self.fault)
    e.start(fast)
    host = e.op(f"inttoptr i64 {(base + self._distance(row)).text} to ptr")
    at = used.view(I32)
    loaded = self._move(r, host, at, site.width, stride, words)
    cells = self._load64(e.op(f"getelementptr i8, ptr {row}, i64 24"))
    behind = e.op(f"inttoptr i64 {(base + cells).text} to ptr")
    self._known(r, behind, at, site.width, stride, "load" if words is None else "store", clean, exact)
    e.side = before
    return loaded


def _repeated(e: Emitter, mask: str, count: int) -> str:
  """A mask of lanes, each `count` times."""
  if count == 1: return mask
  n = e.lanes
  order = ", ".join(f"i32 {k // count}" for k in range(n * count))
  return e.op(f"shufflevector <{n} x i1> {mask}, <{n} x i1> poison, <{n * count} x i32> <{order}>")


class Watched(Outlined):
  """The accesses of a watched program, as calls. `races` says that its workgroups have several waves."""

  def __init__(self, e: Emitter, fault: str, functions: dict[str, str], watch: Shadows, races: bool) -> None:
    super().__init__(e, fault, functions)
    self.watch, self.races = watch, races
    self.proof = Proof("")
    self._scalar = False
    self._stores: dict[int, int] = {}  # number of the instruction's store by what it stores

  def inside(self, e: Emitter) -> Accesses:
    made = _Inside(e, "fault")
    made.races = self.races
    return made

  def translate(self, r: Registers, i: Instruction, offset: int) -> None:
    self._stores = {}
    self._loads = 0
    super().translate(r, i, offset)
    if i.family == "FLAT" and not i.mnemonic.startswith("global") and self._loads:
      self.watch.take(self._loads, exact=i.mnemonic.startswith("scratch"))

  def _clean(self, site: Site, words: Sequence[Value]) -> bool:
    """Whether all of what is stored is defined; else its shadows are in the context."""
    i = site.instruction
    if kind_of(i) == "vmem_lds": return True
    number = self._stores.setdefault(id(words), len(self._stores))
    shift = STORES[i.mnemonic][1] if i.mnemonic in STORES else 16 if "d16_hi" in i.mnemonic else 0
    if site.segment in {"scratch", "lds"}:
      if all(x is None for pair in self.watch.data(i, number, len(words), shift) for x in pair): return True
      self.watch.give(i, number, len(words), shift)
      return False
    self.watch.is_defined(i, number, len(words), site.width, shift)
    return True

  def _far(self, r: Registers, addresses: Value, site: Site, words: Sequence[Value] | None) -> list[Value]:
    if words is not None: self._clean(replace(site, segment="global"), words)
    late = words is None and site.offset in self.proof.late
    if site.offset in self.proof.everywhere: self._away()
    if late: site = replace(site, late=True)
    access = WRITE if words is not None else READ | (LATE if late else 0)
    race = ("load" if words is None else "store") if self.races else ""

    def body(inside: Any, r: Registers, given: list[Any]) -> list[Value]:
      found: list[Value] = inside.far(r, given[0], site, given[1:] if words is not None else None, access=access,
                                      race=race)
      return found
    loaded = self._call(f"far.{access}", r, site, words, [Value(self.e, addresses.in_lanes(), U64, True)], body)
    if site.segment == "flat" and words is None: self._none(max(1, site.width // 4))
    return loaded

  def _none(self, count: int) -> None:
    """All of what was loaded is defined."""
    self._loads = count
    for k in range(count):
      for h in (0, 1): self.e.do(f"store i{self.e.lanes} 0, ptr {self._context(SHADOWS_OUT + 16 * k + 8 * h)}, align 8")

  def _near(self, r: Registers, base: Value, offsets: Value, site: Site, words: Sequence[Value] | None,
            stride: int = 4, ok: Value | None = None, told: Value | None = None) -> list[Value]:
    if site.segment != "scratch": return self._far(r, base + convert(offsets, U64), site, words)
    if "_lds_" in site.instruction.mnemonic or ok is None or told is None: raise Untranslatable("scratch to LDS")
    clean = words is None or self._clean(site, words)
    exact = [] if words is None or clean or site.width < 4 else self.watch.bits(site.instruction, len(words))
    n = len(exact)

    def body(inside: Any, r: Registers, given: list[Any]) -> list[Value]:
      base, offsets, ok, told, *data = given
      found: list[Value] = inside.private(r, base, offsets, ok, told, site, data[n:] if words is not None else None,
                                          stride, clean, data[:n])
      return found
    self._loads = max(1, site.width // 4) if words is None else 0
    return self._call(f"private.{stride}.{clean}.{n}", r, site, words, [base, offsets, ok, told, *exact], body)

  def _away(self) -> None:
    """Nothing that comes here goes on."""
    on = self.e.new_label("never")
    self.e.do(f"br i1 true, label %{self.fault}, label %{on}")
    self.e.start(on)

  def lds(self, r: Registers, at: Value, site: Site, words: Sequence[Value] | None) -> list[Value]:
    if site.offset in self.proof.shared: self._away()
    clean = words is None or self._clean(site, words)

    def body(inside: Any, r: Registers, given: list[Any]) -> list[Value]:
      found: list[Value] = inside.shared(r, given[0], site, given[1:] if words is not None else None, clean,
                                         "load" if words is None else "store")
      return found
    loaded = self._call(f"shared.{clean}", r, site, words, [at], body)
    if words is None:
      if site.instruction.family == "DS": self.watch.take(max(1, site.width // 4))
      else: self._loads = max(1, site.width // 4)
    return loaded

  def atomic_at(self, addresses: Value, lanes: Value, site: Site, words: Sequence[Value]) -> list[Value]:
    r, i = self.watch.r, site.instruction
    if i.mnemonic not in {"ds_append", "ds_consume"}:
      for number in range(2 if "data1" in i.operands else 1):
        count = site.width // 4 if i.family == "DS" else len(words)
        self.watch.is_defined(i, number, count, site.width, 0)
    kind = "compare" if "cmps" in i.mnemonic else "atomic"
    kept = r.limit(lanes)
    if site.segment == "lds":
      def shared(inside: Any, r: Registers, given: list[Any]) -> list[Value]:
        inside.shared(r, given[0], site, [], True, kind)
        return []
      self._call(f"{kind}.shared", r, site, [], [convert(addresses, U32)], shared)
    else:
      def far(inside: Any, r: Registers, given: list[Any]) -> list[Value]:
        inside.far(r, given[0], site, [], access=READ | WRITE, race=kind if self.races else "")
        return []
      # of one wave alone nobody else's cells count, but its rows are looked up
      self._call(f"{kind}.far" if self.races else "atomic.one", r, site, [], [addresses], far)
    r.restore(kept)
    return super().atomic_at(addresses, lanes, site, words)

  # ---- scalar loads

  def _smem(self, r: Registers, i: Instruction, offset: int) -> None:
    self._scalar = True
    try: super()._smem(r, i, offset)
    finally: self._scalar = False

  def _find(self, site: str, address: Value, extent: Value, access: int) -> Value:
    return super()._find(site, address, extent, SCALAR if self._scalar else access)


