"""Which checks of the witness execute which places of the emulator's code: found by tracing each check once.

A change of what is around the meanings (operands, masks, memory, control) is shown to the checks that reach its place.
Of the checks that are alike in encodings, signature and binder a few stand for all.
"""
from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterable
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any, Final

from tinyhw.emulator.amdgcn import coverage
from tinyhw.emulator.amdgcn.binders import binds, ends
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.tools.witness import groups
from tinyhw.tools.witness.run import bench
from tinyhw.tools.witness.table import WITNESSES

Check = tuple[str, str]  # an instruction table, a mnemonic or a group of cases
GPUS: Final = {"gfx11": "gfx1100", "gfx12": "gfx1201", "gfx9": "gfx942"}
ALIKE: Final = 2  # how many of the checks that are alike


def kind(isa: str, mnemonic: str) -> tuple[Any, ...]:
  """What checks that are alike have in common: encodings, the meaning's signature, the functions that bind it."""
  x, meaning = WITNESSES.get(mnemonic, isa), MEANINGS.get(mnemonic, isa)
  binder = binds.get(mnemonic, isa) or ends.get(mnemonic, isa)
  rows = bench(GPUS[isa]).table.by_mnemonic[mnemonic]
  shape = (meaning.sources, meaning.results, meaning.packed) if meaning is not None else ()
  name = getattr(binder, "__qualname__", "") or getattr(getattr(x, "function", None), "__qualname__", "")
  parts = mnemonic.split("_")[:2] if meaning is None else ()
  encodings = tuple(sorted({(r.family, r.variant) for r in rows}))
  return isa, encodings, shape, "" if meaning is not None else name, tuple(parts)


def checks(seed: int = 0) -> list[Check]:
  """The checks that stand for all, with every group of cases."""
  found: dict[tuple[Any, ...], list[Check]] = {}
  for isa, gpu in GPUS.items():
    for mnemonic in bench(gpu).table.by_mnemonic:
      if WITNESSES.get(mnemonic, isa) is None or coverage.status(mnemonic, isa) == "missing": continue
      found.setdefault(kind(isa, mnemonic), []).append((isa, mnemonic))
  rng = random.Random(seed)
  out = [c for alike in found.values() for c in rng.sample(alike, min(ALIKE, len(alike)))]
  return out + [(isa, name) for isa in GPUS for name in groups.names(isa)]


Spot = tuple[int, int]  # line, column
Range = tuple[Spot, Spot]


class Reach:
  """Which expressions of some modules the checks evaluate, by the places of the instructions that Python executes."""

  def __init__(self, modules: Iterable[str], chosen: Iterable[Check]) -> None:
    files = {str(importlib.import_module(name).__file__): name for name in modules}
    self.found: dict[str, dict[Range, list[Check]]] = {name: {} for name in files.values()}
    for check in chosen:
      executed: set[tuple[CodeType, int]] = set()

      def step(frame: FrameType, event: str, argument: Any, executed: set[tuple[CodeType, int]] = executed) -> Any:
        if event == "opcode": executed.add((frame.f_code, frame.f_lasti))
        return step

      def call(frame: FrameType, event: str, argument: Any, step: Any = step) -> Any:
        if frame.f_code.co_filename not in files: return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step
      machine = bench(GPUS[check[0]])
      machine.cases(check[1])
      sys.settrace(call)
      with suppress(Exception): machine.check(check[1])
      sys.settrace(None)
      for code in {code for code, _ in executed}:
        places, spots = list(code.co_positions()), self.found[files[code.co_filename]]
        for at in {at for c, at in executed if c is code}:
          line, end_line, column, end_column = places[at // 2]
          if line and end_line and column is not None and end_column is not None:
            seen = spots.setdefault(((line, column), (end_line, end_column)), [])
            if not seen or seen[-1] != check: seen.append(check)

  def of(self, module: str, place: Range) -> list[Check]:
    """The checks that evaluate an expression or a part of it; else those of what it is a part of, or of its lines."""
    spots = self.found[module]
    inside = {c for (start, end), found in spots.items() if place[0] <= start and end <= place[1] for c in found}
    if inside: return sorted(inside)
    around = [(end, start) for start, end in spots if start <= place[0] and place[1] <= end]
    if around: return sorted({c for end, start in [min(around)] for c in spots[start, end]})
    return sorted({c for (start, end), found in spots.items() if start[0] <= place[0][0] <= end[0] for c in found})
