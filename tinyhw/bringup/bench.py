"""What the benches of both vendors have: the time that is left, waits that end, other processes, what was submitted."""
from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from tinyhw.bringup.rung import Absent, Broken, RungEnd
from tinyhw.core.errors import Error
from tinyhw.core.port import Port

SHOWN: Final = 24  # packets of a broken rung that are kept, the last ones
KILLED_S: Final = 2.0  # until a child that was told to end, or was killed, is gone
LARGEST: Final = 64 << 20  # bytes of the largest copy where nobody asks for more


class Other(Protocol):
  """A bench in another process. `call` runs a function over it there and returns what that returns (plain values)."""
  def call(self, function: Callable[..., Any], *arguments: Any) -> Any: ...
  def end(self) -> None:
    """End the process, if it has not ended."""


Beside = Callable[[], Other]
"""Makes another process with a bench of the same card."""


class TimedBench:
  """Base of the benches: see the module. `largest` bounds the bytes of copies."""

  def __init__(self, port: Port, index: int, largest: int, beside: Beside | None) -> None:
    self.port, self.index, self.largest = port, index, largest
    self._beside = beside
    self._until = time.monotonic() + 5.0
    self._others: list[Other] = []

  def begin(self, seconds: float) -> None:
    """A rung begins that may take so long."""
    self._until = time.monotonic() + seconds

  @property
  def left(self) -> float:
    """Seconds that the rung has."""
    return max(0.01, self._until - time.monotonic())

  def close(self) -> None:
    """Let go of the device."""
    self.end_others()

  def wait(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
    """Let the device go on until `done()`, for as long as the rung may take, or `seconds`."""
    return self.port.wait(done, self.left if seconds is None else min(seconds, self.left))

  def wait_a_little(self, seconds: float) -> None:
    """Let time go by."""
    time.sleep(seconds)

  def beside(self) -> Other:
    """Another process with a bench of this card, for as long as the bench lives. Raises Absent without one."""
    if self._beside is None: raise Absent("no other process can be started here")
    other = self._beside()
    self._others.append(other)
    return other

  def end_others(self) -> None:
    """End the other processes."""
    for other in self._others: other.end()
    self._others.clear()


def check(good: bool, found: str, wanted: str, look_at: str) -> None:
  """Raises Broken unless it is good."""
  if not good: raise Broken(found, wanted, look_at)


def same(found: int, wanted: int, what: str, look_at: str) -> None:
  """Raises Broken unless two numbers are the same."""
  if found != wanted: raise Broken(f"{what} is {found:#x}", f"{wanted:#x}", look_at)


def first_wrong(found: Sequence[int], wanted: Sequence[int], what: str, look_at: str) -> None:
  """Raises Broken with the first place where two rows of numbers differ, and how many there are."""
  wrong = [i for i, (a, b) in enumerate(zip(found, wanted, strict=True)) if a != b]
  if not wrong: return
  at = wrong[0]
  raise Broken(f"{what}: {len(wrong)} of {len(wanted)} are wrong, the first is number {at}: {found[at]:#x}",
               f"{wanted[at]:#x}", look_at)


def end_child(child: int, seconds: float = 0.0) -> None:
  """Wait for a child process, and kill it when it has not ended by then. One that hangs inside the kernel stays behind.
  """
  until, killed = time.monotonic() + seconds, False
  while os.waitpid(child, os.WNOHANG)[0] == 0:
    if time.monotonic() > until:
      if killed: return
      os.kill(child, signal.SIGKILL)
      until, killed = time.monotonic() + KILLED_S, True
    time.sleep(0.005)


def forked(make: Callable[[], Any]) -> Other:
  """A bench in a child process of its own, which is served over a pair of pipes."""
  return _Forked(make)


class _Forked:
  """See `forked`. Functions are told by name: both processes have the same code."""

  def __init__(self, make: Callable[[], Any]) -> None:
    import multiprocessing  # loads much, for one rung
    mine, theirs = multiprocessing.Pipe()
    self._pipe, self._child = mine, os.fork()
    if self._child == 0:
      mine.close()
      try: _serve(theirs, make)
      finally: os._exit(0)
    theirs.close()

  def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
      self._pipe.send((function, arguments))
      good, value = self._pipe.recv()
    except (EOFError, ConnectionError):
      raise Broken("another process of the device ended", "an answer", "the kernel's log") from None
    if not good: raise value
    return value

  def end(self) -> None:
    if self._pipe.closed: return
    try: self._pipe.send(None)  # said, for others that were forked meanwhile have this pipe open too
    except ConnectionError: pass  # it has ended by itself
    self._pipe.close()
    end_child(self._child, KILLED_S)


def _serve(pipe: Any, make: Callable[[], Any]) -> None:
  """The child: what it is asked for, until the pipe is closed."""
  bench = make()
  while True:
    try: asked = pipe.recv()
    except EOFError: break
    if asked is None: break
    function, arguments = asked
    bench.begin(5.0)
    try: pipe.send((True, function(bench, *arguments)))
    except (Error, RungEnd, OSError) as error: pipe.send((False, error))
  bench.close()
