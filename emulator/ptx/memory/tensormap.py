"""Tensor maps: what a tensor in global memory is like, and in which boxes it is copied.

NVIDIA does not tell what the 128 bytes hold: programs get them from cuTensorMapEncodeTiled, or change fields of them by
tensormap.replace. Their layout here is therefore ours, declared once, for the emulator and for the mock of CUDA; bytes
that a real driver has made mean nothing here, and a map of ours nothing to a chip.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Final

from tinyhw.core.errors import InvalidArgument, Unsupported

SIZE: Final = 128
ALIGN: Final = 64
# By the codes of tensormap.replace (PTX ISA, table 33): name and bytes of an element.
TYPES: Final = (("u8", 1), ("u16", 2), ("u32", 4), ("s32", 4), ("u64", 8), ("s64", 8), ("f16", 2), ("f32", 4),
                ("f32.ftz", 4), ("f64", 8), ("bf16", 2), ("tf32", 4), ("tf32.ftz", 4), ("b4x16", 0), ("b4x16_p64", 0),
                ("b6x16_p32", 0))
# Of the narrow types: bytes of 16 elements in global and in shared memory. They are copied as one.
UNITS: Final = {"b4x16": (8, 8), "b4x16_p64": (8, 16), "b6x16_p32": (12, 16)}
UNIT: Final = 16  # elements
# By the code of atomicity: bits of an address that swizzles of 128 bytes exchange, bytes that stay together.
ATOMS: Final = {0: (7, 16), 1: (3, 32), 3: (1, 64)}
SWIZZLES: Final = (0, 32, 64, 128, 96)  # bytes of a row, by code
_LAYOUT: Final = (("address", "Q"), ("dims", "5I"), ("", "4x"), ("strides", "4Q"), ("box", "5I"), ("steps", "5I"),
                  ("rank", "B"), ("kind", "B"), ("interleave", "B"), ("swizzle", "B"), ("fill", "B"),
                  ("atomicity", "B"), ("im2col", "B"), ("lower", "3h"),
                  ("upper", "3h"))  # fields in order; what they leave of the 128 bytes is 0
_FORM: Final = struct.Struct("<" + "".join(form for _, form in _LAYOUT))
USED: Final = _FORM.size
CORNERS: Final = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}  # by dimensions: corners are below this, and from minus it on
COLUMN: Final = 1024  # pixels of a column at the most
FIELDS: Final = {"elemtype": "kind", "interleave_layout": "interleave", "swizzle_mode": "swizzle",
                  "swizzle_atomicity": "atomicity", "fill_mode": "fill", "global_address": "address"}
ORDINALS: Final = {"box_dim": "box", "global_dim": "dims", "global_stride": "strides", "element_stride": "steps"}


def place_of(field: str, k: int = 0) -> tuple[int, int]:
  """Where a field, or its number `k`, lies in the 128 bytes: (offset, bytes). "" is what lies between fields."""
  at = 0
  for name, form in _LAYOUT:
    if name == field: return at + k * struct.calcsize("<" + form[-1]), struct.calcsize("<" + form[-1])
    at += struct.calcsize("<" + form)
  raise KeyError(field)


@dataclass(frozen=True)
class TensorMap:
  """A tensor of `rank` dimensions, the innermost first: extents in elements, strides of all but the first in bytes,
  a box in elements and the steps at which its elements are taken. `kind`, `swizzle` and the like are PTX's codes.

  For `im2col` the first two numbers of the box are channels of a pixel and pixels of a column, and places of a filter
  are between `lower` and `upper`, which count from the first and the last element of dimensions 1 and on."""
  address: int = 0
  dims: tuple[int, ...] = (0,) * 5
  strides: tuple[int, ...] = (0,) * 4
  box: tuple[int, ...] = (0,) * 5
  steps: tuple[int, ...] = (0,) * 5
  rank: int = 1
  kind: int = 0
  interleave: int = 0
  swizzle: int = 0
  fill: int = 0
  atomicity: int = 0
  im2col: int = 0
  lower: tuple[int, ...] = (0,) * 3
  upper: tuple[int, ...] = (0,) * 3

  def encode(self) -> bytes:
    """The 128 bytes."""
    return _FORM.pack(self.address, *(d & 0xFFFFFFFF for d in self.dims), *self.strides, *self.box, *self.steps,
                      self.rank - 1, self.kind, self.interleave, self.swizzle, self.fill, self.atomicity,
                      self.im2col, *self.lower, *self.upper).ljust(SIZE, b"\0")

  @classmethod
  def decode(cls, data: bytes) -> TensorMap:
    """What 128 bytes say, whether it makes sense or not."""
    address, *rest = _FORM.unpack_from(data)
    rank, kind, interleave, swizzle, fill, atomicity, im2col = rest[19:26]
    return cls(address, tuple(rest[:5]), tuple(rest[5:9]), tuple(rest[9:14]), tuple(rest[14:19]), rank + 1, kind,
               interleave, swizzle, fill, atomicity, im2col, tuple(rest[26:29]), tuple(rest[29:]))

  def replaced(self, field: str, ordinal: int, value: int) -> TensorMap:
    """With another value of a field by tensormap.replace's name; `ordinal` is the dimension."""
    if field not in ORDINALS and field != "global_address" and value > 0xFF:
      raise InvalidArgument(f"tensormap.replace: {field} {value:,}")
    if field == "rank": return replace(self, rank=value + 1)
    if field in FIELDS: return replace(self, **{FIELDS[field]: value})  # type: ignore[arg-type]
    name = ORDINALS[field]
    values = [*getattr(self, name)]
    if ordinal >= len(values): raise InvalidArgument(f"tensormap.replace: dimension {ordinal} of {field}")
    values[ordinal] = value
    return replace(self, **{name: tuple(values)})  # type: ignore[arg-type]

  # ---- what copies need

  @property
  def type(self) -> str: return TYPES[self.kind][0]

  @property
  def size(self) -> int:
    """Bytes of an element, or of a unit of narrow ones."""
    return TYPES[self.kind][1] or UNITS[self.type][0]

  @property
  def padded(self) -> int:
    """As many in shared memory."""
    return UNITS[self.type][1] if self.type in UNITS else self.size

  @property
  def units(self) -> TensorMap:
    """The tensor with units in the place of narrow elements."""
    if self.type not in UNITS: return self
    return replace(self, dims=(self.extents[0] // UNIT, *self.dims[1:]), box=(self.box[0] // UNIT, *self.box[1:]))

  @property
  def extents(self) -> tuple[int, ...]:
    """Elements of the dimensions there are; 0 in the field stands for 2**32."""
    return tuple(d or 1 << 32 for d in self.dims[:self.rank])

  @property
  def walk(self) -> tuple[int, ...]:
    """The steps that count: the first dimension has none (cuda.h, cuTensorMapEncodeTiled)."""
    return (1, *self.steps[1:self.rank])

  @property
  def tile(self) -> tuple[int, ...]:
    """Elements of a box in shared memory: those that the steps leave."""
    return tuple(-(-b // s) for b, s in zip(self.box, self.walk))

  @property
  def window(self) -> tuple[tuple[int, int], ...]:
    """The first and the last place of a filter in each dimension between channels and images, for im2col."""
    return tuple((low, extent - 1 + high) for low, extent, high in zip(self.lower, self.extents[1:-1], self.upper))

  def check(self) -> None:
    """Raises InvalidArgument for a map that the driver would not make (cuTensorMapEncodeTiled says what it may be), and
    Unsupported for what the emulator cannot do."""
    def need(good: bool, text: str) -> None:
      if not good: raise InvalidArgument(f"a tensor map with {text}", where="tensor map")
    need(1 <= self.rank <= 5, f"{self.rank} dimensions: there are 1 to 5")
    need(self.kind < len(TYPES), f"elements of type {self.kind}")
    need(self.interleave < 3, f"interleave layout {self.interleave}")
    need(self.swizzle < len(SWIZZLES), f"swizzle mode {self.swizzle}")
    need(self.fill < 2, f"fill mode {self.fill}")
    need(self.im2col < 2, f"mode {self.im2col}")
    if self.interleave: raise Unsupported("tensor map with", "an interleaved layout")
    need(self.atomicity < 4, f"swizzle atomicity {self.atomicity}")
    need(not self.atomicity or SWIZZLES[self.swizzle] == 128, "swizzle atomicity without swizzles of 128 bytes")
    if self.atomicity not in ATOMS: raise Unsupported("tensor map with", f"swizzle atomicity {self.atomicity}")
    if self.type in UNITS:
      for name, count in (("tensor", self.extents[0]), ("box", self.box[0])):
        need(count % UNIT == 0, f"a {name} of {count} elements of {self.type} in the first dimension: 16 are one")
    if SWIZZLES[self.swizzle] == 96: raise Unsupported("tensor map with", "swizzles of 96 bytes")
    need(self.address % 16 == 0, f"the address {self.address:#x}, no multiple of 16")
    for k in range(self.rank - 1):
      need(0 <= self.strides[k] < 1 << 40 and self.strides[k] % 16 == 0,
           f"a stride of {self.strides[k]:,} bytes: a multiple of 16 under 2**40")
    if self.im2col:
      need(self.rank in CORNERS, f"{self.rank} dimensions, for im2col: there are 3 to 5")
      most = CORNERS[self.rank]
      for name in ("lower", "upper"):
        corner = getattr(self, name)[:self.rank - 2]
        need(all(-most <= c < most for c in corner), f"{name} corners {corner}: {-most} to {most - 1}")
      need(all(first <= last for first, last in self.window), f"no place between its corners, {self.window}")
      need(1 <= self.box[1] <= COLUMN, f"{self.box[1]} pixels of a column: there are 1 to {COLUMN}")
    for k in range(self.rank):
      if k and self.im2col: need(1 <= self.steps[k] <= 8, f"steps of {self.steps[k]} pixels: there are 1 to 8")
      if k and self.im2col: continue
      need(1 <= self.box[k] <= 256, f"a box of {self.box[k]} elements in dimension {k}: there are 1 to 256")
      need(1 <= self.steps[k] <= 8, f"steps of {self.steps[k]} elements in dimension {k}: there are 1 to 8")
    row, most = self.units.tile[0] * self.padded, SWIZZLES[self.swizzle]
    need(row % 16 == 0, f"a box of {row} bytes in the first dimension, no multiple of 16")
    need(not most or row <= most, f"a box of {row} bytes in the first dimension, and swizzles of {most}")
    if most and row < most and self.rank > 1:
      raise Unsupported("tensor map with", f"rows of {row} bytes in swizzles of {most}")
    floats = self.type in {"f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz"}
    need(not self.fill or floats, f"NaN for what lies outside, of {self.type}")
