"""Asks the emulator's tests about a change that the single-instruction witness did not notice.

They run in this process, where the change is planted, from a checkout: an installed tinyhw has no tests.
"""
from __future__ import annotations

import io
import os
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parents[2] / "tests" / "emulator" / "amdgcn"
# The tests of what is around the meanings, by module; those that tell soonest come first.
TESTS: Final[dict[str, tuple[str, ...]]] = {
  "hwreg": ("test_hwreg", "test_modes"),
  "control": ("test_gfx12_rare", "test_rare", "test_bad_programs", "../engines/test_observe", "test_kernels"),
  "ends": ("test_rare", "test_gfx12_rare", "test_bad_programs"),
  "registers": ("test_rare", "test_gfx9_vector", "test_gfx12_rare", "test_kernels"),
  "relative": ("test_relative", "test_rare", "test_gfx9_vector"),
  "bind": ("test_modes", "test_rare", "test_gfx9_vector", "test_bad_programs"),
  **{name: ("test_gfx9_memory", "test_gfx12_rare", "test_rare", "test_bad_programs", "test_kernels")
     for name in ("lds", "vector", "smem", "words")},
  "access": ("test_gfx9_memory", "test_rare", "test_bad_programs", "test_kernels"),
  "buffer": ("test_buffers", "test_gfx9_buffers", "test_bad_programs"),
  "formats": ("test_buffers", "test_gfx9_buffers"), "resource": ("test_buffers", "test_gfx9_buffers"),
  "image": ("test_images",), "texture": ("test_images",), "gds": ("test_gds", "test_rare"),
  "transpose": ("test_gfx12_dynamic",), "ops": ("../test_fma", "test_meanings")}


def fails(names: Iterable[str]) -> bool:
  """Whether one of these tests fails."""
  import pytest
  os.environ["TINYHW_CACHE"] = "0"  # what changed code compiled must not be kept
  sink = io.StringIO()
  for name in names:
    with redirect_stdout(sink), redirect_stderr(sink):
      code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", str(FOLDER / f"{name}.py")])
    if code: return True
  return False
