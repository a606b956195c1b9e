"""Arguments of a launch: Python and NumPy values become the bytes that a kernel finds, arrays become device memory.

Nothing is reinterpreted in silence. Where a parameter's type is known (`tinyhw.kernels.parameters`), what is given must
have it, or be a Python number that it holds; where it is not, NumPy's types say what is meant, and Python numbers,
which have no size, are refused. Bytes and structured values are always taken as they are.
"""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.kernels.parameters import declared, seen
from tinyhw.kernels.textures import Surface, Texture
from tinyhw.wire.ctype import CType

if TYPE_CHECKING:
  from tinyhw.drive.base import Allocation
  from tinyhw.wire.codeobject import Argument

Array = np.ndarray[Any, np.dtype[Any]]
Buffer = tuple[Array | None, "Allocation"]  # None: memory of a launch that nobody gets back
_FLOATS: Final = {2: "<e", 4: "<f", 8: "<d"}
_BITS: Final = "bytes are taken as they are: .tobytes()"


@dataclass
class Parameter:
  """An explicit parameter: where it is, its name, its type as it is declared; `see` looks for one in the code."""
  argument: Argument
  where: str
  declared: CType | None
  see: Callable[[], CType | None]

  @property
  def size(self) -> int: return self.argument.size

  def known(self) -> tuple[CType | None, str]:
    """(the type if it is known, what to call it)."""
    if self.declared is not None: return self.declared, self.declared.name
    found = self.see()
    return found, "" if found is None else f"{found.name} (as its code uses it)"

  def refuse(self, given: str, wanted: str, hint: str | None = None) -> InvalidArgument:
    """The error for something else than what is wanted."""
    return InvalidArgument(f"{given} given for {wanted}", where=self.where, hint=hint)


def bind(runtime: Any, program: Any, binary: bytes, args: Sequence[Any], shared: int,
         buffers: list[Buffer]) -> tuple[bytes, int]:
  """(the explicit arguments of a kernel as bytes, its dynamic LDS); arrays are copied into memory added to `buffers`.

  `shared` is the dynamic LDS that the caller asks for; pointers to LDS have theirs behind the kernel's own, in order.
  """
  kernel, arguments = program.name, program.kernel.arguments
  if isinstance(shared, bool) or not isinstance(shared, (int, np.integer)) or shared < 0:
    raise InvalidArgument(f"{shared!r} is no number of bytes", where=f"{kernel}, shared")
  types = declared(binary, program.kernel)
  if len(args) != len(arguments):
    wanted = ", ".join(f"{name or '?'}: {t.name if t is not None else a.kind}"
                       for a, (name, t) in zip(arguments, types))
    raise InvalidArgument(f"{len(args)} arguments given, the kernel takes {len(arguments)} ({wanted})", where=kernel)
  own = lds = program.kernel.group_segment_size
  payload = bytearray(program.kernel.kernarg_size)
  for index, (value, a, (name, kind)) in enumerate(zip(args, arguments, types, strict=True)):
    where = f"{kernel}, argument {index}{f' ({name})' if name else ''}"
    p = Parameter(a, where, kind, lambda index=index: seen(binary, program.kernel)[index])  # type: ignore[misc]
    given = as_array(value)
    address = a.kind == "pointer_or_value" and (value is None or given is not None and bool(given.shape))
    if isinstance(value, Texture):
      if a.size != 8: raise p.refuse("a texture", f"{a.size} bytes")
      data = handle_of(runtime, value, name or f"arg{index}", buffers).to_bytes(8, "little")
    elif a.kind == "by_value" or a.kind == "pointer_or_value" and not address: data = pack_value(value, p)
    elif a.kind == "global_buffer" or address:
      data = address_of(runtime, value, p, name or f"arg{index}", buffers).to_bytes(8, "little")
    elif a.kind == "dynamic_shared_pointer":
      start = -(-lds // a.pointee_align) * a.pointee_align
      lds, data = start + bytes_of_lds(value, p), start.to_bytes(4, "little")
    else: raise Unsupported("kernel argument kind", a.kind, where=where)
    if len(data) != a.size: raise Unsupported(f"{a.kind} of", f"{a.size} bytes", where=where)
    payload[a.offset:a.offset + a.size] = data
  if lds > own and shared:
    raise InvalidArgument(f"{shared:,} bytes, and the arguments that point to LDS have theirs",
                          where=f"{kernel}, shared", hint="leave shared out")
  return bytes(payload), int(shared) or lds - own


# ---- pointers

def address_of(runtime: Any, value: Any, p: Parameter, name: str, buffers: list[Buffer]) -> int:
  """The address that a pointer gets: that of an array's copy, a raw one, or null."""
  if value is None: return 0
  if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
    if not 0 <= value < 1 << 64: raise InvalidArgument(f"{int(value):#x} is no 64-bit address", where=p.where)
    return int(value)
  array = as_array(value)
  if array is None:
    raise p.refuse(type(value).__name__, "a pointer", "give a NumPy array, an address, or None for a null pointer")
  check_array(array, p)
  allocation = runtime.alloc(max(array.nbytes, 1))
  if hasattr(runtime, "rename"): runtime.rename(allocation, name)
  buffers.append((array, allocation))
  if array.nbytes: runtime.copyin(allocation, raw(np.ascontiguousarray(array)))
  address: int = allocation.address
  return address


def handle_of(runtime: Any, value: Texture, name: str, buffers: list[Buffer]) -> int:
  """The handle of a texture or surface: its array and its header are copied into memory."""
  if not getattr(runtime, "texture_headers", True): raise Unsupported("textures on", runtime.name)
  def put(array: Array | None, data: bytes, name: str) -> int:
    allocation = runtime.alloc(len(data))
    if hasattr(runtime, "rename"): runtime.rename(allocation, name)
    buffers.append((array, allocation))
    runtime.copyin(allocation, memoryview(data))
    address: int = allocation.address
    return address
  at = put(value.data if isinstance(value, Surface) else None, value.packed(), name)
  return put(None, replace(value.header, address=at).encode(), f"the header of {name}")


def as_array(value: Any) -> Array | None:
  """A NumPy array, or what gives one (`__array__`: torch tensors on the CPU); None for anything else."""
  if isinstance(value, np.ndarray): return value
  if isinstance(value, np.generic) or not hasattr(value, "__array__"): return None
  return np.asarray(value)


def check_array(array: Array, p: Parameter) -> None:
  """Refuse an array whose elements are not those that the pointer is declared to have, or that its code works with."""
  t = array.dtype
  if t.hasobject: raise p.refuse("an array of Python objects", "a pointer")
  if not t.isnative:
    raise p.refuse(f"an array of {t.str} (big-endian)", "a pointer", f"GPUs are little-endian: .astype({t.name!r})")
  # structures are whatever the program makes of them
  if t.kind in "V" and not is_small_float(t) or not array.size: return
  pointer = p.declared
  if pointer is not None:
    of = pointer.of
    if of is None or of.kind == "s" or of.size == t.itemsize == 1: return
    if of.kind == "v": of = of.of
    if of is None or of.kind == "*" and t.kind in "iu" and t.itemsize == 8 or same_elements(t, of): return
    hint = f"convert it, or .view('V{t.itemsize}') for its bytes as they are"
    raise p.refuse(f"an array of {t.name}", pointer.name, hint)
  # one that is only seen in the code refuses what is surely wrong: other floats, or whole numbers of another size
  if t.kind not in "fiu" or t.itemsize == 1: return
  found = p.see()
  if found is None or found.of is None or t.itemsize == found.of.size: return
  raise p.refuse(f"an array of {t.name}", f"a pointer to {found.of.name} (as its code uses it)",
                 f"convert it, or .view('V{t.itemsize}') for its bytes as they are")


def is_bfloat16(t: np.dtype[Any]) -> bool:
  """Whether a type is the bfloat16 of a package such as ml_dtypes, which NumPy takes for a structure."""
  return t.itemsize == 2 and t.name == "bfloat16"


def is_small_float(t: np.dtype[Any]) -> bool:
  """Whether a type is one of the floats that NumPy has not: bfloat16, or one of 8 bits."""
  return is_bfloat16(t) or t.itemsize == 1 and t.name.startswith("float8_")


def same_elements(t: np.dtype[Any], of: CType) -> bool:
  """Whether NumPy's type is that of the source."""
  if of.bfloat: return is_bfloat16(t) or t.kind == "u" and t.itemsize == 2
  return t.itemsize == of.size and t.kind == of.kind


def bytes_of_lds(value: Any, p: Parameter) -> int:
  """What an int for a pointer to LDS asks for."""
  if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
    raise p.refuse(shown(value), "a pointer to LDS", "give the number of bytes of LDS that it points to")
  return int(value)


def raw(array: Array) -> memoryview:
  """The bytes of a contiguous array of any type and shape."""
  return array.reshape(-1).view(np.uint8).data


def fetch(runtime: Any, like: Array, allocation: Allocation) -> Array:
  """A buffer's contents, in the shape and type of the array that it was made from."""
  out = np.empty(like.shape, like.dtype)
  if out.nbytes: runtime.copyout(raw(out), allocation)
  return out


# ---- values

def pack_value(value: Any, p: Parameter) -> bytes:
  """Bytes of a by-value argument, of exactly the parameter's size, and of its type where that is known."""
  if isinstance(value, np.ndarray) and not value.shape: value = value[()]
  if isinstance(value, np.void):
    if value.dtype.isnative: return sized(value.tobytes(), p)
    raise p.refuse("a structure with big-endian members", f"a value of {p.size} bytes")
  if isinstance(value, (bytes, bytearray, memoryview)): return sized(bytes(value), p)
  if isinstance(value, (ctypes.Structure, ctypes.Union, ctypes.Array)): return sized(bytes(memoryview(value)), p)
  if isinstance(value, np.ndarray): return pack_vector(value, p)
  if isinstance(value, np.generic) and (value.dtype.kind in "biufc" or is_small_float(value.dtype)):
    return pack_scalar(value, p)
  if isinstance(value, (bool, int, float, complex)): return pack_number(value, p)
  raise p.refuse(type(value).__name__, f"a value of {p.size} bytes")


def sized(data: bytes, p: Parameter, given: str = "") -> bytes:
  """The data, if it has the parameter's size."""
  if len(data) == p.size: return data
  wanted = "" if p.declared is None else f", {p.declared.name}"
  raise p.refuse(f"{len(data)} bytes", f"a value of {p.size} bytes{wanted}{f': {given}' if given else ''}")


def shown(value: Any) -> str:
  """A value and its type, short."""
  return f"{str(value):.40} ({type(value).__name__})" if np.isscalar(value) else type(value).__name__


def unsaid(value: Any, p: Parameter) -> InvalidArgument:
  """A Python number for a parameter of which only the size is known."""
  bits, whole = 8 * p.size, {"i": "int", "u": "uint", "f": "float"}
  sign = "u" if isinstance(value, int) and value >> bits - 1 > 0 else "i"
  names = [f"{kind}{bits}" for kind in (sign, "f") if p.size in {1, 2, 4, 8} and (kind != "f" or p.size > 1)]
  if isinstance(value, (float, complex)): names = [n for n in names if n[0] == "f" and isinstance(value, float)]
  text = f"{value!r:.40}"
  ways = " or ".join(f"np.{whole[n[0]]}{n[1:]}({text})" for n in names)
  short = " or ".join(f"{text}:{n}" for n in names)
  return InvalidArgument(
    f"{shown(value)} given, and nothing says what type the parameter's {p.size} bytes have", where=p.where,
    hint=f"say it: {ways} (on the command line {short})" if names else "give bytes or a NumPy record")


def pack_vector(value: Array, p: Parameter) -> bytes:
  """A vector's elements; three of them fill the room of four."""
  kind, wanted = p.known()
  if kind is None or kind.kind != "v" or kind.of is None:
    hint = f"give {_BITS}" if value.nbytes == p.size else None
    raise p.refuse(f"an array of {value.dtype.name}", wanted or f"a value of {p.size} bytes", hint)
  if value.shape != (kind.count,) or not same_elements(value.dtype, kind.of) or not value.dtype.isnative:
    raise p.refuse(f"an array of {value.size} {value.dtype.name}", wanted)
  return np.ascontiguousarray(value).tobytes().ljust(p.size, b"\0")


def number(kind: CType, wanted: str, value: Any, p: Parameter) -> None:
  """Refuse a number for what is none."""
  if kind.kind == "v": raise p.refuse(shown(value), wanted, "give its elements as an array, or bytes")
  if not kind.number and not kind.bfloat:
    raise p.refuse(shown(value), f"{wanted}, {p.size} bytes", "give bytes or a NumPy record")


def pack_scalar(value: Any, p: Parameter) -> bytes:
  """A NumPy scalar of the parameter's size. Integers of the other sign are taken where they mean the same."""
  t = value.dtype
  data: bytes = value.astype(t.newbyteorder("<")).tobytes() if t.kind in "iufc" else value.tobytes()
  if len(data) != p.size: return sized(data, p, shown(value))
  kind, wanted = p.known()
  if kind is None: return data  # it says itself what it is
  number(kind, wanted, value, p)
  if same_elements(t, kind) or kind.kind == "n" and t.kind in "iu": return data
  if t.kind in "iu" and kind.kind in "iu" and int(value) >= 0 and not int(value) >> 8 * p.size - 1: return data
  raise p.refuse(shown(value), wanted, "give its bits as np.uint16" if kind.bfloat else _BITS)


def pack_number(value: Any, p: Parameter) -> bytes:
  """A Python number in a type that holds it; a float may be rounded to a float, nothing else changes."""
  kind, wanted = p.known()
  if kind is None and isinstance(value, bool) and p.size == 1: return bytes([value])  # every type of a byte has it
  if kind is None: raise unsaid(value, p)
  number(kind, wanted, value, p)
  if kind.bfloat: raise p.refuse(shown(value), wanted, "give its bits as np.uint16")
  size = kind.size
  if isinstance(value, complex):
    if kind.kind != "c": raise p.refuse(shown(value), wanted)
    return np.array(value, f"<c{size}").tobytes()
  if kind.kind in "fc" and not isinstance(value, bool):
    try: data = struct.pack(_FLOATS[size if kind.kind == "f" else size // 2], value)
    except (OverflowError, struct.error): raise p.refuse(shown(value), f"{wanted}, which does not hold it") from None
    if isinstance(value, int) and struct.unpack(_FLOATS[len(data)], data)[0] != value:
      raise p.refuse(shown(value), f"{wanted}, which does not hold it exactly")
    return data.ljust(size, b"\0")
  if kind.kind == "b" and value in (0, 1) and not isinstance(value, float): return int(value).to_bytes(size, "little")
  if kind.kind not in "iun" or isinstance(value, float): raise p.refuse(shown(value), wanted)
  low = 0 if kind.kind == "u" else -(1 << 8 * size - 1)
  high = 1 << 8 * size - (kind.kind == "i")
  if not low <= value < high: raise p.refuse(shown(value), f"{wanted}, which holds {low:,} to {high - 1:,}")
  return (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")
