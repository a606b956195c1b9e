"""Who watches what clients ask of their host's devices: calls with results, and doorbells before they are heard."""
from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tinyhw.mock.clients.listener import Listener, TrappedCall

if TYPE_CHECKING:
  from tinyhw.mock.clients.host import Client


class Witness(Protocol):
  """Hears of calls that open device nodes, and of ioctls of their files."""

  def entered(self, client: Client, call: TrappedCall, fd_of: str | None) -> None:
    """A call comes; `fd_of` is the device node that an ioctl's file is of."""

  def returned(self, call: TrappedCall, value: int) -> None:
    """It is about to return this, an error's number below zero; what it writes is in the client's memory."""

  def rung(self) -> None:
    """A doorbell has changed; its queue has not been told."""

  def ending(self, client: Client) -> None:
    """The process ends, or has become another program."""


class WatchedListener(Listener):
  """A listener whose answers the witness hears of."""

  def __init__(self, fd: int, witness: Witness) -> None:
    super().__init__(fd)
    self._witness = witness

  def answer(self, call: TrappedCall, value: int) -> None:
    self._witness.returned(call, value)
    super().answer(call, value)

  def give(self, call: TrappedCall, fd: int, close_on_exec: bool, answer: bool = True) -> int:
    number = super().give(call, fd, close_on_exec, answer)
    if answer and number >= 0: self._witness.returned(call, number)
    return number
