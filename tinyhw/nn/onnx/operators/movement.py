"""Operators that move elements, and those that make tensors of shapes."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyhw.ir.dtype import DType, dtypes
from tinyhw.nn.onnx.run import Call
from tinyhw.nn.onnx.shapes import clamped, ints
from tinyhw.nn.onnx.table import Host, operator
from tinyhw.nn.onnx.values import Known, Weights, as_host, element, shape_of
from tinyhw.tensor.tensor import Tensor

Ints = tuple[int, ...]
Floats = tuple[float, ...]
Strings = tuple[str, ...]

# *** constants and shapes ***


@operator("Constant", 1, 9, 11, 12, 13, 19, 21, 23, 24, 25)
def constant(op: Call, *, value: Weights | None = None, value_float: float | None = None,
             value_floats: Floats | None = None, value_int: int | None = None, value_ints: Ints | None = None,
             value_string: str | None = None, value_strings: Strings | None = None) -> Any:
  """The tensor, number or numbers that the node holds."""
  if value_string is not None or value_strings is not None: raise op.unsupported("of strings")
  if value is not None:
    op.mark(value.element)
    return op.frame.runner.constant(value)
  for given, kind in ((value_float, "<f4"), (value_floats, "<f4"), (value_int, "<i8"), (value_ints, "<i8")):
    if given is not None: return Known(np.array(given, dtype=kind))
  raise op.wrong("it has no value")


@operator("Shape", 1, 13, 15, 19, 21, 23, 24, 25)
def shape(x: Any, *, start: int = 0, end: int | None = None) -> Known:
  return Known(np.array(shape_of(x)[start:end], dtype=np.int64), shape=True)


@operator("Size", 1, 13, 19, 21, 23, 24, 25)
def size(x: Any) -> Known: return Known(np.array(math.prod(shape_of(x)), dtype=np.int64), shape=True)


@operator("ConstantOfShape", 9, 20, 21, 23, 24, 25)
def constant_of_shape(op: Call, shape: Host, *, value: Weights | None = None) -> Tensor:
  sizes = tuple(ints(shape))
  if value is None: return Tensor.full(sizes, 0.0, op.device)
  op.mark(value.element)
  return value.tensor(op.device).reshape([1]
                                         * len(sizes)).expand(sizes) if sizes else value.tensor(op.device).reshape(())


@operator("Range", 11, 27)
def range_(op: Call, begin: Any, limit: Host, delta: Host, *, stash_type: int = 1) -> Tensor:
  """begin, begin + delta, ...: how many there are, the host computes; what they are, a kernel."""
  start = as_host(begin)
  a, b, d = (v.reshape(-1)[0] for v in (start, limit, delta))
  if d == 0: raise op.wrong("the steps are 0")
  count = max(math.ceil((float(b) - float(a)) / float(d)) if start.dtype.kind == "f"
              else -((int(a) - int(b)) // int(d)), 0)
  kind = begin.dtype if isinstance(begin, Tensor) else dtypes.from_numpy(start.dtype)
  places = Tensor.arange(count, device=op.device).cast(kind)
  found: Tensor = (places * d.item() + a.item()).cast(kind)
  return found


@operator("EyeLike", 9, 22)
def eye_like(op: Call, x: Any, *, dtype: int | None = None, k: int = 0) -> Tensor:
  sizes = shape_of(x)
  if len(sizes) != 2: raise op.wrong(f"shape {sizes} is no matrix's")
  kind = element(dtype, op.node.label).dtype if dtype else \
    x.dtype if isinstance(x, Tensor) else dtypes.from_numpy(x.array.dtype)
  rows, columns = Tensor.arange(sizes[0], device=op.device), Tensor.arange(sizes[1], device=op.device)
  assert isinstance(kind, DType)
  return (rows.unsqueeze(1) + k).eq(columns).cast(kind)


# *** other shapes ***


@operator("Reshape", 5, 13, 14, 19, 21, 23, 24, 25)
def reshape(op: Call, x: Tensor, shape: Host, *, allowzero: int = 0) -> Tensor:
  """Sizes of 0 keep those of the input, unless `allowzero`."""
  op.mark(op.narrow(0))
  sizes = ints(shape)
  if not allowzero:
    if any(s == 0 and i >= x.ndim for i,
           s in enumerate(sizes)): raise op.wrong(f"{sizes} keeps a size that {x.shape} lacks")
    sizes = [x.shape[i] if s == 0 else s for i, s in enumerate(sizes)]
  return x.reshape(sizes)


@operator("Flatten", 1, 9, 11, 13, 21, 23, 24, 25)
def flatten(op: Call, x: Tensor, *, axis: int = 1) -> Tensor:
  op.mark(op.narrow(0))
  if not -x.ndim <= axis <= x.ndim: raise op.wrong(f"axis {axis} of shape {x.shape}")
  at = axis + x.ndim if axis < 0 else axis
  return x.reshape(math.prod(x.shape[:at]), math.prod(x.shape[at:]))


@operator("Squeeze", 1, 11)
def squeeze_by_attribute(op: Call, x: Tensor, *, axes: Ints | None = None) -> Tensor: return _squeezed(op, x, axes)


@operator("Squeeze", 13, 21, 23, 24, 25)
def squeeze(op: Call, x: Tensor, axes: Host | None) -> Tensor:
  return _squeezed(op, x, None if axes is None else tuple(ints(axes)))


def _squeezed(op: Call, x: Tensor, axes: Ints | None) -> Tensor:
  op.mark(op.narrow(0))
  if axes is not None and any(x.shape[x._axis(a)] != 1 for a in axes):
    raise op.wrong(f"axes {axes} of shape {x.shape} are not of size 1")
  return x.squeeze(axes)


@operator("Unsqueeze", 1, 11)
def unsqueeze_by_attribute(op: Call, x: Tensor, *, axes: Ints) -> Tensor: return _unsqueezed(op, x, list(axes))


@operator("Unsqueeze", 13, 21, 23, 24, 25)
def unsqueeze(op: Call, x: Tensor, axes: Host) -> Tensor: return _unsqueezed(op, x, ints(axes))


def _unsqueezed(op: Call, x: Tensor, axes: list[int]) -> Tensor:
  op.mark(op.narrow(0))
  rank = x.ndim + len(axes)
  new = {a % rank if -rank <= a < rank else -1 for a in axes}
  if len(new) != len(axes) or -1 in new: raise op.wrong(f"axes {axes} of a result of {rank} axes")
  sizes = iter(x.shape)
  return x.reshape([1 if i in new else next(sizes) for i in range(rank)])


@operator("Expand", 8, 13)
def expand(x: Tensor, shape: Host) -> Tensor:
  wanted = np.broadcast_shapes(x.shape, tuple(ints(shape)))
  return x.expand(tuple(int(s) for s in wanted)) if wanted else +x


@operator("Transpose", 1, 13, 21, 23, 24, 25)
def transpose(op: Call, x: Tensor, *, perm: Ints | None = None) -> Tensor:
  op.mark(op.narrow(0))
  return x.permute(tuple(range(x.ndim))[::-1] if perm is None else perm)


@operator("Tile", 6, 13)
def tile(op: Call, x: Tensor, repeats: Host) -> Tensor:
  times = ints(repeats)
  if len(times) != x.ndim: raise op.wrong(f"{len(times)} numbers of repeats for shape {x.shape}")
  return x.repeat(times) if times else +x


# *** parts and wholes ***


@operator("Concat", 4, 11, 13)
def concat(op: Call, *inputs: Tensor, axis: int) -> Tensor:
  if not inputs: raise op.wrong("it has no inputs")
  op.mark(op.narrow(0))
  return inputs[0].cat(*inputs[1:], dim=axis) if len(inputs) > 1 else +inputs[0]


@operator("Slice", 1)
def slice_by_attributes(x: Tensor, *, starts: Ints, ends: Ints, axes: Ints | None = None) -> Tensor:
  return _sliced(x, starts, ends, axes, None)


@operator("Slice", 10, 11, 13)
def slice_(op: Call, x: Tensor, starts: Host, ends: Host, axes: Host | None, steps: Host | None) -> Tensor:
  if steps is not None and 0 in ints(steps): raise op.wrong("a step of 0")
  op.mark(op.narrow(0))
  return _sliced(x, ints(starts), ints(ends), None if axes is None else ints(axes), None if steps is None
                 else ints(steps))


def _sliced(x: Tensor, starts: Any, ends: Any, axes: Any, steps: Any) -> Tensor:
  index: list[Any] = [slice(None)] * x.ndim
  for start, end, axis, step in zip(starts, ends, range(len(starts)) if axes is None else axes, steps or [1]
                                    * len(starts)):
    at = x._axis(int(axis))
    index[at] = slice(*clamped(start, end, step, x.shape[at]))
  return x[tuple(index)]


@operator("Split", 2, 11)
def split_by_attribute(op: Call, x: Tensor, *, axis: int = 0, split: Ints | None = None) -> tuple[Tensor, ...]:
  return _split(op, x, axis, split)


@operator("Split", 13, 18)
def split(op: Call, x: Tensor, split: Host | None, *, axis: int = 0, num_outputs: int | None = None) -> tuple[Tensor,
                                                                                                              ...]:
  return _split(op, x, axis, None if split is None else tuple(ints(split)), num_outputs)


def _split(op: Call, x: Tensor, axis: int, sizes: Ints | None, count: int | None = None) -> tuple[Tensor, ...]:
  """Pieces of the sizes, or as many of one size as there are outputs (the last may be smaller)."""
  total = x.shape[x._axis(axis)]
  if sizes is None:
    parts = count or op.outputs
    each = -(-total // parts)
    sizes = tuple(max(min(each, total - i * each), 0) for i in range(parts))
  return x.split(list(sizes), axis)


@operator("Trilu", 14)
def trilu(x: Tensor, k: Host | None, *, upper: int = 1) -> Tensor:
  at = 0 if k is None else ints(k)[0]
  return x.triu(at) if upper else x.tril(at)


@operator("DepthToSpace", 1, 11, 13, 28)
def depth_to_space(op: Call, x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
  n, c, *area = x.shape
  b, rank = blocksize, len(area)
  if mode not in ("DCR", "CRD") or c % b**rank: raise op.wrong(f"mode {mode!r}, blocks of {b} of shape {x.shape}")
  if mode == "DCR":
    parts = x.reshape(n, *[b] * rank, c // b**rank, *area)
    order = [0, rank + 1, *(a for i in range(rank) for a in (rank + 2 + i, 1 + i))]
  else:
    parts = x.reshape(n, c // b**rank, *[b] * rank, *area)
    order = [0, 1, *(a for i in range(rank) for a in (rank + 2 + i, 2 + i))]
  return parts.permute(order).reshape(n, c // b**rank, *(s * b for s in area))


@operator("SpaceToDepth", 1, 13, 28)
def space_to_depth(op: Call, x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
  n, c, *area = x.shape
  b, rank = blocksize, len(area)
  if mode not in ("DCR", "CRD") or any(s % b for s in area):
    raise op.wrong(f"mode {mode!r}, blocks of {b} of shape {x.shape}")
  parts = x.reshape(n, c, *(v for s in area for v in (s // b, b)))
  blocks, places = [3 + 2 * i for i in range(rank)], [2 + 2 * i for i in range(rank)]
  order = [0, *blocks, 1, *places] if mode == "DCR" else [0, 1, *blocks, *places]
  return parts.permute(order).reshape(n, c * b**rank, *(s // b for s in area))


@operator("ReverseSequence", 10, 28)
def reverse_sequence(x: Tensor, sequence_lens: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
  """The first elements of each sequence in the opposite order."""
  batch, time = x._axis(batch_axis), x._axis(time_axis)
  lengths = sequence_lens.cast(dtypes.int32).reshape([-1 if i == batch else 1 for i in range(x.ndim)])
  places = Tensor.arange(x.shape[time], device=x.device).reshape([-1 if i == time else 1 for i in range(x.ndim)])
  return x.gather(time, (places < lengths).where(lengths - 1 - places, places).expand(x.shape))


# *** padding ***


@operator("Pad", 2)
def pad_by_attributes(op: Call, x: Tensor, *, pads: Ints, mode: str = "constant", value: float = 0.0) -> Tensor:
  return padded(op, x, list(pads), mode, value, None)


@operator("Pad", 11, 13, 18, 19, 21, 23, 24, 25)
def pad(op: Call, x: Tensor, pads: Host, constant_value: Tensor | None, axes: Host | None, *,
        mode: str = "constant") -> Tensor:
  return padded(op, x, ints(pads), mode, constant_value, None if axes is None else ints(axes))


def padded(op: Call, x: Tensor, pads: list[int], mode: str, value: Any, axes: list[int] | None) -> Tensor:
  """More, or with negative numbers less, at the beginning and end of axes."""
  chosen = list(range(x.ndim)) if axes is None else [x._axis(a) for a in axes]
  if len(pads) != 2 * len(chosen): raise op.wrong(f"{len(pads)} numbers pad {len(chosen)} axes of shape {x.shape}")
  around = [(0, 0)] * x.ndim
  for i, a in enumerate(chosen): around[a] = pads[i], pads[len(chosen) + i]
  cut = x.shrink([(max(-b, 0), s - max(-e, 0)) for (b, e), s in zip(around, x.shape)])
  grow = [(max(b, 0), max(e, 0)) for b, e in around]
  if mode == "constant":
    if isinstance(value, Tensor):  # a value that a kernel reads
      inside = cut.ones_like(dtype=dtypes.bool).pad(grow)
      return inside.where(cut.pad(grow), value.cast(x.dtype).reshape([1] * x.ndim))
    return cut.pad(grow, value=0 if value is None else value)
  if mode not in ("reflect", "edge", "wrap"): raise op.wrong(f"mode {mode!r} is none of constant, reflect, edge, wrap")
  for axis, (before, after) in enumerate(grow):
    if not before and not after: continue
    n = cut.shape[axis]
    if not n: raise op.wrong(f"mode {mode!r} of no elements: shape {x.shape}")
    places = Tensor.arange(-before, n + after, device=x.device)
    if mode == "edge": places = places.clip(0, n - 1)
    elif mode == "wrap": places = places % n
    else: places = (n - 1) - ((places % max(2 * n - 2, 1)) - (n - 1)).abs()
    cut = cut[(slice(None),) * axis + (places,)]
  return cut


@operator("CenterCropPad", 18)
def center_crop_pad(op: Call, x: Tensor, shape: Host, *, axes: Ints | None = None) -> Tensor:
  chosen = list(range(x.ndim)) if axes is None else [x._axis(a) for a in axes]
  around = []
  for axis, wanted in zip(chosen, ints(shape)):
    more = wanted - x.shape[axis]
    before = more // 2 if more >= 0 else -(-more // 2)
    around.append((before, more - before))
  return padded(op, x, [b for b, _ in around] + [e for _, e in around], "constant", None, chosen)
