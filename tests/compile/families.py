"""What the tests of all renderers share: programs that do all arithmetic of a type, and what they must give."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.compile.test_render_amdgcn import arithmetic, linear, operands, specials
from tinyhw.compile.widen import widen
from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import Axis, UOp

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[Sequence[UOp], Sequence[Array]], None]
"""Compiles a linear program and runs it on arrays, which are its buffers."""
ROWS = 256
THREADS = 64


def buffer(index: int, dtype: DType, size: int = ROWS) -> UOp: return UOp(Ops.DEFINE_GLOBAL, dtype.ptr(size), (), index)


def per_element(results: Sequence[tuple[DType, Callable[..., UOp]]], sources: Sequence[DType],
                threads: bool, lanes: int = 1) -> list[UOp]:
  """The program that computes all results of each row of the sources: a thread a row, or a loop, of vectors where there
  are `lanes`. Buffers: the results, then the sources."""
  if lanes > 1: row = (loop := UOp.range(ROWS // lanes, 0)) * lanes + UOp.range(lanes, 1, Axis.VECTOR)
  elif threads: row = UOp.special("gidx0", ROWS // THREADS) * THREADS + UOp.special("lidx0", THREADS)
  else: row = loop = UOp.range(ROWS, 0)
  loads = [buffer(len(results) + i, d).index(row).load() for i, d in enumerate(sources)]
  stores = [buffer(i, d).index(row).store(compute(*loads)) for i, (d, compute) in enumerate(results)]
  uops = linear(*widen(UOp.sink(*stores)).src)
  return uops if threads else [*uops, UOp(Ops.ENDRANGE, dtypes.void, (loop,))]


def check_arithmetic(dtype: DType, run: Run, threads: bool, without: frozenset[Ops] = frozenset(),
                     fused: bool = True, lanes: int = 1) -> None:
  """Every operation that the renderer itself has, on every kind of operand, means what `ir.semantics` says."""
  ops, results = arithmetic(dtype)
  kept = [i for i, op in enumerate(ops) if op not in GroupOp.LIBRARY | without]
  ops, results = [ops[i] for i in kept], [results[i] for i in kept]
  values = [operands(dtype, seed) for seed in range(3)] + [operands(dtypes.bool, 3)]
  found = [np.zeros(ROWS, r.numpy) for r, _ in results]
  run(per_element(results, [dtype, dtype, dtype, dtypes.bool], threads, lanes), [*found, *values])
  rows = list(zip(*(v.tolist() for v in values)))
  for op, out in zip(ops, found):
    for (a, b, c, condition), value in zip(rows, out.tolist()):
      args = (condition, a, b) if op is Ops.WHERE else (a, b, c) if op is Ops.MULACC else (a, b)
      if op in GroupOp.UNARY: args = (a,)
      wanted = [semantics.alu(op, dtype, *args)]
      if op is Ops.MULACC and dtype.is_float: wanted = multiply_adds(dtype, *args)
      assert any(same(value, w) for w in wanted), f"{op.name} of {dtype.name} {args}: {value!r}, not {wanted}"


def multiply_adds(dtype: DType, a: float, b: float, c: float) -> list[Any]:
  """What MULACC may give: rounded twice, or once (a double, exactly, in fractions)."""
  from fractions import Fraction
  product = semantics.alu(Ops.MUL, dtype, a, b)
  twice = semantics.alu(Ops.ADD, dtype, product, c)
  if not all(map(math.isfinite, (a, b, c))): return [twice, c if math.isfinite(a) and math.isfinite(b) else a * b + c]
  exact = Fraction(a) * Fraction(b) + Fraction(c)
  if exact == 0: return [twice, a * b + c, 0.0, -0.0]
  digits = {16: 11, 32: 24, 64: 53}[dtype.bits]
  limits = np.finfo(dtype.numpy)
  lowest = int(math.log2(float(limits.smallest_subnormal)))
  power = max(_exponent(abs(exact)) - digits + 1, lowest)
  scaled = exact / Fraction(2) ** power
  once = Fraction(round(scaled)) * Fraction(2) ** power
  if abs(once) > Fraction(float(limits.max)): return [twice, math.inf if exact > 0 else -math.inf]
  return [twice, math.copysign(float(once), 1 if exact > 0 else -1)]


def _exponent(x: Any) -> int:
  """The greatest e with 2**e <= x."""
  from fractions import Fraction
  e = x.numerator.bit_length() - x.denominator.bit_length()
  return e if Fraction(2) ** e <= x else e - 1


def same(a: Any, b: Any) -> bool:
  """Equal, zeros with their signs; NaN is NaN."""
  if a != a or b != b: return a != a and b != b
  return a == b and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b))


def check_casts(source: DType, run: Run, threads: bool, without: frozenset[DType] = frozenset(),
                lanes: int = 1) -> None:
  """Every CAST and BITCAST of a type."""
  targets = [d for d in dtypes.all() if d.bits_type is None and d not in without]
  results = [(d, lambda x, d=d: x.cast(d)) for d in targets]
  alike = [d for d in targets if d.itemsize == source.itemsize and not d.is_bool]
  results += [(d, lambda x, d=d: x.bitcast(d)) for d in alike]
  values = operands(source, 5)
  values[:len(specials(source))] = specials(source)
  found = [np.zeros(ROWS, d.numpy) for d, _ in results]
  run(per_element(results, [source], threads, lanes), [*found, values])
  for (target, _), out in zip(results, found[:len(targets)]):
    for value, got in zip(values.tolist(), out.tolist()):
      wanted = semantics.cast(value, source, target)
      assert same(got, wanted), f"{value!r} of {source.name} as {target.name}: {got!r}, not {wanted!r}"
  for target, out in zip(alike, found[len(targets):]):
    assert out.tobytes() == values.tobytes(), f"BITCAST of {source.name} to {target.name}"


def check_large_integers(run: Run, threads: bool) -> None:
  """Integers that are infinite as halves do not come back from there."""
  values = np.arange(-ROWS // 2, ROWS // 2).astype(np.int64)
  shifts = [(np.int64(k), lambda x, k=k: (x << k).cast(dtypes.float16).cast(dtypes.int64)) for k in (1, 15, 30, 61)]
  found = [np.zeros(ROWS, np.int64) for _ in shifts]
  run(per_element([(dtypes.int64, compute) for _, compute in shifts], [dtypes.int64], threads), [*found, values])
  for (k, _), out in zip(shifts, found):
    for value, got in zip((values << k).tolist(), out.tolist()):
      half = semantics.cast(value, dtypes.int64, dtypes.float16)
      assert got == semantics.cast(half, dtypes.float16, dtypes.int64), value


def check_rounded_products(run: Run, threads: bool) -> None:
  """A product of floats as a half keeps the sign of zero, and is rounded once."""
  values = [operands(dtypes.float32, seed) for seed in (7, 8)]
  values[0][:4], values[1][:4] = [-0.0, 0.0, -1e-9, 3.0], [1.0, -1.0, 1e-9, 1.0 / 3.0]
  found = np.zeros(ROWS, np.float16)
  run(per_element([(dtypes.float16, lambda a, b: (a * b).cast(dtypes.float16))], [dtypes.float32] * 2, threads),
      [found, *values])
  for a, b, got in zip(*(v.tolist() for v in values), found.tolist()):
    wanted = semantics.cast(semantics.alu(Ops.MUL, dtypes.float32, a, b), dtypes.float32, dtypes.float16)
    assert same(got, wanted), f"{a!r} * {b!r}: {got!r}, not {wanted!r}"


def constants(dtype: DType) -> list[UOp]:
  """Every special number of a type as a CONST."""
  return [UOp.const(dtype, v) for v in specials(dtype)]


def check_constants(dtype: DType, run: Run, threads: bool) -> None:
  """Every special number arrives as it is."""
  wanted = specials(dtype)
  results = [(dtype, lambda x, c=c: x.ne(x).where(x.cast(dtype), c)) for c in constants(dtype)]
  found = [np.zeros(ROWS, dtype.numpy) for _ in results]
  run(per_element(results, [dtypes.int32], threads), [*found, np.zeros(ROWS, np.int32)])
  for value, out in zip(wanted, found): assert same(out[0].item(), value), f"{out[0]!r}, not {value!r}"
