"""Running statistics of layers: computed with the optimizer's next step, or before they change again.

They are no part of the loss, so nobody asks for them while a network trains. Left alone, each would be a formula of all
batches since the beginning, whose memory could not go.
"""
from __future__ import annotations

import threading
from collections.abc import Sequence

from tinyhw.engine.realize import lost_below, realize
from tinyhw.tensor.tensor import Tensor


class _Waiting(threading.local):
  """What a thread's layers have changed and nobody has computed."""

  def __init__(self) -> None: self.tensors: dict[Tensor, None] = {}


class Statistics:
  """The statistics that wait, of the calling thread's layers."""

  _waiting = _Waiting()

  @classmethod
  def wait(cls, tensors: Sequence[Tensor]) -> None:
    """They have changed, and nobody reads them now."""
    cls._waiting.tensors.update(dict.fromkeys(tensors))

  @classmethod
  def settle(cls, tensors: Sequence[Tensor]) -> None:
    """They are to change again: compute those that wait."""
    if mine := [t for t in tensors if cls._waiting.tensors.pop(t, 0) is None]: realize(*mine)

  @classmethod
  def take(cls) -> list[Tensor]:
    """All that wait and were not lost with their device; who takes them computes them."""
    found, cls._waiting.tensors = list(cls._waiting.tensors), {}
    return [t for t in found if lost_below(t._uop) is None]
