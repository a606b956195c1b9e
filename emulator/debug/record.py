"""An observer that counts what a run does, by PC: executions, lanes, memory traffic, conflicts, branches."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.debug import traffic
from tinyhw.emulator.debug.parts import Follower, Vendor
from tinyhw.emulator.debug.vendor import vendor_of
from tinyhw.emulator.observe import Access, Copy, Observer

if TYPE_CHECKING:
  from tinyhw.core.memory import AddressSpace
  from tinyhw.emulator.simt import Cohort, Group, Stats


@dataclass
class Traffic:
  """Accesses of one kind by one instruction. Counts are summed over waves; bytes are those of active lanes."""
  segment: str
  kind: str
  waves: int = 0
  lanes: int = 0
  bytes: int = 0
  sectors: int = 0  # of memory: as many bytes as the vendor's caches move
  lines: int = 0  # 128 bytes
  useful: int = 0  # bytes of sectors that lanes asked for, at most the sectors' own
  cycles: int = 0  # of shared memory
  ideal: int = 0
  repeats: int = 0  # lanes of an atomic at an address that another lane of the wave has too
  sector: int = traffic.SECTOR

  @property
  def efficiency(self) -> float | None:
    """Part of the moved sectors' bytes that lanes asked for, 0 to 1; None where there are no sectors."""
    return self.useful / (self.sectors * self.sector) if self.sectors else None


@dataclass
class Counts:
  """What happened at one PC. `waves` counts executions by waves, `lanes` their active lanes."""
  instruction: Any
  waves: int = 0
  steps: int = 0
  lanes: int = 0
  idle: int = 0  # executions with no lane active
  taken: int = 0  # of a conditional branch
  splits: int = 0  # executions that left some, and not all, of the active lanes active
  traffic: dict[tuple[str, str], Traffic] = field(default_factory=dict)
  status: str = "exact"


class Recorder(Observer):
  """Give it to a dispatch as the observer; afterwards `emulator.debug.report.Report.of` reads it."""

  def __init__(self, exactness: bool = True) -> None:
    self.counts: dict[int, Counts] = {}
    self.follows = exactness
    self.exactness: Follower | None = None
    self.space: AddressSpace | None = None
    self.arch: Any = None
    self.dispatched: Any = None
    self.stats: Stats | None = None
    self._vendor: Vendor | None = None
    self._exec: Any = None
    self.releases = 0  # how often all waves of a workgroup met at a barrier

  @property
  def vendor(self) -> Vendor:
    """Whose machine code it saw. Raises InvalidArgument before it has seen any."""
    if self._vendor is None: raise InvalidArgument("the recorder has seen no dispatch")
    return self._vendor

  def dispatch(self, space: AddressSpace, arch: Any, d: Any) -> None:
    self.space, self.arch, self.dispatched = space, arch, d
    self._vendor = vendor_of(arch, d)
    self.exactness = self._vendor.follower() if self.follows else None

  def cohort(self, cohort: Cohort) -> None:
    self.vendor.cohort(cohort)
    if self.exactness is not None: self.exactness.cohort(cohort)

  def before(self, group: Group, pc: int, instruction: Any) -> None:
    vendor, c = self.vendor, self.counts.get(pc)
    if c is None: c = self.counts[pc] = Counts(instruction, status=vendor.status(instruction))
    size = group.size
    self._exec = group.mask
    if (come := vendor.comes(group, instruction)) != size:
      c.waves += come
      c.lanes += come * group.cohort.lanes
      return
    c.waves += size
    c.steps += 1
    mask = vendor.mask(group, instruction)
    if mask is None: c.lanes += size * group.cohort.lanes
    else:
      active = mask.sum(axis=1)
      factor = size // len(active)
      c.lanes += int(active.sum()) * factor
      if not active.all(): c.idle += int((active == 0).sum()) * factor
    if vendor.branches(instruction):
      taken, parted = vendor.taken(group, instruction)
      c.taken += taken
      c.splits += parted
    if self.exactness is not None: self.exactness.before(group, pc, instruction)

  def after(self, group: Group, pc: int, instruction: Any) -> None:
    if group.mask is not self._exec: self.counts[pc].splits += _splits(group, self._exec)
    if self.exactness is not None: self.exactness.after(group, pc, instruction)

  def access(self, group: Group, pc: int, instruction: Any, access: Access) -> None:
    c, words = self.counts[pc], self.vendor.words
    t = self._traffic(c, self.vendor.segment(instruction, access), access.kind)
    active, addresses, width = access.active, access.addresses, access.width
    lanes = active.sum(axis=1)
    on = int(lanes.sum())
    t.waves += int((lanes > 0).sum())
    t.lanes += on
    t.bytes += on * width
    if on and t.segment == "lds":
      cycles, ideal = traffic.lds_cycles(addresses, active, width, access.kind == "atomic")
      t.cycles += int(cycles.sum())
      t.ideal += int(ideal.sum())
    elif on and t.segment not in {"scratch", "gds", "param"}:
      sectors = traffic.distinct(addresses, active, width, words.sector)
      t.sectors += int(sectors.sum())
      t.lines += int(traffic.distinct(addresses, active, width, words.line).sum())
      t.useful += int(np.minimum(lanes * width, sectors * words.sector).sum())
    if on and access.kind == "atomic": t.repeats += on - int(traffic.distinct(addresses, active, 1, width).sum())
    if self.exactness is not None: self.exactness.access(group, pc, instruction, access)

  def _traffic(self, c: Counts, segment: str, kind: str) -> Traffic:
    found = c.traffic.get((segment, kind))
    if found is None: found = c.traffic[segment, kind] = Traffic(segment, kind, sector=self.vendor.words.sector)
    return found

  def copied(self, group: Group, pc: int, instruction: Any, copy: Copy) -> None:
    """Bytes that one thread has moved or read in bulk: they lie together, and no bank is asked twice."""
    if self.exactness is not None: self.exactness.copied(group, pc, instruction, copy)
    words, t = self.vendor.words, self._traffic(self.counts[pc], copy.segment, copy.kind)
    n = copy.addresses.size * copy.width
    t.waves += 1
    t.lanes += 1
    t.bytes += n
    if copy.segment == "tensor": return
    if copy.segment == "lds":
      t.cycles += -(-n // words.line)
      t.ideal += -(-n // words.line)
      return
    sectors, lines = (traffic.units(copy.addresses, copy.width, size) for size in (words.sector, words.line))
    t.sectors += sectors
    t.lines += lines
    t.useful += min(n, sectors * words.sector)

  def released(self, cohort: Cohort, workgroups: Any) -> None: self.releases += len(workgroups)

  def end(self, stats: Stats) -> None: self.stats = stats


def _splits(group: Group, before: Any) -> int:
  """Waves that lost some of their active lanes and kept some."""
  if group.mask is None: return 0
  now = np.broadcast_to(group.mask, (group.size, group.cohort.lanes))
  old = np.ones_like(now) if before is None else np.broadcast_to(before, now.shape)
  lost = (old & ~now).any(axis=1)
  return int((lost & now.any(axis=1)).sum())
