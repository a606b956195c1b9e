"""Races: two waves touch the same byte, at least one writes, and neither a barrier nor an atomic orders them.

Every wave has a clock, and knows of each wave of its workgroup up to which clock all is done that it did (a vector
clock). A barrier tells everyone of everyone. An atomic tells of its wave, one that returns a value also listens; that
is more order than a program may rely on, so that a lock or a counter makes no false finding. Code does not show which
loads and stores are atomic: those of bytes that an atomic with a result has touched (in LDS: since the last barrier)
count as such. What a wave has issued and not waited for when it comes to a barrier counts as done after it.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tinyhw.emulator.check import races
from tinyhw.emulator.check.amdgcn.counters import Order
from tinyhw.emulator.check.amdgcn.waits import Waits
from tinyhw.emulator.check.races import ATOMIC, COMPARE, PLAIN, Memory
from tinyhw.emulator.values.ops import Array as Value

_PRUNE: Final = 64  # outstanding accesses that are kept before those that are done are dropped


class Shadow(races.Shadow):
  """The latest accesses to each byte, whether its last write was atomic, and whether it is a lock."""

  def __init__(self, size: int) -> None:
    super().__init__(size)
    self.atomic = np.zeros(size, np.uint8)  # of the last write: PLAIN, ATOMIC or COMPARE
    self.lock = np.zeros(size, np.bool_)  # touched by atomics that return a value: locks, tickets, flags

  def grow(self, size: int) -> None:
    self.atomic = np.concatenate([self.atomic, np.zeros(size - self.size, np.uint8)])
    self.lock = np.concatenate([self.lock, np.zeros(size - self.size, np.bool_)])
    super().grow(size)


@dataclass(frozen=True)
class Race:
  """The access at hand meets one at `other_pc`; waves count from the dispatch's first. `address` as in the access."""
  other_pc: int
  wave: int
  lane: int
  other_wave: int
  address: int
  write: bool
  other_write: bool


class Races:
  """The accesses of one cohort's waves. `everywhere` is the dispatch's global memory, which cohorts share."""

  def __init__(self, waves: int, a_group: int, first: int, lds_size: int, everywhere: Memory, wgp: bool) -> None:
    self.a_group, self.first, self.lds_size, self.everywhere = a_group, first, lds_size, everywhere
    self.late = {"lds"} | ({"global"} if wgp else set())  # memories where a barrier does not order what is under way
    self.lds = Shadow(waves // a_group * lds_size) if lds_size else None
    self.known = np.zeros((waves, a_group), np.int32)
    own = np.arange(waves)
    self.known[own, own % a_group] = 1
    self._met = np.zeros((waves, a_group), np.int32)  # what each wave takes to its barrier, then what all took there
    self.told = np.zeros((waves // a_group, a_group), np.int32)  # what the atomics of each workgroup tell
    self._under_way: list[tuple[Shadow, str, Value, Value, int, dict[Order, Value], Value]] = []
    self._fresh: list[tuple[Shadow, str, Value, Value]] = []
    self._prune_at = _PRUNE
    self._into_lds: list[Any] = []  # loads under way that write LDS instead of registers

  # ---- accesses

  def touch(self, w: Value, segment: str, kind: str, addresses: Value, width: int, active: Value, pc: int,
            how: int, returns: bool, across: bool, data: Value | None = None) -> Iterator[Race]:
    """Note an access of the waves `w` (indices into the cohort) and give the races that it makes.

    `how` is PLAIN, ATOMIC or COMPARE, `returns` says whether an atomic gives the old value, `across` asks for races
    between workgroups too. `data` are the bytes [waves, lanes, width] that are stored, where they are known.
    """
    shadow: Any = self.lds if segment == "lds" else self.everywhere.shadow
    if shadow is None or not active.any(): return
    row, lane = np.nonzero(active)
    wave = np.asarray(w)[row]
    start = addresses[active]
    each = np.arange(width, dtype=np.uint64)
    byte = (start[:, None] + each).reshape(-1)
    wave, lane = np.repeat(wave, width), np.repeat(lane, width)
    if segment == "lds": index = wave // self.a_group * self.lds_size + byte.astype(np.int64)
    else: index = self.everywhere.index(start, width)
    number = wave + self.first
    writes = kind != "load"
    across = across and segment == "global"
    if segment == "lds" and self._into_lds: yield from self._early(index, wave, lane, byte, number, writes)
    if kind == "atomic" and returns: shadow.lock[index] = True
    elif kind != "atomic" and shadow.lock[index].any():  # a plain access of a lock: an atomic load or store, in effect
      if kind == "store": how = ATOMIC
      self._speak(np.unique(wave[shadow.lock[index]]), kind == "load")
    against = ("write", "read", "read2") if writes and how != COMPARE else ("write",)
    if data is not None: data = data[active].reshape(-1)
    differs = shadow.changes(index, data)
    for k in against: yield from self._conflicts(shadow, k, index, wave, lane, byte, number, pc, kind, across, differs)
    if kind == "store": yield from self._together(index, wave, lane, byte, pc, across, data)
    if kind == "atomic": self._speak(np.unique(wave), returns)
    self._note(shadow, "write" if writes else "read", index, wave, number, pc, how)
    if writes: shadow.stored(index, data)
    if segment in self.late: self._fresh.append((shadow, "write" if writes else "read", index, wave))

  def _early(self, index: Value, wave: Value, lane: Value, byte: Value, number: Value, writes: bool) -> Iterator[Race]:
    """Bytes of LDS that a load of the same wave has yet to write: a race of the wave with itself."""
    for access, waits in self._into_lds:
      _, _, coming, of, pc, *_ = access
      late = self._open(access, waits)
      if not late.any(): continue
      here = np.isin(index, coming[late]) & np.isin(wave, of[late])
      if here.any():
        at = int(here.argmax())
        yield Race(pc, int(number[at]), int(lane[at]), int(number[at]), int(byte[at]), writes, True)
    self._into_lds = [a for a in self._into_lds if self._open(*a).any()]

  def _conflicts(self, shadow: Shadow, k: str, index: Value, wave: Value, lane: Value, byte: Value, number: Value,
                 pc: int, kind: str, across: bool, differs: Value) -> Iterator[Race]:
    """Races of an access with the noted ones of one kind, of bytes that it makes others."""
    other = shadow.wave[k][index]
    clash = (other >= 0) & (other != number) & differs
    if not clash.any(): return
    if k == "write" and kind == "atomic": clash &= shadow.atomic[index] == PLAIN
    else: clash &= ~shadow.lock[index]
    if k == "write" and kind == "load": clash &= shadow.atomic[index] != COMPARE
    same = other // self.a_group == number // self.a_group
    ordered = self.known[wave, other % self.a_group] >= shadow.clock[k][index]
    clash &= np.where(same, ~ordered, across)
    pcs = shadow.pc[k][index]
    for other_pc in np.unique(pcs[clash]):
      for here in (clash & same & (pcs == other_pc), clash & ~same & (pcs == other_pc)):
        if not here.any(): continue
        at = int(here.argmax())
        yield Race(int(other_pc), int(number[at]), int(lane[at]), int(other[at]), int(byte[at]), kind != "load",
                   k == "write")

  def _together(self, index: Value, wave: Value, lane: Value, byte: Value, pc: int, across: bool,
                data: Value | None) -> Iterator[Race]:
    """Waves that store to the same byte by one instruction, side by side."""
    if wave[0] == wave[-1]: return
    order = np.argsort(index, kind="stable")
    a, b = order[:-1], order[1:]
    clash = (index[a] == index[b]) & (wave[a] != wave[b]) & races.apart(data, a, b)
    same = wave[a] // self.a_group == wave[b] // self.a_group
    for here in (clash & same, clash & ~same & across):
      if not here.any(): continue
      at = int(here.argmax())
      x, y = int(a[at]), int(b[at])
      yield Race(pc, int(wave[y]) + self.first, int(lane[y]), int(wave[x]) + self.first, int(byte[y]), True, True)

  def _note(self, shadow: Shadow, k: str, index: Value, wave: Value, number: Value, pc: int, how: int) -> None:
    if k == "read":
      moved = shadow.wave["read"][index] != number
      at = index[moved]
      for table in (shadow.wave, shadow.clock, shadow.pc): table["read2"][at] = table["read"][at]
    else: shadow.atomic[index] = how
    shadow.wave[k][index] = number
    shadow.clock[k][index] = self.known[wave, wave % self.a_group]
    shadow.pc[k][index] = pc

  def _speak(self, waves: Value, listens: bool) -> None:
    """Waves do an atomic: what they know is told, and those that get a value back learn what was told."""
    group = waves // self.a_group
    np.maximum.at(self.told, group, self.known[waves])
    if listens: self.known[waves] = np.maximum(self.known[waves], self.told[group])
    self.known[waves, waves % self.a_group] += 1

  # ---- order

  def issued(self, w: Value, numbers: dict[Order, Value], waits: Waits, pc: int, into_lds: bool) -> None:
    """The accesses noted since the last call belong to an instruction with these numbers in its queues."""
    fresh, self._fresh = self._fresh, []
    if not numbers or not fresh: return
    for shadow, k, index, wave in fresh:
      access = shadow, k, index, wave, pc, numbers, np.asarray(w)
      self._under_way.append(access)
      if into_lds and shadow is self.lds: self._into_lds.append((access, waits))
    if len(self._under_way) > self._prune_at:
      self._under_way = [u for u in self._under_way if self._late(u, waits).any()]
      self._prune_at = max(_PRUNE, 2 * len(self._under_way))

  def _late(self, access: Any, waits: Waits) -> Value:
    """Which waves have not waited for their part of an access."""
    *_, numbers, w = access
    late = np.zeros(len(self.known), np.bool_)
    for order, number in numbers.items(): late[w] |= number > waits.queue(order).done[w]
    return late

  def _open(self, access: Any, waits: Waits) -> Value:
    """Which bytes of an access under way belong to waves that have not waited for it."""
    late = self._late(access, waits)
    return late[access[3]] if late.any() else np.zeros(1, np.bool_)

  def signal(self, w: Value, waits: Waits) -> None:
    """Waves come to a barrier: what they have done by now is done before it, but for what is still under way."""
    self._met[w] = self.known[w]
    own = np.asarray(w)
    self.known[own, own % self.a_group] += 1
    here = np.zeros(len(self.known), np.bool_)
    here[own] = True
    kept = []
    for access in self._under_way:
      shadow, k, index, wave, pc, *_ = access
      late = self._open(access, waits)
      if not late.any(): continue
      kept.append(access)
      late &= here[wave]
      at, wave = index[late], wave[late]
      mine = (shadow.wave[k][at] == wave + self.first) & (shadow.pc[k][at] == pc)
      at, wave = at[mine], wave[mine]
      shadow.clock[k][at] = self.known[wave, wave % self.a_group]
    self._under_way = kept

  def meet(self, workgroups: Value) -> None:
    """The barrier of these workgroups (numbers in the cohort) is complete: `learn` is what lets their waves know."""
    met = self._met.reshape(-1, self.a_group, self.a_group)
    met[workgroups] = met[workgroups].max(axis=1, keepdims=True)
    if self.lds is not None: self.lds.lock.reshape(-1, self.lds_size)[workgroups] = False

  def learn(self, w: Value) -> None:
    """Waves go on behind a barrier."""
    self.known[w] = np.maximum(self.known[w], self._met[w])
