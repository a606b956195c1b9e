"""Who watches a compilation is told of it: in its own thread, the innermost alone, and no longer than it asked."""
from __future__ import annotations

import threading
from typing import Any

import pytest

from tinyhw.ir.stages import Watcher, stage, watched, watching


class Listener(Watcher):
  def __init__(self) -> None: self.told: list[str] = []
  def stage(self, name: str, graph: Any) -> None: self.told.append(name)


def test_the_innermost_watcher_is_told_and_then_the_one_before() -> None:
  outer, inner = Listener(), Listener()
  stage("before", None)
  with watched(outer):
    assert watching() is outer
    stage("one", None)
    with pytest.raises(ValueError, match="on the way"), watched(inner):
      stage("two", None)
      raise ValueError("on the way")
    assert watching() is outer
    stage("three", None)
  stage("after", None)
  assert watching() is None and (outer.told, inner.told) == (["one", "three"], ["two"])


def test_other_threads_are_not_watched() -> None:
  mine, other = Listener(), Listener()

  def work() -> None:
    stage("unseen", None)
    with watched(other): stage("theirs", None)
    assert watching() is None
  with watched(mine):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert watching() is mine
    stage("mine", None)
  assert (mine.told, other.told) == (["mine"], ["theirs"])
