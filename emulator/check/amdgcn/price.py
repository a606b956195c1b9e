"""Whether watched code (`jit.amdgcn.detect`) pays for a dispatch: what the checks would cost by the reference, about.

It is chosen by counts alone, never by time: instructions in the code, waves, and what earlier dispatches executed.
"""
from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

from tinyhw.core.errors import Error
from tinyhw.emulator.amdgcn import control
from tinyhw.emulator.amdgcn.program import Program

# Microseconds: a step of the reference under the checks, each wave's share of it; watched code at all, an instruction.
_STEP: Final = 100.0
_WAVE: Final = 4.0
_LLVM: Final = 100_000.0
_COMPILING: Final = 2_500.0
_LOOP: Final = 10  # how often a loop is taken to run, before it is known
_MOST: Final = 20_000  # instructions that are looked at
_RESTS: Final = 6  # after so many suspicions watched code rests for 2 ** this dispatches


class _Known:
  """What is known of a program: what it would cost, has cost, and how often watched code was in vain."""

  def __init__(self, program: Program) -> None:
    self.size, self.steps = _extent(program)
    self.spent = 0.0
    self.waves = 0
    self.compiled = False
    self.suspected = self.rests = 0


_KNOWN: Final[WeakKeyDictionary[Program, _Known]] = WeakKeyDictionary()


def _known(program: Program) -> _Known:
  known = _KNOWN.get(program)
  if known is None: known = _KNOWN[program] = _Known(program)
  return known


def pays(program: Program, waves: int) -> bool:
  """Whether a dispatch of so many waves is to be run by watched code first."""
  known = _known(program)
  if known.rests:
    known.rests -= 1
    return False
  if known.compiled: return True
  price = _LLVM + known.size * _COMPILING
  expected = known.steps * (_STEP + waves * _WAVE)
  if known.waves: expected = known.spent * waves / known.waves
  return known.spent + expected > price


def ran(program: Program, stats: Any) -> None:
  """The reference has run a dispatch of it under the checks."""
  known = _known(program)
  known.spent += stats.steps * _STEP + stats.instructions * _WAVE
  known.waves += stats.waves


def watched(program: Program, clean: bool) -> None:
  """Watched code has run a dispatch of it, or found that the reference has to look."""
  known = _known(program)
  known.compiled = True
  if clean: known.suspected = 0
  else:
    known.suspected = min(known.suspected + 1, _RESTS)
    known.rests = (1 << known.suspected) - 1


def _extent(program: Program) -> tuple[int, int]:
  """(instructions, those that a wave may execute)."""
  seen: set[int] = set()
  todo, loops = [program.entry], list[tuple[int, int]]()
  while todo and len(seen) < _MOST:
    at = todo.pop()
    while at not in seen:
      try: i = program.table.decode(program.space.fetch(at, 16), where=at)
      except Error: break
      seen.add(at)
      if i.mnemonic in control.DIRECT:
        target = control.target(i, at)
        if target <= at: loops.append((target, at))
        todo.append(target)
      if i.mnemonic in {"s_endpgm", "s_branch", "s_setpc_b64"}: break
      at += i.size
  inside = {at for at in seen for start, end in loops[:64] if start <= at <= end}
  return len(seen), len(seen) + (_LOOP - 1) * len(inside)
