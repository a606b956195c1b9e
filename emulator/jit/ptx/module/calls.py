"""Arguments and results of functions that stand in a kernel's text (`inline`), and the end of its stack, as LLVM IR."""
from __future__ import annotations

from dataclasses import replace

from tinyhw.emulator.jit.ptx.memory import access, watched
from tinyhw.emulator.jit.ptx.module import stack
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.module.inline import Instance
from tinyhw.emulator.jit.ptx.module.shapes import Info
from tinyhw.emulator.jit.values import Untranslatable, Value, convert
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory.spaces import Local
from tinyhw.emulator.ptx.module.scope import Line, Place
from tinyhw.emulator.values.ops import U64
from tinyhw.isa.ptx.forms import SIZES, Form
from tinyhw.isa.ptx.model import Name


def give(g: Lanes, line: Line, i: Instance, mask: Value) -> None:
  """The arguments of a call, for threads of a mask; registers that the function may read before it writes are 0."""
  for n in g.plan.whole.begun(i): g.write(n, g.e.const(g.types[n], 0))
  for (given, place), (number, _) in zip(i.calling.passed, i.calling.given):
    own, type_ = _place(line, given), place.variable.type
    if number is not None: g.write(i.registers + number, operands.reader(g.code, line, given, type_)(g))
    elif own is not None: _copy(g, own.offset, i.base + place.offset, place.size, mask)
    else:
      value = operands.reader(g.code, line, given, type_)(g)
      stack.put(g, i.base + place.offset, value, mask)
      watched.given(g, i.base + place.offset, value.dtype.itemsize, mask)


def land(g: Lanes, i: Instance) -> None:
  """The results of a function that has returned, and on behind its call."""
  whole = g.plan.whole
  assert i.caller is not None
  called = whole.flat.lines[i.caller.first + i.call]
  line = Line(replace(called.instruction, predicate=None), called.scope)
  for taken, place in i.calling.taken:
    own, type_ = _place(line, taken), place.variable.type
    if place.space == "reg":
      found = i.code.flat.scope.find(place.variable.name)
      value = g.read(i.registers + found.number)  # type: ignore[union-attr]  # a register
    elif own is not None:
      _copy(g, i.base + place.offset, own.offset, place.size, g.active)
      continue
    else:
      watched.taken(g, i.base + place.offset, place.size)
      value = stack.get(g, i.base + place.offset, place.size).view(operands.dtype_of(type_))
    operands.writer(g.code, line, taken, type_)(g, value)
  back = whole.back(i)
  g.flush()
  g.go(None if back is None else g.plan.block_of(back))


def _copy(g: Lanes, source: int, target: int, size: int, mask: Value) -> None:
  stack.copy(g, source, target, size, mask)
  watched.moved(g, source, target, size, mask)


def _place(line: Line, operand: object) -> Place | None:
  found = line.scope.find(operand.text) if isinstance(operand, Name) else None
  return found if isinstance(found, Place) else None


# ---- the end of the stack, which is in a register that the program does not know

@access.emits("alloca", "stacksave", "stackrestore")
def allocated(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """Room on the stack of each thread: it grows upward, from where the kernel's variables end."""
  i, o, whole = line.instruction, g.o, g.plan.whole
  n = whole.top
  if n is None or i.predicate is not None: raise Untranslatable("no compiled form")
  if i.opcode == "stackrestore":
    return g.write(n, convert(operands.reader(g.code, line, i.operands[0], form.type)(g), U64))
  moved, raw = g.read(n), operands.unsigned(SIZES[form.type])
  top = o.where(moved == 0, o.const("u64", whole.flat.frame), moved)
  write = operands.writer(g.code, line, i.operands[0], form.type)
  if i.opcode == "stacksave": return write(g, convert(top, raw))
  size = convert(operands.reader(g.code, line, i.operands[1], form.type)(g), U64)
  align = operands.immediate(line, i.operands[2], "u64") if len(i.operands) > 2 else 8
  low = max(int(align if align is not None else 8), 8) - 1
  start = (top + low) & ~low
  end = start + size
  bad = (end > Local.aligned(whole.stack)) & g.active
  fine = g.e.new_label("room")
  none = g.e.op(f"icmp eq {g.mask_type} {g.bits(bad)}, 0")
  g.e.do(f"br i1 {none}, label %{fine}, label %{g.deopt()}, !prof !1")
  g.e.start(fine)
  write(g, convert(start, raw))
  g.write(n, end)
