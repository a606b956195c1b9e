"""What an operation gives, from what its sources are: a movement's shape, the bounds of an integer or bool."""
from __future__ import annotations

import math
from typing import Any

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.semantics import Scalar

MOST_ELEMENTS = (1 << 63) - 1


def counted(shape: tuple[int, ...]) -> tuple[int, ...]:
  """The shape, if 64 bits number its elements; sizes of 0 count as 1, so that all sizes and strides have bounds."""
  if math.prod([s for s in shape if type(s) is int and s > 1]) > MOST_ELEMENTS:
    large = [f"{s}" if type(s) is not int or s <= MOST_ELEMENTS else f"2**{s.bit_length() - 1} or more" for s in shape]
    raise InvalidShape(f"shape ({', '.join(large)}) has more than 2**63 - 1 elements", hint="no memory holds so many")
  return shape


def movement_shape(op: Ops, shape: tuple[int, ...], arg: tuple[Any, ...]) -> tuple[int, ...]:
  """The shape after a movement operation; ValueError when its argument does not fit the shape."""
  def refuse(why: str) -> InvalidArgument: return InvalidArgument(f"{op.name} {arg} of shape {shape}: {why}")
  if op is Ops.RESHAPE:
    if any(s < 0 for s in arg) or math.prod(arg) != math.prod(shape): raise refuse("the number of elements differs")
    return counted(arg) if 0 in arg else arg  # else it has as many as before
  if len(arg) != len(shape): raise refuse(f"needs {len(shape)} entries")
  if op is Ops.PERMUTE:
    if sorted(arg) != list(range(len(shape))): raise refuse("not a permutation of the axes")
    return tuple(shape[i] for i in arg)
  if op is Ops.EXPAND:
    if any(old not in (1, new) for old, new in zip(shape, arg)): raise refuse("only axes of size 1 expand")
    return counted(arg)
  if op is Ops.PAD:
    if any(before < 0 or after < 0 for before, after in arg): raise refuse("padding is negative")
    return counted(tuple(before + s + after for s, (before, after) in zip(shape, arg)))
  if op is Ops.SHRINK:
    if any(not 0 <= start <= stop <= s for s, (start, stop) in zip(shape, arg)): raise refuse("bounds outside the axis")
    return tuple(stop - start for start, stop in arg)
  return shape  # FLIP


def interval(op: Ops, dtype: DType, floats: bool, bounds: list[tuple[Scalar, Scalar]]) -> tuple[Scalar, Scalar]:
  """Bounds of an integer or bool operation before wrapping, from those of its sources; `floats`: the first one's dtype
  is a float."""
  whole = (dtype.min, dtype.max)
  if op in GroupOp.COMPARE:
    if floats: return whole
    (a, b), (c, d) = bounds
    if op is Ops.CMPLT: return b < c, a < d
    apart, equal = b < c or d < a, a == b == c == d
    return (apart, not equal) if op is Ops.CMPNE else (equal, not apart)
  if op is Ops.CAST and not floats:
    return (bounds[0][0] != 0 and bounds[0][0] > 0, bounds[0] != (0, 0)) if dtype.is_bool else bounds[0]
  if op is Ops.WHERE: return min(bounds[1][0], bounds[2][0]), max(bounds[1][1], bounds[2][1])
  if op is Ops.MAX: return max(bounds[0][0], bounds[1][0]), max(bounds[0][1], bounds[1][1])
  if dtype.is_bool:
    if op is Ops.AND or op is Ops.MUL: return bounds[0][0] and bounds[1][0], bounds[0][1] and bounds[1][1]
    if op is Ops.OR or op is Ops.ADD: return bounds[0][0] or bounds[1][0], bounds[0][1] or bounds[1][1]
    return whole
  if op is Ops.ADD: return bounds[0][0] + bounds[1][0], bounds[0][1] + bounds[1][1]
  if op is Ops.SUB: return bounds[0][0] - bounds[1][1], bounds[0][1] - bounds[1][0]
  if op is Ops.NEG: return -bounds[0][1], -bounds[0][0]
  if op is Ops.MUL:
    corners = [x * y for x in bounds[0] for y in bounds[1]]
    return min(corners), max(corners)
  if op is Ops.IDIV and (bounds[1][0] == bounds[1][1] != 0 or bounds[1][0] >= 0 and bounds[1][1] > 0):
    divisors = [int(d) or 1 for d in bounds[1]]
    corners = [semantics.trunc_div(int(x), d) for x in bounds[0] for d in divisors]
    if not bounds[1][0]: corners.append(0)                 # a quotient by 0 is 0
    return min(corners), max(corners)
  if op is Ops.MOD and bounds[1][0] >= 0 and bounds[1][1] > 0:
    (low, high), most = bounds[0], bounds[1][1] - 1
    if 0 <= low and high < bounds[1][0]: return low, high
    return (0 if low >= 0 else max(low, -most)), (0 if high <= 0 else min(high, most))
  if op is Ops.AND and (bounds[0][0] >= 0 or bounds[1][0] >= 0):
    return 0, min(b[1] for b in bounds if b[0] >= 0)
  if op is Ops.SHR and bounds[0][0] >= 0 and bounds[1][0] == bounds[1][1]:
    shift = int(bounds[1][0]) % dtype.bits
    return int(bounds[0][0]) >> shift, int(bounds[0][1]) >> shift
  return whole
