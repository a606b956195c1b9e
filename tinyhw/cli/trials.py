"""Fresh mock machines for trials of captures, what stopped on them, and a user's script in their place.

The composition of `queues.shrink` with mocks; a reproducer that `tinyhw bisect` wrote comes in here, too.
"""
from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tinyhw.core.errors import Deadlock, InvalidArgument, WatchdogExpired
from tinyhw.core.port import Port
from tinyhw.queues.capture import Capture
from tinyhw.queues.draft import saved
from tinyhw.queues.replay import Look
from tinyhw.queues.reproduce import Stream
from tinyhw.queues.shown import Differs, Ends, Place, Shown, Signature, Stop, Trial, predicate
from tinyhw.toolbox.replay import cards_of, machine_for

SKIPPED: Final = 125  # a script's status for "cannot be told", as for `git bisect run`; above it wants an end, or the
# shell cannot run it (126, 127)
WATCHDOG: Final = 2_000_000  # instructions of a wave that every trial may run
_ENDLESS: Final = frozenset({WatchdogExpired.__name__, Deadlock.__name__})


class Mocks:
  """See `shown.Machine`."""

  def __init__(self, ports: Mapping[str, Port], look: Mapping[str, Look], machines: list[Any]) -> None:
    self.ports, self.look, self._machines = ports, look, machines

  def failed(self) -> bool: return any(machine.failures for machine in self._machines)

  def stops(self) -> list[Stop]:
    found = []
    for machine in self._machines:
      for event in machine.trace.where(lambda e: e.kind == "fault"):
        error, _, text = event.name.partition(": ")
        given = event.fields
        found.append(Stop(event.source, text.partition("\n")[0], error, given.get("address"),
                          str(given.get("instruction", "")), error in _ENDLESS))
      found += [Stop(q.name, str(q.wait), blocked=True) for q in machine.runners if q.wait is not None]
    return found


class MockBench:
  """See `shown.Bench`: machines of these mock cards, or of those that the capture names.

  `watchdog` bounds a wave of later trials (`bound`): what has lost the end of its loop must not run for long.
  """

  def __init__(self, capture: Capture, mockgpu: str | None) -> None:
    self._mockgpu, self._options, self.executed = mockgpu, dict[str, Any](), 0
    if not cards_of(capture, mockgpu):
      raise InvalidArgument("was recorded on a card, and trials run on mock cards", where=str(capture.reader.path),
                            hint="name the mock cards: --mockgpu gfx1100")

  @contextmanager
  def __call__(self, capture: Capture) -> Iterator[Mocks]:
    ports, look, machines = machine_for(capture, self._mockgpu, **self._options)
    try: yield Mocks(ports, look, machines)
    finally:
      self.executed = max(self.executed, *(machine.executed for machine in machines), 0)
      for port in ports.values(): port.end()
      for machine in machines: machine.close()

  def bound(self, endless: bool) -> None:
    """Bound later trials by what has run by now; `endless` where that did not end by itself."""
    self._options["watchdog"] = WATCHDOG if endless else max(WATCHDOG, 4 * self.executed)


class Script:
  """A command of the user's that gets a capture's path: status 0 says that it still shows what it looks for."""
  name = "script"
  places: tuple[Place, ...] = ()

  def __init__(self, command: str) -> None: self.command = command

  def shown(self, trial: Trial, wanted: Signature | None = None) -> Shown | None:
    with tempfile.TemporaryDirectory() as folder:
      path = Path(folder) / "candidate.thq"
      saved(trial.capture, path)
      done = subprocess.run(["/bin/sh", "-c", f'{self.command} "$1"', "sh", str(path)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, check=False)
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    if status > SKIPPED:
      raise Ends(f"{self.command!r} ended with status {status}")
    return Shown(self.name, ("script",), f"{self.command} says so") if status == 0 else None


def reproduce(stream: Stream, until: str, signature: Signature | None) -> None:
  """Run what a reproducer holds and tell what it shows; status 1 where that is not what it was made for."""
  capture = stream.capture()
  fresh = MockBench(capture, None)
  if signature is None:  # a script of somebody's found it: what stops is told
    stops = Trial(capture, fresh).outcome.stops
    print("\n".join(f"{s.queue}: {s.text}" for s in stops) or "no queue stops")
    return
  wanted = predicate(until, capture.head.get("vendor", ""))
  assert not isinstance(wanted, Differs)
  shown = wanted.shown(Trial(capture, fresh, wanted.places), signature)
  if shown is None:
    print(f"does not show it any more: {until}", file=sys.stderr)
    sys.exit(1)
  print(f"{shown.kind}: {shown.text}")
