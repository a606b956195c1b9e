"""The directed roundings, up, down and toward zero, with the numbers of AMD's MODE (RDNA3 ISA manual, section 3.3.4).

Meanings are written with operators that round to nearest even. To round another way they are evaluated on `Directed`
values, whose arithmetic also knows on which side of the rounded result the exact one lies, and steps to a neighbour
where the mode asks for it. Only sums, products, fused operations, conversions and ldexp are directed; the results of
transcendental instructions, which are not exact anyway, stay as they are.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tinyhw.emulator.values.ops import DTYPES, F16, F32, F64, FALSE, I32, TRUE, Ops, error_of_product, error_of_sum
from tinyhw.emulator.values.ops import Array as Value

NEAREST, UP, DOWN, ZERO = range(4)  # MODE.FP_ROUND
_NAMES: Final = {"f16": F16, "f32": F32, "f64": F64}
_SMALL, _LARGE = 2.0 ** -450, 2.0 ** 450  # products of these, and what they lose, are far from what f64 ends with


def step(r: Value, side: Value, mode: int) -> Value:
  """The nearest-even result `r`, given the sign of (exact value - r), rounded as `mode` says."""
  above, below = side > 0, side < 0
  if mode == UP: toward_up, toward_down = above, FALSE
  elif mode == DOWN: toward_up, toward_down = FALSE, below
  else: toward_up, toward_down = above & (r < 0), below & (r > 0)
  infinity = r.dtype.type(np.inf)
  if mode != DOWN: r = np.where(toward_up, np.nextafter(r, infinity), r)
  if mode != UP: r = np.where(toward_down, np.nextafter(r, -infinity), r)
  return r


def _narrow(s: Value, t: Any, mode: int) -> Value:
  """An f64 that is exact, or rounded to odd, as f16 or f32."""
  r = np.asarray(s).astype(t)
  side = np.where(np.isfinite(s), np.sign(s - r.astype(F64)), 0.0)
  return step(r, side, mode)


def each(function: Callable[..., Fraction | None], plain: Value, mode: int, *operands: Value,
         rest: Callable[..., tuple[Value, Value]] | None = None) -> Value:
  """f64 results of finite operands: `function` gives a lane's exact value. `rest(plain, *operands)` has for all lanes
  at once (what the exact one is above the plain one, its sign at least; where it knows that)."""
  columns = np.broadcast_arrays(np.asarray(plain), *[np.asarray(x) for x in operands])
  left = np.logical_and.reduce([np.isfinite(c) for c in columns[1:]])
  side = np.zeros(columns[0].shape)
  if rest is not None:
    with np.errstate(all="ignore"): above, known = rest(*columns)
    side = np.where(left & known, np.sign(above), side)
    left = left & ~known
  for at in _places(left):
    exact = function(*[Fraction(float(c[at])) for c in columns[1:]])
    if exact is None: continue
    r = float(columns[0][at])
    if np.isinf(r): side[at] = -np.sign(r)
    else: side[at] = (exact > Fraction(r)) - (exact < Fraction(r))
  return step(columns[0], side, mode)


def _usual(*values: Value) -> Value:
  """Where values are of such size that sums and products of them, and what these lose, are no subnormals and finite."""
  out: Value = TRUE
  for v in values: out = out & (np.abs(v) > _SMALL) & (np.abs(v) < _LARGE)
  return out


def _rest_of_sum(s: Value, a: Value, b: Value) -> tuple[Value, Value]:
  rest = error_of_sum(a, b, s)
  return rest, np.isfinite(s) & np.isfinite(rest)


def _rest_of_product(p: Value, a: Value, b: Value) -> tuple[Value, Value]:
  nothing = (a == 0) | (b == 0)
  return np.where(nothing, 0.0, error_of_product(a, b, p)), nothing | _usual(p, a, b)


def _rest_of_fma(r: Value, a: Value, b: Value, c: Value) -> tuple[Value, Value]:
  """Boldo and Muller: what a fused multiply-add loses is a sum of two numbers, found by exact sums."""
  p = a * b
  lost = error_of_product(a, b, p)
  small = c + lost
  smaller = error_of_sum(c, lost, small)
  whole = p + small
  rest = ((whole - r) + error_of_sum(p, small, whole)) + smaller
  nothing = (a == 0) | (b == 0)
  return np.where(nothing, 0.0, rest), nothing | _usual(p, a, b) & ((c == 0) | _usual(c))


def quotient_rest(q: Value, a: Value, b: Value) -> tuple[Value, Value]:
  """The sign of a / b - q, q being the nearest to a / b; and where it is known."""
  p = q * b
  left = (a - p) - error_of_product(q, b, p)
  nothing = (a == 0) | (b == 0)
  return np.where(nothing, 0.0, np.where(np.signbit(b), -left, left)), nothing | _usual(q, a, b)


def _signed_zero(r: Value, exact_zero: Value, a: Value, b: Value, mode: int) -> Value:
  """A sum of opposite terms that is exactly zero is -0 when rounding down (IEEE 754-2008, 6.3)."""
  if mode != DOWN: return r
  return np.where(exact_zero & (np.signbit(a) != np.signbit(b)), r.dtype.type(-0.0), r)


def _places(flags: Value) -> Iterable[tuple[Any, ...]]:
  """The indices of what is true, for arrays of any shape."""
  if flags.ndim: return zip(*np.nonzero(flags))
  return [()] if flags else []


def fma(a: Value, b: Value, c: Value, mode: int) -> Value:
  """a * b + c rounded once, as `mode` says."""
  t = a.dtype
  with np.errstate(all="ignore"):
    if t == F64:
      r = each(lambda x, y, z: x * y + z, Ops.fma(a, b, c), mode, a, b, c, rest=_rest_of_fma)
      zero = np.array(r == 0)
      x, y, z = (np.broadcast_to(v, zero.shape) for v in (a, b, c))
      for at in _places(zero & (x != 0) & (y != 0)):  # a tiny sum may have become the zero
        zero[at] = Fraction(float(x[at])) * Fraction(float(y[at])) + Fraction(float(z[at])) == 0
    else:
      wide = Ops.fma_f16_of_f32(*(x.astype(F64) for x in (a, b, c)))
      r, zero = _narrow(wide, t, mode), wide == 0
    negative = np.signbit(a) != np.signbit(b)
    return _signed_zero(r, zero, np.where(negative, -1.0, 1.0), c, mode)


def add(a: Value, b: Value, mode: int) -> Value:
  """a + b of one float type."""
  if a.dtype == F64:
    with np.errstate(all="ignore"): r = each(lambda x, y: x + y, a + b, mode, a, b, rest=_rest_of_sum)
  else: r = fma(a, a.dtype.type(1), b, mode)
  return _signed_zero(r, (r == 0) & (a == -b), a, b, mode)


def mul(a: Value, b: Value, mode: int) -> Value:
  """a * b of one float type."""
  if a.dtype == F64: return each(lambda x, y: x * y, a * b, mode, a, b, rest=_rest_of_product)
  return _narrow(np.multiply(a, b, dtype=F64), a.dtype, mode)


def convert(x: Value, type_: str, mode: int) -> Value:
  """A number as a float type; exact where the type is wider."""
  t = DTYPES[type_]
  if t == F64:
    if x.dtype.itemsize < 8 or x.dtype.kind == "f": return x.astype(F64)
    return step(x.astype(F64), _side_of_integer(x, x.astype(F64)), mode)
  if x.dtype.kind == "f":
    if x.dtype.itemsize <= t.itemsize: return x.astype(t)
    return _narrow(x.astype(F64), t, mode)
  if x.dtype.itemsize < 8: return _narrow(x.astype(F64), t, mode)
  r = x.astype(t)
  return step(r, _side_of_integer(x, r), mode)


def _side_of_integer(x: Value, r: Value) -> Value:
  exact, near = np.asarray(x), np.asarray(r)
  return np.array([(int(a) > int(b)) - (int(a) < int(b)) if np.isfinite(b) else -np.sign(b)
                   for a, b in zip(exact.reshape(-1), near.reshape(-1))], F64).reshape(exact.shape)


def ldexp(x: Value, e: Value, mode: int) -> Value:
  """x * 2**e."""
  e = np.clip(e.astype(I32), -6000, 6000)
  if x.dtype == F64: return each(lambda v, n: v * Fraction(2) ** int(n), np.ldexp(x, e), mode, x, e.astype(F64))
  if x.dtype == F32: return _narrow(np.ldexp(x.astype(F64), np.clip(e, -600, 600)), F32, mode)
  return _narrow(np.ldexp(x.astype(F64), np.clip(e, -200, 200)), F16, mode)


class Directed:
  """A value whose arithmetic rounds by MODE; `modes` maps f16, f32 and f64 to a rounding mode."""
  __slots__ = ("modes", "x")

  def __init__(self, x: Value, modes: dict[str, int]) -> None: self.x, self.modes = x, modes

  @property
  def dtype(self) -> Any: return self.x.dtype

  def view(self, dtype: Any) -> Directed: return Directed(self.x.view(dtype), self.modes)

  def _mode(self) -> int:
    return self.modes[f"f{self.x.dtype.itemsize * 8}"] if self.x.dtype.kind == "f" else NEAREST

  def _binary(self, other: Any, plain: Callable[[Any, Any], Any], rounded: Callable[..., Any] | None = None,
              swapped: bool = False) -> Directed:
    y = other.x if isinstance(other, Directed) else other
    a, b = (y, self.x) if swapped else (self.x, y)
    mode = self._mode()
    if rounded is not None and mode:
      t = self.x.dtype.type
      return Directed(rounded(a if hasattr(a, "dtype") else t(a), b if hasattr(b, "dtype") else t(b), mode), self.modes)
    return Directed(plain(a, b), self.modes)

  def __add__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a + b, add)
  def __radd__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a + b, add, True)
  def __sub__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a - b, _subtract)
  def __rsub__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a - b, _subtract, True)
  def __mul__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a * b, mul)
  def __rmul__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a * b, mul, True)
  def __and__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a & b)
  def __rand__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a & b, None, True)
  def __or__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a | b)
  def __ror__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a | b, None, True)
  def __xor__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a ^ b)
  def __lshift__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a << b)
  def __rshift__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a >> b)
  def __lt__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a < b)
  def __le__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a <= b)
  def __gt__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a > b)
  def __ge__(self, o: Any) -> Directed: return self._binary(o, lambda a, b: a >= b)
  def __eq__(self, o: object) -> Directed: return self._binary(o, lambda a, b: a == b)  # type: ignore[override]  # lane by lane, as NumPy's
  def __ne__(self, o: object) -> Directed: return self._binary(o, lambda a, b: a != b)  # type: ignore[override]  # lane by lane, as NumPy's
  def __neg__(self) -> Directed: return Directed(-self.x, self.modes)
  def __invert__(self) -> Directed: return Directed(~self.x, self.modes)
  __hash__ = None  # type: ignore[assignment]  # unhashable: == gives no bool


def _subtract(a: Value, b: Value, mode: int) -> Value: return add(a, -b, mode)


class DirectedOps:
  """`Ops` on `Directed` values."""

  def __init__(self, modes: dict[str, int]) -> None: self.modes = modes

  def _wrap(self, value: Any) -> Any:
    if isinstance(value, tuple): return tuple(map(self._wrap, value))
    return Directed(value, self.modes)

  def __getattr__(self, name: str) -> Callable[..., Any]:
    plain = getattr(Ops, name)

    def call(*operands: Any) -> Any:
      return self._wrap(plain(*[o.x if isinstance(o, Directed) else o for o in operands]))
    return call

  def to(self, x: Directed, type_: str) -> Directed:
    mode = self.modes.get(type_, NEAREST)
    return Directed(convert(x.x, type_, mode) if mode else Ops.to(x.x, type_), self.modes)

  def fma(self, a: Directed, b: Directed, c: Directed) -> Directed:
    mode = a._mode()
    x, y, z = (v.x if isinstance(v, Directed) else a.x.dtype.type(v) for v in (a, b, c))
    return Directed(fma(x, y, z, mode) if mode else Ops.fma(x, y, z), self.modes)

  def ldexp(self, x: Directed, e: Directed) -> Directed:
    mode = x._mode()
    return Directed(ldexp(x.x, e.x, mode) if mode else Ops.ldexp(x.x, e.x), self.modes)

  def fma_scaled(self, a: Directed, b: Directed, c: Directed, e: Directed) -> Directed:
    mode = a._mode()
    if not mode: return Directed(Ops.fma_scaled(a.x, b.x, c.x, e.x), self.modes)
    scale = np.asarray(e.x)

    def exact(x: Fraction, y: Fraction, z: Fraction, n: Fraction) -> Fraction:
      return (x * y + z) * Fraction(2) ** int(n)
    if a.dtype == F64:
      plain = np.array(Ops.fma_scaled(a.x, b.x, c.x, e.x))
      x, y, z, n = (np.broadcast_to(v, plain.shape) for v in (a.x, b.x, c.x, scale))
      down = np.isinf(plain) & np.isfinite(x) & np.isfinite(y) & np.isfinite(z) & (n < 0)
      for at in _places(np.asarray(down)):  # the product alone left the range
        value = exact(*(Fraction(float(v[at])) for v in (x, y, z, n)))
        if abs(value) < Fraction(2) ** 1024 - Fraction(2) ** 970: plain[at] = float(value)
      r = np.asarray(each(exact, plain, mode, a.x, b.x, c.x, scale.astype(F64)))
      zero = np.array(r == 0)
      for at in _places(zero): zero[at] = exact(*(Fraction(float(v[at])) for v in (x, y, z, n))) == 0
    else:
      wide = np.ldexp(Ops.fma_f16_of_f32(*(v.x.astype(F64) for v in (a, b, c))), scale)
      r, zero = _narrow(wide, F32, mode), wide == 0
    negative = np.signbit(a.x) != np.signbit(b.x)
    return Directed(_signed_zero(r, zero, np.where(negative, -1.0, 1.0), c.x, mode), self.modes)


def directed(function: Callable[..., Any], modes: dict[str, int]) -> Callable[..., Any]:
  """A meaning that rounds each float type (by its name) as `modes` has it."""
  ops = DirectedOps(modes)

  def evaluated(*operands: Value) -> Any:
    results = function(ops, *[Directed(x, modes) for x in operands])
    if isinstance(results, tuple): return tuple(r.x if isinstance(r, Directed) else r for r in results)
    return results.x if isinstance(results, Directed) else results

  def rounded(o: Any, *operands: Value) -> Any: return o.opaque(evaluated, *operands)
  return rounded
