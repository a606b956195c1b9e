"""Sub-dword addressing of gfx9: a byte or word of each source, and where the result goes (CDNA3 ISA manual, 13.3.7)."""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from tinyhw.emulator.amdgcn.registers import Reader, Writer, merged
from tinyhw.emulator.simt import Group
from tinyhw.emulator.values.ops import DTYPES, U16, U32
from tinyhw.emulator.values.ops import Array as Value

# Selection (SRC0_SEL, SRC1_SEL, DST_SEL) -> (first bit, bits)
PARTS: Final = {0: (0, 8), 1: (8, 8), 2: (16, 8), 3: (24, 8), 4: (0, 16), 5: (16, 16), 6: (0, 32)}
DWORD: Final = 6
SEXT, PRESERVE = 1, 2  # DST_UNUSED; 0 pads with zeros


def source(read: Reader, select: int, sign: bool, type_: str) -> Reader:
  """The selected part of a u32 source, extended with zeros or its sign, as a type of 16 or 32 bits."""
  first, bits = PARTS[select]
  dtype = DTYPES[type_]

  def part(group: Group) -> Value:
    x = read(group)
    if bits < 32:
      x = x << np.uint32(32 - first - bits)
      x = (x.view(np.int32) >> np.int32(32 - bits)).view(U32) if sign else x >> np.uint32(32 - bits)
    return x.astype(U16).view(dtype) if dtype.itemsize == 2 else x.view(dtype)
  return part


def destination(n: int, select: int, unused: int) -> Writer:
  """Writes a result of 16 or 32 bits into the selected part of register n; `unused` says what becomes of the rest."""
  first, bits = PARTS[select]
  mask = (1 << bits) - 1
  rest = np.uint32(~(mask << first) & 0xFFFFFFFF)

  def write(group: Group, value: Any) -> None:
    word = value.view(U16).astype(U32)[()] if value.dtype.itemsize == 2 else value.view(U32)[()]
    old = group.v[n].view(U32)
    if bits < 32:
      word = (word & np.uint32(mask)) << np.uint32(first)
      if unused == PRESERVE: word = word | old & rest
      elif unused == SEXT:
        up = np.uint32(32 - first - bits)
        word = ((word << up).view(np.int32) >> np.int32(up)).view(U32)
    group.v[n] = merged(group, word, old)
  return write
