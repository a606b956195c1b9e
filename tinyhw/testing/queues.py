"""What a failing test has submitted: `--tinyhw-debug`."""
from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tinyhw.cli.debug_queues import debug as prompt
from tinyhw.cli.queue_shell import last_dispatch
from tinyhw.core.errors import Error
from tinyhw.recorded import recording


@contextmanager
def recorded(name: str) -> Iterator[Path]:
  """A block whose submissions are recorded; where. The file stays where the test fails."""
  folder = Path(tempfile.mkdtemp(prefix="tinyhw-debug-"))
  path = folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)[:80]}.thq"
  with recording(path, wait=False): yield path


def forget(path: Path) -> None:
  """A test has passed."""
  shutil.rmtree(path.parent, ignore_errors=True)


def told(path: Path) -> str:
  """The packets around the last dispatch, and the command that goes there."""
  try: found = last_dispatch(path) if path.exists() else None
  except Error as error: return f"{path}: {error}"
  if found is None: return "the test launched no kernel on a device that has queues"
  number, lines = found
  return "\n".join([f"dispatch {number}, the last one:", *lines, "",
                    f"tinyhw debug -b 'dispatch {number}' {shlex.quote(str(path))}"])


def debug(path: Path) -> None:
  """The debugger at the last dispatch."""
  try:
    found = last_dispatch(path) if path.exists() else None
    if found is not None: prompt(path, places=(f"dispatch {found[0]}",))
  except Error as error: click.echo(f"tinyhw: {error}", err=True)
