"""Whether watched code (`jit.amdgcn.detect`) pays for a dispatch of AMD's machine code."""
from __future__ import annotations

from typing import Final

from tinyhw.core.errors import Error
from tinyhw.emulator.amdgcn import control
from tinyhw.emulator.amdgcn.program import AmdgcnProgram
from tinyhw.emulator.check.price import Price

_COMPILING: Final = 2_500.0
_LOOP: Final = 10  # how often a loop is taken to run, before it is known
_MOST: Final = 20_000  # instructions that are looked at


def _extent(program: AmdgcnProgram) -> tuple[int, int]:
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


_PRICE: Final = Price(_extent, _COMPILING)
pays, ran, watched = _PRICE.pays, _PRICE.ran, _PRICE.watched
