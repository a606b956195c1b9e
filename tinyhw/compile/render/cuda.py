"""CUDA C++, which nvcc or nvrtc compiles to PTX. The text includes nothing.

What NVIDIA's compilers would contract or approximate by an option of theirs is written as the function that is always
rounded once (`__fmul_rn`, `__fdiv_rn`), so a build's options do not matter.
"""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tinyhw.compile.nvidia import nvrtc
from tinyhw.compile.render.cfamily import C_TYPES, CFamilyRenderer, CWriter, Language
from tinyhw.compile.render.nvidia import NVIDIARenderer
from tinyhw.compile.units import unit_named
from tinyhw.core import scratch
from tinyhw.core.errors import DecodeError, DeviceError, MissingTool
from tinyhw.core.written import save
from tinyhw.ir.dtype import AddressSpace, DType, PtrDType, dtypes
from tinyhw.ir.uop import UOp

_OPTIONS = ("-std=c++17", "-w")
WORDS = {"int32": "int", "uint32": "uint", "float32": "float", "int64": "longlong", "uint64": "longlong",
         "float64": "double"}
FROM_HALF = """{f}float from_half(unsigned short x) {{
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}}
"""
TO_HALF = """{f}unsigned short to_half(float x) {{
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}}
"""


class CUDA(Language):
  """CUDA C++."""
  name = "CUDA C++"
  types = {**C_TYPES, "bool": "bool"}
  function = "static __device__ __forceinline__ "
  space = {AddressSpace.GLOBAL: "", AddressSpace.LOCAL: "__shared__"}
  restrict = "__restrict__"
  indices = {"g": "blockIdx.{axis}", "l": "threadIdx.{axis}"}
  barrier = "__syncthreads();"
  fma, sqrt, trunc = "fma{f}", "sqrt{f}", "trunc{f}"
  counts = frozenset({2, 4, 8, 16})
  vector = "struct __align__({alignment}) {name} {{ {scalar} lane[{count}]; }};"
  make, lane = "{name}{{{{{lanes}}}}}", "{vector}.lane[{lane}]"
  helpers = {**Language.helpers, "from_half": FROM_HALF, "to_half": TO_HALF}

  def bits(self, x: str, source: DType, target: DType) -> str:
    if dtypes.uint64 in (source, target):
      if target.is_float: return f"__longlong_as_double((long long)({x}))"
      return f"(unsigned long long)__double_as_longlong({x})"
    return f"__{WORDS[source.name]}_as_{WORDS[target.name]}({x})"

  def bits_function(self, source: DType, target: DType) -> str: return ""

  def multiply(self, a: str, b: str, dtype: DType) -> str: return f"__{letter(dtype)}mul_rn({a}, {b})"
  def divide(self, a: str, b: str, dtype: DType) -> str: return f"__{letter(dtype)}div_rn({a}, {b})"
  def root(self, x: str, dtype: DType) -> str: return f"__{letter(dtype)}sqrt_rn({x})"

  def head(self, block: tuple[int, int, int]) -> str:
    return f'extern "C" __global__ void __launch_bounds__({block[0] * block[1] * block[2]})'

  def array(self, name: str, dtype: PtrDType) -> str:
    return f"__shared__ __align__(16) {self.stored(dtype.base)} {name}[{dtype.size}];"

  def elements(self, pointer: str, index: str, word: str, space: AddressSpace, written: bool) -> str:
    return f"*({'' if written else 'const '}{word}*)({pointer} + {index})"


def letter(dtype: DType) -> str:
  """What CUDA's functions of a float (f) and of a double (d) begin with."""
  return "f" if dtype is dtypes.float32 else "d"


class CUDAWriter(CWriter):
  """Matrix units, beside what is C's."""

  def matrix(self, u: UOp) -> None:
    """WMMA as PTX's mma, whose registers have two halves or four bytes each."""
    _, form, row, column, kind = unit_named(u.arg).name.replace(".f32.f32", ".f16").split(".")
    whole = u.dtype.scalar is dtypes.int32
    result, letter_ = ("s32", "r") if whole else ("f32", "f")
    registers = [self.registers_of(s) for s in u.src[:2]]
    names = [f"v{len(self.names)}_{i}" for i in range(u.dtype.count)]
    self.names[u], self.lanes[u] = "", names
    self.line(f"{self.language.word(u.dtype.scalar)} {', '.join(names)};")
    places = iter(range(2 * u.dtype.count + sum(map(len, registers))))
    def group(count: int) -> str: return "{" + ", ".join(f"%{next(places)}" for _ in range(count)) + "}"
    operands = ", ".join(group(n) for n in (u.dtype.count, *map(len, registers), u.dtype.count))
    out = ", ".join(f'"={letter_}"({x})' for x in names)
    given = [*(f'"r"({x})' for part in registers for x in part), *(f'"{letter_}"({x})' for x in self.lanes[u.src[2]])]
    word = f"mma.sync.aligned.{form}.{row}.{column}.{result}.{kind}.{kind}.{result}"
    self.line(f'asm volatile("{word} {operands};" : {out} : {", ".join(given)});')

  def registers_of(self, u: UOp) -> list[str]:
    """A lane's numbers as registers of 32 bits."""
    bits, lanes = u.dtype.scalar.bits, self.lanes[u]
    each, mask = 32 // bits, (1 << bits) - 1
    return [self.named(dtypes.uint32, " | ".join(f"((unsigned int)({lanes[i + j]}) & {mask}u) << {bits * j}"
                                                 for j in range(each))) for i in range(0, len(lanes), each)]


class CUDARenderer(NVIDIARenderer, CFamilyRenderer):
  """For one compute capability."""
  kind = "cuda"
  language = CUDA()
  writer = CUDAWriter

  def compile(self, source: str, name: str) -> bytes:
    """PTX, by the nvcc of `PATH`, else by nvrtc."""
    where = f"kernel {name}"
    if (nvcc := shutil.which("nvcc")) is None:
      if nvrtc.find() is None:
        raise MissingTool("there is no nvcc and no nvrtc", where="CUDA", hint=f"{nvrtc.HINT}; target ptx needs none")
      try: return self.loadable(nvrtc.compiled(source.encode(), self.capability, options=_OPTIONS)[0])
      except DecodeError as error: raise DeviceError(str(error), where=where) from None
    with scratch.folder("tinyhw-") as folder:
      text, out = Path(folder) / "kernel.cu", Path(folder) / "kernel.ptx"
      save(text, source)
      made = subprocess.run([nvcc, "--ptx", *_OPTIONS, f"-arch={self.capability}", "-o", str(out), str(text)],
                            capture_output=True)
      if made.returncode == 0 and out.exists(): return self.loadable(out.read_bytes())
    said = " ".join((made.stderr + made.stdout).decode(errors="replace").split())[:2000]
    raise DeviceError(f"nvcc refuses the source: {said}", where=where)
