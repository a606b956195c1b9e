"""What AMD's engines read of a submission: PM4 and SDMA packets through indirect buffers, AQL packets.

`AmdState` is what a queue keeps from one submission to the next: the SH registers, by which a dispatch knows its code
and its arguments.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import hsa
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.autogen import sdma_v6 as sdma
from tinyhw.core.errors import DecodeError
from tinyhw.core.layout import Packet
from tinyhw.queues.amd.effects import effects
from tinyhw.queues.amd.text import copies, read
from tinyhw.queues.effects import Effect
from tinyhw.queues.world import Item, Knows, Launch, Queue, Read
from tinyhw.wire import aql
from tinyhw.wire import pm4 as pm4_wire
from tinyhw.wire import sdma as sdma_wire

DEEPEST: Final = 4  # indirect buffers in one another; the command processor has two levels (PAL, IB2)
ARGUMENTS: Final = 4096  # bytes that are taken for arguments where nobody says how many there are
_USERS: Final = 16
USER_DATA: Final = range(gc.COMPUTE_USER_DATA_0.OFFSET, gc.COMPUTE_USER_DATA_0.OFFSET + _USERS)
_LEADS: Final = (pm4.DISPATCH_DIRECT, pm4.DISPATCH_INDIRECT)  # of all generations
_CALLS: Final = frozenset(cls.__name__ for cls in (pm4.INDIRECT_BUFFER, sdma.SDMA_PKT_INDIRECT))
_OLD: Final = 9  # the generation whose packets are read as its own
_DIMENSIONS: Final = tuple(r.OFFSET for r in (gc.COMPUTE_NUM_THREAD_X, gc.COMPUTE_NUM_THREAD_Y,
                                              gc.COMPUTE_NUM_THREAD_Z))


@dataclass(slots=True)
class AmdState:
  """Registers by dword offset, as packets have set them."""
  registers: dict[int, int] = field(default_factory=dict)

  def entry(self) -> int:
    """Address of the program."""
    low, high = (self.registers.get(r.OFFSET, 0) for r in (gc.COMPUTE_PGM_LO, gc.COMPUTE_PGM_HI))
    return low << 8 | (high & 0xFF) << 40

  def user_data(self) -> list[int]:
    """The dwords that a dispatch puts into the first SGPRs."""
    found = self.registers.get
    return [found(at, 0) for at in USER_DATA]

  def pairs(self) -> list[tuple[int, int]]:
    """(address, bytes) of what may be the arguments: user data of 64 bits."""
    return [(low | high << 32, ARGUMENTS) for low, high in pairwise(self.user_data()) if high or low >> 16]


def calls(packet: object) -> bool:
  """Whether a packet leads to other words."""
  return type(packet).__name__ in _CALLS


@functools.cache
def _wide(cls: Any) -> tuple[str, ...]:
  return tuple(f.name for f in cls.FIELDS if f.width + f.shift > 32)


def wide(packet: Packet) -> list[int]:
  """Values of more than 32 bits, which addresses are."""
  cls: Any = type(packet)
  return [getattr(packet, name) for name in _wide(cls)]


@dataclass(frozen=True, slots=True)
class Meaning:
  """What is known of a packet by its words alone."""
  packet: Packet
  words: tuple[int, ...]
  effects: tuple[Effect, ...]
  roots: tuple[tuple[int, int], ...]
  registers: tuple[tuple[int, int], ...]
  leads: bool  # to other words, or to a kernel


KEPT: Final = 1 << 14  # meanings
# By kind and by whether they are gfx9's; a driver's packets come again.
_MEANINGS: Final[dict[tuple[str, bool], dict[tuple[int, ...], Meaning]]] = {
  (kind, old): {} for kind in ("pm4", "sdma") for old in (False, True)}
_COUNT: Final = pm4_wire.MAX_BODY - 1


def meaning(kind: str, words: tuple[int, ...], at: int, generation: int = 0) -> Meaning:
  """Of the packet at index `at` in words of "pm4" or "sdma", of a generation of the core. Raises DecodeError."""
  known = _MEANINGS[kind, generation == _OLD]
  packet, size = (pm4_wire.decode(words, at, read(generation)) if kind == "pm4" else
                  sdma_wire.decode(words, at, copies(generation)))
  key = words[at:at + size]
  if (found := known.get(key)) is not None: return found
  roots = () if calls(packet) else tuple((value, 0) for value in wide(packet))
  found = Meaning(packet, key, tuple(effects(packet)), roots,
                  tuple(pm4_wire.registers(packet)) if kind == "pm4" else (),
                  calls(packet) or isinstance(packet, _LEADS))
  if len(known) >= KEPT: known.clear()
  known[key] = found
  return found


class AmdFollow:
  """See `world.Follow`."""

  def __init__(self, queue: Queue, ring: list[tuple[int, bytes]], read: Read, knows: Knows | None = None) -> None:
    self.queue, self._read = queue, read
    self._knows: Knows = knows or (lambda address: read(address, 1) is not None)
    self.items: list[Item] = []
    self.launches: list[Launch] = []
    self.roots: list[tuple[int, int]] = []
    self.pieces: list[tuple[int, bytes]] = []
    if queue.state is None: queue.state = AmdState()
    self.state: AmdState = queue.state
    if queue.kind == "aql":
      for address, raw in ring:
        for at in range(0, len(raw) - aql.PACKET_BYTES + 1, aql.PACKET_BYTES):
          self._aql(address + at, raw[at:at + aql.PACKET_BYTES])
      return
    address, raw = ring[0] if ring else (0, b"")
    places = [(address, len(raw))]
    for more, data in ring[1:]:  # a ring that wraps is one stream
      places.append((more, len(data)))
      raw += data
    self._stream(places, words_of(raw), 0)

  def _stream(self, places: Sequence[tuple[int, int]], words: tuple[int, ...], depth: int) -> None:
    at, end, queue, items, registers = 0, len(words), self.queue, self.items, self.state.registers
    kind = queue.kind
    known = _MEANINGS["pm4", queue.class_id == _OLD] if kind == "pm4" else {}
    first, size = places[0]
    while at < end:
      where = first + 4 * at if 4 * at < size else address_at(places, 4 * at)
      found = known.get(words[at:at + (words[at] >> 16 & _COUNT) + 2])  # most are known, by a type-3 header's count
      try: found = found or meaning(kind, words, at, queue.class_id)
      except DecodeError as error:
        self.items.append(Item(where, words[at:], None, depth, str(error), self.queue))
        return
      item = Item(where, found.words, found.packet, depth, "", queue, [*found.effects], queue.class_id)
      items.append(item)
      if found.roots: self.roots += found.roots
      at += len(found.words)
      if found.registers: registers.update(found.registers)
      elif found.leads: self._led(item, found.packet, depth)

  def _led(self, item: Item, packet: Packet, depth: int) -> None:
    """What a packet leads to: other words, a launch."""
    if calls(packet):
      fields: Any = packet
      self._call(int(fields.ib_base), int(fields.ib_size) * 4, depth)
    elif isinstance(packet, pm4.DISPATCH_DIRECT):
      self._launch(item, (int(packet.dim_x), int(packet.dim_y), int(packet.dim_z)))
    elif isinstance(packet, pm4.DISPATCH_INDIRECT):
      raw = self._read(int(packet.addr), 12)
      x, y, z = words_of(raw) if raw is not None and len(raw) == 12 else (0, 0, 0)
      self._launch(item, (x, y, z))

  def _launch(self, item: Item, grid: tuple[int, int, int]) -> None:
    state, users = self.state, self.state.user_data()
    x, y, z = (state.registers.get(at, 0) & 0xFFFF for at in _DIMENSIONS)
    pairs = state.pairs()
    arguments = next((p for p, _ in pairs if self._knows(p)), 0)
    self.launches.append(Launch(item, state.entry(), arguments, 0, grid, (x, y, z),
                                users, {"registers": dict(state.registers)}))
    self.roots += [(state.entry(), 0), *pairs]

  def _call(self, address: int, size: int, depth: int) -> None:
    raw = self._read(address, size)
    if raw is None or len(raw) < size:
      self.items.append(Item(address, (), None, depth + 1, f"{size} bytes of an indirect buffer that are not known",
                             self.queue))
      return
    self.pieces.append((address, raw))
    if depth + 1 > DEEPEST:
      self.items.append(Item(address, (), None, depth + 1, "indirect buffers in one another, too deep", self.queue))
      return
    self._stream([(address, size)], words_of(raw), depth + 1)

  def _aql(self, address: int, raw: bytes) -> None:
    words = words_of(raw)
    try: packet = aql.decode(raw)
    except DecodeError as error:
      self.items.append(Item(address, words, None, 0, str(error), self.queue))
      return
    item = Item(address, words, packet, queue=self.queue, effects=effects(packet))
    self.items.append(item)
    fields: Any = packet
    if isinstance(packet, hsa.hsa_kernel_dispatch_packet_t):
      block = int(fields.workgroup_size_x), int(fields.workgroup_size_y), int(fields.workgroup_size_z)
      sizes = int(fields.grid_size_x), int(fields.grid_size_y), int(fields.grid_size_z)
      x, y, z = (-(-g // max(b, 1)) for g, b in zip(sizes, block))
      self.launches.append(Launch(item, int(fields.kernel_object), int(fields.kernarg_address), 0, (x, y, z), block))
      self.roots += [(int(fields.kernarg_address), ARGUMENTS), (int(fields.kernel_object), 64)]
    values = [words[i] | words[i + 1] << 32 for i in range(2, 16, 2)]
    self.roots += [(v, 0) for v in values if v >> 16]


def words_of(raw: bytes) -> tuple[int, ...]:
  """Whole dwords."""
  return tuple(memoryview(raw[:len(raw) & ~3]).cast("I").tolist())


def address_at(places: Sequence[tuple[int, int]], offset: int) -> int:
  """GPU address of a byte of several pieces."""
  for address, size in places:
    if offset < size: return address + offset
    offset -= size
  return places[-1][0] + places[-1][1] + offset
