"""Floating-point instructions (PTX ISA, sections 9.7.3 and 9.7.4), on f16, f32 and f64.

The binder brings bf16 to f32 and takes packed types apart, flushes, saturates and rounds as the modifiers say, and
makes NaN what the chip makes it.
"""
from __future__ import annotations

from math import pi
from typing import Final, Protocol

from tinyhw.emulator.ptx.meanings.registry import means
from tinyhw.emulator.values import elementary
from tinyhw.emulator.values.ops import Binary, V
from tinyhw.emulator.values.ops import Operations as O

FLOAT: Final = "f16 f32 f64 bf16 f16x2 bf16x2 f32x2"
HALVES: Final = "f16 f32 bf16 f16x2 bf16x2"


@means("add", FLOAT)
def add(o: O[V], a: V, b: V) -> V: return a + b

@means("sub", FLOAT)
def sub(o: O[V], a: V, b: V) -> V: return a - b

@means("mul", FLOAT)
def mul(o: O[V], a: V, b: V) -> V: return a * b

@means("fma mad", FLOAT)
def fma(o: O[V], a: V, b: V, c: V) -> V: return o.fma(a, b, c)

@means("fma.relu", "f16 bf16 f16x2 bf16x2")
def fma_relu(o: O[V], a: V, b: V, c: V) -> V: return _relu(o, o.fma(a, b, c))

@means("div", "f32 f64")
def div(o: O[V], a: V, b: V) -> V: return o.fdiv(a, b)

@means("div.full", "f32")
def div_full(o: O[V], a: V, b: V) -> V: return o.fdiv(a, b)

@means("div.approx", "f32")
def div_approx(o: O[V], a: V, b: V) -> V:
  """Where the divisor's reciprocal is a denormal, 0, or NaN for an infinity (section 9.7.3.8)."""
  q = o.fdiv(a, b)
  huge = (o.abs(b) > 2.0 ** 126) & ~o.isinf(b)
  return o.where(huge, o.where(o.isinf(a), o.from_bits("f32", 0x7FFFFFFF), o.copysign(o.const("f32", 0), q)), q)

def _quiet(o: O[V], a: V, value: V) -> V:
  """The value; of a NaN of f64 the NaN, made quiet, as the chip (sm_90) adds a zero."""
  if a.dtype.itemsize != 8: return value
  raw = o.bits(a, "u64")
  return o.where(o.isnan(a), o.bits(raw | o.const("u64", 1 << 51), "f64"), value)

@means("abs", FLOAT)
def abs_(o: O[V], a: V) -> V: return _quiet(o, a, o.abs(a))

@means("neg", FLOAT)
def neg(o: O[V], a: V) -> V: return _quiet(o, a, o.neg(a))

@means("copysign", "f32 f64")
def copysign(o: O[V], a: V, b: V) -> V: return o.copysign(b, a)


# ---- minimum, maximum

def _relu(o: O[V], x: V) -> V:
  """What is negative, also -0, becomes +0."""
  return o.where(o.isnan(x), x, o.fmax(x, o.const(f"f{8 * x.dtype.itemsize}", 0)))

def _nan(o: O[V], a: V, b: V, value: V) -> V: return o.where(o.isnan(a) | o.isnan(b), a + b, value)

def _xorsign(o: O[V], a: V, b: V, value: V) -> V:
  signed = o.where(o.signbit(a) ^ o.signbit(b), o.neg(o.abs(value)), o.abs(value))
  return o.where(o.isnan(value), value, signed)

class Extreme(Protocol):
  """A meaning of two or three operands."""
  def __call__(self, o: O[V], a: V, /, *others: V) -> V: ...

def _folded(two: Binary) -> Extreme:
  """An extreme of two or three numbers."""
  def extreme(o: O[V], a: V, *others: V) -> V:
    for b in others: a = two(o, a, b)
    return a
  return extreme

@means("min", FLOAT)
@_folded
def min_(o: O[V], a: V, b: V) -> V: return o.fmin(a, b)

@means("max", FLOAT)
@_folded
def max_(o: O[V], a: V, b: V) -> V: return o.fmax(a, b)

@means("min.NaN", HALVES)
@_folded
def min_nan(o: O[V], a: V, b: V) -> V: return _nan(o, a, b, o.fmin(a, b))

@means("max.NaN", HALVES)
@_folded
def max_nan(o: O[V], a: V, b: V) -> V: return _nan(o, a, b, o.fmax(a, b))

@means("min.abs", "f32")
def min_abs(o: O[V], a: V, *others: V) -> V: return min_(o, o.abs(a), *map(o.abs, others))

@means("max.abs", "f32")
def max_abs(o: O[V], a: V, *others: V) -> V: return max_(o, o.abs(a), *map(o.abs, others))

@means("min.NaN.abs", "f32")
def min_nan_abs(o: O[V], a: V, *others: V) -> V: return min_nan(o, o.abs(a), *map(o.abs, others))

@means("max.NaN.abs", "f32")
def max_nan_abs(o: O[V], a: V, *others: V) -> V: return max_nan(o, o.abs(a), *map(o.abs, others))

@means("min.xorsign.abs", HALVES)
@_folded
def min_xorsign(o: O[V], a: V, b: V) -> V: return _xorsign(o, a, b, o.fmin(o.abs(a), o.abs(b)))

@means("max.xorsign.abs", HALVES)
@_folded
def max_xorsign(o: O[V], a: V, b: V) -> V: return _xorsign(o, a, b, o.fmax(o.abs(a), o.abs(b)))

@means("min.NaN.xorsign.abs", HALVES)
@_folded
def min_nan_xorsign(o: O[V], a: V, b: V) -> V: return _xorsign(o, a, b, _nan(o, a, b, o.fmin(o.abs(a), o.abs(b))))

@means("max.NaN.xorsign.abs", HALVES)
@_folded
def max_nan_xorsign(o: O[V], a: V, b: V) -> V: return _xorsign(o, a, b, _nan(o, a, b, o.fmax(o.abs(a), o.abs(b))))


# ---- roots, reciprocals

@means("sqrt", "f32 f64")
def sqrt(o: O[V], a: V) -> V: return o.sqrt(a)

@means("sqrt.approx", "f32")
def sqrt_approx(o: O[V], a: V) -> V: return o.sqrt(a)

@means("rcp", "f32 f64")
def rcp(o: O[V], a: V) -> V: return o.fdiv(o.const(f"f{a.dtype.itemsize * 8}", 1), a)

@means("rcp.approx", "f32")
def rcp_approx(o: O[V], a: V) -> V: return o.fdiv(o.const("f32", 1), a)

def _upper(o: O[V], x: V) -> V:
  """The upper half of an f64; the lower one is 0."""
  return o.bits(o.bits(x, "u64") & 0xFFFFFFFF00000000, "f64")

@means("rcp.approx.ftz", "f64")
def rcp_approx_f64(o: O[V], a: V) -> V:
  x = o.flush(_upper(o, a))
  return _upper(o, o.flush(o.fdiv(o.const("f64", 1), x)))

@means("rsqrt.approx", "f32")
def rsqrt(o: O[V], a: V) -> V: return o.to(o.fdiv(o.const("f64", 1), o.sqrt(o.to(a, "f64"))), "f32")

@means("rsqrt.approx", "f64")
def rsqrt_f64(o: O[V], a: V) -> V: return o.fdiv(o.const("f64", 1), o.sqrt(a))

@means("rsqrt.approx.ftz", "f64")
def rsqrt_approx_f64(o: O[V], a: V) -> V: return _upper(o, o.fdiv(o.const("f64", 1), o.sqrt(o.flush(_upper(o, a)))))


# ---- elementary functions, computed in f64 and rounded

def _wide(o: O[V], x: V) -> tuple[V, str]: return o.to(x, "f64"), f"f{x.dtype.itemsize * 8}"

@means("ex2.approx", "f16 f32 f16x2 bf16 bf16x2")
def ex2(o: O[V], a: V) -> V:
  x, t = _wide(o, a)
  return o.to(elementary.exp2(o, x), t)

@means("lg2.approx", "f32")
def lg2(o: O[V], a: V) -> V: return o.to(elementary.log2(o, o.to(a, "f64")), "f32")

def _sine(o: O[V], a: V, quarter: float) -> V:
  """The sine of an angle and a number of quarters of a turn, of which the nearest half turn is taken away."""
  turns = o.to(a, "f64") * (1 / (2 * pi)) + quarter / 4
  turns = turns - o.rint(turns)
  turns = o.where(turns > 0.25, 0.5 - turns, o.where(turns < -0.25, -0.5 - turns, turns))
  return o.to(elementary.sin_of_turns(o, turns), "f32")

@means("sin.approx", "f32")
def sin(o: O[V], a: V) -> V: return o.where(a == 0, a, _sine(o, a, 0))

@means("cos.approx", "f32")
def cos(o: O[V], a: V) -> V: return _sine(o, a, 1)

_LOG2_E: Final = 1.4426950408889634

@means("tanh.approx", "f16 f32 bf16 f16x2 bf16x2")
def tanh(o: O[V], a: V) -> V:
  x, t = _wide(o, a)
  e = elementary.exp2(o, x * (2 * _LOG2_E))
  big = o.where(o.abs(x) > 20, o.const("f64", 1), o.fdiv(e - 1, e + 1))
  s = x * x
  small = x * (s * (s * (s * (-17 / 315) + 2 / 15) - 1 / 3) + 1)
  return o.to(o.where(o.isnan(x), x, o.copysign(o.where(o.abs(x) < 0.03, small, big), x)), t)


# ---- questions

@means("testp.finite", "f32 f64")
def finite(o: O[V], a: V) -> V: return ~(o.isnan(a) | o.isinf(a))

@means("testp.infinite", "f32 f64")
def infinite(o: O[V], a: V) -> V: return o.isinf(a)

@means("testp.number", "f32 f64")
def number(o: O[V], a: V) -> V: return ~o.isnan(a)

@means("testp.notanumber", "f32 f64")
def notanumber(o: O[V], a: V) -> V: return o.isnan(a)

@means("testp.normal", "f32 f64")
def normal(o: O[V], a: V) -> V: return finite(o, a) & ~o.is_denormal(a)  # zeros too

@means("testp.subnormal", "f32 f64")
def subnormal(o: O[V], a: V) -> V: return o.is_denormal(a)
