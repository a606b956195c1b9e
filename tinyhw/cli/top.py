"""`tinyhw top`: queues as they go on, from a capture that is being written."""
from __future__ import annotations

import json
import sys
import time
from typing import Final

import click
from rich.box import SIMPLE
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tinyhw.core.errors import MissingFile
from tinyhw.queues.board import Board, exists
from tinyhw.queues.container import Reader
from tinyhw.queues.events import CLOCK

KERNELS: Final = 8    # that are shown
WIDTH: Final = 100    # of what is no terminal


@click.command()
@click.argument("file", default="run.thq")
@click.option("--every", type=click.FloatRange(0.05), default=0.5, show_default=True, metavar="SECONDS",
              help="How often it is drawn.")
@click.option("--wait", type=click.FloatRange(0), default=10.0, show_default=True, metavar="SECONDS",
              help="How long to wait for FILE to begin.")
@click.option("--once", is_flag=True, help="Show what is there now, and end.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object each time.")
def command(file: str, every: float, wait: float, once: bool, as_json: bool) -> None:
  """Show what queues do, from FILE, a capture that another process is writing.

  What was submitted, where each queue stands, kernels by launches, memory in use. It ends with the program.

  \b
  Examples:
    tinyhw record -o run.thq --mockgpu gfx1100 -- python train.py &
    tinyhw top run.thq
    tinyhw top run.thq --once --json
  """
  until = time.monotonic() + wait
  while not exists(file):
    if once or time.monotonic() > until:
      raise MissingFile("no capture is there", where=file, hint="start one: tinyhw record -o FILE -- PROGRAM")
    time.sleep(0.05)
  board = Board(Reader(file))
  if once or as_json or not sys.stdout.isatty():
    _plain(board, every, once, as_json)
    return
  with Live(table(board, {}, 0.0), console=Console(), transient=False, auto_refresh=False) as live:
    try: _follow(board, every, live)
    except KeyboardInterrupt: pass  # what is shown stays


def _follow(board: Board, every: float, live: Live) -> None:
  before: dict[str, int] = {}
  last, ended = time.monotonic(), False
  while not ended:
    ended = board.ended  # before the last look, so that it has all
    board.update()
    now = time.monotonic()
    live.update(table(board, before, now - last), refresh=True)
    before, last = {r.name: r.packets for r in board.queues.values()}, now
    if not ended: time.sleep(every)


def _plain(board: Board, every: float, once: bool, as_json: bool) -> None:
  """Without a terminal: the state now, or at each change."""
  while True:
    ended = board.ended
    new = board.update()
    if as_json and (new or once): click.echo(json.dumps(board.row()))
    if once or ended: break
    time.sleep(every)
  if not as_json: Console(width=None if sys.stdout.isatty() else WIDTH).print(table(board, {}, 0.0))


def table(board: Board, before: dict[str, int], seconds: float) -> Group:
  """What is shown. `before` has the packets of each queue at the last time, `seconds` ago."""
  head = Text(f"{board.reader.path}: {board.at_ns / 1e9:.1f} s ({CLOCK.value}), " + ", ".join(
    f"{v}: {n / 2**20:,.1f} MiB" for v, n in board.memory.items()), style="bold")
  queues = Table(expand=True, pad_edge=False, box=SIMPLE)
  for name in ("queue", "submitted", "packets", "a second", "launches", "copied", "ahead", "stands at, or last packet"):
    queues.add_column(name, justify="left" if name in ("queue", "stands at, or last packet") else "right",
                      overflow="fold", no_wrap=name != "stands at, or last packet")
  for row in board.queues.values():
    rate = (row.packets - before.get(row.name, row.packets)) / seconds if seconds > 0 else 0.0
    what = Text(f"waits for {row.waits}", "red") if row.waits else Text(row.last)
    if row.closed: what = Text("closed", "dim")
    queues.add_row(row.name, f"{row.submissions:,}", f"{row.packets:,}", f"{rate:,.0f}" if seconds > 0 else "",
                   f"{row.launches:,}", f"{row.copied / 2**20:,.1f} MiB", f"{row.ahead:,}", what)
  kernels = Table(expand=True, pad_edge=False, box=SIMPLE)
  kernels.add_column("kernel")
  kernels.add_column("launches", justify="right")
  for name, count in board.kernels.most_common(KERNELS): kernels.add_row(name, f"{count:,}")
  if (more := len(board.kernels) - KERNELS) > 0: kernels.add_row(f"and {more:,} more", "")
  return Group(head, queues, *([kernels] if board.kernels else []), *(Text(n, "yellow") for n in board.notes))
