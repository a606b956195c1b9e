"""pytest in processes of its own, forked from one that has imported what they need (tests/command.py)."""
from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from tests import command

INSTALLED = any(e.name == "tinyhw" for e in entry_points(group="pytest11"))


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
  """`pytest OPTIONS` in the folder of `pytester`."""
  python = pytester.path / "python"
  command.stand_in(python)
  plugin = () if INSTALLED else ("-p", "tinyhw.testing.plugin")
  # tinyhw is there before pytest looks: its assertions, which are no tests, stay as they are
  return pytester.run(python, "-m", "pytest", *plugin, "-p", "no:cacheprovider",
                      "-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning",
                      f"--basetemp={pytester.path / 'temporary'}", *options)
