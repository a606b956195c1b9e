"""What a capture submitted gives the same again; what differs is named at the submission that made it."""
from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests import command
from tests.queues.conftest import MACHINES, record
from tinyhw.autogen import kfd, nv_rm_status, nv_uvm
from tinyhw.core.errors import DeviceError
from tinyhw.queues.capture import Capture
from tinyhw.queues.moved import Moves
from tinyhw.queues.replay import Done, Replay
from tinyhw.queues.world import Allocation
from tinyhw.toolbox.replay import machine_for

TRAINING = """
import os
from tinyhw import Tensor, TinyJit, nn
Tensor.manual_seed(3)
net = nn.Linear(16, 8)
optimizer = nn.optim.Adam(nn.state.get_parameters(net), lr=0.01)
@TinyJit
def step(x):
  optimizer.zero_grad()
  loss = net(x).relu().mean()
  loss.backward()
  optimizer.step()
  return loss.realize()
with Tensor.train():
  for n in range(10):  # some are queued while the device is behind
    loss = step(Tensor.full((4, 16), float(n)).contiguous().realize())
    if n % 4 == 0: loss.item()
  loss.item()
"""
TWO_CARDS = """
import os
from tinyhw import Tensor
kind = os.environ["DEV"]
a = Tensor([1.0, 2.0, 3.0], device=kind) + 1
b = a.to(f"{kind}:1") * 2
assert b.tolist() == [4.0, 6.0, 8.0]
"""


def replayed(path: Path, until: int | None = None) -> list[Done]:
  capture = Capture(path)
  ports, looks, machines = machine_for(capture, None)
  try: return list(Replay(capture, ports, look=looks).run(until))
  finally:
    for machine in machines: machine.close()


def test_a_replay_leaves_behind_what_the_program_did(captured: Path) -> None:
  done = replayed(captured)
  assert len(done) >= 5 and sum(d.compared for d in done) >= 10
  assert not [str(x) for d in done for x in d.differences] and not done[-1].open


@pytest.mark.parametrize("device", MACHINES)
@pytest.mark.parametrize(("program", "cards"), [(TRAINING, 1), (TWO_CARDS, 2)], ids=["training", "two cards"])
def test_programs_that_replay(device: str, program: str, cards: int, tmp_path: Path) -> None:
  path = tmp_path / "run.thq"
  done = record(path, device, program, MOCKGPU=",".join([MACHINES[device]] * cards))
  assert done.returncode == 0, done.stderr
  again = replayed(path)
  assert not [str(x) for d in again for x in d.differences] and sum(d.compared for d in again) >= 10


class Taken:
  """A port of a machine where somebody has the addresses of each third buffer."""

  def __init__(self, port: Any) -> None: self._port, self._taken, self._made, self._refused = port, set[int](), 0, False
  def __getattr__(self, name: str) -> Any: return getattr(self._port, name)

  def ioctl(self, fd: int, request: int, argument: Any) -> int:
    if request == nv_uvm.UVM_CREATE_EXTERNAL_RANGE:
      self._refused = not self._refused and self._made % 3 == 0  # who asks again asks for others
      self._made += not self._refused
      if self._refused:
        argument.rmStatus = nv_rm_status.NV_ERR_UVM_ADDRESS_IN_USE
        return 0
    if request == kfd.AMDKFD_IOC_MAP_MEMORY_TO_GPU and argument.handle in self._taken: raise OSError(errno.EINVAL, "")
    result: int = self._port.ioctl(fd, request, argument)
    if request == kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU and argument.va_addr < 1 << 47:
      self._made += 1
      if self._made % 3 == 1: self._taken.add(argument.handle)
    elif request == kfd.AMDKFD_IOC_FREE_MEMORY_OF_GPU:
      self._taken.discard(argument.handle)
      self._made = self._made // 3 * 3 + 1  # what comes in its place is free
    return result


@pytest.mark.parametrize("taken", [False, True], ids=["all moved", "some taken"])
def test_memory_that_lies_elsewhere(captured: Path, taken: bool) -> None:
  """Packets, arguments and calls name memory where it is; what only may be an address is told."""
  capture = Capture(captured)
  ports, looks, machines = machine_for(capture, None)
  if taken: ports = {vendor: Taken(port) for vendor, port in ports.items()}
  replay = Replay(capture, ports, look=looks, moving=not taken)
  try:
    done, moved = [], 0
    for one in replay.run():
      done.append(one)
      moved = max([moved, *(len(a.moves.ranges()) for a in replay.agains.values())])
  finally:
    for machine in machines: machine.close()
  assert not [str(x) for d in done for x in d.differences] and sum(d.compared for d in done) >= 10 and not replay.unsure
  assert moved >= 5 and not done[-1].open


def test_a_number_that_may_be_an_address_is_told() -> None:
  capture: Any = SimpleNamespace(programs=[], memories={"amd": SimpleNamespace(read=lambda *where: None)})
  replay = Replay(capture, {})
  made = Allocation(3, 0x7000, 64, "GTT", 0, 0)
  again: Any = SimpleNamespace(moves=Moves(), world=SimpleNamespace(find=lambda at: "VRAM buffer 5"))
  again.moves.add(0x5000_0000, 4096, 0x6000_0000)
  content = np.array([1, 0x5000_0010, 0x5000_1000], np.uint64).view(np.uint8)
  replay._look_for("amd", made, 0, content, again)
  told, = replay.unsure
  assert told.startswith("GTT buffer 3 [0x8] has 0x50000010, in VRAM buffer 5: nothing says that it is an address")


def test_it_stops_where_it_is_told(captured: Path) -> None:
  assert [d.step.submission for d in replayed(captured, 2)] == [0, 1, 2]


def test_a_byte_that_differs_is_named_where_it_first_shows(captured: Path) -> None:
  """The device of the replay does one thing wrong: a byte of a result, behind one submission."""
  capture = Capture(captured)
  last = [s.submission for s in capture if s.follow is not None and s.follow.launches][-1]
  capture = Capture(captured)
  ports, looks, machines = machine_for(capture, None)
  vendor, = looks
  spoilt: list[int] = []
  replay = Replay(capture, ports, look=looks)

  def look(place: int, address: int, size: int, inner: Any = looks[vendor]) -> Any:
    view = inner(place, address, size)
    if view is None or not spoilt: return view
    copy = bytearray(view)
    copy[5] ^= 1
    return memoryview(copy)

  replay._look = {vendor: look}
  found = []
  for done in replay.run():
    found += [done.step.submission for _ in done.differences]
    if done.step.submission == last - 1: spoilt.append(1)
  for machine in machines: machine.close()
  assert found and min(found) >= last


def test_a_machine_of_another_vendor_is_told(captured: Path) -> None:
  with pytest.raises(DeviceError, match="no port to such a device"): list(Replay(Capture(captured), {}).run())


def test_the_command_replays_and_dumps(captured: Path, tmp_path: Path) -> None:
  done = command.tinyhw("replay", str(captured), "--dump", "2", "--to", str(tmp_path / "d"))
  assert done.returncode == 0 and "all as captured" in done.stdout, done.stdout + done.stderr
  assert len(list((tmp_path / "d").iterdir())) >= 3
