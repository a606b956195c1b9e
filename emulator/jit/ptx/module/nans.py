"""Where a NaN need not be the chip's, as nobody sees its bits."""
from __future__ import annotations

from typing import Final

from tinyhw.emulator.jit.ptx.module.shapes import Plan
from tinyhw.emulator.ptx.module.scope import Register
from tinyhw.isa.ptx.forms import SIZES
from tinyhw.isa.ptx.model import Float, Int, Name

# Arithmetic that asks of a NaN only whether it is one, and whose own NaN is the chip's.
ANY_NAN: Final = frozenset({"add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp", "rsqrt", "ex2", "lg2", "sin",
                            "cos", "min", "max", "setp", "set", "tanh"})
LOOSE: Final = frozenset({"add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp"})
MOVES: Final = frozenset({"mov", "selp"})


def loose_registers(plan: Plan) -> dict[int, str]:
  """The registers that arithmetic of one type of floats alone writes, so that any NaN in them stands for the chip's."""
  sizes = {4: "f32", 2: "f16"}
  out = {n: sizes[SIZES[t]] for n, t in enumerate(plan.code.flat.types) if SIZES[t] in sizes}
  definitions: dict[int, list[int]] = {}
  for k in range(len(plan.lines)):
    for n in plan.written[k]: definitions.setdefault(n, []).append(k)
  changed = True
  while changed:
    changed = False
    for n in [*out]:
      if not definitions.get(n) or not all(_is_loose(plan, k, out, out[n]) for k in definitions[n]):
        del out[n]
        changed = True
  return out


def _is_loose(plan: Plan, k: int, loose: dict[int, str], type_: str) -> bool:
  line, form = plan.lines[k], plan.forms[k]
  assert form is not None
  op, m = form.row.opcode, form.modifiers
  if op not in MOVES: return op in LOOSE and form.type == type_ and "relu" not in m
  if form.type not in {type_, f"b{8 * SIZES[type_]}"}: return False
  for o in line.instruction.operands[1:2 if op == "mov" else 3]:
    if isinstance(o, Float):
      if o.width != 32 or (o.bits & 0x7FFFFFFF) > 0x7F800000: return False
    elif isinstance(o, Name):
      found = line.scope.find(o.text)
      if not isinstance(found, Register) or loose.get(found.number) != type_: return False
    elif not isinstance(o, Int) or (o.value & 0x7FFFFFFF) > (0x7F800000 if type_ == "f32" else 0x7C00): return False
  return True
