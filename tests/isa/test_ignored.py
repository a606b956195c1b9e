"""Bits that the chip ignores: words that differ in them alone are one instruction, and execute alike."""
from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.emulator.engines.test_amdgcn import sample
from tests.emulator.jit.amdgcn.test_jit import descriptor, inputs, outcome
from tests.strength import seed, seeds
from tinyhw.autogen.amdgcn_ignored import IGNORED
from tinyhw.core.errors import LayoutError
from tinyhw.emulator.amdgcn import dispatch
from tinyhw.emulator.jit.amdgcn.launch import dispatch as compiled
from tinyhw.isa.amdgcn import Table, table
from tinyhw.tools.gen import amdgcn, ignored
from tinyhw.tools.ledger.llvm import CPUS, even, random_fields

UNUSED_SOURCE = 0x7FC << 48  # src2 of VOP3




@pytest.mark.parametrize("generation", [*sorted(CPUS), "gfx1150"])
def test_every_row_ignores_its_bits(generation: str) -> None:
  """Random legal fields of each row, random ignored bits: row, fields, operands and text stay."""
  rng, isa, seen = random.Random(seed(31)), table(generation), 0
  for row in isa.rows():
    if not row.ignored or row.variant == "w64": continue
    code = isa.encode(row, random_fields(rng, row))
    plain = isa.decode(code)
    assert not plain.spare
    if plain.row is not row: continue  # soffset null with offset 0: one meaning, two rows
    for bits in (row.ignored, rng.getrandbits(8 * row.size) & row.ignored):
      i = isa.decode(ignored.flipped(code, bits))
      assert i.row is row and i.fields == plain.fields and i.operands == plain.operands and i.size == plain.size
      assert str(i) == str(plain) and i.spare == bits
      seen += 1
  assert seen > 4000


@pytest.mark.parametrize("generation", [*sorted(CPUS), "gfx1150"])
def test_no_unused_source_is_fixed(generation: str) -> None:
  """The long vector encodings have three sources of 9 bits; those that an instruction has not are ignored whole.

  The first source of DPP's rows holds their marker.
  """
  for row in table(generation).rows():
    if row.family not in {"VOP3", "VOP3P"}: continue
    for at in (32, 41, 50)[1 if "dpp" in row.variant else 0:]:
      assert not row.mask >> at & 0x1FF, (row.mnemonic, row.variant, at)


@pytest.mark.parametrize("generation, code, text", [
  ("gfx11", "00003cd782040202", "v_lshlrev_b64 v[0:1], 2, v[2:3]"),
  ("gfx12", "030200d702000202", "v_add_co_u32 v3, s2, s2, v0"),
  ("gfx12", "000044d406040202", "v_cmp_gt_i32_e64 s0, s6, v2"),
  ("gfx9", "020041d181000002", "v_mov_b32_e64 v2, 1"),
])
def test_words_of_llvm_22(generation: str, code: str, text: str) -> None:
  """Its assembler fills unused sources with the inline constant 0, code 128."""
  i = table(generation).decode(bytes.fromhex(code))
  assert str(i) == text and i.spare == 128 << 50


def test_masks_are_of_fixed_bits_alone() -> None:
  """A mask names bits that LLVM 19 fixes; together with them a word still names one row (`arrange` refuses others)."""
  for generation, groups in IGNORED.items():
    masks = amdgcn.ignoring(generation)
    assert len(masks) == sum(len(names.split()) for names in groups.values())  # no record twice
    assert all(mask >> 32 & 0x7FFFFFF for mask in groups)  # sources alone, in the second dword


def test_ambiguity_stays_an_error() -> None:
  """A bit that tells two instructions apart cannot be ignored."""
  row = amdgcn.Row("A", "v_a", "e64", "VOP3", 8, 0xFFFF0000 | UNUSED_SOURCE, 0xD4000000, {}, [], "@", [], [])
  other = replace(row, name="B", mnemonic="v_b", value=row.value | 1 << 50)
  amdgcn.arrange([row, other])
  with pytest.raises(LayoutError, match="A and B match the same word"):
    amdgcn.arrange([replace(r, mask=r.mask & ~UNUSED_SOURCE) for r in (row, other)])


def scrambled(isa: Table, code: bytes, rng: random.Random) -> tuple[bytes, int]:
  """The program with random ignored bits, and how many instructions have some."""
  out, at, count = b"", 0, 0
  while at < len(code):
    i = isa.decode(code, at)
    bits = rng.getrandbits(8 * i.row.size) & i.row.ignored
    out += ignored.flipped(i.data[:i.row.size], bits) + i.data[i.row.size:]
    at, count = at + i.size, count + bool(bits)
  return out, count


@pytest.mark.parametrize("seed", seeds(range(3)))
def test_programs_run_alike(seed: int) -> None:
  """Random programs and the same with random ignored bits, interpreted and compiled."""
  code, data = sample(seed), inputs(random.Random(seed))
  other, count = scrambled(table("gfx11"), code, random.Random(seed))
  assert count > 5 and other != code
  expected = outcome(dispatch, code, data, descriptor(32, 27))
  for engine in (dispatch, compiled):
    found = outcome(engine, other, data, descriptor(32, 27))
    assert np.array_equal(expected[0], found[0]) and expected[1].instructions == found[1].instructions


@pytest.mark.skipif(ignored.LLVM_MC is None, reason="llvm-mc-22 is not installed")
@pytest.mark.parametrize("generation", sorted(CPUS))
def test_llvm_22_decodes_them_alike(generation: str) -> None:
  """Some rows of each mask, with random bits of it, through llvm-mc 22."""
  rng, isa = random.Random(seed(37)), table(generation)
  masks = amdgcn.ignoring(generation)
  rows = [r for r in isa.rows() if r.family in {"VOP3", "VOP3P"} and r.ignored & UNUSED_SOURCE == UNUSED_SOURCE]
  assert len(rows) > 100 and set(masks.values())
  words = []
  for row in rng.sample(rows, 60):
    code = isa.encode(row, even(random_fields(rng, row), row))
    words += [code, ignored.flipped(code, rng.getrandbits(64) & row.ignored & 0x7FFFE << 40)]
  found = ignored.instructions(CPUS[generation], words)
  assert all(a == b for a, b in zip(found[::2], found[1::2], strict=True)) and sum(map(bool, found)) > 100
