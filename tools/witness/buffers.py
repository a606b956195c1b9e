"""Witnesses of buffer loads, stores and atomics (RDNA3 ISA manual, section 9.4; CDNA3, section 9.1).

Raw buffers and structured ones, linear or swizzled; each lane, and each dword of a wider access, is checked against the
buffer's size.
"""
from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction
from tinyhw.tools.witness import to_lds
from tinyhw.tools.witness.atomics import LOADS, STORES, load, put_loaded, store, words
from tinyhw.tools.witness.memory import ATOMICS, BYTES, fill_memory, kind_of, size_of
from tinyhw.tools.witness.state import MEMORY, MEMORY_SIZE, State
from tinyhw.tools.witness.table import WITNESSES

STRUCTURED, RAW = 0, 3  # OOB_SELECT of RDNA
STRIDE: Final = 32
RECORDS: Final = 140
# Word 3 but for OOB_SELECT: 32-bit unsigned integers, components X, Y, Z, W; gfx9 has data and number format apart.
WORD3: Final = {"gfx11": 20 << 12 | 0xFAC, "gfx12": 20 << 12 | 0xFAC, "gfx9": 4 << 15 | 4 << 12 | 0xFAC}


def natural(e: Any) -> int:
  """Dwords of data that the instruction has without a status dword after them."""
  _, kind, rest = e.row.mnemonic.split("_", 2)
  if kind == "atomic": return ATOMICS[rest].width // 4 * (1 + ATOMICS[rest].compares)
  return max(1, (LOADS[rest.removeprefix("lds_")] if kind == "load" else STORES[rest])[0] // 4)


def fields(e: Any, k: int) -> Any:
  """Rows with a status dword are other instructions; those without data end in LDS."""
  data = next((o for o in e.row.operands if o[0] == "vdata"), None)
  if data is not None and data[3] != natural(e): return False
  e.fields["offset"] = 0 if not k else e.rng.randrange(3) * 8
  return True


def forms(i: Instruction) -> tuple[int | None, int | None]:
  """(register of the index, register of the offset)."""
  n = i.operands["vaddr"].value if "vaddr" in i.operands else 0
  return {"bothen": (n, n + 1), "idxen": (n, None), "offen": (None, n), "offset": (None, None)}[i.variant]


@dataclass(frozen=True)
class LanePlace:
  """Where a lane's access begins in the memory; it may touch the bytes from `offset` to `room` of its record."""
  at: int
  offset: int
  room: int


def place_of(s: State, i: Instruction, wave: int, lane: int, at: int) -> LanePlace:
  """A linear address, or a swizzled one (RDNA3 ISA manual, section 9.4.2)."""
  n, (index, voffset) = i.operands["srsrc"].value, forms(i)
  one, records, three = (s.s[n + k][wave] for k in (1, 2, 3))
  base, stride = s.s[n][wave] | (one & 0xFFFF) << 32, one >> 16 & 0x3FFF
  if s.isa == "gfx12": stride *= (1, 4, 8, 32)[three >> 18 & 3]
  swizzle = one >> 31 and 4 if s.isa == "gfx9" else (0, 4, 0, 16)[one >> 30]
  soffset = s.bits(i.operands["soffset"], 32, wave, at)
  offset = i.fields["offset"] + (s.v[voffset][at] if voffset is not None else 0)
  record = (s.v[index][at] if index is not None else 0) + (lane if three >> 23 & 1 else 0)
  inner = offset + stride * record
  if swizzle and index is not None:
    together = 8 << (three >> 21 & 3)
    inner = (record // together * stride + offset // swizzle * swizzle) * together
    inner += record % together * swizzle + offset % swizzle
  if index is None: room = records - (soffset if s.isa != "gfx9" else 0)
  elif record >= records: room = 0
  else: room = 1 << 32 if s.isa == "gfx9" else stride
  return LanePlace(base + soffset + inner - MEMORY, offset, room)


def prepare(s: State, i: Instruction, rng: Random) -> None:
  """A resource, the same for all waves, and indices and offsets in and now and then past it."""
  fill_memory(s, i, rng)
  size = size_of(i)
  prepare_addresses(s, i, rng, 1 << (size - 1).bit_length(), size)
  if "vdata" not in i.operands: to_lds.prepare(s, i, rng)


def prepare_addresses(s: State, i: Instruction, rng: Random, slot: int, size: int) -> None:
  """The resource; offsets are multiples of `slot` bytes, of which an access takes `size`."""
  n = i.operands["srsrc"].value
  index, offset = forms(i)
  structured = index is not None
  extra = rng.randrange(4) * (16 if slot == 16 else 8)
  records = RECORDS if structured else rng.choice([MEMORY_SIZE // 2, 2048 + 16 * rng.randrange(4)])
  word1, word3 = MEMORY >> 32, WORD3[s.isa]
  if s.isa != "gfx9": word3 |= (STRUCTURED if structured else RAW) << 28
  if structured:
    scale = rng.randrange(2) if s.isa == "gfx12" else 0
    word1 |= STRIDE // (4 if scale else 1) << 16
    word3 |= scale << 18 if s.isa == "gfx12" else 0
    swizzle = rng.choice([0, 0, 4, 16]) if s.isa != "gfx9" else rng.choice([0, 4])
    if size <= swizzle and i.fields["offset"] % swizzle + size <= swizzle:  # an access stays in one element
      word1 |= (1 << 31 if s.isa == "gfx9" else (1 if swizzle == 4 else 3) << 30)
      word3 |= rng.randrange(4) << 21
    if rng.random() < 0.3:
      word3 |= 1 << 23
      if s.isa == "gfx9" and "format" not in i.mnemonic: word3 &= ~(15 << 15)  # more bits of the stride
  for k, value in enumerate([(MEMORY + 256) & 0xFFFFFFFF, word1, records, word3]): s.s[n + k] = [value] * s.waves
  soffset = i.operands["soffset"]
  if soffset.kind == "s" and soffset.value < 106: s.s[soffset.value] = [extra] * s.waves
  count = s.waves * s.lanes
  indices, slots = rng.sample(range(RECORDS + 8), count), rng.sample(range(2048 // slot + 4), count)
  for at in range(count):  # stores do not meet: the order of their dwords is not fixed
    if index is not None: s.write(index, at, indices[at])
    if offset is not None: s.write(offset, at, rng.randrange(0, STRIDE + 8, slot) if structured else slots[at] * slot)


def access(s: State, i: Instruction) -> None:
  """Lane after lane; dwords past the end read zeros and are not stored; atomics are all or nothing."""
  kind, rest = kind_of(i)
  data = i.operands["vdata"].value if "vdata" in i.operands else None
  for wave, lane, at in s.active():
    spot = place_of(s, i, wave, lane, at)
    place, offset, room = spot.at, spot.offset, spot.room
    if data is None:
      width, sign, _ = LOADS[rest.removeprefix("lds_")]
      value = load(s.memory, place, width) if offset + width <= room else 0
      to_lds.put(s, i, wave, lane, i.fields["offset"], value, width, sign)
      continue
    if kind == "atomic":
      a = ATOMICS[rest]
      ok = offset + a.width <= room
      old = load(s.memory, place, a.width) if ok else 0
      compare = words(s, data + a.width // 4, at, a.width) if a.compares else 0
      if ok: store(s.memory, place, a.width, a.change(old, words(s, data, at, a.width), compare))
      if i.row.returns:
        for k in range(a.width // 4): s.write(data + k, at, old >> 32 * k)
    elif kind == "load":
      width, sign, half = LOADS[rest]
      unit = min(4, width)
      value = sum(load(s.memory, place + k, unit) << 8 * k for k in range(0, width, unit) if offset + k + unit <= room)
      put_loaded(s, data, at, value, sign, half, width)
    else:
      width, shift = STORES[rest]
      value, unit = words(s, data, at, max(4, width)) >> shift, min(4, width)
      for k in range(0, width, unit):
        if offset + k + unit <= room: store(s.memory, place + k, unit, value >> 8 * k)


_NAMES = [*(f"load_{n}" for n in LOADS), *(f"store_{n}" for n in STORES), *(f"atomic_{a}" for a in ATOMICS)]
_NAMES += [f"load_lds_{n}" for n in ("u8", "i8", "u16", "i16", "b32")]
WITNESSES.wave(" ".join(f"buffer_{n}" for n in _NAMES), BYTES, prepare=prepare, fields=fields, forms=3)(access)
