"""Fourier transforms, mel weights, and random numbers."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyhw.ir.dtype import DType, dtypes
from tinyhw.nn.onnx.run import Call
from tinyhw.nn.onnx.shapes import ints
from tinyhw.nn.onnx.table import Host, operator
from tinyhw.nn.onnx.values import element, shape_of
from tinyhw.tensor.tensor import Tensor

Ints = tuple[int, ...]


def _transformed(x: Tensor, n: int, inverse: bool, rows: int) -> Tensor:
  """The first `rows` results of a discrete Fourier transform of (..., elements, 1 or 2) along the elements, which are
  cut or filled with 0 to n: products with a matrix that is computed in the kernel, its angles reduced as
  integers."""
  have = x.shape[-2]
  x = x.shrink([*(None for _ in x.shape[:-2]), (0, min(n, have)), None])
  have = min(n, have)
  turn = (Tensor.arange(rows, device=x.device).cast(dtypes.int64).unsqueeze(1)
          * Tensor.arange(have, device=x.device)) % n
  turn = (turn > n // 2).where(turn - n, turn)
  angle = turn.cast(x.dtype) * ((2 if inverse else -2) * math.pi / n)
  cosine, sine = angle.cos().contiguous(), angle.sin().contiguous()                    # (rows, elements)
  def times(matrix: Tensor, part: Tensor) -> Tensor: return (matrix * part.unsqueeze(-2)).sum(-1)
  real = x[..., 0]
  if x.shape[-1] == 1: found = times(cosine, real), times(sine, real)
  else:
    imaginary = x[..., 1]
    found = (times(cosine, real) - times(sine, imaginary), times(sine, real) + times(cosine, imaginary))
  both = found[0].stack(found[1], dim=-1)
  return both / n if inverse else both


@operator("DFT", 17)
def dft_by_attribute(op: Call, x: Tensor, dft_length: Host | None, *, axis: int = 1, inverse: int = 0,
                     onesided: int = 0) -> Tensor:
  return _dft(op, x, dft_length, axis, inverse, onesided)


@operator("DFT", 20)
def dft(op: Call, x: Tensor, dft_length: Host | None, axis: Host | None, *, inverse: int = 0,
        onesided: int = 0) -> Tensor:
  return _dft(op, x, dft_length, -2 if axis is None else ints(axis)[0], inverse, onesided)


def _dft(op: Call, x: Tensor, length: Host | None, axis: int, inverse: int, onesided: int) -> Tensor:
  if x.ndim < 2 or x.shape[-1] not in (1, 2): raise op.wrong(f"shape {x.shape} ends in neither 1 nor 2")
  at = x._axis(axis)
  if at == x.ndim - 1: raise op.wrong("the last axis holds real and imaginary parts")
  turned = x.movedim(at, -2)
  if inverse and onesided:
    # The half that is left out is the other's conjugate, backwards.
    half = turned.shape[-2]
    n = 2 * (half - 1) if length is None else ints(length)[0]
    turned = turned.shrink([*(None for _ in turned.shape[:-2]), (0, min(half, n // 2 + 1)), None])
    if (more := n // 2 + 1
        - turned.shape[-2]) > 0: turned = turned.pad([*((0, 0) for _ in turned.shape[:-2]), (0, more), (0, 0)])
    tail = turned.narrow(-2, 1, n - n // 2 - 1).flip(-2)
    sign = Tensor(np.array([1, -1][:turned.shape[-1]], np.float32), device=x.device).cast(x.dtype)
    return _transformed(turned.cat(tail * sign, dim=-2), n, True, n)[..., :1].movedim(-2, at)
  n = turned.shape[-2] if length is None else ints(length)[0]
  return _transformed(turned, n, bool(inverse), n // 2 + 1 if onesided else n).movedim(-2, at)


@operator("STFT", 17)
def stft(op: Call, signal: Tensor, frame_step: Host, window: Tensor | None, frame_length: Host | None, *,
         onesided: int = 1) -> Tensor:
  """The transforms of windows that slide over a signal (batch, length, 1 or 2): (batch, frames, frequencies, 2)."""
  step = ints(frame_step)[0]
  if frame_length is None and window is None: raise op.wrong("neither a window nor a frame_length")
  n = ints(frame_length)[0] if frame_length is not None else window.shape[0] if window is not None else 0
  line = signal if signal.ndim == 3 else signal.unsqueeze(-1)
  frames = line.movedim(1, -1).unfold(-1, n, step).permute(0, 2, 3, 1)                 # (batch, frames, n, 1 or 2)
  if window is not None: frames = frames * window.reshape(1, 1, -1, 1)
  return _transformed(frames.contiguous(), n, False, n // 2 + 1 if onesided else n)


@operator("MelWeightMatrix", 17)
def mel_weight_matrix(op: Call, num_mel_bins: Host, dft_length: Host, sample_rate: Host, lower_edge_hertz: Host,
                      upper_edge_hertz: Host, *, output_datatype: int = 1) -> Tensor:
  """Triangles over the frequencies of a transform, at equal distances in mel; their corners are positions, which the
  host computes."""
  bins, length, rate = ints(num_mel_bins)[0], ints(dft_length)[0], ints(sample_rate)[0]
  low, high = (2595 * math.log10(1 + float(v.reshape(-1)[0]) / 700) for v in (lower_edge_hertz, upper_edge_hertz))
  step = (high - low) / (bins + 2)
  hertz = [700 * (10 ** ((low + step * i) / 2595) - 1) for i in range(bins + 2)]
  corners = [int((length + 1) * h // rate) for h in hertz]
  places = Tensor.arange(length // 2 + 1, device=op.device).unsqueeze(1)               # (frequencies, 1)
  first, middle, last = (Tensor(np.array(corners[i:bins + i], np.int32), device=op.device) for i in range(3))
  up = (places - first).div((middle - first).maximum(1))
  down = (last - places).div((last - middle).maximum(1))
  found = ((places >= first) & (places <= middle)).where(up, 0)
  found = ((places >= middle) & (places < last)).where(down, found)
  found = (places.eq(middle) & middle.eq(first)).where(1, found)
  to = element(output_datatype, op.node.label).dtype
  assert isinstance(to, DType)
  return found.cast(to)


def _window(op: Call, size: Host, periodic: int, output_datatype: int, weights: tuple[float, ...]) -> Tensor:
  """A sum of cosines over the width of a window."""
  n = ints(size)[0]
  turn = Tensor.arange(n, device=op.device).float() * (2 * math.pi / max(n if periodic else n - 1, 1))
  found = sum((turn * k).cos() * w if k else turn * 0 + w for k, w in enumerate(weights))
  to = element(output_datatype, op.node.label).dtype
  assert isinstance(to, DType) and isinstance(found, Tensor)
  return found.cast(to)


@operator("HannWindow", 17)
def hann_window(op: Call, size: Host, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
  return _window(op, size, periodic, output_datatype, (0.5, -0.5))


@operator("HammingWindow", 17)
def hamming_window(op: Call, size: Host, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
  return _window(op, size, periodic, output_datatype, (25 / 46, -21 / 46))


@operator("BlackmanWindow", 17)
def blackman_window(op: Call, size: Host, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
  return _window(op, size, periodic, output_datatype, (0.42, -0.5, 0.08))


# *** random numbers: tinyhw's own, alike on every device; a node's seed is not kept, for no two makers agree on one ***


def _kind(op: Call, dtype: int | None, like: Any = None) -> DType:
  if dtype: found = element(dtype, op.node.label).dtype
  else: found = like.dtype if isinstance(like, Tensor) else dtypes.from_numpy(like.array.dtype)
  assert isinstance(found, DType)
  if not found.is_float: raise op.wrong(f"random numbers of {found.name}")
  return found


@operator("RandomNormal", 1, 22)
def random_normal(op: Call, *, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None,
                  shape: Ints) -> Tensor:
  return Tensor.normal(shape, mean=mean, std=scale, device=op.device, dtype=_kind(op, dtype))


@operator("RandomNormalLike", 1, 22)
def random_normal_like(op: Call, x: Any, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0,
                       seed: float | None = None) -> Tensor:
  return Tensor.normal(shape_of(x), mean=mean, std=scale, device=op.device, dtype=_kind(op, dtype, x))


@operator("RandomUniform", 1, 22)
def random_uniform(op: Call, *, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None,
                   shape: Ints) -> Tensor:
  return Tensor.uniform(shape, low=low, high=high, device=op.device, dtype=_kind(op, dtype))


@operator("RandomUniformLike", 1, 22)
def random_uniform_like(op: Call, x: Any, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0,
                        seed: float | None = None) -> Tensor:
  return Tensor.uniform(shape_of(x), low=low, high=high, device=op.device, dtype=_kind(op, dtype, x))


@operator("Bernoulli", 15, 22)
def bernoulli(op: Call, x: Tensor, *, dtype: int | None = None, seed: float | None = None) -> Tensor:
  to = element(dtype, op.node.label).dtype if dtype else x.dtype
  assert isinstance(to, DType)
  return (Tensor.rand(x.shape, device=x.device) < x).cast(to)
