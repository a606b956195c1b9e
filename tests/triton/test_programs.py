"""Triton's users' programs (programs.py) on each GPU, each in a process of its own; without Triton they are skipped."""
from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INSTALLED = all(importlib.util.find_spec(name) for name in ("triton", "torch"))
TRIED = "Triton 3.9.0 with PyTorch 2.13.0"
needs_triton = pytest.mark.skipif(not INSTALLED, reason=f"needs triton and torch; {TRIED} was tried")


def run(command: list[str], **variables: str) -> str:
  """What a program prints. Its failure is the test's."""
  environment = {k: v for k, v in os.environ.items() if k not in ("MOCKGPU", "TINYHW_TRITON", "EMU_CHECK", "DEV")}
  done = subprocess.run([sys.executable, *command], cwd=ROOT, env={**environment, **variables}, capture_output=True,
                        text=True)
  assert not done.returncode, done.stdout[-8000:] + done.stderr[-4000:]
  return done.stdout


def test_the_page_says_what_was_tried() -> None: assert TRIED in (ROOT / "docs" / "triton.md").read_text()


@needs_triton
@pytest.mark.parametrize("gpu", ["gfx1100", "gfx1201", "gfx942"])
def test_programs_on_the_emulator(gpu: str) -> None:
  run(["-m", "pytest", "-q", str(HERE / "programs.py")], TINYHW_TRITON=gpu)


@needs_triton
def test_programs_on_a_mock_card() -> None:
  chosen = "in_place or view or strides or share or scalars or tuples"
  run(["-m", "pytest", "-q", str(HERE / "programs.py"), "-k", chosen], MOCKGPU="gfx1100")


@needs_triton
@pytest.mark.parametrize("gpu", ["gfx1100", "gfx942"])
def test_the_example(gpu: str) -> None:
  assert "right" in run([str(ROOT / "examples/triton_softmax.py")], TINYHW_TRITON=gpu)


@needs_triton
def test_without_the_variable_tinyhw_is_no_backend() -> None:
  text = "import triton.backends as b; print(b.backends['tinyhw'].driver.is_active())"
  assert run(["-c", text], TINYHW_TRITON="0").split() == ["False"]
