"""One value on several devices: whatever is computed in parts is what one device computes."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.test_closed import run_apart
from tests.strength import examples
from tinyhw import Tensor
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.engine.shard import Sharded, all_reduce

DEVICES = ("PYTHON", "PYTHON:1", "PYTHON:2")
AXES = (None, 0, 1)
HOST = np.random.default_rng(7).integers(-8, 9, (7, 5)).astype(np.float32)  # sums are exact in any order
OTHER = np.random.default_rng(8).integers(-8, 9, (5, 4)).astype(np.float32)


def cut(host: Any, axis: int | None, n: int = 3) -> Sharded:
  return Tensor(host, device="PYTHON").shard(DEVICES[:n], axis)


def same(found: Sharded, wanted: Any) -> None:
  assert found.shape == wanted.shape and np.array_equal(found.numpy(), wanted)
  assert found.devices == DEVICES[:len(found.parts)]


@given(st.sampled_from(AXES), st.sampled_from(AXES), st.sampled_from([(7, 5), (1, 5), (7, 1), (5,), ()]),
       st.integers(1, 3))
@settings(max_examples=examples(25), deadline=None)
def test_elementwise(mine: int | None, theirs: int | None, shape: tuple[int, ...], n: int) -> None:
  other = HOST.reshape(-1)[:int(np.prod(shape))].reshape(shape)
  if theirs is not None and (len(shape) <= theirs or shape[theirs] < n): theirs = None
  a, b = cut(HOST, mine, n), cut(other, theirs, n)
  same(a * b + 1, HOST * other + 1)
  same(2 - b, 2 - other)
  same((a < b).where(a, b), np.where(HOST < other, HOST, other))
  same(a.maximum(Tensor(other, device="PYTHON")).relu(), np.maximum(np.maximum(HOST, other), 0))


@pytest.mark.parametrize("axis", [0, 1])
def test_one_row_beside_as_many_as_devices(axis: int) -> None:
  """An axis of one element is repeated for each device, not cut, however few the other operand has."""
  few = HOST[:2, :2]
  for one in (few[:1], few[:, :1], few[:1, :1]):
    same(cut(few, axis, 2) + Tensor(one, device="PYTHON"), few + one)
    same(cut(few, axis, 2) * cut(one, None, 2), few * one)


@pytest.mark.parametrize("mine", AXES)
@pytest.mark.parametrize("theirs", AXES)
def test_products(mine: int | None, theirs: int | None) -> None:
  same(cut(HOST, mine) @ cut(OTHER, theirs), HOST @ OTHER)
  batch = np.stack([HOST, HOST + 1, HOST - 1])
  same(cut(batch, mine) @ cut(OTHER, theirs), batch @ OTHER)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("over", [None, 0, 1, (0, 1), -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(axis: int | None, over: Any, keepdim: bool) -> None:
  x = cut(HOST, axis)
  for name in ("sum", "max", "min"):
    same(getattr(x, name)(over, keepdim), getattr(HOST, name)(axis=over, keepdims=keepdim))
  assert np.allclose(x.mean(over, keepdim).numpy(), HOST.mean(axis=over, keepdims=keepdim), rtol=1e-6)


@pytest.mark.parametrize("axis", AXES)
def test_softmax_along_any_axis(axis: int | None) -> None:
  for along in (0, 1):
    right = Tensor(HOST, device="PYTHON")
    assert np.allclose(cut(HOST, axis).softmax(along).numpy(), right.softmax(along).numpy(), rtol=1e-6)
    assert np.allclose(cut(HOST, axis).log_softmax(along).numpy(), right.log_softmax(along).numpy(), rtol=1e-5)


@pytest.mark.parametrize("axis", AXES)
def test_movement(axis: int | None) -> None:
  x = cut(HOST, axis)
  same(x.T, HOST.T)
  same(x.reshape(7, 1, 5), HOST.reshape(7, 1, 5))
  same(x.unsqueeze(0).expand(2, 7, 5), np.broadcast_to(HOST, (2, 7, 5)))
  same(x.unsqueeze(1).squeeze(1).permute(1, 0), HOST.T)
  for other in AXES: same(x.shard(DEVICES, other), HOST)
  assert x.to("PYTHON:1").device == "PYTHON:1" and np.array_equal(x.to("PYTHON:1").numpy(), HOST)
  if axis is None: same(x.flatten(), HOST.reshape(-1))
  else:
    with pytest.raises(Unsupported, match="sharded reshape of"): x.reshape(5, 7)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("operation", ["add", "mul", "maximum", "minimum"])
def test_all_reduce(n: int, ring: bool, operation: str) -> None:
  parts = [Tensor(HOST[:, :4] + k, device=d) for k, d in enumerate(DEVICES[:n])]
  wanted = {"add": np.sum, "mul": np.prod, "maximum": np.max, "minimum": np.min}[operation](
    [HOST[:, :4] + k for k in range(n)], axis=0)
  found = all_reduce(parts, operation, ring)
  assert [t.device for t in found] == list(DEVICES[:n])
  for t in found: assert np.array_equal(t.numpy(), wanted)


def test_a_small_part_goes_round_in_a_ring() -> None:
  found = all_reduce([Tensor([float(k)], device=d) for k, d in enumerate(DEVICES)], ring=True)
  assert [t.tolist() for t in found] == [[3.0]] * 3


@pytest.mark.parametrize("axis", AXES)
def test_gradients_come_back_to_what_was_cut(axis: int | None) -> None:
  x, w = (Tensor(h, device="PYTHON", requires_grad=True) for h in (HOST, OTHER))
  (x.shard(DEVICES, axis) @ w.shard(DEVICES)).relu().sum().backward()
  a, b = (Tensor(h, device="PYTHON", requires_grad=True) for h in (HOST, OTHER))
  (a @ b).relu().sum().backward()
  for found, right in ((x, a), (w, b)):
    assert found.grad is not None and right.grad is not None
    assert np.array_equal(found.grad.numpy(), right.grad.numpy())


def test_training_on_parts_of_a_batch() -> None:
  """The loss and gradients of a network with its batch cut are those of one device."""
  y = np.array([0, 1, 2, 3, 0, 1, 2], np.int32)
  def step(devices: tuple[str, ...] | None) -> tuple[float, Any]:
    w = Tensor(OTHER / 8, device="PYTHON", requires_grad=True)
    x, t = Tensor(HOST, device="PYTHON"), Tensor(y, device="PYTHON")
    if devices is None: loss = (x @ w).cross_entropy(t)
    else: loss = (x.shard(devices, 0) @ w.shard(devices)).cross_entropy(t.shard(devices, 0)).to()
    loss.backward()
    assert w.grad is not None
    return loss.item(), w.grad.numpy()
  (loss, grad), (right, slope) = step(DEVICES), step(None)
  assert loss == pytest.approx(right, rel=1e-6) and np.allclose(grad, slope, rtol=1e-5, atol=1e-7)


def test_what_cannot_be_done_is_told() -> None:
  x = cut(HOST, 0)
  for wrong in (lambda: x.sort(0), lambda: x.conv2d(x), lambda: x.cumsum(0)):
    with pytest.raises(Unsupported, match=r"function of a sharded tensor .*; put it together first"): wrong()
  with pytest.raises(InvalidArgument, match="each device once"): Tensor(HOST).shard(("PYTHON", "PYTHON:0"), 0)
  with pytest.raises(InvalidArgument, match="in 3 parts; it needs an element for each"): cut(HOST[:2], 0)
  with pytest.raises(InvalidArgument, match="operands on"): x + Tensor(HOST).shard(("PYTHON",))
  with pytest.raises(InvalidArgument, match="no devices"): Tensor(HOST).shard(())
  with pytest.raises(AttributeError, match="no attribute 'nothing'"): _ = x.nothing
  assert "cut" not in repr(x) and "axis=0" in repr(x)


def test_functions_along_another_axis_work_on_each_part() -> None:
  x = cut(HOST, 0)
  assert np.array_equal(x.cumsum(1).numpy(), HOST.cumsum(1)) and x.argmax(1).tolist() == HOST.argmax(1).tolist()
  assert np.array_equal(x.T.cumsum(0).numpy(), HOST.T.cumsum(0))


AMD = """
import numpy as np
from tinyhw.engine.shard import all_reduce
names = ("AMD", "AMD:1")
a, b = np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(6, dtype=np.float32).reshape(3, 2)
for axis in (None, 0, 1):
  x, w = Tensor(a, device=NAME).shard(names, axis), Tensor(b, device=NAME, requires_grad=True)
  y = (x @ w.shard(names)).relu()
  assert y.devices == names and np.array_equal(y.numpy(), a @ b)
  y.sum().backward()
  assert np.array_equal(w.grad.numpy(), a.T @ np.ones((4, 2), np.float32))
for ring in (False, True):
  parts = all_reduce([Tensor(a + k, device=d) for k, d in enumerate(names)], ring=ring)
  assert [p.device for p in parts] == [*names] and all(np.array_equal(p.numpy(), 2 * a + 1) for p in parts)
"""


def test_on_mock_gpus() -> None: run_apart(AMD)


@pytest.mark.parametrize("axis", AXES)
def test_what_a_value_on_several_devices_says_of_itself(axis: int | None) -> None:
  for n in (1, 3):
    x = cut(HOST, axis, n)
    assert x.numel() == 35 and x.ndim == 2 and x.dtype.name == "float32"
    same(x.transpose(), HOST.T)
    same(x.transpose(0, 1), HOST.T)


def test_what_a_sharded_value_says_of_itself() -> None:
  alone = Tensor(HOST, device="PYTHON").shard(DEVICES[:1], 0)
  assert alone.dtype is alone.parts[0].dtype and alone.numel() == 35 and len(alone) == 7
  assert cut(HOST, 0).numel() == 35 and cut(np.float32(3), None).numel() == 1
  same(cut(HOST, 0).transpose(), HOST.T)
  same(cut(HOST, 1).transpose(0, 1), HOST.T)


@pytest.mark.parametrize("axis", [0, 1])
def test_two_operands_and_options_beside_them(axis: int) -> None:
  low, high = HOST - 1, np.abs(HOST[:1])
  same(cut(HOST, axis).clamp(Tensor(low, device="PYTHON"), Tensor(high, device="PYTHON")), np.minimum(HOST, high))
  same(cut(HOST, axis).clamp(max=Tensor(high, device="PYTHON")), np.minimum(HOST, high))
  same((cut(HOST, axis) > 0).where(cut(HOST, axis), Tensor(high, device="PYTHON")), np.where(HOST > 0, HOST, high))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss"])
def test_losses_of_sharded_and_whole_targets(name: str) -> None:
  low = HOST[::-1].copy()
  wanted = (HOST - low) ** 2 if name == "mse_loss" else np.abs(HOST - low)
  for target in (Tensor(low, device="PYTHON"), cut(low, 0), cut(low, 1), cut(low, None)):
    found = getattr(cut(HOST, 0), name)(target, reduction="none")
    same(found, wanted)
    assert found.axis == 0


def test_a_ring_moves_each_piece_as_often_as_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
  """In a ring of n each of n pieces goes on 2 (n - 1) times."""
  moves: list[str] = []
  real = Tensor.to

  def to(self: Tensor, device: str | None = None, *more: Any) -> Tensor:
    if device is not None: moves.append(device)
    return real(self, device, *more)
  parts = [Tensor(HOST + i, device=d).realize() for i, d in enumerate(DEVICES)]
  monkeypatch.setattr(Tensor, "to", to)
  sums = all_reduce(parts, "add", ring=True)
  assert len(moves) == 3 * 2 * 2
  monkeypatch.undo()
  for total, device in zip(sums, DEVICES, strict=True):
    assert total.device == device and np.array_equal(total.numpy(), 3 * HOST + 3)
