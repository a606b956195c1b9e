"""Instructions that the reference does for watched code, one warp at a time (`fallback`): what they touch is noted in
cells, by the rules of `memory.clocks` and `memory.spans`.

The reference shows an observer what an instruction touches and whom it tells. Where that may be a finding, or where it
is of a kind that is not noted, Suspicion is raised, before memory is changed. The words of tensor memory have cells
here alone, for compiled code never touches them. Tensor cores of one generation are in a kernel: the clocks of what
tcgen05 has them do are those that wgmma has elsewhere.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.memory import Access as Right
from tinyhw.emulator.jit.kept import Suspicion
from tinyhw.emulator.jit.ptx.memory import clocks, order
from tinyhw.emulator.jit.ptx.memory.order import BLOCK, MATRIX, OWN, PROXY, VISIBLE
from tinyhw.emulator.observe import Access, Copy, Observer
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.tensorcore import tmem
from tinyhw.emulator.simt import Cohort, Group
from tinyhw.emulator.values.ops import Array

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.launch.detect import Watching

_AGENTS: Final = {"": OWN, "mbarrier": order.BULK, "bulk_group": order.STORE, "tcgen05": MATRIX}
_TOLD: Final = {"bulk": order.BULK, "tcgen05": MATRIX}
_LARGEST: Final = (1 << 31) - 1


@dataclass(frozen=True)
class Area:
  """The cells of a memory (u64), one for `grain` bytes; and of each kind of work planes of who has read, one a warp.
  `tensor`: no proxy lies between it and units, and these do one thing after the other. Threads may not read what was
  never written of a memory that is `known`."""
  writes: Array
  planes: Array  # i32 [kinds * warps, cells]
  kinds: tuple[int, ...]
  grain: int
  known: bool = False
  tensor: bool = False

  def cells(self, offsets: Array, width: int) -> Array:
    """The cells [n, many] of `width` bytes at each of some offsets. Raises Suspicion for what lies outside."""
    first = offsets.astype(np.int64) // self.grain
    found = first[:, None] + np.arange(max(1, -(-width // self.grain)))
    if found.size and (found.min() < 0 or found.max() >= len(self.writes)): raise Suspicion
    return found


@dataclass(frozen=True)
class Worker:
  """A warp of the cluster, what it knows, and what it has do an access: a kind of work, at its clock."""
  warp: int
  row: Array
  kind: int
  clock: int


class Notes(Observer):
  """Notes what helped instructions of a launch in watched code touch."""

  def __init__(self, launch: Watching) -> None:
    self._launch = launch
    grid = launch.grid
    self._blocks = grid.shared.clustered
    self._of_block, self._warps = grid.shared.warps, grid.shared.warps * grid.shared.clustered
    o = self._order = launch.order
    self._rows = launch.clocks[o.rows:o.rows + o.warps * o.row].view(np.int32).reshape(o.warps, o.words)
    self._near, self._far = launch.areas()
    self._tensor: Area | None = None

  # ---- what the reference shows

  def copied(self, group: Group, pc: int, instruction: Any, copy: Copy) -> None:
    kind = _AGENTS.get(copy.how)
    if kind is None: raise Suspicion
    worker, writes = self._worker(group, copy.row, kind), copy.kind == "store"
    if copy.segment == "global": return self._global(worker, copy.addresses, copy.width, writes, copy.lane)
    rank = copy.block % self._blocks
    if copy.segment == "tensor":
      at = copy.addresses.astype(np.int64)
      at = rank * tmem.WORDS + (at >> 16) * tmem.COLUMNS + (at & 0xFFFF)
      return self._touched(self._in_tensor(), worker, at, writes, copy.lane)
    cells = self._near.cells(self._offsets(rank, copy.addresses, copy.width), copy.width)
    self._touched(self._near, worker, cells.reshape(-1), writes, copy.lane)

  def access(self, group: Group, pc: int, instruction: Any, access: Access) -> None:
    if access.kind == "atomic" or access.segment not in {"lds", "global"}: raise Suspicion
    worker, writes = self._worker(group, 0, OWN), access.kind == "store"
    lanes = np.flatnonzero(access.active[0])
    at = access.addresses[0][lanes]
    if access.segment == "global": return self._global(worker, at, access.width, writes, lanes)
    if (at >> np.uint64(spaces.RANK)).any(): raise Suspicion
    rank = int(group.workgroups[0]) % self._blocks
    cells = self._near.cells(self._offsets(rank, at, access.width), access.width)
    self._touched(self._near, worker, cells.reshape(-1), writes, np.repeat(lanes, cells.shape[1]))

  def outside(self, group: Group, pc: int, instruction: Any, access: Access) -> None: raise Suspicion

  def told(self, group: Group, rows: Any, token: Any, how: str = "") -> None:
    kind = _TOLD.get(how)
    if kind is None: raise Suspicion
    pending, _ = self._token(group.cohort, token)
    for k in rows:
      w, row = self._row(group, k)
      known = np.zeros(self._order.columns, np.int32)
      if kind == MATRIX:  # what its warp has waited for came before what it had tensor cores do
        known[:] = row[:len(known)]
        for own in (OWN, PROXY): known[self._order.column(own) + w] = 0
        for own in (BLOCK, VISIBLE): known[self._order.column(own) + w // self._of_block] = 0
      column = self._order.column(kind) + w
      known[column] = max(known[column], row[self._order.issued + kind])
      np.maximum(pending, known, out=pending)

  def complete(self, cohort: Cohort, token: Any) -> None:
    pending, done = self._token(cohort, token)
    np.maximum(done, pending, out=done)
    pending[:] = 0

  def heard(self, group: Group, rows: Any, token: Any) -> None: raise Suspicion

  # ---- who, and where

  def _row(self, group: Group, k: int) -> tuple[int, Array]:
    """(a warp's number in its cluster, what it knows)."""
    w = int(group.waves[k]) % self._warps
    return w, self._rows[w]

  def _worker(self, group: Group, k: int, kind: int) -> Worker:
    w, row = self._row(group, k)
    if kind == OWN: return Worker(w, row, kind, int(row[w]) + 1)
    row[self._order.issued + kind] += 1
    return Worker(w, row, kind, int(row[self._order.issued + kind]))

  def _token(self, cohort: Cohort, token: Any) -> tuple[Array, Array]:
    """What an mbarrier was told in this phase, and in those that are over."""
    what, at = token
    if what != "mbarrier": raise Suspicion
    words, apart = self._launch.clocks, cohort.lds_size
    block, offset = divmod(at * 8, apart)
    unit = self._order.map + (block % self._blocks * apart + offset) // 8 * 4
    number, count = words[unit:unit + 4].view(np.int32), words[order.SLOTS:order.SLOTS + 4].view(np.int32)
    if not number[0]:
      if count[0] == order.MBARRIERS: raise Suspicion
      count[0] += 1
      number[0] = count[0]
    first = self._order.tokens + int(number[0]) * self._order.token
    both = words[first:first + self._order.token].view(np.int32)
    return both[:self._order.columns], both[self._order.columns:]

  def _offsets(self, rank: int, addresses: Array, width: int) -> Array:
    """From the beginning of the cluster's shared memory, of addresses in a block's."""
    at = addresses.astype(np.int64) & (1 << spaces.RANK) - 1
    if at.size and int(at.max()) + width > self._launch.grid.shared.total: raise Suspicion
    return at + rank * self._launch.apart

  def _in_tensor(self) -> Area:
    """Tensor memory; nobody has touched it before."""
    if self._tensor is None:
      cells, kinds = self._blocks * tmem.WORDS, (OWN, MATRIX)
      self._tensor = Area(np.zeros(cells, np.uint64), np.zeros((len(kinds) * self._warps, cells), np.int32), kinds, 1,
                          tensor=True)
    return self._tensor

  def _global(self, worker: Worker, addresses: Array, width: int, writes: bool, lanes: Any) -> None:
    """Bytes at addresses of global memory, each of one array. Others are of memory that nobody can write here."""
    inside = self._launch.touched(addresses, width, Right.WRITE if writes else Right.READ)
    if not inside: return
    cells = self._far.cells(addresses - np.uint64(self._launch.arrays.window()[0]), width)
    many = np.repeat(lanes, cells.shape[1]) if isinstance(lanes, np.ndarray) else lanes
    self._touched(self._far, worker, cells.reshape(-1), writes, many)

  # ---- the rules

  def _touched(self, area: Area, by: Worker, index: Array, writes: bool, lanes: Any) -> None:
    """Cells are touched, by units or by threads `lanes` of the warp. Raises Suspicion."""
    own = by.kind == OWN
    if self._unseen(area, by, index, writes, lanes) or writes and self._read_by_others(area, by, index, lanes):
      raise Suspicion
    if writes and own and isinstance(lanes, np.ndarray) and len(np.unique(index)) < index.size: raise Suspicion
    thread = lanes if own else 0
    if writes:
      # nobody has compared what threads stored: nobody may store the same, as where they have read it
      flag = order.GONE if own and OWN not in area.kinds else 0
      who = np.uint64(self._order.column(by.kind) + by.warp << 8 | flag) | np.asarray(thread, np.uint64)
      area.writes[index] = who << np.uint64(32) | np.uint64(by.clock)
      if not own: return
    if by.kind not in area.kinds:
      if area.known: raise Suspicion  # that somebody reads there is to be known
      return  # of global memory, where arrays that are read are not written, or what is read is written next
    plane = area.kinds.index(by.kind) * self._warps + by.warp
    area.planes[plane, index] = by.clock << clocks.LANES | thread

  def _unseen(self, area: Area, by: Worker, index: Array, writes: bool, lanes: Any) -> bool:
    """Whether somebody has written there whose clock is not known."""
    words = area.writes[index]
    clock, who = (words & np.uint64(0xFFFFFFFF)).astype(np.int64), (words >> np.uint64(32)).astype(np.int64)
    column, n = who >> 8, self._order.warps
    place = column
    if by.kind != OWN and not writes and not area.tensor: place = column + n * (
      (column < n) | (column >= self._order.column(BLOCK)))
    late = clock > by.row[place]
    if by.kind == OWN: late &= who & order.WHO != (by.warp << 8 | np.asarray(lanes, np.int64))
    elif writes or area.tensor: late &= column != by.warp
    if area.tensor and by.kind == MATRIX: late &= column // n != MATRIX
    if not writes: late |= who & order.MBARRIER != 0
    if area.known and not writes and isinstance(lanes, np.ndarray): late |= (clock == 0) | (who & order.GONE != 0)
    return bool(late.any())

  def _read_by_others(self, area: Area, by: Worker, index: Array, lanes: Any) -> bool:
    """Whether somebody has read there, or done something atomic, whose clock is not known."""
    n = self._warps
    for k, kind in enumerate(area.kinds):
      if area.tensor and kind == by.kind == MATRIX: continue
      its = kind in {OWN, order.ATOMICS}
      column = self._order.column(OWN if its else kind)
      limits = by.row[column:column + n].copy()
      if its: limits[by.warp] = _LARGEST >> clocks.LANES
      read = area.planes[k * n:(k + 1) * n, index]
      if (read >> clocks.LANES > limits[:, None]).any(): return True
      if by.kind != OWN or not its: continue
      mine = read[by.warp]
      if ((mine >> clocks.LANES > by.row[by.warp]) & (mine & clocks.MANY != lanes)).any(): return True
    return False
