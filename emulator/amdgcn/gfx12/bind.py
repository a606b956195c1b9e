"""Binders of RDNA4 alone: permutations by a lane's own selector, block transfers.

RDNA4 ISA manual, sections 11.5 "Block VGPR Load & Store" and 16.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.lanes import fetched
from tinyhw.emulator.amdgcn.memory.vector import global_address, scratch_offset
from tinyhw.emulator.amdgcn.registers import merged, reader
from tinyhw.emulator.memory import access
from tinyhw.emulator.simt import Group, Step, full, need_lanes
from tinyhw.emulator.values.ops import U32
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import M0

Load = Callable[[Group, int], Value]  # (waves, bytes from the instruction's address) -> a dword of each lane
Store = Callable[[Group, int, Value], None]
BLOCK: Final = 32  # registers of a block


@binds("v_permlane16_var_b32", "v_permlanex16_var_b32", isa="gfx12")
def permlane_var(i: Instruction, pc: int, mode: int) -> Step:
  """v_permlane16_var, v_permlanex16_var: each lane names the lane of its row, or of the row's partner, in source 1."""
  select_of, other = reader(i.operands["src1"], "u32"), 16 if "permlanex16" in i.mnemonic else 0

  def index(group: Group) -> Value:
    row = np.arange(group.cohort.lanes) & ~15 ^ other
    return row + (full(group, select_of(group)) & np.uint32(15)).astype(np.intp)
  return fetched(i, index)


@binds("global_load_block", "global_store_block", "scratch_load_block", "scratch_store_block", isa="gfx12")
def block(i: Instruction, pc: int, mode: int) -> Step:
  """Registers n to n + 31, those whose bit M0 has, to or from the dwords at offsets 0, 4, 8...

  A register beyond the wave's is left out of a load, and a store takes register 0 in its place.
  """
  stores, scratch = "store" in i.mnemonic, i.mnemonic.startswith("scratch")
  n = i.operands["vdata" if stores else "vdst"].value
  load, store = _in_scratch(i) if scratch else _in_memory(i)

  def transfer(group: Group, k: int) -> None:
    if stores: return store(group, 4 * k, group.v[n + k if n + k < len(group.v) else 0].view(U32))
    if n + k < len(group.v): group.v[n + k] = merged(group, load(group, 4 * k), group.v[n + k].view(U32))

  def step(group: Group) -> None:
    m0, mask = group.s[M0], group.mask
    try:
      for k in range(BLOCK):
        chosen = m0 >> np.uint32(k) & np.uint32(1) != 0
        if not np.any(chosen): continue
        if not np.all(chosen): group.mask = need_lanes(group) & chosen
        if not access.nobody(group): transfer(group, k)
        group.mask = mask
    finally: group.mask = mask
  return step


def _in_scratch(i: Instruction) -> tuple[Load, Store]:
  offset_of = scratch_offset(i)
  return (lambda group, far: access.scratch_load(group, offset_of(group) + np.uint32(far), 4)[0],
          lambda group, far, word: access.scratch_store(group, offset_of(group) + np.uint32(far), [word], 4))


def _in_memory(i: Instruction) -> tuple[Load, Store]:
  address_of = global_address(i)
  return (lambda group, far: access.load(group, *_shifted(address_of(group), np.uint32(far)), 4),
          lambda group, far, word: access.store(group, *_shifted(address_of(group), np.uint32(far)), [word], 4))


def _shifted(address: tuple[int | None, Value], far: Any) -> tuple[int | None, Value]:
  base, offsets = address
  return (base + int(far), offsets) if base is not None else (None, offsets + np.uint64(far))
