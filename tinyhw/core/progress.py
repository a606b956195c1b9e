"""How far an emulated dispatch is: emulators tell of it as workgroups begin and end, who listens hears it.

Nobody listens but a terminal that shows it; then telling is one look at an empty tuple.
"""
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Listener(Protocol):
  """Who hears of all dispatches of the process."""

  def hear(self, kernel: str, done: int, total: int) -> None:
    """Of a kernel's workgroups `done` have ended, of `total`; it is called "" where the emulator knows no name."""

  def over(self, kernel: str) -> None:
    """A kernel's launch has ended, or was ended; what it printed comes next."""


_listeners: tuple[Listener, ...] = ()


def tell(kernel: str, done: int, total: int) -> None:
  """Of a dispatch's workgroups so many have ended."""
  for listener in _listeners: listener.hear(kernel, done, total)


def over(kernel: str) -> None:
  """A launch has ended."""
  for listener in _listeners: listener.over(kernel)


def listen(listener: Listener) -> None:
  """From now on the listener hears of every dispatch of the process, and of none of its forked children."""
  global _listeners
  _listeners = (*_listeners, listener)


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
  """In the block the listener hears of every dispatch of the process."""
  listen(listener)
  try: yield
  finally: _only(x for x in _listeners if x is not listener)


def _only(listeners: Iterable[Listener] = ()) -> None:
  global _listeners
  _listeners = tuple(listeners)


os.register_at_fork(after_in_child=_only)
