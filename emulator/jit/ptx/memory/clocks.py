"""Accesses of watched code whose warps are ordered by more than barriers of their block, as LLVM IR.

Beside each cell's worth of memory lies who wrote last and when, by his own clock (`order`): i64 of the clock, from bit
32 on the column that knows of it, and in the lowest byte of that the thread in its warp. Who has read it lies apart, a
plane for each warp and kind of work: i32 of the clock and, in the lowest bits, the thread. An access may be a finding
where a clock is larger than what its warp knows. Several warps that store the same bytes, or change them by atomics,
are told by none of their clocks: that says how many barriers of the whole block came before.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tinyhw.emulator.jit.ptx.memory import order, spans
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.values import Value, gather
from tinyhw.emulator.jit.vectors import interleaved, scatter
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.values.ops import U64

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.memory.access import Site
  from tinyhw.emulator.jit.ptx.memory.watched import Stored
  from tinyhw.emulator.jit.ptx.module.emit import Lanes

LOAD, STORE, ATOMIC, COPY = "load", "store", "atomic", "copy"
SEEN, TOLD = "seen", "told"  # strong loads and stores, where these order warps
UNSEEN = "unseen"  # that somebody else notes
LANES: Final = 6  # bits of who read, in a plane
MANY: Final = (1 << LANES) - 1
ENTRY: Final = 8  # bytes of a cell, 4 of one in a plane
_COLUMN: Final = 8  # bits below a column
_LANE: Final = (1 << _COLUMN) - 1
_LARGEST: Final = (1 << 31) - 1


@dataclass(frozen=True)
class CellMemory:
  """Where the cells of a memory are, as text: those of writes, and the planes."""
  writes: str
  planes: str
  apart: str
  kinds: tuple[int, ...]  # of work that has planes
  known: bool  # what was never written may not be read


def entered(g: Lanes) -> list[str]:
  """The text at a strand's entry. The first strand of a cluster has its clocks begin."""
  o = _order(g)
  lines = [f"  %order.at = getelementptr i8, ptr %context, i64 {layout.ORDER}", "  %order = load ptr, ptr %order.at",
           f"  %cells.at = getelementptr i8, ptr %context, i64 {layout.CELLS}", "  %cells = load i64, ptr %cells.at",
           f"  %epoch.at = getelementptr i8, ptr %state, i64 {layout.EPOCH}", "  %epoch = load i32, ptr %epoch.at",
           f"  %warp.at = getelementptr i8, ptr %state, i64 {layout.WARP}", "  %warp = load i32, ptr %warp.at",
           "  %watch.fresh = icmp eq i32 %from, -1", "  %watch.strand = icmp eq i32 %warp, 0",
           "  %watch.first = and i1 %watch.fresh, %watch.strand",
           "  br i1 %watch.first, label %watch.begin, label %watch.on", "watch.begin:",
           f"  %cells.size.at = getelementptr i8, ptr %context, i64 {layout.CELLS_SIZE}",
           "  %cells.size = load i64, ptr %cells.size.at", "  %cells.p = inttoptr i64 %cells to ptr",
           f"  %team.at = getelementptr i8, ptr %context, i64 {layout.TEAM}", "  %team = load i64, ptr %team.at",
           "  call void @begun(ptr %order, ptr %cells.p, i64 %cells.size, i64 %team)", "  br label %watch.on",
           "watch.on:",
           f"  %row.offset = mul i32 %warp, {o.row}", f"  %rows = getelementptr i8, ptr %order, i64 {o.rows}",
           "  %row = getelementptr i8, ptr %rows, i32 %row.offset", "  %own = getelementptr i32, ptr %row, i32 %warp",
           f"  %me = shl i32 %warp, {_COLUMN}"]
  for name, at in (("planes", order.PLANES), ("apart", order.APART), ("far.planes", order.FAR_PLANES),
                   ("far.apart", order.FAR_APART)):
    lines += [f"  %{name}.at = getelementptr i8, ptr %order, i64 {at}", f"  %{name} = load i64, ptr %{name}.at"]
  for at in (layout.CELLS_FAR, layout.WRITTEN):
    lines += [f"  %context.{at}.at = getelementptr i8, ptr %context, i64 {at}",
              f"  %context.{at} = load i64, ptr %context.{at}.at"]
  lines += [f"  %rank.at = getelementptr i8, ptr %state, i64 {layout.IN_CLUSTER}", "  %rank = load i32, ptr %rank.at"]
  if g.watch is not None and g.watch.cluster > 1:
    near = g.watch.shared
    lines += [f"  %blocks.apart.at = getelementptr i8, ptr %context, i64 {layout.APART}",
              "  %blocks.apart = load i64, ptr %blocks.apart.at", "  %rank.wide = zext i32 %rank to i64",
              "  %before.own = mul i64 %rank.wide, %blocks.apart",
              f"  %cells.before = mul i64 %before.own, {ENTRY // near}", "  %cells.own = add i64 %cells, %cells.before",
              f"  %planes.before = mul i64 %before.own, {4 // near}",
              "  %planes.own = add i64 %planes, %planes.before"]
  return lines


def functions(g: Lanes) -> list[str]:
  """The functions that watched code calls where warps have clocks."""
  w = g.watch
  if w is None or not w.kinds: return []
  g.e.declared.update(order.DECLARED)
  at_once = 1, spans.PIECE // w.shared, spans.OBJECT // w.shared, spans.PIECE // w.far
  g.e.declared.update(order.gathered(n) for n in at_once)
  return [order.functions(w.order, w.shared), spans.functions(w.order, w.shared, w.far, w.kinds, w.far_kinds)]


def _order(g: Lanes) -> order.Order:
  assert g.watch is not None
  return g.watch.order


def synced(g: Lanes) -> None:
  """Threads of a warp do something together: what they do from now on is later than what they have done."""
  now = g.e.op("load i32, ptr %own")
  g.e.do(f"store i32 {g.e.op(f'add i32 {now}, 1')}, ptr %own")


def met(g: Lanes) -> None:
  """A strand comes to a barrier of its whole block."""
  g.e.do(f"store i32 {g.e.op('add i32 %epoch, 1')}, ptr %epoch.at")


def speaks(g: Lanes, site: Site, listens: bool, told: str) -> None:
  """Threads `told` tell by addresses what their warp knows, and all may hear what others have told there."""
  e, w = g.e, g.width
  at = site.base if site.steps is None else g.materialized(site.base, site.steps)
  e.do(f"store <{w} x i64> {at.in_lanes()}, ptr {g.pointer('%context', layout.ADDRESSES)}, align 8")
  mask = g.active_bits if site.mask is None else g.bits(site.mask)
  tells = e.op(f"and i32 {mask}, {told}")
  e.do(f"call void @speak(ptr %context, ptr %state, i32 {mask if listens else '0'}, i32 {tells})")


def fenced(g: Lanes) -> None:
  """fence.proxy.async: what is known of the others' own work is so for what units do, too."""
  o = _order(g)
  synced(g)
  for source, target in ((order.OWN, order.PROXY), (order.BLOCK, order.VISIBLE)):
    of, to = (g.pointer("%row", 4 * o.column(kind)) for kind in (source, target))
    g.e.do(f"call void @more(ptr {to}, ptr {of}, i64 {o.warps})")
  g.e.do(f"store i32 0, ptr {g.pointer('%row', 4 * o.unfenced)}")


# ---- groups of asynchronous work

def issued(g: Lanes, kind: int) -> str:
  """Work of a kind begins: its clock."""
  at = g.pointer("%row", 4 * (_order(g).issued + kind))
  clock = g.e.op(f"add i32 {g.e.op(f'load i32, ptr {at}')}, 1")
  g.e.do(f"store i32 {clock}, ptr {at}")
  return clock


def commit(g: Lanes, kind: int) -> None:
  """What was begun so far is a group."""
  e, o = g.e, _order(g)
  at = g.pointer("%row", 4 * (o.committed + kind))
  count = e.op(f"load i32, ptr {at}")
  clock = e.op(f"load i32, ptr {g.pointer('%row', 4 * (o.issued + kind))}")
  e.do(f"store i32 {clock}, ptr {_ring(g, '%row', kind, count)}")
  e.do(f"store i32 {e.op(f'add i32 {count}, 1')}, ptr {at}")


def wait(g: Lanes, kind: int, left: int | None) -> None:
  """All but the latest `left` groups are done; None: all work of the kind."""
  e, o = g.e, _order(g)
  if left is None: return _done(g, kind, "%warp", e.op(f"load i32, ptr {g.pointer('%row', 4 * (o.issued + kind))}"))
  count = e.op(f"load i32, ptr {g.pointer('%row', 4 * (o.committed + kind))}")
  some, over = e.new_label("groups"), e.new_label("waited")
  e.do(f"br i1 {e.op(f'icmp sgt i32 {count}, {left}')}, label %{some}, label %{over}")
  e.start(some)
  _done(g, kind, "%warp", e.op(f"load i32, ptr {_ring(g, '%row', kind, e.op(f'sub i32 {count}, {left + 1}'))}"))
  e.do(f"br label %{over}")
  e.start(over)


def _ring(g: Lanes, row: str, kind: int, number: str) -> str:
  """Where the clock of a group is."""
  first = g.pointer(row, 4 * (_order(g).rings + kind * order.RING))
  return g.e.op(f"getelementptr i32, ptr {first}, i32 {g.e.op(f'and i32 {number}, {order.RING - 1}')}")


def _done(g: Lanes, kind: int, warp: str, clock: str) -> None:
  """Work of a warp is done up to a clock."""
  e = g.e
  e.declared["llvm.smax.i32"] = order.DECLARED["llvm.smax.i32"]
  at = e.op(f"getelementptr i32, ptr {g.pointer('%row', 4 * _order(g).column(kind))}, i32 {warp}")
  later = e.op(f"call i32 @llvm.smax.i32(i32 {e.op(f'load i32, ptr {at}')}, i32 {clock})")
  e.do(f"store i32 {later}, ptr {at}")


# ---- accesses

class ClockCells:
  """The cells of one access: `n` at once, beside each other from `at` on, or each at its own (`wide`)."""

  def __init__(self, g: Lanes, n: int, mask: str | None, at: Value) -> None:
    self.g, self.e, self.n, self.mask, self.at = g, g.e, n, mask, at
    self.t = f"<{n} x i32>"

  def _pointers(self, base: str, size: int) -> str:
    n, first = self.n, Value(self.e, base, U64, False)
    at = first + (self.at << (size.bit_length() - 3) if size > 4 else self.at)
    t = f"<{n} x i64>" if at.wide else "i64"
    return self.e.op(f"inttoptr {t} {at.text} to {t.replace('i64', 'ptr')}")

  def load(self, base: str, t: str) -> str:
    """Elements `t` of the array that begins at `base`."""
    size, e, n = int(t[1:]) // 8, self.e, self.n
    at = self._pointers(base, size)
    if self.at.wide: return gather(e, t, at, self.mask or "splat (i1 true)")
    if self.mask is None: return e.op(f"load <{n} x {t}>, ptr {at}, align 4")
    return e.call(f"<{n} x {t}>", f"llvm.masked.load.v{n}{t}.p0", ("ptr", f"align 4 {at}"), (f"<{n} x i1>", self.mask),
                  (f"<{n} x {t}>", "zeroinitializer"))

  def store(self, base: str, t: str, new: str, where: str | None = None) -> None:
    """Put elements there, `where` alone."""
    size, e, n = int(t[1:]) // 8, self.e, self.n
    at, mask = self._pointers(base, size), self.mask
    if where is not None: mask = where if mask is None else self.both(mask, where)
    if self.at.wide: return scatter(e, t, n, new, at, mask or "splat (i1 true)", 4)
    if mask is None: return e.do(f"store <{n} x {t}> {new}, ptr {at}, align 4")
    name = f"llvm.masked.store.v{n}{t}.p0"
    e.declared[name] = f"declare void @{name}(<{n} x {t}>, ptr, <{n} x i1>)"
    e.do(f"call void @{name}(<{n} x {t}> {new}, ptr align 4 {at}, <{n} x i1> {mask})")

  def op(self, what: str, a: str, b: str) -> str: return self.e.op(f"{what} {self.t} {a}, {b}")

  def every(self, number: int) -> str: return f"splat (i32 {number})"

  def both(self, a: str, b: str) -> str: return self.e.op(f"and <{self.n} x i1> {a}, {b}")

  def but(self, a: str, b: str) -> str:
    """Where a holds and b does not."""
    return self.both(a, self.e.op(f"xor <{self.n} x i1> {b}, splat (i1 true)"))

  def either(self, a: str, b: str) -> str: return self.e.op(f"or <{self.n} x i1> {a}, {b}")

  def select(self, condition: str, a: str, b: str) -> str:
    return self.e.op(f"select <{self.n} x i1> {condition}, {self.t} {a}, {self.t} {b}")

  def splat(self, scalar: str) -> str:
    first = self.e.op(f"insertelement {self.t} poison, i32 {scalar}, i32 0")
    zeros = f"<{self.n} x i32> zeroinitializer"
    return self.e.op(f"shufflevector {self.t} {first}, {self.t} poison, {zeros}")

  def some(self, lanes: str) -> str:
    """Whether it holds in any thread that is there."""
    if self.mask is not None: lanes = self.both(lanes, self.mask)
    return self.e.op(f"icmp ne i{self.n} {self.e.op(f'bitcast <{self.n} x i1> {lanes} to i{self.n}')}, 0")

  def known(self, columns: str, row: str = "%row") -> str:
    """What the warp knows of columns."""
    n = self.n
    wide = self.e.op(f"zext {self.t} {columns} to <{n} x i64>")
    at = self.e.op(f"getelementptr i32, ptr {row}, <{n} x i64> {wide}")
    with self.e.narrowed(n): return gather(self.e, "i32", at, "splat (i1 true)")

  def cell(self, clock: str, who: str) -> str:
    """A cell's i64."""
    n = self.n
    low, high = (self.e.op(f"zext {self.t} {x} to <{n} x i64>") for x in (clock, who))
    return self.e.op(f"or <{n} x i64> {low}, " + self.e.op(f"shl <{n} x i64> {high}, splat (i64 32)"))


def touched(g: Lanes, site: Site, kind: str, there: Value | None, stored: Stored | None) -> None:
  """Threads access shared or global memory, see `watched.touched`."""
  w, e = g.watch, g.e
  assert w is not None
  away, before = g.deopt(), e.side
  e.side = True
  if site.shared and w.cluster > 1: _in_cluster(g, site, kind, there, stored, away)
  else:
    memory = CellMemory("%cells", "%planes", "%apart", w.kinds, True) if site.shared else CellMemory(
      f"%context.{layout.CELLS_FAR}", "%far.planes", "%far.apart", w.far_kinds, False)
    _at(g, site, kind, there, stored, away, memory)
  e.side = before


def _in_cluster(g: Lanes, site: Site, kind: str, there: Value | None, stored: Stored | None, away: str) -> None:
  """Shared memory, of the own block or another one of the cluster, whose cells lie behind each other."""
  w, e = g.watch, g.e
  assert w is not None
  if site.steps is not None:
    own, other, over = (e.new_label(x) for x in ("own", "other", "touched"))
    first, total = site.base + min(site.steps), g.context(layout.SHARED_SIZE)
    near = e.op(f"icmp slt i64 {first.text}, {total.text}")
    e.do(f"br i1 {near}, label %{own}, label %{other if site.remote else away}")
    e.start(own)
    _at(g, site, kind, there, stored, away, CellMemory("%cells.own", "%planes.own", "%apart", w.kinds, True))
    if not site.remote: return
    e.do(f"br label %{over}")
    e.start(other)
  base = Value(e, (site.base if site.steps is None else g.materialized(site.base, site.steps)).in_lanes(), U64, True)
  field, low = base >> spaces.RANK & 0xFF, base & (1 << spaces.RANK) - 1
  before = Value(e, "%before.own", U64, False)
  places = low + g.o.where(field == 0, before, (field - 1) * Value(e, "%blocks.apart", U64, False))
  _at(g, site, kind, there, stored, away, CellMemory("%cells", "%planes", "%apart", w.kinds, True), places)
  if site.steps is None: return
  e.do(f"br label %{over}")
  e.start(over)


def _at(g: Lanes, site: Site, kind: str, there: Value | None, stored: Stored | None, away: str, memory: CellMemory,
        places: Value | None = None) -> None:
  """Look at the cells of an access in a memory, and note it. `places`: where each thread's are, in bytes of memory."""
  w, e = g.watch, g.e
  assert w is not None
  grain = w.shared if site.shared else w.far
  count, scale = max(1, site.width // grain), {1: 2, 2: 1, 4: 0}[grain]
  mask = site.mask if there is None else there
  changes = None if stored is None else [stored.changes[k * site.count // count] for k in range(count)]
  look = _Look(g, memory, kind, away)
  if places is not None: return _each(look, site, kind, mask, stored, changes, places << scale)
  if site.one:
    lanes = _one_of(g, kind, mask)
    flat = None
    if changes is not None:
      flat = "poison"
      for k, c in enumerate(changes): flat = e.op(f"insertelement <{count} x i1> {flat}, i1 {c.text}, i32 {k}")
    cells = ClockCells(g, count, None, site.base + min(site.steps or (0,)) << scale)
    look.at(cells, cells.splat(lanes), flat, None)
  elif site.block:
    n = g.width * count
    bits = None if mask is None else _repeated(g, mask.in_lanes(), count)
    lanes = "<" + ", ".join(f"i32 {k // count}" for k in range(n)) + ">"
    flat = None if changes is None else interleaved(e, [c.in_lanes() for c in changes], "i1")
    look.at(ClockCells(g, n, bits, site.base + min(site.steps or (0,)) << scale), lanes, flat, None)
  else:
    base = site.base if site.steps is None else g.materialized(site.base, site.steps)
    _each(look, site, kind, mask, stored, changes, Value(e, base.in_lanes(), U64, True) << scale)


def _each(look: _Look, site: Site, kind: str, mask: Value | None, stored: Stored | None, changes: list[Value] | None,
          base: Value) -> None:
  """Look at cells that lie apart, from `base` on for each thread."""
  g, w = look.g, look.g.watch
  assert w is not None
  count = max(1, site.width // (w.shared if site.shared else w.far))
  lanes = "<" + ", ".join(f"i32 {k}" for k in range(g.width)) + ">"
  bits = None if mask is None else mask.in_lanes()
  if site.one: lanes = ClockCells(g, g.width, None, base).splat(_one_of(g, kind, mask))
  for k in range(count):
    lost = None if stored is None or stored.lost is None else stored.lost[k * site.count // count].in_lanes()
    look.at(ClockCells(g, g.width, bits, base + 4 * k if k else base), lanes,
            None if changes is None else changes[k].in_lanes(), lost)


def _repeated(g: Lanes, mask: str, count: int) -> str:
  if count == 1: return mask
  n = g.width * count
  each = ", ".join(f"i32 {k // count}" for k in range(n))
  return g.e.op(f"shufflevector <{g.width} x i1> {mask}, <{g.width} x i1> poison, <{n} x i32> <{each}>")


def _one_of(g: Lanes, kind: str, mask: Value | None) -> str:
  """The number of the thread that accesses one place with others: of several that read MANY, of those that store the
  highest, whose bytes stay."""
  e, m = g.e, g.mask_type
  bits = g.active_bits if mask is None else g.bits(mask)
  e.declared[f"llvm.ctlz.{m}"] = f"declare {m} @llvm.ctlz.{m}({m}, i1)"
  zeros = e.op(f"call {m} @llvm.ctlz.{m}({m} {bits}, i1 false)")
  highest = e.op(f"and i32 {e.op(f'sub i32 31, {zeros}')}, 31")
  if kind not in {LOAD, SEEN, ATOMIC}: return highest
  several = e.op(f"and {m} {bits}, {e.op(f'sub {m} {bits}, 1')}")
  return e.op(f"select i1 {e.op(f'icmp eq {m} {several}, 0')}, i32 {highest}, i32 {MANY}")


class _Look:
  """What an access does with its cells: `away` is where threads go where it may be a finding."""

  def __init__(self, g: Lanes, memory: CellMemory, kind: str, away: str) -> None:
    self.g, self.e, self.memory, self.kind, self.away = g, g.e, memory, kind, away
    self.order = _order(g)
    self.clock = issued(g, order.COPY) if kind == COPY else g.e.op(f"add i32 {g.e.op('load i32, ptr %own')}, 1")

  def at(self, c: ClockCells, lanes: str, changes: str | None, lost: str | None) -> None:
    """Look at some cells and note the access there. `changes`: where a store makes other bytes; `lost`: where another
    thread's, of the same instruction, are there now."""
    kind = self.kind
    old = c.load(self.memory.writes, "i64")
    clock = self.e.op(f"trunc <{c.n} x i64> {old} to {c.t}")
    high = self.e.op(f"lshr <{c.n} x i64> {old}, splat (i64 32)")
    who = self.e.op(f"trunc <{c.n} x i64> {high} to {c.t}")
    column = c.op("lshr", who, c.every(_COLUMN))
    late = c.op("icmp sgt", clock, c.known(column))
    me = c.op("or", lanes, c.splat("%me"))
    if kind == COPY: mine = c.op("icmp eq", column, c.splat("%warp"))
    else: mine = c.op("icmp eq", c.op("and", who, c.every(order.WHO)), me)
    by_others = c.but(late, mine)
    marked = c.op("icmp ne", c.op("and", who, c.every(order.MBARRIER)), "zeroinitializer")
    bad = c.either(by_others, marked) if kind in {LOAD, SEEN, ATOMIC} else by_others
    if self.memory.known and kind in {LOAD, SEEN, ATOMIC}:
      gone = c.op("icmp ne", c.op("and", who, c.every(order.GONE)), "zeroinitializer")
      bad = c.either(bad, c.either(gone, c.op("icmp eq", clock, "zeroinitializer")))
    atomic = c.op("icmp ne", c.op("and", who, c.every(order.ATOMIC)), "zeroinitializer")
    if kind == LOAD:
      self._go(c, bad)
      if order.ATOMICS in self.memory.kinds: self._behind_atomics(c, atomic, lanes)
      return self._read(c, order.OWN, lanes, None)
    if kind == SEEN:
      self._go(c, bad)
      return self._read(c, order.ATOMICS, lanes, None)
    if kind in {ATOMIC, TOLD}:
      self._go(c, c.either(bad, self._late(c, lanes, {order.OWN, order.BULK})))
      c.store(self.memory.writes, "i64", self.e.op(f"or <{c.n} x i64> {old}, splat (i64 {order.ATOMIC << 32})"))
      return self._read(c, order.ATOMICS, lanes, None)
    if kind == STORE: self.e.do(f"store i32 1, ptr {self.g.pointer('%row', 4 * self.order.unfenced)}")
    now = c.splat(self.clock)
    new = c.cell(now, me)
    if kind == COPY: new = c.cell(now, c.splat(self.e.op(f"add i32 %me, {self.order.column(order.COPY) << _COLUMN}")))
    elif kind == STORE and changes is not None:
      # what copies and units have written nobody has compared
      unknown = c.op("icmp ult", c.op("sub", column, c.every(self.order.warps)),
                       c.every(self.order.column(order.BLOCK) - self.order.warps))
      flags = c.op("icmp ne", c.op("and", who, c.every(order.ATOMIC | order.MBARRIER | order.GONE)), "zeroinitializer")
      bad = c.both(by_others, c.either(changes, c.either(flags, unknown)))
      if self.g.watch is not None and self.g.watch.cluster > 1:  # those of two blocks no barrier of a block orders
        bad = c.either(bad, c.but(by_others, self._of_the_block(c, column)))
      new = self._several(c, by_others, now, me)
    self._go(c, c.either(bad, self._late(c, lanes, {*self.memory.kinds})))
    if kind == STORE:  # who stores the same must not pass by what was there before, or what nobody has compared
      over = "splat (i1 true)"
      if changes is not None:
        over = c.both(changes, c.op("icmp sgt", clock, c.known(column, self.g.pointer("%row", 4 * self.order.all))))
      new = self._alone(c, new, over, lanes)
    c.store(self.memory.writes, "i64", new)
    if lost is None: return
    new = self._alone(c, new, lost, c.every(MANY))
    if order.OWN not in self.memory.kinds: c.store(self.memory.writes, "i64", new, lost)

  def _alone(self, c: ClockCells, new: str, where: str, lanes: str) -> str:
    """Nobody else may store the same: as if it were read, or, where no plane says so, by the cells, which it gives."""
    if order.OWN in self.memory.kinds:
      self._read(c, order.OWN, lanes, where)
      return new
    v = f"<{c.n} x i64>"
    flag = self.e.op(f"select <{c.n} x i1> {where}, {v} splat (i64 {order.GONE << 32}), {v} zeroinitializer")
    return self.e.op(f"or {v} {new}, {flag}")

  def _behind_atomics(self, c: ClockCells, where: str, lanes: str) -> None:
    """A load does not go on where atomics came before that it does not know of."""
    some, over = self.e.new_label("atomics"), self.e.new_label("loaded")
    self.e.do(f"br i1 {c.some(where)}, label %{some}, label %{over}, !prof !2")
    self.e.start(some)
    self._go(c, self._late(c, lanes, {order.ATOMICS}))
    self.e.do(f"br label %{over}")
    self.e.start(over)

  def _several(self, c: ClockCells, where: str, clock: str, who: str) -> str:
    """The cells, which are of no single warp `where` others have not told of what they did."""
    column = self.e.op(f"add i32 %rank, {self.order.column(order.BLOCK)}")
    epoch = self.e.op(f"load i32, ptr {self.e.op(f'getelementptr i32, ptr %row, i32 {column}')}")
    block, of = (c.splat(x) for x in (self.e.op(f"add i32 {epoch}, 1"), self.e.op(f"shl i32 {column}, {_COLUMN}")))
    return c.cell(c.select(where, block, clock), c.select(where, of, who))

  def _of_the_block(self, c: ClockCells, column: str) -> str:
    """Where a warp of the own block wrote, or several."""
    first = c.splat(self.e.op(f"mul i32 %rank, {self._of_block}"))
    one = c.op("icmp ult", c.op("sub", column, first), c.every(self._of_block))
    several = self.e.op(f"add i32 %rank, {self.order.column(order.BLOCK)}")
    return c.either(one, c.op("icmp eq", column, c.splat(several)))

  def _go(self, c: ClockCells, bad: str) -> None:
    fine = self.e.new_label("fine")
    self.e.do(f"br i1 {c.some(bad)}, label %{self.away}, label %{fine}, !prof !2")
    self.e.start(fine)

  def _plane(self, number: str) -> str:
    """Where the plane of a number begins."""
    wide = self.e.op(f"zext i32 {number} to i64")
    return self.e.op(f"add i64 {self.memory.planes}, {self.e.op(f'mul i64 {wide}, {self.memory.apart}')}")

  def _own(self, kind: int) -> str:
    """Where the warp's own plane of a kind begins."""
    before = self.memory.kinds.index(kind) * self._strands
    return self._plane(self.e.op(f"add i32 %warp, {before}"))

  @property
  def _strands(self) -> int:
    """Those of a cluster."""
    assert self.g.watch is not None
    return self.g.watch.cluster * self._of_block

  @property
  def _of_block(self) -> int: return -(-self.g.plan.threads // self.g.width)

  def _read(self, c: ClockCells, kind: int, lanes: str, where: str | None) -> None:
    """Note who reads, or does something atomic, where that has a plane."""
    if kind not in self.memory.kinds: return
    clock = self.e.op(f"shl i32 {self.clock}, {LANES}")
    c.store(self._own(kind), "i32", c.op("or", c.splat(clock), lanes), where)

  def _late(self, c: ClockCells, lanes: str, kinds: set[int]) -> str:
    """Where somebody has read, or done something atomic, whose clock is not known: by planes of these kinds."""
    bad = "zeroinitializer"
    for k, kind in enumerate(self.memory.kinds):
      if kind not in kinds: continue
      own = kind in {order.OWN, order.ATOMICS}
      bad = c.either(bad, self._by_warps(c, k, order.OWN if own else kind, own))
      if own and self.kind != COPY: bad = c.either(bad, self._late_here(c, kind, lanes))
    return bad

  def _by_warps(self, c: ClockCells, number: int, column: int, others: bool) -> str:
    """Where a plane of some kind of work has a clock that is not known, warp by warp; `others`: but the own one's."""
    e, t = self.e, f"<{c.n} x i1>"
    before, warp, over = e.label, e.new_label("warp"), e.new_label("warps")
    e.do(f"br label %{warp}")
    e.start(warp)
    p = e.op(f"phi i32 [ 0, %{before} ], [ %{warp}.next, %{warp} ]")
    found = e.op(f"phi {t} [ zeroinitializer, %{before} ], [ %{warp}.found, %{warp} ]")
    columns = self.g.pointer("%row", 4 * self.order.column(column))
    limit = e.op(f"load i32, ptr {e.op(f'getelementptr i32, ptr {columns}, i32 {p}')}")
    if others: limit = e.op(f"select i1 {e.op(f'icmp eq i32 %warp, {p}')}, i32 {_LARGEST}, i32 {limit}")
    read = c.load(self._plane(e.op(f"add i32 {p}, {number * self._strands}")), "i32")
    late = c.op("icmp sgt", c.op("ashr", read, c.every(LANES)), c.splat(limit))
    e.do(f"%{warp}.found = or {t} {found}, {late}")
    e.do(f"%{warp}.next = add i32 {p}, 1")
    e.do(f"br i1 {e.op(f'icmp ult i32 {p}, {self._strands - 1}')}, label %{warp}, label %{over}")
    e.start(over)
    return f"%{warp}.found"

  def _late_here(self, c: ClockCells, kind: int, lanes: str) -> str:
    """Where another thread of the warp has, since they did something together."""
    own = c.load(self._own(kind), "i32")
    known = c.splat(self.e.op("load i32, ptr %own"))
    late = c.op("icmp sgt", c.op("ashr", own, c.every(LANES)), known)
    another = c.op("icmp ne", c.op("and", own, c.every(MANY)), lanes)
    return c.both(late, another)

