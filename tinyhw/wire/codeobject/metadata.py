"""What the metadata note and the kernel descriptors say of the kernels."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from tinyhw.autogen import amdhsa
from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.autogen.amdhsa import kernel_descriptor_t
from tinyhw.core.errors import DecodeError
from tinyhw.wire.codeobject.identity import WHERE
from tinyhw.wire.codeobject.model import PRELOAD_PROLOGUE, Argument, Kernel, Segment
from tinyhw.wire.ctype import CType, named, of_value_type
from tinyhw.wire.elf import Elf

T = TypeVar("T")
COUNTS = ("vgpr_count", "sgpr_count", "agpr_count", "vgpr_spill_count", "sgpr_spill_count")


def _described(file: Elf) -> dict[Any, Any]:
  """The map of the AMDGPU metadata note; empty when there is none."""
  for owner, kind, raw in file.notes():
    if owner != "AMDGPU" or kind != elf.NT_AMDGPU_METADATA:
      continue
    import msgpack  # only needed when code is loaded

    try:
      found = msgpack.unpackb(raw, strict_map_key=False)
    except Exception as error:  # msgpack has no common base for what bad bytes make it raise
      raise DecodeError(f"metadata is not MessagePack: {error!r}", where=WHERE) from None
    if not isinstance(found, dict):
      raise DecodeError("metadata is no map", where=WHERE)
    return found
  return {}


_REQUIRED: Any = object()


def _get(row: dict[Any, Any], key: str, kind: type[T], default: T = _REQUIRED) -> T:
  """A value of the metadata, of the right type. Raises DecodeError."""
  value = row.get(key, default)
  if value is _REQUIRED:
    raise DecodeError(f"metadata has no {key}", where=WHERE)
  if not isinstance(value, kind) or kind is int and (isinstance(value, bool) or not 0 <= cast(int, value) < 1 << 64):
    raise DecodeError(f"metadata {key} is {value!r:.40}, expected {kind.__name__}", where=WHERE)
  return value


def _list(values: list[Any], kind: type[T]) -> list[T]:
  if not all(isinstance(v, kind) for v in values):
    raise DecodeError(f"metadata list holds other than {kind.__name__}", where=WHERE)
  return values


def _argument(row: dict[Any, Any]) -> Argument:
  kind, size, name = _get(row, ".value_kind", str), _get(row, ".size", int), _get(row, ".type_name", str, "")
  found, declared = named(name), of_value_type(_get(row, ".value_type", str, ""))
  if found is None and declared is not None:  # of a pointer it is the target's
    found = declared if kind == "by_value" else CType(f"{declared.name}*", "*", 8, declared)
  if found is not None and (found.kind == "*") == (kind == "by_value"):
    found = None  # a name that the program has given a meaning of its own
  if found is not None and kind == "by_value" and found.size != size:
    found = None
  return Argument(
    _get(row, ".name", str, ""),
    kind,
    _get(row, ".offset", int),
    size,
    name or None,
    _get(row, ".address_space", str, "") or None,
    _alignment(_get(row, ".pointee_align", int, 1)),
    found,
  )


def _alignment(value: int) -> int:
  if value & value - 1 or not value:
    raise DecodeError(f"metadata .pointee_align is {value}, no power of two", where=WHERE)
  return value


def _kernel(
  symbol: str, offset: int, image: bytearray, segments: tuple[Segment, ...], row: dict[Any, Any] | None
) -> Kernel:
  """A kernel from its descriptor and its metadata (None for hand-written code without)."""
  where, row = f"{WHERE} kernel {symbol.removesuffix('.kd')}", row or {}
  if offset + ctypes.sizeof(kernel_descriptor_t) > len(image):
    raise DecodeError("descriptor outside the image", where=where)
  descriptor = kernel_descriptor_t.from_buffer_copy(image, offset)
  entry = offset + descriptor.kernel_code_entry_byte_offset
  if not any(s.executable and s.offset <= entry < s.offset + s.size for s in segments):
    raise DecodeError(f"entry point {entry:#x} is not in executable code", where=where)
  arguments = [_argument(a) for a in _list(_get(row, ".args", list, []), dict)]
  size = max(descriptor.kernarg_size, _get(row, ".kernarg_segment_size", int, 0))
  for a in arguments:
    if a.offset + a.size > size:
      raise DecodeError(f"argument {a.name or a.kind} ends past the {size} bytes of arguments", where=where)
  required = _list(_get(row, ".reqd_workgroup_size", list, []), int)
  if len(required) not in (0, 3):
    raise DecodeError("a required workgroup size has three numbers", where=where)
  wave32 = descriptor.kernel_code_properties & amdhsa.KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32
  kernel = Kernel(
    name=symbol.removesuffix(".kd"),
    descriptor=descriptor,
    descriptor_offset=offset,
    entry_offset=entry,
    kernarg_size=size,
    kernarg_align=max(_get(row, ".kernarg_segment_align", int, 16), 1),
    group_segment_size=descriptor.group_segment_fixed_size,
    private_segment_size=descriptor.private_segment_fixed_size,
    wavefront_size=32 if wave32 else 64,
    max_workgroup_size=_get(row, ".max_flat_workgroup_size", int, 1024),
    required_workgroup_size=(required[0], required[1], required[2]) if required else None,
    dynamic_stack=bool(descriptor.kernel_code_properties & amdhsa.KERNEL_CODE_PROPERTY_USES_DYNAMIC_STACK),
    arguments=tuple(a for a in arguments if not a.hidden),
    hidden=tuple(a for a in arguments if a.hidden),
    counts={name: _get(row, f".{name}", int) for name in COUNTS if f".{name}" in row},
  )
  if not any(s.executable and s.offset <= kernel.start_offset < s.offset + s.size for s in segments):
    raise DecodeError(f"nothing follows the {PRELOAD_PROLOGUE} bytes that load preloaded arguments", where=where)
  return kernel


def kernels_of(file: Elf, image: bytearray, symbols: Mapping[str, int], segments: tuple[Segment, ...]
               ) -> tuple[str, dict[str, Kernel]]:
  """The target id that the metadata names, and the kernels by name. Raises DecodeError."""
  described = _described(file)
  target = _get(described, "amdhsa.target", str, "")
  rows = {_get(row, ".symbol", str): row for row in _list(_get(described, "amdhsa.kernels", list, []), dict)}
  missing = [name for name in rows if name not in symbols]
  if missing:
    raise DecodeError(f"the metadata has {', '.join(missing)}, which is no symbol", where=WHERE)
  kernels = [
    _kernel(name, offset, image, segments, rows.get(name)) for name, offset in symbols.items() if name.endswith(".kd")
  ]
  return target, {k.name: k for k in kernels}
