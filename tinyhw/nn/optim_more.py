"""Optimizers that are seldom used: averaged gradient descent, Adafactor, L-BFGS, by the formulas of PyTorch."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.engine.realize import realize
from tinyhw.function.spelling import made_by_any_spelling
from tinyhw.ir.dtype import dtypes
from tinyhw.nn.optim import Group, Optimizer, Parameters, _stepped
from tinyhw.tensor.tensor import Tensor


@made_by_any_spelling
class ASGD(Optimizer):
  """Averaged gradient descent (Polyak and Juditsky): rates fall, and `group.state["average"]` holds the mean of the
  parameters from step `t0` on."""

  def __init__(self, parameters: Parameters, lr: float = 0.01, lambd: float = 1e-4, alpha: float = 0.75,
               t0: float = 1e6, weight_decay: float = 0.0):
    super().__init__(parameters, lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay)

  def _begin(self, group: Group) -> list[Tensor]:
    o, kept = group.options, group.state.setdefault("eta", {})
    if 0 not in kept: kept[0], kept[1] = (group._lr.detach().contiguous().requires_grad_(False) for _ in range(2))
    eta, following = kept[0], kept[1]
    eta.assign(following)
    step = _stepped(group)
    # What the next step takes, by the rate of this one.
    following.assign(group._lr / (1 + o["lambd"] * group._lr * step) ** o["alpha"])
    return [step, eta, following]

  def _change(self, group: Group, p: Tensor, g: Tensor, value: Tensor) -> tuple[list[Tensor], Tensor]:
    o = group.options
    if o["weight_decay"]: g = g + o["weight_decay"] * value
    eta, step = group.state["eta"][0].to(p.device), group.state["steps"][0].to(p.device)
    change = eta * (g + o["lambd"] * value)
    average, _ = group.kept("average", p)
    part = (step - 1 - o["t0"]).maximum(1).reciprocal()
    average.assign(average + part * (value - change - average))
    return [average], change.cast(value.dtype)


@made_by_any_spelling
class Adafactor(Optimizer):
  """Adam whose second moments of matrices are products of a column and a row (Shazeer and Stern), relative to the size
  of the parameters. `eps`: what is added to squares (the type's own least step unless told), and the least size."""

  def __init__(self, parameters: Parameters, lr: float = 0.01, beta2_decay: float = -0.8,
               eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
               maximize: bool = False):
    super().__init__(parameters, lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay,
                     maximize=maximize)

  def _begin(self, group: Group) -> list[Tensor]: return [_stepped(group)]

  def _change(self, group: Group, p: Tensor, g: Tensor, value: Tensor) -> tuple[list[Tensor], Tensor]:
    o, step, rate = group.options, group.state["steps"][0].to(p.device), group.rate(p)
    if o["maximize"]: g = -g
    first, least = o["eps"]
    floor = 2.0 ** -dtypes.finfo(p.dtype)[1] if first is None else first
    fresh = step ** o["beta2_decay"]
    size = (value.square().sum() / value.numel()).sqrt()
    pace = size.maximum(least) * rate.minimum(step.rsqrt())
    def follow(name: str, now: Tensor) -> Tensor:
      kept, _ = group.kept(name, p, now.zeros_like())
      return kept.assign(kept + fresh * (now - kept))
    if g.ndim > 1:
      rows, columns = (follow(name, g.square().mean(axis, keepdim=True)) for name, axis in (("rows", -1),
                                                                                            ("columns", -2)))
      spread = rows @ columns / rows.mean(-2, keepdim=True).maximum(floor)
      states = [rows, columns]
    else:
      spread = follow("second", g.square())
      states = [spread]
    update = spread.maximum(floor * floor).rsqrt() * g
    much = ((update.square().sum() / update.numel()).sqrt() / o["d"]).maximum(1)
    change = pace / much * update
    if o["weight_decay"]: change = change + rate * o["weight_decay"] * value
    return states, change.reshape(p.shape)


@made_by_any_spelling
class LBFGS(Optimizer):
  """Newton's steps by what the last `history_size` gradients tell of the curvature: `step(closure)`, where the closure
  computes the loss anew, with its gradients, and gives it. How far it goes is decided in Python, from values that are
  read; there is one group."""

  def __init__(self, parameters: Parameters, lr: float = 1.0, max_iter: int = 20, max_eval: int | None = None,
               tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
               line_search_fn: str | None = None):
    super().__init__(parameters, lr)
    if len(self.groups) != 1: raise InvalidArgument("LBFGS of several groups", hint="it takes one")
    if line_search_fn is not None:
      raise Unsupported("line search", repr(line_search_fn), hint="line_search_fn=None, with a smaller lr")
    self.max_iter, self.max_eval = max_iter, max_iter * 5 // 4 if max_eval is None else max_eval
    self.tolerance_grad, self.tolerance_change, self.history_size = tolerance_grad, tolerance_change, history_size
    self._steps: list[tuple[Tensor, Tensor, float]] = []   # (change of the parameters, of the gradient, 1 / product)
    self._scale, self._made = 1.0, 0
    self._direction: Tensor | None = None
    self._before: Tensor | None = None
    self._rate = 0.0
    self._loss = 0.0

  def _change(self, group: Group, p: Tensor, g: Tensor, value: Tensor) -> tuple[list[Tensor], Tensor]:
    raise InvalidArgument("LBFGS.schedule_step()", hint="it reads values on the way: step(closure)")

  def _gradient(self) -> Tensor:
    parts = [(p.zeros_like() if p.grad is None else p.grad.detach()).reshape(-1) for p in self.parameters]
    return parts[0].cat(*parts[1:]).realize() if len(parts) > 1 else parts[0].contiguous().realize()

  def _directed(self, gradient: Tensor) -> Tensor:
    """The two loops over what is remembered."""
    q, parts = -gradient, []
    for s, y, rho in reversed(self._steps):
      parts.append(float((s * q).sum().item()) * rho)
      q = (q - y * parts[-1]).realize()
    q = q * self._scale
    for (s, y, rho), part in zip(self._steps, reversed(parts)):
      q = (q + s * (part - float((y * q).sum().item()) * rho)).realize()
    return q.realize()

  def step(self, closure: Callable[[], Any], *also: Tensor) -> Any:  # type: ignore[override]  # as PyTorch has it
    """As many steps as `max_iter` says, or fewer. The loss before the first one."""
    if not callable(closure): raise InvalidArgument("LBFGS.step()", hint="give a function that computes the loss")
    first = closure()
    loss, calls = float(first.item()), 1
    gradient = self._gradient()
    if float(gradient.abs().max().item()) <= self.tolerance_grad: return first
    for number in range(self.max_iter):
      self._made += 1
      if self._made == 1 or self._direction is None or self._before is None: self._direction = (-gradient).realize()
      else:
        y, s = (gradient - self._before).realize(), (self._direction * self._rate).realize()
        product = float((y * s).sum().item())
        if product > 1e-10:
          if len(self._steps) == self.history_size: self._steps.pop(0)
          self._steps.append((s, y, 1 / product))
          self._scale = product / float((y * y).sum().item())
        self._direction = self._directed(gradient)
      self._before, self._loss = gradient, loss
      rate = float(self.groups[0]["lr"])
      self._rate = min(1.0, 1 / float(gradient.abs().sum().item())) * rate if self._made == 1 else rate
      slope = float((gradient * self._direction).sum().item())
      if slope > -self.tolerance_change: break
      self._move(self._rate)
      if number != self.max_iter - 1:
        loss, calls = float(closure().item()), calls + 1
        gradient = self._gradient()
      if number == self.max_iter - 1 or calls >= self.max_eval: break
      if float(gradient.abs().max().item()) <= self.tolerance_grad: break
      if float((self._direction * self._rate).abs().max().item()) <= self.tolerance_change: break
      if abs(loss - self._loss) < self.tolerance_change: break
    return first

  def _move(self, rate: float) -> None:
    at = 0
    assert self._direction is not None
    with Tensor.no_grad():
      for p in self.parameters:
        p.assign(p.detach() + (self._direction[at:at + p.numel()].reshape(p.shape) * rate).cast(p.dtype))
        at += p.numel()
    realize(*self.parameters)
