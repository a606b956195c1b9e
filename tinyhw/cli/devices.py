"""`tinyhw devices`: which devices this machine has, and what the others need."""
from __future__ import annotations

import json

import click

from tinyhw.core.errors import TinyhwError


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead of a table.")
def command(as_json: bool) -> None:
  """List the devices, and what each one needs.

  \b
  Examples:
    tinyhw devices
    MOCKGPU=gfx1100,gfx1100 tinyhw devices --json
  """
  from tinyhw.device import KINDS, Device
  rows = []
  for kind, what in KINDS.items():
    index = 0
    while True:
      name = f"{kind}:{index}" if index else kind
      try:
        detail, ready = Device[name].describe(), True
      except TinyhwError as error: detail, ready = str(error), False
      if ready or not index:
        rows.append({"device": name, "ready": ready, "default": name == Device.DEFAULT, "what": what, "detail": detail})
      index += 1
      if not ready or index >= Device.count(kind): break
  if as_json:
    click.echo(json.dumps(rows))
    return
  from rich.console import Console
  from rich.table import Table
  table = Table()
  for column in ("device", "", "what", "state"): table.add_column(column)
  for row in rows:
    table.add_row(str(row["device"]), "[green]ready[/green]" if row["ready"] else "-", str(row["what"]),
                  f"{row['detail']}{' [bold](default)[/bold]' if row['default'] else ''}")
  Console().print(table)
