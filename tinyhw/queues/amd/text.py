"""PM4's registers as text."""
from __future__ import annotations

from tinyhw.core.layout import Packet
from tinyhw.wire import pm4


def register_lines(packet: Packet) -> list[str]:
  """A line for each register that a packet sets, with its fields."""
  return [pm4.register_text(offset, value) for offset, value in pm4.registers(packet)]
