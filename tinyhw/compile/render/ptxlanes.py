"""What PTX says to single values: registers, instructions, constants, arithmetic, conversions, by tables.

A type has a row in `FORMS`, an operation one in `OPERATIONS`. Integers of 8 bits live in registers of 16, their sign or
zeros above. Every floating-point instruction says how it rounds: what says nothing, NVIDIA's assembler may contract.
Facts: the PTX ISA manual, 9.7 (NaN as an integer: `cvt`, "Integer Notes").
"""
from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from tinyhw.core.errors import Unsupported
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.semantics import Scalar
from tinyhw.ir.uop import UOp

REGISTERS: Final = {"p": "pred", "h": "b16", "r": "b32", "rd": "b64", "f": "f32", "fd": "f64"}


@dataclass(frozen=True)
class Form:
  """How PTX has a type: the letters of its registers, and its names where it is moved, computed with, and in memory."""
  register: str
  move: str
  number: str
  memory: str


FORMS: Final[dict[DType, Form]] = {
  dtypes.bool:    Form("p",  "pred", "pred", "u8"),
  dtypes.int8:    Form("h",  "b16",  "s16",  "s8"),  dtypes.uint8:  Form("h",  "b16", "u16", "u8"),
  dtypes.int16:   Form("h",  "b16",  "s16",  "s16"), dtypes.uint16: Form("h",  "b16", "u16", "u16"),
  dtypes.int32:   Form("r",  "b32",  "s32",  "s32"), dtypes.uint32: Form("r",  "b32", "u32", "u32"),
  dtypes.int64:   Form("rd", "b64",  "s64",  "s64"), dtypes.uint64: Form("rd", "b64", "u64", "u64"),
  dtypes.float16: Form("h",  "b16",  "f16",  "b16"),
  dtypes.float32: Form("f",  "f32",  "f32",  "f32"), dtypes.float64: Form("fd", "f64", "f64", "f64")}

OPERATIONS: Final[dict[Ops, tuple[str, str, str]]] = {       # of floats, of integers, of bools; {n}: `number`
  Ops.ADD:    ("add.rn.{n}",      "add.{n}",     "or.pred"),
  Ops.SUB:    ("sub.rn.{n}",      "sub.{n}",     "xor.pred"),
  Ops.MUL:    ("mul.rn.{n}",      "mul.lo.{n}",  "and.pred"),
  Ops.MULACC: ("fma.rn.{n}",      "mad.lo.{n}",  ""),
  Ops.FDIV:   ("div.rn.{n}",      "",            ""),
  Ops.RECIP:  ("rcp.rn.{n}",      "",            ""),
  Ops.SQRT:   ("sqrt.rn.{n}",     "",            ""),
  Ops.TRUNC:  ("cvt.rzi.{n}.{n}", "",            ""),
  Ops.NEG:    ("neg.{n}",         "neg.s{bits}", ""),
  Ops.MAX:    ("max.NaN.{n}",     "max.{n}",     "or.pred"),
  Ops.IDIV:   ("",                "div.{n}",     ""),
  Ops.MOD:    ("",                "rem.{n}",     ""),
  Ops.SHL:    ("",                "shl.b{bits}", ""),
  Ops.SHR:    ("",                "shr.{n}",     ""),
  Ops.AND:    ("",                "and.b{bits}", "and.pred"),
  Ops.OR:     ("",                "or.b{bits}",  "or.pred"),
  Ops.XOR:    ("",                "xor.b{bits}", "xor.pred"),
  Ops.CMPLT:  ("setp.lt.{n}",     "setp.lt.{n}", ""),
  Ops.CMPEQ:  ("setp.eq.{n}",     "setp.eq.{n}", ""),
  Ops.CMPNE:  ("setp.neu.{n}",    "setp.ne.{n}", "xor.pred")}
_BY_SINGLE: Final = frozenset({Ops.FDIV, Ops.RECIP, Ops.SQRT})           # of halves: rounding twice is harmless here
_LEAVES: Final = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.MULACC, Ops.NEG, Ops.SHL})       # 8 bits for more


@dataclass
class PTXLine:
  """An instruction, or a label."""
  depth: int
  word: str
  operands: tuple[str, ...] = ()
  result: str = ""
  guard: str = ""
  note: str = ""

  def text(self) -> str:
    if self.word.endswith(":"): return self.word
    operands = ", ".join((self.result, *self.operands) if self.result else self.operands)
    guard, note = f"@{self.guard} " if self.guard else "", f"  // {self.note}" if self.note else ""
    return f"{'  ' * (self.depth + 1)}{guard}{self.word}{' ' if operands else ''}{operands};{note}"


def literal(value: Scalar, dtype: DType) -> str:
  """A canonical number as PTX spells it: floats by their bits."""
  if dtype is dtypes.float16: return f"0x{int.from_bytes(struct.pack('<e', value), 'little'):04X}"
  if dtype is dtypes.float32: return f"0f{int.from_bytes(struct.pack('<f', value), 'little'):08X}"
  if dtype is dtypes.float64: return f"0d{int.from_bytes(struct.pack('<d', value), 'little'):016X}"
  return str(int(value))


def group(registers: Sequence[str]) -> str:
  """One register, or several as a vector operand."""
  return registers[0] if len(registers) == 1 else f"{{{', '.join(registers)}}}"


class Lanes:
  """Writes instructions on registers of one value each."""

  def __init__(self, target: str, name: str) -> None:
    self.target, self.name = target, name
    self.lines: list[PTXLine] = []
    self.first: list[PTXLine] = []                   # what the kernel begins with
    self.depth = 0
    self.counts = dict.fromkeys(REGISTERS, 0)
    self.accumulators: dict[str, UOp] = {}        # by register
    self.kept: dict[tuple[str, DType], str] = {}  # constants that have registers
    self.scopes: list[dict[Hashable, str]] = [{}]  # what was made already, outside of loops and in each open one

  # *** text ***

  def register(self, dtype: DType) -> str:
    """A new register for a type."""
    letters = FORMS[dtype].register
    self.counts[letters] += 1
    return f"%{letters}{self.counts[letters]}"

  def unused(self, registers: Sequence[str]) -> None:
    """Have the numbers of registers that nobody names given to the next ones."""
    for x in reversed(registers):
      letters = x.strip("%0123456789")
      if x == f"%{letters}{self.counts[letters]}": self.counts[letters] -= 1

  def line(self, word: str, *operands: str, result: str = "", guard: str = "", note: str = "") -> None:
    """An instruction."""
    self.lines.append(PTXLine(self.depth, word, operands, result, guard, note))

  def new(self, dtype: DType, word: str, *operands: str, note: str = "") -> str:
    """An instruction with a result of the type; gives its register."""
    found = self.register(dtype)
    self.line(word, *operands, result=found, note=note)
    return found

  def begins(self, dtype: DType, word: str, *operands: str, note: str = "") -> str:
    """The same at the beginning of the kernel."""
    found = self.register(dtype)
    self.first.append(PTXLine(0, word, operands, found, note=note))
    return found

  def known(self, key: Hashable) -> str | None:
    """What was made for a key where it is still good."""
    return next((scope[key] for scope in self.scopes if key in scope), None)

  def constant(self, value: Scalar, dtype: DType) -> str:
    """An operand of a constant. Of halves and predicates there are none: they have registers."""
    text = literal(value, dtype)
    if dtype is not dtypes.float16 and not dtype.is_bool: return text
    if (text, dtype) not in self.kept: self.kept[text, dtype] = self.begins(dtype, f"mov.{FORMS[dtype].move}", text)
    return self.kept[text, dtype]

  def held(self, x: str, dtype: DType) -> str:
    """A register with an operand."""
    return x if x.startswith("%") else self.new(dtype, f"mov.{FORMS[dtype].move}", x)

  # *** arithmetic ***

  def alu(self, u: UOp, x: list[str]) -> str:
    """One lane of an arithmetic operation."""
    op, dtype = u.op, u.src[1 if u.op is Ops.WHERE else 0].dtype.scalar
    if op is Ops.WHERE: return self.choose(dtype, x[0], x[1], x[2])
    if op in (Ops.IDIV, Ops.MOD): return self.divide(u, dtype, x)
    if op in (Ops.SHL, Ops.SHR): x = [x[0], self.shift_count(u.src[1], x[1], dtype.bits)]
    return self.operate(op, dtype, *x)

  def operate(self, op: Ops, dtype: DType, *x: str) -> str:
    """An operation of the table on one type, or what stands for it."""
    if dtype.is_bool and op is Ops.NEG: return x[0]
    if dtype.is_bool and op is Ops.CMPLT: return self.operate(Ops.AND, dtype, self.negated(x[0]), x[1])
    if dtype.is_bool and op is Ops.CMPEQ: return self.negated(self.operate(Ops.CMPNE, dtype, *x))
    if dtype.is_bool and op is Ops.MULACC:
      return self.operate(Ops.OR, dtype, self.operate(Ops.AND, dtype, *x[:2]), x[2])
    if dtype is dtypes.float16 and op in _BY_SINGLE:
      wide = self.operate(op, dtypes.float32, *(self.cast(y, dtype, dtypes.float32) for y in x))
      return self.cast(wide, dtypes.float32, dtype)
    if dtype is dtypes.float64 and op is Ops.MAX: return self.greater_double(*x)
    words = OPERATIONS.get(op, ("", "", ""))
    if not (word := words[0 if dtype.is_float else 2 if dtype.is_bool else 1]):
      raise Unsupported("arithmetic", f"{op.name} on {dtype.name}", arch=self.target, where=f"kernel {self.name}")
    result = dtypes.bool if op in GroupOp.COMPARE else dtype
    found = self.new(result, word.format(n=FORMS[dtype].number, bits=max(dtype.bits, 16)), *x)
    return self.narrowed(found, dtype) if dtype.bits == 8 and op in _LEAVES else found

  def negated(self, p: str) -> str:
    """The opposite of a predicate."""
    return self.new(dtypes.bool, "not.pred", p)

  def narrowed(self, x: str, dtype: DType) -> str:
    """The low 8 bits, with what belongs above them."""
    return self.new(dtype, f"cvt.{FORMS[dtype].memory}.{FORMS[dtype].number}", x)

  def choose(self, dtype: DType, p: str, yes: str, no: str) -> str:
    """WHERE."""
    if not dtype.is_bool: return self.new(dtype, f"selp.{FORMS[dtype].move}", yes, no, p)
    one, other = self.operate(Ops.AND, dtype, p, yes), self.operate(Ops.AND, dtype, self.negated(p), no)
    return self.operate(Ops.OR, dtype, one, other)

  def greater_double(self, a: str, b: str) -> str:
    """MAX of doubles, whose `max` has no form that keeps NaN."""
    nan = self.new(dtypes.bool, "setp.nan.f64", a, b)
    greater = self.new(dtypes.float64, "max.f64", a, b)
    return self.choose(dtypes.float64, nan, literal(float("nan"), dtypes.float64), greater)

  def shift_count(self, count: UOp, x: str, bits: int) -> str:
    """The count modulo the width: PTX goes on from there to shift everything out."""
    if count.op is Ops.CONST: return str(int(count.arg) % bits)
    x = self.cast(x, count.dtype.scalar, dtypes.uint32)
    if count.vmin >= 0 and count.vmax < bits: return x
    return self.operate(Ops.AND, dtypes.uint32, x, str(bits - 1))

  def divide(self, u: UOp, dtype: DType, x: list[str]) -> str:
    """IDIV or MOD: C's, but a division by zero gives zero and the quotient wraps."""
    top, bottom = u.src
    if dtype.bits < 32:
      wide = dtypes.int32 if dtype.is_signed else dtypes.uint32
      return self.cast(self.divide(u, wide, [self.cast(y, dtype, wide) for y in x]), wide, dtype)
    if bottom.vmin > 0:
      if bottom.op is Ops.CONST and top.vmin >= 0 and not (count := int(bottom.arg)) & count - 1:
        word = f"shr.u{dtype.bits}" if u.op is Ops.IDIV else f"and.b{dtype.bits}"
        return self.new(dtype, word, x[0], str(count.bit_length() - 1 if u.op is Ops.IDIV else count - 1))
      plain = dtype if not dtype.is_signed or top.vmin < 0 else dtypes.uint32 if dtype.bits == 32 else dtypes.uint64
      return self.operate(u.op, plain, *x)
    zero = self.operate(Ops.CMPEQ, dtype, x[1], "0")
    if not dtype.is_signed:
      return self.choose(dtype, zero, "0", self.operate(u.op, dtype, x[0], self.choose(dtype, zero, "1", x[1])))
    # -1 is divided by apart: the most negative number has no positive counterpart.
    minus = self.operate(Ops.CMPEQ, dtype, x[1], "-1")
    guarded = self.choose(dtype, self.operate(Ops.OR, dtypes.bool, zero, minus), "1", x[1])
    found = self.operate(u.op, dtype, x[0], guarded)
    if u.op is Ops.MOD: return found                # the rest of a division by 1 is the 0 that is wanted
    found = self.choose(dtype, minus, self.operate(Ops.NEG, dtype, x[0]), found)
    return self.choose(dtype, zero, "0", found)

  # *** conversions ***

  def cast(self, x: str, source: DType, target: DType) -> str:
    """CAST of one lane."""
    if source is target: return x
    s, t = FORMS[source], FORMS[target]
    if target.is_bool: return self.operate(Ops.CMPNE, source, x, self.constant(0.0 if source.is_float else 0, source))
    if source.is_bool:
      one, zero = (self.constant(float(v) if target.is_float else v, target) for v in (1, 0))
      return self.choose(target, x, one, zero)
    if source.is_float and target.is_float:
      return self.new(target, f"cvt{'.rn' if target.bits < source.bits else ''}.{t.number}.{s.number}", x)
    if target is dtypes.float16:        # a float holds exactly what is not infinite as a half
      return self.cast(self.cast(x, source, dtypes.float32), dtypes.float32, target)
    if target.is_float: return self.new(target, f"cvt.rn.{t.number}.{s.number}", x)
    if source.is_float: return self.float_to_integer(x, source, target)
    if target.bits == 8: return self.new(target, f"cvt.{t.memory}.{s.number}", x)
    if max(target.bits, 16) == max(source.bits, 16): return x
    if source is dtypes.int8 and target is dtypes.uint32:
      # ptxas 13.0 makes `I2F.S8` of a byte of a word, its sign and a conversion of what came out as an unsigned number.
      return self.new(target, "prmt.b32", self.new(target, "cvt.u32.u16", x), "0", "0x8880")
    return self.new(target, f"cvt.{t.number}.{s.number}", x)

  def float_to_integer(self, x: str, source: DType, target: DType) -> str:
    """An integer out of a float: `cvt` saturates, and has 0 for NaN where neither has 64 bits."""
    if source is dtypes.float16: x, source = self.cast(x, source, dtypes.float32), dtypes.float32
    wide = target if target.bits >= 32 else dtypes.int32 if target.is_signed else dtypes.uint32
    found = self.new(wide, f"cvt.rzi.{FORMS[wide].number}.{FORMS[source].number}", x)
    if 64 in (source.bits, wide.bits):
      found = self.choose(wide, self.new(dtypes.bool, f"setp.nan.{FORMS[source].number}", x, x), "0", found)
    if wide is target: return found
    return self.new(target, f"cvt.sat.{FORMS[target].memory}.{FORMS[wide].number}", found)

  def bitcast(self, x: str, source: DType, target: DType) -> str:
    """BITCAST of one lane. A bool is a byte in memory."""
    if source is target: return x
    if source.is_bool or target.is_bool or target.bits == 8: return self.cast(x, source, target)
    if FORMS[source].register != FORMS[target].register: return self.new(target, f"mov.b{target.bits}", x)
    return self.held(x, source)         # the number of an integer is none of a half

  # *** words of 32 bits, as memory and matrix units have them ***

  def packed(self, lanes: Sequence[str], dtype: DType) -> str:
    """Two lanes of 16 bits or four of 8 as a word."""
    if (found := self.known(key := tuple(lanes))) is not None: return found
    if dtype.bits == 8:
      low = [self.operate(Ops.AND, dtypes.uint16, x, "255") if dtype.is_signed else x for x in lanes[::2]]
      high = [self.operate(Ops.SHL, dtypes.uint16, x, "8") for x in lanes[1::2]]
      lanes = [self.operate(Ops.OR, dtypes.uint16, a, b) for a, b in zip(low, high)]
    found = self.new(dtypes.uint32, "mov.b32", group([self.held(x, dtypes.uint16) for x in lanes]))
    if not any(x in self.accumulators for x in key): self.scopes[-1][key] = found
    return found

  def unpacked(self, word: str, dtype: DType) -> list[str]:
    """The lanes of a word."""
    halves = [self.register(dtype) for _ in range(2)]
    self.line("mov.b32", word, result=group(halves))
    if dtype.bits == 16: return halves
    return [x for half in halves for x in (self.narrowed(half, dtype),
                                           self.new(dtype, f"shr.{FORMS[dtype].number}", half, "8"))]
