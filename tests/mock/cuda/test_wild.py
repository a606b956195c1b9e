"""Wild sizes, counts, pitches, pointers, handles and texts: an error code, soon, and never an error of Python's."""
from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mock.cuda import wild
from tests.mock.cuda.client import HEAD, SAXPY, Client, u64
from tests.strength import examples, seeds
from tinyhw.autogen import cuda, cudart
from tinyhw.mock.cuda.library.library import runtime

ROOT = Path(__file__).parents[3]
MOST = (1 << 64) - 1


@pytest.mark.parametrize("seed", seeds(range(1)))
def test_every_function_answers_wild_arguments(seed: int, tmp_path: Path) -> None:
  """Each once a round, in a process of its own."""
  with (tmp_path / "last").open("w+") as last:
    done = subprocess.run([sys.executable, "-m", wild.__name__, str(seed), str(examples(2))], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=last)
    last.seek(0)
    assert done.returncode == 0, done.stdout + last.read()


@pytest.mark.parametrize("size", [1 << 40, 1 << 63, MOST])  # what is smaller may be memory of the process
@pytest.mark.parametrize("which", ["WidthInBytes", "Height", "srcPitch", "dstPitch", "srcY", "dstXInBytes"])
@pytest.mark.parametrize("kinds", [(1, 1), (1, 2), (2, 1), (2, 2), (4, 4)])
def test_rows_that_end_behind_all_memory_are_refused(client: Client, kinds: tuple[int, int], which: str,
                                                     size: int) -> None:
  """A height of 2**64 - 1 never came back."""
  room, memory = ctypes.create_string_buffer(4096), client.alloc(4096)
  host = ctypes.addressof(room)
  places = {1: "Host", 2: "Device", 4: "Device"}
  given = cuda.CUDA_MEMCPY2D_v2(WidthInBytes=4, Height=8, srcPitch=8, dstPitch=8)
  for side, kind in zip(("src", "dst"), kinds, strict=True):
    setattr(given, f"{side}MemoryType", kind)
    setattr(given, f"{side}{places[kind]}", host if kind == 1 else memory)
  assert client.code("cuMemcpy2D_v2", ctypes.byref(given)) == 0
  setattr(given, which, size)
  assert client.code("cuMemcpy2D_v2", ctypes.byref(given)) == cuda.CUDA_ERROR_INVALID_VALUE
  given.WidthInBytes = given.Height = 0
  if which not in ("WidthInBytes", "Height"): assert client.code("cuMemcpy2D_v2", ctypes.byref(given)) in (0, 1)


@pytest.mark.parametrize("size", [1 << 40, MOST])
def test_boxes_that_end_behind_all_memory_are_refused(client: Client, size: int) -> None:
  library, memory = runtime().loaded.library, client.alloc(4096)
  for depth in ((1, 1, size), (1, size, 1), (size, 1, 1), (1, size, size)):
    for ysize in (0, 1, 8):
      pitched = cudart.cudaPitchedPtr(ptr=memory, pitch=8, xsize=8, ysize=ysize)
      assert library.cudaMemset3D(pitched, 3, cudart.cudaExtent(*depth)) == cudart.cudaErrorInvalidValue
  for zero in ((0, size, size), (size, 0, size), (size, size, 0)):
    assert not library.cudaMemset3D(cudart.cudaPitchedPtr(ptr=memory, pitch=8, ysize=8), 3, cudart.cudaExtent(*zero))
  assert not library.cudaMemset3D(cudart.cudaPitchedPtr(ptr=memory, pitch=8, xsize=8, ysize=8), 0x55,
                                  cudart.cudaExtent(4, 2, 3))
  out = (ctypes.c_uint8 * 192)()
  client.call("cuMemcpyDtoH_v2", out, u64(memory), ctypes.c_size_t(192))
  assert [k for k, byte in enumerate(out) if byte == 0x55] == [
    z * 64 + y * 8 + x for z in range(3) for y in range(2) for x in range(4)]


@pytest.mark.parametrize("room", [1 << 40, 1 << 61, MOST])  # smaller ones may be there
def test_lists_of_nodes_have_the_room_that_there_is(client: Client, room: int) -> None:
  graph = client.handle("cuGraphCreate", 0)
  nodes = [client.handle("cuGraphAddEmptyNode", u64(graph), None, ctypes.c_size_t(0)) for _ in range(3)]
  ends = (ctypes.c_uint64 * 2)(*nodes[:2]), (ctypes.c_uint64 * 2)(*nodes[1:])
  client.call("cuGraphAddDependencies_v2", u64(graph), *ends, None, ctypes.c_size_t(2))
  come, to = ((ctypes.c_uint64 * 8)() for _ in range(2))
  for name, outs in (("cuGraphGetEdges", (come, to)), ("cuGraphGetNodes", (come,)), ("cuGraphGetRootNodes", (come,))):
    count = ctypes.c_uint64(room)
    assert client.code(name, u64(graph), *outs, ctypes.byref(count)) == cuda.CUDA_ERROR_INVALID_VALUE, name
    count.value = 8
    assert client.code(name, u64(graph), *outs, ctypes.byref(count)) == 0
    assert come[int(count.value):] == [0] * (8 - count.value)


def test_names_and_images_that_are_no_text(client: Client) -> None:
  """A name is not found, a file is not there, an image is no PTX."""
  module, out = client.handle("cuModuleLoadData", SAXPY.encode() + b"\0"), ctypes.c_uint64()
  bad = b"\xff\xfe\x80name"
  for name in ("cuModuleGetFunction", "cuModuleGetGlobal_v2"):
    more = [None] if "Global" in name else []
    code = client.code(name, ctypes.byref(out), *more, u64(module), bad)
    assert code == cuda.CUDA_ERROR_NOT_FOUND, name
  assert client.code("cuModuleLoad", ctypes.byref(out), bad) == cuda.CUDA_ERROR_FILE_NOT_FOUND
  assert client.code("cuLibraryLoadFromFile", ctypes.byref(out), bad, None, None, 0, None, None,
                     0) == cuda.CUDA_ERROR_FILE_NOT_FOUND
  text = HEAD.encode() + b".visible .entry k\xff\xfe() { ret; }\0"
  assert client.code("cuModuleLoadData", ctypes.byref(out), text) == cuda.CUDA_ERROR_INVALID_PTX
  status = ctypes.c_int()
  client.call("cuGetProcAddress_v2", bad, ctypes.byref(out), 13000, u64(0), ctypes.byref(status))
  assert status.value == cuda.CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND and not out.value
