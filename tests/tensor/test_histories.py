"""Tensors that learn through everything that changes their state, against dual numbers: the same lives as
`python -m tinyhw.tools.fuzz.histories`, and what they have found."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.strength import examples, seed
from tinyhw import InvalidArgument, Tensor, TinyJit
from tinyhw.ir.uop import UOp
from tinyhw.tools.fuzz.histories import life
from tinyhw.tools.fuzz.views import Seeded, WrongValue

pytestmark = pytest.mark.usefixtures("two_cards")
SETS = {"LLVM": (("LLVM",), 10), "PYTHON": (("PYTHON",), 30), "AMD": (("AMD", "AMD:1"), 6),
        "all": (("LLVM", "PYTHON", "AMD"), 6)}


@pytest.mark.parametrize("name", SETS)
def test_a_life_that_learns_equals_dual_numbers(name: str) -> None:
  devices, count = SETS[name]
  for number in range(examples(count)): life(devices, Seeded(f"{seed(0)}.{number}"))


def test_the_lives_find_leaves_that_are_one_node(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(UOp, "own", UOp.contiguous)
  with pytest.raises(WrongValue):
    for number in range(60): life(("PYTHON",), Seeded(f"ci.{number}"))


def leaf() -> Tensor: return Tensor([1.0, 2.0], requires_grad=True)


VALUES: dict[str, Callable[[], Tensor]] = {
  "data": lambda: Tensor([5.0, 6.0]), "realized": lambda: Tensor([5.0, 6.0]).realize(),
  "computed": lambda: Tensor([5.0, 6.0]) + 1, "contiguous": lambda: (Tensor([5.0, 6.0]) + 1).contiguous(),
  "constant": lambda: Tensor.zeros(2), "copied": lambda: Tensor([5.0, 6.0], device="PYTHON").to("LLVM"),
  "a leaf": lambda: leaf().detach()}


@pytest.mark.parametrize("realized", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_leaves_of_one_value_have_gradients_of_their_own(name: str, realized: bool) -> None:
  a, b, value = leaf(), leaf(), VALUES[name]()
  a.assign(value)
  b.assign(value)
  if realized: a.realize(b, value)
  (a * 2 + b * 3 + value * 4).sum().backward()
  assert a.grad is not None and a.grad.tolist() == [2, 2] and b.grad is not None and b.grad.tolist() == [3, 3]
  wanted = value.tolist()
  with Tensor.no_grad(): a += 1
  assert b.tolist() == value.tolist() == wanted and np.array_equal(a.numpy(), np.add(wanted, 1))


@pytest.mark.parametrize("change", [
  lambda a: a.assign(Tensor([3.0, 4.0])), lambda a: a.detach().add_(Tensor([2.0, 2.0])),
  lambda a: (a.detach().mul_(2.0), a.detach().add_(1.0))])
@pytest.mark.parametrize("realized", [False, True])
def test_a_value_is_derived_by_leaves_that_have_changed_since_as_they_were(realized: bool, change: Any) -> None:
  a, b = leaf(), leaf()
  loss = (a * a).sum()
  both = (a * b).sum()
  if realized: loss.realize(both)
  change(a)
  loss.backward()
  assert a.grad is not None and a.grad.tolist() == [2, 4] and a.numpy()[0] == 3
  both.backward()
  assert a.grad.tolist() == [3, 6] and b.grad is not None and b.grad.tolist() == [1, 2]
  (a * b + both).sum().backward()      # as it is, and as it was twice: `both` counts for each element
  assert a.grad.tolist() == [3 + 3, 6 + 6]


def test_what_is_refused_to_a_view_of_a_leaf_leaves_it() -> None:
  a = leaf()
  view = a.reshape(2, 1)
  with Tensor.no_grad(): a.assign(Tensor([3.0, 4.0]))
  with pytest.raises(InvalidArgument): view += 1
  assert view.tolist() == [[3], [4]] and a.tolist() == [3, 4]


def test_a_recorded_call_that_only_writes_to_a_leaf_gives_it_each_value() -> None:
  a = leaf()
  @TinyJit
  def step(x: Tensor) -> Tensor: return a.assign(x * 2).realize()
  for n in range(5):
    step(Tensor([n, n + 1.0]).realize())
    assert a.tolist() == [2 * n, 2 * n + 2] and a.requires_grad and a.is_leaf
    a.grad = None
    (a * 3).sum().backward()
    assert a.grad is not None and a.grad.tolist() == [3, 3]
