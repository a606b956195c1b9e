"""What the doctor makes of open devices when one of them stops: the composition of `queues.doctor` with drivers."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from tinyhw.core.errors import Error, MachineFault
from tinyhw.drive.amd.explain import explain
from tinyhw.queues import raw
from tinyhw.queues.doctor import FAULTS, POLLED, STOOD, WAITS, Edge, Live, Report, live, pictured
from tinyhw.queues.lint import shortened
from tinyhw.queues.world import Queue

SHOWN: Final = 24  # lines that an error gets
_KINDS: Final = {"AMD": ("amd", "pm4", "sdma"), "NV": ("nv", "pushbuffer", "pushbuffer")}


def lines_of(stopped: Any, runtimes: list[Any], machine: Any = None, fault: int | None = None) -> list[str]:
  """Who waits for whom, what a driver polls, on a mock `machine` where waves stand, and what is and was at the address
  of a fault; nothing where none of it tells anything."""
  vendor, compute, copier = _KINDS[stopped.name.partition(":")[0]]
  mine = [r for r in runtimes if r is not stopped and r.name.partition(":")[0] == stopped.name.partition(":")[0]]
  queues, names, polled = list[Live](), dict[int, str](), list[str]()
  for runtime in (stopped, *mine):
    done, signals = runtime.timeline.signal.value, runtime.timeline.signal
    names[signals.address] = f"timeline of {runtime.name}"
    for code in runtime.codes():
      for kernel, entry, _ in code.kernels: names[entry] = f"kernel {kernel}"
    for queue, kind in ((runtime.compute, compute), (runtime.copier, copier)):
      unfinished = queue.unfinished(done)
      if not unfinished: continue
      polled.append(f"{queue.name}: {queue.ring.pointers()}; the timeline is at {done:#x}, and the last value that was "
                    f"submitted is {unfinished[-1].value:#x}")
      made = Queue(len(queues), queue.name, "gpfifo" if vendor == "nv" else kind, 0, 0, 0, 0)
      submissions = []
      for submission in unfinished:
        words = queue.words_of(submission)
        class_id = runtime.arch.version[0] if vendor == "amd" else \
          runtime.arch.compute_class if queue is runtime.compute else runtime.arch.copy_class
        try: follow = raw.follow(kind, words, class_id=class_id, read=_reader(runtime))
        except Error: continue
        for item in follow.items: item.queue = made
        submissions.append((submission.value, follow))
      queues.append(Live(vendor, made, submissions))
  def peek(address: int) -> int | None:
    return next((v for r in (stopped, *mine) if (v := r.peek(address)) is not None), None)
  def name(_: str, address: int) -> str:
    return names.get(address) or ("a signal" if peek(address) is not None else "")
  report = live(queues, peek, name)
  stood = [] if machine is None else _stood(machine.stood(), stopped, mine)
  memory = [] if fault is None else list(_history(fault, stopped, (stopped, *mine)))
  sections = [(FAULTS, memory), (STOOD, stood)]
  if report.edges: sections += [(POLLED, polled), *report.sections]
  elif stood: sections.append((POLLED, polled))
  elif machine is not None and fault is None:
    sections.append((WAITS, [f"{s.name}: {s.why}" for s in machine.standings()
                              if s.why and not s.runnable and not s.failed]))
  if not any(lines for _, lines in sections): return []
  return _told(pictured(report.edges, sections))


def streams_of(picture: Any) -> list[str]:
  """The same of CUDA's streams on a mock, from what it has kept (`mock.cuda.streams.picture`)."""
  edges = [Edge(e.who, e.what, e.writer, e.why) for e in picture.edges]
  return _told(pictured(edges, [(FAULTS, picture.memory), (STOOD, list(_places(picture.stood)))]))


def _told(report: Report) -> list[str]:
  lines = report.lines()[1:]
  more = [f"and {len(lines) - SHOWN + 1} lines more: `tinyhw record` and `tinyhw doctor` have all"]
  return ["doctor: " + report.verdict, *(lines if len(lines) <= SHOWN else lines[:SHOWN - 1] + more)]


def _stood(found: list[tuple[str, str, list[MachineFault]]], stopped: Any, others: list[Any]) -> list[str]:
  """Where waves stand, with the lines of source that AMD's code objects know."""
  images = [row for runtime in (stopped, *others) for row in getattr(runtime, "loaded", list)()]
  for _, _, places in found:
    for place in places:
      if place.work is None: explain(place, images, "")
  return list(_places(found))


def _places(found: list[tuple[str, str, list[MachineFault]]]) -> Iterator[str]:
  for queue, doing, places in found:
    for place in places:
      what = place.work or (f"kernel {place.place.partition('+')[0]}" if place.place else shortened(doing, 80))
      yield f"{queue}, {what}: {place.message}"
      if place.source: yield f"  {place.at}: {place.source}"
      at = ", ".join(filter(None, (place.place, f"PC {place.pc:#x}" if place.pc is not None else "")))
      if place.pc is not None or not place.source: yield f"  {at}: {place.instruction}"  # of PTX the source is that
      yield from (f"  {call}" for call in place.calls)


def _history(address: int, stopped: Any, runtimes: Iterable[Any]) -> Iterator[str]:
  """What a faulting address is and was; nothing where it was never memory that a driver gave out."""
  for runtime in runtimes:
    for start, (size, name) in sorted(runtime.used.items()):
      if not start <= address < start + size: continue
      mapped = "" if stopped.sees(address) else f"; it was never mapped on {stopped.name}"
      yield f"{address:#x} is in {name or 'memory'} of {runtime.name}, {size:,} bytes at {start:#x}{mapped}"
    for gone in [g for g in reversed(runtime.freed) if g.address <= address < g.address + g.size][:2]:
      yield (f"{address:#x} was in {gone.name or 'memory'} of {runtime.name}, {gone.size:,} bytes at "
             f"{gone.address:#x}, given back by thread {gone.thread} when {gone.submitted:#x} was the last value")


def _reader(runtime: Any) -> Callable[[int, int], bytes | None]:
  """Memory of a runtime, where the host sees it."""
  def read(address: int, size: int) -> bytes | None:
    words = [runtime.peek(address + at) for at in range(0, size, 4)]
    return b"".join(w.to_bytes(4, "little") for w in words) if None not in words else None
  return read
