"""Reads of LDS that transpose: ds_read_b64_tr_b4, b8, b16 and ds_read_b96_tr_b6 (CDNA4 ISA manual, 11.4).

Sixteen lanes read 64 bits each (96 of elements of 6 bits) of a matrix with 16 columns, row after row; each lane then
has one column. So element k of lane j is element j % n of the lane that reads it as part of row k, n being how many
elements one lane reads. The manual gives the rows that a lane gets; that four lanes in a row read a row of halves was
found on a chip (ROCm/rocm-systems#10175), and Triton's lowering reads bytes alike (triton-lang/triton#8525).
"""
from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from tinyhw.emulator.amdgcn.binders import binds, unsupported
from tinyhw.emulator.amdgcn.memory.words import write_words
from tinyhw.emulator.amdgcn.registers import vector32
from tinyhw.emulator.memory import access
from tinyhw.emulator.simt import Group, Step, full, need_lanes
from tinyhw.emulator.values.ops import U32
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction

COLUMNS: Final = 16  # of a matrix, and lanes that read it together
BITS: Final = {"ds_read_b64_tr_b4": 4, "ds_read_b96_tr_b6": 6, "ds_read_b64_tr_b8": 8, "ds_read_b64_tr_b16": 16}


@cache
def sources(count: int, lanes: int) -> tuple[Value, Value]:
  """(lane that reads it, which of its `count` elements) of each element of each lane [count, lanes]."""
  k, lane = np.indices((count, lanes))
  column = lane % COLUMNS
  return lane - column + (k * COLUMNS + column) // count, column % count


def turned(words: list[Value], bits: int) -> list[Value]:
  """The registers [waves, lanes] of what the lanes have read, transposed."""
  dwords, lanes = len(words), words[0].shape[-1]
  count = 32 * dwords // bits
  raw = np.ascontiguousarray(np.stack(words, axis=-1)).view(np.uint8)
  flat = np.unpackbits(raw, axis=-1, bitorder="little").reshape(*raw.shape[:-1], count, bits)
  lane, element = sources(count, lanes)
  moved = np.moveaxis(flat[:, lane, element], 1, 2)  # [waves, lanes, count, bits]
  packed = np.packbits(moved.reshape(*moved.shape[:2], -1), axis=-1, bitorder="little").view(U32)
  return [np.ascontiguousarray(packed[..., k]) for k in range(dwords)]


@binds(*BITS, isa="gfx950")
def read_transposed(i: Instruction, pc: int, mode: int) -> Step:
  """Binds a read; all lanes of a wave must be active, or none."""
  if i.get("gds"): raise unsupported(i, pc, "the global data share has no such instruction")
  bits, offset, n = BITS[i.mnemonic], np.uint32(i.fields["offset"]), i.operands["vdst"].value
  width = 4 * i.operands["vdst"].dwords
  raw = vector32(i.operands["addr"].value, U32)

  def step(group: Group) -> None:
    if access.nobody(group): return
    on = need_lanes(group)
    if (on.any(axis=1) != on.all(axis=1)).any():
      raise unsupported(i, pc, "some lanes are inactive, which the manual does not allow")
    words = [full(group, w) for w in access.lds_load(group, raw(group) + offset, width)]
    write_words(group, n, turned(words, bits))
  return step
