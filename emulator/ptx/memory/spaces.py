"""The state spaces: global, constant and kernel parameters in GPU memory; shared memory of blocks, stacks of threads.

A generic address is one of GPU memory, or in the window of shared memory or of the thread's stack. Every access is
checked: by page tables, the sizes of shared memory and stack, and its alignment.
"""
from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import MachineFault, PageFault
from tinyhw.emulator.memory import access
from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.values.ops import U64
from tinyhw.emulator.values.ops import Array as Value

SHARED_WINDOW: Final = 0x7000_0000_0000
LOCAL_WINDOW: Final = 0x7100_0000_0000
WINDOW: Final = 1 << 32
RANK: Final = 24  # the bit where an address of shared::cluster has its block's rank, plus 1; 0 is the own block
LARGE: Final = 1 << 22  # bytes from which pages are asked of the system
SOME: Final = 64  # bytes of a string that are read at once
STACK: Final = 1 << 16  # bytes of a thread's stack where calls come back, or sizes are not known before
_U64: Final = np.dtype("u8")
_RAW: Final[dict[int, Any]] = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8")}
_WINDOWS: Final = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
GENERIC: Final = ""


def space_of(modifiers: frozenset[str]) -> str:
  """The state space of an instruction: "" for generic addresses."""
  for m in modifiers:
    name = m.partition("::")[0]
    if name in {"shared", "local", "global", "const", "param"}: return name
  return GENERIC


def _pages(size: int) -> Value:
  """Zeros, whose pages exist once written. Threads write at the beginnings of stacks that lie far apart: the large
  pages that NumPy asks for would have to be cleared as a whole, a hundred times what is used."""
  if size < LARGE or not hasattr(mmap, "MADV_NOHUGEPAGE"): return np.zeros(size, np.uint8)
  pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0))
  pages.madvise(mmap.MADV_NOHUGEPAGE)
  return np.frombuffer(pages, np.uint8)


class Local:
  """The stacks of a cohort's threads: `size` bytes each, one behind the other. Their pages exist once written."""

  def __init__(self, threads: int, size: int) -> None:
    self.size = self.aligned(size)
    self.u8 = _pages(threads * self.size)

  @staticmethod
  def aligned(size: int) -> int:
    """Bytes of a stack that has to have so many."""
    return max(16, -(-size // 16) * 16)


def reserve(group: Warps, end: int) -> None:
  """Raises MachineFault where a call would need more stack than there is."""
  if end > group.cohort.local.size:
    raise MachineFault(f"the stack of a thread has {group.cohort.local.size:,} bytes, a call needs {end:,}",
                       wave=int(group.waves[0]), lane=int(group.lanes[0].argmax()),
                       hint="an endless recursion")


# ---- faults

def fault(group: Warps, bad: Value, addresses: Value, text: str) -> MachineFault:
  """The fault of the first lane that is bad, at its address."""
  flat, at = _first(group, bad)
  address = int(np.broadcast_to(addresses, (group.size, LANES))[at])
  return MachineFault(f"{text}: {address:#x}", address=address, lane=flat)


def _first(group: Warps, bad: Value) -> tuple[int, tuple[int, int]]:
  """(index of the first lane at fault counted over all warps of the group, (row, lane))."""
  where = np.broadcast_to(bad, (group.size, LANES)) & group.lanes
  row, lane = map(int, np.argwhere(where)[0])
  return row * LANES + lane, (row, lane)


def lane_of(group: Warps, bad: Value | bool = True) -> int:
  """The first thread of a group that is bad, counted over all its warps: the `lane` of a fault."""
  return _first(group, np.asarray(bad))[0]


def check_alignment(group: Warps, addresses: Value, width: int, what: str) -> None:
  """Raises MachineFault for the first address that is no multiple of the access's width."""
  together = int(np.bitwise_or.reduce(addresses, axis=None) if addresses.ndim else addresses)
  if not together & width - 1: return
  bad = (addresses & addresses.dtype.type(width - 1)) != 0
  lanes = np.broadcast_to(bad, (group.size, LANES)) & group.lanes
  if not lanes.any(): return
  flat, at = _first(group, bad)
  address = int(np.broadcast_to(addresses, (group.size, LANES))[at])
  raise MachineFault(f"misaligned {what} of {width} bytes at {address:#x}", address=address, lane=flat)


def _inside(group: Warps, addresses: Value, width: int, size: int, what: str, space: str) -> Value:
  """The addresses as offsets (intp), all of them within `size`: those of threads that do not count may be 0."""
  offsets = np.asarray(addresses).astype(np.int64)
  if addresses.dtype.kind == "u" and int(addresses.max()) + width <= size: return offsets
  if not offsets.ndim or group.mask is None: low, high = int(offsets.min()), int(offsets.max())
  else:
    use = access.active(group, offsets.shape)
    assert use is not None
    offsets = np.where(use, offsets, 0)
    low, high = int(offsets.min()), int(offsets.max())
  if low < 0 or high + width > size:
    bad = (offsets < 0) | (offsets + width > size)
    flat, at = _first(group, bad)
    address = int(np.broadcast_to(addresses, (group.size, LANES))[at])
    raise MachineFault(f"{what} of {width} bytes at {address:#x} of {space} memory, which has {size:,} bytes",
                       address=address, lane=flat)
  return offsets


def places(group: Warps, addresses: Value, width: int, space: str, what: str) -> tuple[Value, Value]:
  """(memory as u8, index into it) of shared memory or the stacks."""
  cohort = group.cohort
  if space == "shared":
    if cohort.shared.clustered > 1 and int(np.max(addresses)) >> RANK:
      return cohort.lds, _far(group, addresses, width, what)
    offsets = _inside(group, addresses, width, cohort.shared.total, what, "shared")
    slots = group.workgroups
    if len(cohort.threads) == 1: return cohort.lds, offsets
    return cohort.lds, offsets + (slots * cohort.lds_size)[:, None]
  offsets = _inside(group, addresses, width, cohort.local.size, what, "local")
  threads = cohort.row(group)[:, None] * LANES + np.arange(LANES)[None, :]
  return cohort.local.u8, offsets + threads * cohort.local.size


def _far(group: Warps, addresses: Value, width: int, what: str) -> Value:
  """Indices of addresses of which some are in other blocks of the cluster."""
  cohort, use = group.cohort, group.lanes
  given = np.where(use, np.broadcast_to(addresses, (group.size, LANES)), 0).astype(np.int64)
  offsets = _inside(group, given & (1 << RANK) - 1, width, cohort.shared.total, what, "shared")
  slots = block_of(group, group.workgroups[:, None], given >> RANK)
  bad = (slots < 0) & use
  if bad.any():
    raise fault(group, bad, given, f"{what} of shared memory of a block that the cluster has not, or that has ended")
  return offsets + np.where(use, slots, 0) * cohort.lds_size


def block_of(group: Warps, own: Value, rank: Value) -> Value:
  """The block, counted in the cohort, that a rank field of an address means for a block; -1 for none that lives."""
  cohort, size = group.cohort, group.cohort.shared.clustered
  slots = np.where(rank == 0, own, own // size * size + rank - 1)
  good = (rank <= size) & (cohort.threads[np.where(rank <= size, slots, 0)] > 0)
  return np.where(good, slots, -1)


def _taken(memory: Value, index: Value, width: int) -> Value:
  """Values at an index that is a multiple of the width."""
  if width <= 8:
    unit = memory if width == 1 else memory.view(_RAW[width])
    return unit.take(index >> width.bit_length() - 1 if width > 1 else index)
  return memory.view(np.uint32).reshape(-1, width // 4).take(index >> width.bit_length() - 1, axis=0)


def _wide(addresses: Value) -> Value:
  """Addresses as u64: a number, or an array."""
  return addresses if addresses.dtype == _U64 else addresses.astype(_U64)


# ---- loads and stores of a width of 1 to 16 bytes

def load(group: Warps, space: str, addresses: Value, width: int) -> Value:
  """u8, u16, u32 or u64 of the shape of the addresses, or broadcast over warps; 16 bytes are u32 [..., 4]."""
  if space in {"shared", "local"}:
    check_alignment(group, addresses, width, "read")
    watch(group, space, "load", addresses, width)
    memory, index = places(group, addresses, width, space, "read")
    found = _taken(memory, index, width)
    return found if found.ndim else found[()]
  addresses = _wide(addresses)
  if space == GENERIC:
    parts = parted(group, addresses)
    if parts is not None: return _load_parts(group, parts, addresses, width)
  check_alignment(group, addresses, width, "read")
  return access.load(group, None, addresses, width)


def parted(group: Warps, addresses: Value) -> list[tuple[str, Value]] | None:
  """(space, lanes) of generic addresses; None where all are in global memory."""
  if not int(addresses.max()) >= SHARED_WINDOW: return None
  out = []
  rest = np.ones(addresses.shape, bool)
  for space, base in _WINDOWS.items():
    here = (addresses >= np.uint64(base)) & (addresses < np.uint64(base + WINDOW))
    out.append((space, here))
    rest &= ~here
  out.append(("global", rest))
  return [(s, np.broadcast_to(h, (group.size, LANES)) & group.lanes) for s, h in out]


def _in_window(space: str, addresses: Value) -> Value:
  return addresses - np.uint64(_WINDOWS[space]) if space in _WINDOWS else addresses


def _load_parts(group: Warps, parts: list[tuple[str, Value]], addresses: Value, width: int) -> Value:
  mask, out = group.mask, None
  try:
    for space, lanes in parts:
      if not lanes.any(): continue
      group.mask = None if lanes.all() else lanes
      found = load(group, space, _in_window(space, addresses), width)
      keep = lanes[..., None] if width > 8 else lanes
      out = found if out is None else np.where(keep, found, out)
  finally: group.mask = mask
  assert out is not None
  return out


def store(group: Warps, space: str, addresses: Value, values: Value, width: int) -> None:
  """Store u8 to u64 of any form, or u32 [waves, lanes, 4] for 16 bytes. The highest thread wins at one address."""
  if access.nobody(group): return
  if space in {"shared", "local"}:
    check_alignment(group, addresses, width, "write")
    watch(group, space, "store", addresses, width, values)
    memory, index = places(group, addresses, width, space, "write")
    data, index = _picked(group, values, width), np.broadcast_to(index, (group.size, LANES))
    index = index.reshape(-1) if group.mask is None else index[group.lanes]
    unit = memory.view(_RAW[width]) if width <= 8 else memory.view(np.uint32).reshape(-1, width // 4)
    access.replace_in(group, unit, index // width, data)
    return
  addresses = _wide(addresses)
  if space == GENERIC:
    parts = parted(group, addresses)
    if parts is not None:
      mask = group.mask
      try:
        for part, lanes in parts:
          if not lanes.any(): continue
          group.mask = None if lanes.all() else lanes
          store(group, part, _in_window(part, addresses), values, width)
      finally: group.mask = mask
      return
  check_alignment(group, addresses, width, "write")
  if group.cohort.observer is not None:
    access.show(group, "global", "store", addresses, width, data=_bytes(group, values, width))
  at = np.broadcast_to(addresses, (group.size, LANES))
  at = at.reshape(-1) if group.mask is None else at[group.lanes]
  data = _picked(group, values, width)
  access.note_store(group, at, data)
  try: group.space.scatter(at, data)
  except PageFault as fault:
    if group.mask is not None and fault.lane is not None:
      fault.lane = int(np.flatnonzero(group.lanes.reshape(-1))[fault.lane])
    raise


def _picked(group: Warps, values: Value, width: int) -> Value:
  """The values of the threads that count, in order."""
  if width > 8:
    full = np.broadcast_to(values, (group.size, LANES, width // 4))
    return full.reshape(-1, width // 4) if group.mask is None else full[group.lanes]
  full = np.broadcast_to(values, (group.size, LANES))
  return full.reshape(-1) if group.mask is None else full[group.lanes]


def _bytes(group: Warps, values: Value, width: int) -> Value:
  """Values of a store as bytes [waves, lanes, width]."""
  shape = (group.size, LANES, width // 4) if width > 8 else (group.size, LANES)
  return np.ascontiguousarray(np.broadcast_to(values, shape)).view(np.uint8).reshape(group.size, LANES, width)


def watch(group: Warps, space: str, kind: str, addresses: Value, width: int, values: Value | None = None) -> None:
  """Show an access to shared memory or the stack to the observer, if there is one."""
  if group.cohort.observer is None: return
  access.show(group, "lds" if space == "shared" else "scratch", kind, addresses, width,
              data=None if values is None else _bytes(group, values, width))


# ---- the stack, for calls

def get_local(group: Warps, address: Value, size: int) -> Value:
  """A value of 1 to 8 bytes of each thread's stack."""
  return load(group, "local", address, size)


def put_local(group: Warps, address: Value, value: Value) -> None:
  """Store a value of 1 to 8 bytes in each thread's stack."""
  raw = value.view(_RAW[value.dtype.itemsize])
  store(group, "local", address, raw, raw.dtype.itemsize)


def copy_local(group: Warps, source: int, target: int, size: int) -> None:
  """Copy bytes of each thread's stack."""
  at = 0
  while at < size:
    width = next(w for w in (8, 4, 2, 1) if not (source + at | target + at) % w and at + w <= size)
    store(group, "local", U64.type(target + at), load(group, "local", U64.type(source + at), width), width)
    at += width


def read_generic(group: Warps, address: int, size: int, row: int, lane: int) -> bytes:
  """Bytes at a generic address as one thread has them. Raises MachineFault."""
  for space, start in _WINDOWS.items():
    if not start <= address < start + WINDOW: continue
    lanes = np.zeros((1, LANES), bool)
    lanes[0, lane] = True
    one = group.part(np.array([row]), lanes, group.pc)
    width = size if size in _RAW and not address % size else 1
    offsets = range(address - start, address - start + size, width)
    found = [np.broadcast_to(load(one, space, U64.type(at), width), (1, LANES))[0, lane] for at in offsets]
    return b"".join(x.tobytes() for x in found)
  return bytes(group.space.read(address, size))


def read_some(group: Warps, address: int, row: int, lane: int) -> bytes:
  """One byte at a generic address, and of GPU memory some behind it. Raises MachineFault."""
  if address < SHARED_WINDOW or address >= LOCAL_WINDOW + WINDOW:
    try: return bytes(group.space.read(address, SOME - address % SOME))
    except PageFault: pass  # it says where the first of them is
  return read_generic(group, address, 1, row, lane)


# ---- atomics

def atomic(group: Warps, space: str, addresses: Value, width: int, operation: str, data: Value, compare: Value | None,
           want: bool) -> Value | None:
  """A read-modify-write of 4 or 8 bytes in the order of the threads; old values [waves, lanes] where wanted."""
  if space == "shared":
    check_alignment(group, addresses, width, "atomic")
    watch(group, space, "atomic", addresses, width)
    memory, index = places(group, addresses, width, space, "atomic")
    lanes = group.lanes
    index = np.broadcast_to(index, (group.size, LANES))[lanes] // width
    def pick(x: Value) -> Value: return np.broadcast_to(x, (group.size, LANES))[lanes]
    old = access.changed(group, memory.view(_RAW[width]), index, operation, pick(data),
                         None if compare is None else pick(compare), want)
    if old is None or not want: return None
    out = np.zeros((group.size, LANES), old.dtype)
    out[lanes] = old
    return out
  addresses = _wide(addresses)
  if space == GENERIC:
    parts = parted(group, addresses)
    if parts is not None:
      mask = group.mask
      merged: Value | None = None
      try:
        for part, lanes in parts:
          if not lanes.any(): continue
          group.mask = None if lanes.all() else lanes
          if part == "local": raise MachineFault("an atomic on local memory", lane=lane_of(group))
          found = atomic(group, part, _in_window(part, addresses), width, operation, data, compare, want)
          merged = found if merged is None or found is None else np.where(lanes, found, merged)
      finally: group.mask = mask
      return merged
  check_alignment(group, addresses, width, "atomic")
  return access.atomic(group, addresses, width, operation, data, compare, want)


def serial(group: Warps, space: str, addresses: Value, width: int,
           modify: Callable[[Value, tuple[int, int]], Value]) -> Value:
  """A read-modify-write of any width, thread by thread: `modify(old, (row, lane)) -> new`; the old values. Observers
  are shown one atomic."""
  cohort, observer = group.cohort, group.cohort.observer
  if observer is not None: _announce(group, space, addresses, width)
  wide = width == 16
  out: Value = np.zeros((group.size, LANES, 4) if wide else (group.size, LANES), np.uint32 if wide else _RAW[width])
  mask = group.mask
  lanes = group.lanes
  cohort.observer = None
  try:
    for row, lane in np.argwhere(lanes).tolist():
      one = np.zeros((group.size, LANES), bool)
      one[row, lane] = True
      group.mask = one
      old = np.broadcast_to(load(group, space, addresses, width), out.shape)
      out[row, lane] = old[row, lane]
      new = np.zeros_like(out)
      new[row, lane] = modify(old[row, lane], (row, lane))
      store(group, space, addresses, new, width)
  finally: group.mask, cohort.observer = mask, observer
  return out


def _announce(group: Warps, space: str, addresses: Value, width: int) -> None:
  """Show an atomic to the observer, which there is."""
  addresses, mask = np.asarray(addresses), group.mask
  parts = parted(group, addresses.astype(np.uint64)) if space == GENERIC else None
  try:
    for part, lanes in parts if parts is not None else [(space, group.lanes)]:
      if not lanes.any(): continue
      group.mask = lanes
      at = _in_window(part, addresses) if parts is not None else addresses
      access.show(group, {"shared": "lds", "local": "scratch"}.get(part, "global"), "atomic", at, width)
  finally: group.mask = mask
