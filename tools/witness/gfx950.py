"""Witnesses of what only gfx950 has (CDNA4 ISA manual)."""
from __future__ import annotations

from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction
from tinyhw.tools.witness import memory, to_lds
from tinyhw.tools.witness.atomics import load
from tinyhw.tools.witness.memory import BYTES
from tinyhw.tools.witness.state import MEMORY, State
from tinyhw.tools.witness.table import WITNESSES

M32: Final = 0xFFFFFFFF


def _shifted(x: int) -> int:
  """V_PRNG_B32: a linear feedback shift register, one bit on."""
  return (2 * x ^ (0b11000101 if x & 1 << 31 else 0)) & M32


WITNESSES.lane("v_prng_b32", "b32 -> b32", _shifted)


def by_table(s: State, i: Instruction) -> None:
  """V_BITOP3: each bit of the result is looked up in the instruction's table of eight, by the bits of the sources."""
  bits = 16 if i.mnemonic.endswith("b16") else 32
  table = i.get("bitop3")
  for w, _, at in s.active():
    chosen = i.get("op_sel")
    words = [s.bits(i.operands[f"src{k}"], bits, w, at) if bits == 32 else
             s.bits(i.operands[f"src{k}"], 32, w, at) >> 16 * (chosen >> k & 1) & 0xFFFF for k in range(3)]
    found = sum((table >> ((words[0] >> b & 1) * 4 + (words[1] >> b & 1) * 2 + (words[2] >> b & 1)) & 1) << b
                for b in range(bits))
    column = s.v[i.operands["vdst"].value]
    if bits == 32: column[at] = found
    elif chosen & 8: column[at] = column[at] & 0xFFFF | found << 16
    else: column[at] = column[at] & 0xFFFF0000 | found


def vectors(e: Any, k: int) -> None:
  """Sources in vector registers, and any table."""
  for name in ("src0", "src1", "src2"): e.fields[name] = 256 + e.rng.randrange(8)


WITNESSES.wave("v_bitop3_b32 v_bitop3_b16", fields=vectors, forms=12)(by_table)


def wide(s: State, i: Instruction) -> None:
  """GLOBAL_LOAD_LDS_DWORDX3 and X4: dwords of a lane at M0 + offset + 16 * lane."""
  width = 4 * int(i.mnemonic[-1])
  for w, n, at in s.active():
    value = load(s.memory, memory.address_of(s, i, w, n, at) - MEMORY, width)
    to_lds.put(s, i, w, n, memory.immediate(i), value, width, 0)


WITNESSES.wave("global_load_lds_dwordx3 global_load_lds_dwordx4", BYTES, prepare=to_lds.prepare_flat,
               fields=to_lds.flat_fields)(wide)
