"""Ranges of kind VECTOR become lanes: what depends on one is a vector, all else stays a scalar that lanes share.

An access that walks memory one element a lane is a vector LOAD or STORE; one that goes about it otherwise has an index
for each lane. A reduction over lanes accumulates a vector, whose halves are joined at the end: in an order that depends
on the number of lanes only.
"""
from __future__ import annotations

from tinyhw.ir.dtype import dtypes
from tinyhw.ir.symbolic import linear, simplify
from tinyhw.ir.uop import Axis, Ops, UOp


def vector_of(u: UOp) -> UOp | None:
  """The VECTOR range that a value depends on; the optimizer sees to it that there is one at most."""
  return next((r for r in u.ranges if r.op is Ops.RANGE and r.arg.kind is Axis.VECTOR), None)


def broadcast(u: UOp, count: int) -> UOp:
  """A vector of that many equal lanes; a vector stays what it is."""
  return u if u.dtype.count > 1 or count == 1 else UOp(Ops.VECTORIZE, u.dtype.vec(count), (u,) * count)


def fold(op: Ops, vector: UOp) -> UOp:
  """All lanes reduced to one: the lower half with the upper half, and so on; an odd lane comes last."""
  count = vector.dtype.count
  if count == 1: return vector
  half = count // 2
  low, high = vector.gep(tuple(range(half))), vector.gep(tuple(range(half, 2 * half)))
  joined = fold(op, low.alu(op, high))
  return joined.alu(op, vector.gep(count - 1)) if count % 2 else joined


class _Widener:
  def __init__(self) -> None:
    self.done: dict[UOp, UOp] = {}
    self.simplified: dict[UOp, UOp] = {}

  def index(self, u: UOp) -> UOp:
    """INDEX: by a scalar where the lanes are neighbours, else by a vector."""
    pointer, i = u.src[:2]
    gate = self.done[u.src[2]] if len(u.src) > 2 else None
    lanes = vector_of(i)
    if lanes is None:
      at = self.done[i]
      if gate is not None and gate.dtype.count > 1: at = broadcast(at, gate.dtype.count)
      return self.done[pointer].index(at, gate)
    terms, _ = linear(i)
    if terms.get(lanes) == 1 and not any(lanes in t.ranges for t in terms if t is not lanes):
      first = simplify(i.substitute({lanes: UOp.const(dtypes.index, 0)}), self.simplified)
      return self.done[pointer].index(first, gate)
    return self.done[pointer].index(self.done[i], gate)

  def reduce(self, u: UOp) -> UOp:
    """REDUCE, over lanes and loops."""
    lanes = next((r for r in u.src[1:] if r.arg.kind is Axis.VECTOR), None)
    value, loops = self.done[u.src[0]], tuple(r for r in u.src[1:] if r is not lanes)
    if lanes is not None: value = broadcast(value, int(lanes.src[0].arg))
    total = UOp(Ops.REDUCE, value.dtype, (value, *loops), u.arg) if loops else value
    return total if lanes is None else fold(u.arg, total)

  def make(self, u: UOp) -> UOp:
    """The node with its sources widened."""
    if u.op is Ops.REDUCE: return self.reduce(u)
    if u.op is Ops.INDEX: return self.index(u)
    if u.op is Ops.RANGE and u.arg.kind is Axis.VECTOR:
      lanes = tuple(UOp.const(u.dtype, i) for i in range(int(u.src[0].arg)))
      return UOp(Ops.VECTORIZE, u.dtype.vec(len(lanes)), lanes)
    src = tuple(self.done[s] for s in u.src)
    if u.op is Ops.BARRIER: src = tuple(s for s in src if s.op is Ops.STORE or s.op is Ops.RANGE)
    if u.op in (Ops.LOAD, Ops.STORE):
      # A LOAD is of as many lanes as its place has; a STORE to one place is of one lane, whatever it stores.
      lane_range = vector_of(u)
      count = int(lane_range.src[0].arg) if lane_range is not None else 1
      if u.op is Ops.STORE: return u.replace(src=(src[0], broadcast(src[1], count), *src[2:]))
      rest = tuple(s if s.op is Ops.BARRIER else broadcast(s, count) for s in src[1:])
      return UOp(Ops.LOAD, u.dtype.vec(count), (src[0], *rest))
    if u.op in (Ops.BARRIER, Ops.SINK) or not src or all(s is t for s, t in zip(src, u.src)):
      return u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
    count = max(s.dtype.count for s in src)
    return UOp(u.op, u.dtype.vec(count), tuple(broadcast(s, count) for s in src), u.arg)


def widen(sink: UOp) -> UOp:
  """The graph without VECTOR ranges."""
  nodes = sink.toposort()
  if not any(u.op is Ops.RANGE and u.arg.kind is Axis.VECTOR for u in nodes): return sink
  widener = _Widener()
  for u in nodes: widener.done[u] = widener.make(u)
  return widener.done[sink]
