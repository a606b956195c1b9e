"""A launch that compiled code ran to its end, made ready to be run again with other parameters.

What depends on the kernel, sizes and mappings alone is made once: the state of the strands before their first
instruction, the context, where accesses went. Another run copies the parameters and that state, and is one call. Each
time it is asked whether mappings and compiled form are those of before.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from tinyhw.emulator.jit.ptx.launch.run import FIRST, Cohort, CompiledLaunch
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.code import kernel
from tinyhw.emulator.jit.refusal import NotCompiled
from tinyhw.emulator.ptx.group import LANES
from tinyhw.emulator.ptx.launch.grid import Grid
from tinyhw.emulator.schedule import Idle
from tinyhw.emulator.simt import Stats

LARGEST: Final = 1 << 20  # bytes of states, shared memory and stacks of a launch that is kept
_FIRST: Final = layout.HEADER // 4  # dwords of a state that say where a strand begins; registers begin as they are


class Again:
  """All blocks of a launch, before their first instruction."""

  def __init__(self, grid: Grid, launch: CompiledLaunch) -> None:
    self.launch, self._space = launch, grid.space
    cohort = self._cohort = Cohort(launch, 0, grid.total)
    d, kernel = grid.dispatch, launch.kernel
    self._dispatch, self._version, self._watchdog = d, grid.space.version, grid.watchdog
    states, self._strands = cohort.states, len(cohort.states)
    self._granted = min(FIRST, grid.watchdog)
    cohort.left[:] = self._granted
    self._head = states[:, :_FIRST]
    self._first = self._head.copy()
    self._run = kernel.run
    self._arguments = launch.context.ctypes.data, states.ctypes.data, grid.total
    self._params, self._size, self._at = launch.params.data, d.params_size, layout.PARAMS_AT // 8
    self._context = launch.context.data
    # of one strand, whose state is read and written without NumPy's overhead
    one = self._strands == 1
    self._words = states.data.cast("B").cast("I") if one else None
    self._begin = self._first.reshape(-1).data
    self._left = states.data.cast("B").cast("q") if one else None
    self._lds = cohort.lds if grid.shared.total else None
    self._local = cohort.local.u8 if launch.stack else None
    self.stats = Stats(waves=grid.total * grid.shared.warps, engine="jit")

  @staticmethod
  def fits(grid: Grid, launch: CompiledLaunch) -> bool:
    """Whether all blocks begin together, are small enough to be kept, and nothing else is to be told of their runs."""
    if launch.kernel.helped or launch.kernel.named: return False
    nbytes = grid.shared.warps * launch.kernel.stride + grid.shared.total + grid.shared.warps * LANES * launch.stack
    return grid.total <= min(grid.places, launch.size()) and grid.total * nbytes <= LARGEST

  def stands(self) -> bool:
    """Whether mappings and compiled form are what this was made from."""
    program = self._dispatch.program
    known = program.compiled.get((self._dispatch.block, self.launch.exact, False, ""))
    return self._space.version == self._version and known is self.launch.kernel and program.now() is program

  def run(self, params: int) -> bool:
    """Run with the parameters at an address: True when all strands have ended, and `stats` says what they executed;
    else go on with `rest`. Raises PageFault."""
    if self._size: self._params[:self._size] = self._space.read(params, self._size)
    self._context[self._at] = params
    words, left = self._words, self._left
    if words is not None: words[:_FIRST] = self._begin
    else: np.copyto(self._head, self._first)
    if self._lds is not None: self._lds[:] = 0
    if self._local is not None: self._local[:] = 0
    self._run(*self._arguments)
    if words is not None:
      assert left is not None
      if words[layout.STATUS // 4] != layout.END: return False
      used = most = self._granted - left[layout.LEFT // 8]
    else:
      cohort = self._cohort
      if (cohort.status != layout.END).any(): return False
      used = self._granted * self._strands - int(cohort.left.sum())
      most = self._granted - int(cohort.left.min())
    self.stats.instructions, self.stats.steps = used, most
    return True

  def rest(self, grid: Grid) -> Iterator[Idle | None]:
    """After `run`, which has not ended: the turns that are left."""
    grid.left = 0
    cohort, launch = self._cohort, self.launch
    launch.grid = grid
    cohort.executed[:] = 0
    cohort.turns, cohort.idle, cohort.entered = 0, False, np.full(self._strands, self._granted)
    grid.stats.waves, grid.stats.engine = self.stats.waves, "jit"
    yield from launch.turns(entered=[cohort])


def again(grid: Grid) -> Again | None:
  """The launch, ready to be run again and again; None for one that is not kept."""
  try: launch = CompiledLaunch(grid, kernel(grid.dispatch.program, grid.dispatch.block))
  except NotCompiled: return None
  return Again(grid, launch) if Again.fits(grid, launch) else None
