"""Witnesses of the scalar unit's stores, scratch accesses and atomics, gfx9's alone (CDNA3 ISA manual, section 8.2)."""
from __future__ import annotations

from random import Random
from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction
from tinyhw.tools.witness import draw
from tinyhw.tools.witness.atomics import load, store
from tinyhw.tools.witness.memory import ATOMICS, BYTES, SCALAR_WIDTHS, immediate
from tinyhw.tools.witness.state import MEMORY, MEMORY_SIZE, State
from tinyhw.tools.witness.table import WITNESSES

M0: Final = 124  # as gfx9 encodes it
OLD: Final = ("swap", "cmpswap", "add", "sub", "smin", "umin", "smax", "umax", "and", "or", "xor", "inc", "dec")
NAMES: Final = [*OLD, *(f"{n}_x2" for n in OLD)]


def fields(e: Any, k: int) -> bool:
  """Offsets of whole dwords; M0 as the offset register in the second case. No offset is negative for a buffer."""
  name = e.row.mnemonic
  unit = 8 if "_x2" in name else 4
  if "offset" in e.row.fields:
    low = 0 if "buffer" in name else -16
    e.fields["offset"] = e.rng.randrange(low, 32) * unit & (1 << e.width("offset")) - 1
  if k: e.fields["soffset"] = M0
  return not k or "soffset" in e.row.fields


def scale(i: Instruction) -> int:
  """What one of the offset register stands for: bytes, for scratch 64 of them."""
  return 64 if "scratch" in i.mnemonic else 1


def prepare(s: State, i: Instruction, rng: Random) -> None:
  """A base and an offset for each wave, all waves alike now and then; data of atomics."""
  s.memory = bytearray(rng.randbytes(MEMORY_SIZE))
  base, soffset = i.operands["sbase"].value, i.operands.get("soffset")
  buffered, atomic = "buffer" in i.mnemonic, "atomic" in i.mnemonic
  unit, together = 8 if "_x2" in i.mnemonic else 4, rng.random() < 0.4
  extra, place = rng.randrange(32) * unit, rng.randrange(64) * unit
  first = (i.operands.get("sdata") or i.operands["sdst"]).value
  records = rng.choice([MEMORY_SIZE, 256 + rng.randrange(32) * unit])
  some = data(s, i, rng) if atomic else []
  for w in range(s.waves):
    if not together: extra, place = rng.randrange(32) * unit, rng.randrange(64) * unit
    if soffset is not None: s.s[soffset.value][w] = extra + (0 if atomic or scale(i) > 1 else rng.randrange(4))
    s.set_pair(base, w, MEMORY if buffered else MEMORY + 1024 + place)
    if buffered: s.s[base + 2][w], s.s[base + 3][w] = records, 0
    for part in range(1 + ATOMICS[rest(i)].compares if atomic else 0):
      value, words = rng.choice(some), ATOMICS[rest(i)].width // 4
      for k in range(words): s.s[first + part * words + k][w] = value >> 32 * k & 0xFFFFFFFF


def data(s: State, i: Instruction, rng: Random) -> list[int]:
  """Memory filled from a few values, which are for the operand too, so that comparisons come out both ways."""
  a = ATOMICS[rest(i)]
  some = [draw.value(a.type, rng) for _ in range(3)]
  block = b"".join(rng.choice(some).to_bytes(a.width, "little") for _ in range(64))
  s.memory = bytearray(block * (MEMORY_SIZE // len(block)))
  return some


def rest(i: Instruction) -> str:
  """The part of the name after its verb."""
  return i.mnemonic.rsplit("atomic_", 1)[-1] if "atomic" in i.mnemonic else i.mnemonic.rsplit("_", 1)[-1]


def access(s: State, i: Instruction) -> None:
  """Wave after wave. Dwords past a buffer's end are not stored and read zeros."""
  base, soffset = i.operands["sbase"].value, i.operands.get("soffset")
  buffered = "buffer" in i.mnemonic
  first = (i.operands.get("sdata") or i.operands["sdst"]).value
  for w in range(s.waves):
    offset = (immediate(i) if "offset" in i.fields else 0) + (s.s[soffset.value][w] * scale(i) if soffset else 0)
    place = (s.pair(base, w) & (1 << 48) - 4) + (offset & ~3) - MEMORY
    room = s.s[base + 2][w] if buffered else 1 << 32
    if "atomic" in i.mnemonic:
      a = ATOMICS[rest(i)]
      words = [sum(s.s[first + part * a.width // 4 + k][w] << 32 * k for k in range(a.width // 4)) for part in (0, 1)]
      ok = offset + a.width <= room
      old = load(s.memory, place, a.width) if ok else 0
      if ok: store(s.memory, place, a.width, a.change(old, words[0], words[1] if a.compares else 0))
      if i.row.returns:
        for k in range(a.width // 4): s.s[first + k][w] = old >> 32 * k & 0xFFFFFFFF
      continue
    for k in range(SCALAR_WIDTHS[rest(i)]):
      inside = (offset & ~3) + 4 * k + 4 <= room
      if "store" in i.mnemonic:
        if inside: store(s.memory, place + 4 * k, 4, s.s[first + k][w])
      else: s.s[first + k][w] = load(s.memory, place + 4 * k, 4) if inside else 0


_WIDTHS: Final = ("dword", "dwordx2", "dwordx4")
_ALL = [f"s_{v}_{w}" for v in ("store", "buffer_store", "scratch_store", "scratch_load") for w in _WIDTHS]
_ALL += [f"s_{p}atomic_{n}" for p in ("", "buffer_") for n in NAMES]
WITNESSES.wave(" ".join(_ALL), BYTES, prepare=prepare, fields=fields, forms=2, waves=3, isa="gfx9")(access)
