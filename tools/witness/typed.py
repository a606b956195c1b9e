"""Witnesses of formatted buffer accesses (RDNA3 ISA manual, sections 9.3 and 10.7; CDNA3, 9.1.4 and 9.1.11).

A format's name lists the bits of its components from the most significant one. What a chip rounds when it makes floats
of normalized integers the manuals leave open: one ULP is allowed. Stores are judged by values that a format holds.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tinyhw.autogen import buffer_formats
from tinyhw.isa.amdgcn import Instruction
from tinyhw.tools.witness import to_lds
from tinyhw.tools.witness.atomics import load, signed, store, words
from tinyhw.tools.witness.buffers import LanePlace, place_of, prepare_addresses
from tinyhw.tools.witness.memory import BYTES
from tinyhw.tools.witness.softfloat import F16, F32, RNE, ZERO, Format, convert, from_integer
from tinyhw.tools.witness.state import Loose, State
from tinyhw.tools.witness.table import WITNESSES

FLOATS: Final = {32: F32, 16: F16, 11: Format("f11", 12, 6, 15), 10: Format("f10", 11, 5, 15)}
IDENTITY: Final[tuple[int, ...]] = (4, 5, 6, 7)  # DST_SEL: R, G, B, A


@dataclass(frozen=True)
class Kind:
  """A memory format: bits of its components from the lowest one, how they are read, and its code."""
  bits: tuple[int, ...]
  how: str
  code: int

  @property
  def size(self) -> int: return sum(self.bits) // 8

  @property
  def whole(self) -> bool: return self.how in {"UINT", "SINT"}


def kinds(isa: str) -> list[Kind]:
  """Every format that a table of instructions has; gfx9 gives data and number formats codes of their own."""
  out = []
  for code, name in buffer_formats.UNIFIED.items():
    *bits, how = name.split("_")
    if not bits: continue
    if isa == "gfx9":
      data = next(k for k, v in buffer_formats.DATA.items() if v == "_".join(bits))
      code = data | next(k for k, v in buffer_formats.NUMBER.items() if v == how) << 4
    out.append(Kind(tuple(int(b) for b in reversed(bits)), how, code))
  return out


@dataclass(frozen=True)
class Form:
  """What an instruction's name says: load or store, how many components, halves (which one, for one component)."""
  load: bool
  count: int
  half: int | None
  typed: bool


def form_of(mnemonic: str) -> Form:
  x = re.fullmatch(r"(t?)buffer_(load|store)_(?:(?:lds_|d16_)?(?:hi_)?format|format_d16(?:_hi)?)_([xyzw]+)", mnemonic)
  assert x, mnemonic
  half = None if "d16" not in mnemonic else 1 if "_hi_" in mnemonic else 0
  return Form(x[2] == "load", len(x[3]), half, bool(x[1]))


def fits(form: Form, kind: Kind) -> bool:
  """Whether the manuals say what comes out: 32-bit integers as 16 bits they do not, nor components that a store lacks;
  and what halves hold of it is exact for a store."""
  if form.half is not None and 32 in kind.bits and (kind.whole or not form.load): return False
  if form.load: return True
  lossy = form.half is not None and 16 in kind.bits and kind.how in {"UNORM", "SNORM", "USCALED", "SSCALED"}
  return len(kind.bits) <= form.count and not lossy


def resource_kind(s: State, i: Instruction) -> Kind:
  """The format that an access has: the instruction's, or the resource's."""
  word = s.s[i.operands["srsrc"].value + 3][0]
  if "format" in i.fields: code = i.fields["format"]
  elif s.isa == "gfx9": code = word >> 15 & 15 | (word >> 12 & 7) << 4
  else: code = word >> 12 & 63
  return next(k for k in kinds(s.isa) if k.code == code)


def fields(e: Any, k: int) -> bool:
  """The status dword makes another instruction; a format of the instruction's own."""
  form = form_of(e.row.mnemonic)
  data = next((o[3] for o in e.row.operands if o[0] == "vdata"), None)
  if data is not None and data != (form.count if form.half is None else -(-form.count // 2)): return False
  e.fields["offset"] = 16 * e.rng.randrange(3)
  if form.typed: e.fields["format"] = e.rng.choice([x for x in kinds(e.table.name) if fits(form, x)]).code
  return True


def prepare(s: State, i: Instruction, rng: Random) -> None:
  """A resource of a random format and selection; memory; for stores values that the format holds."""
  form = form_of(i.mnemonic)
  n = i.operands["srsrc"].value
  s.memory = bytearray(rng.randbytes(len(s.memory) or 4 * 4096))
  kind = resource_kind(s, i) if form.typed else rng.choice([k for k in kinds(s.isa) if fits(form, k)])
  prepare_addresses(s, i, rng, 16, kind.size)
  number = (kind.code >> 4) << 12 | (kind.code & 15) << 15 if s.isa == "gfx9" else kind.code << 12
  chosen = IDENTITY
  if form.load and not form.typed: chosen = tuple(rng.choice((0, 1, *IDENTITY[:len(kind.bits)])) for _ in range(4))
  for w in range(s.waves):
    kept = s.s[n + 3][w] & ~(0x7FFFF if s.isa == "gfx9" else 0x3FFFF)
    s.s[n + 3][w] = kept | number | sum(c << 3 * k for k, c in enumerate(chosen))
  if "vdata" not in i.operands: to_lds.prepare(s, i, rng)
  if form.load: return
  for at in range(s.waves * s.lanes):
    raw = rng.getrandbits(8 * kind.size)
    values = [readable(x, b, kind.how) for x, b in zip(split(raw, kind), kind.bits)]
    for k, (x, b) in enumerate(zip(values, kind.bits)):
      value = decoded(x, b, kind.how)
      put(s, i, form, at, k, value if kind.whole or form.half is None else convert(value, F32, F16))


def split(raw: int, kind: Kind) -> list[int]:
  """The components' bits."""
  out = []
  for bits in kind.bits:
    out.append(raw & (1 << bits) - 1)
    raw >>= bits
  return out


def readable(x: int, bits: int, how: str) -> int:
  """A pattern that only one value has: no NaN, and not the second one of -1."""
  if how == "FLOAT" and FLOATS[bits].is_nan(x): return 0
  return x ^ 1 if how == "SNORM" and x == 1 << bits - 1 else x


def decoded(x: int, bits: int, how: str) -> int:
  """A component as what a register gets: a f32 pattern or an integer."""
  if how == "UINT": return x
  if how == "SINT": return signed(x, bits) & 0xFFFFFFFF
  if how == "FLOAT": return convert(x, FLOATS[bits], F32) if bits != 32 else x
  value = signed(x, bits) if how[0] == "S" else x
  if how.endswith("SCALED"): return from_integer(value, F32)
  top = (1 << bits - (how[0] == "S")) - 1
  return F32.div(from_integer(max(value, -top), F32), from_integer(top, F32))


def encoded(x: int, bits: int, how: str) -> int:
  """The pattern of a value that the format holds."""
  if how in {"UINT", "SINT"}: return x & (1 << bits) - 1
  if how == "FLOAT": return convert(x, F32, FLOATS[bits]) if bits != 32 else x
  m, e = F32.value(x)
  top = 1 if how.endswith("SCALED") else (1 << bits - (how[0] == "S")) - 1
  scaled = m * top
  whole = scaled << e if e >= 0 else (2 * scaled + (1 << -e)) >> 1 - e
  return whole & (1 << bits) - 1


def put(s: State, i: Instruction, form: Form, at: int, k: int, value: int) -> None:
  """Component k of a lane's registers."""
  register = i.operands["vdata"].value
  if form.half is None: s.write(register + k, at, value)
  else:
    half = form.half if form.count == 1 else k % 2
    kept = s.v[register + k // 2][at] & ~(0xFFFF << 16 * half)
    if form.load and (s.isa == "gfx9" and form.count == 1 or k and half == 0): kept = 0
    s.write(register + k // 2, at, kept | (value & 0xFFFF) << 16 * half)


def get(s: State, i: Instruction, form: Form, at: int, k: int) -> int:
  register = i.operands["vdata"].value
  if form.half is None: return s.v[register + k][at]
  return words(s, register + k // 2, at, 4) >> 16 * (form.half if form.count == 1 else k % 2) & 0xFFFF


def access(s: State, i: Instruction) -> None:
  """Lane after lane, all or nothing."""
  form, kind = form_of(i.mnemonic), resource_kind(s, i)
  n = i.operands["srsrc"].value
  for wave, lane, at in s.active():
    place: LanePlace = place_of(s, i, wave, lane, at)
    inside = place.offset + kind.size <= place.room
    if not form.load:
      if not inside: continue
      raw = shift = 0
      for k, bits in enumerate(kind.bits):
        value = get(s, i, form, at, k)
        if form.half is not None and not kind.whole: value = convert(value, F16, F32)
        raw, shift = raw | encoded(value, bits, kind.how) << shift, shift + bits
      store(s.memory, place.at, kind.size, raw)
      continue
    parts = split(load(s.memory, place.at, kind.size), kind) if inside else [0] * len(kind.bits)
    if "vdata" not in i.operands:
      value = decoded_component(kind, s.s[n + 3][wave] & 7, parts)
      to_lds.put(s, i, wave, lane, i.fields["offset"], value, 4, 0)
      continue
    for k in range(form.count):
      select = IDENTITY[k] if form.typed else s.s[n + 3][wave] >> 3 * k & 7
      put_component(s, i, form, kind, at, k, select, parts)


def decoded_component(kind: Kind, select: int, parts: list[int]) -> int:
  """What DST_SEL chooses: a constant, or a component that the format has."""
  if select < 4: return (1 if kind.whole else F32.bias << F32.mantissa) if select == 1 else 0
  return decoded(parts[select - 4], kind.bits[select - 4], kind.how) if select - 4 < len(parts) else 0


def put_component(s: State, i: Instruction, form: Form, kind: Kind, at: int, k: int, select: int,
                  parts: list[int]) -> None:
  """One component of a load: what DST_SEL chooses, as 32 or 16 bits."""
  value, loose = decoded_component(kind, select, parts), 1.0 if select > 3 and "NORM" in kind.how else 0.0
  register, first = i.operands["vdata"].value + (k if form.half is None else k // 2), 0
  f = F32
  if form.half is not None:
    f, first = F16, 16 * (form.half if form.count == 1 else k % 2)
    if not kind.whole: value = convert(value, F32, F16, ZERO if 32 in kind.bits else RNE)
  put(s, i, form, at, k, value)
  if not kind.whole: s.loose.setdefault((register, at), []).append(Loose(f, first, loose))


_NEW = [f"{t}buffer_{v}_{d}format_{c}" for t in ("", "t") for v in ("load", "store") for d in ("", "d16_")
        for c in ("x", "xy", "xyz", "xyzw")] + [f"buffer_{v}_d16_hi_format_x" for v in ("load", "store")]
_OLD = [f"{t}buffer_{v}_format_d16_{c}" for t in ("", "t") for v in ("load", "store")
        for c in ("x", "xy", "xyz", "xyzw")] + [f"buffer_{v}_format_d16_hi_x" for v in ("load", "store")]
WITNESSES.wave(" ".join([*_NEW, *_OLD, "buffer_load_lds_format_x"]), BYTES, prepare=prepare, fields=fields,
               forms=3)(access)
