"""Launches in one piece (`launch_at_once`) and what stands in their way; large copies: threads, engines, a kernel."""
from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from tests.drive.nv.programs import BLOCK, ONE, PTX, THREADS, download, row, upload
from tinyhw.arch.nv import NV_ARCHES
from tinyhw.autogen import nv_rm_alloc
from tinyhw.core.errors import DeviceError, InvalidArgument
from tinyhw.devices.assemble import Assembler
from tinyhw.drive.movers import Movers
from tinyhw.drive.nv import channel, copying
from tinyhw.drive.nv.device import NVRuntime
from tinyhw.drive.nv.rm import Gpu, Rm
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.mock.nv.port import NvPort


def opened(arch: str = "sm_90") -> NVRuntime:
  gpu = NVRuntime(NvPort(NvMachine(arch, vram=1 << 28, system_memory=1 << 28)), timeout_s=20)
  gpu.assemble = Assembler(gpu.arch, False)
  return gpu


@pytest.fixture
def gpu() -> Iterator[NVRuntime]:
  made = opened()
  yield made
  machine = made.port.machine  # type: ignore[attr-defined]
  made.close()
  assert machine.findings == []


class Slow:
  """Counts launches that do not go in one piece."""

  def __init__(self, gpu: NVRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    self.count, real = 0, gpu.submit_placed
    def submit(*given: object) -> None:
      self.count += 1
      real(*given)  # type: ignore[arg-type]
    monkeypatch.setattr(gpu, "submit_placed", submit)


@pytest.mark.parametrize("arch", NV_ARCHES)
def test_a_launch_done_again_goes_in_one_piece(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
  gpu = opened(arch)
  slow, add = Slow(gpu, monkeypatch), gpu.load(PTX, "add")
  a, one = upload(gpu, row(0, 4 * THREADS)), upload(gpu, row(1, 4 * THREADS))
  for _ in range(9): add([a, a, one], [], ONE, BLOCK)
  assert slow.count == 1  # the one behind the copies
  for _ in range(3): add([a, a, one], [], (4, 1, 1), BLOCK)
  assert slow.count == 2  # another grid
  found = download(gpu, a, row(0, 4 * THREADS))
  assert (found[:THREADS] == 12).all() and (found[THREADS:] == 3).all()
  add([a, a, one], [], (4, 1, 1), BLOCK)
  add([a, a, one], [], (4, 1, 1), BLOCK)
  assert slow.count == 3  # behind a copy
  assert (download(gpu, a, row(0, 4 * THREADS))[THREADS:] == 5).all()
  machine = gpu.port.machine  # type: ignore[attr-defined]
  gpu.close()
  assert machine.findings == []


def test_rings_and_arguments_go_round(gpu: NVRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
  add, a, one = gpu.load(PTX, "add"), upload(gpu, row(0)), upload(gpu, row(1))
  count = 2 * max(channel.ENTRIES, len(gpu.kernargs.memory) // 1024) // 8
  monkeypatch.setattr(channel, "_SPARE", channel.ENTRIES - 64)  # an entry is free when fewer than 64 are in use
  for _ in range(count): add([a, a, one], [], ONE, BLOCK)
  assert (download(gpu, a, row(0)) == count).all()


def test_a_value_that_does_not_fit_leaves_all_as_it_was(gpu: NVRuntime) -> None:
  add, a, one = gpu.load(PTX, "add"), upload(gpu, row(0)), upload(gpu, row(1))
  for _ in range(2): add([a, a, one], [], ONE, BLOCK)
  gone = gpu.alloc(64)
  gpu.free(gone)
  last = gpu.timeline.last
  with pytest.raises(InvalidArgument, match="does not fit"): add([a, a, gone], [], ONE, BLOCK)
  assert gpu.timeline.last == last
  add([a, a, one], [], ONE, BLOCK)
  assert (download(gpu, a, row(0)) == 3).all()


def test_an_interrupted_launch_is_settled(gpu: NVRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
  add, a, one = gpu.load(PTX, "add"), upload(gpu, row(0)), upload(gpu, row(1))
  for _ in range(2): add([a, a, one], [], ONE, BLOCK)
  def stop(address: int, count: int) -> None: raise KeyboardInterrupt
  with monkeypatch.context() as patch:
    patch.setattr(gpu._launches.ring, "tell", stop)
    with pytest.raises(KeyboardInterrupt): add([a, a, one], [], ONE, BLOCK)
  gpu.synchronize()
  assert gpu.timeline.done(gpu.timeline.last)
  assert (download(gpu, a, row(0)) == 2).all()


def test_low_dwords_of_the_timeline_wrap(gpu: NVRuntime) -> None:
  add, a, one = gpu.load(PTX, "add"), upload(gpu, row(0)), upload(gpu, row(1))
  add([a, a, one], [], ONE, BLOCK)
  gpu.synchronize()
  gpu.timeline.last = gpu.timeline.signal.value = (1 << 32) - 3
  for _ in range(6): add([a, a, one], [], ONE, BLOCK)
  gpu.synchronize()
  assert gpu.timeline.signal.value == gpu.timeline.last == (1 << 32) + 4
  assert (download(gpu, a, row(0)) == 7).all()


def test_threads_launch_beside_each_other(gpu: NVRuntime) -> None:
  add, one = gpu.load(PTX, "add"), upload(gpu, row(1))
  rows = [upload(gpu, row(0)) for _ in range(3)]
  def work(n: int) -> None:
    for _ in range(30): add([rows[n], rows[n], one], [], ONE, BLOCK)
  threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
  for t in threads: t.start()
  for t in threads: t.join()
  for a in rows: assert (download(gpu, a, row(0)) == 30).all()


# ---- copies

@pytest.mark.parametrize("threads", [1, 2, 6, 20])
def test_large_copies_by_threads(gpu: NVRuntime, threads: int) -> None:
  gpu.movers = Movers(threads)
  for nbytes in (gpu.bounce.half_bytes, 2 * gpu.bounce.half_bytes + 1, 9 * gpu.bounce.half_bytes + 12345):
    data = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    a, out = gpu.alloc(nbytes), np.zeros_like(data)
    gpu.copyin(a, memoryview(data.tobytes()))  # which nobody may write
    gpu.copyout(memoryview(out), a)
    assert np.array_equal(out, data)
    gpu.free(a)


def test_threads_that_fail_are_told() -> None:
  movers = Movers(2)
  with pytest.raises(ValueError, match="read-only"): movers.move(memoryview(b"1234"), memoryview(b"4321")).result()
  movers.close()
  movers.move(memoryview(bytearray(4)), memoryview(b"4321")).result()
  movers.close()


def test_a_kernel_copies_what_is_large(gpu: NVRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(copying, "LEAST", 1 << 16)
  nbytes = 5 * copying.BLOCK_BYTES + 77
  data = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
  a, b = upload(gpu, data), upload(gpu, np.zeros(nbytes + 16, np.uint8))
  gpu.copy(b, a, nbytes)
  assert np.array_equal(download(gpu, b, data), data)
  assert [s.label for s in gpu.compute.history][-1] == f"kernel {copying.NAME}"
  assert not download(gpu, b, np.zeros(nbytes + 16, np.uint8))[nbytes:].any()
  gpu.assemble, gpu._copies = None, None
  sent = len(gpu.compute.history)
  gpu.copy(b, a, nbytes - 1)  # the copy engine's alone
  assert len(gpu.compute.history) == sent


def test_the_copy_engine_with_the_most_physical_ones(monkeypatch: pytest.MonkeyPatch) -> None:
  first = nv_rm_alloc.NV2080_ENGINE_TYPE_COPY0
  def engine() -> int:
    gpu = opened()
    try: return gpu._copy_engine() - first
    finally: gpu.close()
  assert engine() == 4
  def silent(self: Rm, gpu: Gpu, engine: int) -> int: return 0
  monkeypatch.setattr(Rm, "copy_units", silent)
  assert engine() == 2  # the first with a runlist of its own
  def refuse(self: Rm, handle: int, command: int, params: object) -> None: raise DeviceError("of the test")
  gpu = opened()
  with monkeypatch.context() as patch:
    patch.setattr(Rm, "control", refuse)
    assert gpu._copy_engine() == first  # RM tells of none
  gpu.close()
