"""What the doctor makes of open devices when one of them stops: the composition of `queues.doctor` with drivers."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tinyhw.core.errors import Error
from tinyhw.queues import raw
from tinyhw.queues.doctor import Live, live
from tinyhw.queues.world import Queue

SHOWN: Final = 24  # lines that an error gets
_KINDS: Final = {"AMD": ("amd", "pm4", "sdma"), "NV": ("nv", "pushbuffer", "pushbuffer")}


def lines_of(stopped: Any, runtimes: list[Any]) -> list[str]:
  """Who waits for whom, as far as waits tell; nothing where no queue stands at one."""
  vendor, compute, copier = _KINDS[stopped.name.partition(":")[0]]
  mine = [r for r in runtimes if r is not stopped and r.name.partition(":")[0] == stopped.name.partition(":")[0]]
  queues, names = list[Live](), dict[int, str]()
  for runtime in (stopped, *mine):
    done, signals = runtime.timeline.signal.value, runtime.timeline.signal
    names[signals.address] = f"timeline of {runtime.name}"
    for code in runtime.codes():
      for kernel, entry, _ in code.kernels: names[entry] = f"kernel {kernel}"
    for queue, kind in ((runtime.compute, compute), (runtime.copier, copier)):
      unfinished = queue.unfinished(done)
      if not unfinished: continue
      made = Queue(len(queues), queue.name, "gpfifo" if vendor == "nv" else kind, 0, 0, 0, 0)
      submissions = []
      for submission in unfinished:
        words = queue.words_of(submission)
        class_id = 0 if vendor == "amd" else runtime.arch.compute_class if queue is runtime.compute else \
          runtime.arch.copy_class
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
  return ["doctor: " + report.verdict, *report.lines()[1:SHOWN]] if report.edges else []


def _reader(runtime: Any) -> Callable[[int, int], bytes | None]:
  """Memory of a runtime, where the host sees it."""
  def read(address: int, size: int) -> bytes | None:
    words = [runtime.peek(address + at) for at in range(0, size, 4)]
    return b"".join(w.to_bytes(4, "little") for w in words) if None not in words else None
  return read
