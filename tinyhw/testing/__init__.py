"""Tests of GPU programs without a GPU: pytest's plugin (`--mockgpu`, the marker and the fixture `mockgpu`)."""
from __future__ import annotations

import os
from typing import Final

SET_DEV: Final = "TINYHW_TESTING_DEV"  # beside DEV: what the plugin has set it to, here or in a process above


def device_chosen() -> bool:
  """Whether the user has set DEV, and not the plugin of this process, of xdist's controller, or of any above."""
  return os.environ.get("DEV", "") not in ("", os.environ.get(SET_DEV))
