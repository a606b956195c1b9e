"""`tinyhw diff`: what two captures submit otherwise."""
from __future__ import annotations

import json
import sys

import click

from tinyhw.cli.progress import walked
from tinyhw.queues.capture import Capture
from tinyhw.queues.diff import compare


@click.command()
@click.argument("before")
@click.argument("after")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a change.")
def command(before: str, after: str, as_json: bool) -> None:
  """Compare what two captures submit, packet by packet: each queue by itself, addresses by what lies there, signal
  values by their count, times not at all. Exit status 1 where something differs.

  \b
  Examples:
    tinyhw diff before.thq after.thq
    python -c 'from tinyhw.queues.diff import assert_stream; assert_stream("golden.thq", "run.thq")'
  """
  both = Capture(before), Capture(after)
  with walked("diff", *both, quiet=as_json): changes = list(compare(*both))
  for change in changes:
    if as_json: click.echo(json.dumps({"text": str(change), "fields": change.fields()}))
    else: click.echo(str(change))
  if not as_json: click.echo(f"{len(changes)} packets differ" if changes else "the same packets")
  if changes: sys.exit(1)
