"""Dispatches of one queue that run beside the packets behind them, as on a chip; only weak memory asks for them.

A packet that waits for the dispatches before it (CS_PARTIAL_FLUSH, AQL's barrier bit) holds the queue back; one that is
to be done at their end (RELEASE_MEM, a completion signal) is done then, while the queue goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tinyhw.core.errors import Interrupted
from tinyhw.mock.amd.chip.caches.chip import Running
from tinyhw.mock.amd.chip.caches.history import Agent
from tinyhw.mock.amd.chip.caches.spaces import WaveSpace
from tinyhw.mock.amd.chip.caches.waves import WaveView

if TYPE_CHECKING:
  from tinyhw.emulator.schedule import Idle
  from tinyhw.mock.amd.chip.compute import Shader
  from tinyhw.mock.amd.chip.dispatching import Dispatching
  from tinyhw.mock.amd.chip.queue import Place
  from tinyhw.mock.amd.chip.waves import Waves

PACES: Final = (0.02, 0.1, 0.5)  # how likely a dispatch has a turn while packets behind it could go on
ELSEWHERE: Final = 4  # one dispatch in so many begins on another shader array than the first one


class Packets(Agent):
  """The packets of a queue, each told by its place (`detail`: its frame and where in it). `order` counts dispatches of
  the queue: those up to it came before."""

  def __init__(self, queue: Any, order: int) -> None:
    self.queue, self.order = queue, order

  def kind(self, detail: object) -> object:
    return self.queue.name, self.describe(detail).partition(": ")[2].partition("(")[0]

  def describe(self, detail: object) -> str:
    if not isinstance(detail, tuple):
      return f"{self.queue.name}'s fetcher"
    frame, at = detail
    return f"{self.queue.name}'s packet {frame.address + at * 4:#x}: {self.queue._text(frame.words[at : at + 64])}"


class Flight(Running):
  """A dispatch on its way. `detail` of what it does is a PC, or "code" for fetching it."""

  def __init__(self, queue: Dispatching, order: int, program: Shader, packet: Place | None,
               space: WaveSpace) -> None:
    self.queue, self.order, self.packet, self.entry = queue, order, packet, program.entry
    self.chip, self.listens = space.chip, False
    self.began = space.weak.history.tick()
    self.scratch, self.rsrc1 = bool(program.scratch_size), program.rsrc1
    self.names: dict[int, object] = {}  # instructions that accessed memory, by PC
    self.idle: Idle | None = None
    self.waves: Waves | None = None
    self.pace = queue.machine.rng.choice(PACES)
    self.then: list[Callable[[], None]] = []
    rng, arrays = queue.machine.rng, self.chip.gpu.card.arrays
    first = rng.randrange(arrays) if not rng.randrange(ELSEWHERE) else 0
    self.space = space
    self.view = WaveView(self, space, first, bool(program.rsrc1 >> 29 & 1))

  @property
  def running(self) -> bool:
    return self.queue.beside is not None and self in self.queue.beside.flights

  def kind(self, detail: object) -> object:
    return self.queue.name, self.entry, detail

  def describe(self, detail: object) -> str:
    what = f"dispatch {self.order} of {self.queue.name} ({self.entry:#x})"
    if not isinstance(detail, int):
      return f"the instruction fetch of {what}" if detail else what
    return f"{what} at PC {detail:#x} in '{self.names.get(detail, '?')}'"

  def precedes(self, other: Agent) -> bool:
    if isinstance(other, Flight):
      return other.queue is self.queue and other.order > self.order
    return isinstance(other, Packets) and other.queue is self.queue and other.order >= self.order


class Beside:
  """The dispatches of a queue that have not ended, and what waits for their ends."""

  def __init__(self, queue: Dispatching) -> None:
    self.queue = queue
    self.flights: list[Flight] = []
    self.order = 0
    self._after: deque[tuple[int, Callable[[], None]]] = deque()
    self._packets: Packets | None = None

  def packets(self) -> Packets:
    """Who packets are that come behind the dispatches up to now."""
    if self._packets is None or self._packets.order != self.order:
      self._packets = Packets(self.queue, self.order)
    return self._packets

  def flight(self, program: Shader, packet: Place | None) -> Flight:
    """The next dispatch."""
    space = self.queue.device.wave_space()
    self.order += 1
    return Flight(self.queue, self.order, program, packet, space)

  def when_ended(self, then: Callable[[], None]) -> None:
    """Do something at the end of the dispatch that was added last; at once where it has ended, or none was."""
    if self.flights and self.flights[-1].order == self.order:
      self.flights[-1].then.append(then)
    else:
      then()

  def standing(self) -> Idle | None:
    """What a dispatch waits for that cannot go on."""
    return next((f.idle for f in self.flights if f.idle is not None), None)

  @property
  def busy(self) -> bool:
    return bool(self.flights)

  def add(self, flight: Flight, waves: Waves) -> None:
    """A dispatch begins."""
    flight.waves = waves
    self.flights.append(flight)

  def at_end(self, do: Callable[[], None]) -> None:
    """Do something when the dispatches up to now have ended, in the order in which it is asked for."""
    if self.flights or self._after:
      self._after.append((self.order, do))
    else:
      do()

  def movable(self) -> list[Flight]:
    """Those that can go on. One that has scratch waits for the one before it that has the same."""
    scratch, out = False, []
    for flight in self.flights:
      if not (flight.scratch and scratch) and (flight.idle is None or flight.idle.changed()):
        out.append(flight)
      scratch = scratch or flight.scratch
    return out

  def turn(self, flight: Flight) -> None:
    """Let a dispatch go on for a while; at its end comes what waits for it."""
    assert flight.waves is not None
    flight.idle, flight.space.agent = None, flight
    try:
      idle = next(flight.waves)
    except StopIteration as end:
      self.queue.machine.clock.advance(end.value)
      return self._ended(flight)
    except Interrupted as why:  # from outside: it counts as ended, what was queued behind it goes on
      last, self.queue.last = self.queue.last, flight.packet
      self.queue.machine.taken_off(self.queue, why)
      self.queue.last = last
      return self._ended(flight)
    except BaseException:
      self.queue.last = flight.packet
      raise
    if idle is not None and idle.hopeless():
      self.queue.last = flight.packet
      raise idle.error()
    flight.idle = idle
    if idle is not None:
      self.queue.check_leaving(idle, flight.rsrc1)

  def _ended(self, flight: Flight) -> None:
    """Do what waited for the end of a dispatch."""
    self.flights.remove(flight)
    flight.waves = None
    for do in flight.then:
      do()
    while self._after and not any(f.order <= self._after[0][0] for f in self.flights):
      self._after.popleft()[1]()

  def clear(self) -> None:
    """The queue has stopped for good."""
    self.flights.clear()
    self._after.clear()
