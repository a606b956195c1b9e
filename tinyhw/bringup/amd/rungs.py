"""All rungs of AMD's ladder, in order."""
from __future__ import annotations

from importlib import import_module
from typing import Final

from tinyhw.bringup.amd.ladder import AMD

MODULES: Final = ("device", "memory", "queue", "copies", "signals", "waves", "caches", "shapes", "faults", "processes")
for name in MODULES: import_module(f"tinyhw.bringup.amd.{name}")

__all__ = ["AMD"]
