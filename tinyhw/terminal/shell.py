"""The terminal debugger of `tinyhw launch --debug`: gdb's words over `tinyhw.emulator.debug`."""
from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tinyhw.core.environment import count as counted
from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.debug.breaks import Break, PlaceBreak
from tinyhw.emulator.debug.code import Line
from tinyhw.emulator.debug.debugger import Debugger
from tinyhw.emulator.debug.expression import Expression
from tinyhw.emulator.debug.snapshot import numbers
from tinyhw.emulator.debug.stop import Stop
from tinyhw.emulator.debug.wave import WaveInfo
from tinyhw.terminal.prompt import Prompt, interruptible
from tinyhw.terminal.source import SourceCommands
from tinyhw.terminal.text import (
  FORMATS,
  convert,
  count,
  format_of,
  kinds,
  need,
  number_text,
  parse_limits,
  span,
  whole,
)

_ALIASES: Final = {"b": "break", "c": "continue", "s": "step", "si": "stepi", "n": "next", "p": "print", "i": "info",
                  "d": "delete", "bt": "backtrace", "q": "quit", "u": "until", "fin": "finish", "r": "restart",
                  "exit": "quit", "h": "help", "disassemble": "disas", "cont": "continue", "ni": "nexti", "l": "list"}

D = TypeVar("D", bound=Debugger)


class Shell(SourceCommands, Prompt, Generic[D]):
  """Commands read from a terminal, a file or a pipe."""
  PROMPT = "(tinyhw) "
  ALIASES = _ALIASES
  REPEATED = frozenset({"step", "stepi", "next", "nexti", "continue", "list"})

  def __init__(self, start: Callable[[], D], console: Console, interactive: bool) -> None:
    super().__init__(console, interactive)
    self.start = start
    self.session = start()

  def words(self) -> Iterable[str]:
    """Symbols, branch targets, buffers and what `info` takes."""
    code = self.session.code
    return [*code.symbols, *code.data, *code.part(code.here).labels, "waves", "regs", "vregs", "breaks", "places",
            "locals", "args", *(f"{os.path.basename(f)}:" for f in code.source.files())]

  # ---- showing

  def line(self, n: Line, pc: int | None, stops: set[int], width: int) -> Text:
    """One instruction of a listing, with a marker at the PC and at breakpoints."""
    here = n.address == pc
    text = Text("=> " if here else "   ", style="bold green" if here else "")
    text.append("* " if n.address in stops else "  ", style="red")
    text.append(f"{n.address:#x} ", style="dim")
    text.append(f"{'<' + self.session.code.where(n.address) + '>':<{width}} ", style="cyan")
    name, _, rest = n.text.partition(" ")
    text.append(name, style="bold" if here else "blue")
    return text.append(f" {rest}") if rest else text

  def listing(self, lines: Iterable[Line]) -> None:
    """Instructions with their labels."""
    live = not self.session.ended and self.session.engine.find(self.session.focus) is not None
    pc = self.session.wave.pc if live else None
    stops = {a for b in self.session.breaks.values() if isinstance(b, PlaceBreak) and b.enabled for a in b.addresses}
    shown = list(lines)
    width = max(18, *(len(self.session.code.where(n.address)) + 2 for n in shown), 0)
    for n in shown:
      if n.label: self.say(f"{n.label}:", style="yellow")
      self.say(self.line(n, pc, stops, width))

  def told(self, stop: Stop) -> bool:
    """Why the run stands, and where."""
    styles = {"fault": "bold red", "end": "green", "breakpoint": "magenta", "watch": "magenta", "memory": "magenta",
              "lds": "magenta", "check": "bold yellow"}
    unit = self.session.unit
    plain = stop.pc is not None and stop.text == f"{unit} {stop.wave} at {self.session.code.where(stop.pc)}"
    if not plain: self.say(stop.text, style=styles.get(stop.reason, ""))
    if stop.pc is None: return False
    if stop.waves:
      others = f", looking at {unit} {stop.wave}" if len(stop.waves) > 1 else ""
      self.say(f"{unit}{'s' if len(stop.waves) > 1 else ''} {numbers(stop.waves)} at "
               f"{self.session.code.where(stop.pc)}{others}", style="dim")
    self.source_line(stop.pc)
    found = self.session.code.at(stop.pc)
    if found is not None: self.listing([found])
    return False

  def go(self, run: Callable[[], Stop]) -> bool:
    """Run with Ctrl-C as an interruption."""
    with interruptible(self.session): return self.told(run())

  # ---- running

  def do_continue(self, args: str) -> bool:
    """continue: go on until a breakpoint, a watch, a fault or the end."""
    return self.go(self.session.run)

  def do_step(self, args: str) -> bool:
    """step [N]: the waves that stand together go on to another line, N times (code without lines: N instructions)."""
    lines = self.lined()
    return self.go(lambda: self.session.step_line(count(args)) if lines else self.session.step(count(args)))

  def do_stepi(self, args: str) -> bool:
    """stepi [N]: the wave in focus executes N instructions alone; all others stand."""
    return self.go(lambda: self.session.stepi(count(args)))

  def do_next(self, args: str) -> bool:
    """next [N]: as step, over calls and barriers."""
    lines = self.lined()
    return self.go(lambda: self.session.next_line(count(args)) if lines else self.session.next(count(args)))

  def do_nexti(self, args: str) -> bool:
    """nexti [N]: the waves that stand together execute N instructions, over calls and barriers; all others stand."""
    return self.go(lambda: self.session.next(count(args)))

  def do_until(self, args: str) -> bool:
    """until PLACE: go on until the wave in focus comes there."""
    return self.go(lambda: self.session.until(need(args, "PLACE")))

  def do_finish(self, args: str) -> bool:
    """finish: go on until the current function returns, or the wave ends."""
    return self.go(self.session.finish)

  def do_restart(self, args: str) -> bool:
    """restart: launch the kernel anew; breakpoints on places and mnemonics stay."""
    old, self.session = self.session, self.start()
    for b in old.breaks.values():
      kept = {"wave": b.wave, "workgroup": b.workgroup, "lane": b.lane, "ignore": b.ignore, "temporary": b.temporary}
      condition = None if b.condition is None else b.condition.text
      if isinstance(b, PlaceBreak): self.session.break_at(b.place, condition, **kept)
      elif hasattr(b, "pattern"): self.session.break_on(b.pattern, condition, **kept)
    old.close()
    return self.told(self.session.last)

  # ---- breakpoints

  def do_break(self, args: str) -> bool:
    """break PLACE | break on MNEMONIC [wave N] [workgroup N] [lane N] [ignore N] [if EXPRESSION]: stand there."""
    return self.add(args, temporary=False)

  def do_tbreak(self, args: str) -> bool:
    """tbreak ...: as break, once."""
    return self.add(args, temporary=True)

  def add(self, args: str, temporary: bool) -> bool:
    place, limits, condition = parse_limits(args)
    if not place and not self.session.ended: place = f"{self.session.wave.pc:#x}"
    if m := re.fullmatch(r"on\s+(\S+)", place):
      return self.made(self.session.break_on(m[1], condition, temporary=temporary, **limits))
    return self.made(self.session.break_at(place, condition, temporary=temporary, **limits))

  def made(self, b: Break) -> bool:
    self.say(f"{'watch' if hasattr(b, 'expression') else 'breakpoint'} {b.number}: {b}")
    return False

  def do_watch(self, args: str) -> bool:
    """watch EXPRESSION [wave N] [if EXPRESSION]: stand when an instruction changed its value for a wave."""
    expression, limits, condition = parse_limits(args)
    wave = limits.pop("wave", None)
    return self.made(self.session.watch(need(expression, "EXPRESSION"), wave, condition, **limits))

  def memory_break(self, args: str, access: str) -> bool:
    place, limits, condition = parse_limits(args)
    segment = "lds" if place.startswith("lds ") else "global"
    start, _, size = place.removeprefix("lds ").partition(":")
    at = self.number(need(start, "ADDRESS"))
    return self.made(self.session.break_memory(at, self.number(size or "4"), access, segment, condition, **limits))

  def do_awatch(self, args: str) -> bool:
    """awatch [lds] ADDRESS[:SIZE] [limits]: stand after a read or write of memory."""
    return self.memory_break(args, "rw")

  def do_rwatch(self, args: str) -> bool:
    """rwatch [lds] ADDRESS[:SIZE] [limits]: stand after a read of memory."""
    return self.memory_break(args, "r")

  def do_wwatch(self, args: str) -> bool:
    """wwatch [lds] ADDRESS[:SIZE] [limits]: stand after a write of memory."""
    return self.memory_break(args, "w")

  def do_delete(self, args: str) -> bool:
    """delete [N ...]: forget breakpoints and watches, all without a number."""
    for n in [whole(w) for w in args.split()] or list(self.session.breaks): self.session.delete(n)
    return False

  def do_enable(self, args: str) -> bool:
    """enable N ...: switch breakpoints on."""
    for w in args.split(): self.session.enable(whole(w))
    return False

  def do_disable(self, args: str) -> bool:
    """disable N ...: switch breakpoints off."""
    for w in args.split(): self.session.enable(whole(w), False)
    return False

  # ---- looking

  def do_info(self, args: str) -> bool:
    """info waves [each] | locals | args | regs [NAMES] | vregs [NAMES] | breaks | places | symbols | source |
    snapshots | dispatch: show."""
    what, _, rest = args.partition(" ")
    topics = {"waves": self.info_waves, "regs": self.info_regs, "registers": self.info_regs, "vregs": self.info_vregs,
              "breaks": self.info_breaks, "breakpoints": self.info_breaks, "places": self.info_places,
              "symbols": self.info_symbols, "snapshots": self.info_snapshots, "dispatch": self.info_dispatch,
              "locals": self.info_locals, "args": self.info_args, "source": self.info_source, **self.topics()}
    found = [f for n, f in topics.items() if what and n.startswith(what)]
    if not found or len(set(found)) > 1:
      raise InvalidArgument(f"info {what or '?'} is unknown", hint=f"there are {', '.join(topics)}")
    found[0](rest.strip())
    return False

  def topics(self) -> dict[str, Callable[[str], None]]:
    """More that `info` shows."""
    return {}

  def table(self, *columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for c in columns: table.add_column(c.lstrip(">"), justify="right" if c.startswith(">") else "left", no_wrap=True)
    return table

  def info_waves(self, args: str) -> None:
    if args == "each": return self.each_wave()
    table = self.table("", f"{self.session.unit}s", ">count", "state", "at", ">active lanes", ">executed")
    same: dict[tuple[str, int | None], list[WaveInfo]] = {}
    for w in self.session.waves(): same.setdefault((w.state, w.pc), []).append(w)
    for (state, pc), waves in same.items():
      here = any(w.wave == self.session.focus for w in waves)
      active, ran = [w.active for w in waves], [w.instructions for w in waves]
      shown = numbers([w.wave for w in waves])
      table.add_row("=>" if here else "", shown if len(shown) < 40 else shown[:36] + " ...", str(len(waves)), state,
                    "-" if pc is None else self.session.code.where(pc), span(active), span(ran),
                    style="bold" if here else "")
    self.console.print(table)
    engine = self.session.engine
    ended, left = engine.started - sum(map(len, same.values())), engine.wave_count - engine.started
    if ended or left: self.say(f"{ended:,} have ended, {left:,} have not started", style="dim")

  def each_wave(self) -> None:
    table = self.table("", ">wave", "workgroup", "state", "at", ">active", ">executed")
    for w in self.session.waves():
      here = w.wave == self.session.focus
      table.add_row("=>" if here else "", str(w.wave), ",".join(map(str, w.workgroup)), w.state,
                    "-" if w.pc is None else self.session.code.where(w.pc), f"{w.active}/{w.lanes}",
                    f"{w.instructions:,}", style="bold" if here else "")
    self.console.print(table)

  @abstractmethod
  def info_regs(self, args: str) -> None:
    """What `info regs` shows."""

  @abstractmethod
  def info_vregs(self, args: str) -> None:
    """What `info vregs` shows: registers of all lanes."""

  @abstractmethod
  def info_dispatch(self, args: str) -> None:
    """What `info dispatch` shows: the launch in a line."""

  def info_breaks(self, args: str) -> None:
    if not self.session.breaks: self.say("no breakpoints")
    for b in self.session.breaks.values():
      state = "" if b.enabled else " (off)"
      self.say(f"{b.number}: {b}{' once' if b.temporary else ''}{state}, {b.hits} hits")

  def info_places(self, args: str) -> None:
    for name, start, size in self.session.places:
      self.say(f"{start:#x}..{start + size - 1:#x}  {size:>10,} bytes  {name}")

  def info_symbols(self, args: str) -> None:
    symbols = self.session.code.symbols
    for name in sorted(symbols, key=lambda n: symbols[n]): self.say(f"{symbols[name]:#x}  {name}")

  def info_snapshots(self, args: str) -> None:
    if not self.session.snapshots: self.say("no snapshots")
    for n, s in self.session.snapshots.items(): self.say(f"{n}: {s.name}, {len(s.pages)} pages")

  def do_wave(self, args: str) -> bool:
    """wave [N]: look at another wave, or say which one is looked at."""
    if args: self.session.look_at(self.number(args))
    wave = self.session.wave
    self.say(f"{self.session.unit} {wave.number} of workgroup {','.join(map(str, wave.workgroup))}, {wave.state}, at "
             f"{self.session.code.where(wave.pc)}")
    self.source_line(wave.pc)
    found = self.session.code.at(wave.pc)
    if found is not None: self.listing([found])
    return False

  def do_print(self, args: str) -> bool:
    """print[/x /f /d /h] EXPRESSION: a value: v3.f32, v3[5], s[4:5], exec, u32(out+4), lds.f32(0), a variable."""
    form, rest = format_of(args, "")
    text = need(rest, "EXPRESSION")
    if self.print_variable(text, form): return False
    self.print_value(text, self.session.evaluate(text), form)
    return False

  def print_value(self, text: str, value: Any, form: str) -> None:
    """A number in one line, the lanes of an array in rows of eight."""
    if not isinstance(value, np.ndarray):
      bits = f" ({value:#x})" if isinstance(value, int) and not form and abs(value) > 9 else ""
      shown = number_text(convert(value, form), form) if form else str(value)
      self.say(f"{text} = {shown}{bits}")
      return
    on = self.session.wave.active() if not self.session.ended else np.ones(len(value), bool)
    if not form: form = "f" if value.dtype.kind == "f" else "d" if (abs(value) < 1024).all() else "x"
    if form == "x" and (value < 0).any(): form = "d"
    cells = [number_text(convert(v.item(), form) if form != "d" else v.item(), form) for v in value]
    width = max(map(len, cells))
    a_row = 8 if width <= 10 else 4
    for k in range(0, len(cells), a_row):
      row = Text(f"{text + ' ' if k == 0 else '':<{len(text) + 1}}[{k:>2}]")
      for j, c in enumerate(cells[k:k + a_row]): row.append(f" {c:>{width}}", style="" if on[k + j] else "dim")
      self.say(row)

  def do_x(self, args: str) -> bool:
    """x[/COUNT][x f d h b g or TYPE] ADDRESS: memory: x/16f out+0x40."""
    m = re.fullmatch(r"(?a)(?:/(\d+)?(\w+)?)?\s*(.*)", args)
    assert m is not None
    self.dump(self.session.place, self.number(need(m[3], "ADDRESS")), int(m[1] or 8), m[2] or "x", self.session.read)
    return False

  def dump(self, name: Callable[[int], str], at: int, many: int, form: str, read: Callable[..., Any]) -> None:
    kind = FORMATS.get(form, form)
    values = read(at, kind, many)
    cells = [number_text(v.item(), form if form in FORMATS else "f" if kind[0] == "f" else "u") for v in values]
    size, width = values.itemsize, max(map(len, cells))
    a_row = {1: 16, 2: 8, 4: 8 if width <= 8 else 4}.get(size, 4)
    for k in range(0, len(cells), a_row):
      self.say(f"{name(at + k * size):<16} {' '.join(f'{c:>{width}}' for c in cells[k:k + a_row])}")

  def do_lds(self, args: str) -> bool:
    """lds[/COUNT][x f d h b g or TYPE] [OFFSET]: LDS of the wave's workgroup."""
    m = re.fullmatch(r"(?a)(?:/(\d+)?(\w+)?)?\s*(.*)", args)
    assert m is not None
    lds = self.session.wave.lds()
    name = "lds" if self.session.unit == "wave" else "shared"
    if not len(lds): raise InvalidArgument(f"the kernel has no {'LDS' if name == 'lds' else 'shared memory'}")

    def read(at: int, kind: str, many: int) -> Any:
      dtype = np.dtype(kinds(kind))
      there = (len(lds) - at) // dtype.itemsize
      if at < 0 or there < 1: raise InvalidArgument(f"{name} has {len(lds)} bytes, not {at:#x}")
      return np.frombuffer(lds.tobytes(), dtype, min(many, there), at)
    self.dump(lambda a: f"{name}+{a:#x}", self.number(m[3]) if m[3] else 0, int(m[1] or 32), m[2] or "x", read)
    return False

  def do_disas(self, args: str) -> bool:
    """disas [PLACE | all]: instructions around the PC, around a place, or of the whole function."""
    if args == "all":
      name = self.session.code.where(self.session.wave.pc).partition("+")[0]
      self.listing(self.session.code.function(name))
    else: self.listing(self.session.disassemble(5, 10, args or None))
    return False

  def do_backtrace(self, args: str) -> bool:
    """backtrace: where the wave is, and the calls that led there."""
    for k, frame in enumerate(self.session.backtrace()): self.say(f"#{k}  {frame}")
    return False

  def do_buffers(self, args: str) -> bool:
    """buffers: the arrays of the launch as they are now."""
    read: Callable[[], list[Any]] | None = getattr(self.session, "buffers", None)
    if read is None: raise InvalidArgument("this launch has no arrays", hint="info places names its memory")
    for i, b in enumerate(read()):
      self.say(f"buffer {i}: {b.dtype}[{', '.join(map(str, b.shape))}] "
               f"{np.array2string(b, threshold=16, max_line_width=100)}")
    return False

  # ---- changing

  def do_set(self, args: str) -> bool:
    """set REGISTER[LANE][.TYPE] = EXPRESSION | set TYPE(ADDRESS) = EXPRESSION: write a register or memory."""
    left, equals, right = args.partition("=")
    if not equals: raise InvalidArgument("set REGISTER = EXPRESSION")
    value = self.session.evaluate(right)
    if isinstance(value, np.ndarray): raise InvalidArgument(f"{right.strip()} has a value for each lane")
    left = left.strip()
    if m := re.fullmatch(r"(?a)(\w+)\((.*)\)", left):
      self.session.write(self.number(m[2]), value, m[1])
      return False
    m = re.fullmatch(r"(?a)(\w+?)(?:\[(\d+)\])?(?:\.(\w+))?", left)
    if m is None: raise InvalidArgument(f"{left!r} is no register")
    name, lane = m[1], None if m[2] is None else int(m[2])
    if m[3] or isinstance(value, float):
      dtype = np.dtype(kinds(m[3] or "f32"))
      if dtype.itemsize > 4: raise InvalidArgument(f"{m[3]} does not fit one register")
      value = int(np.array([value]).astype(dtype).view(f"u{dtype.itemsize}")[0])
    self.session.wave.write(name, int(value), lane)
    return False

  def do_snapshot(self, args: str) -> bool:
    """snapshot [NAME]: keep the state of waves, LDS and memory."""
    self.say(f"snapshot {self.session.snapshot(args)}")
    return False

  def do_diff(self, args: str) -> bool:
    """diff N [M] [wave W]: what differs between a snapshot and now, or another one; of a wave alone."""
    head, limits, _ = parse_limits(need(args, "N"))
    words = [whole(w) for w in head.split()]
    if not 1 <= len(words) <= 2: raise InvalidArgument("diff N [M] [wave W]")
    lines = self.session.diff(words[0], words[1] if len(words) > 1 else None, limits.get("wave"))
    for line in lines: self.say(line)
    if not lines: self.say("nothing differs")
    return False

  def do_restore(self, args: str) -> bool:
    """restore N: go back to a snapshot."""
    return self.told(self.session.restore(whole(need(args, "N"))))

  # ---- others

  def number(self, text: str) -> int:
    """An expression that is one whole number."""
    wave = self.session.wave
    value: Any = counted(text)
    if value is None: value = Expression(text).value(wave, self.session.code)
    if not isinstance(value, int) or isinstance(value, bool): raise InvalidArgument(f"{text} is no whole number")
    return value
