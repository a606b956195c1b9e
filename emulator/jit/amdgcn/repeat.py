"""A dispatch that compiled code ran to its end, made ready to be run again with other user SGPRs.

Nearly every dispatch of a program that computes much with small kernels is one that was run before: same code, sizes
and registers, other arguments. Its first state is kept, so that another run is a copy and a call. What depends on more
than that is asked each time: whether the code in memory, the mappings and the compiled form are those of before.
"""
from __future__ import annotations

import struct
from collections.abc import Iterator
from ctypes import c_int64, c_void_p
from typing import Any, Final

import numpy as np

from tinyhw.emulator.amdgcn.fields import USER_SGPR
from tinyhw.emulator.amdgcn.launch import DispatchStats, Workgroups
from tinyhw.emulator.amdgcn.memory import gds
from tinyhw.emulator.amdgcn.sync import Shared
from tinyhw.emulator.jit.amdgcn.context import OUTSIDE_LANES
from tinyhw.emulator.jit.amdgcn.launch import Launch
from tinyhw.emulator.jit.amdgcn.run import TURN, Waves
from tinyhw.emulator.jit.amdgcn.state import LEFT, STATUS
from tinyhw.emulator.jit.amdgcn.translate import END
from tinyhw.emulator.jit.memory import Memory
from tinyhw.emulator.schedule import Idle
from tinyhw.emulator.simt import Changes

LARGEST: Final = 1 << 16  # dwords of registers and LDS of a dispatch that is kept


def alone(stats: DispatchStats) -> bool:
  """Whether compiled code alone ran all waves."""
  return stats.engine == "jit" and not (stats.blocks or stats.interpreted or stats.outside or stats.modelled)


class Again:
  """The waves of a dispatch whose workgroups all begin together, before their first instruction."""

  def __init__(self, workgroups: Workgroups, memory: Memory) -> None:
    self._workgroups, self._space = workgroups, workgroups.space
    cohort = self._cohort = workgroups.begin(workgroups.places)
    waves = self._waves = Waves(cohort, memory)
    self._version, self._kept = workgroups.space.version, -1
    self._code: list[tuple[memoryview, bytes]] = []
    self._users = USER_SGPR.of(workgroups.dispatch.rsrc2)
    self._granted = min(TURN, cohort.watchdog)
    waves.states[:, LEFT:LEFT + 2].view(np.int64)[:, 0] = self._granted
    self._bytes = waves.states.data.cast("B")
    self._first = bytes(self._bytes)
    self._states, self._status, self._left = waves.states, waves.states[:, STATUS], waves.left
    self._run = waves.form.native.run
    # made once as what the call takes: of Python's integers each call would make them anew
    self._arguments = (c_void_p(waves.context.ctypes.data), c_void_p(waves.states.ctypes.data),
                       c_int64(waves.states.shape[1] * 4), c_int64(waves.size))
    # of one wave, whose registers are read and written without NumPy's overhead
    self._words = self._bytes.cast("I") if waves.size == 1 else None
    self._counts = self._bytes.cast("q") if waves.size == 1 else None
    self._put = struct.Struct(f"={self._users}I").pack_into
    self._outside = waves.form.lds_sites if len(waves.form.lds_sites) else None
    self._lds = cohort.lds if cohort.lds_size else None
    self._live, self._arrived = cohort.live.copy(), cohort.arrived.copy()
    self.stats = DispatchStats(waves=waves.size, engine="jit")

  @staticmethod
  def fits(workgroups: Workgroups) -> bool:
    """Whether all workgroups begin together, and are small enough to be kept."""
    w, d = workgroups, workgroups.dispatch
    if not 0 < w.total <= min(w.usual, w.places): return False
    waves = w.total * -(-d.block[0] * d.block[1] * d.block[2] // w.lanes)
    return waves * w.lanes * 256 + w.total * d.lds_size // 4 <= LARGEST * 4

  def serves(self) -> bool:
    """Whether the code, the mappings and the compiled form are what this was made from."""
    waves = self._waves
    code = waves.code
    if self._space.version != self._version or code.form is not waves.form: return False
    program = code.program
    if program.kept != self._kept: self._code, self._kept = program.held(), program.kept
    for view, data in self._code:
      if view.tobytes() != data: return False
    return bool(self._code)

  def run(self, user_data: tuple[int, ...]) -> bool:
    """Run the waves: True when all have ended, and `stats` says what they executed; else go on with `rest`."""
    states, words = self._bytes, self._words
    states[:] = self._first
    if words is not None: self._put(states, 0, *user_data[:self._users])
    else: self._states[:, :self._users] = user_data[:self._users]
    if self._lds is not None: self._lds[:] = 0
    self._run(*self._arguments)
    waves = self._waves
    if waves.error is not None: raise waves.error
    if words is not None and self._counts is not None:
      if words[STATUS] != END: return False
      executed = self._granted - self._counts[LEFT // 2]
    else:
      if not (self._status == END).all(): return False
      executed = self._granted * waves.size - int(self._left.sum())
    if self._outside is not None and waves.sites[self._outside, OUTSIDE_LANES // 8].any(): return False
    self.stats.instructions = executed
    waves.code.ran(executed)
    return True

  def rest(self, tick: Any) -> tuple[DispatchStats, Iterator[Idle | None]]:
    """After `run`, which has not ended: the turns that are left, as the dispatch's other way of running has them."""
    cohort, waves, w = self._cohort, self._waves, self._workgroups
    w.stats = cohort.stats = DispatchStats(waves=waves.size, engine="jit")
    w.changes = cohort.changes = Changes()
    cohort.shared, cohort.tick = Shared(gds.of(w.space, w.arch.gds_size)), tick
    cohort.left, cohort.live, cohort.arrived = waves.size, self._live.copy(), self._arrived.copy()
    waves.entered()
    return w.stats, Launch(w, entered=(waves, np.full(waves.size, self._granted))).turns()
