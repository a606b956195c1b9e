"""What Device.close() took away says so, on every path, and nothing reaches memory that is not there.

Each story runs in a process of its own: a segmentation fault fails the test, and not the whole run.
"""
from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests import apart

HEAD = """
import gc, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs in the background
import numpy as np
from tinyhw import Device, Tensor, TinyJit
from tinyhw.core.errors import DeviceError, InvalidArgument, Error, ValueLost
NAME = {device!r}

def lost(what, *args):
  try: found = what(*args)
  except ValueLost as error: assert str(error).startswith(NAME + ": ") and "device was closed" in str(error), error
  else: raise SystemExit(f"{{what}} gave {{found!r}}")

def refused(what, *args, by=Error):
  try: found = what(*args)
  except by as error: return str(error)
  raise SystemExit(f"{{what}} gave {{found!r}}")
"""


def run_apart(code: str, device: str = "AMD", fresh: bool = False, **environment: str) -> str:
  """The standard output of a story; it must end well."""
  return apart.well(apart.run(["-c", HEAD.format(device=device) + code],
                              {"MOCKGPU": "gfx1100,gfx1100", **environment}, fresh=fresh))


CLOSED = """
x = Tensor([[1.0, 2.0], [3.0, 4.0]], device=NAME)
view, computed, one, half = x.T, (x * 2).realize(), Tensor([5], device=NAME), x.half().realize()
from tinyhw import Variable
n = Variable("closed", 1, 9).bind(2)
waiting = x * n
pending, learned = x + 1, Tensor([1.0], device=NAME, requires_grad=True)
history = (learned * 3).realize()
wide = x.cast("bfloat16").realize()
state = Tensor([1.0], device=NAME)
f = TinyJit(lambda t: t + x)
for _ in range(3): kept = f(computed)
read = x.numpy()
taken = x.data()
again = {again!r}
Device.close()
other = Tensor([7.0, 8.0], device="PYTHON" if NAME != "PYTHON" else "LLVM")
if again:
  fresh = Tensor([[9.0, 9.0], [9.0, 9.0]], device=NAME)
  assert (fresh + 1).tolist() == [[10, 10], [10, 10]]
assert read.tolist() == taken.tolist() == [[1, 2], [3, 4]]
n.bind(3)
lost(waiting.tolist)
for t in (x, view, computed, half, wide, pending, kept, x[0], x + 1, x.sum(), x.detach(), history):
  for way in (Tensor.numpy, Tensor.tolist, Tensor.data, Tensor.realize, np.asarray): lost(way, t)
for way in (Tensor.item, float, int, bool, lambda t: [1, 2][t]): lost(way, one)
lost(lambda: x.to(other.device).numpy())
lost(lambda: (Tensor([1.0], device=NAME) + one).numpy())
lost(lambda: Tensor(x, device=other.device).numpy())
lost(f, computed)
lost(f, Tensor([[1.0, 1.0], [1.0, 1.0]], device=NAME))
lost(other.assign, other * 1 + x.to(other.device)[0])
lost(state.assign, one.cast("float32"))
lost(lambda: x.__setitem__(0, 1.0))
lost(lambda: (learned * 2).sum().backward() or learned.grad.numpy())
lost(lambda: TinyJit(lambda t: t * 2)(x))
assert "lost" in repr(x) and "lost" in repr(computed)
# A new value is a value, and so are constants, also ones that were in memory before.
x.assign(Tensor([[1.0, 1.0], [2.0, 2.0]], device=NAME))
assert x.T.tolist() == [[1, 2], [1, 2]] and other.tolist() == [7, 8] and lost(state.tolist) is None
f.reset()
assert [f(x).tolist() for _ in range(4)][3] == [[2, 2], [4, 4]]
del view, computed, pending, kept, half, wide, history
gc.collect()
more = [Tensor([float(i)] * 4, device=NAME) for i in range(8)]
assert [m.tolist() for m in more] == [[float(i)] * 4 for i in range(8)]
Device.close()
lost(x.tolist)
"""


@pytest.mark.parametrize("device, again", [("LLVM", True), ("PYTHON", False), ("AMD", True)])
def test_a_lost_value_says_so(device: str, again: bool) -> None:
  run_apart(CLOSED.replace("{again!r}", repr(again)), device)


CONSTANTS = """
x = Tensor.arange(6, device=NAME).reshape(2, 3)
y = x.contiguous()
view = y.T
assert y.tolist() == [[0, 1, 2], [3, 4, 5]]
del y
Device.close()
assert Tensor.arange(6, device=NAME).reshape(2, 3).contiguous().T.tolist() == [[0, 3], [1, 4], [2, 5]]
assert view.tolist() == [[0, 3], [1, 4], [2, 5]]     # the graph gives it again
"""


@pytest.mark.parametrize("device", ["LLVM", "AMD"])
def test_what_constants_give_is_given_again(device: str) -> None: run_apart(CONSTANTS, device)


RUNTIME = """
x = Tensor(np.arange(1024, dtype=np.float32), device=NAME)
assert (x + 1).numpy()[1] == 2
opened, runtime = Device[NAME], Device[NAME].runtime
kernel = next(iter(opened.kernels.values()))
allocation = opened.alloc(64)
views = [b.memory for b in runtime.kfd.buffers if b.memory is not None]
arrays = [np.frombuffer(v, np.uint8) for v in views]
slices = [v[:8].cast("Q") for v in views]
signal = runtime.new_signal()
assert len(views) > 5
Device.close()
assert "closed" in refused(opened.alloc, 64, by=DeviceError)
for what, args in ((runtime.alloc, (64,)), (runtime.copyin, (allocation, memoryview(bytes(64)))),
                   (runtime.copyout, (memoryview(bytearray(64)), allocation)),
                   (runtime.copy, (allocation, allocation, 64)),
                   (runtime.load, (b"", "k")),
                   (kernel.program, ([allocation] * 2, [], kernel.spec.grid, kernel.spec.block)),
                   (runtime.reset, ()), (runtime.wait_for, (signal, 1))):
  assert "closed" in refused(what, *args, by=DeviceError), what
for quiet in (runtime.synchronize, runtime.elapsed, runtime.last_submission, runtime.describe, runtime.close,
              lambda: runtime.peek(allocation.address), lambda: setattr(signal, "value", 7), runtime.new_signal):
  try: quiet()
  except Error: pass
for v, a, s in zip(views, arrays, slices):
  v[0], a[1], s[0] = 1, 2, 3          # nobody's memory
  assert s[0] == 3
fresh = Tensor(np.arange(1024, dtype=np.float32), device=NAME)
for v in views: v[:] = bytes([255]) * len(v)
assert (fresh + 1).numpy().tolist() == list(range(1, 1025))
del views, arrays, slices, v, a, s, runtime, opened, kernel, signal
gc.collect()
assert (fresh + 2).numpy()[5] == 7
"""


def test_views_of_a_closed_device_are_nobodys_memory() -> None: run_apart(RUNTIME)


FORK = """
x = Tensor([1.0, 2.0], device="AMD")
y, host = (x * 2).realize(), Tensor([3.0], device="LLVM").realize()
def child():
  assert "fork" in refused(y.tolist, by=DeviceError) and "fork" in refused((y + 1).tolist, by=DeviceError)
  assert host.tolist() == [3]
  Device.close()
  lost(y.tolist)
  assert (Tensor([5.0], device="AMD") + 1).tolist() == [6]
  Device.close()
pid = os.fork()
if not pid:
  status = 1
  try:
    child()
    status = 0
  finally: os._exit(status)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert y.tolist() == [2, 4] and (x + y).tolist() == [3, 6]
"""


def test_after_a_fork() -> None: run_apart(FORK)


FAULT = """
from tinyhw.drive.base import Allocation
x = Tensor([1.0, 2.0], device="AMD")
y, pending = (x * 2).realize(), x + 5
kernel = next(iter(Device["AMD"].kernels.values()))
bad = Allocation(0x7000_0000_0000, 8)
kernel.program([bad] * len(kernel.spec.buffer_order), [], kernel.spec.grid, kernel.spec.block)
assert "fault" in refused(Device["AMD"].synchronize, by=DeviceError)
for t in (x, y, pending, x.T, x + y): assert "fault" in refused(t.tolist, by=DeviceError)
assert "fault" in refused(lambda: Tensor([1.0], device="AMD").tolist(), by=DeviceError)
Device.close()
for t in (x, y, pending): lost(t.tolist)
assert (Tensor([5.0], device="AMD") + 1).tolist() == [6]
"""


def test_after_a_fault() -> None: run_apart(FAULT)


PORTS = """
import ctypes, mmap
from tinyhw.drive.linux import LinuxPort
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort
libc = ctypes.CDLL(None)
libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
for port in (LinuxPort(), MockPort(Machine())):
  at = port.mmap(-1, 3 * 4096)
  view = port.memory(at + 4096, 4096)
  array = np.frombuffer(view[8:], np.uint8)
  array_alone = np.frombuffer(port.memory(at + 8192, 8), np.uint64)
  view[:4] = b"here"
  port.munmap(at, 3 * 4096)
  assert bytes(view[:4]) == bytes(4) and not array.any() and not array_alone[0]
  array[:], array_alone[0] = 1, 1
  assert "not mapped" in refused(port.memory, at, 1, by=InvalidArgument)
  refused(port.memory, 0, 8, by=InvalidArgument)
  refused(port.doorbell, at, 1, by=InvalidArgument)
  refused(port.doorbell, 0x1000, 1, by=InvalidArgument)
  place = port.reserve(8192)
  refused(port.memory, place, 8, by=InvalidArgument)
  port.mmap(-1, 4096, 0, place)
  refused(port.memory, place, 8192, by=InvalidArgument)
  assert port.memory(place, 4096)[7] == 0
  port.munmap(place, 8192)
  del view, array, array_alone
  gc.collect()
  assert not any(m.start <= at < m.end for m in port._mappings) and not port._mappings._waiting
  # What took the place of waiting pages stays when the old view goes.
  at = port.mmap(-1, 4096)
  old = port.memory(at, 4096)
  port.munmap(at, 4096)
  assert port.mmap(-1, 4096, 0, at) == at
  new = port.memory(at, 4096)
  new[:3] = b"new"
  del old
  gc.collect()
  assert bytes(new[:3]) == b"new"
"""


def test_ports_unmap_what_nobody_sees() -> None: run_apart(PORTS)


USER = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
from tinyhw.drive.amd.kfd import Domain
from tinyhw.drive.base import Allocation
# Where the kernel puts nothing by itself: the port unmaps it once more at its end, whoever has it by then.
PLACE = 0x2000_0000_0000
for how in ("unmapped", "protected", "told"):
  gpu = Device["AMD"].runtime
  at = gpu.port.mmap(-1, 8192, 0, PLACE)
  host = gpu.kfd.register_host(gpu.gpu, at, 8192)
  gpu.port.memory(at, 8)[:] = bytes(range(8))
  out = bytearray(8)
  gpu.copyout(memoryview(out), Allocation(at, 8192))
  assert out == bytes(range(8))
  if how == "unmapped": libc.munmap(at, 8192)
  elif how == "protected": libc.mprotect(at, 8192, 0)
  else: gpu.port.munmap(at, 8192)
  assert "fault" in refused(gpu.copyout, memoryview(out), Allocation(at, 8192), by=DeviceError), how
  Device.close()
gpu = Device["AMD"].runtime
none = gpu.port.reserve(4096)
assert "Bad address" in refused(gpu.kfd._allocate, gpu.gpu, none, 4096, Domain.USERPTR.value, none)
"""


def test_user_memory_that_goes_is_a_page_fault() -> None: run_apart(USER)


def test_work_that_is_left_when_the_process_ends_is_done_quietly() -> None:
  """Enough of it to be worth compiling, for which it is too late."""
  code = "a = Tensor.ones(192, 192, device=NAME).contiguous().realize()\n(a @ a).realize()"
  done = subprocess.run([sys.executable, "-c", HEAD.format(device="AMD") + code], text=True, capture_output=True,
                        timeout=120, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MOCKGPU": "1"})
  assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
