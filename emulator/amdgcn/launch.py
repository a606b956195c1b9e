"""Starts the waves of a dispatch as the AMDGPU ABI says (LLVM AMDGPUUsage, "Initial Kernel Execution State")."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np

from tinyhw.arch import Arch
from tinyhw.core import progress
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.memory import AddressSpace
from tinyhw.emulator.amdgcn import modes
from tinyhw.emulator.amdgcn.allocation import numbers
from tinyhw.emulator.amdgcn.fields import GROUP_IDS, TG_SIZE_EN, USER_SGPR
from tinyhw.emulator.amdgcn.memory import gds
from tinyhw.emulator.amdgcn.occupancy import Occupancy, occupancy
from tinyhw.emulator.amdgcn.program import AmdgcnProgram, ProgramCache
from tinyhw.emulator.amdgcn.registers import FULL32
from tinyhw.emulator.amdgcn.sync import Shared
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.schedule import Idle, Schedule, ended
from tinyhw.emulator.simt import ZERO, Changes, Cohort, Group, Stats
from tinyhw.emulator.values.ops import U32
from tinyhw.emulator.view import View
from tinyhw.isa.amdgcn.codes import EXEC_LO, TTMP0

DispatchStats = Stats
WAVES_A_COHORT: Final = 256  # how many waves start together: enough lanes for NumPy, few enough for the caches
_PROGRAMS: Final = ProgramCache()  # decoded code by address space, compared with memory at each dispatch


@dataclass(frozen=True)
class Dispatch:
  """One dispatch as the command processor hands it to the shader engines.

  `grid` counts workgroups, `block` is the workgroup's size. `rsrc1` to `rsrc3` are COMPUTE_PGM_RSRC*, `user_data` the
  SGPRs that the queue set. Scratch: `scratch_base` is the address of wave slots of `scratch_size * wave size` bytes
  each, `scratch_size` the bytes of a lane, `scratch_waves` the number of slots, of which each of `shader_engines` has
  its equal share: workgroups go to the engines in turn. `lds_size` in bytes. `interrupt` is called with the low 24 bits
  of M0 of a wave that interrupts the host. `tick` is called now and then while waves run; what it raises ends the
  dispatch. `vgpr_block` is the size of the blocks in which waves allocate vector registers, where they do; the chip's
  SQ_DYN_VGPR sets it, and compilers take 16 unless told. `compute_units` is how many the card has, 0: as the Arch's
  has. `xccs` are its graphics cores, to which workgroups go in turn.
  """
  entry_pc: int
  grid: tuple[int, int, int]
  block: tuple[int, int, int]
  rsrc1: int
  rsrc2: int
  rsrc3: int = 0
  user_data: tuple[int, ...] = ()
  scratch_base: int = 0
  scratch_size: int = 0
  scratch_waves: int = 0
  lds_size: int = 0
  wave32: bool = True
  interrupt: Callable[[int], None] | None = None
  vgpr_block: int = 16
  compute_units: int = 0
  shader_engines: int = 1
  xccs: int = 1
  tick: Callable[[], None] | None = None


@cache
def _work_items(block: tuple[int, int, int], lanes: int) -> Any:
  """Packed work-item ids (x, y << 10, z << 20) [waves of a workgroup, lanes]; lanes past the end repeat the last."""
  x, y, z = block
  n = x * y * z
  waves = -(-n // lanes)
  linear = np.minimum(np.arange(waves * lanes), n - 1)
  packed = linear % x | linear // x % y << 10 | linear // (x * y) << 20
  return packed.astype(np.uint32).reshape(waves, lanes)


@lru_cache(maxsize=256)
def _numbers(a_group: int, count: int) -> tuple[Any, Any]:
  """The number of each wave of `count` workgroups, and that of its workgroup."""
  return np.arange(count * a_group), np.repeat(np.arange(count), a_group)


def _check(arch: Arch, d: Dispatch) -> None:
  threads = d.block[0] * d.block[1] * d.block[2]
  if min(d.block) < 1 or threads > arch.workgroup_limit:
    raise InvalidArgument(f"a workgroup of {d.block} has {threads} work-items; {arch.name} runs 1 to "
                          f"{arch.workgroup_limit}")
  if min(d.grid) < 0: raise InvalidArgument(f"a grid of {d.grid} workgroups")
  if d.lds_size > arch.lds_per_workgroup:
    raise InvalidArgument(f"{d.lds_size} bytes of LDS; a workgroup of {arch.name} has {arch.lds_per_workgroup}")
  users = USER_SGPR.of(d.rsrc2)
  if len(d.user_data) < users: raise InvalidArgument(f"{users} user SGPRs are wanted, {len(d.user_data)} are set")


def dispatch(space: AddressSpace, arch: Arch, d: Dispatch, *, watchdog: int = 100_000_000,
             observer: Observer | None = None) -> DispatchStats:
  """Run a dispatch to its end. `watchdog` is the number of instructions that a wave may execute.

  An `observer` sees each instruction, access and barrier as it happens.

  Raises MachineFault (PageFault, WatchdogExpired) with the PC, instruction, wave and lane; Unsupported and DecodeError
  for instructions that have no meaning here or none at all.
  """
  workgroups = Workgroups(space, arch, d, watchdog, Stats(), observer)
  ended(interpreted(workgroups))
  return workgroups.stats


def interpreted(workgroups: Workgroups) -> Iterator[Idle | None]:
  """Run workgroups in the reference, see `Schedule.turns`."""
  w = workgroups
  if w.observer is not None: w.observer = w.observer.dispatch(w.space, w.arch, w.dispatch) or w.observer
  yield from Schedule(w).turns()
  if w.observer is not None: w.observer.end(w.stats)


class Workgroups:
  """The workgroups of a dispatch that have not begun: they begin in order, x fastest, as the chip has places for them.

  `places` are the workgroups that are resident at once, `usual` those that begin together where there is room. With
  `apart` each begins alone, and its waves run one by one: another order of what a chip does at the same time.
  """

  def __init__(self, space: AddressSpace, arch: Arch, d: Dispatch, watchdog: int, stats: Stats,
               observer: Observer | None = None, apart: bool = False, view: View | None = None) -> None:
    _check(arch, d)
    self.space, self.arch, self.dispatch, self.stats = space, arch, d, stats
    # Watched instructions are slow: comparing what they store costs next to nothing, and a turn of theirs, after which
    # that would begin, takes long.
    self.changes = Changes(exact=observer is not None)
    self._watchdog, self.observer, self._apart, self._view = watchdog, observer, apart, view
    self.total = self.left = d.grid[0] * d.grid[1] * d.grid[2]
    self.places = self.usual = 1
    self.spread = False  # whether they are for threads, as is known from before
    self._cohorts: list[tuple[Cohort, list[int]]] = []  # with scratch slots, by workgroup
    if not self.left: return
    self.program: AmdgcnProgram = _PROGRAMS.get(space, arch, d.entry_pc)
    self.lanes = 32 if d.wave32 else 64
    self._a_group = _work_items(d.block, self.lanes).shape[0]
    if d.scratch_size and not d.scratch_waves: raise InvalidArgument("a kernel with scratch needs scratch memory")
    self.occupancy: Occupancy = occupancy(arch, d)
    self.places = self.occupancy.workgroups
    self.usual = 1 if apart else max(1, min(WAVES_A_COHORT // self._a_group, self.places))
    granule = arch.lds_granule
    self._lds_size = -(-d.lds_size // granule) * granule
    self._mode = modes.initial(arch.isa, d.rsrc1)
    self._shared = Shared(gds.of(space, arch.gds_size))
    self._slots = list(range(self.places)) if d.scratch_size else []

  @property
  def waves(self) -> int:
    """Of all workgroups."""
    return self.total * int(self._a_group)

  @property
  def begun(self) -> int:
    """How many have begun."""
    return self.total - self.left

  @property
  def rest(self) -> str:
    """Those that have not begun, in words."""
    first, count, entry = self.begun, self.left, self.dispatch.entry_pc
    which = f"workgroup {first} is" if count == 1 else f"workgroups {first} to {self.total - 1} are"
    return f"{which} not resident (the chip holds {self.occupancy}) and would begin with PC {entry:#x}"

  def begin(self, room: int) -> Cohort:
    """The next workgroups, as many as there is room for and usual, with their waves ready to run."""
    count, d = min(self.usual, self.left, room), self.dispatch
    self.tell(room)
    cohort = Cohort(self.program, self.space, self.lanes, self._mode, self._watchdog, self.stats, self._lds_size, count)
    cohort.arch, cohort.dispatch, cohort.shared, cohort.changes = self.arch, d, self._shared, self.changes
    cohort.apart, cohort.tick, cohort.view = self._apart, d.tick, self._view
    slots = self._take(cohort, count) if d.scratch_size else []
    cohort.start(_first_group(cohort, self.arch, d, self.begun, count, self.lanes, slots))
    self.left -= count
    if self.observer is not None:
      cohort.observer = self.observer
      self.observer.cohort(cohort)
    return cohort

  def tell(self, room: int) -> None:
    """Say how many have ended, where there is room for so many."""
    progress.tell("", max(self.begun - self.places + room, 0), self.total)

  def renew(self, user_data: tuple[int, ...], tick: Callable[[], None] | None, shared: Shared) -> None:
    """Those that begin from now on belong to another run of the dispatch."""
    self.dispatch, self._shared = replace(self.dispatch, user_data=user_data, tick=tick), shared

  def _take(self, cohort: Cohort, count: int) -> list[int]:
    """Scratch slots for workgroups, the lowest that are free."""
    for held, slots in self._cohorts:
      live = held.alive()
      for k, slot in enumerate(slots):
        if slot >= 0 and not live[k]:
          self._slots.append(slot)
          slots[k] = -1
    self._cohorts = [row for row in self._cohorts if row[0].left]
    self._slots.sort()
    taken, self._slots = self._slots[:count], self._slots[count:]
    self._cohorts.append((cohort, [*taken]))
    return taken


def _first_group(cohort: Cohort, arch: Arch, d: Dispatch, first: int, count: int, lanes: int,
                 slots: list[int]) -> Group:
  """All waves of workgroups [first, first + count) at the entry point."""
  items = _work_items(d.block, lanes)
  a_group = items.shape[0]
  size = count * a_group
  group = Group(cohort, size, d.entry_pc, numbers(arch, d, lanes), 128)
  v, s = group.v, group.s
  v[0] = items if count == 1 or a_group == 1 else np.tile(items, (count, 1))
  group.waves, group.workgroups = _numbers(a_group, count)
  if first: group.waves = group.waves + first * a_group
  users = USER_SGPR.of(d.rsrc2)
  s[:users] = np.array(d.user_data[:users], np.uint32)
  behind = _workgroup_ids(group, d, first, count, users, arch)
  s[EXEC_LO] = FULL32
  if lanes == 64: s[EXEC_LO + 1] = FULL32
  left = d.block[0] * d.block[1] * d.block[2] - (a_group - 1) * lanes
  if left != lanes:
    s[EXEC_LO], high, group.mask = _last_wave(lanes, left, a_group, count)
    if lanes == 64: s[EXEC_LO + 1] = high
    else: group.bools[EXEC_LO] = s[EXEC_LO], group.mask
  if d.scratch_size:
    a_wave = d.scratch_size * lanes
    slot = np.repeat(_first_slots(d, slots, a_group), a_group) + np.tile(np.arange(a_group), count)
    group.scratch = np.uint64(d.scratch_base) + slot.astype(np.uint64)[:, None] * np.uint64(a_wave)
    if arch.scratch_in_sgprs: s[behind] = _register(slot[:, None] * a_wave)
    if size == 1: group.scratch = group.scratch[0, 0]
  return group


def _first_slots(d: Dispatch, places: list[int], a_group: int) -> Any:
  """The slot of each workgroup's first wave: those of the same shader engine lie side by side."""
  at, engines = np.array(places), d.shader_engines
  return at % engines * (d.scratch_waves // engines) + at // engines * a_group


def _workgroup_ids(group: Group, d: Dispatch, first: int, count: int, at: int, arch: Arch) -> int:
  """The workgroup's ids and its number of waves: in SGPRs from `at`, those that are enabled, or in TTMPs. Says which
  SGPR comes behind them."""
  s = group.s
  linear = first if count == 1 else first + group.workgroups[:, None]
  x, y, z = d.grid
  a_group = group.size // count
  ids = [_register(linear // below % extent) if extent > 1 else ZERO for below, extent in ((1, x), (x, y), (x * y, z))]
  if arch.ids_in_ttmp:
    s[TTMP0 + 9], s[TTMP0 + 7] = ids[0], ids[1] | ids[2] << np.uint32(16)
    wave = _register(group.waves[:, None] % a_group) if a_group > 1 else ZERO
    s[TTMP0 + 8] = wave << np.uint32(25) | np.uint32(1 << 30)  # the wave's number in its workgroup; y and z are valid
  else:
    for enabled, value in zip(GROUP_IDS, ids):
      if enabled.of(d.rsrc2):
        s[at] = value
        at += 1
  if TG_SIZE_EN.of(d.rsrc2):
    s[at] = U32.type(a_group)  # waves in the workgroup
    at += 1
  return at


@lru_cache(maxsize=256)
def _last_wave(lanes: int, left: int, a_group: int, count: int) -> tuple[Any, Any, Any]:
  """EXEC's low and high dword and its lanes, where the last wave of each workgroup has only `left` work-items."""
  active = np.ones((a_group, lanes), bool)
  active[-1, left:] = False
  active = np.tile(active, (count, 1))
  packed = np.packbits(active, axis=1, bitorder="little").view(np.uint32)
  low, high = packed[:, :1], packed[:, -1:]
  return (low, high, active) if len(active) > 1 else (low[0, 0], high[0, 0], active)


def _register(value: Any) -> Any:
  """A value for each wave as a register: () where all agree."""
  if not isinstance(value, np.ndarray): return np.uint32(value)
  return np.uint32(value[0, 0]) if (value == value[0, 0]).all() else value.astype(np.uint32)
