"""PTX as a person reads it: a module's functions in the order of the text, places by line, labels."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from tinyhw.core.environment import digits
from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.core.source import Source, Spot, Variable
from tinyhw.emulator.debug.code import Code, Line, Part
from tinyhw.emulator.ptx.module import flow
from tinyhw.emulator.ptx.module.scope import Scope
from tinyhw.emulator.ptx.program import Program, Shown
from tinyhw.isa.ptx import forms, printer

TEXT: Final = "PTX"  # how places call the module's text


class PtxSource(Source):
  """The lines that a module's .loc directives tell."""

  def __init__(self, program: Program) -> None:
    self.program = program
    self._files: dict[str, str] = {}
    for item in program.linked.module.items:
      words: tuple[str, ...] = getattr(item, "words", ())
      if getattr(item, "name", "") == "file" and len(words) > 1: self._files[words[0]] = words[1].strip('"')

  def chain(self, pc: int) -> tuple[Spot, ...]:
    function, line = self.program.place(pc)
    if line is None or line.loc is None: return ()
    return (Spot(self._files.get(str(line.loc[0]), ""), line.loc[1], function=function),)

  def starts(self, pc: int) -> bool:
    code = self.program.at(pc)
    at = pc - code.base >> 1
    if at >= len(code.cut.order): return False
    index = code.cut.order[at]
    lines = code.flat.lines
    return index == 0 or lines[index].loc != lines[index - 1].loc or index in code.cut.ends

  def _all(self) -> Iterable[tuple[int, tuple[int, int]]]:
    for name in self.program.linked.reachable(self.program.entry_name):
      code = self.program.function(name)
      before = None
      for k, line in enumerate(code.flat.lines):
        if line.loc is not None and line.loc != before: yield code.pc(k), line.loc
        before = line.loc

  def files(self) -> tuple[str, ...]:
    return tuple(dict.fromkeys(self._files.get(str(loc[0]), "") for _, loc in self._all()))

  def addresses(self, file: str, line: int) -> tuple[int, tuple[int, ...]]:
    there = [(pc, loc[1]) for pc, loc in self._all() if self._files.get(str(loc[0]), "") == file]
    first = min((n for _, n in there if n >= line), default=0)
    if not first: return 0, ()
    starts: dict[str, int] = {}
    for pc, n in there:
      if n == first: starts.setdefault(self.program.at(pc).name, pc)
    return first, tuple(starts.values())

  def variables(self, pc: int) -> tuple[Variable, ...]: return ()


class PtxCode(Code):
  """The functions that a kernel may execute. Addresses are the emulator's PCs, places are lines of the text."""

  calls, returns = frozenset({"call", "call.uni"}), frozenset({"ret", "ret.uni"})
  barriers = frozenset({"bar.sync", "barrier.sync", "barrier.sync.aligned", "bar.cta.sync", "barrier.cta.sync",
                        "barrier.cta.sync.aligned", "bar.red", "barrier.cluster.wait", "bar.warp.sync"})

  def __init__(self, program: Program) -> None:
    self.program = program
    ranges, symbols = [], {}
    for name in program.linked.flats:
      code = program.function(name)
      ranges.append((code.base, code.end))
      symbols[name] = code.base
    super().__init__(ranges, symbols, program.entry, PtxSource(program))
    at = [line.instruction.at[0] for flat in program.linked.flats.values() for line in flat.lines]
    self._crowded = {line for line, n in Counter(at).items() if n > 1}

  @property
  def mnemonics(self) -> Iterable[str]:
    return sorted({line.instruction.name for flat in self.program.linked.flats.values() for line in flat.lines}
                  | {row for row in forms.rows()})

  def where(self, address: int) -> str:
    """"PTX:21"; with the column where a line has several instructions."""
    try: line = self.program.at(address).line(address)
    except Error: return f"{address:#x}"
    if line is None: return f"the end of {self.function_of(address)}"
    row, column = line.instruction.at
    return f"{TEXT}:{row}" + (f":{column}" if row in self._crowded else "")

  def function_of(self, address: int) -> str: return self.program.place(address)[0]

  def resolve(self, text: str) -> int:
    """Address of a function, or of a label: of the function that is looked at, or else of another one."""
    name = text.strip()
    for start in [self.part(self.here), *map(self.part, self.symbols.values())]:
      if name in start.labels: return start.labels[name]
    return super().resolve(text)

  def at(self, address: int) -> Line | None: return super().at(address & ~1)

  def lines_at(self, text: str) -> tuple[str, tuple[int, ...]] | None:
    """A line of the text ("PTX:21", or "21" where nothing is known of other files), or of a source."""
    head, _, number = text.strip().rpartition(":")
    column = 0
    if head.startswith(f"{TEXT}:"): head, column, number = TEXT, int(number), head.rpartition(":")[2]
    if not digits(number) or head != TEXT and (head or self.source.files()): return super().lines_at(text)
    found = sorted((line.instruction.at, code.pc(k)) for code in map(self.program.function, self.symbols)
                   for k, line in enumerate(code.flat.lines)
                   if line.instruction.at[0] >= int(number) and line.instruction.at >= (int(number), column))
    if not found: raise InvalidArgument(f"no instruction is at line {number} of the PTX, or behind it")
    return self.where(found[0][1]), (found[0][1],)

  def _decode(self, start: int, stop: int) -> Part:
    code = self.program.at(start)
    names: dict[int, str] = {}
    labels: dict[str, int] = {}
    scopes: list[Scope] = [code.flat.scope]
    for line in code.flat.lines:
      if all(line.scope is not s for s in scopes): scopes.append(line.scope)
    for scope in scopes:
      for name, entity in scope.names.items():
        if isinstance(entity, int):
          labels[name] = code.pc(entity)
          names.setdefault(entity, name)
    lines = []
    for k, line in enumerate(code.flat.lines):
      i = line.instruction
      target = code.pc(flow.targets(line)[0]) if i.opcode == "bra" else None
      label = names.get(k) or (code.name if k == 0 else "")
      lines.append(Line(code.pc(k), label, printer.instruction(i).rstrip(";"), Shown(line, code.pc(k)), target, 2,
                        i.at[0] * 4096 + min(i.at[1], 4095)))
    return Part(lines, {n.address: k for k, n in enumerate(lines)}, labels)
