"""What an import costs, and that the public handles are there."""
from __future__ import annotations

import subprocess
import sys

import tinyhw


def test_the_handles_are_there() -> None:
  for name in ("Tensor", "dtypes", "Device", "Variable", "TinyJit", "nn", "launch"):
    assert name in dir(tinyhw) and getattr(tinyhw, name) is not None


def test_import_loads_no_heavy_module() -> None:
  code = "import sys, tinyhw; print(sorted({'numpy', 'llvmlite', 'rich', 'tinyhw.tensor.tensor'} & set(sys.modules)))"
  out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
  assert out.strip() == "[]"
