"""A schedule of a mock machine: where a run departs from the default order, as data that a file keeps.

In the default order whoever runs goes on until it cannot, the host looks as soon as what it waits for is there, copies
are whole and signals are at once where everybody sees them. A schedule lists the places where it was otherwise; so what
it does not list is the default, a shorter one is nearer to the default, and an empty one is the default itself.

A place is somebody's name and a count of his own: `GPU0.PM4.0 3` is the moment behind his third turn. Turns are
packets, methods and stretches of dispatches, never times; so a place means the same on a slower host.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tinyhw.core.errors import InvalidArgument

FORMAT: Final = "tinyhw schedule 1"
STRATEGIES: Final = ("default", "random", "pct")


@dataclass(frozen=True)
class Departure:
  """At a place another one went on than by default (`took` is a name), or another number than 0 was drawn.

  `what` says what the number is for; it is empty where the question was who goes on. `text` is for people.
  """

  at: str
  took: str | int
  what: str = ""
  text: str = ""

  @property
  def key(self) -> tuple[str, str]: return self.at, self.what

  def row(self) -> dict[str, Any]:
    return {name: value for name, value in vars(self).items() if value != ""}


@dataclass(frozen=True)
class Draw:
  """A question that a run has answered: `of` are the names that could go on, or how many numbers there are; `took` is
  the place in them, `default` what it is by default."""

  at: str
  what: str
  of: tuple[str, ...] | int
  took: int
  default: int

  def departure(self, took: int) -> Departure:
    return Departure(self.at, took if isinstance(self.of, int) else self.of[took], self.what)


@dataclass(frozen=True)
class Rest:
  """How what a schedule does not list is drawn: "default", "random", or "pct" with so many points (`depth` - 1) in the
  first `length` draws where the one that leads falls behind all others."""

  strategy: str = "default"
  seed: int = 0
  depth: int = 3
  length: int = 100


@dataclass(frozen=True)
class Schedule:
  """Departures of each machine that the program makes, in the order in which it makes them; see the module.

  `program` and `environment` say what it is a schedule of, for whoever replays it.
  """

  machines: tuple[tuple[Departure, ...], ...] = ()
  rest: Rest = Rest()
  program: tuple[str, ...] = ()
  environment: Mapping[str, str] = field(default_factory=dict)

  def __len__(self) -> int: return sum(map(len, self.machines))

  def of_machine(self, number: int) -> tuple[Departure, ...]:
    return self.machines[number] if number < len(self.machines) else ()

  def flat(self) -> list[tuple[int, Departure]]:
    """All departures, each with its machine."""
    return [(n, d) for n, departures in enumerate(self.machines) for d in departures]

  def keeping(self, rows: Sequence[tuple[int, Departure]]) -> Schedule:
    """The same with these departures alone."""
    last = max((n for n, _ in rows), default=-1)
    return replace(self, machines=tuple(tuple(d for m, d in rows if m == n) for n in range(last + 1)))

  def text(self) -> str:
    """The file."""
    row = {"format": FORMAT, "program": list(self.program), "environment": dict(self.environment),
           "machines": [[d.row() for d in departures] for departures in self.machines]}
    if self.rest != Rest(): row["rest"] = vars(self.rest)
    return json.dumps(row, indent=1) + "\n"


def read(path: str | Path, where: str = "") -> Schedule:
  """The schedule that a file holds. Raises InvalidArgument for what is none."""
  where = where or str(path)
  try: text = Path(path).read_text()
  except OSError as error: raise InvalidArgument(f"{path}: {error.strerror}", where=where) from None
  except UnicodeDecodeError: raise InvalidArgument(f"{path} is no text", where=where) from None
  try: row = json.loads(text)
  except ValueError as error: raise InvalidArgument(f"{path} is no JSON: {error}", where=where) from None
  found = row.get("format") if isinstance(row, dict) else None
  if found != FORMAT:
    raise InvalidArgument(f"{path} is no schedule: its format is {found!r}", where=where, hint=f"wanted {FORMAT!r}")
  return _Reader(str(path), where).schedule(row)


@dataclass(frozen=True)
class _Reader:
  """Takes a file's row to pieces, and says what is wrong with one."""

  path: str
  where: str

  def wrong(self, what: str) -> InvalidArgument:
    return InvalidArgument(f"{self.path}: {what}", where=self.where, hint="tinyhw explore writes such files")

  def schedule(self, row: Mapping[str, Any]) -> Schedule:
    machines, program, environment = row.get("machines", []), row.get("program", []), row.get("environment", {})
    if not isinstance(machines, list) or not all(isinstance(m, list) for m in machines):
      raise self.wrong("machines are no lists of departures")
    if not isinstance(program, list) or not isinstance(environment, dict):
      raise self.wrong("its program is no list, or its environment no object")
    return Schedule(tuple(tuple(map(self.departure, m)) for m in machines), self.rest(row.get("rest", {})),
                    tuple(map(str, program)), {str(k): str(v) for k, v in environment.items()})

  def rest(self, row: object) -> Rest:
    if not isinstance(row, dict) or not row.keys() <= set(vars(Rest())): raise self.wrong(f"rest {row!r}")
    made = Rest(**row)
    numbers = made.seed, made.depth, made.length
    if made.strategy not in STRATEGIES: raise self.wrong(f"no strategy is called {made.strategy!r}; there are "
                                                         f"{', '.join(STRATEGIES)}")
    if not all(isinstance(n, int) and n >= 0 for n in numbers): raise self.wrong(f"rest {row!r}")
    return made

  def departure(self, row: object) -> Departure:
    if not isinstance(row, dict) or not {"at", "took"} <= row.keys() <= {"at", "took", "what", "text"}:
      raise self.wrong(f"a departure {row!r}; it has at and took")
    texts = row["at"], row.get("what", ""), row.get("text", "")
    if not all(isinstance(t, str) for t in texts) or not isinstance(row["took"], (str, int)):
      raise self.wrong(f"a departure {row!r}")
    return Departure(**row)
