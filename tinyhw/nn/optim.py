"""Optimizers: `step()` gives the parameters new values from their gradients, all in one schedule."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tinyhw.core.errors import InvalidArgument
from tinyhw.engine.realize import realize
from tinyhw.tensor import Tensor


class Optimizer(ABC):
  """Base of the optimizers: the parameters, leaves that require a gradient, and the learning rate."""

  def __init__(self, parameters: Sequence[Tensor], lr: float):
    if not parameters: raise InvalidArgument("an optimizer without parameters")
    if lr < 0: raise InvalidArgument(f"learning rate {lr} is negative")
    for i, p in enumerate(parameters):
      if not isinstance(p, Tensor): raise InvalidArgument(f"parameter {i} is a {type(p).__name__}, no Tensor")
      if not p.requires_grad:
        raise InvalidArgument(f"parameter {i}, {p.shape} {p.dtype}, requires no gradient",
                              hint="make it with requires_grad=True, or leave it out: nn.get_parameters does")
      if not p.is_leaf:
        raise InvalidArgument(f"parameter {i}, {p.shape} {p.dtype}, was computed from others, and gets no gradient",
                              hint="give the leaves that it was computed from")
    self.parameters = list(dict.fromkeys(parameters))
    self.lr = lr

  def zero_grad(self) -> None:
    """Forget the gradients."""
    for p in self.parameters: p.grad = None

  def step(self, *also: Tensor) -> None:
    """Update every parameter that has a gradient; `also` (such as the loss) is computed in the same schedule."""
    with Tensor.no_grad():
      updated = self._update([p for p in self.parameters if p.grad is not None])
    realize(*updated, *also)

  @abstractmethod
  def _update(self, parameters: list[Tensor]) -> list[Tensor]:
    """Assign new values, lazily; the tensors to realize."""


class SGD(Optimizer):
  """Gradient descent, with momentum and weight decay when they are not 0 (PyTorch's formulas)."""

  def __init__(self, parameters: Sequence[Tensor], lr: float = 0.01, momentum: float = 0.0, weight_decay: float = 0.0,
               nesterov: bool = False):
    super().__init__(parameters, lr)
    self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov
    self.velocity: dict[Tensor, Tensor] = {}

  def _update(self, parameters: list[Tensor]) -> list[Tensor]:
    changed = []
    for p in parameters:
      g = p.grad
      assert g is not None
      value = p.detach()
      if self.weight_decay: g = g + self.weight_decay * value
      if self.momentum:
        # The first step starts from the gradient itself.
        v = self.velocity.get(p)
        if v is None: v = self.velocity[p] = g.contiguous()
        else: v.assign(self.momentum * v + g)
        changed.append(v)
        g = g + self.momentum * v if self.nesterov else v
      p.assign(value - (self.lr * g).cast(p.dtype))
      changed.append(p)
    return changed


class Adam(Optimizer):
  """Adam; with a weight decay that acts on the parameters directly (AdamW) when `decoupled`."""

  def __init__(self, parameters: Sequence[Tensor], lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999),
               eps: float = 1e-8, weight_decay: float = 0.0, decoupled: bool = False):
    super().__init__(parameters, lr)
    self.betas, self.eps, self.weight_decay, self.decoupled = betas, eps, weight_decay, decoupled
    # Powers of the betas live on the device, so that a captured step can run again.
    self.powers = [Tensor([1.0], device=self.parameters[0].device) for _ in betas]
    self.first = [p.zeros_like().contiguous() for p in self.parameters]
    self.second = [p.zeros_like().contiguous() for p in self.parameters]

  def _update(self, parameters: list[Tensor]) -> list[Tensor]:
    changed = list(self.powers)
    for power, beta in zip(self.powers, self.betas): power.assign(power * beta)
    places = {p: i for i, p in enumerate(self.parameters)}
    for p in parameters:
      g, i, value = p.grad, places[p], p.detach()
      assert g is not None
      if self.weight_decay and not self.decoupled: g = g + self.weight_decay * value
      m, v = self.first[i], self.second[i]
      m.assign(self.betas[0] * m + (1 - self.betas[0]) * g)
      v.assign(self.betas[1] * v + (1 - self.betas[1]) * g * g)
      unbiased = [t / (1 - power.to(p.device)) for t, power in zip((m, v), self.powers)]
      change = unbiased[0] / (unbiased[1].sqrt() + self.eps)
      if self.weight_decay and self.decoupled: change = change + self.weight_decay * value
      p.assign(value - (self.lr * change).cast(p.dtype))
      changed += [m, v, p]
    return changed


class AdamW(Adam):
  """Adam with decoupled weight decay."""

  def __init__(self, parameters: Sequence[Tensor], lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999),
               eps: float = 1e-8, weight_decay: float = 0.01):
    super().__init__(parameters, lr, betas, eps, weight_decay, decoupled=True)
