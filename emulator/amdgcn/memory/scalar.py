"""Binds scalar loads, from memory and from buffers (RDNA3 ISA manual, section 8; RDNA4, section 8.1)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import MachineFault, PageFault
from tinyhw.core.memory import Access
from tinyhw.emulator.amdgcn.binders import unsupported
from tinyhw.emulator.amdgcn.memory.resource import field, part
from tinyhw.emulator.amdgcn.memory.tables import SCALAR_LOADS, SCALAR_SMALL
from tinyhw.emulator.amdgcn.memory.words import byte_offset, extended
from tinyhw.emulator.amdgcn.registers import base_address, exec_changed, scalar32, write_scalar32
from tinyhw.emulator.memory import access
from tinyhw.emulator.simt import ZERO, Group, Step
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import EXEC_LO, NULL

SIGNED_BUFFERS: Final = frozenset({"gfx9"})  # instruction tables whose loads from buffers may have a negative offset


def bind(i: Instruction, pc: int, mode: int) -> Step:
  """The step of a scalar load. Raises Unsupported for an instruction without meaning."""
  if violates(i): return _violation
  if i.mnemonic in SCALAR_SMALL: return _smem_small(i)
  if i.mnemonic not in SCALAR_LOADS: raise unsupported(i, pc)
  count = SCALAR_LOADS[i.mnemonic]
  address_of = _scalar_address(i, 4)
  destination = i.operands["sdst"].value
  touches_exec = destination <= EXEC_LO + 1 < destination + count + 1

  def step(group: Group) -> None:
    at, inside = address_of(group)
    s, space = group.s, group.space
    if group.cohort.view is None and type(at) is int and (inside is None or type(inside) is int):
      if group.cohort.observer is not None: access.show(group, "scalar", "load", U64.type(at), 4 * count)
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
      try: words = [_gathered(group, address + np.uint64(4 * k), 4, None if inside is None else inside - 4 * k)
                    for k in range(count)]
      except PageFault:  # the access of the first wave that faults, as a whole
        left = np.broadcast_to(4 * count if inside is None else inside, address.shape).reshape(-1).tolist()
        for one, n in zip(address.reshape(-1).tolist(), left): space.read(one, max(0, min(n, 4 * count)) & -4)
        raise
      if destination != NULL: s[destination:destination + count] = words
    if touches_exec: exec_changed(group)
  return step


def violates(i: Instruction) -> bool:
  """Whether a load from a buffer has a negative offset, at which the chip stops (RDNA3 and RDNA4 ISA manuals, 8.1.2).

  CDNA3 only says that the sum of the offsets must not be negative (8.2.1).
  """
  return i.isa not in SIGNED_BUFFERS and i.mnemonic.startswith("s_buffer_load") and byte_offset(i) < 0


def _violation(group: Group) -> None: raise MachineFault("a scalar load from a buffer with a negative offset")


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


def _gathered(group: Group, address: Value, width: int, inside: Value | int | None) -> Value:
  """A value of each wave [waves, 1] as u32; 0 where fewer than `width` bytes of its buffer are left.

  Through a view, where the waves see the same: () as a register holds it."""
  flat, view = address.reshape(-1), group.cohort.view
  if view is None and inside is None: return group.space.gather(flat, width).astype(U32).reshape(-1, 1)
  use = np.ones(flat.shape, bool) if inside is None else np.broadcast_to(inside, address.shape).reshape(-1) >= width
  out = np.zeros(flat.shape, U32)
  if view is None: out[use] = group.space.gather(flat[use], width)
  elif use.any(): out[use] = view.load(group, np.flatnonzero(use), flat[use], width, "scalar")
  if view is not None and (out == out[0]).all(): return out[0]
  return out.reshape(-1, 1)


def _smem_small(i: Instruction) -> Step:
  """One or two bytes, extended to a dword."""
  width, sign_bits = SCALAR_SMALL[i.mnemonic]
  address_of, write = _scalar_address(i, width), write_scalar32(i.operands["sdst"].value)

  def step(group: Group) -> None:
    at, inside = address_of(group)
    address = np.broadcast_to(np.asarray(at, U64), (group.size, 1))
    if group.cohort.observer is not None: access.show(group, "scalar", "load", address, width)
    if type(at) is int and group.cohort.view is None:
      found: Value = U32.type(group.space.load(at, width) if inside is None or inside >= width else 0)
      return write(group, extended(found, sign_bits))
    left = None if inside is None else np.broadcast_to(np.asarray(inside, np.int64), (group.size, 1))
    write(group, extended(_gathered(group, address, width, left), sign_bits))
  return step
