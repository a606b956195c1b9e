"""`tinyhw debug`: the queues of a capture, or of a program, packet by packet."""
from __future__ import annotations

import os
import socket
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console

from tinyhw.cli.files import text
from tinyhw.cli.queue_shell import QueueShell
from tinyhw.cli.record import run_recorded, summary
from tinyhw.core.errors import DeviceError, InvalidArgument
from tinyhw.queues.container import MAGIC
from tinyhw.toolbox.debug import new_session


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-o", "--output", metavar="FILE", help="Where a program's capture is kept [a file that is removed].")
@click.option("--mockgpu", metavar="CARDS", help="Mock cards: the program's, and those on which the capture is "
              "submitted again [the capture's own].")
@click.option("-b", "--break", "places", multiple=True, metavar="PLACE",
              help="Begin at a breakpoint, in the words of the command break; as often as you like.")
@click.option("-x", "--command", "script", metavar="FILE", help="Commands from a file (- is standard input).")
@click.option("-e", "--eval", "given", multiple=True, metavar="COMMAND", help="A command; as often as you like.")
@click.option("--json", "as_json", is_flag=True, help="Each command answers with one JSON object.")
@click.option("--dap", is_flag=True, help="Speak the Debug Adapter Protocol on standard input and output.")
@click.option("--dap-port", type=click.IntRange(0, 65535), metavar="PORT", help="The same on a port of this machine "
              "(0: a free one, which is told), for one client.")
@click.argument("program", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(output: str | None, mockgpu: str | None, places: tuple[str, ...], script: str | None,
            given: tuple[str, ...], as_json: bool, dap: bool, dap_port: int | None, program: str | None,
            arguments: tuple[str, ...]) -> None:
  """Go through command queues packet by packet, forward and back: those of a capture, or of a PROGRAM.

  A program is recorded first, and may hang or fail; then what it submitted is submitted again on mock cards, and
  stands before any packet that you name. `help` at the prompt lists the commands.

  \b
  Examples:
    tinyhw debug run.thq
    tinyhw debug --mockgpu gfx1100 -- train.py --steps 1
    tinyhw debug -e "break kernel r_*" -e continue -e "info registers PGM" run.thq
    tinyhw debug --json -x commands.txt run.thq
    tinyhw debug --dap run.thq
  """
  if dap or dap_port is not None:
    if arguments: raise InvalidArgument("takes a capture; a program is named by the client's launch", where="--dap")
    return _serve(program, mockgpu, dap_port)
  if program is None: raise click.UsageError("Missing argument 'PROGRAM': a capture, or a program.")
  with tempfile.TemporaryDirectory(prefix="tinyhw-") as folder:
    path = Path(program)
    if arguments or not _is_capture(path) and path.suffix != ".thq":
      if path.is_file() and path.suffix != ".py" and not os.access(path, os.X_OK):
        raise InvalidArgument("is neither a capture nor a program", where=program,
                              hint="`tinyhw record` makes captures; a program is one that can be run, or ends in .py")
      path = Path(output or Path(folder) / "run.thq")
      code = run_recorded(path, mockgpu, program, arguments)
      if not path.exists():
        if code: sys.exit(code)
        raise DeviceError("opened no device that has queues", where=program,
                          hint="set DEV=AMD or DEV=NV, or name mock cards: --mockgpu 1; a capture ends in .thq")
      click.echo(summary(str(path)) + (f"; exit status {code}" if code else ""), err=True)
    elif output is not None: raise InvalidArgument("is for a program's capture", where="--output")
    debug(path, mockgpu, places, script, given, as_json)


def _serve(capture: str | None, mockgpu: str | None, port: int | None) -> None:
  from tinyhw.cli.dap import Server  # an editor asks for it
  from tinyhw.cli.dap_wire import Wire
  if port is None:
    # not sys.stdin itself: Python waits for its lock at its end, which a thread that reads holds
    with open(sys.stdin.fileno(), "rb", closefd=False) as asked:
      return Server(Wire(asked, sys.stdout.buffer), capture, mockgpu).serve()
  with socket.create_server(("127.0.0.1", port)) as listening:
    click.echo(f"listening on 127.0.0.1:{listening.getsockname()[1]}", err=True)
    client, _ = listening.accept()
    with client, client.makefile("rb") as asked, client.makefile("wb") as told:
      Server(Wire(asked, told), capture, mockgpu).serve()


def _is_capture(path: Path) -> bool:
  if not path.is_file(): return False
  with path.open("rb") as file: return file.read(len(MAGIC)) == MAGIC


def debug(path: Path, mockgpu: str | None = None, places: tuple[str, ...] = (), script: str | None = None,
          given: tuple[str, ...] = (), as_json: bool = False) -> None:
  """The prompt on a capture, or what commands say. Raises SystemExit where one of them goes wrong."""
  typed_in = script is None and not given and sys.stdin.isatty()
  console = Console(width=None if sys.stdout.isatty() else 110, highlight=False, markup=False)
  session = new_session(path, mockgpu)
  try:
    shell = QueueShell(session, path, mockgpu, console, typed_in, as_json=as_json)
    if typed_in: shell.say("tinyhw queue debugger: help lists the commands, quit ends it")
    for place in places: session.add(place)
    shell.stood(session.run() if places else session.last)
    if typed_in: shell.type()
    elif script is not None or given: shell.read([*given, *(text(script).splitlines() if script is not None else [])])
    else: shell.read(sys.stdin)
  finally: session.close()
  if shell.failed: sys.exit(1)
