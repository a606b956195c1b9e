"""Binds ds_ instructions: on a workgroup's LDS, on the global data share, and between lanes (RDNA3 ISA manual, 12)."""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from tinyhw.emulator.amdgcn.binders import unsupported
from tinyhw.emulator.amdgcn.memory import gds
from tinyhw.emulator.amdgcn.memory.tables import DS_ATOMICS, DS_EXCHANGE_PAIRS, DS_LOADS, DS_PAIRS, DS_STORES
from tinyhw.emulator.amdgcn.memory.words import by_lane, data_reader, split, wide, write_loaded, write_words
from tinyhw.emulator.amdgcn.modes import denormals
from tinyhw.emulator.amdgcn.registers import vector32
from tinyhw.emulator.memory import access
from tinyhw.emulator.memory.atomics import FLUSHING
from tinyhw.emulator.simt import Group, Step, full, need_lanes
from tinyhw.emulator.values.ops import U32
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import M0

FLUSHED_EXTREMES: Final = frozenset({"gfx12"})  # tables whose minima and maxima in LDS are of the flushed numbers


def ds_atomic(i: Instruction, mode: int) -> tuple[str, int, bool]:
  """(operation under MODE, bytes, whether it returns) of an atomic of LDS."""
  operation, width, want = DS_ATOMICS[i.mnemonic]
  return under_mode(operation, width, mode, i.isa), width, want


def under_mode(operation: str, width: int, mode: int, isa: str) -> str:
  """The name of a float atomic of a data share under MODE, of `memory.atomics`; others keep theirs.

  Sums follow both denormal bits, but for f64, which never flushes; minima and maxima only that of the sources, and give
  the flushed number on RDNA4 alone (RDNA3 ISA manual, 13.2; CDNA3, 9.2.2); compare and store flushes both by it. Of the
  sums of bf16 halves no bits are named: they flush nothing here.
  """
  if operation not in FLUSHING or operation == "fadd" and width == 8: return operation
  allowed = denormals(mode, "f32" if width == 4 and operation != "pk_add_f16" else "f64")
  source, result = not allowed & 1, not allowed & 2
  if operation in {"fmin", "fmax"}:
    if source and isa not in FLUSHED_EXTREMES: return f"{operation}.chosen"
    result = False
  elif operation in {"fcmpswap", "fcmpst"}: result = source
  return f"{operation}{'.source' if source else ''}{'.result' if result else ''}"


# They touch no memory.
BETWEEN_LANES: Final = frozenset(("ds_bpermute_b32", "ds_bpermute_fi_b32", "ds_permute_b32", "ds_swizzle_b32"))


def bind(i: Instruction, pc: int, mode: int) -> Step:
  """The step of a ds_ instruction. Raises Unsupported for one without meaning."""
  if not i.get("gds"): return _share(i, pc, mode, gds.LDS)
  if i.mnemonic in BETWEEN_LANES or i.mnemonic.endswith("_addtid_b32"):
    raise unsupported(i, pc, "the global data share has no such instruction")
  if i.mnemonic in {"ds_append", "ds_consume"}:
    n = i.operands["vdst"].value
    sign = 1 if i.mnemonic == "ds_append" else -1
    return gds.count(sign, i.fields["offset"], lambda group, words: write_words(group, n, words))
  return gds.alone(_share(i, pc, mode, gds.GDS))


def _share(i: Instruction, pc: int, mode: int, memory: gds.Share) -> Step:
  """The step of an instruction on a workgroup's LDS, or on the global data share."""
  name = i.mnemonic
  if name in {"ds_bpermute_b32", "ds_bpermute_fi_b32", "ds_permute_b32"}: return _permute(i)
  if name == "ds_swizzle_b32": return _swizzle(i)
  if name in DS_PAIRS or name in DS_EXCHANGE_PAIRS: return _ds_pair(i, memory)
  if name in {"ds_append", "ds_consume"}: return _ds_count(i)
  if name.endswith("_addtid_b32"): return _ds_by_lane(i)
  known = name in DS_LOADS or name in DS_STORES or name in DS_ATOMICS
  if not known: raise unsupported(i, pc)
  offset = np.uint32(i.fields["offset"])
  raw = vector32(i.operands["addr"].value, U32)

  def address(group: Group) -> Value: return raw(group) + offset if offset else raw(group)

  if name in DS_LOADS:
    width, sign_bits, half = DS_LOADS[name]
    write = write_loaded(i.operands["vdst"].value, sign_bits, half)
    return lambda group: write(group, memory.load(group, address(group), width))
  if name in DS_STORES:
    width, shift = DS_STORES[name]
    data = data_reader(i.operands["data0"].value, width, shift)
    return lambda group: memory.store(group, address(group), data(group), width)
  operation, width, want = ds_atomic(i, mode)
  data_of = data_reader(i.operands["data0"].value, width)
  # ds_cmpstore: data0 is the new value, data1 the one to compare with
  compare_of = data_reader(i.operands["data1"].value, width) if "data1" in i.operands else None
  destination = i.operands["vdst"].value if want else 0

  def step(group: Group) -> None:
    compare = None if compare_of is None else wide(compare_of(group))
    old = memory.atomic(group, address(group), width, operation, wide(data_of(group)), compare, want)
    if want and old is not None: write_words(group, destination, split(old))
  return step


def _ds_count(i: Instruction) -> Step:
  """ds_append and ds_consume: each wave adds or subtracts its number of active lanes at M0 + offset."""
  n, offset, sign = i.operands["vdst"].value, np.uint32(i.fields["offset"]), 1 if i.mnemonic == "ds_append" else -1

  def step(group: Group) -> None:
    on = need_lanes(group)
    count = (on.sum(axis=1, dtype=np.int64) * sign).astype(U32)[:, None]
    mask = group.mask
    group.mask = on & (np.cumsum(on, axis=1) == 1)  # the first active lane acts for its wave
    try: old = access.lds_atomic(group, group.s[M0] + offset, 4, "add", count, None, True)
    finally: group.mask = mask
    if old is not None: write_words(group, n, [full(group, old.max(axis=1, keepdims=True))])
  return step


def _ds_by_lane(i: Instruction) -> Step:
  """Dword `lane` at M0 + offset."""
  offset = i.fields["offset"]
  if "vdst" in i.operands:
    n = i.operands["vdst"].value
    return lambda group: write_words(group, n, access.lds_load(group, by_lane(group, offset), 4))
  data = data_reader(i.operands["data0"].value, 4)
  return lambda group: access.lds_store(group, by_lane(group, offset), data(group), 4)


def _ds_pair(i: Instruction, memory: gds.Share) -> Step:
  if i.mnemonic in DS_EXCHANGE_PAIRS:
    width, unit = DS_EXCHANGE_PAIRS[i.mnemonic]
    stores = False
  else: width, unit, stores = DS_PAIRS[i.mnemonic]
  raw = vector32(i.operands["addr"].value, U32)
  first, second = (np.uint32(i.fields[n] * unit) for n in ("offset0", "offset1"))
  count = width // 4
  if stores:
    a, b = (data_reader(i.operands[n].value, width) for n in ("data0", "data1"))

    def store(group: Group) -> None:
      at = raw(group)
      memory.store(group, at + first, a(group), width)
      memory.store(group, at + second, b(group), width)
    return store
  n = i.operands["vdst"].value
  if i.mnemonic in DS_EXCHANGE_PAIRS:
    a, b = (data_reader(i.operands[d].value, width) for d in ("data0", "data1"))

    def exchange(group: Group) -> None:
      at = raw(group)
      x, y = wide(a(group)), wide(b(group))
      one = memory.atomic(group, at + first, width, "swap", x, None, True)
      two = memory.atomic(group, at + second, width, "swap", y, None, True)
      assert one is not None and two is not None
      write_words(group, n, split(one) + split(two))
    return exchange

  def load(group: Group) -> None:
    at = raw(group)
    one = memory.load(group, at + first, width)
    two = memory.load(group, at + second, width)
    write_words(group, n, one[:count] + two[:count])
  return load


def _permute(i: Instruction) -> Step:
  """Lanes exchange values by address: bpermute pulls, permute pushes. Inactive lanes give 0, but to bpermute_fi."""
  address, data = vector32(i.operands["addr"].value, U32), vector32(i.operands["data0"].value, U32)
  offset, n = np.uint32(i.fields["offset"]), i.operands["vdst"].value
  pull, every = i.mnemonic != "ds_permute_b32", i.mnemonic == "ds_bpermute_fi_b32"

  def step(group: Group) -> None:
    lanes = group.cohort.lanes
    at = full(group, (address(group) + offset >> np.uint32(2)) & np.uint32(lanes - 1)).astype(np.intp)
    x = full(group, data(group))
    on = need_lanes(group)
    if pull: out = np.take_along_axis(x if every else np.where(on, x, np.uint32(0)), at, axis=1)
    else:
      from_lane = np.full(x.shape, -1)
      wave, lane = np.nonzero(on)
      from_lane[wave, at[wave, lane]] = lane
      out = np.where(from_lane < 0, np.uint32(0), np.take_along_axis(x, np.maximum(from_lane, 0), axis=1))
    write_words(group, n, [out])
  return step


def _bit_reversed(lane: Any) -> Any:
  """The low five bits in the opposite order."""
  return sum((lane >> k & 1) << 4 - k for k in range(5))


def swizzled(code: int, lanes: int) -> Value:
  """The lane that each one reads: FFT, rotation, quad permutation, and/or/xor (RDNA3 ISA manual, DS_SWIZZLE_B32)."""
  lane = np.arange(lanes)
  if code >= 0xE000: return lane & ~31 | _bit_reversed(lane) >> (code & 31).bit_count() | lane & code & 31
  if code >= 0xC000:
    distance = code >> 5 & 31
    moved = lane + (-distance if code >> 10 & 1 else distance)
    return lane & ~31 | lane & code & 31 | moved & ~code & 31
  if code >> 15: return lane & ~3 | code >> 2 * (lane & 3) & 3
  return lane & ~31 | (lane & code & 31 | code >> 5 & 31) ^ code >> 10 & 31


def _swizzle(i: Instruction) -> Step:
  """ds_swizzle_b32."""
  address, n = vector32(i.operands["addr"].value, U32), i.operands["vdst"].value
  code = i.fields["offset"]

  def step(group: Group) -> None:
    index = swizzled(code, group.cohort.lanes)
    on, x = need_lanes(group), full(group, address(group))
    write_words(group, n, [np.where(on[:, index], x[:, index], np.uint32(0))])
  return step
