"""Calls of CUDA one by one: memory of cards and of the host, what pointers are, fills."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import random
from collections.abc import Iterator

import numpy as np
import pytest

from tests.mock.cuda.client import SAXPY, WAIT, Client, u32, u64
from tests.mock.cuda.test_every_call import told, words
from tests.strength import seed
from tinyhw.autogen import cuda

INVALID, NOT_FOUND = cuda.CUDA_ERROR_INVALID_VALUE, cuda.CUDA_ERROR_NOT_FOUND
REGISTERED, NOT_REGISTERED = (
  cuda.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
  cuda.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
)
PAGE = 4096


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client("sm_90,sm_86")
  yield client
  client.machine.close()


def size(value: int) -> ctypes.c_size_t:
  return ctypes.c_size_t(value)


def test_memory_has_a_size(client: Client) -> None:
  c, out = client, ctypes.c_uint64()
  for name, more in (("cuMemAlloc_v2", ()), ("cuMemAllocAsync", (u64(0),)), ("cuMemAllocHost_v2", ())):
    assert c.code(name, ctypes.byref(out), size(0), *more) == INVALID and "an allocation of 0 bytes" in words(c)
    at = c.handle(name, size(1), *more)
    assert told(c, ctypes.c_size_t, "cuPointerGetAttribute", cuda.CU_POINTER_ATTRIBUTE_RANGE_SIZE, u64(at)) == 1
  for name, flags in (("cuMemHostAlloc", 0), ("cuMemAllocManaged", cuda.CU_MEM_ATTACH_GLOBAL)):
    assert c.code(name, ctypes.byref(out), size(0), flags) == INVALID
    assert c.handle(name, size(1), flags)
  for flags, code in ((0, INVALID), (1, 0), (2, 0), (3, INVALID), (4, INVALID)):
    assert c.code("cuMemAllocManaged", ctypes.byref(out), size(8), flags) == code
  assert c.code("cuMemAlloc_v2", ctypes.byref(out), size(1 << 28)) == cuda.CUDA_ERROR_OUT_OF_MEMORY
  total, free = ctypes.c_size_t(), ctypes.c_size_t()
  c.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
  before = free.value
  at = c.alloc(PAGE + 1)
  c.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
  assert (before - free.value, total.value) == (2 * PAGE, 1 << 28)
  c.call("cuMemFree_v2", u64(at))
  c.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
  assert free.value == before


def test_boxes_end_where_memory_does(client: Client) -> None:
  """A box in the last bytes of an allocation may be copied, one byte further it may not; the same for what it is copied
  to."""
  c, rng = client, random.Random(seed(4))
  for _ in range(12):
    width, height, depth = (rng.randint(1, 4) for _ in range(3))
    pitch, rows = width + rng.randint(0, 3), height + rng.randint(0, 2)
    whole = (depth - 1) * pitch * rows + (height - 1) * pitch + width
    room = -(-whole // PAGE) * PAGE
    for side, other in (("src", "dst"), ("dst", "src")):
      end, far = c.alloc(room) + room - whole, c.alloc(PAGE)
      for past in (0, 1):
        box = cuda.CUDA_MEMCPY3D(WidthInBytes=width, Height=height, Depth=depth, **{
          f"{side}MemoryType": cuda.CU_MEMORYTYPE_DEVICE, f"{side}Device": end + past, f"{side}Pitch": pitch,
          f"{side}Height": rows, f"{other}MemoryType": cuda.CU_MEMORYTYPE_DEVICE, f"{other}Device": far,
          f"{other}Pitch": width, f"{other}Height": height})
        assert c.code("cuMemcpy3D_v2", ctypes.byref(box)) == (INVALID if past else 0), (width, height, depth)


def test_rows_of_an_allocation(client: Client) -> None:
  c, pitch = client, ctypes.c_size_t()
  for width, row in ((1, 512), (512, 512), (513, 1024)):
    for element in (4, 8, 16):
      at = c.handle("cuMemAllocPitch_v2", ctypes.byref(pitch), size(width), size(3), element)
      assert pitch.value == row
      assert told(c, ctypes.c_size_t, "cuPointerGetAttribute", cuda.CU_POINTER_ATTRIBUTE_RANGE_SIZE, u64(at)) == 3 * row
  out = ctypes.c_uint64()
  for element in (0, 1, 2, 3, 5, 12, 32):
    assert c.code(
      "cuMemAllocPitch_v2", ctypes.byref(out), ctypes.byref(pitch), size(1), size(1), element
    ) == INVALID and f"elements of {element} bytes" in words(c)


def test_what_is_freed_is_an_allocation(client: Client) -> None:
  c = client
  at, host = c.alloc(64), c.handle("cuMemAllocHost_v2", size(64))
  managed = c.handle("cuMemAllocManaged", size(64), 1)
  c.call("cuMemFree_v2", u64(0))
  for name, address in (
    *(("cuMemFree_v2", a) for a in (at + 8, host, 8)),
    *(("cuMemFreeHost", a) for a in (at, host + 8, managed, 8)),
  ):
    assert c.code(name, u64(address)) == INVALID and f"{address:#x} is" in words(c)
  for address in (at + 8, 8):
    assert c.code("cuMemFreeAsync", u64(address), u64(0)) == INVALID
  for name, address in (("cuMemFree_v2", at), ("cuMemFree_v2", managed), ("cuMemFreeHost", host)):
    c.call(name, u64(address))
    assert c.code(name, u64(address)) == INVALID
    assert c.code("cuMemGetAddressRange_v2", None, None, u64(address)) == NOT_FOUND


def test_memory_goes_when_what_is_queued_has_run(client: Client) -> None:
  """cuMemFree and cuMemFreeHost wait, cuMemFreeAsync comes behind."""
  c = client
  stop = c.alloc(4)
  c.call("cuMemsetD32_v2", u64(stop), 0, size(1))
  stream, wait = c.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING), c.function(WAIT, "wait")
  at = c.handle("cuMemAllocAsync", size(8), u64(stream))
  assert c.launch(wait, 1, 1, [u64(stop), u32(7)], stream) == 0
  c.call("cuMemsetD32Async", u64(at), 3, size(2), u64(stream))
  c.call("cuMemFreeAsync", u64(at), u64(stream))
  c.call("cuMemGetAddressRange_v2", None, None, u64(at))
  c.call("cuMemsetD32Async", u64(stop), 7, size(1), u64(c.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING)))
  c.call("cuStreamSynchronize", u64(stream))
  assert c.code("cuMemGetAddressRange_v2", None, None, u64(at)) == NOT_FOUND
  saxpy = c.function(SAXPY, "saxpy")
  for free, allocate in (("cuMemFree_v2", "cuMemAlloc_v2"), ("cuMemFreeHost", "cuMemAllocHost_v2")):
    x = c.handle(allocate, size(8))
    y = c.alloc(8)
    c.call("cuMemsetD32_v2", u64(x), 0x40000000, size(2))
    c.call("cuMemsetD32_v2", u64(y), 0, size(2))
    c.call("cuCtxSynchronize")
    assert c.launch(saxpy, 1, 2, [u64(x), u64(y), ctypes.c_float(1), u32(2)], stream) == 0
    c.call(free, u64(x))
    assert c.code("cuStreamQuery", u64(stream)) == 0
    assert c.get(y, np.zeros(2, np.float32)).tolist() == [2, 2]


def test_pages_of_the_program(client: Client) -> None:
  """Registered by their address, whole pages; each once."""
  c = client
  kept = mmap.mmap(-1, 8 * PAGE)
  at = ctypes.addressof(ctypes.c_char.from_buffer(kept))
  register, unregister = "cuMemHostRegister_v2", "cuMemHostUnregister"
  c.call(register, u64(at + 2 * PAGE + 100), size(PAGE), 0)  # of the third and the fourth page
  for first, last, code in (
    (0, 2 * PAGE, 0),
    (0, 2 * PAGE + 1, REGISTERED),
    (3 * PAGE, 3 * PAGE + 1, REGISTERED),
    (2 * PAGE, 2 * PAGE + 1, REGISTERED),
    (4 * PAGE, 5 * PAGE, 0),
    (4 * PAGE - 1, 5 * PAGE, REGISTERED),
  ):
    assert c.code(register, u64(at + first), size(last - first), 0) == code
    if not code:
      c.call("cuMemsetD8_v2", u64(at + first), 5, size(last - first))
      c.call("cuCtxSynchronize")
      assert kept[first:last] == b"\5" * (last - first)
      c.call(unregister, u64(at + first))
  here = c.handle("cuMemHostGetDevicePointer_v2", u64(at + 2 * PAGE + 200), 0)
  assert here == at + 2 * PAGE + 200
  device = c.alloc(8)
  for address in (at, device):
    assert c.code("cuMemHostGetDevicePointer_v2", ctypes.byref(u64(0)), u64(address), 0) == INVALID
  for address in (at + 2 * PAGE, device, 8):
    assert c.code(unregister, u64(address)) == NOT_REGISTERED
  c.call(unregister, u64(at + 2 * PAGE + 100))
  assert c.code(unregister, u64(at + 2 * PAGE + 100)) == NOT_REGISTERED
  assert c.code(register, u64(1 << 40), size(8), 0) == INVALID and "is not mapped" in words(c)


def test_what_pointers_are(client: Client) -> None:
  """Each attribute of each kind of memory, by itself and of all at once; of others nothing."""
  c = client
  c.call("cuCtxSetCurrent", u64(c.handle("cuDevicePrimaryCtxRetain", 1)))
  context = told(c, ctypes.c_uint64, "cuCtxGetCurrent")
  kinds = {"CONTEXT": 8, "MEMORY_TYPE": 4, "DEVICE_POINTER": 8, "HOST_POINTER": 8, "IS_MANAGED": 4, "DEVICE_ORDINAL": 4,
           "RANGE_START_ADDR": 8, "RANGE_SIZE": 8, "MAPPED": 4, "BUFFER_ID": 8}  # fmt: skip
  numbers = [getattr(cuda, f"CU_POINTER_ATTRIBUTE_{name}") for name in kinds]

  def all_of(address: int) -> tuple[int, dict[str, int]]:
    room = (ctypes.c_int64 * len(kinds))()
    places = (ctypes.c_void_p * len(kinds))(*(ctypes.addressof(room) + 8 * k for k in range(len(kinds))))
    code = c.code("cuPointerGetAttributes", len(kinds), (ctypes.c_int * len(kinds))(*numbers), places, u64(address))
    return code, dict(zip(kinds, room))

  for at, kind, host, managed in (
    (c.alloc(40), cuda.CU_MEMORYTYPE_DEVICE, False, False),
    (c.handle("cuMemAllocHost_v2", size(40)), cuda.CU_MEMORYTYPE_HOST, True, False),
    (c.handle("cuMemAllocManaged", size(40), 1), None, True, True),
  ):
    for address in (at, at + 39):
      single = {}
      for (name, wide), number in zip(kinds.items(), numbers):
        single[name] = told(c, ctypes.c_uint64 if wide == 8 else ctypes.c_int, "cuPointerGetAttribute", number,
                            u64(address))  # fmt: skip
      assert all_of(address) == (0, single)
      if kind is None:
        kind = single["MEMORY_TYPE"]
      assert single == {
        "CONTEXT": context,
        "MEMORY_TYPE": kind,
        "DEVICE_POINTER": address,
        "HOST_POINTER": address if host else 0,
        "IS_MANAGED": int(managed),
        "DEVICE_ORDINAL": 1,
        "RANGE_START_ADDR": at,
        "RANGE_SIZE": 40,
        "MAPPED": 1,
        "BUFFER_ID": at,
      }
    for address in (at - 1, at + 40):
      code = c.code("cuPointerGetAttribute", ctypes.byref(u64(0)), numbers[0], u64(address))
      assert code == INVALID and f"{address:#x} is in no allocation" in words(c)
      assert all_of(address) == (0, dict.fromkeys(kinds, 0))
    code = c.code("cuPointerGetAttribute", ctypes.byref(u64(0)), 9999, u64(at))
    assert code == cuda.CUDA_ERROR_NOT_SUPPORTED and "pointer attribute 9999" in words(c)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_fills(client: Client, width: int) -> None:
  """Each call against NumPy; what is no multiple, or passes the end, is refused."""
  c = client
  at, value, kind = c.alloc(96), 0x81A2B3C4 & (1 << 8 * width) - 1, np.dtype(f"u{width}")
  given = {1: ctypes.c_ubyte, 2: ctypes.c_ushort, 4: ctypes.c_uint}[width](value)
  name = f"{8 * width}"
  for end, stream in (("_v2", ()), ("Async", (u64(c.handle("cuStreamCreate", 0)),))):
    for first, count in itertools.product((0, 4), (0, 1, 5)):
      c.put(at, np.full(96, 0xEE, np.uint8))
      c.call(f"cuMemsetD{name}{end}", u64(at + first), given, size(count), *stream)
      c.call("cuCtxSynchronize")
      wanted = np.full(96, 0xEE, np.uint8)
      wanted[first : first + count * width].view(kind)[:] = value
      assert (c.get(at, wanted) == wanted).all()
    for pitch, count, rows in itertools.product((20, 32), (0, 1, 5), (0, 1, 3)):
      c.put(at, np.full(96, 0xEE, np.uint8))
      c.call(f"cuMemsetD2D{name}{end}", u64(at), size(pitch), given, size(count), size(rows), *stream)
      c.call("cuCtxSynchronize")
      wanted = np.full(96, 0xEE, np.uint8)
      for y in range(rows):
        wanted[y * pitch : y * pitch + count * width].view(kind)[:] = value
      assert (c.get(at, wanted) == wanted).all()
    line, lines = f"cuMemsetD{name}{end}", f"cuMemsetD2D{name}{end}"
    c.call(line, u64(at), given, size(96 // width), *stream)
    assert c.code(line, u64(at), given, size(96 // width + 1), *stream) == INVALID
    c.call(lines, u64(at), size(44), given, size(8 // width), size(3), *stream)
    assert c.code(lines, u64(at), size(44), given, size(8 // width + 1), size(3), *stream) == INVALID
    for odd in range(1, width):
      assert c.code(line, u64(at + odd), given, size(1), *stream) == INVALID and "no multiple of" in words(c)
      assert c.code(lines, u64(at), size(32 + odd), given, size(1), size(2), *stream) == INVALID
      c.call(lines, u64(at), size(32 + odd), given, size(1), size(1), *stream)


def test_fills_of_host_memory_wait() -> None:
  """"API synchronization behavior": other fills are done when somebody waits."""
  c = Client()
  for at in (c.handle("cuMemAllocHost_v2", ctypes.c_size_t(8)),
             c.handle("cuMemAllocManaged", ctypes.c_size_t(8), cuda.CU_MEM_ATTACH_GLOBAL)):
    c.call("cuMemsetD8_v2", u64(at), 7, ctypes.c_size_t(8))
    assert ctypes.string_at(at, 8) == b"\7" * 8
    c.call("cuMemsetD8Async", u64(at), 9, ctypes.c_size_t(8), u64(0))
    assert ctypes.string_at(at, 8) == b"\7" * 8
    c.call("cuCtxSynchronize")
    assert ctypes.string_at(at, 8) == b"\x09" * 8
