"""Of which halves of its sources the halves of an instruction's results depend: found by running its meaning.

A half is 16 bits of a register. The meaning runs on values of which one half is undefined, by the rules of
`values.shadow`, and what is undefined of its results depends on that half; then on values of which all is undefined but
what a result was seen to depend on, of which nothing may reach it. Values are samples, the same in each process. So
every name of a meaning has one rule, and a generation that is added has nothing to say here.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, permutations, product
from typing import Any, Final

import numpy as np

from tinyhw.emulator.amdgcn.meanings.registry import Function, Meaning
from tinyhw.emulator.check.arrays import SHADOW_OPS, Undecided
from tinyhw.emulator.values.ops import Array

Half = tuple[int, int]  # a source, and which of its halves, the lowest first
Spread = tuple[tuple[frozenset[Half], ...], ...]  # of each result, of each of its halves; a mask has one

_HALVES: Final = {"u32": 2, "i32": 2, "u64": 4, "i64": 4}
_MOST: Final = (1 << 64) - 1
_RESULTS: Final = {**_HALVES, "mask": 1}
_ANY: Final = 40  # samples that are any numbers
_MASKS: Final = (0x1F, 0x0707070707070707, 0x0F0F0F0F0F0F0F0F, 0xFF)  # of as many that are small, or have small bytes
_BEFORE: Final = (0, 1, 0x7FFFFFFF7FFFFFFF, 0x8000000080000000, 0xFFFF0000FFFF0000, 0xFFFF0000FFFF,
                 0xFFFFFFFFFFFFFFFF)
_BESIDE: Final[tuple[Callable[[int], int], ...]] = (lambda x: x, lambda x: ~x, lambda x: -x, lambda x: x + 1)
_REST: Final = (0, 1, -1)


def spread(meaning: Meaning, constants: tuple[int | None, ...] = ()) -> Spread | None:
  """`constants` are the sources that are known, dwords alone. None for a meaning of which this is not to be said: one
  that is not of whole registers of integers, for whose numbers such samples are not enough; or one that must decide
  something."""
  if meaning.packed or not set(meaning.sources) <= _HALVES.keys() or not set(meaning.results) <= _RESULTS.keys():
    return None
  return _spread(meaning.function, meaning.results, meaning.sources, constants or (None,) * len(meaning.sources))


@cache
def _samples(count: int) -> list[Array]:
  """For each source some u64: any numbers, small ones, and pairs by which carries go all the way and comparisons end
  where all but one half agree, beside what is neutral."""
  rng = np.random.default_rng(16)
  rows = [rng.integers(0, 1 << 64, count, np.uint64).tolist() for _ in range(2 * _ANY)]
  for n, row in enumerate(rows[_ANY:]): row[:] = [x & _MASKS[(n + s) % len(_MASKS)] for s, x in enumerate(row)]
  for x in (*_BEFORE, *rng.integers(0, 1 << 64, 3, np.uint64).tolist()):
    rows.append([x] * count)
    for s, t in permutations(range(count), 2):
      for beside, rest in product(_BESIDE, _REST):
        row = [rest & _MOST] * count
        row[s], row[t] = x, beside(x) & _MOST
        rows.append(row)
  return list(np.array(rows, np.uint64).T)


@cache
def _spread(function: Function, results: tuple[str, ...], types: tuple[str, ...],
            constants: tuple[int | None, ...]) -> Spread | None:
  halves = [(s, k) for s, t in enumerate(types) if constants[s] is None for k in range(_HALVES[t])]
  try:
    seen = reached(function, results, types, constants, [{h} for h in halves])
    found = [[frozenset(h for h, touched in zip(halves, rows) if touched) for rows in one] for one in seen]
    # what is undefined with all others must not reach it
    rest = [set(halves) - depends for one in found for depends in one]
    again = iter(reached(function, results, types, constants, rest))
  except Undecided: return None
  at, out = 0, []
  for one, rows in zip(found, again):
    depends = [frozenset(halves) if rows[k][at + k] else seen for k, seen in enumerate(one)]
    if any(half < k for k, seen in enumerate(depends) for _, half in seen):  # carries, maybe, that no sample has
      depends = list(accumulate(depends, lambda below, own: below | own))
    out.append(tuple(depends))
    at += len(one)
  return tuple(out)


def reached(function: Function, results: tuple[str, ...], types: tuple[str, ...], constants: Sequence[int | None],
            undefined: Sequence[set[Half]], samples: Sequence[Array] | None = None) -> list[list[Array]]:
  """For each half of each result whether some sample of it is undefined, where a set of halves is: a bool a set.

  Raises Undecided where the meaning decides something by them.
  """
  sources = []
  for s, (t, constant) in enumerate(zip(types, constants)):
    dtype, plain = np.dtype(f"{t[0]}{2 * _HALVES[t]}"), np.dtype(f"u{2 * _HALVES[t]}")
    bits = (_samples(len(types)) if samples is None else samples)[s].astype(plain)
    if constant is not None: bits = np.full_like(bits, constant)
    shadow = np.array([sum(0xFFFF << 16 * k for n, k in halves if n == s) for halves in undefined], plain)[:, None]
    value = np.broadcast_to(bits, (len(undefined), len(bits))).copy()
    sources.append(SHADOW_OPS.made(value.view(dtype), np.broadcast_to(shadow, value.shape).copy())
                   if shadow.any() else value.view(dtype))
  with np.errstate(all="ignore"): values = function(SHADOW_OPS, *sources)
  out: list[list[Any]] = []
  for t, value in zip(results, values if isinstance(values, tuple) else (values,)):
    _, found = SHADOW_OPS.parts(value)
    if found is None: out.append([np.zeros(len(undefined), bool)] * _RESULTS[t])
    elif t == "mask": out.append([found.any(axis=1)])
    else: out.append([(found >> np.asarray(16 * k, found.dtype) & np.asarray(0xFFFF, found.dtype)).any(axis=1)
                      for k in range(_RESULTS[t])])
  return out
