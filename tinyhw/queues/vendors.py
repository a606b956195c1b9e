"""What follows a vendor's calls, and what makes them again. A vendor's tables load with its first use."""
from __future__ import annotations

from importlib import import_module
from typing import Final

from tinyhw.core.errors import DecodeError
from tinyhw.core.port import Port
from tinyhw.queues.again import Again
from tinyhw.queues.world import World

_AGAINS: Final = {"amd": ("tinyhw.queues.amd.again", "AmdAgain"), "nv": ("tinyhw.queues.nv.again", "NvAgain")}
_WORLDS: Final = {"amd": ("tinyhw.queues.amd.world", "AmdWorld"), "nv": ("tinyhw.queues.nv.world", "NvWorld"),
                   "cuda": ("tinyhw.queues.cuda.world", "CudaWorld")}
VENDORS: Final = tuple(_WORLDS)


def new_world(vendor: str) -> World:
  """What follows the calls of "amd" or "nv", or CUDA's. Raises DecodeError for another vendor."""
  if vendor not in _WORLDS: raise DecodeError(f"no vendor is called {vendor!r}", where="capture")
  module, name = _WORLDS[vendor]
  made: World = getattr(import_module(module), name)()
  return made


def new_again(vendor: str, port: Port, world: World) -> Again:
  """What makes the calls of "amd" or "nv" again on a port."""
  module, name = _AGAINS[vendor]
  made: Again = getattr(import_module(module), name)(port, world)
  return made
