"""Bessel's functions of imaginary arguments, the gamma function of several variables, orthogonal polynomials: what
`torch.special` has beside the gamma function's family. Each element in float64 (floats of 16 bits in float32)."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.function.special import Special

if TYPE_CHECKING:
  from typing import Self

_FAR = 24.0              # from there on the asymptotic series of Bessel's functions
_TERMS = 60              # of the power series below it

MOST_TERMS = 1024  # of what grows by one with each degree or dimension


class Bessel(Special):
  """More special functions."""
  __slots__ = ()

  # *** Bessel's functions of the first kind, of imaginary arguments ***

  def _modified(self, order: int) -> Self:
    """exp(-|x|) times the function of order 0 or 1, of |x|: DLMF 10.25.2, and 10.40.1 far from 0."""
    x = self.abs()
    far, near = (x > _FAR).where(x, _FAR), (x > _FAR).where(_FAR, x)
    series = (near * near * 0.25)._polynomial([1 / (math.factorial(k) * math.factorial(k + order))
                                               for k in range(_TERMS)])
    if order: series = series * near * 0.5
    terms = [1.0]
    for k in range(1, 30): terms.append(-terms[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    tail = far.reciprocal()._polynomial(terms) / (far * (2 * math.pi)).sqrt()
    found: Self = (x > _FAR).where(x.eq(math.inf).where(0, tail), series * (-near).exp())
    return self.isnan().where(math.nan, found)

  def i0(self) -> Self:
    """The modified Bessel function of order 0."""
    x, y, dtype = self._in_double()
    grown = y.abs().exp()
    return (y._modified(0) * grown)._with_derivative((x, lambda: y._odd_modified() * grown)).cast(dtype)

  def i0e(self) -> Self:
    """exp(-|x|) * i0(x)."""
    x, y, dtype = self._in_double()
    found = y._modified(0)
    return found._with_derivative((x, lambda: y._odd_modified() - y.sign() * found)).cast(dtype)

  def i1(self) -> Self:
    """The modified Bessel function of order 1."""
    x, y, dtype = self._in_double()
    grown = y.abs().exp()
    return (y._odd_modified() * grown)._with_derivative((x, lambda: y._slope_of_i1() * grown)).cast(dtype)

  def i1e(self) -> Self:
    """exp(-|x|) * i1(x)."""
    x, y, dtype = self._in_double()
    found = y._odd_modified()
    return found._with_derivative((x, lambda: y._slope_of_i1() - y.sign() * found)).cast(dtype)

  def _odd_modified(self) -> Self:
    found: Self = self._modified(1) * (self < 0).where(-1.0, 1.0).cast(self.dtype)
    return found

  def _slope_of_i1(self) -> Self:
    """i0 - i1 / x, scaled; 1/2 at 0."""
    zero = self.eq(0)
    found: Self = zero.where(0.5, self._modified(0) - self._odd_modified() / zero.where(1, self))
    return found

  # *** the error function's and the gamma function's family ***

  def psi(self) -> Self:
    """The derivative of `lgamma`."""
    return self.digamma()

  def gammaln(self) -> Self:
    """The logarithm of the magnitude of the gamma function."""
    return self.lgamma()

  def mvlgamma(self, p: int) -> Self:
    """The logarithm of the gamma function of `p` dimensions, of numbers above (p - 1) / 2."""
    if not isinstance(p, int) or not 1 <= p <= MOST_TERMS:
      raise InvalidArgument(f"mvlgamma of {p!r} dimensions", hint=f"at least 1, at most {MOST_TERMS}, since each "
                            "is a term of the kernel")
    x, _, dtype = self._in_double()
    total = x.lgamma()
    for j in range(1, p): total = total + (x - 0.5 * j).lgamma()
    return (total + p * (p - 1) / 4 * math.log(math.pi)).cast(dtype)
  multigammaln = mvlgamma

  def erfcx(self) -> Self:
    """exp(x * x) * erfc(x), without overflow: Lentz' continued fraction far from 0 (DLMF 7.9.1)."""
    x, y, dtype = self._in_double()
    far = (y > 3).where(y, 3)
    rest = far
    for k in range(60, 0, -1): rest = far + (k * 0.5) / rest
    near = (y > 3).where(0, y)
    found = (y > 3).where(1 / (rest * math.sqrt(math.pi)), (near * near).exp() * near.erfc())
    return found._with_derivative((x, lambda: 2 * y * found - 2 / math.sqrt(math.pi))).cast(dtype)

  def log_ndtr(self) -> Self:
    """The logarithm of the part of the normal distribution below each element."""
    x, y, dtype = self._in_double()
    scaled = y * -math.sqrt(0.5)
    low = y < -1
    below = (low.where(scaled, 1).erfcx() * 0.5).log() - y * y * 0.5
    above = (-(low.where(0, -scaled).erfc() * 0.5)).log1p()
    found = low.where(below, above)
    scale = 1 / math.sqrt(2 * math.pi)
    return found._with_derivative((x, lambda: (y * y * -0.5 - found).exp() * scale)).cast(dtype)

  # *** numbers as they are made ***

  def frexp(self) -> tuple[Self, Self]:
    """(mantissa of 0.5..1, exponent of 2 as int32) of each element."""
    x, _, dtype = self._in_double()
    still = x._still().double()
    plain = still.isfinite() & still.ne(0)
    size = plain.where(still.abs(), 0.5)
    power = (size.log2().floor() + 1)
    # A logarithm may be off by its last bit beside a power of two.
    power = (size.ldexp(-power) >= 1).where(power + 1, (size.ldexp(-power) < 0.5).where(power - 1, power))
    scale = power.const_like(1).ldexp(-power)
    mantissa = plain.where(x.double() * scale, x.double())
    return mantissa.cast(dtype), plain.where(power, 0).int()

  def nextafter(self, other: Any) -> Self:
    """The next number that the type has, toward the other."""
    p, q = (type(self)._wrap(u) for u in self._together(other))
    if not p.dtype.is_float: raise InvalidArgument(f"nextafter of {p.dtype}", hint="it is for floats")
    p, q = p._still(), q._still()
    bits = p._bits()
    one = bits.const_like(1)
    grows = (q > p) == (p > 0)
    step = grows.where(bits + one, bits - one).bitcast(p.dtype)
    from_zero = (q < 0).where(bits.const_like(bits.dtype.min) + one, one).bitcast(p.dtype)
    found = p.eq(0).where(from_zero, step)
    return (p.isnan() | q.isnan()).where(math.nan, p.eq(q).where(q, found))

  def _bits(self) -> Self:
    from tinyhw.ir.dtype import dtypes
    kind = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}.get(self.dtype.itemsize)
    if kind is None: raise InvalidArgument(f"bits of {self.dtype}")
    return self.bitcast(kind)

  # *** orthogonal polynomials, by their recurrences ***

  def _recurrent(self, name: str, n: Any, first: Any, following: Any) -> Self:
    """Polynomial `n` of a family; 0 below 0. `first` gives the second of them, `following` the one after two."""
    if hasattr(n, "item") and not isinstance(n, (int, float)) and n.numel() == 1: n = n.item()
    if not isinstance(n, (int, float)) or n > MOST_TERMS or not math.isfinite(n) or n != int(n):
      raise InvalidArgument(f"{name} of degree {n!r}",
                            hint=f"one whole number for all elements, up to {MOST_TERMS}: each is a step of the kernel")
    x, _, dtype = self._in_double()
    before, now = x.const_like(1), first(x)
    if n < 1: return (before if n == 0 else x.const_like(0)).cast(dtype)
    for k in range(1, int(n)): before, now = now, following(x, now, before, k)
    found: Self = now.cast(dtype)._same()
    return found

  def chebyshev_polynomial_t(self, n: Any) -> Self:
    """Chebyshev's polynomial of the first kind."""
    return self._recurrent("chebyshev_polynomial_t", n, lambda x: x, lambda x, p, q, k: 2 * x * p - q)
  def chebyshev_polynomial_u(self, n: Any) -> Self:
    """Chebyshev's polynomial of the second kind."""
    return self._recurrent("chebyshev_polynomial_u", n, lambda x: 2 * x, lambda x, p, q, k: 2 * x * p - q)
  def chebyshev_polynomial_v(self, n: Any) -> Self:
    """Chebyshev's polynomial of the third kind."""
    return self._recurrent("chebyshev_polynomial_v", n, lambda x: 2 * x - 1, lambda x, p, q, k: 2 * x * p - q)
  def chebyshev_polynomial_w(self, n: Any) -> Self:
    """Chebyshev's polynomial of the fourth kind."""
    return self._recurrent("chebyshev_polynomial_w", n, lambda x: 2 * x + 1, lambda x, p, q, k: 2 * x * p - q)
  def shifted_chebyshev_polynomial_t(self, n: Any) -> Self:
    """Chebyshev's polynomial of the first kind, of 2 x - 1."""
    return (2 * self - 1).chebyshev_polynomial_t(n)
  def shifted_chebyshev_polynomial_u(self, n: Any) -> Self:
    """Chebyshev's polynomial of the second kind, of 2 x - 1."""
    return (2 * self - 1).chebyshev_polynomial_u(n)
  def shifted_chebyshev_polynomial_v(self, n: Any) -> Self:
    """Chebyshev's polynomial of the third kind, of 2 x - 1."""
    return (2 * self - 1).chebyshev_polynomial_v(n)
  def shifted_chebyshev_polynomial_w(self, n: Any) -> Self:
    """Chebyshev's polynomial of the fourth kind, of 2 x - 1."""
    return (2 * self - 1).chebyshev_polynomial_w(n)
  def hermite_polynomial_h(self, n: Any) -> Self:
    """Hermite's polynomial, as physicists have it."""
    return self._recurrent("hermite_polynomial_h", n, lambda x: 2 * x, lambda x, p, q, k: 2 * x * p - 2 * k * q)
  def hermite_polynomial_he(self, n: Any) -> Self:
    """Hermite's polynomial, as statisticians have it."""
    return self._recurrent("hermite_polynomial_he", n, lambda x: x, lambda x, p, q, k: x * p - k * q)
  def laguerre_polynomial_l(self, n: Any) -> Self:
    """Laguerre's polynomial."""
    return self._recurrent("laguerre_polynomial_l", n, lambda x: 1 - x,
                           lambda x, p, q, k: ((2 * k + 1 - x) * p - k * q) / (k + 1))
  def legendre_polynomial_p(self, n: Any) -> Self:
    """Legendre's polynomial."""
    return self._recurrent("legendre_polynomial_p", n, lambda x: x,
                           lambda x, p, q, k: ((2 * k + 1) * x * p - k * q) / (k + 1))
