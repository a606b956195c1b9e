"""A timeline as a page that needs nothing else: lanes to zoom and walk by mouse and keys, each packet with its fields.

The page's data is one JSON object; `timeline.html` beside this module draws it. Texts stand once, spans name them by
number.
"""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tinyhw.core.source import Spot, contents
from tinyhw.queues.events import CLOCK
from tinyhw.queues.timeline import KINDS, Timeline

PACKETS: Final = 50_000  # of a page: more are too much for a browser
AROUND: Final = 4  # lines of source that are shown before a line, and behind it


class _Texts:
  """Each text once."""

  def __init__(self) -> None:
    self.all: list[str] = []
    self._numbers: dict[str, int] = {}

  def number(self, text: str) -> int:
    n = self._numbers.setdefault(text, len(self.all))
    if n == len(self.all): self.all.append(text)
    return n


def data(taken: Timeline, limit: int = PACKETS) -> dict[str, Any]:
  """What the page draws: of a longer capture its last `limit` spans, and `left_out` says how many were before."""
  texts, first = _Texts(), max(0, len(taken.spans) - limit)
  spans = [[s.lane, KINDS.index(s.kind), round(s.start), round(s.end), texts.number(s.name), s.submission,
            hex(s.address) if s.address else "", [texts.number(line) for line in s.lines],
            texts.number(s.kernel) if s.kernel else -1, int(s.stands)] for s in taken.spans[first:]]
  report = taken.report
  return {
    "path": taken.path, "end": taken.end_ns, "clock": CLOCK.value, "left_out": first, "kinds": KINDS,
    "lanes": [[lane.name, lane.vendor] for lane in taken.lanes], "spans": spans, "texts": texts.all,
    "flows": [[f.start - first, f.to - first, f.why] for f in taken.flows if f.start >= first and f.to >= first],
    "marks": [[m.span - first if m.span >= first else -1, m.name, m.lines] for m in taken.marks],
    "memory": {gpu: rows for gpu, rows in taken.memory.items()}, "code": taken.code, "source": {
      name: _source(rows) for name, rows in taken.source.items()}, "verdict": report.verdict,
    "waits": [[e.who, e.what, e.writer, e.why] for e in report.edges], "cycle": report.cycle,
  }


def _source(rows: list[tuple[Spot, ...]]) -> list[Any]:
  """Of a kernel: for each line of its code the number of its place, -1 for none; and the places, each with its calls
  and the lines around it, as far as its file is there."""
  places: dict[tuple[Spot, ...], int] = {}
  numbers = [places.setdefault(chain, len(places)) if chain else -1 for chain in rows]
  return [numbers, [[[f"{spot}{f' in {spot.function}' if spot.function else ''}" for spot in chain], *_around(chain[0])]
                    for chain in places]]


def _around(spot: Spot) -> list[Any]:
  """The number of the first line that is shown, of the line itself, and the lines."""
  lines = contents(spot.file, spot.digest) or ()
  first = max(spot.line - 1 - AROUND, 0)
  return [first + 1, spot.line, list(lines[first:spot.line + AROUND])]


def text(taken: Timeline, limit: int = PACKETS) -> Iterator[str]:
  """The page, piece by piece."""
  head, tail = Path(__file__).with_name("timeline.html").read_text(encoding="utf-8").split("@DATA@")
  yield head
  yield json.dumps(data(taken, limit), separators=(",", ":")).replace("<", "\\u003c")  # nothing in it ends the script
  yield tail
