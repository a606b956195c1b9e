"""The whole machine at one moment: waves, shared memory, memory. Two of them differ in lines that a person can read."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from tinyhw.core.errors import InvalidArgument
from tinyhw.core.memory import PAGE, Access, AddressSpace, Mapping, Region

if TYPE_CHECKING:
  from tinyhw.emulator.debug.engine import Engine
  from tinyhw.emulator.simt import Cohort, Group

WORDS: Final = PAGE // 8
MEMORY_LIMIT: Final = 1 << 30  # bytes of pages in use that a snapshot copies
WAYS: Final = 3  # different changes of a register that a diff lists
SHOWN: Final = 8  # differing places of one kind that a diff lists


def copied(group: Group) -> Group:
  """A group of its own with the same register values, which are never changed in place."""
  other = type(group).__new__(type(group))
  for kind in type(group).__mro__:
    for slot in getattr(kind, "__slots__", ()): setattr(other, slot, getattr(group, slot))
  other.v, other.s = list(group.v), list(group.s)
  if hasattr(other, "frames"): other.frames = tuple(f.changed(list(f.v), f.top) for f in other.frames)
  other.bools, other.pairs = dict(group.bools), dict(group.pairs)
  return other


@dataclass
class CohortState:
  """What a cohort had."""
  runnable: list[Group]
  parked: list[Group]
  lds: npt.NDArray[np.uint8]
  fields: dict[str, Any]
  waiting: list[tuple[Group, Any]] = field(default_factory=list)  # groups with what they wait for
  local: npt.NDArray[np.uint8] | None = None  # the stacks of threads that have their own


@dataclass
class Snapshot:
  """Made by `take`; `name` is for people. Pages that hold only zeros are not kept."""
  name: str
  engine: dict[str, Any]
  cohorts: dict[Cohort, CohortState]
  pages: dict[int, bytes] = field(repr=False)
  extra: Any = None  # what the debugger keeps with it

  def groups(self) -> dict[int, tuple[Group, int, bool]]:
    """Wave -> (its group, its row there, whether it could run)."""
    out: dict[int, tuple[Group, int, bool]] = {}
    for state in self.cohorts.values():
      for groups, runs in ((state.runnable, True), (state.parked, False), ([g for g, _ in state.waiting], False)):
        for group in groups:
          for row, wave in enumerate(group.waves.tolist()): out.setdefault(wave, (group, row, runs))
    return out


_ENGINE: Final = ("started", "cohort", "_round", "_ended", "_jumps")


class Keeper(ABC):
  """What snapshots ask of a vendor: what its cohorts have besides, and what differs between two states of a wave."""

  fields: ClassVar[tuple[str, ...]] = ("left", "budget", "live", "arrived", "passed", "lap", "looking", "look")
  one_shared: ClassVar[bool] = False  # whether one `shared` serves all workgroups of a dispatch
  memory: ClassVar[str]  # a workgroup's shared memory, in words

  def keep(self, cohort: Cohort, state: CohortState) -> None:
    """Copy what a cohort has besides."""
    return None

  def put_back(self, cohort: Cohort, state: CohortState) -> None:
    """Give a cohort what `keep` has copied."""
    return None

  @abstractmethod
  def registers(self, g: Group, i: int, h: Group, k: int) -> list[tuple[str, str]]:
    """(register, how it changed) of a wave that was in row `i` of a group and is in row `k` of another."""


def cohort_state(cohort: Cohort, keeper: Keeper) -> CohortState:
  """What a cohort has now."""
  state = CohortState([copied(g) for g in cohort.runnable], [copied(g) for g in cohort.parked], cohort.lds.copy(),
                      {n: deepcopy(getattr(cohort, n)) for n in keeper.fields})
  keeper.keep(cohort, state)
  return state


def in_use(m: Mapping) -> list[int]:
  """Numbers of a mapping's pages that hold something, counted from its start; its last one may be short."""
  whole = len(m.u64) // WORDS * WORDS
  used = np.flatnonzero(m.u64[:whole].reshape(-1, WORDS).any(axis=1)).tolist()
  return used + ([whole // WORDS] if m.u64[whole:].any() else [])


def _pages(engine: Engine) -> dict[int, bytes]:
  """Address -> contents of each page that holds something."""
  out: dict[int, bytes] = {}
  for m in engine.space.mappings():
    if not m.access & Access.WRITE: continue
    used = in_use(m)
    if (len(out) + len(used)) * PAGE > MEMORY_LIMIT:
      raise InvalidArgument(f"a snapshot holds up to {MEMORY_LIMIT >> 20} MiB of memory in use")
    for k in used: out[m.start + k * PAGE] = m.raw[k * PAGE:(k + 1) * PAGE].tobytes()
  return out


def take(engine: Engine, name: str = "") -> Snapshot:
  """The state now."""
  cohorts = {cohort: cohort_state(cohort, engine.keeper) for cohort in engine.running}
  fields = {n: getattr(engine, n) for n in _ENGINE}
  fields |= {"running": list(engine.running),
             "shared": deepcopy([c.shared for c in engine.running[:1]]) if engine.keeper.one_shared else [],
             "stats": (engine.stats.instructions, engine.stats.steps), "changes": engine.changes.count}
  return Snapshot(name, fields, cohorts, _pages(engine))


def copied_space(space: AddressSpace) -> AddressSpace:
  """The same mappings over a copy of the memory in use; what is shared in it stays shared."""
  other, regions = AddressSpace(space.name), dict[int, Region]()
  for m in space.mappings():
    key = id(m.backing)
    if key not in regions: regions[key] = Region("copy", -(-m.backing.size // PAGE) * PAGE)
    target = regions[key].u8[m.offset:m.offset + m.end - m.start]
    for k in in_use(m): target[k * PAGE:(k + 1) * PAGE] = m.u8[k * PAGE:(k + 1) * PAGE]
    other.map(m.start, m.end - m.start, regions[key], m.offset, m.access, m.unit)
  return other


def restore(engine: Engine, s: Snapshot, pristine: dict[Cohort, CohortState]) -> None:
  """Go back. `pristine` has each cohort as it was before it ran.

  Raises InvalidArgument where a later workgroup has taken over the scratch memory of one that would live again.
  """
  later = [c for c in engine.first_wave if engine.first_wave[c] >= s.engine["started"]]
  if getattr(engine.dispatch, "scratch_size", 0) and later and any(c not in engine.running for c in s.cohorts):
    raise InvalidArgument("the way back leads past the start of workgroups that reuse scratch memory",
                          where=f"snapshot {s.name}")
  for cohort, state in [*s.cohorts.items(), *((c, pristine[c]) for c in later)]:
    cohort.runnable, cohort.parked = [copied(g) for g in state.runnable], [copied(g) for g in state.parked]
    cohort.lds[:] = state.lds
    engine.keeper.put_back(cohort, state)
    for name, value in state.fields.items(): setattr(cohort, name, deepcopy(value))
  for name in _ENGINE: setattr(engine, name, s.engine[name])
  engine.running = list(s.engine["running"])
  for shared in deepcopy(s.engine["shared"]) if engine.keeper.one_shared else ():
    for cohort in engine.first_wave: cohort.shared = shared
  engine.waiting = sorted(later, key=lambda c: engine.first_wave[c])
  engine.stats.instructions, engine.stats.steps = s.engine["stats"]
  engine.group = None
  for m in engine.space.mappings():
    if not m.access & Access.WRITE: continue
    for k in in_use(m):
      if m.start + k * PAGE not in s.pages: m.u8[k * PAGE:(k + 1) * PAGE] = 0
    at = [a for a in s.pages if m.start <= a < m.end]
    for a in at: m.u8[a - m.start:a - m.start + len(s.pages[a])] = np.frombuffer(s.pages[a], np.uint8)
  engine.changes.count = s.engine["changes"]


# ---- differences

def diff(a: Snapshot, b: Snapshot, keeper: Keeper, where: Callable[[int], str], place: Callable[[int], str],
         workgroup: Callable[[Cohort, int], int], wave: int | None = None, unit: str = "wave") -> list[str]:
  """One line for each thing in which two snapshots differ; with `wave`, for each of its registers alone.

  `where` names code, `place` other memory, `workgroup` numbers a workgroup of a cohort. A register that changed in many
  ways in many waves has a line for the first of them.
  """
  old, new = a.groups(), b.groups()
  same: dict[str, dict[str, list[int]]] = {}  # register or the like -> how it changed -> in which waves
  for n in sorted(old.keys() | new.keys()) if wave is None else [wave]:
    for what, change in _wave(old.get(n), new.get(n), keeper, where):
      same.setdefault(what, {}).setdefault(change, []).append(n)
  lines: list[str] = []
  for what, changes in same.items():
    shown = list(changes.items())[:WAYS if len(changes) <= WAYS else 1]
    lines += [f"{_waves(waves, unit)} {what}{change}" for change, waves in shown]
    rest = sorted(n for waves in list(changes.values())[len(shown):] for n in waves)
    if rest: lines.append(f"{_waves(rest, unit)} {what}: in other ways")
  if wave is not None: return lines
  for cohort, state in b.cohorts.items():
    before = a.cohorts[cohort].lds if cohort in a.cohorts else np.zeros_like(state.lds)
    size = cohort.lds_size
    for slot in range(len(before) // size if size else 0):
      part, name = slice(slot * size, (slot + 1) * size), f"{keeper.memory} {workgroup(cohort, slot)}"
      lines += _changed(before[part], state.lds[part], 0, f"{name} +{{:#x}}".format)
  return lines + _memory(a.pages, b.pages, place)


def _waves(numbers_: Sequence[int], unit: str) -> str:
  return f"{unit}{'s' if len(numbers_) > 1 else ''} {numbers(numbers_)}"


def numbers(values: Sequence[int]) -> str:
  """"0-3, 7" of sorted numbers."""
  runs: list[list[int]] = []
  for n in values:
    if runs and runs[-1][-1] + 1 == n: runs[-1].append(n)
    else: runs.append([n])
  return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def _wave(old: tuple[Group, int, bool] | None, new: tuple[Group, int, bool] | None,
          keeper: Keeper, where: Callable[[int], str]) -> list[tuple[str, str]]:
  """(what changed, how) of one wave."""
  if old is None and new is None: return []
  if old is None or new is None: return [("ended" if new is None else "started", "")]
  (g, i, runs), (h, k, runs_now) = old, new
  lines: list[tuple[str, str]] = []
  if g.pc != h.pc: lines.append(("pc", f": {where(g.pc)} -> {where(h.pc)}"))
  if runs is not runs_now: lines.append(("on from the barrier" if runs_now else "at a barrier", ""))
  return lines + keeper.registers(g, i, h, k)


def _changed(old: Any, new: Any, at: int, name: Callable[[int], str]) -> list[str]:
  """Differing dwords of two byte arrays, neighbours counted together after the first few."""
  places = np.flatnonzero(old.view(np.uint32) != new.view(np.uint32))
  out = []
  for k in places[:SHOWN].tolist():
    x, y = int(old.view(np.uint32)[k]), int(new.view(np.uint32)[k])
    out.append(f"{name(at + 4 * k)}: {x:#010x} -> {y:#010x}")
  if places.size > SHOWN: out.append(f"{name(at + 4 * int(places[SHOWN]))} and on: {places.size - SHOWN} more dwords")
  return out


def _memory(old: dict[int, bytes], new: dict[int, bytes], place: Callable[[int], str]) -> list[str]:
  empty, lines = bytes(PAGE), list[str]()
  runs: list[list[int]] = []
  for page in sorted(old.keys() | new.keys()):
    if old.get(page, empty) == new.get(page, empty): continue
    if runs and runs[-1][-1] + PAGE == page: runs[-1].append(page)
    else: runs.append([page])
  for run in runs:
    x, y = (np.frombuffer(b"".join(pages.get(p, empty).ljust(PAGE, b"\0") for p in run), np.uint8)
            for pages in (old, new))
    lines += _changed(x, y, run[0], place)
  return lines
