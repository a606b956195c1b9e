"""Counts that a recorder puts at a capture's end, beside those of who goes through it."""
from __future__ import annotations

import struct
import zlib
from pathlib import Path

import msgpack
import pytest

from tests.queues.conftest import record
from tinyhw.core.errors import DecodeError
from tinyhw.queues import summary
from tinyhw.queues.capture import Capture
from tinyhw.queues.container import COUNTS, HEAD, MAGIC, Reader

HEADER = struct.Struct("<BBHII")
LAUNCHES = """
from tinyhw import Tensor, TinyJit
@TinyJit
def step(x): return (x * 2 + 1).sum().realize()
for n in range(12): step(Tensor.rand(8, 8).realize()).item()
for n in range(3, 6): (Tensor.ones(n).contiguous() + n).tolist()
"""


def frames(data: bytes) -> list[tuple[int, int, int]]:
  """(kind, first byte, end) of a file's frames."""
  found, at = [], len(MAGIC)
  while at < len(data):
    kind, _, _, size, _ = HEADER.unpack_from(data, at)
    found.append((kind, at, at + HEADER.size + size))
    at = found[-1][2]
  return found


def frame(kind: int, content: bytes) -> bytes:
  return HEADER.pack(kind, 0, 0, len(content), zlib.crc32(content)) + content


def counted(path: Path, queue: str | None = None) -> summary.Summary:
  return summary.of_capture(Capture(path, following=False), queue)


@pytest.mark.parametrize("device", ("AMD", "NV"))
def test_counts_are_those_of_a_walk(device: str, tmp_path: Path) -> None:
  """Of a program whose submissions come again; and a file that ends before its counts is gone through."""
  path = tmp_path / "run.thq"
  assert record(path, device, LAUNCHES).returncode == 0
  data = path.read_bytes()
  kind, at, _ = frames(data)[-1]
  assert kind == COUNTS and Reader(path).counts() is not None
  cut = tmp_path / "cut.thq"
  for end in (at, at + 5, len(data) - 1):
    cut.write_bytes(data[:end])
    assert Reader(cut).counts() is None
    assert counted(cut) == counted(path)
  for name in counted(path).queues: assert counted(cut, name) == counted(path, name)
  assert counted(path).kernels.total() > 20


def test_what_are_no_counts(tmp_path: Path) -> None:
  path = tmp_path / "run.thq"
  head = MAGIC + frame(HEAD, msgpack.packb({"format": 4}))
  good = frame(COUNTS, msgpack.packb([["Q", 1, {"NOP": 2}, {}]]))
  path.write_bytes(head + good)
  assert counted(path).packets == {"NOP": 2}
  path.write_bytes(head + good + frame(2, msgpack.packb([])))  # somebody wrote on: nothing counts that
  assert not counted(path).packets
  for bad in (5, [5], [["Q", 1, {}]], [["Q", -1, {}, {}]], [["Q", 1, {"NOP": "2"}, {}]], [["Q", 1, {3: 2}, {}]]):
    path.write_bytes(head + frame(COUNTS, msgpack.packb(bad)))
    with pytest.raises(DecodeError, match="has no counts at byte"): counted(path)
