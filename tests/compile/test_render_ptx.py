"""PTX that is written from the linear program: what it computes, on the emulator of PTX, which knows no UOps; that
NVIDIA's assembler takes it; and that it is what LLVM makes of the same program."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.compile.families import (
  check_arithmetic,
  check_casts,
  check_constants,
  check_large_integers,
  check_rounded_products,
)
from tests.compile.gpu import run, runner
from tests.compile.test_render_cuda import SCALARS, all_of, check, types, workgroups
from tests.compile.test_render_differential import COUNT, OUTPUTS, Program, on_emulator
from tests.compile.test_render_generations import turn
from tests.strength import seeds
from tinyhw.compile.render.nvptx import NVPTXRenderer
from tinyhw.compile.render.ptx import PTXRenderer
from tinyhw.ir.dtype import DType

PTX, LLVM = PTXRenderer("sm_80"), NVPTXRenderer("sm_80")


@types
def test_arithmetic(dtype: DType) -> None: check_arithmetic(dtype, runner(PTX), threads=True)


@types
def test_conversions(dtype: DType) -> None: check_casts(dtype, runner(PTX), threads=True)


@types
def test_constants(dtype: DType) -> None: check_constants(dtype, runner(PTX), threads=True)


def test_rounded_products_and_large_integers() -> None:
  check_rounded_products(runner(PTX), threads=True)
  check_large_integers(runner(PTX), threads=True)


@types
def test_the_assembler_takes_all_arithmetic(dtype: DType, tmp_path: Path) -> None:
  check(PTX, all_of(dtype), "sm_80", tmp_path)


def test_the_assembler_takes_workgroups_and_random_programs(tmp_path: Path) -> None:
  workgroups(PTX, "sm_80", tmp_path)
  for seed in seeds(range(420, 424)): check(PTXRenderer("sm_90"), Program(seed).for_threads(), "sm_90", tmp_path)


@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 16])
def test_vectors_turned_in_shared_memory(dtype: DType, count: int) -> None:
  if count * dtype.itemsize > 16 and count != 16: pytest.skip("no such access is made")
  given = np.random.default_rng(1).integers(0, 2, (2, 64, count)).astype(dtype.numpy)
  out = np.zeros_like(given)
  run(PTX, turn(dtype, count), [out, given])
  assert (out == given[:, ::-1]).all()


@pytest.mark.parametrize("seed", seeds(range(30)))
def test_random_programs_agree_with_the_uop_emulator_and_llvm(seed: int) -> None:
  uops, data, found = Program(seed).for_threads(), Program(seed).data(), []
  for how in (on_emulator, runner(PTX), runner(LLVM)):
    found.append([np.zeros(COUNT, d.numpy) for d in OUTPUTS])
    how(uops, [*found[-1], *(d.copy() for d in data)])
  for other in found[1:]:
    for a, b in zip(found[0], other): np.testing.assert_array_equal(a, b)
