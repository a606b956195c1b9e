"""A machine of AMD GPUs: cards, their kernel driver, and what happened to them.

Everything that changes is a named part of a `Machine`; two machines live in one process without knowing of each other.
Turns, clock, lock and record are those of `running`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tinyhw.core.errors import Error, Interrupted, InvalidArgument, MachineFault, PageFault
from tinyhw.core.memory import Allocator, Region
from tinyhw.core.timeout import Agreed
from tinyhw.core.trace import Clock
from tinyhw.mock.amd.broken import strike
from tinyhw.mock.amd.card import Card, cards_named
from tinyhw.mock.amd.chip.caches.chip import Chip, Weak
from tinyhw.mock.amd.chip.compute import Shader, duration
from tinyhw.mock.amd.chip.planning import Planning
from tinyhw.mock.amd.chip.queue import Queue, State
from tinyhw.mock.amd.driver.kfd import Kfd
from tinyhw.mock.amd.driver.places import ProcessPlaces
from tinyhw.mock.amd.driver.process import OpenFile
from tinyhw.mock.amd.driver.topology import bus_of, files_of, gpu_id_of
from tinyhw.mock.draws import Draws
from tinyhw.mock.injected import Fault, Injected
from tinyhw.mock.running import WATCHDOG, Running

if TYPE_CHECKING:
  from tinyhw.emulator.engines.amdgcn import Repeated
  from tinyhw.emulator.observe import Observer
  from tinyhw.emulator.simt import Outside

SYSTEM_MEMORY: Final = 64 << 30
MMAP_START: Final = 0x1_0000_0000  # DRM_FILE_PAGE_OFFSET_START: render nodes hand out mmap offsets from here on
TURNS_ON_ENGINE: Final = (2, 24)  # doorbells and turns between two times that a queue is off its engine
OFF: Final = 0.5  # how likely a schedule takes a queue off its engine
NEVER: Final = 1 << 62
MEMORIES: Final = ("strong", "weak")

Size = tuple[int, int, int]
Executor = Callable[["Planning", "Shader", Size, tuple[int, ...]], int]  # runs a dispatch, returns its nanoseconds


class Gpu:
  """One card in its slot: video memory, mmap offsets, counters. Its queues belong to the processes that made them."""

  def __init__(self, machine: Machine, card: Card, index: int, gpu_id: int, vram_size: int) -> None:
    self.machine, self.card, self.index, self.gpu_id = machine, card, index, gpu_id
    self.vram = machine.region(f"GPU{index}.vram", vram_size)
    self.vram_allocator = Allocator(0, vram_size, name=f"GPU{index} video memory")
    self.mmap_offsets = Allocator(MMAP_START, 1 << 46, name=f"GPU{index} mmap offsets")
    self.sdma_used: set[int] = set()
    self.chip: Chip | None = None if machine.weak is None else machine.weak.add(self)

  def counter(self) -> int:
    """The GPU's clock counter, in ticks of the card's reference clock."""
    return self.machine.clock.now_ns() * self.card.counter_clock_khz // 1_000_000


class Machine(Running):
  """See the module. `cards` is "gfx1100,gfx1100" or a sequence of names; `vram` bytes a card, the card's own when left
  out.

  `seed` decides the order in which queues take turns. `tracing` records every packet; errors are recorded always.
  An `observer` sees all that the waves do. `memory` is "strong", where everybody sees each store at once, or "weak",
  see `mock.amd.chip.caches`. `agreed` is what threads of the client want of their own dispatches.

  Threads may share it. `lock` guards all of it; a thread that waits runs the queues of all, and lets others in between
  two turns (`run`).
  """

  at_once = False  # whether a dispatch of an AQL queue that comes again runs within its packet's turn

  def __init__(
    self,
    cards: str | Sequence[str] = "gfx1100",
    *,
    seed: int = 0,
    vram: int | None = None,
    system_memory: int = SYSTEM_MEMORY,
    tracing: bool = False,
    clock: Clock | None = None,
    watchdog: int = WATCHDOG,
    executor: Executor | None = None,
    engine: str = "auto",
    observer: Observer | None = None,
    memory: str = "strong",
    agreed: Agreed | None = None,
    draws: Draws | None = None,
    injected: Injected | None = None,
  ) -> None:
    if memory not in MEMORIES:
      raise InvalidArgument(f"no memory is called {memory!r}", where="mock machine",
                            hint=f"there are {', '.join(MEMORIES)}")
    if memory == "weak" and engine not in ("auto", "ref"):
      raise InvalidArgument(f"weak memory with the engine {engine!r}", where="mock machine",
                            hint="it runs on the reference interpreter: engine 'ref' or 'auto' (the variable EMU)")
    self.cards = cards_named(cards)
    super().__init__(seed=seed, tracing=tracing, clock=clock, watchdog=watchdog, engine=engine, observer=observer,
                     agreed=agreed, draws=draws, injected=injected)
    self._scheduling = random.Random(f"scheduler {seed}")
    self.when_stopped: Callable[[int], None] | None = None  # told the GPU id when a signal has ended a dispatch
    self.outside: dict[int, Outside] = {}  # what dispatches touched of LDS that they do not have, by PC
    self.system = self.region("system memory", system_memory)
    self.system_allocator = Allocator(0, system_memory, name="system memory for GPUs")
    self.weak = Weak(self) if memory == "weak" else None
    self.gpus: list[Gpu] = []
    for index, card in enumerate(self.cards):
      gpu_id = gpu_id_of(card, index, system_memory)
      while any(g.gpu_id == gpu_id for g in self.gpus):
        gpu_id = gpu_id % 0xFFFF + 1
      self.gpus.append(Gpu(self, card, index, gpu_id, vram if vram is not None else card.vram_size))
    self.files = files_of(tuple(self.cards), tuple(g.gpu_id for g in self.gpus), tuple(g.vram.size for g in self.gpus),
                          system_memory)
    self.queues: list[Queue] = []
    self.runners = self.queues
    self.executor = executor
    self.open_files: dict[int, dict[int, OpenFile]] = {}
    self.kfd = Kfd(self)

  def _before_waiting(self) -> None:
    if self.kfd.user_buffers:
      self.kfd.check_user_memory()

  # ---- clients

  def region(self, name: str, size: int) -> Region:
    """Memory for GPUs: a file of its own, for clients in this process."""
    return Region(name, size)

  def places(self, pid: int) -> ProcessPlaces:
    """Where a new client finds memory and files: one in this process."""
    return ProcessPlaces(self, pid)

  def files_of(self, pid: int) -> dict[int, OpenFile]:
    """The open files of a process, by descriptor."""
    return self.open_files.setdefault(pid, {})

  # ---- the record

  def log(self, gpu: Gpu, text: str) -> None:
    """A line of the kernel's log, as /dev/kmsg shows it."""
    slot = f"amdgpu 0000:{bus_of(gpu.index):02x}:00.0: amdgpu"
    self.logged(f"{slot}: {text}")

  def report(self) -> list[str]:
    """What this run accepted without modelling it, what was doubtful, which queues stopped and why; a line each."""
    if self.weak is not None:
      with self.lock:
        self.weak.host_looks()
    return self.noted() + [
      q.describe() for q in self.queues if q.state is State.BLOCKED or q.standing() is not None
    ]

  def snapshot(self) -> dict[str, Any]:
    """The state of all queues as plain values, for `diff`."""
    return {"queues": {q.name: q.snapshot() for q in self.queues}, "clock": self.clock.now_ns()}

  # ---- the run

  def turns_of_a_queue(self, queue: str) -> int:
    """After how many doorbells and turns the scheduler takes a queue off its engine and puts it back.

    MES does so when there are more queues than places, and the kernel driver whenever it moves memory or a client
    unmaps memory that GPUs see (kgd2kfd_quiesce_mm); no client can know when.
    """
    if self.draws is None:
      return self._scheduling.randint(*TURNS_ON_ENGINE)
    least, most = TURNS_ON_ENGINE
    turns = self.draws.number(queue, "turns until it is off its engine for a moment", most - least + 2, OFF)
    return least + turns - 1 if turns else NEVER

  def foreign_register(self) -> int:
    """What a register holds that another queue has used."""
    return self._scheduling.getrandbits(32)

  def execute(self, queue: Planning, program: Shader, size: Size, user_data: tuple[int, ...]) -> None:
    """Start a dispatch of `size` workgroups, which goes on in turns of its queue; the clock moves by what it takes."""
    if self.trace.enabled:
      self.trace.add(queue.name, "dispatch", f"{program.entry:#x}", grid=size, block=program.block)
    if self.executor is not None:
      return self.clock.advance(self.executor(queue, program, size, user_data))
    queue.terms = self.agreed.get(queue.queued_by() or 0)
    queue.observer = self.observer if queue.terms is None or queue.terms.observer is None else queue.terms.observer
    from tinyhw.mock.amd.chip.waves import start_waves  # the instruction tables load with the first dispatch

    flight = queue.flight(program)
    queue.start(start_waves(queue, program, size, user_data, flight), flight)

  def look(self, place: int, address: int, size: int) -> memoryview | None:
    """Memory of this process at a GPU's address, all of it in one mapping, for who watches; None where there is none.
    GPUs are counted in the order of their first use."""
    with self.lock:
      devices = [d for d in self.kfd.process(os.getpid()).devices.values() if d.space is not None]
      space = devices[place].space if place < len(devices) else None
      found = None if space is None else space.find(address)
      if found is None or address + size > found.end: return None
      return found.raw[address - found.start : address - found.start + size]

  def repeat(self, queue: Planning, dispatch: Repeated, user_data: tuple[int, ...]) -> bool:
    """As `execute`, at once; False when that has to do it, or the rest of it."""
    if self.agreed or self.observer is not None or self.executor is not None or self.trace.enabled:
      return False
    stats = dispatch.at_once(user_data)
    if stats is None:
      return False
    self.executed += stats.instructions
    self.clock.advance(duration(stats, queue.gpu.card))
    return True

  def taken_off(self, queue: Queue, why: Interrupted) -> None:
    """A dispatch of the queue was ended from outside: by a signal, or because its client had no more patience."""
    self.stops += 1
    self.doubt(f"{queue.name}: {why}; {queue.packet_text()}")
    if queue.terms is not None:
      queue.terms.interrupted = why
    elif self.when_stopped is not None:
      self.when_stopped(queue.gpu.gpu_id)

  def queue_failed(self, queue: Queue, error: Error) -> None:
    """A queue stopped: record it with all that is known, and let the kernel driver tell the client what it tells."""
    with self.lock:
      self.failures += 1
      self.changed.notify_all()
    name = type(error).__name__
    fields = {
      k: v
      for k in ("pc", "instruction", "address", "access", "lane", "wave")
      if (v := getattr(error, k, None)) is not None
    }
    self.trace.add(queue.name, "fault", f"{name}: {error}", **fields)
    packet = queue.packet_text()
    text = " | ".join(line.strip() for line in str(error).splitlines())  # a line of the log is one
    self.found(f"{queue.name}: {queue.state.value}: {text}; packet {packet}")
    self.log(queue.gpu, f"{queue.name} stopped: {text}; packet {packet}")
    if isinstance(error, PageFault):
      self.kfd.memory_violation(queue, error)
    else:
      self.kfd.gpu_hang(queue, hang=isinstance(error, MachineFault))

  def strike(self, runner: Queue, fault: Fault) -> None:
    """Have a fault that is declared happen."""
    with self.lock: strike(runner, fault)

  def reset_gpu(self, gpu_id: int) -> None:
    """A GPU reset, after which processes begin anew on this card: nothing of any process is on it any more."""
    with self.lock:
      self.kfd.forget_gpu(gpu_id)
      gpu = next(g for g in self.gpus if g.gpu_id == gpu_id)
      self.trace.add(f"GPU{gpu.index}", "reset", "by its user: processes begin anew on it")
      self.log(gpu, "GPU reset by its user: video memory is lost")

  def close(self) -> None:
    """Give all memory back, and all files. Clients' mappings stay valid until they unmap them."""
    with self.lock:
      self.queues.clear()
      self.kfd.close()
      for files in self.open_files.values():
        for file in files.values():
          file.close()
      self.open_files.clear()
      for region in (self.system, *(g.vram for g in self.gpus)):
        region.close()
