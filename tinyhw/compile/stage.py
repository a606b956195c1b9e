"""The option STAGE: a workgroup copies what its matrix units multiply next into local memory, and they read it there.

Each step of the reduction's loop has a tile of both factors. Work-items copy it in vectors, each number once, and after
a barrier every wave takes its rows and columns from there, which other waves take too. Two tiles take turns, so that
one barrier a step is enough: who still reads a tile has not passed the next barrier, and its turn comes behind that.
Steps lie side by side in local memory, for units want neighbours there; lines are longer by 16 bytes, so that the rows
that a wave reads at once are in banks of their own.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tinyhw.compile.axes import substituted
from tinyhw.ir.dtype import AddressSpace, DType, dtypes
from tinyhw.ir.size import is_size
from tinyhw.ir.symbolic import simplify
from tinyhw.ir.uop import Axis, Ops, UOp

if TYPE_CHECKING:
  from collections.abc import Sequence

  from tinyhw.compile.kernel import Kernel

_VECTOR = 16  # bytes that a work-item copies at once, and by which lines are longer


@dataclass(frozen=True)
class Tile:
  """What a workgroup reads of a factor in a step: `lines` (rows or columns of the product) of `steps` numbers.
  `along` says whether memory has the steps side by side, `vector` how many numbers are copied at once."""
  axis: UOp
  factor: UOp
  dtype: DType
  lines: int
  steps: int
  vector: int
  along: bool

  @property
  def pitch(self) -> int:
    """Numbers from line to line."""
    return self.steps + _VECTOR // self.dtype.itemsize

  @property
  def size(self) -> int:
    """Numbers of local memory."""
    return self.lines * self.pitch


def _inner(kernel: Kernel, axis: UOp) -> int:
  """Steps of an axis that a workgroup has at once."""
  return math.prod(int(p.size) for i, p in enumerate(kernel.parts[axis]) if i != kernel.rest(axis))


def work_items(kernel: Kernel) -> int:
  """Of a workgroup."""
  assert kernel.unit_product is not None
  return kernel.unit_product.unit.lanes * math.prod(int(p.size) for parts in kernel.parts.values() for p in parts
                                                    if p.kind is Axis.LOCAL and not p.lane)


def fitting(kernel: Kernel, number: int) -> tuple[Tile, Tile] | str:
  """The tiles of a kernel's product over the axis of that number; or why there are none."""
  product = kernel.unit_product
  if product is None or product.unit.lanes == 1: return "no matrix unit of waves is used"
  if product.steps.arg.axis != number: return "it is not the axis that the unit multiplies along"
  if product.columns_a_lane > 1: return "lanes have several columns"
  if kernel.staged is not None: return "tiles are there already"
  if kernel.uneven() or any(is_size(p.size) for parts in kernel.parts.values() for p in parts):
    return "axes are padded, or launches decide their sizes"
  if kernel.product(Axis.GROUP) > 1: return "the reduction is grouped"
  tiles = []
  for axis, factor in ((product.rows, product.a), (product.columns, product.b)):
    tile = _tile(kernel, axis, factor)
    if isinstance(tile, str): return tile
    tiles.append(tile)
  if (size := sum(2 * t.size * t.dtype.itemsize for t in tiles)) > kernel.renderer.max_local:
    return f"{size:,} bytes of local memory, of {kernel.renderer.max_local:,}"
  return tiles[0], tiles[1]


def _tile(kernel: Kernel, axis: UOp, factor: UOp) -> Tile | str:
  assert kernel.unit_product is not None
  along, items = kernel.unit_product.steps, work_items(kernel)
  lines, steps = _inner(kernel, axis), _inner(kernel, along)
  near = [a.steps for a in kernel.accesses if a.index in factor.toposort()]
  by_steps = not any(s.get(axis) == 1 for s in near)
  vector = _VECTOR // factor.dtype.itemsize
  while vector > 1 and (lines * steps % (items * vector) or (steps if by_steps else lines) % vector): vector //= 2
  if lines * steps % (items * vector): return f"{items} work-items cannot share {lines} lines of {steps} numbers"
  return Tile(axis, factor, factor.dtype, lines, steps, vector, by_steps)


class Staged:
  """The copies of both tiles, and where a lane's numbers of them are."""

  def __init__(self, kernel: Kernel, made: dict[UOp, list[UOp]], loops: Sequence[UOp], number: int) -> None:
    assert kernel.staged is not None and kernel.unit_product is not None
    self._kernel, self._made, self._along = kernel, made, kernel.unit_product.steps
    turn: UOp = UOp.const(dtypes.index, 0)
    for r in sorted(loops, key=lambda r: int(r.arg.axis)): turn = turn * int(r.src[0].arg) + r
    self._turn = simplify(turn % 2)
    self._memory, stores, ranges = dict[UOp, tuple[UOp, Tile]](), list[UOp](), list[UOp]()
    for i, tile in enumerate(kernel.staged):
      pointer = tile.dtype.ptr((2 if loops else 1) * tile.size, AddressSpace.LOCAL)
      memory = UOp(Ops.DEFINE_LOCAL, pointer, (), f"tile{i}")
      self._memory[tile.axis] = memory, tile
      count = tile.lines * tile.steps // (work_items(kernel) * tile.vector)
      pieces, numbers = (UOp.range(n, number + 2 * i + k, Axis.UPCAST) if n > 1 else UOp.const(dtypes.index, 0)
                         for k, n in enumerate((count, tile.vector)))
      stores.append(self._copy(memory, tile, pieces, numbers))
      ranges += [r for r in (pieces, numbers) if r.op is Ops.RANGE]
    self._barrier = UOp(Ops.BARRIER, dtypes.void, (*stores, *ranges))

  def _item(self) -> UOp:
    """The number of a work-item in its workgroup."""
    kernel = self._kernel
    assert kernel.unit_product is not None
    found, inner = UOp.special("lidx0", kernel.unit_product.unit.lanes), kernel.unit_product.unit.lanes
    specials = {u.arg.name: u for us in self._made.values() for m in us for u in m.toposort() if u.op is Ops.SPECIAL}
    for name in ("lidx1", "lidx2"):
      if (u := specials.get(name)) is not None: found, inner = found + u * inner, inner * u.arg.size
    return found

  def _outer(self, axis: UOp) -> UOp:
    """An axis at the first line or step of the tile."""
    parts, found, inner = self._kernel.parts[axis], UOp.const(dtypes.index, 0), 1
    for i, (part, u) in reversed([*enumerate(zip(parts, self._made[axis]))]):
      if i == self._kernel.rest(axis): found = found + u * inner
      inner *= int(part.size)
    return found

  def _copy(self, memory: UOp, tile: Tile, i: UOp, j: UOp) -> UOp:
    """The store of a tile by all work-items: number `j` of its vector `i`."""
    v, piece = tile.vector, i * work_items(self._kernel) + self._item()
    if tile.along: line, step = piece // (tile.steps // v), piece % (tile.steps // v) * v + j
    else: line, step = piece // tile.steps * v + j, piece % tile.steps
    at = {tile.axis: simplify(self._outer(tile.axis) + line), self._along: simplify(self._outer(self._along) + step)}
    value = substituted(tile.factor, at | self._others(tile), self._made, {}, {})[tile.factor]
    return memory.index(simplify(self._turn * tile.size + line * tile.pitch + step)).store(value)

  def _others(self, tile: Tile) -> dict[UOp, UOp]:
    """Axes that a factor follows beside its tile's: a batch's, other sums'."""
    found = {}
    for axis, parts in self._kernel.parts.items():
      if axis is tile.axis or axis is self._along: continue
      total, inner = UOp.const(dtypes.index, 0), 1
      for part, u in reversed(list(zip(parts, self._made[axis]))): total, inner = total + u * inner, inner * part.size
      found[axis] = simplify(total)
    return found

  def number(self, axis: UOp, line: UOp, step: UOp) -> UOp:
    """A number of the tile of an axis."""
    memory, tile = self._memory[axis]
    return memory.index(simplify(self._turn * tile.size + line * tile.pitch + step)).load(self._barrier)
