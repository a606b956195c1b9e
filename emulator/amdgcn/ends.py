"""How waves end, halt or loop by instructions that compilers seldom emit (RDNA3 ISA manual, section 16.5 "SOPP").

The loops over the halves of a 64-lane wave, s_subvector_loop_*, are those of the RDNA2 ISA manual; RDNA3's has none.
"""
from __future__ import annotations

from typing import Final

import numpy as np

from tinyhw.core.errors import MachineFault
from tinyhw.emulator.amdgcn.binders import Ender, ends
from tinyhw.emulator.amdgcn.registers import by_wave, column, exec_changed, write_scalar32
from tinyhw.emulator.simt import End, Group, Next, Split
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import EXEC_LO

EXEC_HI: Final = EXEC_LO + 1


@ends("s_setkill")
def _killed(i: Instruction, pc: int) -> Ender:
  after, kills = pc + i.size, i.fields["simm16"] & 1
  return lambda group: End() if kills else after


@ends("s_sethalt", "s_sendmsghalt")
def _halted(i: Instruction, pc: int) -> Ender:
  """A halted wave waits for a debugger to let it go on; there is none, so that its queue would hang."""
  after, halts = pc + i.size, i.mnemonic == "s_sendmsghalt" or i.fields["simm16"] & 1

  def halt(group: Group) -> Next:
    if halts: raise MachineFault(f"the wave halted itself ({i.mnemonic})", wave=int(group.waves[0]))
    return after
  return halt


@ends("s_subvector_loop_begin", "s_subvector_loop_end")
def _subvector_loop(i: Instruction, pc: int) -> Ender:
  """The body runs for the low half of EXEC, then for the high half; the other half waits in an SGPR."""
  after, offset = pc + i.size, i.fields["simm16"]
  there, kept = pc + 4 + 4 * (offset - (offset >> 15 << 16)), i.operands["sdst"].value
  write, begins = write_scalar32(kept), i.mnemonic.endswith("begin")

  def step(group: Group) -> Next:
    s = group.s
    low, high, saved = (by_wave(group, s[n]) for n in (EXEC_LO, EXEC_HI, kept))
    zero = np.uint32(0)
    if begins:  # nothing active: leave the loop; only the high half: it is the first; else the low half goes first
      jumps, first = (low == 0) & (high == 0), low != 0
      new_saved = np.where(jumps, saved, np.where(first, high, low))
      new_low, new_high = low, np.where(first, zero, high)
    else:  # after the high half: restore the low one; after the low half: on to the high one, if there is one
      was_high = high != 0
      jumps = ~was_high & (saved != 0)
      new_saved = np.where(jumps, low, saved)
      new_low = np.where(was_high, saved, np.where(jumps, zero, low))
      new_high = np.where(jumps, saved, high)

    write(group, column(new_saved))
    s[EXEC_LO], s[EXEC_HI] = column(new_low), column(new_high)
    exec_changed(group)
    if jumps.all(): return there
    return Split(np.where(jumps, np.int64(there), np.int64(after))) if jumps.any() else after
  return step
