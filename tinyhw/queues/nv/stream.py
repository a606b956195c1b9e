"""What NVIDIA's host engine reads of a submission: GPFIFO entries, the pushbuffers' methods, and QMDs.

`NvState` is what a channel keeps from one submission to the next: the classes of its subchannels and the values of
their methods, by which a launch or a copy knows its addresses.
"""
from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final, cast

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.queues.effects import Effect
from tinyhw.queues.nv import effects
from tinyhw.queues.nv.qmds import POINTER_SHIFT, described, longest
from tinyhw.queues.world import Item, Launch, Queue, Read
from tinyhw.wire import gpfifo, methods

_COPY_CLASS, _COMPUTE_CLASS = 0xB5, 0xC0
FORGETS: Final = {"INVALIDATE_SHADER_CACHES": True, "INVALIDATE_SHADER_CACHES_NO_WFI": False}  # whether it waits
# Methods that do something, the host engine's and the classes'; others leave a value.
_OF_HOST: Final = {m.OFFSET: m.__name__ for m in (host.SEM_EXECUTE, host.WFI)}
_DOES: Final = {*FORGETS, "LAUNCH_DMA", "SEND_PCAS_A", "SET_INLINE_QMD_ADDRESS_B", "LOAD_INLINE_QMD_DATA"}


@dataclass(slots=True)
class NvState:
  """Method values by subchannel and byte address; the host engine's own are subchannel -1."""
  values: dict[tuple[int, int], int] = field(default_factory=dict)
  classes: list[int] = field(default_factory=list)
  bound: dict[int, int] = field(default_factory=dict)
  inline: dict[int, tuple[int, list[int]]] = field(default_factory=dict)  # (first dword, words) of QMDs sent inline
  _fitting: dict[tuple[int, int], int] = field(default_factory=dict, compare=False, repr=False)

  def class_of(self, subchannel: int) -> int:
    """The class behind a subchannel, 0 where none is known."""
    if (bound := self.bound.get(subchannel)) is not None: return bound
    key = subchannel, len(self.classes)  # which only grow
    if (found := self._fitting.get(key)) is None:
      fitting = [c for c in self.classes if (c & 0xFF == _COPY_CLASS) == (subchannel == 4)] or self.classes
      found = self._fitting[key] = fitting[0] if fitting else 0
    return found


@dataclass(frozen=True, slots=True)
class Sent:
  """What is known of a header and its data by their words and by whose methods they are: the values that it leaves, and
  those of its methods that do something, in order, with the values that are there by then. Where all that these go by
  is in the header's own data, `effects` are theirs, with the `roots` of these, and `values` all that it sends."""
  steps: tuple[tuple[dict[tuple[int, int], int], ModuleType | None, str, int], ...]
  leaves: dict[tuple[int, int], int]
  effects: tuple[Effect, ...] | None
  roots: tuple[tuple[int, int], ...]
  values: dict[tuple[int, int], int]


class Asked(dict[tuple[int, int], int]):
  """Values of methods that note which others are asked for, of what was sent before."""

  def __init__(self, before: dict[tuple[int, int], int]) -> None:
    super().__init__()
    self._before = before
    self.asked: set[tuple[int, int]] = set()

  def get(self, method: tuple[int, int], default: Any = 0) -> Any:
    if method in self: return self[method]
    self.asked.add(method)
    return self._before.get(method, default)


@dataclass(slots=True)
class Words:
  """What is known of words of a pushbuffer: what they send, and what that means to classes."""
  sent: methods.Send | methods.Control
  own: tuple[int, ...]
  meanings: dict[int, Sent | None] = field(default_factory=dict)


Row = tuple[int, tuple[int, ...], methods.Send | methods.Control, tuple[Effect, ...], int]
"""Of a header or control word: its byte in a piece, its words, what it is, what it does, whose methods it sends."""


@dataclass(frozen=True, slots=True)
class KnownPiece:
  """What is known of a whole piece of a pushbuffer by its bytes, as long as its subchannels are of these `classes`: its
  rows up to each method that leads to more, what they leave, and that one (module, name, value, subchannel)."""
  classes: tuple[tuple[int, int], ...]
  parts: tuple[tuple[tuple[Row, ...], tuple[tuple[int, int], ...], dict[tuple[int, int], int],
                     tuple[ModuleType | None, str, int, int] | None], ...]


KEPT: Final = 1 << 14  # of each: memos of pure functions, since a driver's words come again
_WORDS: dict[tuple[int, ...], Words] = {}
_BLOCKS: dict[bytes, KnownPiece | None] = {}  # None of those that were met once


def decoded(words: tuple[int, ...], at: int) -> Words:
  """What stands at an index. Raises DecodeError."""
  own = words[at:at + methods.size_of(words[at])]
  found = _WORDS.get(own)
  if found is None:
    sent, size = methods.decode(words, at)
    if len(_WORDS) >= KEPT: _WORDS.clear()
    found = _WORDS[own[:size]] = Words(sent, own[:size])
  return found


def meaning(class_id: int, words: Words) -> Sent | None:
  """Of a header and its data. None where it depends on more: where it binds a class, or the class is not declared."""
  if class_id not in words.meanings:
    assert isinstance(words.sent, methods.Send)
    words.meanings[class_id] = _meaning(class_id, words.sent)
  return words.meanings[class_id]


Doing = tuple[int, ModuleType | None, str]
"""A method that does something: which of a header's, its class' declarations (none of the host engine), its name."""


@functools.lru_cache(1 << 12)
def _methods(class_id: int, header: Any, subchannel: int, first: int,
             count: int) -> tuple[tuple[tuple[int, int], ...], tuple[Doing, ...]] | None:
  """Of all headers that send so many words so, the methods' places among a state's values, and what does something.
  None where a meaning depends on more."""
  keys, doing = list[tuple[int, int]](), list[Doing]()
  module: ModuleType | None = None
  for n, method in enumerate(methods.Send(header, subchannel, first, (0,) * count).addresses()):
    if method == host.SET_OBJECT.OFFSET: return None
    if method < methods.HOST_END:
      keys.append((-1, method))
      if method in _OF_HOST: doing.append((n, None, _OF_HOST[method]))
      continue
    try: module = module or methods.declared(class_id)
    except Unsupported: return None
    keys.append((subchannel, method))
    if name := _doing(module, method): doing.append((n, module, name))
  return tuple(keys), tuple(doing)


def _meaning(class_id: int, sent: methods.Send) -> Sent | None:
  data, header = sent.data, cast(Any, sent.header)  # mypy does not know that classes have a hash
  found = _methods(class_id, header, sent.subchannel, sent.method, len(data))
  if found is None: return None
  keys, doing = found
  if not doing:
    leaves = dict(zip(keys, data))
    return Sent((), leaves, (), (), leaves)
  steps, begin = [], 0
  for n, module, name in doing:
    steps.append((dict(zip(keys[begin:n + 1], data[begin:n + 1])), module, name, data[n]))
    begin = n + 1
  return _summed(tuple(steps), dict(zip(keys[begin:], data[begin:])), sent.subchannel)


def _summed(steps: tuple[tuple[dict[tuple[int, int], int], ModuleType | None, str, int], ...],
            leaves: dict[tuple[int, int], int], channel: int) -> Sent:
  values, found = Asked({}), list[Effect]()
  for before, module, name, value in steps:
    values.update(before)
    try: does = _done(values, module, name, channel, value)
    except (DecodeError, Unsupported): does = None
    if does is None: return Sent(steps, leaves, None, (), {})
    found += does
  values.update(leaves)
  if values.asked: return Sent(steps, leaves, None, (), {})
  return Sent(steps, leaves, tuple(found), tuple((e.address, 0) for e in found if e.address), dict(values))


def _done(values: dict[tuple[int, int], int], module: ModuleType | None, name: str, channel: int,
          value: int) -> Iterable[Effect] | None:
  """What a method does, where it leads to no words; else None. Raises DecodeError and Unsupported."""
  if module is None: return effects.semaphore(values, value) if name == "SEM_EXECUTE" else [effects.IDLE]
  if name == "LAUNCH_DMA":
    return effects.copied(module, values, channel, value) if copies(module) else effects.inline(module, values, channel)
  return forgets(module, name, value) if name in FORGETS else None


def _doing(module: ModuleType, method: int) -> str:
  """The name of a class' method that does something; empty for others."""
  found = methods.by_address(module).get(method)
  return found[0].__name__ if found is not None and found[0].__name__ in _DOES else ""


def _block(items: list[Item]) -> KnownPiece | None:
  """What is known of a piece by the items that it was; None where it depends on more than its bytes and its classes."""
  classes: dict[int, int] = {}
  parts: list[tuple[tuple[Row, ...], tuple[tuple[int, int], ...], dict[tuple[int, int], int],
                    tuple[ModuleType | None, str, int, int] | None]] = []
  rows: list[Row] = []
  roots: list[tuple[int, int]] = []
  values: dict[tuple[int, int], int] = {}
  first = items[0].address
  for item in items:
    if item.depth != 1: continue  # what a method leads to
    packet = item.packet
    if packet is None or item.error: return None
    if not isinstance(packet, methods.Send):
      rows.append((item.address - first, item.words, packet, (), 0))
      continue
    does = meaning(item.class_id, decoded(item.words, 0))
    if does is None: return None
    classes[packet.subchannel] = item.class_id
    if does.effects is not None:
      rows.append((item.address - first, item.words, packet, does.effects, item.class_id))
      roots += does.roots
      values |= does.values
      continue
    rows.append((item.address - first, item.words, packet, (), item.class_id))
    for before, module, name, value in does.steps:
      values |= before
      parts.append((tuple(rows), tuple(roots), values, (module, name, value, packet.subchannel)))
      rows, roots, values = [], [], {}
    values |= does.leaves
  parts.append((tuple(rows), tuple(roots), values, None))
  return KnownPiece(tuple(classes.items()), tuple(parts))


class NvFollow:
  """See `world.Follow`."""

  def __init__(self, queue: Queue, ring: list[tuple[int, bytes]], read: Read) -> None:
    self.queue, self._read = queue, read
    self.items: list[Item] = []
    self.launches: list[Launch] = []
    self.roots: list[tuple[int, int]] = []
    self.pieces: list[tuple[int, bytes]] = []
    self.followed: set[int] = set()  # QMDs behind others
    if queue.state is None: queue.state = NvState()
    self.state: NvState = queue.state
    for address, raw in ring:
      values = memoryview(raw[:len(raw) & ~7]).cast("Q").tolist()
      for index, value in enumerate(values): self._entry(address + index * gpfifo.SIZE, value)

  def _entry(self, address: int, value: int) -> None:
    words = value & 0xFFFFFFFF, value >> 32
    try: entry = gpfifo.Segment(*piece) if (piece := gpfifo.piece(value)) else gpfifo.decode(value)
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
    state = self.state
    if (block := _BLOCKS.get(raw)) is not None:
      for channel, class_id in block.classes:
        if state.class_of(channel) != class_id: break
      else: return self._block(address, block)
    words, first = tuple(memoryview(raw).cast("I").tolist()), len(self.items)
    self.words(address, words)
    again = raw in _BLOCKS
    if len(_BLOCKS) >= KEPT: _BLOCKS.clear()
    if len(self.items) - first > 1: _BLOCKS[raw] = _block(self.items[first:]) if again else None

  def _block(self, address: int, block: KnownPiece) -> None:
    """The same as `words`, of a piece that is known."""
    queue, values, items = self.queue, self.state.values, self.items
    for rows, roots, sent, leads in block.parts:
      if rows:  # else it leads to one thing more
        items += [Item(address + at, own, packet, 1, "", queue, [*does], class_id)
                  for at, own, packet, does, class_id in rows]
        last = items[-1]
      if roots: self.roots += roots
      values.update(sent)
      if leads is not None: self._does(last, leads[0], leads[1], leads[3], leads[2])

  def words(self, address: int, words: tuple[int, ...], depth: int = 1) -> None:
    """Go through the words of a pushbuffer."""
    at, end, items, state, queue, size_of = 0, len(words), self.items, self.state, self.queue, methods.size_of
    classes: dict[int, int] = {}  # of subchannels, until one is bound
    while at < end:
      try: known = _WORDS.get(words[at:at + size_of(words[at])]) or decoded(words, at)
      except DecodeError as error:
        items.append(Item(address + 4 * at, words[at:], None, depth, str(error), queue))
        return
      sent, own = known.sent, known.own
      item = Item(address + 4 * at, own, sent, depth, "", queue, [], 0)
      items.append(item)
      at += len(own)
      if not isinstance(sent, methods.Send): continue
      channel = sent.subchannel
      if (class_id := classes.get(channel)) is None: class_id = classes[channel] = state.class_of(channel)
      item.class_id = class_id
      if (does := known.meanings.get(class_id)) is None: does = meaning(class_id, known)
      if does is None:
        self._sent(item, sent)
        classes = {}
      elif does.effects is None: self._known(item, does, channel)
      else:
        if does.values: state.values.update(does.values)
        if does.effects:
          item.effects += does.effects
          if does.roots: self.roots += does.roots

  # ---- methods

  def _known(self, item: Item, known: Sent, channel: int) -> None:
    """The same as `_sent`, of a header whose meaning is known."""
    values = self.state.values
    for before, module, name, value in known.steps:
      values.update(before)
      self._does(item, module, name, channel, value)
    if known.leaves: values.update(known.leaves)

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
        if method in _OF_HOST: self._does(item, None, _OF_HOST[method], channel, value)
        continue
      state.values[channel, method] = value
      if module is None:
        try: module = methods.declared(class_id)
        except Unsupported: return
      if name := _doing(module, method): self._does(item, module, name, channel, value)

  def _note(self, item: Item, found: Iterable[Effect]) -> None:
    """Add to what an item does; memory that it names is reached. What cannot be read is the item's error."""
    try:
      for effect in found:
        item.effects.append(effect)
        if effect.address: self.roots.append((effect.address, 0))
    except (DecodeError, Unsupported) as error: item.error = str(error)

  def _hosts(self, item: Item, name: str, value: int) -> None:
    """What a method of the host engine does."""
    try: found = effects.semaphore(self.state.values, value) if name == "SEM_EXECUTE" else [effects.IDLE]
    except DecodeError as error: item.error = str(error)
    else: self._note(item, found)

  def value(self, module: ModuleType, channel: int, name: str) -> int:
    """What a method was sent last."""
    return self.state.values.get((channel, getattr(module, name).OFFSET), 0)

  def _does(self, item: Item, module: ModuleType | None, name: str, channel: int, value: int) -> None:
    """What a method of `_DOES` does, or one of the host engine's, which have no module."""
    if module is None: self._hosts(item, name, value)
    elif name == "LAUNCH_DMA" and copies(module):
      try: does: Iterable[Effect] = effects.copied(module, self.state.values, channel, value)
      except (DecodeError, Unsupported): does = effects.copy(module, self.state.values, channel, value)
      self._note(item, does)
    elif name == "LAUNCH_DMA": self._note(item, effects.inline(module, self.state.values, channel))
    elif name in FORGETS: self._note(item, forgets(module, name, value))
    elif name == "SEND_PCAS_A": self._launch(item, module, value << 8, None)
    elif name == "SET_INLINE_QMD_ADDRESS_B":
      self.state.inline[channel] = self.value(module, channel, "SET_INLINE_QMD_ADDRESS_A") << 40 | value << 8, []
    elif name == "LOAD_INLINE_QMD_DATA":
      at, words = self.state.inline.get(channel, (0, []))
      words.append(value)
      self.state.inline[channel] = at, words
      if 4 * len(words) == longest(module.CLASS):
        self._launch(item, module, at, struct.pack(f"<{len(words)}I", *words))
        self.state.inline.pop(channel)

  def _launch(self, item: Item, module: ModuleType, address: int, raw: bytes | None, chained: bool = False) -> None:
    if raw is None:
      raw = self._read(address, longest(module.CLASS)) or self._read(address, 1 << POINTER_SHIFT)
      if raw is None:
        self.items.append(Item(address, (), None, item.depth + 1, "a QMD that is not known", self.queue))
        return
      self.pieces.append((address, raw))
    try: found = described(module.CLASS, raw)
    except DecodeError as error:
      words = tuple(memoryview(raw[:len(raw) & ~3]).cast("I").tolist())
      self.items.append(Item(address, words, None, item.depth + 1, str(error), self.queue))
      return
    made = found.packet
    does = [effects.IDLE, *found.effects] if chained else list(found.effects)  # it begins when the one before has ended
    inner = Item(address, found.words, made, item.depth + 1, found.error, self.queue, does)
    self.items.append(inner)
    self.roots += found.roots
    self.launches.append(Launch(inner, found.entry, *found.arguments, found.grid, found.block, state={"qmd": made}))
    for behind in found.behind:  # as far as nobody has come here before
      if behind in self.followed: continue
      self.followed.add(behind)
      self._launch(inner, module, behind, None, True)


def copies(module: ModuleType) -> bool:
  """Whether a class is a copy engine's."""
  return bool(module.CLASS & 0xFF == _COPY_CLASS)


def forgets(module: ModuleType, name: str, value: int) -> Iterator[Effect]:
  """What INVALIDATE_SHADER_CACHES and its like do. Raises DecodeError when it is gone through."""
  yield from effects.forget(getattr(module, name).decode(value), FORGETS[name])

