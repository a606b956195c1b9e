"""All rungs of NVIDIA's ladder, in order."""
from __future__ import annotations

from importlib import import_module
from typing import Final

from tinyhw.bringup.nv.ladder import NV

MODULES: Final = ("device", "memory", "queue", "copies", "signals", "waves", "shapes", "faults", "processes")
for name in MODULES: import_module(f"tinyhw.bringup.nv.{name}")

__all__ = ["NV"]
