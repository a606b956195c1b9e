"""NVIDIA's words for a replay whose memory lies elsewhere: the addresses in GPFIFO entries, methods and QMDs.

An address of methods has two halves, in methods of their own, which a driver may send in one header or in two; each
half is the engine's until it is sent again. So halves are looked at together when the next header leaves both alone,
and what was sent is changed where it lies. Where one half is another address's too, and they would have to differ, it
is Unsupported.
"""
from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Final

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.errors import Unsupported
from tinyhw.core.layout import Packet
from tinyhw.queues.moved import Moves, Patch
from tinyhw.queues.nv.effects import RELEASES
from tinyhw.queues.nv.qmds import BANKS, DEPENDENTS, POINTER_SHIFT
from tinyhw.queues.world import Follow, Item, Queue
from tinyhw.wire import gpfifo, methods, qmd

_HALVES: Final = (("UPPER", "LOWER"), ("ADDRESS_UPPER", "ADDRESS_LOWER"), ("OFFSET_UPPER", "OFFSET_LOWER"),
                  ("QMD_ADDRESS_SHIFTED8_UPPER", "QMD_ADDRESS_SHIFTED8_LOWER"))
_NO_ADDRESS: Final = ("PAYLOAD", "SIZE", "WINDOW")  # in a name: numbers of two halves that are none
_SHIFTED: Final = "SHIFTED8"
_LOW: Final = 0xFFFFFFFF
_HOST: Final = -1  # the host engine's methods are of no subchannel
# Of a QMD: each address by its newest name, how many there are, and how far its value is shifted.
_QMD: Final = (("PROGRAM_ADDRESS", 0, 0), ("CIRCULAR_QUEUE_ADDR", 0, 0), ("CONSTANT_BUFFER_ADDR", BANKS, 0),
               ("RELEASE_SEMAPHORE_ADDR", RELEASES, 0), ("DEPENDENT_QMD_POINTER", DEPENDENTS, POINTER_SHIFT))

@dataclass(frozen=True, slots=True)
class Half:
  """Where a method has half of an address, or a whole shifted one: the bits of its value."""
  method: int
  mask: int


@dataclass(frozen=True, slots=True)
class Pair:
  """An address in two methods, or in one where there is no `high`."""
  low: Half
  high: Half | None
  shift: int


@dataclass(slots=True)
class Sent:
  """What a method was sent last: in the capture, and here; where, in this submission. `fixed`: it is part of an
  address, and cannot be part of one that wants another value."""
  value: int
  here: int
  at: int = 0
  immediate: int = -1  # the header that holds it
  fixed: bool = False


@dataclass(slots=True)
class Engine:
  """What a channel was sent."""
  sent: dict[tuple[int, int], Sent] = field(default_factory=dict)
  pending: dict[tuple[int, Pair], None] = field(default_factory=dict)
  inline: dict[int, list[int]] = field(default_factory=dict)  # of subchannels: where words of an inline QMD lie


@functools.cache
def pairs(module: ModuleType) -> dict[int, Pair]:
  """The addresses among a class's methods, by each method that has part of one."""
  if module is host: return _of_host()
  found: dict[int, Pair] = {}
  by_name: dict[str, Any] = {n: m for n, m in vars(module).items() if hasattr(m, "OFFSET") and hasattr(m, "FIELDS")}
  for name, upper in by_name.items():
    if any(word in name for word in _NO_ADDRESS): continue
    if (whole := _field(upper, "QMD_ADDRESS_SHIFTED8")) is not None:
      found[upper.OFFSET] = Pair(Half(upper.OFFSET, whole), None, 8)
    lower, masks = _lower(name, upper, by_name)
    if lower is None: continue
    pair = Pair(Half(lower.OFFSET, masks[1]), Half(upper.OFFSET, masks[0]),
                8 if any(_SHIFTED in f.name for f in upper.FIELDS) else 0)
    found[upper.OFFSET] = found[lower.OFFSET] = pair
  return found


def _of_host() -> dict[int, Pair]:
  rows = ((host.SEM_ADDR_LO, host.SEM_ADDR_HI), (host.SEMAPHOREB, host.SEMAPHOREA))
  made = [Pair(Half(low.OFFSET, _mask(low)), Half(high.OFFSET, _mask(high)), 0) for low, high in rows]
  return {half.method: pair for pair in made for half in (pair.low, pair.high) if half is not None}


def _lower(name: str, upper: Any, by_name: dict[str, Any]) -> tuple[Any, tuple[int, int]]:
  """The method with the low half of an address, and both halves' bits; None for a method that has no high half."""
  twin = name.replace("UPPER", "LOWER") if "UPPER" in name else name[:-1] + {"A": "B", "B": "A"}.get(name[-1], "")
  for high, low in _HALVES:
    mask, below = _field(upper, high), _field(by_name[twin], low) if twin in by_name else None
    if mask is not None and below is not None: return by_name[twin], (mask, below)
  if not name.startswith("OFFSET_") or not name.endswith("_UPPER"): return None, (0, 0)
  found = by_name.get(twin) or by_name.get(name.removesuffix("_UPPER"))
  return found, (_mask(upper), _mask(found) if found is not None else 0)


def _field(method: Any, name: str) -> int | None:
  return next((f.mask for f in method.FIELDS if f.name == name), None)


def _mask(method: Any) -> int: return int(method.FIELDS[0].mask)


class Moved:
  """The words of channels whose memory has moved."""

  def __init__(self, moves: Moves) -> None:
    self._moves = moves
    self._engines: dict[int, Engine] = {}
    self._patches: dict[int, tuple[int, int]] = {}
    self.data: list[tuple[int, int]] = []  # (where, number): of inline data, what may be an address of moved memory

  def patches(self, queue: Queue, follow: Follow) -> Iterator[Patch]:
    """The words of a submission that have addresses, or are no address for sure, and what they are here. Raises
    Unsupported."""
    engine = self._engines.setdefault(queue.key, Engine())
    self._patches, self.data = {}, []
    launched = {id(launch.item) for launch in follow.launches}
    for item in follow.items:
      if isinstance(item.packet, methods.Send): self._sent(engine, item, item.packet)
      elif isinstance(item.packet, gpfifo.Segment): self._segment(item, item.packet)
      elif id(item) in launched: self._qmd(engine, item, item.packet)
      self._settle(engine, set())
    for sent in engine.sent.values(): sent.at, sent.immediate = 0, -1
    return ((at, old, new) for at, (old, new) in self._patches.items())

  def _segment(self, item: Item, entry: gpfifo.Segment) -> None:
    self._words(item.address, item.words, replace(entry, address=self._moves.at(entry.address)).encode())

  def _words(self, at: int, old: tuple[int, ...], new: int) -> None:
    for n, word in enumerate(old): self._patches[at + 4 * n] = word, new >> 32 * n & _LOW

  # ---- methods

  def _sent(self, engine: Engine, item: Item, sent: methods.Send) -> None:
    touched: dict[tuple[int, Pair], None] = {}
    module = methods.declared(item.class_id) if item.class_id in methods.CLASS_IDS else None
    writes = list(sent.writes())
    for n, (method, value) in enumerate(writes):
      channel = _HOST if method < methods.HOST_END else sent.subchannel
      known = host if channel == _HOST else module
      if known is None: continue
      if known is not host: self._inline(engine, known, channel, method, item.address + 4 * (n + 1))
      pair = pairs(known).get(method)
      if pair is None: continue
      inside = sent.header is methods.IMMD
      engine.sent[channel, method] = Sent(value, value, item.address + (0 if inside else 4 * (n + 1)),
                                          item.words[0] if inside else -1)
      touched[channel, pair] = None
    self._settle(engine, set(touched))
    engine.pending |= touched
    self._data(item, writes, module)

  def _inline(self, engine: Engine, module: ModuleType, channel: int, method: int, at: int) -> None:
    """Where words of a QMD lie that is sent inline."""
    found = methods.by_address(module).get(method)
    name = found[0].__name__ if found is not None else ""
    if name == "SET_INLINE_QMD_ADDRESS_B": engine.inline[channel] = []
    elif name == "LOAD_INLINE_QMD_DATA": engine.inline.setdefault(channel, []).append(at)

  def _data(self, item: Item, writes: list[tuple[int, int]], module: ModuleType | None) -> None:
    """Numbers in data that goes to memory by way of methods."""
    if module is None: return
    found = methods.by_address(module).get(writes[-1][0]) if writes else None
    if found is None or found[0].__name__ != "LOAD_INLINE_DATA": return
    values = [value for _, value in writes]
    for n, (low, high) in enumerate(zip(values, values[1:])):
      number = low | high << 32
      if self._moves.at(number) != number: self.data.append((item.address + 4 * (n + 1), number))

  def _settle(self, engine: Engine, touched: set[tuple[int, Pair]]) -> None:
    """Move the addresses that are sent as a whole: those that this header leaves alone."""
    for key in [k for k in engine.pending if k not in touched]:
      del engine.pending[key]
      self._address(engine, *key)

  def _address(self, engine: Engine, channel: int, pair: Pair) -> None:
    low = engine.sent.get((channel, pair.low.method))
    high = engine.sent.get((channel, pair.high.method)) if pair.high is not None else None
    if low is None or pair.high is not None and high is None: return  # half of it was never sent
    top = high.value & pair.high.mask if high is not None and pair.high is not None else 0
    moved = self._moves.at(((low.value & pair.low.mask) | top << 32) << pair.shift) >> pair.shift
    self._put(low, low.value & ~pair.low.mask | moved & pair.low.mask)
    if high is not None and pair.high is not None:
      if moved >> 32 & ~pair.high.mask: raise _unsupported(f"{moved << pair.shift:#x}, which has more bits than it")
      self._put(high, high.value & ~pair.high.mask | moved >> 32)

  def _put(self, sent: Sent, value: int) -> None:
    """A method's value here."""
    if sent.here == value and (sent.fixed or not sent.at): return
    if not sent.at: raise _unsupported("a half that was sent in a submission before, as part of another address")
    if sent.fixed: raise _unsupported("a half that is part of another address too")
    sent.here, sent.fixed = value, True
    if sent.immediate < 0: self._patches[sent.at] = sent.value, value
    elif value > methods.IMMEDIATE: raise _unsupported("a half that stands in its header")
    else: self._patches[sent.at] = sent.immediate, _immediate(sent.immediate, value)

  # ---- descriptors

  def _qmd(self, engine: Engine, item: Item, packet: Packet) -> None:
    made = type(packet).decode(item.words[:type(packet).DWORDS])
    for name, count, shift in _QMD:
      for index in range(count) if count else (None,):
        if not qmd.has(type(made), name, index): continue
        old = qmd.read(made, name, index) << shift
        if (new := self._moves.at(old)) != old: qmd.write(made, name, new >> shift, index)
    places = next((rows for rows in engine.inline.values() if len(rows) >= len(item.words)), None)
    for n, (old, new) in enumerate(zip(item.words, made.encode())):
      self._patches[places[n] if places is not None else item.address + 4 * n] = old, new
    if places is not None: places.clear()


def _immediate(word: int, value: int) -> int:
  """A header with another value in it."""
  made = methods.IMMD.decode(word)
  made.DATA = value
  return int(made.value())


def _unsupported(what: str) -> Unsupported:
  return Unsupported("moved memory", f"an address in methods with {what}", where="replay",
                     hint="replay without --move, where the addresses of the capture are free")
