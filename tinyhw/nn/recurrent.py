"""Recurrent layers over whole sequences: names, shapes and values are PyTorch's. The steps are unrolled."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.nn.layers import gru_step, lstm_step, nonlinearity_of, rnn_step, uniform
from tinyhw.nn.module import Layer
from tinyhw.tensor.tensor import Tensor

States = tuple[Tensor, ...]
_BLOCK: Final = 64          # steps whose gradients are one table


def _rows(steps: Tensor) -> Callable[[int], Tensor]:
  """What gives the part of a step. Its place is data, so that all steps are the same kernels; gradients go back to
  blocks of steps, not from each to all."""
  if isinstance(steps.device, tuple): return lambda t: steps[t]
  blocks = [steps] if steps.shape[0] <= _BLOCK else [b.contiguous() for b in steps.split(_BLOCK)]
  def row(t: int) -> Tensor:
    at = Tensor([t % _BLOCK], device=steps.device, dtype="int32")
    return blocks[t // _BLOCK][at].reshape(steps.shape[1:])
  return row


class _Recurrent(Layer):
  """What LSTM, GRU and RNN share: `num_layers` of them one above the other, forwards and (`bidirectional`) backwards.

  Parameters are named as in PyTorch: `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`, then `_l0_reverse`,
  then `_l1` ... Of the sequence all that comes from outside is one product, before the steps.
  """
  gates: int
  carries: int          # how many tensors go from step to step

  def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
               batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
               device: str | None = None):
    if min(input_size, hidden_size, num_layers) < 1:
      raise InvalidArgument(f"{num_layers} layers of {input_size} to {hidden_size} numbers")
    if not 0 <= dropout <= 1: raise InvalidArgument(f"a probability of {dropout}")
    if not 0 <= proj_size < hidden_size: raise InvalidArgument(f"a projection of {hidden_size} numbers to {proj_size}")
    self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
    self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
    self.bidirectional, self.proj_size = bidirectional, proj_size
    given, rows = proj_size or hidden_size, self.gates * hidden_size
    for number in range(num_layers):
      below = given * (1 + bidirectional) if number else input_size
      for suffix in self._suffixes(number):
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, below), "weight_hh": (rows, given)}
        if bias: shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if proj_size: shapes["weight_hr"] = (proj_size, hidden_size)
        for name, shape in shapes.items(): setattr(self, f"{name}{suffix}", uniform(shape, hidden_size, device))

  def _suffixes(self, number: int) -> list[str]:
    return [f"_l{number}", f"_l{number}_reverse"][:1 + self.bidirectional]

  def extra_repr(self) -> str:
    """What it is made of."""
    usual = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False,
             "proj_size": 0}
    more = [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
    return ", ".join([f"{self.input_size}, {self.hidden_size}", *more])

  def _step(self, ours: Tensor, carried: States, suffix: str) -> States:
    """One step: from what the sequence brings to the gates, and from the step before, to the next."""
    raise NotImplementedError

  def _along(self, x: Tensor, carried: States, suffix: str) -> tuple[list[Tensor], States]:
    """(what each step gives, what the last one carries) along (steps, batch, size)."""
    ours = x.linear(getattr(self, f"weight_ih{suffix}").transpose(), getattr(self, f"bias_ih{suffix}", None))
    places = range(x.shape[0])
    seen: dict[int, Tensor] = {}
    rows = _rows(ours)
    for t in reversed(places) if suffix.endswith("_reverse") else places:
      # In memory: else each step would compute what is carried again from the first one on.
      carried = tuple(s.contiguous() for s in self._step(rows(t), carried, suffix))
      seen[t] = carried[0]
    return [seen[t] for t in places], carried

  def _first(self, x: Tensor, given: Sequence[Tensor] | None, alone: bool) -> list[Tensor]:
    """What is carried into the first steps, each (layers and directions, batch, size)."""
    count = self.num_layers * (1 + self.bidirectional)
    sizes = [self.proj_size or self.hidden_size, self.hidden_size][:self.carries]
    shapes = [(count, x.shape[1], size) for size in sizes]
    if given is None: return [Tensor.zeros(s, device=x.device, dtype=x.dtype) for s in shapes]
    if len(given) != self.carries:
      raise InvalidArgument(f"{len(given)} tensors of state", hint=f"it has {self.carries}")
    found = [s.unsqueeze(1) if alone and s.ndim == 2 else s for s in given]
    for s, shape in zip(found, shapes):
      if s.shape != shape: raise InvalidShape(f"a state of shape {s.shape}, which is to be {shape}")
    return found

  def _run(self, x: Tensor, given: Sequence[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
    if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
      raise InvalidShape(f"{type(self).__name__} of shape {x.shape}",
                         hint=f"give (steps, batch, {self.input_size}), batch first if so made, or no batch")
    alone = x.ndim == 2
    if alone: x = x.unsqueeze(1)
    elif self.batch_first: x = x.transpose(0, 1)
    if not x.shape[0]: raise InvalidShape(f"{type(self).__name__} over no steps")
    first, ends = self._first(x, given, alone), list[States]()
    for number in range(self.num_layers):
      if number and self.dropout: x = x.dropout(self.dropout)
      ways = list[Tensor]()
      for suffix in self._suffixes(number):
        steps, last = self._along(x, tuple(s[len(ends)] for s in first), suffix)
        ways.append(steps[0].stack(*steps[1:]))
        ends.append(last)
      x = ways[0].cat(*ways[1:], dim=-1) if len(ways) > 1 else ways[0]
    states = [end[0].stack(*end[1:]) for end in zip(*ends)]
    if alone: return x.squeeze(1), [s.squeeze(1) for s in states]
    return (x.transpose(0, 1) if self.batch_first else x), states


class LSTM(_Recurrent):
  """An LSTM along (steps, batch, input): (steps, batch, hidden), and the states (h, c) after the last step, each
  (layers and directions, batch, hidden). With `proj_size` h has so many numbers."""
  gates, carries = 4, 2

  def _step(self, ours: Tensor, carried: States, suffix: str) -> States:
    h, c = carried
    h, c = lstm_step(ours + h.linear(getattr(self, f"weight_hh{suffix}").transpose(),
                                     getattr(self, f"bias_hh{suffix}", None)), c)
    return (h.linear(getattr(self, f"weight_hr{suffix}").transpose()) if self.proj_size else h), c

  def forward(self, x: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    y, (h, c) = self._run(x, hx)
    return y, (h, c)


class GRU(_Recurrent):
  """A GRU along (steps, batch, input): (steps, batch, hidden), and the state after the last step, (layers and
  directions, batch, hidden)."""
  gates, carries = 3, 1

  def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
               batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
               device: str | None = None):
    super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device)

  def _step(self, ours: Tensor, carried: States, suffix: str) -> States:
    h, = carried
    return gru_step(ours, h.linear(getattr(self, f"weight_hh{suffix}").transpose(),
                                   getattr(self, f"bias_hh{suffix}", None)), h),

  def forward(self, x: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
    y, (h,) = self._run(x, None if hx is None else (hx,))
    return y, h


class RNN(_Recurrent):
  """Elman's network along (steps, batch, input), `nonlinearity` "tanh" or "relu" of sums of the input and the state
  before: (steps, batch, hidden), and the state after the last step, (layers and directions, batch, hidden)."""
  gates, carries = 1, 1

  def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
               bias: bool = True, batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
               device: str | None = None):
    self.nonlinearity = nonlinearity_of(nonlinearity)
    super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device)

  def _step(self, ours: Tensor, carried: States, suffix: str) -> States:
    h, = carried
    return rnn_step(ours + h.linear(getattr(self, f"weight_hh{suffix}").transpose(),
                                    getattr(self, f"bias_hh{suffix}", None)), self.nonlinearity),

  def forward(self, x: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
    y, (h,) = self._run(x, None if hx is None else (hx,))
    return y, h
