"""Types, and UOps as nodes: interning, shapes, bounds, digests, pickling."""
from __future__ import annotations

import gc
import math
import pickle
from itertools import combinations_with_replacement

import numpy as np
import pytest

from tests.ir.test_shape import evaluate
from tinyhw import Variable
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir import uop as uop_module
from tinyhw.ir.dtype import AddressSpace, can_cast_losslessly, dtypes, promote
from tinyhw.ir.size import worth
from tinyhw.ir.uop import Axis, Ops, UOp, movement_shape, sources

F32, I32 = dtypes.float32, dtypes.int32


def test_types_are_interned() -> None:
  assert F32.vec(4) is F32.vec(4) and F32.vec(4).scalar is F32 and F32.vec(1) is F32
  assert F32.ptr(8) is F32.ptr(8) is not F32.ptr(8, AddressSpace.LOCAL)
  for t in (F32, F32.vec(4), I32.ptr(3)): assert pickle.loads(pickle.dumps(t)) is t
  assert dtypes.half is dtypes.float16 is dtypes.named("half")
  with pytest.raises(TypeError, match="no dtype is called 'float128'"): dtypes.named("float128")


def test_promotion_is_a_lattice() -> None:
  for a, b in combinations_with_replacement(dtypes.all(), 2):
    assert promote(a, b) is promote(b, a)
    assert promote(a, promote(a, b)) is promote(a, b)
  assert promote(dtypes.uint8, dtypes.int8) is dtypes.int16
  assert promote(dtypes.int64, dtypes.float16) is dtypes.float16
  assert promote(dtypes.float16, dtypes.bfloat16) is F32
  assert promote(dtypes.uint64, dtypes.int8) is F32
  assert promote(dtypes.float8_e4m3fn, dtypes.float8_e5m2) is dtypes.float16
  assert promote(*dtypes.fp8_fnuz) is dtypes.float16 and promote(*dtypes.fp8_fnuz, dtypes.bfloat16) is dtypes.bfloat16
  assert promote(dtypes.fp8e4m3fnuz, dtypes.uint64) is dtypes.float8_e4m3fnuz
  assert promote(dtypes.float8_e5m2, dtypes.int64) is dtypes.fp8e5m2 is dtypes.float8_e5m2
  assert promote(dtypes.bool, dtypes.uint8) is dtypes.uint8


def test_lossless_casts_keep_the_ends() -> None:
  kinds = [d for d in dtypes.all() if d.bits_type is None]
  for a in kinds:
    for b in kinds:
      if not can_cast_losslessly(a, b) or a.is_float or b.is_bool: continue
      for value in (a.min, a.max): assert int(np.array(value, a.numpy).astype(b.numpy)) == int(value)


FRACTION = {"float8_e4m3fn": (4, 8), "float8_e5m2": (3, 15), "float8_e4m3fnuz": (4, 8), "float8_e5m2fnuz": (3, 16),
            "float16": (11, 16), "bfloat16": (8, 128), "float32": (24, 128), "float64": (53, 1024)}  # digits, exponent


def test_lossless_casts_are_those_that_the_formats_allow() -> None:
  for a in dtypes.all():
    for b in dtypes.all():
      if a is b or a.is_bool: wanted = True
      elif b.is_bool or a.is_float and b.is_int: wanted = False
      elif b.is_int: wanted = b.min <= a.min and a.max <= b.max
      elif a.is_int: wanted = a.bits - a.is_signed <= FRACTION[b.name][0]
      elif a.bits == b.bits == 8: wanted = False          # each has numbers that the others have not
      else: wanted = all(x <= y for x, y in zip(FRACTION[a.name], FRACTION[b.name]))
      assert can_cast_losslessly(a, b) == wanted, (a, b)


def test_vectors_and_pointers() -> None:
  with pytest.raises(TypeError, match="is a vector already"): F32.vec(4).vec(2)
  assert F32.ptr().size == -1 and F32.ptr(8).size == 8 and F32.ptr(8, AddressSpace.LOCAL).space is AddressSpace.LOCAL
  assert F32.vec(4).itemsize == 16 and dtypes.bool.itemsize == 1 and dtypes.void.itemsize == 0


@pytest.mark.parametrize(("op", "wrong"), [
  (Ops.RESHAPE, [(5,), (-2, -3), (7, 1)]), (Ops.PERMUTE, [(0, 0), (0,), (1, 2)]), (Ops.EXPAND, [(2, 4), (1, 3), (2,)]),
  (Ops.PAD, [((0, 0), (-1, 0)), ((0, -1), (0, 0)), ((0, 0),)]),
  (Ops.SHRINK, [((0, 3), (0, 3)), ((-1, 1), (0, 3)), ((2, 1), (0, 3)), ((0, 2),)])])
def test_movements_that_do_not_fit_a_shape(op: Ops, wrong: list[tuple]) -> None:
  for arg in wrong:
    with pytest.raises(InvalidArgument, match=op.name): movement_shape(op, (2, 3), arg)


def test_operators_of_numbers_and_nodes() -> None:
  """With the number on either side, against Python's own."""
  r = UOp.range(10, 0) + 1
  for form in (lambda x, n: n + x, lambda x, n: n - x, lambda x, n: n * x, lambda x, n: n // x, lambda x, n: x + n,
               lambda x, n: x - n, lambda x, n: x * n, lambda x, n: x // n, lambda x, n: x % n,
               lambda x, n: x & n, lambda x, n: x | n, lambda x, n: x ^ n, lambda x, n: x < n, lambda x, n: -x + n):
    u = form(r, 7)
    for value in range(10): assert evaluate(u, {UOp.range(10, 0): value}) == form(value + 1, 7)


def test_equal_nodes_are_one() -> None:
  r = UOp.range(10, 0)
  assert r + 1 is r + 1 and r + 1 is not r + 2
  assert UOp.const(F32, 0.0) is not UOp.const(F32, -0.0)
  assert UOp.const(F32, float("nan")) is UOp.const(F32, float("nan"))
  assert UOp.const(I32, True) is UOp.const(I32, 1) and UOp.const(I32, 1).arg.__class__ is int
  assert UOp.const(dtypes.uint8, 300).arg == 44 and UOp.const(F32, 0.1).arg == float(np.float32(0.1))


def test_constants_that_are_kept_are_those_that_are_asked_for() -> None:
  for _ in range(2):
    assert math.copysign(1.0, UOp.const(F32, -0.0).arg) == -1.0 and math.copysign(1.0, UOp.const(F32, 0.0).arg) == 1.0
    assert [UOp.const(t, v).arg for t in (F32, I32) for v in (1, 1.0, True)] == [1.0, 1.0, 1.0, 1, 1, 1]
    assert all(UOp.const(t, 1).arg.__class__ is c for t, c in ((F32, float), (I32, int), (dtypes.bool, bool)))
    assert UOp.const(F32, 2, "X", (3,)).device == "X" and UOp.const(F32, 2, "Y", (3,)).device == "Y"
    for n in (3, 5):                      # a size is equal to itself with another value, which the graph keeps
      size: int = Variable("n", 1, 9).bind(n) * 2
      assert worth(UOp.const(F32, 2, "X", (size,)).shape[0]) == 2 * n


def test_nodes_die_with_their_users() -> None:
  uop_module._const.cache_clear()
  gc.collect()
  uop_module._sweep()
  before = len(uop_module._interned)
  u = UOp.new_buffer("X", 4, F32).reshape((2, 2)) * 3.5
  uop_module._const.cache_clear()          # so many constants are kept at most
  assert uop_module._const.cache_info().maxsize == 1024
  assert len(uop_module._interned) > before
  del u
  gc.collect()
  assert len(uop_module._interned) - len(uop_module._went) == before


def test_deep_graphs_need_no_recursion() -> None:
  u = UOp.new_buffer("X", 4, F32)
  for i in range(5000): u = u + float(i)
  assert u.shape == (4,) and u.device == "X" and len(u.toposort()) > 10000 and len(u.key) == 16
  assert u.substitute({u.base: u.base}) is u


def test_pickled_nodes_are_the_same() -> None:
  u = (UOp.range(10, 0, Axis.REDUCE) * 3 + 1).cast(F32)
  assert pickle.loads(pickle.dumps(u)) is u


def test_digest_tells_graphs_apart() -> None:
  r = UOp.range(10, 0)
  assert (r + 1).key != (r + 2).key and (r + 1).key == pickle.loads(pickle.dumps(r + 1)).key


def test_order_of_sources() -> None:
  r = UOp.range(10, 0)
  u = (r + 1) * (r + 2)
  for nodes in (list(u.toposort()), list(sources([r + 1, u]))):
    assert all(nodes.index(s) < nodes.index(v) for v in nodes for s in v.src)
  assert r not in u.toposort(lambda v: v is not r)


@pytest.mark.parametrize("make", [
  lambda u: u.reshape((5,)), lambda u: u.permute((0, 0)), lambda u: u.expand((3, 3)), lambda u: u.pad(((1, 1),)),
  lambda u: u.shrink(((0, 3), (0, 4))), lambda u: u.flip((True,)), lambda u: u.pad(((-1, 0), (0, 0))),
  lambda u: u.reduce(Ops.ADD, (2,)).shape, lambda u: (u + u.reshape((6,))).shape,
  lambda u: u.assign(u.flip((True, True)).reshape((6,))).shape])
def test_wrong_shapes_are_refused(make: object) -> None:
  with pytest.raises(InvalidArgument): make(UOp.new_buffer("X", 6, F32).reshape((2, 3)))


def test_devices_do_not_mix() -> None:
  with pytest.raises(InvalidArgument, match="mixes devices A, B"):
    _ = (UOp.new_buffer("A", 4, F32) + UOp.new_buffer("B", 4, F32)).device
  assert UOp.const(F32, 1.0, "A").device == "A" and UOp.const(F32, 1.0).device is None
  assert (UOp.new_buffer("A", 4, F32).copy_to("B") + UOp.new_buffer("B", 4, F32)).device == "B"


def test_bounds() -> None:
  r = UOp.range(10, 0)
  def bounds(u: UOp) -> tuple: return u.vmin, u.vmax
  assert bounds(r * 4 - 3) == (-3, 33) and bounds(-r) == (-9, 0)
  assert bounds(r // 4) == (0, 2) and bounds(r % 3) == (0, 2)
  assert bounds(r < 10) == (True, True) and bounds(r < 5) == (False, True) and bounds(r.eq(11)) == (False, False)
  assert bounds((r < 5).where(r, 100)) == (0, 100) and bounds(r.maximum(4)) == (4, 9) and bounds(r & 3) == (0, 3)
  assert bounds(r * (1 << 30)) == (I32.min, I32.max)      # it may wrap
  assert bounds(UOp.variable("n", 2, 7) + 1) == (3, 8)
  m = UOp.variable("m", -4, 4)
  assert bounds(m % 3) == (-2, 2) and bounds((m - 4) % 3) == (-2, 0) and bounds((m + 4) % 3) == (0, 2)
  assert bounds((r + 1) % 12) == (1, 10) and bounds(m // 3) == (-1, 1) and bounds((r + 8) // 4) == (2, 4)


CONDITIONS = {"no": (False,), "yes": (True,), "maybe": (False, True)}


@pytest.mark.parametrize("first", CONDITIONS)
@pytest.mark.parametrize("second", CONDITIONS)
def test_bounds_of_conditions(first: str, second: str) -> None:
  """What is known of two conditions is known of both together."""
  made = {"no": lambda r: r < 0, "yes": lambda r: r < 10, "maybe": lambda r: r < 5}
  a, b = made[first](UOp.range(10, 0)), made[second](UOp.range(10, 1))
  for op, function in ((Ops.AND, min), (Ops.MUL, min), (Ops.OR, max), (Ops.ADD, max), (Ops.MAX, max)):
    values = [function(x, y) for x in CONDITIONS[first] for y in CONDITIONS[second]]
    u = a.alu(op, b)
    assert (u.vmin, u.vmax) == (min(values), max(values)), op
