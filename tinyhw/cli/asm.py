"""`tinyhw asm`: LLVM's text to machine code."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from tinyhw.cli.disasm import DEFAULT
from tinyhw.core.errors import InvalidArgument


@click.command()
@click.argument("file", metavar="FILE|-")
@click.option("--arch", "name", default=DEFAULT, show_default=True, help="GPU to assemble for.")
@click.option("--output", "-o", default=None, metavar="FILE", help="Write raw bytes here, not hex to the screen.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array, an object an instruction.")
def command(file: str, name: str, output: str | None, as_json: bool) -> None:
  """Assemble instructions, one a line.

  \b
  Each line gives a line with the instruction's bytes in hex: the inverse of
  `tinyhw disasm --arch A -`. "//" and ";" start a comment. Branch targets
  are offsets in dwords, as disasm prints them.

  \b
  Examples:
    echo v_mov_b32_e32 v1, 0 | tinyhw asm --arch gfx1100 -
    tinyhw asm program.s --output program.bin
  """
  from tinyhw.arch import decoded
  from tinyhw.isa.amdgcn import table
  from tinyhw.isa.amdgcn_asm import assemble
  isa = table(decoded(name).isa)
  try: text = sys.stdin.read() if file == "-" else Path(file).read_text()
  except (OSError, UnicodeDecodeError) as error:
    raise InvalidArgument(f"cannot be read: {error}", where=file) from None
  rows: list[tuple[str, bytes]] = []
  for n, line in enumerate(text.splitlines(), 1):
    line = line.split("//")[0].split(";")[0].strip()
    if not line: continue
    try: rows.append((line, assemble(line, isa)))
    except InvalidArgument as error:
      raise InvalidArgument(f"line {n}: {error}", where="standard input" if file == "-" else file) from None
  if output is not None: Path(output).write_bytes(b"".join(code for _, code in rows))
  elif as_json: click.echo(json.dumps([{"text": t, "bytes": code.hex()} for t, code in rows]))
  else:
    for _, code in rows: click.echo(code.hex())
