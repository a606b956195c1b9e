"""Snapshots of AMD's waves: registers that differ."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tinyhw.emulator.debug.amdgcn.wave import cell, scalar_register_name, vector_name
from tinyhw.emulator.debug.snapshot import Keeper

if TYPE_CHECKING:
  from tinyhw.emulator.simt import Group


class AmdKeeper(Keeper):
  """MODE, SCC, scalar and vector registers."""

  one_shared = True
  memory = "lds of workgroup"

  def registers(self, g: Group, i: int, h: Group, k: int) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    if g.mode != h.mode: lines.append(("mode", f": {g.mode:#x} -> {h.mode:#x}"))
    x, y = cell(np.asarray(g.scc), i), cell(np.asarray(h.scc), k)
    if x != y: lines.append(("scc", f": {x} -> {y}"))
    for n, (p, q) in enumerate(zip(g.s, h.s)):
      if p is q: continue
      x, y = cell(p, i), cell(q, k)
      if x != y: lines.append((scalar_register_name(n), f": {x:#x} -> {y:#x}"))
    for n, (p, q) in enumerate(zip(g.v, h.v)):
      if p is q: continue
      u, w = _row(p, i, g), _row(q, k, h)
      lanes = np.flatnonzero(u != w)
      if lanes.size: lines.append((vector_name(n), _lanes(lanes, u, w)))
    return lines


def _row(x: Any, row: int, group: Group) -> npt.NDArray[np.uint32]:
  full: npt.NDArray[np.uint32] = np.broadcast_to(x.view(np.uint32), (group.size, group.cohort.lanes))[row]
  return full


def _lanes(lanes: Any, u: Any, w: Any) -> str:
  """"[lane 7]: 0x3f800000 -> 0x40000000 (1 -> 2)"; of many lanes the first, and how many there are."""
  k = int(lanes[0])
  x, y = (float(z[k:k + 1].view(np.float32)[0]) for z in (u, w))
  floats = f" ({x:.7g} -> {y:.7g})" if _likely(x) and _likely(y) and (x or y) else ""
  more = f" and {lanes.size - 1} more lanes" if lanes.size > 1 else ""
  return f"[lane {k}]: {int(u[k]):#x} -> {int(w[k]):#x}{floats}{more}"


def _likely(x: float) -> bool:
  """Whether bits that read as x are likely to be a float."""
  return x == 0 or 1e-9 < abs(x) < 1e12
