"""The option STAGE: values beside NumPy's on the emulator of PTX, no races, and what does not fit."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw
from tests.strength import examples
from tinyhw import Tensor, dtypes
from tinyhw.arch import decoded
from tinyhw.compile import ProgramSpec, compile_kernel, schedule
from tinyhw.compile.compiler import optimize
from tinyhw.compile.program import Opt, OptKind
from tinyhw.compile.render.amdgcn import AMDGCNRenderer
from tinyhw.compile.render.nvptx import NVPTXRenderer
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.dtype import DType
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

NV = NVPTXRenderer("sm_90")
NUMPY = {dtypes.float16: np.float16, dtypes.bfloat16: ml_dtypes.bfloat16, dtypes.int8: np.int8,
         dtypes.float8_e4m3fn: ml_dtypes.float8_e4m3fn}
TC, UPCAST, LOCAL, UNROLL, STAGE = OptKind.TC, OptKind.UPCAST, OptKind.LOCAL, OptKind.UNROLL, OptKind.STAGE


def kernel(value: Tensor) -> UOp:
  """The kernel of a value whose inputs have memory."""
  (found,) = [item.ast for item in schedule([value.uop]) if item.ast.op is not Ops.COPY]
  return found


def run(program: ProgramSpec, arrays: list[np.ndarray[Any, Any]], check: str | bool = False) -> list[Any]:
  return list(tinyhw.launch(program.binary, program.name, program.grid, program.block,
                            [a.view(np.uint8 if a.itemsize == 1 else np.uint16) if a.dtype.kind == "V" else a
                             for a in arrays], "EMU", check=check))


def whole(kind: DType, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
  """Numbers whose sums of products are exact in every order."""
  return rng.integers(-3, 4, shape).astype(NUMPY[kind])


def wide(kind: DType) -> DType: return dtypes.int32 if kind is dtypes.int8 else dtypes.float32


def product(kind: DType, m: int, n: int, k: int) -> UOp:
  return kernel(Tensor.empty(m, k, dtype=kind).matmul(Tensor.empty(k, n, dtype=kind), dtype=wide(kind)))


@settings(max_examples=examples(6), deadline=None)
@given(st.sampled_from(sorted(NUMPY, key=lambda d: d.name)), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]),
       st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.integers(1, 3), st.integers(0, 99))
def test_tiles_of_any_form(kind: DType, rows: int, columns: int, tall: int, broad: int, deep: int, loops: int,
                           seed: int) -> None:
  """Blocks a wave has, waves a workgroup has, steps at once, and how often they come."""
  rng, steps = np.random.default_rng(seed), 32 if kind.itemsize == 1 else 16
  m, n = 16 * rows * tall * int(rng.integers(1, 3)), 8 * columns * broad * int(rng.integers(1, 3))
  k = steps * deep * loops
  wanted = [Opt(TC, 2), Opt(UPCAST, 0, rows), Opt(UPCAST, 1, columns), Opt(LOCAL, 0, tall), Opt(LOCAL, 1, broad),
            Opt(UNROLL, 2, deep), Opt(STAGE, 2)]
  opts = [o for o in wanted if o.amount != 1]
  try: program = compile_kernel(product(kind, m, n, k), NV, opts)
  except InvalidArgument as refused:
    assert "cannot share" in str(refused)  # small tiles, many waves
    return
  a, b = whole(kind, (m, k), rng), whole(kind, (k, n), rng)
  out = run(program, [np.zeros((m, n), np.int32 if kind is dtypes.int8 else np.float32), a, b])[0]
  assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


WHOLE = (Opt(TC, 2), Opt(UPCAST, 0, 2), Opt(UPCAST, 1, 4), Opt(LOCAL, 0, 2), Opt(LOCAL, 1, 2), Opt(UNROLL, 2, 2),
         Opt(STAGE, 2))


def test_no_hazards_and_what_it_moves() -> None:
  """Neither races between tiles that take turns, nor words that nobody has written; a tile is read once."""
  program = compile_kernel(product(dtypes.float16, 64, 64, 96), NV, WHOLE)
  rng = np.random.default_rng(1)
  a, b = whole(dtypes.float16, (64, 96), rng), whole(dtypes.float16, (96, 64), rng)
  assert (run(program, [np.zeros((64, 64), np.float32), a, b], check=True)[0] == a.astype(np.float32) @ b).all()
  text = program.binary.decode()
  loads = text.count("ld.global.nc.v4.b32") * program.block[0] * program.block[1] * program.block[2] * 16
  assert loads == 2 * 64 * 32 * 2 and text.count("bar.sync") + text.count("barrier.sync") == 1


@pytest.mark.parametrize("name, a, b, by", [
  ("a batch", (2, 64, 64), (2, 64, 64), lambda mm, a, b: mm(a, b)),
  ("a transposed factor", (64, 128), (64, 64), lambda mm, a, b: mm(a.T, b)),
  ("the other one", (64, 64), (128, 64), lambda mm, a, b: mm(a, b.T)),
  ("what follows, element by element", (64, 64), (64, 64), lambda mm, a, b: abs(mm(a, b)) + 1),
  ("factors that are computed", (64, 64), (64, 64), lambda mm, a, b: mm(a + 1, b * 2)),
])
def test_around_a_product(name: str, a: tuple[int, ...], b: tuple[int, ...], by: Callable[..., Any]) -> None:
  def ours(x: Tensor, y: Tensor) -> Tensor: return x.matmul(y, dtype=dtypes.float32)
  ast = kernel(by(ours, Tensor.empty(*a, dtype=dtypes.float16), Tensor.empty(*b, dtype=dtypes.float16)))
  steps = max(int(r.arg.axis) for r in optimize(ast, NV, ()).parts)
  opts = (Opt(TC, steps), Opt(UPCAST, steps - 2, 2), Opt(UPCAST, steps - 1, 4), Opt(LOCAL, steps - 2, 2),
          Opt(UNROLL, steps, 2), Opt(STAGE, steps))
  rng = np.random.default_rng(3)
  x, y = whole(dtypes.float16, a, rng), whole(dtypes.float16, b, rng)
  wanted = by(np.matmul, x.astype(np.float32), y.astype(np.float32))
  assert np.array_equal(run(compile_kernel(ast, NV, opts), [np.zeros(wanted.shape, np.float32), x, y])[0], wanted)


def test_the_heuristic_stages_what_fills_a_gpu() -> None:
  def kinds(m: int, n: int, k: int, renderer: Any = NV) -> list[OptKind]:
    return [o.kind for o in optimize(product(dtypes.bfloat16, m, n, k), renderer).opts]
  assert kinds(8192, 8192, 8192) == [TC, UPCAST, LOCAL, UPCAST, LOCAL, UNROLL, STAGE]
  assert kinds(128 * 128, 128, 64)[-1] is STAGE and STAGE not in kinds(127 * 128, 128, 64)
  assert STAGE not in kinds(8192 + 16, 8192, 8192) and STAGE not in kinds(8192, 8192, 8192 + 16)
  assert STAGE not in kinds(8192, 8192, 8192, AMDGCNRenderer(decoded("gfx1100")))


@pytest.mark.parametrize("opts, why", [
  ((Opt(STAGE, 2),), "no matrix unit"),
  ((Opt(TC, 2), Opt(STAGE, 0)), "not the axis that the unit multiplies along"),
  ((Opt(TC, 2), Opt(STAGE, 7)), "not the axis that the unit multiplies along"),
  ((*WHOLE, Opt(STAGE, 2)), "tiles are there already"),
  ((*WHOLE, Opt(UPCAST, 0, 2)), "operands are packed already"),
  ((Opt(TC, 2), Opt(LOCAL, 0, 8), Opt(STAGE, 2)), "256 work-items cannot share 8 lines of 16 numbers"),
  ((Opt(TC, 2), Opt(UPCAST, 0, 4), Opt(LOCAL, 0, 4), Opt(UNROLL, 2, 8), Opt(STAGE, 2)), "bytes of local memory"),
])
def test_what_does_not_fit(opts: tuple[Opt, ...], why: str) -> None:
  with pytest.raises(InvalidArgument, match=why): optimize(product(dtypes.float16, 512, 512, 512), NV, opts)
