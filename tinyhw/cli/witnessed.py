"""`tinyhw run --record` with AMD's cards: what the host serves becomes a capture, by the same recorder that writes down
what a debugger sees of a program on a card (`toolbox.sniff`)."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import linux_trace as linux
from tinyhw.drive.traced import SystemCall
from tinyhw.toolbox.sniff import Sniffer

if TYPE_CHECKING:
  from tinyhw.mock.clients.host import Client
  from tinyhw.mock.clients.listener import TrappedCall

_OPENS: Final = {linux.NR_openat2: linux.NR_openat}  # with the path at the same place; its flags are not told


@dataclass(frozen=True)
class ServedCall(SystemCall):
  """A call that a host serves; `node` is what its descriptor is of."""
  node: str = ""

  def path(self, fd: int) -> str: return self.node


class Witnessed:
  """See the module."""

  def __init__(self, path: Path, program: Sequence[str], cards: str) -> None:
    path.unlink(missing_ok=True)
    self._sniffer = Sniffer(path, program, cards=cards)
    self._amid: dict[int, tuple[ServedCall, Any]] = {}  # calls that have not returned, by their ids

  def entered(self, client: Client, call: TrappedCall, fd_of: str | None) -> None:
    self._sniffer.moved()
    served = ServedCall(client.pid, call.thread, _OPENS.get(call.number, call.number), call.arguments, fd_of or "")
    kept = self._sniffer.entered(served)
    if kept is not None: self._amid[call.id] = served, kept

  def returned(self, call: TrappedCall, value: int) -> None:
    if (row := self._amid.pop(call.id, None)) is not None: self._sniffer.returned(*row, value)

  def rung(self) -> None:
    self._sniffer.moved()  # calls of mmap do not come here
    self._sniffer.passed()

  def ending(self, client: Client) -> None: self._sniffer.became(client.pid)

  def close(self) -> None: self._sniffer.close()

  def summary(self) -> str:
    """One line: what was recorded."""
    found = self._sniffer
    if not found.paths: return "nothing was recorded: no device was opened"
    return f"{', '.join(map(str, found.paths))}: {found.calls:,} calls, {found.submissions:,} submissions"
