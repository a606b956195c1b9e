"""WGSL, the shading language of WebGPU: int32, uint32, float32 and, in registers, bool.

Memory is words of 32 bits. Integers of 8 and 16 bits are parts of them, stored by atomic operations, since neighbours
may be stored by other work-items at the same time; they are cast to uint32 and back, and that is all. So the compiler
makes halves, bfloat16, floats of 8 bits, small integers and bools of these (`compile.legalize`), and 64-bit integers of
two words (`compile.pairs`). There is no float64.

WGSL leaves to an implementation what IEEE 754 settles: it may take infinities and NaN for impossible, make subnormal
numbers zeros, round a quotient to within 2.5 units in the last place and fuse a product into a sum; functions such as
EXP2 are its own. Integers wrap, and shifts and divisions mean what `ir.semantics` says.
"""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.compile.render.cfamily import CFamilyRenderer, CWriter, Language
from tinyhw.core.environment import digits
from tinyhw.ir.dtype import DType, PtrDType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.semantics import Scalar
from tinyhw.ir.uop import UOp

NATIVE = {Ops.EXP2: "exp2", Ops.EXP: "exp", Ops.LOG2: "log2", Ops.LOG: "log", Ops.SIN: "sin", Ops.COS: "cos",
          Ops.TANH: "tanh", Ops.POW: "pow"}
# What is no number is read from memory: a constant expression may not be infinite or NaN.
BITS = "var<private> {name}: u32 = {bits}u;\n"


PARTS = (dtypes.uint8, dtypes.uint16)               # of a word


class WGSL(Language):
  """WGSL. One object writes one program: values come in a buffer of their own, after the others."""
  name = "WGSL"
  types = {"bool": "bool", "int32": "i32", "uint32": "u32", "float32": "f32", "uint8": "u32", "uint16": "u32"}
  indices = {"g": "i32(group.{axis})", "l": "i32(item.{axis})"}
  barrier = "workgroupBarrier(); storageBarrier();"
  fma, sqrt, trunc = "fma", "sqrt", "trunc"
  functions = NATIVE
  suffixes = {"float32": "f", "uint32": "u", "int32": "i", "uint8": "u", "uint16": "u"}
  helpers = {}

  def __init__(self) -> None:
    self.module: dict[str, None] = {}             # declarations outside of the kernel
    self.values = 0

  def literal(self, value: Scalar, dtype: DType) -> str:
    if dtype.is_bool: return "true" if value else "false"
    if value == dtype.min and dtype is dtypes.int32: return "i32(-2147483648)"
    if dtype.is_float and value - value != 0:
      name = "not_a_number" if value != value else "infinite" if value > 0 else "minus_infinite"
      bits = {"not_a_number": 0x7FC00000, "infinite": 0x7F800000, "minus_infinite": 0xFF800000}[name]
      self.module[BITS.format(name=name, bits=bits)] = None
      return self.bits(name, dtypes.uint32, dtype)
    return super().literal(value, dtype)

  def cast(self, x: str, dtype: DType) -> str: return f"{self.word(dtype)}({x})"
  def bits(self, x: str, source: DType, target: DType) -> str: return f"bitcast<{self.word(target)}>({x})"
  def bits_function(self, source: DType, target: DType) -> str: return ""
  def choose(self, condition: str, a: str, b: str) -> str: return f"select({b}, {a}, {condition})"
  def wraps(self, sign: str, a: str, b: str, dtype: DType) -> str: return f"{a} {sign} {b}"

  def declare(self, word: str, name: str, value: str, changes: bool = False) -> str:
    return f"{'var' if changes else 'let'} {name}: {word} = {value};"

  def loop(self, counter: str, end: str) -> str:
    return f"for (var {counter}: i32 = 0; {counter} < {end}; {counter}++) {{"

  def buffer(self, number: int, dtype: PtrDType, written: bool) -> str:
    word = "atomic<u32>" if written and dtype.base in PARTS else self.word(dtype.base)
    return (f"@group(0) @binding({number}) var<storage, {'read_write' if written else 'read'}> data{number}: "
            f"array<{word}>;\n")

  def value(self, number: int) -> str:
    self.values += 1
    return ""

  def array(self, name: str, dtype: PtrDType) -> str:
    self.module[f"var<workgroup> {name}: array<{self.word(dtype.base)}, {dtype.size}>;\n"] = None
    return ""

  def whole(self, name: str, block: tuple[int, int, int], parameters: Sequence[str], body: Sequence[str]) -> str:
    buffers = [p for p in parameters if p]
    if self.values: buffers.append(f"@group(0) @binding({len(buffers)}) var<storage, read> values: array<i32>;\n")
    given = [f"  let value{i}: i32 = values[{i}];" for i in range(self.values)]
    return "\n".join([
      "".join([*buffers, *self.module]) + f"@compute @workgroup_size{block}",
      f"fn {name}(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) item: vec3<u32>) {{",
      *given, *body, "}", ""])


class WGSLWriter(CWriter):
  """What the grammar of WGSL has otherwise than C's."""

  def shared(self, declaration: str) -> None:
    """It stands outside of the kernel."""

  def part(self, index: UOp) -> tuple[str, str]:
    """(the word that holds an element smaller than one, how far to shift it)."""
    assert isinstance(index.dtype, PtrDType)
    at, bits = self.named(dtypes.uint32, f"u32({self.value(index.src[1])})"), index.dtype.base.bits
    each = 32 // bits
    return f"{self.names[index.src[0]]}[{at} / {each}u]", self.named(dtypes.uint32, f"{at} % {each}u * {bits}u")

  def element(self, index: UOp, plus: int) -> str:
    assert isinstance(index.dtype, PtrDType)
    if index.dtype.base not in PARTS: return super().element(index, plus)
    word, shift = self.part(index)
    if index.src[0] in self.written: word = f"atomicLoad(&{word})"
    return f"({word} >> {shift}) & {index.dtype.base.max}u"

  def store(self, u: UOp) -> None:
    index, value = u.src[:2]
    if value.dtype not in PARTS: return super().store(u)
    word, shift = self.part(index)
    text = (f"atomicAnd(&{word}, ~({value.dtype.max}u << {shift})); "
            f"atomicOr(&{word}, {self.value(value)} << {shift});")
    self.line(f"if {self.value(index.src[2])} {{ {text} }}" if len(index.src) > 2 else text)
    return None

  def cast(self, x: str, source: DType, target: DType) -> str:
    if source in PARTS: source = dtypes.uint32
    if target not in PARTS: return super().cast(x, source, target)
    if source.is_float: raise self.unsupported(Ops.CAST, target)
    return f"{super().cast(x, source, dtypes.uint32)} & {target.max}u"

  def count(self, u: UOp, dtype: DType) -> str:
    x = super().count(u, dtype)
    return f"{x}u" if digits(x) else f"u32({x})"

  def alu(self, u: UOp) -> str:
    x = [self.value(s) for s in u.src]
    if u.src[0].dtype.is_bool:
      if u.op is Ops.CMPLT: return f"!{x[0]} & {x[1]}"
      if u.op in (Ops.XOR, Ops.SUB): return f"{x[0]} != {x[1]}"
    return super().alu(u)

  def maximum(self, second: UOp, dtype: DType, x: list[str]) -> str:
    if second.op is Ops.CONST: return super().maximum(second, dtype, x)
    a, b = x
    both = f"bitcast<f32>(bitcast<u32>({a}) & bitcast<u32>({b}))"
    return f"select(select(select({a} + {b}, {both}, {a} == {b}), {b}, {b} > {a}), {a}, {a} > {b})"


class WGSLRenderer(CFamilyRenderer):
  """For any WebGPU device, within the limits that every one has."""
  target = "wgsl"
  threads = local = True
  tile = 4
  max_block = 256
  max_local = 16 * 1024
  max_grid = 65535
  language = WGSL()

  def source(self, name: str, uops: Sequence[UOp]) -> str:
    self.check(name, uops)
    return WGSLWriter(self, name, uops, WGSL()).module()

  def supports(self, dtype: DType) -> bool:
    return dtype.scalar not in PARTS and super().supports(dtype) and dtype.scalar is not dtypes.float16

  def holds(self, dtype: DType) -> bool:
    return dtype in PARTS or self.supports(dtype) and not dtype.is_bool

  def compile(self, source: str, name: str) -> bytes: return source.encode()
