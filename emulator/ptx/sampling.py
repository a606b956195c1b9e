"""Texture fetches as the appendix of the CUDA programming guide tells them, of all threads at once.

Coordinates are f64 or integers [warps, lanes]. Fractions of linear filtering have 8 bits, and 1.0 can be one. The
weighted sum is made in double precision and rounded once; a chip's order, and how it rounds, are not told.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tinyhw.emulator.ptx.texture import Header, Sampler

Value = Any
Read = Callable[[Value, int], Value]
"""`read(addresses u64, bytes) -> u8, u16, u32, u64, or u32 [..., 4]` of the threads that count."""
_UNITS: Final = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4")}
_FAR: Final = 2.0**30


def finite(x: Value) -> Value:
  """Coordinates as f64 that floor to an int: NaN is 0."""
  return np.clip(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=_FAR, neginf=-_FAR), -_FAR, _FAR)


def placed(i: Value, n: int, mode: str) -> tuple[Value, Value]:
  """(index within n elements, whether it lies outside and is of the border)."""
  inside = np.clip(i, 0, n - 1)
  if mode == "wrap": return i % n, np.False_
  if mode == "mirror":
    at = i % (2 * n)
    return np.where(at < n, at, 2 * n - 1 - at), np.False_
  return inside, inside != i if mode in {"clamp_to_border", "clamp_ogl"} else np.False_


class Look:
  """One texture that some threads look at: `read` gets memory, `normalized` says whether coordinates are."""

  def __init__(self, header: Header, sampler: Sampler, read: Read, shape: tuple[int, int], whole: bool) -> None:
    self.h, self.s, self.read, self.shape, self.whole = header, sampler, read, shape, whole
    self.normalized = sampler.normalized and not sampler.force_unnormalized and not whole
    modes = [*sampler.modes]
    if not self.normalized: modes = ["clamp_to_edge" if m in {"wrap", "mirror"} else m for m in modes]
    if header.linear: modes = ["clamp_to_border"] * 3
    if header.cube: modes = ["clamp_to_edge"] * 3
    self.modes = modes
    self.compare: Value = None  # what depths are compared with

  # ---- elements

  def texel(self, level: Value, index: Sequence[Value], layer: Value, sample: Value) -> list[Value]:
    """The four components at an index [x, y, z], as f64 or of integers as int64; those that it has not are 0, 0, 1."""
    h = self.h
    out: list[Value] | None = None
    for k in np.unique(level).tolist():
      w_h_d = h.extent(k)
      outside: Value = np.False_
      at: Value = np.zeros(self.shape, np.int64)
      y_rows = [1, w_h_d[1], w_h_d[2]]
      place = [np.zeros(self.shape, np.int64)] * 3
      for axis, i in enumerate(index):
        found, out_of = placed(i, w_h_d[axis], self.modes[axis])
        place[axis], outside = found, outside | out_of
      at = (layer * max(h.samples, 1) + sample) * y_rows[2] + place[2]
      at = (at * y_rows[1] + place[1]) * h.row(k) + place[0] * h.element + h.start(k)
      parts = self._components(self.read(at.astype(np.uint64), h.element))
      edge = (0.0,) * 4 if h.linear else h.border
      parts = [np.where(outside, p.dtype.type(e), p) for p, e in zip(parts, edge)]
      out = parts if out is None else [np.where(level == k, p, q) for p, q in zip(parts, out)]
    assert out is not None
    if self.compare is not None: return [(self.compare <= out[0]).astype(np.float64)] * 4
    return out

  def _components(self, raw: Value) -> list[Value]:
    h = self.h
    size = h.element // h.channels
    if h.element == 16: words = [raw[..., k] for k in range(4)]
    else: words = [(raw >> raw.dtype.type(8 * size * k)).astype(_UNITS[size]) for k in range(h.channels)]
    kind = np.float64 if h.floats else np.int64
    out = [self._number(w, k) for k, w in enumerate(words)]
    while len(out) < 4: out.append(np.asarray(1 if len(out) == 3 else 0, kind))
    return [np.broadcast_to(x, self.shape) for x in out]

  def _number(self, word: Value, channel: int) -> Value:
    h = self.h
    if h.kind[0] == "f": return word.view(f"f{word.dtype.itemsize}").astype(np.float64)
    number = word.view(f"i{word.dtype.itemsize}") if h.kind[0] == "s" else word
    if not h.unit: return number.astype(np.int64)
    bits = 8 * word.dtype.itemsize
    if h.kind[0] == "s": return np.maximum(number / float((1 << bits - 1) - 1), -1.0)
    x = number / float((1 << bits) - 1)
    if h.srgb and channel < 3: x = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    return x

  # ---- coordinates

  def scaled(self, c: Value, level: Value, axis: int) -> Value:
    """A coordinate in elements of a level."""
    if self.whole: return c
    x = finite(c)
    if self.normalized: x = x * np.array([self.h.extent(k)[axis] for k in range(self.h.levels)], np.float64)[level]
    if self.modes[axis] == "clamp_ogl":
      x = np.clip(x, 0.0, np.array([self.h.extent(k)[axis] for k in range(self.h.levels)], np.float64)[level])
    return x

  def at_level(self, coordinates: Sequence[Value], level: Value, layer: Value, sample: Value,
               offsets: Sequence[Value]) -> list[Value]:
    """The four components at coordinates in one level."""
    x = [self.scaled(c, level, axis) for axis, c in enumerate(coordinates)]
    if self.whole: return self.texel(level, [i + e for i, e in zip(x, offsets)], layer, sample)
    if not self.s.linear or not self.h.floats:
      return self.texel(level, [np.floor(c).astype(np.int64) + e for c, e in zip(x, offsets)], layer, sample)
    low = [np.floor(c - 0.5) for c in x]
    alpha = [np.rint((c - 0.5 - i) * 256) / 256 for c, i in zip(x, low)]
    base = [i.astype(np.int64) + e for i, e in zip(low, offsets)]
    total: list[Value] = [0.0] * 4
    for corner in range(1 << len(x)):
      weight: Value = 1.0
      for axis, a in enumerate(alpha): weight = weight * (a if corner >> axis & 1 else 1 - a)
      parts = self.texel(level, [i + (corner >> axis & 1) for axis, i in enumerate(base)], layer, sample)
      # a corner of no weight does not count, whatever is there
      total = [t + np.where(weight == 0, 0.0, weight * p) for t, p in zip(total, parts)]
    return total

  def fetch(self, coordinates: Sequence[Value], layer: Value, sample: Value, lod: Value,
            offsets: Sequence[Value]) -> list[Value]:
    """The four components; `lod` is the level of detail as f64, None for the base level."""
    if lod is None:
      return self.at_level(coordinates, np.zeros(self.shape, np.int64), layer, sample, offsets)
    bias, least, most = self.h.lod
    top = self.h.levels - 1
    lod = np.clip(np.clip(finite(lod) + bias, least, most), 0, top)
    if not self.s.mip_linear or not self.h.floats:
      return self.at_level(coordinates, np.floor(lod + 0.5).astype(np.int64), layer, sample, offsets)
    low = lod.astype(np.int64)  # it is not below 0
    a = np.rint((lod - low) * 256) / 256
    one = self.at_level(coordinates, low, layer, sample, offsets)
    two = self.at_level(coordinates, np.minimum(low + 1, top), layer, sample, offsets)
    return [np.where(a == 0, p, np.where(a == 1, q, (1 - a) * p + a * q)) for p, q in zip(one, two)]

  def footprint(self, coordinates: Sequence[Value], layer: Value, offsets: Sequence[Value],
                component: int) -> list[Value]:
    """One component of the four elements that linear filtering would take, counter-clockwise from the lower left."""
    level = np.zeros(self.shape, np.int64)
    x, y = (np.floor(self.scaled(c, level, axis) - 0.5).astype(np.int64) + e
            for axis, (c, e) in enumerate(zip(coordinates, offsets)))
    zero = np.zeros(self.shape, np.int64)
    return [self.texel(level, [x + i, y + j], layer, zero)[component] for i, j in ((0, 1), (1, 1), (1, 0), (0, 0))]

  def detail(self, dx: Sequence[Value], dy: Sequence[Value]) -> Value:
    """The level of detail of gradients: the longer one's length in elements, as a power of 2."""
    extent = self.h.extent(0)
    scale = [float(n) if self.normalized or self.h.cube else 1.0 for n in extent]
    def length(d: Sequence[Value]) -> Value: return sum((finite(p) * n) ** 2 for p, n in zip(d, scale))
    longest = np.maximum(length(dx), length(dy))
    return np.where(longest > 0, 0.5 * np.log2(np.where(longest > 0, longest, 1.0)), -_FAR)


_FACES: Final = (  # by axis and sign: which coordinates s and t are, and their signs
  ((2, -1, 1, -1), (2, 1, 1, -1)), ((0, 1, 2, 1), (0, 1, 2, -1)), ((0, 1, 1, -1), (0, -1, 1, -1)))


def face(c: Sequence[Value], gradients: Sequence[Sequence[Value]] = ()) -> tuple[Value, list[Value], list[list[Value]]]:
  """(face of a cube, its normalized coordinates, gradients on it) of a direction."""
  x = [finite(v) for v in c]
  size = [np.abs(v) for v in x]
  axis = np.where((size[2] >= size[0]) & (size[2] >= size[1]), 2, np.where(size[1] >= size[0], 1, 0))
  negative = np.select([axis == k for k in range(3)], [np.signbit(v) for v in x])
  number = 2 * axis + negative
  rows = [row for pair in _FACES for row in pair]
  def take(values: Sequence[Value], k: int) -> Value:
    return np.select([number == n for n in range(6)], [values[row[k]] * row[k + 1] for row in rows])
  major = np.select([axis == k for k in range(3)], size)
  m = np.where(major == 0, 1.0, major)
  out = [(take(x, k) / m + 1) / 2 for k in (0, 2)]
  ways = []
  for g in gradients:
    d = [finite(v) for v in g]
    dm = np.select([axis == k for k in range(3)], d) * np.where(negative, -1.0, 1.0)
    ways.append([(take(d, k) * m - take(x, k) * dm) / (2 * m * m) for k in (0, 2)])
  return number, out, ways
