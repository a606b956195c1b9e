"""Activations: functions of each element that networks use. 16-bit floats compute in float32."""
from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.function.bessel import Bessel
from tinyhw.function.core import ConstType
from tinyhw.ir import semantics
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops

if TYPE_CHECKING:
  from typing import Self


class Activation(Bessel):
  """The activations."""
  __slots__ = ()

  def _magnitude(self) -> Self:
    """|x| whose derivative at 0 is 1: for functions that treat both sides alike and are smooth there."""
    return (self < 0).where(-self, self)

  def _head(self) -> Self:
    """Each element rounded to half of its bits or less, so that products of two are exact. It has no gradient."""
    narrow = dtypes.float32 if self.dtype is dtypes.float64 else dtypes.bfloat16
    return self._wrap(self.uop.detach()).cast(narrow).cast(self.dtype)

  def _constant(self, value: Fraction, head: bool = False) -> tuple[float, float]:
    """A number as two of this type, or as one with half of its bits and the rest."""
    half = dtypes.float32 if self.dtype is dtypes.float64 else dtypes.bfloat16
    upper = float(semantics.canonical(float(value), half if head else self.dtype))
    return upper, float(value - Fraction(upper))

  def _gated(self, head: Self, rest: Self | None = None) -> Self:
    """x * sigmoid(head + rest), where the gate has the sign of x. Where the exponential would be a subnormal number the
    product need not be one: it is scaled at the end."""
    size, limit = head._magnitude(), 512 if self.dtype is dtypes.float64 else 64
    far = size > limit
    scale = far.where(self.const_like(math.exp(-limit)), self.const_like(1))
    power = (far.where(self.const_like(limit), self.const_like(0)) - size).exp()
    if rest is not None: power = power * (self < 0).where(rest, -rest).exp()
    below = 1 + power * scale
    return (self < 0).where(self * power / below * scale, self / below)

  def relu(self) -> Self:
    """max(x, 0); NaN stays."""
    return (self <= 0).where(0, self)
  def leaky_relu(self, slope: float = 0.01) -> Self:
    """x, or `slope * x` below 0."""
    x, dtype = self._in_wide()
    return (x > 0).where(x, slope * x).cast(dtype)
  leakyrelu = leaky_relu
  def relu6(self) -> Self:
    """x limited to 0..6."""
    return self._within(0, 6)
  def sigmoid(self) -> Self:
    """1 / (1 + exp(-x)), without overflow on either side."""
    x, dtype = self._in_wide()
    small = (-x._magnitude()).exp()
    return ((x < 0).where(small, 1) / (1 + small)).cast(dtype)
  expit = sigmoid

  def tanh(self) -> Self:
    """Hyperbolic tangent."""
    return self._unary(Ops.TANH)
  def silu(self) -> Self:
    """x * sigmoid(x)."""
    x, dtype = self._in_wide()
    return x._gated(x).cast(dtype)
  swish = silu
  def gelu(self, approximate: str = "tanh") -> Self:
    """The Gaussian error unit: in its tanh form x * sigmoid(2u), u = sqrt(2/pi) * (x + 0.044715 x^3), or with
    `approximate` "none" exactly, x * erfc(-x / sqrt(2)) / 2."""
    if approximate == "none": return self._exact_gelu()
    if approximate != "tanh": raise InvalidArgument(f'approximate {approximate!r} is neither "tanh" nor "none"')
    x, dtype = self._in_wide()
    factor, factor_rest = x._constant(_GELU)
    upper, lower = x._constant(_GELU * Fraction("0.044715"), head=True)
    t = x.clip(-40, 40)               # beyond, the gate is 0 or 1
    # exp(2u) has 2u's absolute error for its relative one: 2u is head + rest, products of heads are exact.
    t1 = t._head()
    square1, square2 = t1 * t1, (t + t1) * (t - t1)                           # t^2
    product = square1._head() * upper
    more = (square1 - square1._head()) * upper + square1 * lower + square2 * (upper + lower)
    total = product + factor
    back = total - product
    # total + more = the factor + its 0.044715th * t^2
    more = more + ((product - (total - back)) + (factor - back)) + factor_rest
    total1 = total._head()
    return x._gated(t1 * total1, (t - t1) * total1 + t * (total - total1) + t * more).cast(dtype)
  def _exact_gelu(self) -> Self:
    x, y, dtype = self._in_double()
    part = 0.5 * (x * -math.sqrt(0.5)).erfc()     # with a history, which second derivatives go through
    found = y.eq(-math.inf).where(-0.0, y * part)
    density = (y * y * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
    slope = part + (y.abs() < 40).where(y, 0) * density
    return found._with_derivative((x, lambda: slope)).cast(dtype)

  def quick_gelu(self) -> Self:
    """x * sigmoid(1.702 x)."""
    x, dtype = self._in_wide()
    t = x.clip(-1000, 1000)           # beyond, the gate is 0 or 1
    t1, (upper, lower) = t._head(), x._constant(Fraction("1.702"), head=True)
    return x._gated(t1 * upper, (t - t1) * upper + t * lower).cast(dtype)
  def _below_zero(self) -> Self:
    """The elements below 0 and at it; others are 0, so that what grows with them has no infinite derivative."""
    return (self > 0).where(0, self)
  def elu(self, alpha: float = 1.0) -> Self:
    """x, or `alpha * (exp(x) - 1)` below 0."""
    x, dtype = self._in_wide()
    return (x > 0).where(x, alpha * x._below_zero().expm1()).cast(dtype)
  def celu(self, alpha: float = 1.0) -> Self:
    """x, or `alpha * (exp(x / alpha) - 1)` below 0."""
    x, dtype = self._in_wide()
    return (x > 0).where(x, alpha * (x._below_zero() / alpha).expm1()).cast(dtype)
  def selu(self, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Self:
    """`gamma` times elu(alpha)."""
    x, dtype = self._in_wide()
    return (x > 0).where(gamma * x, gamma * alpha * x._below_zero().expm1()).cast(dtype)
  def softplus(self, beta: float = 1.0, threshold: float | None = None) -> Self:
    """log(1 + exp(beta * x)) / beta, without overflow; x itself where `beta * x` is above a threshold."""
    x, dtype = self._in_wide()
    y = x if beta == 1 else x * beta
    found = (y < 0).where(0, y) + (-y._magnitude()).exp().log1p()
    if beta != 1: found = found / beta
    return (found if threshold is None else (y > threshold).where(x, found)).cast(dtype)
  def logsigmoid(self) -> Self:
    """log(sigmoid(x)), without overflow."""
    return -(-self).softplus()
  log_sigmoid = logsigmoid
  def softsign(self) -> Self:
    """x / (1 + |x|)."""
    x, dtype = self._in_wide()
    return (x / (1 + x._magnitude())).cast(dtype)
  def mish(self) -> Self:
    """x * tanh(softplus(x))."""
    x, dtype = self._in_wide()
    # tanh(log(1 + e)) is a quotient of e * (e + 2): exact on both sides, and nothing overflows.
    small = (-x._magnitude()).exp()
    up = (x < 0).where(small * (small + 2), 1 + 2 * small)
    return (x * (up / (up + (x < 0).where(2, 2 * small * small)))).cast(dtype)
  def hardtanh(self, low: ConstType = -1, high: ConstType = 1, *, min_val: ConstType | None = None,
               max_val: ConstType | None = None) -> Self:
    """x limited to low..high."""
    return self._within(low if min_val is None else min_val, high if max_val is None else max_val)

  def _within(self, low: ConstType, high: ConstType) -> Self:
    """Limited to low..high, whose gradient ends there."""
    return (self <= low).where(low, (self >= high).where(high, self))
  def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5) -> Self:
    """alpha * x + beta limited to 0..1."""
    x, dtype = self._in_wide()
    return (x * alpha + beta)._within(0, 1).cast(dtype)
  def hardswish(self) -> Self:
    """x * relu6(x + 3) / 6."""
    x, dtype = self._in_wide()
    return (x * (x + 3).relu6() / 6).cast(dtype)
  def hardshrink(self, lambd: float = 0.5) -> Self:
    """x, 0 within -lambd..lambd."""
    return ((self >= -lambd) & (self <= lambd)).where(0, self)
  def softshrink(self, lambd: float = 0.5) -> Self:
    """x moved towards 0 by lambd, 0 within -lambd..lambd."""
    if lambd < 0: raise InvalidArgument(f"softshrink by {lambd}: it cannot be negative")
    return (self > lambd).where(self - lambd, (self < -lambd).where(self + lambd, self.isnan().where(self, 0)))
  def tanhshrink(self) -> Self:
    """x - tanh(x)."""
    return self - self.tanh()
  def threshold(self, threshold: float, value: float) -> Self:
    """x where it is above the threshold, else `value`."""
    return (self <= threshold).where(value, self)
  def prelu(self, weight: Any) -> Self:
    """x, or weight * x below 0; a vector of weights is for axis 1."""
    w = self._operand(weight)
    if w.numel() > 1:
      axis = min(self.ndim - 1, 1)
      if w.ndim != 1 or self.ndim == 0 or w.shape[0] != self.shape[axis]:
        raise InvalidShape(f"prelu of shape {self.shape} with weights of shape {w.shape}")
      w = w._along_axis(axis, self.ndim)
    elif w.ndim: w = w._along_axis(0, self.ndim) if self.ndim else w._derive(w.uop.reshape(()))
    result: Self = (self > 0).where(self, w * self)
    return result

  def _along_axis(self, axis: int, axes: int) -> Self:
    """A vector as a tensor that broadcasts along one axis of several."""
    return self._derive(self.uop.reshape(tuple(self.numel() if i == axis else 1 for i in range(axes))))


_GELU = Fraction("1.59576912160573071175978423973752747390343452465570")      # 2 * sqrt(2 / pi)
