"""Which vendor's part of the reports a launch is for: nothing else in this folder knows of the two, save their own."""
from __future__ import annotations

from typing import Any

from tinyhw.arch.nv import NvArch
from tinyhw.emulator.debug.parts import Vendor


def vendor_of(arch: Any, d: Any) -> Vendor:
  """The vendor of a generation, for a dispatch; a vendor's part is loaded with its first launch."""
  if isinstance(arch, NvArch):
    from tinyhw.emulator.debug.ptx.record import Nvidia
    return Nvidia(arch, d)
  from tinyhw.emulator.debug.amdgcn.record import Amd
  return Amd(arch, d)
