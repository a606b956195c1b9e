"""Bytes moved by threads beside each other: one processor alone does not keep a device's bus busy.

The threads start with the first large copy and live as long as the device that they are of. NumPy lets go of the
interpreter while it copies.
"""
from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

MOST = 6  # a bus to a device takes no more than so many processors give


def _copied(target: memoryview, source: memoryview) -> None:
  np.copyto(np.frombuffer(target, np.uint8), np.frombuffer(source, np.uint8))


class Movers:
  """Up to `threads` threads, by default half of this process's processors; with one, who asks copies himself."""

  def __init__(self, threads: int | None = None) -> None:
    self.threads = max(min(len(os.sched_getaffinity(0)) // 2, MOST), 1) if threads is None else threads
    self._pool: ThreadPoolExecutor | None = None

  def move(self, target: memoryview, source: memoryview) -> Future[None]:
    """Begin to copy bytes; the future's result comes when they are there."""
    if self.threads > 1:
      if self._pool is None: self._pool = ThreadPoolExecutor(self.threads, "tinyhw-copy")
      return self._pool.submit(_copied, target, source)
    target[:] = source
    done: Future[None] = Future()
    done.set_result(None)
    return done

  def close(self) -> None:
    """End the threads."""
    if self._pool is not None: self._pool.shutdown()
    self._pool = None
