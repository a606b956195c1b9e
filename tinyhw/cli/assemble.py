"""`tinyhw assemble`: the words of a queue from their source."""
from __future__ import annotations

import sys
from pathlib import Path

import click

from tinyhw.queues.source import assemble


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("-o", "--output", metavar="FILE", help="Where the words go, as bytes [standard output, as hex text].")
def command(file: str, output: str | None) -> None:
  """Turn the text of `tinyhw decode --source` into words. FILE is the text; - is standard input.

  \b
  Examples:
    tinyhw decode ring.bin --kind pm4 --source > ring.txt
    tinyhw assemble ring.txt -o ring.bin
    echo ".kind pm4\nACQUIRE_MEM(coher_size=1, coher_base=0)" | tinyhw assemble -
  """
  text = sys.stdin.read() if file == "-" else Path(file).read_text()
  words = assemble(text, "standard input" if file == "-" else file).words
  if output is not None: Path(output).write_bytes(b"".join(w.to_bytes(4, "little") for w in words))
  else:
    for at in range(0, len(words), 8): click.echo(" ".join(f"{w:08x}" for w in words[at:at + 8]))
