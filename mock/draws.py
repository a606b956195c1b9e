"""What a machine's scheduler draws when a schedule is followed or looked for: who goes on, and how things are done.

Without one the machine's own seed draws (`running`), several packets at a time. With one each turn is one packet, and
after each somebody is asked who goes on: queues, signals that are late, and the host, which may look late at what it
waits for or lag behind at a doorbell. So a run is what these draws say, and can be had again.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

from tinyhw.core.schedule import Departure, Draw, Rest

HOST: Final = "the host"
FAIR: Final = 2000  # turns in a row after which others come first: what runs may wait for them without saying so


class Strategy(ABC):
  """Draws what a schedule does not say."""

  @abstractmethod
  def who(self, names: Sequence[str], default: int) -> int:
    """Which of these goes on; `default` is the one that would."""

  @abstractmethod
  def number(self, of: int, odds: float) -> int:
    """A number below `of`; how likely it is another one than 0."""

  @abstractmethod
  def tired(self, name: str) -> None:
    """Somebody had many turns in a row."""


class Default(Strategy):
  """Nobody is held back."""

  def who(self, names: Sequence[str], default: int) -> int: return default

  def number(self, of: int, odds: float) -> int: return 0

  def tired(self, name: str) -> None: return None


class Uniform(Strategy):
  """Each is as likely as the others, at each turn."""

  def __init__(self, seed: int) -> None: self._rng = random.Random(f"uniform {seed}")

  def who(self, names: Sequence[str], default: int) -> int: return self._rng.randrange(len(names))

  def number(self, of: int, odds: float) -> int:
    return 1 + self._rng.randrange(of - 1) if self._rng.random() < odds else 0

  def tired(self, name: str) -> None: return None


class Priorities(Strategy):
  """PCT (Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic Guarantees of Finding
  Bugs, ASPLOS 2010): everybody has a priority, the first of those who can goes on, and at depth - 1 of the first
  `length` draws he falls behind all others. A bug that so many orderings make is found with probability
  1 / (n * length ** (depth - 1)) at least, n of them being there."""

  def __init__(self, seed: int, depth: int, length: int) -> None:
    self._rng = random.Random(f"pct {seed}")
    self._points = {self._rng.randrange(max(length, 1)) for _ in range(depth - 1)}
    self._ranks: dict[str, float] = {}
    self._draws = self._fallen = 0

  def who(self, names: Sequence[str], default: int) -> int:
    for name in names:
      if name not in self._ranks: self._ranks[name] = self._rng.random()
    if self._draws in self._points: self.tired(max(names, key=self._ranks.__getitem__))
    self._draws += 1
    return max(range(len(names)), key=lambda n: self._ranks[names[n]])

  def number(self, of: int, odds: float) -> int:
    return 1 + self._rng.randrange(of - 1) if self._rng.random() < odds else 0

  def tired(self, name: str) -> None:
    self._fallen -= 1
    self._ranks[name] = self._fallen


def strategy(rest: Rest) -> Strategy:
  """What draws the rest of a schedule."""
  if rest.strategy == "random": return Uniform(rest.seed)
  if rest.strategy == "pct": return Priorities(rest.seed, rest.depth, rest.length)
  return Default()


class Draws:
  """The draws of one machine: the departures of a schedule where they are met, the strategy's elsewhere.

  `explain` gives the text of somebody's last turn, for people; with it the departures that were taken have one.
  """

  def __init__(self, departures: Sequence[Departure] = (), rest: Strategy | None = None, *,
               explains: bool = False) -> None:
    self._wanted = {d.key: d for d in departures}
    self.missed = dict(self._wanted)  # departures whose place never came, or where they could not be
    self._rest = rest if rest is not None else Default()
    self.log: list[Draw] = []
    self.current = HOST
    self.turns: Counter[str] = Counter()  # of each
    self._asked: Counter[tuple[str, str]] = Counter()
    self._row = 0  # turns of the current one without another's
    self._digest = blake2b(digest_size=16)
    self.explains, self.texts = explains, dict[int, str]()
    self.explain: Callable[[str], str] | None = None

  def who(self, names: Sequence[str], lags: bool = False) -> int:
    """Which of these has the next turn. Where the host `lags` behind somebody, that one goes on as long as it can."""
    took = 0
    if len(names) > 1:
      default = self._default(names, lags)
      at = f"{self.current} {self.turns[self.current]}"
      wanted = self._wanted.get((at, ""))
      if wanted is not None and wanted.took in names:
        took = names.index(str(wanted.took))
        self.missed.pop((at, ""), None)
      else: took = self._rest.who(names, default)
      self.log.append(Draw(at, "", tuple(names), took, default))
      if self.explains and took != default: self._explain(names[took], names[default])
    self._goes_on(names[took])
    return took

  def _default(self, names: Sequence[str], lags: bool) -> int:
    if self._row >= FAIR and len(names) > 1 and self.current in names:
      self._rest.tired(self.current)
      self._row = 0
      return (names.index(self.current) + 1) % len(names)
    if lags and self.current in names: return names.index(self.current)
    return names.index(HOST) if HOST in names else names.index(self.current) if self.current in names else 0

  def _goes_on(self, name: str) -> None:
    self._row = self._row + 1 if name == self.current else 0
    self.current = name
    self.turns[name] += 1
    self._digest.update(name.encode() + b"\n")

  def host(self) -> None:
    """The host runs: it rings a doorbell, or begins to wait."""
    self._goes_on(HOST)

  def number(self, who: str, what: str, of: int, odds: float = 0.25) -> int:
    """One of the numbers 0 to `of` - 1, of which 0 is the default."""
    self._asked[who, what] += 1
    at = f"{who} {self._asked[who, what]}"
    wanted = self._wanted.get((at, what))
    if wanted is not None and isinstance(wanted.took, int) and 0 <= wanted.took < of:
      took = wanted.took
      self.missed.pop((at, what), None)
    else: took = self._rest.number(of, odds)
    self.log.append(Draw(at, what, of, took, 0))
    self._digest.update(f"{what} {took}\n".encode())
    if self.explains and took: self._explain(who, "")
    return took

  def _explain(self, who: str, instead: str) -> None:
    if self.explain is not None:
      self.texts[len(self.log) - 1] = self.explain(who) + (f"\n{self.explain(instead)}" if instead else "")

  # ---- what came of it

  def departures(self) -> list[Departure]:
    """Where the run was not the default one."""
    return [d.departure(d.took) for d in self.log if d.took != d.default]

  def digest(self) -> str:
    """Of who had which turn: runs that differ in nothing else have the same."""
    return self._digest.hexdigest()
