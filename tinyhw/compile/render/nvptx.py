"""NVIDIA GPUs: a kernel as PTX text, as LLVM's NVPTX back end writes it. (`render.ptx` writes it without LLVM.)

The meanings are those of `render.llvm`, which the host and the AMD GPUs share, so PTX needs none of its own. Every
multiplication says its rounding (`.rn`): what says none, NVIDIA's assembler may contract.
"""
from __future__ import annotations

import re
from collections.abc import Sequence

from tinyhw.compile.render import objects
from tinyhw.compile.render.base import block_size
from tinyhw.compile.render.llvm import LLVMRenderer, LLVMWriter, memory_type, register_type, suffix
from tinyhw.compile.render.nvidia import Assembler, NVIDIARenderer
from tinyhw.ir.dtype import AddressSpace, DType, PtrDType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

TRIPLE = "nvptx64-nvidia-cuda"
GLOBAL, LOCAL = 1, 3              # LLVM's numbers of the address spaces
# LLVM 20 renamed the barrier of all threads of a block.
BARRIER = "nvvm.barrier.cta.sync.aligned.all"


# Units that LLVM has no intrinsic of (up to 22), as PTX.
_AS_TEXT: dict[str, str] = {"mma.m16n8k32.row.col.e4m3": "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"}


def _as_text(unit: str, results: int, operands: int) -> str:
  """An instruction of f32 results and of 32-bit operands, but for the last ones, which are like the results."""
  places = iter(range(results + operands))
  counts = results, 4, operands - results - 4, results
  groups = ["{" + ", ".join(f"${next(places)}" for _ in range(n)) + "}" for n in counts]
  kinds = ["=f"] * results + ["r"] * (operands - results) + ["f"] * results
  return f'asm "{_AS_TEXT[unit]} {", ".join(groups)};", "{",".join(kinds)}"'


class NVPTXRenderer(NVIDIARenderer, LLVMRenderer):
  """Compiles for one compute capability (`sm_80`) at LLVM's `optimization` level."""
  kind = "nvptx"

  def __init__(self, capability: str = "sm_80", assembler: Assembler | None = None, optimization: int = 2) -> None:
    super().__init__(capability, assembler)
    self.optimization = optimization
    # `mma` of floats of 8 bits came to PTX with its version 8.4; LLVM's own choice is the first that has the processor.
    ada = 89 <= int(re.sub(r"(?a)\D", "", capability)) < 100
    self._processor = objects.Processor(TRIPLE, capability, "+ptx84" if ada else "")

  @property
  def key(self) -> str: return f"{super().key} O{self.optimization}"

  @property
  def processor(self) -> objects.Processor: return self._processor

  def pointer_argument(self, number: int) -> str:
    return f"ptr addrspace({GLOBAL}) noalias noundef nonnull align 16 %data{number}"

  def pointer_type(self, dtype: PtrDType) -> str:
    return f"ptr addrspace({LOCAL if dtype.space is AddressSpace.LOCAL else GLOBAL})"

  def special(self, writer: LLVMWriter, u: UOp) -> str:
    if u.arg.size == 1: return "0"
    register, axis = ("ctaid" if u.arg.name[0] == "g" else "tid"), "xyz"[int(u.arg.name[-1])]
    return writer.intrinsic("i32", f"nvvm.read.ptx.sreg.{register}.{axis}", attribute=f"range(i32 0, {u.arg.size}) ")

  def multiply_add(self, writer: LLVMWriter, dtype: DType, x: Sequence[str]) -> str:
    t = register_type(dtype)
    return writer.intrinsic(t, f"fma.{suffix(dtype)}", *((t, y) for y in x))

  def matrix(self, writer: LLVMWriter, u: UOp) -> str:
    # The instruction takes registers of 32 bits: pairs of halves, or of bfloat16 as integers.
    a, b, c = u.src
    pair = "<2 x half>" if a.dtype.scalar is dtypes.float16 else "i32"
    number = register_type(c.dtype.scalar)
    operands: list[tuple[str, str]] = []
    for s in (a, b):
      n = s.dtype.itemsize // 4
      whole = writer.new(f"bitcast {register_type(s.dtype)} {writer.value(s)} to <{n} x i32>")
      for i in range(n):
        part = writer.new(f"extractelement <{n} x i32> {whole}, i32 {i}")
        operands.append((pair, part if pair == "i32" else writer.new(f"bitcast i32 {part} to {pair}")))
    count, kind = c.dtype.count, register_type(c.dtype)
    operands += [(number, writer.new(f"extractelement {kind} {writer.value(c)}, i32 {i}")) for i in range(count)]
    structure = f"{{ {', '.join([number] * count)} }}"
    if u.arg in _AS_TEXT: function = _as_text(u.arg, count, len(operands))
    else:
      function = f"@llvm.nvvm.{u.arg}"
      writer.declarations[f"declare {structure} {function}({', '.join(t for t, _ in operands)})"] = None
    found = writer.new(f"call {structure} {function}({', '.join(f'{t} {x}' for t, x in operands)})")
    result = "poison"
    for i in range(count):
      lane = writer.new(f"extractvalue {structure} {found}, {i}")
      result = writer.new(f"insertelement {kind} {result}, {number} {lane}, i32 {i}")
    return result

  def barrier(self, writer: LLVMWriter, u: UOp) -> None:
    writer.intrinsic("void", BARRIER, ("i32", "0"))

  def function(self, name: str, uops: Sequence[UOp], arguments: list[str], body: str, declarations: list[str]) -> str:
    block = block_size(uops)
    shared = [f"@{name}.{u.arg} = internal addrspace({LOCAL}) global "
              f"[{u.dtype.size} x {memory_type(u.dtype.base)}] poison, align 16"
              for u in uops if u.op is Ops.DEFINE_LOCAL and isinstance(u.dtype, PtrDType)]
    return "\n".join([*shared, f"define ptx_kernel void @{name}({', '.join(arguments)}) nounwind #0 {{", "entry:", body,
                      "}", *declarations, f'attributes #0 = {{ "nvvm.reqntid"="{",".join(map(str, block))}" }}', ""])

  def compile(self, source: str, name: str) -> bytes:
    return self.loadable(objects.emit(source, name, self.processor, self.optimization, text=True))
