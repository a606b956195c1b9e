"""PM4's registers as text."""
from __future__ import annotations

from tinyhw.autogen.pm4_gfx11 import Pm4
from tinyhw.core.layout import Packet
from tinyhw.wire import pm4


def declared(generation: int) -> pm4.Table:
  """The packets of a generation of the graphics core; gfx11's for one that has no others, or that nobody knows."""
  return pm4.table("gfx12") if generation == 12 else pm4.GFX11


def own(packet: Pm4, words: tuple[int, ...], generation: int) -> Packet:
  """A packet in its generation's own words: tools go by gfx11's, which have the same bits."""
  table = declared(generation)
  return packet if table is pm4.GFX11 else pm4.decode(words, 0, table)[0]


def register_lines(packet: Packet, generation: int = 0) -> list[str]:
  """A line for each register that a packet sets, with its fields."""
  table = declared(generation)
  return [pm4.register_text(offset, value, table) for offset, value in pm4.registers(packet)]
