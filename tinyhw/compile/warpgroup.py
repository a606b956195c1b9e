"""The option WARPGROUP: a workgroup computes a tile of a product by the matrix units of Hopper's warpgroups (`wgmma`),
which read both factors from local memory by themselves.

All steps of the reduction are one node of the program (`Ops.WGMMA`): copies of what comes later, and instructions that
multiply what has come, go on side by side, and a renderer lays them out. So the factors are plain memory, in lines of
128 bytes along the steps, or across them where numbers have 16 bits. Results lie as those of `mma` do, quads of lanes
with pairs of numbers (PTX ISA 9.7.15.5), and become stores of their own.
"""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tinyhw.arch.nv import NV_ARCHES
from tinyhw.compile.axes import AxisPart, substituted
from tinyhw.compile.product import Product, parts_of
from tinyhw.ir.dtype import AddressSpace, DType, PtrDType, dtypes
from tinyhw.ir.matrix import LINE_BYTES, MatrixUnit, Operand, TileProduct, lane, place
from tinyhw.ir.size import is_size
from tinyhw.ir.symbolic import linear, simplify
from tinyhw.ir.uop import Axis, Ops, UOp

if TYPE_CHECKING:
  from collections.abc import Mapping

  from tinyhw.compile.kernel import Kernel

COLUMNS: Final = (256, 192, 128, 64)  # of a tile: the option's amount
LANES: Final = 128
ROWS: Final = 64                      # of a warpgroup
_TYPES: Final = {dtypes.float16: "f32.f16.f16", dtypes.bfloat16: "f32.bf16.bf16", dtypes.float8_e4m3fn: "f32.e4m3.e4m3",
                 dtypes.int8: "s32.s8.s8"}
_STEP_BYTES: Final = 32               # of a line, which an instruction multiplies
_VECTOR: Final = 16                   # bytes that a work-item copies at once
_LOCAL: Final = NV_ARCHES["sm_90"].shared_per_block
_MOST_STAGES: Final = 8
_LEAST_STAGES: Final = 3              # one that is read, one that was, and one that is filled
_BAND: Final = 4                      # rows of tiles that follow each other: what they read alike stays in the cache


def unit(kind: DType, columns: int) -> MatrixUnit:
  """What a warpgroup multiplies in a loop: 64 rows, and so many steps as a line has."""
  rows, across = (lane(4, 8), place(2, 2, 8), lane(32, 4, 16)), (lane(1, 4, 2), place(1, 2), place(4, columns // 8, 8))
  steps = (place(1, LINE_BYTES // kind.itemsize),)
  name = f"wgmma.m64n{columns}k{_STEP_BYTES // kind.itemsize}.{_TYPES[kind]}"
  return MatrixUnit(name, LANES, (rows, steps), (steps, across), (rows, across), kind,
                    dtypes.int32 if kind is dtypes.int8 else dtypes.float32)


def fitting(kernel: Kernel, product: Product, columns: int) -> Product | str:
  """Splits the axes of a product for tiles of so many columns; or why there are none."""
  kind = product.unit.inputs
  if not kernel.renderer.warpgroups: return f"target {kernel.renderer.target} has no matrix units of warpgroups"
  if kind not in _TYPES or columns not in COLUMNS: return f"there are no tiles of {columns} columns of {kind}"
  if len(product.reduction.src) > 2: return "the sum is over several axes"
  if kernel.uneven() or any(is_size(p.size) for parts in kernel.parts.values() for p in parts):
    return "axes are padded, or launches decide their sizes"
  found = replace(product, unit=unit(kind, columns), whole=True)
  waves = 2 if kernel.left(found.rows) % (2 * ROWS) == 0 else 1
  sizes = {found.rows: waves * ROWS, found.columns: columns, found.steps: found.unit.steps}
  for axis, size in sizes.items():
    if kernel.left(axis) % size: return f"an axis of {kernel.left(axis)} is no multiple of {size}"
  for axis, factor in ((found.rows, found.a), (found.columns, found.b)):
    if isinstance(made := _operand(kernel, found, axis, factor, sizes[axis]), str): return made
  several = [AxisPart(waves, Axis.LOCAL)] if waves > 1 else []
  parts: dict[UOp, list[AxisPart]] = {found.rows: [*several, *parts_of(found.unit.c[0])],
                                      found.columns: parts_of(found.unit.c[1]),
                                      found.steps: [AxisPart(found.unit.steps, Axis.UNROLL)]}
  for axis, new in parts.items():
    kernel.parts[axis][0].size //= sizes[axis]
    kernel.parts[axis] += new
  return found


def _operand(kernel: Kernel, product: Product, axis: UOp, factor: UOp, count: int) -> Operand | str:
  """How memory has a factor; or why it is not to be copied as it is."""
  if factor.op is not Ops.LOAD or len(factor.src) > 1 or factor.src[0].src[0].op is not Ops.DEFINE_GLOBAL:
    return "a factor is not plain memory"
  access = next(a for a in kernel.accesses if a.index is factor.src[0])
  size, (terms, constant) = factor.dtype.itemsize, linear(factor.src[0].src[1])
  by_line, by_step = (access.steps.get(r, 0) for r in (axis, product.steps))
  along = by_step == 1
  if access.other or not along and (by_line != 1 or size != 2): return "a factor has no lines of neighbours"
  apart = [n for r, n in terms.items() if r is not (product.steps if along else axis)]
  if any(n * size % _VECTOR for n in (constant, *apart)): return "lines of a factor are not aligned"
  pitch, advance = (by_line if along else by_step) * size, product.unit.steps * by_step * size
  return Operand(along, count, pitch, advance) if min(pitch, advance) > 0 else "a factor is read backwards"


def regroup(kernel: Kernel, product: Product, made: dict[UOp, list[UOp]]) -> None:
  """Has workgroups that follow each other compute bands of some rows of tiles."""
  row, column = kernel.rest(product.rows), kernel.rest(product.columns)
  rows, columns = kernel.left(product.rows), kernel.left(product.columns)
  band = next(n for n in (_BAND, 2, 1) if rows % n == 0)
  number = made[product.rows][row] * columns + made[product.columns][column]
  made[product.rows][row] = simplify(number // (band * columns) * band + number % band)
  made[product.columns][column] = simplify(number % (band * columns) // band)


def results(kernel: Kernel, product: Product, made: dict[UOp, list[UOp]]) -> list[UOp]:
  """A lane's results."""
  lines = {axis: _inner(kernel, axis) for axis in (product.rows, product.columns)}
  operands = [_operand(kernel, product, axis, factor, lines[axis])
              for axis, factor in ((product.rows, product.a), (product.columns, product.b))]
  a, b = (o for o in operands if isinstance(o, Operand))
  waves = lines[product.rows] // ROWS
  plan = TileProduct(product.unit.name, a, b, product.unit.steps, kernel.left(product.steps), 0, waves * LANES)
  plan = replace(plan, stages=min((_LOCAL - plan.local_bytes) // plan.stage_bytes, _MOST_STAGES))
  assert plan.stages >= _LEAST_STAGES, "what the largest tiles leave room for"
  item = UOp.special("lidx0", LANES)
  if waves > 1: item = item + made[product.rows][kernel.rest(product.rows) + 1] * LANES
  vector = item % (LINE_BYTES // _VECTOR) * (_VECTOR // product.unit.inputs.itemsize)
  first = [_first(kernel, product, made, axis, factor, *((line, vector) if o.along else (vector, line)))
           for axis, factor, o in ((product.rows, product.a, a), (product.columns, product.b, b))
           for line in (item // (LINE_BYTES // _VECTOR),)]
  memory = UOp(Ops.DEFINE_LOCAL, dtypes.uint8.ptr(plan.local_bytes, AddressSpace.LOCAL), (), "tiles")
  value = UOp(Ops.WGMMA, product.unit.output.vec(product.unit.results), (*first, memory, simplify(item)), plan)
  return [value.gep(i) for i in range(product.unit.results)]


def _inner(kernel: Kernel, axis: UOp) -> int:
  """Steps of an axis that a workgroup has."""
  found = 1
  for i, part in enumerate(kernel.parts[axis]): found *= 1 if i == kernel.rest(axis) else int(part.size)
  return found


def _first(kernel: Kernel, product: Product, made: Mapping[UOp, list[UOp]], axis: UOp, factor: UOp, line: UOp,
           step: UOp) -> UOp:
  """The INDEX of a factor at a line of the tile and a step."""
  at: dict[UOp, UOp] = {}
  for r, parts in kernel.parts.items():
    total, inner = UOp.const(dtypes.index, 0), 1
    for i, (part, u) in reversed([*enumerate(zip(parts, made[r]))]):
      if r not in (axis, product.steps) or r is axis and i == kernel.rest(r): total = total + u * inner
      inner *= int(part.size)
    at[r] = simplify(total + (line if r is axis else step if r is product.steps else 0))
  found = substituted(factor, at, dict(made), {}, {})[factor].src[0]
  assert isinstance(found.dtype, PtrDType)
  return found
