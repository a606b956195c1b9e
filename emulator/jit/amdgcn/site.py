"""A memory instruction in compiled code: what its slow path has to know, and how another mapping is found for it."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tinyhw.emulator.jit.amdgcn.context import MAPPINGS, TABLE
from tinyhw.emulator.jit.memory import finder
from tinyhw.isa.amdgcn import Instruction


@dataclass(frozen=True)
class Site:
  """What the slow path needs to know about a memory instruction; `kind`: load, store, atomic or scalar."""
  offset: int
  kind: str
  segment: str
  width: int
  instruction: Instruction
  shift: int = 0
  operation: str = ""  # of an atomic
  late: bool = False  # of watched code: a load that may be under way at a barrier


FIND: Final = finder(
  f"""  %count.at = getelementptr i8, ptr %context, i64 {MAPPINGS}
  %count = load i64, ptr %count.at""", TABLE, "", "%legal.inside", "", "%size")
