"""What every renderer offers to the compiler: the target's limits, the source text of a program and its binary."""
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.ir.dtype import DType, PtrDType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

TRANSCENDENTAL = frozenset({Ops.EXP2, Ops.LOG2, Ops.SIN})


class Renderer(ABC):
  """Makes programs for one target. Sizes are in bytes, `max_block` counts work-items in x, y, z.

  A target without workgroups (`has_local` is False) runs a program as one thread: it knows neither SPECIAL, nor
  DEFINE_LOCAL, nor BARRIER.
  """
  target: str
  has_local: bool = False
  max_block: tuple[int, int, int] = (1, 1, 1)
  max_threads: int = 1
  local_bytes: int = 0
  vector_bytes: int = 0         # the widest vector that one LOAD or STORE may move

  def supports(self, dtype: DType) -> bool:
    """Whether arithmetic on the type exists. bfloat16 is memory only: a linear program sees it as uint16."""
    return dtype.scalar in dtypes.all() and dtype.scalar is not dtypes.bfloat16

  def vector_widths(self, dtype: DType) -> tuple[int, ...]:
    """How many elements one LOAD or STORE may move, most first; the last is always 1."""
    size = dtype.scalar.itemsize
    return tuple(n for n in (16, 8, 4, 2, 1) if n == 1 or n * size <= self.vector_bytes)

  def native(self, op: Ops, dtype: DType) -> bool:
    """Whether the target renders this arithmetic itself. Where it does not, `compile.transcendental` replaces it."""
    return op not in TRANSCENDENTAL

  @abstractmethod
  def render(self, name: str, uops: Sequence[UOp]) -> str:
    """The source text of the linear program `uops`, as a kernel called `name`."""

  @abstractmethod
  def compile(self, source: str, name: str) -> bytes:
    """The binary of what `render` gave."""

  def check(self, name: str, uops: Sequence[UOp]) -> None:
    """Refuse a program that the target cannot run, before a back end stumbles over it."""
    if not name.isidentifier() or not name.isascii():
      raise InvalidArgument(f"{name!r} is not a kernel name", hint="use letters, digits and underscores")
    where = f"kernel {name}"
    for u in uops:
      dtype = u.dtype.base if isinstance(u.dtype, PtrDType) else u.dtype
      if dtype is not dtypes.void and not self.supports(dtype):
        raise Unsupported("dtype", dtype.name, arch=self.target, where=where)
      if u.op in (Ops.SPECIAL, Ops.DEFINE_LOCAL, Ops.BARRIER) and not self.has_local:
        raise Unsupported("uop", u.op.name, arch=self.target, where=where)
    block = block_size(uops)
    if any(n > limit for n, limit in zip(block, self.max_block)) or math.prod(block) > self.max_threads:
      raise InvalidArgument(f"a workgroup of {block} work-items; {self.target} has at most {self.max_block} and "
                            f"{self.max_threads} in all", where=where)
    if (used := local_size(uops)) > self.local_bytes:
      raise InvalidArgument(f"{used:,} bytes of local memory, {self.target} has {self.local_bytes:,}", where=where)


def block_size(uops: Sequence[UOp]) -> tuple[int, int, int]:
  """Work-items of a workgroup in x, y, z."""
  return _sizes(uops, "lidx")


def grid_size(uops: Sequence[UOp]) -> tuple[int, int, int]:
  """Workgroups in x, y, z."""
  return _sizes(uops, "gidx")


def _sizes(uops: Sequence[UOp], kind: str) -> tuple[int, int, int]:
  sizes = {u.arg.name: u.arg.size for u in uops if u.op is Ops.SPECIAL}
  return sizes.get(f"{kind}0", 1), sizes.get(f"{kind}1", 1), sizes.get(f"{kind}2", 1)


def local_size(uops: Sequence[UOp]) -> int:
  """Bytes of all DEFINE_LOCALs, each aligned to 16."""
  return sum(-(-u.dtype.size * u.dtype.base.itemsize // 16) * 16 for u in uops
             if u.op is Ops.DEFINE_LOCAL and isinstance(u.dtype, PtrDType))
