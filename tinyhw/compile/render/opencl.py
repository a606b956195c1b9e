"""OpenCL C: what the runtime hands to an OpenCL driver, which compiles it itself.

The text is of OpenCL C 1.2, with double where the device has it. Division and square root of floats are exact: by the
build's option where the device has that (`exact`), else by way of double; a device without either gives them within
2.5 and 3 units in the last place, as the standard has it. Functions such as EXP are computed in double as everywhere;
without it they are the device's own, which the standard lets be off by up to 16 units (POW). Halves have no arithmetic
of their own here: not every driver's is exact.
"""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.compile.images import shape, wanted
from tinyhw.compile.render.cfamily import CFamilyRenderer, CWriter, Language
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.dtype import AddressSpace, DType, PtrDType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

TYPES = {"bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int",
         "uint32": "uint", "int64": "long", "uint64": "ulong", "float32": "float"}


# Of float32, on devices without doubles.
FUNCTIONS = {Ops.EXP2: "exp2", Ops.EXP: "exp", Ops.EXPM1: "expm1", Ops.LOG2: "log2", Ops.LOG: "log", Ops.LOG10: "log10",
             Ops.LOG1P: "log1p", Ops.SIN: "sin", Ops.COS: "cos", Ops.TANH: "tanh", Ops.POW: "pow", Ops.FMOD: "fmod"}


SAMPLER = "__constant sampler_t pixels = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;\n"


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

  def buffer(self, number: int, dtype: PtrDType, written: bool) -> str:
    if dtype.space is not AddressSpace.IMAGE: return super().buffer(number, dtype, written)
    return f"{'write' if written else 'read'}_only image2d_t data{number}"

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


class OpenCLWriter(CWriter):
  """Images, beside what is C's."""

  def __init__(self, target: OpenCLRenderer, name: str, uops: Sequence[UOp]) -> None:
    super().__init__(target, name, uops)
    self.singles: dict[str, str] = {}         # halves that an image gave -> the floats that they are

  def as_float(self, x: str) -> str: return self.singles.get(x) or super().as_float(x)

  def pixel(self, index: UOp) -> str:
    """Image and coordinates."""
    return f"{self.names[index.src[0]]}, (int2)({', '.join(self.lanes[index.src[1]])})"

  def load(self, u: UOp) -> None:
    index = u.src[0]
    if not is_image(index): return super().load(u)
    self.functions.setdefault("sampler", SAMPLER)
    image, at = self.pixel(index).split(", ", 1)
    self.names[u] = name = f"v{len(self.names)}"
    self.line(f"const float4 {name} = read_imagef({image}, pixels, {at});")
    self.lanes[u] = [f"{name}.s{i}" for i in range(4)]
    if u.dtype.scalar is not dtypes.float16: return None
    # Bits are only made where something wants them; a compiler leaves out the others.
    halves = [self.named(dtypes.float16, super(OpenCLWriter, self).as_half(x)) for x in self.lanes[u]]
    self.singles.update(zip(halves, self.lanes[u]))
    self.lanes[u] = halves
    return None

  def store(self, u: UOp) -> None:
    index, value = u.src[:2]
    if not is_image(index): return super().store(u)
    half = value.dtype.scalar is dtypes.float16
    lanes = ", ".join(self.as_float(x) if half else x for x in self.lanes[value])
    text = f"write_imagef({self.pixel(index)}, (float4)({lanes}));"
    self.line(f"if ({self.value(index.src[2])}) {{ {text} }}" if len(index.src) > 2 else text)
    return None


def is_image(u: UOp) -> bool:
  """Whether a pointer or an INDEX is to an image."""
  return isinstance(u.dtype, PtrDType) and u.dtype.space is AddressSpace.IMAGE


class OpenCLRenderer(CFamilyRenderer):
  """For one device: with `double`s or without, divisions that are `exact` by its build option, and its limits; `images`
  is the largest one that it has, in pixels."""
  target = "opencl"
  threads = local = True
  vector_bytes = 16
  tile = 4

  def __init__(self, double: bool = True, exact: bool = True, max_block: int = 256, max_local: int = 32 * 1024,
               images: tuple[int, int] | None = (16384, 16384)) -> None:
    self.language, self.images = OpenCLC(double, exact), images
    self.double, self.exact, self.max_block, self.max_local = double, exact, max_block, max_local

  @property
  def key(self) -> str:
    return f"{self.target} double={self.double} exact={self.exact} {self.max_block} {self.max_local}" + (
      f" images={self.images}" if wanted() else "")

  def source(self, name: str, uops: Sequence[UOp]) -> str:
    """The text; before it a line for each image, for who makes them: its parameter, type, width and height."""
    self.check(name, uops)
    head = []
    for u in uops:
      if u.op is not Ops.DEFINE_GLOBAL or not isinstance(u.dtype, PtrDType) or not is_image(u): continue
      assert self.images is not None, "checked"
      made = shape(u.dtype.size, self.images)
      if made is None: raise InvalidArgument(f"no image has {u.dtype.size:,} numbers", where=f"kernel {name}")
      head.append(f"// image {u.arg} {u.dtype.base.name} {made[0]} {made[1]}\n")
    return "".join(head) + OpenCLWriter(self, name, uops).module()

  def compile(self, source: str, name: str) -> bytes:
    return source.encode()
