"""A process that ends with work in its queues: the work is done, or what stopped it is said."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest

QUEUED = """
import atexit
held = []
atexit.register(lambda: print("done:", held[0].executed > 0))  # after tinyhw, which registers later, has closed
from tinyhw import Device, Tensor
device = {device!r}
runtime = Device[device].runtime
held.append(runtime.port.machine)
(Tensor.ones(1 << 12, device=device).contiguous() + 1).realize()
assert held[0].executed == 0 and runtime.timeline.signal.value < runtime.timeline.last
print("leaving")
"""
FAULT = """
from tinyhw import Device
runtime = Device["NV"].runtime
text = b'''.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .u64 %rd;
  ld.param.u64 %rd, [p];
  st.global.u32 [%rd+1048576000], 3;
  ret;
}'''
runtime.load(text, "k")([runtime.alloc(64)], (), (1, 1, 1), (1, 1, 1))
"""


def ended(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
  """A process that has run the code and ended."""
  return subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=120,
                        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MOCKGPU": "gfx1100,sm_90",
                             **environment})


@pytest.mark.parametrize(("device", "engine"), [("AMD", "auto"), ("NV", "auto"), ("NV", "jit")])
def test_queued_work_is_done(device: str, engine: str) -> None:
  done = ended(QUEUED.format(device=device), EMU=engine, TINYHW_CACHE="0")
  assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\ndone: True\n", "")


def test_a_fault_in_it_is_said() -> None:
  done = ended(FAULT)
  assert done.returncode == 0
  assert "NV was closed before its work was done: " in done.stderr
  assert "page fault: write of 4 bytes" in done.stderr and "in kernel k" in done.stderr
