"""How a ladder is climbed: order, what is blocked, time limits, processes that end, and going on from a file."""
from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tinyhw.bringup import climb
from tinyhw.bringup.bench import forked
from tinyhw.bringup.climb import Climb
from tinyhw.bringup.result import ABSENT, BLOCKED, BROKEN, PASSED, Kept, LadderRun, Result
from tinyhw.bringup.rung import Absent, Broken, Ladder
from tinyhw.core.errors import DecodeError, DeviceError, InvalidArgument, LayoutError


class Plain:
  """A bench that has nothing."""
  def begin(self, seconds: float) -> None: pass
  def submitted(self) -> Sequence[str]: return ["NOP()"]
  def facts(self) -> dict[str, Any]: return {"name": "plain"}
  def secrets(self) -> Sequence[bytes]: return [b"\x01\x02"]
  def close(self) -> None: pass


def ladder() -> Ladder[Plain]:
  made: Ladder[Plain] = Ladder("TEST")

  @made.rung("a.one", why="first")
  def one(b: Plain) -> str: return "holds"

  @made.rung("a.two", needs=("a.one",), why="lies")
  def two(b: Plain) -> str: raise Broken("7", "8", "the second byte")

  @made.rung("a.three", needs=("a.two",), why="stands on a lie")
  def three(b: Plain) -> str: return "never"

  @made.rung("b.one", needs=("a.one",), why="another branch")
  def other(b: Plain) -> str: return "holds"

  @made.rung("b.two", needs=("b.one",), why="a thing that is not there")
  def missing(b: Plain) -> str: raise Absent("no second card")

  @made.rung("b.three", needs=("b.two",), why="stands on it")
  def above(b: Plain) -> str: return "never"

  @made.rung("c.hangs", why="never comes back", seconds=0.1)
  def hangs(b: Plain) -> str:
    time.sleep(60)
    return "never"

  @made.rung("c.dies", why="takes its process along")
  def dies(b: Plain) -> str: os._exit(3)

  @made.rung("c.fails", why="an error of a driver")
  def fails(b: Plain) -> str: raise DeviceError("no such luck", where="here", facts=("a fact",))

  @made.rung("c.alone", needs=("a.one",), why="in a process of its own", alone=True)
  def alone(b: Plain) -> str: return str(os.getpid())
  return made


def test_a_broken_rung_blocks_what_stands_on_it_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
  """In children: one that hangs is ended, one that dies is noted, and both are followed by the others."""
  monkeypatch.setattr(climb, "GRACE_S", 0.3)
  began, made = time.monotonic(), Climb(ladder().chosen(), Plain)
  found = {r.rung: r for r in made.run()}
  assert {name: r.state for name, r in found.items()} == {
    "a.one": PASSED, "a.two": BROKEN, "a.three": BLOCKED, "b.one": PASSED, "b.two": ABSENT, "b.three": ABSENT,
    "c.hangs": BROKEN, "c.dies": BROKEN, "c.fails": BROKEN, "c.alone": PASSED}
  assert (found["a.two"].found, found["a.two"].wanted, found["a.two"].look_at) == ("7", "8", "the second byte")
  assert found["a.two"].packets == ["NOP()"] and "a.two" in found["a.three"].found
  assert "did not answer" in found["c.hangs"].found and "ended" in found["c.dies"].found
  assert found["c.fails"].found == "here: no such luck" and found["c.fails"].facts == ["a fact"]
  assert int(found["c.alone"].evidence) != os.getpid() and time.monotonic() - began < 20
  assert made.facts == {"name": "plain"} and made.secrets == {b"\x01\x02"}


def test_a_run_goes_on_from_its_file(tmp_path: Path) -> None:
  path, rungs = tmp_path / "state.json", ladder().chosen(only=("a", "b"))
  kept, results = Kept(path, "TEST", "plain"), list[Result]()

  def took(result: Result) -> None:
    results.append(result)
    kept.keep(results)
  Climb(rungs, Plain, shown=took, inside=True).run()
  again = Kept(path, "TEST", "plain")
  assert set(again.passed) == {"a.one", "b.one"}
  rows = {r.rung: r for r in Climb(rungs, Plain, kept=again.passed, inside=True).run()}
  assert rows["a.one"].kept and rows["b.one"].kept and not rows["a.two"].kept
  with pytest.raises(InvalidArgument, match="is of TEST on plain"): Kept(path, "TEST", "another")
  path.write_text("{}")
  with pytest.raises(DecodeError, match="no state"): Kept(path, "TEST", "plain")


def doubled(b: Plain, number: int) -> int:
  if number < 0: raise Broken("less than nothing", "a number", "the caller")
  return 2 * number


def test_another_process_answers_and_ends() -> None:
  """As on a card: a child over a pipe."""
  other = forked(Plain)
  assert other.call(doubled, 21) == 42 and other.call(_pid) != os.getpid()
  with pytest.raises(Broken, match="less than nothing"): other.call(doubled, -1)
  assert other.call(doubled, 4) == 8
  other.end()
  other.end()  # which is no error
  other = forked(Plain)
  with pytest.raises(Broken, match="another process of the device ended"): other.call(_gone)
  other.end()


def _pid(b: Plain) -> int: return os.getpid()
def _gone(b: Plain) -> None: os._exit(1)


def test_rungs_are_chosen_by_name_and_branch() -> None:
  made = ladder()
  assert [r.name for r in made.chosen(until="a.three")] == ["a.one", "a.two", "a.three"]
  assert [r.name for r in made.chosen(only=("b",))] == ["a.one", "b.one", "b.two", "b.three"]
  assert made.branches == ["a", "b", "c"]
  with pytest.raises(InvalidArgument, match=r"no rung is called 'a.tow'.*a.two"): made.chosen(until="a.tow")
  with pytest.raises(LayoutError, match="twice"): made.rung("a.one", why="again")(lambda b: "")
  with pytest.raises(LayoutError, match="not declared before"): made.rung("d.one", needs=("e.one",),
         why="")(lambda b: "")


def test_a_run_counts_its_states() -> None:
  run = LadderRun("TEST", "plain", [Result("a.one", PASSED), Result("a.two", BROKEN), Result("a.three", BLOCKED)])
  row = run.row()
  assert row["counts"] == {PASSED: 1, BROKEN: 1, BLOCKED: 1, ABSENT: 0} and row["first_broken"] == "a.two"
  assert not run.whole
