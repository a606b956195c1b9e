"""What PyTorch's users ask of a tensor and its memory. Values here are in row-major order, real numbers, and belong to
nobody else, so most answers are the same for all."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape, InvalidType, Unsupported
from tinyhw.function.sequence import Sequences
from tinyhw.function.views import Places
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.size import larger

if TYPE_CHECKING:
  from typing import Self


class Facts(Sequences):
  """Questions."""
  __slots__ = ()

  def stride(self, axis: int | None = None) -> Any:
    """Elements between neighbours along each axis, or along one."""
    sizes = self.shape
    steps = tuple([math.prod([larger(n, 1) for n in sizes[i + 1:]]) for i in range(len(sizes))])
    return steps if axis is None else steps[self._axis(axis)]

  def storage_offset(self) -> int:
    """0: a value begins where its memory does."""
    return 0

  def is_contiguous(self, memory_format: Any = None) -> bool:
    """Whether the elements are in row-major order, as they always are."""
    return str(memory_format) in ("None", "torch.contiguous_format", "torch.preserve_format")

  def is_complex(self) -> bool:
    """Whether the elements are complex numbers: there are none."""
    return False
  is_conj = is_neg = is_inference = is_pinned = is_shared = is_distributed = is_coalesced = is_complex

  def is_signed(self) -> bool:
    """Whether the type has negative numbers."""
    return self.dtype.is_float or self.dtype.is_signed and not self.dtype.is_bool

  def is_same_size(self, other: Self) -> bool:
    """Whether the other one has this shape."""
    return self.shape == other.shape

  def get_device(self) -> int:
    """The number of the device, -1 of the host's processor."""
    kind, _, number = self._device.partition(":")
    return -1 if kind in ("LLVM", "C", "PYTHON", "NPY", "DISK") else int(number or 0)

  def dim_order(self) -> tuple[int, ...]:
    """The axes in the order of memory."""
    return tuple(range(self.ndim))

  def dense_dim(self) -> int:
    """The axes of what is kept whole: all."""
    return self.ndim

  def sparse_dim(self) -> int:
    """The axes of which only a part is kept: none."""
    return 0

  def pin_memory(self, device: Any = None) -> Self:
    """The tensor itself: host memory is the engine's own affair."""
    return self
  def share_memory_(self) -> Self:
    """The tensor itself."""
    return self
  def to_dense(self, dtype: DType | None = None, *, masked_grad: bool = True) -> Self:
    """The tensor itself, which is dense, or cast."""
    return self if dtype is None else self.cast(dtype)
  def adjoint(self) -> Self:
    """The last two axes exchanged."""
    return self.transpose(-2, -1)

  def data_ptr(self) -> int:
    """Refused: what a tensor is, may have no memory yet, and another one with its next value."""
    raise InvalidType("a tensor has no address of its own", hint="x.data() is a copy of the memory; Tensor.from_blob "
                      "makes a tensor of memory of yours")

  def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int = 0) -> Self:
    """The elements in row-major order, read at `storage_offset` and so many of them apart along each axis."""
    shape, steps = tuple(size), tuple(stride)
    if len(shape) != len(steps): raise InvalidShape(f"as_strided of {shape} by strides {steps}")
    last = storage_offset + sum((n - 1) * s for n, s in zip(shape, steps))
    if min((*shape, *steps, storage_offset), default=0) < 0 or 0 not in shape and last >= self.numel():
      raise InvalidShape(f"as_strided of {shape} by strides {steps} from {storage_offset} on: element {last} of shape "
                         f"{self.shape}")
    result = self.reshape(-1)[self._strided_places(shape, steps, storage_offset)]
    result._view = Places(self, lambda x: x.as_strided(shape, steps, storage_offset), steps)
    return result

  def as_strided_scatter(self, source: Self, size: Sequence[int], stride: Sequence[int],
                         storage_offset: int = 0) -> Self:
    """This value with others where `as_strided` reads."""
    if source.shape != tuple(size): raise InvalidShape(f"values of shape {source.shape} for {tuple(size)}")
    places = self._strided_places(tuple(size), tuple(stride), storage_offset).reshape(-1)
    return self.reshape(-1).scatter(0, places, source.reshape(-1)).reshape(self.shape)

  def _strided_places(self, shape: tuple[int, ...], steps: tuple[int, ...], first: int) -> Self:
    places = self._wrap(self._const(first, dtypes.int32, ()))
    for n, s in zip(shape, steps): places = places.unsqueeze(-1) + self._iota(n) * s
    return places.reshape(shape)

  def nonzero_static(self, *, size: int, fill_value: int = -1) -> Self:
    """Positions of the first `size` elements that are not zero, one a row; `fill_value` where there are fewer. Nothing
    is read for it."""
    if size < 0: raise InvalidArgument(f"nonzero_static of size {size}")
    found: Self = self.nonzero(size=size, value=fill_value)
    return found

  def narrow_copy(self, axis: int, start: int, length: int) -> Self:
    """`length` elements of an axis from `start` on, in memory of their own."""
    return self.narrow(axis, start, length).contiguous()

  def put(self, index: Self, source: Self, accumulate: bool = False) -> Self:
    """This value with the elements of `source` at places of the flat tensor, or added to what is there."""
    if index.shape != source.shape: raise InvalidShape(f"put of shape {source.shape} by indices of {index.shape}")
    flat, at = self.reshape(-1), index.reshape(-1)
    at = (at < 0).where(at + self.numel(), at)
    put = flat.scatter_add if accumulate else flat.scatter
    return put(0, at, source.reshape(-1)).reshape(self.shape)

  def index_reduce(self, axis: int, index: Self, source: Self, reduce: str, *, include_self: bool = True) -> Self:
    """The rows of `source` combined with those that a vector names: "prod", "mean", "amax" or "amin"."""
    if reduce not in ("prod", "mean", "amax", "amin"):
      raise InvalidArgument(f"index_reduce by {reduce!r}", hint='"prod", "mean", "amax" or "amin"')
    axis = self._axis(axis)
    if index.ndim != 1: raise InvalidShape(f"index_reduce by indices of shape {index.shape}", hint="give a vector")
    at = index.reshape(tuple(index.shape[0] if i == axis else 1 for i in range(self.ndim))).expand(source.shape)
    return self.scatter_reduce(axis, at, source, reduce, include_self=include_self)

  def fill_diagonal(self, fill_value: float, wrap: bool = False) -> Self:
    """One number on the main diagonal: of a tall matrix also below it again, where told to `wrap`."""
    if self.ndim < 2 or self.ndim > 2 and len(set(self.shape)) > 1:
      raise InvalidShape(f"fill_diagonal of shape {self.shape}", hint="it is for matrices, and cubes")
    places = self._iota(self.numel()).reshape(self.shape)
    rows, columns = self.shape[0], self.shape[-1]
    if self.ndim > 2: there = (places % max(sum(columns ** i for i in range(self.ndim)), 1)).eq(0)
    else:
      there = (places % (columns + 1)).eq(0)
      if not wrap and rows > columns: there = there & (places < columns * columns)
    return self.masked_fill(there, fill_value)

  def resize(self, *sizes: Any) -> Self:
    """Another shape of the first elements; 0 where there are more."""
    wanted: tuple[int, ...] = tuple(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes)
    count, flat = math.prod(wanted), self.reshape(-1) if self.numel() else self.reshape(0)
    flat = flat.shrink([(0, count)]) if count <= self.numel() else flat.pad([(0, count - self.numel())])
    return flat.reshape(wanted)
  def resize_as(self, other: Self) -> Self:
    """The first elements in the other's shape; 0 where there are more."""
    return self.resize(other.shape)

  def new(self, *data: Any) -> Self:
    """A tensor of this device and type: of data, or of a shape of zeros."""
    if not data or isinstance(data[0], int):
      return self.zeros(*(data or (0,)), device=self.device, dtype=self.dtype)
    made: Any = type(self)
    found: Self = made(data[0], device=self.device, dtype=self.dtype)
    return found

  def eig(self, eigenvectors: bool = True) -> Any:
    """Refused: of matrices that are not symmetric eigenvalues are complex, and there is no complex type."""
    raise Unsupported("decomposition", "eig of matrices that need not be symmetric: eigenvalues are complex numbers",
                      hint="eigh for symmetric ones; numpy.linalg.eig(x.numpy()) for others")
  def eigvals(self) -> Any:
    """Refused, as `eig`."""
    return self.eig()
