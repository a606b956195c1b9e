"""Linear programs as text of C and its relatives: what all of them have in common.

A `Language` says one language's words: types, qualifiers, indices, barriers, vectors, functions, literals, bits.
`CFamilyRenderer` writes a program in it, a statement a value. What C leaves undefined (signed overflow, division by
zero, shifts beyond the width, floats outside of an integer's range) is written out as `tinyhw.ir.semantics` means it,
unless the bounds of the UOp prove that it does not happen; so no text depends on a compiler's options, but for one:
multiplications and additions must not be contracted, which each language's compiler is told (MULACC is the fused one).

A half is its bits where a language has no arithmetic on it: arithmetic is that of floats, rounded to a half each time,
which is the same (24 bits are twice 11 and 2 more); what is only moved keeps its bits.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from tinyhw.compile.render.base import Renderer, block_size
from tinyhw.compile.render.llvm import LOGICAL, no_wrap
from tinyhw.core.errors import Unsupported
from tinyhw.ir.dtype import AddressSpace, DType, PtrDType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.semantics import Scalar, to_bits
from tinyhw.ir.uop import UOp

SIGNS = {Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.FDIV: "/", Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^",
         Ops.CMPLT: "<", Ops.CMPNE: "!=", Ops.CMPEQ: "=="}
UNSIGNED = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}
F16, F32, F64, U16, U32, BOOL = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.uint16, dtypes.uint32,
                                 dtypes.bool)
C_TYPES = {"bool": "_Bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short",
           "uint16": "unsigned short", "int32": "int", "uint32": "unsigned int", "int64": "long long",
           "uint64": "unsigned long long", "float32": "float", "float64": "double"}

# Functions that programs need beside their own text, in the words of C; {f} is what stands before a function,
# {bits} and {float} are the casts of bits between a float and its unsigned int.
FROM_HALF = """{f}float from_half(unsigned short x) {{
  const unsigned int magnitude = x & 0x7fffu, shifted = magnitude << 13;
  const unsigned int number = magnitude > 0x7c00u ? shifted | 0x7fc00000u : magnitude == 0x7c00u ? 0x7f800000u :
    {bits}({float}(shifted) * 0x1p+112f);
  return {float}(number | (x & 0x8000u) << 16);
}}
"""
TO_HALF = """{f}unsigned short to_half(float x) {{
  const unsigned int bits = {bits}(x), magnitude = bits & 0x7fffffffu, cut = magnitude >> 13;
  const unsigned int normal = (magnitude + 4095u + (cut & 1u) - 0x38000000u) >> 13;
  const unsigned int small = {bits}({float}(magnitude) + 0.5f) - 0x3f000000u;
  const unsigned int number = magnitude > 0x7f800000u ? 0x7e00u | (cut & 0x3ffu) : magnitude >= 0x47800000u ? 0x7c00u :
    magnitude < 0x38800000u ? small : normal;
  return (unsigned short)(number | (bits >> 16 & 0x8000u));
}}
"""
# A double as a float whose last bit is set where the float is not exact: rounding it once more is then harmless.
TO_ODD = """{f}float to_odd(double x) {{
  const float near = (float)x;
  const double back = near;
  const unsigned int bits = {bits}(near);
  if (x != x || back == x || (bits & 1u)) return near;
  return {float}((back < 0 ? -back : back) > (x < 0 ? -x : x) ? bits - 1u : bits + 1u);
}}
"""


class Language:
  """The words of one language, those of C where nothing else is said."""
  name = "C"
  types: Mapping[str, str] = C_TYPES          # a type that is not in it does not exist
  half = ""                                   # the type of float16 where it has arithmetic
  prologue = ""
  function = "static inline "                 # before a function that a kernel calls
  kernel = "void"
  space: ClassVar[Mapping[AddressSpace, str]] = {AddressSpace.GLOBAL: "", AddressSpace.LOCAL: ""}
  restrict = "restrict"
  indices: ClassVar[Mapping[str, str]] = {}   # by the first letter of a SPECIAL; {axis} is x, y, z and {number} 0, 1, 2
  barrier = ""
  fma, sqrt, trunc = "__builtin_fma{f}", "__builtin_sqrt{f}", "__builtin_trunc{f}"    # {f} is "f" for floats
  helpers: ClassVar[Mapping[str, str]] = {"from_half": FROM_HALF, "to_half": TO_HALF, "to_odd": TO_ODD}
  functions: Mapping[Ops, str] = {}  # of GroupOp.LIBRARY, for float32: what the target has itself
  suffixes: ClassVar[Mapping[str, str]] = {"float32": "f", "uint32": "u", "int64": "ll", "uint64": "ull"}
  counts: ClassVar[frozenset[int]] = frozenset()   # lanes that a vector type may have
  vector = ""                                 # its declaration, if it needs one: {scalar}, {count}, {name}, {bytes}
  make = "({name}){{{lanes}}}"                # a vector of scalars
  lane = "{vector}[{lane}]"

  def word(self, dtype: DType) -> str:
    """The type of a scalar in a register."""
    if dtype is F16: return self.half or self.types["uint16"]
    return self.types[dtype.name]

  def stored(self, dtype: DType) -> str:
    """The type of a scalar in memory, where a bool is a byte."""
    return self.word(dtypes.uint8 if dtype.is_bool else dtype)

  def vector_name(self, dtype: DType) -> str:
    """The name of a vector type."""
    return f"{dtype.name}x{dtype.count}"

  def literal(self, value: Scalar, dtype: DType) -> str:
    """A canonical number, exactly."""
    if dtype.is_bool: return "1" if value else "0"
    if dtype is F16 and not self.half: return f"0x{to_bits(value, dtype):04x}"
    if dtype.is_float:
      if not math.isfinite(value):
        return self.bits(f"0x{to_bits(value, dtype):x}{self.suffixes.get(UNSIGNED[dtype.bits].name, '')}",
                         UNSIGNED[dtype.bits], dtype)
      text = float(value).hex() + self.suffixes.get(dtype.name, "")
      if dtype is F16: text = self.cast(float(value).hex() + self.suffixes["float32"], dtype)
      return f"({text})" if text[0] == "-" else text
    suffix = self.suffixes.get(dtype.name, "")
    if value == dtype.min and dtype.is_signed and dtype.bits >= 32: return f"({int(value) + 1}{suffix} - 1)"
    return f"({int(value)}{suffix})" if value < 0 else f"{int(value)}{suffix}"

  def cast(self, x: str, dtype: DType) -> str:
    """A conversion that the language defines."""
    return f"({self.word(dtype)})({x})"

  def bits(self, x: str, source: DType, target: DType) -> str:
    """The memory of a scalar read as another type of its size."""
    return f"bits_{source.name}_{target.name}({x})"

  def bits_function(self, source: DType, target: DType) -> str:
    """The definition of what `bits` calls, if it is ours."""
    return (f"{self.function}{self.word(target)} bits_{source.name}_{target.name}({self.word(source)} x) {{\n"
            f"  {self.word(target)} y;\n  __builtin_memcpy(&y, &x, {target.itemsize});\n  return y;\n}}\n")

  def choose(self, condition: str, a: str, b: str) -> str:
    """a where the condition holds, else b."""
    return f"{condition} ? {a} : {b}"

  def declare(self, word: str, name: str, value: str, changes: bool = False) -> str:
    """A statement that names a value; `changes`: it may be set again."""
    return f"{'' if changes else 'const '}{word} {name} = {value};"

  def declare_later(self, word: str, name: str) -> str:
    """A statement that names a value which the next one sets."""
    return f"{word} {name};"

  def loop(self, counter: str, end: str) -> str:
    """The head of a loop."""
    return f"for (int {counter} = 0; {counter} < {end}; {counter}++) {{"

  def multiply(self, a: str, b: str, dtype: DType) -> str:
    """A product of floats that is rounded before it is added to anything."""
    return f"{a} * {b}"

  def divide(self, a: str, b: str, dtype: DType) -> str:
    """A quotient of floats, correctly rounded."""
    return f"{a} / {b}"

  def root(self, x: str, dtype: DType) -> str:
    """A square root of a float, correctly rounded."""
    return f"{self.sqrt.format(f='f' if dtype is F32 else '')}({x})"

  def wraps(self, sign: str, a: str, b: str, dtype: DType) -> str:
    """Integer ADD, SUB, MUL modulo 2**bits."""
    if not dtype.is_signed and dtype.bits >= 32: return f"{a} {sign} {b}"
    unsigned = self.types[UNSIGNED[max(dtype.bits, 32)].name]
    return self.cast(f"({unsigned}){a} {sign} ({unsigned}){b}", dtype)

  def buffer(self, number: int, dtype: PtrDType, written: bool) -> str:
    """A kernel's parameter."""
    const = "" if written else "const "
    space = self.space[AddressSpace.GLOBAL]
    return f"{space}{' ' if space else ''}{const}{self.stored(dtype.base)}* {self.restrict} data{number}"

  def value(self, number: int) -> str:
    """A kernel's int32 parameter."""
    return f"const {self.word(dtypes.int32)} value{number}"

  def array(self, name: str, dtype: PtrDType) -> str:
    """Local memory of a workgroup."""
    word = f"{self.space[AddressSpace.LOCAL]} {self.stored(dtype.base)}"
    return f"{word} {name}[{dtype.size}] __attribute__((aligned(16)));"

  def whole(self, name: str, block: tuple[int, int, int], parameters: Sequence[str], body: Sequence[str]) -> str:
    """The kernel."""
    return "\n".join([f"{self.head(block)} {name}({', '.join(parameters)}) {{", *body, "}", ""])

  def head(self, block: tuple[int, int, int]) -> str:
    """What stands before a kernel's name."""
    return self.kernel

  def element(self, pointer: str, index: str) -> str:
    """One element of a buffer or of local memory."""
    return f"{pointer}[{index}]"

  def elements(self, pointer: str, index: str, word: str, space: AddressSpace, written: bool) -> str:
    """Several elements as one vector."""
    kind = f"{self.space[space]} {'' if written else 'const '}{word}*".strip()
    return f"*({kind})({pointer} + {index})"


class CFamilyRenderer(Renderer):
  """A renderer whose source text is in one of the languages."""
  language: Language
  fused = True

  def supports(self, dtype: DType) -> bool:
    scalar = dtype.scalar
    name = ("float16" if self.language.half else "uint16") if scalar is F16 else scalar.name
    return super().supports(dtype) and (bool(self.language.half) if name == "float16" else name in self.language.types)

  def native(self, op: Ops, dtype: DType) -> bool:
    return super().native(op, dtype) or op in self.language.functions and dtype.scalar is F32

  writer: type[CWriter] | None = None          # what writes a program, if it is not C's

  def source(self, name: str, uops: Sequence[UOp]) -> str:
    self.check(name, uops)
    return (self.writer or CWriter)(self, name, uops).module()


class CWriter:
  """Writes one program, a statement a value."""

  def __init__(self, target: CFamilyRenderer, name: str, uops: Sequence[UOp], language: Language | None = None) -> None:
    self.target, self.language, self.name, self.uops = target, language or target.language, name, tuple(uops)
    self.lines: list[str] = []
    self.names: dict[UOp, str] = {}
    self.lanes: dict[UOp, list[str]] = {}         # the scalars of each vector
    self.functions: dict[str, str] = {}           # by name, in the order in which they are needed
    self.types: dict[str, None] = {}              # declarations of vector types
    self.depth, self.parts = 1, 0
    self.written = {u.src[0].src[0] for u in uops if u.op is Ops.STORE}

  def module(self) -> str:
    """The whole text."""
    parameters: dict[int, PtrDType] = {u.arg: u.dtype for u in self.uops
                                       if u.op is Ops.DEFINE_GLOBAL and isinstance(u.dtype, PtrDType)}
    variables = [u for u in self.uops if u.op is Ops.DEFINE_VAR]
    self.names.update({u: f"value{i}" for i, u in enumerate(variables)})
    numbers = {u.arg for u in self.written if u.op is Ops.DEFINE_GLOBAL}
    # A buffer whose loads were all simplified away is a parameter still.
    unused = dtypes.int32.ptr(1)
    declared = [self.language.buffer(i, parameters.get(i, unused), i in numbers)
                for i in range(max(parameters, default=-1) + 1)]
    declared += [self.language.value(i) for i in range(len(variables))]
    for u in self.uops: self.one(u)
    kernel = self.language.whole(self.name, block_size(self.uops), declared, self.lines)
    parts = [self.language.prologue, *(f"{t}\n" for t in self.types), *self.functions.values(), kernel]
    return "".join(p for p in parts if p)

  # *** text ***

  def line(self, text: str) -> None:
    """A statement."""
    self.lines.append("  " * self.depth + text)

  def value(self, u: UOp) -> str:
    """The operand that stands for a scalar."""
    if u.op is not Ops.CONST: return self.names[u]
    if u.dtype.is_float and not math.isfinite(u.arg): self.needs_bits(UNSIGNED[u.dtype.bits], u.dtype)
    return self.language.literal(u.arg, u.dtype)

  def new(self, u: UOp, value: str) -> None:
    """Names the value of a scalar."""
    self.names[u] = name = f"v{len(self.names)}"
    self.line(self.language.declare(self.language.word(u.dtype), name, value))

  def named(self, dtype: DType, value: str) -> str:
    """A value that no UOp stands for, named since it is used more than once."""
    self.parts += 1
    self.line(self.language.declare(self.language.word(dtype), f"x{self.parts}", value))
    return f"x{self.parts}"

  def needs(self, function: str) -> str:
    """The name of a function of this module's own, whose text is then part of the program."""
    for a, b in ((F32, U32), (U32, F32)): self.needs_bits(a, b)
    bits, number = (self.language.bits("", *kinds)[:-2] for kinds in ((F32, U32), (U32, F32)))
    text = self.language.helpers[function].format(f=self.language.function, bits=bits, float=number)
    self.functions.setdefault(function, text)
    return function

  def needs_bits(self, source: DType, target: DType) -> None:
    """The same, of a cast of bits."""
    if source is F16 and not self.language.half or target is F16 and not self.language.half: return
    if text := self.language.bits_function(source, target): self.functions.setdefault(f"{source} {target}", text)

  def cast_bits(self, x: str, source: DType, target: DType) -> str:
    """The memory of a scalar as another type. A half without arithmetic is its bits."""
    emulated = () if self.language.half else (F16,)
    source, target = (U16 if d in emulated else d for d in (source, target))
    if source is target: return x
    if source.is_int and target.is_int: return self.language.cast(x, target)
    self.needs_bits(source, target)
    return self.language.bits(x, source, target)

  def as_float(self, x: str) -> str:
    """A half as a float."""
    return self.language.cast(x, F32) if self.language.half else f"{self.needs('from_half')}({x})"

  def as_half(self, x: str) -> str:
    """The half nearest to a float."""
    return self.language.cast(x, F16) if self.language.half else f"{self.needs('to_half')}({x})"

  # *** UOps ***

  def one(self, u: UOp) -> None:
    """The statements of one UOp."""
    op, language = u.op, self.language
    if op in (Ops.CONST, Ops.DEFINE_VAR, Ops.INDEX, Ops.SINK): return       # an INDEX is written where it is used
    if op is Ops.DEFINE_GLOBAL: self.names[u] = f"data{u.arg}"
    elif op is Ops.DEFINE_LOCAL:
      assert isinstance(u.dtype, PtrDType)
      self.names[u] = f"shared_{u.arg}"
      self.shared(language.array(self.names[u], u.dtype))
    elif op is Ops.SPECIAL:
      number = int(u.arg.name[-1])
      self.new(u, language.indices[u.arg.name[0]].format(axis="xyz"[number], number=number))
    elif op is Ops.RANGE:
      self.names[u] = f"r{len(self.names)}"
      self.line(language.loop(self.names[u], self.value(u.src[0])))
      self.depth += 1
    elif op is Ops.ENDRANGE:
      self.depth -= 1
      self.line("}")
    elif op in (Ops.DEFINE_ACC, Ops.ASSIGN) and u.dtype.count > 1: self.registers(u)
    elif op is Ops.WMMA: self.matrix(u)
    elif op is Ops.DEFINE_ACC:
      self.names[u] = f"total{len(self.names)}"
      self.line(language.declare(language.word(u.dtype), self.names[u], self.value(u.src[0]), changes=True))
    elif op is Ops.ASSIGN:
      self.names[u] = self.names[u.src[0]]
      self.line(f"{self.names[u]} = {self.value(u.src[1])};")
    elif op is Ops.LOAD: self.load(u)
    elif op is Ops.STORE: self.store(u)
    elif op is Ops.BARRIER:
      if language.barrier: self.line(language.barrier)
    elif op is Ops.VECTORIZE: self.lanes[u] = [self.value(s) for s in u.src]
    elif op is Ops.GEP:
      source = u.src[0]
      lanes = [self.lanes[source][i] if source.dtype.count > 1 else self.value(source) for i in u.arg]
      if len(lanes) > 1: self.lanes[u] = lanes
      else: self.names[u] = lanes[0]
    elif op is Ops.CAST: self.new(u, self.cast(self.value(u.src[0]), u.src[0].dtype, u.dtype))
    elif op is Ops.BITCAST: self.bitcast(u)
    elif op in GroupOp.ALU: self.new(u, self.alu(u))
    else: raise Unsupported("uop", op.name, arch=self.target.target, where=f"kernel {self.name}")

  def registers(self, u: UOp) -> None:
    """DEFINE_ACC and ASSIGN of a vector, whose lanes are registers of their own."""
    first = u.src[0]
    if u.op is Ops.ASSIGN:
      self.lanes[u] = self.lanes[first]
      for name, value in zip(self.lanes[first], self.lanes[u.src[1]]): self.line(f"{name} = {value};")
      return
    initial = self.lanes[first] if first in self.lanes else [self.value(first)] * u.dtype.count
    name, word = f"total{len(self.names)}", self.language.word(u.dtype.scalar)
    self.names[u], self.lanes[u] = name, [f"{name}_{i}" for i in range(u.dtype.count)]
    for lane, value in zip(self.lanes[u], initial): self.line(self.language.declare(word, lane, value, changes=True))

  def matrix(self, u: UOp) -> None:
    """WMMA, where the language has words for it."""
    raise Unsupported("uop", u.op.name, arch=self.target.target, where=f"kernel {self.name}")

  def shared(self, declaration: str) -> None:
    """Local memory, which is declared before all else in a kernel."""
    self.lines.insert(0, f"  {declaration}")

  def load(self, u: UOp) -> None:
    """LOAD of a scalar or a vector."""
    index = u.src[0]
    gate = self.value(index.src[2]) if len(index.src) > 2 else ""
    other = next((s for s in u.src[1:] if s.op is not Ops.BARRIER), None)
    if u.dtype.count == 1:
      found = self.loaded(u.dtype, self.element(index, 0))
      self.new(u, self.language.choose(gate, found, self.value(other)) if other is not None else found)
      return
    others = self.lanes[other] if other is not None and other.op is not Ops.CONST else None
    word = self.vector_word(u.dtype)
    if not word:
      self.lanes[u] = []
      for i in range(u.dtype.count):
        found = self.loaded(u.dtype.scalar, self.element(index, i))
        lane = f"v{len(self.names)}_{i}"
        self.line(self.language.declare(self.language.word(u.dtype.scalar), lane,
                                        self.language.choose(gate, found, others[i]) if others else found))
        self.lanes[u].append(lane)
      self.names[u] = ""
      return
    name, place = f"v{len(self.names)}", self.place(index, word)
    self.names[u] = name
    if others is None: self.line(self.language.declare(word, name, place))
    else:
      self.line(self.language.declare_later(word, name))
      self.line(f"if ({gate}) {name} = {place}; else {name} = {self.made(word, u.dtype, others)};")
    self.lanes[u] = [self.loaded(u.dtype.scalar, self.language.lane.format(vector=name, lane=i, hexadecimal=f"{i:x}"))
                     for i in range(u.dtype.count)]

  def loaded(self, dtype: DType, x: str) -> str:
    """What memory holds, as a value in a register."""
    return f"({x} != 0)" if dtype.is_bool else x

  def kept(self, dtype: DType, x: str) -> str:
    """A value in a register as memory holds it."""
    return self.language.cast(x, dtypes.uint8) if dtype.is_bool else x

  def element(self, index: UOp, plus: int) -> str:
    """Element i + plus of an INDEX."""
    at = self.value(index.src[1])
    return self.language.element(self.names[index.src[0]], f"{at} + {plus}" if plus else at)

  def place(self, index: UOp, word: str) -> str:
    """The vector at an INDEX."""
    pointer = index.src[0]
    assert isinstance(pointer.dtype, PtrDType)
    return self.language.elements(self.names[pointer], self.value(index.src[1]), word, pointer.dtype.space,
                                  pointer in self.written)

  def vector_word(self, dtype: DType) -> str:
    """The type of a vector in memory; none where it goes by single elements."""
    scalar = dtypes.uint8 if dtype.is_bool else dtype.scalar
    if dtype.count not in self.language.counts.intersection(self.target.vector_widths(dtype)): return ""
    name = self.language.vector_name(scalar.vec(dtype.count))
    declaration = self.language.vector.format(scalar=self.language.stored(scalar), count=dtype.count, name=name,
                                              bytes=dtype.itemsize, alignment=dtype.scalar.itemsize)
    if declaration: self.types[declaration] = None
    return name

  def made(self, word: str, dtype: DType, lanes: Sequence[str]) -> str:
    """A vector of scalars, as memory holds it."""
    return self.language.make.format(name=word, lanes=", ".join(self.kept(dtype.scalar, x) for x in lanes))

  def store(self, u: UOp) -> None:
    """STORE, where its gate holds."""
    index, value = u.src[:2]
    dtype, statements = value.dtype, []
    if dtype.count == 1: statements.append(f"{self.element(index, 0)} = {self.kept(dtype, self.value(value))};")
    elif word := self.vector_word(dtype):
      statements.append(f"{self.place(index, word)} = {self.made(word, dtype, self.lanes[value])};")
    else:
      statements += [f"{self.element(index, i)} = {self.kept(dtype.scalar, x)};"
                     for i, x in enumerate(self.lanes[value])]
    text = " ".join(statements)
    self.line(f"if ({self.value(index.src[2])}) {{ {text} }}" if len(index.src) > 2 else text)

  # *** conversions ***

  def cast(self, x: str, source: DType, target: DType) -> str:
    """CAST."""
    language = self.language
    if source is target: return x
    if source is F16 and target is not F16: x, source = self.named(F32, self.as_float(x)), F32
    if target.is_bool: return f"{x} != {language.literal(0.0 if source.is_float else 0, source)}"
    if target is F16:
      if source is F64: return self.as_half(f"{self.needs('to_odd')}({x})")
      # An integer beyond a float's 24 bits is infinite as a half: rounding it twice is no harm.
      single = x if source is F32 else language.cast(x, F32)
      return self.as_half(self.infinite(single) if source.is_int and source.bits > 16 else single)
    if source.is_float and target.is_int: return self.saturated(x, source, target)
    return language.cast(x, target)

  def infinite(self, x: str) -> str:
    """A float that was an integer, infinite where it is beyond halves. LLVM 22 takes an integer of few significant bits
    for exact as a half, however large it is, and gives it back where the half is made an integer again."""
    self.needs_bits(U32, F32)
    language, x = self.language, self.named(F32, x)
    most, inf, minus = (language.literal(v, F32) for v in (2.0**16, math.inf, -math.inf))
    return self.named(F32, language.choose(f"{x} >= {most}", inf, f"({language.choose(f'{x} <= -{most}', minus, x)})"))

  def saturated(self, x: str, source: DType, target: DType) -> str:
    """A float as an integer: toward zero, within bounds, 0 for NaN."""
    language = self.language
    low, high = int(target.min), int(target.max) + 1
    least, beyond = language.literal(float(low), source), language.literal(float(high), source)
    zero, first, last = (language.literal(v, target) for v in (0, low, high - 1))
    inside = f"{x} >= {least} && {x} < {beyond}"
    outside = language.choose(f"{x} >= {beyond}", last, language.choose(f"{x} < {least}", first, zero) if low else zero)
    return language.choose(f"({inside})", language.cast(x, target), f"({outside})")

  def bitcast(self, u: UOp) -> None:
    """BITCAST. A bool is a byte in memory."""
    source, x = u.src[0].dtype, self.value(u.src[0])
    if source.is_bool: x, source = self.kept(source, x), dtypes.uint8
    if u.dtype.is_bool: self.new(u, self.loaded(u.dtype, self.cast_bits(x, source, dtypes.uint8)))
    else: self.new(u, self.cast_bits(x, source, u.dtype))

  # *** arithmetic ***

  def alu(self, u: UOp) -> str:
    """An arithmetic operation on scalars."""
    op, x = u.op, [self.value(s) for s in u.src]
    operand = u.src[1].dtype if op is Ops.WHERE else u.src[0].dtype
    if op is Ops.WHERE: return self.language.choose(*x)
    if operand is F16 and not self.language.half: return self.half_alu(u, x)
    if op in GroupOp.COMPARE: return f"{x[0]} {SIGNS[op]} {x[1]}"
    if operand.is_float: return self.float_alu(u, operand, x)
    if operand.is_bool: return self.bool_alu(u, x)
    return self.int_alu(u, operand, x)

  def half_alu(self, u: UOp, x: list[str]) -> str:
    """Arithmetic of halves through floats."""
    op = u.op
    if op is Ops.NEG: return self.language.cast(f"{x[0]} ^ 0x8000", U16)
    wide = [self.named(F32, self.as_float(v)) for v in x]
    if op in GroupOp.COMPARE: return f"{wide[0]} {SIGNS[op]} {wide[1]}"
    if op is not Ops.MULACC: return self.as_half(self.float_alu(u, F32, wide))
    product = self.as_half(self.language.multiply(wide[0], wide[1], F32))
    return self.as_half(f"{self.as_float(product)} + {wide[2]}")

  def float_alu(self, u: UOp, dtype: DType, x: list[str]) -> str:
    """Arithmetic of floats that gives a float."""
    op, language = u.op, self.language
    def call(function: str, *arguments: str) -> str:
      f = "f" if dtype is F32 else ""
      if dtype is F16:      # through floats: exact for TRUNC, rounded as it should be for SQRT
        return self.as_half(f"{function.format(f='f')}({', '.join(map(self.as_float, arguments))})")
      return f"{function.format(f=f)}({', '.join(arguments)})"
    if op is Ops.MUL: return language.multiply(x[0], x[1], dtype)
    if op in (Ops.ADD, Ops.SUB): return f"{x[0]} {SIGNS[op]} {x[1]}"
    if op is Ops.FDIV: return language.divide(x[0], x[1], dtype)
    if op is Ops.RECIP: return language.divide(language.literal(1.0, dtype), x[0], dtype)
    if op is Ops.NEG: return f"-{x[0]}"
    if op is Ops.SQRT: return language.root(x[0], dtype) if dtype is not F16 else call(language.sqrt, *x)
    if op is Ops.TRUNC: return call(language.trunc, *x)
    if op is Ops.MULACC: return call(language.fma, *x) if dtype is not F16 else f"({x[0]} * {x[1]}) + {x[2]}"
    if op is Ops.MAX: return self.maximum(u.src[1], dtype, x)
    if op not in language.functions or dtype is not F32: raise self.unsupported(op, dtype)
    return f"{language.functions[op]}({', '.join(x)})"

  def maximum(self, second: UOp, dtype: DType, x: list[str]) -> str:
    """NaN where either is; of two zeros +0.0 unless both are -0.0."""
    choose = self.language.choose
    a, b = x
    if second.op is Ops.CONST and second.arg == second.arg:
      # Only zeros are equal and not the same: then +0.0 is the greater one.
      than = "<" if second.arg == 0 and math.copysign(1.0, second.arg) < 0 else "<="
      return choose(f"{a} {than} {b}", b, a)
    if dtype is F16: return self.as_half(self.maximum(second, F32, [self.named(F32, self.as_float(v)) for v in x]))
    name, unsigned = f"max_{dtype.name}", UNSIGNED[dtype.bits]
    word, language = self.language.word(dtype), self.language
    for p, q in ((dtype, unsigned), (unsigned, dtype)): self.needs_bits(p, q)
    same = language.bits(f"{language.bits('a', dtype, unsigned)} & {language.bits('b', dtype, unsigned)}",
                         unsigned, dtype)
    self.functions.setdefault(name, f"{language.function}{word} {name}({word} a, {word} b) {{\n"
                              f"  return a > b ? a : b > a ? b : a == b ? {same} : a + b;\n}}\n")
    return f"{name}({a}, {b})"

  def bool_alu(self, u: UOp, x: list[str]) -> str:
    """Arithmetic of bools that gives a bool."""
    if u.op is Ops.NEG: return x[0]
    if u.op is Ops.MULACC: return f"({x[0]} & {x[1]}) | {x[2]}"
    if u.op not in LOGICAL: raise self.unsupported(u.op, dtypes.bool)
    return f"{x[0]} {({'or': '|', 'and': '&', 'xor': '^'})[LOGICAL[u.op]]} {x[1]}"

  def int_alu(self, u: UOp, dtype: DType, x: list[str]) -> str:
    """Arithmetic of integers that gives an integer."""
    op, language = u.op, self.language
    if op in (Ops.ADD, Ops.SUB, Ops.MUL):
      return f"{x[0]} {SIGNS[op]} {x[1]}" if "nsw" in no_wrap(u) else language.wraps(SIGNS[op], x[0], x[1], dtype)
    if op in GroupOp.BITWISE: return f"{x[0]} {SIGNS[op]} {x[1]}"
    if op is Ops.NEG: return language.wraps("-", language.literal(0, dtype), x[0], dtype)
    if op is Ops.MULACC: return language.wraps("+", f"({language.wraps('*', x[0], x[1], dtype)})", x[2], dtype)
    if op is Ops.MAX: return language.choose(f"{x[0]} > {x[1]}", x[0], x[1])
    if op is Ops.SHL: return self.shifted_left(x[0], self.count(u.src[1], dtype), dtype)
    if op is Ops.SHR: return f"{x[0]} >> {self.count(u.src[1], dtype)}"
    if op in (Ops.IDIV, Ops.MOD): return self.quotient(u, dtype, x)
    raise self.unsupported(op, dtype)

  def shifted_left(self, x: str, count: str, dtype: DType) -> str:
    """SHL by a count below the width."""
    unsigned = UNSIGNED[max(dtype.bits, 32)]
    if dtype is unsigned: return f"{x} << {count}"
    return self.language.cast(f"{self.language.cast(x, unsigned)} << {count}", dtype)

  def count(self, u: UOp, dtype: DType) -> str:
    """A shift count modulo the width."""
    if u.op is Ops.CONST: return str(int(u.arg) % dtype.bits)
    x = self.value(u)
    return x if u.vmin >= 0 and u.vmax < dtype.bits else f"({x} & {dtype.bits - 1})"

  def quotient(self, u: UOp, dtype: DType, x: list[str]) -> str:
    """IDIV or MOD: C's, but a division by zero gives zero and the quotient wraps."""
    language, (a, b) = self.language, x
    zero, bottom = language.literal(0, dtype), u.src[1]
    sign = "/" if u.op is Ops.IDIV else "%"
    found = f"{a} {sign} {b}"
    if bottom.vmin > 0: return found
    if not dtype.is_signed: return language.choose(f"{b} == {zero}", zero, found)
    if u.op is Ops.MOD:               # the remainder of a division by 1 is the 0 that is wanted
      return language.choose(f"({b} == {zero} || {b} == {language.literal(-1, dtype)})", zero, found)
    wrapped = f"({language.wraps('-', zero, a, dtype)})"
    return language.choose(f"{b} == {zero}", zero,
                           f"({language.choose(f'{b} == {language.literal(-1, dtype)}', wrapped, found)})")

  def unsupported(self, op: Ops, dtype: DType) -> Unsupported:
    """The error of arithmetic that the target does not do."""
    return Unsupported("arithmetic", f"{op.name} on {dtype.name}", arch=self.target.target, where=f"kernel {self.name}")


