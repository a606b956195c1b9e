"""The linter finds bugs that were put into a driver's streams, and nothing in streams that are right."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests import command
from tests.drive import programs
from tests.queues import aql, planted_bugs
from tests.queues.conftest import MACHINES, record
from tests.queues.planted import Stream
from tests.queues.planted_aql import BUGS
from tests.queues.planted_bugs import Bug
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort
from tinyhw.queues.arguments import facts
from tinyhw.queues.capture import Capture
from tinyhw.queues.lint import RULES, lint
from tinyhw.queues.record import Recorder

TRAINING = """
from tinyhw import Tensor, nn
from tinyhw.nn.optim import SGD
Tensor.manual_seed(1)
one, two = Tensor.rand(16, 32), Tensor.rand(32, 4)
for w in (one, two): w.requires_grad = True
optimizer = SGD([one, two], lr=0.01)
with Tensor.train():
  for _ in range(2):
    optimizer.zero_grad()
    loss = ((Tensor.rand(8, 16) @ one).relu() @ two).square().mean()
    loss.backward()
    optimizer.step()
loss.item()
Tensor.rand(2, 3, 16, 16).conv2d(Tensor.rand(4, 3, 3, 3)).relu().sum().item()
x = Tensor([1.0, 2.0, 3.0]).realize()
for _ in range(30): x = (x * 1.5 + 1).realize()
x.tolist()
"""


def test_right_streams_have_no_finding(unbroken: dict[str, Path]) -> None:
  for path in unbroken.values(): assert [str(f) for f in lint(Capture(path), advice=True)] == []


@pytest.mark.parametrize("device", MACHINES)
def test_a_training_step_has_no_finding(device: str, tmp_path: Path) -> None:
  done = record(tmp_path / "step.thq", device, TRAINING)
  assert done.returncode == 0, done.stderr
  assert [str(f) for f in lint(Capture(tmp_path / "step.thq"), advice=True)] == []


def test_a_small_program_has_no_finding(captured: Path) -> None:
  assert [str(f) for f in lint(Capture(captured), advice=True)] == []


def test_all_that_a_driver_does_has_no_finding(tmp_path: Path) -> None:
  """AMD's driver through all its verbs, with rings so small that they wrap: peers, scratch, host stores, batches."""
  with programs.small():
    runtimes: list[AMDRuntime] = []
    recorder = Recorder(tmp_path / "all.thq", codes=lambda vendor: [r.codes() for r in runtimes])
    machine = Machine("gfx1100,gfx1100", seed=1)
    port = recorder.port(MockPort(machine), "amd")
    runtimes += [AMDRuntime(port, n, timeout_s=5) for n in range(2)]
    for run in programs.PROGRAMS: assert list(run(*runtimes)) == []
    for runtime in runtimes: runtime.close()
    recorder.close()
    machine.close()
  assert [str(f) for f in lint(Capture(tmp_path / "all.thq"))] == []


def test_there_are_bugs_of_both_vendors() -> None:
  assert len(BUGS) >= 60 and min(sum(b.vendor == v for b in BUGS) for v in MACHINES) >= 30
  assert {r for b in BUGS for r in b.rules} <= RULES.keys()


@pytest.fixture(scope="module")
def aql_queues(tmp_path_factory: pytest.TempPathFactory) -> Path:
  return aql.capture(tmp_path_factory.mktemp("aql") / "aql.thq")


def test_right_aql_queues_have_no_finding(aql_queues: Path) -> None:
  assert [str(f) for f in lint(Capture(aql_queues), advice=True)] == []


@pytest.mark.parametrize("bug", BUGS, ids=[f"{b.vendor}: {b.name}" for b in BUGS])
def test_a_planted_bug_is_found(bug: Bug, unbroken: dict[str, Path], aql_queues: Path, tmp_path: Path) -> None:
  """By a rule that is meant for it, at the submission that is to blame."""
  stream = Stream(aql_queues if bug.vendor == "AQL" else unbroken[bug.vendor])
  found = bug.edit(stream)
  findings = lint(Capture(stream.save(tmp_path / "bug.thq")))
  at = found.step.submission
  told = [f for f in findings if f.rule.name in bug.rules and any(p.submission == at for p in f.places)]
  assert told, "\n".join(map(str, findings))
  for finding in told:
    assert finding.rule.do in str(finding) and all(p.item is not None or p.agent < 0 for p in finding.places)


def test_an_edit_that_changes_nothing_is_no_bug(unbroken: dict[str, Path], tmp_path: Path) -> None:
  """What finds the bugs is the edits, and not that a capture was written anew."""
  for path in unbroken.values(): assert lint(Capture(Stream(path).save(tmp_path / "same.thq"))) == []


def test_what_kernels_access_follows_from_their_code(unbroken: dict[str, Path]) -> None:
  """Every kernel of the programs: its first argument is written, and none of the others."""
  for path in unbroken.values():
    capture, seen = Capture(path), 0
    list(capture)
    for program in capture.programs:
      image = capture.reader.blob(program.image)
      assert image is not None
      for known in facts(image, program.kind).values():
        assert known.accesses is not None and known.pointers is not None
        seen += 1
        for access in known.accesses: assert len(access.offsets) == 1
        assert {o for a in known.accesses if a.writes for o in a.offsets} == {known.pointers[0]}
    assert seen >= 5


def test_rules_are_told(tmp_path: Path) -> None:
  listed = command.tinyhw("lint", "--list")
  for rule in RULES.values(): assert f"{rule.name}" in listed.stdout and rule.do in listed.stdout
  (tmp_path / "x.thq").write_bytes(b"no capture")
  for arguments, told in (([str(tmp_path / "x.thq")], "is no capture"), ([], "no capture is named"),
                          (["--rule", "nonsense", "x"], "no rule is called"),
                          ([str(tmp_path / "gone.thq")], "cannot be opened")):
    done = command.tinyhw("lint", *arguments)
    assert done.returncode == 1 and told in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_bugs_say_what_they_are() -> None:
  assert planted_bugs.__doc__ and len({(b.vendor, b.name) for b in BUGS}) == len(BUGS)


CHAINED = """
from tinyhw import Tensor, TinyJit
@TinyJit
def step(x):
  y = (x * 2).contiguous().realize()
  z = (y + 1).contiguous().realize()
  return (z * y).contiguous().realize()
for n in range(5): step(Tensor.rand(8, 8).realize()).tolist()
"""


def test_kernels_that_run_behind_each_other_are_in_order(tmp_path: Path) -> None:
  """QMDs that a QMD has run behind itself."""
  path = tmp_path / "run.thq"
  assert record(path, "NV", CHAINED).returncode == 0
  follows = [step.follow for step in Capture(path) if step.follow is not None]
  assert any(item.depth > 2 and type(item.packet).__name__.startswith("QMD") for f in follows for item in f.items)
  assert not [str(found) for found in lint(Capture(path))]
