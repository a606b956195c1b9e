"""Programs for the host processor: ELF objects of `void NAME(ptr buffer0, ..., i32 variable0, ...)`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyhw.compile.program import Dim3
from tinyhw.compile.render.llvm import LLVMRenderer, Writer
from tinyhw.ir.dtype import DType
from tinyhw.ir.uop import Ops, UOp


class HostRenderer(LLVMRenderer):
  """The processor this process runs on, with all of its vector extensions.

  Products and sums are not fused, so results equal those of the NumPy device bit for bit where the order of operations
  is the same.
  """
  target = "host"
  tile = 4

  @property
  def triple(self) -> str:                     # type: ignore[override]
    """The process's own."""
    import llvmlite.binding as llvm
    return str(llvm.get_process_triple())

  @property
  def key(self) -> str: return f"host O{self.opt_level}"

  def native(self, op: Ops, dtype: DType) -> bool: return False

  def make_machine(self) -> Any:
    import llvmlite.binding as llvm
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(self.triple).create_target_machine(
      cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=self.opt_level, reloc="pic",
      codemodel="jitdefault", jit=True)

  def special(self, u: UOp, w: Writer) -> None:
    raise ValueError(f"{u.op.name} on the host, which has one thread")

  def function(self, name: str, uops: Sequence[UOp], body: Writer, block: Dim3) -> list[str]:
    buffers = sorted((u for u in uops if u.op is Ops.DEFINE_GLOBAL), key=lambda u: int(u.arg))
    variables = sorted((u for u in uops if u.op is Ops.DEFINE_VAR), key=lambda u: str(u.arg.name))
    parameters = [f"ptr noalias align 16 {body[u]}" for u in buffers] + [f"i32 {body[u]}" for u in variables]
    return [f"define void @{name}({', '.join(parameters)}) nounwind {{", *body.lines, "}"]


