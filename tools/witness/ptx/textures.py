"""Textures and surfaces: the appendix on texture fetching of the CUDA C++ programming guide, in exact fractions.

A header and the order of elements in memory are the emulator's own (`emulator/ptx/texture/objects.py`), no question
here.
"""
from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Any, Final

from tinyhw.emulator.ptx.texture.objects import FORMATS, Header, Sampler
from tinyhw.isa.ptx.forms import SIZES, Form
from tinyhw.tools.witness.ptx.table import Case, witness

_CODES: Final = {"u8": "B", "s8": "b", "u16": "H", "s16": "h", "u32": "I", "s32": "i", "f16": "e", "f32": "f"}
_AXES: Final = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 3, "acube": 3, "2dms": 2, "a2dms": 2}
AT: Final = 256  # where the elements begin in the case's memory, behind the header
Number = Fraction | int


@dataclass(frozen=True)
class Picture:
  """What a case looks at: a header whose address is not yet known, and its elements."""
  header: Header
  data: bytes

  def memory(self, base: int) -> bytes:
    """Header and elements, at an address."""
    header = replace(self.header, address=base + AT)
    return header.encode().ljust(AT, b"\0") + self.data

  @property
  def extents(self) -> list[tuple[int, int, int]]:
    """Width, height and depth of each level."""
    return [tuple(max(1, n >> k) for n in self.header.size) for k in range(self.header.levels)]  # type: ignore[misc]

  def element(self, level: int, layer: int, sample: int, x: int, y: int, z: int) -> list[Number]:
    """The components of an element; those that it has not are 0, 0 and 1."""
    h, at = self.header, 0
    size = struct.calcsize(_CODES[h.kind]) * h.channels
    layers, samples = max(1, h.layers), max(1, h.samples)
    for w, r, d in self.extents[:level]: at = -(-(at + w * r * d * layers * samples * size) // 16) * 16
    w, r, d = self.extents[level]
    at += ((((layer * samples + sample) * d + z) * r + y) * w + x) * size
    raw = struct.unpack_from(f"<{h.channels}{_CODES[h.kind]}", self.data, at)
    bits = 8 * FORMATS[h.kind]
    if h.kind[0] == "f": got: list[Number] = [Fraction(v) for v in raw]
    elif not h.unit: got = [int(v) for v in raw]
    elif h.kind[0] == "u": got = [Fraction(v, (1 << bits) - 1) for v in raw]
    else: got = [max(Fraction(v, (1 << bits - 1) - 1), Fraction(-1)) for v in raw]
    rest: list[Number] = [0, 0, 0, 1]
    if h.unit or h.kind[0] == "f": rest = [Fraction(v) for v in rest]
    return got + rest[h.channels:]


def picture(form: Form, rng: random.Random, kind: str, geometry: str, *, sampler: Sampler, levels: int = 1,
            unit: bool = False, channels: int = 4) -> Picture:
  """Random elements."""
  axes = _AXES[geometry]
  if "cube" in geometry: size, layers = (5, 5, 0), 6 * (2 if geometry == "acube" else 1)
  else:
    size = (7, 6 if axes > 1 else 0, 3 if axes > 2 else 0)
    layers = 3 if geometry[0] == "a" else 0
  header = Header(0, size, kind, channels, layers, levels, 4 if geometry.endswith("ms") else 0,
                  cube="cube" in geometry, unit=unit, mipmapped=levels > 1, sampler=sampler,
                  border=(0.25, 0.5, 0.75, 1.0))
  count = header.bytes // FORMATS[kind]
  if kind[0] == "f":
    data = b"".join(struct.pack(f"<{_CODES[kind]}", rng.randrange(-512, 512) / 64) for _ in range(count))
  else: data = rng.randbytes(header.bytes)
  return Picture(header, data.ljust(header.bytes, b"\0"))


# ---- fetching

def float_of(bits: int) -> Fraction:
  """The value of an f32."""
  return Fraction(struct.unpack("<f", struct.pack("<I", bits))[0])


def index(i: int, n: int, mode: str) -> int | None:
  """An index as an address mode has it; None for the border."""
  if mode == "wrap": return i % n
  if mode == "mirror": return i % (2 * n) if i % (2 * n) < n else 2 * n - 1 - i % (2 * n)
  if mode == "clamp_to_edge": return min(max(i, 0), n - 1)
  return i if 0 <= i < n else None


def nearest_even(x: Fraction) -> int:
  """The nearest integer."""
  return round(x)


class Fetch:
  """One fetch, thread by thread."""

  def __init__(self, p: Picture, whole: bool, compare: Fraction | None = None) -> None:
    self.p, self.h, self.s, self.whole, self.compare = p, p.header, p.header.sampler, whole, compare
    self.normalized = self.s.normalized and not whole
    self.modes: tuple[str, ...] = self.s.modes
    if self.h.cube: self.modes, self.normalized = ("clamp_to_edge",) * 3, True
    elif not self.normalized: self.modes = tuple("clamp_to_edge" if m in {"wrap", "mirror"} else m for m in self.modes)

  def texel(self, level: int, layer: int, sample: int, at: Sequence[int]) -> list[Number]:
    """An element, or the border."""
    found = [index(i, n, m) for i, n, m in zip(at, self.p.extents[level], self.modes)]
    if any(i is None for i in found):
      got: list[Number] = [Fraction(b) for b in self.h.border] if self.floats else [int(b) for b in self.h.border]
    else:
      x, y, z = ([i for i in found if i is not None] + [0, 0])[:3]
      got = self.p.element(level, layer, sample, x, y, z)
    if self.compare is not None: return [Fraction(int(self.compare <= got[0]))] * 4
    return got

  @property
  def floats(self) -> bool: return self.h.kind[0] == "f" or self.h.unit

  def at(self, level: int, layer: int, sample: int, c: Sequence[Number], offsets: Sequence[int]) -> list[Number]:
    """The components at coordinates of a level."""
    if self.whole: return self.texel(level, layer, sample, [int(i) + e for i, e in zip(c, offsets)])
    extent = self.p.extents[level]
    x = [Fraction(v) * n if self.normalized else Fraction(v) for v, n in zip(c, extent)]
    if not self.s.linear or not self.floats:
      return self.texel(level, layer, sample, [floor(v) + e for v, e in zip(x, offsets)])
    low = [floor(v - Fraction(1, 2)) for v in x]
    alpha = [Fraction(nearest_even((v - Fraction(1, 2) - i) * 256), 256) for v, i in zip(x, low)]
    total: list[Number] = [Fraction(0)] * 4
    for corner in range(1 << len(x)):
      weight, spot = Fraction(1), []
      for k, (i, a, e) in enumerate(zip(low, alpha, offsets)):
        up = corner >> k & 1
        weight *= a if up else 1 - a
        spot.append(i + up + e)
      got = self.texel(level, layer, sample, spot)
      total = [t + weight * v for t, v in zip(total, got)]
    return total

  def fetch(self, c: Sequence[Number], layer: int, sample: int, lod: Fraction | None, offsets: Sequence[int]) \
      -> list[Number]:
    """The components, of one level or between two."""
    if lod is None: return self.at(0, layer, sample, c, offsets)
    top = self.h.levels - 1
    lod = min(max(lod, Fraction(0)), Fraction(top))
    if not self.s.mip_linear or not self.floats:
      return self.at(floor(lod + Fraction(1, 2)), layer, sample, c, offsets)
    low = floor(lod)
    a = Fraction(nearest_even((lod - low) * 256), 256)
    one, two = self.at(low, layer, sample, c, offsets), self.at(min(low + 1, top), layer, sample, c, offsets)
    return [(1 - a) * p + a * q for p, q in zip(one, two)]

  def gathered(self, c: Sequence[Number], layer: int, offsets: Sequence[int], component: int) -> list[Number]:
    """tld4: counter-clockwise from the lower left, where rows go down."""
    n = self.p.extents[0]
    x, y = (floor((Fraction(v) * m if self.normalized else Fraction(v)) - Fraction(1, 2)) + e
            for v, m, e in zip(c, n, offsets))
    return [self.texel(0, layer, 0, [x + i, y + j])[component] for i, j in ((0, 1), (1, 1), (1, 0), (0, 0))]


def cube(c: Sequence[Fraction]) -> tuple[int, list[Fraction]]:
  """(face, coordinates from 0 to 1): the table of the programming guide; of equal ones the last axis counts."""
  x, y, z = c
  if abs(z) >= abs(x) and abs(z) >= abs(y):
    face, m, s, t = (4, z, x, -y) if z >= 0 else (5, -z, -x, -y)
  elif abs(y) >= abs(x): face, m, s, t = (2, y, x, z) if y >= 0 else (3, -y, x, -z)
  else: face, m, s, t = (0, x, -z, -y) if x >= 0 else (1, -x, z, -y)
  if not m: return face, [Fraction(1, 2)] * 2
  return face, [(s / m + 1) / 2, (t / m + 1) / 2]


# ---- results

def near(value: Number, type_: str) -> Any:
  """What a result may be: an integer as it is, a float within the rounding of the sum in double precision."""
  if isinstance(value, int): return value & 0xFFFF if type_ in {"f16", "f16x2"} else value & 0xFFFFFFFF
  code, size = ("<e", 2) if type_ in {"f16", "f16x2"} else ("<f", 4)

  def right(bits: int) -> bool:
    got = Fraction(struct.unpack(code, bits.to_bytes(size, "little"))[0])
    step = Fraction(2) ** -(24 if size == 4 else 11)
    return abs(got - value) <= abs(value) * step * Fraction(1001, 1000) + Fraction(2) ** -45
  return right


def results(parts: Sequence[Number], type_: str) -> tuple[Any, ...]:
  """The results of an instruction of a type."""
  right = [near(v, type_) for v in parts]
  if type_ != "f16x2": return tuple(right)

  def pair(a: Any, b: Any) -> Callable[[int], bool]:
    def good(w: Any, got: int) -> bool: return bool(w(got)) if callable(w) else w == got
    return lambda bits: good(a, bits & 0xFFFF) and good(b, bits >> 16)
  return pair(right[0], right[1]), pair(right[2], right[3])


@lru_cache(maxsize=64)
def _kinds(type_: str) -> tuple[tuple[str, bool], ...]:
  """(format, whether fractions of 1) of pictures for a type of results."""
  if type_ in {"f32", "f16", "f16x2"}: return ("f32", False), ("f16", False), ("u8", True), ("s16", True)
  return (("u32", False), ("u8", False)) if type_ == "u32" else (("s32", False), ("s16", False))


def _coordinate(rng: random.Random, whole: bool, normalized: bool, n: int, gradient: bool = False) -> int:
  if whole: return rng.randrange(-3, n + 3) & 0xFFFFFFFF
  x = rng.randrange(-3 * 64, (n + 3) * 64) / 64 if not normalized else rng.uniform(-1.5, 2.5)
  if gradient: x = rng.uniform(-1, 1)
  if not normalized and rng.random() < 0.2: x = float(rng.randrange(-2, n + 2))
  return int.from_bytes(struct.pack("<f", x), "little")


@witness("tex", "tld4")
def tex(form: Form, rng: random.Random) -> Iterator[Case]:
  """A texture of each format and sampler at random."""
  m, gather = form.modifiers, form.row.opcode == "tld4"
  geometry = next(g for g in _AXES if g in m)
  type_, axes = form.types[0], _AXES[geometry]
  whole = not gather and form.types[-1] == "s32"
  for kind, unit in _kinds(type_):
    normalized = (not whole or "level" in m or "grad" in m) and rng.random() < 0.6 or "cube" in geometry
    modes = rng.choice(["wrap", "mirror", "clamp_to_edge", "clamp_to_border"])
    floats = unit or kind[0] == "f"
    sampler = Sampler((modes, rng.choice(["wrap", "clamp_to_border"]), modes), floats and rng.random() < 0.6,
                      normalized, mip_linear=rng.random() < 0.5)
    levels = 3 if m & {"level", "grad"} else 1
    p = picture(form, rng, kind, geometry, sampler=sampler, levels=levels, unit=unit, channels=rng.choice([1, 2, 4]))
    component = "rgba".index(next(c for c in "rgba" if c in m)) if gather else -1
    yield _case(form, p, geometry, axes, whole, component, rng)


def _case(form: Form, p: Picture, geometry: str, axes: int, whole: bool, component: int, rng: random.Random) -> Case:
  m, type_ = form.modifiers, form.types[0]
  array, samples, is_cube = geometry[0] == "a", geometry.endswith("ms"), "cube" in geometry
  offset = not is_cube and rng.random() < 0.4
  compare = not samples and geometry != "3d" and not whole and p.header.kind == "f32" and rng.random() < 0.4
  lead = array + samples
  count = 2 if type_ == "f16x2" else 4
  words = [f"{{{count + k}}}" for k in range(lead + axes)]
  padded = words + words[-1:] * ({3: 4}.get(len(words), len(words)) - len(words))
  at = count + len(words)
  tail = ""
  level, grad = "level" in m, "grad" in m
  sources = ["b32"] * (lead + axes)
  if level:
    tail += f", {{{at}}}"
    sources.append("b32")
    at += 1
  if grad:
    for _ in range(2):
      way = [f"{{{at + k}}}" for k in range(axes)]
      way += way[-1:] * ({3: 4}.get(axes, axes) - axes)
      tail += ", {{" + ", ".join(way) + "}}"
      sources += ["b32"] * axes
      at += axes
  shift = [rng.randrange(-8, 8) for _ in range(axes)] if offset else [0] * axes
  if offset: tail += ", {{" + ", ".join(map(str, (shift + shift[-1:])[:4 if axes == 3 else axes])) + "}}"
  if compare:
    tail += f", {{{at}}}"
    sources.append("b32")
  h = p.header
  extent = p.extents[0]

  def draw(r: random.Random) -> tuple[int, ...]:
    out = []
    if array: out.append(r.randrange(0, h.layers // (6 if is_cube else 1)))
    if samples: out.append(r.randrange(0, h.samples))
    out += [_coordinate(r, whole, h.sampler.normalized, extent[k] if not is_cube else 2) for k in range(axes)]
    if level: out.append(r.randrange(-1, 4) & 0xFFFFFFFF if whole else
                         int.from_bytes(struct.pack("<f", r.randrange(-64, 4 * 64) / 64), "little"))
    if grad:  # lengths that are powers of 2, on one axis: then the level is exact
      # the gradients of a cube's direction are another question: none
      long = 0.0 if is_cube else r.choice([0.0, 1.0, 2.0, 4.0])
      scale = extent[0] if h.sampler.normalized and not whole else 1
      short = [0.0] * axes
      for d in (long / scale, long / scale / 4):
        out += [int.from_bytes(struct.pack("<f", v), "little") for v in [d, *short[1:]]]
    if compare: out.append(int.from_bytes(struct.pack("<f", r.randrange(-8, 8)), "little"))
    return tuple(out)

  def run(*given: int) -> Any:
    values = [*given]
    layer = values.pop(0) if array else 0
    sample = values.pop(0) if samples else 0
    c: list[Any] = [values.pop(0) for _ in range(axes)]
    c = [v - (1 << 32) if v >> 31 else v for v in c] if whole else [float_of(v) for v in c]
    lod: Fraction | None = None
    if level:
      v = values.pop(0)
      lod = Fraction(v - (1 << 32) if v >> 31 else v) if whole else float_of(v)
    if grad:
      scale = extent[0] if h.sampler.normalized and not whole else 1
      longest = max(float_of(values[0]), float_of(values[axes])) * scale
      values = values[2 * axes:]
      # in float32 a length divided by 5 or 7 is not exact; it was a power of 2
      power = next((k for k in range(-3, 4) if abs(longest - Fraction(2) ** k) < Fraction(1, 1000)), -1000)
      lod = Fraction(power)
    f = Fetch(p, whole, float_of(values.pop(0)) if compare else None)
    if is_cube:
      face, c = cube(c)
      layer = layer * 6 + face
    if component >= 0: return results(f.gathered(c, layer, shift, component), type_)
    return results(f.fetch(c, layer, sample, lod, shift), type_)
  to = "{{" + ", ".join(f"{{{k}}}" for k in range(count)) + "}}"
  raw = {"f16": "b16"}.get(type_, "b32")
  text = f"{form.name} {to}, [%l77, {{{{{', '.join(padded)}}}}}]{tail};"
  return Case(form.name, text, (raw,) * count, tuple(sources), run, draw, p.memory, None, False, "mov.u64 %l77, {M};")


# ---- questions

@witness("txq", "suq")
def query(form: Form, rng: random.Random) -> Iterator[Case]:
  """Of a picture of three sizes, with levels."""
  m, surface = form.modifiers, form.row.opcode == "suq"
  name = next(x for x in form.name.split(".")[1:] if x not in {"level", "b32"})
  kind, unit, geometry = rng.choice([("u8", True, "2d"), ("s16", False, "3d"), ("f32", False, "a2d"),
                                     ("u32", False, "2dms")])
  sampler = Sampler(("mirror", "clamp_ogl", "clamp_to_border"), True, True)
  p = picture(form, rng, kind, geometry, sampler=sampler, levels=1 if surface else 3, unit=unit,
              channels=rng.choice([1, 2, 4]))
  h = p.header
  orders = {1: 0x10B0, 2: 0x10B2, 4: 0x10B5}  # CL_R, CL_RG, CL_RGBA
  # CL_UNORM_INT8, CL_SIGNED_INT16, CL_FLOAT, CL_UNSIGNED_INT32
  kinds = {("u8", True): 0x10D2, ("s16", False): 0x10D8, ("f32", False): 0x10DE, ("u32", False): 0x10DC}
  known = {"width": h.size[0], "height": h.size[1], "depth": h.size[2], "channel_order": orders[h.channels],
           "channel_data_type": kinds[kind, unit], "normalized_coords": 1, "array_size": 3 if geometry == "a2d" else 0,
           "num_mipmap_levels": 3, "num_samples": 4 if geometry == "2dms" else 0, "filter_mode": 1, "addr_mode_0": 1,
           "addr_mode_1": 2, "addr_mode_2": 4, "force_unnormalized_coords": 0, "memory_layout": 0}
  lod = rng.randrange(3)
  right = max(1, known[name] >> lod) if "level" in m else known[name]
  text = f"{form.name} {{0}}, [%l77]{f', {lod}' if 'level' in m else ''};"
  yield Case(form.name, text, ("b32",), (), lambda: right, None, p.memory, None, False, "mov.u64 %l77, {M};")


@witness("istypep")
def istypep(form: Form, rng: random.Random) -> Iterator[Case]:
  """Variables of the bench's module, and another address."""
  for name, kind in (("tx", "texref"), ("sm", "samplerref"), ("su", "surfref")):
    right = int(kind in form.modifiers)
    yield Case(form.name, f"{form.name} {{0}}, %l77;", ("pred",), (), lambda right=right: right,
               setup=f"mov.u64 %l77, {name};")
  yield Case(form.name, f"{form.name} {{0}}, {{1}};", ("pred",), ("b64",), lambda a: 0)


# ---- surfaces

@witness("suld", "sust", "sured")
def surfaces(form: Form, rng: random.Random) -> Iterator[Case]:
  """Loads, stores and reductions, in and, where that is allowed, around a surface."""
  m, op = form.modifiers, form.row.opcode
  geometry = next(g for g in ("1d", "2d", "3d", "a1d", "a2d") if g in m)
  axes, array, samples = _AXES[geometry], geometry[0] == "a", "p" in m
  size, count = SIZES[form.type], next((int(x[1]) for x in ("v2", "v4") if x in m), 1)
  width = size * count
  formatted = op == "sust" and samples
  kind, unit, channels = {8: ("s32", False, 2), 4: ("u32", False, 1)}.get(size, ("u8", False, 4))
  if op == "sured" and rng.random() < 0.5: kind = "s32"
  if formatted:
    kind, unit, channels = rng.choice([("u8", True, 4), ("s16", True, 2), ("f16", False, 4), ("s8", False, 4),
                                       ("f32", False, 1), ("u16", False, 2), ("u32", False, 4)])
  if not samples and op != "sured": kind, channels = "u32", 4
  p = picture(form, rng, kind, geometry, sampler=Sampler(), unit=unit, channels=channels)
  if not samples: p = replace(p, header=replace(p.header, size=(8, *p.header.size[1:])))
  p = replace(p, data=rng.randbytes(p.header.bytes))
  h = p.header
  element = struct.calcsize(_CODES[h.kind]) * h.channels
  unit_bytes = element if samples else 1
  limits = [h.size[0] - 1 if samples else h.size[0] * element - width, h.size[1] - 1, h.size[2] - 1][:axes]
  how = next((x for x in ("trap", "clamp", "zero") if x in m), "trap")

  def draw(r: random.Random) -> tuple[int, ...]:
    out = [r.randrange(h.layers)] if array else []
    for k, limit in enumerate(limits):
      step = width if not samples and k == 0 else 1
      reach = 0 if how == "trap" else 2 * step
      out.append(r.randrange(-reach, limit + 1 + reach, step) & 0xFFFFFFFF)
    if op == "sured": out.append(r.getrandbits(8 * size))
    if op == "sust":
      floats = formatted and (unit or kind[0] == "f")
      out += [int.from_bytes(struct.pack("<f", r.uniform(-1.5, 1.5)), "little") if floats else
              r.getrandbits(r.choice([4, 8 * size])) for _ in range(count)]
    return tuple(out)

  def place(values: Sequence[int]) -> int | None:
    """The offset in the memory of a case; None for nowhere."""
    given = [*values]
    layer = given.pop(0) if array else 0
    c = [v - (1 << 32) if v >> 31 else v for v in given[:axes]]
    if how == "zero" and any(not 0 <= v <= n for v, n in zip(c, limits)): return None
    c = [min(max(v, 0), n) for v, n in zip(c, limits)] + [0, 0]
    rows, depth = max(1, h.size[1]), max(1, h.size[2])
    return AT + ((layer * depth + c[2]) * rows + c[1]) * h.size[0] * element + c[0] * unit_bytes

  image = p.memory(0)

  def load(*values: int) -> Any:
    at = place(values)
    got = tuple(0 if at is None else int.from_bytes(image[at + k * size:at + k * size + size], "little")
                for k in range(count))
    return got if count > 1 else got[0]

  def put(before: bytes, rows: list[tuple[int, ...]]) -> bytes:
    out = bytearray(before)
    for values in rows:
      at = place(values)
      if at is None: continue
      data = values[array + axes:]
      if op == "sured": out[at:at + size] = _reduced(form, kind, bytes(out[at:at + size]), data[0], size)
      elif formatted:
        one = element // h.channels
        parts = [_formatted(v, kind, unit) for v in [*data, *[0] * 4][:h.channels]]
        for k, part in enumerate(parts): out[at + k * one:at + (k + 1) * one] = part
      else:
        for k, v in enumerate(data): out[at + k * size:at + (k + 1) * size] = v.to_bytes(size, "little")
    return bytes(out)
  results_ = (form.type if size > 1 else "b8",) * count if op == "suld" else ()
  n = len(results_)
  words = [f"{{{n + k}}}" for k in range(array + axes)]
  words += words[-1:] * ({3: 4}.get(len(words), len(words)) - len(words))
  raw = form.type if size > 1 else "b8"
  sources = ("b32",) * (array + axes) + ((raw,) * count if op != "suld" else ())
  at = f"[%l77, {{{{{', '.join(words)}}}}}]"
  names = [f"{{{k}}}" for k in range(count)] if op == "suld" else [f"{{{array + axes + k}}}" for k in range(count)]
  vector = names[0] if count == 1 else "{{" + ", ".join(names) + "}}"
  text = f"{form.name} {vector}, {at};" if op == "suld" else f"{form.name} {at}, {vector};"
  yield Case(form.name, text, results_, sources, load if op == "suld" else lambda *_: (), draw, p.memory,
             None if op == "suld" else put, False, "mov.u64 %l77, {M};")


def _reduced(form: Form, kind: str, old: bytes, data: int, size: int) -> bytes:
  m, t = form.modifiers, form.type
  signed = kind[0] == "s" if t[0] == "b" else t[0] == "s"
  a, b = (int.from_bytes(x, "little", signed=signed) for x in (old, data.to_bytes(size, "little")))
  x = a + b if "add" in m else min(a, b) if "min" in m else max(a, b) if "max" in m else a & b if "and" in m else a | b
  return (x & (1 << 8 * size) - 1).to_bytes(size, "little")


def _formatted(bits: int, kind: str, unit: bool) -> bytes:
  """A component in a surface's format."""
  size = FORMATS[kind]
  if kind[0] == "f": return struct.pack("<" + _CODES[kind], float(float_of(bits)))
  low, high = (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1) if kind[0] == "s" else (0, (1 << 8 * size) - 1)
  if unit:
    x = min(max(float_of(bits), Fraction(-1 if kind[0] == "s" else 0)), Fraction(1))
    return nearest_even(x * high).to_bytes(size, "little", signed=kind[0] == "s")
  value = bits - (1 << 32) if kind[0] == "s" and bits >> 31 else bits
  return min(max(value, low), high).to_bytes(size, "little", signed=kind[0] == "s")
