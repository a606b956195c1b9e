"""Readers of local data sets."""
from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.core.errors import DecodeError, Error, InvalidArgument
from tinyhw.nn import datasets

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: "i2", 0x0C: "i4", 0x0D: "f4", 0x0E: "f8"}


def idx_file(array: np.ndarray[Any, Any]) -> bytes:
  kind = next(k for k, name in TYPES.items() if np.dtype(name) == array.dtype)
  return bytes([0, 0, kind, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.astype(
    array.dtype.newbyteorder(">")).tobytes()


@settings(max_examples=examples(20), deadline=None)
@given(st.sampled_from(list(TYPES.values())), st.lists(st.integers(0, 4), max_size=3), st.booleans())
def test_idx(kind: str, shape: list[int], zipped: bool) -> None:
  array = np.random.default_rng(1).integers(0, 100, shape).astype(kind)
  data = idx_file(array)
  got = datasets.idx(gzip.compress(data, mtime=0) if zipped else data).numpy()
  assert got.dtype == array.dtype
  np.testing.assert_array_equal(got, array)


def test_a_folder_as_mnist_has_it(tmp_path: Path) -> None:
  for name, count in (("train", 3), ("t10k", 2)):
    images = np.arange(count * 4, dtype=np.uint8).reshape(count, 2, 2)
    (tmp_path / f"{name}-images-idx3-ubyte").write_bytes(idx_file(images))
    (tmp_path / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_file(np.arange(count, dtype=np.uint8))))
  x, y, xt, yt = datasets.mnist(tmp_path)
  assert x.shape == (3, 1, 2, 2) and xt.shape == (2, 1, 2, 2) and y.tolist() == [0, 1, 2] and yt.tolist() == [0, 1]
  assert x[2, 0].tolist() == [[8, 9], [10, 11]]
  with pytest.raises(InvalidArgument, match="train-images-idx3-ubyte cannot be read: No such file"):
    datasets.mnist(tmp_path / "missing")


@pytest.mark.parametrize("labels", [1, 2])
def test_cifar(labels: int) -> None:
  rows = np.random.default_rng(2).integers(0, 256, (3, labels + 3072), dtype=np.uint8)
  x, y = datasets.cifar(rows.tobytes(), labels)
  np.testing.assert_array_equal(x.numpy(), rows[:, labels:].reshape(3, 3, 32, 32))
  np.testing.assert_array_equal(y.numpy(), rows[:, 0] if labels == 1 else rows[:, :2])
  with pytest.raises(DecodeError, match="no whole number of images"): datasets.cifar(rows.tobytes()[:-1], labels)


GOOD = idx_file(np.arange(6, dtype=np.int16).reshape(2, 3))


@pytest.mark.parametrize("data, what", [
  (b"", "the head is 4 bytes"), (b"\0\0\x07\1" + bytes(8), "no IDX file: it begins with 00000701"),
  (GOOD[:-1], r"an array of shape \(2, 3\) is 12 bytes"),
  (GOOD + b"x", "the array ends at byte 24, and the file has 25"),
  (b"\0\0\x08\2" + b"\xff" * 8, "an array of shape"), (gzip.compress(GOOD, mtime=0)[:-9], "damaged gzip"),
  (b"\x1f\x8bhello", "damaged gzip")])
def test_a_damaged_idx(data: bytes, what: str) -> None:
  with pytest.raises(DecodeError, match=what): datasets.idx(data)


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 60), st.integers(0, 255), st.booleans())
def test_damage_is_told(at: int, byte: int, zipped: bool) -> None:
  data = bytearray(gzip.compress(GOOD, mtime=0) if zipped else GOOD)
  data[at % len(data)] = byte
  try: datasets.idx(bytes(data))
  except Error as error: assert "\n" not in str(error).splitlines()[0]
