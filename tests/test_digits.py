r"""Numbers of users' and vendors' texts are written with 0 to 9: no pattern of the package takes digits of other
scripts for them (Python's \d and \w do, and `int` reads them), and `core.environment.digits` alone asks `str.isdigit`.
"""
from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

import tinyhw
from tinyhw.core.environment import count, digits

ROOT: Final = Path(tinyhw.__file__).parent
CALLS: Final = frozenset({"compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"})
ASKS: Final = frozenset({"isdigit", "isdecimal", "isnumeric"})


def written(node: ast.AST) -> str:
  """The text of a pattern, of bytes none: those are ASCII's."""
  return "".join(n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def wide(text: str) -> list[int]:
  """The lines that take digits of every script."""
  out = []
  for c in ast.walk(ast.parse(text)):
    if not isinstance(c, ast.Call) or not isinstance(c.func, ast.Attribute): continue
    if c.func.attr in ASKS: out.append(c.lineno)
    elif c.func.attr in CALLS and ast.unparse(c.func.value) == "re":
      flagged = any("re.ASCII" in ast.unparse(a) for a in (*c.args[1:], *(k.value for k in c.keywords)))
      pattern = written(c.args[0])
      if re.search(r"\\[dDwW]", pattern) and not flagged and not pattern.startswith("(?a)"): out.append(c.lineno)
  return out


def test_no_pattern_takes_digits_of_other_scripts() -> None:
  """The folder `tools` reads what vendors publish, and is no part of what users run."""
  texts = {str(p.relative_to(ROOT)): p.read_text() for p in sorted(ROOT.rglob("*.py"))}
  found = {name: lines for name, text in texts.items()
           if not name.startswith("tools/") and re.search(r"\\[dDwW]|\.is(?:digit|dec|num)", text)
           and (lines := wide(text))}
  assert list(found) == ["core/environment.py"] and len(found["core/environment.py"]) == 1, found


def test_a_wide_pattern_is_seen() -> None:
  assert wide("import re\nre.compile(r'x(\\d+)')") == [2]
  assert wide("re.fullmatch(rf'{x}\\w', text)\nre.sub('a' + r'\\D', '', t)\nt.isdecimal()") == [1, 2, 3]
  assert not wide("re.match(r'(?a)\\d', t)\nre.match(rb'\\d', t)\nre.match(r'[0-9]', t)\nre.match(r'\\w', t, re.ASCII)")


@pytest.mark.parametrize("text", ["٣", "3٣", "²", "①", "", "-1", "1 "])
def test_other_digits_are_no_number(text: str) -> None:
  assert not digits(text) and count(text) is None
  assert digits("0123456789") and digits(b"7") and not digits(b"7a")
