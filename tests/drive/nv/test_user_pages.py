"""Pages of the process as memory of the GPU: zero-copy, until they are given back."""
from __future__ import annotations

import mmap
from collections.abc import Iterator

import numpy as np
import pytest

from tests.drive.nv.programs import BLOCK, ONE, PTX, THREADS, download, row, upload
from tinyhw.core.errors import DeviceError, InvalidArgument, PageFault
from tinyhw.devices.assemble import Assembler
from tinyhw.drive.nv.device import NVRuntime
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.mock.nv.port import NvPort

SIZE = 3 * 4096


@pytest.fixture(params=["sm_80", "sm_90"])
def gpu(request: pytest.FixtureRequest) -> Iterator[NVRuntime]:
  made = NVRuntime(NvPort(NvMachine(request.param, vram=1 << 28, system_memory=1 << 28)), timeout_s=5)
  made.assemble = Assembler(made.arch, False)
  yield made
  made.close()


def pages() -> tuple[mmap.mmap, np.ndarray, int]:  # type: ignore[type-arg]
  """Memory of the process that the port has not mapped: what NumPy has of it, its address."""
  memory = mmap.mmap(-1, SIZE)
  data = np.frombuffer(memory, np.uint32)
  return memory, data, data.ctypes.data


def test_kernels_and_copies_reach_them(gpu: NVRuntime) -> None:
  memory, data, at = pages()
  data[:] = np.arange(SIZE // 4)
  theirs = gpu.register_host(at, SIZE)
  assert theirs.address == at
  add, one, out = gpu.load(PTX, "add"), upload(gpu, row(1)), upload(gpu, row(0))
  add([theirs, theirs, one], [], ONE, BLOCK)
  gpu.synchronize()
  assert (data[:THREADS] == np.arange(1, THREADS + 1)).all() and (data[THREADS:] == np.arange(THREADS, SIZE // 4)).all()
  data[:THREADS] = 7
  gpu.copy(out, theirs, 4 * THREADS)
  assert (download(gpu, out, row(0)) == 7).all()
  with pytest.raises(InvalidArgument, match="no pages of the host"): gpu.unregister_host(out)
  gpu.unregister_host(theirs)
  assert theirs.address is None
  again = gpu.register_host(at, SIZE)
  gpu.unregister_host(again)
  assert gpu.port.machine.findings == []  # type: ignore[attr-defined]
  del data
  memory.close()


def test_what_cannot_be_registered(gpu: NVRuntime) -> None:
  memory, data, at = pages()
  for address, size, words in ((at + 4, 4096, "whole pages"), (at, 100, "whole pages"), (at, 0, "whole pages"),
                               (1 << 40, 4096, "addresses of its"), (0x7294_0000_0000, 4096, "addresses of its")):
    with pytest.raises(InvalidArgument, match=words): gpu.register_host(address, size)
  with pytest.raises(DeviceError, match="INVALID_ADDRESS"): gpu.register_host(at, 1 << 40)
  theirs = gpu.register_host(at, SIZE)
  before = len(gpu.rm.buffers)
  with pytest.raises(DeviceError, match="ADDRESS_IN_USE"): gpu.register_host(at + 4096, 4096)
  assert len(gpu.rm.buffers) == before
  gpu.unregister_host(theirs)
  del data
  memory.close()


def test_pages_that_were_given_back_fault(gpu: NVRuntime) -> None:
  memory, data, at = pages()
  theirs, one = gpu.register_host(at, SIZE), upload(gpu, row(1))
  add = gpu.load(PTX, "add")
  gpu.unregister_host(theirs)
  theirs.address = at
  add([theirs, theirs, one], [], ONE, BLOCK)
  with pytest.raises(PageFault) as told: gpu.synchronize()
  assert told.value.address == at and not data.any()
  del data
  memory.close()


def test_closing_gives_them_back() -> None:
  gpu = NVRuntime(NvPort(NvMachine("sm_90", vram=1 << 28, system_memory=1 << 28)), timeout_s=5)
  memory, data, at = pages()
  gpu.register_host(at, SIZE)
  rm = gpu.rm
  gpu.close()
  assert not rm.buffers
  del data
  memory.close()
