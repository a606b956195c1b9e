"""Images for tests: the eight dwords of a linear one, as the manuals' tables 50 (RDNA3) and 60 (RDNA4) have them."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TYPES = {"1D": 8, "2D": 9, "3D": 10, "CUBE": 11, "1D_ARRAY": 12, "2D_ARRAY": 13, "2D_MSAA": 14}
FORMATS = {"8_UNORM": 1, "8_SNORM": 2, "8_UINT": 5, "8_SINT": 6, "16_UNORM": 7, "16_UINT": 11, "16_SINT": 12,
           "16_FLOAT": 13, "8_8_UNORM": 14, "32_UINT": 20, "32_SINT": 21, "32_FLOAT": 22, "16_16_FLOAT": 29,
           "2_10_10_10_UNORM": 36, "8_8_8_8_UNORM": 42, "8_8_8_8_SNORM": 43, "8_8_8_8_UINT": 46, "8_8_8_8_SINT": 47,
           "32_32_UINT": 48, "32_32_FLOAT": 50, "16_16_16_16_UNORM": 51, "16_16_16_16_FLOAT": 57,
           "32_32_32_FLOAT": 60, "32_32_32_32_UINT": 61, "32_32_32_32_FLOAT": 63, "8_8_8_8_SRGB": 66, "BC1_UNORM": 109}
# cpu -> field -> (lowest bit, bits); depth is also the last slice, or the low part of the pitch less one
FIELDS = {
  "gfx1100": {"base": (0, 40), "max_mip": (48, 4), "format": (52, 8), "width": (62, 14), "height": (78, 14),
              "selects": (96, 12), "base_level": (108, 4), "last_level": (112, 4), "sw_mode": (116, 5),
              "type": (124, 4), "depth": (128, 14), "base_array": (144, 13), "uav3d": (160, 1)},
  "gfx1201": {"base": (0, 40), "max_mip": (44, 5), "format": (49, 8), "base_level": (57, 5), "width": (62, 16),
              "height": (78, 16), "selects": (96, 12), "last_level": (111, 5), "sw_mode": (116, 5), "type": (124, 4),
              "depth": (128, 16), "base_array": (144, 13), "uav3d": (164, 1)}}
ROW = {"gfx1100": 256, "gfx1201": 128}  # a row of a linear image begins at a multiple of that many bytes
IDENTITY = (4, 5, 6, 7)


@dataclass
class Picture:
  """A linear image in NumPy's hands. `texel` is the type of a texel in memory; `levels` mip levels, smallest first."""
  cpu: str
  kind: str
  format: str
  texel: np.dtype
  width: int
  height: int = 1
  depth: int = 1
  levels: int = 1
  pitch: int = 0

  def extent(self, level: int) -> tuple[int, int, int]:
    """Width, height and depth (slices of an array) of a level."""
    flat = self.kind.startswith("1D")
    return (max(1, self.width >> level), 1 if flat else max(1, self.height >> level),
            max(1, self.depth >> level) if self.kind == "3D" else self.depth)

  def row(self, level: int) -> int:
    """Bytes of a row of a level."""
    size = self.texel.itemsize
    if self.pitch: return self.pitch * size
    return -(-self.extent(level)[0] * size // ROW[self.cpu]) * ROW[self.cpu]

  def level_size(self, level: int) -> int:
    """Bytes of a level in a slice: rows count 256 bytes there."""
    return -(-self.row(level) // 256) * 256 * self.extent(level)[1]

  @property
  def slice_size(self) -> int: return sum(self.level_size(m) for m in range(self.levels))

  @property
  def size(self) -> int: return self.slice_size * self.depth

  def offset(self, x: int, y: int = 0, z: int = 0, level: int = 0) -> int:
    """Byte of a texel."""
    smaller = sum(self.level_size(m) for m in range(level + 1, self.levels))
    return z * self.slice_size + smaller + y * self.row(level) + x * self.texel.itemsize

  def words(self, base: int, selects: tuple[int, ...] = IDENTITY, **fields: int) -> np.ndarray:
    """The resource; `fields` replace what the picture would say."""
    depth = self.pitch - 1 if self.pitch else self.depth - 1 if self.kind == "3D" or "ARRAY" in self.kind else 0
    values = {"base": base >> 8, "max_mip": self.levels - 1, "last_level": self.levels - 1,
              "format": FORMATS[self.format], "width": self.width - 1, "height": self.height - 1,
              "type": TYPES[self.kind], "depth": depth,
              "selects": sum(s << 3 * k for k, s in enumerate(selects))} | fields
    word = 0
    for name, value in values.items():
      low, bits = FIELDS[self.cpu][name]
      assert 0 <= value < 1 << bits, name
      word |= value << low
    return np.array([word >> 32 * k & 0xFFFFFFFF for k in range(8)], np.uint32)
