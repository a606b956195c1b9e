"""Code as a person reads it: symbols, instructions by address, branch targets, where an address belongs."""
from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tinyhw.core.errors import DecodeError, InvalidArgument
from tinyhw.core.memory import AddressSpace
from tinyhw.emulator.amdgcn import control
from tinyhw.isa.amdgcn import Instruction, Table

CALLS: Final = frozenset({"s_swappc_b64", "s_call_b64"})
RETURNS: Final = frozenset({"s_setpc_b64"})
PADDING: Final = frozenset({"s_code_end", "s_nop"})
BARRIERS: Final = frozenset({"s_barrier", "s_barrier_wait", "s_barrier_signal", "s_barrier_signal_isfirst"})


@dataclass(frozen=True)
class Line:
  """One instruction of a listing. `label` is the symbol that starts here, or the local name of a branch target;
  `target` the address that a direct branch goes to. `instruction` is None for bytes that are none."""
  address: int
  label: str
  text: str
  instruction: Instruction | None
  target: int | None
  size: int


class Code:
  """The executable ranges of a launch, with their symbols."""

  def __init__(self, space: AddressSpace, table: Table, ranges: Iterable[tuple[int, int]],
               symbols: Mapping[str, int], entry: int) -> None:
    self.space, self.table, self.entry = space, table, entry
    self.ranges = sorted(ranges)
    self.symbols = {n: a for n, a in symbols.items() if any(lo <= a < hi for lo, hi in self.ranges)}
    self._starts = sorted(set(self.symbols.values()))
    self.data: dict[str, int] = {}  # names of other memory
    self._names: dict[int, str] = {}
    for name, address in sorted(self.symbols.items(), key=lambda s: -len(s[0])): self._names[address] = name

  # ---- names

  def where(self, address: int) -> str:
    """"add+0x10": the symbol before an address and the distance from it; the address alone outside of all code."""
    at = bisect_right(self._starts, address) - 1
    if at < 0 or not self.holds(address): return f"{address:#x}"
    start = self._starts[at]
    return self._names[start] + (f"+{address - start:#x}" if address > start else "")

  def holds(self, address: int) -> bool:
    """Whether an address is in executable code."""
    return any(lo <= address < hi for lo, hi in self.ranges)

  def resolve(self, text: str) -> int:
    """Address of "add", "add+0x10", "+0x10" (from the kernel's entry), ".L2" (a branch target) or "0x1000".

    Raises InvalidArgument for an unknown symbol.
    """
    m = re.fullmatch(r"\*?\s*([A-Za-z_.$][\w.$@]*)?\s*(?:([+-])\s*)?(0[xX][0-9a-fA-F]+|\d+)?\s*", text)
    if m is None or not (m[1] or m[3]) or bool(m[1] and m[3]) != bool(m[1] and m[2]):
      raise InvalidArgument(f"{text!r} is no location", hint="write SYMBOL, SYMBOL+0x10, +0x10 or an address")
    offset = int(m[3], 0) if m[3] else 0
    if m[2] == "-": offset = -offset
    if m[1]:
      start = self.symbols.get(m[1], self.locals.get(m[1]))
      if start is None:
        known = ", ".join(sorted(self.symbols)[:12])
        raise InvalidArgument(f"no symbol is called {m[1]!r}", hint=f"there are {known or 'none'}")
      return start + offset
    return self.entry + offset if m[2] else offset

  def instruction_at(self, text: str) -> int:
    """Address of a location where an instruction starts. Raises InvalidArgument where none does."""
    address = self.resolve(text)
    if not self.holds(address):
      shown = ", ".join(f"{lo:#x}..{hi - 1:#x}" for lo, hi in self.ranges)
      raise InvalidArgument(f"{address:#x} is outside the code", where=text, hint=f"code is at {shown}")
    if address not in self.index:
      before = self.lines[bisect_right([n.address for n in self.lines], address) - 1]
      raise InvalidArgument(f"{address:#x} is inside the instruction at {self.where(before.address)}", where=text)
    return address

  # ---- listing

  @cached_property
  def locals(self) -> dict[str, int]:
    """Branch targets that no symbol names: ".L1" and so on, by address."""
    targets = {n.target for n in self._decoded if n.target is not None and self.holds(n.target)}
    return {f".L{k}": a for k, a in enumerate(sorted(targets - set(self._starts)), 1)}

  @cached_property
  def _decoded(self) -> list[Line]:
    out: list[Line] = []
    for lo, hi in self.ranges:
      at, bounds = lo, [s for s in self._starts if lo < s < hi] + [hi]
      code = self.space.read(lo, hi - lo)
      while at < hi:
        end = bounds[bisect_right(bounds, at)] if at < bounds[-1] else hi
        try:
          i = self.table.decode(code[:end - lo], at - lo, where=at)
          target = control.target(i, at) if i.mnemonic in control.DIRECT else None
          out.append(Line(at, "", str(i), i, target, i.size))
          at += i.size
        except DecodeError:
          size = min(4, end - at)
          out.append(Line(at, "", "<unknown>", None, None, size))
          at += size
    return out

  @cached_property
  def lines(self) -> list[Line]:
    """Every instruction of the code, by address; branches name where they go."""
    names = {a: n for n, a in self.locals.items()} | self._names
    out = []
    for n in self._decoded:
      text = n.text
      if n.target is not None: text = f"{text.rsplit(' ', 1)[0]} {names.get(n.target) or self.where(n.target)}"
      out.append(Line(n.address, names.get(n.address, ""), text, n.instruction, n.target, n.size))
    return out

  @cached_property
  def index(self) -> dict[int, int]:
    """Address of an instruction -> its place in `lines`."""
    return {n.address: k for k, n in enumerate(self.lines)}

  def at(self, address: int) -> Line | None:
    """The instruction at an address, or None."""
    k = self.index.get(address)
    return None if k is None else self.lines[k]

  def around(self, address: int, before: int = 4, after: int = 8) -> list[Line]:
    """Instructions around an address; trailing padding of a function is left out."""
    k = self.index.get(address)
    if k is None: return []
    return [n for n in self.lines[max(0, k - before):k + after + 1]
            if n.address == address or n.instruction is None or n.instruction.mnemonic != "s_code_end"]

  def function(self, name: str) -> list[Line]:
    """The instructions of one symbol, up to the next one, without the padding behind them."""
    start = self.symbols.get(name)
    if start is None:
      there = ", ".join(sorted(self.symbols)) or "none"
      raise InvalidArgument(f"no symbol is called {name!r}", hint=f"there are {there}")
    stop = next((s for s in self._starts if s > start), None)
    stop = stop if stop is not None else next(hi for lo, hi in self.ranges if lo <= start < hi)
    found = [n for n in self.lines if start <= n.address < stop]
    while found and (found[-1].instruction is None or found[-1].instruction.mnemonic in PADDING): found.pop()
    return found

  def changed(self) -> None:
    """Code was written: read it anew when it is next shown."""
    for name in ("locals", "_decoded", "lines", "index"): self.__dict__.pop(name, None)
