"""What a Tensor is made of: numbers, lists, arrays, bytes, files, other tensors; each becomes a node of the graph."""
from __future__ import annotations

import math
import os
import struct
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from tinyhw.core.errors import InvalidArgument, InvalidType, MissingFile
from tinyhw.devices.buffer import from_host
from tinyhw.function.core import TensorBase, fitting
from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType, dtypes, promote
from tinyhw.ir.size import Size, scalar
from tinyhw.ir.uop import UOp

if TYPE_CHECKING:
  from tinyhw.tensor.tensor import Tensor


def nested(values: list[Any], shape: tuple[int, ...]) -> Any:
  """A flat list as lists in lists, of that shape; the one element for shape ()."""
  if not shape: return values[0]
  if not values: return [] if shape[0] == 0 or len(shape) == 1 else [nested([], shape[1:]) for _ in range(shape[0])]
  for size in shape[:0:-1]: values = [values[i:i + size] for i in range(0, len(values), size)]
  return values


_PLAIN: Final = frozenset({bool, int, float})
_LISTED: Final = _PLAIN | {list, tuple}
_PACKED: Final = frozenset({"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float32",
                            "float64"})
_MANY: Final = 256  # numbers, from which on NumPy packs them


def _size_of(path: os.PathLike[Any]) -> int:
  try: return os.stat(path).st_size
  except OSError as error: raise MissingFile(f"no file {path}: {error.strerror}") from None


def node_of(data: Any, device: str, dtype: DType | None, anywhere: bool, tensors: type[Tensor]) -> UOp:
  """The graph node of a constructor's data; `tensors` is the class that files and lists of tensors go through."""
  if isinstance(data, Size): data, dtype = scalar(data, device), dtype or getattr(data, "dtype", None)
  if isinstance(data, UOp): return data.cast(dtype) if dtype else data
  if isinstance(data, TensorBase):
    node = data.uop if anywhere or data._device == device else data.uop.copy_to(device)
    return node.cast(dtype) if dtype else node
  if data is None: return UOp.const(dtype or dtypes.default_float, 0, device, (0,))
  # A NumPy scalar keeps its type, also where it is a Python number at the same time.
  if isinstance(data, (bool, int, float)) and not hasattr(data, "dtype"):
    return UOp.const(kind := dtype or dtypes.from_py(data), fitting(data, kind), device)
  if isinstance(data, os.PathLike):
    kind, size = dtype or dtypes.uint8, _size_of(data)
    if size % kind.itemsize: raise InvalidArgument(f"{size} bytes in {data} are no whole number of {kind}")
    held = tensors.empty(size // kind.itemsize, device=f"DISK:{os.fspath(data)}", dtype=kind)
    return held.uop if anywhere else held.to(device).uop
  if isinstance(data, (bytes, bytearray, memoryview)):
    kind = dtype or dtypes.uint8
    raw = memoryview(data).cast("B")
    if raw.nbytes % kind.itemsize: raise InvalidArgument(f"{raw.nbytes} bytes are no whole number of {kind}")
    return _from_memory(raw, device, (raw.nbytes // kind.itemsize,), kind)
  if isinstance(data, (list, tuple, range)):
    kinds = set(map(type, data))
    if len(data) >= _MANY and kinds <= _PLAIN and (packed := _packed(data, kinds, dtype)) is not None:
      return from_host(packed[0], device, len(data), packed[1])
    if any(issubclass(kind, TensorBase) for kind in kinds):
      rows = [x if isinstance(x, tensors) else tensors(x, device=device) for x in data]
      node = rows[0].stack(*rows[1:]).uop
      return node.cast(dtype) if dtype else node
    if data and all(hasattr(x, "__array__") and getattr(x, "ndim", 0) for x in data):
      return _of_arrays(data, device, dtype)
    return _from_list(data, device, dtype)
  if type(data).__module__.partition(".")[0] == "torch" and hasattr(data, "detach"): node = _of_torch(data, device)
  elif hasattr(data, "__array__"): node = _of_array(data, device)
  elif hasattr(data, "__dlpack__"): node = exchanged(data, device)
  else: raise InvalidType(f"a Tensor cannot be made from a {type(data).__name__}")
  return node.cast(dtype) if dtype else node


def _of_arrays(data: Any, device: str, dtype: DType | None) -> UOp:
  """Arrays of one shape, one above the other."""
  import numpy
  arrays = [numpy.asarray(x) for x in data]
  if len(shapes := {a.shape for a in arrays}) > 1:
    raise InvalidArgument(f"arrays of shapes {', '.join(map(str, sorted(shapes)))} side by side")
  node = _of_array(numpy.stack(arrays), device)
  return node.cast(dtype) if dtype else node


def _of_array(data: Any, device: str) -> UOp:
  """A copy of what NumPy takes for an array."""
  import numpy
  array = numpy.asarray(data, order="C")
  try: kind = dtypes.from_numpy(array.dtype)
  except TypeError as error: raise InvalidArgument(f"an array of {array.dtype}: {error}") from None
  if not array.dtype.isnative: array = array.astype(array.dtype.newbyteorder("="))
  raw = array.reshape(-1).data.cast("B") if array.size else memoryview(b"")
  return _from_memory(raw, device, array.shape, kind)


def _of_torch(data: Any, device: str) -> UOp:
  """A copy of a torch.Tensor, wherever it is. NumPy knows no bfloat16: its bits go as integers."""
  host = data.detach().cpu().contiguous().resolve_conj().resolve_neg()
  if str(host.dtype) != "torch.bfloat16": return _of_array(host.numpy(), device)
  import torch
  bits = _of_array(host.view(torch.int16).numpy(), device)
  return bits.bitcast(dtypes.bfloat16)


class _Capsule:
  """A bare DLPack capsule, as what gives it."""

  def __init__(self, capsule: Any) -> None: self.capsule = capsule
  def __dlpack__(self, **options: Any) -> Any: return self.capsule
  def __dlpack_device__(self) -> tuple[int, int]: return (1, 0)


def exchanged(data: Any, device: str) -> UOp:
  """A copy of an array in host memory that speaks DLPack, or of a capsule of one."""
  import numpy
  giver = _Capsule(data) if type(data).__name__ == "PyCapsule" else data
  if not hasattr(giver, "__dlpack__"): raise InvalidType(f"a {type(data).__name__} does not speak DLPack")
  try: array = numpy.from_dlpack(giver)
  except (BufferError, RuntimeError) as error:
    raise InvalidArgument(f"an array by DLPack: {error}", hint="copy it to host memory first") from None
  return _of_array(array, device)


def _from_memory(raw: memoryview, device: str, shape: tuple[int, ...], dtype: DType) -> UOp:
  size = math.prod(shape)
  if not size: return UOp.const(dtype, 0, device, shape)
  return from_host(raw, device, size, dtype).reshape(shape)


def _listed(x: Any) -> Any:
  """An array of axes, or what else counts up, as lists."""
  if isinstance(x, range): return list(x)
  if not hasattr(x, "__array__") or not getattr(x, "ndim", 0): return x
  import numpy
  return numpy.asarray(x).tolist()


def _packed(values: Sequence[Any], kinds: set[type], dtype: DType | None) -> tuple[memoryview, DType] | None:
  """The bytes of many plain numbers of these types, and theirs, by NumPy; None for what is packed one by one: types
  that NumPy has not, floats for integers, and what no number of the type is, which that refuses by name."""
  kind = dtype or (dtypes.default_float if float in kinds else promote(*{dtypes.from_py(t()) for t in kinds}))
  if kind.name not in _PACKED or kind.is_int and float in kinds: return None
  import numpy  # not needed by a program's first tensors
  try:
    if kind.is_float:
      with numpy.errstate(over="ignore"): array = numpy.array(values, numpy.float64).astype(kind.name)
    elif kind.is_bool: array = numpy.array(values, bool)
    else:
      wide = numpy.array(values, numpy.int64)
      if not (kind.min if kind.is_signed else -kind.max) <= wide.min() or wide.max() > kind.max: return None
      array = wide.astype(kind.name)
  except OverflowError: return None
  return array.data.cast("B"), kind


def _from_list(data: Any, device: str, dtype: DType | None) -> UOp:
  shape: list[int] = []
  if all(isinstance(x, (bytes, bytearray)) for x in data): data = [list(x) for x in data]
  level: list[Any] = [list(data)]
  while level and all(isinstance(x, (list, tuple)) for x in level):
    lengths = {len(x) for x in level}
    if len(lengths) > 1: raise InvalidArgument(f"lists of lengths {', '.join(map(str, sorted(lengths)))} side by side")
    shape.append(lengths.pop())
    level = list(chain.from_iterable(level))
    if not _LISTED.issuperset(map(type, level)): level = [_listed(x) for x in level]
  kinds = set(map(type, level))
  if len(level) >= _MANY and kinds <= _PLAIN and (packed := _packed(level, kinds, dtype)) is not None:
    return from_host(packed[0], device, len(level), packed[1]).reshape(tuple(shape))
  values = [x.item() if hasattr(x, "item") else x for x in level]
  for x in values:
    if not isinstance(x, (bool, int, float)):
      what = "a list beside a number" if isinstance(x, (list, tuple)) else f"a {type(x).__name__}"
      raise InvalidArgument(f"{what} in a list of numbers")
  kind = dtype or (dtypes.default_float if not values or any(isinstance(x, float) for x in values) else
                   promote(*{dtypes.from_py(x) for x in values}))
  if not values: return UOp.const(kind, 0, device, tuple(shape))
  if kind.is_int:
    values = [fitting(math.trunc(x) if isinstance(x, float) and math.isfinite(x) else x, kind) for x in values]
  else: values = [fitting(x, kind) for x in values]
  words, letter = [semantics.canonical(x, kind) for x in values], semantics.FORMATS[(kind.bits_type or kind).name]
  if kind.bits_type is not None: words = [semantics.to_bits(x, kind) for x in words]
  return from_host(struct.pack(f"<{len(words)}{letter}", *words), device, len(words), kind).reshape(tuple(shape))
