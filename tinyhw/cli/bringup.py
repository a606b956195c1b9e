"""`tinyhw bringup`: a ladder of small programs that says what of a device works, and where the first lie is."""
from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tinyhw.bringup.climb import Climb
from tinyhw.bringup.result import ABSENT, BLOCKED, BROKEN, PASSED, Kept, LadderRun, Result
from tinyhw.bringup.rung import Ladder
from tinyhw.cli import complete
from tinyhw.cli.benches import VENDORS, device_of, ladder_of, leave, load, maker
from tinyhw.core.environment import count as number
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.written import save

WIDTH: Final = 120  # of what is no terminal
PACKETS: Final = 6  # lines of a broken rung's that the terminal shows
MARKS: Final = {PASSED: ("ok", "green"), BROKEN: ("BROKEN", "bold red"), BLOCKED: ("blocked", "yellow"),
                ABSENT: ("absent", "bright_black")}
_UNITS: Final = {"K": 10, "M": 20, "G": 30}


@click.command()
@click.argument("device", metavar="AMD|NV", shell_complete=complete.vendor)
@click.option("--card", type=click.IntRange(0), default=0, show_default=True, help="Which card of the machine.")
@click.option("--until", metavar="RUNG", shell_complete=complete.rung, help="Stop behind this rung.")
@click.option("--only", metavar="BRANCH|RUNG", multiple=True, shell_complete=complete.rung,
              help="Run these, and what they stand on. May be given again.")
@click.option("--list", "listed", is_flag=True, help="Show the rungs, why each is there and what it stands on.")
@click.option("--state", type=click.Path(path_type=Path), metavar="FILE",
              help="Keep what has passed in FILE, and go on from there the next time.")
@click.option("--largest", metavar="SIZE", default="64M", show_default=True,
              help="Bytes of the largest copy; 4G on a card that has the memory.")
@click.option("--patience", type=click.FloatRange(0.1), default=1.0, show_default=True, metavar="FACTOR",
              help="How often its time a rung may take: more for an emulator or an FPGA.")
@click.option("--qmd", metavar="X.Y", help="NV: the QMD version of launches; the generation's own when left out.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page that needs nothing else.")
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE.zip",
              help="Write what can be sent: results, page, captures; without names of persons, hosts and pieces.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(device: str, card: int, until: str | None, only: tuple[str, ...], listed: bool, state: Path | None,
            largest: str, patience: float, qmd: str | None, html: Path | None, report: Path | None,
            as_json: bool) -> None:
  """Bring up a GPU, rung by rung: from the device node to faults, processes and peers.

  Each rung is a small program with a time limit, which stands on others. It shows its evidence, or what was found,
  what was wanted, where to look and the packets. What stands on a broken rung is blocked; other branches go on. Rungs
  run in processes of their own: one that hangs is ended, and the next goes on. No setting of a card is changed. The
  exit status is 1 where a rung is broken.

  \b
  Examples:
    MOCKGPU=gfx1100 tinyhw bringup AMD
    MOCKGPU=sm_90 tinyhw bringup NV --until queue.nop
    tinyhw bringup AMD --state card.json --report out.zip
    tinyhw bringup NV --only copies --json
  """
  vendor = device.upper()
  if vendor not in VENDORS:
    raise InvalidArgument(f"no ladder for {device!r}", where="tinyhw bringup", hint=f"there are {', '.join(VENDORS)}")
  ladder = ladder_of(vendor)
  rungs = [replace(r, seconds=r.seconds * patience) for r in ladder.chosen(until, only)]
  if listed: return _list(ladder, as_json)
  options: dict[str, Any] = {} if qmd is None or vendor != "NV" else {"qmd": version_of(qmd)}
  name = device_of(vendor, card)
  kept = None if state is None else Kept(state, vendor, name)
  run = LadderRun(vendor, name)
  load(vendor)
  console = Console(stderr=as_json, width=None if sys.stdout.isatty() else WIDTH, highlight=False, markup=False)
  from tinyhw.cli.parcel import Parcel  # packs captures, which the tools of queues load for
  with Parcel(report) as parcel:
    shown = _shower(console, quiet=as_json and not sys.stderr.isatty())
    def took(result: Result) -> None:
      shown(result)
      run.results.append(result)
      if kept is not None and not result.kept: kept.keep(run.results)
    climb = Climb(rungs, maker(vendor, card, size_of(largest), **options), kept=None if kept is None else kept.passed,
                  shown=took, leave=leave)
    run.results = climb.run()
    run.facts = climb.facts
    if html is not None or report is not None:
      from tinyhw.cli.ladder_page import page  # with the styles of other pages, which load more
      if html is not None: save(html, page(run, ladder))
      parcel.pack(run, page(run, ladder), climb.secrets)
  if as_json: click.echo(json.dumps(run.row()))
  else: _told(console, run, ladder)
  for path, what in ((html, "page"), (report, "report")):
    if path is not None: click.echo(f"{what}: {path}", err=True)
  if not run.whole: sys.exit(1)


def size_of(text: str) -> int:
  """A number of bytes: 4096, 64M, 4G. Raises InvalidArgument."""
  digits, unit = (text[:-1], text[-1:].upper()) if text[-1:].upper() in _UNITS else (text, "")
  if (count := number(digits)) is None:
    raise InvalidArgument(f"{text!r} is no size", where="--largest", hint="4096, 64M, 4G")
  return count << _UNITS.get(unit, 0)


def version_of(text: str) -> tuple[int, int]:
  """A QMD version. Raises InvalidArgument."""
  major, _, minor = text.partition(".")
  first, second = number(major), number(minor or "0")
  if first is None or second is None:
    raise InvalidArgument(f"{text!r} is no version", where="--qmd", hint="two numbers: 4.0")
  return first, second




def _list(ladder: Ladder[Any], as_json: bool) -> None:
  if as_json:
    click.echo(json.dumps([{"rung": r.name, "needs": r.needs, "why": r.why, "seconds": r.seconds, "alone": r.alone}
                           for r in ladder]))
    return
  made = Table(box=None, pad_edge=False, header_style="dim")
  for column in ("rung", "stands on", "why"): made.add_column(column, overflow="fold", no_wrap=column == "rung")
  for rung in ladder: made.add_row(rung.name, ", ".join(rung.needs), rung.why)
  Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False, markup=False).print(made)


def _shower(console: Console, quiet: bool) -> Callable[[Result], None]:
  """Shows each result as it comes, a line a rung, under the name of its branch."""
  last = [""]
  def show(result: Result) -> None:
    if quiet: return
    branch = result.rung.partition(".")[0]
    if branch != last[0]: console.print(Text(branch, style="bold"))
    last[0] = branch
    mark, style = MARKS[result.state]
    line = Text("  ").append(f"{result.rung.partition('.')[2]:<12} ").append(f"{mark:<8}", style)
    line.append("  kept  " if result.kept else f"{result.seconds * 1000:6.0f} ms ", "bright_black")
    console.print(line.append(result.evidence or result.found), soft_wrap=False, overflow="ellipsis", no_wrap=True)
  return show


def _told(console: Console, run: LadderRun, ladder: Ladder[Any]) -> None:
  """The end: each broken rung in full, and how many of each kind there are."""
  for result in run.of(BROKEN):
    console.print(Panel(_broken(result, ladder[result.rung].why, [r.rung for r in run.of(PASSED)]),
                        title=Text(f"{result.rung} is broken"), border_style="red", width=console.width))
  counts = ", ".join(f"{len(run.of(s))} {s}" for s in (PASSED, BROKEN, BLOCKED, ABSENT) if run.of(s))
  first = run.first_broken
  end = f"; the first broken rung is {first.rung}" if first else ""
  console.print(Text(f"{run.vendor}, {run.device}: {counts} of {len(run.results)} rungs{end}",
                     style="bold red" if first else "bold green"))


def _broken(result: Result, why: str, passed: Sequence[str]) -> Text:
  text = Text(why + "\n", style="italic")
  rows = (("found", result.found), ("wanted", result.wanted), ("look at", result.look_at),
          ("known", f"{len(passed)} rungs hold, the last {', '.join(passed[-3:])}" if passed else "nothing holds"))
  for name, value in rows: text.append(f"\n{name:>8}  ", "bold").append(value)
  packets = result.packets[-PACKETS:]
  if len(packets) < len(result.packets): packets.insert(0, f"({len(result.packets) - PACKETS} more: --json, --html)")
  for name, lines in (("facts", result.facts), ("packets", packets)):
    for i, line in enumerate(lines): text.append(f"\n{name if i == 0 else '':>8}  ", "bold").append(line)
  return text
