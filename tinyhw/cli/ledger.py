"""`tinyhw ledger`: how far each instruction of each AMD generation, and of PTX, can be trusted, and why."""
from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from tinyhw.cli import complete
from tinyhw.core.written import save


@click.command()
@click.option("--arch", "arches", multiple=True, shell_complete=complete.arch,
              help="A generation; all of them when left out. May be repeated.")
@click.option("--grade", "grades", multiple=True, shell_complete=complete.grade,
              help="Only instructions of this grade: exact, ULP, approximate, 'no effect', unsupported, 'not compute'.")
@click.option("--match", default="", help="Only mnemonics with this in their name.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--html", "page_file", type=click.Path(path_type=Path), help="Write a page to look at and search in.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the README's table.")
@click.option("--isa", type=click.Choice(["amdgcn", "ptx"]), default="amdgcn",
              help="PTX: the forms of NVIDIA's manual.")
def command(arches: tuple[str, ...], grades: tuple[str, ...], match: str, as_json: bool, page_file: Path | None,
            as_markdown: bool, isa: str) -> None:
  """How each instruction's meaning is known, and what proves it.

  \b
  Without --grade and --match: the numbers of each generation. Grades:
    exact        bit for bit as AMD's manual defines it
    ULP          the exact result rounded once; the manual allows the chip some ULP
    approximate  the manual leaves the result open (sums of matrices, sin, cos)
    no effect    accepted; what it does is not modelled (caches, priorities)
    unsupported  refused by name when a wave comes to it
    not compute  graphics and trap handlers

  \b
  Examples:
    tinyhw ledger
    tinyhw ledger --arch gfx942 --grade unsupported
    tinyhw ledger --match v_mfma --json
    tinyhw ledger --html ledger.html
    tinyhw ledger --isa ptx --match tex
  """
  from tinyhw.arch import decoded
  from tinyhw.core.errors import InvalidArgument
  if isa == "ptx":
    if arches or grades or page_file is not None or as_markdown:
      raise InvalidArgument("PTX has neither generations nor grades", hint="--match and --json go with --isa ptx")
    return _ptx(match, as_json)
  from tinyhw.tools.ledger import ledger
  chosen = list(arches or ledger.ARCHES)
  for name in chosen: decoded(name)
  unknown = [g for g in grades if g not in ledger.GRADES]
  if unknown: raise InvalidArgument(f"no grade is called {unknown[0]!r}", hint=f"there are {', '.join(ledger.GRADES)}")
  if page_file is not None:
    from tinyhw.tools.ledger.page import page
    save(page_file, page(chosen))
    click.echo(f"{page_file}: {page_file.stat().st_size // 1024:,} KiB")
    return
  if as_markdown:
    click.echo(ledger.markdown(chosen), nl=False)
    return
  found = {a: [e for e in ledger.entries(a) if match in e.mnemonic and (not grades or e.grade in grades)]
           for a in chosen}
  if as_json:
    document = ledger.document(chosen)
    for arch, entries in found.items():
      names = {e.mnemonic for e in entries}
      document[arch]["instructions"] = [i for i in document[arch]["instructions"] if i["mnemonic"] in names]
    click.echo(json.dumps(document))
    return
  if not any(found.values()):
    raise InvalidArgument(f"no instruction of {', '.join(chosen)} fits", where=f"--match {match}" if match else None,
                          hint="names are the generation's own: exp is export on gfx1201")
  from rich.box import SIMPLE_HEAD
  from rich.console import Console
  from rich.table import Table
  table = Table(box=SIMPLE_HEAD, pad_edge=False)
  if grades or match:
    for column in ("arch", "instruction", "meaning", "manual", "witnesses"):
      table.add_column(column, no_wrap=column in {"arch", "instruction", "manual"}, overflow="fold")
    for arch, entries in found.items():
      for e in entries:
        table.add_row(arch, e.mnemonic, e.meaning, e.section or "-", ", ".join(e.witnesses) or "-")
  else:
    table.add_column("", no_wrap=True)
    numbers = [ledger.summary(arch) for arch in chosen]
    for arch in chosen: table.add_column(arch, justify="right")
    for what, values in (
        ("compute instructions", [f"{s.compute:,}" for s in numbers]),
        ("  in AMD's manual", [f"{s.manual:,}" for s in numbers]),
        ("  with a meaning", [f"{s.known:,} ({s.percent:.1f} %)" for s in numbers]),
        ("    exact", [f"{s.exact:,}" for s in numbers]),
        ("    within its ULP", [f"{s.ulp:,}" for s in numbers]),
        ("    approximate", [f"{s.approximate:,}" for s in numbers]),
        ("    no effect", [f"{s.no_effect:,}" for s in numbers]),
        ("  run beside a witness", [f"{s.executed:,}" for s in numbers]),
        ("encodings", [f"{s.encodings:,}" for s in numbers]),
        ("text is not LLVM 19's", [f"{s.text_differs:,}" for s in numbers])):
      table.add_row(what, *values)
  Console().print(table)


def _ptx(match: str, as_json: bool) -> None:
  """The ledger of PTX: its numbers, or the forms that fit."""
  from tinyhw.core.errors import InvalidArgument
  from tinyhw.tools.ledger import ptx
  found = [e for e in ptx.entries() if match in e.form]
  if not found: raise InvalidArgument("no form of PTX fits", where=f"--match {match}")
  if as_json: return click.echo(json.dumps({"summary": ptx.summary(found), "forms": [asdict(e) for e in found]}))
  if match:
    for e in found:
      said = [*e.witnesses, *(["compiled"] if e.compiled else [])] if e.meaning else ["no meaning"]
      click.echo(f"{e.form:60} {', '.join(said) or ('no witness' if e.effect else 'no effect to see')}")
  click.echo("\n".join(ptx.lines(found)))
