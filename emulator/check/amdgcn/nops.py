"""Finds instructions that follow another one sooner than the rules of `states` allow: a missing s_nop."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from tinyhw.emulator.check.amdgcn.effects import Effects
from tinyhw.emulator.check.amdgcn.states import (
  HWREG0,
  NUMBERS,
  SELECT,
  Rule,
  first_rules,
  passes_of,
  roles_of,
  second_rules,
  states_of,
)
from tinyhw.emulator.values.ops import Array
from tinyhw.isa.amdgcn import Instruction

LONGEST: Final = 24  # wait states: longer ago than any rule looks


@dataclass(frozen=True)
class TooSoon:
  """`needed` wait states, of which `found` are there; `register` is what both meet in (of `effects`' numbering)."""
  rule: Rule
  other_pc: int
  register: int | None
  needed: int
  found: int
  wave: int


@dataclass
class _Stamps:
  """When each register was last met by one kind of instruction, in wait states of each wave."""
  when: Array
  pc: Array
  until: int = 0  # on the latest clock, nothing newer is here from then on


class Nops:
  """The wait states of the waves of a cohort."""

  def __init__(self, rules: tuple[Rule, ...], waves: int) -> None:
    self.rules, self.waves = rules, waves
    self.clock = np.full(waves, LONGEST, np.int64)
    self._stamps: dict[tuple[str, str], _Stamps] = {}
    self._roles: dict[Instruction, frozenset[str]] = {}
    self._at: dict[int, Instruction] = {}

  def find(self, w: Array, i: Instruction, does: Effects) -> Iterator[TooSoon]:
    """What the instruction follows too soon."""
    roles = self._roles_of(i)
    clock = self.clock[w]
    newest = int(self.clock.min())
    for rule in second_rules(self.rules, roles):
      stamps = self._stamps.get((rule.first, rule.of))
      if stamps is None or stamps.until <= newest: continue
      registers = SELECT[rule.by](i, does)
      if not registers: continue
      columns = np.array(registers)
      since = clock[:, None] - stamps.when[w][:, columns]
      for column in np.flatnonzero((since < rule.states).any(axis=0)):
        wave = int(since[:, column].argmin())
        other_pc = int(stamps.pc[w][wave, columns[column]])
        needed, found = self.needed(rule, i, does, self._at[other_pc]), int(since[wave, column])
        if found >= needed: continue
        register = int(columns[column])
        yield TooSoon(rule, other_pc, register if register < HWREG0 else None, needed, found,
                      int(np.arange(self.waves)[w][wave]))
        break

  def needed(self, rule: Rule, i: Instruction, does: Effects, first: Instruction) -> int:
    """The rule's states, or fewer for what it makes an exception of."""
    if rule.forwards is not None and first.mnemonic == i.mnemonic:
      c = i.operands.get("src2")
      d = first.operands["vdst"]
      others = [o for n, o in i.operands.items() if n in {"src0", "src1"} and o.kind == "v"]
      in_place = does.tied or c is not None and c.kind == "v" and c.value == d.value
      if in_place and all(o.value != d.value for o in others): return rule.forwards
    if rule.same is not None:
      c = i.operands.get("src2", i.operands["vdst"])
      d = first.operands["vdst"]
      equal = (c.kind, c.value, c.dwords) == (d.kind, d.value, d.dwords)
      if equal and (rule.any_passes or passes_of(i.mnemonic) == passes_of(first.mnemonic)): return rule.same
    return rule.states

  def _roles_of(self, i: Instruction) -> frozenset[str]:
    roles = self._roles.get(i)
    if roles is None: roles = self._roles[i] = roles_of(i)
    return roles

  def issue(self, w: Array, pc: int, i: Instruction, does: Effects) -> None:
    """The waves have issued the instruction."""
    self.clock[w] += states_of(i)
    for key in first_rules(self.rules, self._roles_of(i)):
      registers = SELECT[key[1]](i, does)
      if not registers: continue
      stamps = self._stamps.get(key)
      if stamps is None:
        shape = self.waves, NUMBERS
        stamps = self._stamps[key] = _Stamps(np.zeros(shape, np.int64), np.zeros(shape, np.int64))
      at = np.ix_(np.arange(self.waves)[w], np.array(registers))
      stamps.when[at] = self.clock[w][:, None]
      stamps.pc[at] = pc
      stamps.until = max(stamps.until, int(self.clock[w].max()) + LONGEST)
      self._at[pc] = i
