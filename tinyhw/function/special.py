"""The gamma function's family and the inverse of the error function: each element in float64 (floats of 16 bits in
float32)."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.function.mathematics import Mathematics
from tinyhw.ir.dtype import dtypes

if TYPE_CHECKING:
  from typing import Self

_EULER = 0.5772156649015329
_SHIFT = 10              # asymptotic series begin there
MOST_DERIVED = 169       # the factorial of the next order is the last that a float64 holds
# Bernoulli's numbers B2, B4, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _zeta(k: int) -> float:
  """Riemann's zeta function of a whole number from 2 on: some terms, and Euler and Maclaurin's rest."""
  n = 12
  rest = n ** (1.0 - k) / (k - 1) - 0.5 * n ** float(-k)
  for j, b in enumerate(_BERNOULLI[:5], 1):
    rest += b / math.factorial(2 * j) * math.prod(range(k, k + 2 * j - 1)) * n ** (1.0 - k - 2 * j)
  return math.fsum([*(i ** float(-k) for i in range(n, 0, -1)), rest])


class Special(Mathematics):
  """The gamma function's family."""
  __slots__ = ()

  def _of_turn(self) -> tuple[Self, Self]:
    """sin(pi x) and cos(pi x), exact signs and zeros: of what is left of a whole number."""
    whole = self.round()
    rest = (self - whole) * math.pi
    sign = (whole * 0.5).frac().ne(0).where(-1.0, 1.0).cast(self.dtype)
    return rest.sin() * sign, rest.cos() * sign

  def _pole(self) -> Self:
    return (self <= 0) & self.eq(self.floor())

  def lgamma(self) -> Self:
    """Logarithm of the magnitude of the gamma function; infinite at 0 and the negative whole numbers."""
    x, y, dtype = self._in_double()
    return y._lgamma()._with_derivative((x, y._digamma)).cast(dtype)

  def _lgamma(self) -> Self:
    negative = self < 0.5
    x = negative.where(1 - self, self)
    # Around 1 and 2, where it is 0, a series in the distance.
    one, two = x - 1, x - 2
    near = (one.abs() < 0.3) | (two.abs() < 0.3)
    z = (one.abs() < 0.3).where(one, (two.abs() < 0.3).where(two, 0))
    series = z * z._polynomial([-_EULER, *((-1) ** k * _zeta(k) / k for k in range(2, 30))])
    series = (one.abs() < 0.3).where(series, series + z.log1p())
    up, product = x, x.const_like(1)
    for _ in range(_SHIFT):
      low = up < _SHIFT
      product, up = low.where(product * up, product), low.where(up + 1, up)
    inverse = 1 / up
    stirling = inverse * (inverse * inverse)._polynomial([b / (2 * k * (2 * k - 1)) for k, b in
                                                          enumerate(_BERNOULLI, 1)])
    far = (up - 0.5) * (up.log() - 1) - 0.5 + 0.5 * math.log(2 * math.pi) + stirling - product.log()
    found = near.where(series, (x > 1e300).where(x * (x.log() - 1), far))
    sine, _ = self._of_turn()
    mirrored = negative.where(math.log(math.pi) - negative.where(sine, 1).abs().log() - found, found)
    result: Self = (self._pole() | self.abs().eq(math.inf)).where(math.inf, mirrored)
    return result

  def digamma(self) -> Self:
    """Derivative of `lgamma`: infinite at 0, NaN at the negative whole numbers."""
    x, y, dtype = self._in_double()
    return y._digamma()._with_derivative((x, lambda: y._polygamma(1))).cast(dtype)

  def _digamma(self) -> Self:
    negative = self < 0.5
    up, total = negative.where(1 - self, self), self.const_like(0)
    for _ in range(_SHIFT):
      low = up < _SHIFT
      total, up = low.where(total - 1 / up, total), low.where(up + 1, up)
    inverse = 1 / up
    square = inverse * inverse
    found = up.log() - 0.5 * inverse - square * square._polynomial([b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)])
    found = (up.eq(math.inf)).where(math.inf, found + total)
    sine, cosine = self._of_turn()
    mirrored = negative.where(found - math.pi * cosine / negative.where(sine, 1), found)
    at_zero = self.signbit().where(math.inf, -math.inf)
    result: Self = self.eq(0).where(at_zero, (self._pole() | self.eq(-math.inf)).where(math.nan, mirrored))
    return result

  def polygamma(self, n: Any) -> Self:
    """The n-th derivative of `digamma`: `x.polygamma(n)`, or `Tensor.polygamma(n, x)`. Beyond the first, of positive
    numbers."""
    x: Any = self
    if isinstance(n, Special): x, n = n, x
    if not isinstance(n, int) or not 0 <= n <= MOST_DERIVED:
      raise InvalidArgument(f"polygamma of order {n!r}", hint=f"it is a whole number up to {MOST_DERIVED}")
    if n == 0:
      first: Self = x.digamma()
      return first
    wide, still, dtype = x._in_double()
    result: Self = still._polygamma(n)._with_derivative((wide, lambda: still._polygamma(n + 1))).cast(dtype)
    return result

  def _polygamma(self, n: int) -> Self:
    """n! times Hurwitz' zeta function of n + 1, with its sign."""
    negative = self < 0.5 if n == 1 else self._all(False)
    up, total = negative.where(1 - self, self), self.const_like(0)
    for _ in range(_SHIFT + n):
      total, up = total + up._power(n + 1).reciprocal(), up + 1
    s, inverse = n + 1, up.reciprocal()
    rest = inverse._power(n) * (1 / n) + inverse._power(s) * 0.5
    for j, b in enumerate(_BERNOULLI, 1):
      rest = rest + inverse._power(s + 2 * j - 1) * (b / math.factorial(2 * j) * math.prod(range(s, s + 2 * j - 1)))
    found = (total + rest) * math.factorial(n) * (-1 if n % 2 == 0 else 1)
    if n > 1: return found
    sine, _ = self._of_turn()
    result: Self = self._pole().where(math.inf, negative.where(math.pi * math.pi / (sine * sine) - found, found))
    return result

  def erfinv(self) -> Self:
    """The inverse of the error function, of -1..1; infinite at the ends, NaN beyond."""
    x, y, dtype = self._in_double()
    a = y.abs()
    inside = (a < 1).where(a, 0)
    tail = 1 - inside
    # Winitzki's approximation, and steps of Halley's.
    l = (tail * (1 + inside)).log()
    c = 2 / (math.pi * 0.147) + l * 0.5
    found = ((c * c - l / 0.147).sqrt() - c).maximum(0).sqrt()
    for _ in range(3):
      step = (inside > 0.5).where(tail - found.erfc(), found.erf() - inside) * (math.sqrt(math.pi) / 2)
      step = step * (found * found).exp()
      found = found - step / (1 + found * step)
    found = a.eq(1).where(math.inf, (a < 1).where(found, math.nan))._signed_as(y)
    return found._with_derivative((x, lambda: (found * found).exp() * (math.sqrt(math.pi) / 2))).cast(dtype)

  def ndtr(self) -> Self:
    """The part of the normal distribution below each element."""
    x, y, dtype = self._in_double()
    found = (y * -math.sqrt(0.5)).erfc() * 0.5
    return found._with_derivative((x, lambda: (y * y * -0.5).exp() * (1 / math.sqrt(2 * math.pi)))).cast(dtype)

  def ndtri(self) -> Self:
    """The inverse of `ndtr`."""
    x, _, dtype = self._in_double()
    return ((x * 2 - 1).erfinv() * math.sqrt(2)).cast(dtype)

  def entr(self) -> Self:
    """-x * log(x), 0 at 0, -inf below."""
    x, y, dtype = self._in_double()
    found = (y > 0).where(-y * (y > 0).where(y, 1).log(), y.eq(0).where(0, y.isnan().where(y, -math.inf)))
    return found._with_derivative((x, lambda: -y.log() - 1)).cast(dtype)

  def xlog1py(self, other: Any) -> Self:
    """x * log1p(y), 0 where x is 0 (and y not NaN)."""
    p, q, x, y, dtype = self._two(other, double=False)
    zero = x.eq(0) & y.isnan().logical_not()
    found = zero.where(0, x * zero.where(1, y).log1p())
    return found._with_derivative((p, lambda: y.log1p()), (q, lambda: x / (y + 1))).cast(dtype)

  def gcd(self, other: Any) -> Self:
    """The greatest common divisor of integers, not negative."""
    b = self._integers("gcd", other)
    dtype = self._binary_dtype(b)
    x, y = self.cast(dtype).abs(), b.cast(dtype).abs()
    # Fibonacci's numbers take Euclid the longest.
    for _ in range(int(dtype.bits * 1.45) + 2):
      more = y.ne(0)
      x, y = more.where(y, x), more.where(x.mod(y), y)
    result: Self = x
    return result

  def lcm(self, other: Any) -> Self:
    """The least common multiple of integers, not negative."""
    b = self._integers("lcm", other)
    dtype = self._binary_dtype(b)
    common = self.gcd(b)
    result: Self = (self.cast(dtype).idiv(common.maximum(1)) * b.cast(dtype)).abs()
    return result

  def _binary_dtype(self, other: Any) -> Any:
    kind = self._together(other)[0].dtype
    return dtypes.default_int if kind.is_bool else kind

  # *** what a number is for those who have complex ones ***

  def angle(self) -> Self:
    """0, or pi of what is below 0; NaN of NaN."""
    x = self if self.dtype.is_float else self.cast(dtypes.default_float)
    return x.isnan().where(x, (x < 0).where(math.pi, x.const_like(0)))._still()

  def real(self) -> Self:
    """The number itself."""
    return self._same()
  def conj(self) -> Self:
    """The number itself."""
    return self._same()
  resolve_conj, resolve_neg, conj_physical = conj, conj, conj

  def isreal(self) -> Self:
    """True of every number."""
    return self._all(True)
