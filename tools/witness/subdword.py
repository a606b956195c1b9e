"""Parts of registers: what SDWA selects from sources, and where it puts results (CDNA3 ISA manual, section 13.3.7).

The selections are those of SRC0_SEL, SRC1_SEL and DST_SEL: four bytes, two words, the dword.
"""
from __future__ import annotations

from typing import Final

from tinyhw.isa.amdgcn import Instruction

M32: Final = (1 << 32) - 1
PARTS: Final = ((0, 8), (8, 8), (16, 8), (24, 8), (0, 16), (16, 16), (0, 32))  # selection -> (first bit, bits)
DWORD: Final = 6
ZEROS, SIGN, PRESERVE = 0, 1, 2  # DST_UNUSED


def is_sdwa(i: Instruction) -> bool: return i.variant == "sdwa"


def selected(word: int, selection: int, extends: int) -> int:
  """A part of a source, with zeros or its sign above it."""
  at, bits = PARTS[selection]
  value = word >> at & (1 << bits) - 1
  return (value - (1 << bits) if extends and value >> bits - 1 else value) & M32


def source(i: Instruction, number: int, word: int) -> int:
  """What source `number` of an instruction reads of a register."""
  return selected(word, i.get(f"src{number}_sel"), i.get("sext") >> number & 1)


def placed(i: Instruction, old: int, result: int) -> int:
  """The destination after its part was written; the other bits: zeros, below zeros and above the sign, or unchanged."""
  at, bits = PARTS[i.get("dst_sel", DWORD)]
  value = result & (1 << bits) - 1
  unused = i.get("dst_unused")
  if unused == PRESERVE: return old & ~((1 << bits) - 1 << at) & M32 | value << at
  if unused == SIGN and value >> bits - 1: value -= 1 << bits
  return value << at & M32
