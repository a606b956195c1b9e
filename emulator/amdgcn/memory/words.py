"""Between an instruction and the memory that it reaches: its offset, and registers as dwords."""
from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tinyhw.emulator.amdgcn.registers import merged
from tinyhw.emulator.simt import Group
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import M0
from tinyhw.isa.amdgcn.names import NAMES

Loader = Callable[[Group], list[Value]]
_32: Final = np.uint64(32)


def signed(value: int, bits: int) -> int: return value - (1 << bits) if value >> bits - 1 & 1 else value


def byte_offset(i: Instruction) -> int:
  """The instruction's own byte offset, signed over its whole field; 0 where the form has none."""
  pieces = i.row.fields.get("offset")
  return 0 if pieces is None else signed(i.fields["offset"], sum(width for _, _, width in pieces))


def flat_offset(i: Instruction) -> int:
  """The offset of a flat_ instruction: signed where the generation has it so, else without the field's sign bit."""
  names = NAMES[i.isa]
  return byte_offset(i) if names.flat_signed else i.fields["offset"] & (1 << names.flat_bits - 1) - 1


def by_lane(group: Group, offset: int, mask: int = 0xFFFF, stride: int = 4) -> Value:
  """LDS addresses of instructions that take none: `stride` bytes for each lane from M0 + offset on; `mask`: of M0."""
  lane = np.arange(group.cohort.lanes, dtype=U32)[None, :]
  return (group.s[M0] & np.uint32(mask)) + np.uint32(offset & 0xFFFFFFFF) + lane * np.uint32(stride)


# ---- registers as data

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
