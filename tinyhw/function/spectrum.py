"""Spectra of windows that slide over a signal. There is no complex type: real and imaginary parts are a last axis of 2,
as PyTorch's `view_as_real` has it."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape, InvalidType, Unsupported
from tinyhw.devices import watch
from tinyhw.function.fourier import Fourier
from tinyhw.ir.dtype import DType
from tinyhw.ir.ops import Ops

if TYPE_CHECKING:
  from typing import Self


class Spectrum(Fourier):
  """The functions of spectra."""
  __slots__ = ()

  def _window_of(self, name: str, n: int, window: Self | None, size: int | None, dtype: DType) -> Self:
    """The window, as long as what is transformed, with zeros on both sides."""
    length = n if size is None else size
    if not 0 < length <= n:
      raise InvalidArgument(f"{name} of windows of {length}", hint=f"0 < win_length <= n_fft = {n}")
    if window is None: window = self._wrap(self._const(1, dtype, (length,)))
    elif window.shape != (length,):
      raise InvalidShape(f"{name} by a window of shape {window.shape}", hint=f"win_length is {length}")
    before = (n - length) // 2
    return window.cast(dtype)._grown([(before, n - length - before)])

  def stft(self, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Self | None = None,
           center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
           return_complex: bool | None = None) -> Self:
    """Fourier's transforms of windows of a signal (length,) or (batch, length), `hop_length` (n_fft // 4) apart:
    (..., frequencies, windows, 2), the last axis real and imaginary part. With `center` the signal is padded so that
    windows are around their places; `onesided` (True) leaves out the half that is the other's conjugate."""
    if return_complex:
      raise Unsupported("dtype", "complex numbers", hint="with return_complex=False the last axis is real, imaginary")
    if not self.dtype.is_float: raise InvalidType(f"stft of {self.dtype}", hint="it is for floats")
    if self.ndim not in (1, 2):
      raise InvalidShape(f"stft of shape {self.shape}", hint="give (length,) or (batch, length)")
    step = n_fft // 4 if hop_length is None else hop_length
    if step < 1: raise InvalidArgument(f"stft with hop_length {step}", hint="it is positive")
    wide, dtype = self._in_wide()
    wave = wide._window_of("stft", n_fft, window, win_length, wide.dtype)
    if center:
      more = [(0, 0)] * (self.ndim - 1) + [(n_fft // 2, n_fft // 2)]
      wide = wide.pad(more, mode=pad_mode)
    if not 0 < n_fft <= wide.shape[-1]:
      raise InvalidShape(f"stft of shape {self.shape} by windows of {n_fft}", hint=f"0 < n_fft <= {wide.shape[-1]}")
    frames = (wide.unfold(-1, n_fft, step) * wave).contiguous()
    cosine, sine = self._waves(n_fft, n_fft // 2 + 1 if onesided is not False else n_fft, wide.dtype)
    real, imaginary = (frames.matmul(t._flipped())._flipped() for t in (cosine, -sine))
    found = real.stack(imaginary, dim=-1)
    return (found * n_fft ** -0.5 if normalized else found).cast(dtype)

  def istft(self, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Self | None = None,
            center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
            return_complex: bool = False) -> Self:
    """The signal of which `stft` with the same arguments gives this, (..., frequencies, windows, 2); of `length`
    elements if told. Of all frequencies the first half is read, as the others are its conjugates."""
    if return_complex: raise Unsupported("dtype", "complex numbers", hint="the signal is real")
    if not self.dtype.is_float: raise InvalidType(f"istft of {self.dtype}", hint="it is for floats")
    count = n_fft // 2 + 1
    if onesided is not True and self.ndim in (3, 4) and self.shape[-3] == n_fft > count:
      return self.narrow(-3, 0, count).istft(n_fft, hop_length, win_length, window, center, normalized, True, length)
    if self.ndim not in (3, 4) or self.shape[-1] != 2 or self.shape[-3] != count or not self.shape[-2]:
      raise InvalidShape(f"istft of shape {self.shape}", hint=f"give (..., {count} frequencies, windows, 2)")
    size = n_fft if win_length is None else win_length
    step = n_fft // 4 if hop_length is None else hop_length
    if not 0 < step <= size: raise InvalidArgument(f"istft with hop_length {step}", hint=f"0 < hop_length <= {size}")
    wide, dtype = self._in_wide()
    if normalized: wide = wide * n_fft ** 0.5
    wave = wide._window_of("istft", n_fft, window, win_length, wide.dtype)
    cosine, sine = self._waves(n_fft, count, wide.dtype)
    # A frequency that was left out adds what its conjugate adds.
    places = self._iota(count)
    twice = ((places > 0) & (places * 2 < n_fft)).where(2.0, 1.0).unsqueeze(1)
    parts = wide.movedim(-1, 0)._flipped()
    frames = parts[0].matmul((cosine * twice / n_fft).cast(wide.dtype))
    frames = (frames - parts[1].matmul((sine * twice / n_fft).cast(wide.dtype))) * wave
    windows = self.shape[-2]
    total = n_fft + step * (windows - 1)
    at = (self._iota(windows).unsqueeze(1) * step + self._iota(n_fft)).reshape(-1)
    def added(x: Self) -> Self:
      """Windows added up where they lie."""
      flat = x.reshape(*x.shape[:-2], windows * n_fft)
      none = x._wrap(x._const(0, shape=(*flat.shape[:-1], total)))
      return none._scattered(none.ndim - 1, at.expand(flat.shape), flat, Ops.ADD)
    weight = added((wave * wave).expand(windows, n_fft))
    first = n_fft // 2 if center else 0
    last = first + length if length is not None else total - n_fft // 2 if center else total
    keep: list[tuple[int, int] | None] = [None] * (self.ndim - 3)
    there = min(last, total)
    if there <= first: raise InvalidShape(f"istft of shape {self.shape}: nothing is left of {total} elements")
    weight = weight.shrink([(first, there)]).contiguous()
    least: Any = weight._still().abs().min()
    if watch.watching() is None and least.item() < 1e-11:
      raise InvalidArgument("istft by windows that leave out elements", hint="their squares add up to more than 0")
    found = added(frames).shrink([*keep, (first, there)]) / weight
    if last > there: found = found._grown([(0, 0)] * len(keep) + [(0, last - there)])
    return found.cast(dtype)
