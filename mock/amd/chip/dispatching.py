"""A queue with its dispatch: whose waves go on in turns, and what happens to the packets meanwhile.

With strong memory the packets behind a dispatch wait for its end. With weak memory they do not (`flights.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.core.errors import Error, Interrupted, MachineFault
from tinyhw.mock.amd.chip.caches.spaces import BypassSpace, Client
from tinyhw.mock.amd.chip.flights import Beside, Flight
from tinyhw.mock.amd.chip.queue import Properties, Queue, State
from tinyhw.mock.running import Wait

if TYPE_CHECKING:
  from tinyhw.emulator.schedule import Idle
  from tinyhw.mock.amd.chip.caches.chip import Chip
  from tinyhw.mock.amd.chip.compute import Shader
  from tinyhw.mock.amd.chip.waves import Waves
  from tinyhw.mock.amd.driver.process import KfdProcess, ProcessDevice


class Waiting(Wait):
  """Why a queue is blocked whose dispatch has waves that all wait for memory to change."""

  def __init__(self, packet: str, idle: Idle) -> None:
    self.idle = idle
    poll = idle.polls[0]
    super().__init__(packet, str(poll), "to change", lambda: idle.polls[0].value or 0, idle.changed)


class Dispatching(Queue):
  """A queue that runs dispatches. `beside`, with weak memory, has those that run beside the packets."""

  beside: Beside | None = None

  def __init__(
    self, process: KfdProcess, device: ProcessDevice, queue_id: int, properties: Properties, doorbell: int
  ) -> None:
    super().__init__(process, device, queue_id, properties, doorbell)
    if self.beside is None:  # asked for often
      self.runnable = self._ready  # type: ignore[method-assign]
      self.run = self._execute  # type: ignore[method-assign]
    self.program: tuple[tuple[int, int, int], Shader] | None = None  # what the last one was made from, and that
    self._then: Callable[[], None] | None = None  # what follows their end
    self._leaving = False  # whether the scheduler waits for the end of waves that it cannot save

  def _connect(self, chip: Chip) -> None:
    self.beside = Beside(self)
    base = self.space
    self.space, self.past_gl2 = Client(base, chip), BypassSpace(base, chip)

  def _speak(self) -> None:
    """A packet begins: what it accesses is its doing."""
    if isinstance(self.space, Client) and isinstance(self.past_gl2, Client) and self.beside is not None:
      agent = self.beside.packets()
      for space in (self.space, self.past_gl2):
        space.agent, space.detail = agent, self.last

  @property
  def dispatching(self) -> bool:
    return self.busy or self.beside is not None and self.beside.busy

  def flight(self, program: Shader) -> Flight | None:
    """With weak memory: the next dispatch, as it sees memory."""
    return None if self.beside is None else self.beside.flight(program, self.last)

  def start(self, waves: Waves, flight: Flight | None = None) -> None:
    """Begin a dispatch. Its waves run in turns; the next packet waits until they have ended, except with weak memory.
    """
    if flight is not None and self.beside is not None:
      self.beside.add(flight, waves)
      if self.observer is not None:
        self._wait_for_dispatches("a dispatch under an observer")
      return
    self.waves = waves

  def when_ended(self, then: Callable[[], None]) -> None:
    """Do something once the dispatch has ended, or at once where none runs."""
    if self.beside is not None:
      return self.beside.when_ended(then)
    self._then = then
    if self.waves is None:
      self._ended()

  def _ended(self) -> None:
    then, self._then = self._then, None
    if then is not None:
      then()

  def _map_again(self, stored: int) -> None:
    """Waves that run are saved first, or run to their end where they cannot be saved."""
    if self._can_be_saved():
      super()._map_again(stored)
    else:
      self._leaving = True

  def _can_be_saved(self) -> bool:
    """Whether a context save reaches all waves that run: it is a trap, to the driver's own handler.

    Where queues are mapped with traps off (`Card.traps_off`) it reaches only waves that started privileged: the handler
    leaves PRIV set on these chips so that it can be reached again (cwsr_trap_handler_gfx10.asm, SW_SA_TRAP). The packet
    processor of AQL queues sees to it; what a PM4 queue writes to COMPUTE_PGM_RSRC1 is its own business.
    """
    if not self.gpu.card.traps_off or self.process.debug.active:
      return True
    running = [] if self.waves is None or self.program is None else [self.program[1].rsrc1]
    if self.beside is not None:
      running += [flight.rsrc1 for flight in self.beside.flights]
    return all(gc.COMPUTE_PGM_RSRC1.decode(rsrc1).PRIV for rsrc1 in running)

  def check_leaving(self, idle: Idle, rsrc1: int) -> None:
    """Waves that wait must not be ones that the scheduler waits for."""
    if self._leaving and not gc.COMPUTE_PGM_RSRC1.decode(rsrc1).PRIV:
      raise MachineFault(
        f"waves wait for {idle.polls[0]}, and the scheduler for them: with COMPUTE_PGM_RSRC1.PRIV 0 they do not "
        "answer its context save",
        hint=f"queues of {self.gpu.card.name} are mapped with traps off: set PRIV",
      )

  def _go_on(self, turns: int) -> int:
    """Give the waves of the dispatch up to so many turns; how many are left. Waves that wait block the queue."""
    while turns and self.waves is not None and self.state is State.READY:
      turns -= 1
      self._turn_begins()
      if self.waves is None:  # it failed
        break
      try:
        idle = next(self.waves)
      except StopIteration as end:
        self.waves, self._leaving = None, False
        self.machine.clock.advance(end.value)
        self._ended()
        continue
      except Interrupted as why:
        self.waves = None  # it counts as ended: what was queued behind it goes on
        self.machine.taken_off(self, why)
        self._ended()
        continue
      if idle is None:
        continue
      if idle.hopeless():
        raise idle.error()
      assert self.program is not None
      self.check_leaving(idle, self.program[1].rsrc1)
      self.block(Waiting("a dispatch", idle))
    return turns

  def standing(self) -> Idle | None:
    """What the waves of a dispatch wait for where none can go on."""
    if isinstance(self.wait, Waiting):
      return self.wait.idle
    return None if self.beside is None else self.beside.standing()

  def runnable(self) -> bool:
    return self._ready() if self.beside is None else self._moves() or self._ready()

  def _moves(self) -> bool:
    """Whether a dispatch beside the packets can go on."""
    if self.beside is None or self.state not in (State.READY, State.BLOCKED):
      return False
    return bool(self.beside.movable())

  def run(self, packets: int) -> None:
    beside = self.beside
    if beside is None:
      return self._execute(packets)
    rng, draws = self.machine.rng, self.machine.draws
    for _ in range(packets):
      ready = self._ready()
      if draws is not None:
        movable = beside.movable() if self._moves() else []
        choices = len(movable) + ready
        at = draws.number(self.name, "in the place of the first dispatch: another one, or the next packet", choices,
                          0.5) if choices > 1 else 0
        flights = movable[at : at + 1]
      else:
        flights = [f for f in beside.movable() if not ready or rng.random() < f.pace] if self._moves() else []
      if flights:
        flight = rng.choice(flights) if draws is None else flights[0]
        with self.guarded():
          self._turn_begins()
          if flight.running:  # the queue has not failed
            beside.turn(flight)
          self._leaving = self._leaving and not self._can_be_saved()
      elif ready:
        self._execute(1)
      else:
        break

  def fail(self, error: Error) -> None:
    self.waves = self._then = None
    if self.beside is not None:
      self.beside.clear()
    self._leaving = False
    super().fail(error)

  def _wait_for_dispatches(self, packet: str) -> None:
    """Hold the queue back until the dispatches beside its packets have ended."""
    beside = self.beside
    if beside is not None and beside.busy:
      self.block(Wait(packet, "dispatches before it", "= 0", lambda: len(beside.flights), lambda: not beside.busy))
