"""Accesses of watched code: beside each access to memory one to cells, which say who touched it last, as LLVM IR.

Whatever may be a finding of the checks leaves compiled code. A cell is a dword: what runs between two barriers (EPOCH
bits), the thread that wrote last, and the one that has read since then, each as its number in the block and 1. Shared
memory has a cell for as many bytes as its smallest access has, global memory too. A cell of another epoch says no more
than whether somebody has written before: blocks run one after the other, and all threads of a block meet at each
barrier. Epochs come again after some time; a cell that is so old may be suspected, and nothing is missed for it.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tinyhw.emulator.jit.ptx.memory import async_copies, clocks, order
from tinyhw.emulator.jit.ptx.memory.clocks import ATOMIC, COPY, LOAD, STORE
from tinyhw.emulator.jit.ptx.memory.order import Order
from tinyhw.emulator.jit.ptx.module import layout, stack
from tinyhw.emulator.jit.values import Value, gather
from tinyhw.emulator.jit.vectors import interleaved, scatter
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.values.ops import U64

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.memory.access import Site
  from tinyhw.emulator.jit.ptx.module.emit import Lanes

THREAD: Final = 11  # bits of who wrote, and of who read
# in the place of a thread; BEFORE: in an earlier epoch; ALIKE: several stored the same; MANY: several read
NOBODY, BEFORE, ATOMICS, ALIKE, MANY = 0, 1025, 1026, 1027, 2047
WHO: Final = (1 << THREAD) - 1
WRITER: Final = WHO << THREAD
EPOCH: Final = 1 << 2 * THREAD  # its first bit
PADDING: Final = 4096  # bytes of cells before and behind those that are used


@dataclass(frozen=True)
class Watch:
  """How a kernel is watched: bytes that a cell stands for, whether loads of global memory have cells, and whether
  shared memory has those of copies. `kinds`: of work that has planes, where warps have clocks (`clocks`); else none.
  `cluster`: blocks that run together, `order` where their warps' clocks are. `speaking`: lines of atomics and of strong
  loads and stores, which order warps; `listening`: those whose results threads look at; none where they are to order
  nothing. `more`: warps could be ordered by more than is watched.
  """
  shared: int
  far: int
  tracks: bool
  copies: bool
  kinds: tuple[int, ...] = ()
  cluster: int = 1
  order: Order = Order()
  speaking: frozenset[int] = frozenset()
  listening: frozenset[int] = frozenset()
  more: bool = False

  @property
  def far_kinds(self) -> tuple[int, ...]:
    """Those that have planes of global memory."""
    tracked = (order.OWN, order.BULK) if self.tracks else ()
    return (*tracked, *(k for k in self.kinds if k == order.ATOMICS))


@dataclass(frozen=True)
class Stored:
  """What a store did, by element: where it changed what was there; and where another thread's, of the same
  instruction, is what is there now (None: nowhere)."""
  changes: list[Value]
  lost: list[Value] | None


class Cells:
  """The cells of one access: `n` of them at once."""

  def __init__(self, g: Lanes, n: int, mask: str | None) -> None:
    self.g, self.e, self.n, self.t, self.mask = g, g.e, n, f"<{n} x i32>", mask

  def op(self, what: str, a: str, b: str) -> str: return self.e.op(f"{what} {self.t} {a}, {b}")

  def every(self, number: int) -> str: return f"splat (i32 {number})"

  def both(self, *parts: str) -> str:
    out = parts[0]
    for p in parts[1:]: out = self.e.op(f"and <{self.n} x i1> {out}, {p}")
    return out

  def either(self, a: str, b: str) -> str: return self.e.op(f"or <{self.n} x i1> {a}, {b}")

  def differ(self, a: str, b: str) -> str: return self.op("icmp ne", a, b)

  def select(self, condition: str, a: str, b: str) -> str:
    return self.e.op(f"select <{self.n} x i1> {condition}, {self.t} {a}, {self.t} {b}")

  def some(self, lanes: str) -> str:
    """Whether it holds in any thread that is there."""
    if self.mask is not None: lanes = self.both(lanes, self.mask)
    return self.e.op(f"icmp ne i{self.n} {self.e.op(f'bitcast <{self.n} x i1> {lanes} to i{self.n}')}, 0")

  def splat(self, scalar: str) -> str:
    first = self.e.op(f"insertelement {self.t} poison, i32 {scalar}, i32 0")
    zeros = f"<{self.n} x i32> zeroinitializer"
    return self.e.op(f"shufflevector {self.t} {first}, {self.t} poison, {zeros}")

  def turned(self, old: str, me: str, kind: str, known: bool, changes: str | None) -> tuple[str, str]:
    """(where an access may be a finding, what the cells are then). `known`: what was never written is one. `changes`:
    where a store makes other bytes; None: it may anywhere.

    Threads may store the same bytes where nobody does more in the epoch: the cell has no reader then. Who touches what
    he has touched, or stores what is not compared, is noted as a reader too.
    """
    epoch = self.splat("%epoch.bits")
    same = self.op("icmp ult", self.op("xor", old, epoch), self.every(EPOCH))
    wrote, read = self.op("and", old, self.every(WRITER)), self.op("and", old, self.every(WHO))
    mine, nobody = self.op("shl", me, self.every(THREAD)), "zeroinitializer"
    by_others = self.both(same, self.differ(wrote, nobody), self.differ(wrote, mine),
                          self.differ(wrote, self.every(BEFORE << THREAD)))
    read_by_others = self.both(same, self.differ(read, nobody), self.differ(read, me))
    before = self.select(self.differ(wrote, nobody), self.every(BEFORE << THREAD), nobody)
    if kind in {STORE, COPY}:
      bad, reader, writer = self.either(by_others, read_by_others), me, mine
      if changes is not None:
        more = self.either(self.differ(read, nobody), self.op("icmp eq", wrote, self.every(ATOMICS << THREAD)))
        bad = self.both(bad, self.either(changes, more))
        writer = self.select(by_others, self.every(ALIKE << THREAD), mine)
        reader = self.select(self.both(same, self.op("icmp eq", writer, mine)), me, nobody)
      new = self.op("or", self.op("or", epoch, reader), writer)
    elif kind == LOAD:
      reader = self.select(read_by_others, self.every(MANY), me)
      new = self.op("or", self.op("or", epoch, reader), self.select(same, wrote, before))
      bad = by_others
    else:
      atomics = self.every(ATOMICS << THREAD)
      bad = self.either(self.both(by_others, self.differ(wrote, atomics)), read_by_others)
      own = self.both(same, self.op("icmp eq", wrote, mine))
      writer, reader = self.select(own, mine, atomics), self.select(own, me, self.select(same, read, nobody))
      new = self.op("or", self.op("or", epoch, reader), writer)
    if known and kind in {LOAD, ATOMIC}: bad = self.either(bad, self.op("icmp eq", wrote, nobody))
    return bad, new


def touched(g: Lanes, site: Site, kind: str, there: Value | None = None, stored: Stored | None = None) -> None:
  """Threads access memory, and do not go on where that may be a finding. `there` are they, where the site does not say
  so; `stored`: what a store did, where that was looked at."""
  w = g.watch
  if w is None or kind == clocks.UNSEEN: return
  if site.anywhere: return _anywhere(g, site, kind, there, stored)
  if site.own: return _local(g, site, kind)
  shared = site.shared
  if not shared and kind == LOAD and not w.tracks: return
  if w.kinds: return clocks.touched(g, site, kind, there, stored)
  e, before = g.e, g.e.side
  away = g.deopt()
  e.side = True
  grain = w.shared if shared else w.far
  count = max(1, site.width // grain)
  bases = [Value(e, "%cells", U64, False) if shared else g.context(layout.CELLS_FAR)]
  if shared and w.copies: bases.append(Value(e, "%copies", U64, False))
  scale = {1: 2, 2: 1, 4: 0}[grain]
  mask = site.mask if there is None else there
  # by the cells of a thread
  changes = None if stored is None else [stored.changes[k * site.count // count] for k in range(count)]
  if site.one: _one(g, site, kind, bases, scale, count, mask, shared, away, changes)
  elif site.block:
    base = site.base + min(site.steps or (0,))
    n = g.width * count
    bits = None if site.mask is None else _repeated(g, site.mask.in_lanes(), count)
    cells = Cells(g, n, bits)
    pointers = [e.op(f"inttoptr i64 {(first + (base << scale)).text} to ptr") for first in bases]
    flat = None if changes is None else interleaved(e, [c.in_lanes() for c in changes], "i1")
    _look(cells, kind, shared, _me(g, cells, count), away, pointers, _read, _write, flat)
  else:
    base = site.base if site.steps is None else g.materialized(site.base, site.steps)
    base = Value(e, base.in_lanes(), U64, True)
    text = "splat (i1 true)" if site.mask is None else site.mask.in_lanes()
    cells = Cells(g, g.width, None if site.mask is None else text)
    me, at = _me(g, cells, 1), base << scale
    for k in range(count):
      places = at + 4 * k if k else at
      pointers = [e.op(f"inttoptr <{g.width} x i64> {(first + places).text} to <{g.width} x ptr>") for first in bases]
      _look(cells, kind, shared, me, away, pointers, lambda _, at: gather(e, "i32", at, text),
            lambda _, at, new: scatter(e, "i32", g.width, new, at, text, 4),
            None if changes is None else changes[k].in_lanes())
      if stored is None or stored.lost is None: continue
      lost = stored.lost[k * site.count // count].in_lanes()
      if site.mask is not None: lost = cells.both(lost, text)
      _lost(cells, me, pointers[0], lost)
  e.side = before


def _anywhere(g: Lanes, site: Site, kind: str, there: Value | None, stored: Stored | None) -> None:
  """Generic addresses: all threads access shared memory, or all global memory; or some the one and some the other."""
  e, m = g.e, g.mask_type
  away = g.deopt()
  addresses = site.base if site.steps is None else g.materialized(site.base, site.steps)
  mask = site.mask if there is None else there
  here = g.active_bits if mask is None else g.bits(mask)
  near = addresses - spaces.SHARED_WINDOW < spaces.WINDOW
  windows = [e.op(f"and {m} {g.bits(inside)}, {here}") for inside in (
    near, addresses - spaces.SHARED_WINDOW < spaces.LOCAL_WINDOW + spaces.WINDOW - spaces.SHARED_WINDOW)]
  labels = [e.new_label(name) for name in ("far", "windows", "near", "parts", "mixed", "touched")]
  outside, other, inside, parts, mixed, over = labels
  e.do(f"br i1 {e.op(f'icmp eq {m} {windows[1]}, 0')}, label %{outside}, label %{other}")
  e.start(other)
  e.do(f"br i1 {e.op(f'icmp eq {m} {windows[0]}, {here}')}, label %{inside}, label %{parts}")
  before, e.side = e.side, True
  for label in (outside, inside):
    e.start(label)
    touched(g, site.outside if label == outside else site.inside, kind, there, stored)
    e.do(f"br label %{over}")
  e.start(parts)
  e.do(f"br i1 {e.op(f'icmp eq {m} {windows[0]}, {windows[1]}')}, label %{mixed}, label %{away}")
  e.start(mixed)
  for part, bits in ((site.outside, e.op(f"xor {m} {here}, {windows[0]}")), (site.inside, windows[0])):
    some = replace(part, base=addresses if part.mode == site.outside.mode else addresses - spaces.SHARED_WINDOW,
                   steps=None, mask=g.as_mask(bits))
    touched(g, some, kind, None, stored)
  e.do(f"br label %{over}")
  e.start(over)
  e.side = before


def _one(g: Lanes, site: Site, kind: str, bases: list[Value], scale: int, count: int, mask: Value | None, shared: bool,
         away: str, changes: list[Value] | None) -> None:
  """All threads access one place."""
  e, m = g.e, g.mask_type
  bits = g.active_bits if mask is None else g.bits(mask)
  cells = Cells(g, count, None)
  e.declared[f"llvm.cttz.{m}"] = f"declare {m} @llvm.cttz.{m}({m}, i1)"
  lane = e.op(f"call {m} @llvm.cttz.{m}({m} {bits}, i1 false)")
  rest = e.op(f"sub {m} {bits}, 1")
  several = e.op(f"and {m} {bits}, {rest}")
  alone = e.op(f"icmp eq {m} {several}, 0")

  def number(lane: str) -> str:
    in_block = e.op(f"add i32 {lane}, %first")
    return e.op(f"add i32 {in_block}, 1")
  if kind == LOAD: others = str(MANY)
  else:  # the highest one's is what stays
    e.declared[f"llvm.ctlz.{m}"] = f"declare {m} @llvm.ctlz.{m}({m}, i1)"
    zeros = e.op(f"call {m} @llvm.ctlz.{m}({m} {bits}, i1 false)")
    others = number(e.op(f"sub i32 31, {zeros}"))
  thread = e.op(f"select i1 {alone}, i32 {number(lane)}, i32 {others}")
  at = site.base + min(site.steps or (0,)) << scale
  pointers = [e.op(f"inttoptr i64 {(first + at).text} to ptr") for first in bases]
  flat = None
  if changes is not None:
    flat = "poison"
    for k, c in enumerate(changes): flat = e.op(f"insertelement <{count} x i1> {flat}, i1 {c.text}, i32 {k}")
  _look(cells, kind, shared, cells.splat(thread), away, pointers, _read, _write, flat)


def _look(cells: Cells, kind: str, known: bool, me: str, away: str, pointers: list[str],
          read: Callable[[Cells, str], str], write: Callable[[Cells, str, str], None], changes: str | None) -> None:
  """Look at cells, and at the second ones where there are some, and note the access there."""
  old = read(cells, pointers[0])
  bad, new = cells.turned(old, me, kind, known, changes)
  if len(pointers) > 1: bad = cells.either(bad, async_copies.late(cells, read(cells, pointers[1])))

  def note() -> None:
    write(cells, pointers[0], new)
    if len(pointers) == 1 or kind not in {STORE, COPY}: return
    write(cells, pointers[1], async_copies.issued(cells) if kind == COPY else "zeroinitializer")
  _go_on(cells, bad, old, new, away, kind, note)


def _lost(cells: Cells, me: str, pointers: str, lost: str) -> None:
  """Threads of one instruction have stored unlike bytes to one place: nobody else may store there in the epoch, as
  where its writer has read."""
  e, n = cells.e, cells.n
  some, over = e.new_label("lost"), e.new_label("kept")
  e.do(f"br i1 {cells.some(lost)}, label %{some}, label %{over}, !prof !2")
  e.start(some)
  new = cells.op("or", cells.op("and", gather(e, "i32", pointers, lost), cells.every(~WHO)), me)
  scatter(e, "i32", n, new, pointers, lost, 4)
  e.do(f"br label %{over}")
  e.start(over)


def _go_on(cells: Cells, bad: str, old: str, new: str, away: str, kind: str,
           write: Callable[[], None]) -> None:
  """Leave where some access may be a finding; else the cells are noted, those of loads where they change."""
  e = cells.e
  fine = e.new_label("fine")
  e.do(f"br i1 {cells.some(bad)}, label %{away}, label %{fine}, !prof !2")
  e.start(fine)
  if kind != LOAD: return write()
  note, over = e.new_label("note"), e.new_label("noted")
  e.do(f"br i1 {cells.some(cells.differ(old, new))}, label %{note}, label %{over}")
  e.start(note)
  write()
  e.do(f"br label %{over}")
  e.start(over)


def _me(g: Lanes, cells: Cells, count: int) -> str:
  """The numbers of the threads, from 1, each `count` times."""
  lanes = ", ".join(f"i32 {k // count + 1}" for k in range(cells.n))
  return cells.op("add", cells.splat("%first"), f"<{lanes}>")


def _repeated(g: Lanes, mask: str, count: int) -> str:
  if count == 1: return mask
  n = g.width * count
  order = ", ".join(f"i32 {k // count}" for k in range(n))
  return g.e.op(f"shufflevector <{g.width} x i1> {mask}, <{g.width} x i1> poison, <{n} x i32> <{order}>")


def _read(cells: Cells, pointer: str) -> str:
  e, t = cells.e, cells.t
  if cells.mask is None: return e.op(f"load {t}, ptr {pointer}, align 4")
  name = f"llvm.masked.load.v{cells.n}i32.p0"
  return e.call(t, name, ("ptr", f"align 4 {pointer}"), (f"<{cells.n} x i1>", cells.mask), (t, "zeroinitializer"))


def _write(cells: Cells, pointer: str, new: str) -> None:
  e, t = cells.e, cells.t
  if cells.mask is None: return e.do(f"store {t} {new}, ptr {pointer}, align 4")
  name = f"llvm.masked.store.v{cells.n}i32.p0"
  e.declared[name] = f"declare void @{name}({t}, ptr, <{cells.n} x i1>)"
  e.do(f"call void @{name}({t} {new}, ptr align 4 {pointer}, <{cells.n} x i1> {cells.mask})")


def _local(g: Lanes, site: Site, kind: str) -> None:
  """Stacks: behind them lies for each byte whether it was written."""
  e, w, t = g.e, g.width, f"i{8 * site.size}"
  away, before = g.deopt(), e.side
  e.side = True
  mask = "splat (i1 true)" if site.mask is None else site.mask.in_lanes()
  if site.stack is not None: hosts = stack.places(g, site.stack)
  else:
    stacks = e.vector(U64, range(w)) * g.context(layout.LOCAL_SIZE) + Value(e, "%local", U64, False)
    base = site.base if site.steps is None else g.materialized(site.base, site.steps)
    hosts = Value(e, base.in_lanes(), U64, True) + stacks
  hosts = hosts + g.context(layout.WRITTEN)
  for k in range(site.count):
    places = hosts + k * site.size if k else hosts
    if kind == STORE:
      scatter(e, t, w, f"splat ({t} -1)", _pointers(g, places), mask, site.size)
      continue
    _written(g, places, site.size, site.mask, away)
  e.side = before


def _written(g: Lanes, places: Value, size: int, mask: Value | None, away: str) -> None:
  """Leave where bytes of stacks were not written; `places` are those that say so."""
  e, w, t = g.e, g.width, f"i{8 * size}"
  text = "splat (i1 true)" if mask is None else mask.in_lanes()
  some = e.op(f"icmp ne <{w} x {t}> {gather(e, t, _pointers(g, places), text)}, splat ({t} -1)")
  if mask is not None: some = e.op(f"and <{w} x i1> {some}, {text}")
  bad = e.op(f"icmp ne i{w} {e.op(f'bitcast <{w} x i1> {some} to i{w}')}, 0")
  fine = e.new_label("written")
  e.do(f"br i1 {bad}, label %{away}, label %{fine}, !prof !2")
  e.start(fine)


def given(g: Lanes, offset: int, size: int, mask: Value) -> None:
  """An argument is put into each stack."""
  if g.watch is None: return
  t, where = f"i{8 * size}", stack.places(g, offset) + g.context(layout.WRITTEN)
  scatter(g.e, t, g.width, f"splat ({t} -1)", _pointers(g, where), mask.in_lanes(), size)


def taken(g: Lanes, offset: int, size: int) -> None:
  """A result is taken from each stack: threads do not go on where it was not written."""
  if g.watch is None: return
  _written(g, stack.places(g, offset) + g.context(layout.WRITTEN), size, g.active, g.deopt())


def moved(g: Lanes, source: int, target: int, size: int, mask: Value) -> None:
  """Bytes of each stack are copied for a call, in pieces: one counts as written where all of it was."""
  if g.watch is None: return
  e, there = g.e, g.context(layout.WRITTEN)
  for at, width in stack.pieces(source, target, size):
    t = f"i{8 * width}"
    known = gather(e, t, _pointers(g, stack.places(g, source + at) + there), "splat (i1 true)")
    whole = e.op(f"sext <{g.width} x i1> {e.op(f'icmp eq <{g.width} x {t}> {known}, splat ({t} -1)')} to "
                 f"<{g.width} x {t}>")
    scatter(e, t, g.width, whole, _pointers(g, stack.places(g, target + at) + there), mask.in_lanes(), width)


def _pointers(g: Lanes, places: Value) -> str:
  return g.e.op(f"inttoptr <{g.width} x i64> {places.text} to <{g.width} x ptr>")


def commit(g: Lanes) -> None:
  """cp.async.commit_group."""
  async_copies.together(g)
  if g.watch is not None and g.watch.kinds: clocks.commit(g, order.COPY)
  else: async_copies.commit(g)


def wait(g: Lanes, left: int | None) -> None:
  """cp.async.wait_group for all but the latest `left` groups; None: cp.async.wait_all."""
  async_copies.together(g)
  if g.watch is not None and g.watch.kinds: clocks.wait(g, order.COPY, left)
  else: async_copies.wait(g, left)


def fenced(g: Lanes) -> None:
  """fence.proxy.async."""
  if g.watch is not None and g.watch.kinds: clocks.fenced(g)


def multiplies(g: Lanes) -> None:
  """A product of wgmma begins."""
  if g.watch is not None: clocks.issued(g, order.MATRIX)


def products(g: Lanes, left: int | None) -> None:
  """wgmma.commit_group, or (with `left`) wgmma.wait_group, where others have committed what it waits for."""
  if g.watch is None: return
  if left is None: return clocks.commit(g, order.MATRIX)
  g.e.do(f"call void @products.done(ptr %context, ptr %state, i32 {left})")


def entered(g: Lanes) -> list[str]:
  """The text at a strand's entry: its epoch. The first strand of a block begins a new one, and has the cells of shared
  memory forget the block before."""
  if g.watch is not None and g.watch.kinds: return clocks.entered(g)
  copies = g.watch is not None and g.watch.copies
  lines = [f"  %epoch.at = getelementptr i8, ptr %state, i64 {layout.EPOCH}",
           f"  %epochs.at = getelementptr i8, ptr %context, i64 {layout.EPOCHS}",
           f"  %latest.at = getelementptr i8, ptr %context, i64 {layout.EPOCHS + 4}",
           f"  %cells.at = getelementptr i8, ptr %context, i64 {layout.CELLS}",
           "  %cells = load i64, ptr %cells.at", *(async_copies.found() if copies else ()),
           "  %watch.fresh = icmp eq i32 %from, -1",
           "  br i1 %watch.fresh, label %watch.begin, label %watch.on", "watch.begin:",
           "  %watch.first = icmp eq i32 %strand, 0",
           "  br i1 %watch.first, label %watch.block, label %watch.strand", "watch.block:",
           "  %latest = load i32, ptr %latest.at", "  %latest.n = add i32 %latest, 1",
           "  store i32 %latest.n, ptr %latest.at", "  store i32 %latest.n, ptr %epochs.at",
           f"  %cells.size.at = getelementptr i8, ptr %context, i64 {layout.CELLS_SIZE}",
           "  %cells.size = load i64, ptr %cells.size.at", "  %cells.p = inttoptr i64 %cells to ptr",
           "  call void @llvm.memset.p0.i64(ptr %cells.p, i8 0, i64 %cells.size, i1 false)",
           *(async_copies.begun() if copies else ()), "  br label %watch.strand",
           "watch.strand:", "  %epoch.now = load i32, ptr %epochs.at",
           "  store i32 %epoch.now, ptr %epoch.at", "  br label %watch.on", "watch.on:",
           "  %epoch = load i32, ptr %epoch.at", f"  %epoch.bits = shl i32 %epoch, {2 * THREAD}"]
  for at in (layout.CELLS_FAR, layout.WRITTEN):
    lines += [f"  %context.{at}.at = getelementptr i8, ptr %context, i64 {at}",
              f"  %context.{at} = load i64, ptr %context.{at}.at"]
  if copies: lines += async_copies.entered(g)
  g.e.declared["llvm.memset.p0.i64"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
  return lines


def synced(g: Lanes) -> None:
  """Threads of a warp do something together: where warps have clocks, that orders what they do."""
  if g.watch is not None and g.watch.kinds: clocks.synced(g)


def met(g: Lanes, count: int | None) -> None:
  """A strand comes to a barrier of its block, or of so many threads as it names (0: it names none)."""
  if g.watch is not None and g.watch.kinds: return clocks.met(g) if count == 0 else None
  e = g.e
  following = e.op("add i32 %epoch, 1")
  e.do(f"store i32 {following}, ptr %epoch.at")
  if g.watch is not None and g.watch.copies: async_copies.met(g, following)
  e.declared["llvm.umax.i32"] = "declare i32 @llvm.umax.i32(i32, i32)"
  latest = e.op("load i32, ptr %latest.at")
  e.do(f"store i32 {e.op(f'call i32 @llvm.umax.i32(i32 {latest}, i32 {following})')}, ptr %latest.at")


def arrives(g: Lanes) -> None:
  """A strand arrives at the barrier of its cluster."""
  if g.watch is not None: g.e.do(f"call void @tell(ptr %context, ptr %state, ptr {g.pointer('%order', order.CLUSTER)})")


def passes(g: Lanes) -> None:
  """It goes on behind that barrier at once; the runner has those hear who have waited."""
  if g.watch is not None: g.e.do(f"call void @hear(ptr %context, ptr %state, ptr {g.pointer('%order', order.CLUSTER)})")


def speaking(g: Lanes) -> bool:
  """Whether an instruction that is atomic, or a load or store that synchronizes, orders warps."""
  return g.watch is not None and g.index in g.watch.speaking


def speaks(g: Lanes, site: Site, told: str = "0") -> None:
  """Threads do that. `told`: those that changed what was there, as bits. Who does not, tells nothing: nobody could have
  seen it."""
  if g.watch is not None and speaking(g): clocks.speaks(g, site, g.index in g.watch.listening, told)
