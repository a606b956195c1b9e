"""Video instructions: operands with parts (`%r1.h0`), see `meanings.video`."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tinyhw.core.errors import DecodeError
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds
from tinyhw.emulator.ptx.meanings import video
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.isa.ptx.forms import Form
from tinyhw.isa.ptx.model import Minus, Operand, OperandPart

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

SCALAR: Final = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset")
_VECTORS: Final = ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset")
SIMD: Final = tuple(f"{name}{n}" for name in _VECTORS for n in (2, 4))
_PART: Final = re.compile(r"b[0-3]|h[01]")
_MASKS: Final = {2: re.compile(r"h(1?0|1)"), 4: re.compile(r"b(?=.)3?2?1?0?")}
_PLACES: Final = {2: re.compile(r"h[0-3]{2}"), 4: re.compile(r"b[0-7]{4}")}


def _taken(line: Line, operand: Operand, good: re.Pattern[str]) -> tuple[Operand, str, bool]:
  """(the operand without them, its part, whether it is negated)."""
  negated = isinstance(operand, Minus)
  if isinstance(operand, Minus): operand = operand.operand
  if not isinstance(operand, OperandPart): return operand, "", negated
  if good.fullmatch(operand.part) is None:
    raise DecodeError(f"{line.instruction.name} has no part .{operand.part}", where=where(line))
  return operand.operand, operand.part, negated


def _bound(code: Code, line: Line, function: Any, given: list[Operand]) -> Step:
  write = operands.writer(code, line, given[0], "b32")
  a, b, c = (operands.reader(code, line, o, "u32") for o in ([*given[1:], given[1]] if len(given) == 3 else given[1:]))
  return lambda group: write(group, function(group.o, a(group), b(group), c(group)))


@binds(*SCALAR, pure=True)
def scalar(code: Code, line: Line, form: Form) -> Step:
  """One result, which a third operand is combined with, or of which a part is put into it."""
  i = line.instruction
  given, parts, negated = zip(*(_taken(line, o, _PART) for o in i.operands))
  second = bool({"add", "min", "max"} & form.modifiers)
  if len(given) != 3 + bool(second or parts[0]) or any(negated) or any(parts[3:]) or second and parts[0]:
    raise operands.not_taken(line)
  types = form.types if i.opcode != "vset" else ("u32", *form.types)
  return _bound(code, line, video.scalar(i.opcode, i.modifiers, types, parts), list(given))


@binds("vmad", pure=True)
def vmad(code: Code, line: Line, form: Form) -> Step:
  """A product and a sum, of which one may be negated."""
  i = line.instruction
  given, parts, negated = zip(*(_taken(line, o, _PART) for o in i.operands))
  signs = negated[1] != negated[2], negated[3]
  if len(given) != 4 or parts[0] or parts[3] or negated[0] or all(signs) or "po" in form.modifiers and any(negated):
    raise operands.not_taken(line)
  return _bound(code, line, video.product(i.modifiers, form.types, parts, signs), list(given))


@binds(*SIMD, pure=True)
def simd(code: Code, line: Line, form: Form) -> Step:
  """Two or four results, which a third operand is added to, or which replace its parts."""
  i = line.instruction
  count = int(i.opcode[-1])
  good = [_MASKS[count], _PLACES[count], _PLACES[count], _PLACES[count]]
  given, parts, negated = zip(*(_taken(line, o, g) for o, g in zip(i.operands, good, strict=True)))
  if any(negated) or parts[3]: raise operands.not_taken(line)
  types = form.types if not i.opcode.startswith("vset") else ("u32", *form.types)
  return _bound(code, line, video.simd(i.opcode, i.modifiers, types, parts), list(given))
