"""Results of scalar registers that the hardware does not wait for by itself: a missing s_wait_alu.

RDNA4 ISA manual, 5.7 "Data Dependency Resolution": once a vector instruction has read a part of an aligned pair
of SGPRs, values written to that pair later are only safe to read behind a wait for the unit that writes them. LLVM
leaves the wait out where a memory instruction, a wait for memory or a call comes in between, and for v_writelane: so
nothing is found there. A scalar instruction that reads an SGPR is not issued before vector ones have written theirs
(LLVM's scheduler and hazard pass count on it): behind one there is nothing of theirs left to wait for.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from tinyhw.emulator.check.amdgcn.effects import SGPR0, Effects
from tinyhw.emulator.values.ops import Array
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import VCC_HI, VCC_LO

COUNT: Final = VCC_HI + 1
PAUSES: Final = ("s_wait_loadcnt", "s_wait_storecnt", "s_wait_samplecnt", "s_wait_bvhcnt", "s_wait_dscnt",
                  "s_wait_kmcnt", "s_swappc", "s_setpc", "s_call")


@dataclass(frozen=True)
class Guard:
  """Values that `writer` leaves in SGPRs, or in VCC (`vcc`: True, False, or None for both) are read by `readers` only
  behind an instruction `wait` whose SIMM16 has the bits of one of `masks` 0."""
  name: str
  writer: str
  vcc: bool | None
  readers: tuple[str, ...]
  wait: str
  masks: tuple[int, ...]

  @property
  def hint(self) -> str:
    """What to do about a missing one. Seen of LLVM 19.1.7, 20.1.2, 20.1.8, 21.1 and 22.1 by compiling for gfx1201."""
    return (f"write {self.wait} depctr_{self.name}(0) between the two; clang 19 and older do not insert {self.wait}, "
            "clang 20 and newer do: compile with one of these (20.1.2 leaves some out)")


GUARDS_OF: Final[dict[str, tuple[Guard, ...]]] = {  # by the instruction table's name
  "gfx12": (
    Guard("va_vcc", "VALU", True, ("VALU",), "s_wait_alu", (0x0002,)),
    # LLVM lets a wait for sa_sdst do for this one too
    Guard("va_sdst", "VALU", False, ("VALU",), "s_wait_alu", (0x0E00, 0x0001)),
    Guard("sa_sdst", "SALU", None, ("SALU", "VALU"), "s_wait_alu", (0x0001,)))}


def unit_of(i: Instruction) -> str:
  """The unit that reads and writes an instruction's SGPRs: VALU, SALU, or "" for what counts as neither."""
  if i.mnemonic == "v_writelane_b32": return ""
  if i.family.startswith("V"): return "VALU"
  return "SALU" if i.family in {"SOP1", "SOP2", "SOPC", "SOPK"} else ""


def settles(guard: Guard, i: Instruction, does: Effects) -> bool:
  """Whether the values that a guard is about have been written once the instruction is issued."""
  if i.mnemonic == guard.wait and not all(i.fields["simm16"] & mask for mask in guard.masks): return True
  return guard.writer == "VALU" and unit_of(i) == "SALU" and any(SGPR0 <= r < SGPR0 + COUNT for r in does.reads)


class AluWaits:
  """The SGPRs of the waves of a cohort that want a wait. Waves are indices into it."""

  def __init__(self, guards: tuple[Guard, ...], waves: int) -> None:
    self.guards, self.waves = guards, waves
    self._read = np.zeros((waves, COUNT // 2), bool)  # pairs that a vector instruction has read
    self._open = {g.name: np.zeros((waves, COUNT), np.int64) for g in guards}  # PC of the write, 0 where none

  def find(self, w: Array, i: Instruction, does: Effects) -> Iterator[tuple[Guard, int, int, int]]:
    """(guard, register, index of the wave, PC of the write) for what the instruction reads too early."""
    unit = unit_of(i)
    registers = np.array([r - SGPR0 for r in does.reads if SGPR0 <= r < SGPR0 + COUNT], np.intp)
    if not unit or not len(registers): return
    for guard in self.guards:
      if unit not in guard.readers: continue
      pcs = self._open[guard.name][w][:, registers]
      if not pcs.any(): continue
      wave, column = (int(k[0]) for k in np.nonzero(pcs))
      yield guard, int(registers[column]) + SGPR0, int(np.arange(self.waves)[w][wave]), int(pcs[wave, column])

  def issue(self, w: Array, pc: int, i: Instruction, does: Effects) -> None:
    """The waves have issued the instruction."""
    for guard in self.guards:
      if settles(guard, i, does): self._open[guard.name][w] = 0
    unit = unit_of(i)
    if does.kind or i.mnemonic.startswith(PAUSES):
      self._read[w] = False
      for table in self._open.values(): table[w] = 0
      return
    if unit == "VALU":
      for r in does.reads:
        if SGPR0 <= r < SGPR0 + COUNT: self._read[w, (r - SGPR0) // 2] = True
    for r in does.writes:
      if not SGPR0 <= r < SGPR0 + COUNT: continue
      code = r - SGPR0
      for guard in self.guards:
        mine = guard.writer == unit and guard.vcc in {None, code in {VCC_LO, VCC_HI}}
        self._open[guard.name][w, code] = np.where(self._read[w, code // 2], pc, 0) if mine else 0
