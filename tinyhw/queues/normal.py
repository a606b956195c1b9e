"""Packets without what no two runs share: names for addresses, counts for signal values, nothing for times.

`Normal` goes through a capture and gives each packet as rows (field, value as text). An address is `VRAM #2 + 0x100`:
memory counted in the order in which submissions name it. A signal's value is counted from the first one at its address.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from tinyhw.core.layout import Packet, Struct
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.cuda.stream import StreamWork, show
from tinyhw.queues.effects import Does, Effect
from tinyhw.queues.world import PAGE, Item, World
from tinyhw.wire import gpfifo, methods, pm4

Row = tuple[str, str]
_HALVES: Final = re.compile(r"(?a)(.*)_(LOWER|UPPER)(?:_SHIFTED(\d))?(_\d+)?$")
_PGM_SHIFT: Final = 8  # of COMPUTE_PGM_LO: programs are 256 bytes apart


class Normal:
  """See the module; one for a whole capture, whose numbers go on from submission to submission."""

  def __init__(self, capture: Capture) -> None:
    self._capture = capture
    self._memory: dict[tuple[str, int], int] = {}
    self._counts: dict[str, int] = {}
    self._first: dict[tuple[str, int], int] = {}
    self._events: dict[tuple[str, int], int] = {}

  def rows(self, step: Step) -> Iterator[tuple[Item, str, list[Row]]]:
    """(packet, its name, its fields) of a submission."""
    assert step.follow is not None and step.world is not None
    for item in step.follow.items:
      yield item, _name(item), list(self._fields(step.event.vendor, step.world, item))

  def address(self, vendor: str, world: World, address: int) -> str | None:
    """An address by what lies there; None where nothing does."""
    if address < PAGE: return None
    kernel = self._capture.kernels.get((vendor, address))
    if kernel is not None: return f"kernel {kernel.name}"
    made = world.find(address)
    if made is None: return None
    key = vendor, made.key
    if key not in self._memory:
      self._counts[made.kind] = self._counts.get(made.kind, -1) + 1
      self._memory[key] = self._counts[made.kind]
    return f"{made.kind} #{self._memory[key]} + {address - made.address:#x}"

  def _signal(self, vendor: str, effect: Effect) -> str:
    first = self._first.setdefault((vendor, effect.address), effect.value)
    return f"signal {effect.value - first:+d}"

  def _fields(self, vendor: str, world: World, item: Item) -> Iterator[Row]:
    packet = item.packet
    values = {e.value: self._signal(vendor, e) for e in item.effects if e.does in (Does.SIGNAL, Does.WAIT) and not
              e.compare.startswith(("+", "-"))}
    if packet is None: yield "words", item.error
    elif isinstance(packet, methods.Send): yield from self._methods(vendor, world, item, values)
    elif isinstance(packet, gpfifo.Segment):
      yield "GET", self.address(vendor, world, packet.address) or hex(packet.address)
      yield "LENGTH", str(packet.dwords)
    elif isinstance(packet, Packet): yield from self._packet(vendor, world, packet, values)
    elif isinstance(packet, Struct):
      for name, value in packet.to_dict().items():
        number = value.get("handle") if isinstance(value, dict) else value
        named = self.address(vendor, world, number) if isinstance(number, int) else None
        yield name, named or str(value)
    elif isinstance(packet, StreamWork): yield from self._work(vendor, world, item, packet)
    else: yield "text", str(packet)

  def _work(self, vendor: str, world: World, item: Item, packet: StreamWork) -> Iterator[Row]:
    for name, value in packet.items():
      named = self.address(vendor, world, value) or "the host's" if name in packet.addresses else None
      if name == "event": named = f"event #{self._events.setdefault((vendor, value), len(self._events))}"
      yield name, named or show(value)
    for effect in item.effects:
      if effect.does is Does.WAIT and (made := world.find(effect.address)): yield "behind", f"{made} {effect.value}"

  def _packet(self, vendor: str, world: World, packet: Packet, values: dict[int, str]) -> Iterator[Row]:
    halves: dict[str, int] = {}
    for f, value in packet.items():
      m = _HALVES.fullmatch(f.name)
      if m is not None:
        whole, shift = f"{m[1]}{m[4] or ''}", int(m[3] or 0)
        halves[whole] = halves.get(whole, 0) | value << (shift if m[2] == "LOWER" else 32 + shift)
        continue
      named = self.address(vendor, world, value) if f.width + f.shift > 32 else None
      yield f.name, named or values.get(value) or f.show(value)
    for whole, value in halves.items():
      yield whole, self.address(vendor, world, value) or values.get(value) or hex(value)
    registers = pm4.registers(packet) if type(packet).__module__.endswith("pm4_gfx11") else []
    if registers: yield from self._registers(vendor, world, registers)
    else: yield from ((f"[{i}]", hex(w)) for i, w in enumerate(packet.tail))

  def _registers(self, vendor: str, world: World, registers: list[tuple[int, int]]) -> Iterator[Row]:
    skip = False
    for i, (offset, value) in enumerate(registers):
      if skip:
        skip = False
        continue
      pair = value | (registers[i + 1][1] << 32 if i + 1 < len(registers) else 0)
      code = self._capture.kernels.get((vendor, pair << _PGM_SHIFT & (1 << 48) - 1))
      named = f"kernel {code.name}" if code is not None else self.address(vendor, world, pair)
      skip = named is not None and pair >> 32 != 0
      yield pm4.register_text(offset, value).partition(" = ")[0], named if named is not None and skip else hex(value)

  def _methods(self, vendor: str, world: World, item: Item, values: dict[int, str]) -> Iterator[Row]:
    sent: Any = item.packet
    yield "SUBCHANNEL", str(sent.subchannel)
    if sent.header is methods.NONINCR:
      yield hex(sent.method), f"{len(sent.data)} words"
      return
    writes = list(sent.writes())
    i = 0
    while i < len(writes):
      method, value = writes[i]
      after = writes[i + 1][1] if i + 1 < len(writes) else None
      named = None
      if after is not None:
        for whole in (value << 32 | after, after << 32 | value):
          named = named or (self.address(vendor, world, whole) if whole >> 32 else None)
      yield hex(method), named or values.get(value) or hex(value)
      i += 2 if named else 1


def _name(item: Item) -> str:
  packet = item.packet
  if packet is None: return "?"
  if isinstance(packet, methods.Send): return packet.header.__name__
  if isinstance(packet, gpfifo.Segment | gpfifo.Control): return "GP_ENTRY"
  return "NOP" if isinstance(packet, int) else type(packet).__name__
