"""`tinyhw decode`: a capture, or words of a queue, packet by packet."""
from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from tinyhw.arch import decoded
from tinyhw.arch.nv import NV_ARCHES
from tinyhw.cli.files import contents
from tinyhw.cli.progress import walked
from tinyhw.cli.timeline import code_of
from tinyhw.core.environment import whole
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.queues import listing, raw, summary
from tinyhw.queues import source as text
from tinyhw.queues.calls import text as calls_text
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.container import MAGIC
from tinyhw.queues.events import CLOCK, Note
from tinyhw.queues.foreign import debugfs, forms, hrr, hrr_calls, show
from tinyhw.queues.state import KernelCode, States
from tinyhw.queues.world import Item, Launch


def number(text: str) -> int:
  """A number in decimal or hex."""
  if (value := whole(text)) is None: raise click.BadParameter(f"{text!r} is no number")
  return value


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--kind", type=click.Choice(raw.KINDS), help="What words of FILE are, where it is no capture.")
@click.option("--arch", metavar="ARCH", help="Whose: sm_90 ... (for methods and QMDs), gfx1201 ... (for PM4).")
@click.option("--queue", metavar="TEXT", help="Queues and rings with this text in their name.")
@click.option("--dispatch", type=number, metavar="N", help="The submission with launch N (from 0).")
@click.option("--around", type=number, metavar="ADDRESS", help="Submissions that name this address, or its buffer.")
@click.option("--short", is_flag=True, help="A line a packet, without registers and methods.")
@click.option("--state", is_flag=True, help="At each launch the registers or methods that its queue has set.")
@click.option("--disassemble", is_flag=True, help="At each launch its kernel's code, the first time.")
@click.option("--summary", "counted", is_flag=True, help="Counts alone: packets by kind, launches by kernel, queues.")
@click.option("--calls", is_flag=True, help="The kernel driver's calls too.")
@click.option("--source", is_flag=True, help="The words as text that `tinyhw assemble` turns back.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with all words.")
def command(file: str, kind: str | None, arch: str | None, queue: str | None, dispatch: int | None, around: int | None,
            short: bool, state: bool, disassemble: bool, counted: bool, calls: bool, source: bool,
            as_json: bool) -> None:
  """Show what FILE holds: a capture of `tinyhw record`, what another program made of queues, or dwords (hex text or
  bytes). - is standard input.

  Other programs' are amdgpu's device coredump, a ring of debugfs (amdgpu_ring_NAME), UMR's listings of rings and
  indirect buffers, ROCgdb's `info queues` and `info dispatches`, and folders of HIP Record & Replay (.hrr). -> marks
  where a ring is read next. Each packet has its vendor's name and fields, and what lies at its addresses.

  \b
  Examples:
    tinyhw decode run.thq --queue SDMA
    tinyhw decode run.thq --dispatch 3 --state --disassemble
    tinyhw decode run.thq --summary
    tinyhw decode /sys/class/drm/card0/device/devcoredump/data --queue comp
    echo "c0055800 0 0 0 0 0 a 43b1" | tinyhw decode - --kind pm4
    tinyhw decode qmd.bin --kind qmd --arch sm_90
    tinyhw decode run.hrr
  """
  if file != "-" and Path(file).is_dir():
    archives = hrr.read(Path(file))
    for archive in archives:
      if archive.version == hrr.FORMAT: archive.names = hrr_calls.names(archive.path)
    _print(json.dumps(a.row()) for a in archives) if as_json else _print(line for a in archives for line in a.lines())
    return
  if file != "-" and kind is None and _is_capture(file):
    if source: raise InvalidArgument("--source is for the words of one queue", where=file,
                                     hint="choose a submission's: tinyhw decode FILE --kind KIND --source")
    capture = Capture(file, following=not counted)
    if counted:
      with walked("decode", capture, quiet=as_json): found = summary.of_capture(capture, queue)
      if queue is not None and not found.queues: raise _unlike(capture, 0)
      _counted(found, as_json)
    else: _print(captured(capture, queue, dispatch, around, short, calls, as_json, state, disassemble))
    return
  if state or disassemble:
    raise InvalidArgument("--state and --disassemble are for captures", where=file,
                          hint="words and dumps do not say what was set before them, or what code is where")
  data = sys.stdin.buffer.read() if file == "-" else contents(file)
  if counted and kind is not None and not debugfs.ring_of(file):
    _counted(summary.of_words(kind, raw.read_words(data, file)), as_json)
    return
  if counted: raise InvalidArgument("--summary is for captures, and words with their --kind", where=file)
  _print(_foreign(data, file, kind, queue, short, as_json) or _raw(data, file, kind, arch, short, source, as_json))


def _foreign(data: bytes, file: str, kind: str | None, queue: str | None, short: bool,
             as_json: bool) -> Iterator[str] | None:
  """The lines of what another program made; None for words. A ring's kind can be said where its name does not."""
  if kind is not None and not debugfs.ring_of(file): return None
  dump = forms.read(data, file)
  if dump is None: return None
  if kind is not None:
    for ring in dump.rings: ring.kind = kind if kind in ("pm4", "sdma", "aql") else ""
  if as_json: return (json.dumps(row) for row in show.rows(dump, queue))
  return show.lines(dump, queue, deep=not short)


def _raw(data: bytes, file: str, kind: str | None, arch: str | None, short: bool, source: bool,
         as_json: bool) -> Iterator[str]:
  if kind is None:
    raise InvalidArgument("is no capture of tinyhw, and no dump that is known", where=file,
                          hint=f"say what its words are: --kind {'|'.join(raw.KINDS)}")
  words = raw.read_words(data, file)
  if source: return iter(text.source(kind, words, class_id=_class_of(kind, arch)).splitlines())
  return _words(words, kind, arch, short, as_json)


def _is_capture(file: str) -> bool:
  with open(file, "rb") as f: return f.read(len(MAGIC)) == MAGIC


def _counted(found: summary.Summary, as_json: bool) -> None:
  _print(iter([json.dumps(found.row())]) if as_json else found.lines())


def _print(lines: Iterator[str]) -> None:
  if sys.stdout.isatty():
    from rich.console import Console  # it knows terminals, NO_COLOR and TERM=dumb
    console = Console()
    paint = str if console.no_color or console.is_dumb_terminal else painted
    click.echo_via_pager(paint(line) + "\n" for line in lines)
  else:
    for line in lines: click.echo(line)


_PACKET: Final = re.compile(r"(?a)^(\s*)(->)?(\s*0x[0-9a-f]+\s+)([A-Za-z]\w*)(?=[( ]|$)")
_HEAD: Final = re.compile(r"^(?:submission|ring|registers of|queue|dispatch) ")


def painted(line: str) -> str:
  """A line with colours: heads, the read pointer, packets' names, what is no packet, notes."""
  if _HEAD.match(line): return click.style(line, bold=True)
  body, mark, note = line.partition("   ; ")
  if m := _PACKET.match(body):
    body = (m[1] + click.style(m[2] or "", fg="yellow", bold=True) + click.style(m[3], dim=True) +
            click.style(m[4], fg="cyan") + body[m.end():])
  elif re.match(r"\s*(?:->)?\s*0x[0-9a-f]+\s+[?\[]", body): body = click.style(body, fg="red")
  return body + (click.style(mark + note, fg="green") if mark else "")


def _words(words: list[int], kind: str, arch: str | None, short: bool, as_json: bool) -> Iterator[str]:
  found = raw.follow(kind, words, class_id=_class_of(kind, arch))
  names = listing.Names()
  if as_json: yield from (json.dumps(row) for row in listing.rows(names, found))
  else: yield from listing.lines(names, found, deep=not short)


_OF_NVIDIA: Final = ("gpfifo", "pushbuffer", "qmd")


def _class_of(kind: str, arch: str | None) -> int:
  if arch is None: return 0
  if arch.startswith("sm_") != (kind in _OF_NVIDIA):
    raise InvalidArgument(f"{arch} has no words of the kind {kind}", where="--arch",
                          hint=f"{', '.join(_OF_NVIDIA)} are NVIDIA's (sm_90), other kinds AMD's (gfx1100)")
  if not arch.startswith("sm_"):
    if kind == "pm4" and not decoded(arch).pm4: raise Unsupported("PM4 packets", f"of {arch}")
    return decoded(arch).version[0]
  if arch not in NV_ARCHES:
    raise InvalidArgument(f"no NVIDIA card is called {arch!r}", where="--arch",
                          hint=f"there are {', '.join(NV_ARCHES)}")
  return NV_ARCHES[arch].compute_class


def captured(capture: Capture, queue: str | None, dispatch: int | None, around: int | None, short: bool, calls: bool,
             as_json: bool, state: bool = False, disassemble: bool = False) -> Iterator[str]:
  """The lines of a capture's submissions that fit the filters."""
  launches = told_of = 0
  states, code = States() if state else None, KernelCode(capture, code_of) if disassemble else None
  for step in capture:
    if step.follow is None:
      told = calls or isinstance(step.event, Note) and step.event.kind == "recorder"  # what the capture lacks
      if told and not as_json and (line := calls_text(step)): yield line
      continue
    found = {} if states is None else states.step(step)
    first, launches = launches, launches + len(step.follow.launches)
    if queue is not None and queue.lower() not in str(step.queue).lower(): continue
    if dispatch is not None and not first <= dispatch < launches: continue
    if around is not None and not _names(step, around): continue
    told_of += 1
    names = listing.Names(capture, step.event.vendor, step.world)
    if as_json:
      row = {"submission": step.submission, "queue": str(step.queue), "event": step.number,
             "at_ns": step.event.at_ns, "clock": CLOCK.value, "packets": list(listing.rows(names, step.follow))}
      if states is not None: row["states"] = [found[id(l.item)] for l in step.follow.launches]
      if code is not None: row["code"] = [code.lines(step.event.vendor, l) for l in step.follow.launches]
      yield json.dumps(row)
      continue
    vendor = step.event.vendor
    def under(item: Item, launch: Launch, found: dict[int, list[str]] = found, vendor: str = vendor) -> list[str]:
      return [*found.get(id(item), ()), *([] if code is None else code.lines(vendor, launch))]
    yield f"submission {step.submission}  {step.queue}  {step.event.at_ns / 1e6:.3f} ms ({CLOCK.value})"
    yield from (f"  {line}".rstrip() for line in listing.lines(names, step.follow, deep=not short, under=under))
  if not told_of and any(given is not None for given in (queue, dispatch, around)):
    raise _unlike(capture, launches)
  if capture.cut: yield f"{capture.reader.path} ends here amid a frame: its program was ended from outside"


def _unlike(capture: Capture, launches: int) -> InvalidArgument:
  """No submission of a capture that was gone through fits the filters."""
  queues = sorted({str(q) for world in capture.worlds.values() for q in world.queues})
  there = f"{launches:,} launches, counted from 0, and " if launches else ""
  return InvalidArgument("no submission is as the options say", where=str(capture.reader.path),
                         hint=f"it has {there}the queues {', '.join(queues)}")


def _names(step: Step, address: int) -> bool:
  """Whether a submission names an address, or another one in its buffer."""
  assert step.world is not None and step.follow is not None
  made = step.world.find(address)
  if made is not None and made.key in getattr(step.event, "touched", ()): return True
  return any(value == address for item in step.follow.items for _, value in listing.addresses(item))
