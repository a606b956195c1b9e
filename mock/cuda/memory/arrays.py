"""CUDA arrays: memory that only copies, textures and surfaces reach.

How a card lays an array out is not told. Here it lies as the emulator's textures do
(`emulator/ptx/texture/objects.py`): row by row, rows of the first level at multiples of ROW bytes. A mipmapped array
has its levels one behind the other; each is an array too.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from tinyhw.autogen import cuda
from tinyhw.core.layout import Struct
from tinyhw.emulator.ptx.texture.objects import Header
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine, Piece
from tinyhw.mock.cuda.memory import allocations

ROW: Final = 16  # bytes of the widest access of a surface
LAYERED, CUBE = cuda.CUDA_ARRAY3D_LAYERED, cuda.CUDA_ARRAY3D_CUBEMAP
SURFACE, GATHER = cuda.CUDA_ARRAY3D_SURFACE_LDST, cuda.CUDA_ARRAY3D_TEXTURE_GATHER
_KINDS: Final = {
  cuda.CU_AD_FORMAT_UNSIGNED_INT8: "u8", cuda.CU_AD_FORMAT_UNSIGNED_INT16: "u16",
  cuda.CU_AD_FORMAT_UNSIGNED_INT32: "u32", cuda.CU_AD_FORMAT_SIGNED_INT8: "s8", cuda.CU_AD_FORMAT_SIGNED_INT16: "s16",
  cuda.CU_AD_FORMAT_SIGNED_INT32: "s32", cuda.CU_AD_FORMAT_HALF: "f16", cuda.CU_AD_FORMAT_FLOAT: "f32"}
_UNITS: Final = {  # integers that are fractions, whatever a texture says: kind, components
  getattr(cuda, f"CU_AD_FORMAT_{sign}NORM_INT{bits}X{n}"): (f"{'us'[sign == 'S']}{bits}", n)
  for sign in "US" for bits in (8, 16) for n in (1, 2, 4)}
_NAMES: Final = {v: n for n, v in vars(cuda).items() if n.startswith("CU_AD_FORMAT_") and n != "CU_AD_FORMAT_MAX"}
_FLAGS: Final = {v: n for n, v in vars(cuda).items() if n.startswith("CUDA_ARRAY3D_") and isinstance(v, int)}
# Width, height and depth (or layers) of arrays at most, for textures and for surfaces (CUDA Programming Guide,
# "Technical Specifications per Compute Capability", from 8.0 on): taken down by hand, not by a generator, and not held
# against a chip.
_CUBE: Final = 32768  # of a face, each way
_LIMITS: Final = {
  "1d": ((131072,), (32768,)), "2d": ((131072, 65536), (131072, 65536)),
  "3d": ((16384, 16384, 16384), (16384, 16384, 16384)),
  "a1d": ((32768, 0, 2048), (32768, 0, 2048)), "a2d": ((32768, 32768, 2048), (32768, 32768, 2048)),
  "cube": ((_CUBE, _CUBE), (_CUBE, _CUBE)), "acube": ((_CUBE, _CUBE, 2046), (_CUBE, _CUBE, 2046))}
_ALTERNATE: Final = (8192, 8192, 32768)  # of 3D textures
_GATHERED: Final = (32768, 32768)
MIPMAPPED: Final = {"1d": (32768,), "2d": (32768, 32768)}
LINEAR: Final = 1 << 28  # elements of linear memory
PITCHED: Final = (131072, 65000, 2097120)  # width, height, bytes from row to row

S = TypeVar("S", bound=Struct)


def limits() -> dict[str, int]:
  """The device attributes that say how large arrays may be, by their names."""
  out: dict[str, int] = {}
  names = {"1d": "1D", "2d": "2D", "3d": "3D", "a1d": "1D_LAYERED", "a2d": "2D_LAYERED", "cube": "CUBEMAP",
           "acube": "CUBEMAP_LAYERED"}
  for geometry, pair in _LIMITS.items():
    last = "LAYERS" if geometry[0] == "a" else "DEPTH"
    for side, sizes in zip(("TEXTURE", "SURFACE"), pair, strict=True):
      for n, size in zip(("WIDTH", "HEIGHT", last), sizes):
        out[f"MAXIMUM_{side}{names[geometry]}_{n}"] = size
  for n, size in zip(("WIDTH", "HEIGHT", "DEPTH"), _ALTERNATE, strict=True):
    out[f"MAXIMUM_TEXTURE3D_{n}_ALTERNATE"] = size
  for n, size, gathered in zip(("WIDTH", "HEIGHT"), MIPMAPPED["2d"], _GATHERED, strict=True):
    out |= {f"MAXIMUM_TEXTURE2D_MIPMAPPED_{n}": size, f"MAXIMUM_TEXTURE2D_GATHER_{n}": gathered}
  for n, size in zip(("WIDTH", "HEIGHT", "PITCH"), PITCHED, strict=True):
    out[f"MAXIMUM_TEXTURE2D_LINEAR_{n}"] = size
  out |= {"MAXIMUM_TEXTURE1D_LINEAR_WIDTH": LINEAR, "MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH": MIPMAPPED["1d"][0]}
  return {n: v for n, v in out.items() if hasattr(cuda, f"CU_DEVICE_ATTRIBUTE_{n}")}


def rows(m: CudaMachine, pointer: int, kind: type[S], count: int) -> list[S]:
  """So many structs of the client's, one behind the other."""
  size = ctypes.sizeof(kind)
  if not count: return []
  if not pointer: raise invalid("a pointer is null")
  m.user.read(pointer + size * count - 1, 1)  # a count that is none ends nowhere
  data = m.user.read(pointer, size * count)
  return [kind.from_buffer_copy(data, size * i) for i in range(count)]


def given(m: CudaMachine, pointer: int, kind: type[S]) -> S:
  """A struct of the client."""
  if not pointer:
    raise invalid("a pointer is null")
  return kind.from_buffer_copy(m.user.read(pointer, ctypes.sizeof(kind)))


def place(kind: type[Struct], name: str) -> int:
  """Where a field of a struct lies."""
  return int(vars(kind)[name].offset)


def told(m: CudaMachine, pointer: int, struct: Struct) -> None:
  """Give a struct to the client."""
  m.give(pointer, bytes(struct))


def form(code: int, channels: int) -> Header:
  """The elements of a CUarray_format, as a header without an array."""
  if code in _UNITS:
    kind, count = _UNITS[code]
    if channels != count:
      raise invalid(f"{_NAMES[code]} with {channels} components")
    return Header(0, kind=kind, channels=count, unit=True)
  if code not in _KINDS:
    if code in _NAMES:
      raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"arrays of {_NAMES[code]}")
    raise invalid(f"a format of elements {code:#x}")
  if channels not in (1, 2, 4):
    raise invalid(f"elements of {channels} components: 1, 2 or 4")
  return Header(0, kind=_KINDS[code], channels=channels)


@dataclass(eq=False)
class Array:
  """An array, or a level of a mipmapped one: `size` and `flags` as the client gave them, `header` what lies where."""

  context: Context
  format: int
  size: tuple[int, int, int]
  flags: int
  header: Header
  piece: Piece
  of: Mipmapped | None = None
  handle: int = 0

  @property
  def row(self) -> int:
    """Bytes of a row that count."""
    return self.header.extent(0)[0] * self.header.element

  @property
  def rows(self) -> int:
    """Rows of a slice or layer."""
    return self.header.extent(0)[1]

  @property
  def slices(self) -> int:
    """Slices or layers."""
    return max(self.size[2], 1)


@dataclass(eq=False)
class Mipmapped:
  """A mipmapped array; its `levels` are arrays, made when the client asks for them."""

  context: Context
  format: int
  size: tuple[int, int, int]
  flags: int
  header: Header
  piece: Piece
  levels: dict[int, Array] = field(default_factory=dict)
  handle: int = 0


def geometry(size: tuple[int, int, int], flags: int) -> str:
  """What PTX calls an array of this size. Raises Failed for one there is not."""
  w, h, d = size
  if flags & CUBE:
    if w != h or not d or d % 6 or d != 6 and not flags & LAYERED:
      raise invalid(f"a cube of {size}: as wide as high, and 6 faces")
    return "acube" if flags & LAYERED else "cube"
  if flags & LAYERED:
    if not d:
      raise invalid("a layered array without layers")
    return "a2d" if h else "a1d"
  if d and not h:
    raise invalid(f"an array of {size}: a depth without a height")
  return "3d" if d else "2d" if h else "1d"


def _laid(size: tuple[int, int, int], flags: int, elements: Header, levels: int = 0) -> Header:
  """How an array lies in memory; `levels` is 0 for one that is not mipmapped."""
  known = LAYERED | CUBE | SURFACE | GATHER
  if rest := flags & ~known:
    for bit, name in _FLAGS.items():
      if rest & bit: raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"arrays with {name}")
    raise invalid(f"flags of an array {flags:#x}")
  w, h, d = size
  what = geometry(size, flags)
  if flags & GATHER and what != "2d":
    raise invalid("only arrays of two dimensions are gathered from")
  texture, surface = _LIMITS[what]
  allowed = [MIPMAPPED.get(what, texture) if levels else texture]
  if what == "3d": allowed.append(_ALTERNATE)
  needed = ([surface] if flags & SURFACE else []) + ([_GATHERED] if flags & GATHER else [])

  def fits(most: tuple[int, ...]) -> bool:
    return all(n <= top for n, top in zip(size, most))
  if not w or not any(fits(most) for most in allowed) or not all(fits(most) for most in needed):
    raise invalid(f"an array of {size} elements")
  outer = flags & (LAYERED | CUBE)
  return replace(elements, size=(w, h, 0 if outer else d), layers=d if outer else 0, cube=bool(flags & CUBE),
                 levels=max(levels, 1), mipmapped=levels > 0, pitch=-(-w * elements.element // ROW) * ROW)


def _create(m: CudaMachine, out: int, code: int, channels: int, size: tuple[int, int, int], flags: int) -> None:
  context = m.working()
  if not out:
    raise invalid("a pointer for a result is null")
  header = _laid(size, flags, form(code, channels))
  piece = allocations.allocate(m, context, header.bytes, "an array")
  array = Array(context, code, size, flags, replace(header, address=piece.address), piece)
  array.handle = m.new(array)
  m.out(out, "Q", array.handle)


@serves("cuArrayCreate_v2")
def array_create(m: CudaMachine, out: int, descriptor: int) -> None:
  d = given(m, descriptor, cuda.CUDA_ARRAY_DESCRIPTOR_v2)
  _create(m, out, d.Format, d.NumChannels, (d.Width, d.Height, 0), 0)


@serves("cuArray3DCreate_v2")
def array_3d_create(m: CudaMachine, out: int, descriptor: int) -> None:
  d = given(m, descriptor, cuda.CUDA_ARRAY3D_DESCRIPTOR_v2)
  _create(m, out, d.Format, d.NumChannels, (d.Width, d.Height, d.Depth), d.Flags)


@serves("cuArrayDestroy")
def array_destroy(m: CudaMachine, handle: int) -> None:
  array: Array = m.find(handle, Array)
  if array.of is not None:
    raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, f"{handle:#x} is a level of a mipmapped array")
  allocations.settle(m, array.context)
  del m.handles[handle]
  allocations.release(m, array.piece)


@serves("cuArrayGetDescriptor_v2")
def array_get_descriptor(m: CudaMachine, out: int, handle: int) -> None:
  array: Array = m.find(handle, Array)
  w, h, _ = array.size
  told(m, out, cuda.CUDA_ARRAY_DESCRIPTOR_v2(Width=w, Height=h, Format=array.format,
                                             NumChannels=array.header.channels))


@serves("cuArray3DGetDescriptor_v2")
def array_3d_get_descriptor(m: CudaMachine, out: int, handle: int) -> None:
  array: Array = m.find(handle, Array)
  w, h, d = array.size
  told(m, out, cuda.CUDA_ARRAY3D_DESCRIPTOR_v2(Width=w, Height=h, Depth=d, Format=array.format,
                                               NumChannels=array.header.channels, Flags=array.flags))


# ---- mipmapped arrays

@serves("cuMipmappedArrayCreate")
def mipmapped_create(m: CudaMachine, out: int, descriptor: int, levels: int) -> None:
  context, d = m.working(), given(m, descriptor, cuda.CUDA_ARRAY3D_DESCRIPTOR_v2)
  if not out:
    raise invalid("a pointer for a result is null")
  size = (d.Width, d.Height, d.Depth)
  most = max(d.Width, d.Height, 0 if d.Flags & (LAYERED | CUBE) else d.Depth, 1).bit_length()
  header = _laid(size, d.Flags, form(d.Format, d.NumChannels), min(max(levels, 1), most))
  piece = allocations.allocate(m, context, header.bytes, "a mipmapped array")
  made = Mipmapped(context, d.Format, size, d.Flags, replace(header, address=piece.address), piece)
  made.handle = m.new(made)
  m.out(out, "Q", made.handle)


def level_of(h: Header, level: int) -> Header:
  """A level as the first of an array."""
  w, height, d = (n and max(1, n >> level) for n in h.size)
  return replace(h, address=h.start(level), size=(w, height, d), pitch=h.row(level), levels=h.levels - level)


@serves("cuMipmappedArrayGetLevel")
def mipmapped_get_level(m: CudaMachine, out: int, handle: int, level: int) -> None:
  of: Mipmapped = m.find(handle, Mipmapped)
  if level >= of.header.levels:
    raise invalid(f"level {level} of {of.header.levels}")
  if level not in of.levels:
    header = replace(level_of(of.header, level), levels=1, mipmapped=False)
    w, h, d = header.size
    made = Array(of.context, of.format, (w, h, header.layers or d), of.flags, header, of.piece, of)
    made.handle = m.new(made)
    of.levels[level] = made
  m.out(out, "Q", of.levels[level].handle)


@serves("cuMipmappedArrayDestroy")
def mipmapped_destroy(m: CudaMachine, handle: int) -> None:
  array: Mipmapped = m.find(handle, Mipmapped)
  allocations.settle(m, array.context)
  for gone in (handle, *(level.handle for level in array.levels.values())):
    del m.handles[gone]
  allocations.release(m, array.piece)
