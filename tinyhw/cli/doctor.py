"""`tinyhw doctor`: why queues stand still, from a capture or the kernel's log."""
from __future__ import annotations

import json
from pathlib import Path

import click

from tinyhw.core.errors import InvalidArgument, MissingFile
from tinyhw.queues import kernellog
from tinyhw.queues.capture import Capture
from tinyhw.queues.container import MAGIC
from tinyhw.queues.doctor import examine


@click.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(file: str, as_json: bool) -> None:
  """Say why queues stand still: FILE is a capture of `tinyhw record`, or the kernel's log as text.

  Of a capture: who waits for whom, the circle or the missing writer, the packets around each read pointer, the
  kernels that were running, faulting addresses with what is and was there, and the findings of `tinyhw lint`. Of a
  log: amdgpu's page faults, ring time-outs and schedulers, and NVRM's Xid lines, with each field and number
  explained. The exit status is 1 where a capture shows something wrong.

  \b
  Examples:
    tinyhw record -o run.thq --mockgpu gfx1100 -- python train.py
    tinyhw doctor run.thq
    dmesg > dmesg.txt; tinyhw doctor dmesg.txt
  """
  try: data = Path(file).read_bytes()[:len(MAGIC)] if Path(file).is_file() else b""
  except OSError as error: raise MissingFile(f"cannot be opened: {error.strerror}", where=file) from None
  if data == MAGIC or not Path(file).is_file():
    report = examine(Capture(file))
    click.echo(json.dumps(report.row()) if as_json else "\n".join(report.lines()))
    raise SystemExit(1 if report.ill else 0)
  text = Path(file).read_bytes().decode("utf-8", "replace")
  if not kernellog.is_log(text):
    raise InvalidArgument("is neither a capture nor a log of amdgpu or NVRM", where=file,
                          hint="`tinyhw record` makes captures, `dmesg` logs")
  events = list(kernellog.read(text))
  verdict = kernellog.verdict(events)
  if as_json: click.echo(json.dumps({"verdict": verdict, "events": [e.row() for e in events]}))
  else: click.echo("\n".join([verdict, *(line for e in events for line in e.lines())]))
