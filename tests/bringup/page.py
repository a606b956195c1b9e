"""The tables of docs/bringup.md, made of the rungs' declarations and of the planted defects.

    python -m tests.bringup.page     # writes them into the page
"""
from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.bringup.defect import Defect
from tests.bringup.defects_amd import DEFECTS as AMD
from tests.bringup.defects_nv import DEFECTS as NV
from tinyhw.cli.benches import ladder_of

PAGE: Final = Path(__file__).parents[2] / "docs/bringup.md"
DEFECTS: Final[dict[str, tuple[Defect, ...]]] = {"AMD": AMD, "NV": NV}


def table(vendor: str) -> str:
  """A row a rung."""
  defects = {d.rung: d.what for d in DEFECTS[vendor]}
  rows = [f"| `{r.name}`{' (alone)' if r.alone else ''} | {', '.join(f'`{n}`' for n in r.needs)} | {r.why} | "
          f"{defects[r.name]} |" for r in ladder_of(vendor)]
  return "\n".join(["| rung | stands on | why | planted defect |", "|---|---|---|---|", *rows, ""])


def filled(text: str) -> str:
  """The page with its tables as they should be."""
  for vendor in DEFECTS:
    text = re.sub(rf"(?s)(<!-- {vendor} -->\n).*?(<!-- end -->)", lambda m, v=vendor: m[1] + table(v) + m[2], text)
  return text


if __name__ == "__main__": PAGE.write_text(filled(PAGE.read_text()))
