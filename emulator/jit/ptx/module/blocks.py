"""A kernel as LLVM IR: its blocks one by one, each instruction by what emits it, or by the reference's bound step."""
from __future__ import annotations

from typing import Any

from tinyhw.core.errors import Unsupported
from tinyhw.emulator.jit.ptx import control, fallback, warp
from tinyhw.emulator.jit.ptx.memory import access, watched
from tinyhw.emulator.jit.ptx.module.emit import Lanes, Refused
from tinyhw.emulator.jit.ptx.module.shapes import SHARED_BINDERS, Block, Info
from tinyhw.emulator.jit.ptx.module.text import module
from tinyhw.emulator.jit.values import Untranslatable, Value, convert
from tinyhw.emulator.ptx import bind, operands
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import DTYPES


def text(g: Lanes) -> str:
  """The module. Raises Refused."""
  for b in g.plan.blocks: _block(g, b)
  return module(g)


def _block(g: Lanes, b: Block) -> None:
  """A block of the kernel."""
  e, plan = g.e, g.plan
  g.begin(b)
  e.do(f"%left.{b.number} = load i64, ptr %left")
  e.do(f"%left.{b.number}.n = sub i64 %left.{b.number}, {0 if plan.whole.lands(b.start) else b.end - b.start}")
  e.do(f"store i64 %left.{b.number}.n, ptr %left")
  last = b.end - 1
  stops = g.code.stops[last]
  for k in range(b.start, b.end - stops):
    g.at(k)
    _step(g, k)
  if stops:
    g.at(last)
    control.end(g, last)
  else:
    g.flush()
    g.go(g.successor(b.end))


def _step(g: Lanes, k: int) -> None:
  """An instruction that ends no block."""
  line, form, info = g.plan.lines[k], g.plan.forms[k], g.plan.infos[k]
  i = line.instruction
  if form is None: return fallback.never(g)
  mark = g.mark()
  try:
    emit = access.EMITTERS.get(i.opcode) or warp.EMITTERS.get(i.opcode)
    if emit is not None:
      emit(g, line, form, info)
      if "sync" in i.modifiers: watched.synced(g)
      return
    if i.opcode in bind.BINDERS.keys() - SHARED_BINDERS - bind.PURE: raise Untranslatable("no compiled form")
    step = bind.step(g.code, line)
    if step is None: return None
    for at, type_ in info.checks: _check(g, line, form, info, at, type_)
    return step(g)
  except Untranslatable as why: reason = f"{i.name} ({why})"
  except Unsupported: reason = i.name
  g.undo(mark)
  try: fallback.only(g, k)
  except Untranslatable: raise Refused(reason) from None
  if "sync" in i.modifiers: watched.synced(g)


def _check(g: Lanes, line: Line, form: Any, info: Info, at: int, type_: str) -> None:
  """Leave where steps from a base pass the end of the narrower type that is widened."""
  e, o = g.e, g.o
  operand = line.instruction.operands[1 + at]
  shape = g.plan.operand(line, operand, type_)
  assert shape is not None and shape.steps is not None
  base: Value = operands.reader(g.code, line, operand, type_)(g)
  bits = base.dtype.itemsize * 8
  wide = convert(base, DTYPES["i64"])
  low, high = min(shape.steps), max(shape.steps)
  least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if type_[0] == "s" else (0, (1 << bits) - 1)
  good = o.const("bool", 1)
  if bits == 64: return
  if low < 0: good = good & (wide >= least - low)
  if high > 0: good = good & (wide <= most - high)
  fine = e.new_label("exact")
  e.do(f"br i1 {good.text}, label %{fine}, label %{g.deopt()}, !prof !1")
  e.start(fine)
