"""The kernel debugger: a dispatch that runs on the reference interpreter and stands where it is told to."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from tinyhw.arch import Arch
from tinyhw.core.errors import Error, InvalidArgument, MachineFault, PageFault
from tinyhw.core.memory import AddressSpace
from tinyhw.core.source import Source, Variable
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.debug import snapshot as snapshots
from tinyhw.emulator.debug.breaks import Break, MemoryBreak, MnemonicBreak, PlaceBreak, Watch
from tinyhw.emulator.debug.code import Code, Line
from tinyhw.emulator.debug.engine import Engine
from tinyhw.emulator.debug.expression import Expression
from tinyhw.emulator.debug.snapshot import Snapshot
from tinyhw.emulator.debug.stop import Frame, Stop
from tinyhw.emulator.debug.watcher import Watcher
from tinyhw.emulator.debug.wave import TYPES, Wave, WaveInfo
from tinyhw.emulator.simt import Cohort, Group

WATCHDOG: Final = 100_000_000
Done = Callable[[], "str | None"]


@dataclass
class Debugger(ABC):
  """A dispatch under control. It stands before its first instruction; `run` and the step methods say why they stood.

  `symbols` has the address of each name, `ranges` where code is, `places` names memory: (name, start, size). With a
  `checker` the run also stands at each new finding of its checks; `source` is what debug information says of the code,
  `arguments` where the kernel's are in memory, and their size. `close` drops the run; leaving a `with` block does too.

      with tinyhw.debug(binary, "add", (1,), (64,), [a, b, out]) as d:
        d.break_at("add+0x10")
        print(d.run(), d.wave.v(0))
  """
  space: AddressSpace
  arch: Arch
  dispatch: Any  # the emulator's Dispatch
  symbols: Mapping[str, int] = field(default_factory=dict)
  ranges: Iterable[tuple[int, int]] = ()
  places: Iterable[tuple[str, int, int]] = ()
  watchdog: int = WATCHDOG
  checker: Checker | None = None
  closing: Callable[[], Any] = lambda: None
  source: Source | None = None
  arguments: Mapping[str, tuple[int, int]] = field(default_factory=dict)
  unit: ClassVar[str]  # how the vendor calls a wave
  names: ClassVar[tuple[str, str]]  # and a workgroup

  def __post_init__(self) -> None:
    self.code = self._code()
    self.places = list(self.places)
    self.code.arguments = self.arguments
    self.code.data = {name: start for name, start, _ in self.places}
    self.breaks: dict[int, Break] = {}
    self.snapshots: dict[int, Snapshot] = {}
    self._next_number = self._next_snapshot = 1
    self._watcher = Watcher(self.checker)
    self._findings: set[tuple[str, int, int | None]] = set()
    self.engine = self._engine()
    self._watcher.keeper = self.engine.keeper
    self._shown: set[int] = set()  # waves whose stop at their place was reported
    self._interrupted = self.closed = False
    self.focus = 0
    self._quick: dict[int, list[Break]] = {}
    self.last = Stop("start", "", 0)
    picked = self.engine.pick()
    self.last = self._end() if picked is None else self._stop("start", "", picked[1], 0)

  # ---- what the vendor knows

  @abstractmethod
  def _code(self) -> Code:
    """The code that it runs."""

  @abstractmethod
  def _engine(self) -> Engine:
    """What runs it."""

  @abstractmethod
  def view(self, wave: int) -> Wave:
    """A wave by its number in the dispatch: workgroup * waves of a workgroup + wave of the workgroup."""

  @abstractmethod
  def backtrace(self, wave: int | None = None) -> list[Frame]:
    """Where a wave is, then each call that it has not returned from, inlined ones too, the latest first."""

  @abstractmethod
  def finish(self) -> Stop:
    """Go on until the function that the wave in focus is in returns; without a call, until the wave ends."""

  @abstractmethod
  def _depth(self, wave: int) -> int:
    """How many calls a wave is in."""

  @abstractmethod
  def _over_call(self, address: int, depth: int) -> Stop:
    """Go on until the call that the wave in focus stands at has returned to an address."""

  def _follow_calls(self, i: Any, pc: int, waves: list[int]) -> None:
    """Waves have executed a call or a return."""
    return None

  def _calls_kept(self) -> Any:
    """What a snapshot keeps of the calls that waves are in, besides their own state."""
    return None

  def _calls_back(self, kept: Any) -> None:
    """Go back to what `_calls_kept` gave."""
    return None

  # ---- life

  def __enter__(self) -> Debugger: return self

  def __exit__(self, *_: object) -> None: self.close()

  def close(self) -> None:
    """Drop the run, wherever it stands."""
    if self.closed: return
    self.closed = True
    self.closing()

  def interrupt(self) -> None:
    """Make the run stand at the next instruction; for signal handlers and other threads."""
    self._interrupted = True

  @property
  def ended(self) -> bool:
    """Whether every wave has ended."""
    return self.last.reason == "end"

  def _live(self) -> None:
    if self.closed: raise InvalidArgument("this debugger is closed")
    if self.ended: raise InvalidArgument("the dispatch has ended", hint="launch it again, or restore a snapshot")

  # ---- breakpoints

  def _add(self, b: Break) -> Break:
    there = {v.name for a in getattr(b, "addresses", ()) for v in self.code.variables(a)}
    if b.condition is not None and not b.condition.names & there and self.engine.find(self.focus) is not None:
      try: b.condition.true(self.wave, self.code)  # a bad name is told now, not when the run comes by
      except PageFault: pass  # its address may be good when it counts
    b.names = self.names
    b.number, self._next_number = self._next_number, self._next_number + 1
    self.breaks[b.number] = b
    self._changed_breaks()
    return b

  def _changed_breaks(self) -> None:
    self._quick.clear()
    self._watcher.ranges = [b for b in self.breaks.values() if isinstance(b, MemoryBreak)]

  @staticmethod
  def _limits(condition: str | None, limits: dict[str, Any]) -> dict[str, Any]:
    return {"condition": Expression(condition) if condition else None, **limits}

  def break_at(self, place: str | int, condition: str | None = None, **limits: Any) -> Break:
    """Stand before the instruction at "add+0x10", "+0x10" (from the kernel's entry), ".L1" or an address, or where the
    code of a line starts: "bugs.c:5", or "5" in the file that is looked at.

    `limits`: wave=, workgroup=, lane= (numbers), ignore= (how often to only count), temporary=.
    """
    text = place if isinstance(place, str) else f"{place:#x}"
    line = self.code.lines_at(text)
    if line is None:
      address = self.code.instruction_at(text)
      line = self.code.where(address), (address,)
    return self._add(PlaceBreak(0, **self._limits(condition, limits), addresses=line[1], place=line[0]))

  def break_on(self, pattern: str, condition: str | None = None, **limits: Any) -> Break:
    """Stand before instructions whose mnemonic fits a pattern: "s_barrier", "v_exp_*". See `break_at` for limits."""
    made = MnemonicBreak(0, **self._limits(condition, limits), pattern=pattern)
    if not any(made.fits(m) for m in self.code.mnemonics):
      raise InvalidArgument(f"no instruction of {self.arch.name} is called {pattern!r}", hint="v_exp_* is a pattern")
    return self._add(made)

  def break_memory(self, start: int, size: int = 4, access: str = "rw", segment: str = "global",
                   condition: str | None = None, **limits: Any) -> Break:
    """Stand after an instruction that reads ("r"), writes ("w") or does either ("rw") to memory or to "lds"."""
    if segment not in {"global", "lds"}: raise InvalidArgument(f"no memory is called {segment!r}", hint="global or lds")
    made = MemoryBreak(0, **self._limits(condition, limits), segment=segment, start=start, size=size, access=access)
    return self._add(made)

  def watch(self, expression: str, wave: int | None = None, condition: str | None = None, **limits: Any) -> Break:
    """Stand after an instruction that changed the expression's value for a wave (the one in focus by default)."""
    number = self.focus if wave is None else wave
    made = Watch(0, **self._limits(condition, limits), expression=Expression(expression), of=number)
    made.changed(self.view(number), self.code)
    return self._add(made)

  def delete(self, number: int) -> None:
    """Forget a breakpoint or watch."""
    if self.breaks.pop(number, None) is None: raise self._no_break(number)
    self._changed_breaks()

  def enable(self, number: int, on: bool = True) -> None:
    """Switch a breakpoint or watch on or off."""
    if number not in self.breaks: raise self._no_break(number)
    self.breaks[number].enabled = on

  def _no_break(self, number: int) -> InvalidArgument:
    there = ", ".join(map(str, self.breaks)) or "none"
    return InvalidArgument(f"no breakpoint {number}", hint=f"there are {there}")

  # ---- running

  def run(self, done: Done | None = None) -> Stop:
    """Go on until a breakpoint, a fault or the end. `done`, asked after each instruction, gives a reason to stand."""
    self._live()
    self._interrupted = False
    while True:
      try: picked = self.engine.pick()
      except Error as error: return self._fault(error, None)
      if picked is None: return self._end()
      stop = self._before(*picked) or self._execute(*picked)
      if stop is not None: return stop
      if done is not None and (text := done()) is not None: return self._stand("step", text)

  cont = run

  def _before(self, cohort: Cohort, group: Group) -> Stop | None:
    if self._interrupted:
      self._interrupted = False
      return self._stop("interrupted", "interrupted", group)
    if not self.breaks: return None
    pc = group.pc
    found = self._quick.get(pc)
    if found is None: found = self._quick[pc] = self._at(cohort, group)
    for b in found:
      if not b.enabled: continue
      waves, trouble = [], ""
      for w in group.waves.tolist():
        if w in self._shown: continue
        try:
          if b.counts(self.view(w), self.code): waves.append(w)
        except Error as error:
          waves, trouble = [w], f"; its condition cannot be told: {error}"
          break
      if not waves: continue
      self._shown.update(waves)
      if b.hit() or trouble: return self._stop("breakpoint", f"breakpoint {b.number}, {b}{trouble}", group, waves[0], b)
    return None

  def _at(self, cohort: Cohort, group: Group) -> list[Break]:
    """Breakpoints that an instruction may meet, wherever they are switched on."""
    try: i = self.engine.bound(cohort, group.pc, group.mode)[0]
    except Error: return []  # it is told when it is executed
    return [b for b in self.breaks.values() if isinstance(b, PlaceBreak) and group.pc in b.addresses
            or isinstance(b, MnemonicBreak) and b.fits(i.mnemonic)]

  def _execute(self, cohort: Cohort, group: Group, alone: bool = False) -> Stop | None:
    """One instruction of a group; why to stand after it, or None."""
    pc, waves = group.pc, group.waves.tolist()
    if self._shown: self._shown.difference_update(waves)
    hits = self._watcher.hits
    hits.clear()
    try:
      i = self.engine.bound(cohort, pc, group.mode)[0]
      self.engine.execute(cohort, group, alone)
    except Error as error:
      if isinstance(error, MachineFault): cohort.located(error, pc, group)  # there may be no instruction to execute
      return self._fault(error, group)
    if i.mnemonic in self.code.calls or i.mnemonic in self.code.returns: self._follow_calls(i, pc, waves)
    if self.checker is not None and len(self.checker.last) > len(self._findings): return self._found(waves)
    for b, wave, lane, address, access in hits:
      trouble = self._counts_after(b, wave) if b.enabled else None
      if trouble is None or not (b.hit() or trouble): continue
      text = (f"breakpoint {b.number}, {b}: {access.kind} of {access.width} bytes at {self.place(address)} by lane "
              f"{lane} of {self.unit} {wave}, {self.code.where(pc)}{trouble}")
      return self._stand("memory" if b.segment == "global" else "lds", text, wave, b)
    for w in self.breaks.values():
      if not isinstance(w, Watch) or not w.enabled: continue
      if w.of not in waves and not w.expression.reads_memory: continue
      if self.engine.find(w.of) is None: continue
      try: change = w.changed(self.view(w.of), self.code)
      except Error as error:
        w.enabled = False
        return self._stand("watch", f"watch {w.number} is off: {error}, after {self.code.where(pc)}", w.of, w)
      trouble = self._counts_after(w, w.of) if change is not None else None
      if trouble is None or not (w.hit() or trouble): continue
      text = f"watch {w.number}, {w.expression.text}: {change}, by {self.code.where(pc)}{trouble}"
      return self._stand("watch", text, w.of, w)
    return None

  def _found(self, waves: list[int]) -> Stop:
    """Stand after an instruction of which the checks have found something new."""
    assert self.checker is not None
    fresh = [f for f in self.checker.last if (f.kind, f.pc, f.other_pc) not in self._findings]
    self._findings.update((f.kind, f.pc, f.other_pc) for f in fresh)
    first = fresh[0]
    wave = waves[0]
    if first.workgroup is not None and first.wave is not None:
      wave = first.workgroup * self.engine.waves_a_group + first.wave
    return self._stand("check", "; ".join(f"check {f}" for f in fresh), wave)

  def _counts_after(self, b: Break, wave: int) -> str | None:
    """Conditions after an instruction: None where they do not hold, else what went wrong with them ("" nothing).

    A wave that has just ended has no registers to ask for.
    """
    if self.engine.find(wave) is None: return "" if b.condition is None and b.lane is None else None
    try: return "" if b.counts(self.view(wave), self.code) else None
    except Error as error: return f"; its condition cannot be told: {error}"

  # ---- stopping

  def _stop(self, reason: str, text: str, group: Group, wave: int | None = None, b: Break | None = None,
            error: Error | None = None) -> Stop:
    """Stand with the waves of a group; the wave looked at stays the same where it is one of them."""
    waves = tuple(group.waves.tolist())
    self.focus = wave if wave is not None else self.focus if self.focus in waves else waves[0]
    self.code.here = group.pc
    text = text or f"{self.unit} {self.focus} at {self.code.where(group.pc)}"
    self.last = Stop(reason, text, self.focus, waves, group.pc, b, error)
    return self.last

  def _stand(self, reason: str, text: str, wave: int | None = None, b: Break | None = None) -> Stop:
    """Stand after an instruction, with a wave in focus; where it has ended, with another one."""
    for candidate in (wave, self.focus):
      if candidate is not None and (found := self.engine.find(candidate)) is not None:
        return self._stop(reason, text, found[1], candidate, b)
    group = next((g for _, g, _ in self.engine.groups()), None)
    if group is not None: return self._stop(reason, text, group, int(group.waves[0]), b)
    try: picked = self.engine.pick()
    except Error as error: return self._fault(error, None)
    if picked is None: return replace(self._end(), text=f"{text}; every {self.unit} has ended")
    return self._stop(reason, text, picked[1], None, b)

  def _fault(self, error: Error, group: Group | None) -> Stop:
    if group is None:
      wave = error.wave if isinstance(error, MachineFault) else None
      found = None if wave is None else self.engine.find(wave)
      group = found[1] if found is not None else next((g for _, g, _ in self.engine.groups()))
    wave = getattr(error, "wave", None)
    return self._stop("fault", f"{type(error).__name__}: {error}", group, wave if wave in group.waves else None, None,
                      error)

  def _end(self) -> Stop:
    n = self.engine.stats.instructions
    self.last = Stop("end", f"the dispatch has ended: {self.engine.stats.waves} {self.unit}s, {n:,} "
                     f"{self.unit} instructions")
    return self.last

  # ---- steps

  def _focused(self) -> tuple[Cohort, Group, int] | Stop:
    """Where the wave in focus is, ready to execute; a Stop where it cannot."""
    self._live()
    found = self.engine.find(self.focus)
    if found is None:
      raise InvalidArgument(f"{self.unit} {self.focus} has {self.view(self.focus).state}", hint="look at another one")
    cohort, group, row, runs = found
    if not runs:
      return self._stand("barrier", f"{self.unit} {self.focus} waits at a barrier: `next` lets the others go on")
    return cohort, group, row

  def _step(self, count: int, alone: bool) -> Stop:
    self._interrupted = False
    for k in range(count):
      at = self._focused()
      if isinstance(at, Stop): return at
      cohort, group, row = at
      if alone: group = self.engine.isolate(cohort, group, row)
      stop = self._before(cohort, group) if k else None
      self.engine.cohort, self.engine.group = cohort, group
      cohort.budget = max(cohort.budget, 1)
      stop = stop or self._execute(cohort, group, alone)
      if stop is not None: return stop
      if self.engine.find(self.focus) is None: return self._stand("step", f"{self.unit} {self.focus} has ended")
    return self._stand("step", "")

  def stepi(self, count: int = 1) -> Stop:
    """The wave in focus executes instructions alone; all other waves stand."""
    return self._step(count, alone=True)

  def step(self, count: int = 1) -> Stop:
    """The waves that stand together with the one in focus execute instructions; all others stand."""
    return self._step(count, alone=False)

  def next(self, count: int = 1) -> Stop:
    """As `step`, but a call runs to its return, and at a barrier the others run until the wave goes on."""
    stop = self.last
    for _ in range(count):
      found = self.engine.find(self.focus)
      self._live()
      line = None if found is None else self.code.at(found[1].pc)
      name = line.instruction.mnemonic if line is not None and line.instruction is not None else ""
      if found is not None and (not found[3] or name in self.code.barriers):
        stop = self._over_barrier(found[1].pc, found[3])
      elif line is not None and name in self.code.calls:
        stop = self._over_call(line.address + line.size, self._depth(self.focus))
      else: stop = self.step()
      if stop.reason not in {"step", "barrier"}: break
    return stop

  def step_line(self, count: int = 1, over: bool = False) -> Stop:
    """The waves that stand together with the one in focus go on to the start of another line; all others stand.

    With `over` they go over calls, inlined ones too, and at a barrier the others run. Where no lines are known, or
    code ends whose lines are known, it stands too.
    """
    stop = self.last
    for _ in range(count):
      self._live()
      source, wave = self.code.source, self.focus
      start, depth = self._line(), self._depth(wave)
      while True:
        stop = self.next() if over else self.step()
        if stop.reason != "step" or self.focus != wave or self.engine.find(wave) is None: return stop
        if self._interrupted:
          self._interrupted = False
          return self._stand("interrupted", "interrupted", wave)
        now, calls = self._line(), self._depth(wave)
        if not now: break
        seen = now[-len(start):] if over and start else now  # what is inlined into the line belongs to it
        if (calls < depth or seen != start) and source.starts(self.wave.pc): break
    return stop

  def next_line(self, count: int = 1) -> Stop:
    """As `step_line`, over calls and barriers."""
    return self.step_line(count, over=True)

  def _line(self) -> tuple[tuple[str, str, int], ...]:
    """(function, file, line) of where the wave in focus is, and of the calls that were inlined there."""
    return tuple((s.function, s.file, s.line) for s in self.code.source.chain(self.wave.pc))

  def _over_barrier(self, pc: int, runs: bool) -> Stop:
    if runs:
      stop = self.step()
      if stop.reason != "step" and stop.reason != "barrier": return stop
      found = self.engine.find(self.focus)
      if found is None or found[3]: return self._stand("step", "")

    def done() -> str | None:
      found = self.engine.find(self.focus)
      return "" if found is None or found[3] else None
    return self.run(done)

  def _run_until(self, address: int | tuple[int, ...], depth: int) -> Stop:
    """Run until the wave in focus is at an address (or one of several) with no more calls open than `depth`, or has
    ended."""
    wave, places = self.focus, (address,) if isinstance(address, int) else address

    def done() -> str | None:
      found = self.engine.find(wave)
      if found is None: return f"{self.unit} {wave} has ended"
      return "" if found[1].pc in places and self._depth(wave) <= depth else None
    return self.run(done)

  def until(self, place: str | int) -> Stop:
    """Go on until the wave in focus comes to a place, or ends."""
    text = place if isinstance(place, str) else f"{place:#x}"
    line = self.code.lines_at(text)
    addresses = line[1] if line is not None else (self.code.instruction_at(text),)
    self._focused()
    return self._run_until(addresses, 1 << 30)

  # ---- looking

  @property
  def wave(self) -> Wave:
    """The wave in focus."""
    return self.view(self.focus)

  def look_at(self, wave: int) -> Wave:
    """Put another wave in focus."""
    view = self.view(wave)
    self.code.here = view.pc
    self.focus = wave
    return view

  def waves(self, ended: bool = False) -> list[WaveInfo]:
    """All waves that have started and not ended; with `ended` every wave of the dispatch."""
    if ended: return [self.view(n).info() for n in range(self.engine.wave_count)]
    numbers = sorted(w for _, g, _ in self.engine.groups() for w in g.waves.tolist())
    return [self.view(n).info() for n in numbers]

  def disassemble(self, before: int = 4, after: int = 8, place: str | None = None) -> list[Line]:
    """Instructions around the PC of the wave in focus, or around a place."""
    return self.code.around(self.wave.pc if place is None else self.code.instruction_at(place), before, after)

  def variables(self, wave: int | None = None) -> tuple[Variable, ...]:
    """The variables that can be named where a wave is, those of the innermost scope first."""
    return self.code.variables((self.wave if wave is None else self.view(wave)).pc)

  def value(self, name: str, wave: int | None = None) -> Any:
    """What a variable holds: a number, or an array over the lanes. Raises InvalidArgument where it has no place."""
    view = self.wave if wave is None else self.view(wave)
    found = next((v for v in self.code.variables(view.pc) if v.name == name), None)
    if found is None: raise InvalidArgument(f"no variable is called {name!r} here")
    return view.value(found)

  def evaluate(self, expression: str, wave: int | None = None) -> Any:
    """The value of an expression for a wave; see `tinyhw.emulator.debug.expression`."""
    return Expression(expression).value(self.wave if wave is None else self.view(wave), self.code)

  def place(self, address: int) -> str:
    """"out+0x10": the named memory that an address is in; the address alone elsewhere."""
    if self.code.holds(address): return self.code.where(address)
    for name, start, size in self.places:
      if start <= address < start + size: return f"{name}+{address - start:#x}" if address > start else name
    return f"{address:#x}"

  def read(self, address: int, kind: str = "u32", count: int = 1) -> npt.NDArray[Any]:
    """`count` values of a type out of memory. Raises PageFault where nothing is mapped."""
    if kind not in TYPES: raise InvalidArgument(f"no type is called {kind!r}", hint=", ".join(TYPES))
    dtype = np.dtype(TYPES[kind])
    if not 0 <= address < 1 << 64 or not 0 < count <= 1 << 28: raise InvalidArgument(f"{count} values at {address:#x}")
    return np.frombuffer(self.space.read(address, dtype.itemsize * count), dtype)

  def write(self, address: int, values: npt.ArrayLike, kind: str = "u32") -> None:
    """Store values of a type; code that changes is decoded anew. Raises PageFault where nothing can be written."""
    if kind not in TYPES: raise InvalidArgument(f"no type is called {kind!r}", hint=", ".join(TYPES))
    try: data = np.atleast_1d(np.array(values, TYPES[kind])).tobytes()
    except (OverflowError, ValueError, TypeError) as error: raise InvalidArgument(str(error), where=kind) from None
    self.space.write(address, data)
    self.engine.touched()
    if any(lo < address + len(data) and address < hi for lo, hi in self.code.ranges):
      self.code.changed()
      self.engine.code_changed()
      self._quick.clear()

  # ---- the whole machine

  def snapshot(self, name: str = "") -> int:
    """Keep the state of all waves, LDS and memory; its number."""
    number, self._next_snapshot = self._next_snapshot, self._next_snapshot + 1
    taken = snapshots.take(self.engine, name or str(number))
    taken.extra = self.focus, self._calls_kept(), set(self._shown), self.last
    self.snapshots[number] = taken
    return number

  def _snapshot(self, number: int) -> Snapshot:
    found = self.snapshots.get(number)
    if found is None:
      there = ", ".join(map(str, self.snapshots)) or "none"
      raise InvalidArgument(f"no snapshot {number}", hint=f"there are {there}")
    return found

  def diff(self, old: int, new: int | None = None, wave: int | None = None) -> list[str]:
    """One line for each thing in which a snapshot differs from another one, or from now; with `wave`, of it alone."""
    after = snapshots.take(self.engine) if new is None else self._snapshot(new)

    def workgroup(cohort: Cohort, slot: int) -> int:
      return self.engine.first_wave[cohort] // self.engine.waves_a_group + slot
    return snapshots.diff(self._snapshot(old), after, self.engine.keeper, self.code.where, self.place, workgroup, wave,
                          self.unit)

  def restore(self, number: int) -> Stop:
    """Go back to a snapshot: the run continues from there."""
    kept = self._snapshot(number)
    if self.checker is not None: raise InvalidArgument("the checks cannot go back", hint="debug without them")
    snapshots.restore(self.engine, kept, self._watcher.pristine)
    self.focus, calls, shown, self.last = kept.extra
    if self.last.pc is not None: self.code.here = self.last.pc
    self._calls_back(calls)
    self._shown = set(shown)
    for b in self.breaks.values():
      if isinstance(b, Watch) and self.engine.find(b.of) is not None: b.changed(self.view(b.of), self.code)
    self.code.changed()
    self.engine.code_changed()
    return self.last
