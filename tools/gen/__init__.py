"""Generators: vendor headers and tables in, autogen/ modules out."""
from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
  """The command `tinyhw gen`. Returns the exit status."""
  from tinyhw.tools.gen.command import main as run  # the generators are loaded when they are asked for

  return run(argv)
