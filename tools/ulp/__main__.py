"""`python -m tinyhw.tools.ulp`: measures, prints the table, and with `--write` puts it into docs/accuracy.md."""
from __future__ import annotations

import os
from pathlib import Path

import click

from tinyhw.ir.dtype import dtypes
from tinyhw.tools.ulp.functions import MEASURED
from tinyhw.tools.ulp.measure import TYPES
from tinyhw.tools.ulp.table import DEVICES, put, rows


@click.command()
@click.option("--function", "names", multiple=True, type=click.Choice(list(MEASURED)), help="repeatable; default: all")
@click.option("--dtype", "types", multiple=True, type=click.Choice([t.name for t in TYPES]), help="repeatable")
@click.option("--device", "devices", multiple=True, type=click.Choice(DEVICES), help="repeatable; AMD is the mock")
@click.option("--size", default=1 << 18, show_default=True, help="arguments of a float32 function; of float64 1/8")
@click.option("--seed", default=0, show_default=True)
@click.option("--write", type=click.Path(path_type=Path, exists=True), help="the page whose table is replaced")
def main(names: tuple[str, ...], types: tuple[str, ...], devices: tuple[str, ...], size: int, seed: int,
         write: Path | None) -> None:
  """The greatest errors of elementwise functions, in units in the last place. AMD is the mock."""
  os.environ.setdefault("MOCKGPU", "1")
  if write and (names or types or devices): raise click.UsageError("--write is for the whole table")
  found = []
  for row in rows(names or tuple(MEASURED), [dtypes.named(t) for t in types] or TYPES, devices or DEVICES, size, seed):
    click.echo(row.text(worst=not write))
    found.append(row)
  if write: put(write, found)


main()
