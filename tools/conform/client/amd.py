"""The room of AMD's cases: a bench of bring-up, with memory that is used again and queues of three kinds."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

from tinyhw.arch import Arch
from tinyhw.autogen import kfd
from tinyhw.bringup.amd.bench import PAGE, VRAM, AmdBench, BenchMemory, BenchQueue
from tinyhw.bringup.rung import Broken
from tinyhw.drive.amd import report
from tinyhw.drive.amd.commands import ComputeCommands, CopyCommands, sdma_padding
from tinyhw.tools.conform.client.aqlring import AqlRing
from tinyhw.tools.conform.client.question import Area, Heard, Question, Stage

MOST: Final = 1 << 22  # bytes that the kernel driver has a packet copy
QUIET_S: Final = 0.01  # in which nothing must happen
_NOMINAL: Final = 0x1_0000_0000  # where areas are for people
Commands = ComputeCommands | CopyCommands


class AmdRoom:
  """See the module."""

  def __init__(self, bench: AmdBench) -> None:
    self.bench = bench
    self._pool: dict[tuple[str, int, int], BenchMemory] = {}
    self._rows: Any = None  # what calls have been given, as long as they run
    self._row: Any = None

  @cached_property
  def aql(self) -> AqlRing: return AqlRing(self.bench)

  def close(self) -> None: self.bench.close()

  # ---- for calls

  @cached_property
  def spare(self) -> BenchMemory:
    """A mapped buffer that nobody uses."""
    return self.bench.take(PAGE)

  @cached_property
  def nowhere(self) -> int:
    """An address where the process has nothing, and no GPU either."""
    return self.bench.reserve(2 * PAGE)

  @property
  def events_page(self) -> int:
    """The event page's handle, behind its first event."""
    _ = self.bench.watched
    return self.bench.event_page.handle

  def ids(self, *values: int) -> int:
    """Where a row of numbers of 32 bits is."""
    self._rows = (ctypes.c_uint32 * len(values))(*values)
    return ctypes.addressof(self._rows)

  def event_row(self, event: int) -> int:
    """Where a row for WAIT_EVENTS is."""
    self._row = kfd.kfd_event_data(event_id=event)
    return ctypes.addressof(self._row)

  def queue_memory(self, name: str, size: int) -> BenchMemory:
    """A buffer for a queue of a case."""
    key = name, 0, size
    if key not in self._pool: self._pool[key] = self.bench.take(size, executable=name == "ring")
    return self._pool[key]

  # ---- for packets

  def queue(self, unit: str) -> BenchQueue: return self.bench.compute if unit == "pm4" else self.bench.copier

  def align(self, unit: str) -> None:
    """Have the next packet begin at a multiple of eight dwords: where INDIRECT has to end counts from there
    (sdma_v6_0_ring_emit_ib)."""
    if unit == "sdma" and (over := self.queue(unit).ring.at % 8): self.queue(unit).ring.push(sdma_padding(8 - over))

  def commands(self, unit: str) -> Commands: return self.bench.pm4() if unit == "pm4" else self.bench.sdma()

  def take(self, number: int, area: Area) -> BenchMemory:
    """Memory of the case's area of that number, with what it begins with."""
    size = -(-len(area.before) // PAGE) * PAGE
    key = area.kind, number, size
    if key not in self._pool:
      video = area.kind == "video"
      self._pool[key] = self.bench.take(size, VRAM, host=False) if video else self.bench.take(size, executable=True)
    found = self._pool[key]
    self.store(found, 0, area.before)
    return found

  def store(self, memory: BenchMemory, at: int, data: bytes) -> None:
    if memory.view is not None: memory.bytes[at:at + len(data)] = data
    else:
      stage = self._staging(len(data))
      stage.bytes[:len(data)] = data
      self.copy(memory.address + at, stage.address, len(data))

  def load(self, memory: BenchMemory, size: int) -> bytes:
    if memory.view is not None: return bytes(memory.bytes[:size])
    stage = self._staging(size)
    self.copy(stage.address, memory.address, size)
    return bytes(stage.bytes[:size])

  def _staging(self, size: int) -> BenchMemory:
    """Memory that both sides see, for what the host does not."""
    size = -(-size // PAGE) * PAGE
    key = "staging", 0, size
    if key not in self._pool: self._pool[key] = self.bench.take(size)
    return self._pool[key]

  def copy(self, target: int, source: int, size: int) -> None:
    """As the driver copies: after all that was before, seen by all that comes."""
    bench, value, values = self.bench, self.bench.next_value(), dict[str, int]()
    c = bench.sdma().memory_barrier()
    for at in range(0, size, MOST):
      c.copy(f"to{at}", f"from{at}", f"count{at}")
      values |= {f"to{at}": target + at, f"from{at}": source + at, f"count{at}": min(MOST, size - at) - 1}
    c.signal(bench.signal_page.address, "value")
    bench.copier.submit(c.bind(value=value, **values), value, timeout_s=bench.left)
    heard = bench.wait(lambda: bench.signal_page.words[0] == value & 0xFFFF_FFFF)
    if not heard: raise Broken("the copy to or from the card's memory does not end", "it ends", "the copy engine")


def text(arch: Arch, unit: str, put: Callable[..., Any], count: int) -> list[str]:
  """The packets of a stage with areas at addresses that are easy to read."""
  c: Commands = ComputeCommands(arch) if unit == "pm4" else CopyCommands(arch)
  put(c, *(_NOMINAL * (i + 1) for i in range(count)))
  lines = report.pm4_lines(arch.pm4, c.words) if unit == "pm4" else report.sdma_lines(arch.sdma, c.words)
  return [line.strip() for line in lines]


@dataclass(frozen=True)
class PacketPlay:
  """Asks a case of packets: its areas, its stages."""
  unit: str
  areas: tuple[Area, ...]
  stages: tuple[Stage, ...]

  def __call__(self, room: AmdRoom, heard: Heard) -> None:
    bench, queue = room.bench, room.queue(self.unit)
    taken = [room.take(i, area) for i, area in enumerate(self.areas)]
    addresses = [m.address for m in taken]
    waiting: list[int] = []
    signal = bench.signal_page
    for number, stage in enumerate(self.stages):
      stores = stage.stores(*addresses) if stage.stores is not None else ()
      for area, at, data in (*stage.store, *stores): room.store(taken[area], at, data)
      room.align(self.unit)
      if stage.put is not None:
        c = room.commands(self.unit)
        stage.put(c, *addresses)
        value = bench.next_value()
        c.signal(signal.address, "value")
        queue.submit(c.bind(value=value), value, timeout_s=bench.left)
        waiting.append(value)
      def ended() -> bool: return not waiting or signal.words[0] == waiting[-1] & 0xFFFF_FFFF
      came = bench.wait(ended, None if stage.ends else QUIET_S)
      where = f"stage {number}" if len(self.stages) > 1 else "the queue"
      if came and stage.ends: waiting.clear()
      state = "goes on" if came else f"stands; {queue.ring.pointers()}{bench.why_stopped()}"
      heard.holds(where, came == stage.ends, state, "it goes on" if stage.ends else "it waits")
      found = [room.load(m, len(area.before)) for m, area in zip(taken, self.areas)]
      for i, (left, wanted) in enumerate(zip(found, stage.after, strict=True)):
        if wanted is not None: heard.memory(_name(i, len(taken)), left, wanted, stage.loose.get(i, ()))
      if stage.then is not None: stage.then(room, heard, found)


def _name(area: int, count: int) -> str: return "memory" if count == 1 else f"memory {area}"


def packet(arch: Arch, unit: str, name: str, form: str, areas: Sequence[Area], stages: Sequence[Stage]) -> Question:
  """A case of a packet."""
  lines: list[str] = []
  for stage in stages:
    lines += [f"store {data.hex()} at {area}:{at:#x}" for area, at, data in stage.store]
    if stage.put is not None: lines += text(arch, unit, stage.put, len(areas))
  source = f"{unit}: {arch.pm4 if unit == 'pm4' else arch.sdma}"
  return Question(f"{arch.name}/packet/{unit}/{name}/{form}", unit, name, form, source,
                  PacketPlay(unit, tuple(areas), tuple(stages)), tuple(lines))


def simple(arch: Arch, unit: str, name: str, form: str, areas: Sequence[Area], after: Sequence[bytes | None],
           put: Callable[..., Any]) -> Question:
  """A case of one stage."""
  return packet(arch, unit, name, form, areas, [Stage(tuple(after), put)])


def maker(arch: Arch, unit: str) -> Callable[..., Question]: return partial(simple, arch, unit)
