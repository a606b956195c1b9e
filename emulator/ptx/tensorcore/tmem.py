"""Tensor memory of sm_100: 128 lanes of 512 columns of 32 bits a block, of which a block has the columns that a warp
allocates (PTX ISA, sections 9.7.16.1, 9.7.16.7 and 9.7.16.8).

An address has the lane in its upper 16 bits and the column in the lower ones. Each warp of a warpgroup reaches a
quarter of the lanes. Which element of a shape a thread holds the manual shows in figures alone: here it is as the
layouts of CUTLASS's loads have it, which Triton's kernels confirm.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tinyhw.core.errors import MachineFault
from tinyhw.emulator.ptx.group import LANES as THREADS
from tinyhw.emulator.values.ops import Array

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.group import Blocks, Warps
  from tinyhw.emulator.ptx.memory.ranges import Thread

LANES: Final = 128
COLUMNS: Final = 512
WORDS: Final = LANES * COLUMNS  # of a block
SPACE: Final = "tensor"  # of addresses, which have 32 bits
UNIT: Final = 32  # columns of the least allocation, lanes of a warp
REGISTERS: Final = {"32x32b": 1, "16x64b": 1, "16x32bx2": 1, "16x128b": 2, "16x256b": 4}  # a shape's, at .x1


class Blocked(Exception):
  """No columns are free: the warp waits until others have given theirs back."""


@dataclass(frozen=True)
class Piece:
  """Columns that a warp has allocated, at a PC."""
  first: int
  columns: int
  pc: int
  wave: int
  text: str


class TensorMemory:
  """That of a cohort's blocks. `pair` says of each block whether its instructions are for one block or for two."""

  def __init__(self, blocks: int) -> None:
    self.pieces: list[list[Piece]] = [[] for _ in range(blocks)]
    self.relinquished = [False] * blocks
    self.latest = [COLUMNS] * blocks  # how many columns the latest allocation had: they never become more
    self.pair = [0] * blocks
    self._cells: dict[int, Array] = {}

  def cells(self, block: int) -> Array:
    """The words of a block, u32 [lanes, columns]."""
    found = self._cells.get(block)
    if found is None: found = self._cells[block] = np.zeros((LANES, COLUMNS), np.uint32)
    return found

  def allocate(self, block: int, columns: int, pc: int, wave: int, text: str) -> int:
    """The first column of so many. Raises Blocked where there are none now, ValueError for what may not be."""
    if columns < UNIT or columns > COLUMNS or columns & columns - 1:
      raise ValueError(f"{columns} columns of tensor memory: a power of two of 32 to {COLUMNS}")
    if self.relinquished[block]: raise ValueError("tensor memory after tcgen05.relinquish_alloc_permit")
    if columns > self.latest[block]:
      raise ValueError(f"{columns} columns of tensor memory after {self.latest[block]}: they may not become more")
    used = self.owned(block)
    for first in range(0, COLUMNS, columns):
      if used[first:first + columns].any(): continue
      self.latest[block] = columns
      self.pieces[block].append(Piece(first, columns, pc, wave, text))
      return first
    raise Blocked

  def free(self, block: int, address: int, columns: int) -> None:
    """Give columns back. Raises ValueError for others than an allocation's."""
    for piece in self.pieces[block]:
      if piece.first != address: continue
      if piece.columns != columns:
        raise ValueError(f"{columns} columns of tensor memory at {address:#x}, where {piece.columns} were allocated")
      return self.pieces[block].remove(piece)
    raise ValueError(f"{columns} columns of tensor memory at {address:#x}, where none were allocated")

  def owned(self, block: int) -> Array:
    """Which columns are allocated."""
    out = np.zeros(COLUMNS, bool)
    for piece in self.pieces[block]: out[piece.first:piece.first + piece.columns] = True
    return out

  def missing(self, block: int, first: int, last: int) -> int | None:
    """The first of the columns up to `last` that is not allocated."""
    used = self.owned(block)
    return next((c for c in range(first, last + 1) if c >= COLUMNS or not used[c]), None)

  def check(self, ended: Iterable[int]) -> None:
    """Raises MachineFault for blocks that end with columns which they have not given back."""
    for piece in (p for block in sorted(ended) for p in self.pieces[block]):
      raise MachineFault(f"a block ends with {piece.columns} columns of tensor memory that it has not given back "
                         "(tcgen05.dealloc)", pc=piece.pc, wave=piece.wave, instruction=piece.text)


def of(cohort: Blocks) -> TensorMemory:
  """The tensor memory of a cohort's blocks."""
  if cohort.tensor is None: cohort.tensor = TensorMemory(len(cohort.threads))
  found: TensorMemory = cohort.tensor
  return found


def show(t: Thread, block: int, lanes: Array, columns: Array, kind: str, how: str = "") -> None:
  """Show observers words that a thread, or a warp of which it is the first, has read or written next."""
  if t.cohort.observer is None: return
  at = (np.asarray(lanes) << 16 | columns).reshape(-1)
  t.show("tensor", kind, at.astype(np.uint64), 4, block, how)


def fault(group: Warps, row: int, lane: int, text: str, address: int | None = None) -> MachineFault:
  """An error of one thread."""
  return MachineFault(text, address=address, lane=row * THREADS + lane)


@cache
def spread(shape: str, count: int, half: int = 0) -> tuple[Array, Array]:
  """(lanes, columns) of the words that threads have in registers [32, registers]; of `16x32bx2` the second half begins
  `half` columns behind the first."""
  t = np.arange(THREADS)[:, None]
  r = np.arange(REGISTERS[shape] * count)[None, :]
  lane, column = {
    "32x32b": (t + 0 * r, r + 0 * t),
    "16x64b": ((t >> 2) + 8 * (t & 1) + 0 * r, (t >> 1 & 1) + 2 * r),
    "16x128b": ((t >> 2) + 8 * (r & 1), (t & 3) + 4 * (r >> 1)),
    "16x256b": ((t >> 2) + 8 * (r >> 1 & 1), 2 * (t & 3) + (r & 1) + 8 * (r >> 2)),
    "16x32bx2": ((t & 15) + 0 * r, r + half * (t >> 4)),
  }[shape]
  return lane, column


@cache
def places(shape: str, count: int, packed: bool, half: int) -> tuple[Array, Array]:
  """As `spread`, where a register may hold the lower halves of two columns [32, registers, 1 or 2]."""
  if not packed:
    lane, column = spread(shape, count, half)
    return lane[..., None], column[..., None]
  lane, column = spread(shape, count)  # in pairs of columns
  if shape == "16x32bx2": first = 2 * column + half * (np.arange(THREADS) >> 4)[:, None]
  else: first = 2 * column
  return np.broadcast_to(lane[..., None], (*lane.shape, 2)), first[..., None] + np.arange(2)
