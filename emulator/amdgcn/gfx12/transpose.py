"""Loads that transpose: global_load_tr_b128 and global_load_tr_b64 (RDNA4 ISA manual, section 11.6).

A 16 x 16 matrix that lies in memory with the other dimension contiguous comes out as WMMA wants it: lanes 0 to 31 read
eight elements each, then each lane has one element of eight of them. Which ones the manual's text does not say;
`_SOURCE` is what programs found on a gfx1201, two of them apart from each other in the case of bytes. A wave of 64
lanes reads with lanes 0 to 31 alone; its upper lanes have what a wave of 32 has in the upper half of its registers,
which is how the tables of section 7.12.2 lay out one matrix for both.
"""
from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from tinyhw.emulator.amdgcn.binders import binds, unsupported
from tinyhw.emulator.amdgcn.memory.vector import global_address
from tinyhw.emulator.amdgcn.memory.words import write_words
from tinyhw.emulator.memory import access
from tinyhw.emulator.simt import Group, Step, full, need_lanes
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction

READERS: Final = 32  # lanes whose addresses count, in waves of either size
# Bits of an element -> where element s of lane l comes from: bit k of the reading lane is that bit of l (0 to 4) or of
# s (5 to 7). The reading lane's element is l % 8.
_SOURCE: Final = {16: (5, 6, 7, 3, 4), 8: (5, 6, 3, 7, 4)}


@cache
def sources(bits: int) -> tuple[Value, Value]:
  """(reading lane, which of its elements) of each lane's eight elements [32, 8]."""
  lane, element = np.indices((READERS, 8))
  joined = lane | element << 5
  reading: Value = sum(((joined >> bit & 1) << k for k, bit in enumerate(_SOURCE[bits])), np.zeros_like(joined))
  return reading, lane & 7


@binds("global_load_tr_b128", "global_load_tr_b64", isa="gfx12")
def load_transposed(i: Instruction, pc: int, mode: int) -> Step:
  """Binds a load; all lanes of a wave must be active, or none."""
  bits = 16 if i.mnemonic.endswith("b128") else 8
  width, element = bits, np.dtype(f"u{bits // 8}")  # eight elements a lane: as many bytes as an element has bits
  address_of, n = global_address(i), i.operands["vdst"].value
  reader, which = sources(bits)

  def step(group: Group) -> None:
    if access.nobody(group): return
    lanes, on = group.cohort.lanes, need_lanes(group)
    if (on.any(axis=1) != on.all(axis=1)).any():
      raise unsupported(i, pc, "some lanes are inactive, which the manual leaves undefined")
    mask = group.mask
    base, offsets = address_of(group)
    at = full(group, offsets) if base is not None else full(group, offsets.astype(U64))
    try:
      if lanes > READERS: group.mask = on & (np.arange(lanes) < READERS)
      words = access.words_of(access.load(group, base, at, width), width)
    finally: group.mask = mask
    read = np.stack([w[:, :READERS] for w in words], axis=-1).view(element)
    turned = np.ascontiguousarray(read[:, reader, which]).view(U32)  # [waves, 32, dwords]
    if lanes > READERS: turned = np.concatenate(np.split(turned, 2, axis=2), axis=1)
    write_words(group, n, [np.ascontiguousarray(w) for w in np.moveaxis(turned, 2, 0)])
  return step
