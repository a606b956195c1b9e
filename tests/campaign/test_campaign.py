"""Campaigns: what goes wrong is named, and nothing is lost or counted twice, whoever dies."""
from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.campaign.works import BAD
from tinyhw.core.errors import InvalidArgument
from tinyhw.tools.campaign.machines import Here, machines
from tinyhw.tools.campaign.run import Campaign, GoneWrong, rows
from tinyhw.tools.campaign.store import Store
from tinyhw.tools.campaign.task import Limits, Task, cause

Plan = Callable[[int], Task | None]
LIMITS = Limits()


def plan(programs: int, a_task: int, limits: Limits = LIMITS, **parameters: Any) -> Plan:
  def task(number: int) -> Task | None:
    count = min(a_task, programs - number * a_task)
    return Task(number, "kind", "tests.campaign.works:work", number * a_task, count, parameters, limits) \
      if count > 0 else None
  return task


def ran(path: Path) -> list[int]: return [int(line.split()[0]) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(("how", "said"), [("crash", "SIGKILL"), ("hang", "still running"), ("raise", "not what it")])
def test_what_goes_wrong_is_named_and_the_others_are_run(how: str, said: str) -> None:
  limits, store = Limits(hang=2.0), Store(None, {})
  Campaign(plan(30, 20, limits, how=how), store, Here(1), keep_going=True).run()
  [(kind, program, times, text)] = store.wrong()
  assert (kind, program, times) == ("kind", BAD, 1) and said in text
  assert [t.programs for t in store.tallies()] == [29]
  assert list(store.rows()).count(BAD * BAD) == 0 and len(list(store.rows())) == 29


def test_a_campaign_ends_with_what_is_wrong() -> None:
  with pytest.raises(GoneWrong, match=f"kind {BAD}: "):
    Campaign(plan(30, 5, how="raise"), Store(None, {}), Here(1)).run()


def test_a_process_that_died_once_is_no_finding(tmp_path: Path) -> None:
  store = Store(None, {})
  Campaign(plan(30, 20, how="once", ran=str(tmp_path / "ran")), store, Here(1)).run()
  assert not store.wrong() and list(store.rows()) == [n * n for n in range(30)]
  assert ran(tmp_path / "ran").count(BAD) == 2


def test_a_process_that_leaks_is_replaced(tmp_path: Path) -> None:
  path, store = tmp_path / "ran", Store(None, {})
  Campaign(plan(50, 10, Limits(files=30), how="leak", ran=str(path)), store, Here(1), keep_going=True).run()
  assert [t.programs for t in store.tallies()] == [50]
  assert store.wrong() and all("open files" in text for *_, text in store.wrong())
  assert len({line.split()[1] for line in path.read_text().splitlines()}) > 1


def test_findings_of_one_cause_are_one() -> None:
  store = Store(None, {})
  Campaign(plan(50, 7, how="found"), store, Here(1), keep_going=True).run()
  assert [(program % 10, times) for _, program, times, _ in store.wrong()] == [(0, 5)]
  assert cause("5 at 0x7f is 1.5\nmore") == cause("77 at 0x0 is 3") != cause("77 at 0x0 was 3")
  assert cause("v_add_f32: 1") != cause("v_add_f16: 1")


def test_a_file_goes_on_where_a_run_was_stopped(tmp_path: Path) -> None:
  """Every task is run once, however often the campaign is stopped."""
  path, runs, left = tmp_path / "ran", 0, True
  path.touch()
  while left:
    store = Store(tmp_path / "results.sqlite", {"of": "this"})
    Campaign(plan(70, 10, ran=str(path)), store, Here(1)).run(0.0)  # a task
    left = sum(t.programs for t in store.tallies()) < 70
    runs += 1
  assert runs == 7 and sorted(ran(path)) == list(range(70))
  assert store.tallies()[0].endings == {"even": 35, "odd": 35}
  with pytest.raises(InvalidArgument, match="another campaign"): Store(tmp_path / "results.sqlite", {"of": "that"})


def test_a_result_that_comes_twice_is_counted_once() -> None:
  store, task_of = Store(None, {}), plan(10, 10)
  by = Here(1)
  task = task_of(0)
  assert task is not None
  store.begin(task)
  done = by.submit(task).result()
  by.close()
  assert store.done(task, done) and not store.done(task, done)
  assert [t.programs for t in store.tallies()] == [10]


def test_another_file_is_no_campaign(tmp_path: Path) -> None:
  path = tmp_path / "x.sqlite"
  path.write_text("[1]" * 100)
  with pytest.raises(InvalidArgument, match="no file of a campaign"): Store(path, {})


def test_rows_come_in_the_order_of_the_plan() -> None:
  assert list(rows(plan(23, 4), {}, jobs=2)) == [n * n for n in range(23)]


# ---- on Dask

@pytest.fixture
def cluster() -> Any:
  """A scheduler and two workers, in processes of their own."""
  distributed = pytest.importorskip("distributed")
  dask = pytest.importorskip("dask")
  with (dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as made): yield made


def test_half_of_the_workers_killed(cluster: Any, tmp_path: Path) -> None:
  """Nothing is lost: each program has one result."""
  path, file = tmp_path / "ran", tmp_path / "results.sqlite"
  path.touch()
  killed: list[int] = []

  def kill() -> None:
    """The worker above a process that has begun, twice."""
    while len(killed) < 2:
      time.sleep(0.1)
      workers = [int(line.split()[2]) for line in path.read_text().splitlines()]
      fresh = [w for w in workers if w not in killed and w != os.getpid()]
      if len(workers) < 20 * (len(killed) + 1) or not fresh: continue
      os.kill(fresh[-1], signal.SIGKILL)
      killed.append(fresh[-1])
  killer = threading.Thread(target=kill, daemon=True)
  killer.start()
  Campaign(plan(120, 3, seconds=0.02, ran=str(path)), Store(file, {}), machines(cluster.scheduler_address, 1)).run()
  killer.join(10)
  assert len(killed) == 2
  store = Store(file, {})
  assert not store.wrong() and list(store.rows()) == [n * n for n in range(120)]
  assert store.tallies()[0].endings == Counter(even=60, odd=60)
  with sqlite3.connect(file) as db:
    assert db.execute("select state, count(*) from tasks group by state").fetchall() == [("done", 40)]
    assert len(db.execute("select distinct worker from tasks").fetchall()) > 2


def test_a_program_that_crashes_is_named_by_a_cluster(cluster: Any) -> None:
  store = Store(None, {})
  Campaign(plan(30, 20, how="crash"), store, machines(cluster.scheduler_address, 1), keep_going=True).run()
  assert [row[:3] for row in store.wrong()] == [("kind", BAD, 1)] and len(list(store.rows())) == 29


def test_a_task_that_ends_its_workers_is_lost_by_name(cluster: Any) -> None:
  store, task_of = Store(None, {}), plan(16, 2, how="worker")
  Campaign(task_of, store, machines(cluster.scheduler_address, 1), keep_going=True).run()
  lost = {program: (count, text) for _, program, count, text in store.wrong()}
  assert lost[BAD - 1][0] == 2 and "workers died" in lost[BAD - 1][1]
  kept = [n for n in range(16) if n - n % 2 not in lost]
  assert list(store.rows()) == [n * n for n in kept] and store.summary()["tasks"]["open"] == 0
