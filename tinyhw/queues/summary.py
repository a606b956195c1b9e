"""What a stream of packets is made of, by headers alone: no packet is built.

    summary.of_words("pm4", words).lines()
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tinyhw.queues import heads, listing
from tinyhw.queues.capture import Capture
from tinyhw.queues.container import Reader
from tinyhw.queues.events import Doorbell


@dataclass
class Summary(heads.Counts):
  """Counts: packets by kind, kernels by launches, queues by (submissions, packets). `odd` words are no packet's."""
  kernels: Counter[str] = field(default_factory=Counter)
  queues: dict[str, list[int]] = field(default_factory=dict)

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
  heads.count(kind, words, out)
  return out


# ---- captures


def of_capture(capture: Capture, queue: str | None = None) -> Summary:
  """Of a capture, best opened without `following`; with `queue` of queues with this text in their names.

  By its last frame, where its recorder has counted."""
  rows = capture.reader.counts() if isinstance(capture.reader, Reader) else None
  if rows is not None: return _of_counts(rows, queue)
  out, rings = Summary(), dict[tuple[str, int], tuple[heads.Ring, list[int]] | None]()
  for step in capture:
    event = step.event
    if step.queue is None or not isinstance(event, Doorbell): continue
    key = event.vendor, step.queue.key
    if key not in rings:
      name = str(step.queue)
      wanted = queue is None or queue.lower() in name.lower()
      rings[key] = (heads.Ring(step.queue), out.queues.setdefault(name, [0, 0])) if wanted else None
    found = rings[key]
    if found is None: continue
    launched = found[0].submission(event, out)
    if launched:
      names = listing.Names(capture, event.vendor, step.world)
      for entry in launched: out.kernels[names.at(entry) or f"code at {entry:#x}"] += 1
    found[1][0] += 1
  for ring in rings.values():
    if ring is not None: ring[1][1] += ring[0].packets
  return out


def _of_counts(rows: list[list[Any]], queue: str | None) -> Summary:
  out = Summary()
  for name, submissions, packets, kernels in rows:
    if queue is not None and queue.lower() not in name.lower(): continue
    out.queues[name] = [submissions, sum(packets.values())]
    out.packets.update(packets)
    out.kernels.update(kernels)
  return out
