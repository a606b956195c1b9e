"""Stores and reductions that go to another block (st.async, red.async), as LLVM IR."""
from __future__ import annotations

from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx.memory.moves import Told, changed, place_name
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.routine import Routine
from tinyhw.emulator.jit.ptx.turns import each
from tinyhw.emulator.jit.values import Untranslatable, Value, convert
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory import addresses, copies, spaces
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.isa.ptx.forms import SIZES, Form


def _sent(space: str, count: int, operation: str, t: str, noted: bool) -> Routine:
  """Elements go to shared memory of a block, whose mbarrier is told of them; `noted`: in cells (`spans`)."""
  names = [f"x{k}" for k in range(count)]
  r = Routine(f"sent.{space or 'generic'}.{count}.{operation or 'as'}.{t}", ("to", *names, "barrier"))
  size, raw, to, barrier = SIZES[t], operands.unsigned(SIZES[t]), r["to"], r["barrier"]
  width = size * count
  if space == spaces.GENERIC:
    to, barrier = to - spaces.SHARED_WINDOW, barrier - spaces.SHARED_WINDOW
    r.need((to < spaces.WINDOW) & (barrier < spaces.WINDOW))
  r.need((to & width - 1) == 0)
  r.need(to >> spaces.RANK == barrier >> spaces.RANK)
  host = r.ask(place_name("shared"), to, r.number(width), r.number(Access.READ | Access.WRITE))
  told = Told(r, barrier, r.number(width))
  told.apart(host, r.number(width))
  if noted:
    if operation: r.ask("looks.sent", host, r.number(width))
    r.ask("note.sent", host, r.number(width))
  for k, name in enumerate(names):
    new = convert(r[name], raw)
    if operation:
      dtype = operands.dtype_of(t)
      new = copies.combined(r.o, operation, t, r.load(host + k * size, raw).view(dtype), new.view(dtype)).view(raw)
    r.store(host + k * size, new)
  told.tell(noted)
  changed(r)
  return r


def sent(g: Lanes, line: Line, form: Form) -> None:
  """st.async and red.async."""
  i, m, t = line.instruction, form.modifiers, form.type
  space = spaces.space_of(m)
  if space not in {"shared", spaces.GENERIC} or len(i.operands) != 3: raise Untranslatable("no compiled form")
  parts = operands.elements(line, i.operands[1])
  raw = operands.unsigned(SIZES[t])
  values = [convert(operands.reader(g.code, line, o, t)(g).view(raw), U64) for o in parts]
  to, barrier = (address(g, line, k, space) for k in (0, 2))
  routine = _sent(space, len(parts), copies.reduction(m | {i.opcode}), t, g.watch is not None)
  each(g, line, routine, [to, *values, barrier])


def address(g: Lanes, line: Line, k: int, space: str) -> Value:
  """The address that an operand is, as u64."""
  found: Value = addresses.address(g.code, line, line.instruction.operands[k], space)(g)
  return convert(found.view(U32 if found.dtype.itemsize == 4 else U64), U64)
