"""What `tinyhw run` may be asked of the cards of other processes: order, weak memory, faults, a capture."""
from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests import command
from tests.mock.clients.running import OURS, REFUSED, ROOT
from tinyhw.core.errors import InvalidArgument
from tinyhw.mock.injected import Fault, Injected
from tinyhw.queues.capture import Capture
from tinyhw.queues.events import Ioctl, Open
from tinyhw.queues.replay import Replay
from tinyhw.toolbox.replay import machine_for

FORGOTTEN = """
from tinyhw import Tensor
from tinyhw.drive.amd.commands import ComputeCommands
ComputeCommands.memory_barrier = lambda self: self
x = Tensor([1.0, 2.0, 3.0])
for _ in range(8): x = (x * 2).realize()
print(x.tolist() == [256, 512, 768])
"""


def asked(*options: str, program: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
  """A program of this project's own driver on one card, with options of `tinyhw run`."""
  kept = {k: v for k, v in os.environ.items() if k not in OURS}
  done = command.tinyhw("run", "--mockgpu", "gfx1100", *options, "--", sys.executable, "-c", program, timeout=100,
                        env={**kept, "PYTHONPATH": str(ROOT), "DEV": "AMD", **environment})
  if REFUSED in done.stderr: pytest.skip(done.stderr.splitlines()[0])
  return done


def test_a_capture_of_weak_memory(tmp_path: Path) -> None:
  """A driver that forgets its barriers: wrong values, named accesses, and all that it submitted in a file."""
  path = tmp_path / "run.thq"
  done = asked("--memory", "weak", "--seed", "4", "--record", str(path), program=FORGOTTEN)
  assert done.stdout == "False\n" and not done.returncode, done.stderr
  assert "stale memory: dispatch" in done.stderr and "missing: " in done.stderr
  capture = Capture(path)
  steps = list(capture)
  names = {str(step.follow.queue) for step in steps if step.follow is not None}
  assert names == {"GPU0.PM4.0", "GPU0.SDMA.1"}, names
  assert sum(len(step.follow.launches) for step in steps if step.follow is not None) == 8
  events = [step.event for step in steps]
  assert {e.path for e in events if isinstance(e, Open)} == {"/dev/kfd", "/dev/dri/renderD128"}
  assert all(e.after for e in events if isinstance(e, Ioctl) and not e.errno)
  assert f"{path}: " in done.stderr and " calls, " in done.stderr


REPLAYED = """
from tinyhw import Tensor
x = Tensor([1.0, 2.0, 3.0])
for _ in range(8): x = (x * 2).realize()
print(x.tolist())
"""


def test_a_capture_replays(tmp_path: Path) -> None:
  """Memory that no call has told to be mapped, and events whose mailboxes the kernel driver takes back; the result is
  there at the end."""
  path = tmp_path / "run.thq"
  done = asked("--record", str(path), program=REPLAYED)
  assert done.stdout == "[256.0, 512.0, 768.0]\n" and not done.returncode, done.stderr
  capture = Capture(path)
  assert capture.head["mockgpu"] == "gfx1100"
  ports, looks, machines = machine_for(capture, None)
  replay = Replay(capture, ports, look=looks)
  wanted, launches, found = struct.pack("<3f", 256, 512, 768), 0, False
  for row in replay.run():
    assert row.step.follow is not None and not row.open
    launches += len(row.step.follow.launches)
    world = replay.agains["amd"].world
    found = found or any(wanted in (replay.memory("amd", a.address, a.size) or b"") for a in world.living()
                         if a.kind in ("VRAM", "GTT") and a.size <= 1 << 24)
  for machine in machines: machine.close()
  assert launches == 8 and found


FAULTS = """
[[fault]]
kind = "ioctl"
name = "AMDKFD_IOC_CREATE_QUEUE"
errno = "ENOMEM"
[[fault]]
kind = "page fault"
nth = 2
address = 4096
"""

FAULTY = """
import os
from tinyhw import Device, Tensor
from tinyhw.core.errors import Error
print(sorted(name for name in os.environ if name.startswith("MOCKGPU")))
try: Device["AMD"]
except Error as error: print(str(error)[:60])
try: (Tensor([1]) + 1).tolist()
except Error as error: print(str(error)[:36])
"""


def test_faults_that_are_declared(tmp_path: Path) -> None:
  """What the environment says of cards is the host's."""
  (tmp_path / "faults.toml").write_text(FAULTS)
  done = asked("--fault", str(tmp_path / "faults.toml"), program=FAULTY, MOCKGPU_SEED="3", MOCKGPU="gfx1100")
  lines = done.stdout.splitlines()
  assert lines[0] == "[]" and lines[1].startswith("AMDKFD_IOC_CREATE_QUEUE failed: Cannot allocate memory"), done.stderr
  assert lines[2] == "AMD: GPU page fault: read at 0x1000 ", lines


@pytest.mark.parametrize("fault", (Fault("sigbus"), Fault("ioctl", name="mmap")))
def test_mappings_are_the_kernel_s(fault: Fault) -> None:
  Injected([fault]).refuse("an AMD card")
  with pytest.raises(InvalidArgument, match="a program in another process has no"):
    Injected([fault]).refuse("an AMD card of a program in another process")
