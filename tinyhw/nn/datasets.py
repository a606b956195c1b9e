"""Data from local files: IDX (MNIST and its kin) and CIFAR's binary batches, as they are distributed, also gzipped."""
from __future__ import annotations

import gzip
import math
import os
import zlib
from typing import Final

import numpy as np

from tinyhw.ir.dtype import dtypes
from tinyhw.nn.formats.source import Data, File, tensor
from tinyhw.tensor.tensor import Tensor

IDX_TYPES: Final = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
LARGEST: Final = 1 << 32  # bytes that a gzipped file may grow to
CIFAR_IMAGE: Final = (3, 32, 32)


def _unpacked(source: Data) -> File:
  """The file, unzipped where it is gzipped."""
  file = File.of(source)
  if bytes(file.data[:2]) != b"\x1f\x8b": return file
  machine = zlib.decompressobj(wbits=31)
  try: raw = machine.decompress(file.data, LARGEST)
  except (zlib.error, gzip.BadGzipFile) as error: raise file.damaged(f"damaged gzip: {error}") from None
  if machine.unconsumed_tail: raise file.damaged(f"it grows beyond {LARGEST:,} bytes")
  if not machine.eof: raise file.damaged("damaged gzip: it ends too early")
  return File(memoryview(raw), file.name)


def idx(source: Data, device: str | None = None) -> Tensor:
  """An IDX file (train-images-idx3-ubyte.gz ...): its shape and type are in its head.

  Source: the description at the end of the MNIST database's page.
  """
  file = _unpacked(source)
  head = bytes(file.cut(0, 4, "the head"))
  if head[:2] != b"\0\0" or head[2] not in IDX_TYPES: raise file.damaged(f"no IDX file: it begins with {head.hex()}")
  shape = tuple(int(n) for n in np.frombuffer(file.cut(4, 4 * head[3], "the shape"), ">u4"))
  kind = np.dtype(IDX_TYPES[head[2]])
  raw = file.cut(4 + 4 * head[3], math.prod(shape) * kind.itemsize, f"an array of shape {shape}")
  if (end := 4 + 4 * head[3] + raw.nbytes) != len(file.data):
    raise file.damaged(f"the array ends at byte {end:,}, and the file has {len(file.data):,}")
  words = np.frombuffer(raw, kind).astype(kind.newbyteorder("<"), copy=False)
  return tensor(words.data.cast("B") if words.size else memoryview(b""), dtypes.from_numpy(kind), shape, device)


def cifar(source: Data, labels: int = 1, device: str | None = None) -> tuple[Tensor, Tensor]:
  """(images, labels) of a binary batch of CIFAR-10; of CIFAR-100 with `labels=2` (coarse and fine).

  Images are (count, 3, 32, 32) uint8, labels (count,) or (count, 2) uint8.
  """
  file = _unpacked(source)
  size = labels + math.prod(CIFAR_IMAGE)
  if not len(file.data) or len(file.data) % size:
    raise file.damaged(f"{len(file.data):,} bytes are no whole number of images of {size:,}",
                       hint="CIFAR-10 has one label an image, CIFAR-100 two")
  rows = np.frombuffer(file.data, np.uint8).reshape(-1, size)
  images, marks = Tensor(rows[:, labels:], device=device), Tensor(rows[:, :labels], device=device)
  return images.reshape(-1, *CIFAR_IMAGE), marks.reshape(-1) if labels == 1 else marks


def mnist(folder: str | os.PathLike[str], device: str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
  """(training images, their labels, test images, their labels) of a folder with the four files of MNIST, or of a set of
  the same form. Images are (count, 1, height, width) uint8."""
  def found(name: str) -> Tensor:
    path = os.path.join(os.fspath(folder), name)
    return idx(path if os.path.exists(path) or not os.path.exists(path + ".gz") else path + ".gz", device)
  def images(name: str) -> Tensor: return found(f"{name}-images-idx3-ubyte").unsqueeze(1)
  return (images("train"), found("train-labels-idx1-ubyte"), images("t10k"), found("t10k-labels-idx1-ubyte"))
