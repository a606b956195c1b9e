"""Arrays of this process in an emulated GPU's address space: at their own addresses, without a copy, to the byte.

A pointer that the host knows is the pointer that a kernel gets, so pointers may also lie in memory, as
tables of them do. Memory is mapped in units of 16 bytes; the bytes of a first or last unit that an array only has in
part are copied in and out, so that a store next to an array reaches nothing of the host. Everything else around arrays
is a page fault.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tinyhw.core.memory import GRANULE, U8, Access, HostRegion

if TYPE_CHECKING:
  from tinyhw.core.memory import AddressSpace, Backing


@dataclass(frozen=True)
class Span:
  """Bytes [start, end) of this process, what reports call them, and whether a kernel may store to them."""
  start: int
  end: int
  name: str
  writable: bool = True

  @property
  def size(self) -> int: return self.end - self.start


class Copied:
  """One unit of memory, of which some bytes stand for the host's."""
  size = GRANULE

  def __init__(self) -> None:
    self.u8: U8 = np.zeros(GRANULE, np.uint8)


def merged(spans: Iterable[Span]) -> list[Span]:
  """Spans in order, those that share bytes as one: memory that several arrays see is one memory."""
  out: list[Span] = []
  for span in sorted((s for s in spans if s.size), key=lambda s: (s.start, -s.end)):
    last = out[-1] if out else None
    if last is None or span.start >= last.end:
      out.append(span)
      continue
    names = last.name.split(", ")
    name = last.name if span.name in names else f"{last.name}, {span.name}"
    out[-1] = Span(last.start, max(last.end, span.end), name, last.writable or span.writable)
  return out


def host_bytes(start: int, size: int) -> U8:
  """The bytes themselves."""
  return HostRegion(start, size).u8


@contextmanager
def mapped(space: AddressSpace, spans: list[Span]) -> Iterator[None]:
  """Have merged spans in an address space while the block runs; the arrays must live that long."""
  units: dict[int, Copied] = {}
  parts: list[tuple[Copied, int, Span, int, int]] = []  # unit, its address, span, bytes of it that are the span's
  maps: list[tuple[int, int, Backing, int]] = []

  def partly(at: int, span: Span) -> None:
    unit = units.setdefault(at, Copied())
    parts.append((unit, at, span, max(at, span.start), min(at + GRANULE, span.end)))

  for span in spans:
    low, high = -(-span.start // GRANULE) * GRANULE, span.end // GRANULE * GRANULE
    if span.start < low: partly(low - GRANULE, span)
    if high > low:
      maps.append((low, high - low, HostRegion(low, high - low), Access.ALL if span.writable else Access.READ))
    if span.end > high and high >= low: partly(high, span)
  for unit, at, _, low, high in parts: unit.u8[low - at:high - at] = host_bytes(low, high - low)
  writable = {at for _, at, span, _, _ in parts if span.writable}
  maps += [(at, GRANULE, unit, Access.ALL if at in writable else Access.READ) for at, unit in units.items()]
  done: list[tuple[int, int]] = []
  try:
    for start, size, backing, access in maps:
      space.map(start, size, backing, access=access, unit=GRANULE)
      done.append((start, size))
    for span in spans: space.used[span.start] = span.size, span.name
    yield
  finally:
    for start, size in done: space.unmap(start, size)
    for span in spans: space.used.pop(span.start, None)
    for unit, at, span, low, high in parts:
      if span.writable: host_bytes(low, high - low)[:] = unit.u8[low - at:high - at]
