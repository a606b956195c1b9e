"""Linear programs as LLVM IR, and IR as machine code: what the host and the AMDGPU renderers share.

Bools are i1 in registers and bytes in memory. Nothing is left to chance that `ir.semantics` defines and LLVM does not:
divisors are guarded, shift counts masked, conversions saturate. No library function is called.
"""
from __future__ import annotations

import math
import struct
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from tinyhw.compile.program import Dim3
from tinyhw.compile.render.base import Renderer
from tinyhw.ir.dtype import DType, PtrDType, dtypes
from tinyhw.ir.symbolic import linear
from tinyhw.ir.uop import GroupOp, Ops, UOp

_FLOATS = {"float16": "half", "float32": "float", "float64": "double"}
_SUFFIX = {"float16": "f16", "float32": "f32", "float64": "f64"}
_FLOAT_OPS = {Ops.ADD: "fadd", Ops.SUB: "fsub", Ops.MUL: "fmul", Ops.FDIV: "fdiv"}
_INT_OPS = {Ops.ADD: "add", Ops.SUB: "sub", Ops.MUL: "mul", Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor"}
_INTRINSICS = {Ops.SQRT: "sqrt", Ops.TRUNC: "trunc", Ops.EXP2: "exp2", Ops.LOG2: "log2", Ops.SIN: "sin"}


def type_name(dtype: DType) -> str:
  """The LLVM type of a value."""
  scalar = dtype.scalar
  name = _FLOATS.get(scalar.name, f"i{scalar.bits}")
  return name if dtype.count == 1 else f"<{dtype.count} x {name}>"


def memory_name(dtype: DType) -> str:
  """The LLVM type of an element in memory."""
  return "i8" if dtype.is_bool else type_name(dtype)


def constant(value: Any, dtype: DType) -> str:
  """A literal. Floats are written by their bits, as double."""
  if dtype.is_bool: return "true" if value else "false"
  if not dtype.is_float: return str(int(value))
  if dtype is dtypes.float16:
    bits = 0x7E00 if math.isnan(value) else int.from_bytes(struct.pack("<e", value), "little")
    return f"0xH{bits:04X}"
  return f"0x{int.from_bytes(struct.pack('<d', value if value == value else math.nan), 'little'):016X}"


class Writer:
  """The text of one function: lines, names, and the intrinsics it declares."""

  def __init__(self, uops: Sequence[UOp]) -> None:
    self.lines: list[str] = ["entry:"]
    self.block = "entry"
    self.declared: dict[str, None] = {}
    self.count = 0
    self.names: dict[UOp, str] = {}
    for i, u in enumerate(uops): self.names[u] = constant(u.arg, u.dtype) if u.op is Ops.CONST else f"%v{i}"

  def add(self, line: str) -> None:
    """Appends an instruction."""
    self.lines.append("  " + line)

  def label(self, name: str) -> None:
    """Starts a basic block."""
    self.lines.append(f"{name}:")
    self.block = name

  def fresh(self) -> str:
    """A name of no UOp."""
    self.count += 1
    return f"%t{self.count}"

  def new(self, line: str) -> str:
    """Appends an instruction and names its result."""
    name = self.fresh()
    self.add(f"{name} = {line}")
    return name

  def call(self, name: str, result: str, arguments: Sequence[tuple[str, str]], attributes: str = "") -> str:
    """The text of a call of an intrinsic, which is declared."""
    self.declared[f"declare {result} @{name}({', '.join(t for t, _ in arguments)})"] = None
    return f"call {attributes}{result} @{name}({', '.join(f'{t} {v}' for t, v in arguments)})"

  def __getitem__(self, u: UOp) -> str: return self.names[u]


class LLVMRenderer(Renderer):
  """A target of LLVM. `opt_level` is that of the passes and of the code generator (0 to 3)."""
  vector_bytes = 16
  triple: str

  def __init__(self, opt_level: int = 2) -> None:
    self.opt_level = opt_level
    self._machine: Any = None

  @abstractmethod
  def make_machine(self) -> Any:
    """llvmlite's TargetMachine; llvmlite is imported here and not before."""

  @abstractmethod
  def function(self, name: str, uops: Sequence[UOp], body: Writer, block: Dim3) -> list[str]:
    """The lines around the body: definition, attributes, metadata."""

  @abstractmethod
  def special(self, u: UOp, w: Writer) -> None:
    """A SPECIAL or BARRIER."""

  def render(self, name: str, uops: Sequence[UOp], grid: Dim3, block: Dim3) -> tuple[str, bytes]:
    w = Writer(uops)
    _Body(self, uops, w).run()
    w.add("ret void")
    source = "\n".join([f'target triple = "{self.triple}"', *self.function(name, uops, w, block), *w.declared, ""])
    return source, self.compile(source)

  def machine(self) -> Any:
    """The TargetMachine, made once."""
    if self._machine is None: self._machine = self.make_machine()
    return self._machine

  def compile(self, source: str) -> bytes:
    """The relocatable object of IR text."""
    module = self.optimized(source)
    return bytes(self.machine().emit_object(module))

  def assembly(self, source: str) -> str:
    """The target's assembly text of IR text."""
    return str(self.machine().emit_assembly(self.optimized(source)))

  def optimized(self, source: str) -> Any:
    """llvmlite's module of IR text, after the passes."""
    import llvmlite.binding as llvm
    machine = self.machine()
    module = llvm.parse_assembly(source)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=self.opt_level)
    if self.opt_level >= 2: options.slp_vectorization = options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module

  # *** addresses, which targets may compute in their own way ***

  def pointer_type(self, dtype: DType) -> str:
    """The LLVM type of a pointer."""
    return "ptr"

  def address(self, index: UOp, w: Writer) -> str:
    """The address of an INDEX. Where its gate is False it is that of element 0, which always exists."""
    pointer, element = index.src[:2]
    assert isinstance(pointer.dtype, PtrDType)
    number = w[element]
    if len(index.src) > 2: number = w.new(f"select i1 {w[index.src[2]]}, i32 {number}, i32 0")
    wide = w.new(f"{'zext' if element.vmin >= 0 or len(index.src) > 2 else 'sext'} i32 {number} to i64")
    kind = memory_name(pointer.dtype.base)
    return w.new(f"getelementptr inbounds {kind}, {self.pointer_type(pointer.dtype)} {w[pointer]}, i64 {wide}")

  def split(self, element: UOp) -> tuple[UOp, int]:
    """An index as (index, constant to add to it), neither negative."""
    if element.op is Ops.ADD and element.src[1].op is Ops.CONST and element.src[1].arg > 0 and \
        element.src[0].vmin >= 0: return element.src[0], int(element.src[1].arg)
    return element, 0

  def is_flat(self, index: UOp) -> bool:
    """Whether the byte offset of every element fits 31 bits."""
    pointer = index.src[0].dtype
    assert isinstance(pointer, PtrDType)
    return 0 <= pointer.size * max(pointer.base.itemsize, 1) < 2 ** 31 and bool(linear(index.src[1]))


class _Body:
  """Renders the UOps of one program into a Writer."""

  def __init__(self, renderer: LLVMRenderer, uops: Sequence[UOp], w: Writer) -> None:
    self.renderer, self.uops, self.w = renderer, uops, w
    self.registers: dict[UOp, str] = {}                  # DEFINE_ACC -> its present value
    self.loops: list[tuple[UOp, str, str, list[tuple[UOp, int]], int]] = []

  def run(self) -> None:
    """All of them."""
    for i, u in enumerate(self.uops): self.one(u, i)

  def one(self, u: UOp, position: int) -> None:
    """One UOp."""
    w, op = self.w, u.op
    if op is Ops.RANGE: self.begin(u, position)
    elif op is Ops.ENDRANGE: self.end()
    elif op is Ops.DEFINE_ACC: self.registers[u] = w.names[u] = w[u.src[0]]
    elif op is Ops.ASSIGN: w.names[u] = w[u.src[1]]
    elif op is Ops.LOAD: self.load(u)
    elif op is Ops.STORE: self.store(u, position)
    elif op is Ops.VECTORIZE: self.vectorize(u)
    elif op is Ops.GEP:
      if len(u.arg) != 1: raise ValueError("GEP of several lanes does not occur in linear programs for LLVM")
      w.add(f"{w[u]} = extractelement {type_name(u.src[0].dtype)} {w[u.src[0]]}, i32 {u.arg[0]}")
    elif op in (Ops.SPECIAL, Ops.BARRIER): self.renderer.special(u, w)
    elif op is Ops.CAST: w.names[u] = self.cast(u)
    elif op is Ops.BITCAST:
      w.add(f"{w[u]} = bitcast {type_name(u.src[0].dtype)} {w[u.src[0]]} to {type_name(u.dtype)}")
    elif op in GroupOp.ALU: w.add(f"{w[u]} = {self.alu(u)}")
    elif op not in (Ops.CONST, Ops.INDEX, Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.DEFINE_VAR):
      raise ValueError(f"{op.name} does not occur in a linear program")

  def begin(self, u: UOp, position: int) -> None:
    """RANGE: the loop's block, with its counter and the registers that it changes as phis."""
    w = self.w
    name, before = f"loop{position}", w.block
    w.add(f"br label %{name}")
    w.label(name)
    # The last block of the loop is not known yet: the lines are completed at its end.
    phis: list[tuple[UOp, int]] = [(u, len(w.lines))]
    w.lines.append(f"  {w[u]} = phi i32 [ 0, %{before} ]")
    for v in self.uops[position + 1:]:
      if v.op is Ops.ENDRANGE and v.src[0] is u: break
      if v.op is Ops.ASSIGN and v.src[0] in self.registers:
        register = v.src[0]
        phi = w.fresh()
        phis.append((v, len(w.lines)))
        w.lines.append(f"  {phi} = phi {type_name(v.dtype)} [ {self.registers[register]}, %{before} ]")
        self.registers[register] = w.names[register] = phi
    self.loops.append((u, name, before, phis, position))

  def end(self) -> None:
    """ENDRANGE: the counter's step and the branch back; loops run at least once."""
    w = self.w
    u, name, _, phis, _ = self.loops.pop()
    following = w.new(f"add nuw nsw i32 {w[u]}, 1")
    more = w.new(f"icmp slt i32 {following}, {w[u.src[0]]}")
    for v, line in phis: w.lines[line] += f", [ {following if v is u else w[v]}, %{w.block} ]"
    for v, _ in phis[1:]: self.registers[v.src[0]] = w[v]
    after = f"after{name[4:]}"
    w.add(f"br i1 {more}, label %{name}, label %{after}")
    w.label(after)

  def access(self, index: UOp, value: DType) -> tuple[str, str, str, int]:
    """(address, pointer type, type in memory, alignment)."""
    assert isinstance(index.dtype, PtrDType)
    kind = memory_name(value)
    return (self.renderer.address(index, self.w), self.renderer.pointer_type(index.dtype), kind,
            index.dtype.base.itemsize * value.count)

  def load(self, u: UOp) -> None:
    """LOAD: where a gate is False the first element is loaded and not used."""
    w, index = self.w, u.src[0]
    address, pointer, kind, align = self.access(index, u.dtype)
    gated = len(index.src) > 2
    plain = not gated and not u.dtype.is_bool
    line = f"load {kind}, {pointer} {address}, align {align}"
    if plain:
      w.add(f"{w[u]} = {line}")
      return
    value = w.new(line)
    if u.dtype.is_bool: value = w.new(f"icmp ne i8 {value}, 0")
    kind = type_name(u.dtype)
    if gated: w.names[u] = w.new(f"select i1 {w[index.src[2]]}, {kind} {value}, {kind} {w[u.src[1]]}")
    else: w.names[u] = value

  def store(self, u: UOp, position: int) -> None:
    """STORE: behind a branch where there is a gate."""
    w, (index, value) = self.w, u.src
    gated = len(index.src) > 2
    if gated:
      w.add(f"br i1 {w[index.src[2]]}, label %store{position}, label %next{position}")
      w.label(f"store{position}")
    text = w.new(f"zext i1 {w[value]} to i8") if value.dtype.is_bool else w[value]
    address, pointer, kind, align = self.access(index, value.dtype)
    w.add(f"store {kind} {text}, {pointer} {address}, align {align}")
    if gated:
      w.add(f"br label %next{position}")
      w.label(f"next{position}")

  def vectorize(self, u: UOp) -> None:
    """VECTORIZE: lane by lane."""
    w, kind, value = self.w, type_name(u.dtype), "poison"
    for i, s in enumerate(u.src):
      line = f"insertelement {kind} {value}, {type_name(s.dtype)} {w[s]}, i32 {i}"
      if i < len(u.src) - 1: value = w.new(line)
      else: w.add(f"{w[u]} = {line}")

  def cast(self, u: UOp) -> str:
    """CAST; gives the name of the result."""
    w, (x,), target = self.w, u.src, u.dtype
    source = x.dtype
    a, b = type_name(source), type_name(target)
    if target.is_bool:
      return w.new(f"fcmp une {a} {w[x]}, 0.0" if source.is_float else f"icmp ne {a} {w[x]}, 0")
    if source.is_float and target.is_float:
      return w.new(f"{'fpext' if target.bits > source.bits else 'fptrunc'} {a} {w[x]} to {b}")
    if target.is_float:
      convert = "sitofp" if source.is_signed else "uitofp"
      if target is dtypes.float16 and source.bits > 16:    # exact by way of float32: what it rounds is infinite as half
        wide = w.new(f"{convert} {a} {w[x]} to float")
        return w.new(f"fptrunc float {wide} to half")
      return w.new(f"{convert} {a} {w[x]} to {b}")
    if source.is_float:
      value, kind, suffix = w[x], a, _SUFFIX[source.name]
      if source is dtypes.float16: value, kind, suffix = w.new(f"fpext half {value} to float"), "float", "f32"
      name = f"llvm.fpto{'s' if target.is_signed else 'u'}i.sat.i{target.bits}.{suffix}"
      return w.new(w.call(name, b, [(kind, value)]))
    if target.bits == source.bits: return w[x]
    if target.bits < source.bits: return w.new(f"trunc {a} {w[x]} to {b}")
    return w.new(f"{'sext' if source.is_signed else 'zext'} {a} {w[x]} to {b}")

  def alu(self, u: UOp) -> str:
    """The instruction of an arithmetic operation."""
    w, op, dtype = self.w, u.op, u.src[-1].dtype
    kind, names = type_name(dtype), [self.w[s] for s in u.src]
    if op is Ops.WHERE: return f"select i1 {names[0]}, {kind} {names[1]}, {kind} {names[2]}"
    if op in GroupOp.COMPARE:
      if dtype.is_float:
        return f"fcmp {({Ops.CMPLT: 'olt', Ops.CMPNE: 'une', Ops.CMPEQ: 'oeq'})[op]} {kind} {names[0]}, {names[1]}"
      less = "slt" if dtype.is_signed else "ult"
      return f"icmp {({Ops.CMPLT: less, Ops.CMPNE: 'ne', Ops.CMPEQ: 'eq'})[op]} {kind} {names[0]}, {names[1]}"
    if op is Ops.MAX:
      name = "maximum" if dtype.is_float else "smax" if dtype.is_signed else "umax"
      return w.call(f"llvm.{name}.{_SUFFIX.get(dtype.name, kind)}", kind, [(kind, n) for n in names])
    if dtype.is_float:
      if op in _FLOAT_OPS: return f"{_FLOAT_OPS[op]} {kind} {names[0]}, {names[1]}"
      if op is Ops.NEG: return f"fneg {kind} {names[0]}"
      if op is Ops.MULACC:
        return w.call(f"llvm.fma.{_SUFFIX[dtype.name]}", kind, [(kind, n) for n in names])
      if op in _INTRINSICS: return w.call(f"llvm.{_INTRINSICS[op]}.{_SUFFIX[dtype.name]}", kind, [(kind, names[0])])
    if op in _INT_OPS:
      # Index arithmetic with known bounds does not wrap; saying so lets LLVM use wider addressing.
      flags = " nsw" if dtype.is_signed and op in (Ops.ADD, Ops.MUL, Ops.SUB) and u.vmin > dtype.min and \
        u.vmax < dtype.max else ""
      return f"{_INT_OPS[op]}{flags} {kind} {names[0]}, {names[1]}"
    if op is Ops.NEG: return f"sub {kind} 0, {names[0]}"
    if op in (Ops.SHL, Ops.SHR): return self.shift(u)
    if op in (Ops.IDIV, Ops.MOD): return self.divide(u)
    raise ValueError(f"{op.name} of {dtype} cannot be rendered")

  def shift(self, u: UOp) -> str:
    """SHL, SHR: the count modulo the width."""
    w, (x, count) = self.w, u.src
    kind = type_name(x.dtype)
    name = "shl" if u.op is Ops.SHL else "ashr" if x.dtype.is_signed else "lshr"
    if count.op is Ops.CONST: return f"{name} {kind} {w[x]}, {int(count.arg) % x.dtype.bits}"
    amount = w[count]
    if count.dtype.bits != x.dtype.bits:
      change = "trunc" if count.dtype.bits > x.dtype.bits else "zext"
      amount = w.new(f"{change} {type_name(count.dtype)} {amount} to {kind}")
    amount = w.new(f"and {kind} {amount}, {x.dtype.bits - 1}")
    return f"{name} {kind} {w[x]}, {amount}"

  def divide(self, u: UOp) -> str:
    """IDIV, MOD: by zero gives 0, and the least number by -1 wraps."""
    w, (x, d) = self.w, u.src
    kind, signed = type_name(x.dtype), x.dtype.is_signed
    name = ("s" if signed else "u") + ("div" if u.op is Ops.IDIV else "rem")
    if d.op is Ops.CONST and d.arg == 0: return f"and {kind} {w[x]}, 0"
    if d.op is Ops.CONST and d.arg != -1: return f"{name} {kind} {w[x]}, {w[d]}"
    zero = w.new(f"icmp eq {kind} {w[d]}, 0")
    unsafe = zero
    if signed:
      minus = w.new(f"icmp eq {kind} {w[d]}, -1")
      unsafe = w.new(f"or i1 {zero}, {minus}")
    safe = w.new(f"select i1 {unsafe}, {kind} 1, {kind} {w[d]}")
    result = w.new(f"{name} {kind} {w[x]}, {safe}")
    if signed and u.op is Ops.IDIV:
      negative = w.new(f"sub {kind} 0, {w[x]}")
      result = w.new(f"select i1 {minus}, {kind} {negative}, {kind} {result}")
    return f"select i1 {zero}, {kind} 0, {kind} {result}"
