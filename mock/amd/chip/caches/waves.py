"""Memory as the waves of one dispatch see it: each through the caches of the compute unit that it runs on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.memory import U8, U64, Access
from tinyhw.mock.amd.chip.caches.spaces import WaveSpace

if TYPE_CHECKING:
  from tinyhw.emulator.simt import Group
  from tinyhw.mock.amd.chip.caches.chip import Met
  from tinyhw.mock.amd.chip.flights import Flight

Value = Any
GLC: Final = 1  # of an instruction's cpol
WORDS: Final = 4  # bytes from which on accesses are held against those of others: stamps are of dwords


class WaveView:
  """See `emulator.view.View`. Workgroup `n` runs on the shader array `(first + n) % arrays`, and there on one WGP after
  the other, as on a chip that was idle."""

  def __init__(self, flight: Flight, space: WaveSpace, first: int, wgp_mode: bool) -> None:
    self.flight, self.space, self.chip, self.weak = flight, space, space.chip, space.weak
    self._first, self._wgp_mode = first, wgp_mode

  # ---- where waves run

  def units(self, group: Group, rows: Value) -> Value:
    """The compute unit of each access. In WGP mode the waves of a workgroup run on both of a WGP."""
    card, waves, each = self.chip.gpu.card, group.waves[rows], group.cohort.waves_a_group
    place = self._first + waves // each
    wgps = card.compute_units_per_array // 2
    in_array = place // card.arrays
    half = waves % each & 1 if self._wgp_mode else in_array // wgps & 1
    return place % card.arrays * card.compute_units_per_array + in_array % wgps * 2 + half

  # ---- accesses

  def _now(self, group: Group) -> tuple[int, bool]:
    """(PC of the instruction that accesses memory, whether it is device-coherent)."""
    cohort = group.cohort
    pc = cohort.now() or group.pc
    program: Any = cohort.program
    instruction = program.fetch(pc)
    self.flight.names.setdefault(pc, instruction)
    return pc, bool(instruction.get("cpol") & GLC)

  def load(self, group: Group, rows: Value, addresses: U64, width: int, kind: str) -> Value:
    """Raises PageFault with the index of the access in `.lane`."""
    pc, coherent = self._now(group)
    self.weak.history.tick()
    if coherent:
      self.flight.listens = True
    if self.weak.resolve(self.space, addresses, width, Access.READ) is None:
      raw = self._load(group, np.repeat(rows, width), _bytes(addresses, width), 1, kind, pc, coherent)
      raw = raw.reshape(-1, width)
    else:
      raw = self._load(group, rows, addresses, width, kind, pc, coherent)
    if width > 8:
      return np.ascontiguousarray(raw).view(np.uint32)
    return np.ascontiguousarray(raw).view(f"u{width}").reshape(-1)

  def _load(self, group: Group, rows: Value, addresses: U64, width: int, kind: str, pc: int,
            coherent: bool) -> U8:
    chip, weak = self.chip, self.weak
    found = weak.resolve(self.space, addresses, width, Access.READ)
    assert found is not None  # it crosses no line
    physical, uncached = found
    units = self.units(group, rows)
    if kind == "scalar":
      raw = chip.load_scalar(units, physical, width, uncached, coherent)
      met: Met = [(chip.scalar, units // 2)]
    else:
      raw = chip.load_vector(units, physical, width, uncached, coherent)
      met = [(chip.vector, units)]
    if kind != "scratch":
      met = [(chip.gl2, 0)] if coherent else [*met, (chip.gl1, units // chip.units_a_array), (chip.gl2, 0)]
      weak.saw(self.flight, pc, addresses, physical, raw, met, chip)
      if not coherent and width >= WORDS:
        weak.reads(self.flight, pc, addresses, physical, width)
    return raw

  def store(self, group: Group, rows: Value, addresses: U64, values: Value, kind: str) -> None:
    """Raises PageFault as `load` does; nothing is stored then."""
    pc, _ = self._now(group)
    self.weak.history.tick()
    raw: U8 = np.ascontiguousarray(values).view(np.uint8).reshape(len(addresses), -1)
    found = self.weak.resolve(self.space, addresses, raw.shape[1], Access.WRITE)
    if found is None:
      addresses = _bytes(addresses, raw.shape[1])
      rows = np.repeat(rows, raw.shape[1])
      raw = raw.reshape(-1, 1)
      found = self.weak.resolve(self.space, addresses, 1, Access.WRITE)
      assert found is not None
    physical, uncached = found
    if kind != "scratch":
      self.weak.writes(self.flight, pc, addresses, physical, raw)
    self.chip.store_vector(self.units(group, rows), physical, raw, uncached)

  def atomic(self, group: Group, rows: Value, addresses: U64, width: int,
             modify: Callable[[Value, Value], Value | None]) -> Value | None:
    """In GL2, or in memory where the page is UC."""
    pc, _ = self._now(group)
    self.weak.history.tick()
    self.flight.listens = True
    chip, weak = self.chip, self.weak
    found = weak.resolve(self.space, addresses, width, Access.READ)
    assert found is not None  # atomics are aligned
    cells, first, index = np.unique(found[0], return_index=True, return_inverse=True)
    uncached, units = found[1][first], self.units(group, rows)
    raw = chip.through_gl2(0, cells, width, uncached)
    weak.saw(self.flight, pc, addresses[first], cells, raw, [(chip.gl2, 0)], chip)
    values = np.ascontiguousarray(raw).view(f"u{width}").reshape(-1)
    before = values.copy()
    old = modify(values, index)
    changed = values != before
    if changed.any():
      chip.to_gl2(cells[changed], values[changed].view(np.uint8).reshape(-1, width), uncached[changed])
      weak.history.wrote(weak.history.places(cells[changed], width), weak.history.number(self.flight, pc))
    chip.vector.drop(units, found[0])
    chip.gl1.drop(units // chip.units_a_array, found[0])
    return old

  def invalidate(self, group: Group, mnemonic: str) -> None:
    """BUFFER_GL0_INV and its kin (RDNA3 ISA manual, 11.1, 8.1.3 and 5.1): the caches next to these waves."""
    chip = self.chip
    self.flight.listens = True
    units = np.unique(self.units(group, np.arange(group.size)))
    if mnemonic == "buffer_gl0_inv":
      chip.vector.invalidate(units)
    elif mnemonic in ("buffer_gl1_inv", "s_gl1_inv"):
      chip.gl1.invalidate(np.unique(units // chip.units_a_array))
    elif mnemonic == "s_dcache_inv":
      chip.scalar.invalidate(np.unique(units // 2))
    elif mnemonic == "s_icache_inv":
      chip.code.invalidate()


def _bytes(addresses: U64, width: int) -> U64:
  """Accesses byte by byte."""
  each: U64 = np.repeat(addresses, width) + np.tile(np.arange(width, dtype=np.uint64), len(addresses))
  return each
