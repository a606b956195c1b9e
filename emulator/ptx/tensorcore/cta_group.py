"""The blocks whose tensor memory an instruction of tcgen05 is for: one, or a pair (.cta_group)."""
from __future__ import annotations

from tinyhw.emulator.ptx.memory.ranges import Thread
from tinyhw.emulator.ptx.tensorcore import tmem
from tinyhw.isa.ptx.forms import Form


def pair_of(form: Form) -> int:
  """How many blocks an instruction is for."""
  return 2 if "cta_group::2" in form.modifiers else 1


def blocks(t: Thread, pair: int, lives: bool = True) -> list[int]:
  """The blocks that an instruction is for, the even one first, counted in the cohort. Raises MachineFault where there
  is no pair, or where the block's other instructions are for another number of blocks; `lives`: where the peer has
  ended."""
  own = int(t.group.workgroups[t.row])
  known = tmem.of(t.cohort).pair
  if known[own] and known[own] != pair:
    raise t.fault(f"an instruction for cta_group::{pair} behind others for cta_group::{known[own]}")
  known[own] = pair
  if pair == 1: return [own]
  size = t.cohort.shared.clustered
  rank = own % size
  if rank ^ 1 >= size: raise t.fault(f"cta_group::2 in block {rank} of a cluster of {size}, which has no peer")
  return sorted((own, t.block(rank ^ 1) if lives else own ^ 1))


def missing(t: Thread, block: int, first: int, columns: int, what: str) -> None:
  """Raises MachineFault where columns are not allocated."""
  bad = tmem.of(t.cohort).missing(block, first, first + columns - 1)
  if bad is not None:
    raise t.fault(f"{what} columns {first} to {first + columns - 1} of tensor memory, of which {bad} is not allocated")
