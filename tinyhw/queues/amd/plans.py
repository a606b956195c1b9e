"""Plans (`queues.plans`) of PM4 and SDMA in one piece: registers, one kernel or none, copies, waits, signals. Holes are
user data of the kernel, which says where its arguments are, and the values that are waited for and stored."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.autogen import sdma_v6 as sdma
from tinyhw.queues.amd.stream import USER_DATA, AmdFollow, AmdState, calls, wide
from tinyhw.queues.effects import Does, Effect
from tinyhw.queues.plans import KnownSubmission, Named, Plans, SubmissionPlan, holes
from tinyhw.queues.world import Item, named
from tinyhw.wire import pm4 as pm4_wire

_PROGRAM: Final = {gc.COMPUTE_PGM_LO.OFFSET, gc.COMPUTE_PGM_HI.OFFSET}
_OF_LAUNCH: Final = {*USER_DATA, *_PROGRAM}
_VALUES: Final = {pm4.WAIT_REG_MEM: "reference", pm4.RELEASE_MEM: "data", sdma.SDMA_PKT_FENCE: "data",
                  sdma.SDMA_PKT_POLL_REGMEM: "value"}
_VALUED: Final = {Does.WAIT, Does.SIGNAL, Does.STAMP}


def _place(cls: Any) -> tuple[int, bool]:
  """Where a packet's value is in its words, and whether it has 64 bits. PM4's fields count from behind the header."""
  lies = next(f for f in cls.FIELDS if f.name == _VALUES[cls])
  return lies.lo // 32 + cls.__module__.endswith("pm4_gfx11"), lies.width > 32


_PLACES: Final = {cls.__name__: _place(cls) for cls in _VALUES}  # the same in all generations
_NAMES: Final = {cls.__name__: name for cls, name in _VALUES.items()}


@dataclass(slots=True, eq=False)
class AmdPlan:
  """With where its holes are: registers with their values, those whose values are words at a position, and positions of
  values, with their bits."""
  registers: dict[int, int]
  sent: list[tuple[int, int]]
  values: list[tuple[int, int]]
  loose: list[int]
  plan: SubmissionPlan

  def known(self, raw: bytes, state: AmdState) -> KnownSubmission:
    """What words of this plan name. The queue's state goes on."""
    words, registers = memoryview(raw).cast("I"), state.registers
    registers.update(self.registers)
    for register, at in self.sent: registers[register] = words[at]
    return KnownSubmission(self.plan, [], [(words[at] | words[at + 1] << 32 if mask >> 32 else words[at]) & mask
                                 for at, mask in self.values],
                 state.pairs() if self.plan.launches else [], [words[at] | words[at + 1] << 32 for at in self.loose])


@dataclass(slots=True)
class _Learnt:
  """What is known of a submission packet by packet. The launch's own roots stand at `launch` among the others, -1 for
  none; `loose` are (place among the roots, position), `values` (place among the effects, position, mask)."""
  registers: dict[int, int] = field(default_factory=dict)
  sent: list[tuple[int, int]] = field(default_factory=list)
  effects: list[Effect] = field(default_factory=list)
  roots: list[tuple[int, int]] = field(default_factory=list)
  values: list[tuple[int, int, int]] = field(default_factory=list)
  loose: list[tuple[int, int]] = field(default_factory=list)
  hidden: list[int] = field(default_factory=list)
  launch: int = -1

  def add(self, item: Item, at: int) -> bool:
    """Note the packet at a position. False where it is none for a plan."""
    packet: Any = item.packet
    if packet is None or item.depth or calls(packet) or isinstance(packet, pm4.DISPATCH_INDIRECT): return False
    first, self.effects = len(self.effects), self.effects + item.effects
    registers = pm4_wire.registers(packet) if isinstance(packet, pm4.Pm4) else []
    if self.launch >= 0 and any(register in _OF_LAUNCH for register, _ in registers): return False
    body = at + len(item.words) - len(registers)
    for n, (register, value) in enumerate(registers):
      if register in USER_DATA: self.sent.append((register, body + n))
      else: self.registers[register] = value
    if type(packet).__name__ in _PLACES: self._valued(packet, first, at)
    self.roots += [(value, 0) for value in wide(packet)]
    if isinstance(packet, pm4.DISPATCH_DIRECT):
      if self.launch >= 0 or not self.registers.keys() >= _PROGRAM: return False
      self.launch = len(self.roots)
    return True

  def _valued(self, packet: Any, first: int, at: int) -> None:
    """Note where a packet's value is, which the effects from `first` on and its roots have."""
    place, both = _PLACES[type(packet).__name__]
    most = 8 if both else 4
    self.values += [(n, at + place, (1 << 8 * min(e.size, most)) - 1)
                    for n, e in enumerate(self.effects[first:], first) if e.does in _VALUED]
    self.hidden += range(at + place, at + place + 1 + both)
    if both:
      names = [f.name for f, _ in packet.items() if f.width + f.shift > 32]
      self.loose.append((len(self.roots) + names.index(_NAMES[type(packet).__name__]), at + place))

  def plan(self, state: AmdState) -> AmdPlan:
    """The plan; `state` is the queue's behind the submission."""
    launches = [(state.entry(), 0)] if self.launch >= 0 else []
    at = max(self.launch, 0)
    roots = self.roots[:at] + launches + self.roots[at:]
    plan = SubmissionPlan(self.effects, [n for n, _, _ in self.values], launches, roots,
                [n + (n >= at and bool(launches)) for n, _ in self.loose], at + len(launches))
    return AmdPlan(self.registers, self.sent, [(at, mask) for _, at, mask in self.values],
                   [at for _, at in self.loose], plan)


def learn(plans: Plans[AmdPlan], raw: bytes, follow: AmdFollow) -> Named:
  """What a submission in one piece names, by the long way; its plan is kept, where one gives the same."""
  found, learnt, at = named(follow), _Learnt(), 0
  for item in follow.items:
    if not learnt.add(item, at): return found
    at += len(item.words)
  state, plan = AmdState(dict(follow.state.registers)), learnt.plan(follow.state)
  if follow.pieces or 4 * at != len(raw): return found
  if plan.known(raw, state).named() != found or state != follow.state: return found
  plans.keep(raw, holes([at for _, at in plan.sent] + learnt.hidden), plan)
  return found
