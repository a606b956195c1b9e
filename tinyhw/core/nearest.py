"""Names that somebody may have meant: of a misspelt one, the known names that are nearly it."""
from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

NEAR: Final = 3  # names, at most, that are offered
ALL: Final = 24  # names, at most, that are listed


def near(name: str, known: Iterable[str]) -> list[str]:
  """Those of the known names that are nearly this one, the nearest first; the case of letters does not count."""
  by_lower = {k.lower(): k for k in known}
  return [by_lower[k] for k in get_close_matches(name.lower(), by_lower, NEAR)]


def offered(name: str, known: Iterable[str], there: str = "there are") -> str:
  """A hint for a name that is not known: what may be meant, and what there is."""
  names = list(known)
  meant, listed = near(name, names), ", ".join(names[:ALL]) or "none"
  more = f" and {len(names) - ALL:,} more" if len(names) > ALL else ""
  asked = f"did you mean {' or '.join(meant)}? " if meant and len(names) > 1 else ""
  return f"{asked}{there} {listed}{more}"
