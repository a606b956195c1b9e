"""AMD's words for a replay whose memory lies elsewhere: the addresses in PM4, SDMA and AQL packets, by their fields.

Registers are written in pairs, low and high: those of code and scratch count 256 bytes (gc_11_0_0's offset header has
no unit; PAL's and Linux's writers shift by 8), pairs of user data are what a kernel finds in its first SGPRs.
"""
from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import pm4_gfx11
from tinyhw.core.layout import Packet, Struct
from tinyhw.queues.moved import Moves
from tinyhw.queues.world import Item
from tinyhw.wire import pm4, sdma

_SHIFTED: Final = {r.OFFSET: 8 for r in (gc.COMPUTE_PGM_LO, gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO)}
_HIGH: Final = 0xFFFF  # of a pair's high dword: an address has 48 bits, what stands above is a descriptor's
_LOW: Final = 0xFFFFFFFF


def words(item: Item, moves: Moves) -> list[int] | None:
  """The words of a packet with its addresses moved; None where nothing moves."""
  packet = item.packet
  if isinstance(packet, Struct):
    copy = type(packet).from_buffer_copy(packet)
    moves.struct(copy)
    made = list(memoryview(bytes(copy)).cast("I"))
  elif isinstance(packet, Packet): made = _packet(packet, list(item.words), moves)
  else: return None
  return None if made == list(item.words) else made


def _packet(packet: Packet, given: list[int], moves: Moves) -> list[int]:
  registers = pm4.registers(packet)
  if registers: return given[:-len(registers)] + _registers(registers, moves)
  values: dict[str, Any] = {f.name: v for f, v in packet.items()}
  changed = {f.name: moves.at(v) for f, v in packet.items() if f.width + f.shift > 32 and moves.at(v) != v}
  if not changed: return given
  if packet.REST: values[packet.REST] = packet.tail
  made = type(packet)(**{**values, **changed})
  encoded = pm4.encode(made) if isinstance(packet, pm4_gfx11.Pm4) else sdma.encode(made)
  return [given[0], *encoded[1:]]  # the header as it is: it has bits that are no field's


def _registers(rows: list[tuple[int, int]], moves: Moves) -> list[int]:
  made = [value for _, value in rows]
  for i, ((offset, low), (_, high)) in enumerate(pairwise(rows)):
    if (made[i], made[i + 1]) != (low, high): continue  # a pair before has taken this dword
    shift = _SHIFTED.get(offset, 0)
    old = (low | (high & _HIGH) << 32) << shift
    new = moves.at(old)
    if new == old: continue
    made[i], made[i + 1] = new >> shift & _LOW, high & ~_HIGH | new >> shift + 32
  return made
