"""What the renderers for NVIDIA's GPUs have in common: the limits of a kernel, matrix units, and PTX made loadable."""
from __future__ import annotations

import re
from typing import ClassVar, Final, Protocol

from tinyhw.compile.render.base import Renderer
from tinyhw.compile.units import units_of_nvidia
from tinyhw.core.errors import InvalidArgument

STATIC_SHARED: Final = 48 * 1024  # bytes of shared memory that a kernel may declare (PTX ISA 8.5, .shared)


class Assembler(Protocol):
  """Makes PTX what a driver loads; `key` tells its programs from those of another."""
  @property
  def key(self) -> str: ...
  def __call__(self, ptx: bytes, /) -> bytes: ...


def check_processor(name: str) -> None:
  """Refuse what is no compute capability from 8.0 on."""
  if not re.fullmatch(r"(?a)sm_\d+a?", name) or int(re.sub(r"(?a)\D", "", name)) < 80:
    raise InvalidArgument(f"no GPU is called {name!r} here", hint="sm_80 or newer, such as sm_90")


class NVIDIARenderer(Renderer):
  """A renderer for one compute capability. With an `assembler` its programs are what that makes of the PTX."""
  kind: ClassVar[str]
  threads = local = True
  tile, broad_tile, square = 4, 8, True
  fused = True
  vector_bytes = 16
  max_block = 1024
  max_local = STATIC_SHARED
  stages = True

  def __init__(self, capability: str = "sm_80", assembler: Assembler | None = None) -> None:
    check_processor(capability)
    self.capability, self.assembler = capability, assembler
    self.target = f"{self.kind}:{capability}"
    self._key = self.target if assembler is None else f"{self.target} {assembler.key}"
    self.units = units_of_nvidia(capability)

  @property
  def key(self) -> str: return self._key

  def loadable(self, ptx: bytes) -> bytes:
    """The program of a PTX text."""
    return ptx if self.assembler is None else self.assembler(ptx)
