"""Building blocks of networks: layers with parameters, their state, and optimizers (`tinyhw.nn.optim`)."""
from __future__ import annotations

import math
from collections.abc import Sequence

from tinyhw.core.errors import InvalidArgument
from tinyhw.nn import optim as optim
from tinyhw.nn.state import (
  get_parameters,
  get_state_dict,
  gguf_load,
  load,
  load_state_dict,
  safe_load,
  safe_metadata,
  safe_save,
  torch_load,
)
from tinyhw.tensor import Tensor

__all__ = ["Embedding", "LayerNorm", "Linear", "get_parameters", "get_state_dict", "gguf_load", "load",
           "load_state_dict", "optim", "safe_load", "safe_metadata", "safe_save", "torch_load"]


class Linear:
  """`x @ weight.T + bias`: `weight` is (out, in) as in PyTorch, both are uniform in +-1/sqrt(in)."""

  def __init__(self, in_features: int, out_features: int, bias: bool = True, device: str | None = None):
    bound = 1 / math.sqrt(max(in_features, 1))
    def made(*shape: int) -> Tensor:
      return Tensor.uniform(shape, low=-bound, high=bound, device=device, requires_grad=True)
    self.weight = made(out_features, in_features)
    self.bias = made(out_features) if bias else None

  def __call__(self, x: Tensor) -> Tensor:
    return x.linear(self.weight.transpose(), self.bias)


class LayerNorm:
  """Mean 0 and variance 1 over the last axes (of sizes `shape`), then scaled by `weight` and moved by `bias`."""

  def __init__(self, shape: int | Sequence[int], eps: float = 1e-5, affine: bool = True, device: str | None = None):
    self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
    self.eps = eps
    self.weight = Tensor.ones(self.shape, device=device, requires_grad=True) if affine else None
    self.bias = Tensor.zeros(self.shape, device=device, requires_grad=True) if affine else None

  def __call__(self, x: Tensor) -> Tensor:
    if x.shape[-len(self.shape):] != self.shape:
      raise InvalidArgument(f"layer norm over {self.shape} of a tensor of shape {x.shape}")
    y = x.layernorm(tuple(range(-len(self.shape), 0)), self.eps)
    return y if self.weight is None or self.bias is None else y * self.weight + self.bias


class Embedding:
  """A table of `count` vectors of size `size`; called with indices it gives their vectors."""

  def __init__(self, count: int, size: int, device: str | None = None):
    self.weight = Tensor.glorot_uniform(count, size, device=device, requires_grad=True)

  def __call__(self, index: Tensor) -> Tensor:
    return self.weight[index]
