"""The functions that are measured, and what they are: in NumPy's float64 for the narrower types, in mpmath for float64.

Both oracles say what the function is, not how it is computed here. A public function of `Elementwise` is in `MEASURED`,
is one of `NOT_MEASURED`, or fails a test.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from tinyhw.tensor.tensor import Tensor

Array = np.ndarray[Any, np.dtype[Any]]
mp = mpmath.mp.clone()
mp.prec = 200


@dataclass(frozen=True)
class Judged:
  """`call` on tensors; `double` on float64 arrays, with IEEE 754's special cases; `exact` on finite numbers of mpmath.

  `ranges`: intervals that hold more of the arguments than their share of the binades. `near`: arguments around which
  there are more. Of two arguments `second` makes the others from the first. `least`: what is promised at least for
  float32 and float64, where the worst arguments are too rare to be drawn.
  """
  call: Callable[..., Tensor]
  double: Callable[..., Array]
  exact: Callable[..., Any]
  ranges: tuple[tuple[float, float], ...] = ((-4, 4), (-100, 100))
  near: tuple[float, ...] = ()
  second: Callable[[Array, np.random.Generator], Array] | None = None
  least: float = 0.0


def _method(name: str) -> Callable[..., Tensor]: return lambda *x: getattr(x[0], name)(*x[1:])


def _any(x: Array, rng: np.random.Generator) -> Array:
  """A second argument: of any size, near the first one's, or a small whole number."""
  kind = rng.integers(0, 3, x.size)
  with np.errstate(all="ignore"):
    shuffled = rng.permutation(x)
    near = x * rng.uniform(-4, 4, x.size).astype(x.dtype)
    return np.where(kind == 0, shuffled, np.where(kind == 1, near, rng.integers(-9, 10, x.size).astype(x.dtype)))


def _exponents(x: Array, rng: np.random.Generator) -> Array:
  """Exponents with which the power is a number: whole ones and others; and any."""
  with np.errstate(all="ignore"):
    reach = math.log(float(np.finfo(x.dtype).max)) * 1.05
    fitting = rng.uniform(-reach, reach, x.size) / np.maximum(np.abs(np.log(np.abs(x.astype(np.float64)))), 1e-9)
    kind = rng.integers(0, 8, x.size)
    fitting = np.where(kind < 4, np.round(fitting), fitting)
    return np.where(kind == 0, _any(x, rng).astype(np.float64), fitting).astype(x.dtype)


def _mp_quotient(x: Any, y: Any) -> Any:
  """The quotient of two doubles rounded down, exactly."""
  return mp.mpf(math.floor(_fraction(x) / _fraction(y)))


def _mp_remainder(x: Any, y: Any) -> Any:
  rest = _fraction(x) % _fraction(y)
  return mp.mpf(rest.numerator) / rest.denominator


def _fraction(x: Any) -> Fraction: return Fraction(float(x))


def _gelu_gate(x: Any, pi: Any, sqrt: Any) -> Any: return 2 * sqrt(2 / pi) * (x + mp.mpf("0.044715") * x * x * x)


def _mp_erfc(x: Any) -> Any:
  """(mpmath's overflows for the largest.)"""
  return mp.erfc(x) if abs(x) < 1000 else mp.mpf(2 if x < 0 else 0)


_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])
GELU, QUICK = (2 * math.sqrt(2 / math.pi), 0.044715), 1.702


def _gated(x: Array, gate: Array) -> Array: return np.asarray(x / (1 + np.exp(-gate)))


def _elu(x: Array) -> Array: return np.where(x > 0, x, np.expm1(x))


def _mp_gated(x: Any, gate: Any) -> Any: return x / (1 + mp.exp(-gate))


HALVES = tuple(k + 0.5 for k in range(-9, 9))
TURNS = tuple(k * math.pi / 2 for k in (*range(-40, 41), 1000, 12345, 10**6))
EDGES = (-87.3, 88.7, -103.9, 709.7, -708.3, -745.1, -0.3465, 0.3466)      # where exp over- or underflows; ln2 / 2
POWERS = (*(2.0**k for k in range(-20, 21)), *(10.0**k for k in range(-6, 7)), math.sqrt(0.5), math.sqrt(2))
WIDE: tuple[tuple[float, float], ...] = ((-4, 4), (-100, 100), (-750, 720))

MEASURED: dict[str, Judged] = {
  "add": Judged(operator.add, operator.add, operator.add, second=_any),
  "sub": Judged(operator.sub, operator.sub, operator.sub, second=_any),
  "mul": Judged(operator.mul, operator.mul, operator.mul, second=_any),
  "div": Judged(operator.truediv, operator.truediv, operator.truediv, second=_any),
  # NumPy's and torch's way, bit for bit: a quotient beyond a significand is rounded more than once.
  "idiv": Judged(operator.floordiv, operator.floordiv, _mp_quotient, second=_any, least=2.5),
  "mod": Judged(operator.mod, operator.mod, _mp_remainder, second=_any),
  "pow": Judged(operator.pow, np.power, mp.power, ((-4, 4), (0, 2), (0.9, 1.1), (0, 1000)), (1.0, -1.0, 2.0),
                  _exponents),
  "maximum": Judged(_method("maximum"), lambda x, y: np.where((x == 0) & (y == 0), x + y, np.maximum(x, y)), max,
                      second=_any),
  "minimum": Judged(_method("minimum"), lambda x, y: np.where((x == 0) & (y == 0), -(-x - y), np.minimum(x, y)), min,
                      second=_any),
  "clip": Judged(lambda x: x.clip(-1.5, 2), lambda x: np.clip(x, -1.5, 2), lambda x: min(max(x, -1.5), 2)),
  "hardtanh": Judged(_method("hardtanh"), lambda x: np.clip(x, -1, 1), lambda x: min(max(x, -1), 1)),
  "neg": Judged(operator.neg, operator.neg, operator.neg),
  "abs": Judged(_method("abs"), np.abs, abs),
  "sign": Judged(_method("sign"), np.sign, mp.sign),
  "trunc": Judged(_method("trunc"), np.trunc, lambda x: mp.floor(x) if x > 0 else mp.ceil(x), near=HALVES),
  "floor": Judged(_method("floor"), np.floor, mp.floor, near=HALVES),
  "ceil": Judged(_method("ceil"), np.ceil, mp.ceil, near=HALVES),
  "round": Judged(_method("round"), np.round, lambda x: mp.mpf(round(_fraction(x))), near=HALVES),
  "square": Judged(_method("square"), np.square, lambda x: x * x),
  "sqrt": Judged(_method("sqrt"), np.sqrt, mp.sqrt, ((0, 4), (0, 1000))),
  "rsqrt": Judged(_method("rsqrt"), lambda x: 1 / np.sqrt(x), lambda x: 1 / mp.sqrt(x), ((0, 4), (0, 1000))),
  "reciprocal": Judged(_method("reciprocal"), lambda x: 1 / x, lambda x: 1 / x),
  "exp": Judged(_method("exp"), np.exp, mp.exp, WIDE, EDGES),
  "exp2": Judged(_method("exp2"), np.exp2, lambda x: mp.power(2, x), ((-4, 4), (-150, 129), (-1075, 1024)),
                   (-126.0, -149.0, 128.0, -1022.0, -1074.0, 1024.0, 0.5, -0.5)),
  "expm1": Judged(_method("expm1"), np.expm1, mp.expm1, WIDE, EDGES),
  "log": Judged(_method("log"), np.log, mp.log, ((0, 2), (0, 1000)), POWERS),
  "log2": Judged(_method("log2"), np.log2, lambda x: mp.log(x, 2), ((0, 2), (0, 1000)), POWERS),
  "log10": Judged(_method("log10"), np.log10, mp.log10, ((0, 2), (0, 1000)), POWERS),
  "log1p": Judged(_method("log1p"), np.log1p, mp.log1p, ((-1, 2), (0, 1000)), (-1.0, -0.5, 1.0, math.sqrt(2) - 1)),
  "sin": Judged(_method("sin"), np.sin, mp.sin, ((-4, 4), (-100, 100), (-1e5, 1e5)), TURNS),
  "cos": Judged(_method("cos"), np.cos, mp.cos, ((-4, 4), (-100, 100), (-1e5, 1e5)), TURNS),
  "tan": Judged(_method("tan"), np.tan, mp.tan, ((-4, 4), (-100, 100), (-1e5, 1e5)), TURNS),
  "sigmoid": Judged(_method("sigmoid"), lambda x: 1 / (1 + np.exp(-x)), lambda x: 1 / (1 + mp.exp(-x)), WIDE, EDGES),
  "tanh": Judged(_method("tanh"), np.tanh, mp.tanh, ((-1, 1), (-10, 10), (-25, 25)), EDGES),
  "relu": Judged(_method("relu"), lambda x: np.where(x <= 0, 0, x), lambda x: max(x, 0)),
  "relu6": Judged(_method("relu6"), lambda x: np.where(x <= 0, 0, np.minimum(x, 6)), lambda x: min(max(x, 0), 6)),
  "leaky_relu": Judged(_method("leaky_relu"), lambda x: np.where(x < 0, 0.01 * x, x),
                         lambda x: x * mp.mpf("0.01") if x < 0 else x),
  "silu": Judged(_method("silu"), lambda x: _gated(x, x), lambda x: _mp_gated(x, x), WIDE, EDGES),
  "gelu": Judged(_method("gelu"), lambda x: _gated(x, GELU[0] * (x + GELU[1] * x * x * x)),
                   lambda x: _mp_gated(x, _gelu_gate(x, mp.pi, mp.sqrt)), ((-4, 4), (-12, 12), (-25, 25))),
  "quick_gelu": Judged(_method("quick_gelu"), lambda x: _gated(x, QUICK * x),
                         lambda x: _mp_gated(x, mp.mpf("1.702") * x), ((-4, 4), (-60, 60), (-450, 450))),
  "elu": Judged(_method("elu"), _elu, lambda x: x if x > 0 else mp.expm1(x), WIDE, EDGES),
  "softplus": Judged(_method("softplus"), lambda x: np.logaddexp(0, x), lambda x: mp.log1p(mp.exp(x)), WIDE, EDGES),
  "softsign": Judged(_method("softsign"), lambda x: x / (1 + np.abs(x)), lambda x: x / (1 + abs(x))),
  "sinh": Judged(_method("sinh"), np.sinh, mp.sinh, WIDE, EDGES),
  "cosh": Judged(_method("cosh"), np.cosh, mp.cosh, WIDE, EDGES),
  "asinh": Judged(_method("asinh"), np.arcsinh, mp.asinh, near=(0.5, 1.0, 1e8)),
  "acosh": Judged(_method("acosh"), np.arccosh, mp.acosh, ((1, 2), (1, 1000)), (1.0, 1.5, 2.0, 1e8)),
  "atanh": Judged(_method("atanh"), np.arctanh, mp.atanh, ((-1, 1), (-0.1, 0.1)), (1.0, -1.0, 0.5)),
  "asin": Judged(_method("asin"), np.arcsin, mp.asin, ((-1, 1), (-0.1, 0.1)), (1.0, -1.0, 0.5)),
  "acos": Judged(_method("acos"), np.arccos, mp.acos, ((-1, 1), (-0.1, 0.1)), (1.0, -1.0, 0.5)),
  "atan": Judged(_method("atan"), np.arctan, mp.atan, near=(1.0, -1.0, 0.4142135623730950)),
  "erf": Judged(_method("erf"), _erf, mp.erf, ((-1, 1), (-6, 6)), (1.0, -1.0)),
  "erfc": Judged(_method("erfc"), _erfc, _mp_erfc, ((-1, 1), (-6, 28)), (0.5, 1.0, 26.5)),
}
"""By the name of the method."""

NOT_MEASURED = frozenset({
  # held to PyTorch's values by tests/tensor/operators
  "lgamma", "digamma", "polygamma", "erfinv", "ndtr", "ndtri", "entr", "xlog1py", "gcd", "lcm", "angle", "real", "conj",
  "isreal", "resolve_conj", "resolve_neg", "conj_physical",
  # other names of the same
  "recip", "swish", "clamp", "subtract", "multiply", "divide", "true_divide", "floor_divide", "remainder",
  "negative", "positive", "absolute", "fix", "sgn", "xor", "bitwise_left_shift", "bitwise_right_shift", "log_sigmoid",
  "arcsinh", "arccosh", "arctanh", "arcsin", "arccos", "arctan", "arctan2", "expit",
  "leakyrelu",
  # one or two of the measured functions, or a choice among them: held to torch's by tests/tensor/operators
  "rsub", "fmod", "frac", "copysign", "nan_to_num", "fmax", "fmin", "clamp_min", "clamp_max", "atan2", "hypot",
  "logaddexp", "logaddexp2", "exp10", "logit", "sinc", "xlogy", "float_power", "lerp", "addcmul", "addcdiv",
  "deg2rad", "rad2deg", "heaviside", "ldexp", "celu", "selu", "logsigmoid", "mish", "hardsigmoid", "hardswish",
  "hardshrink", "softshrink", "tanhshrink", "threshold", "prelu",
  # conversions and choices, which are held bit for bit by tests/tensor/test_values.py
  "cast", "bitcast", "float", "double", "half", "bfloat16", "int", "long", "short",
  "char", "byte", "type_as", "bool", "where", "masked_fill",
  # of integers and bools
  "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "lshift", "rshift", "logical_not",
  # which give bools
  "eq", "ne", "lt", "gt", "le", "ge", "less", "greater", "less_equal", "greater_equal", "not_equal",
  "logical_and", "logical_or", "logical_xor", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit",
  "isclose"})
