"""Types that a target lacks: the rules that make them of others, held to `ir.semantics` by the UOp emulator."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compile.families import (
  Array,
  buffer,
  check_arithmetic,
  check_casts,
  check_constants,
  check_large_integers,
  check_rounded_products,
  same,
)
from tests.compile.test_render_amdgcn import linear
from tests.compile.witness import realized
from tests.strength import examples, seed
from tinyhw import Tensor
from tinyhw.compile import ProgramSpec
from tinyhw.compile.legalize import from_bits, to_bits, without_missing_types
from tinyhw.compile.pairs import COMPARISONS, RULES, constant, from_float, to_float, without_wide_integers
from tinyhw.compile.render.base import block_size, grid_size
from tinyhw.compile.render.uops import UOpRenderer
from tinyhw.core.errors import Unsupported
from tinyhw.emulator.uops import Executable
from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.symbolic import simplify
from tinyhw.ir.uop import UOp

REGISTERS = (dtypes.bool, dtypes.int32, dtypes.uint32, dtypes.float32)
SMALL = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.float16)
WIDE = (dtypes.int64, dtypes.uint64)


class Bare(UOpRenderer):
  """Of 32 bits, as a shading language has it."""
  target = "bare"

  def supports(self, dtype: DType) -> bool: return dtype in REGISTERS
  def holds(self, dtype: DType) -> bool: return dtype in (*REGISTERS[1:], dtypes.uint8, dtypes.uint16)


BARE = Bare()


def bare(sink: UOp) -> UOp: return without_wide_integers(without_missing_types(sink, BARE), "bare")


def run(uops: Sequence[UOp], arrays: Sequence[Array]) -> None:
  made = linear(*bare(UOp.sink(*(u for u in uops if u.op is Ops.STORE))).src)
  BARE.check("k", made)
  execute(made, arrays)


def execute(uops: Sequence[UOp], arrays: Sequence[Array]) -> None:
  Executable(uops, "k")([a.reshape(-1).view(np.uint8) for a in arrays], (), grid_size(uops), block_size(uops))


@pytest.mark.parametrize("dtype", [*SMALL, *WIDE], ids=lambda d: d.name)
def test_arithmetic(dtype: DType) -> None: check_arithmetic(dtype, run, threads=True)


@pytest.mark.parametrize("dtype", [*SMALL, *WIDE, *REGISTERS], ids=lambda d: d.name)
def test_conversions(dtype: DType) -> None: check_casts(dtype, run, threads=True, without=frozenset({dtypes.float64}))


@pytest.mark.parametrize("dtype", [*SMALL, *WIDE, dtypes.bool], ids=lambda d: d.name)
def test_constants(dtype: DType) -> None: check_constants(dtype, run, threads=True)


def test_rounded_products() -> None: check_rounded_products(run, threads=True)


def test_large_integers() -> None: check_large_integers(run, threads=True)


def folded(*words: UOp) -> int:
  """The number whose words constant folding finds."""
  found = [simplify(w) for w in words]
  assert all(w.op is Ops.CONST for w in found)
  return sum(int(w.arg) << 32 * i for i, w in enumerate(found))


numbers = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2, 2**16, 2**31, 2**32 - 1, 2**63, 2**64 - 1]),
                    st.builds(lambda bits, at: bits << at & 2**64 - 1, st.integers(0, 2**18), st.integers(0, 63)))


@given(st.sampled_from(sorted(RULES, key=lambda op: op.name)), st.sampled_from(WIDE), numbers, numbers, numbers)
@settings(max_examples=examples(150), deadline=None)
def test_each_rule_means_what_semantics_says(op: Ops, dtype: DType, a: int, b: int, c: int) -> None:
  count = 1 if op in GroupOp.UNARY else 3 if op is Ops.MULACC else 2
  given_ = (a, b, c)[:count]
  wanted = semantics.alu(op, dtype, *(semantics.wrap(v, dtype) for v in given_))
  assert semantics.wrap(folded(*RULES[op](dtype.is_signed, tuple(map(constant, given_)))), dtype) == wanted


@given(st.sampled_from(WIDE), numbers, numbers)
@settings(max_examples=examples(100), deadline=None)
def test_comparisons_and_floats_of_pairs(dtype: DType, a: int, b: int) -> None:
  x, y = (semantics.wrap(v, dtype) for v in (a, b))
  for op, rule in COMPARISONS.items():
    found = simplify(rule(dtype.is_signed, constant(a), constant(b)))
    assert found.op is Ops.CONST and found.arg == semantics.alu(op, dtype, x, y)
  near = semantics.cast(x, dtype, dtypes.float32)
  assert simplify(to_float(constant(a), dtype.is_signed)).arg == near
  back = folded(*from_float(UOp.const(dtypes.float32, near), dtype.is_signed))
  assert semantics.wrap(back, dtype) == semantics.cast(near, dtypes.float32, dtype)


@given(st.sampled_from([dtypes.float16, dtypes.bfloat16, *dtypes.fp8s]),
       st.floats(width=32))
@settings(max_examples=examples(200), deadline=None)
def test_the_memory_of_small_floats(dtype: DType, x: float) -> None:
  near, found = semantics.canonical(x, dtype), simplify(to_bits(UOp.const(dtypes.float32, x), dtype))
  assert found.op is Ops.CONST
  if near == near: assert found.arg == semantics.to_bits(near, dtype)
  back = simplify(from_bits(found, dtype)).arg
  assert same(back, near)


def test_what_fits_32_bits_is_computed_there() -> None:
  i = UOp.special("gidx0", 100).cast(dtypes.int64)
  small = (i * 1000 + 7) // 3 % 50
  uops = linear(*bare(UOp.sink(buffer(0, dtypes.int64).index(UOp.special("gidx0", 100)).store(small))).src)
  words = [u for u in uops if u.op in (Ops.IDIV, Ops.MOD)]
  assert [u.dtype for u in words] == [dtypes.int32] * 2 and len(uops) < 30
  out = np.zeros(256, np.int64)
  execute(uops, [out])
  assert (out[:100] == (np.arange(100) * 1000 + 7) // 3 % 50).all()


def launch(program: ProgramSpec, arrays: Sequence[Array]) -> None:
  Executable(program.uops, program.name)([a.reshape(-1).view(np.uint8) for a in arrays], (), program.grid,
                                         program.block)


RNG = np.random.default_rng(seed(4))
INTS = RNG.integers(-2**62, 2**62, (6, 16))
FLOATS = RNG.normal(size=(6, 16)).astype(np.float32)
CASES: dict[str, tuple[Callable[[], Tensor], Array]] = {
  "sum of int64": (lambda: Tensor(INTS).sum(0), INTS.sum(0)),
  "max of int64": (lambda: Tensor(INTS).max(1), INTS.max(1)),
  "cumsum of int64": (lambda: Tensor(INTS).cumsum(1), INTS.cumsum(1)),
  "prod of uint64": (lambda: Tensor(INTS.view(np.uint64)).prod(1), INTS.view(np.uint64).prod(1)),
  "sorted int64": (lambda: Tensor(INTS).sort(1)[0], np.sort(INTS, 1)),
  "argsort": (lambda: Tensor(FLOATS).argsort(1), np.argsort(FLOATS, 1, kind="stable")),
  "rows by int64": (lambda: Tensor(FLOATS)[Tensor(np.array([5, -6, 2]))], FLOATS[[5, -6, 2]]),
  "int8": (lambda: Tensor(INTS.astype(np.int8)) * Tensor(INTS.astype(np.int8)).flip(0),
           INTS.astype(np.int8) * INTS.astype(np.int8)[::-1]),
  "bools": (lambda: Tensor(FLOATS) > Tensor(FLOATS).flip(0), FLOATS > FLOATS[::-1]),
  "any": (lambda: (Tensor(FLOATS) > 1).any(1), (FLOATS > 1).any(1)),
  "halves": (lambda: Tensor(FLOATS.astype(np.float16)) * 3 + 1,
             (FLOATS.astype(np.float16) * np.float16(3) + np.float16(1))),
}


@pytest.mark.parametrize("case", CASES)
def test_kernels_of_tensors(case: str) -> None:
  made, wanted = CASES[case]
  x = made()
  assert (realized(x, BARE, launch) == wanted).all()


def test_small_floats_of_tensors() -> None:
  for dtype in (dtypes.bfloat16, dtypes.float8_e4m3fn, dtypes.float8_e5m2, dtypes.float16):
    x = (Tensor(FLOATS).cast(dtype) @ Tensor(FLOATS.T.copy()).cast(dtype)).cast(dtypes.float32)
    wanted = (Tensor(FLOATS).cast(dtype) @ Tensor(FLOATS.T.copy()).cast(dtype)).cast(dtypes.float32).numpy()
    np.testing.assert_allclose(realized(x, BARE, launch), wanted, rtol=0.02 if dtype is dtypes.float16 else 0.3)


def test_what_pairs_cannot_be_is_refused() -> None:
  at = UOp.const(dtypes.int32, 0)
  double = buffer(0, dtypes.float64).index(at)
  with pytest.raises(Unsupported, match="CAST of 64 bits to float64"):
    bare(UOp.sink(double.store(buffer(1, dtypes.int64).index(at).load().cast(dtypes.float64))))
  with pytest.raises(Unsupported, match="BITCAST of float64"):
    bare(UOp.sink(buffer(1, dtypes.int64).index(at).store(double.load().bitcast(dtypes.int64))))
  with pytest.raises(Unsupported, match="1,073,741,825"):
    bare(UOp.sink(buffer(1, dtypes.int64, 2**30 + 1).index(at).store(UOp.const(dtypes.int64, 1))))
  with pytest.raises(Unsupported, match=r"CAST of float64 to 64 bits"):
    bare(UOp.sink(buffer(1, dtypes.int64).index(at).store(double.load().cast(dtypes.int64))))
