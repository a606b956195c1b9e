"""Binders of moves between registers whose numbers M0 adds to (RDNA3 ISA manual: V_MOVREL*, V_SWAPREL, S_MOVREL*)."""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyhw.core.errors import MachineFault
from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.registers import (
  each_wave,
  reader,
  scalar64,
  vector32,
  write_scalar32,
  write_scalar64,
  write_vector32,
  writer,
)
from tinyhw.emulator.simt import Group, Step
from tinyhw.emulator.values.ops import U32, Array
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import M0, VCC_LO


@binds("v_movrels_b32", "v_movreld_b32", "v_movrelsd_b32", "v_movrelsd_2_b32")
def movrel(i: Instruction, pc: int, mode: int) -> Step:
  """v_movrel*: the number of the source or destination register plus M0 (movrelsd_2: 10 bits of it for each)."""
  source, destination = i.operands["src0"], i.operands["vdst"]
  from_m0, to_m0 = "movrels" in i.mnemonic, "movreld" in i.mnemonic or "movrelsd" in i.mnemonic
  if source.kind != "v": from_m0 = False
  halves = i.mnemonic == "v_movrelsd_2_b32"

  def moved(group: Group, m0: int) -> None:
    first, second = (m0 & 0x3FF, m0 >> 16 & 0x3FF) if halves else (m0, m0)
    at = replace(source, value=source.value + first) if from_m0 else source
    to = replace(destination, value=destination.value + second) if to_m0 else destination
    if not 0 <= max(at.value * (at.kind == "v"), to.value) < len(group.v):
      raise MachineFault(f"M0 of {m0:#x} moves a register's number past the wave's", pc=pc, instruction=str(i))
    writer(to, "u32")(group, reader(at, "u32")(group))

  return lambda group: each_wave(group, [group.s[M0]], lambda m0: moved(group, m0))


@binds("v_swaprel_b32")
def swap_relative(i: Instruction, pc: int, mode: int) -> Step:
  """v_swaprel_b32: two registers change places; M0 has 10 bits for the number of each."""
  first, second = i.operands["src0"].value, i.operands["vdst"].value

  def swap(group: Group, m0: int) -> None:
    a, b = first + (m0 & 0x3FF), second + (m0 >> 16 & 0x3FF)
    if max(a, b) >= len(group.v):
      raise MachineFault(f"M0 of {m0:#x} moves a register's number past the wave's", pc=pc, instruction=str(i))
    x, y = vector32(a, U32)(group), vector32(b, U32)(group)
    write_vector32(b)(group, x)
    write_vector32(a)(group, y)
  return lambda group: each_wave(group, [group.s[M0]], lambda m0: swap(group, m0))


@binds("s_movrels_b32", "s_movrels_b64", "s_movreld_b32", "s_movreld_b64", "s_movrelsd_2_b32")
def scalar_move_relative(i: Instruction, pc: int, mode: int) -> Step:
  """s_movrels (source + M0), s_movreld (destination + M0) of one or two registers; movrelsd_2: 10 bits for each."""
  source, n = i.operands["src0"], i.operands["sdst"].value
  dwords = 2 if i.mnemonic.endswith("b64") else 1
  halves = i.mnemonic == "s_movrelsd_2_b32"
  by_source, by_destination = "movrels" in i.mnemonic, "movreld" in i.mnemonic or halves
  wide = dwords == 2
  plain = reader(source, "u64" if wide else "u32")

  def moved(group: Group, m0: int) -> tuple[int, Array]:
    """(the destination's first register, the value) for waves with this M0."""
    index, second = (m0 & 0x3FF, m0 >> 16 & 0x3FF) if halves else (m0, m0)
    first = n + second if by_destination else n
    if by_source and source.value + index + dwords > VCC_LO or first + dwords > VCC_LO + 2:
      raise MachineFault(f"M0 of {m0:#x} moves a register's number past the wave's", pc=pc, instruction=str(i))
    if not by_source: return first, plain(group)
    return first, scalar64(source.value + index)(group) if wide else group.s[source.value + index]

  def step(group: Group) -> None:
    m0 = np.asarray(group.s[M0]).reshape(-1)
    found = [(moved(group, int(v)), (m0 == v)[:, None]) for v in np.unique(m0)]  # all are read before any is written
    for (first, value), here in found:
      if len(found) > 1: value = np.where(here, value, scalar64(first)(group) if wide else group.s[first])
      (write_scalar64 if wide else write_scalar32)(first)(group, value)
  return step
