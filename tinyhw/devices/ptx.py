"""PTX for launches: what declarations, and what its code does with them, tell of a kernel's parameters."""
from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from tinyhw.core.environment import digits
from tinyhw.core.store import sources_digest
from tinyhw.drive.nv.bare import Emulator, PtxKernel
from tinyhw.emulator.ptx.module.scope import Flat, Line, Place, Range, Register
from tinyhw.isa.ptx.forms import SIZES, find
from tinyhw.isa.ptx.model import Address, Name, Operand, Sum
from tinyhw.wire.codeobject import Argument
from tinyhw.wire.ctype import CType

_FLOATS: Final = {t: CType(f"float{n}", "f", n // 8) for t, n in (("f16", 16), ("f32", 32), ("f64", 64))}
_SOURCES: Final = ("devices/ptx.py", "drive/nv/bare.py", "wire/ctype.py", "wire/codeobject/model.py")
_KEEPS: Final = frozenset({"mov", "add", "sub", "cvta"})  # what leads from an address to an address


def emulator(options: dict[str, Any]) -> Emulator:
  """The parts that `drive.nv.bare` needs; `options` may have a watchdog."""
  from tinyhw.emulator.engines.ptx import dispatch as run
  from tinyhw.emulator.ptx.launch.grid import Dispatch
  from tinyhw.emulator.ptx.module.link import link_text
  from tinyhw.emulator.ptx.program import Program
  given = {k: v for k, v in options.items() if k == "watchdog"}

  def execute(space: Any, dispatch: Any, **more: Any) -> Any: return run(space, dispatch, **given | more)
  return Emulator(link_text, kernel, Program, Dispatch, execute)


def signature(text: bytes, name: str) -> PtxKernel:
  """What a launch has to know of a kernel of a module's text."""
  from tinyhw.emulator.ptx.module.link import link_text
  return kernel(link_text(text), name)


def kernel(linked: Any, name: str) -> PtxKernel:
  """What a launch has to know; kept with the module. Raises InvalidArgument, listing the kernels there are."""
  note = f"{sources_digest(_SOURCES).hex()} {name}"
  if note not in linked.notes: linked.notes[note] = asdict(_kernel(linked, name))
  return _restored(linked.notes[note])


def _restored(row: dict[str, Any]) -> PtxKernel:
  """A kernel out of what `asdict` makes of it, also when that has been JSON."""
  arguments = tuple(Argument(**a | {"type": _type(a["type"])}) for a in row["arguments"])
  return PtxKernel(**row | {"arguments": arguments, "used": tuple(_type(t) for t in row["used"])})


def _type(row: dict[str, Any] | None) -> CType | None:
  return None if row is None else CType(**row | {"of": _type(row["of"])})


def _kernel(linked: Any, name: str) -> PtxKernel:
  linked.entry(name)
  flat: Flat = linked.flats[name]
  lines = [(line, [_registers(line, o) for o in line.instruction.operands]) for line in flat.lines]
  uses = [Uses(lines, place) for place in flat.params]
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

  def __init__(self, lines: list[tuple[Line, list[set[int]]]], place: Place) -> None:
    self.pointer = False
    self.types: set[str] = set()
    self.elements: set[str] = set()
    values: set[int] = set()
    for line, of in lines:
      i = line.instruction
      if i.opcode == "ld" and len(i.operands) > 1 and _base(line, i.operands[1]) is place: values |= of[0]
    tainted, before = set(values), -1
    moves = [of for line, of in lines if line.instruction.opcode in _KEEPS]
    while len(tainted) != before:
      before = len(tainted)
      for target, *sources in moves:
        if any(of & tainted for of in sources): tainted |= target
    for line, of in lines: self._look(line, of, values, tainted)

  def _look(self, line: Line, registers: list[set[int]], values: set[int], tainted: set[int]) -> None:
    i = line.instruction
    for o in i.operands:
      if isinstance(o, Address) and _registers(line, o.base) & tainted and "param" not in i.modifiers:
        self.pointer = True
        if i.opcode in {"ld", "st", "atom", "red"}: self.elements.add(i.modifiers[-1])
    if i.opcode == "cvta" and any(of & tainted for of in registers[1:]): self.pointer = True
    if not any(of & values for of in registers): return
    form = find(i.name)
    if form is None: return
    n = len(form.results)
    for o, of, t in zip(i.operands[n:], registers[n:], form.sources):
      if isinstance(o, Name) and of & values and t in SIZES and i.opcode != "mov": self.types.add(t)

  def type(self, place: Place) -> CType | None:
    """The type under which the code uses a number, or that of a pointer to floats; None where that is not sure."""
    size = place.size
    if self.pointer:
      if len(self.elements) == 1 and (found := _FLOATS.get(next(iter(self.elements)))) is not None:
        return CType(f"{found.name}*", "*", 8, found)
      return None
    floats = {t for t in self.types if t in _FLOATS and SIZES[t] == size}
    whole = {t for t in self.types if t[0] in "us" and digits(t[1:]) and SIZES[t] == size}
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
