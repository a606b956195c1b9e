"""What a run of a ladder found: a row a rung, as JSON and back, and the file that a run goes on from."""
from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tinyhw.core.errors import DecodeError, InvalidArgument
from tinyhw.core.written import writing

PASSED, BROKEN, BLOCKED, ABSENT = "passed", "broken", "blocked", "absent"
STATES: Final = (PASSED, BROKEN, BLOCKED, ABSENT)
FORMAT: Final = 1


@dataclass
class Result:
  """Of a rung. `evidence` is of one that passed, or says why it is absent; a blocked one names what it stands on in
  `found`."""
  rung: str
  state: str
  seconds: float = 0.0
  evidence: str = ""
  found: str = ""
  wanted: str = ""
  look_at: str = ""
  packets: list[str] = field(default_factory=list)
  facts: list[str] = field(default_factory=list)
  kept: bool = False  # of an earlier run, by the state file

  def row(self) -> dict[str, Any]:
    """As plain values."""
    return asdict(self)


@dataclass
class LadderRun:
  """All results, in the ladder's order, and what is known of the device."""
  vendor: str
  device: str
  results: list[Result] = field(default_factory=list)
  facts: dict[str, Any] = field(default_factory=dict)

  def of(self, state: str) -> list[Result]: return [r for r in self.results if r.state == state]

  @property
  def first_broken(self) -> Result | None:
    return next(iter(self.of(BROKEN)), None)

  @property
  def whole(self) -> bool:
    """Whether nothing is broken or blocked."""
    return not self.of(BROKEN) and not self.of(BLOCKED)

  def row(self) -> dict[str, Any]:
    """As plain values, for JSON."""
    first = self.first_broken
    counts = {state: len(self.of(state)) for state in STATES}
    return {"format": FORMAT, "vendor": self.vendor, "device": self.device, "counts": counts,
            "first_broken": None if first is None else first.rung, "facts": self.facts,
            "rungs": [r.row() for r in self.results]}


class Kept:
  """A file of the rungs that have passed on a device: a run that was ended goes on behind them.

  It is written anew after each rung, whole or not at all. Rungs that did not pass are run again.
  """

  def __init__(self, path: str | os.PathLike[str], vendor: str, device: str) -> None:
    self.path, self.vendor, self.device = Path(path), vendor, device
    self.passed = self._read()

  def _read(self) -> dict[str, Result]:
    try: text = self.path.read_text(encoding="utf-8")
    except FileNotFoundError: return {}
    except OSError as error:
      raise InvalidArgument(f"cannot be read: {error.strerror}", where=str(self.path)) from None
    try:
      told = json.loads(text)
      mine = told["format"] == FORMAT and told["vendor"] == self.vendor and told["device"] == self.device
      rows = {row["rung"]: Result(row["rung"], PASSED, row["seconds"], row["evidence"]) for row in told["rungs"]}
    except (ValueError, KeyError):
      raise DecodeError("is no state of tinyhw bringup", where=str(self.path),
                        hint="name another file, or remove this one") from None
    if not mine:
      raise InvalidArgument(f"is of {told['vendor']} on {told['device']}, this run is {self.vendor} on {self.device}",
                            where=str(self.path), hint="name another file, or remove this one")
    return rows

  def keep(self, results: Sequence[Result]) -> None:
    """Write those that have passed so far."""
    rows = {"format": FORMAT, "vendor": self.vendor, "device": self.device,
            "rungs": [{**r.row(), "kept": False} for r in results if r.state == PASSED]}
    new = self.path.with_name(self.path.name + ".new")
    with writing(self.path):
      new.write_text(json.dumps(rows, indent=1), encoding="utf-8")
      new.replace(self.path)
