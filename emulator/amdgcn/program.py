"""Decoded code of one entry point: blocks of bound steps, found as they are executed, checked for changes."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from tinyhw.arch import Arch
from tinyhw.core.errors import DecodeError, Error, PageFault, Unsupported
from tinyhw.core.kept import Kept
from tinyhw.core.memory import Access, AddressSpace
from tinyhw.emulator.amdgcn import bind, control
from tinyhw.emulator.amdgcn.all_tables import binds
from tinyhw.emulator.amdgcn.binders import altered
from tinyhw.emulator.amdgcn.memory import bind as memory
from tinyhw.emulator.simt import Group, Next, Step
from tinyhw.isa.amdgcn import Instruction, table

BLOCK_LIMIT = 512
LINK = 30  # the first of the two SGPRs that hold a function's return address


@dataclass(eq=False)
class CodeBlock:
  """Instructions up to a branch or the start of another block. `pcs` has the PC of each step, then of the end."""
  steps: list[Step]
  count: int
  end: Callable[[Group], Next] | None
  next: int
  pcs: list[int]
  start: int
  stop: int
  instructions: list[Instruction]
  weight = 0


def _refusal(error: Unsupported) -> Callable[[Group], Any]:
  """Raises when control reaches an instruction that has no meaning, not when it is decoded.

  A new error each time: one that is kept would keep the frames that it passed, and so the memory of a launch.
  """
  kind, name, arch, where, hint = error.kind, error.name, error.arch, error.where, error.hint
  def refuse(group: Group) -> None: raise Unsupported(kind, name, arch=arch, where=where, hint=hint)
  return refuse


class AmdgcnProgram:
  """The code that starts at `entry` of an address space."""

  def __init__(self, space: AddressSpace, arch: Arch, entry: int) -> None:
    self._space = ref(space)  # the cache keeps programs as long as their space, not the other way round
    self.arch, self.entry = arch, entry
    self.table = table(arch.table)
    self._blocks: dict[tuple[int, int], CodeBlock] = {}
    self._decoded: dict[int, Instruction] = {}
    self._leaders: set[int] = {entry}
    self._spans: dict[int, bytes] = {}  # start -> bytes that were decoded
    self.kept = 0  # grows whenever those change
    self.compiled: dict[Any, Any] = {}  # what the compiled engine keeps with the program
    self.spent = 0.0  # microseconds, about, that interpreting it has cost

  @property
  def space(self) -> AddressSpace:
    """The address space that holds the code; whoever runs the program has it."""
    space = self._space()
    assert space is not None
    return space

  @property
  def size(self) -> int:
    """Instructions of the blocks that were executed so far."""
    return sum(block.count for block in self._blocks.values())

  def stands(self) -> bool:
    """Whether the code in memory still is what was decoded; no, where nothing could be decoded."""
    if not self._spans: return False
    try: return all(self.space.read(at, len(data), Access.EXECUTE) == data for at, data in self._spans.items())
    except PageFault: return False

  def refresh(self) -> None:
    """Forget what was decoded where the code in memory has changed."""
    if self.stands(): return
    self._blocks.clear()
    self._decoded.clear()
    self._spans.clear()
    self.kept += 1

  def remember(self, start: int, stop: int) -> bytes:
    """Keep the bytes that were decoded, for `stands`; returns them."""
    data = self._spans[start] = self.space.read(start, stop - start, Access.EXECUTE)
    self.kept += 1
    return data

  def hold(self, start: int, data: bytes) -> None:
    """Keep bytes that something made elsewhere depends on, for `stands`."""
    self._spans[start] = data
    self.kept += 1

  def held(self) -> list[tuple[memoryview, bytes]]:
    """Views of the code in memory, each with what it held when it was decoded; they hold for one `space.version`."""
    merged: list[tuple[int, bytes]] = []
    for at, data in sorted(self._spans.items()):
      if merged and at <= (end := merged[-1][0] + len(merged[-1][1])):
        merged[-1] = merged[-1][0], merged[-1][1] + data[end - at:]
      else: merged.append((at, data))
    return [(self.space.view(at, len(data), Access.EXECUTE).data, data) for at, data in merged]

  def block(self, pc: int, mode: int) -> CodeBlock:
    """The block that starts at pc, bound for a value of MODE."""
    found = self._blocks.get((pc, mode))
    return found if found is not None else self._make(pc, mode)

  def describe(self, pc: int) -> str:
    """Text of the instruction at pc."""
    return str(self._decoded.get(pc) or self.fetch(pc))

  def caller(self, group: Group, row: int) -> int | None:
    """PC of the call whose return address a wave has where the calling convention keeps it (LLVM's AMDGPUUsage,
    "Non-Kernel Functions": SGPR30 and SGPR31). A kernel, and a function that has called another, may have an old one.
    """
    low, high = (np.asarray(group.s[LINK + k]).reshape(-1) for k in (0, 1))
    back = int(low[row if len(low) > 1 else 0]) | int(high[row if len(high) > 1 else 0]) << 32
    try: i = self.fetch(back - 4)
    except Error: return None
    return back - 4 if i.mnemonic in control.CALLS and i.operands["sdst"].value == LINK else None

  def fetch(self, pc: int) -> Instruction:
    """The instruction at pc. Raises PageFault or DecodeError where there is none."""
    known = self._decoded.get(pc)
    if known is not None: return known
    if pc & 3: raise PageFault(pc, "execute", 4, reason="misaligned PC", pc=pc)
    i = self._decoded[pc] = self.table.decode(self.space.fetch(pc, 16), where=pc)
    return i

  def _make(self, start: int, mode: int) -> CodeBlock:
    self._leaders.add(start)
    try: return self._build(start, mode)
    except Error:
      self._decoded.clear()  # what was decoded here is guarded by no span: decode it again next time
      raise

  def _build(self, start: int, mode: int) -> CodeBlock:
    steps: list[Step] = []
    pcs: list[int] = []
    instructions: list[Instruction] = []
    starts: set[int] = set()
    end: Callable[[Group], Next] | None = None
    pc = start
    while len(instructions) < BLOCK_LIMIT:
      try: i = self.fetch(pc)
      except (DecodeError, PageFault):
        if not instructions: raise
        break  # only an error if control gets there
      if i.mnemonic in control.DIRECT: self._lead(control.target(i, pc))
      instructions.append(i)
      starts.add(pc)
      pc += i.size
      try: end = control.ender(i, pc - i.size)
      except Unsupported as error: end = _refusal(error)
      if end is not None:
        pcs.append(pc - i.size)
        break
      try: step = self.step(i, pc - i.size, mode)
      except Unsupported as error: step = _refusal(error)
      if step is not None:
        steps.append(step)
        pcs.append(pc - i.size)
      if pc in self._leaders: break
    if end is None: pcs.append(pcs[-1] if pcs else start)
    block = CodeBlock(steps, len(instructions), end, pc, pcs, start, pc, instructions)
    inner = [p for p in self._leaders if start < p < pc and p in starts]
    if inner:  # a branch found on the way leads into this very block, though not into the middle of an instruction
      self._leaders.add(min(inner))
      return self._build(start, mode)
    self.remember(start, pc)
    self._blocks[start, mode] = block
    return block

  def _lead(self, pc: int) -> None:
    """A branch leads to pc: blocks that run across it are cut there."""
    if pc in self._leaders: return
    self._leaders.add(pc)
    for key in [k for k, b in self._blocks.items() if b.start < pc < b.stop]: del self._blocks[key]

  def step(self, i: Instruction, pc: int, mode: int) -> Step | None:
    """An instruction that does not end a block, bound; None for one that does nothing."""
    other = altered(i, mode)
    return self._step(i, pc, mode) if other is None else other(i, pc, mode, self._step)

  def _step(self, i: Instruction, pc: int, mode: int) -> Step | None:
    """The same, whatever MODE makes of it."""
    if i.mnemonic in control.IGNORED: return None
    special = binds.get(i.mnemonic, i.table)
    if special is not None: return special(i, pc, mode)
    if i.family in memory.FAMILIES: return memory.bind(i, pc, mode)
    return bind.alu(i, pc, mode)


class ProgramCache:
  """Programs by address space, entry and generation; a space that goes away takes its programs along."""
  def __init__(self) -> None:
    self._spaces: WeakKeyDictionary[AddressSpace, Kept[tuple[int, str], AmdgcnProgram]] = WeakKeyDictionary()

  def get(self, space: AddressSpace, arch: Arch, entry: int) -> AmdgcnProgram:
    """The program at entry, decoded anew when its bytes have changed."""
    programs = self._spaces.get(space)
    if programs is None: programs = self._spaces[space] = Kept(512)
    key = entry, arch.name
    program = programs.standing(key)
    return program if program is not None else programs.keep(key, AmdgcnProgram(space, arch, entry))
