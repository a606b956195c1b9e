"""The room of NVIDIA's cases: a bench of bring-up, with memory that is used again and a channel for each engine."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

from tinyhw.arch.nv import NvArch
from tinyhw.autogen import nv_rm_status
from tinyhw.bringup.nv.bench import PAGE, Aperture, Buffer, Channel, NvBench
from tinyhw.drive.nv.commands import COMPUTE, COPY, ComputeCommands, CopyCommands, HostCommands
from tinyhw.drive.nv.commands import text as listing
from tinyhw.tools.conform.client.question import Area, Heard, Question, Stage
from tinyhw.wire import rm

QUIET_S: Final = 0.01  # in which nothing must happen
_NOMINAL: Final = 0x10_0000_0000  # where areas are for people
_KINDS: Final = {"system": Aperture.SYSTEM, "video": Aperture.VRAM}
ANY: Final = "an error"  # that ends a channel, by whatever name


class NvRoom:
  """See the module. Host methods are asked on the compute channel."""

  def __init__(self, bench: NvBench) -> None:
    self.bench = bench
    self._pool: dict[tuple[str, int, int], Buffer] = {}

  def close(self) -> None: self.bench.close()

  def channel(self, unit: str) -> Channel: return self.copier if unit == "copy" else self.compute

  @cached_property
  def copier(self) -> Channel:
    """The copy engine's, with its class on the subchannel."""
    self.bench.finish(self.bench.copier, self.bench.copies().begin(), "the copy engine")
    return self.bench.copier

  @cached_property
  def compute(self) -> Channel:
    self.bench.finish(self.bench.compute, self.bench.commands().begin(), "the compute engine")
    return self.bench.compute

  def commands(self, unit: str) -> HostCommands:
    return self.bench.copies() if unit == "copy" else self.bench.commands()

  def take(self, number: int, area: Area) -> Buffer:
    """Memory of the case's area of that number, with what it begins with. Both sides see it."""
    size = -(-len(area.before) // PAGE) * PAGE
    key = area.kind, number, size
    if key not in self._pool: self._pool[key] = self.bench.take(size, _KINDS[area.kind], host=True)
    found = self._pool[key]
    self.store(found, 0, area.before)
    return found

  def store(self, memory: Buffer, at: int, data: bytes) -> None: memory.bytes()[at:at + len(data)] = data

  def load(self, memory: Buffer, size: int) -> bytes: return bytes(memory.bytes()[:size])


def commands_of(arch: NvArch, unit: str) -> HostCommands:
  """A stream for an engine."""
  return CopyCommands(arch.copy_class) if unit == "copy" else ComputeCommands(arch.compute_class)


def text(arch: NvArch, unit: str, put: Callable[..., Any], count: int) -> list[str]:
  """The methods of a stage with areas at addresses that are easy to read."""
  c = commands_of(arch, unit)
  put(c, *(_NOMINAL * (i + 1) for i in range(count)))
  copies = unit == "copy"
  return [line.strip() for line in listing(c.words, arch.copy_class if copies else arch.compute_class,
                                           COPY if copies else COMPUTE)]


@dataclass(frozen=True)
class MethodPlay:
  """Asks a case of methods: its areas, its stages. `ends`: the error that must end the channel, by its name among Xids.
  """
  unit: str
  areas: tuple[Area, ...]
  stages: tuple[Stage, ...]
  error: str = ""

  def __call__(self, room: NvRoom, heard: Heard) -> None:
    bench, channel = room.bench, room.channel(self.unit)
    taken = [room.take(i, area) for i, area in enumerate(self.areas)]
    addresses = [m.address for m in taken]
    waiting: list[int] = []
    signal, notifier = bench.signal, channel.notifier
    for number, stage in enumerate(self.stages):
      stores = stage.stores(*addresses) if stage.stores is not None else ()
      for area, at, data in (*stage.store, *stores): room.store(taken[area], at, data)
      if stage.put is not None:
        c = room.commands(self.unit)
        stage.put(c, *addresses)
        waiting.append(bench.write(channel, c))
      def ended() -> bool: return not waiting or signal[0] >= waiting[-1] or notifier.status != 0
      bench.wait(ended, None if stage.ends else QUIET_S)
      if self.error:
        found = rm.error_name(int(notifier.info32)) if notifier.status else "no error"
        if self.error == ANY: return heard.holds("the channel", bool(notifier.status), found, "an error")
        return heard.same("what ends the channel", found, self.error)
      came = not waiting or signal[0] >= waiting[-1]
      where = f"stage {number}" if len(self.stages) > 1 else "the channel"
      if came and stage.ends: waiting.clear()
      state = "goes on" if came else f"stands; {channel.queue.ring.pointers()}{bench.why_stopped(channel)}"
      heard.holds(where, came == stage.ends, state, "it goes on" if stage.ends else "it waits")
      left = [room.load(m, len(area.before)) for m, area in zip(taken, self.areas)]
      for i, (found_bytes, wanted) in enumerate(zip(left, stage.after, strict=True)):
        name = "memory" if len(taken) == 1 else f"memory {i}"
        if wanted is not None: heard.memory(name, found_bytes, wanted, stage.loose.get(i, ()))
      if stage.then is not None: stage.then(room, heard, left)


@dataclass(frozen=True)
class InterruptPlay:
  """Asks whether methods interrupt: an event below the subdevice is told of it, or of nothing."""
  unit: str
  put: Callable[..., Any]
  comes: bool

  def __call__(self, room: NvRoom, heard: Heard) -> None:
    bench, channel = room.bench, room.channel(self.unit)
    memory = room.take(0, Area(bytes(64)))
    event = bench.rm.open_event(bench.gpu)
    try:
      heard.same("a new event is told of something", bench.port.poll(event.fd, 0), False)
      c = room.commands(self.unit)
      self.put(c, memory.address)
      bench.finish(channel, c, "the channel")
      told = bench.port.poll(event.fd, min(bench.left, 2.0) if self.comes else QUIET_S)
      heard.same("the event is told of an interrupt", told, self.comes)
      heard.same("and of a second one", bench.port.poll(event.fd, 0), False)
    finally: bench.rm.close_event(event)


def interrupts(arch: NvArch, unit: str, name: str, form: str, put: Callable[..., Any], comes: bool) -> Question:
  """A case of an interrupt that comes, or does not."""
  kind = class_of(arch, unit)
  return Question(f"{arch.name}/method/{kind}/{name}/{form}", kind, name, form, f"{kind} (class header)",
                  InterruptPlay(unit, put, comes), tuple(text(arch, unit, put, 1)))


def class_of(arch: NvArch, unit: str) -> str:
  """The class as the headers' names begin: NVC6B5; host methods are those of NVC56F."""
  return {"host": "NVC56F", "copy": f"NV{arch.copy_class:04X}"}.get(unit, f"NV{arch.compute_class:04X}")


def methods(arch: NvArch, unit: str, name: str, form: str, areas: Sequence[Area], stages: Sequence[Stage],
            error: str = "") -> Question:
  """A case of methods, named for the one that does something."""
  lines: list[str] = []
  for stage in stages:
    lines += [f"store {data.hex()} at {area}:{at:#x}" for area, at, data in stage.store]
    if stage.put is not None: lines += text(arch, unit, stage.put, len(areas))
  kind = class_of(arch, unit)
  return Question(f"{arch.name}/method/{kind}/{name}/{form}", kind, name, form, f"{kind} (class header)",
                  MethodPlay(unit, tuple(areas), tuple(stages), error), tuple(lines), alone=bool(error))


def simple(arch: NvArch, unit: str, name: str, form: str, areas: Sequence[Area], after: Sequence[bytes | None],
           put: Callable[..., Any]) -> Question:
  """A case of one stage."""
  return methods(arch, unit, name, form, areas, [Stage(tuple(after), put)])


def maker(arch: NvArch, unit: str) -> Callable[..., Question]: return partial(simple, arch, unit)


def xid(number: int) -> str:
  """The name of what ends a channel."""
  return rm.error_name(number)


PBDMA: Final = nv_rm_status.ROBUST_CHANNEL_PBDMA_ERROR


