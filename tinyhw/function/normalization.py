"""Softmax, normalization, attention."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape, InvalidType
from tinyhw.function.linalg import Linalg
from tinyhw.function.reduction import Axes, DTypeLike, named
from tinyhw.ir.dtype import dtypes

if TYPE_CHECKING:
  from typing import Self


class Normalization(Linalg):
  """The functions that bring elements to a common scale."""
  __slots__ = ()

  def _softmax_parts(self, axis: int) -> tuple[Self, Self, Self]:
    apart = self - self.amax(axis, keepdim=True)._still()  # whose gradients nobody wants
    small = apart.exp()
    return apart, small, small.sum(axis, keepdim=True)

  def softmax(self, axis: int = -1, dtype: DTypeLike = None) -> Self:
    """exp(x) / sum(exp(x)) along an axis, without overflow."""
    wide, kind = (self.cast(named(dtype) or self.dtype) if dtype else self)._in_wide()
    if not self.numel(): return wide.cast(kind)._same()
    _, small, total = wide._softmax_parts(axis)
    return (small / total).cast(kind)

  def log_softmax(self, axis: int = -1, dtype: DTypeLike = None) -> Self:
    """Logarithm of softmax, without overflow."""
    wide, kind = (self.cast(named(dtype) or self.dtype) if dtype else self)._in_wide()
    if not self.numel(): return wide.cast(kind)._same()
    apart, _, total = wide._softmax_parts(axis)
    return (apart - total.log()).cast(kind)

  def softmin(self, axis: int = -1, dtype: DTypeLike = None) -> Self:
    """softmax of -x."""
    return (-self).softmax(axis, dtype)

  def glu(self, axis: int = -1) -> Self:
    """The first half of an axis times the sigmoid of the second."""
    size = self.shape[self._axis(axis)] if self.ndim else 1
    if size % 2: raise InvalidShape(f"glu along axis {axis} of shape {self.shape}: it is no two halves")
    a, b = self.split(size // 2, axis) if size else (self, self)
    return a * b.sigmoid()

  # *** normalization ***

  def _scaled_by(self, weight: Self | None, bias: Self | None, axis: int | None = None) -> Self:
    """Times weights, plus a bias: of the last axes, or vectors along one."""
    result = self
    def fit(x: Self) -> Self: return x if axis is None else x._along_axis(axis, self.ndim)
    if weight is not None: result = result * fit(weight)
    return result if bias is None else result + fit(bias)

  def _standard(self, axis: Axes, eps: float) -> Self:
    apart = self - self.mean(axis, keepdim=True)
    return apart * (apart.square().mean(axis, keepdim=True) + eps).rsqrt()

  def layernorm(self, axis: Axes = -1, eps: float = 1e-5) -> Self:
    """Mean 0 and variance 1 along axes."""
    wide, dtype = self._in_wide()
    return wide._standard(axis, eps).cast(dtype)

  def layer_norm(self, normalized_shape: int | Sequence[int], weight: Self | None = None, bias: Self | None = None,
                 eps: float = 1e-5) -> Self:
    """Mean 0 and variance 1 over the last axes, which have that shape; times `weight`, plus `bias`."""
    last = self._last(normalized_shape)
    return self.layernorm(last, eps)._scaled_by(weight, bias)

  def _last(self, shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not sizes or self.shape[-len(sizes):] != sizes or len(sizes) > self.ndim:
      raise InvalidShape(f"normalization over {sizes} of shape {self.shape}: its last axes are others")
    return tuple(range(self.ndim - len(sizes), self.ndim))

  def rms_norm(self, normalized_shape: int | Sequence[int], weight: Self | None = None,
               eps: float | None = None) -> Self:
    """A mean square of 1 over the last axes; times `weight`. `eps` is the type's own where none is given."""
    last = self._last(normalized_shape)
    wide, dtype = self._in_wide()
    if eps is None: eps = {dtypes.float16: 2.0**-10, dtypes.bfloat16: 2.0**-7, dtypes.float64: 2.0**-52}.get(dtype,
                                                                                                             2.0**-23)
    return (wide * (wide.square().mean(last, keepdim=True) + eps).rsqrt()).cast(dtype)._scaled_by(weight, None)

  def batchnorm(self, weight: Self | None, bias: Self | None, mean: Self, invstd: Self,
                axis: int | Sequence[int] = 1) -> Self:
    """(x - mean) * invstd * weight + bias, vectors along the axes."""
    axes = self._axes(axis)
    shape = tuple(s if i in axes else 1 for i, s in enumerate(self.shape))
    def fit(x: Self) -> Self: return x.reshape(shape)
    scaled = (self - fit(mean)) * (fit(invstd) if invstd.numel() == math.prod(shape) else invstd)
    if weight is not None: scaled = scaled * fit(weight)
    return scaled if bias is None else scaled + fit(bias)

  def batch_norm(self, running_mean: Self | None = None, running_var: Self | None = None, weight: Self | None = None,
                 bias: Self | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Self:
    """Normalization of each channel (axis 1): by the running mean and variance, or in training by the batch's own, of
    which the running ones then take a part of `momentum`."""
    if self.ndim < 2: raise InvalidShape(f"batch_norm of shape {self.shape}", hint="it needs (batch, channels, ...)")
    axes = [i for i in range(self.ndim) if i != 1]
    wide, dtype = self._in_wide()
    if training or running_mean is None or running_var is None:
      if not training: raise InvalidArgument("batch_norm without training needs a running mean and variance")
      count = self._count(axes)
      if count <= 1: raise InvalidShape(f"batch_norm in training of shape {self.shape}: more than one value a channel")
      mean = wide.mean(axes)
      variance = (wide - mean._along_axis(1, self.ndim)).square().mean(axes)
      for running, now in ((running_mean, mean), (running_var, variance * (count / (count - 1)))):
        if running is None: continue
        target: Any = running
        target.assign((running * (1 - momentum) + now._still() * momentum).cast(running.dtype))
    else: mean, variance = running_mean.cast(wide.dtype), running_var.cast(wide.dtype)
    apart = wide - mean._along_axis(1, self.ndim)
    return (apart * (variance + eps).rsqrt()._along_axis(1, self.ndim))._scaled_by(weight, bias, 1).cast(dtype)

  def instance_norm(self, running_mean: Self | None = None, running_var: Self | None = None, weight: Self | None = None,
                    bias: Self | None = None, use_input_stats: bool = True, momentum: float = 0.1,
                    eps: float = 1e-5) -> Self:
    """Normalization of each channel of each sample over what is behind axis 1."""
    if self.ndim < 3: raise InvalidShape(f"instance_norm of shape {self.shape}", hint="it needs (batch, channels, ...)")
    if not use_input_stats: return self.batch_norm(running_mean, running_var, weight, bias, False, momentum, eps)
    wide, dtype = self._in_wide()
    axes = tuple(range(2, self.ndim))
    count = self._count(axes)
    if count <= 1: raise InvalidShape(f"instance_norm of shape {self.shape}: more than one value is needed")
    for running, now in ((running_mean, wide.mean(axes).mean(0)), (running_var, wide.var(axes).mean(0))):
      if running is None: continue
      target: Any = running
      target.assign((running * (1 - momentum) + now._still() * momentum).cast(running.dtype))
    return wide._standard(axes, eps)._scaled_by(weight, bias, 1).cast(dtype)

  def group_norm(self, num_groups: int, weight: Self | None = None, bias: Self | None = None,
                 eps: float = 1e-5) -> Self:
    """Normalization of groups of channels (axis 1) of each sample."""
    if self.ndim < 2 or num_groups < 1 or self.shape[1] % num_groups:
      raise InvalidShape(f"group_norm of shape {self.shape} in {num_groups} groups")
    wide, dtype = self._in_wide()
    parts = wide.reshape(self.shape[0], num_groups, -1) if self.numel() else wide.reshape(self.shape[0], num_groups, 0)
    return parts._standard(-1, eps).reshape(self.shape)._scaled_by(weight, bias, 1).cast(dtype)

  def local_response_norm(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Self:
    """x / (k + alpha * the mean square of `size` neighbouring channels)**beta."""
    if self.ndim < 3:
      raise InvalidShape(f"local_response_norm of shape {self.shape}", hint="it needs (batch, channels, ...)")
    padded = self.square()._grown([(size // 2, (size - 1) // 2) if i == 1 else (0, 0) for i in range(self.ndim)])
    total = padded.unfold(1, size, 1).mean(-1)
    return self / (total * alpha + k) ** beta

  # *** attention ***

  def scaled_dot_product_attention(self, key: Self, value: Self, attn_mask: Self | None = None, dropout_p: float = 0.0,
                                   is_causal: bool = False, scale: float | None = None,
                                   enable_gqa: bool = False) -> Self:
    """softmax(self @ key.T * scale + mask) @ value: `self` (..., L, E), `key` (..., S, E), `value` (..., S, Ev). A bool
    mask says what takes part, a float one is added; `is_causal` lets each position look at those before it;
    `enable_gqa` shares each head of key and value among several of the queries."""
    flat = min(self.ndim, key.ndim, value.ndim) < 2
    if flat or self.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
      raise InvalidShape(f"attention of queries {self.shape}, keys {key.shape} and values {value.shape}")
    if is_causal and attn_mask is not None:
      raise InvalidArgument("attention with a mask and is_causal", hint="give one")
    if enable_gqa:
      if self.shape[-3] % key.shape[-3]:
        raise InvalidShape(f"{self.shape[-3]} heads of queries for {key.shape[-3]} of keys")
      times = self.shape[-3] // key.shape[-3]
      key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    scores = self.matmul(key.transpose(-2, -1)) * (1 / math.sqrt(self.shape[-1]) if scale is None else scale)
    rows, columns = self.shape[-2], key.shape[-2]
    if is_causal:
      seen = self._iota(columns) <= self._iota(rows).unsqueeze(1)
      scores = seen.where(scores, -math.inf)
    elif attn_mask is not None:
      if attn_mask.dtype.is_bool:
        scores = attn_mask.where(scores, -math.inf)
        # Who looks at nobody gets zeros.
        part = attn_mask.any(-1, keepdim=True).where(scores, 0).softmax(-1)
        return self._attended(attn_mask.where(part, 0), value, dropout_p)
      if not attn_mask.dtype.is_float:
        raise InvalidType(f"an attention mask of {attn_mask.dtype}", hint="bool or float")
      scores = scores + attn_mask
    return self._attended(scores.softmax(-1), value, dropout_p)

  def _attended(self, part: Self, value: Self, dropout_p: float) -> Self:
    weights: Any = part.cast(value.dtype)
    if dropout_p: weights = weights.dropout(dropout_p)
    result: Self = weights.matmul(value)
    return result
