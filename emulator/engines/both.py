"""The reference and compiled code side by side: outcome, memory and every wave's last registers must agree.

When they do not, the first wave that differs is run again in both, instruction by instruction, and the error names the
first instruction after which its registers are not the same, with wave, register, lane and both values. Where they
differ in nothing but NaNs, what came of an open choice among several (`nans`) may differ; all else may not.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tinyhw.arch import Arch
from tinyhw.core.errors import Deadlock, Error, Interrupted, MachineFault, WatchdogExpired
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.amdgcn import Dispatch, DispatchStats, nans
from tinyhw.emulator.amdgcn import dispatch as interpret
from tinyhw.emulator.amdgcn.launch import Workgroups, interpreted
from tinyhw.emulator.amdgcn.memory import gds
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.schedule import ended
from tinyhw.emulator.simt import Group
from tinyhw.emulator.values.ops import Array
from tinyhw.isa.amdgcn.codes import EXEC_LO, M0, NULL, VCC_LO

Run = Callable[..., DispatchStats]
SHOWN: Final = 8  # differences that an error spells out
_NAMES: Final = {VCC_LO: "vcc_lo", VCC_LO + 1: "vcc_hi", EXEC_LO: "exec_lo", EXEC_LO + 1: "exec_hi", M0: "m0"}


class EnginesDiffer(Error):
  """The reference and the compiled code do not agree."""


@dataclass(frozen=True)
class Registers:
  """A wave's registers: u32 [n] scalars, u32 [n, lanes] vectors, SCC."""
  s: Array
  v: Array
  scc: bool

  def differences(self, other: Registers, free: nans.Choices | None = None) -> Iterator[str]:
    """A line for each register, or lane of one, in which the other (compiled code's) differs from this one.

    Cells that are `free` may hold another NaN.
    """
    s, v = self.s != other.s, self.v != other.v
    if free is not None:
      s &= ~(free.s & nans.wide_alike(self.s[:, None], other.s[:, None])[:, 0])
      v &= ~(free.v & nans.wide_alike(self.v, other.v))
    for n in np.flatnonzero(s):
      if n != NULL: yield _line(_NAMES.get(int(n), f"s{n}"), self.s[n], other.s[n])
    if self.scc != other.scc: yield f"scc: reference {self.scc:d}, compiled {other.scc:d}"
    for n, lane in np.argwhere(v): yield _line(f"v{n}[lane {lane}]", self.v[n, lane], other.v[n, lane])


def _line(name: str, a: Array, b: Array) -> str: return f"{name}: reference {int(a):#010x}, compiled {int(b):#010x}"


def both(space: AddressSpace, arch: Arch, d: Dispatch, watchdog: int, compiled: Run) -> DispatchStats:
  """The reference on a copy of the memory, compiled code on the memory itself. Raises EnginesDiffer."""
  start, copy = copied(space), copied(space)
  reference, last = _Last(), dict[int, tuple[Array, Array, bool]]()
  expected, error = _outcome(interpret, copy, arch, d, watchdog=watchdog, observer=reference)
  stats, other = _outcome(compiled, space, arch, d, watchdog=watchdog, last=last)
  where = f"after the dispatch at {d.entry_pc:#x}"
  raise_time_outs(error, other)
  if isinstance(error, MachineFault) and isinstance(other, MachineFault):
    other.caller = error.caller  # compiled code may have the return address in a register of its own
  if not alike(error, other, sum(1 for _ in reference.waves()) > 1):
    raise EnginesDiffer(f"the reference {_told(error)}, compiled code {_told(other)}")
  if error is not None: raise other
  assert expected is not None and stats is not None
  def fail(text: str) -> None:
    """Raise it, unless another order of the workgroups and waves gives the reference itself other results."""
    if not _by_order(start, arch, d, watchdog, expected, reference, copy): raise EnginesDiffer(text)

  # what waves get, and how often they try, may depend on who runs when, where they meet in atomics
  ordered = not any("atomic" in name or "_rtn" in name for name in expected.mnemonics)
  watched: dict[int, _Watching] = {}

  def watching(wave: int) -> _Watching:
    """Where the choice among several NaNs is open in a wave, found by running the dispatch again."""
    if wave not in watched:
      watched[wave] = _Watching(wave)
      _outcome(interpret, copied(start), arch, d, watchdog=watchdog, observer=watched[wave])
    return watched[wave]
  for wave, registers in reference.waves() if ordered else ():
    if wave not in last or not any(registers.differences(Registers(*last[wave]))): continue
    found = list(registers.differences(Registers(*last[wave]), watching(wave).choices))
    if not found: continue
    first = first_difference(start, arch, d, watchdog, wave)
    fail(f"wave {wave} {where}: {_some(found)}{f'; {first}' if first else ''}")
    break
  if expected.instructions != stats.instructions and ordered:
    fail(f"the reference executed {expected.instructions:,} instructions, compiled code {stats.instructions:,}")
  for m, n in zip(copy.mappings(), space.mappings()):
    if (m.u64 == n.u64).all(): continue
    at = np.flatnonzero(m.u32 != n.u32)
    free = not ordered or any(watching(w).kept for w, _ in reference.waves())
    if free: at = at[~nans.alike(m.u32[at], n.u32[at])]
    if at.size: fail(f"memory {where}: {at.size} dwords differ: " + "; ".join(
      _line(f"{m.start + 4 * int(k):#x}", m.u32[k], n.u32[k]) for k in at[:SHOWN]))
  return stats


def _by_order(start: AddressSpace, arch: Arch, d: Dispatch, watchdog: int, stats: DispatchStats, reference: _Last,
              memory: AddressSpace) -> bool:
  """Whether the order in which waves run decides what the reference makes of a dispatch: waves that wait for others
  look more or less often, and who comes first may get something else."""
  other, last = copied(start), _Last()
  workgroups = Workgroups(other, arch, d, watchdog, DispatchStats(), last, apart=True)
  try: ended(interpreted(workgroups))
  except Error: return True
  if workgroups.stats.instructions != stats.instructions: return True
  if any((m.u64 != n.u64).any() for m, n in zip(memory.mappings(), other.mappings())): return True
  return any(any(a.differences(b)) for (_, a), (_, b) in zip(reference.waves(), last.waves()))


def _some(lines: list[str]) -> str:
  more = f"; {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
  return "; ".join(lines[:SHOWN]) + more


def _told(error: Any) -> str: return "ended well" if error is None else f"raised {type(error).__name__}: {error}"


def raise_time_outs(*errors: Error | None) -> None:
  """Raise one of a run that was stopped, or that used up its instructions: where it stood then says nothing of values.
  """
  for error in errors:
    if isinstance(error, Interrupted | WatchdogExpired) and not isinstance(error, Deadlock): raise error


def alike(error: Error | None, other: Error | None, several: bool) -> bool:
  """Whether two runs ended alike. Of `several` waves it depends on who runs when whose fault comes first, and who is
  told of a deadlock."""
  if several and isinstance(error, MachineFault) and isinstance(other, MachineFault):
    return isinstance(error, Deadlock) is isinstance(other, Deadlock)
  return type(error) is type(other) and (str(error) == str(other) or isinstance(error, Deadlock))


def _outcome(run: Run, *arguments: Any, **more: Any) -> tuple[DispatchStats | None, Any]:
  try: return run(*arguments, **more), None
  except Error as error: return None, error


def copied(space: AddressSpace) -> AddressSpace:
  """The same mappings over a copy of the memory; what is shared in it stays shared."""
  other = AddressSpace(space.name)
  regions: dict[int, Region] = {}
  for m in space.mappings():
    key = id(m.backing)
    if key not in regions: regions[key] = Region("copy", -(-m.backing.size // 4096) * 4096)
    regions[key].u8[m.offset:m.offset + m.end - m.start] = m.u8
    other.map(m.start, m.end - m.start, regions[key], m.offset, m.access, m.unit)
  gds.copy(space, other)
  return other


# ---- the reference's registers

def _of(group: Group, row: int) -> Registers:
  """The registers of one wave of a group."""
  lanes = group.cohort.lanes
  s = np.array([x if x.ndim == 0 else x.reshape(-1)[row] for x in group.s], np.uint32)
  v = np.empty((len(group.v), lanes), np.uint32)
  for n, x in enumerate(group.v):
    bits = np.asarray(x).view(np.uint32)
    v[n] = bits[row] if bits.ndim == 2 and bits.shape[0] == group.size else bits[0] if bits.ndim == 2 else bits
  scc = np.asarray(group.scc).reshape(-1)
  return Registers(s, v, bool(scc[row if scc.size > 1 else 0]))


class _Last(Observer):
  """Keeps the registers of waves as they end. Values are never changed in place, so groups are kept as they are."""

  def __init__(self) -> None: self._ended: list[Group] = []

  def ended(self, group: Group) -> None: self._ended.append(group)

  def waves(self) -> Iterator[tuple[int, Registers]]:
    """Each wave's number with its registers, in the order of the numbers."""
    rows = [(int(wave), group, row) for group in self._ended for row, wave in enumerate(group.waves)]
    for wave, group, row in sorted(rows, key=lambda r: r[0]): yield wave, _of(group, row)


# ---- the first difference

@dataclass(frozen=True)
class Step:
  """A wave's registers after `count` instructions, the next of which is at `pc`."""
  count: int
  pc: int
  registers: Registers


class _Found(Exception):
  """The reference has come to where the wave differs."""

  def __init__(self, text: str) -> None:
    self.text = text
    super().__init__(text)


class _Watching(Observer):
  """Follows one wave of the reference: which of its registers hold a NaN that was chosen among several.

  `kept` says whether such a one was stored.
  """

  def __init__(self, wave: int) -> None:
    self._wave = wave
    self.choices: nans.Choices | None = None
    self.kept = False
    self._last: tuple[int, Any] | None = None
    self._before: Registers | None = None

  def before(self, group: Group, pc: int, instruction: Any) -> None:
    """Follow what the last instruction has done."""
    rows = np.flatnonzero(group.waves == self._wave)
    if rows.size: self._at(_of(group, int(rows[0])), pc, instruction)

  def _at(self, here: Registers, pc: int, instruction: Any) -> None:
    if self.choices is None: self.choices = nans.Choices(len(here.s), *here.v.shape)
    if self._last is not None and self._before is not None:
      self.kept |= self.choices.follow(self._last[1], self._before.s, self._before.v)
    self._last, self._before = (pc, instruction), here


class _Comparing(_Watching):
  """Holds a wave's registers, before each instruction, against compiled code's after as many instructions."""

  def __init__(self, wave: int, steps: Iterator[Step]) -> None:
    super().__init__(wave)
    self._steps, self._count = steps, 0
    self._next = next(steps, None)

  def _at(self, here: Registers, pc: int, instruction: Any) -> None:
    """Stop at the first difference."""
    last = "" if self._last is None else f"{str(self._last[1])!r} at {self._last[0]:#x}"
    super()._at(here, pc, instruction)
    while self._next is not None and self._next.count < self._count: self._next = next(self._steps, None)
    if self._next is not None and self._next.count == self._count:
      if self._next.pc != pc: raise _Found(f"after {last} the reference goes on at {pc:#x}, compiled code at "
                                           f"{self._next.pc:#x}")
      found = list(here.differences(self._next.registers, self.choices))
      if found: raise _Found(f"first after instruction {self._count} of the wave, {last}: {_some(found)}")
    self._count += 1


def first_difference(space: AddressSpace, arch: Arch, d: Dispatch, watchdog: int, wave: int) -> str:
  """Where a wave's registers first differ, in words; empty when they do not in code of single instructions."""
  from tinyhw.emulator.jit.amdgcn.launch import trace
  for hot in (False, True):
    traced = trace(copied(space), arch, d, watchdog, wave, hot)
    steps = (Step(count, pc, Registers(s, v, scc)) for count, pc, s, v, scc in traced)
    try: interpret(copied(space), arch, d, watchdog=watchdog, observer=_Comparing(wave, steps))
    except _Found as found: return found.text
    except Error: continue  # the wave was the same up to here
  return ""
