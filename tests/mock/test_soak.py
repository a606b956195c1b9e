"""A process that goes on for long stays as large as it was: the soak (tools/soak.py) in small, counted."""
from __future__ import annotations

import pytest

from tests import apart
from tinyhw.tools.soak import MOST, OPERATIONS, Sample, measured, slopes

COUNTED = """
import sys
from tinyhw.tools.soak import OPERATIONS, Soak, census
soak = Soak(sys.argv[1], keep=sys.argv[2] == "keep")
def rounds(n):
  for _ in range(n):
    for name in OPERATIONS: soak.do(name)
  assert not soak.wrong, soak.wrong[0]
  soak.settle()
  return census()
rounds(1)                             # what is made once
first, second = rounds(1), rounds(2)
left = {name: (first[name], n) for name, n in second.items() if n != first[name]}
assert not left, left
"""


@pytest.mark.parametrize("machine", ["keep", "renew"])
@pytest.mark.parametrize("device", ["AMD", "NV", "CUDA"])
def test_nothing_is_left_of_what_is_done_again(device: str, machine: str) -> None:
  """Objects of drivers and mocks, mappings, files and threads after some rounds are those after three times as many."""
  environment = {"MOCKGPU_WATCHDOG": str(10 ** 15), "MOCKGPU": "gfx1100" if device == "AMD" else "sm_90",
                 "EMU": "ref"}  # when a compiler is started, and has its pipes, is a matter of time
  apart.well(apart.run(["-c", COUNTED, device, machine], environment, 300))


@pytest.mark.parametrize(("grows", "an_hour"), [("files", 100.0), ("resident KiB", 1e6), ("mappings", 0.0)])
def test_what_grows_is_seen_behind_the_warm_up(grows: str, an_hour: float) -> None:
  samples = [Sample(t, t, {name: 1e6 + 1000 * min(t, 500) + (an_hour * t / 3600 if name == grows else 0)
                           for name in MOST}) for t in range(0, 3601, 10)]
  found = slopes(samples)
  assert found.keys() == MOST.keys() == measured().keys()
  assert all(abs(value - (an_hour if name == grows else 0)) < 1e-3 for name, value in found.items())
  assert (found[grows] > MOST[grows]) == bool(an_hour)


def test_the_command_says_what_it_found() -> None:
  done = apart.run(["-m", "tinyhw.tools.soak", "--device", "NV", "--rounds", "8", "--every", "2", "--json"], {}, 300)
  assert '"rounds": 8' in done.stdout and '"wrong": []' in done.stdout, done.stderr[-3000:]
  assert done.returncode in (0, 1) and "an hour has" in done.stderr


def test_every_operation_is_drawn() -> None: assert all(weight > 0 for weight in OPERATIONS.values())
