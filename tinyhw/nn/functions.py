"""Layers and losses that are a function of Tensor and have no weights: `nn.ReLU()`, `nn.MaxPool2d(2)`,
`nn.CrossEntropyLoss()`. Each is a row: what it calls, and its parameters in PyTorch's order, with the defaults where
they are others than the function's.
"""
from __future__ import annotations

from typing import Any, Final

from tinyhw.core.errors import InvalidArgument
from tinyhw.nn.module import Layer
from tinyhw.tensor.tensor import Tensor

_OLD: Final = "size_average", "reduce"           # PyTorch's words of before `reduction`, which stand between others
_POOL: Final = "kernel_size stride padding dilation return_indices ceil_mode"
_PART: Final = "kernel_size output_size output_ratio return_indices _random_samples"
_MEAN: Final = "kernel_size stride padding ceil_mode count_include_pad"
_CALLS: Final[dict[str, tuple[str, str]]] = {
  # activations
  "ReLU": ("relu", "inplace"), "ReLU6": ("relu6", "inplace"), "LeakyReLU": ("leaky_relu", "negative_slope inplace"),
  "ELU": ("elu", "alpha inplace"), "SELU": ("selu", "inplace"), "CELU": ("celu", "alpha inplace"),
  "GELU": ("gelu", "approximate"), "SiLU": ("silu", "inplace"), "Mish": ("mish", "inplace"),
  "Sigmoid": ("sigmoid", ""), "Tanh": ("tanh", ""), "Softplus": ("softplus", "beta threshold"),
  "Softsign": ("softsign", ""), "Hardtanh": ("hardtanh", "min_val max_val inplace"),
  "Hardsigmoid": ("hardsigmoid", "inplace"), "Hardswish": ("hardswish", "inplace"),
  "Hardshrink": ("hardshrink", "lambd"), "Softshrink": ("softshrink", "lambd"), "Tanhshrink": ("tanhshrink", ""),
  "LogSigmoid": ("logsigmoid", ""), "Threshold": ("threshold", "threshold value inplace"), "GLU": ("glu", "dim"),
  "Softmax": ("softmax", "dim"), "LogSoftmax": ("log_softmax", "dim"), "Softmin": ("softmin", "dim"),
  "Softmax2d": ("softmax", ""),
  # windows
  "MaxPool1d": ("max_pool1d", _POOL), "MaxPool2d": ("max_pool2d", _POOL), "MaxPool3d": ("max_pool3d", _POOL),
  "AvgPool1d": ("avg_pool1d", _MEAN), "AvgPool2d": ("avg_pool2d", f"{_MEAN} divisor_override"),
  "AvgPool3d": ("avg_pool3d", f"{_MEAN} divisor_override"),
  **{f"Adaptive{kind}Pool{n}d": (f"adaptive_{kind.lower()}_pool{n}d",
                                 "output_size" if kind == "Avg" else "output_size return_indices")
     for kind in ("Avg", "Max") for n in (1, 2, 3)},
  **{f"LPPool{n}d": (f"lp_pool{n}d", "norm_type kernel_size stride ceil_mode") for n in (1, 2, 3)},
  **{f"MaxUnpool{n}d": (f"max_unpool{n}d", "kernel_size stride padding") for n in (1, 2, 3)},
  "LocalResponseNorm": ("local_response_norm", "size alpha beta k"),
  # shapes
  "Flatten": ("flatten", "start_dim end_dim"), "Unflatten": ("unflatten", "dim unflattened_size"),
  "PixelShuffle": ("pixel_shuffle", "upscale_factor"), "PixelUnshuffle": ("pixel_unshuffle", "downscale_factor"),
  "ChannelShuffle": ("channel_shuffle", "groups"),
  "FractionalMaxPool2d": ("fractional_max_pool2d", _PART), "FractionalMaxPool3d": ("fractional_max_pool3d", _PART),
  "Fold": ("fold", "output_size kernel_size dilation padding stride"),
  "UpsamplingNearest2d": ("interpolate", "size scale_factor"),
  "UpsamplingBilinear2d": ("interpolate", "size scale_factor"),
  "Upsample": ("interpolate", "size scale_factor mode align_corners recompute_scale_factor"),
  # chance
  **{f"Dropout{n}d": (f"dropout{n}d", "p inplace") for n in (1, 2, 3)},
  "AlphaDropout": ("alpha_dropout", "p inplace"), "FeatureAlphaDropout": ("feature_alpha_dropout", "p inplace"),
  "RReLU": ("rrelu", "lower upper inplace"),
  # losses
  "CrossEntropyLoss": ("cross_entropy", "weight size_average ignore_index reduce reduction label_smoothing"),
  "NLLLoss2d": ("nll_loss", "weight size_average ignore_index reduce reduction"),
  "NLLLoss": ("nll_loss", "weight size_average ignore_index reduce reduction"),
  "MSELoss": ("mse_loss", "size_average reduce reduction"), "L1Loss": ("l1_loss", "size_average reduce reduction"),
  "SmoothL1Loss": ("smooth_l1_loss", "size_average reduce reduction beta"),
  "HuberLoss": ("huber_loss", "reduction delta"),
  "BCELoss": ("binary_cross_entropy", "weight size_average reduce reduction"),
  "BCEWithLogitsLoss": ("binary_cross_entropy_with_logits", "weight size_average reduce reduction pos_weight"),
  "KLDivLoss": ("kl_div", "size_average reduce reduction log_target"),
  "PoissonNLLLoss": ("poisson_nll_loss", "log_input full size_average eps reduce reduction"),
  "GaussianNLLLoss": ("gaussian_nll_loss", "full eps reduction"),
  "HingeEmbeddingLoss": ("hinge_embedding_loss", "margin size_average reduce reduction"),
  "CosineEmbeddingLoss": ("cosine_embedding_loss", "margin size_average reduce reduction"),
  "MarginRankingLoss": ("margin_ranking_loss", "margin size_average reduce reduction"),
  "TripletMarginLoss": ("triplet_margin_loss", "margin p eps swap size_average reduce reduction"),
  "TripletMarginWithDistanceLoss": ("triplet_margin_with_distance_loss", "distance_function margin swap reduction"),
  "MultiLabelMarginLoss": ("multilabel_margin_loss", "size_average reduce reduction"),
  "MultiMarginLoss": ("multi_margin_loss", "p margin weight size_average reduce reduction"),
  "SoftMarginLoss": ("soft_margin_loss", "size_average reduce reduction"),
  "MultiLabelSoftMarginLoss": ("multilabel_soft_margin_loss", "weight size_average reduce reduction"),
  "CTCLoss": ("ctc_loss", "blank reduction zero_infinity"),
  "CosineSimilarity": ("cosine_similarity", "dim eps"), "PairwiseDistance": ("pairwise_distance", "p eps keepdim"),
}
_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
  "GELU": {"approximate": "none"}, "Flatten": {"start_dim": 1}, "Softmax2d": {"dim": -3},
  "UpsamplingBilinear2d": {"mode": "bilinear", "align_corners": True}}
_OWN_NAMES: Final = {"unflattened_size": "sizes"}
_MODES: Final = {"Reflection": "reflect", "Replication": "replicate", "Circular": "circular", "Zero": "constant",
                 "Constant": "constant"}


class FunctionLayer(Layer):
  """A function of a tensor with what else it takes."""
  calls = ""
  takes: tuple[str, ...] = ()
  defaults: dict[str, Any] = {}

  def __init__(self, *args: Any, **kwargs: Any):
    name = type(self).__name__
    if len(args) > len(self.takes):
      raise TypeError(f"{name}() takes {len(self.takes)} arguments, not {len(args)}")
    given = dict(zip(self.takes, args))
    if twice := given.keys() & kwargs.keys(): raise TypeError(f"{name}() got {sorted(twice)[0]!r} twice")
    if unknown := kwargs.keys() - set(self.takes):
      raise TypeError(f"{name}() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    given = self.defaults | given | kwargs
    if old := [word for word in _OLD if given.pop(word, None) is not None]:
      raise InvalidArgument(f"{name} with {old[0]}", hint='use reduction="mean", "sum" or "none"')
    self.options = {_OWN_NAMES.get(key, key): value for key, value in given.items()}

  def forward(self, x: Tensor, *more: Any, **options: Any) -> Any:
    return getattr(x, self.calls)(*more, **self.options, **options)

  def __repr__(self) -> str:
    return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.options.items())})"


class Identity(Layer):
  """Gives what it is given; what it is made with is not used."""

  def __init__(self, *args: Any, **kwargs: Any) -> None: pass
  def forward(self, x: Tensor) -> Tensor: return x


class Unfold(Layer):
  """The windows of images, side by side: `functional.unfold` as a layer."""

  def __init__(self, kernel_size: int | tuple[int, int], dilation: int | tuple[int, int] = 1,
               padding: int | tuple[int, int] = 0, stride: int | tuple[int, int] = 1):
    self.options = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}

  def forward(self, x: Tensor) -> Tensor:
    from tinyhw.nn.functional import unfold
    return unfold(x, **self.options)

  def extra_repr(self) -> str:
    """What it is made of."""
    return ", ".join(f"{k}={v!r}" for k, v in self.options.items())


class _Padding(Layer):
  """Elements around the last axes: as many on each side, or (before, after) from the last axis on."""
  rank, mode = 0, "constant"

  def __init__(self, padding: int | tuple[int, ...], value: float = 0.0):
    self.padding = (padding,) * (2 * self.rank) if isinstance(padding, int) else tuple(padding)
    self.value = value
    if len(self.padding) != 2 * self.rank:
      raise InvalidArgument(f"{type(self).__name__} with {self.padding}",
                            hint=f"it takes {2 * self.rank} numbers, or one")

  def forward(self, x: Tensor) -> Tensor:
    if self.mode == "constant": return x.pad(self.padding, value=self.value)
    return x.pad(self.padding, mode=self.mode)


def _made(name: str) -> type[Any]:
  calls, parameters = _CALLS[name]
  doc = f"`x.{calls}(...)` as a layer."
  return type(name, (FunctionLayer,), {"calls": calls, "takes": tuple(parameters.split()), "__module__": __name__,
                                  "defaults": _DEFAULTS.get(name, {}), "__doc__": doc})


LAYERS: Final[dict[str, type[Any]]] = {
  **{name: _made(name) for name in _CALLS}, "Identity": Identity, "Unfold": Unfold} | {
  f"{kind}Pad{n}d": type(f"{kind}Pad{n}d", (_Padding,), {"rank": n, "mode": mode, "__module__": __name__,
                                                         "__doc__": f"Padding of {n} axes, mode {mode!r}."})
  for kind, mode in _MODES.items() for n in (1, 2, 3)}
"""The layers by their names."""
globals().update(LAYERS)          # so that a pickle finds them
