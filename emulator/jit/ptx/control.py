"""What ends a block, as LLVM IR: branches, ends, barriers, and instructions for which threads of a warp meet."""
from __future__ import annotations

from typing import Any, Final

from tinyhw.core.errors import Unsupported
from tinyhw.emulator.jit.ptx import fallback, warp
from tinyhw.emulator.jit.ptx.launch import cluster
from tinyhw.emulator.jit.ptx.memory import access, mbarrier, watched
from tinyhw.emulator.jit.ptx.module import calls, layout
from tinyhw.emulator.jit.ptx.module.emit import Lanes, Refused
from tinyhw.emulator.jit.ptx.module.inline import Instance
from tinyhw.emulator.jit.ptx.module.shapes import Block
from tinyhw.emulator.jit.ptx.tensorcore import warpgroup
from tinyhw.emulator.jit.values import Untranslatable, Value
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.module import builtin, flow
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import U32
from tinyhw.isa.ptx.model import Int

NAMED: Final = frozenset({"shfl", "vote", "match", "redux", "elect"})  # that threads of a warp meet for, by a mask


def end(g: Lanes, k: int) -> None:
  """The instruction that ends the block. Raises Refused."""
  line = g.plan.lines[k]
  i, landed = line.instruction, g.plan.whole.lands(k)
  if landed is not None: return calls.land(g, landed)
  after = g.successor(g.block.end)
  if g.plan.forms[k] is None: return g.e.do(f"br label %{g.deopt()}")  # the reference says what is wrong with it
  try:
    if g.plan.whole.calls(k): return _call(g, line, after, k)
    if i.opcode == "bra": return _bra(g, line, after)
    if i.opcode == "brx" and i.predicate is None: return _brx(g, line)
    if i.opcode in {"ret", "exit"}: return _leave(g, line, after, k)
    if i.opcode in {"trap", "brkpt"}: return _reference(g, line, after)
    if i.opcode == "call" and builtin.called(line): return _reference(g, line, after)
    if i.predicate is not None: return _guarded(g, line, after, k)
    return _stop(g, line, after, k)
  except Unsupported: return g.e.do(f"br label %{g.deopt()}")  # the reference says so when control comes to it
  except Untranslatable as why: raise Refused(f"{i.name} ({why})") from None


def _guard(g: Lanes, line: Line) -> Value | None:
  guard = operands.predicate(line)
  return None if guard is None else guard(g)


def _bra(g: Lanes, line: Line, after: Block | None) -> None:
  e = g.e
  target = g.successor(flow.targets(line)[0])
  p = _guard(g, line)
  g.flush()
  if p is None or target is after: return g.go(target)
  if not p.wide:
    yes, no = e.new_label("yes"), e.new_label("no")
    e.do(f"br i1 {p.text}, label %{yes}, label %{no}")
    for label, way in ((yes, target), (no, after)):
      e.start(label)
      g.go(way)
    return
  m = g.mask_type
  here = e.op(f"load {m}, ptr %active")
  taken = e.op(f"and {m} {here}, {g.bits(p)}")
  others = e.op(f"xor {m} {here}, {taken}")
  _part(g, [(target, taken), (after, others)])


def _part(g: Lanes, ways: list[tuple[Block | None, str]]) -> None:
  """Threads go different ways."""
  e, m = g.e, g.mask_type
  candidates = {*g.block.waiting}
  for way, bits in ways:
    if way is None:
      alive = e.op(f"load {m}, ptr %alive")
      e.do(f"store {m} {e.op(f'and {m} {alive}, ' + e.op(f'xor {m} {bits}, -1'))}, ptr %alive")
    else:
      g.send(way, bits)
      candidates.add(way.number)
  g.dispatch(candidates)


def _brx(g: Lanes, line: Line) -> None:
  e, m = g.e, g.mask_type
  ways = [g.successor(t) for t in flow.targets(line)]
  index = operands.reader(g.code, line, line.instruction.operands[0], "u32")(g)
  away = g.deopt()
  g.flush()
  if not index.wide:
    labels = [e.new_label("case") for _ in ways]
    cases = " ".join(f"i32 {k}, label %{label}" for k, label in enumerate(labels))
    e.do(f"switch i32 {index.text}, label %{away} [ {cases} ]")
    for label, way in zip(labels, ways):
      e.start(label)
      g.go(way)
    return
  here = e.op(f"load {m}, ptr %active")
  beyond = e.op(f"and {m} {here}, {g.bits(index >= len(ways))}")
  fine = e.new_label("cases")
  e.do(f"br i1 {e.op(f'icmp eq {m} {beyond}, 0')}, label %{fine}, label %{away}, !prof !1")
  e.start(fine)
  _part(g, [(way, e.op(f"and {m} {here}, {g.bits(index == k)}")) for k, way in enumerate(ways)])


def _leave(g: Lanes, line: Line, after: Block | None, k: int) -> None:
  """Threads end, or return from a function."""
  e, m = g.e, g.mask_type
  p, of = _guard(g, line), g.plan.whole.owner[k]
  back = g.plan.block_of(of.landing) if line.instruction.opcode == "ret" and of.caller is not None else None
  g.flush()
  if p is None: return g.go(back)
  if not p.wide:
    yes, no = e.new_label("yes"), e.new_label("no")
    e.do(f"br i1 {p.text}, label %{yes}, label %{no}")
    e.start(yes)
    g.go(back)
    e.start(no)
    return g.go(after)
  here = e.op(f"load {m}, ptr %active")
  gone = e.op(f"and {m} {here}, {g.bits(p)}")
  _part(g, [(back, gone), (after, e.op(f"xor {m} {here}, {gone}"))])


def _call(g: Lanes, line: Line, after: Block | None, k: int) -> None:
  """Threads go into a function, each into the one that its register names."""
  e, m, found = g.e, g.mask_type, g.plan.whole.calls(k)
  p, _ = _guard(g, line), g.active
  ways = [(i, g.plan.block_of(i.first)) for i in found]
  target = None
  if operands.register(line, found[0].calling.target) is not None:
    target = operands.reader(g.code, line, found[0].calling.target, "u64")(g)
  if (p is None or not p.wide) and (target is None or not target.wide):
    yes = e.new_label("yes")
    away = g.deopt()
    g.flush()
    if p is not None:
      no = e.new_label("no")
      e.do(f"br i1 {p.text}, label %{yes}, label %{no}")
      e.start(no)
      g.go(after)
      e.start(yes)
    if target is None: return _enter(g, line, *ways[0])
    labels = [e.new_label("function") for _ in ways]
    addresses = [g.code.program.functions[i.code.name] for i, _ in ways]
    cases = " ".join(f"i64 {at}, label %{label}" for at, label in zip(addresses, labels))
    e.do(f"switch i64 {target.text}, label %{away} [ {cases} ]")
    for label, way in zip(labels, ways):
      e.start(label)
      _enter(g, line, *way)
    return
  here = g.active_bits
  taken = here if p is None else e.op(f"and {m} {here}, {g.bits(p)}")
  parts, rest = [], taken
  for i, block in ways:
    some = taken
    if target is not None: some = e.op(f"and {m} {taken}, {g.bits(target == g.code.program.functions[i.code.name])}")
    parts.append((i, block, some))
    rest = e.op(f"xor {m} {rest}, {some}")
  if target is not None:
    fine = e.new_label("known")
    e.do(f"br i1 {e.op(f'icmp eq {m} {rest}, 0')}, label %{fine}, label %{g.deopt()}, !prof !1")
    e.start(fine)
  for i, _, some in parts: calls.give(g, line, i, g.as_mask(some))
  g.flush()
  out: list[tuple[Block | None, str]] = [(block, some) for _, block, some in parts]
  if p is not None: out.append((after, e.op(f"xor {m} {here}, {taken}")))
  _part(g, out)


def _enter(g: Lanes, line: Line, i: Instance, block: Block) -> None:
  """All threads go into a function."""
  before = {**g.current}, {**g.bases}, {*g.dirty}
  side, g.e.side = g.e.side, True
  calls.give(g, line, i, g.active)
  g.flush()
  g.go(block)
  (g.current, g.bases, g.dirty), g.e.side = before, side


def _reference(g: Lanes, line: Line, after: Block | None) -> None:
  """What the reference does where control comes to it: it seldom does."""
  e, m = g.e, g.mask_type
  p = _guard(g, line)
  away = g.deopt()
  if p is None: return e.do(f"br label %{away}")
  here = e.op(f"and {m} {g.active_bits}, {g.bits(p)}")
  g.flush()
  on = e.new_label("on")
  e.do(f"br i1 {e.op(f'icmp eq {m} {here}, 0')}, label %{on}, label %{away}, !prof !1")
  e.start(on)
  g.go(after)


def _guarded(g: Lanes, line: Line, after: Block | None, k: int) -> None:
  e = g.e
  p = _guard(g, line)
  assert p is not None
  yes, no = e.new_label("yes"), e.new_label("no")
  if p.wide:  # some of them alone: they part, which is the reference's
    m, there = g.mask_type, g.active_bits
    here = e.op(f"and {m} {there}, {g.bits(p)}")
    some = e.new_label("some")
    away = g.deopt()
    g.flush()
    e.do(f"br i1 {e.op(f'icmp eq {m} {here}, 0')}, label %{no}, label %{some}")
    e.start(some)
    e.do(f"br i1 {e.op(f'icmp eq {m} {here}, {there}')}, label %{yes}, label %{away}")
  else:
    g.flush()
    e.do(f"br i1 {p.text}, label %{yes}, label %{no}")
  e.start(no)
  g.go(after)
  e.start(yes)
  _stop(g, line, after, k)


def _stop(g: Lanes, line: Line, after: Block | None, k: int) -> None:
  i = line.instruction
  if i.opcode == "nanosleep":
    g.flush()
    return wait(g, after, layout.YIELD)
  if i.opcode == "griddepcontrol":  # launches that overlap are the reference's
    g.flush()
    return g.go(after)
  if i.opcode == "bar" and "warp" in i.modifiers: return _meet(g, line, after, i.operands[0], None)
  if i.opcode == "barrier" and "cluster" in i.modifiers[:1]: return cluster.barrier(g, line, after)
  if i.opcode in {"bar", "barrier"}: return _barrier(g, line, after)
  if i.opcode == "mbarrier": return mbarrier.test(g, line, after, wait)
  if i.opcode == "call":
    fallback.call(g, k)
    g.flush()
    return g.go(after)
  if i.opcode == "wgmma" and "wait_group" in i.modifiers:
    _together(g, line, Int(-1))
    return warpgroup.wait(g, line, after)
  _meet(g, line, after, i.operands[-1] if i.opcode in NAMED else Int(-1), k)


def wait(g: Lanes, after: Block | None, status: int) -> None:
  """Threads go on at the next block when others have had their turn. Registers are flushed."""
  if after is None or any(q < after.number for q in g.block.waiting): return g.go(after)
  g.merge(after)
  g.e.do(f"br label %{g.resumable(status, after.pc, after.live, after)}")


def _together(g: Lanes, line: Line, members: Any) -> None:
  """Leave where threads of `members` are elsewhere."""
  e = g.e
  if not g.block.waiting: return
  wanted = _first(g, operands.reader(g.code, line, members, "u32")(g))
  alive, here = e.op("load i32, ptr %alive"), e.op("load i32, ptr %active")
  missing = e.op(f"and i32 {e.op(f'and i32 {alive}, {wanted.text}')}, {e.op(f'xor i32 {here}, -1')}")
  fine = e.new_label("together")
  e.do(f"br i1 {e.op(f'icmp eq i32 {missing}, 0')}, label %{fine}, label %{g.deopt()}, !prof !1")
  e.start(fine)


def _meet(g: Lanes, line: Line, after: Block | None, members: Any, k: int | None) -> None:
  """Threads of a warp execute an instruction together."""
  _together(g, line, members)
  if k is None and g.watch is not None: watched.synced(g)
  if k is not None:
    form = g.plan.forms[k]
    assert form is not None
    emit = warp.EMITTERS.get(line.instruction.opcode) or access.EMITTERS.get(line.instruction.opcode)
    mark = g.mark()
    try:
      if emit is None: raise Untranslatable("no compiled form")
      if g.code.program.chip_sums and _multiplies(line): raise Untranslatable("summed as the chip does")
      emit(g, line, form, g.plan.infos[k])
    except Untranslatable:
      g.undo(mark)
      fallback.only(g, k)
    if g.watch is not None: watched.synced(g)
  g.flush()
  g.go(after)


def _multiplies(line: Line) -> bool:
  i = line.instruction
  return i.opcode == "mma" or i.opcode in {"wmma", "wgmma"} and not {"mma", "mma_async"}.isdisjoint(i.modifiers)


def _barrier(g: Lanes, line: Line, after: Block | None) -> None:
  """A barrier of the block, or of as many of its threads as are named; .red with a vote, .arrive without a wait."""
  i, e, m = line.instruction, g.e, g.mask_type
  sources = [*i.operands]
  destination = voter = None
  if "red" in i.modifiers:
    destination = sources.pop(0)
    voter = operands.reader(g.code, line, sources.pop(), "pred")(g)
  number = _first(g, operands.reader(g.code, line, sources[0], "u32")(g))
  count = g.o.const("u32", 0)
  if len(sources) > 1: count = _first(g, operands.reader(g.code, line, sources[1], "u32")(g))
  if after is None: raise Untranslatable("at the end")
  away = g.deopt()
  good = number < layout.BARRIERS
  if count.bits is None: good = good & ((count & 31) == 0)
  elif count.bits % 32: raise Untranslatable("for threads that are no whole warps")
  if "arrive" in i.modifiers: good = good & (count != 0)
  here = g.active_bits
  alone = e.op(f"icmp eq {m} {e.op(f'load {m}, ptr %alive')}, {here}") if g.block.waiting else "true"
  fine = e.new_label("together")
  e.do(f"br i1 {e.op(f'and i1 {good.text}, {alone}')}, label %{fine}, label %{away}, !prof !1")
  e.start(fine)
  if "arrive" in i.modifiers:
    g.named = True
    e.do(f"call void @arrived(ptr %context, ptr %state, i32 {number.text}, i32 {count.text})")
    g.flush()
    return g.go(after)
  whole = count.bits == g.plan.threads
  if whole: count = g.o.const("u32", layout.WHOLE)
  if voter is not None:
    votes = e.op(f"and {m} {g.bits(voter)}, {here}")
    e.do(f"store i32 {votes}, ptr {g.pointer('%state', layout.VOTES)}")
    count = count | layout.SLOW
  e.do(f"store i32 {number.text}, ptr {g.pointer('%state', layout.NUMBER)}")
  if count.bits not in {0, layout.WHOLE}: g.named = True
  e.do(f"store i32 {count.text}, ptr {g.pointer('%state', layout.EXPECTED)}")
  if g.watch is not None: watched.met(g, count.bits)
  live = g.lived[g.index] | after.live
  if destination is None:
    label = g.exit(layout.BARRIER, g.pc, live)
    g.resume(after)
    return e.do(f"br label %{label}")
  label = g.exit(layout.BARRIER, g.pc, live)
  landing = e.new_label("voted")
  g.resume(after, landing)
  e.do(f"br label %{label}")
  _voted(g, line, destination, landing, after)


def _first(g: Lanes, x: Value) -> Value:
  """What the first of the threads that are here has."""
  if not x.wide: return x
  e, m = g.e, g.mask_type
  lane = e.call(m, f"llvm.cttz.{m}", (m, g.active_bits), ("i1", "false"))
  there = e.op(f"and {m} {lane}, {g.width - 1}")
  return Value(e, e.op(f"extractelement {x.type} {x.text}, {m} {there}"), x.dtype, False)


def _voted(g: Lanes, line: Line, destination: Any, landing: str, after: Block) -> None:
  """Where threads go on after a barrier with votes: the result is written."""
  i, e = line.instruction, g.e
  g.flush_nothing()
  e.start(landing)
  count = Value(e, e.op(f"load i32, ptr {g.pointer('%state', layout.VOTES)}"), U32, False)
  every = Value(e, e.op(f"load i32, ptr {g.pointer('%state', layout.EVERY)}"), U32, False)
  kind = next(x for x in ("popc", "and", "or") if x in i.modifiers)
  value = count if kind == "popc" else every != 0 if kind == "and" else count != 0
  operands.writer(g.code, line, destination, "u32" if kind == "popc" else "pred")(g, value)
  g.flush()
  e.do(f"br label %block.{after.number}")
