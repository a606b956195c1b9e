"""What a stream of packets is made of, by headers alone: no packet is built.

    summary.of_words("pm4", words).lines()
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.autogen import pm4_gfx11
from tinyhw.queues import listing
from tinyhw.queues.capture import Capture
from tinyhw.wire import aql, gpfifo, methods, pm4, sdma


@dataclass
class Summary:
  """Counts: packets by kind, kernels by launches, queues by (submissions, packets). `odd` words are no packet's."""
  packets: Counter[str] = field(default_factory=Counter)
  kernels: Counter[str] = field(default_factory=Counter)
  queues: dict[str, list[int]] = field(default_factory=dict)
  odd: int = 0

  def lines(self) -> Iterator[str]:
    """As text, the most frequent first."""
    for name, (submissions, packets) in self.queues.items():
      yield f"{name}: {submissions:,} submissions, {packets:,} packets"
    yield f"{self.packets.total():,} packets" + (f", and {self.odd:,} dwords that are none" if self.odd else "")
    for name, count in _sorted(self.packets): yield f"  {count:9,}  {name}"
    if self.kernels: yield f"{self.kernels.total():,} launches of {len(self.kernels):,} kernels"
    for name, count in _sorted(self.kernels): yield f"  {count:9,}  {name}"

  def row(self) -> dict[str, Any]:
    """As plain values."""
    return {"packets": dict(_sorted(self.packets)), "kernels": dict(_sorted(self.kernels)), "odd": self.odd,
            "queues": {name: {"submissions": s, "packets": p} for name, (s, p) in self.queues.items()}}


def _sorted(counted: Counter[str]) -> list[tuple[str, int]]:
  return sorted(counted.items(), key=lambda row: (-row[1], row[0]))


# ---- words


def of_words(kind: str, words: Sequence[int]) -> Summary:
  """Of words of one of `raw.KINDS`."""
  out = Summary()
  _WALKS[kind](words, out)
  return out


def _pm4(words: Sequence[int], out: Summary) -> None:
  at, end, heads = 0, len(words), dict[int, int]()
  only, nop = pm4.NOP_HEADER_ONLY, pm4_gfx11.NOP.OP
  while at < end:
    word = words[at]
    if word >> 30 == 3:
      opcode, count = word >> 8 & 0xFF, word >> 16 & 0x3FFF
      at += 1 if count == only and opcode == nop else count + 2
      heads[opcode] = heads.get(opcode, 0) + 1
    elif word == pm4.PACKET_2:
      at += 1
      heads[-1] = heads.get(-1, 0) + 1
    else:
      at += 1
      out.odd += 1
  for opcode, count in heads.items(): out.packets["PACKET2" if opcode < 0 else pm4.name(opcode << 8)] += count


def _sdma(words: Sequence[int], out: Summary) -> None:
  at, end, head, counted = 0, len(words), sdma.head, dict[str, int]()
  while at < end:
    name, size = head(words[at])
    size = size or sdma.size_of(words, at)
    if not size or at + size > end:  # where the next begins follows from this one
      out.odd += end - at
      break
    counted[name] = counted.get(name, 0) + 1
    at += size
  out.packets.update(counted)


def _aql(words: Sequence[int], out: Summary) -> None:
  unit = aql.PACKET_BYTES // 4
  for at in range(0, len(words) - unit + 1, unit):
    cls = aql.KINDS.get(words[at] & 0xFF)
    if cls is None: out.packets[f"packet type {words[at] & 0xFF}"] += 1
    else: out.packets[cls.__name__] += 1
  out.odd += len(words) % unit


def _gpfifo(words: Sequence[int], out: Summary) -> None:
  out.packets[gpfifo.Segment.__name__] += len(words) // 2
  out.odd += len(words) % 2


def _pushbuffer(words: Sequence[int], out: Summary) -> None:
  at, end = 0, len(words)
  while at < end:
    word = words[at]
    declared = methods.header(word)
    if declared is None:
      if methods.control(word) is None: out.odd += 1
      else: out.packets["control"] += 1
      at += 1
      continue
    fields: Any = declared.decode(word)
    at += 1 if declared is methods.IMMD else 1 + fields.COUNT
    out.packets[declared.__name__] += 1


def _qmd(words: Sequence[int], out: Summary) -> None: out.packets["QMD"] += 1


_WALKS: Final[dict[str, Callable[[Sequence[int], Summary], None]]] = {
  "pm4": _pm4, "sdma": _sdma, "aql": _aql, "gpfifo": _gpfifo, "pushbuffer": _pushbuffer, "qmd": _qmd}


# ---- captures


def of_capture(capture: Capture, queue: str | None = None) -> Summary:
  """Of a capture; with `queue` of queues with this text in their names."""
  out = Summary()
  for step in capture:
    if step.follow is None or queue is not None and queue.lower() not in str(step.queue).lower(): continue
    row = out.queues.setdefault(str(step.queue), [0, 0])
    row[0] += 1
    row[1] += len(step.follow.items)
    for item in step.follow.items:
      packet = item.packet
      if packet is None: out.odd += len(item.words)
      elif isinstance(packet, methods.Send): out.packets[packet.header.__name__] += 1
      else: out.packets["NOP" if isinstance(packet, int) else type(packet).__name__] += 1
    names = listing.Names(capture, step.event.vendor, step.world)
    for launch in step.follow.launches: out.kernels[names.at(launch.entry) or f"code at {launch.entry:#x}"] += 1
  return out
