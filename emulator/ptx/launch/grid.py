"""Starts the threads of a grid: what a launch is, and what a chip refuses."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Final

import numpy as np

from tinyhw.arch.nv import NvArch
from tinyhw.core import progress
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.memory import AddressSpace
from tinyhw.core.printf import Printed
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.ptx import video, warp
from tinyhw.emulator.ptx.group import LANES, Blocks, Warps
from tinyhw.emulator.ptx.launch import cancels, cluster
from tinyhw.emulator.ptx.launch.explain import required_cluster
from tinyhw.emulator.ptx.launch.occupancy import generation
from tinyhw.emulator.ptx.launch.overlap import Overlap
from tinyhw.emulator.ptx.memory import cp, mbarrier, move, multimem, spaces, tensor
from tinyhw.emulator.ptx.program import Program
from tinyhw.emulator.ptx.tensorcore import matrix, mma, tcgen05, wgmma, wmma
from tinyhw.emulator.ptx.texture import instructions as textures
from tinyhw.emulator.ptx.texture import queries
from tinyhw.emulator.simt import Changes, Stats
from tinyhw.emulator.values.ops import U32
from tinyhw.emulator.values.ops import Array as Value

WARPS_A_COHORT: Final = 256  # enough lanes for NumPy, few enough for the caches
THREADS: Final = 1024  # of a block
SHARED_LIMIT: Final = 227 << 10  # bytes of a block, of sm_90: what a launch may ask for
SMS: Final = 132
WATCHDOG: Final = 100_000_000  # instructions of one warp before a launch counts as endless
RESIDENT: Final = 2048  # threads of a multiprocessor
BLOCKS_A_SM: Final = 32
ALIGNED: Final = 128  # bytes of what the system keeps begin at multiples of these
CLUSTER: Final = 16  # blocks of a cluster, the chip's own limit; 8 without asking for more
# they register what they bind
BINDERS: Final = (cancels, cluster, cp, matrix, mbarrier, mma, move, multimem, queries, tcgen05, tensor, textures,
                  video, warp, wgmma, wmma)


@dataclass(frozen=True)
class Dispatch:
  """A launch of a kernel: `program` at its addresses, blocks and threads, the address of its parameters.

  `cluster` is how many blocks a cluster has each way: None for what the kernel requires (.reqnctapercluster), or one.
  `workspace` is the address of eight bytes for a launch whose blocks meet (cooperative_groups/details/driver_abi.h).
  `overlap` is for one that others may run beside (`beside.turns` runs it).
  `tick` is called now and then while threads run; what it raises ends the launch. `printed` takes what vprintf prints.
  """
  program: Program
  grid: tuple[int, int, int]
  block: tuple[int, int, int]
  params: int = 0
  params_size: int = 0
  dynamic_shared: int = 0
  tick: Callable[[], None] | None = None
  printed: Printed = field(default_factory=Printed)
  cluster: tuple[int, int, int] | None = None
  arch: NvArch | None = None  # the card's; None for the first that runs the module's target
  workspace: int = 0
  overlap: Overlap | None = None

  def __post_init__(self) -> None:
    object.__setattr__(self, "program", self.program.now())

  @property
  def generation(self) -> NvArch:
    """What it runs on."""
    return self.arch or generation(self.program.linked.sm)

  @property
  def clusters(self) -> tuple[int, int, int] | None:
    """The blocks of a cluster, as the launch or the kernel says; None where neither does."""
    return self.cluster or required_cluster(self.program)


def system_shared(d: Dispatch) -> range:
  """The bytes of a block's shared memory that the system keeps, behind the kernel's own; they are there for code that
  asks for them (cooperative_groups/details/memory.h)."""
  used = d.program.shared_size + d.dynamic_shared
  if not d.program.linked.kernel(d.program.entry_name).system: return range(used, used)
  start = -(-used // ALIGNED) * ALIGNED
  return range(start, start + d.generation.shared_reserved)


class Shared:
  """What the blocks of a launch have in common."""

  def __init__(self, d: Dispatch) -> None:
    x, y, z = d.block
    threads = x * y * z
    self.warps = -(-threads // LANES)
    self.dynamic = d.dynamic_shared
    self.used, self.system = d.program.shared_size + d.dynamic_shared, system_shared(d)
    self.total, self.aggregate = self.system.stop, self.used + d.generation.shared_reserved
    self.printed = d.printed
    self.grid = d.grid
    self.cluster = d.clusters or (1, 1, 1)
    self.explicit = d.clusters is not None
    self.clustered = math.prod(self.cluster)
    self.sms = SMS
    self.sm = d.generation.sm
    linear = np.minimum(np.arange(self.warps * LANES), threads - 1).reshape(self.warps, LANES)
    axes = linear % x, linear // x % y, linear // (x * y)
    self.tid = [a.astype(np.uint32) if n > 1 else np.uint32(0) for a, n in zip(axes, d.block)]

  def ctaid(self, group: Warps, axis: int) -> Value:
    """The block's index: one for each warp."""
    if self.clustered > 1:
      return self.clusterid(group, axis) * np.uint32(self.cluster[axis]) + self.cluster_ctaid(group, axis)
    return _index(group.waves // self.warps, self.grid, axis)

  def clusterid(self, group: Warps, axis: int) -> Value:
    """The cluster's index in the grid."""
    return _index(group.waves // (self.warps * self.clustered), self.nclusterid, axis)

  @property
  def nclusterid(self) -> tuple[int, ...]:
    """The grid in clusters."""
    return tuple(g // c for g, c in zip(self.grid, self.cluster))

  def cluster_ctaid(self, group: Warps, axis: int) -> Value:
    """The block's index in its cluster."""
    return _index(group.waves // self.warps % self.clustered, self.cluster, axis)

  def rank(self, group: Warps) -> Value:
    """The block's number in its cluster."""
    if self.clustered == 1: return U32.type(0)
    return (group.waves // self.warps % self.clustered).astype(np.uint32)[:, None]


def _index(number: Value, extents: tuple[int, ...], axis: int) -> Value:
  """A component of the index that a number stands for, x first: u32, one for each warp or of all."""
  below, extent = math.prod(extents[:axis]), extents[axis]
  if extent == 1: return U32.type(0)
  found = number // below % extent
  return U32.type(found[0]) if (found == found[0]).all() else found.astype(np.uint32)[:, None]


class Grid:
  """The blocks of a launch that have not begun: they begin in order, x fastest, as the chip has places for them."""

  def __init__(self, space: AddressSpace, d: Dispatch, watchdog: int, stats: Stats,
               observer: Observer | None = None) -> None:
    check(d)
    self.space, self.dispatch, self.stats, self.observer = space, d, stats, observer
    self.changes = Changes(exact=observer is not None)
    self.watchdog = watchdog
    self.total = self.left = d.grid[0] * d.grid[1] * d.grid[2]
    self.shared = Shared(d)
    a_block = self.shared.warps
    self.places = SMS * max(1, min(BLOCKS_A_SM, RESIDENT // (a_block * LANES),
                                   SHARED_LIMIT // max(self.shared.total, 1)))
    cluster = self.shared.clustered
    self.places = max(cluster, self.places // cluster * cluster)
    self.usual = max(cluster, min(WARPS_A_COHORT // a_block, self.places) // cluster * cluster)
    self._stack = stack_size(d.program)

  @property
  def arch(self) -> NvArch:
    """What it runs on."""
    return self.dispatch.generation

  def ran(self, stats: Stats) -> None:
    """All blocks have run to their ends in some other way."""
    self.left = 0
    for f in fields(stats):
      if f.repr: setattr(self.stats, f.name, getattr(stats, f.name))

  @property
  def begun(self) -> int: return self.total - self.left

  @property
  def rest(self) -> str:
    """Blocks that have not begun, in words."""
    first = self.begun
    which = f"block {first} is" if self.left == 1 else f"blocks {first} to {self.total - 1} are"
    return f"{which} not resident (the chip holds {self.places})"

  def begin(self, room: int) -> Blocks:
    """The next blocks, as many as there is room for and usual, ready to run."""
    cluster = self.shared.clustered
    count = max(cluster, min(self.usual, self.left, room) // cluster * cluster)  # a cluster begins as a whole
    return self.cohort(self.started(count, room), count)

  def started(self, count: int, room: int) -> int:
    """Count blocks that begin where there is room for so many: the number of their first."""
    self.tell(room)
    first = self.begun
    self.left -= count
    return first

  def tell(self, room: int) -> None:
    """Say how many have ended, where there is room for so many."""
    progress.tell(self.dispatch.program.entry_name, max(self.begun - self.places + room, 0), self.total)

  def cancel(self) -> tuple[int, int, int] | None:
    """Have the next cluster not begin: the index of its first block; None where all have begun."""
    cluster, first = self.shared.clustered, self.begun
    if self.left < cluster: return None
    self.left -= cluster
    outer = first // cluster
    x, y, _ = self.shared.nclusterid
    place = outer % x, outer // x % y, outer // (x * y)
    return tuple(p * c for p, c in zip(place, self.shared.cluster))  # type: ignore[return-value]

  def cohort(self, first: int, count: int) -> Blocks:
    """Blocks from a number on, at the beginning of the kernel."""
    d = self.dispatch
    size = -(-max(self.shared.total, 1) // 16) * 16
    cohort = Blocks(d.program, self.space, LANES, 0, self.watchdog, self.stats, size, count)
    cohort.dispatch, cohort.shared, cohort.changes, cohort.tick = d, self.shared, self.changes, d.tick
    cohort.cancel = self.cancel
    a_block = self.shared.warps
    cohort.local = spaces.Local(count * a_block * LANES, self._stack)
    pc = d.program.entry
    group = Warps(cohort, count * a_block, pc, d.program.blank(pc))
    group.waves = np.arange(count * a_block) + first * a_block
    group.workgroups = np.repeat(np.arange(count), a_block)
    left = d.block[0] * d.block[1] * d.block[2] - (a_block - 1) * LANES
    if left != LANES:
      lanes = np.ones((a_block, LANES), bool)
      lanes[-1, left:] = False
      group.mask = np.tile(lanes, (count, 1))
    if self.observer is not None:
      cohort.observer = self.observer
    cohort.begin(group)
    if self.observer is not None: self.observer.cohort(cohort)
    return cohort


def stack_size(program: Program) -> int:
  """Bytes of a thread's stack: those of the kernel and all that it calls, or STACK more where nobody knows."""
  kernel = program.linked.kernel(program.entry_name)
  return kernel.frame + spaces.STACK if kernel.stack is None else kernel.stack


def check(d: Dispatch) -> None:
  """Raises InvalidArgument for a launch that the chip refuses."""
  name = d.program.entry_name
  function = d.program.linked.kernel(name)
  x, y, z = d.block
  threads = x * y * z
  if min(d.block) < 1 or threads > THREADS or z > 64:
    raise InvalidArgument(f"a block of {d.block} has {threads} threads; there are 1 to {THREADS}, 64 in z", where=name)
  if min(d.grid) < 1 or d.grid[0] > (1 << 31) - 1 or max(d.grid[1:]) > 65535:
    raise InvalidArgument(f"a grid of {d.grid} blocks: there are 2,147,483,647 in x, 65,535 in y and z", where=name)
  most, required = function.maxntid, function.reqntid
  if required is not None and tuple([*required, 1, 1][:3]) != d.block:
    raise InvalidArgument(f"a block of {d.block}, the kernel was compiled for exactly {tuple(required)} (.reqntid)",
                          where=name)
  if most is not None and threads > int(np.prod(most)):
    raise InvalidArgument(f"a block of {d.block} has {threads} threads, the kernel was compiled for at most "
                          f"{int(np.prod(most))} (.maxntid)", where=name)
  _check_cluster(d, name)
  total = d.program.shared_size + d.dynamic_shared
  if total > SHARED_LIMIT:
    raise InvalidArgument(f"{total:,} bytes of shared memory; a block has {SHARED_LIMIT:,}", where=name)


def _check_cluster(d: Dispatch, name: str) -> None:
  required, size = required_cluster(d.program), d.clusters
  if size is None: return
  if required is not None and size != required:
    raise InvalidArgument(f"a cluster of {size} blocks, the kernel was compiled for {required} (.reqnctapercluster)",
                          where=name)
  if min(size) < 1 or math.prod(size) > CLUSTER or any(g % c for g, c in zip(d.grid, size)):
    raise InvalidArgument(f"a cluster of {size} blocks: there are 1 to {CLUSTER}, which divide the grid {d.grid}",
                          where=name)
