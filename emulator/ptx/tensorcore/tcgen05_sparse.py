"""The sparse left matrix of tcgen05.mma.sp: metadata in tensor memory (PTX ISA, section 9.7.16.10.8).

Of each chunk of a row half is stored; four bits of metadata say where in the chunk that was. Where the metadata of a
row lie in tensor memory the manual shows in figures alone: here it is as CUTLASS's sparse programs for sm_100 have it.
Of elements of 16 and 32 bits a word has 16 bits of each of rows r and r + 8, and the lane eight further down those of
the columns behind; of others a lane has the 64 bits of its row in two words. Where a product uses half of the lanes (64
rows of a block) they lie in the lanes of the rows' sums.
"""
from __future__ import annotations

from typing import Final

import numpy as np

from tinyhw.emulator.values.ops import Array

GROUP: Final = 16  # rows whose metadata lie in as many lanes
CHUNK: Final = {"tf32": 2, "mxf4": 8, "mxf4nvf4": 8}  # elements, by the kind of product; 4 of others
WIDE: Final = frozenset({"f16", "tf32"})  # of elements of 16 and 32 bits
MEANT: Final = {2: frozenset({0b1110, 0b0100}),
                4: frozenset({0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110})}


def words(kind: str) -> int:
  """Columns of tensor memory that a product's metadata have."""
  return 1 if kind in WIDE else 2


def codes(cells: Array, lanes: Array, column: int, kind: str) -> Array:
  """Four bits for each chunk of each row [rows, chunks], from the lanes that rows of the sum have."""
  shifts = np.arange(0, 32, 4, dtype=np.uint32)
  if kind not in WIDE:
    two = cells[lanes][:, column:column + 2]
    return (two[:, :, None] >> shifts & np.uint32(15)).reshape(len(lanes), GROUP)
  first = lanes.reshape(-1, GROUP)[:, :8]
  both = np.stack([cells[first, column], cells[first + 8, column]], axis=-1)  # [groups, 8, halves of K]
  found = both[..., None] >> shifts & np.uint32(15)  # the lower four of row r, the others of row r + 8
  by_row = found.reshape(-1, 8, 2, 2, 4).transpose(0, 3, 1, 2, 4)
  return by_row.reshape(len(lanes), 8)


def meaningless(found: Array, kind: str) -> Array:
  """Which codes have no meaning."""
  return ~np.isin(found, [*MEANT[2 if CHUNK.get(kind) == 2 else 4]])


def expanded(stored: Array, found: Array, kind: str) -> Array:
  """The matrix [rows, k] with its zeros, from what is stored [rows, k // 2]."""
  chunk, rows = CHUNK.get(kind, 4), len(stored)
  at = found.astype(np.intp)
  if chunk == 2: places = (at >> 3)[..., None]
  else: places = np.stack([at & 3, at >> 2], axis=-1)
  if chunk == 8: places = np.stack([2 * places, 2 * places + 1], axis=-1).reshape(rows, -1, 4)
  columns = (places + chunk * np.arange(found.shape[1])[:, None]).reshape(rows, -1)
  out = np.zeros((rows, 2 * stored.shape[1]), stored.dtype)
  np.put_along_axis(out, columns, stored, axis=1)
  return out
