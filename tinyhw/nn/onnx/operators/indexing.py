"""Operators of positions: gathering, scattering, selection."""
from __future__ import annotations

import math

import numpy as np

from tinyhw.ir.dtype import dtypes
from tinyhw.nn.onnx.run import Call
from tinyhw.nn.onnx.shapes import ints
from tinyhw.nn.onnx.table import Host, operator
from tinyhw.tensor.tensor import Tensor


def wrapped(index: Tensor, size: int) -> Tensor:
  """Positions counted from the end, from the front."""
  if not index.dtype.is_signed: return index
  return (index < 0).where(index + size, index)


@operator("Gather", 1, 11, 13)
def gather(op: Call, x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
  """The positions of an axis that the indices name (out of range: 0)."""
  op.mark(op.narrow(0))
  at = x._axis(axis)
  return x[(slice(None),) * at + (indices,)]


@operator("GatherElements", 11, 13)
def gather_elements(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
  return x.gather(axis, wrapped(indices, x.shape[x._axis(axis)]))


def _rows_of(x: Tensor, indices: Tensor, batch: int) -> tuple[Tensor, Tensor, int]:
  """(the input as rows, the row of each index tuple, how many axes a tuple names), for each batch."""
  depth = indices.shape[-1]
  lead = x.shape[batch:batch + depth]
  line: Tensor | None = None
  for i, size in enumerate(lead):
    part = wrapped(indices[..., i].cast(dtypes.int64), size)
    line = part if line is None else line * size + part
  if line is None: line = Tensor.zeros(*indices.shape[:-1], device=x.device, dtype=dtypes.int64)
  batches = math.prod(x.shape[:batch])
  rows = math.prod(lead)
  flat = line.reshape(batches, -1)
  if batch: flat = flat + (Tensor.arange(batches, device=x.device) * rows).unsqueeze(1)
  return x.reshape(batches * rows, math.prod(x.shape[batch + depth:])), flat.flatten(), depth


@operator("GatherND", 11, 12, 13)
def gather_nd(op: Call, x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
  if indices.ndim < 1 or batch_dims + indices.shape[-1] > x.ndim:
    raise op.wrong(f"indices of shape {indices.shape} for shape {x.shape} with {batch_dims} axes of batches")
  rows, line, depth = _rows_of(x, indices, batch_dims)
  return rows[line].reshape(*indices.shape[:-1], *x.shape[batch_dims + depth:])


_REDUCE = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _scattered(op: Call, x: Tensor, axis: int, indices: Tensor, updates: Tensor, reduction: str) -> Tensor:
  if reduction == "none": return x.scatter(axis, indices, updates)
  if reduction not in _REDUCE: raise op.wrong(f"reduction {reduction!r} is none of none, {', '.join(_REDUCE)}")
  return x.scatter_reduce(axis, indices, updates, _REDUCE[reduction], include_self=True)


@operator("Scatter", 9, 11)
def scatter(op: Call, x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0) -> Tensor:
  return _scattered(op, x, axis, wrapped(indices, x.shape[x._axis(axis)]), updates, "none")


@operator("ScatterElements", 11, 13, 16, 18)
def scatter_elements(op: Call, x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0,
                     reduction: str = "none") -> Tensor:
  return _scattered(op, x, axis, wrapped(indices, x.shape[x._axis(axis)]), updates, reduction)


@operator("ScatterND", 11, 13, 16, 18)
def scatter_nd(op: Call, x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
  if indices.ndim < 1 or indices.shape[-1] > x.ndim:
    raise op.wrong(f"indices of shape {indices.shape} for shape {x.shape}")
  rows, line, _ = _rows_of(x, indices, 0)
  wide = line.unsqueeze(1).expand(line.shape[0], rows.shape[1])
  return _scattered(op, rows, 0, wide, updates.reshape(line.shape[0], rows.shape[1]), reduction).reshape(x.shape)


@operator("TensorScatter", 24)
def tensor_scatter(op: Call, cache: Tensor, update: Tensor, write_indices: Tensor | None, *, axis: int = -2,
                   mode: str = "linear") -> Tensor:
  """A cache with other values from a position of each batch on; "circular" goes on at the beginning."""
  if mode not in ("linear", "circular"): raise op.wrong(f"mode {mode!r} is neither linear nor circular")
  at, count = cache._axis(axis), update.shape[update._axis(axis)]
  places = Tensor.arange(count, device=cache.device).reshape([-1 if i == at else 1 for i in range(cache.ndim)])
  if write_indices is not None: places = places + write_indices.reshape([-1] + [1] * (cache.ndim - 1))
  if mode == "circular": places = places % cache.shape[at]
  return cache.scatter(at, places.expand(update.shape).cast(dtypes.int64), update)


@operator("OneHot", 9, 11, 28)
def one_hot(op: Call, indices: Tensor, depth: Host, values: Tensor, *, axis: int = -1) -> Tensor:
  """`values` are (off, on)."""
  classes = ints(depth)[0]
  if indices.dtype.is_float: indices = indices.cast(dtypes.int64)
  at = axis + indices.ndim + 1 if axis < 0 else axis
  if not 0 <= at <= indices.ndim: raise op.wrong(f"axis {axis} of indices of shape {indices.shape}")
  places = Tensor.arange(classes,
                         device=indices.device).reshape([-1 if i == at else 1 for i in range(indices.ndim + 1)])
  return wrapped(indices, classes).unsqueeze(at).eq(places).where(values[1], values[0])


@operator("NonZero", 9, 13)
def non_zero(x: Tensor) -> Tensor:
  """Positions, an axis a row. How many there are is read."""
  found: Tensor = x.nonzero()
  return found.transpose(0, 1).cast(dtypes.int64)


@operator("Compress", 9, 11, 28)
def compress(x: Tensor, condition: Tensor, *, axis: int | None = None) -> Tensor:
  """The positions of an axis (of the flat input for none) where the condition is True. How many there are is read."""
  source, at = (x.flatten(), 0) if axis is None else (x, x._axis(axis))
  (places,) = condition.flatten().nonzero(as_tuple=True)
  return source[(slice(None),) * at + (places,)]


@operator("Unique", 11, 28)
def unique(op: Call, x: Tensor, *, axis: int | None = None, sorted: int = 1) -> tuple[Tensor, ...]:
  """Different elements, or different parts along an axis; the first place of each, which one each is, and how often
  it is.

  How many there are is read.
  """
  at = 0 if axis is None else x._axis(axis)
  rows = x.flatten().unsqueeze(1) if axis is None else x.movedim(at, 0).reshape(x.shape[at], -1)
  n, width = rows.shape
  places = Tensor.arange(n, device=x.device)
  left, right = rows.unsqueeze(1), rows.unsqueeze(0)
  same = left.eq(right).all(-1)                                                       # (n, n)
  first = same.where(places, n).min(1)                                                # the first place of an equal one
  if sorted:
    # A row's rank: how many of the first ones are less; the first column that differs decides.
    columns = Tensor.arange(width, device=x.device)
    differs = left.ne(right).where(columns, width).min(-1)                            # (n, n)
    decides = columns.eq(differs.unsqueeze(-1))
    less = (decides & (right < left)).any(-1)                                         # other < this
    chief = first.eq(places)
    rank = (less & chief.unsqueeze(0)).sum(1)
  else:
    chief = first.eq(places)
    rank = (chief.unsqueeze(0) & (places.unsqueeze(0) < first.unsqueeze(1))).sum(1)
  count = int(chief.sum().item())
  order = (chief & rank.eq(Tensor.arange(count, device=x.device).unsqueeze(1))).where(places, 0).sum(1)
  found = rows[order]
  values = found.squeeze(1) if axis is None else \
    found.reshape(count, *(s for i, s in enumerate(x.shape) if i != at)).movedim(0, at)
  counts = rank.eq(Tensor.arange(count, device=x.device).unsqueeze(1)).sum(1)
  return values, *(t.cast(dtypes.int64) for t in (order, rank, counts))


@operator("NonMaxSuppression", 10, 11)
def non_max_suppression(op: Call, boxes: Tensor, scores: Tensor, most: Host | None, iou: Tensor | None,
                        least: Tensor | None, *, center_point_box: int = 0) -> Tensor:
  """The best boxes of each class, greedily: (batch, class, box) rows. Which remain, kernels compute, and it is read."""
  limit = 0 if most is None else ints(most)[0]
  batches, classes, count = scores.shape
  if not limit or not count: return Tensor.zeros(0, 3, device=boxes.device, dtype=dtypes.int64)
  limit = min(limit, count)
  a, b, c, d = (boxes[..., i] for i in range(4))
  if center_point_box: top, left, bottom, right = b - d / 2, a - c / 2, b + d / 2, a + c / 2
  else: top, left, bottom, right = a.minimum(c), b.minimum(d), a.maximum(c), b.maximum(d)
  area = (bottom - top) * (right - left)                                              # (batches, boxes)
  def pairs(x: Tensor) -> tuple[Tensor, Tensor]: return x.unsqueeze(2), x.unsqueeze(1)
  (t, u), (l, m), (v, w), (r, q) = map(pairs, (top, left, bottom, right))
  inside = (v.minimum(w) - t.maximum(u)).maximum(0) * (r.minimum(q) - l.maximum(m)).maximum(0)
  union = area.unsqueeze(2) + area.unsqueeze(1) - inside
  overlap = (union <= 0).where(0, inside / union)                                     # (batches, boxes, boxes)
  over = (overlap > (iou.reshape(()) if iou is not None else 0)).realize()
  places = Tensor.arange(count, device=boxes.device)
  left_over = scores.ones_like(dtype=dtypes.bool) if least is None else scores > least.reshape(())
  chosen = []
  for _ in range(limit):
    best = left_over.where(scores, -math.inf).argmax(2)                                # (batches, classes)
    there = left_over.any(2)
    chosen.append(there.where(best, -1).realize())
    mine = places.eq(best.unsqueeze(-1))                                              # (batches, classes, boxes)
    close = (mine.unsqueeze(-1) & over.unsqueeze(1)).any(2)
    left_over = (left_over & close.logical_not() & mine.logical_not()).realize()
  table = chosen[0].stack(*chosen[1:], dim=2) if len(chosen) > 1 else chosen[0].unsqueeze(2)
  rows = [(i, j, box) for i, group in enumerate(table.tolist()) for j, line in enumerate(group) for box in line
          if box >= 0]
  # The rows are places, in the order of batches, classes and scores: positions and no values.
  return Tensor(np.array(rows, np.int64).reshape(-1, 3), device=boxes.device)
