"""Operators of windows that slide over the axes behind the first two: convolutions and pooling."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tinyhw.ir.dtype import dtypes
from tinyhw.nn.onnx.run import Call
from tinyhw.nn.onnx.shapes import ints
from tinyhw.nn.onnx.table import Host, operator
from tinyhw.tensor.tensor import Tensor

Ints = tuple[int, ...]
Around = list[tuple[int, int]]


def each(op: Call, what: str, given: Ints | None, rank: int, default: int) -> list[int]:
  """A number for each axis."""
  if given is None: return [default] * rank
  if len(given) != rank: raise op.wrong(f"{what} {given} for {rank} axes")
  return list(given)


def margins(op: Call, auto_pad: str, pads: Ints | None, area: Sequence[int], kernel: Sequence[int],
            strides: Sequence[int],
            dilations: Sequence[int]) -> Around:
  """(before, after) of each axis."""
  rank = len(kernel)
  if auto_pad in ("NOTSET", ""):
    flat = each(op, "pads", pads, 2 * rank, 0)
    return list(zip(flat[:rank], flat[rank:]))
  if auto_pad == "VALID": return [(0, 0)] * rank
  if auto_pad not in ("SAME_UPPER", "SAME_LOWER"): raise op.wrong(f"auto_pad {auto_pad!r}")
  found = []
  for n, k, s, d in zip(area, kernel, strides, dilations):
    more = max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
    less = more // 2
    found.append((less, more - less) if auto_pad == "SAME_UPPER" else (more - less, less))
  return found


def convolved(op: Call, x: Tensor, w: Tensor, bias: Tensor | None, auto_pad: str, dilations: Ints | None, group: int,
              kernel_shape: Ints | None, pads: Ints | None, strides: Ints | None) -> Tensor:
  """A convolution; of integers it sums in int32."""
  rank = w.ndim - 2
  if rank < 1 or x.ndim != w.ndim: raise op.wrong(f"shape {x.shape} by weights of shape {w.shape}")
  if kernel_shape is not None and tuple(kernel_shape) != w.shape[2:]:
    raise op.wrong(f"kernel_shape {kernel_shape} of weights of shape {w.shape}")
  steps, apart = each(op, "strides", strides, rank, 1), each(op, "dilations", dilations, rank, 1)
  around = margins(op, auto_pad, pads, x.shape[2:], w.shape[2:], steps, apart)
  flat = [p for pair in reversed(around) for p in pair]
  return x.conv2d(w, bias, groups=group, stride=steps, dilation=apart, padding=flat)


@operator("Conv", 1, 11, 22)
def conv(op: Call, x: Tensor, w: Tensor, bias: Tensor | None, *, auto_pad: str = "NOTSET",
         dilations: Ints | None = None, group: int = 1, kernel_shape: Ints | None = None, pads: Ints | None = None,
         strides: Ints | None = None) -> Tensor:
  return convolved(op, x, w, bias, auto_pad, dilations, group, kernel_shape, pads, strides)


@operator("ConvTranspose", 1, 11, 22)
def conv_transpose(op: Call, x: Tensor, w: Tensor, bias: Tensor | None, *, auto_pad: str = "NOTSET",
                   dilations: Ints | None = None, group: int = 1, kernel_shape: Ints | None = None,
                   output_padding: Ints | None = None, output_shape: Ints | None = None, pads: Ints | None = None,
                   strides: Ints | None = None) -> Tensor:
  """The derivative of a convolution by its input; computed whole, and cut (or grown) to the shape."""
  rank = w.ndim - 2
  if rank < 1 or x.ndim != w.ndim: raise op.wrong(f"shape {x.shape} by weights of shape {w.shape}")
  steps, apart = each(op, "strides", strides, rank, 1), each(op, "dilations", dilations, rank, 1)
  more = each(op, "output_padding", output_padding, rank, 0)
  whole = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(x.shape[2:], steps, apart, w.shape[2:])]
  if output_shape is not None:
    wanted = list(output_shape)[-rank:]
    cut = [size + m - out for size, m, out in zip(whole, more, wanted)]
    around = [(c // 2, c - c // 2) if auto_pad == "SAME_UPPER" else (c - c // 2, c // 2) for c in cut]
  elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
    cut = [size + m - n * s for size, m, n, s in zip(whole, more, x.shape[2:], steps)]
    around = [(c // 2, c - c // 2) if auto_pad == "SAME_UPPER" else (c - c // 2, c // 2) for c in cut]
  else: around = margins(op, auto_pad, pads, x.shape[2:], w.shape[2:], steps, apart)
  found = x.conv_transpose2d(w, None, groups=group, stride=steps, dilation=apart)
  ends = [size + m - b - e for size, m, (b, e) in zip(whole, more, around)]
  bounds = [None, None, *((max(b, 0), min(b + n, size)) for (b, _), n, size in zip(around, ends, whole))]
  grow = [(0, 0), (0, 0), *((max(-b, 0), max(b + n - size, 0)) for (b, _), n, size in zip(around, ends, whole))]
  found = found.shrink(bounds)
  if any(p != (0, 0) for p in grow): found = found.pad(grow)
  return found if bias is None else found + bias.reshape([1, -1, *(1,) * rank])


@operator("DeformConv", 19, 22)
def deform_conv(op: Call, x: Tensor, w: Tensor, offset: Tensor, bias: Tensor | None, mask: Tensor | None, *,
                dilations: Ints | None = None, group: int = 1, kernel_shape: Ints | None = None, offset_group: int = 1,
                pads: Ints | None = None, strides: Ints | None = None) -> Tensor:
  """A convolution whose positions are moved by offsets; between elements they are interpolated, outside they are 0."""
  rank = w.ndim - 2
  if rank != 2 or x.ndim != 4: raise op.unsupported(f"of {x.ndim} axes")
  n, c, height, width = x.shape
  out, depth, kh, kw = w.shape
  steps, apart = each(op, "strides", strides, 2, 1), each(op, "dilations", dilations, 2, 1)
  top, left, _, _ = each(op, "pads", pads, 4, 0)
  rows, columns = offset.shape[2:]
  places = offset.reshape(n, offset_group, kh * kw, 2, rows, columns)

  def line(count: int, step: int, dilation: int, before: int, kernel: int, axis: int) -> Tensor:
    at = Tensor.arange(count, device=x.device) * step - before
    of_kernel = Tensor.arange(kernel, device=x.device) * dilation
    shape = [1, 1, 1, 1, 1, 1]
    shape[axis] = kernel
    spread = at.reshape(1, 1, 1, 1, *((count, 1) if axis == 2 else (1, count)))
    return (of_kernel.reshape(shape) + spread).cast(x.dtype)

  # (n, groups of offsets, kernel rows, kernel columns, rows, columns)
  y = places[:, :, :, 0].reshape(n, offset_group, kh, kw, rows, columns) + line(rows, steps[0], apart[0], top, kh, 2)
  z = places[:, :, :, 1].reshape(n, offset_group, kh, kw, rows, columns) + line(columns, steps[1], apart[1], left, kw,
                                                                                3)
  flat = x.reshape(n, offset_group, c // offset_group, height * width)
  total: Tensor | None = None
  y0, z0 = y.floor(), z.floor()
  for dy in (0, 1):
    for dz in (0, 1):
      row, column = y0 + dy, z0 + dz
      weight = (1 - (y - row).abs()) * (1 - (z - column).abs())
      inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
      index = inside.where(row * width + column, 0).cast(dtypes.int32).reshape(n, offset_group, 1, -1)
      values = flat.gather(3, index.expand(n, offset_group, c // offset_group, index.shape[-1]))
      part = values * inside.where(weight, 0).reshape(n, offset_group, 1, -1)
      total = part if total is None else total + part
  assert total is not None
  if mask is not None: total = total * mask.reshape(n, offset_group, 1, -1)
  columns_of = total.reshape(n, group, depth, kh * kw, rows * columns).reshape(n, group, depth * kh * kw, rows
                                                                               * columns)
  found = w.reshape(1, group, out // group, depth * kh * kw).matmul(columns_of.contiguous()).reshape(n, out, rows,
                                                                                                     columns)
  return found if bias is None else found + bias.reshape(1, -1, 1, 1)


# *** pooling ***


def _windows(op: Call, x: Tensor, fill: Any, kernel: Ints, auto_pad: str, ceil_mode: int, dilations: Ints | None,
             pads: Ints | None, strides: Ints | None) -> tuple[Tensor, Around, list[tuple[int, ...]]]:
  """All windows (..., places, positions) of an input that is padded with `fill`; the padding, and what else there
  is."""
  rank = len(kernel)
  if rank < 1 or x.ndim != rank + 2: raise op.wrong(f"kernel {kernel} over shape {x.shape}")
  steps, apart = each(op, "strides", strides, rank, 1), each(op, "dilations", dilations, rank, 1)
  around = margins(op, auto_pad, pads, x.shape[2:], kernel, steps, apart)
  grown, counts = [], []
  for n, k, s, d, (before, after) in zip(x.shape[2:], kernel, steps, apart, around):
    reach = d * (k - 1) + 1
    room = n + before + after - reach
    if room < 0: raise op.wrong(f"a window of {reach} of an axis of {n + before + after}")
    count = (-(-room // s) if ceil_mode else room // s) + 1
    # The last window begins in the input or in the padding before it.
    if ceil_mode and (count - 1) * s >= n + before: count -= 1
    counts.append(count)
    grown.append((before, max((count - 1) * s + reach - n - before, 0)))
  padded = x.pad([(0, 0), (0, 0), *grown], value=fill) if any(g != (0, 0) for g in grown) else x
  cut = padded.windows(kernel, steps, apart)
  cut = cut.shrink([None, None, *((0, c) for c in counts), *(None for _ in kernel)])
  return cut, around, [tuple(steps), tuple(apart), tuple(a for _, a in grown)]


@operator("MaxPool", 1, 8, 10, 11, 12, 22)
def max_pool(op: Call, x: Tensor, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Ints | None = None,
             kernel_shape: Ints, pads: Ints | None = None, storage_order: int = 0,
             strides: Ints | None = None) -> tuple[Tensor, ...]:
  """The greatest of each window, and its place in the flat input where that is wanted."""
  rank = len(kernel_shape)
  low: Any = x.dtype.min
  cut, _, _ = _windows(op, x, low, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
  axes = tuple(range(cut.ndim - rank, cut.ndim))
  top = cut.max(axes)
  if not op.wants(1): return (top,)
  area = x.shape[2:]
  count = math.prod(area)
  places = Tensor.arange(count, device=x.device).reshape(1, 1, *area)
  inside, _, _ = _windows(op, places.ones_like(), 0, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
  at, _, _ = _windows(op, places, 0, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
  found = cut.eq(top.reshape(*top.shape, *(1,) * rank)) & inside.eq(1)
  place = count - found.where(count - at, 0).max(axes)          # the first one
  if storage_order and rank == 2: place = place % area[1] * area[0] + place // area[1]
  lead = Tensor.arange(x.shape[0] * x.shape[1], device=x.device).reshape(*x.shape[:2], *(1,) * rank)
  return top, (lead * count + place).cast(dtypes.int64)


@operator("AveragePool", 7, 10, 11, 19, 22)
def average_pool(op: Call, x: Tensor, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, count_include_pad: int = 0,
                 dilations: Ints | None = None, kernel_shape: Ints, pads: Ints | None = None,
                 strides: Ints | None = None) -> Tensor:
  """The average of each window; of what is padded by `pads` only with `count_include_pad`, and never beyond."""
  rank = len(kernel_shape)
  cut, around, (_, _, after) = _windows(op, x, 0, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
  axes = tuple(range(cut.ndim - rank, cut.ndim))
  ones = Tensor.ones(1, 1, *x.shape[2:], device=x.device, dtype=x.dtype)
  if count_include_pad: ones = ones.pad([(0, 0), (0, 0), *around], value=1)
  if count_include_pad:
    beyond = [max(a - e, 0) for a, (_, e) in zip(after, around)]
    ones = ones.pad([(0, 0), (0, 0), *((0, b) for b in beyond)])
    counted = ones.windows(kernel_shape, each(op, "strides", strides, rank, 1),
                           each(op, "dilations", dilations, rank, 1))
    counted = counted.shrink([None, None, *((0, s) for s in cut.shape[2:2 + rank]), *(None for _ in kernel_shape)])
  else: counted, _, _ = _windows(op, ones, 0, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
  return cut.sum(axes) / counted.sum(axes)


@operator("LpPool", 2, 11, 18, 22)
def lp_pool(op: Call, x: Tensor, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Ints | None = None,
            kernel_shape: Ints, p: int = 2, pads: Ints | None = None, strides: Ints | None = None) -> Tensor:
  rank = len(kernel_shape)
  cut, _, _ = _windows(op, x, 0, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
  return _norm(cut, tuple(range(cut.ndim - rank, cut.ndim)), p, False)


def _norm(x: Tensor, axes: Ints, p: int, keep: bool) -> Tensor:
  """The p-norm along axes."""
  if p == 1: return x.abs().sum(axes, keepdim=keep)
  if p == 2: return x.square().sum(axes, keepdim=keep).sqrt()
  return x.abs().pow(float(p)).sum(axes, keepdim=keep).pow(1.0 / p)


@operator("GlobalAveragePool", 1, 22)
def global_average_pool(x: Tensor) -> Tensor: return x.mean(tuple(range(2, x.ndim)), keepdim=True)


@operator("GlobalMaxPool", 1, 22)
def global_max_pool(x: Tensor) -> Tensor: return x.max(tuple(range(2, x.ndim)), keepdim=True)


@operator("GlobalLpPool", 2, 22)
def global_lp_pool(x: Tensor, *, p: int = 2) -> Tensor: return _norm(x, tuple(range(2, x.ndim)), p, True)


@operator("MaxUnpool", 9, 11, 22)
def max_unpool(op: Call, x: Tensor, places: Tensor, output_shape: Host | None, *, kernel_shape: Ints,
               pads: Ints | None = None, strides: Ints | None = None) -> Tensor:
  """Zeros with these elements at the places that MaxPool found, which count in the unpooled shape that it had."""
  rank = len(kernel_shape)
  steps, flat = each(op, "strides", strides, rank, 1), each(op, "pads", pads, 2 * rank, 0)
  area = [(n - 1) * s + k - flat[i] - flat[rank + i] for i,
          (n, s, k) in enumerate(zip(x.shape[2:], steps, kernel_shape))]
  shape = (*x.shape[:2], *area)
  zeros = Tensor.zeros(math.prod(shape), device=x.device, dtype=x.dtype)
  found = zeros.scatter(0, places.flatten(), x.flatten()).reshape(shape)
  if output_shape is None: return found
  wanted = ints(output_shape)
  if any(w < n for w, n in zip(wanted, shape)): raise op.wrong(f"output_shape {wanted} is less than {shape}")
  return found.pad([(0, w - n) for w, n in zip(wanted, shape)])


@operator("Col2Im", 18)
def col2im(op: Call, x: Tensor, image_shape: Host, block_shape: Host, *, dilations: Ints | None = None,
           pads: Ints | None = None, strides: Ints | None = None) -> Tensor:
  """The sums of the columns at the places of an image that they came from: a transposed convolution by unit kernels."""
  image, block = ints(image_shape), ints(block_shape)
  rank, each_block = len(image), math.prod(block)
  n, rows, count = x.shape
  channels = rows // each_block
  steps, apart = each(op, "strides", strides, rank, 1), each(op, "dilations", dilations, rank, 1)
  flat = each(op, "pads", pads, 2 * rank, 0)
  places = [(size + flat[i] + flat[rank + i] - d * (k - 1) - 1) // s + 1
            for i, (size, k, s, d) in enumerate(zip(image, block, steps, apart))]
  if math.prod(places) != count: raise op.wrong(f"{count} columns for {places} places")
  parts = x.reshape(n * channels, each_block, *places)
  kernels = Tensor.eye(each_block, device=x.device, dtype=x.dtype).reshape(each_block, 1, *block)
  whole = parts.conv_transpose2d(kernels, stride=steps, dilation=apart)
  sizes = [size + flat[i] + flat[rank + i] for i, size in enumerate(image)]
  whole = whole.pad([(0, 0), (0, 0), *((0, max(w - s, 0)) for w, s in zip(sizes, whole.shape[2:]))])
  cut = whole.shrink([None, None, *((flat[i], flat[i] + size) for i, size in enumerate(image))])
  return cut.reshape(n, channels, *image)
