"""GPU generations as data: wave sizes, limits, which instruction, packet and register tables."""
from __future__ import annotations

from tinyhw.arch.base import Arch
from tinyhw.arch.gfx942 import GFX942
from tinyhw.arch.gfx1100 import GFX1100
from tinyhw.arch.gfx1101 import GFX1101
from tinyhw.arch.gfx1102 import GFX1102
from tinyhw.arch.gfx1103 import GFX1103
from tinyhw.arch.gfx1150 import GFX1150
from tinyhw.arch.gfx1151 import GFX1151
from tinyhw.arch.gfx1152 import GFX1152
from tinyhw.arch.gfx1153 import GFX1153
from tinyhw.arch.gfx1200 import GFX1200
from tinyhw.arch.gfx1201 import GFX1201
from tinyhw.core.errors import InvalidArgument

__all__ = ["ARCHES", "DECODED", "Arch", "arch", "decoded"]

# Those whose instructions are decoded and assembled; a device needs packets and registers too.
DECODED: dict[str, Arch] = {a.name: a for a in (
  GFX1100, GFX1101, GFX1102, GFX1103, GFX1150, GFX1151, GFX1152, GFX1153, GFX1201, GFX1200, GFX942)}
ARCHES: dict[str, Arch] = {a.name: a for a in (GFX1100, GFX1101, GFX1102, GFX1201, GFX1200, GFX942)}


def arch(name: str) -> Arch:
  """The generation with this name. Raises InvalidArgument that lists the known ones."""
  try: return ARCHES[name]
  except KeyError: raise InvalidArgument(f"unknown GPU {name!r}", hint=f"known: {', '.join(ARCHES)}") from None


def decoded(name: str) -> Arch:
  """The generation with this name among those with an instruction table. Raises InvalidArgument that lists them."""
  try: return DECODED[name]
  except KeyError: raise InvalidArgument(f"unknown GPU {name!r}", hint=f"known: {', '.join(DECODED)}") from None
