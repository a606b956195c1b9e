"""A kernel with the functions that it calls in one text: each call has lines, registers and a frame of its own.

Where a function calls itself, is too long or called too often, the call stays one: the reference makes it. A function's
lines come where it is called, in the order of PCs, and behind them a line at which its threads land when it returns.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import Error
from tinyhw.core.lazy import cached_property
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.values import convert
from tinyhw.emulator.ptx import control
from tinyhw.emulator.ptx.launch.grid import stack_size
from tinyhw.emulator.ptx.module import flow
from tinyhw.emulator.ptx.module.scope import Flat, Line, Place, Range, Register, Scope
from tinyhw.emulator.ptx.program import Code, Program, touched
from tinyhw.isa.ptx.model import Instruction, Name

Reader = Callable[[Any], Any]
LINES: Final = 600  # that a kernel may have with all that it calls, or twice its own
DEPTH: Final = 16  # of calls in each other
WAYS: Final = 8  # functions that a call through a register may go to
OWN_STACK: Final = frozenset({"alloca", "stacksave", "stackrestore"})


@dataclass
class Instance:
  """A function as it stands in the text: `caller` is the one that calls it, at a place in that function's own text.
  `first` and `registers` are where its lines and registers begin, `base` its variables in the thread's stack."""
  number: int
  code: Code
  caller: Instance | None
  call: int
  first: int
  registers: int
  base: int
  calls: dict[int, list[Instance]] = field(default_factory=dict)  # by places in its own text

  @property
  def landing(self) -> int:
    """The line at which threads are when it has returned."""
    return self.first + len(self.code.flat.lines)

  @cached_property
  def calling(self) -> control.Calling:
    """How it is called."""
    assert self.caller is not None
    code = self.caller.code
    return control.Calling(code, code.flat.lines[self.call], self.code.name, code.pc(self.call + 1))

  def around(self) -> Iterator[Instance]:
    """It and those that have called it."""
    yield self
    if self.caller is not None: yield from self.caller.around()

  def row(self) -> list[Any]:
    """What has to be known where threads stand in it: [function, the number of its caller, place of the call,
    its first register, base]."""
    return [self.code.name, -1 if self.caller is None else self.caller.number, self.call, self.registers, self.base]


class Shifted(Scope):
  """Names as a function's instance has them."""

  def __init__(self, inner: Scope, instance: Instance) -> None:
    super().__init__()
    self.inner, self.instance = inner, instance

  def _look(self, name: str) -> Any:
    found, i = self.inner.find(name), self.instance
    if isinstance(found, Register): return Register(found.number + i.registers, found.type)
    if isinstance(found, Range): return Range(found.first + i.registers, found.count, found.type)
    if isinstance(found, Place) and i.code.on_stack(found): return Place(found.variable, found.offset + i.base)
    return found + i.first if isinstance(found, int) else found


class Whole:
  """The text of a kernel with all that it calls. `flat` and `cut` are as a function's."""

  def __init__(self, program: Program, name: str) -> None:
    self._program, own = program, program.function(name)
    self._limit = max(LINES, 2 * len(own.flat.lines))
    self.stack = stack_size(program)  # bytes of a thread
    self.flat = Flat(own.flat.function, frame=own.flat.frame, params=own.flat.params, scope=own.flat.scope)
    self.instances: list[Instance] = []
    self._add(own, None, 0)
    self.top: int | None = None  # the register that has the end of the stack, where the kernel moves it, or 0
    if any(line.instruction.opcode in OWN_STACK for line in own.flat.lines):
      self.top = len(self.flat.types)
      self.flat.types.append("u64")
    self._cut()

  # ---- lines

  def _add(self, code: Code, caller: Instance | None, call: int) -> Instance:
    base = 0
    if caller is not None: base = -(-(caller.base + caller.code.flat.frame) // 16) * 16
    new = Instance(len(self.instances), code, caller, call, len(self.flat.lines), len(self.flat.types), base)
    self.instances.append(new)
    self.flat.types += code.flat.types
    if caller is None: self.flat.lines += code.flat.lines
    else:
      scopes: dict[int, Scope] = {}
      for line in code.flat.lines:
        scope = scopes.setdefault(id(line.scope), Shifted(line.scope, new))
        self.flat.lines.append(Line(line.instruction, scope, line.loc))
      at = code.flat.function.at
      self.flat.lines.append(Line(Instruction("ret", (), (), at=at), Shifted(code.flat.scope, new)))
    for k in code.reached:
      line = code.flat.lines[k]
      if line.instruction.opcode != "call": continue
      callees = self._callees(new, line, k)
      if callees: new.calls[k] = [self._add(callee, new, k) for callee in callees]
    return new

  def _callees(self, of: Instance, line: Line, k: int) -> list[Code]:
    """The functions that a call may go to; none where it stays a call."""
    given = control.arguments(line)
    if given is None: return []
    target = given[1]
    through = not isinstance(target, Name) or isinstance(line.scope.find(target.text), Register)
    names = self._taken if through else [target.text] if isinstance(target, Name) else []
    codes = [self._program.function(n) for n in names if n in self._program.functions]
    if through: codes = [c for c in codes if self._fits(of.code, line, c)]
    if not codes or len(codes) > WAYS or not all(self._may(of, c) for c in codes): return []
    if len(self.flat.lines) + sum(len(c.flat.lines) + 1 for c in codes) > self._limit: return []
    return codes if all(self._fits(of.code, line, c) for c in codes) else []

  @staticmethod
  def _fits(code: Code, line: Line, callee: Code) -> bool:
    """Whether a call has the arguments of a function, and that nothing but good instructions."""
    try:
      control.Calling(code, line, callee.name, 0)
      for k in callee.reached: callee.bound(k)
    except Error: return False
    return True

  def _may(self, of: Instance, callee: Code) -> bool:
    if not callee.flat.lines or callee.flat.function.kind == "entry": return False
    if any(line.instruction.opcode in OWN_STACK for line in (*of.code.flat.lines, *callee.flat.lines)): return False
    outside = [*of.around()]
    base = -(-(of.base + of.code.flat.frame) // 16) * 16
    if base + callee.flat.frame > self.stack: return False
    return len(outside) < DEPTH and all(i.code is not callee for i in outside)

  @cached_property
  def _taken(self) -> list[str]:
    """The functions whose address the module takes, in the order of their addresses."""
    linked, out = self._program.linked, set[str]()
    for _, _, name, _ in linked.fixups: out.add(name)
    for flat in linked.flats.values():
      for line in flat.lines:
        names = [o.text for o in line.instruction.operands if isinstance(o, Name)]
        if line.instruction.opcode != "call": out.update(names)
    return sorted((n for n in out if n in self._program.functions), key=lambda n: self._program.functions[n])

  # ---- control

  def following(self, k: int) -> list[int]:
    """The lines that may come behind one: of the end of a block, the first of those that come next."""
    start = self._start_of[k]
    return [k + 1] if k + 1 < self.cut.ends[start] else self.cut.successors[start]

  @cached_property
  def _start_of(self) -> dict[int, int]:
    """The first line of each one's block."""
    return {k: s for s in self.cut.starts for k in range(s, self.cut.ends[s])}

  def _cut(self) -> None:
    lines = self.flat.lines
    ends: dict[int, int] = {}
    successors: flow.Graph = {}
    self.owner = [self.instances[0]] * len(lines)
    for i in self.instances:
      own, n = i.code.cut, len(i.code.flat.lines)
      for k in range(i.first, i.first + n + (i.caller is not None)): self.owner[k] = i
      for s in own.starts:
        end = own.ends[s]
        last, after = i.code.flat.lines[end - 1].instruction, [i.first + t for t in own.successors[s]]
        falls = end == n and (last.opcode not in {"bra", "brx", "exit", "trap", "ret"} or last.predicate is not None)
        falls |= last.opcode in {"bra", "brx"} and n in flow.targets(i.code.flat.lines[end - 1])  # a label at the end
        if i.caller is not None and (falls or last.opcode == "ret"): after.insert(0, i.landing)
        if end - 1 in i.calls:
          after = [*(c.first for c in i.calls[end - 1]), *(after if last.predicate is not None else [])]
        ends[i.first + s], successors[i.first + s] = i.first + end, list(dict.fromkeys(after))
      if i.caller is None: continue
      back = self.back(i)
      ends[i.landing], successors[i.landing] = i.landing + 1, [] if back is None else [back]
    found = flow.reached(0, successors)  # not what stands behind a call that never returns, nor its landing
    starts = [s for s in self._ordered(self.instances[0]) if s in found]
    self.cut = flow.Cut(starts, ends, successors, [], [])
    self.stops = [i.code.stops[k - i.first] if k < i.landing or i.caller is None else True
                  for k, i in enumerate(self.owner)]
    self.touched = [self._touched(k) for k in range(len(lines))]

  def back(self, i: Instance) -> int | None:
    """The line to which control comes back; None where that is the kernel's end."""
    assert i.caller is not None
    if i.call + 1 < len(i.caller.code.flat.lines): return i.caller.first + i.call + 1
    return None if i.caller.caller is None else i.caller.landing

  def _ordered(self, i: Instance) -> Iterator[int]:
    for s in i.code.cut.starts:
      yield i.first + s
      for callee in i.calls.get(i.code.cut.ends[s] - 1, ()): yield from self._ordered(callee)
    if i.caller is not None: yield i.landing

  def calls(self, k: int) -> list[Instance]:
    """What is called at a line of the text."""
    i = self.owner[k]
    return i.calls.get(k - i.first, [])

  def lands(self, k: int) -> Instance | None:
    """The function whose threads land at a line."""
    i = self.owner[k]
    return i if i.caller is not None and k == i.landing else None

  def begun(self, i: Instance) -> list[int]:
    """The registers that a call has to make 0, as they may be read before they are written."""
    arguments = {n for n, _ in i.calling.given if n is not None}
    return [i.registers + n for n in i.code.live(i.code.pc(0)) if n not in arguments]

  def moved(self, k: int) -> list[int] | None:
    """The registers that calls and returns write at a line; None for another line."""
    landed = self.lands(k)
    if landed is not None and landed.caller is not None:
      return [landed.caller.registers + n for n in landed.calling.written]
    if self.top is not None and self.flat.lines[k].instruction.opcode in {"alloca", "stackrestore"}:
      return [*flow.members(touched(self.flat.lines[k])[1]), self.top]
    if not self.calls(k): return None
    return [n for i in self.calls(k) for n in (*self.begun(i), *(i.registers + n for n, _ in i.calling.given
                                                                 if n is not None))]

  def _touched(self, k: int) -> tuple[int, int]:
    moved, landed = self.moved(k), self.lands(k)
    line = self.flat.lines[k]
    reads, own = touched(line)
    if self.top is not None and line.instruction.opcode in {"alloca", "stacksave", "call"}: reads |= 1 << self.top
    if moved is None: return reads, own
    writes = sum(1 << n for n in set(moved))
    if landed is None: return reads, writes
    return sum(1 << landed.registers + n for n in landed.calling.results), writes

  def own(self, k: int) -> int:
    """A line's place in its function's own text."""
    return k - self.owner[k].first

  def pc(self, k: int) -> int:
    """The PC of a line."""
    return self.owner[k].code.pc(self.own(k))


class JitCode(Code):
  """The code of a kernel and of what it calls, bound for values that are LLVM's."""

  def __init__(self, program: Program, name: str) -> None:
    whole = self.whole = Whole(program, name)
    self.program, self.flat, self.base = program, whole.flat, program.functions[name]
    self.cut, self.stops = whole.cut, whole.stops
    uses, kills = dict[int, int](), dict[int, int]()
    for start in self.cut.starts:
      used = killed = 0
      for reads, writes in whole.touched[start:self.cut.ends[start]]:
        used |= reads & ~killed
        killed |= writes
      uses[start], kills[start] = used, killed
    self._live_from = flow.liveness(self.cut.starts, self.cut.successors, uses, kills)

  def pc(self, index: int) -> int: return self.whole.pc(index)

  def live_from(self, start: int) -> set[int]:
    """The registers that may be read from a block's first instruction on."""
    return {*flow.members(self._live_from[start])}

  def kind(self, line: Line) -> str:
    return line.scope.instance.code.kind(line) if isinstance(line.scope, Shifted) else super().kind(line)

  def address(self, line: Line, name: str) -> int:
    found = line.scope.find(name)
    if isinstance(found, Place) and self.on_stack(found): return found.offset
    if isinstance(line.scope, Shifted): return line.scope.instance.code.address(line, name)
    return super().address(line, name)

  def constant(self, value: Any) -> Reader:
    dtype = np.dtype(value.dtype)
    bits = int(value.view(f"u{dtype.itemsize}"))
    return lambda group: group.e.const(dtype, bits)

  def special(self, name: str, dtype: Any) -> Reader: return lambda group: group.special(name, dtype)

  def based(self, line: Line, name: str, address: Any) -> Reader:
    found = line.scope.find(name)
    if isinstance(found, Place) and found.space == "param" and not self.on_stack(found):
      return lambda group: convert(group.context(layout.PARAMS_AT) + int(address), address.dtype)
    if isinstance(found, Place) and found.space in {"global", "const"}:
      offset = int(address) - self.program.base
      return lambda group: convert(group.context(layout.MODULE) + offset, address.dtype)
    return self.constant(address)

  def within(self, space: str, offset: int) -> Reader:
    return lambda group: group.context(layout.PARAMS_AT if space == "param" else layout.MODULE) + offset


__all__ = ["Instance", "JitCode", "Whole"]
