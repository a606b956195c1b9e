"""Quantization: integers that stand for floats, by a scale and a zero point."""
from __future__ import annotations

from tinyhw.ir.dtype import DType, dtypes
from tinyhw.nn.onnx import minifloat
from tinyhw.nn.onnx.operators.elementwise import limited
from tinyhw.nn.onnx.operators.window import convolved
from tinyhw.nn.onnx.run import Call, code_of
from tinyhw.nn.onnx.table import operator
from tinyhw.nn.onnx.values import ELEMENTS, Element, element
from tinyhw.tensor.tensor import Tensor

Ints = tuple[int, ...]


def _spread(op: Call, part: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
  """A scale or zero point as it meets the input: one for all, one for each position of an axis, or for each block."""
  if part.numel() == 1: return part.reshape([1] * x.ndim)
  at = x._axis(axis)
  if part.ndim == 1 and not block:
    if part.shape[0] != x.shape[at]: raise op.wrong(f"{part.shape[0]} scales for axis {axis} of shape {x.shape}")
    return part.reshape([-1 if i == at else 1 for i in range(x.ndim)])
  if part.ndim != x.ndim or not block:
    raise op.wrong(f"scales of shape {part.shape} for shape {x.shape} in blocks of {block}")
  return part.repeat_interleave(block, at).shrink([(0, n) for n in x.shape])


def _whole(x: Tensor, zero: Tensor | None, to: Element) -> Tensor:
  """Rounded to even, moved by the zero point, limited to a type."""
  low, high = to.limits
  assert to.dtype is not None
  moved = x.round() if zero is None else x.round() + zero.cast(x.dtype)
  return moved.clip(low, high).cast(to.dtype)


@operator("QuantizeLinear", 10, 13, 19, 21, 23, 24, 25, 28)
def quantize_linear(op: Call, x: Tensor, scale: Tensor, zero_point: Tensor | None, *, axis: int = 1,
                    block_size: int = 0,
                    output_dtype: int = 0, precision: int = 0, saturate: int = 1) -> Tensor:
  """saturate(round(x / scale) + zero_point)."""
  if zero_point is not None: to = op.narrow(2) or ELEMENTS[code_of(zero_point)]
  else: to = element(output_dtype or 2, op.node.label)
  assert to.dtype is not None
  op.mark(to)
  wide = element(precision, op.node.label).dtype if precision else scale.dtype
  assert wide is not None
  quotient = x.cast(wide) / _spread(op, scale, x, axis, block_size).cast(wide)
  # The zero point, which is 0: no zero is negative behind it.
  if to.coded: return minifloat.encoded(quotient + 0.0, to.name, bool(saturate))
  if to.dtype.is_float: return limited(quotient, to, saturate)
  zero = None if zero_point is None else _spread(op, zero_point, x, axis, block_size)
  return _whole(quotient.cast(dtypes.float32) if wide.bits == 16 else quotient, zero, to)


@operator("DequantizeLinear", 10, 13, 19, 21, 23, 24, 25, 28)
def dequantize_linear(op: Call, x: Tensor, scale: Tensor, zero_point: Tensor | None, *, axis: int = 1,
                      block_size: int = 0,
                      output_dtype: int = 0) -> Tensor:
  """(x - zero_point) * scale."""
  source = op.narrow(0)
  if source is not None and source.coded: x = minifloat.decoded(x, source.name)
  wide = x.cast(dtypes.float32) if x.dtype.is_float else x.cast(dtypes.int32)
  if zero_point is not None and not x.dtype.is_float: wide = wide - _spread(op, zero_point, x, axis,
                                                                            block_size).cast(wide.dtype)
  found = wide.cast(dtypes.float32) * _spread(op, scale, x, axis, block_size).cast(dtypes.float32)
  to = element(output_dtype, op.node.label).dtype if output_dtype else scale.dtype
  assert isinstance(to, DType)
  return found.cast(to)


@operator("DynamicQuantizeLinear", 11)
def dynamic_quantize_linear(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
  """By the range of the input, which 0 is in."""
  greatest, least = x.max().maximum(0), x.min().minimum(0)
  scale = ((greatest - least) / 255).contiguous()
  zero = (-least / scale).round().clip(0, 255).cast(dtypes.uint8)
  return _whole(x / scale, zero, ELEMENTS[2]), scale, zero


def _less(x: Tensor, zero: Tensor | None, shape: list[int]) -> Tensor:
  """An integer operand less its zero point, in int32."""
  wide = x.cast(dtypes.int32)
  return wide if zero is None else wide - (zero.reshape(shape) if zero.ndim == 1 else zero).cast(dtypes.int32)


def _rows(zero: Tensor | None, x: Tensor) -> list[int]:
  """The shape of one zero point (or scale) for each row of a matrix."""
  return [1] if zero is None or zero.numel() == 1 or x.ndim < 2 else [-1, 1]


def _integer_product(a: Tensor, b: Tensor, a_zero: Tensor | None, b_zero: Tensor | None) -> Tensor:
  return _less(a, a_zero, _rows(a_zero, a)).matmul(_less(b, b_zero, [-1]))


@operator("MatMulInteger", 10)
def matmul_integer(a: Tensor, b: Tensor, a_zero_point: Tensor | None, b_zero_point: Tensor | None) -> Tensor:
  return _integer_product(a, b, a_zero_point, b_zero_point)


@operator("QLinearMatMul", 10, 21)
def q_linear_matmul(a: Tensor, a_scale: Tensor, a_zero_point: Tensor, b: Tensor, b_scale: Tensor, b_zero_point: Tensor,
                    y_scale: Tensor, y_zero_point: Tensor) -> Tensor:
  product = _integer_product(a, b, a_zero_point, b_zero_point)
  def fit(x: Tensor) -> Tensor:
    return (x.reshape(_rows(x, a)) if x.ndim == 1 else x).cast(dtypes.float32)
  scale = fit(a_scale) * b_scale.cast(dtypes.float32) / fit(y_scale)
  return _whole(product.cast(dtypes.float32) * scale, fit(y_zero_point), ELEMENTS[code_of(y_zero_point)])


@operator("ConvInteger", 10)
def conv_integer(op: Call, x: Tensor, w: Tensor, x_zero_point: Tensor | None, w_zero_point: Tensor | None, *,
                 auto_pad: str = "NOTSET", dilations: Ints | None = None, group: int = 1,
                 kernel_shape: Ints | None = None, pads: Ints | None = None, strides: Ints | None = None) -> Tensor:
  """What is padded stands for 0."""
  wide = _less(x, x_zero_point, [1])
  weights = _less(w, w_zero_point, [-1, *(1,) * (w.ndim - 1)])
  return convolved(op, wide, weights, None, auto_pad, dilations, group, kernel_shape, pads, strides)


@operator("QLinearConv", 10)
def q_linear_conv(op: Call, x: Tensor, x_scale: Tensor, x_zero_point: Tensor, w: Tensor, w_scale: Tensor,
                  w_zero_point: Tensor, y_scale: Tensor, y_zero_point: Tensor, bias: Tensor | None, *,
                  auto_pad: str = "NOTSET", dilations: Ints | None = None, group: int = 1,
                  kernel_shape: Ints | None = None, pads: Ints | None = None, strides: Ints | None = None) -> Tensor:
  sums = conv_integer(op, x, w, x_zero_point, w_zero_point, auto_pad=auto_pad, dilations=dilations, group=group,
                      kernel_shape=kernel_shape, pads=pads, strides=strides)
  channels = [1, -1, *(1,) * (x.ndim - 2)]
  if bias is not None: sums = sums + bias.reshape(channels)
  scale = x_scale.reshape(1) * w_scale / y_scale.reshape(1)
  found = sums.cast(dtypes.float32) * scale.reshape(channels if scale.numel() > 1 else [1] * x.ndim)
  return _whole(found, y_zero_point.reshape(()), ELEMENTS[code_of(y_zero_point)])


