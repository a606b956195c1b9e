"""What waves of all workgroups share: global wave sync and ordered counts (RDNA3 ISA manual, section 13.4).

A wave that must wait sleeps at its instruction and tries again. Waves that never can go on are found as an endless
loop.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tinyhw.core.errors import Unsupported
from tinyhw.emulator.amdgcn.binders import Ender, ends
from tinyhw.emulator.amdgcn.memory import gds
from tinyhw.emulator.amdgcn.registers import by_wave, merged, vector32
from tinyhw.emulator.simt import Group, Next, Split, Yield, full, need_lanes
from tinyhw.emulator.values.ops import U32, Array
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import M0

RESOURCES: Final = 64


@dataclass
class Resource:
  """A GWS resource: `counter` as a semaphore; as a barrier, the waves that came and those that may go."""
  counter: int = 0
  arrived: set[int] = field(default_factory=set)
  released: set[int] = field(default_factory=set)
  queued: set[int] = field(default_factory=set)


@dataclass
class Shared:
  """The global data share (u8), a dispatch's GWS resources, and whose turn it is to count in order."""
  gds: Array
  resources: dict[int, Resource] = field(default_factory=dict)
  turn: int = 0

  def resource(self, number: int) -> Resource: return self.resources.setdefault(number % RESOURCES, Resource())


def _first_lane(group: Group, read: Callable[[Group], Array]) -> list[int]:
  """The value of each wave's lowest active lane; of lane 0 where none is active."""
  values, on = full(group, read(group)), need_lanes(group)
  return [int(v) for v in values[np.arange(group.size), full(group, on).argmax(axis=1)]]


def _m0(group: Group) -> list[int]:
  return [int(v) for v in by_wave(group, group.s[M0])]


def _several(group: Group, go: list[bool], pc: int, after: int) -> Next:
  """Waves that may go on do; the others try again later."""
  if all(go): return after
  if not any(go): return Yield(pc)
  return Split(np.where(np.array(go), np.int64(after), np.int64(pc)))


@ends(*(f"ds_gws_{name}" for name in ("init", "barrier", "sema_v", "sema_br", "sema_p", "sema_release_all")))
def gws(i: Instruction, pc: int) -> Ender:
  """ds_gws_*. The counts of init and barrier are numbers of waves less one, as ROCm's device library gives them."""
  name, after, offset = i.mnemonic.removeprefix("ds_gws_"), pc + i.size, i.fields["offset"] & 63
  data = vector32(i.operands["data0"].value, U32) if "data0" in i.operands else None

  def step(group: Group) -> Next:
    shared: Shared = group.cohort.shared
    values = _first_lane(group, data) if data is not None else [0] * group.size
    go = [_one(name, shared.resource((m0 >> 16 & 63) + offset), int(wave), value)
          for wave, m0, value in zip(group.waves, _m0(group), values)]
    group.cohort.changes.count += any(go)
    return _several(group, go, pc, after)
  return step


def _one(name: str, r: Resource, wave: int, value: int) -> bool:
  """What one wave does to a resource; False when it must wait."""
  if name == "init": r.counter, r.arrived, r.released = value, set(), set()
  elif name == "sema_v": r.counter += 1
  elif name == "sema_br": r.counter += value
  elif name == "sema_release_all": r.counter += len(r.queued)
  elif name == "sema_p":
    r.queued.add(wave)
    if r.counter <= 0: return False
    r.counter -= 1
    r.queued.discard(wave)
  else:
    assert name == "barrier", name
    if wave in r.released:
      r.released.discard(wave)
      return True
    r.arrived.add(wave)
    if len(r.arrived) <= r.counter: return False
    r.released |= r.arrived - {wave}
    r.arrived, r.counter = set(), value
  return True


@ends("ds_ordered_count")
def ordered_count(i: Instruction, pc: int) -> Ender:
  """ds_ordered_count: a counter of the global data share, which waves reach in the order of their creation."""
  offset, after = i.fields["offset"], pc + i.size
  index, release, operation = offset >> 2 & 63, offset >> 8 & 1, offset >> 12 & 3
  if operation > 1: raise Unsupported("instruction", "ds_ordered_count with the operation wrap", where=f"PC {pc:#x}")
  value_of, n = vector32(i.operands["addr"].value, U32), i.operands["vdst"].value

  def step(group: Group) -> Next:
    shared: Shared = group.cohort.shared
    counters = gds.memory(group).view(U32)
    values, on = _first_lane(group, value_of), full(group, need_lanes(group))
    old = np.zeros((group.size, 1), np.uint32)
    go = [False] * group.size
    for k in np.argsort(group.waves):
      if int(group.waves[k]) != shared.turn: continue
      at = ((_m0(group)[k] >> 18) + index) % counters.size
      old[k] = counters[at]
      value = np.uint32(values[k] if on[k].any() else 0)
      counters[at] = value if operation == 1 else old[k, 0] + value
      shared.turn += release
      go[k] = True
    group.cohort.changes.count += any(go)
    mask = group.mask
    group.mask = on & (np.cumsum(on, axis=1) == 1) & np.array(go)[:, None]  # the first active lane gets the result
    try: group.v[n] = merged(group, old, group.v[n].view(U32))
    finally: group.mask = mask
    return _several(group, go, pc, after)
  return step
