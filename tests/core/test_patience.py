"""Signals that wait for the end of a block, and what ends an emulated dispatch from outside."""
from __future__ import annotations

import _signal
import os
import signal
import threading
from types import FrameType

import pytest

from tinyhw.core.errors import Interrupted
from tinyhw.core.patience import HELD, Stopped, Terms, ticker


class Bell(Exception):
  """What the handler raises."""


def ring(number: int, frame: FrameType | None) -> None: raise Bell


@pytest.fixture(autouse=True)
def handlers() -> None:
  signal.signal(signal.SIGALRM, ring)


def shout(number: int) -> None: os.kill(os.getpid(), number)


@pytest.mark.parametrize("number, error", [(signal.SIGINT, KeyboardInterrupt), (signal.SIGALRM, Bell)])
def test_a_signal_waits_for_the_end_of_the_innermost_block(number: int, error: type[BaseException]) -> None:
  before, reached = signal.getsignal(number), list[str]()
  with pytest.raises(error), HELD:
    with HELD:
      shout(number)
      reached.append("inner")
      assert HELD.ends() and HELD.raised is not None
      with pytest.raises(Stopped): HELD()
    reached.append("outer")
  assert reached == ["inner"] and HELD.raised is None and signal.getsignal(number) is before
  with pytest.raises(error): shout(number)


def test_a_handler_that_raises_nothing_ends_nothing() -> None:
  heard = list[int]()
  signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
  with HELD:
    shout(signal.SIGALRM)
    assert heard == [signal.SIGALRM] and not HELD.ends()


def test_handlers_come_back_whatever_goes_wrong_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
  """A signal between two handlers that are set, and one between two that are put back."""
  before, real = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGALRM)], _signal.signal
  for at in range(1, 5):
    calls = 0

    def late(number: int, handler: object, at: int = at) -> object:
      nonlocal calls
      old = real(number, handler)  # type: ignore[arg-type]
      calls += 1
      if calls == at: shout(signal.SIGALRM)
      return old
    monkeypatch.setattr(_signal, "signal", late)
    with pytest.raises(Bell), HELD: pass
    monkeypatch.setattr(_signal, "signal", real)
    with HELD: pass
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGALRM)] == before and HELD._depth == 0


def test_other_threads_hear_no_signal() -> None:
  seen = list[bool]()

  def work() -> None:
    with HELD: seen.append(HELD.ends())
  with pytest.raises(Bell), HELD:
    shout(signal.SIGALRM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert HELD.ends()
  assert seen == [False]


def test_a_short_dispatch_is_never_ended_by_a_signal() -> None:
  tick, late = ticker(None), ticker(Terms(seconds=1e-9))
  with pytest.raises(Interrupted): late()
  with pytest.raises(Bell), HELD:
    shout(signal.SIGALRM)
    tick()
    tick()
    with pytest.raises(Stopped): tick()
    deaf = ticker(None, signals=False)
    for _ in range(9): deaf()
