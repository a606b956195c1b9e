"""Whether compiled code shows that the checks find nothing in a dispatch of AMD's machine code."""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhw.emulator.amdgcn.launch import Workgroups
from tinyhw.emulator.amdgcn.occupancy import unfit
from tinyhw.emulator.check.amdgcn import price
from tinyhw.emulator.check.bounds import UNKNOWN, Bounds
from tinyhw.emulator.simt import Stats

if TYPE_CHECKING:
  from tinyhw.emulator.check.checker import Checker


def proven(workgroups: Workgroups, watchdog: int, always: bool, checker: Checker) -> Stats | None:
  """See `check.vendor.proven`."""
  program, d = workgroups.program, workgroups.dispatch
  if unfit(workgroups.arch, d): return None  # which is a finding
  if not always and not price.pays(program, workgroups.waves): return None
  from tinyhw.emulator.jit.amdgcn.detect import detect
  space = workgroups.space
  found = detect(space, workgroups.arch, d, watchdog, Bounds(space, d.lds_size, checker.used(), "LDS"))
  price.watched(program, found is not None)
  if found is None: return None
  stats, unknown = found
  if unknown and "bounds" in checker.kinds:
    checker.unseen(UNKNOWN)
    checker.last.unseen.add(UNKNOWN)
  return stats
