"""What a capture submitted gives the same again; what differs is named at the submission that made it."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.queues.conftest import MACHINES, record
from tinyhw.core.errors import DeviceError
from tinyhw.queues.capture import Capture
from tinyhw.queues.replay import Done, Replay
from tinyhw.replayed import machine_for

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
  for n in range(5): step(Tensor.full((4, 16), float(n)).contiguous().realize()).item()
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
  start = [sys.executable, "-c", "from tinyhw.cli import main; main()", "replay", str(captured)]
  done = subprocess.run([*start, "--dump", "2", "--to", str(tmp_path / "d")], capture_output=True, text=True)
  assert done.returncode == 0 and "all as captured" in done.stdout, done.stdout + done.stderr
  assert len(list((tmp_path / "d").iterdir())) >= 3
