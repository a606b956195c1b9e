"""What tcgen05 is told of matrices: descriptors of those in shared memory, and of the product (PTX ISA, 9.7.16.4)."""
from __future__ import annotations

from typing import Final

from tinyhw.core.layout import Packet, Word, bits


class MatrixDescriptor(Packet, dwords=2):
  """A matrix in shared memory (table 40); addresses and distances count 16 bytes."""
  start: int = bits(0, 13, 0)
  leading: int = bits(0, 29, 16)
  stride: int = bits(1, 13, 0)
  version: int = bits(1, 16, 14)  # always 1
  base: int = bits(1, 19, 17)
  absolute: int = bits(1, 20, 20)
  constant: int = bits(1, 28, 21)  # always 0
  swizzle: int = bits(1, 31, 29)


class InstructionDescriptor(Word):
  """A product of the kinds f16, tf32, f8f6f4 and i8 (table 42)."""
  selector: int = bits(0, 1, 0)
  sparse: int = bits(0, 2, 2)
  saturate: int = bits(0, 3, 3)
  d: int = bits(0, 5, 4)
  a: int = bits(0, 9, 7)
  b: int = bits(0, 12, 10)
  negate_a: int = bits(0, 13, 13)
  negate_b: int = bits(0, 14, 14)
  turn_a: int = bits(0, 15, 15)
  turn_b: int = bits(0, 16, 16)
  n: int = bits(0, 22, 17)  # by 8
  m: int = bits(0, 28, 24)  # by 16
  shift: int = bits(0, 31, 30)


class ScaledDescriptor(Word):
  """A product with scaled blocks (tables 43 and 44)."""
  sparse: int = bits(0, 2, 2)
  b_id: int = bits(0, 5, 4)
  a: int = bits(0, 9, 7)
  b: int = bits(0, 12, 10)
  negate_a: int = bits(0, 13, 13)
  negate_b: int = bits(0, 14, 14)
  turn_a: int = bits(0, 15, 15)
  turn_b: int = bits(0, 16, 16)
  n: int = bits(0, 22, 17)  # by 8
  scale: int = bits(0, 23, 23)
  m: int = bits(0, 28, 27)  # by 128
  a_id: int = bits(0, 30, 29)
  k: int = bits(0, 31, 31)


class ColumnMask(Packet, dwords=2):
  """Columns of B that are zero in a product of .ws, and where B begins (table 45)."""
  start_0: int = bits(0, 7, 0)
  start_1: int = bits(0, 15, 8)
  start_2: int = bits(0, 23, 16)
  start_3: int = bits(0, 31, 24)
  first_0: int = bits(1, 0, 0)
  first_1: int = bits(1, 1, 1)
  first_2: int = bits(1, 2, 2)
  first_3: int = bits(1, 3, 3)
  masks: int = bits(1, 7, 7)
  skip: int = bits(1, 15, 8)
  use: int = bits(1, 23, 16)
  shift: int = bits(1, 29, 24)

  def zero(self, m: int, n: int) -> list[bool]:
    """Which of N columns are zero. Spans of columns that are and that are not alternate in each of 128 / M parts of
    them: by the manual's examples, which have the two spans' names the other way round than its table."""
    if not self.masks: return [False] * n
    parts, out = 128 // m, list[bool]()
    starts = (self.start_0, self.start_1, self.start_2, self.start_3)[:parts]
    for start, first in zip(starts, (self.first_0, self.first_1, self.first_2, self.first_3)):
      span = [True] * (self.skip + 1), [False] * (self.use + 1)
      pattern = [*span[0], *span[1]] if first else [*span[1], *span[0]]
      out += [pattern[(start + k) % len(pattern)] for k in range(n // parts)]
    return out


_NARROW: Final = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
# By kind: types of the operands and of the sum, by their codes.
OPERANDS: Final = {"f16": {0: "f16", 1: "bf16"}, "tf32": {2: "tf32"}, "f8f6f4": _NARROW, "i8": {0: "u8", 1: "s8"},
                   "mxf8f6f4": _NARROW, "mxf4": {1: "e2m1"}, "mxf4nvf4": {1: "e2m1"}}
SUMS: Final = {"f16": {0: "f16", 1: "f32"}, "tf32": {1: "f32"}, "f8f6f4": {0: "f16", 1: "f32"}, "i8": {2: "s32"}}
# By swizzling mode: bytes of a row, bits of an address that are exchanged, bytes that stay together.
SWIZZLES: Final = {0: (16, 0, 16), 1: (128, 3, 32), 2: (128, 7, 16), 4: (64, 3, 16), 6: (32, 1, 16)}
