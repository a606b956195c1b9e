"""Data types of UOps: scalars, short vectors and pointers, with promotion and the NumPy mapping.

A type is interned: two equal types are one object, so `is` and `==` agree and hashing is cheap. Sizes are in bytes
unless a name says bits. Pointers count elements of their base type.
"""
from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyhw.core.errors import UnknownType
from tinyhw.core.lazy import cached_property


class Kind(enum.IntEnum):
  """The family of a scalar; the order is the order of promotion."""
  VOID = 0
  BOOL = 1
  UINT = 2
  INT = 3
  FLOAT = 4


class AddressSpace(enum.Enum):
  """Where a pointer points: device memory, the workgroup's local memory (LDS), a thread's registers or an image."""
  GLOBAL = "global"
  LOCAL = "local"
  REGISTER = "register"
  IMAGE = "image"


@dataclass(frozen=True, eq=False)
class DType:
  """A scalar (`count` 1) or a vector of `count` scalars. Make vectors by `.vec(n)`, pointers by `.ptr(size)`."""
  name: str
  kind: Kind
  bits: int          # of one scalar; a bool occupies one byte in memory
  count: int = 1

  @cached_property
  def itemsize(self) -> int:
    """Bytes of the whole type in memory."""
    return max(self.bits, 8) // 8 * self.count if self.kind is not Kind.VOID else 0

  def vec(self, count: int) -> DType:
    """The vector of `count` such scalars (`count` 1: the scalar itself)."""
    if self.count != 1: raise TypeError(f"{self} is a vector already")
    return self if count == 1 else _vector(self, count)

  @property
  def scalar(self) -> DType:
    """The scalar type of one lane."""
    return self if self.count == 1 else _SCALARS[self.name]

  def ptr(self, size: int = -1, space: AddressSpace = AddressSpace.GLOBAL) -> PtrDType:
    """A pointer to `size` elements of this type (-1: unknown)."""
    return _pointer(self, size, space)

  # Facts are asked for often, so each is found once.
  @cached_property
  def is_float(self) -> bool: return self.kind is Kind.FLOAT
  @cached_property
  def is_int(self) -> bool: return self.kind in (Kind.INT, Kind.UINT)
  @cached_property
  def is_signed(self) -> bool: return self.kind is Kind.INT
  @cached_property
  def is_bool(self) -> bool: return self.kind is Kind.BOOL

  @cached_property
  def min(self) -> int | float | bool:
    """The least value of a scalar (-inf for floats that have it)."""
    if self.is_float: return -self.max
    if self.is_bool: return False
    return -(1 << (self.bits - 1)) if self.is_signed else 0

  @cached_property
  def max(self) -> int | float | bool:
    """The greatest value of a scalar (inf for floats that have it)."""
    if self.is_float: return _FINITE.get(self.name, float("inf"))
    if self.is_bool: return True
    return (1 << (self.bits - 1)) - 1 if self.is_signed else (1 << self.bits) - 1

  @property
  def numpy(self) -> np.dtype[Any] | None:
    """The NumPy scalar type; None for void and for what NumPy has not (`bits_type`)."""
    return _NUMPY.get(self.name)

  @property
  def bits_type(self) -> DType | None:
    """For bfloat16 and the floats of 8 bits: the unsigned integer that their memory is read as; None for all others."""
    return _SCALARS[_STORED[self.name]] if self.name in _STORED else None

  def __repr__(self) -> str: return f"dtypes.{self.name}" + (f".vec({self.count})" if self.count > 1 else "")
  def __reduce__(self) -> tuple[Any, ...]: return (_restore, (self.name, self.count))


@dataclass(frozen=True, eq=False, repr=False)
class PtrDType(DType):
  """A pointer to `size` elements of `base` in `space`. Its own kind is void: no arithmetic is defined on it."""
  base: DType = None  # type: ignore[assignment]  # always given; DType's fields before it have defaults
  space: AddressSpace = AddressSpace.GLOBAL
  size: int = -1

  def __repr__(self) -> str: return f"{self.base!r}.ptr({self.size}, {self.space.name})"
  def __reduce__(self) -> tuple[Any, ...]: return (_pointer, (self.base, self.size, self.space))


_bool = bool  # within the class the names are types'
_int = int
_float = float


class dtypes:
  """The scalar types by name, and the questions asked of several of them."""
  void = DType("void", Kind.VOID, 0)
  bool = DType("bool", Kind.BOOL, 1)
  uint8 = DType("uint8", Kind.UINT, 8)
  uint16 = DType("uint16", Kind.UINT, 16)
  uint32 = DType("uint32", Kind.UINT, 32)
  uint64 = DType("uint64", Kind.UINT, 64)
  int8 = DType("int8", Kind.INT, 8)
  int16 = DType("int16", Kind.INT, 16)
  int32 = DType("int32", Kind.INT, 32)
  int64 = DType("int64", Kind.INT, 64)
  float16 = DType("float16", Kind.FLOAT, 16)
  bfloat16 = DType("bfloat16", Kind.FLOAT, 16)
  float8_e4m3fn = DType("float8_e4m3fn", Kind.FLOAT, 8)      # no infinities: NaN is S.1111.111
  float8_e5m2 = DType("float8_e5m2", Kind.FLOAT, 8)
  float8_e4m3fnuz = DType("float8_e4m3fnuz", Kind.FLOAT, 8)  # CDNA3's: no infinities, no -0, whose memory is NaN
  float8_e5m2fnuz = DType("float8_e5m2fnuz", Kind.FLOAT, 8)
  float32 = DType("float32", Kind.FLOAT, 32)
  float64 = DType("float64", Kind.FLOAT, 64)

  # the names of C and of PyTorch
  half, float, double = float16, float32, float64
  fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz = float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz
  char, short, int, long = int8, int16, int32, int64
  uchar, ushort, uint, ulong = uint8, uint16, uint32, uint64

  index = int32                # what INDEX counts elements with
  default_int, default_float = int32, float32

  # families of them
  fp8_ocp, fp8_fnuz = (float8_e4m3fn, float8_e5m2), (float8_e4m3fnuz, float8_e5m2fnuz)
  fp8s = fp8_ocp + fp8_fnuz
  floats = *fp8s, float16, bfloat16, float32, float64
  uints, sints = (uint8, uint16, uint32, uint64), (int8, int16, int32, int64)
  ints = uints + sints

  # questions of one, as functions
  @staticmethod
  def is_float(dtype: DType) -> _bool: return dtype.is_float
  @staticmethod
  def is_int(dtype: DType) -> _bool: return dtype.is_int
  @staticmethod
  def is_unsigned(dtype: DType) -> _bool: return dtype.is_int and not dtype.is_signed
  @staticmethod
  def is_bool(dtype: DType) -> _bool: return dtype.is_bool

  @staticmethod
  def min(dtype: DType) -> _int | _float | _bool:
    """The least value of a type."""
    return dtype.min
  @staticmethod
  def max(dtype: DType) -> _int | _float | _bool:
    """The greatest value of a type."""
    return dtype.max
  @staticmethod
  def finfo(dtype: DType) -> tuple[_int, _int]:
    """(bits of the exponent, stored bits of the significand) of a float."""
    if not dtype.is_float: raise TypeError(f"{dtype} is no float")
    stored = _SIGNIFICAND[dtype.name] - 1
    return dtype.bits - 1 - stored, stored
  @staticmethod
  def fields() -> dict[str, DType]:
    """Every scalar type but void, by its name."""
    return {d.name: d for d in dtypes.all()}

  @staticmethod
  def all() -> tuple[DType, ...]:
    """Every scalar type but void."""
    return tuple(_SCALARS[n] for n in _SCALARS if n != "void")

  @staticmethod
  def named(name: str) -> DType:
    """The scalar type of that name (`"float32"`, or an alias such as `"half"`)."""
    found = getattr(dtypes, name, None)
    if not isinstance(found, DType): raise UnknownType(f"no dtype is called {name!r}; there are {', '.join(_SCALARS)}")
    return found

  @staticmethod
  def from_numpy(dtype: Any) -> DType:
    """The type of a NumPy dtype (or anything `np.dtype` takes)."""
    name = np.dtype(dtype).name
    if name not in _NUMPY: raise TypeError(f"NumPy type {name} has no dtype here; there are {', '.join(_NUMPY)}")
    return _SCALARS[name]

  @staticmethod
  def from_py(value: Any) -> DType:
    """The default type of a Python bool, int or float; an int that the default type cannot hold is an int64."""
    if isinstance(value, (bool, np.bool_)): return dtypes.bool
    if isinstance(value, (_int, np.integer)):
      return dtypes.default_int if dtypes.default_int.min <= value <= dtypes.default_int.max else dtypes.int64
    if isinstance(value, (_float, np.floating)): return dtypes.default_float
    raise TypeError(f"no dtype for a Python {type(value).__name__}")


_FINITE = {"float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0, "float8_e5m2fnuz": 57344.0}     # those without infinities
_SIGNIFICAND = {"float8_e4m3fn": 4, "float8_e5m2": 3, "float8_e4m3fnuz": 4, "float8_e5m2fnuz": 3, "float16": 11,
                "bfloat16": 8, "float32": 24, "float64": 53}
_SCALARS: dict[str, DType] = {d.name: d for d in (
  dtypes.void, dtypes.bool, dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64, dtypes.int8, dtypes.int16,
  dtypes.int32, dtypes.int64, *dtypes.fp8s, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)}
_STORED = {"bfloat16": "uint16", **{d.name: "uint8" for d in dtypes.fp8s}}
_NUMPY: dict[str, np.dtype[Any]] = {n: np.dtype(n) for n in _SCALARS if n != "void" and n not in _STORED}
_ORDER = {n: i for i, n in enumerate(_SCALARS)}


@functools.cache
def _vector(scalar: DType, count: int) -> DType: return DType(scalar.name, scalar.kind, scalar.bits, count)


@functools.cache
def _pointer(base: DType, size: int, space: AddressSpace) -> PtrDType:
  return PtrDType(f"{base.name}*", Kind.VOID, 64, 1, base, space, size)


def _restore(name: str, count: int) -> DType: return _SCALARS[name].vec(count)


# The lattice of promotion: each type's next wider ones. bool < unsigned < signed < float; unsigned N meets signed N in
# signed 2N; two floats of 8 bits meet in float16, those of 16 bits in float32.
_WIDER: dict[DType, tuple[DType, ...]] = {
  dtypes.bool: (dtypes.int8, dtypes.uint8),
  dtypes.int8: (dtypes.int16,),
  dtypes.int16: (dtypes.int32,),
  dtypes.int32: (dtypes.int64,),
  dtypes.int64: dtypes.fp8s,
  dtypes.uint8: (dtypes.int16, dtypes.uint16),
  dtypes.uint16: (dtypes.int32, dtypes.uint32),
  dtypes.uint32: (dtypes.int64, dtypes.uint64),
  dtypes.uint64: dtypes.fp8s,
  **dict.fromkeys(dtypes.fp8s, (dtypes.float16, dtypes.bfloat16)),
  dtypes.float16: (dtypes.float32,),
  dtypes.bfloat16: (dtypes.float32,),
  dtypes.float32: (dtypes.float64,),
  dtypes.float64: (),
}


@functools.cache
def _upward(dtype: DType) -> frozenset[DType]:
  return frozenset({dtype}).union(*(_upward(w) for w in _WIDER[dtype]))


@functools.cache
def promote(*types: DType) -> DType:
  """The least scalar type that every one of `types` may widen to. Integers meet a float in that float; uint64 meets a
  signed integer in the default float, since no integer type holds both."""
  common = frozenset.intersection(*(_upward(t) for t in types))
  if all(d.is_float for d in common) and not any(t.is_float for t in types): return dtypes.default_float
  return min(common, key=lambda d: (d.kind, d.bits, _ORDER[d.name]))


def can_cast_losslessly(source: DType, target: DType) -> bool:
  """Whether every value of `source` is exactly a value of `target`."""
  if source is target or source.is_bool: return True
  if source.is_int and target.is_int: return source.min >= target.min and source.max <= target.max
  if source.is_int and target.is_float: return source.bits - source.is_signed <= _SIGNIFICAND[target.name]
  return source.is_float and target.is_float and target in _upward(source)
