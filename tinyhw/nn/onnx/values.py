"""What flows between nodes: tensors, constants whose elements the host knows, sequences, and types narrower than
ours."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.nn.formats.source import tensor as from_bytes
from tinyhw.nn.onnx.table import Host
from tinyhw.tensor.tensor import Tensor

SMALL: Final = 1024  # elements that shape arithmetic may have


@dataclass(frozen=True)
class Element:
  """A type of ONNX: its number in files, its name, the dtype that holds it (None: none does), and its bits."""
  code: int
  name: str
  holder: str | None
  bits: int

  @property
  def dtype(self) -> DType | None:
    """The dtype that holds the elements."""
    found = getattr(dtypes, self.holder, None) if self.holder else None
    return found if isinstance(found, DType) else None

  @property
  def coded(self) -> bool:
    """Whether it is a float that stands in a byte by its bits (`nn.onnx.minifloat`)."""
    return self.holder == "uint8" and self.name.startswith("float")

  @property
  def narrow(self) -> bool:
    """Whether the dtype that holds an element is another type."""
    return self.bits < 8 and self.name != "bool" or self.coded

  @property
  def limits(self) -> tuple[int, int]:
    """The least and the greatest of an integer type."""
    return (0, (1 << self.bits) - 1) if self.name.startswith("u") else (-(1 << self.bits - 1), (1 << self.bits - 1) - 1)


ELEMENTS: Final[dict[int, Element]] = {e.code: e for e in (
  Element(1, "float32", "float32", 32), Element(2, "uint8", "uint8", 8), Element(3, "int8", "int8", 8),
  Element(4, "uint16", "uint16", 16), Element(5, "int16", "int16", 16), Element(6, "int32", "int32", 32),
  Element(7, "int64", "int64", 64), Element(8, "string", None, 0), Element(9, "bool", "bool", 1),
  Element(10, "float16", "float16", 16), Element(11, "float64", "float64", 64), Element(12, "uint32", "uint32", 32),
  Element(13, "uint64", "uint64", 64), Element(14, "complex64", None, 64), Element(15, "complex128", None, 128),
  Element(16, "bfloat16", "bfloat16", 16), Element(17, "float8e4m3fn", "float8_e4m3fn", 8),
  Element(18, "float8e4m3fnuz", "uint8", 8), Element(19, "float8e5m2", "float8_e5m2", 8),
  Element(20, "float8e5m2fnuz", "uint8", 8), Element(21, "uint4", "uint8", 4), Element(22, "int4", "int8", 4),
  Element(23, "float4e2m1", "uint8", 4), Element(24, "float8e8m0", "uint8", 8), Element(25, "uint2", "uint8", 2),
  Element(26, "int2", "int8", 2))}
NAMED: Final = {e.name: e for e in ELEMENTS.values()}


def element(code: int, where: str | None = None) -> Element:
  """The type of a number in a file, which must be one that a dtype holds."""
  if code not in ELEMENTS: raise InvalidArgument(f"{code} is no element type of ONNX", where=where)
  found = ELEMENTS[code]
  if found.dtype is None: raise Unsupported("ONNX element type", found.name, where=where)
  return found


class Known:
  """A constant whose elements the host knows. `shape` says that it came from a Shape: then floats are arithmetic of
  shapes too. `given` ones were handed in by the caller: nothing is computed of them on the host."""
  __slots__ = ("array", "shape", "given", "_tensor")

  def __init__(self, array: Any, shape: bool = False, given: bool = False, tensor: Tensor | None = None):
    self.array: Host = np.asarray(array)
    self.shape, self.given, self._tensor = shape, given, tensor

  def tensor(self, device: str) -> Tensor:
    """The same as a value on a device."""
    if self._tensor is None:
      array = self.array
      dtype = dtypes.from_numpy(array.dtype)
      # One number is part of the kernel that uses it.
      if array.size == 1: self._tensor = Tensor.full(array.shape, array.reshape(-1)[0].item(), device, dtype)
      else: self._tensor = from_bytes(memoryview(np.ascontiguousarray(array).tobytes()), dtype, array.shape, device)
    return self._tensor

  @property
  def arithmetic(self) -> bool:
    """Whether the host may compute with it: a small constant, of integers, or beside the sizes of a shape."""
    return not self.given and self.array.size <= SMALL


Value = Tensor | Known | list[Any] | None


def as_tensor(value: Value, device: str) -> Tensor:
  """A value as a tensor."""
  if isinstance(value, Tensor): return value
  if isinstance(value, Known): return value.tensor(device)
  raise InvalidArgument("a sequence where a tensor is needed" if value is not None
                        else "no value where a tensor is needed")


def as_host(value: Value) -> Host:
  """The elements on the host: those of a tensor are computed and read."""
  if isinstance(value, Known): return value.array
  if isinstance(value, Tensor): return value.numpy()
  raise InvalidArgument("a sequence where numbers are needed" if value is not None
                        else "no value where numbers are needed")


def shape_of(value: Value) -> tuple[int, ...]:
  """The shape of a tensor or constant."""
  if isinstance(value, Tensor): return value.shape
  if isinstance(value, Known): return tuple(value.array.shape)
  raise InvalidArgument("a sequence has no shape")


def unpacked(raw: bytes, bits: int, count: int, signed: bool) -> bytes:
  """Elements of 4 or 2 bits, the first one lowest, as a byte each."""
  each = 8 // bits
  spread = (np.frombuffer(raw, np.uint8)[:, None] >> (np.arange(each, dtype=np.uint8) * bits)) & ((1 << bits) - 1)
  flat = spread.reshape(-1)[:count].astype(np.int16)
  if signed: flat = np.where(flat >= 1 << bits - 1, flat - (1 << bits), flat)
  return flat.astype(np.int8 if signed else np.uint8).tobytes()


@dataclass(frozen=True)
class Weights:
  """A tensor of the file: its type, shape and elements, little-endian in row-major order, a byte each at least."""
  name: str
  element: Element
  shape: tuple[int, ...]
  raw: memoryview

  def tensor(self, device: str | None) -> Tensor:
    """The elements on a device."""
    assert self.element.dtype is not None
    return from_bytes(self.raw, self.element.dtype, self.shape, device)

  def value(self, device: str, tensor: Tensor | None = None) -> Value:
    """As a constant the host knows, where it is small, or else as a tensor."""
    dtype = self.element.dtype
    assert dtype is not None
    if dtype.numpy is None or math.prod(self.shape) > SMALL: return self.tensor(device) if tensor is None else tensor
    return Known(np.frombuffer(self.raw, dtype.numpy).reshape(self.shape), tensor=tensor)
