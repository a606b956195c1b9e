"""`tinyhw assemble`: the words of a queue from their source."""
from __future__ import annotations

import json

import click

from tinyhw.cli import files
from tinyhw.core.written import save
from tinyhw.queues.source import assemble


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("-o", "--output", metavar="FILE", help="Where the words go, as bytes [standard output, as hex text].")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: the kind, and the words as numbers.")
def command(file: str, output: str | None, as_json: bool) -> None:
  """Turn the text of `tinyhw decode --source` into words. FILE is the text; - is standard input.

  \b
  Examples:
    tinyhw decode ring.bin --kind pm4 --source > ring.txt
    tinyhw assemble ring.txt -o ring.bin
    echo ".kind pm4\\nACQUIRE_MEM(coher_size=1, coher_base=0)" | tinyhw assemble -
  """
  made = assemble(files.text(file), "standard input" if file == "-" else file)
  words = made.words
  if output is not None: save(output, b"".join(w.to_bytes(4, "little") for w in words))
  if as_json: click.echo(json.dumps({"kind": made.kind, "words": [*words]}))
  elif output is None:
    for at in range(0, len(words), 8): click.echo(" ".join(f"{w:08x}" for w in words[at:at + 8]))
