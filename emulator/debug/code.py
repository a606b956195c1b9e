"""Code as a person reads it: symbols, instructions by address, branch targets, where an address belongs.

What is common to both vendors; `amdgcn.code` and `ptx.code` decode.
"""
from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.core.source import Source, Sources, Variable, passed, place_of


@dataclass(frozen=True)
class Line:
  """One instruction of a listing. `label` is the symbol that starts here, or the local name of a branch target;
  `target` the address that a direct branch goes to. `instruction` is None for bytes that are none."""
  address: int
  label: str
  text: str
  instruction: Any
  target: int | None
  size: int
  order: int = 0  # its place in the text, where code is not listed by addresses


@dataclass(frozen=True)
class Part:
  """A decoded function: its instructions, where each address is among them, its local labels."""
  lines: list[Line]
  index: dict[int, int]
  labels: dict[str, int]


class Code(ABC):
  """The executable ranges of a launch, with their symbols and what debug information says of their source."""

  calls: frozenset[str] = frozenset()  # mnemonics of calls, of returns, of barriers, of what fills up code
  returns: frozenset[str] = frozenset()
  barriers: frozenset[str] = frozenset()
  padding: frozenset[str] = frozenset()

  def __init__(self, ranges: Iterable[tuple[int, int]], symbols: Mapping[str, int], entry: int,
               source: Source | None = None) -> None:
    self.entry = entry
    self.source = source or Sources(())
    self.ranges = sorted(ranges)
    self.symbols = {n: a for n, a in symbols.items() if any(lo <= a < hi for lo, hi in self.ranges)}
    self._starts = sorted(set(self.symbols.values()))
    self.data: dict[str, int] = {}  # names of other memory
    self.arguments: Mapping[str, tuple[int, int]] = {}  # the kernel's: where in memory they were passed, and their size
    self.here = entry  # an address in the function that is looked at
    self._parts: dict[int, Part] = {}
    self._names: dict[int, str] = {}
    for name, address in sorted(self.symbols.items(), key=lambda s: -len(s[0])): self._names[address] = name

  # ---- names

  def where(self, address: int) -> str:
    """"add+0x10": the symbol before an address and the distance from it; the address alone outside of all code."""
    at = bisect_right(self._starts, address) - 1
    if at < 0 or not self.holds(address): return f"{address:#x}"
    start = self._starts[at]
    return self._names[start] + (f"+{address - start:#x}" if address > start else "")

  def function_of(self, address: int) -> str:
    """The symbol before an address; the address where there is none."""
    return self.where(address).partition("+")[0]

  def holds(self, address: int) -> bool:
    """Whether an address is in executable code."""
    return any(lo <= address < hi for lo, hi in self.ranges)

  def resolve(self, text: str) -> int:
    """Address of "add", "add+0x10", "+0x10" (from the kernel's entry), ".L2" (a branch target of the function that is
    looked at) or "0x1000".

    Raises InvalidArgument for an unknown symbol.
    """
    m = re.fullmatch(r"(?a)\*?\s*([A-Za-z_.$](?u:[\w.$@])*)?\s*(?:([+-])\s*)?(0[xX][0-9a-fA-F]+|\d+)?\s*", text)
    if m is None or not (m[1] or m[3]) or bool(m[1] and m[3]) != bool(m[1] and m[2]):
      raise InvalidArgument(f"{text!r} is no location",
                            hint="write SYMBOL, SYMBOL+0x10, +0x10, FILE:LINE or an address")
    offset = int(m[3], 0) if m[3] else 0
    if m[2] == "-": offset = -offset
    if m[1]:
      start = self.symbols.get(m[1])
      if start is None and m[1].startswith(".L"): start = self.part(self.here).labels.get(m[1])
      if start is None:
        known = ", ".join(sorted(self.symbols)[:12])
        raise InvalidArgument(f"no symbol is called {m[1]!r}", hint=f"there are {known or 'none'}")
      return start + offset
    return self.entry + offset if m[2] else offset

  def lines_at(self, text: str) -> tuple[str, tuple[int, ...]] | None:
    """("bugs.c:5", where its code starts) of "bugs.c:5", or of "5" in the file that is looked at; the next line that
    has code stands for one that has none. None for what is no line.

    Raises InvalidArgument for a file or line that no code comes from.
    """
    m = re.fullmatch(r"(?a)\s*(?:(.+):)?(\d+)\s*", text)
    if m is None or not m[1] and not self.source.files(): return None
    files = self.source.files()
    named = place_of(m[1], files) if m[1] else [self.file()]
    if not named:
      there = ", ".join(sorted({os.path.basename(f) for f in files})) or "no debug information (compile with -g)"
      raise InvalidArgument(f"no code comes from {m[1]}", hint=f"there is {there}")
    found = [(file, *self.source.addresses(file, int(m[2]))) for file in named]
    line = min((line for _, line, _ in found if line), default=0)
    if not line: raise InvalidArgument(f"no code comes from line {m[2]} of {os.path.basename(named[0])}, or behind it")
    file = next(file for file, at, _ in found if at == line)
    return f"{os.path.basename(file)}:{line}", tuple(a for _, at, starts in found if at == line for a in starts)

  def variables(self, pc: int) -> tuple[Variable, ...]:
    """The variables that can be named at an instruction. The kernel's own parameters, if nothing else has them, are
    what was passed in memory."""
    found = self.source.variables(pc)
    own = self.function_of(pc) == self.function_of(self.entry)
    if not self.arguments or not own or len(self.source.chain(pc)) > 1: return found
    out = []
    for v in found:
      address, size = self.arguments.get(v.name, (0, 0))
      gone = v.parameter and size == v.nbytes and v.trouble.startswith("optimized out")
      out.append(passed(v, address) if gone else v)
    return tuple(out)

  def file(self) -> str:
    """The source file that is looked at."""
    spot = self.source.spot(self.here) or self.source.spot(self.entry)
    return spot.file if spot is not None else next(iter(self.source.files()), "")

  def instruction_at(self, text: str) -> int:
    """Address of a location where an instruction starts, the first one of a line. Raises InvalidArgument where none
    does."""
    line = self.lines_at(text)
    if line is not None: return line[1][0]
    address = self.resolve(text)
    if not self.holds(address):
      shown = ", ".join(f"{lo:#x}..{hi - 1:#x}" for lo, hi in self.ranges)
      raise InvalidArgument(f"{address:#x} is outside the code", where=text, hint=f"code is at {shown}")
    part = self.part(address)
    if address not in part.index:
      before = part.lines[bisect_right([n.address for n in part.lines], address) - 1]
      raise InvalidArgument(f"{address:#x} is inside the instruction at {self.where(before.address)}", where=text)
    return address

  # ---- listing: each function is decoded when it is first looked at

  def part(self, address: int) -> Part:
    """The function that holds an address: from a symbol to the next one, or what lies before the first one."""
    lo, hi = next(((lo, hi) for lo, hi in self.ranges if lo <= address < hi), (address, address))
    at = bisect_right(self._starts, address)
    start = max(lo, self._starts[at - 1]) if at else lo
    stop = min(hi, self._starts[at]) if at < len(self._starts) else hi
    found = self._parts.get(start)
    if found is None: found = self._parts[start] = self._decode(start, stop)
    return found

  @abstractmethod
  def _decode(self, start: int, stop: int) -> Part:
    """The instructions of a function."""

  @property
  @abstractmethod
  def mnemonics(self) -> Iterable[str]:
    """The names of all instructions that there are."""

  @property
  def lines(self) -> list[Line]:
    """Every instruction of the code, by address."""
    firsts = sorted({lo for lo, _ in self.ranges} | set(self._starts))
    return [n for first in firsts for n in self.part(first).lines]

  def at(self, address: int) -> Line | None:
    """The instruction at an address, or None."""
    if not self.holds(address): return None
    part = self.part(address)
    k = part.index.get(address)
    return None if k is None else part.lines[k]

  def around(self, address: int, before: int = 4, after: int = 8) -> list[Line]:
    """Instructions around an address, of its function; trailing padding is left out."""
    if self.at(address) is None: return []
    part = self.part(address)
    k = part.index[address]
    return [n for n in part.lines[max(0, k - before):k + after + 1]
            if n.address == address or n.instruction is None or n.instruction.mnemonic != "s_code_end"]

  def function(self, name: str) -> list[Line]:
    """The instructions of one symbol, up to the next one, without the padding behind them."""
    start = self.symbols.get(name)
    if start is None:
      there = ", ".join(sorted(self.symbols)) or "none"
      raise InvalidArgument(f"no symbol is called {name!r}", hint=f"there are {there}")
    found = list(self.part(start).lines)
    while found and (found[-1].instruction is None or found[-1].instruction.mnemonic in self.padding): found.pop()
    return found

  def changed(self) -> None:
    """Code was written: read it anew when it is next shown."""
    self._parts.clear()
