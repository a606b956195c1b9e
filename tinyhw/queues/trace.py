"""A timeline as a trace that https://ui.perfetto.dev opens: Chrome's trace-event format, one event a line.

Threads and queues are tracks of two processes, what brings one span behind another is an arrow, memory in use is a
counter, what is wrong is an instant. Times are microseconds of the recorder's clock; see `timeline` for what they say.
"""
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from tinyhw.queues.events import CLOCK
from tinyhw.queues.timeline import Timeline

PROGRAM: Final = 1  # process numbers of the trace
QUEUES: Final = 2
LEAST_US: Final = 0.001  # of a span that is a point: less is not drawn


def events(taken: Timeline) -> Iterator[dict[str, Any]]:
  """The trace's events."""
  def process(lane: int) -> int: return QUEUES if taken.lanes[lane].vendor else PROGRAM
  for pid, name in ((PROGRAM, "program"), (QUEUES, "queues (order is real, widths in a submission are not measured)")):
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
  for n, lane in enumerate(taken.lanes):
    yield {"ph": "M", "pid": process(n), "tid": n, "name": "thread_name", "args": {"name": lane.name}}
  for span in taken.spans:
    facts: dict[str, Any] = {"lines": span.lines} if span.lines else {}
    if span.submission >= 0: facts["submission"] = span.submission
    if span.address: facts["address"] = hex(span.address)
    if span.stands: facts["stands"] = True
    yield {"ph": "X", "pid": process(span.lane), "tid": span.lane, "cat": span.kind, "name": span.name,
           "ts": span.start / 1e3, "dur": max((span.end - span.start) / 1e3, LEAST_US), "args": facts}
  for n, flow in enumerate(taken.flows):
    for phase, at in (("s", flow.start), ("f", flow.to)):
      span = taken.spans[at]
      when = span.end if phase == "s" and span.end > span.start else span.start
      if phase == "s" and when == span.end > span.start: when -= min(1.0, (span.end - span.start) / 2)  # inside of it
      if phase == "f" and flow.why == "seen": when = span.end - min(1.0, (span.end - span.start) / 2)
      row = {"ph": phase, "pid": process(span.lane), "tid": span.lane, "cat": "order", "name": flow.why, "id": n,
             "ts": when / 1e3}
      yield row | ({"bp": "e"} if phase == "f" else {})
  for gpu, rows in taken.memory.items():
    for when, size in rows:
      yield {"ph": "C", "pid": QUEUES, "name": f"memory of {gpu}", "ts": when / 1e3, "args": {"bytes": size}}
  for mark in taken.marks:
    row = {"ph": "i", "cat": "finding", "name": mark.name, "args": {"lines": mark.lines}}
    if mark.span < 0: yield row | {"pid": QUEUES, "s": "g", "ts": taken.end_ns / 1e3}
    else:
      place = taken.spans[mark.span]
      yield row | {"pid": process(place.lane), "tid": place.lane, "s": "t", "ts": place.start / 1e3}


def text(taken: Timeline) -> Iterator[str]:
  """The file, piece by piece."""
  yield f'{{"displayTimeUnit": "ns", "otherData": {{"clock": "{CLOCK.value}"}}, "traceEvents": [\n'
  first = True
  for row in events(taken):
    yield ("" if first else ",\n") + json.dumps(row, separators=(",", ":"))
    first = False
  yield "\n]}\n"
