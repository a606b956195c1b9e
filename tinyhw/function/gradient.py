"""Reverse-mode differentiation of the tensor graph: the derivative of each operation, as more graph.

`gradients(root, seed, targets)` walks from `root` back to the `targets` and sums what reaches each.
Functions of integers and bools, comparisons, TRUNC and DETACH let nothing through. Where MAX meets a tie,
both sides get half.

Where a derivative is known better than the graph has it, a DETACH carries it (`_with_derivative` of
`function/core.py`).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.function.movement import iota
from tinyhw.function.places import picked
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import ScatterArg, UOp

Rule = Callable[[UOp, UOp], tuple[UOp | None, ...]]
"""(gradient of the result, node) -> gradient of each source; None: nothing goes there."""

_RULES: dict[Ops, Rule] = {}


def _rule(*ops: Ops) -> Callable[[Rule], Rule]:
  def register(rule: Rule) -> Rule:
    for op in ops:
      if op in _RULES: raise TypeError(f"{op} has two derivatives")
      _RULES[op] = rule
    return rule
  return register


def carries_gradient(u: UOp) -> bool:
  """Whether a gradient may come to the node: not to a DETACH, unless it says derivatives, or is a leaf."""
  return u.op is not Ops.DETACH or len(u.src) > 1 or u.arg is not None


def _like(u: UOp, value: float) -> UOp: return UOp.const(u.dtype, value, u.device, u.shape)


@_rule(Ops.TRUNC, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.IDIV, Ops.MOD, Ops.XOR, Ops.OR, Ops.AND, Ops.SHL,
       Ops.SHR,
       Ops.BITCAST, Ops.CONST, Ops.BUFFER, Ops.DEVICE, Ops.DEFINE_VAR)
def _nothing(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (None,) * len(u.src)

@_rule(Ops.DETACH)
def _detach(g: UOp, u: UOp) -> tuple[UOp | None, ...]:
  if u.arg == "one way":
    raise InvalidArgument("a gradient through a decomposition or solution of tensors of which nobody had said that "
                          "they learn", hint="call requires_grad_() on them before")
  return (None, *(way for derivative in u.src[2::2] for way in (g * derivative, None)))

@_rule(Ops.ADD)
def _add(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return g, g

@_rule(Ops.SUB)
def _sub(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return g, -g

@_rule(Ops.NEG)
def _neg(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (-g,)

@_rule(Ops.MUL)
def _mul(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return g * u.src[1], g * u.src[0]

@_rule(Ops.MULACC)
def _mulacc(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return g * u.src[1], g * u.src[0], g

@_rule(Ops.FDIV)
def _fdiv(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return g / u.src[1], -(g * u) / u.src[1]

@_rule(Ops.RECIP)
def _recip(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (-(g * u * u),)

@_rule(Ops.EXP2)
def _exp2(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g * u * _like(u, math.log(2)),)

@_rule(Ops.LOG2)
def _log2(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g / (u.src[0] * _like(u, math.log(2))),)

@_rule(Ops.EXP)
def _exp(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g * u,)

@_rule(Ops.EXPM1)
def _expm1(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g * u.src[0].alu(Ops.EXP),)

@_rule(Ops.LOG)
def _log(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g / u.src[0],)

@_rule(Ops.LOG10)
def _log10(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g / (u.src[0] * _like(u, math.log(10))),)

@_rule(Ops.LOG1P)
def _log1p(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g / (u.src[0] + _like(u, 1.0)),)

@_rule(Ops.SIN)
def _sin(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g * u.src[0].alu(Ops.COS),)

@_rule(Ops.COS)
def _cos(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (-(g * u.src[0].alu(Ops.SIN)),)

@_rule(Ops.TANH)
def _tanh(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g * (_like(u, 1.0) - u * u),)

@_rule(Ops.FMOD)
def _fmod(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return g, -(g * (u.src[0] / u.src[1]).alu(Ops.TRUNC))

@_rule(Ops.POW)
def _pow(g: UOp, u: UOp) -> tuple[UOp | None, ...]:
  x, y = u.src
  none = _like(u, 0.0)
  # A power of 0 does not change with the exponent, and one whose exponent is 0 not with the base.
  by_base = y.eq(0.0).where(none, g * y * x.alu(Ops.POW, y - _like(u, 1.0)))
  still = x.eq(0.0).alu(Ops.AND, y.eq(0.0).alu(Ops.OR, none < y))
  return by_base, still.where(none, g * u * x.alu(Ops.LOG))

@_rule(Ops.SQRT)
def _sqrt(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g / (u * _like(u, 2.0)),)

@_rule(Ops.MAX)
def _max(g: UOp, u: UOp) -> tuple[UOp | None, ...]:
  a, b = u.src
  none, half = _like(g, 0.0), g * _like(g, 0.5)
  tie = a.eq(b).where(half, none)
  return (b < a).where(g, tie), (a < b).where(g, tie)

@_rule(Ops.WHERE)
def _where(g: UOp, u: UOp) -> tuple[UOp | None, ...]:
  none = _like(g, 0.0)
  return None, u.src[0].where(g, none), u.src[0].where(none, g)

@_rule(Ops.CAST)
def _cast(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g.cast(u.src[0].dtype),)

@_rule(Ops.CONTIGUOUS)
def _same(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g,)

@_rule(Ops.ASSIGN)
def _assign(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return None, g

@_rule(Ops.COPY, Ops.SHARD)
def _copy(g: UOp, u: UOp) -> tuple[UOp | None, ...]:
  return (g.copy_to(u.src[0].device) if u.src[0].device is not None else None,)

@_rule(Ops.RESHAPE)
def _reshape(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g.reshape(u.src[0].shape),)

@_rule(Ops.PERMUTE)
def _permute(g: UOp, u: UOp) -> tuple[UOp | None, ...]:
  return (g.permute(tuple(u.arg.index(i) for i in range(len(u.arg)))),)

@_rule(Ops.EXPAND)
def _expand(g: UOp, u: UOp) -> tuple[UOp | None, ...]:
  # 16-bit floats sum in float32, as Tensor.sum does.
  axes = [i for i, (old, new) in enumerate(zip(u.src[0].shape, u.shape)) if old != new]
  wide = dtypes.float32 if g.dtype.bits < 32 else g.dtype
  return (g.cast(wide).reduce(Ops.ADD, axes).cast(g.dtype),)

@_rule(Ops.PAD)
def _pad(g: UOp, u: UOp) -> tuple[UOp | None, ...]:
  return (g.shrink(tuple((before, before + s) for (before, _), s in zip(u.arg, u.src[0].shape))),)

@_rule(Ops.SHRINK)
def _shrink(g: UOp, u: UOp) -> tuple[UOp | None, ...]:
  return (g.pad(tuple((start, s - stop) for (start, stop), s in zip(u.arg, u.src[0].shape))),)

@_rule(Ops.FLIP)
def _flip(g: UOp, u: UOp) -> tuple[UOp | None, ...]: return (g.flip(u.arg),)

@_rule(Ops.REDUCE_AXIS)
def _reduce(g: UOp, u: UOp) -> tuple[UOp | None, ...]:
  op, axes = u.arg
  x = u.src[0]
  if op is Ops.ADD: return (g.expand(x.shape),)
  if op is Ops.MAX:
    top = x.eq(u.expand(x.shape))
    ties = top.cast(g.dtype).reduce(Ops.ADD, axes)
    return (top.where((g / ties).expand(x.shape), _like(x, 0.0)),)
  return (g.expand(x.shape) * _product_of_others(x, axes),)


@_rule(Ops.GATHER)
def _gather(g: UOp, u: UOp) -> tuple[UOp | None, ...]:
  _, table, index = u.src
  if index.dtype is not dtypes.int32:
    end = iota(table.shape[u.arg] + 1, table.device or "").shrink(((table.shape[u.arg], table.shape[u.arg] + 1),))
    end = end.cast(index.dtype).reshape((1,) * len(index.shape)).expand(index.shape)
    inside = (index < _like(index, 0)).logical_not().alu(Ops.AND, index < end)
    index = inside.where(index, _like(index, -1)).cast(dtypes.int32)
  # Small floats sum in float32, as Tensor.sum does.
  wide = dtypes.float32 if g.dtype.bits < 32 else g.dtype
  none = UOp.const(wide, 0, table.device, table.shape)
  return None, none.scatter(index, g.cast(wide), ScatterArg(u.arg, Ops.ADD)).cast(g.dtype), None


@_rule(Ops.SCATTER)
def _scatter(g: UOp, u: UOp) -> tuple[UOp | None, ...]:
  (table, index, _), how = u.src, u.arg
  if how.before and how.op is Ops.ADD:
    # What was added counts for all that come later: the same from the other end.
    turned = tuple(i == how.axis for i in range(len(g.shape)))
    none = _like(table, 0)
    back = none.scatter(index.flip(turned), g.flip(turned), how).flip(turned)
    return none.scatter(index, g, how._replace(before=False)), None, back
  if how.op is Ops.ADD: return g, None, picked(g, index, how.axis)
  if how.op is not None or how.before: raise Unsupported("derivative", f"SCATTER by {how}")
  slopes = picked(g, index, how.axis)
  if not how.unique:      # the last one of a place is what has come there
    numbers = iota(index.shape[how.axis], u.device or "")
    numbers = numbers.reshape(tuple(s if i == how.axis else 1 for i, s in enumerate(index.shape))).expand(index.shape)
    last = UOp.const(dtypes.int32, 0, u.device, table.shape).scatter(index, numbers, how)
    slopes = picked(last, index, how.axis).eq(numbers).where(slopes, _like(slopes, 0))
  return g.scatter(index, _like(slopes, 0), how), None, slopes


def _product_of_others(x: UOp, axes: tuple[int, ...]) -> UOp:
  """For each element the product of all others along the axes: no division, so that zeros are exact."""
  kept = [i for i in range(len(x.shape)) if i not in axes]
  order = tuple(kept + list(axes))
  moved = x.permute(order)
  outer = tuple(x.shape[i] for i in kept)
  n = math.prod(x.shape[i] for i in axes)
  flat = moved.reshape(outer + (1, n)).expand(outer + (n, n))
  # An n*n identity: a row of one 1 and n zeros, repeated and cut, shifts by one in each line.
  line = UOp.const(dtypes.bool, True, x.device, (1, 1)).pad(((0, 0), (0, n))).expand((n, n + 1))
  unit = line.reshape((n * (n + 1),)).shrink(((0, n * n),)).reshape((1,) * len(outer) + (n, n)).expand(outer + (n, n))
  others = unit.where(_like(flat, 1.0), flat).reduce(Ops.MUL, (len(outer) + 1,))
  back = tuple(order.index(i) for i in range(len(order)))
  return others.reshape(moved.shape).permute(back)


def _derivable(u: UOp) -> UOp:
  """A DETACH that says derivatives, which are values without a history: the same with derivatives that are functions of
  what they are derivatives by, and of the value itself, so that they have derivatives in their turn."""
  if u.arg == "once": raise Unsupported("second derivative", "qr or svd")
  if u.arg == "one way": return u
  seen = {x.detach(): x for x in u.src[1::2]} | {u.src[0]: u}
  ways = (way for x, derivative in zip(u.src[1::2], u.src[2::2]) for way in (x, derivative.substitute(seen)))
  return UOp(Ops.DETACH, u.dtype, (u.src[0], *ways))


def gradients(root: UOp, seed: UOp, targets: Iterable[UOp], again: bool = False) -> dict[UOp, UOp]:
  """The gradient of `root` for each of the targets that it depends on; `seed` is the gradient of root itself. If they
  will be derived `again`, all of them is a function of the targets."""
  wanted = set(targets)
  order = root.toposort(carries_gradient)
  carries: set[UOp] = set()
  for u in order:
    if u in wanted or not carries.isdisjoint(u.src): carries.add(u)
  found: dict[UOp, UOp] = {root: seed}
  for u in reversed(order):
    if u not in carries or u not in found or u in wanted and carries.isdisjoint(u.src): continue
    if (rule := _RULES.get(u.op)) is None: raise Unsupported("derivative", u.op.name)
    derived = _derivable(u) if again and u.op is Ops.DETACH else u
    for source, g in zip(u.src, rule(found[u], derived)):
      if g is None or source not in carries or not source.dtype.is_float: continue
      found[source] = found[source] + g if source in found else g
  return {t: found[t] for t in wanted if t in found}
