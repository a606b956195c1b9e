"""Arguments of a launch: Python and NumPy values become the bytes that a kernel finds, arrays become device memory."""
from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhw.core.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
  from tinyhw.drive.base import Allocation
  from tinyhw.wire.codeobject import Argument

Array = np.ndarray[Any, np.dtype[Any]]
Buffer = tuple[Array, "Allocation"]
FLOATS = {2: "<e", 4: "<f", 8: "<d"}
# Where the metadata has a type's name: floats, and whole numbers.
FLOAT_NAMES = frozenset({"half", "float", "double", "_Float16", "__half"})
VECTOR = re.compile(r"u?(char|short|int|long|half|float|double)\d+")
WHOLE_NAMES = frozenset({"char", "short", "int", "long", "uchar", "ushort", "uint", "ulong", "bool", "size_t",
                         *(f"unsigned {n}" for n in ("char", "short", "int", "long", "long long"))})


def bind(runtime: Any, program: Any, args: Sequence[Any], shared: int, buffers: list[Buffer]) -> tuple[bytes, int]:
  """(the explicit arguments of a kernel as bytes, its dynamic LDS); arrays are copied into memory added to `buffers`.

  `shared` is the dynamic LDS that the caller asks for; pointers to LDS have theirs behind the kernel's own, in order.
  """
  kernel, parameters = program.name, program.kernel.arguments
  if isinstance(shared, bool) or not isinstance(shared, (int, np.integer)) or shared < 0:
    raise InvalidArgument(f"{shared!r} is no number of bytes", where=f"{kernel}, shared")
  if len(args) != len(parameters):
    wanted = ", ".join(f"{p.name or '?'}: {p.kind}" for p in parameters)
    raise InvalidArgument(f"{len(args)} arguments given, the kernel takes {len(parameters)} ({wanted})", where=kernel)
  own = lds = program.kernel.group_segment_size
  payload = bytearray(program.kernel.kernarg_size)
  for index, (value, p) in enumerate(zip(args, parameters, strict=True)):
    where = f"{kernel}, argument {index}{f' ({p.name})' if p.name else ''}"
    if p.kind == "by_value": data = pack_value(value, p, where)
    elif p.kind == "global_buffer": data = address_of(runtime, value, p, index, where, buffers).to_bytes(8, "little")
    elif p.kind == "dynamic_shared_pointer":
      start = -(-lds // p.pointee_align) * p.pointee_align
      lds, data = start + bytes_of_lds(value, where), start.to_bytes(4, "little")
    else: raise Unsupported("kernel argument kind", p.kind, where=where)
    if len(data) != p.size: raise Unsupported(f"{p.kind} of", f"{p.size} bytes", where=where)
    payload[p.offset:p.offset + p.size] = data
  if lds > own and shared:
    raise InvalidArgument(f"{shared:,} bytes, and the arguments that point to LDS have theirs",
                          where=f"{kernel}, shared", hint="leave shared out")
  return bytes(payload), int(shared) or lds - own


def address_of(runtime: Any, value: Any, p: Argument, index: int, where: str, buffers: list[Buffer]) -> int:
  """The address that a pointer gets: that of an array's copy, a raw one, or null."""
  if value is None: return 0
  if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
    if not 0 <= value < 1 << 64: raise InvalidArgument(f"{int(value):#x} is no 64-bit address", where=where)
    return int(value)
  array = as_array(value)
  if array is None:
    raise InvalidArgument(f"{type(value).__name__} given for a pointer", where=where,
                          hint="give a NumPy array, an address, or None for a null pointer")
  if array.dtype.hasobject: raise InvalidArgument("an array of Python objects", where=where)
  allocation = runtime.alloc(max(array.nbytes, 1))
  if hasattr(runtime, "rename"): runtime.rename(allocation, p.name or f"arg{index}")
  buffers.append((array, allocation))
  if array.nbytes: runtime.copyin(allocation, raw(np.ascontiguousarray(array)))
  address: int = allocation.address
  return address


def as_array(value: Any) -> Array | None:
  """A NumPy array, or what gives one (`__array__`: torch tensors on the CPU); None for anything else."""
  if isinstance(value, np.ndarray): return value
  if isinstance(value, np.generic) or not hasattr(value, "__array__"): return None
  return np.asarray(value)


def bytes_of_lds(value: Any, where: str) -> int:
  """What an int for a pointer to LDS asks for."""
  if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 0:
    raise InvalidArgument(f"{value if isinstance(value, int) else type(value).__name__} given for a pointer to LDS",
                          where=where, hint="give the number of bytes of LDS that it points to")
  return int(value)


def raw(array: Array) -> memoryview:
  """The bytes of a contiguous array of any type and shape."""
  return array.reshape(-1).view(np.uint8).data


def fetch(runtime: Any, like: Array, allocation: Allocation) -> Array:
  """A buffer's contents, in the shape and type of the array that it was made from."""
  out = np.empty(like.shape, like.dtype)
  if out.nbytes: runtime.copyout(raw(out), allocation)
  return out


def pack_value(value: Any, p: Argument, where: str) -> bytes:
  """Bytes of a by-value argument, of exactly the parameter's size, and of its kind where the metadata names it."""
  if isinstance(value, np.ndarray) and not value.shape: value = value[()]
  real, whole = isinstance(value, (float, np.floating)), isinstance(value, np.integer)
  if real and p.type_name in WHOLE_NAMES or whole and p.type_name in FLOAT_NAMES:
    raise InvalidArgument(f"{value} ({type(value).__name__}) given for {p.type_name}", where=where)
  if isinstance(value, (int, float, np.number)) and (p.size > 8 or VECTOR.fullmatch(p.type_name or "")):
    raise InvalidArgument(f"a number given for {p.size} bytes of {p.type_name or 'a structure'}", where=where,
                          hint="launch() in Python takes bytes")
  if isinstance(value, (bytes, bytearray, memoryview, ctypes.Structure, ctypes.Union)): data = bytes(value)
  elif isinstance(value, np.generic): data = value.tobytes()
  elif isinstance(value, float) or (isinstance(value, int) and p.type_name in FLOAT_NAMES):
    if p.size not in FLOATS: raise InvalidArgument(f"a float given for {p.size} bytes", where=where)
    data = struct.pack(FLOATS[p.size], value)
  elif isinstance(value, int):
    if not -(1 << 8 * p.size - 1) <= value < 1 << 8 * p.size:
      raise InvalidArgument(f"{value} does not fit {p.size} bytes", where=where)
    data = (value & (1 << 8 * p.size) - 1).to_bytes(p.size, "little")
  else: raise InvalidArgument(f"{type(value).__name__} given for a value of {p.size} bytes", where=where)
  if len(data) != p.size: raise InvalidArgument(f"{len(data)} bytes given for a value of {p.size} bytes", where=where)
  return data
