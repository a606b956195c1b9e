"""Runs a program many times, each in a fork of a process that has imported what the program needs.

`python -m tinyhw.testing.server READ WRITE PROGRAM ...` takes requests (a line of JSON each) from one descriptor and
answers on the other (`forks`). A pytest's tests are collected once, before the first fork.
"""
from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from tinyhw.core.errors import Error
from tinyhw.testing.forks import Ran, serve


def script(program: Sequence[str]) -> Callable[[], None]:
  """Runs `FILE.py ARGUMENTS` or `-m MODULE ARGUMENTS`."""
  module = program[0] == "-m"
  name, arguments = (program[1], program[2:]) if module else (program[0], program[1:])

  def body() -> None:
    sys.argv = [name, *arguments]
    sys.path.insert(0, os.getcwd() if module else str(Path(name).resolve().parent))
    try:
      if module: runpy.run_module(name, run_name="__main__", alter_sys=True)
      else: runpy.run_path(name, run_name="__main__")
    except SystemExit as end:
      if isinstance(end.code, str): print(end.code, file=sys.stderr)
      if end.code is not None and end.code != 0:
        code = end.code if isinstance(end.code, int) else 1
        raise Ran(code, f"exit status {code}" + (f": {end.code}" if isinstance(end.code, str) else "")) from None
    except BaseException as error:
      traceback.print_exc()
      place = traceback.extract_tb(error.__traceback__)
      own = [f for f in place if f.filename == name] or place[-1:]
      line = str(error).partition("\n")[0]
      said = f"{Path(own[-1].filename).name}:{own[-1].lineno}: {type(error).__name__}: {line}"
      raise Ran(1, said, isinstance(error, Error)) from None
  return body


def main() -> None:
  requests, answers, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
  if program[:2] == ["-m", "pytest"]:
    import pytest

    from tinyhw.testing.served import Served
    sys.path.insert(0, os.getcwd())  # as python -m has it
    served = Served(requests, answers)
    options = ["-p", "no:cacheprovider", "-p", "no:xdist", "--capture=sys"]
    sys.exit(int(pytest.main([*options, *program[2:]], plugins=[served])))
  serve(requests, answers, script(program))


if __name__ == "__main__": main()
