"""PyTorch's `torch.nn.functional`: functions of tensors with its order of parameters and its defaults. Most are the
functions of Tensor of the same name, a row each; written out is what means something else there.
"""
from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from tinyhw.core.errors import InvalidArgument
from tinyhw.function.window import each
from tinyhw.tensor.tensor import Tensor

_REQUIRED: Final = inspect.Parameter.empty
_OLD: Final = ("size_average", "reduce")         # PyTorch's words of before `reduction`, which stand between others
_CONV: Final = "weight bias=None stride=1 padding=0 dilation=1 groups=1"
_BACK: Final = "weight bias=None stride=1 padding=0 output_padding=0 groups=1 dilation=1"
_MAX: Final = "kernel_size stride=None padding=0 dilation=1 ceil_mode=False return_indices=False"
_MEAN: Final = "kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True"
_LOSS: Final = "size_average=None reduce=None reduction='mean'"
_TABLE: Final = f"""
relu inplace=False
relu6 inplace=False
leaky_relu negative_slope=0.01 inplace=False
elu alpha=1.0 inplace=False
selu inplace=False
celu alpha=1.0 inplace=False
gelu approximate='none'
silu inplace=False
mish inplace=False
sigmoid
tanh
softplus beta=1.0 threshold=20.0
softsign
hardtanh min_val=-1.0 max_val=1.0 inplace=False
hardsigmoid inplace=False
hardswish inplace=False
hardshrink lambd=0.5
softshrink lambd=0.5
tanhshrink
logsigmoid
threshold threshold value inplace=False
glu dim=-1
prelu weight
normalize p=2.0 dim=1 eps=1e-12
one_hot num_classes=-1
pad pad mode='constant' value=None
conv1d {_CONV}
conv2d {_CONV}
conv3d {_CONV}
conv_transpose1d {_BACK}
conv_transpose2d {_BACK}
conv_transpose3d {_BACK}
max_pool1d {_MAX}
max_pool2d {_MAX}
max_pool3d {_MAX}
max_unpool1d indices kernel_size stride=None padding=0 output_size=None
max_unpool2d indices kernel_size stride=None padding=0 output_size=None
max_unpool3d indices kernel_size stride=None padding=0 output_size=None
avg_pool1d {_MEAN}
avg_pool2d {_MEAN} divisor_override=None
avg_pool3d {_MEAN} divisor_override=None
adaptive_avg_pool1d output_size
adaptive_avg_pool2d output_size
adaptive_avg_pool3d output_size
adaptive_max_pool1d output_size return_indices=False
adaptive_max_pool2d output_size return_indices=False
adaptive_max_pool3d output_size return_indices=False
lp_pool1d norm_type kernel_size stride=None ceil_mode=False
lp_pool2d norm_type kernel_size stride=None ceil_mode=False
lp_pool3d norm_type kernel_size stride=None ceil_mode=False
fractional_max_pool2d kernel_size output_size=None output_ratio=None return_indices=False _random_samples=None
fractional_max_pool3d kernel_size output_size=None output_ratio=None return_indices=False _random_samples=None
fold output_size kernel_size dilation=1 padding=0 stride=1
pixel_shuffle upscale_factor
pixel_unshuffle downscale_factor
channel_shuffle groups
interpolate size=None scale_factor=None mode='nearest' align_corners=None recompute_scale_factor=None antialias=False
upsample size=None scale_factor=None mode='nearest' align_corners=None
affine_grid size align_corners=False
grid_sample grid mode='bilinear' padding_mode='zeros' align_corners=False
batch_norm running_mean running_var weight=None bias=None training=False momentum=0.1 eps=1e-5
instance_norm running_mean=None running_var=None weight=None bias=None use_input_stats=True momentum=0.1 eps=1e-5
layer_norm normalized_shape weight=None bias=None eps=1e-5
group_norm num_groups weight=None bias=None eps=1e-5
rms_norm normalized_shape weight=None eps=None
local_response_norm size alpha=1e-4 beta=0.75 k=1.0
scaled_dot_product_attention key value attn_mask=None dropout_p=0.0 is_causal=False scale=None enable_gqa=False
embedding_bag weight offsets=None max_norm=None norm_type=2.0 scale_grad_by_freq=False mode='mean' sparse=False \
per_sample_weights=None include_last_offset=False padding_idx=None
cosine_similarity x2 dim=1 eps=1e-8
pairwise_distance x2 p=2.0 eps=1e-6 keepdim=False
pdist p=2.0
cross_entropy target weight=None size_average=None ignore_index=-100 reduce=None reduction='mean' label_smoothing=0.0
nll_loss target weight=None size_average=None ignore_index=-100 reduce=None reduction='mean'
mse_loss target {_LOSS} weight=None
l1_loss target {_LOSS} weight=None
smooth_l1_loss target {_LOSS} beta=1.0
huber_loss target reduction='mean' delta=1.0 weight=None
binary_cross_entropy target weight=None {_LOSS}
binary_cross_entropy_with_logits target weight=None {_LOSS} pos_weight=None
kl_div target {_LOSS} log_target=False
poisson_nll_loss target log_input=True full=False size_average=None eps=1e-8 reduce=None reduction='mean'
gaussian_nll_loss target var full=False eps=1e-6 reduction='mean'
hinge_embedding_loss target margin=1.0 {_LOSS}
cosine_embedding_loss input2 target margin=0.0 {_LOSS}
margin_ranking_loss input2 target margin=0.0 {_LOSS}
triplet_margin_loss positive negative margin=1.0 p=2.0 eps=1e-6 swap=False {_LOSS}
multilabel_margin_loss target {_LOSS}
multi_margin_loss target p=1 margin=1.0 weight=None {_LOSS}
soft_margin_loss target {_LOSS}
multilabel_soft_margin_loss target weight=None {_LOSS}
ctc_loss targets input_lengths target_lengths blank=0 reduction='mean' zero_infinity=False
"""


def _parameters(words: Sequence[str]) -> dict[str, Any]:
  """Names and defaults of a row."""
  found: dict[str, Any] = {}
  for word in words:
    name, given, default = word.partition("=")
    found[name] = ast.literal_eval(default) if given else _REQUIRED
  return found


def _made(name: str, defaults: dict[str, Any]) -> Callable[..., Any]:
  names = list(defaults)

  def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    if len(args) > len(names): raise TypeError(f"{name}() takes {len(names) + 1} arguments, not {len(args) + 1}")
    given = dict(zip(names, args))
    if twice := given.keys() & kwargs.keys(): raise TypeError(f"{name}() got {sorted(twice)[0]!r} twice")
    if unknown := kwargs.keys() - defaults.keys():
      raise TypeError(f"{name}() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    given = defaults | given | kwargs
    if missing := [key for key in names if given[key] is _REQUIRED]:
      raise TypeError(f"{name}() misses {missing[0]!r}")
    if old := [word for word in _OLD if given.pop(word, None) is not None]:
      raise InvalidArgument(f"{name} with {old[0]}", hint='use reduction="mean", "sum" or "none"')
    return getattr(input, name)(**given)

  function.__name__ = function.__qualname__ = name
  function.__doc__ = f"`input.{name}(...)`, with PyTorch's order of parameters and defaults."
  kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
  function.__signature__ = inspect.Signature([  # type: ignore[attr-defined]  # what `help` shows
    inspect.Parameter("input", kind), *(inspect.Parameter(n, kind, default=d) for n, d in defaults.items())])
  return function


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
  row.split()[0]: _made(row.split()[0], _parameters(row.split()[1:])) for row in _TABLE.strip().splitlines()}
"""Those that are a row, by their names."""
globals().update(FUNCTIONS)


def __getattr__(name: str) -> Any:
  raise AttributeError(f"module 'tinyhw.nn.functional' has no attribute {name!r}")


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
  """`input @ weight.T + bias`: weight is (out, in), or (in,)."""
  return input.linear(weight.transpose(), bias) if weight.ndim == 2 else (input * weight).sum(-1) + (bias or 0.0)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
  """`sum input1[i] * weight[k, i, j] * input2[j] + bias[k]`."""
  found = Tensor.einsum("...i,kij,...j->...k", input1, weight, input2)
  return found if bias is None else found + bias


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
  """The rows of a table that the positions name."""
  if max_norm is not None: weight = _shortened(input, weight, max_norm, norm_type)
  if scale_grad_by_freq: raise InvalidArgument("embedding with scale_grad_by_freq", hint="scale the gradient after it")
  return input.embedding(weight, padding_idx)


def _shortened(index: Tensor, weight: Tensor, most: float, norm_type: float) -> Tensor:
  """The table, those rows of which that are used and longer than that are shortened in place."""
  with Tensor.no_grad():
    used = Tensor.zeros(weight.shape[0], device=weight.device).index_fill(0, index.reshape(-1), 1.0) > 0
    weight.assign(used.unsqueeze(1).where(weight.renorm(norm_type, 0, most), weight))
  return weight


def _along(name: str, input: Tensor, dim: int | None, dtype: Any) -> Tensor:
  axis = dim if dim is not None else 0 if input.ndim in (0, 1, 3) else 1      # what PyTorch takes, and warns of
  found: Tensor = getattr(input, name)(axis, dtype=dtype)
  return found


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
  """Softmax along an axis."""
  return _along("softmax", input, dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
  """The logarithm of softmax along an axis."""
  return _along("log_softmax", input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
  """Softmax of the negated values along an axis."""
  return _along("softmin", input, dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
  """A random draw of a class by logits; nothing is said by `eps`."""
  return logits.gumbel_softmax(tau, hard, dim)


def _dropped(name: str, input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
  found: Tensor = getattr(input, name)(p, training)
  return input.copy_(found) if inplace else found


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
  """Zeros with probability p, the rest scaled to keep the mean; it trains unless told otherwise."""
  return _dropped("dropout", input, p, training, inplace)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
  """As `dropout`, of whole channels (..., length)."""
  return _dropped("dropout1d", input, p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
  """As `dropout`, of whole channels (..., height, width)."""
  return _dropped("dropout2d", input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
  """As `dropout`, of whole channels (..., depth, height, width)."""
  return _dropped("dropout3d", input, p, training, inplace)


def multi_head_attention_forward(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
  """What `nn.MultiheadAttention` does with its weights (`nn.attention.multi_head_attention_forward`)."""
  from tinyhw.nn.attention import multi_head_attention_forward as forward
  return forward(*args, **kwargs)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
  """Dropout for networks of SELUs."""
  return _dropped("alpha_dropout", input, p, training, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
  """As `alpha_dropout`, of whole channels."""
  return _dropped("feature_alpha_dropout", input, p, training, inplace)


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:
  """x, or times a slope below 0: a random one while training."""
  found = input.rrelu(lower, upper, training)
  return input.copy_(found) if inplace else found


def _with_indices(name: str) -> Callable[..., Any]:
  def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    return globals()[name](input, *args, **{**kwargs, "return_indices": True})
  function.__name__ = function.__qualname__ = f"{name}_with_indices"
  function.__doc__ = f"`{name}` with where each one was."
  return function


(max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices, fractional_max_pool2d_with_indices,
 fractional_max_pool3d_with_indices, adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices,
 adaptive_max_pool3d_with_indices) = map(_with_indices, (
   "max_pool1d", "max_pool2d", "max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d", "adaptive_max_pool1d",
   "adaptive_max_pool2d", "adaptive_max_pool3d"))


def _in_place(name: str) -> Callable[..., Any]:
  def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    return input.copy_(globals()[name](input, *args, **kwargs))
  function.__name__ = function.__qualname__ = f"{name}_"
  function.__doc__ = f"Assigns `{name}` of a tensor to it."
  return function


relu_, elu_, selu_, celu_, leaky_relu_, hardtanh_, threshold_, rrelu_ = map(_in_place, (
  "relu", "elu", "selu", "celu", "leaky_relu", "hardtanh", "threshold", "rrelu"))


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
  """Enlarged by the nearest elements."""
  return input.interpolate(size, scale_factor=scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
  """Enlarged by lines between elements, corners on corners."""
  return input.interpolate(size, scale_factor=scale_factor, mode="bilinear", align_corners=True)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
  """A convolution over the first axis of (length, batch, channels), by a weight (elements, channels, out)."""
  return input.permute(1, 2, 0).conv1d(weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
                         **options: Any) -> Tensor:
  """Cross entropy of what a linear layer gives."""
  scores = linear(input, linear_weight, linear_bias)
  return scores.reshape(-1, scores.shape[-1]).cross_entropy(target.reshape(-1), **options)


def unfold(input: Tensor, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1,
           padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1) -> Tensor:
  """The windows of an image (batch, channels, height, width), side by side: (batch, channels * elements, places)."""
  if input.ndim == 3: return unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
  kernel, apart, margin, steps = (each(x, 2, f"unfold: {name}") for x, name in (
    (kernel_size, "kernel_size"), (dilation, "dilation"), (padding, "padding"), (stride, "stride")))
  found = input.pad((margin[1], margin[1], margin[0], margin[0])).windows(kernel, steps, apart)
  return found.permute(0, 1, 4, 5, 2, 3).reshape(found.shape[0], found.shape[1] * kernel[0] * kernel[1], -1)


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean") -> Tensor:
  """How much nearer a negative is than a positive, by a distance of yours."""
  return anchor.triplet_margin_with_distance_loss(positive, negative, distance_function=distance_function,
                                                  margin=margin, swap=swap, reduction=reduction)
