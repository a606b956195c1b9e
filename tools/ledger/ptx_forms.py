"""The forms of PTX's instructions, as the manual has them: a mnemonic with its types (`tools/ptxcover`)."""
from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

FORMS: Final = Path(__file__).with_name("ptx_forms.json")
_TYPES: Final = re.compile(r"([bus](2|4|8|16|32|64|128)|b?f(16|32|64)(x2)?|[us]16x2|tf32|e[2-5]m[1-3](x[24])?|pred|b1"
                           r"|b1024|ue8m0(x2)?|ue4m3|s2f6x2|(tex|sampler|surf)ref)")


@cache
def all_forms() -> dict[str, str]:
  """The manual's forms, each with one of its names."""
  found: dict[str, str] = json.loads(FORMS.read_text())
  return found


def _parts(name: str) -> tuple[str, tuple[str, ...], frozenset[str]]:
  """(opcode, types in order, other words)."""
  opcode, *words = name.split(".")
  return (opcode, tuple(w for w in words if _TYPES.fullmatch(w)),
          frozenset(w for w in words if not _TYPES.fullmatch(w)))


@cache
def _by_opcode() -> dict[str, list[tuple[str, tuple[str, ...], frozenset[str]]]]:
  out: dict[str, list[tuple[str, tuple[str, ...], frozenset[str]]]] = {}
  for form in all_forms():
    opcode, types, words = _parts(form)
    out.setdefault(opcode, []).append((form, types, words))
  return out


@lru_cache(maxsize=8192)
def form_of(name: str) -> str | None:
  """The form of an instruction: that with its types, and of these the one with most of its other words."""
  opcode, types, words = _parts(name)
  fitting = [(len(w), form) for form, t, w in _by_opcode().get(opcode, ()) if t == types and w <= words]
  return max(fitting)[1] if fitting else None
