"""What atomics do to a memory cell: pure functions, as the meanings are, for global memory and for LDS."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tinyhw.emulator.values.ops import F32, F64, I32, I64, U32, U64, Array, Binary, Ops, Ternary, V
from tinyhw.emulator.values.ops import Operations as O


@dataclass(frozen=True)
class Atomic:
  """The new value of a cell from `function(o, old, data, compare)`, all of one type.

  `kind` is the type: u, i or f, as wide as the cell. `ufunc` is a NumPy function with the same effect, where there is
  one; `compares` says that the instruction has a second operand.
  """
  kind: str
  function: Ternary
  ufunc: Any = None
  compares: bool = False

  def dtype(self, width: int) -> Any:
    """The type of a cell of `width` bytes."""
    return _TYPES[self.kind, width]


def _ordered_add(o: O[V], old: V, data: V, compare: V) -> V:
  """{value, id} in memory: where the id is the data's, it goes one up and the value rises by the data's upper half.

  The chip's id wraps at VGT_GS_MAX_WAVE_ID, a register of the geometry stage, which is not modelled.
  """
  mine = o.to(old, "u32") == o.to(data, "u32")
  raised = o.pack(o.to(old, "u32") + 1, o.to(old >> 32, "u32") + o.to(data >> 32, "u32"))
  return o.where(mine, raised, old)


_TYPES: Final[dict[tuple[str, int], Any]] = {
  ("u", 4): U32, ("u", 8): U64, ("i", 4): I32, ("i", 8): I64, ("f", 4): F32, ("f", 8): F64}


def _exchanged(o: O[V], old: V, data: V, at: int) -> V:
  """A half of two dwords: the new one without its top bit where that bit is set, else the old one."""
  return o.where((data >> at + 31 & 1) == 1, data & 0x7FFFFFFF << at, old & 0xFFFFFFFF << at)


def _two(add: Binary) -> Ternary:
  """The function on both 16-bit halves of a u32."""
  def both(o: O[V], old: V, d: V, c: V) -> V:
    return add(o, old & 0xFFFF, d & 0xFFFF) | add(o, old >> 16, d >> 16) << 16
  return both


def _add_f16(o: O[V], a: V, b: V) -> V:
  x, y = (o.bits(o.to(v, "u16"), "f16") for v in (a, b))
  return o.to(o.bits(x + y, "u16"), "u32")


def _add_bf16(o: O[V], a: V, b: V) -> V:
  """The sum of two bf16 is exact in f64 or far from a tie, and rounds correctly by way of f32 rounded to odd."""
  x, y = (o.to(o.bits(v << 16, "f32"), "f64") for v in (a, b))
  total = o.fma_f16_of_f32(x, o.const("f64", 1), y)
  near = o.to(total, "f32")
  raw = o.bits(near, "u32")
  inexact = (o.to(near, "f64") != total) & ~o.isnan(total)
  down = o.abs(o.to(near, "f64")) > o.abs(total)
  odd = o.where(inexact, o.where(down, raw - 1, raw) | 1, raw)
  rounded = odd + 0x7FFF + (odd >> 16 & 1) >> 16
  return o.where(o.isnan(total), o.const("u32", 0x7FC0), rounded)


ATOMICS: Final[dict[str, Atomic]] = {
  "swap": Atomic("u", lambda o, old, d, c: d),
  "cmpswap": Atomic("u", lambda o, old, d, c: o.where(old == c, d, old), compares=True),
  "fcmpswap": Atomic("f", lambda o, old, d, c: o.where(old == c, d, old), compares=True),
  "add": Atomic("u", lambda o, old, d, c: old + d, np.add),
  "sub": Atomic("u", lambda o, old, d, c: old - d, np.subtract),
  "rsub": Atomic("u", lambda o, old, d, c: d - old),
  "csub": Atomic("u", lambda o, old, d, c: o.where(old >= d, old - d, old ^ old)),
  "condsub": Atomic("u", lambda o, old, d, c: o.where(old >= d, old - d, old)),
  "ordered_add": Atomic("u", _ordered_add),
  "smin": Atomic("i", lambda o, old, d, c: o.min(old, d), np.minimum),
  "smax": Atomic("i", lambda o, old, d, c: o.max(old, d), np.maximum),
  "umin": Atomic("u", lambda o, old, d, c: o.min(old, d), np.minimum),
  "umax": Atomic("u", lambda o, old, d, c: o.max(old, d), np.maximum),
  "and": Atomic("u", lambda o, old, d, c: old & d, np.bitwise_and),
  "or": Atomic("u", lambda o, old, d, c: old | d, np.bitwise_or),
  "xor": Atomic("u", lambda o, old, d, c: old ^ d, np.bitwise_xor),
  "inc": Atomic("u", lambda o, old, d, c: o.where(old >= d, old ^ old, old + 1)),
  "dec": Atomic("u", lambda o, old, d, c: o.where((old == 0) | (old > d), d, old - 1)),
  "mskor": Atomic("u", lambda o, old, d, c: old & ~d | c, compares=True),
  "wrap": Atomic("u", lambda o, old, d, c: o.where(old >= d, old - d, old + c), compares=True),
  "condxchg": Atomic("u", lambda o, old, d, c: _exchanged(o, old, d, 0) | _exchanged(o, old, d, 32)),
  "fadd": Atomic("f", lambda o, old, d, c: old + d, np.add),
  "fmin": Atomic("f", lambda o, old, d, c: o.fmin(old, d)),
  "fmax": Atomic("f", lambda o, old, d, c: o.fmax(old, d)),
  "pk_add_f16": Atomic("u", _two(_add_f16)), "pk_add_bf16": Atomic("u", _two(_add_bf16)),
  # the first operand is what to compare with, the second the new value
  "cmpst": Atomic("u", lambda o, old, d, c: o.where(old == d, c, old), compares=True),
  "fcmpst": Atomic("f", lambda o, old, d, c: o.where(old == d, c, old), compares=True),
}


# ---- LDS: MODE flushes denormals, but those of flat_ atomics (RDNA4 ISA manual, section 13.2; RDNA3, chapter 12)

def _flushing(what: Atomic, source: bool, result: bool) -> Atomic:
  """The same on operands, or to a result, whose denormals are zeros."""
  def function(o: O[V], old: V, d: V, c: V) -> V:
    if source: old, d, c = (o.flush(x) for x in (old, d, c))
    value = what.function(o, old, d, c)
    return o.flush(value) if result else value
  return Atomic(what.kind, function, compares=what.compares)


def _choosing(what: Atomic) -> Atomic:
  """An extreme that compares with denormals as zeros, and gives the number that it chose as it was."""
  def function(o: O[V], old: V, d: V, c: V) -> V:
    x, bits = o.flush(old), f"u{old.dtype.itemsize * 8}"
    return o.where(o.bits(what.function(o, x, o.flush(d), c), bits) == o.bits(x, bits), old, d)
  return Atomic(what.kind, function, compares=what.compares)


def _flushing_halves(source: bool, result: bool) -> Atomic:
  def add(o: O[V], a: V, b: V) -> V:
    x, y = (o.bits(o.to(v, "u16"), "f16") for v in (a, b))
    if source: x, y = o.flush(x), o.flush(y)
    total = x + y
    return o.to(o.bits(o.flush(total) if result else total, "u16"), "u32")
  return Atomic("u", _two(add))


for _name in ("fmin", "fmax"): ATOMICS[f"{_name}.chosen"] = _choosing(ATOMICS[_name])
FLUSHING: Final = frozenset(("fadd", "fmin", "fmax", "fcmpswap", "fcmpst", "pk_add_f16"))  # have forms that flush
for _name in FLUSHING:
  for _source, _result in ((True, False), (False, True), (True, True)):
    ATOMICS[_name + ".source" * _source + ".result" * _result] = (
      _flushing_halves(_source, _result) if _name == "pk_add_f16" else _flushing(ATOMICS[_name], _source, _result))


def modify(memory: Array, index: Array, operation: str, data: Array, compare: Array | None, want: bool) -> Array | None:
  """Read-modify-write of memory[index] in the order of the lanes; returns the old values when wanted.

  `memory`, `data` and `compare` are u32 or u64 arrays; equal indices are served one after the other.
  """
  what = ATOMICS[operation]
  dtype = what.dtype(memory.dtype.itemsize)
  cells, values = memory.view(dtype), data.view(dtype)
  if not want and what.ufunc is not None and index.size > 1:
    what.ufunc.at(cells, index, values)
    return None
  wanted = compare.view(dtype) if compare is not None else values
  if index.size > 1 and what.kind != "f" and (index == index[0]).all():  # many waves at one lock or counter
    found = _at_one_cell(operation, cells, index[:1], values, wanted)
    if found is not None: return found.view(memory.dtype)
  out = np.empty(index.size, dtype)
  order = np.argsort(index, kind="stable")
  ordered = index[order]
  start = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
  rank = np.empty(index.size, np.intp)
  rank[order] = np.arange(index.size) - np.repeat(start, np.diff(np.append(start, index.size)))
  for r in range(int(rank.max()) + 1 if index.size else 0):
    at = np.flatnonzero(rank == r) if r or len(start) != index.size else slice(None)
    old = cells[index[at]]
    out[at] = old
    cells[index[at]] = what.function(Ops, old, values[at], wanted[at])
  return out.view(memory.dtype)


def _at_one_cell(operation: str, cells: Array, at: Array, values: Array, wanted: Array) -> Array | None:
  """`modify` where all lanes act on one cell; None for an operation that has no short way."""
  ufunc = ATOMICS[operation].ufunc
  if ufunc is not None: states = ufunc.accumulate(np.concatenate([cells[at], values]), dtype=cells.dtype)
  elif operation == "swap": states = np.concatenate([cells[at], values])
  elif operation == "cmpswap":
    states = np.repeat(cells[at], values.size + 1)
    lane = 0
    while (hits := wanted[lane:] == states[lane]).any():  # the next lane that finds what it compares with
      lane += int(hits.argmax()) + 1
      states[lane:] = values[lane - 1]
  else: return None
  cells[at] = states[-1]
  return states[:-1]
