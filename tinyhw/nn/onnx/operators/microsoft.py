"""The operators of com.microsoft that optimizers and exporters put in most often."""
from __future__ import annotations

import math
from typing import Any

from tinyhw.nn.onnx.operators.normalization import layer_norm as standard_layer_norm
from tinyhw.nn.onnx.run import Call
from tinyhw.nn.onnx.table import MICROSOFT, operator
from tinyhw.tensor.tensor import Tensor


@operator("Gelu", 1, domain=MICROSOFT)
def gelu(x: Tensor) -> Tensor: return x.gelu("none")


@operator("FastGelu", 1, domain=MICROSOFT)
def fast_gelu(x: Tensor, bias: Tensor | None) -> Tensor: return (x if bias is None else x + bias).gelu("tanh")


@operator("QuickGelu", 1, domain=MICROSOFT)
def quick_gelu(x: Tensor, *, alpha: float = 1.702) -> Tensor: return x * (x * alpha).sigmoid()


@operator("BiasGelu", 1, domain=MICROSOFT)
def bias_gelu(x: Tensor, bias: Tensor) -> Tensor: return (x + bias).gelu("none")


def _activated(op: Call, x: Tensor, name: str) -> Tensor:
  if name not in ("Relu", "Tanh", "Sigmoid", ""): raise op.unsupported(f"activation {name}")
  return {"Relu": x.relu, "Tanh": x.tanh, "Sigmoid": x.sigmoid, "": x.__pos__}[name]()


@operator("FusedMatMul", 1, domain=MICROSOFT)
def fused_matmul(op: Call, a: Tensor, b: Tensor, *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
                 transBatchA: int = 0, transBatchB: int = 0) -> Tensor:
  if transBatchA or transBatchB: raise op.unsupported("transBatchA, transBatchB")
  product = (a.transpose(-1, -2) if transA else a).matmul(b.transpose(-1, -2) if transB else b)
  return product if alpha == 1 else product * alpha


@operator("FusedGemm", 1, domain=MICROSOFT)
def fused_gemm(op: Call, a: Tensor, b: Tensor, c: Tensor | None, *, activation: str = "", alpha: float = 1.0,
               beta: float = 1.0, transA: int = 0, transB: int = 0) -> Tensor:
  product = (a.transpose(0, 1) if transA else a).matmul(b.transpose(0, 1) if transB else b) * alpha
  return _activated(op, product if c is None else product + c * beta, activation)


@operator("LayerNormalization", 1, domain=MICROSOFT)
def layer_norm(op: Call, x: Tensor, scale: Tensor, bias: Tensor | None, *, axis: int = -1, epsilon: float = 1e-5,
               stash_type: int = 1) -> Any:
  return standard_layer_norm(op, x, scale, bias, axis=axis, epsilon=epsilon, stash_type=stash_type)


def _skip(op: Call, x: Tensor, skip: Tensor, bias: Tensor | None) -> Tensor:
  total = x + skip
  return total if bias is None else total + bias


@operator("SkipLayerNormalization", 1, domain=MICROSOFT)
def skip_layer_norm(op: Call, x: Tensor, skip: Tensor, gamma: Tensor, beta: Tensor | None, bias: Tensor | None, *,
                    epsilon: float = 1e-12) -> Any:
  """The normalized sum of two, and in the fourth place the sum."""
  total = _skip(op, x, skip, bias)
  mean = total.mean(-1, keepdim=True)
  inverse = 1 / ((total - mean).square().mean(-1, keepdim=True) + epsilon).sqrt()
  found = (total - mean) * inverse * gamma
  if beta is not None: found = found + beta
  return (found, mean, inverse, total) if op.outputs > 1 else found


@operator("SimplifiedLayerNormalization", 1, domain=MICROSOFT)
def simplified_layer_norm(op: Call, x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5,
                          stash_type: int = 1) -> Any:
  axes = tuple(range(x._axis(axis), x.ndim))
  inverse = 1 / (x.float().square().mean(axes, keepdim=True) + epsilon).sqrt()
  found = (x.float() * inverse).cast(x.dtype) * scale
  return (found, inverse) if op.outputs > 1 else found


@operator("SkipSimplifiedLayerNormalization", 1, domain=MICROSOFT)
def skip_simplified_layer_norm(op: Call, x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None, *,
                               epsilon: float = 1e-5) -> Any:
  total = _skip(op, x, skip, bias)
  inverse = 1 / (total.square().mean(-1, keepdim=True) + epsilon).sqrt()
  found = total * inverse * gamma
  return (found, inverse, inverse, total) if op.outputs > 1 else found


@operator("MultiHeadAttention", 1, domain=MICROSOFT)
def multi_head_attention(op: Call, query: Tensor, key: Tensor | None, value: Tensor | None, bias: Tensor | None,
                         key_padding_mask: Tensor | None, attention_bias: Tensor | None, past_key: Tensor | None,
                         past_value: Tensor | None, *, mask_filter_value: float = -10000.0, num_heads: int,
                         scale: float = 0.0, unidirectional: int = 0) -> Any:
  """Attention of (batch, positions, hidden) queries, keys and values; keys and values of before may go in front."""
  if key is None or value is None or query.ndim != 3: raise op.unsupported("packed queries, keys and values")
  if key.ndim == 4: raise op.unsupported("keys that are split into heads")
  width, inner = query.shape[2], value.shape[2]
  if width % num_heads or inner % num_heads: raise op.wrong(f"{num_heads} heads of {width} and {inner}")
  if bias is not None:
    query, key, value = query + bias[:width], key + bias[width:2 * width], value + bias[2 * width:]
  def heads(x: Tensor) -> Tensor: return x.reshape(*x.shape[:2], num_heads, -1).transpose(1, 2)
  q, k, v = heads(query), heads(key), heads(value)
  if past_key is not None and past_value is not None: k, v = past_key.cat(k, dim=2), past_value.cat(v, dim=2)
  scores = q.matmul(k.transpose(-1, -2)) * (scale or 1 / math.sqrt(q.shape[-1]))
  if attention_bias is not None: scores = scores + attention_bias
  if key_padding_mask is not None:
    if key_padding_mask.ndim != 2: raise op.unsupported(f"a key_padding_mask of {key_padding_mask.ndim} axes")
    scores = key_padding_mask.ne(0).unsqueeze(1).unsqueeze(1).where(scores, scores + mask_filter_value)
  if unidirectional:
    rows, columns = scores.shape[-2:]
    seen = Tensor.arange(columns, device=q.device) <= Tensor.arange(rows, device=q.device).unsqueeze(1) + (columns
                                                                                                           - rows)
    scores = seen.where(scores, -math.inf)
  found = scores.softmax(-1).matmul(v).transpose(1, 2).reshape(query.shape[0], query.shape[1], inner)
  return (found, k, v) if op.outputs > 1 else found
