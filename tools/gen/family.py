"""What a generator is: a family of facts, the file that it writes and the sources it reads."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen.sources import Sources

AUTOGEN = Path(__file__).resolve().parents[2] / "autogen"


@dataclass(frozen=True)
class Family:
  """`generate(sources)` returns the text of `autogen/<module>.py`; `needs` are the files it asks the sources for."""

  name: str
  module: str
  about: str
  needs: Sequence[str]
  generate: Callable[[Sources], str]


@dataclass(frozen=True)
class Erratum:
  """A hand correction of a vendor file: `what` names the fact, `was` is what the source says, `now` what is true."""

  what: str
  was: str
  now: str
  evidence: str


def errata(module: str) -> list[Erratum]:
  """The rows of autogen/errata/<module>.toml; none when there is no such file."""
  path = AUTOGEN / "errata" / f"{module}.toml"
  if not path.exists():
    return []
  rows = tomllib.loads(path.read_text())["erratum"]
  return [Erratum(r["what"], str(r["was"]), str(r["now"]), r["evidence"]) for r in rows]


def corrected(text: str, module: str, source_name: str) -> str:
  """The source text after those errata of this module whose `what` starts with `source_name`. Each must match once."""
  for row in errata(module):
    if not row.what.startswith(source_name):
      continue
    if text.count(row.was) != 1:
      raise LayoutError(
        f"{row.what}: {row.was!r} stands {text.count(row.was)} times in the source",
        where=f"errata/{module}.toml",
        hint="the source changed: review the row",
      )
    text = text.replace(row.was, row.now)
  return text
