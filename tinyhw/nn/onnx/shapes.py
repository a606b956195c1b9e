"""Arithmetic of shapes on the host: what Shape gives, and small integers of the file, through the operators that
exporters compute sizes, axes and positions with. Everything else is computed by kernels.

A node is folded where all its inputs are constants that the host knows and that nobody handed in, of `SMALL` elements
at most, and either all are integers or bools, or one comes from a Shape (scales are floats).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhw.nn.onnx.table import Host
from tinyhw.nn.onnx.values import ELEMENTS, SMALL, Known, Value

if TYPE_CHECKING:
  from tinyhw.nn.onnx.run import Call

Fold = Callable[..., Any]
_FOLDS: dict[str, Fold] = {}


def _fold(*names: str) -> Callable[[Fold], Fold]:
  def declare(function: Fold) -> Fold:
    for name in names: _FOLDS[name] = function
    return function
  return declare


def folded(call: Call, values: Sequence[Value], attributes: dict[str, Any]) -> Known | None:
  """The result of a node of shape arithmetic, or None where it is no such node."""
  node = call.node
  if node.domain or node.operator not in _FOLDS or not values or len(node.outputs) != 1: return None
  arrays: list[Host | None] = []
  shape, whole = False, True
  for v in values:
    if v is None:
      arrays.append(None)
      continue
    if not isinstance(v, Known) or not v.arithmetic: return None
    arrays.append(v.array)
    shape |= v.shape
    whole &= v.array.dtype.kind in "iub"
  if not shape and not whole: return None
  with np.errstate(all="ignore"): found = _FOLDS[node.operator](arrays, attributes)
  if found is None or found.size > SMALL: return None
  if not shape and found.dtype.kind not in "iub": return None
  return Known(found, shape)


def ints(values: Any) -> list[int]:
  """Numbers of the host as Python's."""
  return [int(v) for v in np.asarray(values).reshape(-1)]


def _axes(arrays: Sequence[Host | None], attributes: dict[str, Any]) -> list[int] | None:
  """Axes by the second input, or by the attribute of older versions."""
  if len(arrays) > 1 and arrays[1] is not None: return ints(arrays[1])
  found = attributes.get("axes")
  return None if found is None else list(found)


def truncated(a: Host, b: Host) -> Host:
  """Quotients of integers as C has them; by 0 it is 0."""
  safe = np.where(b == 0, 1, b)
  quotient = np.abs(a) // np.abs(safe) * (np.sign(a) * np.sign(safe))
  return np.where(b == 0, 0, quotient).astype(np.result_type(a, b))


def _elementwise(function: Callable[..., Any]) -> Fold:
  return lambda arrays, attributes: np.asarray(function(*arrays))


_ARITHMETIC: dict[str, Callable[..., Any]] = {
  "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Neg": np.negative, "Abs": np.abs, "Floor": np.floor,
  "Ceil": np.ceil, "Sqrt": np.sqrt, "Equal": np.equal, "Less": np.less, "Greater": np.greater,
  "LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal, "Not": np.logical_not, "And": np.logical_and,
  "Or": np.logical_or, "Where": np.where, "Identity": np.copy,
  "Div": lambda a, b: a / b if a.dtype.kind == "f" else truncated(a, b)}
_FOLDS |= {name: _elementwise(function) for name, function in _ARITHMETIC.items()}


_FOLDS["Min"] = lambda arrays, attributes: np.asarray(np.minimum.reduce(np.broadcast_arrays(*arrays)))
_FOLDS["Max"] = lambda arrays, attributes: np.asarray(np.maximum.reduce(np.broadcast_arrays(*arrays)))


@_fold("Mod")
def _mod(arrays: list[Any], attributes: dict[str, Any]) -> Any:
  a, b = arrays
  return None if not np.all(b) else np.asarray(np.fmod(a, b) if attributes.get("fmod") else np.mod(a, b))


@_fold("Cast")
def _cast(arrays: list[Any], attributes: dict[str, Any]) -> Any:
  to = ELEMENTS.get(attributes["to"])
  kind = None if to is None or to.narrow or to.dtype is None else to.dtype.numpy
  if kind is None or arrays[0].dtype.kind == "f" and not np.isfinite(arrays[0]).all(): return None
  return arrays[0].astype(kind)


@_fold("Gather")
def _gather(arrays: list[Any], attributes: dict[str, Any]) -> Any:
  return np.asarray(np.take(arrays[0], arrays[1], axis=attributes.get("axis", 0)))


@_fold("Concat")
def _concat(arrays: list[Any], attributes: dict[str, Any]) -> Any:
  return np.concatenate(arrays, axis=attributes["axis"])


@_fold("Squeeze")
def _squeeze(arrays: list[Any], attributes: dict[str, Any]) -> Any:
  axes = _axes(arrays, attributes)
  return np.squeeze(arrays[0], None if axes is None else tuple(axes))


@_fold("Unsqueeze")
def _unsqueeze(arrays: list[Any], attributes: dict[str, Any]) -> Any:
  return np.expand_dims(arrays[0], tuple(_axes(arrays, attributes) or ()))


@_fold("Reshape")
def _reshape(arrays: list[Any], attributes: dict[str, Any]) -> Any:
  sizes = ints(arrays[1])
  if not attributes.get("allowzero"): sizes = [arrays[0].shape[i] if s == 0 else s for i, s in enumerate(sizes)]
  return arrays[0].reshape(sizes)


@_fold("Transpose")
def _transpose(arrays: list[Any], attributes: dict[str, Any]) -> Any:
  return np.transpose(arrays[0], attributes.get("perm"))


@_fold("Slice")
def _slice(arrays: list[Any], attributes: dict[str, Any]) -> Any:
  data = arrays[0]
  rest: list[Any] = [None if a is None else ints(a) for a in arrays[1:]]
  if not rest: rest = [attributes["starts"], attributes["ends"], attributes.get("axes")]
  starts, ends, axes, steps = (rest + [None] * 4)[:4]
  if axes is None: axes = range(len(starts))
  for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts)):
    size, axis = data.shape[axis], axis % data.ndim
    chosen = np.arange(size)[slice(*clamped(start, end, step, size))]
    data = np.take(data, chosen, axis)
  return np.asarray(data)


def clamped(start: int, end: int, step: int, size: int) -> tuple[int, int | None, int]:
  """Python's slice for a start and an end of ONNX, which may lie far beyond the axis."""
  start = start + size if start < 0 else start
  end = end + size if end < 0 else end
  if step > 0: return min(max(start, 0), size), min(max(end, 0), size), step
  last = min(max(end, -1), size - 1)
  return min(max(start, 0), size - 1), None if last < 0 else last, step


@_fold("Range")
def _range(arrays: list[Any], attributes: dict[str, Any]) -> Any:
  start, limit, delta = (a.reshape(-1)[0] for a in arrays)
  if delta == 0 or abs(limit - start) > SMALL * abs(delta): return None
  return np.arange(start, limit, delta, dtype=arrays[0].dtype)


@_fold("Expand")
def _expand(arrays: list[Any], attributes: dict[str, Any]) -> Any:
  shape = np.broadcast_shapes(arrays[0].shape, tuple(ints(arrays[1])))
  return None if np.prod(shape, dtype=float) > SMALL else np.array(np.broadcast_to(arrays[0], shape))


@_fold("ConstantOfShape")
def _constant_of_shape(arrays: list[Any], attributes: dict[str, Any]) -> Any:
  value, shape = attributes.get("value"), tuple(ints(arrays[0]))
  if min(shape, default=0) < 0 or np.prod(shape, dtype=float) > SMALL: return None
  if value is None: return None  # zeros of float32 are no sizes
  kind = value.element.dtype.numpy
  return None if kind is None or value.element.narrow else np.full(shape, np.frombuffer(value.raw, kind)[0])


@_fold("Tile")
def _tile(arrays: list[Any], attributes: dict[str, Any]) -> Any:
  repeats = ints(arrays[1])
  return None if arrays[0].size * np.prod(repeats, dtype=float) > SMALL else np.tile(arrays[0], repeats)


def _reduced(function: Callable[..., Any]) -> Fold:
  def reduce(arrays: list[Any], attributes: dict[str, Any]) -> Any:
    axes = _axes(arrays, attributes)
    if axes == [] and attributes.get("noop_with_empty_axes"): return arrays[0]
    if arrays[0].size == 0: return None
    found = function(arrays[0], axis=tuple(axes) if axes else None, keepdims=bool(attributes.get("keepdims", 1)))
    return np.asarray(found).astype(arrays[0].dtype)
  return reduce


_FOLDS |= {"ReduceSum": _reduced(np.sum), "ReduceProd": _reduced(np.prod), "ReduceMax": _reduced(np.max),
           "ReduceMin": _reduced(np.min)}
