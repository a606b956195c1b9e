"""Linear programs as LLVM IR text: what the host and the AMD GPU have in common.

Every UOp becomes the instructions that mean what `tinyhw.ir.semantics` says, on every operand: what LLVM leaves
undefined (division by zero, shifts beyond the width, floats outside of an integer's range) is guarded here. Integer
instructions say that they do not wrap only where the bounds of the UOp prove it. Floating point carries no fast-math
flags, so that nothing is reassociated or contracted behind the program's back. MULACC of floats is `llvm.fmuladd`: one
fused instruction wherever the target has it; targets that are many processors promise it (`host`).

Accumulators are phis of the loops that they live through, so that no program needs a stack.
"""
from __future__ import annotations

import math
import struct
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from tinyhw.compile.render import objects
from tinyhw.compile.render.base import Renderer, alignment
from tinyhw.core.errors import Unsupported
from tinyhw.ir.dtype import DType, Kind, PtrDType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.semantics import Scalar
from tinyhw.ir.uop import UOp

COMPARISONS = {Ops.CMPLT: ("slt", "ult", "olt"), Ops.CMPNE: ("ne", "ne", "une"), Ops.CMPEQ: ("eq", "eq", "oeq")}
INTEGER = {Ops.ADD: "add", Ops.SUB: "sub", Ops.MUL: "mul", Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor"}
FLOAT = {Ops.ADD: "fadd", Ops.SUB: "fsub", Ops.MUL: "fmul", Ops.FDIV: "fdiv"}
# On one bit: ADD and MAX are OR, MUL is AND, SUB is XOR (True where the difference is not zero).
LOGICAL = {Ops.ADD: "or", Ops.MAX: "or", Ops.MUL: "and", Ops.SUB: "xor", Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor"}
INTRINSICS = {Ops.EXP2: "exp2", Ops.LOG2: "log2", Ops.SQRT: "sqrt", Ops.TRUNC: "trunc"}


def scalar_type(dtype: DType) -> str:
  """The LLVM type of a scalar in a register."""
  if dtype.kind is Kind.FLOAT: return {16: "half", 32: "float", 64: "double"}[dtype.bits]
  return "i1" if dtype.is_bool else f"i{dtype.bits}"


def suffix(dtype: DType) -> str:
  """What the names of LLVM's intrinsics call the type."""
  scalar = f"{'f' if dtype.is_float else 'i'}{dtype.bits}"
  return scalar if dtype.count == 1 else f"v{dtype.count}{scalar}"


def register_type(dtype: DType) -> str:
  """The LLVM type of a scalar or a vector in registers."""
  scalar = scalar_type(dtype.scalar)
  return scalar if dtype.count == 1 else f"<{dtype.count} x {scalar}>"


def byte(dtype: DType) -> DType:
  """The type in memory: a bool is a byte there."""
  return dtypes.uint8.vec(dtype.count) if dtype.is_bool else dtype


def memory_type(dtype: DType) -> str:
  """The LLVM type of a scalar or a vector in memory."""
  return register_type(byte(dtype))


def constant(value: Scalar, dtype: DType) -> str:
  """A canonical number as LLVM spells it: floats by their bits, those of a float by the double of equal value."""
  if dtype.count > 1: return f"splat ({scalar_type(dtype.scalar)} {constant(value, dtype.scalar)})"
  if dtype.is_bool: return "true" if value else "false"
  if not dtype.is_float: return str(int(value))
  if dtype is dtypes.float16: return f"0xH{int.from_bytes(struct.pack('<e', value), 'little'):04X}"
  return f"0x{int.from_bytes(struct.pack('<d', value), 'little'):016X}"


@dataclass
class Loop:
  """An open RANGE: where its phis stand in the text, to be filled in when the loop ends."""
  range: UOp
  header: str
  before: str                       # the block that enters the loop
  after: str                        # the block behind it
  counter_line: int
  phis: list[tuple[UOp, str, str, int]] = field(default_factory=list)   # accumulator, name, value on entry, line


class LLVMRenderer(Renderer):
  """A renderer whose source text is LLVM IR. Targets say how a kernel looks from outside and what its indices are."""
  tile = 4
  fused = True
  leaves_python = True
  begins_anywhere = False  # whether buffers are aligned as their elements are, and no more

  def __init__(self, optimization: int = 2) -> None:
    self.optimization = optimization

  @property
  def key(self) -> str: return f"{self.target} O{self.optimization}"

  @property
  @abstractmethod
  def processor(self) -> objects.Processor:
    """What LLVM makes code for."""

  @abstractmethod
  def function(self, name: str, uops: Sequence[UOp], arguments: list[str], body: str, declarations: list[str]) -> str:
    """The module around the body. `arguments` are the LLVM types and names that the body uses."""

  @abstractmethod
  def pointer_argument(self, number: int) -> str:
    """The declaration of the pointer argument `%data<number>`."""

  def special(self, writer: LLVMWriter, u: UOp) -> str:
    """The value of a SPECIAL."""
    raise Unsupported("uop", u.op.name, arch=self.target)

  def matrix(self, writer: LLVMWriter, u: UOp) -> str:
    """A WMMA."""
    raise Unsupported("uop", u.op.name, arch=self.target)

  def local_memory(self, writer: LLVMWriter, u: UOp) -> str:
    """The pointer of a DEFINE_LOCAL."""
    return f"@{writer.name}.{u.arg}"

  def half(self, writer: LLVMWriter, x: str, source: str, target: str) -> str:
    """The halves nearest to floats; the types are LLVM's."""
    return writer.new(f"fptrunc {source} {x} to {target}")

  def barrier(self, writer: LLVMWriter, u: UOp) -> None:
    """Make all work-items of the workgroup meet."""
    raise Unsupported("uop", u.op.name, arch=self.target)

  def address(self, writer: LLVMWriter, pointer: UOp, index: UOp, gate: str | None) -> str:
    """The address of an element. A `gate` is given where the address must be good although the gate is False."""
    assert isinstance(pointer.dtype, PtrDType)
    i = writer.value(index)
    if gate is not None: i = writer.new(f"select i1 {gate}, i32 {i}, i32 0")
    wide = writer.new(f"{'zext nneg' if index.vmin >= 0 else 'sext'} i32 {i} to i64")
    base = f"{self.pointer_type(pointer.dtype)} {writer.value(pointer)}"
    return writer.new(f"getelementptr inbounds {memory_type(pointer.dtype.base)}, {base}, i64 {wide}")

  def multiply_add(self, writer: LLVMWriter, dtype: DType, x: Sequence[str]) -> str:
    """MULACC of three floats."""
    t = register_type(dtype)
    return writer.intrinsic(t, f"fmuladd.{suffix(dtype)}", *((t, y) for y in x))

  def pointer_type(self, dtype: PtrDType) -> str:
    """The LLVM type of a pointer."""
    return "ptr"

  speculates = False            # loads of element 0 instead of a branch where a gate is False

  def source(self, name: str, uops: Sequence[UOp]) -> str:
    self.check(name, uops)
    return objects.header(self.processor) + LLVMWriter(self, name, uops).module()

  def compile(self, source: str, name: str) -> bytes:
    return objects.emit(source, name, self.processor, self.optimization)

  def assembly(self, source: str, name: str) -> str:
    """The machine code as text."""
    return objects.emit(source, name, self.processor, self.optimization, text=True).decode()


class LLVMWriter:
  """Writes the body of one program, block after block."""

  def __init__(self, target: LLVMRenderer, name: str, uops: Sequence[UOp]) -> None:
    self.target, self.name, self.uops = target, name, tuple(uops)
    self.lines: list[str] = []
    self.names: dict[UOp, str] = {}
    self.block = "entry"
    self.declarations: dict[str, None] = {}
    self.first: dict[str, str] = {}               # what the entry begins with: instructions by name
    self.loops: list[Loop] = []
    self.accumulators: dict[UOp, str] = {}        # the present value of each
    self.count = 0
    self.carried = carried_accumulators(self.uops)
    self.assigned: dict[UOp, list[UOp]] = {}      # the ASSIGNs of each accumulator
    for u in self.uops:
      if u.op is Ops.ASSIGN: self.assigned.setdefault(u.src[0], []).append(u)

  def module(self) -> str:
    """The whole text."""
    buffers = [u.arg for u in self.uops if u.op is Ops.DEFINE_GLOBAL]
    variables = [u for u in self.uops if u.op is Ops.DEFINE_VAR]
    arguments = [self.target.pointer_argument(i) for i in range(max(buffers, default=-1) + 1)]
    arguments += [f"i32 noundef %value{i}" for i in range(len(variables))]
    self.names.update({u: f"%value{i}" for i, u in enumerate(variables)})
    for u in self.uops: self.one(u)
    self.line("ret void")
    first = [f"  {name} = {instruction}" for name, instruction in self.first.items()]
    return self.target.function(self.name, self.uops, arguments, "\n".join(first + self.lines), list(self.declarations))

  # *** text ***

  def line(self, text: str) -> None:
    """An instruction without a result."""
    self.lines.append("  " + text)

  def new(self, instruction: str) -> str:
    """An instruction with a result; gives its name."""
    name = f"%v{self.count}"
    self.count += 1
    self.lines.append(f"  {name} = {instruction}")
    return name

  def label(self, kind: str) -> str:
    """A new name for a block."""
    self.count += 1
    return f"{kind}{self.count - 1}"

  def begin(self, label: str) -> None:
    """Instructions from here on are in the block `label`."""
    self.lines.append(f"{label}:")
    self.block = label

  def intrinsic(self, result: str, name: str, *arguments: tuple[str, str], attribute: str = "") -> str:
    """A call of `llvm.<name>` with (type, value) arguments."""
    self.declarations[f"declare {result} @llvm.{name}({', '.join(t for t, _ in arguments)})"] = None
    call = f"call {attribute}{result} @llvm.{name}({', '.join(f'{t} {v}' for t, v in arguments)})"
    if result != "void": return self.new(call)
    self.line(call)
    return ""

  def value(self, u: UOp) -> str:
    """The operand that stands for a UOp."""
    if u.op is Ops.CONST: return constant(u.arg, u.dtype)
    if u.op is Ops.DEFINE_ACC: return self.accumulators[u]
    return self.names[u]

  def typed(self, u: UOp) -> str:
    """The operand with its type."""
    return f"{register_type(u.dtype)} {self.value(u)}"

  # *** UOps ***

  def one(self, u: UOp) -> None:
    """The instructions of one UOp."""
    op = u.op
    if op in (Ops.CONST, Ops.DEFINE_VAR, Ops.INDEX, Ops.SINK): return       # an INDEX is written where it is used
    if op is Ops.DEFINE_GLOBAL: self.names[u] = f"%data{u.arg}"
    elif op is Ops.DEFINE_LOCAL: self.names[u] = self.target.local_memory(self, u)
    elif op is Ops.SPECIAL: self.names[u] = self.target.special(self, u)
    elif op is Ops.RANGE: self.open_loop(u)
    elif op is Ops.ENDRANGE: self.close_loop(u)
    elif op is Ops.DEFINE_ACC: self.accumulators[u] = self.value(u.src[0])
    elif op is Ops.ASSIGN: self.names[u] = self.accumulators[u.src[0]] = self.value(u.src[1])
    elif op is Ops.LOAD: self.names[u] = self.load(u)
    elif op is Ops.STORE: self.store(u)
    elif op is Ops.BARRIER: self.target.barrier(self, u)
    elif op is Ops.VECTORIZE: self.names[u] = self.vector(u)
    elif op is Ops.GEP: self.names[u] = self.lanes(u)
    elif op is Ops.WMMA: self.names[u] = self.target.matrix(self, u)
    elif op is Ops.CAST: self.names[u] = self.cast(self.value(u.src[0]), u.src[0].dtype, u.dtype)
    elif op is Ops.BITCAST: self.names[u] = self.bitcast(u)
    elif op in GroupOp.ALU: self.names[u] = self.alu(u)
    else: raise Unsupported("uop", op.name, arch=self.target.target, where=f"kernel {self.name}")

  def open_loop(self, u: UOp) -> None:
    """A loop, which is gone around where its end may be 0. Phis get their last operands when it closes."""
    loop = Loop(u, self.label("loop"), self.block, self.label("after"), 0)
    if u.src[0].vmin >= 1: self.line(f"br label %{loop.header}")
    else:
      runs = self.new(f"icmp sgt {self.typed(u.src[0])}, 0")
      self.line(f"br i1 {runs}, label %{loop.header}, label %{loop.after}")
    self.begin(loop.header)
    self.names[u] = self.phi_line()
    loop.counter_line = len(self.lines) - 1
    for accumulator in self.carried.get(u, ()):
      entry = self.accumulators[accumulator]
      self.accumulators[accumulator] = name = self.phi_line()
      loop.phis.append((accumulator, name, entry, len(self.lines) - 1))
    self.loops.append(loop)

  def phi_line(self) -> str:
    """A name for a phi, whose line is written later."""
    return self.new("phi")

  def close_loop(self, u: UOp) -> None:
    """The end of the innermost loop."""
    loop = self.loops.pop()
    counter = self.names[loop.range]
    following = self.new(f"add nuw nsw i32 {counter}, 1")
    again = self.new(f"icmp slt i32 {following}, {self.value(loop.range.src[0])}")
    latch = self.block
    self.line(f"br i1 {again}, label %{loop.header}, label %{loop.after}")
    self.lines[loop.counter_line] = f"  {counter} = phi i32 [ 0, %{loop.before} ], [ {following}, %{latch} ]"
    for accumulator, name, entry, line in loop.phis:
      self.lines[line] = (f"  {name} = phi {register_type(accumulator.dtype)} [ {entry}, %{loop.before} ], "
                          f"[ {self.accumulators[accumulator]}, %{latch} ]")
    self.begin(loop.after)
    if loop.range.src[0].vmin >= 1: return
    for accumulator, _, entry, _ in loop.phis:
      last = self.new(f"phi {register_type(accumulator.dtype)} [ {entry}, %{loop.before} ], "
                      f"[ {self.accumulators[accumulator]}, %{latch} ]")
      self.accumulators[accumulator] = last
      self.names.update({a: last for a in self.assigned[accumulator]})

  def vector(self, u: UOp) -> str:
    """VECTORIZE."""
    kind, found = register_type(u.dtype), "poison"
    equal = all(s is u.src[0] for s in u.src)
    if all(s.op is Ops.CONST for s in u.src):
      return constant(u.src[0].arg, u.dtype) if equal else f"<{', '.join(self.typed(s) for s in u.src)}>"
    if equal: return self.splat(u.src[0], kind)
    for i, s in enumerate(u.src): found = self.new(f"insertelement {kind} {found}, {self.typed(s)}, i32 {i}")
    return found

  def lanes(self, u: UOp) -> str:
    """GEP."""
    source = u.src[0]
    if len(u.arg) == 1:
      if source.dtype.count == 1: return self.value(source)
      return self.new(f"extractelement {self.typed(source)}, i32 {u.arg[0]}")
    mask = f"<{len(u.arg)} x i32> <{', '.join(f'i32 {i}' for i in u.arg)}>"
    return self.new(f"shufflevector {self.typed(source)}, {register_type(source.dtype)} poison, {mask}")

  # *** memory ***

  def load(self, u: UOp) -> str:
    """LOAD: plain, or gated by a branch, or gated by reading element 0 and dropping it."""
    index = u.src[0]
    if max(s.dtype.count for s in index.src[1:]) > 1: return self.load_lanes(u)
    if len(index.src) < 3: return self.load_at(u, self.target.address(self, index.src[0], index.src[1], None))
    gate, kind = self.value(index.src[2]), register_type(u.dtype)
    alternative = next((self.value(s) for s in u.src[1:] if s.op is not Ops.BARRIER), "zeroinitializer")
    if self.target.speculates:
      loaded = self.load_at(u, self.target.address(self, index.src[0], index.src[1], gate))
      return self.new(f"select i1 {gate}, {kind} {loaded}, {kind} {alternative}")
    before, inside, after = self.block, self.label("load"), self.label("loaded")
    self.line(f"br i1 {gate}, label %{inside}, label %{after}")
    self.begin(inside)
    loaded = self.load_at(u, self.target.address(self, index.src[0], index.src[1], None))
    self.line(f"br label %{after}")
    self.begin(after)
    return self.new(f"phi {kind} [ {loaded}, %{inside} ], [ {alternative}, %{before} ]")

  def places(self, index: UOp, dtype: DType) -> tuple[str, str, str, str]:
    """Where the lanes of a masked access are: (how LLVM names the access: "" or "s" for many places, the pointers' type
    in names, in text, the operand)."""
    count, pointer, i = dtype.count, index.src[0], index.src[1]
    if i.dtype.count == 1: return "", "p0", "ptr", self.target.address(self, pointer, i, None)
    wide = self.new(f"sext {self.typed(i)} to <{count} x i64>")
    found = self.new(f"getelementptr inbounds {memory_type(dtype.scalar)}, ptr {self.value(pointer)}, "
                     f"<{count} x i64> {wide}")
    return "s", f"v{count}p0", f"<{count} x ptr>", found

  def mask(self, index: UOp, count: int) -> tuple[str, str]:
    """The gate of an access as a vector: its type and value."""
    kind = f"<{count} x i1>"
    if len(index.src) < 3: return kind, "splat (i1 true)"
    gate = index.src[2]
    return kind, self.value(gate) if gate.dtype.count > 1 else self.splat(gate, kind)

  def splat(self, u: UOp, kind: str) -> str:
    """A vector of equal lanes."""
    first = self.new(f"insertelement {kind} poison, {self.typed(u)}, i32 0")
    return self.new(f"shufflevector {kind} {first}, {kind} poison, <{kind[1:].split()[0]} x i32> zeroinitializer")

  def load_lanes(self, u: UOp) -> str:
    """LOAD under a mask, or of elements here and there."""
    index, kind = u.src[0], memory_type(u.dtype)
    other = next((s for s in u.src[1:] if s.op is not Ops.BARRIER), None)
    rest = "zeroinitializer" if other is None else self.value(other)
    if other is not None and u.dtype.is_bool: rest = self.new(f"zext {self.typed(other)} to {kind}")
    many, short, pointer, place = self.places(index, u.dtype)
    name = f"masked.{'gather' if many else 'load'}.{suffix(byte(u.dtype))}.{short}"
    loaded = self.intrinsic(kind, name, (pointer, place), ("i32", str(u.dtype.scalar.itemsize)),
                            self.mask(index, u.dtype.count), (kind, rest))
    return self.new(f"icmp ne {kind} {loaded}, zeroinitializer") if u.dtype.is_bool else loaded

  def store_lanes(self, u: UOp) -> None:
    """STORE under a mask, or to elements here and there."""
    index, value = u.src[:2]
    operand, kind = self.value(value), memory_type(value.dtype)
    if value.dtype.is_bool: operand = self.new(f"zext {self.typed(value)} to {kind}")
    many, short, pointer, place = self.places(index, value.dtype)
    name = f"masked.{'scatter' if many else 'store'}.{suffix(byte(value.dtype))}.{short}"
    self.intrinsic("void", name, (kind, operand), (pointer, place), ("i32", str(value.dtype.scalar.itemsize)),
                   self.mask(index, value.dtype.count))

  def load_at(self, u: UOp, address: str) -> str:
    """The value at an address."""
    pointer = u.src[0].src[0].dtype
    assert isinstance(pointer, PtrDType)
    kind = memory_type(u.dtype)
    align = self.relied_on(u.src[0], u.dtype)
    loaded = self.new(f"load {kind}, {self.target.pointer_type(pointer)} {address}, align {align}")
    return self.new(f"icmp ne {kind} {loaded}, zeroinitializer") if u.dtype.is_bool else loaded

  def store(self, u: UOp) -> None:
    """STORE, in a branch of its own where it has a gate."""
    index, value = u.src[:2]
    if max(s.dtype.count for s in index.src[1:]) > 1: return self.store_lanes(u)
    after = ""
    if len(index.src) > 2:
      inside, after = self.label("store"), self.label("stored")
      self.line(f"br i1 {self.value(index.src[2])}, label %{inside}, label %{after}")
      self.begin(inside)
    pointer = index.src[0].dtype
    assert isinstance(pointer, PtrDType)
    address = f"{self.target.pointer_type(pointer)} {self.target.address(self, index.src[0], index.src[1], None)}"
    operand, kind = self.value(value), memory_type(value.dtype)
    if value.dtype.is_bool: operand = self.new(f"zext {self.typed(value)} to {kind}")
    self.line(f"store {kind} {operand}, {address}, align {self.relied_on(index, value.dtype)}")
    if after:
      self.line(f"br label %{after}")
      self.begin(after)

  def relied_on(self, index: UOp, dtype: DType) -> int:
    """Bytes that a LOAD or STORE may rely on."""
    if self.target.begins_anywhere and index.src[0].op is Ops.DEFINE_GLOBAL: return dtype.scalar.itemsize
    return alignment(index, dtype)

  # *** conversions ***

  def cast(self, x: str, source: DType, target: DType) -> str:
    """CAST of a scalar or a vector."""
    if source is target: return x
    s, t = register_type(source), register_type(target)
    if target.is_bool: return self.new(f"{'fcmp une' if source.is_float else 'icmp ne'} {s} {x}, zeroinitializer")
    if source.is_float and target.is_float:
      if target.bits > source.bits: return self.new(f"fpext {s} {x} to {t}")
      # Two roundings are not one, and not every target rounds a double to a half at once.
      if source.bits == 64 and target.bits == 16:
        x, source = self.round_to_odd(x, source.count), dtypes.float32.vec(source.count)
        s = register_type(source)
      if target.scalar is dtypes.float16: return self.target.half(self, x, s, t)
      return self.new(f"fptrunc {s} {x} to {t}")
    sign = "s" if (target if source.is_float else source).is_signed else "u"
    if source.is_float:
      # LLVM 22 gives -32768 for the half NaN as int16 where the host converts halves to integers (AVX512-FP16).
      if source.bits == 16:
        single = dtypes.float32.vec(source.count)
        x, s, source = self.cast(x, source, single), register_type(single), single
      return self.intrinsic(t, f"fpto{sign}i.sat.{suffix(target)}.{suffix(source)}", (s, x))
    if target.is_float and target.bits == 16 and source.bits > 16:
      return self.integer_to_half(x, f"{sign}itofp {s}", source.count, t)
    if target.is_float: return self.new(f"{sign}itofp {s} {x} to {t}")
    if target.bits == source.bits: return x
    if target.bits < source.bits: return self.new(f"trunc {s} {x} to {t}")
    return self.new(f"{'sext' if source.is_signed else 'zext'} {s} {x} to {t}")

  def integer_to_half(self, x: str, conversion: str, count: int, target: str) -> str:
    """An integer as a half, by way of float: beyond 24 bits it is infinite. That is said to LLVM 22, which takes an
    integer of few significant bits for exact as a half, however large, and gives it back where the half becomes one."""
    kind = dtypes.float32.vec(count)
    single, flag = register_type(kind), register_type(dtypes.bool.vec(count))
    near = self.new(f"{conversion} {x} to {single}")
    for compare, sign in (("oge", 1), ("ole", -1)):
      beyond = self.new(f"fcmp {compare} {single} {near}, {constant(sign * 2.0**16, kind)}")
      near = self.new(f"select {flag} {beyond}, {single} {constant(sign * math.inf, kind)}, {single} {near}")
    return self.target.half(self, near, single, target)

  def round_to_odd(self, x: str, count: int) -> str:
    """A double as a float, its last bit set where the float is not exact: rounding it once more is then harmless."""
    double, single, word, flag = (register_type(d.vec(count)) for d in (dtypes.float64, dtypes.float32, dtypes.int32,
                                                                        dtypes.bool))
    one, minus = (constant(v, dtypes.int32.vec(count)) for v in (1, -1))
    absolute = f"fabs.{suffix(dtypes.float64.vec(count))}"
    near = self.new(f"fptrunc {double} {x} to {single}")
    back = self.new(f"fpext {single} {near} to {double}")
    bits = self.new(f"bitcast {single} {near} to {word}")
    beyond = self.new(f"fcmp ogt {double} {self.intrinsic(double, absolute, (double, back))}, "
                      f"{self.intrinsic(double, absolute, (double, x))}")
    step = self.new(f"select {flag} {beyond}, {word} {minus}, {word} {one}")
    other = self.new(f"add {word} {bits}, {step}")
    odd = self.new(f"trunc {word} {bits} to {flag}")
    keep = self.new(f"or {flag} {odd}, {self.new(f'fcmp ueq {double} {back}, {x}')}")
    return self.new(f"bitcast {word} {self.new(f'select {flag} {keep}, {word} {bits}, {word} {other}')} to {single}")

  def bitcast(self, u: UOp) -> str:
    """BITCAST. A bool is a byte in memory."""
    source, x = u.src[0].dtype, self.value(u.src[0])
    s, t = register_type(source), register_type(u.dtype)
    if s == t: return x
    if source.is_bool: return self.new(f"zext {s} {x} to {t}")
    if u.dtype.is_bool: return self.new(f"icmp ne {s} {x}, zeroinitializer")
    return self.new(f"bitcast {s} {x} to {t}")

  # *** arithmetic ***

  def alu(self, u: UOp) -> str:
    """An arithmetic operation on scalars or on all lanes."""
    op = u.op
    operand = u.src[1].dtype if op is Ops.WHERE else u.src[0].dtype
    t, x = register_type(operand), [self.value(s) for s in u.src]
    if op is Ops.WHERE: return self.new(f"select {self.typed(u.src[0])}, {t} {x[1]}, {t} {x[2]}")
    if op in COMPARISONS:
      signed, unsigned, ordered = COMPARISONS[op]
      if operand.is_float: return self.new(f"fcmp {ordered} {t} {x[0]}, {x[1]}")
      return self.new(f"icmp {signed if operand.is_signed else unsigned} {t} {x[0]}, {x[1]}")
    if operand.is_float: return self.float_alu(op, operand, t, x)
    if operand.is_bool: return self.bool_alu(u, x)
    return self.int_alu(u, operand, t, x)

  def float_alu(self, op: Ops, dtype: DType, t: str, x: list[str]) -> str:
    """Arithmetic of floats that gives a float."""
    if op in FLOAT: return self.new(f"{FLOAT[op]} {t} {x[0]}, {x[1]}")
    if op is Ops.NEG: return self.new(f"fneg {t} {x[0]}")
    if op is Ops.RECIP: return self.new(f"fdiv {t} {constant(1.0, dtype)}, {x[0]}")
    name = suffix(dtype)
    if op is Ops.MULACC: return self.target.multiply_add(self, dtype, x)
    if op is Ops.MAX: return self.intrinsic(t, f"maximum.{name}", (t, x[0]), (t, x[1]))
    if op not in INTRINSICS or not self.target.native(op, dtype): raise self.unsupported(op, dtype)
    return self.intrinsic(t, f"{INTRINSICS[op]}.{name}", (t, x[0]))

  def bool_alu(self, u: UOp, x: list[str]) -> str:
    """Arithmetic of bools that gives a bool."""
    t = register_type(u.dtype)
    if u.op is Ops.NEG: return x[0]
    if u.op is Ops.MULACC: return self.new(f"or {t} {self.new(f'and {t} {x[0]}, {x[1]}')}, {x[2]}")
    if u.op not in LOGICAL: raise self.unsupported(u.op, dtypes.bool)
    return self.new(f"{LOGICAL[u.op]} {t} {x[0]}, {x[1]}")

  def int_alu(self, u: UOp, dtype: DType, t: str, x: list[str]) -> str:
    """Arithmetic of integers that gives an integer."""
    op = u.op
    if op in INTEGER: return self.new(f"{INTEGER[op]}{no_wrap(u)} {t} {x[0]}, {x[1]}")
    if op is Ops.NEG: return self.new(f"sub{no_wrap(u)} {t} {constant(0, dtype)}, {x[0]}")
    if op is Ops.MULACC: return self.new(f"add {t} {self.new(f'mul {t} {x[0]}, {x[1]}')}, {x[2]}")
    if op is Ops.MAX: return self.intrinsic(t, f"{'s' if dtype.is_signed else 'u'}max.{suffix(dtype)}",
                                            (t, x[0]), (t, x[1]))
    if op in (Ops.SHL, Ops.SHR):
      name = "shl" if op is Ops.SHL else "ashr" if dtype.is_signed else "lshr"
      return self.new(f"{name} {t} {x[0]}, {self.shift_count(u.src[1], dtype)}")
    if op in (Ops.IDIV, Ops.MOD): return self.divide(u, dtype, x)
    raise self.unsupported(op, dtype)

  def shift_count(self, count: UOp, dtype: DType) -> str:
    """The count modulo the width. The low bits of any integer type hold it."""
    known = lane(count)
    if known.op is Ops.CONST: return constant(int(known.arg) % dtype.bits, dtype)
    x, s, t = self.value(count), register_type(count.dtype), register_type(dtype)
    if count.dtype.bits > dtype.bits: x = self.new(f"trunc {s} {x} to {t}")
    if count.dtype.bits < dtype.bits: x = self.new(f"zext {s} {x} to {t}")
    if known.dtype.is_int and known.vmin >= 0 and known.vmax < dtype.bits: return x
    return self.new(f"and {t} {x}, {constant(dtype.bits - 1, dtype)}")

  def divide(self, u: UOp, dtype: DType, x: list[str]) -> str:
    """IDIV or MOD: C's, but a division by zero gives zero and the quotient wraps."""
    top, bottom = lane(u.src[0]), lane(u.src[1])
    t, flag = register_type(dtype), register_type(dtypes.bool.vec(dtype.count))
    name = "div" if u.op is Ops.IDIV else "rem"
    if dtype.bits < 32:
      # LLVM 22 for AMDGPU ends the process over a 16-bit quotient and remainder of the same numbers at -O0.
      wide = (dtypes.int32 if dtype.is_signed else dtypes.uint32).vec(dtype.count)
      narrow = self.divide(u, wide, [self.cast(v, dtype, wide) for v in x])
      return self.cast(narrow, wide, dtype)
    if bottom.vmin > 0:
      return self.new(f"{'s' if dtype.is_signed and top.vmin < 0 else 'u'}{name} {t} {x[0]}, {x[1]}")
    one = constant(1, dtype)
    zero = self.new(f"icmp eq {t} {x[1]}, zeroinitializer")
    if not dtype.is_signed:
      result = self.new(f"u{name} {t} {x[0]}, {self.new(f'select {flag} {zero}, {t} {one}, {t} {x[1]}')}")
      return self.new(f"select {flag} {zero}, {t} zeroinitializer, {t} {result}")
    # -1 is divided by apart: the most negative number has no positive counterpart.
    minus = self.new(f"icmp eq {t} {x[1]}, {constant(-1, dtype)}")
    guarded = self.new(f"select {flag} {self.new(f'or {flag} {zero}, {minus}')}, {t} {one}, {t} {x[1]}")
    result = self.new(f"s{name} {t} {x[0]}, {guarded}")
    if u.op is Ops.MOD: return result               # the remainder of a division by 1 is the 0 that is wanted
    negative = self.new(f"sub {t} zeroinitializer, {x[0]}")
    result = self.new(f"select {flag} {minus}, {t} {negative}, {t} {result}")
    return self.new(f"select {flag} {zero}, {t} zeroinitializer, {t} {result}")

  def unsupported(self, op: Ops, dtype: DType) -> Unsupported:
    """The error of arithmetic that the target does not do."""
    return Unsupported("arithmetic", f"{op.name} on {dtype.name}", arch=self.target.target, where=f"kernel {self.name}")


def lane(u: UOp) -> UOp:
  """A vector of equal lanes as one of them: more is known of it."""
  return u.src[0] if u.op is Ops.VECTORIZE and all(s is u.src[0] for s in u.src) else u


def no_wrap(u: UOp) -> str:
  """The flags that the bounds of an ADD, SUB, MUL or NEG prove. Bounds that reach the type's ends may mean anything."""
  if u.op in GroupOp.BITWISE or not u.vmin > u.dtype.min and not u.vmax < u.dtype.max: return ""
  signed = " nsw" if u.dtype.is_signed else ""
  natural = u.op in (Ops.ADD, Ops.MUL) and all(s.vmin >= 0 for s in u.src)
  return (" nuw" if natural or not u.dtype.is_signed and u.op is not Ops.NEG else "") + signed


def carried_accumulators(uops: Sequence[UOp]) -> dict[UOp, list[UOp]]:
  """For each RANGE the accumulators that were defined before it and are assigned in it."""
  open_loops: list[UOp] = []
  depth: dict[UOp, int] = {}
  found: dict[UOp, list[UOp]] = {}
  for u in uops:
    if u.op is Ops.RANGE: open_loops.append(u)
    elif u.op is Ops.ENDRANGE: open_loops.pop()
    elif u.op is Ops.DEFINE_ACC: depth[u] = len(open_loops)
    elif u.op is Ops.ASSIGN:
      accumulator = u.src[0]
      for loop in open_loops[depth[accumulator]:]:
        carried = found.setdefault(loop, [])
        if accumulator not in carried: carried.append(accumulator)
  return found
