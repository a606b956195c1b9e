"""SDMA, the command stream of AMD's copy engines: packets to dwords and back.

The first dword holds opcode and sub-opcode, which name the packet; its length follows from the packet, and for those
with data from their count field. Packets are declared in `tinyhw.autogen.sdma_v6` (gfx11, gfx12) and `sdma_v4` (gfx9).
Those given out by `decode` are shared between equal streams: treat them as immutable.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

from tinyhw.autogen import sdma_v6 as sdma
from tinyhw.autogen.sdma_v6 import Sdma
from tinyhw.core.errors import DecodeError, EncodeError, Unsupported
from tinyhw.core.kept import Kept
from tinyhw.core.layout import Packet
from tinyhw.wire import text as wire_text

CACHED_DWORDS = 64  # longer packets carry data that is unlikely to come again
CACHE_LIMIT = 4096
_BROADCAST = 27  # the bit of COPY that chooses between a packet and its broadcast form


@dataclass(frozen=True, eq=False)
class Table:
  """A version's packets: `kinds` are (opcode, sub-opcode, broadcast) -> packet, `known` is a memo of a pure function:
  dwords -> packet."""
  version: str
  packets: tuple[type[Sdma], ...]
  opcodes: dict[int, str]
  kinds: dict[tuple[int, int, int], type[Sdma]] = field(default_factory=dict)
  known: Kept[tuple[int, ...], Packet] = field(default_factory=lambda: Kept(CACHE_LIMIT))

  def __post_init__(self) -> None:
    for cls in self.packets:
      broadcast = next((f.default for f in cls.FIELDS if f.name == "broadcast"), None)
      for bit in (0, 1) if broadcast is None else (broadcast,): self.kinds[cls.OP, cls.SUB_OP, bit] = cls

  def kind(self, header: int) -> type[Sdma] | None:
    """The packet that a header begins."""
    return self.kinds.get((header & 0xFF, header >> 8 & 0xFF, header >> _BROADCAST & 1))


def _table(version: str, module: ModuleType) -> Table:
  named = {v: name for name, v in vars(module).items() if name.startswith("SDMA_OP_") and "AQL" not in name}
  return Table(version, module.PACKETS, named)


V6: Final = _table("v6", sdma)
_VERSIONS: Final = ("v4", "v6")


@functools.cache
def table(version: str) -> Table:
  """A version's packets. Its declarations are imported now."""
  if version == "v6": return V6
  if version not in _VERSIONS: raise Unsupported("SDMA packets", f"of {version}")
  return _table(version, importlib.import_module(f"tinyhw.autogen.sdma_{version}"))


def _declared_in(cls: type[Packet]) -> Table:
  """The table of the version that declares a packet."""
  return table(cls.__module__.rpartition("_")[2])


def encode(packet: Packet) -> list[int]:
  """The packet as dwords. Raises EncodeError for a value that does not fit, a changed opcode or a wrong count."""
  if not isinstance(packet, Sdma):
    raise EncodeError("is not an SDMA packet", where=type(packet).__name__)
  words = packet.encode()
  header = words[0]
  if _declared_in(type(packet)).kind(header) is not type(packet):
    raise EncodeError(
      f"opcode {header & 0xFF}, sub-opcode {header >> 8 & 0xFF} are another packet's", where=type(packet).__name__
    )
  if packet.REST and len(words) - packet.DWORDS != _payload(packet):
    raise EncodeError(
      f"count says {_payload(packet)} dwords of payload, {len(packet.tail)} are given", where=type(packet).__name__
    )
  return words


def _payload(packet: Sdma) -> int:
  return int(getattr(packet, "count")) + packet.PAYLOAD_BIAS  # noqa: B009  (only some packets declare it)


def stream(packets: Iterable[Packet]) -> list[int]:
  """The dwords of several packets, one after the other."""
  words: list[int] = []
  for packet in packets:
    words += encode(packet)
  return words


def decode(words: Sequence[int], at: int = 0, of: Table = V6) -> tuple[Packet, int]:
  """The packet at index `at`, and how many dwords it takes. Raises DecodeError."""
  if not 0 <= at < len(words):
    raise DecodeError(f"no dword at {at} of {len(words)}", where="SDMA")
  header = int(words[at])
  cls = of.kind(header)
  if cls is None:
    raise DecodeError(
      f"{name(header, of)} is no packet of SDMA {of.version}", where=f"SDMA dword {at}", words=(header,))
  size = cls.DWORDS
  if at + size > len(words):
    raise _short(cls, size, len(words), at, header)
  if cls.REST:
    fixed: Any = words[at : at + size]
    size += _payload(cls._decode(fixed.tolist() if hasattr(fixed, "tolist") else fixed))
    if at + size > len(words):
      raise _short(cls, size, len(words), at, header)
  chunk: Any = words[at : at + size]
  key = tuple(chunk.tolist() if hasattr(chunk, "tolist") else chunk)
  packet = of.known.get(key)
  if packet is None:
    packet = cls._decode(key)
    if size <= CACHED_DWORDS:
      of.known.keep(key, packet)
  return packet, size


def size_of(words: Sequence[int], at: int = 0, of: Table = V6) -> int:
  """Dwords of the packet at an index, from its head alone; 0 for what is none, or does not say how long it is."""
  header = int(words[at])
  cls = of.kind(header)
  if cls is None:
    return 0
  if not cls.REST:
    return cls.DWORDS
  fixed: Any = words[at : at + cls.DWORDS]
  if len(fixed) < cls.DWORDS:
    return 0
  try:
    return cls.DWORDS + _payload(cls._decode(fixed.tolist() if hasattr(fixed, "tolist") else fixed))
  except DecodeError:
    return 0


@functools.lru_cache(CACHE_LIMIT)
def head(header: int, of: Table = V6) -> tuple[str, int]:
  """The name of the packet that a header begins, and its dwords: 0 where more than the header says how many, or where
  none is declared, which has its opcode's name."""
  cls = of.kind(header)
  return (name(header, of), 0) if cls is None else (cls.__name__, 0 if cls.REST else cls.DWORDS)


def _short(cls: type[Sdma], size: int, end: int, at: int, header: int) -> DecodeError:
  return DecodeError(
    f"{cls.__name__} needs {size} dwords, {end - at} are left", where=f"SDMA dword {at}", words=(header,)
  )


def name(header: int, of: Table = V6) -> str:
  """The vendor's name of a header's opcode, with the sub-opcode."""
  opcode = header & 0xFF
  return f"{of.opcodes.get(opcode, f'opcode {opcode:#04x}')} sub-opcode {header >> 8 & 0xFF}"


def walk(words: Sequence[int], of: Table = V6) -> Iterator[tuple[int, Packet]]:
  """(index, packet) of each packet in a stream. Raises DecodeError at the first that is none."""
  at = 0
  while at < len(words):
    packet, size = decode(words, at, of)
    yield at, packet
    at += size


def text(words: Sequence[int], *, where: int = 0, of: Table = V6) -> str:
  """One line a packet. `where`: address of the first dword. What does not decode is shown, and ends the text."""
  lines = []
  try:
    for at, packet in walk(words, of):
      lines.append(f"{where + 4 * at:#06x}  {packet!r}")
  except DecodeError as error:
    lines.append(f"        {error}")
  return "\n".join(lines)


def parse(line: str, of: Table = V6) -> Packet:
  """The packet that a `repr` shows. Raises DecodeError."""
  return wire_text.parse(line, of.packets)
