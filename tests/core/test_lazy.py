"""Attributes worked out at their first reading: once, alike for all threads, and readable in a forked child."""
from __future__ import annotations

import os
import threading
from functools import cached_property as standard

import pytest

from tinyhw.core.lazy import cached_property


class Slow:
  """Counts; `started` says that the value is being worked out, which ends when `go_on` is set."""

  def __init__(self) -> None:
    self.made, self.started, self.go_on = 0, threading.Event(), threading.Event()

  @cached_property
  def value(self) -> list[int]:
    """A value."""
    self.started.set()
    assert self.go_on.wait(30)
    self.made += 1
    return [self.made]


def test_it_is_worked_out_once() -> None:
  slow = Slow()
  slow.go_on.set()
  assert slow.value is slow.value and slow.made == 1
  assert isinstance(Slow.value, standard) and Slow.value.__doc__ == "A value."
  del slow.value
  assert slow.value == [2]


def test_threads_get_one_value() -> None:
  slow, got = Slow(), []
  threads = [threading.Thread(target=lambda: got.append(slow.value)) for _ in range(4)]
  for t in threads: t.start()
  assert slow.started.wait(30)
  slow.go_on.set()
  for t in threads: t.join(30)
  assert len(got) == 4 and all(value is got[0] for value in got)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_reads_what_a_thread_was_working_out() -> None:
  slow = Slow()
  thread = threading.Thread(target=lambda: slow.value)
  thread.start()
  assert slow.started.wait(30)
  pid = os.fork()
  if not pid:
    slow.go_on = threading.Event()  # a thread may hold the lock of the other one
    slow.go_on.set()
    os._exit(0 if slow.value == [1] else 1)
  slow.go_on.set()
  thread.join(30)
  assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
