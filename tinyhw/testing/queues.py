"""What a failing test has submitted: `--record-failures` keeps it, `--tinyhw-debug` opens the debugger."""
from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

import click
import pytest

from tinyhw.cli.debug_queues import debug as prompt
from tinyhw.cli.queue_shell import last_dispatch
from tinyhw.core.errors import Error
from tinyhw.devices.captured import RECORDING
from tinyhw.devices.registry import Device
from tinyhw.testing.machines import in_use
from tinyhw.toolbox.record import recording

LONGEST: Final = 120  # characters of a capture's name


def file_name(test: str) -> str:
  """What the capture of a test is called."""
  return re.sub(r"[^\w.=-]+", "_", test, flags=re.ASCII)[-LONGEST:].strip("_") + ".thq"


class Captures:
  """`--record-failures`: the captures of failing tests. Tests that share a machine share a capture for as long as
  something of them stays in its memory (a fixture of a wider scope, what a failure's traceback holds); else each has
  devices and a capture of its own."""

  def __init__(self, folder: str, session: ExitStack) -> None:
    self._folder = Path(folder)
    self._scratch = Path(session.enter_context(tempfile.TemporaryDirectory(prefix="tinyhw-captures-")))
    session.enter_context(closing(self))
    self._count = 0
    self._shared = self._scratch / "none"  # the capture of the tests that share a machine

  @contextmanager
  def test(self, item: pytest.Item, shares: bool) -> Iterator[None]:
    """A test is recorded, on the machine that all share or on one of its own."""
    self._count += 1
    path = self._scratch / f"{self._count}.thq"
    if not shares:
      with RECORDING.aside(path): yield
      path.unlink(missing_ok=True)
      return
    if not in_use():
      Device.close()
      RECORDING.begin(path)
      self._shared.unlink(missing_ok=True)
      self._shared = path
    RECORDING.note("test", item.nodeid)
    yield

  def keep(self, item: pytest.Item) -> str:
    """Keep what was recorded so far; returns the lines that a failure shows, or nothing where no queue was used."""
    if (recorder := RECORDING.recorder) is None: return ""
    RECORDING.note("test", f"{item.nodeid} failed")
    recorder.flush()
    self._folder.mkdir(parents=True, exist_ok=True)
    kept = self._folder / file_name(item.nodeid)
    shutil.copyfile(recorder.path, kept)
    return f"what its queues held is kept: {kept}\ntinyhw doctor {kept}\ntinyhw timeline {kept}"

  def close(self) -> None:
    """The session is over."""
    RECORDING.end()


@contextmanager
def recorded(name: str) -> Iterator[Path]:
  """A block whose submissions are recorded; where. The file stays where the test fails."""
  folder = Path(tempfile.mkdtemp(prefix="tinyhw-debug-"))
  path = folder / file_name(name)
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
