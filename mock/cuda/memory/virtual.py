"""Virtual memory management: addresses and memory apart, put together by the program (driver API, same title).

Memory that was mapped is there for cards once access was set; all cards that are named may read and write it. How other
processes come by it is in `exported`.
"""
from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import cuda
from tinyhw.core.memory import PAGE, Backing, Region
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.machine import CudaMachine, Gpu, Piece
from tinyhw.mock.cuda.memory.allocations import DEVICE
from tinyhw.mock.cuda.memory.arrays import given, rows

if TYPE_CHECKING:
  from tinyhw.mock.cuda.memory.exported import Imported

GRANULARITY: Final = 2 << 20  # of allocations and of addresses
_NONE: Final = cuda.CU_MEM_ACCESS_FLAGS_PROT_NONE
_READ_WRITE: Final = cuda.CU_MEM_ACCESS_FLAGS_PROT_READWRITE


@dataclass(eq=False)
class Physical:
  """Memory without an address; it goes when nobody refers to it and nothing is mapped to it. `offset` is what it takes
  of its card's memory, None for another process's; `file` has its bytes where others may have them."""

  gpu: Gpu
  size: int
  offset: int | None
  given: Any
  file: Region | Imported | None = None
  handle: int = 0
  references: int = 1
  mappings: int = 0

  def left(self, m: CudaMachine) -> None:
    """One that used it does so no more."""
    if self.references: return
    m.handles.pop(self.handle, None)
    if self.mappings or self.offset is None: return
    if self.file is None: self.gpu.vram.discard(self.offset, self.size)
    self.gpu.allocator.free(self.offset)

  @property
  def place(self) -> tuple[Backing, int]:
    """Where its bytes are."""
    if self.file is not None: return self.file, 0
    assert self.offset is not None
    return self.gpu.vram, self.offset


@dataclass(eq=False)
class Mapping:
  """Memory at an address; `access` is what each card was granted there."""

  physical: Physical
  address: int
  size: int
  access: dict[int, int] = field(default_factory=dict)


class Addresses:
  """A reservation, with what is mapped in it by address."""

  def __init__(self, address: int, size: int) -> None:
    self.address, self.size = address, size
    self.mappings: dict[int, Mapping] = {}

  def within(self, address: int, size: int) -> list[Mapping]:
    """The mappings that fill a range. Raises Failed where they do not, or reach beyond it."""
    found, at = [], address
    while at < address + size:
      mapping = self.mappings.get(at)
      if mapping is None or at + mapping.size > address + size:
        raise invalid(f"{size:,} bytes at {address:#x} are no whole mappings")
      found.append(mapping)
      at += mapping.size
    return found


def _reservation(m: CudaMachine, address: int, size: int) -> Addresses:
  """The reservation that a range lies in."""
  starts = sorted(m.virtual)
  at = bisect.bisect_right(starts, address) - 1
  found: Addresses | None = m.virtual[starts[at]] if at >= 0 else None
  if found is None or address + size > found.address + found.size:
    raise invalid(f"{size:,} bytes at {address:#x} were not reserved")
  return found


def _properties(m: CudaMachine, pointer: int) -> tuple[Any, Gpu]:
  p = given(m, pointer, cuda.CUmemAllocationProp_v1)
  if p.type != cuda.CU_MEM_ALLOCATION_TYPE_PINNED: raise invalid(f"an allocation of type {p.type}")
  if p.requestedHandleTypes & ~cuda.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"memory with handles of kinds {p.requestedHandleTypes:#x}")
  if p.location.type != cuda.CU_MEM_LOCATION_TYPE_DEVICE:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"memory at a location of kind {p.location.type}")
  if p.allocFlags.usage: raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"memory for usage {p.allocFlags.usage:#x}")
  return p, m.gpu(p.location.id)


@serves("cuMemGetAllocationGranularity")
def mem_get_allocation_granularity(m: CudaMachine, out: int, properties: int, option: int) -> None:
  _properties(m, properties)
  if option not in (cuda.CU_MEM_ALLOC_GRANULARITY_MINIMUM, cuda.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED):
    raise invalid(f"granularity {option}")
  m.out(out, "Q", GRANULARITY)


@serves("cuMemCreate")
def mem_create(m: CudaMachine, out: int, size: int, properties: int, flags: int) -> None:
  p, gpu = _properties(m, properties)
  if flags or not size or size % GRANULARITY: raise invalid(f"{size:,} bytes, flags {flags:#x}")
  p.allocFlags.compressionType = 0  # nothing is compressed, and the program is told so
  file = Region(f"CUDA{gpu.index}.memory", size) if p.requestedHandleTypes else None
  physical = Physical(gpu, size, gpu.allocator.alloc(size), p, file)
  physical.handle = m.new(physical)
  m.out(out, "Q", physical.handle)


@serves("cuMemRelease")
def mem_release(m: CudaMachine, handle: int) -> None:
  physical: Physical = m.find(handle, Physical, cuda.CUDA_ERROR_INVALID_VALUE)
  physical.references -= 1
  physical.left(m)


@serves("cuMemGetAllocationPropertiesFromHandle")
def mem_get_allocation_properties(m: CudaMachine, out: int, handle: int) -> None:
  m.give(out, bytes(m.find(handle, Physical, cuda.CUDA_ERROR_INVALID_VALUE).given))


@serves("cuMemRetainAllocationHandle")
def mem_retain_allocation_handle(m: CudaMachine, out: int, address: int) -> None:
  for mapping in _reservation(m, address, 1).mappings.values():
    if not mapping.address <= address < mapping.address + mapping.size: continue
    physical = mapping.physical
    if not physical.references: m.handles[physical.handle] = physical
    physical.references += 1
    m.out(out, "Q", physical.handle)
    return
  raise invalid(f"nothing is mapped at {address:#x}")


@serves("cuMemAddressReserve")
def mem_address_reserve(m: CudaMachine, out: int, size: int, alignment: int, wanted: int, flags: int) -> None:
  """The address that a program would like is a hint, which is not taken."""
  if flags or not size or size % GRANULARITY or alignment & (alignment - 1):
    raise invalid(f"{size:,} bytes, aligned to {alignment}, flags {flags:#x}")
  address = m.addresses.alloc(size + PAGE, max(alignment, GRANULARITY))
  m.virtual[address] = Addresses(address, size)
  m.out(out, "Q", address)


@serves("cuMemAddressFree")
def mem_address_free(m: CudaMachine, address: int, size: int) -> None:
  found = m.virtual.get(address)
  if found is None or found.size != size: raise invalid(f"{size:,} bytes at {address:#x} were not reserved so")
  if found.mappings: raise invalid("something is mapped there")
  del m.virtual[address]
  m.addresses.free(address)


@serves("cuMemMap")
def mem_map(m: CudaMachine, address: int, size: int, offset: int, handle: int, flags: int) -> None:
  physical: Physical = m.find(handle, Physical, cuda.CUDA_ERROR_INVALID_VALUE)
  place = _reservation(m, address, size)
  if flags or offset: raise invalid(f"an offset {offset:,} and flags {flags:#x}: they must be 0")
  if not size or size % GRANULARITY or address % GRANULARITY or size > physical.size:
    raise invalid(f"{size:,} bytes at {address:#x} of {physical.size:,}")
  if any(x.address < address + size and address < x.address + x.size for x in place.mappings.values()):
    raise invalid(f"something is mapped at {address:#x}")
  place.mappings[address] = Mapping(physical, address, size)
  physical.mappings += 1


@serves("cuMemUnmap")
def mem_unmap(m: CudaMachine, address: int, size: int) -> None:
  place = _reservation(m, address, size)
  for mapping in place.within(address, size):
    _withdraw(m, mapping)
    del place.mappings[mapping.address]
    mapping.physical.mappings -= 1
    mapping.physical.left(m)


def _withdraw(m: CudaMachine, mapping: Mapping) -> None:
  """No card reaches it any more, once what is queued has ended."""
  if mapping.address not in m.pieces: return
  for stream in list(m.streams):
    if stream.queue: stream.wait()
  del m.pieces[mapping.address]
  m.space.used.pop(mapping.address, None)
  m.space.unmap(mapping.address, mapping.size)


@serves("cuMemSetAccess")
def mem_set_access(m: CudaMachine, address: int, size: int, descriptions: int, count: int) -> None:
  kind = cuda.CUmemAccessDesc_v1
  granted = rows(m, descriptions, kind, count)
  for d in granted:
    if d.location.type != cuda.CU_MEM_LOCATION_TYPE_DEVICE or d.flags not in (_NONE, _READ_WRITE):
      raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"access {d.flags} for a location of kind {d.location.type}")
    m.gpu(d.location.id)
  for mapping in _reservation(m, address, size).within(address, size):
    mapping.access |= {d.location.id: d.flags for d in granted}
    physical = mapping.physical
    if not any(mapping.access.values()): _withdraw(m, mapping)
    elif mapping.address not in m.pieces:
      m.space.map(mapping.address, mapping.size, *physical.place)
      m.space.used[mapping.address] = mapping.size, "memory of cuMemMap"
      m.pieces[mapping.address] = Piece(mapping.address, mapping.size, DEVICE, physical.gpu, None, *physical.place,
                                        mapped=True, ends="cuMemUnmap")


@serves("cuMemGetAccess")
def mem_get_access(m: CudaMachine, out: int, location: int, address: int) -> None:
  where = given(m, location, cuda.CUmemLocation)
  for mapping in _reservation(m, address, 1).mappings.values():
    if mapping.address <= address < mapping.address + mapping.size:
      m.out(out, "Q", mapping.access.get(where.id, _NONE))
      return
  raise invalid(f"nothing is mapped at {address:#x}")
