"""Programs for AMD GPUs: code objects of LLVM's amdgcn-amd-amdhsa target, made through llvmlite without a linker.

The result is a relocatable ELF with the machine code, the kernel descriptor `NAME.kd` and the metadata note; the loader
applies its one relocation (the entry's distance in the descriptor). Source: LLVM's AMDGPUUsage.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyhw.arch.base import Arch
from tinyhw.compile.program import Dim3
from tinyhw.compile.render.llvm import LLVMRenderer, Writer, memory_name
from tinyhw.ir.dtype import AddressSpace, DType, PtrDType, dtypes
from tinyhw.ir.uop import Ops, UOp

_SPACE = {AddressSpace.GLOBAL: 1, AddressSpace.LOCAL: 3}
# What the programs do not use, said to the code generator: without the passes of higher levels it would prepare it all.
_UNUSED = ("dispatch-ptr", "queue-ptr", "implicitarg-ptr", "dispatch-id", "lds-kernel-id", "hostcall-ptr", "heap-ptr",
           "default-queue", "completion-action", "multigrid-sync-arg", "flat-scratch-init")


class AMDGCNRenderer(LLVMRenderer):
  """An AMD GPU generation. Products and sums are fused (v_fma): one rounding less than on the host."""
  triple = "amdgcn-amd-amdhsa"
  threads = True
  local = True
  tile = 4
  fused = True

  def __init__(self, arch: Arch | None = None, opt_level: int = 2) -> None:
    super().__init__(opt_level)
    if arch is None:
      from tinyhw.arch.gfx1100 import GFX1100
      arch = GFX1100
    self.target, self.max_block, self.max_local = arch.name, arch.workgroup_limit, arch.lds_per_workgroup

  @property
  def key(self) -> str: return f"{self.target} O{self.opt_level}"

  def native(self, op: Ops, dtype: DType) -> bool:
    # v_exp_f32 and v_log_f32, with LLVM's care for subnormals, are within 1 ulp; v_sin_f32 has an absolute error only.
    if op in (Ops.EXP2, Ops.LOG2): return dtype is dtypes.float32
    return op is Ops.CAST

  def make_machine(self) -> Any:
    import llvmlite.binding as llvm
    llvm.initialize_all_targets()        # llvmlite has no call for one target; this costs a few milliseconds
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(self.triple).create_target_machine(
      cpu=self.target, opt=self.opt_level, reloc="pic", codemodel="default")

  def pointer_type(self, dtype: DType) -> str:
    assert isinstance(dtype, PtrDType)
    return f"ptr addrspace({_SPACE[dtype.space]})"

  def address(self, index: UOp, w: Writer) -> str:
    """As 32-bit byte offsets from the buffer where they fit: global memory instructions add those to a scalar base."""
    pointer, element = index.src[:2]
    assert isinstance(pointer.dtype, PtrDType)
    if pointer.dtype.space is AddressSpace.LOCAL:
      kind = memory_name(pointer.dtype.base)
      return w.new(f"getelementptr inbounds {kind}, ptr addrspace(3) {w[pointer]}, i32 {w[element]}")
    if not self.is_flat(index): return super().address(index, w)
    scale = pointer.dtype.base.itemsize
    gated = len(index.src) > 2
    base, extra = self.split(element) if not gated else (element, 0)
    if base.vmin < 0 and not gated: return super().address(index, w)
    number = w[base]
    if gated: number = w.new(f"select i1 {w[index.src[2]]}, i32 {number}, i32 0")
    if scale > 1: number = w.new(f"shl nuw nsw i32 {number}, {scale.bit_length() - 1}")
    wide = w.new(f"zext i32 {number} to i64")
    step = "getelementptr inbounds i8, ptr addrspace(1)"
    address = w.new(f"{step} {w[pointer]}, i64 {wide}")
    return w.new(f"{step} {address}, i64 {extra * scale}") if extra else address

  def special(self, u: UOp, w: Writer) -> None:
    if u.op is Ops.BARRIER:
      w.add('fence syncscope("workgroup") release')
      w.add(w.call("llvm.amdgcn.s.barrier", "void", []))
      w.add('fence syncscope("workgroup") acquire')
      return
    kind = "workgroup" if u.arg.name[0] == "g" else "workitem"
    name = f"llvm.amdgcn.{kind}.id.{'xyz'[int(u.arg.name[-1])]}"
    w.add(f"{w[u]} = {w.call(name, 'i32', [], f'range(i32 0, {u.arg.size}) ')}")

  def function(self, name: str, uops: Sequence[UOp], body: Writer, block: Dim3) -> list[str]:
    buffers = sorted((u for u in uops if u.op is Ops.DEFINE_GLOBAL), key=lambda u: int(u.arg))
    variables = sorted((u for u in uops if u.op is Ops.DEFINE_VAR), key=lambda u: str(u.arg.name))
    parameters = [f"ptr addrspace(1) noalias align 16 {body[u]}" for u in buffers]
    parameters += [f"i32 {body[u]}" for u in variables]
    memories = []
    for i, u in enumerate(v for v in uops if v.op is Ops.DEFINE_LOCAL):
      assert isinstance(u.dtype, PtrDType)
      symbol = f"@{name}.local{i}"
      memories.append(f"{symbol} = internal addrspace(3) global [{u.dtype.size} x {memory_name(u.dtype.base)}] poison, "
                      "align 16")
      body.lines = [line.replace(f"{body[u]},", f"{symbol},") for line in body.lines]
    items = block[0] * block[1] * block[2]
    attributes = [f'"amdgpu-flat-work-group-size"="{items},{items}"', '"uniform-work-group-size"="true"', "nounwind",
                  *(f'"amdgpu-no-{what}"' for what in _UNUSED)]
    return [*memories, f"define amdgpu_kernel void @{name}({', '.join(parameters)}) #0 !reqd_work_group_size !1 {{",
            *body.lines, "}", f"attributes #0 = {{ {' '.join(attributes)} }}", "!llvm.module.flags = !{!0}",
            '!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}',
            f"!1 = !{{i32 {block[0]}, i32 {block[1]}, i32 {block[2]}}}"]
