"""The committed file of expected values: PyTorch's, by the digest of each case.

One array of bytes holds all values; an index says which are whose. Floats are kept in their own type, bfloat16 as
float32.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.tensor.operators.cases import BFLOAT16, Array, Case

PATH = Path(__file__).with_name("expected.npz")


def _kind(dtype: str) -> np.dtype[Any]: return np.dtype("float32" if dtype == BFLOAT16 else dtype)


def save(values: Mapping[str, list[tuple[str, Array]]], version: str) -> None:
  """Writes the file: digest -> (dtype, values) of each result."""
  blob = bytearray()
  index: dict[str, list[tuple[str, list[int], int]]] = {}
  for digest, results in sorted(values.items()):
    index[digest] = []
    for dtype, array in results:
      index[digest].append((dtype, list(array.shape), len(blob)))
      blob += np.ascontiguousarray(array, _kind(dtype)).tobytes()
  head = json.dumps({"torch": version, "index": index}, separators=(",", ":")).encode()
  np.savez_compressed(PATH, head=np.frombuffer(head, np.uint8), values=np.frombuffer(bytes(blob), np.uint8))


class Expected:
  """What the file says."""

  def __init__(self) -> None:
    with np.load(PATH) as file: head, self._values = json.loads(bytes(file["head"])), bytes(file["values"])
    self.version, self._index = head["torch"], head["index"]

  def digests(self) -> set[str]:
    """The cases that have values."""
    return set(self._index)

  def of(self, case: Case) -> list[tuple[str, Array]]:
    """(dtype, values) of each result of a case, then of each gradient."""
    found = []
    for dtype, shape, start in self._index[case.digest()]:
      kind, count = _kind(dtype), int(np.prod(shape, dtype=np.int64))
      found.append((dtype, np.frombuffer(self._values, kind, count, start).reshape(shape)))
    return found
