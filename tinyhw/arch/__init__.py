"""GPU generations as data: wave sizes, limits, which instruction, packet and register tables."""
from __future__ import annotations

import os
from collections.abc import Iterable

from tinyhw.arch.base import Arch
from tinyhw.arch.gfx90a import GFX90A
from tinyhw.arch.gfx942 import GFX942
from tinyhw.arch.gfx950 import GFX950
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
from tinyhw.core.errors import Error, InvalidArgument, Unsupported
from tinyhw.core.nearest import offered

__all__ = ["ARCHES", "DECODED", "Arch", "arch", "decoded", "generation", "lacking"]

# Those whose instructions are decoded and assembled; a device needs packets and registers too.
DECODED: dict[str, Arch] = {a.name: a for a in (
  GFX1100, GFX1101, GFX1102, GFX1103, GFX1150, GFX1151, GFX1152, GFX1153, GFX1201, GFX1200, GFX90A, GFX942,
  GFX950)}
ARCHES: dict[str, Arch] = {a.name: a for a in (
  GFX1100, GFX1101, GFX1102, GFX1103, GFX1150, GFX1151, GFX1201, GFX1200, GFX90A, GFX942, GFX950)}


def arch(name: str) -> Arch:
  """The generation with this name. Raises what `lacking` says."""
  try: return ARCHES[name]
  except KeyError: raise lacking(name, ARCHES) from None


def decoded(name: str) -> Arch:
  """The generation with this name among those with an instruction table. Raises what `lacking` says."""
  try: return DECODED[name]
  except KeyError: raise lacking(name, DECODED) from None


def generation(name: str) -> Arch:
  """The generation that code for `name` runs on: itself, or for a generic processor the first one that it covers.
  Raises what `lacking` says."""
  from tinyhw.wire.codeobject import GENERIC  # what PTX runs by needs no tables of AMD's objects
  covered = (DECODED[n] for n in GENERIC.get(name, ()) if n in DECODED)
  return next(covered, None) or decoded(name)


def lacking(name: str, known: Iterable[str], what: str = "GPU", where: str | None = None) -> Error:
  """The error for a name that is none of the `known` generations: Unsupported, with the nearest one, for a processor
  that LLVM knows; InvalidArgument for any other name."""
  from tinyhw.autogen import elf_amdgpu  # as above
  names, bare = list(known), name.strip().lower().partition(":")[0]
  if bare not in elf_amdgpu.MACHINES.values():
    return InvalidArgument(f"unknown {what} {name!r}", where=where, hint=offered(name, names))
  nearest = max(names, key=lambda other: len(os.path.commonprefix([other, bare])), default="")
  there = f"{nearest} is its nearest; " if nearest and nearest[:4] == bare[:4] else ""
  if bare in DECODED: there = "EMU runs its code objects, without driver and queues; "
  return Unsupported(what, bare, where=where, hint=f"{there}there are {', '.join(names)}")
