"""The host processor: a kernel is `void NAME(ptr buffer0, ..., i32 value0, ...)` in an object file.

All loops, also those over the output, are inside the function: a launch is one call. The buffers of a launch do not
overlap. The object needs nothing from outside but memset and memcpy, which LLVM may call.
"""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.compile.render import objects
from tinyhw.compile.render.llvm import LLVMRenderer
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp


class HostRenderer(LLVMRenderer):
  """Compiles for the processor of this process with all that it can do, at LLVM's `optimization` level."""
  target = "host"
  vector_bytes = 32
  tile = 8
  refused = frozenset({Ops.SPECIAL, Ops.DEFINE_LOCAL, Ops.BARRIER})

  @property
  def processor(self) -> objects.Processor: return objects.host()

  def pointer_argument(self, number: int) -> str:
    return f"ptr noalias noundef nonnull align 16 %data{number}"

  def function(self, name: str, uops: Sequence[UOp], arguments: list[str], body: str, declarations: list[str]) -> str:
    head = f"define void @{name}({', '.join(arguments)}) nounwind {{"
    return "\n".join([head, "entry:", body, "}", *declarations, ""])
