"""Images: how many registers an image instruction's data and addresses take, which other fields decide.

Sources: RDNA3 ISA manual, chapter 10 "Vector Memory Image Instructions" (address and data registers), RDNA4 manual,
chapter 11; LLVM 19's disassembler for each combination (tests/isa/test_text.py).
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

IMAGES: Final = frozenset({"MIMG", "VIMAGE", "VSAMPLE"})


class Dimension(NamedTuple):
  """A kind of image: its name, coordinates, and gradients (du and dv of each coordinate that has them)."""
  name: str
  coordinates: int
  gradients: int


DIMENSIONS: Final = tuple(Dimension(f"SQ_RSRC_IMG_{name}", coordinates, gradients) for name, coordinates, gradients in (
  ("1D", 1, 2), ("2D", 2, 4), ("3D", 3, 6), ("CUBE", 3, 4), ("1D_ARRAY", 2, 2), ("2D_ARRAY", 3, 4), ("2D_MSAA", 3, 4),
  ("2D_MSAA_ARRAY", 4, 4)))


class AddressForm(NamedTuple):
  """What an instruction's addresses consist of, by its name; `four`: it reads four texels whatever dmask says."""
  extra: int
  coordinates: bool
  level: bool
  gradients: bool
  half_gradients: bool
  four: bool


@cache
def shape(mnemonic: str) -> AddressForm:
  """The parts that a name lists: _o offset, _b bias, _c reference, _l or _cl or _mip level, _d gradients, _g16."""
  parts = mnemonic.split("_")[2:] if re.match(r"image_(sample|gather4)", mnemonic) else []
  return AddressForm(sum(p in {"o", "b", "c"} for p in parts), mnemonic != "image_get_resinfo",
                     "l" in parts or "cl" in parts or "_mip" in mnemonic or mnemonic == "image_get_resinfo",
                     "d" in parts, "g16" in parts, mnemonic.startswith(("image_gather4", "image_msaa_load")))


def data_dwords(mnemonic: str, fields: Mapping[str, int]) -> int:
  """Registers of the data: a channel each, two in one where they have 16 bits, and one more for residency (tfe)."""
  count = 4 if shape(mnemonic).four else max(fields["dmask"].bit_count(), 1)
  if fields.get("d16"): count = (count + 1) // 2
  return count + fields.get("tfe", 0)


def address_dwords(mnemonic: str, fields: Mapping[str, int]) -> int:
  """Registers of the address; with a16, coordinates and level are packed in pairs, gradients by _g16 alone."""
  found, dimension = shape(mnemonic), DIMENSIONS[fields["dim"]]
  components = (dimension.coordinates if found.coordinates else 0) + found.level
  total = found.extra + ((components + 1) // 2 if fields.get("a16") else components)
  if found.gradients:
    half = dimension.gradients // 2
    total += half + half % 2 if found.half_gradients else dimension.gradients
  return total


def groups(mnemonic: str, fields: Mapping[str, int], slots: int) -> list[int]:
  """Registers of each address operand when there are `slots`: one each, and all that are left over in the last."""
  total = address_dwords(mnemonic, fields)
  if slots == 1: return [16 if total > 12 else total]
  return [1] * total if total <= slots else [1] * (slots - 1) + [total - slots + 1]
