"""Undefined bits through every instruction: flipping those of its registers flips only what following it says.

The oracle is the reference itself: the instruction's step runs on registers that differ in the undefined bits alone.
"""
from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.emulator.checking import code_of
from tests.emulator.gpu import Gpu
from tests.strength import THOROUGH, seed
from tinyhw.arch import decoded
from tinyhw.core.errors import Error
from tinyhw.emulator.amdgcn import Dispatch, dispatch
from tinyhw.emulator.amdgcn.binders import ends
from tinyhw.emulator.amdgcn.memory.lds import BETWEEN_LANES
from tinyhw.emulator.amdgcn.registers import exec_changed
from tinyhw.emulator.check.amdgcn.effects import SCC, SGPR0, Effects, effects
from tinyhw.emulator.check.amdgcn.follow import Following, Traffic
from tinyhw.emulator.check.arrays import Undecided
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.simt import Group
from tinyhw.isa.amdgcn import Instruction, table
from tinyhw.isa.amdgcn.codes import EXEC_HI, EXEC_LO, M0
from tinyhw.tools.ledger.llvm import random_fields

Value = Any
CPUS = (("gfx1100", 32), ("gfx1100", 64), ("gfx1150", 32), ("gfx1201", 32), ("gfx942", 64))
VECTOR = ("VOP1", "VOP2", "VOP3", "VOP3P", "VOPC", "VOPD", "VOP3SD")
SCALAR = ("SOP1", "SOP2", "SOPC", "SOPK")
WAVES = 2
# What is followed as a whole: matrices, whose lanes have no numbers of their own; a lane's number that is undefined.
AS_A_WHOLE = ("v_wmma", "v_swmmac", "v_mfma", "v_smfmac", "v_readlane", "v_writelane", "ds_permute")


class Taken(Observer):
  """Keeps the first group that runs."""
  group: Group | None = None

  def before(self, group: Group, pc: int, instruction: Any) -> None:
    if self.group is None: self.group = group.take(np.arange(group.size))


def a_group(cpu: str, lanes: int) -> Group:
  """Two waves with as many registers as there are."""
  gpu = Gpu(1 << 20, cpu)
  entry = gpu.put(np.frombuffer(code_of("s_nop 0\ns_endpgm", gpu.arch.isa), np.uint8))
  taken = Taken()
  vgprs = 63 if lanes == 64 and cpu == "gfx942" else 31 if lanes == 32 else 63
  dispatch(gpu.space, gpu.arch, Dispatch(entry, (1, 1, 1), (WAVES * lanes, 1, 1), rsrc1=vgprs | 0xC0 << 12,
                                         rsrc2=2 << 1 | 1 << 7, user_data=(0, 0), wave32=lanes == 32),
           observer=taken)
  assert taken.group is not None
  return taken.group


def drawn(rng: np.random.Generator, shape: tuple[int, ...]) -> Value:
  """Dwords, of which some are small numbers or floats."""
  raw = rng.integers(0, 1 << 32, shape, np.uint64).astype(np.uint32)
  kind = rng.integers(0, 4)
  if kind == 1: return raw & np.uint32(0xFF)
  return rng.normal(0, 8, shape).astype(np.float32).view(np.uint32) if kind == 2 else raw


def filled(group: Group, does: Effects, rng: np.random.Generator) -> Group:
  """The group with drawn EXEC and drawn registers, of those that an instruction uses."""
  g = group.take(np.arange(group.size))
  for r in {*does.reads, *does.writes}:
    if r == SCC: g.scc = rng.integers(0, 2, (WAVES, 1)).astype(bool)
    elif r >= SGPR0: g.s[r - SGPR0] = drawn(rng, (WAVES, 1))
    elif r < len(g.v): g.v[r] = drawn(rng, (WAVES, g.cohort.lanes))
  g.s[M0] = np.uint32(rng.integers(0, 3))
  full = bool(rng.integers(0, 2))
  for code in (EXEC_LO, EXEC_HI): g.s[code] = np.uint32(0xFFFFFFFF) if full else drawn(rng, (WAVES, 1))
  exec_changed(g)
  return g


def undefined(rng: np.random.Generator, shape: tuple[int, ...]) -> Value:
  """A shadow: all bits, a half, few bits, in some lanes."""
  bits = (0xFFFFFFFF, 0xFFFF, 0xFFFF0000, 1 << int(rng.integers(0, 32)), 0x00FF00FF)[rng.integers(0, 5)]
  here = rng.integers(0, 2, shape) == 0 if rng.integers(0, 2) else np.ones(shape, bool)
  return np.where(here, np.uint32(bits), np.uint32(0))


def of(group: Group, r: int) -> Value:
  """A register as u32 [waves, lanes or 1]."""
  if r == SCC: return np.broadcast_to(np.asarray(group.scc), (WAVES, 1)).astype(np.uint32) * np.uint32(0xFFFFFFFF)
  value = group.s[r - SGPR0] if r >= SGPR0 else group.v[r].view(np.uint32)
  return np.broadcast_to(value, (WAVES, 1 if r >= SGPR0 else group.cohort.lanes))


def flipped(group: Group, shadows: dict[int, Value], rng: np.random.Generator) -> Group:
  """The group with other undefined bits."""
  other = group.take(np.arange(group.size))
  for r, shadow in shadows.items():
    value = of(group, r) ^ (rng.integers(0, 1 << 32, shadow.shape, np.uint64).astype(np.uint32) & shadow)
    if r == SCC: other.scc = np.where(shadow != 0, rng.integers(0, 2, shadow.shape) == 1, other.scc)
    elif r >= SGPR0: other.s[r - SGPR0] = value
    else: other.v[r] = value
  return other


def may_be_undefined(does: Effects) -> list[int]:
  """The registers of an instruction that a test may make undefined: not EXEC, which is always defined."""
  return sorted({*does.reads, *does.writes} - {SGPR0 + code for code in (EXEC_LO, EXEC_HI, M0)})


def instructions(cpu: str, families: tuple[str, ...], rng: random.Random) -> Iterator[Instruction]:
  """Every instruction that computes, with drawn fields: one of its forms, in the thorough run all four times."""
  generation = table(decoded(cpu).table)
  for mnemonic, rows in generation.by_mnemonic.items():
    if rows[0].family not in families and (mnemonic not in BETWEEN_LANES or families is SCALAR): continue
    if ends.get(mnemonic, generation.name) is not None: continue
    for row in rows * 4 if THOROUGH else [rng.choice(rows)]:
      try: yield generation.decode(generation.encode(row, random_fields(rng, row)))
      except Error: continue


def bound(group: Group, i: Instruction) -> Any:
  program: Any = group.cohort.program
  try: return program.step(i, 0, group.mode)
  except Error: return None


@pytest.mark.parametrize("families", [VECTOR, SCALAR], ids=["vector", "scalar"])
@pytest.mark.parametrize(("cpu", "lanes"), CPUS)
def test_undefined_bits_reach_what_following_says(cpu: str, lanes: int, families: tuple[str, ...]) -> None:
  rng, fields = np.random.default_rng(seed(5)), random.Random(seed(6))
  group, followed, not_followed = a_group(cpu, lanes), 0, set[str]()
  for i in instructions(cpu, families, fields):
    does, step = effects(i, lanes), bound(group, i)
    if step is None or i.mnemonic.startswith(("s_barrier", "s_sendmsg", "s_get", "s_set")): continue
    with np.errstate(all="ignore"):
      base = filled(group, does, rng)
      plain = base.take(np.arange(WAVES))
      try: step(plain)
      except Error: continue
      chosen = may_be_undefined(does)
      chosen = [r for r in chosen if r >= SGPR0 or r < len(base.v)]
      shadows = {r: undefined(rng, of(base, r).shape) for r in chosen if rng.integers(0, 3)}
      clone = Following.of(base, Traffic(base))
      step(clone)
      assert all(clone.get(r) is None for r in does.writes), i  # all was defined
      clone = Following.of(base, Traffic(base))
      for r, shadow in shadows.items(): clone.put(r, shadow)
      try: step(clone)
      except Undecided:
        not_followed.add(i.mnemonic)
        continue
      followed += 1
      for _ in range(4):
        other = flipped(base, shadows, rng)
        step(other)
        for r in {*does.writes, *chosen}:
          if len(clone.v) <= r < SGPR0: continue
          got = clone.get(r)
          changed = (of(plain, r) ^ of(other, r)) & ~(np.uint32(0) if got is None else got)
          assert not changed.any(), (str(i), r, hex(int(changed.max())))
  assert followed > 40, followed
  assert all(name.startswith(AS_A_WHOLE) for name in not_followed), not_followed


@pytest.mark.parametrize(("cpu", "lanes"), CPUS)
def test_halves_and_components_that_are_not_used_are_not_read(cpu: str, lanes: int) -> None:
  """A half of a register that changes no result, in many draws, leaves every result defined: op_sel and op_sel_hi of
  packed instructions, of halves and of pairs of registers."""
  rng, fields = np.random.default_rng(seed(7)), random.Random(seed(8))
  group, unread = a_group(cpu, lanes), 0
  for i in instructions(cpu, ("VOP3P",), fields):
    does, step = effects(i, lanes), bound(group, i)
    if step is None or i.mnemonic.startswith(AS_A_WHOLE) or "dot" in i.mnemonic or i.row.family != "VOP3P": continue
    for r in [r for r in does.reads if r < SGPR0 and r not in does.tied]:
      for half in (0xFFFF, 0xFFFF0000):
        matters = told = False
        for _ in range(6):
          base = filled(group, does, rng)
          shadow = np.full((WAVES, lanes), half, np.uint32)
          clone, plain, other = (Following.of(base, Traffic(base)), base.take(np.arange(WAVES)),
                                 flipped(base, {r: shadow}, rng))
          clone.put(r, shadow)
          with np.errstate(all="ignore"):
            try:
              for g in (clone, plain, other): step(g)
            except Error: break
          told |= any(clone.get(w) is not None for w in does.writes if w != r)
          matters |= any((of(plain, w) != of(other, w)).any() for w in does.writes if w != r)
        assert matters or not told, (str(i), r, hex(half))
        unread += not matters
  assert unread > 4
