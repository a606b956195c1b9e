"""Schedules are kept by the structure of what is computed: the same for other memory, never for anything else."""
from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw.compile
from tests.strength import examples
from tinyhw import Tensor
from tinyhw.core.kept import Kept
from tinyhw.devices.buffer import ByNode, buffer_of
from tinyhw.engine import planned
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.uop import UOp


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
  """What was scheduled anew."""
  seen: list[Any] = []
  original = tinyhw.compile.schedule
  monkeypatch.setattr(tinyhw.compile, "schedule", lambda outputs: seen.append(outputs) or original(outputs))
  monkeypatch.setattr(planned, "_planned", Kept(1024))
  yield seen


def put(values: Any) -> Tensor: return Tensor(np.array(values, np.float32), device="PYTHON").realize()


def test_other_memory_is_no_other_schedule(scheduled: list[Any]) -> None:
  for n in range(5):
    a, b = put([n, 2, 3]), put([4, 5, n])
    assert ((a + b) * a).sum().item() == sum((x + y) * x for x, y in zip((n, 2, 3), (4, 5, n)))
  assert len(scheduled) == 1


def test_which_memory_is_the_same_matters(scheduled: list[Any]) -> None:
  a, b = put([1, 2]), put([3, 4])
  assert [(a + b).tolist(), (b + a).tolist(), (a + a).tolist(), (b + b).tolist()] == [[4, 6], [4, 6], [2, 4], [6, 8]]
  assert len(scheduled) == 2
  assert (a + a.reshape(2, 1)).tolist() == [[2, 3], [3, 4]]
  assert (a + b.reshape(2, 1)).tolist() == [[4, 5], [5, 6]]


def test_floats_are_known_by_their_bits(scheduled: list[Any]) -> None:
  x = put([-0.0])
  for zero in (0.0, -0.0):
    assert np.signbit((x + zero).numpy()) == np.signbit(np.float32(-0.0) + np.float32(zero))
  before = len(scheduled)
  for _ in range(2): assert np.isnan((x + float("nan")).numpy()).all()
  assert len(scheduled) == before + 1


def test_types_and_numbers_are_told_apart() -> None:
  x = Tensor([1, 2], device="PYTHON")
  found = [(x * 1), (x * True), (x.cast(dtypes.float32) * 1.0), (x.cast(dtypes.bool) * True)]
  assert [t.dtype for t in found] == [dtypes.int32, dtypes.int32, dtypes.float32, dtypes.bool]
  assert [t.tolist() for t in found] == [[1, 2], [1, 2], [1.0, 2.0], [True, True]]


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=5), st.lists(st.integers(0, 3), min_size=4, max_size=4))
@settings(max_examples=examples(20), deadline=None)
def test_any_sharing_of_memory(names: list[str], realize: list[int]) -> None:
  """An expression over some tensors, of which some are the same and some are realized on the way."""
  host = {n: np.arange(6, dtype=np.float32).reshape(2, 3) * (k + 1) for k, n in enumerate("abc")}
  tensors = {n: Tensor(v, device="PYTHON") for n, v in host.items()}
  wanted, found = host[names[0]], tensors[names[0]]
  for n, how in zip(names[1:], realize):
    wanted, found = wanted * 2 + host[n], found * 2 + tensors[n]
    if how & 1: found.realize()
    if how & 2: wanted, found = wanted.T.reshape(2, 3), found.transpose(0, 1).reshape(2, 3)
  assert np.array_equal(found.numpy(), wanted)


def test_a_schedule_keeps_no_memory(scheduled: list[Any]) -> None:
  x = put(range(1000))
  y = (x + 1).realize()
  memory = [weakref.ref(buffer_of(t.uop.base)) for t in (x, y)]
  del x, y
  gc.collect()
  assert [m() for m in memory] == [None, None]
  assert (put(range(1000)) + 1).sum().item() == 500_500
  assert planned._planned


def test_the_oldest_schedules_go(scheduled: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
  planned._planned.limit = 2
  x = put([1, 2])
  for n in (1, 2, 3, 1): assert (x + n).tolist() == [1 + n, 2 + n]
  assert len(scheduled) == 4 and len(planned._planned) == 2


def test_values_of_nodes_go_with_them() -> None:
  table: ByNode[int] = ByNode()
  node = UOp.new_buffer("PYTHON", 3, dtypes.float32)
  table.set(node, 1)
  table.set(node, 2)
  assert (table.get(node), len(table), table.first(node, 3), table.items()) == (2, 1, 2, [(node, 2)])
  del node
  gc.collect()
  assert len(table) == 0
