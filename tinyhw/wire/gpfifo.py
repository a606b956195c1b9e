"""Entries of NVIDIA's GPFIFO: 64 bits each, a piece of a pushbuffer or an operation of the host engine itself.

The two words are declared in `tinyhw.autogen.nv_c56f` (GP_ENTRY0, GP_ENTRY1); what they mean is told by the manual
`dev_pbdma.ref` of GA100, chapter "GP-Entry Memory Format". An entry without a length is a control entry: then the low
word is its operand, and the byte where the address' high bits would be is its opcode.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.errors import DecodeError, EncodeError
from tinyhw.core.kept import Kept
from tinyhw.core.layout import Struct

SIZE = 8  # bytes of an entry (NVC56F_GP_ENTRY__SIZE)
_LEVELS, _SYNCS, _FETCHES = host.GP_ENTRY1_LEVEL, host.GP_ENTRY1_SYNC, host.GP_ENTRY0_FETCH
_HIGH, _LENGTH, _LEVEL, _SYNC = (next(f for f in host.GP_ENTRY1.FIELDS if f.name == name)
                                 for name in ("GET_HI", "LENGTH", "LEVEL", "SYNC"))
_GET, _FETCH = (next(f for f in host.GP_ENTRY0.FIELDS if f.name == name) for name in ("GET", "FETCH"))
_STRAY = 0xFFFF_FFFF & ~(_GET.mask | _FETCH.mask)
assert (_GET.lo, _GET.width) == (2, 30), "an address lies in GET as it is"
END = 1 << 32 + _HIGH.width  # addresses of pushbuffers end below
LONGEST = _LENGTH.limit  # dwords of a piece


class Userd(Struct):
  """Where a channel's pointers are: Nvc56fControl of clc56f.h, the same for all later classes. Counted in entries."""

  Put: int
  Get: int
  Reference: int
  PutHi: int
  TopLevelGet: int
  TopLevelGetHi: int
  GetHi: int
  GPGet: int
  GPPut: int
  _fields_ = (
    ("_pad0", ctypes.c_uint32 * 16), ("Put", ctypes.c_uint32), ("Get", ctypes.c_uint32), ("Reference", ctypes.c_uint32),
    ("PutHi", ctypes.c_uint32), ("_pad1", ctypes.c_uint32 * 2), ("TopLevelGet", ctypes.c_uint32),
    ("TopLevelGetHi", ctypes.c_uint32), ("GetHi", ctypes.c_uint32), ("_pad2", ctypes.c_uint32 * 9),
    ("GPGet", ctypes.c_uint32), ("GPPut", ctypes.c_uint32), ("_pad3", ctypes.c_uint32 * 0x5C))


class Notification(Struct):
  """What a notifier's memory holds: NvNotification of nvgputypes.h. Of an error `info32` is the Xid, `status` 0xffff.
  """

  time_low: int
  time_high: int
  info32: int
  info16: int
  status: int
  _fields_ = (("time_low", ctypes.c_uint32), ("time_high", ctypes.c_uint32), ("info32", ctypes.c_uint32),
              ("info16", ctypes.c_uint16), ("status", ctypes.c_uint16))


@dataclass(frozen=True, slots=True)
class Segment:
  """A piece of a pushbuffer: `dwords` words at `address` (bytes, a multiple of 4).

  `conditional`: fetched only where the sub-device is chosen; `subroutine`: not reported as progress; `wait`: fetched
  when the host engine is done with the piece before.
  """

  address: int
  dwords: int
  conditional: bool = False
  subroutine: bool = False
  wait: bool = False

  def encode(self) -> int:
    """The 64 bits. Raises EncodeError for what does not fit."""
    if not 0 <= self.address < END or self.address % 4:
      raise EncodeError(f"{self.address:#x} is no dword below {END:#x}", where="GP_ENTRY0.GET")
    if not 0 < self.dwords <= LONGEST:
      raise EncodeError(f"{self.dwords} dwords, and a piece has 1 to {LONGEST}", where="GP_ENTRY1.LENGTH")
    high = self.address >> 32 << _HIGH.lo | self.dwords << _LENGTH.lo
    if self.subroutine: high |= 1 << _LEVEL.lo
    if self.wait: high |= 1 << _SYNC.lo
    return self.address & 0xFFFF_FFFF | self.conditional << _FETCH.lo | high << 32

  def __str__(self) -> str:
    if not (self.conditional or self.subroutine or self.wait):
      return f"GP_ENTRY(GET={self.address:#x}, LENGTH={self.dwords})"
    rows = ((self.conditional, "FETCH", _FETCHES.CONDITIONAL), (self.subroutine, "LEVEL", _LEVELS.SUBROUTINE),
            (self.wait, "SYNC", _SYNCS.WAIT))
    more = "".join(f", {name}={value.name}" for shown, name, value in rows if shown)
    return f"GP_ENTRY(GET={self.address:#x}, LENGTH={self.dwords}{more})"


@dataclass(frozen=True, slots=True)
class Control:
  """An operation without data: `opcode` is one of GP_ENTRY1_OPCODE, or a number that is none."""

  opcode: int
  operand: int = 0
  wait: bool = False

  def encode(self) -> int:
    """The 64 bits. Raises EncodeError for what does not fit."""
    if not 0 <= self.operand < 1 << 32:
      raise EncodeError(f"{self.operand:#x} does not fit 32 bits", where="GP_ENTRY0.OPERAND")
    return self.operand | host.GP_ENTRY1(GET_HI=self.opcode, SYNC=int(self.wait)).value() << 32

  def __str__(self) -> str:
    named = self.opcode in host.GP_ENTRY1_OPCODE._value2member_map_
    name = host.GP_ENTRY1_OPCODE(self.opcode).name if named else hex(self.opcode)
    return f"GP_ENTRY(OPCODE={name}, OPERAND={self.operand:#x}{', SYNC=WAIT' if self.wait else ''})"


Entry = Segment | Control


def decode(value: int) -> Entry:
  """The entry of 64 bits. Raises DecodeError for undeclared bits."""
  low, high = value & 0xFFFF_FFFF, value >> 32
  second = host.GP_ENTRY1.decode(high)
  if not second.LENGTH:
    if second.LEVEL:
      raise DecodeError("a control entry with LEVEL set", where="GP_ENTRY1", words=(low, high))
    return Control(second.OPCODE, low, bool(second.SYNC))
  if low & _STRAY:
    raise DecodeError("undeclared bits set", where="GP_ENTRY0", words=(low, high))
  return Segment(low & _GET.mask | second.GET_HI << 32, second.LENGTH, bool(low & _FETCH.mask), bool(second.LEVEL),
                 bool(second.SYNC))


_PIECES: Kept[int, tuple[int, int] | None] = Kept(1024)  # a memo of high words: those of an address in bytes, dwords


def piece(value: int) -> tuple[int, int] | None:
  """(address in bytes, dwords) of an entry that is a piece of a pushbuffer and says nothing else; None for others."""
  low, high = value & 0xFFFF_FFFF, value >> 32
  found = _PIECES.get(high)
  if found is None and high not in _PIECES:
    second = host.GP_ENTRY1.decode(high)
    plain = second.LENGTH and not (second.LEVEL or second.SYNC)
    found = _PIECES.keep(high, (second.GET_HI << 32, second.LENGTH) if plain else None)
  return None if found is None or low & ~_GET.mask else (found[0] | low, found[1])


def text(entries: Sequence[int], *, first: int = 0) -> str:
  """One line an entry, with its index in the ring; what is none is shown as it is."""
  lines = []
  for index, value in enumerate(entries, first):
    try:
      lines.append(f"{index:5d}  {decode(value)}")
    except DecodeError as error:
      lines.append(f"{index:5d}  {value:#018x}: {error}")
  return "\n".join(lines)
