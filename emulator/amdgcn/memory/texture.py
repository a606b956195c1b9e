"""Image resources (T#) that lie linearly in memory: what their fields say, and where a texel is.

RDNA3 ISA manual, section 10.5; RDNA4, section 10.5. autogen/images.py has where the fields stand. How rows, mip levels
and slices follow each other is AMD's addrlib's (ComputeSurfaceInfoLinear of gfx11 and gfx12): a row begins at a
multiple of 256 bytes, on gfx12 of 128; in each slice the smallest level comes first.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from tinyhw.autogen import images
from tinyhw.core.errors import Unsupported
from tinyhw.core.lazy import cached_property
from tinyhw.emulator.amdgcn.fields import Field
from tinyhw.emulator.amdgcn.memory import formats

DWORDS: Final = 8
# instruction table -> bytes of which a row is a multiple, and those of which it is one where slices are counted
ROWS: Final = {"gfx11": (256, 256), "gfx12": (128, 256)}
# What the instruction's dim says, with the coordinates that it gives: the number is SQ_RSRC_IMG_TYPE's less 8.
COORDINATES: Final = {"1D": "x", "2D": "xy", "3D": "xyz", "1D_ARRAY": "xl", "2D_ARRAY": "xyl"}
FIRST_TYPE: Final = 8  # lower types are buffers
_HINT: Final = "images of one sample that lie linearly in memory (swizzle mode 0) are emulated"


class NotAnImage(Exception):
  """The resource is a buffer: image instructions do nothing with it (RDNA3 ISA manual, chapter 10)."""


@dataclass(frozen=True)
class Level:
  """One mip level: texels, texels of a row in memory, and the byte of a slice where it begins."""
  width: int
  height: int
  depth: int
  pitch: int
  start: int


@dataclass(frozen=True)
class Image:
  """An image resource. Sizes are those of level 0 in texels; `base_level`, `last_level`, `first` and `last` (slices, or
  depths of a 3D image that is stored to) are the view's. `pitch` is the texels of a row where that is set, or 0."""
  isa: str
  base: int
  kind: str
  format: formats.Format
  width: int
  height: int
  depth: int
  levels: int
  base_level: int
  last_level: int
  first: int
  last: int
  selects: tuple[int, ...]
  pitch: int

  def _extent(self, level: int) -> tuple[int, int, int]:
    flat, volume = self.kind.startswith("1D"), self.kind == "3D"
    return (max(1, self.width >> level), 1 if flat else max(1, self.height >> level),
            max(1, self.depth >> level) if volume else 1)

  @cached_property
  def layout(self) -> tuple[tuple[Level, ...], int]:
    """(each level, bytes from a slice to the next)."""
    size = self.format.size
    row, slice_row = (n // size for n in ROWS[self.isa])
    out: list[Level] = []
    start = 0
    for level in reversed(range(self.levels)):
      width, height, depth = self._extent(level)
      pitch = self.pitch if self.pitch > width else -(-width // row) * row
      out.insert(0, Level(width, height, depth, pitch, start))
      start += -(-pitch // slice_row) * slice_row * height * size
    return tuple(out), start


@cache
def parser(isa: str) -> Callable[..., Image | None]:
  """What reads the dwords of a resource; None for one that is unbound.

  Raises NotAnImage for a buffer, Unsupported for images that are tiled, compressed, or have samples or faces.
  """
  places = {name: Field(*place) for name, place in images.RESOURCE[isa].items()}

  def field(name: str, v: int) -> int: return places[name].of(v) if name in places else 0

  @lru_cache(maxsize=1024)
  def parse(*dwords: int) -> Image | None:
    v = sum(d << 32 * k for k, d in enumerate(dwords))
    if not v: return None
    if field("type", v) < FIRST_TYPE: raise NotAnImage
    kind, code = images.TYPES[field("type", v)], field("format", v)
    if kind not in COORDINATES: raise Unsupported("image", f"of type {kind}", hint=_HINT)
    if mode := field("sw_mode", v): raise Unsupported("image", f"with swizzle mode {mode}", hint=_HINT)
    if isa == "gfx11" and field("compression_en", v): raise Unsupported("image", "with compression", hint=_HINT)
    name = images.FORMATS.get(code, f"{code:#x}")
    try: texels = formats.parse(name)
    except ValueError: raise Unsupported("image", f"of format {name}", hint=_HINT) from None
    if texels.size not in (1, 2, 4, 8, 16): raise Unsupported("image", f"of format {name}", hint=_HINT)
    levels, depth = field("max_mip", v) + 1, field("depth", v)
    flat = kind in {"1D", "2D"}
    upper = field("pitch_13", v) << 13 | field("pitch_msb", v) << 14
    pitch = (depth | upper) + 1 if flat and levels == 1 else 0
    layered = kind.endswith("ARRAY") or kind == "3D" and bool(field("array_pitch", v) & 1 or field("uav3d", v))
    return Image(isa, field("base_address", v) << 8, kind, texels, field("width", v) + 1, field("height", v) + 1,
                 depth + 1 if kind == "3D" else 1, levels, field("base_level", v), field("last_level", v),
                 field("base_array", v) if layered else 0, depth if layered else -1,
                 tuple(field(f"dst_sel_{c}", v) for c in "xyzw"), pitch)
  return parse
