"""The prompt of `tinyhw debug`: gdb's words over `tinyhw.queues.debug`."""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from tinyhw.cli.timeline import code_of
from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.queues import listing
from tinyhw.queues.breaks import KINDS, ExecutedRow, kernels, rows
from tinyhw.queues.capture import Capture
from tinyhw.queues.debug import QueuePlace, Session, Stop
from tinyhw.terminal.debugger import shells
from tinyhw.terminal.prompt import Prompt, interruptible
from tinyhw.terminal.text import count, need, whole
from tinyhw.toolbox.debug import launch_at

AROUND: Final = 5  # packets before and behind that `list` shows
UNITS: Final = {"b": 1, "h": 2, "w": 4, "g": 8}
_ALIASES: Final = {"b": "break", "c": "continue", "s": "step", "n": "next", "i": "info", "d": "delete", "q": "quit",
                   "exit": "quit", "h": "help", "r": "restart", "run": "restart", "l": "list", "bt": "where",
                   "backtrace": "where", "rs": "reverse_step", "rc": "reverse_continue", "disas": "disassemble",
                   "fin": "finish"}


class QueueShell(Prompt):
  """Commands over a session. With `as_json` each answers with one JSON object."""
  PROMPT = "(queues) "
  ALIASES = _ALIASES
  REPEATED = frozenset({"step", "next", "continue", "finish", "reverse_step"})

  def __init__(self, session: Session, path: Path, mockgpu: str | None, console: Console, interactive: bool, *,
               as_json: bool = False) -> None:
    super().__init__(console, interactive)
    self.session, self.path, self.mockgpu, self.as_json = session, path, mockgpu, as_json
    self._lines: Iterator[str] = iter(())

  # ---- reading commands

  def read(self, lines: Iterable[str]) -> None:
    self._lines = iter(lines)
    super().read(self._lines)

  def onecmd(self, line: str) -> bool:
    return super().onecmd(re.sub(r"^\s*reverse-", "reverse_", line))

  def words(self) -> Iterable[str]:
    """Kinds of breakpoints and packets, kernels, and what `info` takes."""
    places = self.session.places()
    packets = {kind for p in places for row in self.session.part(p) for kind in row.kinds()}
    return [*KINDS, *packets, *(k.name for k in self.session.capture.kernels.values()), *_INFO]

  def say(self, text: Any, style: str = "") -> None:
    if not self.as_json: super().say(text, style)

  def fail(self, text: str) -> bool:
    if self.as_json:
      click.echo(json.dumps({"error": text}))
      self.failed = not self.interactive
      return False
    return super().fail(text)

  def tell(self, row: Mapping[str, Any], lines: Iterable[str]) -> bool:
    """An answer, as an object or as lines."""
    if self.as_json: click.echo(json.dumps({"command": self.lastcmd.strip()} | dict(row)))
    else:
      for line in lines: self.say(line)
    return False

  # ---- where it stands

  def stood(self, stop: Stop) -> bool:
    """Why the run stands, and where."""
    place = self.session.focus()
    lines = [*stop.text.splitlines()]
    row: dict[str, Any] = {"stop": stop.reason, "why": stop.text, "submission": self.session.moment.submission,
                           "executed": self.session.moment.packet}
    if place is not None and (place.standing.why or self.session.place is not None):
      row |= {"queue": place.standing.name} | packet_row(place)
      lines += shown(place)
    return self.tell(row, lines)

  def go(self, run: Callable[[], Stop]) -> bool:
    """Run with Ctrl-C as an interruption."""
    with interruptible(self.session): return self.stood(run())

  # ---- running

  def do_continue(self, args: str) -> bool:
    """continue: go on to a breakpoint, a fault, memory that differs from the capture's, or the end."""
    return self.go(self.session.run)

  def do_step(self, args: str) -> bool:
    """step [N]: execute N packets, into indirect buffers, on whichever queue is next."""
    return self.go(lambda: self.session.step(count(args)))

  def do_next(self, args: str) -> bool:
    """next [N]: execute N packets of this queue, over indirect buffers and what other queues do."""
    return self.go(lambda: self.session.next(count(args)))

  def do_finish(self, args: str) -> bool:
    """finish: go on to where the next submission begins."""
    return self.go(self.session.next_submission)

  def do_back(self, args: str) -> bool:
    """back: to the beginning of this submission; from there, of the one before."""
    return self.go(self.session.back)

  def do_reverse_step(self, args: str) -> bool:
    """reverse-step [N]: N packets back."""
    return self.go(lambda: self.session.reverse_step(count(args)))

  def do_reverse_continue(self, args: str) -> bool:
    """reverse-continue: back to the last breakpoint, or the beginning."""
    return self.go(self.session.reverse_run)

  def do_restart(self, args: str) -> bool:
    """restart: begin anew; breakpoints stay."""
    return self.go(self.session.restart)

  # ---- breakpoints

  def do_break(self, args: str) -> bool:
    """break packet KIND | kernel NAME | address A | dispatch N | submission N | at SUBMISSION:PACKET: stand before such
    packets; KIND and NAME may be patterns (DISPATCH_*), KIND also a method."""
    made = self.session.add(need(args, "where to stand"))
    return self.tell({"breakpoint": made.number}, [str(made)])

  def do_delete(self, args: str) -> bool:
    """delete N: a breakpoint."""
    self.session.delete(whole(need(args, "the breakpoint's number")))
    return self.tell({}, [])

  # ---- looking

  def do_where(self, args: str) -> bool:
    """where: the packet that is next."""
    return self.stood(Stop(self.session.last.reason, ""))

  def do_info(self, args: str) -> bool:
    """info queues | registers [PATTERN] | breakpoints | packet | arguments | memory: what there is."""
    found = [name for name in _INFO if args.split() and name.startswith(args.split()[0])]
    if len(found) != 1: raise InvalidArgument(f"info {args}".strip(), hint=f"info {', '.join(_INFO)}")
    return bool(getattr(self, f"_info_{found[0]}")(args.partition(" ")[2].strip()))

  def _info_queues(self, args: str) -> bool:
    places = self.session.places()
    drawn = self.session.place
    lines, told = [], []
    for p in places:
      s = p.standing
      here = drawn is not None and drawn.standing.name == s.name
      at = "" if s.address is None else f" at {s.address:#x}"
      text = "" if p.row is None else f" {listing.packet_text(p.row.item)}"
      lines.append(f"{'=>' if here else '  '} {s.name}  {s.state}{at}{f': {s.why}' if s.why else text}")
      told.append({"queue": s.name, "state": s.state, "address": s.address, "why": s.why, "next": here} | packet_row(p))
    return self.tell({"queues": told}, lines)

  def _info_registers(self, args: str) -> bool:
    values = {k: v for k, v in self.session.values().items() if args.lower() in k.lower()}
    width = max(map(len, values), default=0)
    return self.tell({"registers": values}, [f"{name:<{width}}  {v if isinstance(v, str) else hex(v)}"
                                             for name, v in values.items()])

  def _info_breakpoints(self, args: str) -> bool:
    breaks = list(self.session.breaks.values())
    return self.tell({"breakpoints": [{"number": b.number, "kind": b.kind, "what": b.what, "hits": b.hits}
                                      for b in breaks]}, [f"{b}, {b.hits} times" for b in breaks])

  def _info_packet(self, args: str) -> bool:
    place = self._place()
    row = place.row
    assert row is not None
    lines = shown(place)
    for item in row.items(): lines += [f"   {line}" for line in listing.below(item)]
    lines += [f"   {effect}" for item in row.items() for effect in item.effects]
    return self.tell(packet_row(place), lines)

  def _info_arguments(self, args: str) -> bool:
    place = self._place()
    found = arguments(self.session, place)
    if not found: raise InvalidArgument("no packet that launches a kernel is here", hint="break kernel *")
    return self.tell({"arguments": found}, [f"+{r['offset']:#04x}  {r['value']:#x}  {r['name']}".rstrip()
                                            for r in found])

  def _info_memory(self, args: str) -> bool:
    found = [{"address": a.address, "size": a.size, "name": str(a), "vendor": vendor}
             for vendor, world in self.session.capture.worlds.items() for a in world.living()]
    return self.tell({"memory": found}, [f"{r['address']:#014x}  {r['size']:>12,}  {r['name']}" for r in found])

  def do_x(self, args: str) -> bool:
    """x/8xw ADDRESS: memory as it is now; x hex, d whole numbers, f float, in units of b, h, w, g (1, 2, 4, 8 bytes).
    """
    m = re.fullmatch(r"(?a)(?:/(\d*)([xdf]?)([bhwg]?)\s+)?(\S+)", args)
    if m is None: raise InvalidArgument(f"x{args}", hint="as x/8xw 0x7f0000001000")
    many, form, size = int(m[1] or 1), m[2] or "x", UNITS[m[3] or "w"]
    if form == "f" and size not in (2, 4, 8): raise InvalidArgument("a float of one byte", where="x")
    address = whole(m[4])
    values = numbers(self.session.memory(address, many * size), size, form)
    per = max(1, 16 // size)
    lines = [f"{address + i * size:#014x}  " + " ".join(texts(values[i:i + per], size, form))
             for i in range(0, len(values), per)]
    return self.tell({"address": address, "values": values}, lines)

  def do_list(self, args: str) -> bool:
    """list: packets around the next one, of the same submission."""
    place = self._place()
    all_rows = self.session.part(place)
    at = all_rows.index(place.row) if place.row in all_rows else 0
    part = all_rows[max(0, at - AROUND):at + AROUND + 1]
    lines = [f"{'=>' if row is place.row else '  '} {row_text(place.names, row)}" for row in part]
    return self.tell({"packets": [{"address": r.item.address, "text": listing.packet_text(r.item),
                                   "next": r is place.row} for r in part]}, lines)

  def do_disassemble(self, args: str) -> bool:
    """disassemble: the code of the kernel that this packet launches."""
    place = self._place()
    assert place.row is not None
    names = kernels(place.row, place.names)
    for program in self.session.capture.programs:
      if program.vendor != place.vendor or not names or names[0] not in [k[0] for k in program.kernels]: continue
      image = self.session.capture.reader.blob(program.image)
      code = [] if image is None else code_of(image, program.kind).get(names[0], [])
      while code and code[-1].endswith("s_code_end"): code.pop()  # what fills the code up for the fetcher
      if code: return self.tell({"kernel": names[0], "code": code}, [f"{names[0]}:", *(f"  {c}" for c in code)])
    raise InvalidArgument("no kernel of which the code is known is launched here", where="disassemble",
                          hint="break kernel *")

  def do_wave(self, args: str) -> bool:
    """wave: go down into the kernel debugger, at the launch that is next; quit comes back."""
    launch = launch_at(self.session, self.path, self.mockgpu)
    inner = shells(launch.debug, self.console, self.interactive)
    try:
      if self.as_json: raise InvalidArgument("the kernel debugger answers in lines", where="wave",
                                             hint="leave --json out")
      inner.told(inner.session.last)
      if self.interactive: inner.type()
      else: inner.read(self._lines)
      self.failed = inner.failed
    finally: inner.session.close()
    if not self.failed: self.stood(Stop(self.session.last.reason, ""))
    return False

  def _place(self) -> QueuePlace:
    place = self.session.focus()
    if place is None or place.row is None:
      raise InvalidArgument("no packet is here", hint="restart begins anew, back goes back")
    return place


_INFO: Final = ("queues", "registers", "breakpoints", "packet", "arguments", "memory")


def row_text(names: listing.Names, row: ExecutedRow) -> str:
  """A packet with what is known of it, as `decode` has it."""
  told = [t for launch in (launch for _, launch in row.launches) for t in [names.launched(launch)]]
  told += listing.known(names, row.item, None)
  pad = "  " * row.item.depth
  return f"{row.item.address:#014x}  {pad}{listing.packet_text(row.item)}" + (f"   ; {'; '.join(told)}" if told else "")


def last_dispatch(path: Path) -> tuple[int, list[str]] | None:
  """The last launch of a capture: its number, and the packets around it. None where nothing is launched."""
  capture, found, first = Capture(path), None, 0
  try:
    for step in capture:
      if step.follow is None: continue
      if step.follow.launches:
        made = rows(step.submission, step.follow.items, step.follow.launches, first)
        names = listing.Names(capture, step.event.vendor, step.world)
        at = max(i for i, row in enumerate(made) if row.launches)
        lines = [f"{'=>' if row is made[at] else '  '} {row_text(names, row)}"
                 for row in made[max(0, at - AROUND):at + AROUND + 1]]
        found = made[at].launches[-1][0], lines
      first += len(step.follow.launches)
  finally: capture.close()
  return found


def shown(place: QueuePlace) -> list[str]:
  """Where a queue stands, in lines."""
  s = place.standing
  if place.row is None:
    if s.address is None: return [f"{s.name} {s.state}"]
    return [f"{s.name} at {s.address:#x}, which the capture does not have as a packet"]
  where = f"{s.name}, submission {place.row.submission}, packet {place.row.index}"
  what = f", waits: {s.why}" if s.why and not s.failed else ", goes on" if s.busy else ""
  return [where + what, f"=> {row_text(place.names, place.row)}"]


def packet_row(place: QueuePlace) -> dict[str, Any]:
  """The same for programs."""
  row = place.row
  if row is None: return {"address": place.standing.address}
  return {"address": row.item.address, "text": listing.packet_text(row.item), "words": list(row.item.words),
          "submission": row.submission, "index": row.index, "kinds": list(row.kinds())[:1],
          "kernels": kernels(row, place.names), "dispatches": [n for n, _ in row.launches]}


def arguments(session: Session, place: QueuePlace) -> list[dict[str, Any]]:
  """A launch's arguments as 8 byte words, each with what lies there."""
  out = []
  for _, launch in [] if place.row is None else place.row.launches:
    kernel = session.capture.kernels.get((place.vendor, launch.entry))
    size = (launch.argument_bytes or (kernel.argument_bytes if kernel else 0)) & ~7
    if not launch.arguments or not size: continue
    try: raw = session.memory(launch.arguments, size)
    except Error: continue  # they are not there yet, or not to be seen
    for at in range(0, size, 8):
      value = int.from_bytes(raw[at:at + 8], "little")
      out.append({"offset": at, "value": value, "name": place.names.at(value)})
  return out


def numbers(raw: bytes, size: int, form: str) -> list[Any]:
  """Memory as numbers."""
  import numpy as np
  kind = {"x": "u", "d": "i", "f": "f"}[form]
  found: list[Any] = np.frombuffer(raw, f"<{kind}{size}").tolist()
  return found


def texts(values: list[Any], size: int, form: str) -> list[str]:
  """Numbers as text, hex ones in full width."""
  return [f"{v:0{2 * size}x}" if form == "x" else f"{v:.7g}" if form == "f" else str(v) for v in values]
