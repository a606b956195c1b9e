"""Changes that no test can notice, each kind with its reason: rows of `equivalent.toml`.

A row that fits no change any more fails a test."""
from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Rule:
  """Changes that fit all three patterns: of "module.function", of the source line, of the change."""
  function: str
  line: str
  change: str
  reason: str

  def fits(self, module: str, function: str, source: str, change: str) -> bool:
    return bool(re.fullmatch(self.function, f"{module}.{function}") and re.search(self.line, source)
                and re.fullmatch(self.change, change))


_ROWS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
MEANINGS, AROUND, ROOMS = (tuple(Rule(**row) for row in _ROWS[name]) for name in ("meanings", "around", "rooms"))


def reason(module: str, function: str, source: str, change: str) -> str | None:
  """Why a change cannot be noticed; None where it can."""
  return next((r.reason for r in (*MEANINGS, *AROUND, *ROOMS) if r.fits(module, function, source, change)), None)
