"""What a campaign costs on many workers: a simulation, with the scheduler's time for a task measured here.

    python -m tinyhw.tools.campaign.cost                              tables for 10 to 1,000 workers
    python -m tinyhw.tools.campaign.cost --overhead 0.001             with this time instead of a measured one
    python -m tinyhw.tools.campaign.cost --measure 50                 only measure, with so many workers in this process

The scheduler does one thing at a time. A worker has a task and the next one; when it has done one it says so, and the
scheduler, when it comes to it, gives it another. Workers die at random times, lose what they were at, and come again.
"""
from __future__ import annotations

import argparse
import heapq
import pickle
import random
import sys
import time
from dataclasses import dataclass
from typing import Any, Final

from tinyhw.tools.campaign.machines import AHEAD
from tinyhw.tools.campaign.task import Done, Task

TRIVIAL: Final = 3000  # tasks that overhead is measured by


@dataclass(frozen=True)
class Fleet:
  """`overhead`: seconds of the scheduler a task; `deaths`: a worker's an hour; `back`: seconds until it is there again;
  `spread`: tasks take between 1 - spread and 1 + spread of their mean."""
  workers: int
  overhead: float
  deaths: float = 0.0
  back: float = 10.0
  spread: float = 0.5


@dataclass(frozen=True)
class Simulated:
  """What a simulated campaign came to: seconds on the clock, tasks done, tasks begun again, efficiency."""
  wall: float
  done: int
  again: int
  efficiency: float


def simulate(fleet: Fleet, tasks: int, seconds: float, seed: int = 0) -> Simulated:
  """A campaign of so many tasks of so many seconds."""
  rng = random.Random(seed)
  length = [seconds * rng.uniform(1 - fleet.spread, 1 + fleet.spread) for _ in range(tasks)]
  waiting = list(range(tasks))[::-1]
  held: list[list[int]] = [[] for _ in range(fleet.workers)]  # of a worker: what it runs, and what it has next
  life = [0] * fleet.workers
  events: list[tuple[float, int, str, int, int]] = []  # time, order, what, worker, which of its lives
  count, done, again, free, now = 0, 0, 0, 0.0, 0.0

  def later(at: float, what: str, w: int) -> None:
    nonlocal count
    count += 1
    heapq.heappush(events, (at, count, what, w, life[w]))

  def ask(w: int) -> None:
    """The scheduler, when it comes to it, gives the worker another task."""
    nonlocal free
    free = max(free, now) + fleet.overhead
    later(free, "given", w)

  def dies(w: int) -> None:
    if fleet.deaths: later(now + rng.expovariate(fleet.deaths / 3600), "dead", w)
  for _ in range(AHEAD):
    for w in range(fleet.workers): ask(w)
  for w in range(fleet.workers): dies(w)
  while done < tasks:
    now, _, what, w, of = heapq.heappop(events)
    if of != life[w]: continue
    if what == "given" and waiting:
      held[w].append(waiting.pop())
      if len(held[w]) == 1: later(now + length[held[w][0]], "done", w)
    elif what == "done":
      done += 1
      held[w].pop(0)
      if held[w]: later(now + length[held[w][0]], "done", w)
      ask(w)
    elif what == "dead":
      again += bool(held[w])
      waiting += held[w][::-1]
      held[w], life[w] = [], life[w] + 1
      later(now + fleet.back, "back", w)
      idle = [v for v in range(fleet.workers) if not held[v] and v != w]
      for v in idle[:AHEAD]: ask(v)
    elif what == "back":
      for _ in range(AHEAD): ask(w)
      dies(w)
  return Simulated(now, done, again, sum(length) / (fleet.workers * now))


def trivial(task: Task) -> Done:
  """A task that does nothing."""
  return Done()


def overhead(workers: int, tasks: int = TRIVIAL) -> float:
  """Seconds a task of a scheduler, a client and workers that all are in this process: more than the scheduler's own."""
  from concurrent.futures import FIRST_COMPLETED, wait

  import distributed  # an extra: the simulation does without
  local: Any = distributed.LocalCluster
  with local(n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
    client: Any = distributed.Client
    with client(cluster, set_as_default=False) as there:
      executor, pending, left = there.get_executor(pure=False), set[Any](), tasks
      start = time.process_time()
      while left or pending:
        while left and len(pending) < AHEAD * workers:
          pending.add(executor.submit(trivial, Task(left, "kind", "module:function", 0)))
          left -= 1
        _, pending = wait(pending, 1.0, FIRST_COMPLETED)
      return (time.process_time() - start) / tasks


def main() -> int:
  """Print the tables."""
  head, _, examples = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.campaign.cost", description=head, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--overhead", type=float, help="seconds of the scheduler a task")
  parser.add_argument("--measure", type=int, metavar="WORKERS", help="measure it with so many workers, and no more")
  parser.add_argument("--deaths", type=float, default=0.1, help="of a worker, an hour (default: 0.1)")
  parser.add_argument("--tasks", type=int, default=20, help="tasks a worker (default: 20)")
  options = parser.parse_args()
  given = options.overhead if options.overhead is not None else overhead(options.measure or 10)
  task, result = (len(pickle.dumps(x)) for x in (Task(0, "kind", "module:function", 0), Done()))
  print(f"{1e3 * given:.2f} ms of the scheduler a task; a task is {task} bytes, an empty result {result}")
  if options.measure: return 0
  print("workers  seconds a task  efficiency  tasks begun again")
  for workers in (10, 100, 1000):
    for seconds in (0.3, 1.0, 3.0, 10.0, 30.0, 100.0):
      s = simulate(Fleet(workers, given, options.deaths), options.tasks * workers, seconds)
      print(f"{workers:7,}  {seconds:14g}  {s.efficiency:10.2f}  {s.again:,} of {s.done:,}")
  return 0


if __name__ == "__main__": sys.exit(main())
