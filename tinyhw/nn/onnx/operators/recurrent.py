"""Recurrent networks: RNN, GRU and LSTM, unrolled over the steps of a sequence."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tinyhw.nn.onnx.run import Call
from tinyhw.nn.onnx.table import operator
from tinyhw.tensor.tensor import Tensor

Ints = tuple[int, ...]
Floats = tuple[float, ...]
Strings = tuple[str, ...]
Step = Callable[[Tensor], Tensor]

# name: (its alpha and beta where none are given (None: it has none), function)
_ACTIVATIONS: dict[str, tuple[tuple[float | None, float | None], Callable[[Tensor, Any, Any], Tensor]]] = {
  "relu": ((None, None), lambda x, a, b: x.relu()),
  "tanh": ((None, None), lambda x, a, b: x.tanh()),
  "sigmoid": ((None, None), lambda x, a, b: x.sigmoid()),
  "softsign": ((None, None), lambda x, a, b: x.softsign()),
  "softplus": ((None, None), lambda x, a, b: x.softplus()),
  "affine": ((1.0, 0.0), lambda x, a, b: x * a + b),
  "leakyrelu": ((0.01, None), lambda x, a, b: x.leaky_relu(a)),
  "thresholdedrelu": ((1.0, None), lambda x, a, b: (x > a).where(x, 0)),
  "scaledtanh": ((1.0, 1.0), lambda x, a, b: (x * b).tanh() * a),
  "hardsigmoid": ((0.2, 0.5), lambda x, a, b: x.hardsigmoid(a, b)),
  "elu": ((1.0, None), lambda x, a, b: x.elu(a)),
}


def _activations(op: Call, names: Strings, alphas: Floats | None, betas: Floats | None) -> list[Step]:
  """The activations, which take their numbers from the lists in turn."""
  given_a, given_b = iter(alphas or ()), iter(betas or ())
  def made(name: str) -> Step:
    if name.lower() not in _ACTIVATIONS: raise op.unsupported(f"activation {name}")
    (a, b), function = _ACTIVATIONS[name.lower()]
    if a is not None: a = next(given_a, a)
    if b is not None: b = next(given_b, b)
    return lambda x: function(x, a, b)
  return [made(n) for n in names]


class _Layer:
  """What the three kinds share: the directions, the order of time, lengths of sequences, and the form of the
  results."""

  def __init__(self, op: Call, x: Tensor, w: Tensor, lengths: Tensor | None, direction: str, hidden: int | None,
               layout: int, clip: float | None):
    if direction not in ("forward", "reverse", "bidirectional"): raise op.wrong(f"direction {direction!r}")
    self.op, self.layout, self.clip = op, layout, clip
    self.x = x.transpose(0, 1) if layout else x                                       # (steps, batch, inputs)
    if self.x.ndim != 3 or w.ndim != 3 or w.shape[2] != self.x.shape[2]:
      raise op.wrong(f"an input of shape {x.shape} by weights of shape {w.shape}")
    self.steps, self.batch, _ = self.x.shape
    self.directions = 2 if direction == "bidirectional" else 1
    if w.shape[0] != self.directions: raise op.wrong(f"weights of {w.shape[0]} directions for {direction!r}")
    self.backward = (False, True) if self.directions == 2 else (direction == "reverse",)
    self.lengths = lengths
    self.hidden = hidden or 0

  def limited(self, x: Tensor) -> Tensor:
    """What goes into an activation."""
    return x if self.clip is None else x.clip(-self.clip, self.clip)

  def initial(self, state: Tensor | None, direction: int, hidden: int) -> Tensor:
    """The state before the first step."""
    if state is None: state = Tensor.zeros(self.batch, hidden, device=self.x.device, dtype=self.x.dtype)
    else: state = state[:, direction] if self.layout else state[direction]
    return state.contiguous()

  def times(self, direction: int, inputs: Tensor) -> Iterator[tuple[int, Tensor, Tensor | None]]:
    """The steps in their order: the inputs of each, and where sequences are long enough for it.

    Both are in memory of their own: so the kernels of all steps are the same, and are compiled once.
    """
    inputs = inputs.contiguous()
    places = Tensor.arange(self.steps, device=self.x.device)
    there = None if self.lengths is None else self.lengths > places.unsqueeze(1)
    order = range(self.steps)
    for t in reversed(order) if self.backward[direction] else order:
      yield t, inputs[t].contiguous(), None if there is None else there[t].unsqueeze(1).contiguous()

  def results(self, outputs: list[list[Tensor]], *states: list[Tensor]) -> tuple[Tensor, ...]:
    """(all outputs, last states ...) as (steps, directions, batch, hidden), or with the batch in front."""
    lines = [line[0].stack(*line[1:]) if len(line) > 1 else line[0].unsqueeze(0) for line in outputs]
    whole = lines[0].stack(*lines[1:], dim=1) if len(lines) > 1 else lines[0].unsqueeze(1)
    last = [s[0].stack(*s[1:]) if len(s) > 1 else s[0].unsqueeze(0) for s in states]
    if not self.layout: return whole, *last
    return whole.permute(2, 0, 1, 3), *(s.transpose(0, 1) for s in last)


def _line(steps: int, at: dict[int, Tensor]) -> list[Tensor]: return [at[t] for t in range(steps)]


def _kept(there: Tensor | None, new: Tensor, old: Tensor | None) -> Tensor:
  """A new state where the sequence is long enough; else the old one, or 0 for none."""
  return (new if there is None else there.where(new, 0 if old is None else old)).contiguous()


@operator("RNN", 7, 14, 22)
def rnn(op: Call, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None, initial: Tensor | None, *,
        activation_alpha: Floats | None = None, activation_beta: Floats | None = None,
        activations: Strings = ("Tanh", "Tanh"), clip: float | None = None, direction: str = "forward",
        hidden_size: int | None = None, layout: int = 0) -> tuple[Tensor, ...]:
  layer = _Layer(op, x, w, lengths, direction, hidden_size, layout, clip)
  functions = _activations(op, activations, activation_alpha, activation_beta)
  lines, states = [], []
  for d in range(layer.directions):
    n = r.shape[2]
    inputs = layer.x.matmul(w[d].transpose(0, 1))
    if b is not None: inputs = inputs + b[d, :n] + b[d, n:]
    recurrent = r[d].transpose(0, 1)
    h, at = layer.initial(initial, d, n), {}
    for t, now, there in layer.times(d, inputs):
      new = functions[d](layer.limited(now + h.matmul(recurrent)))
      h, at[t] = _kept(there, new, h), _kept(there, new, None)
    lines.append(_line(layer.steps, at))
    states.append(h)
  return layer.results(lines, states)


@operator("GRU", 7, 14, 22)
def gru(op: Call, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None, initial: Tensor | None, *,
        activation_alpha: Floats | None = None, activation_beta: Floats | None = None,
        activations: Strings | None = None, clip: float | None = None, direction: str = "forward",
        hidden_size: int | None = None, layout: int = 0, linear_before_reset: int = 0) -> tuple[Tensor, ...]:
  """Gates in the order of update, reset, hidden."""
  layer = _Layer(op, x, w, lengths, direction, hidden_size, layout, clip)
  functions = _activations(op, activations or ("Sigmoid", "Tanh") * layer.directions, activation_alpha, activation_beta)
  lines, states = [], []
  for d in range(layer.directions):
    f, g = functions[2 * d:2 * d + 2]
    n = r.shape[2]
    inputs = layer.x.matmul(w[d].transpose(0, 1))
    if b is not None: inputs = inputs + b[d, :3 * n]
    rest = None if b is None else b[d, 3 * n:]
    gates, hidden = r[d, :2 * n].transpose(0, 1), r[d, 2 * n:].transpose(0, 1)
    h, at = layer.initial(initial, d, n), {}
    for t, now, there in layer.times(d, inputs):
      both = now[:, :2 * n] + h.matmul(gates)
      if rest is not None: both = both + rest[:2 * n]
      both = f(layer.limited(both)).contiguous()
      update, reset = both[:, :n], both[:, n:]
      product = h.matmul(hidden) if linear_before_reset else (reset * h).matmul(hidden)
      if rest is not None: product = product + rest[2 * n:]
      new = g(layer.limited(now[:, 2 * n:] + (reset * product if linear_before_reset else product)))
      new = (1 - update) * new + update * h
      h, at[t] = _kept(there, new, h), _kept(there, new, None)
    lines.append(_line(layer.steps, at))
    states.append(h)
  return layer.results(lines, states)


@operator("LSTM", 7, 14, 22)
def lstm(op: Call, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None, initial_h: Tensor | None,
         initial_c: Tensor | None, peepholes: Tensor | None, *, activation_alpha: Floats | None = None,
         activation_beta: Floats | None = None, activations: Strings | None = None, clip: float | None = None,
         direction: str = "forward", hidden_size: int | None = None, input_forget: int = 0,
         layout: int = 0) -> tuple[Tensor, ...]:
  """Gates in the order of input, output, forget, cell; peepholes of input, output, forget."""
  layer = _Layer(op, x, w, lengths, direction, hidden_size, layout, clip)
  names = activations or ("Sigmoid", "Tanh", "Tanh") * layer.directions
  functions = _activations(op, names, activation_alpha, activation_beta)
  lines, states, cells = [], [], []
  for d in range(layer.directions):
    f, g, last = functions[3 * d:3 * d + 3]
    n = r.shape[2]
    inputs = layer.x.matmul(w[d].transpose(0, 1))
    if b is not None: inputs = inputs + b[d, :4 * n] + b[d, 4 * n:]
    recurrent = r[d].transpose(0, 1)
    of_i, of_o, of_f = (0, 0, 0) if peepholes is None else (peepholes[d, i * n:(i + 1) * n] for i in range(3))
    h, c, at = layer.initial(initial_h, d, n), layer.initial(initial_c, d, n), {}
    for t, now, there in layer.times(d, inputs):
      parts = (now + h.matmul(recurrent)).contiguous()
      i, o, forget, cell = (parts[:, k * n:(k + 1) * n] for k in range(4))
      if peepholes is not None: i, forget = i + of_i * c, forget + of_f * c
      i = f(layer.limited(i))
      keep = 1 - i if input_forget else f(layer.limited(forget))
      fresh = keep * c + i * g(layer.limited(cell))
      if peepholes is not None: o = o + of_o * fresh
      new = f(layer.limited(o)) * last(fresh)
      h, c, at[t] = _kept(there, new, h), _kept(there, fresh, c), _kept(there, new, None)
    lines.append(_line(layer.steps, at))
    states.append(h)
    cells.append(c)
  return layer.results(lines, states, cells)
