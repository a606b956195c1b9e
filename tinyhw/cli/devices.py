"""`tinyhw devices`: which devices this machine has, and what the others need."""
from __future__ import annotations

import json

import click

from tinyhw.core.errors import Error, Unsupported


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead of a table.")
def command(as_json: bool) -> None:
  """List the devices, and what each one needs.

  \b
  Examples:
    tinyhw devices
    MOCKGPU=gfx1100,gfx1100 tinyhw devices --json
  """
  from tinyhw.devices.registry import KINDS, Device
  rows: list[dict[str, str | bool]] = []
  planned = []
  for kind, what in KINDS.items():
    index, count = 0, 1
    while index < count:
      name = f"{kind}:{index}" if index else kind
      try:
        runtime = Device[name].runtime
        detail, ready, count = runtime.describe(), True, runtime.siblings()
      except Unsupported as error:
        detail, ready = str(error), False
        if error.kind == "device": planned.append(kind)  # else the device is there, and the machine asked for is not
      except Error as error: detail, ready = str(error), False
      rows.append({"device": name, "ready": ready, "default": name == Device.DEFAULT, "what": what, "detail": detail})
      index += 1
  if as_json:
    click.echo(json.dumps(rows))
    return
  from rich.console import Console
  from rich.table import Table
  table = Table()
  for column in ("device", "", "what", "state"): table.add_column(column)
  for row in rows:
    if row["device"] in planned: continue
    table.add_row(str(row["device"]), "[green]ready[/green]" if row["ready"] else "-", str(row["what"]),
                  f"{row['detail']}{' [bold](default)[/bold]' if row['default'] else ''}")
  Console().print(table)
  if planned: click.echo(f"Planned, not built yet: {', '.join(planned)}")
