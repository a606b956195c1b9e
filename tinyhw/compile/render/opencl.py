"""OpenCL C: what the runtime hands to an OpenCL driver, which compiles it itself.

The text is of OpenCL C 1.2, with double where the device has it. Division and square root of floats are exact: by the
build's option where the device has that (`exact`), else by way of double; a device without either gives them within
2.5 and 3 units in the last place, as the standard has it. Functions such as EXP are computed in double as everywhere;
without it they are the device's own, which the standard lets be off by up to 16 units (POW). Halves have no arithmetic
of their own here: not every driver's is exact.
"""
from __future__ import annotations

from tinyhw.compile.render.cfamily import CFamilyRenderer, Language
from tinyhw.ir.dtype import AddressSpace, DType, dtypes
from tinyhw.ir.ops import Ops

TYPES = {"bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int",
         "uint32": "uint", "int64": "long", "uint64": "ulong", "float32": "float"}


# Of float32, on devices without doubles.
FUNCTIONS = {Ops.EXP2: "exp2", Ops.EXP: "exp", Ops.EXPM1: "expm1", Ops.LOG2: "log2", Ops.LOG: "log", Ops.LOG10: "log10",
             Ops.LOG1P: "log1p", Ops.SIN: "sin", Ops.COS: "cos", Ops.TANH: "tanh", Ops.POW: "pow", Ops.FMOD: "fmod"}


class OpenCLC(Language):
  """OpenCL C 1.2."""
  name = "OpenCL C"
  types = TYPES
  prologue = "#pragma OPENCL FP_CONTRACT OFF\n"
  function = "static "
  space = {AddressSpace.GLOBAL: "__global", AddressSpace.LOCAL: "__local"}
  indices = {"g": "get_group_id({number})", "l": "get_local_id({number})"}
  barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
  fma, sqrt, trunc = "fma", "sqrt", "trunc"
  suffixes = {"float32": "f", "uint32": "u", "int64": "l", "uint64": "ul"}
  counts = frozenset({2, 4, 8, 16})
  make, lane = "({name})({lanes})", "{vector}.s{hexadecimal}"

  def __init__(self, double: bool = True, exact: bool = True) -> None:
    self.by_double = double and not exact
    self.functions = {} if double else FUNCTIONS
    if double:
      self.types = {**TYPES, "float64": "double"}
      self.prologue = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" + self.prologue

  def vector_name(self, dtype: DType) -> str: return f"{self.stored(dtype.scalar)}{dtype.count}"

  def bits(self, x: str, source: DType, target: DType) -> str: return f"as_{self.word(target)}({x})"

  def bits_function(self, source: DType, target: DType) -> str: return ""

  def head(self, block: tuple[int, int, int]) -> str:
    return f"__kernel __attribute__((reqd_work_group_size{block})) void"

  def divide(self, a: str, b: str, dtype: DType) -> str:
    if dtype is not dtypes.float32 or not self.by_double: return super().divide(a, b, dtype)
    return f"(float)((double){a} / (double){b})"

  def root(self, x: str, dtype: DType) -> str:
    if dtype is not dtypes.float32 or not self.by_double: return super().root(x, dtype)
    return f"(float)sqrt((double){x})"


class OpenCLRenderer(CFamilyRenderer):
  """For one device: with `double`s or without, divisions that are `exact` by its build option, and its limits."""
  target = "opencl"
  threads = local = True
  vector_bytes = 16
  tile = 4

  def __init__(self, double: bool = True, exact: bool = True, max_block: int = 256, max_local: int = 32 * 1024) -> None:
    self.language = OpenCLC(double, exact)
    self.double, self.exact, self.max_block, self.max_local = double, exact, max_block, max_local

  @property
  def key(self) -> str:
    return f"{self.target} double={self.double} exact={self.exact} {self.max_block} {self.max_local}"

  def compile(self, source: str, name: str) -> bytes:
    return source.encode()
