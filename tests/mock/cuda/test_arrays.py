"""What arrays there are: geometries and their limits, levels of mipmapped ones."""
from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import product

import pytest

from tests.mock.cuda.client import Client, u64
from tests.mock.cuda.test_nodes_and_libraries import error
from tinyhw.autogen import cuda
from tinyhw.mock.cuda.memory.arrays import ROW, limits

LAYERED, CUBE, SURFACE = cuda.CUDA_ARRAY3D_LAYERED, cuda.CUDA_ARRAY3D_CUBEMAP, cuda.CUDA_ARRAY3D_SURFACE_LDST


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client()
  yield client
  client.machine.close()


def described(size: tuple[int, int, int], flags: int = 0) -> cuda.CUDA_ARRAY3D_DESCRIPTOR_v2:
  w, h, d = size
  return cuda.CUDA_ARRAY3D_DESCRIPTOR_v2(Width=w, Height=h, Depth=d, Format=cuda.CU_AD_FORMAT_UNSIGNED_INT8,
                                         NumChannels=1, Flags=flags)


def made(c: Client, size: tuple[int, int, int], flags: int = 0) -> str:
  """What comes of a new array, which goes again."""
  out = u64(0)
  said = error(c, "cuArray3DCreate_v2", ctypes.byref(out), ctypes.byref(described(size, flags)))
  if said == "CUDA_SUCCESS": c.call("cuArrayDestroy", out)
  return said


def test_cubes_have_six_faces(client: Client) -> None:
  """As wide as high; several cubes where they are layers."""
  for w, h, d, layered in product((0, 4), (0, 4, 8), (0, 5, 6, 7, 12), (False, True)):
    good = w == h == 4 and d % 6 == 0 and d and (d == 6 or layered)
    found = made(client, (w, h, d), CUBE | LAYERED * layered)
    assert (found == "CUDA_SUCCESS") == bool(good) and (good or found == "INVALID_VALUE"), (w, h, d, layered)


@pytest.mark.parametrize("name, size, flags", [
  ("1D", (1, 0, 0), 0), ("2D", (1, 1, 0), 0), ("3D", (1, 1, 1), 0), ("1D_LAYERED", (1, 0, 1), LAYERED),
  ("2D_LAYERED", (1, 1, 1), LAYERED), ("CUBEMAP_LAYERED", (1, 1, 6), CUBE | LAYERED)])
@pytest.mark.parametrize("surface", [False, True])
def test_limits_are_those_that_are_told(client: Client, name: str, size: tuple[int, int, int], flags: int,
                                        surface: bool) -> None:
  """An array of the greatest size is one, and of one more each way it is none. Limits are powers of two, or cubes."""
  told = limits()
  for axis, side in enumerate(("WIDTH", "HEIGHT", "LAYERS" if flags else "DEPTH")):
    limit = f"MAXIMUM_{'SURFACE' if surface else 'TEXTURE'}{name}_{side}"
    most = max(told.get(limit, 0), told.get(f"{limit}_ALTERNATE", 0))
    if not size[axis] or not most or "CUBE" in name and axis < 2: continue
    assert most & most - 1 == 0 or most % 6 == 0
    for more, wanted in ((0, "CUDA_SUCCESS"), (6 if "CUBE" in name else 1, "INVALID_VALUE")):
      sides = [*size]
      sides[axis] = most + more
      assert made(client, (sides[0], sides[1], sides[2]), flags | SURFACE * surface) == wanted, (side, most)


@pytest.mark.parametrize("size, flags, levels", [
  ((9, 0, 0), 0, 4), ((4, 16, 0), 0, 5), ((4, 4, 16), 0, 5), ((4, 4, 16), LAYERED, 3), ((4, 4, 6), CUBE, 3),
  ((8, 0, 16), LAYERED, 4), ((1, 1, 1), 0, 1)])
def test_levels_halve_until_they_are_one(client: Client, size: tuple[int, int, int], flags: int, levels: int) -> None:
  """Layers stay as many; each level is an array that its mipmapped one has, and goes with it."""
  c, whole = client, client.handle("cuMipmappedArrayCreate", ctypes.byref(described(size, flags)), 99)
  handles = []
  for level in range(levels):
    handles.append(c.handle("cuMipmappedArrayGetLevel", u64(whole), level))
    assert c.handle("cuMipmappedArrayGetLevel", u64(whole), level) == handles[-1]
    told = cuda.CUDA_ARRAY3D_DESCRIPTOR_v2()
    c.call("cuArray3DGetDescriptor_v2", ctypes.byref(told), u64(handles[-1]))
    w, h, d = (n and max(n >> level, 1) for n in size)
    if flags: d = size[2]
    assert (told.Width, told.Height, told.Depth, told.Flags) == (w, h, d, flags)
  assert error(c, "cuMipmappedArrayGetLevel", ctypes.byref(u64(0)), u64(whole), levels) == "INVALID_VALUE"
  for handle in handles: assert error(c, "cuArrayDestroy", u64(handle)) != "CUDA_SUCCESS"
  c.call("cuMipmappedArrayDestroy", u64(whole))
  assert error(c, "cuArray3DGetDescriptor_v2", ctypes.byref(told), u64(handles[0])) == "INVALID_HANDLE"


@pytest.mark.parametrize("size, flags", [((100, 0, 0), 0), ((100, 70, 0), 0), ((33, 40, 9), 0),
                                         ((64, 64, 12), CUBE | LAYERED)])
def test_an_array_takes_its_rows(client: Client, size: tuple[int, int, int], flags: int) -> None:
  """Each a multiple of so many bytes; of whole pages altogether."""
  free = client.machine.gpus[0].allocator.free_bytes
  handle = client.handle("cuArray3DCreate_v2", ctypes.byref(described(size, flags)))
  w, h, d = (max(n, 1) for n in size)
  taken = free - client.machine.gpus[0].allocator.free_bytes
  assert taken == -(-(-(-w // ROW) * ROW * h * d) // 4096) * 4096
  client.call("cuArrayDestroy", u64(handle))
  assert client.machine.gpus[0].allocator.free_bytes == free
