"""Which elements of a warp's matrices depend on what nobody has written (PTX ISA, section 9.7.14.5).

An element of a product depends on a row of its left operand, a column of its right one, and one element of its sum;
what is loaded, stored or moved has its own element. So rows past an edge, which nobody has written and nobody stores,
say nothing about the others. Lane 4 * g + t holds elements of row g, as `ptx.tensorcore.matrix` has them.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from tinyhw.emulator.check.ptx.effects import Effects
from tinyhw.emulator.ptx.group import LANES
from tinyhw.emulator.values.ops import Array as Value

Of = Callable[[int], Value]  # the shadow of a register [warps, lanes]
_ROW, _PAIR = np.arange(LANES) >> 2, np.arange(LANES) & 3


def results(does: Effects, of: Of) -> dict[int, Value] | None:
  """The shadow of each result of a product of registers, or of a matrix that is turned; None where each element may
  depend on all of them."""
  if does.opcode == "movmatrix":
    (result,), (source,) = does.matrices
    return {result: words(turned(halves(of(source))))}
  return _product(does, of)


def _product(does: Effects, of: Of) -> dict[int, Value] | None:
  m, = (s for s in does.modifiers if s.startswith("m") and s.count("n") == s.count("k") == 1 and s[1:2].isdigit())
  rows = int(m[1:m.index("n")])
  if m == "m8n8k4" and "f64" not in does.modifiers: return None  # of eight lanes each
  d, a, b, c, *others = does.matrices
  shapes = {r: of(r) for part in (a, b, c, *others) for r in part if r >= 0}
  if any(shapes[r].any() for part in others for r in part if r >= 0): return None  # metadata, scales
  warps = len(next(iter(shapes.values())))
  def found(r: int) -> Value: return shapes[r] if r >= 0 else np.zeros((warps, LANES), bool)
  left, right = np.zeros((warps, rows), bool), np.zeros((warps, 8), bool)
  for n, r in enumerate(a):
    first = 8 * (n & 1) if rows == 16 else 0
    left[:, first:first + 8] |= _of_rows(found(r))
  for r in b: right |= _of_rows(found(r))
  sums = np.zeros((warps, rows, 8), bool)
  for r, at in _places(c, rows): sums[at] = found(r)
  sums |= left[:, :, None] | right[:, None]
  out = {r: np.zeros((warps, LANES), bool) for r in d}
  for r, at in _places(d, rows): out[r] |= sums[at]
  return out


def _of_rows(lanes: Value) -> Value:
  """Whether any lane of a row (a column of the right operand) has it."""
  return np.logical_or.reduce(lanes.reshape(-1, 8, 4), axis=2)


def _places(registers: Sequence[int], rows: int) -> Iterator[tuple[int, tuple[slice, Value, Value]]]:
  """Registers of a sum, each with the places of its elements, of which there may be two in one."""
  count = rows // 4
  for n, r in enumerate(registers):
    for at in range(n * count // len(registers), (n + 1) * count // len(registers)):
      yield r, (slice(None), _ROW + 8 * (at >> 1), 2 * _PAIR + (at & 1))


# ---- matrices of 8 x 8 elements of 16 bits

ELEMENTS: Final = 8  # of a row, in memory


def halves(lanes: Value) -> Value:
  """[warps, row, column] of registers with two elements each."""
  return np.repeat(lanes.reshape(-1, 8, 4), 2, axis=2)


def turned(matrix: Value) -> Value: return matrix.transpose(0, 2, 1)


def words(matrix: Value) -> Value:
  """Registers with two elements each."""
  return matrix.reshape(-1, 8, 4, 2).any(axis=3).reshape(-1, LANES)


def loaded(does: Effects, each: Value) -> list[Value] | None:
  """The registers of ldmatrix, out of the elements [warps, rows, ELEMENTS] of the rows that its lanes name; None of
  matrices of narrower elements."""
  if "b16" not in does.modifiers: return None
  parts = (each[:, 8 * k:8 * k + 8] for k in range(len(does.matrices[0])))
  return [words(turned(p) if "trans" in does.modifiers else p) for p in parts]


def stored(does: Effects, of: Of) -> Value | None:
  """The elements [warps, rows, ELEMENTS] that stmatrix stores; None of matrices of narrower elements."""
  if "b16" not in does.modifiers: return None
  parts = [halves(of(r)) for r in does.matrices[0]]
  out = np.zeros((len(parts[0]), LANES, ELEMENTS), bool)
  for k, part in enumerate(parts): out[:, 8 * k:8 * k + 8] = turned(part) if "trans" in does.modifiers else part
  return out
