"""The text of what runs strands: blocks of a cluster in turns, barriers that let strands go on."""
from __future__ import annotations

from tinyhw.emulator.jit.ptx.memory.order import CLUSTER
from tinyhw.emulator.jit.ptx.module import layout as at
from tinyhw.emulator.ptx.memory.spaces import RANK

AGAIN, TURNS = 1 << 12, 1 << 10  # instructions of a turn of watched code in which warps may wait in loops; how many


def text(phases: bool, named: bool, ordered: bool, watches: bool) -> str:
  """All of it. `phases`: there are barriers of clusters; `named`: and such that are not of the whole block; `ordered`:
  warps tell each other there what they know (`order`); `watches`: nothing goes on where one strand has left."""
  some = [_barriers(ordered), _arrived(ordered), _fresh()] if named else []
  return "\n".join([_block(named, ordered, watches), *some, *([_phases(ordered)] if phases else []),
                    *([_granted()] if ordered else []), _run(phases, ordered)])


def _state(k: str) -> str:
  """Where the strand of a number has its state, in IR."""
  return f"""  %{k}.offset = mul i64 %{k}, %stride
  %{k}.state = getelementptr i8, ptr %first, i64 %{k}.offset"""


def _word(name: str, k: str, offset: int) -> str:
  """A word of that state, and where it is."""
  return f"""  %{name}.at = getelementptr i8, ptr %{k}.state, i64 {offset}
  %{name} = load i32, ptr %{name}.at"""


def _run(phases: bool, ordered: bool) -> str:
  """Runs the strands of blocks until all have ended, or wait for something else than the others of their cluster."""
  granted = "call i1 @granted(ptr %first, i64 %stride, i64 %all.strands)" if ordered else "icmp ne i1 0, 0"
  last = "call i1 @phases(ptr %context, ptr %first, i64 %stride, i64 %all.strands)" if phases else "icmp ne i1 0, 0"
  return f"""
define void @run(ptr %context, ptr %states, i64 %stride, i64 %blocks) {{
  %strands.at = getelementptr i8, ptr %context, i64 {at.STRANDS}
  %strands = load i64, ptr %strands.at
  %block.size = mul i64 %strands, %stride
  %cluster.at = getelementptr i8, ptr %context, i64 {at.CLUSTER}
  %cluster = load i64, ptr %cluster.at
  %all.strands = mul i64 %cluster, %strands
  br label %next
next:
  %c = phi i64 [ 0, %0 ], [ %c.next, %done ]
  %over = icmp uge i64 %c, %blocks
  br i1 %over, label %end, label %turn
turn:
  %from = mul i64 %c, %block.size
  %first = getelementptr i8, ptr %states, i64 %from
  br label %round
round:
  br label %block
block:
  %b = phi i64 [ 0, %round ], [ %b.next, %others ]
  %found = phi i32 [ 0, %round ], [ %found.next, %others ]
  %block.from = mul i64 %b, %block.size
  %block.first = getelementptr i8, ptr %first, i64 %block.from
  %what = call i32 @block(ptr %context, ptr %block.first, i64 %stride, i64 %strands)
  %found.next = or i32 %found, %what
  %leaves = icmp eq i32 %what, 4
  br i1 %leaves, label %end, label %others
others:
  %b.next = add i64 %b, 1
  %b.done = icmp eq i64 %b.next, %cluster
  br i1 %b.done, label %ran, label %block
ran:
  %released = {last}
  %granted = {granted}
  %polled = icmp eq i32 %found.next, 3
  %again.1 = or i1 %polled, %released
  %again = or i1 %again.1, %granted
  br i1 %again, label %round, label %done
done:
  %c.next = add i64 %c, %cluster
  br label %next
end:
  ret void
}}
"""


def _block(named: bool, ordered: bool, watches: bool) -> str:
  """Runs the strands of a block that can run. Bit 0: some got on; bit 1: some poll an mbarrier; bit 2: one has left."""
  leaves = f"""%leaves = icmp eq i32 %after, {at.LEAVE}
  br i1 %leaves, label %left, label %counted
left:
  ret i32 4""" if watches else "br label %counted"
  met = "call void @met(ptr %context, ptr %first, i64 %stride, i64 %strands, i32 %number.next)" if ordered else ""
  other = "call i1 @barriers(ptr %context, ptr %first, i64 %stride, i64 %strands)" if named else "icmp ne i1 0, 0"
  freed = "call i1 @fresh(ptr %first, i64 %stride, i64 %strands)" if named else "icmp ne i1 0, 0"
  clean = "call i1 @clean(ptr %first, i32 %number.next)" if named else "icmp eq i1 0, 0"
  return f"""
define private i32 @block(ptr %context, ptr %first, i64 %stride, i64 %strands) noinline {{
  %changes.at = getelementptr i8, ptr %context, i64 {at.CHANGES}
  br label %again
again:
  %got.on = phi i1 [ false, %0 ], [ true, %released ], [ true, %other ], [ true, %round ]
  br label %strand
strand:
  %s = phi i64 [ 0, %again ], [ %s.next, %counted ]
  %waiting = phi i64 [ 0, %again ], [ %waiting.next, %counted ]
  %ended = phi i64 [ 0, %again ], [ %ended.next, %counted ]
  %number = phi i32 [ -1, %again ], [ %number.next, %counted ]
  %alike = phi i1 [ true, %again ], [ %alike.next, %counted ]
  %progress = phi i1 [ %got.on, %again ], [ %progress.next, %counted ]
  %polling = phi i1 [ false, %again ], [ %polling.next, %counted ]
  %strict = phi i1 [ false, %again ], [ %strict.next, %counted ]
{_state("s")}
  %before = load i32, ptr %s.state
  %fresh = icmp eq i32 %before, {at.RUN}
  %polled = icmp eq i32 %before, {at.POLL}
  %ready = or i1 %fresh, %polled
  br i1 %ready, label %go, label %stays
go:
  %changes = load i64, ptr %changes.at
  call void @kernel(ptr %context, ptr %s.state)
  %after = load i32, ptr %s.state
  %changes.now = load i64, ptr %changes.at
  %same = icmp eq i64 %changes, %changes.now
  %polls.still = icmp eq i32 %after, {at.POLL}
  %idle.1 = and i1 %polled, %polls.still
  %idle = and i1 %idle.1, %same
  %moved = xor i1 %idle, true
  {leaves}
stays:
  br label %counted
counted:
  %status = phi i32 [ %after, %go ], [ %before, %stays ]
  %moves = phi i1 [ %moved, %go ], [ false, %stays ]
  %progress.next = or i1 %progress, %moves
  %waits = icmp eq i32 %status, {at.BARRIER}
  %ends = icmp eq i32 %status, {at.END}
  %polls = icmp eq i32 %status, {at.POLL}
  %polling.next = or i1 %polling, %polls
  %waits.n = zext i1 %waits to i64
  %ends.n = zext i1 %ends to i64
  %waiting.next = add i64 %waiting, %waits.n
  %ended.next = add i64 %ended, %ends.n
{_word("own", "s", at.NUMBER)}
{_word("expected", "s", at.EXPECTED)}
  %unset = icmp eq i32 %number, -1
  %equal = icmp eq i32 %own, %number
  %matches.1 = or i1 %unset, %equal
  %named.whole = icmp eq i32 %expected, {at.WHOLE}
  %all.alive = icmp eq i32 %expected, 0
  %whole = or i1 %named.whole, %all.alive
  %is.strict = and i1 %waits, %named.whole
  %strict.next = or i1 %strict, %is.strict
  %matches = and i1 %matches.1, %whole
  %passes = xor i1 %waits, true
  %good = or i1 %matches, %passes
  %alike.next = and i1 %alike, %good
  %number.next = select i1 %waits, i32 %own, i32 %number
  %s.next = add i64 %s, 1
  %strands.done = icmp eq i64 %s.next, %strands
  br i1 %strands.done, label %round, label %strand
round:
  %some = icmp ne i64 %waiting.next, 0
  %freed = {freed}
  br i1 %freed, label %again, label %settled
settled:
  %arrived = add i64 %waiting.next, %ended.next
  %complete = icmp eq i64 %arrived, %strands
  %pass.some = and i1 %some, %complete
  %none.ended = icmp eq i64 %ended.next, 0
  %not.strict = xor i1 %strict.next, true
  %enough = or i1 %none.ended, %not.strict
  %pass.all = and i1 %pass.some, %enough
  %pass.alike = and i1 %pass.all, %alike.next
  %clean = {clean}
  %pass = and i1 %pass.alike, %clean
  br i1 %pass, label %met, label %apart
met:
  {met}
  br label %release
release:
  %r = phi i64 [ 0, %met ], [ %r.next, %kept ]
{_state("r")}
  %r.status = load i32, ptr %r.state
  %r.waits = icmp eq i32 %r.status, {at.BARRIER}
  %r.new = select i1 %r.waits, i32 {at.RUN}, i32 %r.status
  store i32 %r.new, ptr %r.state
  br label %kept
kept:
  %r.next = add i64 %r, 1
  %r.done = icmp eq i64 %r.next, %strands
  br i1 %r.done, label %released, label %release
released:
  br label %again
apart:
  br i1 %some, label %other, label %out
other:
  %let = {other}
  br i1 %let, label %again, label %out
out:
  %bit.0 = zext i1 %progress.next to i32
  %bit.1 = select i1 %polling.next, i32 2, i32 0
  %bits = or i32 %bit.0, %bit.1
  ret i32 %bits
}}
"""


def _barriers(ordered: bool) -> str:
  """Lets the strands of a block go on whose barrier is complete, each by its own count; whether there were any."""
  tell = """br i1 %t.here, label %tells, label %told
tells:
  %t.token = call ptr @bar(ptr %context, ptr %t.state, i32 %number)
  call void @tell(ptr %context, ptr %t.state, ptr %t.token)
  br label %told
told:""" if ordered else "br label %told\ntold:"
  complete = """%token = call ptr @bar(ptr %context, ptr %first, i32 %number)
  call void @completes(ptr %token)""" if ordered else ""
  hear = "call void @gone.on(ptr %context, ptr %f.state, i32 %number, i1 false, i1 false)" if ordered else ""
  return f"""
define private i1 @barriers(ptr %context, ptr %first, i64 %stride, i64 %strands) noinline {{
  %counts.at = getelementptr i8, ptr %first, i64 {at.COUNTS}
  %counts = load ptr, ptr %counts.at
  br label %one
one:
  %s = phi i64 [ 0, %0 ], [ %s.next, %looked ]
  %let = phi i1 [ false, %0 ], [ %let.next, %looked ]
{_state("s")}
  %status = load i32, ptr %s.state
  %waits = icmp eq i32 %status, {at.BARRIER}
  br i1 %waits, label %count, label %looked
count:
{_word("number", "s", at.NUMBER)}
  %row = getelementptr [2 x i32], ptr %counts, i32 %number
  %came = load i32, ptr %row
  %row.expected = getelementptr i8, ptr %row, i64 4
  %expected.first = load i32, ptr %row.expected
{_word("mine.raw", "s", at.EXPECTED)}
  %everyone = trunc i64 %strands to i32
  %threads = mul i32 %everyone, 32
  %mine.is.whole = and i32 %mine.raw, {at.WHOLE}
  %mine.whole = icmp ne i32 %mine.is.whole, 0
  %mine.count = and i32 %mine.raw, {at.WHOLE - 1}
  %mine.named = select i1 %mine.whole, i32 %threads, i32 %mine.count
  %mine.all = icmp eq i32 %mine.named, 0
  br label %lives
lives:
  %l = phi i64 [ 0, %count ], [ %l.next, %lives ]
  %living = phi i32 [ 0, %count ], [ %living.next, %lives ]
{_state("l")}
{_word("l.alive", "l", at.ALIVE)}
  %l.living = call i32 @llvm.ctpop.i32(i32 %l.alive)
  %living.next = add i32 %living, %l.living
  %l.next = add i64 %l, 1
  %l.done = icmp eq i64 %l.next, %strands
  br i1 %l.done, label %begin, label %lives
begin:
  %mine = select i1 %mine.all, i32 %living.next, i32 %mine.named
  br label %each
each:
  %t = phi i64 [ 0, %begin ], [ %t.next, %told ]
  %total = phi i32 [ %came, %begin ], [ %total.next, %told ]
  %expected = phi i32 [ %expected.first, %begin ], [ %expected.next, %told ]
  %votes = phi i32 [ 0, %begin ], [ %votes.next, %told ]
  %every = phi i1 [ true, %begin ], [ %every.next, %told ]
{_state("t")}
  %t.status = load i32, ptr %t.state
  %t.waits = icmp eq i32 %t.status, {at.BARRIER}
{_word("t.number", "t", at.NUMBER)}
  %t.same = icmp eq i32 %t.number, %number
  %t.there = and i1 %t.waits, %t.same
  %t.fits = icmp slt i32 %total, %mine
  %t.here = and i1 %t.there, %t.fits
{_word("t.active", "t", at.ACTIVE)}
  %t.threads = call i32 @llvm.ctpop.i32(i32 %t.active)
{_word("t.expected.raw", "t", at.EXPECTED)}
  %t.is.whole = and i32 %t.expected.raw, {at.WHOLE}
  %t.named.whole = icmp ne i32 %t.is.whole, 0
  %t.count = and i32 %t.expected.raw, {at.WHOLE - 1}
  %t.expected = select i1 %t.named.whole, i32 %threads, i32 %t.count
  %t.whole = icmp eq i32 %t.expected, 0
  %t.counts = select i1 %t.whole, i32 %t.threads, i32 32
  %t.adds = select i1 %t.here, i32 %t.counts, i32 0
  %total.next = add i32 %total, %t.adds
  %expected.next = select i1 %t.here, i32 %t.expected, i32 %expected
{_word("t.votes", "t", at.VOTES)}
  %t.votes.n = call i32 @llvm.ctpop.i32(i32 %t.votes)
  %t.votes.here = select i1 %t.here, i32 %t.votes.n, i32 0
  %votes.next = add i32 %votes, %t.votes.here
  %t.every = icmp eq i32 %t.votes, %t.active
  %t.not.here = xor i1 %t.here, true
  %t.passes = or i1 %t.every, %t.not.here
  %every.next = and i1 %every, %t.passes
  {tell}
  %t.next = add i64 %t, 1
  %t.done = icmp eq i64 %t.next, %strands
  br i1 %t.done, label %judge, label %each
judge:
  %for.all = icmp eq i32 %expected.next, 0
  %wanted = select i1 %for.all, i32 %living.next, i32 %expected.next
  %complete = icmp sge i32 %total.next, %wanted
  br i1 %complete, label %release, label %looked
release:
  store i32 0, ptr %row
  %every.n = zext i1 %every.next to i32
  {complete}
  br label %free
free:
  %f = phi i64 [ 0, %release ], [ %f.next, %freed ]
  %f.total = phi i32 [ %came, %release ], [ %f.total.next, %freed ]
{_state("f")}
  %f.status = load i32, ptr %f.state
  %f.waits = icmp eq i32 %f.status, {at.BARRIER}
{_word("f.number", "f", at.NUMBER)}
  %f.same = icmp eq i32 %f.number, %number
  %f.there = and i1 %f.waits, %f.same
  %f.fits = icmp slt i32 %f.total, %mine
  %f.here = and i1 %f.there, %f.fits
{_word("f.active", "f", at.ACTIVE)}
  %f.threads = call i32 @llvm.ctpop.i32(i32 %f.active)
{_word("f.expected", "f", at.EXPECTED)}
  %f.expected.count = and i32 %f.expected, {at.SLOW - 1}
  %f.whole = icmp eq i32 %f.expected.count, 0
  %f.counts = select i1 %f.whole, i32 %f.threads, i32 32
  %f.adds = select i1 %f.here, i32 %f.counts, i32 0
  %f.total.next = add i32 %f.total, %f.adds
  br i1 %f.here, label %set, label %freed
set:
  {hear}
  store i32 {at.RUN}, ptr %f.state
  %f.votes.at = getelementptr i8, ptr %f.state, i64 {at.VOTES}
  store i32 %votes.next, ptr %f.votes.at
  %f.every.at = getelementptr i8, ptr %f.state, i64 {at.EVERY}
  store i32 %every.n, ptr %f.every.at
  br label %freed
freed:
  %f.next = add i64 %f, 1
  %f.done = icmp eq i64 %f.next, %strands
  br i1 %f.done, label %looked, label %free
looked:
  %let.next = phi i1 [ %let, %one ], [ %let, %judge ], [ true, %freed ]
  %s.next = add i64 %s, 1
  %over = icmp eq i64 %s.next, %strands
  br i1 %over, label %end, label %one
end:
  ret i1 %let.next
}}
declare i32 @llvm.ctpop.i32(i32)
"""


def _arrived(ordered: bool) -> str:
  """A strand arrives at a barrier of its block and goes on. Who waited there before counts first, and a phase ends with
  the arrival that completes it, whether somebody waits or not: what comes later is of the next."""
  tell = """%token = call ptr @bar(ptr %context, ptr %state, i32 %number)
  call void @tell(ptr %context, ptr %state, ptr %token)""" if ordered else ""
  complete = "call void @completes(ptr %token)" if ordered else ""
  return f"""
define hidden void @arrived(ptr %context, ptr %state, i32 %number, i32 %count) noinline {{
  %strands.at = getelementptr i8, ptr %context, i64 {at.STRANDS}
  %strands = load i64, ptr %strands.at
  %stride.at = getelementptr i8, ptr %context, i64 {at.STRIDE}
  %stride = load i64, ptr %stride.at
  %own.at = getelementptr i8, ptr %state, i64 {at.STRAND}
  %own.n = load i32, ptr %own.at
  %own = zext i32 %own.n to i64
  %before = mul i64 %own, %stride
  %back = sub i64 0, %before
  %first = getelementptr i8, ptr %state, i64 %back
  %counts.at = getelementptr i8, ptr %first, i64 {at.COUNTS}
  %counts = load ptr, ptr %counts.at
  %row = getelementptr [2 x i32], ptr %counts, i32 %number
  %row.expected = getelementptr i8, ptr %row, i64 4
  %waited = call i1 @barriers(ptr %context, ptr %first, i64 %stride, i64 %strands)
  {tell}
  %came = load i32, ptr %row
  %came.next = add i32 %came, 32
  store i32 %came.next, ptr %row
  store i32 %count, ptr %row.expected
  %let = call i1 @barriers(ptr %context, ptr %first, i64 %stride, i64 %strands)
  %open = load i32, ptr %row
  %over = icmp uge i32 %open, %count
  br i1 %over, label %full, label %end
full:
  store i32 0, ptr %row
  {complete}
  br label %end
end:
  ret void
}}
"""


def _fresh() -> str:
  """Whether an arrival has let strands go on that have not run since; whether nobody has arrived at a barrier."""
  return f"""
define private i1 @fresh(ptr %first, i64 %stride, i64 %strands) noinline {{
  br label %look
look:
  %s = phi i64 [ 0, %0 ], [ %s.next, %look ]
  %found = phi i1 [ false, %0 ], [ %found.next, %look ]
{_state("s")}
  %status = load i32, ptr %s.state
  %runs = icmp eq i32 %status, {at.RUN}
  %found.next = or i1 %found, %runs
  %s.next = add i64 %s, 1
  %over = icmp eq i64 %s.next, %strands
  br i1 %over, label %end, label %look
end:
  ret i1 %found.next
}}
define private i1 @clean(ptr %first, i32 %number) noinline {{
  %none = icmp slt i32 %number, 0
  br i1 %none, label %yes, label %look
look:
  %counts.at = getelementptr i8, ptr %first, i64 {at.COUNTS}
  %counts = load ptr, ptr %counts.at
  %row = getelementptr [2 x i32], ptr %counts, i32 %number
  %came = load i32, ptr %row
  %nobody = icmp eq i32 %came, 0
  ret i1 %nobody
yes:
  ret i1 true
}}
"""


def _phases(ordered: bool) -> str:
  """Ends the phase of a cluster's barrier when every strand has arrived or ended; whether any can go on for it."""
  token, completes, hears = "", "br label %each", ""
  turn, let = "[ %t.next, %each ]", "[ %let.next, %each ]"
  if ordered:
    turn, let = "[ 0, %completes ], [ %t.next, %heard ]", "[ false, %completes ], [ %let.next, %heard ]"
    token = f"""  %order.at = getelementptr i8, ptr %context, i64 {at.ORDER}
  %order = load ptr, ptr %order.at
  %token = getelementptr i8, ptr %order, i64 {CLUSTER}
"""
    completes = """br i1 %complete, label %completes, label %each
completes:
  call void @completes(ptr %token)
  br label %each"""
    hears = """br i1 %t.goes, label %hears, label %heard
hears:
  call void @hear(ptr %context, ptr %t.state, ptr %token)
  br label %heard
heard:"""
  return f"""
define private i1 @phases(ptr %context, ptr %first, i64 %stride, i64 %strands) noinline {{
{token}  br label %look
look:
  %s = phi i64 [ 0, %0 ], [ %s.next, %look ]
  %all = phi i1 [ true, %0 ], [ %all.next, %look ]
  %any = phi i1 [ false, %0 ], [ %any.next, %look ]
{_state("s")}
  %status = load i32, ptr %s.state
  %ended = icmp eq i32 %status, {at.END}
{_word("arrived.n", "s", at.ARRIVED)}
  %arrived = icmp ne i32 %arrived.n, 0
  %there = or i1 %ended, %arrived
  %all.next = and i1 %all, %there
  %any.next = or i1 %any, %arrived
  %s.next = add i64 %s, 1
  %over = icmp eq i64 %s.next, %strands
  br i1 %over, label %judge, label %look
judge:
  %complete = and i1 %all.next, %any.next
  %step = zext i1 %complete to i32
  {completes}
each:
  %t = phi i64 [ 0, %judge ], {turn}
  %let = phi i1 [ false, %judge ], {let}
{_state("t")}
{_word("t.arrived", "t", at.ARRIVED)}
  %t.arrived.new = select i1 %complete, i32 0, i32 %t.arrived
  store i32 %t.arrived.new, ptr %t.arrived.at
{_word("t.phase", "t", at.PHASE)}
  %t.phase.new = add i32 %t.phase, %step
  store i32 %t.phase.new, ptr %t.phase.at
{_word("t.ticket", "t", at.TICKET)}
  %t.status = load i32, ptr %t.state
  %t.waits = icmp eq i32 %t.status, {at.CLUSTER_BARRIER}
  %t.passes = icmp slt i32 %t.ticket, %t.phase.new
  %t.goes = and i1 %t.waits, %t.passes
  %t.status.new = select i1 %t.goes, i32 {at.RUN}, i32 %t.status
  store i32 %t.status.new, ptr %t.state
  {hears}
  %let.next = or i1 %let, %t.goes
  %t.next = add i64 %t, 1
  %t.done = icmp eq i64 %t.next, %strands
  br i1 %t.done, label %end, label %each
end:
  ret i1 %let.next
}}
"""


def _granted() -> str:
  """Gives strands of a cluster another turn that have had one, so that they see what others do; whether there are any.
  Each has so many at most."""
  return f"""
define private i1 @granted(ptr %first, i64 %stride, i64 %strands) noinline {{
  br label %look
look:
  %s = phi i64 [ 0, %0 ], [ %s.next, %next ]
  %some = phi i1 [ false, %0 ], [ %some.next, %next ]
{_state("s")}
  %status = load i32, ptr %s.state
  %yields = icmp eq i32 %status, {at.YIELD}
{_word("turns", "s", at.AGAIN)}
  %more = icmp ult i32 %turns, {TURNS}
  %goes = and i1 %yields, %more
  br i1 %goes, label %grant, label %next
grant:
  %turns.next = add i32 %turns, 1
  store i32 %turns.next, ptr %turns.at
  %left.at = getelementptr i8, ptr %s.state, i64 {at.LEFT}
  %left = load i64, ptr %left.at
  %left.next = add i64 %left, {AGAIN}
  store i64 %left.next, ptr %left.at
  store i32 {at.RUN}, ptr %s.state
  br label %next
next:
  %some.next = or i1 %some, %goes
  %s.next = add i64 %s, 1
  %over = icmp eq i64 %s.next, %strands
  br i1 %over, label %end, label %look
end:
  ret i1 %some.next
}}
"""


def lives() -> str:
  """Whether a block of the cluster, so many blocks behind a strand's own one, has not ended."""
  return f"""
define hidden i1 @lives(ptr %context, ptr %state, i64 %blocks.away) noinline {{
  %strands.at = getelementptr i8, ptr %context, i64 {at.STRANDS}
  %strands = load i64, ptr %strands.at
  %stride.at = getelementptr i8, ptr %context, i64 {at.STRIDE}
  %stride = load i64, ptr %stride.at
  %own.at = getelementptr i8, ptr %state, i64 {at.STRAND}
  %own.n = load i32, ptr %own.at
  %own = zext i32 %own.n to i64
  %blocks = mul i64 %blocks.away, %strands
  %first = sub i64 %blocks, %own
  br label %look
look:
  %s = phi i64 [ 0, %0 ], [ %s.next, %more ]
  %place = add i64 %first, %s
  %offset = mul i64 %place, %stride
  %other = getelementptr i8, ptr %state, i64 %offset
  %status = load i32, ptr %other
  %alive = icmp ne i32 %status, {at.END}
  br i1 %alive, label %yes, label %more
more:
  %s.next = add i64 %s, 1
  %over = icmp eq i64 %s.next, %strands
  br i1 %over, label %no, label %look
yes:
  ret i1 true
no:
  ret i1 false
}}
"""


def far() -> tuple[str, str]:
  """(test of an offset in shared memory, text) that takes an address of another block of the cluster in `look`."""
  return f"""  %far = lshr i64 %offset, {RANK}
  %remote = icmp ne i64 %far, 0
  br i1 %remote, label %in.other, label %in.own
in.other:
  %rank = sub i64 %far, 1
  %cluster.at = getelementptr i8, ptr %context, i64 {at.CLUSTER}
  %cluster = load i64, ptr %cluster.at
  %block.at = getelementptr i8, ptr %state, i64 {at.BLOCK}
  %block = load i64, ptr %block.at
  %own.rank = urem i64 %block, %cluster
  %blocks.away = sub i64 %rank, %own.rank
  %known.rank = icmp ult i64 %rank, %cluster
  %low.offset = and i64 %offset, {(1 << RANK) - 1}
  %far.end = add i64 %low.offset, %width
  %far.inside = icmp ule i64 %far.end, %total
  %far.good = and i1 %known.rank, %far.inside
  br i1 %far.good, label %in.living, label %fail
in.living:
  %living = call i1 @lives(ptr %context, ptr %state, i64 %blocks.away)
  %apart.at = getelementptr i8, ptr %context, i64 {at.APART}
  %apart = load i64, ptr %apart.at
  %blocks.off = mul i64 %blocks.away, %apart
  %host.base = add i64 %shared, %blocks.off
  %host.far = add i64 %host.base, %low.offset
  br i1 %living, label %kept, label %fail
in.own:
""", ", [ %host.far, %in.living ]"


__all__ = ["far", "lives", "text"]
