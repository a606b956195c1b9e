"""The file of a campaign: its tasks, what came of them, findings by cause, and of what all this is. SQLite."""
from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tinyhw.core.errors import InvalidArgument
from tinyhw.tools.campaign.apart import commit
from tinyhw.tools.campaign.task import Done, Task

FORMAT: Final = 1
_TABLES: Final = """
create table if not exists campaign (name text primary key, value text not null);
create table if not exists tasks (number integer primary key, kind text not null, first integer not null,
  count integer not null, state text not null check (state in ('open', 'done', 'lost')), seconds real, wall real,
  memory integer, files integer, worker text, endings text, rows text);
create table if not exists findings (cause text not null, kind text not null, times integer not null,
  program integer not null, text text not null, primary key (kind, cause));
create table if not exists lost (kind text not null, program integer not null, count integer not null,
  why text not null, primary key (kind, program));
"""


def surroundings() -> dict[str, str]:
  """The variables that say what runs here, for processes elsewhere."""
  return {k: v for k, v in os.environ.items() if k == "DEV" or k.startswith(("EMU", "MOCKGPU"))}


@dataclass
class Tally:
  """What has been run of a kind."""
  kind: str
  endings: Counter[str]
  seconds: float

  @property
  def programs(self) -> int: return sum(self.endings.values())


class Store:
  """A campaign's file, or none: then it is in memory. One process writes it."""

  def __init__(self, path: Path | None, what: dict[str, Any]) -> None:
    """`what` is all that the tasks follow from. Raises InvalidArgument where the file is of something else."""
    self.path, self.resumed = path, False
    said = {"format": str(FORMAT), "what": json.dumps(what, sort_keys=True)}
    try:
      self.db = sqlite3.connect(path or ":memory:")
      self.db.executescript(_TABLES)
      found = dict(self.db.execute("select name, value from campaign"))
    except sqlite3.DatabaseError as error:
      raise InvalidArgument(f"{path} is no file of a campaign ({error})", hint="name another file") from None
    if not found:
      said |= {"commit": commit(), "python": platform.python_version(), "system": platform.platform(),
               "environment": json.dumps(surroundings())}
      with self.db: self.db.executemany("insert into campaign values (?, ?)", said.items())
      return
    for name, value in said.items():
      if found.get(name) != value: raise InvalidArgument(
        f"{path} is of another campaign: {name} is {found.get(name)}, not {value}", hint="name another file")
    if found["commit"] != commit(): raise InvalidArgument(
      f"{path} is of other sources: {found['commit']}, not {commit()}", hint="name another file")
    self.resumed = self.handed_out > 0

  @property
  def handed_out(self) -> int:
    """How many tasks were handed out; their numbers begin with 0."""
    return int(self.db.execute("select count(*) from tasks").fetchone()[0])

  def open(self) -> list[int]:
    """The numbers of tasks that were handed out and have no result."""
    return [n for n, in self.db.execute("select number from tasks where state = 'open' order by number")]

  def begin(self, task: Task) -> None:
    """A task is handed out."""
    with self.db: self.db.execute("insert or ignore into tasks (number, kind, first, count, state) values "
                                  "(?, ?, ?, ?, 'open')", (task.number, task.kind, task.first, task.count))

  def done(self, task: Task, done: Done) -> bool:
    """Keep what came of a task, all of it or, where it has its result already, nothing: False."""
    with self.db:
      changed = self.db.execute(
        "update tasks set state = 'done', seconds = ?, wall = ?, memory = ?, files = ?, worker = ?, endings = ?, "
        "rows = ? where number = ? and state = 'open'",
        (done.seconds, done.wall, done.memory, done.files, done.worker, json.dumps(done.endings),
         json.dumps(done.rows) if done.rows else None, task.number)).rowcount
      if not changed: return False
      self.db.executemany("insert into findings values (?, ?, 1, ?, ?) on conflict do update set times = times + 1",
                          [(f.cause, task.kind, f.program, f.text) for f in done.findings])
      self.db.executemany("insert or ignore into lost values (?, ?, 1, ?)",
                          [(task.kind, number, why) for number, why in done.lost])
    return True

  def lose(self, task: Task, why: str) -> None:
    """A task whose workers died as often as they may."""
    with self.db:
      if self.db.execute("update tasks set state = 'lost' where number = ? and state = 'open'",
                         (task.number,)).rowcount:
        self.db.execute("insert or ignore into lost values (?, ?, ?, ?)", (task.kind, task.first, task.count, why))

  def tallies(self) -> list[Tally]:
    """How programs ended, by kind."""
    out: dict[str, Tally] = {}
    for kind, endings, seconds in self.db.execute("select kind, endings, seconds from tasks where state = 'done' "
                                                  "order by number"):
      tally = out.setdefault(kind, Tally(kind, Counter(), 0.0))
      tally.endings.update(json.loads(endings))
      tally.seconds += seconds
    return list(out.values())

  def rows(self) -> Iterator[Any]:
    """The rows of all tasks, in the order of their numbers."""
    for rows, in self.db.execute("select rows from tasks where rows is not null order by number"):
      yield from json.loads(rows)

  def wrong(self) -> list[tuple[str, int, int, str]]:
    """What was found, (kind, program, how often, text), a row a cause; then what was lost."""
    found = self.db.execute("select kind, program, times, text from findings order by kind, program").fetchall()
    return found + self.db.execute("select kind, program, count, why from lost order by kind, program").fetchall()

  def summary(self) -> dict[str, Any]:
    """All of it in short, as JSON values."""
    states = dict(self.db.execute("select state, count(*) from tasks group by state"))
    names = ("kind", "program", "times", "text", "cause")
    return {
      **{k: v for k, v in self.db.execute("select name, value from campaign") if k in {"commit", "python", "system"}},
      "tasks": {s: states.get(s, 0) for s in ("done", "open", "lost")},
      "kinds": {t.kind: {"programs": t.programs, "seconds": round(t.seconds, 3), "endings": dict(t.endings)}
                for t in self.tallies()},
      "findings": [dict(zip(names, r)) for r in self.db.execute(f"select {', '.join(names)} from findings")],
      "lost": [dict(zip(("kind", "program", "count", "why"), r)) for r in self.db.execute("select * from lost")]}
