"""Whether a launch runs in compiled code."""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhw.emulator.jit.refusal import NotCompiled

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.run import Launch
  from tinyhw.emulator.ptx.launch import Grid


def compiled(grid: Grid, engine: str) -> Launch | None:
  """The launch in compiled code; None where the reference is to run it, which `stats.interpreted` says why."""
  if engine == "auto": return None
  from tinyhw.emulator.jit.ptx.code import kernel
  from tinyhw.emulator.jit.ptx.run import Launch
  try: found = kernel(grid.dispatch.program, grid.dispatch.block)
  except NotCompiled as why:
    grid.stats.interpreted[why.why] = grid.total * grid.shared.warps
    return None
  return Launch(grid, found)
