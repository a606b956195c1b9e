"""How far an emulated dispatch is: emulators tell of each cohort of workgroups that begins, who listens hears it.

Nobody listens but a terminal that shows it; then telling is one look at an empty tuple.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[int, int], None]  # workgroups that have begun before, and all of the dispatch

_listeners: tuple[Listener, ...] = ()


def tell(begun: int, total: int) -> None:
  """More workgroups begin, behind `begun` of `total`."""
  for listener in _listeners: listener(begun, total)


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
  """In the block the listener hears of every dispatch of the process."""
  global _listeners
  _listeners = (*_listeners, listener)
  try: yield
  finally: _listeners = tuple(x for x in _listeners if x is not listener)
