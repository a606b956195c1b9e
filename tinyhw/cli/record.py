"""`tinyhw record`: run a program and keep what it submits to its GPUs."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, TextIO

import click

from tinyhw.arch import lacking
from tinyhw.core.errors import DeviceError, Error, InvalidArgument, MissingFile
from tinyhw.queues import summary as counts
from tinyhw.queues.capture import Capture
from tinyhw.testing.machines import mock_cards
from tinyhw.toolbox import sniff as sniffed


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-o", "--output", default="run.thq", show_default=True, metavar="FILE", help="Where the capture goes.")
@click.option("--mockgpu", metavar="CARDS", help="Mock cards, as MOCKGPU has them (1, gfx1100, sm_90); DEV is their "
              "vendor's driver where it is not set.")
@click.option("--sniff", is_flag=True, help="PROGRAM is one of ROCm or CUDA on a card: its calls of the kernel driver, "
              "by ptrace.")
@click.option("--json", "as_json", is_flag=True, help="Say what was recorded as one JSON object, on standard error.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(output: str, mockgpu: str | None, sniff: bool, as_json: bool, program: str,
            arguments: tuple[str, ...]) -> None:
  """Run PROGRAM and record each kernel-driver call, each doorbell, and what every submission holds and reads.

  What was submitted is on file before its doorbell rings, so that a program that hangs or is killed leaves all of it.
  Further processes that the program starts have files of their own, run.PID.thq. RECORD=run.thq does the same without
  this command.

  --sniff records a program that does not use tinyhw, with no help of it and without root: the calls of /dev/kfd,
  /dev/dri and /dev/nvidia*, with structs by name, mappings, and what rings hold when they are looked at, around each
  call, every 2 ms, and behind each store to one of the first four doorbells; `tinyhw decode --calls` says what was
  not seen.

  \b
  Examples:
    tinyhw record -o run.thq --mockgpu gfx1100 -- python train.py
    tinyhw decode run.thq
    tinyhw record -o run.thq --sniff -- ./a_rocm_program
    tinyhw decode run.thq --calls
  """
  if sniff: sys.exit(_sniffed(Path(output), mockgpu, [program, *arguments], as_json))
  code = run_recorded(Path(output), mockgpu, program, arguments)
  if not Path(output).exists():
    if code: sys.exit(code)
    raise DeviceError("opened no device that has queues", where=program,
                      hint="set DEV=AMD or DEV=NV, or name mock cards: --mockgpu 1")
  click.echo(json.dumps(row(output) | {"status": code}) if as_json else summary(output), err=True)
  sys.exit(code)


def _sniffed(path: Path, mockgpu: str | None, words: list[str], as_json: bool) -> int:
  """Record the calls of a program that uses another driver; its exit status."""
  if mockgpu is not None:
    raise InvalidArgument("a program that is sniffed has the machine's cards", where="--mockgpu",
                          hint="leave out one of both options")
  code, found = sniffed.sniff(path, words)
  if not found.paths:
    if code: return code
    raise DeviceError("opened no device file of a GPU", where=words[0], hint=f"looked for {', '.join(sniffed.DEVICES)}")
  if as_json:
    click.echo(json.dumps({"files": [str(p) for p in found.paths], "calls": found.calls,
                           "submissions": found.submissions, "status": code}), err=True)
  else:
    click.echo(f"{', '.join(map(str, found.paths))}: {found.calls:,} calls, {found.submissions:,} submissions",
               err=True)
  return code


def run_recorded(path: Path, mockgpu: str | None, program: str, arguments: tuple[str, ...], *,
                 output: TextIO | None = None) -> int:
  """Run a program that records to a file; its exit status. Its standard output goes to `output`, or is this process's.
  Raises InvalidArgument where it cannot be run."""
  environment = dict(os.environ, **recorded_to(path))
  if mockgpu: name_cards(environment, mockgpu)
  start = [program, *arguments]
  if program.endswith(".py"): start.insert(0, sys.executable)
  try: child = subprocess.Popen(start, env=environment, stdout=output)
  except OSError as error: raise InvalidArgument(f"cannot be run: {error.strerror}", where=program) from None
  return _wait(child)


def recorded_to(path: Path) -> dict[str, str]:
  """What a process has in its environment that records to a new file. Raises MissingFile where there can be none."""
  try:
    path.open("ab").close()
    path.unlink()
  except OSError as error: raise MissingFile(f"cannot be written: {error.strerror}", where=str(path)) from None
  return {"RECORD": str(path.resolve()), "TINYHW_RECORD_RUN": os.urandom(8).hex()}


def name_cards(environment: dict[str, str], mockgpu: str) -> None:
  """Give a program mock cards, and the device of the first where it has chosen none. Raises InvalidArgument for a card
  that the mock does not have."""
  known = ["0", "1", *(name for names in mock_cards().values() for name in names)]
  for card in mockgpu.split(","):
    if card.strip() not in known: raise lacking(card.strip(), known[2:], "card", "--mockgpu")
  environment["MOCKGPU"] = mockgpu
  environment.setdefault("DEV", "NV" if mockgpu.startswith("sm_") else "AMD")


def _wait(child: subprocess.Popen[bytes]) -> int:
  """The exit status; Ctrl-C goes to the program too, which ends as it likes."""
  while True:
    try: code = child.wait()
    except KeyboardInterrupt: continue
    return 128 - code if code < 0 else code


def summary(path: str) -> str:
  """One line: what a capture holds."""
  try: found = row(path)
  except Error as error: return f"{path}: {error}"
  cut = "; it ends amid a frame" if found["cut"] else ""
  return (f"{path}: {found['submissions']:,} submissions, {found['packets']:,} packets, "
          f"{found['launches']:,} launches, {found['bytes']:,} bytes{cut}")


def row(path: str) -> dict[str, Any]:
  """The same as plain values. Raises DecodeError for a damaged one."""
  capture = Capture(path, following=False)
  found = counts.of_capture(capture)
  return {"file": path, "submissions": sum(n for n, _ in found.queues.values()), "packets": found.packets.total(),
          "launches": found.kernels.total(), "bytes": os.path.getsize(path), "cut": capture.cut}
