"""GPU memory: memfd-backed regions (physical memory that processes can share) behind GPU virtual address spaces.

A GPU address is never a host address here. Every access is translated by page-table rules (4 KiB pages, permissions).
A bad one raises `PageFault` with the address, the kind of access and, for vectors, the lane, before anything is stored.

A vector access is checked as a whole; its fault names the first lane.
"""
from __future__ import annotations

import ctypes
import os
from bisect import bisect_left, bisect_right, insort
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from tinyhw.core.errors import InvalidArgument, OutOfMemory, PageFault
from tinyhw.core.mapped import copy_on_write, give_back, map_memory, mapped_file

PAGE: Final = 4096
PAGES: Final = 4096  # of which an address space remembers where they are mapped
GRANULE: Final = 16  # host memory may be mapped in units of so many bytes, the widest access: arrays are no whole pages
END: Final = (1 << 64) - PAGE  # where mappings end at the latest: an end is an address too
U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
_DTYPES: Final[dict[int, np.dtype[Any]]] = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}


class Access:
  """Kinds of access, as bits of a plain int (an IntFlag costs a microsecond an operation)."""
  READ: Final = 1
  WRITE: Final = 2
  EXECUTE: Final = 4
  ATOMIC: Final = 8
  ALL: Final = 15

  @staticmethod
  def name(access: int) -> str:
    names = [n for bit, n in ((8, "atomic"), (4, "execute"), (2, "write"), (1, "read")) if access & bit]
    return names[0] if names else "no access"


class Backing(Protocol):
  """Bytes that an address space can map: a Region, or a part of this process for user pointers."""
  size: int
  u8: U8


class Region:
  """`size` bytes of sparse memory in a memfd (pages exist once written). `u8` shows all of it, `fd` shares it.

  `file` is a memfd of somebody else's that has room: then this is the part of it from `base` on.

  A forked child has a copy, as of all other memory: what it stores or gives back is its own.

  Raises OSError where the process may have no more files (EMFILE) or addresses (ENOMEM).
  """

  def __init__(self, name: str, size: int, file: int = -1, base: int = 0) -> None:
    if size <= 0 or size % PAGE:
      raise InvalidArgument(f"a region has a positive multiple of {PAGE} bytes, not {size}", where=name)
    self.name, self.size, self.base, self.fd = name, size, base, -1
    self.fd = os.memfd_create(name, os.MFD_CLOEXEC) if file < 0 else os.dup(file)
    if file < 0: os.ftruncate(self.fd, size)
    self.u8: U8 = np.frombuffer(mapped_file(self.fd, size, base), dtype=np.uint8)
    self._shared = True
    _REGIONS.add(self)

  def discard(self, offset: int, size: int) -> None:
    """Give the pages back to the system; they read as zeros afterwards."""
    if self._shared: give_back(self.u8.ctypes.data + offset, size)
    else: map_memory(-1, size, 0, self.u8.ctypes.data + offset)

  def part(self) -> None:
    """In a forked child: from here on the memory is its own."""
    if not self._shared or self.fd < 0: return  # a fork of the child's, or of who has closed it
    with suppress(OSError):  # a system that promises no memory that it has not got (vm.overcommit_memory 2)
      copy_on_write(self.fd, self.size, self.u8.ctypes.data, self.base)
      self._shared = False

  def close(self) -> None:
    """Close the file. Its memory goes when the last array on it goes."""
    if self.fd >= 0: self._close(self.fd)
    self.fd = -1

  _close = staticmethod(os.close)  # when the interpreter ends, modules may go before the last region

  def __del__(self) -> None: self.close()


_REGIONS: Final[WeakSet[Region]] = WeakSet()


def _in_child() -> None:
  for region in list(_REGIONS): region.part()


os.register_at_fork(after_in_child=_in_child)


class HostRegion:
  """Memory of this process at `address`, for user pointers that a client hands to the kernel driver."""

  def __init__(self, address: int, size: int) -> None:
    self.address, self.size = address, size
    self.u8: U8 = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


class Allocator:
  """First-fit extents of the range [start, start + size). All sizes in bytes.

  Free extents are kept by classes of their size, four to a power of two, so that none is looked at that is too small.
  """

  def __init__(self, start: int, size: int, *, name: str = "memory") -> None:
    self.start, self.size, self.name = start, size, name
    self.free_bytes = size
    self._ends: dict[int, int] = {}       # of free extents, by their start
    self._starts: dict[int, int] = {}     # the same the other way round
    self._classes: dict[int, list[int]] = {}  # starts in order
    self._used: dict[int, int] = {}
    self._add(start, start + size)

  @staticmethod
  def _class(size: int) -> int:
    n = size.bit_length()
    return n << 2 | (size >> n - 3 & 3 if n > 2 else size << 3 - n & 3)

  def _add(self, lo: int, hi: int) -> None:
    if lo >= hi: return
    self._ends[lo], self._starts[hi] = hi, lo
    insort(self._classes.setdefault(self._class(hi - lo), []), lo)

  def _drop(self, lo: int) -> int:
    """Take a free extent out; its end."""
    hi = self._ends.pop(lo)
    del self._starts[hi]
    kind = self._class(hi - lo)
    found = self._classes[kind]
    del found[bisect_left(found, lo)]
    if not found: del self._classes[kind]
    return hi

  def alloc(self, size: int, align: int = PAGE) -> int:
    """Start of a new extent. Raises OutOfMemory with what is free."""
    if size <= 0: raise InvalidArgument(f"an allocation has at least one byte, not {size}", where=self.name)
    best, least = -1, self._class(size)
    for kind, starts in self._classes.items():
      if kind < least: continue
      for lo in starts:
        if 0 <= best < lo: break
        if -(-lo // align) * align + size <= self._ends[lo]:
          best = lo
          break
    if best < 0: raise OutOfMemory(self.name, size, self.free_bytes)
    at, hi = -(-best // align) * align, self._drop(best)
    self._add(best, at)
    self._add(at + size, hi)
    self._used[at] = size
    self.free_bytes -= size
    return at

  def free(self, start: int) -> int:
    """Give an extent back; returns its size. Raises InvalidArgument for one that is not allocated."""
    size = self._used.pop(start, None)
    if size is None: raise InvalidArgument(f"{start:#x} is not allocated", where=self.name)
    self.free_bytes += size
    lo, hi = start, start + size
    if (before := self._starts.get(lo)) is not None:
      self._drop(before)
      lo = before
    if hi in self._ends: hi = self._drop(hi)
    self._add(lo, hi)
    return size


@dataclass(frozen=True, slots=True, eq=False)
class Mapping:
  """One mapped range [start, end) of an address space, with views of its bytes in each width."""
  start: int
  end: int
  backing: Backing
  offset: int
  access: int
  uncached: bool
  u8: U8
  u16: npt.NDArray[np.uint16]
  u32: npt.NDArray[np.uint32]
  u64: U64
  raw: memoryview
  raw32: memoryview
  raw64: memoryview

  @property
  def unit(self) -> int:
    """PAGE, or GRANULE for memory that was mapped in such units."""
    return GRANULE if (self.start | self.end) % PAGE else PAGE


class AddressSpace:
  """A GPU virtual address space: ranges of pages, each backed by a part of a region, with permissions.

  `version` grows with every change of the mappings, so that caches of code or translations notice. `used` says of some
  addresses how many bytes from there on are in use, and by what: pages are larger than what lies in them. `direct`:
  `view` shows what `read` gives; no, where caches stand between.
  """
  direct: ClassVar[bool] = True

  def __init__(self, name: str = "GPU") -> None:
    self.name = name
    self.used: dict[int, tuple[int, str]] = {}
    # Addresses that stand for several places, which NVIDIA calls multicast: (first, bytes, first of each place).
    self.multicast: tuple[tuple[int, int, tuple[int, ...]], ...] = ()
    self.version = 0
    self._starts: list[int] = []
    self._maps: list[Mapping] = []
    self._pages: dict[int, Mapping] = {}  # by its number, a page that lies in one mapping as a whole
    # What lookups go by: replaced as a whole, so that they need no lock while another thread maps.
    self._table: tuple[list[int], list[Mapping], U64] = [], [], np.zeros(0, np.uint64)

  # ---- mappings

  def map(self, address: int, size: int, backing: Backing, offset: int = 0, access: int = Access.ALL,
          unit: int = PAGE, uncached: bool = False) -> None:
    """Map whole pages, or units of GRANULE bytes; `uncached` notes that a GPU's GL2 keeps none of it (MTYPE UC).

    Raises InvalidArgument for misalignment, a range past the backing or an overlap.
    """
    if size <= 0 or (address | size) % unit:
      units = "pages" if unit == PAGE else f"units of {unit} bytes"
      raise InvalidArgument(f"map of {size:#x} bytes at {address:#x} is not whole {units}", where=self.name)
    if address < 0 or address + size > END:
      raise InvalidArgument(f"map of {size:#x} bytes at {address:#x} passes the end of the addresses", where=self.name)
    if offset < 0 or offset + size > backing.size:
      raise InvalidArgument(f"map of {size:#x} bytes passes the end of its memory", where=self.name)
    i = bisect_right(self._starts, address)
    if (i and self._maps[i - 1].end > address) or (i < len(self._maps) and self._maps[i].start < address + size):
      raise InvalidArgument(f"{address:#x}..{address + size:#x} is mapped already", where=self.name)
    u8 = backing.u8[offset:offset + size]
    raw = u8.data
    views = u8, u8.view(np.uint16), u8.view(np.uint32), u8.view(np.uint64), raw, raw.cast("I"), raw.cast("Q")
    new = Mapping(address, address + size, backing, offset, access, uncached, *views)
    self._change(i, i, new)

  def unmap(self, address: int, size: int) -> None:
    """Remove a range that was mapped as a whole by one or more `map` calls. Raises InvalidArgument otherwise."""
    lo = bisect_right(self._starts, address) - 1
    hi, at = lo, address
    while 0 <= hi < len(self._maps) and self._maps[hi].start == at and at < address + size:
      at, hi = self._maps[hi].end, hi + 1
    if at != address + size:
      raise InvalidArgument(f"{address:#x}..{address + size:#x} is not mapped so", where=self.name)
    self._change(lo, hi)

  def _change(self, first: int, last: int, *new: Mapping) -> None:
    """Have others in the place of some."""
    starts = [m.start for m in new]
    self._maps = [*self._maps[:first], *new, *self._maps[last:]]
    self._starts = [*self._starts[:first], *starts, *self._starts[last:]]
    table = self._table[2]
    self._table = self._starts, self._maps, np.concatenate((table[:first], np.array(starts, np.uint64), table[last:]))
    self._pages = {}  # after the table: what others find in the old one meanwhile, they note in what was here before
    self.version += 1

  def mappings(self) -> tuple[Mapping, ...]: return tuple(self._maps)

  def find(self, address: int) -> Mapping | None:
    """The mapping that holds this address."""
    pages, page = self._pages, address >> 12
    m = pages.get(page)
    if m is not None: return m
    starts, maps, _ = self._table
    i = bisect_right(starts, address) - 1
    if i < 0 or address >= maps[i].end: return None
    m = maps[i]
    if m.start <= page << 12 and page + 1 << 12 <= m.end:
      if len(pages) >= PAGES: pages.clear()
      pages[page] = m
    return m

  def _need(self, address: int, size: int, access: int) -> Mapping:
    m = self.find(address)
    if m is None: raise PageFault(address, Access.name(access), size)
    if m.access & access != access: raise PageFault(address, Access.name(access), size, reason="no permission")
    return m

  # ---- scalar accesses

  def view(self, address: int, size: int, access: int = Access.READ) -> U8:
    """The bytes themselves, without a copy; they must lie in one mapping."""
    m = self._need(address, size, access)
    if address + size > m.end: raise PageFault(m.end, Access.name(access), size, reason="past the end of its mapping")
    return m.u8[address - m.start:address - m.start + size]

  def read(self, address: int, size: int, access: int = Access.READ) -> bytes:
    """A copy of bytes, across adjacent mappings if need be."""
    m = self._pages.get(address >> 12)
    if m is None or m.access & access != access: m = self._need(address, size, access)
    if address + size <= m.end: return bytes(m.raw[address - m.start:address - m.start + size])
    return b"".join(m.raw[at - m.start:at - m.start + take] for m, at, take in self._parts(address, size, access))

  def fetch(self, pc: int, size: int) -> bytes:
    """Up to `size` bytes of code, fewer where the mapping ends. Raises PageFault with the PC for no code at all."""
    m = self.find(pc)
    if m is None or not m.access & Access.EXECUTE:
      raise PageFault(pc, "execute", 4, reason="not mapped" if m is None else "no permission", pc=pc)
    return bytes(m.raw[pc - m.start:pc - m.start + size])

  def write(self, address: int, data: bytes | bytearray | memoryview, access: int = Access.WRITE) -> None:
    """Store bytes, across adjacent mappings if need be; nothing is stored when a part is not writable."""
    for m, at, take in self._parts(address, len(data), access):
      m.raw[at - m.start:at - m.start + take] = data[at - address:at - address + take]

  def prove(self, address: int, size: int, access: int) -> None:
    """Raises PageFault unless all of a range may be accessed so."""
    self._parts(address, size, access)

  def _parts(self, address: int, size: int, access: int) -> list[tuple[Mapping, int, int]]:
    """The mappings that bytes lie in, each with the address and number of those in it."""
    at, end, parts = address, address + size, []
    while at < end:
      m = self._need(at, end - at, access)
      take = min(m.end, end) - at
      parts.append((m, at, take))
      at += take
    return parts

  def load(self, address: int, width: int, access: int = Access.READ) -> int:
    """An unsigned little-endian integer of 1, 2, 4 or 8 bytes."""
    m = self._pages.get(address >> 12)
    if m is not None and m.access & access == access:
      if width == 8 and not address & 7: return m.raw64[address - m.start >> 3]
      if width == 4 and not address & 3: return m.raw32[address - m.start >> 2]
    m = self._need(address, width, access)
    if address + width > m.end: return int.from_bytes(self.read(address, width, access), "little")
    at = address - m.start
    return int.from_bytes(m.raw[at:at + width], "little")

  def poll(self, address: int, width: int) -> int:
    """`load` of somebody who waits for the value to change."""
    return self.load(address, width)

  def store(self, address: int, width: int, value: int, access: int = Access.WRITE) -> None:
    """Store an unsigned little-endian integer of 1, 2, 4 or 8 bytes."""
    m = self._pages.get(address >> 12)
    if m is not None and m.access & access == access:
      if width == 8 and not address & 7:
        m.raw64[address - m.start >> 3] = value
        return
      if width == 4 and not address & 3:
        m.raw32[address - m.start >> 2] = value
        return
    m = self._need(address, width, access)
    if address + width > m.end: return self.write(address, value.to_bytes(width, "little"), access)
    at = address - m.start
    m.raw[at:at + width] = value.to_bytes(width, "little")

  # ---- vector accesses

  def locate(self, addresses: U64, width: int, access: int) -> list[tuple[Mapping | None, Any, Any]]:
    """Where vector accesses lie: rows of (mapping, lanes, offsets into it), the lanes a slice or an array. Lanes that
    straddle two mappings come under None, with offsets None; all of their pages are proven.

    Raises PageFault for the first lane at fault, its index in `.lane`.
    """
    one = self._one(addresses, width, access)
    if one is not None: return [(one[0], slice(None), one[1])]
    return [(m, lanes, None if m is None else (addresses[lanes] - np.uint64(m.start)).view(np.int64))
            for m, lanes in self._split(addresses, width, access)]

  def _one(self, addresses: U64, width: int, access: int) -> tuple[Mapping, npt.NDArray[np.int64]] | None:
    """The mapping that serves all addresses, with offsets into it; None when there is no single one."""
    lo, hi = int(addresses.min()), int(addresses.max())
    m = self.find(lo)
    if m is None or hi + width > m.end or m.access & access != access: return None
    return m, (addresses - np.uint64(m.start)).view(np.int64)

  def gather(self, addresses: U64, width: int, access: int = Access.READ) -> npt.NDArray[Any]:
    """Load `width` bytes at each address: u8, u16, u32 or u64 [n]; for 12 and 16 bytes u32 [n, width / 4].

    Raises PageFault for the first lane at fault, its index in `.lane`.
    """
    words = width > 8
    if not len(addresses): return np.zeros((0, width // 4), np.uint32) if words else np.zeros(0, _DTYPES[width])
    one = self._one(addresses, width, access)
    if one is None:
      out = np.empty((len(addresses), width // 4), np.uint32) if words else np.empty(len(addresses), _DTYPES[width])
      for m, lanes in self._split(addresses, width, access):
        if m is None:
          for lane in lanes: out[lane:lane + 1].data.cast("B")[:] = self.read(int(addresses[lane]), width, access)
        else: out[lanes] = _load(m, (addresses[lanes] - np.uint64(m.start)).view(np.int64), width)
      return out
    return _load(one[0], one[1], width)

  def scatter(self, addresses: U64, values: npt.NDArray[Any], access: int = Access.WRITE) -> None:
    """Store values (u8, u16, u32 or u64 [n], or u32 [n, k]); where lanes meet in memory, the highest lane wins.

    Raises PageFault for the first lane at fault, its index in `.lane`; nothing is stored then.
    """
    if not len(addresses): return
    width = values.itemsize * (values.shape[1] if values.ndim == 2 else 1)
    one = self._one(addresses, width, access)
    if one is not None: return _store(one[0], one[1], values, width)
    groups = self._split(addresses, width, access)
    apart = [m for m, _ in groups if m is not None]
    if len(apart) == len(groups) and not _overlap(apart):
      for m, (_, lanes) in zip(apart, groups):
        _store(m, (addresses[lanes] - np.uint64(m.start)).view(np.int64), values[lanes], width)
    else:  # lanes of different groups may meet
      for at, value in zip(addresses.tolist(), values): self.write(at, value.tobytes(), access)

  def _split(self, addresses: U64, width: int, access: int) -> list[tuple[Mapping | None, npt.NDArray[np.intp]]]:
    """Lanes grouped by mapping, all checked; accesses that straddle two mappings come under None."""
    _, maps, starts = self._table
    index = np.searchsorted(starts, addresses, side="right") - 1
    ends = np.array([m.end for m in maps] or [0], np.uint64)
    legal = np.array([m.access & access == access for m in maps] or [False])
    inside = (index >= 0) & (addresses < ends[index])
    allowed = inside & legal[index]
    last = addresses + np.uint64(width - 1)
    whole = allowed & (last < ends[index])
    for lane in np.flatnonzero(~whole):
      at = int(addresses[lane])
      try:  # reading proves each page of an access that straddles two mappings
        if not inside[lane]: raise PageFault(at, Access.name(access), width)
        self.read(at, width, access)
      except PageFault as fault:
        fault.lane = int(lane)
        raise
    groups: list[tuple[Mapping | None, npt.NDArray[np.intp]]] = [
      (maps[i], np.flatnonzero(whole & (index == i))) for i in np.unique(index[whole])]
    return groups + ([(None, np.flatnonzero(~whole))] if not whole.all() else [])


def _overlap(maps: list[Mapping]) -> bool:
  """Whether two of these mappings show the same bytes."""
  parts = sorted((m.u8.ctypes.data, m.u8.size) for m in maps)
  return any(at + size > following for (at, size), (following, _) in zip(parts, parts[1:]))


def _load(m: Mapping, offsets: npt.NDArray[np.int64], width: int) -> npt.NDArray[Any]:
  """Elements of one mapping; all offsets are known to be inside."""
  if width == 1: return m.u8.take(offsets)
  if width == 2 and not (offsets & 1).any(): return m.u16.take(offsets >> 1)
  if width >= 4 and not (offsets & 3).any():
    if width == 4: return m.u32.take(offsets >> 2)
    if width == 8 and not (offsets & 7).any(): return m.u64.take(offsets >> 3)
    if width == 16 and not (offsets & 15).any(): return m.u32.reshape(-1, 4).take(offsets >> 4, axis=0)
    out = m.u32.take((offsets >> 2)[:, None] + np.arange(width // 4))
    return out.view(np.uint64).reshape(-1) if width == 8 else out
  raw = m.u8.take(offsets[:, None] + np.arange(width))
  return raw.view(np.uint32) if width > 8 else raw.view(_DTYPES[width]).reshape(-1)


def _store(m: Mapping, offsets: npt.NDArray[np.int64], values: npt.NDArray[Any], width: int) -> None:
  if width == 1: m.u8[offsets] = values
  elif width == 2 and not (offsets & 1).any(): m.u16[offsets >> 1] = values
  elif width == 4 and not (offsets & 3).any(): m.u32[offsets >> 2] = values.reshape(-1)
  elif width == 8 and values.ndim == 1 and not (offsets & 7).any(): m.u64[offsets >> 3] = values
  elif width >= 4 and not (offsets & 3).any():
    words = np.ascontiguousarray(values).view(np.uint32).reshape(len(offsets), width // 4)
    m.u32[(offsets >> 2)[:, None] + np.arange(width // 4)] = words
  else:
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(len(offsets), width)
    m.u8[offsets[:, None] + np.arange(width)] = raw
