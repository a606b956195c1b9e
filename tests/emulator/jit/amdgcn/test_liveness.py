"""Registers that compiled code does not store at a block's end, because nobody reads them again."""
from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emulator.jit.amdgcn.test_fragments import assembled
from tests.emulator.jit.amdgcn.test_jit import descriptor, differences, inputs, outcome, prologue, store
from tests.strength import seeds
from tinyhw.emulator.amdgcn import dispatch
from tinyhw.emulator.jit.amdgcn import run
from tinyhw.emulator.jit.amdgcn.launch import dispatch as compiled
from tinyhw.emulator.jit.amdgcn.liveness import End, unwanted

REGISTERS, BLOCKS = 4, 4
SOME = st.frozensets(st.integers(0, REGISTERS - 1))
GRAPH = st.lists(st.tuples(SOME, SOME, st.none() | st.lists(st.integers(0, BLOCKS), max_size=2)), min_size=BLOCKS,
                 max_size=BLOCKS)


def walk(ends: Mapping[int, End], without: Mapping[int, list[int]], way: list[int]) -> list[tuple[int, ...]]:
  """What is seen on a way through the blocks: each register that a block reads, all where it goes elsewhere."""
  memory, seen, at = [0] * REGISTERS, [], 0
  for step, choice in enumerate(way, 1):
    if at not in ends: break
    end = ends[at]
    seen.append(tuple(memory[n] for n in sorted(end.read)))
    kept = end.written if end.onward is None else {n for n, line in end.stored.items() if line not in without[at]}
    for n in kept: memory[n] = step
    if end.onward == []: break
    if end.onward is None or end.onward[choice % len(end.onward)] not in ends:
      seen.append(tuple(memory))
      break
    at = end.onward[choice % len(end.onward)]
  return seen


@given(GRAPH, st.lists(st.integers(0, 1), min_size=8, max_size=8))
def test_nobody_sees_what_is_not_stored(graph: list[tuple[frozenset[int], frozenset[int], list[int] | None]],
                                        way: list[int]) -> None:
  """In any graph of blocks, on any way; block 4 is one that does not take part."""
  ends = {k: End(read, written - read, onward, {} if onward is None else {n: 10 + n for n in written})
          for k, (read, written, onward) in enumerate(graph)}
  without = unwanted(ends, REGISTERS)
  assert walk(ends, without, way) == walk(ends, dict.fromkeys(ends, []), way)


def test_what_stays() -> None:
  """A loop's counter is stored, a temporary of it is not, and what only the code behind the loop reads is."""
  loop = End(frozenset({0, 3}), frozenset({1, 2}), [0, 1], {0: 5, 1: 6, 2: 7})
  ends = {0: loop, 1: End(frozenset({2}), frozenset(), [], {})}
  assert unwanted(ends, 4) == {0: [6], 1: []}


def programs(rng: random.Random, lanes: int) -> bytes:
  """Nested loops with branches on a scalar, in whose blocks registers are written, moved and added, some under EXEC."""
  mask = "exec" if lanes == 64 else "exec_lo"
  width = 64 if lanes == 64 else 32

  def some() -> str:
    out = []
    for _ in range(rng.randrange(1, 6)):
      d, a, b = (rng.randrange(12) for _ in range(3))
      out.append(rng.choice((f"v_mov_b32_e32 v{d}, v{a}", f"v_add_nc_u32_e32 v{d}, v{a}, v{b}",
                             f"v_mov_b32_e32 v{d}, {rng.randrange(64)}", f"v_xor_b32_e32 v{d}, v{a}, v{b}")))
      if rng.random() < 0.1:
        out = [f"s_mov_b{width} {mask}, {hex(rng.getrandbits(31))}", *out, f"s_mov_b{width} {mask}, -1"]
    return "\n".join(out)
  text = ["s_mov_b32 s40, 0"]
  for k in range(2):
    text += [f"L{k}:", some(), f"s_and_b32 s41, s40, {rng.randrange(1, 4)}", "s_cmp_eq_u32 s41, 0",
             f"s_cbranch_scc1 A{k}", some(), f"s_branch B{k}", f"A{k}:", some(), f"B{k}:", some(),
             "s_add_u32 s40, s40, 1", f"s_cmp_lt_u32 s40, {5 * k + 4}", f"s_cbranch_scc1 L{rng.randrange(k + 1)}"]
  return assembled("\n".join(text))


@pytest.mark.parametrize("lanes", [32, 64])
def test_programs_with_loops(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """As the reference has them, also where waves are left and taken up again at any block."""
  monkeypatch.setattr(run, "HOT", 0)
  for number in seeds(range(64 // lanes)):
    rng = random.Random(f"{lanes} {number}")
    code, data = prologue(lanes) + programs(rng, lanes) + b"".join(store(n) for n in range(12)), inputs(rng)
    expected, found = (outcome(one, code, data, descriptor(lanes)) for one in (dispatch, compiled))
    assert not isinstance(expected[0], type) and np.array_equal(expected[0], found[0])
    assert found[1].engine == "jit" and not found[1].interpreted


def test_v_perm_of_halves(monkeypatch: pytest.MonkeyPatch) -> None:
  """Every two halves, and selectors that look like halves and are none."""
  monkeypatch.setattr(run, "HOT", 0)
  halves = [0x100, 0x302, 0x504, 0x706]
  selectors = [a | b << 16 for a in halves for b in halves] + [0x05040200, 0x01000504 ^ 0x100, 0x0C0C0100, 0x09080100]
  rng = random.Random(0)
  code, data = prologue(32), inputs(rng)
  for k, selector in enumerate(selectors):
    code += assembled(f"v_perm_b32 v16, v{k % 5}, v{(k + 3) % 7}, {hex(selector)}") + store(16)
  expected, found = (outcome(one, code, data, descriptor(32)) for one in (dispatch, compiled))
  assert not differences(expected[0], found[0], 32).size and np.array_equal(expected[0], found[0])
  assert found[1].engine == "jit" and not found[1].interpreted
