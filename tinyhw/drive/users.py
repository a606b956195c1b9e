"""Who is amid a call of a device that a library serves, so that closing it takes nothing away from under a call."""
from __future__ import annotations

import threading
from typing import Protocol

from tinyhw.core.locks import lock


class Closing(Protocol):
  """A device that closes. `check` raises DeviceError where it cannot be used from here."""
  closed: bool

  def check(self) -> None: ...


class Users:
  """`with users:` has the device stay open meanwhile. Raises what the device's `check` does."""

  def __init__(self, device: Closing) -> None:
    self._closing, self._changed, self._inside = device, threading.Condition(lock()), 0

  def __enter__(self) -> None:
    with self._changed:
      self._closing.check()
      self._inside += 1
    try: self.entered()
    except BaseException:
      self.__exit__()
      raise

  def __exit__(self, *_: object) -> None:
    with self._changed:
      self._inside -= 1
      if not self._inside: self._changed.notify_all()

  def entered(self) -> None:
    """What else a call needs."""

  def shut(self) -> bool:
    """Let nobody in any more, and wait for those that are inside. False where somebody else has done it."""
    with self._changed:
      if self._closing.closed: return False
      self._closing.closed = True
      while self._inside: self._changed.wait()
    return True
