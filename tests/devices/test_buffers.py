"""Buffers: memory is given back and used again, copies reach every device, what is printed is tidy."""
from __future__ import annotations

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

from tinyhw import Device, Tensor, dtypes
from tinyhw.core.errors import InvalidArgument, OutOfMemory
from tinyhw.devices.buffer import Buffer, buffer_of
from tinyhw.devices.registry import Devices
from tinyhw.engine.run import Step, listening


def test_memory_is_used_again() -> None:
  gc.collect()
  first = Tensor(np.zeros(12345, np.float32))
  place = buffer_of(first.uop.base).allocation.address
  del first
  gc.collect()
  assert buffer_of(Tensor(np.ones(12345, np.float32)).uop.base).allocation.address == place


def test_a_loop_does_not_grow_memory() -> None:
  x = Tensor(np.ones(54321, np.float32)).realize()
  places = set()
  for _ in range(10):
    x = (x * 0.5 + 1).realize()
    places.add(buffer_of(x.uop.base).allocation.address)
  assert len(places) <= 3 and np.all(x.numpy() > 1.9)


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_an_allocation_beyond_the_host(device: str) -> None:
  with pytest.raises(OutOfMemory, match="bytes asked"): Device[device].alloc(1 << 62)


def test_only_memory_has_a_buffer() -> None:
  x = Tensor([1.0, 2.0], device="PYTHON")
  for node in ((x + 1).uop, x.uop.reshape((2, 1))):
    with pytest.raises(InvalidArgument, match=f"{node.op.name} is not a BUFFER"): buffer_of(node)
  assert buffer_of(x.uop.base).size == 2


def test_buffers_refuse_what_does_not_fit() -> None:
  b = Buffer("LLVM", 4, dtypes.float32)
  with pytest.raises(InvalidArgument, match="15 bytes for a buffer of 16"): b.copyin(memoryview(bytes(15)))
  with pytest.raises(InvalidArgument, match="16 bytes of a buffer for 17"): b.copyout(memoryview(bytearray(17)))
  with pytest.raises(InvalidArgument, match="a copy from 20 to 16"): b.copy_from(Buffer("LLVM", 5, dtypes.float32))
  assert "no memory yet" in repr(b)


def test_common_work_is_done_once() -> None:
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  y = (x.exp() @ x).realize()
  steps: list[Step] = []
  with listening(steps.append):
    a, b = y + 1, y * 2
    a.realize(b)
    (a + b).realize()
    a.realize()
  assert len(steps) == 2                     # a and b are one kernel


TWO_CARDS = """
from tinyhw import Tensor, Device
x = Tensor([[1.0, 2.0], [3.0, 4.0]], device="AMD").realize()
y = (x.to("AMD:1") @ x.to("AMD:1")).realize()
assert y.device == "AMD:1" and Device["AMD:1"].runtime.is_peer(Device["AMD"].runtime)
print((y.to("AMD") + x).tolist(), y.to("PYTHON").tolist())
"""


def run_apart(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
  return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment})


def test_two_cards_copy_to_each_other() -> None:
  done = run_apart(TWO_CARDS, MOCKGPU="gfx1100,gfx1100")
  assert done.stdout == "[[8.0, 12.0], [18.0, 26.0]] [[7.0, 10.0], [15.0, 22.0]]\n", done.stderr


def test_debug_levels_print_more_and_more(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
  counts = []
  for level in range(8):
    monkeypatch.setenv("DEBUG", str(level))
    (Tensor([1] * (level + 30), device="PYTHON") * 3).tolist()     # another size: another kernel
    counts.append(len(capsys.readouterr().err.splitlines()))
  assert counts[:2] == [0, 0] and counts[2] == 1 and sorted(counts) == counts and counts[3] < counts[4] < counts[5]
  monkeypatch.setenv("DEBUG", "1")
  assert Devices()["PYTHON"].name == "PYTHON"
  assert capsys.readouterr().err.startswith("PYTHON   opened in")


def test_kernels_of_a_long_chain_do_not_grow_with_it() -> None:
  x = Tensor(np.arange(1, 9, dtype=np.float32), device="PYTHON")
  for _ in range(40): x = x / x.sum() * 8 + 1
  steps: list[Step] = []
  with listening(steps.append): x.realize()
  sizes = [len(s.kernel.spec.uops) for s in steps if s.kernel is not None]
  assert len(sizes) < 60 and max(sizes) < 150


def test_a_copy_takes_what_is_asked_for() -> None:
  """Of a part of some memory the part goes to another device. Where nothing can be computed, all of it goes."""
  data = np.arange(60, dtype=np.float32).reshape(5, 12)
  for device, bytes_copied in (("PYTHON", 24), ("NPY", 240)):
    there = Tensor(data).to(device).realize()
    steps: list[Step] = []
    with listening(steps.append): part = there[1:4:2, 2:11:4].to("LLVM").realize()
    assert np.array_equal(part.numpy(), data[1:4:2, 2:11:4])
    assert [s.written[0].nbytes for s in steps if s.kernel is None] == [bytes_copied], device
    assert device != "NPY" or all(s.buffers[0].device == "LLVM" for s in steps)
  assert np.array_equal((there.to("LLVM") + there.flip(0).to("LLVM")).numpy(), data + data[::-1])
