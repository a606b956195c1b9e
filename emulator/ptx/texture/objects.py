"""Textures and surfaces: what a handle stands for, and where an element lies.

NVIDIA does not tell what a texture object or the header behind it holds. Here a handle is the address of 160 bytes in
GPU memory, whose layout is ours, declared once: for the emulator, for `tinyhw.launch` and for the mock of CUDA. An
array lies in memory row by row: level after level, of these layer after layer, of these (of several samples) sample
after sample, of these slice after slice.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tinyhw.core.errors import InvalidArgument

SIZE: Final = 160
MAGIC: Final = 0xF4A1_7E87_0B1E_C700
FORMATS: Final = {"u8": 1, "s8": 1, "u16": 2, "s16": 2, "u32": 4, "s32": 4, "f16": 2, "f32": 4}
MODES: Final = ("wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border")  # as txq counts them
FILTERS: Final = ("nearest", "linear")
CHANNELS: Final = (1, 2, 4)
LEVELS: Final = 32
_NAMES: Final = tuple(FORMATS)
# Behind the magic number, in order: the numbers that a header begins with, each unsigned, as so many bytes.
_NUMBERS: Final = {
  "address": 8, "sampler": 8, "width": 4, "height": 4, "depth": 4, "layers": 4, "levels": 4, "samples": 4, "pitch": 4,
  "kind": 1, "channels": 1, "cube": 1, "unit": 1, "mipmapped": 1, "linear": 1, "srgb": 1}
_FORM: Final = struct.Struct("<QQQ3IIIII8B4f3f")
# Fields of a sampler, by the names of PTX: (lowest bit, values).
_FIELDS: Final[dict[str, tuple[int, tuple[str, ...]]]] = {
  "addr_mode_0": (0, MODES), "addr_mode_1": (3, MODES), "addr_mode_2": (6, MODES), "filter_mode": (9, FILTERS),
  "force_unnormalized_coords": (11, ("0", "1")), "normalized_coords": (12, ("0", "1")), "mip_filter": (13, FILTERS)}
MEANT: Final = sum((1 << (len(values) - 1).bit_length()) - 1 << at for at, values in _FIELDS.values())  # of its bits


@dataclass(frozen=True)
class Sampler:
  """How coordinates become elements: the 8 bytes of a .samplerref."""
  modes: tuple[str, str, str] = ("wrap",) * 3
  linear: bool = False
  normalized: bool = False
  force_unnormalized: bool = False
  mip_linear: bool = False

  @property
  def bits(self) -> int:
    """As an integer."""
    values = {"filter_mode": self.linear, "force_unnormalized_coords": self.force_unnormalized,
              "normalized_coords": self.normalized, "mip_filter": self.mip_linear}
    out = sum(int(v) << _FIELDS[name][0] for name, v in values.items())
    return out | sum(MODES.index(mode) << 3 * k for k, mode in enumerate(self.modes))

  @classmethod
  def of(cls, bits: int) -> Sampler:
    """The inverse of `bits`. Raises InvalidArgument for what is none."""
    modes = [bits >> 3 * k & 7 for k in range(3)]
    if bits & ~MEANT or max(modes) >= len(MODES): raise InvalidArgument(f"{bits:#x} is no sampler")
    def flag(name: str) -> bool: return bool(bits >> _FIELDS[name][0] & 1)
    return cls((MODES[modes[0]], MODES[modes[1]], MODES[modes[2]]), flag("filter_mode"), flag("normalized_coords"),
               flag("force_unnormalized_coords"), flag("mip_filter"))

  @classmethod
  def named(cls, members: dict[str, str]) -> Sampler:
    """A sampler of an initializer: `addr_mode_0 = clamp_to_border`. Raises InvalidArgument for a name there is not."""
    bits = 0
    for name, value in members.items():
      at, values = _FIELDS.get(name, (0, ()))
      if value not in values or name == "mip_filter": raise InvalidArgument(f"no sampler has {name} = {value}")
      bits |= values.index(value) << at
    return cls.of(bits)


@dataclass(frozen=True)
class Header:
  """An array of elements: `size` is width, height and depth, 0 for those that it has not; `layers` 0 for one without
  (a cube has 6); `samples` 0 for one without; `pitch` the bytes from row to row of the first level, `address` its
  begin. `kind` is one of FORMATS, of `channels` a element; `unit`: integers are fractions of 1 or of -1 to 1.
  `mipmapped` says whether it has levels by name, `linear` whether it is an array of memory: then 0 is around it."""
  address: int = 0
  size: tuple[int, int, int] = (1, 0, 0)
  kind: str = "f32"
  channels: int = 1
  layers: int = 0
  levels: int = 1
  samples: int = 0
  pitch: int = 0
  cube: bool = False
  unit: bool = False
  mipmapped: bool = False
  linear: bool = False
  srgb: bool = False
  sampler: Sampler = Sampler()
  border: tuple[float, float, float, float] = (0.0,) * 4
  lod: tuple[float, float, float] = (0.0, 0.0, 1000.0)  # bias, least, most

  @property
  def element(self) -> int:
    """Bytes of an element."""
    return FORMATS[self.kind] * self.channels

  @property
  def floats(self) -> bool:
    """Whether a fetch gives floats."""
    return self.unit or self.kind[0] == "f"

  @property
  def numbers(self) -> dict[str, int]:
    """The numbers that it begins with, by their names."""
    values = (self.address, self.sampler.bits, *self.size, self.layers, self.levels, self.samples, self.pitch,
              _NAMES.index(self.kind), self.channels, self.cube, self.unit, self.mipmapped, self.linear, self.srgb)
    return dict(zip(_NUMBERS, values, strict=True))

  def encode(self) -> bytes:
    """The bytes in memory."""
    return _FORM.pack(MAGIC, *self.numbers.values(), 0, *self.border, *self.lod).ljust(SIZE, b"\0")

  def extent(self, level: int) -> tuple[int, int, int]:
    """Width, height and depth of a level, at least 1."""
    w, h, d = (max(1, n >> level) for n in self.size)
    return w, h, d

  def row(self, level: int) -> int:
    """Bytes from row to row."""
    return self.pitch if self.pitch and not level else self.extent(level)[0] * self.element

  def slices(self, level: int) -> int:
    """Bytes of a level."""
    _, h, d = self.extent(level)
    return self.row(level) * h * d * max(self.layers, 1) * max(self.samples, 1)

  def start(self, level: int) -> int:
    """The address of a level."""
    return self.address + sum(-(-self.slices(k) // 16) * 16 for k in range(level))

  @property
  def bytes(self) -> int:
    """Bytes of all levels."""
    return self.start(self.levels - 1) - self.address + self.slices(self.levels - 1)


def place_of(name: str) -> tuple[int, int]:
  """(where one of a header's first numbers lies in it, its bytes)."""
  at = 8
  for other, size in _NUMBERS.items():
    if other == name: return at, size
    at += size
  raise KeyError(name)


def field_of(name: str) -> tuple[int, int] | None:
  """(the lowest bit of a sampler's field, how many bits it has); None for what is no field of one."""
  found = _FIELDS.get(name)
  return None if found is None else (found[0], (len(found[1]) - 1).bit_length())


@lru_cache(maxsize=256)
def decoded(data: bytes) -> Header | None:
  """What 160 bytes say; None for what is no header."""
  magic, address, sampler, w, h, d, layers, levels, samples, pitch, kind, channels, *rest = _FORM.unpack_from(data)
  if magic != MAGIC or kind >= len(_NAMES) or channels not in CHANNELS or not 1 <= levels <= LEVELS: return None
  try: how = Sampler.of(sampler)
  except InvalidArgument: return None
  cube, unit, mipmapped, linear, srgb, _, *floats = rest
  return Header(address, (w, h, d), _NAMES[kind], channels, layers, levels, samples, pitch, bool(cube), bool(unit),
                bool(mipmapped), bool(linear), bool(srgb), how, tuple(floats[:4]), tuple(floats[4:]))
