"""Runs a launch of a PTX kernel with watched code: whether the hazard checks could find anything in it.

Watched code (`watched`) is compiled code with cells beside its accesses, of a kernel whose registers are proven
(`check.ptx.paths`). It finds no hazard by name; it ends where one could be. Then memory is put back as it was, and
whoever asked has the reference run the launch under its observer. What watched code has run to its end has no finding.

It knows the arrays that the launch's parameters point to, and the module's own. Blocks run one after the other, each to
its end, and those of a cluster together: that is what its cells rely on.

`memory/async_copies.py` has the cells of copies under way. `tests/emulator/check/ptx/test_watched.py` plants
faults that it has to suspect.
"""
from __future__ import annotations

import mmap
import sys
from typing import Final

import numpy as np

from tinyhw.core.errors import Error
from tinyhw.core.memory import PAGE, Access, AddressSpace, Mapping
from tinyhw.emulator.check.bounds import Bounds
from tinyhw.emulator.jit.kept import Kept, Suspicion, extents
from tinyhw.emulator.jit.ptx.launch import runner
from tinyhw.emulator.jit.ptx.launch.notes import Area, Notes
from tinyhw.emulator.jit.ptx.launch.run import Cohort, CompiledLaunch, apart
from tinyhw.emulator.jit.ptx.memory import clocks, order
from tinyhw.emulator.jit.ptx.memory.order import Order
from tinyhw.emulator.jit.ptx.memory.watched import PADDING
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.code import ORDERS, TRACKS, WATCHES, Kernel, kernel, watching
from tinyhw.emulator.jit.refusal import NotCompiled
from tinyhw.emulator.ptx.group import LANES, Blocks
from tinyhw.emulator.ptx.launch.grid import Dispatch, Grid
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.texture.objects import SIZE, Header, decoded
from tinyhw.emulator.simt import Stats
from tinyhw.emulator.values.ops import Array

TURN: Final = 1 << 22  # instructions of a warp; one that takes more may wait for others
WINDOW: Final = 1 << 34  # bytes of addresses, at most, that the cells of a launch span; few of them become pages
RESTART: Final = 1 << 23  # where clocks begin again; a plane has room for four times as many
COHORT: Final = 64  # blocks, at most, that are made ready together
_MASK64: Final = (1 << 64) - 1
_NORESERVE: Final = 0x4000 if sys.platform == "linux" else 0  # MAP_NORESERVE of mmap(2), which Python has from 3.13 on
_WORD: Final = 4  # bytes of a cell


class Arrays:
  """The arrays that a launch may touch, as rows of the table that watched code looks addresses up in."""

  def __init__(self, space: AddressSpace, d: Dispatch, bounds: Bounds) -> None:
    self.kept = Kept()
    self.rows: list[tuple[int, int, int, int]] = []
    self.of: list[int] = []  # which array each row is of
    linked = d.program.linked
    pointers = self._pointers(space, d)
    own = np.uint64(d.program.base), np.uint64(d.program.base + linked.size)
    for k, (start, end) in enumerate(zip(bounds.starts, bounds.ends)):
      if own[0] <= start < own[1] or ((pointers >= start) & (pointers <= end)).any(): self._array(
        space, k, int(start), int(end))
    m = space.find(d.params) if d.params_size else None
    if m is not None: self._row(m, d.params, d.params + d.params_size, Access.READ, -1)

  @staticmethod
  def _pointers(space: AddressSpace, d: Dispatch) -> Array:
    """What may be pointers among the parameters; where these are handles of textures and surfaces, or variables that
    have such a handle are there, the addresses of their arrays."""
    size, linked = d.params_size // 8 * 8, d.program.linked
    found = np.frombuffer(space.read(d.params, size), np.uint64).tolist() if size else []
    held = [int.from_bytes(space.read(d.program.base + at, 8), "little") for name, at in linked.offsets.items()
            if "::" not in name and linked.bytes_of(name) == 8]
    arrays = [h.address for at in {*found, *held} if (m := space.find(at)) is not None and at + SIZE <= m.end
              and m.access & Access.READ and (h := decoded(bytes(space.read(at, SIZE)))) is not None]
    return np.array([*found, *arrays], np.uint64)

  def _array(self, space: AddressSpace, number: int, start: int, end: int) -> None:
    m = space.find(start)
    if m is None or end > m.end or end == start: return  # touching it is a page fault, or the reference's
    if m.access & Access.WRITE: self.kept.keep(m, start, end)
    for a, b in extents(m, start, end): self._row(m, a, b, m.access & (Access.READ | Access.WRITE), number)
    if m.access & Access.WRITE: self._row(m, start, end, Access.WRITE, number)  # its holes may be written

  def _row(self, m: Mapping, start: int, end: int, access: int, number: int) -> None:
    self.rows.append((start, end - start, m.u8.ctypes.data - m.start & _MASK64, access))
    self.of.append(number)

  def window(self) -> tuple[int, int]:
    """The addresses that they span."""
    arrays = [row for row, k in zip(self.rows, self.of) if k >= 0]
    if not arrays: return 0, 0
    return min(r[0] for r in arrays), max(r[0] + r[1] for r in arrays)

  def clash(self, seen: Array) -> bool:
    """Whether some array was read and written."""
    what: dict[int, int] = {}
    for k, access in zip(self.of, seen.tolist()): what[k] = what.get(k, 0) | access
    return any(access & Access.READ and access & Access.WRITE for access in what.values())


def _pages(size: int) -> mmap.mmap:
  """So many bytes, 0, of which few become pages. Raises Suspicion where the host has no room for them."""
  if size > WINDOW: raise Suspicion
  try: return mmap.mmap(-1, max(-(-size // PAGE), 1) * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
  except OSError: raise Suspicion from None


class Watching(CompiledLaunch):
  """A launch in watched code."""

  def __init__(self, grid: Grid, compiled: Kernel, exact: frozenset[int], arrays: Arrays, belongs: Array) -> None:
    self.arrays, self.belongs = arrays, belongs
    super().__init__(grid, compiled, exact)

  def _context(self) -> None:
    super()._context()
    self._table = np.array(self.arrays.rows, np.uint64).reshape(-1, 4)
    self.seen = np.zeros(max(len(self._table), 1), np.uint64)
    for at, value in ((layout.MAPPINGS, len(self._table)), (layout.TABLE, self._table.ctypes.data),
                      (layout.SEEN, self.seen.ctypes.data),
                      (layout.TEAM, self.grid.shared.warps * self.grid.shared.clustered)):
      self.context[at // 8] = value
    self._cells()

  @property
  def order(self) -> Order:
    """Where the clocks of a cluster's warps are."""
    return Order.of(self.grid.shared.warps * self.grid.shared.clustered)

  @property
  def apart(self) -> int:
    """Bytes from a block's shared memory to the next one's."""
    return apart(self.grid)

  @property
  def shared(self) -> int:
    """Bytes from the beginning of a cluster's shared memory to its end, 1 at least."""
    return (self.grid.shared.clustered - 1) * self.apart + max(self.grid.shared.total, 1)

  def _cells(self) -> None:
    """New cells, which nobody has touched."""
    words, k, arrays = self.context, self.kernel, self.arrays
    near, far, kinds, far_kinds = (k.header["cells"][name] for name in ("shared", "far", "kinds", "far kinds"))
    word = clocks.ENTRY if kinds else _WORD
    room = -(-self.shared // near) * word
    beside = room + 2 * PADDING  # from cells to the second ones
    self._near = np.zeros(beside * (2 if k.header["cells"]["copies"] else 1), np.uint8)
    start, end = arrays.window()
    scale = word // far
    size = (end - start) * scale + 2 * PADDING
    self._far = _pages(size)
    base = np.frombuffer(self._far, np.uint8).ctypes.data
    warps = self.grid.shared.warps * self.grid.shared.clustered
    if kinds: self._ordered(room, size, start * scale, len(kinds) * warps, len(far_kinds) * warps)
    for at, value in ((layout.CELLS, self._near.ctypes.data + PADDING), (layout.CELLS_SIZE, room),
                      (layout.COPIES, self._near.ctypes.data + PADDING + beside),
                      (layout.CELLS_FAR, base + PADDING - start * scale & _MASK64)):
      words[at // 8] = value
    self.notes = Notes(self) if kinds and self.helper is not None else None

  def areas(self) -> tuple[Area, Area]:
    """The cells of shared and of global memory, where warps have clocks. Raises Suspicion where those of global memory
    are not as `notes` has them."""
    cells = self.kernel.header["cells"]
    start, end = self.arrays.window()
    if start % cells["far"]: raise Suspicion

    def area(memory: Array, planes: Array, apart: int, room: int, near: bool) -> Area:
      kinds = tuple(cells["kinds" if near else "far kinds"])
      count = len(kinds) * self.grid.shared.warps * self.grid.shared.clustered
      rows = planes[:count * apart].reshape(count, apart)[:, PADDING:PADDING + room // 2]
      return Area(memory[PADDING:PADDING + room].view(np.uint64), rows.view(np.int32), kinds,
                  cells["shared" if near else "far"], near)
    near = int(self.context[layout.CELLS_SIZE // 8])
    far, planes = (np.frombuffer(memory, np.uint8) for memory in (self._far, self._far_planes))
    return (area(self._near, self._planes, self._planes_apart[0], near, True),
            area(far, planes, self._planes_apart[1], (end - start) * clocks.ENTRY // cells["far"], False))

  def touched(self, addresses: Array, width: int, right: int) -> bool:
    """Bytes of arrays are touched. False where they are of none, which nobody can write here. Raises Suspicion."""
    left, ends = np.ones(len(addresses), bool), addresses + np.uint64(width)
    for k, (start, size, _, access) in enumerate(self.arrays.rows):
      if self.arrays.of[k] < 0 or not access & right: continue
      inside = left & (addresses >= np.uint64(start)) & (ends <= np.uint64(start + size))
      if not inside.any(): continue
      self.seen[k] |= np.uint64(right)
      left &= ~inside
    if not left.any(): return True
    low, high = map(np.uint64, self.arrays.window())
    if right & Access.WRITE or not left.all() or ((ends > low) & (addresses < high)).any(): raise Suspicion
    return False

  def learns(self, array: Header) -> bool:
    """What looks at it is noted once for all, where loads of global memory are not looked at one by one."""
    if order.OWN in self.kernel.header["cells"]["far kinds"]: return False
    try: return self.touched(np.array([array.address], np.uint64), array.bytes, Access.READ)
    except Suspicion: return False

  def _ordered(self, near: int, far: int, start: int, planes: int, far_planes: int) -> None:
    """Memory for clocks (`order`), where cells take so many bytes, and there are so many planes."""
    self.clocks = np.zeros(self.order.size(self.shared), np.uint8)
    apart, far_apart = near // 2 + 2 * PADDING, far // 2 + PADDING
    self._planes_apart = apart, far_apart
    self._planes = np.zeros(apart * planes, np.uint8)
    self._far_planes = _pages(far_apart * far_planes)
    first = np.frombuffer(self._far_planes, np.uint8).ctypes.data
    window = self.arrays.window()
    for at, value in ((order.PLANES, self._planes.ctypes.data + PADDING), (order.APART, apart),
                      (order.FAR_START, window[0]), (order.FAR_SIZE, window[1] - window[0]),
                      (order.FRESH, self._gaps(near)),
                      (order.FAR_PLANES, first + PADDING - start // 2 & _MASK64), (order.FAR_APART, far_apart)):
      self.clocks[at:at + 8].view(np.uint64)[0] = value
    self.context[layout.ORDER // 8] = self.clocks.ctypes.data

  def _gaps(self, room: int) -> int:
    """The address of what cells of shared memory, of so many bytes, are where a cluster begins: nobody may touch what
    lies between arrays, and what the system keeps counts as written. 0 where there is neither, and all are 0."""
    system = self.grid.shared.system
    if self.belongs.all() and not system: return 0
    near, cluster = self.kernel.header["cells"]["shared"], self.grid.shared.clustered
    self._fresh = np.zeros(room // clocks.ENTRY, np.uint64)
    inside = np.ones(-(-len(self.belongs) // near) * near, bool)
    inside[:len(self.belongs)] = self.belongs
    gaps = np.flatnonzero(~inside.reshape(-1, near).all(axis=1))
    for rank in range(cluster):
      first = rank * self.apart // near
      self._fresh[first + gaps] = self.order.never
      self._fresh[first + system.start // near:first + -(-system.stop // near)] = order.BEFORE
    return int(self._fresh.ctypes.data)

  def clock(self) -> int:
    """The largest number that a warp's work had when the latest block began; 0 without clocks."""
    if not self.kernel.header["cells"]["kinds"]: return 0
    return int(self.clocks[order.LATEST:order.LATEST + 4].view(np.int32)[0])

  def begin(self, first: int, count: int) -> Watched:
    """The next blocks. Clocks begin again where they have gone far: nobody asks for blocks that have ended."""
    if self.clock() > RESTART: self._cells()
    cohort = Watched(self, first, count)
    self.context[layout.WRITTEN // 8] = cohort.written.u8.ctypes.data - cohort.local.u8.ctypes.data & _MASK64
    return cohort


class Watched(Cohort):
  """Blocks of a launch in watched code."""

  launch: Watching

  def __init__(self, launch: Watching, first: int, count: int) -> None:
    super().__init__(launch, first, count)
    team = launch.grid.shared.clustered
    block = np.repeat(np.arange(count), self.strands)
    rank = block % team
    states, wide = self.states, self.states.view(np.uint64)
    states[:, layout.IN_CLUSTER // 4] = rank
    states[:, layout.WARP // 4] = states[:, layout.STRAND // 4] + rank * self.strands
    wide[:, layout.TEAM_SHARED // 8] = (self.lds.ctypes.data + (block - rank) * self.size).astype(np.uint64)
    self.written = spaces.Local(count * self.strands * LANES, launch.stack)  # bytes of stacks that were written

  def ghost(self) -> Blocks:
    """As a launch that is not watched has it, but that what instructions touch is noted."""
    blocks = super().ghost()
    blocks.observer = self.launch.notes
    return blocks

  def finish(self, limit: int) -> None:
    """Run to the end. Raises Suspicion."""
    self.left[:] = limit
    self.launch.run(self)
    used = limit + self.states[:, layout.AGAIN // 4].astype(np.int64) * runner.AGAIN - self.left
    stats = self.launch.grid.stats
    stats.instructions += int(used.sum())
    stats.steps += int(used.max())
    if (self.status != layout.END).any() or self.launch.clock() > 2 * RESTART: raise Suspicion
    self.given_back()
    met = self.states[:, layout.EPOCH // 4].reshape(self.count, self.strands)
    if (met != met[:, :1]).any(): raise Suspicion("warps have ended while others met")


def detect(space: AddressSpace, d: Dispatch, watchdog: int, bounds: Bounds, belongs: Array) -> Stats | None:
  """Run a launch to its end. None, with memory as it was, where the checks may find something. `belongs`: which bytes
  of a block's shared memory are of an array."""
  if d.overlap is not None or d.workspace or space.multicast: return None
  exact, way = frozenset[int](), d.program.watch or WATCHES
  arrays: Arrays | None = None
  try:
    arrays = Arrays(space, d, bounds)
    while True:
      grid = Grid(space, d, watchdog, Stats())
      team = grid.shared.clustered
      if team > order.BLOCKS or team * grid.shared.warps > order.MOST: return None  # more than there are columns for
      gaps = not belongs.all() or bool(grid.shared.system)
      found = kernel(d.program, d.block, exact, grid.shared.explicit, watching(way, team, gaps))
      launch = Watching(grid, found, exact, arrays, belongs)
      try: wide = _ran(launch)
      except Suspicion:
        if not found.header["cells"]["more"]: raise
        way, exact = f"{way} {ORDERS}", frozenset()
      else:
        if wide: exact |= wide
        elif TRACKS not in way and arrays.clash(launch.seen): way = way.replace(WATCHES, TRACKS)
        else: break
      arrays.kept.undo()
  except (Suspicion, Error):  # a fault is told where it is seen
    if arrays is not None: arrays.kept.undo()
    return None
  except BaseException:
    if arrays is not None: arrays.kept.undo()
    raise
  d.program.watch = way
  grid.stats.engine = "jit"
  return grid.stats


def _ran(launch: Watching) -> set[int]:
  """Run all blocks; the instructions that are to be compiled in another way, if there are some."""
  grid, d = launch.grid, launch.grid.dispatch
  while grid.left:
    if d.tick is not None: d.tick()
    team = grid.shared.clustered
    count = min(launch.size(), max(team, COHORT // team * team))
    cohort = launch.begin(grid.started(count, grid.places), count)
    grid.stats.waves += count * grid.shared.warps
    turn = runner.AGAIN if launch.kernel.header["cells"]["speaks"] else TURN
    try: cohort.finish(min(turn, grid.watchdog))
    except Suspicion:
      wide = launch._widened(cohort)
      if wide: return wide
      raise
  return set()


__all__ = ["NotCompiled", "detect"]
