"""The test files that mirror a room, for `make room R=emulator/ptx`.

Tests mirror the folders of the source: those of `mock/nv` lie in `tests/mock/nv`. Where a room has no folder of tests,
the nearest one above has files for it: those named after it (`emulator/ptx`: `tests/emulator/test_ptx*.py`), or else
those that name its modules, or else all that lie there. A room beside which no folder stands has the files of all tests
that name its modules. A folder of tests that mirrors none (`tensor`) goes by its own name.
"""
from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path, PurePath
from typing import Final

from tinyhw.core.errors import InvalidArgument

ROOT: Final = Path(__file__).resolve().parents[1]
TESTS: Final = ROOT / "tests"


@cache
def rooms() -> list[str]:
  """Every package of the source by its folder, without the leading `tinyhw`, and every folder of tests."""
  found = {str(path.parent.relative_to(TESTS)) for path in TESTS.glob("*/**/test_*.py")}
  for top in (ROOT / "tinyhw").iterdir():
    real = top.resolve()  # some are links to folders of the root
    found |= {str(PurePath(top.name, path.parent.relative_to(real))) for path in real.rglob("__init__.py")}
  return sorted(found)


def tests(room: str) -> list[Path]:
  """The test files that mirror a room, in order. Raises InvalidArgument for what is no room, or has no test."""
  name = PurePath(room.removeprefix("tinyhw/"))
  if str(name) not in (known := rooms()):
    raise InvalidArgument(f"no room is called {room or 'nothing'}", hint=f"rooms are {', '.join(known)}")
  if found := _below(name): return found
  above = next(folder for folder in name.parents if _below(folder))
  everywhere = not above.parts
  there = [path for path in _below(above) if everywhere or path.parent == TESTS / above]
  words = set(name.relative_to(above).parts)
  if not everywhere and (called := [path for path in there if words <= set(path.stem.split("_"))]): return called
  module = re.compile(rf"tinyhw\.{re.escape('.'.join(name.parts))}\b")
  if found := [path for path in there if module.search(path.read_text())]: return found
  if everywhere: raise InvalidArgument(f"no test mirrors {room}, nor does any name its modules")
  return there


@cache
def _below(folder: PurePath) -> list[Path]: return sorted((TESTS / folder).rglob("test_*.py"))


def main(argv: list[str] | None = None) -> int:
  """Prints the files of the room that the words name, in one line."""
  try: found = tests(" ".join(sys.argv[1:] if argv is None else argv))
  except InvalidArgument as error:
    print(error, file=sys.stderr)
    return 2
  print(*(path.relative_to(ROOT) for path in found))
  return 0


if __name__ == "__main__": sys.exit(main())
