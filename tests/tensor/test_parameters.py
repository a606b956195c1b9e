"""What layers own: parameters and state, found wherever a network keeps them; what an optimizer takes."""
from __future__ import annotations

from collections import OrderedDict, UserDict
from typing import Any, NamedTuple

import numpy as np
import pytest

from tinyhw import Tensor, TinyJit, nn
from tinyhw.core.errors import InvalidArgument


def leaf(*shape: int) -> Tensor: return Tensor.ones(shape, requires_grad=True)


class Norm:
  """A batch norm: two parameters, two buffers, a count."""

  def __init__(self) -> None:
    self.weight, self.bias = leaf(3), leaf(3)
    self.mean = Tensor.zeros(3, requires_grad=False)
    self.variance, self.count = Tensor.ones(3, requires_grad=False).contiguous(), Tensor([0])


class Slotted:
  """No dictionary."""
  __slots__ = ("inner", "weight", "missing")

  def __init__(self) -> None: self.weight, self.inner = leaf(2), [leaf(1)]


class Derived(Slotted):
  """Slots of a base, and a dictionary."""

  def __init__(self) -> None:
    super().__init__()
    self.more = leaf(4)


class Pair(NamedTuple):
  """A tuple with names."""
  a: Tensor
  b: Any


class Network:
  """Everything at once."""

  def __init__(self) -> None:
    self.norm, self.numpy, self.name = Norm(), np, "network"
    self.layers: list[Any] = [nn.Linear(2, 2), {"x": nn.LayerNorm(2), 7: [leaf(5)]}, (leaf(6), None, 3)]
    self.slots, self.pair = Derived(), Pair(leaf(7), UserDict(z=leaf(8)))
    self.ordered = OrderedDict(first=leaf(9))
    self.tied, self.frozen = self.norm.weight, leaf(10).requires_grad_(False)
    self.kept = self.norm.weight * 2                       # computed, and kept for a look
    self.parent, self.again = self, self.layers
    self.unsaid = Tensor.zeros(2)                          # nobody has said whether it learns
    self.step = TinyJit(lambda t: t + self.tied)


def test_parameters_are_leaves_that_may_learn_each_once() -> None:
  network = Network()
  found = nn.get_parameters(network)
  assert len({id(t) for t in found}) == len(found) and all(t.is_leaf for t in found)
  assert [t for t in found if not t.requires_grad] == [network.unsaid]
  linear, norm = network.layers[0], network.layers[1]["x"]
  wanted = [network.norm.weight, network.norm.bias, linear.weight, linear.bias, norm.weight, norm.bias,
            network.layers[1][7][0], network.layers[2][0], network.slots.more, network.slots.inner[0],
            network.slots.weight, network.pair.a, network.pair.b["z"], network.ordered["first"], network.unsaid]
  assert {id(t) for t in found} == {id(t) for t in wanted}
  assert [id(t) for t in nn.get_parameters([linear, linear, (linear.bias,)])] == [id(linear.weight), id(linear.bias)]
  assert nn.get_parameters([]) == nn.get_parameters(None) == []


def test_the_state_has_every_tensor_by_every_path() -> None:
  network = Network()
  state = nn.get_state_dict(network)
  assert state["norm.mean"] is network.norm.mean and state["frozen"] is network.frozen
  assert state["tied"] is state["norm.weight"] and state["again.0.weight"] is state["layers.0.weight"]
  assert state["slots.inner.0"] is network.slots.inner[0] and state["pair.1.z"] is network.pair.b["z"]
  with pytest.raises(InvalidArgument, match="two tensors are called 'a.b'"):
    nn.get_state_dict({"a.b": leaf(1), "a": {"b": leaf(1)}})
  with pytest.raises(InvalidArgument, match="weights: tensors in a set have no order"):
    nn.get_parameters({"weights": {leaf(1)}})
  assert nn.get_parameters({"names": {"a", 1}}) == []


def test_a_graph_of_shared_parts_is_walked_once() -> None:
  part: Any = [leaf(1)]
  for _ in range(60): part = [part, part]
  assert len(nn.get_parameters(part)) == 1


@pytest.mark.parametrize("make", [nn.optim.SGD, nn.optim.Adam, nn.optim.AdamW])
def test_an_optimizer_takes_leaves_that_require_a_gradient(make: Any) -> None:
  good, buffer, unsaid = leaf(2), Tensor.ones(2, requires_grad=False), Tensor.ones(2)
  with pytest.raises(InvalidArgument, match=r"parameter 1, \(2,\) .*requires no gradient"): make([good, buffer])
  assert not buffer.requires_grad and not (buffer * 2).contiguous().requires_grad
  with pytest.raises(InvalidArgument, match="requires no gradient"): make([(buffer * 2).contiguous()])
  with pytest.raises(InvalidArgument, match="requires no gradient"): make([good.detach()])
  with pytest.raises(InvalidArgument, match="requires no gradient"): make([Tensor([1, 2])])
  assert not unsaid.requires_grad and make(params=[good, unsaid]).params == [good, unsaid] and unsaid.requires_grad
  with pytest.raises(InvalidArgument, match="parameter 0, .*was computed from others"): make([good * 2])
  with pytest.raises(InvalidArgument, match="parameter 0 is a ndarray"): make([np.ones(2)])
  with pytest.raises(InvalidArgument, match="without parameters"): make([])
  assert len(make([good, good]).parameters) == 1
