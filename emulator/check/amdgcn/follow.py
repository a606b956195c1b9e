"""Runs an instruction's own step on registers with undefined bits: which of its results' bits are undefined then.

The step is the one that executes the instruction, so operand selection (op_sel, SDWA, DPP, halves, modifiers), EXEC
and what a destination keeps are what they are there, and the meaning has its rules from `values.shadow`. A generation
that is added has nothing to say here.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from tinyhw.emulator.check.amdgcn.effects import SCC, SGPR0
from tinyhw.emulator.check.arrays import SHADOW_OPS, Array
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.simt import Group
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn.codes import EXEC_HI, EXEC_LO

ONES: Final = np.uint32(0xFFFFFFFF)
NONE: Final = np.uint32(0)
_EXEC: Final = (EXEC_LO, EXEC_HI)


class _Scalars(list[Value]):
  """Scalar registers. EXEC has its value, by which a step decides; its shadow is kept beside it."""

  def __init__(self, values: Iterable[Value]) -> None:
    super().__init__(values)
    self.exec: dict[int, Value] = {}

  def __setitem__(self, code: Any, value: Any) -> None:
    if isinstance(value, Array) and code in _EXEC: self.exec[code], value = value.shadow, value.value
    super().__setitem__(code, value)


class Traffic:
  """The memory of a group that is followed: `loads` has the undefined bits of the bytes that each load finds
  [waves, lanes, width], None for a load of defined ones; `stores` gets those that each store or atomic leaves."""

  def __init__(self, group: Group, loads: Sequence[Value | None] | None = None) -> None:
    self.shape = group.size, group.cohort.lanes
    self.loads = list(loads or ())
    self.stores: list[Value | None] = []

  def _arriving(self, width: int) -> list[Value]:
    """Shadows of the dwords of the next load."""
    raw = self.loads.pop(0) if self.loads else None
    if raw is None: return [np.zeros(self.shape, U32)] * max(1, width // 4)
    if width < 4: raw = np.concatenate([raw, np.zeros((*self.shape, 4 - width), np.uint8)], axis=2)
    words = np.ascontiguousarray(raw).view(U32)
    return [words[:, :, k] for k in range(words.shape[2])]

  def load(self, width: int) -> list[Value]:
    """Dwords, or one smaller value, as `access.lds_load` has them. Nobody knows their values."""
    return [SHADOW_OPS.made(np.zeros(self.shape, U32), s) for s in self._arriving(width)]

  def whole(self, width: int) -> Value:
    """The same as `access.load` has it."""
    words = self._arriving(width)
    if width <= 4: return SHADOW_OPS.made(np.zeros(self.shape, U32), words[0])
    if width == 8:
      return SHADOW_OPS.made(np.zeros(self.shape, U64), words[0].astype(U64) | words[1].astype(U64) << np.uint64(32))
    return SHADOW_OPS.made(np.zeros((*self.shape, width // 4), U32), np.stack(words, axis=2))

  def store(self, words: list[Value], width: int) -> None:
    """Take dwords, or the low bytes of one."""
    shadows = [SHADOW_OPS.parts(w)[1] for w in words]
    if all(s is None for s in shadows): return self.stores.append(None)
    columns = [np.broadcast_to(NONE if s is None else s, self.shape) for s in shadows]
    self.stores.append(np.ascontiguousarray(np.stack(columns, axis=2)).view(np.uint8)[:, :, :width])

  def atomic(self, width: int, operation: str, data: Value, compare: Value | None) -> Value:
    """The old value; the new one is undefined where an operand is, but what no old value could change."""
    kind = U32 if width == 4 else U64
    words = self._arriving(width)
    shadow = words[0] if width == 4 else words[0].astype(U64) | words[1].astype(U64) << np.uint64(32)
    old = SHADOW_OPS.made(np.zeros(self.shape, kind), shadow)
    what = ATOMICS[operation]
    dtype, o = what.dtype(width), Following.o
    others = [x.view(dtype) for x in (data, data if compare is None else compare)]
    any_old = o.made(np.zeros(self.shape, kind), ~kind.type(0) | shadow).view(dtype)
    blind, whole = (o.parts(x)[1] for x in (what.function(o, any_old, *others), o.whole(any_old.value, old, *others)))
    new = o.made(np.zeros(self.shape, kind), None if blind is None or whole is None else blind & whole)
    self.store([new] if width == 4 else [new.astype(U32), (new >> np.uint64(32)).astype(U32)], width)
    return old


class Following(Group):
  """A group whose step is followed: a copy of another one, with registers that have undefined bits."""
  __slots__ = ("memory",)
  s: _Scalars
  memory: Traffic

  o: Any = SHADOW_OPS  # what it has no rule for, it finds by name

  @classmethod
  def of(cls, group: Group, traffic: Traffic) -> Following:
    """A copy of a group's registers and lanes, with a memory of its own."""
    other = cls.__new__(cls)
    for name in Group.__slots__: setattr(other, name, getattr(group, name))
    other.v, other.s, other.bools, other.pairs = list(group.v), _Scalars(group.s), {}, {}
    other.memory = traffic
    return other

  def take(self, index: Value) -> Group:
    return Following.of(super().take(index), self.memory)

  def put(self, r: int, shadow: Value) -> None:
    """Bits of a register are undefined: u32 [waves, lanes], or [waves, 1] of a scalar one."""
    if r == SCC: self.scc = SHADOW_OPS.made(np.asarray(self.scc), shadow != 0)
    elif r >= SGPR0: self.s[r - SGPR0] = SHADOW_OPS.made(np.asarray(self.s[r - SGPR0]), shadow)
    elif r < len(self.v): self.v[r] = SHADOW_OPS.made(np.asarray(self.v[r]), shadow)

  def get(self, r: int) -> Value | None:
    """The shadow of a register, of its shape; None where all bits are defined."""
    if r == SCC:
      shadow = SHADOW_OPS.parts(self.scc)[1]
      return None if shadow is None else np.where(shadow, ONES, NONE)
    code = r - SGPR0
    if code in _EXEC: return self.s.exec.get(code)
    return SHADOW_OPS.parts(self.s[code] if code >= 0 else self.v[r])[1] if code >= 0 or r < len(self.v) else None
