"""Who wants to see how a graph becomes a program: compilers say what each stage made, rewriting what each rule did.

A watcher sees its own thread only; without one this costs a comparison.

`devices/watch.py` tells of tensors in the same way, and `listening` of `engine/run.py` of steps.
`PROFILE` and `VIZ` are made of these.
"""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Watcher:
  """What it is told of. Nothing is done here."""

  def stage(self, name: str, graph: Any) -> None:
    """A stage is over and has made this graph, or linear program."""

  def rewrote(self, rule: str, before: Any, after: Any) -> None:
    """A rule made one node of another."""


_watchers: dict[int, Watcher] = {}
"""The watcher of each thread that has one. Only the thread itself changes its own."""


def watching() -> Watcher | None:
  """The watcher of this thread."""
  return _watchers.get(threading.get_ident()) if _watchers else None


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
  """Tell it what happens in the block."""
  me = threading.get_ident()
  before = _watchers.get(me)
  _watchers[me] = watcher
  try: yield
  finally:
    if before is None: del _watchers[me]
    else: _watchers[me] = before


def stage(name: str, graph: Any) -> None:
  """Say that a stage is over."""
  if (watcher := watching()) is not None: watcher.stage(name, graph)
