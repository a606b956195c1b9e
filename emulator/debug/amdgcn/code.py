"""AMD's machine code as a person reads it."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tinyhw.core.errors import DecodeError
from tinyhw.core.memory import AddressSpace
from tinyhw.core.source import Source
from tinyhw.emulator.amdgcn import control
from tinyhw.emulator.debug.code import Code, Line, Part
from tinyhw.isa.amdgcn import Instruction, Table

CALLS: Final = control.CALLS
BARRIERS: Final = frozenset({"s_barrier", "s_barrier_wait", "s_barrier_signal", "s_barrier_signal_isfirst"})


class MachineCode(Code):
  """The executable ranges of a launch in memory."""

  calls, returns, barriers = CALLS, frozenset({"s_setpc_b64"}), BARRIERS
  padding = frozenset({"s_code_end", "s_nop"})

  def __init__(self, space: AddressSpace, table: Table, ranges: Iterable[tuple[int, int]],
               symbols: Mapping[str, int], entry: int, source: Source | None = None) -> None:
    super().__init__(ranges, symbols, entry, source)
    self.space, self.table = space, table

  @property
  def mnemonics(self) -> Iterable[str]: return self.table.mnemonics

  def _decode(self, start: int, stop: int) -> Part:
    rows: list[tuple[int, Instruction | None, int]] = []
    code, at = self.space.read(start, stop - start) if stop > start else b"", start
    while at < stop:
      try: i: Instruction | None = self.table.decode(code, at - start, where=at)
      except DecodeError: i = None
      size = min(4, stop - at) if i is None else i.size
      rows.append((at, i, size))
      at += size
    targets = {at: control.target(i, at) for at, i, _ in rows if i is not None and i.mnemonic in control.DIRECT}
    inside = sorted({t for t in targets.values() if start <= t < stop} - set(self._names))
    labels = {f".L{k}": a for k, a in enumerate(inside, 1)}
    names = {a: n for n, a in labels.items()}
    lines = []
    for at, i, size in rows:
      text, target = "<unknown>" if i is None else str(i), targets.get(at)
      if target is not None: text = f"{text.rsplit(' ', 1)[0]} {names.get(target) or self.where(target)}"
      lines.append(Line(at, self._names.get(at) or names.get(at, ""), text, i, target, size))
    return Part(lines, {n.address: k for k, n in enumerate(lines)}, labels)
