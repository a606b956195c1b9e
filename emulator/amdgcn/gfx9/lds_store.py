"""buffer_store_lds_dword: dwords of LDS go to a buffer and pass no register.

The CDNA3 ISA manual has no entry for opcode 61, which LLVM gives to gfx942; CDNA2's has one. Where the dwords lie is
what section 9.1.9 of both says of the loads in the other direction.
"""
from __future__ import annotations

from typing import Any

from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.memory import buffer
from tinyhw.emulator.amdgcn.memory.words import by_lane
from tinyhw.emulator.memory import access
from tinyhw.emulator.simt import Group, Step
from tinyhw.isa.amdgcn import Instruction


@binds("buffer_store_lds_dword", isa="gfx9")
def store(i: Instruction, pc: int, mode: int) -> Step:
  """The dword at M0[15:0] + offset + 4 * lane of LDS; lanes that would be past the workgroup's LDS store nothing."""
  addressing, offset = buffer.Addressing(i, pc), i.fields["offset"]

  def to(group: Group, resource: Any) -> None:
    at, (ok,) = addressing(group, resource, [4])
    where = by_lane(group, offset)
    _, inside = access.lds_offsets(group, where, 4)
    buffer.under(group, ok & inside, lambda: access.store(group, None, at, access.lds_load(group, where, 4), 4))
  return lambda group: addressing.each(group, lambda resource: to(group, resource))
