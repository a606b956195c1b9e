"""What ends a block, as LLVM IR: branches, ends, barriers, and instructions for which threads of a warp meet."""
from __future__ import annotations

from typing import Any, Final

from tinyhw.core.errors import Error, Unsupported
from tinyhw.emulator.jit.ptx import layout
from tinyhw.emulator.jit.ptx.emit import Lanes, Refused
from tinyhw.emulator.jit.ptx.shapes import Block
from tinyhw.emulator.jit.values import Untranslatable, Value
from tinyhw.emulator.ptx import builtin, flow, operands
from tinyhw.emulator.ptx.scope import Line
from tinyhw.isa.ptx.model import Arguments, Int, Name

NAMED: Final = frozenset({"shfl", "vote", "match", "redux", "elect"})  # that threads of a warp meet for, by a mask
SEEN: Final = NAMED | {"mma", "ldmatrix", "stmatrix", "movmatrix"}


def end(g: Lanes, k: int) -> None:
  """The instruction that ends the block. Raises Refused."""
  line = g.plan.lines[k]
  i = line.instruction
  after = g.successor(g.block.end)
  try:
    if i.opcode == "bra": return _bra(g, line, after)
    if i.opcode == "brx" and i.predicate is None: return _brx(g, line)
    if i.opcode in {"ret", "exit"}: return _leave(g, line, after)
    if i.opcode in {"trap", "brkpt"}: return _reference(g, line, after)
    if i.opcode == "call" and _builtin(line): return _reference(g, line, after)
    if i.predicate is not None: return _guarded(g, line, after, k)
    return _stop(g, line, after, k)
  except (Untranslatable, Unsupported) as why: raise Refused(f"{i.name} ({why})") from None
  except Error: raise Refused(i.name) from None


def _builtin(line: Line) -> bool:
  names = [o.text for o in line.instruction.operands if isinstance(o, Name)]
  return bool(names) and names[0] in builtin.FUNCTIONS and not isinstance(names[0], Arguments)


def _guard(g: Lanes, line: Line) -> Value | None:
  guard = operands.predicate(line)
  return None if guard is None else guard(g)  # type: ignore[arg-type]


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
  index = operands.reader(g.code, line, line.instruction.operands[0], "u32")(g)  # type: ignore[arg-type]
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


def _leave(g: Lanes, line: Line, after: Block | None) -> None:
  e, m = g.e, g.mask_type
  p = _guard(g, line)
  if p is None: return g.done()
  g.flush()
  if not p.wide:
    yes, no = e.new_label("yes"), e.new_label("no")
    e.do(f"br i1 {p.text}, label %{yes}, label %{no}")
    e.start(yes)
    g.done()
    e.start(no)
    return g.go(after)
  here = e.op(f"load {m}, ptr %active")
  gone = e.op(f"and {m} {here}, {g.bits(p)}")
  _part(g, [(None, gone), (after, e.op(f"xor {m} {here}, {gone}"))])


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
  if p.wide: raise Untranslatable("under a predicate that threads differ in")
  yes, no = e.new_label("yes"), e.new_label("no")
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
    if after is None: return g.go(after)
    before = [q for q in g.block.waiting if q < after.number]
    if before: return g.go(after)
    return g.e.do(f"br label %{g.resumable(layout.YIELD, after.pc, after.live, after)}")
  if i.opcode == "bar" and "warp" in i.modifiers: return _meet(g, line, after, i.operands[0], None)
  if i.opcode in {"bar", "barrier"}: return _barrier(g, line, after)
  if i.opcode not in SEEN: raise Untranslatable("no compiled form")
  _meet(g, line, after, i.operands[-1] if i.opcode in NAMED else Int(-1), k)


def _meet(g: Lanes, line: Line, after: Block | None, members: Any, k: int | None) -> None:
  """Threads of a warp execute an instruction together."""
  from tinyhw.emulator.jit.ptx import access, warp
  if g.width != 32: raise Untranslatable("in a strand that is no warp")
  e, b = g.e, g.block
  if b.waiting:  # other members may be elsewhere
    wanted = operands.reader(g.code, line, members, "u32")(g)  # type: ignore[arg-type]
    if wanted.wide: raise Untranslatable("with members that threads differ in")
    alive, here = e.op("load i32, ptr %alive"), e.op("load i32, ptr %active")
    missing = e.op(f"and i32 {e.op(f'and i32 {alive}, {wanted.text}')}, {e.op(f'xor i32 {here}, -1')}")
    fine = e.new_label("together")
    e.do(f"br i1 {e.op(f'icmp eq i32 {missing}, 0')}, label %{fine}, label %{g.deopt()}, !prof !1")
    e.start(fine)
  if k is not None:
    form = g.plan.forms[k]
    assert form is not None
    emit = warp.EMITTERS.get(line.instruction.opcode) or access.EMITTERS[line.instruction.opcode]
    emit(g, line, form, g.plan.infos[k])
  g.flush()
  g.go(after)


def _barrier(g: Lanes, line: Line, after: Block | None) -> None:
  i, e, m = line.instruction, g.e, g.mask_type
  if {"red", "arrive", "cluster"} & {*i.modifiers}: raise Untranslatable("no compiled form")
  number = operands.reader(g.code, line, i.operands[0], "u32")(g)  # type: ignore[arg-type]
  if number.wide: raise Untranslatable("a number that threads differ in")
  if len(i.operands) > 1:
    count = operands.reader(g.code, line, i.operands[1], "u32")(g)  # type: ignore[arg-type]
    if count.bits != g.plan.threads: raise Untranslatable("for some threads of a block")
  if after is None: raise Untranslatable("at the end")
  away = g.deopt()
  g.flush()
  if g.block.waiting:
    alive, here = e.op(f"load {m}, ptr %alive"), e.op(f"load {m}, ptr %active")
    fine = e.new_label("together")
    e.do(f"br i1 {e.op(f'icmp eq {m} {alive}, {here}')}, label %{fine}, label %{away}, !prof !1")
    e.start(fine)
  e.do(f"store i32 {number.text}, ptr {g.pointer('%state', layout.NUMBER)}")
  e.do(f"br label %{g.resumable(layout.BARRIER, g.pc, after.live, after)}")
