"""What asynchronous work does to cells where warps have clocks (`clocks`), as functions of LLVM IR: copies in bulk and
products read and write bytes that lie together, of their own kind of work.

What they read must be visible to them: of what warps did themselves, what a fence.proxy.async came behind. Each
function says whether nothing of it may be a finding; then it is noted.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tinyhw.emulator.jit.ptx.memory import order
from tinyhw.emulator.jit.ptx.memory.order import ATOMICS, BULK, MATRIX, MBARRIER, OWN, STORE, Order
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.ptx.memory.mbarrier import PHASE

PIECE, OBJECT = 16, 8  # bytes at once of shared memory; of an mbarrier
LANES: Final = 6  # see `clocks`
NOBODY: Final = 95  # as the number of a thread that writes for its whole warp: it has touched nothing before


def _here(o: Order) -> str:
  """The row of a strand, in IR."""
  return f"""  %order.at = getelementptr i8, ptr %context, i64 {layout.ORDER}
  %order = load ptr, ptr %order.at
  %strand.at = getelementptr i8, ptr %state, i64 {layout.WARP}
  %strand = load i32, ptr %strand.at
  %row.offset = mul i32 %strand, {o.row}
  %rows = getelementptr i8, ptr %order, i64 {o.rows}
  %row = getelementptr i8, ptr %rows, i32 %row.offset"""


def functions(o: Order, near: int, far: int, kinds: Sequence[int], far_kinds: Sequence[int]) -> str:
  """All of them. Cells stand for so many bytes of shared and of global memory; `kinds` have planes of who reads."""
  sizes = (("near", PIECE // near, kinds), ("object", OBJECT // near, kinds), ("cell", 1, kinds), ("far", 1, far_kinds),
           ("span", PIECE // far, far_kinds))
  return "\n".join([
    *(text for name, n, of in sizes for text in (_seen(o, name, n), _free(o, name, n, of), _mine(name, n))),
    _wrote(o, "near", PIECE // near, "bulk"), _wrote(o, "cell", 1, "sent", near), _came(),
    _read(o, PIECE // near, kinds), _far(o, far), _of_threads(o, PIECE // near, far, OWN in far_kinds), _groups(o)])


def _seen(o: Order, name: str, n: int) -> str:
  """Whether what lies in cells is done for a warp, by what its own work knows (%proxy 0) or units (PROXY). What a
  thread %me has written itself is, and where %exempt what its warp has. Who %reads finds no mbarrier there."""
  v, w = f"<{n} x i32>", f"<{n} x i64>"
  return f"""
define private i1 @seen.{name}(ptr %row, i32 %strand, i64 %cells, i64 %count, i32 %proxy, i1 %exempt.own, i32 %me,
                             i1 %reads) noinline {{
  %r.one = insertelement <{n} x i1> poison, i1 %reads, i32 0
  %reading = shufflevector <{n} x i1> %r.one, <{n} x i1> poison, {v} zeroinitializer
  %m.one = insertelement {v} poison, i32 %me, i32 0
  %me.all = shufflevector {v} %m.one, {v} poison, {v} zeroinitializer
  %s.one = insertelement {v} poison, i32 %strand, i64 0
  %strands = shufflevector {v} %s.one, {v} poison, {v} zeroinitializer
  %p.one = insertelement {v} poison, i32 %proxy, i64 0
  %proxies = shufflevector {v} %p.one, {v} poison, {v} zeroinitializer
  %e.one = insertelement <{n} x i1> poison, i1 %exempt.own, i64 0
  %exempt = shufflevector <{n} x i1> %e.one, <{n} x i1> poison, {v} zeroinitializer
  br label %test
test:
  %k = phi i64 [ 0, %0 ], [ %k.next, %next ]
  %last = phi {w} [ zeroinitializer, %0 ], [ %words, %next ]
  %over = icmp uge i64 %k, %count
  br i1 %over, label %good, label %look
look:
  %offset = mul i64 %k, {8 * n}
  %at = add i64 %cells, %offset
  %pointer = inttoptr i64 %at to ptr
  %words = load {w}, ptr %pointer, align 8
  %differ = icmp ne {w} %words, %last
  %differs = bitcast <{n} x i1> %differ to i{n}
  %new = icmp ne i{n} %differs, 0
  br i1 %new, label %judge, label %next
judge:
  %clock = trunc {w} %words to {v}
  %high = lshr {w} %words, splat (i64 32)
  %who = trunc {w} %high to {v}
  %column = lshr {v} %who, splat (i32 8)
  %is.own = icmp ult {v} %column, splat (i32 {o.warps})
  %moved = add {v} %column, %proxies
  %by.several = icmp uge {v} %column, splat (i32 {o.column(order.BLOCK)})
  %visible = add {v} %column, %proxies
  %several = select <{n} x i1> %by.several, {v} %visible, {v} %column
  %place = select <{n} x i1> %is.own, {v} %moved, {v} %several
  %wide = zext {v} %place to {w}
  %limits.at = getelementptr i32, ptr %row, {w} %wide
  %limits = call {v} @{order.gathered(n)[0]}(<{n} x ptr> align 4 %limits.at, <{n} x i1> splat (i1 true),
    {v} zeroinitializer)
  %late = icmp sgt {v} %clock, %limits
  %its = icmp eq {v} %column, %strands
  %its.warp = and <{n} x i1> %its, %exempt
  %plain = and {v} %who, splat (i32 {order.WHO})
  %its.thread = icmp eq {v} %plain, %me.all
  %its.own = or <{n} x i1> %its.warp, %its.thread
  %not.own = xor <{n} x i1> %its.own, splat (i1 true)
  %late.others = and <{n} x i1> %late, %not.own
  %mark = and {v} %who, splat (i32 {MBARRIER})
  %marked = icmp ne {v} %mark, zeroinitializer
  %of.object = and <{n} x i1> %marked, %reading
  %bad = or <{n} x i1> %late.others, %of.object
  %bits = bitcast <{n} x i1> %bad to i{n}
  %some = icmp ne i{n} %bits, 0
  br i1 %some, label %fail, label %next
next:
  %k.next = add i64 %k, 1
  br label %test
good:
  ret i1 true
fail:
  ret i1 false
}}
"""


def _free(o: Order, name: str, n: int, kinds: Sequence[int]) -> str:
  """Whether all who have read are done, for a warp that is to write: by planes, the first of which is at %planes."""
  v = f"<{n} x i32>"
  lines = [f"define private i1 @free.{name}(ptr %context, ptr %row, i32 %strand, i64 %planes, i64 %apart, i64 %count) "
           "noinline {", f"  %strands.at = getelementptr i8, ptr %context, i64 {layout.TEAM}",
           "  %strands.wide = load i64, ptr %strands.at", "  %strands = trunc i64 %strands.wide to i32",
           "  br label %kind.0"]
  for k, kind in enumerate(kinds):
    skip = f"%its.{k} = icmp eq i32 " + (f"%p.{k}, %strand" if kind in {OWN, ATOMICS} else "0, 1")
    lines += [f"""kind.{k}:
  br label %plane.{k}
plane.{k}:
  %p.{k} = phi i32 [ 0, %kind.{k} ], [ %p.next.{k}, %passed.{k} ]
  {skip}
  %number.{k} = mul i32 %strands, {k}
  %plane.number.{k} = add i32 %number.{k}, %p.{k}
  %wide.{k} = zext i32 %plane.number.{k} to i64
  %offset.{k} = mul i64 %wide.{k}, %apart
  %first.{k} = add i64 %planes, %offset.{k}
  %column.{k} = add i32 %p.{k}, {o.column(OWN if kind == ATOMICS else kind)}
  %limit.at.{k} = getelementptr i32, ptr %row, i32 %column.{k}
  %limit.{k} = load i32, ptr %limit.at.{k}
  br i1 %its.{k}, label %passed.{k}, label %test.{k}
test.{k}:
  %i.{k} = phi i64 [ 0, %plane.{k} ], [ %i.next.{k}, %look.{k} ]
  %most.{k} = phi {v} [ zeroinitializer, %plane.{k} ], [ %more.{k}, %look.{k} ]
  %over.{k} = icmp uge i64 %i.{k}, %count
  br i1 %over.{k}, label %judge.{k}, label %look.{k}
look.{k}:
  %i.offset.{k} = mul i64 %i.{k}, {4 * n}
  %at.{k} = add i64 %first.{k}, %i.offset.{k}
  %pointer.{k} = inttoptr i64 %at.{k} to ptr
  %words.{k} = load {v}, ptr %pointer.{k}, align 4
  %larger.{k} = icmp sgt {v} %words.{k}, %most.{k}
  %more.{k} = select <{n} x i1> %larger.{k}, {v} %words.{k}, {v} %most.{k}
  %i.next.{k} = add i64 %i.{k}, 1
  br label %test.{k}
judge.{k}:
  %clocks.{k} = ashr {v} %most.{k}, splat (i32 {LANES})
  %l.one.{k} = insertelement {v} poison, i32 %limit.{k}, i64 0
  %limits.{k} = shufflevector {v} %l.one.{k}, {v} poison, {v} zeroinitializer
  %late.{k} = icmp sgt {v} %clocks.{k}, %limits.{k}
  %bits.{k} = bitcast <{n} x i1> %late.{k} to i{n}
  %some.{k} = icmp ne i{n} %bits.{k}, 0
  br i1 %some.{k}, label %fail, label %passed.{k}
passed.{k}:
  %p.next.{k} = add i32 %p.{k}, 1
  %all.{k} = icmp eq i32 %p.next.{k}, %strands
  br i1 %all.{k}, label %kind.{k + 1}, label %plane.{k}"""]
  lines += [f"kind.{len(kinds)}:", "  ret i1 true", *(["fail:", "  ret i1 false"] if kinds else []), "}"]
  return "\n".join(lines)


def _mine(name: str, n: int) -> str:
  """For a thread that is to write: whether no other of its warp has read since they did something together."""
  v = f"<{n} x i32>"
  return f"""
define private i1 @mine.{name}(ptr %row, i32 %strand, i64 %planes, i64 %apart, i64 %count, i32 %lane) noinline {{
  %own.at = getelementptr i32, ptr %row, i32 %strand
  %own = load i32, ptr %own.at
  %strand.wide = zext i32 %strand to i64
  %offset = mul i64 %strand.wide, %apart
  %plane = add i64 %planes, %offset
  %o.one = insertelement {v} poison, i32 %own, i64 0
  %owns = shufflevector {v} %o.one, {v} poison, {v} zeroinitializer
  %l.one = insertelement {v} poison, i32 %lane, i64 0
  %lanes = shufflevector {v} %l.one, {v} poison, {v} zeroinitializer
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %i.next, %look ]
  %bad = phi <{n} x i1> [ zeroinitializer, %0 ], [ %bad.next, %look ]
  %over = icmp uge i64 %i, %count
  br i1 %over, label %judge, label %look
look:
  %i.offset = mul i64 %i, {4 * n}
  %at = add i64 %plane, %i.offset
  %pointer = inttoptr i64 %at to ptr
  %words = load {v}, ptr %pointer, align 4
  %then = ashr {v} %words, splat (i32 {LANES})
  %late = icmp sgt {v} %then, %owns
  %readers = and {v} %words, splat (i32 {(1 << LANES) - 1})
  %others = icmp ne {v} %readers, %lanes
  %here = and <{n} x i1> %late, %others
  %bad.next = or <{n} x i1> %bad, %here
  %i.next = add i64 %i, 1
  br label %test
judge:
  %bits = bitcast <{n} x i1> %bad to i{n}
  %none = icmp eq i{n} %bits, 0
  ret i1 %none
}}
"""


def _filled(n: int) -> str:
  """Stores %word to %count times so many cells from %cells on, in IR that ends with label %filled."""
  w = f"<{n} x i64>"
  return f"""  %w.one = insertelement {w} poison, i64 %word, i64 0
  %all = shufflevector {w} %w.one, {w} poison, <{n} x i32> zeroinitializer
  br label %fill
fill:
  %f = phi i64 [ 0, %fills ], [ %f.next, %fill.one ]
  %f.over = icmp uge i64 %f, %count
  br i1 %f.over, label %filled, label %fill.one
fill.one:
  %f.offset = mul i64 %f, {8 * n}
  %f.at = add i64 %cells, %f.offset
  %f.pointer = inttoptr i64 %f.at to ptr
  store {w} %all, ptr %f.pointer, align 8
  %f.next = add i64 %f, 1
  br label %fill
filled:"""


def _issued(o: Order, kind: int, begins: bool) -> str:
  """The clock of asynchronous work, in IR; it may begin here."""
  more = ["  %clock = add i32 %clock.old, 1", "  store i32 %clock, ptr %clock.at"] if begins else [
    "  %clock = add i32 %clock.old, 0"]
  return "\n".join([f"  %clock.at = getelementptr i32, ptr %row, i64 {o.issued + kind}",
                    "  %clock.old = load i32, ptr %clock.at", *more])


def _word(o: Order, kind: int) -> str:
  """A cell that such work has written, in IR."""
  return f"""  %column = add i32 %strand, {o.column(kind)}
  %who = shl i32 %column, 8
  %who.wide = zext i32 %who to i64
  %who.high = shl i64 %who.wide, 32
  %clock.wide = zext i32 %clock to i64
  %word = or i64 %who.high, %clock.wide"""


def _shared(n: int, piece: int = PIECE) -> str:
  """Where the cells and planes of %size bytes of shared memory at %host are, and how many pieces, in IR."""
  return f"""  %shared.at = getelementptr i8, ptr %state, i64 {layout.TEAM_SHARED}
  %shared = load i64, ptr %shared.at
  %offset = sub i64 %host, %shared
  %cells.at = getelementptr i8, ptr %context, i64 {layout.CELLS}
  %cells.first = load i64, ptr %cells.at
  %cells.offset = mul i64 %offset, {8 * n // piece}
  %cells = add i64 %cells.first, %cells.offset
  %planes.at = getelementptr i8, ptr %order, i64 {order.PLANES}
  %planes.first = load i64, ptr %planes.at
  %planes.offset = mul i64 %offset, {4 * n // piece}
  %planes = add i64 %planes.first, %planes.offset
  %apart.at = getelementptr i8, ptr %order, i64 {order.APART}
  %apart = load i64, ptr %apart.at
  %count = lshr i64 %size, {piece.bit_length() - 1}"""


def _wrote(o: Order, name: str, n: int, noted: str, near: int = PIECE) -> str:
  """A copy in bulk writes to shared memory, `near` bytes at a time."""
  return f"""
define private i1 @note.{noted}(ptr %context, ptr %state, i64 %host, i64 %size) noinline {{
{_here(o)}
{_shared(n, near)}
  %seen = call i1 @seen.{name}(ptr %row, i32 %strand, i64 %cells, i64 %count, i32 0, i1 true, i32 -1, i1 false)
  br i1 %seen, label %more, label %fail
more:
  %free = call i1 @free.{name}(ptr %context, ptr %row, i32 %strand, i64 %planes, i64 %apart, i64 %count)
  br i1 %free, label %fills, label %fail
fills:
{_issued(o, BULK, True)}
{_word(o, BULK)}
{_filled(n)}
  ret i1 true
fail:
  ret i1 false
}}
"""


def _came() -> str:
  """An mbarrier is told of bytes that have come."""
  return f"""
define private i1 @came(ptr %context, ptr %state, i64 %host, i64 %old, i64 %new) noinline {{
  %token = call ptr @object(ptr %context, ptr %state, i64 %host, i32 0, i32 {order.TOLD})
  %there = icmp ne ptr %token, null
  br i1 %there, label %tells, label %fail
tells:
  call void @tell.work(ptr %context, ptr %state, ptr %token, i32 {BULK})
  %differs = xor i64 %old, %new
  %phase = lshr i64 %differs, {PHASE}
  %same = icmp eq i64 %phase, 0
  br i1 %same, label %done, label %ends
ends:
  call void @completes(ptr %token)
  br label %done
done:
  ret i1 true
fail:
  ret i1 false
}}
"""


def _read(o: Order, n: int, kinds: Sequence[int]) -> str:
  """A unit reads shared memory: a copy to global or shared memory, which begins here, or a product, which has begun. It
  looks at what it is going to change, which is noted then."""
  out = ""
  for looks, name, places in (("near", "near", _shared(n)), ("sent", "cell", _shared(1, PIECE // n))):
    out += f"""
define private i1 @looks.{looks}(ptr %context, ptr %state, i64 %host, i64 %size) noinline {{
{_here(o)}
{places}
  %seen = call i1 @seen.{name}(ptr %row, i32 %strand, i64 %cells, i64 %count, i32 {o.warps}, i1 false, i32 -1, i1 true)
  ret i1 %seen
}}
"""
  for name, kind in (("read", STORE), ("product", MATRIX), ("sourced", BULK)):
    if kind not in kinds: continue
    out += f"""
define private i1 @note.{name}(ptr %context, ptr %state, i64 %host, i64 %size) noinline {{
{_here(o)}
{_shared(n)}
  %seen = call i1 @seen.near(ptr %row, i32 %strand, i64 %cells, i64 %count, i32 {o.warps}, i1 false, i32 -1, i1 true)
  br i1 %seen, label %fills, label %fail
fills:
{_issued(o, kind, kind != MATRIX)}
  %strands.at = getelementptr i8, ptr %context, i64 {layout.TEAM}
  %strands = load i64, ptr %strands.at
  %before = mul i64 %strands, {list(kinds).index(kind)}
  %word = shl i32 %clock, {LANES}
{_plane("%before", n)}
  ret i1 true
fail:
  ret i1 false
}}
"""
  return out


def _places(far: int, at_once: int = 1) -> str:
  """Where the cells and planes of %size bytes of global memory at %address are, and how often so many, in IR."""
  return f"""  %end.byte = add i64 %address, %size
  %end.up = add i64 %end.byte, {far - 1}
  %end = udiv i64 %end.up, {far}
  %start = udiv i64 %address, {far}
  %count.cells = sub i64 %end, %start
  %count = lshr i64 %count.cells, {at_once.bit_length() - 1}
  %cells.at = getelementptr i8, ptr %context, i64 {layout.CELLS_FAR}
  %cells.first = load i64, ptr %cells.at
  %cells.offset = shl i64 %start, 3
  %cells = add i64 %cells.first, %cells.offset
  %planes.at = getelementptr i8, ptr %order, i64 {order.FAR_PLANES}
  %planes.first = load i64, ptr %planes.at
  %planes.offset = shl i64 %start, 2
  %planes = add i64 %planes.first, %planes.offset
  %apart.at = getelementptr i8, ptr %order, i64 {order.FAR_APART}
  %apart = load i64, ptr %apart.at"""


def _plane(before: str, n: int) -> str:
  """Stores %word to %count times so many words of the plane %before + the strand, in IR that begins at %fills and ends
  at label %filled."""
  v = f"<{n} x i32>"
  return f"""  %strand.wide = zext i32 %strand to i64
  %number = add i64 {before}, %strand.wide
  %plane.offset = mul i64 %number, %apart
  %plane = add i64 %planes, %plane.offset
  %w.one = insertelement {v} poison, i32 %word, i64 0
  %all = shufflevector {v} %w.one, {v} poison, {v} zeroinitializer
  br label %fill
fill:
  %f = phi i64 [ 0, %fills ], [ %f.next, %fill.one ]
  %f.over = icmp uge i64 %f, %count
  br i1 %f.over, label %filled, label %fill.one
fill.one:
  %f.offset = mul i64 %f, {4 * n}
  %f.at = add i64 %plane, %f.offset
  %f.pointer = inttoptr i64 %f.at to ptr
  store {v} %all, ptr %f.pointer, align 4
  %f.next = add i64 %f, 1
  br label %fill
filled:"""


def _far(o: Order, far: int) -> str:
  """A copy in bulk writes to global memory, as the one that has read shared memory before; or reads it, or looks at
  what it is going to change: by pieces, where it has whole ones."""
  out = ""
  for name, n, places in (("far", 1, _places(far)), ("span", PIECE // far, _places(far, PIECE // far))):
    out += f"""
define private i1 @looks.by.{name}(ptr %context, ptr %state, i64 %address, i64 %size) noinline {{
{_here(o)}
{places}
  %seen = call i1 @seen.{name}(ptr %row, i32 %strand, i64 %cells, i64 %count, i32 {o.warps}, i1 false, i32 -1, i1 true)
  ret i1 %seen
}}
define private i1 @far.by.{name}(ptr %context, ptr %state, i64 %address, i64 %size) noinline {{
{_here(o)}
{places}
  %seen = call i1 @seen.{name}(ptr %row, i32 %strand, i64 %cells, i64 %count, i32 0, i1 true, i32 -1, i1 false)
  br i1 %seen, label %more, label %fail
more:
  %free = call i1 @free.{name}(ptr %context, ptr %row, i32 %strand, i64 %planes, i64 %apart, i64 %count)
  br i1 %free, label %fills, label %fail
fills:
{_issued(o, STORE, False)}
{_word(o, STORE)}
{_filled(n)}
  ret i1 true
fail:
  ret i1 false
}}
define private i1 @fetched.by.{name}(ptr %context, ptr %state, i64 %address, i64 %size) noinline {{
{_here(o)}
{places}
  %seen = call i1 @seen.{name}(ptr %row, i32 %strand, i64 %cells, i64 %count, i32 {o.warps}, i1 false, i32 -1, i1 true)
  br i1 %seen, label %fills, label %fail
fills:
{_issued(o, BULK, True)}
  %strands.at = getelementptr i8, ptr %context, i64 {layout.TEAM}
  %strands = load i64, ptr %strands.at
  %word = shl i32 %clock, {LANES}
{_plane("%strands", n)}
  ret i1 true
fail:
  ret i1 false
}}
"""
  for name, by in (("looks.far", "looks"), ("note.far", "far"), ("note.fetched", "fetched")):
    out += f"""
define private i1 @{name}(ptr %context, ptr %state, i64 %address, i64 %size) noinline {{
  %both = or i64 %address, %size
  %odd = and i64 %both, {PIECE - 1}
  %whole = icmp eq i64 %odd, 0
  br i1 %whole, label %pieces, label %cells
pieces:
  %span = call i1 @{by}.by.span(ptr %context, ptr %state, i64 %address, i64 %size)
  ret i1 %span
cells:
  %far = call i1 @{by}.by.far(ptr %context, ptr %state, i64 %address, i64 %size)
  ret i1 %far
}}
"""
  return out


def _thread() -> str:
  """What is asked of the thread %lane, in IR: its clock, and how it is written."""
  return """  %own.at = getelementptr i32, ptr %row, i32 %strand
  %own = load i32, ptr %own.at
  %clock = add i32 %own, 1
  %lane.low = trunc i64 %lane to i32
  %warp = shl i32 %strand, 8
  %me = or i32 %warp, %lane.low"""


def _of_threads(o: Order, near: int, far: int, tracks: bool) -> str:
  """A thread itself writes or reads bytes that lie together: a tensor map. What others of its warp have read since they
  did something together may be a finding."""
  out = ""
  for name, given, n, places in (("near", "host", near, _shared(near)), ("far", "address", 1, _places(far))):
    planes = tracks or name == "near"
    out += f"""
define private i1 @own.{name}.write(ptr %context, ptr %state, i64 %{given}, i64 %size, i64 %lane) noinline {{
{_here(o)}
{places}
{_thread()}
  %seen = call i1 @seen.{name}(ptr %row, i32 %strand, i64 %cells, i64 %count, i32 0, i1 false, i32 %me, i1 false)
  br i1 %seen, label %more, label %fail
more:
  %free = call i1 @free.{name}(ptr %context, ptr %row, i32 %strand, i64 %planes, i64 %apart, i64 %count)
  br i1 %free, label %{"mine" if planes else "fills"}, label %fail
"""
    if planes: out += f"""mine:
  %alone = call i1 @mine.{name}(ptr %row, i32 %strand, i64 %planes, i64 %apart, i64 %count, i32 %lane.low)
  br i1 %alone, label %fills, label %fail
"""
    out += f"""fills:
  %who = and i32 %me, {order.WHO}
  %who.wide = zext i32 %who to i64
  %who.high = shl i64 %who.wide, 32
  %clock.wide = zext i32 %clock to i64
  %word = or i64 %who.high, %clock.wide
{_filled(n)}
  ret i1 true
fail:
  ret i1 false
}}
define private i1 @own.{name}.read(ptr %context, ptr %state, i64 %{given}, i64 %size, i64 %lane) noinline {{
{_here(o)}
{places}
{_thread()}
  %seen = call i1 @seen.{name}(ptr %row, i32 %strand, i64 %cells, i64 %count, i32 0, i1 false, i32 %me, i1 true)
  br i1 %seen, label %fills, label %fail
fills:
  %clock.high = shl i32 %clock, {LANES}
  %word = or i32 %clock.high, %lane.low
{_plane("0", n) if planes else "  br label %filled" + chr(10) + "filled:"}
  ret i1 true
fail:
  ret i1 false
}}
"""
  return f"""{out}
define private i1 @own.map(ptr %context, ptr %state, i64 %address, i64 %size, i64 %lane) noinline {{
  %order.at = getelementptr i8, ptr %context, i64 {layout.ORDER}
  %order = load ptr, ptr %order.at
  %start.at = getelementptr i8, ptr %order, i64 {order.FAR_START}
  %start = load i64, ptr %start.at
  %room.at = getelementptr i8, ptr %order, i64 {order.FAR_SIZE}
  %room = load i64, ptr %room.at
  %from = sub i64 %address, %start
  %inside = icmp ult i64 %from, %room
  br i1 %inside, label %look, label %other
look:
  %good = call i1 @own.far.read(ptr %context, ptr %state, i64 %address, i64 %size, i64 %lane)
  ret i1 %good
other:
  ret i1 true
}}
"""


def _groups(o: Order) -> str:
  """The products of a warpgroup's warps are done up to a group that all have committed."""
  return f"""
define private void @products.done(ptr %context, ptr %state, i32 %left) noinline {{
{_here(o)}
  %strands.at = getelementptr i8, ptr %context, i64 {layout.STRANDS}
  %strands.wide = load i64, ptr %strands.at
  %strands = trunc i64 %strands.wide to i32
  %count.at = getelementptr i32, ptr %row, i64 {o.committed + MATRIX}
  %count = load i32, ptr %count.at
  %number = sub i32 %count, %left
  %some = icmp sgt i32 %number, 0
  br i1 %some, label %begin, label %end
begin:
  %in.block.at = getelementptr i8, ptr %state, i64 {layout.STRAND}
  %in.block = load i32, ptr %in.block.at
  %block = sub i32 %strand, %in.block
  %in.four = and i32 %in.block, -4
  %first = add i32 %block, %in.four
  %behind = add i32 %first, 4
  %end.block = add i32 %block, %strands
  %place = sub i32 %number, 1
  %ring = and i32 %place, {order.RING - 1}
  br label %warp
warp:
  %p = phi i32 [ %first, %begin ], [ %p.next, %next ]
  %there = icmp ult i32 %p, %end.block
  br i1 %there, label %look, label %next
look:
  %p.offset = mul i32 %p, {o.row}
  %p.row = getelementptr i8, ptr %rows, i32 %p.offset
  %p.count.at = getelementptr i32, ptr %p.row, i64 {o.committed + MATRIX}
  %p.count = load i32, ptr %p.count.at
  %enough = icmp sge i32 %p.count, %number
  %oldest = sub i32 %p.count, {order.RING}
  %kept = icmp sge i32 %place, %oldest
  %good = and i1 %enough, %kept
  br i1 %good, label %done, label %next
done:
  %p.ring = getelementptr i32, ptr %p.row, i64 {o.rings + MATRIX * order.RING}
  %p.clock.at = getelementptr i32, ptr %p.ring, i32 %ring
  %p.clock = load i32, ptr %p.clock.at
  %column = add i32 %p, {o.column(MATRIX)}
  %known.at = getelementptr i32, ptr %row, i32 %column
  %known = load i32, ptr %known.at
  %more = call i32 @llvm.smax.i32(i32 %known, i32 %p.clock)
  store i32 %more, ptr %known.at
  br label %next
next:
  %p.next = add i32 %p, 1
  %over = icmp eq i32 %p.next, %behind
  br i1 %over, label %end, label %warp
end:
  ret void
}}
"""
