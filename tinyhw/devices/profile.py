"""`PROFILE=1`: a trace of what a run did, in the form that Perfetto and chrome://tracing open.

One track of the host has schedules, compilations and copies, one for each device its kernels and copies between devices
as the host saw them, and one for each hardware queue with timestamps of its own the same kernels by the device's clock.
Tracks say whose clock it is: the host's, a card's, or a mock's, which says nothing of a card.
While a profile is taken each kernel is waited for, so that its time is its own. The file is written when the process
ends, or by `write`.
"""
from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tinyhw.core.ending import Step, at_end
from tinyhw.core.environment import variable
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.locks import lock
from tinyhw.core.trace import Whose
from tinyhw.core.written import save

LIMIT: Final = 1_000_000  # events; later ones are counted and left out
Interval = tuple[float, float]
"""Seconds of a clock."""


@dataclass(frozen=True, slots=True)
class ProfileEvent:
  """Something that took time on a track. `clock` says whose: the host's, or a device's."""
  track: str
  name: str
  kind: str
  start: float
  stop: float
  clock: str = ""
  facts: dict[str, Any] = field(default_factory=dict)


class Profile:
  """The events of this process. Threads may add to it."""

  def __init__(self) -> None:
    self._lock = lock()
    self._events: list[ProfileEvent] = []
    self._offsets: dict[str, float] = {}  # host's time less a device's, as small as was seen
    self.dropped = 0
    self._registered = 0  # the process that writes it at its end

  def add(self, event: ProfileEvent) -> None:
    """Keep an event."""
    with self._lock:
      if self._registered != os.getpid():  # not what a forked child's parent did
        self._registered = os.getpid()
        self._events.clear()
        at_end(Step.REPORTS, self._at_exit)
      if len(self._events) < LIMIT: self._events.append(event)
      else: self.dropped += 1

  def kernel(self, device: str, name: str, host: Interval, own: Interval | None, facts: dict[str, Any],
             clock: Whose = Whose.CARD) -> None:
    """Keep a launch: as the host saw it, and by the clock of the device where that has one (`clock` says whose)."""
    self.add(ProfileEvent(f"{device} ({Whose.HOST.value})", name, "kernel", *host, facts=facts))
    if own is None: return
    with self._lock:
      self._offsets[device] = min(self._offsets.get(device, float("inf")), host[1] - own[1])
    self.add(ProfileEvent(f"{device} compute queue ({clock.value})", name, "kernel", *own, clock=device, facts=facts))

  def trace(self) -> dict[str, Any]:
    """All events as Chrome's trace format has them: microseconds, processes and threads by number."""
    with self._lock: events, offsets = list(self._events), dict(self._offsets)
    tracks = {name: k for k, name in enumerate(dict.fromkeys(e.track for e in events))}
    rows: list[dict[str, Any]] = [
      {"ph": "M", "pid": 1, "tid": k, "name": "thread_name", "args": {"name": name}} for name, k in tracks.items()]
    rows.append({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "tinyhw"}})
    for e in sorted(events, key=lambda e: e.start + offsets.get(e.clock, 0.0)):
      start = e.start + offsets.get(e.clock, 0.0)
      facts = e.facts | ({"device start (s)": e.start} if e.clock else {})
      rows.append({"ph": "X", "pid": 1, "tid": tracks[e.track], "cat": e.kind, "name": e.name, "ts": start * 1e6,
                   "dur": (e.stop - e.start) * 1e6, "args": facts})
    return {"traceEvents": rows, "displayTimeUnit": "ns", "otherData": {"dropped events": self.dropped}}

  def write(self, path: Path) -> None:
    """Write the trace."""
    save(path, json.dumps(self.trace(), separators=(",", ":")))

  def clear(self) -> None:
    """Forget all events."""
    with self._lock:
      self._events.clear()
      self._offsets.clear()
      self.dropped = 0

  def _at_exit(self) -> None:
    wanted = wants()
    if not self._events or not wanted: return
    path = Path(f"tinyhw-profile-{os.getpid()}.json" if wanted == "1" else wanted)
    try: self.write(path)
    except InvalidArgument as error: print(f"tinyhw: PROFILE: {error}", file=sys.stderr)
    else: print(f"tinyhw: PROFILE: {path}: open it at https://ui.perfetto.dev", file=sys.stderr)


PROFILE: Final = Profile()


def wants() -> str:
  """The variable `PROFILE`: "" or a file's name, or "1"."""
  text = variable("PROFILE", b"PROFILE")
  return "" if text == "0" else text


_NOTHING: Final = nullcontext()


def span(kind: str, name: str, **facts: Any) -> AbstractContextManager[None]:
  """What the host does in the block, where a profile is taken."""
  return _span(kind, name, facts) if wants() else _NOTHING


@contextmanager
def _span(kind: str, name: str, facts: dict[str, Any]) -> Iterator[None]:
  start = time.perf_counter()
  try: yield
  finally: PROFILE.add(ProfileEvent(f"host thread {threading.get_native_id()}", name, kind, start, time.perf_counter(),
                                    facts=facts))
