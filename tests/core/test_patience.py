"""Signals that wait for the end of a block, and what ends an emulated dispatch from outside."""
from __future__ import annotations

import _signal
import os
import signal
import threading
from types import FrameType

import pytest

from tinyhw.core.errors import Interrupted
from tinyhw.core.timeout import HELD, Stopped, Terms, ticker


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


def test_a_handler_that_comes_back_amid_the_end_of_a_block_may_begin_one(monkeypatch: pytest.MonkeyPatch) -> None:
  """A signal comes as soon as its handler is restored, which calls what is a block of its own."""
  heard = list[int]()

  def calls(number: int, frame: FrameType | None) -> None:
    with HELD: heard.append(number)
  set_ = _signal.signal

  def restored(number: int, handler: object) -> object:
    before = set_(number, handler)  # type: ignore[arg-type]
    if handler is calls and not heard: os.kill(os.getpid(), signal.SIGINT)
    return before
  before = signal.signal(signal.SIGINT, calls)
  try:
    with monkeypatch.context() as patch:
      with HELD: patch.setattr(_signal, "signal", restored)
    assert heard == [signal.SIGINT] and signal.getsignal(signal.SIGINT) is calls
  finally: signal.signal(signal.SIGINT, before)


def test_a_handler_that_comes_amid_the_begin_of_a_block_may_begin_one(monkeypatch: pytest.MonkeyPatch) -> None:
  """One signal is held already: so it is for all of the block."""
  heard, held = list[int](), list[bool]()

  def calls(number: int, frame: FrameType | None) -> None:
    with HELD: heard.append(number)
  signal.signal(signal.SIGALRM, calls)
  before, set_ = signal.getsignal(signal.SIGINT), _signal.signal

  def first(number: int, handler: object) -> object:
    old = set_(number, handler)  # type: ignore[arg-type]
    if number == signal.SIGINT and not heard: shout(signal.SIGALRM)
    return old
  with monkeypatch.context() as patch:
    patch.setattr(_signal, "signal", first)
    with HELD: held.append(signal.getsignal(signal.SIGINT) is not before)
  assert heard == [signal.SIGALRM] and held == [True] and signal.getsignal(signal.SIGINT) is before
  assert signal.getsignal(signal.SIGALRM) is calls and HELD._depth == 0


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
