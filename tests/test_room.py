"""`make room R=...`: which tests mirror a room is a rule."""
from __future__ import annotations

import os

import pytest

from tests import command
from tinyhw.core.errors import InvalidArgument
from tinyhw.tools import room


def _names(of: str) -> list[str]: return [str(path.relative_to(room.TESTS)) for path in room.tests(of)]


def test_tests_of_a_room_lie_in_its_folder_or_are_named_after_it_or_name_it() -> None:
  assert _names("mock/nv") == sorted(f"mock/nv/{path.name}" for path in (room.TESTS / "mock/nv").glob("test_*.py"))
  assert {"drive/nv/test_card.py", "drive/test_kfd.py"} < set(_names("tinyhw/drive"))
  assert _names("emulator/ptx") and all(name.startswith("emulator/ptx/test_") for name in _names("emulator/ptx"))
  assert "emulator/check/ptx/test_check.py" in _names("emulator/check/ptx")
  assert set(_names("mock/nv/driver")) <= set(_names("mock/nv"))
  assert {"emulator/test_mutants.py", "test_mutation.py"} <= set(_names("tools/mutate"))  # they import it
  assert _names("tensor") and all(name.startswith("tensor/") for name in _names("tensor"))


def test_every_room_has_tests_and_every_folder_of_tests_is_reached() -> None:
  found = {of: room.tests(of) for of in room.rooms()}
  assert all(found.values()) and {"core", "emulator/jit/ptx", "function", "kernels"} <= found.keys()
  reached = {path for paths in found.values() for path in paths}
  assert set(room.TESTS.glob("*/**/test_*.py")) <= reached


@pytest.mark.parametrize("name", ["emulator/ptq", "", ".", "..", "core/bits.py"])
def test_an_unknown_room_names_those_that_there_are(name: str, capsys: pytest.CaptureFixture[str]) -> None:
  with pytest.raises(InvalidArgument, match=r"rooms are arch, .*emulator/ptx, .*wire"): room.tests(name)
  assert room.main([name]) == 2
  said = capsys.readouterr()
  assert not said.out and f"no room is called {name or 'nothing'}" in said.err


def test_the_command_prints_one_line_for_pytest(capsys: pytest.CaptureFixture[str]) -> None:
  assert room.main(["wire"]) == 0
  assert capsys.readouterr().out == " ".join(f"tests/{name}" for name in _names("wire")) + "\n"


@pytest.mark.parametrize(("seconds", "said"), [("0", "9 skipped"), ("600", "9 passed")])
def test_no_test_begins_when_the_time_is_over(seconds: str, said: str) -> None:
  words = ["-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--within", seconds, "tests/test_digits.py"]
  done = command.watched(words, {**os.environ, "PYTEST_ADDOPTS": ""}, 120)
  assert done.returncode == 0 and said in done.stdout, done.stdout + done.stderr
