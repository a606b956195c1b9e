"""What is compiled well while code that was compiled quickly goes on."""
from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final


class Background:
  """Runs jobs one after the other in a thread that lives as long as there are some and the main thread lives."""

  _lock: threading.Lock
  _jobs: list[Callable[[], None]]
  _thread: threading.Thread | None

  def __init__(self) -> None: self.forget()

  def add(self, job: Callable[[], None]) -> None:
    with self._lock:
      self._jobs.append(job)
      if self._thread is not None: return
      self._thread = threading.Thread(target=self._work, name="tinyhw compiles hot programs")
      self._thread.start()

  def wait(self) -> None:
    """Return when there are no jobs left."""
    thread = self._thread
    if thread is not None: thread.join()

  def forget(self) -> None:
    """Begin anew: a child process has none of its parent's threads, and the lock may be held by one of them."""
    self._lock, self._jobs, self._thread = threading.Lock(), [], None

  def _work(self) -> None:
    while True:
      with self._lock:
        if not self._jobs or not threading.main_thread().is_alive():
          self._thread = None
          return
        job = self._jobs.pop(0)
      job()


BACKGROUND: Final = Background()
os.register_at_fork(after_in_child=BACKGROUND.forget)
