"""What warps know of each other's work, in watched code: clocks, and functions of LLVM IR that tell them.

They are the reference's (`check.ptx.races`): a warp has a row of numbers, which say how much of each warp's work of
each kind is done for it; a barrier's token is told by who arrives, and heard by who goes on. The rows, the tokens and
what finds them lie in one piece of memory, which the context names. Clusters run one after the other, a block alone is
one: where one begins, all that was before is done, by a number larger than all that there were.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tinyhw.emulator.jit.ptx.module import layout

LEAST, MOST, BLOCKS = 32, 512, 32  # warps of a cluster that there is room for, its blocks at most
# kinds of work, which have columns for each warp; and what all warps of a block know of the others, by barriers of the
# whole block, and up to which of them that is visible to units, columns for each block
OWN, PROXY, BULK, STORE, MATRIX, COPY, BLOCK, VISIBLE = range(8)
KINDS: Final = 8
ATOMICS: Final = KINDS  # no column: atomics are a warp's own work, with planes of their own
RING: Final = 32
MBARRIERS: Final = 256  # in a block's shared memory, that are followed
BUCKETS: Final = 64

# the memory: words of where cells are, the token of the cluster's barrier, and what `Order` says
# FRESH: the address of what the cells are where a cluster begins, 0: nobody has touched anything
LATEST, SLOTS, PLANES, APART, FAR_PLANES, FAR_APART, FAR_START, FAR_SIZE, FRESH = 0, 4, 8, 16, 24, 32, 40, 48, 56
CLUSTER: Final = 64


@dataclass(frozen=True)
class Order:
  """Where things are for clusters of so many `warps`. Words of a row: the columns; by kind, what was begun, how many
  groups there are, rings of them; the columns as they were behind the latest barrier of the whole block. Bytes of the
  memory: rows, tokens of barriers and of mbarriers (what arrivals have told in this phase, and in those that are over),
  what atomics have told, by buckets of addresses as the reference has them; for each 8 bytes of shared memory the
  number of its mbarrier, from 1."""
  warps: int = LEAST

  @classmethod
  def of(cls, warps: int) -> Order:
    """For so many warps at least."""
    return cls(max(LEAST, 1 << (warps - 1).bit_length()))

  def column(self, kind: int) -> int:
    """The first one of a kind."""
    return kind * self.warps

  @property
  def columns(self) -> int: return KINDS * self.warps
  @property
  def issued(self) -> int: return self.columns
  @property
  def committed(self) -> int: return self.issued + KINDS
  @property
  def unfenced(self) -> int:
    """Where a warp's own work has no groups: it has stored since its last fence.proxy.async."""
    return self.committed
  @property
  def rings(self) -> int: return self.committed + KINDS
  @property
  def all(self) -> int: return self.rings + KINDS * RING
  @property
  def words(self) -> int: return self.all + self.columns
  @property
  def row(self) -> int: return 4 * self.words
  @property
  def token(self) -> int: return 2 * 4 * self.columns
  @property
  def rows(self) -> int: return CLUSTER + self.token
  @property
  def barriers(self) -> int: return self.rows + self.warps * self.row
  @property
  def tokens(self) -> int: return self.barriers + BLOCKS * layout.BARRIERS * self.token
  @property
  def spoken(self) -> int: return self.tokens + (MBARRIERS + 1) * self.token
  @property
  def map(self) -> int: return self.spoken + BUCKETS * 4 * self.columns
  @property
  def never(self) -> int:
    """A cell that nobody may touch."""
    return ((self.columns - 1 << 8 | MBARRIER | GONE) << 32) + (1 << 31) - 1

  def size(self, shared: int) -> int:
    """Bytes of the memory for a block with so many of shared memory."""
    return self.map + 4 * (-(-shared // 8) + 1)


USE, BEGIN, TOLD, INVALID = range(4)  # what an mbarrier's token is wanted for; TOLD: copies tell it, whoever may use it
# in the lower byte of who wrote: here is an mbarrier; atomics came behind it; an mbarrier was here, and nothing else,
# or, of global memory, nobody else may store the same
MBARRIER, ATOMIC, GONE = 1 << 7, 1 << 6, 1 << 5
WHO: Final = ~(MBARRIER | ATOMIC | GONE)
BEFORE: Final = 1  # a cell that was written before any clock began
_PART: Final = 32  # words that are compared at once
_V: Final = f"<{_PART} x i32>"
_MAX: Final = f"llvm.smax.v{_PART}i32"
# What the module beside a kernel calls of these.
CALLED: Final = ("declare hidden void @tell(ptr, ptr, ptr)", "declare hidden void @completes(ptr)",
                 "declare hidden ptr @bar(ptr, ptr, i32)", "declare hidden void @hear(ptr, ptr, ptr)",
                 "declare hidden void @gone.on(ptr, ptr, i32, i1, i1)",
                 "declare hidden void @met(ptr, ptr, i64, i64, i32)")
DECLARED: Final = {
  _MAX: f"declare {_V} @{_MAX}({_V}, {_V})", "llvm.smax.i32": "declare i32 @llvm.smax.i32(i32, i32)",
  **{f"llvm.vector.reduce.smax.v{n}i32": f"declare i32 @llvm.vector.reduce.smax.v{n}i32(<{n} x i32>)"
     for n in (KINDS, _PART)},
  "llvm.cttz.i64": "declare i64 @llvm.cttz.i64(i64, i1)",
  "llvm.memcpy.p0.p0.i64": "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
  "llvm.memset.p0.i64": "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"}


def _row(o: Order, name: str, state: str) -> str:
  """Where the row of a strand's warp is, and the word of its own work, in IR."""
  return f"""  %{name}.strand.at = getelementptr i8, ptr {state}, i64 {layout.WARP}
  %{name}.strand = load i32, ptr %{name}.strand.at
  %{name}.offset = mul i32 %{name}.strand, {o.row}
  %{name}.rows = getelementptr i8, ptr %order, i64 {o.rows}
  %{name}.row = getelementptr i8, ptr %{name}.rows, i32 %{name}.offset
  %{name}.own = getelementptr i32, ptr %{name}.row, i32 %{name}.strand"""


_ORDER: Final = f"""  %order.at = getelementptr i8, ptr %context, i64 {layout.ORDER}
  %order = load ptr, ptr %order.at"""


def functions(o: Order, grain: int) -> str:
  """All of them; a cell of shared memory stands for `grain` bytes."""
  return _told(o) + _objects(o, 8 // grain) + _spoken(o)


def gathered(n: int) -> tuple[str, str]:
  """(name, declaration) of a gather of so many words."""
  name, v = f"llvm.masked.gather.v{n}i32.v{n}p0", f"<{n} x i32>"
  return name, f"declare {v} @{name}(<{n} x ptr>, <{n} x i1>, {v})"


def _told(o: Order) -> str:
  """A block begins; a warp tells a token, a token's phase ends, a warp hears; barriers of blocks."""
  return f"""
define private void @more(ptr %to, ptr %of, i64 %count) noinline {{
  br label %part
part:
  %k = phi i64 [ 0, %0 ], [ %k.next, %part ]
  %to.at = getelementptr i32, ptr %to, i64 %k
  %of.at = getelementptr i32, ptr %of, i64 %k
  %old = load {_V}, ptr %to.at, align 4
  %new = load {_V}, ptr %of.at, align 4
  %larger = call {_V} @{_MAX}({_V} %old, {_V} %new)
  store {_V} %larger, ptr %to.at, align 4
  %k.next = add i64 %k, {_PART}
  %over = icmp uge i64 %k.next, %count
  br i1 %over, label %end, label %part
end:
  ret void
}}
define private void @begun(ptr %order, ptr %cells, i64 %size, i64 %warps) noinline {{
  %rows = getelementptr i8, ptr %order, i64 {o.rows}
  br label %look
look:
  %r = phi i64 [ 0, %0 ], [ %r.next, %looked ]
  %most = phi i32 [ 0, %0 ], [ %most.next, %looked ]
  %offset = mul i64 %r, {o.row}
  %row = getelementptr i8, ptr %rows, i64 %offset
  %issued.at = getelementptr i32, ptr %row, i64 {o.issued}
  %issued = load <{KINDS} x i32>, ptr %issued.at, align 4
  %of.units = call i32 @llvm.vector.reduce.smax.v{KINDS}i32(<{KINDS} x i32> %issued)
  %first = call i32 @llvm.smax.i32(i32 %most, i32 %of.units)
  br label %part
part:
  %p = phi i64 [ 0, %look ], [ %p.next, %part ]
  %of.parts = phi i32 [ %first, %look ], [ %most.next, %part ]
  %words.at = getelementptr i32, ptr %row, i64 %p
  %words = load {_V}, ptr %words.at, align 4
  %largest = call i32 @llvm.vector.reduce.smax.v{_PART}i32({_V} %words)
  %most.next = call i32 @llvm.smax.i32(i32 %of.parts, i32 %largest)
  %p.next = add i64 %p, {_PART}
  %p.over = icmp uge i64 %p.next, {o.columns}
  br i1 %p.over, label %looked, label %part
looked:
  %r.next = add i64 %r, 1
  %r.over = icmp eq i64 %r.next, %warps
  br i1 %r.over, label %found, label %look
found:
  %base = add i32 %most.next, 1
  store i32 %base, ptr %order
  %one = insertelement {_V} poison, i32 %base, i64 0
  %all = shufflevector {_V} %one, {_V} poison, {_V} zeroinitializer
  %few = shufflevector {_V} %one, {_V} poison, <{KINDS} x i32> zeroinitializer
  br label %fill
fill:
  %k = phi i64 [ 0, %found ], [ %k.next, %filled ]
  %k.offset = mul i64 %k, {o.row}
  %k.row = getelementptr i8, ptr %rows, i64 %k.offset
  %k.before = getelementptr i32, ptr %k.row, i64 {o.all}
  %k.issued = getelementptr i32, ptr %k.row, i64 {o.issued}
  store <{KINDS} x i32> %few, ptr %k.issued, align 4
  %k.committed = getelementptr i32, ptr %k.row, i64 {o.committed}
  store <{KINDS} x i32> zeroinitializer, ptr %k.committed, align 4
  br label %fill.part
fill.part:
  %f = phi i64 [ 0, %fill ], [ %f.next, %fill.part ]
  %f.now = getelementptr i32, ptr %k.row, i64 %f
  store {_V} %all, ptr %f.now, align 4
  %f.before = getelementptr i32, ptr %k.before, i64 %f
  store {_V} %all, ptr %f.before, align 4
  %f.next = add i64 %f, {_PART}
  %f.over = icmp uge i64 %f.next, {o.columns}
  br i1 %f.over, label %filled, label %fill.part
filled:
  %k.next = add i64 %k, 1
  %k.over = icmp eq i64 %k.next, %warps
  br i1 %k.over, label %clear, label %fill
clear:
  %fresh.at = getelementptr i8, ptr %order, i64 {FRESH}
  %fresh = load ptr, ptr %fresh.at
  %untouched = icmp eq ptr %fresh, null
  br i1 %untouched, label %zero, label %copy
zero:
  call void @llvm.memset.p0.i64(ptr %cells, i8 0, i64 %size, i1 false)
  ret void
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %cells, ptr %fresh, i64 %size, i1 false)
  ret void
}}
define hidden void @tell(ptr %context, ptr %state, ptr %token) noinline {{
{_ORDER}
{_row(o, "mine", "%state")}
  %own = load i32, ptr %mine.own
  %later = add i32 %own, 1
  store i32 %later, ptr %mine.own
  call void @more(ptr %token, ptr %mine.row, i64 {o.columns})
  ret void
}}
define hidden void @completes(ptr %token) noinline {{
  %done.at = getelementptr i8, ptr %token, i64 {4 * o.columns}
  call void @more(ptr %done.at, ptr %token, i64 {o.columns})
  call void @llvm.memset.p0.i64(ptr %token, i8 0, i64 {4 * o.columns}, i1 false)
  ret void
}}
define hidden void @hear(ptr %context, ptr %state, ptr %token) noinline {{
{_ORDER}
{_row(o, "mine", "%state")}
  %done.at = getelementptr i8, ptr %token, i64 {4 * o.columns}
  call void @more(ptr %mine.row, ptr %done.at, i64 {o.columns})
  ret void
}}
define hidden ptr @bar(ptr %context, ptr %state, i32 %number) {{
{_ORDER}
  %rank.at = getelementptr i8, ptr %state, i64 {layout.IN_CLUSTER}
  %rank = load i32, ptr %rank.at
  %before = mul i32 %rank, {layout.BARRIERS}
  %in.all = add i32 %before, %number
  %first = getelementptr i8, ptr %order, i64 {o.barriers}
  %offset = mul i32 %in.all, {o.token}
  %token = getelementptr i8, ptr %first, i32 %offset
  ret ptr %token
}}
define hidden void @gone.on(ptr %context, ptr %state, i32 %number, i1 %together, i1 %fenced) noinline {{
{_ORDER}
{_row(o, "mine", "%state")}
  %token = call ptr @bar(ptr %context, ptr %state, i32 %number)
  call void @hear(ptr %context, ptr %state, ptr %token)
  %expected.at = getelementptr i8, ptr %state, i64 {layout.EXPECTED}
  %expected = load i32, ptr %expected.at
  %named = and i32 %expected, {layout.SLOW - 1}
  %alive = icmp eq i32 %named, 0
  %whole = or i1 %alive, %together
  br i1 %whole, label %all, label %end
all:
  %rank.at = getelementptr i8, ptr %state, i64 {layout.IN_CLUSTER}
  %rank = load i32, ptr %rank.at
  %blocks.at = getelementptr i32, ptr %mine.row, i64 {o.column(BLOCK)}
  %block.at = getelementptr i32, ptr %blocks.at, i32 %rank
  %block = load i32, ptr %block.at
  %block.next = add i32 %block, 1
  store i32 %block.next, ptr %block.at
  br i1 %fenced, label %visible, label %known.all
visible:
  %fenced.at = getelementptr i32, ptr %block.at, i64 {o.column(VISIBLE) - o.column(BLOCK)}
  store i32 %block.next, ptr %fenced.at
  br label %known.all
known.all:
  %before.at = getelementptr i32, ptr %mine.row, i64 {o.all}
  call void @llvm.memcpy.p0.p0.i64(ptr %before.at, ptr %mine.row, i64 {4 * o.columns}, i1 false)
  br label %end
end:
  ret void
}}
define hidden void @met(ptr %context, ptr %first, i64 %stride, i64 %strands, i32 %number) noinline {{
  %token = call ptr @bar(ptr %context, ptr %first, i32 %number)
  br label %strand
strand:
  %s = phi i64 [ 0, %0 ], [ %s.next, %next ]
  %unfenced = phi i32 [ 0, %0 ], [ %unfenced.next, %next ]
  %s.offset = mul i64 %s, %stride
  %s.state = getelementptr i8, ptr %first, i64 %s.offset
  %status = load i32, ptr %s.state
  %waits = icmp eq i32 %status, {layout.BARRIER}
  br i1 %waits, label %tells, label %next
tells:
  call void @tell(ptr %context, ptr %s.state, ptr %token)
{_ORDER}
{_row(o, "its", "%s.state")}
  %s.stored.at = getelementptr i32, ptr %its.row, i64 {o.unfenced}
  %s.stored = load i32, ptr %s.stored.at
  %s.unfenced = or i32 %unfenced, %s.stored
  br label %next
next:
  %unfenced.next = phi i32 [ %unfenced, %strand ], [ %s.unfenced, %tells ]
  %s.next = add i64 %s, 1
  %told = icmp eq i64 %s.next, %strands
  br i1 %told, label %complete, label %strand
complete:
  call void @completes(ptr %token)
  %fenced = icmp eq i32 %unfenced.next, 0
  br label %other
other:
  %t = phi i64 [ 0, %complete ], [ %t.next, %following ]
  %t.offset = mul i64 %t, %stride
  %t.state = getelementptr i8, ptr %first, i64 %t.offset
  %t.status = load i32, ptr %t.state
  %t.waits = icmp eq i32 %t.status, {layout.BARRIER}
  br i1 %t.waits, label %hears, label %following
hears:
  call void @gone.on(ptr %context, ptr %t.state, i32 %number, i1 true, i1 %fenced)
  br label %following
following:
  %t.next = add i64 %t, 1
  %over = icmp eq i64 %t.next, %strands
  br i1 %over, label %end, label %other
end:
  ret void
}}
"""


def _objects(o: Order, cells: int) -> str:
  """Objects of mbarriers, of so many cells: their tokens, for who begins one or may use it; who has waited at some."""
  v = f"<{cells} x i64>"
  return f"""
define private ptr @object(ptr %context, ptr %state, i64 %host, i32 %lane, i32 %mode) noinline {{
{_ORDER}
{_row(o, "mine", "%state")}
  %shared.at = getelementptr i8, ptr %state, i64 {layout.TEAM_SHARED}
  %shared = load i64, ptr %shared.at
  %offset = sub i64 %host, %shared
  %cells.at = getelementptr i8, ptr %context, i64 {layout.CELLS}
  %cells = load ptr, ptr %cells.at
  %cells.offset = mul i64 %offset, {cells}
  %cell = getelementptr i8, ptr %cells, i64 %cells.offset
  %warp = shl i32 %mine.strand, 8
  %me = or i32 %warp, %lane
  %own = load i32, ptr %mine.own
  %plane.offset = mul i64 %offset, {cells // 2}
  %planes.at = getelementptr i8, ptr %order, i64 {PLANES}
  %planes.first = load i64, ptr %planes.at
  %planes = add i64 %planes.first, %plane.offset
  %apart.at = getelementptr i8, ptr %order, i64 {APART}
  %apart = load i64, ptr %apart.at
  %at = ptrtoint ptr %cell to i64
  %clock = add i32 %own, 1
  switch i32 %mode, label %find [ i32 {USE}, label %use i32 {BEGIN}, label %begin i32 {INVALID}, label %use ]
begin:
  %clear = call i1 @seen.object(ptr %mine.row, i32 %mine.strand, i64 %at, i64 1, i32 0, i1 false, i32 %me, i1 false)
  br i1 %clear, label %write, label %fail
use:
  %known.word = load i64, ptr %cell, align 8
  %then = trunc i64 %known.word to i32
  %first.wide = lshr i64 %known.word, 32
  %first = trunc i64 %first.wide to i32
  %mark = and i32 %first, {MBARRIER}
  %marked = icmp ne i32 %mark, 0
  %column = lshr i32 %first, 8
  %limit.at = getelementptr i32, ptr %mine.row, i32 %column
  %limit = load i32, ptr %limit.at
  %visible = icmp sle i32 %then, %limit
  %its = and i32 %first, {~MBARRIER}
  %mine.too = icmp eq i32 %its, %me
  %seen = or i1 %visible, %mine.too
  %good = and i1 %marked, %seen
  br i1 %good, label %used, label %fail
used:
  %ends = icmp eq i32 %mode, {INVALID}
  br i1 %ends, label %write, label %note
note:
  %strand.wide = zext i32 %mine.strand to i64
  %own.offset = mul i64 %strand.wide, %apart
  %own.plane = add i64 %planes, %own.offset
  %own.pointer = inttoptr i64 %own.plane to ptr
  %clock.high = shl i32 %clock, 6
  %reader = or i32 %clock.high, %lane
  %r.one = insertelement <{cells} x i32> poison, i32 %reader, i64 0
  %readers = shufflevector <{cells} x i32> %r.one, <{cells} x i32> poison, <{cells} x i32> zeroinitializer
  store <{cells} x i32> %readers, ptr %own.pointer, align 4
  br label %find
write:
  %free = call i1 @free.object(ptr %context, ptr %mine.row, i32 %mine.strand, i64 %planes, i64 %apart, i64 1)
  %mine = call i1 @mine.object(ptr %mine.row, i32 %mine.strand, i64 %planes, i64 %apart, i64 1, i32 %lane)
  %both = and i1 %free, %mine
  %begins = icmp eq i32 %mode, {BEGIN}
  %flag = select i1 %begins, i32 {MBARRIER}, i32 {GONE}
  %clock.wide = zext i32 %clock to i64
  %who = or i32 %me, %flag
  %who.wide = zext i32 %who to i64
  %who.high = shl i64 %who.wide, 32
  %word = or i64 %who.high, %clock.wide
  %one = insertelement {v} poison, i64 %word, i64 0
  %all = shufflevector {v} %one, {v} poison, <{cells} x i32> zeroinitializer
  store {v} %all, ptr %cell, align 8
  br i1 %both, label %find, label %fail
find:
  %map = getelementptr i8, ptr %order, i64 {o.map}
  %unit = lshr i64 %offset, 3
  %number.at = getelementptr i32, ptr %map, i64 %unit
  %number = load i32, ptr %number.at
  %unknown = icmp eq i32 %number, 0
  br i1 %unknown, label %new, label %found
new:
  %count.at = getelementptr i8, ptr %order, i64 {SLOTS}
  %count = load i32, ptr %count.at
  %count.next = add i32 %count, 1
  %room = icmp ule i32 %count.next, {MBARRIERS}
  br i1 %room, label %take, label %fail
take:
  store i32 %count.next, ptr %count.at
  store i32 %count.next, ptr %number.at
  br label %found
found:
  %slot = phi i32 [ %number, %find ], [ %count.next, %take ]
  %tokens = getelementptr i8, ptr %order, i64 {o.tokens}
  %slot.offset = mul i32 %slot, {o.token}
  %token = getelementptr i8, ptr %tokens, i32 %slot.offset
  ret ptr %token
fail:
  ret ptr null
}}
define private void @tell.work(ptr %context, ptr %state, ptr %token, i32 %kind) noinline {{
{_ORDER}
{_row(o, "mine", "%state")}
  %issued = getelementptr i32, ptr %mine.row, i64 {o.issued}
  %clock.at = getelementptr i32, ptr %issued, i32 %kind
  %clock = load i32, ptr %clock.at
  %before = mul i32 %kind, {o.warps}
  %column = add i32 %before, %mine.strand
  %told.at = getelementptr i32, ptr %token, i32 %column
  %told = load i32, ptr %told.at
  %more = call i32 @llvm.smax.i32(i32 %told, i32 %clock)
  store i32 %more, ptr %told.at
  ret void
}}
define private void @hear.objects(ptr %context, ptr %state, i32 %mask) noinline {{
  %hosts = getelementptr i8, ptr %context, i64 {layout.HOSTS}
  br label %turn
turn:
  %left = phi i32 [ %mask, %0 ], [ %rest, %next ]
  %last = phi i64 [ 0, %0 ], [ %host, %next ]
  %over = icmp eq i32 %left, 0
  br i1 %over, label %end, label %one
one:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %host.at = getelementptr i64, ptr %hosts, i32 %lane
  %host = load i64, ptr %host.at
  %same = icmp eq i64 %host, %last
  br i1 %same, label %next, label %hears
hears:
  %token = call ptr @object(ptr %context, ptr %state, i64 %host, i32 %lane, i32 {USE})
  call void @hear(ptr %context, ptr %state, ptr %token)
  br label %next
next:
  br label %turn
end:
  ret void
}}
"""


def _spoken(o: Order) -> str:
  """Threads of a warp tell and hear by their addresses."""
  return f"""
define private i64 @buckets(ptr %context, i32 %mask) noinline {{
  %addresses = getelementptr i8, ptr %context, i64 {layout.ADDRESSES}
  br label %look
look:
  %left = phi i32 [ %mask, %0 ], [ %rest, %one ]
  %buckets = phi i64 [ 0, %0 ], [ %buckets.next, %one ]
  %over = icmp eq i32 %left, 0
  br i1 %over, label %looked, label %one
one:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %address.at = getelementptr i64, ptr %addresses, i32 %lane
  %address = load i64, ptr %address.at
  %word = lshr i64 %address, 2
  %bucket = and i64 %word, {BUCKETS - 1}
  %bit = shl i64 1, %bucket
  %buckets.next = or i64 %buckets, %bit
  br label %look
looked:
  ret i64 %buckets
}}
define private void @speak(ptr %context, ptr %state, i32 %hears, i32 %tells) noinline {{
{_ORDER}
{_row(o, "mine", "%state")}
  %spoken = getelementptr i8, ptr %order, i64 {o.spoken}
  %heard = call i64 @buckets(ptr %context, i32 %hears)
  br label %hear
hear:
  %h = phi i64 [ %heard, %0 ], [ %h.rest, %listens ]
  %h.over = icmp eq i64 %h, 0
  br i1 %h.over, label %said, label %listens
listens:
  %h.bucket = call i64 @llvm.cttz.i64(i64 %h, i1 true)
  %h.less = sub i64 %h, 1
  %h.rest = and i64 %h, %h.less
  %h.offset = mul i64 %h.bucket, {4 * o.columns}
  %h.at = getelementptr i8, ptr %spoken, i64 %h.offset
  call void @more(ptr %mine.row, ptr %h.at, i64 {o.columns})
  br label %hear
said:
  %said.at = call i64 @buckets(ptr %context, i32 %tells)
  %some = icmp ne i64 %said.at, 0
  br i1 %some, label %later, label %end
later:
  %own = load i32, ptr %mine.own
  %own.next = add i32 %own, 1
  store i32 %own.next, ptr %mine.own
  br label %tell
tell:
  %t = phi i64 [ %said.at, %later ], [ %t.rest, %told ]
  %t.over = icmp eq i64 %t, 0
  br i1 %t.over, label %end, label %told
told:
  %t.bucket = call i64 @llvm.cttz.i64(i64 %t, i1 true)
  %t.less = sub i64 %t, 1
  %t.rest = and i64 %t, %t.less
  %t.offset = mul i64 %t.bucket, {4 * o.columns}
  %t.at = getelementptr i8, ptr %spoken, i64 %t.offset
  call void @more(ptr %t.at, ptr %mine.row, i64 {o.columns})
  br label %tell
end:
  ret void
}}
"""
