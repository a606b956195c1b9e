"""Fields of packets, descriptors and methods as rows that can be put back: what shrinking brings to rest.

`of(item)` gives each field with its value and the one that says least (its default, or 0); `put` gives the words with
other values. What no declaration has, and what comes out longer or shorter, stays as it is.
"""
from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tinyhw.autogen.pm4_gfx11 import Pm4
from tinyhw.autogen.sdma_v6 import Sdma
from tinyhw.core.errors import EncodeError
from tinyhw.core.layout import Packet, Struct
from tinyhw.queues.world import Item
from tinyhw.wire import gpfifo, methods, pm4, sdma

ADDRESS_BITS: Final = 33  # fields that are wider are addresses, and are not counted down
_LENGTHS: Final = ("ib_size",)  # fields that say how much of another piece is read


@dataclass(frozen=True, slots=True)
class Field:
  """A field of a packet: `least` is the value that says least; `counts`: a number that can be counted down."""
  name: str
  value: int
  least: int
  counts: bool = True


def of(item: Item) -> list[Field]:
  """The fields of an item whose values are not those that say least, as far as they can be put back."""
  found = [f for f in _all(item.packet) if f.value != f.least]
  return found if found and put(item, {}) == tuple(item.words) else []


def put(item: Item, values: Mapping[str, int]) -> tuple[int, ...] | None:
  """The words with other values of these fields; None for what does not fit, or has another length then."""
  try: made = _encoded(item, values)
  except EncodeError: return None
  return made if made is not None and len(made) == len(item.words) else None


def resized(item: Item, dwords: int) -> tuple[int, ...]:
  """The packet that leads to a piece of other words, when that has so many dwords."""
  packet = item.packet
  if isinstance(packet, gpfifo.Segment):
    value = replace(packet, dwords=dwords).encode()
    return value & 0xFFFFFFFF, value >> 32
  name = next((n for n in _LENGTHS if isinstance(packet, Packet) and hasattr(packet, n)), "")
  return (put(item, {name: dwords}) if name else None) or tuple(item.words)


def _all(packet: Any) -> list[Field]:
  if isinstance(packet, methods.Send): return [Field(f"[{i}]", v, 0) for i, v in enumerate(packet.data)]
  if isinstance(packet, Struct):
    return [Field(name, number, 0, number < 1 << 32) for name, number in _numbers(packet).items() if name != "header"]
  if not isinstance(packet, Packet): return []
  rows = [Field(f.name, value, f.default or 0, f.width + f.shift < ADDRESS_BITS) for f, value in packet.items()
          if f.name not in _LENGTHS]
  return rows + [Field(f"[{i}]", v, 0) for i, v in enumerate(packet.tail)]


def _numbers(packet: Struct) -> dict[str, int]:
  """Fields of an AQL packet that are one number, signals by their handle."""
  found = {}
  for name, *_ in packet._fields_:
    value = getattr(packet, name)
    number = getattr(value, "handle", value)
    if isinstance(number, int): found[name] = number
  return found


def _encoded(item: Item, values: Mapping[str, int]) -> tuple[int, ...] | None:
  packet = item.packet
  if isinstance(packet, methods.Send):
    data = tuple(values.get(f"[{i}]", v) for i, v in enumerate(packet.data))
    return tuple(replace(packet, data=data).encode())
  if isinstance(packet, Struct): return _struct(item, packet, values)
  if not isinstance(packet, Packet): return None
  given: dict[str, Any] = {f.name: values.get(f.name, value) for f, value in packet.items()}
  rest = type(packet).REST
  if rest: given[rest] = tuple(values.get(f"[{i}]", v) for i, v in enumerate(packet.tail))
  made = type(packet)(**given)
  if isinstance(made, Pm4): return (item.words[0], *pm4.encode(made)[1:])  # its header has bits of its own
  if isinstance(made, Sdma): return tuple(sdma.encode(made))
  return tuple(made.encode())


def _struct(item: Item, packet: Struct, values: Mapping[str, int]) -> tuple[int, ...]:
  made = type(packet).from_buffer_copy(bytes(packet))
  for name, value in values.items():
    field = getattr(made, name)
    size = getattr(type(made), name).size
    if value >> 8 * size: raise EncodeError(f"{value:#x} does not fit", where=name)
    if isinstance(field, ctypes.Structure): setattr(field, "handle", value)  # noqa: B010  (hsa_signal_t)
    else: setattr(made, name, value)
  return tuple(memoryview(bytes(made)).cast("I").tolist())
