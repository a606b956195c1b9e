"""One warp of a PTX launch as a person sees it: registers by their names in the text, shared and local memory."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.emulator.debug.expression import MARK, Register
from tinyhw.emulator.debug.ptx.names import names
from tinyhw.emulator.debug.wave import TYPES, Wave
from tinyhw.emulator.ptx import operands, special
from tinyhw.emulator.ptx.group import LANES, warps
from tinyhw.emulator.ptx.module.scope import Register as Declared
from tinyhw.emulator.ptx.program import Code
from tinyhw.emulator.values.ops import Array as Value


@dataclass
class Named(Register):
  """A register of PTX: `words` are its values, of its own type."""

  def typed(self, kind: str) -> Value:
    dtype = np.dtype(TYPES[kind])
    raw = self.words.view(f"u{self.words.dtype.itemsize}") if self.words.dtype != bool else self.words.astype(np.uint8)
    if dtype.itemsize > raw.dtype.itemsize:
      raise InvalidArgument(f"{self.name} has {8 * raw.dtype.itemsize} bits")
    return _computed(raw.astype(f"u{dtype.itemsize}").view(dtype))

  def plain(self) -> Value: return _computed(self.words)


def _computed(x: Value) -> Value:
  """Values in the types that are computed with; one value is a number."""
  if x.dtype.kind == "f": x = x.astype(np.float64)
  elif x.dtype != np.uint64: x = x.astype(np.int64)
  return x[0].item() if len(x) == 1 else x


class Warp(Wave):
  """A warp of a launch that stands, and of its threads those that stand together with the one in focus."""

  examples = "%r1, %tid.x"
  by_lane = True

  @property
  def code(self) -> Code:
    """The function that it is in."""
    group = warps(self._place()[1])
    found: Code = group.cohort.program.at(group.pc)
    return found

  @property
  def exec(self) -> int:
    """The threads that stand together, as bits."""
    return int(np.packbits(self.active(), bitorder="little").view(np.uint32)[0])

  def active(self) -> npt.NDArray[np.bool_]:
    _, group, row = self._place()
    return np.array(warps(group).lanes[row])

  def registers(self) -> dict[str, Declared]:
    """The registers of the function by name."""
    return names(self.code)

  def register(self, name: str) -> Named | None:
    """A register of the function ("%r1"), or a special one ("%tid.x"), of every lane; None where there is none."""
    _, group, row = self._place()
    name = name if name.startswith("%") else f"%{name}"
    found = self.registers().get(name) or self.registers().get(name[1:])
    if found is not None: x = group.v[found.number]
    elif name in special.REGISTERS:
      try: x = special.reader(name, np.dtype("u4"))(warps(group))
      except Error: return None
    else: return None
    if x.ndim > 2: raise InvalidArgument(f"{name} has 128 bits")
    return Named(name, np.array(np.broadcast_to(x, (group.size, LANES))[row]), None)

  def values(self, name: str) -> Value:
    found = self.register(name)
    if found is None: raise self.unknown(name)
    return found.words

  def unknown(self, name: str) -> InvalidArgument:
    """The error for a name that no register has."""
    there = ", ".join([*self.registers()][:12])
    return InvalidArgument(f"no register is called {name!r}", where=f"function {self.code.name}",
                           hint=f"there are {there}")

  def named(self, name: str) -> Value | int | Named | None:
    """What a name in an expression means, of what a warp has."""
    if name.startswith(MARK): return self.register("%" + name[len(MARK):].replace("__", "."))
    if name in {"wave", "warp"}: return self.number
    if name in {"workgroup", "block"}: return self.number // self.engine.waves_a_group
    if name == "lane": return np.arange(LANES)
    if name == "thread": return self.number % self.engine.waves_a_group * LANES + np.arange(LANES)
    if name == "pc": return self.pc
    found = self.registers().get(name)
    return None if found is None else self.register(name)

  def write(self, name: str, value: int, lane: int | None = None) -> None:
    """Set a register of one lane, or of all that stand together; bits as an unsigned number, of its width."""
    _, group, row = self._place()
    found = self.registers().get(name) or self.registers().get(f"%{name}")
    if found is None: raise self.unknown(name)
    if lane is not None and not 0 <= lane < LANES: raise InvalidArgument(f"no lane {lane}", where=name)
    dtype = operands.dtype_of(found.type)
    bits = 1 if dtype.kind == "b" else 8 * dtype.itemsize
    if not -1 << bits - 1 <= value < 1 << bits: raise InvalidArgument(f"{value:#x} does not fit", where=name)
    raw = np.array([value & (1 << bits) - 1], np.uint64)
    new = raw.astype(bool) if dtype.kind == "b" else raw.astype(f"u{dtype.itemsize}").view(dtype)
    x = np.array(np.broadcast_to(group.v[found.number], (group.size, LANES)))
    at = self.active() if lane is None else np.arange(LANES) == lane
    x[row] = np.where(at, new.view(x.dtype), x[row])
    group.v[found.number] = x
    self.engine.touched()

  # ---- memory

  def lds(self) -> npt.NDArray[np.uint8]:
    """The shared memory of its block, itself."""
    cohort, group, row = self._place()
    start = int(group.workgroups[row]) * cohort.lds_size
    return cohort.lds[start:start + cohort.shared.total]

  def tensor(self) -> tuple[list[tuple[int, int]], npt.NDArray[np.uint32]]:
    """(first column, columns) of what its block has allocated of tensor memory, and the words [lanes, columns], itself.
    Raises InvalidArgument where it has none."""
    _, group, row = self._place()
    store, block = warps(group).cohort.tensor, int(group.workgroups[row])
    if store is None or not store.pieces[block]: raise InvalidArgument("the block has allocated no tensor memory")
    cells: npt.NDArray[np.uint32] = store.cells(block)
    return [(p.first, p.columns) for p in store.pieces[block]], cells

  def local(self, lane: int) -> npt.NDArray[np.uint8]:
    """A thread's local memory, itself."""
    cohort, group, row = self._place()
    if not 0 <= lane < LANES: raise InvalidArgument(f"no lane {lane}")
    memory = warps(group).cohort.local
    at = (int(group.waves[row]) - cohort.first) * LANES + lane
    found: npt.NDArray[np.uint8] = memory.u8[at * memory.size:(at + 1) * memory.size]
    return found

