"""Archives of HIP Record & Replay replay on a mock card: memory, copies, fills, kernels, and what came of them."""
from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.mock.test_waves import binary
from tinyhw.cli.decode import command as decode
from tinyhw.cli.replay import command
from tinyhw.core.errors import DecodeError, InvalidArgument
from tinyhw.queues.foreign import hrr
from tinyhw.toolbox.archive import Archived, archives

DATA, OTHER, HOST = 0x7F0000000000, 0x7F0000400000, 0x5500000000
OBJECT = 0x1122334455667788, 0x99AABBCCDDEEFF00  # low, high


class Archive:
  """Writes one, as HIP does: `call` a number of its table and its parameters, `content` what has a hash."""

  def __init__(self, path: Path) -> None:
    self.path, self._events, self._hashes = path, list[bytes](), 0
    (path / "blobs/ab").mkdir(parents=True)
    (path / "code_objects").mkdir()
    (path / f"code_objects/{OBJECT[1]:016x}{OBJECT[0]:016x}.hsaco").write_bytes(binary())

  def record(self, call: int, payload: bytes) -> None:
    n = len(self._events) + 1
    self._events.append(struct.pack("<HQQQH4x", call, n, n * 1000, 1, 32 + len(payload)) + payload)

  def call(self, call: int, form: str, *values: int) -> None: self.record(call, struct.pack(f"<i{form}", 0, *values))

  def content(self, data: Any) -> tuple[int, int]:
    self._hashes += 1
    (self.path / f"blobs/ab/{0xAB:016x}{self._hashes:016x}.blob").write_bytes(bytes(data))
    return self._hashes, 0xAB

  def launch(self, groups: int, *arguments: tuple[int, bytes], name: str = "store") -> None:
    payload = struct.pack("<QH", 0, len(name)) + name.encode()
    payload += struct.pack("<QQIIIIIIIHH", *OBJECT, groups, 1, 1, 32, 1, 1, 0, len(arguments), 0)
    for kind, data in arguments: payload += struct.pack("<BH", kind, len(data)) + data
    self.record(321, payload)

  def end(self) -> Path:
    (self.path / "events.bin").write_bytes(struct.pack("<IHH", hrr.MAGIC, hrr.FORMAT, 0) + b"".join(self._events))
    return self.path


def program(a: Archive, gave: Any, first: int = 7) -> None:
  """Memory of two allocations; a kernel stores `first` and on into part of one, whose copy the program gets back."""
  a.call(224, "QQ", DATA, 4096)
  a.call(224, "QQ", OTHER, 4096)
  a.call(280, "QQQiQQQ", DATA, HOST, 256, 1, 0, *a.content(np.full(64, 5, np.int32)))
  a.call(300, "QiQ", DATA + 256, 0x01, 256)
  a.launch(1, (1, struct.pack("<Q", DATA + 128)), (0, struct.pack("<I", first)))
  a.call(283, "QQQQ", OTHER, DATA, 512, 0)
  a.call(356, "Q", 0)  # a stream is made
  a.call(271, "QQQiQQ", HOST, OTHER, 512, 2, *a.content(gave))
  a.call(99, "Q", DATA)


RIGHT = np.concatenate([np.full(32, 5), np.arange(7, 39), np.full(64, 0x01010101)]).astype(np.int32)


def test_what_was_recorded_on_a_card_replays_without_one(tmp_path: Path) -> None:
  a = Archive(tmp_path / "a.hrr")
  program(a, RIGHT)
  replay = Archived(a.end())
  checked, = list(replay.run())
  assert str(checked) == "call 7, hipMemcpy of 512 bytes: as recorded"
  assert replay.launches == 1 and replay.card == "gfx1100" and not replay.left_out and not replay.notes


def replayed(path: Path, *words: str) -> Result: return CliRunner().invoke(command, [str(path), *words])


def test_the_command_tells_what_differs_and_what_is_left_out(tmp_path: Path) -> None:
  wrong = RIGHT.copy()
  wrong[40] += 1
  a = Archive(tmp_path / "all.hrr/pid-7")
  program(a, wrong)
  a.call(175, "QQ", 1, 2)
  a.call(206, "QQI", HOST, 64, 0)
  a.end()
  done = replayed(tmp_path / "all.hrr")
  assert done.exit_code == 1
  assert "call 7, hipMemcpy of 512 bytes: 1 bytes differ" in done.output
  assert "not made again: 1 of hipGraphLaunch" in done.output and "hipHostMalloc: what the host stores" in done.output
  assert "1 kernels, 1 results compared, 1 differ" in done.output


def test_decode_has_the_names_of_calls_where_the_table_is_the_known_one(tmp_path: Path) -> None:
  a = Archive(tmp_path / "a.hrr")
  program(a, RIGHT)
  lines = CliRunner().invoke(decode, [str(a.end())]).output
  assert "        2  hipMalloc\n" in lines and "hipModuleLaunchKernel" in lines and "are of the table" not in lines
  a.call(224, "QQQ", 1, 2, 3)
  lines = CliRunner().invoke(decode, [str(a.end())]).output
  assert "        3  call 224\n" in lines and "are of the table of the HIP that recorded them" in lines


@pytest.mark.parametrize(("change", "told"), [
  (lambda a: a.call(224, "QQQ", DATA, 1, 2), "is of a HIP with another table of calls"),
  (lambda a: a.launch(1, name="none"), "has kernel none"),
  (lambda a: a.launch(1), "has 0 arguments, its object says 2"),
  (lambda a: a.record(321, bytes(20)), "ends amid its arguments"),
  (lambda a: a.launch(1, (9, bytes(8))), "an argument of kind 9")], ids=range(5))
def test_what_is_not_understood_is_refused(change: Callable[[Archive], None], told: str, tmp_path: Path) -> None:
  a = Archive(tmp_path / "a.hrr")
  change(a)
  with pytest.raises(DecodeError, match=told): list(Archived(a.end()).run())


def test_pointers_that_nothing_made_are_told_and_structs_have_theirs_moved(tmp_path: Path) -> None:
  a = Archive(tmp_path / "a.hrr")
  a.call(224, "QQ", DATA, 4096)
  a.launch(1, (1, struct.pack("<Q", DATA + 8192)), (0, struct.pack("<I", 1)))
  a.record(321, struct.pack("<QH", 0, 5) + b"store" + struct.pack("<QQIIIIIIIHH", 0, 0, 1, 1, 1, 32, 1, 1, 0, 2, 0)
           + struct.pack("<BHQHH", 3, 8, DATA, 1, 0) + struct.pack("<BHI", 0, 4, 3))
  a.call(284, "QQQQQ", HOST, DATA, 128, *a.content(np.arange(3, 35, dtype=np.int32)))
  replay = Archived(a.end())
  checked, = list(replay.run())
  assert not checked.differing and replay.launches == 1 and replay.left_out == {"hipModuleLaunchKernel": 1}
  assert [n for n in replay.notes if f"{DATA + 8192:#x} is in no memory" in n]


def test_other_forms_and_unknown_code_are_refused(tmp_path: Path) -> None:
  a = Archive(tmp_path / "a.hrr")
  path = a.end()
  next((path / "code_objects").iterdir()).write_bytes(b"no code")
  with pytest.raises(InvalidArgument, match="no processor that is known"): Archived(path)
  (path / "events.bin").write_bytes(struct.pack("<IHH", hrr.MAGIC, 5, 0))
  with pytest.raises(DecodeError, match="format 5"): archives(path)
