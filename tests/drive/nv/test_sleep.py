"""Waits that sleep in the kernel until the GPU interrupts."""
from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from tests.drive.nv.programs import BLOCK, ONE, PTX, download, row, upload
from tinyhw.arch.nv import NV_ARCHES
from tinyhw.core.errors import DeviceError, PageFault, WaitTimeout
from tinyhw.devices.assemble import Assembler
from tinyhw.drive import queued
from tinyhw.drive.nv.device import NVRuntime
from tinyhw.drive.nv.rm import Rm
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.mock.nv.port import NvPort


class Watched(NvPort):
  """Counts polls, and those that were told of something."""

  def __init__(self, machine: NvMachine) -> None:
    super().__init__(machine)
    self.polls = self.told = 0

  def poll(self, fd: int, timeout_s: float) -> bool:
    self.polls += 1
    found = super().poll(fd, timeout_s)
    self.told += found
    return found


def opened(arch: str = "sm_90", timeout_s: float = 20) -> tuple[NVRuntime, Watched]:
  port = Watched(NvMachine(arch, vram=1 << 28, system_memory=1 << 28))
  gpu = NVRuntime(port, timeout_s=timeout_s)
  gpu.assemble = Assembler(gpu.arch, False)
  return gpu, port


@pytest.mark.parametrize("arch", NV_ARCHES)
def test_an_interrupt_wakes(arch: str) -> None:
  gpu, port = opened(arch)
  add, a, signal = gpu.load(PTX, "add"), upload(gpu, row(1)), gpu.new_signal()
  assert gpu._event is None  # short waits need none
  for n in range(1, 4):
    gpu.synchronize()
    gpu.wait_for(signal, n)
    add([a, a, a], [], ONE, BLOCK)
    assert not gpu.asleep(0.0) and not gpu.timeline.done(gpu.timeline.last)
    signal.value = n
    assert gpu.asleep(1.0) and gpu.timeline.done(gpu.timeline.last)
    assert not gpu.asleep(1.0)  # nothing is queued: nothing to sleep for
  assert (download(gpu, a, row(0)) == 8).all() and port.told == 3
  assert len(port.machine.rm.events._events) == 1
  gpu.close()
  assert not port.machine.rm.events._events and not port.machine.rm.events._files
  assert port.machine.findings == []


def test_one_interrupt_for_what_is_queued() -> None:
  gpu, port = opened()
  signal = gpu.new_signal()
  gpu.wait_for(signal, 1)
  for _ in range(5): gpu.asleep(0.0)
  labels = [s.label for s in gpu.compute.history]
  assert labels.count("interrupt") == 1
  gpu.submit(gpu.compute, gpu.compute_marker())
  gpu.asleep(0.0)
  assert [s.label for s in gpu.compute.history].count("interrupt") == 2
  signal.value = 1
  gpu.synchronize()
  gpu.close()


def test_a_thread_sleeps_until_another_lets_it_go() -> None:
  gpu, port = opened()
  signal, woken = gpu.new_signal(), list[bool]()
  gpu.wait_for(signal, 1)
  thread = threading.Thread(target=lambda: woken.append(gpu.asleep(30.0)))
  thread.start()
  while not port.polls: time.sleep(1e-3)
  signal.value = 1
  thread.join(20)
  assert woken == [True]
  gpu.synchronize()
  gpu.close()


def test_threads_that_sleep_together_share_an_event() -> None:
  gpu, port = opened()
  signal, start = gpu.new_signal(), threading.Barrier(4)
  gpu.wait_for(signal, 1)
  def wait() -> None:
    start.wait()
    while not gpu.timeline.done(gpu.timeline.last): gpu.asleep(0.01)
  threads = [threading.Thread(target=wait) for _ in range(4)]
  for t in threads: t.start()
  while port.polls < 4: time.sleep(1e-3)
  assert len(port.machine.rm.events._events) == 1
  signal.value = 1
  for t in threads: t.join(20)
  assert not any(t.is_alive() for t in threads)
  gpu.close()


def test_on_a_clock_that_goes_on_a_long_wait_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
  """As on a card: after a short look the wait is the kernel's."""
  monkeypatch.setattr(Watched, "now_ns", lambda self: time.monotonic_ns())
  monkeypatch.setattr(queued, "_POLL_S", 1e-3)
  gpu, port = opened()
  signal, ended = gpu.new_signal(), threading.Event()
  gpu.wait_for(signal, 1)
  thread = threading.Thread(target=lambda: (gpu.synchronize(), ended.set()))
  thread.start()
  while not port.polls: time.sleep(1e-3)
  assert not ended.is_set()
  signal.value = 1
  thread.join(20)
  assert ended.is_set() and port.told
  gpu.close()


def test_a_fault_ends_a_sleep() -> None:
  gpu, _ = opened()
  add, a, far = gpu.load(PTX, "add"), upload(gpu, row(1)), gpu.alloc(64)
  far.address = 0x6FFF_0000_0000
  add([far, a, a], [], ONE, BLOCK)
  with pytest.raises(PageFault): gpu.sleep(5.0)
  gpu.close()


def test_what_never_ends_is_told() -> None:
  gpu, _ = opened(timeout_s=0.05)
  gpu.wait_for(gpu.new_signal(), 1)
  with pytest.raises(WaitTimeout): gpu.synchronize()
  with pytest.warns(RuntimeWarning, match="closed before"): gpu.close()


def test_an_event_that_cannot_be_made_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
  gpu, port = opened()
  before, alloc = len(port.machine.files_of(port.pid())), Rm.alloc
  def refuse(self: Rm, parent: int, class_id: int, *more: Any) -> int:
    if class_id == 0x79: raise DeviceError("of the test")
    return alloc(self, parent, class_id, *more)
  monkeypatch.setattr(Rm, "alloc", refuse)
  gpu.wait_for(signal := gpu.new_signal(), 1)
  with pytest.raises(DeviceError, match="of the test"): gpu.asleep(0.0)
  assert len(port.machine.files_of(port.pid())) == before and not port.machine.rm.events._files
  monkeypatch.setattr(Rm, "alloc", alloc)
  signal.value = 1
  assert gpu.asleep(1.0)
  gpu.close()


def test_copies_are_waited_for_too() -> None:
  gpu, port = opened()
  a, b, signal = upload(gpu, row(5)), upload(gpu, row(0)), gpu.new_signal()
  gpu.wait_for(signal, 1)
  gpu.copy(b, a, 128)
  assert not gpu.asleep(0.0)
  signal.value = 1
  assert gpu.asleep(1.0) and port.told == 1
  assert (download(gpu, b, np.zeros_like(row(0))) == 5).all()
  gpu.close()
