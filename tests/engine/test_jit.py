"""TinyJit replays what it recorded: with new inputs, new random numbers and changing state."""
from __future__ import annotations

import pytest

from tinyhw import Tensor, TinyJit
from tinyhw.core.errors import InvalidArgument
from tinyhw.engine.run import Step, listening


def test_a_replay_computes_from_new_inputs() -> None:
  calls = []
  @TinyJit
  def f(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    calls.append(1)
    z = (x + y).sum()
    return z * 2, (x * z).contiguous()
  for i in range(5):
    a, b = f(Tensor([1.0, 2.0 + i]), Tensor([float(i), 3.0]))
    assert a.item() == 2 * (6 + 2 * i) and b.tolist() == [6 + 2 * i, (2 + i) * (6 + 2 * i)]
  assert len(calls) == 2 and f.captured
  f.reset()
  f(Tensor([1.0, 2.0]), Tensor([1.0, 3.0]))
  assert len(calls) == 3


def test_state_changes_in_each_replay() -> None:
  count = Tensor([0.0]).realize()
  @TinyJit
  def step(x: Tensor) -> Tensor:
    count.assign(count + x)
    return count * 10
  found = [step(Tensor([1.0])).item() for _ in range(5)]
  assert found == [10, 20, 30, 40, 50] and count.item() == 5


def test_random_numbers_are_new_in_each_replay() -> None:
  Tensor.manual_seed(7)
  f = TinyJit(lambda x: (Tensor.rand(4) + x).realize())
  found = [tuple(f(Tensor([0.0])).tolist()) for _ in range(5)]
  Tensor.manual_seed(7)
  assert found == [tuple(Tensor.rand(4).tolist()) for _ in range(5)] and len(set(found)) == 5


def test_a_replay_runs_no_more_than_was_recorded() -> None:
  f = TinyJit(lambda x: (x.exp().sum() + 1).realize())
  counts = []
  for _ in range(4):
    steps: list[Step] = []
    x = Tensor([1.0, 2.0]).realize()
    with listening(steps.append): f(x)
    counts.append(len(steps))
  assert counts[0] == counts[1] == counts[2] == counts[3] > 0


def test_methods_and_mistakes() -> None:
  class Model:
    def __init__(self) -> None: self.w = Tensor([3.0]).realize()
    @TinyJit
    def run(self, x: Tensor) -> Tensor: return (self.w * x).realize()
  model = Model()
  assert [model.run(Tensor([float(i)])).item() for i in range(4)] == [0, 3, 6, 9]
  with pytest.raises(InvalidArgument, match=r"made for .*\(1,\).* called with .*\(2,\)"): model.run(Tensor([1.0, 2.0]))
  empty = TinyJit(lambda: None)
  empty()
  with pytest.raises(InvalidArgument, match="no work"): empty()
