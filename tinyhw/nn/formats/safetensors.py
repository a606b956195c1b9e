"""safetensors: a length, a JSON table of names, types, shapes and places, and the elements, little-endian.

Source: the format's description in huggingface/safetensors (README, "Format").
"""
from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping
from typing import Any, Final

from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.function.spelling import by_any_spelling
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.nn.formats.source import QUOTED, Data, File, shown, tensor
from tinyhw.tensor.tensor import Tensor

DIGITS: Final = 20  # of a size: 2**64 has as many
LARGEST_HEADER: Final = 100_000_000  # bytes, as the format has it
METADATA: Final = "__metadata__"
NAMES: Final = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
                "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16",
                "F32": "float32", "F64": "float64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
                "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz"}
TYPES: Final[dict[str, DType]] = {theirs: d for theirs, ours in NAMES.items()
                                  if isinstance(d := getattr(dtypes, ours, None), DType)}


def _no_twins(file: File, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
  found = dict(pairs)
  if len(found) != len(pairs):
    names = [name for name, _ in pairs]
    raise file.damaged(f"{next(n for n in names if names.count(n) > 1)!r} stands in the header twice")
  return found


def _header(file: File) -> tuple[dict[str, Any], int]:
  """The table, and where the elements begin."""
  size = int.from_bytes(file.cut(0, 8, "the header's length"), "little")
  if size > LARGEST_HEADER: raise file.damaged(f"a header of {size:,} bytes: {LARGEST_HEADER:,} are the most")
  text = bytes(file.cut(8, size, "the header"))
  def whole(digits: str) -> int:
    if len(digits) > DIGITS: raise file.damaged(f"a number of {len(digits):,} digits in the header")
    return int(digits)
  try: table = json.loads(text.decode(), object_pairs_hook=lambda pairs: _no_twins(file, pairs), parse_int=whole)
  except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
    raise file.damaged(f"the header is no JSON: {error}") from None
  if not isinstance(table, dict): raise file.damaged(f"the header is a {type(table).__name__}, no table")
  return table, 8 + size


def _entry(file: File, name: str, row: Any) -> tuple[DType, tuple[int, ...], int, int]:
  """(dtype, shape, first byte, end) of one tensor."""
  if not isinstance(row, dict) or row.keys() != {"dtype", "shape", "data_offsets"}:
    raise file.damaged(f"{shown(name)} has no dtype, shape and data_offsets")
  kind, shape, places = row["dtype"], row["shape"], row["data_offsets"]
  def whole(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and n >= 0 for n in numbers)
  if not whole(shape) or not whole(places) or len(places) != 2: raise file.damaged(
    f"{shown(name)} has the shape {shown(shape)} at {shown(places)}")
  if not isinstance(kind, str): raise file.damaged(f"{shown(name)} has the dtype {shown(kind)}")
  if kind not in TYPES:
    raise Unsupported("safetensors dtype", kind[:QUOTED], where=f"{shown(name)} in {file.name}")
  dtype, (start, end) = TYPES[kind], places
  if end - start != math.prod(shape) * dtype.itemsize:
    size = math.prod(shape) * dtype.itemsize
    raise file.damaged(f"{shown(name)}: {shown(tuple(shape))} of {kind} are {size if size < 1 << 64 else 'too many'} "
                       f"bytes, and {end - start:,} are told of")
  return dtype, tuple(shape), start, end


def read(source: Data, device: str | None = None) -> dict[str, Tensor]:
  """The tensors of a file by name, on a device."""
  file = File.of(source)
  table, begin = _header(file)
  rows = {name: _entry(file, name, row) for name, row in table.items() if name != METADATA}
  end = 0
  for name, (_, _, start, stop) in sorted(rows.items(), key=lambda r: r[1][2:]):
    # The format wants no byte twice and none left over: nothing can hide in such a file.
    if start != end: raise file.damaged(f"{shown(name)} begins at {start:,}, and what is before it ends at {end:,}")
    end = stop
  if begin + end != len(file.data):
    raise file.damaged(f"the tensors end at byte {begin + end:,}, and the file has {len(file.data):,}")
  return {name: tensor(file.cut(begin + start, stop - start, shown(name)), dtype, shape, device)
          for name, (dtype, shape, start, stop) in rows.items()}


def metadata(source: Data) -> dict[str, str]:
  """What the writer says of the file."""
  file = File.of(source)
  found = _header(file)[0].get(METADATA, {})
  if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
    raise file.damaged("the metadata are not texts by name")
  return found


@by_any_spelling
def write(tensors: Mapping[str, Tensor], path: str | os.PathLike[str],
          metadata: Mapping[str, str] | None = None) -> None:
  """Write tensors to a file, in the order of their alignment and names. The file appears whole, or not at all."""
  words = {dtype: theirs for theirs, dtype in TYPES.items()}
  table: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
  ordered = sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
  end = 0
  for name, t in ordered:
    if name == METADATA: raise InvalidArgument(f"no tensor may be called {METADATA}")
    if t.dtype not in words: raise Unsupported("safetensors dtype", t.dtype.name, where=shown(name))
    table[name] = {"dtype": words[t.dtype], "shape": list(t.shape), "data_offsets": [end, end + t.nbytes()]}
    end += t.nbytes()
  header = json.dumps(table, separators=(",", ":")).encode()
  header += b" " * (-len(header) % 8)  # the elements begin at a multiple of 8
  path = os.fspath(path)
  try:
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path) or ".", delete=False) as file:
      try:
        file.write(len(header).to_bytes(8, "little") + header)
        for _, t in ordered: file.write(t.data().cast("B") if t.nbytes() else b"")
        file.flush()
        os.chmod(file.name, 0o666 & ~_umask())
        os.replace(file.name, path)
      except BaseException:
        os.unlink(file.name)
        raise
  except OSError as error:
    raise InvalidArgument(f"{path} cannot be written: {error.strerror or error}") from None


def _umask() -> int:
  """The process's mask of permissions, read without setting it."""
  with open("/proc/self/status") as status:
    return next((int(line.split()[1], 8) for line in status if line.startswith("Umask:")), 0o022)
