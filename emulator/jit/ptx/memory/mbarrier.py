"""mbarrier as LLVM IR: objects are those of `emulator.ptx.memory.mbarrier`, threads act one after the other.

One function does it for all: it looks every address up, changes the objects, and keeps what they were before. Where an
object cannot take it all is undone, and the reference says what is wrong.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx.memory import access, order
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.module.shapes import Block, Info
from tinyhw.emulator.jit.values import Untranslatable, Value, convert
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.memory.mbarrier import EXPECTED, LIMIT, PHASE, TX, VALID
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.isa.ptx import forms
from tinyhw.isa.ptx.forms import Form
from tinyhw.isa.ptx.model import Operand

LOOK, INIT, INVAL, EXPECT, COMPLETE, ARRIVE, ARRIVE_EXPECT, DROP, DROP_EXPECT = range(9)
OPEN: Final = 16  # added to a kind: an arrival must not end the phase
TELLS, COPIES = 32, 64  # and in watched code: it tells what its warp knows, or of the warp's copies
_KINDS: Final = {"init": INIT, "inval": INVAL, "expect_tx": EXPECT, "complete_tx": COMPLETE, "arrive": ARRIVE,
                 "arrive_drop": DROP}
COUNTS, WORDS = layout.DATA, layout.DATA + 8 * 32
_FIELD: Final = LIMIT - 1


def function(cells: int) -> str:
  """Acts on an mbarrier for each thread of a mask: whether all could. `cells`: those of an object, where warps have
  clocks, and tell them there (`order`)."""
  begin, known, tell, last = "", "", "", "%fields"
  if cells:
    begin = f"""  %begun = call ptr @object(ptr %context, ptr %state, i64 %host, i32 %lane, i32 {order.BEGIN})
  %begins.well = icmp ne ptr %begun, null
  br i1 %begins.well, label %fits, label %undo
fits:"""
    known = f"""  br i1 %valid, label %object, label %undo
object:
  %invalidates = icmp eq i32 %kind, {INVAL}
  %use = select i1 %invalidates, i32 {order.INVALID}, i32 {order.USE}
  %token = call ptr @object(ptr %context, ptr %state, i64 %host, i32 %lane, i32 %use)
  %visible = icmp ne ptr %token, null
  br i1 %visible, label %act, label %undo"""
    last = "%told"
    tell = f"""  br i1 %good.3, label %counted, label %undo
counted:
  %tells.bit = and i32 %given, {TELLS}
  %tells = icmp ne i32 %tells.bit, 0
  br i1 %tells, label %tell, label %told.own
tell:
  call void @tell(ptr %context, ptr %state, ptr %token)
  br label %told.own
told.own:
  %copies.bit = and i32 %given, {COPIES}
  %of.copies = icmp ne i32 %copies.bit, 0
  br i1 %of.copies, label %copies, label %told.all
copies:
  call void @tell.work(ptr %context, ptr %state, ptr %token, i32 {order.COPY})
  br label %told.all
told.all:
  br i1 %ends, label %complete, label %told
complete:
  call void @completes(ptr %token)
  br label %told
told:
  br label %store"""
  return f"""
define private i1 @mbarrier(ptr %context, ptr %state, i32 %mask, i32 %given) noinline {{
  %kind = and i32 %given, {OPEN - 1}
  %open.bit = and i32 %given, {OPEN}
  %only.open = icmp ne i32 %open.bit, 0
  %found = call i1 @look(ptr %context, ptr %state, i32 %mask, i64 8, i64 3, i64 {access.SHARED})
  %hosts = getelementptr i8, ptr %context, i64 {layout.HOSTS}
  %counts = getelementptr i8, ptr %context, i64 {COUNTS}
  %words = getelementptr i8, ptr %context, i64 {WORDS}
  br i1 %found, label %turn, label %fail
turn:
  %left = phi i32 [ %mask, %0 ], [ %rest, %next ]
  %over = icmp eq i32 %left, 0
  br i1 %over, label %good, label %one
one:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %host.at = getelementptr i64, ptr %hosts, i32 %lane
  %host = load i64, ptr %host.at
  %cell = inttoptr i64 %host to ptr
  %word = load i64, ptr %cell
  %word.at = getelementptr i64, ptr %words, i32 %lane
  store i64 %word, ptr %word.at
  %count.at = getelementptr i64, ptr %counts, i32 %lane
  %count = load i64, ptr %count.at
  %begins = icmp eq i32 %kind, {INIT}
  br i1 %begins, label %init, label %known
init:
{begin}
  %from.0 = sub i64 %count, 1
  %fits.init = icmp ult i64 %from.0, {_FIELD}
  %copy = shl i64 %count, {EXPECTED}
  %both = or i64 %copy, %count
  %fresh = or i64 %both, {-1 << VALID}
  br i1 %fits.init, label %store, label %undo
known:
  %valid = icmp slt i64 %word, 0
{known or "  br i1 %valid, label %act, label %undo"}
act:
  switch i32 %kind, label %fields [ i32 {LOOK}, label %next i32 {INVAL}, label %store ]
fields:
  %pending = and i64 %word, {_FIELD}
  %expected.high = lshr i64 %word, {EXPECTED}
  %expected = and i64 %expected.high, {_FIELD}
  %tx.up = shl i64 %word, {64 - TX - 21}
  %tx = ashr i64 %tx.up, 43
  %phase.high = lshr i64 %word, {PHASE}
  %phase = and i64 %phase.high, 3
  %is.expect = icmp eq i32 %kind, {EXPECT}
  %is.complete = icmp eq i32 %kind, {COMPLETE}
  %only.tx = or i1 %is.expect, %is.complete
  %is.arrive.expect = icmp eq i32 %kind, {ARRIVE_EXPECT}
  %is.drop.expect = icmp eq i32 %kind, {DROP_EXPECT}
  %arrive.tx = or i1 %is.arrive.expect, %is.drop.expect
  %adds = or i1 %is.expect, %arrive.tx
  %plus = select i1 %adds, i64 %count, i64 0
  %minus = select i1 %is.complete, i64 %count, i64 0
  %tx.plus = add i64 %tx, %plus
  %tx.new = sub i64 %tx.plus, %minus
  %tx.shifted = add i64 %tx.new, {LIMIT - 1}
  %tx.good = icmp ult i64 %tx.shifted, {2 * LIMIT - 1}
  %many.some = select i1 %arrive.tx, i64 1, i64 %count
  %many = select i1 %only.tx, i64 0, i64 %many.some
  %is.drop = icmp eq i32 %kind, {DROP}
  %drops = or i1 %is.drop, %is.drop.expect
  %dropped = select i1 %drops, i64 %many, i64 0
  %drop.good = icmp ule i64 %dropped, %expected
  %expected.new = sub i64 %expected, %dropped
  %arrive.good = icmp ule i64 %many, %pending
  %pending.less = sub i64 %pending, %many
  %good.1 = and i1 %tx.good, %drop.good
  %good.2 = and i1 %good.1, %arrive.good
  %none = icmp eq i64 %pending.less, 0
  %settled = icmp eq i64 %tx.new, 0
  %ends = and i1 %none, %settled
  %closes = and i1 %ends, %only.open
  %stays.open = xor i1 %closes, true
  %good.3 = and i1 %good.2, %stays.open
  %pending.new = select i1 %ends, i64 %expected.new, i64 %pending.less
  %step = zext i1 %ends to i64
  %phase.next = add i64 %phase, %step
  %phase.new = and i64 %phase.next, 3
  %w.1 = shl i64 %expected.new, {EXPECTED}
  %w.2 = or i64 %pending.new, %w.1
  %w.3 = and i64 %tx.new, {(1 << 21) - 1}
  %w.4 = shl i64 %w.3, {TX}
  %w.5 = or i64 %w.2, %w.4
  %w.6 = shl i64 %phase.new, {PHASE}
  %w.7 = or i64 %w.5, %w.6
  %w.8 = or i64 %w.7, {-1 << VALID}
{tell or "  br i1 %good.3, label %store, label %undo"}
store:
  %new = phi i64 [ %fresh, %{"fits" if cells else "init"} ], [ 0, %act ], [ %w.8, {last} ]
  store i64 %new, ptr %cell
  %changes.at = getelementptr i8, ptr %context, i64 {layout.CHANGES}
  %changes = load i64, ptr %changes.at
  %changes.more = add i64 %changes, 1
  store i64 %changes.more, ptr %changes.at
  br label %next
next:
  br label %turn
undo:
  %bit = shl i32 1, %lane
  %below = sub i32 %bit, 1
  %done = and i32 %mask, %below
  br label %back
back:
  %todo = phi i32 [ %done, %undo ], [ %todo.rest, %again ]
  %undone = icmp eq i32 %todo, 0
  br i1 %undone, label %fail, label %again
again:
  %zeros = call i32 @llvm.ctlz.i32(i32 %todo, i1 true)
  %high = sub i32 31, %zeros
  %high.bit = shl i32 1, %high
  %todo.rest = xor i32 %todo, %high.bit
  %b.host.at = getelementptr i64, ptr %hosts, i32 %high
  %b.host = load i64, ptr %b.host.at
  %b.cell = inttoptr i64 %b.host to ptr
  %b.word.at = getelementptr i64, ptr %words, i32 %high
  %b.word = load i64, ptr %b.word.at
  store i64 %b.word, ptr %b.cell
  br label %back
good:
  ret i1 true
fail:
  ret i1 false
}}
"""


def _cells(g: Lanes) -> int:
  """The cells of an object, where warps have clocks; or 0."""
  return 8 // g.watch.shared if g.watch is not None and g.watch.kinds else 0


def _done(g: Lanes, line: Line, form: Form, operand: Operand, kind: int, count: Value | None,
          one: bool = False) -> tuple[Value | None, str]:
  """Have the function act; (who takes part, its mask as i32). `one`: the first of them stands for all."""
  e, w = g.e, g.width
  site = access.site_of(g, line, form, operand, 8, 1, Access.READ | Access.WRITE)
  if site.mode not in {access.SHARED, access.GENERIC}: raise Untranslatable("outside of shared memory")
  at = site.base if site.steps is None else g.materialized(site.base, site.steps)
  if site.mode == access.GENERIC: at = at - spaces.SHARED_WINDOW
  away = g.deopt()
  e.do(f"store <{w} x i64> {at.in_lanes()}, ptr {g.pointer('%context', layout.ADDRESSES)}, align 8")
  if count is not None:
    e.do(f"store <{w} x i64> {convert(count, U64).in_lanes()}, ptr {g.pointer('%context', COUNTS)}, align 8")
  mask = g.bits(site.mask) if site.mask is not None else "-1"
  if one: mask = e.op(f"and i32 {mask}, {e.op(f'sub i32 0, {mask}')}")
  text = function(_cells(g))
  if text not in e.constants: e.constants.append(text)
  e.declared["llvm.ctlz.i32"] = "declare i32 @llvm.ctlz.i32(i32, i1)"
  good = e.op(f"call i1 @mbarrier(ptr %context, ptr %state, i32 {mask}, i32 {kind})")
  fine = e.new_label("counted")
  e.do(f"br i1 {good}, label %{fine}, label %{away}, !prof !1")
  e.start(fine)
  return site.mask, mask


@access.emits("mbarrier")
def mbarrier(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """All but the waits."""
  i, m = line.instruction, form.modifiers
  name = i.modifiers[0]
  if name == "pending_count":
    token = operands.reader(g.code, line, i.operands[1], "b64")(g)
    return operands.writer(g.code, line, i.operands[0], "b32")(g, convert(token & LIMIT - 1, U32))
  if name not in _KINDS: raise Untranslatable("no compiled form")
  rest = [*i.operands]
  state = rest.pop(0) if name in {"arrive", "arrive_drop"} else None
  kind = _KINDS[name]
  if state is not None and "expect_tx" in m: kind += 1
  if "noComplete" in m: kind += OPEN
  if state is not None and "relaxed" not in m: kind += TELLS
  place = rest.pop(0)
  count = operands.reader(g.code, line, rest[0], "u32")(g) if rest else g.o.const("u32", 1)
  _done(g, line, form, place, kind, count)
  if state is None: return
  words = g.e.op(f"load <32 x i64>, ptr {g.pointer('%context', WORDS)}, align 8")
  operands.writer(g.code, line, state, "b64")(g, Value(g.e, words, U64, True))


def copied(g: Lanes, line: Line, form: Form) -> None:
  """cp.async.mbarrier.arrive: the copies before it have been made; without .noinc that counts for nothing."""
  kind = ARRIVE + COPIES if "noinc" in form.modifiers else LOOK
  if kind == LOOK and _cells(g): raise Untranslatable("that counts for nothing, in watched code")
  _done(g, line, form, line.instruction.operands[0], kind, g.o.const("u32", 1))


def test(g: Lanes, line: Line, after: Block | None, wait: Callable[[Lanes, Block | None, int], None]) -> None:
  """A wait that ends a block: threads that have to `wait` come back and let others run first."""
  i, e, o = line.instruction, g.e, g.o
  form = forms.find(i.name)
  if form is None: raise Untranslatable("no compiled form")
  parity = "parity" in form.modifiers
  given = operands.reader(g.code, line, i.operands[2], "u32" if parity else "b64")(g)
  shape = g.plan.operand(line, i.operands[1], "u64")
  one = not given.wide and shape is not None and shape.uniform
  _, mask = _done(g, line, form, i.operands[1], LOOK, None, one)
  if one:
    lane = e.op(f"call i32 @llvm.cttz.i32(i32 {mask}, i1 false)")
    lane = e.op(f"and i32 {lane}, 31")
    at = e.op(f"getelementptr i64, ptr {g.pointer('%context', WORDS)}, i32 {lane}")
    words = Value(e, e.op(f"load i64, ptr {at}"), U64, False)
  else: words = Value(e, e.op(f"load <32 x i64>, ptr {g.pointer('%context', WORDS)}, align 8"), U64, True)
  wanted = convert(given, U64)
  if parity: done = ((words >> PHASE) & 1) != (wanted & 1)
  else: done = ((words >> PHASE) & 3) != ((wanted >> PHASE) & 3)
  operands.writer(g.code, line, i.operands[0], "pred")(g, done)
  if _cells(g):
    over = e.op(f"and i32 {mask}, {g.bits(done)}")
    e.do(f"call void @hear.objects(ptr %context, ptr %state, i32 {over})")
  every = done
  if done.wide: every = o.const("bool", 1).like(e.op(f"icmp eq i32 {g.bits(~done & g.active)}, 0"))
  g.flush()
  yes, no = e.new_label("over"), e.new_label("waits")
  e.do(f"br i1 {every.text}, label %{yes}, label %{no}")
  e.start(yes)
  g.go(after)
  e.start(no)
  wait(g, after, layout.POLL)
