"""Ctrl-C and time-outs that arrive while nodes and memory go: Python loses what is raised inside its finalizers."""
from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tinyhw import Tensor
from tinyhw.devices.buffer import Buffer, ByNode
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.uop import UOp


class Alarm(Exception):
  """What the handler raises."""


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
  """Python's handler, which is not there in what a shell runs in the background."""
  before = signal.signal(signal.SIGINT, signal.default_int_handler)
  yield
  signal.signal(signal.SIGINT, before)


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
  """What finalizers raised in vain."""
  found: list[Any] = []
  monkeypatch.setattr(sys, "unraisablehook", found.append)
  yield found


def graph(nodes: int) -> UOp:
  u = UOp.new_buffer("X", 4, dtypes.float32)
  for i in range(nodes): u = u + float(i)
  return u


def test_a_signal_amid_the_end_of_a_graph_is_not_lost(lost: list[Any]) -> None:
  def ring(number: int, frame: Any) -> None: raise Alarm
  before = signal.signal(signal.SIGALRM, ring)
  try:
    for _ in range(2):
      u = graph(20_000)
      with pytest.raises(Alarm):
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        del u
        wait()
  finally: signal.signal(signal.SIGALRM, before)
  assert not lost


def wait() -> None:
  """In small steps: another thread may be the one that the system interrupts."""
  for _ in range(3000): time.sleep(0.01)


def test_ctrl_c_while_memory_goes_comes_again(lost: list[Any]) -> None:
  class Owner:
    def free(self, allocation: object) -> None: os.kill(os.getpid(), signal.SIGINT)

  buffer = Buffer("LLVM", 4, dtypes.float32)
  buffer._allocation, buffer._owner = object(), Owner()  # type: ignore[assignment]
  with pytest.raises(KeyboardInterrupt):
    del buffer
    wait()
  assert not lost


def test_ctrl_c_while_a_value_goes_with_its_node_comes_again(lost: list[Any]) -> None:
  class Rows(dict[int, Any]):
    def get(self, key: int, default: Any = None) -> Any:
      os.kill(os.getpid(), signal.SIGINT)
      return super().get(key, default)

  values: ByNode[int] = ByNode()
  values._rows = Rows()
  node = UOp.new_buffer("X", 4, dtypes.float32)
  values.set(node, 3)
  with pytest.raises(KeyboardInterrupt):
    del node
    wait()
  assert not lost


def test_no_value_is_in_a_weak_set_of_pythons() -> None:
  """Its finalizer loses a Ctrl-C that comes inside it: the kernel went on for ever."""
  lost = []
  def note(frame: Any, event: str, argument: Any) -> None:
    code = frame.f_code
    if event == "call" and code.co_name == "_remove" and "_weakrefset" in code.co_filename: lost.append(code)
  x = Tensor.ones(8, 8).contiguous().realize()
  sys.setprofile(note)
  try:
    for _ in range(3):
      y = (x @ x * 0.5).realize()
      y[0, 0].item()
      y.assign(y + 1).realize()
      del y
  finally: sys.setprofile(None)
  assert not lost


def test_a_node_that_took_the_place_of_another_is_its_own() -> None:
  """Keys hold ids of sources: what has them later is another node."""
  seen = set[float]()
  for i in range(2000):
    x = UOp.const(dtypes.float32, float(i))
    y = x + 1.5
    assert y.src[0] is x and y is x + 1.5
    seen.add(y.src[0].arg)
    del x, y
  assert len(seen) == 2000
  assert (Tensor([1.0]) + 1.5).tolist() == [2.5]
