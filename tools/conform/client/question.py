"""A case of a packet, method or ioctl: its identifier, how it is asked, and what is heard.

A case is asked in a room: a bench over a Port with pooled memory and queues. What it hears is held against what is
wanted at once; the first difference ends it. A case whose answer does not come, or that takes the device away, ends its
room: the next one is asked in a new one (`asking`).
"""
from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.bringup.rung import RungEnd

SHOWN: Final = 6  # lines of a case's text that a report has


class Differs(RungEnd):
  """What was heard is not what is wanted."""

  def __init__(self, where: str, wanted: str, found: str) -> None:
    self.where, self.wanted, self.found = where, wanted, found
    super().__init__(where, wanted, found)

  def __str__(self) -> str: return f"{self.where}: wanted {self.wanted}, found {self.found}"


class Heard:
  """What a case has heard so far; `digest` is of all that must be the same on every device."""

  def __init__(self) -> None: self._digest = hashlib.blake2b(digest_size=8)

  @property
  def digest(self) -> str: return self._digest.hexdigest()

  def same(self, where: str, found: int | str, wanted: int | str) -> None:
    """A number or a word. Raises Differs."""
    self._digest.update(f"{where}={found};".encode())
    if found != wanted: raise Differs(where, plain(wanted), plain(found))

  def holds(self, where: str, good: bool, found: str, wanted: str) -> None:
    """What differs from device to device, and has to hold on each. Raises Differs."""
    if not good: raise Differs(where, wanted, found)

  def memory(self, where: str, found: bytes, wanted: bytes, loose: Sequence[slice] = ()) -> None:
    """Bytes, but for those in `loose`. Raises Differs with the first dword that is another."""
    if loose:
      found, wanted = _without(found, loose), _without(wanted, loose)
    self._digest.update(found)
    if found == wanted: return
    at = next(i for i, (a, b) in enumerate(zip(found, wanted, strict=True)) if a != b)
    count = sum(a != b for a, b in zip(found, wanted)) if len(found) < 1 << 20 else 0
    word = at & ~3
    told = tuple(f"{int.from_bytes(x[word:word + 4], 'little'):#010x}" for x in (wanted, found))
    more = f" ({count:,} bytes differ)" if count > 4 else ""
    raise Differs(f"{where}[{word:#x}]{more}", *told)


def plain(value: int | str) -> str:
  """A number or word as reports have it."""
  return value if isinstance(value, str) else f"{value:#x}"


def _without(data: bytes, loose: Sequence[slice]) -> bytes:
  out = bytearray(data)
  for part in loose: out[part] = bytes(len(range(*part.indices(len(out)))))
  return bytes(out)


@dataclass(frozen=True, eq=False)
class Question:
  """A case: `unit` and `name` say of what (sdma, SDMA_PKT_FENCE), `form` which one of these. `play` asks it in a room
  and tells what it hears; `text` are its packets or calls, for people."""
  id: str
  unit: str
  name: str
  form: str
  source: str
  play: Callable[[Any, Heard], None] = field(repr=False)
  text: tuple[str, ...] = ()
  alone: bool = False  # its room ends with it

  @property
  def kind(self) -> str:
    """What it is about: packets, methods, ioctls."""
    return self.id.split("/")[1] + "s"

  @property
  def mnemonic(self) -> str: return f"{self.unit}/{self.name}"

  @property
  def asked(self) -> str:
    """A digest of the question."""
    return hashlib.blake2b("\n".join((self.id, *self.text)).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Area:
  """Memory that a case begins with: `kind` is "system" or "video"."""
  before: bytes
  kind: str = "system"


@dataclass(frozen=True)
class Stage:
  """A step of a case of packets: bytes that the host stores first (area, offset, bytes), and those that hang on the
  areas' addresses (`stores`), commands that are put on the queue (of the addresses), and what the areas must have then.

  `ends` False: the commands must not come to their end yet, and a stage behind this one lets them. What `loose` says,
  by area, may be anything; `then` looks at it, given the areas' bytes.
  """
  after: tuple[bytes | None, ...]  # None: nobody looks
  put: Callable[..., Any] | None = None
  store: tuple[tuple[int, int, bytes], ...] = ()
  ends: bool = True
  loose: dict[int, tuple[slice, ...]] = field(default_factory=dict)
  then: Callable[[Any, Heard, Sequence[bytes]], None] | None = None
  stores: Callable[..., Sequence[tuple[int, int, bytes]]] | None = None


def shown(lines: Iterable[str]) -> str:
  """The first lines of a text."""
  found = list(lines)
  more = [f"({len(found) - SHOWN} more)"] if len(found) > SHOWN else []
  return "\n  ".join([*found[:SHOWN], *more])
