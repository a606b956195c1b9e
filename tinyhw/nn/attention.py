"""Attention with several heads, and transformers made of it: names, shapes, parameters and values are PyTorch's."""
from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.function.spelling import made_by_any_spelling
from tinyhw.nn.layers import Dropout, LayerNorm, Linear
from tinyhw.nn.module import Layer, Module, ModuleList, Parameter
from tinyhw.tensor.tensor import Tensor

Activation = str | Callable[[Tensor], Tensor]


def _added(mask: Tensor, like: Tensor) -> Tensor:
  """A mask as what is added to scores: -inf where a bool is true, which is where nobody looks."""
  return mask.where(-math.inf, 0.0).cast(like.dtype) if mask.dtype.is_bool else mask.cast(like.dtype)


def attended(query: Tensor, key: Tensor, value: Tensor, heads: int, key_padding_mask: Tensor | None,
             attn_mask: Tensor | None, dropout: float) -> tuple[Tensor, Tensor]:
  """(what each place of the query gets, (length, batch, size); the weights, (batch, heads, length, keys)), of what was
  projected already, each (length, batch, size)."""
  length, batch, size = query.shape
  keys = key.shape[0]
  def split(x: Tensor) -> Tensor: return x.reshape(x.shape[0], batch, heads, x.shape[2] // heads).permute(1, 2, 0, 3)
  scores = split(query) * (size // heads) ** -0.5 @ split(key).transpose(-2, -1)
  if attn_mask is not None:
    if attn_mask.shape not in ((length, keys), (batch * heads, length, keys)):
      raise InvalidShape(f"attn_mask of shape {attn_mask.shape}",
                         hint=f"give {(length, keys)} or {(batch * heads, length, keys)}")
    wide = attn_mask if attn_mask.ndim == 2 else attn_mask.reshape(batch, heads, length, keys)
    scores = scores + _added(wide, scores)
  if key_padding_mask is not None:
    if key_padding_mask.shape != (batch, keys):
      raise InvalidShape(f"key_padding_mask of shape {key_padding_mask.shape}", hint=f"give {(batch, keys)}")
    scores = scores + _added(key_padding_mask, scores).reshape(batch, 1, 1, keys)
  weights = scores.softmax(-1).dropout(dropout)
  return (weights @ split(value)).permute(2, 0, 1, 3).reshape(length, batch, -1), weights


def _more_keys(key: Tensor, value: Tensor, bias_k: Tensor | None, bias_v: Tensor | None, zeros: bool,
               key_padding_mask: Tensor | None,
               attn_mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
  """Keys and values (keys, batch, size) with those that a layer has of its own, and masks that let the query look
  there."""
  def longer(mask: Tensor | None) -> Tensor | None:
    if mask is None: return None
    return mask.cat(Tensor.zeros((*mask.shape[:-1], 1), device=mask.device, dtype=mask.dtype), dim=-1)
  if bias_k is not None and bias_v is not None:
    key, value = (x.cat(b.expand(1, x.shape[1], x.shape[2]), dim=0) for x, b in ((key, bias_k), (value, bias_v)))
    attn_mask, key_padding_mask = longer(attn_mask), longer(key_padding_mask)
  if zeros:
    key, value = (x.cat(x[:1].zeros_like(), dim=0) for x in (key, value))
    attn_mask, key_padding_mask = longer(attn_mask), longer(key_padding_mask)
  return key, value, key_padding_mask, attn_mask


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
    key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
  """What `MultiheadAttention` does with its weights: a query (length, batch, size), keys and values (keys, batch, ...),
  or all without a batch. `static_k` and `static_v`, (batch * heads, keys, size / heads), are taken as they are."""
  if is_causal and attn_mask is None:
    raise InvalidArgument("is_causal without attn_mask", hint="it says what the mask is: give that too")
  if (alone := query.ndim == 2):
    query, key, value = (x.unsqueeze(1) for x in (query, key, value))
    if key_padding_mask is not None: key_padding_mask = key_padding_mask.unsqueeze(0)
  if query.shape[-1] != embed_dim_to_check or embed_dim_to_check % num_heads:
    raise InvalidShape(f"a query of shape {query.shape} for {embed_dim_to_check} numbers in {num_heads} heads")
  separate = (q_proj_weight, k_proj_weight, v_proj_weight)
  weights = separate if use_separate_proj_weight else (None,) * 3 if in_proj_weight is None else in_proj_weight.chunk(3)
  if any(w is None for w in weights):
    raise InvalidArgument("attention without the weights of its projections",
                          hint="in_proj_weight, or the three of use_separate_proj_weight")
  biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
  query, key, value = (x.linear(w.transpose(), b) for x, w, b in zip((query, key, value), weights, biases)
                       if w is not None)
  def given(x: Tensor | None, other: Tensor) -> Tensor:
    if x is None: return other
    batch = query.shape[1]
    return x.reshape(batch, num_heads, *x.shape[1:]).permute(2, 0, 1, 3).reshape(x.shape[1], batch, -1)
  key, value, key_padding_mask, attn_mask = _more_keys(key, value, bias_k, bias_v, False, key_padding_mask, attn_mask)
  key, value, key_padding_mask, attn_mask = _more_keys(given(static_k, key), given(static_v, value), None, None,
                                                       add_zero_attn, key_padding_mask, attn_mask)
  with Tensor.train(training):
    found, shares = attended(query, key, value, num_heads, key_padding_mask, attn_mask, dropout_p)
  found = found.linear(out_proj_weight.transpose(), out_proj_bias)
  if average_attn_weights: shares = shares.mean(1)
  if alone: found, shares = found.squeeze(1), shares.squeeze(0)
  return found, shares if need_weights else None


class MultiheadAttention(Layer):
  """Attention of a query (length, batch, `embed_dim`) to keys and values (keys, batch, `kdim`, `vdim`) by `num_heads`
  heads: (what it gets, the weights). With `batch_first` the batch is the first axis; all may come without one.

  True in a bool mask is where nobody looks; other masks are added to the scores. `in_proj_weight` is the three
  projections, one below the other; where keys or values have sizes of their own they are `q_proj_weight` and so on.
  """

  def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
               add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
               device: str | None = None):
    if num_heads < 1 or embed_dim < 1 or embed_dim % num_heads:
      raise InvalidArgument(f"{embed_dim} numbers in {num_heads} heads", hint="each has as many")
    self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
    self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
    self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
    def made(*shape: int) -> Parameter: return Parameter(Tensor.xavier_uniform(*shape, device=device))
    alike = self.kdim == self.vdim == embed_dim
    self.in_proj_weight = made(3 * embed_dim, embed_dim) if alike else None
    self.q_proj_weight, self.k_proj_weight, self.v_proj_weight = (
      None if alike else made(embed_dim, size) for size in (embed_dim, self.kdim, self.vdim))
    self.in_proj_bias = Parameter(Tensor.zeros(3 * embed_dim, device=device)) if bias else None
    self.bias_k, self.bias_v = (Parameter(Tensor.xavier_normal(1, 1, embed_dim, device=device)) if add_bias_kv else None
                                for _ in range(2))
    self.out_proj = Linear(embed_dim, embed_dim, bias, device)
    if self.out_proj.bias is not None: self.out_proj.bias = Parameter(Tensor.zeros(embed_dim, device=device))

  def extra_repr(self) -> str:
    """What it is made of."""
    return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}"

  def _projected(self, given: tuple[Tensor, Tensor, Tensor]) -> list[Tensor]:
    own = [w for w in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight) if w is not None]
    weights: Sequence[Tensor] = own if self.in_proj_weight is None else self.in_proj_weight.chunk(3)
    biases = (None, None, None) if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
    return [x.linear(w.transpose(), b) for x, w, b in zip(given, weights, biases)]

  def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
              need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
              is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
    if is_causal and attn_mask is None:
      raise InvalidArgument("is_causal without attn_mask", hint="it says what the mask is: give that too")
    if (alone := query.ndim == 2):
      query, key, value = (x.unsqueeze(1) for x in (query, key, value))
      if key_padding_mask is not None: key_padding_mask = key_padding_mask.unsqueeze(0)
    elif self.batch_first: query, key, value = (x.transpose(0, 1) for x in (query, key, value))
    for name, x, size in (("query", query, self.embed_dim), ("key", key, self.kdim), ("value", value, self.vdim)):
      if x.ndim != 3 or x.shape[-1] != size or x.shape[1] != query.shape[1]:
        raise InvalidShape(f"a {name} of shape {x.shape}", hint=f"give (length, batch, {size}), or no batch; batch "
                           "first if so made")
    if key.shape[0] != value.shape[0]: raise InvalidShape(f"keys of shape {key.shape}, values of {value.shape}")
    query, key, value = self._projected((query, key, value))
    key, value, key_padding_mask, attn_mask = _more_keys(key, value, self.bias_k, self.bias_v, self.add_zero_attn,
                                                         key_padding_mask, attn_mask)
    found, weights = attended(query, key, value, self.num_heads, key_padding_mask, attn_mask, self.dropout)
    found = self.out_proj(found)
    if average_attn_weights: weights = weights.mean(1)
    if alone: found, weights = found.squeeze(1), weights.squeeze(0)
    elif self.batch_first: found = found.transpose(0, 1)
    return found, weights if need_weights else None


def _activation(given: Activation) -> Callable[[Tensor], Tensor]:
  if callable(given): return given
  if given == "relu": return Tensor.relu
  if given == "gelu": return _exact_gelu
  raise InvalidArgument(f"activation {given!r}", hint='"relu", "gelu" or a function')


def _exact_gelu(x: Tensor) -> Tensor: return x.gelu(approximate="none")


class _Block(Layer):
  """What the layers of encoder and decoder share."""
  crosses = False             # whether it looks at what an encoder gave, too

  def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
               activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
               norm_first: bool = False, bias: bool = True, device: str | None = None):
    def attention() -> MultiheadAttention:
      return MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, device=device)
    self.self_attn = attention()
    if self.crosses: self.multihead_attn = attention()
    self.linear1, self.dropout = Linear(d_model, dim_feedforward, bias, device), Dropout(dropout)
    self.linear2 = Linear(dim_feedforward, d_model, bias, device)
    for number in range(1, 3 + self.crosses):
      setattr(self, f"norm{number}", LayerNorm(d_model, layer_norm_eps, bias=bias, device=device))
    for number in range(1, 3 + self.crosses): setattr(self, f"dropout{number}", Dropout(dropout))
    self.norm_first, self.activation = norm_first, _activation(activation)

  def _around(self, number: int, x: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
    """x and what a part makes of it, with the norm before or after."""
    norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
    found: Tensor = x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))
    return found

  def _looked(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, causal: bool) -> Tensor:
    found: Tensor = self.self_attn(x, x, x, padding, False, mask, is_causal=causal)[0]
    return found

  def _fed(self, x: Tensor) -> Tensor:
    found: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
    return found


@made_by_any_spelling
class TransformerEncoderLayer(_Block):
  """Attention of a sequence to itself and two linear layers, each with a norm and what it was given added."""

  def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
              is_causal: bool = False) -> Tensor:
    x = self._around(1, src, lambda x: self._looked(x, src_mask, src_key_padding_mask, is_causal))
    return self._around(2, x, self._fed)


@made_by_any_spelling
class TransformerDecoderLayer(_Block):
  """As an encoder's layer, with attention to what an encoder gave between its two parts."""
  crosses = True

  def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
              tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
              tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
    x = self._around(1, tgt, lambda x: self._looked(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
    x = self._around(2, x, lambda x: self.multihead_attn(x, memory, memory, memory_key_padding_mask, False,
                                                         memory_mask, is_causal=memory_is_causal)[0])
    return self._around(3, x, self._fed)


class _Stack(Layer):
  """Copies of a layer, one after the other."""

  def __init__(self, layer: Module, num_layers: int, norm: Module | None):
    self.layers = ModuleList(copy.deepcopy(layer) for _ in range(num_layers))
    self.num_layers, self.norm = num_layers, norm

  def _through(self, x: Tensor, *args: Any) -> Tensor:
    for layer in self.layers: x = layer(x, *args)
    return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
  """`num_layers` copies of an encoder's layer, and a norm after them if given. Nothing is said by
  `enable_nested_tensor` and `mask_check`."""

  def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None,
               enable_nested_tensor: bool = True, mask_check: bool = True):
    super().__init__(encoder_layer, num_layers, norm)

  def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
              is_causal: bool | None = None) -> Tensor:
    return self._through(src, mask, src_key_padding_mask, bool(is_causal))


class TransformerDecoder(_Stack):
  """`num_layers` copies of a decoder's layer, and a norm after them if given."""

  def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
    super().__init__(decoder_layer, num_layers, norm)

  def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
              tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
              tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
    return self._through(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                         bool(tgt_is_causal), memory_is_causal)


class Transformer(Layer):
  """An encoder and a decoder that looks at what it gives; all matrices begin as `xavier_uniform` has them."""

  def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
               dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = "relu",
               custom_encoder: Module | None = None, custom_decoder: Module | None = None,
               layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
               device: str | None = None):
    options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
               device)
    def norm() -> LayerNorm: return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device)
    self.encoder = custom_encoder if custom_encoder is not None else TransformerEncoder(
      TransformerEncoderLayer(*options), num_encoder_layers, norm())
    self.decoder = custom_decoder if custom_decoder is not None else TransformerDecoder(
      TransformerDecoderLayer(*options), num_decoder_layers, norm())
    self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
    with Tensor.no_grad():
      for p in self.parameters():
        if p.ndim > 1: p.assign(Tensor.xavier_uniform(*p.shape, device=p.device, dtype=p.dtype))

  def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
              memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
              tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
              src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
              memory_is_causal: bool = False) -> Tensor:
    memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
    found: Tensor = self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                                 tgt_is_causal, memory_is_causal)
    return found

  @staticmethod
  def generate_square_subsequent_mask(sz: int, device: str | None = None) -> Tensor:
    """What is added to scores so that no place looks at a later one."""
    return Tensor.full((sz, sz), -math.inf, device=device).triu(1)
