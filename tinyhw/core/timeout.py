"""What ends an emulated dispatch from outside: the host's time, and what signal handlers raise (Ctrl-C).

Ctrl-C takes the kernel that runs off the mock. Only what it was to compute is lost, which a buffer
knows by its timeline value.
"""
from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from threading import get_ident
from types import FrameType
from typing import Any, Final

from tinyhw.core.errors import Interrupted

Handler = Callable[[int, FrameType | None], Any]
_SIGNALS: Final = (int(signal.SIGINT), int(signal.SIGALRM), int(signal.SIGTERM))
_PLACES: Final = tuple(enumerate(_SIGNALS))
_C: Final[Any] = import_module("_signal")  # what `signal` wraps, without the enumerations that it looks handlers up in
_getsignal = _C.getsignal


_main = threading.main_thread().ident


def _find_main() -> None:
  """After a fork the thread that forked is the main one."""
  global _main
  _main = threading.main_thread().ident


os.register_at_fork(after_in_child=_find_main)


def in_main_thread() -> bool:
  """Whether the calling thread is the one that runs signals' handlers."""
  return get_ident() == _main


class Deadline:
  """Called now and then while a dispatch runs: raises Interrupted when `seconds` since its making are over."""

  def __init__(self, seconds: float) -> None:
    self.seconds = seconds
    self._end = time.monotonic() + seconds

  def __call__(self) -> None:
    if time.monotonic() >= self._end: raise Interrupted(f"ran for more than {self.seconds:.3g} s")


class Stopped(Interrupted):
  """A dispatch was ended by a signal."""


class Held:
  """`with HELD:` keeps what handlers of signals raise in the main thread (KeyboardInterrupt, time-outs of test runners)
  until a block ends, so that no state is left half changed. Handlers run at once. In other threads, to which Python
  brings no signals, it does nothing. Blocks may be nested: the innermost raises.

  `raised` is what waits. Called, it raises Stopped then, in any thread: so a dispatch ends where it can. There is one
  for the process, as there is one set of handlers.

  Between `keep` and `release` no inner block raises. Handlers of a program's own wait there until it can be called
  again (`release`), or a dispatch asks whether it is to end: they may call what runs just now.
  """

  def __init__(self) -> None:
    self.raised: BaseException | None = None
    self._depth = self._keeping = 0
    self._waiting: deque[tuple[Handler, int, FrameType | None]] = deque()
    self._before: list[tuple[int, Handler, Handler]] = []  # signals that are held: their handlers, and those as held
    self._found: list[Any] = [None] * len(_SIGNALS)  # the handlers of last time
    self._ours: list[tuple[int, Handler, Handler]] = []  # what is held of them

  def __call__(self) -> None:
    if self._waiting and in_main_thread(): self._serve()
    if self.raised is not None: raise Stopped(f"stopped by {type(self.raised).__name__}")

  def ends(self) -> bool:
    """Whether the calling thread is to leave the block."""
    if self._waiting and in_main_thread(): self._serve()
    return self.raised is not None and in_main_thread()

  def _holding(self, handler: Handler) -> Handler:
    def hold(number: int, frame: FrameType | None) -> None:
      self._waiting.append((handler, number, frame))
      if not self._keeping or handler is signal.default_int_handler: self._serve()
    return hold

  def _serve(self) -> None:
    """Run the handlers that wait."""
    while self._waiting:
      handler, number, frame = self._waiting.popleft()
      try: handler(number, frame)
      except BaseException as error:
        if self.raised is None: self.raised = error

  def keep(self) -> None:
    """A block begins, in the main thread, out of which nothing is raised, nor out of those within it."""
    self.__enter__()
    self._keeping += 1

  def release(self) -> None:
    """It ends. Raises what handlers have raised, unless another block is around it."""
    self._keeping -= 1
    if self._depth > 1:
      self._depth -= 1
      return
    if self._waiting: self._serve()
    self.__exit__()

  def __enter__(self) -> Held:
    if get_ident() != _main: return self
    self._depth += 1  # who comes amid this, a handler that is not held yet, has a block around it
    if self._depth == 1:
      before = self._before
      try:
        if before: self._restore()  # what an exception in `__exit__` has left
        found = self._found
        for at, number in _PLACES:
          if _getsignal(number) is not found[at]:
            self._look()
            break
        for known in self._ours:
          before.append(known)
          _C.signal(known[0], known[2])
      except BaseException:  # of a handler that was not held yet
        self._depth -= 1
        self._restore()
        raise
    return self

  def _look(self) -> None:
    """Find what there is to hold: handlers that Python runs."""
    found = [_getsignal(number) for number in _SIGNALS]
    ours = {known[0]: known for known in self._ours}
    self._ours = [ours[number] if number in ours and ours[number][1] is handler
                  else (number, handler, self._holding(handler))
                  for number, handler in zip(_SIGNALS, found, strict=True) if callable(handler)]
    self._found = found

  def _restore(self) -> None:
    before = self._before
    while rest := before[-1:]:  # a handler that runs amid this, as soon as it is back, may have all restored by a block
      number, handler, ours = rest[0]
      if _getsignal(number) is ours: _C.signal(number, handler)  # a handler may have set another
      try: before.remove(rest[0])
      except ValueError: pass  # that block has done so

  def __exit__(self, *_: object) -> None:
    if get_ident() != _main: return
    self._depth -= 1
    if not self._depth: self._restore()
    raised = self.raised
    if raised is not None and not self._keeping:
      self.raised = None
      raise raised from None


HELD: Final = Held()
_LOOK_S: Final = 1e-3


def again() -> None:
  """Ctrl-C came inside the finalizer that calls this, where Python loses what is raised: it comes once more when the
  main thread has left it."""
  code, main = sys._getframe(1).f_code, threading.main_thread().ident

  def inside() -> bool:
    frame = sys._current_frames().get(main or 0)
    while frame is not None and frame.f_code is not code: frame = frame.f_back
    return frame is not None

  def later() -> None:
    time.sleep(_LOOK_S)
    while inside(): time.sleep(_LOOK_S)
    _thread.interrupt_main()
  _thread.start_new_thread(later, ())


@dataclass
class Terms:
  """How a thread wants its dispatches run on emulated devices, and what it was told of them.

  `observer` sees all that they do, `seconds` of the host's time is how long one may take. `outside` is what they
  touched of LDS that they do not have, by PC, `interrupted` the last one that took longer.
  """
  observer: Any = None
  seconds: float | None = None
  outside: dict[int, Any] = field(default_factory=dict)
  interrupted: Interrupted | None = None


Agreed = dict[int, Terms]  # by thread


def ticker(terms: Terms | None, signals: bool = True, seconds: float | None = None) -> Callable[[], None]:
  """What ends a dispatch from outside: the end of patience, or, with `signals`, what a signal's handler raises.

  A dispatch that is over at its second look is never ended by a signal.
  """
  limit = seconds if terms is None or terms.seconds is None else terms.seconds
  deadline, looks = None if limit is None else Deadline(limit), 0

  def tick() -> None:
    nonlocal looks
    looks += 1
    if deadline is not None: deadline()
    if signals and looks > 2: HELD()
  return tick


@contextmanager
def within(limits: dict[int, float], seconds: float) -> Iterator[None]:
  """In the block the calling thread has this limit, in seconds, among those of threads."""
  me = get_ident()
  before = limits.get(me)
  limits[me] = seconds
  try: yield
  finally:
    if before is None: del limits[me]
    else: limits[me] = before
