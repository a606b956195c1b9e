"""Linked code as blocks of bound steps, found as they are executed.

Each instruction has two PCs: the even one asks its guard, where it has one and ends a block; the odd one is itself.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import DecodeError, Error, MachineFault, Unsupported
from tinyhw.core.kept import Kept
from tinyhw.core.lazy import cached_property
from tinyhw.emulator.ptx import bind, control, operands, special, weights
from tinyhw.emulator.ptx.group import Diverge, Warps
from tinyhw.emulator.ptx.launch.explain import explain
from tinyhw.emulator.ptx.module import flow
from tinyhw.emulator.ptx.module.link import Linked
from tinyhw.emulator.ptx.module.scope import Flat, Line, Place, Range, Register
from tinyhw.emulator.simt import Group, Step
from tinyhw.emulator.values import chip_sums
from tinyhw.emulator.values.ops import U64, Array
from tinyhw.isa.ptx import forms, printer
from tinyhw.isa.ptx.model import Arguments, Name, Operand, leaves

FIRST_PC: Final = 16


@lru_cache(maxsize=4096)
def _constant(dtype: Any, bits: bytes) -> operands.Reader:
  """One for all code that has the constant."""
  value = np.frombuffer(bits, dtype)[0]
  return lambda group: value


@dataclass(eq=False)
class Shown:
  """An instruction as observers and counts see it."""
  line: Line
  pc: int
  size: int = 2

  @property
  def mnemonic(self) -> str: return self.line.instruction.name

  def __str__(self) -> str: return printer.instruction(self.line.instruction).rstrip(";")


@dataclass(eq=False)
class CodeBlock:
  """Instructions up to one that ends a block, or to where control may come in."""
  steps: list[Step]
  count: int
  end: Callable[[Any], Any] | None
  next: int
  pcs: list[int]
  lines: Sequence[Line]
  places: Sequence[int]  # their PCs

  @cached_property
  def instructions(self) -> list[Shown]:
    """Made for who asks."""
    return [Shown(line, pc) for line, pc in zip(self.lines, self.places, strict=True)]

  @cached_property
  def weight(self) -> int:
    """See `weights`."""
    return sum(map(weights.of, self.lines))


class Code:
  """One function's code at its PCs."""

  def __init__(self, program: Program, flat: Flat, base: int) -> None:
    self.program, self.flat, self.base = program, flat, base
    stops = [control.stops(line.instruction) for line in flat.lines]
    self.cut = flow.cut(flat, stops)
    self.stops = stops
    self.zeros = [operands.zero(t) for t in flat.types]
    self._live: dict[int, tuple[int, ...]] = {}
    self._find_live()
    self.end = base + 2 * len(flat.lines) + 2

  @property
  def name(self) -> str: return self.flat.function.name

  def pc(self, index: int) -> int:
    """The PC of an instruction by its place in the text; behind the last one, control falls off the end."""
    return self.base + 2 * self.cut.position[index] if index < len(self.flat.lines) else self.end - 2

  def line(self, pc: int) -> Line | None:
    at = pc - self.base >> 1
    return self.flat.lines[self.cut.order[at]] if at < len(self.flat.lines) else None

  def beside(self, pc: int) -> tuple[Line, int]:
    """An instruction, and the PC of the one behind it in the text."""
    k = self.cut.order[pc - self.base >> 1]
    return self.flat.lines[k], self.pc(k + 1)

  @cached_property
  def reached(self) -> list[int]:
    """The instructions that control may come to, by their places in the text, in order."""
    return sorted(k for s in self.cut.starts for k in range(s, self.cut.ends[s]))

  # ---- names

  def on_stack(self, place: Place) -> bool:
    """Whether a variable is in the function's frame."""
    return place.space in {"local", "param"} and not (
      self.flat.function.kind == "entry" and any(place is p for p in self.flat.params))

  def kind(self, line: Line) -> str:
    """What the function of a line is: "entry" or "func"."""
    return self.flat.function.kind

  def knows(self, name: str) -> bool: return name in self.program.functions or name in self.program.linked.offsets

  def address(self, line: Line, name: str) -> int:
    """The address of a variable in its own space (of one on the stack, within the frame), or of a function."""
    found = line.scope.find(name)
    program = self.program
    if isinstance(found, Place):
      if found.space == "shared": return program.shared[id(found)]
      if found.space in {"global", "const"}:
        of_module = found is program.linked.scope.names.get(name)
        key = name if of_module else f"{self.name}::{name}#{id(found)}"
        return program.base + program.linked.offsets[key]
      return found.offset
    if name in program.functions: return program.functions[name]
    raise DecodeError(f"{name} is not declared", where=flow.where(line))

  # ---- operands that are no registers: readers of them

  def constant(self, value: Array) -> operands.Reader:
    """Reader of a constant."""
    return _constant(value.dtype, value.tobytes())

  def special(self, name: str, dtype: Any) -> operands.Reader:
    """Reader of a special register."""
    read: Any = special.reader(name, dtype)  # of NumPy's groups: compiled code has another `Code`
    return read

  def based(self, line: Line, name: str, address: Array) -> operands.Reader:
    """Reader of a variable's address; one on the stack is relative to the function's frame."""
    found = line.scope.find(name)
    t = address.dtype.type
    fixed: Any = address
    if isinstance(found, Place) and self.on_stack(found): return lambda group: t(int(address) + group.base)
    if isinstance(found, Place) and found.space == "param":
      return lambda group: t(int(address) + group.cohort.dispatch.params)
    return lambda group: fixed

  def within(self, space: str, offset: int) -> operands.Reader:
    """Reader of an address among the kernel's parameters ("param"), or the module's variables."""
    if space == "param": return lambda group: U64.type(group.cohort.dispatch.params + offset)
    return lambda group: U64.type(self.program.base + offset)

  # ---- liveness

  def _find_live(self) -> None:
    given = sum(1 << found.number for p in self.flat.results
                if isinstance(found := self.flat.scope.find(p.variable.name), Register))
    uses: dict[int, int] = {}
    kills: dict[int, int] = {}
    for start in self.cut.starts:
      used = killed = 0
      for k in range(start, self.cut.ends[start]):
        reads, writes = touched(self.flat.lines[k])
        if self.flat.lines[k].instruction.opcode == "ret": reads |= given
        used |= reads & ~killed
        killed |= writes
      if self.cut.ends[start] == len(self.flat.lines): used |= given & ~killed
      uses[start], kills[start] = used, killed
    self._returned = tuple(flow.members(given))
    live = flow.liveness(self.cut.starts, self.cut.successors, uses, kills)
    for start, bits in live.items():
      self._live[self.pc(start)] = self._live[self.pc(start) + 1] = tuple(flow.members(bits))

  def live(self, pc: int) -> tuple[int, ...]:
    """Registers that may still be read where control is at a block's start."""
    found = self._live.get(pc)
    return found if found is not None else tuple(range(len(self.zeros))) if pc < self.end - 2 else self._returned

  # ---- blocks

  def make(self, pc: int) -> CodeBlock:
    """The block at a PC."""
    n = len(self.flat.lines)
    at = pc - self.base >> 1
    steps: list[Step] = []
    pcs: list[int] = []
    if at >= n: return CodeBlock([], 0, control.fallen(self), pc, [pc], (), ())
    index = self.cut.order[at]
    stop = next(e for s, e in self.cut.ends.items() if s <= index < e)
    line = self.flat.lines[index]
    if self.stops[index]:
      here = self.base + 2 * at
      after = self.pc(index + 1)
      guard = operands.predicate(line)
      if pc == here and guard is not None and line.instruction.opcode != "bra":
        return CodeBlock([], 0, self._guarded(guard, here, after), after, [here], (), ())
      return CodeBlock([], 1, self.bound(index), after, [here], [line], [here])
    lines, places = self.flat.lines[index:stop], [self.pc(k) for k in range(index, stop)]
    for k, here in enumerate(places, index):
      step = self.bound(k)
      if step is not None:
        steps.append(step)
        pcs.append(here)
    pcs.append(pcs[-1] if pcs else pc)
    return CodeBlock(steps, len(lines), None, self.pc(stop), pcs, lines, places)

  @staticmethod
  def _guarded(guard: operands.Reader, here: int, after: int) -> Callable[[Warps], Any]:
    """Threads whose guard is true execute the instruction at the odd PC, the others go around it."""
    def end(group: Warps) -> Any:
      p = guard(group) & group.lanes
      if not p.any(): return after
      if (p == group.lanes).all(): return here + 1
      return Diverge([(here + 1, p), (after, ~p)])
    return end

  def bound(self, index: int) -> Any:
    """An instruction by its place in the text: a step (None where it does nothing), or what ends a block; for one that
    is unsupported, a step that raises when control gets there.

    Raises DecodeError for operands that the instruction does not take.
    """
    line = self.flat.lines[index]
    try:
      if self.stops[index]: return control.ender(self, line, self.pc(index), self.pc(index + 1))
      return bind.step(self, line)
    except Unsupported as error:
      kept = error
      def refuse(group: Group) -> None: raise kept.again()
      return refuse


def _registers(line: Line, operand: Operand) -> int:
  """The registers that an operand names, as bits."""
  found = 0
  for o in leaves(operand):
    e = line.scope.find(o.text) if isinstance(o, Name) else None
    if isinstance(e, Register): found |= (3 if e.type == "b128" else 1) << e.number
    elif isinstance(e, Range): found |= ((1 << e.count * (1 + (e.type == "b128"))) - 1) << e.first
  return found


def touched(line: Line) -> tuple[int, int]:
  """The registers that an instruction reads and those that it surely writes, as bits."""
  i = line.instruction
  form = forms.find(i.name)
  n = len(form.results) if form is not None else 0
  reads = writes = 0
  for k, o in enumerate(i.operands):
    given = i.opcode == "call" and k == 0 and len(i.operands) > 1 and isinstance(o, Arguments)
    if k < n or given: writes |= _registers(line, o)
    else: reads |= _registers(line, o)
  if i.opcode == "wgmma": reads |= writes  # it adds to what is there
  if i.predicate is not None:
    reads |= _registers(line, Name(i.predicate.register)) | writes  # where the guard is false the old value stays
    writes = 0
  return reads, writes


class Program:
  """The code of a kernel and of all functions of its module. Variables lie at `base`."""

  def __init__(self, linked: Linked, entry: str, base: int) -> None:
    self.linked, self.entry_name, self.base = linked, entry, base
    self.functions: dict[str, int] = {}
    self.codes: dict[str, Code] = {}
    self._starts: list[tuple[int, int, str]] = []
    at = FIRST_PC
    for name, lines in linked.lines.items():
      self.functions[name] = at
      size = 2 * lines + 2
      self._starts.append((at, at + size, name))
      at += size
    self._blocks: dict[int, CodeBlock] = {}
    self.chip_sums = chip_sums.wanted()  # of matrices, by both engines
    self._like: Program | None = None
    self.spent = 0.0  # what interpreting it has cost, in microseconds
    self.compiled: Kept[Any, Any] = Kept(64)  # `jit.ptx.code` keeps here what it has made
    self.watch = ""  # how `jit.ptx.detect` watches it, once that is known
    self.digest = ""
    self._last: Code | None = None
    self.size = sum(linked.lines.values())

  def now(self) -> Program:
    """This one, or its like where sums of matrices are made another way than when it was loaded."""
    if self.chip_sums is chip_sums.wanted(): return self
    if self._like is None:
      self._like = Program(self.linked, self.entry_name, self.base)
      self._like._like = self
    return self._like.now()

  @cached_property
  def shared(self) -> dict[int, int]:
    """The address of each shared variable by its identity."""
    return self.linked.shared_of(self.entry_name)[0]

  @property
  def shared_size(self) -> int:
    """Bytes of the declared ones."""
    return self.linked.kernel(self.entry_name).shared

  @cached_property
  def pairs(self) -> bool:
    """Whether the kernel, or what it calls, has instructions for pairs of blocks."""
    flats = (self.linked.flats[name] for name in self.linked.reachable(self.entry_name))
    return any("cta_group::2" in line.instruction.modifiers for flat in flats for line in flat.lines)

  @property
  def entry(self) -> int: return self.function(self.entry_name).pc(0)

  def function(self, name: str) -> Code:
    """The code of a function with a body."""
    found = self.codes.get(name)
    if found is None: found = self.codes[name] = Code(self, self.linked.flats[name], self.functions[name])
    return found

  def at(self, pc: int) -> Code:
    """The function that a PC is in."""
    last = self._last
    if last is not None and last.base <= pc < last.end: return last
    for start, end, name in self._starts:
      if start <= pc < end:
        self._last = self.function(name)
        return self._last
    raise MachineFault("control went where no code is", pc=pc)

  def block(self, pc: int, mode: int) -> CodeBlock:
    found = self._blocks.get(pc)
    if found is None: found = self._blocks[pc] = self.at(pc).make(pc)
    return found

  def describe(self, pc: int) -> str:
    line = self.at(pc).line(pc)
    return "the end of the function" if line is None else printer.instruction(line.instruction).rstrip(";")

  def place(self, pc: int) -> tuple[str, Line | None]:
    """The function of a PC, and its line."""
    try: code = self.at(pc)
    except Error: return "", None
    return code.name, code.line(pc)

  def explain(self, fault: MachineFault, grid: tuple[int, int, int], block: tuple[int, int, int],
              text: Sequence[str], cluster: tuple[int, int, int] | None = None) -> None:
    """Say of a fault which line it is, and which thread; `text` are the module's lines."""
    explain(self, fault, grid, block, text, cluster)

  def caller(self, group: Group, row: int) -> int | None:
    assert isinstance(group, Warps)
    return group.frames[-1].pc if group.frames else None

  def refresh(self) -> None: return None

  def live(self, pc: int) -> tuple[int, ...]: return self.at(pc).live(pc)

  def blank(self, pc: int) -> list[Array]: return [*self.at(pc).zeros]

