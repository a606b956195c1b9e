"""What every renderer offers to the compiler: the target's limits, the source text of a program and its binary."""
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from tinyhw.compile.program import Dim3
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.ir.dtype import AddressSpace, DType, PtrDType, dtypes
from tinyhw.ir.matrix import MatrixUnit
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.symbolic import linear
from tinyhw.ir.uop import UOp

ALIGNMENT = 16        # what every GPU's allocator gives at least; the most that a vector access relies on
_MOVING = frozenset({Ops.LOAD, Ops.CAST, Ops.WHERE, Ops.CONST})      # what is done with types of memory only


class Renderer(ABC):
  """Makes programs for one target, and tells the optimizer what suits it.

  `threads`: output axes are spread over a grid. `local`: there are workgroups with local memory. `tile`: steps of one
  output axis that a thread of a tiled kernel computes (1: no tiling), `broad_tile` the same where there are threads
  enough for all of the chip; `square`: such a kernel's workgroups have rows as well as columns. `vector_bytes`: the
  widest LOAD and STORE (0: single elements only). `fused`: MULACC is worth making. `max_block` counts the work-items of
  a workgroup, `max_local` the bytes of its local memory, `max_grid` the workgroups of a launch.

  `units` are the matrix units of a wave, `stages` says whether large products by them go through local memory,
  `warpgroups` whether there are units of four waves that read it, `images` the limits of what `compile.images` makes.

  For processors: `lanes`: the longest vectors that arithmetic takes (0: it is on scalars). `masks`: accesses of some
  lanes only are cheap. `powers`: vectors have a power of two of lanes. `tile_vectors`: vectors of 64 bytes that a
  product may keep in registers. `pool`: a grid (of `gidx0` alone) is shared among the target's own threads, stretch by
  stretch.

  `leaves_python`: `compile` lets go of Python for most of its time.
  """
  target: str
  threads = False
  local = False
  tile = 1
  broad_tile = 0
  square = False
  vector_bytes = 0
  lanes = 0
  masks = False
  powers = False
  tile_vectors = 1
  pool = False
  leaves_python = False
  units: tuple[MatrixUnit, ...] = ()
  stages = False
  warpgroups = False
  images: tuple[int, int] | None = None         # the largest image of two dimensions, in pixels; None: there are none
  fused = False
  max_block = 1
  max_local = 0
  max_grid = 2**31 - 1
  refused: frozenset[Ops] = frozenset()         # ops of the linear program that the target does not have

  @property
  def key(self) -> str:
    """Everything that makes two renderers of a target give different programs; for caches."""
    return self.target

  def supports(self, dtype: DType) -> bool:
    """Whether arithmetic on the type exists. Types of memory only (`bits_type`) are unsigned
    integers in a linear program."""
    return dtype.scalar in dtypes.all() and dtype.scalar.bits_type is None

  def holds(self, dtype: DType) -> bool:
    """Whether memory may hold the scalar type. What memory holds without arithmetic on it (`supports`) is loaded,
    stored, chosen by WHERE, and cast from integers and bools, and to all types."""
    return self.supports(dtype)

  def vector_widths(self, dtype: DType) -> tuple[int, ...]:
    """How many elements one LOAD or STORE may move, most first; the last is always 1."""
    size = dtype.scalar.itemsize
    return tuple(n for n in (16, 8, 4, 2, 1) if n == 1 or n * size <= self.vector_bytes)

  def native(self, op: Ops, dtype: DType) -> bool:
    """Whether the target renders this arithmetic itself. Where it does not, `compile.transcendental` replaces it."""
    return op not in GroupOp.LIBRARY

  @abstractmethod
  def source(self, name: str, uops: Sequence[UOp]) -> str:
    """The source text of the linear program `uops`, as a kernel called `name`."""

  @abstractmethod
  def compile(self, source: str, name: str) -> bytes:
    """The binary of what `source` gave."""

  def render(self, name: str, uops: Sequence[UOp], grid: Dim3, block: Dim3) -> tuple[str, bytes]:
    """(source text, binary) of a linear program, whose SPECIALs say what the grid and the block are."""
    made = grid_size(uops), block_size(uops)
    if (grid, block) != made:
      raise InvalidArgument(f"grid {grid} and block {block}, but the program is made for {made[0]} and {made[1]}",
                            where=f"kernel {name}")
    source = self.source(name, uops)
    return source, self.compile(source, name)

  def check(self, name: str, uops: Sequence[UOp]) -> None:
    """Refuse a program that the target cannot run, before a back end stumbles over it."""
    if not name.isidentifier() or not name.isascii():
      raise InvalidArgument(f"{name!r} is not a kernel name", hint="use letters, digits and underscores")
    where = f"kernel {name}"
    for u in uops:
      dtype = u.dtype.base if isinstance(u.dtype, PtrDType) else u.dtype
      memory = isinstance(u.dtype, PtrDType) and u.dtype.space is AddressSpace.GLOBAL
      if self.images is None and isinstance(u.dtype, PtrDType) and u.dtype.space is AddressSpace.IMAGE:
        raise Unsupported("memory", "images", arch=self.target, where=where)
      known = self.holds(dtype) if memory else self.supports(dtype) or u.op in _MOVING and self.holds(dtype)
      if dtype is not dtypes.void and not known: raise Unsupported("dtype", dtype.name, arch=self.target, where=where)
      if u.op in self.refused:
        raise Unsupported("uop", u.op.name, arch=self.target, where=where)
    block = block_size(uops)
    if math.prod(block) > self.max_block:
      raise InvalidArgument(f"a workgroup of {block} work-items; {self.target} has at most {self.max_block}",
                            where=where)
    if (used := local_size(uops)) > self.max_local:
      raise InvalidArgument(f"{used:,} bytes of local memory, {self.target} has {self.max_local:,}", where=where)


def block_size(uops: Sequence[UOp]) -> Dim3:
  """Work-items of a workgroup in x, y, z."""
  return _sizes(uops, "lidx")


def grid_size(uops: Sequence[UOp]) -> Dim3:
  """Workgroups in x, y, z."""
  return _sizes(uops, "gidx")


def alignment(index: UOp, dtype: DType) -> int:
  """Bytes that the place of an INDEX is aligned to in memory that is: what divides every term of its index."""
  terms, constant = linear(index.src[1])
  proven = math.gcd(constant, *terms.values()) * dtype.scalar.itemsize
  return min(proven & -proven, ALIGNMENT) if proven else ALIGNMENT


def _sizes(uops: Sequence[UOp], kind: str) -> Dim3:
  sizes = {u.arg.name: u.arg.size for u in uops if u.op is Ops.SPECIAL}
  return sizes.get(f"{kind}0", 1), sizes.get(f"{kind}1", 1), sizes.get(f"{kind}2", 1)


def given(uops: Sequence[UOp]) -> set[UOp]:
  """The DEFINE_LOCALs whose memory a launch has to give: tiles of warpgroups, which are more than kernels may declare.
  """
  return {u.src[2] for u in uops if u.op is Ops.WGMMA}


def local_size(uops: Sequence[UOp]) -> int:
  """Bytes of all DEFINE_LOCALs that a kernel declares, each aligned to 16."""
  others = given(uops)
  return sum(-(-u.dtype.size * u.dtype.base.itemsize // 16) * 16 for u in uops
             if u.op is Ops.DEFINE_LOCAL and isinstance(u.dtype, PtrDType) and u not in others)


def dynamic_size(uops: Sequence[UOp]) -> int:
  """Bytes of the DEFINE_LOCALs that a launch has to give."""
  return sum(u.dtype.size * u.dtype.base.itemsize for u in given(uops) if isinstance(u.dtype, PtrDType))
