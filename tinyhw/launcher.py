"""`tinyhw.launch`: run a kernel of a ready code object on a device, arrays in and arrays out."""
from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.device import Device

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


def launch(binary: bytes, kernel: str, grid: Sequence[int], block: Sequence[int], args: Sequence[Any],
           device: str = "AMD") -> list[Array]:
  """Run `kernel` of `binary` (an AMDGPU code object, versions 4 to 6) and wait for it.

  `grid` counts workgroups and `block` work-items, (x, y, z) each; missing dimensions are 1. `args` has one entry for
  each explicit parameter: a NumPy array is a buffer (copied in), a NumPy scalar, int, float or bytes is passed by value
  with the size and type of the code object's metadata, and an int for a pointer parameter is a raw GPU address.

  Returns every array's contents after the run, in order, as new arrays. Raises InvalidArgument for arguments that do
  not fit the kernel, DecodeError for a broken binary, DeviceError for what went wrong on the device.
  """
  opened = Device[device]
  runtime: Any = opened.runtime
  if not hasattr(runtime, "load_kernel"):
    raise Unsupported("launch of ready code objects on", opened.name, hint="use device='AMD' or device='EMU'")
  program = runtime.load_kernel(binary, kernel)
  buffers: list[Buffer] = []
  try:
    payload = bind(runtime, program, args, buffers)
    program.launch(payload, dims(grid, "grid"), dims(block, "block"))
    runtime.synchronize()
    return [fetch(runtime, value, allocation) for value, allocation in buffers]
  finally:
    for _, allocation in buffers: runtime.free(allocation)


def bind(runtime: Any, program: Any, args: Sequence[Any], buffers: list[Buffer]) -> bytes:
  """The explicit arguments of a kernel as bytes; arrays are copied into memory that is added to `buffers`."""
  kernel, parameters = program.name, program.kernel.arguments
  if len(args) != len(parameters):
    wanted = ", ".join(f"{p.name or '?'}: {p.kind}" for p in parameters)
    raise InvalidArgument(f"{len(args)} arguments given, the kernel takes {len(parameters)} ({wanted})", where=kernel)
  payload = bytearray(program.kernel.kernarg_size)
  for index, (value, p) in enumerate(zip(args, parameters, strict=True)):
    where = f"{kernel}, argument {index}{f' ({p.name})' if p.name else ''}"
    if p.kind == "by_value": data = pack_value(value, p, where)
    elif p.kind == "global_buffer":
      if isinstance(value, np.ndarray):
        allocation = runtime.alloc(max(value.nbytes, 1))
        if hasattr(runtime, "rename"): runtime.rename(allocation, p.name or f"argument {index}")
        buffers.append((value, allocation))
        if value.nbytes: runtime.copyin(allocation, raw(np.ascontiguousarray(value)))
        address = allocation.address
      elif isinstance(value, (int, np.integer)) and not isinstance(value, bool): address = int(value)
      else:
        raise InvalidArgument(f"{type(value).__name__} given for a pointer", where=where,
                              hint="give a NumPy array or an address")
      if not 0 <= address < 1 << 64: raise InvalidArgument(f"{address:#x} is no 64-bit address", where=where)
      data = address.to_bytes(8, "little")
    else: raise Unsupported("kernel argument kind", p.kind, where=where)
    payload[p.offset:p.offset + p.size] = data
  return bytes(payload)


def raw(array: Array) -> memoryview:
  """The bytes of a contiguous array of any type and shape."""
  return array.reshape(-1).view(np.uint8).data


def fetch(runtime: Any, like: Array, allocation: Allocation) -> Array:
  """A buffer's contents, in the shape and type of the array that it was made from."""
  out = np.empty(like.shape, like.dtype)
  if out.nbytes: runtime.copyout(raw(out), allocation)
  return out


def dims(counts: Sequence[int], where: str) -> tuple[int, int, int]:
  """Three positive counts out of one to three."""
  if not 1 <= len(counts) <= 3 or not all(isinstance(c, (int, np.integer)) and c > 0 for c in counts):
    raise InvalidArgument(f"{tuple(counts)} is not one to three positive counts", where=where)
  x, y, z = (int(c) for c in (*counts, 1, 1)[:3])
  return x, y, z


def pack_value(value: Any, p: Argument, where: str) -> bytes:
  """Bytes of a by-value argument, of exactly the parameter's size, and of its kind where the metadata names it."""
  real, whole = isinstance(value, (float, np.floating)), isinstance(value, np.integer)
  if real and p.type_name in WHOLE_NAMES or whole and p.type_name in FLOAT_NAMES:
    raise InvalidArgument(f"{value} ({type(value).__name__}) given for {p.type_name}", where=where)
  if isinstance(value, (int, float, np.number)) and (p.size > 8 or VECTOR.fullmatch(p.type_name or "")):
    raise InvalidArgument(f"a number given for {p.size} bytes of {p.type_name or 'a structure'}", where=where,
                          hint="launch() in Python takes bytes")
  if isinstance(value, (bytes, bytearray)): data = bytes(value)
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
