"""Access to a group's registers by operand: readers and writers that are bound once and called for each execution.

A reader is `read(group) -> value` of one type; a writer is `write(group, value)`. Lane masks are bool values; in SGPRs
they are bits (one SGPR for wave32, two for wave64), converted with a cache: most masks are read as written.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tinyhw.arch import Arch
from tinyhw.core.errors import Unsupported
from tinyhw.emulator.amdgcn.constants import constant
from tinyhw.emulator.simt import ZERO, Group
from tinyhw.emulator.values.ops import DTYPES, FALSE, TRUE, U16, U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Operand
from tinyhw.isa.amdgcn.codes import EXEC_HI, EXEC_LO, LDS_DIRECT, NULL, VCC_LO

Reader = Callable[[Group], Value]
Writer = Callable[[Group, Value], None]
SCC: Final = 253
POPS: Final = 239
EMPTY: Final = {251: VCC_LO, 252: EXEC_LO}  # src_vccz and src_execz: 1 where the mask is 0
_APERTURES: Final = {235: ("shared_aperture", False), 236: ("shared_aperture", True),
                     237: ("private_aperture", False), 238: ("private_aperture", True)}
FULL32: Final[Value] = U32.type(0xFFFFFFFF)
_SHIFT32: Final = np.uint64(32)


# ---- lane masks

def lanes_of(bits: Value) -> Value:
  """u32 () or [waves, 1] as bool () (where all 32 agree), [1, 32] or [waves, 32]."""
  if hasattr(bits, "in_lanes"): return bits.in_lanes()  # another kind of value than NumPy's
  if bits.ndim == 0:
    if bits == FULL32: return TRUE
    if bits == 0: return FALSE
  raw = np.ascontiguousarray(bits).view(np.uint8).reshape(-1, 4)
  return np.unpackbits(raw, axis=1, bitorder="little").view(bool)


def bits_of(lanes: Value) -> Value:
  """bool (), [n, 1] or [n, 32] as u32 () or [n, 1]."""
  if hasattr(lanes, "in_bits"): return lanes.in_bits()
  if lanes.ndim == 0: return FULL32 if lanes else ZERO
  if lanes.shape[1] == 1: lanes = np.broadcast_to(lanes, (lanes.shape[0], 32))
  packed = np.ascontiguousarray(np.packbits(lanes, axis=1, bitorder="little")).view(U32)
  return packed[0, 0] if packed.shape[0] == 1 else packed


def read_mask(group: Group, register: int) -> Value:
  """The lane mask in an SGPR (pair) as bools."""
  if register == NULL: return FALSE
  if group.cohort.lanes == 32:
    value = group.s[register]
    kept = group.bools.get(register)
    if kept is not None and kept[0] is value: return kept[1]
    lanes = lanes_of(value)
    group.bools[register] = (value, lanes)
    return lanes
  return _joined(lanes_of(group.s[register]), lanes_of(group.s[register + 1]))


def mask_reader(o: Operand) -> Reader:
  """Reader of a scalar operand as a lane mask: of the bits of a constant or an aperture too."""
  if o.kind == "s" and o.value <= EXEC_HI: return lambda group: read_mask(group, o.value)
  narrow, wide = reader(o, "u32"), reader(o, "u64")

  def read(group: Group) -> Value:
    if group.cohort.lanes == 32: return lanes_of(narrow(group))
    bits = wide(group)
    return _joined(lanes_of(bits.astype(U32)), lanes_of((bits >> _SHIFT32).astype(U32)))
  return read


def _joined(low: Value, high: Value) -> Value:
  """The lanes of the low and the high half of a mask of 64."""
  if low.ndim == 0 and high.ndim == 0 and low == high: return low
  rows = max(x.shape[0] if x.ndim else 1 for x in (low, high))
  return np.concatenate([np.broadcast_to(low, (rows, 32)), np.broadcast_to(high, (rows, 32))], axis=1)


def write_mask(group: Group, register: int, lanes: Value) -> None:
  """Store bools of the active lanes as bits; inactive lanes give 0."""
  if group.mask is not None: lanes = lanes & group.mask
  if register == NULL: return
  if group.cohort.lanes == 32:
    value = bits_of(lanes)
    group.s[register] = value
    group.bools[register] = (value, lanes)
  else:
    if lanes.ndim and lanes.shape[1] == 1: lanes = np.broadcast_to(lanes, (lanes.shape[0], 64))
    group.s[register] = bits_of(lanes[:, :32] if lanes.ndim else lanes)
    group.s[register + 1] = bits_of(lanes[:, 32:] if lanes.ndim else lanes)
  if register >= EXEC_LO: exec_changed(group)


def exec_changed(group: Group) -> None:
  """Derive the lane mask after EXEC was written."""
  lanes = read_mask(group, EXEC_LO)
  if lanes.ndim == 0: group.mask = None if lanes else np.zeros((1, group.cohort.lanes), bool)
  else: group.mask = None if lanes.all() else lanes


def set_exec(group: Group, lanes: Value) -> None:
  """EXEC from bools (v_cmpx)."""
  write_mask(group, EXEC_LO, lanes)


# ---- scalars

def by_wave(group: Group, value: Value) -> Value:
  """A scalar register's value for each wave [waves]."""
  return np.broadcast_to(np.asarray(value).reshape(-1), group.size)


def column(values: Value) -> Value:
  """Values of the waves [waves] as a scalar register's: () where all agree, else [waves, 1].

  Values of another kind than NumPy's are not asked whether they agree.
  """
  return values[0] if len(values) == 1 or isinstance(values, np.ndarray) and (values == values[0]).all() \
    else values[:, None]


def aperture(arch: Arch, code: int) -> int | None:
  """The upper half of where LDS or scratch begins or ends in flat addresses (src_shared_base and the like)."""
  if code not in _APERTURES: return None
  name, end = _APERTURES[code]
  return (int(getattr(arch, name)) >> 32) + (0xFFFF if end else 0)


def _special(group: Group, code: int) -> Value:
  """32-bit value of a scalar operand that is no register."""
  if code == SCC: return group.scc.astype(U32)[()]
  if code in EMPTY:
    low = EMPTY[code]
    bits = group.s[low] | group.s[low + 1] if group.cohort.lanes == 64 else group.s[low]
    return (bits == 0).astype(U32)[()]
  if code == LDS_DIRECT: raise Unsupported("operand", "src_lds_direct", hint="CDNA3's ISA manual has its code reserved")
  if code == POPS: raise Unsupported("operand", "src_pops_exiting_wave_id", hint="it belongs to pixel shaders")
  value = aperture(group.cohort.arch, code)
  if value is None: raise Unsupported("operand", f"scalar code {code}")
  return U32.type(value)


def scalar32(code: int) -> Reader:
  """Reader of an SGPR or special operand as u32."""
  if code <= EXEC_HI: return lambda group: group.s[code]
  return lambda group: _special(group, code)


def scalar64(code: int) -> Reader:
  """Reader of an SGPR pair, VCC, EXEC or an aperture as u64."""
  if code > EXEC_HI:
    if code == SCC or code in EMPTY: return lambda group: _special(group, code).astype(U64)
    return lambda group: U64.type(_special(group, code)) << _SHIFT32
  if code == NULL: return lambda group: U64.type(0)

  def read(group: Group) -> Value:
    s = group.s
    return s[code].astype(U64) | s[code + 1].astype(U64) << _SHIFT32
  return read


def base_address(code: int) -> Callable[[Group], int | Value]:
  """Reader of an SGPR pair as an address: an int where it is the same in each wave, else u64 [waves, 1]."""
  wide = scalar64(code)

  def read(group: Group) -> int | Value:
    s = group.s
    low, high = s[code], s[code + 1]
    if low.ndim == 0 and high.ndim == 0: return int(low) | int(high) << 32
    return wide(group)
  return read


def write_scalar32(code: int) -> Writer:
  """Writer of an SGPR as 32 bits of any type; NULL keeps nothing."""
  if code == NULL: return lambda group, value: None
  if code in {EXEC_LO, EXEC_HI}:
    def write_exec(group: Group, value: Value) -> None:
      group.s[code] = value.view(U32)
      exec_changed(group)
    return write_exec

  def write(group: Group, value: Value) -> None: group.s[code] = value.view(U32)
  return write


def write_scalar64(code: int) -> Writer:
  """Writer of an SGPR pair as 64 bits of any type; NULL keeps nothing."""
  if code == NULL: return lambda group, value: None

  def write(group: Group, value: Value) -> None:
    value = value.view(U64)
    group.s[code] = value.astype(U32)
    group.s[code + 1] = (value >> _SHIFT32).astype(U32)
    if code == EXEC_LO: exec_changed(group)
  return write


# ---- vector registers

def vector32(n: int, dtype: Any) -> Reader:
  """Reader of a vector register as a 32-bit type."""
  def read(group: Group) -> Value:
    x = group.v[n]
    return x if x.dtype is dtype else x.view(dtype)
  return read


def vector64(n: int, dtype: Any) -> Reader:
  """Reader of two vector registers as a 64-bit type; a pair written together is kept together."""
  def read(group: Group) -> Value:
    low, high = group.v[n], group.v[n + 1]
    kept = group.pairs.get(n)
    if kept is not None and kept[0] is low and kept[1] is high: return kept[2].view(dtype)
    value = low.view(U32).astype(U64) | high.view(U32).astype(U64) << _SHIFT32
    return value.view(dtype)
  return read


def vector16(n: int, half: int, dtype: Any) -> Reader:
  """Reader of half a vector register."""
  if half:
    return lambda group: (group.v[n].view(U32) >> np.uint32(16)).astype(U16).view(dtype)
  return lambda group: group.v[n].view(U32).astype(U16).view(dtype)


def merged(group: Group, new: Value, old: Value) -> Value:
  """New in active lanes, old in the others; both of one 4-byte type."""
  mask = group.mask
  if mask is None: return new
  return np.where(mask, new, old if old.dtype is new.dtype else old.view(new.dtype))


def each_wave(group: Group, values: list[Value], run: Callable[..., None]) -> None:
  """Call `run` with ints once for each set of scalar values that waves hold, with only those waves' lanes active."""
  columns = [np.asarray(v).reshape(-1) for v in values]
  if all((c == c[0]).all() for c in columns): return run(*(int(c[0]) for c in columns))
  table = np.stack([np.broadcast_to(c, group.size) for c in columns], axis=1)
  mask = group.mask
  try:
    for row in np.unique(table, axis=0):
      here = (table == row).all(axis=1)[:, None]
      group.mask = np.broadcast_to(here, (group.size, group.cohort.lanes)) if mask is None else mask & here
      run(*(int(v) for v in row))
  finally: group.mask = mask


def write_vector32(n: int) -> Writer:
  def write(group: Group, value: Value) -> None:
    v = group.v
    mask = group.mask
    if mask is None:
      v[n]  # a register beyond the allocation must not be made
      v[n] = value
    else:
      old = v[n]
      v[n] = np.where(mask, value, old if old.dtype is value.dtype else old.view(value.dtype))
  return write


def write_vector64(n: int) -> Writer:
  def write(group: Group, value: Value) -> None:
    value = value.view(U64)
    v = group.v
    if group.mask is not None: value = np.where(group.mask, value, vector64(n, U64)(group))
    v[n + 1] = high = (value >> _SHIFT32).astype(U32)
    v[n] = low = value.astype(U32)
    group.pairs[n] = (low, high, value)
  return write


def write_vector16(n: int, half: int) -> Writer:
  """The other half of the register is kept."""
  def write(group: Group, value: Value) -> None:
    old = group.v[n].view(U32)
    bits = value.view(U16).astype(U32)
    new = old & np.uint32(0xFFFF) | bits << np.uint32(16) if half else old & np.uint32(0xFFFF0000) | bits
    group.v[n] = merged(group, new, old)
  return write


# ---- operands

def reader(o: Operand, type_: str) -> Reader:
  """Reader of any source operand as a type."""
  dtype = DTYPES[type_]
  if o.kind in {"const", "lit"}:
    value = constant(o, type_)
    return lambda group: value
  size = dtype.itemsize
  if o.kind == "imm":
    value = DTYPES[f"u{size * 8}"].type(o.value & (1 << size * 8) - 1).view(dtype)
    return lambda group: value
  if o.kind == "v":
    if size == 8: return vector64(o.value, dtype)
    if size == 2: return vector16(o.value, o.half or 0, dtype)
    return vector32(o.value, dtype)
  if size == 8:
    wide = scalar64(o.value)
    return wide if type_ == "u64" else lambda group: wide(group).view(dtype)
  narrow = scalar32(o.value)
  if size == 2: return lambda group: narrow(group).astype(U16).view(dtype)
  return narrow if type_ == "u32" else lambda group: narrow(group).view(dtype)


def writer(o: Operand, type_: str) -> Writer:
  """Writer of a destination operand."""
  size = DTYPES[type_].itemsize
  if o.kind == "v":
    if size == 8: return write_vector64(o.value)
    if size == 2: return write_vector16(o.value, o.half or 0)
    return write_vector32(o.value)
  if size == 2:  # the upper half becomes 0
    narrow = write_scalar32(o.value)
    return lambda group, value: narrow(group, value.view(U16).astype(U32))
  return write_scalar64(o.value) if size == 8 else write_scalar32(o.value)


def with_modifiers(read: Reader, type_: str, negative: bool, absolute: bool) -> Reader:
  """abs and neg act on the sign bit, whatever the type."""
  if not (negative or absolute): return read
  dtype = DTYPES[type_]
  if dtype.kind == "f":
    if negative and absolute: return lambda group: np.negative(np.abs(read(group)))
    return (lambda group: np.abs(read(group))) if absolute else (lambda group: np.negative(read(group)))
  raw = DTYPES[f"u{dtype.itemsize * 8}"]
  sign = raw.type(1 << dtype.itemsize * 8 - 1)
  if negative and absolute: return lambda group: (read(group).view(raw) | sign).view(dtype)
  if absolute: return lambda group: (read(group).view(raw) & ~sign).view(dtype)
  return lambda group: (read(group).view(raw) ^ sign).view(dtype)
