"""Registers that a wgmma has yet to write or read, used before wgmma.wait_group; and those written without wgmma.fence.

PTX ISA, section 9.7.15.7: the registers of wgmma.mma_async may be touched only once its group is waited for, and what
other instructions write into them needs a wgmma.fence before the next product.
"""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tinyhw.emulator.check.ptx.effects import Effects, effects
from tinyhw.emulator.check.ptx.races import MATRIX, Races
from tinyhw.emulator.ptx.program import Code
from tinyhw.emulator.values.ops import Array


class Products:
  """The registers of products under way of a cohort's warps, by the function's base and the register's number."""

  def __init__(self, waves: int) -> None:
    self.waves = waves
    self._writes: dict[tuple[int, int], Array] = {}  # register -> number of the product that writes it [waves]
    self._reads: dict[tuple[int, int], Array] = {}
    self._pcs: dict[tuple[int, int], int] = {}
    self._dirty: dict[tuple[int, int], Array] = {}  # written by others since the last fence [waves]
    self._watched: dict[int, frozenset[int]] = {}  # base of a function -> registers of its products

  def find(self, base: int, w: Array, does: Effects, races: Races) -> Iterator[tuple[str, int, int, int | None]]:
    """(what is wrong, register, index of the warp among `w`, PC of the product) of what comes too early."""
    if not self._writes and not self._dirty: return
    product = does.opcode == "wgmma" and "mma_async" in does.modifiers
    done = races.done(MATRIX, w)
    touched = () if product else does.results
    used = does.sources if not product else does.pieces
    for registers, table, verb in ((used, self._writes, "read"), (touched, self._writes, "overwritten"),
                                   (touched, self._reads, "overwritten")):
      for r in registers:
        pending = table.get((base, r))
        if pending is None: continue
        late = pending[w] > done
        if late.any(): yield f"is {verb} before wgmma.wait_group says that its product is done", r, int(
          late.argmax()), self._pcs[base, r]
    if not product: return
    for r in (*does.results, *does.pieces):
      dirty = self._dirty.get((base, r))
      if dirty is not None and dirty[w].any():
        yield "was written, and no wgmma.fence comes before the product that uses it", r, int(dirty[w].argmax()), None

  def after(self, code: Code, w: Array, pc: int, does: Effects, races: Races) -> None:
    """An instruction has run."""
    base = code.base
    watched = self._watched.get(base)
    if watched is None: watched = self._watched[base] = _products(code)
    if not watched: return
    if does.opcode == "wgmma":
      if "fence" in does.modifiers:
        for dirty in self._dirty.values(): dirty[w] = False
      elif "mma_async" in does.modifiers:
        for r in does.results: self._note(self._writes, base, r, w, pc, races)
        for r in does.pieces: self._note(self._reads, base, r, w, pc, races)
      return
    for r in does.results:
      if r in watched:
        self._dirty.setdefault((base, r), np.zeros(self.waves, bool))[w] = True

  def _note(self, table: dict[tuple[int, int], Array], base: int, r: int, w: Array, pc: int, races: Races) -> None:
    table.setdefault((base, r), np.zeros(self.waves, np.int32))[w] = races.issued[MATRIX][w]
    self._pcs[base, r] = pc


def _products(code: Code) -> frozenset[int]:
  """The registers of a function's products."""
  found = [effects(line) for line in code.flat.lines if line.instruction.opcode == "wgmma"]
  return frozenset(r for does in found if "mma_async" in does.modifiers for r in (*does.results, *does.pieces))
