"""Witnesses of RDNA4's loads and stores of blocks of registers (RDNA4 ISA manual, GLOBAL_LOAD_BLOCK and its like)."""
from __future__ import annotations

from random import Random

from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import M0
from tinyhw.tools.witness import memory
from tinyhw.tools.witness.atomics import load, store
from tinyhw.tools.witness.memory import BYTES
from tinyhw.tools.witness.state import MEMORY, State
from tinyhw.tools.witness.table import WITNESSES


def prepare(s: State, i: Instruction, rng: Random) -> None:
  """Addresses of 32 dwords, of which M0 names some."""
  (memory.prepare_scratch if i.mnemonic.startswith("scratch") else memory.prepare_global)(s, i, rng)
  s.s[M0] = [rng.choice((rng.getrandbits(32), 0, 0xFFFFFFFF, 1 << 31)) for _ in range(s.waves)]


def block(s: State, i: Instruction) -> None:
  """Dword k of the block for each bit k of M0; holes stay as they are."""
  data = (i.operands.get("vdata") or i.operands["vdst"]).value
  for w, lane, at in s.active():
    for k in (k for k in range(32) if s.m0(w) >> k & 1):
      if i.mnemonic.startswith("scratch"): places = memory.scratch_places(s, i, w, lane, at, 128)[4 * k:4 * k + 4]
      else: places = [memory.address_of(s, i, w, lane, at) - MEMORY + 4 * k + b for b in range(4)]
      if "store" in i.mnemonic:
        for b, p in enumerate(places): store(s.memory, p, 1, s.v[data + k][at] >> 8 * b)
      else: s.write(data + k, at, sum(load(s.memory, p, 1) << 8 * b for b, p in enumerate(places)))


for _prefix, _fields in (("global", memory.flat_fields), ("scratch", memory.scratch_fields)):
  WITNESSES.wave(f"{_prefix}_load_block {_prefix}_store_block", BYTES, prepare=prepare, fields=_fields, forms=3,
                 isa="gfx12")(block)
