"""NVIDIA's pushbuffers: words that send methods to classes, and back.

A header says which method, on which of eight subchannels, and how the words behind it go on: to methods one after
the other (INCR), all to one (NONINCR), the first to one and the rest to the next (ONEINCR), or it holds a small value
itself (IMMD). Other words choose sub-devices, end a piece, or do nothing. Headers are declared in
`tinyhw.autogen.nv_c56f`, methods in `tinyhw.autogen.nv_*`; manual `dev_ram.ref` of GA100, "Host Pushbuffer Format".
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from types import ModuleType
from typing import Any

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.errors import DecodeError, EncodeError, Unsupported
from tinyhw.core.layout import Method, Word, words_text

HOST_END = 0x100  # methods below belong to the host engine on every subchannel, all but SET_OBJECT to it alone
SUBCHANNELS = 8
METHODS_END = 1 << 12 + 2  # a header's address counts dwords
NOP = 0  # the word that does nothing (NVC56F_DMA_NOP)
CLASS_IDS = (0xC6C0, 0xC7C0, 0xC9C0, 0xCBC0, 0xCDC0, 0xCEC0, 0xC6B5, 0xC7B5, 0xC8B5, 0xC9B5, 0xCAB5)

INCR, NONINCR, ONEINCR, IMMD = host.DMA_INCR, host.DMA_NONINCR, host.DMA_ONEINCR, host.DMA_IMMD
_HEADERS: dict[int, type[Any]] = {
  int(opcode): header for header, opcode in (
    (INCR, host.DMA_INCR_OPCODE.VALUE), (NONINCR, host.DMA_NONINCR_OPCODE.VALUE),
    (ONEINCR, host.DMA_ONEINCR_OPCODE.VALUE), (IMMD, host.DMA_IMMD_OPCODE.VALUE))}
_OPCODES = {header: opcode for opcode, header in _HEADERS.items()}
_CONTROLS: tuple[tuple[type[Any], int], ...] = (  # words of their own, by the place and value of their opcode
  (host.DMA_SET_SUBDEVICE_MASK, int(host.DMA_SET_SUBDEVICE_MASK_OPCODE.VALUE)),
  (host.DMA_STORE_SUBDEVICE_MASK, int(host.DMA_STORE_SUBDEVICE_MASK_OPCODE.VALUE)),
  (host.DMA_USE_SUBDEVICE_MASK, int(host.DMA_USE_SUBDEVICE_MASK_OPCODE.VALUE)),
  (host.DMA_ENDSEG, int(host.DMA_ENDSEG_OPCODE.VALUE)))
_COUNT = next(f.limit for f in INCR.FIELDS if f.name == "COUNT")
IMMEDIATE = next(f.limit for f in IMMD.FIELDS if f.name == "DATA")  # the largest value that a header holds
_KIND = next(f.lo for f in INCR.FIELDS if f.name == "OPCODE")

Control = Word | int  # a control word, or NOP


@dataclass(frozen=True, slots=True)
class Send:
  """What one header sends: `data` words to `subchannel`, beginning at the method of byte address `method`."""

  header: type[Any]
  subchannel: int
  method: int
  data: tuple[int, ...]

  def encode(self) -> list[int]:
    """Header and data. Raises EncodeError for what does not fit."""
    where = self.header.__name__
    if self.method % 4:
      raise EncodeError(f"{self.method:#x} is no method: they are dwords apart", where=where)
    if any(not 0 <= v < 1 << 32 for v in self.data):
      raise EncodeError("data that is no word of 32 bits", where=where)
    fields: dict[str, int] = {"ADDRESS": self.method >> 2, "SUBCHANNEL": self.subchannel,
                              "OPCODE": _OPCODES[self.header]}
    if self.header is not IMMD:
      return [self.header(COUNT=len(self.data), **fields).value(), *self.data]
    if len(self.data) != 1:
      raise EncodeError(f"{len(self.data)} words, and it holds one", where=where)
    return [IMMD(DATA=self.data[0], **fields).value()]

  def writes(self) -> Iterator[tuple[int, int]]:
    """(byte address, value) of each method sent, in order."""
    return zip(self.addresses(), self.data)

  def addresses(self) -> Iterable[int]:
    """The methods' byte addresses, in order."""
    first, count = self.method, len(self.data)
    if self.header is INCR: return range(first, first + 4 * count, 4)
    if self.header is ONEINCR and count: return chain((first,), repeat(first + 4, count - 1))
    return repeat(first, count)


# ---- making


def send(subchannel: int, *methods: Method) -> list[int]:
  """The words for methods in this order: neighbours share a header, a small value alone stands in its header.

  Raises EncodeError for a field that does not fit. A copy of an array goes by `array`.
  """
  return _packed(subchannel, [(type(m).OFFSET, m.value()) for m in methods])


def array(subchannel: int, method: type[Method], values: Sequence[int], first: int = 0) -> list[int]:
  """The words that give values to the copies of an array, from copy `first` on."""
  if not 0 <= first <= first + len(values) <= method.COPIES:
    raise EncodeError(f"copies {first} to {first + len(values)} of {method.COPIES}", where=method.__name__)
  stride = method.APART or 4
  return _packed(subchannel, [(method.OFFSET + (first + i) * stride, v) for i, v in enumerate(values)])


def repeated(subchannel: int, method: type[Method], values: Sequence[int]) -> list[int]:
  """The words that send all values to one method (inline data), in as many headers as it needs."""
  words: list[int] = []
  for at in range(0, len(values), _COUNT):
    words += Send(NONINCR, subchannel, method.OFFSET, tuple(values[at : at + _COUNT])).encode()
  return words


def _packed(subchannel: int, writes: Sequence[tuple[int, int]]) -> list[int]:
  words: list[int] = []
  at = 0
  while at < len(writes):
    end, first = at + 1, writes[at][0]
    while end < len(writes) and writes[end][0] == first + 4 * (end - at) and end - at < _COUNT:
      end += 1
    data = tuple(v for _, v in writes[at:end])
    header = IMMD if len(data) == 1 and data[0] <= IMMEDIATE else INCR
    words += Send(header, subchannel, first, data).encode()
    at = end
  return words


# ---- reading


def header(word: int) -> type[Any] | None:
  """The header's declaration that a word is by its opcode; None for control words and words that mean nothing."""
  return _HEADERS.get(word >> _KIND)


def control(word: int) -> Control | None:
  """The control word, NOP included; None where the word is none. Raises DecodeError for undeclared bits."""
  if word == NOP:
    return NOP
  for declared, opcode in _CONTROLS:
    field = next(f for f in declared.FIELDS if f.name == "OPCODE")
    if word >> field.lo == opcode:
      found: Word = declared.decode(word)
      return found
  return None


@functools.lru_cache(4096)
def _fields(word: int) -> tuple[type[Any], int, int, int] | None:
  """Of a header its declaration, subchannel, first method and data: words, or IMMD's value; None for another word.
  Raises DecodeError for undeclared bits."""
  declared = header(word)
  if declared is None: return None
  fields: Any = declared.decode(word)
  return declared, fields.SUBCHANNEL, fields.ADDRESS << 2, fields.DATA if declared is IMMD else fields.COUNT


def size_of(word: int) -> int:
  """Words of what begins with a word, itself counted: 1 for control words, and for what is none."""
  found = _fields(word)
  return 1 if found is None or found[0] is IMMD else 1 + found[3]


def decode(words: Sequence[int], at: int = 0) -> tuple[Send | Control, int]:
  """What stands at index `at`, and its words. Raises DecodeError for a word that means nothing or missing data."""
  if not 0 <= at < len(words):
    raise DecodeError(f"no dword at {at} of {len(words)}", where="pushbuffer")
  word = int(words[at])
  found = _fields(word)
  if found is None:
    made = control(word)
    if made is None:
      raise DecodeError("is no header of a method and no control word", where=f"pushbuffer dword {at}", words=(word,))
    return made, 1
  declared, subchannel, method, count = found
  if declared is IMMD:
    return Send(IMMD, subchannel, method, (count,)), 1
  data = words[at + 1 : at + 1 + count]
  if len(data) < count:
    raise DecodeError(f"{count} words of data, {len(data)} are left", where=f"pushbuffer dword {at}", words=(word,))
  return Send(declared, subchannel, method, tuple(map(int, data))), 1 + count


def walk(words: Sequence[int]) -> Iterator[tuple[int, Send | Control]]:
  """(index, what stands there) of each header and control word. Raises DecodeError at the first that is none."""
  at = 0
  while at < len(words):
    found, size = decode(words, at)
    yield at, found
    at += size


# ---- classes


@functools.cache
def declared(class_id: int) -> ModuleType:
  """The declarations of a compute or copy class. Raises Unsupported for one that is not declared."""
  if class_id not in CLASS_IDS:
    raise Unsupported("class", f"{class_id:#06x}")
  return importlib.import_module(f"tinyhw.autogen.nv_{class_id:04x}")


@functools.cache
def by_address(module: ModuleType) -> Mapping[int, tuple[type[Method], int]]:
  """byte address -> (method, which copy) of a class' declarations."""
  table: dict[int, tuple[type[Method], int]] = {}
  for method in module.METHODS:
    for copy in range(method.COPIES):
      table.setdefault(method.OFFSET + copy * method.APART, (method, copy))
  return table


def method_name(module: ModuleType, address: int) -> str:
  """`HOPPER_COMPUTE_A.SEND_PCAS_A`, or the address of a method that the class does not have."""
  row = by_address(module).get(address)
  if row is None:
    return f"{module.NAME}.{address:#06x}"
  method, copy = row
  return f"{module.NAME}.{method.__name__}{f'[{copy}]' if method.COPIES > 1 else ''}"


def method_text(module: ModuleType, address: int, value: int) -> str:
  """One method with its fields: `HOPPER_COMPUTE_A.SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=0x10)`."""
  name, declared = _named(module, address)
  if declared is None:
    return f"{name}({value:#x})"
  try:
    shown = words_text(declared, (value,)).partition("(")[2][:-1]
  except DecodeError:
    shown = f"{value:#x}: undeclared bits"
  return f"{name}({shown})"


@functools.lru_cache(4096)
def _named(module: ModuleType, address: int) -> tuple[str, type[Method] | None]:
  """A method's name and declaration."""
  row = by_address(module).get(address)
  return method_name(module, address), None if row is None else row[0]


def text(words: Sequence[int], classes: Mapping[int, int] | None = None, *, where: int = 0) -> str:
  """One line a method. `classes` are the ids of those that stand on subchannels; SET_OBJECT in the words adds to them.

  `where`: address of the first word. What does not decode is shown, and ends the text.
  """
  bound = dict(classes or {})
  lines = []
  try:
    for at, found in walk(words):
      place = f"{where + 4 * at:#08x}"
      if not isinstance(found, Send):
        lines.append(f"{place}    {'NOP' if isinstance(found, int) else found}")
        continue
      for i, (address, value) in enumerate(found.writes()):
        if address == host.SET_OBJECT.OFFSET:
          bound[found.subchannel] = host.SET_OBJECT(NVCLASS=value & 0xFFFF).NVCLASS
        class_id = bound.get(found.subchannel)
        module: ModuleType | None = host
        if address >= HOST_END:
          module = declared(class_id) if class_id in CLASS_IDS else None
        shown = f"{address:#06x}({value:#x})" if module is None else method_text(module, address, value)
        lines.append(f"{place if i == 0 else ' ' * len(place)}  {found.subchannel} {shown}")
  except DecodeError as error:
    lines.append(f"        {error}")
  return "\n".join(lines)
