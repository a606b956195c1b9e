"""A dispatch that compiled code ran to its end, made ready to be run again with other user SGPRs.

Nearly every dispatch of a program that computes much with the same kernels is one that was run before: same code, sizes
and registers, other arguments. Its first state is kept, so that another run is one call (`_TEXT`): the code in memory
is compared with what was compiled, the state made, and compiled code called. What else it depends on is asked before
(`stands`): whether the mappings and the compiled form are those of before.

The first state of a wave is that of its place in a workgroup, but for what tells workgroups apart (`_First`); all that
is not in there is 0.
"""
from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import numpy as np

from tinyhw.emulator.amdgcn.fields import USER_SGPR
from tinyhw.emulator.amdgcn.launch import DispatchStats, Workgroups
from tinyhw.emulator.amdgcn.memory import gds
from tinyhw.emulator.amdgcn.sync import Shared
from tinyhw.emulator.jit.amdgcn.context import OUTSIDE_LANES, ROW
from tinyhw.emulator.jit.amdgcn.launch import CompiledDispatch
from tinyhw.emulator.jit.amdgcn.run import TURN, Waves
from tinyhw.emulator.jit.amdgcn.state import LEFT, STATUS
from tinyhw.emulator.jit.amdgcn.translate import END
from tinyhw.emulator.jit.memory import Memory
from tinyhw.emulator.jit.refusal import CompilerFailed
from tinyhw.emulator.jit.routine import Record, Routine, loaded
from tinyhw.emulator.schedule import Idle
from tinyhw.emulator.simt import Changes

LARGEST: Final = 1 << 16  # dwords of registers and LDS of a dispatch whose states are kept as well
STALE, ENDED, LEFT_OFF = range(3)  # of a run: nothing was done, for the code is another; all waves have ended; not all
_CODE_ROW: Final = 3  # words of a piece of code: where it is, what it held, bytes
NAMES: Final = ("pieces", "code", "rows", "row_bytes", "group", "columns", "column_count", "values", "states", "bytes",
                "waves", "stride", "users", "user_bytes", "run", "context", "lds", "lds_bytes", "sites", "site_count",
                "granted", "executed")
_TEXT: Final = f"""
declare i32 @memcmp(ptr, ptr, i64)
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @memset(ptr, i32, i64)

define i64 @again(ptr %r) {{
{loaded(NAMES, pieces="i64", code="ptr", rows="ptr", row_bytes="i64", group="i64", columns="ptr", column_count="i64",
        values="ptr", states="ptr", bytes="i64", waves="i64", stride="i64", users="ptr", user_bytes="i64", run="ptr",
        context="ptr", lds="ptr", lds_bytes="i64", sites="ptr", site_count="i64", granted="i64")}
  br label %piece
piece:
  %c = phi i64 [ 0, %0 ], [ %c.next, %compare ]
  %c.more = icmp ult i64 %c, %pieces
  br i1 %c.more, label %compare, label %fresh
compare:
  %c.row = mul i64 %c, {_CODE_ROW}
  %c.at = getelementptr i64, ptr %code, i64 %c.row
  %there = load ptr, ptr %c.at
  %held.at = getelementptr i64, ptr %c.at, i64 1
  %held = load ptr, ptr %held.at
  %length.at = getelementptr i64, ptr %c.at, i64 2
  %length = load i64, ptr %length.at
  %differs = call i32 @memcmp(ptr %there, ptr %held, i64 %length)
  %c.next = add i64 %c, 1
  %same = icmp eq i32 %differs, 0
  br i1 %same, label %piece, label %stale
stale:
  ret i64 {STALE}
fresh:
  %d0 = call ptr @memset(ptr %states, i32 0, i64 %bytes)
  br label %begin
begin:
  %u = phi i64 [ 0, %fresh ], [ %u.next, %begun ]
  %u.more = icmp ult i64 %u, %waves
  br i1 %u.more, label %row, label %ready
row:
  %u.in = urem i64 %u, %group
  %u.from = mul i64 %u.in, %row_bytes
  %from = getelementptr i8, ptr %rows, i64 %u.from
  %u.row = mul i64 %u, %stride
  %u.at = getelementptr i8, ptr %states, i64 %u.row
  %d1 = call ptr @memcpy(ptr %u.at, ptr %from, i64 %row_bytes)
  %own = getelementptr i32, ptr %values, i64 %u
  br label %column
column:
  %k = phi i64 [ 0, %row ], [ %k.next, %one ]
  %k.more = icmp ult i64 %k, %column_count
  br i1 %k.more, label %one, label %begun
one:
  %k.at = getelementptr i64, ptr %columns, i64 %k
  %place = load i64, ptr %k.at
  %k.values = mul i64 %k, %waves
  %value.at = getelementptr i32, ptr %own, i64 %k.values
  %value = load i32, ptr %value.at
  %to = getelementptr i32, ptr %u.at, i64 %place
  store i32 %value, ptr %to
  %k.next = add i64 %k, 1
  br label %column
begun:
  %d3 = call ptr @memcpy(ptr %u.at, ptr %users, i64 %user_bytes)
  %u.next = add i64 %u, 1
  br label %begin
ready:
  %d2 = call ptr @memset(ptr %lds, i32 0, i64 %lds_bytes)
  call void %run(ptr %context, ptr %states, i64 %stride, i64 %waves)
  br label %wave
wave:
  %w = phi i64 [ 0, %ready ], [ %w.next, %ended ]
  %used = phi i64 [ 0, %ready ], [ %used.next, %ended ]
  %w.more = icmp ult i64 %w, %waves
  br i1 %w.more, label %look, label %outside
look:
  %w.row = mul i64 %w, %stride
  %w.at = getelementptr i8, ptr %states, i64 %w.row
  %status.at = getelementptr i32, ptr %w.at, i64 {STATUS}
  %status = load i32, ptr %status.at
  %end = icmp eq i32 %status, {END}
  br i1 %end, label %ended, label %left
ended:
  %left.at = getelementptr i32, ptr %w.at, i64 {LEFT}
  %unused = load i64, ptr %left.at
  %had = sub i64 %granted, %unused
  %used.next = add i64 %used, %had
  %w.next = add i64 %w, 1
  br label %wave
outside:
  %s = phi i64 [ 0, %wave ], [ %s.next, %site ]
  %s.more = icmp ult i64 %s, %site_count
  br i1 %s.more, label %site, label %over
site:
  %s.at = getelementptr ptr, ptr %sites, i64 %s
  %lanes.at = load ptr, ptr %s.at
  %lanes = load i64, ptr %lanes.at
  %s.next = add i64 %s, 1
  %none = icmp eq i64 %lanes, 0
  br i1 %none, label %outside, label %left
left:
  ret i64 {LEFT_OFF}
over:
  %executed.at = getelementptr i64, ptr %r, i64 {NAMES.index("executed")}
  store i64 %used, ptr %executed.at
  ret i64 {ENDED}
}}
"""
_PIECES, _EXECUTED, _USERS, _STATES = map(NAMES.index, ("pieces", "executed", "users", "states"))


@cache
def routine() -> Routine | None:
  """What runs a dispatch again; None where LLVM gave up."""
  try: return Routine("again", _TEXT)
  except CompilerFailed: return None


def alone(stats: DispatchStats) -> bool:
  """Whether compiled code alone ran all waves."""
  return stats.engine == "jit" and not (stats.blocks or stats.interpreted or stats.outside or stats.modelled)


class _First:
  """The states of a cohort's waves before their first instruction: `rows` of one workgroup, as far as they are not 0,
  and `values` of those `columns` in which workgroups differ, for each wave."""

  def __init__(self, states: Any, group: int) -> None:
    length = int(np.flatnonzero(states.any(axis=0))[-1]) + 1
    self.rows, self.group = states[:group, :length].copy(), group
    others = states[:, :length].reshape(-1, group, length) != self.rows
    self.columns = np.flatnonzero(others.any(axis=(0, 1)))
    self.values = np.ascontiguousarray(states[:, self.columns].T)

  def words(self) -> dict[str, int]:
    """Of a record."""
    return {"rows": self.rows.ctypes.data, "row_bytes": self.rows.shape[1] * 4, "group": self.group,
            "columns": self.columns.ctypes.data, "column_count": len(self.columns), "values": self.values.ctypes.data}


class Again:
  """The waves of workgroups that begin together, before their first instruction; of all that a dispatch has, or of the
  next ones (`parts.py`). They have memory of their own, or `raw`, until they are given other (`use`).

  `record` is what the routine takes; the user SGPRs are where its word `users` points.
  """

  def __init__(self, workgroups: Workgroups, memory: Memory, again: Routine, raw: Any = None) -> None:
    self._workgroups, self._space = workgroups, workgroups.space
    self.begun = workgroups.begun
    cohort = self._cohort = workgroups.begin(workgroups.places)
    waves = self.waves = Waves(cohort, memory, raw)
    self.code, self.form, self.program = waves.code, waves.form, waves.code.program
    self._version = workgroups.space.version
    states = waves.states
    self._granted = min(TURN, cohort.watchdog)
    waves.left[:] = self._granted
    first, users = _First(states, cohort.waves_a_group), USER_SGPR.of(workgroups.dispatch.rsrc2)
    self._user_data = np.zeros(max(users, 1), np.uint32)
    sites = waves.sites.ctypes.data + waves.form.lds_sites.astype(np.uint64) * np.uint64(ROW) + np.uint64(OUTSIDE_LANES)
    lds = cohort.lds if cohort.lds_size else np.zeros(0, np.uint8)
    self._memory = first, sites, lds  # kept, as their addresses are
    self.record = Record(
      NAMES, pieces=0, code=0, **first.words(), states=states.ctypes.data, bytes=states.nbytes, waves=waves.size,
      stride=states.shape[1] * 4, users=self._user_data.ctypes.data, user_bytes=users * 4,
      run=waves.form.native.address, context=waves.context.ctypes.data, lds=lds.ctypes.data, lds_bytes=lds.nbytes,
      sites=sites.ctypes.data, site_count=len(sites), granted=self._granted, executed=0)
    self._call, self.address = again.call, again.address
    self._users, self.kept = users, -1
    self._live, self._arrived = cohort.live.copy(), cohort.arrived.copy()
    self.stats = DispatchStats(waves=waves.size, engine="jit")

  def use(self, raw: Any) -> None:
    """Have the registers in other memory from the next run on."""
    self.waves.use(raw)
    self.record.words[_STATES] = raw.ctypes.data

  @staticmethod
  def fits(workgroups: Workgroups) -> bool:
    """Whether all workgroups begin together, and are small enough to be kept."""
    w, d = workgroups, workgroups.dispatch
    if not 0 < w.total <= min(w.usual, w.places): return False
    waves = w.total * -(-d.block[0] * d.block[1] * d.block[2] // w.lanes)
    return waves * w.lanes * 256 + w.total * d.lds_size // 4 <= LARGEST * 4

  def stands(self) -> bool:
    """Whether the mappings and the compiled form are what this was made from; a run finds out about the code."""
    if self._space.version != self._version or self.code.form is not self.form: return False
    return self.program.kept == self.kept or self._look()

  def _look(self) -> bool:
    """Other pieces of the program have been decoded: what is to be compared is another."""
    held = self.program.held()
    if not held: return False
    self._code = [(np.frombuffer(view, np.uint8), np.frombuffer(data, np.uint8)) for view, data in held]
    rows = [(view.ctypes.data, data.ctypes.data, len(data)) for view, data in self._code]
    self._rows = np.array(rows, np.uint64)
    words = self.record.words
    words[_PIECES], words[NAMES.index("code")] = len(rows), self._rows.ctypes.data
    self.kept = self.program.kept
    return True

  def same_code(self) -> bool:
    """Whether the code in memory is what was compiled."""
    return all(np.array_equal(view, data) for view, data in self._code)

  def trust(self) -> None:
    """The next run need not compare the code: somebody has."""
    self.record.words[_PIECES] = 0

  def run(self, user_data: tuple[int, ...]) -> int:
    """Run the waves: ENDED, and `stats` says what they executed; LEFT_OFF: go on with `rest`; STALE: nothing was done.
    """
    how = self.enter(user_data)
    if how == ENDED:
      self.stats.instructions = executed = self.executed()
      self.code.ran(executed)
    elif how == LEFT_OFF: self.check()
    return how

  def enter(self, user_data: tuple[int, ...]) -> int:
    """`run` for who looks after the rest."""
    self._user_data[:self._users] = user_data[:self._users]
    self.record.words[_USERS] = self._user_data.ctypes.data
    how: int = self._call(self.record.argument)
    return how

  def executed(self) -> int:
    """Instructions of the last run to the end."""
    return self.record.words[_EXECUTED]

  def check(self) -> None:
    """Raises what ended the waves, where something did."""
    if self.waves.error is not None: raise self.waves.error

  def rest(self, tick: Any) -> tuple[DispatchStats, Iterator[Idle | None]]:
    """After `run`, which has not ended: the turns that are left, as the dispatch's other way of running has them."""
    w, run = self._workgroups, Run(self._workgroups, self._workgroups.dispatch.user_data, tick)
    run.stats.waves = self.waves.size
    return run.stats, CompiledDispatch(w, entered=[self.go_on(run)]).turns()

  def go_on(self, run: Run) -> tuple[Waves, Any]:
    """The waves as a run has left them, with what it granted them."""
    cohort, waves = self._cohort, self.waves
    cohort.stats, cohort.changes, cohort.shared, cohort.tick = run.stats, run.changes, run.shared, run.tick
    cohort.left, cohort.live, cohort.arrived = waves.size, self._live.copy(), self._arrived.copy()
    waves.entered()
    return waves, np.full(waves.size, self._granted)


class Run:
  """One run of a dispatch's workgroups that are used for all: what belongs to it alone."""

  def __init__(self, w: Workgroups, user_data: tuple[int, ...], tick: Any) -> None:
    w.stats = self.stats = DispatchStats(engine="jit")
    w.changes = self.changes = Changes()
    self.shared, self.tick = Shared(gds.of(w.space, w.arch.gds_size)), tick
    w.renew(user_data, tick, self.shared)
