"""The global data share: one memory that all waves of a GPU see (RDNA3 ISA manual, sections 12.6 and 13.4).

An instruction with the gds bit acts for its first active lane alone, at M0's base + address + offset; M0's size limits
address + offset. What is stored there stays from one dispatch to the next, as long as the address space lives.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from tinyhw.core.errors import MachineFault
from tinyhw.emulator.amdgcn.registers import by_wave
from tinyhw.emulator.memory import access
from tinyhw.emulator.simt import Group, Step, full, need_lanes
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn.codes import M0

if TYPE_CHECKING:
  from tinyhw.core.memory import AddressSpace

_SHARES: Final[WeakKeyDictionary[AddressSpace, Value]] = WeakKeyDictionary()


class Share(NamedTuple):
  """How ds_ instructions reach a memory: loads of dwords, stores, atomics; the signatures are those of `access`."""
  load: Callable[[Group, Value, int], list[Value]]
  store: Callable[[Group, Value, list[Value], int], None]
  atomic: Callable[[Group, Value, int, str, Value, Value | None, bool], Value | None]


def of(space: AddressSpace, size: int) -> Value:
  """The global data share that programs of an address space see: u8 [size]; zeros at first."""
  known = _SHARES.get(space)
  if known is None or known.size != size: known = _SHARES[space] = np.zeros(size, np.uint8)
  return known


def copy(source: AddressSpace, target: AddressSpace) -> None:
  """Give an address space a copy of what another has there."""
  known = _SHARES.get(source)
  if known is not None: _SHARES[target] = known.copy()


def memory(group: Group) -> Value:
  """The memory as u8. Raises MachineFault on a chip that has none."""
  found = group.cohort.shared.gds
  if not found.size:
    raise MachineFault(f"{group.cohort.arch.name} has no global data share",
                       hint="its gds bit only means something to ds_gws_ instructions")
  return found


def _places(group: Group, address: Value, width: int) -> tuple[Value, Value]:
  """(places in the memory [n] of the active lanes that are inside, those lanes [waves, lanes])."""
  size, m0 = memory(group).size, group.s[M0]
  at = full(group, address.astype(U64))
  last = at + np.uint64(width)
  base = full(group, (m0 >> np.uint32(16)).astype(U64))
  inside = (last <= (m0 & np.uint32(0xFFFF)).astype(U64)) & (base + last <= np.uint64(size))
  lanes = need_lanes(group) & inside
  return (base + at)[lanes].astype(np.intp), lanes


def _show(group: Group, kind: str, address: Value, width: int, lanes: Value) -> None:
  if group.cohort.observer is None: return
  access.show(group, "gds", kind, address.astype(U64) + (group.s[M0] >> np.uint32(16)).astype(U64), width, lanes)


def load(group: Group, address: Value, width: int) -> list[Value]:
  """Dwords [waves, lanes], or one zero-extended smaller value; 0 past the end."""
  places, lanes = _places(group, address, width)
  _show(group, "load", address, width, lanes)
  raw = np.zeros((places.size, max(width, 4)), np.uint8)
  raw[:, :width] = memory(group)[places[:, None] + np.arange(width)]
  found = raw.view(U32)
  out = []
  for k in range(found.shape[1]):
    word = np.zeros(lanes.shape, U32)
    word[lanes] = found[:, k]
    out.append(word)
  return out


def store(group: Group, address: Value, words: list[Value], width: int) -> None:
  """Dwords, or the low 1 or 2 bytes; dropped past the end."""
  places, lanes = _places(group, address, width)
  _show(group, "store", address, width, lanes)
  raw = np.stack([full(group, w.view(U32))[lanes] for w in words], axis=1).view(np.uint8)
  access.replace_in(group, memory(group), places[:, None] + np.arange(width), raw[:, :width])


def atomic(group: Group, address: Value, width: int, operation: str, data: Value, compare: Value | None,
           want: bool) -> Value | None:
  """An atomic in the order of the waves; past the end nothing happens and 0 returns."""
  places, lanes = _places(group, address, width)
  _show(group, "atomic", address, width, lanes)
  if (places % width).any(): raise MachineFault("a misaligned atomic on the global data share")
  cells = memory(group).view(U32 if width == 4 else U64)
  old = access.changed(group, cells, places // width, operation, full(group, data)[lanes],
               None if compare is None else full(group, compare)[lanes], want)
  if not want or old is None: return None
  out = np.zeros(lanes.shape, old.dtype)
  out[lanes] = old
  return out


LDS: Final = Share(access.lds_load, access.lds_store, access.lds_atomic)
GDS: Final = Share(load, store, atomic)


def alone(step: Step) -> Step:
  """The step for the first active lane of each wave."""
  def run(group: Group) -> None:
    memory(group)
    mask, on = group.mask, need_lanes(group)
    if not on.any(): return
    group.mask = on & (np.cumsum(on, axis=1) == 1)
    try: step(group)
    finally: group.mask = mask
  return run


def count(sign: int, offset: int, write: Callable[[Group, list[Value]], None]) -> Step:
  """ds_append and ds_consume: each wave's number of active lanes, at M0's base + offset, whatever M0's size is."""
  def step(group: Group) -> None:
    cells, on = memory(group).view(U32), need_lanes(group)
    waves = on.any(axis=1)
    if not waves.any(): return
    at = by_wave(group, (group.s[M0] >> np.uint32(16)) + np.uint32(offset))
    first = on & (np.cumsum(on, axis=1) == 1)
    inside = waves & (at.astype(np.int64) + 4 <= cells.nbytes)
    if group.cohort.observer is not None: access.show(group, "gds", "atomic", at[:, None], 4, first & inside[:, None])
    if (at[inside] & np.uint32(3)).any(): raise MachineFault("a misaligned atomic on the global data share")
    added = (on.sum(axis=1, dtype=np.int64) * sign).astype(U32)[inside]
    old = np.zeros(group.size, U32)
    old[inside] = access.changed(group, cells, (at[inside] >> np.uint32(2)).astype(np.intp), "add", added, None,
                                 True)
    write(group, [full(group, old[:, None])])
  return step
