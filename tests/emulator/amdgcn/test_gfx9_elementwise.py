"""Every scalar operation of LLVM IR on every type, for gfx942 and for the host."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.emulator.amdgcn.test_elementwise import (  # noqa: F401  (collected here, and run under `gfx942`)
  test_bfloat,
  test_casts,
  test_f16_fma_is_rounded_once,
  test_f32_fma_where_two_roundings_differ,
  test_f64_to_f16_is_rounded_once,
  test_floats,
  test_integers,
  test_transcendentals_within_their_error,
)
from tests.emulator.gpu import generation


@pytest.fixture(autouse=True)
def gfx942() -> Iterator[None]:
  """What names no GPU means gfx942."""
  with generation("gfx942"): yield
