"""The mutation score of the meanings as a campaign: a program of it is one change, asked about as `score.measure` does.

Of what is around the meanings (`score.MACHINERY`) each process would trace all checks first: that stays in one process.
"""
from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from tinyhw.tools.campaign.run import rows
from tinyhw.tools.campaign.store import surroundings
from tinyhw.tools.campaign.task import Answer, Task
from tinyhw.tools.mutate.mutants import Mutant, Source
from tinyhw.tools.mutate.score import Score, measure, mutants

TASK: Final = 20  # changes
WORK: Final = "tinyhw.tools.mutate.spread:work"


@cache
def drawn(modules: tuple[str, ...], count: int, seed: int) -> list[tuple[Source, Mutant]]:
  """The changes of modules; `count` of them, drawn by the seed, where it is not 0."""
  every = mutants(modules)
  return random.Random(seed).sample(every, min(count, len(every))) if count else every


def work(number: int, parameters: Mapping[str, Any]) -> Answer:
  """What becomes of the change of a number."""
  p = parameters
  change = drawn(tuple(p["modules"]), p["sample"], p["seed"])[number]
  score = measure([change], p["match"], p["most"], p["seed"])
  if score.killed: return Answer("noticed")
  if not score.survivors:
    ending = "equivalent" if score.equivalent else "not asked"
    return Answer(ending, [{"number": number, "ending": ending}])
  return Answer("survived", [{"number": number, "mnemonics": score.survivors[0][1]}])


def spread(modules: tuple[str, ...], count: int, seed: int, match: str, most: int, *, scheduler: str = "",
           jobs: int = 1, results: Path | None = None) -> Score:
  """The score of the changes, by processes or the workers of a scheduler. Raises GoneWrong where one has no answer."""
  chosen, environment = drawn(modules, count, seed), surroundings()
  given = {"modules": list(modules), "sample": count, "seed": seed, "match": match, "most": most}

  def plan(number: int) -> Task | None:
    first = number * TASK
    size = min(TASK, len(chosen) - first)
    return Task(number, "meanings", WORK, first, size, given, environment=environment) if size > 0 else None
  found = list(rows(plan, {"campaign": "mutate", "parameters": given}, scheduler=scheduler, jobs=jobs, results=results))
  score = Score(killed=len(chosen) - len(found))
  for row in found:
    mutant = chosen[row["number"]][1]
    if "mnemonics" in row: score.survivors.append((mutant, row["mnemonics"]))
    elif row["ending"] == "equivalent": score.equivalent.append(mutant)
  return score
