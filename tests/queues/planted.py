"""Bugs of drivers, put into captures: each edits what a right driver submitted, in one place, as data (`planted_bugs`).

`Stream` is a capture whose events can be changed: words of rings, indirect buffers, pushbuffers and QMDs, arguments,
calls, doorbells. `save` writes it as a capture again.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyhw.autogen import pm4_gfx11
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.container import Writer, content_hash
from tinyhw.queues.effects import Does, Effect
from tinyhw.queues.events import Doorbell, Event, Seen, parsed
from tinyhw.queues.happens import arguments_at, pointers
from tinyhw.queues.world import Item, Launch
from tinyhw.wire import methods, pm4, qmd, sdma

# Uploads, kernels that feed one another, one with LDS, downloads, a replayed graph, and another card's copies.
PROGRAM = """
import os
import numpy as np
from tinyhw import Tensor, TinyJit
device, big = os.environ["DEV"], np.arange(1 << 17, dtype=np.float32)
a = Tensor(big).realize()
b = (a * 2).realize()
c = (b + a).realize()
assert (c.numpy() == big * 3).all()
c.sum().item()
a2 = Tensor(big + 1).realize()
d = (a2 + c).realize()
d.numpy()
@TinyJit
def f(x): return ((x * 2 + 1).sum(axis=1).relu() + 1).realize()
for _ in range(4): f(Tensor.rand(32, 32).realize()).tolist()
there = (d * 2).realize().to(f"{device}:1").realize()
back = (there + 1).realize().to(f"{device}:0").realize()
(back + d).realize().numpy()
del there, back, a, a2, b
Tensor(big).realize().numpy()
"""


@dataclass(frozen=True)
class Found:
  """A packet of a submission: the number of its doorbell's event, and its launch where it has one."""
  event: int
  step: Step
  item: Item
  launch: Launch | None = None


class Stream:
  """See the module."""

  def __init__(self, path: Path) -> None:
    self.capture = Capture(path)
    self.events: list[Event] = list(parsed(self.capture.reader.events()))
    self.steps: list[Step] = []
    self.blobs: dict[bytes, bytes] = {}
    self.uses: dict[int, tuple[int, int, int]] = {}  # of a launch: allocation, first byte, bytes of arguments
    self.pointers: dict[int, list[int]] = {}  # of a launch's arguments
    self.launches: list[Found] = []
    for step in self.capture:
      self.steps.append(step)
      if step.follow is None or step.world is None: continue
      launches = iter(step.follow.launches)
      for item in step.follow.items:
        for effect in item.effects:
          if effect.does is not Does.LAUNCH: continue
          launch = next(launches)
          at, size = arguments_at(self.capture, step.event.vendor, launch)
          self.pointers[id(launch)] = [p for p, _, _ in pointers(self.capture, step, launch)]
          made = step.world.find(at)
          if made is not None: self.uses[id(launch)] = made.key, at - made.address, size
          self.launches.append(Found(step.number, step, item, launch))

  # ---- looking

  def items(self, queue: str = "") -> Iterator[Found]:
    """All packets, in order."""
    for step in self.steps:
      if step.follow is None or queue not in str(step.queue): continue
      for item in step.follow.items: yield Found(step.number, step, item)

  def named(self, name: str, nth: int = 0, queue: str = "", where: Callable[[Any], bool] = lambda p: True) -> Found:
    """A packet by its name."""
    return [f for f in self.items(queue) if type(f.item.packet).__name__ == name and where(f.item.packet)][nth]

  def doing(self, does: Does, nth: int = 0, queue: str = "", where: Callable[[Effect], bool] = lambda e: True) -> Found:
    """A packet by what it does."""
    return [f for f in self.items(queue) if any(e.does is does and where(e) for e in f.item.effects)][nth]

  def launch(self, nth: int, where: Callable[[Launch], bool] = lambda l: True) -> Found:
    """A launch by its number."""
    return [f for f in self.launches if f.launch is not None and where(f.launch)][nth]

  def before(self, found: Found, name: str = "", does: Does | None = None) -> Found:
    """The last such packet before another in its submission."""
    rows = list(f for f in self.items() if f.event == found.event)
    at = next(i for i, f in enumerate(rows) if f.item is found.item)
    return next(f for f in reversed(rows[:at]) if (name and type(f.item.packet).__name__ == name)
                or (does is not None and any(e.does is does for e in f.item.effects)))

  def before_launch(self, launch: Found) -> Found:
    """The packet that sends a QMD."""
    rows = [f for f in self.items() if f.event == launch.event]
    return rows[next(i for i, f in enumerate(rows) if f.item is launch.item) - 1]

  def capture_bytes(self, found: Found, key: int, at: int, size: int) -> bytes:
    """Bytes of an allocation as a doorbell's host left them."""
    for number in range(found.event, -1, -1):
      event = self.events[number]
      for row in event.memory if isinstance(event, Doorbell) else []:
        if row[0] == key and row[1] <= at < row[1] + row[2]:
          content = self.capture.reader.blob(row[3])
          if content is not None: return content[at - row[1]:at - row[1] + size]
    raise LookupError("not known")

  # ---- changing

  def bell(self, event: int) -> Doorbell:
    """A doorbell by its event's number."""
    made = self.events[event]
    assert isinstance(made, Doorbell)
    return made

  def write(self, found: Found, address: int, words: list[int]) -> None:
    """Put words over those that an engine reads at an address."""
    data, event, hit = b"".join(w.to_bytes(4, "little") for w in words), self.bell(found.event), False
    for rows in (event.ring, event.pieces):
      for row in rows:
        at = address - row[0]
        if 0 <= at < len(row[1]):
          row[1] = row[1][:at] + data + row[1][at + len(data):]
          hit = True
    assert hit, f"nothing is read at {address:#x}"

  def drop(self, found: Found) -> None:
    """A packet that was forgotten: nothing is done in its place."""
    kind, count = found.item.queue.kind if found.item.queue else "", len(found.item.words)
    words = [0] * count
    if kind == "pm4": words = list(pm4.encode(_pm4_nop(count)))
    self.write(found, found.item.address, words)

  def put(self, found: Found, **fields: int) -> None:
    """A packet with other fields."""
    packet = found.item.packet
    wire: Any = pm4 if found.item.queue is not None and found.item.queue.kind == "pm4" else sdma
    values = {f.name: v for f, v in packet.items()} | fields
    if hasattr(packet, "payload"): values["payload"] = packet.payload
    made = type(packet)(**values)
    self.write(found, found.item.address, list(wire.encode(made)))

  def register(self, launch: Found, offset: int, change: Callable[[int], int]) -> None:
    """A register as the last packet before a launch sets it."""
    rows = [f for f in self.items() if f.event <= launch.event and f.item.queue is launch.item.queue]
    at = next(i for i, f in enumerate(rows) if f.item is launch.item)
    for found in reversed(rows[:at]):
      if type(found.item.packet).__name__ != "SET_SH_REG": continue
      for n, (o, value) in enumerate(pm4.registers(found.item.packet)):
        if o == offset: return self.write(found, found.item.address + 4 * (2 + n), [change(value)])
    raise LookupError(f"nothing sets register {offset:#x}")

  def method(self, found: Found, offset: int, change: Callable[[int], int]) -> None:
    """The value of a method in a header's run of them."""
    for n, (at, value) in enumerate(found.item.packet.writes()):
      if at == offset: return self.write(found, found.item.address + 4 * (1 + n), [change(value)])
    raise LookupError(f"no method {offset:#x}")

  def method_before(self, found: Found, offset: int, change: Callable[[int], int]) -> None:
    """The value of a method that was sent last before a packet."""
    rows = [f for f in self.items() if f.event == found.event]
    at = next(i for i, f in enumerate(rows) if f.item is found.item)
    for row in reversed(rows[:at]):
      if isinstance(row.item.packet, methods.Send) and any(o == offset for o, _ in row.item.packet.writes()):
        return self.method(row, offset, change)
    raise LookupError(f"no method {offset:#x}")

  def descriptor(self, launch: Found, name: str, value: int, index: int | None = None) -> None:
    """A QMD's field."""
    made = type(launch.item.packet).decode(launch.item.words)
    qmd.write(made, name, value, index)
    self.write(launch, launch.item.address, list(made.encode()))

  def argument(self, launch: Found, offset: int, data: bytes) -> None:
    """Bytes of a launch's arguments, in this doorbell's memory and in what follows."""
    assert launch.launch is not None
    key, at, _ = self.uses[id(launch.launch)]
    self.memory(launch.event, key, at + offset, data)

  def memory(self, event: int, key: int, at: int, data: bytes, once: bool = False) -> None:
    """Bytes of an allocation as the host has left them, from a doorbell on; `once`: until the next change."""
    last = next(e for e in range(event, -1, -1) for e2 in [self.events[e]] if isinstance(e2, Doorbell)
                 and any(r[0] == key and r[1] <= at < r[1] + r[2] for r in e2.memory))
    first = True
    for number in range(last, len(self.events)):
      made = self.events[number]
      if not isinstance(made, Doorbell) or (once and not first): continue
      for row in made.memory:
        if row[0] != key or not row[1] <= at < row[1] + row[2]: continue
        content = self.blobs.get(row[3]) or self.capture.reader.blob(row[3])
        if content is None: continue
        start = at - row[1]
        changed = content[:start] + data + content[start + len(data):]
        row[3] = content_hash(changed)
        self.blobs[row[3]] = changed
        first = False

  def overwrite(self, event: int, key: int, at: int, data: bytes) -> None:
    """The host stores into an allocation before a doorbell, where it had not."""
    made = self.bell(event)
    for number in range(event - 1, -1, -1):
      other = self.events[number]
      rows = other.memory if isinstance(other, Doorbell | Seen) else []
      for row in rows:
        if row[0] != key or not row[1] <= at < row[1] + row[2]: continue
        content = self.blobs.get(row[3]) or self.capture.reader.blob(row[3])
        assert content is not None, "the content before is not known"
        start = at - row[1]
        changed = content[:start] + data + content[start + len(data):]
        name = content_hash(changed)
        self.blobs[name] = changed
        made.memory = [r for r in made.memory if r[:2] != row[:2]] + [[row[0], row[1], row[2], name]]
        return
    raise LookupError("nothing is known of this memory")

  def save(self, path: Path) -> Path:
    """The capture with its bugs."""
    head = {k: v for k, v in self.capture.head.items() if k != "format"}
    writer = Writer(path, head)
    for name in self.capture.reader.names():
      content = self.capture.reader.blob(name)
      if content is not None: writer.blob(content, name)
    for name, content in self.blobs.items(): writer.blob(content, name)
    for event in self.events: writer.event(event.row())
    writer.close()
    return path


def _pm4_nop(count: int) -> Any:
  return pm4_gfx11.NOP(payload=(0,) * (count - 1))
