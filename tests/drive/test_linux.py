"""The Linux port against this machine's kernel: files, mappings at fixed addresses, stores, waits."""
from __future__ import annotations

import ctypes
import errno
import os
import termios
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tinyhw.core.port import Port
from tinyhw.drive.linux import LinuxPort


@pytest.fixture
def linux() -> LinuxPort: return LinuxPort()


def test_it_is_a_port(linux: LinuxPort) -> None:
  assert isinstance(linux, Port) and linux.pid() == os.getpid()


def test_files(linux: LinuxPort, tmp_path: Path) -> None:
  (tmp_path / "b").write_bytes(b"two")
  (tmp_path / "a").write_bytes(b"one")
  assert linux.listdir(str(tmp_path)) == ["a", "b"] and linux.read(str(tmp_path / "b")) == b"two"
  fd = linux.open(str(tmp_path / "a"))
  assert not os.get_inheritable(fd)
  linux.close(fd)
  with pytest.raises(FileNotFoundError): linux.open(str(tmp_path / "none"))


def test_ioctl_fills_its_argument_and_keeps_the_errno(linux: LinuxPort) -> None:
  read, write = os.pipe()
  os.write(write, b"12345")
  count = ctypes.c_int(0)
  assert linux.ioctl(read, termios.FIONREAD, count) == 0 and count.value == 5
  with pytest.raises(OSError) as error: linux.ioctl(read, 0xC0184B0C, (ctypes.c_uint8 * 24)())
  assert error.value.errno == errno.ENOTTY
  for fd in (read, write): linux.close(fd)


@pytest.mark.parametrize("align", (4096, 1 << 16, 2 << 20))
def test_reserved_addresses_take_a_file_at_a_fixed_place(linux: LinuxPort, tmp_path: Path, align: int) -> None:
  path = tmp_path / "memory"
  path.write_bytes(bytes(3 * 4096))
  fd = linux.open(str(path))
  base = linux.reserve(5 * 4096, align)
  assert base % align == 0
  assert linux.mmap(fd, 2 * 4096, 4096, base + 4096) == base + 4096
  view = linux.memory(base + 4096, 8192)
  view[:4], view[-1:] = b"here", b"!"
  raw = path.read_bytes()
  assert raw[4096:4100] == b"here" and raw[-1:] == b"!" and not any(raw[:4096])
  other = linux.mmap(fd, 4096, 4096)
  assert bytes(linux.memory(other, 4)) == b"here"
  linux.munmap(other, 4096)
  linux.munmap(base, 5 * 4096)
  linux.close(fd)


def test_anonymous_memory_and_doorbells(linux: LinuxPort) -> None:
  at = linux.mmap(-1, 4096)
  linux.doorbell(at + 16, 1 << 63 | 5)
  linux.doorbell(at + 16, 7)
  assert linux.memory(at, 4096).cast("Q")[2] == 7
  linux.munmap(at, 4096)
  assert not linux._doorbells


def test_a_file_tells_of_something(linux: LinuxPort) -> None:
  reading, writing = os.pipe()
  try:
    assert not linux.poll(reading, 0.0)
    os.write(writing, b"x")
    assert linux.poll(reading, 5.0)
  finally:
    os.close(reading)
    os.close(writing)
  assert not linux.poll(reading, 0.0)  # a file that is closed has nothing to tell


def test_a_mapping_that_the_kernel_refuses(linux: LinuxPort) -> None:
  with pytest.raises(OSError) as error: linux.mmap(-1, 0)
  assert error.value.errno == errno.EINVAL
  null = linux.open("/dev/null")
  with pytest.raises(OSError): linux.mmap(null, 4096, 3 << 62)
  linux.close(null)


def test_the_kernels_log_is_read_record_by_record(linux: LinuxPort, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
  """Until there is no record more; one that was overwritten meanwhile is passed over."""
  log = str(tmp_path / "kmsg")
  os.mkfifo(log)
  writer = os.open(log, os.O_RDWR)
  os.write(writer, b"6,1,2,-;amdgpu: one\n")
  monkeypatch.setattr("tinyhw.drive.linux._KMSG", log)
  assert linux.read(log) == b"6,1,2,-;amdgpu: one\n" and linux.read(log) == b""
  lost = iter([BrokenPipeError(), b"a\n", BrokenPipeError(), b"b\n", BlockingIOError()])
  closed: list[int] = []

  def read(fd: int, size: int) -> bytes:
    found = next(lost)
    if isinstance(found, bytes): return found
    raise found
  monkeypatch.setattr(os, "read", read)
  monkeypatch.setattr(os, "close", closed.append)
  assert linux.read(log) == b"a\nb\n" and len(closed) == 1
  monkeypatch.undo()
  for fd in (writer, *closed): os.close(fd)


def test_what_cannot_be_unmapped_is_an_error(linux: LinuxPort) -> None:
  with pytest.raises(OSError, match="munmap of 4096 bytes at 0x1") as error: linux._unmap(1, 4096)
  assert error.value.errno == errno.EINVAL


def test_waiting(linux: LinuxPort) -> None:
  calls: list[int] = []
  assert linux.wait(lambda: len(calls) > 3 or bool(calls.append(1)), 5)
  start = time.perf_counter()
  assert not linux.wait(lambda: False, 0.02)
  assert 0.02 <= time.perf_counter() - start < 1
  before = linux.now_ns()
  assert linux.now_ns() >= before


@pytest.mark.parametrize("align", [4096, 1 << 16, 2 << 20])
def test_reserving_takes_no_more_than_asked_for(linux: LinuxPort, align: int) -> None:
  """What was taken for the alignment's sake goes back."""
  def mapped() -> int: return int(Path("/proc/self/statm").read_text().split()[0]) * 4096
  before, kept = mapped(), [linux.reserve(8192, align) for _ in range(64)]
  assert all(at % align == 0 for at in kept) and mapped() - before <= 64 * 8192 + (8 << 20)
  for at in kept: linux.munmap(at, 8192)


def test_a_fence_waits_for_nobody() -> None:
  port = LinuxPort()
  port.fence()
  with port._fence: port.fence()
  assert not port._fence.locked()



def test_what_takes_long_is_seen_soon_behind_its_end(linux: LinuxPort, monkeypatch: pytest.MonkeyPatch) -> None:
  """No sleep is longer than a sixteenth of what was waited for, nor than a millisecond, nor past the time."""
  now, slept = [0.0], list[tuple[float, float]]()
  def sleep(seconds: float) -> None:
    slept.append((now[0], seconds))
    now[0] += seconds
  def clock() -> float:
    now[0] += 1e-6
    return now[0]
  monkeypatch.setattr("tinyhw.drive.linux.time", SimpleNamespace(perf_counter=clock, sleep=sleep))
  for end in (0.0005, 0.0017, 0.2):
    now[0], slept[:] = 0.0, []
    assert linux.wait(lambda: now[0] >= end, 5) and now[0] <= end * 17 / 16 + 25e-6  # noqa: B023 - called at once
    assert all(20e-6 <= s <= max(at / 16, 20e-6) and s <= 1e-3 for at, s in slept)
  now[0], slept[:] = 0.0, []
  assert not linux.wait(lambda: False, 0.01) and now[0] < 0.01 + 1e-4
