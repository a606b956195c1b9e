"""The table of docs/accuracy.md: a row for each function and type, made by measuring, and read back by the test."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tinyhw.ir.dtype import DType, dtypes
from tinyhw.tools.ulp.functions import MEASURED
from tinyhw.tools.ulp.measure import Worst, measure

DEVICES = ("LLVM", "PYTHON", "AMD")
# What is promised is one of these: more than was measured, for not everything can be.
STEPS = (0.0, 0.5, 0.51, 0.55, 0.6, 0.7, 0.8, 0.9, *(k / 4 for k in range(4, 400)))
BEGIN = "<!-- measured: python -m tinyhw.tools.ulp --write docs/accuracy.md -->"
END = "<!-- end of what was measured -->"
HEAD = ("| function | type | bound | LLVM | PYTHON | AMD (mock) |", "|---|---|---|---|---|---|")


@dataclass(frozen=True)
class Row:
  """A line of the table: the greatest error by device, and where it is."""
  function: str
  dtype: str
  found: dict[str, Worst]

  @property
  def bound(self) -> float:
    """The promise: the next step above what was measured, and above a tenth more where that is no correct rounding."""
    worst = max(v for v, _ in self.found.values())
    step = next((s for s in STEPS if s >= (worst if worst <= 0.5 else worst + (worst - 0.5) / 6)), float("inf"))
    return step if dtypes.named(self.dtype).bits == 16 else max(step, MEASURED[self.function].least)

  def text(self, worst: bool = False) -> str:
    """The line; with where the greatest error is, if wanted."""
    found = [f"{self.found[d][0]:.3f}" if d in self.found else "" for d in DEVICES]
    cells = [self.function, self.dtype, f"{self.bound:g}", *found]
    where = max(self.found.values(), key=lambda v: v[0])[1]
    return "| " + " | ".join(cells) + " |" + (f" {', '.join(map(repr, where))}" if worst else "")


def rows(names: Sequence[str], types: Sequence[DType], devices: Sequence[str], size: int, seed: int) -> Iterator[Row]:
  """Measures one row after another."""
  for name in names:
    for dtype in types:
      count = size // 8 if dtype is dtypes.float64 else size
      yield Row(name, dtype.name, measure(MEASURED[name], dtype, devices, count, seed))


def put(page: Path, found: Sequence[Row]) -> None:
  """Replaces the table of a page."""
  text = page.read_text()
  before, rest = text.split(BEGIN)
  _, after = rest.split(END)
  page.write_text("\n".join([before + BEGIN, *HEAD, *(row.text() for row in found), END + after]))


def bounds(page: Path) -> dict[tuple[str, str], float]:
  """The promises of a page, by function and type."""
  table = page.read_text().split(BEGIN)[1].split(END)[0]
  cells = [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]
  return {(c[0], c[1]): float(c[2]) for c in cells}
