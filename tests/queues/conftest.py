"""Captures of small programs on the mocks, made once a session."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests import command
from tests.queues.planted import PROGRAM as PLANTED

PROGRAM = """
from tinyhw import Tensor
a = Tensor([1.0, 2.0, 3.0]) + 1
assert a.tolist() == [2.0, 3.0, 4.0]
b = Tensor.rand(64, 64)
(b @ b).sum().item()
"""
MACHINES = {"AMD": "gfx1100", "NV": "sm_90"}


def record(path: Path, device: str, program: str = PROGRAM, **more: str) -> subprocess.CompletedProcess[str]:
  """Run a program whose devices are recorded."""
  environment = {**os.environ, "RECORD": str(path), "DEV": device, "MOCKGPU": MACHINES[device], **more}
  return command.python(program, env=environment)


@pytest.fixture(scope="session", params=MACHINES)
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
  """A capture of PROGRAM on one vendor's mock."""
  path = tmp_path_factory.mktemp("captures") / f"{request.param}.thq"
  done = record(path, request.param)
  assert done.returncode == 0, done.stderr
  return path


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
  """A capture of `planted.PROGRAM` on two cards of each vendor."""
  found = {}
  for device, card in MACHINES.items():
    path = found[device] = tmp_path_factory.mktemp("unbroken") / f"{device}.thq"
    done = record(path, device, PLANTED, MOCKGPU=f"{card},{card}")
    assert done.returncode == 0, done.stderr
  return found
