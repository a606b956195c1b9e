"""What an instruction of PTX reads and writes, as the checks want to know it."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.module.scope import Line, Range, Register
from tinyhw.isa.ptx import forms
from tinyhw.isa.ptx.model import Address, Arguments, Name, Operand, Vector, leaves

MEETING: Final = frozenset({"shfl", "vote", "match", "redux", "elect", "mma", "ldmatrix", "stmatrix", "movmatrix",
                            "wmma", "wgmma", "tcgen05"})
STRONG: Final = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"})
PRODUCTS: Final = frozenset({"mma", "wmma", "wgmma", "redux", "match", "vote", "elect", "ldmatrix", "stmatrix",
                             "movmatrix", "activemask"})


@dataclass(frozen=True)
class Effects:
  """Registers by number: `addresses` of memory, other `sources`, the `guard` (None without), `results`.

  Of values that are packed together `sources` has the lower one, `read` all that are no addresses. `together`: threads
  of a warp do it together; `strong`: it is a load or store that synchronizes; `alike`: its result does not depend on
  its one register; `spread`: its result depends on other threads' sources; `pieces`: registers of vectors among the
  sources; `elements`: those of each element of the vector that a load or store moves, none for one value; `matrices`:
  those of each matrix of registers, one an element of its vector, -1 for what is none.
  """
  opcode: str
  modifiers: frozenset[str]
  addresses: tuple[int, ...]
  sources: tuple[int, ...]
  guard: int | None
  negated: bool
  results: tuple[int, ...]
  members: Operand | None
  together: bool
  strong: bool
  alike: bool
  spread: bool
  pieces: tuple[int, ...] = ()
  read: tuple[int, ...] = ()
  elements: tuple[tuple[int, ...], ...] = ()
  matrices: tuple[tuple[int, ...], ...] = ()


def effects(line: Line) -> Effects:
  """See `Effects`."""
  i = line.instruction
  form = forms.find(i.name)
  count = len(form.results) if form is not None else 0
  results: list[int] = []
  addresses: list[int] = []
  sources: list[int] = []
  for k, o in enumerate(i.operands):
    call = i.opcode == "call" and k == 0 and len(i.operands) > 1 and isinstance(o, Arguments)
    if k < count or call: results += _registers(line, o)
    elif isinstance(o, Address):
      addresses += _registers(line, o.base)
      for more in o.more: sources += _registers(line, more)
    else: sources += _registers(line, o)
  p = i.predicate
  found = None if p is None else line.scope.find(p.register)
  m = frozenset(i.modifiers)
  together = i.opcode in MEETING and ("sync" in m or i.opcode == "wmma") or i.opcode in {"bar", "barrier"}
  members = None
  if "sync" in m and i.operands:
    if i.opcode in {"shfl", "vote", "match", "redux", "elect"}: members = i.operands[-1]
    elif i.opcode == "bar" and "warp" in m: members = i.operands[0]
  read = tuple(sources)
  if i.opcode == "cvt" and len(sources) == 2: del sources[0]  # of packed values the lower part counts: the upper one
  elif i.opcode == "mov" and len(sources) > 1: del sources[1:]  # may be there for its room alone
  same = i.opcode in {"xor", "sub"} and len(sources) == 2 and sources[0] == sources[1]
  return Effects(i.opcode, m, tuple(dict.fromkeys(addresses)), tuple(sources),
                 found.number if isinstance(found, Register) else None, p is not None and p.negated,
                 tuple(dict.fromkeys(results)), members, together, bool(m & STRONG), same, i.opcode in PRODUCTS,
                 tuple(n for o in i.operands[count:] if isinstance(o, Vector) for n in _registers(line, o)),
                 read, _elements(line), _matrices(line))


def _elements(line: Line) -> tuple[tuple[int, ...], ...]:
  """The registers of each element of the vector that a load or store moves."""
  i = line.instruction
  if i.opcode not in {"ld", "ldu", "st"} or len(i.operands) < 2: return ()
  found = operands.elements(line, i.operands[i.opcode == "st"])
  return tuple(tuple(_registers(line, o)) for o in found) if len(found) > 1 else ()


def _matrices(line: Line) -> tuple[tuple[int, ...], ...]:
  """Of `mma` and what loads, stores or turns its matrices."""
  i = line.instruction
  if i.opcode not in {"mma", "ldmatrix", "stmatrix", "movmatrix"}: return ()
  given = [o for o in i.operands if not isinstance(o, Address)]
  return tuple(tuple(next(iter(_registers(line, x)), -1) for x in operands.elements(line, o)) for o in given)


def _registers(line: Line, o: Operand) -> list[int]:
  """The registers in an operand."""
  out: list[int] = []
  for x in leaves(o):
    found = line.scope.find(x.text) if isinstance(x, Name) else None
    if isinstance(found, Register): out.append(found.number)
    elif isinstance(found, Range): out += range(found.first, found.first + found.count)
  return out
