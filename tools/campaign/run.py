"""Runs a campaign: hands out tasks, keeps what comes, shows how far it is."""
from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.tools.campaign.apart import commit
from tinyhw.tools.campaign.machines import machines
from tinyhw.tools.campaign.store import Store
from tinyhw.tools.campaign.task import Done, Task


class GoneWrong(Error):
  """A program did what none may: its kind and number, and what happened."""


class Machines(Protocol):
  """Who runs tasks."""
  workers: int

  @property
  def width(self) -> int:
    """How many tasks may be under way."""
  def submit(self, task: Task) -> Future[Done]:
    """Have a task run."""
  def told(self) -> str:
    """Who they are."""
  def close(self) -> None:
    """No more tasks."""


class Campaign:
  """`plan` says which task has a number, None where there are no more. `shown` is called now and then."""

  def __init__(self, plan: Callable[[int], Task | None], store: Store, by: Machines, keep_going: bool = False,
               shown: Callable[[Campaign], None] = lambda campaign: None) -> None:
    self.plan, self.store, self.by = plan, store, by
    self._keep_going, self._shown = keep_going, shown
    self._again, self._next = store.open(), store.handed_out
    self.tasks = self.programs = self.wrong = 0  # of this run
    self.seconds, self.wall, self.taken = 0.0, 0.0, 0.0  # of processors; on the clock; of tasks on their clocks
    self.spent = 0.0  # processor seconds of this process: what handing out and keeping costs

  def _task(self) -> Task | None:
    if self._again: return self.plan(self._again.pop(0))
    task = self.plan(self._next)
    if task is not None:
      self._next += 1
      self.store.begin(task)
    return task

  def run(self, seconds: float = float("inf")) -> None:
    """Run until the tasks or the time are over. Raises GoneWrong where something is, unless it is to go on."""
    began, pending, spent = time.monotonic(), dict[Future[Done], Task](), time.process_time()
    more = True
    try:
      while True:
        while more and len(pending) < self.by.width:
          task = self._task()
          if task is None: more = False
          else: pending[self.by.submit(task)] = task
          if time.monotonic() - began >= seconds: more = False
        if not pending: return
        for future in wait(pending, 1.0, FIRST_COMPLETED)[0]: self._take(pending.pop(future), future)
        if time.monotonic() - began >= seconds: more = False
        self.wall = time.monotonic() - began
        self._shown(self)
    finally:
      self.wall, self.spent = time.monotonic() - began, time.process_time() - spent
      self.by.close()

  def _take(self, task: Task, future: Future[Done]) -> None:
    name = f"{task.kind} {task.first} to {task.first + task.count - 1}"
    try: done = future.result()
    except CancelledError: raise Error("the scheduler has ended or forgotten its tasks", where=name,
                                       hint="the same command goes on where it is started again") from None
    except Exception as error:
      if type(error).__name__ != "KilledWorker": raise  # Dask's own, which may not be installed
      self.store.lose(task, f"its workers died: {error}".split("\n")[0][:200])
      return self._note(f"{name}: its workers died")
    if done.commit != commit():
      raise InvalidArgument(f"the worker {done.worker} has other sources: {done.commit}, not {commit()}",
                            hint="install the same on all machines")
    if not self.store.done(task, done): return
    self.tasks += 1
    self.programs += sum(done.endings.values())
    self.seconds += done.seconds
    self.taken += done.wall
    for f in done.findings: self._note(f"{task.kind} {f.program}: {f.text}")
    for number, why in done.lost: self._note(f"{task.kind} {number}: {why}")

  def _note(self, text: str) -> None:
    self.wrong += 1
    if not self._keep_going: raise GoneWrong(text)

  @property
  def efficiency(self) -> float:
    """The processor seconds of tasks, of those that there were for them."""
    return self.seconds / max(1e-9, self.wall * max(1, self.by.workers))

  @property
  def busy(self) -> float:
    """The time that workers had a task, of all their time; that others take their processors makes no difference."""
    return self.taken / max(1e-9, self.wall * max(1, self.by.workers))


def rows(plan: Callable[[int], Task | None], what: dict[str, Any], *, scheduler: str = "", jobs: int = 1,
         results: Path | None = None, told: Callable[[int], None] = lambda done: None) -> Iterator[Any]:
  """The rows of a whole campaign, in its order; what is wrong in them is the caller's. Raises GoneWrong where a program
  has none: it raised an error, or its process died."""
  store = Store(results, what)
  Campaign(plan, store, machines(scheduler, jobs), keep_going=True, shown=lambda c: told(c.programs)).run()
  wanted, k = 0, 0
  while (task := plan(k)) is not None: wanted, k = wanted + task.count, k + 1
  if sum(t.programs for t in store.tallies()) != wanted:
    lost = "; ".join(f"{kind} {n}: {text}" for kind, n, _, text in store.wrong())
    raise GoneWrong("a task has no result", where=lost)
  yield from store.rows()


# ---- the command

def shown(console: Console, progress: Progress | None) -> Callable[[Campaign], None]:
  """Shows a campaign as it goes: in place on a terminal, as a line each half minute elsewhere."""
  bar = progress.add_task("") if progress is not None else None
  last = time.monotonic()

  def show(c: Campaign) -> None:
    nonlocal last
    text = (f"{c.programs:,} programs, {c.programs / max(c.wall, 1e-9):,.0f} a second, {c.tasks:,} tasks by "
            f"{c.by.workers}, {c.wrong} wrong")
    if progress is not None and bar is not None: progress.update(bar, description=text)
    elif time.monotonic() - last >= 30:
      last = time.monotonic()
      console.print(text)
  return show


def arguments(parser: argparse.ArgumentParser) -> None:
  """The options that campaigns have in common."""
  parser.add_argument("--seconds", type=float, default=60.0)
  parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (one for each processor)")
  parser.add_argument("--scheduler", default="", metavar="tcp://HOST:PORT", help="have the workers of this Dask "
                      "scheduler run it instead of processes of this machine")
  parser.add_argument("--results", type=Path, metavar="FILE", help="keep all results in this file (SQLite); the same "
                      "command goes on where it was stopped")
  parser.add_argument("--keep-going", action="store_true", help="note what is wrong and go on")
  parser.add_argument("--json", action="store_true")


def lines(store: Store) -> Iterator[str]:
  """A line a kind."""
  for t in store.tallies():
    ends = ", ".join(f"{name} {100 * n / max(1, t.programs):.1f} %" for name, n in t.endings.most_common(8))
    yield (f"{t.kind}: {t.programs:,} in {t.seconds:,.1f} s of a core, {t.programs / max(t.seconds, 1e-9):,.0f} a "
           f"second ({ends})")


def command(plan: Callable[[int], Task | None], what: dict[str, Any], options: argparse.Namespace,
            again: Callable[[str, int], str]) -> int:
  """Run, and say how many of what, how they ended and how fast. `again` is how to run one program alone."""
  console = Console(stderr=True, highlight=False)
  store = Store(options.results, what)
  if store.resumed: console.print(f"going on with {options.results} after {store.handed_out:,} tasks")
  by = machines(options.scheduler, options.jobs)
  console.print(by.told())
  for ending in (signal.SIGINT, signal.SIGTERM): signal.signal(ending, signal.default_int_handler)
  code = 0
  with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console,
                disable=not console.is_terminal) as progress:
    campaign = Campaign(plan, store, by, options.keep_going,
                        shown(console, progress if console.is_terminal else None))
    try: campaign.run(options.seconds)
    except GoneWrong: code = 1
    except KeyboardInterrupt: code = 130
  wrong = store.wrong()
  if options.json:
    run = {"wall": round(campaign.wall, 3), "workers": by.workers, "efficiency": round(campaign.efficiency, 3),
           "busy": round(campaign.busy, 3), "spent": round(campaign.spent, 3), "tasks": campaign.tasks}
    print(json.dumps(store.summary() | {"run": run}, indent=1))
    return code or (1 if wrong else 0)
  for line in lines(store): print(line)
  for kind, number, times, text in wrong:
    more = f", and {times - 1:,} more of this cause" if times > 1 else ""
    print(f"{kind} {number}: {text}{more} ({again(kind, number)})", file=sys.stderr)
  print(f"{campaign.tasks:,} tasks, {100 * campaign.efficiency:.0f} % of {by.workers} processors for "
        f"{campaign.wall:.1f} s, {100 * campaign.busy:.0f} % of their time with a task")
  print(f"{len(wrong)} wrong" if wrong else "nothing wrong")
  return code or (1 if wrong else 0)
