"""SDMA, the command stream of AMD's copy engines: packets to dwords and back.

The first dword holds opcode and sub-opcode, which name the packet; its length follows from the packet, and for those
with data from their count field. Packets are declared in `tinyhw.autogen.sdma_v6`. Those given out by `decode` are
shared between equal streams: treat them as immutable.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tinyhw.autogen import sdma_v6 as sdma
from tinyhw.autogen.sdma_v6 import Sdma
from tinyhw.core.errors import DecodeError, EncodeError
from tinyhw.core.layout import Packet
from tinyhw.wire import text as wire_text

CACHED_DWORDS = 64  # longer packets carry data that is unlikely to come again
CACHE_LIMIT = 4096
_BROADCAST = 27  # the bit of COPY that chooses between a packet and its broadcast form
_OPCODES = {value: name for name, value in vars(sdma).items() if name.startswith("SDMA_OP_") and "AQL" not in name}


def _kinds() -> dict[tuple[int, int, int], type[Sdma]]:
  """(opcode, sub-opcode, broadcast) -> packet."""
  kinds: dict[tuple[int, int, int], type[Sdma]] = {}
  for cls in sdma.PACKETS:
    broadcast = next((f.default for f in cls.FIELDS if f.name == "broadcast"), None)
    for bit in (0, 1) if broadcast is None else (broadcast,):
      kinds[cls.OP, cls.SUB_OP, bit] = cls
  return kinds


_KINDS = _kinds()
_CACHE: dict[tuple[int, ...], Packet] = {}  # a memo of a pure function: dwords -> packet


def encode(packet: Packet) -> list[int]:
  """The packet as dwords. Raises EncodeError for a value that does not fit, a changed opcode or a wrong count."""
  if not isinstance(packet, Sdma):
    raise EncodeError("is not an SDMA packet", where=type(packet).__name__)
  words = packet.encode()
  header = words[0]
  if _KINDS.get((header & 0xFF, header >> 8 & 0xFF, header >> _BROADCAST & 1)) is not type(packet):
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


def decode(words: Sequence[int], at: int = 0) -> tuple[Packet, int]:
  """The packet at index `at`, and how many dwords it takes. Raises DecodeError."""
  if not 0 <= at < len(words):
    raise DecodeError(f"no dword at {at} of {len(words)}", where="SDMA")
  header = int(words[at])
  cls = _KINDS.get((header & 0xFF, header >> 8 & 0xFF, header >> _BROADCAST & 1))
  if cls is None:
    raise DecodeError(f"{name(header)} is no packet of SDMA v6", where=f"SDMA dword {at}", words=(header,))
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
  packet = _CACHE.get(key)
  if packet is None:
    packet = cls._decode(key)
    if size <= CACHED_DWORDS:
      if len(_CACHE) >= CACHE_LIMIT:
        _CACHE.clear()
      _CACHE[key] = packet
  return packet, size


def size_of(words: Sequence[int], at: int = 0) -> int:
  """Dwords of the packet at an index, from its head alone; 0 for what is none, or does not say how long it is."""
  header = int(words[at])
  cls = _KINDS.get((header & 0xFF, header >> 8 & 0xFF, header >> _BROADCAST & 1))
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
def head(header: int) -> tuple[str, int]:
  """The name of the packet that a header begins, and its dwords: 0 where more than the header says how many, or where
  none is declared, which has its opcode's name."""
  cls = _KINDS.get((header & 0xFF, header >> 8 & 0xFF, header >> _BROADCAST & 1))
  return (name(header), 0) if cls is None else (cls.__name__, 0 if cls.REST else cls.DWORDS)


def _short(cls: type[Sdma], size: int, end: int, at: int, header: int) -> DecodeError:
  return DecodeError(
    f"{cls.__name__} needs {size} dwords, {end - at} are left", where=f"SDMA dword {at}", words=(header,)
  )


def name(header: int) -> str:
  """The vendor's name of a header's opcode, with the sub-opcode."""
  opcode = header & 0xFF
  return f"{_OPCODES.get(opcode, f'opcode {opcode:#04x}')} sub-opcode {header >> 8 & 0xFF}"


def walk(words: Sequence[int]) -> Iterator[tuple[int, Packet]]:
  """(index, packet) of each packet in a stream. Raises DecodeError at the first that is none."""
  at = 0
  while at < len(words):
    packet, size = decode(words, at)
    yield at, packet
    at += size


def text(words: Sequence[int], *, where: int = 0) -> str:
  """One line a packet. `where`: address of the first dword. What does not decode is shown, and ends the text."""
  lines = []
  try:
    for at, packet in walk(words):
      lines.append(f"{where + 4 * at:#06x}  {packet!r}")
  except DecodeError as error:
    lines.append(f"        {error}")
  return "\n".join(lines)


def parse(line: str) -> Packet:
  """The packet that a `repr` shows. Raises DecodeError."""
  return wire_text.parse(line, sdma.PACKETS)
