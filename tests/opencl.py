"""Whether this machine has an OpenCL driver, asked without the code that is tested."""
from __future__ import annotations

import os
from ctypes.util import find_library
from functools import cache
from pathlib import Path

import pytest

VENDORS = Path(os.environ.get("OCL_ICD_VENDORS") or "/etc/OpenCL/vendors")


@cache
def _library() -> str | None: return find_library("OpenCL")  # each time it starts three processes


def need_driver() -> None:
  """Skip the test where there is no loader or no driver."""
  if _library() is None: pytest.skip("there is no OpenCL library")
  if not VENDORS.is_file() and not list(VENDORS.glob("*.icd")): pytest.skip("there is no OpenCL driver")
