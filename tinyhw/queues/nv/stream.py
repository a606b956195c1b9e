"""What NVIDIA's host engine reads of a submission: GPFIFO entries, the pushbuffers' methods, and QMDs.

`NvState` is what a channel keeps from one submission to the next: the classes of its subchannels and the values of
their methods, by which a launch or a copy knows its addresses.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Final

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.core.layout import Packet
from tinyhw.queues.effects import Does, Effect
from tinyhw.queues.nv import effects
from tinyhw.queues.world import Item, Launch, Queue, Read
from tinyhw.wire import gpfifo, methods, qmd

BANKS: Final = 8  # constant buffers of a QMD
DEPENDENTS: Final = 2  # QMDs that it can have run behind itself
POINTER_SHIFT: Final = 8  # of their addresses in it: QMDs are 256 bytes apart
_COPY_CLASS, _COMPUTE_CLASS = 0xB5, 0xC0
_FORGETS: Final = {"INVALIDATE_SHADER_CACHES": True, "INVALIDATE_SHADER_CACHES_NO_WFI": False}  # whether it waits


@dataclass(slots=True)
class NvState:
  """Method values by subchannel and byte address; the host engine's own are subchannel -1."""
  values: dict[tuple[int, int], int] = field(default_factory=dict)
  classes: list[int] = field(default_factory=list)
  bound: dict[int, int] = field(default_factory=dict)
  inline: dict[int, tuple[int, list[int]]] = field(default_factory=dict)  # (first dword, words) of QMDs sent inline

  def class_of(self, subchannel: int) -> int:
    """The class behind a subchannel, 0 where none is known."""
    if subchannel in self.bound: return self.bound[subchannel]
    fitting = [c for c in self.classes if (c & 0xFF == _COPY_CLASS) == (subchannel == 4)] or self.classes
    return fitting[0] if fitting else 0


class NvFollow:
  """See `world.Follow`."""

  def __init__(self, queue: Queue, ring: list[tuple[int, bytes]], read: Read) -> None:
    self.queue, self._read = queue, read
    self.items: list[Item] = []
    self.launches: list[Launch] = []
    self.roots: list[tuple[int, int]] = []
    self.pieces: list[tuple[int, bytes]] = []
    self._followed: set[int] = set()
    if queue.state is None: queue.state = NvState()
    self.state: NvState = queue.state
    for address, raw in ring:
      values = memoryview(raw[:len(raw) & ~7]).cast("Q").tolist()
      for index, value in enumerate(values): self._entry(address + index * gpfifo.SIZE, value)

  def _entry(self, address: int, value: int) -> None:
    words = value & 0xFFFFFFFF, value >> 32
    try: entry = gpfifo.decode(value)
    except DecodeError as error:
      self.items.append(Item(address, words, None, 0, str(error), self.queue))
      return
    self.items.append(Item(address, words, entry, queue=self.queue))
    if isinstance(entry, gpfifo.Segment): self._segment(entry.address, entry.dwords)

  def _segment(self, address: int, dwords: int) -> None:
    raw = self._read(address, 4 * dwords)
    if raw is None or len(raw) < 4 * dwords:
      self.items.append(Item(address, (), None, 1, f"{4 * dwords} bytes of a pushbuffer that are not known",
                             self.queue))
      return
    self.pieces.append((address, raw))
    self.words(address, tuple(memoryview(raw).cast("I").tolist()))

  def words(self, address: int, words: tuple[int, ...], depth: int = 1) -> None:
    """Go through the words of a pushbuffer."""
    at = 0
    while at < len(words):
      try: sent, size = methods.decode(words, at)
      except DecodeError as error:
        self.items.append(Item(address + 4 * at, words[at:], None, depth, str(error), self.queue))
        return
      item = Item(address + 4 * at, words[at:at + size], sent, depth, queue=self.queue)
      if isinstance(sent, methods.Send): item.class_id = self.state.class_of(sent.subchannel)
      self.items.append(item)
      if isinstance(sent, methods.Send): self._sent(item, sent)
      at += size

  # ---- methods

  def _sent(self, item: Item, sent: methods.Send) -> None:
    state, channel = self.state, sent.subchannel
    class_id = state.class_of(channel)
    module: ModuleType | None = None
    for method, value in sent.writes():
      if method == host.SET_OBJECT.OFFSET:
        class_id = state.bound[channel] = value & 0xFFFF
        module = None
        continue
      if method < methods.HOST_END:
        state.values[-1, method] = value
        if method == host.SEM_EXECUTE.OFFSET: self._note(item, effects.semaphore(state.values, value))
        elif method == host.WFI.OFFSET: self._note(item, [Effect(Does.IDLE)])
        continue
      state.values[channel, method] = value
      if module is None:
        try: module = methods.declared(class_id)
        except Unsupported: return
      found = methods.by_address(module).get(method)
      if found is not None: self._method(item, module, found[0].__name__, found[1], channel, value)

  def _note(self, item: Item, found: Iterable[Effect]) -> None:
    """Add to what an item does; memory that it names is reached. What cannot be read is the item's error."""
    try:
      for effect in found:
        item.effects.append(effect)
        if effect.address: self.roots.append((effect.address, 0))
    except (DecodeError, Unsupported) as error: item.error = str(error)

  def value(self, module: ModuleType, channel: int, name: str) -> int:
    """What a method was sent last."""
    return self.state.values.get((channel, getattr(module, name).OFFSET), 0)

  def _method(self, item: Item, module: ModuleType, name: str, copy: int, channel: int, value: int) -> None:
    if name == "LAUNCH_DMA" and module.CLASS & 0xFF == _COPY_CLASS:
      self._note(item, effects.copy(module, self.state.values, channel, value))
    elif name == "LAUNCH_DMA": self._note(item, effects.inline(module, self.state.values, channel))
    elif name in _FORGETS: self._note(item, effects.forget(getattr(module, name).decode(value), _FORGETS[name]))
    elif name == "SEND_PCAS_A": self._launch(item, module, value << 8, None)
    elif name == "SET_INLINE_QMD_ADDRESS_B":
      self.state.inline[channel] = self.value(module, channel, "SET_INLINE_QMD_ADDRESS_A") << 40 | value << 8, []
    elif name == "LOAD_INLINE_QMD_DATA":
      at, words = self.state.inline.get(channel, (0, []))
      words.append(value)
      self.state.inline[channel] = at, words
      if len(words) == max(d.DWORDS for d in qmd.versions(module.CLASS).values()):
        self._launch(item, module, at, tuple(words))
        self.state.inline.pop(channel)

  def _launch(self, item: Item, module: ModuleType, address: int, words: tuple[int, ...] | None) -> None:
    longest = max(d.DWORDS for d in qmd.versions(module.CLASS).values())
    if words is None:
      raw = self._read(address, 4 * longest) or self._read(address, 256)
      if raw is None:
        self.items.append(Item(address, (), None, item.depth + 1, "a QMD that is not known", self.queue))
        return
      self.pieces.append((address, raw))
      words = tuple(memoryview(raw).cast("I").tolist())
    try: made = qmd.decode(module.CLASS, words)
    except DecodeError as error:
      self.items.append(Item(address, words, None, item.depth + 1, str(error), self.queue))
      return
    inner = Item(address, words[:type(made).DWORDS], made, item.depth + 1, queue=self.queue)
    self.items.append(inner)
    self._note(inner, effects.launch(made))
    self._roots_of(made)
    banks = [b for b in range(BANKS) if _flag(made, "CONSTANT_BUFFER_VALID", b)]
    first = qmd.read(made, "CONSTANT_BUFFER_ADDR", 0) if 0 in banks else 0
    size = qmd.read(made, "CONSTANT_BUFFER_SIZE", 0) if 0 in banks else 0
    grid = tuple(qmd.read(made, f"GRID_{n}") for n in ("WIDTH", "HEIGHT", "DEPTH"))
    block = tuple(qmd.read(made, f"CTA_THREAD_DIMENSION{n}") for n in range(3))
    self.launches.append(Launch(inner, qmd.read(made, "PROGRAM_ADDRESS"), first, size, (grid[0], grid[1], grid[2]),
                                (block[0], block[1], block[2]), state={"qmd": made}))
    for n in range(DEPENDENTS):  # what it has run behind itself, as far as nobody has come here before
      if not (qmd.has(type(made), "DEPENDENT_QMD_ENABLE", n) and qmd.read(made, "DEPENDENT_QMD_ENABLE", n)): continue
      behind = qmd.read(made, "DEPENDENT_QMD_POINTER", n) << POINTER_SHIFT
      if behind in self._followed: continue
      self._followed.add(behind)
      self._launch(inner, module, behind, None)

  def _roots_of(self, made: Packet) -> None:
    self.roots.append((qmd.read(made, "PROGRAM_ADDRESS"), 0))
    for bank in range(BANKS):
      if _flag(made, "CONSTANT_BUFFER_VALID", bank):
        self.roots.append((qmd.read(made, "CONSTANT_BUFFER_ADDR", bank), qmd.read(made, "CONSTANT_BUFFER_SIZE", bank)))


def _flag(made: Packet, name: str, index: int) -> bool:
  try: return bool(qmd.read(made, name, index))
  except Unsupported: return False
