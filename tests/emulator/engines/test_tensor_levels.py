"""Random tensor programs on the AMD mock at each of LLVM's levels, with and without the kernel optimizer.

Every instruction that comes out has to have a meaning, and the results have to be those of the NumPy witness.
"""
from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tests.tensor.test_random_graphs import TYPES, agree, leaf, program
from tinyhw import Device, Tensor
from tinyhw.arch.gfx1100 import GFX1100
from tinyhw.compile.render.amdgcn import AMDGCNRenderer
from tinyhw.core.kept import Kept

FEW = settings(max_examples=examples(6),
               suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture(params=[(level, noopt) for level in range(4) for noopt in "01"], ids=lambda p: f"O{p[0]}-NOOPT={p[1]}")
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
  level, noopt = request.param
  monkeypatch.setenv("MOCKGPU", "1")
  monkeypatch.setenv("NOOPT", noopt)
  opened = Device["AMD"]
  monkeypatch.setitem(vars(opened), "renderer", AMDGCNRenderer(GFX1100, level))
  monkeypatch.setattr(opened, "kernels", Kept(256))  # those compiled by the others
  yield "AMD"


@FEW
@given(st.data())
def test_a_random_program(device: str, data: st.DataObject) -> None:
  agree(program(data.draw, device))


@FEW
@given(st.data())
def test_a_random_product_and_its_sums(device: str, data: st.DataObject) -> None:
  m, k, n = (data.draw(st.integers(1, 40)) for _ in range(3))
  dtype = data.draw(st.sampled_from([t for t in TYPES if not t.is_bool]))
  agree(leaf(data.draw, dtype, (m, k), device) @ leaf(data.draw, dtype, (k, n), device))
  agree(data.draw(st.sampled_from([Tensor.sum, Tensor.max]))(leaf(data.draw, dtype, (m, 64 * k), device), 1))
