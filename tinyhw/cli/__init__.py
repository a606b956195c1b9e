"""The `tinyhw` command: one module a verb.

Errors of the tree are told on stderr, the cause in the first line and a fact in each other one; with `--json` their
fields are an object on standard output too. The exit status is 1.
"""
from __future__ import annotations

import io
import json
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TextIO

import click

from tinyhw.core.errors import Error
from tinyhw.core.nearest import near

LONGEST = 2000  # letters of an error's first line: it may quote a file

# verb -> (module, one line): a verb's module is imported when the verb runs, so that `tinyhw --help` stays quick
VERBS = {
  "asm": ("tinyhw.cli.asm", "Assemble AMD GPU instructions to bytes."),
  "assemble": ("tinyhw.cli.assemble", "Turn the source of a queue's words (decode --source) back into words."),
  "bench": ("tinyhw.cli.bench", "Measure tinyhw against NumPy and tinygrad on this machine."),
  "bisect": ("tinyhw.cli.bisect", "Find the smallest part of a capture that still shows what is wrong with it."),
  "bringup": ("tinyhw.cli.bringup", "Bring up a GPU rung by rung: what works, and where the first lie is."),
  "conform": ("tinyhw.cli.conform", "Hold a chip, driver or emulator against what its instructions must do."),
  "debug": ("tinyhw.cli.debug_queues", "Go through command queues packet by packet, forward and back."),
  "decode": ("tinyhw.cli.decode", "Show a capture, or the words of a queue, packet by packet."),
  "demo": ("tinyhw.cli.demo", "Train a small network on LLVM, PYTHON and the AMD mock, and show one launch's queue."),
  "devices": ("tinyhw.cli.devices", "List the devices, and what each one needs."),
  "diff": ("tinyhw.cli.diff", "Compare what two captures submit, packet by packet."),
  "disasm": ("tinyhw.cli.disasm", "Show machine code (an ELF, raw bytes, hex lines) as LLVM's text."),
  "doctor": ("tinyhw.cli.doctor", "Say why queues stand still, from a capture, the kernel's log or a dump."),
  "explore": ("tinyhw.cli.explore", "Look for an order of queues under which a program fails, and make it short."),
  "gen": ("tinyhw.cli.gen", "Regenerate autogen/ from vendor headers, or check it."),
  "info": ("tinyhw.cli.info", "Show what a file with GPU code holds: targets, kernels, parameters, registers."),
  "ledger": ("tinyhw.cli.ledger", "How far each instruction's meaning can be trusted, and what proves it."),
  "launch": ("tinyhw.cli.launch", "Run a kernel of a ready code object on a device."),
  "lint": ("tinyhw.cli.lint", "Find in a capture what a chip would punish."),
  "onnx": ("tinyhw.cli.onnx", "Show or run an ONNX model."),
  "record": ("tinyhw.cli.record", "Run a program and keep what it submits to its GPUs."),
  "replay": ("tinyhw.cli.replay", "Submit again what a capture holds, and compare what it leaves behind."),
  "run": ("tinyhw.cli.run", "Run a Python program that uses CUDA's driver on mock NVIDIA GPUs."),
  "timeline": ("tinyhw.cli.timeline", "Draw a capture over time: a page, or a trace for Perfetto."),
  "top": ("tinyhw.cli.top", "Show what queues do, from a capture that is being written."),
}


class Verbs(click.Group):
  """Verbs that load on use."""

  def list_commands(self, ctx: click.Context) -> list[str]: return list(VERBS)

  def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
    if cmd_name not in VERBS: return None
    command = import_module(VERBS[cmd_name][0]).command
    assert isinstance(command, click.Command)
    return command

  def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
    if args and not args[0].startswith("-") and args[0] not in VERBS:
      meant = near(args[0], VERBS)
      hint = f"did you mean {' or '.join(meant)}?" if meant else "tinyhw --help lists them"
      raise click.UsageError(f"No such command {args[0]!r}; {hint}", ctx)
    return super().resolve_command(ctx, args)

  def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    with formatter.section("Commands"):
      formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tinyhw")
def tinyhw() -> None:
  """A reference GPU simulator and driver toolkit.

  \b
  MOCKGPU=1 gives a machine of mock GPUs ("gfx1100,gfx1100": two cards);
  DEV=AMD, LLVM or PYTHON chooses the default device, DEBUG=2 shows kernels.

  \b
  Examples:
    tinyhw devices
    tinyhw demo
    MOCKGPU=1 tinyhw launch add.co --kernel add --grid 4 --block 256 \\
        --arg a.npy --arg b.npy --arg out:f32:1024

  \b
  Shell completion (bash; zsh and fish alike):
    eval "$(_TINYHW_COMPLETE=bash_source tinyhw)"
  """


def main() -> None:
  """Entry point of the command."""
  if sys.stdin is None: sys.stdin = open(os.devnull)  # what whoever began the process has closed
  if sys.stdout is None: sys.stdout = open(os.devnull, "w")
  if sys.stderr is None: sys.stderr = open(os.devnull, "w")
  for stream in (sys.stdout, sys.stderr):  # names of files need not be text, terminals need not have all letters
    if isinstance(stream, io.TextIOWrapper): stream.reconfigure(errors="backslashreplace")
  if isinstance(sys.stdin, io.TextIOWrapper): sys.stdin.reconfigure(errors="replace")  # told where it is read
  output = sys.stdout  # which a program may close, or put another in place of
  try:
    try: tinyhw.main(prog_name="tinyhw")
    finally:  # what cannot be written is told here, and not when Python ends
      if not output.closed: output.flush()
  except Error as error: message, row = str(error), error.row()
  except BrokenPipeError:  # who read the output has seen enough
    _let_go(output)
    sys.exit(1)
  except OSError as error:  # a file, or standard output, that cannot be written
    message = f"{error.filename or 'standard output'}: {error.strerror}"
    if error.filename is None: _let_go(output)
    row = {"type": type(error).__name__, "text": message, "message": error.strerror, "where": str(error.filename)}
  except MemoryError as error:
    message = f"more memory than this machine has: {error}".rstrip(": ")
    row = {"type": "MemoryError", "text": message, "message": message}
  else: return
  first, *more = message.split("\n")
  if len(first) > LONGEST: first = f"{first[:LONGEST // 2]} ... {first[-LONGEST // 4:]}"
  if "--json" in sys.argv[1:]:
    with suppress(OSError): click.echo(json.dumps({"error": row}))
  try: click.echo("\n".join([f"tinyhw: {first}", *more]), err=True)
  except OSError: _let_go(sys.stderr)
  sys.exit(1)


def _let_go(stream: TextIO) -> None:
  """Have what is left in a stream that cannot be written go nowhere, when Python flushes it at its end."""
  with suppress(OSError, ValueError): os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
