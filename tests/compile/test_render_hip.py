"""HIP C++ by every clang of this machine that has a linker, executed on the emulator."""
from __future__ import annotations

import shutil

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
from tests.compile.test_render_generations import turn
from tests.strength import THOROUGH, seeds
from tinyhw.arch import DECODED
from tinyhw.compile.render.c import found
from tinyhw.compile.render.hip import HIPRenderer
from tinyhw.core.errors import DeviceError, MissingTool
from tinyhw.ir.dtype import DType, dtypes

CLANGS = [c for c in found("clang")
          if shutil.which(c.replace("clang", "ld.lld")) and int(c.partition("-")[2] or 99) >= 19]
TARGETS = ("gfx1100", "gfx1201", "gfx942")
SCALARS = [d for d in dtypes.all() if d.bits_type is None]
clangs = pytest.mark.parametrize("clang", [pytest.param(c, id=c) for c in CLANGS] or
                                 [pytest.param("", marks=pytest.mark.skip(reason="there is no clang 19 with lld"))])
targets = pytest.mark.parametrize("target", TARGETS)


def chosen(k: int) -> list[tuple[str, str]]:
  """(clang, target) of case k: each in turn; all in a thorough run."""
  every = [(c, t) for t in TARGETS for c in CLANGS]
  return every if THOROUGH or not every else [every[k % len(every)]]


@pytest.mark.skipif(not CLANGS, reason="there is no clang 19 with lld")
@pytest.mark.parametrize(("clang", "target", "dtype"), [(*p, d) for k, d in enumerate(SCALARS) for p in chosen(k)],
                         ids=lambda v: v.name if isinstance(v, DType) else v)
def test_arithmetic_and_conversions(clang: str, target: str, dtype: DType) -> None:
  execute = runner(HIPRenderer(DECODED[target], clang))
  check_arithmetic(dtype, execute, threads=True)
  check_casts(dtype, execute, threads=True)
  check_constants(dtype, execute, threads=True)


@clangs
@targets
def test_rounded_products(clang: str, target: str) -> None:
  check_rounded_products(runner(HIPRenderer(DECODED[target], clang)), threads=True)
  check_large_integers(runner(HIPRenderer(DECODED[target], clang)), threads=True)


@clangs
@targets
def test_workgroups_with_local_memory(clang: str, target: str) -> None:
  for dtype, count in ((dtypes.float32, 4), (dtypes.float16, 8), (dtypes.bool, 4), (dtypes.int8, 3)):
    given = np.random.default_rng(1).integers(0, 2, (2, 64, count)).astype(dtype.numpy)
    out = np.zeros_like(given)
    run(HIPRenderer(DECODED[target], clang), turn(dtype, count), [out, given])
    assert (out == given[:, ::-1]).all()


@clangs
@targets
@pytest.mark.parametrize("seed", seeds(range(300, 301)))
def test_random_programs(clang: str, target: str, seed: int) -> None:
  from tests.compile.test_render_random import agree
  agree(seed, True, runner(HIPRenderer(DECODED[target], clang)))


@clangs
def test_what_clang_refuses_is_told(clang: str) -> None:
  with pytest.raises(DeviceError, match="kernel k: .*refuses the source: .*error"):
    HIPRenderer(clang=clang).compile("nonsense!", "k")


def test_a_missing_clang_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("PATH", "/nowhere")
  with pytest.raises(MissingTool, match="HIP: there is no clang"): HIPRenderer().compile("", "k")
