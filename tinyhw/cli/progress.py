"""A line on the terminal for what takes long: of launches workgroups that have been, of how many, and how many a
second; of a search its stage and its trials."""
from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from tinyhw.core.progress import heard

AFTER_S: Final = 2.0  # shorter ones show nothing


class Line:
  """What is shown: it begins by itself when a launch has taken `AFTER_S` seconds, and leaves nothing behind."""

  def __init__(self, what: str) -> None:
    self._what, self._lock, self._over = what, threading.Lock(), False
    self._bar: Any = None
    self._task: Any = None
    self._told, self._said = (0, 0), ""
    self._began = time.monotonic()
    self._timer = threading.Timer(AFTER_S, self._show)
    self._timer.daemon = True
    self._timer.start()

  def hear(self, begun: int, total: int) -> None:
    """See `core.progress`."""
    with self._lock:
      self._told = begun, total
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
    begun, total = self._told
    if not total: return
    rate = begun / max(time.monotonic() - self._began, 1e-3)
    self._bar.update(self._task, completed=begun, total=total,
                     told=f"{begun:,} of {total:,} workgroups, {rate:,.1f} a second")


@contextmanager
def shown(what: str, quiet: bool) -> Iterator[None]:
  """In the block long launches show how far they are; nothing with `quiet`, or where stderr is no terminal."""
  if quiet or not sys.stderr.isatty():
    yield
    return
  line = Line(what)
  try:
    with heard(line.hear): yield
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
