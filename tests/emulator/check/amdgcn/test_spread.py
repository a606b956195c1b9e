"""How undefined bits spread is said by what an instruction means: one rule for all its names, in every generation."""
from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import tinyhw.emulator.amdgcn.all_tables  # noqa: F401
from tinyhw.arch import DECODED
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS, Meaning
from tinyhw.emulator.check.amdgcn.effects import TRANSCENDENTAL
from tinyhw.emulator.check.amdgcn.spread import reached, spread
from tinyhw.emulator.jit.amdgcn.shadows import rule_of
from tinyhw.isa.amdgcn.tables import table

SIZES = {"u32": 2, "i32": 2, "u64": 4, "i64": 4}
MOST = (1 << 64) - 1


def groups() -> dict[Any, set[str]]:
  """The names of each meaning, of all generations; those of the vector and of the scalar unit apart (v_s_exp_f32 is
  one of both)."""
  out = defaultdict[Any, set[str]](set)
  for name, isa in {arch.table: arch.isa for arch in DECODED.values()}.items():
    for mnemonic in table(name).by_mnemonic:
      if (m := MEANINGS.get(mnemonic, isa)) is None: continue
      unit = next((u for u in ("v_s_", "v_", "s_") if mnemonic.startswith(u)), "")
      out[unit, m.function, m.results, m.sources, m.packed].add(mnemonic)
  return out


def test_every_name_of_a_meaning_has_one_rule() -> None:
  found = groups()
  assert sum(len(names) > 1 for names in found.values()) > 80
  for (unit, *_), names in found.items():
    if not unit: continue
    assert len({(rule_of(n, unit != "s_"), bool(TRANSCENDENTAL.match(n))) for n in names}) == 1, names


def test_names_that_a_new_generation_gives_are_followed() -> None:
  """gfx12's v_mad_co_u64_u32 is gfx11's v_mad_u64_u32: a dword depends on those below it."""
  wide, old = MEANINGS.get("v_mad_co_u64_u32", "gfx12"), MEANINGS.get("v_mad_u64_u32", "gfx11")
  assert wide is not None and old is not None and (depends := spread(wide)) is not None and depends == spread(old)
  assert [max(k for _, k in part) for part in depends[0]] == [0, 1, 2, 3]


def of(mnemonic: str, *constants: int | None) -> list[list[list[tuple[int, int]]]] | None:
  meaning = MEANINGS.get(mnemonic, "gfx11")
  assert meaning is not None
  found = spread(meaning, constants)
  return None if found is None else [[sorted(part) for part in one] for one in found]


@pytest.mark.parametrize(("mnemonic", "constants", "depends"), [
  ("v_mov_b32", (), [[(0, 0)], [(0, 1)]]), ("v_xor_b32", (), [[(0, 0), (1, 0)], [(0, 1), (1, 1)]]),
  ("v_and_b32", (0xFFFF, None), [[(1, 0)], []]), ("v_or_b32", (0xFFFF, None), [[], [(1, 1)]]),
  ("v_lshlrev_b32", (16, None), [[], [(1, 0)]]), ("v_lshrrev_b32", (20, None), [[(1, 1)], []]),
  ("v_ashrrev_i32", (31, None), [[(1, 1)], [(1, 1)]]), ("v_bfe_u32", (None, 16, 8), [[(0, 1)], []]),
  ("v_add_nc_u32", (), [[(0, 0), (1, 0)], [(0, 0), (0, 1), (1, 0), (1, 1)]])])
def test_what_halves_depend_on(mnemonic: str, constants: tuple[int | None, ...], depends: Any) -> None:
  assert of(mnemonic, *constants) == [depends]


def number(rng: random.Random) -> int:
  """64 bits of runs of ones and zeros: carries and comparisons that come seldom of others."""
  x, at, one = 0, 0, rng.getrandbits(1)
  while at < 64:
    n = rng.choice((1, 4, 8, 15, 16, 17, 32, 40))
    x, at, one = x | ((1 << n) - 1) * one << at, at + n, one ^ 1
  return x & MOST if rng.random() < 0.8 else rng.getrandbits(64)


def samples(rng: random.Random, count: int) -> list[Any]:
  rows = []
  for _ in range(80):
    row = [number(rng) for _ in range(count)]
    if count > 1 and rng.random() < 0.6:
      a, b = rng.sample(range(count), 2)
      row = [x if n in (a, b) else rng.choice((x, 0, 1, MOST, 16)) for n, x in enumerate(row)]
      row[b] = rng.choice((row[a], ~row[a], -row[a], row[a] + 1)) & MOST
    rows.append(row)
  return list(np.array(rows, np.uint64).T)


def test_nothing_reaches_what_does_not_depend_on_it(seed: int = 5) -> None:
  """Against other values and sets of halves than those by which it was found."""
  rng, seen = random.Random(seed), 0
  unique: dict[Any, Meaning] = {(m.function, m.results, m.sources): m for m in MEANINGS}
  for m in unique.values():
    if (depends := spread(m)) is None: continue
    halves = [(s, k) for s, t in enumerate(m.sources) for k in range(SIZES[t])]
    sets = [{h for h in halves if rng.random() < 0.4} for _ in range(8)]
    found = reached(m.function, m.results, m.sources, [None] * len(m.sources), sets, samples(rng, len(m.sources)))
    for one, parts in zip(found, depends):
      for rows, part in zip(one, parts):
        assert not any(touched and not undefined & part for touched, undefined in zip(rows, sets)), m.mnemonic
    seen += 1
  assert seen > 100
