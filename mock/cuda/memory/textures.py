"""Texture and surface objects: the 64 bits that a kernel gets are the address of the emulator's own header of them
(`emulator/ptx/texture/objects.py`), in memory of the card."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from tinyhw.autogen import cuda
from tinyhw.core.memory import Access
from tinyhw.emulator.ptx.texture.objects import SIZE, Header, Sampler
from tinyhw.mock.cuda.calls import Failed, invalid, only, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine, Piece
from tinyhw.mock.cuda.memory import allocations, arrays
from tinyhw.mock.cuda.memory.arrays import Array, Mipmapped, form, given, told

ALIGN: Final = 512  # of linear memory: CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT
PITCH_ALIGN: Final = 32
_MODES: Final = {cuda.CU_TR_ADDRESS_MODE_WRAP: "wrap", cuda.CU_TR_ADDRESS_MODE_CLAMP: "clamp_to_edge",
                 cuda.CU_TR_ADDRESS_MODE_MIRROR: "mirror", cuda.CU_TR_ADDRESS_MODE_BORDER: "clamp_to_border"}
_FILTERS: Final = {cuda.CU_TR_FILTER_MODE_POINT: False, cuda.CU_TR_FILTER_MODE_LINEAR: True}
_FLAGS: Final = (cuda.CU_TRSF_READ_AS_INTEGER | cuda.CU_TRSF_NORMALIZED_COORDINATES | cuda.CU_TRSF_SRGB
                 | cuda.CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | cuda.CU_TRSF_SEAMLESS_CUBEMAP)
_SIGNS: Final = {"u": "UINT", "s": "SINT", "f": "FLOAT"}
_VIEWS: Final = {  # elements by which an array is looked at: kind, components
  getattr(cuda, f"CU_RES_VIEW_FORMAT_{_SIGNS[kind[0]]}_{n}X{kind[1:]}"): (kind, n)
  for kind in ("u8", "s8", "u16", "s16", "u32", "s32", "f16", "f32") for n in (1, 2, 4)}


@dataclass(eq=False)
class Texture:
  """A texture object, with what it was made of."""

  context: Context
  piece: Piece
  resource: Any
  sampling: Any
  view: Any


@dataclass(eq=False)
class Surface:
  """A surface object."""

  context: Context
  piece: Piece
  resource: Any


def _put(m: CudaMachine, context: Context, header: Header, what: str) -> Piece:
  """A header in memory."""
  piece = allocations.allocate(m, context, SIZE, what)
  m.space.write(piece.address, header.encode())
  return piece


# ---- textures

def _resource(m: CudaMachine, d: Any) -> Header:
  """What a texture looks at."""
  only(d.flags, 0, "a resource")
  if d.resType == cuda.CU_RESOURCE_TYPE_ARRAY:
    array: Array = m.find(d.res.array.hArray, Array, cuda.CUDA_ERROR_INVALID_VALUE)
    return array.header
  if d.resType == cuda.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
    levels: Mipmapped = m.find(d.res.mipmap.hMipmappedArray, Mipmapped, cuda.CUDA_ERROR_INVALID_VALUE)
    return levels.header
  if d.resType == cuda.CU_RESOURCE_TYPE_LINEAR:
    line = d.res.linear
    h = form(line.format, line.numChannels)
    count = line.sizeInBytes // h.element
    if line.devPtr % ALIGN or not 1 <= count <= arrays.LINEAR:
      raise invalid(f"{count:,} elements at {line.devPtr:#x}: at most {arrays.LINEAR:,} at a multiple of {ALIGN}")
    allocations.check(m, line.devPtr, line.sizeInBytes, Access.READ)
    return replace(h, address=line.devPtr, size=(count, 0, 0), linear=True)
  if d.resType == cuda.CU_RESOURCE_TYPE_PITCH2D:
    p = d.res.pitch2D
    h = form(p.format, p.numChannels)
    w, rows, pitch = arrays.PITCHED
    if not (1 <= p.width <= w and 1 <= p.height <= rows and p.width * h.element <= p.pitchInBytes <= pitch):
      raise invalid(f"{p.width} x {p.height} elements with a pitch of {p.pitchInBytes} bytes")
    if p.devPtr % ALIGN or p.pitchInBytes % PITCH_ALIGN:
      raise invalid(f"rows at {p.devPtr:#x}, {p.pitchInBytes} bytes apart: multiples of {ALIGN} and {PITCH_ALIGN}")
    allocations.check(m, p.devPtr, (p.height - 1) * p.pitchInBytes + p.width * h.element, Access.READ)
    return replace(h, address=p.devPtr, size=(p.width, p.height, 0), pitch=p.pitchInBytes)
  raise invalid(f"a resource of type {d.resType}")


def _viewed(h: Header, v: Any) -> Header:
  """An array as a resource view has it: other elements of the same size, some levels, some layers."""
  if v.format != cuda.CU_RES_VIEW_FORMAT_NONE:
    if cuda.CU_RES_VIEW_FORMAT_UNSIGNED_BC1 <= v.format <= cuda.CU_RES_VIEW_FORMAT_UNSIGNED_BC7:
      raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"views of compressed blocks (format {v.format:#x})")
    if v.format not in _VIEWS:
      raise invalid(f"a view of format {v.format:#x}")
    kind, channels = _VIEWS[v.format]
    changed = replace(h, kind=kind, channels=channels, unit=False)
    if changed.element != h.element:
      raise invalid(f"a view with elements of {changed.element} bytes, and the array's have {h.element}")
    h = changed
  if (v.width, v.height, v.depth) != (h.size[0], h.size[1], h.layers or h.size[2]):
    raise invalid(f"a view of {v.width}, {v.height}, {v.depth} elements is not as large as its array")
  first, last = v.firstMipmapLevel, v.lastMipmapLevel
  if not first <= last < h.levels:
    raise invalid(f"levels {first} to {last} of {h.levels}")
  count = v.lastLayer + 1 - v.firstLayer
  if h.levels > 1:
    h = replace(arrays.level_of(h, first), levels=last - first + 1)
  if not h.layers and (v.firstLayer or v.lastLayer):
    raise invalid("layers of an array that has none")
  if h.layers and count != h.layers:
    if not v.firstLayer <= v.lastLayer < h.layers or h.cube and (v.firstLayer % 6 or count % 6):
      raise invalid(f"layers {v.firstLayer} to {v.lastLayer} of {h.layers}")
    if h.levels > 1:
      raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "some layers of several levels")
    h = replace(h, layers=count, address=h.address + v.firstLayer * h.extent(0)[1] * h.row(0))
  return h


def _sampled(h: Header, d: Any) -> Header:
  """A header with what a texture descriptor says."""
  modes, flags = [*d.addressMode], d.flags
  if not set(modes) <= set(_MODES) or d.filterMode not in _FILTERS or d.mipmapFilterMode not in _FILTERS:
    raise invalid(f"address modes {modes}, filters {d.filterMode}, {d.mipmapFilterMode}")
  only(flags, _FLAGS, "a texture")
  normalized, linear = bool(flags & cuda.CU_TRSF_NORMALIZED_COORDINATES), _FILTERS[d.filterMode] and not h.linear
  if h.mipmapped and not normalized:
    raise invalid("a mipmapped array is looked at by normalized coordinates")
  if flags & cuda.CU_TRSF_SEAMLESS_CUBEMAP:
    if not h.cube:
      raise invalid("CU_TRSF_SEAMLESS_CUBEMAP of what is no cube")
    if linear:
      raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "filtering across the edges of a cube (CU_TRSF_SEAMLESS_CUBEMAP)")
  if d.maxAnisotropy > 1 and linear:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"anisotropic filtering (maxAnisotropy {d.maxAnisotropy})")
  whole = flags & cuda.CU_TRSF_READ_AS_INTEGER
  if h.unit and whole:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "CU_TRSF_READ_AS_INTEGER of elements that are fractions")
  unit = h.unit or not whole and h.kind[0] != "f" and not h.kind.endswith("32")
  x, y, z = (_MODES[mode] for mode in modes)
  r, g, b, a = d.borderColor
  return replace(h, unit=unit, srgb=bool(flags & cuda.CU_TRSF_SRGB) and unit and h.kind == "u8",
                 sampler=Sampler((x, y, z), linear, normalized, mip_linear=_FILTERS[d.mipmapFilterMode]),
                 border=(r, g, b, a), lod=(d.mipmapLevelBias, d.minMipmapLevelClamp, d.maxMipmapLevelClamp))


@serves("cuTexObjectCreate")
def tex_object_create(m: CudaMachine, out: int, resource: int, sampling: int, view: int) -> None:
  context = m.working()
  if not out:
    raise invalid("a pointer for a result is null")
  r, s = given(m, resource, cuda.CUDA_RESOURCE_DESC_v1), given(m, sampling, cuda.CUDA_TEXTURE_DESC_v1)
  v = given(m, view, cuda.CUDA_RESOURCE_VIEW_DESC_v1) if view else None
  h = _resource(m, r)
  if v is not None:
    if r.resType not in (cuda.CU_RESOURCE_TYPE_ARRAY, cuda.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY):
      raise invalid("a view of what is no array")
    h = _viewed(h, v)
  piece = _put(m, context, _sampled(h, s), "a texture object")
  m.handles[piece.address] = Texture(context, piece, r, s, v)
  m.out(out, "Q", piece.address)


@serves("cuDeviceGetTexture1DLinearMaxWidth")
def device_get_texture_1d_linear_max_width(m: CudaMachine, out: int, code: int, channels: int, device: int) -> None:
  m.gpu(device)
  form(code, channels)
  m.out(out, "Q", arrays.LINEAR)


def _texture(m: CudaMachine, handle: int) -> Texture:
  found: Texture = m.find(handle, Texture, cuda.CUDA_ERROR_INVALID_VALUE)
  return found


def _destroy(m: CudaMachine, handle: int, gone: Texture | Surface) -> None:
  allocations.settle(m, gone.context)
  del m.handles[handle]
  allocations.release(m, gone.piece)


@serves("cuTexObjectDestroy")
def tex_object_destroy(m: CudaMachine, handle: int) -> None:
  _destroy(m, handle, _texture(m, handle))


@serves("cuTexObjectGetResourceDesc")
def tex_object_get_resource_desc(m: CudaMachine, out: int, handle: int) -> None:
  told(m, out, _texture(m, handle).resource)


@serves("cuTexObjectGetTextureDesc")
def tex_object_get_texture_desc(m: CudaMachine, out: int, handle: int) -> None:
  told(m, out, _texture(m, handle).sampling)


@serves("cuTexObjectGetResourceViewDesc")
def tex_object_get_resource_view_desc(m: CudaMachine, out: int, handle: int) -> None:
  view = _texture(m, handle).view
  if view is None:
    raise invalid("the texture object was made without a view")
  told(m, out, view)


# ---- surfaces

@serves("cuSurfObjectCreate")
def surf_object_create(m: CudaMachine, out: int, resource: int) -> None:
  context, d = m.working(), given(m, resource, cuda.CUDA_RESOURCE_DESC_v1)
  if not out:
    raise invalid("a pointer for a result is null")
  if d.resType != cuda.CU_RESOURCE_TYPE_ARRAY or d.flags:
    raise invalid(f"a surface of a resource of type {d.resType} with flags {d.flags:#x}")
  array: Array = m.find(d.res.array.hArray, Array, cuda.CUDA_ERROR_INVALID_VALUE)
  if not array.flags & arrays.SURFACE:
    raise invalid("a surface of an array without CUDA_ARRAY3D_SURFACE_LDST")
  # the faces of a cube are layers to a surface
  piece = _put(m, context, replace(array.header, cube=False), "a surface object")
  m.handles[piece.address] = Surface(context, piece, d)
  m.out(out, "Q", piece.address)


def _surface(m: CudaMachine, handle: int) -> Surface:
  found: Surface = m.find(handle, Surface, cuda.CUDA_ERROR_INVALID_VALUE)
  return found


@serves("cuSurfObjectDestroy")
def surf_object_destroy(m: CudaMachine, handle: int) -> None:
  _destroy(m, handle, _surface(m, handle))


@serves("cuSurfObjectGetResourceDesc")
def surf_object_get_resource_desc(m: CudaMachine, out: int, handle: int) -> None:
  told(m, out, _surface(m, handle).resource)
