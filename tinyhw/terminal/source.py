"""What the terminal debugger shows of the source: lines, variables."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from tinyhw.core.environment import count
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.source import Variable, contents
from tinyhw.emulator.debug.amdgcn.variables import where
from tinyhw.emulator.debug.breaks import PlaceBreak

if TYPE_CHECKING:
  from rich.table import Table

  from tinyhw.emulator.debug.debugger import Debugger

LINES = 10  # of a listing


class SourceCommands:
  """The part of the shell that knows of source files; `Shell` has the rest."""
  session: Any
  listed: tuple[str, int] = "", 0  # the file and the last line that `list` has shown

  if TYPE_CHECKING:
    def say(self, text: str | Text, style: str = "") -> None: ...
    def table(self, *columns: str) -> Table: ...
    def print_value(self, text: str, value: Any, form: str) -> None: ...

  def lined(self) -> bool:
    """Whether it is known which line the wave in focus is at."""
    d: Debugger = self.session
    return not d.ended and d.engine.find(d.focus) is not None and bool(d.code.source.chain(d.wave.pc))

  def source_line(self, pc: int) -> None:
    """The line of the source that an instruction belongs to."""
    spot = self.session.code.source.spot(pc)
    if spot is None: return
    self.listed = "", 0
    self.say(Text(f"{spot}: ", style="cyan").append(spot.text or "", style="bold"))

  def do_list(self, args: str) -> bool:
    """list [FILE:LINE | LINE | SYMBOL]: the source around a line; without one, around the wave, then what follows."""
    code = self.session.code
    if not code.source.files(): raise InvalidArgument("no debug information of lines", hint="compile with -g")
    file, last = self.listed
    if args.strip() or not file:
      line = self._line_of(args.strip())
      file, first = line[0], max(1, line[1] - LINES // 2)
    else: first = last + 1
    lines = contents(file, self._digest(file))
    if lines is None: raise InvalidArgument(f"{file} is not to be found, or was changed since it was compiled")
    if lines[-1] == "": lines = lines[:-1]
    if first > len(lines): raise InvalidArgument(f"{os.path.basename(file)} has {len(lines)} lines")
    here = code.source.spot(self.session.wave.pc) if self.lined() else None
    stops = {(s.file, s.line) for b in self.session.breaks.values() if isinstance(b, PlaceBreak) and b.enabled
             for a in b.addresses if (s := code.source.spot(a)) is not None}
    for n in range(first, min(first + LINES, len(lines) + 1)):
      at = here is not None and (here.file, here.line) == (file, n)
      text = Text("=> " if at else "   ", style="bold green" if at else "")
      text.append("* " if (file, n) in stops else "  ", style="red").append(f"{n:>4}  ", style="dim")
      self.say(text.append(lines[n - 1].rstrip(), style="bold" if at else ""))
    self.listed = file, min(first + LINES - 1, len(lines))
    return False

  def _line_of(self, text: str) -> tuple[str, int]:
    """(file, line) of what a person writes; of nothing, where the wave is."""
    code = self.session.code
    if (line := count(text)) is not None: return code.file(), line
    found = code.lines_at(text) if text else None
    if found is not None:
      spot = code.source.spot(found[1][0])
      return spot.file, int(text.rpartition(":")[2])
    address = code.resolve(text) if text else self.session.wave.pc
    spot = code.source.spot(address) or next((s for a in range(address, address + 64, 4)
                                              if (s := code.source.spot(a)) is not None), None)
    if spot is None: raise InvalidArgument(f"{code.where(address)} has no line that is known")
    return spot.file, spot.line

  def _digest(self, file: str) -> bytes | None:
    """The MD5 of a file as it was compiled, where the compiler noted it."""
    source = self.session.code.source
    _, starts = source.addresses(file, 1)
    return next((s.digest for a in starts for s in source.chain(a) if s.file == file), None)

  def info_source(self, args: str) -> None:
    for file in self.session.code.source.files():
      found = contents(file, self._digest(file))
      self.say(f"{file}{'' if found is not None else ' (not to be found, or changed since)'}")
    if not self.session.code.source.files(): self.say("no debug information of lines: compile with -g")

  def info_locals(self, args: str) -> None: self._variables(parameters=False)

  def info_args(self, args: str) -> None: self._variables(parameters=True)

  def _variables(self, parameters: bool) -> None:
    found = [v for v in self.session.variables() if v.parameter == parameters]
    if not found: self.say(f"no {'parameters' if parameters else 'variables'} are known here")
    table = self.table("", "", "", "")
    table.show_header = False
    for v in found: table.add_row(v.name, v.type, where(v), self._short(v))
    if found: self.session_console().print(table)

  def session_console(self) -> Any:
    """Where tables go."""
    return self.console  # type: ignore[attr-defined]

  def _short(self, v: Variable) -> str:
    """A variable's value in a few words: one number where all active lanes have the same."""
    if v.trouble: return ""
    try: x = self.session.wave.value(v)
    except InvalidArgument as error: return error.message
    if v.kind == "s" or v.count > 1: return self._elements(x)
    if not isinstance(x, np.ndarray): return _number(x, v)
    on = x[self.session.wave.active()]
    if on.size and (on == on[0]).all(): return _number(on[0].item(), v)
    return " ".join(_number(n.item(), v) for n in on[:4]) + (f" ... ({on.size} lanes)" if on.size > 4 else "")

  def _elements(self, x: Any) -> str:
    """A vector or structure, of the first active lane where it differs."""
    rows = x.reshape(1, -1) if x.ndim == 1 else x[self.session.wave.active()]
    if not len(rows): return ""
    row = rows[0]
    text = bytes(row).hex(" ", 4) if row.dtype == np.uint8 else " ".join(f"{n:.7g}" for n in row[:8].tolist())
    return text[:72] + (", and other lanes" if len(rows) > 1 and not (rows == row).all() else "")

  def print_variable(self, name: str, form: str) -> bool:
    """Print a variable with its type and place; False where a name means something else."""
    d: Debugger = self.session
    if not name.isidentifier() or d.ended or name in d.code.symbols or name in d.code.data: return False
    found = next((v for v in d.variables() if v.name == name), None)
    if found is None: return False
    try: x = d.wave.value(found)
    except InvalidArgument as error:
      self.say(f"{found.type} {name}: {error.message}")
      return True
    self.say(f"{found.type} {name}, in {where(found)}", style="dim")
    if found.kind == "s" or found.count > 1: self.say(f"{name} = {self._elements(x)}")
    else: self.print_value(name, x, form or ("x" if found.kind == "*" and isinstance(x, int) else ""))
    return True


def _number(x: Any, v: Variable) -> str:
  if v.kind == "*": return f"{x:#x}"
  return f"{x:.7g}" if isinstance(x, float) else str(x)
