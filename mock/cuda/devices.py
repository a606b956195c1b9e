"""Devices and contexts: what cards are, what is current to which thread."""

from __future__ import annotations

import ctypes
import re
from typing import Final

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import PER_THREAD, Failed, invalid, only, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine, Gpu
from tinyhw.mock.cuda.memory import allocations
from tinyhw.mock.cuda.memory.arrays import limits
from tinyhw.mock.cuda.streams.streams import GREATEST_PRIORITY, Stream, forget
from tinyhw.mock.nv.card import Card

_SUPPORTED: Final = frozenset({"STREAM_PRIORITIES", "GLOBAL_L1_CACHE", "LOCAL_L1_CACHE", "COMPUTE_PREEMPTION",
                               "HOST_REGISTER", "MEMORY_POOLS", "IPC_EVENT", "VIRTUAL_MEMORY_MANAGEMENT",
                               "HANDLE_TYPE_POSIX_FILE_DESCRIPTOR",
                               "VIRTUAL_ADDRESS_MANAGEMENT"})  # the other ..._SUPPORTED are 0
_YES: Final = ("GPU_OVERLAP", "CAN_MAP_HOST_MEMORY", "CONCURRENT_KERNELS", "UNIFIED_ADDRESSING", "MANAGED_MEMORY",
               "CONCURRENT_MANAGED_ACCESS", "CAN_TEX2D_GATHER",
               "COOPERATIVE_LAUNCH", "CAN_USE_64_BIT_STREAM_MEM_OPS", "CAN_USE_STREAM_WAIT_VALUE_NOR",
               "CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM")
_NO: Final = ("ECC_ENABLED", "KERNEL_EXEC_TIMEOUT", "INTEGRATED", "COMPUTE_MODE", "TCC_DRIVER", "MULTI_GPU_BOARD",
              "PAGEABLE_MEMORY_ACCESS", "CAN_USE_STREAM_MEM_OPS_V1",
              "CAN_USE_64_BIT_STREAM_MEM_OPS_V1", "CAN_USE_STREAM_WAIT_VALUE_NOR_V1", "COOPERATIVE_MULTI_DEVICE_LAUNCH",
              "CAN_FLUSH_REMOTE_WRITES", "PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES",
              "DIRECT_MANAGED_MEM_ACCESS_FROM_HOST", "UNIFIED_FUNCTION_POINTERS", "MPS_ENABLED", "NUMA_CONFIG",
              "GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS",
              "GPU_DIRECT_RDMA_WRITES_ORDERING", "PCI_DOMAIN_ID", "PCI_DEVICE_ID")
_PEERS: Final = {cuda.CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: 0, cuda.CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED: 1,
                 cuda.CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: 1,
                 cuda.CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: 0,
                 cuda.CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED: 0}
_PCI: Final = re.compile(r"(?:([0-9A-Fa-f]{1,8}):)?([0-9A-Fa-f]{1,2}):([0-9A-Fa-f]{1,2})(?:\.([0-7]))?")
VERSION: Final = cuda.CUDA_VERSION


def attributes(card: Card) -> dict[str, int]:
  """The device attributes that are known of a card, by their names: limits of its compute capability (CUDA Programming
  Guide, "Technical Specifications per Compute Capability"), and what the mock has. Others are refused by name."""
  (major, minor), arch = card.capability, card.arch
  found = {
    "MAX_THREADS_PER_BLOCK": arch.block_limit, "MAX_BLOCK_DIM_X": 1024, "MAX_BLOCK_DIM_Y": 1024, "MAX_BLOCK_DIM_Z": 64,
    "MAX_GRID_DIM_X": (1 << 31) - 1, "MAX_GRID_DIM_Y": 65535, "MAX_GRID_DIM_Z": 65535,
    "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10, "TOTAL_CONSTANT_MEMORY": 64 << 10, "WARP_SIZE": arch.warp_size,
    "MAX_PITCH": (1 << 31) - 1, "MAX_REGISTERS_PER_BLOCK": arch.registers_per_sm, "CLOCK_RATE": card.clock_mhz * 1000,
    "MEMORY_CLOCK_RATE": card.memory_khz, "GLOBAL_MEMORY_BUS_WIDTH": card.bus_bits, "L2_CACHE_SIZE": card.l2_size,
    "TEXTURE_ALIGNMENT": 512, "SURFACE_ALIGNMENT": 512, "TEXTURE_PITCH_ALIGNMENT": 32,
    "MULTIPROCESSOR_COUNT": card.sms, "ASYNC_ENGINE_COUNT": 3,
    "MAX_THREADS_PER_MULTIPROCESSOR": arch.warps_per_sm * arch.warp_size,
    "COMPUTE_CAPABILITY_MAJOR": major, "COMPUTE_CAPABILITY_MINOR": minor,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": card.shared_limit,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": arch.registers_per_sm,
    "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO": 2 if minor == 0 else 64,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": arch.shared_per_block,
    "RESERVED_SHARED_MEMORY_PER_BLOCK": arch.shared_reserved,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": arch.blocks_per_sm, "MULTI_GPU_BOARD_GROUP_ID": 0, "MEM_SYNC_DOMAIN_COUNT": 1,
    "MAX_PERSISTING_L2_CACHE_SIZE": 0, "MAX_ACCESS_POLICY_WINDOW_SIZE": 0, "NUMA_ID": -1, "HOST_NUMA_ID": -1,
    "MEMPOOL_SUPPORTED_HANDLE_TYPES": cuda.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    "GPU_PCI_DEVICE_ID": card.pci_id,
    "MEM_DECOMPRESS_ALGORITHM_MASK": 0, "MEM_DECOMPRESS_MAXIMUM_LENGTH": 0,
  }
  found["CLUSTER_LAUNCH"] = int(major >= 9)
  found |= limits() | dict.fromkeys(_YES, 1) | dict.fromkeys(_NO, 0)
  for name in vars(cuda):
    if name.startswith("CU_DEVICE_ATTRIBUTE_") and name.endswith("_SUPPORTED"):
      short = name.removeprefix("CU_DEVICE_ATTRIBUTE_")
      found[short] = int(short.removesuffix("_SUPPORTED") in _SUPPORTED)
  return found


# ---- the driver

@serves("cuInit")
def init(m: CudaMachine, flags: int) -> None:
  only(flags, 0, "cuInit")
  m.ready = True


@serves("cuDriverGetVersion")
def driver_get_version(m: CudaMachine, out: int) -> None:
  m.out(out, "i", VERSION)


def constant(m: CudaMachine, text: str) -> int:
  """The address of a string that stays."""
  if text not in m.texts:
    m.texts[text] = ctypes.create_string_buffer(text.encode())
  return ctypes.addressof(m.texts[text])


@serves("cuGetErrorName")
def get_error_name(m: CudaMachine, code: int, out: int) -> None:
  if code not in cuda.RESULTS:
    m.out(out, "Q", 0)
    raise invalid(f"no error {code}")
  m.out(out, "Q", constant(m, cuda.RESULTS[code]))


# As NVIDIA's own tests (cuda-python) have them; of all others the words are those of the name.
_SAID: Final = {cuda.CUDA_SUCCESS: "no error", cuda.CUDA_ERROR_INVALID_DEVICE: "invalid device ordinal"}


@serves("cuGetErrorString")
def get_error_string(m: CudaMachine, code: int, out: int) -> None:
  if code not in cuda.RESULTS:
    m.out(out, "Q", 0)
    raise invalid(f"no error {code}")
  words = cuda.RESULTS[code].removeprefix("CUDA_").removeprefix("ERROR_").replace("_", " ").lower()
  m.out(out, "Q", constant(m, _SAID.get(code, words)))


@serves("cuLogsCurrent")
def logs_current(m: CudaMachine, out: int, flags: int) -> None:
  only(flags, 0, "the log")
  m.out(out, "I", len(m.logs))


@serves("cuLogsDumpToMemory")
def logs_dump_to_memory(m: CudaMachine, iterator: int, buffer: int, size: int, flags: int) -> None:
  only(flags, 0, "the log")
  room, = m.get(size, "Q")
  if not room:
    raise invalid("no room for the log")
  whole = "\n".join(m.logs).encode()
  text = whole[max(len(whole) - room + 1, 0):] + b"\0"
  m.user.write(buffer, text)
  m.out(size, "Q", len(text))


@serves("cuGetProcAddress_v2")
def get_proc_address(m: CudaMachine, name: int, out: int, version: int, flags: int, status: int) -> None:
  text = m.name(name)
  only(flags, cuda.CU_GET_PROC_ADDRESS_LEGACY_STREAM | cuda.CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "a name")
  rows = cuda.VERSIONS.get(text, ((0, text),) if text in cuda.FUNCTIONS else ())
  fit = [symbol for since, symbol in rows if since <= version]
  if fit and flags & cuda.CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM:
    fit += [own for end in PER_THREAD if (own := fit[-1] + end) in cuda.FUNCTIONS]
  code = (cuda.CU_GET_PROC_ADDRESS_SUCCESS if fit else cuda.CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT if rows
          else cuda.CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)
  if status:
    m.out(status, "i", code)
  m.out(out, "Q", m.address_of(fit[-1]) if fit else 0)
  if not fit and not status:
    raise Failed(cuda.CUDA_ERROR_NOT_FOUND, f"no function {text} for version {version}", question=True)


@serves("cuGetProcAddress")
def get_proc_address_v1(m: CudaMachine, name: int, out: int, version: int, flags: int) -> None:
  get_proc_address(m, name, out, version, flags, 0)


@serves("cuProfilerStart", "cuProfilerStop")
def profiler(m: CudaMachine) -> None:
  """Nobody profiles."""


# ---- devices

@serves("cuDeviceGetCount")
def device_get_count(m: CudaMachine, out: int) -> None:
  m.out(out, "i", len(m.gpus))


@serves("cuDeviceGet")
def device_get(m: CudaMachine, out: int, ordinal: int) -> None:
  m.out(out, "i", m.gpu(ordinal).index)


@serves("cuDeviceGetName")
def device_get_name(m: CudaMachine, out: int, size: int, device: int) -> None:
  name = m.gpu(device).card.title.encode()
  if size < 1:
    raise invalid("no room for a name")
  m.user.write(out, name[: size - 1] + b"\0")


def uuid(gpu: Gpu) -> bytes:
  """The card's own number."""
  return b"tinyhw mock" + bytes((*gpu.card.capability, 0, 0, gpu.index))


@serves("cuDeviceGetUuid", "cuDeviceGetUuid_v2")
def device_get_uuid(m: CudaMachine, out: int, device: int) -> None:
  m.user.write(out, uuid(m.gpu(device)))


@serves("cuDeviceTotalMem_v2")
def device_total_mem(m: CudaMachine, out: int, device: int) -> None:
  m.out(out, "Q", m.gpu(device).vram.size)


@serves("cuDeviceGetAttribute")
def device_get_attribute(m: CudaMachine, out: int, attribute: int, device: int) -> None:
  gpu = m.gpu(device)
  known = {getattr(cuda, f"CU_DEVICE_ATTRIBUTE_{n}"): v for n, v in attributes(gpu.card).items()}
  known[cuda.CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] = gpu.card.bus(gpu.index)
  if not 0 < attribute < cuda.CU_DEVICE_ATTRIBUTE_MAX:
    raise invalid(f"no device attribute {attribute}")
  if attribute not in known:  # the board's own number, which its maker gave it
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"device attribute {attribute} is not modelled")
  m.out(out, "i", known[attribute])


@serves("cuDeviceComputeCapability")
def device_compute_capability(m: CudaMachine, major: int, minor: int, device: int) -> None:
  for out, value in zip((major, minor), m.gpu(device).card.capability, strict=True):
    m.out(out, "i", value)


@serves("cuDeviceGetPCIBusId")
def device_get_pci_bus_id(m: CudaMachine, out: int, size: int, device: int) -> None:
  gpu = m.gpu(device)
  text = f"0000:{gpu.card.bus(gpu.index):02X}:00.0".encode() + b"\0"
  if size < len(text):
    raise invalid(f"{len(text)} bytes are needed, there are {size}")
  m.user.write(out, text)


def place(name: str) -> tuple[int, ...] | None:
  """Domain, bus, device and function of [domain]:[bus]:[device].[function], [domain]:[bus]:[device] or
  [bus]:[device].[function], in hexadecimal; None for what is none of these."""
  found = _PCI.fullmatch(name)
  return None if found is None else tuple(int(part or "0", 16) for part in found.groups())


@serves("cuDeviceGetByPCIBusId")
def device_get_by_pci_bus_id(m: CudaMachine, out: int, text: int) -> None:
  name = m.name(text)
  if (where := place(name)) is None: raise invalid(f"{name!r} is no place on a PCI bus")
  for gpu in m.gpus:
    if where == (0, gpu.card.bus(gpu.index), 0, 0): return m.out(out, "i", gpu.index)
  raise Failed(cuda.CUDA_ERROR_INVALID_DEVICE, f"no device is at {name}")


@serves("cuDeviceCanAccessPeer")
def device_can_access_peer(m: CudaMachine, out: int, device: int, peer: int) -> None:
  m.out(out, "i", int(m.gpu(device) is not m.gpu(peer)))


@serves("cuDeviceGetP2PAttribute")
def device_get_p2p_attribute(m: CudaMachine, out: int, attribute: int, device: int, peer: int) -> None:
  if m.gpu(device) is m.gpu(peer):
    raise Failed(cuda.CUDA_ERROR_INVALID_DEVICE, "a device is no peer of its own")
  if attribute not in _PEERS: raise invalid(f"attribute {attribute} of two devices")
  m.out(out, "i", _PEERS[attribute])


@serves("cuCtxEnablePeerAccess")
def ctx_enable_peer_access(m: CudaMachine, peer: int, flags: int) -> None:
  context, other = m.working(), m.find(peer, Context)
  only(flags, 0, "peer access")
  if other.gpu is context.gpu:
    raise Failed(cuda.CUDA_ERROR_INVALID_CONTEXT, "a context of the same device")
  if other.gpu in context.peers:
    raise Failed(cuda.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
  context.peers.add(other.gpu)


@serves("cuCtxDisablePeerAccess")
def ctx_disable_peer_access(m: CudaMachine, peer: int) -> None:
  context, other = m.working(), m.find(peer, Context)
  if other.gpu not in context.peers:
    raise Failed(cuda.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
  context.peers.discard(other.gpu)


# ---- contexts

def _make(m: CudaMachine, gpu: Gpu, flags: int) -> Context:
  only(flags, cuda.CU_CTX_FLAGS_MASK, "a context")
  context = Context(m, gpu, flags)
  context.handle = m.new(context)
  Stream(context, 0, legacy=True)
  return context


def _end(m: CudaMachine, context: Context) -> None:
  """All that a context has goes."""
  context.alive = False
  for stream in list(context.streams):
    stream.drop()
    forget(m, stream)
  for handle in [h for h, x in m.handles.items() if x is context or getattr(x, "context", None) is context]:
    del m.handles[handle]
  for piece in [p for p in m.pieces.values() if p.context is context]:
    allocations.release(m, piece)
  context.heap = None


@serves("cuCtxCreate_v2")
def ctx_create(m: CudaMachine, out: int, flags: int, device: int) -> None:
  context = _make(m, m.gpu(device), flags)
  m.stack.append(context)
  m.out(out, "Q", context.handle)


@serves("cuCtxCreate_v4")
def ctx_create_v4(m: CudaMachine, out: int, params: int, flags: int, device: int) -> None:
  if params and any(m.user.read(params, ctypes.sizeof(cuda.CUctxCreateParams))):
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "parameters of a context (affinity, CIG)")
  ctx_create(m, out, flags, device)


@serves("cuCtxDestroy_v2")
def ctx_destroy(m: CudaMachine, handle: int) -> None:
  context: Context = m.find(handle, Context, cuda.CUDA_ERROR_INVALID_CONTEXT)
  if context.gpu.primary is context:
    raise Failed(cuda.CUDA_ERROR_INVALID_CONTEXT, "the primary context is released, not destroyed")
  if m.stack and m.stack[-1] is context:
    m.stack.pop()
  _end(m, context)


@serves("cuCtxAttach")
def ctx_attach(m: CudaMachine, out: int, flags: int) -> None:
  """Count one more that uses the current context (deprecated)."""
  only(flags, 0, "cuCtxAttach")
  context = m.context()
  context.attached += 1
  m.out(out, "Q", context.handle)


@serves("cuCtxDetach")
def ctx_detach(m: CudaMachine, handle: int) -> None:
  """Count one less; with the last, it goes as by cuCtxDestroy (deprecated). It has to be the calling thread's."""
  context: Context = m.find(handle, Context, cuda.CUDA_ERROR_INVALID_CONTEXT)
  if context is not m.context(): raise Failed(cuda.CUDA_ERROR_INVALID_CONTEXT, "the context is not current")
  if context.attached > 1: context.attached -= 1
  else: ctx_destroy(m, handle)


@serves("cuDevicePrimaryCtxRetain")
def device_primary_ctx_retain(m: CudaMachine, out: int, device: int) -> None:
  gpu = m.gpu(device)
  if gpu.primary is None or not gpu.primary.alive:
    gpu.primary = _make(m, gpu, gpu.primary_flags)
  gpu.retained += 1
  m.out(out, "Q", gpu.primary.handle)


@serves("cuDevicePrimaryCtxRelease_v2")
def device_primary_ctx_release(m: CudaMachine, device: int) -> None:
  gpu = m.gpu(device)
  if not gpu.retained:
    raise Failed(cuda.CUDA_ERROR_INVALID_CONTEXT, "the primary context is not retained")
  gpu.retained -= 1
  if not gpu.retained:
    _reset(m, gpu)


@serves("cuDevicePrimaryCtxReset_v2")
def device_primary_ctx_reset(m: CudaMachine, device: int) -> None:
  _reset(m, m.gpu(device))


def _reset(m: CudaMachine, gpu: Gpu) -> None:
  primary, gpu.primary = gpu.primary, None
  if primary is not None:
    _end(m, primary)


@serves("cuDevicePrimaryCtxGetState")
def device_primary_ctx_get_state(m: CudaMachine, device: int, flags: int, active: int) -> None:
  gpu = m.gpu(device)
  m.out(flags, "I", gpu.primary_flags)
  m.out(active, "i", int(gpu.primary is not None))


@serves("cuDevicePrimaryCtxSetFlags_v2")
def device_primary_ctx_set_flags(m: CudaMachine, device: int, flags: int) -> None:
  only(flags, cuda.CU_CTX_FLAGS_MASK, "a context")
  m.gpu(device).primary_flags = flags


@serves("cuCtxSetCurrent")
def ctx_set_current(m: CudaMachine, handle: int) -> None:
  stack = m.stack
  if stack:
    stack.pop()
  if handle:
    stack.append(m.find(handle, Context, cuda.CUDA_ERROR_INVALID_CONTEXT))


@serves("cuCtxGetCurrent")
def ctx_get_current(m: CudaMachine, out: int) -> None:
  m.out(out, "Q", m.stack[-1].handle if m.stack else 0)


@serves("cuCtxPushCurrent_v2")
def ctx_push_current(m: CudaMachine, handle: int) -> None:
  m.stack.append(m.find(handle, Context, cuda.CUDA_ERROR_INVALID_CONTEXT))


@serves("cuCtxPopCurrent_v2")
def ctx_pop_current(m: CudaMachine, out: int) -> None:
  context = m.context()
  m.stack.pop()
  if out:
    m.out(out, "Q", context.handle)


@serves("cuCtxGetDevice")
def ctx_get_device(m: CudaMachine, out: int) -> None:
  m.out(out, "i", m.context().gpu.index)


@serves("cuCtxGetDevice_v2")
def ctx_get_device_v2(m: CudaMachine, out: int, handle: int) -> None:
  context: Context = m.find(handle, Context, cuda.CUDA_ERROR_INVALID_CONTEXT) if handle else m.context()
  m.out(out, "i", context.gpu.index)


@serves("cuCtxSetFlags")
def ctx_set_flags(m: CudaMachine, flags: int) -> None:
  only(flags, cuda.CU_CTX_FLAGS_MASK, "a context")
  m.context().flags = flags


@serves("cuCtxResetPersistingL2Cache")
def ctx_reset_persisting_l2_cache(m: CudaMachine) -> None:
  m.working()  # nothing persists


@serves("cuCtxGetFlags")
def ctx_get_flags(m: CudaMachine, out: int) -> None:
  m.out(out, "I", m.context().flags)


@serves("cuCtxGetApiVersion")
def ctx_get_api_version(m: CudaMachine, handle: int, out: int) -> None:
  m.out(out, "I", 3020)


@serves("cuCtxGetId")
def ctx_get_id(m: CudaMachine, handle: int, out: int) -> None:
  m.out(out, "Q", (m.find(handle, Context) if handle else m.context()).handle)


@serves("cuCtxGetStreamPriorityRange")
def ctx_get_stream_priority_range(m: CudaMachine, least: int, greatest: int) -> None:
  for out, priority in ((least, 0), (greatest, GREATEST_PRIORITY)):
    if out: m.out(out, "i", priority)


@serves("cuCtxGetLimit")
def ctx_get_limit(m: CudaMachine, out: int, limit: int) -> None:
  context = m.working()
  if limit not in context.limits:
    raise Failed(cuda.CUDA_ERROR_UNSUPPORTED_LIMIT, f"limit {limit}")
  m.out(out, "Q", context.limits[limit])


@serves("cuCtxSetLimit")
def ctx_set_limit(m: CudaMachine, limit: int, value: int) -> None:
  context = m.working()
  if limit not in context.limits:
    raise Failed(cuda.CUDA_ERROR_UNSUPPORTED_LIMIT, f"limit {limit}")
  context.limits[limit] = value


@serves("cuCtxGetCacheConfig", "cuCtxGetSharedMemConfig")
def ctx_get_config(m: CudaMachine, out: int) -> None:
  m.out(out, "i", 0)


@serves("cuCtxSetCacheConfig", "cuCtxSetSharedMemConfig")
def ctx_set_config(m: CudaMachine, config: int) -> None:
  m.working()  # a preference, which a chip may leave alone
