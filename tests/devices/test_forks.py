"""Nothing that ends in a process takes down what another one owns: children that fork makes, drawn, on every device.

A story is a process of its own. It has tensors on a device, threads amid launches where that is drawn, and forks
children that do something and end somehow. After each the parent's memory, its next kernel and its threads are as they
were, and the child has ended with the code and the words that it ought to.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests import apart
from tests.strength import examples

STORY = r"""
import json, os, sys, tempfile, threading, time
import numpy as np
from tinyhw import Device, Tensor
from tinyhw.core.errors import DeviceError, ValueLost

NAME, steps, own = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3] == "own"
COMPUTES = "LLVM" if NAME.startswith("DISK") else NAME
N = 1 << 13  # whole pages
stop, errors = threading.Event(), []

def made(k):
  # memory with N + k, N + k + 1, ..., which a kernel has made
  x = (Tensor(np.arange(N, dtype=np.int32), device=COMPUTES) + (N + k)).realize()
  return x.to(f"{NAME}{k}").realize() if NAME != COMPUTES else x  # a file is one memory

def right(x, k):
  want = np.arange(N, dtype=np.int32) + N + k
  assert np.array_equal(x.numpy(), want), ("memory", k, x.numpy(), want)
  assert np.array_equal((x.to(COMPUTES) * 2).numpy(), want * 2), ("kernel", k)

def work(k): right(made(k), k)

def busy(k):
  try:
    while not stop.is_set(): work(k)
  except BaseException as error: errors.append(error)

def refused(what, by):
  try: what()
  except by as error: return str(error)
  raise AssertionError("it was not refused")

def does(what, x, k):
  if what == "close": Device.close()
  elif what == "close its own": Device[x.device].close()
  elif what == "close and work":
    Device.close()
    if NAME == COMPUTES: refused(x.numpy, ValueLost)
    work(k + 50)
    Device.close()
    work(k + 60)
  elif what == "work":
    if own: right(x, k), work(k + 50)
    else: assert "fork" in (said := refused(x.numpy, DeviceError)) or "NOT_INITIALIZED" in said, said
  elif what == "reset": refused(lambda: (Device.reset(x.device), 1 / 0), (ZeroDivisionError, DeviceError))
  elif what == "synchronize": refused(lambda: (Device.synchronize(), 1 / 0), (ZeroDivisionError, DeviceError))
  else: assert what == "nothing", what

def ends(how):
  if how == "exit": sys.exit(0)
  if how == "exit 3": sys.exit(3)
  if how == "_exit": os._exit(0)
  if how == "raise": raise RuntimeError("the child's own")

class Child(Exception): pass

def fork(whats, how, x, k):
  # a child that does the first of these, and has a child that does the others
  words = tempfile.TemporaryFile()
  sys.stdout.flush(), sys.stderr.flush()
  pid = os.fork()
  if not pid:
    os.dup2(words.fileno(), 2)
    does(whats[0], x, k)
    if whats[1:]: fork(whats[1:], how, x, k)
    ends(how)
    raise Child  # falls off the end
  end = time.monotonic() + 150
  while not (done := os.waitpid(pid, os.WNOHANG))[0]:
    if time.monotonic() > end: os.kill(pid, 6)  # shows where it stands
    time.sleep(0.005)
  words.seek(0)
  said, status = words.read().decode(), os.waitstatus_to_exitcode(done[1])
  wanted = {"exit 3": 3, "raise": 1}.get(how, 0)
  assert status == wanted, (whats, how, status, said)
  if how == "raise": assert said.count("Traceback") == 1 and said.endswith("RuntimeError: the child's own\n"), said
  else: assert not said, (whats, how, said)

def story():
  kept = [(made(k), k) for k in range(2)]
  for x, k in kept: right(x, k)
  threads = []
  for at, (whats, how, crowd) in enumerate(steps):
    while len(threads) < crowd:
      threads.append(threading.Thread(target=busy, args=(100 * len(threads) + 100,)))
      threads[-1].start()
    fork(whats, how, *kept[at % 2])
    for x, k in kept: right(x, k)
    assert not errors, errors
  stop.set()
  for t in threads: t.join()
  assert not errors, errors
  for x, k in kept: right(x, k)
  print("well")

try: story()
except Child: pass
finally: stop.set()
"""
WHATS = ("nothing", "close", "close its own", "close and work", "work", "reset", "synchronize")
HOWS = ("end", "exit", "exit 3", "_exit", "raise")
Step = tuple[list[str], str, int]
STEPS = st.lists(st.tuples(st.lists(st.sampled_from(WHATS), min_size=1, max_size=3), st.sampled_from(HOWS),
                           st.integers(0, 2)), min_size=1, max_size=examples(1) + 1)
PLAIN: list[Step] = [(["nothing"], "exit", 0), (["close"], "end", 0), (["close and work"], "_exit", 0),
                     (["work"], "exit", 0), (["nothing", "close and work"], "end", 0), (["reset"], "raise", 0)]
CROWDED: list[Step] = [(["nothing"], "exit", 2), (["close"], "end", 2), (["work"], "_exit", 2)]
DEVICES = ("LLVM", "C", "PYTHON", "DISK", "AMD", "AMD weak", "NV", "CUDA", "CL")


def tell(device: str, steps: list[Step], folder: Path) -> None:
  """Run a story; it must end well, and say nothing."""
  own = device in ("LLVM", "C", "PYTHON", "DISK")
  name, _, memory = device.partition(" ")
  environment = {"MOCKGPU": "gfx1100,sm_90", "PYTHONFAULTHANDLER": "1", "DEV": "LLVM", "MOCKGPU_MEMORY": memory}
  words = [f"DISK:{folder / 'file'}" if name == "DISK" else name, json.dumps(steps), "own" if own else "lent"]
  fresh = steps == CROWDED and device in ("LLVM", "AMD")  # threads import what the child uses
  done = apart.run(["-c", STORY, *words], environment, 300, fresh)
  assert (apart.well(done), done.stderr) == ("well\n", ""), words


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Any:
  """Each device that this machine has."""
  from tinyhw import Device  # it opens what a test asks for
  from tinyhw.core.errors import Error
  if request.param in ("C", "CL"):
    try: Device[request.param].close()
    except Error as error: pytest.skip(str(error).partition("\n")[0])
  return request.param


@settings(max_examples=examples(1), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(STEPS)
@example(PLAIN)
@example(CROWDED)
def test_a_child_takes_nothing_from_its_parent(device: str, tmp_path: Path, steps: list[Step]) -> None:
  tell(device, steps, tmp_path)
