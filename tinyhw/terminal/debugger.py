"""`--debug`: the commands of one launch's debugger, from a terminal, a pipe or a file."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console

from tinyhw.emulator.debug.ptx.debugger import PtxDebugger
from tinyhw.terminal.amdgcn import AmdShell
from tinyhw.terminal.ptx import PtxShell
from tinyhw.terminal.shell import D, Shell


def shells(start: Callable[[], D], console: Console, typed_in: bool) -> Shell[D]:
  """The commands for what is debugged."""
  session = start()
  kind: Any = PtxShell if isinstance(session, PtxDebugger) else AmdShell
  again = iter([session])
  shell: Shell[D] = kind(lambda: next(again, None) or start(), console, interactive=typed_in)
  return shell


def debug(start: Callable[[], D], script: Callable[[], str] | None = None) -> tuple[D, int]:
  """Debug a launch: commands come from a file, which `script` reads, from a pipe, or from the terminal. (The session,
  exit status.)"""
  typed_in = script is None and sys.stdin.isatty()
  console = Console(width=None if sys.stdout.isatty() else 110, highlight=False, markup=False)
  shell = shells(start, console, typed_in)
  if typed_in: shell.say("tinyhw debugger: help lists the commands, quit ends it")
  shell.told(shell.session.last)
  if script is not None:
    shell.read(script().splitlines())
  elif typed_in: shell.type()
  else: shell.read(sys.stdin)
  return shell.session, int(shell.failed)
