"""The operations that meanings are written against, as LLVM IR: the counterpart of `emulator.values.ops.Ops`.

A `Value` is an operand of LLVM IR with a NumPy dtype: one scalar for the wave, or a vector with an element a lane. Its
operators emit instructions into an `Emitter`. Results are those of the reference bit for bit, except which NaN comes
out of an operation that has several to choose from (`emulator.engines.both`).
"""
from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.emulator.values.ops import BITS, DTYPES, F16, F32, F64, I32, I64, U32, U64, Operations, Ops

_TYPES: Final = {d: ("i1" if d.kind == "b" else f"i{d.itemsize * 8}" if d.kind in "iu" else
                     {2: "half", 4: "float", 8: "double"}[d.itemsize]) for d in DTYPES.values()}
BOOL: Final = DTYPES["bool"]
_FRACTION: Final = {"f16": (10, 0x1F, 15), "f32": (23, 0xFF, 127), "f64": (52, 0x7FF, 1023)}


class Untranslatable(Exception):
  """This instruction or operand has no compiled form; the reference executes it."""


def name_of(dtype: Any) -> str: return {"b": "bool"}.get(dtype.kind) or f"{dtype.kind}{dtype.itemsize * 8}"


def type_of(dtype: Any) -> str: return _TYPES[dtype]


def literal(dtype: Any, bits: int) -> str:
  """LLVM's text of a constant, from its bits."""
  if dtype.kind == "b": return "true" if bits else "false"
  if dtype.kind in "iu": return str(bits - (1 << dtype.itemsize * 8) if bits >> dtype.itemsize * 8 - 1 else bits)
  if dtype == F16: return f"0xH{bits:04X}"
  if dtype == F64: return f"0x{bits:016X}"
  exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
  if exponent == 0xFF: wide = (bits >> 31) << 63 | 0x7FF << 52 | fraction << 29  # keeps the NaN's payload
  else: wide = struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", bits))[0]))[0]
  return f"0x{wide:016X}"


class Emitter:
  """Collects the text of a function. `lanes` is the width of vectors."""

  def __init__(self, lanes: int) -> None:
    self.lanes = lanes
    self.lines: list[str] = []
    self.declared: dict[str, str] = {}
    self.constants: list[str] = []
    self.stack: dict[str, str] = {}  # memory of the function: name, allocation
    self.label = ""
    self.side = False  # inside a branch of an instruction: what is computed here is not at hand after it
    self._count = 0
    self._splats: dict[tuple[str, str], str] = {}

  def op(self, text: str) -> str:
    """Emit an instruction with a result; returns its name."""
    self._count += 1
    name = f"%t{self._count}"
    self.lines.append(f"  {name} = {text}")
    return name

  def do(self, text: str) -> None:
    """Emit an instruction without a result."""
    self.lines.append("  " + text)

  def new_label(self, hint: str) -> str:
    self._count += 1
    return f"{hint}.{self._count}"

  def start(self, label: str) -> None:
    """Begin a basic block of LLVM."""
    self.lines.append(f"{label}:")
    self.label = label

  def forget(self) -> None:
    """A new block of the program begins: nothing computed so far is at hand."""
    self._splats.clear()

  @contextmanager
  def narrowed(self, lanes: int) -> Iterator[None]:
    """In the block vectors have so many lanes; nothing of it is at hand after it."""
    before = self.lanes, self._splats
    self.lanes, self._splats = lanes, {}
    try: yield
    finally: self.lanes, self._splats = before

  def type(self, dtype: Any, wide: bool) -> str:
    return f"<{self.lanes} x {_TYPES[dtype]}>" if wide else _TYPES[dtype]

  def splat(self, dtype: Any, text: str) -> str:
    """A scalar in every lane."""
    kept = self._splats.get((_TYPES[dtype], text))
    if kept is None:
      t, n = _TYPES[dtype], self.lanes
      first = self.op(f"insertelement <{n} x {t}> poison, {t} {text}, i64 0")
      kept = self.op(f"shufflevector <{n} x {t}> {first}, <{n} x {t}> poison, <{n} x i32> zeroinitializer")
      if not self.side: self._splats[t, text] = kept
    return kept

  def sign(self, dtype: Any) -> Value:
    """The sign bit of an unsigned type, as a number that LLVM does not know.

    What it sees to be a negated or absolute operand becomes part of the operation, in which a NaN keeps its sign.
    """
    t = _TYPES[dtype]
    memory = f"@sign.{t} = private externally_initialized global {t} {literal(dtype, 1 << dtype.itemsize * 8 - 1)}"
    if memory not in self.constants: self.constants.append(memory)
    kept = self._splats.get(("sign", t))
    if kept is None:
      kept = self.op(f"load {t}, ptr @sign.{t}, !invariant.load !0")
      if not self.side: self._splats["sign", t] = kept
    return Value(self, kept, dtype, False)

  def call(self, result: str, name: str, *arguments: tuple[str, str]) -> str:
    """Call an intrinsic or a function of the host, declared once."""
    self.declared[name] = f"declare {result} @{name}({', '.join(t for t, _ in arguments)})"
    return self.op(f"call {result} @{name}({', '.join(f'{t} {x}' for t, x in arguments)})")

  def vector(self, dtype: Any, elements: Any) -> Value:
    """A constant vector from the bits of its elements."""
    t = _TYPES[dtype]
    return Value(self, f"<{', '.join(f'{t} {literal(dtype, int(x))}' for x in elements)}>", dtype, True)

  def const(self, dtype: Any, bits: int) -> Value:
    bits &= (1 << dtype.itemsize * 8) - 1
    return Value(self, literal(dtype, bits), dtype, False, bits)


class Value:
  """A typed operand of LLVM IR; `wide` says that it has an element for each lane, `bits` a scalar constant's value.

  `most` is an upper bound of an unsigned value, where one is known.
  """

  __slots__ = ("bits", "dtype", "e", "most", "text", "wide")
  __hash__ = None  # type: ignore[assignment]  # unhashable: == gives no bool
  __array_ufunc__ = None  # NumPy's numbers leave operators to this class

  def __init__(self, e: Emitter, text: str, dtype: Any, wide: bool, bits: int | None = None) -> None:
    self.e, self.text, self.dtype, self.wide, self.bits = e, text, dtype, wide, bits
    self.most: int | None = bits

  def in_lanes(self) -> str:
    """The operand as a vector."""
    if self.wide: return self.text
    if self.bits is not None: return f"splat ({_TYPES[self.dtype]} {self.text})"
    return self.e.splat(self.dtype, self.text)

  def at(self, wide: bool) -> str: return self.in_lanes() if wide else self.text

  @property
  def type(self) -> str: return self.e.type(self.dtype, self.wide)

  @property
  def top(self) -> int:
    """The sign bit."""
    return 1 << int(self.dtype.itemsize) * 8 - 1

  def like(self, text: str, dtype: Any = None) -> Value: return Value(self.e, text, dtype or self.dtype, self.wide)

  def view(self, dtype: Any) -> Value:
    """The same bits as another type of this width."""
    if dtype == self.dtype: return self
    if dtype.itemsize != self.dtype.itemsize or "b" in (dtype.kind, self.dtype.kind): raise Untranslatable("view")
    if self.bits is not None: return self.e.const(dtype, self.bits)
    if _TYPES[dtype] == _TYPES[self.dtype]: return self.like(self.text, dtype)
    if self.dtype == F16 and not self.wide: return self._half_bits(dtype)
    return self.like(self.e.op(f"bitcast {self.type} {self.text} to {self.e.type(dtype, self.wide)}"), dtype)

  def astype(self, dtype: Any) -> Value:
    """As `Ops.to`."""
    return convert(self, np.dtype(dtype))

  def _half_bits(self, dtype: Any) -> Value:
    """The bits of one f16, by way of memory: LLVM 22 cannot select lane masks that come straight from them."""
    self.e.stack["half"] = "alloca half, align 2"
    self.e.do(f"store volatile half {self.text}, ptr %half")
    return self.like(self.e.op("load volatile i16, ptr %half"), dtype)

  def _other(self, x: Any) -> Value:
    """The other operand in this one's type."""
    if isinstance(x, Value):
      if x.dtype == self.dtype: return x
      if x.dtype.kind == "b" and self.dtype.kind in "iu": return convert(x, self.dtype)
      raise Untranslatable(f"{name_of(self.dtype)} with {name_of(x.dtype)}")
    return number(self.e, self.dtype, x)

  def _pair(self, x: Any) -> tuple[Value, Value]:
    if isinstance(x, Value) and self.dtype.kind == "b" and x.dtype.kind in "iu": return convert(self, x.dtype), x
    return self, self._other(x)

  def _binary(self, x: Any, integer: str, floating: str = "", reverse: bool = False) -> Value:
    a, b = self._pair(x)
    if reverse: a, b = b, a
    dtype, wide = a.dtype, a.wide or b.wide
    if dtype.kind == "f":
      if not floating: raise Untranslatable(integer)
      if (known := _folded_float(_FLOAT_FOLDS[floating], a, b)) is not None: return known
      if dtype == F16: return convert(Value._binary(convert(a, F32), convert(b, F32), integer, floating), F16)
      what = floating
    else:
      what = integer
      if (known := _folded(what, a, b)) is not None: return known
      if what == "xor" and dtype.kind == "u" and a.top in (a.bits, b.bits):
        a, b = (x.e.sign(dtype) if x.bits == x.top else x for x in (a, b))
    value = Value(self.e, self.e.op(f"{what} {self.e.type(dtype, wide)} {a.at(wide)}, {b.at(wide)}"), dtype, wide)
    if dtype.kind == "f": return _quiet_too(value, _NEUTRAL[what], a, b)
    if what == "and" and dtype.kind == "u": value.most = b.bits if b.bits is not None else a.bits
    return value

  def __add__(self, x: Any) -> Value: return self._binary(x, "add", "fadd")
  def __radd__(self, x: Any) -> Value: return self._binary(x, "add", "fadd", True)
  def __sub__(self, x: Any) -> Value: return self._binary(x, "sub", "fsub")
  def __rsub__(self, x: Any) -> Value: return self._binary(x, "sub", "fsub", True)
  def __mul__(self, x: Any) -> Value: return self._binary(x, "mul", "fmul")
  def __rmul__(self, x: Any) -> Value: return self._binary(x, "mul", "fmul", True)

  def __floordiv__(self, x: Any) -> Value:
    if self.dtype.kind != "u": raise Untranslatable("quotients of signed numbers")
    a, b = self._pair(x)
    wide = a.wide or b.wide
    return Value(self.e, self.e.op(f"udiv {self.e.type(a.dtype, wide)} {a.at(wide)}, {b.at(wide)}"), a.dtype, wide)

  def __and__(self, x: Any) -> Value: return self._binary(x, "and")
  def __rand__(self, x: Any) -> Value: return self._binary(x, "and", "", True)
  def __or__(self, x: Any) -> Value: return self._binary(x, "or")
  def __ror__(self, x: Any) -> Value: return self._binary(x, "or", "", True)
  def __xor__(self, x: Any) -> Value: return self._binary(x, "xor")
  def __rxor__(self, x: Any) -> Value: return self._binary(x, "xor", "", True)

  def __invert__(self) -> Value:
    ones = self.e.const(self.dtype, 1 if self.dtype.kind == "b" else -1)
    return self._binary(ones, "xor")

  def __neg__(self) -> Value:
    if self.dtype.kind == "f":
      raw = self.view(DTYPES[BITS[name_of(self.dtype)]])
      return (raw ^ self.top).view(self.dtype)
    return number(self.e, self.dtype, 0) - self

  def _shift(self, x: Any, left: bool) -> Value:
    """Shifts by the width or more give 0, or the sign."""
    a, n = self._pair(x)
    if a.dtype.kind not in "iu": raise Untranslatable("shift of a float")
    width, wide, e = a.dtype.itemsize * 8, a.wide or n.wide, a.e
    t = e.type(a.dtype, wide)
    what = "shl" if left else "ashr" if a.dtype.kind == "i" else "lshr"
    if n.bits is not None:
      count = n.bits
      if count >= width:
        if what != "ashr": return e.const(a.dtype, 0)
        n = e.const(a.dtype, width - 1)
      return Value(e, e.op(f"{what} {t} {a.at(wide)}, {n.at(wide)}"), a.dtype, wide)
    if n.most is not None and n.most < width:
      return Value(e, e.op(f"{what} {t} {a.at(wide)}, {n.at(wide)}"), a.dtype, wide)
    limit = e.const(n.dtype, width)
    inside = e.op(f"icmp ult {t} {n.at(wide)}, {limit.at(wide)}")
    shifted = e.op(f"{what} {t} {a.at(wide)}, {n.at(wide)}")
    if what == "ashr": beyond = e.op(f"ashr {t} {a.at(wide)}, {e.const(a.dtype, width - 1).at(wide)}")
    else: beyond = e.const(a.dtype, 0).at(wide)
    return Value(e, e.op(f"select {e.type(BOOL, wide)} {inside}, {t} {shifted}, {t} {beyond}"), a.dtype, wide)

  def __lshift__(self, x: Any) -> Value: return self._shift(x, True)
  def __rshift__(self, x: Any) -> Value: return self._shift(x, False)

  def _compare(self, x: Any, signed: str, unsigned: str, floating: str) -> Value:
    a, b = self._pair(x)
    if a.dtype == F16: a, b = convert(a, F32), convert(b, F32)
    wide = a.wide or b.wide
    kind = a.dtype.kind
    what = f"fcmp {floating}" if kind == "f" else f"icmp {signed if kind == 'i' else unsigned}"
    return Value(self.e, self.e.op(f"{what} {self.e.type(a.dtype, wide)} {a.at(wide)}, {b.at(wide)}"), BOOL, wide)

  def __lt__(self, x: Any) -> Value: return self._compare(x, "slt", "ult", "olt")
  def __le__(self, x: Any) -> Value: return self._compare(x, "sle", "ule", "ole")
  def __gt__(self, x: Any) -> Value: return self._compare(x, "sgt", "ugt", "ogt")
  def __ge__(self, x: Any) -> Value: return self._compare(x, "sge", "uge", "oge")
  def __eq__(self, x: object) -> Value: return self._compare(x, "eq", "eq", "oeq")  # type: ignore[override]  # lane by lane, as NumPy's
  def __ne__(self, x: object) -> Value: return self._compare(x, "ne", "ne", "une")  # type: ignore[override]  # lane by lane, as NumPy's


_FOLDS: Final[dict[str, Callable[[int, int], int]]] = {
  "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
  "xor": operator.xor}


def _folded(what: str, a: Value, b: Value) -> Value | None:
  """The result of an integer operation on constants, or of one that changes nothing."""
  if b.bits is None or a.dtype.kind == "b": return None
  if a.bits is not None: return a.e.const(a.dtype, _FOLDS[what](a.bits, b.bits))
  return a if b.bits == 0 and what in {"add", "sub", "or", "xor"} else None


# ---- floats that LLVM would fold: its results differ from the reference's in NaNs alone

_FLOAT_FOLDS: Final[dict[str, Callable[[Any, Any], Any]]] = {
  "fadd": operator.add, "fsub": operator.sub, "fmul": operator.mul, "fdiv": np.true_divide}
_NEUTRAL: Final = {"fadd": (0.0,), "fsub": (0.0,), "fmul": (1.0, -1.0), "fdiv": (1.0, -1.0)}  # what gives x or -x


def _known(x: Value) -> Any:
  """The number that a constant is, as NumPy's."""
  assert x.bits is not None
  return DTYPES[f"u{x.dtype.itemsize * 8}"].type(x.bits).view(x.dtype)


def _folded_float(function: Callable[..., Any], *operands: Value) -> Value | None:
  """What the reference computes of constants: LLVM gives a NaN that an operation makes another sign."""
  if any(x.bits is None for x in operands): return None
  with np.errstate(all="ignore"): result = np.asarray(function(*map(_known, operands)))
  return operands[0].e.const(result.dtype, int(result.view(DTYPES[f"u{result.dtype.itemsize * 8}"])))


def _quiet_too(value: Value, neutral: tuple[float, ...], *operands: Value) -> Value:
  """The result of an operation that LLVM folds to an operand, or its negation, where the other is neutral: a NaN would
  stay signalling, or change its sign."""
  if not any(x.bits is not None and float(_known(x)) in neutral for x in operands): return value
  x = next((x for x in operands if x.bits is None), None)
  if x is None: return value
  o, bits = LLVMOps(value.e), DTYPES[BITS[name_of(value.dtype)]]
  quiet = 1 << _FRACTION[name_of(value.dtype)][0] - 1
  return o.where(x != x, (x.view(bits) | quiet).view(value.dtype), value)


def number(e: Emitter, dtype: Any, x: float) -> Value:
  """A Python number as a constant of a type."""
  if dtype.kind == "f":
    raw = dtype.type(x).view(DTYPES[BITS[name_of(dtype)]])
    return e.const(dtype, int(raw))
  if not isinstance(x, (int, np.integer, np.bool_)): raise Untranslatable("a float with integers")
  return e.const(dtype, int(x))


def convert(x: Value, dtype: Any) -> Value:
  """As `Ops.to`."""
  source = x.dtype
  if source == dtype: return x
  e = x.e
  if source.kind in "iub" and dtype.kind in "iu":
    a, b = (1 if source.kind == "b" else source.itemsize * 8), dtype.itemsize * 8
    if x.bits is not None:
      bits = x.bits - (1 << a) if source.kind == "i" and x.bits >> a - 1 else x.bits
      return e.const(dtype, bits)
    if a == b: return x.view(dtype)
    what = "trunc" if b < a else "sext" if source.kind == "i" else "zext"
    # without the freeze LLVM 22 never ends over some sums whose carry is a shuffled mask
    if source.kind == "b" and x.wide: x = x.like(e.op(f"freeze {x.type} {x.text}"))
    if what == "zext" and x.most is not None:
      wider = x.like(e.op(f"zext {x.type} {x.text} to {e.type(dtype, x.wide)}"), dtype)
      wider.most = x.most
      return wider
  elif source.kind in "iub":
    if dtype == F16: return convert(convert(x, F32), F16)
    what = "sitofp" if source.kind == "i" else "uitofp"
  elif dtype.kind == "f":
    if (known := _folded_float(lambda v: Ops.to(v, name_of(dtype)), x)) is not None: return known
    if source == F64 and dtype == F16: return convert(narrow_to_odd(x), F16)
    what = "fptrunc" if dtype.itemsize < source.itemsize else "fpext"
  else: raise Untranslatable("float to integer")
  return x.like(e.op(f"{what} {x.type} {x.text} to {e.type(dtype, x.wide)}"), dtype)


def narrow_to_odd(x: Value) -> Value:
  """f64 to f32, rounded to odd, so that one more rounding to f16 is exact."""
  o = LLVMOps(x.e)
  near = convert(x, F32)
  raw, back = near.view(I32), convert(near, F64)
  inexact = (back != x) & (o.abs(x) < float("inf")) & (raw & 1 == 0)
  step = o.where(o.abs(back) > o.abs(x), o.const("i32", -1), o.const("i32", 1))
  over = o.isinf(near) & (o.abs(x) < float("inf"))
  return o.where(over, o.copysign(o.from_bits("f32", 0x7F7FFFFF), near), o.where(inexact, raw + step, raw).view(F32))


def _error_of_sum(a: Value, b: Value, s: Value) -> Value:
  bb = s - a
  return (a - (s - bb)) + (b - bb)


def _to_odd(o: LLVMOps, s: Value, error: Value) -> Value:
  raw = s.view(I64)
  inexact = (o.abs(error) < float("inf")) & (error != 0) & (raw & 1 == 0)
  step = o.where((error > 0) == (s > 0), o.const("i64", 1), o.const("i64", -1))
  return o.where(inexact, raw + step, raw).view(F64)


def _rounded_to_odd(o: LLVMOps, a: Value, b: Value) -> Value:
  """a + b, rounded to odd."""
  s = a + b
  return _to_odd(o, s, _error_of_sum(a, b, s))


class LLVMOps:
  """Value operations that emit LLVM IR. See `tinyhw.emulator.values.ops.Ops` for what each one means."""

  def __init__(self, e: Emitter) -> None: self.e = e

  def _call(self, name: str, x: Value, *others: Value) -> Value:
    """An intrinsic overloaded on the type of its operands."""
    if x.dtype == F16: return convert(self._call(name, convert(x, F32), *[convert(y, F32) for y in others]), F16)
    values = (x, *others)
    wide = any(v.wide for v in values)
    if (known := self._folded(name, *values)) is not None: return known
    t, plain = self.e.type(x.dtype, wide), mangled(x.dtype, self.e.lanes if wide else 0)
    return Value(self.e, self.e.call(t, f"llvm.{name}.{plain}", *[(t, v.at(wide)) for v in values]), x.dtype, wide)

  def _folded(self, name: str, *values: Value) -> Value | None:
    """A float function of constants."""
    function = _CALL_FOLDS.get(name)
    return None if function is None or values[0].dtype.kind != "f" else _folded_float(function, *values)

  # ---- constants and conversions
  def const(self, type_: str, value: float) -> Value: return number(self.e, DTYPES[type_], value)
  def from_bits(self, type_: str, bits: int) -> Value: return self.e.const(DTYPES[type_], bits)
  def to(self, x: Value, type_: str) -> Value: return convert(x, DTYPES[type_])
  def bits(self, x: Value, type_: str) -> Value: return x.view(DTYPES[type_])

  def to_int(self, x: Value, type_: str) -> Value:
    if x.dtype == F16: x = convert(x, F32)
    dtype = DTYPES[type_]
    lanes = self.e.lanes if x.wide else 0
    what = "fptosi" if dtype.kind == "i" else "fptoui"
    name = f"llvm.{what}.sat.{mangled(dtype, lanes)}.{mangled(x.dtype, lanes)}"
    return x.like(self.e.call(self.e.type(dtype, x.wide), name, (x.type, x.text)), dtype)

  def pack(self, low: Value, high: Value) -> Value: return convert(low, U64) | convert(high, U64) << 32

  # ---- selection
  def where(self, condition: Value, a: Any, b: Any) -> Value:
    if not isinstance(a, Value): a = number(self.e, b.dtype, a)
    b = a._other(b)
    wide = condition.wide or a.wide or b.wide
    t = self.e.type(a.dtype, wide)
    c = f"{self.e.type(BOOL, condition.wide)} {condition.text}"
    return Value(self.e, self.e.op(f"select {c}, {t} {a.at(wide)}, {t} {b.at(wide)}"), a.dtype, wide)

  def _ordered(self, which: str, a: Value, b: Any) -> Value:
    b = a._other(b)
    if a.dtype.kind not in "iu": raise Untranslatable(which)
    return self._call(("s" if a.dtype.kind == "i" else "u") + which, a, b)

  def min(self, a: Value, b: Any) -> Value: return self._ordered("min", a, b)
  def max(self, a: Value, b: Any) -> Value: return self._ordered("max", a, b)
  def clip(self, x: Value, low: int, high: int) -> Value: return self.min(self.max(x, low), high)

  def lookup(self, type_: str, table: list[int], index: Value) -> Value:
    dtype, e = DTYPES[type_], self.e
    t = _TYPES[dtype]
    name = f"@table{len(e.constants)}"
    elements = ", ".join(f"{t} {literal(dtype, x)}" for x in table)
    e.constants.append(f"{name} = private constant [{len(table)} x {t}] [{elements}]")
    at = self._call("umin", convert(index, U64), self.const("u64", len(table) - 1))
    if not at.wide: return Value(e, e.op(f"load {t}, ptr {e.op(f'getelementptr {t}, ptr {name}, i64 {at.text}')}"),
                                 dtype, False)
    pointers = e.op(f"getelementptr {t}, ptr {name}, {at.type} {at.text}")
    return Value(e, gather(e, t, pointers, "splat (i1 true)"), dtype, True)

  # ---- bits
  def _count(self, name: str, x: Value) -> Value:
    lanes = self.e.lanes if x.wide else 0
    extra = [] if name == "ctpop" else [("i1", "false")]
    text = self.e.call(x.type, f"llvm.{name}.{mangled(x.dtype, lanes)}", (x.type, x.text), *extra)
    return convert(x.like(text, DTYPES[f"u{x.dtype.itemsize * 8}"]), U32)

  def popcount(self, x: Value) -> Value: return self._count("ctpop", x)
  def leading_zeros(self, x: Value) -> Value: return self._count("ctlz", x)
  def trailing_zeros(self, x: Value) -> Value: return self._count("cttz", x)
  def reverse(self, x: Value) -> Value: return self._call("bitreverse", x)

  def mul_high(self, a: Value, b: Value) -> Value:
    wide = I64 if a.dtype.kind == "i" else U64
    return convert(convert(a, wide) * convert(b, wide) >> 32, a.dtype)

  # ---- floats
  def fma(self, a: Value, b: Value, c: Value) -> Value:
    if a.dtype != F16:
      value = self._call("fma", a, b, c)
      if c.bits is None: return value  # a neutral factor makes it a sum, which quiets
      return _quiet_too(value, _NEUTRAL["fmul"], a, b)
    return convert(self.fma_f16_of_f32(*(convert(x, F64) for x in (a, b, c))), F16)

  def fma_f16_of_f32(self, a: Value, b: Value, c: Value) -> Value:
    p = self.where(self.isnan(c), c, a * b)  # a NaN operand comes before one that the product makes
    s = p + c
    return _to_odd(self, s, _error_of_sum(p, c, s))

  def fma_scaled(self, a: Value, b: Value, c: Value, e: Value) -> Value:
    if a.dtype == F64: return self._fma_scaled64(a, b, c, self._clamped(e, 500))
    wide = self.fma_f16_of_f32(*(convert(x, F64) for x in (a, b, c)))
    return convert(wide * self._power(self._clamped(e, 500)), F32)

  def _fma_scaled64(self, a: Value, b: Value, c: Value, e: Value) -> Value:
    """Results that are no normal numbers are rounded where their last bit will be, by adding a great number."""
    plain = self.fma(a, b, c)
    scaled = self.ldexp(plain, e)
    up = self._power(self.const("i32", 256))  # keeps the error of the product a normal number
    large = self.abs(a) >= 1
    a, b, c = self.where(large, a, a * up), self.where(large, b * up, b), c * up
    e = self.clip(e, -500, 0) - 256
    product = a * b
    low = self.fma(a, b, -product)
    total = product + c
    lost = _error_of_sum(product, c, total)
    rest = _rounded_to_odd(self, lost, low)
    great = self.copysign(self._power(-(e + 1022)), plain)  # where 1 is the last bit
    high = great + total
    small = _rounded_to_odd(self, _error_of_sum(great, total, high), rest)
    exact = self.ldexp((high + small) - great, e)
    tiny = (self.abs(scaled) <= 2.0**-1022) & (e < -256) & (plain != 0) & (self.abs(plain) < float("inf"))
    return self.where(tiny, self.copysign(exact, plain), scaled)

  def fdiv(self, a: Value, b: Value) -> Value: return a._binary(b, "", "fdiv")
  def sqrt(self, x: Value) -> Value: return self._call("sqrt", x)
  def floor(self, x: Value) -> Value: return self._call("floor", x)
  def ceil(self, x: Value) -> Value: return self._call("ceil", x)
  def trunc(self, x: Value) -> Value: return self._call("trunc", x)
  def rint(self, x: Value) -> Value: return self._call("roundeven", x)

  def abs(self, x: Value) -> Value:
    if x.dtype.kind == "f":
      return (self._raw(x) & x.top - 1).view(x.dtype)
    return self.where(x < 0, -x, x)

  def neg(self, x: Value) -> Value: return -x
  def _raw(self, x: Value) -> Value: return x.view(DTYPES[BITS[name_of(x.dtype)]])

  def copysign(self, x: Value, sign: Value) -> Value:
    return (self._raw(x) & x.top - 1 | self._raw(sign) & x.top).view(x.dtype)

  def signbit(self, x: Value) -> Value: return x.view(DTYPES[f"i{x.dtype.itemsize * 8}"]) < 0
  def isnan(self, x: Value) -> Value: return x != x
  def isinf(self, x: Value) -> Value: return self.abs(x) == float("inf")

  def _extreme(self, a: Value, b: Value, less: bool) -> Value:
    chosen = self.where((a < b if less else a > b) | self.isnan(b), a, b)
    raw = self._raw(a) | self._raw(b) if less else self._raw(a) & self._raw(b)
    return self.where((a == 0) & (b == 0), raw.view(a.dtype), chosen)

  def fmin(self, a: Value, b: Value) -> Value: return self._extreme(a, b, True)
  def fmax(self, a: Value, b: Value) -> Value: return self._extreme(a, b, False)

  def _clamped(self, e: Value, limit: int) -> Value: return self.clip(convert(e, I32), -limit, limit)

  def _power(self, e: Value) -> Value:
    """2**e as f64 for e in [-1022, 1023]."""
    return (convert(e + 1023, I64) << 52).view(F64)

  def ldexp(self, x: Value, e: Value) -> Value:
    if x.dtype != F64: return convert(convert(x, F64) * self._power(self._clamped(e, 500)), x.dtype)
    e = self._clamped(e, 6000)
    for _ in range(3):  # steps that never round twice: down by no more than keeps a normal number precise
      part = self.where(e < -1022, -969, self.min(e, 1023))
      x, e = x * self._power(part), e - part
    return x

  def _split(self, x: Value) -> tuple[Value, Value]:
    fraction, mask, _ = _FRACTION[name_of(x.dtype)]
    raw = self._raw(x)
    return convert(raw >> fraction & mask, I32), raw & (1 << fraction) - 1

  def exponent(self, x: Value) -> Value: return self._split(x)[0]

  def is_denormal(self, x: Value) -> Value:
    exponent, fraction = self._split(x)
    return (exponent == 0) & (fraction != 0)

  def frexp(self, x: Value) -> tuple[Value, Value]:
    fraction, _, bias = _FRACTION[name_of(x.dtype)]
    denormal = self.is_denormal(x)
    scaled = self.where(denormal, x * float(2**(fraction + 1)), x)
    exponent = self._split(scaled)[0] - (bias - 1)
    exponent = self.where(denormal, exponent - (fraction + 1), exponent)
    keep = ~(((1 << _exponent_bits(x)) - 1) << fraction) & (1 << x.dtype.itemsize * 8) - 1
    mantissa = (self._raw(scaled) & keep | (bias - 1) << fraction).view(x.dtype)
    zero = x == 0
    return self.where(zero, x, mantissa), self.where(zero, self.const("i32", 0), exponent)

  def flush(self, x: Value) -> Value:
    raw = self._raw(x)
    zero = raw & x.top
    return self.where(self._split(x)[0] == 0, zero, raw).view(x.dtype)


if TYPE_CHECKING:
  def _operations(o: LLVMOps) -> Operations[Value]: return o  # it has them all


_CALL_FOLDS: Final[dict[str, Callable[..., Any]]] = {
  "fma": Ops.fma, "sqrt": Ops.sqrt, "floor": Ops.floor, "ceil": Ops.ceil, "trunc": Ops.trunc, "roundeven": Ops.rint}


def _exponent_bits(x: Value) -> int: return {2: 5, 4: 8, 8: 11}[x.dtype.itemsize]


def mangled(dtype: Any, lanes: int) -> str:
  """A type in the name of an intrinsic; `lanes` 0 for a scalar."""
  t = _TYPES[dtype]
  t = {"half": "f16", "float": "f32", "double": "f64"}.get(t, t)
  return f"v{lanes}{t}" if lanes else t


def gather(e: Emitter, element: str, pointers: str, mask: str) -> str:
  """Load an element through each pointer where the mask is set; 0 elsewhere."""
  n = e.lanes
  kind = {"half": "f16", "float": "f32", "double": "f64"}.get(element, element)
  return e.call(f"<{n} x {element}>", f"llvm.masked.gather.v{n}{kind}.v{n}p0", (f"<{n} x ptr>", f"align 1 {pointers}"),
                (f"<{n} x i1>", mask), (f"<{n} x {element}>", "zeroinitializer"))

