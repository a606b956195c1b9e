"""Texture fetches as the appendix of the CUDA programming guide tells them, of all threads at once.

Written against operations on values, so that compiled code fetches by the same meaning. Coordinates, indices, levels
and places are f64, in which all of them are exact. Fractions of linear filtering have 8 bits, and 1.0 can be one. The
weighted sum is made in double precision and rounded once; a chip's order, and how it rounds, are not told.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, Generic, Protocol

import numpy as np

from tinyhw.emulator.ptx.texture.objects import FORMATS, Header, Sampler
from tinyhw.emulator.values.elementary import log2
from tinyhw.emulator.values.ops import F64, Array, B, Operations

Read = Callable[[B], list[B]]
"""`read(bytes behind the array's begin) -> words`: an unsigned one for each component of the element there."""
_FAR: Final = 2.0**30
_WHOLE: Final = 2.0**52  # added to a whole number below it, it leaves that in the low bits


class Sizes(Protocol[B]):
  """Numbers of an array, f64: of a level, which is None for the first one, or of all."""
  def extent(self, axis: int, level: B | None) -> B: ...
  def row(self, level: B | None) -> B: ...
  def start(self, level: B | None) -> B: ...
  def number(self, name: str) -> B: ...


NUMBERS: Final = ("bias", "least", "most", "layers", "samples", "top")


class Known:
  """The sizes of an array that is known."""

  def __init__(self, h: Header) -> None:
    self.rows = np.array([[*h.extent(k), h.row(k), h.start(k) - h.address] for k in range(h.levels)], np.float64)
    of_one = max(h.layers // (6 if h.cube else 1), 1)
    self.numbers = dict(zip(NUMBERS, map(float, (*h.lod, of_one, max(h.samples, 1), h.levels - 1))))

  def _of(self, column: int, level: Array | None) -> Array:
    return self.rows[0, column] if level is None else self.rows[np.asarray(level).astype(np.intp), column]

  def extent(self, axis: int, level: Array | None) -> Array: return self._of(axis, level)
  def row(self, level: Array | None) -> Array: return self._of(3, level)
  def start(self, level: Array | None) -> Array: return self._of(4, level)
  def number(self, name: str) -> Array: return F64.type(self.numbers[name])


def limited(o: Operations[B], x: B, low: B | float, high: B | float) -> B:
  """A number within limits."""
  x = o.where(x > low, x, low)
  return o.where(x < high, x, high)


def finite(o: Operations[B], x: B) -> B:
  """Coordinates as f64 that floor to an int: NaN is 0."""
  x = o.to(x, "f64")
  return limited(o, o.where(x == x, x, 0.0), -_FAR, _FAR)


def whole(o: Operations[B], x: B) -> B:
  """A whole f64 from 0 to 2**52 as u64."""
  return o.bits(x + _WHOLE, "u64") & ((1 << 52) - 1)


def _modulo(o: Operations[B], i: B, n: B) -> B:
  """Of whole numbers; the quotient cannot be rounded up to a whole one, as both are below 2**50."""
  return i - o.floor(o.fdiv(i, n)) * n


def placed(o: Operations[B], i: B, n: B, mode: str) -> tuple[B, B | None]:
  """(index within n elements, whether it lies outside and is of the border; None for never)."""
  if mode == "wrap": return _modulo(o, i, n), None
  if mode == "mirror":
    at = _modulo(o, i, n * 2.0)
    return o.where(at < n, at, n * 2.0 - 1.0 - at), None
  inside = limited(o, i, 0.0, n - 1.0)
  return inside, inside != i if mode in {"clamp_to_border", "clamp_ogl"} else None


@cache
def _linear_light(bits: int) -> list[int]:
  """What numbers of so many bits stand for in sRGB, as bits of f64."""
  x = np.arange(1 << bits) / float((1 << bits) - 1)
  light = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
  return [int(b) for b in light.view(np.uint64)]


class Look(Generic[B]):
  """One texture that some threads look at. Of the header what is said of its form counts, `sizes` has its numbers;
  `read` gets elements, `normalized` says whether coordinates are, `integers` whether they are whole numbers."""

  def __init__(self, o: Operations[B], header: Header, sampler: Sampler, sizes: Sizes[B], read: Read[B],
               integers: bool) -> None:
    self.o, self.h, self.s, self.sizes, self.read, self.integers = o, header, sampler, sizes, read, integers
    self.normalized = sampler.normalized and not sampler.force_unnormalized and not integers
    modes = [*sampler.modes]
    if not self.normalized: modes = ["clamp_to_edge" if m in {"wrap", "mirror"} else m for m in modes]
    if header.linear: modes = ["clamp_to_border"] * 3
    if header.cube: modes = ["clamp_to_edge"] * 3
    self.modes = modes
    self.compare: B | None = None  # what depths are compared with

  # ---- elements

  def texel(self, level: B | None, place: Sequence[tuple[B, B | None]], layer: B | None) -> list[B]:
    """The four components at a place [x, y, z], as f64 or of integers as i64; those that it has not are 0, 0, 1.
    `layer` counts samples too, None where there is but one."""
    o, h, sizes = self.o, self.h, self.sizes
    outside: B | None = None
    for _, out_of in place:
      if out_of is not None: outside = out_of if outside is None else outside | out_of
    at: B | None = layer
    for axis in (2, 1):
      if at is not None and h.size[axis]: at = at * sizes.extent(axis, level)
      if len(place) > axis: at = place[axis][0] if at is None else at + place[axis][0]
    x = place[0][0] * float(h.element)
    at = x if at is None else at * sizes.row(level) + x
    if level is not None: at = at + sizes.start(level)
    parts = self._components(self.read(at))
    if outside is not None:
      for k, e in enumerate((0.0,) * 4 if h.linear else h.border):
        parts[k] = o.where(outside, o.const("f64", e) if h.floats else o.const("i64", int(e)), parts[k])
    if self.compare is None: return parts
    passes = self.compare <= o.to(parts[0], "f64")
    return [o.where(passes, o.const("f64", 1), o.const("f64", 0))] * 4

  def _components(self, words: list[B]) -> list[B]:
    kind = "f64" if self.h.floats else "i64"
    return [self._number(words[k], k) if k < len(words) else self.o.const(kind, 1 if k == 3 else 0) for k in range(4)]

  def _number(self, word: B, channel: int) -> B:
    o, h = self.o, self.h
    bits = 8 * FORMATS[h.kind]
    if h.kind[0] == "f": return o.to(o.bits(word, f"f{bits}"), "f64")
    signed = h.kind[0] == "s"
    number = o.bits(word, f"i{bits}") if signed else word
    if not h.unit: return o.to(number, "i64")
    if h.srgb and channel < 3 and not signed: return o.bits(o.lookup("u64", _linear_light(bits), word), "f64")
    x = o.fdiv(o.to(number, "f64"), o.const("f64", float((1 << bits - signed) - 1)))
    return o.where(x > -1.0, x, -1.0) if signed else x

  # ---- coordinates

  def scaled(self, c: B, level: B | None, axis: int) -> B:
    """A coordinate in elements of a level."""
    if self.integers: return self.o.to(c, "f64")
    x = finite(self.o, c)
    if self.normalized: x = x * self.sizes.extent(axis, level)
    return limited(self.o, x, 0.0, self.sizes.extent(axis, level)) if self.modes[axis] == "clamp_ogl" else x

  def _placed(self, i: B, level: B | None, axis: int) -> tuple[B, B | None]:
    return placed(self.o, i, self.sizes.extent(axis, level), self.modes[axis])

  def at_level(self, coordinates: Sequence[B], level: B | None, layer: B | None,
               offsets: Sequence[B | None]) -> list[B]:
    """The four components at coordinates in one level."""
    o = self.o
    x = [self.scaled(c, level, axis) for axis, c in enumerate(coordinates)]
    if self.integers or not self.s.linear or not self.h.floats:
      index = [_moved(i if self.integers else o.floor(i), e) for i, e in zip(x, offsets)]
      return self.texel(level, [self._placed(i, level, axis) for axis, i in enumerate(index)], layer)
    x = [c - 0.5 for c in x]
    low = [o.floor(c) for c in x]
    alpha = [o.rint((c - i) * 256.0) * (1 / 256) for c, i in zip(x, low)]
    base = [_moved(i, e) for i, e in zip(low, offsets)]
    places = [[self._placed(i, level, axis), self._placed(i + 1.0, level, axis)] for axis, i in enumerate(base)]
    total: list[B] = [o.const("f64", 0)] * 4
    for corner in range(1 << len(x)):
      weight, *others = [a if corner >> axis & 1 else o.const("f64", 1) - a for axis, a in enumerate(alpha)]
      for part in others: weight = weight * part
      parts = self.texel(level, [p[corner >> axis & 1] for axis, p in enumerate(places)], layer)
      # a corner of no weight does not count, whatever is there
      total = [t + o.where(weight == 0.0, 0.0, weight * p) for t, p in zip(total, parts)]
    return total

  def fetch(self, coordinates: Sequence[B], layer: B | None, lod: B | None, offsets: Sequence[B | None]) -> list[B]:
    """The four components; `lod` is the level of detail, None for the base level, and so may each offset be."""
    o, sizes = self.o, self.sizes
    if lod is None or self.h.levels == 1: return self.at_level(coordinates, None, layer, offsets)
    lod = limited(o, finite(o, lod) + sizes.number("bias"), sizes.number("least"), sizes.number("most"))
    top = sizes.number("top")
    lod = limited(o, lod, 0.0, top)
    if not self.s.mip_linear or not self.h.floats:
      return self.at_level(coordinates, o.floor(lod + 0.5), layer, offsets)
    low = o.floor(lod)
    a = o.rint((lod - low) * 256.0) * (1 / 256)
    one = self.at_level(coordinates, low, layer, offsets)
    two = self.at_level(coordinates, limited(o, low + 1.0, 0.0, top), layer, offsets)
    rest = o.const("f64", 1) - a
    return [o.where(a == 0.0, p, o.where(a == 1.0, q, rest * p + a * q)) for p, q in zip(one, two)]

  def footprint(self, coordinates: Sequence[B], layer: B | None, offsets: Sequence[B | None],
                component: int) -> list[B]:
    """One component of the four elements that linear filtering would take, counter-clockwise from the lower left."""
    low = [_moved(self.o.floor(self.scaled(c, None, axis) - 0.5), e)
           for axis, (c, e) in enumerate(zip(coordinates, offsets))]
    x, y = ([self._placed(i, None, axis), self._placed(i + 1.0, None, axis)] for axis, i in enumerate(low))
    return [self.texel(None, [x[i], y[j]], layer)[component] for i, j in ((0, 1), (1, 1), (1, 0), (0, 0))]

  def detail(self, dx: Sequence[B], dy: Sequence[B]) -> B:
    """The level of detail of gradients: the longer one's length in elements, as a power of 2."""
    o = self.o

    def length(d: Sequence[B]) -> B:
      parts = [finite(o, p) for p in d]
      if self.normalized or self.h.cube: parts = [p * self.sizes.extent(axis, None) for axis, p in enumerate(parts)]
      total, *others = [p * p for p in parts]
      for p in others: total = total + p
      return total
    one, two = length(dx), length(dy)
    longest = o.where(one > two, one, two)
    some = longest > 0.0
    return o.where(some, log2(o, o.where(some, longest, 1.0)) * 0.5, -_FAR)


def _moved(i: B, offset: B | None) -> B: return i if offset is None else i + offset


_FACES: Final = (  # by axis and sign: which coordinates s and t are, and their signs
  ((2, -1, 1, -1), (2, 1, 1, -1)), ((0, 1, 2, 1), (0, 1, 2, -1)), ((0, 1, 1, -1), (0, -1, 1, -1)))


def face(o: Operations[B], c: Sequence[B], gradients: Sequence[Sequence[B]] = ()) \
    -> tuple[B, list[B], list[list[B]]]:
  """(face of a cube as f64, its normalized coordinates, gradients on it) of a direction."""
  x = [finite(o, v) for v in c]
  size = [o.abs(v) for v in x]
  by_z = (size[2] >= size[0]) & (size[2] >= size[1])
  by_y = size[1] >= size[0]

  def chosen(values: Sequence[B]) -> B: return o.where(by_z, values[2], o.where(by_y, values[1], values[0]))
  negative = o.signbit(chosen(x))
  one, zero = o.const("f64", 1), o.const("f64", 0)
  number = o.where(by_z, 4.0, o.where(by_y, o.const("f64", 2), zero)) + o.where(negative, one, zero)

  def take(values: Sequence[B], k: int) -> B:
    sides = [[values[row[k]] if row[k + 1] > 0 else o.neg(values[row[k]]) for row in pair] for pair in _FACES]
    return chosen([o.where(negative, n, p) for p, n in sides])
  major = chosen(size)
  m = o.where(major == 0.0, 1.0, major)
  out = [(o.fdiv(take(x, k), m) + 1.0) * 0.5 for k in (0, 2)]
  ways = []
  for g in gradients:
    d = [finite(o, v) for v in g]
    dm = chosen(d)
    dm = o.where(negative, o.neg(dm), dm)
    ways.append([o.fdiv(take(d, k) * m - take(x, k) * dm, m * m * 2.0) for k in (0, 2)])
  return number, out, ways
