"""One value on several devices: whatever is computed in parts is what one device computes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.devices.test_closed import run_apart
from tests.strength import examples
from tinyhw import Device, Tensor, TinyJit, Variable, nn
from tinyhw.core.errors import DeviceError, InvalidArgument
from tinyhw.engine.shard import all_reduce
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

DEVICES = ("PYTHON", "PYTHON:1", "PYTHON:2")
AXES = (None, 0, 1)
HOST = np.random.default_rng(7).integers(-8, 9, (7, 5)).astype(np.float32)  # sums are exact in any order
OTHER = np.random.default_rng(8).integers(-8, 9, (5, 4)).astype(np.float32)


def cut(host: Any, axis: int | None, n: int = 3) -> Tensor:
  return Tensor(host, device="PYTHON").shard(DEVICES[:n], axis)


def same(found: Tensor, wanted: Any) -> None:
  assert found.shape == wanted.shape and np.array_equal(found.numpy(), wanted)
  assert found.devices == DEVICES[:len(found.devices)]


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
  same(a.maximum(Tensor(other, device=DEVICES[:n])).relu(), np.maximum(np.maximum(HOST, other), 0))


@pytest.mark.parametrize("axis", [0, 1])
def test_one_row_beside_as_many_as_devices(axis: int) -> None:
  """An axis of one element is repeated for each device, not cut, however few the other operand has."""
  few = HOST[:2, :2]
  for one in (few[:1], few[:, :1], few[:1, :1]):
    same(cut(few, axis, 2) + Tensor(one, device=DEVICES[:2]), few + one)
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
  same(x.flatten(), HOST.reshape(-1))
  same(x.reshape(5, 7), HOST.reshape(5, 7))


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
    else: loss = (x.shard(devices, 0) @ w.shard(devices)).cross_entropy(t.shard(devices, 0))
    loss.backward()
    assert w.grad is not None
    return loss.item(), w.grad.numpy()
  (loss, grad), (right, slope) = step(DEVICES), step(None)
  assert loss == pytest.approx(right, rel=1e-6) and np.allclose(grad, slope, rtol=1e-5, atol=1e-7)


def test_what_cannot_be_done_is_told() -> None:
  x = cut(HOST, 0)
  with pytest.raises(InvalidArgument, match="each device once"): Tensor(HOST).shard(("PYTHON", "PYTHON:0"), 0)
  with pytest.raises(InvalidArgument, match="in 3 parts; it needs an element for each"): cut(HOST[:2], 0)
  with pytest.raises(InvalidArgument, match="operands on"): x + Tensor(HOST, device="PYTHON")
  with pytest.raises(InvalidArgument, match="no devices"): Tensor(HOST).shard(())
  with pytest.raises(InvalidArgument, match="files do not compute"): Tensor(HOST).shard(("PYTHON", "NPY"))
  with pytest.raises(InvalidArgument, match="shard_ of a value that has a history"):
    (Tensor(HOST, requires_grad=True) * 2).shard_(DEVICES)
  with pytest.raises(InvalidArgument, match="all_reduce by 'mean'"): all_reduce([Tensor(HOST)], "mean")


def test_functions_along_another_axis_work_on_each_part() -> None:
  x = cut(HOST, 0)
  assert np.array_equal(x.cumsum(1).numpy(), HOST.cumsum(1)) and x.argmax(1).tolist() == HOST.argmax(1).tolist()
  assert np.array_equal(x.T.cumsum(0).numpy(), HOST.T.cumsum(0))


AMD = """
import numpy as np
from tinyhw.engine.shard import all_reduce
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp
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
  assert alone.dtype is alone.parts()[0].dtype and alone.numel() == 35 and len(alone) == 7
  assert cut(HOST, 0).numel() == 35 and cut(np.float32(3), None).numel() == 1
  same(cut(HOST, 0).transpose(), HOST.T)
  same(cut(HOST, 1).transpose(0, 1), HOST.T)


@pytest.mark.parametrize("axis", [0, 1])
def test_two_operands_and_options_beside_them(axis: int) -> None:
  low, high = HOST - 1, np.abs(HOST[:1])
  same(cut(HOST, axis).clamp(Tensor(low, device=DEVICES), Tensor(high, device=DEVICES)), np.minimum(HOST, high))
  same(cut(HOST, axis).clamp(max=Tensor(high, device=DEVICES)), np.minimum(HOST, high))
  same((cut(HOST, axis) > 0).where(cut(HOST, axis), Tensor(high, device=DEVICES)), np.where(HOST > 0, HOST, high))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss"])
def test_losses_of_sharded_and_whole_targets(name: str) -> None:
  low = HOST[::-1].copy()
  wanted = (HOST - low) ** 2 if name == "mse_loss" else np.abs(HOST - low)
  for target in (Tensor(low, device=DEVICES), cut(low, 0), cut(low, 1), cut(low, None)):
    found = getattr(cut(HOST, 0), name)(target, reduction="none")
    same(found, wanted)
    assert found.shard_axis == 0


@pytest.mark.parametrize(("ring", "each"), [(True, 2 * 2), (False, 2 * 3)])
def test_how_much_travels(ring: bool, each: int) -> None:
  """In a ring each of n pieces goes on 2 (n - 1) times; else each device gets n - 1 whole parts."""
  parts = [Tensor(HOST + i, device=d).realize() for i, d in enumerate(DEVICES)]
  sums = all_reduce(parts, "add", ring)
  copies = [u for u in UOp.sink(*(t.uop for t in sums)).toposort() if u.op is Ops.COPY]
  assert sum(u.size for u in copies) == each * HOST.size * (1 if ring else 1)
  for total, device in zip(sums, DEVICES, strict=True):
    assert total.device == device and np.array_equal(total.numpy(), 3 * HOST + 3)


# ---- any program on a group is the program on one device

STEPS: list[Callable[[Tensor], Tensor]] = [
  lambda x: x + 1, lambda x: x * x - x, lambda x: x.T, lambda x: x.flip(0), lambda x: x.flip(-1), lambda x: x.relu(),
  lambda x: x.reshape(-1), lambda x: x.reshape(-1, 1), lambda x: x[1:], lambda x: x[:-1], lambda x: x[::2],
  lambda x: x.pad(((1, 2),) * x.ndim), lambda x: x.sum(0), lambda x: x.max(-1, keepdim=True), lambda x: x.unsqueeze(0),
  lambda x: x.cumsum(0), lambda x: x.sort(-1)[0], lambda x: x.cat(x, dim=0), lambda x: x.roll(1, 0),
  lambda x: (x > 0).where(x, -x), lambda x: x.contiguous(), lambda x: x.realize(), lambda x: x.expand(2, *x.shape),
  lambda x: x.detach().cast("int32").float(), lambda x: x - x.mean(0, keepdim=True).round(),
  lambda x: x.scatter(-1, x.argmax(-1, keepdim=True), 3.0), lambda x: x.gather(-1, x.argmin(-1, keepdim=True)),
]


@given(st.sampled_from(AXES), st.integers(2, 3), st.lists(st.integers(0, len(STEPS) - 1), max_size=7))
@settings(max_examples=examples(40), deadline=None)
def test_any_program(axis: int | None, n: int, numbers: list[int]) -> None:
  one, several = Tensor(HOST, device="PYTHON"), cut(HOST, axis, n)
  for k in numbers:
    if one.ndim == 0 or one.numel() > 2000 or any(s < 3 for s in one.shape): break
    one, several = STEPS[k](one), STEPS[k](several)
  assert several.devices == DEVICES[:n]
  same(several, one.numpy())
  for p in several.parts(): assert p.device in DEVICES
  again = several.parts()
  whole = again[0].numpy() if several.shard_axis is None else np.concatenate([p.numpy() for p in again],
                                                                             several.shard_axis)
  assert np.array_equal(whole, one.numpy())


def _trained(devices: tuple[str, ...] | None, jitted: bool, patch: pytest.MonkeyPatch) -> tuple[list[float], list[Any]]:
  """Losses and weights of a network whose weights and batches are on several devices, or on one."""
  Tensor.manual_seed(5)
  with patch.context() as here:
    here.setattr(Device, "default", "PYTHON")
    layers = [nn.Linear(5, 6, bias=False), nn.BatchNorm(6), Tensor.relu, nn.Linear(6, 4)]
  weights = [p for layer in layers if not callable(layer) or hasattr(layer, "weight")
             for p in nn.state.get_parameters(layer)]
  if devices:
    for p in [*weights, *(b for layer in layers for b in _buffers(layer))]: p.shard_(devices)
  optimizer = nn.optim.Adam(weights, lr=0.05)
  def step(x: Tensor, y: Tensor) -> Tensor:
    with Tensor.train():
      optimizer.zero_grad()
      loss = x.sequential(layers).cross_entropy(y)
      loss.backward()
      optimizer.step()
      return loss.realize()
  run, losses = TinyJit(step) if jitted else step, []
  for k in range(5):
    x, y = Tensor((HOST + k) / 4, device="PYTHON"), Tensor(np.arange(7, dtype=np.int32) % 4, device="PYTHON")
    if devices: x, y = x.shard(devices, 0), y.shard(devices, 0)
    losses.append(run(x, y).item())
  return losses, [p.numpy() for p in weights]


def _buffers(layer: Any) -> list[Tensor]:
  return [layer.running_mean, layer.running_var] if isinstance(layer, nn.BatchNorm) else []


@pytest.mark.parametrize("jitted", [False, True])
def test_a_model_is_trained_on_several_devices(jitted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
  losses, weights = _trained(DEVICES[:2], jitted, monkeypatch)
  right, others = _trained(None, False, monkeypatch)
  assert losses == pytest.approx(right, rel=1e-4) and losses[-1] < losses[0]
  for a, b in zip(weights, others, strict=True): assert np.allclose(a, b, rtol=1e-3, atol=1e-4)


def test_a_replay_takes_what_lies_alike() -> None:
  double = TinyJit(lambda x: (x * 2).realize())
  for k in range(4): same(double(cut(HOST + k, 0)), 2 * (HOST + k))
  with pytest.raises(InvalidArgument, match="lay otherwise on its devices"): double(cut(HOST, 1))
  with pytest.raises(InvalidArgument, match=r"on \(PYTHON, PYTHON:1, PYTHON:2\)"): double(Tensor(HOST, device="PYTHON"))


def test_state_of_a_value_in_parts() -> None:
  """Assigned, changed in place, read, moved and cut anew, in any order."""
  x = cut(HOST, 0)
  old = x + 0
  x.assign(x * 2)
  x += 1
  x[1:3] = 7
  wanted = HOST * 2 + 1
  wanted[1:3] = 7
  same(x, wanted)
  same(old, HOST)
  assert x.shard_axis == 0
  same(x.shard_(DEVICES, 1), wanted)
  assert x.shard_axis == 1 and [p.shape for p in x.parts()] == [(7, 2), (7, 2), (7, 1)]
  assert x.to("PYTHON:2").device == "PYTHON:2" and np.array_equal(x.to("PYTHON:2").numpy(), wanted)
  same(x.to(DEVICES).T.realize(), wanted.T)
  x.assign(Tensor(HOST, device=DEVICES))     # a copy on each, put where the value lies
  same(x, HOST)
  assert x.shard_axis == 1
  x += Tensor(HOST, device="PYTHON").shard(DEVICES, 0)
  same(x, 2 * HOST)
  assert x.shard_axis == 1
  same(Tensor.zeros(3, 2, device=DEVICES) + 1, np.ones((3, 2)))
  Tensor.manual_seed(3)
  one = Tensor.rand(4, 4, device="PYTHON").numpy()
  Tensor.manual_seed(3)
  same(Tensor.rand(4, 4, device=DEVICES), one)
  assert Tensor(HOST, device="PYTHON").shard(("PYTHON:1",)).device == "PYTHON:1"


def test_losing_one_device_loses_the_value() -> None: run_apart("""
from tinyhw.core.errors import ValueLost
x = (Tensor([1., 2., 3., 4.], device=NAME).shard((NAME, NAME + ":1"), 0) + 1).realize()
Device[NAME + ":1"].close()
try: x.numpy()
except ValueLost as error: assert NAME + ":1" in str(error), error
else: raise AssertionError("its value is there")
y = Tensor([1., 2., 3., 4.], device=NAME).shard((NAME, NAME + ":1"), 0) + 1
assert y.tolist() == [2, 3, 4, 5]
""")


@pytest.mark.parametrize("axis", AXES)
def test_sizes_that_launches_decide(axis: int | None) -> None:
  """What has such a size lies whole on each device, for all values; along an axis it is not cut."""
  x = cut(HOST, axis)
  for k in (4, 6, 3):
    n = Variable("group", 2, 7).bind(k)
    y = (x[:n] * 2).realize()
    assert y.shard_axis is None and np.array_equal((y + 1).numpy(), 2 * HOST[:k] + 1)
    assert all(np.array_equal(p.numpy(), 2 * HOST[:k]) for p in y.parts())
    assert x[:n].sum().item() == HOST[:k].sum()
    with pytest.raises(InvalidArgument, match="along an axis; launches decide a size"):
      Tensor(HOST, device="PYTHON")[:n].shard(DEVICES, 0)


def test_threads_a_fork_and_a_reset() -> None: run_apart("""
import os, threading
import numpy as np
from tinyhw.core.errors import DeviceError, ValueLost
D = (NAME, NAME + ":1")
h = np.arange(24, dtype=np.float32).reshape(6, 4)
def cut(k=0, axis=0): return Tensor(h + k, device=NAME).shard(D, axis)
def raises(kind, do):
  try: do()
  except kind as error: return str(error)
  raise AssertionError("no " + kind.__name__)
x, w = (cut() * 1).realize(), Tensor(np.ones((4, 3), np.float32), device=NAME).shard(D).realize()
f = TinyJit(lambda a: (a @ w).relu().realize())
for k in range(4): assert np.array_equal(f(cut(k)).numpy(), (h + k) @ np.ones((4, 3)))
wrong = []
def work(k):
  for _ in range(5):
    y = cut(k, k % 2)
    if not np.array_equal((y * 2 + y.sum(0, keepdim=True)).numpy(), (h + k) * 2 + (h + k).sum(0)): wrong.append(k)
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for t in threads: t.start()
for t in threads: t.join()
assert not wrong
if (child := os.fork()) == 0:
  status = 1
  try:
    raises(DeviceError, x.numpy)
    Device.close()
    assert np.array_equal((cut() + 1).numpy(), h + 1)
    status = 0
  finally: os._exit(status)
assert os.waitpid(child, 0)[1] == 0 and np.array_equal(x.numpy(), h)
Device[D[1]].reset()
assert D[1] in raises(ValueLost, x.numpy) and "reset() it" in raises(ValueLost, lambda: f(cut()))
assert np.array_equal((cut() + 1).numpy(), h + 1)
""")


def test_the_device_of_several_is_a_tuple_of_names() -> None:
  x = Tensor(HOST, device="PYTHON").shard(DEVICES[:2], 0)
  assert x.device == DEVICES[:2] and isinstance((x * 2).sum().device, tuple) and x.to("PYTHON").device == "PYTHON"
  assert Tensor(HOST, device=x.device).device == Tensor.zeros(3, device=x.device).device == DEVICES[:2]
  assert Tensor.rand(3, device=x.device).device == x.rand_like().device == x.zeros_like().device == DEVICES[:2]
  assert x.to(x.device) is x and Tensor(x).device == DEVICES[:2] and x.shard_like(x).device == DEVICES[:2]
  with pytest.raises(InvalidArgument, match="PYTHON"): x + Tensor(HOST, device="PYTHON")


def test_parts_of_a_vector_are_vectors() -> None:
  for x in (Tensor([1, 2, 3, 4], device="PYTHON").shard(DEVICES[:2], 0), (cut(HOST[0], 0, 2) * 2).realize()):
    assert x.shard_axis == 0 and all(p.ndim == 1 for p in x.parts())
    assert x.zeros_like().shard_like(x).shard_axis == 0
  assert [p.shape for p in Tensor.ones(6, device="PYTHON").shard(DEVICES, 0).parts()] == [(2,)] * 3


def test_statistics_follow_the_parameters_to_several_devices() -> None:
  norm, x = nn.BatchNorm(5, device="PYTHON"), cut(HOST[:6], 0, 2)
  for p in nn.get_parameters(norm): p.shard_(DEVICES[:2])
  with Tensor.train(): y = norm(x)
  alone = nn.BatchNorm(5, device="PYTHON")
  with Tensor.train(): want = alone(Tensor(HOST[:6], device="PYTHON"))
  np.testing.assert_allclose(y.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(norm.running_var.numpy(), alone.running_var.numpy(), rtol=1e-5)
  assert norm.running_mean.device == norm.num_batches_tracked.device == DEVICES[:2] and norm(x).devices == DEVICES[:2]


def test_copies_among_devices_that_run_nothing() -> None:
  x = Tensor.ones(4, 4, device="NULL").contiguous().shard(("NULL", "NULL:1"), 0)
  y = (x @ x).sum(0).realize()
  assert y.devices == ("NULL", "NULL:1") and y.to("NULL:2").realize().device == "NULL:2"
  with pytest.raises(DeviceError, match="nothing runs here"): y.numpy()
