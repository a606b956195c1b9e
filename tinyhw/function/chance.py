"""Random tensors: distributions, initializers of weights, dropout. The numbers come from `function.random`, alike on
every
device."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape, InvalidType, Unsupported
from tinyhw.devices.registry import Device
from tinyhw.function import random
from tinyhw.function.core import Places
from tinyhw.function.creation import Creation, shape_of
from tinyhw.function.reduction import DTypeLike, named
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.size import Size

if TYPE_CHECKING:
  from typing import Self


def _drawn(sizes: tuple[int, ...]) -> int:
  """How many numbers are drawn."""
  count = math.prod(sizes)
  if isinstance(count, Size):
    raise Unsupported("random numbers", f"of shape {sizes}, which launches decide", hint="draw the most, and cut them")
  return count


class Chance(Creation):
  """The functions of chance."""
  __slots__ = ()

  @staticmethod
  def manual_seed(seed: int = 0) -> None:
    """Start the random numbers of every device anew."""
    random.generator.seed(seed)

  @classmethod
  def _random(cls, sizes: tuple[int, ...], device: Places, dtype: DTypeLike, requires_grad: bool | None,
              made: Any) -> Self:
    kind = named(dtype) or dtypes.default_float
    if not kind.is_float: raise InvalidArgument(f"random numbers of {kind}", hint="use randint")
    count = _drawn(sizes)
    name = Device.canonicalize(device)
    if not count: return cls.full(sizes, 0, name, kind, requires_grad)
    # Made in float32, so that every float type sees the same numbers, rounded.
    return cls._made(made(cls, count, name).cast(kind).reshape(sizes).uop, requires_grad)

  @classmethod
  def _unit(cls, count: int, device: str) -> Self:
    """`count` float32 numbers, uniform in [0, 1)."""
    bits = cls._wrap(random.bits(count, device))
    return ((bits >> 9) | 0x3F800000).bitcast(dtypes.float32) - 1

  # *** distributions ***

  @classmethod
  def rand(cls, *shape: Any, device: Places = None, dtype: DTypeLike = None,
           requires_grad: bool | None = None) -> Self:
    """Uniform in [0, 1). In narrower types the same numbers, rounded down: none is 1."""
    kind = named(dtype) or dtypes.default_float
    steps = 2 ** (dtypes.finfo(kind)[1] + 1) if kind.is_float and kind.bits < 32 else 0
    def made(c: type[Chance], n: int, d: str) -> Chance:
      unit = c._unit(n, d)
      return (unit * steps).floor() / steps if steps else unit
    return cls._random(shape_of(shape), device, dtype, requires_grad, made)

  @classmethod
  def uniform(cls, *shape: Any, low: float = 0.0, high: float = 1.0, device: Places = None, dtype: DTypeLike = None,
              requires_grad: bool | None = None) -> Self:
    """Uniform in [low, high); of integers what is left of it toward zero."""
    if low > high: raise InvalidArgument(f"uniform within {low}..{high}", hint="low is the smaller one")
    if (kind := named(dtype) or dtypes.default_float).is_int:
      return cls.uniform(*shape, low=low, high=high, device=device, dtype=dtypes.float32).cast(kind)
    return cls._random(shape_of(shape), device, dtype, requires_grad,
                       lambda c, n, d: c._unit(n, d) * (high - low) + low)

  @classmethod
  def randn(cls, *shape: Any, device: Places = None, dtype: DTypeLike = None,
            requires_grad: bool | None = None) -> Self:
    """Normal with mean 0 and deviation 1 (Box and Muller's transform)."""
    def made(c: type[Chance], n: int, d: str) -> Chance:
      # Not log(1 - u): AMD's GPUs have a logarithm of their own, and numbers are to be the same everywhere.
      angle, radius = c._unit(n, d) * (2 * math.pi), (-c._unit(n, d)).log1p() * -2
      return angle.cos() * radius.sqrt()
    return cls._random(shape_of(shape), device, dtype, requires_grad, made)

  @classmethod
  def normal(cls, *shape: Any, mean: float = 0.0, std: float = 1.0, device: Places = None, dtype: DTypeLike = None,
             requires_grad: bool | None = None) -> Self:
    """Normal with a mean and a deviation."""
    if std < 0: raise InvalidArgument(f"normal of deviation {std}")
    return cls._made((cls.randn(*shape, device=device, dtype=dtype) * std + mean).uop, requires_grad)

  @classmethod
  def trunc_normal(cls, *shape: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                   device: Places = None, dtype: DTypeLike = None, requires_grad: bool | None = None) -> Self:
    """Normal with a mean and a deviation, of what lies within a..b."""
    if not a < b: raise InvalidArgument(f"trunc_normal within {a}..{b}")
    def below(x: float) -> float: return 0.5 * math.erfc(-(x - mean) / std / math.sqrt(2))
    low, high = below(a), below(b)
    def made(c: type[Chance], n: int, d: str) -> Chance:
      part = c._unit(n, d) * (high - low) + low
      return (part._normal_quantile() * std + mean).clip(a, b)
    return cls._random(shape_of(shape), device, dtype, requires_grad, made)

  def _normal_quantile(self) -> Self:
    """Where the normal distribution has this part below: Abramowitz and Stegun 26.2.23, then two steps of Newton's."""
    p = self.double().clip(1e-9, 1 - 1e-9)
    t = ((p > 0.5).where(1 - p, p).log() * -2).sqrt()
    upper = t._polynomial((2.515517, 0.802853, 0.010328))
    x = t - upper / t._polynomial((1.0, 1.432788, 0.189269, 0.001308))
    x = (p > 0.5).where(x, -x)
    for _ in range(2):
      error = (x * -math.sqrt(0.5)).erfc() * 0.5 - p
      x = x - error / ((x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi)))
    return x.float()

  @classmethod
  def randint(cls, *shape: Any, low: int | None = None, high: int | None = None, device: Places = None,
              dtype: DTypeLike = None, size: Any = None) -> Self:
    """Integers in low..high-1 (0..9 unless told), uniform: `randint(2, 3, high=5)`. PyTorch's `randint(high, (2, 3))`
    and
    `randint(low, high, (2, 3))` are understood too."""
    if size is None and len(shape) in (2, 3) and isinstance(shape[-1], (tuple, list)): *shape_, size = shape
    else: shape_ = list(shape) if size is not None else []
    if size is not None:
      bounds = [*shape_]
      if len(bounds) > 2: raise InvalidArgument(f"randint with bounds {bounds}")
      if bounds and high is None: high = bounds.pop()
      if bounds and low is None: low = bounds.pop()
      shape = (tuple(size),)
    first, end = 0 if low is None else low, 10 if high is None else high
    for bound in (first, end):
      if not hasattr(bound, "__index__"): raise InvalidType(f"randint within {first}..{end}", hint="both are integers")
    sizes, kind = shape_of(shape), named(dtype) or dtypes.default_int
    if not kind.is_int: raise InvalidType(f"randint of {kind}", hint="give an integer type, and cast")
    if end <= first: raise InvalidArgument(f"no integers in {first}..{end - 1}")
    if not _drawn(sizes): return cls.full(sizes, 0, device, kind)
    bits = cls._wrap(random.bits(math.prod(sizes), Device.canonicalize(device)))
    # The high half of bits * span: every value equally often, to within 2^-32.
    return (((bits.cast(dtypes.uint64) * (end - first)) >> 32).cast(dtypes.int64) + first).cast(kind).reshape(sizes)

  @classmethod
  def randperm(cls, n: int, device: Places = None, dtype: DTypeLike = None) -> Self:
    """0..n-1 in random order."""
    kind = named(dtype) or dtypes.default_int
    name = Device.canonicalize(device)
    if not n: return cls.full((0,), 0, name, kind)
    return cls._wrap(random.bits(n, name)).argsort(0).cast(kind)

  def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Self:
    """Places of the last axis drawn by their weights, as int32: without replacement each once at most."""
    if self.ndim not in (1, 2) or not self.numel(): raise InvalidShape(f"multinomial of weights of shape {self.shape}")
    size = self.shape[-1]
    if num_samples < 1 or not replacement and num_samples > size:
      raise InvalidArgument(f"{num_samples} draws out of {size} without replacement")
    weights = self._still().float()
    if not replacement:
      # The greatest of log(u) / w: each place is first with its share, and again among the rest.
      keys = (-self._unit(self.numel(), self._device).reshape(self.shape)).log1p() / weights
      return (weights > 0).where(keys, -math.inf).topk(num_samples, -1)[1]
    lead = self.shape[:-1]
    total = weights.cumsum(-1)
    drawn = self._unit(math.prod(lead) * num_samples, self._device).reshape(*lead, num_samples)
    mark = drawn * total.narrow(-1, size - 1, 1)
    return (total.unsqueeze(-2) <= mark.unsqueeze(-1)).sum(-1).minimum(size - 1)

  def bernoulli(self, p: float | None = None) -> Self:
    """1 with the probability that each element says (or `p`), else 0."""
    drawn = self._unit(self.numel(), self._device).reshape(self.shape) if self.numel() else self
    return (drawn < (self._still() if p is None else p)).cast(self.dtype)

  def rand_like(self, dtype: DTypeLike = None, device: Places = None, requires_grad: bool | None = None) -> Self:
    """Uniform random numbers, otherwise like this one."""
    return self.rand(self.shape, device=device or self.device, dtype=named(dtype) or self.dtype,
                     requires_grad=requires_grad)
  def randn_like(self, dtype: DTypeLike = None, device: Places = None, requires_grad: bool | None = None) -> Self:
    """Normal random numbers, otherwise like this one."""
    return self.randn(self.shape, device=device or self.device, dtype=named(dtype) or self.dtype,
                      requires_grad=requires_grad)
  def randint_like(self, low: int, high: int | None = None, dtype: DTypeLike = None) -> Self:
    """Integers in low..high-1 (0..low-1 without a high), otherwise like this one."""
    first, end = (0, low) if high is None else (low, high)
    kind = named(dtype) or self.dtype
    drawn = self.randint(self.shape, low=first, high=end, device=self.device, dtype=kind if kind.is_int else None)
    return drawn.cast(kind)

  # *** weights: of shape (out, in, ...) ***

  @staticmethod
  def _fans(sizes: tuple[int, ...], mode: str) -> int:
    """How many values each result is made of, or goes into."""
    if mode not in ("fan_in", "fan_out"): raise InvalidArgument(f'mode {mode!r} is neither "fan_in" nor "fan_out"')
    return max(math.prod(sizes[1:]) if mode == "fan_in" else math.prod((*sizes[:1], *sizes[2:])), 1)

  @classmethod
  def scaled_uniform(cls, *shape: Any, **kwargs: Any) -> Self:
    """Uniform in -1..1, over the square root of the number of elements."""
    sizes = shape_of(shape)
    bound = max(math.prod(sizes), 1) ** -0.5
    return cls.uniform(sizes, low=-bound, high=bound, **kwargs)

  @classmethod
  def kaiming_uniform(cls, *shape: Any, a: float = 0.01, mode: str = "fan_in", **kwargs: Any) -> Self:
    """He's uniform initialization of weights of shape (out, in, ...)."""
    sizes = shape_of(shape)
    bound = math.sqrt(6 / (1 + a * a) / cls._fans(sizes, mode))
    return cls.uniform(sizes, low=-bound, high=bound, **kwargs)

  @classmethod
  def kaiming_normal(cls, *shape: Any, a: float = 0.01, mode: str = "fan_in", **kwargs: Any) -> Self:
    """He's normal initialization of weights of shape (out, in, ...)."""
    sizes = shape_of(shape)
    return cls.normal(sizes, std=math.sqrt(2 / (1 + a * a) / cls._fans(sizes, mode)), **kwargs)

  @classmethod
  def glorot_uniform(cls, *shape: Any, **kwargs: Any) -> Self:
    """Glorot's uniform initialization of weights of shape (out, in, ...)."""
    sizes = shape_of(shape)
    bound = math.sqrt(6 / max((sizes[0] if sizes else 1) + math.prod(sizes[1:]), 1))
    return cls.uniform(sizes, low=-bound, high=bound, **kwargs)

  @classmethod
  def _glorot(cls, sizes: tuple[int, ...], gain: float) -> float:
    return gain * math.sqrt(2 / (cls._fans(sizes, "fan_in") + cls._fans(sizes, "fan_out")))

  @classmethod
  def xavier_uniform(cls, *shape: Any, gain: float = 1.0, **kwargs: Any) -> Self:
    """Glorot's uniform initialization as PyTorch has it: the kernel's size counts on both sides."""
    bound = math.sqrt(3) * cls._glorot(shape_of(shape), gain)
    return cls.uniform(shape_of(shape), low=-bound, high=bound, **kwargs)

  @classmethod
  def xavier_normal(cls, *shape: Any, gain: float = 1.0, **kwargs: Any) -> Self:
    """Glorot's normal initialization as PyTorch has it."""
    return cls.normal(shape_of(shape), std=cls._glorot(shape_of(shape), gain), **kwargs)

  def gumbel_softmax(self, tau: float = 1.0, hard: bool = False, axis: int = -1) -> Self:
    """A random draw of a class by logits, softened by the temperature `tau`; `hard` gives 1 and 0, with the soft one's
    gradient."""
    noise = self._unit(self.numel(), self._device).reshape(self.shape) if self.numel() else self
    drawn = -(-(noise.maximum(1e-30)).log()).log()
    soft = ((self + drawn) / tau).softmax(axis)
    if not hard: return soft
    top = (soft._still() == soft._still().max(axis, keepdim=True)).cast(soft.dtype)
    return top + (soft - soft._still())

  # *** dropout ***

  def dropout(self, p: float = 0.5, training: bool | None = None) -> Self:
    """While training (`Tensor.training` unless told): zeros with probability p, the rest scaled to keep the mean."""
    if not 0 <= p <= 1: raise InvalidArgument(f"dropout with probability {p}")
    if not (type(self).training if training is None else training) or p == 0: return self._same()
    if p == 1: return self * 0
    return (self.rand(self.shape, device=self.device) >= p).where(self, 0) / (1 - p)

  def _dropped(self, p: float, training: bool | None, axes: int) -> Self:
    """As `dropout`, of whole channels: one decision for each position of the first axes."""
    if not 0 <= p <= 1: raise InvalidArgument(f"dropout with probability {p}")
    if not (type(self).training if training is None else training) or p == 0: return self._same()
    if p == 1: return self * 0
    lead = self.shape[:self.ndim - axes]
    kept = self.rand(lead, device=self.device).reshape(*lead, *(1,) * axes) >= p
    return kept.where(self, 0) / (1 - p)

  def dropout1d(self, p: float = 0.5, training: bool | None = None) -> Self:
    """As `dropout`, of whole channels (..., length)."""
    return self._dropped(p, training, 1)
  def dropout2d(self, p: float = 0.5, training: bool | None = None) -> Self:
    """As `dropout`, of whole channels (..., height, width)."""
    return self._dropped(p, training, 2)
  def dropout3d(self, p: float = 0.5, training: bool | None = None) -> Self:
    """As `dropout`, of whole channels (..., depth, height, width)."""
    return self._dropped(p, training, 3)
