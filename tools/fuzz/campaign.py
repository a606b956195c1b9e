"""Random machine code for as long as wished: instructions against the witness, programs on both engines, any bytes.

    python -m tinyhw.tools.fuzz.campaign --seconds 3600
    python -m tinyhw.tools.fuzz.campaign --programs 10000000 --only bytes --journal campaign.json
    python -m tinyhw.tools.fuzz.campaign --only compiled --seed 73 --programs 1
    make fuzz SECONDS=600

Every program has a number; one that failed is run again alone by its kind and number. Programs run in processes of
their own, so that a crash, a hang or a leak is seen and named. With --journal nothing that was counted is lost: the
same command goes on where a run was stopped. It stops at the first thing that is wrong, unless --keep-going.
"""
from __future__ import annotations

import argparse
import faulthandler
import json
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.tools.fuzz.drawn import KINDS

Kinds = Mapping[str, Callable[[int], str]]
ROUND: Final = {"bytes": 1000, "compiled": 8, "instructions": 8, "programs": 4}  # programs of a kind in turn
HANG: Final = 120.0  # seconds that one program may take
LEAK: Final = 3 << 20  # KiB that a process may hold
FILES: Final = 500  # files that a process may have open
SAVED: Final = 5.0  # seconds between two writes of the journal
_FORK: Final = multiprocessing.get_context("fork")


class Wrong(Error):
  """A random program did what none may: its kind and number, and what happened."""


@dataclass(frozen=True)
class Task:
  """Programs `first` to `first + count - 1` of a kind."""
  kind: str
  first: int
  count: int


@dataclass
class Tally:
  """What has been run: by kind how many, how they ended, seconds; and what went wrong."""
  done: Counter[str] = field(default_factory=Counter)
  endings: dict[str, Counter[str]] = field(default_factory=dict)
  seconds: dict[str, float] = field(default_factory=dict)  # of a processor
  wrong: list[str] = field(default_factory=list)
  memory: dict[str, int] = field(default_factory=dict)  # KiB of a process: after its first tasks, at the end, at most
  files: int = 0  # open files of a process at most

  def add(self, task: Task, endings: Mapping[str, int], seconds: float) -> None:
    """Count the programs of a task."""
    self.done[task.kind] += sum(endings.values())
    self.seconds[task.kind] = self.seconds.get(task.kind, 0.0) + seconds
    self.endings.setdefault(task.kind, Counter()).update(endings)

  def lines(self) -> Iterator[str]:
    """A line a kind, and one of memory."""
    for kind, count in self.done.items():
      ends = ", ".join(f"{name} {100 * n / count:.1f} %" for name, n in self.endings[kind].most_common(8))
      rate = count / max(self.seconds[kind], 1e-9)
      yield f"{kind}: {count:,} in {self.seconds[kind]:,.1f} s of a core, {rate:,.0f} a second ({ends})"
    if self.memory: yield (f"memory of a process: {self.memory['first'] >> 10} MiB after its first tasks, "
                           f"{self.memory['last'] >> 10} MiB at the end, {self.memory['most'] >> 10} MiB at most; "
                           f"{self.files} open files at most")


@dataclass
class TaskPlan:
  """Which tasks are next; what was handed out and not done is done first. All of it is in the journal."""
  kinds: list[str]
  next: int
  left: int  # programs that are still to be handed out
  open: list[Task] = field(default_factory=list)
  turn: int = 0  # of which kind the next task is

  def task(self) -> Task | None:
    """The next task; None when all are handed out."""
    if self.open: return self.open.pop(0)
    if not self.left: return None
    kind = self.kinds[self.turn % len(self.kinds)]
    task = Task(kind, self.next, min(self.left, ROUND.get(kind, 1)))
    self.turn, self.next, self.left = self.turn + 1, self.next + task.count, self.left - task.count
    return task


class Journal:
  """The plan and the tally in a file."""

  def __init__(self, path: Path | None) -> None: self.path, self._written = path, 0.0

  def load(self) -> tuple[TaskPlan, Tally] | None:
    """What an earlier run left. Raises InvalidArgument for a file of another kind."""
    if self.path is None or not self.path.exists(): return None
    try:
      data = json.loads(self.path.read_text())
      plan = TaskPlan(data["kinds"], data["next"], data["left"], [Task(**t) for t in data["open"]], data["turn"])
      return plan, Tally(Counter(data["done"]), {k: Counter(e) for k, e in data["endings"].items()},
                         data["seconds"], data["wrong"], data["memory"], data["files"])
    except (ValueError, KeyError, TypeError) as error:
      raise InvalidArgument(f"{self.path} is no journal of a campaign ({error})", hint="name another file") from None

  def save(self, plan: TaskPlan, running: list[Task], tally: Tally, now: bool = False) -> None:
    """Write it, at once or when the last time is long enough ago; a file that is there is replaced as a whole."""
    if self.path is None or not now and time.monotonic() - self._written < SAVED: return
    self._written = time.monotonic()
    data = vars(plan) | vars(tally) | {"open": [asdict(t) for t in [*running, *plan.open]]}
    new = self.path.with_suffix(".new")
    new.write_text(json.dumps(data, indent=1) + "\n")
    new.replace(self.path)


# ---- the processes

class Worker:
  """A process that runs tasks; what it is at, and since when, is seen from here."""

  def __init__(self, kinds: Kinds) -> None:
    self.at = _FORK.RawArray("d", 2)  # number of the program, time at which it began
    self.pipe, theirs = _FORK.Pipe()
    self.task: Task | None = None
    self.endings: Counter[str] = Counter()
    self.process = _FORK.Process(target=_work, args=(kinds, theirs, self.at), daemon=True)
    self.process.start()
    theirs.close()

  def give(self, task: Task) -> None:
    """Have it run a task."""
    self.task = task
    self.at[0], self.at[1] = task.first, time.monotonic()
    self.pipe.send(task)

  @property
  def hangs(self) -> bool: return self.task is not None and time.monotonic() - self.at[1] > HANG

  def stop(self) -> None:
    """End the process, whatever it is at."""
    self.process.kill()
    self.process.join()
    self.pipe.close()


@dataclass(frozen=True)
class Done:
  """What a process answers: how the programs of a task ended, seconds, KiB and open files; what was wrong, at which."""
  endings: dict[str, int]
  seconds: float
  memory: int
  files: int
  wrong: str = ""
  number: int = -1


def _work(kinds: Kinds, pipe: Connection, at: Any) -> None:
  """A process's life. What the programs print to standard error stays there, a crash with its Python frames too."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
  signal.signal(signal.SIGTERM, signal.SIG_DFL)
  faulthandler.enable()
  parent = os.getppid()
  while True:
    while not pipe.poll(2.0):
      if os.getppid() != parent: return  # killed; another process may hold its end of the pipe
    try: task: Task = pipe.recv()
    except EOFError: return
    pipe.send(_run(kinds, task, at))


def _run(kinds: Kinds, task: Task, at: Any) -> Done:
  endings: Counter[str] = Counter()
  start, wrong, number = time.process_time(), "", -1
  for number in range(task.first, task.first + task.count):
    at[0], at[1] = number, time.monotonic()
    try: endings[kinds[task.kind](number)] += 1
    except Exception as error:
      wrong = f"{type(error).__name__}: {error}"
      break
  pages = int(Path("/proc/self/statm").read_text().split()[1])
  return Done(dict(endings), time.process_time() - start, pages * (os.sysconf("SC_PAGE_SIZE") >> 10),
              len(os.listdir("/proc/self/fd")), wrong, number)


class Campaign:
  """Runs a plan with some processes. `shown` is called with the tally now and then."""

  def __init__(self, plan: TaskPlan, tally: Tally, journal: Journal, jobs: int, kinds: Kinds = KINDS,
               keep_going: bool = False, shown: Callable[[Tally], None] = lambda tally: None) -> None:
    self.plan, self.tally, self.journal = plan, tally, journal
    self._kinds, self._keep_going, self._shown = kinds, keep_going, shown
    self._workers = [Worker(kinds) for _ in range(jobs)]

  def run(self, seconds: float) -> None:
    """Run until the time or the number of programs is over. Raises Wrong with the kind and number."""
    until = time.monotonic() + seconds
    try:
      for worker in self._workers: self._next(worker)
      while any(w.task for w in self._workers):
        ready = wait([w.pipe for w in self._workers if w.task], timeout=1.0)
        for k, worker in enumerate(self._workers):
          if worker.pipe in ready: self._answer(k)
          elif worker.hangs: self._lost(k, f"still running after {HANG:.0f} s")
          if self._workers[k].task is None and time.monotonic() < until: self._next(self._workers[k])
        self.journal.save(self.plan, self._running(), self.tally)
        self._shown(self.tally)
    finally:
      for worker in self._workers: worker.stop()
      self.journal.save(self.plan, self._running(), self.tally, now=True)

  def _running(self) -> list[Task]: return [w.task for w in self._workers if w.task]

  def _next(self, worker: Worker) -> None:
    if (task := self.plan.task()) is not None: worker.give(task)

  def _answer(self, k: int) -> None:
    worker = self._workers[k]
    task = worker.task
    assert task is not None
    try: done: Done = worker.pipe.recv()
    except (EOFError, ConnectionResetError):
      worker.process.join()
      code = worker.process.exitcode or 0
      return self._lost(k, f"the process ended with {signal.Signals(-code).name if code < 0 else f'status {code}'}")
    worker.task = None
    self.tally.add(task, done.endings, done.seconds)
    m = self.tally.memory
    m.setdefault("first", done.memory)
    m["last"], m["most"] = done.memory, max(m.get("most", 0), done.memory)
    self.tally.files = max(self.tally.files, done.files)
    if done.wrong: self._wrong(task, done.number, done.wrong)
    if done.memory > LEAK: self._lost(k, f"{done.memory >> 10} MiB of memory in use", task)
    elif done.files > FILES: self._lost(k, f"{done.files} open files", task)

  def _lost(self, k: int, what: str, counted: Task | None = None) -> None:
    """A process that crashed, hangs or leaks: another takes its place. `counted` is a task that it has answered."""
    worker = self._workers[k]
    task, number = counted or worker.task, int(worker.at[0])
    assert task is not None
    worker.stop()
    self._workers[k] = Worker(self._kinds)
    if counted is None and number > task.first: self.plan.open.append(Task(task.kind, task.first, number - task.first))
    self._wrong(task, number, what)

  def _wrong(self, task: Task, number: int, what: str) -> None:
    text = f"{task.kind} {number}: {what} (--only {task.kind} --seed {number} --programs 1)"
    self.tally.wrong.append(text)
    rest = task.first + task.count - number - 1
    if rest: self.plan.open.append(Task(task.kind, number + 1, rest))
    if not self._keep_going: raise Wrong(text)


# ---- the command

def shown(console: Console, progress: Progress | None) -> Callable[[Tally], None]:
  """Shows a tally as it grows: in place on a terminal, as a line each half minute elsewhere."""
  bar = progress.add_task("") if progress is not None else None
  began = last = time.monotonic()
  before: int | None = None

  def show(tally: Tally) -> None:
    nonlocal last, before
    total, now = sum(tally.done.values()), time.monotonic()
    if before is None: before = total
    text = f"{total:,} programs, {(total - before) / max(now - began, 1e-9):,.0f} a second, {len(tally.wrong)} wrong"
    if progress is not None and bar is not None: progress.update(bar, description=text)
    elif now - last >= 30:
      last = now
      console.print(text)
  return show


def main() -> int:
  """Run, and say how many of what, how they ended and how fast."""
  head, _, examples = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.fuzz.campaign", description=head, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--seconds", type=float, default=60.0)
  parser.add_argument("--programs", type=int, default=1 << 62, help="stop after this many")
  parser.add_argument("--seed", type=int, default=0, help="number of the first program")
  parser.add_argument("--only", default="", choices=("", *KINDS))
  parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (one for each processor)")
  parser.add_argument("--journal", type=Path, help="a file that keeps what was done; a run with the same file goes on")
  parser.add_argument("--keep-going", action="store_true", help="note what is wrong and go on")
  options = parser.parse_args()
  if options.jobs < 1 or options.programs < 1: parser.error("--jobs and --programs want at least 1")
  journal, console = Journal(options.journal), Console(stderr=True, highlight=False)
  try: plan, tally = journal.load() or (TaskPlan([options.only] if options.only else list(KINDS), options.seed,
                                             options.programs), Tally())
  except InvalidArgument as error: parser.error(str(error))
  if tally.done:
    console.print(f"going on with {options.journal} after {sum(tally.done.values()):,} programs: kinds, number and "
                  "seed are those of its beginning")
  for ending in (signal.SIGINT, signal.SIGTERM): signal.signal(ending, signal.default_int_handler)
  jobs, code = min(options.jobs, plan.left + len(plan.open)), 0
  with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console,
                disable=not console.is_terminal) as progress:
    campaign = Campaign(plan, tally, journal, jobs, keep_going=options.keep_going,
                        shown=shown(console, progress if console.is_terminal else None))
    try: campaign.run(options.seconds)
    except Wrong: code = 1
    except KeyboardInterrupt: code = 130
  for line in tally.lines(): print(line)
  for line in tally.wrong: print(line, file=sys.stderr)
  go_on = f"go on with --seed {plan.next}" if options.journal is None else f"{plan.left:,} left in the journal"
  if plan.left: print(go_on if plan.left < 1 << 61 or options.journal is None else "the journal goes on from here")
  print(f"{len(tally.wrong)} wrong" if tally.wrong else "nothing wrong")
  return code or (1 if tally.wrong else 0)


if __name__ == "__main__": sys.exit(main())
