"""Runs a dispatch with watched code: whether the hazard checks could find anything in it.

Watched code is compiled code with shadows (`shadows`, `watched`), of a program whose waits are proven (`check.amdgcn.
paths`). It finds no hazard by name; it ends where one could be. Then memory is put back as it was, and whoever asked
has the reference run the dispatch under its observer. What watched code has run to its end has no finding.

Each cohort's workgroups run from barrier to barrier, each to its end before the next: that is what its cells rely on.

So it may suspect too much and never too little: `tests/emulator/check/amdgcn/test_watched.py` holds
both against each other. `check/price.py` says by counts where that pays.
"""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from tinyhw.arch import Arch
from tinyhw.core.errors import Error
from tinyhw.core.memory import PAGE, Access, AddressSpace, Mapping
from tinyhw.emulator.amdgcn.fields import program_field
from tinyhw.emulator.amdgcn.launch import Dispatch, DispatchStats, Workgroups
from tinyhw.emulator.check.amdgcn.effects import SGPR0
from tinyhw.emulator.check.amdgcn.undefined import set_up_registers
from tinyhw.emulator.check.bounds import Bounds
from tinyhw.emulator.jit.amdgcn import context
from tinyhw.emulator.jit.amdgcn.cells import EPOCH, WRITER
from tinyhw.emulator.jit.amdgcn.run import Waves, aligned
from tinyhw.emulator.jit.amdgcn.shadows import EXACT
from tinyhw.emulator.jit.amdgcn.site import Site
from tinyhw.emulator.jit.amdgcn.state import AWAY, HEADER, HERE, ME, RESUME, STATUS
from tinyhw.emulator.jit.amdgcn.translate import BARRIER, END, FAULT, RACES, RUN, WATCHED, WGP, YIELD
from tinyhw.emulator.jit.amdgcn.watched import FIRST, LATE, READ, SCALAR, WRITE
from tinyhw.emulator.jit.amdgcn.watched import ROW as TABLE_ROW
from tinyhw.emulator.jit.kept import Kept, Suspicion, extents
from tinyhw.emulator.simt import Cohort
from tinyhw.emulator.values.ops import Array as Value

TURN: Final = 1 << 15  # instructions of a wave
TURNS: Final = 32  # between two barriers; a wave that takes more may wait for others
NUMBERS: Final = 1 << 20  # of what runs between two barriers of a workgroup
ROWS: Final = 1024  # of the table of mappings
_MASK64: Final = (1 << 64) - 1


class _Turns(Suspicion):
  """Waves may wait for others of their workgroup: workgroups have to be run one by one."""


class Watch:
  """Memory as watched code sees it, by what sites come upon: each array that the dispatch may reach is a row of its
  table, written or not. Keeps what was in those that it writes."""

  def __init__(self, space: AddressSpace, d: Dispatch, bounds: Bounds, lanes: int, races: bool) -> None:
    self.space, self.bounds, self.races = space, bounds, races
    self.table = aligned((ROWS, TABLE_ROW // 4)).view(np.uint64)
    self.count = 0
    self.unknown = False  # memory was touched whose bounds nobody said
    self._scratch = d.scratch_base, d.scratch_size * lanes * d.scratch_waves
    self.scratch_known: Value | None = None
    self._cells: dict[int, Value] = {}  # by the mapping's start
    self.kept = Kept()
    self._late: set[tuple[int, int]] = set()
    self._written: set[tuple[int, int]] = set()

  def serve(self, address: int, width: int, access: int, scratch: bool) -> None:
    """Make a row of what is at an address. Raises Suspicion for what the checks, or a page fault, could be about."""
    m = self.space.find(address)
    need = access & (Access.READ | Access.WRITE) | (Access.READ if access & SCALAR else 0)
    if m is None or m.access & need != need or self.count == ROWS: raise Suspicion
    start, end = m.start, m.end
    if scratch: start, end = self._private(m, address)
    elif not access & SCALAR:
      start, end = self._array(m, address)
      if access & WRITE:
        self.kept.keep(m, start, end)
        self._written.add((start, end))
      if access & LATE: self._late.add((start, end))
      if self._late and not self._late.isdisjoint(self._written): raise Suspicion
    if access & (READ | SCALAR) and not scratch: start, end = self._data(m, start, end, address)
    if address + width > end and not access & SCALAR: raise Suspicion
    host = m.u8.ctypes.data - m.start
    row = self.table[self.count]
    row[0], row[1], row[2], row[3] = start, end - start, host & _MASK64, access
    row[4] = self._behind(m, host, scratch)
    self.count += 1

  def _behind(self, m: Mapping, host: int, scratch: bool) -> int:
    """From GPU addresses to the cells of a mapping, or to what is known of scratch."""
    if scratch and (known := self.scratch_known) is not None: return int(known.ctypes.data) - self._scratch[0] & _MASK64
    if not self.races: return 0
    cells = self._cells.get(m.start)
    if cells is None: cells = self._cells[m.start] = np.zeros(m.end - m.start, np.uint8)
    return int(cells.ctypes.data) - m.start & _MASK64

  def _private(self, m: Mapping, address: int) -> tuple[int, int]:
    start, size = self._scratch
    if not start <= address < start + size: raise Suspicion
    if self.scratch_known is None: self.scratch_known = np.zeros(size, np.uint8)
    return max(start, m.start), min(start + size, m.end)

  def fresh(self, slots: Value, size: int) -> None:
    """Nothing is known of the scratch of waves that begin, whose slots of `size` bytes are at these addresses."""
    if self.scratch_known is None: self.scratch_known = np.zeros(self._scratch[1], np.uint8)
    for at in (slots - np.uint64(self._scratch[0])).tolist(): self.scratch_known[at:at + size] = 0

  def _array(self, m: Mapping, address: int) -> tuple[int, int]:
    """The array at an address, or what lies between two."""
    b = self.bounds
    k = int(np.searchsorted(b.starts, np.uint64(address), "right")) - 1
    following = int(b.starts[k + 1]) if k + 1 < len(b.starts) else m.end
    if k < 0: start, end = m.start, m.start
    else: start, end = int(b.starts[k]), int(b.ends[k])
    if address < end: return max(start, m.start), min(end, m.end)
    behind = -(-end // PAGE) * PAGE
    if k >= 0 and address < behind: raise Suspicion  # the rest of the array's last page
    self.unknown = True
    return max(behind, m.start), min(following, m.end)

  # ---- pages

  def _data(self, m: Mapping, start: int, end: int, address: int) -> tuple[int, int]:
    for a, b in extents(m, start, end):
      if a <= address < b: return a, b
    raise Suspicion  # a hole: nobody has written it


class WatchedWaves(Waves):
  """The waves of a cohort in watched code."""

  def __init__(self, cohort: Cohort, watch: Watch, detail: int, number: int, raw: Value | None, apart: bool) -> None:
    self.watch, self._number0, self._apart = watch, number, apart
    self._cells: Value | None = None
    self._met = 0  # barriers
    super().__init__(cohort, watch, raw, detail)  # type: ignore[arg-type]
    self._undefined()
    self.numbered = 0
    self._renumber()

  def _context(self, memory: Any) -> None:
    super()._context(memory)
    words, cohort = self.context.view(np.uint64), self.cohort
    size = len(cohort.lds)
    self._cells = np.zeros(size, np.uint8)
    words[context.LDS_SIZE // 8], words[context.MAPPINGS // 8] = cohort.dispatch.lds_size, self.watch.count
    words[context.LDS_CELLS // 8] = self._cells.ctypes.data - cohort.lds.ctypes.data & _MASK64

  def _undefined(self) -> None:
    """Nobody has written registers but those that a launch sets up."""
    cohort, at = self.cohort, HEADER + self.vgprs * self.lanes
    defined = set_up_registers(cohort.dispatch, cohort.arch)
    vectors = self.states[:, at:at + 4 * self.vgprs]
    vectors[:] = 0xFFFFFFFF
    for r in defined:
      if r < self.vgprs: vectors[:, 4 * r:4 * r + 4] = 0
    scalars = self.states[:, at + 4 * self.vgprs:at + 4 * self.vgprs + 129]
    scalars[:] = 0xFFFFFFFF
    known = [r - SGPR0 for r in defined if r >= SGPR0]
    scalars[:, known] = 0
    exact = self.states[:, at + 4 * self.vgprs + EXACT:].reshape(self.size, -1)[:, :self.vgprs * self.lanes]
    exact[:] = 0xFFFFFFFF
    for r in defined:
      if r < self.vgprs: exact[:, r * self.lanes:(r + 1) * self.lanes] = 0

  def _renumber(self) -> None:
    """Between two barriers workgroups have a number of their own."""
    workgroups = int(self.workgroups[-1]) + 1
    first, self._number0 = self._number0, self._number0 + workgroups
    if self._number0 >= NUMBERS: raise Suspicion
    row = np.arange(self.size) % self.cohort.waves_a_group
    self.states[:, ME] = (first + self.workgroups) * FIRST + row + 1
    self._met += 1
    self.states[:, HERE] = self._met * EPOCH + (row + 1) * WRITER & 0xFFFFFFFF

  @property
  def next_number(self) -> int:
    """The first that no workgroup has."""
    return self._number0

  def finish(self) -> None:
    """Run all waves to their ends. Raises Suspicion, or what ends a dispatch."""
    status, a_group = self.states[:, STATUS], self.cohort.waves_a_group
    while True:
      if self.cohort.tick is not None: self.cohort.tick()
      if not self._apart: self._meet(0, self.size)
      else:
        for first in range(0, self.size, a_group):
          if (status[first:first + a_group] == RUN).any(): self._meet(first, first + a_group)
      ended = status == END
      if ended.all(): break
      rows = np.reshape(ended, (-1, a_group))
      if (rows.any(axis=1) != rows.all(axis=1)).any(): raise Suspicion("waves wait for others that have ended")
      places = self.states[:, RESUME].reshape(rows.shape)
      if (~ended.reshape(rows.shape) & (places != places[:, :1])).any(): raise Suspicion("several barriers")
      self._release(status)
      self._renumber()
    self._finish()

  def _meet(self, first: int, last: int) -> None:
    """Run some waves until each has ended or waits at a barrier. Compiled code runs one after the other, so that each
    workgroup comes to its barrier before the next one begins, unless waves take turns."""
    states, status, left = self.states[first:last], self.states[first:last, STATUS], self.left[first:last]
    alone = self.watch.races and not self._apart and last - first > self.cohort.waves_a_group
    turn = TURN * TURNS if alone else TURN
    for _ in range(TURNS):
      left[:] = turn
      self.form.native.run(self.context.ctypes.data, states.ctypes.data, states.shape[1] * 4, last - first)
      if self.error is not None: raise self.error
      used = turn - left
      self.executed[first:last] += used
      self.instructions += int(used.sum())
      self.steps += int(used.max())
      on = ~((status == END) | (status == BARRIER))
      if not on.any(): return
      if (on & (status != YIELD) | on & (left >= 0)).any(): raise self._stopped(first + int(on.argmax()))
      if alone: raise _Turns
      status[on] = RUN
    raise Suspicion("waves that may wait for others")

  def _stopped(self, wave: int) -> Suspicion:
    """Why a wave has left watched code."""
    entry = self.code.program.entry
    pc = entry + int(self.states[wave, AWAY]) if self.states[wave, STATUS] == FAULT else self.where(wave)[0]
    return Suspicion(f"wave {wave} at {pc - entry:#x}")

  def _slow(self, handle: int, index: int) -> int:
    """A site came upon memory that no row of the table has; 1 where the reference has to look."""
    program = self.code.program
    site = self.form.site(index, lambda offset: program.fetch(program.entry + offset))
    try:
      if site.segment == "lds": raise Suspicion
      address = int(self._addresses[0])
      self.watch.serve(address, site.width, self._access(site), site.segment == "scratch")
      self.context.view(np.uint64)[context.MAPPINGS // 8] = self.watch.count
    except Suspicion: return 1
    except BaseException as error:  # no exception may pass through compiled code
      self.error = error
      return 1
    return super()._slow(handle, index) if site.kind == "scalar" else 0

  def _access(self, site: Site) -> int:
    if site.kind == "scalar": return SCALAR
    if site.segment == "scratch" or site.kind == "atomic": return READ | WRITE
    if site.kind == "store": return WRITE
    return READ | LATE if site.late else READ


def detect(space: AddressSpace, arch: Arch, d: Dispatch, watchdog: int,
           bounds: Bounds) -> tuple[DispatchStats, bool] | None:
  """Run a dispatch to its end, and say whether it touched memory whose bounds nobody said. None, with memory as it was,
  where the checks may find something."""
  try: return _detected(space, arch, d, watchdog, bounds, False)
  except _Turns: return _detected(space, arch, d, watchdog, bounds, True)


def _detected(space: AddressSpace, arch: Arch, d: Dispatch, watchdog: int, bounds: Bounds,
              apart: bool) -> tuple[DispatchStats, bool] | None:
  """See `detect`. `apart` says that workgroups run one by one; without it, it raises _Turns where they have to."""
  stats = DispatchStats()
  workgroups = Workgroups(space, arch, d, watchdog, stats)
  if not workgroups.left: return stats, False
  a_group = workgroups.waves // workgroups.total
  wgp = bool(program_field(arch.isa, "RSRC1", "WGP_MODE", d.rsrc1))
  detail = WATCHED | (RACES if a_group > 1 else 0) | (WGP if wgp else 0)
  watch = Watch(space, d, bounds, workgroups.lanes, a_group > 1)
  number = 1
  raw: Value | None = None
  try:
    while workgroups.left:
      cohort = workgroups.begin(workgroups.places)
      if d.scratch_size:
        watch.fresh(np.asarray(cohort.runnable[0].scratch).reshape(-1), d.scratch_size * cohort.lanes)
      waves = WatchedWaves(cohort, watch, detail, number, raw, apart)
      waves.finish()
      number, raw = waves.next_number, waves.raw
      waves.account(stats)
  except BaseException as end:
    watch.kept.undo()
    if isinstance(end, _Turns) or not isinstance(end, (Suspicion, Error)): raise
    return None  # a fault is told where it is seen
  stats.engine = "jit"
  return stats, watch.unknown
