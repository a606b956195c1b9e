"""Gradients of tensors of which nobody has said that they learn: where no leaf says so, all floats alive have one."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.tensor.operators.cases import Case
from tests.tensor.operators.expected import Expected
from tests.tensor.operators.run import differences, found
from tests.tensor.test_operators import part
from tinyhw import Tensor, TinyJit, dtypes
from tinyhw.core.errors import InvalidArgument

KNOWN = Expected()


def grad(x: Tensor) -> list[float]:
  assert x.grad is not None
  values: list[float] = x.grad.tolist()
  return values


@pytest.mark.parametrize("case", [c for c in part(48) if c.differentiable()], ids=lambda c: c.name)
def test_the_gradient_of_a_case_is_the_same(case: Case) -> None:
  try: mine = found(case, "LLVM", said=False)
  except InvalidArgument as error:
    assert "nobody had said" in str(error)
    return
  assert not differences(case, mine, KNOWN.of(case))


def test_every_float_alive_has_a_gradient() -> None:
  x, w = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
  h = x * w
  (h * h).sum().backward()
  assert grad(x) == [18.0, 64.0] and grad(w) == [6.0, 32.0] and grad(h) == [6.0, 16.0]
  assert not x.requires_grad and x.is_leaf
  (x * 5).sum().backward()
  assert grad(x) == [23.0, 69.0]
  turned = Tensor(np.arange(6.0).reshape(2, 3)).T          # nobody else has what it was made of
  (turned * turned).sum().backward()
  assert grad(turned) == [[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]


def test_where_a_leaf_says_that_it_learns_no_other_does() -> None:
  x, w, frozen = Tensor([1.0, 2.0]), Tensor([3.0, 4.0], requires_grad=True), Tensor([5.0, 6.0], requires_grad=False)
  (x * w * frozen).sum().backward()
  assert grad(w) == [5.0, 12.0] and x.grad is None and frozen.grad is None
  (x * frozen).sum().backward()
  assert grad(x) == [5.0, 6.0] and frozen.grad is None
  for none in (frozen * 2, (x * 2).detach(), Tensor([1, 2]) + 1):
    with pytest.raises(InvalidArgument, match="no leaf"): none.sum().backward()
  with Tensor.no_grad(): still = x * 3
  with pytest.raises(InvalidArgument, match="no leaf"): still.sum().backward()
  x.grad = None
  (still * x).sum().backward()
  assert grad(x) == [3.0, 6.0] and still.grad is None


def test_constants_are_told_apart() -> None:
  a, b = Tensor.ones(3), Tensor.ones(3)
  total = (a * b.reshape(1, 3) * 2 + 1).relu().sum()
  a.realize()
  total.backward()
  assert grad(a) == grad(b) == [2.0] * 3
  assert Tensor.ones(3).grad is None
  x, y = Tensor.eye(2), Tensor([[2.0, -2.0]])
  assert [g.tolist() for g in y.matmul(x).sum().gradient(x, y)] == [[[2, 2], [-2, -2]], [[1, 1]]]
  first, second = Tensor(3.5).clone(), Tensor(3.5).clone()
  (first + second * 2).backward()
  assert (grad(first), grad(second)) == (1.0, 2.0)
  number = Tensor(2.0)                                      # the very node of each 2.0
  with pytest.raises(InvalidArgument, match="a constant"): (number * x * 2.0).sum().gradient(number)


def test_a_history_that_was_not_kept_is_refused() -> None:
  x = Tensor([1.0, 2.0])
  y = x.exp()
  assert y.shape == (2,) and len(y.tolist()) == 2
  with pytest.raises(InvalidArgument, match="read or realized.*requires_grad_"): y.sum().gradient(x)
  with pytest.raises(InvalidArgument, match="no leaf"): y.backward(Tensor([1.0, 1.0]))
  assert [g.tolist() for g in (x * 2).sum().gradient(x, Tensor([3.0]))] == [[2, 2], [0]]
  matrix = Tensor([[2.0, 1.0], [1.0, 3.0]])
  for result in (matrix.solve(Tensor([1.0, 2.0])), matrix.qr()[1], matrix.svd()[1], matrix.cholesky()):
    with pytest.raises(InvalidArgument, match="nobody had said"): result.sum().gradient(matrix)
  assert matrix.inverse().sum().gradient(matrix)[0].shape == (2, 2)


def test_parts_that_are_set_and_derivatives_of_derivatives() -> None:
  z, x = Tensor([1.0, 2.0, 3.0, 4.0]), Tensor([10.0, 20.0])
  z[:2] += x
  z[3:] = x[:1] * 2
  (z * Tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
  assert grad(x) == [9.0, 2.0]
  y = Tensor([1.0, 2.0, 3.0])
  h = y * 2
  h[:1] = Tensor([5.0])
  h.add_(y)
  (h * h).sum().backward()
  assert grad(y) == [12.0, 36.0, 54.0]
  w = Tensor([2.0, -1.0])
  first = (w ** 3).sum().gradient(w)[0]
  assert first.tolist() == [12.0, 3.0]
  assert (w ** 3).sum().gradient(w)[0].sum().gradient(w)[0].tolist() == [12.0, -6.0]
  with pytest.raises(InvalidArgument, match="operands on LLVM and PYTHON"):
    z.scatter(0, Tensor([1], device="PYTHON"), Tensor([1.0]))


def test_a_jit_leaves_such_gradients_too() -> None:
  w = Tensor([3.0, 4.0]).realize()

  @TinyJit
  def step(x: Tensor) -> Tensor:
    w.grad = None
    return (x * w * w).sum().backward()

  @TinyJit
  def slope(x: Tensor) -> Tensor: return x.exp().sum().gradient(x)[0]

  for i in range(5):
    x = Tensor([1.0, float(i)])
    assert step(x).item() == 9 + 16 * i and grad(w) == [6, 8 * i] and grad(x) == [9, 16]
    np.testing.assert_allclose(slope(x).numpy(), np.exp([1, i]), rtol=1e-6)


def test_the_first_of_equal_ones_along_an_axis_has_the_gradient_and_all_share_that_of_amax() -> None:
  for name, first, shared in (("max", [0, 1, 0], [0, 0.5, 0.5]), ("min", [1, 0, 0], [1, 0, 0])):
    x = Tensor([[1.0, 3.0, 3.0], [1.0, 3.0, 3.0]])
    getattr(x, name)(1).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [first, first]
    assert getattr(x, f"a{name}")(1).sum().gradient(x)[0].tolist() == [shared, shared]
    assert getattr(x, name)(-1, keepdim=True).sum().gradient(x)[0].tolist() == [first, first]
  assert Tensor([3.0, 3.0]).max(0).dtype is dtypes.float32 and Tensor([3, 4, 4]).argmax(0).item() == 1


@pytest.mark.parametrize("learns", [True, None])
@pytest.mark.parametrize("change", [
  lambda y: y.detach().add_(1), lambda y: y.detach()[0:].copy_(y.detach() + 1), lambda y: y.detach().assign(y + 1),
  lambda y: y.detach().__setitem__(slice(None), y + 1)])
@pytest.mark.parametrize("within", [False, True])
def test_a_change_that_gradients_do_not_see_leaves_the_history(learns: bool | None, change: Any, within: bool) -> None:
  """PyTorch's: the value changes, and what it was computed of is derived by as before."""
  x = Tensor([1.0, 2.0], requires_grad=learns)
  y = x * x
  if within:
    z = x * 3
    with Tensor.no_grad():
      y[0:].add_(1)
      z.fill_(4)
    assert (z * z).sum().gradient(x)[0].tolist() == [24, 24]
  else: change(y)
  assert y.requires_grad is (learns is True) and (y + 0).tolist() == [2, 5]
  (y * y).sum().backward()
  assert x.grad is not None and x.grad.tolist() == [8, 40]
  z = Tensor([1.0, 2.0], requires_grad=learns)
  with Tensor.no_grad():
    for _ in range(3): z.add_(1)
  (z * z).sum().backward()
  assert z.grad is not None and z.grad.tolist() == [8, 10]


def test_the_middle_of_all_and_the_greatest_of_windows_have_pytorchs_gradients_where_several_are_equal() -> None:
  x = Tensor([1.0, 3.0, 3.0, 3.0, 5.0])
  assert x.median().gradient(x)[0].tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0])
  assert x.nanmedian().gradient(x)[0].tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0])
  y = Tensor([[[0.0, 0.0, 0.0, 2.0, 2.0, -1.0]]])
  weight = Tensor([1.0, 2, 4, 8, 16, 32, 64])
  assert y.max_pool1d(2, 1, padding=1).tolist() == [[[0, 0, 0, 2, 2, 2, -1]]]
  assert (y.max_pool1d(2, 1, padding=1) * weight).sum().gradient(y)[0].tolist() == [[[3, 4, 0, 24, 32, 64]]]
  image = Tensor.zeros(1, 1, 4, 4, buffer=True)
  wanted = [[1, 0, 1, 0], [0] * 4, [1, 0, 1, 0], [0] * 4]
  assert image.max_pool2d(2).sum().gradient(image)[0].tolist() == [[wanted]]


def test_functions_with_steps_have_no_slope_and_atan2_has_none_in_the_middle() -> None:
  x, zero = Tensor([1.0, 2.0], requires_grad=True), Tensor([0.0, 3.0], requires_grad=True)
  for whole in (x // zero, x.div(zero, rounding_mode="trunc")):
    assert whole.requires_grad
    assert [g.tolist() for g in (whole + x).sum().gradient(x, zero)] == [[1, 1], [0, 0]]
  assert [g.tolist() for g in zero.atan2(zero).sum().gradient(zero)] == [[0, 0]]


def test_a_tensor_is_scaled_in_the_type_of_the_sum() -> None:
  small = Tensor([1, 200], dtype="uint8")
  assert Tensor([0.5, 0.5]).add(small, alpha=-1).tolist() == [-0.5, -199.5]
  assert Tensor([0.5, 0.5]).sub(small, alpha=2).tolist() == [-1.5, -399.5]
  assert small.rsub(Tensor([0.5, 0.5]), alpha=2).tolist() == [-1.5, -399.5]
  assert Tensor([True, False]).masked_fill(Tensor([True, True]), 0).dtype is dtypes.bool
  assert Tensor([True]).pad((1, 1), value=2).tolist() == [True, True, True]


def test_what_is_no_number_behind_a_limit_stays_there() -> None:
  x, weight = Tensor([-1.0, 0.25, 2.0], requires_grad=True), Tensor([float("nan"), 1.0, 1.0])
  for limited, wanted in ((x.clamp(min=0), [0, 1, 1]), (x.clamp(0, 1), [0, 1, 0]), (x.clamp_min(0.0), [0, 1, 1])):
    assert (limited * weight).sum().gradient(x)[0].tolist() == wanted
  assert x.clamp(min=0).sqrt().sum().gradient(x)[0].tolist() == pytest.approx([0, 1, 0.5 / 2 ** 0.5])
  weight = Tensor([1.0, float("nan"), 1.0])
  assert (x.softshrink(0.5) * weight).sum().gradient(x)[0].tolist() == [1, 0, 1]
