"""Loads from memory into LDS as LLVM IR: a dword for each lane to M0 + offset + 4 * lane, which passes no register."""
from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tinyhw.emulator.amdgcn.gfx9.memory import TO_LDS
from tinyhw.emulator.amdgcn.memory.tables import LOADS
from tinyhw.emulator.jit.amdgcn.alu import lane_numbers
from tinyhw.emulator.jit.amdgcn.state import Registers
from tinyhw.emulator.jit.values import Untranslatable, Value
from tinyhw.emulator.values.ops import I32, U32
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import M0

if TYPE_CHECKING:
  from tinyhw.emulator.jit.amdgcn.access import Accesses

_FLAT_M0: Final = 0x3FFFC  # the bits of M0 that count
_BUFFER_M0: Final = 0xFFFF


def flat_kind(i: Instruction) -> tuple[int, int] | None:
  """(bytes, bits of a signed value or 0) of a global_load_lds_* or scratch_load_lds_*; None for another. Raises
  Untranslatable for more than a dword a lane."""
  if "_load_lds_" not in i.mnemonic or i.isa != "gfx9": return None
  found = TO_LDS.get(i.mnemonic.rpartition("_")[2])
  if found is None: raise Untranslatable(i.mnemonic)
  return found


def buffer_kind(i: Instruction) -> tuple[int, int] | None:
  """The same of a buffer load into LDS. Raises Untranslatable for a typed one."""
  if "_lds_" not in i.mnemonic and ("_load_" not in i.mnemonic or "vdata" in i.operands): return None
  width, sign_bits, _ = LOADS.get(i.mnemonic.replace("_lds_", "_"), (0, 0, None))
  if not 0 < width <= 4: raise Untranslatable(i.mnemonic)
  return width, sign_bits


def put(a: Accesses, r: Registers, i: Instruction, at: int, word: Value, sign_bits: int) -> None:
  """Store what the active lanes loaded; `at` is the instruction's byte offset from the entry."""
  flat = i.family == "FLAT"
  if sign_bits: word = (word.view(I32) << 32 - sign_bits >> 32 - sign_bits).view(U32)
  offset = r.number(i, "signed offset" if flat else "offset", U32)
  place = (r.scalar(M0) & (_FLAT_M0 if flat else _BUFFER_M0)) + offset + lane_numbers(r) * 4
  a.to_lds(r, place, at, i, word)
