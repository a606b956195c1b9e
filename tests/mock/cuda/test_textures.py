"""CUDA arrays, texture and surface objects through the driver API. What a fetch gives is what `tinyhw.launch` gives for
the same `tinyhw.Texture`, which has tests and a witness of its own."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw
from tests.emulator.ptx.test_textures import kernel
from tests.mock.cuda.client import Client, u64
from tests.strength import examples
from tinyhw.autogen import cuda

FORMATS = {"u1": "UNSIGNED_INT8", "u2": "UNSIGNED_INT16", "u4": "UNSIGNED_INT32", "i1": "SIGNED_INT8",
           "i2": "SIGNED_INT16", "i4": "SIGNED_INT32", "f2": "HALF", "f4": "FLOAT"}
MODES = {"wrap": "WRAP", "clamp_to_edge": "CLAMP", "mirror": "MIRROR", "clamp_to_border": "BORDER"}
LAYERED, SURFACE, CUBE = cuda.CUDA_ARRAY3D_LAYERED, cuda.CUDA_ARRAY3D_SURFACE_LDST, cuda.CUDA_ARRAY3D_CUBEMAP
GATHER = cuda.CUDA_ARRAY3D_TEXTURE_GATHER
NORMALIZED, WHOLE = cuda.CU_TRSF_NORMALIZED_COORDINATES, cuda.CU_TRSF_READ_AS_INTEGER
FETCH = kernel("""ld.param.u64 %l1, [t]; cvt.rn.f32.u32 %f5, %r2; cvt.rn.f32.u32 %f6, %r3;
  fma.rn.f32 %f5, %f5, 0f3E4CCCCD, 0fBE99999A; fma.rn.f32 %f6, %f6, 0f3E4CCCCD, 0fBE99999A;
  tex.2d.v4.TYPE.f32 {%f1,%f2,%f3,%f4}, [%l1, {%f5, %f6}]; st.global.v4.f32 [%l2], {%f1,%f2,%f3,%f4};""")


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client("sm_90")
  yield client
  client.machine.close()


def code_of(dtype: Any) -> int:
  return int(getattr(cuda, "CU_AD_FORMAT_" + FORMATS[np.dtype(dtype).str[1:]]))


def array(client: Client, dtype: Any, size: tuple[int, int, int], channels: int = 1, flags: int = 0) -> int:
  return client.handle("cuArray3DCreate_v2", ctypes.byref(described(dtype, size, channels, flags)))


def described(dtype: Any, size: tuple[int, int, int], channels: int = 1, flags: int = 0) -> Any:
  w, h, d = size
  return cuda.CUDA_ARRAY3D_DESCRIPTOR_v2(Width=w, Height=h, Depth=d, Format=code_of(dtype), NumChannels=channels,
                                         Flags=flags)


def box(at: int, data: np.ndarray, back: bool = False) -> Any:
  """A copy of all of an array: `data` has the axes z, y, x, channel."""
  d, h, w, _ = data.shape
  row = data.strides[1]
  own, other = ("src", "dst") if back else ("dst", "src")
  return cuda.CUDA_MEMCPY3D_v2(**{
    f"{own}MemoryType": cuda.CU_MEMORYTYPE_ARRAY, f"{own}Array": at, f"{other}MemoryType": cuda.CU_MEMORYTYPE_HOST,
    f"{other}Host": data.ctypes.data, f"{other}Pitch": row, f"{other}Height": h, "WidthInBytes": row, "Height": h,
    "Depth": d})


def filled(client: Client, data: np.ndarray, size: tuple[int, int, int], flags: int = 0) -> int:
  """An array with these elements."""
  at = array(client, data.dtype, size, data.shape[-1], flags)
  client.call("cuMemcpy3D_v2", ctypes.byref(box(at, data)))
  return at


def of_array(at: int) -> Any:
  resource = cuda.CUDA_RESOURCE_DESC_v1(resType=cuda.CU_RESOURCE_TYPE_ARRAY)
  resource.res.array.hArray = at
  return resource


def sampled(address: str = "clamp_to_edge", filter: str = "nearest", flags: int = 0, **more: Any) -> Any:
  s = cuda.CUDA_TEXTURE_DESC_v1(filterMode=int(filter == "linear"), flags=flags, **more)
  s.addressMode[:] = [getattr(cuda, f"CU_TR_ADDRESS_MODE_{MODES[address]}")] * 3
  return s


def texture(client: Client, resource: Any, sampling: Any, view: Any = None) -> int:
  return client.handle("cuTexObjectCreate", ctypes.byref(resource), ctypes.byref(sampling),
                       None if view is None else ctypes.byref(view))


def run(client: Client, text: str, *handles: int, threads: int = 64) -> np.ndarray:
  """What 64 threads leave, four words each."""
  out = client.alloc(threads * 16)
  client.put(out, np.zeros((threads, 4), np.float32))
  assert client.launch(client.function(text, "k"), 1, threads, [*map(u64, handles), u64(out)]) == 0
  return np.asarray(client.get(out, np.zeros((threads, 4), np.float32)))


# ---- arrays

@pytest.mark.parametrize(("size", "flags"), [
  ((5, 0, 0), 0), ((5, 3, 0), SURFACE), ((5, 3, 2), 0), ((5, 0, 4), LAYERED), ((5, 3, 4), LAYERED | SURFACE),
  ((4, 4, 6), CUBE), ((4, 4, 12), CUBE | LAYERED), ((5, 3, 0), GATHER)], ids=str)
def test_an_array_keeps_what_is_copied_into_it(client: Client, size: tuple[int, int, int], flags: int) -> None:
  w, h, d = size
  data = np.random.default_rng(0).integers(0, 1 << 16, (max(d, 1), max(h, 1), w, 4)).astype(np.uint16)
  at, back = filled(client, data, size, flags), np.zeros_like(data)
  client.call("cuMemcpy3D_v2", ctypes.byref(box(at, back, True)))
  assert (back == data).all()
  told = cuda.CUDA_ARRAY3D_DESCRIPTOR_v2()
  client.call("cuArray3DGetDescriptor_v2", ctypes.byref(told), u64(at))
  assert bytes(told) == bytes(described(np.uint16, size, 4, flags))
  flat = cuda.CUDA_ARRAY_DESCRIPTOR_v2()
  client.call("cuArrayGetDescriptor_v2", ctypes.byref(flat), u64(at))
  assert (flat.Width, flat.Height, flat.Format, flat.NumChannels) == (w, h, code_of(np.uint16), 4)
  client.call("cuArrayDestroy", u64(at))
  assert client.code("cuArrayDestroy", u64(at)) == cuda.CUDA_ERROR_INVALID_HANDLE
  assert client.code("cuMemcpy3D_v2", ctypes.byref(box(at, back, True))) == cuda.CUDA_ERROR_INVALID_VALUE


@pytest.mark.parametrize(("size", "channels", "flags", "code"), [
  ((0, 0, 0), 1, 0, "INVALID_VALUE"), ((4, 0, 4), 1, 0, "INVALID_VALUE"), ((4, 4, 0), 3, 0, "INVALID_VALUE"),
  ((131073, 0, 0), 1, 0, "INVALID_VALUE"), ((131072, 0, 0), 1, SURFACE, "INVALID_VALUE"),
  ((8, 0, 0), 1, LAYERED, "INVALID_VALUE"), ((8, 4, 6), 1, CUBE, "INVALID_VALUE"),
  ((8, 8, 5), 1, CUBE, "INVALID_VALUE"),
  ((8, 8, 12), 1, CUBE, "INVALID_VALUE"), ((8, 8, 0), 1, 1 << 12, "INVALID_VALUE"),
  ((8, 8, 2), 1, GATHER, "INVALID_VALUE"), ((16385, 2, 2), 1, 0, "INVALID_VALUE"),
  ((8, 8, 0), 1, cuda.CUDA_ARRAY3D_SPARSE, "NOT_SUPPORTED"),
  ((8, 8, 0), 1, cuda.CUDA_ARRAY3D_DEPTH_TEXTURE, "NOT_SUPPORTED"),
  ((65536, 65536, 0), 4, 0, "OUT_OF_MEMORY")], ids=str)
def test_arrays_that_the_driver_refuses(client: Client, size: tuple[int, int, int], channels: int, flags: int,
                                        code: str) -> None:
  out = ctypes.c_uint64()
  asked = described(np.float32, size, channels, flags)
  found = client.code("cuArray3DCreate_v2", ctypes.byref(out), ctypes.byref(asked))
  assert cuda.RESULTS[found] == f"CUDA_ERROR_{code}"


def test_formats_of_elements(client: Client) -> None:
  out = ctypes.c_uint64()

  def code(form: int, channels: int) -> int:
    asked = cuda.CUDA_ARRAY_DESCRIPTOR_v2(Width=4, Height=4, Format=form, NumChannels=channels)
    return client.code("cuArrayCreate_v2", ctypes.byref(out), ctypes.byref(asked))
  assert code(cuda.CU_AD_FORMAT_UNORM_INT8X2, 2) == 0
  assert code(cuda.CU_AD_FORMAT_UNORM_INT8X2, 4) == cuda.CUDA_ERROR_INVALID_VALUE
  assert code(cuda.CU_AD_FORMAT_NV12, 3) == cuda.CUDA_ERROR_NOT_SUPPORTED
  assert "CU_AD_FORMAT_NV12" in client.machine.report()[-1]
  assert code(0x77, 1) == cuda.CUDA_ERROR_INVALID_VALUE
  assert client.code("cuArrayCreate_v2", None, None) == cuda.CUDA_ERROR_INVALID_VALUE


def test_an_array_is_not_memory_by_address(client: Client) -> None:
  at = array(client, np.float32, (64, 64, 0))
  t = texture(client, of_array(at), sampled())
  piece = next(p for p in client.machine.pieces.values() if p.opaque)
  for address in (t, piece.address):
    assert client.code("cuMemFree_v2", u64(address)) == cuda.CUDA_ERROR_INVALID_VALUE
    assert client.code("cuMemsetD8_v2", u64(address), 1, ctypes.c_size_t(4)) == cuda.CUDA_ERROR_INVALID_VALUE


def test_a_context_takes_its_arrays_along(client: Client) -> None:
  other = client.handle("cuCtxCreate_v2", 0, 0)
  before = len(client.machine.pieces)
  at = array(client, np.float32, (64, 64, 0), 1, SURFACE)
  t = texture(client, of_array(at), sampled())
  s = client.handle("cuSurfObjectCreate", ctypes.byref(of_array(at)))
  client.call("cuCtxDestroy_v2", u64(other))
  assert len(client.machine.pieces) == before
  client.call("cuCtxSetCurrent", u64(client.context))
  assert client.code("cuTexObjectDestroy", u64(t)) == client.code("cuSurfObjectDestroy", u64(s)) \
      == cuda.CUDA_ERROR_INVALID_VALUE
  assert client.code("cuArrayDestroy", u64(at)) == cuda.CUDA_ERROR_INVALID_HANDLE


# ---- copies

@settings(max_examples=examples(15))
@given(st.data())
def test_boxes_are_what_numpy_says(choose: st.DataObject) -> None:
  """Copies of parts between arrays, memory of the card and of the host."""
  client, number = Client(), lambda most: choose.draw(st.integers(0, most))
  rng = np.random.default_rng(0)
  held, where = {}, {}
  for kind in ("HOST", "DEVICE", "ARRAY", "OTHER"):
    data = held[kind] = rng.integers(0, 256, (3, 4, 12)).astype(np.uint8)  # of 4 bytes an element
    if kind == "HOST": where[kind] = data.ctypes.data
    elif kind == "DEVICE":
      where[kind] = client.alloc(data.size)
      client.put(where[kind], data)
    else: where[kind] = filled(client, data.reshape(3, 4, 3, 4), (3, 4, 3))
  for _ in range(4):
    w, h, d = 4 * number(3), number(4), number(3)
    names = [choose.draw(st.sampled_from([*held])) for _ in range(2)]
    p = cuda.CUDA_MEMCPY3D_v2(WidthInBytes=w, Height=h, Depth=d)
    cuts = []
    for side, name in zip(("dst", "src"), names):
      x, y, z = 4 * number(3 - w // 4), number(4 - h), number(3 - d)
      kind = "ARRAY" if name == "OTHER" else name
      field = {"HOST": "Host", "DEVICE": "Device", "ARRAY": "Array"}[kind]
      for key, value in {"MemoryType": getattr(cuda, f"CU_MEMORYTYPE_{kind}"), "XInBytes": x, "Y": y, "Z": z,
                         "Pitch": 12, "Height": 4, field: where[name]}.items():
        setattr(p, side + key, value)
      cuts.append((slice(z, z + d), slice(y, y + h), slice(x, x + w)))
    asynchronous = choose.draw(st.booleans())
    source = held[names[1]].copy()
    client.call("cuMemcpy3DAsync_v2" if asynchronous else "cuMemcpy3D_v2", ctypes.byref(p),
                *([u64(0)] if asynchronous else []))
    held[names[0]][cuts[0]] = source[cuts[1]]  # the host's own: it is there already
  for name in ("ARRAY", "OTHER"):
    back = np.zeros((3, 4, 3, 4), np.uint8)
    client.call("cuMemcpy3D_v2", ctypes.byref(box(where[name], back, True)))
    assert (back.reshape(3, 4, 12) == held[name]).all()
  assert (client.get(where["DEVICE"], held["DEVICE"]) == held["DEVICE"]).all()
  client.machine.close()


def test_lines_of_arrays(client: Client) -> None:
  one, two = (array(client, np.float32, (16, 0, 0)) for _ in range(2))
  data, back, at = np.arange(16, dtype=np.float32), np.zeros(16, np.float32), client.alloc(64)
  n = ctypes.c_size_t
  client.put(at, -data)
  client.call("cuMemcpyHtoA_v2", u64(one), n(0), u64(data.ctypes.data), n(64))
  client.call("cuMemcpyDtoA_v2", u64(one), n(8), u64(at + 4), n(8))
  client.call("cuMemcpyAtoA_v2", u64(two), n(4), u64(one), n(0), n(60))
  client.call("cuMemcpyHtoAAsync_v2", u64(two), n(0), u64(data[15:].ctypes.data), n(4), u64(0))
  client.call("cuMemcpyAtoH_v2", u64(back.ctypes.data), u64(two), n(0), n(64))
  assert back.tolist() == [15, 0, 1, -1, -2, *range(4, 15)]
  client.call("cuMemcpyAtoD_v2", u64(at), u64(two), n(4), n(12))
  assert client.get(at, data)[:4].tolist() == [0, 1, -1, -3]
  client.call("cuMemcpyAtoHAsync_v2", u64(back.ctypes.data), u64(one), n(4), n(4), u64(0))
  client.call("cuCtxSynchronize")
  assert back[0] == 1
  invalid = cuda.CUDA_ERROR_INVALID_VALUE
  assert client.code("cuMemcpyHtoA_v2", u64(one), n(60), u64(data.ctypes.data), n(8)) == invalid
  assert client.code("cuMemcpyDtoA_v2", u64(one), n(2), u64(at), n(8)) == invalid
  assert client.code("cuMemcpyAtoH_v2", u64(back.ctypes.data), u64(at), n(0), n(8)) == invalid
  assert client.code("cuMemcpyHtoA_v2", u64(array(client, np.float32, (4, 4, 0))), n(0), u64(data.ctypes.data),
                     n(8)) == invalid


def test_parts_of_elements_are_copied_by_the_host_alone(client: Client) -> None:
  """Copies between an array and anything but host memory are of whole elements."""
  one, at, row = array(client, np.float32, (16, 0, 0)), client.alloc(64), np.zeros(64, np.uint8)
  host, n = np.arange(64, dtype=np.uint8), ctypes.c_size_t
  for step, name in ((100, "cuMemcpyHtoA_v2"), (200, "cuMemcpyHtoAAsync_v2")):
    more = (u64(0),) if "Async" in name else ()
    given = host + np.uint8(step)
    for offset, size in ((0, 64), (3, 7), (8, 5), (61, 3)):
      client.call(name, u64(one), n(offset), u64(given[offset:].ctypes.data), n(size), *more)
      row[offset:offset + size] = given[offset:offset + size]
      given += np.uint8(1)
      for back in ("cuMemcpyAtoH_v2", "cuMemcpyAtoHAsync_v2"):
        found = np.zeros(size, np.uint8)
        client.call(back, u64(found.ctypes.data), u64(one), n(offset), n(size), *(u64(0),) * ("Async" in back))
        assert found.tolist() == row[offset:offset + size].tolist()
      good = 0 if offset % 4 == size % 4 == 0 else cuda.CUDA_ERROR_INVALID_VALUE
      assert client.code("cuMemcpyAtoD_v2", u64(at), u64(one), n(offset), n(size)) == good
      assert client.code("cuMemcpyDtoA_v2", u64(one), n(offset), u64(at), n(size)) == good
      assert client.code("cuMemcpyAtoA_v2", u64(one), n(offset), u64(one), n(offset), n(size)) == good
      assert client.code("cuMemcpyAtoA_v2", u64(one), n(0), u64(one), n(offset), n(size)) == good


@pytest.mark.parametrize("changes", [
  {"dstXInBytes": 2}, {"WidthInBytes": 18}, {"dstXInBytes": 4}, {"dstY": 1}, {"dstZ": 1}, {"dstLOD": 1},
  {"srcPitch": 12}, {"srcHeight": 1}, {"srcMemoryType": 9}, {"reserved0": 1}, {"dstArray": 5}], ids=str)
def test_boxes_that_the_driver_refuses(client: Client, changes: dict[str, int]) -> None:
  data = np.zeros((2, 2, 4, 4), np.uint8)
  at = array(client, np.uint8, (4, 2, 2), 4)
  p = box(at, data)
  client.call("cuMemcpy3D_v2", ctypes.byref(p))
  for name, value in changes.items(): setattr(p, name, value)
  assert client.code("cuMemcpy3D_v2", ctypes.byref(p)) == cuda.CUDA_ERROR_INVALID_VALUE


# ---- textures

@settings(max_examples=examples(6))
@given(st.sampled_from([*MODES]), st.sampled_from(["nearest", "linear"]), st.booleans(), st.sampled_from([1, 2, 4]),
       st.sampled_from(["u1", "i2", "f2", "f4"]), st.sampled_from(["array", "pitch"]))
def test_fetches_are_those_of_a_launch(address: str, filter: str, normalized: bool, channels: int, kind: str,
                                       where: str) -> None:
  client, rng = Client(), np.random.default_rng(5)
  data = rng.integers(0, 100, (5, 7, channels)).astype(kind)
  border = (0.5, 0.25, 0.0, 1.0)
  if where == "array": resource = of_array(filled(client, data[None], (7, 5, 0)))
  else:
    pitch, resource = 64, cuda.CUDA_RESOURCE_DESC_v1(resType=cuda.CU_RESOURCE_TYPE_PITCH2D)
    rows = np.zeros((5, pitch), np.uint8)
    rows[:, :data.strides[0]] = data.reshape(5, -1).view(np.uint8)
    p = resource.res.pitch2D
    p.devPtr, p.format, p.numChannels = client.alloc(rows.size), code_of(kind), channels
    p.width, p.height, p.pitchInBytes = 7, 5, pitch
    client.put(p.devPtr, rows)
  sampling = sampled(address, filter, NORMALIZED * normalized)
  sampling.borderColor[:] = border
  text = FETCH.replace("TYPE", "f32")
  found = run(client, text, texture(client, resource, sampling))
  unit = kind[0] != "f"
  wanted, = tinyhw.launch(text, "k", 1, 64, [
    tinyhw.Texture(data[:, :, 0] if channels == 1 else data, channels=channels, filter=filter, address=address,
                   normalized=normalized, unit=unit, border=border), np.zeros((64, 4), np.float32)], "EMU")
  np.testing.assert_array_equal(found, wanted)
  client.machine.close()


def test_integers_stay_integers(client: Client) -> None:
  data = np.arange(-30, 34, dtype=np.int8).reshape(1, 8, 8, 1)
  at = filled(client, data, (8, 8, 0))
  text = kernel("""ld.param.u64 %l1, [t]; tex.2d.v4.s32.s32 {%r4,%r5,%r6,%r7}, [%l1, {%r2, %r3}];
    st.global.v4.u32 [%l2], {%r4,%r5,%r6,%r7};""")
  found = run(client, text, texture(client, of_array(at), sampled(flags=WHOLE)))
  assert found.view(np.int32)[:, 0].tolist() == data.reshape(-1).tolist()


def test_linear_memory_has_zeros_around(client: Client) -> None:
  data = np.arange(1, 33, dtype=np.float32)
  resource = cuda.CUDA_RESOURCE_DESC_v1(resType=cuda.CU_RESOURCE_TYPE_LINEAR)
  line = resource.res.linear
  line.devPtr, line.format, line.numChannels, line.sizeInBytes = client.alloc(128), code_of("f4"), 1, 128
  client.put(line.devPtr, data)
  text = kernel("""ld.param.u64 %l1, [t]; sub.s32 %r4, %r1, 8; tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%l1, {%r4}];
    st.global.v4.f32 [%l2], {%f1,%f2,%f3,%f4};""")
  found = run(client, text, texture(client, resource, sampled(filter="linear")))
  assert found[:, 0].tolist() == [*[0] * 8, *data, *[0] * 24]
  for changes in ({"devPtr": line.devPtr + 4}, {"sizeInBytes": 129}, {"sizeInBytes": 0}, {"numChannels": 3}):
    wrong = cuda.CUDA_RESOURCE_DESC_v1.from_buffer_copy(resource)
    for name, value in changes.items(): setattr(wrong.res.linear, name, value)
    assert client.code("cuTexObjectCreate", ctypes.byref(u64(0)), ctypes.byref(wrong), ctypes.byref(sampled()),
                       None) == cuda.CUDA_ERROR_INVALID_VALUE


def test_four_neighbours_are_gathered(client: Client) -> None:
  data = np.arange(64, dtype=np.float32).reshape(1, 8, 8, 1)
  at = filled(client, data, (8, 8, 0), GATHER)
  text = kernel("""ld.param.u64 %l1, [t]; mov.f32 %f5, 0f40400000; mov.f32 %f6, 0f40000000;
    tld4.r.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%l1, {%f5, %f6}]; st.global.v4.f32 [%l2], {%f1,%f2,%f3,%f4};""")
  assert run(client, text, texture(client, of_array(at), sampled()))[0].tolist() == [18, 19, 11, 10]


LAYERS = {"3d": ((4, 3, 2), 0, "{%r4, %r5, %r6, %r6}"), "a2d": ((4, 3, 2), LAYERED, "{%r6, %r4, %r5, %r5}"),
          "a1d": ((4, 0, 6), LAYERED, "{%r5, %r4}")}


@pytest.mark.parametrize("geometry", [*LAYERS])
def test_slices_and_layers(client: Client, geometry: str) -> None:
  size, flags, coordinates = LAYERS[geometry]
  data = np.arange(24, dtype=np.float32)
  at = filled(client, data.reshape(size[2], max(size[1], 1), 4, 1), size, flags)
  lines = size[1] or size[2]
  text = kernel(f"""ld.param.u64 %l1, [t]; and.b32 %r4, %r1, 3; shr.u32 %r5, %r1, 2; rem.u32 %r6, %r5, {lines};
    div.u32 %r7, %r5, {lines}; mov.u32 %r5, %r6; mov.u32 %r6, %r7;
    tex.{geometry}.v4.f32.s32 {{%f1,%f2,%f3,%f4}}, [%l1, {coordinates}];
    st.global.v4.f32 [%l2], {{%f1,%f2,%f3,%f4}};""")
  found = run(client, text, texture(client, of_array(at), sampled()), threads=24)
  assert found[:, 0].tolist() == data.tolist()


def test_descriptors_are_told_back(client: Client) -> None:
  resource = of_array(array(client, np.float32, (4, 4, 0), 1, SURFACE))
  sampling = sampled("mirror", "linear", NORMALIZED)
  t = texture(client, resource, sampling)
  one, two = cuda.CUDA_RESOURCE_DESC_v1(), cuda.CUDA_TEXTURE_DESC_v1()
  client.call("cuTexObjectGetResourceDesc", ctypes.byref(one), u64(t))
  client.call("cuTexObjectGetTextureDesc", ctypes.byref(two), u64(t))
  assert bytes(one) == bytes(resource) and bytes(two) == bytes(sampling)
  view = cuda.CUDA_RESOURCE_VIEW_DESC_v1()
  invalid = cuda.CUDA_ERROR_INVALID_VALUE
  assert client.code("cuTexObjectGetResourceViewDesc", ctypes.byref(view), u64(t)) == invalid
  s = client.handle("cuSurfObjectCreate", ctypes.byref(resource))
  one = cuda.CUDA_RESOURCE_DESC_v1()
  client.call("cuSurfObjectGetResourceDesc", ctypes.byref(one), u64(s))
  assert bytes(one) == bytes(resource)
  assert client.code("cuTexObjectGetResourceDesc", ctypes.byref(one), u64(s)) == invalid
  assert client.code("cuSurfObjectDestroy", u64(t)) == invalid
  client.call("cuSurfObjectDestroy", u64(s))
  client.call("cuTexObjectDestroy", u64(t))
  assert client.code("cuTexObjectDestroy", u64(t)) == invalid


@pytest.mark.parametrize(("changes", "code"), [
  ({"flags": 0x80}, "INVALID_VALUE"), ({"filterMode": 2}, "INVALID_VALUE"), ({"mipmapFilterMode": 2}, "INVALID_VALUE"),
  ({"addressMode": (4, 0, 0)}, "INVALID_VALUE"), ({"flags": cuda.CU_TRSF_SEAMLESS_CUBEMAP}, "INVALID_VALUE"),
  ({"filterMode": 1, "maxAnisotropy": 4}, "NOT_SUPPORTED")], ids=str)
def test_textures_that_the_driver_refuses(client: Client, changes: dict[str, Any], code: str) -> None:
  resource, out = of_array(array(client, np.float32, (4, 4, 0))), ctypes.c_uint64()

  def made(resource: Any, sampling: Any) -> int:
    return client.code("cuTexObjectCreate", ctypes.byref(out), ctypes.byref(resource), ctypes.byref(sampling), None)
  sampling = sampled()
  assert made(resource, sampling) == 0
  for name, value in changes.items():
    if name == "addressMode": sampling.addressMode[:] = value
    else: setattr(sampling, name, value)
  assert made(resource, sampling) == getattr(cuda, f"CUDA_ERROR_{code}")
  for wrong in (of_array(5), cuda.CUDA_RESOURCE_DESC_v1(resType=4)):
    assert made(wrong, sampled()) == cuda.CUDA_ERROR_INVALID_VALUE
  resource.flags = 1
  assert made(resource, sampled()) == cuda.CUDA_ERROR_INVALID_VALUE


def test_a_texture_that_is_gone_costs_the_context(client: Client) -> None:
  t = texture(client, of_array(array(client, np.float32, (4, 4, 0))), sampled())
  out, function = client.alloc(1024), client.function(FETCH.replace("TYPE", "f32"), "k")
  client.call("cuTexObjectDestroy", u64(t))
  assert client.launch(function, 1, 64, [u64(t), u64(out)]) == 0
  assert client.code("cuCtxSynchronize") == cuda.CUDA_ERROR_ILLEGAL_ADDRESS


# ---- surfaces

SURFACES = kernel("""ld.param.u64 %l1, [t]; ld.param.u64 %l3, [u]; shl.b32 %r4, %r2, 2;
  suld.b.2d.b32.trap %r5, [%l1, {%r4, %r3}]; add.u32 %r5, %r5, %r1; sust.b.2d.b32.trap [%l3, {%r4, %r3}], %r5;
  suld.b.2d.b32.zero %r6, [%l3, {%r4, 9}]; st.global.u32 [%l2], %r6;""", params=".param .u64 t, .param .u64 u")


def test_a_kernel_writes_a_surface(client: Client) -> None:
  data = np.arange(64, dtype=np.int32).reshape(1, 8, 8, 1)
  one, two = filled(client, data, (8, 8, 0), SURFACE), array(client, np.int32, (8, 8, 0), 1, SURFACE)
  handles = [client.handle("cuSurfObjectCreate", ctypes.byref(of_array(a))) for a in (one, two)]
  assert not run(client, SURFACES, *handles).view(np.uint32).any()
  back = np.zeros_like(data)
  client.call("cuMemcpy3D_v2", ctypes.byref(box(two, back, True)))
  assert (back == 2 * data).all()
  text = kernel("""ld.param.u64 %l1, [t]; tex.2d.v4.s32.s32 {%r4,%r5,%r6,%r7}, [%l1, {%r2, %r3}];
    st.global.v4.u32 [%l2], {%r4,%r5,%r6,%r7};""")  # a texture sees what the surface got
  found = run(client, text, texture(client, of_array(two), sampled())).view(np.int32)
  assert (found[:, 0] == 2 * data.reshape(-1)).all()


def test_surfaces_that_the_driver_refuses(client: Client) -> None:
  out = ctypes.c_uint64()
  plain = of_array(array(client, np.int32, (8, 8, 0)))
  line = cuda.CUDA_RESOURCE_DESC_v1(resType=cuda.CU_RESOURCE_TYPE_LINEAR)
  for resource in (plain, line, of_array(7)):
    assert client.code("cuSurfObjectCreate", ctypes.byref(out), ctypes.byref(resource)) == cuda.CUDA_ERROR_INVALID_VALUE


def test_an_access_outside_of_a_surface_costs_the_context(client: Client) -> None:
  small = array(client, np.int32, (8, 4, 0), 1, SURFACE)
  s = client.handle("cuSurfObjectCreate", ctypes.byref(of_array(small)))
  out, function = client.alloc(1024), client.function(SURFACES, "k")
  assert client.launch(function, 1, 64, [u64(s), u64(s), u64(out)]) == 0
  assert client.code("cuCtxSynchronize") != 0
  assert "outside of a surface" in client.machine.logs[-1]


def test_layers_slices_and_faces_are_written(client: Client) -> None:
  """To a surface the faces of a cube are layers; an access wider than an element stays in its row."""
  for geometry, size, flags in (("3d", (6, 2, 4), SURFACE), ("a2d", (6, 2, 4), LAYERED | SURFACE),
                                ("a2d", (2, 2, 6), CUBE | SURFACE)):
    at = array(client, np.uint8, size, 4, flags)
    s = client.handle("cuSurfObjectCreate", ctypes.byref(of_array(at)))
    last = "{%r5, %r2, 1, 0}" if geometry == "a2d" else "{%r5, 1, %r2, 0}"
    at_last = last.replace("%r5, %r2, 1", "%r2, %r5, 1")
    text = kernel(f"""ld.param.u64 %l1, [t]; mov.u32 %r5, 0; mov.u32 %r6, 0x04030201; add.u32 %r6, %r6, %r2;
      mov.u32 %r7, %r6; sust.b.{geometry}.v2.b32.zero [%l1, {at_last}], {{%r6, %r7}};""")
    run(client, text, s, threads=8)
    w, h, d = size
    back = np.zeros((d, h, w, 4), np.uint8)
    client.call("cuMemcpy3D_v2", ctypes.byref(box(at, back, True)))
    wanted = np.zeros_like(back)
    wanted[:, 1, :2] = np.array([1, 2, 3, 4]) + np.arange(d)[:, None, None] * [1, 0, 0, 0]
    assert (back == wanted).all(), geometry


# ---- cubes, levels, views

@pytest.mark.parametrize("filter", ["nearest", "linear"])
def test_a_cube_is_looked_at_by_direction(client: Client, filter: str) -> None:
  data = np.random.default_rng(3).random((6, 4, 4, 1)).astype(np.float32)
  text = kernel("""ld.param.u64 %l1, [t]; cvt.rn.f32.u32 %f5, %r2; cvt.rn.f32.u32 %f6, %r3;
    sub.f32 %f5, %f5, 0f40600000; sub.f32 %f6, %f6, 0f40200000; mov.f32 %f7, 0fBFC00000;
    tex.cube.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%l1, {%f5, %f6, %f7, %f7}]; st.global.v4.f32 [%l2], {%f1,%f2,%f3,%f4};""")
  at = filled(client, data, (4, 4, 6), CUBE)
  found = run(client, text, texture(client, of_array(at), sampled("wrap", filter, NORMALIZED)))
  wanted, = tinyhw.launch(text, "k", 1, 64, [tinyhw.Texture(data[..., 0], "cube", filter=filter, normalized=True),
                                             np.zeros((64, 4), np.float32)], "EMU")
  np.testing.assert_array_equal(found, wanted)
  seamless = sampled("wrap", filter, cuda.CU_TRSF_SEAMLESS_CUBEMAP)
  code = client.code("cuTexObjectCreate", ctypes.byref(u64(0)), ctypes.byref(of_array(at)), ctypes.byref(seamless),
                     None)
  assert code == (cuda.CUDA_ERROR_NOT_SUPPORTED if filter == "linear" else 0)


LEVELS = kernel("""ld.param.u64 %l1, [t]; cvt.rn.f32.u32 %f5, %r2; cvt.rn.f32.u32 %f6, %r3;
  mul.f32 %f7, %f6, 0f3F000000; fma.rn.f32 %f5, %f5, 0f3E000000, 0f3D800000; mov.f32 %f6, 0f3E800000;
  tex.level.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%l1, {%f5, %f6}], %f7; st.global.v4.f32 [%l2], {%f1,%f2,%f3,%f4};""")


def pyramid(client: Client, flags: int = 0) -> tuple[int, list[np.ndarray]]:
  """A mipmapped array of 10 x 6 elements, and its levels."""
  rng = np.random.default_rng(1)
  made = client.handle("cuMipmappedArrayCreate", ctypes.byref(described(np.float32, (10, 6, 0), 1, flags)), 9)
  levels = [rng.random((1, max(6 >> k, 1), max(10 >> k, 1), 1)).astype(np.float32) for k in range(4)]
  for k, data in enumerate(levels):
    level = client.handle("cuMipmappedArrayGetLevel", u64(made), k)
    client.call("cuMemcpy3D_v2", ctypes.byref(box(level, data)))
  return made, levels


def of_levels(at: int) -> Any:
  resource = cuda.CUDA_RESOURCE_DESC_v1(resType=cuda.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
  resource.res.mipmap.hMipmappedArray = at
  return resource


@pytest.mark.parametrize("between", ["nearest", "linear"])
def test_levels_of_detail(client: Client, between: str) -> None:
  made, levels = pyramid(client)
  sampling = sampled("wrap", "linear", NORMALIZED, mipmapFilterMode=int(between == "linear"), maxMipmapLevelClamp=99)
  found = run(client, LEVELS, texture(client, of_levels(made), sampling))
  flat = [x[0, :, :, 0] for x in levels]
  wanted, = tinyhw.launch(LEVELS, "k", 1, 64, [tinyhw.Texture(
    flat[0], levels=tuple(flat[1:]), filter="linear", mip_filter=between, address="wrap", normalized=True),
    np.zeros((64, 4), np.float32)], "EMU")
  np.testing.assert_array_equal(found, wanted)
  clamped = sampled("wrap", "linear", NORMALIZED, minMipmapLevelClamp=1, maxMipmapLevelClamp=1)
  view = cuda.CUDA_RESOURCE_VIEW_DESC_v1(width=10, height=6, firstMipmapLevel=1, lastMipmapLevel=3)
  only = cuda.CUDA_RESOURCE_VIEW_DESC_v1(width=10, height=6, firstMipmapLevel=2, lastMipmapLevel=2)
  free = sampled("wrap", "linear", NORMALIZED, maxMipmapLevelClamp=99)
  shifted = sampled("wrap", "linear", NORMALIZED, minMipmapLevelClamp=1, maxMipmapLevelClamp=1)
  second = run(client, LEVELS, texture(client, of_levels(made), shifted, view))
  np.testing.assert_array_equal(second, run(client, LEVELS, texture(client, of_levels(made), free, only)))
  first = run(client, LEVELS, texture(client, of_levels(made), clamped))
  level = client.handle("cuMipmappedArrayGetLevel", u64(made), 1)
  np.testing.assert_array_equal(first, run(client, LEVELS, texture(client, of_array(level), free)))


def test_a_mipmapped_array_and_its_levels(client: Client) -> None:
  made, levels = pyramid(client, SURFACE)
  told = cuda.CUDA_ARRAY3D_DESCRIPTOR_v2()
  for k, data in enumerate(levels):
    level = client.handle("cuMipmappedArrayGetLevel", u64(made), k)
    assert level == client.handle("cuMipmappedArrayGetLevel", u64(made), k)
    client.call("cuArray3DGetDescriptor_v2", ctypes.byref(told), u64(level))
    assert (told.Width, told.Height, told.Depth) == (*data.shape[2:0:-1], 0)
    back = np.zeros_like(data)
    client.call("cuMemcpy3D_v2", ctypes.byref(box(level, back, True)))
    assert (back == data).all()
    client.handle("cuSurfObjectCreate", ctypes.byref(of_array(level)))
    assert client.code("cuArrayDestroy", u64(level)) == cuda.CUDA_ERROR_INVALID_HANDLE
  assert client.code("cuMipmappedArrayGetLevel", ctypes.byref(u64(0)), u64(made), 4) == cuda.CUDA_ERROR_INVALID_VALUE
  assert client.code("cuTexObjectCreate", ctypes.byref(u64(0)), ctypes.byref(of_levels(made)),
                     ctypes.byref(sampled()), None) == cuda.CUDA_ERROR_INVALID_VALUE  # not normalized
  client.call("cuMipmappedArrayDestroy", u64(made))
  for handle in (level, made):
    assert client.code("cuArray3DGetDescriptor_v2", ctypes.byref(told), u64(handle)) == cuda.CUDA_ERROR_INVALID_HANDLE
  assert client.code("cuMipmappedArrayDestroy", u64(made)) == cuda.CUDA_ERROR_INVALID_HANDLE


def test_views_of_other_elements_and_of_layers(client: Client) -> None:
  data = np.random.default_rng(2).integers(0, 256, (4, 8, 8, 4)).astype(np.uint8)
  at = filled(client, data, (8, 8, 4), LAYERED)
  view = cuda.CUDA_RESOURCE_VIEW_DESC_v1(format=cuda.CU_RES_VIEW_FORMAT_UINT_1X32, width=8, height=8, depth=4,
                                         firstLayer=1, lastLayer=2)
  text = kernel("""ld.param.u64 %l1, [t]; tex.a2d.v4.u32.s32 {%r4,%r5,%r6,%r7}, [%l1, {1, %r2, %r3, %r3}];
    st.global.v4.u32 [%l2], {%r4,%r5,%r6,%r7};""")
  t = texture(client, of_array(at), sampled(flags=WHOLE), view)
  assert (run(client, text, t).view(np.uint32)[:, 0] == data[2].reshape(-1).view(np.uint32)).all()
  back = cuda.CUDA_RESOURCE_VIEW_DESC_v1()
  client.call("cuTexObjectGetResourceViewDesc", ctypes.byref(back), u64(t))
  assert bytes(back) == bytes(view)
  whole = {"width": 8, "height": 8, "depth": 4, "lastLayer": 3}
  for changes, code in ((dict(width=4), "INVALID_VALUE"), (dict(depth=2), "INVALID_VALUE"),
                        (dict(lastLayer=4), "INVALID_VALUE"), (dict(firstLayer=3, lastLayer=2), "INVALID_VALUE"),
                        (dict(lastMipmapLevel=1), "INVALID_VALUE"),
                        (dict(format=cuda.CU_RES_VIEW_FORMAT_UINT_1X8), "INVALID_VALUE"),
                        (dict(format=0x60), "INVALID_VALUE"),
                        (dict(format=cuda.CU_RES_VIEW_FORMAT_UNSIGNED_BC1), "NOT_SUPPORTED")):
    asked = cuda.CUDA_RESOURCE_VIEW_DESC_v1(**(whole | changes))
    found = client.code("cuTexObjectCreate", ctypes.byref(u64(0)), ctypes.byref(of_array(at)), ctypes.byref(sampled()),
                        ctypes.byref(asked))
    assert cuda.RESULTS[found] == f"CUDA_ERROR_{code}", changes


def test_every_format_of_a_view_is_of_elements_as_large(client: Client) -> None:
  names = [(n, re.fullmatch(r"CU_RES_VIEW_FORMAT_(UINT|SINT|FLOAT)_([124])X(8|16|32)", n)) for n in vars(cuda)]
  found = [(getattr(cuda, n), int(m[2]), int(m[3])) for n, m in names if m]
  assert len(found) == 24
  arrays = {(n, bits): array(client, f"u{bits // 8}", (8, 8, 0), n) for n in (1, 2, 4) for bits in (8, 16, 32)}
  for format, n, bits in found:
    view = cuda.CUDA_RESOURCE_VIEW_DESC_v1(format=format, width=8, height=8)
    for of, at in arrays.items():
      code = client.code("cuTexObjectCreate", ctypes.byref(u64(0)), ctypes.byref(of_array(at)),
                         ctypes.byref(sampled(flags=WHOLE)), ctypes.byref(view))
      assert (code == 0) is (of[0] * of[1] == n * bits), (format, of)


def test_elements_that_are_fractions(client: Client) -> None:
  """UNORM and SNORM arrays, and sRGB: the curve is IEC 61966-2-1's."""
  out = kernel("""ld.param.u64 %l1, [t]; tex.2d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%l1, {%r2, %r3}];
    st.global.v4.f32 [%l2], {%f1,%f2,%f3,%f4};""")
  data = np.arange(256, dtype=np.uint8).reshape(1, 8, 8, 4)
  for code, flags in ((cuda.CU_AD_FORMAT_UNORM_INT8X4, 0), (cuda.CU_AD_FORMAT_SNORM_INT8X4, 0),
                      (cuda.CU_AD_FORMAT_UNSIGNED_INT8, cuda.CU_TRSF_SRGB)):
    asked = described(np.uint8, (8, 8, 0), 4)
    asked.Format = code
    at = client.handle("cuArray3DCreate_v2", ctypes.byref(asked))
    client.call("cuMemcpy3D_v2", ctypes.byref(box(at, data)))
    found = run(client, out, texture(client, of_array(at), sampled(flags=flags))).reshape(-1)
    x = data.reshape(-1) / 255.0
    if code == cuda.CU_AD_FORMAT_SNORM_INT8X4: x = np.maximum(data.reshape(-1).view(np.int8) / 127.0, -1.0)
    if flags: x = np.where(np.arange(256) % 4 == 3, x, np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4))
    np.testing.assert_array_equal(found, x.astype(np.float32))


def test_a_copy_of_an_array_is_captured(client: Client) -> None:
  """A graph that was captured copies what is there when it runs."""
  stream = client.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING)
  one, two = filled(client, np.zeros((1, 2, 2, 1), np.float32), (2, 2, 0)), array(client, np.float32, (2, 2, 0))
  p = cuda.CUDA_MEMCPY2D_v2(srcMemoryType=3, srcArray=one, dstMemoryType=3, dstArray=two, WidthInBytes=8, Height=2)
  client.call("cuStreamBeginCapture_v2", u64(stream), 1)
  client.call("cuMemcpy2DAsync_v2", ctypes.byref(p), u64(stream))
  graph = ctypes.c_uint64()
  client.call("cuStreamEndCapture", u64(stream), ctypes.byref(graph))
  run_ = client.handle("cuGraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
  data, back = np.ones((1, 2, 2, 1), np.float32), np.zeros((1, 2, 2, 1), np.float32)
  client.call("cuMemcpy3D_v2", ctypes.byref(box(one, data)))
  client.call("cuGraphLaunch", u64(run_), u64(stream))
  client.call("cuStreamSynchronize", u64(stream))
  client.call("cuMemcpy3D_v2", ctypes.byref(box(two, back, True)))
  assert back.all()


def test_what_devicequery_prints_of_arrays(client: Client) -> None:
  """As the CUDA sample does it on cards of these years."""
  def of(*names: str) -> list[int]:
    value, out = ctypes.c_int(), []
    for name in names:
      client.call("cuDeviceGetAttribute", ctypes.byref(value), getattr(cuda, f"CU_DEVICE_ATTRIBUTE_MAXIMUM_{name}"), 0)
      out.append(value.value)
    return out
  assert "1D=({}), 2D=({}, {}), 3D=({}, {}, {})".format(
    *of("TEXTURE1D_WIDTH", "TEXTURE2D_WIDTH", "TEXTURE2D_HEIGHT", "TEXTURE3D_WIDTH", "TEXTURE3D_HEIGHT",
        "TEXTURE3D_DEPTH")) == "1D=(131072), 2D=(131072, 65536), 3D=(16384, 16384, 16384)"
  assert "1D=({}), {} layers".format(*of("TEXTURE1D_LAYERED_WIDTH", "TEXTURE1D_LAYERED_LAYERS")) == \
    "1D=(32768), 2048 layers"
  assert "2D=({}, {}), {} layers".format(
    *of("TEXTURE2D_LAYERED_WIDTH", "TEXTURE2D_LAYERED_HEIGHT", "TEXTURE2D_LAYERED_LAYERS")) == \
    "2D=(32768, 32768), 2048 layers"


def test_limits_of_arrays_are_attributes(client: Client) -> None:
  value = ctypes.c_int()
  for name, wanted in (("MAXIMUM_TEXTURE2D_HEIGHT", 65536), ("MAXIMUM_TEXTURE2D_LAYERED_LAYERS", 2048),
                       ("MAXIMUM_SURFACE1D_WIDTH", 32768), ("MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS", 2046),
                       ("MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE", 32768), ("MAXIMUM_TEXTURE1D_LINEAR_WIDTH", 1 << 28)):
    client.call("cuDeviceGetAttribute", ctypes.byref(value), getattr(cuda, f"CU_DEVICE_ATTRIBUTE_{name}"), 0)
    assert value.value == wanted
  assert client.handle("cuDeviceGetTexture1DLinearMaxWidth", code_of("f4"), 4, 0) == 1 << 28


@pytest.mark.parametrize(("size", "right"), [(2 * 64 + 28, True), (2 * 64 + 27, False), (64, False), (512, True)])
def test_rows_end_with_their_last_element(size: int, right: bool) -> None:
  """Of three rows of seven floats, 64 bytes apart, the last one's rest need not be there."""
  client, out = Client("sm_90"), ctypes.c_uint64()
  resource = cuda.CUDA_RESOURCE_DESC_v1(resType=cuda.CU_RESOURCE_TYPE_PITCH2D)
  p = resource.res.pitch2D
  p.devPtr, p.format, p.numChannels = client.alloc(size), cuda.CU_AD_FORMAT_FLOAT, 1
  p.width, p.height, p.pitchInBytes = 7, 3, 64
  told = client.code("cuTexObjectCreate", ctypes.byref(out), ctypes.byref(resource),
                     ctypes.byref(cuda.CUDA_TEXTURE_DESC_v1()), None)
  assert told == (0 if right else cuda.CUDA_ERROR_INVALID_VALUE)
