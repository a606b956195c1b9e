"""Atomics of many lanes on one cell, which have a short way, against one lane after the other."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.emulator.memory.atomics import ATOMICS, modify
from tinyhw.emulator.values.ops import Ops

NAMES = sorted(name for name, a in ATOMICS.items() if a.kind != "f" and name != "condxchg")
CELL = st.one_of(st.integers(0, 3), st.integers(0, 2 ** 64 - 1))


@settings(max_examples=examples(16))
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith(("pk", "ordered"))])
@given(st.data())
def test_lanes_act_one_after_the_other(name: str, width: int, data: st.DataObject) -> None:
  what, kind = ATOMICS[name], np.dtype(f"u{width}")
  count = data.draw(st.integers(2, 20))
  def draw() -> np.ndarray: return np.array([data.draw(CELL) for _ in range(count)], np.uint64).astype(kind)
  values, compare = draw(), draw() if what.compares else None
  memory = draw()
  cell, dtype = memory[1], what.dtype(width)
  old = []
  for k in range(count):
    old.append(cell)
    operands = [np.asarray([x]).view(dtype) for x in (cell, values[k], values[k] if compare is None else compare[k])]
    cell = np.asarray(what.function(Ops, *operands), dtype).view(kind)[0]
  found = modify(memory, np.full(count, 1), name, values, compare, True)
  assert found is not None and found.tolist() == [int(x) for x in old] and memory[1] == cell
