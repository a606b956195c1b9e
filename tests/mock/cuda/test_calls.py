"""Memory, streams, events, graphs and faults of the driver API, as a program in C would meet them."""

from __future__ import annotations

import ctypes
import random
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mock.cuda.client import HEAD, SAXPY, WAIT, Client, u32, u64
from tests.strength import examples, seeds
from tinyhw.autogen import cuda


def test_who_gives_functions_types_gives_them_to_its_own(client: Client) -> None:
  """The library is everybody's in the process: the driver `CUDA` leaves what others take from it as it is."""
  from tinyhw.drive.cuda import Library
  typed = Library(client.library).function("cuModuleGetFunction")
  assert typed.argtypes is not None and client.library.cuModuleGetFunction.argtypes is None
  assert client.function(SAXPY, "saxpy")


def test_a_launch_between_two_copies(client: Client) -> None:
  x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
  a, b = client.alloc(4000), client.alloc(4000)
  client.put(a, x)
  client.put(b, y)
  function = client.function(SAXPY, "saxpy")
  assert client.launch(function, 4, 256, [u64(a), u64(b), ctypes.c_float(2.0), u32(1000)]) == 0
  np.testing.assert_array_equal(client.get(b, y), 2 * x + 1)
  packed = np.frombuffer(np.array([a, b], np.uint64).tobytes() + np.float32(3).tobytes() + np.uint32(10).tobytes(),
                         np.uint8).copy()
  size = ctypes.c_size_t(packed.nbytes)
  extra = (ctypes.c_void_p * 5)(1, packed.ctypes.data, 2, ctypes.addressof(size), 0)
  client.call("cuLaunchKernel", u64(function), 1, 1, 1, 32, 1, 1, 0, u64(0), None, extra)
  np.testing.assert_array_equal(client.get(b, y)[:11], [*(5 * x[:10] + 1), 21])


@pytest.mark.parametrize("name, arguments, error", [
  ("cuMemAlloc_v2", (ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(0)), "INVALID_VALUE"),
  ("cuMemAlloc_v2", (None, ctypes.c_size_t(8)), "INVALID_VALUE"),
  ("cuMemAlloc_v2", (ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(1 << 40)), "OUT_OF_MEMORY"),
  ("cuMemFree_v2", (u64(0x1234),), "INVALID_VALUE"),
  ("cuDeviceGet", (ctypes.byref(ctypes.c_int()), 2), "INVALID_DEVICE"),
  ("cuCtxSetCurrent", (u64(0x55),), "INVALID_CONTEXT"),
  ("cuStreamSynchronize", (u64(0x55),), "INVALID_HANDLE"),
  ("cuStreamCreate", (ctypes.byref(ctypes.c_uint64()), 0x70), "INVALID_VALUE"),
  ("cuModuleLoadData", (ctypes.byref(ctypes.c_uint64()), b"no PTX\0"), "INVALID_PTX"),
  ("cuModuleLoadData", (ctypes.byref(ctypes.c_uint64()), HEAD.replace("sm_80", "sm_100").encode()),
   "NO_BINARY_FOR_GPU"),
  ("cuModuleLoadData", (ctypes.byref(ctypes.c_uint64()), HEAD.replace("8.0", "10.0").encode()),
   "UNSUPPORTED_PTX_VERSION"),
  ("cuModuleLoadData", (ctypes.byref(ctypes.c_uint64()), HEAD.replace("sm_80", "sm_100a").encode()),
   "NO_BINARY_FOR_GPU"),
  ("cuModuleLoad", (ctypes.byref(ctypes.c_uint64()), b"/no/such/file\0"), "FILE_NOT_FOUND"),
  ("cuInit", (1,), "INVALID_VALUE"),
  ("cuCtxSetLimit", (5, ctypes.c_size_t(1)), "UNSUPPORTED_LIMIT"),
])
def test_bad_calls_are_refused_as_the_driver_does(client: Client, name: str, arguments: tuple[object, ...],
                                                   error: str) -> None:
  assert cuda.RESULTS[client.code(name, *arguments)] == f"CUDA_ERROR_{error}"


def test_before_init_and_without_a_context() -> None:
  client = Client(context=False)
  out = ctypes.c_uint64()
  assert client.code("cuDeviceGetCount", ctypes.byref(out)) == cuda.CUDA_ERROR_NOT_INITIALIZED
  client.call("cuInit", 0)
  assert client.code("cuMemAlloc_v2", ctypes.byref(out), ctypes.c_size_t(4)) == cuda.CUDA_ERROR_INVALID_CONTEXT


def test_contexts_are_a_stack_of_the_thread(client: Client) -> None:
  second = client.handle("cuDevicePrimaryCtxRetain", 1)
  own = client.handle("cuCtxCreate_v2", 0, 1)
  assert client.handle("cuCtxGetCurrent") == own and own != second
  device = ctypes.c_int()
  client.call("cuCtxGetDevice", ctypes.byref(device))
  assert device.value == 1
  seen: list[int] = []
  thread = threading.Thread(target=lambda: seen.append(client.handle("cuCtxGetCurrent")))
  thread.start()
  thread.join()
  assert seen == [0]
  client.call("cuCtxDestroy_v2", u64(own))
  assert client.handle("cuCtxGetCurrent") == client.context
  assert client.handle("cuCtxPopCurrent_v2") == client.context and client.handle("cuCtxGetCurrent") == 0


def test_a_copy_past_an_allocation_is_refused(client: Client) -> None:
  at, data = client.alloc(100), np.zeros(200, np.uint8)
  for offset, size in ((0, 101), (100, 1), (90, 11), (-1, 1)):
    assert client.code("cuMemcpyHtoD_v2", u64(at + offset), ctypes.c_void_p(data.ctypes.data),
                       ctypes.c_size_t(size)) == cuda.CUDA_ERROR_INVALID_VALUE
    assert client.code("cuMemsetD8_v2", u64(at + offset), 1, ctypes.c_size_t(size)) == cuda.CUDA_ERROR_INVALID_VALUE
  assert client.code("cuMemcpyHtoD_v2", u64(at), ctypes.c_void_p(16), ctypes.c_size_t(8)) \
      == cuda.CUDA_ERROR_INVALID_VALUE


@settings(max_examples=examples(30))
@given(st.lists(st.tuples(st.sampled_from(["alloc", "free", "fill", "copy", "read"]), st.integers(0, 7),
                          st.integers(1, 5000), st.integers(0, 255)), max_size=25))
def test_memory_is_what_numpy_says(steps: list[tuple[str, int, int, int]]) -> None:
  client = Client()
  held: list[tuple[int, np.ndarray]] = []
  for what, which, size, value in steps:
    if what == "alloc":
      at = client.alloc(size)
      data = np.random.default_rng(value).integers(0, 256, size).astype(np.uint8)
      client.put(at, data)
      held.append((at, data.copy()))
    elif held:
      at, data = held[which % len(held)]
      if what == "free":
        client.call("cuMemFree_v2", u64(at))
        del held[which % len(held)]
      elif what == "fill":
        n = min(size, len(data))
        client.call("cuMemsetD8_v2", u64(at), value, ctypes.c_size_t(n))
        data[:n] = value
      elif what == "copy":
        to, other = held[value % len(held)]
        n = min(len(data), len(other)) // 2
        if to != at:
          client.call("cuMemcpyDtoD_v2", u64(to), u64(at), ctypes.c_size_t(n))
          other[:n] = data[:n]
      else:
        np.testing.assert_array_equal(client.get(at, data), data)
  for at, data in held: np.testing.assert_array_equal(client.get(at, data), data)
  assert sum(p.size for p in client.machine.pieces.values()) == sum(len(d) for _, d in held)
  client.machine.close()


def test_rows_are_copied_with_their_pitch(client: Client) -> None:
  host = np.arange(6 * 10, dtype=np.uint8).reshape(6, 10)
  pitch = ctypes.c_size_t()
  at = client.handle("cuMemAllocPitch_v2", ctypes.byref(pitch), ctypes.c_size_t(7), ctypes.c_size_t(6), 4)
  p = cuda.CUDA_MEMCPY2D_v2(srcMemoryType=cuda.CU_MEMORYTYPE_HOST, srcHost=host.ctypes.data, srcPitch=10, srcXInBytes=2,
                            srcY=1, dstMemoryType=cuda.CU_MEMORYTYPE_DEVICE, dstDevice=at, dstPitch=pitch.value,
                            WidthInBytes=7, Height=5)
  client.call("cuMemcpy2D_v2", ctypes.byref(p))
  rows = client.get(at, np.zeros((5, pitch.value), np.uint8))
  np.testing.assert_array_equal(rows[:, :7], host[1:6, 2:9])


def test_pinned_and_managed_memory_is_the_hosts_too(client: Client) -> None:
  function = client.function(WAIT, "put")
  for name, more in (("cuMemAllocHost_v2", ()), ("cuMemAllocManaged", (1,)), ("cuMemHostAlloc", (0,))):
    at = client.handle(name, ctypes.c_size_t(64), *more)
    assert client.launch(function, 1, 1, [u64(at + 8), u32(77)]) == 0
    client.call("cuCtxSynchronize")
    assert ctypes.c_uint32.from_address(at + 8).value == 77
    client.call("cuMemFree_v2" if "Managed" in name else "cuMemFreeHost", u64(at))


# ---- order

@pytest.mark.parametrize("seed", seeds(range(8)))
@pytest.mark.parametrize("how", ["event", "legacy"])
def test_streams_are_in_the_order_that_is_asked_for(seed: int, how: str) -> None:
  client = Client(seed=seed)
  at = client.alloc(4)
  add = client.function(WAIT, "add")
  client.call("cuMemsetD32_v2", u64(at), 1, ctypes.c_size_t(1))
  flags = cuda.CU_STREAM_NON_BLOCKING if how == "event" else 0
  first, second = (client.handle("cuStreamCreate", flags) for _ in range(2))
  event = client.handle("cuEventCreate", 0)
  client.call("cuCtxSynchronize")
  for value in (1, 2, 3): assert client.launch(add, 1, 1, [u64(at), u32(value)], first) == 0
  if how == "event":
    client.call("cuEventRecord", u64(event), u64(first))
    client.call("cuStreamWaitEvent", u64(second), u64(event), 0)
  else:
    assert client.launch(add, 1, 1, [u64(at), u32(0)]) == 0  # on the default stream, which waits and is waited for
  for value in (4, 5): assert client.launch(add, 1, 1, [u64(at), u32(value)], second) == 0
  client.call("cuCtxSynchronize")
  expected = 1
  for value in (1, 2, 3, *([0] if how == "legacy" else []), 4, 5): expected = 3 * expected + value
  assert client.get(at, np.zeros(1, np.uint32))[0] == expected


def test_a_wait_that_is_forgotten_is_found_out() -> None:
  """Some order of two streams without an event gives another result."""
  results = set()
  for seed in range(12):
    client = Client(seed=seed)
    at = client.alloc(4)
    add = client.function(WAIT, "add")
    client.put(at, np.array([1], np.uint32))
    streams = [client.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING) for _ in range(2)]
    for value, stream in ((1, streams[0]), (2, streams[1])):
      assert client.launch(add, 1, 1, [u64(at), u32(value)], stream) == 0
    client.call("cuCtxSynchronize")
    results.add(int(client.get(at, np.zeros(1, np.uint32))[0]))
    client.machine.close()
  assert results == {14, 16}


def test_a_kernel_waits_for_another_stream(client: Client) -> None:
  at = client.alloc(4)
  client.put(at, np.zeros(1, np.uint32))
  module = client.handle("cuModuleLoadData", WAIT.encode())
  wait, put = (client.handle("cuModuleGetFunction", u64(module), n) for n in (b"wait", b"put"))
  first, second = (client.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING) for _ in range(2))
  assert client.launch(wait, 1, 32, [u64(at), u32(5)], first) == 0
  assert client.code("cuStreamQuery", u64(first)) == cuda.CUDA_ERROR_NOT_READY
  assert client.launch(put, 1, 1, [u64(at), u32(5)], second) == 0
  client.call("cuStreamSynchronize", u64(first))
  assert client.code("cuStreamQuery", u64(first)) == 0


def test_time_passes_between_events(client: Client) -> None:
  events = [client.handle("cuEventCreate", 0) for _ in range(2)]
  for event in events:
    client.call("cuEventRecord", u64(event), u64(0))
    client.call("cuMemsetD8_v2", u64(client.alloc(8)), 0, ctypes.c_size_t(8))
  client.call("cuEventSynchronize", u64(events[1]))
  elapsed = ctypes.c_float()
  client.call("cuEventElapsedTime", ctypes.byref(elapsed), *(u64(e) for e in events))
  assert 0 < elapsed.value < 1
  silent = client.handle("cuEventCreate", cuda.CU_EVENT_DISABLE_TIMING)
  client.call("cuEventRecord", u64(silent), u64(0))
  assert client.code("cuEventElapsedTime", ctypes.byref(elapsed), u64(silent), u64(events[0])) \
      == cuda.CUDA_ERROR_INVALID_HANDLE


# ---- graphs

@pytest.mark.parametrize("seed", seeds(range(4)))
def test_a_captured_graph_does_it_again(seed: int) -> None:
  client = Client(seed=seed)
  at = client.alloc(4)
  add = client.function(WAIT, "add")
  client.put(at, np.array([1], np.uint32))
  first, second = (client.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING) for _ in range(2))
  event = client.handle("cuEventCreate", cuda.CU_EVENT_DISABLE_TIMING)
  client.call("cuStreamBeginCapture_v2", u64(first), 0)
  assert client.launch(add, 1, 1, [u64(at), u32(1)], first) == 0
  client.call("cuEventRecord", u64(event), u64(first))
  client.call("cuStreamWaitEvent", u64(second), u64(event), 0)
  assert client.launch(add, 1, 1, [u64(at), u32(2)], second) == 0
  graph = ctypes.c_uint64()
  assert client.code("cuStreamEndCapture", u64(second), ctypes.byref(graph)) == cuda.CUDA_ERROR_ILLEGAL_STATE
  client.call("cuEventRecord", u64(event), u64(second))
  client.call("cuStreamWaitEvent", u64(first), u64(event), 0)
  client.call("cuStreamEndCapture", u64(first), ctypes.byref(graph))
  assert client.get(at, np.zeros(1, np.uint32))[0] == 1  # nothing has run
  ready = client.handle("cuGraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
  expected = 1
  for _ in range(3):
    client.call("cuGraphLaunch", u64(ready), u64(first))
    expected = 3 * (3 * expected + 1) + 2
  client.call("cuStreamSynchronize", u64(first))
  assert client.get(at, np.zeros(1, np.uint32))[0] == expected


def test_unjoined_work_of_a_capture_is_refused(client: Client) -> None:
  at = client.alloc(4)
  add = client.function(WAIT, "add")
  first, second = (client.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING) for _ in range(2))
  event = client.handle("cuEventCreate", 0)
  client.call("cuStreamBeginCapture_v2", u64(first), 0)
  client.call("cuEventRecord", u64(event), u64(first))
  client.call("cuStreamWaitEvent", u64(second), u64(event), 0)
  assert client.launch(add, 1, 1, [u64(at), u32(2)], second) == 0
  assert client.code("cuStreamEndCapture", u64(first), ctypes.byref(ctypes.c_uint64())) \
      == cuda.CUDA_ERROR_STREAM_CAPTURE_UNJOINED


# ---- faults

BAD = HEAD + """
.visible .entry bad(.param .u64 at) {
  .reg .u64 %rd; .reg .u32 %r;
  ld.param.u64 %rd, [at]; mov.u32 %r, 1;
  st.global.u32 [%rd], %r;
  ret; }
.visible .entry stop() { trap; }
"""


def test_a_fault_costs_the_context_and_no_other(client: Client) -> None:
  second = client.handle("cuCtxCreate_v2", 0, 1)
  kept = client.alloc(4)
  client.put(kept, np.array([9], np.uint32))
  client.call("cuCtxSetCurrent", u64(client.context))
  at, other = client.alloc(8), client.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING)
  function = client.function(BAD, "bad")
  assert client.launch(function, 1, 1, [u64(at + 4096)]) == 0
  for _ in range(2): assert client.code("cuCtxSynchronize") == cuda.CUDA_ERROR_ILLEGAL_ADDRESS
  assert client.code("cuStreamQuery", u64(other)) == cuda.CUDA_ERROR_ILLEGAL_ADDRESS
  assert client.code("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(4)) \
      == cuda.CUDA_ERROR_ILLEGAL_ADDRESS
  assert "PTX:8: st.global.u32 [%rd], %r;" in client.machine.logs[-1]
  client.call("cuCtxSetCurrent", u64(second))
  assert client.get(kept, np.zeros(1, np.uint32))[0] == 9
  client.call("cuDevicePrimaryCtxReset_v2", 0)
  client.call("cuCtxSetCurrent", u64(client.handle("cuDevicePrimaryCtxRetain", 0)))
  client.call("cuMemsetD32_v2", u64(client.alloc(4)), 3, ctypes.c_size_t(1))


@pytest.mark.parametrize("kernel, block, shared, code", [
  ("bad", 2048, 0, "INVALID_VALUE"), ("bad", 0, 0, "INVALID_VALUE"), ("bad", 32, 100 << 10, "INVALID_VALUE")])
def test_launches_that_the_driver_refuses(client: Client, kernel: str, block: int, shared: int, code: str) -> None:
  function = client.function(BAD, kernel)
  assert cuda.RESULTS[client.launch(function, 1, block, [u64(client.alloc(4))], 0, shared)] == f"CUDA_ERROR_{code}"
  client.call("cuCtxSynchronize")


def test_a_trap_and_a_misaligned_address(client: Client) -> None:
  assert client.launch(client.function(BAD, "stop"), 1, 1, []) == 0
  assert client.code("cuCtxSynchronize") == cuda.CUDA_ERROR_LAUNCH_FAILED
  own = client.handle("cuCtxCreate_v2", 0, 1)
  assert client.launch(client.function(BAD, "bad"), 1, 1, [u64(client.alloc(8) + 2)]) == 0
  assert client.code("cuCtxSynchronize") == cuda.CUDA_ERROR_MISALIGNED_ADDRESS
  client.call("cuCtxDestroy_v2", u64(own))


def test_a_mistake_of_the_mocks_own_drops_what_is_queued_behind(client: Client, monkeypatch: pytest.MonkeyPatch,
                                                                capsys: pytest.CaptureFixture[str]) -> None:
  """A copy to the host that was queued behind it must not be made: its memory may be gone by then."""
  function, at = client.function(BAD, "bad"), client.alloc(8)
  def broken(*_: object) -> None: raise ZeroDivisionError("of the test")
  monkeypatch.setattr("tinyhw.emulator.engines.ptx_repeat.turns", broken)
  assert client.launch(function, 1, 1, [u64(at)]) == 0
  out = np.full(2, 7, np.uint32)
  assert client.code("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(out.ctypes.data), u64(at), ctypes.c_size_t(8),
                     u64(0)) == cuda.CUDA_ERROR_UNKNOWN
  for _ in range(2): assert client.code("cuCtxSynchronize") == cuda.CUDA_ERROR_UNKNOWN
  assert (out == 7).all() and "ZeroDivisionError" in capsys.readouterr().err


def test_a_wait_that_nobody_ends_is_told(client: Client) -> None:
  at = client.alloc(4)
  client.put(at, np.zeros(1, np.uint32))
  assert client.launch(client.function(WAIT, "wait"), 1, 1, [u64(at), u32(1)]) == 0
  assert client.code("cuCtxSynchronize") != 0
  assert "wait" in client.machine.logs[-1]


def test_what_devices_say(client: Client) -> None:
  name = ctypes.create_string_buffer(64)
  client.call("cuDeviceGetName", name, 64, 0)
  assert name.value == b"NVIDIA H200"
  for device, capability in ((0, (9, 0)), (1, (8, 0))):
    for number, value in ((cuda.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, capability[0]),
                          (cuda.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, capability[1]),
                          (cuda.CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32)):
      out = ctypes.c_int()
      client.call("cuDeviceGetAttribute", ctypes.byref(out), number, device)
      assert out.value == value
  text = ctypes.c_char_p()
  client.call("cuGetErrorName", 700, ctypes.byref(text))
  assert text.value == b"CUDA_ERROR_ILLEGAL_ADDRESS"
  total = ctypes.c_size_t()
  client.call("cuDeviceTotalMem_v2", ctypes.byref(total), 0)
  assert total.value == 1 << 28


def test_variables_of_a_module(client: Client) -> None:
  text = HEAD + """
.global .align 8 .u64 table[5] = {1, 2, 3, 4, 5};
.visible .entry k(.param .u64 at) { ret; }
"""
  module = client.handle("cuModuleLoadData", text.encode())
  size = ctypes.c_size_t()
  at = client.handle("cuModuleGetGlobal_v2", ctypes.byref(size), u64(module), b"table")
  assert size.value == 40 and client.get(at, np.zeros(5, np.uint64)).tolist() == [1, 2, 3, 4, 5]
  assert client.code("cuModuleGetGlobal_v2", ctypes.byref(ctypes.c_uint64()), None, u64(module), b"chair") \
      == cuda.CUDA_ERROR_NOT_FOUND
  count = ctypes.c_uint32()
  client.call("cuModuleGetFunctionCount", ctypes.byref(count), u64(module))
  assert count.value == 1
  client.call("cuModuleUnload", u64(module))
  assert client.code("cuMemFree_v2", u64(at)) == cuda.CUDA_ERROR_INVALID_VALUE


@pytest.mark.parametrize("attribute, fields, code", [
  (None, {}, 0), ("PRIORITY", {"priority": 0}, 0), ("CLUSTER_DIMENSION", {"clusterDim": (1, 1, 1)}, 0),
  ("CLUSTER_DIMENSION", {"clusterDim": (2, 1, 1)}, cuda.CUDA_ERROR_INVALID_VALUE),
  ("CLUSTER_DIMENSION", {"clusterDim": (3, 3, 1)}, cuda.CUDA_ERROR_INVALID_CLUSTER_SIZE),
  ("COOPERATIVE", {"cooperative": 0}, 0),
  ("COOPERATIVE", {"cooperative": 1}, 0)])
def test_launches_with_attributes(client: Client, attribute: str | None, fields: dict[str, object],
                                  code: int) -> None:
  at = client.alloc(4)
  client.put(at, np.array([4], np.uint32))
  function = client.function(WAIT, "add")
  row = cuda.CUlaunchAttribute(id=0 if attribute is None else getattr(cuda, f"CU_LAUNCH_ATTRIBUTE_{attribute}"))
  for name, value in fields.items(): setattr(row.value, name, value)
  config = cuda.CUlaunchConfig(gridDimX=1, gridDimY=1, gridDimZ=1, blockDimX=1, blockDimY=1, blockDimZ=1,
                               attrs=ctypes.addressof(row), numAttrs=int(attribute is not None))
  given = [u64(at), u32(7)]
  places = (ctypes.c_void_p * 2)(*(ctypes.addressof(a) for a in given))
  assert client.code("cuLaunchKernelEx", ctypes.byref(config), u64(function), places, None) == code
  client.call("cuCtxSynchronize")
  assert client.get(at, np.zeros(1, np.uint32))[0] == (4 if code else 19)


LIMITS = ("MAX_THREADS_PER_MULTIPROCESSOR", "MAX_BLOCKS_PER_MULTIPROCESSOR", "MAX_REGISTERS_PER_MULTIPROCESSOR",
          "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
          "RESERVED_SHARED_MEMORY_PER_BLOCK")


def test_limits_are_those_of_the_capability() -> None:
  """CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability"."""
  client, rows = Client("sm_80,sm_86,sm_89,sm_90,sm_100,sm_120"), []
  for device in range(6):
    out = [ctypes.c_int() for _ in LIMITS]
    for value, name in zip(out, LIMITS):
      client.call("cuDeviceGetAttribute", ctypes.byref(value), getattr(cuda, f"CU_DEVICE_ATTRIBUTE_{name}"), device)
    rows.append([value.value for value in out])
  client.machine.close()
  kib = 1024
  assert rows == [[2048, 32, 65536, 164 * kib, 163 * kib, kib], [1536, 16, 65536, 100 * kib, 99 * kib, kib],
                  [1536, 24, 65536, 100 * kib, 99 * kib, kib], [2048, 32, 65536, 228 * kib, 227 * kib, kib],
                  [2048, 32, 65536, 228 * kib, 227 * kib, kib], [1536, 24, 65536, 100 * kib, 99 * kib, kib]]


def test_memory_is_found_by_any_of_its_addresses(client: Client) -> None:
  """Among many, also when some are given back and come again."""
  rng, live = random.Random(3), dict[int, int]()
  for _ in range(200):
    if len(live) > 20 and rng.random() < 0.5:
      address = rng.choice([*live])
      client.call("cuMemFree_v2", u64(address))
      del live[address]
      continue
    size = rng.randrange(1, 5000)
    live[client.alloc(size)] = size
  pieces = client.machine.pieces
  for address in (x for a, n in live.items() for x in (a - 1, a, a + n - 1, a + n)):
    wanted = next((p for p in pieces.values() if p.address <= address < p.address + p.size), None)
    assert pieces.at(address) is wanted
