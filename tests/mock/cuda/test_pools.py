"""Pools of memory: what is counted, and what is refused."""

from __future__ import annotations

import ctypes
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mock.cuda.client import Client, u64
from tests.strength import examples
from tinyhw.autogen import cuda

PAGE = 4096
INVALID, UNSUPPORTED = cuda.CUDA_ERROR_INVALID_VALUE, cuda.CUDA_ERROR_NOT_SUPPORTED
RESERVED, RESERVED_HIGH = cuda.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, cuda.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH
USED, USED_HIGH = cuda.CU_MEMPOOL_ATTR_USED_MEM_CURRENT, cuda.CU_MEMPOOL_ATTR_USED_MEM_HIGH


def properties(device: int = 0, **fields: int) -> cuda.CUmemPoolProps:
  out = cuda.CUmemPoolProps(allocType=cuda.CU_MEM_ALLOCATION_TYPE_PINNED, **fields)
  out.location.type, out.location.id = cuda.CU_MEM_LOCATION_TYPE_DEVICE, device
  return out


def count(c: Client, pool: int, attribute: int) -> int:
  out = ctypes.c_uint64()
  c.call("cuMemPoolGetAttribute", u64(pool), attribute, ctypes.byref(out))
  return int(out.value)


def take(c: Client, size: int, pool: int | None = None) -> int:
  if pool is None: return c.handle("cuMemAllocAsync", ctypes.c_size_t(size), u64(0))
  return c.handle("cuMemAllocFromPoolAsync", ctypes.c_size_t(size), u64(pool), u64(0))


@settings(max_examples=examples(15))
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3 * PAGE)), max_size=12))
def test_what_a_pool_has_is_counted(steps: list[tuple[bool, int]]) -> None:
  c = Client()
  pool = c.handle("cuMemPoolCreate", ctypes.byref(properties()))
  held: list[tuple[int, int]] = []
  most = most_pages = 0
  for gives, size in steps:
    if gives and held:
      address, _ = held.pop(size % len(held))
      c.call("cuMemFreeAsync", u64(address), u64(0))
      c.call("cuStreamSynchronize", u64(0))
    else: held.append((take(c, size, pool), size))
    used, pages = sum(n for _, n in held), sum(-(-n // PAGE) * PAGE for _, n in held)
    most, most_pages = max(most, used), max(most_pages, pages)
    assert [count(c, pool, a) for a in (USED, USED_HIGH, RESERVED, RESERVED_HIGH)] == [used, most, pages, most_pages]
  c.call("cuMemPoolSetAttribute", u64(pool), USED_HIGH, ctypes.byref(ctypes.c_uint64(0)))
  assert count(c, pool, USED_HIGH) == count(c, pool, USED)
  c.call("cuMemPoolDestroy", u64(pool))
  for address, _ in held: c.call("cuMemFreeAsync", u64(address), u64(0))  # outlive their pool
  c.call("cuCtxSynchronize")
  assert c.code("cuMemPoolTrimTo", u64(pool), ctypes.c_size_t(0)) == INVALID


def test_the_pool_of_a_device() -> None:
  c = Client("sm_90,sm_90")
  default = c.handle("cuDeviceGetDefaultMemPool", 0)
  assert c.handle("cuDeviceGetMemPool", 0) == default != c.handle("cuDeviceGetDefaultMemPool", 1)
  own, other = (c.handle("cuMemPoolCreate", ctypes.byref(properties(d))) for d in (0, 1))
  assert c.code("cuDeviceSetMemPool", 0, u64(other)) == INVALID
  c.call("cuDeviceSetMemPool", 0, u64(own))
  take(c, 100)
  assert count(c, own, USED) == 100 and count(c, default, USED) == 0
  location = properties().location
  assert c.handle("cuMemGetMemPool", ctypes.byref(location), cuda.CU_MEM_ALLOCATION_TYPE_PINNED) == own
  c.call("cuMemPoolDestroy", u64(own))
  assert c.handle("cuDeviceGetMemPool", 0) == default  # counts again
  assert c.code("cuMemPoolDestroy", u64(default)) == INVALID


def test_memory_of_another_cards_pool_is_that_cards() -> None:
  c = Client("sm_90,sm_90")
  pool = c.handle("cuMemPoolCreate", ctypes.byref(properties(1)))
  free, total = ctypes.c_uint64(), ctypes.c_uint64()
  c.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
  at, before = take(c, PAGE, pool), free.value
  c.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
  assert free.value == before
  assert c.handle("cuPointerGetAttribute", cuda.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, u64(at)) == pool


def test_a_pool_has_no_more_than_it_was_made_with() -> None:
  c = Client()
  pool = c.handle("cuMemPoolCreate", ctypes.byref(properties(maxSize=2 * PAGE)))
  take(c, PAGE + 1, pool)
  out = ctypes.c_uint64()
  assert c.code("cuMemAllocFromPoolAsync", ctypes.byref(out), ctypes.c_size_t(1), u64(pool),
                u64(0)) == cuda.CUDA_ERROR_OUT_OF_MEMORY


def test_attributes_and_access() -> None:
  c = Client("sm_90,sm_90")
  pool = c.handle("cuMemPoolCreate", ctypes.byref(properties()))
  def put(attribute: int, value: Any) -> int:
    return c.code("cuMemPoolSetAttribute", u64(pool), attribute, ctypes.byref(value))
  choice = cuda.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC
  assert put(choice, ctypes.c_int(0)) == 0 and put(choice, ctypes.c_int(2)) == INVALID
  out = ctypes.c_int(7)
  c.call("cuMemPoolGetAttribute", u64(pool), choice, ctypes.byref(out))
  assert out.value == 0
  assert put(cuda.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, ctypes.c_uint64(1 << 40)) == 0
  assert count(c, pool, cuda.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 1 << 40
  assert put(USED, ctypes.c_uint64(0)) == INVALID and put(USED_HIGH, ctypes.c_uint64(1)) == INVALID
  assert put(99, ctypes.c_uint64(0)) == UNSUPPORTED
  none, both = cuda.CU_MEM_ACCESS_FLAGS_PROT_NONE, cuda.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
  def access(device: int) -> int:
    flags = ctypes.c_uint32()
    c.call("cuMemPoolGetAccess", ctypes.byref(flags), u64(pool), ctypes.byref(properties(device).location))
    return flags.value
  def allow(device: int, flags: int) -> int:
    row = cuda.CUmemAccessDesc(location=properties(device).location, flags=flags)
    return c.code("cuMemPoolSetAccess", u64(pool), ctypes.byref(row), ctypes.c_size_t(1))
  assert (access(0), access(1)) == (both, none)
  assert allow(1, both) == 0 and access(1) == both
  assert allow(0, none) == INVALID and allow(1, 2) == INVALID and access(1) == both


def test_pools_that_are_not_modelled_are_refused() -> None:
  c, out = Client(), ctypes.c_uint64()
  def code(given: cuda.CUmemPoolProps) -> int: return c.code("cuMemPoolCreate", ctypes.byref(out), ctypes.byref(given))
  assert code(properties(handleTypes=cuda.CU_MEM_HANDLE_TYPE_WIN32)) == UNSUPPORTED
  host = properties()
  host.location.type = cuda.CU_MEM_LOCATION_TYPE_HOST
  assert code(host) == UNSUPPORTED
  managed = properties()
  managed.allocType = cuda.CU_MEM_ALLOCATION_TYPE_MANAGED
  assert code(managed) == UNSUPPORTED
  managed.allocType = cuda.CU_MEM_ALLOCATION_TYPE_INVALID
  assert code(managed) == INVALID
  assert code(properties(device=3)) == cuda.CUDA_ERROR_INVALID_DEVICE
