"""Witnesses of loads that go to LDS instead of registers (CDNA3 ISA manual, sections 9.1.9 and 10.6)."""
from __future__ import annotations

from random import Random
from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import M0
from tinyhw.tools.witness import memory
from tinyhw.tools.witness.atomics import LOADS, load, signed, store
from tinyhw.tools.witness.memory import BYTES
from tinyhw.tools.witness.state import LDS_SIZE, MEMORY, MEMORY_SIZE, State
from tinyhw.tools.witness.table import WITNESSES

NAMES: Final = ("ubyte", "sbyte", "ushort", "sshort", "dword")


def prepare(s: State, i: Instruction, rng: Random) -> None:
  """LDS, and a part of it for each wave: what M0 has above its 16 (18) bits does not count."""
  s.lds = bytearray(rng.randbytes(LDS_SIZE))
  above = 1 << 20 if i.family == "FLAT" else 1 << 16
  apart = 1536 if i.mnemonic.endswith(("x3", "x4")) else 640
  s.s[M0] = [w * apart + rng.randrange(32) * 4 + rng.randrange(8) * above for w in range(s.waves)]


def put(s: State, i: Instruction, wave: int, lane: int, offset: int, value: int, width: int, sign: int) -> None:
  """A dword: the number extended, at M0 + the instruction's offset + 4 * lane; nothing past the end. Of gfx950's wider
  ones each lane has 16 bytes (CDNA4 ISA manual, 9.1.9)."""
  if width > 4:
    first = (s.m0(wave) & (0x3FFFC if i.family == "FLAT" else 0xFFFF)) + offset + 16 * lane
    if first < 0 or first + width > len(s.lds): return  # as a DS store of as many dwords
    for k in range(width // 4): put(s, i, wave, 0, offset + 16 * lane + 4 * k, value >> 32 * k & 0xFFFFFFFF, 4, 0)
    return
  if sign: value = signed(value, 8 * width)
  base = s.m0(wave) & (0x3FFFC if i.family == "FLAT" else 0xFFFF)
  at = base + offset + 4 * lane
  if 0 <= at and at + 4 <= len(s.lds): store(s.lds, at, 4, value)


def prepare_flat(s: State, i: Instruction, rng: Random) -> None:
  s.memory = bytearray(rng.randbytes(MEMORY_SIZE))
  (memory.prepare_scratch if i.mnemonic.startswith("scratch") else memory.prepare_global)(s, i, rng)
  prepare(s, i, rng)


def flat_fields(e: Any, k: int) -> None:
  if e.row.mnemonic.startswith("scratch"): memory.scratch_fields(e, k)
  else: memory.flat_fields(e, k)


def from_memory(s: State, i: Instruction) -> None:
  """The instruction's offset counts for both addresses."""
  width, sign, _ = LOADS[i.mnemonic.rsplit("_", 1)[-1]]
  for wave, lane, at in s.active():
    if i.mnemonic.startswith("scratch"):
      places = memory.scratch_places(s, i, wave, lane, at, width)
      value = int.from_bytes(bytes(s.memory[p] for p in places), "little")
    else: value = load(s.memory, memory.address_of(s, i, wave, lane, at) - MEMORY, width)
    put(s, i, wave, lane, memory.immediate(i), value, width, sign)


WITNESSES.wave(" ".join(f"{p}_load_lds_{n}" for p in ("global", "scratch") for n in NAMES), BYTES, prepare=prepare_flat,
               fields=flat_fields)(from_memory)


def prepare_store(s: State, i: Instruction, rng: Random) -> None:
  """LDS, and a buffer that gives each lane a dword of its own (ADD_TID_ENABLE)."""
  prepare(s, i, rng)
  s.memory = bytearray(rng.randbytes(MEMORY_SIZE))
  n, soffset = i.operands["srsrc"].value, i.operands["soffset"]
  for w in range(s.waves):
    base = MEMORY + 512 + 2048 * w
    words = (base & 0xFFFFFFFF, base >> 32 | rng.choice([4, 8, 12]) << 16, 4096, 1 << 23)
    for k, word in enumerate(words): s.s[n + k][w] = word
    if soffset.kind == "s" and soffset.value < 106: s.s[soffset.value][w] = rng.randrange(16) * 4


@WITNESSES.wave("buffer_store_lds_dword", BYTES, prepare=prepare_store, forms=8,
                fields=lambda e, k: e.fields.update(offset=0 if not k else e.rng.randrange(64) * 4))
def store_lds(s: State, i: Instruction) -> None:
  """The way of a load to LDS the other way round; the CDNA3 manual has the name, but not what it does."""
  n = i.operands["srsrc"].value
  for w, lane, at in s.active():
    source = (s.m0(w) & 0xFFFF) + i.fields["offset"] + 4 * lane
    if source + 4 > len(s.lds): continue
    base, stride = s.s[n][w] | (s.s[n + 1][w] & 0xFFFF) << 32, s.s[n + 1][w] >> 16 & 0x3FFF
    where = base + stride * lane + i.fields["offset"] + s.bits(i.operands["soffset"], 32, w, at)
    store(s.memory, where - MEMORY, 4, load(s.lds, source, 4))
