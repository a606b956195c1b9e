"""The UOp emulator's "machine code": the linear program itself, as the text of `tinyhw.ir.program`."""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.compile.render.base import Renderer
from tinyhw.ir import program
from tinyhw.ir.dtype import DType
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp


class UOpRenderer(Renderer):
  """For the device PYTHON. It has workgroups with local memory, so that programs look as a GPU's do."""
  target = "uops"
  has_local = True
  max_block = (1024, 1024, 1024)
  max_threads = 1024
  local_bytes = 64 * 1024
  vector_bytes = 16

  def native(self, op: Ops, dtype: DType) -> bool:
    return True

  def render(self, name: str, uops: Sequence[UOp]) -> str:
    self.check(name, uops)
    return program.dump(uops)

  def compile(self, source: str, name: str) -> bytes:
    return source.encode()
