"""Which vendor a device file belongs to, and what follows its calls. A vendor's tables load with its first use."""
from __future__ import annotations

from importlib import import_module
from typing import Final

from tinyhw.core.errors import DecodeError
from tinyhw.queues.world import World

_WORLDS: Final = {"amd": ("tinyhw.queues.amd.world", "AmdWorld"), "nv": ("tinyhw.queues.nv.world", "NvWorld")}
VENDORS: Final = tuple(_WORLDS)


def new_world(vendor: str) -> World:
  """What follows the calls of "amd" or "nv". Raises DecodeError for another vendor."""
  if vendor not in _WORLDS: raise DecodeError(f"no vendor is called {vendor!r}", where="capture")
  module, name = _WORLDS[vendor]
  made: World = getattr(import_module(module), name)()
  return made
