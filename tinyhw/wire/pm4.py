"""PM4, the command stream of AMD's compute queues: packets with their type-3 headers, to dwords and back.

A type-3 packet is a header dword (type 3 in bits 31:30, count of the body's dwords minus one in 29:16, opcode in 15:8,
shader type in bit 1, predicate in bit 0) and the body that `tinyhw.autogen.pm4_gfx11`, `gfx12` or `gfx9` declares.
Packets given out by `decode` are shared between equal streams: treat them as immutable.

A stream is read as one generation's ("gfx9", "gfx11", "gfx12"). What both declare alike is one class.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.autogen.pm4_gfx11 import Pm4
from tinyhw.core.errors import DecodeError, EncodeError, Unsupported
from tinyhw.core.kept import Kept
from tinyhw.core.layout import Packet, Register
from tinyhw.wire import text as wire_text

TYPE_3 = 3 << 30
PACKET_2 = 2 << 30  # a filler of one dword (CP_PACKET2 in the kernel's nvd.h)
COMPUTE = 1 << 1  # shader type: the SH registers of compute (PACKET3_COMPUTE in nvd.h)
MAX_BODY = 0x4000  # the count field has 14 bits
# A NOP with this count is its header alone; the kernel fills one dword so and never uses it as a count (gfx_v11_0.c).
NOP_HEADER_ONLY = 0x3FFF
# The shader type says which SH registers are meant; it is read by the packets that write or use them.
USE_SHADER_TYPE = frozenset(
  {
    "SET_SH_REG",
    "SET_SH_REG_INDEX",
    "SET_SH_REG_PAIRS_PACKED",
    "SET_SH_REG_PAIRS_PACKED_N",
    "LOAD_SH_REG_INDEX",
    "DISPATCH_DIRECT",
    "DISPATCH_INDIRECT",
  }
)
CACHED_BODY = 64  # longer packets carry data that is unlikely to come again
CACHE_LIMIT = 4096


class PACKET2(Packet, dwords=0):
  """The type-2 packet: one dword that does nothing."""


@dataclass(frozen=True, eq=False)
class Table:
  """A generation's packets: `forms` are those of an opcode, which differ in their number of dwords; `registers` the
  name of its register declarations, `known` a memo of a pure function: dwords -> packet."""
  packets: tuple[type[Pm4], ...]
  opcodes: dict[int, str]
  registers: str
  forms: dict[int, list[type[Pm4]]] = field(default_factory=dict)
  known: Kept[tuple[int, ...], tuple[Packet, int]] = field(default_factory=lambda: Kept(CACHE_LIMIT))

  def __post_init__(self) -> None:
    for cls in self.packets: self.forms.setdefault(cls.OP, []).append(cls)


GFX11: Final = Table(pm4.PACKETS, pm4.OPCODES, "gc_11_0_0")
_REGISTERS: Final = {"gfx9": "gc_9_4_3", "gfx12": "gc_12_0_0"}  # generation -> its register declarations


def _header(cls: type[Pm4]) -> int:
  """A packet's header without its count, of whichever generation declares it."""
  return TYPE_3 | cls.OP << 8 | (COMPUTE if cls.__name__ in USE_SHADER_TYPE else 0)


_HEADERS: dict[type[Packet], int] = {cls: _header(cls) for cls in pm4.PACKETS}


@functools.cache
def table(generation: str) -> Table:
  """A generation's packets. Its declarations are imported now."""
  if generation == "gfx11": return GFX11
  if generation not in _REGISTERS: raise Unsupported("PM4 packets", f"of {generation}")
  module = importlib.import_module(f"tinyhw.autogen.pm4_{generation}")
  return Table(module.PACKETS, module.OPCODES, _REGISTERS[generation])


def encode(packet: Packet) -> list[int]:
  """Header and body as dwords. Raises EncodeError for a value that does not fit, or a payload that is too long."""
  header = _HEADERS.get(type(packet))
  if header is None:
    if isinstance(packet, PACKET2):
      return [PACKET_2]
    if not isinstance(packet, Pm4): raise EncodeError("is not a PM4 packet", where=type(packet).__name__)
    header = _HEADERS[type(packet)] = _header(type(packet))
  body = packet.encode()
  count = len(body) - 1
  if count < 0:
    count = NOP_HEADER_ONLY
  elif count >= MAX_BODY or header == _NOP and count == NOP_HEADER_ONLY:
    raise EncodeError(f"{len(body)} dwords do not fit the header's count", where=type(packet).__name__)
  return [header | count << 16, *body]


_NOP = _HEADERS[pm4.NOP]


def stream(packets: Iterable[Packet]) -> list[int]:
  """The dwords of several packets, one after the other."""
  words: list[int] = []
  for packet in packets:
    words += encode(packet)
  return words


def size_of(header: int) -> int:
  """Dwords of the packet that a header begins: 1 for a type-2 packet, and for what is no header."""
  if header >> 30 != 3:
    return 1
  count = header >> 16 & 0x3FFF
  return 1 if count == NOP_HEADER_ONLY and header & 0xFF00 == pm4.NOP.OP << 8 else count + 2


def decode(words: Sequence[int], at: int = 0, of: Table = GFX11) -> tuple[Packet, int]:
  """The packet at index `at`, and how many dwords it takes. Raises DecodeError."""
  if not 0 <= at < len(words):
    raise DecodeError(f"no dword at {at} of {len(words)}", where="PM4")
  header = int(words[at])
  kind = header >> 30
  if kind == 3:
    size = size_of(header)
    if at + size > len(words):
      raise DecodeError(
        f"{name(header, of)} at dword {at} needs {size} dwords, {len(words) - at} are left", where="PM4",
        words=(header,)
      )
  elif header == PACKET_2:
    return PACKET2(), 1
  elif kind == 2:
    raise DecodeError("a type-2 packet has no other bits", where=f"PM4 dword {at}", words=(header,))
  else:
    raise DecodeError(
      f"a type-{kind} packet: compute queues take types 2 and 3", where=f"PM4 dword {at}", words=(header,)
    )
  body: Any = words[at : at + size]
  key = tuple(body.tolist() if hasattr(body, "tolist") else body)
  found = of.known.get(key)
  if found is None:
    found = _decode(key, at, of), size
    if size <= CACHED_BODY:
      of.known.keep(key, found)
  return found


def _decode(words: tuple[int, ...], at: int, of: Table) -> Packet:
  """A whole type-3 packet from its dwords."""
  header, body = words[0], words[1:]
  where = f"PM4 dword {at}"
  if header & 1:
    raise DecodeError(f"{name(header, of)} is predicated: compute queues have no predication", where=where, words=words)
  if header & 0xFC:
    raise DecodeError(f"reserved header bits {header & 0xFC:#x} are set", where=where, words=words)
  forms = of.forms.get(header >> 8 & 0xFF)
  if not forms:
    raise DecodeError(f"{name(header, of)} is no packet of a compute queue", where=where, words=words)
  for cls in forms:
    if len(body) == cls.DWORDS or len(body) > cls.DWORDS and cls.REST:
      return cls._decode(body)
  wanted = " or ".join(f"{cls.DWORDS}{' and more' if cls.REST else ''}" for cls in forms)
  raise DecodeError(
    f"{forms[0].__name__} has {len(body)} dwords after its header, expected {wanted}", where=where, words=words
  )


def name(header: int, of: Table = GFX11) -> str:
  """The vendor's name of a header's opcode."""
  opcode = header >> 8 & 0xFF
  return of.opcodes.get(opcode, f"opcode {opcode:#04x}")


def walk(words: Sequence[int], of: Table = GFX11) -> Iterator[tuple[int, Packet]]:
  """(index, packet) of each packet in a stream. Raises DecodeError at the first that is none."""
  at = 0
  while at < len(words):
    packet, size = decode(words, at, of)
    yield at, packet
    at += size


def set_sh_reg(first: type[Register], *values: int | Register) -> pm4.SET_SH_REG:
  """Write compute's SH registers from `first` on."""
  return pm4.SET_SH_REG(reg_offset=first.OFFSET - pm4.SET_SH_REG_START, payload=tuple(map(_value, values)))


def set_uconfig_reg(first: type[Register], *values: int | Register) -> pm4.SET_UCONFIG_REG:
  """Write user configuration registers from `first` on."""
  return pm4.SET_UCONFIG_REG(reg_offset=first.OFFSET - pm4.SET_UCONFIG_REG_START, payload=tuple(map(_value, values)))


def _value(value: int | Register) -> int:
  return value.value() if isinstance(value, Register) else value


_STARTS: Final = {
  pm4.SET_SH_REG.OP: pm4.SET_SH_REG_START, pm4.SET_SH_REG_INDEX.OP: pm4.SET_SH_REG_START,
  pm4.SET_UCONFIG_REG.OP: pm4.SET_UCONFIG_REG_START, pm4.SET_CONFIG_REG.OP: pm4.SET_CONFIG_REG_START}


def registers(packet: Packet) -> list[tuple[int, int]]:
  """(dword offset, value) of each register that a SET_*_REG packet writes; empty for other packets."""
  start = _STARTS.get(getattr(packet, "OP", -1))
  if start is None or not isinstance(packet, Pm4):
    return []
  made: Any = packet
  return [(start + made.reg_offset + i, value) for i, value in enumerate(made.payload)]


@functools.cache
def _register_classes(of: Table) -> dict[int, type[Register]]:
  """Registers by their dword offset; of several at one place the first. 200 classes that only text needs."""
  module = importlib.import_module(f"tinyhw.autogen.{of.registers}")
  return {cls.OFFSET: cls for cls in reversed(module.REGISTERS)}


@functools.lru_cache(CACHE_LIMIT)
def register_text(offset: int, value: int, of: Table = GFX11) -> str:
  """`COMPUTE_PGM_LO = 0x00001000 (DATA=0x1000)`: a register by its dword offset."""
  cls = _register_classes(of).get(offset)
  if cls is None:
    return f"register {offset:#x} = {value:#010x}"
  try:
    shown = ", ".join(f"{f.name}={f.show(v)}" for f, v in cls.decode(value).items() if v)
  except DecodeError:
    shown = "bits that the register does not declare"
  return f"{cls.__name__} = {value:#010x}" + (f" ({shown})" if shown else "")


def text(words: Sequence[int], *, where: int = 0, of: Table = GFX11) -> str:
  """One line a packet, one below it for each register that it sets. `where`: address of the first dword. Never raises:
  what does not decode is shown as such, and ends the text."""
  lines = []
  try:
    for at, packet in walk(words, of):
      lines.append(f"{where + 4 * at:#06x}  {packet!r}")
      lines += [f"          {register_text(offset, value, of)}" for offset, value in registers(packet)]
  except DecodeError as error:
    lines.append(f"        {error}")
  return "\n".join(lines)


def parse(line: str, of: Table = GFX11) -> Packet:
  """The packet that a `repr` shows: `RELEASE_MEM(event_type=CS_DONE, ...)`. Raises DecodeError."""
  return wire_text.parse(line, (*of.packets, PACKET2))
