"""The doctor names who stands, who should have written, and what faulted; it reads any kernel's log."""
from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest

from tests import command
from tests.queues.conftest import MACHINES, record
from tests.queues.planted import Stream
from tests.queues.planted_aql import BUGS
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import nv_rm_status
from tinyhw.queues import kernellog
from tinyhw.queues.capture import Capture
from tinyhw.queues.doctor import examine, history
from tinyhw.queues.effects import Does

HANG = """
import os
from tinyhw import Device, Tensor
from tinyhw.core.errors import WaitTimeout
name = os.environ["DEV"]
x = (Tensor([1.0, 2.0]) + 1).realize()
runtime = Device[name].runtime
ready = runtime.new_signal()
runtime.wait_for(ready, 3)
ready.value = 2
print(hex(ready.address))
try: (x * 2).tolist()
except WaitTimeout as error: print(error)
"""
FAULT = """
import os
from tinyhw import Device, Tensor
from tinyhw.core.errors import DeviceError
from tinyhw.drive.base import Allocation
name = os.environ["DEV"]
(Tensor([1.0, 2.0]) + 1).tolist()
kernel = next(k for k in Device[name].kernels.values() if k.spec.grid)
kernel.program([Allocation(0x7000_0000_0000, 8)] * 2, [], kernel.spec.grid, kernel.spec.block)
try: Device[name].synchronize()
except DeviceError: pass
else: raise SystemExit("no fault")
"""


@pytest.mark.parametrize("device", MACHINES)
def test_a_wait_that_the_host_should_end(device: str, tmp_path: Path) -> None:
  """Offline, and in the error that the program gets."""
  done = record(tmp_path / "hang.thq", device, HANG, TINYHW_TIMEOUT_S="1")
  assert done.returncode == 0, done.stderr
  address, *error = done.stdout.splitlines()
  report = examine(Capture(tmp_path / "hang.thq"))
  assert report.verdict.endswith("waits for a value that nobody writes") and not report.cycle and report.ill
  mine = next(e for e in report.edges if e.what == address)
  assert not mine.writer and "it is 0x2" in mine.why and "nothing that was submitted writes there" in mine.why
  others = [e for e in report.edges if e is not mine]
  assert others and all(e.writer == mine.who for e in others)  # the copy waits for the queue that waits for the host
  assert any(f.rule.name == "wait" and f.places[-1].queue == mine.who for f in report.findings)
  assert {f.rule.name for f in report.findings} == {"wait"}
  assert any(line.startswith("->") for head, lines in report.sections if mine.who in head for line in lines)
  live = [line.strip() for line in error]
  assert any(line.startswith("doctor: ") and "nobody writes" in line for line in live), done.stdout
  assert any(address in line and "a signal" in line and "it is 0x2" in line for line in live), done.stdout


@pytest.mark.parametrize("device", MACHINES)
def test_a_fault_has_its_address_and_its_kernel(device: str, tmp_path: Path) -> None:
  done = record(tmp_path / "fault.thq", device, FAULT, TINYHW_TIMEOUT_S="2")
  assert done.returncode == 0, done.stdout + done.stderr
  report = examine(Capture(tmp_path / "fault.thq"))
  sections = dict(report.sections)
  assert "0x700000000000" in report.verdict and "a GPU faulted" in report.verdict
  assert "no memory of the process was ever there" in " ".join(sections["faults"])
  assert any("kernel e_2_" in line for line in sections["was running"])
  assert any(f.rule.name == "argument" and "0x700000000000" in f.missing for f in report.findings)


@pytest.mark.parametrize("vendor", MACHINES)
def test_a_circle_is_named(vendor: str, unbroken: dict[str, Path], tmp_path: Path) -> None:
  stream = Stream(unbroken[vendor])
  next(b for b in BUGS if b.vendor == vendor and "wait for each other" in b.name).edit(stream)
  report = examine(Capture(stream.save(tmp_path / "circle.thq")))
  assert len(report.cycle) == 2 and report.verdict.startswith("a circle: ")
  assert {e.who for e in report.edges} >= set(report.cycle)


@pytest.mark.parametrize("vendor", MACHINES)
def test_right_programs_are_well(vendor: str, unbroken: dict[str, Path]) -> None:
  report = examine(Capture(unbroken[vendor]))
  assert not report.ill and report.verdict == "nothing stands" and report.sections == []


@pytest.mark.parametrize("vendor", MACHINES)
def test_an_address_has_a_history(vendor: str, unbroken: dict[str, Path]) -> None:
  """Every address that a copy ever named, looked at from the end, when all memory was given back."""
  capture, named = Capture(unbroken[vendor]), set()
  for step in capture:
    if step.follow is not None:
      named |= {e.address for i in step.follow.items for e in i.effects if e.does in (Does.READ, Does.WRITE)}
  world = capture.world({"AMD": "amd", "NV": "nv"}[vendor])
  assert len(named) > 10
  for address in named: assert any("given back at event" in line for line in history(world, address))
  assert list(history(world, 0x1234)) == ["no memory of the process was ever there"]


def test_the_scheduler_is_dead() -> None:
  """legacy-rocm-build#6630: idle rings, a busy GPU, and firmware that does not answer."""
  log = "\n".join([
    "[ 51.4] amdgpu 0000:04:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE",
    "[ 51.4] amdgpu 0000:04:00.0: amdgpu: failed to remove hardware queue from MES, doorbell=0x1802",
    "[ 51.4] amdgpu 0000:04:00.0: amdgpu: GPU reset begin!",
    "[ 61.8] amdgpu 0000:04:00.0: amdgpu: GPU reset end with ret = -62",
    "gpu_busy_percent: 100", "--- ring 0 (gfx_0.0.0) ---", "Last signaled fence          0x00000a41",
    "Last emitted                 0x00000a41"])
  events = list(kernellog.read(log))
  assert [e.kind for e in events] == ["scheduler", "queue stays", "reset", "reset failed", "rings"]
  verdict = kernellog.verdict(events)
  assert "rings are idle" in verdict and "GPU is busy" in verdict and "scheduler is dead" in verdict
  behind = log.replace("signaled fence          0x00000a41", "signaled fence          0x00000a40")
  assert "scheduler is dead" not in kernellog.verdict(list(kernellog.read(behind)))


def test_a_page_fault_is_decoded() -> None:
  status = gc.GCVM_L2_PROTECTION_FAULT_STATUS(MORE_FAULTS=1, PERMISSION_FAULTS=3, CID=8, RW=1, VMID=8).value()
  log = ("amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770)\n"
         "amdgpu 0000:03:00.0: amdgpu:   in page starting at address 0x00007f3a00000000 from client 10\n"
         f"amdgpu 0000:03:00.0: amdgpu: GCVM_L2_PROTECTION_FAULT_STATUS:0x{status:08X}\n"
         "[drm:amdgpu_job_timedout] *ERROR* ring sdma0 timeout, signaled seq=27, emitted seq=29\n")
  fault, address, register, ring = kernellog.read(log)
  assert fault.fields["vmid"] == 8 and address.fields["address"] == 0x7f3a00000000
  assert register.fields["PERMISSION_FAULTS"] == 3 and any("a write by client 0x8" in m for m in register.means)
  assert ring.fields == {"ring": "sdma0", "signaled": 27, "emitted": 29}


@pytest.mark.parametrize("number", sorted(nv_rm_status.ERRORS))
def test_every_xid_has_rms_name(number: int) -> None:
  (event,) = kernellog.read(f"NVRM: Xid (PCI:0000:0a:00): {number}, pid=1, name=x, Ch 00000010")
  assert event.fields["xid"] == number and event.fields["name"] == nv_rm_status.ERRORS[number]
  assert event.fields["channel"] == 0x10


def test_an_mmu_fault_of_nvidia() -> None:
  (event,) = kernellog.read("NVRM: Xid (PCI:0000:0a:00): 31, pid=13, name=x, Ch 00000010, intr 00000000. MMU Fault: "
                            "ENGINE CE2 HUBCLIENT_CE0 faulted @ 0x7f29_5b8c9000. Fault is of type FAULT_PDE "
                            "ACCESS_TYPE_VIRT_READ")
  assert event.fields["address"] == 0x7f295b8c9000 and event.fields["engine"] == "CE2"
  assert event.means[-1] == "a read of 0x7f295b8c9000 by CE2: no page table there"


def test_any_text_is_read() -> None:
  """Mutated logs: no crash, and every line that is told was there."""
  rng, base = random.Random(5), (
    "amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770)\n"
    "in page starting at address 0x7f00 from client 10\nGCVM_L2_PROTECTION_FAULT_STATUS:0xFFFFFFFF\n"
    "ring gfx timeout, signaled seq=1, emitted seq=2\n--- ring 0 (gfx) ---\n"
    "Last signaled fence 0x1\nNVRM: Xid (PCI:0000:0a:00): 31, Ch 00000010, faulted @ 0x1_0. Fault is of type X Y\n")
  for _ in range(2000):
    text = bytearray(base.encode())
    for _ in range(rng.randrange(1, 9)): text[rng.randrange(len(text))] = rng.randrange(256)
    lines = text.decode("utf-8", "replace")
    events = list(kernellog.read(lines))
    assert kernellog.verdict(events) and all(e.lines() and json.dumps(e.row()) for e in events)


def test_the_command(tmp_path: Path, unbroken: dict[str, Path]) -> None:
  def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    return command.tinyhw("doctor", *arguments)
  (tmp_path / "log.txt").write_text("NVRM: Xid (PCI:0000:0a:00): 79, pid=1\n")
  (tmp_path / "other.txt").write_text("hello\n")
  told = doctor(str(tmp_path / "log.txt"), "--json")
  assert told.returncode == 0 and json.loads(told.stdout)["events"][0]["fields"]["xid"] == 79
  for arguments, line in ((["other.txt"], "neither a capture nor a log"), (["gone.thq"], "cannot be opened")):
    done = doctor(*(str(tmp_path / a) for a in arguments))
    assert done.returncode == 1 and line in done.stderr and len(done.stderr.splitlines()) == 1
  well = doctor(str(unbroken["AMD"]), "--json")
  assert well.returncode == 0 and json.loads(well.stdout)["verdict"] == "nothing stands"
