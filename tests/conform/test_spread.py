"""The suite spread over processes: the same results, from a file too; a portion without results is an error."""
from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tinyhw.tools.campaign.run import GoneWrong
from tinyhw.tools.conform import ptx, run
from tinyhw.tools.conform.run import Options, Spread

ONLY = ("v_add_f16/e32", "v_min_u32", "v_lshl")


def nothing(done: int, of: int) -> None: pass


def test_several_processes_give_the_same_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", "ref")
  o, file = Options("gfx1100", "EMU", ONLY), tmp_path / "results.sqlite"
  alone, by = run.run_all(o), Spread(2, results=file)
  assert run.run_all(o, by) == alone
  with sqlite3.connect(file) as db: assert db.execute("update tasks set worker = 'kept'").rowcount > 1
  assert run.run_all(o, by) == alone
  with sqlite3.connect(file) as db: assert db.execute("select distinct worker from tasks").fetchall() == [("kept",)]


def test_ptx_by_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", "ref")
  alone = sorted(ptx.run_all("EMU", ("ptx/min",), "", 60.0), key=lambda r: r.id)
  assert len(alone) > 3 and ptx.run_all("EMU", ("ptx/min",), "", 60.0, Spread(2)) == alone


def test_a_portion_that_has_no_result_is_no_pass() -> None:
  with pytest.raises(GoneWrong, match="no suite"):
    run.spread(Spread(2), "gfx1100", "tinyhw.tools.conform.run:portion", 2,
               {"options": {"arch": "no suite", "device": "EMU", "only": []}}, nothing)
