"""Matrix units as data: what one instruction of a wave multiplies, and which lane holds what.

A unit computes D = A * B + C: A has `rows` x `steps`, B `steps` x `columns`, C and D `rows` x `columns` numbers. Each
lane holds some numbers of each. Where a number stands is a sum of digits of the lane and of the number's place in the
lane: that is what the manuals' pictures come to.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from tinyhw.ir.dtype import DType, dtypes


class Digit(NamedTuple):
  """`lane // divisor % size * step`, or the same of the place in the lane."""
  of_lane: bool
  divisor: int
  size: int
  step: int


def lane(divisor: int, size: int, step: int = 1) -> Digit:
  """A digit of the lane."""
  return Digit(True, divisor, size, step)


def place(divisor: int, size: int, step: int = 1) -> Digit:
  """A digit of the place in the lane."""
  return Digit(False, divisor, size, step)


Digits = tuple[Digit, ...]


def total(digits: Digits, at_lane: int, at_place: int) -> int:
  """The sum of digits."""
  return sum((at_lane if d.of_lane else at_place) // d.divisor % d.size * d.step for d in digits)


@dataclass(frozen=True)
class MatrixUnit:
  """One instruction. `name` is what its target calls it, `rest` further arguments there; `word` is the type that a
  lane's numbers of a factor travel as, where it is not their vector's; `signs`: an argument before each factor says
  that it is signed.

  `a`: (row, step) of a lane's numbers of A; `b`: (step, column) of those of B; `c`: (row, column) of its results. What
  no digit names, lanes hold alike. A unit of one lane is none: threads multiply such a block by themselves.
  """
  name: str
  lanes: int
  a: tuple[Digits, Digits]
  b: tuple[Digits, Digits]
  c: tuple[Digits, Digits]
  inputs: DType = dtypes.float16
  output: DType = dtypes.float32
  rest: str = ""
  word: str = ""
  signs: bool = False

  @property
  def rows(self) -> int:
    """Rows of A and of the result."""
    return math.prod(d.size for d in self.c[0])

  @property
  def columns(self) -> int:
    """Columns of B and of the result."""
    return math.prod(d.size for d in self.c[1])

  @property
  def steps(self) -> int:
    """Columns of A and rows of B."""
    return math.prod(d.size for d in self.a[1])

  @staticmethod
  def held(layout: tuple[Digits, Digits]) -> int:
    """How many numbers a lane holds."""
    return math.prod(d.size for digits in layout for d in digits if not d.of_lane)

  @property
  def results(self) -> int:
    """Results of a lane."""
    return self.held(self.c)


@dataclass(frozen=True)
class Operand:
  """A factor of a `TileProduct` in memory, in lines of 128 bytes: `along` says whether a line is some steps of one row
  of A or column of B (else it is some rows or columns of one step). A workgroup has `count` rows or columns; `pitch`
  and `advance` are the bytes from line to line, and from one loop's steps to the next one's."""
  along: bool
  count: int
  pitch: int
  advance: int


@dataclass(frozen=True)
class TileProduct:
  """What a workgroup of warpgroups computes in one go: a tile of a whole product, its factors read from memory through
  `stages` tiles of local memory. `name` is the instruction's; in each of `loops` so many `steps` are summed. All
  `threads` copy; they are whole warpgroups, of which each has 64 rows."""
  name: str
  a: Operand
  b: Operand
  steps: int
  loops: int
  stages: int
  threads: int

  @property
  def stage_bytes(self) -> int:
    """Of local memory: a loop's lines of both factors."""
    return LINE_BYTES * (self.a.count + self.b.count)

  @property
  def local_bytes(self) -> int:
    """Of local memory in all, whose tiles begin at multiples of 1024."""
    return self.stages * self.stage_bytes + TILE_ALIGN

  @property
  def operations(self) -> int:
    """Arithmetic of a thread."""
    return 2 * self.a.count * self.b.count * self.steps * self.loops // self.threads


LINE_BYTES = 128   # of a line of a factor in local memory
TILE_ALIGN = 1024  # where the pattern of its swizzled lines begins anew

# The fragments of mma.m16n8k16 (PTX ISA, 9.7.14.5.8): quads of lanes, pairs of numbers, halves of 8.
QUADS = ((lane(4, 8), place(2, 2, 8)), (lane(1, 4, 2), place(1, 2), place(4, 2, 8)))
QUADS_B = ((lane(1, 4, 2), place(1, 2), place(2, 2, 8)), (lane(4, 8),))
QUADS_C = ((place(2, 2, 8), lane(4, 8)), (lane(1, 4, 2), place(1, 2)))
EMULATED = MatrixUnit("emulated.16x8x16.f16", 32, QUADS, QUADS_B, QUADS_C)
"""What the UOp emulator multiplies: for tests."""
UNITS = {EMULATED.name: EMULATED}
