"""Numbers in an instruction that any two of a kind may have different, by name; all others decide what it does."""
from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tinyhw.emulator.amdgcn.memory.words import byte_offset, flat_offset
from tinyhw.isa.amdgcn import Instruction


def _signed16(i: Instruction) -> int: return i.fields["simm16"] - (i.fields["simm16"] >> 15 << 16)


def _plain(field: str) -> Callable[[Instruction], int]: return lambda i: i.fields[field]


# What the number is, and the field that it is in.
FIELDS: Final[dict[str, tuple[Callable[[Instruction], int], str]]] = {
  "signed constant": (_signed16, "simm16"), "constant": (lambda i: i.fields["simm16"], "simm16"),
  "signed offset": (byte_offset, "offset"), "flat offset": (flat_offset, "offset"),
  **{n: (_plain(n), n) for n in ("offset", "offset0", "offset1")}}
