"""An ONNX file's bytes, parsed by the package `onnx` and checked: its tensors, attributes and types as plain values.

Errors are told with the file's or the node's name. Data outside of the file are read from the model's own folder only.
"""
from __future__ import annotations

import errno
import math
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from tinyhw.core.environment import count
from tinyhw.core.errors import DecodeError, InvalidArgument, MissingTool, Unsupported
from tinyhw.nn.formats.source import Data, File, shown
from tinyhw.nn.onnx.values import Element, Weights, element, unpacked

EXTERNAL: Final = 1        # TensorProto.DataLocation
# Where a TensorProto without raw bytes keeps each type, and the type of what is there.
_FIELDS: Final = {1: ("float_data", "<f4"), 11: ("double_data", "<f8"), 7: ("int64_data", "<i8"),
                  12: ("uint64_data", "<u8"), 13: ("uint64_data", "<u8")}
_KINDS: Final = {1: ("float", "f"), 2: ("int", "i"), 3: ("str", "s"), 4: ("Weights", "t"), 5: ("Graph", "g"),
                 6: ("Floats", "floats"), 7: ("Ints", "ints"), 8: ("Strings", "strings"), 13: ("Type", "tp")}


def package() -> Any:
  """PyPI's onnx, which reads the files."""
  try:
    import onnx
  except ImportError: raise MissingTool("ONNX files need the package onnx", hint="pip install onnx") from None
  return onnx


@dataclass(frozen=True)
class Origin:
  """Where a model comes from: its name in errors, and the folder that may hold data of it (None: none may)."""
  name: str
  folder: Path | None


def parse(source: Data) -> tuple[Any, Origin]:
  """The ModelProto of a file or of bytes."""
  onnx = package()
  file = File.of(source)
  known = not isinstance(source, (bytes, bytearray, memoryview))
  origin = Origin(file.name, Path(file.name).resolve().parent if known else None)
  model = onnx.ModelProto()
  try: model.ParseFromString(bytes(file.data))
  except Exception as error:  # protobuf's own error, whose class depends on how it was built
    raise DecodeError(f"no ONNX model: {error}", where=file.name) from None
  if not model.HasField("graph") or not model.ir_version:
    raise DecodeError("no ONNX model: it has no graph and no version", where=file.name)
  return model, origin


def weights(proto: Any, origin: Origin, where: str) -> Weights:
  """A TensorProto, whose elements must be as many as its shape says."""
  name = f"{where}: tensor {proto.name!r}" if proto.name else where
  kind = element(proto.data_type, name)
  shape = tuple(proto.dims)
  if any(d < 0 for d in shape): raise DecodeError(f"the shape {shape} has a negative size", where=name)
  if proto.HasField("segment"): raise Unsupported("ONNX feature", "segments of tensors", where=name)
  if math.prod(max(d, 1) for d in shape) >> 60: raise DecodeError("its shape has more elements than count", where=name)
  count = math.prod(shape)
  packed = -(-count * kind.bits // 8) if kind.bits < 8 and kind.narrow else count * max(kind.bits, 8) // 8
  if proto.data_location == EXTERNAL: raw = _external(proto, origin, packed, name)
  elif proto.HasField("raw_data"): raw = memoryview(proto.raw_data)
  else: return Weights(proto.name, kind, shape, memoryview(_listed(proto, kind, count, name)))
  if raw.nbytes != packed:
    raise DecodeError(f"{shape} of {kind.name} are {packed:,} bytes, and there are {raw.nbytes:,}", where=name)
  if kind.narrow: raw = memoryview(unpacked(bytes(raw), kind.bits, count, kind.name.startswith("i")))
  return Weights(proto.name, kind, shape, raw)


def _listed(proto: Any, kind: Element, count: int, where: str) -> bytes:
  """Elements that stand in a field of numbers: int32_data holds all types of at most 32 bits, 16-bit floats by bits."""
  field, letter = _FIELDS.get(kind.code, ("int32_data", "<i4"))
  numbers = np.array(getattr(proto, field), dtype=letter)
  if kind.narrow:
    found = unpacked(numbers.astype(np.uint8).tobytes(), kind.bits, count, kind.name.startswith("i"))
    have = len(found)
  else:
    have = numbers.size
    if letter == "<i4": numbers = numbers.astype(f"<u{max(kind.bits, 8) // 8}")
    elif kind.code == 12: numbers = numbers.astype("<u4")
    found = numbers.tobytes()
  if have != count:
    raise DecodeError(f"shape {tuple(proto.dims)} has {count:,} elements, and there are {have:,}", where=where)
  return found


def _external(proto: Any, origin: Origin, size: int, where: str) -> memoryview:
  """Bytes of another file, which must lie in the model's folder or below it."""
  told = {entry.key: entry.value for entry in proto.external_data}
  if origin.folder is None:
    raise InvalidArgument("its data are in another file, and the model was given as bytes", where=where,
                          hint="load the model by its path")
  location = told.get("location", "")
  if "\0" in location: raise DecodeError("the name of the file with its data has a NUL", where=where)
  path = (origin.folder / location).resolve()  # links are followed: what counts is where the bytes are
  if not location or os.path.isabs(location) or origin.folder not in path.parents:
    raise InvalidArgument(f"its data are said to be at {shown(location)}, outside of the model's folder", where=where,
                          hint="move them beside the model")
  start, length = count(told.get("offset", "0")), count(told.get("length", str(size)))
  if start is None or length is None: raise DecodeError("offset or length of its data is no number", where=where)
  try:
    if path.exists() and not path.is_file(): raise OSError(errno.EINVAL, "it is no file")  # a FIFO would be waited for
    with open(path, "rb") as file:
      total = os.fstat(file.fileno()).st_size
      whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if total else memoryview(b"")
  except OSError as error:
    raise InvalidArgument(f"its data at {shown(location)} cannot be read: {error.strerror}", where=where) from None
  if start + length > total:
    raise DecodeError(f"its data are {length:,} bytes at {start:,} of {shown(location)}, which has {total:,}",
                      where=where)
  return whole[start:start + length]


def attribute(proto: Any, origin: Origin, where: str) -> tuple[str, Any]:
  """(kind, value) of an AttributeProto; subgraphs stay protos."""
  if proto.type not in _KINDS:
    raise Unsupported("ONNX attribute type", str(proto.type), where=f"{where}, attribute {proto.name!r}")
  kind, field = _KINDS[proto.type]
  value: Any = getattr(proto, field)
  try:
    if kind == "str": value = value.decode()
    elif kind == "Strings": value = tuple(v.decode() for v in value)
  except UnicodeDecodeError:
    raise DecodeError("no text", where=f"{where}, attribute {proto.name!r}") from None
  if kind in ("Ints", "Floats"): value = tuple(value)
  if kind == "Weights": value = weights(value, origin, f"{where}, attribute {proto.name!r}")
  return kind, value


@dataclass(frozen=True)
class Info:
  """An input or output: its name, its element type ("float32"; None: not said), and its shape.

  A size is an int, a name that stands for one, or None; the whole shape is None where it is not said. `kind` is
  "tensor", "sequence", "optional", "map" or "sparse_tensor".
  """
  name: str
  dtype: str | None
  shape: tuple[int | str | None, ...] | None
  kind: str = "tensor"

  def __str__(self) -> str:
    sizes = "..." if self.shape is None else ", ".join("?" if s is None else str(s) for s in self.shape)
    return f"{self.name}: {'' if self.kind == 'tensor' else self.kind + ' of '}{self.dtype or '?'}[{sizes}]"


def info(proto: Any) -> Info:
  """A ValueInfoProto."""
  from tinyhw.nn.onnx.values import ELEMENTS
  kind = (proto.type.WhichOneof("value") or "tensor_type").removesuffix("_type")
  inner = proto.type
  while kind != "tensor" and inner.WhichOneof("value") in ("sequence_type", "optional_type"):
    inner = getattr(inner, inner.WhichOneof("value")).elem_type
  found = inner.tensor_type
  shape: Sequence[int | str | None] | None = None
  if found.HasField("shape"):
    shape = [d.dim_value if d.WhichOneof("value") == "dim_value" else d.dim_param or None for d in found.shape.dim]
  known = ELEMENTS.get(found.elem_type)
  return Info(proto.name, known.name if known else None, None if shape is None else tuple(shape), kind)
