"""Plans (`queues.plans`) of PM4 in one piece: it sets registers, launches a kernel or none, signals. Holes are user
data of the kernel, which says where its arguments are, and what RELEASE_MEM stores."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.queues.amd.stream import ARGUMENTS, USER_DATA, AmdFollow, AmdState, wide
from tinyhw.queues.effects import Does, Effect
from tinyhw.queues.plans import Plans, holes, signalling
from tinyhw.queues.world import Item, Named, named
from tinyhw.wire import pm4 as pm4_wire

_DATA: Final = next(f.lo // 32 + 1 for f in pm4.RELEASE_MEM.FIELDS if f.name == "data")  # dwords from the header on
_PROGRAM: Final = {gc.COMPUTE_PGM_LO.OFFSET, gc.COMPUTE_PGM_HI.OFFSET}
_OF_LAUNCH: Final = {*USER_DATA, *_PROGRAM}


@dataclass(slots=True, eq=False)
class AmdPlan:
  """Of a submission: registers with their values, those whose values are words at a position, and what it names. The
  launch's own roots stand at `launch` among the others, -1 for none."""
  registers: dict[int, int] = field(default_factory=dict)
  sent: list[tuple[int, int]] = field(default_factory=list)
  effects: list[Effect] = field(default_factory=list)
  signals: list[tuple[int, int]] = field(default_factory=list)  # (place among the effects, position of 64 bits)
  roots: list[tuple[int, int]] = field(default_factory=list)
  data: list[tuple[int, int]] = field(default_factory=list)  # (place among the roots, position of 64 bits)
  launch: int = -1

  def named(self, raw: bytes, state: AmdState) -> Named:
    """What words of this plan name. The queue's state goes on."""
    words = memoryview(raw).cast("I")
    state.registers.update(self.registers)
    for register, at in self.sent: state.registers[register] = words[at]
    effects, roots = self.effects.copy(), self.roots.copy()
    for place, at in self.signals:
      value = words[at] | words[at + 1] << 32
      effects[place] = signalling(effects[place], value & (1 << 8 * effects[place].size) - 1)
    loose = [words[at] | words[at + 1] << 32 for _, at in self.data]
    for (place, _), value in zip(self.data, loose): roots[place] = value, 0
    if self.launch < 0: return Named([], effects, [], roots, self, loose)
    entry, users = state.entry(), state.user_data()
    pairs = [(p, ARGUMENTS) for low, high in pairwise(users) if (p := low | high << 32) >> 16]
    roots[self.launch:self.launch] = (entry, 0), *pairs
    return Named([], effects, [(entry, 0)], roots, self, loose)

  def add(self, item: Item, at: int) -> bool:
    """Note the packet at a position. False where it is none for a plan."""
    packet: Any = item.packet
    if packet is None or item.depth: return False
    first, self.effects = len(self.effects), self.effects + item.effects
    registers = pm4_wire.registers(packet)
    if self.launch >= 0 and any(register in _OF_LAUNCH for register, _ in registers): return False
    body = at + len(item.words) - len(registers)
    for n, (register, value) in enumerate(registers):
      if register in USER_DATA: self.sent.append((register, body + n))
      else: self.registers[register] = value
    if isinstance(packet, pm4.RELEASE_MEM):
      self.signals += [(n, at + _DATA) for n, e in enumerate(self.effects[first:], first)
                       if e.does in (Does.SIGNAL, Does.STAMP)]
      self.data.append((len(self.roots) + [f.name for f, _ in packet.items() if f.width + f.shift > 32].index("data"),
                        at + _DATA))
    self.roots += [(value, 0) for value in wide(packet)]
    if isinstance(packet, pm4.DISPATCH_DIRECT):
      if self.launch >= 0 or not self.registers.keys() >= _PROGRAM: return False
      self.launch = len(self.roots)
    return not isinstance(packet, pm4.DISPATCH_INDIRECT)


def learn(plans: Plans[AmdPlan], raw: bytes, follow: AmdFollow) -> Named:
  """What a submission in one piece names, by the long way; its plan is kept, where one gives the same."""
  found, plan, at = named(follow), AmdPlan(), 0
  for item in follow.items:
    if not plan.add(item, at): return found
    at += len(item.words)
  state = AmdState(dict(follow.state.registers))
  if follow.pieces or 4 * at != len(raw): return found
  again = replace(plan.named(raw, state), plan=None, loose=())
  if again != found or state != follow.state: return found
  hidden = [at for _, at in plan.sent] + [at + n for _, at in plan.data for n in (0, 1)]
  plans.keep(raw, holes(hidden), plan)
  return found
