"""What changes a tensor in place: operators, functions and parts; with the history of what it gets, against PyTorch's
rules (expected values are worked out by hand)."""
from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw import Tensor, TinyJit, dtypes
from tinyhw.core.errors import InvalidArgument
from tinyhw.function import inplace

FOUR = np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
  "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "//=": operator.ifloordiv, "%=": operator.imod,
  "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor, "<<=": operator.ilshift, ">>=": operator.irshift}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_changes_the_tensor_and_its_views(name: str) -> None:
  a, b = np.array([[7, 2, 9], [4, 5, 1]], np.int32), np.array([1, 2, 3], np.int32)
  x = Tensor(a)
  same, view, later = x, x[0], x + 0
  changed = OPERATORS[name](x, Tensor(b))
  wanted = OPERATORS[name](a.copy(), b)
  assert changed is x and same.tolist() == wanted.tolist()
  assert view.tolist() == wanted[0].tolist() and later.tolist() == a.tolist()


def test_floats_divide_and_are_raised_and_multiplied() -> None:
  x = Tensor([[2.0, 4.0], [6.0, 8.0]])
  y = x
  x /= 2
  x **= 2
  x @= Tensor([[1.0, 1.0], [0.0, 1.0]])
  assert y is x and x.tolist() == [[1, 5], [9, 25]]


@pytest.mark.parametrize("change, told", [
  (lambda: operator.iadd(Tensor([1, 2]), 0.5), "assign of dtypes.float32 to dtypes.int32"),
  (lambda: operator.iadd(Tensor([1, 2]), Tensor([[1, 2], [3, 4]])), "assign of a value of shape"),
  (lambda: operator.iadd(Tensor([1.0], requires_grad=True), 1), "assign to a leaf that requires a gradient")])
def test_what_does_not_fit_is_refused(change: Callable[[], Any], told: str) -> None:
  with pytest.raises(InvalidArgument, match=told): change()


CHANGES: dict[str, tuple[Callable[[Tensor, Tensor], Any], list[float]]] = {
  "a part": (lambda z, v: z.__setitem__(0, v), [4, 6]),
  "an element": (lambda z, v: z.__setitem__((1, 0), v[1]), [0, 6]),
  "a mask": (lambda z, v: z.__setitem__(Tensor([[True, False], [False, False]]), v.sum()), [4, 6]),
  "add_": (lambda z, v: z.add_(v), [8, 12]), "+=": (operator.iadd, [8, 12]),
  "copy_": (lambda z, v: z.copy_(v.expand(2, 2)), [8, 12]),
  "masked_fill_": (lambda z, v: z.masked_fill_(Tensor([[True, False], [False, False]]), v.sum()), [4, 6]),
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_the_history_of_what_comes_in_is_kept(name: str, jit: bool) -> None:
  change, slopes = CHANGES[name]
  w = Tensor([2.0, 3.0], requires_grad=True)
  def slope(scale: Tensor) -> Tensor:
    z = Tensor.zeros(2, 2)
    change(z, w * w * scale)
    return z.sum().gradient(w)[0]
  function = TinyJit(slope) if jit else slope
  for scale in (1.0, 2.0, 3.0, 4.0): assert function(Tensor([scale, scale])).tolist() == [scale * s for s in slopes]


def test_a_leaf_becomes_a_result_and_assign_leaves_it_a_leaf() -> None:
  w, z = Tensor([2.0, 3.0], requires_grad=True), Tensor.zeros(2)
  z.assign(w * w)
  assert z.is_leaf and not z.requires_grad and z.tolist() == [4, 9]
  z += w
  assert not z.is_leaf and z.requires_grad
  z *= 10
  z.sum().backward()
  assert w.grad is not None and w.grad.tolist() == [10, 10] and z.tolist() == [60, 120]
  with Tensor.no_grad():
    y = Tensor.zeros(2)
    y += w
  assert y.is_leaf and not y.requires_grad
  x = Tensor.zeros(2)
  x += w.detach()
  assert x.is_leaf and not x.requires_grad


def test_a_total_of_losses() -> None:
  w, total = Tensor([2.0, 3.0], requires_grad=True), Tensor(0.0)
  for k in range(4):
    total += (w * k).sum()
    if k == 1: assert total.item() == 5
  total.backward()
  assert w.grad is not None and w.grad.tolist() == [6, 6]


@pytest.mark.parametrize("argument", [False, True])
def test_a_state_of_a_recording_is_a_leaf_after_each_call(argument: bool) -> None:
  w, state = Tensor([2.0, 3.0], requires_grad=True), Tensor.zeros(2)
  def step(x: Tensor, kept: Tensor) -> Tensor:
    kept[0] = (x * w).sum()
    return (kept * Tensor([1.0, 5.0])).sum().gradient(w)[0]
  function = TinyJit(step if argument else lambda x: step(x, state))
  for k in range(1, 6):
    x = Tensor([1.0, k])
    assert (function(x, state) if argument else function(x)).tolist() == [1, k]
    assert state.tolist() == [2 + 3 * k, 0] and state.is_leaf and not state.requires_grad


@settings(max_examples=examples(30), deadline=None)
@given(st.data())
def test_any_order_of_changes_gives_numpys_values_and_the_slopes(data: Any) -> None:
  """Values and slopes of a linear map: each element of z is a sum of numbers times w."""
  w = Tensor([2.0, 3.0], requires_grad=True)
  z, array, slopes = Tensor.zeros(3, 2), np.zeros((3, 2)), np.zeros((3, 2, 2))
  at = np.array([2.0, 3.0])
  for _ in range(data.draw(st.integers(1, 5))):
    k, row = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 2))
    match data.draw(st.sampled_from(["part", "add", "mul", "constant", "read", "realize", "other row"])):
      case "part":
        z[row] = w * k
        array[row], slopes[row] = at * k, np.eye(2) * k
      case "add":
        z += w * k
        array, slopes = array + at * k, slopes + np.eye(2) * k
      case "mul":
        z *= k
        array, slopes = array * k, slopes * k
      case "constant":
        z[row] = k
        array[row], slopes[row] = k, 0
      case "other row":
        z[row] = z[0]
        array[row], slopes[row] = array[0].copy(), slopes[0].copy()
      case "read": assert z.tolist() == array.tolist()
      case _: z.realize()
  assert z.tolist() == array.tolist()
  weight = np.arange(1.0, 7).reshape(3, 2)
  if z.requires_grad:
    found = (z * Tensor(weight.astype(np.float32))).sum().gradient(w)[0]
    assert found.tolist() == np.einsum("ij,ijk->k", weight, slopes).tolist()
  else: assert not slopes.any()


# *** data of files, and where values lie ***

def test_a_file_is_a_tensor_of_its_bytes(tmp_path: Path) -> None:
  path = tmp_path / "numbers"
  path.write_bytes(np.arange(6, dtype=np.float32).tobytes())
  held = Tensor(path)
  assert held.shape == (24,) and held.dtype is dtypes.uint8 and held.device == f"DISK:{path}"
  assert bytes(held.to("LLVM").data()) == path.read_bytes()
  assert Tensor(path, dtype="float32", device="LLVM").tolist() == [0, 1, 2, 3, 4, 5]
  path.write_bytes(b"12345")
  with pytest.raises(InvalidArgument, match="5 bytes in .* are no whole number of dtypes.int16"):
    Tensor(path, dtype="int16")
  with pytest.raises(InvalidArgument, match="no file .*: No such file"): Tensor(tmp_path / "none")


def test_a_value_goes_where_another_lies() -> None:
  w = Tensor([1.0, 2.0], requires_grad=True)
  assert w.to_("PYTHON") is w and w.device == "PYTHON" and w.is_leaf and w.requires_grad
  (w * w).sum().backward()
  assert w.grad is not None and w.grad.tolist() == [2, 4]
  cut = Tensor.arange(8.0).reshape(2, 4).shard(("LLVM", "LLVM:1"), 1)
  found = Tensor.ones(2, 4).shard_like(cut)
  assert (found.devices, found.shard_axis) == (cut.devices, 1)
  assert pickle.loads(pickle.dumps(found)).shard_axis == 1


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_another_type_of_the_same_memory_is_a_view(device: str) -> None:
  x = Tensor([1.0, 2.0, 3.0, 4.0], device=device)
  x[:2].bitcast("uint32").assign(Tensor([0x40800000, 0x40400000], device=device, dtype="uint32"))
  assert x.tolist() == [4.0, 3.0, 3.0, 4.0]
  raw = Tensor([0] * 8, device=device, dtype="uint8")
  raw.bitcast("int64").assign(Tensor([12345], device=device, dtype="int64")).realize()
  assert raw.tolist() == [57, 48, 0, 0, 0, 0, 0, 0]


def arguments_of() -> dict[str, tuple[Any, ...]]:
  """What functions are called with, made anew: devices close between tests."""
  return {
    **dict.fromkeys(inplace._ARITHMETIC + inplace._TWO + inplace._ORDER + ("logical_and", "logical_or", "logical_xor"),
                    (2.0,)), "masked_fill": (Tensor([[True, False], [False, True]]), 9.0),
    "masked_scatter": (Tensor([[True, False], [False, True]]), Tensor([8.0, 9.0])),
    "clamp": (0.2, 0.4), "clip": (0.2, 0.4),
    "clamp_min": (0.3,), "clamp_max": (0.3,), "lerp": (Tensor(FOUR + 1), 0.5), "addcmul": (Tensor(FOUR), Tensor(FOUR)),
    "addcdiv": (Tensor(FOUR), Tensor(FOUR + 1)), "scatter": (0, Tensor([[1, 0]]), Tensor([[5.0, 6.0]])),
    "scatter_add": (0, Tensor([[1, 0]]), Tensor([[5.0, 6.0]])), "index_add": (0, Tensor([1]), Tensor([[5.0, 6.0]])),
    "scatter_reduce": (0, Tensor([[1, 0]]), Tensor([[5.0, 6.0]]), "amax"), "index_fill": (0, Tensor([1]), 4.0),
    "index_copy": (0, Tensor([1]), Tensor([[5.0, 6.0]])), "index_put": ((Tensor([1]), Tensor([0])), Tensor([5.0])),
    "cumsum": (0,), "cumprod": (1,), "renorm": (2, 0, 0.1), "dropout": (0.0,), "addmm": (Tensor(FOUR), Tensor(FOUR)),
    "addmv": (Tensor(FOUR), Tensor([1.0, 2.0])), "addr": (Tensor([1.0, 2.0]), Tensor([1.0, 2.0])),
    "addbmm": (Tensor(FOUR[None]), Tensor(FOUR[None])), "baddbmm": (Tensor(FOUR[None]), Tensor(FOUR[None])),
    "threshold": (0.3, 7.0), "mvlgamma": (1,), "polygamma": (1,), "nextafter": (2.0,), "fill_diagonal": (9.0,),
    "put": (Tensor([0, -1]), Tensor([5.0, 6.0])), "index_reduce": (0, Tensor([1]), Tensor([[5.0, 6.0]]), "amax"),
    **dict.fromkeys(("alpha_dropout", "feature_alpha_dropout", "feature_dropout"), (0.0,))}


ROWS = [n for n in vars(inplace) if n.isupper() and n not in ("_BITS", "_SHAPES", "_OPERATORS", "TYPE_CHECKING")]


@pytest.mark.parametrize("row", ROWS)
def test_each_name_with_an_underscore_is_its_function(row: str) -> None:
  before, after, given = [], [], arguments_of()
  for name in getattr(inplace, row):
    data = FOUR[None] if name in ("baddbmm",) else FOUR
    if name in ("gcd", "lcm"): data = (data * 10).astype(np.int32)
    x, arguments = Tensor(data), given.get(name, ())
    if name in ("gcd", "lcm", "ldexp"): arguments = (Tensor([2, 1]),)
    elif name in ("heaviside", "copysign", "atan2", "arctan2", "hypot", "xlogy"): arguments = (Tensor([2.0, -1.0]),)
    view = x.reshape(-1) if name in ("eq", "sin") else x
    before.append(getattr(x, name)(*arguments).cast(x.dtype))
    assert getattr(view, f"{name}_")(*arguments) is view, name
    after.append(x)
  Tensor.realize(*before, *after)
  for name, a, b in zip(getattr(inplace, row), before, after): np.testing.assert_array_equal(a.numpy(), b.numpy(), name)


def test_bits_shapes_and_chance_in_place() -> None:
  n = Tensor([[1, 2], [3, 4]])
  n.bitwise_and_(3).bitwise_left_shift_(1).bitwise_xor_(1).bitwise_not_()
  assert n.tolist() == [[-4, -6], [-8, -2]]
  assert n.logical_not_().dtype is dtypes.int32 and n.tolist() == [[0, 0], [0, 0]]
  x = Tensor([[1.0, 4.0]], requires_grad=True)
  y = x * 1
  y.sqrt_().squeeze_(0).unsqueeze_(1).t_().transpose_(0, 1)
  assert y.shape == (2, 1)
  (y * Tensor([[1.0], [8.0]])).sum().backward()
  assert x.grad is not None and x.grad.tolist() == [[0.5, 2.0]]
  with pytest.raises(InvalidArgument, match="squeeze_ of a leaf that requires a gradient"): x.squeeze_(0)
  w = Tensor.empty(40, 50, requires_grad=True)
  for name, arguments, low, high in (("uniform_", (-2, 3), -2, 3), ("exponential_", (2.0,), 0, 20),
                                     ("bernoulli_", (0.25,), 0, 1), ("normal_", (5, 0.1), 3, 7)):
    assert getattr(w, name)(*arguments) is w and w.is_leaf
    values = w.numpy()
    assert low <= values.min() < values.max() <= high
  assert abs(w.numpy().mean() - 5) < 0.02
  with pytest.raises(InvalidArgument, match="assign"): n.add_(0.5)


def test_activations_in_place_and_gradients_of_results() -> None:
  x = Tensor([-1.0, 2.0])
  assert x.relu(inplace=True) is x and x.tolist() == [0.0, 2.0] and x.relu6(inplace=False) is not x
  w = Tensor([1.0, 2.0], requires_grad=True)
  h = w * 3
  h.retain_grad()
  (h * h).sum().backward()
  assert h.grad is not None and w.grad is not None and (h.grad.tolist(), w.grad.tolist()) == ([6, 12], [18, 36])
  v = Tensor([5.0, 6.0], requires_grad=True)
  (v * w).sum().backward(inputs=v)
  assert v.grad is not None and v.grad.tolist() == [1, 2] and w.grad.tolist() == [18, 36]
  with pytest.raises(InvalidArgument, match="requires no gradient"): x.retain_grad()


def test_an_empty_part_and_values_with_more_axes_of_one() -> None:
  x = Tensor([[1.0, 2.0, 3.0]])
  x[1:] *= Tensor([[2.0]])
  x[:, 3:] = 7
  x[1:, 0] = Tensor([8.0])
  assert x.tolist() == [[1, 2, 3]]
  x[0] = Tensor([[[4.0, 5.0, 6.0]]])
  assert x.tolist() == [[4, 5, 6]]
  with pytest.raises(InvalidArgument): x[1:] = Tensor([[1.0, 2.0]])
