"""Reductions along axes: sums, norms, extremes and their places, running sums, the greatest elements."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinyhw.ir.dtype import dtypes
from tinyhw.nn.onnx.run import Call
from tinyhw.nn.onnx.shapes import ints
from tinyhw.nn.onnx.table import Host, operator
from tinyhw.tensor.tensor import Tensor

Ints = tuple[int, ...]
Reduce = Callable[[Tensor, Ints, bool], Tensor]


def _least_value(x: Tensor, sign: int) -> Any:
  """The extreme of no elements: the least (or greatest) value of the type."""
  return x.dtype.min if sign < 0 else x.dtype.max


def _extreme(greatest: bool) -> Reduce:
  def reduce(x: Tensor, axes: Ints, keep: bool) -> Tensor:
    if x.dtype.is_bool: return reduce(x.cast(dtypes.uint8), axes, keep).cast(dtypes.bool)
    if math.prod(x.shape[a] for a in axes) == 0:
      shape = [1 if i in axes else s for i, s in enumerate(x.shape) if keep or i not in axes]
      return Tensor.full(tuple(shape), _least_value(x, -1 if greatest else 1), x.device, x.dtype)
    return x.max(axes, keepdim=keep) if greatest else x.min(axes, keepdim=keep)
  return reduce


def _mean(x: Tensor, axes: Ints, keep: bool) -> Tensor:
  if x.dtype.is_float: return x.mean(axes, keepdim=keep)
  count = math.prod(x.shape[a] for a in axes)
  return x.sum(axes, keepdim=keep).cast(x.dtype).div(count, rounding_mode="trunc")


def _norm(x: Tensor, axes: Ints, keep: bool) -> Tensor:
  wide = x if x.dtype.is_float else x.cast(dtypes.float64)
  return wide.square().sum(axes, keepdim=keep).sqrt().cast(x.dtype)


_REDUCTIONS: dict[str, tuple[tuple[int, ...], int | None, Reduce]] = {
  # name: versions with axes as an attribute, the first version with an input of axes, function
  "ReduceSum": ((1, 11), 13, lambda x, a, k: x.sum(a, keepdim=k).cast(x.dtype)),
  "ReduceProd": ((1, 11, 13), 18, lambda x, a, k: x.prod(a, keepdim=k).cast(x.dtype)),
  "ReduceMean": ((1, 11, 13), 18, _mean),
  "ReduceMax": ((1, 11, 12, 13), 18, _extreme(True)),
  "ReduceMin": ((1, 11, 12, 13), 18, _extreme(False)),
  "ReduceL1": ((1, 11, 13), 18, lambda x, a, k: x.abs().sum(a, keepdim=k).cast(x.dtype)),
  "ReduceL2": ((1, 11, 13), 18, _norm),
  "ReduceSumSquare": ((1, 11, 13), 18, lambda x, a, k: x.square().sum(a, keepdim=k).cast(x.dtype)),
  "ReduceLogSum": ((1, 11, 13), 18, lambda x, a, k: x.sum(a, keepdim=k).log().cast(x.dtype)),
  "ReduceLogSumExp": ((1, 11, 13), 18, lambda x, a, k: x.logsumexp(a, keepdim=k).cast(x.dtype)),
}
_LATER = {"ReduceMax": (20,), "ReduceMin": (20,), "ReduceLogSum": (28,), "ReduceLogSumExp": (28,)}


def _declare(name: str, old: tuple[int, ...], new: int, reduce: Reduce) -> None:
  @operator(name, *old)
  def by_attribute(x: Tensor, *, axes: Ints | None = None, keepdims: int = 1) -> Tensor:
    return reduce(x, _chosen(x, axes), bool(keepdims))

  @operator(name, new, *_LATER.get(name, ()))
  def by_input(x: Tensor, axes: Host | None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
    wanted = None if axes is None or not axes.size else tuple(ints(axes))
    return reduce(x, () if wanted is None and noop_with_empty_axes else _chosen(x, wanted), bool(keepdims))


def _chosen(x: Tensor, axes: Ints | None) -> Ints:
  return tuple(range(x.ndim)) if axes is None else tuple(x._axes(axes))


for _name, (_old, _new, _reduce) in _REDUCTIONS.items():
  assert _new is not None
  _declare(_name, _old, _new, _reduce)


def _place(x: Tensor, greatest: bool, axis: int, keepdims: int, last: int) -> Tensor:
  """Where the extreme is along an axis: the first place of equal ones, or the last."""
  axis = x._axis(axis)
  turned = x.flip(axis) if last else x
  if x.dtype.is_bool: turned = turned.cast(dtypes.uint8)
  found = turned.argmax(axis, keepdim=bool(keepdims)) if greatest else turned.argmin(axis, keepdim=bool(keepdims))
  return (x.shape[axis] - 1 - found if last else found).cast(dtypes.int64)


@operator("ArgMax", 1, 11, 12, 13)
def arg_max(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
  return _place(x, True, axis, keepdims, select_last_index)


@operator("ArgMin", 1, 11, 12, 13)
def arg_min(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
  return _place(x, False, axis, keepdims, select_last_index)


def _running(x: Tensor, axis: int, exclusive: int, reverse: int, product: bool) -> Tensor:
  axis = x._axis(axis)
  if reverse: x = x.flip(axis)
  if exclusive:
    start = x.narrow(axis, 0, min(1, x.shape[axis]))
    start = start.ones_like() if product else start.zeros_like()
    x = start.cat(x.narrow(axis, 0, x.shape[axis] - 1), dim=axis) if x.shape[axis] else x
  found = (x.cumprod(axis) if product else x.cumsum(axis)).cast(x.dtype)
  return found.flip(axis) if reverse else found


@operator("CumSum", 11, 14)
def cum_sum(x: Tensor, axis: Host, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
  return _running(x, ints(axis)[0], exclusive, reverse, False)


@operator("CumProd", 26)
def cum_prod(x: Tensor, axis: Host, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
  return _running(x, ints(axis)[0], exclusive, reverse, True)


@operator("TopK", 1)
def top_k_by_attribute(x: Tensor, *, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
  values, places = x.topk(k, axis)
  return values, places.cast(dtypes.int64)


@operator("TopK", 10, 11, 24)
def top_k(op: Call, x: Tensor, k: Host, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Tensor, Tensor]:
  """The k extreme elements and their places, in order (also where none is asked for)."""
  count = ints(k)[0]
  if not 0 <= count <= x.shape[x._axis(axis)]: raise op.wrong(f"the {count} greatest of an axis of shape {x.shape}")
  values, places = x.topk(count, axis, bool(largest))
  return values, places.cast(dtypes.int64)


@operator("Hardmax", 1, 11)
def hardmax_of_rows(x: Tensor, *, axis: int = 1) -> Tensor:
  rows = math.prod(x.shape[:x._axis(axis)])
  return _first_greatest(x.reshape(rows, -1), 1).reshape(x.shape)


@operator("Hardmax", 13)
def hardmax(x: Tensor, *, axis: int = -1) -> Tensor: return _first_greatest(x, axis)


def _first_greatest(x: Tensor, axis: int) -> Tensor:
  axis = x._axis(axis)
  size = x.shape[axis]
  places = Tensor.arange(size, device=x.device).reshape([size if i == axis else 1 for i in range(x.ndim)])
  return x.argmax(axis, keepdim=True).eq(places).cast(x.dtype)
