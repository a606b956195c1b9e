"""What a target tells the compiler about itself, and what it makes of a linear program."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tinyhw.compile.program import Dim3
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp


class Renderer(ABC):
  """A target: its limits, which the optimizer respects, and its rendering.

  `threads`: output axes spread over a grid. `local`: there are workgroups with local memory. `tile`: steps of one
  output axis that a thread of a tiled kernel computes (1: none). `vector_bytes`: the widest load and store (0: single
  elements only). `fused`: MULACC rounds once and is worth making. `max_block` counts work-items of a workgroup,
  `max_local` bytes of its local memory.
  """
  target: str
  threads = False
  local = False
  tile = 1
  vector_bytes = 0
  fused = False
  max_block = 1
  max_local = 0
  max_grid = 2 ** 31 - 1

  def native(self, op: Ops, dtype: DType) -> bool:
    """Whether the target itself computes EXP2, LOG2 or SIN of the type to 2 units in the last place."""
    return False

  def supports(self, dtype: DType) -> bool:
    """Whether the type is a type of values; bfloat16 is worked on as float32 otherwise."""
    return dtype is not dtypes.bfloat16

  @property
  def key(self) -> str:
    """Everything that makes two renderers of a target give different programs; for caches."""
    return self.target

  @abstractmethod
  def render(self, name: str, uops: Sequence[UOp], grid: Dim3, block: Dim3) -> tuple[str, bytes]:
    """(source text, binary) of a linear program."""
