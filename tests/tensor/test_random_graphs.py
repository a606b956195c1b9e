"""Random programs of tensor functions: the compiled kernels of every device against the NumPy witness."""
from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tests.tensor.witness import value
from tinyhw import Tensor, dtypes
from tinyhw.ir.dtype import DType, promote

FAST = settings(max_examples=examples(12),
                suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
TYPES = (dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.uint32, dtypes.int64,
         dtypes.uint64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
Draw = Any


def leaf(draw: Draw, dtype: DType, shape: tuple[int, ...], device: str) -> Tensor:
  """Random data; the seed decides the values, so that examples shrink to small seeds and not to zeros."""
  rng = np.random.default_rng(draw(st.integers(0, (1 << 30) - 1)))
  if dtype.is_bool: data = rng.integers(0, 2, shape).astype(np.bool_)
  elif dtype.is_float: return Tensor(rng.uniform(-4, 4, shape).astype(np.float32), device=device).cast(dtype).realize()
  else: data = rng.integers(max(int(dtype.min), -100), min(int(dtype.max), 100) + 1, shape).astype(dtype.numpy)
  return Tensor(data, device=device)


def moved(draw: Draw, x: Tensor) -> Tensor:
  """One movement function with arguments that fit."""
  rank = x.ndim
  choice = draw(st.sampled_from(["permute", "flip", "pad", "shrink", "slice", "reshape", "repeat", "cat"]))
  if choice == "permute": return x.permute(draw(st.permutations(range(rank))))
  if choice == "flip": return x.flip(draw(st.integers(0, rank - 1)))
  if choice == "pad": return x.pad([(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(rank)])
  if choice == "shrink":
    starts = [draw(st.integers(0, s - 1)) for s in x.shape]
    return x.shrink([(a, draw(st.integers(a + 1, s))) for a, s in zip(starts, x.shape)])
  if choice == "slice":
    return x[tuple(slice(None, None, draw(st.sampled_from([1, 2, 3, -1, -2]))) for _ in range(rank))]
  if choice == "repeat" and x.numel() < 300: return x.repeat(*(draw(st.integers(1, 2)) for _ in range(rank)))
  if choice == "cat" and x.numel() < 300: return x.cat(x.flip(0), dim=draw(st.integers(0, rank - 1)))
  return x.flatten().reshape(-1, next(d for d in (7, 5, 4, 3, 2, 1) if x.numel() % d == 0))


def combined(draw: Draw, x: Tensor, y: Tensor) -> Tensor:
  """One elementwise function whose result is well defined for any value."""
  names = ["add", "sub", "mul", "maximum", "minimum", "lt", "eq", "where"]
  if promote(x.dtype, y.dtype).is_int: names += ["and", "xor", "div", "mod", "shift"]
  name = draw(st.sampled_from(names))
  if name == "lt": return (x < y).cast(x.dtype)
  if name == "eq": return (x == y).where(x, y)
  if name == "where": return (x > y).where(y, x)
  if name == "shift": return (x << (y & 3)) ^ (x >> (y & 1))
  return {"add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y, "maximum": lambda: x.maximum(y),
          "minimum": lambda: x.minimum(y), "and": lambda: x & y, "xor": lambda: x ^ y, "div": lambda: x // y,
          "mod": lambda: x % y}[name]()


def program(draw: Draw, device: str) -> Tensor:
  """A random graph: leaves of random types and shapes, up to six functions."""
  shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
  types = st.sampled_from(TYPES)
  x, y = (leaf(draw, draw(types), shape, device) for _ in range(2))
  for _ in range(draw(st.integers(1, 5))):
    kind = draw(st.sampled_from(["move", "combine", "combine", "cast", "unary", "reduce"]))
    if kind == "move" and x.ndim: x = moved(draw, x)
    elif kind == "combine": x = combined(draw, x, y if x.shape == y.shape else leaf(draw, draw(types), x.shape, device))
    elif kind == "cast": x = x.cast(draw(types))
    elif kind == "unary":
      x = draw(st.sampled_from([lambda t: -t, lambda t: t.abs(), lambda t: t.relu(), lambda t: t * 2 + 1]))(x)
    elif kind == "reduce" and x.ndim:
      x = draw(st.sampled_from([Tensor.sum, Tensor.max]))(x, draw(st.integers(0, x.ndim - 1)))
  return x


def agree(x: Tensor) -> None:
  wanted = value(x.uop)
  found = x.numpy()
  assert found.shape == wanted.shape
  if not x.dtype.is_float: np.testing.assert_array_equal(found, wanted)
  else:
    # Sums may be rounded in another order: the tolerance is relative to the greatest value.
    steps = {"float16": 2**-9, "bfloat16": 2**-6, "float32": 2**-19, "float64": 2**-44}[x.dtype.name]
    with np.errstate(all="ignore"):
      finite = wanted[np.isfinite(wanted)].astype(np.float64)
      scale = float(np.abs(finite).max()) if finite.size else 1.0
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=steps * 4,
                               atol=steps * max(scale, 1e-3))


@FAST
@given(st.data())
def test_a_random_program(device: str, data: st.DataObject) -> None:
  agree(program(data.draw, device))


@FAST
@given(st.data())
def test_a_random_cast(device: str, data: st.DataObject) -> None:
  source, target = data.draw(st.sampled_from(TYPES)), data.draw(st.sampled_from(TYPES))
  agree(leaf(data.draw, source, (data.draw(st.integers(1, 40)),), device).cast(target))


@FAST
@given(st.data())
def test_a_random_matmul(device: str, data: st.DataObject) -> None:
  m, k, n = (data.draw(st.integers(1, 40)) for _ in range(3))
  dtype = data.draw(st.sampled_from([dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.float64, dtypes.int32,
                                     dtypes.uint8]))
  agree(leaf(data.draw, dtype, (m, k), device) @ leaf(data.draw, dtype, (k, n), device))


@FAST
@given(st.data())
def test_a_random_reduction(device: str, data: st.DataObject) -> None:
  shape = tuple(data.draw(st.lists(st.integers(1, 33), min_size=1, max_size=3)))
  axes = tuple(sorted(data.draw(st.sets(st.integers(0, len(shape) - 1)))))
  x = leaf(data.draw, data.draw(st.sampled_from(TYPES)), shape, device)
  agree(data.draw(st.sampled_from([Tensor.sum, Tensor.max, Tensor.min]))(x, axes or None))
