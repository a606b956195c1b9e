"""`tinyhw timeline`: a capture as a picture over time."""
from __future__ import annotations

import json
import re
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from tinyhw.cli.progress import walked
from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.core.source import Spot
from tinyhw.core.written import writing
from tinyhw.isa.ptx import parser, printer
from tinyhw.queues import page, trace
from tinyhw.queues.capture import Capture
from tinyhw.queues.timeline import Timeline, timeline
from tinyhw.wire import codeobject, cubin


@click.command()
@click.argument("file")
@click.option("-o", "--output", metavar="FILE", help="Where it goes: FILE.html a page, FILE.json a trace for Perfetto "
              "[default: the capture's name with .html].")
@click.option("--packets", type=click.IntRange(1), default=page.PACKETS, show_default=True, metavar="N",
              help="Of a page: its last N packets and calls.")
@click.option("--no-code", is_flag=True, help="Leave the kernels' code out.")
@click.option("--open", "opened", is_flag=True, help="Show the page in a browser.")
@click.option("--json", "as_json", is_flag=True, help="Say what was drawn as one JSON object.")
def command(file: str, output: str | None, packets: int, no_code: bool, opened: bool, as_json: bool) -> None:
  """Draw FILE, a capture of `tinyhw record`, over time: threads, queues, packets, arrows, memory in use.

  The page needs nothing else: zoom by the wheel, click a packet for its fields, its kernel's code and what came
  before it, a line of the code for its line of the source (where the code object has line information), press ? for
  the keys. What `tinyhw doctor` and `tinyhw lint` find is marked. A name that ends in .json gets a trace for
  https://ui.perfetto.dev.

  The times of calls and doorbells are measured. Of packets the order is known; their widths within a submission are not
  measured.

  \b
  Examples:
    tinyhw record -o run.thq --mockgpu gfx1100 -- python train.py
    tinyhw timeline run.thq
    tinyhw timeline run.thq -o run.json
  """
  capture = Capture(file)
  out = Path(output) if output is not None else Path(file).with_suffix(".html")
  if out.suffix not in (".html", ".json"):
    raise InvalidArgument("ends in neither .html nor .json", where=str(out), hint="the name says which of both it is")
  shown = not no_code and out.suffix != ".json"
  with walked("timeline", capture, quiet=as_json):
    drawn = timeline(capture, code_of if shown else None, source_of if shown else None)
  with writing(out), out.open("w", encoding="utf-8") as f:
    f.writelines(page.text(drawn, packets) if out.suffix == ".html" else trace.text(drawn))
  if as_json:
    click.echo(json.dumps({"file": str(out), "lanes": len(drawn.lanes), "spans": len(drawn.spans),
                           "arrows": len(drawn.flows), "findings": len(drawn.marks)}))
  else: click.echo(f"{out}: {summary(drawn)}")
  if out.suffix == ".json" and not as_json: click.echo("open it at https://ui.perfetto.dev")
  elif opened and out.suffix != ".json": webbrowser.open(out.resolve().as_uri())


def summary(drawn: Timeline) -> str:
  """What a picture shows, in a line."""
  wrong = len(drawn.marks)
  return (f"{len(drawn.lanes)} lanes, {len(drawn.spans):,} packets and calls, {len(drawn.flows):,} arrows, "
          f"{wrong} finding{'s' if wrong != 1 else ''}")


def code_of(image: bytes, kind: str) -> dict[str, list[str]]:
  """Lines of each kernel's code: AMD's machine code as LLVM writes it, PTX, also that of a cubin."""
  try: rows = list(_lines(image, kind))
  except Error: return {}  # code of which nothing is known is not shown
  out: dict[str, list[str]] = {}
  for name, line in rows: out.setdefault(name, []).append(line)
  return out


def source_of(image: bytes, kind: str) -> dict[str, list[tuple[Spot, ...]]]:
  """Where each of these lines comes from, of kernels whose code object or PTX has line information."""
  try: rows = list(_spots(image, kind))
  except Error: return {}
  out: dict[str, list[tuple[Spot, ...]]] = {}
  for name, chain in rows: out.setdefault(name, []).append(chain)
  return {name: chains for name, chains in out.items() if any(chains)}


def _spots(image: bytes, kind: str) -> Iterator[tuple[str, tuple[Spot, ...]]]:
  if kind == "amdgcn":
    from tinyhw.devices.disassembly import code_object  # tables, which NVIDIA's do without
    source = codeobject.load(image).source
    for row in code_object(image): yield row.symbol, tuple(s for s in source.chain(row.address) if s.line)
    return
  text = image if kind == "ptx" else cubin.Cubin(image).ptx or b""
  files = {int(n): path for n, path in _FILE.findall(text.decode("utf-8", "replace"))}
  at: dict[str, tuple[Spot, ...]] = {}
  for name, line in _lines(image, kind):
    if m := _LOC.match(line):
      file, number, column = (int(x) for x in m.groups())
      at[name] = (Spot(files.get(file, ""), number, column),) if number else ()
    yield name, at.get(name, ())


_FILE: Final = re.compile(r'(?a)^\s*\.file\s+(\d+)\s+"([^"]*)"', re.M)
_LOC: Final = re.compile(r"(?a)\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")


def _lines(image: bytes, kind: str) -> Iterator[tuple[str, str]]:
  if kind == "amdgcn":
    from tinyhw.devices.disassembly import code_object, comment  # tables, which NVIDIA's do without
    for row in code_object(image): yield row.symbol, f"{row.address:#08x}  {comment(row)}"
    return
  if kind == "ptx":
    for name, entry in parser.parse(image).entries.items():
      for line in printer.function(entry): yield name, line
    return
  code = cubin.Cubin(image)
  for name in code.kernels:
    for line in (code.ptx or b"").decode("utf-8", "replace").splitlines(): yield name, line
