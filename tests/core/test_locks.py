"""A lock whose holder lets others in, as often as it is asked to, and then has it as before."""
from __future__ import annotations

import threading
import time

import pytest

from tinyhw.core.locks import FairLock


@pytest.mark.parametrize("held", [1, 3])
def test_who_waits_gets_the_lock_that_its_holder_lets_go_of(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
  lock, order, inside, done = FairLock(), list[str](), threading.Event(), threading.Event()

  def other() -> None:
    with lock: order.append("other")
    done.set()

  def rest(seconds: float) -> None:  # as long as the other thread needs, instead of the few microseconds
    assert 0 < seconds < 0.01
    inside.set()
    assert done.wait(60)
  thread = threading.Thread(target=other)
  for _ in range(held): lock.acquire()
  thread.start()
  while not lock.wanted: time.sleep(0.001)
  with monkeypatch.context() as patched:
    patched.setattr(time, "sleep", rest)
    order.append("first")
    lock.give_way()
  order.append("first again")
  assert order == ["first", "other", "first again"] and inside.is_set() and lock.wanted == 0
  thread.join()
  taken: list[bool] = []
  def attempt() -> None: taken.append(lock.acquire(blocking=False))
  for n in range(held + 1):  # it is held as often as before
    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    if n < held: lock.release()
  assert taken == [False] * held + [True]
