"""Snapshots of PTX's warps: groups that wait, the threads' stacks, registers that differ."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.debug.ptx.names import names
from tinyhw.emulator.debug.snapshot import MEMORY_LIMIT, CohortState, Keeper, copied
from tinyhw.emulator.ptx.group import LANES, Blocks, Warps, warps

if TYPE_CHECKING:
  from tinyhw.emulator.simt import Cohort, Group


class PtxKeeper(Keeper):
  """A block's barriers and stacks, a function's registers by name."""

  fields = (*Keeper.fields, "alive_lanes", "threads", "barriers", "clusters", "committed", "tensor")
  memory = "shared memory of block"

  def keep(self, cohort: Cohort, state: CohortState) -> None:
    assert isinstance(cohort, Blocks)
    state.waiting = [(copied(g), what) for g, what in cohort.waiting]
    if cohort.local.u8.nbytes > MEMORY_LIMIT:
      raise InvalidArgument(f"a snapshot holds up to {MEMORY_LIMIT >> 20} MiB of threads' stacks")
    state.local = cohort.local.u8.copy()

  def put_back(self, cohort: Cohort, state: CohortState) -> None:
    assert isinstance(cohort, Blocks)
    cohort.waiting = [(warps(copied(g)), what) for g, what in state.waiting]
    cohort.local.u8[:] = state.local

  def registers(self, g: Group, i: int, h: Group, k: int) -> list[tuple[str, str]]:
    """Of a warp that is in one function."""
    assert isinstance(g, Warps) and isinstance(h, Warps)
    program = g.cohort.program
    code = program.at(g.pc)
    if code is not program.at(h.pc): return []
    out = []
    both = g.lanes[i] & h.lanes[k]
    for name, register in names(code).items():
      p, q = g.v[register.number], h.v[register.number]
      if p is q or p.ndim > 2: continue
      u, w = (np.broadcast_to(x, (of.size, LANES))[row] for x, of, row in ((p, g, i), (q, h, k)))
      if u.dtype != w.dtype: w = w.view(u.dtype)
      raw = u.view(f"u{u.itemsize}") != w.view(f"u{u.itemsize}") if u.dtype != bool else u != w
      lanes = np.flatnonzero(raw & both)
      if not lanes.size: continue
      at = int(lanes[0])
      more = f" and {lanes.size - 1} more lanes" if lanes.size > 1 else ""
      out.append((name, f"[lane {at}]: {_told(u[at])} -> {_told(w[at])}{more}"))
    return out


def _told(x: Any) -> str:
  return f"{float(x):.7g}" if x.dtype.kind == "f" else str(bool(x)) if x.dtype == bool else f"{int(x):#x}"
