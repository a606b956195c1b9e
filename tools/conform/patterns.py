"""Which cases are chosen: patterns of identifiers."""
from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase


def fits(ident: str, patterns: Sequence[str]) -> bool:
  """Whether an identifier fits one of the patterns (of shells; without a star, a part of it), or there are none."""
  return not patterns or any(fnmatchcase(ident, p) if set(p) & set("*?[") else p in ident for p in patterns)
