"""What a machine of any vendor is: one clock, one seeded scheduler, one lock, and the record of what happened.

Nothing runs by itself: work that clients have queued proceeds while somebody waits (`run`), one packet at a time, in an
order that the seed decides: whose turn it is, and behind how many packets others look again, be it another queue, one
that waits, or the host. A machine that nobody can wake any more says so at once instead of waiting for the wall
clock.

A machine is its process's. A forked child has a copy in which nothing runs and which nobody opens, and closing that
gives up the child's descriptors only.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, MutableSequence
from dataclasses import dataclass
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from weakref import WeakSet

from tinyhw.core.errors import Error, MachineFault, Unsupported
from tinyhw.core.locks import FairLock
from tinyhw.core.table import Ignored
from tinyhw.core.timeout import HELD, Agreed
from tinyhw.core.trace import Clock, Trace
from tinyhw.mock.draws import HOST, Draws
from tinyhw.mock.injected import Fault, Injected

if TYPE_CHECKING:
  from tinyhw.emulator.observe import Observer
  from tinyhw.emulator.schedule import Idle

PACKET_NS: Final = 40  # what a packet costs on the machine's clock
# Packets that a queue runs before those that wait, and the host, look again, where it is the only one that can run, and
# where others can: one of these is drawn.
QUANTA: Final = 1, 1, 2, 4, 64, 64, 64, 64
SHORT: Final = 1, 1, 1, 1, 1, 2, 4, 16
ASKED: Final = 64  # turns of queues behind which who only asks is answered
PIECES: Final = "more pieces of a copy"
MOST_PIECES: Final = 4
TEXT: Final = 70  # letters of a packet in a schedule's words
LATE: Final = "a signal comes late"
HANG_S: Final = 1.0  # a client that would wait so long, and that nobody can wake, is told of the GPU hang that it is
_RUNNABLE: Final = methodcaller("runnable")
LINES: Final = 1024  # of the kernel's log, and of what was found, that are kept
WATCHDOG: Final = 100_000_000  # instructions of one wave before a dispatch counts as endless


@dataclass(eq=False)
class Wait:
  """Why a queue is blocked: `met()` says whether it may go on; the rest is for people."""

  packet: str
  where: str
  wanted: str
  seen: Callable[[], int]
  met: Callable[[], bool]

  def __str__(self) -> str:
    return f"{self.packet} waits for {self.where} {self.wanted}, found {self.seen():#x}"


@dataclass(frozen=True)
class Standing:
  """Where a queue stands, for who goes through its packets one by one. `address` is that of the packet that it executes
  next, goes on with, or waits at or stopped at; `why` says what it waits for, or why it stopped."""

  name: str
  gpu: int
  ring: int
  address: int | None
  state: str
  why: str
  runnable: bool
  failed: bool
  busy: bool


class Runs(Protocol):
  """A queue or channel, as the scheduler sees it."""

  name: str

  def runnable(self) -> bool: ...
  def run(self, packets: int) -> None: ...
  @property
  def busy(self) -> bool: ...
  def queued_by(self) -> int | None: ...
  def standing(self) -> Idle | None: ...
  def explain(self, fault: MachineFault) -> None: ...
  def stands(self) -> Standing: ...
  def single(self) -> None: ...
  def movable(self) -> bool: ...
  def fail(self, error: Error) -> None: ...
  def describe(self) -> str: ...
  def snapshot(self) -> dict[str, Any]: ...
  def doing(self) -> str: ...


@dataclass(eq=False)
class Late:
  """A signal that is on its way: `of` has sent it, and goes on meanwhile. Those of one sender come in order."""

  name: str
  of: Any  # a runner
  do: Callable[[], None]

  def run(self, packets: int) -> None: self.do()


class _Thread:
  """A thread that has used a machine: this is there for as long as the thread lives, one of Python's or of C's."""


class Running:
  """See the module. `seed` decides the order in which queues take turns. `tracing` records every packet; errors are
  recorded always. An `observer` sees all that threads do. `agreed` is what threads of the client want of their own
  dispatches.

  Threads may share it. `lock` guards all of it; a thread that waits runs the queues of all, and lets others in between
  two turns.
  """

  runners: MutableSequence[Any]  # of Runs: the queues or channels that take turns, one list for good

  def __init__(self, *, seed: int, tracing: bool, clock: Clock | None, watchdog: int, engine: str,
               observer: Observer | None, agreed: Agreed | None, draws: Draws | None = None,
               injected: Injected | None = None) -> None:
    self.clock = clock if clock is not None else Clock(step_ns=10)
    self.trace = Trace(self.clock, enabled=tracing)
    self.rng = random.Random(seed)
    self.seed, self.watchdog, self.engine, self.observer = seed, watchdog, engine, observer
    self.agreed: Agreed = {} if agreed is None else agreed
    self.stops = self.failures = 0  # dispatches that were taken off, queues that failed
    self.ignored = Ignored()
    self.kernel_log: deque[str] = deque(maxlen=LINES)  # a ring, as the kernel's own
    self._logged = 0
    self.findings: list[str] = []  # the latest ones
    self._dropped = 0
    self.packet_ns = PACKET_NS
    self.executed = 0  # instructions, each counted once for every wave that executed it
    self.lock = FairLock()
    self.changed = threading.Condition(cast(Any, self.lock))
    self.lone = False  # whether the queue that runs is the only one that can
    self.waiting = 0
    self.inside = 0  # threads that run the queues, or wait to
    self.runs = 0  # how often somebody has begun to
    self.turns = 0  # of queues, and late signals
    self.forked = False  # in a child of the process whose machine it is: nothing runs, and nobody comes in
    self.runners = []
    self.injected = injected if injected is not None else Injected()
    self.watched = injected is not None  # whether turns and calls are counted, of which one may be a fault
    self.draws = draws  # of a schedule, in the place of the seed's
    self.late: list[Late] = []  # what only draws have
    self.signals: Counter[str] = Counter()  # that were late, of each sender
    self.chosen: Any = None  # who has the next turn, where that was drawn
    if draws is not None: draws.explain = self._doing
    _MACHINES.add(self)
    self._threads: WeakSet[_Thread] = WeakSet()
    self._noted = threading.local()  # who was: its attributes are each thread's own

  def _before_waiting(self) -> None:
    """A client begins to wait."""

  # ---- clients

  def note_thread(self) -> None:
    """Remember that this thread uses the machine."""
    if not hasattr(self._noted, "me"):
      self._noted.me = _Thread()
      self._threads.add(self._noted.me)

  def other_threads(self) -> bool:
    """Whether another living thread of the client has used the machine: it could still wake what waits."""
    return len(self._threads) > hasattr(self._noted, "me")

  # ---- the record

  def trace_fast(self, source: str, kind: str, value: int) -> None:
    """Record a frequent event, only when tracing is on."""
    if self.trace.enabled:
      self.trace.add(source, kind, hex(value))

  def doubt(self, text: str) -> None:
    """Note something that works here and need not work on a chip. Each is kept once."""
    if text not in self.findings:
      self.found(text)
      self.trace.add("machine", "doubt", text)

  def found(self, text: str) -> None:
    """Note what the run's report tells."""
    self.findings.append(text)
    if len(self.findings) > LINES + LINES // 4:
      self._dropped += len(self.findings) - LINES
      del self.findings[:-LINES]

  def noted(self) -> list[str]:
    """What was accepted without modelling it, and what was found; a line each."""
    older = [f"{self._dropped} older findings are left out"] if self._dropped else []
    return self.ignored.lines() + older + self.findings

  def logged(self, text: str) -> None:
    """A line of the kernel's log, as /dev/kmsg shows it."""
    self.kernel_log.append(f"4,{self._logged},{self.clock.now_ns() // 1000},-;{text}\n")
    self._logged += 1

  @staticmethod
  def diff(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """One line for each value in which two snapshots differ: `GPU0.PM4.0 read: 0x0 -> 0x16`."""

    def show(value: object) -> str:
      return hex(value) if isinstance(value, int) else str(value)

    lines = [f"clock: {before['clock']} -> {after['clock']} ns"] if before["clock"] != after["clock"] else []
    old, new = before["queues"], after["queues"]
    for name in sorted(old.keys() | new.keys()):
      if name not in old or name not in new:
        lines.append(f"{name}: {'made' if name in new else 'destroyed'}")
        continue
      keys = [k for k in {**old[name], **new[name]} if old[name].get(k) != new[name].get(k)]
      lines += [f"{name} {k}: {show(old[name].get(k))} -> {show(new[name].get(k))}" for k in keys]
    return lines

  # ---- the run

  def run(self, done: Callable[[], bool], timeout_s: float | None, others: Callable[[], bool] = lambda: False,
          most: int | None = None) -> bool:
    """Let queues proceed until `done()`. False when nothing can proceed any more.

    Who only asks is answered after `most` turns: what runs may wait for what the client does next.
    `others()` says whether another client thread could still change something: then the wait lasts until `timeout_s`
    of real time. What a signal's handler raises (KeyboardInterrupt) ends the wait between two packets, and the dispatch
    that runs, if it is of the thread that hears of it.
    """
    if not hasattr(self._noted, "me"):
      self.note_thread()
    with self.lock, HELD:
      if done():
        return True
      self.inside += 1
      self.runs += 1
      try:
        return self._run(done, timeout_s, others, most)
      finally:
        self.inside -= 1

  def _run(self, done: Callable[[], bool], timeout_s: float | None, others: Callable[[], bool],
           most: int | None) -> bool:
    """`run`, with the lock held."""
    self._before_waiting()
    draws = self.draws
    if draws is not None:
      draws.host()
      done = self._looked_at(done, draws)
    deadline: float | None = None
    stops, turned, failures, turns = self.stops, False, self.failures, 0
    while True:
      while (HELD.raised is None or not self._leaves(stops, turned)) and self._turn():
        turned = True
        if done():
          return True
        turns += 1
        if turns == most:
          return False
        if self.lock.wanted:
          self.lock.give_way()
          if done():
            return True
      if done() or HELD.ends() or self.failures != failures:
        return done()
      if not others():
        if timeout_s is None or timeout_s >= HANG_S:
          self._hang()
        return done()
      now = time.monotonic()
      if timeout_s is not None:
        if deadline is None:
          deadline = now + timeout_s
        if now >= deadline:
          return False
      self.waiting += 1
      try:
        self.changed.wait(min(0.005, (deadline or now + 1) - now))
      finally:
        self.waiting -= 1

  def _leaves(self, stops: int, turned: bool) -> bool:
    """Whether a signal ends the wait of this thread now: not before its own dispatch that runs has been stopped."""
    if not HELD.ends():
      return False
    me = threading.get_ident()
    return self.stops != stops or turned and not any(q.busy and q.queued_by() == me for q in self.runners)

  def _turn(self) -> bool:
    """One queue runs for a while. False when no queue can."""
    ready = list(filter(_RUNNABLE, self.runners))
    if self.draws is not None:
      return self._drawn_turn(ready, self.draws)
    self.turns += 1
    self.lone = len(ready) == 1
    if self.watched and ready:
      chosen = self.rng.choice(ready)
      if not self._struck(chosen): chosen.run(1)
    elif self.lone:
      ready[0].run(QUANTA[self.rng.getrandbits(3)])
    elif ready:
      self.rng.choice(ready).run(SHORT[self.rng.getrandbits(3)])
    return bool(ready)

  # ---- the run by a schedule

  def _looked_at(self, done: Callable[[], bool], draws: Draws) -> Callable[[], bool]:
    """The host's look, which comes when it is its turn: what it waits for may be over again by then."""
    def looks() -> bool:
      if not done(): return False
      ready = [*filter(_RUNNABLE, self.runners), *self._arriving()]
      at = draws.who([HOST, *(r.name for r in ready)])
      if at: self.chosen = ready[at - 1]
      return at == 0
    return looks

  def _arriving(self) -> list[Late]:
    """The first late signal of each sender."""
    return list({id(late.of): late for late in reversed(self.late)}.values())[::-1]

  def _drawn_turn(self, ready: list[Any], draws: Draws) -> bool:
    """One packet of one queue, or a late signal. False when there is none."""
    chosen, self.chosen = self.chosen, None
    self.turns += 1
    ready += self._arriving()
    if not ready: return False
    if chosen not in ready: chosen = ready[draws.who([r.name for r in ready])]
    self.lone = False
    if isinstance(chosen, Late): self.late.remove(chosen)
    if not self.watched or isinstance(chosen, Late) or not self._struck(chosen): chosen.run(1)
    return True

  def rung(self) -> None:
    """The host has rung a doorbell: by a schedule, queues may go on before it does. The lock is held."""
    draws = self.draws
    if draws is None or self.inside: return
    draws.host()
    self.runs += 1
    while ready := list(filter(_RUNNABLE, self.runners)):
      at = draws.who([HOST, *(r.name for r in [*ready, *self._arriving()])], lags=True)
      if at == 0: return
      self.chosen = [*ready, *self._arriving()][at - 1]
      self._drawn_turn(ready, draws)

  def signal(self, sender: Any, do: Callable[[], None]) -> None:
    """Have a signal seen: now, or by a schedule when it has arrived, behind those that its sender sent before."""
    draws = self.draws
    if draws is None or not (any(s.of is sender for s in self.late) or draws.number(sender.name, LATE, 2)):
      return do()
    self._later(sender, do)

  def _later(self, sender: Any, do: Callable[[], None]) -> None:
    self.signals[sender.name] += 1
    self.late.append(Late(f"{sender.name}'s signal {self.signals[sender.name]}", sender, do))

  def behind(self, sender: Any, do: Callable[[], None]) -> None:
    """Do something behind the signals that a sender has sent."""
    if any(late.of is sender for late in self.late): self._later(sender, do)
    else: do()

  def settle(self, sender: Any) -> None:
    """What a sender has sent arrives."""
    self.runs += 1
    while (late := next((s for s in self.late if s.of is sender), None)) is not None:
      self.late.remove(late)
      late.do()

  def _doing(self, name: str) -> str:
    """What somebody does or has done last, for people."""
    found = next((r.doing() for r in self.runners if r.name == name), "")
    text = found if len(found) <= TEXT else f"{found[:TEXT]} ..."
    return f"{name} ({text})" if text else name

  def _struck(self, runner: Any) -> bool:
    """Whether a fault that is declared comes in the place of a turn."""
    fault = self.injected.turn(runner.name)
    if fault is not None: self.strike(runner, fault)
    return fault is not None

  def strike(self, runner: Any, fault: Fault) -> None:
    """Have a fault happen. Raises Unsupported on a machine that has none."""
    raise Unsupported("declared faults of", type(self).__name__, where=fault.kind)

  # ---- packet by packet

  def standings(self) -> list[Standing]:
    """Where each queue stands."""
    with self.lock:
      return [q.stands() for q in self.runners]

  def stood(self) -> list[tuple[str, str, list[MachineFault]]]:
    """Of each queue whose waves all wait for memory: its name, what it does, and where they stand (`Idle.stands`), with
    the lines of source as far as the mock knows them."""
    found = []
    with self.lock:
      for runner in self.runners:
        if (idle := runner.standing()) is None: continue
        places = list(idle.stands())
        for fault in places: runner.explain(fault)
        found.append((runner.name, runner.doing(), places))
    return found

  def values_of(self, name: str) -> dict[str, int | str]:
    """What a queue's engine holds for its next packets, by the vendor's names; empty where nothing is held."""
    with self.lock:
      return next((dict(q.values()) for q in self.runners if q.name == name), {})

  def draw(self) -> str | None:
    """The queue whose packet is next, as the seed says; None when no queue can proceed."""
    with self.lock:
      ready = list(filter(_RUNNABLE, self.runners))
      if not ready:
        return None
      chosen = ready[0] if len(ready) == 1 else self.rng.choice(ready)
      return str(chosen.name)

  def single(self, name: str, stop: Callable[[], bool] = lambda: False) -> bool:
    """A queue executes one packet, with all that it begins. False when `stop()` said so before it was over."""
    self.note_thread()
    with self.lock, HELD:
      self._before_waiting()
      self.runs += 1
      queue = next((q for q in self.runners if q.name == name), None)
      if queue is None or not queue.runnable():
        return True
      self.lone = False  # what runs alone may run several at once
      queue.single()
      while queue.movable():
        if stop() or HELD.ends():
          return False
        queue.single()
      return True

  def still(self) -> int:
    """A number that stays as it is as long as no queue has gone on; -1 while some may."""
    return -1 if self.inside else self.runs

  def _hang(self) -> None:
    """Nobody can proceed, and a client would wait for long: dispatches whose waves wait hang the GPU."""
    for queue in self.runners:
      if (idle := queue.standing()) is not None:
        queue.fail(idle.error())

  def idle(self) -> bool:
    """Whether no queue can proceed."""
    return not self.late and not any(q.runnable() for q in self.runners)

  def left_behind(self) -> None:
    """In a forked child: the machine is the parent's, with all that runs there, threads amid it among them."""
    self.forked = True
    self.runners.clear()
    self.late.clear()


_MACHINES: Final[WeakSet[Running]] = WeakSet()


def _in_child() -> None:
  for machine in list(_MACHINES): machine.left_behind()


os.register_at_fork(after_in_child=_in_child)
