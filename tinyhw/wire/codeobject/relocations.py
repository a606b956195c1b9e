"""Relocations of code objects: what is applied at once, and what waits for the address of loading."""
from __future__ import annotations

from dataclasses import dataclass

from tinyhw.autogen.elf_amdgpu import R_AMDGPU
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.wire.codeobject.identity import WHERE
from tinyhw.wire.elf import Relocation

RELATIVE = frozenset({R_AMDGPU.REL32, R_AMDGPU.REL64, R_AMDGPU.REL32_LO, R_AMDGPU.REL32_HI, R_AMDGPU.REL16})
ABSOLUTE = frozenset({R_AMDGPU.ABS32, R_AMDGPU.ABS64, R_AMDGPU.ABS32_LO, R_AMDGPU.ABS32_HI})
THROUGH_GOT = {
  R_AMDGPU.GOTPCREL: R_AMDGPU.REL32,
  R_AMDGPU.GOTPCREL32_LO: R_AMDGPU.REL32_LO,
  R_AMDGPU.GOTPCREL32_HI: R_AMDGPU.REL32_HI,
}
WIDTHS = {R_AMDGPU.REL64: 8, R_AMDGPU.ABS64: 8, R_AMDGPU.RELATIVE64: 8, R_AMDGPU.REL16: 2}  # bytes; 4 for the others


@dataclass(frozen=True)
class Fixup:
  """A place in the image that depends on where the image is loaded: kind, and the value that the base is added to."""

  offset: int
  kind: R_AMDGPU
  value: int
  sign: int  # 1: base + value (an address), -1: value - base (an absolute symbol, relative to the place)


def relocate(image: bytearray, fixups: list[Fixup], row: Relocation, place: int, value: int, absolute: bool) -> None:
  """Apply what does not depend on the base; note down the rest. Meanings: LLVM's AMDGPUUsage, "Relocation Records"."""
  try:
    kind = R_AMDGPU(row.type)
  except ValueError:
    raise DecodeError(f"unknown relocation type {row.type}", where=WHERE) from None
  value += row.addend
  if place + WIDTHS.get(kind, 4) > len(image):
    raise DecodeError(f"a relocation at {place:#x} is outside the image", where=WHERE)
  if kind in RELATIVE:
    if absolute:
      fixups.append(Fixup(place, kind, value - place, -1))
    else:
      patch(image, place, kind, value - place)
  elif kind in ABSOLUTE:
    if absolute:
      patch(image, place, kind, value)
    else:
      fixups.append(Fixup(place, kind, value, 1))
  elif kind is R_AMDGPU.RELATIVE64:
    fixups.append(Fixup(place, kind, row.addend, 1))
  elif kind is not R_AMDGPU.NONE:
    raise Unsupported("relocation", kind.name, where=WHERE)


def patch(image: bytearray, place: int, kind: R_AMDGPU, value: int) -> None:
  """Store a relocation's value in its width. Raises DecodeError when it does not fit."""
  width = WIDTHS.get(kind, 4)
  if kind in (R_AMDGPU.REL32_HI, R_AMDGPU.ABS32_HI):
    value >>= 32
  elif kind is R_AMDGPU.REL16:
    if value % 4:
      raise DecodeError(f"a branch at {place:#x} to no instruction", where=WHERE)
    value = value // 4 - 1
  low, high = (-1 << 8 * width - 1, 1 << 8 * width - (0 if kind is R_AMDGPU.ABS32 else 1))
  if kind in (R_AMDGPU.REL32, R_AMDGPU.REL16, R_AMDGPU.ABS32) and not low <= value < high:
    raise DecodeError(f"{kind.name} at {place:#x}: {value:#x} does not fit", where=WHERE)
  image[place : place + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
