"""Values of elementwise functions at which arithmetic goes wrong, against NumPy, on every device. Where NumPy and torch
differ, docs/accuracy.md says which is followed."""
from __future__ import annotations

import itertools
import math
import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.strength import THOROUGH, examples, seed
from tinyhw import Tensor, dtypes
from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType
from tinyhw.ir.symbolic import simplify
from tinyhw.ir.uop import Ops, UOp
from tinyhw.tensor import conversion

Array = np.ndarray[Any, np.dtype[Any]]
F16, F32, F64 = np.float16, np.float32, np.float64
FLOATS = [F16, F32, F64]
INTS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
INF, NAN = math.inf, math.nan
ZEROS = [0.0, -0.0]
ANY = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 0.1, 3.0, -7.0, 5.0, 100.0, 6e4, -6e4, 6e-8, -1e-5, INF, -INF, NAN]
SLOW = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(20))


def whole(kind: Any) -> Array:
  """Integers at which arithmetic goes wrong."""
  limits = np.iinfo(kind)
  return np.array(sorted({v for v in (0, 1, 2, 3, 7, 31, 33, 100, -1, -2, -7, limits.min, limits.max, limits.min + 1,
                                      limits.max - 1) if limits.min <= v <= limits.max}), kind)


def pairs(values: Any) -> tuple[Array, Array]:
  """Each value with each."""
  x = np.asarray(values)
  return np.repeat(x, x.size), np.tile(x, x.size)


def tensor(x: Array, device: str) -> Tensor: return Tensor(np.ascontiguousarray(x), device=device)


def same_bits(found: Array, wanted: Array) -> bool:
  """The same type and bits; all NaNs count as one."""
  if found.dtype != wanted.dtype or found.shape != wanted.shape: return False
  if found.dtype.kind != "f": return bool((found == wanted).all())
  nan = np.isnan(wanted)
  bits = f"u{found.itemsize}"
  equal = np.ascontiguousarray(found).view(bits) == np.ascontiguousarray(wanted).view(bits)
  return bool((np.isnan(found) == nan).all() and (equal | nan).all())


def check(found: Tensor, wanted: Any, *inputs: Array) -> None:
  got, want = found.numpy(), np.asarray(wanted)
  if not same_bits(got, want):
    at = [i for i in range(want.size) if not same_bits(got.reshape(-1)[i:i + 1], want.reshape(-1)[i:i + 1])][:4]
    pytest.fail(f"{got.dtype} {want.dtype}: " + "; ".join(
      f"{[x.reshape(-1)[i] for x in inputs]} gives {got.reshape(-1)[i]!r}, not {want.reshape(-1)[i]!r}" for i in at))


def ignoring(function: Callable[..., Any], *arguments: Any) -> Any:
  with np.errstate(all="ignore"): return function(*arguments)


# *** extremes ***

def greater(a: Array, b: Array) -> Array:
  """IEEE 754-2019's maximum: NumPy leaves open which of two zeros it gives."""
  found = np.maximum(a, b)
  if found.dtype.kind == "f": found = np.where((a == 0) & (b == 0), ignoring(np.add, a, b), found).astype(found.dtype)
  return found


def lesser(a: Array, b: Array) -> Array:
  return -greater(-a, -b) if a.dtype.kind == "f" else np.minimum(a, b)


@pytest.mark.parametrize("kind", [np.bool_, *INTS, *FLOATS], ids=lambda k: k.__name__)
def test_extremes(kind: Any, device: str) -> None:
  if kind is np.bool_: values = np.array([False, True])
  else: values = np.array(ANY, kind) if np.dtype(kind).kind == "f" else whole(kind)
  a, b = pairs(values)
  x, y = tensor(a, device), tensor(b, device)
  check(x.maximum(y), greater(a, b), a, b)
  check(x.minimum(y), lesser(a, b), a, b)
  low, high = (values[0], values[-1]) if kind is not np.bool_ else (False, True)
  check(x.clip(low.item() if kind is not np.bool_ else low, None), greater(a, np.full_like(a, low)))
  check(x.clip(None, high.item() if kind is not np.bool_ else high), lesser(a, np.full_like(a, high)))


def test_extremes_meet_in_one_type(device: str) -> None:
  def made(values: list[Any], dtype: DType) -> Tensor: return Tensor(values, device=device, dtype=dtype)
  assert made([3], dtypes.uint8).minimum(5.0).tolist() == [3.0]
  assert made([3, 200], dtypes.uint8).clip(None, 5.5).tolist() == [3.0, 5.5]
  assert made([True, False], dtypes.bool).minimum(0.5).tolist() == [0.5, 0.0]
  assert made([-2**31, 7], dtypes.int32).minimum(made([2**40], dtypes.int64)).tolist() == [-2**31, 7]
  assert made([-2**31, 7], dtypes.int32).clip(-2**31, 2).tolist() == [-2**31, 2]
  assert made([-2**63], dtypes.int64).minimum(0.0).tolist() == [-2.0**63]
  assert made([5], dtypes.uint8).minimum(made([-3], dtypes.int8)).tolist() == [-3]


def test_numbers_beyond_a_type_compare_as_they_are(device: str) -> None:
  x = Tensor([0, 100, 255], device=device, dtype=dtypes.uint8)
  assert (x < 300).tolist() == [True] * 3 and (x > -1).tolist() == [True] * 3 and (x <= -5).tolist() == [False] * 3
  assert (x == 256).tolist() == [False] * 3 and (x != -1).tolist() == [True] * 3 and (x >= 256).tolist() == [False] * 3
  assert (300 > x).tolist() == [True] * 3
  assert x.clip(-5, 300).tolist() == [0, 100, 255]
  with pytest.raises(InvalidArgument, match="300 is not a number of dtypes.uint8"): x.maximum(300)
  assert (x + 256).tolist() == [0, 100, 255], "arithmetic wraps, as torch's"


@pytest.mark.parametrize("size", [1, 2, 5, 64, 1000])
def test_reductions_keep_the_order_of_zeros(size: int, device: str) -> None:
  for last in ZEROS:
    data = np.full((3, size), -0.0, F32)
    data[1, -1] = last
    x = tensor(data, device)
    check(x.max(1), np.array([-0.0, last, -0.0], F32))
    check((-x).min(1), np.array([0.0, -last, 0.0], F32))
    check(x.sum(1), np.zeros(3, F32))


# *** signs, rounding ***

@pytest.mark.parametrize("kind", FLOATS, ids=lambda k: k.__name__)
def test_functions_that_are_exact(kind: Any, device: str) -> None:
  near = np.nextafter(np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5], kind), np.array([0, 9, 0, 0, -9, 0], kind))
  a = np.concatenate([np.array(ANY, kind), near, np.array([2**10 + 0.5, -2**10 - 1.5, 2**10 + 1], kind)])
  x = tensor(a, device)
  check(x.abs(), np.abs(a), a)
  check(-x, -a, a)
  check(x.sign(), ignoring(np.sign, a), a)
  for name in ("floor", "ceil", "trunc", "round"): check(getattr(x, name)(), ignoring(getattr(np, name), a), a)
  check(x.sqrt(), ignoring(np.sqrt, a), a)
  check(x.square(), ignoring(np.square, a), a)
  check(x.reciprocal(), ignoring(lambda v: (1 / v).astype(kind), a), a)
  check(x.relu6(), np.where(a <= 0, kind(0), np.minimum(a, kind(6))), a)
  check(x.isinf(), np.isinf(a))
  check(x.isnan(), np.isnan(a))


@pytest.mark.parametrize("kind", INTS, ids=lambda k: k.__name__)
def test_integers_round_and_have_signs(kind: Any, device: str) -> None:
  a = whole(kind)
  x = tensor(a, device)
  check(x.abs(), ignoring(np.abs, a))
  check(x.sign(), np.sign(a))
  check(-x, ignoring(np.negative, a))
  check(~x, ~a)
  for name in ("floor", "ceil", "trunc", "round"): check(getattr(x, name)(), a)


# *** arithmetic of two ***

@pytest.mark.parametrize("kind", FLOATS, ids=lambda k: k.__name__)
def test_arithmetic_of_floats(kind: Any, device: str) -> None:
  a, b = pairs(np.array(ANY, kind))
  x, y = tensor(a, device), tensor(b, device)
  for op in (operator.add, operator.sub, operator.mul, operator.truediv): check(op(x, y), ignoring(op, a, b), a, b)
  for op in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
    check(op(x, y), op(a, b), a, b)
  check(x % y, ignoring(operator.mod, a, b), a, b)
  check(x // y, ignoring(operator.floordiv, a, b), a, b)
  check(x * y + x, ignoring(lambda: a * b + a), a, b)         # rounded twice


@settings(SLOW, max_examples=examples(15))
@given(st.integers(0, 2**32), st.sampled_from(FLOATS))
def test_remainders_of_any_floats(device: str, seed: int, kind: Any) -> None:
  rng, size = np.random.default_rng(seed), np.dtype(kind).itemsize
  a, b = (rng.integers(0, 256, 200 * size, dtype=np.uint8).view(kind) for _ in range(2))
  b = np.where(rng.random(200) < 0.3, ignoring(lambda: a * rng.integers(-9, 9, 200).astype(kind)), b)
  b = np.where(rng.random(200) < 0.3, (rng.normal(size=200) * 10.0).astype(kind), b)
  check(tensor(a, device) % tensor(b, device), ignoring(operator.mod, a, b), a, b)
  check(tensor(a, device) // tensor(b, device), ignoring(operator.floordiv, a, b), a, b)


def test_remainders_named(device: str) -> None:
  def made(*values: float) -> Tensor: return Tensor(list(values), device=device)
  assert (made(5.0, -5.0) % INF).tolist() == [5.0, INF] and (made(1.0, -1.0) // 0.1).tolist() == [9.0, -10.0]
  assert (7.5 % made(2.0, -2.0)).tolist() == [1.5, -0.5] and (7.5 // made(2.0, -2.0)).tolist() == [3.0, -4.0]
  assert (Tensor([True], device=device) % Tensor([True], device=device)).tolist() == [0]
  assert (Tensor([7], device=device) // 2.5).tolist() == [2.0]


@pytest.mark.parametrize("kind", INTS, ids=lambda k: k.__name__)
def test_arithmetic_of_integers(kind: Any, device: str) -> None:
  a, b = pairs(whole(kind))
  x, y = tensor(a, device), tensor(b, device)
  for op in (operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor, operator.floordiv,
             operator.mod, operator.lt, operator.le, operator.eq, operator.ne):
    check(op(x, y), ignoring(op, a, b), a, b)
  for op in (operator.lshift, operator.rshift): check(op(x, y), op(a, b), a, b)
  for count in (0, 1, np.iinfo(kind).bits - 1, np.iinfo(kind).bits, 256, 2**40, -1):
    wanted = [int(v) >> min(count, 64) if count >= 0 else -(v < 0) for v in a.tolist()]
    check(x >> count, np.array(wanted).astype(kind) if np.iinfo(kind).min else np.array(
      [int(v) >> min(count, 64) if count >= 0 else 0 for v in a.tolist()], kind))
    check(x << count, np.array([0 if not 0 <= count < np.iinfo(kind).bits else semantics.wrap(
      int(v) << count, dtypes.from_numpy(kind)) for v in a.tolist()], kind))


@pytest.mark.parametrize("kind", INTS, ids=lambda k: k.__name__)
def test_powers_of_integers(kind: Any, device: str) -> None:
  a, b = pairs(whole(kind))
  dtype = dtypes.from_numpy(kind)
  def power(x: int, y: int) -> int:
    if y >= 0: return semantics.wrap(pow(x, y, 1 << dtype.bits), dtype)
    return 1 if x == 1 else (-1)**(y & 1) if x == -1 else 0
  wanted = np.array([power(int(x), int(y)) for x, y in zip(a, b)], kind)
  check(tensor(a, device) ** tensor(b, device), wanted, a, b)
  check(tensor(a, device) ** 3, np.array([semantics.wrap(int(x)**3, dtype) for x in a], kind))
  with pytest.raises(InvalidArgument, match="to the power of -1"): tensor(a, device) ** -1
  assert (Tensor([True, False], device=device) ** 2).tolist() == [1, 0]


def test_powers_of_floats(device: str) -> None:
  a, b = pairs(np.array([*ANY, 2.0, -2.0, -3.0], F64))
  found, wanted = (tensor(a, device) ** tensor(b, device)).numpy(), ignoring(np.power, a, b)
  np.testing.assert_allclose(found, wanted, rtol=4e-16)
  special = np.isfinite(wanted) & (wanted == 0)
  assert (np.signbit(found[special]) == np.signbit(wanted[special])).all()
  for exponent in (-2, -1, -0.5, 0, 0.0, 0.5, 1, 2, 2.0, 3, 4, 7, 1.7, 64, -64):
    x = np.array(ANY, F32)
    wanted = ignoring(lambda v, e: np.power(v.astype(F64), e).astype(F32), x, F64(F32(exponent)))
    # Of -inf and -0.0 as sqrt has it.
    if exponent in (0.5, -0.5): wanted = ignoring(np.power, ignoring(np.sqrt, x), F32(2 * exponent))
    np.testing.assert_allclose((tensor(x, device) ** exponent).numpy(), wanted, rtol=2.4e-7, atol=1e-44)


# *** what only moves ***

def patterns(kind: Any, size: int) -> Array:
  """Numbers whose bits are to survive: zeros of both signs, infinities, NaNs with payloads, quiet and signalling."""
  if np.dtype(kind).kind != "f":
    return np.random.default_rng(seed(3)).integers(0, 256, size * np.dtype(kind).itemsize, dtype=np.uint8).view(kind)
  bits = {2: [0x8000, 0x7E01, 0xFE55, 0x7C01, 0xFC03, 0x7C00, 0xFC00, 0x0001, 0x8001],
          4: [0x80000000, 0x7FC00001, 0xFFD23456, 0x7F800001, 0xFF800123, 0x7F800000, 0xFF800000, 1, 0x80000001],
          8: [1 << 63, 0x7FF8000000000001, 0xFFFA << 48, 0x7FF0000000000001, 0xFFF0000000000123, 0x7FF << 52,
              0xFFF << 52, 1, (1 << 63) + 1]}[np.dtype(kind).itemsize]
  return np.resize(np.array([0, *bits], f"u{np.dtype(kind).itemsize}"), size).view(kind)


MOVES: dict[str, tuple[Callable[..., Tensor], Callable[..., Array]]] = {
  "cat": (lambda x, y: x.cat(y, x, dim=0), lambda a, b: np.concatenate([a, b, a])),
  "cat_inner": (lambda x, y: x.cat(y, dim=1), lambda a, b: np.concatenate([a, b], 1)),
  "stack": (lambda x, y: x.stack(y, dim=1), lambda a, b: np.stack([a, b], 1)),
  "roll": (lambda x, y: x.roll(2, 1).roll(-1, 0), lambda a, b: np.roll(np.roll(a, 2, 1), -1, 0)),
  "empty": (lambda x, y: x[:0].cat(x, y[:0], y[:0]), lambda a, b: a),
  "nothing": (lambda x, y: x[:0].cat(y[:0]), lambda a, b: a[:0]),
  "where": (lambda x, y: Tensor([[True], [False]] * 2, device=x.device).where(x, y),
            lambda a, b: np.where(np.array([[True], [False]] * 2), a, b)),
  "moved": (lambda x, y: x.T.flip(0).reshape(2, -1).contiguous(), lambda a, b: a.T[::-1].reshape(2, -1)),
}


@pytest.mark.parametrize("kind", [*FLOATS, np.uint8, np.int16, np.uint64], ids=lambda k: k.__name__)
def test_what_moves_keeps_its_bits(kind: Any, device: str) -> None:
  a = patterns(kind, 24).reshape(4, 6)
  b = np.ascontiguousarray(a[::-1])
  for name, (ours, theirs) in MOVES.items():
    found, wanted = ours(tensor(a, device), tensor(b, device)).numpy(), theirs(a, b)
    assert found.shape == wanted.shape and found.tobytes() == wanted.tobytes(), name


def test_bfloat16_that_moves_keeps_its_bits(device: str) -> None:
  bits = np.array([0x8000, 0, 0x7FC1, 0xFFD5, 0x7F81, 0xFF83, 0x7F80, 0xFF80, 1, 0x8001], np.uint16)
  x = tensor(bits, device).bitcast(dtypes.bfloat16).contiguous().realize()
  for found, wanted in ((x.contiguous(), bits), (x.cat(x), np.concatenate([bits, bits])), (x.roll(3), np.roll(bits, 3)),
                        (x.flip(0), bits[::-1])):
    assert found.contiguous().realize().bitcast(dtypes.uint16).numpy().tolist() == wanted.tolist()


@pytest.mark.parametrize("kind", [F16, F32, F64], ids=lambda k: k.__name__)
def test_elements_that_are_taken_keep_their_zeros(kind: Any, device: str) -> None:
  a = np.array([[0.0, -0.0, INF, -INF, NAN, 1.5], [-0.0, 2.0, 0.0, -3.0, -0.0, 5.0]], kind)
  x, places = tensor(a, device), [1, 0, -2, 4, 3]
  check(x[:, places], a[:, places])
  check(x[[1, 0], [0, 1]], a[[1, 0], [0, 1]])
  index = np.array([[1, 0, 4], [2, 5, 0]])
  check(x.gather(1, tensor(index, device)), np.take_along_axis(a, index, 1))
  check(x[:, [7, -9, 1]], np.array([[0, 0, -0.0], [0, 0, 2]], kind))
  check(x.tril() + kind(-0.0), np.where(np.tril(np.ones(a.shape, bool)), a, kind(0)))


def test_index_tensors_of_small_and_large_types(device: str) -> None:
  x = Tensor.arange(200, device=device)
  assert x[Tensor([-1, 5], dtype=dtypes.int8, device=device)].tolist() == [199, 5]
  assert x[Tensor([2**32 + 1, -1, 2**40], dtype=dtypes.int64, device=device)].tolist() == [0, 199, 0]
  assert x[Tensor([255, 7], dtype=dtypes.uint8, device=device)].tolist() == [0, 7]


def test_padding_with_minus_zero(device: str) -> None:
  check(Tensor([1.0], device=device).pad((1, 1), value=-0.0), np.array([-0.0, 1.0, -0.0], F32))


def test_the_types_of_an_empty_piece_count(device: str) -> None:
  x = Tensor([1, 2], device=device).cat(Tensor(np.zeros(0, F32), device=device))
  assert x.dtype is dtypes.float32 and x.tolist() == [1.0, 2.0]


# *** conversions ***

TYPES = [d for d in dtypes.all() if d.bits_type is None]
VALUES = [0.0, -0.0, 1.0, -1.0, 0.4, -0.6, 127.0, 128.0, 200.7, 255.0, 256.0, -5.0, -128.0, -129.0, 32768.0, 65504.0,
          65536.0, 1e5, -4e4, 2.0**31, -2.0**31, 3e9, 2.0**32, 2.0**53 + 2, 2.0**63, -2.0**63, 2.0**64, 1e20, -1e20,
          1e-8, 1e300, INF, -INF, NAN]


def convert(value: Any, *types: DType) -> Any:
  for a, b in zip(types, types[1:]): value = semantics.cast(value, a, b)
  return value


def inputs_of(dtype: DType) -> list[Any]:
  """Values of the type: those above, and integers whose last bits count."""
  found = {repr(v): v for v in (semantics.cast(v, dtypes.float64, dtype) for v in VALUES)}
  if dtype.is_int:
    more = [semantics.wrap(v, dtype) for v in (2**24 + 1, 2**53 + 1, 2**62 + 2**38 + 1, -3, 77, int(dtype.max) - 1)]
    found.update({repr(v): v for v in more})
  return list(found.values())


def test_folded_conversions_are_the_unfolded_ones() -> None:
  """All chains of three types: what the simplifier makes of a chain means what the chain means."""
  for a in dtypes.all():
    values = inputs_of(a)
    x = UOp(Ops.DEFINE_GLOBAL, a.ptr(1), (), 0).index(UOp.const(dtypes.int32, 0)).load()
    for b in dtypes.all():
      for c in dtypes.all():
        chain = x.cast(b).cast(c)
        types, u = [c], simplify(chain)
        while u is not x:
          assert u.op is Ops.CAST
          u = u.src[0]
          types.insert(0, u.dtype)
        for v in values:
          wanted, got = convert(v, a, b, c), convert(v, *types)
          assert repr(wanted) == repr(got), f"{v!r} as {a}, {b}, {c}: {got!r} by {types}, not {wanted!r}"


def test_bits_of_types_without_a_common_integer_are_refused() -> None:
  x, y = Tensor(np.array([1], np.int8)), Tensor(np.array([1], np.uint64))
  for f in (lambda: x & y, lambda: x | y, lambda: y ^ x):
    with pytest.raises(InvalidArgument, match="no integer type holds both; cast one"): f()


def test_shifts_by_counts_of_another_sign(device: str) -> None:
  """The result has the left one's type where no integer type holds both; no count becomes another by wrapping."""
  counts, values = [0, 1, 7, 8, 63, 64, 256, 2**40, 2**63], [-128, -1, 1, 77]
  for v in values:
    x, n = tensor(np.full(len(counts), v, np.int8), device), tensor(np.array(counts, np.uint64), device)
    check(x >> n, np.array([v >> min(c, 7) for c in counts], np.int8), np.array(counts))
    check(x << n, np.array([v << c if c < 8 else 0 for c in counts]).astype(np.int8), np.array(counts))
    few = [*counts[:6], -1, -2**31]
    y, m = tensor(np.full(len(few), v, np.int64).astype(np.uint64), device), tensor(np.array(few, np.int32), device)
    u = v % 2**64
    check(y >> m, np.array([u >> c if 0 <= c < 64 else 0 for c in few], np.uint64), np.array(few))
    check(y << m, np.array([u << c & 2**64 - 1 if 0 <= c < 64 else 0 for c in few], np.uint64), np.array(few))


def test_chains_of_conversions_on_devices(device: str) -> None:
  """Chains of three types, in kernels that hold the whole chain: all of them in a thorough run."""
  chains = list(itertools.product(TYPES, TYPES, TYPES))
  for a, b, c in chains if THOROUGH else random.Random(seed(7)).sample(chains, 60):
    values = np.array(inputs_of(a), a.numpy)
    wanted = np.array([convert(v, a, b, c) for v in inputs_of(a)], c.numpy)
    check(tensor(values, device).cast(b).cast(c), wanted, values)


def test_negative_numbers_as_unsigned_as_floats(device: str) -> None:
  """Whole vectors of them: LLVM 22's SLP vectorizer took the narrow numbers for unsigned ones."""
  for a in (dtypes.int8, dtypes.int16, dtypes.int32):
    for b in (dtypes.uint16, dtypes.uint32, dtypes.uint64):
      for c in (dtypes.float16, dtypes.float32, dtypes.float64):
        if b.bits <= a.bits: continue
        values = np.resize(np.array([-1, -5, -128, 3], a.numpy), 16)
        with np.errstate(over="ignore"): wanted = values.astype(b.numpy).astype(c.numpy)
        check(tensor(values, device).cast(b).cast(c), wanted, values)


def test_a_product_rounded_to_half_keeps_the_sign_of_its_zero(device: str) -> None:
  """LLVM 22 adds +0 to it (v_fma_mixlo_f16)."""
  x, y = pairs(np.array([0.0, -0.0, 1.0, -3.0, 1e-30, -1e-30, 1e30, -INF], F32))
  with np.errstate(all="ignore"): wanted = (x * y).astype(F16)
  check((tensor(x, device) * tensor(y, device)).cast(dtypes.float16), wanted, x, y)


@SLOW
@example(values=[-5], types=(dtypes.int8, dtypes.float32, dtypes.uint8))
@example(values=[2**40 + 300], types=(dtypes.int64, dtypes.float32, dtypes.int8))
@given(values=st.lists(st.integers(-2**63, 2**64 - 1), min_size=1, max_size=20),
       types=st.lists(st.sampled_from(TYPES), min_size=3, max_size=5))
def test_longer_chains_of_conversions(device: str, values: list[int], types: list[DType]) -> None:
  first = [semantics.cast(semantics.wrap(v, dtypes.int64), dtypes.int64, types[0]) for v in values]
  x = Tensor(np.array(first, types[0].numpy), device=device)
  for t in types[1:]: x = x.cast(t)
  check(x, np.array([convert(v, *types) for v in first], types[-1].numpy))


# *** nearness ***

def test_isclose(device: str) -> None:
  a, b = pairs(np.array([1.0, 1.00001, INF, -INF, NAN, 0.0, 1e-9, 3e38], F32))
  check(tensor(a, device).isclose(tensor(b, device)), np.isclose(a, b))
  a, b = pairs(np.array([3, 5, 255], np.uint8))
  check(tensor(a, device).isclose(tensor(b, device), rtol=0.5), np.isclose(a, b, rtol=0.5))


# *** where f32 was lost ***

def test_small_and_large_arguments(device: str) -> None:
  def of(name: str, *values: float) -> Array:
    return getattr(Tensor(np.array(values, F32), device=device), name)().numpy().astype(F64)
  np.testing.assert_allclose(of("tanh", 1e-8, -1e-30), [1e-8, -1e-30], rtol=1e-7)
  np.testing.assert_allclose(of("softplus", -20, -80), [np.exp(-20.0), np.exp(-80.0)], rtol=3e-7)
  np.testing.assert_allclose(of("cos", 1e7, 1e30), np.cos(np.array([1e7, 1e30], F32).astype(F64)), rtol=1e-7)
  np.testing.assert_allclose(of("elu", -1e-8), [-1e-8], rtol=1e-7)
  np.testing.assert_allclose(of("gelu", -5), [-5 * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (-5 - 0.044715 * 125)))],
                             rtol=1e-6)


NUMBERS = st.one_of(st.booleans(), st.integers(-2 ** 70, 2 ** 70), st.integers(-300, 300), st.floats(), st.just(1e300))


@settings(max_examples=examples(60))
@given(st.lists(NUMBERS, min_size=1, max_size=12), st.sampled_from([
  None, dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64,
  dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64]), st.booleans())
def test_many_numbers_are_taken_as_few_are(values: list[Any], kind: DType | None, rows: bool) -> None:
  """NumPy packs long lists: bits, types and refusals are the same as one by one."""
  def made(many: int) -> object:
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(conversion, "_MANY", many)
      try: x = Tensor([values, values] if rows else values, dtype=kind, device="PYTHON")
      except Error as error: return str(error)
      return x.dtype, x.shape, bytes(x.realize().data())
  assert made(0) == made(1 << 30)
