"""A bounded part of the random campaign, always the same programs; and what a campaign does when one goes wrong."""
from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.strength import examples, seed
from tinyhw.core.errors import InvalidArgument
from tinyhw.tools.fuzz import campaign
from tinyhw.tools.fuzz.campaign import Campaign, Journal, Tally, TaskPlan, Wrong
from tinyhw.tools.fuzz.drawn import KINDS

PROGRAMS = {"instructions": 6, "programs": 6, "bytes": 1200, "compiled": 12, "texts": 100, "files": 150,
            "compiled-texts": 4}
FIRST = 1_000_000
BAD = 13


@pytest.mark.parametrize("kind", PROGRAMS)
def test_random_machine_code(kind: str) -> None:
  first, count = seed(FIRST), examples(PROGRAMS[kind])
  endings = Counter(KINDS[kind](number) for number in range(first, first + count))
  assert sum(endings.values()) == count


def _crash(number: int) -> str:
  if number == BAD: os.kill(os.getpid(), signal.SIGKILL)
  return "ended"


def _hang(number: int) -> str:
  if number == BAD: time.sleep(60)
  return "ended"


def _raise(number: int) -> str:
  if number == BAD: raise RuntimeError("not what it must be")
  return "ended"


@pytest.mark.parametrize(("one", "said"), [(_crash, "SIGKILL"), (_hang, "still running"), (_raise, "RuntimeError")])
def test_what_goes_wrong_is_named_and_the_others_are_run(one: campaign.Callable[[int], str], said: str,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(campaign, "HANG", 0.3)
  tally = Tally()
  Campaign(TaskPlan(["bytes"], 0, 30), tally, Journal(None), 2, {"bytes": one}, keep_going=True).run(60)
  [wrong] = tally.wrong
  assert wrong.startswith(f"bytes {BAD}: ") and said in wrong
  assert tally.done["bytes"] == 29
  with pytest.raises(Wrong, match=f"bytes {BAD}: "):
    Campaign(TaskPlan(["bytes"], BAD, 1), Tally(), Journal(None), 1, {"bytes": one}).run(60)


def test_a_process_that_leaks_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(campaign, "FILES", 60)
  monkeypatch.setitem(campaign.ROUND, "bytes", 10)
  kept: list[int] = []

  def leak(number: int) -> str:
    kept.extend(os.pipe())
    return "ended"
  tally = Tally()
  Campaign(TaskPlan(["bytes"], 0, 50), tally, Journal(None), 1, {"bytes": leak}, keep_going=True).run(60)
  assert tally.done["bytes"] == 50
  assert tally.wrong and all("open files" in w for w in tally.wrong)


def test_a_journal_goes_on_where_a_run_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """Every number is run once, however often the campaign is stopped."""
  monkeypatch.setitem(campaign.ROUND, "bytes", 7)
  ran = tmp_path / "ran"
  ran.touch()

  def one(number: int) -> str:
    with ran.open("a") as file: file.write(f"{number}\n")
    return "even" if number % 2 == 0 else "odd"
  journal, runs = Journal(tmp_path / "journal.json"), 0
  while (state := journal.load()) is None or state[0].left or state[0].open:
    plan, tally = state or (TaskPlan(["bytes"], 0, 100), Tally())
    Campaign(plan, tally, journal, 2, {"bytes": one}).run(0.0)  # a task for each process
    runs += 1
  assert runs > 3
  assert sorted(map(int, ran.read_text().split())) == list(range(100))
  assert state[1].endings == {"bytes": {"even": 50, "odd": 50}}


def test_another_file_is_no_journal(tmp_path: Path) -> None:
  path = tmp_path / "x.json"
  path.write_text("[1]")
  with pytest.raises(InvalidArgument, match="no journal"): Journal(path).load()
