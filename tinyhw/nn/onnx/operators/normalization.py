"""Operators that bring elements to a common scale, and losses."""
from __future__ import annotations

import math
from typing import Any

from tinyhw.nn.onnx.run import Call
from tinyhw.nn.onnx.table import operator
from tinyhw.nn.onnx.values import element
from tinyhw.tensor.tensor import Tensor

Ints = tuple[int, ...]


def _rows(x: Tensor, axis: int) -> Tensor:
  """As a matrix: the axes before one, and the others (what Softmax meant before opset 13)."""
  at = axis % x.ndim if axis < 0 else axis
  return x.reshape(math.prod(x.shape[:at]), math.prod(x.shape[at:]))


@operator("Softmax", 1, 11)
def softmax_of_rows(x: Tensor, *, axis: int = 1) -> Tensor: return _rows(x, axis).softmax(1).reshape(x.shape)


@operator("Softmax", 13)
def softmax(x: Tensor, *, axis: int = -1) -> Tensor: return x.softmax(axis)


@operator("LogSoftmax", 1, 11)
def log_softmax_of_rows(x: Tensor, *, axis: int = 1) -> Tensor: return _rows(x, axis).log_softmax(1).reshape(x.shape)


@operator("LogSoftmax", 13)
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor: return x.log_softmax(axis)


def along_channels(vector: Tensor, rank: int) -> Tensor:
  """A vector along axis 1 of several."""
  return vector.reshape([-1 if i == 1 else 1 for i in range(rank)])


@operator("BatchNormalization", 7, 9)
def batch_norm_of_inference(op: Call, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, *,
                            epsilon: float = 1e-5, momentum: float = 0.9, spatial: int = 1) -> Tensor:
  if op.outputs > 1: raise op.unsupported("training (several outputs) before opset 14")
  if not spatial: raise op.unsupported("spatial=0")
  return _normalized(x, scale, bias, mean, var, epsilon)


@operator("BatchNormalization", 14, 15)
def batch_norm(op: Call, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, *, epsilon: float = 1e-5,
               momentum: float = 0.9, training_mode: int = 0) -> Any:
  """By the mean and variance that are given; in training by the batch's own, which become part of those given."""
  if not training_mode: return _normalized(x, scale, bias, mean, var, epsilon)
  axes = tuple(i for i in range(x.ndim) if i != 1)
  wide = x.float() if x.dtype.bits == 16 else x
  own = wide.mean(axes)
  spread = (wide - along_channels(own, x.ndim)).square().mean(axes)
  running = [(given * momentum + now.cast(given.dtype) * (1 - momentum)) for given, now in ((mean, own), (var, spread))]
  return _normalized(x, scale, bias, own, spread, epsilon), *running


def _normalized(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, epsilon: float) -> Tensor:
  scale, bias, mean, deviation = (along_channels(v, x.ndim) for v in (scale, bias, mean, (var + epsilon).sqrt()))
  return ((x - mean) / deviation * scale + bias).cast(x.dtype)


@operator("InstanceNormalization", 6, 22)
def instance_norm(op: Call, x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5) -> Tensor:
  if x.ndim < 3: raise op.wrong(f"shape {x.shape} has no axes behind the channels")
  return x.layernorm(tuple(range(2, x.ndim)), epsilon) * along_channels(scale, x.ndim) + along_channels(bias, x.ndim)


@operator("LayerNormalization", 17)
def layer_norm(op: Call, x: Tensor, scale: Tensor, bias: Tensor | None, *, axis: int = -1, epsilon: float = 1e-5,
               stash_type: int = 1) -> Any:
  """Mean 0 and variance 1 over the axes from one on; the mean and 1 / deviation too."""
  stash = element(stash_type, op.node.label).dtype
  assert stash is not None
  wide = x.cast(stash)
  axes = tuple(range(x._axis(axis), x.ndim))
  mean = wide.mean(axes, keepdim=True)
  inverse = 1 / ((wide - mean).square().mean(axes, keepdim=True) + epsilon).sqrt()
  result = ((wide - mean) * inverse).cast(x.dtype) * scale
  if bias is not None: result = result + bias
  return (result, mean, inverse) if op.outputs > 1 else result


@operator("RMSNormalization", 23)
def rms_norm(op: Call, x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5,
             stash_type: int = 1) -> Tensor:
  stash = element(stash_type, op.node.label).dtype
  assert stash is not None
  wide = x.cast(stash)
  axes = tuple(range(x._axis(axis), x.ndim))
  return (wide / (wide.square().mean(axes, keepdim=True) + epsilon).sqrt()).cast(x.dtype) * scale


@operator("GroupNormalization", 18)
def group_norm_of_groups(op: Call, x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int,
                         epsilon: float = 1e-5) -> Tensor:
  """With a scale and a bias for each group."""
  return _grouped(op, x, scale, bias, num_groups, epsilon, True)


@operator("GroupNormalization", 21)
def group_norm(op: Call, x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5,
               stash_type: int = 1) -> Tensor:
  """With a scale and a bias for each channel."""
  return _grouped(op, x, scale, bias, num_groups, epsilon, False)


def _grouped(op: Call, x: Tensor, scale: Tensor, bias: Tensor, groups: int, epsilon: float, by_group: bool) -> Tensor:
  if x.ndim < 2 or groups < 1 or x.shape[1] % groups: raise op.wrong(f"{groups} groups of shape {x.shape}")
  parts = x.reshape(x.shape[0], groups, -1).layernorm(-1, epsilon)
  if by_group: return (parts * scale.reshape(1, -1, 1) + bias.reshape(1, -1, 1)).reshape(x.shape)
  return parts.reshape(x.shape) * along_channels(scale, x.ndim) + along_channels(bias, x.ndim)


@operator("LpNormalization", 1, 22)
def lp_norm(op: Call, x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
  if p not in (1, 2): raise op.wrong(f"p={p} is neither 1 nor 2")
  norm = x.abs().sum(axis, keepdim=True) if p == 1 else x.square().sum(axis, keepdim=True).sqrt()
  return norm.eq(0).where(0, x / norm.eq(0).where(1, norm)).cast(x.dtype)


@operator("LRN", 1, 13)
def lrn(x: Tensor, *, alpha: float = 0.0001, beta: float = 0.75, bias: float = 1.0, size: int) -> Tensor:
  """By the squares of the neighbouring channels."""
  around = [(0, 0)] * x.ndim
  around[1] = (size - 1) // 2, size - 1 - (size - 1) // 2
  total = x.square().pad(around).unfold(1, size, 1).sum(-1)
  return x / (total * (alpha / size) + bias).pow(beta)


@operator("MeanVarianceNormalization", 9, 13)
def mean_variance_norm(x: Tensor, *, axes: Ints = (0, 2, 3)) -> Tensor:
  apart = x - x.mean(axes, keepdim=True)
  return apart / (apart.square().mean(axes, keepdim=True).sqrt() + 1e-9)


# *** losses ***


def _picked(op: Call, log: Tensor, target: Tensor, weight: Tensor | None, reduction: str,
            ignored: int | None) -> Tensor:
  """The negative of the elements of axis 1 at the targets, weighted; a target that is ignored counts for nothing."""
  if reduction not in ("none", "mean", "sum"): raise op.wrong(f"reduction {reduction!r} is none of none, mean, sum")
  counts = None if ignored is None else target.ne(ignored)
  safe = target if counts is None else counts.where(target, 0)
  found = -log.gather(1, safe.unsqueeze(1)).squeeze(1)
  each = found.ones_like() if weight is None else weight[safe]
  if counts is not None: each = counts.where(each, 0)
  found = found * each
  if counts is not None: found = counts.where(found, 0)
  if reduction == "none": return found
  return found.sum() if reduction == "sum" else found.sum() / each.sum()


@operator("NegativeLogLikelihoodLoss", 12, 13, 22)
def nll_loss(op: Call, x: Tensor, target: Tensor, weight: Tensor | None, *, ignore_index: int | None = None,
             reduction: str = "mean") -> Tensor:
  return _picked(op, x, target, weight, reduction, ignore_index).cast(x.dtype)


@operator("SoftmaxCrossEntropyLoss", 12, 13)
def cross_entropy_loss(op: Call, scores: Tensor, labels: Tensor, weights: Tensor | None, *,
                       ignore_index: int | None = None, reduction: str = "mean") -> Any:
  log = scores.log_softmax(1)
  loss = _picked(op, log, labels, weights, reduction, ignore_index).cast(scores.dtype)
  return (loss, log) if op.outputs > 1 else loss
