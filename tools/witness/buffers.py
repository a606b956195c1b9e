"""Witnesses of buffer loads, stores and atomics (RDNA3 ISA manual, section 9.4; CDNA3, section 9.1).

Linear buffers, raw and structured; each lane, and each dword of a wider access, is checked against the buffer's size.
"""
from __future__ import annotations

from random import Random
from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction
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
  return max(1, (LOADS[rest] if kind == "load" else STORES[rest])[0] // 4)


def fields(e: Any, k: int) -> Any:
  """Rows with a status dword or with LDS as their end are other instructions."""
  data = next((o for o in e.row.operands if o[0] == "vdata"), None)
  if data is None or data[3] != natural(e): return False
  e.fields["offset"] = 0 if not k else e.rng.randrange(3) * 8
  return True


def forms(i: Instruction) -> tuple[int | None, int | None]:
  """(register of the index, register of the offset)."""
  n = i.operands["vaddr"].value if "vaddr" in i.operands else 0
  return {"bothen": (n, n + 1), "idxen": (n, None), "offen": (None, n), "offset": (None, None)}[i.variant]


def prepare(s: State, i: Instruction, rng: Random) -> None:
  """A resource, the same for all waves, and indices and offsets in and now and then past it."""
  fill_memory(s, i, rng)
  size, n = size_of(i), i.operands["srsrc"].value
  index, offset = forms(i)
  structured = index is not None
  extra = rng.randrange(4) * 8
  records = RECORDS if structured else rng.choice([MEMORY_SIZE // 2, 2048 + 8 * rng.randrange(4)])
  word3 = WORD3[s.isa] | ((STRUCTURED if structured else RAW) << 28 if s.isa != "gfx9" else 0)
  values = [(MEMORY + 256) & 0xFFFFFFFF, MEMORY >> 32 | (STRIDE << 16 if structured else 0), records, word3]
  for k, value in enumerate(values): s.s[n + k] = [value] * s.waves
  soffset = i.operands["soffset"]
  if soffset.kind == "s" and soffset.value < 106: s.s[soffset.value] = [extra] * s.waves
  count = s.waves * s.lanes
  slot = 1 << (size - 1).bit_length()
  indices, slots = rng.sample(range(RECORDS + 8), count), rng.sample(range(2048 // slot + 4), count)
  for at in range(count):  # stores do not meet: the order of their dwords is not fixed
    if index is not None: s.write(index, at, indices[at])
    if offset is not None: s.write(offset, at, rng.randrange(0, STRIDE + 8, slot) if structured else slots[at] * slot)


def access(s: State, i: Instruction) -> None:
  """Lane after lane; dwords past the end read zeros and are not stored; atomics are all or nothing."""
  kind, rest = kind_of(i)
  n, (index, voffset), data = i.operands["srsrc"].value, forms(i), i.operands["vdata"].value
  for wave, _, at in s.active():
    base = s.s[n][wave] | (s.s[n + 1][wave] & 0xFFFF) << 32
    stride, records = s.s[n + 1][wave] >> 16 & 0x3FFF, s.s[n + 2][wave]
    soffset = s.bits(i.operands["soffset"], 32, wave, at)
    offset = i.fields["offset"] + (s.v[voffset][at] if voffset is not None else 0)
    record = s.v[index][at] if index is not None else 0
    place = base + soffset + offset + stride * record - MEMORY
    if index is None: room = records - (soffset if s.isa != "gfx9" else 0)
    elif record >= records: room = 0
    else: room = 1 << 32 if s.isa == "gfx9" else stride
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
WITNESSES.wave(" ".join(f"buffer_{n}" for n in _NAMES), BYTES, prepare=prepare, fields=fields, forms=3)(access)
