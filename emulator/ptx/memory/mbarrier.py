"""mbarrier: barriers in shared memory that count arrivals, and bytes still to come (PTX ISA, section 9.7.13.15).

An object is opaque to programs: 64 bits, of which a state token is a copy from before an arrival. Fields of ours:
pending arrivals (20 bits), expected ones (20), bytes to come (21, signed), phase (2), and a bit that says it is one.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import MachineFault
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds, need
from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.memory.addresses import address, guarded
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.simt import Yield
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.ptx.forms import Form

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

LIMIT: Final = 1 << 20  # of counts, and of bytes to come either way
VALID, PHASE, TX, EXPECTED = 63, 61, 40, 20
_SIZE: Final = 8


@dataclass
class Object:
  """An mbarrier's fields; `phase` counts to 3."""
  pending: int
  expected: int
  tx: int = 0
  phase: int = 0

  @classmethod
  def of(cls, word: int) -> Object | None:
    """The object in 64 bits; None where none has been initialized."""
    if not word >> VALID: return None
    tx = word >> TX & (1 << 21) - 1
    return cls(word & LIMIT - 1, word >> EXPECTED & LIMIT - 1, tx - (tx >> 20 << 21), word >> PHASE & 3)

  @property
  def word(self) -> int:
    """The object as it lies in memory."""
    return (self.pending | self.expected << EXPECTED | (self.tx & (1 << 21) - 1) << TX | self.phase << PHASE
            | 1 << VALID)

  def complete(self) -> bool:
    """Begin the next phase where this one has nothing to wait for any more; whether it was so."""
    if self.pending or self.tx: return False
    self.phase, self.pending = self.phase + 1 & 3, self.expected
    return True

  def expect(self, count: int) -> None:
    """More bytes are to come, or less. Raises ValueError where the count has no room."""
    self.tx += count
    if abs(self.tx) >= LIMIT: raise ValueError(f"{self.tx:,} bytes to come: an mbarrier counts to {LIMIT - 1:,}")

  def arrive(self, count: int) -> bool:
    """Threads arrive; whether the phase ends. Raises ValueError for more than it waits for."""
    if count > self.pending:
      raise ValueError(f"{count} arrive at an mbarrier that waits for {self.pending} more in this phase")
    self.pending -= count
    return self.complete()


def cells(group: Warps, space: str, addresses: Value) -> Value:
  """Where mbarriers are in the cohort's shared memory as u64 [waves, lanes]. Raises MachineFault."""
  addresses = np.asarray(addresses)
  if space == spaces.GENERIC:
    parts = spaces.parted(group, addresses.astype(np.uint64))
    outside = group.lanes if parts is None else np.zeros((group.size, LANES), bool)
    for part, lanes in parts or ():
      if part != "shared": outside = outside | lanes
    if outside.any(): raise spaces.fault(group, outside, addresses, "an mbarrier outside of shared memory")
    addresses = addresses.astype(np.uint64) - np.uint64(spaces.SHARED_WINDOW)
  spaces.check_alignment(group, addresses, _SIZE, "mbarrier")
  spaces.watch(group, "shared", "atomic", addresses, _SIZE)
  _, index = spaces.places(group, addresses, _SIZE, "shared", "mbarrier")
  return np.broadcast_to(index // _SIZE, (group.size, LANES))


def change(group: Warps, where: Value, act: Callable[[Object, tuple[int, int]], None],
           addresses: Value, tells: str | None = None) -> Value:
  """Have each thread in turn, the lowest first, do something to its mbarrier; the objects from before as u64.

  `tells` is how observers are told of a thread (`Observer.told`), None where it does not arrive."""
  observer = group.cohort.observer
  words = group.cohort.lds.view(np.uint64)
  out = np.zeros((group.size, LANES), np.uint64)
  for row, lane in np.argwhere(group.lanes).tolist():
    at = int(where[row, lane])
    before = int(words[at])
    found = Object.of(before)
    if found is None: raise _none(group, addresses, row, lane)
    phase = found.phase
    if observer is not None and tells is not None: observer.told(group, [row], ("mbarrier", at), tells)
    try: act(found, (row, lane))
    except ValueError as why: raise _at(group, addresses, row, lane, str(why)) from None
    if observer is not None and found.phase != phase: observer.complete(group.cohort, ("mbarrier", at))
    out[row, lane] = before
    if found.word != before: group.cohort.changes.count += 1
    words[at] = found.word
  return out


def signal(group: Warps, row: int, lane: int, slot: int, offset: int, count: int) -> None:
  """Bytes have come: complete-tx on the mbarrier at an offset of a block's shared memory."""
  def come(found: Object) -> None:
    found.expect(-count)
    found.complete()
  _told(group, row, lane, slot, offset, come, "bulk")


def arrived(group: Warps, row: int, lane: int, slot: int, offset: int) -> None:
  """What a thread has had the tensor cores do is done: one arrival at such an mbarrier."""
  _told(group, row, lane, slot, offset, lambda found: found.arrive(1), "tcgen05")


def _told(group: Warps, row: int, lane: int, slot: int, offset: int, act: Callable[[Object], object],
          tells: str) -> None:
  words = group.cohort.lds.view(np.uint64)
  if offset % _SIZE or offset + _SIZE > group.cohort.shared.total:
    raise MachineFault(f"an mbarrier at {offset:#x} of shared memory, which has {group.cohort.shared.total:,} bytes",
                       address=offset, lane=row * LANES + lane)
  at = (slot * group.cohort.lds_size + offset) // _SIZE
  found = Object.of(int(words[at]))
  if found is None: raise _none(group, U64.type(offset), row, lane)
  phase, observer = found.phase, group.cohort.observer
  if observer is not None: observer.told(group, [row], ("mbarrier", at), tells)
  try: act(found)
  except ValueError as why: raise _at(group, U64.type(offset), row, lane, str(why)) from None
  if found.phase != phase and observer is not None: observer.complete(group.cohort, ("mbarrier", at))
  group.cohort.changes.count += 1
  words[at] = found.word


def _at(group: Warps, addresses: Value, row: int, lane: int, text: str) -> MachineFault:
  address = int(operands.full(group, addresses)[row, lane])
  return MachineFault(f"{text}, at {address:#x}", address=address, lane=row * LANES + lane)


def _none(group: Warps, addresses: Value, row: int, lane: int) -> MachineFault:
  return _at(group, addresses, row, lane, "no mbarrier has been initialized")


@binds("mbarrier")
def mbarrier(code: Code, line: Line, form: Form) -> Step:
  """All but the waits, which `waiting` binds."""
  i, m = line.instruction, form.modifiers
  kind = i.modifiers[0]
  space = spaces.space_of(m)
  if kind == "pending_count":
    need(line, 2)
    read, write = operands.reader(code, line, i.operands[1], "b64"), operands.writer(code, line, i.operands[0], "b32")
    return lambda group: write(group, (read(group) & np.uint64(LIMIT - 1)).astype(np.uint32))
  rest = [*i.operands]
  state = operands.writer(code, line, rest.pop(0), "b64") if kind in {"arrive", "arrive_drop"} else None
  where = address(code, line, rest.pop(0), space)
  count = operands.reader(code, line, rest[0], "u32") if rest else code.constant(U32.type(1))

  if kind in {"init", "inval"}:
    def fresh(group: Warps) -> None:
      at, given = cells(group, space, where(group)), operands.full(group, count(group))
      words = group.cohort.lds.view(np.uint64)
      for row, lane in np.argwhere(group.lanes).tolist():
        n = int(given[row, lane])
        if kind == "init" and not 0 < n < LIMIT:
          raise _at(group, where(group), row, lane, f"an mbarrier for {n:,} arrivals, of 1 to {LIMIT - 1:,}")
        if kind == "inval" and Object.of(int(words[at[row, lane]])) is None:
          raise _none(group, where(group), row, lane)
        words[at[row, lane]] = Object(n, n).word if kind == "init" else 0
        group.cohort.changes.count += 1
    return guarded(line, fresh)

  act = _act(kind, m)
  tells = None if not kind.startswith("arrive") else "relaxed" if "relaxed" in m else ""

  def run(group: Warps) -> None:
    at, given = where(group), operands.full(group, count(group))
    old = change(group, cells(group, space, at), lambda found, k: act(found, int(given[k])), at, tells)
    if state is not None: state(group, old)
  return guarded(line, run)


def _act(kind: str, m: frozenset[str]) -> Callable[[Object, int], None]:
  """What an instruction does to an object, with its count."""
  expects = "expect_tx" in m

  def transact(found: Object, n: int) -> None:
    found.expect(n if kind == "expect_tx" else -n)
    found.complete()

  def arrive(found: Object, n: int) -> None:
    if expects: found.expect(n)
    many = 1 if expects else n
    if kind == "arrive_drop":
      if many > found.expected: raise ValueError(f"{many} drop out of an mbarrier for {found.expected}")
      found.expected -= many
    if found.arrive(many) and "noComplete" in m: raise ValueError("an arrival with .noComplete completes the phase")
  return transact if kind in {"expect_tx", "complete_tx"} else arrive


def waiting(code: Code, line: Line, form: Form) -> tuple[Callable[[Warps], Value], operands.Writer]:
  """(test of whether the phase has ended [waves, lanes], writer) of test_wait and try_wait."""
  i = line.instruction
  space, parity = spaces.space_of(form.modifiers), "parity" in form.modifiers
  write = operands.writer(code, line, i.operands[0], "pred")
  where = address(code, line, i.operands[1], space)
  wanted = operands.reader(code, line, i.operands[2], "u32" if parity else "b64")

  def test(group: Warps) -> Value:
    at = where(group)
    cells_of = np.where(group.lanes, cells(group, space, at), 0)
    words = group.cohort.lds.view(np.uint64)[cells_of]
    bad = group.lanes & (words >> np.uint64(VALID) == 0)
    if bad.any(): raise _none(group, at, *map(int, np.argwhere(bad)[0]))
    phase, given = words >> np.uint64(PHASE) & np.uint64(3), wanted(group)
    if parity: done = (phase & np.uint64(1)) != (given.astype(np.uint64) & np.uint64(1))
    else: done = phase != (given >> np.uint64(PHASE) & np.uint64(3))
    if group.cohort.observer is not None: _heard(group, np.asarray(cells_of), done)
    return done
  return test, write


def _heard(group: Warps, where: Value, done: Value) -> None:
  """Have the observer know whose wait has succeeded."""
  observer = group.cohort.observer
  assert observer is not None
  rows, lanes = np.nonzero(np.broadcast_to(done, (group.size, LANES)) & group.lanes)
  for row, at in dict.fromkeys(zip(rows.tolist(), where[rows, lanes].tolist())):
    observer.heard(group, [row], ("mbarrier", at))


def ender(code: Code, line: Line, form: Form, after: int) -> Callable[[Warps], Any]:
  """A wait that ends a block: threads that have to come back let others run first."""
  test, write = waiting(code, line, form)

  def end(group: Warps) -> Any:
    done = test(group)
    write(group, done)
    return after if (done | ~group.lanes).all() else Yield(after)
  return end


def copied(code: Code, line: Line, form: Form) -> Step:
  """cp.async.mbarrier.arrive. The copies before it have been made, so it arrives at once; without .noinc that counts
  for nothing."""
  space = spaces.space_of(form.modifiers)
  where = address(code, line, line.instruction.operands[0], space)
  noinc = "noinc" in form.modifiers

  def act(found: Object, k: tuple[int, int]) -> None:
    if noinc: found.arrive(1)

  def run(group: Warps) -> None:
    at = where(group)
    change(group, cells(group, space, at), act, at, "copies")
  return guarded(line, run)
