"""Binds memory instructions: SMEM, GLOBAL, FLAT, SCRATCH and DS."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import MachineFault, PageFault
from tinyhw.core.memory import Access
from tinyhw.emulator.amdgcn.binders import unsupported
from tinyhw.emulator.amdgcn.gfx9 import names as names_gfx9
from tinyhw.emulator.amdgcn.memory import access, gds
from tinyhw.emulator.amdgcn.memory.atomics import ATOMICS, in_lds
from tinyhw.emulator.amdgcn.memory.resource import field, part
from tinyhw.emulator.amdgcn.registers import (
  Reader,
  base_address,
  exec_changed,
  full,
  merged,
  need_lanes,
  scalar32,
  vector32,
  vector64,
  write_scalar32,
)
from tinyhw.emulator.amdgcn.values import U32, U64
from tinyhw.emulator.simt import ZERO, Group, Step
from tinyhw.isa.amdgcn import EXEC_LO, M0, NULL, Instruction
from tinyhw.isa.amdgcn_names import NAMES

Value = Any
Loader = Callable[[Group], list[Value]]
_32: Final = np.uint64(32)

# Suffix of a load -> (bytes, bits to extend the sign from or 0, half of the register for d16 or None). Halves 0 and 1
# keep the other half, 2 (low) and 3 (high) make it 0.
_LOADS: Final = {
  "b32": (4, 0, None), "b64": (8, 0, None), "b96": (12, 0, None), "b128": (16, 0, None), "u8": (1, 0, None),
  "i8": (1, 8, None), "u16": (2, 0, None), "i16": (2, 16, None), "d16_u8": (1, 0, 0), "d16_i8": (1, 8, 0),
  "d16_b16": (2, 0, 0), "d16_hi_u8": (1, 0, 1), "d16_hi_i8": (1, 8, 1), "d16_hi_b16": (2, 0, 1),
}
_STORES: Final = {
  "b8": (1, 0), "b16": (2, 0), "b32": (4, 0), "b64": (8, 0), "b96": (12, 0), "b128": (16, 0), "d16_hi_b8": (1, 16),
  "d16_hi_b16": (2, 16),
}
_ATOMICS: Final = {
  f"{name}_{suffix}": (operation, width) for name, operation, suffixes in (
    ("swap", "swap", "b"), ("cmpswap", "cmpswap", "b"), ("add", "add", "u"), ("sub", "sub", "u"), ("min", "smin", "i"),
    ("min", "umin", "u"), ("max", "smax", "i"), ("max", "umax", "u"), ("and", "and", "b"), ("or", "or", "b"),
    ("xor", "xor", "b"), ("inc", "inc", "u"), ("dec", "dec", "u"))
  for width in (4, 8) for suffix in (suffixes + str(width * 8),)
} | {"add_f32": ("fadd", 4), "min_f32": ("fmin", 4), "max_f32": ("fmax", 4), "cmpswap_f32": ("fcmpswap", 4),
     "csub_u32": ("csub", 4), "sub_clamp_u32": ("csub", 4), "cond_sub_u32": ("condsub", 4),
     "min_num_f32": ("fmin", 4), "max_num_f32": ("fmax", 4), "pk_add_f16": ("pk_add_f16", 4),
     "pk_add_bf16": ("pk_add_bf16", 4), "ordered_add_b64": ("ordered_add", 8)}
LOADS: Final = {f"{p}_load_{s}": v for p in ("global", "flat", "scratch", "buffer")
                for s, v in (*_LOADS.items(), *names_gfx9.LOADS.items())}
STORES: Final = {f"{p}_store_{s}": v for p in ("global", "flat", "scratch", "buffer")
                 for s, v in (*_STORES.items(), *names_gfx9.STORES.items())}
VECTOR_ATOMICS: Final = {f"{p}_atomic_{s}": v for p in ("global", "flat", "buffer")
                         for s, v in (*_ATOMICS.items(), *names_gfx9.ATOMICS.items())}
SCALAR_LOADS: Final = {f"{p}_b{32 * n}": n for p in ("s_load", "s_buffer_load") for n in (1, 2, 3, 4, 8, 16)} | \
  names_gfx9.SCALAR_LOADS
SCALAR_SMALL: Final = {  # bytes, bits to extend the sign from or 0
  f"{p}_{s}": v for p in ("s_load", "s_buffer_load")
  for s, v in (("i8", (1, 8)), ("u8", (1, 0)), ("i16", (2, 16)), ("u16", (2, 0)))}

_DS_OPS: Final = (
  ("add", "add", "u"), ("sub", "sub", "u"), ("rsub", "rsub", "u"), ("inc", "inc", "u"), ("dec", "dec", "u"),
  ("min", "smin", "i"), ("max", "smax", "i"), ("min", "umin", "u"), ("max", "umax", "u"), ("and", "and", "b"),
  ("or", "or", "b"), ("xor", "xor", "b"), ("add", "fadd", "f"), ("min", "fmin", "f"), ("max", "fmax", "f"),
  ("min_num", "fmin", "f"), ("max_num", "fmax", "f"), ("cond_sub", "condsub", "u"), ("sub_clamp", "csub", "u"),
  ("cmpstore", "cmpswap", "b"), ("cmpstore", "fcmpswap", "f"))
DS_ATOMICS: Final = {
  f"ds_{name}{rtn}_{kind}{width * 8}": (operation, width, bool(rtn)) for name, operation, kind in _DS_OPS
  for width in (4, 8) for rtn in ("", "_rtn")} | {
  f"ds_storexchg_rtn_b{width * 8}": ("swap", width, True) for width in (4, 8)} | {
  f"ds_mskor{rtn}_b{width * 8}": ("mskor", width, bool(rtn)) for width in (4, 8) for rtn in ("", "_rtn")} | {
  f"ds_pk_add{rtn}_{kind}": (f"pk_add_{kind}", 4, bool(rtn)) for kind in ("f16", "bf16") for rtn in ("", "_rtn")} | {
  "ds_wrap_rtn_b32": ("wrap", 4, True), "ds_condxchg32_rtn_b64": ("condxchg", 8, True)} | names_gfx9.DS_ATOMICS
DS_LOADS: Final = {
  "ds_load_b32": (4, 0, None), "ds_load_b64": (8, 0, None), "ds_load_b96": (12, 0, None), "ds_load_b128": (16, 0, None),
  "ds_load_u8": (1, 0, None), "ds_load_i8": (1, 8, None), "ds_load_u16": (2, 0, None), "ds_load_i16": (2, 16, None),
  "ds_load_u8_d16": (1, 0, 0), "ds_load_i8_d16": (1, 8, 0), "ds_load_u16_d16": (2, 0, 0),
  "ds_load_u8_d16_hi": (1, 0, 1), "ds_load_i8_d16_hi": (1, 8, 1), "ds_load_u16_d16_hi": (2, 0, 1),
  **names_gfx9.DS_LOADS}
DS_STORES: Final = {
  "ds_store_b8": (1, 0), "ds_store_b16": (2, 0), "ds_store_b32": (4, 0), "ds_store_b64": (8, 0),
  "ds_store_b96": (12, 0), "ds_store_b128": (16, 0), "ds_store_b8_d16_hi": (1, 16), "ds_store_b16_d16_hi": (2, 16),
  **names_gfx9.DS_STORES}
DS_PAIRS: Final = {  # bytes of an element, what an offset counts, whether it stores
  f"ds_{kind}_2addr{stride}_b{width * 8}": (width, width * (64 if stride else 1), kind == "store")
  for kind in ("load", "store") for stride in ("", "_stride64") for width in (4, 8)} | names_gfx9.DS_PAIRS
DS_EXCHANGE_PAIRS: Final = {
  f"ds_storexchg_2addr{stride}_rtn_b{width * 8}": (width, width * (64 if stride else 1))
  for stride in ("", "_stride64") for width in (4, 8)} | names_gfx9.DS_EXCHANGE_PAIRS
GLOBAL_BY_LANE: Final = ("global_load_addtid_b32", "global_store_addtid_b32")
NO_EFFECT: Final = {"buffer_gl0_inv", "buffer_gl1_inv", "s_dcache_inv", "s_gl1_inv", "ds_nop"} | names_gfx9.NO_EFFECT


def signed(value: int, bits: int) -> int: return value - (1 << bits) if value >> bits - 1 & 1 else value


def byte_offset(i: Instruction) -> int:
  """The instruction's own byte offset, signed over its whole field; 0 where the form has none."""
  pieces = i.row.fields.get("offset")
  return 0 if pieces is None else signed(i.fields["offset"], sum(width for _, _, width in pieces))


def flat_offset(i: Instruction) -> int:
  """The offset of a flat_ instruction: signed where the generation has it so, else without the field's sign bit."""
  names = NAMES[i.isa]
  return byte_offset(i) if names.flat_signed else i.fields["offset"] & (1 << names.flat_bits - 1) - 1


# ---- destinations

def write_words(group: Group, n: int, words: list[Value]) -> None:
  """Write dwords to vector registers from n on, in active lanes."""
  v = group.v
  v[n + len(words) - 1]  # a register beyond the allocation must not be made
  mask = group.mask
  for k, w in enumerate(words): v[n + k] = w if mask is None else merged(group, w, v[n + k].view(U32))


def extended(word: Value, sign_bits: int) -> Value:
  """A dword whose low bits are a signed number."""
  if not sign_bits: return word
  s = np.int32(32 - sign_bits)
  return ((word.view(np.int32) << s) >> s).view(U32)


def write_loaded(n: int, sign_bits: int, half: int | None) -> Callable[[Group, list[Value]], None]:
  """Writer of loaded dwords: sign extension of small ones, or one half of the register."""
  def write(group: Group, words: list[Value]) -> None:
    if sign_bits: words = [extended(words[0], sign_bits)]
    if half is not None:
      old = group.v[n].view(U32) if half < 2 else np.uint32(0)
      word = words[0] & np.uint32(0xFFFF)
      words = [old & np.uint32(0xFFFF) | word << np.uint32(16) if half & 1 else old & np.uint32(0xFFFF0000) | word]
    write_words(group, n, words)
  return write


def data_reader(n: int, width: int, shift: int = 0) -> Loader:
  """Reader of the dwords of store data."""
  count = max(1, width // 4)
  if shift: return lambda group: [group.v[n].view(U32) >> np.uint32(shift)]
  return lambda group: [group.v[n + k].view(U32) for k in range(count)]


def wide(words: list[Value]) -> Value:
  """One or two dwords as u32 or u64."""
  return words[0] if len(words) == 1 else words[0].astype(U64) | words[1].astype(U64) << _32


def split(value: Value) -> list[Value]:
  """u32 or u64 as one or two dwords."""
  return [value] if value.dtype == U32 else [value.astype(U32), (value >> _32).astype(U32)]


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
  offset = np.uint32(byte_offset(i) & 0xFFFFFFFF)
  parts: list[Reader] = []
  if "vaddr" in i.operands: parts.append(vector32(i.operands["vaddr"].value, U32))
  if "saddr" in i.operands: parts.append(scalar32(i.operands["saddr"].value))
  if not parts: return lambda group: offset
  if len(parts) == 1: return lambda group: parts[0](group) + offset
  return lambda group: parts[0](group) + parts[1](group) + offset


# ---- binders: loads, stores and atomics of each segment

def bind(i: Instruction, pc: int, mode: int) -> Step:
  """The step of a memory instruction. Raises Unsupported for one without meaning."""
  if i.mnemonic in NO_EFFECT: return lambda group: None
  if i.family == "SMEM": return _smem(i, pc)
  if i.family == "DS": return _ds(i, pc, mode)
  if i.family == "FLAT":
    if i.mnemonic.startswith("global_"): return _segment(i, pc, "global")
    return _segment(i, pc, "scratch" if i.mnemonic.startswith("scratch_") else "flat")
  raise unsupported(i, pc)


def _segment(i: Instruction, pc: int, segment: str) -> Step:
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
  address_of = _flat_address(i)

  def fetch(group: Group) -> list[Value]:
    address = address_of(group)
    parts = _apertures(group, address)
    if parts is None: return access.words_of(access.load(group, None, address, width), width)
    out: list[Value] = [np.uint32(0)] * max(1, width // 4)

    def run(segment: str, at: Value) -> None:
      if segment == "lds": words = access.lds_load(group, at.astype(U32), width)
      elif segment == "scratch": words = access.scratch_load(group, at.astype(U32), width)
      else: words = access.words_of(access.load(group, None, at, width), width)
      for k, w in enumerate(words): out[k] = np.where(group.mask, w, out[k])
    _each_part(group, address, parts, run)
    return out
  return fetch


def flat_put(i: Instruction, width: int) -> Callable[[Group, list[Value]], None]:
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
    if old is not None: out[0] = np.where(group.mask, old, out[0])
  _each_part(group, address, parts, run)
  return out[0] if want else None


# ---- scalar memory

def _smem(i: Instruction, pc: int) -> Step:
  if i.mnemonic in SCALAR_SMALL: return _smem_small(i)
  if i.mnemonic not in SCALAR_LOADS: raise unsupported(i, pc)
  count = SCALAR_LOADS[i.mnemonic]
  address_of = _scalar_address(i, 4)
  destination = i.operands["sdst"].value
  touches_exec = destination <= EXEC_LO + 1 < destination + count + 1

  def step(group: Group) -> None:
    at, inside = address_of(group)
    s, space = group.s, group.space
    if type(at) is int and (inside is None or type(inside) is int):
      if group.cohort.observer is not None: access.show(group, "scalar", "load", np.uint64(at), 4 * count)
      wanted = count if inside is None else min(max(inside // 4, 0), count)
      m = space.find(at)
      words: Any
      if m is not None and at + 4 * wanted <= m.end and m.access & Access.READ:
        words = m.u32[at - m.start >> 2:(at - m.start >> 2) + wanted].copy()
      else: words = np.frombuffer(space.read(at, 4 * wanted), U32) if wanted else np.zeros(0, U32)
      if destination == NULL: return
      if wanted < count: words = np.concatenate([words, np.zeros(count - wanted, U32)])
      s[destination:destination + count] = words
      s[NULL] = ZERO
    else:
      address = np.broadcast_to(np.asarray(at, U64), (group.size, 1))
      if group.cohort.observer is not None: access.show(group, "scalar", "load", address, 4 * count)
      try: words = [_gathered(space, address + np.uint64(4 * k), 4, None if inside is None else inside - 4 * k)
                    for k in range(count)]
      except PageFault:  # the access of the first wave that faults, as a whole
        left = np.broadcast_to(4 * count if inside is None else inside, address.shape).reshape(-1).tolist()
        for one, n in zip(address.reshape(-1).tolist(), left): space.read(one, max(0, min(n, 4 * count)) & -4)
        raise
      if destination != NULL: s[destination:destination + count] = words
    if touches_exec: exec_changed(group)
  return step


def _scalar_address(i: Instruction, align: int) -> Callable[[Group], tuple[int | Value, int | Value | None]]:
  """(address, bytes left in the buffer from there, None without a buffer): ints, or [waves, 1] where waves differ.

  Of each part of the address the bits below a multiple of `align` are ignored (RDNA4 ISA manual, 8.1.1). A buffer's
  size is in strides (1 for a stride of 0) (RDNA4 ISA manual, 8.1.2; RDNA3, 8.2.2).
  """
  sbase = i.operands["sbase"].value
  base_of, offset = base_address(sbase), byte_offset(i) & -align
  soffset = scalar32(i.operands["soffset"].value) if "soffset" in i.operands else None
  buffer, keep = i.mnemonic.startswith("s_buffer_load"), (1 << 64) - align
  start_of, stride_of = (field(i.isa, name) for name in ("base_address", "stride"))
  records = sbase + part(i.isa, "num_records").dword

  def address(group: Group) -> tuple[int | Value, int | Value | None]:
    base, s = base_of(group), group.s
    extra = None if soffset is None else soffset(group)
    if type(base) is int and (extra is None or extra.ndim == 0) and (not buffer or s[records].ndim == 0):
      forward = offset + (0 if extra is None else int(extra) & -align)
      if not buffer: return (base & keep) + forward & (1 << 64) - 1, None
      size = int(s[records]) * max(stride_of.of(base), 1)
      return (base & start_of.mask & keep) + forward & (1 << 64) - 1, size - forward
    moved = np.full((1, 1), offset & (1 << 64) - 1, U64)
    if extra is not None: moved = moved + (extra.astype(U64) & np.uint64(keep))
    low = np.asarray(base, U64)
    if not buffer: return (low & np.uint64(keep)) + moved, None
    total = s[records].astype(np.int64) * np.maximum(stride_of.of(low), 1).astype(np.int64)
    at = (low & np.uint64(start_of.mask & keep)) + moved
    return at, np.broadcast_to(total - moved.view(np.int64), (group.size, 1))
  return address


def _gathered(space: Any, address: Value, width: int, inside: Value | None) -> Value:
  """A value of each wave [waves, 1] as u32; 0 where fewer than `width` bytes of its buffer are left."""
  flat = address.reshape(-1)
  if inside is None: return space.gather(flat, width).astype(U32).reshape(-1, 1)
  use = inside.reshape(-1) >= width
  out = np.zeros(flat.shape, U32)
  if use.any(): out[use] = space.gather(flat[use], width)
  return out.reshape(-1, 1)


def _smem_small(i: Instruction) -> Step:
  """One or two bytes, extended to a dword."""
  width, sign_bits = SCALAR_SMALL[i.mnemonic]
  address_of, write = _scalar_address(i, width), write_scalar32(i.operands["sdst"].value)

  def step(group: Group) -> None:
    at, inside = address_of(group)
    address = np.broadcast_to(np.asarray(at, U64), (group.size, 1))
    if group.cohort.observer is not None: access.show(group, "scalar", "load", address, width)
    if type(at) is int:
      found = np.uint32(group.space.load(at, width) if inside is None or inside >= width else 0)
      return write(group, extended(found, sign_bits))
    left = None if inside is None else np.broadcast_to(np.asarray(inside, np.int64), (group.size, 1))
    write(group, extended(_gathered(group.space, address, width, left), sign_bits))
  return step


# ---- LDS

def ds_atomic(i: Instruction, mode: int) -> tuple[str, int, bool]:
  """(operation under MODE, bytes, whether it returns) of an atomic of LDS."""
  operation, width, want = DS_ATOMICS[i.mnemonic]
  return in_lds(operation, width, mode), width, want


_LDS_ONLY: Final = frozenset(("ds_bpermute_b32", "ds_bpermute_fi_b32", "ds_permute_b32", "ds_swizzle_b32"))


def _ds(i: Instruction, pc: int, mode: int) -> Step:
  if not i.get("gds"): return _share(i, pc, mode, gds.LDS)
  if i.mnemonic in _LDS_ONLY or i.mnemonic.endswith("_addtid_b32"):
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
  offset = np.uint32(i.fields["offset"])

  def address(group: Group) -> Value:
    return (group.s[M0] & np.uint32(0xFFFF)) + offset + np.arange(group.cohort.lanes, dtype=U32)[None, :] * np.uint32(4)

  if "vdst" in i.operands:
    n = i.operands["vdst"].value
    return lambda group: write_words(group, n, access.lds_load(group, address(group), 4))
  data = data_reader(i.operands["data0"].value, 4)
  return lambda group: access.lds_store(group, address(group), data(group), 4)


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
      out = np.zeros(x.shape, U32)
      wave, lane = np.nonzero(on)
      out[wave, at[wave, lane]] = x[wave, lane]
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
