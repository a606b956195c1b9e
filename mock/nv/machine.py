"""A machine of NVIDIA GPUs: cards, their memory, channels, and the record.

Turns, clock and lock are those of `running`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from tinyhw.core.errors import Error, Interrupted, InvalidArgument, MachineFault
from tinyhw.core.memory import AddressSpace, Allocator, Region
from tinyhw.core.timeout import Agreed, Terms
from tinyhw.core.trace import Clock
from tinyhw.mock.draws import Draws
from tinyhw.mock.injected import Fault, Injected
from tinyhw.mock.nv.broken import strike
from tinyhw.mock.nv.card import Card, cards_named
from tinyhw.mock.nv.chip.channel import Channel, State, error_name
from tinyhw.mock.nv.chip.image import Images
from tinyhw.mock.nv.driver.objects import NvFile
from tinyhw.mock.nv.driver.rm import Rm
from tinyhw.mock.nv.driver.uvm import Uvm
from tinyhw.mock.running import WATCHDOG, Running

if TYPE_CHECKING:
  from tinyhw.emulator.observe import Observer

SYSTEM_MEMORY: Final = 64 << 30
CHANNELS: Final = 2048  # of a runlist


class NvGpu:
  """One card in its slot: video memory, channels by their work submit token."""

  def __init__(self, machine: NvMachine, card: Card, index: int, vram_size: int) -> None:
    self.machine, self.card, self.index = machine, card, index
    self.vram = Region(f"GPU{index}.vram", vram_size)
    self.vram_allocator = Allocator(0, vram_size, name=f"GPU{index} video memory")
    self.by_token: dict[int, Channel] = {}
    self.gpu_id = card.bus(index) << 8  # domain, bus and slot
    self._numbers: set[int] = set()
    self._images: WeakValueDictionary[int, Images] = WeakValueDictionary()  # by the space's id: they hold the space

  def timer(self) -> int:
    """PTIMER: nanoseconds."""
    return self.machine.clock.now_ns()

  def images(self, space: AddressSpace) -> Images:
    """The programs that launches of an address space have found."""
    found = self._images.get(id(space))
    if found is None:
      found = self._images[id(space)] = Images(space)
    return found

  def new_number(self) -> int:
    """A channel id that is free."""
    number = next(n for n in range(CHANNELS) if n not in self._numbers)
    self._numbers.add(number)
    return number

  def forget(self, channel: Channel) -> None:
    """A channel is gone."""
    self._numbers.discard(channel.number)
    for token in [t for t, c in self.by_token.items() if c is channel]:
      del self.by_token[token]

  def interrupted(self, engine: str) -> None:
    """A non-stalling interrupt of an engine."""
    if self.machine.watched and self.machine.injected.of("lost interrupt") is not None: return
    self.machine.rm.events.interrupt(self, engine)

  def doorbell(self, token: int) -> None:
    """A store to NOTIFY_CHANNEL_PENDING."""
    channel = self.by_token.get(token)
    if channel is None:
      self.machine.doubt(f"GPU{self.index}: a doorbell with token {token:#x}, which belongs to no channel")
      return
    channel.ring_doorbell()


class NvMachine(Running):
  """See the module. `cards` is "sm_90,sm_90" or a sequence of names; `vram` bytes a card, the card's own when left out.

  The rest is as for `mock.amd.machine.Machine`.
  """

  def __init__(self, cards: str | Sequence[str] = "sm_90", *, seed: int = 0, vram: int | None = None,
               system_memory: int = SYSTEM_MEMORY, tracing: bool = False, clock: Clock | None = None,
               watchdog: int = WATCHDOG, engine: str = "auto", observer: Observer | None = None,
               memory: str = "strong", agreed: Agreed | None = None,
               draws: Draws | None = None, injected: Injected | None = None) -> None:
    if memory != "strong":
      raise InvalidArgument(f"{memory} memory", where="mock machine", hint="NVIDIA's cards have strong memory only")
    super().__init__(seed=seed, tracing=tracing, clock=clock, watchdog=watchdog, engine=engine, observer=observer,
                     agreed=agreed, draws=draws, injected=injected)
    self.cards = cards_named(cards)
    self.system = Region("system memory", system_memory)
    self.system_allocator = Allocator(0, system_memory, name="system memory for GPUs")
    self.gpus = [NvGpu(self, card, i, vram if vram is not None else card.vram_size)
                 for i, card in enumerate(self.cards)]
    self.channels: list[Channel] = []
    self.runners = self.channels
    self.open_files: dict[int, dict[int, NvFile]] = {}
    self.rm, self.uvm = Rm(self), Uvm(self)
    self.when_stopped: Callable[[int], None] | None = None  # told the GPU's index when a signal has ended a launch

  def files_of(self, pid: int) -> dict[int, NvFile]:
    """The open files of a process, by descriptor."""
    return self.open_files.setdefault(pid, {})

  def _before_waiting(self) -> None:
    if self.rm.user_memory:
      self.rm.check_user_memory()

  def report(self) -> list[str]:
    """What this run accepted without modelling it, what was doubtful, which channels stopped and why; a line each."""
    return self.noted() + [
      c.describe() for c in self.channels if c.state is State.BLOCKED or c.standing() is not None]

  def snapshot(self) -> dict[str, Any]:
    """The state of all channels as plain values, for `diff`."""
    return {"queues": {c.name: c.snapshot() for c in self.channels}, "clock": self.clock.now_ns()}

  def log(self, gpu: NvGpu, text: str) -> None:
    """A line of the kernel's log, as /dev/kmsg shows it."""
    self.logged(f"NVRM: {text}")

  def taken_off(self, channel: Channel, terms: Terms | None, why: Interrupted) -> None:
    """A launch of the channel was ended from outside: by a signal, or because its client, whose terms are given, had no
    more patience."""
    self.stops += 1
    self.doubt(f"{channel.name}: {why}")
    if terms is not None:
      terms.interrupted = why
    elif self.when_stopped is not None:
      self.when_stopped(channel.gpu.index)

  def look(self, place: int, address: int, size: int) -> memoryview | None:
    """Memory at an address of the GPU with this index, all of it in one mapping, for who watches; None where there is
    none."""
    with self.lock:
      for found in (s.space.find(address) for s in self.rm.spaces() if s.gpu.index == place):
        if found is not None and address + size <= found.end:
          return found.raw[address - found.start : address - found.start + size]
    return None

  def channel_failed(self, channel: Channel, error: Error) -> None:
    """A channel died: record it with all that is known."""
    with self.lock:
      self.failures += 1
      self.changed.notify_all()
    fields = {k: v for k in ("instruction", "address", "access", "lane", "wave", "line")
              if (v := getattr(error, k, None)) is not None}
    self.trace.add(channel.name, "fault", f"{type(error).__name__}: {error}", **fields)
    text = " | ".join(line.strip() for line in str(error).splitlines())  # a line of the log is one
    method = channel.method_text()
    self.found(f"{channel.name}: {error_name(channel.rc)} ({channel.rc}): {text}; method {method}")
    place = f"PCI:0000:{channel.gpu.card.bus(channel.gpu.index):02x}:00"
    self.log(channel.gpu, f"Xid ({place}): {channel.rc}, Ch {channel.number:08x}, {text}; method {method}")
    if not isinstance(error, MachineFault):
      self.trace.add(channel.name, "unsupported", str(error))

  def strike(self, runner: Channel, fault: Fault) -> None:
    """Have a fault that is declared happen."""
    with self.lock: strike(runner, fault)

  def close(self) -> None:
    """Give all memory back, as a whole. Clients' mappings stay valid until they unmap them."""
    with self.lock:
      self.channels.clear()
      self.rm.close()
      for files in self.open_files.values():
        for file in files.values():
          file.close()
      self.open_files.clear()
      for region in (self.system, *(g.vram for g in self.gpus)):
        region.close()
