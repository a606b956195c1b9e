"""`tinyhw explore`: planted races are found, made short and replayed; faults that are declared come."""
from __future__ import annotations

import ctypes
import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests import command
from tests.mock.cuda.client import Client
from tests.queues.rare import RARE, runs
from tinyhw import Device
from tinyhw.autogen import cuda, nv_rm_status
from tinyhw.cli.schedules import RARE as RARE_PROGRAM
from tinyhw.cli.served import Runs, ServedProgram
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.schedule import Departure, Rest, Schedule, read
from tinyhw.devices import explored
from tinyhw.mock.draws import Draws, Uniform
from tinyhw.mock.injected import Fault, Injected, code
from tinyhw.mock.injected import read as faults
from tinyhw.mock.late import of
from tinyhw.mock.running import Running
from tinyhw.queues.explore import Outcome, again, explore, sentences, shrink


@pytest.mark.parametrize("kind", ["AMD", "NV"])
def test_a_rare_race_is_found_made_short_and_replayed(kind: str) -> None:
  run = runs(kind, RARE[0])
  assert not run(Schedule()).failure
  search = explore(run, runs=1000, seconds=600)
  (failure, (number, first)), = search.failures.items()
  assert failure == "r is 1" and number == search.runs <= 1000 and len(search.digests) > number // 2
  short, _ = shrink(run, first)
  assert 1 <= len(short.schedule) <= 2 and short.failure == failure
  assert again(run, short, 100) == (100, 100)
  assert len(list(sentences(short))) == len(short.schedule)


@pytest.mark.parametrize("strategy", ["random", "pct"])
def test_a_seed_and_its_departures_are_one_run(strategy: str) -> None:
  run = runs("AMD", RARE[2])
  digests = set()
  for seed in range(12):
    drawn = run(Schedule(rest=Rest(strategy, seed)))
    replayed = run(drawn.schedule)
    assert (replayed.digest, replayed.schedule, replayed.failure) == (drawn.digest, drawn.schedule, drawn.failure)
    digests.add(drawn.digest)
  assert len(digests) > 6


def test_what_does_not_matter_is_left_out() -> None:
  wanted = {("b", 1), ("d", 2)}

  def run(schedule: Schedule) -> Outcome:
    found = {(d.at, d.took) for _, d in schedule.flat()}
    return Outcome(schedule, "both" if wanted <= found else "")
  rows = tuple(Departure(at, n, "x") for at in "abcdefgh" for n in (1, 2))
  short, count = shrink(run, run(Schedule((rows,))))
  assert {(d.at, d.took) for _, d in short.schedule.flat()} == wanted and count < 100


def test_a_schedule_is_a_file(tmp_path: Path) -> None:
  departures = Departure("the host 1", "GPU0.PM4.0"), Departure("GPU0.SDMA.1 2", 3, "pieces")
  made = Schedule((departures, ()), Rest("pct", 7), ("python", "x.py"), {"DEV": "AMD"})
  path = tmp_path / "s.json"
  path.write_text(made.text())
  assert read(path) == made
  for text, said in (("{", "no JSON"), ("{}", "format is None"), ('{"format": "tinyhw schedule 1", "machines": [[{}]]}',
                     "a departure"), ('{"format": "tinyhw schedule 1", "rest": {"strategy": "luck"}}', "'luck'")):
    path.write_text(text)
    with pytest.raises(InvalidArgument, match=said): read(path)


@pytest.mark.parametrize(("text", "said"), [
  ("kind = 1", "has kind"), ("[[fault]]\nkind = 'luck'", "'luck'"), ("[[fault]]\nkind = 'ecc'\nname = 'x'", "name"),
  ("[[fault]]\nkind = 'ioctl'\nerrno = 'ELUCK'", "ELUCK"), ("[[fault]]\nkind = 'ecc'\nnth = 0", "nth = 0"),
  ("[[fault]]\nkind = 'xid'", "number"), ("[", "no TOML"), ("[[fault]]\nkind = 'call'\nresult = 'LUCK'", "LUCK"),
  ("[[fault]]\nkind = 'status'\nstatus = 'NV_OK'", "no status is called 'NV_OK'")])
def test_faults_that_make_no_sense_are_refused(tmp_path: Path, text: str, said: str) -> None:
  path = tmp_path / "f.toml"
  path.write_text(text)
  with pytest.raises(InvalidArgument, match=said): faults(path)


def ran(place: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
  command.stand_in(place / "python")
  return subprocess.run([place / "python", *arguments], cwd=place, text=True, capture_output=True,
                        env={**os.environ, "TINYHW_TIMEOUT_S": "5", **variables})


ADD = "from tinyhw import Tensor\nassert (Tensor([1.0, 2.0]) + 1).tolist() == [2, 3]\n"


FAULTS = {
  "AMD": ("gfx1100", (("kind = 'ecc'", "MachineFault: AMD: the GPU stopped: uncorrectable memory error"),
                      ("kind = 'page fault'\nnth = 3\naddress = 4096", "PageFault: AMD: GPU page fault: read of 4"),
                      ("kind = 'late ring'\nnth = 2", "MachineFault: AMD: the GPU stopped: PM4 dword 0: a type-0"),
                      ("kind = 'ioctl'\nname = 'mmap'\nnth = 10", "DriverError: mmap of the doorbells"))),
  "NV": ("sm_90", (("kind = 'xid'\nnumber = 43", "Xid 43"), ("kind = 'gone'", "Xid 79"),
                   ("kind = 'status'\nname = 'UVM_MAP_EXTERNAL_ALLOCATION'\nnth = 3\nstatus = 'NV_ERR_TIMEOUT'",
                    "UVM_MAP_EXTERNAL_ALLOCATION failed: NV_ERR_TIMEOUT"),
                   ("kind = 'late ring'", "WaitTimeout: NV: no progress"),
                   ("kind = 'status'\nname = 'NV2080_CTRL_CMD_GPU_GET_ENGINES_V2'",
                    "NV2080_CTRL_CMD_GPU_GET_ENGINES_V2 failed: NV_ERR_GENERIC"))),
}


@pytest.mark.parametrize("device", FAULTS)
def test_faults_end_in_one_error(tmp_path: Path, device: str) -> None:
  (tmp_path / "add.py").write_text(ADD)
  cards, rows = FAULTS[device]
  environment = {**os.environ, "DEV": device, "MOCKGPU": cards, "EMU": "ref", "TINYHW_TIMEOUT_S": "5"}
  with Runs(ServedProgram.of([str(tmp_path / "add.py")]), environment, 1, 300) as run:
    assert not run(Schedule()).failure
    for fault, said in rows:
      (tmp_path / "f.toml").write_text(f"[[fault]]\n{fault}\n")
      outcome = run(Schedule(), more={"MOCKGPU_FAULTS": str(tmp_path / "f.toml")})
      assert said in outcome.failure and outcome.handled and outcome.struck == 1, outcome


@pytest.mark.parametrize("device", FAULTS)
def test_a_mapping_whose_backing_is_gone(tmp_path: Path, device: str) -> None:
  """Its first access is a real SIGBUS."""
  (tmp_path / "add.py").write_text(ADD)
  environment = {**os.environ, "DEV": device, "MOCKGPU": FAULTS[device][0], "EMU": "ref"}
  (tmp_path / "f.toml").write_text("[[fault]]\nkind = 'sigbus'\nnth = 3\n")
  with Runs(ServedProgram.of([str(tmp_path / "add.py")]), environment, 1, 300) as run:
    outcome = run(Schedule(), more={"MOCKGPU_FAULTS": str(tmp_path / "f.toml")})
  assert outcome.failure == "the program ended with signal SIGBUS"


def test_how_late_a_ring_is_goes_by_the_schedule() -> None:
  """By default a turn; what an engine reads until then lay there before."""
  machine, ring = Running(seed=1, tracing=False, clock=None, watchdog=1, engine="ref", observer=None, agreed=None,
                          draws=Draws(rest=Uniform(4)), injected=Injected([Fault("late ring", 2, queue="q")])), b"old"
  late = of(machine, "q", lambda: ring)
  assert late is not None and of(machine, "r", lambda: ring) is not None
  late.rung()
  assert late.read(0, 3) is None
  ring = b"new"
  late.rung()
  turns = 0
  while late.read(0, 3) is not None:
    assert late.read(1, 2) == b"ld"
    machine.turns, turns = machine.turns + 1, turns + 1
  assert 2 <= turns <= 9 and machine.draws is not None and len(machine.draws.log) == 1


def test_every_code_of_the_headers_can_be_declared() -> None:
  for key, codes in (("status", {n: v for n, v in vars(nv_rm_status).items() if n.startswith("NV_ERR_")}),
                     ("result", {n: v for v, n in cuda.RESULTS.items() if v})):
    assert len(codes) > 90
    for name, number in codes.items(): assert code(key, name, "", "") == number


def test_calls_of_cuda_fail_and_contexts_are_lost() -> None:
  """In one process: faults of libcuda's mock."""
  declared = [Fault("call", 2, name="cuMemAlloc_v2", result=cuda.CUDA_ERROR_OUT_OF_MEMORY)]
  client = Client(injected=Injected(declared))
  client.alloc(64)
  out = ctypes.c_uint64()
  assert client.code("cuMemAlloc_v2", ctypes.byref(out), ctypes.c_size_t(64)) == cuda.CUDA_ERROR_OUT_OF_MEMORY
  client.alloc(64)
  client.machine.close()
  for kind, error in (("ecc", cuda.CUDA_ERROR_ECC_UNCORRECTABLE), ("page fault", cuda.CUDA_ERROR_ILLEGAL_ADDRESS),
                      ("gone", cuda.CUDA_ERROR_UNKNOWN)):
    client = Client("sm_90,sm_90", injected=Injected([Fault(kind, queue="CUDA0.stream0")]))
    at = client.alloc(64)
    client.code("cuMemsetD32Async", at, 1, 1, 0)
    for _ in range(2): assert client.code("cuCtxSynchronize") == error
    other = client.handle("cuDevicePrimaryCtxRetain", 1)
    client.call("cuCtxSetCurrent", other)
    client.call("cuMemsetD32_v2", client.alloc(64), 1, 1)
    client.call("cuCtxSynchronize")
    client.machine.close()


TEST = """
import pytest
from tinyhw import Device, Tensor
from tinyhw.engine.realize import memory_of
@pytest.mark.mockgpu("gfx1100")
def test_late():
  x = Tensor([1.0, 2.0]).realize()
  x.tolist()
  y = (x * 2).realize()
  Device["AMD"].runtime.host_view(memory_of(x).allocation).cast("f")[0] = 10.0
  assert y.tolist()[0] == 20.0
"""


def test_a_test_of_pytest_is_explored_and_replayed(tmp_path: Path) -> None:
  (tmp_path / "test_x.py").write_text(TEST)
  words = "explore --json --jobs 1 --replays 2 --seconds 300 -- pytest test_x.py::test_late"
  done = ran(tmp_path, "-c", "from tinyhw.cli import main; main()", *words.split())
  assert done.returncode == 1, done.stderr
  found, = json.loads(done.stdout)["failures"]
  assert "test_x.py::test_late" in found["failure"] and found["replays"] == [2, 2] and len(found["shortened"]) == 2
  assert ran(tmp_path, "-m", "pytest", "-q", "test_x.py").returncode == 0
  replay = ran(tmp_path, "-m", "pytest", "-q", "test_x.py", MOCKGPU_SCHEDULE="explore.json", EMU="ref")
  assert replay.returncode == 1 and "2.0 == 20.0" in replay.stdout, replay.stdout


def test_the_race_that_is_measured_is_right_in_the_default_order(monkeypatch: pytest.MonkeyPatch) -> None:
  """And a schedule of one departure shows it."""
  for name, value in (("MOCKGPU", "gfx1100"), ("EMU", "ref")): monkeypatch.setenv(name, value)
  with Device.aside(): exec(RARE_PROGRAM, {})
  writes = Departure("GPU0.PM4.0 17", "GPU0.SDMA.1")
  with monkeypatch.context() as m, tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    file.write(Schedule(((writes,),)).text())
    file.flush()
    m.setenv("MOCKGPU_SCHEDULE", file.name)
    with pytest.raises(AssertionError, match="for one packet"), Device.aside(): exec(RARE_PROGRAM, {})
  explored.begin()
