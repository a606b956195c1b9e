"""Pools of memory that streams allocate from (the driver API's "Stream Ordered Memory Allocator").

A pool here holds nothing back: what is freed goes to the card at once, so that its reserved bytes are those of pages in
use. Who may reach a pool's memory is kept and told, and, as for all memory of these cards, not enforced.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tinyhw.autogen import cuda
from tinyhw.core.errors import OutOfMemory
from tinyhw.core.memory import Region
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine, Gpu, Piece
from tinyhw.mock.cuda.memory.allocations import allocate
from tinyhw.mock.cuda.memory.arrays import rows
from tinyhw.mock.cuda.streams.streams import Stream, stream_of
from tinyhw.mock.memory import page_align

if TYPE_CHECKING:
  from tinyhw.mock.cuda.memory.exported import Imported

_DEVICE: Final = cuda.CU_MEM_LOCATION_TYPE_DEVICE
_READ_WRITE: Final = cuda.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
_CHOICES: Final = (cuda.CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
                   cuda.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
                   cuda.CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
_COUNTS: Final = {cuda.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: "reserved",
                  cuda.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: "reserved_most",
                  cuda.CU_MEMPOOL_ATTR_USED_MEM_CURRENT: "used", cuda.CU_MEMPOOL_ATTR_USED_MEM_HIGH: "used_most"}


@dataclass(eq=False)
class Pool:
  """A pool of a card's memory; bytes that are in use, and the most that were since somebody set that to zero."""

  gpu: Gpu
  most: int  # bytes that it may have; 0 for all that there are
  usage: int = 0
  handle: int = 0
  threshold: int = 0
  choices: dict[int, int] = field(default_factory=lambda: dict.fromkeys(_CHOICES, 1))
  access: dict[int, int] = field(default_factory=dict)  # of other cards
  file: Region | Imported | None = None  # which its memory lies in, at the places that it takes of the card's
  imported: bool = False  # from another process, which alone allocates from it
  used: int = 0
  used_most: int = 0
  reserved: int = 0
  reserved_most: int = 0

  def took(self, size: int) -> None:
    """An allocation was made."""
    self.used += size
    self.reserved += page_align(size)
    self.used_most, self.reserved_most = max(self.used_most, self.used), max(self.reserved_most, self.reserved)

  def gave(self, size: int) -> None:
    """One has gone."""
    self.used -= size
    self.reserved -= page_align(size)


def _default(m: CudaMachine, gpu: Gpu) -> Pool:
  """The pool that a card has by itself."""
  if gpu.default_pool is None:
    gpu.default_pool = Pool(gpu, 0)
    gpu.default_pool.handle = m.new(gpu.default_pool)
  return gpu.default_pool


def _current(m: CudaMachine, gpu: Gpu) -> Pool:
  """The pool that allocations on a card's streams come from."""
  return gpu.pool or _default(m, gpu)


def pool_of(m: CudaMachine, handle: int) -> Pool:
  """A pool by its handle."""
  found: Pool = m.find(handle, Pool, cuda.CUDA_ERROR_INVALID_VALUE)
  return found


def take(m: CudaMachine, context: Context, pool: Pool, size: int) -> Piece:
  """Memory of a pool. Raises OutOfMemory past the size that the pool was made with."""
  if pool.imported: raise invalid("a pool of another process is not allocated from")
  if size > 0 and pool.most and pool.reserved + page_align(size) > pool.most:
    raise OutOfMemory("the pool's memory", size, pool.most - pool.reserved)
  piece = allocate(m, context, size, gpu=pool.gpu, file=pool.file)
  piece.pool = pool
  pool.took(size)
  return piece


@serves("cuMemAllocAsync")
def mem_alloc_async(m: CudaMachine, out: int, size: int, handle: int) -> None:
  stream = stream_of(m, handle)
  _allocated(m, out, stream, _current(m, stream.context.gpu), size)


@serves("cuMemAllocFromPoolAsync")
def mem_alloc_from_pool_async(m: CudaMachine, out: int, size: int, pool: int, handle: int) -> None:
  _allocated(m, out, stream_of(m, handle), pool_of(m, pool), size)


def _allocated(m: CudaMachine, out: int, stream: Stream, pool: Pool, size: int) -> None:
  """Memory of a pool; on a stream that is captured, a node that brings it."""
  if stream.capture is None: m.out(out, "Q", take(m, stream.context, pool, size).address)
  else: m.out(out, "Q", stream.capture.take_alloc(stream, pool.gpu.index, size))


# ---- the pools of a card

@serves("cuDeviceGetDefaultMemPool")
def device_get_default_mem_pool(m: CudaMachine, out: int, device: int) -> None:
  m.out(out, "Q", _default(m, m.gpu(device)).handle)


@serves("cuDeviceGetMemPool")
def device_get_mem_pool(m: CudaMachine, out: int, device: int) -> None:
  m.out(out, "Q", _current(m, m.gpu(device)).handle)


@serves("cuDeviceSetMemPool")
def device_set_mem_pool(m: CudaMachine, device: int, handle: int) -> None:
  gpu, pool = m.gpu(device), pool_of(m, handle)
  if pool.imported: raise invalid("a pool of another process is not allocated from")
  if pool.gpu is not gpu:
    raise invalid(f"the pool's memory is that of device {pool.gpu.index}, not of {device}")
  gpu.pool = pool


def _located(m: CudaMachine, location: int, kind: int) -> int:
  """The number of the card that a CUmemLocation names, for allocations of a kind."""
  where = cuda.CUmemLocation.from_buffer_copy(m.user.read(location, ctypes.sizeof(cuda.CUmemLocation)))
  return _card(m, where, kind).index


def _card(m: CudaMachine, where: cuda.CUmemLocation, kind: int) -> Gpu:
  if kind in (cuda.CU_MEM_ALLOCATION_TYPE_INVALID, cuda.CU_MEM_ALLOCATION_TYPE_MAX):
    raise invalid(f"allocations of kind {kind}")
  if kind != cuda.CU_MEM_ALLOCATION_TYPE_PINNED:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "a pool of managed memory")
  if where.type != _DEVICE:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"a pool of memory at a location of kind {where.type}")
  return m.gpu(where.id)


@serves("cuMemGetDefaultMemPool")
def mem_get_default_mem_pool(m: CudaMachine, out: int, location: int, kind: int) -> None:
  device_get_default_mem_pool(m, out, _located(m, location, kind))


@serves("cuMemGetMemPool")
def mem_get_mem_pool(m: CudaMachine, out: int, location: int, kind: int) -> None:
  device_get_mem_pool(m, out, _located(m, location, kind))


@serves("cuMemSetMemPool")
def mem_set_mem_pool(m: CudaMachine, location: int, kind: int, handle: int) -> None:
  device_set_mem_pool(m, _located(m, location, kind), handle)


# ---- pools of a program's own

@serves("cuMemPoolCreate")
def mem_pool_create(m: CudaMachine, out: int, properties: int) -> None:
  given = cuda.CUmemPoolProps.from_buffer_copy(m.user.read(properties, ctypes.sizeof(cuda.CUmemPoolProps)))
  gpu = _card(m, given.location, given.allocType)
  if given.handleTypes not in (cuda.CU_MEM_HANDLE_TYPE_NONE, cuda.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR):
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"a pool with handles of kind {given.handleTypes}")
  if any(given.reserved):
    raise invalid("reserved bytes of CUmemPoolProps must be zero")
  file = Region(f"CUDA{gpu.index}.pool", gpu.vram.size) if given.handleTypes else None
  pool = Pool(gpu, given.maxSize, given.usage, file=file)
  pool.handle = m.new(pool)
  m.out(out, "Q", pool.handle)


@serves("cuMemPoolDestroy")
def mem_pool_destroy(m: CudaMachine, handle: int) -> None:
  pool = pool_of(m, handle)
  if pool is pool.gpu.default_pool:
    raise invalid("the default pool of a device is not destroyed")
  if pool.gpu.pool is pool:
    pool.gpu.pool = None  # the default one counts again
  del m.handles[handle]  # what was allocated from it stays until it is freed


@serves("cuMemPoolTrimTo")
def mem_pool_trim_to(m: CudaMachine, handle: int, least: int) -> None:
  pool_of(m, handle)  # nothing is held back that could go


@serves("cuMemPoolGetAttribute")
def mem_pool_get_attribute(m: CudaMachine, handle: int, attribute: int, out: int) -> None:
  pool = pool_of(m, handle)
  if attribute in _CHOICES: m.out(out, "i", pool.choices[attribute])
  elif attribute == cuda.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: m.out(out, "Q", pool.threshold)
  elif attribute in _COUNTS: m.out(out, "Q", getattr(pool, _COUNTS[attribute]))
  else: raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"attribute {attribute} of a pool")


@serves("cuMemPoolSetAttribute")
def mem_pool_set_attribute(m: CudaMachine, handle: int, attribute: int, value: int) -> None:
  pool = pool_of(m, handle)
  if attribute in _CHOICES:
    chosen, = m.get(value, "i")
    if chosen not in (0, 1): raise invalid(f"{chosen} is neither 0 nor 1")
    pool.choices[attribute] = chosen
    return
  number, = m.get(value, "Q")
  if attribute == cuda.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool.threshold = number
  elif attribute in _COUNTS and attribute in (cuda.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
                                              cuda.CU_MEMPOOL_ATTR_USED_MEM_HIGH):
    if number: raise invalid("a high watermark may only be set to zero")
    now = _COUNTS[attribute].removesuffix("_most")
    setattr(pool, _COUNTS[attribute], getattr(pool, now))
  elif attribute in _COUNTS: raise invalid("what a pool has at this moment cannot be set")
  else: raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"attribute {attribute} of a pool")


@serves("cuMemPoolSetAccess")
def mem_pool_set_access(m: CudaMachine, handle: int, given: int, count: int) -> None:
  pool = pool_of(m, handle)
  known = (cuda.CU_MEM_ACCESS_FLAGS_PROT_NONE, cuda.CU_MEM_ACCESS_FLAGS_PROT_READ, _READ_WRITE)
  chosen: dict[int, int] = {}
  for row in rows(m, given, cuda.CUmemAccessDesc, count):
    if row.location.type != _DEVICE or row.flags not in known:
      raise invalid(f"access {row.flags} from a location of kind {row.location.type}")
    if m.gpu(row.location.id) is pool.gpu and row.flags != _READ_WRITE:
      raise invalid("the device of a pool keeps its access")
    chosen[row.location.id] = row.flags
  pool.access |= chosen


@serves("cuMemPoolGetAccess")
def mem_pool_get_access(m: CudaMachine, out: int, handle: int, location: int) -> None:
  pool = pool_of(m, handle)
  where = cuda.CUmemLocation.from_buffer_copy(m.user.read(location, ctypes.sizeof(cuda.CUmemLocation)))
  if where.type != _DEVICE: raise invalid(f"a location of kind {where.type}")
  own = m.gpu(where.id) is pool.gpu
  m.out(out, "I", pool.access.get(where.id, _READ_WRITE if own else cuda.CU_MEM_ACCESS_FLAGS_PROT_NONE))
