"""`tinyhw doctor`: why queues stand still, from a capture, the kernel's log or a dump of another program."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from tinyhw.cli.files import contents
from tinyhw.cli.progress import walked
from tinyhw.core.errors import InvalidArgument, MissingFile
from tinyhw.queues import kernellog
from tinyhw.queues.capture import Capture
from tinyhw.queues.container import MAGIC
from tinyhw.queues.doctor import examine
from tinyhw.queues.foreign import forms, show


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(file: str, as_json: bool) -> None:
  """Say why queues stand still: FILE is a capture of `tinyhw record`, the kernel's log as text, or a dump of queues;
  - is standard input.

  Of a capture: who waits for whom, the circle or the missing writer, the packets around each read pointer, the
  kernels that were running, faulting addresses with what is and was there, and the findings of `tinyhw lint`. Of a
  log: amdgpu's page faults, ring time-outs and schedulers, and NVRM's Xid lines, with each field and number
  explained. Of a dump (what `tinyhw decode` reads: amdgpu's device coredump, rings of debugfs, UMR's and ROCgdb's
  listings): which ring stands at which packet, and what the fault's fields mean. The exit status is 1 where a capture
  or a dump shows something wrong.

  \b
  Examples:
    tinyhw record -o run.thq --mockgpu gfx1100 -- python train.py
    tinyhw doctor run.thq
    dmesg > dmesg.txt; tinyhw doctor dmesg.txt
    tinyhw doctor /sys/class/drm/card0/device/devcoredump/data
  """
  if file != "-" and (not Path(file).is_file() or _is_capture(file)):
    capture = Capture(file)
    with walked("doctor", capture, quiet=as_json): report = examine(capture)
    click.echo(json.dumps(report.row()) if as_json else "\n".join(report.lines()))
    raise SystemExit(1 if report.ill else 0)
  raw = sys.stdin.buffer.read() if file == "-" else contents(file)
  if (dump := forms.read(raw, file)) is not None:
    found = show.examine(dump)
    click.echo(json.dumps(found.row()) if as_json else "\n".join(found.lines()))
    raise SystemExit(1 if found.ill else 0)
  text = raw.decode("utf-8", "replace")
  if not kernellog.is_log(text):
    raise InvalidArgument("is neither a capture nor a log of amdgpu or NVRM, nor a dump that is known", where=file,
                          hint="`tinyhw record` makes captures, `dmesg` logs")
  events = list(kernellog.read(text))
  verdict = kernellog.verdict(events)
  if as_json: click.echo(json.dumps({"verdict": verdict, "events": [e.row() for e in events]}))
  else: click.echo("\n".join([verdict, *(line for e in events for line in e.lines())]))


def _is_capture(file: str) -> bool:
  try:
    with open(file, "rb") as f: return f.read(len(MAGIC)) == MAGIC
  except OSError as error: raise MissingFile(f"cannot be opened: {error.strerror}", where=file) from None
