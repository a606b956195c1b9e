"""Clusters: blocks that begin together, see each other's shared memory and have a barrier (PTX ISA, section 9.7.13.3).

An address of shared::cluster has its block's rank in the bits from `memory.RANK` on. A cohort holds whole clusters,
whose blocks follow each other.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhw.core.errors import MachineFault
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds, need
from tinyhw.emulator.ptx.group import LANES, Blocks, Together, Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.memory.addresses import guarded
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.ptx.forms import Form

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code



class Barriers:
  """The barrier of each cluster of a cohort: who has arrived in its phase, and what phase each thread waits for."""

  def __init__(self, clusters: int, warps: int) -> None:
    self.phase = np.zeros(clusters, np.int64)
    self.arrived = np.zeros((clusters * warps, LANES), bool)
    self.ticket = np.full((clusters * warps, LANES), -1, np.int64)
    self.warps = warps  # of a cluster

  def rows(self, cluster: int) -> slice:
    """The warps of a cluster."""
    return slice(cluster * self.warps, (cluster + 1) * self.warps)

  def complete(self, cohort: Blocks) -> bool:
    """Begin the next phase of clusters whose every thread has arrived or ended; whether there was one."""
    missing = (cohort.alive_lanes & ~self.arrived).any(axis=1).reshape(-1, self.warps).any(axis=1)
    some = self.arrived.any(axis=1).reshape(-1, self.warps).any(axis=1)
    done = np.flatnonzero(some & ~missing)
    for cluster in done.tolist():
      self.phase[cluster] += 1
      self.arrived[self.rows(cluster)] = False
      if cohort.observer is not None: cohort.observer.complete(cohort, ("cluster", cluster))
    return bool(done.size)

  def each(self, group: Warps) -> list[tuple[int, Value]]:
    """(cluster, the group's warps in it)."""
    of = group.cohort.row(group) // self.warps
    return [(cluster, np.flatnonzero(of == cluster)) for cluster in np.unique(of).tolist()]

  def heard(self, group: Warps) -> None:
    """Have the observer know that warps go on behind the barrier."""
    observer = group.cohort.observer
    assert observer is not None
    for cluster, rows in self.each(group): observer.heard(group, rows, ("cluster", cluster))

  def passes(self, rows: Value, lanes: Value) -> Value:
    """Which of these warps may go on: the phase that their threads arrived in has ended."""
    late: Value = self.ticket[rows] >= self.phase[rows // self.warps][:, None]
    return ~np.logical_or.reduce(late & lanes, axis=1)


def arrive(group: Warps, relaxed: bool = False) -> None:
  """barrier.cluster.arrive."""
  cohort, lanes = group.cohort, group.lanes
  if cohort.clusters is None:
    size = cohort.shared.clustered
    cohort.clusters = Barriers(len(cohort.threads) // size, cohort.shared.warps * size)
  barriers, rows = cohort.clusters, cohort.row(group)
  twice = lanes & barriers.arrived[rows]
  if twice.any(): raise _fault(group, twice, "barrier.cluster.arrive twice without a wait between")
  barriers.arrived[rows] |= lanes
  phase = barriers.phase[rows // barriers.warps][:, None]
  barriers.ticket[rows] = np.where(lanes, phase, barriers.ticket[rows])
  cohort.changes.count += 1
  if cohort.observer is not None:
    how = "relaxed" if relaxed else ""
    for cluster, mine in barriers.each(group): cohort.observer.told(group, mine, ("cluster", cluster), how)
  if barriers.complete(cohort): cohort.look_again()


def _fault(group: Warps, bad: Value, text: str) -> MachineFault:
  row, lane = map(int, np.argwhere(bad)[0])
  return MachineFault(text, wave=int(group.waves[row]), lane=lane)


def ender(line: Line, after: int) -> Callable[[Warps], Any]:
  """barrier.cluster: what ends a block."""
  relaxed = "relaxed" in line.instruction.modifiers
  if "arrive" in line.instruction.modifiers:
    def come(group: Warps) -> Any:
      arrive(group, relaxed)
      return after
    return come

  def wait(group: Warps) -> Any:
    cohort, lanes = group.cohort, group.lanes
    barriers, rows = cohort.clusters, cohort.row(group)
    never = lanes if barriers is None else lanes & (barriers.ticket[rows] < 0)
    if never.any(): raise _fault(group, never, "barrier.cluster.wait without an arrival")
    if barriers.passes(rows, lanes).all():
      if cohort.observer is not None: barriers.heard(group)
      return after
    return Together(after)
  return wait


@binds("mapa")
def mapa(code: Code, line: Line, form: Form) -> Step:
  """The address in another block of what lies at an address here."""
  i, t = line.instruction, form.type
  need(line, 3)
  read, write = operands.reader(code, line, i.operands[1], t), operands.writer(code, line, i.operands[0], t)
  rank = operands.reader(code, line, i.operands[2], "u32")
  generic = spaces.space_of(form.modifiers) == spaces.GENERIC
  keep = operands.dtype_of(t).type(~(0xFF << spaces.RANK) & (1 << (64 if t == "u64" else 32)) - 1)

  def run(group: Warps) -> None:
    given, at = operands.full(group, rank(group)), read(group)
    size = group.cohort.shared.clustered
    if (given[group.lanes] >= size).any():
      raise _fault(group, group.lanes & (given >= size), f"mapa: a rank of a cluster that has {size}")
    if generic: _in_shared(group, at)
    if size == 1: write(group, at & keep)  # the block's own, which needs no rank
    else: write(group, at & keep | (given + np.uint32(1)).astype(at.dtype) << at.dtype.type(spaces.RANK))
  return guarded(line, run)


def _in_shared(group: Warps, addresses: Value) -> None:
  inside = (addresses >= np.uint64(spaces.SHARED_WINDOW)) & (
    addresses < np.uint64(spaces.SHARED_WINDOW + spaces.WINDOW))
  outside = group.lanes & ~np.broadcast_to(inside, (group.size, LANES))
  if outside.any(): raise spaces.fault(group, outside, addresses, "a generic address outside of shared memory")


@binds("getctarank")
def getctarank(code: Code, line: Line, form: Form) -> Step:
  """The rank of the block that an address of shared::cluster is in."""
  i, t = line.instruction, form.type
  need(line, 2)
  read, write = operands.reader(code, line, i.operands[1], t), operands.writer(code, line, i.operands[0], "u32")
  generic = spaces.space_of(form.modifiers) == spaces.GENERIC

  def run(group: Warps) -> None:
    at = read(group)
    if generic: _in_shared(group, at)
    field = (at >> at.dtype.type(spaces.RANK)).astype(np.uint32) & np.uint32(0xFF)
    write(group, np.where(field == 0, group.cohort.shared.rank(group), field - np.uint32(1)))
  return run
