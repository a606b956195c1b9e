"""Says of a fault in PTX which line it is, which thread, and where its block is."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from tinyhw.core.errors import MachineFault

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Program

WARP: Final = 32
Dim3 = tuple[int, int, int]


def explain(program: Program, fault: MachineFault, grid: Dim3, block: Dim3, text: Sequence[str],
            cluster: Dim3 | None = None) -> None:
  """Fill in the fault's fields; its PC, a place in an order of the emulator's own, goes. `text` are the lines,
  `cluster` is that of the launch."""
  if fault.pc is not None:
    function, line = program.place(fault.pc)
    if line is not None:
      fault.file, fault.line = "PTX", line.instruction.at[0]
      fault.source = text[fault.line - 1].strip() if fault.line <= len(text) else None
      if line.loc is not None: fault.calls = (_source(program.linked, line.loc),)
    fault.place = function
    if fault.caller is not None:
      name, called = program.place(fault.caller)
      if called is not None:
        fault.calls = (*fault.calls, f"called by {name} before PTX:{called.instruction.at[0]}")
    fault.pc = fault.caller = None
  if fault.wave is None: return
  x, y, z = block
  warps = -(-x * y * z // WARP)
  number = fault.wave // warps
  size = cluster or required_cluster(program) or (1, 1, 1)
  outer, inner = divmod(number, math.prod(size))  # blocks are counted cluster by cluster
  counts = [g // c for g, c in zip(grid, size)]
  x0, y0, z0 = (outer // math.prod(counts[:k]) % counts[k] * size[k] + inner // math.prod(size[:k]) % size[k]
                for k in range(3))
  fault.workgroup = x0, y0, z0
  if fault.lane is not None:
    thread = fault.wave % warps * WARP + fault.lane
    fault.facts = (*fault.facts, f"thread {thread % x},{thread // x % y},{thread // (x * y)} of its block")


def required_cluster(program: Program) -> Dim3 | None:
  """The blocks of a cluster that the kernel was compiled for."""
  found = program.linked.kernel(program.entry_name).reqnctapercluster
  if found is None: return None
  x, y, z = [*found, 1, 1][:3]
  return x, y, z


def _source(linked: Any, loc: tuple[int, int]) -> str:
  """"add.cu:5", by the module's table of files."""
  for item in linked.module.items:
    words: tuple[str, ...] = getattr(item, "words", ())
    if getattr(item, "name", "") == "file" and len(words) > 1 and words[0] == str(loc[0]):
      return f"{words[1].strip(chr(34)).rpartition('/')[2]}:{loc[1]}"
  return f"line {loc[1]}"
