"""Operators that sample at other positions: Resize, GridSample, RoiAlign.

Where the positions follow from sizes alone (Resize), the host computes them with their weights, and a kernel gathers;
where they are values (GridSample, RoiAlign), kernels compute them too.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyhw.ir.dtype import dtypes
from tinyhw.nn.onnx.run import Call
from tinyhw.nn.onnx.shapes import ints
from tinyhw.nn.onnx.table import Host, operator
from tinyhw.tensor.tensor import Tensor

Ints = tuple[int, ...]
Floats = tuple[float, ...]
Weighted = tuple[list[float], int]  # weights of the elements from a position on


def _center(i: int, n: int, m: int, scale: float, mode: str, roi: tuple[float, float]) -> float:
  """Where result i of m lies among the n elements of an axis."""
  if mode == "asymmetric": return i / scale
  if mode == "align_corners": return 0.0 if scale * n == 1 else i * (n - 1) / (scale * n - 1)
  if mode == "tf_half_pixel_for_nn": return (i + 0.5) / scale
  if mode == "tf_crop_and_resize":
    start, end = roi
    return start * (n - 1) + i * (end - start) * (n - 1) / (m - 1) if m > 1 else 0.5 * (start + end) * (n - 1)
  if mode == "pytorch_half_pixel" and m == 1: return 0.0
  shift = n / 2 * (1 - m / (scale * n)) if mode == "half_pixel_symmetric" else 0.0
  return shift + (i + 0.5) / scale - 0.5


_NEAREST = {"round_prefer_floor": lambda x: math.ceil(x - 0.5), "round_prefer_ceil": lambda x: math.floor(x + 0.5),
            "floor": math.floor, "ceil": math.ceil}
_CENTERS = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
            "tf_half_pixel_for_nn", "tf_crop_and_resize")


def _cubic(x: float, a: float) -> float:
  """Keys's kernel."""
  x = abs(x)
  if x <= 1: return ((a + 2) * x - (a + 3)) * x * x + 1
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def _taps(center: float, scale: float, mode: str, a: float) -> Weighted:
  """The weights around a position; a scale below 1 widens the kernel (which only antialias asks for)."""
  reach = (1 if mode == "linear" else 2) / scale
  first = math.floor(center)
  rest = center - first
  begin = math.floor(-reach) + 1
  places = range(begin, 2 - begin if mode == "linear" and reach == 1 else 2 - begin)
  kernel = (lambda x: max(1 - abs(x), 0.0)) if mode == "linear" else (lambda x: _cubic(x, a))
  weights = [kernel((k - rest) * scale) for k in places]
  total = sum(weights)
  return [w / total for w in weights] if scale != 1 else weights, first + begin


def _resized(op: Call, x: Tensor, axis: int, m: int, scale: float, mode: str, center: str, nearest: str, a: float,
             antialias: bool, exclude: bool, extrapolation: float, roi: tuple[float, float]) -> Tensor:
  """An axis at another size."""
  n = x.shape[axis]
  at = [_center(i, n, m, scale, center, roi) for i in range(m)]
  outside = [center == "tf_crop_and_resize" and not 0 <= p <= n - 1 for p in at]
  def index(places: list[int]) -> Tensor: return Tensor(np.array(places, np.int32), device=x.device)
  def along(values: Any, dtype: Any) -> Tensor:
    return Tensor(np.asarray(values, dtype), device=x.device).reshape([m if i == axis else 1 for i in range(x.ndim)])
  lead = (slice(None),) * axis
  if mode == "nearest":
    result = x[(*lead, index([min(max(_NEAREST[nearest](p), 0), n - 1) for p in at]))]
  else:
    wide = x if x.dtype.is_float else x.float()
    rows = [_taps(p, min(scale, 1) if antialias else 1, mode, a) for p in at]
    if exclude:
      kept = [([w if 0 <= first + k < n else 0.0 for k, w in enumerate(ws)], first) for ws, first in rows]
      rows = [([w / (sum(ws) or 1) for w in ws], first) for ws, first in kept]
    found: Tensor | None = None
    for k in range(max(len(ws) for ws, _ in rows)):
      places = [min(max(first + k, 0), n - 1) for _, first in rows]
      part = wide[(*lead, index(places))] * along([ws[k] if k < len(ws) else 0.0 for ws, _ in rows],
                                                  np.float32).cast(wide.dtype)
      found = part if found is None else found + part
    assert found is not None
    result = found if x.dtype.is_float else found.round().clip(x.dtype.min, x.dtype.max)
  if any(outside): result = along(outside, np.bool_).where(extrapolation, result)
  return result.cast(x.dtype).contiguous()


def _scaled(n: int, scale: float) -> int: return math.floor(n * scale)


@operator("Resize", 10)
def resize_first(op: Call, x: Tensor, scales: Host, *, mode: str = "nearest") -> Tensor:
  return _upsampled(op, x, [float(s) for s in scales.reshape(-1)], mode)


@operator("Upsample", 7)
def upsample_by_attribute(op: Call, x: Tensor, *, mode: str = "nearest", scales: Floats) -> Tensor:
  return _upsampled(op, x, list(scales), mode)


@operator("Upsample", 9)
def upsample(op: Call, x: Tensor, scales: Host, *, mode: str = "nearest") -> Tensor:
  return _upsampled(op, x, [float(s) for s in scales.reshape(-1)], mode)


def _upsampled(op: Call, x: Tensor, scales: list[float], mode: str) -> Tensor:
  if mode not in ("nearest", "linear", "bilinear"): raise op.wrong(f"mode {mode!r}")
  return _all_axes(op, x, [_scaled(n, s) for n, s in zip(x.shape, scales)], scales, list(range(x.ndim)),
                   "nearest" if mode == "nearest" else "linear", "asymmetric", "floor", -0.75, False, False, 0.0, None)


@operator("Resize", 11, 13, 18, 19)
def resize(op: Call, x: Tensor, roi: Host | None, scales: Host | None, sizes: Host | None, *, antialias: int = 0,
           axes: Ints | None = None, coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75,
           exclude_outside: int = 0, extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch",
           mode: str = "nearest", nearest_mode: str = "round_prefer_floor") -> Tensor:
  """Axes at other sizes, which are given or follow from scales."""
  chosen = list(range(x.ndim)) if axes is None else [x._axis(a) for a in axes]
  if mode not in ("nearest", "linear", "cubic"): raise op.wrong(f"mode {mode!r} is none of nearest, linear, cubic")
  if coordinate_transformation_mode not in _CENTERS:
    raise op.wrong(f"mode {coordinate_transformation_mode!r} of coordinates")
  if nearest_mode not in _NEAREST: raise op.wrong(f"nearest_mode {nearest_mode!r}")
  if sizes is not None and sizes.size:
    wanted = ints(sizes)
    if len(wanted) != len(chosen): raise op.wrong(f"{len(wanted)} sizes for {len(chosen)} axes")
    factors = [w / max(x.shape[a], 1) for w, a in zip(wanted, chosen)]
    if keep_aspect_ratio_policy != "stretch":
      if keep_aspect_ratio_policy not in ("not_larger",
                                          "not_smaller"): raise op.wrong(f"policy {keep_aspect_ratio_policy!r}")
      one = min(factors) if keep_aspect_ratio_policy == "not_larger" else max(factors)
      factors = [one] * len(chosen)
      wanted = [math.floor(one * x.shape[a] + 0.5) for a in chosen]
  elif scales is not None and scales.size:
    factors = [float(s) for s in scales.reshape(-1)]
    if len(factors) != len(chosen): raise op.wrong(f"{len(factors)} scales for {len(chosen)} axes")
    wanted = [_scaled(x.shape[a], s) for a, s in zip(chosen, factors)]
  else: raise op.wrong("neither scales nor sizes")
  return _all_axes(op, x, wanted, factors, chosen, mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a,
                   bool(antialias), bool(exclude_outside), extrapolation_value, roi)


def _all_axes(op: Call, x: Tensor, wanted: list[int], factors: list[float], chosen: list[int], mode: str, center: str,
              nearest: str, a: float, antialias: bool, exclude: bool, extrapolation: float, roi: Host | None) -> Tensor:
  if any(f <= 0 for f in factors) or min(wanted, default=1) < 1 and x.numel(): raise op.wrong(f"scales {factors}")
  found = x
  for i, (axis, m, factor) in enumerate(zip(chosen, wanted, factors)):
    part = (0.0, 1.0)
    if center == "tf_crop_and_resize" and roi is not None and roi.size:
      part = float(roi.reshape(-1)[i]), float(roi.reshape(-1)[len(chosen) + i])
    if m == x.shape[axis] and factor == 1 and part == (0.0, 1.0): continue
    found = _resized(op, found, axis, m, factor, mode, center, nearest, a, antialias, exclude, extrapolation, part)
  return +found


# *** positions that are values ***


def _limited(place: Tensor, n: int, padding: str, aligned: bool) -> Tensor:
  """A position, moved into the axis by the mode of padding."""
  if padding == "border": return place.clip(0, n - 1)
  low, high = (0.0, n - 1.0) if aligned else (-0.5, n - 0.5)
  span = high - low
  if span == 0: return place.zeros_like()
  away = (place - low).abs()
  rest = away.fmod(span)
  odd = (away / span).floor().fmod(2).ne(0)
  return odd.where(span - rest, rest) + low


def _sample(x: Tensor, places: list[Tensor], padding: str, aligned: bool) -> Tensor:
  """The elements of (n, c, area...) at integral positions (n, points), one an axis: (n, c, points)."""
  n, c, *area = x.shape
  line: Tensor | None = None
  inside: Tensor | None = None
  for size, place in zip(area, places):
    if padding == "reflection": place = _limited(place, size, padding, aligned)
    there = (place >= 0) & (place < size)
    at = place.clip(0, size - 1).cast(dtypes.int32)
    line = at if line is None else line * size + at
    inside = there if inside is None else inside & there
  assert line is not None and inside is not None
  flat = x.reshape(n, c, math.prod(area))
  values = flat.gather(2, line.unsqueeze(1).expand(n, c, line.shape[1]))
  return values if padding == "border" else inside.unsqueeze(1).where(values, 0)


@operator("GridSample", 16, 20, 22)
def grid_sample(op: Call, x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear",
                padding_mode: str = "zeros") -> Tensor:
  """The input at positions that a grid says, from -1 to 1 along each axis, the last axis first."""
  mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
  if mode not in ("linear", "nearest", "cubic"): raise op.wrong(f"mode {mode!r}")
  if padding_mode not in ("zeros", "border", "reflection"): raise op.wrong(f"padding_mode {padding_mode!r}")
  n, c, *area = x.shape
  rank = len(area)
  if grid.ndim != x.ndim or grid.shape[-1] != rank: raise op.wrong(f"a grid of shape {grid.shape} for shape {x.shape}")
  points = grid.reshape(n, -1, rank)
  aligned = bool(align_corners)
  at = []
  for i, size in enumerate(area):
    g = points[:, :, rank - 1 - i]
    place = (g + 1) * ((size - 1) / 2) if aligned else ((g + 1) * size - 1) / 2
    if mode != "cubic" and padding_mode != "zeros": place = _limited(place, size, padding_mode, aligned)
    if padding_mode == "reflection" and mode != "cubic": place = place.clip(0, size - 1)
    at.append(place)
  shape = (n, c, *grid.shape[1:-1])
  if mode == "nearest": return _sample(x, [p.round() for p in at], padding_mode, aligned).reshape(shape)
  found: Tensor | None = None
  corners: list[tuple[list[Tensor], Tensor | None]] = [([], None)]
  for p in at:
    first = p.floor()
    rest = p - first
    if mode == "linear": taps = [(first, 1 - rest), (first + 1, rest)]
    else: taps = [(first + k, _cubic_of(rest - k)) for k in (-1, 0, 1, 2)]
    corners = [([*places, place], weight if before is None else before * weight)
               for places, before in corners for place, weight in taps]
  for places, weight in corners:
    assert weight is not None
    if padding_mode == "border": places = [q.clip(0, size - 1) for q, size in zip(places, area)]
    part = _sample(x, places, padding_mode, aligned) * weight.unsqueeze(1)
    found = part if found is None else found + part
  assert found is not None
  return found.reshape(shape).cast(x.dtype)


def _cubic_of(distance: Tensor) -> Tensor:
  """Keys's kernel with -0.75."""
  a, x = -0.75, distance.abs()
  near = ((a + 2) * x - (a + 3)) * x * x + 1
  return (x <= 1).where(near, (x < 2).where(((a * x - 5 * a) * x + 8 * a) * x - 4 * a, 0))


@operator("RoiAlign", 10)
def roi_align_first(op: Call, x: Tensor, rois: Tensor, batch_indices: Tensor, *, mode: str = "avg",
                    output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
                    spatial_scale: float = 1.0) -> Tensor:
  return roi_align(op, x, rois, batch_indices, coordinate_transformation_mode="output_half_pixel", mode=mode,
                   output_height=output_height, output_width=output_width, sampling_ratio=sampling_ratio,
                   spatial_scale=spatial_scale)


@operator("RoiAlign", 16, 22)
def roi_align(op: Call, x: Tensor, rois: Tensor, batch_indices: Tensor, *,
              coordinate_transformation_mode: str = "half_pixel", mode: str = "avg", output_height: int = 1,
              output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0) -> Tensor:
  """Regions in as many parts as wanted, each the average (or maximum) of points in it, between elements interpolated.

  Without a sampling_ratio the number of points follows from the regions' sizes, which are read.
  """
  transform = coordinate_transformation_mode
  if mode not in ("avg", "max"): raise op.wrong(f"mode {mode!r} is neither avg nor max")
  if transform not in ("half_pixel", "output_half_pixel"): raise op.wrong(f"mode {transform!r} of coordinates")
  shift = 0.5 if transform == "half_pixel" else 0.0
  _, c, height, width = x.shape
  count = rois.shape[0]
  box = rois * spatial_scale - shift
  left, top = box[:, 0], box[:, 1]
  wide, high = box[:, 2] - left, box[:, 3] - top
  if not shift: wide, high = wide.maximum(1.0), high.maximum(1.0)
  def line(start: Tensor, size: Tensor, parts: int, n: int) -> tuple[Tensor, Tensor, int]:
    """(positions (rois, parts, points), how many of the points count (rois, 1, 1), points)."""
    each = size / parts
    points = each.ceil() if sampling_ratio <= 0 else Tensor.full((count,), float(sampling_ratio), x.device)
    points = points.maximum(1)
    most = sampling_ratio if sampling_ratio > 0 else int(points.max().item()) if count else 1
    part = Tensor.arange(parts, device=x.device).reshape(1, parts, 1)
    point = Tensor.arange(most, device=x.device).reshape(1, 1, most)
    def spread(v: Tensor) -> Tensor: return v.reshape(count, 1, 1)
    return spread(start) + part * spread(each) + (point + 0.5) * spread(each / points), spread(points), most
  y, rows, per_row = line(top, high, output_height, height)
  z, columns, per_column = line(left, wide, output_width, width)
  grid_y = y.reshape(count, output_height, 1, per_row, 1).expand(count, output_height, output_width, per_row,
                                                                 per_column)
  grid_z = z.reshape(count, 1, output_width, 1, per_column).expand(count, output_height, output_width, per_row,
                                                                   per_column)
  near = (grid_y >= -1) & (grid_y <= height) & (grid_z >= -1) & (grid_z <= width)
  grid_y, grid_z = grid_y.maximum(0).reshape(count, -1), grid_z.maximum(0).reshape(count, -1)
  source = x[batch_indices]
  y0, z0 = grid_y.floor().minimum(height - 1), grid_z.floor().minimum(width - 1)
  y1, z1 = (y0 + 1).minimum(height - 1), (z0 + 1).minimum(width - 1)
  grid_y, grid_z = (y0 >= height - 1).where(y0, grid_y), (z0 >= width - 1).where(z0, grid_z)
  dy, dz = grid_y - y0, grid_z - z0
  taps = [(y0, z0, (1 - dy) * (1 - dz)), (y0, z1, (1 - dy) * dz), (y1, z0, dy * (1 - dz)), (y1, z1, dy * dz)]
  parts = [_sample(source, [a, b], "border", True) * w.unsqueeze(1) for a, b, w in taps]
  shape = (count, c, output_height, output_width, per_row, per_column)
  point_rows = Tensor.arange(per_row, device=x.device).reshape(1, 1, 1, 1, per_row, 1) < rows.reshape(count, 1, 1, 1,
                                                                                                      1, 1)
  point_columns = Tensor.arange(per_column, device=x.device) < columns.reshape(count, 1, 1, 1, 1, 1)
  counts = point_rows & point_columns
  if mode == "max":
    # The greatest of the weighted corners of every point, as the operator has it.
    top_of = parts[0].maximum(parts[1]).maximum(parts[2].maximum(parts[3])).reshape(shape)
    return (counts & near.unsqueeze(1)).where(top_of, -math.inf).max((4, 5)).cast(x.dtype)
  total = (parts[0] + parts[1] + parts[2] + parts[3]).reshape(shape)
  summed = (counts & near.unsqueeze(1)).where(total, 0).sum((4, 5))
  return (summed / (rows * columns).reshape(count, 1, 1, 1)).cast(x.dtype)


@operator("MaxRoiPool", 1, 22)
def max_roi_pool(op: Call, x: Tensor, rois: Tensor, *, pooled_shape: Ints, spatial_scale: float = 1.0) -> Tensor:
  """The greatest element of each part of regions (batch, first and last column and row); of an empty part 0."""
  if x.ndim != 4 or len(pooled_shape) != 2: raise op.wrong(f"shape {x.shape} to {pooled_shape}")
  count = rois.shape[0]
  corners = (rois[:, 1:] * spatial_scale + 0.5).floor().cast(dtypes.int32)
  def inside(first: Tensor, last: Tensor, parts: int, size: int) -> Tensor:
    """Which positions each part of each region has: (rois, parts, positions)."""
    extent = (last - first + 1).maximum(1).reshape(count, 1, 1)
    part, place = Tensor.arange(parts, device=x.device).reshape(1, parts, 1), Tensor.arange(size, device=x.device)
    start = (part * extent) // parts + first.reshape(count, 1, 1)
    end = ((part + 1) * extent + parts - 1) // parts + first.reshape(count, 1, 1)
    return (place >= start) & (place < end)
  rows = inside(corners[:, 1], corners[:, 3], pooled_shape[0], x.shape[2])
  columns = inside(corners[:, 0], corners[:, 2], pooled_shape[1], x.shape[3])
  source = x[rois[:, 0].cast(dtypes.int32)]
  # (rois, channels, parts, columns)
  tall = rows.reshape(count, 1, *rows.shape[1:], 1).where(source.unsqueeze(2), -math.inf).max(3)
  found = columns.reshape(count, 1, 1, *columns.shape[1:]).where(tall.unsqueeze(3), -math.inf).max(4)
  return found.eq(-math.inf).where(0, found).cast(x.dtype)
