"""Calls of the driver API that other tests take for granted: each with what it stores, and with what it refuses."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.mock.cuda.client import SAXPY, Client, u64
from tinyhw.autogen import cuda

INVALID, HANDLE, UNSUPPORTED = (
  cuda.CUDA_ERROR_INVALID_VALUE,
  cuda.CUDA_ERROR_INVALID_HANDLE,
  cuda.CUDA_ERROR_NOT_SUPPORTED,
)
CONTEXT, NOT_FOUND, NOT_READY = cuda.CUDA_ERROR_INVALID_CONTEXT, cuda.CUDA_ERROR_NOT_FOUND, cuda.CUDA_ERROR_NOT_READY
NON_BLOCKING = cuda.CU_STREAM_NON_BLOCKING


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client("sm_90,sm_86")
  yield client
  client.machine.close()


def told(c: Client, kind: Any, name: str, *arguments: Any) -> Any:
  """What a function stores through its first argument."""
  out = kind.from_buffer_copy(b"\xee" * ctypes.sizeof(kind))
  c.call(name, ctypes.byref(out), *arguments)
  return out.value


def words(c: Client) -> str:
  return c.machine.logs[-1]


# ---- the driver


def test_versions_and_names_of_errors(client: Client) -> None:
  c = client
  assert told(c, ctypes.c_int, "cuDriverGetVersion") == cuda.CUDA_VERSION
  text = ctypes.c_char_p()
  for code, name, plain in (
    (0, b"CUDA_SUCCESS", b"no error"),
    (NOT_FOUND, b"CUDA_ERROR_NOT_FOUND", b"not found"),
    (cuda.CUDA_ERROR_OUT_OF_MEMORY, b"CUDA_ERROR_OUT_OF_MEMORY", b"out of memory"),
  ):
    for _ in range(2):
      c.call("cuGetErrorName", code, ctypes.byref(text))
      assert text.value == name
      c.call("cuGetErrorString", code, ctypes.byref(text))
      assert text.value == plain
  for function in ("cuGetErrorName", "cuGetErrorString"):
    text.value = b"x"
    assert c.code(function, 12345, ctypes.byref(text)) == INVALID and text.value is None
    assert "no error 12345" in words(c)


def test_the_log_of_the_driver(client: Client) -> None:
  """The end of what was logged, with a zero behind it, in as many bytes as there are."""
  c, size = client, ctypes.c_size_t()
  assert told(c, ctypes.c_uint, "cuLogsCurrent", 0) == 0
  c.code("cuMemFree_v2", u64(5))
  c.code("cuMemFree_v2", u64(6))
  assert told(c, ctypes.c_uint, "cuLogsCurrent", 0) == 2
  whole = "\n".join(c.machine.logs).encode()
  assert whole.startswith(b"[CUDA][E] cuMemFree_v2: CUDA_ERROR_INVALID_VALUE: 0x5 is not the start")
  for room in (1, 2, 20, len(whole), len(whole) + 1, len(whole) + 50):
    buffer = ctypes.create_string_buffer(b"\xee" * (len(whole) + 60), len(whole) + 60)
    size.value = room
    c.call("cuLogsDumpToMemory", None, buffer, ctypes.byref(size), 0)
    part = whole[-(room - 1) :] if room > 1 else b""
    assert buffer.raw[: len(part) + 1] == part + b"\0" and set(buffer.raw[len(part) + 1 :]) == {0xEE}
    assert size.value == len(part) + 1
  size.value = 0
  assert c.code("cuLogsDumpToMemory", None, buffer, ctypes.byref(size), 0) == INVALID


def test_functions_by_their_names(client: Client) -> None:
  c, out, status = client, ctypes.c_void_p(), ctypes.c_int()
  for name, version, code in (
    (b"cuMemAlloc", 3020, cuda.CU_GET_PROC_ADDRESS_SUCCESS),
    (b"cuInit", 2000, cuda.CU_GET_PROC_ADDRESS_SUCCESS),
    (b"cuMemAlloc", 1000, cuda.CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
    (b"cuNothing", 13000, cuda.CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
  ):
    good = code == cuda.CU_GET_PROC_ADDRESS_SUCCESS
    c.call("cuGetProcAddress_v2", name, ctypes.byref(out), version, ctypes.c_uint64(0), ctypes.byref(status))
    assert status.value == code and bool(out.value) == good
    assert c.code("cuGetProcAddress_v2", name, ctypes.byref(out), version, ctypes.c_uint64(0), None) == (
      0 if good else NOT_FOUND
    )
    assert c.code("cuGetProcAddress", name, ctypes.byref(out), version, ctypes.c_uint64(0)) == (
      0 if good else NOT_FOUND
    )
    assert bool(out.value) == good
  flags = ctypes.c_uint64(cuda.CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
  for name, own in ((b"cuInit", "cuInit"), (b"cuLaunchKernel", "cuLaunchKernel_ptsz"),
                    (b"cuMemcpyHtoD", "cuMemcpyHtoD_v2_ptds")):
    c.call("cuGetProcAddress_v2", name, ctypes.byref(out), 13000, flags, None)
    assert out.value == c.machine.address_of(own)


def test_results_and_texts_have_somewhere_to_be(client: Client) -> None:
  """Null pointers are refused by name; what is not mapped too."""
  c = client
  for name, arguments in (
    ("cuDriverGetVersion", (None,)),
    ("cuDeviceGetCount", (None,)),
    ("cuMemAlloc_v2", (None, ctypes.c_size_t(4))),
    ("cuStreamCreate", (None, 0)),
    ("cuCtxGetDevice", (None,)),
    ("cuCtxGetFlags", (None,)),
  ):
    assert c.code(name, *arguments) == INVALID and "a pointer for a result is null" in words(c), name
  out = ctypes.c_uint64()
  assert c.code("cuModuleLoadData", ctypes.byref(out), None) == INVALID
  assert c.code("cuModuleLoad", ctypes.byref(out), None) == INVALID and "a string is null" in words(c)
  assert c.code("cuModuleLoadData", ctypes.byref(out), u64(8)) == INVALID
  assert c.code("cuPointerGetAttributes", 1, None, None, u64(0)) == INVALID and "a pointer is null" in words(c)


def test_nothing_works_before_init() -> None:
  c = Client(context=False)
  out, text = ctypes.c_int(), ctypes.c_char_p()
  assert c.code("cuDeviceGetCount", ctypes.byref(out)) == cuda.CUDA_ERROR_NOT_INITIALIZED
  assert c.code("cuGetErrorName", 0, ctypes.byref(text)) == c.code("cuDriverGetVersion", ctypes.byref(out)) == 0
  assert (
    c.code("cuInit", 1) == INVALID and c.code("cuDeviceGetCount", ctypes.byref(out)) == cuda.CUDA_ERROR_NOT_INITIALIZED
  )
  c.call("cuInit", 0)
  assert told(c, ctypes.c_int, "cuDeviceGetCount") == 1
  assert (
    c.code("cuCtxGetDevice", ctypes.byref(out)) == CONTEXT
    and c.code("cuMemAlloc_v2", ctypes.byref(out), ctypes.c_size_t(4)) == CONTEXT
  )
  c.machine.close()


# ---- devices

# Of an H200 and an RTX 3090: "Technical Specifications per Compute Capability", the cards' data sheets.
SPECIFIED = {
  "MAX_THREADS_PER_BLOCK": (1024, 1024),
  "MAX_BLOCK_DIM_X": (1024, 1024),
  "MAX_BLOCK_DIM_Y": (1024, 1024),
  "MAX_BLOCK_DIM_Z": (64, 64),
  "MAX_GRID_DIM_X": (2147483647, 2147483647),
  "MAX_GRID_DIM_Y": (65535, 65535),
  "MAX_GRID_DIM_Z": (65535, 65535),
  "MAX_SHARED_MEMORY_PER_BLOCK": (49152, 49152),
  "TOTAL_CONSTANT_MEMORY": (65536, 65536),
  "WARP_SIZE": (32, 32),
  "MAX_PITCH": (2147483647, 2147483647),
  "MAX_REGISTERS_PER_BLOCK": (65536, 65536),
  "MULTIPROCESSOR_COUNT": (132, 82),
  "MAX_THREADS_PER_MULTIPROCESSOR": (2048, 1536),
  "COMPUTE_CAPABILITY_MAJOR": (9, 8),
  "COMPUTE_CAPABILITY_MINOR": (0, 6),
  "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": (228 << 10, 100 << 10),
  "MAX_REGISTERS_PER_MULTIPROCESSOR": (65536, 65536),
  "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO": (2, 64),
  "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": (227 << 10, 99 << 10),
  "RESERVED_SHARED_MEMORY_PER_BLOCK": (1024, 1024),
  "MAX_BLOCKS_PER_MULTIPROCESSOR": (32, 16),
  "TEXTURE_ALIGNMENT": (512, 512),
  "SURFACE_ALIGNMENT": (512, 512),
  "TEXTURE_PITCH_ALIGNMENT": (32, 32),
  "ASYNC_ENGINE_COUNT": (3, 3),
  "PCI_BUS_ID": (1, 2),
  "PCI_DEVICE_ID": (0, 0),
  "PCI_DOMAIN_ID": (0, 0),
  "INTEGRATED": (0, 0),
  "UNIFIED_ADDRESSING": (1, 1),
  "MANAGED_MEMORY": (1, 1),
  "CONCURRENT_KERNELS": (1, 1),
  "COOPERATIVE_LAUNCH": (1, 1),
  "CAN_MAP_HOST_MEMORY": (1, 1),
  "GPU_OVERLAP": (1, 1),
  "STREAM_PRIORITIES_SUPPORTED": (1, 1),
  "GLOBAL_L1_CACHE_SUPPORTED": (1, 1),
  "LOCAL_L1_CACHE_SUPPORTED": (1, 1),
  "HOST_REGISTER_SUPPORTED": (1, 1),
  "MEMORY_POOLS_SUPPORTED": (1, 1),
  "COMPUTE_PREEMPTION_SUPPORTED": (1, 1),
  "ECC_ENABLED": (0, 0),
  "HOST_NATIVE_ATOMIC_SUPPORTED": (0, 0),
  "PAGEABLE_MEMORY_ACCESS": (0, 0),
  "COMPUTE_MODE": (0, 0),
  "KERNEL_EXEC_TIMEOUT": (0, 0),
  "CAN_TEX2D_GATHER": (1, 1),
  "CONCURRENT_MANAGED_ACCESS": (1, 1),
  "CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM": (1, 1),
  "TCC_DRIVER": (0, 0),
  "MULTI_GPU_BOARD": (0, 0),
  "MULTI_GPU_BOARD_GROUP_ID": (0, 0),
  "NUMA_ID": (-1, -1),
  "HOST_NUMA_ID": (-1, -1),
  "MAX_PERSISTING_L2_CACHE_SIZE": (0, 0),
  "MAX_ACCESS_POLICY_WINDOW_SIZE": (0, 0),
  "MEM_SYNC_DOMAIN_COUNT": (1, 1),
  "DIRECT_MANAGED_MEM_ACCESS_FROM_HOST": (0, 0),
  "CLUSTER_LAUNCH": (1, 0),
  "MPS_ENABLED": (0, 0),
  "NUMA_CONFIG": (0, 0),
}


def test_what_cards_are(client: Client) -> None:
  c = client
  assert told(c, ctypes.c_int, "cuDeviceGetCount") == 2
  for card, title in enumerate((b"NVIDIA H200", b"NVIDIA GeForce RTX 3090")):
    assert told(c, ctypes.c_int, "cuDeviceGet", card) == card
    for name, values in SPECIFIED.items():
      number = getattr(cuda, f"CU_DEVICE_ATTRIBUTE_{name}")
      out = ctypes.c_int()
      code = c.code("cuDeviceGetAttribute", ctypes.byref(out), number, card)
      assert (code, out.value) == ((UNSUPPORTED, 0) if values[card] is None else (0, values[card])), name
    assert (
      told(c, ctypes.c_int, "cuDeviceGetAttribute", cuda.CU_DEVICE_ATTRIBUTE_CLOCK_RATE, card)
      == c.machine.gpus[card].card.clock_mhz * 1000
      > 10**6
    )
    for size in (64, len(title) + 1, 5, 1):
      buffer = ctypes.create_string_buffer(b"\xee" * 64, 64)
      c.call("cuDeviceGetName", buffer, size, card)
      assert buffer.raw == (title[: size - 1] + b"\0").ljust(64, b"\xee")
    major, minor = ctypes.c_int(), ctypes.c_int()
    c.call("cuDeviceComputeCapability", ctypes.byref(major), ctypes.byref(minor), card)
    assert (major.value, minor.value) == ((9, 0), (8, 6))[card]
    for size in (13, 20):
      buffer = ctypes.create_string_buffer(b"\xee" * 20, 20)
      c.call("cuDeviceGetPCIBusId", buffer, size, card)
      assert buffer.raw == f"0000:0{card + 1}:00.0\0".encode().ljust(20, b"\xee")
    assert c.code("cuDeviceGetPCIBusId", buffer, 12, card) == INVALID
    for version in ("", "_v2"):
      buffer = ctypes.create_string_buffer(16)
      c.call(f"cuDeviceGetUuid{version}", buffer, card)
      assert buffer.raw == b"tinyhw mock" + bytes(((9, 0), (8, 6))[card]) + bytes((0, 0, card))
    assert told(c, ctypes.c_size_t, "cuDeviceTotalMem_v2", card) == 1 << 28
  out = ctypes.c_int()
  assert c.code("cuDeviceGetName", buffer, 0, 0) == INVALID
  for card in (-1, 2):
    assert c.code("cuDeviceGet", ctypes.byref(out), card) == cuda.CUDA_ERROR_INVALID_DEVICE
  for number in (0, -1, cuda.CU_DEVICE_ATTRIBUTE_MAX):
    assert c.code("cuDeviceGetAttribute", ctypes.byref(out), number, 0) == INVALID


def test_peers(client: Client) -> None:
  c, out = client, ctypes.c_int()
  for a in (0, 1):
    for b in (0, 1):
      assert told(c, ctypes.c_int, "cuDeviceCanAccessPeer", a, b) == int(a != b)
  wanted = {1: 0, 2: 1, 3: 1, 4: 0}  # cuda.h: performance rank, access, native atomics, access to arrays
  assert {a: told(c, ctypes.c_int, "cuDeviceGetP2PAttribute", a, 0, 1) for a in wanted} == wanted
  assert c.code("cuDeviceGetP2PAttribute", ctypes.byref(out), 2, 1, 1) == cuda.CUDA_ERROR_INVALID_DEVICE


# ---- contexts


def current(c: Client) -> int:
  return int(told(c, ctypes.c_uint64, "cuCtxGetCurrent"))


def test_contexts_are_a_stack_of_the_thread(client: Client) -> None:
  c, own = client, client.context
  two = c.handle("cuCtxCreate_v2", 4, 1)
  assert (
    current(c) == two and told(c, ctypes.c_int, "cuCtxGetDevice") == 1 and told(c, ctypes.c_uint, "cuCtxGetFlags") == 4
  )
  three = c.handle("cuCtxCreate_v4", None, 0, 0)
  out = ctypes.c_uint64()
  asked = cuda.CUctxCreateParams(numExecAffinityParams=1)
  assert c.code("cuCtxCreate_v4", ctypes.byref(out), ctypes.byref(asked), 0, 0) == UNSUPPORTED and current(c) == three
  asked.numExecAffinityParams = 0  # asks for nothing
  c.call("cuCtxCreate_v4", ctypes.byref(out), ctypes.byref(asked), 0, 0)
  c.call("cuCtxDestroy_v2", out)
  c.call("cuCtxSetCurrent", u64(three))
  c.call("cuCtxPushCurrent_v2", u64(two))
  assert [c.handle("cuCtxPopCurrent_v2") for _ in range(3)] == [two, three, two] and current(c) == own
  c.call("cuCtxSetCurrent", u64(three))
  assert current(c) == three
  c.call("cuCtxPopCurrent_v2", None)
  assert current(c) == 0 and c.code("cuCtxPopCurrent_v2", ctypes.byref(out)) == CONTEXT
  c.call("cuCtxSetCurrent", u64(two))
  c.call("cuCtxSetCurrent", u64(0))
  assert current(c) == 0
  for name in ("cuCtxSetCurrent", "cuCtxPushCurrent_v2", "cuCtxDestroy_v2"):
    assert c.code(name, u64(5)) == CONTEXT
  c.call("cuCtxSetCurrent", u64(two))
  seen: list[int] = []
  other = threading.Thread(target=lambda: seen.append(current(c)))
  other.start()
  other.join()
  assert seen == [0]
  assert told(c, ctypes.c_uint, "cuCtxGetFlags") == 4 and current(c) == two


def test_what_a_context_says(client: Client) -> None:
  c, out = client, ctypes.c_uint64()
  other = c.handle("cuCtxCreate_v2", 0, 1)
  version = ctypes.c_uint()
  c.call("cuCtxGetApiVersion", u64(other), ctypes.byref(version))
  assert version.value == 3020
  c.call("cuCtxGetId", u64(client.context), ctypes.byref(out))
  first = out.value
  c.call("cuCtxGetId", u64(0), ctypes.byref(out))
  assert out.value != first
  assert c.code("cuCtxGetId", u64(7), ctypes.byref(out)) == HANDLE
  least, greatest = ctypes.c_int(9), ctypes.c_int(9)
  c.call("cuCtxGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
  assert (least.value, greatest.value) == (0, -5)
  c.call("cuCtxGetStreamPriorityRange", None, None)
  limits = {
    cuda.CU_LIMIT_STACK_SIZE: 1024,
    cuda.CU_LIMIT_PRINTF_FIFO_SIZE: 1 << 20,
    cuda.CU_LIMIT_MALLOC_HEAP_SIZE: 8 << 20, cuda.CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT: 2048,
  }
  for limit, value in limits.items():
    assert told(c, ctypes.c_size_t, "cuCtxGetLimit", limit) == value
    c.call("cuCtxSetLimit", limit, ctypes.c_size_t(value + 4096))
    assert told(c, ctypes.c_size_t, "cuCtxGetLimit", limit) == value + 4096
  c.call("cuCtxSetCurrent", u64(client.context))
  assert {k: told(c, ctypes.c_size_t, "cuCtxGetLimit", k) for k in limits} == limits
  assert (
    c.code("cuCtxGetLimit", ctypes.byref(out), 99)
    == c.code("cuCtxSetLimit", 99, ctypes.c_size_t(1))
    == cuda.CUDA_ERROR_UNSUPPORTED_LIMIT
  )
  for name in ("cuCtxGetCacheConfig", "cuCtxGetSharedMemConfig"):
    assert told(c, ctypes.c_int, name) == 0
  for name in ("cuCtxSetCacheConfig", "cuCtxSetSharedMemConfig"):
    c.call(name, 1)
  for _ in range(2):
    c.call("cuCtxPopCurrent_v2", None)
  for name in ("cuCtxSetCacheConfig", "cuCtxSetSharedMemConfig"):
    assert c.code(name, 1) == CONTEXT


def test_primary_contexts_are_counted(client: Client) -> None:
  c, flags, active = client, ctypes.c_uint(), ctypes.c_int()

  def state(card: int) -> tuple[int, int]:
    c.call("cuDevicePrimaryCtxGetState", card, ctypes.byref(flags), ctypes.byref(active))
    return flags.value, active.value

  assert (state(0), state(1)) == ((0, 1), (0, 0))
  c.call("cuDevicePrimaryCtxSetFlags_v2", 1, 2)
  one, again = (c.handle("cuDevicePrimaryCtxRetain", 1) for _ in range(2))
  assert one == again and state(1) == (2, 1)
  assert c.code("cuCtxDestroy_v2", u64(one)) == CONTEXT
  c.call("cuCtxSetCurrent", u64(one))
  assert told(c, ctypes.c_uint, "cuCtxGetFlags") == 2
  at = c.alloc(16)
  c.call("cuDevicePrimaryCtxRelease_v2", 1)
  assert state(1) == (2, 1)
  c.call("cuMemsetD8_v2", u64(at), 1, ctypes.c_size_t(16))
  c.call("cuDevicePrimaryCtxRelease_v2", 1)
  assert (
    state(1) == (2, 0)
    and c.code("cuMemsetD8_v2", u64(at), 1, ctypes.c_size_t(16)) == cuda.CUDA_ERROR_CONTEXT_IS_DESTROYED
  )
  assert c.code("cuDevicePrimaryCtxRelease_v2", 1) == CONTEXT
  new = c.handle("cuDevicePrimaryCtxRetain", 1)
  c.call("cuDevicePrimaryCtxReset_v2", 1)
  assert state(1) == (2, 0) and c.code("cuCtxSetCurrent", u64(new)) == CONTEXT


def test_a_context_takes_all_that_it_has_along(client: Client) -> None:
  c = client
  own, before = c.handle("cuCtxCreate_v2", 0, 0), c.machine.gpus[0].allocator.free_bytes
  at, stream, event = c.alloc(4096), c.handle("cuStreamCreate", 0), c.handle("cuEventCreate", 0)
  module = c.handle("cuModuleLoadData", SAXPY.encode() + b"\0")
  streams = len(c.machine.streams)
  c.call("cuCtxDestroy_v2", u64(own))
  assert current(c) == client.context and c.machine.gpus[0].allocator.free_bytes == before
  assert len(c.machine.streams) == streams - 2
  out = ctypes.c_uint64()
  assert c.code("cuStreamSynchronize", u64(stream)) == c.code("cuEventSynchronize", u64(event)) == HANDLE
  assert c.code("cuModuleGetFunction", ctypes.byref(out), u64(module), b"saxpy") == HANDLE
  assert c.code("cuMemFree_v2", u64(at)) == INVALID
  kept = c.handle("cuCtxCreate_v2", 0, 0)
  c.call("cuCtxSetCurrent", u64(client.context))
  c.call("cuCtxDestroy_v2", u64(kept))
  assert current(c) == client.context
