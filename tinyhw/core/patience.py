"""How long the host waits for an emulated dispatch, in its own time."""
from __future__ import annotations

import time

from tinyhw.core.errors import Interrupted


class Patience:
  """Called now and then while a dispatch runs: raises Interrupted when `seconds` since its making are over."""

  def __init__(self, seconds: float) -> None:
    self.seconds = seconds
    self._end = time.monotonic() + seconds

  def __call__(self) -> None:
    if time.monotonic() >= self._end: raise Interrupted(f"ran for more than {self.seconds:.3g} s")
