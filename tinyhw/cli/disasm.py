"""`tinyhw disasm`: machine code to LLVM's text."""
from __future__ import annotations

import json
import re
from dataclasses import asdict

import click

from tinyhw.cli import complete
from tinyhw.cli.files import contents, text
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.nearest import offered

DEFAULT = "gfx1100"
PLACES = {"symbol", "address"}  # what instructions of standard input have not


def parse_hex(line: str, where: str) -> bytes:
  """Bytes of a line in hex: "7e000280", "7e 00 02 80", "0x7e,0x00,0x02,0x80" (brackets are ignored)."""
  words = re.sub(r"[\[\],]", " ", line).split()
  digits = "".join(w.lower().removeprefix("0x") for w in words)
  try: return bytes.fromhex(digits)
  except ValueError: raise InvalidArgument(f"{line.strip()!r} is not bytes in hex", where=where) from None


@click.command()
@click.argument("file", metavar="FILE|-")
@click.option("--arch", "name", default=None, shell_complete=complete.arch,
              help=f"GPU of raw bytes [default: {DEFAULT}]; an ELF names its own.")
@click.option("--kernel", "-k", default=None, shell_complete=complete.kernel,
              help="Show this symbol of an ELF only.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array, an object an instruction.")
def command(file: str, name: str | None, kernel: str | None, as_json: bool) -> None:
  """Show machine code as LLVM's text.

  \b
  FILE is an AMDGPU code object (ELF) or raw bytes. With "-", each line of
  standard input holds one instruction's bytes in hex, and gives a line of
  text, or <unknown> where there is no such instruction. Upper halves of
  registers are v1.h in short encodings and op_sel in long ones. A comment
  names bits that the chip ignores where `tinyhw asm` would set others.

  \b
  Examples:
    tinyhw disasm add.co
    tinyhw disasm add.co --kernel add --json
    tinyhw disasm --arch gfx1100 code.bin
    echo 8002007e | tinyhw disasm --arch gfx1100 -
  """
  from tinyhw.arch import decoded
  from tinyhw.devices.disassembly import code_object, comment, listing, one  # tables, which --help and `asm` do without
  isa = decoded(name or DEFAULT).table
  if file == "-":
    lines = [(n, line) for n, line in enumerate(text("-").splitlines(), 1) if line.strip()]
    codes = [parse_hex(line, f"standard input, line {n}") for n, line in lines]
    found = [one(code, isa) for code in codes]
    if as_json: click.echo(json.dumps([{k: v for k, v in asdict(s).items() if k not in PLACES} for s in found]))
    else:
      for shown in found: click.echo(comment(shown))
    return
  data = contents(file)
  elf = data.startswith(b"\x7fELF")
  rows = code_object(data) if elf else list(listing(data, isa, 0, {}))
  if kernel is not None:
    known = list(dict.fromkeys(r.symbol for r in rows if r.symbol))
    rows = [r for r in rows if r.symbol == kernel]
    if not rows: raise InvalidArgument(f"has no code symbol {kernel!r}", where=file,
                                       hint=offered(kernel, known, "it has"))
  if as_json:
    click.echo(json.dumps([asdict(r) for r in rows]))
    return
  symbol = ""
  for r in rows:
    if r.symbol != symbol:
      symbol = r.symbol
      click.echo(f"{r.address:016x} <{symbol}>:")
    click.echo(f"  {r.address:8x}: {r.bytes:<24}  {comment(r)}")
