"""The mutation score of a room: which changes are asked, which tests each is shown to, and what came of it."""
from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

from tinyhw.tools.mutate.equivalent import reason
from tinyhw.tools.mutate.places import Place
from tinyhw.tools.mutate.rooms import ROOMS, ROOT, files, test_files
from tinyhw.tools.mutate.trace import Map
from tinyhw.tools.mutate.worker import Job, Server

BUDGET: Final = 60.0  # processor seconds of tests, unchanged, that one change is shown to
FEW: Final = 3  # files, of which all are asked
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]+")


@dataclass
class Outcome:
  """What became of a change: `verdict` is failed, died, hung (all noticed), passed, unreached or equivalent; `by` says
  the test that noticed it, or why nothing can; `tests` how many tests reach it, `shown` how many of them were asked."""
  place: Place
  verdict: str
  by: str = ""
  tests: int = 0
  shown: int = 0

  @property
  def noticed(self) -> bool: return self.verdict in {"failed", "died", "hung"}

  def __str__(self) -> str:
    m = self.place.mutant
    where = f"{self.place.file.path.relative_to(ROOT)}:{m.line} {m.function}: {m.change}"
    reach = "no test reaches it" if self.verdict == "unreached" else f"{self.tests} tests reach it, {self.shown} asked"
    return f"{where}  ({reach})\n    {m.source}"


@dataclass
class Score:
  """The outcomes of a room's changes."""
  room: str
  outcomes: list[Outcome] = field(default_factory=list)

  @property
  def equivalent(self) -> list[Outcome]: return [o for o in self.outcomes if o.verdict == "equivalent"]

  @property
  def survivors(self) -> list[Outcome]: return [o for o in self.outcomes if o.verdict in {"passed", "unreached"}]

  @property
  def counted(self) -> int: return len(self.outcomes) - len(self.equivalent)

  @property
  def percent(self) -> float: return 100 * (self.counted - len(self.survivors)) / max(1, self.counted)


def places(room: str) -> list[Place]:
  """All changes of a room."""
  return [p for f in files(room) for p in f.places]


def sample(found: Iterable[Place], count: int, seed: int) -> list[Place]:
  """Some changes: those whose names have the least digests, so that an edit elsewhere draws no others."""
  def digest(p: Place) -> bytes: return hashlib.sha256(f"{seed} {p.name}".encode()).digest()
  return sorted(sorted(found, key=digest)[:count], key=lambda p: (str(p.file.path), p.mutant.number))


def targets(statement: ast.stmt) -> set[str]:
  """The names that a statement of a module defines."""
  if isinstance(statement, (ast.FunctionDef, ast.ClassDef)): return {statement.name}
  given = statement.targets if isinstance(statement, ast.Assign) else [
    statement.target] if isinstance(statement, (ast.AnnAssign, ast.AugAssign)) else []
  return {n.id for t in given for n in ast.walk(t) if isinstance(n, ast.Name)}


def words(node: ast.AST) -> set[str]:
  """The names in a text."""
  return {n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(node)
          if isinstance(n, (ast.Name, ast.Attribute))}


class Chooser:
  """Chooses the tests that a change of a room is shown to."""

  def __init__(self, room: str, known: Map, budget: float) -> None:
    self.room, self.map, self.budget = room, known, budget
    self.barred: set[str] = {t for t, e in known.tests.items() if not e.passed}
    self._words: dict[str, dict[str, set[int]]] = {}
    self._trees: dict[str, ast.Module] = {}
    self._tests: dict[tuple[str, str], set[str]] = {}  # by file and function: the names in a test's text
    self._read = set[str]()  # the files of these

  def reaching(self, path: str, lines: Iterable[int]) -> list[str]:
    """The tests that execute one of these lines."""
    wanted = set(lines)
    return [t for t, e in self.map.tests.items()
            if t not in self.barred and not wanted.isdisjoint(e.lines.get(path, ()))]

  def at_import(self, place: Place) -> bool:
    """Whether what is changed runs while modules load."""
    path = str(place.file.path.relative_to(ROOT))
    return place.function is None or (path, *place.function) in self.map.at_import

  def of(self, place: Place) -> tuple[list[tuple[str, float]], int]:
    """The tests to ask, in order, each with its seconds; and how many there are."""
    path = str(place.file.path.relative_to(ROOT))
    first, last = place.statement
    default = place.lines.start < first  # who runs the body uses it; its own line runs at import, whoever imports first
    reaching = not default and self.reaching(path, place.lines) or self.reaching(path, range(first, last + 1))
    file = [t for t, e in self.map.tests.items() if e.lines.get(path) and t not in self.barred]
    if not reaching and not self.at_import(place):  # perhaps in a process that a test forks: ask the file's tests
      return self._within(self._in_turn(file, path), self.budget / 4), 0
    groups = [reaching]
    if _once(reaching): groups.append(file)
    if self.at_import(place):
      groups += [self._naming(place), self._quoting(place), self._named_after(place)]
      if not default: groups = [*groups[1:], self._users(place), reaching]  # who reaches it only imported it first
      groups.append(file)
      if place.function is None: groups.append([t for t in self.map.tests if t not in self.barred])
    tests: list[str] = []
    for group in groups:
      known = set(tests)
      tests += self._in_turn((t for t in group if t not in known), path)
    return self._within(tests, self.budget), len(tests if self.at_import(place) else reaching)

  def _within(self, tests: Iterable[str], budget: float) -> list[tuple[str, float]]:
    """The first of these tests, with their seconds, that do not take more than this together; one at least."""
    chosen: list[tuple[str, float]] = []
    for test in tests:
      seconds = self.map.tests[test].seconds
      if chosen and seconds > budget: continue
      budget -= seconds
      chosen.append((test, seconds))
    return chosen

  def _naming(self, place: Place) -> list[str]:
    """The tests whose own text names what the changed statement of a module defines, or what the module makes of that:
    of all that load a table, those that look at it."""
    if place.function is not None: return []
    made, before = self._defined(place), set[str]()
    statements = [(targets(s), words(s)) for s in self._tree(str(place.file.path)).body]
    while made != before:
      before = {*made}
      for defined, used in statements:
        if not made.isdisjoint(used): made |= defined
    return [t for t in self.map.tests if t not in self.barred and not made.isdisjoint(self._own_words(t))]

  def _quoting(self, place: Place) -> list[str]:
    """The tests of those few files that have a text of the changed line too: they hold the row of a table to theirs."""
    if place.function is not None: return []
    texts = [f'"{t}"' for t in re.findall(r'"([^"\s]{2,})"', place.mutant.source)]
    files = {t.partition("::")[0] for t in self.map.tests}
    known = {path: (ROOT / path).read_text() for path in files if (ROOT / path).exists()}
    having = [[path for path, text in known.items() if t in text] for t in texts]
    few = {path for paths in having if len(paths) <= FEW for path in paths}
    return [t for t in self.map.tests if t not in self.barred and t.partition("::")[0] in few]

  def _defined(self, place: Place) -> set[str]:
    """What the statement of the module around a change defines."""
    line = place.statement[0]
    around = (s for s in self._tree(str(place.file.path)).body if s.lineno <= line <= (s.end_lineno or s.lineno))
    return {name for s in around for name in targets(s)}

  def _tree(self, path: str) -> ast.Module:
    if path not in self._trees: self._trees[path] = ast.parse((ROOT / path).read_text())
    return self._trees[path]

  def _own_words(self, test: str) -> set[str]:
    """The names in the text of a test."""
    path, _, name = test.partition("[")[0].partition("::")
    key = path, name.rpartition("::")[2]
    if path not in self._read:
      self._read.add(path)
      for node in ast.walk(self._tree(path)):
        if isinstance(node, ast.FunctionDef): self._tests[path, node.name] = words(node)
    return self._tests.get(key, set())

  def _named_after(self, place: Place) -> list[str]:
    """The tests whose case is named by a text of the changed statement: rows of tables have tests of their names."""
    first, last = min(place.lines.start, place.statement[0]), place.statement[1]
    texts = set(re.findall(r'"([A-Za-z]\w+)"', "\n".join(place.file.lines[first - 1:last])))
    return [t for t in self.map.tests
            if t not in self.barred and not texts.isdisjoint(re.split(r"\W", t.partition("[")[2]))]

  def _users(self, place: Place) -> list[str]:
    """The tests that execute a line, in any room, with one of the names that the changed statement defines."""
    first = place.file.lines[place.statement[0] - 1].strip()
    found = re.match(r"(?:class |def )?([A-Za-z_][A-Za-z_0-9]*)", first)
    if found is None: return []
    return [t for t, e in self.map.tests.items() if t not in self.barred
            and any(not self._lines(path, found[1]).isdisjoint(lines) for path, lines in e.lines.items())]

  def _lines(self, path: str, word: str) -> set[int]:
    """The lines of a file with a word."""
    if path not in self._words:
      words = self._words[path] = {}
      for n, line in enumerate((ROOT / path).read_text().split("\n"), 1):
        for w in NAME.findall(line): words.setdefault(w, set()).add(n)
    return self._words[path].get(word, set())

  def _in_turn(self, tests: Iterable[str], path: str) -> list[str]:
    """The quickest of each test function, then the second of each, ...; before these, so that half of the time is the
    own folder's, its tests alone in the same order: of the folder that is called as one that the file is in, or is in
    one that is, or the room's first."""
    folders, around = ROOMS[self.room].tests, path.split("/")[:-1]
    own = next((f for k in (-1, 1) for f in folders if f.split("/")[k] in around), folders[0]).partition("*")[0]
    functions: dict[str, list[str]] = {}
    for t in sorted(tests, key=lambda t: self.map.tests[t].seconds): functions.setdefault(t.split("[")[0], []).append(t)
    turns: list[str] = []
    for row in zip_longest(*functions.values()):
      turns += sorted((t for t in row if t), key=lambda t: (not t.startswith(own), self.map.tests[t].seconds))
    first, left = [], self.budget / 2
    for t in turns:
      if not t.startswith(own) or self.map.tests[t].seconds > left: continue
      left -= self.map.tests[t].seconds
      first.append(t)
    taken = set(first)
    return first + [t for t in turns if t not in taken]


def _once(tests: list[str]) -> bool:
  """Whether a line that these tests reach runs once a process: it is one of each file, the first that could. What it
  made others use."""
  return len(tests) > 1 and len({t.split("::")[0] for t in tests}) == len(tests)


def unreached(room: str, found: Iterable[Place], known: Map) -> list[Place]:
  """The first change of each line that could be asked and that no test executes."""
  chooser, out = Chooser(room, known, BUDGET), dict[tuple[str, int], Place]()
  for place in found:
    path, (first, last) = str(place.file.path.relative_to(ROOT)), place.statement
    if place.function is None or chooser.at_import(place) or reason(*place.mutant.key) is not None: continue
    if not chooser.reaching(path, {*place.lines, *range(first, last + 1)}):
      out.setdefault((path, place.mutant.line), place)
  return [*out.values()]


class Workers:
  """The two servers of a room, started when they are needed."""

  def __init__(self, room: str) -> None:
    self.room = room
    self.servers: dict[bool, Server] = {}

  def run(self, jobs: dict[int, tuple[bool, Job]], count: int, told: Callable[[int, dict[str, Any]], None]) -> None:
    """Run (fresh, job) by id, at most `count` at once."""
    for fresh in (False, True):
      waiting = [job for f, job in jobs.values() if f == fresh]
      if waiting and fresh not in self.servers:
        self.servers[fresh] = Server("bare") if fresh else Server("loaded", self.room, *test_files(self.room))
      running = 0
      while waiting or running:
        while waiting and running < count:
          self.servers[fresh].give(waiting.pop(0))
          running += 1
        verdict = self.servers[fresh].take()
        running -= 1
        told(verdict.pop("id"), verdict)

  def close(self) -> None:
    """End them."""
    for server in self.servers.values(): server.close()


def _check(workers: Workers, jobs: list[Job]) -> None:
  """Modules load and tests pass where nothing is changed: else every change would be noticed. A test that does not is
  not asked."""
  tests = {t.split("::")[0]: (t, s) for job in jobs for t, s in reversed(job.tests)}
  verdict: dict[str, Any] = {"verdict": "passed"}
  while tests:
    workers.run({0: (True, Job(0, "", "", -1, list(tests.values())))}, 1, lambda _, v: verdict.update(v))
    if verdict["verdict"] == "passed": return
    name = verdict["by"].split("::")[0]
    if name not in tests: raise RuntimeError(f"modules do not load without a change: {verdict['by']}")
    print(f"{verdict['by']} fails without a change: not asked", file=sys.stderr)
    barred = tests.pop(name)[0]
    for job in jobs: job.tests = [row for row in job.tests if row[0] != barred]


def measure(room: str, chosen: list[Place], known: Map, jobs: int = 1, budget: float = BUDGET) -> Score:
  """Make each change and ask the tests that reach it."""
  chooser, workers = Chooser(room, known, budget), Workers(room)
  outcomes: dict[int, Outcome] = {}
  waiting: dict[int, tuple[bool, Job]] = {}

  def ask(k: int, fresh: bool) -> None:
    place, (tests, reach) = chosen[k], chooser.of(chosen[k])
    outcomes[k] = Outcome(place, "" if tests else "unreached", "", reach, len(tests))
    job = Job(k, str(place.file.path), place.file.module, place.mutant.number, tests)
    if tests: waiting[k] = fresh, job

  def told(k: int, verdict: dict[str, Any]) -> None:
    if verdict["verdict"] == "unplanted": again.append(k)
    else:
      outcomes[k].verdict, outcomes[k].by = verdict["verdict"], verdict["by"]
      if outcomes[k].verdict == "passed" and not outcomes[k].tests: outcomes[k].verdict = "unreached"
    done, terminal = sum(1 for o in outcomes.values() if o.verdict), sys.stderr.isatty()
    if not terminal and done % 20: return
    print(f"{room}: {done} of {len(chosen)} asked, {sum(1 for o in outcomes.values() if o.noticed)} noticed ",
          end="\r" if terminal else "\n", file=sys.stderr, flush=True)

  for k, place in enumerate(chosen):
    why = reason(*place.mutant.key)
    if why is not None: outcomes[k] = Outcome(place, "equivalent", why)
    else: ask(k, chooser.at_import(place))
  sound: set[str] = set()
  again: list[int] = []
  _check(workers, [job for fresh, job in waiting.values() if fresh])
  while waiting:
    again.clear()
    workers.run(waiting, jobs, told)
    waiting = {}
    for k in again: ask(k, True)
    # A test that fails here unchanged too answers for nothing.
    killers = {o.by: o.tests for o in outcomes.values() if o.verdict == "failed" and o.by in known.tests} | {
      o.by.split(" (status")[0]: o.tests for o in outcomes.values() if o.verdict == "died"}
    names = [t for t in killers if t in known.tests and t not in sound]
    verdicts: dict[int, str] = {}
    unchanged = {k: (False, Job(k, "", "", -1, [(t, known.tests[t].seconds)])) for k, t in enumerate(names)}
    workers.run(unchanged, jobs, lambda k, v, to=verdicts: to.update({k: v["verdict"]}))  # type: ignore[misc]
    failing = [t for k, t in enumerate(names) if verdicts[k] != "passed"]
    sound |= set(names) - set(failing)
    chooser.barred |= set(failing)
    for name in failing: print(f"\n{name} fails without a change: not asked", file=sys.stderr)
    for k, o in enumerate([outcomes[k] for k in range(len(chosen))]):
      if o.noticed and o.by.split(" (status")[0] in failing: ask(k, chooser.at_import(o.place))
  workers.close()
  return Score(room, [outcomes[k] for k in range(len(chosen))])
