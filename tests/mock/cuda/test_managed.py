"""Managed memory on the mock of CUDA: kernels and the host in turns, prefetches, advice and what is told of it."""
from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from tests.mock.cuda.client import Client, u32, u64
from tinyhw.autogen import cuda

KIB = 1 << 10
ADD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 n) {
  .reg .b32 %r<4>; .reg .b64 %l<3>;
  ld.param.u64 %l1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mul.wide.u32 %l2, %r2, 4; add.u64 %l1, %l1, %l2;
  ld.global.u32 %r3, [%l1]; add.u32 %r3, %r3, %r1; st.global.u32 [%l1], %r3;
  ret;
}
"""


@pytest.fixture
def client() -> Iterator[Client]:
  made = Client("sm_90,sm_90")
  yield made
  made.machine.close()


def managed(client: Client, size: int, flags: int = 1) -> int:
  return client.handle("cuMemAllocManaged", ctypes.c_size_t(size), flags)


def told(client: Client, name: str, at: int, count: int, words: int = 1) -> list[int]:
  out = (ctypes.c_int32 * words)()
  client.call("cuMemRangeGetAttribute", ctypes.byref(out), ctypes.c_size_t(4 * words),
              getattr(cuda, f"CU_MEM_RANGE_ATTRIBUTE_{name}"), u64(at), ctypes.c_size_t(count))
  return list(out)


def size(n: int) -> ctypes.c_size_t: return ctypes.c_size_t(n)


def test_host_and_kernels_in_turns(client: Client) -> None:
  at, add = managed(client, 4 * 32), client.function(ADD, "add")
  mine = np.ctypeslib.as_array((ctypes.c_uint32 * 32).from_address(at))
  mine[:] = np.arange(32)
  for n in range(3):
    client.call("cuMemPrefetchAsync", u64(at), size(128), n % 2, u64(0))
    assert client.launch(add, 1, 32, [u64(at), u32(10)]) == 0
    client.call("cuMemPrefetchAsync", u64(at), size(128), cuda.CU_DEVICE_CPU, u64(0))
    client.call("cuCtxSynchronize")
    assert (mine == np.arange(32) + 10 * (n + 1)).all()
    mine += 0
  assert client.machine.report() == []
  client.call("cuMemFree_v2", u64(at))


def test_what_is_told_of_pages(client: Client) -> None:
  at = managed(client, 64 * KIB)
  all_of, half = (at, 64 * KIB), (at, 32 * KIB)
  for name in ("PREFERRED_LOCATION", "LAST_PREFETCH_LOCATION"):
    assert told(client, name, *all_of) == [cuda.CU_DEVICE_INVALID]
    assert told(client, f"{name}_TYPE", *all_of) == [cuda.CU_MEM_LOCATION_TYPE_INVALID]
  def advise(name: str, place: tuple[int, int], device: int = 0) -> None:
    client.call("cuMemAdvise", u64(place[0]), size(place[1]), getattr(cuda, f"CU_MEM_ADVISE_{name}"), device)
  advise("SET_READ_MOSTLY", half)
  assert told(client, "READ_MOSTLY", *half) == [1] and told(client, "READ_MOSTLY", *all_of) == [0]
  advise("UNSET_READ_MOSTLY", (at, 1))  # whole pages
  assert told(client, "READ_MOSTLY", at, 4096) == [0] and told(client, "READ_MOSTLY", at + 4096, 4096) == [1]
  advise("SET_PREFERRED_LOCATION", half, 1)
  assert told(client, "PREFERRED_LOCATION", *half) == [1]
  assert told(client, "PREFERRED_LOCATION_ID", *half) == [1]
  assert told(client, "PREFERRED_LOCATION_TYPE", *half) == [cuda.CU_MEM_LOCATION_TYPE_DEVICE]
  assert told(client, "PREFERRED_LOCATION", *all_of) == [cuda.CU_DEVICE_INVALID]
  advise("SET_PREFERRED_LOCATION", all_of, cuda.CU_DEVICE_CPU)
  assert told(client, "PREFERRED_LOCATION_TYPE", *all_of) == [cuda.CU_MEM_LOCATION_TYPE_HOST]
  advise("UNSET_PREFERRED_LOCATION", all_of)
  assert told(client, "PREFERRED_LOCATION", *half) == [cuda.CU_DEVICE_INVALID]
  for device in (1, cuda.CU_DEVICE_CPU): advise("SET_ACCESSED_BY", all_of, device)
  advise("SET_ACCESSED_BY", half, 0)
  invalid = cuda.CU_DEVICE_INVALID
  assert told(client, "ACCESSED_BY", *all_of, 4) == [cuda.CU_DEVICE_CPU, 1, invalid, invalid]
  assert told(client, "ACCESSED_BY", *half, 2) == [cuda.CU_DEVICE_CPU, 0]
  few = (ctypes.c_int32 * 4)(*[77] * 4)
  client.call("cuMemRangeGetAttribute", few, size(4), cuda.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, u64(all_of[0]),
              size(all_of[1]))
  assert list(few) == [cuda.CU_DEVICE_CPU, 77, 77, 77]
  advise("UNSET_ACCESSED_BY", all_of, 1)
  assert told(client, "ACCESSED_BY", *all_of, 2) == [cuda.CU_DEVICE_CPU, invalid]


def test_locations_by_value(client: Client) -> None:
  """CUDA 13 names processors by a structure of eight bytes."""
  at = managed(client, 8 * KIB)
  def location(kind: int, number: int) -> ctypes.c_uint64: return u64(kind | (number & 0xFFFFFFFF) << 32)
  gpu, host = location(cuda.CU_MEM_LOCATION_TYPE_DEVICE, 1), location(cuda.CU_MEM_LOCATION_TYPE_HOST, 5)
  for place, device in ((gpu, 1), (host, cuda.CU_DEVICE_CPU)):
    client.call("cuMemPrefetchAsync_v2", u64(at), size(8 * KIB), place, u32(0), u64(0))
    client.call("cuMemAdvise_v2", u64(at), size(8 * KIB), cuda.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, place)
    client.call("cuCtxSynchronize")
    assert told(client, "LAST_PREFETCH_LOCATION", at, 8 * KIB) == [device]
    assert told(client, "LAST_PREFETCH_LOCATION_ID", at, 8 * KIB) == [device]
    assert told(client, "PREFERRED_LOCATION", at, 8 * KIB) == [device]
  code = client.code
  args = u64(at), size(8 * KIB)
  assert code("cuMemPrefetchAsync_v2", *args, gpu, u32(1), u64(0)) == cuda.CUDA_ERROR_INVALID_VALUE
  assert code("cuMemPrefetchAsync_v2", *args, location(cuda.CU_MEM_LOCATION_TYPE_DEVICE, 2), u32(0), u64(0)) \
      == cuda.CUDA_ERROR_INVALID_DEVICE
  assert code("cuMemPrefetchAsync_v2", *args, location(9, 0), u32(0), u64(0)) == cuda.CUDA_ERROR_INVALID_VALUE
  assert code("cuMemPrefetchAsync_v2", *args, location(cuda.CU_MEM_LOCATION_TYPE_HOST_NUMA, 0), u32(0), u64(0)) \
      == cuda.CUDA_ERROR_NOT_SUPPORTED


def test_several_attributes(client: Client) -> None:
  at = managed(client, 8 * KIB)
  client.call("cuMemAdvise", u64(at), size(8 * KIB), cuda.CU_MEM_ADVISE_SET_READ_MOSTLY, 0)
  one, two = ctypes.c_int32(7), (ctypes.c_int32 * 2)(7, 7)
  data = (ctypes.c_void_p * 2)(ctypes.addressof(one), ctypes.addressof(two))
  sizes = (ctypes.c_size_t * 2)(4, 8)
  names = (ctypes.c_int32 * 2)(cuda.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, cuda.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
  client.call("cuMemRangeGetAttributes", data, sizes, names, size(2), u64(at), size(8 * KIB))
  assert one.value == 1 and list(two) == [cuda.CU_DEVICE_INVALID] * 2


def test_what_is_refused(client: Client) -> None:
  bad, missing = cuda.CUDA_ERROR_INVALID_VALUE, cuda.CUDA_ERROR_INVALID_DEVICE
  at, video = managed(client, 8 * KIB), client.alloc(8 * KIB)
  out, code = ctypes.c_int32(), client.code
  for address, count in ((video, 4 * KIB), (at, 9 * KIB), (at + 8 * KIB, 1), (at, 0), (16, 4)):
    assert code("cuMemPrefetchAsync", u64(address), size(count), 0, u64(0)) == bad
    assert code("cuMemAdvise", u64(address), size(count), 1, 0) == bad
    assert code("cuMemRangeGetAttribute", ctypes.byref(out), size(4), 1, u64(address), size(count)) == bad
  assert code("cuMemPrefetchAsync", u64(at), size(4), 2, u64(0)) == missing
  assert code("cuMemPrefetchAsync", u64(at), size(4), 0, u64(99)) == cuda.CUDA_ERROR_INVALID_HANDLE
  assert code("cuMemAdvise", u64(at), size(4), 9, 0) == bad
  assert code("cuMemAdvise", u64(at), size(4), cuda.CU_MEM_ADVISE_SET_ACCESSED_BY, 5) == missing
  for nbytes, attribute in ((8, 1), (3, 3), (0, 3), (4, 99)):
    assert code("cuMemRangeGetAttribute", ctypes.byref(out), size(nbytes), attribute, u64(at), size(4)) == bad
  assert code("cuMemAllocManaged", ctypes.byref(u64(0)), size(4), 3) == bad
  for flags, stream, address, expected in ((cuda.CU_MEM_ATTACH_GLOBAL, 0, at, 0), (cuda.CU_MEM_ATTACH_HOST, 0, at, 0),
                                           (cuda.CU_MEM_ATTACH_SINGLE, 0, at, bad), (9, 0, at, bad),
                                           (cuda.CU_MEM_ATTACH_GLOBAL, 0, at + 4, bad), (1, 0, video, bad)):
    assert code("cuStreamAttachMemAsync", u64(stream), u64(address), size(0), u32(flags)) == expected


@pytest.mark.parametrize("seed", range(3))
def test_a_prefetch_is_done_in_its_stream_s_order(seed: int) -> None:
  client = Client("sm_90", seed=seed)
  at = managed(client, 4 * KIB)
  for device in (0, cuda.CU_DEVICE_CPU, 0): client.call("cuMemPrefetchAsync", u64(at), size(4 * KIB), device, u64(0))
  client.call("cuCtxSynchronize")
  assert told(client, "LAST_PREFETCH_LOCATION", at, 4 * KIB) == [0]
  client.machine.close()
