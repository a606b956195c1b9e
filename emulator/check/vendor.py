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
  from tinyhw.emulator.simt import Stats


def hazards_of(arch: Any, checker: Checker) -> Part:
  """What checks a dispatch of a generation; it tells the checker what it finds."""
  if isinstance(arch, NvArch):
    from tinyhw.emulator.check.ptx.checker import Hazards as Ptx
    return Ptx(checker)
  from tinyhw.emulator.check.amdgcn.checker import Hazards
  return Hazards(checker)


def proven(workgroups: Workgroups, watchdog: int, always: bool, checker: Checker) -> Stats | None:
  """Run a dispatch of AMD's machine code with compiled code that finds out whether the checks may find something. None
  where they may, or where that does not pay: then the dispatch has not run. LLVM is loaded where it pays."""
  from tinyhw.emulator.amdgcn.occupancy import unfit
  from tinyhw.emulator.check.amdgcn import price
  from tinyhw.emulator.check.bounds import UNKNOWN, Bounds
  program, d = workgroups.program, workgroups.dispatch
  if unfit(workgroups.arch, d): return None  # which is a finding
  if not always and not price.pays(program, workgroups.waves): return None
  from tinyhw.emulator.jit.amdgcn.detect import detect
  space = workgroups.space
  found = detect(space, workgroups.arch, d, watchdog, Bounds(space, d.lds_size, checker.used(), "LDS"))
  price.watched(program, found is not None)
  if found is None: return None
  stats, unknown = found
  if unknown and "bounds" in checker.kinds: checker.unseen(UNKNOWN)
  return stats
