"""`tinyhw asm`: LLVM's text to machine code."""
from __future__ import annotations

import json

import click

from tinyhw.cli import complete
from tinyhw.cli.disasm import DEFAULT
from tinyhw.cli.files import text
from tinyhw.core.written import save


@click.command()
@click.argument("file", metavar="FILE|-")
@click.option("--arch", "name", default=DEFAULT, shell_complete=complete.arch, show_default=True,
              help="GPU to assemble for.")
@click.option("--output", "-o", default=None, metavar="FILE", help="Write raw bytes here, not hex to the screen.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array, an object an instruction.")
def command(file: str, name: str, output: str | None, as_json: bool) -> None:
  """Assemble instructions, one a line.

  \b
  Each instruction gives a line with its bytes in hex: the inverse of
  `tinyhw disasm --arch A -`. "//", ";" and "/* */" are comments. A branch
  goes to a label of the file, or by an offset in dwords, as disasm prints it.
  Of a compiler's listing (clang -S) the code sections are taken; what needs a
  linker is refused.

  \b
  Examples:
    echo v_mov_b32_e32 v1, 0 | tinyhw asm --arch gfx1100 -
    tinyhw asm program.s --output program.bin
  """
  from tinyhw.arch import decoded
  from tinyhw.isa.amdgcn import table
  from tinyhw.isa.amdgcn.program import program
  isa = table(decoded(name).table)
  items = program(text(file), isa, "standard input" if file == "-" else file)
  if output is not None:
    save(output, b"".join(i.code for i in items))
  elif as_json: click.echo(json.dumps([{"text": i.text, "bytes": i.code.hex()} for i in items]))
  elif items: click.echo("\n".join(i.code.hex() for i in items))
