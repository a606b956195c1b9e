"""Metal Shading Language, for Apple's GPUs. Nobody has compiled these texts: they are checked for their form.

There are no doubles. Division and square root are exact, and NaN and infinities kept, where the library is made with
`MTLMathMode.safe` (formerly `fastMathEnabled = false`); functions such as EXP2 are Metal's precise ones.
"""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.compile.render.cfamily import CFamilyRenderer, Language
from tinyhw.ir.dtype import AddressSpace, DType, PtrDType
from tinyhw.ir.ops import Ops

FUNCTIONS = {Ops.EXP2: "exp2", Ops.EXP: "exp", Ops.LOG2: "log2", Ops.LOG: "log", Ops.LOG10: "log10", Ops.SIN: "sin",
             Ops.COS: "cos", Ops.TANH: "tanh", Ops.POW: "pow", Ops.FMOD: "fmod"}


class Metal(Language):
  """Metal Shading Language 3."""
  name = "Metal"
  types = {"bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int",
           "uint32": "uint", "int64": "long", "uint64": "ulong", "float32": "float"}
  half = "half"
  prologue = "#include <metal_stdlib>\n#pragma METAL fp contract(off)\nusing namespace metal;\n"
  space = {AddressSpace.GLOBAL: "device", AddressSpace.LOCAL: "threadgroup"}
  indices = {"g": "int(group.{axis})", "l": "int(item.{axis})"}
  barrier = "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);"
  fma, sqrt, trunc = "fma", "precise::sqrt", "trunc"
  functions = {op: f"precise::{name}" for op, name in FUNCTIONS.items()}
  suffixes = {"float32": "f", "uint32": "u", "int64": "l", "uint64": "ul"}
  counts = frozenset({2, 4})
  make = "{name}({lanes})"

  def vector_name(self, dtype: DType) -> str: return f"{self.stored(dtype.scalar)}{dtype.count}"
  def bits(self, x: str, source: DType, target: DType) -> str: return f"as_type<{self.word(target)}>({x})"
  def bits_function(self, source: DType, target: DType) -> str: return ""

  def buffer(self, number: int, dtype: PtrDType, written: bool) -> str:
    return f"device {'' if written else 'const '}{self.stored(dtype.base)}* data{number} [[buffer({number})]]"

  def value(self, number: int) -> str: return f"constant int& value{number}"

  def array(self, name: str, dtype: PtrDType) -> str:
    return f"alignas(16) threadgroup {self.stored(dtype.base)} {name}[{dtype.size}];"

  def whole(self, name: str, block: tuple[int, int, int], parameters: Sequence[str], body: Sequence[str]) -> str:
    bound = [p if "[[" in p else f"{p} [[buffer({i})]]" for i, p in enumerate(parameters)]
    bound += ["uint3 group [[threadgroup_position_in_grid]]", "uint3 item [[thread_position_in_threadgroup]]"]
    return super().whole(name, block, bound, body)

  def head(self, block: tuple[int, int, int]) -> str:
    return f"[[max_total_threads_per_threadgroup({block[0] * block[1] * block[2]})]] kernel void"


class MetalRenderer(CFamilyRenderer):
  """For any of Apple's GPUs, within the limits that every one has."""
  target = "metal"
  threads = local = True
  tile = 4
  vector_bytes = 16
  max_block = 1024
  max_local = 32 * 1024
  language = Metal()

  def compile(self, source: str, name: str) -> bytes: return source.encode()
