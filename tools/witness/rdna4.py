"""Witnesses of what RDNA4 alone has: loads that transpose, and the allocation of vector registers.

RDNA4 ISA manual, sections 3.3.3, 7.12.2 and 11.6.
"""
from __future__ import annotations

from random import Random
from typing import Any

from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import EXEC_LO
from tinyhw.tools.witness.memory import BYTES, immediate
from tinyhw.tools.witness.state import M32, MEMORY, MEMORY_SIZE, State
from tinyhw.tools.witness.table import WITNESSES

wave = WITNESSES.wave


def reads(lane: int, bits: int) -> tuple[int, int]:
  """(K, first M) of the eight elements that one of the lower 32 lanes reads of a matrix A [M, K], 16 by 16.

  The manual's text says it of lane 0 alone (K = 0, M = 0 to 7); of the others, kernels that ran on a gfx1201 do.
  """
  b = [lane >> k & 1 for k in range(5)]
  if bits == 8: return b[0] | b[1] << 1 | b[3] << 2 | b[4] << 3, 8 * b[2]
  return b[0] | b[1] << 1 | b[4] << 2 | b[2] << 3, 8 * b[3]


def lies(m: int, k: int, bits: int, lanes: int) -> tuple[int, int]:
  """(lane, number of the element in it) of A[m, k] in registers: the tables of section 7.12.2."""
  k0, k1, k2, k3 = (k >> n & 1 for n in range(4))
  group, element = {
    (16, 32): ((k2,), (k0, k1, k3)), (16, 64): ((k2, k3), (k0, k1)),
    (8, 32): ((k3,), (k0, k1, k2)), (8, 64): ((k3, k2), (k0, k1))}[bits, lanes]
  return m + 16 * sum(b << n for n, b in enumerate(group)), sum(b << n for n, b in enumerate(element))


def prepare(s: State, i: Instruction, rng: Random) -> None:
  """Addresses, which the upper half of 64 lanes does not need, and EXEC with all lanes or none."""
  s.memory = bytearray(rng.randbytes(MEMORY_SIZE))
  offset, saddr, vaddr = immediate(i), i.operands.get("saddr"), i.operands["vaddr"].value
  for w in range(s.waves):
    on = M32 * (rng.random() < 0.8)
    for k in range(s.lanes // 32): s.s[EXEC_LO + k][w] = on
    if saddr is not None: s.set_pair(saddr.value, w, MEMORY - 0x4000)
    for lane in range(s.lanes):
      place = rng.randrange(MEMORY_SIZE // 16 - 1) * 16 if lane < 32 else -1 << 20
      address = place - offset + (0x4000 if saddr is not None else MEMORY)
      s.write(vaddr, w * s.lanes + lane, address)
      if saddr is None: s.write(vaddr + 1, w * s.lanes + lane, address >> 32)


def fields(e: Any, k: int) -> None:
  """An offset of either sign."""
  e.fields["offset"] = (0, 48, -80, 1024)[k % 4] & (1 << e.width("offset")) - 1


@wave("global_load_tr_b128 global_load_tr_b64", BYTES, prepare=prepare, fields=fields, lanes=(32, 64, 64, 32), forms=8,
      isa="gfx12")
def load_transposed(s: State, i: Instruction) -> None:
  """A matrix of 16-bit or 8-bit elements from memory, where M is contiguous, to the layout of WMMA, where K is."""
  bits = 16 if i.mnemonic.endswith("b128") else 8
  size, n = bits // 8, i.operands["vdst"].value
  saddr, vaddr = i.operands.get("saddr"), i.operands["vaddr"].value
  for w in range(s.waves):
    if not s.exec(w): continue
    found = [0] * s.lanes
    for lane in range(32):
      at = w * s.lanes + lane
      if saddr is None: place = s.v[vaddr][at] | s.v[vaddr + 1][at] << 32
      else: place = s.pair(saddr.value, w) + s.v[vaddr][at]
      place += immediate(i) - MEMORY
      k, m = reads(lane, bits)
      for e in range(8):
        value = int.from_bytes(s.memory[place + e * size:place + (e + 1) * size], "little")
        target, number = lies(m + e, k, bits, s.lanes)
        found[target] |= value << number * bits
    for lane in range(s.lanes):
      for r in range(bits * 8 // s.lanes): s.write(n + r, w * s.lanes + lane, found[lane] >> 32 * r)


@wave("s_alloc_vgpr", isa="gfx12", forms=6)
def allocate(s: State, i: Instruction) -> None:
  """Nothing: waves that were not launched with dynamic registers have the request ignored (section 3.3.3)."""
