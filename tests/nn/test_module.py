"""`nn.Module` and its containers: what PyTorch's users do with them."""
from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, TinyJit, dtypes, nn

X = np.sin(np.arange(24, dtype=np.float32)).reshape(8, 3)


class Net(nn.Module):
  """All kinds of parts."""

  def __init__(self) -> None:
    super().__init__()
    self.first = nn.Linear(3, 4)
    self.norm = nn.BatchNorm1d(4)
    self.more = nn.ModuleList([nn.Linear(4, 4, bias=False)])
    self.after = nn.ModuleDict({"act": nn.ReLU()})
    self.scale = nn.Parameter(Tensor([1.0, -1.0, 2.0, 0.5]))
    self.register_buffer("shift", Tensor([1.0, 2.0, 3.0, 4.0]))
    self.register_buffer("hidden", Tensor([0.0]), persistent=False)
    self.register_parameter("none", None)
    self.plain = Tensor([5.0])                  # the module's own affair, as in PyTorch
    self.last = nn.Sequential({"fc": nn.Linear(4, 2), "drop": nn.Dropout(0.5)})

  def forward(self, x: Tensor) -> Tensor:
    x = self.norm(self.first(x))
    for layer in self.more: x = layer(x)
    return self.last(self.after["act"](x * self.scale + self.shift))      # type: ignore[no-any-return]


def test_parts_have_pytorchs_names_and_order() -> None:
  net = Net()
  own = ["scale", "first.weight", "first.bias", "norm.weight", "norm.bias", "more.0.weight", "last.fc.weight",
         "last.fc.bias"]
  running = ["norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]
  assert [name for name, _ in net.named_parameters()] == own
  assert [name for name, _ in net.named_buffers()] == ["shift", "hidden", *running]
  assert list(net.state_dict()) == ["scale", "shift", *own[1:5], *running, *own[5:]]
  assert list(net.state_dict(prefix="net."))[0] == "net.scale"
  assert [name for name, _ in net.named_children()] == ["first", "norm", "more", "after", "last"]
  assert [name for name, _ in net.named_modules()] == [
    "", "first", "norm", "more", "more.0", "after", "after.act", "last", "last.fc", "last.drop"]
  assert {"plain", "hidden"} <= nn.get_state_dict(net).keys() and len(nn.get_parameters(net)) == len(own) + 3
  assert net.last.fc is net.last[0] and net.get_submodule("last.fc") is net.last[0]
  assert net.get_parameter("more.0.weight") is net.more[0].weight and net.get_buffer("shift").shape == (4,)
  assert list(net.parameters(recurse=False)) == [net.scale] and isinstance(net.last[:1], nn.Sequential)
  assert repr(net).splitlines()[1:5] == [
    "  (first): Linear(in_features=3, out_features=4, bias=True)",
    "  (norm): BatchNorm(4, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)",
    "  (more): ModuleList(", "    (0): Linear(in_features=4, out_features=4, bias=False)"]
  visited: list[Any] = []
  assert net.apply(visited.append) is net and visited[0] is net.first and visited[-1] is net


def test_a_module_shared_by_two_names_is_there_once() -> None:
  net = nn.ModuleList([shared := nn.Linear(2, 2), shared])
  assert len(list(net.parameters())) == 2 and len(net.state_dict()) == 4 and len(list(net.modules())) == 2
  assert net != nn.ModuleList([shared, shared]) and len({net, shared}) == 2
  net += [nn.Linear(2, 1)]
  net.append(nn.ReLU()).insert(0, nn.Identity())
  assert [type(m).__name__ for m in net] == ["Identity", "Linear", "Linear", "Linear", "ReLU"]
  assert [type(m).__name__ for m in net[3:] + [nn.Tanh()]] == ["Linear", "ReLU", "Tanh"]
  kept = nn.ParameterDict({"a": Tensor([1.0])})
  kept["b"] = Tensor([2.0])
  assert [n for n, _ in kept.named_parameters()] == ["a", "b"]
  assert type(nn.ParameterList([kept["a"].detach()])[0]) is nn.Parameter


def test_it_learns_and_rests() -> None:
  net, x = Net(), Tensor(X)
  net.more.requires_grad_(False)
  frozen = net.more[0].weight.numpy()
  optimizer = nn.optim.Adam(net.parameters(), lr=0.05)      # the frozen one may learn later
  losses = []
  net.last.drop.eval()
  for _ in range(4):
    optimizer.zero_grad()
    loss = net(x).square().mean().backward()
    optimizer.step()
    losses.append(loss.item())
  assert losses[-1] < losses[0] and np.array_equal(net.more[0].weight.numpy(), frozen)
  assert net.norm.num_batches_tracked.item() == 4           # it trains unless told, what it calls too
  assert net.training and not net.last.drop.training and not Tensor.training and not net.first.training
  net.eval()
  resting = net(x).numpy()
  assert not any(m.training for m in net.modules()) and net.norm.num_batches_tracked.item() == 4
  with Tensor.train(): assert np.array_equal(net(x).numpy(), resting)
  again = TinyJit(lambda v: net(v).realize())
  for _ in range(3): np.testing.assert_allclose(again(x).numpy(), resting, rtol=1e-5, atol=1e-6)
  net.train()
  assert not np.allclose(net(x).numpy(), resting)
  net.zero_grad()
  assert all(p.grad is None for p in net.parameters())


def test_the_mode_of_a_module_is_that_of_tensors_functions() -> None:
  class Half(nn.Module):
    def forward(self, x: Tensor) -> Tensor: return x.dropout(0.5)
  half, ones = Half(), Tensor.ones(64)
  assert 0 < half(ones).eq(0).sum().item() < 64 and half.eval()(ones).eq(0).sum().item() == 0
  layer = nn.Dropout(0.5)               # one of ours follows Tensor until told
  assert layer(ones).eq(0).sum().item() == 0 and layer.train()(ones).eq(0).sum().item() > 0


def test_states_copies_and_pickles() -> None:
  net = Net().eval()
  want = net(Tensor(X)).numpy()
  other = Net().eval()
  assert other.load_state_dict(net.state_dict()) == ([], [])
  for same in (other, copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
    np.testing.assert_allclose(same(Tensor(X)).numpy(), want, rtol=1e-6)
    assert type(same.scale) is nn.Parameter and same.scale.requires_grad and same.scale is not net.scale
    assert same.scale + 1 is not None and type(same.scale + 1) is Tensor and not same.training
  state = net.state_dict()
  state["scale"].zero_()
  assert net.scale.tolist() == [0.0] * 4
  given = {"scale": np.ones(4, np.float32), "extra": Tensor([1.0])}
  found = net.load_state_dict(given, strict=False)
  assert net.scale.tolist() == [1.0] * 4 and found.unexpected_keys == ["extra"] and "shift" in found.missing_keys
  taken = Tensor([3.0, 3.0, 3.0, 3.0], dtype="float16")
  net.load_state_dict({"scale": taken, "more.0.weight": net.more[0].weight}, strict=False, assign=True)
  assert net.scale.dtype is dtypes.float16 and type(net.scale) is nn.Parameter
  with pytest.raises(RuntimeError, match="missing: shift"): net.load_state_dict({"scale": taken})
  with pytest.raises(RuntimeError, match=r"'scale' of shape \(2,\) for shape \(4,\)"):
    net.load_state_dict({"first.bias": Tensor.zeros(4), "scale": Tensor([1.0, 2.0])}, strict=False)
  assert net.first.bias.abs().sum().item() != 0


def test_types_devices_and_hooks() -> None:
  net = Net().eval()
  weight = net.first.weight
  weight.grad = Tensor.ones(4, 3)
  assert net.half().first.weight is weight and weight.dtype is dtypes.float16 and weight.requires_grad
  assert weight.grad.dtype is dtypes.float16 and net.norm.num_batches_tracked.dtype is dtypes.int64
  assert net(Tensor(X).half()).dtype is dtypes.float16
  net.to("PYTHON", dtypes.float32)
  assert weight.device == "PYTHON" and weight.is_leaf and net(Tensor(X, device="PYTHON")).dtype is dtypes.float32
  seen: list[Any] = []
  doubled = net.first.register_forward_hook(lambda module, args, result: seen.append(module) or result * 2)
  zeroed = net.first.register_forward_pre_hook(lambda module, args: args[0] * 0)
  x = Tensor(X, device="PYTHON")
  np.testing.assert_allclose(net.first(x).numpy(), np.tile(2 * net.first.bias.numpy(), (8, 1)), rtol=1e-6)
  for hook in (doubled, zeroed): hook.remove()
  assert seen == [net.first] and not np.allclose(net.first(x).numpy(), 0) and len(seen) == 1


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
  "forward": (lambda: nn.Module()(1), NotImplementedError, "Module has no forward"),
  "list": (lambda: nn.ModuleList([Tensor([1.0])]), TypeError, "a Tensor is no Module"),
  "dict": (lambda: nn.ModuleDict({"a": 1}), TypeError, "'a' is a int, no Module"),
  "sequence": (lambda: nn.Sequential(nn.ReLU(), 3), TypeError, "layer 1 is a int, and cannot be called"),
  "dots": (lambda: nn.Module().register_buffer("a.b", None), KeyError, "a name without dots"),
  "buffer": (lambda: nn.Module().register_buffer("a", 1), TypeError, "buffer 'a' is a int"),  # type: ignore[arg-type]
  "parameter": (lambda: nn.Module().register_parameter("a", Tensor([1.0])), TypeError,     # type: ignore[arg-type]
                "parameter 'a' is a Tensor"),
  "module": (lambda: nn.Module().add_module("a", 1), TypeError, "module 'a' is a int"),    # type: ignore[arg-type]
  "path": (lambda: nn.ReLU().get_submodule("a.b"), AttributeError, "ReLU has no module 'a.b'"),
  "train": (lambda: nn.ReLU().train(1), ValueError, "it is True or False"),                # type: ignore[arg-type]
  "type": (lambda: nn.Linear(1, 1).to(dtypes.int32), TypeError, "parameters are floats"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_raises_what_pytorch_raises(what: str) -> None:
  call, kind, message = MISTAKES[what]
  with pytest.raises(kind, match=message): call()
