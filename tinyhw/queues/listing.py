"""Packets as text and as rows: the vendor's names and fields, with a name beside each address that the capture knows.

`Names` knows what lies where; `lines` and `rows` show what was followed, for people and for programs.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from tinyhw.core.layout import LONG, Packet, Struct, words_text
from tinyhw.queues.capture import Capture
from tinyhw.queues.cuda.stream import StreamWork
from tinyhw.queues.effects import Effect
from tinyhw.queues.world import PAGE, Follow, Item, Launch, World
from tinyhw.wire import gpfifo, methods


class Names:
  """Names of addresses: what a capture knows of a vendor's memory, or nothing."""

  def __init__(self, capture: Capture | None = None, vendor: str = "", world: World | None = None) -> None:
    self._capture, self._vendor, self._world = capture, vendor, world

  def at(self, address: int) -> str:
    """`kernel r_16_4 + 0x40`, `VRAM buffer 3 [0x100]`, `signal 0, GTT buffer 2`; empty where nothing is known."""
    if address < PAGE or self._world is None: return ""
    if (found := self._world.naming.get(address)) is None: found = self._keep(address, self._at(self._world, address))
    return found

  def launched(self, launch: Launch) -> str:
    """`kernel r_16_4, grid 4,1,1, block 32,1,1, arguments at ...`."""
    key, where = (launch.entry, launch.grid, launch.block), launch.arguments
    if self._world is None: found: str | None = self._launched(launch)
    elif (found := self._world.naming.get(key)) is None: found = self._keep(key, self._launched(launch))
    if not where: return f"{found}"
    return f"{found}, arguments at {where:#x} ({name})" if (name := self.at(where)) else \
      f"{found}, arguments at {where:#x}"

  def done(self, effects: Iterable[Effect]) -> list[str]:
    """The same of what methods do, by what was sent before."""
    at = self.at
    return [f"{e.does.value}: {name}" for e in effects if e.address >= PAGE and (name := at(e.address))]

  def told(self, one: Shown) -> str:
    """Names of the addresses in a packet that launches nothing."""
    if not one.addresses: return ""
    if self._world is None: return self._told(one)
    if (found := self._world.naming.get(one)) is None: found = self._keep(one, self._told(one))
    return found

  def _told(self, one: Shown) -> str:
    return "; ".join(f"{field}: {name}" for field, value in one.addresses if (name := self.at(value)))

  def _keep(self, key: object, text: str) -> str:
    assert self._world is not None
    naming = self._world.naming
    if len(naming) >= KEPT: naming.clear()
    naming[key] = text
    return text

  def _launched(self, launch: Launch) -> str:
    code = self.at(launch.entry) or f"code at {launch.entry:#x}"
    grid, block = ",".join(map(str, launch.grid)), ",".join(map(str, launch.block))
    return f"{code}, grid {grid}, block {block}"

  def _at(self, world: World, address: int) -> str:
    if code := self._kernel(address): return code
    made = world.find(address)
    if made is not None:
      number, key = world.signals.get(address, (-1, -1))
      return f"signal {number}, {made.at(address)}" if key == made.key else made.at(address)
    was = world.was(address)
    return "" if was is None else f"{was.at(address)}, freed"

  def _kernel(self, address: int) -> str:
    if self._capture is None: return ""
    exact = self._capture.kernels.get((self._vendor, address))
    if exact is not None: return f"kernel {exact.name}"
    program = self._capture.program(self._vendor, address)
    if program is None: return ""
    entries = [(entry, name) for name, entry, _ in program.kernels if entry <= address]
    if not entries: return f"code of {program.name} [{address - program.address:#x}]"
    entry, name = max(entries)
    return f"kernel {name} + {address - entry:#x}"


def addresses(item: Item) -> Sequence[tuple[str, int]]:
  """(field, value) of what may be an address in a packet."""
  if isinstance(item.packet, methods.Send):  # by what was sent before
    return [(effect.does.value, effect.address) for effect in item.effects if effect.address >= PAGE]
  return () if item.packet is None else shown(item).addresses


_WIDE: dict[type[Any], tuple[str, ...]] = {}  # the fields of a packet that an address fits into


def _wide(cls: type[Any]) -> tuple[str, ...]:
  if (found := _WIDE.get(cls)) is None:
    found = _WIDE[cls] = tuple(f.name for f in cls.FIELDS if f.width + f.shift > 32)
  return found


def _addresses(packet: Any) -> Iterator[tuple[str, int]]:
  if isinstance(packet, Packet):
    for name in _wide(type(packet)):
      if (value := getattr(packet, name)) >= PAGE: yield name, value
  elif isinstance(packet, Struct):
    for name, found in packet.to_dict().items():
      handle = found.get("handle") if isinstance(found, dict) else found
      if isinstance(handle, int) and handle >= 1 << 32: yield name, handle
  elif isinstance(packet, gpfifo.Segment): yield "GET", packet.address
  elif isinstance(packet, StreamWork): yield from ((name, packet.fields[name]) for name in packet.addresses)


def packet_text(item: Item) -> str:
  """One line: the packet with its fields, or why the words are none."""
  if item.packet is None:
    words = " ".join(f"{w:08x}" for w in item.words[:8])
    return f"? {item.error}" + (f" [{words}{' ...' if len(item.words) > 8 else ''}]" if words else "")
  return shown(item).line


class Shown:
  """What of a packet goes by its words alone and, on NVIDIA, by whose methods they are. Made when it is asked for."""

  def __init__(self, item: Item) -> None:
    self._item = item
    self.class_id = item.class_id
    self.sends = isinstance(item.packet, methods.Send)
    self.line, self.addresses = _line(item), tuple(_addresses(item.packet))
    self.stood: dict[int, tuple[str, list[str]]] = {}  # by `stands`

  def stands(self, depth: int) -> tuple[str, list[str]]:
    """Its line behind the address, and those below, of a packet so deep."""
    if (found := self.stood.get(depth)) is None:
      pad = "  " * depth
      found = self.stood[depth] = f"  {pad}{self.line}", [f"{'':14}  {pad}  {line}" for line in self.below]
    return found

  @functools.cached_property
  def below(self) -> list[str]:
    """Lines below its own."""
    return _below(self._item)

  @functools.cached_property
  def row(self) -> dict[str, Any]:
    """As plain values."""
    return _row(self._item)


KEPT: Final = 1 << 14  # of these, and of names
_SHOWN: dict[tuple[type, int, tuple[int, ...]], Shown] = {}  # packets come again
_LATEST: dict[int, tuple[object, Shown]] = {}  # the same by a packet's identity: most come as the same object


def shown(item: Item) -> Shown:
  """What goes by an item's words."""
  packet = item.packet
  latest = _LATEST.get(id(packet))
  if latest is not None and latest[0] is packet and latest[1].class_id == item.class_id: return latest[1]
  if len(_LATEST) >= KEPT: _LATEST.clear()
  found = _by_words(item)
  _LATEST[id(packet)] = packet, found
  return found


def _by_words(item: Item) -> Shown:
  if not item.words: return Shown(item)  # none made it
  key = type(item.packet), item.class_id, item.words
  found = _SHOWN.get(key)
  if found is None:
    if len(_SHOWN) >= KEPT: _SHOWN.clear()
    found = _SHOWN[key] = Shown(item)
  return found


def _line(item: Item) -> str:
  packet = item.packet
  if isinstance(packet, methods.Send):
    return f"{packet.header.__name__}(SUBCHANNEL={packet.subchannel}, ADDRESS={packet.method:#x}, " \
           f"{len(packet.data)} word{'s' if len(packet.data) != 1 else ''})"
  if isinstance(packet, int) and packet == methods.NOP: return "NOP"
  if isinstance(packet, Packet) and packet.DWORDS >= LONG and len(item.words) == packet.DWORDS:  # a QMD, as it was read
    return words_text(type(packet), item.words)
  return str(_own(item))


def _own(item: Item) -> Any:
  """The packet in the words of its chip's generation."""
  if not (item.class_id and item.words and _is_pm4(item.packet)): return item.packet
  from tinyhw.queues.amd.text import own  # AMD's registers load with the first packet that is shown
  return own(item.packet, item.words, item.class_id)


def _is_pm4(packet: Any) -> bool: return isinstance(packet, Packet) and "pm4_gfx" in type(packet).__module__


def below(item: Item) -> list[str]:
  """Lines below a packet: registers that it sets, methods with their fields, a QMD's."""
  return [] if item.packet is None else shown(item).below


def _below(item: Item) -> list[str]:
  packet = item.packet
  if isinstance(packet, methods.Send):
    from tinyhw.queues.nv.text import sent_lines  # NVIDIA's declarations load with its first method
    return sent_lines(packet, item.class_id)
  if _is_pm4(packet):
    from tinyhw.queues.amd.text import register_lines  # as above
    return register_lines(packet, item.class_id)
  return []


def known(names: Names, item: Item, launch: Launch | None) -> list[str]:
  """What is known of a packet's addresses, one text each."""
  if isinstance(item.packet, methods.Send): found = names.done(item.effects) if item.effects else []
  else: found = [f"{field}: {name}" for field, value in addresses(item) if (name := names.at(value))]
  return found if launch is None or isinstance(item.packet, StreamWork) else [names.launched(launch), *found]


def lines(names: Names, follow: Follow, *, deep: bool = True,
          under: Callable[[Item, Launch], list[str]] | None = None) -> Iterator[str]:
  """A line a packet, indented by the calls that lead to it; with `deep` lines below for registers and methods, and with
  `under` those that it has for a launch."""
  launches = {id(l.item): l for l in follow.launches}
  for item in follow.items:
    launch, packet = launches.get(id(item)) if launches else None, item.packet
    if packet is None:
      yield f"{item.address:#014x}  {'  ' * item.depth}{packet_text(item)}"
      continue
    if type(packet) is gpfifo.Segment and launch is None and not item.error:  # of which each is another one
      told = f"   ; GET: {name}" if packet.address >= PAGE and (name := names.at(packet.address)) else ""
      yield f"{item.address:#014x}  {'  ' * item.depth}{packet}{told}"
      continue
    latest = _LATEST.get(id(packet))
    one = latest[1] if latest is not None and latest[0] is packet and latest[1].class_id == item.class_id else \
      shown(item)
    text, more = one.stood.get(item.depth) or one.stands(item.depth)
    if launch is not None or item.error:
      told = "; ".join([*known(names, item, launch), *([item.error] if item.error else [])])
    elif not one.sends: told = names.told(one) if one.addresses else ""
    elif item.effects: told = "; ".join(names.done(item.effects))
    else: told = ""
    yield f"{item.address:#014x}{text}   ; {told}" if told else f"{item.address:#014x}{text}"
    if deep: yield from more
    if under is not None and launch is not None:
      for line in under(item, launch): yield f"{'':14}  {'  ' * item.depth}  {line}".rstrip()


def rows(names: Names, follow: Follow) -> Iterator[dict[str, Any]]:
  """The same as plain values, nothing left out: the words are in it."""
  launches = {id(l.item): l for l in follow.launches}
  for item in follow.items:
    row: dict[str, Any] = {"address": item.address, "depth": item.depth, "words": list(item.words)}
    if item.error: row["error"] = item.error
    if item.packet is not None: row |= shown(item).row
    if item.effects: row["effects"] = [str(e) for e in item.effects]
    if told := known(names, item, launches.get(id(item))): row["known"] = told
    yield row


def _row(item: Item) -> dict[str, Any]:
  packet = _own(item)
  if isinstance(packet, methods.Send):
    return {"packet": packet.header.__name__, "subchannel": packet.subchannel, "methods": below(item),
            "class": item.class_id}
  row: dict[str, Any] = {"packet": type(packet).__name__ if not isinstance(packet, int) else "NOP"}
  if hasattr(packet, "to_dict"): row["fields"] = packet.to_dict()
  elif isinstance(packet, gpfifo.Segment | gpfifo.Control): row["text"] = str(packet)
  return row
