"""Where a debugger of queues stands: breakpoints on packets by kind, kernel, address, dispatch and submission.

    point("packet WAIT_REG_MEM"), point("kernel r_*"), point("address 0x7f0000001000"), point("dispatch 3")
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

from tinyhw.core.environment import digits
from tinyhw.core.errors import InvalidArgument
from tinyhw.queues import listing
from tinyhw.queues.world import Item, Launch
from tinyhw.wire import methods

KINDS: Final = ("packet", "kernel", "address", "dispatch", "submission", "at")
NUMBERS: Final = ("address", "dispatch", "submission")


@dataclass(slots=True)
class ExecutedRow:
  """What an engine executes as one: a packet, an entry, a header with its methods. `launches` are (number among all
  launches of the capture, launch); `under` is what it leads to that no engine reads as packets (QMDs)."""
  submission: int
  index: int
  item: Item
  launches: list[tuple[int, Launch]] = field(default_factory=list)
  under: list[Item] = field(default_factory=list)

  def items(self) -> Iterator[Item]:
    """The packet and what is under it."""
    yield self.item
    yield from self.under

  def kinds(self) -> Iterator[str]:
    """The vendor's names for it: of the packet, and of the methods that it sends."""
    packet = self.item.packet
    if packet is None: return
    if isinstance(packet, methods.Send):
      yield packet.header.__name__
      for line in listing.below(self.item): yield line.partition("(")[0].partition(" ")[0].rpartition(".")[2]
    else: yield "NOP" if isinstance(packet, int) else type(packet).__name__


@dataclass(slots=True)
class Break:
  """A breakpoint, and how often the run has stood there."""
  number: int
  kind: str
  what: str
  hits: int = 0

  def __str__(self) -> str: return f"breakpoint {self.number}: {self.kind} {self.what}"

  def fits(self, row: ExecutedRow, names: listing.Names) -> bool:
    """Whether a packet is one to stand at. A submission's breakpoint stands at its first."""
    match self.kind:
      case "packet": return any(fnmatchcase(kind.lower(), self.what.lower()) for kind in row.kinds())
      case "kernel": return any(fnmatchcase(kernel, self.what) for kernel in kernels(row, names))
      case "dispatch": return any(number == int(self.what, 0) for number, _ in row.launches)
      case "at": return self.what == f"{row.submission}:{row.index}"
      case "submission": return row.index == 0 and row.submission == int(self.what, 0)
      case _: return any(_names(item, int(self.what, 0)) for item in row.items())


def kernels(row: ExecutedRow, names: listing.Names) -> list[str]:
  """The names of the kernels that a packet launches, where they are known."""
  return [names.at(launch.entry).removeprefix("kernel ") for _, launch in row.launches]


def _names(item: Item, address: int) -> bool:
  """Whether a packet has an address in a field, or does something to memory there."""
  if any(value == address for _, value in listing.addresses(item)): return True
  return any(e.address <= address < max(e.end, e.address + 1) for e in item.effects if e.address)


def rows(submission: int, items: Iterable[Item], launches: Iterable[Launch], first: int) -> list[ExecutedRow]:
  """What engines execute of a submission; its launches are counted from `first`."""
  numbers = {id(launch.item): (first + n, launch) for n, launch in enumerate(launches)}
  found: list[ExecutedRow] = []
  for item in items:
    inner = bool(found) and id(item) in numbers and isinstance(found[-1].item.packet, methods.Send)
    if inner: found[-1].under.append(item)
    else: found.append(ExecutedRow(submission, len(found), item))
    if id(item) in numbers: found[-1].launches.append(numbers[id(item)])
  return found


def point(number: int, text: str) -> Break:
  """A breakpoint by its words. Raises InvalidArgument."""
  kind, _, what = text.strip().partition(" ")
  what = what.strip()
  if kind not in KINDS or not what:
    raise InvalidArgument(f"{text!r} is no place to stand", where="break",
                          hint="packet KIND, kernel NAME, address A, dispatch N, submission N or at SUBMISSION:PACKET")
  if kind in NUMBERS and _number(what) is None: raise InvalidArgument(f"{what!r} is no number", where=f"break {kind}")
  if kind == "at" and (what.count(":") != 1 or any(not digits(part) for part in what.split(":"))):
    raise InvalidArgument(f"{what!r} is no submission and packet", where="break at", hint="as 3:12")
  return Break(number, kind, what)


def _number(text: str) -> Any:
  try: found = int(text, 0)
  except ValueError: return None
  return found if found >= 0 else None
