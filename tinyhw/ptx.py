"""PTX for launches: what declarations, and what its code does with them, tell of a kernel's parameters."""
from __future__ import annotations

from typing import Any, Final

from tinyhw.drive.nv.bare import Emulator, PtxKernel
from tinyhw.emulator.ptx.scope import Flat, Line, Place, Range, Register
from tinyhw.isa.ptx.forms import SIZES, find
from tinyhw.isa.ptx.model import Address, Name, Operand, Sum
from tinyhw.wire.codeobject import Argument
from tinyhw.wire.ctype import CType

_FLOATS: Final = {t: CType(f"float{n}", "f", n // 8) for t, n in (("f16", 16), ("f32", 32), ("f64", 64))}
_KEEPS: Final = frozenset({"mov", "add", "sub", "cvta"})  # what leads from an address to an address


def emulator(options: dict[str, Any]) -> Emulator:
  """The parts that `drive.nv.bare` needs; `options` may have a watchdog."""
  from tinyhw.emulator.ptx import launch
  from tinyhw.emulator.ptx.link import link
  from tinyhw.emulator.ptx.program import Program
  from tinyhw.isa.ptx import parse
  given = {k: v for k, v in options.items() if k == "watchdog"}

  def execute(space: Any, dispatch: Any) -> Any: return launch.dispatch(space, dispatch, **given)
  return Emulator(lambda text: link(parse(text)), kernel, Program, launch.Dispatch, execute)


def signature(text: bytes, name: str) -> PtxKernel:
  """What a launch has to know of a kernel of a module's text."""
  from tinyhw.emulator.ptx.link import link
  from tinyhw.isa.ptx import parse
  return kernel(link(parse(text)), name)


def kernel(linked: Any, name: str) -> PtxKernel:
  """What a launch has to know. Raises InvalidArgument, listing the kernels there are."""
  linked.entry(name)
  flat: Flat = linked.flats[name]
  uses = [Uses(flat, place) for place in flat.params]
  arguments = tuple(_argument(place, u) for place, u in zip(flat.params, uses))
  size = max((p.offset + p.size for p in flat.params), default=0)
  _, shared, _ = linked.shared_of(name)
  return PtxKernel(name, arguments, size, shared, tuple(u.type(p) for p, u in zip(flat.params, uses)))


def _argument(place: Place, uses: Uses) -> Argument:
  v, size = place.variable, place.size
  if v.pointer is not None or uses.pointer and size == 8: kind, type_ = "global_buffer", None
  elif v.dims: kind, type_ = "by_value", CType(f"{size} bytes", "s", size)
  else:
    kind, type_ = "pointer_or_value" if size == 8 and v.type not in _FLOATS else "by_value", _declared(v.type, size)
  return Argument(v.name, kind, place.offset, size, type=type_)


def _declared(type_: str, size: int) -> CType | None:
  """The type that a declaration tells. Compilers declare signed numbers as unsigned ones, and anything as bits."""
  if type_ in _FLOATS: return _FLOATS[type_]
  if type_[0] == "s": return CType(f"int{8 * size}", "i", size)
  return CType(f"int{8 * size}", "n", size) if type_[0] == "u" and size < 8 else None


class Uses:
  """What a kernel does with a parameter: with the registers that it is loaded into, and with those made of them."""

  def __init__(self, flat: Flat, place: Place) -> None:
    self.pointer = False
    self.types: set[str] = set()
    self.elements: set[str] = set()
    values: set[int] = set()
    lines = flat.lines
    for line in lines:
      i = line.instruction
      if i.opcode == "ld" and len(i.operands) > 1 and _base(line, i.operands[1]) is place:
        values |= _registers(line, i.operands[0])
    tainted, before = set(values), -1
    while len(tainted) != before:
      before = len(tainted)
      for line in lines:
        i = line.instruction
        if i.opcode in _KEEPS and any(_registers(line, o) & tainted for o in i.operands[1:]):
          tainted |= _registers(line, i.operands[0])
    for line in lines: self._look(line, values, tainted)

  def _look(self, line: Line, values: set[int], tainted: set[int]) -> None:
    i = line.instruction
    for o in i.operands:
      if isinstance(o, Address) and _registers(line, o.base) & tainted and "param" not in i.modifiers:
        self.pointer = True
        if i.opcode in {"ld", "st", "atom", "red"}: self.elements.add(i.modifiers[-1])
    if i.opcode == "cvta" and _registers(line, i.operands[1]) & tainted: self.pointer = True
    form = find(i.name)
    if form is None: return
    for o, t in zip(i.operands[len(form.results):], form.sources):
      if isinstance(o, Name) and _registers(line, o) & values and t in SIZES and i.opcode != "mov": self.types.add(t)

  def type(self, place: Place) -> CType | None:
    """The type under which the code uses a number, or that of a pointer to floats; None where that is not sure."""
    size = place.size
    if self.pointer:
      if len(self.elements) == 1 and (found := _FLOATS.get(next(iter(self.elements)))) is not None:
        return CType(f"{found.name}*", "*", 8, found)
      return None
    floats = {t for t in self.types if t in _FLOATS and SIZES[t] == size}
    whole = {t for t in self.types if t[0] in "us" and t[1:].isdigit() and SIZES[t] == size}
    if len(floats) == 1 and not whole: return _FLOATS[floats.pop()]
    return CType(f"int{8 * size}", "n", size) if whole and not floats else None


def _base(line: Line, o: Operand) -> object:
  """The variable that an address begins at."""
  base = o.base if isinstance(o, Address) else None
  name = base.text if isinstance(base, Name) else base.name if isinstance(base, Sum) else ""
  return line.scope.find(name) if name else None


def _registers(line: Line, o: Operand) -> set[int]:
  """The registers that an operand is, or has."""
  if isinstance(o, Name):
    found = line.scope.find(o.text)
    if isinstance(found, Register): return {found.number}
    return set(range(found.first, found.first + found.count)) if isinstance(found, Range) else set()
  return {n for e in getattr(o, "elements", ()) for n in _registers(line, e)}
