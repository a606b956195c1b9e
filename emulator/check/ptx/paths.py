"""What no run of a kernel can do wrong, by all of its paths: registers that are read before they are written, masks.

A kernel that is proven may still have findings in memory: `jit.ptx.watched` looks for those while it runs. One that is
not proven may have none.
"""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from tinyhw.emulator.check.ptx.effects import Effects, effects
from tinyhw.emulator.ptx import bind, memory, operands
from tinyhw.emulator.ptx.flow import LEAVES, targets
from tinyhw.emulator.ptx.scope import Flat, Line
from tinyhw.isa.ptx import forms
from tinyhw.isa.ptx.forms import SIZES

# that touch memory or other threads in a way that watched code knows, beside those that only compute
_KNOWN: Final = frozenset({
  "ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix", "movmatrix", "mma", "shfl", "vote", "match", "redux",
  "activemask", "elect", "mov", "cvt", "cvta", "lop3", "set", "setp", "isspacep", "fence", "membar", "prefetch",
  "prefetchu", "applypriority", "createpolicy", "pmevent"})
_OTHERS: Final = frozenset({"call", "griddepcontrol", "setmaxnreg", "nanosleep"})  # that are bound elsewhere
_ELSEWHERE: Final = frozenset({"async", "bulk", "tensor"})
_TOLD: Final = frozenset({"bulk", "tensor", "mbarrier", "reduce", "prefetch"})  # of cp.async what others wait for
_CELL: Final = 4  # bytes, at most, that a cell stands for
_FULL: Final = 0xFFFFFFFF

# a register that is written on all paths; or with the guard under which it is
Fact = int | tuple[int, int, bool]


@dataclass(frozen=True)
class Proof:
  """`why` is "" for a kernel that is proven, else what is not. `shared` and `far` are the bytes of the smallest access
  to shared and to global memory, 4 at most; `copies`: it has cp.async."""
  why: str
  shared: int = _CELL
  far: int = _CELL
  copies: bool = False


def prove(flat: Flat) -> Proof:
  """Look at all paths of a kernel."""
  does = [effects(line) for line in flat.lines]
  constants = _constants(flat, does)
  why = next((text for line, d in zip(flat.lines, does) if (text := _unknown(line, d, constants))), "")
  if not why: why = _unwritten(flat, does)
  if why: return Proof(why)
  sizes = {"shared": _CELL, "global": _CELL}
  for line in flat.lines:
    space, size = _accessed(line)
    if space in sizes: sizes[space] = min(sizes[space], size)
  return Proof("", sizes["shared"], sizes["global"], any(map(_copies, does)))


def _accessed(line: Line) -> tuple[str, int]:
  """The state space of a load, store or atomic, and the bytes of an element; "" for others."""
  i = line.instruction
  form = forms.find(i.name, len(i.operands))
  if i.opcode not in {"ld", "ldu", "st", "atom", "red"} or form is None: return "", 0
  space = memory.space_of(form.modifiers)
  return {"const": "global"}.get(space, space), SIZES[form.type]


def _constants(flat: Flat, does: list[Effects]) -> dict[int, int]:
  """Registers that are written at one place alone, by a mov of a number."""
  written = Counter(r for d in does for r in d.results)
  out = dict[int, int]()
  for line, d in zip(flat.lines, does):
    if d.opcode != "mov" or d.guard is not None or len(d.results) != 1 or written[d.results[0]] > 1: continue
    number = operands.immediate(line, line.instruction.operands[1], "b32")
    if number is not None: out[d.results[0]] = int(number) & _FULL
  return out


def _unknown(line: Line, does: Effects, constants: dict[int, int]) -> str:
  """Why watched code does not take an instruction."""
  i = line.instruction
  if _copies(does): return ""
  if i.opcode in _OTHERS or i.opcode in bind.BINDERS.keys() - bind.PURE - _KNOWN: return i.name
  if does.modifiers & _ELSEWHERE or any("cluster" in m for m in does.modifiers): return i.name
  if does.members is None: return ""
  register = operands.register(line, does.members)
  if register is not None: members = constants.get(register.number)
  else: members = operands.immediate(line, does.members, "b32")
  return "" if members is not None and int(members) & _FULL == _FULL else f"the members of {i.name}"


def _copies(does: Effects) -> bool:
  """Whether it is a cp.async, of those that groups are made of and waited for."""
  return does.opcode == "cp" and "async" in does.modifiers and not does.modifiers & _TOLD


def _unwritten(flat: Flat, does: list[Effects]) -> str:
  """A register that may be read before it is written, in words."""
  count = len(flat.lines)
  known: dict[int, frozenset[Fact]] = {0: frozenset()}
  todo = [0] if count else []
  while todo:
    k = todo.pop()
    after = _after(known[k], does[k])
    for t in _successors(flat.lines[k], k + 1):
      if t >= count: continue
      before = known.get(t)
      now = after if before is None else before & after
      if now != before:
        known[t] = now
        todo.append(t)
  for k, facts in known.items():
    d = does[k]
    read = d.addresses if d.alike else (*d.addresses, *d.sources)
    guarded = {r for r in read if r in facts or d.guard is not None and (r, d.guard, d.negated) in facts}
    if d.guard is not None and d.guard not in facts or not guarded.issuperset(read):
      return f"what {flat.lines[k].instruction.name} reads is written"
  return ""


def _after(facts: frozenset[Fact], d: Effects) -> frozenset[Fact]:
  if not d.results: return facts
  kept = {f for f in facts if not isinstance(f, tuple) or f[1] not in d.results}
  if d.guard is None: return frozenset({*kept, *d.results})
  return frozenset({*kept, *((r, d.guard, d.negated) for r in d.results if d.guard not in d.results)})


def _successors(line: Line, following: int) -> list[int]:
  i = line.instruction
  out = [*targets(line)] if i.opcode in {"bra", "brx"} else []
  if i.predicate is not None or i.opcode not in {*LEAVES, "bra", "brx"}: out.append(following)
  return out
