"""A dispatch that compiled code ran to its end, made ready to be run again with other user SGPRs.

Nearly every dispatch of a program that computes much with small kernels is one that was run before: same code, sizes
and registers, other arguments. Its first state is kept, so that another run is one call (`_TEXT`): the code in memory
is compared with what was compiled, the state copied, and compiled code called. What else it depends on is asked before
(`serves`): whether the mappings and the compiled form are those of before.
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
from tinyhw.emulator.jit.amdgcn.launch import Launch
from tinyhw.emulator.jit.amdgcn.run import TURN, Waves
from tinyhw.emulator.jit.amdgcn.state import LEFT, STATUS
from tinyhw.emulator.jit.amdgcn.translate import END
from tinyhw.emulator.jit.memory import Memory
from tinyhw.emulator.jit.refusal import CompilerFailed
from tinyhw.emulator.jit.routine import Record, Routine, loaded
from tinyhw.emulator.schedule import Idle
from tinyhw.emulator.simt import Changes

LARGEST: Final = 1 << 16  # dwords of registers and LDS of a dispatch that is kept
STALE, ENDED, LEFT_OFF = range(3)  # of a run: nothing was done, for the code is another; all waves have ended; not all
_CODE_ROW: Final = 3  # words of a piece of code: where it is, what it held, bytes
NAMES: Final = ("pieces", "code", "first", "states", "bytes", "waves", "stride", "users", "user_bytes", "run",
                "context", "lds", "lds_bytes", "sites", "site_count", "granted", "executed")
_TEXT: Final = f"""
declare i32 @memcmp(ptr, ptr, i64)
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @memset(ptr, i32, i64)

define i64 @again(ptr %r) {{
{loaded(NAMES, pieces="i64", code="ptr", first="ptr", states="ptr", bytes="i64", waves="i64", stride="i64", users="ptr",
        user_bytes="i64", run="ptr", context="ptr", lds="ptr", lds_bytes="i64", sites="ptr", site_count="i64",
        granted="i64")}
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
  %d0 = call ptr @memcpy(ptr %states, ptr %first, i64 %bytes)
  br label %user
user:
  %u = phi i64 [ 0, %fresh ], [ %u.next, %give ]
  %u.more = icmp ult i64 %u, %waves
  br i1 %u.more, label %give, label %ready
give:
  %u.row = mul i64 %u, %stride
  %u.at = getelementptr i8, ptr %states, i64 %u.row
  %d1 = call ptr @memcpy(ptr %u.at, ptr %users, i64 %user_bytes)
  %u.next = add i64 %u, 1
  br label %user
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
_EXECUTED, _USERS = NAMES.index("executed"), NAMES.index("users")


@cache
def routine() -> Routine | None:
  """What runs a dispatch again; None where LLVM gave up."""
  try: return Routine("again", _TEXT)
  except CompilerFailed: return None


def alone(stats: DispatchStats) -> bool:
  """Whether compiled code alone ran all waves."""
  return stats.engine == "jit" and not (stats.blocks or stats.interpreted or stats.outside or stats.modelled)


class Again:
  """The waves of a dispatch whose workgroups all begin together, before their first instruction.

  `record` is what the routine takes; the user SGPRs are where its word `users` points.
  """

  def __init__(self, workgroups: Workgroups, memory: Memory, again: Routine) -> None:
    self._workgroups, self._space = workgroups, workgroups.space
    cohort = self._cohort = workgroups.begin(workgroups.places)
    waves = self._waves = Waves(cohort, memory)
    self.code, self.form, self.program = waves.code, waves.form, waves.code.program
    self._version = workgroups.space.version
    states = waves.states
    self._granted = min(TURN, cohort.watchdog)
    states[:, LEFT:LEFT + 2].view(np.int64)[:, 0] = self._granted
    first, users = states.copy(), USER_SGPR.of(workgroups.dispatch.rsrc2)
    self._user_data = np.zeros(max(users, 1), np.uint32)
    sites = waves.sites.ctypes.data + waves.form.lds_sites.astype(np.uint64) * np.uint64(ROW) + np.uint64(OUTSIDE_LANES)
    lds = cohort.lds if cohort.lds_size else np.zeros(0, np.uint8)
    self._memory = first, sites, lds  # kept, as their addresses are
    self.record = Record(
      NAMES, pieces=0, code=0, first=first.ctypes.data, states=states.ctypes.data, bytes=states.nbytes,
      waves=waves.size, stride=states.shape[1] * 4, users=self._user_data.ctypes.data, user_bytes=users * 4,
      run=waves.form.native.address, context=waves.context.ctypes.data, lds=lds.ctypes.data, lds_bytes=lds.nbytes,
      sites=sites.ctypes.data, site_count=len(sites), granted=self._granted, executed=0)
    self._call, self.address = again.call, again.address
    self._users, self.kept = users, -1
    self._live, self._arrived = cohort.live.copy(), cohort.arrived.copy()
    self.stats = DispatchStats(waves=waves.size, engine="jit")

  @staticmethod
  def fits(workgroups: Workgroups) -> bool:
    """Whether all workgroups begin together, and are small enough to be kept."""
    w, d = workgroups, workgroups.dispatch
    if not 0 < w.total <= min(w.usual, w.places): return False
    waves = w.total * -(-d.block[0] * d.block[1] * d.block[2] // w.lanes)
    return waves * w.lanes * 256 + w.total * d.lds_size // 4 <= LARGEST * 4

  def serves(self) -> bool:
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
    words[NAMES.index("pieces")], words[NAMES.index("code")] = len(rows), self._rows.ctypes.data
    self.kept = self.program.kept
    return True

  def run(self, user_data: tuple[int, ...]) -> int:
    """Run the waves: ENDED, and `stats` says what they executed; LEFT_OFF: go on with `rest`; STALE: nothing was done.
    """
    self._user_data[:self._users] = user_data[:self._users]
    self.record.words[_USERS] = self._user_data.ctypes.data
    how: int = self._call(self.record.argument)
    if how == ENDED:
      self.stats.instructions = executed = self.executed()
      self.code.ran(executed)
    elif how == LEFT_OFF: self.check()
    return how

  def executed(self) -> int:
    """Instructions of the last run to the end."""
    return self.record.words[_EXECUTED]

  def check(self) -> None:
    """Raises what ended the waves, where something did."""
    if self._waves.error is not None: raise self._waves.error

  def rest(self, tick: Any) -> tuple[DispatchStats, Iterator[Idle | None]]:
    """After `run`, which has not ended: the turns that are left, as the dispatch's other way of running has them."""
    cohort, waves, w = self._cohort, self._waves, self._workgroups
    w.stats = cohort.stats = DispatchStats(waves=waves.size, engine="jit")
    w.changes = cohort.changes = Changes()
    cohort.shared, cohort.tick = Shared(gds.of(w.space, w.arch.gds_size)), tick
    cohort.left, cohort.live, cohort.arrived = waves.size, self._live.copy(), self._arrived.copy()
    waves.entered()
    return w.stats, Launch(w, entered=(waves, np.full(waves.size, self._granted))).turns()
