"""Recording what this process submits: `RECORD=run.thq`, `recording("run.thq")`.

    with recording("run.thq"):
      (Tensor([1, 2, 3]) + 1).numpy()
"""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tinyhw.devices.captured import RECORDING
from tinyhw.devices.registry import Device


@contextmanager
def recording(path: str | os.PathLike[str], *, wait: bool = True) -> Iterator[None]:
  """A block whose submissions are recorded to a file, on devices that are opened inside. At its end all that was
  submitted is waited for, unless `wait` is False: it may hang."""
  with Device.aside(), RECORDING.aside(path):
    try: yield
    finally:
      if wait: Device.synchronize()
