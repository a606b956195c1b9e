"""What no run of a kernel can do wrong, by all of its paths: registers that are read before they are written, masks.

A kernel that is proven may still have findings in memory: `jit.ptx.watched` looks for those while it runs. One that is
not proven may have none.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tinyhw.emulator.check.ptx import groups, looks
from tinyhw.emulator.check.ptx.effects import Effects, effects
from tinyhw.emulator.ptx import bind, operands
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.tensorcore.matrix import BITS
from tinyhw.isa.ptx import forms
from tinyhw.isa.ptx.forms import SIZES
from tinyhw.isa.ptx.model import Instruction

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.module.inline import Whole

# that touch memory or other threads in a way that watched code knows, beside those that only compute
_KNOWN: Final = frozenset({
  "ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix", "movmatrix", "mma", "shfl", "vote", "match", "redux",
  "activemask", "elect", "mov", "cvt", "cvta", "lop3", "set", "setp", "isspacep", "fence", "membar", "prefetch",
  "prefetchu", "applypriority", "createpolicy", "pmevent", "mapa", "getctarank", "wmma"})
_OTHERS: Final = frozenset({"call"})  # that are bound elsewhere
_ELSEWHERE: Final = frozenset({"bulk", "tensor"})
_TOLD: Final = frozenset({"bulk", "tensor", "mbarrier", "reduce", "prefetch"})  # of cp.async what others wait for
# that the reference does for it, and questions about textures
_HELPED: Final = frozenset({"tcgen05", "clusterlaunchcontrol", "tex", "tld4", "suld", "txq", "suq"})
_CELL: Final = 4  # bytes, at most, that a cell stands for
_FULL: Final = 0xFFFFFFFF

# a register that is written on all paths; or with the guard under which it is
Fact = int | tuple[int, int, bool]


@dataclass(frozen=True)
class Proof:
  """`why` is "" for a kernel that is proven, else what is not. `shared` and `far` are the bytes of the smallest access
  to shared and to global memory, 4 at most; `copies`: it has cp.async; `ordered`: its warps are ordered by more than
  barriers of their block; `stores`, `products`, `sources` and `atomics`: it has copies in bulk out of shared memory,
  wgmma or tcgen05, copies in bulk from shared to shared memory, atomics. `speaking` are the lines of atomics and of
  strong loads and stores, `listening` those of them whose results threads look at; `together`: threads of a warp do
  something together, or have groups of copies of their own."""
  why: str
  shared: int = _CELL
  far: int = _CELL
  copies: bool = False
  ordered: bool = False
  stores: bool = False
  products: bool = False
  sources: bool = False
  atomics: bool = False
  speaking: frozenset[int] = frozenset()
  listening: frozenset[int] = frozenset()
  together: bool = False


def prove(whole: Whole, threads: int) -> Proof:
  """Look at all paths of a kernel for blocks of so many threads, through the functions that stand in its text."""
  lines = whole.flat.lines
  does = {k: _effects(whole, k) for s in whole.cut.starts for k in range(s, whole.cut.ends[s])}
  constants = _constants(lines, does)
  why = next((text for k, d in does.items() if not whole.calls(k) and whole.lands(k) is None
              and (text := _unknown(lines[k], d, constants))), "")
  if not why: why = _unwritten(whole, does) or groups.unready(lines, does, whole.following)
  if why: return Proof(why)
  sizes = {"shared": _CELL, "global": _CELL}
  for k in does:
    space, size = _accessed(lines[k])
    for near in sizes:
      if size and space in {near, spaces.GENERIC}: sizes[near] = min(sizes[near], size)
  return Proof("", sizes["shared"], sizes["global"], any(map(_copies, does.values())),
               any(_orders(lines[k], threads) for k in does),
               any(d.opcode == "cp" and "bulk_group" in d.modifiers for d in does.values()),
               any(d.opcode in {"wgmma", "tcgen05"} for d in does.values()),
               any(d.opcode == "cp" and {"bulk", "shared::cta"} <= d.modifiers and "global" not in d.modifiers
                   for d in does.values()),
               any(d.opcode in {"atom", "red"} for d in does.values()),
               frozenset(k for k, d in does.items() if looks.speaks(d)), looks.listening(does, whole.following),
               any(d.together and d.opcode not in {"bar", "barrier"} or d.opcode == "bar" and "warp" in d.modifiers
                   or _copies(d) for d in does.values()))


def _orders(line: Line, threads: int) -> bool:
  """Whether an instruction orders some warps of a block."""
  i = line.instruction
  if i.opcode == "mbarrier": return i.modifiers[0] != "pending_count"
  if i.opcode in {"cp", "fence"}: return not {"bulk", "mbarrier", "proxy"}.isdisjoint(i.modifiers)
  if i.opcode in {"st", "red"}: return "async" in i.modifiers
  if i.opcode in {"wgmma", "tensormap"} or i.opcode == "wmma" and "mma" not in i.modifiers: return True
  if i.opcode not in {"bar", "barrier"} or i.modifiers[:1] == ("warp",): return False
  if i.modifiers[:1] == ("cluster",): return True
  given = [*i.operands]
  if "red" in i.modifiers: given = given[1:-1]
  numbers = [operands.immediate(line, o, "u32") for o in given]
  return "arrive" in i.modifiers or numbers[0] is None or len(numbers) > 1 and numbers[1] != threads


def _effects(whole: Whole, k: int) -> Effects:
  """What a line reads and writes. A call writes what it gives to a function, whose registers are not written before;
  where that returns to, the call's results are."""
  called, landed = whole.calls(k), whole.lands(k)
  if landed is not None:
    own = effects(Line(Instruction("ret", (), ()), whole.flat.lines[k].scope))
    return replace(own, sources=tuple(landed.registers + n for n in landed.calling.results),
                   results=tuple(whole.moved(k) or ()))
  own = effects(whole.flat.lines[k])
  if not called: return own
  given = (i.registers + n for i in called for n, _ in i.calling.given if n is not None)
  return replace(own, results=tuple(given))


def _accessed(line: Line) -> tuple[str, int]:
  """The state space of a load, store or atomic, and the bytes of an element; "" for others."""
  i = line.instruction
  form = forms.find(i.name, len(i.operands))
  if i.opcode == "wmma" and form is not None and "mma" not in i.modifiers:
    bits = BITS[next(x for x in i.modifiers if x in BITS)]
    return spaces.space_of(form.modifiers), max(bits // 8, 1)
  if i.opcode not in {"ld", "ldu", "st", "atom", "red"} or form is None or "bulk" in form.modifiers: return "", 0
  space = spaces.space_of(form.modifiers)
  return {"const": "global"}.get(space, space), SIZES[form.type]


def _constants(lines: Sequence[Line], does: dict[int, Effects]) -> dict[int, int]:
  """Registers that are written at one place alone, by a mov of a number."""
  written = Counter(r for d in does.values() for r in d.results)
  out = dict[int, int]()
  for k, d in does.items():
    line = lines[k]
    if d.opcode != "mov" or d.guard is not None or len(d.results) != 1 or written[d.results[0]] > 1: continue
    number = operands.immediate(line, line.instruction.operands[1], "b32")
    if number is not None: out[d.results[0]] = int(number) & _FULL
  return out


def _unknown(line: Line, does: Effects, constants: dict[int, int]) -> str:
  """Why watched code does not take an instruction."""
  i = line.instruction
  if _copies(does) or i.opcode in {"fence", "membar"}: return ""
  if i.opcode in {"mbarrier", "wgmma", "tensormap", "setmaxnreg", "griddepcontrol", "barrier"} or _in_bulk(does):
    return ""
  if i.opcode in _HELPED: return ""
  if i.opcode in _OTHERS or i.opcode in bind.BINDERS.keys() - bind.PURE - _KNOWN: return i.name
  if does.modifiers & _ELSEWHERE: return i.name
  if does.members is None: return ""
  register = operands.register(line, does.members)
  if register is not None: members = constants.get(register.number)
  else: members = None if (given := operands.immediate(line, does.members, "b32")) is None else int(given)
  return "" if members is not None and int(members) & _FULL == _FULL else f"the members of {i.name}"


def _in_bulk(does: Effects) -> bool:
  """Whether it copies in bulk between shared and global memory, groups such copies, clears shared memory, or tells an
  mbarrier of cp.async."""
  m = does.modifiers
  return does.opcode == "st" and "bulk" in m or does.opcode == "cp" and "async" in m and bool(m & {"bulk", "mbarrier"})


def _copies(does: Effects) -> bool:
  """Whether it is a cp.async, of those that groups are made of and waited for."""
  return does.opcode == "cp" and "async" in does.modifiers and not does.modifiers & _TOLD


def _unwritten(whole: Whole, does: dict[int, Effects]) -> str:
  """A register that may be read before it is written, in words."""
  known: dict[int, frozenset[Fact]] = {0: frozenset()}
  todo = [0] if does else []
  while todo:
    k = todo.pop()
    for t, after in _onward(whole, k, known[k], does[k]):
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
      return f"what {whole.flat.lines[k].instruction.name} reads is written"
  return ""


def _onward(whole: Whole, k: int, facts: frozenset[Fact], d: Effects) -> Iterator[tuple[int, frozenset[Fact]]]:
  """The lines that come next, with what is known there. Who is in a function has called it: its guard was true."""
  after = _after(facts, d)
  following = whole.following(k)
  if not whole.calls(k):
    yield from ((t, after) for t in following)
    return
  inside = {i.first for i in whole.calls(k)}
  called = _after(facts, replace(d, guard=None))
  yield from ((t, called if t in inside else facts) for t in following)


def _after(facts: frozenset[Fact], d: Effects) -> frozenset[Fact]:
  if not d.results: return facts
  kept = {f for f in facts if not isinstance(f, tuple) or f[1] not in d.results}
  if d.guard is None: return frozenset({*kept, *d.results})
  return frozenset({*kept, *((r, d.guard, d.negated) for r in d.results if d.guard not in d.results)})
