"""Sums that pick one element become loads: sum over k of where(place == k, x[k], 0) is x[place], where that is an x.

So indexing by a tensor reads what it names, and no tensor of all comparisons is ever computed. A place that is outside
of the axis picks nothing: the load has a gate.

The tensor graph has indexing as a comparison with all positions.
"""
from __future__ import annotations

from tinyhw.ir.dtype import can_cast_losslessly, dtypes
from tinyhw.ir.rewrite import PatternMatcher, UPat, graph_rewrite
from tinyhw.ir.symbolic import linear
from tinyhw.ir.uop import Ops, UOp


def _terms(condition: UOp) -> list[UOp]:
  """What an AND joins."""
  if condition.op is not Ops.AND: return [condition]
  return [t for s in condition.src for t in _terms(s)]


def _place(match: UOp, counter: UOp) -> UOp | None:
  """The number that the counter has to have for two integers to be equal; None where that is not known before."""
  if match.op is not Ops.CMPEQ or not match.src[0].dtype.is_int: return None
  for counted, wanted in (match.src, match.src[::-1]):
    if counter in wanted.ranges: continue
    inner = counted
    while inner.op is Ops.CAST and inner.src[0].dtype.is_int and can_cast_losslessly(inner.src[0].dtype, inner.dtype):
      inner = inner.src[0]
    if inner.dtype is not dtypes.index or not wanted.dtype.is_signed or wanted.dtype.bits < 32: continue
    terms, constant = linear(inner)
    if terms != {counter: 1}: continue
    # What wraps by taking the constant away is not in the axis: both are far from the type's ends.
    if abs(constant) + int(counter.src[0].vmax) > dtypes.index.max: continue
    return wanted - constant if constant else wanted
  return None


def _moved(value: UOp, counter: UOp, at: UOp, inside: UOp) -> UOp:
  """A value with the counter's number known; its loads that depend on it have `inside` as a gate."""
  done: dict[UOp, UOp] = {counter: at}
  for u in value.toposort(lambda v: v is not counter):
    if u in done: continue
    src = tuple(done.get(s, s) for s in u.src)
    if src == u.src:
      done[u] = u
      continue
    if u.op is Ops.INDEX: src = (src[0], src[1], inside if len(src) == 2 else src[2] & inside)
    if u.op is Ops.LOAD and len(src) == 1: src = (src[0], UOp.const(u.dtype, 0))
    done[u] = UOp(u.op, u.dtype, src, u.arg)
  return done[value]


def _picks(u: UOp) -> UOp | None:
  """A REDUCE of which one step at most gives anything, without that loop."""
  body, casts = u.src[0], []
  while body.op is Ops.CAST and body.dtype.kind is body.src[0].dtype.kind:
    casts.append(body.dtype)
    body = body.src[0]
  if u.arg is Ops.ADD and body.op is Ops.WHERE and body.src[2].op is Ops.CONST and body.src[2].arg == 0:
    condition, picked, nothing = body.src
  elif u.arg is Ops.MAX and u.dtype.is_bool and body.op is Ops.AND:
    condition, picked, nothing = body, UOp.const(dtypes.bool, True), UOp.const(dtypes.bool, False)
  else: return None
  parts = _terms(condition)
  for counter in u.src[1:]:
    for match in parts:
      if (place := _place(match, counter)) is None: continue
      inside = (place >= 0) & (place < counter.src[0].cast(place.dtype))
      at = place.cast(dtypes.index)
      found = inside
      for other in parts:
        if other is not match: found = found & _moved(other, counter, at, inside)
      value = found.where(_moved(picked, counter, at, inside), nothing)
      for dtype in reversed(casts): value = value.cast(dtype)
      rest = tuple(r for r in u.src[1:] if r is not counter)
      if rest: return UOp(Ops.REDUCE, u.dtype, (value, *rest), u.arg)
      # The other steps add their zeros: -0.0 + 0.0 is 0.0.
      return value + 0.0 if u.dtype.is_float and str(nothing.arg) == "0.0" else value
  return None


_rules = PatternMatcher([(UPat(Ops.REDUCE, "u"), _picks)])


def fold_picks(sink: UOp) -> UOp:
  """The lowered kernel with such sums as loads."""
  if not any(u.op is Ops.REDUCE for u in sink.toposort()): return sink
  return graph_rewrite(sink, _rules)
