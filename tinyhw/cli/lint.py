"""`tinyhw lint`: what in a capture a chip would punish."""
from __future__ import annotations

import json
import sys

import click

from tinyhw.cli.progress import walked
from tinyhw.core.errors import InvalidArgument
from tinyhw.queues.capture import Capture
from tinyhw.queues.lint import RULES, lint


@click.command()
@click.argument("file", required=False)
@click.option("--list", "listed", is_flag=True, help="The rules: what each finds, why, and what to do.")
@click.option("--rule", "rules", multiple=True, metavar="NAME",
              help="Findings of this rule alone; may be given more than once.")
@click.option("--advice", is_flag=True, help="Also what costs time and does no harm.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def command(file: str | None, listed: bool, rules: tuple[str, ...], advice: bool, as_json: bool) -> None:
  """Look in FILE, a capture of `tinyhw record`, for what a forgiving memory hides and a chip punishes.

  Each finding names its packets (submission, queue, address) and what is missing. The exit status is 1 where there are
  findings.

  \b
  Examples:
    tinyhw record -o run.thq --mockgpu gfx1100 -- python train.py
    tinyhw lint run.thq
    tinyhw lint --list
  """
  if listed:
    for rule in RULES.values():
      if as_json:
        click.echo(json.dumps({"name": rule.name, "what": rule.what, "why": rule.why, "do": rule.do,
                               "source": rule.source, "advice": rule.advice}))
        continue
      click.echo(f"{rule.name}{' (advice)' if rule.advice else ''}: {rule.what}\n  why: {rule.why}\n  do: {rule.do}\n"
                 f"  source: {rule.source}")
    return
  if file is None: raise InvalidArgument("no capture is named", where="tinyhw lint", hint="tinyhw lint run.thq")
  for name in rules:
    if name not in RULES:
      raise InvalidArgument(f"no rule is called {name!r}", where="--rule", hint="tinyhw lint --list has them")
  capture = Capture(file)
  if capture.head.get("sniffed"):
    raise InvalidArgument("has no record of what its program had seen when it submitted, without which orders are "
                          "not known", where=file, hint="captures of tinyhw record --sniff are for decode and diff")
  with walked("lint", capture, quiet=as_json):
    found = [f for f in lint(capture, advice or any(RULES[r].advice for r in rules))
             if not rules or f.rule.name in rules]
  for finding in found: click.echo(json.dumps(finding.row()) if as_json else str(finding))
  harm = [f for f in found if not f.rule.advice]
  if not as_json: click.echo(f"{file}: {len(found)} finding{'s' if len(found) != 1 else ''}", err=True)
  if harm: sys.exit(1)
