"""Single instructions of every generation, compiled, against the reference: all registers, SCC, LDS and memory.

The cases are those that the independent witness judges the reference by (`tools/witness`).
"""
from __future__ import annotations

import random
import re
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.strength import SEED, THOROUGH, examples
from tinyhw.core.errors import Error
from tinyhw.emulator.amdgcn.program import AmdgcnProgram
from tinyhw.emulator.amdgcn.registers import exec_changed
from tinyhw.emulator.jit.amdgcn.run import Waves
from tinyhw.emulator.jit.amdgcn.state import HEADER, SCC
from tinyhw.emulator.jit.memory import Memory
from tinyhw.emulator.jit.refusal import NotCompiled
from tinyhw.emulator.simt import Group
from tinyhw.tools.witness import groups
from tinyhw.tools.witness.run import Bench, Prepared, bench
from tinyhw.tools.witness.state import MEMORY, MEMORY_SIZE
from tinyhw.tools.witness.table import WITNESSES

GPUS = ("gfx1100", "gfx1201", "gfx942")
PARTS = 4 if THOROUGH else 24  # one mnemonic in so many is compiled here


def names(gpu: str) -> list[str]:
  isa = bench(gpu).table
  return sorted({m for generation, m in WITNESSES.names() if m in isa.by_mnemonic and generation in ("", isa.name)
                 and not re.search("branch|setpc|swappc|call|endpgm|barrier|fork|join|subvector|icache_inv", m)})


def by_reference(machine: Bench, p: Prepared) -> Any:
  """(registers, memory) after an instruction, or the error."""
  try: group, _ = machine.execute(p)
  except (Error, IndexError) as error: return error
  n = p.case.waves
  v = [np.broadcast_to(np.asarray(x).view(np.uint32), (n, p.case.lanes)) for x in group.v]
  s = [np.broadcast_to(x, (n, 1)) for x in group.s]
  scc = np.broadcast_to(group.scc, (n, 1)).reshape(-1)
  return np.stack(v, 1), np.concatenate(s, 1), scc, group.cohort.lds.copy(), machine.space.read(MEMORY, MEMORY_SIZE)


def by_code(machine: Bench, p: Prepared) -> Any:
  """The same of compiled code, and what it left to the reference."""
  started: list[Group] = []

  class Stop(Exception): """The group of the case is ready."""

  def stop(self: AmdgcnProgram, pc: int, mode: int) -> Any: raise Stop

  def noted(group: Group) -> None:
    started.append(group)
    exec_changed(group)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(AmdgcnProgram, "block", stop)
    patch.setattr("tinyhw.tools.witness.run.exec_changed", noted)
    with pytest.raises(Stop): machine.execute(p)
  isa = machine.table  # a sleep after the instruction: waves that end do not keep their registers
  code = p.case.code + isa.encode(isa.by_mnemonic["s_sleep"][0], {}) + isa.encode(isa.by_mnemonic["s_endpgm"][0], {})
  machine.code.u8[:len(code)] = np.frombuffer(code, np.uint8)
  group = started[0]
  cohort = group.cohort
  group.mode = p.case.mode
  cohort.dispatch = replace(cohort.dispatch, block=(p.case.waves * p.case.lanes - 1, 1, 1))  # EXEC may be anything
  cohort.first, cohort.waves_a_group = 0, p.case.waves
  cohort.arrived = cohort.live * 0
  cohort.runnable.append(group)
  try:
    waves = Waves(cohort, Memory(machine.space))
    with np.errstate(all="ignore"): waves.run()
  except NotCompiled: raise
  except (Error, IndexError) as error: return error, {}
  states, n = waves.states, p.case.waves
  v = states[:, HEADER:].reshape(n, -1, p.case.lanes).copy()
  return (v, states[:, :128].copy(), states[:, SCC] != 0, cohort.lds.copy(), machine.space.read(MEMORY, MEMORY_SIZE)), \
    dict(waves.interpreted)


def nan_alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """Dwords that are the same but for which NaN they hold: f32, a half of them f16, or an upper half of f64."""
  f32 = (a & 0x7FFFFFFF > 0x7F800000) & (b & 0x7FFFFFFF > 0x7F800000)
  both = (a & 0x7FF00000 == 0x7FF00000) & (b & 0x7FF00000 == 0x7FF00000)
  halves = np.ones(a.shape, bool)
  for shift in (0, 16):
    x, y = a >> shift & 0xFFFF, b >> shift & 0xFFFF
    nan = [(x & e == e) & (y & e == e) for e in (0x7C00, 0x7F80)]
    halves &= (x == y) | nan[0] | nan[1]
  return f32 | both | halves


def difference(machine: Bench, p: Prepared) -> str:
  expected = by_reference(machine, p)
  found, left = by_code(machine, p)
  if isinstance(expected, Exception) or isinstance(found, Exception):
    told = [[type(x), *(getattr(x, name, None) for name in ("address", "lane"))] for x in (expected, found)]
    same = told[0] == told[1] or isinstance(expected, IndexError) and isinstance(found, Error)
    return "" if same else f"{p.case}: {expected!r:.200}, compiled {found!r:.200}"
  for name, a, b in zip(("v", "s", "scc", "lds", "memory"), expected, found):
    x, y = (np.frombuffer(z, np.uint32) if isinstance(z, bytes) else z for z in (a, b))
    if name == "s": x, y = x[:, :124], y[:, :124]
    bad = x != y
    if x.dtype == np.uint32: bad &= ~nan_alike(x, y)
    if bad.any():
      at = tuple(int(k[0]) for k in np.nonzero(bad))
      return f"{p.case}: {name}{at} reference {x[at]!r}, compiled {y[at]!r} ({left})"
  return ""


@pytest.mark.parametrize("gpu", GPUS)
def test_instructions(gpu: str) -> None:
  """One case of each mnemonic of a part of them; PARTS of 1 takes all."""
  machine = bench(gpu)
  found = []
  for name in names(gpu):
    if (zlib.crc32(name.encode()) + SEED) % PARTS == 0:
      text = difference(machine, random.Random(f"{name}{SEED or ''}").choice(machine.cases(name)))
      if text: found.append(text)
  assert not found, "\n".join(found)


@pytest.mark.parametrize(("gpu", "name"), [(g, n) for g in GPUS for n in groups.names(bench(g).table.name)])
def test_groups(gpu: str, name: str) -> None:
  """Some cases of each group: dual issue, registers numbered by M0, skipped instructions, DPP, SDWA."""
  machine = bench(gpu)
  cases = machine.cases(name)
  chosen = random.Random(f"{name}{SEED or ''}").sample(cases, min(examples(3), len(cases)))
  found = [difference(machine, p) for p in chosen]
  assert not any(found), "\n".join(found)
