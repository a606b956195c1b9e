"""Calls of the driver API one by one: what they say of memory and peers, when they return, what a launch is given, and
how time passes."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest

from tests.mock.cuda.client import HEAD, SAXPY, WAIT, Client, u32, u64
from tinyhw.autogen import cuda
from tinyhw.mock.cuda.library.shared import library
from tinyhw.mock.nv.card import CARDS

NON_BLOCKING = cuda.CU_STREAM_NON_BLOCKING
SHAPE = HEAD + """
.visible .entry shape(.param .u64 at) {
  .reg .u64 %rd; .reg .u32 %r<7>;
  ld.param.u64 %rd, [at];
  mov.u32 %r1, %nctaid.x; mov.u32 %r2, %nctaid.y; mov.u32 %r3, %nctaid.z;
  mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %ntid.z;
  st.global.u32 [%rd], %r1; st.global.u32 [%rd+4], %r2; st.global.u32 [%rd+8], %r3;
  st.global.u32 [%rd+12], %r4; st.global.u32 [%rd+16], %r5; st.global.u32 [%rd+20], %r6; ret; }
"""


def number(client: Client, name: str, *arguments: Any) -> int:
  """What a function stores as an int through its first argument."""
  out = ctypes.c_int()
  client.call(name, ctypes.byref(out), *arguments)
  return out.value


# ---- peers

def test_peer_access_is_enabled_once_and_disabled_once(client: Client) -> None:
  own, other = client.context, client.handle("cuDevicePrimaryCtxRetain", 1)
  assert client.code("cuCtxEnablePeerAccess", u64(own), 0) == cuda.CUDA_ERROR_INVALID_CONTEXT
  for _ in range(2):
    assert client.code("cuCtxDisablePeerAccess", u64(other)) == cuda.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
    client.call("cuCtxEnablePeerAccess", u64(other), 0)
    assert client.code("cuCtxEnablePeerAccess", u64(other), 0) == cuda.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
    client.call("cuCtxDisablePeerAccess", u64(other))


# ---- memory

def test_an_address_says_which_allocation_it_is_in(client: Client) -> None:
  at = client.alloc(100)
  base, size = ctypes.c_uint64(), ctypes.c_size_t()
  for inside in (at, at + 1, at + 99):
    client.call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), u64(inside))
    assert (base.value, size.value) == (at, 100)
  client.call("cuMemGetAddressRange_v2", None, None, u64(at))
  for outside in (at - 1, at + 100, 16):
    assert client.code("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), u64(outside)) \
        == cuda.CUDA_ERROR_NOT_FOUND


@pytest.mark.parametrize("name, more, host, managed", [
  ("cuMemAlloc_v2", (), False, False), ("cuMemAllocHost_v2", (), True, False), ("cuMemAllocManaged", (1,), True, True)])
def test_which_memory_is_the_hosts(client: Client, name: str, more: tuple[int, ...], host: bool, managed: bool) -> None:
  at = client.handle(name, ctypes.c_size_t(64), *more)
  out, words = ctypes.c_uint64(), {}
  for attribute in ("IS_MANAGED", "HOST_POINTER", "DEVICE_POINTER", "RANGE_START_ADDR"):
    out.value = 0
    client.call("cuPointerGetAttribute", ctypes.byref(out), getattr(cuda, f"CU_POINTER_ATTRIBUTE_{attribute}"),
                u64(at + 8))
    words[attribute] = out.value
  assert words == {"IS_MANAGED": managed, "HOST_POINTER": at + 8 if host else 0, "DEVICE_POINTER": at + 8,
                   "RANGE_START_ADDR": at}
  code = client.code("cuMemHostGetDevicePointer_v2", ctypes.byref(out), u64(at), 0)
  assert code == (0 if host else cuda.CUDA_ERROR_INVALID_VALUE)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_freed_memory_can_be_had_again_with_its_addresses(client: Client, asynchronous: bool) -> None:
  free, total = ctypes.c_size_t(), ctypes.c_size_t()
  addresses, seen = client.machine.addresses.free_bytes, set()
  for _ in range(3):
    held = [client.alloc(size) for size in (1, 4096, 3 << 20)]
    seen.add(tuple(held))
    client.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    assert free.value == total.value - 2 * 4096 - (3 << 20)
    for at in held:
      if asynchronous: client.call("cuMemFreeAsync", u64(at), u64(0))
      else: client.call("cuMemFree_v2", u64(at))
    client.call("cuCtxSynchronize")
    client.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    assert free.value == total.value and client.machine.addresses.free_bytes == addresses
  assert len(seen) == 1


@pytest.mark.parametrize("unified", [False, True])
def test_an_asynchronous_copy_waits_for_pageable_memory_only(client: Client, unified: bool) -> None:
  """To memory that is not pinned a copy has ended when the call returns, and from it the bytes are those of the call.
  Of pinned memory neither holds."""
  at, size = client.alloc(4), ctypes.c_size_t(4)
  stream = client.handle("cuStreamCreate", NON_BLOCKING)
  pinned = client.handle("cuMemAllocHost_v2", size)
  pageable = np.zeros(1, np.uint32)
  to, back = ("cuMemcpyAsync",) * 2 if unified else ("cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2")
  for value, place in ((5, pageable.ctypes.data), (7, pinned)):
    word = ctypes.c_uint32.from_address(place)
    word.value = value
    client.call(to, u64(at), u64(place), size, u64(stream))
    word.value = 9
    client.call(back, u64(place), u64(at), size, u64(stream))
    assert word.value == (5 if place != pinned else 9)
    client.call("cuStreamSynchronize", u64(stream))
    assert word.value == (5 if place != pinned else 9)


def test_a_copy_is_checked_when_it_is_asked_for(client: Client) -> None:
  """What is refused costs no context, and nothing is copied without one, not even nothing."""
  at, size = client.alloc(8), ctypes.c_size_t(4)
  for to, come in ((at + 5, at), (at, at + 5), (16, at)):
    assert client.code("cuMemcpyDtoDAsync_v2", u64(to), u64(come), size, u64(0)) == cuda.CUDA_ERROR_INVALID_VALUE
  client.call("cuCtxSynchronize")
  client.call("cuMemcpyDtoD_v2", u64(16), u64(at), ctypes.c_size_t(0))
  client.handle("cuCtxPopCurrent_v2")
  assert client.code("cuMemcpyDtoD_v2", u64(at), u64(at), ctypes.c_size_t(0)) == cuda.CUDA_ERROR_INVALID_CONTEXT


# ---- streams

def test_functions_of_the_host_are_called_in_the_streams_order(client: Client) -> None:
  at = client.alloc(4)
  stream = client.handle("cuStreamCreate", NON_BLOCKING)
  client.call("cuMemsetD32Async", u64(at), 1, ctypes.c_size_t(1), u64(stream))
  client.call("cuStreamSynchronize", u64(stream))
  word = ctypes.c_uint32.from_address(client.handle("cuMemAllocHost_v2", ctypes.c_size_t(4)))
  add, told = client.function(WAIT, "add"), []
  kind, plain = (ctypes.CFUNCTYPE(None, *given) for given in (
    (ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64), (ctypes.c_uint64,)))
  callback, function = kind(lambda *given: told.append((*given, word.value))), plain(lambda data: told.append(data))

  def step(value: int) -> None:
    assert client.launch(add, 1, 1, [u64(at), u32(value)], stream) == 0
    client.call("cuMemcpyDtoHAsync_v2", u64(ctypes.addressof(word)), u64(at), ctypes.c_size_t(4), u64(stream))
  step(1)
  client.call("cuStreamAddCallback", u64(stream), callback, u64(0x1234_5678_9ABC), 0)
  step(2)
  client.call("cuLaunchHostFunc", u64(stream), function, u64(0x77))
  assert not told  # nobody has waited yet
  client.call("cuStreamSynchronize", u64(stream))
  assert told == [(stream, 0, 0x1234_5678_9ABC, 4), 0x77] and word.value == 14
  client.call("cuStreamBeginCapture_v2", u64(stream), 0)
  assert client.code("cuStreamAddCallback", u64(stream), callback, u64(1), 0) \
      == cuda.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED


def test_every_order_of_two_streams_happens(client: Client) -> None:
  """Also the one where a stream is left between two steps that follow each other."""
  streams = [client.handle("cuStreamCreate", NON_BLOCKING) for _ in range(2)]
  order: list[int] = []
  note = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(order.append)
  seen = set()
  for _ in range(300):
    for which in (0, 0, 1): client.call("cuLaunchHostFunc", u64(streams[which]), note, u64(which))
    client.call("cuCtxSynchronize")
    seen.add(tuple(order))
    order.clear()
  assert seen == {(0, 0, 1), (0, 1, 0), (1, 0, 0)}


# ---- launches

def test_every_launch_has_the_grid_and_the_block_that_it_is_given(client: Client) -> None:
  at, shape = client.alloc(24), (2, 3, 4, 5, 6, 7)
  function, given = client.function(SHAPE, "shape"), u64(at)
  places = (ctypes.c_void_p * 1)(ctypes.addressof(given))
  config = cuda.CUlaunchConfig(gridDimX=2, gridDimY=3, gridDimZ=4, blockDimX=5, blockDimY=6, blockDimZ=7)
  for name, arguments in (("cuLaunchKernel", (u64(function), *shape, 0, u64(0), places, None)),
                          ("cuLaunchCooperativeKernel", (u64(function), *shape, 0, u64(0), places)),
                          ("cuLaunchKernelEx", (ctypes.byref(config), u64(function), places, None))):
    client.call("cuMemsetD32_v2", u64(at), 0, ctypes.c_size_t(6))
    client.call(name, *arguments)
    assert tuple(client.get(at, np.zeros(6, np.uint32))) == shape, name


def test_blocks_of_a_cooperative_launch_are_there_at_once(client: Client) -> None:
  function, given, places = client.function(SHAPE, "shape"), u64(client.alloc(24)), (ctypes.c_void_p * 1)()
  places[0] = ctypes.addressof(given)
  for block, most in ((1024, 2), (256, 8), (33, 32)):
    for grid, code in ((most * 132, 0), (most * 132 + 1, cuda.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)):
      assert client.code("cuLaunchCooperativeKernel", u64(function), grid, 1, 1, block, 1, 1, 0, u64(0), places) == code
    client.machine.context().streams[0].drop()  # what was queued need not run


@pytest.mark.parametrize("block, dynamic, blocks", [
  (1, 0, 32), (32, 0, 32), (64, 0, 32), (65, 0, 21), (256, 0, 8), (1024, 0, 2),  # by the slots, by the threads
  (32, 40 << 10, 5), (32, 227 << 10, 1), (512, 113 << 10, 2), (512, 10 << 10, 4)])  # by 228 KiB, 1 KiB a block kept
def test_how_many_blocks_fit(client: Client, block: int, dynamic: int, blocks: int) -> None:
  function = client.function(SHAPE, "shape")
  for name, flags in (("", ()), ("WithFlags", (0,))):
    assert number(client, f"cuOccupancyMaxActiveBlocksPerMultiprocessor{name}", u64(function), block,
                  ctypes.c_size_t(dynamic), *flags) == blocks


# ---- time

def elapsed(client: Client, *steps: Any) -> float:
  """Nanoseconds of the card between an event before and one behind."""
  first, last = (client.handle("cuEventCreate", 0) for _ in range(2))
  client.call("cuEventRecord", u64(first), u64(0))
  for step in steps: step()
  client.call("cuEventRecord", u64(last), u64(0))
  client.call("cuEventSynchronize", u64(last))
  out = ctypes.c_float()
  client.call("cuEventElapsedTime", ctypes.byref(out), u64(first), u64(last))
  return out.value * 1e6


def test_a_job_takes_a_microsecond(client: Client) -> None:
  at = u64(client.alloc(8))

  def fill() -> None: client.call("cuMemsetD8_v2", at, 0, ctypes.c_size_t(8))
  none, one, many = (elapsed(client, *[fill] * count) for count in (0, 1, 101))
  assert 1000 <= round(one - none) <= 1010 and 100_000 <= round(many - one) <= 101_000  # 10 ns are a look at the clock


def test_a_launch_takes_as_long_as_its_waves_need(client: Client) -> None:
  """Four waves a multiprocessor at once: with one more the launch takes twice as long, and as long as that with twice
  as many. More instructions take longer, which is what a program measures a kernel by."""
  at, at_once = client.alloc(4), 4 * CARDS["sm_90"].sms
  client.put(at, np.zeros(1, np.float32))
  function = client.function(SAXPY, "saxpy")

  def launch(blocks: int, n: int = 0) -> float:
    return elapsed(client, lambda: client.launch(function, blocks, 1, [u64(at), u64(at), ctypes.c_float(1), u32(n)]))
  idle = elapsed(client, lambda: client.call("cuMemsetD8_v2", u64(at), 0, ctypes.c_size_t(1)))
  one, full, more, twice = (launch(blocks) - idle for blocks in (1, at_once, at_once + 1, 2 * at_once))
  assert 0 < one == pytest.approx(full, abs=2) and more == pytest.approx(2 * one, abs=3)
  assert twice == pytest.approx(more, abs=2)
  assert launch(1, 1) - idle > one + 2


# ---- the library

def test_the_dynamic_section_is_whole_and_loaded() -> None:
  data = library("libx.so.1", ["alpha", "beta"])
  start, = struct.unpack_from("<Q", data, 32)
  size, count = struct.unpack_from("<HH", data, 54)
  rows = [struct.unpack_from("<IIQQQQQQ", data, start + size * i) for i in range(count)]
  dynamic, = (row for row in rows if row[0] == 2)
  at, length = dynamic[2], dynamic[5]
  entries = [struct.unpack_from("<QQ", data, at + i) for i in range(0, length, 16)]
  assert length % 16 == 0 and entries[-1] == (0, 0) and all(tag for tag, _ in entries[:-1])
  assert any(kind == 1 and place <= at and at + length <= place + bytes_ for kind, _, place, _, _, bytes_, *_ in rows)
