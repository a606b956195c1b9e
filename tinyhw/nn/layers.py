"""Layers: parameters and a call. Names, shapes, defaults and initial values are PyTorch's."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.function.spelling import made_by_any_spelling
from tinyhw.function.window import check_padding
from tinyhw.ir.dtype import dtypes
from tinyhw.nn.module import Layer, Parameter
from tinyhw.nn.statistics import Statistics
from tinyhw.tensor.tensor import Tensor

Sizes = int | Sequence[int]
PADDINGS = ("zeros", "reflect", "replicate", "circular")


def uniform(shape: Sequence[int], fan_in: int, device: str | None) -> Parameter:
  """Uniform in +-1/sqrt(fan_in)."""
  bound = 1 / math.sqrt(max(fan_in, 1))
  return Parameter(Tensor.uniform(tuple(shape), low=-bound, high=bound, device=device))


def _many(sizes: Sizes, axes: int, what: str) -> tuple[int, ...]:
  """A size for each axis."""
  found = (sizes,) * axes if isinstance(sizes, int) else tuple(sizes)
  if len(found) != axes: raise InvalidArgument(f"{what} {sizes} for {axes} axes")
  return found


class Linear(Layer):
  """`x @ weight.T + bias`: `weight` is (out, in) as in PyTorch, both are uniform in +-1/sqrt(in)."""

  def __init__(self, in_features: int, out_features: int, bias: bool = True, device: str | None = None):
    self.in_features, self.out_features = in_features, out_features
    self.weight = uniform((out_features, in_features), in_features, device)
    self.bias = uniform((out_features,), in_features, device) if bias else None

  def extra_repr(self) -> str:
    """What it is made of."""
    return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"

  def forward(self, x: Tensor) -> Tensor:
    return x.linear(self.weight.transpose(), self.bias)


class Bilinear(Layer):
  """`sum x1[i] * weight[k, i, j] * x2[j] + bias[k]`: `weight` is (out, in1, in2)."""

  def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
               device: str | None = None):
    self.weight = uniform((out_features, in1_features, in2_features), in1_features, device)
    self.bias = uniform((out_features,), in1_features, device) if bias else None

  def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
    y = (x1.unsqueeze(-2) @ self.weight.permute(1, 0, 2).reshape(x1.shape[-1], -1)).reshape(
      *x1.shape[:-1], self.weight.shape[0], x2.shape[-1])
    y = (y * x2.unsqueeze(-2)).sum(-1)
    return y if self.bias is None else y + self.bias


def _row(number: int | None, rows: int) -> int | None:
  """A row of a table by its number, which may count from the end."""
  if number is None: return None
  if not -rows <= number < rows: raise InvalidArgument(f"padding_idx {number} of a table of {rows} rows")
  return number % rows


@made_by_any_spelling
class Embedding(Layer):
  """A table of `num_embeddings` vectors of size `embedding_dim`; called with indices it gives their vectors.

  The row `padding_idx` is zeros and does not learn. With `max_norm` rows that are used, and longer than that by the
  norm `norm_type`, are shortened in the table itself.
  """

  def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
               max_norm: float | None = None, norm_type: float = 2.0, *, device: str | None = None):
    self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
    self.padding_idx, self.max_norm, self.norm_type = _row(padding_idx, num_embeddings), max_norm, norm_type
    table = Tensor.glorot_uniform(num_embeddings, embedding_dim, device=device)
    if self.padding_idx is not None:
      still = Tensor.arange(num_embeddings, device=device).eq(self.padding_idx).unsqueeze(1)
      table = still.where(0.0, table)
    self.weight = Parameter(table)

  @classmethod
  def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None,
                      max_norm: float | None = None, norm_type: float = 2.0) -> Embedding:
    """A table that is there, a matrix, which learns where it is not frozen."""
    if embeddings.ndim != 2:
      raise InvalidArgument(f"a table of shape {embeddings.shape}", hint="it is a matrix: (rows, size)")
    made = cls.__new__(cls)
    made.num_embeddings, made.embedding_dim = embeddings.shape
    made.padding_idx, made.max_norm, made.norm_type = _row(padding_idx, embeddings.shape[0]), max_norm, norm_type
    made.weight = Parameter(embeddings, requires_grad=not freeze)
    return made

  def extra_repr(self) -> str:
    """What it is made of."""
    more = [f"{name}={value}" for name, value in (("padding_idx", self.padding_idx), ("max_norm", self.max_norm))
            if value is not None]
    return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *more])

  def forward(self, index: Tensor) -> Tensor:
    table: Tensor = self.weight
    if self.max_norm is not None: table._shorten(index.cast(dtypes.int32), self.max_norm, self.norm_type)
    return index.embedding(table, self.padding_idx)


@made_by_any_spelling
class EmbeddingBag(Layer):
  """A table as `Embedding` has it; called with bags of indices it gives the sum, mean or greatest of their vectors."""

  def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
               scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
               include_last_offset: bool = False, padding_idx: int | None = None, device: str | None = None):
    self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
    self.weight = Parameter(Tensor.glorot_uniform(num_embeddings, embedding_dim, device=device))
    self.options: dict[str, Any] = {
      "max_norm": max_norm, "norm_type": norm_type, "scale_grad_by_freq": scale_grad_by_freq, "mode": mode,
      "sparse": sparse, "include_last_offset": include_last_offset, "padding_idx": padding_idx}

  def extra_repr(self) -> str:
    """What it is made of."""
    return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.options['mode']!r}"

  def forward(self, index: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
    return index.embedding_bag(self.weight, offsets, per_sample_weights=per_sample_weights, **self.options)


class Dropout(Layer):
  """While training: zeros with probability p, the rest scaled to keep the mean."""

  def __init__(self, p: float = 0.5):
    if not 0 <= p <= 1: raise InvalidArgument(f"a probability of {p}")
    self.p = p

  def extra_repr(self) -> str:
    """What it is made of."""
    return f"p={self.p}"

  def forward(self, x: Tensor) -> Tensor: return x.dropout(self.p)


class PReLU(Layer):
  """x, or `weight * x` below 0: one weight, or one for each channel (axis 1)."""

  def __init__(self, num_parameters: int = 1, init: float = 0.25, device: str | None = None):
    self.num_parameters = num_parameters
    self.weight = Parameter(Tensor.full((num_parameters,), float(init), device=device))

  def extra_repr(self) -> str:
    """What it is made of."""
    return f"num_parameters={self.num_parameters}"

  def forward(self, x: Tensor) -> Tensor: return x.prelu(self.weight)


class _Conv(Layer):
  """What convolutions share; `axes` are those that the windows move over."""

  axes: int

  def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes, padding: Any,
               dilation: Sizes, groups: int, bias: bool, padding_mode: str, device: str | None, transposed: bool):
    if padding_mode not in (only := ("zeros",) if transposed else PADDINGS):
      raise InvalidArgument(f"{type(self).__name__}: padding_mode {padding_mode!r} is none of {', '.join(only)}")
    if groups < 1 or in_channels % groups or out_channels % groups:
      raise InvalidArgument(f"{in_channels} channels to {out_channels} in {groups} groups",
                            hint="both numbers of channels are multiples of the groups")
    if self.axes == 2 and not isinstance(kernel_size, int): self.axes = len(kernel_size)    # as many as it has sizes
    self.kernel_size = _many(kernel_size, self.axes, "a kernel of")
    self.in_channels, self.out_channels = in_channels, out_channels
    self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
    self.padding_mode = padding_mode
    channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
    fan_in = channels[1] * math.prod(self.kernel_size)
    self.weight = uniform((*channels, *self.kernel_size), fan_in, device)
    self.bias = uniform((out_channels,), fan_in, device) if bias else None

  def extra_repr(self) -> str:
    """What it is made of."""
    more = [f"{name}={value}" for name, value, usual in (
      ("padding", self.padding, 0), ("dilation", self.dilation, 1), ("groups", self.groups, 1),
      ("padding_mode", self.padding_mode, "zeros")) if value != usual]
    return ", ".join([f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}",
                      *more, *([] if self.bias is not None else ["bias=False"])])

  def _check(self, x: Tensor) -> None:
    if x.ndim != self.axes + 2:
      raise InvalidArgument(f"{type(self).__name__} of shape {x.shape}",
                            hint=f"give (batch, channels, {', '.join(['size'] * self.axes)})")


class _Forward(_Conv):
  def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
               padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, bias: bool = True,
               padding_mode: str = "zeros", device: str | None = None):
    if isinstance(padding, str): check_padding(type(self).__name__, padding, _many(stride, self.axes, "a stride of"))
    super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
                     device, False)

  def _around(self) -> list[int]:
    """What is put before and behind each axis, the last axis first."""
    if self.padding == "valid": return [0, 0] * self.axes
    if self.padding == "same":
      wide = [d * (k - 1) for d, k in zip(_many(self.dilation, self.axes, "a dilation of"), self.kernel_size)]
    else: wide = [2 * p for p in _many(self.padding, self.axes, "a padding of")]
    return [part for w in reversed(wide) for part in (w // 2, w - w // 2)]

  def forward(self, x: Tensor) -> Tensor:
    self._check(x)
    padding = self.padding
    if self.padding_mode != "zeros": x, padding = x.pad(self._around(), mode=self.padding_mode), 0
    return x.conv2d(self.weight, self.bias, groups=self.groups, stride=self.stride, dilation=self.dilation,
                    padding=padding)


class _Transposed(_Conv):
  def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0,
               output_padding: Sizes = 0, groups: int = 1, bias: bool = True, dilation: Sizes = 1,
               padding_mode: str = "zeros", device: str | None = None):
    super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
                     device, True)
    self.output_padding = output_padding

  def forward(self, x: Tensor) -> Tensor:
    self._check(x)
    return x.conv_transpose2d(self.weight, self.bias, groups=self.groups, stride=self.stride, dilation=self.dilation,
                              padding=self.padding, output_padding=self.output_padding)


class Conv1d(_Forward):
  """Convolution of (batch, in, length); `weight` is (out, in/groups, kernel)."""
  axes = 1


class Conv2d(_Forward):
  """Convolution of (batch, in, height, width); `weight` is (out, in/groups, kernel height, kernel width). A kernel of
  one or three sizes makes it a Conv1d or Conv3d, as tinygrad has it."""
  axes = 2


class Conv3d(_Forward):
  """Convolution of (batch, in, depth, height, width)."""
  axes = 3


class ConvTranspose1d(_Transposed):
  """The gradient of a Conv1d as a layer; `weight` is (in, out/groups, kernel)."""
  axes = 1


class ConvTranspose2d(_Transposed):
  """The gradient of a Conv2d as a layer; `weight` is (in, out/groups, kernel height, kernel width)."""
  axes = 2


class ConvTranspose3d(_Transposed):
  """The gradient of a Conv3d as a layer."""
  axes = 3


@made_by_any_spelling
class LayerNorm(Layer):
  """Mean 0 and variance 1 over the last axes (of sizes `normalized_shape`), then scaled by `weight` and moved by
  `bias`."""

  def __init__(self, normalized_shape: Sizes, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
               device: str | None = None):
    self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    self.eps = eps
    shape = self.normalized_shape
    self.weight = Parameter(Tensor.ones(shape, device=device)) if elementwise_affine else None
    self.bias = Parameter(Tensor.zeros(shape, device=device)) if elementwise_affine and bias else None

  def forward(self, x: Tensor) -> Tensor:
    if x.shape[-len(self.normalized_shape):] != self.normalized_shape:
      raise InvalidArgument(f"layer norm over {self.normalized_shape} of a tensor of shape {x.shape}")
    y = x.layernorm(tuple(range(-len(self.normalized_shape), 0)), self.eps)
    if self.weight is not None: y = y * self.weight
    return y if self.bias is None else y + self.bias


class LayerNorm2d(LayerNorm):
  """LayerNorm over the channels of (batch, channels, height, width)."""

  def forward(self, x: Tensor) -> Tensor: return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


@made_by_any_spelling
class RMSNorm(Layer):
  """`x / sqrt(mean(x**2) + eps)` over the last axis of size `dim`, in float32 at least, times `weight`."""

  def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True, device: str | None = None):
    self.dim, self.eps = dim, eps
    self.weight = Parameter(Tensor.ones(dim, device=device)) if elementwise_affine else None

  def forward(self, x: Tensor) -> Tensor:
    if not x.ndim or x.shape[-1] != self.dim:
      raise InvalidArgument(f"RMS norm over {self.dim} of a tensor of shape {x.shape}")
    wide = x if x.dtype is dtypes.float64 else x.float()
    y = (wide * (wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()).cast(x.dtype)
    return y if self.weight is None else y * self.weight


def _channels(x: Tensor, count: int, layer: object) -> None:
  if x.ndim < 2 or x.shape[1] != count:
    raise InvalidArgument(f"{type(layer).__name__} of {count} channels of a tensor of shape {x.shape}",
                          hint="the channels are axis 1")


def _scaled(y: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
  """`y * weight + bias` along axis 1."""
  shape = (1, -1, *[1] * (y.ndim - 2))
  if weight is not None: y = y * weight.reshape(shape)
  return y if bias is None else y + bias.reshape(shape)


@made_by_any_spelling
class GroupNorm(Layer):
  """Mean 0 and variance 1 over each group of channels (axis 1) and all axes after it."""

  def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
               device: str | None = None):
    if num_groups < 1 or num_channels % num_groups:
      raise InvalidArgument(f"{num_channels} channels in {num_groups} groups")
    self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
    self.weight = Parameter(Tensor.ones(num_channels, device=device)) if affine else None
    self.bias = Parameter(Tensor.zeros(num_channels, device=device)) if affine else None

  def forward(self, x: Tensor) -> Tensor:
    _channels(x, self.num_channels, self)
    y = x.reshape(x.shape[0], self.num_groups, math.prod(x.shape[1:]) // self.num_groups).layernorm(-1, self.eps)
    return _scaled(y.reshape(x.shape), self.weight, self.bias)


@made_by_any_spelling
class InstanceNorm(GroupNorm):
  """Mean 0 and variance 1 over all axes after the channels."""

  def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True, device: str | None = None):
    super().__init__(num_features, num_features, eps, affine, device)


class InstanceNorm1d(InstanceNorm):
  """Mean 0 and variance 1 over all axes after the channels, with PyTorch's parameters: no scales and offsets unless
  told."""

  def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
               track_running_stats: bool = False, device: str | None = None):
    if track_running_stats: raise InvalidArgument(f"{type(self).__name__} with track_running_stats")
    super().__init__(num_features, eps, affine, device)


class InstanceNorm2d(InstanceNorm1d):
  """The same, of images."""


class InstanceNorm3d(InstanceNorm1d):
  """The same, of volumes."""


@made_by_any_spelling
class BatchNorm(Layer):
  """Mean 0 and variance 1 of each channel (axis 1), then scaled by `weight` and moved by `bias`.

  While training, by the batch's own statistics, which `running_mean` and `running_var` follow: they move by `momentum`
  of the way, or are the mean of all batches where that is None. Otherwise by these. See `nn.statistics` for when they
  are computed.
  """

  def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True, track_running_stats: bool = True,
               momentum: float | None = 0.1, device: str | None = None):
    self.num_features, self.eps, self.momentum = num_features, eps, momentum
    self.weight = Parameter(Tensor.ones(num_features, device=device)) if affine else None
    self.bias = Parameter(Tensor.zeros(num_features, device=device)) if affine else None
    self.track_running_stats = track_running_stats
    if track_running_stats:
      self.running_mean = Tensor.zeros(num_features, device=device, requires_grad=False).contiguous()
      self.running_var = Tensor.ones(num_features, device=device, requires_grad=False).contiguous()
      self.num_batches_tracked = Tensor.zeros((), device=device, dtype=dtypes.int64).contiguous()
      for name in ("running_mean", "running_var", "num_batches_tracked"):
        self.register_buffer(name, getattr(self, name))

  def extra_repr(self) -> str:
    """What it is made of."""
    return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.weight is not None}, "
            f"track_running_stats={self.track_running_stats}")

  def _together(self, x: Tensor) -> None:
    """Have the statistics where the parameters were put: who goes through those alone (`nn.get_parameters`) has left
    them behind."""
    if self.weight is None or self.weight.device != x.device or self.running_mean.device == x.device: return
    for t in (self.running_mean, self.running_var, self.num_batches_tracked): t.to_(x.device)

  def forward(self, x: Tensor) -> Tensor:
    _channels(x, self.num_features, self)
    shape = (1, -1, *[1] * (x.ndim - 2))
    if self.track_running_stats: self._together(x)
    if not Tensor.training and self.track_running_stats: mean, var = self.running_mean, self.running_var
    else:
      axes = tuple(i for i in range(x.ndim) if i != 1)
      mean = x.mean(axes)
      var = (x - mean.reshape(shape)).square().mean(axes)
      if Tensor.training and self.track_running_stats:
        count = x.numel() // self.num_features
        if count < 2: raise InvalidArgument(f"{type(self).__name__} learns from one value a channel, shape {x.shape}")
        with Tensor.no_grad(): self._follow(mean.detach(), var.detach() * (count / (count - 1)))
    y = (x - mean.reshape(shape)) * (var + self.eps).rsqrt().reshape(shape)
    return _scaled(y, self.weight, self.bias)

  def _follow(self, mean: Tensor, var: Tensor) -> None:
    kept = (self.running_mean, self.running_var, self.num_batches_tracked)
    Statistics.settle(kept)
    self.num_batches_tracked.assign(self.num_batches_tracked + 1)
    part: Tensor | float = 1 / self.num_batches_tracked.float() if self.momentum is None else self.momentum
    for t, new in ((self.running_mean, mean), (self.running_var, var)): t.assign(t + part * (new - t))
    Statistics.wait(kept)


BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm


def lstm_step(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
  """The next (h, c) from the sums for input, forget, cell and output, side by side."""
  n = c.shape[-1]
  i, f, g, o = (gates[:, k * n:(k + 1) * n] for k in range(4))
  c = f.sigmoid() * c + i.sigmoid() * g.tanh()
  return o.sigmoid() * c.tanh(), c


def gru_step(ours: Tensor, theirs: Tensor, h: Tensor) -> Tensor:
  """The next h from the sums for reset, update and new, side by side: the input's and the last h's."""
  n = h.shape[-1]
  r, z = ((ours[:, k * n:(k + 1) * n] + theirs[:, k * n:(k + 1) * n]).sigmoid() for k in range(2))
  new = (ours[:, 2 * n:] + r * theirs[:, 2 * n:]).tanh()
  return new + z * (h - new)


def nonlinearity_of(name: str) -> str:
  """A name that `rnn_step` knows."""
  if name not in ("tanh", "relu"): raise InvalidArgument(f"nonlinearity {name!r}", hint='"tanh" or "relu"')
  return name


def rnn_step(sums: Tensor, nonlinearity: str) -> Tensor:
  """The next h from the sums of what the input and the last h bring."""
  return sums.tanh() if nonlinearity == "tanh" else sums.relu()


class LSTMCell(Layer):
  """One step of an LSTM: (batch, input) and the state (h, c), each (batch, hidden), to the next state.

  Gates are stacked as input, forget, cell, output, in weights of shape (4 * hidden, input or hidden).
  """

  def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: str | None = None):
    self.hidden_size = hidden_size
    self.weight_ih = uniform((4 * hidden_size, input_size), hidden_size, device)
    self.weight_hh = uniform((4 * hidden_size, hidden_size), hidden_size, device)
    self.bias_ih = uniform((4 * hidden_size,), hidden_size, device) if bias else None
    self.bias_hh = uniform((4 * hidden_size,), hidden_size, device) if bias else None

  def forward(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
    if hc is None:
      zero = Tensor.zeros((x.shape[0], self.hidden_size), device=x.device, dtype=x.dtype)
      hc = (zero, zero)
    h, c = hc
    gates = x.linear(self.weight_ih.transpose(), self.bias_ih) + h.linear(self.weight_hh.transpose(), self.bias_hh)
    return lstm_step(gates, c)


class GRUCell(Layer):
  """One step of a GRU: (batch, input) and (batch, hidden) to the next (batch, hidden); gates are reset, update, new."""

  def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: str | None = None):
    self.hidden_size = hidden_size
    self.weight_ih = uniform((3 * hidden_size, input_size), hidden_size, device)
    self.weight_hh = uniform((3 * hidden_size, hidden_size), hidden_size, device)
    self.bias_ih = uniform((3 * hidden_size,), hidden_size, device) if bias else None
    self.bias_hh = uniform((3 * hidden_size,), hidden_size, device) if bias else None

  def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
    if h is None: h = Tensor.zeros((x.shape[0], self.hidden_size), device=x.device, dtype=x.dtype)
    return gru_step(x.linear(self.weight_ih.transpose(), self.bias_ih),
                    h.linear(self.weight_hh.transpose(), self.bias_hh), h)


class RNNCell(Layer):
  """One step of Elman's network: called with (x, h) it gives the next h; without h it begins with zeros."""

  def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
               device: str | None = None):
    self.hidden_size, self.nonlinearity = hidden_size, nonlinearity_of(nonlinearity)
    self.weight_ih = uniform((hidden_size, input_size), hidden_size, device)
    self.weight_hh = uniform((hidden_size, hidden_size), hidden_size, device)
    self.bias_ih = uniform((hidden_size,), hidden_size, device) if bias else None
    self.bias_hh = uniform((hidden_size,), hidden_size, device) if bias else None

  def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
    ours = x.linear(self.weight_ih.transpose(), self.bias_ih)
    if h is None: h = Tensor.zeros((*x.shape[:-1], self.hidden_size), device=x.device, dtype=x.dtype)
    return rnn_step(ours + h.linear(self.weight_hh.transpose(), self.bias_hh), self.nonlinearity)
