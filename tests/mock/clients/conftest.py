"""ROCm, and kernels for its programs. Tests are skipped where there is none."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.mock.clients.rocm import Rocm, found_rocm, kernels_of


@pytest.fixture
def rocm() -> Rocm:
  found = found_rocm()
  if isinstance(found, str): pytest.skip(found)
  return found


@pytest.fixture
def kernels(tmp_path: Path) -> str:
  """A code object of gfx1100."""
  return kernels_of("gfx1100", tmp_path)
