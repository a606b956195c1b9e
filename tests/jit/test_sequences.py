"""A TinyJit equals its function: for any sequence of calls, with results kept and read in any order, and with the
function's state changed by others in between."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw import Tensor, TinyJit, Variable
from tinyhw.function import random
from tinyhw.function.core import TensorBase
from tinyhw.jit.arguments import tensors

N = Variable("jit_sequences", 1, 50)


class Model:
  """State that functions read and change: `w` learns, `v` does not, `u` was made from `v`'s value."""

  def __init__(self, device: str) -> None:
    self.w = Tensor([[1.0, 2.0], [3.0, 4.0]], device=device, requires_grad=True)
    self.v = Tensor([[5.0, 6.0], [7.0, 8.0]], device=device)
    self.u = self.v.detach()
    self.pending = self.v * 2

  def plain(self, x: Tensor) -> Tensor: return x * 2 + 1
  def views(self, x: Tensor) -> Any:
    y = x + 1
    return {"y": y, "T": (y.T, y.flip(0)[0]), "x": x, "again": [y, x.T]}
  def counter(self, x: Tensor) -> Any:
    self.v.assign(self.v + x.sum())
    return self.v, self.v * 10
  def momentum(self, x: Tensor) -> Any:
    self.v.assign(self.v * 0.5 + x)
    self.u.assign(self.u - self.v)
    return self.u.T.contiguous(), self.v
  def old(self, x: Tensor) -> Any:
    before = self.v.flip(0)
    self.v.assign(self.v.T + x)
    return before
  def twins(self, x: Tensor) -> Any:
    self.v.assign(self.v + x)
    return self.v + self.u
  def swap(self, x: Tensor) -> Any:
    a, b = self.v + 0, self.u + 0
    self.v.assign(b)
    self.u.assign(a + x)
    return [a]
  def lazy(self, x: Tensor) -> Tensor: return self.pending + x
  def place(self, x: Tensor) -> Tensor:
    self.v[0] = x[1]
    return self.v + 0
  def argument(self, x: Tensor) -> Tensor:
    x.assign(x * 2)
    return x
  def noise(self, x: Tensor) -> Any: return Tensor.rand(2, 2, device=x.device) + x, Tensor.randn(3, device=x.device)
  def variable(self, x: Tensor) -> Any: return x * N, Tensor.arange(3, device=x.device).float() * N
  def empty(self, x: Tensor) -> Any:
    return x[2:], x.sum(), Tensor.zeros(0, 3, device=x.device), Tensor.ones(2, device=x.device)
  def learn(self, x: Tensor) -> Any:
    self.w.grad = None
    loss = (self.w * x).square().sum()
    loss.backward()
    with Tensor.no_grad(): self.w.assign(self.w.detach() - 0.125 * self.w.grad)
    return loss, self.w.grad
  def gather(self, x: Tensor) -> Any:
    loss = (self.w * x).sum()
    loss.backward()
    return loss
  def tidy(self, x: Tensor) -> Any:
    (self.w.square() * x).sum().backward()
    grad = self.w.grad + 0
    self.w.zero_grad()
    return grad


FUNCTIONS = [name for name, f in vars(Model).items() if not name.startswith("_")]
ACTIONS = ("call", "call", "call", "call", "read", "assign", "view", "bind", "swap", "drop", "share")


class Side:
  """One of the two runs: the model, its function, and all values that somebody kept."""

  def __init__(self, device: str, name: str, wrap: Callable[[Any], Any]) -> None:
    self.model, self.device = Model(device), device
    self.call = wrap(getattr(self.model, name))
    self.kept: list[TensorBase] = []
    self.draws = 0

  def act(self, action: str, number: int) -> Any:
    """One step; what can be compared at once."""
    model, x = self.model, Tensor([[1.0, number], [-number, 2.0]], device=self.device)
    if action == "call":
      random.generator.state, random.generator.draws = 1, self.draws
      # Sometimes an old result is the argument; not a tensor that the function uses besides: that is refused.
      old = self.kept[-1] if self.kept else x
      if number == 3 and old.shape == (2, 2) and not any(old is t for t in (model.v, model.u, model.w)): x = old
      result = self.call(x)
      self.draws = random.generator.draws
      self.kept += [t.detach() if not t.is_leaf else t for t in tensors(result)]
      return len(tensors(result)), self.draws
    if action == "read" and self.kept: return self.kept[number % len(self.kept)].tolist()
    if action == "assign": model.v.assign(x)
    if action == "view": self.kept += [model.v.T, model.w.detach() + 1, model.u.flip(0)[0], model.v]
    if action == "swap": model.v.assign(model.u)
    if action == "share": model.u.assign(model.v.T)
    if action == "drop" and self.kept: del self.kept[number % len(self.kept)]
    return None

  def everything(self) -> Any:
    """All values, in the end."""
    state = [self.model.w, self.model.v, self.model.u, self.model.pending]
    return [t.tolist() for t in [*state, *self.kept]], None if self.model.w.grad is None else self.model.w.grad.tolist()


@settings(max_examples=examples(5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", FUNCTIONS)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 6)), min_size=4, max_size=14), st.booleans())
def test_a_jit_equals_its_function(name: str, steps: list[tuple[str, int]], looking: bool) -> None:
  N.bind(2)
  plain, jitted = Side("PYTHON", name, lambda f: f), Side("PYTHON", name, TinyJit)
  for action, number in steps:
    if action == "bind": N.bind(number + 1)
    assert jitted.act(action, number) == plain.act(action, number)
    if looking: assert jitted.everything() == plain.everything()
  assert jitted.everything() == plain.everything()


@pytest.mark.parametrize("function", [lambda x: x.detach(), lambda x: x.detach().detach(),
                                      lambda x: x.reshape(2, 1).detach()])
def test_a_result_that_is_an_argument_without_its_history(function: Any) -> None:
  recorded = TinyJit(function)
  for n in range(5): assert recorded(Tensor([n, 1.0 + n]).realize()).numpy().reshape(-1).tolist() == [n, 1 + n]
