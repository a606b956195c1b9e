"""Fetches of textures beside a model of one point at a time, in fractions: the CUDA programming guide's appendix."""
from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.strength import examples, seed
from tinyhw.emulator.ptx.texture.objects import FORMATS, MODES, Header, Sampler
from tinyhw.emulator.ptx.texture.sampling import Known, Look, face, whole
from tinyhw.emulator.values.ops import Ops

BASE = 1 << 20
SHAPE = 2, 32


class Model:
  """A texture, one point at a time."""

  def __init__(self, rng: random.Random, h: Header) -> None:
    self.h, s = h, h.sampler
    self.memory = bytes(rng.choice([0, 1, 10, 11, 127, 128, 200, 255, rng.randrange(256)]) for _ in range(h.bytes))
    if h.kind[0] == "f":
      dtype = f"f{FORMATS[h.kind]}"
      count = h.bytes // FORMATS[h.kind]
      self.memory = np.array([rng.randrange(-99, 99) / 4 for _ in range(count)], dtype).tobytes()
    self.normalized = s.normalized and not s.force_unnormalized
    modes = [m if self.normalized or m not in {"wrap", "mirror"} else "clamp_to_edge" for m in s.modes]
    self.modes = ["clamp_to_border"] * 3 if h.linear else ["clamp_to_edge"] * 3 if h.cube else modes

  def read(self, at: Any) -> Any:
    raw, size = np.frombuffer(self.memory, np.uint8), FORMATS[self.h.kind]
    first = np.broadcast_to(whole(Ops, at), SHAPE).astype(np.int64)
    return [np.stack([raw[first + k * size + j] for j in range(size)], -1).view(f"u{size}")[..., 0]
            for k in range(self.h.channels)]

  def number(self, word: bytes, channel: int) -> float:
    """A component from its bytes."""
    h = self.h
    if h.kind[0] == "f": return float(np.frombuffer(word, f"f{len(word)}")[0])
    n = int.from_bytes(word, "little", signed=h.kind[0] == "s")
    if not h.unit: return n
    if h.kind[0] == "s": return max(n / (2 ** (8 * len(word) - 1) - 1), -1.0)
    x = n / (2 ** (8 * len(word)) - 1)
    if not h.srgb or channel == 3: return x
    return x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4

  def texel(self, level: int, index: list[int], layer: int, sample: int) -> list[float]:
    h, at = self.h, [0, 0, 0]
    extent = [max(1, n >> level) for n in h.size]
    for axis, i in enumerate(index):
      n, mode = extent[axis], self.modes[axis]
      if mode == "wrap": i %= n
      elif mode == "mirror":
        i %= 2 * n
        i = min(i, 2 * n - 1 - i)
      elif mode in {"clamp_to_border", "clamp_ogl"} and not 0 <= i < n: return [0.0] * 4 if h.linear else [*h.border]
      at[axis] = min(max(i, 0), n - 1)
    def row(k: int) -> int:
      return h.pitch if h.pitch and not k else max(1, h.size[0] >> k) * h.channels * FORMATS[h.kind]
    start = 0
    for k in range(level):
      size = row(k) * max(1, h.size[1] >> k) * max(1, h.size[2] >> k) * max(h.layers, 1) * max(h.samples, 1)
      start += -(-size // 16) * 16
    slice_ = (layer * max(h.samples, 1) + sample) * extent[2] + at[2]
    width = FORMATS[h.kind]
    place = start + (slice_ * extent[1] + at[1]) * row(level) + at[0] * width * h.channels
    found = [self.number(self.memory[place + width * k:place + width * (k + 1)], k) for k in range(h.channels)]
    return [*found, *[0, 0, 0, 1][len(found):]]

  def at_level(self, c: list[float], level: int, layer: int, sample: int, offsets: list[int]) -> list[Any]:
    h, x = self.h, []
    for axis, v in enumerate(c):
      n = max(1, h.size[axis] >> level)
      v = 0.0 if math.isnan(v) else min(max(v, -2.0 ** 30), 2.0 ** 30)
      if self.normalized: v = v * n
      x.append(min(max(v, 0.0), float(n)) if self.modes[axis] == "clamp_ogl" else v)
    if not h.sampler.linear or not h.floats:
      return self.texel(level, [math.floor(v) + e for v, e in zip(x, offsets)], layer, sample)
    low = [math.floor(v - 0.5) for v in x]
    part = [Fraction(round((Fraction(v - 0.5) - n) * 256), 256) for v, n in zip(x, low)]
    total = [Fraction(0)] * 4
    for corner in itertools.product((0, 1), repeat=len(x)):
      weight = math.prod((a if k else 1 - a) for a, k in zip(part, corner))
      if not weight: continue
      for n, v in enumerate(self.texel(level, [i + e + k for i, e, k in zip(low, offsets, corner)], layer, sample)):
        total[n] += weight * Fraction(v)
    return total

  def fetch(self, c: list[float], layer: int, sample: int, lod: float | None, offsets: list[int]) -> list[float]:
    h = self.h
    if lod is None: return [float(v) for v in self.at_level(c, 0, layer, sample, offsets)]
    bias, least, most = h.lod
    value = min(max(0.0 if math.isnan(lod) else lod, -2.0 ** 30), 2.0 ** 30) + bias
    value = min(max(min(max(value, least), most), 0), h.levels - 1)
    if not h.sampler.mip_linear or not h.floats:
      return [float(v) for v in self.at_level(c, math.floor(value + 0.5), layer, sample, offsets)]
    low = math.floor(value)
    a = Fraction(round((Fraction(value) - low) * 256), 256)
    near = self.at_level(c, low, layer, sample, offsets)
    far = self.at_level(c, min(low + 1, h.levels - 1), layer, sample, offsets)
    return [float((1 - a) * Fraction(p) + a * Fraction(q)) for p, q in zip(near, far)]


POINTS = [math.nan, math.inf, -math.inf, 1e300, -1e300, 3e9, -3e9, 0.0, -0.0, 0.5, 1.0, -0.25, -1.0, 0.998, 1.002,
          7.5, 2.5, 0.125, 3.0, 4.0, 5.25, -2.5, 0.3125]


def drawn(rng: random.Random) -> Header:
  """A texture of one to three dimensions, with layers, samples or levels."""
  rank = rng.randrange(1, 4)
  size: Any = tuple(rng.randrange(1, 7) if k < rank else 0 for k in range(3))
  kind = rng.choice([*FORMATS])
  unit = FORMATS[kind] < 4 and kind[0] != "f" and rng.random() < 0.7
  floats = unit or kind[0] == "f"
  modes: Any = tuple(rng.choice(MODES) for _ in range(3))
  levels = rng.choice([1, 1, 2, 3])
  samples = 0 if levels > 1 or rank != 2 or rng.random() < 0.7 else 2
  channels = rng.choice([1, 2, 4])
  pitch = 0 if rng.random() < 0.6 else max(1, size[0]) * channels * FORMATS[kind] + 16
  how = Sampler(modes, floats and rng.random() < 0.6, rng.random() < 0.6, rng.random() < 0.1, rng.random() < 0.5)
  border: Any = tuple(float(rng.randrange(-3, 9)) for _ in range(4))
  layers = rng.choice([0, 1, 3]) if rank < 3 else 0
  srgb, linear = unit and kind == "u8" and rng.random() < 0.5, rng.random() < 0.1
  lod: Any = rng.choice([0.0, 0.0, 0.5, -0.75]), rng.choice([0.0, 0.5]), rng.choice([1000.0, 1.25])
  return Header(BASE, size, kind, channels, layers, levels, samples, pitch, False, unit, levels > 1, linear, srgb, how,
                border, lod)


@pytest.mark.parametrize("start", range(examples(6)))
def test_fetches(start: int) -> None:
  """Random textures at many points."""
  rng = random.Random(seed(start))
  for _ in range(4):
    h = drawn(rng)
    model = Model(rng, h)
    rank = sum(n > 0 for n in h.size)
    c = [np.array([[rng.choice(POINTS) for _ in range(32)] for _ in range(2)]) for _ in range(rank)]
    layer = np.array([[rng.randrange(max(h.layers, 1)) for _ in range(32)] for _ in range(2)])
    sample = np.array([[rng.randrange(max(h.samples, 1)) for _ in range(32)] for _ in range(2)])
    lod = np.array([[rng.choice([0.0, 1.0, 0.3, 1.5, 2.0, 7.0, -3.0, math.nan, 1e300, -math.inf]) for _ in range(32)]
                    for _ in range(2)])
    moved = [np.full((2, 32), rng.choice([0, 0, 3, -2])) for _ in range(rank)]
    look = Look(Ops, h, h.sampler, Known(h), model.read, False)
    for level in (None, lod):
      found = look.fetch(c, (layer * max(h.samples, 1) + sample).astype(float), level, [x.astype(float) for x in moved])
      for at in np.ndindex(2, 32):
        wanted = model.fetch([float(x[at]) for x in c], int(layer[at]), int(sample[at]),
                             None if level is None else float(lod[at]), [int(x[at]) for x in moved])
        one = [float(np.broadcast_to(p, (2, 32))[at]) for p in found]
        assert np.allclose(one, wanted, rtol=1e-12, atol=1e-12), (h, at)


def test_every_byte_of_srgb() -> None:
  """Colours, and what is none: the fourth component."""
  h = Header(BASE, (256, 0, 0), "u8", 4, unit=True, srgb=True)
  bytes_ = np.arange(256, dtype=np.uint8)
  look = Look(Ops, h, h.sampler, Known(h), lambda at: [bytes_[whole(Ops, at).astype(int) // 4]] * 4, False)
  found = look.fetch([np.arange(256.0).reshape(8, 32) + 0.5], None, None, [None])
  for n in range(256):
    x = n / 255
    colour = x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4
    assert np.allclose([float(p[n // 32, n % 32]) for p in found], [colour] * 3 + [x], rtol=1e-14)


def test_faces_of_a_cube() -> None:
  """Where a direction meets the cube, and how that moves with it: against differences."""
  rng = np.random.default_rng(3)
  c, d = rng.uniform(-1, 1, (3, 4, 32)), rng.uniform(-1, 1, (3, 4, 32))
  number, (s, t), ((ds, dt),) = face(Ops, [*c], [[*d]])
  for at in np.ndindex(4, 32):
    x, y, z = (float(v[at]) for v in c)
    m = max(abs(x), abs(y), abs(z))
    axis = 2 if abs(z) == m else 1 if abs(y) == m else 0
    sides = [(x, -z, -y), (x, z, -y), (y, x, z), (y, x, -z), (z, x, -y), (z, -x, -y)]
    side = 2 * axis + ((x, y, z)[axis] < 0)
    assert number[at] == side
    wanted = [(v / m + 1) / 2 for v in sides[side][1:]]
    assert np.allclose([s[at], t[at]], wanted, rtol=1e-14)
  step = 1e-7
  _, later, _ = face(Ops, [*(c + step * d)])
  _, before, _ = face(Ops, [*(c - step * d)])
  same = face(Ops, [*(c + step * d)])[0] == face(Ops, [*(c - step * d)])[0]
  for found, a, b in zip((ds, dt), later, before):
    assert np.allclose(found[same], ((a - b) / (2 * step))[same], rtol=1e-4, atol=1e-6)
