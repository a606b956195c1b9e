"""Where the checks of both vendors are put together: nothing else in this folder knows of them, save their own.

A vendor's checks are imported when the first dispatch of its machine code is checked.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhw.arch.nv import NvArch

if TYPE_CHECKING:
  from tinyhw.emulator.check.checker import Checker
  from tinyhw.emulator.check.part import Part


def hazards_of(arch: Any, checker: Checker) -> Part:
  """What checks a dispatch of a generation; it tells the checker what it finds."""
  if isinstance(arch, NvArch):
    from tinyhw.emulator.check.ptx.checker import Hazards as Ptx
    return Ptx(checker)
  from tinyhw.emulator.check.amdgcn.checker import Hazards
  return Hazards(checker)
