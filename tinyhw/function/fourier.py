"""Fourier's transforms. There is no complex type: real and imaginary parts are a last axis of 2, as PyTorch's
`view_as_real` has it, and axes are counted without that one.

A length that has factors is taken apart by them (Cooley and Tukey), so that no matrix is as large as its square.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tinyhw.core.errors import InvalidArgument, InvalidIndex, InvalidShape, InvalidType
from tinyhw.devices.registry import Device
from tinyhw.function.core import Places
from tinyhw.function.factors import Factors
from tinyhw.function.reduction import DTypeLike, named
from tinyhw.ir.dtype import DType, dtypes

if TYPE_CHECKING:
  from typing import Self

_DIRECT: Final = 64           # up to this length a transform is one product
_NORMS: Final = ("backward", "ortho", "forward")


def _parted(n: int) -> int:
  """The greatest factor of a length that is not above its root."""
  return next(k for k in range(math.isqrt(n), 0, -1) if n % k == 0)


class Fourier(Factors):
  """The functions of `torch.fft`."""
  __slots__ = ()

  def _waves(self, n: int, count: int, dtype: DType, length: int | None = None) -> tuple[Self, Self]:
    """Cosines and sines of whole turns of `length` (n) elements: (count, n) each, in memory."""
    whole = n if length is None else length
    turns = (self._iota(count).unsqueeze(1) * self._iota(n)).remainder(whole).cast(dtypes.float64) * (
      2 * math.pi / whole)
    cosine, sine = (wave.cast(dtype).contiguous() for wave in (turns.cos(), turns.sin()))
    return cosine, sine

  def _by_waves(self, other: Self | None, cosine: Self, sine: Self, back: bool, product: bool) -> tuple[Self, Self]:
    """These real parts and those imaginary ones (None: zeros) by waves, each by each or as a product of matrices."""
    def by(x: Self, wave: Self) -> Self: return x.matmul(wave) if product else x * wave
    sine = sine if back else -sine
    if other is None: return by(self, cosine), by(self, sine)
    return by(self, cosine) - by(other, sine), by(other, cosine) + by(self, sine)

  def _transformed(self, other: Self | None, back: bool) -> tuple[Self, Self]:
    """The sums for all frequencies along the last axis, of real parts and imaginary ones."""
    n = self.shape[-1]
    if n <= _DIRECT or (a := _parted(n)) == 1: return self._by_waves(other, *self._waves(n, n, self.dtype), back, True)
    b, lead = n // a, self.shape[:-1]
    def split(x: Self) -> Self: return x.reshape(*lead, a, b)._flipped()
    real, imaginary = split(self)._transformed(None if other is None else split(other), back)
    real, imaginary = real._by_waves(imaginary, *self._waves(a, b, self.dtype, n), back, False)
    real, imaginary = real._flipped().contiguous()._transformed(imaginary._flipped().contiguous(), back)
    return real._flipped().reshape(*lead, n), imaginary._flipped().reshape(*lead, n)

  def _fitted(self, axis: int, n: int | None) -> Self:
    """As long as that along an axis: the beginning, or with zeros at the end."""
    if n is None or n == self.shape[axis]: return self
    if n > self.shape[axis]:
      return self._grown([(0, n - self.shape[axis]) if i == axis else (0, 0) for i in range(self.ndim)])
    return self.narrow(axis, 0, n)

  @staticmethod
  def _factor(n: int, norm: str | None, back: bool) -> float:
    if norm is not None and norm not in _NORMS:
      raise InvalidArgument(f"norm {norm!r}", hint=f"there are {', '.join(map(repr, _NORMS))}")
    if norm == "ortho": return 1 / math.sqrt(n)
    return 1 / n if (norm == "forward") is not back else 1.0

  def _one_axis(self, name: str, other: Self | None, n: int | None, axis: int, norm: str | None,
                back: bool) -> tuple[Self, Self]:
    """The transform along one axis, of real parts and imaginary ones."""
    if not -self.ndim <= axis < self.ndim:
      raise InvalidIndex(f"{name} along axis {axis} of {self.ndim}", hint="axes are counted without that of the parts")
    axis %= self.ndim
    if (size := self.shape[axis] if n is None else n) < 1: raise InvalidShape(f"{name} of {size} elements")
    real, imaginary = (None if x is None else x._fitted(axis, n).movedim(axis, -1) for x in (self, other))
    assert real is not None
    found, factor = real._transformed(imaginary, back), self._factor(size, norm, back)
    first, second = (x.movedim(-1, axis) if factor == 1 else (x * factor).movedim(-1, axis) for x in found)
    return first, second

  def _spectral(self, name: str, pairs: bool) -> tuple[Self, Self | None, DType]:
    """Real parts, imaginary ones, the type of the result."""
    if not self.dtype.is_float: raise InvalidType(f"{name} of {self.dtype}", hint="it is for floats")
    if self.ndim < 1 + pairs or pairs and self.shape[-1] != 2:
      raise InvalidShape(f"{name} of shape {self.shape}",
                         hint="give (..., n, 2), real and imaginary parts" if pairs else "give (..., n)")
    wide, dtype = self._in_wide()
    return (wide[..., 0], wide[..., 1], dtype) if pairs else (wide, None, dtype)

  @staticmethod
  def _lengths_along(rank: int, s: Sequence[int] | None,
                     dim: Sequence[int] | int | None) -> list[tuple[int, int | None]]:
    """The axes to go along, with the length of each."""
    axes = [dim] if isinstance(dim, int) else list(range(-(rank if s is None else len(s)), 0) if dim is None else dim)
    if s is not None and len(s) != len(axes): raise InvalidArgument(f"{len(s)} lengths for {len(axes)} axes")
    return list(zip(axes, [None] * len(axes) if s is None else [None if n == -1 else n for n in s]))

  def _several(self, name: str, s: Sequence[int] | None, dim: Sequence[int] | int | None, norm: str | None,
               back: bool) -> Self:
    real, imaginary, dtype = self._spectral(name, True)
    for axis, n in self._lengths_along(real.ndim, s, dim):
      real, imaginary = real._one_axis(name, imaginary, n, axis, norm, back)
    assert imaginary is not None
    return real.stack(imaginary, dim=-1).cast(dtype)

  def _of_real(self, name: str, s: Sequence[int] | None, dim: Sequence[int] | int | None, norm: str | None) -> Self:
    real, _, dtype = self._spectral(name, False)
    *rest, (axis, n) = self._lengths_along(real.ndim, s, dim)
    real, imaginary = real._one_axis(name, None, n, axis, norm, False)
    half = real.shape[axis] // 2 + 1
    real, imaginary = real.narrow(axis, 0, half), imaginary.narrow(axis, 0, half)
    for axis, n in rest: real, imaginary = real._one_axis(name, imaginary, n, axis, norm, False)
    return real.stack(imaginary, dim=-1).cast(dtype)

  def _to_real(self, name: str, s: Sequence[int] | None, dim: Sequence[int] | int | None, norm: str | None) -> Self:
    real, imaginary, dtype = self._spectral(name, True)
    assert imaginary is not None
    *rest, (axis, n) = self._lengths_along(real.ndim, s, dim)
    for other, size in rest: real, imaginary = real._one_axis(name, imaginary, size, other, norm, True)
    if not -real.ndim <= axis < real.ndim: raise InvalidIndex(f"{name} along axis {axis} of {real.ndim}")
    axis %= real.ndim
    n = 2 * (real.shape[axis] - 1) if n is None else n
    if n < 1: raise InvalidShape(f"{name} of {n} elements")
    real, imaginary = (x._fitted(axis, n // 2 + 1) for x in (real, imaginary))
    if more := n - n // 2 - 1:                # the frequencies that were left out are the others' conjugates
      mirrored = [x.narrow(axis, 1, more).flip(axis) for x in (real, imaginary)]
      real, imaginary = real.cat(mirrored[0], dim=axis), imaginary.cat(-mirrored[1], dim=axis)
    return real._one_axis(name, imaginary, None, axis, norm, True)[0].cast(dtype)

  def fft(self, n: int | None = None, dim: int = -1, norm: str | None = None) -> Self:
    """The transform of (..., n, 2), real and imaginary parts, along an axis, cut or filled up to `n`. `norm`:
    "backward" (what goes back is by n), "ortho", "forward"."""
    return self._several("fft", None if n is None else (n,), dim, norm, False)
  def ifft(self, n: int | None = None, dim: int = -1, norm: str | None = None) -> Self:
    """What `fft` gives this of."""
    return self._several("ifft", None if n is None else (n,), dim, norm, True)
  def rfft(self, n: int | None = None, dim: int = -1, norm: str | None = None) -> Self:
    """The transform of a real signal: (..., n // 2 + 1, 2), as the rest are conjugates."""
    return self._of_real("rfft", None if n is None else (n,), dim, norm)
  def irfft(self, n: int | None = None, dim: int = -1, norm: str | None = None) -> Self:
    """The real signal, of `n` elements (an even number unless told), that `rfft` gives this of."""
    return self._to_real("irfft", None if n is None else (n,), dim, norm)

  def fft2(self, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Self:
    """`fft` along two axes."""
    return self._several("fft2", s, dim, norm, False)
  def ifft2(self, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Self:
    """`ifft` along two axes."""
    return self._several("ifft2", s, dim, norm, True)
  def rfft2(self, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Self:
    """`rfft` along the last of two axes, `fft` along the other."""
    return self._of_real("rfft2", s, dim, norm)
  def irfft2(self, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Self:
    """`ifft` along the first of two axes, `irfft` along the other."""
    return self._to_real("irfft2", s, dim, norm)

  def fftn(self, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Self:
    """`fft` along all axes, or along some."""
    return self._several("fftn", s, dim, norm, False)
  def ifftn(self, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Self:
    """`ifft` along all axes, or along some."""
    return self._several("ifftn", s, dim, norm, True)
  def rfftn(self, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Self:
    """`rfft` along the last axis, `fft` along the others."""
    return self._of_real("rfftn", s, dim, norm)
  def irfftn(self, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Self:
    """`irfft` along the last axis, `ifft` along the others."""
    return self._to_real("irfftn", s, dim, norm)

  def _conjugate(self, name: str) -> Self:
    real, imaginary, _ = self._spectral(name, True)
    assert imaginary is not None
    return real.stack(-imaginary, dim=-1)

  @staticmethod
  def _other_way(norm: str | None) -> str:
    if norm is not None and norm not in _NORMS:
      raise InvalidArgument(f"norm {norm!r}", hint=f"there are {', '.join(map(repr, _NORMS))}")
    return {"forward": "backward", "ortho": "ortho"}.get(norm or "", "forward")

  def hfft(self, n: int | None = None, dim: int = -1, norm: str | None = None) -> Self:
    """The real spectrum, of `n` elements (an even number unless told), of a signal whose other half is the conjugate of
    this one, (..., n // 2 + 1, 2)."""
    return self._conjugate("hfft")._to_real("hfft", None if n is None else (n,), dim,
                                            self._other_way(norm)).cast(self.dtype)
  def ihfft(self, n: int | None = None, dim: int = -1, norm: str | None = None) -> Self:
    """What `hfft` gives this of."""
    return self._of_real("ihfft", None if n is None else (n,), dim, self._other_way(norm))._conjugate(
      "ihfft").cast(self.dtype)
  def hfftn(self, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Self:
    """`hfft` along the last axis, `fft` along the others."""
    return self._conjugate("hfftn")._to_real("hfftn", s, dim, self._other_way(norm)).cast(self.dtype)
  def ihfftn(self, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Self:
    """What `hfftn` gives this of."""
    return self._of_real("ihfftn", s, dim, self._other_way(norm))._conjugate("ihfftn").cast(self.dtype)
  def hfft2(self, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Self:
    """`hfftn` along two axes."""
    return self.hfftn(s, dim, norm)
  def ihfft2(self, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Self:
    """`ihfftn` along two axes."""
    return self.ihfftn(s, dim, norm)

  @classmethod
  def fftfreq(cls, n: int, d: float = 1.0, dtype: DTypeLike = None, device: Places = None) -> Self:
    """The frequencies that `fft` gives, in turns for each unit of a spacing `d`: from 0 up, then the negative ones."""
    places = cls._wrap(cls.arange(n, device=Device.canonicalize(device)).uop)
    return ((places + n // 2).remainder(n) - n // 2).cast(named(dtype) or dtypes.default_float) / (n * d)

  @classmethod
  def rfftfreq(cls, n: int, d: float = 1.0, dtype: DTypeLike = None, device: Places = None) -> Self:
    """The frequencies that `rfft` gives."""
    return cls.arange(n // 2 + 1, device=Device.canonicalize(device)).cast(named(dtype) or dtypes.default_float) / (
      n * d)

  def fftshift(self, dim: int | Sequence[int] | None = None) -> Self:
    """Frequency 0 in the middle of each axis, or of some."""
    axes = range(self.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    return self.roll([self.shape[a] // 2 for a in axes], list(axes))
  def ifftshift(self, dim: int | Sequence[int] | None = None) -> Self:
    """Frequency 0 back at the begin of each axis, or of some."""
    axes = range(self.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    return self.roll([-(self.shape[a] // 2) for a in axes], list(axes))
