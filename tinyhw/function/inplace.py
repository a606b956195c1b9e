"""The functions that give a tensor the value of another function of it: names that end in an underscore, and `+=`."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.function.core import ConstType
from tinyhw.function.hashing import Hashing
from tinyhw.ir.dtype import dtypes

if TYPE_CHECKING:
  from typing import Self


def _changing(name: str, own: str = "") -> Callable[..., Any]:
  """The function that gives a tensor the value of another function of it."""
  def changed(self: Any, *args: Any, **kwargs: Any) -> Any: return self._in_place(name, args, kwargs)
  return _named(changed, own or f"{name}_", f"Assigns `{name}` of this to this.")


def _shaping(name: str) -> Callable[..., Any]:
  """The function that gives a tensor its value in another shape."""
  def changed(self: Any, *args: Any, **kwargs: Any) -> Any: return self._reshaped_in_place(name, args, kwargs)
  return _named(changed, f"{name}_", f"Becomes `{name}` of this.")


def _named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
  function.__name__, function.__qualname__, function.__doc__ = name, f"Tensor.{name}", doc
  return function


_ARITHMETIC = ("add", "sub", "mul", "div", "pow", "remainder", "fmod", "subtract", "multiply", "divide", "true_divide",
               "floor_divide", "float_power")
_ONE = ("neg", "abs", "exp", "log", "sqrt", "rsqrt", "reciprocal", "sigmoid", "tanh", "relu", "floor", "ceil", "round")
_MORE = ("negative", "absolute", "exp2", "expm1", "log2", "log10", "log1p", "square", "trunc", "fix", "frac", "sign",
         "sgn")
_CIRCLES = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "sinc", "arcsin",
            "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "deg2rad", "rad2deg")
_SPECIAL = ("erf", "erfc", "erfinv", "lgamma", "digamma", "logit", "nan_to_num", "i0", "mvlgamma", "polygamma",
            "conj_physical", "nextafter")
_TWO = ("atan2", "arctan2", "hypot", "copysign", "gcd", "lcm", "heaviside", "ldexp", "xlogy")
_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift", "bitwise_right_shift",
         "logical_and", "logical_or", "logical_xor", "logical_not")
_ORDER = ("eq", "ne", "lt", "le", "gt", "ge", "not_equal", "less", "less_equal", "greater", "greater_equal")
_CHOICE = ("clamp", "clip", "clamp_min", "clamp_max", "masked_fill", "masked_scatter", "lerp", "addcmul", "addcdiv")
_PLACES = ("scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill", "index_put", "put",
           "index_reduce", "fill_diagonal")
_ALONG = ("cumsum", "cumprod", "tril", "triu", "renorm", "dropout", "alpha_dropout",
          "feature_alpha_dropout", "feature_dropout", "rrelu")
_PRODUCTS = ("addmm", "addmv", "addr", "addbmm", "baddbmm")
_ACTIVATIONS = ("leaky_relu", "elu", "selu", "celu", "hardtanh", "threshold")
_SHAPES = ("squeeze", "unsqueeze", "transpose", "swapaxes", "swapdims", "t", "resize", "resize_as")
_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift",
              "rshift")


class InPlace(Hashing):
  """The functions that change a tensor."""
  __slots__ = ()

  def assign(self, value: Any) -> Self:
    """Give this tensor another value."""
    raise NotImplementedError

  def copy_(self, other: Any) -> Self:
    """The other's value, as a change in place."""
    raise NotImplementedError

  def _in_place(self, name: str, args: Any, kwargs: Any) -> Self:
    """Get the value of a function of this, with its history."""
    raise NotImplementedError

  def _become(self, other: Self) -> None:
    """Be the other one's value, with its history, in its shape."""
    raise NotImplementedError

  def _reshaped_in_place(self, name: str, args: Any, kwargs: Any) -> Self:
    if self.is_leaf and self.requires_grad:
      raise InvalidArgument(f"{name}_ of a leaf that requires a gradient", hint=f"use {name}()")
    before = self._same()
    before._view = self._view               # a view stays one, of what it is a view of
    found = getattr(type(self), name)(before, *args, **kwargs)
    self._become(found)
    if before._view is not None: self._view = found._view
    return self

  def fill_(self, value: ConstType) -> Self:
    """One number for each element."""
    return self.copy_(self.full_like(value))
  def zero_(self) -> Self:
    """Zero for each element."""
    return self.fill_(0)

  def uniform_(self, low: float = 0.0, high: float = 1.0) -> Self:
    """Random numbers in low..high for each element."""
    return self.copy_(self.uniform(self.shape, low=low, high=high, device=self.device, dtype=self.dtype))
  def normal_(self, mean: float = 0.0, std: float = 1.0) -> Self:
    """Normally distributed random numbers for each element."""
    return self.copy_(self.normal(self.shape, mean=mean, std=std, device=self.device, dtype=self.dtype))
  def bernoulli_(self, p: float = 0.5) -> Self:
    """1 with probability `p`, else 0, for each element."""
    return self.copy_(self.bernoulli(p))
  def exponential_(self, lambd: float = 1.0) -> Self:
    """Exponentially distributed random numbers for each element."""
    drawn = self.rand(self.shape, device=self.device, dtype=self.dtype)
    return self.copy_(-(-drawn).log1p() / lambd)

  def log_normal_(self, mean: float = 1.0, std: float = 2.0) -> Self:
    """Random numbers whose logarithms are normally distributed, for each element."""
    return self.copy_(self.normal(self.shape, mean=mean, std=std, device=self.device, dtype=self.dtype).exp())
  def cauchy_(self, median: float = 0.0, sigma: float = 1.0) -> Self:
    """Random numbers of Cauchy's distribution for each element."""
    drawn = self.rand(self.shape, device=self.device, dtype=self.dtype)
    return self.copy_(((drawn - 0.5) * math.pi).tan() * sigma + median)
  def geometric_(self, p: float) -> Self:
    """How often one tries until something of probability `p` happens, for each element."""
    if not 0 < p < 1: raise InvalidArgument(f"geometric_ expects p to be in (0, 1), but got p={p}")
    drawn = self.rand(self.shape, device=self.device)
    return self.copy_(((-drawn).log1p() / math.log1p(-p)).ceil().maximum(1).cast(self.dtype))
  def random_(self, low: int | None = None, high: int | None = None) -> Self:
    """Whole numbers from `low` (0) up to `high`, without it, for each element: all that the type holds exactly unless
    told. Of one number it is the end."""
    if low is not None and high is None: low, high = 0, low
    most: Any = 2 ** (dtypes.finfo(self.dtype)[1] + 1) + 1 if self.dtype.is_float else 2 if self.dtype.is_bool else \
      min(self.dtype.max, dtypes.int32.max)
    return self.copy_(self.randint(self.shape, low=low or 0, high=most if high is None else high, device=self.device,
                                   dtype=dtypes.int64))

  (add_, sub_, mul_, div_, pow_, remainder_, fmod_, subtract_, multiply_, divide_, true_divide_, floor_divide_,
   float_power_) = map(_changing, _ARITHMETIC)
  (neg_, abs_, exp_, log_, sqrt_, rsqrt_, reciprocal_, sigmoid_, tanh_, relu_, floor_, ceil_,
   round_) = map(_changing, _ONE)
  (negative_, absolute_, exp2_, expm1_, log2_, log10_, log1p_, square_, trunc_, fix_, frac_, sign_,
   sgn_) = map(_changing, _MORE)
  (sin_, cos_, tan_, asin_, acos_, atan_, sinh_, cosh_, asinh_, acosh_, atanh_, sinc_, arcsin_, arccos_, arctan_,
   arcsinh_, arccosh_, arctanh_, deg2rad_, rad2deg_) = map(_changing, _CIRCLES)
  (erf_, erfc_, erfinv_, lgamma_, digamma_, logit_, nan_to_num_, i0_, mvlgamma_, polygamma_, conj_physical_,
   nextafter_) = map(_changing, _SPECIAL)
  atan2_, arctan2_, hypot_, copysign_, gcd_, lcm_, heaviside_, ldexp_, xlogy_ = map(_changing, _TWO)
  (bitwise_and_, bitwise_or_, bitwise_xor_, bitwise_not_, bitwise_left_shift_, bitwise_right_shift_, logical_and_,
   logical_or_, logical_xor_, logical_not_) = map(_changing, _BITS)
  (eq_, ne_, lt_, le_, gt_, ge_, not_equal_, less_, less_equal_, greater_,
   greater_equal_) = map(_changing, _ORDER)
  (clamp_, clip_, clamp_min_, clamp_max_, masked_fill_, masked_scatter_, lerp_, addcmul_,
   addcdiv_) = map(_changing, _CHOICE)
  (scatter_, scatter_add_, scatter_reduce_, index_add_, index_copy_, index_fill_, index_put_, put_, index_reduce_,
   fill_diagonal_) = map(_changing, _PLACES)
  (cumsum_, cumprod_, tril_, triu_, renorm_, dropout_, alpha_dropout_, feature_alpha_dropout_, feature_dropout_,
   rrelu_) = map(_changing, _ALONG)
  addmm_, addmv_, addr_, addbmm_, baddbmm_ = map(_changing, _PRODUCTS)
  leaky_relu_, elu_, selu_, celu_, hardtanh_, threshold_ = map(_changing, _ACTIVATIONS)
  squeeze_, unsqueeze_, transpose_, swapaxes_, swapdims_, t_, resize_, resize_as_ = map(_shaping, _SHAPES)

  __iadd__, __isub__, __imul__, __itruediv__, __ifloordiv__, __imod__, __ipow__, __imatmul__, __iand__, __ior__, \
    __ixor__, __ilshift__, __irshift__ = (_changing(f"__{name}__", f"__i{name}__") for name in _OPERATORS)
