"""The caches of one GPU, the ways through them, and the weak memory of a machine with what it finds wrong.

A read that sees something else than the newest value is a finding: it names the read, the write that it missed, and
the cache operation that was not there. So is an access to what a dispatch reads or writes later, by a packet behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.core.errors import Unsupported
from tinyhw.core.memory import U8, U64, AddressSpace, Backing, Region
from tinyhw.mock.amd.chip.caches.history import WHO_BITS, Agent, History
from tinyhw.mock.amd.chip.caches.lines import I64, LINE, SPAN, Bools, Cache, Physical, Units, WriteBack

if TYPE_CHECKING:
  from tinyhw.mock.amd.machine import Gpu, Machine

GLI_ALL: Final = 1  # GLI_INV: 0 nothing, 1 all, 2 a range, 3 its first and last line (nvd.h)
RANGE, FIRST_LAST = 2, 3  # GL1_RANGE and GL2_RANGE; 0 is all
VOLATILE: Final = 1
Ranges = list[tuple[int, int]]
Met = list[tuple[Cache, Any]]  # caches, with the unit of each read, or the one of all


class Running(Agent):
  """A dispatch as the findings know it: `began` on the history's clock."""

  began: int
  chip: Chip
  listens: bool  # it may wait for what others do meanwhile: it has read past its L0, or used atomics

  def precedes(self, other: Agent) -> bool:
    """Whether the other came behind it on one queue."""
    raise NotImplementedError


class Chip:
  """The caches of one GPU."""

  def __init__(self, weak: Weak, gpu: Gpu) -> None:
    self.weak, self.gpu, card = weak, gpu, gpu.card
    self.units_a_array = card.compute_units_per_array

    def made(bit: str, level: int, kind: str, shared: int, units: int | None = None) -> Cache:
      c = next(c for c in card.caches if (c.level, c.kind, c.compute_units) == (level, kind, shared))
      return Cache(bit, card.compute_units // shared if units is None else units, c.size << 10, c.line)

    self.vector = made("GLV_INV", 1, "data", 1)
    self.scalar = made("GLK_INV", 1, "data", 2)
    self.code = made("GLI_INV", 1, "instruction", 2, units=1)  # all WGPs fetch alike
    self.gl1 = made("GL1_INV", 1, "data", card.compute_units_per_array)
    l2 = next(c for c in card.caches if c.level == 2)
    self.gl2 = WriteBack("GL2_INV", l2.size << 10, l2.line, weak.physical)
    assert self.gl2.line == LINE

  # ---- ways

  def through_gl2(self, units: Units, physical: I64, width: int, uncached: Bools) -> U8:
    """What a client of GL2 reads: lines of NC pages from there, UC from memory."""
    now = self.weak.history.now
    if not uncached.any():
      return self.gl2.fetch(physical, width, now)
    out = self.weak.physical.load(physical, width)
    cached = ~uncached
    if cached.any():
      out[cached] = self.gl2.fetch(physical[cached], width, now)
    return out

  def through_gl1(self, arrays: Units, physical: I64, width: int, uncached: Bools) -> U8:
    return self.gl1.load(arrays, physical, width, uncached, self.through_gl2, self.weak.history.now)

  def load_vector(self, units: I64, physical: I64, width: int, uncached: Bools, coherent: bool) -> U8:
    """Of compute units. `coherent` loads (GLC) miss the L0 and GL1, and drop the lines there."""
    if coherent:
      self.vector.drop(units, physical)
      self.gl1.drop(units // self.units_a_array, physical)
      return self.through_gl2(0, physical, width, uncached)
    return self.vector.load(
      units, physical, width, uncached, lambda u, p, w, c: self.through_gl1(u // self.units_a_array, p, w, c),
      self.weak.history.now,
    )

  def load_scalar(self, units: I64, physical: I64, width: int, uncached: Bools, coherent: bool) -> U8:
    """The same through the scalar cache of their WGPs."""
    if coherent:
      self.scalar.drop(units // 2, physical)
      self.gl1.drop(units // self.units_a_array, physical)
      return self.through_gl2(0, physical, width, uncached)
    pairs = self.units_a_array // 2
    return self.scalar.load(
      units // 2, physical, width, uncached, lambda u, p, w, c: self.through_gl1(u // pairs, p, w, c),
      self.weak.history.now,
    )

  def load_code(self, physical: I64, width: int, uncached: Bools) -> U8:
    return self.code.load(0, physical, width, uncached, self.through_gl2, self.weak.history.now)

  def store_vector(self, units: I64, physical: I64, raw: U8, uncached: Bools) -> None:
    """Through the unit's own L0, past GL1, to GL2."""
    self.vector.update(units, physical, raw)
    self.gl1.drop(units // self.units_a_array, physical)
    self.to_gl2(physical, raw, uncached)

  def to_gl2(self, physical: I64, raw: U8, uncached: Bools) -> None:
    """Store as a client of GL2: NC stays there, UC goes to memory."""
    if not uncached.any():
      return self.gl2.keep(physical, raw, self.weak.history.now)
    self.weak.physical.store(physical[uncached], raw[uncached])
    if not uncached.all():
      self.gl2.keep(physical[~uncached], raw[~uncached], self.weak.history.now)

  def past_gl2(self, physical: I64, raw: U8) -> None:
    """Store to memory; what GL2 holds of it, it holds anew."""
    held, _, dirty, _ = self.gl2.holds(physical, raw.shape[1])
    self.weak.physical.store(physical, raw)
    self.gl2.update(0, physical, raw)
    if dirty.any():
      lines, slots = self.gl2._slots(0, physical)
      mine = np.flatnonzero(self.gl2.tags[slots] == lines)
      where = (slots[mine] << self.gl2.shift) + (physical[mine] & LINE - 1)
      self.gl2.dirty.reshape(-1)[where[:, None] + np.arange(raw.shape[1])] = False

  # ---- operations

  def control(self, what: pm4.ACQUIRE_MEM_GCR_CNTL | pm4.RELEASE_MEM_GCR_CNTL, space: AddressSpace, base: int,
              size: int, where: str) -> None:
    """Do what a GCR_CNTL says, for [base, base + size) where it says a range."""
    def asks(name: str) -> int:
      return int(getattr(what, name, 0))

    if asks("GL2_RANGE") == VOLATILE and (asks("GL2_INV") or asks("GL2_WB")):
      raise Unsupported("cache operation", "GL2_RANGE = VOL", arch=self.gpu.card.name, where=where)
    if asks("GL2_DISCARD"):
      raise Unsupported("cache operation", "GL2_DISCARD", arch=self.gpu.card.name, where=where)
    if asks("RANGE_IS_PA"):
      raise Unsupported("cache operation", "RANGE_IS_PA", arch=self.gpu.card.name, where=where)
    some = self.weak.ranges(space, base, size) if any(
      asks(n) in (RANGE, FIRST_LAST) for n in ("GLI_INV", "GL1_RANGE", "GL2_RANGE")) else None
    if asks("GL2_WB"):
      ranged = asks("GL2_RANGE") and some is not None
      self.gl2.write_back(np.flatnonzero(self.gl2.within(some)) if ranged and some is not None else None)
    if asks("GL2_INV"):
      self.gl2.clean(some if asks("GL2_RANGE") else None)
    for cache in (self.vector, self.scalar, self.gl1):
      if asks(cache.bit):
        cache.invalidate(ranges=some if asks("GL1_RANGE") else None)
    if asks("GLI_INV"):
      self.code.invalidate(ranges=None if asks("GLI_INV") == GLI_ALL else some)

  def fence(self, acquire: bool, system: bool) -> None:
    """A fence of an AQL packet (HSA System Architecture 2.9.1): an acquire invalidates what is nearer than its scope,
    a release of system scope writes GL2 back."""
    if acquire:
      for cache in (self.vector, self.scalar, self.gl1, self.code):
        cache.invalidate()
    if system:
      self.gl2.write_back()
      if acquire:
        self.gl2.clean()

  def forget(self, ranges: Ranges, write_back: bool) -> None:
    """Memory leaves the page tables, or is gone altogether."""
    if write_back:
      self.gl2.write_back(np.flatnonzero(self.gl2.within(ranges)))
    self.gl2.discard(ranges)
    for cache in (self.vector, self.scalar, self.gl1, self.code):
      cache.invalidate(ranges=ranges)


class Weak:
  """The weak memory of a machine."""

  def __init__(self, machine: Machine) -> None:
    self.machine = machine
    self.physical = Physical(machine.system)
    self.history = History(self.physical)
    self.chips: list[Chip] = []
    self._told: set[tuple[object, ...]] = set()

  def add(self, gpu: Gpu) -> Chip:
    """The caches of one more GPU."""
    if gpu.card.gc_version[0] != 11:
      raise Unsupported("memory", "weak", arch=gpu.card.name, hint="only gfx11's caches are modelled: use gfx1100")
    self.chips.append(Chip(self, gpu))
    return self.chips[-1]

  # ---- memory that comes and goes

  def unmapped(self, gpu: Gpu, backing: Backing, offset: int, size: int) -> None:
    """Memory left the page tables of a GPU: its caches are written back and invalidated there."""
    at = self.physical.base(backing) + offset
    self.chips[gpu.index].forget([(at, at + size)], write_back=True)

  def gone(self, backing: Backing, offset: int, size: int) -> None:
    """Memory is nobody's any more, and may be no memory at all."""
    at = self.physical.base(backing) + offset
    for chip in self.chips:
      chip.forget([(at, at + size)], write_back=False)
    self.history.forget(at, size)
    if not isinstance(backing, Region):
      self.physical.forget(backing)

  # ---- addresses

  def ranges(self, space: AddressSpace, base: int, size: int) -> Ranges:
    """Physical ranges of a range of addresses, as far as it is mapped."""
    out: Ranges = []
    for m in space.mappings():
      lo, hi = max(m.start, base), min(m.end, base + size)
      if lo < hi:
        at = self.physical.base(m.backing) + m.offset - m.start
        out.append((at + lo, at + hi))
    return out

  def resolve(self, space: AddressSpace, addresses: U64, width: int, access: int) -> tuple[I64, Bools] | None:
    """(physical addresses, which are UC) of accesses. None where one of them crosses a line: it is no single access.

    Raises PageFault as `AddressSpace.gather` does.
    """
    if width > 1 and ((addresses & np.uint64(LINE - 1)) + np.uint64(width) > np.uint64(LINE)).any():
      space.locate(addresses, width, access)
      return None
    found = space.locate(addresses, width, access)
    physical = np.empty(len(addresses), np.int64)
    uncached = np.empty(len(addresses), bool)
    for m, lanes, offsets in found:
      assert m is not None  # a line lies in one page
      physical[lanes] = offsets + (self.physical.base(m.backing) + m.offset)
      uncached[lanes] = m.uncached
    return physical, uncached

  # ---- the newest value

  def newest(self, physical: I64, width: int) -> tuple[U8, I64]:
    """The bytes that were stored last, and the number of the GPU in whose GL2 they still are (-1: none)."""
    value, where = self.physical.load(physical, width), np.full(len(physical), -1)
    for k, chip in enumerate(self.chips):
      if chip.gl2.unwritten.any():
        held, _, newer, _ = chip.gl2.holds(physical, width)
        if newer.any():
          value[newer] = held[newer]
          where[newer.any(axis=1)] = k
    return value, where

  # ---- findings

  def saw(self, agent: Agent, detail: object, addresses: U64, physical: I64, seen: U8, met: Met, chip: Chip) -> None:
    """Hold what a read gave against the newest value. `met` are the caches that it could have met."""
    newest, where = self.newest(physical, seen.shape[1])
    if seen.tobytes() == newest.tobytes():
      return
    row = int((seen != newest).any(axis=1).argmax())
    one, width, history = physical[row : row + 1], seen.shape[1], self.history
    missing, since = [], history.now
    for cache, units in met:
      value, here, filled = cache.look(units if isinstance(units, int) else units[row : row + 1], one, width)
      if here[0] and filled[0] < history.now and (value[0] != newest[row]).any():  # it was here before this read
        missing.append(cache.bit)
        since = min(since, int(filled[0]))
    holder = int(where[row])
    unwritten = holder >= 0 and (self.chips[holder] is not chip or not missing)
    stamp = int(history.writers(history.places(one, width)).max())
    known = stamp and (unwritten or not missing or history.when(stamp) >= since)
    writer = str(history.action(stamp)) if known else "the host"
    whose = history.action(stamp).kind if known else None
    needs = [f"an ACQUIRE_MEM or GCR_REQ with {' and '.join(missing)} between the two"] if missing else []
    if unwritten:
      needs.append(f"GL2_WB on GPU{holder} before (of RELEASE_MEM, ACQUIRE_MEM or GCR_REQ): the write is in its GL2")
    at, old, new = _excerpt(addresses, seen, newest, row)
    self._tell(
      (agent.kind(detail), whose, *missing, holder),
      f"GPU{chip.gpu.index}: stale memory: {agent.describe(detail)} read {len(old)} bytes at {at:#x} as {_hex(old)}, "
      f"from before {writer} wrote {_hex(new)}; missing: {', and '.join(needs)}",
      chip,
    )

  def reads(self, dispatch: Running, detail: object, addresses: U64, physical: I64, width: int) -> None:
    """A dispatch reads data."""
    history = self.history
    places = history.places(physical, width)
    self._early(dispatch, detail, addresses, history.writers(places), np.ones(len(places), bool),
                "{first} wrote {address}, which {later} read only then")
    history.has_read(places, history.number(dispatch, detail))

  def writes(self, dispatch: Running, detail: object, addresses: U64, physical: I64, raw: U8) -> None:
    """A dispatch stores data next."""
    history = self.history
    places = history.places(physical, raw.shape[1])
    if raw.shape[1] >= 4:
      for stamps, text in (
        (history.readers(places), "{first} read {address} before {later} wrote it"),
        (history.writers(places), "{first} wrote {address} before {later} did, and its value is lost"),
      ):
        if (stamps >> WHO_BITS > dispatch.began).any():
          differs = (self.newest(physical, raw.shape[1])[0] != raw).any(axis=1)
          self._early(dispatch, detail, addresses, stamps, differs, text)
    history.wrote(places, history.number(dispatch, detail))

  def _early(self, dispatch: Running, detail: object, addresses: U64, stamps: I64, rows: Bools, text: str) -> None:
    """Tell of an access (a stamp) that something behind a dispatch made before the dispatch made its own."""
    late = (stamps >> WHO_BITS > dispatch.began) & rows[:, None]
    if dispatch.listens or not late.any():
      return
    for stamp in np.unique(stamps[late]).tolist():
      action = self.history.action(stamp)
      if dispatch.precedes(action.agent):
        address = int(addresses[(stamps == stamp).any(axis=1).argmax()])
        self._tell(
          (dispatch.kind(detail), action.kind, text),
          f"GPU{dispatch.chip.gpu.index}: too early: "
          + text.format(first=action, later=dispatch.describe(detail), address=f"{address:#x}")
          + "; missing: a wait for the dispatch before (EVENT_WRITE CS_PARTIAL_FLUSH, RELEASE_MEM, AQL's barrier bit)",
          dispatch.chip,
        )
        return

  def host_looks(self) -> None:
    """The host goes on after a wait: what lies unwritten in a GL2 of the memory that it maps, it does not see."""
    for chip in self.chips:
      slots = np.flatnonzero(chip.gl2.unwritten)
      lines = chip.gl2.tags[slots] << chip.gl2.shift
      shared = np.isin(lines >> SPAN, self.physical.shared)
      for slot, line in zip(slots[shared].tolist(), lines[shared].tolist(), strict=True):
        column = int(chip.gl2.dirty[slot].argmax())
        places = self.history.places(np.array([line + column]), 1)
        stamp = int(self.history.writers(places)[0, 0])
        if not stamp or (writer := self.history.action(stamp)).agent.running:  # scratch memory; a store that goes on
          continue
        self._tell(
          ("host", writer.kind),
          f"GPU{chip.gpu.index}: stale memory: the host reads {int(chip.gl2.dirty[slot].sum())} bytes or more of its "
          f"memory from before {writer} wrote them; missing: GL2_WB on GPU{chip.gpu.index} before (of RELEASE_MEM, "
          "ACQUIRE_MEM or GCR_REQ), or MTYPE UC (memory that is COHERENT or UNCACHED, a FENCE's mtype)",
          chip,
        )
        break

  def _tell(self, key: tuple[object, ...], text: str, chip: Chip) -> None:
    """Once for each pair of kinds of accesses: in the report, and in the kernel's log, and so in a hang's error."""
    if key in self._told:
      return
    self._told.add(key)
    self.machine.doubt(text)
    self.machine.log(chip.gpu, text)


def _excerpt(addresses: U64, seen: U8, newest: U8, row: int) -> tuple[int, U8, U8]:
  """(address, old, new) of the dword or so in which a read of [n, width] bytes was wrong first."""
  width, address = seen.shape[1], int(addresses[row])
  if width == 1:  # a range, byte by byte
    first = row - min(address & 3, row)
    return int(addresses[first]), seen[first : first + 4, 0], newest[first : first + 4, 0]
  at = int((seen[row] != newest[row]).argmax()) & -4 if width > 8 else 0
  return address + at, seen[row, at : at + min(width, 8)], newest[row, at : at + min(width, 8)]


def _hex(raw: U8) -> str:
  return f"0x{int.from_bytes(raw.tobytes(), 'little'):x}"
