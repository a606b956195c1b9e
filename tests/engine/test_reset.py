"""One card gets on after a fault, a hang or an interrupt; nothing else is touched. Each story in its own process."""
from __future__ import annotations

import pytest

from tests.engine.test_closed import run_apart

SETUP = """
from tinyhw.drive.base import Allocation
other = "AMD" if NAME == "AMD:1" else "AMD:1"
def go_wrong():
  '''A kernel of the device reads memory that is not there.'''
  kernel = next(k for k in Device[NAME].kernels.values() if k.spec.grid)
  bad = [Allocation(0x7000_0000_0000, 8)] * len(kernel.spec.buffer_order)
  kernel.program(bad, [], kernel.spec.grid, kernel.spec.block)
  return refused(Device[NAME].synchronize, by=DeviceError)
there = (Tensor([5.0], device=other) + 1).realize()
hosts = [Tensor([3.0], device=d).realize() for d in ("LLVM", "PYTHON")]
def untouched():
  assert there.tolist() == [6] and (there * 2).tolist() == [12]
  assert all((h + 1).tolist() == [4] for h in hosts)
"""

FAULT = SETUP + """
for again in range(3):
  x = Tensor([1.0, 2.0], device=NAME)
  y, pending, crossed = (x * 2).realize(), x + 5, (there.to(NAME) + 1).realize()
  assert crossed.tolist() == [7] and y.to(other).tolist() == [2, 4]
  old = Device[NAME]
  text = go_wrong()
  first, *facts = text.splitlines()
  assert f"Device[{NAME!r}].reset()" in first and "new process" in first and "page fault: read" in first, text
  assert len(facts) == 2 and all("page fault" in f for f in facts), text
  assert first in refused(Device[NAME].synchronize, by=DeviceError)
  new = Device[NAME].reset()
  assert new is Device[NAME] and new is not old and "reset" in refused(old.alloc, 8, by=DeviceError)
  assert old.reset() is Device[NAME]
  for t in (x, y, pending, x.T, crossed):
    try: found = t.tolist()
    except ValueLost as error: assert str(error).startswith(NAME + ": ") and "device was reset" in str(error), error
    else: raise SystemExit(f"{found}")
  assert (Tensor([1.0, 2.0], device=NAME) + 3).tolist() == [4, 5]
  assert (there.to(NAME) + 1).tolist() == [7]
  untouched()
"""


@pytest.mark.parametrize("device", ["AMD", "AMD:1"])
def test_a_card_is_reset_after_a_fault(device: str) -> None: run_apart(FAULT, device)


CLOSED = SETUP + """
x = (Tensor([1.0, 2.0], device=NAME) + 1).realize()
go_wrong()
Device[NAME].close()          # instead of reset()
lost(x.tolist)
assert (Tensor([1.0, 2.0], device=NAME) + 3).tolist() == [4, 5]
untouched()
Device[NAME].close()
assert (Tensor([1.0, 2.0], device=NAME) + 3).tolist() == [4, 5]
untouched()
"""


def test_a_lost_card_is_closed_and_opened() -> None: run_apart(CLOSED, "AMD:1")


UNHEARD = SETUP + """
(Tensor([1.0], device=NAME) + 1).realize()
kernel = next(iter(Device[NAME].kernels.values()))
bad = [Allocation(0x7000_0000_0000, 8)] * len(kernel.spec.buffer_order)
kernel.program(bad, [], kernel.spec.grid, kernel.spec.block)
there.to(NAME)                # queued, and never run
Device[NAME].reset()          # nobody has waited
assert (Tensor([1.0, 2.0], device=NAME) + 3).tolist() == [4, 5]
untouched()
hang = Device[NAME].runtime
hang.timeout_s = 0.1
hang.wait_for(hang.new_signal(), 1)
kept = Tensor([1.0, 2.0], device=NAME)
assert "no progress" in refused(kept.tolist, by=DeviceError)
device = Device[NAME]
assert device.reset() is device   # no kernel driver has taken it away
assert (kept + 1).shape == (2,) and (Tensor([1.0, 2.0], device=NAME) + 3).tolist() == [4, 5]
for name in ("LLVM", "PYTHON"): assert Device[name].reset() is Device[name]
assert Device.reset("AMD:1") is Device["AMD:1"]
untouched()
"""


def test_a_reset_drops_what_is_queued() -> None: run_apart(UNHEARD, "AMD:1")


MEMORY = SETUP + """
machine = Device._machine
def files():
  for fd in os.listdir("/proc/self/fd"):
    try: yield os.readlink("/proc/self/fd/" + fd)
    except OSError: pass
def state():
  cards = [(g.vram_allocator.free_bytes, len(g.sdma_used)) for g in machine.gpus]
  return cards, len(machine.queues), machine.system_allocator.free_bytes, sorted(f for f in files() if "memfd" in f)
def used(): return (Tensor.arange(1000, device=NAME).contiguous() + 1).realize()
used()
go_wrong()
Device[NAME].reset()
used()
before = state()
for _ in range(5):
  kept = [used() for _ in range(5)]
  go_wrong()
  Device[NAME].reset()
  used()
assert state() == before, (state(), before)
untouched()
"""


@pytest.mark.parametrize("device", ["AMD", "AMD:1"])
def test_a_reset_gives_all_memory_back(device: str) -> None: run_apart(MEMORY, device)
