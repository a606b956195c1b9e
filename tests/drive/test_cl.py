"""OpenCL devices: memory, copies, launches with their times, build logs, and what they refuse. Any driver will do."""
from __future__ import annotations

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tests.opencl import need_driver
from tinyhw.core.errors import DeviceError, InvalidArgument, OutOfMemory
from tinyhw.drive import cl
from tinyhw.drive.cl import CLRuntime

SOURCE = b"""
__kernel void plus(__global int* out, __global const int* in, int n) {
  out[get_global_id(0)] = in[get_global_id(0)] + n;
}
"""


@pytest.fixture
def gpu() -> CLRuntime:
  need_driver()
  return CLRuntime()


def test_memory_copies_and_launches(gpu: CLRuntime) -> None:
  data, back = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
  out, given, half = gpu.alloc(256), gpu.alloc(256), gpu.alloc(128)
  gpu.copyin(given, memoryview(data))
  program = gpu.load(SOURCE, "plus")
  assert program([out, given], [5], (4, 1, 1), (16, 1, 1)) is None
  gpu.copyout(memoryview(back), out)
  assert (back == data + 5).all()
  seconds = program([out, out], [-7], (8, 1, 1), (8, 1, 1), wait=True)
  assert seconds is not None and seconds >= 0
  gpu.copy(half, out, 128)
  gpu.copy(half, half, 128)
  gpu.copyout(memoryview(back).cast("B")[:128], half)
  assert (back[:32] == data[:32] - 2).all()
  gpu.synchronize()
  assert gpu.describe() and gpu.siblings() >= 1 and gpu.is_peer(gpu)
  gpu.close()
  gpu.close()


def test_what_it_refuses(gpu: CLRuntime) -> None:
  for size in (0, -1):
    with pytest.raises(InvalidArgument, match=f"CL: cannot allocate {size} bytes"): gpu.alloc(size)
  with pytest.raises(OutOfMemory, match="CL"): gpu.alloc(1 << 60)
  a, b = gpu.alloc(10), gpu.alloc(20)
  for copy in (lambda: gpu.copyin(a, memoryview(bytes(11))), lambda: gpu.copyout(memoryview(bytearray(11)), a),
               lambda: gpu.copy(a, b, 11), lambda: gpu.copy(b, a, 11)):
    with pytest.raises(InvalidArgument, match="a copy of 11 bytes, but the allocation has 10"): copy()
  gpu.free(a)
  gpu.free(a)
  with pytest.raises(InvalidArgument, match="the allocation was freed"): gpu.copyin(a, memoryview(b"x"))
  with pytest.raises(DeviceError, match="(?s)'k' does not load: clBuildProgram: CL_BUILD_PROGRAM_FAILURE: .*nonsense"):
    gpu.load(b"__kernel void k() { nonsense; }", "k")
  with pytest.raises(DeviceError, match="'minus' does not load: CL: clCreateKernel: CL_INVALID_KERNEL_NAME"):
    gpu.load(SOURCE, "minus")
  plus = gpu.load(SOURCE, "plus")
  with pytest.raises(InvalidArgument, match="plus: the allocation was freed"): plus([a, b], [1], (1, 1, 1), (1, 1, 1))
  with pytest.raises(DeviceError, match="clSetKernelArg: CL_INVALID_ARG_INDEX"):
    plus([b, b], [1, 2], (1, 1, 1), (1, 1, 1))
  with pytest.raises(DeviceError, match="clEnqueueNDRangeKernel: CL_INVALID_WORK_GROUP_SIZE"):
    plus([b, b], [1], (1, 1, 1), (1 << 20, 1, 1))
  with pytest.raises(DeviceError, match="no OpenCL device 99"): CLRuntime(99)


def test_what_is_closed_says_so_and_holds_nothing(gpu: CLRuntime) -> None:
  a, programs = gpu.alloc(4), [gpu.load(SOURCE, "plus")]
  assert len(gpu.owned) == 3
  gpu.close()
  assert not gpu.owned
  for use in (lambda: gpu.alloc(4), gpu.synchronize, lambda: gpu.copyin(a, memoryview(b"abcd")),
              lambda: programs[0]([a, a], [1], (1, 1, 1), (1, 1, 1)), lambda: gpu.load(SOURCE, "plus")):
    with pytest.raises(DeviceError, match="the device was closed"): use()
  gpu.free(a)
  programs.clear()
  gc.collect()


def test_a_program_that_nobody_holds_is_released(gpu: CLRuntime) -> None:
  program = gpu.load(SOURCE, "plus")
  assert len(gpu.owned) == 2
  del program
  gc.collect()
  assert not gpu.owned


def test_threads_share_a_device_and_a_kernel(gpu: CLRuntime) -> None:
  program, start = gpu.load(SOURCE, "plus"), threading.Barrier(4)
  def work(k: int) -> bool:
    start.wait()
    right = True
    for i in range(20):
      data, back = np.full(32, i, np.int32), np.zeros(32, np.int32)
      given, out = gpu.alloc(128), gpu.alloc(128)
      gpu.copyin(given, memoryview(data))
      program([out, given], [k], (1, 1, 1), (32, 1, 1), wait=i % 2 == 0)
      gpu.copyout(memoryview(back), out)
      right &= bool((back == i + k).all())
      gpu.free(given), gpu.free(out)
    return right
  with ThreadPoolExecutor(4) as pool: assert all(pool.map(work, range(4)))


def test_a_fork_is_told_to_open_the_device_anew(gpu: CLRuntime) -> None:
  a = gpu.alloc(4)
  read, write = os.pipe()
  if (child := os.fork()) == 0:
    try: gpu.copyin(a, memoryview(b"abcd"))
    except DeviceError as error: os.write(write, str(error).encode())
    finally: os._exit(0)
  os.waitpid(child, 0)
  os.close(write)
  with os.fdopen(read) as said: assert "used by its fork" in said.read()
  gpu.free(a)


def test_a_machine_without_opencl_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(cl, "NAMES", ("libThereIsNone.so",))
  with pytest.raises(DeviceError, match="CL: there is no OpenCL library.*pocl-opencl-icd"): cl.Library()


def test_a_machine_without_drivers_is_told_what_to_install(gpu: CLRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(cl, "devices", lambda: [])
  with pytest.raises(DeviceError, match="CL: no OpenCL device 0.*pocl-opencl-icd"): CLRuntime()


def test_handles_are_those_that_the_library_lists() -> None:
  """As they are, also a null one, which no call takes; none where the library finds none, or says so by an error."""
  def listing(answers: list[int | None], code: int = 0) -> cl.Library:
    def function(parent: int, room: int, found: Any, count: Any) -> int:
      assert parent == 5
      if count is not None: count._obj.value = len(answers)
      if found is not None: found[:room] = answers
      return code
    library = cl.Library.__new__(cl.Library)
    library.function = lambda name: function  # type: ignore[method-assign,assignment]
    return library
  assert listing([3, None, 1 << 40]).handles("clGetDeviceIDs", 5) == [3, 0, 1 << 40]
  assert listing([]).handles("clGetDeviceIDs", 5) == []
  for code in cl.NOTHING_THERE: assert listing([], code).handles("clGetDeviceIDs", 5) == []
  with pytest.raises(DeviceError, match="CL: clGetDeviceIDs: CL_INVALID_VALUE"):
    listing([1], -30).handles("clGetDeviceIDs", 5)
