"""TinyJit replays what it recorded: with new inputs, new random numbers and changing state."""
from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, TinyJit, Variable, dtypes
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


def test_results_of_calls_are_values_of_their_own() -> None:
  f = TinyJit(lambda x: x * 1)
  assert [r.item() for r in [f(Tensor([float(i)])) for i in (1, 2, 3, 4, 5)]] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("reading", [Tensor.item, Tensor.numpy, Tensor.tolist, Tensor.data, float, int, bool])
def test_values_are_not_read_while_a_call_is_recorded(reading: Callable[[Tensor], Any]) -> None:
  inside = True
  @TinyJit
  def f(x: Tensor) -> Tensor:
    y = x + 1
    if inside: reading(y)
    return y * 2
  assert f(Tensor([1.0])).item() == 4
  for _ in range(2):
    with pytest.raises(InvalidArgument, match=r"f.*: while it records, its function reads a value into Python"):
      f(Tensor([2.0]))
  inside = False
  assert [f(Tensor([float(i)])).item() for i in range(3)] == [2, 4, 6] and f.captured
  g = TinyJit(lambda x: x * int(x.item()))
  g(Tensor([3.0]))
  with pytest.raises(InvalidArgument, match=r"reads a value into Python \(argument x\)"): g(Tensor([3.0]))


def test_a_value_from_outside_may_be_read_and_must_stay() -> None:
  scale = Tensor([3.0])
  f = TinyJit(lambda x: x * scale.item())
  assert [f(Tensor([float(i)])).item() for i in range(3)] == [0, 3, 6]
  scale.assign(Tensor([4.0]))
  with pytest.raises(InvalidArgument, match="was read into Python when a TinyJit recorded, and has another value now"):
    f(Tensor([1.0]))
  f.reset()
  assert f(Tensor([1.0])).item() == 4


class Config:
  pass


@pytest.mark.parametrize("old, new, name", [
  (2, 3, "scale"), (2, 2.0, "scale"), (0.0, -0.0, "scale"), ("a", "b", "scale"), (None, 1, "scale"),
  ((1, 2), (1, 3), r"scale\[1\]"), ({"a": [1]}, {"a": [2]}, r"scale\.a\[0\]"), ({"a": 1}, {"b": 1}, "scale"),
  ([1], [1, 2], "scale"), ([1], (1,), "scale"),
  (np.arange(3), np.arange(3) + 1, "scale"), (np.float32(1), np.float64(1), "scale"), (Config(), Config(), "scale"),
  (dtypes.int32, dtypes.int64, "scale"), (1, Tensor, "scale"), (Tensor, 1, "scale")])
def test_other_arguments_are_refused_by_name(old: Any, new: Any, name: str) -> None:
  old, new = (Tensor([1.0]) if a is Tensor else a for a in (old, new))  # of this test's device, which others may close
  f = TinyJit(lambda x, scale=2: x + 1)
  for _ in range(3): assert f(Tensor([1.0]), old).item() == f(Tensor([1.0]), scale=old).item() == 2
  with pytest.raises(InvalidArgument, match=rf"argument {name}: made for .*, called with .*Variable.*reset"):
    f(Tensor([1.0]), new)
  assert f(Tensor([2.0]), old).item() == 3


def test_keywords_come_in_any_order() -> None:
  f = TinyJit(lambda a, b, *, c, d=2: a - 2 * b + 3 * c + 4 * d)
  for i in range(6):
    a, b, c, d = (Tensor([float(i + k)]) for k in (0, 10, 20, 30))
    order = {"c": c, "b": b, "d": d, "a": a} if i % 2 else {"a": a, "d": d, "c": c, "b": b}
    assert f(**order).item() == (f(a, b, d=d, c=c)).item() == i - 2 * (i + 10) + 3 * (i + 20) + 4 * (i + 30)


def test_equal_arguments_are_taken() -> None:
  f = TinyJit(lambda x, a, **more: x + 1)
  for _ in range(4): f(Tensor([1.0]), a=[float("nan"), np.arange(3), {"k": (True, b"x")}], other=dtypes.int32)
  array = np.arange(3)
  g = TinyJit(lambda x, a: x + Tensor(a))
  for _ in range(3): g(Tensor([1, 1, 1]), array)
  array[0] = 5          # the same object, and not the same value
  with pytest.raises(InvalidArgument, match=r"argument a: made for an array \(3,\)"): g(Tensor([1, 1, 1]), array)


def test_other_tensors_are_refused_by_name() -> None:
  f = TinyJit(lambda x, y: x + y)
  x = Tensor([1.0])
  for _ in range(3): f(x, y=Tensor([1.0]))
  others = {r"\(2,\)": Tensor([1.0, 2.0]), "int32": Tensor([1]), "the tensor of x": x,
            "PYTHON": Tensor([1.0], device="PYTHON"), "requires_grad": Tensor([1.0], requires_grad=True)}
  for shown, other in others.items():
    with pytest.raises(InvalidArgument, match=rf"argument y: made for \(1,\) .* on LLVM, called with .*{shown}"):
      f(x, y=other)
  with pytest.raises(InvalidArgument, match="called with nothing"): f(x)


def test_modes_are_arguments() -> None:
  f = TinyJit(lambda x: x.dropout(0.5) + 1)
  for _ in range(3): f(Tensor([1.0]))
  with Tensor.train(), pytest.raises(InvalidArgument, match=r"Tensor\.training .*made for False, called with True"):
    f(Tensor([1.0]))
  with Tensor.no_grad(), pytest.raises(InvalidArgument, match=r"Tensor\.no_grad"): f(Tensor([1.0]))


def test_one_tensor_in_two_places() -> None:
  f = TinyJit(lambda x, y: x * 10 + y)
  pairs = [Tensor([float(i)]) for i in range(4)]
  assert [f(t, t).item() for t in pairs] == [0, 11, 22, 33]
  g = TinyJit(lambda x, y: x * 10 + y)
  views = [(t, t.detach()) for t in pairs]      # two tensors that share memory are two
  assert [g(*v).item() for v in views] == [0, 11, 22, 33] and g(Tensor([1.0]), Tensor([2.0])).item() == 12


def test_what_a_replay_cannot_do_is_refused_when_it_is_recorded() -> None:
  kept: list[Tensor] = []
  state, n = Tensor([1.0]), Variable("jit_refused", 1, 9).bind(1)
  grown = Tensor([2.0], requires_grad=True) * 3
  def keeps(x: Tensor) -> Tensor:
    kept.append(x + 1)
    return x * 2
  def both(x: Tensor) -> Tensor:
    state.assign(state + x)
    return x * 2
  cases: list[tuple[Callable[[Tensor], Tensor], Tensor, str]] = [
    (keeps, Tensor([1.0]), "keeps a tensor that it made .*return it"),
    (both, state, "argument x is also used by the function itself"),
    (lambda x: x * grown, Tensor([1.0]), r"whose history began outside of it; .*detach"),
    (lambda x: x * n.bind(2), Tensor([1.0]), "Variable jit_refused is bound"),
    (lambda x: [Tensor.manual_seed(3), x * 2][1], Tensor([1.0]), "random numbers get a seed"),
  ]
  for function, x, message in cases:
    f = TinyJit(function)
    f(x)
    for _ in range(2):
      with pytest.raises(InvalidArgument, match=message): f(x)
    assert not f.captured


def test_each_instance_has_its_own() -> None:
  class Scale:
    def __init__(self, by: float) -> None: self.by = Tensor([by])
    @TinyJit
    def run(self, x: Tensor) -> Tensor: return x * self.by
  two, three = Scale(2.0), Scale(3.0)
  assert [(two.run(Tensor([float(i)])).item(), three.run(Tensor([float(i)])).item()) for i in range(5)] == [
    (2 * i, 3 * i) for i in range(5)]
  three.by.assign(Tensor([5.0]))
  assert (two.run(Tensor([1.0])).item(), three.run(Tensor([1.0])).item()) == (2, 5) and three.run.captured
  del three
  gc.collect()
  assert len(Scale.run._methods) == 1


def test_a_replaced_tensor_is_told() -> None:
  state = {"h": Tensor([1.0])}
  f = TinyJit(lambda x: state["h"] + x)
  assert [f(Tensor([float(i)])).item() for i in range(3)] == [1, 2, 3]
  state["h"] = Tensor([9.0])
  with pytest.raises(InvalidArgument, match=r"a tensor that the function uses .* is gone; assign"): f(Tensor([0.0]))


def test_a_jit_inside_of_a_jit() -> None:
  inner = TinyJit(lambda x: x + 1)
  outer = TinyJit(lambda x: inner(x) * inner(x * 2))
  assert [outer(Tensor([float(i)])).item() for i in range(5)] == [(i + 1) * (2 * i + 1) for i in range(5)]
  assert [inner(Tensor([float(i)])).item() for i in range(4)] == [1, 2, 3, 4]


def test_histories_stay_on_their_side() -> None:
  w = Tensor([2.0], requires_grad=True)
  f = TinyJit(lambda x: w * x)
  for i in range(4):
    r = f(w * i)
    assert r.item() == 4 * i and not r.requires_grad
  f.reset()
  assert w.grad is None


def test_a_gradient_that_appears_is_told() -> None:
  w = Tensor([2.0], requires_grad=True)
  @TinyJit
  def f(x: Tensor) -> None: (w * x).sum().backward()
  for i in range(5):
    w.grad = None
    f(Tensor([float(i)]))
    assert w.grad is not None and w.grad.item() == i
  with pytest.raises(InvalidArgument, match="had no gradient when it was recorded, and has one now.*zero_grad"):
    f(Tensor([1.0]))


def test_no_elements_are_no_work() -> None:
  f = TinyJit(lambda x: (x + 1, x))
  for _ in range(4):
    x = Tensor([]).reshape(0, 2)
    y, same = f(x)
    assert y.shape == (0, 2) and y.tolist() == [] and same is x


def test_a_gradient_that_is_used_is_that_of_the_day() -> None:
  """Of a tensor that the function knows from outside, and of an argument: the gradient may be another tensor then."""
  w = Tensor([1.0, 2.0], requires_grad=True)
  f = TinyJit(lambda x: x + (w.grad if w.grad is not None else 0) * 10)
  g = TinyJit(lambda x: x * 1 + (x.grad if x.grad is not None else 0) * 10)
  for k in range(5):
    w.grad = None
    (w * k).sum().backward()
    assert f(Tensor([0.0, 1.0])).tolist() == [10.0 * k, 10.0 * k + 1]
    x = Tensor([0.0, 1.0], requires_grad=True)
    (x * k).sum().backward()
    assert g(x).tolist() == [10.0 * k, 10.0 * k + 1]
  w.grad = None
  with pytest.raises(InvalidArgument, match=r"the gradient of a tensor that the function uses .* is gone"):
    f(Tensor([0.0, 1.0]))
