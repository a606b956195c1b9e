"""AMD GPUs: a kernel in a relocatable code object (version 5), as LLVM's AMDGPU back end makes it.

The kernel takes its buffers' addresses, then its int32 values, in the kernarg segment, and nothing else: no hidden
arguments, no dispatch packet, no stack where registers suffice. Addresses in device memory are a buffer's base, which
is uniform, plus an unsigned 32-bit offset wherever the buffer's size allows: the form that `global_load` has.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

from tinyhw.arch import Arch
from tinyhw.arch.gfx1100 import GFX1100
from tinyhw.compile.render import objects
from tinyhw.compile.render.base import block_size, grid_size
from tinyhw.compile.render.llvm import LLVMRenderer, LLVMWriter, memory_type, register_type
from tinyhw.compile.units import unit_named, units_of
from tinyhw.ir.dtype import AddressSpace, DType, PtrDType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

TRIPLE = "amdgcn-amd-amdhsa"
# 16-bit values in whole registers: halves of registers are a form that older assemblers of the same chips do not know.
FEATURES = "-real-true16"
CODE_OBJECT_VERSION = 500         # LLVM's module flag: the version times 100
IMMEDIATE = 4096                  # bytes: the least that is too far for the offset in a global memory instruction
# Bases behind a parameter that a kernel has at most: each is in two scalar registers all the time.
FARTHEST = 16
LONGEST_VECTOR = 16               # elements
LOCAL, GLOBAL = 3, 1              # LLVM's numbers of the address spaces
# What the kernel does not ask of the runtime; the names are those of LLVM's AMDGPUUsage.
UNNEEDED = ("dispatch-ptr", "queue-ptr", "implicitarg-ptr", "dispatch-id", "lds-kernel-id", "completion-action",
            "default-queue", "heap-ptr", "hostcall-ptr", "multigrid-sync-arg")
# Native where the chip's instruction, as LLVM calls it, is within 2 units in the last place.
NATIVE = {(op, dtype) for op in (Ops.EXP2, Ops.LOG2) for dtype in (dtypes.float32, dtypes.float16)}


class AMDGCNRenderer(LLVMRenderer):
  """Compiles for one GPU at LLVM's `optimization` level."""
  threads = True
  local = True
  vector_bytes = 16
  speculates = True

  def __init__(self, arch: Arch = GFX1100, optimization: int = 2) -> None:
    super().__init__(optimization)
    self.arch, self.target = arch, arch.name
    self._processor = objects.Processor(TRIPLE, arch.name, FEATURES, as_written=True)
    self.units = units_of(arch)
    self.max_block, self.max_local = arch.workgroup_limit, arch.lds_per_workgroup

  @property
  def processor(self) -> objects.Processor: return self._processor

  def native(self, op: Ops, dtype: DType) -> bool:
    return super().native(op, dtype) or (op, dtype.scalar) in NATIVE

  def pointer_argument(self, number: int) -> str:
    return f"ptr addrspace({GLOBAL}) noalias noundef nonnull align 16 %data{number}"

  def pointer_type(self, dtype: PtrDType) -> str:
    return f"ptr addrspace({LOCAL if dtype.space is AddressSpace.LOCAL else GLOBAL})"

  def special(self, writer: LLVMWriter, u: UOp) -> str:
    if u.arg.size == 1: return "0"
    kind, axis = ("workgroup" if u.arg.name[0] == "g" else "workitem"), "xyz"[int(u.arg.name[-1])]
    return writer.intrinsic("i32", f"amdgcn.{kind}.id.{axis}", attribute=f"range(i32 0, {u.arg.size}) ")

  def half(self, writer: LLVMWriter, x: str, source: str, target: str) -> str:
    # fptrunc of a product would become v_fma_mixlo_f16 with +0 as addend (LLVM 22), and -0 be lost; fptrunc.round ends
    # the process where its result is in one of the upper 128 registers.
    return writer.intrinsic("half", "experimental.constrained.fptrunc.f16.f32", ("float", x),
                            ("metadata", '!"round.tonearest"'), ("metadata", '!"fpexcept.ignore"'))

  def matrix(self, writer: LLVMWriter, u: UOp) -> str:
    unit = unit_named(u.arg)
    operands: list[tuple[str, str]] = []
    for i, s in enumerate(u.src):
      kind, value = register_type(s.dtype), writer.value(s)
      if i < 2 and unit.signs: operands.append(("i1", "true"))
      if i < 2 and unit.word: kind, value = unit.word, writer.new(f"bitcast {kind} {value} to {unit.word}")
      operands.append((kind, value))
    for argument in unit.rest.split(", ")[1:]:
      kind, value = argument.split(" ")
      operands.append((kind, value))
    kinds, listed = ", ".join(k for k, _ in operands), ", ".join(f"{k} {x}" for k, x in operands)
    name, result = f"@llvm.amdgcn.{unit.name}", register_type(u.dtype)
    writer.declarations[f"declare {result} {name}({kinds})"] = None
    return writer.new(f"call {result} {name}({listed})")

  def barrier(self, writer: LLVMWriter, u: UOp) -> None:
    # Where only local memory was written, only its accesses need to be done before the others go on.
    pointers = [s.src[0].src[0] for s in u.src if s.op is Ops.STORE]
    only = ", !mmra !0" if 0 < len(pointers) == len(u.src) and all(p.op is Ops.DEFINE_LOCAL for p in pointers) else ""
    writer.line(f'fence syncscope("workgroup") release{only}')
    writer.intrinsic("void", "amdgcn.s.barrier")
    writer.line(f'fence syncscope("workgroup") acquire{only}')

  def address(self, writer: LLVMWriter, pointer: UOp, index: UOp, gate: str | None) -> str:
    kind = pointer.dtype
    assert isinstance(kind, PtrDType)
    size, base = kind.base.itemsize, f"{self.pointer_type(kind)} {writer.value(pointer)}"
    if kind.size < 0 or kind.size * size >= 1 << 31: return super().address(writer, pointer, index, gate)
    # A constant part goes into the instruction. Where the gate is False it is the index: it must be in the buffer.
    index, plus = split(index, kind.size if gate is None else kind.size - LONGEST_VECTOR)
    i = writer.value(index)
    if gate is not None: i = writer.new(f"select i1 {gate}, i32 {i}, i32 0")
    # The element is inside of the buffer, so the offset in bytes does not wrap.
    offset = i if size == 1 else writer.new(f"mul nuw nsw i32 {i}, {size}")
    if kind.space is AddressSpace.LOCAL:
      address, near = writer.new(f"getelementptr inbounds i8, {base}, i32 {offset}"), plus * size
    else:
      if far := plus * size & -IMMEDIATE:
        if (moved := self._moved(writer, pointer, far)) is not None: base = moved
        else: offset = writer.new(f"add nuw nsw i32 {offset}, {far}")
      address = writer.new(f"getelementptr inbounds i8, {base}, i64 {writer.new(f'zext nneg i32 {offset} to i64')}")
      near = plus * size - far
    if not near: return address
    return writer.new(f"getelementptr inbounds i8, {self.pointer_type(kind)} {address}, i32 {near}")

  def _moved(self, writer: LLVMWriter, pointer: UOp, far: int) -> str | None:
    """A base so many bytes behind a parameter, which accesses of loops add their 32-bit offset to by themselves. LLVM
    takes a constant out of an offset, and adds it to 64-bit addresses of each lane; it does not look through this."""
    if pointer.op is not Ops.DEFINE_GLOBAL or not isinstance(pointer.dtype, PtrDType) or not writer.loops: return None
    kind, name = self.pointer_type(pointer.dtype), f"%far.{pointer.arg}.{far}"
    if name not in writer.first:
      if len(writer.first) >= 2 * FARTHEST: return None
      hide = f"llvm.launder.invariant.group.p{GLOBAL}"
      writer.declarations[f"declare {kind} @{hide}({kind})"] = None
      writer.first[f"{name}.plain"] = f"getelementptr i8, {kind} %data{pointer.arg}, i32 {far}"
      writer.first[name] = f"call {kind} @{hide}({kind} {name}.plain)"
    return f"{kind} {name}"

  def function(self, name: str, uops: Sequence[UOp], arguments: list[str], body: str, declarations: list[str]) -> str:
    block, grid = block_size(uops), grid_size(uops)
    threads = math.prod(block)
    unneeded = [*UNNEEDED, *(f"workgroup-id-{a}" for a, n in zip("xyz", grid) if n == 1),
                *(f"workitem-id-{a}" for a, n in zip("xyz", block) if n == 1)]
    attributes = " ".join([f'"amdgpu-flat-work-group-size"="{threads},{threads}"', '"uniform-work-group-size"="true"',
                           *(f'"amdgpu-no-{what}"' for what in unneeded)])
    shared = [f"@{name}.{u.arg} = internal unnamed_addr addrspace({LOCAL}) global "
              f"[{u.dtype.size} x {memory_type(u.dtype.base)}] poison, align 16"
              for u in uops if u.op is Ops.DEFINE_LOCAL and isinstance(u.dtype, PtrDType)]
    return "\n".join([
      *shared, f"define amdgpu_kernel void @{name}({', '.join(arguments)}) nounwind #0 !reqd_work_group_size !1 {{",
      "entry:", body, "}", *declarations, f"attributes #0 = {{ {attributes} }}", "!llvm.module.flags = !{!2}",
      '!0 = !{!"amdgpu-synchronize-as", !"local"}', f"!1 = !{{{', '.join(f'i32 {n}' for n in block)}}}",
      f'!2 = !{{i32 1, !"amdhsa_code_object_version", i32 {CODE_OBJECT_VERSION}}}', ""])


def split(index: UOp, limit: int) -> tuple[UOp, int]:
  """The index as the sum of one that is not negative and a constant of at most `limit`."""
  constant = 0
  while index.op is Ops.ADD and (by := index.src[1]).op is Ops.CONST and index.src[0].vmin >= 0:
    if not 0 <= constant + by.arg <= limit: break
    index, constant = index.src[0], constant + int(by.arg)
  return index, constant
