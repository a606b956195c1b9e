"""The runtime's functions of CUDA arrays, textures and surfaces: the driver's, with formats told as channels."""
from __future__ import annotations

import ctypes
from typing import Any, Final

from tinyhw.autogen import cuda, cudart
from tinyhw.mock.cuda.memory.arrays import Array, Mipmapped, form
from tinyhw.mock.cuda.runtime.functions import Refusal, Runtime, runs
from tinyhw.mock.cuda.runtime.memory import copy_box, fill_side, sides

_PLAIN: Final = {  # what channels of a kind with so many bits are to the driver
  (cudart.cudaChannelFormatKindUnsigned, 8): cuda.CU_AD_FORMAT_UNSIGNED_INT8,
  (cudart.cudaChannelFormatKindUnsigned, 16): cuda.CU_AD_FORMAT_UNSIGNED_INT16,
  (cudart.cudaChannelFormatKindUnsigned, 32): cuda.CU_AD_FORMAT_UNSIGNED_INT32,
  (cudart.cudaChannelFormatKindSigned, 8): cuda.CU_AD_FORMAT_SIGNED_INT8,
  (cudart.cudaChannelFormatKindSigned, 16): cuda.CU_AD_FORMAT_SIGNED_INT16,
  (cudart.cudaChannelFormatKindSigned, 32): cuda.CU_AD_FORMAT_SIGNED_INT32,
  (cudart.cudaChannelFormatKindFloat, 16): cuda.CU_AD_FORMAT_HALF,
  (cudart.cudaChannelFormatKindFloat, 32): cuda.CU_AD_FORMAT_FLOAT}
_FRACTIONS: Final = {  # kinds of channels that are fractions of one
  getattr(cudart, f"cudaChannelFormatKind{word}Normalized{bits}X{n}"): getattr(
    cuda, f"CU_AD_FORMAT_{sign}NORM_INT{bits}X{n}")
  for word, sign in (("Unsigned", "U"), ("Signed", "S")) for bits in (8, 16) for n in (1, 2, 4)}
_KINDS: Final = {v: k for k, v in _PLAIN.items()}
_FRACTION_KINDS: Final = {v: k for k, v in _FRACTIONS.items()}


def _format(channel: Any) -> tuple[int, int]:
  """The driver's format and number of channels of a cudaChannelFormatDesc."""
  bits = [channel.x, channel.y, channel.z, channel.w]
  count = next((i for i, n in enumerate(bits) if not n), 4)
  if count in (1, 2, 4) and bits == [bits[0]] * count + [0] * (4 - count):
    if channel.f in _FRACTIONS: return _FRACTIONS[channel.f], count
    if (channel.f, bits[0]) in _PLAIN: return _PLAIN[channel.f, bits[0]], count
  raise Refusal(cudart.cudaErrorInvalidChannelDescriptor, f"channels of {bits} bits, kind {channel.f}")


def _channel(code: int, channels: int) -> cudart.cudaChannelFormatDesc:
  """What a format of the driver's is to the runtime."""
  kind, bits = _KINDS[code] if code in _KINDS else (_FRACTION_KINDS[code], 8 * form(code, channels).element // channels)
  return cudart.cudaChannelFormatDesc(*([bits] * channels + [0] * (4 - channels)), kind)


# ---- arrays

def _made(r: Runtime, out: int, channel: int, size: tuple[int, int, int], flags: int, levels: int = 0) -> None:
  code, channels = _format(r.struct(cudart.cudaChannelFormatDesc, channel))
  d = cuda.CUDA_ARRAY3D_DESCRIPTOR(Width=size[0], Height=size[1], Depth=size[2], Format=code, NumChannels=channels,
                                   Flags=flags)  # the flags are the driver's
  if levels: r.call("cuMipmappedArrayCreate", out, ctypes.addressof(d), levels)
  else: r.call("cuArray3DCreate_v2", out, ctypes.addressof(d))


@runs("cudaMallocArray")
def malloc_array(r: Runtime, out: int, channel: int, width: int, height: int, flags: int) -> None:
  _made(r, out, channel, (width, height, 0), flags)


@runs("cudaMalloc3DArray")
def malloc_3d_array(r: Runtime, out: int, channel: int, extent: Any, flags: int) -> None:
  _made(r, out, channel, (extent.width, extent.height, extent.depth), flags)


@runs("cudaMallocMipmappedArray")
def malloc_mipmapped_array(r: Runtime, out: int, channel: int, extent: Any, levels: int, flags: int) -> None:
  _made(r, out, channel, (extent.width, extent.height, extent.depth), flags, max(levels, 1))


@runs("cudaGetMipmappedArrayLevel")
def get_mipmapped_array_level(r: Runtime, out: int, array: int, level: int) -> None:
  r.call("cuMipmappedArrayGetLevel", out, array, level)


@runs("cudaFreeArray")
def free_array(r: Runtime, array: int) -> None:
  if array: r.call("cuArrayDestroy", array)


@runs("cudaFreeMipmappedArray")
def free_mipmapped_array(r: Runtime, array: int) -> None:
  if array: r.call("cuMipmappedArrayDestroy", array)


def _array(r: Runtime, handle: int) -> Array:
  found = r.machine.handles.get(handle)
  if not isinstance(found, Array): raise Refusal(cudart.cudaErrorInvalidValue, f"{handle:#x} is no array")
  return found


@runs("cudaGetChannelDesc")
def get_channel_desc(r: Runtime, out: int, handle: int) -> None:
  found = r.machine.handles.get(handle)
  if not isinstance(found, (Array, Mipmapped)):
    raise Refusal(cudart.cudaErrorInvalidValue, f"{handle:#x} is no array")
  r.told(out, _channel(found.format, found.header.channels))


@runs("cudaArrayGetInfo")
def array_get_info(r: Runtime, channel: int, extent: int, flags: int, handle: int) -> None:
  array = _array(r, handle)
  if channel: r.told(channel, _channel(array.format, array.header.channels))
  if extent: r.told(extent, cudart.cudaExtent(*array.size))
  if flags: r.machine.out(flags, "I", array.flags)


# ---- copies

def _array_side(box: cuda.CUDA_MEMCPY3D, side: str, array: int, x: int, y: int) -> None:
  setattr(box, side + "MemoryType", cuda.CU_MEMORYTYPE_ARRAY)
  setattr(box, side + "Array", array)
  setattr(box, side + "XInBytes", x)
  setattr(box, side + "Y", y)


@runs("cudaMemcpy2DToArray", "cudaMemcpy2DToArrayAsync")
def memcpy_2d_to_array(r: Runtime, to: int, x: int, y: int, come: int, pitch: int, width: int, height: int, kind: int,
                       *stream: int) -> None:
  box = cuda.CUDA_MEMCPY3D(WidthInBytes=width, Height=height, Depth=1)
  fill_side(box, "src", sides(kind)[0], come, pitch)
  _array_side(box, "dst", to, x, y)
  copy_box(r, box, stream)


@runs("cudaMemcpy2DFromArray", "cudaMemcpy2DFromArrayAsync")
def memcpy_2d_from_array(r: Runtime, to: int, pitch: int, come: int, x: int, y: int, width: int, height: int,
                         kind: int, *stream: int) -> None:
  box = cuda.CUDA_MEMCPY3D(WidthInBytes=width, Height=height, Depth=1)
  _array_side(box, "src", come, x, y)
  fill_side(box, "dst", sides(kind)[1], to, pitch)
  copy_box(r, box, stream)


@runs("cudaMemcpy2DArrayToArray")
def memcpy_2d_array_to_array(r: Runtime, to: int, x: int, y: int, come: int, from_x: int, from_y: int, width: int,
                             height: int, kind: int) -> None:
  sides(kind)
  box = cuda.CUDA_MEMCPY3D(WidthInBytes=width, Height=height, Depth=1)
  _array_side(box, "src", come, from_x, from_y)
  _array_side(box, "dst", to, x, y)
  copy_box(r, box, ())


def _runs_of(array: Array, x: int, y: int, count: int) -> list[tuple[int, int, int, int]]:
  """`count` bytes of an array from a place on, row after row: x, y, bytes of a row, rows."""
  found = []
  while count:
    if x or count < array.row: part = x, y, min(array.row - x, count), 1
    else: part = 0, y, array.row, count // array.row
    if part[2] <= 0: raise Refusal(cudart.cudaErrorInvalidValue, f"byte {x} of a row of {array.row} bytes")
    found.append(part)
    count -= part[2] * part[3]
    x, y = 0, y + part[3]
  return found


@runs("cudaMemcpyToArray", "cudaMemcpyToArrayAsync")
def memcpy_to_array(r: Runtime, to: int, x: int, y: int, come: int, count: int, kind: int, *stream: int) -> None:
  for left, top, width, rows in _runs_of(_array(r, to), x, y, count):
    memcpy_2d_to_array(r, to, left, top, come, width, width, rows, kind, *stream)
    come += width * rows


@runs("cudaMemcpyFromArray", "cudaMemcpyFromArrayAsync")
def memcpy_from_array(r: Runtime, to: int, come: int, x: int, y: int, count: int, kind: int, *stream: int) -> None:
  for left, top, width, rows in _runs_of(_array(r, come), x, y, count):
    memcpy_2d_from_array(r, to, width, come, left, top, width, rows, kind, *stream)
    to += width * rows


@runs("cudaMemcpyArrayToArray")
def memcpy_array_to_array(r: Runtime, to: int, x: int, y: int, come: int, from_x: int, from_y: int, count: int,
                          kind: int) -> None:
  a, b = _array(r, to), _array(r, come)
  if a.row != b.row or x != from_x:
    raise Refusal(cudart.cudaErrorNotSupported, "copies between arrays of different rows by a count of bytes")
  for left, top, width, rows in _runs_of(b, from_x, from_y, count):
    memcpy_2d_array_to_array(r, to, left, top + y - from_y, come, left, top, width, rows, kind)


# ---- textures and surfaces

def _resource(r: Runtime, pointer: int) -> cuda.CUDA_RESOURCE_DESC:
  """A cudaResourceDesc as the driver has it; kinds of resources have its numbers."""
  given = r.struct(cudart.cudaResourceDesc, pointer)
  out, res = cuda.CUDA_RESOURCE_DESC(resType=given.resType, flags=given.flags), given.res
  if given.resType == cudart.cudaResourceTypeArray: out.res.array.hArray = res.array.array
  elif given.resType == cudart.cudaResourceTypeMipmappedArray: out.res.mipmap.hMipmappedArray = res.mipmap.mipmap
  elif given.resType == cudart.cudaResourceTypeLinear:
    out.res.linear.devPtr, out.res.linear.sizeInBytes = res.linear.devPtr, res.linear.sizeInBytes
    out.res.linear.format, out.res.linear.numChannels = _format(res.linear.desc)
  elif given.resType == cudart.cudaResourceTypePitch2D:
    for name in ("devPtr", "width", "height", "pitchInBytes"):
      setattr(out.res.pitch2D, name, getattr(res.pitch2D, name))
    out.res.pitch2D.format, out.res.pitch2D.numChannels = _format(res.pitch2D.desc)
  return out


def _formatted(r: Runtime, resource: cuda.CUDA_RESOURCE_DESC) -> int:
  """The format of what a texture looks at."""
  if resource.resType == cuda.CU_RESOURCE_TYPE_LINEAR: return resource.res.linear.format
  if resource.resType == cuda.CU_RESOURCE_TYPE_PITCH2D: return resource.res.pitch2D.format
  found = r.machine.handles.get(resource.res.array.hArray)  # a mipmapped one's handle lies there too
  return found.format if isinstance(found, (Array, Mipmapped)) else 0


@runs("cudaCreateTextureObject")
def create_texture_object(r: Runtime, out: int, resource: int, sampling: int, view: int) -> None:
  what, given = _resource(r, resource), r.struct(cudart.cudaTextureDesc, sampling)
  code = _formatted(r, what)
  if given.readMode not in (cudart.cudaReadModeElementType, cudart.cudaReadModeNormalizedFloat):
    raise Refusal(cudart.cudaErrorInvalidValue, f"read mode {given.readMode}")
  integers = code in _KINDS and _KINDS[code][0] != cudart.cudaChannelFormatKindFloat
  whole = integers and given.readMode == cudart.cudaReadModeElementType
  if given.filterMode == cudart.cudaFilterModeLinear and integers and (whole or _KINDS[code][1] == 32):
    raise Refusal(cudart.cudaErrorInvalidFilterSetting, "linear filtering of integers")
  flags = ((cuda.CU_TRSF_READ_AS_INTEGER if whole else 0) | (cuda.CU_TRSF_SRGB if given.sRGB else 0)
           | (cuda.CU_TRSF_NORMALIZED_COORDINATES if given.normalizedCoords else 0)
           | (cuda.CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION if given.disableTrilinearOptimization else 0)
           | (cuda.CU_TRSF_SEAMLESS_CUBEMAP if given.seamlessCubemap else 0))
  d = cuda.CUDA_TEXTURE_DESC(flags=flags)
  for name in ("addressMode", "filterMode", "maxAnisotropy", "mipmapFilterMode", "mipmapLevelBias",
               "minMipmapLevelClamp", "maxMipmapLevelClamp", "borderColor"): setattr(d, name, getattr(given, name))
  r.call("cuTexObjectCreate", out, ctypes.addressof(what), ctypes.addressof(d), view)  # the view is the driver's
  r.descriptions[r.machine.get(out, "Q")[0]] = tuple(
    r.machine.user.read(at, ctypes.sizeof(kind)) if at else b"" for at, kind in (
      (resource, cudart.cudaResourceDesc), (sampling, cudart.cudaTextureDesc), (view, cudart.cudaResourceViewDesc)))


@runs("cudaDestroyTextureObject")
def destroy_texture_object(r: Runtime, handle: int) -> None:
  if not handle: return
  r.call("cuTexObjectDestroy", handle)
  r.descriptions.pop(handle, None)


@runs("cudaCreateSurfaceObject")
def create_surface_object(r: Runtime, out: int, resource: int) -> None:
  what = _resource(r, resource)
  r.call("cuSurfObjectCreate", out, ctypes.addressof(what))
  r.descriptions[r.machine.get(out, "Q")[0]] = (
    r.machine.user.read(resource, ctypes.sizeof(cudart.cudaResourceDesc)), b"", b"")


@runs("cudaDestroySurfaceObject")
def destroy_surface_object(r: Runtime, handle: int) -> None:
  if not handle: return
  r.call("cuSurfObjectDestroy", handle)
  r.descriptions.pop(handle, None)


def _described(r: Runtime, out: int, handle: int, which: int) -> None:
  """What an object was made of, as the program gave it."""
  data = r.descriptions.get(handle, (b"", b"", b""))[which]
  if not data: raise Refusal(cudart.cudaErrorInvalidValue, f"{handle:#x} is no such object, or was made without")
  r.machine.out(out, f"{len(data)}s", data)


@runs("cudaGetTextureObjectResourceDesc", "cudaGetSurfaceObjectResourceDesc")
def get_object_resource(r: Runtime, out: int, handle: int) -> None: _described(r, out, handle, 0)


@runs("cudaGetTextureObjectTextureDesc")
def get_object_sampling(r: Runtime, out: int, handle: int) -> None: _described(r, out, handle, 1)


@runs("cudaGetTextureObjectResourceViewDesc")
def get_object_view(r: Runtime, out: int, handle: int) -> None: _described(r, out, handle, 2)


@runs("cudaDeviceGetTexture1DLinearMaxWidth", context=False)
def device_get_texture_1d_linear_max_width(r: Runtime, out: int, channel: int, device: int) -> None:
  r.initialize()
  r.call("cuDeviceGetTexture1DLinearMaxWidth", out, *_format(r.struct(cudart.cudaChannelFormatDesc, channel)), device)
