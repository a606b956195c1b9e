"""The host processor: a kernel is `void NAME(ptr buffer0, ..., i32 value0, ...)` in an object file.

All loops, also those over the output, are inside the function: a launch is one call. The buffers of a launch do not
overlap. The object needs nothing from outside but memset and memcpy, which LLVM may call, and the C library's functions
of numbers where a processor has no instruction (`fma`, `trunc`): all of them exact.

Values do not depend on the processor. So MULACC is fused on all (of halves on none).
"""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.compile.render import objects
from tinyhw.compile.render.llvm import LLVMRenderer, Writer, scalar_type
from tinyhw.core.host import Host
from tinyhw.ir.dtype import DType
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp


class HostRenderer(LLVMRenderer):
  """Compiles for the processor of this process (`host`: one of its levels), at LLVM's `optimization` level."""
  target = "host"
  vector_bytes = 32
  tile = 8
  refused = frozenset({Ops.SPECIAL, Ops.DEFINE_LOCAL, Ops.BARRIER})

  def __init__(self, optimization: int = 2, host: Host | None = None) -> None:
    super().__init__(optimization)
    self.host = host or objects.host()
    self._processor = objects.Processor(self.host.triple, self.host.cpu)

  @property
  def key(self) -> str: return f"{super().key} {self.host}"

  @property
  def processor(self) -> objects.Processor: return self._processor

  def pointer_argument(self, number: int) -> str:
    return f"ptr noalias noundef nonnull align 16 %data{number}"

  def multiply_add(self, writer: Writer, dtype: DType, x: Sequence[str]) -> str:
    t = scalar_type(dtype)
    if dtype.bits == 16: return writer.new(f"fadd {t} {writer.new(f'fmul {t} {x[0]}, {x[1]}')}, {x[2]}")
    return writer.intrinsic(t, f"fma.f{dtype.bits}", *((t, y) for y in x))

  def function(self, name: str, uops: Sequence[UOp], arguments: list[str], body: str, declarations: list[str]) -> str:
    head = f"define void @{name}({', '.join(arguments)}) nounwind {{"
    return "\n".join([head, "entry:", body, "}", *declarations, self.host.functions])
