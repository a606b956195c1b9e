"""Intermediate results share memory: none that are alive at one time, and no value changes by it."""
from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compile import deep
from tests.strength import examples
from tinyhw import Device, Tensor, TinyJit, nn
from tinyhw.engine import arena
from tinyhw.engine import realize as realize_module
from tinyhw.engine.arena import Life
from tinyhw.engine.realize import home, realize
from tinyhw.engine.run import Step, listening
from tinyhw.ir.uop import Ops
from tinyhw.tools.fuzz import views


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  """Memory is shared however little it is."""
  monkeypatch.setattr(realize_module, "_WORTH_SHARING", 0)
  yield


LIVES = st.lists(st.tuples(st.sampled_from(["A", "B"]), st.integers(1, 100), st.integers(0, 20), st.integers(0, 8)),
                 max_size=30)


@settings(max_examples=examples(200))
@given(LIVES)
def test_what_lives_at_one_time_lies_apart(rows: list[tuple[str, int, int, int]]) -> None:
  wanted = {n: Life(device, nbytes, first, first + more) for n, (device, nbytes, first, more) in enumerate(rows)}
  found, places = arena.places(wanted)
  assert found.keys() == wanted.keys()
  for n, life in wanted.items():
    assert places[found[n]].device == life.device and places[found[n]].nbytes >= life.nbytes
    for m, other in wanted.items():
      if n < m and found[n] == found[m]: assert life.last < other.first or other.last < life.first
  # No more than all apart, and no less than what is alive at some time.
  assert sum(p.nbytes for p in places) <= sum(v.nbytes for v in wanted.values())
  for at in range(30):
    assert sum(p.nbytes for p in places) >= sum(v.nbytes for v in wanted.values() if v.first <= at <= v.last)


def test_lives_are_from_the_first_touch_to_the_last() -> None:
  assert arena.lives([(3, 1), (4, 3), (1, 4)], [(3, "A", 8), (4, "A", 4), (9, "A", 1)]) == {
    3: Life("A", 8, 0, 1), 4: Life("A", 4, 1, 2)}


def peak_of(tensors: list[Tensor]) -> int:
  """Bytes that realizing takes at most, beside what is there before."""
  gc.collect()
  device = Device["LLVM"]
  device.forget_peak()
  before = device.peak
  realize(*tensors)
  return device.peak - before


def test_peak_memory_of_twelve_layers(monkeypatch: pytest.MonkeyPatch) -> None:
  peaks, values = {}, {}
  for plan in ("0", "1"):
    monkeypatch.setenv("PLAN", plan)
    tensors = deep.graph(12, "LLVM")
    results = sum(t.numel() * 4 for t in tensors)
    peaks[plan], values[plan] = peak_of(tensors) - results, [t.numpy() for t in tensors]
  assert all(np.array_equal(a, b) for a, b in zip(values["0"], values["1"]))
  assert (peaks["0"], peaks["1"]) == (3271040, 1943552)


def test_peak_memory_without_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
  """Twelve layers take what a few take where nothing is asked for again."""
  monkeypatch.setattr(realize_module, "_WORTH_SHARING", 0)
  rng = np.random.default_rng(0)
  def peak(layers: int) -> int:
    x = Tensor(rng.standard_normal((deep.BATCH, deep.LENGTH, deep.WIDTH)).astype(np.float32)).realize()
    made = [deep.Layer(rng, "LLVM") for _ in range(layers)]
    with Tensor.no_grad():
      for layer in made: x = layer(x)
      return peak_of([x])
  assert (peak(3), peak(12)) == (98304, 98304)


@pytest.mark.usefixtures("always")
def test_what_a_tensor_may_ask_for_is_kept() -> None:
  x = Tensor(np.arange(64, dtype=np.float32).reshape(8, 8) / 64)
  held = x @ (x @ x).exp()
  y = ((held @ x) @ x).sum()
  middle, after = held._uop.base.src[0], y._uop.base.src[0]
  y.realize()
  assert home(held._uop) is not None and all(home(u) is None for u in (*middle.toposort(), *after.toposort())
                                             if u.op is Ops.REDUCE_AXIS and u is not held._uop.base)
  wanted = (x.numpy() @ np.exp(x.numpy() @ x.numpy()) @ x.numpy() @ x.numpy()).sum()
  assert y.item() == pytest.approx(float(wanted), rel=1e-5)


@pytest.mark.usefixtures("always")
def test_what_a_gradient_needs_is_kept_until_it_went_back(monkeypatch: pytest.MonkeyPatch) -> None:
  x = Tensor(np.arange(64, dtype=np.float32).reshape(8, 8) / 64)
  def steps(back_first: bool, plan: str) -> int:
    monkeypatch.setenv("PLAN", plan)
    w = Tensor(np.eye(8, dtype=np.float32) * 2, requires_grad=True)
    h = x @ w
    middle = h._uop
    loss = ((h.relu() @ w).relu() @ w).sum()
    del h
    if back_first:
      loss.backward()
      w.zero_grad()                          # it would ask for what it is computed from
    assert loss.spent is back_first
    loss.realize()
    assert (home(middle) is not None) is (plan == "0" or not back_first)
    loss.backward()
    assert w.grad is not None
    found: list[Step] = []
    with listening(found.append): w.grad.realize()
    return len(found)
  assert steps(False, "1") == steps(False, "0") < steps(True, "1")


@pytest.mark.usefixtures("always")
def test_random_lives_of_tensors() -> None:
  for number in range(examples(40)): views.chain(["LLVM", "PYTHON"], views.Seeded(f"arena {number}"))


@pytest.mark.usefixtures("always")
def test_training_is_the_same_with_and_without() -> None:
  def losses() -> list[float]:
    rng = np.random.default_rng(3)
    w1, w2 = (Tensor(rng.standard_normal(s).astype(np.float32) * 0.3, requires_grad=True) for s in ((16, 32), (32, 4)))
    x, y = (Tensor(rng.standard_normal(s).astype(np.float32)) for s in ((24, 16), (24, 4)))
    optimizer = nn.optim.Adam([w1, w2], lr=0.01)
    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
      optimizer.zero_grad()
      loss = (((x @ w1).relu() @ w2 - y) ** 2).mean()
      loss.backward()
      optimizer.step(loss)
      return loss
    return [step(x, y).item() for _ in range(5)]
  first = losses()
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("PLAN", "0")
    assert losses() == first
  assert first[-1] < first[0]


def test_memory_is_shared_from_a_size_on(monkeypatch: pytest.MonkeyPatch) -> None:
  """That of all results together: less of it is not worth the work, and `PLAN=0` shares none."""
  x = Tensor(np.ones((8, 8), np.float32), device="PYTHON").realize()
  def shares(worth: int, plan: str) -> bool:
    monkeypatch.setattr(realize_module, "_WORTH_SHARING", worth)
    monkeypatch.setenv("PLAN", plan)
    first = (x @ x).exp()
    middle = first._uop
    last = (first @ x).relu() @ x
    del first
    found: list[Step] = []
    with listening(found.append): last.realize()
    assert len(found) == 3 and sum(b.nbytes for step in found for b in step.written) <= room
    return home(middle) is None
  room = 3 * 8 * 8 * 4
  for worth, plan, shared in ((room, "1", True), (room + 1, "1", False), (room, "0", False), (room + 1, "0", False),
                              (0, "1", True)):
    assert shares(worth, plan) is shared, (worth, plan)
