"""A Triton kernel's arguments as bytes: what its signature's types say, where the code object's metadata says."""
from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.triton.array import extent

if TYPE_CHECKING:
  from tinyhw.wire.codeobject import Kernel

WHOLE = {"i1": 1, "u1": 1, **{f"{sign}{8 * n}": n for sign in "iu" for n in (1, 2, 4, 8)}}  # type -> bytes
FLOATS = {"fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}
Row = tuple[str, str, Any]
"""Name, Triton type, value."""


def flattened(name: str, kind: Any, value: Any) -> Iterator[Row]:
  """The parameters that an argument of a Triton function becomes: constants none, tuples and descriptors several."""
  if isinstance(kind, (tuple, list)):
    for k, (part, v) in enumerate(zip(kind, value, strict=True)): yield from flattened(f"{name}[{k}]", part, v)
  elif kind == "constexpr": return
  elif kind.startswith("tensordesc"): yield from described(name, kind, value)
  else: yield name, kind, value


def described(name: str, kind: str, value: Any) -> Iterator[Row]:
  """A host tensor descriptor, which AMD's GPUs have no hardware for, as pointer, shape and strides.

  Which parameters the compiler makes of one differs between versions of Triton; where Triton says it, it is asked.
  """
  import triton.backends.driver as interface
  if not hasattr(interface, "decompose_descriptor") or not hasattr(interface, "expand_signature"):
    element = kind.removeprefix("tensordesc<").partition("[")[0]
    shape, strides = [int(n) for n in value.shape], [int(n) for n in value.strides]
    yield name, "*" + element, value.base
    for n in (*shape, *strides): yield name, "i64", n
    if getattr(value, "padding", None) is not None: yield name, "i1", value.padding == "nan"
    for n in shape: yield name, "i32", n
    for n in strides: yield name, "i64", n
    return
  kinds, values = interface.expand_signature([kind], None, None), interface.decompose_descriptor(value)
  yield from ((name, k, v) for k, v in zip(kinds, values, strict=True))


def base_of(value: Any) -> Any:
  """What holds the memory of a pointer argument: itself, or what Triton's `reinterpret` wraps."""
  while not hasattr(value, "untyped_storage") and not isinstance(value, np.ndarray) and hasattr(value, "base"):
    value = value.base
  return value


def memory_of(value: Any, where: str) -> tuple[int, int, bool]:
  """[first, end) host addresses of the whole memory behind a tensor, and whether it may be written."""
  value = base_of(value)
  if isinstance(value, np.ndarray): return *extent(value), value.flags.writeable
  if hasattr(value, "untyped_storage"):
    device = str(getattr(value, "device", "cpu"))
    if device != "cpu":
      raise Unsupported("tensor on device", device, where=where, hint="Triton on tinyhw takes tensors of device 'cpu'")
    storage = value.untyped_storage()
    return int(storage.data_ptr()), int(storage.data_ptr()) + int(storage.nbytes()), True
  raise Unsupported("pointer argument", type(value).__name__, where=where,
                    hint="give a torch tensor on the CPU, or tinyhw.triton.array(...) of a NumPy array")


def pointer(value: Any, where: str) -> int:
  """Host address of a pointer argument; None is a null pointer and an int an address."""
  if value is None: return 0
  if isinstance(value, (int, np.integer)) and not isinstance(value, bool): return int(value)
  if not hasattr(value, "data_ptr"):
    hint = "tinyhw.triton.array(...) lends it to kernels" if isinstance(value, np.ndarray) else "give a tensor"
    raise InvalidArgument(f"{type(value).__name__} given for a pointer", where=where, hint=hint)
  return int(value.data_ptr())


def scalar(kind: str, value: Any, where: str) -> bytes:
  """A number of a Triton type as bytes; whole numbers fit it signed or unsigned."""
  if kind in WHOLE:
    size = WHOLE[kind]
    if kind in ("i1", "u1"): return bytes([bool(value)])
    low = -(1 << 8 * size - 1) if kind[0] == "i" else 0
    if not low <= int(value) < 1 << 8 * size:
      raise InvalidArgument(f"{value} does not fit {kind}", where=where)
    return (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")
  if kind == "bf16":  # HIP's launcher cuts the low half off, too
    return (int(np.float32(value).view(np.uint32)) >> 16).to_bytes(2, "little")
  if kind in FLOATS:
    with np.errstate(over="ignore"):
      return struct.pack(FLOATS[kind], {"e": np.float16, "f": np.float32, "d": np.float64}[FLOATS[kind][1]](value))
  raise Unsupported("type of a Triton argument", kind, where=where)


def packed(kernel: Kernel, rows: Sequence[Row], translate: Callable[[int, Any, str], int]) -> bytes:
  """The explicit arguments of a kernel. What the compiler appends for itself (scratch) is left zero.

  `translate` makes a GPU address of (host address, value, name). Raises InvalidArgument where rows and metadata differ.
  """
  parameters = kernel.arguments
  if len(rows) > len(parameters):
    raise InvalidArgument(f"{len(rows)} arguments, the code object takes {len(parameters)}", where=kernel.name)
  payload = bytearray(kernel.kernarg_size)
  for (name, kind, value), p in zip(rows, parameters):
    where = f"{kernel.name}, argument {name}"
    if kind.startswith("*"): data = translate(pointer(value, where), value, name).to_bytes(8, "little")
    else: data = scalar(kind, value, where)
    if len(data) != p.size:
      raise InvalidArgument(f"{kind} has {len(data)} bytes, the code object's parameter {p.size}", where=where)
    payload[p.offset:p.offset + p.size] = data
  return bytes(payload)
