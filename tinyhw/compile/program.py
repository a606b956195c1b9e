"""What the compiler hands on: scheduled kernels, optimization options, finished programs."""
from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from tinyhw.ir.size import Values, worth
from tinyhw.ir.uop import UOp, VariableArg

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class ScheduleItem:
  """One piece of work for a device: a kernel (`ast` is a SINK) or a copy between devices (`ast` is a COPY).

  `buffers` are BUFFER UOps in the order of the kernel's DEFINE_GLOBAL numbers: the outputs are first, as many as the
  kernel has STOREs. For a COPY they are (destination, source). `device` is the output's. `values` are those that the
  graph was made with, for the kernel's Variables.
  """
  ast: UOp
  buffers: tuple[UOp, ...]
  device: str
  values: tuple[tuple[VariableArg, int], ...] = ()


@dataclass(frozen=True)
class Schedule:
  """The work that realizes some outputs, in an order that is right to execute.

  `becomes` maps each output that needed work (and each node realized on the way) to the graph that reads its memory: a
  BUFFER, reshaped. An output that already was a view of a BUFFER is not in it.
  """
  items: list[ScheduleItem]
  becomes: dict[UOp, UOp]

  def __iter__(self) -> Iterator[ScheduleItem]: return iter(self.items)
  def __len__(self) -> int: return len(self.items)


class OptKind(enum.Enum):
  """What an option does with an axis."""
  UPCAST = "upcast"    # each thread computes `amount` steps of an output axis
  UNROLL = "unroll"    # a reduction does `amount` steps in each iteration
  LOCAL = "local"      # `amount` steps of an output axis are work-items of one workgroup
  GROUP = "group"      # `amount` work-items share a reduction through local memory, step by step
  GROUPTOP = "grouptop"  # the same, each a stretch of its own
  VECTOR = "vector"    # `amount` steps of an axis are the lanes of vectors
  THREAD = "thread"    # an output axis in `amount` stretches, for a target's own threads
  PADTO = "padto"      # the axis gets as long as the next multiple of `amount`
  SWAP = "swap"        # the axis and the axis number `amount` change places in the nest of loops
  PACK = "pack"        # what a reduction reads alike at each step of an output axis is copied into local memory first
  TC = "tc"            # a product's innermost blocks are a matrix unit's; `axis` is the reduction's, `amount` unused
  STAGE = "stage"      # what matrix units multiply next is copied into local memory; `axis` is TC's, `amount` unused
  WARPGROUP = "warpgroup"  # a product in tiles of `amount` columns, by units of four waves; `axis` is the reduction's
  IMAGE = "image"      # the buffer number `axis` is an image of four numbers a pixel
  NOLOCALS = "nolocals"  # no workgroups with several work-items

  def __repr__(self) -> str: return f"OptKind.{self.name}"


@dataclass(frozen=True)
class Opt:
  """One option: `amount` steps of the kernel's axis number `axis`. The amount divides what is left of the axis, but
  for LOCAL and GROUP: there the last work-items may be idle."""
  kind: OptKind
  axis: int = 0
  amount: int = 0


@dataclass(frozen=True)
class Estimates:
  """What one launch does: arithmetic operations (a size where launches decide it), and bytes of the buffers it touches.
  """
  ops: int
  bytes: int

  def operations(self, values: Values) -> int:
    """The arithmetic operations for these values of the variables."""
    return worth(self.ops, values)


@dataclass(frozen=True)
class ProgramSpec:
  """A compiled kernel.

  `grid` counts workgroups and `block` work-items of one, as (x, y, z); where launches decide how many workgroups there
  are, `grid` is the most, and `launch_grid` says it for one. A launch passes the schedule item's buffers that
  `buffer_order` names, then the values of `variables`, which come in the order of their DEFINE_VARs.
  `source` is the text in the renderer's language, `binary` what the runtime loads (empty for target "uops", which
  executes `uops`). `local_bytes` is the local memory of a workgroup.
  """
  name: str
  target: str
  source: str
  binary: bytes
  uops: tuple[UOp, ...]
  grid: Dim3
  block: Dim3
  buffer_order: tuple[int, ...]
  variables: tuple[VariableArg, ...]
  estimates: Estimates
  local_bytes: int = 0
  opts: tuple[Opt, ...] = field(default=())
  extent: Dim3 | None = None        # the grid as sizes, where launches decide it
  outputs: int = 1                  # buffers that it writes: the first ones
  dynamic_bytes: int = 0            # of local memory, that a launch has to give

  def launch_grid(self, values: Values) -> Dim3:
    """The grid for these values of the variables."""
    if self.extent is None: return self.grid
    x, y, z = (worth(size, values) for size in self.extent)
    return x, y, z
