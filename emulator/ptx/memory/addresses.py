"""Operands that are addresses, and steps that touch memory for the threads whose guard is true."""
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import DecodeError
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step
from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line, Place
from tinyhw.emulator.values.ops import B
from tinyhw.isa.ptx.forms import SIZES
from tinyhw.isa.ptx.model import Address, Name, Operand, Sum

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

_RAW: Final[dict[int, Any]] = {4: np.dtype("u4"), 8: np.dtype("u8")}
_WIDE: Final = frozenset({spaces.GENERIC, "global"})
WINDOWS: Final = {"shared": spaces.SHARED_WINDOW, "local": spaces.LOCAL_WINDOW}


def guarded(line: Line, run: Step) -> Step:
  """A step that touches memory, for the threads whose guard is true."""
  guard = operands.predicate(line)
  if guard is None: return run

  def step(group: Warps) -> None:
    mask, p = group.mask, guard(group)
    p = np.broadcast_to(p, (group.size, LANES)) if mask is None else mask & p
    if not p.any(): return
    if p.all(): return run(group)
    group.mask = p
    try: run(group)
    finally: group.mask = mask
  return step


def address(code: Code, line: Line, operand: Operand, space: str) -> operands.Reader:
  """Reader of an address operand: u32 or u64."""
  if isinstance(operand, Sum) and operand.function == "element":  # ptxas takes `ld.shared.u32 %r1, array[3];`
    operand = Address(Name(operand.name), operands.bytes_past(line, operand))
  if not isinstance(operand, Address): raise DecodeError(f"{line.instruction.name} needs an address", where=where(line))
  base, offset = operand.base, operand.offset
  r = operands.register(line, base)
  if r is not None:
    size = SIZES[r.type]
    if size not in {4, 8}: raise DecodeError(f"no address has the type .{r.type}", where=where(line))
    if size == 4 and space in _WIDE:
      raise DecodeError(f"an address of 32 bits in {space or 'generic'} space, where they have 64", where=where(line))
    read = operands.reader(code, line, base, f"u{8 * size}")
    if not offset: return read
    added = _RAW[size].type(offset & (1 << 8 * size) - 1)
    return partial(_past, read, added)
  if isinstance(base, Sum): offset, base = offset + base.offset, Name(base.name)
  found = line.scope.find(base.text) if isinstance(base, Name) else None
  if isinstance(found, Place) and found.space != space and space and not {found.space, space} <= {"const", "global"}:
    raise DecodeError(f"{found.variable.name} is in .{found.space}, not in .{space}", where=where(line))
  plain = operands.reader(code, line, base, "u64")
  window = WINDOWS.get("local" if isinstance(found, Place) and code.on_stack(found) else
                       found.space if isinstance(found, Place) else "", 0) if not space else 0
  return partial(_past, plain, np.uint64((offset + window) & (1 << 64) - 1))


def _past(read: operands.Reader, added: np.uint64, group: operands.Holder[B]) -> B:
  return read(group) + added


def real_space(code: Code, line: Line, operand: Operand, space: str) -> str:
  """Where a parameter lies: a kernel's in global memory, others on the stack."""
  if space != "param": return {"const": "global"}.get(space, space)
  base = operand.base if isinstance(operand, Address) else operand
  name = base.text if isinstance(base, Name) else base.name if isinstance(base, Sum) else ""
  found = line.scope.find(name)
  if isinstance(found, Place): return "local" if code.on_stack(found) else "global"
  return "global" if code.kind(line) == "entry" else "local"
