"""GPU generations as data: wave sizes, limits, which instruction, packet and register tables."""
from __future__ import annotations

from tinyhw.arch.base import Arch
from tinyhw.arch.gfx1100 import GFX1100, GFX1101, GFX1102
from tinyhw.core.errors import InvalidArgument

__all__ = ["ARCHES", "Arch", "arch"]

ARCHES: dict[str, Arch] = {a.name: a for a in (GFX1100, GFX1101, GFX1102)}


def arch(name: str) -> Arch:
  """The generation with this name. Raises InvalidArgument that lists the known ones."""
  try: return ARCHES[name]
  except KeyError: raise InvalidArgument(f"unknown GPU {name!r}", hint=f"known: {', '.join(ARCHES)}") from None
