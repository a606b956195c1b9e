"""Whether compiled code shows that the checks find nothing in a launch of a PTX kernel."""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhw.emulator.check.bounds import Bounds
from tinyhw.emulator.check.ptx import price
from tinyhw.emulator.check.ptx.checker import arrays, variables
from tinyhw.emulator.ptx.launch.grid import Grid
from tinyhw.emulator.ptx.launch.occupancy import unfit
from tinyhw.emulator.simt import Stats

if TYPE_CHECKING:
  from tinyhw.emulator.check.checker import Checker


def proven(grid: Grid, watchdog: int, always: bool, checker: Checker) -> Stats | None:
  """See `check.vendor.proven`."""
  d = grid.dispatch
  total = grid.shared.total
  if unfit(d): return None  # a finding
  if not always and not price.pays(d.program, grid.total * grid.shared.warps): return None
  from tinyhw.emulator.jit.ptx.launch.detect import detect
  stats = detect(grid.space, d, watchdog,
                 Bounds(grid.space, total, {**checker.used(), **variables(d)}, "shared memory"), arrays(d, total))
  price.watched(d.program, stats is not None)
  return stats
