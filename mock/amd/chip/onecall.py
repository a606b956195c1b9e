"""Submissions that are one call: packets that were planned (`plans.py`), with dispatches that compiled code runs again
to their end (`emulator/jit/amdgcn/repeat.py`).

A native routine compares the words in the ring with those of the plan, copies user data, runs the dispatches, stores
what packets release and the read pointer. It does nothing where a word differs; where a dispatch does not end at once,
the queue goes on with it as it does with any other. What it depends on beside words and code is asked before each call:
mappings, registers, observers, what threads want of their dispatches.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tinyhw.core.errors import PageFault
from tinyhw.core.memory import Access
from tinyhw.mock.amd.chip.compute import CYCLES_PER_INSTRUCTION, Shader
from tinyhw.mock.amd.chip.plans import Await, Dispatch, Nothing, Plan, Registers, Release, UserData
from tinyhw.mock.amd.chip.queue import State

if TYPE_CHECKING:
  from tinyhw.emulator.engines.amdgcn import Repeated
  from tinyhw.emulator.jit.amdgcn.repeat import Again
  from tinyhw.emulator.jit.routine import Routine
  from tinyhw.mock.amd.chip.planning import Planning
  from tinyhw.mock.amd.chip.queue import Properties

_BLOCKED: Final = State.BLOCKED  # asked for often
NAMES: Final = ("words", "template", "mask", "ring", "ring_words", "actions", "user_data", "pointer", "shown", "taken",
                "executed", "ns", "how")
_TAKEN, _EXECUTED, _NS, _HOW = map(NAMES.index, ("taken", "executed", "ns", "how"))
# What the routine does, in this order: rows of six words, the first of which says what. AWAIT: memory must have reached
# the word of a place of the submission, under a mask; these come first, and where one has to wait nothing was done.
# USERS: words from a place to memory, bytes. RUN: a dispatch with the user data that there is: its record, what runs
# that, waves, how its instructions become time. STORE: 64 bits from a place to memory. OVER: the read pointer.
OVER, USERS, RUN, STORE, AWAIT = range(5)
ROW: Final = 6


@cache
def routine() -> Routine | None:
  """What runs a submission; None where LLVM gave up."""
  from tinyhw.emulator.jit.amdgcn.repeat import ENDED
  from tinyhw.emulator.jit.amdgcn.repeat import NAMES as again
  from tinyhw.emulator.jit.refusal import CompilerFailed
  from tinyhw.emulator.jit.routine import Routine, loaded
  text = f"""
declare ptr @memcpy(ptr, ptr, i64)

define i64 @submission(ptr %r) {{
{loaded(NAMES, words="i64", template="ptr", mask="ptr", ring="ptr", ring_words="i64", actions="ptr", user_data="ptr",
        pointer="ptr", shown="ptr", taken="i64")}
  %most = sub i64 %ring_words, 1
  %from = and i64 %taken, %most
  %to = add i64 %from, %words
  %whole = icmp ule i64 %to, %ring_words
  %first = getelementptr i32, ptr %ring, i64 %from
  br i1 %whole, label %next.word, label %other
next.word:
  %i = phi i64 [ 0, %0 ], [ %i.next, %word ]
  %some = icmp ult i64 %i, %words
  br i1 %some, label %word, label %begin
word:
  %there.at = getelementptr i32, ptr %first, i64 %i
  %there = load i32, ptr %there.at
  %wanted.at = getelementptr i32, ptr %template, i64 %i
  %wanted = load i32, ptr %wanted.at
  %bits.at = getelementptr i32, ptr %mask, i64 %i
  %bits = load i32, ptr %bits.at
  %differs = xor i32 %there, %wanted
  %matters = and i32 %differs, %bits
  %i.next = add i64 %i, 1
  %same = icmp eq i32 %matters, 0
  br i1 %same, label %next.word, label %other
other:
  ret i64 -1
begin:
  %executed.at = getelementptr i64, ptr %r, i64 {_EXECUTED}
  store i64 0, ptr %executed.at
  %ns.at = getelementptr i64, ptr %r, i64 {_NS}
  store i64 0, ptr %ns.at
  br label %act
act:
  %k = phi i64 [ 0, %begin ], [ %k.next, %users ], [ %k.next, %ended ], [ %k.next, %store ], [ %k.next, %await ]
  %k.next = add i64 %k, 1
  %place = mul i64 %k, {ROW}
  %a0 = getelementptr i64, ptr %actions, i64 %place
  %what = load i64, ptr %a0
  %a1 = getelementptr i64, ptr %a0, i64 1
  %one = load i64, ptr %a1
  %a2 = getelementptr i64, ptr %a0, i64 2
  %two = load ptr, ptr %a2
  %a3 = getelementptr i64, ptr %a0, i64 3
  %three = load i64, ptr %a3
  %data = getelementptr i32, ptr %first, i64 %one
  switch i64 %what, label %over [ i64 {USERS}, label %users  i64 {RUN}, label %run  i64 {STORE}, label %store
    i64 {AWAIT}, label %await ]
users:
  %copied = call ptr @memcpy(ptr %two, ptr %data, i64 %three)
  br label %act
await:
  %reference = load i32, ptr %data
  %now = load i32, ptr %two
  %mask32 = trunc i64 %three to i32
  %seen = and i32 %now, %mask32
  %met = icmp uge i32 %seen, %reference
  br i1 %met, label %act, label %other
store:
  %value = load i64, ptr %data, align 4
  store i64 %value, ptr %two
  br label %act
run:
  %record = inttoptr i64 %one to ptr
  %users.at = getelementptr i64, ptr %record, i64 {again.index("users")}
  store ptr %user_data, ptr %users.at
  %how = call i64 %two(ptr %record)
  %good = icmp eq i64 %how, {ENDED}
  br i1 %good, label %ended, label %left
left:
  %how.at = getelementptr i64, ptr %r, i64 {_HOW}
  store i64 %how, ptr %how.at
  ret i64 %k
ended:
  %done.at = getelementptr i64, ptr %record, i64 {again.index("executed")}
  %done = load i64, ptr %done.at
  %before = load i64, ptr %executed.at
  %sum = add i64 %before, %done
  store i64 %sum, ptr %executed.at
  %a4 = getelementptr i64, ptr %a0, i64 4
  %scale = load i64, ptr %a4
  %a5 = getelementptr i64, ptr %a0, i64 5
  %clock = load i64, ptr %a5
  %each = udiv i64 %done, %three
  %cycles = mul i64 %each, %scale
  %time = udiv i64 %cycles, %clock
  %earlier = load i64, ptr %ns.at
  %later = add i64 %earlier, %time
  store i64 %later, ptr %ns.at
  br label %act
over:
  %length = shl i64 %words, 2
  %noted = call ptr @memcpy(ptr %shown, ptr %first, i64 %length)
  %read = add i64 %taken, %words
  %read.low = trunc i64 %read to i32
  store i32 %read.low, ptr %pointer
  ret i64 %k
}}
"""
  try: return Routine("submission", text)
  except CompilerFailed: return None


@dataclass(frozen=True)
class CallPart:
  """The packets up to a dispatch, or all of them: what they change of the queue beside user data."""

  packets: int
  counted: tuple[tuple[tuple[str, str, str], int], ...]
  registers: dict[int, int]
  writes: int  # packets that write such


@dataclass(frozen=True)
class Started:
  """A dispatch among the packets: where it is (place, end), what it runs."""

  at: int
  end: int
  dispatch: Dispatch
  program: Shader
  repeated: Repeated
  again: Again
  before: CallPart  # with the dispatch's own packet


class Submitted:
  """Words that a call has executed, for those who ask for them; `taken` is where they began."""

  __slots__ = ("_ring", "_words", "taken")

  def __init__(self, ring: Properties, count: int) -> None:
    self._ring, self._words, self.taken = ring, np.zeros(count, np.uint32), 0

  @property
  def place(self) -> int:
    """The host's address of what the routine notes them in."""
    return self._words.ctypes.data

  @property
  def address(self) -> int:
    return self._ring.ring_address + self.taken * 4 % self._ring.ring_size

  @property
  def words(self) -> list[int]:
    words: list[int] = self._words.tolist()
    return words


class OneCall:
  """See the module. `then` is the one that followed the last time."""

  def __init__(self, queue: Planning, plan: Plan, before: Shader | None, starts: dict[int, Started], whole: CallPart,
               actions: list[tuple[int, ...]], native: Routine) -> None:
    from tinyhw.emulator.jit.routine import Record
    self.queue, self.machine, self.space, self.plan = queue, queue.machine, queue.space, plan
    self.before, self.starts, self.whole = before, starts, whole
    self.then = self  # as long as nothing else has
    self.version, self.size, self.packets = self.space.version, len(plan.words), whole.packets
    self.dispatches = tuple((s.repeated, s.again, s.again.code, s.again.form, s.again.program, s.again.kept)
                            for s in starts.values())
    self.last, self._writes = list(starts.values())[-1], whole.writes
    template, mask = np.array(plan.words, np.uint32), np.zeros(self.size, np.uint32)
    mask[list(plan.deciding)] = 0xFFFF_FFFF
    rows = np.array([[*a, *[0] * (ROW - len(a))] for a in actions], np.uint64)
    self._over = len(actions) - 1
    p = queue.properties
    self._submitted = Submitted(p, self.size)
    ring, pointer = self.space.view(p.ring_address, p.ring_size), self.space.view(p.read_pointer, 4, Access.WRITE)
    self._memory = template, mask, rows, ring, pointer
    self._record = Record(
      NAMES, words=self.size, template=template.ctypes.data, mask=mask.ctypes.data, ring=ring.ctypes.data,
      ring_words=p.ring_size >> 2, actions=rows.ctypes.data, user_data=ctypes.addressof(queue.user_data),
      pointer=pointer.ctypes.data, shown=self._submitted.place, taken=0, executed=0, ns=0, how=0)
    self._call, self._argument, self._words = native.call, self._record.argument, self._record.words
    self._shown = self._submitted, plan.parts[-1][0] if plan.parts else 0

  def stands(self) -> bool:
    """Whether mappings and dispatches are what this was made from."""
    return self.space.version == self.version and not any(
      repeated.again is not again or code.form is not form or program.kept != kept
      for repeated, again, code, form, program, kept in self.dispatches)

  def run(self, packets: int) -> int:
    """Execute the next words of the ring, where they are these; how many packets it were. No more than so many, where
    another queue could come between them, or waits."""
    queue, machine, words = self.queue, self.machine, self._words
    taken, before = queue.taken, self.before
    if queue.write - taken < self.size or self.space.version != self.version or (
        machine.agreed or machine.observer is not None or machine.trace.enabled or machine.executor is not None or
        machine.draws is not None or machine.watched):
      return 0
    if packets < self.packets and not self._lone():
      return 0
    if before is not None:  # the registers have to be those that made it
      last = queue.program
      if last is None or last[1] is not before or last[0][2] != queue.settings_version:
        return 0
    for repeated, again, code, form, program, kept in self.dispatches:
      if repeated.again is not again or code.form is not form or program.kept != kept:
        return 0
    words[_TAKEN] = taken
    stopped = self._call(self._argument)
    self._submitted.taken = taken
    if stopped != self._over:
      return self._left(stopped, words[_HOW]) if stopped >= 0 else 0
    queue.taken = queue.read = queue.reported = taken + self.size
    queue.last = self._shown
    self._account(self.whole)
    if self._writes:
      last_one = self.last
      version = queue.settings_version - self._writes + last_one.before.writes
      queue.program = (last_one.dispatch.initiator, self.version, version), last_one.program
    for _, again, code, *_ in self.dispatches:
      if code.counts:
        code.ran(again.executed())
    queue.latest = self
    queue.expected = self.then
    return self.packets

  def _lone(self) -> bool:
    """Whether no other queue runs or waits."""
    machine = self.machine
    return machine.lone and not any(queue.state is _BLOCKED for queue in machine.queues)

  def _account(self, part: CallPart) -> None:
    """Packets were executed: the queue, the clock and the record are told."""
    queue, machine, words = self.queue, self.machine, self._words
    queue.packets += part.packets
    machine.executed += words[_EXECUTED]
    machine.clock.advance(part.packets * machine.packet_ns + words[_NS])
    counts = machine.ignored.counts
    for what, n in part.counted:
      counts[what] += n
    if part.writes:
      queue.registers.update(part.registers)
      queue.settings_version += part.writes

  def _left(self, action: int, how: int) -> int:
    """A dispatch has not ended, or its code is another: the queue goes on with it."""
    from tinyhw.emulator.jit.amdgcn.repeat import LEFT_OFF
    start = self.starts[action]
    self._account(start.before)
    self.queue.go_on_from(start.at, start.end)
    if how == LEFT_OFF:
      start.repeated.left(start.again)
    self.queue.dispatched(start.dispatch)
    return start.before.packets


def call_for(queue: Planning, plan: Plan, before: Shader | None) -> OneCall | None:
  """A planned submission as one call, where there is a way; `before` is the program of the dispatch before it."""
  if plan.parts is None or not queue.ends_pipes:
    return None
  native = routine()
  if native is None:
    return None
  settings = {} if before is None else queue.settings_of(before)
  if settings is None:
    return None
  registers, counted, writes = dict[int, int](), Counter[tuple[str, str, str]](), 0
  actions, starts = list[tuple[int, ...]](), dict[int, Started]()
  version, card = queue.space.version, queue.gpu.card

  def so_far(packets: int) -> CallPart:
    return CallPart(packets, tuple(counted.items()), dict(registers), writes)

  for number, (at, end, part) in enumerate(plan.parts, 1):
    if isinstance(part, Nothing):
      if part.counted is not None:
        counted[part.counted] += 1
    elif isinstance(part, UserData):
      actions.append((USERS, at + 2, ctypes.addressof(queue.user_data) + 4 * part.first, 4 * part.count))
    elif isinstance(part, Registers):
      writes += 1
      for offset, value, why in part.pairs:
        registers[offset] = settings[offset] = value
        if why is not None:
          counted["register", queue.known.name_of(offset), why] += 1
    elif isinstance(part, Await):
      if any(action[0] != AWAIT for action in actions):
        return None
      try:
        place = queue.space.view(part.address, 4)
      except PageFault:
        return None
      actions.append((AWAIT, at + 4, place.ctypes.data, part.mask))
    elif isinstance(part, Release):
      try:
        place = queue.space.view(part.address, 8, Access.WRITE)
      except PageFault:
        return None
      actions.append((STORE, at + 5, place.ctypes.data))
    else:
      program = queue.programs.get((part.initiator, version, *map(settings.get, queue.known.settings)))
      repeated = queue.repeated.get((program, part.size)) if program is not None and program.plain else None
      again = repeated.ready() if repeated is not None else None
      if program is None or repeated is None or again is None:
        return None
      waves = again.stats.waves
      scale = -(-waves // card.simds) * CYCLES_PER_INSTRUCTION * 1000
      starts[len(actions)] = Started(at, end, part, program, repeated, again, so_far(number))
      actions.append((RUN, again.record.address, again.address, waves, scale, card.engine_clock))
  if not starts:
    return None
  actions.append((OVER,))
  return OneCall(queue, plan, before, starts, so_far(len(plan.parts)), actions, native)
