"""First values of weights, put into tensors that are there: PyTorch's `torch.nn.init`. Each returns the tensor."""
from __future__ import annotations

import math

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.tensor.tensor import Tensor

_GAINS = {"linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0, "conv_transpose2d": 1.0,
          "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
  """By how much weights are greater before a function, so that values keep their size; `param` is the slope of
  "leaky_relu" (0.01)."""
  if nonlinearity == "leaky_relu":
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
      raise InvalidArgument(f"a slope of {slope!r}", hint="it is a number")
    return math.sqrt(2 / (1 + slope * slope))
  if nonlinearity not in _GAINS:
    raise InvalidArgument(f"nonlinearity {nonlinearity!r}", hint=f"there are leaky_relu, {', '.join(_GAINS)}")
  return _GAINS[nonlinearity]


def _put(tensor: Tensor, value: Tensor) -> Tensor:
  with Tensor.no_grad(): return tensor.assign(value.cast(tensor.dtype))


def _fans(tensor: Tensor) -> tuple[int, int]:
  """How many values each result is made of, and goes into."""
  if tensor.ndim < 2: raise InvalidShape(f"weights of shape {tensor.shape}", hint="they have two axes or more")
  window = math.prod(tensor.shape[2:])
  return tensor.shape[1] * window, tensor.shape[0] * window


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
  """Uniform in a..b."""
  return _put(tensor, Tensor.uniform(tensor.shape, low=a, high=b, device=tensor.device, dtype=tensor.dtype))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
  """Normal with a mean and a deviation."""
  return _put(tensor, Tensor.normal(tensor.shape, mean=mean, std=std, device=tensor.device, dtype=tensor.dtype))


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Tensor:
  """Normal with a mean and a deviation, of what lies within a..b."""
  return _put(tensor, Tensor.trunc_normal(tensor.shape, mean=mean, std=std, a=a, b=b, device=tensor.device,
                                          dtype=tensor.dtype))


def constant_(tensor: Tensor, val: float) -> Tensor:
  """One number."""
  return _put(tensor, tensor.full_like(val))


def ones_(tensor: Tensor) -> Tensor:
  """Ones."""
  return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
  """Zeros."""
  return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
  """Ones on the diagonal of a matrix, zeros elsewhere."""
  if tensor.ndim != 2: raise InvalidShape(f"eye_ of shape {tensor.shape}", hint="it is for matrices")
  return _put(tensor, Tensor.eye(tensor.shape[0], tensor.shape[1], device=tensor.device, dtype=tensor.dtype))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
  """Weights of a convolution (out, in, ...) that gives the channels that it gets, in each group as many as it can."""
  if tensor.ndim not in (3, 4, 5): raise InvalidShape(f"dirac_ of shape {tensor.shape}", hint="it has 3 to 5 axes")
  if groups < 1 or tensor.shape[0] % groups:
    raise InvalidArgument(f"{tensor.shape[0]} channels in {groups} groups")
  each = Tensor.eye(tensor.shape[0] // groups, tensor.shape[1], device=tensor.device, dtype=tensor.dtype)
  rows = each.repeat(groups, 1).reshape(*tensor.shape[:2], *(1,) * (tensor.ndim - 2))
  around = [p for n in reversed(tensor.shape[2:]) for p in (n // 2, n - n // 2 - 1)]
  return _put(tensor, rows.pad(tuple(around)))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
  """Glorot's: uniform, as wide as values going in and out ask for."""
  bound = gain * math.sqrt(6 / sum(_fans(tensor)))
  return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
  """Glorot's: normal, as wide as values going in and out ask for."""
  return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans(tensor))))


def _deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
  if mode not in ("fan_in", "fan_out"): raise InvalidArgument(f'mode {mode!r} is neither "fan_in" nor "fan_out"')
  return calculate_gain(nonlinearity, a) / math.sqrt(_fans(tensor)[mode == "fan_out"])


def kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
  """He's: uniform, as wide as a function of slope `a` below 0 asks for."""
  if not tensor.numel(): return tensor
  bound = math.sqrt(3) * _deviation(tensor, a, mode, nonlinearity)
  return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
  """He's: normal, as wide as a function of slope `a` below 0 asks for."""
  return normal_(tensor, 0.0, _deviation(tensor, a, mode, nonlinearity)) if tensor.numel() else tensor


def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
  """A random matrix (out, all else) whose rows or columns are at right angles, of length `gain`."""
  if tensor.ndim < 2: raise InvalidShape(f"orthogonal_ of shape {tensor.shape}", hint="it has two axes or more")
  if not tensor.numel(): return tensor
  rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
  drawn = Tensor.randn(max(rows, columns), min(rows, columns), device=tensor.device)
  q, r = drawn.qr()
  q = q * (r.diagonal() < 0).where(-1.0, 1.0)        # each such matrix as likely as any other
  return _put(tensor, ((q if rows >= columns else q.transpose()) * gain).reshape(tensor.shape))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01) -> Tensor:
  """Normal, of deviation `std`, but for a part `sparsity` of each column, which is 0."""
  if tensor.ndim != 2: raise InvalidShape(f"sparse_ of shape {tensor.shape}", hint="it is for matrices")
  place = Tensor.rand(tensor.shape, device=tensor.device).argsort(0).argsort(0)
  drawn = Tensor.normal(tensor.shape, std=std, device=tensor.device)
  return _put(tensor, (place < math.ceil(sparsity * tensor.shape[0])).where(0.0, drawn))


# PyTorch's older names, without the underscore.
uniform, normal, constant, eye, dirac, sparse, orthogonal = (uniform_, normal_, constant_, eye_, dirac_, sparse_,
                                                             orthogonal_)
xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal = (xavier_uniform_, xavier_normal_, kaiming_uniform_,
                                                                  kaiming_normal_)
