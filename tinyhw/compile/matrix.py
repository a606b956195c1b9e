"""The option TC: the innermost blocks of a product are computed by a matrix unit of a wave.

An output axis that one factor follows gives the rows, one that the other follows the columns, the reduction the steps.
Each lane gathers its row of the first and its column of the second factor as vectors (`units` says which numbers), and
holds some results of its column, which are stores of their own.
"""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tinyhw.compile import warpgroup
from tinyhw.compile.axes import AxisPart, substituted
from tinyhw.compile.legalize import from_bits
from tinyhw.compile.product import Product, parts_of
from tinyhw.compile.program import Opt, OptKind
from tinyhw.compile.stage import Staged
from tinyhw.compile.units import available
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.matrix import Digit, Digits, MatrixUnit, total
from tinyhw.ir.semantics import SMALL
from tinyhw.ir.symbolic import simplify
from tinyhw.ir.uop import Axis, Ops, UOp, VariableArg

if TYPE_CHECKING:
  from tinyhw.compile.kernel import Kernel

_RESULTS = {d: UOp(Ops.DEFINE_VAR, d, (), VariableArg("result of a matrix unit", -1 << 31, (1 << 31) - 1))
            for d in (dtypes.float32, dtypes.int32)}


def result(product: Product) -> UOp:
  """Stands for the product until the stores of a lane's results are made."""
  return _RESULTS[product.unit.output]


def fitting(kernel: Kernel, opt: Opt) -> Product:
  """Splits the axes for a unit; InvalidArgument where the kernel or the target has no such product."""
  found = find(kernel, opt.axis)
  if opt.kind is OptKind.WARPGROUP and not isinstance(found, str): found = warpgroup.fitting(kernel, found, opt.amount)
  if isinstance(found, str): raise InvalidArgument(f"{opt}: {found}")
  if found.whole: return found
  unit = found.unit
  neighbours = [a for a in kernel.accesses if not a.is_store and a.steps.get(found.columns) == 1]
  by_lanes = unit.lanes > 1 and all(d.of_lane for d in unit.c[1])
  if by_lanes and neighbours:
    wide = next(n for n in (4, 2, 1) if kernel.left(found.columns) % (n * unit.columns) == 0)
    found = replace(found, columns_a_lane=wide)
  several = [AxisPart(found.columns_a_lane, Axis.UPCAST)] if found.columns_a_lane > 1 else []
  for axis, size, parts in ((found.rows, unit.rows, parts_of(unit.c[0])),
                            (found.columns, unit.columns * found.columns_a_lane, [*parts_of(unit.c[1]), *several]),
                            (found.steps, unit.steps, [AxisPart(unit.steps, Axis.UNROLL)])):
    kernel.parts[axis][0].size //= size
    kernel.parts[axis] += parts
  return found


def _in(factor: UOp, unit: MatrixUnit) -> UOp | None:
  """A factor in the unit's type: what is cast from it, and the bits of a bfloat16 or of a float of 8 bits."""
  if factor.dtype is unit.inputs: return factor
  if factor.op is Ops.CAST and factor.src[0].dtype is unit.inputs: return factor.src[0]
  if unit.inputs in SMALL:
    loads = [u for u in factor.toposort() if u.op in (Ops.LOAD, Ops.WHERE) and u.dtype is unit.inputs.bits_type]
    return next((u for u in loads if simplify(from_bits(u, unit.inputs)) is factor), None)
  if unit.inputs is not dtypes.bfloat16 or factor.op is not Ops.BITCAST: return None
  shifted = factor.src[0]
  if shifted.op is Ops.SHL and shifted.src[1].op is Ops.CONST: by = 1 << int(shifted.src[1].arg)
  elif shifted.op is Ops.MUL and shifted.src[1].op is Ops.CONST: by = int(shifted.src[1].arg)
  else: return None
  wide = shifted.src[0]
  fits = by == 1 << 16 and wide.op is Ops.CAST and wide.src[0].dtype is dtypes.uint16
  return wide.src[0] if fits else None


def find(kernel: Kernel, steps: int | None = None) -> Product | str:
  """The product that a unit of the target can compute, over the axis of that number; or why there is none."""
  units = available(kernel.renderer)
  if not units: return f"target {kernel.renderer.target} has no matrix units"
  if not kernel.locals: return "NOLOCALS came before"
  if kernel.unit_product is not None: return "a matrix unit is used already"
  reductions = [u for u in kernel.sink.toposort() if u.op is Ops.REDUCE]
  if len(reductions) != 1 or reductions[0].arg is not Ops.ADD: return "the kernel is not one sum"
  body = reductions[0].src[0]
  if body.op is not Ops.MUL: return "the sum is not of products"
  able = [u for u in units if body.dtype is u.output and all(_in(s, u) is not None for s in body.src)]
  if not able: return f"no unit multiplies {_from(body.src[0])} to {body.dtype}"
  if kernel.product(Axis.UPCAST, Axis.UNROLL, Axis.LOCAL, Axis.GROUP) > 1: return "a unit's blocks come first"
  def fits(r: UOp, size: int) -> bool: return len(kernel.parts[r]) == 1 and kernel.left(r) % size == 0
  first, second = body.src
  follow = [r for r in reductions[0].src[1:] if r in first.ranges and r in second.ranges
            and steps in (None, r.arg.axis)]
  unit = next((u for u in able if any(fits(r, u.steps) for r in follow)), able[-1])  # the deeper ones come first
  summed = [r for r in follow if fits(r, unit.steps)]
  if not summed: return f"no axis of the reduction is a multiple of {unit.steps} that both factors follow"
  stores = [a for a in kernel.accesses if a.is_store]
  best: tuple[tuple[int, int], Product] | None = None
  for a, b in ((first, second), (second, first)):
    for rows in kernel.outputs:
      for columns in kernel.outputs:
        if not fits(rows, unit.rows) or not fits(columns, unit.columns): continue
        if rows in b.ranges or columns in a.ranges: continue
        if rows not in a.ranges or columns not in b.ranges: continue
        # Lanes store neighbours; the axis that walks memory is summed.
        walks = sum(s.steps.get(columns) == 1 for s in stores)
        along = max(summed, key=lambda r: sum(s.steps.get(r) == 1 for s in kernel.accesses))
        rank = (walks, kernel.left(rows) * kernel.left(columns))
        if best is None or rank > best[0]:
          left, right = _in(a, unit), _in(b, unit)
          assert left is not None and right is not None, "what a unit multiplies"
          best = rank, Product(unit, reductions[0], rows, columns, along, left, right)
  if best is not None: return best[1]
  return f"no two output axes are multiples of {unit.rows} and {unit.columns} with a factor each"


def _from(factor: UOp) -> object:
  """The type of a factor before it was cast."""
  return factor.src[0].dtype if factor.op is Ops.CAST else factor.dtype


def joined(kernel: Kernel, product: Product, sink: UOp, made: dict[UOp, list[UOp]], whole: dict[UOp, UOp],
           number: int) -> UOp:
  """The graph with the product's stores: one for each result of a lane. New ranges are numbered from `number` on."""
  unit = product.unit
  if product.whole: return _stores(product, sink, made, warpgroup.results(kernel, product, made))
  item = UOp.special("lidx0", unit.lanes) if unit.lanes > 1 else UOp.const(dtypes.index, 0)
  each, taken = product.columns_a_lane, _taken(product)
  block_range = made[product.steps][-1]
  loops = tuple(u for r in product.reduction.src[1:] for u in made[r] if u.op is Ops.RANGE and u is not block_range)
  staged = None
  if kernel.staged is not None:
    staged = Staged(kernel, made, [u for u in loops if u.arg.kind is Axis.REDUCE], number)
  def outside(axis: UOp) -> UOp:
    """An axis where its innermost parts are at 0; within a workgroup's tile, where there are tiles."""
    zero = UOp.const(dtypes.index, 0)
    found, inner, parts = zero, 1, kernel.parts[axis]
    for i, (part, u) in enumerate(reversed(list(zip(parts, made[axis])))):
      none = i < taken[axis] or staged is not None and len(parts) - 1 - i == kernel.rest(axis)
      found, inner = found + (zero if none else u) * inner, inner * part.size
    return found
  def digits(of: Digits, number: int) -> UOp:
    found = UOp.const(dtypes.index, total(tuple(d for d in of if not d.of_lane), 0, number))
    for d in of:
      if d.of_lane: found = found + item // d.divisor % d.size * d.step
    return found
  def fragment(factor: UOp, axes: tuple[UOp, UOp], layout: tuple[Digits, Digits]) -> list[UOp]:
    """A lane's numbers of a factor."""
    numbers = []
    for j in range(unit.held(layout)):
      at = dict(whole)
      for axis, of in zip(axes, layout):
        number = digits(of, j)
        if axis is product.columns and each > 1: number = number * each + made[axis][-1]
        at[axis] = simplify(outside(axis) + number)
      if staged is not None:
        line = product.rows if product.rows in axes else product.columns
        numbers.append(staged.number(line, at[line], at[product.steps]))
        continue
      gates = {r: simplify(at[r] < r.src[0]) for r in kernel.uneven()}
      found = substituted(factor, at, made, gates, {})[factor]
      numbers.append(gates[product.steps].where(found, 0) if product.steps in gates else found)
    return numbers
  a = fragment(product.a, (product.rows, product.steps), unit.a)
  b = fragment(product.b, (product.steps, product.columns), unit.b)
  results = _alone(unit, a, b, loops) if unit.lanes == 1 else _by_unit(unit, a, b, loops)
  return _stores(product, sink, made, results)


def _taken(product: Product) -> dict[UOp, int]:
  """How many parts of each axis are the unit's: the innermost."""
  rows, columns = product.unit.c
  return {product.rows: len(rows), product.columns: len(columns) + (product.columns_a_lane > 1), product.steps: 1}


def _stores(product: Product, sink: UOp, made: dict[UOp, list[UOp]], results: list[UOp]) -> UOp:
  """The graph with a store for each of a lane's results."""
  taken = _taken(product)
  numbers: list[tuple[UOp, Digit]] = []        # the ranges that count a lane's results
  for axis, of in zip((product.rows, product.columns), product.unit.c):
    own = sorted(of, key=lambda d: -d.step)
    numbers += [(u, d) for u, d in zip(made[axis][-taken[axis]:], own) if not d.of_lane]
  return UOp.sink(*(simplify(store.substitute({result(product): found, **{
    u: UOp.const(dtypes.index, i // d.divisor % d.size) for u, d in numbers}}))
                    for store in sink.src for i, found in enumerate(results)))


def _by_unit(unit: MatrixUnit, a: list[UOp], b: list[UOp], loops: tuple[UOp, ...]) -> list[UOp]:
  """A lane's results by the instruction."""
  zeros = UOp(Ops.VECTORIZE, unit.output.vec(unit.results), (UOp.const(unit.output, 0.0),) * unit.results)
  factors = tuple(UOp(Ops.VECTORIZE, x[0].dtype.vec(len(x)), tuple(x)) for x in (a, b))
  value = UOp(Ops.WMMA, zeros.dtype, (*factors, zeros), unit.name)
  total = UOp(Ops.REDUCE, value.dtype, (value, *loops), Ops.ADD) if loops else value
  return [total.gep(i) for i in range(unit.results)]


def _alone(unit: MatrixUnit, a: list[UOp], b: list[UOp], loops: tuple[UOp, ...]) -> list[UOp]:
  """A thread's results by its own arithmetic."""
  def wide(x: UOp) -> UOp:
    if unit.inputs is dtypes.bfloat16: return (x.cast(dtypes.uint32) << 16).bitcast(unit.output)
    return x if x.dtype is unit.output else x.cast(unit.output)
  left = {(total(unit.a[0], 0, j), total(unit.a[1], 0, j)): wide(x) for j, x in enumerate(a)}
  right = {(total(unit.b[0], 0, j), total(unit.b[1], 0, j)): wide(x) for j, x in enumerate(b)}
  results = []
  for i in range(unit.results):
    row, column = total(unit.c[0], 0, i), total(unit.c[1], 0, i)
    terms = [left[row, s] * right[s, column] for s in range(unit.steps)]
    value = terms[0]
    for term in terms[1:]: value = value + term
    results.append(UOp(Ops.REDUCE, value.dtype, (value, *loops), Ops.ADD) if loops else value)
  return results
