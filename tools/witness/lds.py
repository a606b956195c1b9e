"""Witnesses of LDS instructions: RDNA3 ISA manual, sections 12 and 16.15; gfx9's names beside them."""
from __future__ import annotations

import re
from random import Random
from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import M0
from tinyhw.tools.witness.atomics import LOADS, STORES, Atomic, atomic, drawn, load, put_loaded, store, words
from tinyhw.tools.witness.cases import PLAIN
from tinyhw.tools.witness.memory import BYTES
from tinyhw.tools.witness.softfloat import FORMATS, Format
from tinyhw.tools.witness.state import LDS_SIZE, State
from tinyhw.tools.witness.table import WITNESSES

# The names of pairs: -> (verb, width of one element, unit of the offsets)
PAIRS: Final[dict[str, tuple[str, int, int]]] = {}
for _bits in (32, 64):
  for _new, _old, _verb in (("load_2addr", "read2", "load"), ("store_2addr", "write2", "store"),
                            ("storexchg_2addr", "wrxchg2", "swap")):
    _end = f"_rtn_b{_bits}" if _verb == "swap" else f"_b{_bits}"
    for _name in (_new, _old): PAIRS[f"ds_{_name}{_end}"] = (_verb, _bits // 8, _bits // 8)
    PAIRS[f"ds_{_new}_stride64{_end}"] = PAIRS[f"ds_{_old}st64{_end}"] = (_verb, _bits // 8, _bits // 8 * 64)


def operation(name: str) -> Atomic | None:
  """The atomic that a name means: "ds_add_rtn_u32", "ds_cmpst_b64", "ds_wrxchg_rtn_b32"; None for another kind."""
  rest = name.removeprefix("ds_").replace("_rtn", "")
  rest = re.sub(r"^(storexchg|wrxchg)_", "swap_", re.sub(r"^(cmpstore|cmpst)_", "cmpswap_", rest))
  try: return atomic(rest)
  except (KeyError, AssertionError): return None


_STEMS: Final = ("add", "sub", "rsub", "inc", "dec", "min", "max")
ATOMICS: Final[dict[str, Atomic]] = {}
_all = [f"{n}{r}_u{w}" for n in _STEMS for w in (32, 64) for r in ("", "_rtn")]
_all += [f"{n}{r}_i{w}" for n in ("min", "max") for w in (32, 64) for r in ("", "_rtn")]
_all += [f"{n}{r}_b{w}" for n in ("and", "or", "xor", "mskor", "cmpstore", "cmpst") for w in (32, 64)
         for r in ("", "_rtn")]
_all += [f"{n}_rtn_b{w}" for n in ("storexchg", "wrxchg") for w in (32, 64)] + ["wrap_rtn_b32"]
_all += [f"{n}{r}_f{w}" for n in ("min", "max", "cmpstore", "cmpst", "add", "min_num", "max_num") for w in (32, 64)
         for r in ("", "_rtn")]
_all += [f"{n}{r}_u32" for n in ("sub_clamp", "cond_sub") for r in ("", "_rtn")]
_all += [f"pk_add{r}_{t}" for t in ("f16", "bf16") for r in ("", "_rtn")]
for _n in _all:
  _a = operation(f"ds_{_n}")
  assert _a is not None, _n
  ATOMICS[f"ds_{_n}"] = _a


GDS_SIZE: Final = 4096
LDS_ALONE: Final = re.compile(r"ds_(b?permute|swizzle|\w*addtid)")


def lds_load(s: State, at: int, width: int) -> int:
  """Bytes at an LDS address; past the end there are zeros, for the whole access (RDNA3 ISA manual, section 3.3.4.1)."""
  return load(s.lds, at, width) if at + width <= len(s.lds) else 0


def lds_store(s: State, at: int, width: int, value: int) -> None:
  if at + width <= len(s.lds): store(s.lds, at, width, value)


def acting(s: State, i: Instruction) -> list[tuple[int, int, int]]:
  """The active lanes; of the global data share's instructions each wave's first (RDNA3 ISA manual, section 12.6)."""
  if not i.get("gds"): return s.active()
  first: dict[int, tuple[int, int, int]] = {}
  for wave, lane, at in s.active(): first.setdefault(wave, (wave, lane, at))
  return list(first.values())


def fetch(s: State, i: Instruction, wave: int, place: int, width: int) -> int:
  """Bytes of LDS, or of the global data share from M0's base on, of which M0 has the size too."""
  if not i.get("gds"): return lds_load(s, place, width)
  base, size = s.m0(wave) >> 16, s.m0(wave) & 0xFFFF
  inside = place + width <= size and base + place + width <= len(s.gds)
  return load(s.gds, base + place, width) if inside else 0


def keep(s: State, i: Instruction, wave: int, place: int, width: int, value: int) -> None:
  """The store that belongs to `fetch`."""
  if not i.get("gds"): return lds_store(s, place, width, value)
  base, size = s.m0(wave) >> 16, s.m0(wave) & 0xFFFF
  if place + width <= size and base + place + width <= len(s.gds): store(s.gds, base + place, width, value)


SMALL: Final = re.compile(r"ds_(pk_)?(add|min|max|min_num|max_num)(_rtn)?_(f32|f64|f16)")  # MODE's denormals count


def small(f: Format, rng: Random, denormal: bool) -> int:
  """A number about the least normal one, of which sums and differences are denormal; no zero."""
  exponent = 0 if denormal and rng.random() < 0.5 else rng.randrange(1, 3)
  return exponent << f.mantissa | max(1, rng.getrandbits(f.mantissa)) | (rng.getrandbits(1) * f.sign if exponent else 0)


def prepare_small(s: State, i: Instruction, rng: Random) -> None:
  """Small numbers in LDS, those and denormal ones beside them."""
  a = ATOMICS[i.mnemonic]
  f = FORMATS[a.type]
  for at in range(0, LDS_SIZE, f.bits // 8): store(s.lds, at, f.bits // 8, small(f, rng, False))
  for at in range(s.waves * s.lanes):
    value = sum(small(f, rng, True) << f.bits * k for k in range(8 * a.width // f.bits))
    for k in range(a.width // 4): s.write(i.operands["data0"].value + k, at, value >> 32 * k)


def under_mode(s: State, i: Instruction, old: int, data: int) -> int:
  """A sum or an extreme under MODE (RDNA3 ISA manual, section 13.2; RDNA4, 13.2; CDNA3, 9.2.2).

  Sums of f64 flush nothing. RDNA4's extremes are of the flushed numbers; the others' are the number itself.
  """
  a = ATOMICS[i.mnemonic]
  f = FORMATS[a.type]
  if "_add_" in i.mnemonic and f.bits == 64: return a.change(old, data, 0)
  inputs, outputs = s.mode.flushes_in(f), s.mode.flushes_out(f)
  if "_add_" not in i.mnemonic:
    x, y = (f.flush(v) if inputs else v for v in (old, data))
    chosen = a.change(x, y, 0)
    return chosen if s.isa == "gfx12" else old if chosen == x else data
  out = 0
  for at in range(0, 8 * a.width, f.bits):
    x, y = ((v >> at) & (1 << f.bits) - 1 for v in (old, data))
    total = f.add(f.flush(x), f.flush(y)) if inputs else f.add(x, y)
    out |= (f.flush(total) if outputs else total) << at
  return out


def prepare(s: State, i: Instruction, rng: Random) -> None:
  """LDS, addresses in and now and then past it, typed data."""
  s.lds = bytearray(rng.randbytes(LDS_SIZE))
  a = ATOMICS.get(i.mnemonic)
  if a is not None:
    for at in range(0, LDS_SIZE, a.width): store(s.lds, at, a.width, drawn(a.type, a.width, rng))
  offset = i.fields.get("offset", 0)
  verb, width, unit = PAIRS.get(i.mnemonic, ("", 4, 4))
  size = a.width if a is not None else 16
  limit = LDS_SIZE - offset - size
  beyond = rng.random() < 0.3
  slots = rng.sample(range(LDS_SIZE // 16), s.waves * s.lanes)  # lanes of pairs do not meet: their order is not fixed
  for at in range(s.waves * s.lanes):
    place = rng.randrange(max(1, limit // size)) * size
    if verb: place = slots[at] // (unit // width) * 2 * unit + slots[at] % (unit // width) * width
    if beyond and rng.random() < 0.2: place = LDS_SIZE + rng.randrange(64) * size
    if "addr" in i.operands: s.write(i.operands["addr"].value, at, place)
    for name in ("data0", "data1"):
      if a is not None and name in i.operands:
        value = drawn(a.type, a.width, rng)
        for k in range(a.width // 4): s.write(i.operands[name].value + k, at, value >> 32 * k)
  s.s[M0] = [rng.randrange(16) * 4 for _ in range(s.waves)]
  if i.get("gds"):
    s.gds = bytearray(s.lds * (GDS_SIZE // LDS_SIZE))
    s.s[M0] = [rng.randrange(300) * 8 << 16 | rng.choice([0, 256, LDS_SIZE, 0xFFFF]) for _ in range(s.waves)]
    if verb: s.s[M0] = s.s[M0][:1] * s.waves  # pairs do not meet there either
  if s.mode.value != PLAIN[s.isa]: prepare_small(s, i, rng)


PLAIN_FORMS: Final = 4
FORMS: Final = 7  # with those of the global data share, which gfx1100 has


def fields(e: Any, k: int) -> bool:
  """Offsets: none, then some."""
  if "offset0" in e.row.fields:
    first = e.rng.randrange(2)
    e.fields |= {"offset0": first, "offset1": 1 - first}
  elif "offset" in e.row.fields: e.fields["offset"] = 0 if not k else e.rng.randrange(16) * 16
  if SMALL.fullmatch(e.row.mnemonic) and k < PLAIN_FORMS: e.mode = PLAIN[e.table.name] & ~(0, 0x50, 0xA0, 0xF0)[k]
  if k < PLAIN_FORMS: return True
  if e.table.name != "gfx11" or "gds" not in e.row.fields or LDS_ALONE.match(e.row.mnemonic): return False
  e.fields["gds"] = 1
  return True


def plain(s: State, i: Instruction) -> None:
  """ds_load, ds_store and their old names."""
  _, verb, rest = i.mnemonic.split("_", 2)
  offset = i.fields["offset"]
  for wave, _, at in acting(s, i):
    place = s.v[i.operands["addr"].value][at] + offset & 0xFFFFFFFF
    if verb in {"load", "read"}:
      width, sign, half = LOADS[rest]
      put_loaded(s, i.operands["vdst"].value, at, fetch(s, i, wave, place, width), sign, half, width)
    else:
      width, shift = STORES[rest]
      keep(s, i, wave, place, width, words(s, i.operands["data0"].value, at, max(4, width)) >> shift)


def pair(s: State, i: Instruction) -> None:
  """Two elements at two offsets."""
  verb, width, unit = PAIRS[i.mnemonic]
  offsets = [i.fields[n] * unit for n in ("offset0", "offset1")]
  for wave, _, at in acting(s, i):
    base, out = s.v[i.operands["addr"].value][at], 0
    for k, offset in enumerate(offsets):
      place = base + offset & 0xFFFFFFFF
      if verb != "store": out |= fetch(s, i, wave, place, width) << 8 * width * k
      if verb == "swap": keep(s, i, wave, place, width, words(s, i.operands[f"data{k}"].value, at, width))
    if verb == "store":
      for k, offset in enumerate(offsets):
        keep(s, i, wave, base + offset & 0xFFFFFFFF, width, words(s, i.operands[f"data{k}"].value, at, width))
    else: put_loaded(s, i.operands["vdst"].value, at, out, 0, None, 2 * width)


def modify(s: State, i: Instruction) -> None:
  """Atomics. cmpst takes the value to compare with first, cmpstore last."""
  a = ATOMICS[i.mnemonic]
  swapped = "_cmpst_" in i.mnemonic
  for wave, _, at in acting(s, i):
    place = s.v[i.operands["addr"].value][at] + i.fields["offset"] & 0xFFFFFFFF
    first = words(s, i.operands["data0"].value, at, a.width)
    second = words(s, i.operands["data1"].value, at, a.width) if "data1" in i.operands else 0
    old = fetch(s, i, wave, place, a.width)
    if SMALL.fullmatch(i.mnemonic): new = under_mode(s, i, old, first)
    else: new = a.change(old, *((second, first) if swapped else (first, second)))
    keep(s, i, wave, place, a.width, new)
    if "vdst" in i.operands: put_loaded(s, i.operands["vdst"].value, at, old, 0, None, a.width)


def count(s: State, i: Instruction) -> None:
  """ds_append and ds_consume: the number of active lanes, once a wave, at M0 + offset."""
  for wave in range(s.waves):
    active = s.exec(wave)
    if not active: continue
    change = active.bit_count() if i.mnemonic == "ds_append" else -active.bit_count()
    if i.get("gds"):  # M0's base alone counts
      place = (s.m0(wave) >> 16) + i.fields["offset"]
      old = load(s.gds, place, 4) if place + 4 <= len(s.gds) else 0
      if place + 4 <= len(s.gds): store(s.gds, place, 4, old + change)
    else:
      place = (s.m0(wave) & 0xFFFF) + i.fields["offset"]
      old = lds_load(s, place, 4)
      lds_store(s, place, 4, old + change)
    for lane in range(s.lanes):
      if active >> lane & 1: s.write(i.operands["vdst"].value, wave * s.lanes + lane, old)


def by_lane(s: State, i: Instruction) -> None:
  """ds_load_addtid, ds_store_addtid: dword `lane` at M0 + offset."""
  for wave, lane, at in s.active():
    place = (s.m0(wave) & 0xFFFF) + i.fields["offset"] + 4 * lane
    if "vdst" in i.operands: s.write(i.operands["vdst"].value, at, lds_load(s, place, 4))
    else: lds_store(s, place, 4, s.v[i.operands["data0"].value][at])


def conditional_exchange(s: State, i: Instruction) -> None:
  """ds_condxchg32_rtn_b64: each dword whose data has bit 31 set is replaced by the other 31 bits."""
  for wave, _, at in acting(s, i):
    place = s.v[i.operands["addr"].value][at] + i.fields["offset"] & 0xFFF8
    data, old = words(s, i.operands["data0"].value, at, 8), fetch(s, i, wave, place, 8)
    for k in (0, 1):
      word = data >> 32 * k & 0xFFFFFFFF
      if word >> 31: keep(s, i, wave, place + 4 * k, 4, word & 0x7FFFFFFF)
    put_loaded(s, i.operands["vdst"].value, at, old, 0, None, 8)


wave = WITNESSES.wave
wave(" ".join([*(f"ds_{v}_{n}" for v in ("load", "read") for n in LOADS), *(f"ds_{v}_{n}" for v in ("store", "write")
               for n in STORES)]), BYTES, prepare=prepare, fields=fields, forms=FORMS)(plain)
wave(" ".join(PAIRS), BYTES, prepare=prepare, fields=fields, forms=FORMS)(pair)
wave(" ".join(ATOMICS), BYTES, prepare=prepare, fields=fields, forms=FORMS)(modify)
wave("ds_append ds_consume", BYTES, prepare=prepare, fields=fields, forms=FORMS)(count)
wave("ds_load_addtid_b32 ds_store_addtid_b32 ds_read_addtid_b32 ds_write_addtid_b32", BYTES, prepare=prepare,
     fields=fields, forms=FORMS)(by_lane)
wave("ds_condxchg32_rtn_b64", BYTES, prepare=prepare, fields=fields, forms=FORMS)(conditional_exchange)
