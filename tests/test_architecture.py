"""ARCHITECTURE.md agrees with the tree: its table with the rule, its picture and journeys with the files."""
from __future__ import annotations

import re
from pathlib import Path

from tests.test_layout import ALLOWED, LINKED, OUTERMOST, ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text()
PICTURE = (ROOT / "docs/images/architecture.svg").read_text()


def _place(name: str) -> Path:
  """A room, folder or file that the page names: from the root, or from the package."""
  return ROOT / name if name.split("/")[0] in {*LINKED, "docs", "tests", "tinyhw"} else ROOT / "tinyhw" / name


def test_the_table_of_rooms_is_the_rule() -> None:
  rows = re.findall(r"^\| `([\w.]+)` \| .+? \| (?:`([\w ]+)` )?\|$", PAGE, re.M)
  assert {room: set(others.split()) for room, others in rows} == {
    room: others - {"core"} for room, others in ALLOWED.items()}
  outermost = re.search(r"^\| ((?:`\w+` )+)\|.*all; nobody imports them", PAGE, re.M)
  assert outermost and set(re.findall(r"\w+", outermost[1])) == OUTERMOST


def test_the_journeys_name_files_that_are_there() -> None:
  names = set(re.findall(r"`((?:tinyhw|mock|emulator|autogen|tests|tools)/[\w./]+)`", PAGE))
  assert len(names) > 25 and not [n for n in names if not _place(n).exists()]


def test_the_picture_names_rooms_that_are_there() -> None:
  names = re.findall(r'<text class="title room"[^>]*>([^<]+)<', PICTURE)
  assert len(names) > 10 and not [n for n in names if not _place(n).exists()]
