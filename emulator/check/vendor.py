"""Where the checks of both vendors are put together: nothing else in this folder knows of them, save their own.

A vendor's checks are imported when the first dispatch of its machine code is checked.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhw.arch.nv import NvArch

if TYPE_CHECKING:
  from tinyhw.emulator.amdgcn.launch import Workgroups
  from tinyhw.emulator.check.checker import Checker
  from tinyhw.emulator.check.part import Part
  from tinyhw.emulator.ptx.launch.grid import Grid
  from tinyhw.emulator.simt import Stats


def hazards_of(arch: Any, checker: Checker) -> Part:
  """What checks a dispatch of a generation; it tells the checker what it finds."""
  if isinstance(arch, NvArch):
    from tinyhw.emulator.check.ptx.checker import Hazards as Ptx
    return Ptx(checker)
  from tinyhw.emulator.check.amdgcn.checker import Hazards
  return Hazards(checker)


def proven(launch: Workgroups | Grid, watchdog: int, always: bool, checker: Checker) -> Stats | None:
  """Run a dispatch with compiled code that finds out whether the checks may find something. None where they may, or
  where that does not pay: then the dispatch has not run. LLVM is loaded where it pays."""
  if isinstance(launch.arch, NvArch):
    from tinyhw.emulator.check.ptx.proven import proven as ptx
    return ptx(launch, watchdog, always, checker)
  from tinyhw.emulator.check.amdgcn.proven import proven as amdgcn
  return amdgcn(launch, watchdog, always, checker)
