"""Learning rates that change from step to step, as PyTorch's `torch.optim.lr_scheduler` has them.

A scheduler sets the rates of its optimizer's groups when it is made and at each `step()`; recorded steps see them.
Rates are computed in Python's floats, each from the one before where PyTorch does so: then what was set in between
counts.
"""
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument

if TYPE_CHECKING:
  from tinyhw.nn.optim import Group, Optimizer, OptimizerGroup


class LRScheduler(ABC):
  """Base of the schedulers: `last_epoch` counts the steps, `base_lrs` are the rates at the start, a rate for each
  group."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup, base_lrs: list[float] | None = None):
    self.optimizer, self.last_epoch = optimizer, 0
    for g in self._groups:
      if g.first_rate is None: g.first_rate = g["lr"]
    self.base_lrs = [g.first_rate for g in self._groups if g.first_rate is not None] if base_lrs is None else base_lrs
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

  def begin(self) -> None:
    """Be as it was made, at the rates that the groups have."""
    self.last_epoch = 0
    self._set()

  def restart(self) -> None:
    """Be as it was made, at the rates of the start."""
    for g, rate in zip(self._groups, self.base_lrs): g.lr = rate
    self.begin()

  def _each(self, what: str, value: float | Sequence[float]) -> list[float]:
    """A number for each group."""
    found = [value] * len(self._groups) if isinstance(value, (int, float)) else list(value)
    if len(found) != len(self._groups): raise InvalidArgument(f"{what} {value} for {len(self._groups)} groups")
    return found

  def _set_momentum(self, number: int, momentum: float) -> None:
    """The momentum of a group, or its first beta."""
    group = self._groups[number]
    if "betas" in group.options: group["betas"] = (momentum, *group["betas"][1:])
    else: group["momentum"] = momentum

  @abstractmethod
  def _rate(self, number: int, now: float) -> float:
    """The rate of group `number` at `last_epoch`, which has the rate `now`."""

  def state_dict(self) -> dict[str, Any]:
    """What it knows, but for the optimizer and functions."""
    found = {k: v for k, v in vars(self).items() if k != "optimizer" and not callable(v) and not _functions(v)}
    if "_schedulers" in found: found["_schedulers"] = [s.state_dict() for s in found["_schedulers"]]
    return found

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Go on where another one was. The rates themselves are the optimizer's, and are set to what they were there."""
    if unknown := state.keys() - vars(self).keys():
      raise InvalidArgument(f"{type(self).__name__} has no {sorted(unknown)[0]!r}")
    if len(state.get("_last_lr", self._last_lr)) != len(self._last_lr):
      raise InvalidArgument(f"rates of {len(state['_last_lr'])} groups for {len(self._last_lr)}")
    if (parts := state.get("_schedulers")) is not None:
      for scheduler, part in zip(vars(self)["_schedulers"], parts, strict=True): scheduler.load_state_dict(part)
    vars(self).update({k: v for k, v in state.items() if k != "_schedulers"})
    for g, rate in zip(self._groups, self._last_lr): g.lr = rate


def _functions(value: Any) -> bool:
  return isinstance(value, list) and any(map(callable, value))


def _check_momentum(group: Group) -> None:
  if not {"momentum", "betas"} & group.options.keys():
    raise InvalidArgument("the optimizer has neither momentum nor betas", hint="cycle_momentum=False")


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


class ConstantLR(LRScheduler):
  """The rate times `factor` for `total_iters` steps."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup, factor: float = 1 / 3, total_iters: int = 5):
    if not 0 <= factor <= 1: raise InvalidArgument(f"factor {factor} is not in 0..1")
    self.factor, self.total_iters = factor, total_iters
    super().__init__(optimizer)

  def _rate(self, number: int, now: float) -> float:
    if not self.last_epoch: return now * self.factor
    return now / self.factor if self.last_epoch == self.total_iters else now


class LinearLR(LRScheduler):
  """The rate times a factor that goes from `start_factor` to `end_factor` in `total_iters` steps."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup, start_factor: float = 1 / 3, end_factor: float = 1.0,
               total_iters: int = 5):
    if not 0 < start_factor <= 1: raise InvalidArgument(f"start_factor {start_factor} is not in 0..1, without 0")
    if not 0 <= end_factor <= 1: raise InvalidArgument(f"end_factor {end_factor} is not in 0..1")
    self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
    super().__init__(optimizer)

  def _rate(self, number: int, now: float) -> float:
    if not self.last_epoch: return now * self.start_factor
    if self.last_epoch > self.total_iters: return now
    way = self.end_factor - self.start_factor
    return now * (1 + way / (self.total_iters * self.start_factor + (self.last_epoch - 1) * way))


class PolynomialLR(LRScheduler):
  """The rate down to 0 in `total_iters` steps, by a power of what is left of them."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup, total_iters: int = 5, power: float = 1.0):
    self.total_iters, self.power = total_iters, power
    super().__init__(optimizer)

  def _rate(self, number: int, now: float) -> float:
    if not 0 < self.last_epoch <= self.total_iters: return now
    left = self.total_iters - self.last_epoch
    return now * float((left / (left + 1)) ** self.power)


class CosineAnnealingWarmRestarts(LRScheduler):
  """The rate along half a cosine down to `eta_min` in `T_0` steps, then from the start again, each time in `T_mult`
  times as many. `step(epoch)` goes to a place, also between steps."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup, T_0: int, T_mult: int = 1, eta_min: float = 0.0):
    self.T_0, self.T_mult, self.eta_min = _count("T_0", T_0), _count("T_mult", T_mult), eta_min
    self.T_i, self.T_cur = T_0, 0.0
    super().__init__(optimizer)

  def step(self, epoch: float | None = None) -> None:
    """Set the rates of the next step, or of a place."""
    if epoch is None:
      epoch, self.T_cur = self.last_epoch + 1, self.T_cur + 1
      if self.T_cur >= self.T_i: self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
    else:
      if epoch < 0: raise InvalidArgument(f"step({epoch})", hint="an epoch is not negative")
      self.T_cur, self.T_i = epoch, self.T_0
      while self.T_cur >= self.T_i: self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
    self.last_epoch = math.floor(epoch)
    self._set()

  def _rate(self, number: int, now: float) -> float:
    height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
    return self.eta_min + (self.base_lrs[number] - self.eta_min) * height


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


class MultiplicativeLR(LambdaLR):
  """The rate times what a function gives for the number of steps, each time; or a function for each group."""

  def restart(self) -> None:
    """Go on from the rates as they are, by what the functions give for 0: there is no rate to begin with."""
    self.last_epoch = 0
    self._last_lr = [g["lr"] * function(0) for g, function in zip(self._groups, self.lr_lambdas)]
    for g, rate in zip(self._groups, self._last_lr): g.lr = rate

  def _rate(self, number: int, now: float) -> float:
    return now * self.lr_lambdas[number](self.last_epoch) if self.last_epoch else now


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
      if cycle_momentum: _check_momentum(g)
    super().__init__(optimizer)

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
    if self.cycle_momentum: self._set_momentum(number, between(before, after))
    return max(between(first, last), 0.0)      # a step after the last one a line goes on


class CyclicLR(LRScheduler):
  """The rate up from `base_lr` to `max_lr` in `step_size_up` steps, down in `step_size_down`, and so on; each cycle
  half as high as the last one by `mode` "triangular2", or by `gamma` to the number of steps by "exp_range", or by
  `scale_fn` of the number of cycles (or steps: `scale_mode` "iterations"). With `cycle_momentum` the momentum (or the
  first beta) goes the other way."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup, base_lr: float | Sequence[float],
               max_lr: float | Sequence[float], step_size_up: int = 2000, step_size_down: int | None = None,
               mode: str = "triangular", gamma: float = 1.0, scale_fn: Callable[[int], float] | None = None,
               scale_mode: str = "cycle", cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.8,
               max_momentum: float | Sequence[float] = 0.9):
    self.optimizer = optimizer
    if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
      raise InvalidArgument(f"mode {mode!r}", hint='"triangular", "triangular2" or "exp_range"')
    if scale_mode not in ("cycle", "iterations"):
      raise InvalidArgument(f"scale_mode {scale_mode!r}", hint='"cycle" or "iterations"')
    self.max_lrs, self.mode, self.gamma = self._each("max_lr", max_lr), mode, gamma
    self.step_size_up, self.step_size_down = step_size_up, step_size_up if step_size_down is None else step_size_down
    self.scale_fn, self.scale_mode, self.cycle_momentum = scale_fn, scale_mode, cycle_momentum
    self.base_momentums = self._each("base_momentum", base_momentum)
    self.max_momentums = self._each("max_momentum", max_momentum)
    rates = self._each("base_lr", base_lr)
    for g, rate in zip(self._groups, rates):
      g.lr = rate
      if cycle_momentum: _check_momentum(g)
    super().__init__(optimizer, rates)

  def _scale(self, cycle: int) -> float:
    if self.scale_fn is not None: return self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
    if self.mode == "triangular": return 1.0
    return 1 / 2 ** (cycle - 1) if self.mode == "triangular2" else float(self.gamma ** self.last_epoch)

  def _rate(self, number: int, now: float) -> float:
    whole = self.step_size_up + self.step_size_down
    cycle = math.floor(1 + self.last_epoch / whole)
    place, top = 1 + self.last_epoch / whole - cycle, self.step_size_up / whole
    height = (place / top if place <= top else (place - 1) / (top - 1)) * self._scale(cycle)
    if self.cycle_momentum:
      most, least = self.max_momentums[number], self.base_momentums[number]
      self._set_momentum(number, most - (most - least) * height)
    return self.base_lrs[number] + (self.max_lrs[number] - self.base_lrs[number]) * height


class ReduceLROnPlateau(LRScheduler):
  """The rate times `factor`, down to `min_lr`, when a measure that `step` is told has not got better (by `threshold`, a
  part of it, or as it is by `threshold_mode` "abs") for more than `patience` steps; none of `cooldown` steps after it
  counts."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup, mode: str = "min", factor: float = 0.1, patience: int = 10,
               threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
               min_lr: float | Sequence[float] = 0.0, eps: float = 1e-8):
    if factor >= 1: raise InvalidArgument(f"factor {factor}", hint="it is less than 1")
    if mode not in ("min", "max"): raise InvalidArgument(f"mode {mode!r}", hint='"min" or "max"')
    if threshold_mode not in ("rel", "abs"):
      raise InvalidArgument(f"threshold_mode {threshold_mode!r}", hint='"rel" or "abs"')
    self.optimizer = optimizer
    self.mode, self.factor, self.patience, self.cooldown, self.eps = mode, factor, patience, cooldown, eps
    self.threshold, self.threshold_mode = threshold, threshold_mode
    self.min_lrs = self._each("min_lr", min_lr)
    self.best, self.num_bad_epochs, self.cooldown_counter = self._worst, 0, 0
    super().__init__(optimizer)

  @property
  def _worst(self) -> float: return math.inf if self.mode == "min" else -math.inf

  def is_better(self, value: float, best: float) -> bool:
    """Whether a measure is better than another one, by the threshold."""
    sign = -1 if self.mode == "min" else 1
    goal = best * (1 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
    return sign * value > sign * goal

  def step(self, metrics: Any = None) -> None:
    """Say how good the network is now: a number, or a tensor of one element."""
    if metrics is None: raise InvalidArgument("ReduceLROnPlateau.step()", hint="say what it looks at: step(loss)")
    value = float(metrics)
    self.last_epoch += 1
    if self.is_better(value, self.best): self.best, self.num_bad_epochs = value, 0
    else: self.num_bad_epochs += 1
    if self.cooldown_counter > 0: self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
    if self.num_bad_epochs > self.patience:
      self._set()
      self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

  def _rate(self, number: int, now: float) -> float:
    if not self.last_epoch: return now
    new = max(now * self.factor, self.min_lrs[number])
    return new if now - new > self.eps else now


class ChainedScheduler(LRScheduler):
  """Several at once, each of which changes what the one before has set."""

  def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | OptimizerGroup | None = None):
    self._schedulers = _of_one(schedulers, optimizer)
    super().__init__(schedulers[0].optimizer)

  def step(self) -> None:
    """Set the rates of the next step, by each."""
    self.last_epoch += 1
    for scheduler in self._schedulers: scheduler.step()
    self._set()

  def _rate(self, number: int, now: float) -> float: return now


class SequentialLR(LRScheduler):
  """One after the other: at each of the `milestones` the next one begins."""

  def __init__(self, optimizer: Optimizer | OptimizerGroup, schedulers: Sequence[LRScheduler],
               milestones: Sequence[int]):
    self._schedulers, self._milestones = _of_one(schedulers, optimizer), list(milestones)
    if len(self._milestones) != len(schedulers) - 1:
      raise InvalidArgument(f"{len(self._milestones)} milestones for {len(schedulers)} schedulers",
                            hint="one between each two")
    if any(isinstance(s, ReduceLROnPlateau) for s in schedulers):
      raise InvalidArgument("ReduceLROnPlateau among schedulers in a row", hint="it wants to be told a measure")
    self.optimizer = optimizer
    for g in self._groups:                    # the others have set rates when they were made
      if g.first_rate is not None: g.lr = g.first_rate
    self._schedulers[0].begin()
    super().__init__(optimizer)

  def step(self) -> None:
    """Set the rates of the next step."""
    self.last_epoch += 1
    now = bisect_right(self._milestones, self.last_epoch)
    if now and self._milestones[now - 1] == self.last_epoch: self._schedulers[now].restart()
    else: self._schedulers[now].step()
    self._set()

  def _rate(self, number: int, now: float) -> float: return now


def _of_one(schedulers: Sequence[LRScheduler], optimizer: Optimizer | OptimizerGroup | None) -> list[LRScheduler]:
  if not schedulers: raise InvalidArgument("no schedulers")
  found = schedulers[0].optimizer if optimizer is None else optimizer
  if any(s.optimizer is not found for s in schedulers): raise InvalidArgument("schedulers of several optimizers")
  return list(schedulers)
