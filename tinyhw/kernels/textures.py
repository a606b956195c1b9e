"""Textures and surfaces as arguments of a launch of PTX: an array, and how a kernel looks at it."""
from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import InvalidArgument, InvalidType, Unsupported
from tinyhw.emulator.ptx.texture.objects import MODES, Header, Sampler

Array = np.ndarray[Any, np.dtype[Any]]
LARGEST: Final = (1 << 31) - 1  # elements of an axis: coordinates are integers of 32 bits
_SHAPES: Final = {"1d": 1, "2d": 2, "3d": 3, "a1d": 2, "a2d": 3, "cube": 3, "acube": 3}
_KINDS: Final = {"u1": "u8", "i1": "s8", "u2": "u16", "i2": "s16", "u4": "u32", "i4": "s32", "f2": "f16", "f4": "f32"}


@dataclass(frozen=True, eq=False)
class Texture:
  """An array that a kernel reads by coordinates; the argument of a `.texref` or of a 64-bit handle.

  `data` has the axes [z or layer, y, x], and behind them the components where `channels` is more than 1; `levels` are
  the smaller levels of detail behind it. `geometry` is one of PTX's: "1d", "2d", "3d", "a1d", "a2d", "cube" (6 layers),
  "acube". `address` is an address mode of PTX for each axis or one for all ("wrap", "mirror", "clamp_to_edge",
  "clamp_to_border", "clamp_ogl"), `filter` "nearest" or "linear", `mip_filter` the same between levels; `normalized`:
  coordinates go from 0 to 1. `unit`: integers are read as fractions of 1. `border` is the colour around it.

  Raises InvalidArgument for an array that does not fit, or names there are not.
  """
  data: Array
  geometry: str = "2d"
  channels: int = 1
  filter: str = "nearest"
  address: str | tuple[str, str, str] = "clamp_to_edge"
  normalized: bool = False
  unit: bool = False
  levels: tuple[Array, ...] = ()
  mip_filter: str = "nearest"
  border: tuple[float, float, float, float] = (0.0,) * 4
  header: Header = field(init=False, repr=False)

  def __post_init__(self) -> None:
    for name in ("geometry", "filter", "mip_filter"):
      if not isinstance(getattr(self, name), str):
        raise InvalidType(f"{name} is a {type(getattr(self, name)).__name__}, no name")
    object.__setattr__(self, "data", np.asarray(self.data))
    modes = (self.address,) * 3 if isinstance(self.address, str) else self.address
    if not isinstance(modes, (tuple, list)) or not all(isinstance(m, str) for m in modes):
      raise InvalidType("the address mode is a name, or three")
    if not isinstance(self.levels, (tuple, list)): raise InvalidType("levels are arrays, in a tuple")
    object.__setattr__(self, "levels", tuple(np.asarray(level) for level in self.levels))
    border = self.border
    if not isinstance(border, (tuple, list)) or len(border) != 4 or not all(isinstance(b, Real) for b in border):
      raise InvalidType("a border is four numbers")
    kind = _KINDS.get(self.data.dtype.str[1:])
    axes = _SHAPES.get(self.geometry)
    if axes is None: raise InvalidArgument(f"no texture is {self.geometry!r}", hint=f"there are {', '.join(_SHAPES)}")
    if kind is None: raise Unsupported("a texture of", str(self.data.dtype))
    if self.channels not in (1, 2, 4): raise InvalidArgument("a texture has 1, 2 or 4 components")
    if max(self.data.shape, default=0) > LARGEST:
      raise InvalidArgument(f"a texture of {max(self.data.shape):,} elements on an axis: {LARGEST:,} are the most")
    if len(modes) != 3 or not set(modes) <= set(MODES):
      raise InvalidArgument(f"no address mode is {self.address!r}", hint=f"there are {', '.join(MODES)}")
    if {self.filter, self.mip_filter} - {"nearest", "linear"}:
      raise InvalidArgument(f"filters {self.filter!r}, {self.mip_filter!r}: there are nearest and linear")
    size, layers = self._extent(axes)
    sampler = Sampler((modes[0], modes[1], modes[2]), self.filter == "linear", self.normalized,
                      mip_linear=self.mip_filter == "linear")
    header = Header(0, size, kind, self.channels, layers, 1 + len(self.levels), cube="cube" in self.geometry,
                    unit=self.unit, mipmapped=bool(self.levels), sampler=sampler,
                    border=(border[0], border[1], border[2], border[3]))
    if self.unit and (kind[0] == "f" or kind[1:] == "32"): raise InvalidArgument(f"{kind} is no fraction of 1")
    for k, level in enumerate(self.levels, 1):
      w, h, d = header.extent(k)
      wanted = self._shape(w, h, max(layers, d), axes)
      if level.shape != wanted or level.dtype != self.data.dtype:
        raise InvalidArgument(f"level {k} has the shape {level.shape}, not {wanted}, or another type")
    object.__setattr__(self, "header", header)

  def _shape(self, w: int, h: int, outer: int, axes: int) -> tuple[int, ...]:
    found = (w,) if axes == 1 else (outer, w) if self.geometry == "a1d" else (h, w) if axes == 2 else (outer, h, w)
    return found if self.channels == 1 else (*found, self.channels)

  def _extent(self, axes: int) -> tuple[tuple[int, int, int], int]:
    """((width, height, depth), layers)."""
    shape = self.data.shape if self.channels == 1 else self.data.shape[:-1]
    last = self.channels if self.channels == 1 else self.data.shape[-1] if self.data.ndim else 0
    if len(shape) != axes or last != self.channels or not self.data.size:
      raise InvalidArgument(f"an array of the shape {self.data.shape} is no .{self.geometry} texture of "
                            f"{self.channels} component{'s' * (self.channels > 1)}")
    x, *rest = reversed(shape)
    if self.geometry == "a1d": return (x, 0, 0), rest[0]
    layered = self.geometry in {"a2d", "cube", "acube"}
    if "cube" in self.geometry and (rest[0] != x or rest[1] % 6 or self.geometry == "cube" and rest[1] != 6):
      raise InvalidArgument(f"a cube of the shape {self.data.shape}: 6 squares")
    y = rest[0] if rest else 0
    return (x, y, 0 if layered or len(rest) < 2 else rest[1]), rest[1] if layered else 0

  def packed(self) -> bytes:
    """The elements of all levels, as a texture has them in memory."""
    out = bytearray()
    for k, level in enumerate((self.data, *self.levels)):
      out += bytes(-len(out) % 16) if k else b""
      try: out += np.ascontiguousarray(level).tobytes()
      except MemoryError:
        raise InvalidArgument(f"a texture of {level.nbytes:,} bytes is more than this machine has memory") from None
    return bytes(out)


@dataclass(frozen=True, eq=False)
class Surface(Texture):
  """An array that a kernel reads and writes by coordinates (suld, sust, sured); its contents come back like those of
  other arrays. The parameters are those of a texture."""
