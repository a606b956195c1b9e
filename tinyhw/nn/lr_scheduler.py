"""Learning rates that change from step to step, as PyTorch's `torch.optim.lr_scheduler` has them.

A scheduler sets the rates of its optimizer's groups when it is made and at each `step()`; recorded steps see them.
Rates are computed in Python's floats, each from the one before where PyTorch does so: then what was set in between
counts.
"""
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument

if TYPE_CHECKING:
  from tinyhw.nn.optim import Group, Optimizer, OptimizerGroup


class LRScheduler(ABC):
  """Base of the schedulers: `last_epoch` counts the steps, `base_lrs` are the rates at the start, a rate for each
  group."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup):
    self.optimizer, self.last_epoch = optimizer, 0
    for g in self._groups:
      if g.first_rate is None: g.first_rate = g["lr"]
    self.base_lrs: list[float] = [g.first_rate for g in self._groups if g.first_rate is not None]
    self._last_lr = list[float]()
    self._set()

  @property
  def _groups(self) -> list[Group]:
    parts = getattr(self.optimizer, "optimizers", None)
    return list(self.optimizer.param_groups if parts is None else  # type: ignore[union-attr]  # it has the one or other
                [g for o in parts for g in o.param_groups])

  def get_last_lr(self) -> list[float]:
    """The rates that were set last."""
    return list(self._last_lr)

  def step(self) -> None:
    """Set the rates of the next step: after the optimizer's."""
    self.last_epoch += 1
    self._set()

  def _set(self) -> None:
    self._last_lr = [self._rate(n, g["lr"]) for n, g in enumerate(self._groups)]
    for g, rate in zip(self._groups, self._last_lr): g.lr = rate

  @abstractmethod
  def _rate(self, number: int, now: float) -> float:
    """The rate of group `number` at `last_epoch`, which has the rate `now`."""

  def state_dict(self) -> dict[str, Any]:
    """What it knows, but for the optimizer and functions."""
    return {k: v for k, v in vars(self).items() if k != "optimizer" and not callable(v) and not _functions(v)}

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Go on where another one was. The rates themselves are the optimizer's, and are set to what they were there."""
    if unknown := state.keys() - vars(self).keys():
      raise InvalidArgument(f"{type(self).__name__} has no {sorted(unknown)[0]!r}")
    if len(state.get("_last_lr", self._last_lr)) != len(self._last_lr):
      raise InvalidArgument(f"rates of {len(state['_last_lr'])} groups for {len(self._last_lr)}")
    vars(self).update(state)
    for g, rate in zip(self._groups, self._last_lr): g.lr = rate


def _functions(value: Any) -> bool:
  return isinstance(value, list) and any(map(callable, value))


def _count(what: str, value: int) -> int:
  if not isinstance(value, int) or value < 1: raise InvalidArgument(f"{what} is {value!r}", hint="it is at least 1")
  return value


class StepLR(LRScheduler):
  """The rate times `gamma` every `step_size` steps."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup, step_size: int, gamma: float = 0.1):
    self.step_size, self.gamma = _count("step_size", step_size), gamma
    super().__init__(optimizer)

  def _rate(self, number: int, now: float) -> float:
    return now * self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else now


class MultiStepLR(LRScheduler):
  """The rate times `gamma` at each of the `milestones`."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup, milestones: Iterable[int], gamma: float = 0.1):
    self.milestones, self.gamma = Counter(milestones), gamma
    super().__init__(optimizer)

  def _rate(self, number: int, now: float) -> float:
    return now * self.gamma ** self.milestones[self.last_epoch] if self.last_epoch in self.milestones else now


class ExponentialLR(LRScheduler):
  """The rate times `gamma` at each step."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup, gamma: float):
    self.gamma = gamma
    super().__init__(optimizer)

  def _rate(self, number: int, now: float) -> float: return now * self.gamma if self.last_epoch else now


class CosineAnnealingLR(LRScheduler):
  """The rate along half a cosine, from where it starts to `eta_min` in `T_max` steps; then back, and so on."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup, T_max: int, eta_min: float = 0.0):
    self.T_max, self.eta_min = _count("T_max", T_max), eta_min
    super().__init__(optimizer)

  def _rate(self, number: int, now: float) -> float:
    def height(step: int) -> float: return 1 + math.cos(math.pi * step / self.T_max)
    if not self.last_epoch: return now
    if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:   # it was at eta_min: there is nothing to scale
      return now + (self.base_lrs[number] - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
    return self.eta_min + (now - self.eta_min) * height(self.last_epoch) / height(self.last_epoch - 1)


class LambdaLR(LRScheduler):
  """The first rate times what a function gives for the number of steps; or a function for each group."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup,
               lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]]):
    self.lr_lambdas: list[Callable[[int], float]] = [lr_lambda] if callable(lr_lambda) else list(lr_lambda)
    self.optimizer = optimizer
    if callable(lr_lambda): self.lr_lambdas *= len(self._groups)
    if len(self.lr_lambdas) != len(self._groups):
      raise InvalidArgument(f"{len(self.lr_lambdas)} functions for {len(self._groups)} groups")
    super().__init__(optimizer)

  def _rate(self, number: int, now: float) -> float:
    return self.base_lrs[number] * self.lr_lambdas[number](self.last_epoch)


class OneCycleLR(LRScheduler):
  """The rate up from `max_lr / div_factor` to `max_lr` in the part `pct_start` of the steps, and down to a
  `final_div_factor` of the start; with `three_phase` down as it went up, then on to the end. With `cycle_momentum` the
  momentum (or the first beta) goes the other way, which recorded steps do not see: turn it off for them."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup, max_lr: float | Sequence[float],
               total_steps: int | None = None, epochs: int | None = None, steps_per_epoch: int | None = None,
               pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True,
               base_momentum: float | Sequence[float] = 0.85, max_momentum: float | Sequence[float] = 0.95,
               div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False):
    self.optimizer = optimizer
    if total_steps is None:
      if epochs is None or steps_per_epoch is None:
        raise InvalidArgument("OneCycleLR without a number of steps", hint="give total_steps, or epochs and "
                              "steps_per_epoch")
      total_steps = _count("epochs", epochs) * _count("steps_per_epoch", steps_per_epoch)
    self.total_steps = _count("total_steps", total_steps)
    if not 0 <= pct_start <= 1: raise InvalidArgument(f"pct_start {pct_start} is not in 0..1")
    if anneal_strategy not in ("cos", "linear"):
      raise InvalidArgument(f"anneal_strategy {anneal_strategy!r}", hint='"cos" or "linear"')
    self.cosine, self.cycle_momentum = anneal_strategy == "cos", cycle_momentum
    top = self._each("max_lr", max_lr)
    start = [rate / div_factor for rate in top]
    last = [rate / final_div_factor for rate in start]
    slow, fast = self._each("base_momentum", base_momentum), self._each("max_momentum", max_momentum)
    up = float(pct_start * total_steps) - 1
    self.phases: list[tuple[float, list[float], list[float], list[float], list[float]]] = [(up, start, top, fast, slow)]
    if three_phase:
      self.phases += [(2 * pct_start * total_steps - 2, top, start, slow, fast),
                      (total_steps - 1, start, last, fast, fast)]
    else: self.phases.append((total_steps - 1, top, last, slow, fast))
    for g, rate in zip(self._groups, start):
      g.first_rate = rate
      if cycle_momentum and not {"momentum", "betas"} & g.options.keys():
        raise InvalidArgument("the optimizer has neither momentum nor betas", hint="cycle_momentum=False")
    super().__init__(optimizer)

  def _each(self, what: str, value: float | Sequence[float]) -> list[float]:
    found = [value] * len(self._groups) if isinstance(value, (int, float)) else list(value)
    if len(found) != len(self._groups): raise InvalidArgument(f"{what} {value} for {len(self._groups)} groups")
    return found

  def _rate(self, number: int, now: float) -> float:
    if self.last_epoch > self.total_steps:
      raise InvalidArgument(f"step {self.last_epoch} of a cycle of {self.total_steps}", hint="give greater total_steps")
    begin = 0.0
    for phase in self.phases[:-1]:
      if self.last_epoch <= phase[0]: break
      begin = phase[0]
    else: phase = self.phases[-1]
    end, *values = phase
    part = (self.last_epoch - begin) / (end - begin) if end > begin else 1.0
    def between(first: float, last: float) -> float:
      if not self.cosine: return first + (last - first) * part
      return last + (first - last) / 2 * (1 + math.cos(math.pi * part))
    first, last, before, after = (v[number] for v in values)
    if self.cycle_momentum:
      group, momentum = self._groups[number], between(before, after)
      if "betas" in group.options: group["betas"] = (momentum, *group["betas"][1:])
      else: group["momentum"] = momentum
    return between(first, last)
