"""Who watches tensors being made, read and written: the recording of a TinyJit, while it records.

Tensors, the engine's runs and its random numbers tell the watcher of the thread that they work in; without one this
costs a comparison. A watcher sees its own thread only.
"""
from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
  from tinyhw.devices.buffer import Buffer
  from tinyhw.ir.uop import UOp

T = TypeVar("T")  # a tensor
S = TypeVar("S")  # a step of a run


class Watcher(Generic[T, S]):
  """What it is told of. Nothing is done here."""

  def made(self, tensor: T) -> None:
    """A tensor came to life."""
  def read(self, tensor: T) -> None:
    """A tensor's graph is about to be used."""
  def wrote(self, tensor: T) -> None:
    """A tensor is about to get another graph."""
  def learned(self, tensor: T) -> None:
    """A leaf becomes a result: it gets a value with a history."""
  def graded(self, tensor: T) -> None:
    """A tensor gets another gradient, or none."""
  def to_host(self, tensor: T) -> None:
    """A tensor's value is about to become Python's."""
  def ran(self, step: S) -> None:
    """A kernel or a copy was queued."""
  def drew(self, key: Buffer) -> None:
    """Random numbers got a key."""
  def hides(self, node: UOp, home: UOp) -> bool:
    """Whether the memory that a node is in, `home`, is not to be seen."""
    return False
  def also(self) -> list[UOp]:
    """Nodes that will be asked for after those of a schedule that begins, and may be computed in it."""
    return []
  def outside(self, what: str) -> None:
    """Something is about to change that is not a tensor."""


active: dict[int, Watcher[Any, Any]] = {}
"""The watcher of each thread that has one. Only the thread itself changes its own."""


def watching() -> Watcher[Any, Any] | None:
  """The watcher of this thread."""
  return active.get(threading.get_ident()) if active else None


class watched:
  """`with watched(watcher):` tells it what happens inside; with None nobody of this thread is told."""

  def __init__(self, watcher: Watcher[Any, Any] | None) -> None:
    self.watcher = watcher
    self.before: Watcher[Any, Any] | None = None

  def __enter__(self) -> None:
    self.before = watching()
    self._set(self.watcher)

  def __exit__(self, *exc: object) -> None: self._set(self.before)

  @staticmethod
  def _set(watcher: Watcher[Any, Any] | None) -> None:
    if watcher is None: active.pop(threading.get_ident(), None)
    else: active[threading.get_ident()] = watcher
