"""How many blocks of a kernel work on an SM at a time, by their threads and shared memory."""
from __future__ import annotations

import ctypes
import math

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.devices import attributes
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.modules.functions import func_get_attribute
from tinyhw.mock.cuda.modules.libraries import function_for
from tinyhw.mock.cuda.streams.launches import asked, check_cluster, cluster_limit, configuration


@serves("cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")
def occupancy(m: CudaMachine, out: int, handle: int, block: int, dynamic: int, flags: int = 0) -> None:
  function = function_for(m, handle, m.working())
  if block < 1:
    raise invalid(f"a block of {block} threads")
  known = attributes(function.context.gpu.card)
  shared = function.program.shared_size + dynamic + known["RESERVED_SHARED_MEMORY_PER_BLOCK"]
  threads = -(-block // 32) * 32
  m.out(out, "i", min(known["MAX_BLOCKS_PER_MULTIPROCESSOR"],
                      known["MAX_THREADS_PER_MULTIPROCESSOR"] // threads,
                      known["MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"] // shared))


def _blocks(m: CudaMachine, handle: int, block: int, dynamic: int) -> int:
  """Blocks of a kernel that an SM has room for."""
  cell = ctypes.c_int32()
  occupancy(m, ctypes.addressof(cell), handle, block, dynamic)
  return cell.value


@serves("cuOccupancyMaxPotentialBlockSize", "cuOccupancyMaxPotentialBlockSizeWithFlags")
def max_potential_block_size(m: CudaMachine, least: int, best: int, handle: int, sizes: int, dynamic: int, limit: int,
                             flags: int = 0) -> None:
  """The largest block, a multiple of a warp, with which most threads of an SM work, and the blocks that fill the card.
  `sizes` says how much dynamic shared memory a block of a size has."""
  function = function_for(m, handle, m.working())
  shared = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(sizes) if sizes else lambda block: dynamic
  cell = ctypes.c_int32()
  func_get_attribute(m, ctypes.addressof(cell), cuda.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, handle)
  most = min(limit or cell.value, cell.value)
  found, size, count = -1, 0, 0
  for block in (most, *range((most - 1) // 32 * 32, 0, -32)):
    blocks = _blocks(m, handle, block, shared(block))
    if blocks * block > found: found, size, count = blocks * block, block, blocks
  m.out(least, "i", count * function.context.gpu.card.sms)
  m.out(best, "i", size)


@serves("cuOccupancyAvailableDynamicSMemPerBlock")
def available_dynamic(m: CudaMachine, out: int, handle: int, blocks: int, block: int) -> None:
  """As much dynamic shared memory as lets so many blocks of a size work on an SM."""
  if blocks < 1 or _blocks(m, handle, block, 0) < blocks:
    raise invalid(f"{blocks} blocks of {block} threads do not fit")
  function = function_for(m, handle, m.working())
  known = attributes(function.context.gpu.card)
  each = known["MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"] // blocks - known["RESERVED_SHARED_MEMORY_PER_BLOCK"]
  m.out(out, "Q", min(each, known["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"]) - function.program.shared_size)


@serves("cuOccupancyMaxActiveClusters")
def max_active_clusters(m: CudaMachine, out: int, handle: int, config: int) -> None:
  """As many clusters as the SMs have room for their blocks, with each cluster whole."""
  function = function_for(m, handle, m.working())
  c = configuration(m, config)
  cluster = asked(m, c.attrs, c.numAttrs).cluster
  if cluster is None: raise invalid("the configuration has no CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION")
  check_cluster(function, cluster)
  occupancy(m, out, handle, c.blockDimX * c.blockDimY * c.blockDimZ, c.sharedMemBytes)
  m.out(out, "i", m.get(out, "i")[0] * function.context.gpu.card.sms // math.prod(cluster))


@serves("cuOccupancyMaxPotentialClusterSize")
def max_potential_cluster_size(m: CudaMachine, out: int, handle: int, config: int) -> None:
  """The most blocks of a cluster that the kernel may be launched with, with SMs enough for one."""
  function = function_for(m, handle, m.working())
  c = configuration(m, config)
  if not (most := cluster_limit(function)):
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "clusters of blocks before compute capability 9.0")
  each = _blocks(m, handle, c.blockDimX * c.blockDimY * c.blockDimZ, c.sharedMemBytes)
  if not each: raise invalid("no SM has room for such a block")
  m.out(out, "i", min(most, each * function.context.gpu.card.sms))
