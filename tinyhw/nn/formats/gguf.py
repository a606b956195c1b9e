"""GGUF: llama.cpp's files of quantized tensors. Kernels on the device widen the blocks to float32.

Source: the format's specification in ggml-org/ggml, docs/gguf.md, and the layouts of blocks in its ggml-common.h; held
against the package `gguf` of its makers.
"""
from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tinyhw.core.errors import Unsupported
from tinyhw.ir.dtype import dtypes
from tinyhw.nn.formats.source import Data, File, shown, tensor
from tinyhw.tensor.tensor import Tensor

VERSIONS: Final = (2, 3)
SCALARS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING: Final = 8
ARRAY: Final = 9
MOST_AXES: Final = 4
PLAIN: Final = {0: dtypes.float32, 1: dtypes.float16, 24: dtypes.int8, 25: dtypes.int16, 26: dtypes.int32,
                27: dtypes.int64, 28: dtypes.float64, 30: dtypes.bfloat16}
NAMES: Final = {9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL",
                21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4"}


def _half(blocks: Tensor, at: int) -> Tensor:
  """The float16 at byte `at` of each block, as float32: (blocks, 1)."""
  word = blocks[:, at].cast(dtypes.uint16) | (blocks[:, at + 1].cast(dtypes.uint16) << 8)
  return word.bitcast(dtypes.float16).float().unsqueeze(1)


def _parts(data: Tensor, width: int) -> Tensor:
  """(blocks, n) bytes as (blocks, 8/width, n) parts of `width` bits, the lowest first."""
  return Tensor.stack(*((data >> shift) & ((1 << width) - 1) for shift in range(0, 8, width)), dim=1)


def _q4_0(b: Tensor) -> Tensor: return (_parts(b[:, 2:18], 4).flatten(1).float() - 8) * _half(b, 0)


def _q4_1(b: Tensor) -> Tensor: return _parts(b[:, 4:20], 4).flatten(1).float() * _half(b, 0) + _half(b, 2)


def _fifth(b: Tensor, at: int) -> Tensor:
  """The 32 bits of a block's high bits, as 0 or 16: bit i belongs to element i."""
  return (_parts(b[:, at:at + 4], 1).transpose(1, 2).flatten(1) << 4).float()


def _q5_0(b: Tensor) -> Tensor:
  return (_parts(b[:, 6:22], 4).flatten(1).float() + _fifth(b, 2) - 16) * _half(b, 0)


def _q5_1(b: Tensor) -> Tensor:
  return (_parts(b[:, 8:24], 4).flatten(1).float() + _fifth(b, 4)) * _half(b, 0) + _half(b, 2)


def _q8_0(b: Tensor) -> Tensor: return b[:, 2:34].bitcast(dtypes.int8).float() * _half(b, 0)


def _groups(values: Tensor, count: int, factor: Tensor, least: Tensor | None = None) -> Tensor:
  """(blocks, 256) values in `count` groups, each times its factor, less its least: all (blocks, count)."""
  wide = values.reshape(-1, count, 256 // count) * factor.unsqueeze(2)
  return (wide if least is None else wide - least.unsqueeze(2)).reshape(-1, 256)


def _q2_k(b: Tensor) -> Tensor:
  scales = b[:, :16]
  values = Tensor.cat(*(_parts(b[:, at:at + 32], 2).flatten(1) for at in (16, 48)), dim=1).float()
  return _groups(values, 16, (scales & 15).float() * _half(b, 80), (scales >> 4).float() * _half(b, 82))


def _q3_k(b: Tensor) -> Tensor:
  low = Tensor.cat(*(_parts(b[:, at:at + 32], 2).flatten(1) for at in (32, 64)), dim=1).float()
  high = _parts(b[:, :32], 1).flatten(1).float() * 4 - 4  # a bit that is not set takes 4 away
  scales = _parts(b[:, 96:104], 4).flatten(1) | (_parts(b[:, 104:108], 2).flatten(1) << 4)
  return _groups(low + high, 16, (scales.float() - 32) * _half(b, 108))


def _six_bits(b: Tensor) -> tuple[Tensor, Tensor]:
  """The eight factors and leasts of Q4_K and Q5_K, six bits each, in the twelve bytes from 4 on."""
  first, second, third = b[:, 4:8], b[:, 8:12], b[:, 12:16]
  factors = Tensor.cat(first & 63, (third & 15) | ((first >> 6) << 4), dim=1)
  leasts = Tensor.cat(second & 63, (third >> 4) | ((second >> 6) << 4), dim=1)
  return factors.float() * _half(b, 0), leasts.float() * _half(b, 2)


def _nibbles(data: Tensor) -> Tensor:
  """(blocks, 128) bytes: 32 low halves, the 32 high halves of the same bytes, and so on."""
  return _parts(data.reshape(-1, 32), 4).reshape(-1, 256)


def _q4_k(b: Tensor) -> Tensor: return _groups(_nibbles(b[:, 16:144]).float(), 8, *_six_bits(b))


def _q5_k(b: Tensor) -> Tensor:
  values = _nibbles(b[:, 48:176]).float() + _parts(b[:, 16:48], 1).flatten(1).float() * 16
  return _groups(values, 8, *_six_bits(b))


def _q6_k(b: Tensor) -> Tensor:
  low = _parts(b[:, :128].reshape(-1, 64), 4).reshape(-1, 256)
  high = _parts(b[:, 128:192].reshape(-1, 32), 2).reshape(-1, 256)
  return _groups((low | (high << 4)).float() - 32, 16, b[:, 192:208].bitcast(dtypes.int8).float() * _half(b, 208))


@dataclass(frozen=True)
class Block:
  """A quantized type: `elements` in `size` bytes, and how (blocks, size) bytes become (blocks, elements) float32."""
  name: str
  elements: int
  size: int
  widen: Callable[[Tensor], Tensor]


BLOCKS: Final = {
  2: Block("Q4_0", 32, 18, _q4_0), 3: Block("Q4_1", 32, 20, _q4_1), 6: Block("Q5_0", 32, 22, _q5_0),
  7: Block("Q5_1", 32, 24, _q5_1), 8: Block("Q8_0", 32, 34, _q8_0), 10: Block("Q2_K", 256, 84, _q2_k),
  11: Block("Q3_K", 256, 110, _q3_k), 12: Block("Q4_K", 256, 144, _q4_k), 13: Block("Q5_K", 256, 176, _q5_k),
  14: Block("Q6_K", 256, 210, _q6_k)}


class _Cursor:
  """Reads the head of a file."""

  def __init__(self, file: File, at: int) -> None: self.file, self.at = file, at

  def number(self, letter: str, what: str) -> Any:
    """A number by its letter in `struct`."""
    size = struct.calcsize("<" + letter)
    raw = self.file.cut(self.at, size, what)
    self.at += size
    return struct.unpack("<" + letter, raw)[0]

  def text(self, what: str) -> str:
    """A text with its length before it."""
    size = self.number("Q", f"the length of {what}")
    raw = bytes(self.file.cut(self.at, size, what))
    self.at += size
    try: return raw.decode()
    except UnicodeDecodeError: raise self.file.damaged(f"{what} is no UTF-8 text") from None

  def value(self, kind: int, what: str, deep: int = 0) -> Any:
    """A value of the metadata."""
    if kind == STRING: return self.text(what)
    if kind == ARRAY:
      if deep > 8: raise self.file.damaged(f"{what}: arrays nested too deeply")
      inner, count = self.number("I", what), self.number("Q", what)
      if inner in SCALARS:
        size = struct.calcsize("<" + SCALARS[inner])
        raw = self.file.cut(self.at, count * size, what)
        self.at += count * size
        return list(struct.unpack(f"<{count}{SCALARS[inner]}", raw))
      # Each element takes bytes of the file, so a count beyond it ends at the file's end.
      found = []
      for _ in range(count): found.append(self.value(inner, what, deep + 1))
      return found
    if kind not in SCALARS: raise self.file.damaged(f"{what} has the unknown type {kind}")
    return self.number(SCALARS[kind], what)


@dataclass(frozen=True)
class _Info:
  name: str
  shape: tuple[int, ...]
  kind: int
  offset: int


def _head(file: File) -> tuple[dict[str, Any], list[_Info], int]:
  """(metadata, what tensors there are, where their bytes begin)."""
  if bytes(file.cut(0, 4, "the magic")) != b"GGUF": raise file.damaged("no GGUF file: it does not begin with GGUF")
  cursor = _Cursor(file, 4)
  if (version := cursor.number("I", "the version")) not in VERSIONS:
    swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
    raise Unsupported("GGUF", "big-endian file" if swapped in VERSIONS else f"version {version}", where=file.name)
  tensors, pairs = cursor.number("Q", "the number of tensors"), cursor.number("Q", "the number of metadata")
  metadata: dict[str, Any] = {}
  for _ in range(pairs):
    key = cursor.text("a metadata key")
    if key in metadata: raise file.damaged(f"the metadata have {shown(key)} twice")
    metadata[key] = cursor.value(cursor.number("I", shown(key)), shown(key))
  infos: dict[str, _Info] = {}
  for _ in range(tensors):
    name = cursor.text("a tensor's name")
    if name in infos: raise file.damaged(f"two tensors are called {shown(name)}")
    if (axes := cursor.number("I", shown(name))) > MOST_AXES:
      raise file.damaged(f"{shown(name)} has {axes} axes: {MOST_AXES} are the most")
    # The file names the fastest axis first.
    shape = tuple(cursor.number("Q", shown(name)) for _ in range(axes))[::-1]
    infos[name] = _Info(name, shape, cursor.number("I", shown(name)), cursor.number("Q", shown(name)))
  alignment = metadata.get("general.alignment", 32)
  if type(alignment) is not int or alignment < 1 or alignment & alignment - 1:
    raise file.damaged(f"an alignment of {shown(alignment)}")
  return metadata, list(infos.values()), -(-cursor.at // alignment) * alignment


def _tensor(file: File, info: _Info, begin: int, device: str | None) -> Tensor:
  count, at = math.prod(info.shape), begin + info.offset
  if (plain := PLAIN.get(info.kind)) is not None:
    return tensor(file.cut(at, count * plain.itemsize, shown(info.name)), plain, info.shape, device)
  if (block := BLOCKS.get(info.kind)) is None:
    raise Unsupported("GGUF type", NAMES.get(info.kind, str(info.kind)), where=f"{shown(info.name)} in {file.name}")
  if not info.shape or info.shape[-1] % block.elements:
    raise file.damaged(f"{shown(info.name)} of shape {info.shape} is no whole number of {block.name} blocks")
  raw = file.cut(at, count // block.elements * block.size, shown(info.name))
  if not count: return Tensor.full(info.shape, 0.0, device=device)
  return block.widen(Tensor(raw, device=device).reshape(-1, block.size)).reshape(info.shape)


def read(source: Data, device: str | None = None) -> tuple[dict[str, Any], dict[str, Tensor]]:
  """(metadata, tensors by name) of a file. Quantized tensors are float32, widened by kernels when they are used."""
  file = File.of(source)
  metadata, infos, begin = _head(file)
  return metadata, {i.name: _tensor(file, i, begin, device) for i in infos}
