"""The option TC: the innermost blocks of a product are computed by a matrix unit of a wave.

An output axis that one factor follows gives the rows, one that the other follows the columns, the reduction the steps.
Each lane gathers its row of the first and its column of the second factor as vectors (`units` says which numbers), and
holds some results of its column, which are stores of their own. Where columns are neighbours in memory a lane has one
in each of two blocks, and the two are neighbours: a load brings a number for both, and a store takes one of each.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tinyhw.compile.program import Opt
from tinyhw.compile.units import MatrixUnit
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.symbolic import simplify
from tinyhw.ir.uop import Axis, Ops, UOp, VariableArg

if TYPE_CHECKING:
  from tinyhw.compile.kernel import Kernel

RESULT = UOp(Ops.DEFINE_VAR, dtypes.float32, (), VariableArg("result of a matrix unit", 0, 0))
"""Stands for the product until the stores of a lane's results are made."""


@dataclass(frozen=True)
class Product:
  """A reduction that a unit computes: axes, and factors in the unit's type, over the kernel's axes."""
  unit: MatrixUnit
  reduction: UOp
  rows: UOp
  columns: UOp
  steps: UOp
  a: UOp
  b: UOp
  columns_a_lane: int = 1  # neighbours that each lane has a column of, for as many blocks: a load serves all


def fitting(kernel: Kernel, opt: Opt) -> Product:
  """Splits the axes for a unit; InvalidArgument where the kernel or the target has no such product."""
  found = find(kernel, opt.axis)
  if isinstance(found, str): raise InvalidArgument(f"{opt}: {found}")
  unit = found.unit
  from tinyhw.compile.kernel import Part
  results, groups = Part(unit.results, Axis.UPCAST), Part(unit.groups, Axis.LOCAL, unit.size)
  block = [results, groups] if unit.step > unit.apart else [groups, results]
  neighbours = [a for a in kernel.accesses if not a.is_store and a.steps.get(found.columns) == 1]
  if neighbours and kernel.left(found.columns) % (2 * unit.size) == 0: found = replace(found, columns_a_lane=2)
  several = [Part(found.columns_a_lane, Axis.UPCAST)] if found.columns_a_lane > 1 else []
  for axis, parts in ((found.rows, block), (found.columns, [Part(unit.size, Axis.LOCAL, 1), *several]),
                      (found.steps, [Part(unit.size, Axis.UNROLL)])):
    kernel.parts[axis][0].size //= unit.size
    kernel.parts[axis] += parts
  kernel.parts[found.columns][0].size //= found.columns_a_lane
  return found


def find(kernel: Kernel, steps: int | None = None) -> Product | str:
  """The product that a unit of the target can compute, over the axis of that number; or why there is none."""
  if not kernel.renderer.units: return f"target {kernel.renderer.target} has no matrix units"
  if not kernel.locals: return "NOLOCALS came before"
  if kernel.unit_product is not None: return "a matrix unit is used already"
  reductions = [u for u in kernel.sink.toposort() if u.op is Ops.REDUCE]
  if len(reductions) != 1 or reductions[0].arg is not Ops.ADD: return "the kernel is not one sum"
  body = reductions[0].src[0]
  if body.op is not Ops.MUL or any(s.op is not Ops.CAST for s in body.src): return "the sum is not of products"
  unit = next((u for u in kernel.renderer.units if body.dtype is u.output
               and all(s.src[0].dtype is u.inputs for s in body.src)), None)
  if unit is None: return f"no unit multiplies {body.src[0].src[0].dtype} to {body.dtype}"
  if kernel.product(Axis.UPCAST, Axis.UNROLL, Axis.LOCAL, Axis.GROUP) > 1: return "a unit's blocks come first"
  def fits(r: UOp) -> bool: return len(kernel.parts[r]) == 1 and kernel.left(r) % unit.size == 0
  first, second = (s.src[0] for s in body.src)
  summed = [r for r in reductions[0].src[1:] if fits(r) and r in first.ranges and r in second.ranges]
  if steps is not None: summed = [r for r in summed if r.arg.axis == steps]
  if not summed: return f"no axis of the reduction is a multiple of {unit.size} that both factors follow"
  stores = [a for a in kernel.accesses if a.is_store]
  best: tuple[tuple[int, int], Product] | None = None
  for a, b in ((first, second), (second, first)):
    for rows in kernel.outputs:
      for columns in kernel.outputs:
        if not fits(rows) or not fits(columns) or rows in b.ranges or columns in a.ranges: continue
        if rows not in a.ranges or columns not in b.ranges: continue
        # Lanes store neighbours; the axis that walks memory is summed.
        walks = sum(s.steps.get(columns) == 1 for s in stores)
        along = max(summed, key=lambda r: sum(s.steps.get(r) == 1 for s in kernel.accesses))
        rank = (walks, kernel.left(rows) * kernel.left(columns))
        if best is None or rank > best[0]:
          best = rank, Product(unit, reductions[0], rows, columns, along, a, b)
  return best[1] if best is not None else f"no two output axes are multiples of {unit.size} with a factor each"


def joined(kernel: Kernel, product: Product, sink: UOp, made: dict[UOp, list[UOp]], whole: dict[UOp, UOp]) -> UOp:
  """The graph with the product's stores: one for each result of a lane."""
  from tinyhw.compile.kernel import substituted
  unit = product.unit
  lane = UOp.special("lidx0", unit.lanes)
  def outside(axis: UOp, block: int) -> UOp:
    """An axis where its innermost parts are at 0."""
    zero = UOp.const(dtypes.index, 0)
    total, inner = zero, 1
    for i, (part, u) in enumerate(reversed(list(zip(kernel.parts[axis], made[axis])))):
      total, inner = total + (zero if i < block else u) * inner, inner * part.size
    return total
  def fragment(factor: UOp, axis: UOp, block: int, each: int = 1) -> UOp:
    """A lane's numbers of a factor."""
    numbers = []
    for j in range(unit.held):
      step = outside(product.steps, 1) + lane // unit.size * unit.spread + j
      number = lane % unit.size
      if each > 1: number = number * each + made[axis][-1]
      at = {**whole, axis: simplify(outside(axis, block) + number), product.steps: simplify(step)}
      gates = {r: simplify(at[r] < r.src[0]) for r in kernel.uneven()}
      number = substituted(factor, at, made, gates, {})[factor]
      if product.steps in gates: number = gates[product.steps].where(number, 0)
      numbers.append(number)
    return UOp(Ops.VECTORIZE, unit.inputs.vec(unit.held), tuple(numbers))
  each = product.columns_a_lane
  zeros = UOp(Ops.VECTORIZE, unit.output.vec(unit.results), (UOp.const(unit.output, 0.0),) * unit.results)
  factors = fragment(product.a, product.rows, 2), fragment(product.b, product.columns, 1 + (each > 1), each)
  value = UOp(Ops.WMMA, zeros.dtype, (*factors, zeros), unit.name)
  block_range = made[product.steps][-1]
  loops = tuple(u for r in product.reduction.src[1:] for u in made[r] if u.op is Ops.RANGE and u is not block_range)
  total = UOp(Ops.REDUCE, value.dtype, (value, *loops), Ops.ADD) if loops else value
  number = next(u for part, u in zip(kernel.parts[product.rows][-2:], made[product.rows][-2:])
                if part.kind is Axis.UPCAST)
  return UOp.sink(*(simplify(store.substitute({RESULT: total.gep(i), number: UOp.const(dtypes.index, i)}))
                    for store in sink.src for i in range(unit.results)))
