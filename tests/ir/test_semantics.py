"""The scalar meanings, held to NumPy on vectors of edge cases and of random values."""
from __future__ import annotations

import math
import warnings
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strength import seed
from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.uop import Ops

INTS = [d for d in dtypes.all() if d.is_int]
FLOATS = [dtypes.float16, dtypes.float32, dtypes.float64]
NUMPY = {Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.MAX: np.maximum, Ops.CMPLT: np.less,
         Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal, Ops.FDIV: np.divide, Ops.AND: np.bitwise_and,
         Ops.OR: np.bitwise_or, Ops.XOR: np.bitwise_xor, Ops.SHL: np.left_shift, Ops.SHR: np.right_shift,
         Ops.NEG: np.negative, Ops.SQRT: np.sqrt, Ops.TRUNC: np.trunc, Ops.EXP2: np.exp2, Ops.LOG2: np.log2,
         Ops.SIN: np.sin}
EDGE = [0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 65504.0, 1e-7, math.inf, -math.inf, math.nan, 3.0, 100.7, -2.5]


def edges(dtype: DType) -> list[int]:
  return sorted({semantics.wrap(v, dtype) for v in (0, 1, 2, 3, 7, -1, -2, int(dtype.min), int(dtype.max),
                                                    int(dtype.max) - 1, int(dtype.min) + 1, 100)})


def same(got: object, expected: np.generic) -> bool:
  want = expected.item()
  return got == want or (got != got and want != want)


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("op", [Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.AND, Ops.OR,
                                Ops.XOR])
def test_integers(op: Ops, dtype: DType) -> None:
  with warnings.catch_warnings(), np.errstate(all="ignore"):
    warnings.simplefilter("ignore")
    for a in edges(dtype):
      for b in edges(dtype):
        assert same(semantics.alu(op, dtype, a, b), NUMPY[op](dtype.numpy.type(a), dtype.numpy.type(b))), (a, b)


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_division_is_that_of_c(dtype: DType) -> None:
  for a in edges(dtype):
    for b in edges(dtype):
      quotient, remainder = semantics.alu(Ops.IDIV, dtype, a, b), semantics.alu(Ops.MOD, dtype, a, b)
      if b == 0: assert quotient == remainder == 0
      else:
        assert quotient == semantics.wrap(math.trunc(Fraction(a, b)), dtype)
        assert semantics.wrap(quotient * b + remainder, dtype) == a and abs(remainder) < abs(b)
        assert remainder == 0 or (remainder < 0) == (a < 0)


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_shifts_take_the_count_modulo_the_width(dtype: DType) -> None:
  for a in edges(dtype):
    for count in (0, 1, 3, dtype.bits - 1, dtype.bits, dtype.bits + 2):
      for op in (Ops.SHL, Ops.SHR):
        expected = NUMPY[op](dtype.numpy.type(a), dtype.numpy.type(count % dtype.bits))
        assert same(semantics.alu(op, dtype, a, count), expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", [Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MAX, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ])
def test_floats(op: Ops, dtype: DType) -> None:
  with np.errstate(all="ignore"):
    for a in EDGE:
      for b in EDGE:
        x, y = dtype.numpy.type(a), dtype.numpy.type(b)
        assert same(semantics.alu(op, dtype, float(x), float(y)), NUMPY[op](x, y)), (a, b)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", [Ops.NEG, Ops.SQRT, Ops.TRUNC, Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.RECIP])
def test_functions_of_one_float(op: Ops, dtype: DType) -> None:
  with np.errstate(all="ignore"):
    for a in EDGE:
      x = dtype.numpy.type(a)
      got = semantics.alu(op, dtype, float(x))
      expected = (dtype.numpy.type(1) / x if op is Ops.RECIP else NUMPY[op](x)).item()
      if got != got or math.isinf(got) or got == expected: assert same(got, np.float64(expected)), a
      else: assert abs(got - expected) <= 2 * float(np.spacing(dtype.numpy.type(abs(expected)))), a


@given(st.floats(), st.sampled_from(FLOATS), st.sampled_from(dtypes.all()))
def test_casts_of_floats(value: float, source: DType, target: DType) -> None:
  x = semantics.canonical(value, source)
  got = semantics.cast(x, source, target)
  if target.is_bool: assert got == (x != 0)
  elif target.is_int:
    low, high = float(target.min), float(target.max)
    expected = 0 if x != x else target.max if x >= high else target.min if x <= low else math.trunc(x)
    assert got == expected
  elif target.bits_type is None:
    with np.errstate(all="ignore"): assert same(got, source.numpy.type(x).astype(target.numpy))


@given(st.integers(-2 ** 63, 2 ** 64 - 1), st.sampled_from(INTS), st.sampled_from(INTS))
def test_casts_of_integers_wrap(value: int, source: DType, target: DType) -> None:
  x = semantics.wrap(value, source)
  assert semantics.cast(x, source, target) == np.array(x, source.numpy).astype(target.numpy).item()


@given(st.integers(0, 0xFFFF))
def test_bfloat16_is_the_upper_half_of_float32(bits: int) -> None:
  value = semantics.from_bits(bits, dtypes.bfloat16)
  assert same(value, np.array(bits << 16, np.uint32).view(np.float32))
  if value == value: assert semantics.to_bits(value, dtypes.bfloat16) == bits


@given(st.floats(width=32, allow_nan=False))
def test_bfloat16_rounds_to_nearest_even(value: float) -> None:
  got = semantics.canonical(value, dtypes.bfloat16)
  bits = int(np.float32(value).view(np.uint32))
  low, high = (np.array(b, np.uint32).view(np.float32).item() for b in (bits & 0xFFFF0000, (bits & 0xFFFF0000) + 0x10000
                                                                      if bits & 0x7F800000 != 0x7F800000 else bits))
  assert got in (low, high)
  if math.isfinite(high): assert abs(got - value) <= min(abs(low - value), abs(high - value))


def test_bool_arithmetic() -> None:
  for a in (False, True):
    for b in (False, True):
      assert semantics.alu(Ops.ADD, dtypes.bool, a, b) is (a or b)
      assert semantics.alu(Ops.MUL, dtypes.bool, a, b) is (a and b)
      assert semantics.alu(Ops.MAX, dtypes.bool, a, b) is (a or b)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_large_integer_is_rounded_once(sign: int) -> None:
  """2^61 + 2^37 is midway between two floats; the 1 decides, and rounding to a double first would lose it."""
  value = sign * ((1 << 61) + (1 << 37) + 1)
  assert semantics.cast(value, dtypes.int64, dtypes.float32) == sign * float((1 << 61) + (1 << 38))
  assert semantics.cast(value - sign, dtypes.int64, dtypes.float32) == sign * float(1 << 61)
  assert semantics.cast(value, dtypes.int64, dtypes.float64) == float(value)


SMALL = {dtypes.float8_e4m3fn: ml_dtypes.float8_e4m3fn, dtypes.float8_e5m2: ml_dtypes.float8_e5m2,
         dtypes.float8_e4m3fnuz: ml_dtypes.float8_e4m3fnuz, dtypes.float8_e5m2fnuz: ml_dtypes.float8_e5m2fnuz}


@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)
def test_every_float_of_8_bits_is_what_ml_dtypes_has(dtype: DType) -> None:
  numbers = np.arange(256, dtype=np.uint8).view(SMALL[dtype]).astype(np.float64)
  for bits, number in enumerate(numbers.tolist()):
    value = semantics.from_bits(bits, dtype)
    assert same(value, np.float64(number)) and semantics.canonical(value, dtype) == value or value != value
    if value == value: assert semantics.to_bits(value, dtype) == bits
  assert semantics.to_bits(math.nan, dtype) & 0x7F == np.array(math.nan).astype(SMALL[dtype]).view(np.uint8) & 0x7F
  least, most = numbers[np.isfinite(numbers)].min(), numbers[np.isfinite(numbers)].max()
  if dtype is not dtypes.float8_e5m2: assert (dtype.min, dtype.max) == (least, most)


@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)
def test_floats_of_8_bits_are_rounded_as_ml_dtypes_does(dtype: DType) -> None:
  """All numbers halfway between two, their neighbours, and any others."""
  numbers = np.arange(256, dtype=np.uint8).view(SMALL[dtype]).astype(np.float64)
  numbers = np.unique(numbers[np.isfinite(numbers)])
  half = (numbers[1:] + numbers[:-1]) / 2
  rng = np.random.default_rng(seed(8))
  some = rng.normal(size=4000) * np.exp2(rng.integers(-25, 20, 4000))
  beyond = [247.0, 248.0, 249.0, 464.0, 465.0, 480.0, 57344.0, 61439.0, 61440.0, 1e300, 5e-324, 0.0, -0.0, math.inf,
            -math.inf]
  values = np.concatenate([half, np.nextafter(half, math.inf), np.nextafter(half, -math.inf), some, beyond])
  with np.errstate(all="ignore"):
    for value, wanted in zip(values.tolist(), values.astype(SMALL[dtype]).astype(np.float64)):
      assert same(semantics.canonical(value, dtype), wanted), value
