"""Binders of gfx9 alone: packed moves, and VGPR indexing by M0.

Register indexing and VSKIP are bits of MODE, which code is bound for: a vector instruction met while one is set is
bound another way (`altered`).
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from tinyhw.core.errors import MachineFault
from tinyhw.emulator.amdgcn.bind import dword
from tinyhw.emulator.amdgcn.binders import ALTERED_OF, binds
from tinyhw.emulator.amdgcn.gfx9.ends import index_from, index_of
from tinyhw.emulator.amdgcn.modes import GPR_IDX_EN, VSKIP
from tinyhw.emulator.amdgcn.registers import by_wave, reader, write_vector32
from tinyhw.emulator.simt import Group, Step
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import AGPR0, M0

# ---- packed moves

@binds("v_pk_mov_b32", isa="gfx9")
def pk_mov(i: Instruction, pc: int, mode: int) -> Step:
  """v_pk_mov_b32: the low register from source 0, the high one from source 1; op_sel says from which dword."""
  first, op_sel = i.operands["vdst"].value, i.get("op_sel")
  low, high = (reader(dword(i.operands[f"src{k}"], op_sel >> k & 1), "u32") for k in (0, 1))
  write_low, write_high = write_vector32(first), write_vector32(first + 1)

  def step(group: Group) -> None:
    a, b = low(group), high(group)
    write_low(group, a)
    write_high(group, b)
  return step


# ---- vector registers by M0 (6.6)

@binds("s_set_gpr_idx_idx", "s_set_gpr_idx_mode", isa="gfx9")
def _set_index(i: Instruction, pc: int, mode: int) -> Step:
  """s_set_gpr_idx_idx: the index; s_set_gpr_idx_mode: which operands it counts for."""
  if i.mnemonic == "s_set_gpr_idx_mode":
    operands = i.fields["simm16"]

    def choose(group: Group) -> None: group.s[M0] = index_of(group.s[M0], operands)
    return choose
  read = reader(i.operands["src0"], "u32")

  def index(group: Group) -> None: group.s[M0] = index_from(group.s[M0], read(group))
  return index


INDEXED: Final = {"src0": 12, "src1": 13, "src2": 14, "vdst": 15}  # bit of M0 that makes an operand relative


def index_bits(i: Instruction) -> dict[str, int]:
  """Operands of a vector instruction -> the bit of M0 that makes them relative."""
  # in v_madmk the constant takes the second factor's place: the addend is source 2 to the hardware
  return {**INDEXED, "src1": INDEXED["src2"]} if "madmk" in i.mnemonic else INDEXED


def _moved(i: Instruction, pc: int, m0: int) -> Instruction:
  """The instruction with the numbers of the vector registers that M0 moves."""
  operands = dict(i.operands)
  for name, bit in index_bits(i).items():
    o = operands.get(name)
    if o is None or o.kind != "v" or not m0 >> bit & 1: continue
    number = o.value + (m0 & 0xFF)
    if number % AGPR0 < o.value % AGPR0:
      raise MachineFault(f"M0 of {m0:#x} moves a register's number past the last", pc=pc, instruction=str(i))
    operands[name] = replace(o, value=number)
  return replace(i, operands=operands)


def _indexed(i: Instruction, pc: int, mode: int, plain: Callable[[Instruction, int, int], Step | None]) -> Step:
  """A vector ALU instruction whose registers are numbered relative to M0, which may differ between waves."""
  steps: dict[int, Step | None] = {}

  def bound(m0: int) -> Step | None:
    key = m0 & 0xF0FF
    if key not in steps: steps[key] = plain(_moved(i, pc, key), pc, mode)
    return steps[key]

  def run(group: Group, m0: int) -> None:
    chosen = bound(m0)
    if chosen is not None: chosen(group)

  def step(group: Group) -> None:
    m0 = by_wave(group, group.s[M0])
    values = np.unique(m0)
    if len(values) == 1: return run(group, int(values[0]))
    parts = [group.take(np.flatnonzero(m0 == value)) for value in values]
    for part, value in zip(parts, values): run(part, int(value))
    group.put_back(parts)
  return step


# ---- MODE's bits that change what vector instructions do

_ALU: Final = frozenset(("VOP1", "VOP2", "VOP3", "VOP3P", "VOPC"))
_VECTOR: Final = _ALU | {"DS", "FLAT", "MUBUF", "MTBUF"}


def _is_altered(i: Instruction, mode: int) -> bool:
  return bool(VSKIP.of(mode) and i.family in _VECTOR or GPR_IDX_EN.of(mode) and i.family in _ALU)


def _altered(i: Instruction, pc: int, mode: int,
             plain: Callable[[Instruction, int, int], Step | None]) -> Step | None:
  return None if VSKIP.of(mode) else _indexed(i, pc, mode, plain)


ALTERED_OF["gfx9"] = _is_altered, _altered
