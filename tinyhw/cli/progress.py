"""A line on the terminal for what takes long: of launches workgroups that have been, of how many, and how many a
second; of a search its stage and its trials."""
from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tinyhw.core.ending import Step, at_end
from tinyhw.core.progress import heard, listen

if TYPE_CHECKING:
  from tinyhw.queues.capture import Capture

AFTER_S: Final = 2.0  # shorter ones show nothing
LOOK_S: Final = 0.25  # how often the line of a program's launches is written anew
# Below the cursor, which stays: make room (IND, CUU), DECSC, CUD, CR, EL, the text, DECRC (ECMA-48, DEC VT510 manual).
_BELOW: Final = "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[2K{}\x1b8"


class Line:
  """What is shown: it begins by itself when a launch has taken `AFTER_S` seconds, and leaves nothing behind."""

  def __init__(self, what: str) -> None:
    self._what, self._lock, self._over = what, threading.Lock(), False
    self._bar: Any = None
    self._task: Any = None
    self._told, self._said, self._of = (0, 0), "", "workgroups"
    self._began = time.monotonic()
    self._timer = threading.Timer(AFTER_S, self._show)
    self._timer.daemon = True
    self._timer.start()

  def hear(self, kernel: str, done: int, total: int) -> None:
    """See `core.progress`."""
    with self._lock:
      self._told = done, total
      if self._bar is not None: self._update()

  def over(self, kernel: str) -> None: pass  # the command's own end takes it off

  def went(self, done: int, total: int) -> None:
    """How far a capture is read."""
    with self._lock:
      self._told, self._of = (done, total), "pieces of the capture"
      if self._bar is not None: self._update()

  def tell(self, stage: str, left: int, done: int) -> None:
    """What is done, how much of it is left, and how much has been: of work that nobody knows the end of."""
    with self._lock:
      self._said = f"{stage}: {left:,} left, {done:,} trials"
      if self._bar is not None: self._update()

  def end(self) -> None:
    """Take it off the terminal."""
    self._timer.cancel()
    with self._lock:
      self._over = True
      if self._bar is not None: self._bar.stop()

  def _show(self) -> None:
    from rich.console import Console  # loads with the first launch that takes long
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    with self._lock:
      if self._over: return
      self._bar = Progress(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"),
                           TimeElapsedColumn(), console=Console(stderr=True), transient=True)
      self._task = self._bar.add_task(self._what, total=None, told="")
      self._bar.start()
      self._update()

  def _update(self) -> None:
    if self._said: self._bar.update(self._task, told=self._said)
    done, total = self._told
    if not total: return
    rate = done / max(time.monotonic() - self._began, 1e-3)
    self._bar.update(self._task, completed=done, total=total,
                     told=f"{done:,} of {total:,} {self._of}, {rate:,.1f} a second")


class Launches:
  """A line of the kernel that a program's GPU runs, where that takes more than `AFTER_S` seconds, on a terminal.

  The terminal is the program's too: the line stands below the cursor, which stays where the program left it, and goes
  when the launch is over, before what the kernel has printed comes. It is written to a file descriptor of its own,
  whatever the program does to its files.
  """

  def __init__(self, terminal: int) -> None:
    self._terminal = terminal
    self._lock, self._shown, self._end = threading.Lock(), False, threading.Event()
    self._running: dict[str, tuple[float, int, int]] = {}  # kernels: since when, workgroups that have ended, of all
    self._watching: threading.Thread | None = None  # begins with the first launch: until then the program may fork

  def hear(self, kernel: str, done: int, total: int) -> None:
    """See `core.progress`."""
    if self._watching is None:
      self._watching = threading.Thread(target=self._watch, name="tinyhw progress", daemon=True)
      self._watching.start()
    known = self._running.get(kernel)
    self._running[kernel] = time.monotonic() if known is None else known[0], done, total

  def over(self, kernel: str) -> None:
    """See `core.progress`."""
    self._running.pop(kernel, None)
    if not self._shown: return
    with self._lock: self._write("")

  def end(self) -> None:
    """Show nothing any more."""
    self._end.set()
    with self._lock: self._write("")

  def _watch(self) -> None:
    while not self._end.wait(LOOK_S):
      with self._lock: self._show()

  def _show(self) -> None:
    now = time.monotonic()
    long = {k: row for k, row in self._running.copy().items() if now - row[0] >= AFTER_S}
    if not long or self._end.is_set(): return
    kernel = min(long, key=lambda k: long[k][0])
    since, done, total = long[kernel]
    minutes, seconds = divmod(int(now - since), 60)
    self._shown = True  # who ends the launch from here on waits for the lock, and takes the line off
    self._write(f"{kernel}: {done:,} of {total:,} blocks, {minutes}:{seconds:02}" if kernel in self._running else "")

  def _write(self, text: str) -> None:
    """Have the line say this; nothing takes it off."""
    if not self._shown: return
    self._shown = bool(text)
    with contextlib.suppress(OSError):  # the terminal is gone
      columns = os.get_terminal_size(self._terminal).columns or 80
      os.write(self._terminal, _BELOW.format(text[:columns - 1]).encode())


@contextmanager
def shown(what: str, quiet: bool) -> Iterator[None]:
  """In the block long launches show how far they are; nothing with `quiet`, or where stderr is no terminal."""
  if quiet or not sys.stderr.isatty():
    yield
    return
  line = Line(what)
  try:
    with heard(line): yield
  finally: line.end()


def launches() -> None:
  """From now on, until the process ends, long launches are shown (`Launches`); nothing where stderr is no terminal, or
  one that cannot move its cursor."""
  if not os.isatty(2) or os.environ.get("TERM", "dumb") == "dumb": return
  line = Launches(os.dup(2))
  listen(line)
  at_end(Step.THREADS, line.end)


@contextmanager
def walked(what: str, *captures: Capture, quiet: bool = False) -> Iterator[None]:
  """In the block it is shown how far captures are read, where that takes long; nothing with `quiet`, or where stderr is
  no terminal."""
  if quiet or not sys.stderr.isatty():
    yield
    return
  line = Line(what)
  for capture in captures: capture.tells(line.went)
  try: yield
  finally: line.end()


@contextmanager
def counted(what: str, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
  """What tells of a search's stages in the block (`Line.tell`); nothing is shown with `quiet`, or where stderr is no
  terminal."""
  if quiet or not sys.stderr.isatty():
    yield lambda stage, left, done: None
    return
  line = Line(what)
  try: yield line.tell
  finally: line.end()
