"""Packets in the words of their generation, and PM4's registers as text.

Tools go by gfx11's packets: gfx12's have the same bits in them, with other words for some. gfx9's are their own, which
tools know by their names.
"""
from __future__ import annotations

from typing import Final

from tinyhw.core.layout import Packet
from tinyhw.wire import pm4, sdma

_OWN: Final = {9: "gfx9", 12: "gfx12"}


def declared(generation: int) -> pm4.Table:
  """The packets of a generation of the graphics core; gfx11's for one that has no others, or that nobody knows."""
  return pm4.table(_OWN[generation]) if generation in _OWN else pm4.GFX11


def read(generation: int) -> pm4.Table:
  """The packets that tools read a generation's words as."""
  return declared(generation) if generation == 9 else pm4.GFX11


def copies(generation: int) -> sdma.Table:
  """The packets of the copy engines beside such a core."""
  return sdma.table("v4") if generation == 9 else sdma.V6


def own(packet: Packet, words: tuple[int, ...], generation: int) -> Packet:
  """A PM4 packet in its generation's own words."""
  table = declared(generation)
  return packet if table is read(generation) else pm4.decode(words, 0, table)[0]


def register_lines(packet: Packet, generation: int = 0) -> list[str]:
  """A line for each register that a packet sets, with its fields."""
  table = declared(generation)
  return [pm4.register_text(offset, value, table) for offset, value in pm4.registers(packet)]
