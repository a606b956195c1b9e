"""Streams of packets by their headers alone: what there is is counted, no packet is built.

    heads.count("pm4", words, counts)           # words of one kind
    heads.Ring(queue).submission(event, counts) # what a doorbell of a capture submits, and the kernels that it launches
"""
from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import hsa, pm4_gfx11, sdma_v6
from tinyhw.autogen import nv_c56f as host
from tinyhw.core.errors import DecodeError
from tinyhw.queues.amd.stream import DEEPEST, words_of
from tinyhw.queues.cuda.stream import kind_of
from tinyhw.queues.events import Doorbell, Work
from tinyhw.queues.nv.qmds import POINTER_SHIFT, leads, longest
from tinyhw.queues.nv.stream import NvFollow, NvState
from tinyhw.queues.plans import Plans
from tinyhw.queues.world import Queue
from tinyhw.wire import aql, gpfifo, methods, pm4, qmd, sdma


@dataclass
class Counts:
  """Packets by kind. `odd` are dwords that are no packet's."""
  packets: Counter[str] = field(default_factory=Counter)
  odd: int = 0


_SETS: Final = frozenset((pm4_gfx11.SET_SH_REG.OP, pm4_gfx11.SET_SH_REG_INDEX.OP))
_PROGRAM: Final = tuple(r.OFFSET - pm4_gfx11.SET_SH_REG_START for r in (gc.COMPUTE_PGM_LO, gc.COMPUTE_PGM_HI))
_OFFSETS: Final = next(f.mask for f in pm4_gfx11.SET_SH_REG.FIELDS if f.name == "reg_offset")
_NEAR: Final = range(_PROGRAM[-1] + 1)  # the first register of a packet that sets them, at the latest

Met = Callable[[int, int], None]
"""Told of a packet that is asked for: the index of its first dword, and how many it has."""


def nobody(at: int, size: int) -> None:
  """Asks for no packet."""


def count(kind: str, words: Sequence[int], out: Counts) -> None:
  """Add what words of one of `raw.KINDS` hold."""
  _WALKS[kind](words, out)


def _pm4(words: Sequence[int], out: Counts, asked: frozenset[int] = frozenset(), met: Met = nobody,
         read: Met = nobody) -> None:
  """With what sets the program's registers, where packets that set registers are asked for. `read` is told of the
  dwords by which it goes, and how many they are."""
  at, end, heads = 0, len(words), dict[int, int]()
  only, nop = pm4.NOP_HEADER_ONLY, pm4_gfx11.NOP.OP
  noted = read is not nobody
  while at < end:
    word = words[at]
    if noted: read(at, 1)
    if word >> 30 == 3:
      opcode, size = word >> 8 & 0xFF, (word >> 16 & 0x3FFF) + 2
      if opcode == nop and size == only + 2: size = 1
      heads[opcode] = heads.get(opcode, 0) + 1
      if opcode in asked:
        if noted and opcode in _SETS: read(at + 1, 1)
        if opcode not in _SETS: met(at, size)
        elif at + 1 < end and words[at + 1] & _OFFSETS in _NEAR: met(at, size)
      at += size
    elif word == pm4.PACKET_2:
      at += 1
      heads[-1] = heads.get(-1, 0) + 1
    else:
      at += 1
      out.odd += 1
  for opcode, found in heads.items(): out.packets["PACKET2" if opcode < 0 else pm4.name(opcode << 8)] += found


def _sdma(words: Sequence[int], out: Counts, asked: str = "", met: Met = nobody, read: Met = nobody) -> None:
  at, end, head, counted = 0, len(words), sdma.head, dict[str, int]()
  while at < end:
    name, fixed = head(words[at])
    size = fixed or sdma.size_of(words, at)
    read(at, 1 if fixed else size or end - at)
    if not size or at + size > end:  # where the next begins follows from this one
      out.odd += end - at
      break
    counted[name] = counted.get(name, 0) + 1
    if name == asked: met(at, size)
    at += size
  out.packets.update(counted)


def _aql(words: Sequence[int], out: Counts) -> None:
  unit = aql.PACKET_BYTES // 4
  for at in range(0, len(words) - unit + 1, unit):
    cls = aql.KINDS.get(words[at] & 0xFF)
    if cls is None: out.packets[f"packet type {words[at] & 0xFF}"] += 1
    else: out.packets[cls.__name__] += 1
  out.odd += len(words) % unit


def _gpfifo(words: Sequence[int], out: Counts) -> None:
  for value in _values(words):
    try: out.packets[type(gpfifo.decode(value)).__name__] += 1
    except DecodeError: out.odd += 2
  out.odd += len(words) % 2


def _pushbuffer(words: Sequence[int], out: Counts, asked: Callable[[int], bool] = lambda word: False,
                met: Met = nobody, read: Met = nobody) -> None:
  at, end, counted = 0, len(words), dict[str, int]()
  while at < end:
    word = words[at]
    read(at, 1)
    name, size = _head(word)
    if name: counted[name] = counted.get(name, 0) + 1
    else: out.odd += 1
    if asked(word): met(at, size)
    at += size
  out.packets.update(counted)


@functools.lru_cache(4096)
def _head(word: int) -> tuple[str, int]:
  """What begins with a word of a pushbuffer, and its words; empty for what is none."""
  try:
    declared, size = methods.header(word), methods.size_of(word)
    found = methods.control(word) if declared is None else None
  except DecodeError: return "", 1
  if declared is not None: return declared.__name__, size
  return "" if found is None else "NOP" if isinstance(found, int) else type(found).__name__, 1


def _qmd(words: Sequence[int], out: Counts) -> None: out.packets["QMD"] += 1


_WALKS: Final[dict[str, Callable[[Sequence[int], Counts], None]]] = {
  "pm4": _pm4, "sdma": _sdma, "aql": _aql, "gpfifo": _gpfifo, "pushbuffer": _pushbuffer, "qmd": _qmd}


def _values(words: Sequence[int]) -> list[int]: return [a | b << 32 for a, b in zip(words[::2], words[1::2])]


# ---- submissions


@dataclass(slots=True, eq=False)
class HeaderShape:
  """What words are made of that have the same in those places by which a walk goes: its counts, and the packets that
  it has met, by index and dwords. `total` counts all packets. `launches`: where addresses of QMDs are, and whose
  methods send them (dword, subchannel, class), where that is all that was met."""
  counts: tuple[tuple[str, int], ...]
  total: int
  odd: int
  met: tuple[tuple[int, int], ...]
  launches: tuple[tuple[int, int, int], ...] | None = None
  asked: bool = False  # whether this was found out


Walk = Callable[[Sequence[int], Counts, Met, Met], None]
"""Goes through words: where it counts, who is told of packets, and of the dwords by which it goes."""


def _shaped(shapes: Plans[HeaderShape], raw: bytes, out: Counts, walk: Walk) -> HeaderShape:
  """Count words, by what is known of their shape."""
  shape = shapes.find(raw)
  if shape is None:
    counts, met, seen = Counts(), list[tuple[int, int]](), 0
    def read(at: int, size: int) -> None:
      nonlocal seen
      seen |= (1 << 32 * size) - 1 << 32 * at
    walk(words_of(raw), counts, lambda at, size: met.append((at, size)), read)
    shape = HeaderShape(tuple(counts.packets.items()), counts.packets.total(), counts.odd, tuple(met))
    shapes.keep(raw, (1 << 8 * len(raw)) - 1 & ~seen, shape)
  packets = out.packets
  for name, found in shape.counts: packets[name] += found
  out.odd += shape.odd
  return shape


_CALL: Final = pm4_gfx11.INDIRECT_BUFFER.OP
_LAUNCHES: Final = frozenset((pm4_gfx11.DISPATCH_DIRECT.OP, pm4_gfx11.DISPATCH_INDIRECT.OP))
_ASKED: Final = _SETS | _LAUNCHES | {_CALL}
_CALLED: Final = sdma_v6.SDMA_PKT_INDIRECT.__name__
_OBJECT: Final = hsa.hsa_kernel_dispatch_packet_t.kernel_object.offset // 4  # type: ignore[attr-defined]  # of ctypes
_LAUNCHING: Final = ("SEND_PCAS_A", "SET_INLINE_QMD_ADDRESS_A", "SET_INLINE_QMD_ADDRESS_B", "LOAD_INLINE_QMD_DATA")
_SEGMENT: Final = gpfifo.Segment.__name__
_DISPATCH: Final = hsa.HSA_PACKET_TYPE_KERNEL_DISPATCH


_SHAPES: Final = {kind: Plans[HeaderShape]() for kind in ("pm4", "sdma")}
_PUSHED: Final[dict[tuple[int, ...], Plans[HeaderShape]]] = {}  # of channels with these classes


def _walk_pm4(words: Sequence[int], out: Counts, met: Met, read: Met) -> None: _pm4(words, out, _ASKED, met, read)
def _walk_sdma(words: Sequence[int], out: Counts, met: Met, read: Met) -> None: _sdma(words, out, _CALLED, met, read)


class Ring:
  """A queue's submissions, one after the other."""

  def __init__(self, queue: Queue) -> None:
    self._queue, self._program, self._launched = queue, [0, 0], list[int]()
    self._pieces: dict[int, bytes] = {}
    self.packets = 0  # so far

  def submission(self, event: Doorbell, out: Counts) -> list[int]:
    """Count what a doorbell submits; the addresses of the kernels that it launches. A capture must be gone through from
    its beginning."""
    if isinstance(event, Work):
      out.packets[kind_of(event).__name__] += 1
      self.packets += 1
      return [event.entry] if event.entry else []
    self._launched = []
    self._pieces = {at: data for at, data in event.pieces}
    raw = event.ring[0][1] if len(event.ring) == 1 else b"".join(data for _, data in event.ring)
    if self._queue.kind == "gpfifo": self._gpfifo(raw, out)
    elif self._queue.kind == "aql": self._aql(words_of(raw), out)
    else: self._engine(raw, out, 0)
    return self._launched

  def _engine(self, raw: bytes, out: Counts, depth: int) -> None:
    kind, words = self._queue.kind, memoryview(raw[:len(raw) & ~3]).cast("I")
    shape = _shaped(_SHAPES[kind], raw, out, _walk_pm4 if kind == "pm4" else _walk_sdma)
    self.packets += shape.total
    for at, size in shape.met:
      if kind == "pm4" and (opcode := words[at] >> 8 & 0xFF) != _CALL:
        if opcode in _LAUNCHES: self._launched.append(self._entry())
        elif at + 1 < len(words): self._set(words[at + 1] & _OFFSETS, words[at + 2:at + size])
        continue
      call: Any = (pm4 if kind == "pm4" else sdma).decode(words.tolist(), at)[0]
      piece = self._pieces.get(call.ib_base)
      if piece is not None and depth < DEEPEST: self._engine(piece[:4 * call.ib_size], out, depth + 1)

  def _other(self, walk: Callable[[Sequence[int], Counts], None], words: Sequence[int], out: Counts) -> None:
    """Count words, of what no shape is kept."""
    counts = Counts()
    walk(words, counts)
    out.packets.update(counts.packets)
    out.odd += counts.odd
    self.packets += counts.packets.total()

  def _set(self, first: int, values: Sequence[int]) -> None:
    for i, offset in enumerate(_PROGRAM):
      if first <= offset < first + len(values): self._program[i] = values[offset - first]

  def _entry(self) -> int: return self._program[0] << 8 | (self._program[1] & 0xFF) << 40

  def _aql(self, words: Sequence[int], out: Counts) -> None:
    self._other(_aql, words, out)
    for at in range(0, len(words) - aql.PACKET_BYTES // 4 + 1, aql.PACKET_BYTES // 4):
      if words[at] & 0xFF == _DISPATCH: self._launched.append(words[at + _OBJECT] | words[at + _OBJECT + 1] << 32)

  # ---- NVIDIA

  def _gpfifo(self, raw: bytes, out: Counts) -> None:
    state: NvState = self._queue.state
    follow: NvFollow | None = None
    behind: set[int] = set()
    for value in memoryview(raw[:len(raw) & ~7]).cast("Q"):
      try: found = gpfifo.piece(value)
      except DecodeError: found = None
      if found is None:
        self._other(_gpfifo, (value & 0xFFFFFFFF, value >> 32), out)
        continue
      out.packets[_SEGMENT] += 1
      self.packets += 1
      piece = self._pieces.get(found[0])
      if piece is None: continue
      if len(piece) != 4 * found[1]: piece = piece[:4 * found[1]]
      shape = self._pushed(piece, out)
      if not shape.met: continue
      if shape.launches is not None and all(state.class_of(sub) == cls for _, sub, cls in shape.launches):
        for at, _, class_id in shape.launches:
          self._launch(class_id, int.from_bytes(piece[4 * at:4 * at + 4], "little") << POINTER_SHIFT, out, behind)
        continue
      if follow is None:
        follow = NvFollow(self._queue, [], self._read)
        follow.followed = behind
      first, words = len(follow.launches), words_of(piece)
      for at, size in shape.met: follow.words(0, tuple(words[at:at + size]))
      self._launched += (launch.entry for launch in follow.launches[first:])
    for item in [] if follow is None else follow.items:
      if isinstance(item.packet, methods.Send): continue  # those are counted
      if item.packet is None: out.odd += len(item.words)
      else:
        out.packets[type(item.packet).__name__] += 1
        self.packets += 1

  def _launch(self, class_id: int, address: int, out: Counts, behind: set[int]) -> None:
    """The same as `NvFollow`'s."""
    raw = self._read(address, longest(class_id)) or self._read(address, 1 << POINTER_SHIFT)
    if raw is None: return
    try: name, entry, others = leads(class_id, raw)
    except DecodeError:
      out.odd += len(raw) // 4
      return
    out.packets[name] += 1
    self.packets += 1
    self._launched.append(entry)
    for other in others:
      if other in behind: continue
      behind.add(other)
      self._launch(class_id, other, out, behind)

  def _read(self, address: int, size: int) -> bytes | None:
    found = self._pieces.get(address)
    return None if found is None or len(found) < size else found[:size]

  def _pushed(self, raw: bytes, out: Counts) -> HeaderShape:
    classes = tuple(self._queue.state.classes)
    if (shapes := _PUSHED.get(classes)) is None: shapes = _PUSHED[classes] = Plans[HeaderShape]()
    doing = _doing(classes)
    def walk(words: Sequence[int], counts: Counts, met: Met, read: Met) -> None:
      _pushbuffer(words, counts, lambda word: _sends(word, doing), met, read)
    shape = _shaped(shapes, raw, out, walk)
    self.packets += shape.total
    if shape.met and shape.launches is None and not shape.asked:
      shape.asked = True
      shape.launches = self._plainly(shape, words_of(raw))
    return shape

  def _plainly(self, shape: HeaderShape, words: Sequence[int]) -> tuple[tuple[int, int, int], ...] | None:
    """See `HeaderShape.launches`: what was met are headers that send the addresses of QMDs, and nothing else of it."""
    found = []
    for at, size in shape.met:
      try: sent, _ = methods.decode(words, at)
      except DecodeError: return None
      assert isinstance(sent, methods.Send)
      class_id = self._queue.state.class_of(sent.subchannel)
      if class_id not in qmd.CLASS_IDS or size != 2: return None
      if sent.method != methods.declared(class_id).SEND_PCAS_A.OFFSET: return None
      found.append((at + 1, sent.subchannel, class_id))
    return tuple(found)


@functools.lru_cache(64)
def _doing(classes: tuple[int, ...]) -> frozenset[int]:
  """The methods that launch kernels of classes, and bind others."""
  found = {host.SET_OBJECT.OFFSET}
  for class_id in classes:
    if class_id not in qmd.CLASS_IDS: continue
    for name in _LAUNCHING:
      method = getattr(methods.declared(class_id), name)
      found |= {method.OFFSET + n * (method.APART or 4) for n in range(method.COPIES)}
  return frozenset(found)


@functools.lru_cache(4096)
def _sends(word: int, doing: frozenset[int]) -> bool:
  """Whether a header sends to one of these methods."""
  if (declared := methods.header(word)) is None: return False
  try: fields = declared.decode(word)
  except DecodeError: return False
  first, count = fields.ADDRESS << 2, 1 if declared is methods.IMMD else fields.COUNT
  if declared is methods.NONINCR: count = 1
  elif declared is methods.ONEINCR: count = 2
  return any(first <= method < first + 4 * count for method in doing)
