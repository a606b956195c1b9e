"""Registers that outstanding work has yet to write: used or overwritten before the wait that makes that safe.

An instruction of a queue that completes in order is done once the counter is at N and at least N younger ones of the
same queue were issued; one that completes in any order, only once the counter is at 0.
"""
from __future__ import annotations

import numpy as np

from tinyhw.emulator.check.amdgcn.counters import LDS_COUNTERS, Counters, Order
from tinyhw.emulator.check.amdgcn.effects import REGISTERS, SGPR0, Effects
from tinyhw.emulator.simt import Group
from tinyhw.emulator.values.ops import Array
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import NULL

ALL_LANES = np.uint64(0xFFFFFFFFFFFFFFFF)
Hit = tuple[str, int, int, int, int]  # (counter, register, index of the wave, lane, PC of the instruction waited for)


class Queue:
  """The outstanding instructions of one queue, for each wave of a cohort."""

  def __init__(self, waves: int) -> None:
    self.issued, self.done = np.zeros(waves, np.int64), np.zeros(waves, np.int64)
    self.number = np.zeros((waves, REGISTERS), np.int32)  # the instruction that writes each register
    self.pc = np.zeros((waves, REGISTERS), np.int64)
    self.lanes = np.zeros((waves, REGISTERS), np.uint64)
    self.registers: set[int] = set()  # those that may be outstanding in some wave


class Waits:
  """The counters of the waves of a cohort. Waves are indices into the cohort."""

  def __init__(self, counters: Counters, waves: int) -> None:
    self.counters, self.waves = counters, waves
    self.queues: dict[Order, Queue] = {}

  def queue(self, order: Order) -> Queue:
    found = self.queues.get(order)
    if found is None: found = self.queues[order] = Queue(self.waves)
    return found

  def find(self, w: Array, active: Array, effects: Effects) -> list[tuple[bool, Hit]]:
    """(whether it is read, hit) for what the waves `w`, with u64 masks `active`, use and have not waited for."""
    hits: list[tuple[bool, Hit]] = []
    own = self.counters.events.get(effects.kind, ())
    for order, queue in self.queues.items():
      if not queue.registers: continue
      for reading, registers in ((True, effects.reads), (False, effects.writes)):
        if queue.registers.isdisjoint(registers): continue
        if not reading and order[1] and order in own: continue  # written in order
        columns = np.array([r for r in registers if r in queue.registers])
        waiting = queue.number[w][:, columns] > queue.done[w][:, None]
        if not waiting.any(): continue
        everywhere = effects.cross_lane and reading
        masks = np.where((columns < SGPR0) & (not everywhere), active[:, None], ALL_LANES)
        lanes = np.where(waiting, queue.lanes[w][:, columns] & masks, np.uint64(0))
        if not lanes.any(): continue
        wave, column = (int(k[0]) for k in np.nonzero(lanes))
        bits = int(lanes[wave, column])
        hits.append((reading, (order[0], int(columns[column]), wave, (bits & -bits).bit_length() - 1,
                               int(queue.pc[w][wave, columns[column]]))))
    return hits

  def issue(self, w: Array, active: Array, pc: int, effects: Effects, segments: set[str]) -> dict[Order, Array]:
    """The waves have issued an instruction; the number that it has in each queue, of each wave.

    `segments` are the memories that it touched: the part of a flat instruction that touches none is done at once.
    """
    numbers: dict[Order, Array] = {}
    for order in self.counters.events.get(effects.kind, ()):
      queue = self.queue(order)
      queue.issued[w] += 1
      numbers[order] = np.array(queue.issued[w])  # as they are now: `w` may be a slice
      if effects.kind.startswith("flat") and (order[0] in LDS_COUNTERS) != ("lds" in segments) and segments != {
        "lds", "global"}: continue
      if not effects.writes: continue
      columns = np.array(effects.writes)
      at = np.ix_(np.arange(self.waves)[w], columns)
      queue.number[at] = numbers[order][:, None]
      queue.pc[at] = pc
      queue.lanes[at] = np.where(columns < SGPR0, active[:, None], ALL_LANES)
      queue.registers.update(effects.writes)
    return numbers

  def wait(self, group: Group, w: Array, i: Instruction) -> bool:
    """Count a wait; False when the instruction is none."""
    if i.mnemonic in self.counters.wait_all:
      for order, queue in self.queues.items(): self._reached(order, queue, w, 0)
      return True
    limits = self.counters.waits.get(i.mnemonic)
    if limits is None: return False
    for counter, pieces in limits.items():
      limit = shift = 0
      for bit, width in pieces:
        limit |= (i.fields["simm16"] >> bit & (1 << width) - 1) << shift
        shift += width
      if "sdst" in i.operands and (code := i.operands["sdst"].value) != NULL: limit += int(np.max(group.s[code]))
      for order, queue in self.queues.items():
        if order[0] == counter: self._reached(order, queue, w, limit)
    return True

  def _reached(self, order: Order, queue: Queue, w: Array, limit: int) -> None:
    if limit and not order[1]: return
    queue.done[w] = np.maximum(queue.done[w], queue.issued[w] - limit)
    if (queue.done == queue.issued).all(): queue.registers.clear()
