"""Whether watched code (`jit.ptx.detect`) pays for a launch of a PTX kernel."""
from __future__ import annotations

from typing import Final

from tinyhw.emulator.check.price import Price
from tinyhw.emulator.ptx.module.flow import targets
from tinyhw.emulator.ptx.program import Program

_COMPILING: Final = 1_500.0
_LOOP: Final = 10  # how often a loop is taken to run, before it is known


def _extent(program: Program) -> tuple[int, int]:
  """(instructions, those that a warp may execute)."""
  lines = program.linked.flats[program.entry_name].lines
  loops = [(t, k) for k, line in enumerate(lines) if line.instruction.opcode == "bra" for t in targets(line) if t <= k]
  inside = {at for start, end in loops[:64] for at in range(start, end + 1)}
  return len(lines), len(lines) + (_LOOP - 1) * len(inside)


_PRICE: Final = Price(_extent, _COMPILING)
pays, ran, watched = _PRICE.pays, _PRICE.ran, _PRICE.watched
