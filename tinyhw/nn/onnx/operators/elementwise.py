"""Operators of each element by itself: arithmetic, comparison, bits, functions, activations, types."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tinyhw.ir.dtype import DType, dtypes
from tinyhw.nn.onnx import minifloat
from tinyhw.nn.onnx.run import Call, code_of
from tinyhw.nn.onnx.table import Host, operator
from tinyhw.nn.onnx.values import ELEMENTS, Element, element
from tinyhw.tensor.tensor import Tensor

# *** arithmetic ***


@operator("Add", 7, 13, 14)
def add(a: Tensor, b: Tensor) -> Tensor: return a + b


@operator("Sub", 7, 13, 14)
def sub(a: Tensor, b: Tensor) -> Tensor: return (a - b).cast(a.dtype)


@operator("Mul", 7, 13, 14)
def mul(a: Tensor, b: Tensor) -> Tensor: return a * b


@operator("Div", 7, 13, 14)
def div(a: Tensor, b: Tensor) -> Tensor:
  """Quotient; of integers towards zero."""
  return a.div(b) if a.dtype.is_float else a.div(b, rounding_mode="trunc")


@operator("Mod", 10, 13, 28)
def mod(op: Call, a: Tensor, b: Tensor, *, fmod: int = 0) -> Tensor:
  """Remainder with the sign of the divisor, or with `fmod` of the dividend."""
  if a.dtype.is_float and not fmod and op.version < 28: raise op.wrong("floats need fmod=1")
  return a.fmod(b) if fmod else a % b


@operator("Pow", 7, 12, 13, 15)
def power(x: Tensor, y: Tensor) -> Tensor:
  """A power, in the type of the base."""
  if x.dtype.is_int and y.dtype.is_float: return x.cast(dtypes.float32).pow(y.cast(dtypes.float32)).cast(x.dtype)
  return x.pow(y.cast(x.dtype))


@operator("Neg", 6, 13)
def neg(x: Tensor) -> Tensor: return -x


def _variadic(name: str, *since: int) -> Callable[[Callable[[Tensor, Tensor], Tensor]], Callable[..., Tensor]]:
  def declare(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    @operator(name, *since)
    def folded(op: Call, *data: Tensor) -> Tensor:
      if not data: raise op.wrong("it has no inputs")
      return functools.reduce(function, data) if len(data) > 1 else +data[0]
    return folded
  return declare


@_variadic("Sum", 6, 8, 13)
def total(a: Tensor, b: Tensor) -> Tensor: return a + b


@_variadic("Max", 6, 8, 12, 13)
def maximum(a: Tensor, b: Tensor) -> Tensor: return a.maximum(b)


@_variadic("Min", 6, 8, 12, 13)
def minimum(a: Tensor, b: Tensor) -> Tensor: return a.minimum(b)


@operator("Mean", 6, 8, 13)
def mean(op: Call, *data: Tensor) -> Tensor:
  if not data: raise op.wrong("it has no inputs")
  return functools.reduce(total_of, data) / len(data)


def total_of(a: Tensor, b: Tensor) -> Tensor:
  """The sum of two."""
  return a + b


# *** comparison and logic ***


@operator("Equal", 7, 11, 13, 19)
def equal(a: Tensor, b: Tensor) -> Tensor: return a.eq(b)


@operator("Less", 7, 9, 13)
def less(a: Tensor, b: Tensor) -> Tensor: return a < b


@operator("Greater", 7, 9, 13)
def greater(a: Tensor, b: Tensor) -> Tensor: return a > b


@operator("LessOrEqual", 12, 16)
def less_or_equal(a: Tensor, b: Tensor) -> Tensor: return a <= b


@operator("GreaterOrEqual", 12, 16)
def greater_or_equal(a: Tensor, b: Tensor) -> Tensor: return a >= b


@operator("And", 7)
def logical_and(a: Tensor, b: Tensor) -> Tensor: return a & b


@operator("Or", 7)
def logical_or(a: Tensor, b: Tensor) -> Tensor: return a | b


@operator("Xor", 7)
def logical_xor(a: Tensor, b: Tensor) -> Tensor: return a ^ b


@operator("Not", 1)
def logical_not(x: Tensor) -> Tensor: return x.logical_not()


@operator("Where", 9, 16)
def where(op: Call, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
  op.mark(op.narrow(1))
  return condition.where(x, y)


@operator("IsNaN", 9, 13, 20)
def is_nan(x: Tensor) -> Tensor: return x.isnan()


@operator("IsInf", 10, 20)
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
  return x.isinf(bool(detect_positive), bool(detect_negative))


# *** bits ***


@operator("BitShift", 11, 28)
def bit_shift(op: Call, x: Tensor, y: Tensor, *, direction: str) -> Tensor:
  if direction not in ("LEFT", "RIGHT"): raise op.wrong(f"direction {direction!r} is neither LEFT nor RIGHT")
  return x << y if direction == "LEFT" else x >> y


@operator("BitwiseAnd", 18)
def bitwise_and(a: Tensor, b: Tensor) -> Tensor: return a & b


@operator("BitwiseOr", 18)
def bitwise_or(a: Tensor, b: Tensor) -> Tensor: return a | b


@operator("BitwiseXor", 18)
def bitwise_xor(a: Tensor, b: Tensor) -> Tensor: return a ^ b


@operator("BitwiseNot", 18)
def bitwise_not(x: Tensor) -> Tensor: return x.bitwise_not()


# *** functions ***

def _unary(method: str) -> Callable[[Tensor], Tensor]:
  def function(x: Tensor) -> Tensor:
    result: Tensor = getattr(x, method)()
    return result
  return function


for _name, _since, _method in (
    ("Abs", (6, 13), "abs"), ("Acos", (7, 22), "acos"), ("Acosh", (9, 22), "acosh"), ("Asin", (7, 22), "asin"),
    ("Asinh", (9, 22), "asinh"), ("Atan", (7, 22), "atan"), ("Atanh", (9, 22), "atanh"), ("Ceil", (6, 13), "ceil"),
    ("Cos", (7, 22), "cos"), ("Cosh", (9, 22), "cosh"), ("Erf", (9, 13), "erf"), ("Exp", (6, 13), "exp"),
    ("Floor", (6, 13), "floor"), ("HardSwish", (14, 22), "hardswish"), ("Log", (6, 13), "log"),
    ("Mish", (18, 22), "mish"), ("Reciprocal", (6, 13), "reciprocal"), ("Relu", (6, 13, 14), "relu"),
    ("Round", (11, 22), "round"), ("Sigmoid", (6, 13), "sigmoid"), ("Sign", (9, 13), "sign"), ("Sin", (7, 22), "sin"),
    ("Sinh", (9, 22), "sinh"), ("Softplus", (1, 22), "softplus"), ("Softsign", (1, 22), "softsign"),
    ("Sqrt", (6, 13), "sqrt"), ("Tan", (7, 22), "tan"), ("Tanh", (6, 13), "tanh")):
  operator(_name, *_since)(_unary(_method))

# *** activations ***


@operator("LeakyRelu", 6, 16)
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor: return x.leaky_relu(alpha)


@operator("PRelu", 7, 9, 16)
def prelu(x: Tensor, slope: Tensor) -> Tensor: return (x < 0).where(slope * x, x)


@operator("Elu", 6, 22)
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor: return x.elu(alpha)


@operator("Celu", 12, 28)
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor: return x.celu(alpha)


@operator("Selu", 6, 22)
def selu(x: Tensor, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> Tensor:
  return x.selu(alpha, gamma)


@operator("ThresholdedRelu", 10, 22)
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor: return (x > alpha).where(x, 0)


@operator("HardSigmoid", 6, 22)
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor: return x.hardsigmoid(alpha, beta)


@operator("Gelu", 20)
def gelu(op: Call, x: Tensor, *, approximate: str = "none") -> Tensor:
  if approximate not in ("none", "tanh"): raise op.wrong(f"approximate {approximate!r} is neither none nor tanh")
  return x.gelu(approximate)


@operator("Swish", 24)
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor: return x * (x * alpha).sigmoid()


@operator("SwiGLU", 28)
def swiglu(a: Tensor, b: Tensor, *, alpha: float = 1.0) -> Tensor: return a * (a * alpha).sigmoid() * b


@operator("Shrink", 9)
def shrink(x: Tensor, *, lambd: float = 0.5, bias: float = 0.0) -> Tensor:
  return (x < -lambd).where(x + bias, (x > lambd).where(x - bias, 0)).cast(x.dtype)


@operator("Clip", 6)
def clip_by_attributes(x: Tensor, *, max: float = 3.4028234663852886e+38,
                       min: float = -3.4028234663852886e+38) -> Tensor:
  return x.maximum(min).minimum(max)


@operator("Clip", 11, 12, 13)
def clip(x: Tensor, min: Tensor | None, max: Tensor | None) -> Tensor:
  if min is not None: x = x.maximum(min)
  return +x if max is None else x.minimum(max)


# *** types ***


def converted(op: Call, x: Tensor, to: Element, saturate: int, rounding: str) -> Tensor:
  """The first input in another element type: narrow integers keep the low bits, 8-bit floats take the greatest value
  for
  what is too large, unless `saturate` is 0."""
  assert to.dtype is not None
  source = op.narrow(0)
  if source is not None and source.coded: x = minifloat.decoded(x, source.name)
  op.mark(to)
  if to.coded: return minifloat.encoded(x, to.name, bool(saturate), rounding)
  if to.narrow:
    signed, half = to.name.startswith("i"), 1 << to.bits - 1
    whole = x.cast(dtypes.int32) & ((1 << to.bits) - 1)
    return ((whole ^ half) - half if signed else whole).cast(to.dtype)
  return limited(x, to, saturate) if to.bits == 8 and to.dtype.is_float else x.cast(to.dtype)


def limited(x: Tensor, to: Element, saturate: int) -> Tensor:
  """Numbers as 8-bit floats: what is too large is the greatest one with `saturate`, else infinite or NaN."""
  assert to.dtype is not None
  most = 448.0 if to.dtype is dtypes.float8_e4m3fn else 57344.0
  return (x.float().clip(-most, most) if saturate else x).cast(to.dtype)


@operator("Cast", 6, 9, 13, 19, 21, 23, 24, 25, 28)
def cast(op: Call, x: Tensor, *, to: int, saturate: int = 1, round_mode: str = "up") -> Tensor:
  return converted(op, x, element(to, op.node.label), saturate, round_mode)


@operator("CastLike", 15, 19, 21, 23, 24, 25)
def cast_like(op: Call, x: Tensor, target: Any, *, saturate: int = 1, round_mode: str = "up") -> Tensor:
  return converted(op, x, op.narrow(1) or ELEMENTS[code_of(target)], saturate, round_mode)


@operator("BitCast", 26)
def bit_cast(op: Call, x: Tensor, *, to: int) -> Tensor:
  kind = element(to, op.node.label)
  if kind.narrow or op.narrow(0) is not None: raise op.unsupported(f"bits of {kind.name}")
  assert kind.dtype is not None
  return bits(x, kind.dtype)


def bits(x: Tensor, dtype: DType) -> Tensor:
  """The bits of each element as another type of the size."""
  if dtype.is_bool: return x.ne(0)
  return x.cast(dtypes.uint8).bitcast(dtype) if x.dtype.is_bool else x.bitcast(dtype)


@operator("Identity", 1, 13, 14, 16, 19, 21, 23, 24, 25)
def identity(op: Call, x: Any) -> Any:
  op.mark(op.narrow(0))
  return x


@operator("Dropout", 7, 10)
def dropout_of_inference(op: Call, x: Tensor, *, ratio: float = 0.5) -> Any:
  """In inference, which is what these versions are for, the value as it is."""
  return (+x, x.ones_like(dtype=dtypes.bool)) if op.outputs > 1 else +x


@operator("Dropout", 12, 13, 22)
def dropout(op: Call, x: Tensor, ratio: Tensor | None, training_mode: Host | None, *, seed: int | None = None) -> Any:
  """In training: zeros with probability `ratio`, by tinyhw's own random numbers."""
  if training_mode is None or not bool(training_mode.reshape(-1)[0]):
    return (+x, x.ones_like(dtype=dtypes.bool)) if op.outputs > 1 else +x
  part = ratio if ratio is not None else 0.5
  kept = Tensor.rand(*x.shape, device=x.device) >= part
  scale = 1 / (1 - part)
  return kept.where(x * scale, 0).cast(x.dtype), kept
