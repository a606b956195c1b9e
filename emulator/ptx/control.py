"""Instructions that end a block: branches, calls, barriers, and those for which threads of a warp meet."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import DecodeError, MachineFault, Unsupported
from tinyhw.emulator.ptx import bind, operands
from tinyhw.emulator.ptx.group import LANES, Arrive, Diverge, Frame, Meet, Onward, Warps, lanes_of
from tinyhw.emulator.ptx.launch import cluster, overlap
from tinyhw.emulator.ptx.memory import mbarrier, spaces
from tinyhw.emulator.ptx.module import builtin, flow
from tinyhw.emulator.ptx.module.scope import Line, Place, Register
from tinyhw.emulator.ptx.tensorcore import tcgen05, wgmma
from tinyhw.emulator.simt import End, Yield
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.ptx import forms
from tinyhw.isa.ptx.model import Arguments, Instruction, Name, Operand

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

Ender = Callable[[Warps], Any]
Moves = Callable[[Warps, int, list[Value]], None]
FLOW: Final = frozenset({"bra", "brx", "call", "ret", "exit", "trap", "brkpt", "barrier", "nanosleep",
                             "griddepcontrol"})
_MEETING: Final = frozenset({"shfl", "vote", "match", "redux", "elect", "mma", "ldmatrix", "stmatrix", "movmatrix",
                             "wmma", "wgmma", "tcgen05"})


def stops(i: Instruction) -> bool:
  """Whether a block ends behind the instruction, and begins before it."""
  if i.opcode in FLOW or i.opcode == "bar": return True
  if i.opcode == "mbarrier": return i.modifiers[:1] in {("test_wait",), ("try_wait",)}
  return i.opcode in _MEETING and ("sync" in i.modifiers or i.opcode == "wmma")


def ender(code: Code, line: Line, here: int, after: int) -> Ender:
  """What an instruction that ends a block does, and where it goes on. Raises Unsupported."""
  i = line.instruction
  form = forms.find(i.name)
  if form is None: raise bind.unknown(line)
  bind.counted(line)
  if i.opcode == "bra": return _bra(code, line, after)
  if i.opcode == "brx": return _brx(code, line)
  if i.opcode == "call": return _call(code, line, after)
  if i.opcode in {"ret", "exit", "trap", "brkpt"}: bind.need(line, 0)
  if i.opcode == "ret": return _ret
  if i.opcode == "exit": return lambda group: End()
  if i.opcode in {"trap", "brkpt"}: return _trap(i.opcode)
  if i.opcode == "nanosleep":
    bind.need(line, 1)
    return lambda group: Yield(after)
  if i.opcode == "griddepcontrol":
    bind.need(line, 0)
    return overlap.ender(i, after)
  if i.opcode == "bar" and "warp" in i.modifiers: return _meeting(code, line, lambda group: None, i.operands[0], after)
  if i.opcode == "barrier" and "cluster" in i.modifiers[:1]: return cluster.ender(line, after)
  if i.opcode == "mbarrier": return mbarrier.ender(code, line, form, after)
  if i.opcode in {"bar", "barrier"}: return _barrier(code, line, after)
  if i.opcode == "wgmma" and "wait_group" in i.modifiers:
    bind.need(line, 1)
    return _meeting(code, line, lambda group: None, None, after, wgmma.waiting(line, after))
  if i.opcode == "tcgen05" and "alloc" in i.modifiers:
    return _meeting(code, line, lambda group: None, None, after, tcgen05.waiting(code, line, form, after))
  members: Operand | None = i.operands[-1] if i.opcode in {"shfl", "vote", "match", "redux", "elect"} else None
  step = bind.step(code, line)
  assert step is not None
  return _meeting(code, line, step, members, after)


def fallen(code: Code) -> Ender:
  """Control runs past a function's last instruction, as after `ret`."""
  return _ret


def _trap(name: str) -> Ender:
  def end(group: Warps) -> Any:
    raise MachineFault(f"the program stopped itself ({name})", wave=int(group.waves[0]),
                       lane=int(group.lanes[0].argmax()))
  return end


def _bra(code: Code, line: Line, after: int) -> Ender:
  target = code.pc(flow.targets(line)[0])
  guard = operands.predicate(line)
  if guard is None: return lambda group: target

  def end(group: Warps) -> Any:
    p, mask = guard(group), group.mask
    if p.ndim == 0: return target if p else after
    taken = p if mask is None else p & mask
    if not taken.any(): return after
    if (taken if mask is None else p | ~mask).all(): return target
    return Diverge([(target, p), (after, ~p)])
  return end


def _brx(code: Code, line: Line) -> Ender:
  ways = [code.pc(t) for t in flow.targets(line)]
  read = operands.reader(code, line, line.instruction.operands[0], "u32")

  def end(group: Warps) -> Any:
    index, lanes = operands.full(group, read(group)), group.lanes
    found = np.unique(index[lanes]).tolist()
    if found[-1] >= len(ways):
      raise MachineFault(f"brx.idx with index {found[-1]}, of {len(ways)} targets",
                         lane=spaces.lane_of(group, index == found[-1]))
    if len(found) == 1: return ways[found[0]]
    return Diverge([(ways[k], index == k) for k in found])
  return end


# ---- threads of a warp that meet

def _meeting(code: Code, line: Line, step: Callable[[Warps], None], members: Operand | None, after: int,
             then: Ender | None = None) -> Ender:
  """What threads of a warp execute together: those of `members`, or all. `then` says where they go on."""
  read = None if members is None else operands.reader(code, line, members, "u32")

  def end(group: Warps) -> Any:
    if group.mask is None:
      step(group)
      return after if then is None else then(group)
    bits: Value = U32.type(0xFFFFFFFF) if read is None else read(group)
    if bits.ndim == 2 and bits.shape[1] > 1:  # one mask for each warp: that of its first thread
      first = group.lanes.argmax(axis=1)
      bits = operands.full(group, bits)[np.arange(group.size), first, None]
    lanes = lanes_of(bits)
    ready = group.cohort.complete_warps(group, lanes)
    if ready.all():
      step(group)
      return after if then is None else then(group)
    done = None
    if ready.any():
      done = group.take(np.flatnonzero(ready))
      step(done)
      done.pc = after if then is None else group.pc  # they come back, complete
    return Meet(group.pc, np.broadcast_to(lanes, (group.size, LANES))[~ready], done, np.flatnonzero(~ready))
  return end


def _barrier(code: Code, line: Line, after: int) -> Ender:
  i = line.instruction
  sources = [*i.operands]
  write = None
  if "red" in i.modifiers:
    destination = sources.pop(0)
    voter = operands.reader(code, line, sources.pop(), "pred")
    write = operands.writer(code, line, destination, "u32" if "popc" in i.modifiers else "pred")
  waits = "arrive" not in i.modifiers
  if len(sources) not in ({1, 2} if waits else {2}):
    raise operands.not_taken(line)
  number = operands.reader(code, line, sources[0], "u32")
  expected = operands.reader(code, line, sources[1], "u32") if len(sources) > 1 else None
  kind = next((m for m in ("popc", "and", "or") if m in i.modifiers), "")

  def one(group: Warps, value: Value) -> Value:
    """One for each warp: what its first thread has."""
    if value.ndim == 0: return value
    return operands.full(group, value)[np.arange(group.size), group.lanes.argmax(axis=1)]

  def finish(group: Warps, total: Value, every: Value) -> None:
    assert write is not None
    result: Value = total if kind == "popc" else every.astype(bool) if kind == "and" else total > 0
    write(group, result)

  def end(group: Warps) -> Any:
    at, count = one(group, number(group)), U32.type(0) if expected is None else one(group, expected(group))
    for values, bad, text in ((at, at > 15, "barrier {}, of 16 barriers"),
                              (count, count % LANES > 0, "a barrier for {} threads, which are no whole warps")):
      if not np.any(bad): continue
      rows = np.broadcast_to(bad, group.size)  # one for each warp
      raise MachineFault(text.format(int(np.broadcast_to(values, group.size)[rows.argmax()])),
                         lane=spaces.lane_of(group, rows[:, None]))
    if write is None: return Arrive(after, at, count, waits)
    return Arrive(after, at, count, True, voter(group), finish)
  return end


# ---- calls

def _ret(group: Warps) -> Any:
  if not group.frames: return End()
  frame = group.frames[-1]
  base, registers = group.base, group.v
  group.frames = group.frames[:-1]
  group.v, group.base, group.top = [*frame.v], frame.base, frame.top  # others may come back to the same frame
  frame.finish(group, base, registers)
  return _onward(group, frame.pc)


def _onward(group: Warps, pc: int) -> int | Onward: return Onward(pc) if group.cohort.runnable else pc


def arguments(line: Line) -> tuple[Arguments, Operand, Arguments] | None:
  """(results, what is called, arguments) of a call; None for a call of nothing."""
  given = [*line.instruction.operands]
  results = given.pop(0) if given and isinstance(given[0], Arguments) else Arguments(())
  if not given: return None
  target = given.pop(0)
  passed = given.pop(0) if given and isinstance(given[0], Arguments) else Arguments(())
  assert isinstance(results, Arguments) and isinstance(passed, Arguments)
  return results, target, passed


def _call(code: Code, line: Line, after: int) -> Ender:
  found = arguments(line)
  if found is None: raise DecodeError("call of nothing", where=flow.where(line))
  results, target, passed = found
  if operands.register(line, target) is not None: return _indirect(code, line, target, after)
  if not isinstance(target, Name): raise DecodeError("call of what is no function", where=flow.where(line))
  name = target.text
  if name not in code.program.functions:
    if name in builtin.FUNCTIONS: return builtin.caller(code, line, name, results, passed, after)
    raise Unsupported("PTX function", name, where=flow.where(line),
                      hint="it has no body in the module, and is none that the emulator knows")
  calling = Calling(code, line, name, after)
  return lambda group: _onward(group, calling.enter(group))


class Calling:
  """A call of a function of the module, which comes back at a PC. `passed` and `taken` are its arguments and results,
  each with the function's own parameter; `given` and `results` are those of them that are registers of the function,
  `written` the caller's registers that get results."""

  def __init__(self, code: Code, line: Line, name: str, after: int) -> None:
    found = arguments(line)
    assert found is not None
    results, self.target, passed = found
    callee = code.program.linked.flats[name]
    if len(passed.elements) != len(callee.params) or len(results.elements) != len(callee.results):
      raise DecodeError(f"{name} takes {len(callee.params)} parameters and gives {len(callee.results)} results",
                        where=flow.where(line))
    self._code, self._after, self.callee = code, after, callee
    self.passed = [*zip(passed.elements, callee.params)]
    self.taken = [*zip(results.elements, callee.results)]
    self._moves = [_move(code, line, o, p, callee) for o, p in self.passed]
    self.taker = Line(replace(line.instruction, predicate=None), line.scope)  # who comes back has called: no guard
    self._backs = [_back(code, self.taker, o, p, callee) for o, p in self.taken]
    self.given = [(_number(callee, p) if p.space == "reg" else None, p) for _, p in self.passed]
    self.results = [_number(callee, p) for _, p in self.taken if p.space == "reg"]
    registers = [operands.register(line, o) for o, _ in self.taken]
    self.written = [r.number for r in registers if r is not None]

  def base(self, group: Warps) -> int:
    """Where the function's variables are on the stack."""
    top = group.base + self._code.flat.frame if group.top is None else int(np.max(group.top))
    return -(-top // 16) * 16

  def frame(self, group: Warps) -> Frame:
    """What is kept of the caller."""
    def finish(group: Warps, base: int, registers: list[Value]) -> None:
      for back in self._backs: back(group, base, registers)
    return Frame(self._after, group.v, group.base, self._code.live(self._after), group.top, finish)

  def reserve(self, group: Warps) -> None:
    """Raises MachineFault where the stack has no room for it."""
    spaces.reserve(group, self.base(group) + self.callee.frame)

  def enter(self, group: Warps) -> int:
    """Go into the function: its PC."""
    base = self.base(group)
    self.reserve(group)
    code = self._code.program.function(self.callee.function.name)
    new = [*code.zeros]
    for move in self._moves: move(group, base, new)
    group.frames = (*group.frames, self.frame(group))
    group.v, group.base, group.top = new, base, None
    return code.pc(0)


def _number(callee: Any, place: Place) -> int:
  """The register that a parameter in the space .reg is."""
  found = callee.scope.find(place.variable.name)
  assert isinstance(found, Register)
  return found.number


def _move(code: Code, line: Line, given: Operand, place: Place, callee: Any) -> Moves:
  """Give an argument to a parameter."""
  own = line.scope.find(given.text) if isinstance(given, Name) else None
  type_ = place.variable.type
  if place.space == "reg":
    read, number = operands.reader(code, line, given, type_), _number(callee, place)
    def to_register(group: Warps, base: int, new: list[Value]) -> None: new[number] = read(group)
    return to_register
  if isinstance(own, Place):
    def copy(group: Warps, base: int, new: list[Value]) -> None:
      spaces.copy_local(group, group.base + own.offset, base + place.offset, place.size)
    return copy
  value = operands.reader(code, line, given, type_)

  def to_memory(group: Warps, base: int, new: list[Value]) -> None:
    spaces.put_local(group, U64.type(base + place.offset), value(group))
  return to_memory


def _back(code: Code, line: Line, taken: Operand, place: Place, callee: Any) -> Moves:
  """Give a result back."""
  own = line.scope.find(taken.text) if isinstance(taken, Name) else None
  type_ = place.variable.type
  if place.space == "reg":
    number, write = _number(callee, place), operands.writer(code, line, taken, type_)
    return lambda group, base, registers: write(group, registers[number])
  if isinstance(own, Place):
    def copy(group: Warps, base: int, registers: list[Value]) -> None:
      spaces.copy_local(group, base + place.offset, group.base + own.offset, place.size)
    return copy
  write = operands.writer(code, line, taken, type_)

  def from_memory(group: Warps, base: int, registers: list[Value]) -> None:
    write(group, spaces.get_local(group, U64.type(base + place.offset), place.size).view(operands.dtype_of(type_)))
  return from_memory


def _indirect(code: Code, line: Line, target: Operand, after: int) -> Ender:
  """A call through a register: its threads may call several functions."""
  read = operands.reader(code, line, target, "u64")
  kept: dict[int, Calling] = {}

  def callee(group: Warps, address: int) -> Calling:
    known = kept.get(address)
    if known is None:
      name = next((name for name, pc in code.program.functions.items() if pc == address), None)
      if name is None:
        raise MachineFault(f"a call of {address:#x}, where no function is", address=address, lane=spaces.lane_of(group))
      known = kept[address] = Calling(code, line, name, after)
    return known

  def end(group: Warps) -> Any:
    addresses, lanes = operands.full(group, read(group)), group.lanes
    found = [(address, callee(group, address)) for address in np.unique(addresses[lanes]).tolist()]
    if len(found) == 1: return _onward(group, found[0][1].enter(group))
    for _, call in found: call.reserve(group)
    return Diverge([(call.enter, addresses == address) for address, call in found])
  return end
