"""The report of `tinyhw launch --report` on a terminal."""
from __future__ import annotations

import io
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tinyhw.core.written import save
from tinyhw.emulator.debug.page import notes, percent, segment, size
from tinyhw.emulator.debug.report import Report

BAR = 28
ROWS = 14
COLORS = {"VALU": "blue", "transcendental": "magenta", "matrix": "magenta", "SALU": "cyan", "SMEM": "green",
          "VMEM": "yellow", "LDS": "yellow", "branch": "white", "barrier": "red", "wait": "bright_black"}


def bar(part: float, width: int = BAR) -> str:
  """A bar of eighths of a character."""
  eighths = round(max(0.0, min(1.0, part)) * width * 8)
  return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")


def table(*columns: str) -> Table:
  """A plain table; a column that begins with ">" is aligned right."""
  made = Table(box=None, pad_edge=False, header_style="dim", show_header=any(columns))
  for c in columns: made.add_column(c.lstrip(">"), justify="right" if c.startswith(">") else "left", no_wrap=True)
  return made


def show(r: Report, console: Console, everything: bool = False) -> None:
  """The report as tables that fit a terminal; with `everything`, no table is cut."""
  rows, w = len(r.instructions) if everything else ROWS, r.words
  console.print(Text(f"{r.kernel or 'kernel'} on {r.arch}", style="bold"))
  console.print(f"grid {r.grid} of {r.block}: {r.waves:,} {w.wave}s of {r.wave_lanes} lanes; {r.register_text}, "
                f"{r.lds:,} bytes of {w.shared} a {w.group}, {r.scratch:,} bytes of {w.scratch} a lane", soft_wrap=True)
  if r.occupancy: console.print(f"occupancy: {r.occupancy}", soft_wrap=True)
  console.print(f"{r.executed:,} {w.wave} instructions; {r.lanes:.1f} of {r.wave_lanes} lanes active in vector "
                f"instructions; {r.idle:,} ran without a lane; {r.barriers:,} barriers, {r.waits:,} waits, "
                f"{r.atomics:,} atomics", soft_wrap=True)
  _mix(r, console, rows)
  _memory(r, console)
  _branches(r, console, rows)
  if r.conflicts():
    t = table(f"{w.short} bank conflicts", "", ">cycles", ">without", "")
    for i, a in r.conflicts()[:rows]:
      t.add_row(i.place, i.text, f"{a.cycles:,}", f"{a.ideal:,}", f"{a.slowdown or 0:.3g}x")
    section(console, t)
  _lines(r, console, rows)
  _hot(r, console, everything)
  console.print()
  exactness(r, console)


def section(console: Console, t: Table) -> None:
  """A table after an empty line."""
  console.print()
  console.print(t)


def _mix(r: Report, console: Console, rows: int) -> None:
  t = table("unit", f">{r.words.wave}s", ">share", "")
  for u, n in r.units.items():
    t.add_row(u, f"{n:,}", percent(n / r.executed), Text(bar(n / r.executed), style=COLORS.get(r.words.units[u], "")))
  section(console, t)
  t = table("instruction", "unit", f">{r.words.wave}s", ">share", "")
  for m in r.mnemonics[:rows]:
    t.add_row(Text(m.mnemonic, style="yellow" if m.status == "approximate" else ""), m.unit, f"{m.waves:,}",
              percent(m.waves / r.executed),
              Text(bar(m.waves / r.mnemonics[0].waves), style=COLORS.get(r.words.units[m.unit], "")))
  section(console, t)
  if len(r.mnemonics) > rows: console.print(f"and {len(r.mnemonics) - rows} more mnemonics", style="dim")


def _memory(r: Report, console: Console) -> None:
  if not r.accesses: return
  t = table("access", f">{r.words.wave}s", ">lanes", ">bytes", f">{r.words.sector} B sectors", ">128 B lines", ">used",
            f">{r.words.short} cycles")
  for a in r.accesses:
    used = "-" if a.efficiency is None or a.segment != "global" else percent(a.efficiency)
    cycles = "-" if a.slowdown is None else f"{a.cycles:,} ({a.slowdown:.3g}x)"
    sectors, lines = (f"{n:,}" if n else "-" for n in (a.sectors, a.lines))
    t.add_row(f"{segment(a, r.words)} {a.kind}", f"{a.waves:,}", f"{a.lanes:,}", size(a.bytes), sectors, lines,
              used, cycles)
  section(console, t)


def _branches(r: Report, console: Console, rows: int) -> None:
  found = [i for i in r.instructions if i.waves and (i.taken is not None or i.splits)]
  if not found: return
  t = table("branches and lanes", "", f">{r.words.wave}s", ">taken", ">splits lanes", ">active lanes")
  for i in sorted(found, key=lambda i: -i.waves)[:rows]:
    taken = "-" if i.taken is None else percent(i.taken / i.waves)
    t.add_row(i.place, i.text, f"{i.waves:,}", taken, f"{i.splits:,}" if i.splits else "-", f"{i.lanes:.1f}")
  section(console, t)


def _lines(r: Report, console: Console, rows: int) -> None:
  """The lines of the source whose instructions were executed most."""
  if not r.lines: return
  t = table("line", f">{r.words.wave}s", ">share", "", ">lanes", ">global", f">{r.words.short} cycles", "source")
  for s in r.lines[:rows]:
    cycles = f"{s.cycles:,} ({s.cycles / s.ideal:.3g}x)" if s.ideal else "-"
    t.add_row(Text(s.place, style="cyan"), f"{s.waves:,}", percent(s.waves / r.executed),
              Text(bar(s.waves / r.lines[0].waves, 6), style="red"), f"{s.lanes:.1f}" if s.lanes else "-",
              size(s.bytes) if s.bytes else "-", cycles, Text(s.text if len(s.text) < 60 else s.text[:57] + "..."))
  section(console, t)
  if len(r.lines) > rows: console.print(f"and {len(r.lines) - rows} more lines", style="dim")


def _hot(r: Report, console: Console, everything: bool) -> None:
  """The hottest stretch of code, or all of it, with what is remarkable."""
  hot = r.hot(1)
  if not hot: return
  top, listed = hot[0].waves, r.instructions
  if not everything and len(listed) > 48:
    at = next(k for k, i in enumerate(listed) if i is hot[0])
    listed = listed[max(0, at - 8):at + 24]
  t = table(f">{r.words.wave}s", "", ">lanes", "place", "instruction", "notes")
  for i in listed:
    if i.label: t.add_row("", "", "", Text(f"{i.label}:", style="bold"))
    words = Text()
    for kind, text in notes(i, r.words):
      words.append(f"{text}  ", style={"warn": "yellow", "bad": "red"}.get(kind, "dim"))
    t.add_row(f"{i.waves:,}" if i.waves else "", Text(bar(i.waves / top, 6), style="red"),
              f"{i.lanes:.1f}" if i.waves else "", Text(i.place, style="cyan"),
              Text(i.text if len(i.text) < 52 else i.text[:49] + "...", style="" if i.waves else "dim"), words)
  section(console, t)


def exactness(r: Report, console: Console) -> None:
  """Which executed instructions were not exact, and where their values arrived."""
  for line in r.exactness():
    color = "yellow" if line.startswith("reached") else "green" if "exact" in line or line.startswith("no such") else ""
    console.print(Text(line, style=color), soft_wrap=True)


def write(r: Report, form: str | None, file: Path | None, only_exactness: bool) -> None:
  """The report in a form ("text", "json", "html"; None: only what was not exact), to a file or standard output."""
  if form in {"json", "html"}:
    text = r.json() + "\n" if form == "json" else r.html()
    if file is None: click.echo(text, nl=False)
    else: keep(file, text)
    return
  out = io.StringIO()
  terminal = file is None and sys.stdout.isatty()
  console = Console(width=None if terminal else 140, file=None if terminal else out, highlight=False, markup=False)
  if form is None: exactness(r, console)
  else: show(r, console, everything=file is not None)
  shown = "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())
  if file is not None: keep(file, shown)
  elif not terminal: click.echo(shown, nl=False)


def keep(file: Path, text: str) -> None:
  """Write a file and say so."""
  save(file, text)
  click.echo(f"report: {file} ({len(text):,} bytes)", err=True)
