"""Instructions that a routine does for one thread of a warp after the other, the lowest first.

A routine that has not done it for a thread has changed nothing for that one. What is a change of memory is then the
reference's for this thread and those after it; of a question, all threads ask the reference.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tinyhw.emulator.jit.ptx import fallback
from tinyhw.emulator.jit.ptx.memory.moves import completed, place
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.onebyone import Turn, turns
from tinyhw.emulator.jit.ptx.routine import Routine, defined
from tinyhw.emulator.jit.values import Value, convert
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory import spaces as memory
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import U64

COLUMN: Final = 8 * 32  # bytes of a value of all threads
ROOM: Final = (layout.HOSTS - layout.ADDRESSES) // COLUMN  # values that a routine may take and give


def taken(g: Lanes, routine: Routine) -> None:
  """Have a routine in the module, with what it calls."""
  spaces = [place(s, g.plan.clustered) for s in ("global", "shared", memory.GENERIC)]
  defined(g.e, *spaces, completed(), routine.text())
  g.e.declared.update(routine.declared)


def each(g: Lanes, line: Line, routine: Routine, given: Sequence[Value], results: Sequence[Any] = ()) -> list[Value]:
  """Have a routine act for each thread that executes an instruction: it takes values, as u64, and where to put its
  results (`results`: their types), at distances of `COLUMN`. Without results the instruction changes memory."""
  e, w = g.e, g.width
  taken(g, routine)
  guard = operands.predicate(line)
  here = g.active_bits
  if guard is not None: here = e.op(f"and i32 {g.bits(guard(g))}, {here}")
  away = g.deopt() if results else ""
  one = bool(results) and not any(v.wide for v in given)  # a question that all ask alike
  if one: here = e.op(f"and i32 {here}, {e.op(f'sub i32 0, {here}')}")
  columns = [g.pointer("%context", layout.ADDRESSES + COLUMN * k) for k in range(len(given) + len(results))]
  assert len(columns) <= ROOM
  for value, at in zip(given, columns):
    if value.wide: e.do(f"store <{w} x i64> {convert(value, U64).text}, ptr {at}, align 8")
  with turns(e, here) as one_of:
    lane = one_of.lane
    texts = [e.op(f"load i64, ptr {e.op(f'getelementptr i64, ptr {at}, i32 {lane}')}") if v.wide else
             convert(v, U64).text for v, at in zip(given, columns)]
    if results:
      slot = columns[len(given)] if one else e.op(f"getelementptr i64, ptr {columns[len(given)]}, i32 {lane}")
      texts.append(e.op(f"ptrtoint ptr {slot} to i64"))
    passed = "".join(f", i64 {text}" for text in texts)
    good = e.op(f"call i1 @{routine.name}(ptr %context, ptr %state{passed})")
    done, failed = e.new_label("done"), e.new_label("failed")
    e.do(f"br i1 {good}, label %{done}, label %{away or failed}, !prof !1")
    if not away:
      if g.watch is None: _rest(g, failed, one_of)
      else:
        e.start(failed)
        e.do(f"br label %{g.deopt()}")
    e.start(done)
  out = []
  for at, dtype in zip(columns[len(given):], results):
    t = "i64" if one else f"<{w} x i64>"
    out.append(convert(Value(e, e.op(f"load {t}, ptr {at}, align 8"), U64, not one), dtype))
  return out


def _rest(g: Lanes, label: str, turn: Turn) -> None:
  """Have the reference do an instruction for the threads that are left."""
  e = g.e
  e.start(label)
  active = e.op("load i32, ptr %active")
  e.do(f"store i32 {turn.left}, ptr %active")
  fallback.emit(g, g.index)
  e.do(f"store i32 {active}, ptr %active")
  e.do(f"br label %{turn.over}")
