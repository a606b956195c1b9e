"""The report of a run: what a kernel executed, how many lanes worked, what its accesses cost, what was not exact."""
from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tinyhw.core.source import Spot
from tinyhw.emulator.debug.code import Code, Line
from tinyhw.emulator.debug.parts import Vendor, Words
from tinyhw.emulator.debug.record import Counts, Recorder, Traffic


@dataclass
class AccessCounts:
  """Accesses of one kind (by one instruction, or all): see `record.Traffic` for the counts."""
  segment: str
  kind: str
  waves: int
  lanes: int
  bytes: int
  sectors: int
  lines: int
  efficiency: float | None  # of sectors: part of their bytes that lanes asked for
  cycles: int
  ideal: int
  repeats: int

  @property
  def slowdown(self) -> float | None:
    """Cycles of shared memory over those without bank conflicts; None where it was not touched."""
    return self.cycles / self.ideal if self.ideal else None


@dataclass
class Instruction:
  """One instruction of the listing. `waves` counts executions, `lanes` the mean of the active lanes, `idle` executions
  with no lane active, `splits` those that switched some of the active lanes off, `taken` those where a branch was
  taken."""
  address: int
  place: str
  label: str
  text: str
  mnemonic: str
  unit: str
  status: str
  waves: int
  lanes: float
  idle: int
  splits: int
  taken: int | None
  accesses: list[AccessCounts] = field(default_factory=list)
  line: str = ""  # "bugs.c:5", where it is known


@dataclass
class Mnemonic:
  """Executions of one mnemonic, by waves, with its unit and whether its meaning is exact."""
  mnemonic: str
  unit: str
  status: str
  waves: int


@dataclass
class SourceLine:
  """What the instructions of one line of the source did together. `line` is its number, `text` what is written there
  ("" where its file is not to be found); `waves` counts executions, `lanes` the mean of a vector instruction's lanes,
  `bytes` what lanes asked of global memory, `cycles` and `ideal` those of shared memory."""
  file: str
  line: int
  function: str
  text: str
  waves: int
  lanes: float
  splits: int
  bytes: int
  cycles: int
  ideal: int

  @property
  def place(self) -> str: return f"{os.path.basename(self.file)}:{self.line}"


@dataclass
class Arrival:
  """Values of approximate instructions (at `origins`) that arrived at `sink` in an instruction, in `waves` executions.
  """
  sink: str
  place: str
  text: str
  waves: int
  origins: list[str]


@dataclass
class Report:
  """See the module. Sizes in bytes; counts of instructions are wave instructions. `buffers` are the launch's arrays."""
  kernel: str
  arch: str
  grid: tuple[int, int, int]
  block: tuple[int, int, int]
  wave_lanes: int
  waves: int
  executed: int
  registers: dict[str, int]  # of a wave, or of a thread: how many of each kind
  lds: int
  scratch: int
  lanes: float  # mean active lanes of a vector instruction
  idle: int  # vector and memory instructions that ran with no lane active
  splits: int
  barriers: int  # executions by waves
  meetings: int  # how often all waves of a workgroup met
  waits: int
  atomics: int
  units: dict[str, int]
  mnemonics: list[Mnemonic]
  accesses: list[AccessCounts]
  instructions: list[Instruction]
  approximate: list[Instruction]
  arrivals: list[Arrival] | None  # None: not followed
  lines: list[SourceLine] = field(default_factory=list)  # that were executed, the hottest first
  occupancy: str = ""  # waves a part of the chip holds at once, what limits them, workgroups that the card holds
  buffers: list[Any] = field(default_factory=list, repr=False)
  words: Words = field(kw_only=True, repr=False)  # how the vendor calls things

  @classmethod
  def of(cls, recorder: Recorder, code: Code | None = None, kernel: str = "") -> Report:
    """The report of what a recorder saw; with the `code`, instructions that were never executed are listed too."""
    vendor, d = recorder.vendor, recorder.dispatched
    facts, scalar = vendor.facts(), vendor.words.scalar
    lanes = facts.lanes
    rows = [_instruction(n, recorder.counts.get(n.address), code, vendor) for n in _lines(recorder, code)]
    ran = [i for i in rows if i.waves]
    vector = [i for i in ran if i.unit not in scalar]
    units: Counter[str] = Counter()
    mnemonics: dict[str, Mnemonic] = {}
    for i in ran:
      units[i.unit] += i.waves
      m = mnemonics.setdefault(i.mnemonic, Mnemonic(i.mnemonic, i.unit, i.status, 0))
      m.waves += i.waves
    texts = {i.address: i for i in rows}

    def place(pc: int) -> str: return texts[pc].place if pc in texts else f"{pc:#x}"
    arrivals = None
    if recorder.exactness is not None:
      arrivals = [Arrival(r.sink, place(r.pc), texts[r.pc].text if r.pc in texts else "", r.waves,
                          [place(pc) for pc in r.origins]) for r in recorder.exactness.reached()]
    executions = sum(i.waves for i in vector)
    x, y, z = d.block
    return cls(
      kernel, facts.arch, d.grid, d.block, lanes, -(-x * y * z // lanes) * d.grid[0] * d.grid[1] * d.grid[2],
      sum(i.waves for i in ran), dict(facts.registers), facts.lds, facts.scratch,
      sum(i.lanes * i.waves for i in vector) / executions if executions else 0.0, sum(i.idle for i in vector),
      sum(i.splits for i in ran), sum(i.waves for i in ran if i.unit == "barrier" and (
        not vendor.barriers or i.mnemonic in vendor.barriers)),
      recorder.releases,
      sum(i.waves for i in ran if i.unit == "wait"),
      sum(a.waves for i in ran for a in i.accesses if a.kind == "atomic"),
      dict(units.most_common()), sorted(mnemonics.values(), key=lambda m: (-m.waves, m.mnemonic)),
      _totals(recorder.counts.values()), rows, [i for i in ran if i.status == "approximate"], arrivals,
      _source_lines(ran, code, scalar), facts.occupancy, words=vendor.words)

  # ---- what is read from it

  @property
  def register_text(self) -> str:
    """Registers of a wave, or of a thread, in words."""
    return " and ".join([", ".join(parts[:2]), *parts[2:]]) if (
      parts := [f"{n} {name}" for name, n in self.registers.items()]) else ""

  def hot(self, count: int = 10) -> list[Instruction]:
    """The instructions that were executed most, the first of equals by address."""
    return sorted((i for i in self.instructions if i.waves), key=lambda i: (-i.waves, i.address))[:count]

  def conflicts(self) -> list[tuple[Instruction, AccessCounts]]:
    """Accesses to shared memory that took more cycles than without bank conflicts, the worst first."""
    found = [(i, a) for i in self.instructions for a in i.accesses if a.segment == "lds" and a.cycles > a.ideal]
    return sorted(found, key=lambda p: p[1].ideal - p[1].cycles)

  def exactness(self) -> list[str]:
    """Which executed instructions were not exact and where their values arrived; a line each."""
    if not self.approximate: return ["every executed instruction is exact"]
    lines = [f"{i.place}: {i.text}: approximate, executed by {self.words.waves(i.waves)}" for i in self.approximate]
    if self.arrivals is None: return lines
    for sink, words in self.words.sinks.items():
      found = [a for a in self.arrivals if a.sink == sink]
      if not found: lines.append(f"no such value reached {words}")
      lines += [f"reached {words}: {a.place}: {a.text}, {self.words.waves(a.waves)}, from {', '.join(a.origins)}"
                for a in found]
    return lines

  def to_dict(self) -> dict[str, Any]:
    """Plain values, as JSON has them."""
    plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in {"buffers", "words"}}
    for name in ("mnemonics", "accesses", "instructions", "approximate", "lines"):
      plain[name] = [asdict(r) for r in plain[name]]
    if self.arrivals is not None: plain["arrivals"] = [asdict(a) for a in self.arrivals]
    return {**plain, "grid": list(self.grid), "block": list(self.block)}

  def json(self) -> str:
    """The report as one JSON object."""
    return json.dumps(self.to_dict())

  def html(self) -> str:
    """The report as one page that needs nothing else."""
    from tinyhw.emulator.debug.page import page
    return page(self)


def _lines(recorder: Recorder, code: Code | None) -> list[Line]:
  """The instructions to list: the functions of which something was executed, or only what was."""
  seen = recorder.counts
  if code is None: return [Line(pc, "", str(c.instruction), c.instruction, None, c.instruction.size)
                           for pc, c in sorted(seen.items())]
  functions = {code.function_of(pc) for pc in seen if code.holds(pc)}
  order = sorted((n for n in functions if n in code.symbols), key=lambda n: code.symbols[n])
  listed = [n for name in order for n in code.function(name)]
  known = {n.address for n in listed}
  rest = [Line(pc, "", str(c.instruction), c.instruction, None, c.instruction.size)
          for pc, c in seen.items() if pc not in known]
  return sorted(listed + rest, key=lambda n: n.order or n.address)


def _source_lines(ran: Iterable[Instruction], code: Code | None, scalar: frozenset[str]) -> list[SourceLine]:
  """The lines that executed instructions come from, where debug information says it."""
  found: dict[tuple[str, int], list[Instruction]] = {}
  spots: dict[tuple[str, int], Spot] = {}
  for i in ran:
    spot = None if code is None else code.source.spot(i.address)
    if spot is None: continue
    spots.setdefault((spot.file, spot.line), spot)
    found.setdefault((spot.file, spot.line), []).append(i)
  out = []
  for key, group in found.items():
    spot, vector = spots[key], [i for i in group if i.unit not in scalar]
    executions = sum(i.waves for i in vector)
    lds, memory = ([a for i in group for a in i.accesses if a.segment == segment] for segment in ("lds", "global"))
    out.append(SourceLine(
      spot.file, spot.line, spot.function, spot.text or "", sum(i.waves for i in group),
      sum(i.lanes * i.waves for i in vector) / executions if executions else 0.0, sum(i.splits for i in group),
      sum(a.bytes for a in memory), sum(a.cycles for a in lds), sum(a.ideal for a in lds)))
  return sorted(out, key=lambda s: (-s.waves, s.file, s.line))


def _instruction(n: Line, c: Counts | None, code: Code | None, vendor: Vendor) -> Instruction:
  i = n.instruction
  place = code.where(n.address) if code is not None else f"{n.address:#x}"
  spot = None if code is None else code.source.spot(n.address)
  line = "" if spot is None else str(spot)
  if i is None: return Instruction(n.address, place, n.label, n.text, "", "", "", 0, 0.0, 0, 0, None, [], line)
  if c is None:
    return Instruction(n.address, place, n.label, n.text, i.mnemonic, vendor.unit(i), "", 0, 0.0, 0, 0, None, [], line)
  taken = c.taken if vendor.branches(i) else None
  return Instruction(n.address, place, n.label, n.text, i.mnemonic, vendor.unit(i), c.status, c.waves,
                     c.lanes / c.waves, c.idle, c.splits, taken, [_access(t) for t in c.traffic.values()], line)


def _access(t: Traffic) -> AccessCounts:
  return AccessCounts(t.segment, t.kind, t.waves, t.lanes, t.bytes, t.sectors, t.lines, t.efficiency, t.cycles, t.ideal,
                t.repeats)


def _totals(counts: Iterable[Counts]) -> list[AccessCounts]:
  """Traffic by segment and kind."""
  sums: dict[tuple[str, str], Traffic] = {}
  for c in counts:
    for key, t in c.traffic.items():
      total = sums.setdefault(key, Traffic(*key, sector=t.sector))
      for f in fields(Traffic)[2:-1]: setattr(total, f.name, getattr(total, f.name) + getattr(t, f.name))
  return [_access(sums[key]) for key in sorted(sums)]
