"""Vector accesses to memory, LDS and scratch: many lanes at once, with exact faults, and atomics in lane order.

A group with a `memory` of its own has that one asked instead: `load(width)` gives dwords and `whole(width)` all of them
as `load` here does, `store(words, width)` takes dwords, `atomic(width, operation, data, compare)` gives the old value.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import MachineFault, PageFault
from tinyhw.core.memory import Access, AddressSpace, Mapping
from tinyhw.emulator import observe, view
from tinyhw.emulator.memory.atomics import modify
from tinyhw.emulator.simt import Group, full
from tinyhw.emulator.values.ops import TRUE, U32, U64
from tinyhw.emulator.values.ops import Array as Value

_UNITS: Final[dict[int, Any]] = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: U32, 8: U64}
_32: Final = np.uint64(32)


# ---- what observers are shown

def show(group: Group, segment: str, kind: str, addresses: Value, width: int, inside: Value | bool = True,
         data: Value | None = None) -> None:
  """Show the access of the current instruction to the observer, which there is. `inside` leaves out more lanes."""
  shape = group.size, 1 if segment == "scalar" else group.cohort.lanes
  active = np.broadcast_to(np.asarray(inside), shape)
  out = ~active
  if group.mask is not None and segment != "scalar": active, out = active & group.mask, out & group.mask
  observer, (pc, i) = group.cohort.observer, group.cohort.seen
  assert observer is not None
  addresses = np.broadcast_to(np.asarray(addresses).astype(U64), shape)
  touched = observe.Access(segment, kind, addresses, width, active, data)
  observer.access(group, pc, i, touched)
  if segment == "lds" and out.any(): observer.outside(group, pc, i, replace(touched, active=out))


def show_global(group: Group, kind: str, base: int | None, offsets: Value, width: int,
                data: Value | None = None) -> None:
  """The same for global memory, whose addresses are a base with u32 offsets, or u64."""
  show(group, "global", kind, offsets if base is None else np.uint64(base) + offsets.astype(U64), width, data=data)


def _stored(group: Group, words: list[Value], width: int) -> Value:
  """The bytes of dwords [waves, lanes, width]."""
  return np.stack([full(group, w.view(U32)) for w in words], axis=2).view(np.uint8)[:, :, :width]


# ---- active lanes

def active(group: Group, shape: tuple[int, ...]) -> Value | None:
  """Which elements of an address of this shape some active lane uses: bools of the shape, or None for all."""
  mask = group.mask
  if mask is None or not shape: return None
  if shape[1] == 1: mask = np.logical_or.reduce(mask, axis=1, keepdims=True)
  if shape[0] == 1: mask = np.logical_or.reduce(mask, axis=0, keepdims=True)
  return np.broadcast_to(mask, shape)


def nobody(group: Group) -> bool: return group.mask is not None and not group.mask.any()


def _without_inactive(addresses: Value, use: Value | None) -> Value:
  """Addresses where the unused ones repeat a used one, so that they cannot fault."""
  if use is None: return addresses
  return np.where(use, addresses, addresses.reshape(-1)[use.reshape(-1).argmax()])


def _relocated(fault: PageFault, group: Group, shape: tuple[int, ...]) -> PageFault:
  """The fault with its lane counted as wave * lanes + lane."""
  lanes = group.cohort.lanes
  flat = fault.lane or 0
  wave, lane = (flat // shape[1], flat % shape[1]) if shape else (0, 0)
  if (not shape or shape[1] == 1) and group.mask is not None:
    row = group.mask[wave if group.mask.shape[0] > 1 else 0]
    lane = int(row.argmax())
  fault.lane = wave * lanes + lane
  if group.mask is not None:
    on = full(group, group.mask).reshape(-1)
    if not on[fault.lane]: fault.lane = int(on.argmax())  # an inactive lane stood in for the first active one
  return fault


# ---- global memory: an address is a uniform base (int) with u32 offsets, or u64 addresses

def _window(space: AddressSpace, base: int, offsets: Value, width: int, access: int) -> tuple[Mapping, int, int] | None:
  """(mapping, offset of base in it, common low bits) where one mapping serves all offsets from a base inside it."""
  m = space.find(base)
  if m is None or m.access & access != access or base + int(offsets.max()) + width > m.end: return None
  at = base - m.start
  return m, at, at | int(np.bitwise_or.reduce(offsets, axis=None))


def load(group: Group, base: int | None, offsets: Value, width: int) -> Value:
  """`width` bytes at each address: u8, u16, u32 or u64 of the shape of `offsets`; for 12 and 16 bytes u32 [..., words].

  With `base` None, `offsets` are u64 addresses. Elements of inactive lanes are arbitrary.
  """
  if group.memory is not None: return group.memory.whole(width)
  if group.cohort.observer is not None: show_global(group, "load", base, offsets, width)
  return fetch(group, base, offsets, width)


def fetch(group: Group, base: int | None, offsets: Value, width: int, kind: str = "vector") -> Value:
  """`load`, not shown to observers."""
  if group.cohort.view is not None: return _viewed(group, base, offsets, width, kind)
  use = active(group, offsets.shape)
  offsets = _without_inactive(offsets, use)
  space: AddressSpace = group.space
  if base is not None:
    if offsets.ndim == 0: offsets = np.uint64(base) + offsets.astype(U64)
    else:
      found = _window(space, base, offsets, width, Access.READ)
      if found is not None:
        value = _load_window(*found, offsets, width)
        if value is not None: return value
      offsets = np.uint64(base) + offsets.astype(U64)
  if offsets.ndim == 0 and width <= 8: return _UNITS[width].type(_scalar_load(group, int(offsets), width))
  shape = offsets.shape
  try: flat = space.gather(offsets.reshape(-1), width)
  except PageFault as fault: raise _relocated(fault, group, shape) from None
  return flat.reshape(*shape, *flat.shape[1:])


def _viewed(group: Group, base: int | None, offsets: Value, width: int, kind: str) -> Value:
  """`fetch` through caches."""
  addresses = offsets if base is None else np.uint64(base) + np.asarray(offsets).astype(U64)
  addresses = np.asarray(addresses)
  try: return view.loaded(group, addresses, width, group.mask, kind)
  except PageFault as fault:
    lanes = group.cohort.lanes
    columns = addresses.shape[-1] if addresses.shape else 1
    mask = full(group, TRUE if group.mask is None else group.mask)
    use = mask if columns > 1 else mask.any(axis=1, keepdims=True)
    wave, lane = np.argwhere(use)[fault.lane or 0].tolist()
    fault.lane = wave * lanes + (lane if columns > 1 else int(mask[wave].argmax()))
    raise


def _scalar_load(group: Group, address: int, width: int) -> int:
  try: return int(group.space.load(address, width))
  except PageFault as fault: raise _relocated(fault, group, ()) from None


def _load_window(m: Mapping, at: int, low: int, offsets: Value, width: int) -> Value | None:
  if width == 4 and not low & 3: return m.u32[at >> 2:].take(offsets >> 2)
  if width == 1: return m.u8[at:].take(offsets)
  if width == 2 and not low & 1: return m.u16[at >> 1:].take(offsets >> 1)
  if width == 8 and not low & 7: return m.u64[at >> 3:].take(offsets >> 3)
  if width == 16 and not low & 15: return m.u32.reshape(-1, 4)[at >> 4:].take(offsets >> 4, axis=0)
  return None


def words_of(value: Value, width: int) -> list[Value]:
  """The dwords of loaded values, as u32 of the address's shape."""
  if width <= 4: return [value.astype(U32) if width < 4 else value]
  if width == 8: return [value.astype(U32), (value >> _32).astype(U32)]
  return [value[..., k].copy() for k in range(width // 4)]


def store(group: Group, base: int | None, offsets: Value, words: list[Value], width: int) -> None:
  """Store dwords (or their low 1 or 2 bytes) at each active lane's address. The highest lane wins at one address."""
  if nobody(group): return
  if group.memory is not None: return group.memory.store(words, width)
  if group.cohort.observer is not None: show_global(group, "store", base, offsets, width, _stored(group, words, width))
  put(group, base, offsets, words, width)


def put(group: Group, base: int | None, offsets: Value, words: list[Value], width: int,
        kind: str = "vector") -> None:
  """`store`, not shown to observers, for a group with an active lane."""
  if group.cohort.changes.exact or group.cohort.view is not None: return _put(group, base, offsets, words, width, kind)
  group.cohort.changes.count += 1
  mask = group.mask
  if mask is None and base is not None and width == 4 and offsets.ndim and offsets.shape[0] == group.size \
      and offsets.shape[1] > 1:
    found = _window(group.space, base, offsets, 4, Access.WRITE)
    if found is not None and not found[2] & 3:
      m, at, _ = found
      index = (offsets >> 2).reshape(-1)
      value = words[0].view(U32)
      value = value.reshape(-1) if value.shape == offsets.shape else full(group, value).reshape(-1)
      count = index.size
      if count >= 1024 and int(index[-1]) - (first := int(index[0])) == count - 1 and (index[1:] > index[:-1]).all():
        start = (at >> 2) + first
        m.u32[start:start + count] = value
      else: m.u32[at >> 2:][index] = value
      return
  _put(group, base, offsets, words, width)


def _put(group: Group, base: int | None, offsets: Value, words: list[Value], width: int, kind: str = "vector") -> None:
  """`put` in any case."""
  mask = group.mask
  addresses = full(group, offsets if base is None else np.uint64(base) + offsets.astype(U64))
  lanes = None if mask is None else full(group, mask)
  columns = [full(group, w.view(U32)) for w in words]
  picked = addresses.reshape(-1) if lanes is None else addresses[lanes]
  data = [c.reshape(-1) if lanes is None else c[lanes] for c in columns]
  if width < 4: values: Value = data[0].astype(_UNITS[width])
  elif width == 4: values = data[0]
  else: values = np.stack(data, axis=1)
  if group.cohort.changes.exact or group.cohort.view is not None: note_store(group, picked, values)
  try:
    if group.cohort.view is None: group.space.scatter(picked, values)
    else: group.cohort.view.store(group, _rows(group, lanes), picked, values, kind)
  except PageFault as fault:
    if lanes is not None and fault.lane is not None: fault.lane = int(np.flatnonzero(lanes.reshape(-1))[fault.lane])
    raise


def _rows(group: Group, lanes: Value | None) -> Value:
  """The wave of each element that `lanes` (bools [waves, lanes], None for all) picks."""
  return np.repeat(np.arange(group.size), group.cohort.lanes) if lanes is None else np.nonzero(lanes)[0]


def note_store(group: Group, addresses: Value, values: Value) -> None:
  """Count a store that comes next as a change of memory, where it is one. `values` has a row for each address [n]."""
  changes = group.cohort.changes
  if changes.exact and values.size:
    try: found = group.space.gather(addresses, values.nbytes // len(addresses))
    except PageFault: pass  # it may be written and not read
    else:
      if np.ascontiguousarray(found).tobytes() == values.tobytes(): return
  changes.count += 1


def replace_in(group: Group, memory: Value, index: Value, values: Value) -> None:
  """Store values at the places of an array that is a memory, and count that as a change where it is one."""
  changes = group.cohort.changes
  if not changes.exact or (memory[index] != values).any(): changes.count += 1
  memory[index] = values


def changed(group: Group, cells: Value, index: Value, operation: str, data: Value, compare: Value | None,
            want: bool) -> Value | None:
  """`atomics.modify`, which counts as a change of memory where it is one."""
  before = cells[index]
  old = modify(cells, index, operation, data, compare, want)
  if (before != cells[index]).any(): group.cohort.changes.count += 1
  return old


# ---- LDS

def lds_offsets(group: Group, address: Value, width: int) -> tuple[Value, Value]:
  """(byte offset in the cohort's LDS, whether inside the workgroup's part) of u32 addresses.

  Active lanes outside are noted down: the chip says nothing, the caller of the launch must hear of it.
  """
  size = group.cohort.lds_size
  inside = address.astype(U64) + np.uint64(width) <= np.uint64(size)
  if np.all(inside): return lds_base(group) + address, inside
  lanes = full(group, ~np.asarray(inside))
  group.cohort.outside(full(group, address), width, lanes if group.mask is None else lanes & group.mask)
  return np.where(inside, lds_base(group) + address, np.uint32(0)), inside


def lds_base(group: Group) -> Value:
  """Start of each wave's workgroup in the cohort's LDS."""
  slots = group.workgroups
  first = slots[0]
  if (slots == first).all(): return U32.type(int(first) * group.cohort.lds_size)
  return (slots * group.cohort.lds_size).astype(U32)[:, None]


def _bytes_at(memory: Value, offsets: Value, width: int) -> Value:
  """Unaligned values out of a byte array: u8..u64 [...]."""
  raw = memory[offsets.reshape(-1).astype(np.intp)[:, None] + np.arange(width)]
  return raw.view(_UNITS[width]).reshape(offsets.shape)


def lds_load(group: Group, address: Value, width: int) -> list[Value]:
  """Dwords at LDS addresses; reads past the workgroup's LDS give 0 (RDNA3 ISA manual, section 12.2)."""
  if group.memory is not None: return group.memory.load(width)
  memory = group.cohort.lds
  shape = address.shape
  use = active(group, shape)
  address = _without_inactive(address, use) if not nobody(group) else address * 0
  offsets, inside = lds_offsets(group, address, width)
  if group.cohort.observer is not None: show(group, "lds", "load", address, width, inside)
  if not np.any(inside): return [np.zeros(shape, U32)[()] for _ in range(max(1, width // 4))]
  if width < 4: words = [np.asarray(_bytes_at(memory, np.asarray(offsets), width)).astype(U32)]
  else:
    index = np.asarray(offsets >> 2)
    if np.bitwise_or.reduce(np.asarray(offsets), axis=None) & 3:
      o = np.asarray(offsets)
      words = [_bytes_at(memory, o + np.uint32(4 * k), 4) for k in range(width // 4)]
    else:
      lds32 = group.cohort.lds32
      words = [lds32.take(index + k if k else index) for k in range(width // 4)]
  if not np.all(inside): words = [np.where(inside, w, np.uint32(0)) for w in words]
  return [w[()] if w.ndim == 0 else w for w in words]


def lds_store(group: Group, address: Value, words: list[Value], width: int) -> None:
  """Store at LDS addresses; writes past the workgroup's LDS are dropped."""
  if nobody(group): return
  if group.memory is not None: return group.memory.store(words, width)
  memory = group.cohort.lds
  offsets, inside = lds_offsets(group, address, width)
  if group.cohort.observer is not None:
    show(group, "lds", "store", address, width, inside, _stored(group, words, width))
  lanes = full(group, inside) if group.mask is None else full(group, inside) & group.mask
  everyone = bool(lanes.all())
  offsets = full(group, offsets)
  offsets = offsets.reshape(-1) if everyone else offsets[lanes]
  data = [full(group, w.view(U32)) for w in words]
  data = [w.reshape(-1) if everyone else w[lanes] for w in data]
  if width >= 4 and not np.bitwise_or.reduce(offsets, axis=None) & 3:
    index = offsets >> 2
    for k, w in enumerate(data): replace_in(group, group.cohort.lds32, index + np.uint32(k) if k else index, w)
    return
  raw = np.stack(data, axis=1).view(np.uint8)[:, :width]
  replace_in(group, memory, offsets.astype(np.intp)[:, None] + np.arange(width), raw)


# ---- scratch: each lane's dword k lies at base + k * 4 * lanes + lane * 4 (RDNA3 ISA manual, section 10.9.1)

def _scratch_addresses(group: Group, offsets: Value) -> Value:
  if group.scratch is None: raise MachineFault("a scratch access by a kernel that has no scratch memory")
  lanes = group.cohort.lanes
  o = full(group, offsets).astype(U64)
  lane = np.arange(lanes, dtype=U64)[None, :]
  size = group.cohort.dispatch.scratch_size
  use = active(group, o.shape)
  bad = o >= np.uint64(size) if use is None else use & (o >= np.uint64(size))
  if bad.any():
    flat = int(np.flatnonzero(bad)[0])
    where = int(o.reshape(-1)[flat])
    raise MachineFault(f"a scratch access at {where:#x}, past the {size:#x} bytes of a lane", lane=flat)
  return group.scratch + (o >> np.uint64(2)) * np.uint64(4 * lanes) + lane * np.uint64(4) + (o & np.uint64(3))


def scratch_load(group: Group, offsets: Value, width: int) -> list[Value]:
  """Dwords (or one zero-extended smaller value) at scratch offsets."""
  if nobody(group): return [U32.type(0)] * max(1, width // 4)
  if group.memory is not None: return group.memory.load(width)
  if group.cohort.observer is not None: show(group, "scratch", "load", offsets, width)
  offsets = _without_inactive(offsets, active(group, offsets.shape))
  step = min(width, 4)
  if np.bitwise_or.reduce(np.asarray(offsets), axis=None) & (step - 1):
    parts = [fetch(group, None, _scratch_addresses(group, offsets + np.uint32(k)), 1, "scratch").astype(U32)
             for k in range(width)]
    words = []
    for w in range(0, width, 4):
      word = parts[w]
      for k in range(1, min(4, width - w)): word = word | parts[w + k] << np.uint32(8 * k)
      words.append(word)
    return words
  return [fetch(group, None, _scratch_addresses(group, offsets + np.uint32(k)), step, "scratch").astype(U32)
          for k in range(0, width, step)]


def scratch_store(group: Group, offsets: Value, words: list[Value], width: int) -> None:
  """Store dwords (or the low 1 or 2 bytes) at scratch offsets."""
  if nobody(group): return
  if group.memory is not None: return group.memory.store(words, width)
  if group.cohort.observer is not None: show(group, "scratch", "store", offsets, width)
  step = min(width, 4)
  safe = _without_inactive(offsets, active(group, offsets.shape))
  if np.bitwise_or.reduce(np.asarray(safe), axis=None) & (step - 1):
    for k in range(width):
      byte = words[k // 4] >> np.uint32(8 * (k % 4))
      put(group, None, _scratch_addresses(group, offsets + np.uint32(k)), [byte], 1, "scratch")
    return
  for k, w in enumerate(words):
    put(group, None, _scratch_addresses(group, offsets + np.uint32(4 * k)), [w], step, "scratch")


# ---- atomics

def atomic(group: Group, addresses: Value, width: int, operation: str, data: Value, compare: Value | None,
           want: bool) -> Value | None:
  """An atomic on global memory at u64 addresses; data and compare are u32 or u64. Returns old values or None."""
  if nobody(group): return np.zeros((1, group.cohort.lanes), _UNITS[width]) if want else None
  if group.memory is not None: return group.memory.atomic(width, operation, data, compare)
  if group.cohort.observer is not None: show(group, "global", "atomic", addresses, width)
  space: AddressSpace = group.space
  lanes = None if group.mask is None else full(group, group.mask)
  def pick(x: Value) -> Value: return full(group, x).reshape(-1) if lanes is None else full(group, x)[lanes]
  at, values = pick(addresses), pick(data)
  wanted = None if compare is None else pick(compare)
  where = np.arange(group.size * group.cohort.lanes) if lanes is None else np.flatnonzero(lanes.reshape(-1))
  if (at & np.uint64(width - 1)).any():
    bad = int(np.flatnonzero(at & np.uint64(width - 1))[0])
    raise MachineFault(f"a misaligned atomic at {int(at[bad]):#x}", address=int(at[bad]), lane=int(where[bad]))
  out = np.empty(at.size, _UNITS[width])
  left = np.arange(at.size)
  pieces: list[tuple[Mapping, Value]] = []
  while left.size:
    first = int(at[left[0]])
    m = space.find(first)
    need = Access.READ | Access.WRITE
    if m is None or m.access & need != need:
      raise PageFault(first, "atomic", width, reason="not mapped" if m is None else "no permission",
                      lane=int(where[left[0]]))
    inside = (at[left] >= np.uint64(m.start)) & (at[left] < np.uint64(m.end))
    pieces.append((m, left[inside]))
    left = left[~inside]
  if group.cohort.view is not None:
    def modified(cells: Value, index: Value) -> Value | None:
      return changed(group, cells, index, operation, values, wanted, want)
    seen = group.cohort.view.atomic(group, _rows(group, lanes), at, width, modified)
    return _spread(group, seen, lanes) if want and seen is not None else None
  for m, chosen in pieces:
    memory = m.u32 if width == 4 else m.u64
    index = ((at[chosen] - np.uint64(m.start)) >> np.uint64(2 if width == 4 else 3)).astype(np.intp)
    old = changed(group, memory, index, operation, values[chosen], None if wanted is None else wanted[chosen], want)
    if old is not None: out[chosen] = old
  return _spread(group, out, lanes) if want else None


def _spread(group: Group, out: Value, lanes: Value | None) -> Value:
  shape = (group.size, group.cohort.lanes)
  if lanes is None: return out.reshape(shape)
  result = np.zeros(shape, out.dtype)
  result[lanes] = out
  return result


def lds_atomic(group: Group, address: Value, width: int, operation: str, data: Value, compare: Value | None,
               want: bool) -> Value | None:
  """An atomic on LDS; outside the workgroup's LDS nothing happens and 0 returns."""
  if nobody(group): return np.zeros((1, group.cohort.lanes), _UNITS[width]) if want else None
  if group.memory is not None: return group.memory.atomic(width, operation, data, compare)
  offsets, inside = lds_offsets(group, address, width)
  if group.cohort.observer is not None: show(group, "lds", "atomic", address, width, inside)
  lanes = full(group, inside) if group.mask is None else full(group, inside) & group.mask
  at = full(group, offsets)[lanes]
  if (at & np.uint32(width - 1)).any(): raise MachineFault("a misaligned LDS atomic")
  memory = group.cohort.lds32 if width == 4 else group.cohort.lds.view(U64)
  index = (at >> np.uint32(2 if width == 4 else 3)).astype(np.intp)
  old = changed(group, memory, index, operation, full(group, data)[lanes],
                None if compare is None else full(group, compare)[lanes], want)
  return _spread(group, old, lanes) if want and old is not None else None
