"""Binds loads, stores and atomics of lanes: global_, flat_ and scratch_ instructions (RDNA3 ISA manual, chapter 11)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tinyhw.core.errors import MachineFault
from tinyhw.emulator.amdgcn.binders import unsupported
from tinyhw.emulator.amdgcn.memory.tables import GLOBAL_BY_LANE, LOADS, STORES, VECTOR_ATOMICS
from tinyhw.emulator.amdgcn.memory.words import (
  Loader,
  byte_offset,
  data_reader,
  flat_offset,
  split,
  wide,
  write_loaded,
  write_words,
)
from tinyhw.emulator.amdgcn.registers import Reader, base_address, scalar32, vector32, vector64
from tinyhw.emulator.memory import access
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.simt import Group, Step, full, need_lanes
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction

_32: Final = np.uint64(32)


# ---- addresses

Address = Callable[[Group], tuple[int | None, Value]]


def global_address(i: Instruction) -> Address:
  """saddr + zero-extended vaddr + offset, or a 64-bit vaddr + offset."""
  offset = byte_offset(i)
  n = i.operands["vaddr"].value
  if "saddr" not in i.operands:
    read, shift = vector64(n, U64), np.uint64(offset & (1 << 64) - 1)
    return lambda group: (None, read(group) + shift)
  base, lanes_offset = base_address(i.operands["saddr"].value), vector32(n, U32)

  def address(group: Group) -> tuple[int | None, Value]:
    b, o = base(group), lanes_offset(group)
    if type(b) is int: return b + offset & (1 << 64) - 1, o
    return None, b + o.astype(U64) + np.uint64(offset & (1 << 64) - 1)
  return address


def scratch_offset(i: Instruction) -> Reader:
  """Offset of each lane in its scratch: vaddr + saddr + offset, those that the form has."""
  offset: Value = U32.type(byte_offset(i) & 0xFFFFFFFF)
  parts: list[Reader] = []
  if "vaddr" in i.operands: parts.append(vector32(i.operands["vaddr"].value, U32))
  if "saddr" in i.operands: parts.append(scalar32(i.operands["saddr"].value))
  if not parts: return lambda group: offset
  if len(parts) == 1: return lambda group: parts[0](group) + offset
  return lambda group: parts[0](group) + parts[1](group) + offset


# ---- loads, stores and atomics of each segment

def bind(i: Instruction, pc: int, mode: int) -> Step:
  """The step of a global_, flat_ or scratch_ instruction. Raises Unsupported for one without meaning."""
  segment = i.mnemonic.partition("_")[0]
  if i.mnemonic in LOADS:
    width, sign_bits, half = LOADS[i.mnemonic]
    write = write_loaded(i.operands["vdst"].value, sign_bits, half)
    fetch = fetcher(i, segment, width)

    def load(group: Group) -> None:
      if access.nobody(group): return
      write(group, fetch(group))
    return load
  if i.mnemonic in STORES:
    width, shift = STORES[i.mnemonic]
    data = data_reader(i.operands["vdata"].value, width, shift)
    put = _put(i, segment, width)
    return lambda group: put(group, data(group))
  if i.mnemonic in VECTOR_ATOMICS and segment != "scratch": return _vector_atomic(i, segment)
  if i.mnemonic in GLOBAL_BY_LANE: return _global_by_lane(i)
  raise unsupported(i, pc)


def _global_by_lane(i: Instruction) -> Step:
  """Dword `lane` at saddr + offset."""
  offset = np.uint64(byte_offset(i) & (1 << 64) - 1)
  base = base_address(i.operands["saddr"].value) if "saddr" in i.operands else None

  def address(group: Group) -> Value:
    start = np.uint64(0) if base is None else np.asarray(base(group), U64)
    return start + offset + np.arange(group.cohort.lanes, dtype=U64)[None, :] * np.uint64(4)

  if i.mnemonic == "global_load_addtid_b32":
    n = i.operands["vdst"].value

    def load(group: Group) -> None:
      if access.nobody(group): return
      write_words(group, n, access.words_of(access.load(group, None, address(group), 4), 4))
    return load
  data = data_reader(i.operands["vdata"].value, 4)
  return lambda group: access.store(group, None, address(group), data(group), 4)


def fetcher(i: Instruction, segment: str, width: int) -> Loader:
  """Loads dwords, or one zero-extended smaller value, of a segment: global, scratch or flat."""
  if segment == "global":
    address = global_address(i)
    return lambda group: access.words_of(access.load(group, *address(group), width), width)
  if segment == "scratch":
    offset = scratch_offset(i)
    return lambda group: access.scratch_load(group, offset(group), width)
  return flat_fetch(i, width)


def _put(i: Instruction, segment: str, width: int) -> Callable[[Group, list[Value]], None]:
  if segment == "global":
    address = global_address(i)

    def put(group: Group, words: list[Value]) -> None: access.store(group, *address(group), words, width)
    return put
  if segment == "scratch":
    offset = scratch_offset(i)
    return lambda group, words: access.scratch_store(group, offset(group), words, width)
  return flat_put(i, width)


def _flat_address(i: Instruction) -> Reader:
  read, offset = vector64(i.operands["vaddr"].value, U64), np.uint64(flat_offset(i) & (1 << 64) - 1)
  return lambda group: read(group) + offset


def _apertures(group: Group, address: Value) -> tuple[Value, Value] | None:
  """Which lanes point into LDS and which into scratch; None when no lane does."""
  high = address >> _32
  arch = group.cohort.arch
  lds, private = high == np.uint64(arch.shared_aperture >> 32), high == np.uint64(arch.private_aperture >> 32)
  return (lds, private) if np.any(lds) or np.any(private) else None


def _each_part(group: Group, address: Value, parts: tuple[Value, Value],
               run: Callable[[str, Value], None]) -> None:
  """Call `run(segment, address)` under a mask for the lanes of each segment."""
  mask, everyone = group.mask, need_lanes(group)
  lds, private = parts
  for segment, chosen in (("lds", lds), ("scratch", private), ("global", ~(lds | private))):
    lanes = full(group, chosen) & everyone
    if not lanes.any(): continue
    group.mask = lanes
    try: run(segment, address)
    finally: group.mask = mask


def flat_fetch(i: Instruction, width: int) -> Loader:
  """Loads from flat addresses, each in memory, in LDS or in scratch."""
  address_of = _flat_address(i)

  def fetch(group: Group) -> list[Value]:
    address = address_of(group)
    parts = _apertures(group, address)
    if parts is None: return access.words_of(access.load(group, None, address, width), width)
    out: list[Value] = [U32.type(0)] * max(1, width // 4)

    def run(segment: str, at: Value) -> None:
      if segment == "lds": words = access.lds_load(group, at.astype(U32), width)
      elif segment == "scratch": words = access.scratch_load(group, at.astype(U32), width)
      else: words = access.words_of(access.load(group, None, at, width), width)
      assert group.mask is not None
      for k, w in enumerate(words): out[k] = np.where(group.mask, w, out[k])
    _each_part(group, address, parts, run)
    return out
  return fetch


def flat_put(i: Instruction, width: int) -> Callable[[Group, list[Value]], None]:
  """Stores to flat addresses, each in memory, in LDS or in scratch."""
  address_of = _flat_address(i)

  def put(group: Group, words: list[Value]) -> None:
    address = address_of(group)
    parts = _apertures(group, address)
    if parts is None: return access.store(group, None, address, words, width)

    def run(segment: str, at: Value) -> None:
      if segment == "lds": access.lds_store(group, at.astype(U32), words, width)
      elif segment == "scratch": access.scratch_store(group, at.astype(U32), words, width)
      else: access.store(group, None, at, words, width)
    _each_part(group, address, parts, run)
  return put


def returns(i: Instruction) -> bool:
  """Whether an atomic of a vector memory family gives back the old value."""
  return bool(i.get("cpol") & 1)


def _vector_atomic(i: Instruction, segment: str) -> Step:
  operation, width = VECTOR_ATOMICS[i.mnemonic]
  count = width // 4
  want = returns(i)
  n = i.operands["vdata"].value
  data_of = data_reader(n, width)
  compare_of = data_reader(n + count, width) if ATOMICS[operation].compares else None
  destination = i.operands["vdst"].value if want and "vdst" in i.operands else n
  plain = global_address(i) if segment == "global" else None
  flat = _flat_address(i) if segment == "flat" else None

  def step(group: Group) -> None:
    data = wide(data_of(group))
    compare = None if compare_of is None else wide(compare_of(group))
    if flat is not None: old = flat_atomic(group, flat(group), width, operation, data, compare, want)
    else:
      assert plain is not None
      base, offsets = plain(group)
      address = offsets if base is None else np.uint64(base) + offsets.astype(U64)
      old = access.atomic(group, address, width, operation, data, compare, want)
    if old is not None: write_words(group, destination, split(old))
  return step


def flat_atomic(group: Group, address: Value, width: int, operation: str, data: Value, compare: Value | None,
                want: bool) -> Value | None:
  """An atomic at flat addresses, each in global memory or in LDS. Returns old values or None."""
  parts = _apertures(group, address)
  if parts is None: return access.atomic(group, address, width, operation, data, compare, want)
  out: list[Value] = [np.zeros((group.size, group.cohort.lanes), data.dtype)]

  def run(segment: str, at: Value) -> None:
    if segment == "scratch": raise MachineFault("an atomic on scratch memory")
    if segment == "lds": old = access.lds_atomic(group, at.astype(U32), width, operation, data, compare, want)
    else: old = access.atomic(group, at, width, operation, data, compare, want)
    if old is not None and group.mask is not None: out[0] = np.where(group.mask, old, out[0])
  _each_part(group, address, parts, run)
  return out[0] if want else None
