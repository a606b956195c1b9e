"""`tinyhw decode`: a capture, or words of a queue, packet by packet."""
from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from tinyhw.arch.nv import NV_ARCHES
from tinyhw.core.environment import whole
from tinyhw.core.errors import InvalidArgument
from tinyhw.queues import listing, raw
from tinyhw.queues import source as text
from tinyhw.queues.calls import text as calls_text
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.container import MAGIC
from tinyhw.queues.events import CLOCK


def number(text: str) -> int:
  """A number in decimal or hex."""
  if (value := whole(text)) is None: raise click.BadParameter(f"{text!r} is no number")
  return value


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--kind", type=click.Choice(raw.KINDS), help="What words of FILE are, where it is no capture.")
@click.option("--arch", metavar="ARCH", help="Whose: sm_90 ... (for methods and QMDs).")
@click.option("--queue", metavar="TEXT", help="Submissions to queues with this text in their name.")
@click.option("--dispatch", type=number, metavar="N", help="The submission with launch N (from 0).")
@click.option("--around", type=number, metavar="ADDRESS", help="Submissions that name this address, or its buffer.")
@click.option("--short", is_flag=True, help="A line a packet, without registers and methods.")
@click.option("--calls", is_flag=True, help="The kernel driver's calls too.")
@click.option("--source", is_flag=True, help="The words as text that `tinyhw assemble` turns back.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with all words.")
def command(file: str, kind: str | None, arch: str | None, queue: str | None, dispatch: int | None, around: int | None,
            short: bool, calls: bool, source: bool, as_json: bool) -> None:
  """Show what FILE holds: a capture of `tinyhw record`, or dwords (hex text or bytes; - is standard input).

  Each packet has its vendor's name and fields, and what lies at its addresses.

  \b
  Examples:
    tinyhw decode run.thq --queue SDMA
    tinyhw decode run.thq --dispatch 3 --json
    echo "c0055800 0 0 0 0 0 a 43b1" | tinyhw decode - --kind pm4
    tinyhw decode qmd.bin --kind qmd --arch sm_90
  """
  data = sys.stdin.buffer.read() if file == "-" else None
  if data is None and kind is None and _is_capture(file):
    if source: raise InvalidArgument("--source is for the words of one queue", where=file,
                                     hint="choose a submission's: tinyhw decode FILE --kind KIND --source")
    shown = captured(Capture(file), queue, dispatch, around, short, calls, as_json)
  else:
    if kind is None:
      raise InvalidArgument("is no capture of tinyhw", where=file, hint=f"say what its words are: --kind "
                            f"{'|'.join(raw.KINDS)}")
    if data is None: data = Path(file).read_bytes()
    words = raw.read_words(data, file)
    shown = (iter(text.source(kind, words, class_id=_class_of(arch)).splitlines()) if source else
             _words(words, kind, arch, short, as_json))
  _print(shown)


def _is_capture(file: str) -> bool:
  with open(file, "rb") as f: return f.read(len(MAGIC)) == MAGIC


def _print(lines: Iterator[str]) -> None:
  if sys.stdout.isatty(): click.echo_via_pager(line + "\n" for line in lines)
  else:
    for line in lines: click.echo(line)


def _words(words: list[int], kind: str, arch: str | None, short: bool, as_json: bool) -> Iterator[str]:
  found = raw.follow(kind, words, class_id=_class_of(arch))
  names = listing.Names()
  if as_json: yield from (json.dumps(row) for row in listing.rows(names, found))
  else: yield from listing.lines(names, found, deep=not short)


def _class_of(arch: str | None) -> int:
  if arch is None or not arch.startswith("sm_"): return 0
  if arch not in NV_ARCHES:
    raise InvalidArgument(f"no NVIDIA card is called {arch!r}", where="--arch",
                          hint=f"there are {', '.join(NV_ARCHES)}")
  return NV_ARCHES[arch].compute_class


def captured(capture: Capture, queue: str | None, dispatch: int | None, around: int | None, short: bool, calls: bool,
             as_json: bool) -> Iterator[str]:
  """The lines of a capture's submissions that fit the filters."""
  launches = 0
  for step in capture:
    if step.follow is None:
      if calls and not as_json and (line := _call(step)): yield line
      continue
    first, launches = launches, launches + len(step.follow.launches)
    if queue is not None and queue.lower() not in str(step.queue).lower(): continue
    if dispatch is not None and not first <= dispatch < launches: continue
    if around is not None and not _names(step, around): continue
    names = listing.Names(capture, step.event.vendor, step.world)
    if as_json:
      yield json.dumps({"submission": step.submission, "queue": str(step.queue), "event": step.number,
                        "at_ns": step.event.at_ns, "clock": CLOCK.value,
                        "packets": list(listing.rows(names, step.follow))})
      continue
    yield f"submission {step.submission}  {step.queue}  {step.event.at_ns / 1e6:.3f} ms ({CLOCK.value})"
    yield from (f"  {line}" for line in listing.lines(names, step.follow, deep=not short))
  if capture.cut: yield f"{capture.reader.path} ends here amid a frame: its program was ended from outside"


def _call(step: Step) -> str:
  return calls_text(step)


def _names(step: Step, address: int) -> bool:
  """Whether a submission names an address, or another one in its buffer."""
  assert step.world is not None and step.follow is not None
  made = step.world.find(address)
  if made is not None and made.key in getattr(step.event, "touched", ()): return True
  return any(value == address for item in step.follow.items for _, value in listing.addresses(item))
