"""Binds the instructions of the memory families."""
from __future__ import annotations

from typing import Final

from tinyhw.emulator.amdgcn.binders import Binder
from tinyhw.emulator.amdgcn.memory import buffer, lds, scalar, vector
from tinyhw.emulator.amdgcn.memory.tables import NO_EFFECT
from tinyhw.emulator.simt import Group, Step
from tinyhw.isa.amdgcn import Instruction

FAMILIES: Final[dict[str, Binder]] = {
  "SMEM": scalar.bind, "FLAT": vector.bind, "DS": lds.bind, "MUBUF": buffer.bind, "MTBUF": buffer.bind}


def bind(i: Instruction, pc: int, mode: int) -> Step:
  """The step of a memory instruction. Raises Unsupported for one without meaning."""
  return _invalidation(i.mnemonic) if i.mnemonic in NO_EFFECT else FAMILIES[i.family](i, pc, mode)


def _invalidation(mnemonic: str) -> Step:
  """An instruction that matters to caches alone."""
  def step(group: Group) -> None:
    if group.cohort.view is not None: group.cohort.view.invalidate(group, mnemonic)
  return step
