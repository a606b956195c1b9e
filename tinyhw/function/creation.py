"""Tensors made of constants: filled, counted, in matrices, or like another one."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidNumber, InvalidShape, InvalidType, Unsupported
from tinyhw.devices.registry import Device
from tinyhw.function.core import ConstType, Places, fitting
from tinyhw.function.movement import iota
from tinyhw.function.reduction import DTypeLike, named
from tinyhw.function.sample import Sampling
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.results import counted
from tinyhw.ir.size import Size, larger, plain, scalar
from tinyhw.ir.uop import UOp

if TYPE_CHECKING:
  from typing import Self


def shape_of(shape: Any) -> tuple[int, ...]:
  """`f(2, 3)`, `f((2, 3))` and `f(2)` as a tuple of sizes."""
  sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
  if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)): sizes = sizes[0]
  if any(not isinstance(s, (int, Size)) or isinstance(s, bool) or s < 0 for s in sizes):
    raise InvalidShape(f"{tuple(sizes)} is not a shape")
  return counted(tuple(plain(s) for s in sizes))


def _counted(start: Any, stop: Any, step: Any) -> int:
  """How many numbers there are from start to below stop, where launches decide it."""
  if any(isinstance(x, float) for x in (start, stop, step)) or not step > 0:
    raise Unsupported("arange", f"from {start} to {stop} by {step}, which launches decide",
                      hint="it counts ints, with a step above 0")
  return larger(plain((stop - start + step - 1) // step), 0)


class Creation(Sampling):
  """The functions that make tensors."""
  __slots__ = ()

  def requires_grad_(self, wanted: bool = True) -> Self:
    """Say whether `backward` leaves a gradient in this leaf. Returns this."""
    raise NotImplementedError

  @classmethod
  def _made(cls, node: UOp, requires_grad: bool | None) -> Self:
    # Two tensors of one constant are two values that gradients may be asked by.
    result = cls._wrap(node.apart() if node.dtype.is_float else node)
    return result if requires_grad is None else result.requires_grad_(requires_grad)

  # *** filled ***

  @classmethod
  def full(cls, shape: int | Sequence[int], value: ConstType, device: Places = None, dtype: DTypeLike = None,
           requires_grad: bool | None = None, buffer: bool = False) -> Self:
    """Every element `value`, a number or a Variable; in memory of its own, if a `buffer` is wanted."""
    sizes, device = shape_of(shape), Device.canonicalize(device)
    if isinstance(value, Size): node = scalar(value, device).reshape((1,) * len(sizes)).expand(sizes)
    else:
      kind = named(dtype) or dtypes.from_py(value)
      node = UOp.const(kind, fitting(value, kind), device, sizes)
    node = node.cast(named(dtype) or node.dtype)
    return cls._made(node.contiguous() if buffer else node, requires_grad)

  @classmethod
  def zeros(cls, *shape: Any, device: Places = None, dtype: DTypeLike = None,
            requires_grad: bool | None = None, buffer: bool = False) -> Self:
    """Every element 0, as float32 unless told."""
    return cls.full(shape_of(shape), 0.0, device, dtype, requires_grad, buffer)

  @classmethod
  def ones(cls, *shape: Any, device: Places = None, dtype: DTypeLike = None,
           requires_grad: bool | None = None, buffer: bool = False) -> Self:
    """Every element 1, as float32 unless told."""
    return cls.full(shape_of(shape), 1.0, device, dtype, requires_grad, buffer)

  @classmethod
  def empty(cls, *shape: Any, device: Places = None, dtype: DTypeLike = None,
            requires_grad: bool | None = None) -> Self:
    """Memory of its own whose contents are not defined."""
    sizes = shape_of(shape)
    kind = named(dtype) or dtypes.default_float
    if not math.prod(sizes): return cls.full(sizes, 0, device, kind, requires_grad)
    node = UOp.new_buffer(Device.canonicalize(device), math.prod(sizes), kind).reshape(sizes)
    return cls._made(node, requires_grad)

  # *** like this one ***

  def full_like(self, value: ConstType, dtype: DTypeLike = None, device: Places = None,
                requires_grad: bool | None = None, buffer: bool = False) -> Self:
    """Every element `value`; this one's shape, and device and dtype unless told."""
    return self.full(self.shape, value, device or self.device, named(dtype) or self.dtype, requires_grad, buffer)
  def zeros_like(self, dtype: DTypeLike = None, device: Places = None, requires_grad: bool | None = None,
                 buffer: bool = False) -> Self:
    """Every element 0, otherwise like this one."""
    return self.full_like(0, dtype, device, requires_grad, buffer)
  def ones_like(self, dtype: DTypeLike = None, device: Places = None, requires_grad: bool | None = None,
                buffer: bool = False) -> Self:
    """Every element 1, otherwise like this one."""
    return self.full_like(1, dtype, device, requires_grad, buffer)
  def empty_like(self, dtype: DTypeLike = None, device: Places = None, requires_grad: bool | None = None) -> Self:
    """Memory whose contents are not defined, otherwise like this one."""
    return self.empty(self.shape, device=device or self.device, dtype=named(dtype) or self.dtype,
                      requires_grad=requires_grad)
  def new_full(self, shape: int | Sequence[int], value: ConstType, dtype: DTypeLike = None, device: Places = None,
               requires_grad: bool | None = None) -> Self:
    """Another shape of `value`, of this device and dtype unless told."""
    return self.full(shape, value, device or self.device, named(dtype) or self.dtype, requires_grad)
  def fill(self, value: ConstType) -> Self:
    """One number for each element, of this dtype."""
    return self.full_like(value)
  def new_zeros(self, *shape: Any, dtype: DTypeLike = None, device: Places = None,
                requires_grad: bool | None = None) -> Self:
    """Zeros of another shape, of this device and dtype unless told."""
    return self.new_full(shape_of(shape), 0, dtype, device, requires_grad)
  def new_ones(self, *shape: Any, dtype: DTypeLike = None, device: Places = None,
               requires_grad: bool | None = None) -> Self:
    """Ones of another shape, of this device and dtype unless told."""
    return self.new_full(shape_of(shape), 1, dtype, device, requires_grad)
  def new_empty(self, *shape: Any, dtype: DTypeLike = None, device: Places = None,
                requires_grad: bool | None = None) -> Self:
    """Memory of another shape whose contents are not defined, of this device and dtype unless told."""
    return self.empty(shape_of(shape), device=device or self.device, dtype=named(dtype) or self.dtype,
                      requires_grad=requires_grad)

  # *** counted ***

  @classmethod
  def arange(cls, start: float, stop: float | None = None, step: float = 1, device: Places = None,
             dtype: DTypeLike = None, requires_grad: bool | None = None) -> Self:
    """start, start + step, ... below stop (above it for a negative step); from 0 when only a stop is given."""
    if stop is None: start, stop = 0, start
    if step == 0: raise InvalidArgument("arange with step 0")
    if any(isinstance(x, Size) for x in (start, stop, step)): count = _counted(start, stop, step)
    elif not all(math.isfinite(x) for x in (start, stop, step)):
      raise InvalidNumber(f"arange from {start} to {stop} by {step}", hint="it counts finite numbers")
    elif isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
      count = max(0, -((start - stop) // step))
    else: count = max(0, math.ceil(min((float(stop) - float(start)) / step, 2.0**64)))
    inexact = any(isinstance(x, float) for x in (start, stop, step))
    kind = named(dtype) or (dtypes.default_float if inexact else dtypes.default_int)
    if not inexact and kind.is_int and isinstance(count, int) and count:
      ends = sorted((int(start), int(start + (count - 1) * step)))
      if dtype is None and not kind.min <= ends[0] <= ends[1] <= kind.max: kind = dtypes.int64
      if not kind.min <= ends[0] <= ends[1] <= kind.max:
        raise InvalidNumber(f"arange of {ends[0]} to {ends[1]} as {kind}", hint="give a wider dtype")
    places = cls._wrap(iota(count, Device.canonicalize(device)))
    # What has a fraction is counted in a float, and cut at the end.
    wide = kind if kind.is_float or not inexact else dtypes.float64
    if kind.is_float and kind.bits < 32: wide = dtypes.float32
    return cls._made((places.cast(wide) * step + start).cast(kind).uop, requires_grad)

  @classmethod
  def linspace(cls, start: float, stop: float, steps: int, device: Places = None, dtype: DTypeLike = None,
               requires_grad: bool | None = None) -> Self:
    """`steps` numbers from start to stop, both included."""
    if steps < 0: raise InvalidArgument(f"linspace of {steps} steps")
    kind = named(dtype) or dtypes.default_float
    if kind.is_bool: raise InvalidType("linspace of bools", hint="it is for numbers")
    places = cls._wrap(iota(steps, Device.canonicalize(device)))
    wide = places.cast(dtypes.float32 if kind.is_float and kind.bits <= 32 else dtypes.float64)
    step = (float(stop) - float(start)) / max(steps - 1, 1)
    # Each half is counted from its own end, which so is exact.
    values = (places < (steps + 1) // 2).where(wide * step + start, stop - (steps - 1 - wide) * step)
    return cls._made(values.cast(kind).uop, requires_grad)

  @classmethod
  def logspace(cls, start: float, stop: float, steps: int, base: float = 10.0, device: Places = None,
               dtype: DTypeLike = None, requires_grad: bool | None = None) -> Self:
    """`base` to the powers start..stop, in `steps` steps."""
    kind = named(dtype) or dtypes.default_float
    wide = cls.linspace(start, stop, steps, device, dtypes.float64)
    return cls._made((base ** wide).cast(kind).uop, requires_grad)

  # *** matrices ***

  @classmethod
  def eye(cls, rows: int, columns: int | None = None, device: Places = None, dtype: DTypeLike = None,
          requires_grad: bool | None = None, *, m: int | None = None) -> Self:
    """1 on the diagonal, else 0."""
    name = Device.canonicalize(device)
    wide = m if m is not None else columns if columns is not None else rows
    if rows < 0 or wide < 0: raise InvalidShape(f"eye of {rows} by {wide}")
    line, row = cls._wrap(iota(rows, name)).reshape(rows, 1), cls._wrap(iota(wide, name))
    return cls._made((line == row).cast(named(dtype) or dtypes.default_float).uop, requires_grad)

  @classmethod
  def tri(cls, rows: int, columns: int | None = None, diagonal: int = 0, device: Places = None,
          dtype: DTypeLike = None) -> Self:
    """1 on a diagonal and below, else 0."""
    ones = cls.ones(rows, rows if columns is None else columns, device=device, dtype=dtype)
    return ones.tril(diagonal)

  @classmethod
  def tril_indices(cls, row: int, col: int, offset: int = 0, device: Places = None,
                   dtype: DTypeLike = None) -> Self:
    """Positions of the lower triangle of a matrix: a row of rows, and one of columns, as int32 unless told."""
    places: Self = cls.ones(row, col, device=device).tril(offset).nonzero()
    return places.T.cast(named(dtype) or places.dtype)

  @classmethod
  def triu_indices(cls, row: int, col: int, offset: int = 0, device: Places = None,
                   dtype: DTypeLike = None) -> Self:
    """Positions of the upper triangle of a matrix: a row of rows, and one of columns, as int32 unless told."""
    places: Self = cls.ones(row, col, device=device).triu(offset).nonzero()
    return places.T.cast(named(dtype) or places.dtype)

  @classmethod
  def hann_window(cls, size: int, periodic: bool = True, device: Places = None, dtype: DTypeLike = None) -> Self:
    """sin(pi i / n) squared: a bell of `size` elements."""
    return cls._bell(size, periodic, 0.5, device, dtype)

  @classmethod
  def hamming_window(cls, size: int, periodic: bool = True, device: Places = None, dtype: DTypeLike = None) -> Self:
    """0.54 - 0.46 cos(2 pi i / n)."""
    return cls._bell(size, periodic, 0.54, device, dtype)

  @classmethod
  def bartlett_window(cls, size: int, periodic: bool = True, device: Places = None,
                      dtype: DTypeLike = None) -> Self:
    """A triangle from 0 to 1 and back."""
    if size < 2: return cls.ones(size, device=device, dtype=dtype)
    places = cls.arange(size, device=device, dtype=dtypes.float64) * (2.0 / (size if periodic else size - 1))
    return (1 - (places - 1).abs()).cast(named(dtype) or dtypes.default_float)

  @classmethod
  def blackman_window(cls, size: int, periodic: bool = True, device: Places = None,
                      dtype: DTypeLike = None) -> Self:
    """Blackman's sum of cosines, 0 at the ends."""
    if size < 2: return cls.ones(size, device=device, dtype=dtype)
    angle = cls.arange(size, device=device, dtype=dtypes.float64) * (2 * math.pi / (size if periodic else size - 1))
    return (0.42 - 0.5 * angle.cos() + 0.08 * (angle * 2).cos()).cast(named(dtype) or dtypes.default_float)

  @classmethod
  def _bell(cls, size: int, periodic: bool, alpha: float, device: Places, dtype: DTypeLike) -> Self:
    kind = named(dtype) or dtypes.default_float
    if size == 1: return cls.ones(1, device=device, dtype=kind)
    places = cls._wrap(iota(size,
                            Device.canonicalize(device))).cast(dtypes.float64 if kind.bits > 32 else dtypes.float32)
    turns = (places * (2 * math.pi / (size if periodic else size - 1))).cos()
    return (alpha - (1 - alpha) * turns).cast(kind)
