"""Memory instructions that gfx9 alone has: scalar stores and atomics, loads into LDS, clocks (CDNA3 ISA manual, 8, 10).

A scalar instruction acts once for each wave, in the order of the waves.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from tinyhw.core.memory import Access
from tinyhw.emulator.amdgcn import hwreg
from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.gfx9 import names as names_gfx9
from tinyhw.emulator.amdgcn.memory.resource import field, part
from tinyhw.emulator.amdgcn.memory.vector import fetcher
from tinyhw.emulator.amdgcn.memory.words import by_lane, byte_offset, extended
from tinyhw.emulator.amdgcn.registers import Reader, by_wave, column, scalar32, scalar64, write_scalar64
from tinyhw.emulator.memory import access
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.simt import Group, Step
from tinyhw.emulator.values.ops import DTYPES, TRUE, U32, U64, Ops
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction

_ALIGNED: Final = (1 << 64) - 4  # the two low bits of a scalar address are ignored


# ---- scalar memory

def _address(i: Instruction, scale: int) -> Callable[[Group], tuple[Value, Value]]:
  """(address, whether it is inside the buffer) of each wave [waves]: base + offset + soffset * scale.

  A buffer has num_records bytes, or num_records * stride where it has a stride (8.2.1.1).
  """
  sbase, offset = i.operands["sbase"].value, np.uint64(byte_offset(i) & (1 << 64) - 1)
  base = scalar64(sbase)
  extra: Reader = scalar32(i.operands["soffset"].value) if "soffset" in i.operands else lambda group: U32.type(0)
  buffer = i.operands["sbase"].dwords == 4
  start_of, stride_of = field(i.isa, "base_address"), part(i.isa, "stride")
  strides, records = scalar32(sbase + stride_of.dword), scalar32(sbase + part(i.isa, "num_records").dword)

  def address(group: Group) -> tuple[Value, Value]:
    start = start_of.of(base(group)) if buffer else base(group)
    at = offset + extra(group).astype(U64) * np.uint64(scale)
    inside: Value = TRUE
    if buffer:
      stride = stride_of.field.of(strides(group))
      inside = at < np.maximum(stride, 1).astype(U64) * records(group).astype(U64)
    return by_wave(group, start + at & np.uint64(_ALIGNED)), by_wave(group, inside)
  return address


def _words(group: Group, first: int, count: int) -> Value:
  """SGPRs of each wave [waves, count]."""
  return np.stack([by_wave(group, group.s[first + k]) for k in range(count)], axis=1)


@binds(*(f"s_{kind}store_dword{n}" for kind in ("", "buffer_", "scratch_") for n in ("", "x2", "x4")), isa="gfx9")
def _store(i: Instruction, pc: int, mode: int) -> Step:
  """s_store_*, s_buffer_store_*, s_scratch_store_*, whose offset register counts 64 bytes."""
  count = int(re.sub(r".*_dwordx?", "", i.mnemonic) or 1)
  address = _address(i, 64 if "scratch" in i.mnemonic else 1)
  data = i.operands["sdata"].value

  def store(group: Group) -> None:
    at, inside = address(group)
    if group.cohort.observer is not None: access.show(group, "scalar", "store", at[:, None], 4 * count, inside[:, None])
    if not inside.any(): return
    words = _words(group, data, count)[inside].copy()
    access.note_store(group, at[inside], words)
    group.space.scatter(at[inside], words)
  return store


@binds(*(f"s_scratch_load_dword{n}" for n in ("", "x2", "x4")), isa="gfx9")
def _scratch_load(i: Instruction, pc: int, mode: int) -> Step:
  count = int(re.sub(r".*_dwordx?", "", i.mnemonic) or 1)
  address, first = _address(i, 64), i.operands["sdst"].value

  def load(group: Group) -> None:
    at, _ = address(group)
    if group.cohort.observer is not None: access.show(group, "scalar", "load", at[:, None], 4 * count)
    for k in range(count): group.s[first + k] = column(group.space.gather(at + np.uint64(4 * k), 4))
  return load


@binds(*(f"s_{kind}atomic_{name}" for kind in ("", "buffer_") for name in names_gfx9.ATOMICS
         if not name.startswith("pk_") and not name.endswith("f64")), isa="gfx9")
def _atomic(i: Instruction, pc: int, mode: int) -> Step:
  """s_atomic_*, s_buffer_atomic_*: the data registers receive the old value where GLC asks for it."""
  suffix = i.mnemonic.partition("atomic_")[2]
  operation, width = names_gfx9.ATOMICS[suffix]
  what, count = ATOMICS[operation], width // 4
  address, want = _address(i, 1), "sdst" in i.operands
  data = i.operands["sdst" if want else "sdata"].value
  dtype = DTYPES[f"{what.kind}{width * 8}"]

  def atomic(group: Group) -> None:
    at, inside = address(group)
    if group.cohort.observer is not None: access.show(group, "scalar", "atomic", at[:, None], width, inside[:, None])
    words = _words(group, data, 2 * count if what.compares else count)
    values = np.ascontiguousarray(words).view(dtype)
    old = np.zeros(group.size, dtype)
    for wave in np.flatnonzero(inside):
      before = np.frombuffer(group.space.read(int(at[wave]), width, Access.READ | Access.ATOMIC), dtype)[0]
      after = what.function(Ops, before, values[wave, 0], values[wave, -1])
      group.space.write(int(at[wave]), np.asarray(after, dtype).tobytes(), Access.WRITE | Access.ATOMIC)
      group.cohort.changes.count += before.tobytes() != np.asarray(after, dtype).tobytes()
      old[wave] = before
    if want:
      for k, word in enumerate(old.view(U32).reshape(-1, count).T): group.s[data + k] = column(word.copy())
  return atomic


@binds("s_memtime", "s_memrealtime", isa="gfx9")
def _clock(i: Instruction, pc: int, mode: int) -> Step:
  """s_memtime, s_memrealtime."""
  write, name = write_scalar64(i.operands["sdst"].value), i.mnemonic

  def tell(group: Group) -> None:
    hwreg.note(group, name)
    write(group, U64.type(hwreg.clock(group)))
  return tell


# ---- loads into LDS (10.3): a dword for each lane at M0 + offset + 4 * lane

TO_LDS: Final = {"ubyte": (1, 0), "sbyte": (1, 8), "ushort": (2, 0), "sshort": (2, 16), "dword": (4, 0)}
# Three and four dwords lie 16 bytes apart (CDNA4 ISA manual, 10.3).
WIDE_TO_LDS: Final = {"dwordx3": (12, 0), "dwordx4": (16, 0)}


@binds("global_load_lds_dwordx3", "global_load_lds_dwordx4", isa="gfx950")
@binds(*(f"{segment}_load_lds_{kind}" for segment in ("global", "scratch") for kind in TO_LDS), isa="gfx9")
def _load_to_lds(i: Instruction, pc: int, mode: int) -> Step:
  """global_load_lds_*, scratch_load_lds_*; the instruction's offset counts for both addresses."""
  segment, kind = i.mnemonic.partition("_")[0], i.mnemonic.rpartition("_")[2]
  width, sign_bits = TO_LDS.get(kind) or WIDE_TO_LDS[kind]
  stride = 4 if width <= 4 else 16
  fetch, offset = fetcher(i, segment, width), byte_offset(i)

  def load(group: Group) -> None:
    if access.nobody(group): return
    words = fetch(group)
    if width <= 4: words = [extended(words[0], sign_bits)]
    access.lds_store(group, by_lane(group, offset, 0x3FFFC, stride), words, max(width, 4))
  return load
