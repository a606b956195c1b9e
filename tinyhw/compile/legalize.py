"""Rewrites a lowered kernel into operations and types that every renderer knows.

bfloat16 becomes uint16 in memory and float32 in registers, rounded after each operation. EXP2, LOG2 and SIN become
polynomials where the target has no accurate instruction, so no library is ever called.
"""
from __future__ import annotations

import math

from tinyhw.compile.render.base import Renderer
from tinyhw.ir.dtype import DType, PtrDType, dtypes
from tinyhw.ir.rewrite import PatternMatcher, UPat, graph_rewrite
from tinyhw.ir.symbolic import simplify
from tinyhw.ir.uop import GroupOp, Ops, UOp

F16, BF16, F32, F64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64
_BITS = {F32: dtypes.int32, F64: dtypes.int64}
_MANTISSA = {F32: 23, F64: 52}
_BIAS = {F32: 127, F64: 1023}
# pi/2 in parts whose low bits are zero, so that a quadrant number of up to 20 bits times a part is exact in float64
_HALF_PI = (1.57079632673412561417e+00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)


def _horner(x: UOp, coefficients: list[float]) -> UOp:
  """The polynomial with the coefficients of x^0, x^1, ..."""
  total = x.const_like(coefficients[-1])
  for c in reversed(coefficients[:-1]): total = total * x + c
  return total


def _round(x: UOp) -> UOp: return (x + (x < 0.0).where(x.const_like(-0.5), 0.5)).trunc()


def _power_of_two(n: UOp, dtype: DType) -> UOp:
  """2^n as a float for an integer n within the range of exponents."""
  return ((n + _BIAS[dtype]) << _MANTISSA[dtype]).bitcast(dtype)


def exp2(u: UOp) -> UOp:
  """2^x: the Taylor series of 2^f for |f| <= 1/2, scaled in two steps so that subnormal results are right."""
  x, dtype = u.src[0], u.dtype
  low, high = {F32: (-151.0, 128.0), F64: (-1076.0, 1024.0)}[dtype]
  inside = x.maximum(low)
  inside = (inside < high).where(inside, high)
  whole = _round(inside)
  degree = 7 if dtype is F32 else 13
  series = _horner(inside - whole, [math.log(2) ** k / math.factorial(k) for k in range(degree + 1)])
  n = whole.cast(_BITS[dtype])
  first = n >> 1
  scaled = series * _power_of_two(first, dtype) * _power_of_two(n - first, dtype)
  return x.ne(x).where(x, (x < high).where(scaled, math.inf))


def log2(u: UOp) -> UOp:
  """log2 x = e + log2 m with m within sqrt(1/2)..sqrt(2), by the series of atanh((m - 1) / (m + 1))."""
  x, dtype = u.src[0], u.dtype
  bits, mantissa, bias = _BITS[dtype], _MANTISSA[dtype], _BIAS[dtype]
  smallest, lift = (2.0 ** -126, 24) if dtype is F32 else (2.0 ** -1022, 53)
  tiny = x < smallest
  normal = tiny.where(x * 2.0 ** lift, x)
  raw = normal.bitcast(bits)
  exponent = (raw >> mantissa) - bias - tiny.where(raw.const_like(lift), 0)
  m = ((raw & ((1 << mantissa) - 1)) | (bias << mantissa)).bitcast(dtype)
  big = m > math.sqrt(2)
  m = big.where(m * 0.5, m)
  e = (exponent + big.where(raw.const_like(1), 0)).cast(dtype)
  s = (m - 1.0) / (m + 1.0)
  terms = 5 if dtype is F32 else 12
  # 2/ln 2 in two parts: the leading term keeps its precision when e is 0
  scale = 2 / math.log(2)
  tail = _horner(s * s, [scale / (2 * k + 1) for k in range(1, terms)])
  result = e + (s * scale + s * (s * s) * tail)
  result = x.eq(math.inf).where(x, result)
  result = x.eq(0.0).where(x.const_like(-math.inf), result)
  return (x < 0.0).where(x.const_like(math.nan), x.ne(x).where(x, result))


def sin(u: UOp) -> UOp:
  """sin x in float64: a multiple of pi/2 is taken off in three parts, then the series of sine or cosine."""
  x = u.src[0].cast(F64)
  quadrant = _round(x * (2 / math.pi))
  r = x
  for part in _HALF_PI: r = r - quadrant * part
  square = r * r
  sine = r + r * square * _horner(square, [(-1) ** k / math.factorial(2 * k + 1) for k in range(1, 9)])
  cosine = _horner(square, [(-1) ** k / math.factorial(2 * k) for k in range(10)])
  q = quadrant.cast(dtypes.int64)
  value = (q & 1).ne(0).where(cosine, sine)
  value = (q & 2).ne(0).where(-value, value)
  # the far ends, where the reduction has no precision left, and the infinities
  limited = value.maximum(-1.0)
  limited = (limited < 1.0).where(limited, 1.0)
  infinite = x.eq(math.inf) | x.eq(-math.inf)
  return infinite.where(x.const_like(math.nan), x.ne(x).where(x, limited)).cast(u.dtype)


_SERIES = {Ops.EXP2: exp2, Ops.LOG2: log2, Ops.SIN: sin}


def _transcendental(u: UOp, ctx: Renderer) -> UOp | None:
  if ctx.native(u.op, u.dtype): return None
  if u.dtype is F16: return u.src[0].cast(F32).alu(u.op).cast(F16)
  return _SERIES[u.op](u)


_operations = PatternMatcher([
  (UPat((Ops.EXP2, Ops.LOG2, Ops.SIN), "u"), _transcendental),
])


def _to_bits(x: UOp) -> UOp:
  """The uint16 of a float32 rounded to bfloat16, to nearest even."""
  bits = x.bitcast(dtypes.uint32)
  rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
  return x.ne(x).where(bits.const_like(0x7FC0), rounded).cast(dtypes.uint16)


def _from_bits(bits: UOp) -> UOp: return (bits.cast(dtypes.uint32) << 16).bitcast(F32)


def without_bfloat16(sink: UOp) -> UOp:
  """The graph with bfloat16 as uint16 in memory and float32 in registers."""
  nodes = sink.toposort()
  if not any((u.dtype.base if isinstance(u.dtype, PtrDType) else u.dtype) is BF16 for u in nodes): return sink
  done: dict[UOp, UOp] = {}
  for u in nodes:
    src = tuple(done[s] for s in u.src)
    new = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
    if isinstance(u.dtype, PtrDType) and u.dtype.base is BF16:
      new = UOp(u.op, dtypes.uint16.ptr(u.dtype.size, u.dtype.space), src, u.arg)
    elif u.op is Ops.STORE and u.src[1].dtype is BF16: new = src[0].store(_to_bits(src[1]))
    elif u.op is Ops.BITCAST and u.src[0].dtype is BF16: new = _to_bits(src[0]).bitcast(u.dtype)
    elif u.dtype is BF16:
      if u.op is Ops.LOAD: new = _from_bits(src[0].load(*(_to_bits(s) for s in src[1:])))
      elif u.op is Ops.BITCAST: new = _from_bits(src[0].bitcast(dtypes.uint16))
      elif u.op is Ops.CAST: new = _from_bits(_to_bits(src[0].cast(F32)))
      else:
        new = UOp(u.op, F32, src, u.arg)
        if u.op in GroupOp.ALU - {Ops.WHERE, Ops.MAX, Ops.NEG}: new = _from_bits(_to_bits(new))
    done[u] = new
  return done[sink]


def legalize(sink: UOp, renderer: Renderer) -> UOp:
  """The kernel in the target's operations and types."""
  if not renderer.supports(BF16): sink = without_bfloat16(sink)
  return simplify(graph_rewrite(sink, _operations, renderer))
