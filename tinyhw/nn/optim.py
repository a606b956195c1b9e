"""Optimizers: `step()` gives the parameters new values from their gradients, all in one schedule.

Parameters are tensors of which nobody has said that they require no gradient (from then on they require one), or groups
with options of their own, as in PyTorch: `SGD([{"params": weights, "weight_decay": 0.1}, {"params": biases}],
lr=0.01)`. Everything that changes from step to step is a tensor on a device, the learning rate too: a step that TinyJit
has recorded sees `optimizer.lr = 0.001`.
"""
from __future__ import annotations

import importlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.engine.realize import realize
from tinyhw.function.spelling import made_by_any_spelling
from tinyhw.ir import semantics
from tinyhw.ir.dtype import dtypes
from tinyhw.nn import lr_scheduler  # noqa: F401  # for `optim.lr_scheduler`, PyTorch's name of it
from tinyhw.nn.module import Parameter
from tinyhw.nn.state import may_learn
from tinyhw.nn.statistics import Statistics
from tinyhw.tensor.tensor import Tensor

Parameters = Sequence[Tensor] | Sequence[Mapping[str, Any]]


class Group:
  """Parameters with the same options. `state` holds tensors by name and place of the parameter. `group["lr"]`, a float,
  `group["params"]` and its options by their names are as in PyTorch's `param_groups`."""

  def __init__(self, parameters: Sequence[Tensor], options: dict[str, Any], lr: float):
    self.parameters, self.options = list(dict.fromkeys(parameters)), options
    wide = any(p.dtype is dtypes.float64 for p in self.parameters)
    self._lr = Tensor([lr], device=self.parameters[0].device, dtype=dtypes.float64 if wide else dtypes.float32,
                      requires_grad=False)
    self._told = float(lr)                     # the digits that a tensor of float32 lacks
    self.first_rate: float | None = None       # where a scheduler began
    self.state: dict[str, dict[int, Tensor]] = {}

  @property
  def lr(self) -> Tensor:
    """The learning rate, of shape (1,); a number or a tensor that is assigned to it reaches recorded steps too."""
    return self._lr

  @lr.setter
  def lr(self, value: float | Tensor) -> None:
    if value is self._lr: return               # `optimizer.lr *= 0.5`
    if not isinstance(value, Tensor):
      _check_rate(value)
      self._told = float(value)
      value = Tensor([value], device=self._lr.device, dtype=self._lr.dtype)
    elif value.numel() != 1: raise InvalidArgument(f"a learning rate of shape {value.shape}", hint="it is one number")
    self._lr.assign(value.detach().reshape(1).to(self._lr.device).cast(self._lr.dtype)).realize()

  def __getitem__(self, name: str) -> Any:
    return self.parameters if name == "params" else self._number() if name == "lr" else self.options[name]

  def _number(self) -> float:
    """The rate: the number that was given, where the tensor is still that one."""
    found = self._lr.item()
    return self._told if found == semantics.canonical(self._told, self._lr.dtype) else float(found)

  def __setitem__(self, name: str, value: Any) -> None:
    if name == "lr": self.lr = value
    elif name in self.options: self.options[name] = value
    else: raise InvalidArgument(f"a group has no option {name!r}", hint=f"it has lr, {', '.join(self.options)}")

  def keys(self) -> tuple[str, ...]:
    """The names of what it has."""
    return ("params", "lr", *self.options)

  def rate(self, like: Tensor) -> Tensor:
    """The learning rate as a tensor on the device of `like`."""
    return self._lr.to(like.device)

  def kept(self, name: str, p: Tensor, first: Tensor | None = None) -> tuple[Tensor, bool]:
    """The state of that name of a parameter, and whether it was made just now: `first`, or zeros."""
    of, place = self.state.setdefault(name, {}), next(i for i, q in enumerate(self.parameters) if q is p)
    if (found := of.get(place)) is not None: return found, False
    made = of[place] = (p.detach().zeros_like() if first is None else first).contiguous().requires_grad_(False)
    return made, True


def _check_rate(lr: Any) -> None:
  if isinstance(lr, bool) or not isinstance(lr, (int, float)): raise InvalidArgument(
    f"a learning rate is a number, not a {type(lr).__name__}")
  if not lr >= 0: raise InvalidArgument(f"learning rate {lr} is negative" if lr < 0 else f"learning rate {lr}")


def _check_parameter(i: int, p: Any) -> None:
  if not isinstance(p, Tensor): raise InvalidArgument(f"parameter {i} is a {type(p).__name__}, no Tensor")
  if may_learn(p) and not p.requires_grad: p.requires_grad_()
  if not p.requires_grad and not isinstance(p, Parameter):       # that one may learn later
    raise InvalidArgument(f"parameter {i}, {p.shape} {p.dtype}, requires no gradient",
                          hint="make it with requires_grad=True, or leave it out: nn.get_parameters does")
  if not p.is_leaf:
    raise InvalidArgument(f"parameter {i}, {p.shape} {p.dtype}, was computed from others, and gets no gradient",
                          hint="give the leaves that it was computed from")


class Optimizer(ABC):
  """Base of the optimizers: groups of leaves that require a gradient, with a learning rate each."""

  def __init__(self, parameters: Parameters, lr: float, **options: Any):
    given: list[Any] = list(parameters)
    if not given: raise InvalidArgument("an optimizer without parameters")
    _check_rate(lr)
    rows: list[Mapping[str, Any]] = given if all(isinstance(g, Mapping) for g in given) else [{"params": given}]
    self.groups: list[Group] = []
    for row in rows:
      own = {k: v for k, v in row.items() if k not in ("params", "lr")}
      if unknown := own.keys() - options.keys():
        raise InvalidArgument(f"{type(self).__name__} has no option {sorted(unknown)[0]!r}",
                              hint=f"a group may have params, lr, {', '.join(options)}")
      params = row.get("params", ())
      params = [params] if isinstance(params, Tensor) else list(params)
      if not params: raise InvalidArgument("a group without parameters")
      for i, p in enumerate(params): _check_parameter(i, p)
      if any(p is q for g in self.groups for p in params for q in g.parameters):
        raise InvalidArgument("a parameter is in two groups")
      _check_rate(row.get("lr", lr))
      self.groups.append(Group(params, options | own, row.get("lr", lr)))

  @property
  def parameters(self) -> list[Tensor]:
    """All parameters, each once."""
    return [p for g in self.groups for p in g.parameters]

  @property
  def params(self) -> list[Tensor]:
    """All parameters, each once."""
    return self.parameters

  @property
  def device(self) -> str | tuple[str, ...]:
    """Where the first parameter is."""
    return self.parameters[0].device

  @property
  def param_groups(self) -> list[Group]:
    """The groups, by PyTorch's name: `optimizer.param_groups[0]["lr"] = 0.1`."""
    return self.groups

  @property
  def lr(self) -> Tensor:
    """The learning rate of the first group, a tensor of shape (1,); setting it sets that of all."""
    return self.groups[0].lr

  @lr.setter
  def lr(self, value: float | Tensor) -> None:
    for g in self.groups: g.lr = value

  def zero_grad(self, set_to_none: bool = True) -> None:
    """Forget the gradients, or make them 0."""
    for p in self.parameters: p.grad = None if set_to_none or p.grad is None else p.grad.zeros_like().contiguous()

  def step(self, *also: Tensor) -> None:
    """Update every parameter that has a gradient; `also` (such as the loss) is computed in the same schedule."""
    realize(*self.schedule_step(), *also)

  def schedule_step(self) -> list[Tensor]:
    """Give every parameter that has a gradient its new value; the tensors that are to be realized for it."""
    with Tensor.no_grad():
      changed: list[Tensor] = []
      for g in self.groups:
        learning = [p for p in g.parameters if p.grad is not None]
        if learning: changed += self._begin(g)
        for p in learning:
          assert p.grad is not None
          more, change = self._change(g, p, p.grad.detach(), p.detach())
          p.assign(p.detach() - change.cast(p.dtype))
          changed += [*more, p]
    return [*changed, *Statistics.take()]

  def _begin(self, group: Group) -> list[Tensor]:
    """What changes once a step; the tensors to realize."""
    return []

  @abstractmethod
  def _change(self, group: Group, p: Tensor, g: Tensor, value: Tensor) -> tuple[list[Tensor], Tensor]:
    """(state that was assigned, what is taken from the parameter) for the gradient `g` at `value`."""


class OptimizerGroup:
  """Several optimizers as one."""

  def __init__(self, *optimizers: Optimizer):
    if not optimizers: raise InvalidArgument("a group of no optimizers")
    self.optimizers = optimizers

  @property
  def parameters(self) -> list[Tensor]:
    """The parameters of all."""
    return [p for o in self.optimizers for p in o.parameters]

  @property
  def params(self) -> list[Tensor]:
    """The parameters of all."""
    return self.parameters

  def __getitem__(self, number: int) -> Optimizer: return self.optimizers[number]
  def __len__(self) -> int: return len(self.optimizers)

  def zero_grad(self, set_to_none: bool = True) -> None:
    """Forget the gradients of all, or make them 0."""
    for o in self.optimizers: o.zero_grad(set_to_none)

  def schedule_step(self) -> list[Tensor]:
    """A step of each; the tensors that are to be realized for it."""
    return [t for o in self.optimizers for t in o.schedule_step()]

  def step(self, *also: Tensor) -> None:
    """A step of each."""
    realize(*self.schedule_step(), *also)


@made_by_any_spelling
class SGD(Optimizer):
  """Gradient descent, with momentum and weight decay when they are not 0 (PyTorch's formulas)."""

  def __init__(self, parameters: Parameters, lr: float = 0.01, momentum: float = 0.0, weight_decay: float = 0.0,
               nesterov: bool = False, dampening: float = 0.0):
    if nesterov and (not momentum or dampening):
      raise InvalidArgument(f"Nesterov's momentum with momentum {momentum} and dampening {dampening}",
                            hint="it needs a momentum and no dampening")
    for name, value in (("momentum", momentum), ("weight decay", weight_decay)):
      if value < 0: raise InvalidArgument(f"a {name} of {value}")
    super().__init__(parameters, lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov,
                     dampening=dampening)

  def _change(self, group: Group, p: Tensor, g: Tensor, value: Tensor) -> tuple[list[Tensor], Tensor]:
    o, kept = group.options, []
    if o["weight_decay"]: g = g + o["weight_decay"] * value
    if o["momentum"]:
      # The first step starts from the gradient itself.
      v, new = group.kept("velocity", p, g)
      if not new: v.assign(o["momentum"] * v + (1 - o["dampening"]) * g)
      kept.append(v)
      g = g + o["momentum"] * v if o["nesterov"] else v
    return kept, group.rate(p) * g


@made_by_any_spelling
class Adam(Optimizer):
  """Adam; with a weight decay that acts on the parameters directly (AdamW) when `decoupled`. `b1` and `b2` are the two
  betas by tinygrad's names."""

  def __init__(self, parameters: Parameters, lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999),
               eps: float = 1e-8, weight_decay: float = 0.0, decoupled: bool = False, *, b1: float | None = None,
               b2: float | None = None, **more: Any):
    betas = betas[0] if b1 is None else b1, betas[1] if b2 is None else b2
    for beta in betas:
      if not 0 <= beta < 1: raise InvalidArgument(f"beta {beta} is not in [0, 1)")
    if weight_decay < 0: raise InvalidArgument(f"a weight decay of {weight_decay}")
    super().__init__(parameters, lr, betas=betas, eps=eps, weight_decay=weight_decay, decoupled=decoupled, **more)

  def _begin(self, group: Group) -> list[Tensor]:
    # 1 less the powers of the betas as they are now: on the device, so that a captured step can run again, and by
    # expm1, since little is left of the digits of 1 - 0.999.
    step, weights = _stepped(group), group.state.setdefault("weight", {})
    for i, beta in enumerate(group.options["betas"]):
      if i not in weights: weights[i] = group._lr.zeros_like().contiguous().requires_grad_(False)
      weights[i].assign(-(step * (math.log(beta) if beta else -math.inf)).expm1())
    return [step, *weights.values()]

  def _weights(self, group: Group, p: Tensor) -> tuple[Tensor, Tensor]:
    """What the means of the moments lack of 1 is left out: 1 less the powers of the betas."""
    first, second = (group.state["weight"][i].to(p.device) for i in range(2))
    return first, second

  def _averaged(self, group: Group, p: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """The two moments after this step."""
    b1, b2 = group.options["betas"]
    (m, _), (v, _) = group.kept("first", p), group.kept("second", p)
    m.assign(b1 * m + (1 - b1) * g)
    v.assign(b2 * v + (1 - b2) * g * g)
    return m, v

  def _moments(self, group: Group, p: Tensor, g: Tensor) -> tuple[list[Tensor], Tensor]:
    """(the two moments, the direction)."""
    (m, v), (first, second) = self._averaged(group, p, g), self._weights(group, p)
    return [m, v], (m / first) / ((v / second).sqrt() + group.options["eps"])

  def _change(self, group: Group, p: Tensor, g: Tensor, value: Tensor) -> tuple[list[Tensor], Tensor]:
    decay, decoupled = group.options["weight_decay"], group.options["decoupled"]
    if decay and not decoupled: g = g + decay * value
    kept, change = self._moments(group, p, g)
    if decay and decoupled: change = change + decay * value
    return kept, group.rate(p) * change


@made_by_any_spelling
class AdamW(Adam):
  """Adam with decoupled weight decay."""

  def __init__(self, parameters: Parameters, lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999),
               eps: float = 1e-8, weight_decay: float = 0.01, *, b1: float | None = None, b2: float | None = None):
    super().__init__(parameters, lr, betas, eps, weight_decay, decoupled=True, b1=b1, b2=b2)


@made_by_any_spelling
class Adamax(Adam):
  """Adam by the greatest gradient of late in the place of the second moment (PyTorch's formulas)."""

  def __init__(self, parameters: Parameters, lr: float = 0.002, betas: tuple[float, float] = (0.9, 0.999),
               eps: float = 1e-8, weight_decay: float = 0.0):
    super().__init__(parameters, lr, betas, eps, weight_decay)

  def _moments(self, group: Group, p: Tensor, g: Tensor) -> tuple[list[Tensor], Tensor]:
    (b1, b2), (first, _) = group.options["betas"], self._weights(group, p)
    (m, _), (most, _) = group.kept("first", p), group.kept("most", p)
    m.assign(b1 * m + (1 - b1) * g)
    most.assign((b2 * most).maximum(g.abs() + group.options["eps"]))
    return [m, most], m / first / most


def _stepped(group: Group) -> Tensor:
  """How many steps a group has made with this one, of shape (1,)."""
  counts = group.state.setdefault("steps", {})
  if 0 not in counts: counts[0] = group._lr.zeros_like().contiguous().requires_grad_(False)
  return counts[0].assign(counts[0] + 1)


@made_by_any_spelling
class NAdam(Adam):
  """Adam with Nesterov's momentum, which grows from step to step (PyTorch's formulas)."""

  def __init__(self, parameters: Parameters, lr: float = 0.002, betas: tuple[float, float] = (0.9, 0.999),
               eps: float = 1e-8, weight_decay: float = 0.0, momentum_decay: float = 0.004,
               decoupled_weight_decay: bool = False):
    super().__init__(parameters, lr, betas, eps, weight_decay, decoupled_weight_decay, momentum_decay=momentum_decay)

  def _momentum(self, group: Group, step: Tensor) -> Tensor:
    beta: float = group.options["betas"][0]
    growth: float = group.options["momentum_decay"] * math.log(0.96)
    return beta - beta / 2 * (step * growth).exp()

  def _begin(self, group: Group) -> list[Tensor]:
    changed, kept = super()._begin(group), group.state.setdefault("momenta", {})
    if 0 not in kept: kept[0] = group._lr.ones_like().contiguous().requires_grad_(False)
    kept[0].assign(kept[0] * self._momentum(group, group.state["steps"][0]))
    return [*changed, kept[0]]

  def _moments(self, group: Group, p: Tensor, g: Tensor) -> tuple[list[Tensor], Tensor]:
    (m, v), (_, second) = self._averaged(group, p, g), self._weights(group, p)
    step, product = (group.state[name][0].to(p.device) for name in ("steps", "momenta"))
    now, after = self._momentum(group, step), self._momentum(group, step + 1)
    change = (1 - now) / (1 - product) * g + after / (1 - product * after) * m
    return [m, v], change / ((v / second).sqrt() + group.options["eps"])


@made_by_any_spelling
class RAdam(Adam):
  """Adam that follows the first moment alone until the second one's variance is known (PyTorch's formulas)."""

  def __init__(self, parameters: Parameters, lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999),
               eps: float = 1e-8, weight_decay: float = 0.0, decoupled_weight_decay: bool = False):
    super().__init__(parameters, lr, betas, eps, weight_decay, decoupled_weight_decay)

  def _moments(self, group: Group, p: Tensor, g: Tensor) -> tuple[list[Tensor], Tensor]:
    (m, v), (first, second) = self._averaged(group, p, g), self._weights(group, p)
    longest = 2 / (1 - group.options["betas"][1]) - 1
    length = longest - 2 * group.state["steps"][0].to(p.device) * (1 - second) / second
    known = length > 5
    length = known.where(length, 5)
    trust = ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)).sqrt()
    return [m, v], m / first * known.where(trust * second.sqrt() / (v.sqrt() + group.options["eps"]), 1)


@made_by_any_spelling
class RMSprop(Optimizer):
  """The gradient by the root of its mean square of late (PyTorch's formulas); `centered` takes the mean off before."""

  def __init__(self, parameters: Parameters, lr: float = 0.01, alpha: float = 0.99, eps: float = 1e-8,
               weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False):
    _check_options(alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum)
    super().__init__(parameters, lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum,
                     centered=centered)

  def _change(self, group: Group, p: Tensor, g: Tensor, value: Tensor) -> tuple[list[Tensor], Tensor]:
    o, kept = group.options, [group.kept("square", p)[0]]
    if o["weight_decay"]: g = g + o["weight_decay"] * value
    square = kept[0].assign(o["alpha"] * kept[0] + (1 - o["alpha"]) * g * g)
    if o["centered"]:
      kept.append(mean := group.kept("mean", p)[0])
      mean.assign(mean + (1 - o["alpha"]) * (g - mean))
      square = square - mean * mean
    g = g / (square.sqrt() + o["eps"])
    if o["momentum"]:
      kept.append(v := group.kept("velocity", p)[0])
      g = v.assign(o["momentum"] * v + g)
    return kept, group.rate(p) * g


@made_by_any_spelling
class Adagrad(Optimizer):
  """The gradient by the root of the sum of all its squares (PyTorch's formulas)."""

  def __init__(self, parameters: Parameters, lr: float = 0.01, lr_decay: float = 0.0, weight_decay: float = 0.0,
               initial_accumulator_value: float = 0.0, eps: float = 1e-10):
    _check_options(lr_decay=lr_decay, weight_decay=weight_decay, eps=eps,
                   initial_accumulator_value=initial_accumulator_value)
    super().__init__(parameters, lr, lr_decay=lr_decay, weight_decay=weight_decay, eps=eps,
                     initial_accumulator_value=initial_accumulator_value)

  def _begin(self, group: Group) -> list[Tensor]: return [_stepped(group)] if group.options["lr_decay"] else []

  def _change(self, group: Group, p: Tensor, g: Tensor, value: Tensor) -> tuple[list[Tensor], Tensor]:
    o, rate = group.options, group.rate(p)
    if o["weight_decay"]: g = g + o["weight_decay"] * value
    squares, _ = group.kept("squares", p, p.detach().full_like(o["initial_accumulator_value"]))
    squares.assign(squares + g * g)
    if o["lr_decay"]: rate = rate / (1 + (group.state["steps"][0].to(p.device) - 1) * o["lr_decay"])
    return [squares], rate * g / (squares.sqrt() + o["eps"])


@made_by_any_spelling
class Adadelta(Optimizer):
  """The gradient by its root mean square of late, times that of the changes (PyTorch's formulas)."""

  def __init__(self, parameters: Parameters, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6,
               weight_decay: float = 0.0):
    _check_options(rho=rho, eps=eps, weight_decay=weight_decay)
    if rho > 1: raise InvalidArgument(f"a rho of {rho}")
    super().__init__(parameters, lr, rho=rho, eps=eps, weight_decay=weight_decay)

  def _change(self, group: Group, p: Tensor, g: Tensor, value: Tensor) -> tuple[list[Tensor], Tensor]:
    o, (square, _), (changes, _) = group.options, group.kept("square", p), group.kept("changes", p)
    if o["weight_decay"]: g = g + o["weight_decay"] * value
    square.assign(o["rho"] * square + (1 - o["rho"]) * g * g)
    change = (changes + o["eps"]).sqrt() / (square + o["eps"]).sqrt() * g
    changes.assign(o["rho"] * changes + (1 - o["rho"]) * change * change)
    return [square, changes], group.rate(p) * change


@made_by_any_spelling
class Rprop(Optimizer):
  """Steps by the sign of the gradient, which grow while it stays and shrink where it turns (PyTorch's formulas)."""

  def __init__(self, parameters: Parameters, lr: float = 0.01, etas: tuple[float, float] = (0.5, 1.2),
               step_sizes: tuple[float, float] = (1e-6, 50)):
    if not 0 < etas[0] < 1 < etas[1]:
      raise InvalidArgument(f"etas {etas}", hint="the first is below 1, the second above")
    super().__init__(parameters, lr, etas=etas, step_sizes=step_sizes)

  def _change(self, group: Group, p: Tensor, g: Tensor, value: Tensor) -> tuple[list[Tensor], Tensor]:
    (less, more), bounds = group.options["etas"], group.options["step_sizes"]
    before, _ = group.kept("before", p)
    size, _ = group.kept("size", p, group.rate(p).cast(p.dtype).expand(p.numel()).reshape(p.shape))
    stays = (g * before).sign()
    size.assign((size * (stays > 0).where(more, (stays < 0).where(less, 1))).clamp(*bounds))
    g = (stays < 0).where(0, g)
    before.assign(g)
    return [size, before], g.sign() * size


def _check_options(**options: float) -> None:
  for name, value in options.items():
    if not value >= 0: raise InvalidArgument(f"{name} {value}", hint="it is not negative")


def _norm(t: Tensor) -> Tensor:
  """The Euclidean norm of all elements, in float32 at least."""
  wide = t if t.dtype is dtypes.float64 else t.float()
  return (wide * wide).sum().sqrt()


def _trust(value: Tensor, change: Tensor) -> Tensor:
  """Norm of the parameter by that of its change; 1 where either is 0."""
  ours, theirs = _norm(value), _norm(change)
  return ((ours > 0) & (theirs > 0)).where(ours / theirs, 1.0)


@made_by_any_spelling
class LARS(Optimizer):
  """Layer-wise rates by the ratio of norms (You, Gitman, Ginsburg, "Large Batch Training of Convolutional Networks",
  2017). With `classic` the rate is part of the velocity, as in the paper; else it scales the step."""

  def __init__(self, parameters: Parameters, lr: float = 0.001, momentum: float = 0.9, weight_decay: float = 1e-4,
               nesterov: bool = False, classic: bool = True, tcoef: float = 0.001):
    super().__init__(parameters, lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov, classic=classic,
                     tcoef=tcoef)

  def _change(self, group: Group, p: Tensor, g: Tensor, value: Tensor) -> tuple[list[Tensor], Tensor]:
    o, kept, rate = group.options, [], group.rate(p)
    ours, theirs = _norm(value), _norm(g)
    ratio = ((ours > 0) & (theirs > 0)).where(o["tcoef"] * ours / (theirs + o["weight_decay"] * ours), 1.0)
    g = (g + o["weight_decay"] * value) * ratio
    if o["classic"]: g = rate * g
    if o["momentum"]:
      v, new = group.kept("velocity", p, g)
      if not new: v.assign(o["momentum"] * v + g)
      kept.append(v)
      g = g + o["momentum"] * v if o["nesterov"] else v
    return kept, g if o["classic"] else rate * g


@made_by_any_spelling
class LAMB(Adam):
  """Adam's direction, scaled to each parameter's norm (You and others, "Large Batch Optimization for Deep Learning:
  Training BERT in 76 minutes", 2020)."""

  def __init__(self, parameters: Parameters, lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999),
               eps: float = 1e-6, weight_decay: float = 0.0, *, b1: float | None = None, b2: float | None = None):
    super().__init__(parameters, lr, betas, eps, weight_decay, decoupled=True, b1=b1, b2=b2)

  def _change(self, group: Group, p: Tensor, g: Tensor, value: Tensor) -> tuple[list[Tensor], Tensor]:
    kept, change = self._moments(group, p, g)
    change = change + group.options["weight_decay"] * value
    return kept, group.rate(p) * _trust(value, change) * change


@made_by_any_spelling
class Muon(Optimizer):
  """Momentum whose direction is made orthogonal by Newton and Schulz's iteration, for matrices (Jordan and others,
  "Muon: An optimizer for hidden layers in neural networks", 2024; PyTorch's defaults). The iteration is in float32."""

  def __init__(self, parameters: Parameters, lr: float = 0.001, weight_decay: float = 0.1, momentum: float = 0.95,
               nesterov: bool = True, ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
               eps: float = 1e-7, ns_steps: int = 5):
    super().__init__(parameters, lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
                     ns_coefficients=ns_coefficients, eps=eps, ns_steps=ns_steps)
    for p in self.parameters:
      if p.ndim != 2: raise InvalidArgument(f"Muon is for matrices, not for a parameter of shape {p.shape}",
                                            hint="give the others to AdamW, and both to OptimizerGroup")

  def _change(self, group: Group, p: Tensor, g: Tensor, value: Tensor) -> tuple[list[Tensor], Tensor]:
    o = group.options
    v, _ = group.kept("velocity", p)
    v.assign(o["momentum"] * v + (1 - o["momentum"]) * g)
    direction = (1 - o["momentum"]) * g + o["momentum"] * v if o["nesterov"] else v
    rows, columns = p.shape
    change = direction.newton_schulz(o["ns_steps"], o["ns_coefficients"], o["eps"]) * max(1, rows / columns) ** 0.5
    return [v], group.rate(p) * (change + o["weight_decay"] * value)


def __getattr__(name: str) -> Any:
  if name in ("ASGD", "Adafactor", "LBFGS"): return getattr(importlib.import_module("tinyhw.nn.optim_more"), name)
  raise AttributeError(f"module 'tinyhw.nn.optim' has no attribute {name!r}")
