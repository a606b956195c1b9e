"""Witnesses of global, flat, scratch and scalar memory: RDNA3 ISA manual, sections 8, 10 and 16.20."""
from __future__ import annotations

from random import Random
from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import NULL
from tinyhw.tools.witness.atomics import LOADS, STORES, Atomic, atomic, drawn, load, put_loaded, store, words
from tinyhw.tools.witness.softfloat import FORMATS
from tinyhw.tools.witness.state import MEMORY, MEMORY_SIZE, State
from tinyhw.tools.witness.table import WITNESSES

BYTES: Final = "bytes in Python"
_ATOMICS = [f"{n}_{t}{w}" for w in (32, 64) for n, t in (
  ("swap", "b"), ("cmpswap", "b"), ("add", "u"), ("sub", "u"), ("min", "i"), ("min", "u"), ("max", "i"), ("max", "u"),
  ("and", "b"), ("or", "b"), ("xor", "b"), ("inc", "u"), ("dec", "u"))]
_ATOMICS += ["add_f32", "min_f32", "max_f32", "cmpswap_f32", "csub_u32", "sub_clamp_u32", "cond_sub_u32", "pk_add_f16",
             "pk_add_bf16", "min_num_f32", "max_num_f32", "add_f64", "min_f64", "max_f64"]
_OLD = ("swap", "cmpswap", "add", "sub", "smin", "umin", "smax", "umax", "and", "or", "xor", "inc", "dec")
_ATOMICS += [*_OLD, *(f"{n}_x2" for n in _OLD)]  # gfx9's names
ATOMICS: Final[dict[str, Atomic]] = {n: atomic(n) for n in _ATOMICS}
SHARED, PRIVATE = 1 << 48, 2 << 48  # where LDS and scratch lie in flat addresses


def immediate(i: Instruction) -> int:
  """The signed offset of a flat, global or scratch instruction."""
  bits = sum(w for _, _, w in i.row.fields["offset"])
  raw = i.fields["offset"]
  return raw - (1 << bits) if raw >> bits - 1 else raw


def kind_of(i: Instruction) -> tuple[str, str]:
  """("load" | "store" | "atomic", the rest of the name)."""
  _, kind, rest = i.mnemonic.split("_", 2)
  return kind, rest


def size_of(i: Instruction) -> int:
  """Bytes that a lane touches."""
  kind, rest = kind_of(i)
  if rest in {"addtid_b32", "block"}: return 4 if rest != "block" else 128
  rest = rest.removeprefix("lds_")
  return LOADS[rest][0] if kind == "load" else STORES[rest][0] if kind == "store" else ATOMICS[rest].width


def offset_field(e: Any, k: int, low: int = -64) -> None:
  """A small offset, of either sign where the form has one."""
  bits = e.width("offset")
  value = 0 if k == 0 else e.rng.randrange(low, 64) * 4
  e.fields["offset"] = value & (1 << bits) - 1


def flat_fields(e: Any, k: int) -> None: offset_field(e, k, 0 if e.row.mnemonic.startswith("flat") else -64)


def fill_memory(s: State, i: Instruction, rng: Random, data: int | None = None) -> None:
  """Memory, and the data operand of an atomic, of its type."""
  kind, rest = kind_of(i)
  s.memory = bytearray(rng.randbytes(MEMORY_SIZE))
  if kind != "atomic": return
  a = ATOMICS[rest]
  if a.type in FORMATS:
    some = b"".join(drawn(a.type, a.width, rng).to_bytes(a.width, "little") for _ in range(64))
    s.memory = bytearray(some * (MEMORY_SIZE // len(some)))
  register = i.operands["vdata"].value if data is None else data
  for at in range(s.waves * s.lanes):
    for part in range(1 + a.compares):
      value = drawn(a.type, a.width, rng)
      for k in range(a.width // 4): s.write(register + part * a.width // 4 + k, at, value >> 32 * k)


def targets(s: State, i: Instruction, rng: Random, size: int, limit: int = MEMORY_SIZE) -> list[int]:
  """A place in memory for each lane: all different, or (for atomics) some alike; now and then without alignment."""
  count = s.waves * s.lanes
  kind = kind_of(i)[0]
  slot = 1 << max(2, (size - 1).bit_length())
  places = rng.sample(range(limit // slot - 1), count) if limit // slot > count else [
    rng.randrange(limit // slot - 1) for _ in range(count)]
  if kind == "atomic" and rng.random() < 0.5: places = [p % 16 for p in places]
  shift = rng.randrange(1, slot) if kind != "atomic" and size < slot * 2 and rng.random() < 0.3 else 0
  return [p * slot + (shift if kind == "load" or shift + size <= slot else 0) for p in places]


def prepare_global(s: State, i: Instruction, rng: Random) -> None:
  """Addresses of global and flat accesses."""
  fill_memory(s, i, rng)
  offset, saddr, vaddr = immediate(i), i.operands.get("saddr"), i.operands.get("vaddr")
  bias = 0x4000
  if saddr is not None:
    for wave in range(s.waves): s.set_pair(saddr.value, wave, MEMORY - bias if vaddr is not None else MEMORY + 512)
  if vaddr is None: return
  for at, place in enumerate(targets(s, i, rng, size_of(i))):
    if saddr is not None: s.write(vaddr.value, at, place + bias - offset)
    else:
      address = MEMORY + place - offset
      s.write(vaddr.value, at, address)
      s.write(vaddr.value + 1, at, address >> 32)
  if kind_of(i)[0] == "atomic" and i.operands["vdata"].value == vaddr.value: raise AssertionError("operands overlap")
  if i.mnemonic.startswith("flat") and rng.random() < 0.6: into_apertures(s, i, rng)


def into_apertures(s: State, i: Instruction, rng: Random) -> None:
  """Some lanes point into LDS or, but for atomics, into scratch; stores then leave memory out, which holds scratch."""
  kind, size = kind_of(i)[0], size_of(i)
  s.lds = bytearray(rng.randbytes(2048))
  if kind == "atomic":
    a = ATOMICS[kind_of(i)[1]]
    s.lds = bytearray(b"".join(drawn(a.type, a.width, rng).to_bytes(a.width, "little") for _ in range(2048 // a.width)))
  register, offset = i.operands["vaddr"].value, immediate(i)
  room = MEMORY_SIZE // s.lanes // s.waves - size
  ways = {"atomic": ("lds", "global"), "load": ("lds", "scratch", "global"), "store": ("lds", "scratch")}[kind]
  for at in range(s.waves * s.lanes):
    way = rng.choice(ways)
    if way == "global": continue
    if way == "lds": address = SHARED + at * 16
    else: address = PRIVATE + rng.randrange(room // min(size, 4) + 1) * min(size, 4)
    s.write(register, at, address - offset)
    s.write(register + 1, at, address - offset >> 32)


def address_of(s: State, i: Instruction, wave: int, lane: int, at: int) -> int:
  """The address of a lane (RDNA3 ISA manual, section 10.3 "Address calculation")."""
  offset, saddr, vaddr = immediate(i), i.operands.get("saddr"), i.operands.get("vaddr")
  if vaddr is None:  # *_addtid
    base = s.pair(saddr.value, wave) if saddr is not None else 0
    return base + offset + 4 * lane
  if saddr is not None and saddr.value != NULL: return s.pair(saddr.value, wave) + s.v[vaddr.value][at] + offset
  return (s.v[vaddr.value][at] | s.v[vaddr.value + 1][at] << 32) + offset


def access(s: State, i: Instruction, at: int, place: int, memory: bytearray, ok: bool = True) -> None:
  """One lane's load, store or atomic at an offset of the memory; not `ok`: out of range, which reads zeros."""
  kind, rest = kind_of(i)
  if rest == "addtid_b32": rest = "b32"
  data = i.operands.get("vdata") or i.operands.get("vdst")
  assert data is not None
  destination = i.operands.get("vdst") or i.operands["vdata"]
  if kind == "load":
    width, sign, half = LOADS[rest]
    put_loaded(s, destination.value, at, load(memory, place, width) if ok else 0, sign, half, width)
  elif kind == "store":
    width, shift = STORES[rest]
    if ok: store(memory, place, width, words(s, data.value, at, max(4, width)) >> shift)
  else:
    a = ATOMICS[rest]
    new = words(s, data.value, at, a.width)
    compare = words(s, data.value + a.width // 4, at, a.width) if a.compares else 0
    old = load(memory, place, a.width) if ok else 0
    if ok: store(memory, place, a.width, a.change(old, new, compare))
    if i.row.returns:
      for k in range(a.width // 4): s.write(destination.value + k, at, old >> 32 * k)


def flat_access(s: State, i: Instruction) -> None:
  """Global and flat: lane after lane; flat addresses may point into LDS and scratch."""
  for wave, lane, at in s.active():
    address = address_of(s, i, wave, lane, at)
    if address >> 32 == SHARED >> 32 and s.lds: access(s, i, at, address & 0xFFFFFFFF, s.lds)
    elif address >> 32 == PRIVATE >> 32 and s.lds:
      places = private_places(s, wave, lane, address & 0xFFFFFFFF, size_of(i))
      own = bytearray(s.memory[p] for p in places)
      access(s, i, at, 0, own)
      for p, byte in zip(places, own): s.memory[p] = byte
    else: access(s, i, at, address - MEMORY, s.memory)


def prepare_scratch(s: State, i: Instruction, rng: Random) -> None:
  """Offsets inside each lane's scratch."""
  s.memory = bytearray(rng.randbytes(MEMORY_SIZE))
  offset, size = immediate(i), size_of(i)
  saddr, vaddr = i.operands.get("saddr"), i.operands.get("vaddr")
  room = MEMORY_SIZE // s.lanes // s.waves
  step = 1 if rng.random() < 0.3 else min(size, 4)  # scratch takes any alignment
  base = max(0, -offset) + rng.randrange(2) * 4
  if saddr is not None:
    for wave in range(s.waves): s.s[saddr.value][wave] = base
  elif vaddr is None: base = 0
  else: base = 0
  if vaddr is None: return
  low, high = max(0, base + offset), room - size
  for at in range(s.waves * s.lanes):
    place = rng.randrange(low // step, high // step + 1) * step if low < high else low
    s.write(vaddr.value, at, max(place, low) - base - offset)


def scratch_places(s: State, i: Instruction, wave: int, lane: int, at: int, size: int) -> list[int]:
  """Each byte's place."""
  saddr, vaddr = i.operands.get("saddr"), i.operands.get("vaddr")
  first = immediate(i) + (s.s[saddr.value][wave] if saddr is not None else 0) + (
    s.v[vaddr.value][at] if vaddr is not None else 0)
  return private_places(s, wave, lane, first, size)


def private_places(s: State, wave: int, lane: int, first: int, size: int) -> list[int]:
  """Dword k of lane l of a wave lies at 4 * (k * lanes + l) (RDNA3 ISA manual, section 10.9)."""
  start = wave * (MEMORY_SIZE // s.waves)
  return [start + (o // 4 * s.lanes + lane) * 4 + o % 4 for o in range(first, first + size)]


def scratch_access(s: State, i: Instruction) -> None:
  """Scratch: lane after lane."""
  kind, rest = kind_of(i)
  data = i.operands.get("vdata") or i.operands["vdst"]
  for wave, lane, at in s.active():
    places = scratch_places(s, i, wave, lane, at, size_of(i))
    if kind == "load":
      width, sign, half = LOADS[rest]
      put_loaded(s, data.value, at, int.from_bytes(bytes(s.memory[p] for p in places), "little"), sign, half, width)
    else:
      width, shift = STORES[rest]
      value = words(s, data.value, at, max(4, width)) >> shift
      for k, p in enumerate(places): s.memory[p] = value >> 8 * k & 0xFF


def scratch_fields(e: Any, k: int) -> None:
  """Offsets that stay inside a lane's scratch."""
  no_register = not any(o[0] in {"vaddr", "saddr"} for o in e.row.operands)
  value = 0 if k == 0 else e.rng.randrange(0, 8) * 4 if no_register else e.rng.randrange(-4, 8) * 4
  e.fields["offset"] = value & (1 << e.width("offset")) - 1


_NAMES = [*(f"load_{n}" for n in LOADS), *(f"store_{n}" for n in STORES)]
for prefix in ("global", "flat"):
  names = " ".join(f"{prefix}_{n}" for n in [*_NAMES, *(f"atomic_{a}" for a in ATOMICS)])
  WITNESSES.wave(names, BYTES, prepare=prepare_global, fields=flat_fields)(flat_access)


def by_lane_fields(e: Any, k: int) -> bool:
  """The forms with a scalar base; the other one addresses the first page."""
  flat_fields(e, k)
  return any(o[0] == "saddr" for o in e.row.operands)


WITNESSES.wave("global_load_addtid_b32 global_store_addtid_b32", BYTES, prepare=prepare_global,
               fields=by_lane_fields)(flat_access)
WITNESSES.wave(" ".join(f"scratch_{n}" for n in _NAMES), BYTES, prepare=prepare_scratch, fields=scratch_fields)(
  scratch_access)

# ---- scalar loads (RDNA3 ISA manual, section 8)

SCALAR_WIDTHS: Final = {"b32": 1, "b64": 2, "b96": 3, "b128": 4, "b256": 8, "b512": 16, "dword": 1, "dwordx2": 2,
                        "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}
SCALAR_SMALL: Final = {"u8": (1, 0), "i8": (1, 8), "u16": (2, 0), "i16": (2, 16)}


def scalar_parts(i: Instruction) -> tuple[bool, str]:
  """(whether through a buffer descriptor, the width's name)."""
  rest = i.mnemonic.removeprefix("s_buffer_load_").removeprefix("s_load_")
  return "buffer" in i.mnemonic, rest


def prepare_scalar(s: State, i: Instruction, rng: Random) -> None:
  """A base, or a descriptor, for each wave."""
  s.memory = bytearray(rng.randbytes(MEMORY_SIZE))
  buffered, _ = scalar_parts(i)
  base, soffset = i.operands["sbase"].value, i.operands.get("soffset")
  offset = immediate(i) if "offset" in i.fields else 0
  for wave in range(s.waves):
    extra = rng.randrange(64) * 4
    if soffset is not None and soffset.kind == "s" and soffset.value < 106: s.s[soffset.value][wave] = extra
    else: extra = 0
    if buffered:
      s.set_pair(base, wave, MEMORY)
      s.s[base + 2][wave] = rng.choice([MEMORY_SIZE, max(4, (offset + extra) // 4 * 4 + 8)])
      s.s[base + 3][wave] = 0x30000000 if s.isa != "gfx9" else 0
    else:
      low = rng.randrange(4) if rng.random() < 0.2 else 0
      s.set_pair(base, wave, MEMORY + 1024 + rng.randrange(64) * 4 + low)


def scalar_fields(e: Any, k: int) -> None:
  """An immediate offset, not negative for a buffer."""
  if "offset" in e.row.fields:
    low = 0 if "buffer" in e.row.mnemonic or e.table.name == "gfx12" else -64
    e.fields["offset"] = e.rng.randrange(low, 64) * 4 & (1 << e.width("offset")) - 1


def scalar_load(s: State, i: Instruction) -> None:
  """Whole dwords; the two lowest address bits do not count, but for loads of less than a dword."""
  buffered, rest = scalar_parts(i)
  base, soffset, destination = i.operands["sbase"].value, i.operands.get("soffset"), i.operands["sdst"].value
  offset = immediate(i) if "offset" in i.fields else 0
  for wave in range(s.waves):
    extra = s.bits(soffset, 32, wave, 0) if soffset is not None else 0
    address = (s.pair(base, wave) & (1 << 48) - 1 if buffered else s.pair(base, wave)) + offset + extra
    if rest in SCALAR_SMALL:
      width, sign = SCALAR_SMALL[rest]
      address &= -width  # "for 16-bit loads the one LSB is ignored" (RDNA4 ISA manual, section 8.1.1)
      value = load(s.memory, address - MEMORY, width)
      if buffered and offset + extra + width > s.s[base + 2][wave]: value = 0
      s.s[destination][wave] = (value - (1 << sign) if sign and value >> sign - 1 else value) & 0xFFFFFFFF
      continue
    address = (s.pair(base, wave) & (1 << 48) - 1 & ~3) + (offset + extra & ~3) if not buffered else address & ~3
    got = []
    for k in range(SCALAR_WIDTHS[rest]):
      inside = not buffered or address - MEMORY + 4 * k + 4 <= s.s[base + 2][wave]
      got.append(load(s.memory, address - MEMORY + 4 * k, 4) if inside else 0)
    for k, value in enumerate(got): s.s[destination + k][wave] = value


for prefix, waves in (("s_load", 3), ("s_buffer_load", 1)):
  WITNESSES.wave(" ".join(f"{prefix}_{n}" for n in [*SCALAR_WIDTHS, *SCALAR_SMALL]), BYTES, prepare=prepare_scalar,
                 fields=scalar_fields, waves=waves)(scalar_load)
