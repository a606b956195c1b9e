"""pytest's plugin, as its users have it: test files of their own in a process of its own."""
from __future__ import annotations

import os
import random

import pytest

from tests.conftest import build
from tests.testing import forked

pytest_plugins = ["pytester"]
KERNELS = """
define amdgpu_kernel void @poke(ptr addrspace(1) %p, i64 %offset) #0 {
  %q = getelementptr i8, ptr addrspace(1) %p, i64 %offset
  store i32 7, ptr addrspace(1) %q
  ret void
}
define amdgpu_kernel void @spin(ptr addrspace(1) %p) #0 {
  br label %loop
loop:
  %v = load volatile i32, ptr addrspace(1) %p
  %go = icmp eq i32 %v, 12345
  br i1 %go, label %done, label %loop
done:
  ret void
}
define amdgpu_kernel void @count(ptr addrspace(1) %p) #0 {
  br label %loop
loop:
  %i = phi i32 [0, %0], [%next, %loop]
  %next = add i32 %i, 1
  store volatile i32 %next, ptr addrspace(1) %p
  br label %loop
}
@lds = internal addrspace(3) global [64 x i32] poison
define amdgpu_kernel void @race(ptr addrspace(1) %p) #0 {
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %mine = getelementptr i32, ptr addrspace(3) @lds, i32 %id
  store i32 %id, ptr addrspace(3) %mine
  %other = xor i32 %id, 32
  %there = getelementptr i32, ptr addrspace(3) @lds, i32 %other
  %v = load i32, ptr addrspace(3) %there
  %o = getelementptr i32, ptr addrspace(1) %p, i32 %id
  store i32 %v, ptr addrspace(1) %o
  ret void
}
"""
HEAD = """
import numpy as np, pytest, tinyhw
from pathlib import Path
from tinyhw import Device, Tensor
CODE = Path(__file__).with_name("kernels.o").read_bytes()
KEPT = []

def good(n):
  a = np.arange(64, dtype=np.float32) + n
  assert (Tensor(a) * 2 + 1).numpy().tolist() == (a * 2 + 1).tolist()
def fault(): tinyhw.launch(CODE, "poke", 1, 1, [np.zeros(4, np.int32), np.int64(1 << 40)])
def hang(): tinyhw.launch(CODE, "spin", 1, 1, [np.zeros(1, np.int32)])
def race(): tinyhw.launch(CODE, "race", 1, 64, [np.zeros(64, np.int32)])
def leak(n):
  good(n)
  KEPT.append((Tensor([1.0, 2.0, float(n)]) + n).realize())
def left_behind():
  device = Device["AMD"]
  program, memory = device.runtime.load(CODE, "poke"), device.alloc(4096)
  program([memory], [1 << 40], (1, 1, 1), (1, 1, 1))
  device.free(memory)
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
  for variable in ("MOCKGPU", "DEV", "EMU_CHECK", "PYTEST_ADDOPTS"): monkeypatch.delenv(variable, raising=False)
  monkeypatch.setenv("PYTHONPATH", os.pathsep.join(os.path.abspath(p) for p in (".",)))
  monkeypatch.setenv("PYTHONPATH", str(pytest.importorskip("tinyhw").__path__[0]).removesuffix("tinyhw"))
  (pytester.path / "kernels.o").write_bytes(build(KERNELS))
  return pytester


def run(project: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
  project.makepyfile(test_user=HEAD + body)
  return forked.run(project, *options)


def test_tests_run_on_the_cards_asked_for(project: pytest.Pytester) -> None:
  done = run(project, """
def test_shared():
  assert Device.machine is None and Tensor([1]).device == "AMD"
  good(3)
  assert [c.name for c in Device.machine.cards] == ["gfx1100", "gfx1100"]
@pytest.mark.mockgpu("gfx1100", seed=7, engine="ref")
def test_own(mockgpu):
  assert mockgpu.devices == ("AMD",) and mockgpu.machine.seed == 7 and mockgpu.machine.engine == "ref"
  good(1)
def test_two(mockgpu):
  assert mockgpu.devices == ("AMD", "AMD:1") and mockgpu.machine.seed == 5
  assert (Tensor([1, 2], device="AMD:1") + 1).tolist() == [2, 3]
@pytest.mark.mockgpu("gfx1152")
def test_emulated():
  assert Device.chosen is None
""", "--mockgpu=gfx1100,gfx1100", "--mockgpu-seed=5")
  done.assert_outcomes(passed=4)


def test_without_options_nothing_changes(project: pytest.Pytester) -> None:
  done = run(project, """
import os
def test_plain():
  assert "MOCKGPU" not in os.environ and Tensor([1]).device == "LLVM"
@pytest.mark.mockgpu
def test_marked():
  assert os.environ["MOCKGPU"] == "gfx1100" and Tensor([1]).device == "AMD"
  good(1)
def test_plain_again():
  assert "MOCKGPU" not in os.environ and Tensor([1]).device == "LLVM" and Device.machine is None
""")
  done.assert_outcomes(passed=3)


def test_each_fails_alone_with_its_own_cause(project: pytest.Pytester) -> None:
  done = run(project, """
@pytest.fixture(scope="module")
def weights(): return (Tensor([1.0, 2.0], device="AMD:1") + 1).realize()
def test_fault(): fault()
def test_hang(): hang()
def test_leak(): leak(1)
def test_left_behind(): left_behind()
def test_expected():
  with pytest.raises(tinyhw.core.errors.DeviceError): fault()  # the card is lost, for this test alone
def test_good(weights): assert weights.tolist() == [2.0, 3.0]
def test_assert(): assert (Tensor([1]) + 1).tolist() == [3]
@pytest.mark.mockgpu(check=True)
def test_race(): race()
@pytest.mark.mockgpu(check="barrier")
def test_other_check(): race()
def test_still_there(weights): assert weights.tolist() == [2.0, 3.0]
""", "--mockgpu=gfx1100,gfx1100", "-rA")
  done.assert_outcomes(passed=4, failed=6)
  text = done.stdout.str()
  causes = {"test_fault": "GPU page fault: write", "test_hang": "deadlock|wait",
            "test_leak": "still holds GPU memory", "test_left_behind": "left in the queues failed: AMD: GPU page fault",
            "test_assert": "assert \\[2\\] == \\[3\\]", "test_race": "the checks found \\d hazard"}
  for test, cause in causes.items():
    done.stdout.re_match_lines([f"_+ {test} _+", f".*({cause})"])
  assert "test_user.py:" in text and "kernel log: " in text
  assert "tinyhw/drive" not in text  # the user's line and the message say all


@pytest.mark.parametrize("workers", [0, 2])
def test_of_two_hundred_tests_only_the_bad_ones_fail(project: pytest.Pytester, workers: int) -> None:
  """In any order, also in several processes."""
  bad = {"fault": 6, "hang": 4, "leak": 6, "left_behind": 4}
  names = [name for name, count in bad.items() for _ in range(count)] + ["good"] * 180
  random.Random(workers).shuffle(names)
  body = "\n".join(f"def test_{i}_{name}(): {name}({i if name in ('good', 'leak') else ''})"
                   for i, name in enumerate(names))
  done = run(project, body, "--mockgpu=gfx1100", *(["-n", str(workers)] if workers else []), "-rf", "--tb=line")
  done.assert_outcomes(passed=180, failed=20)
  failed = [line for line in done.stdout.str().splitlines() if line.startswith("FAILED")]
  assert len(failed) == 20 and not any("_good" in line for line in failed)


def test_leaks_through_fixtures_and_classes(project: pytest.Pytester) -> None:
  done = run(project, """
@pytest.fixture
def box(): return []
@pytest.fixture(scope="session")
def cache(): return {}
def test_in_a_fixture(box): box.append((Tensor([1.0]) + 1).realize())
def test_in_the_session(cache): cache["x"] = (Tensor([1.0]) + 1).realize()
class TestClass:
  def test_own(self):
    self.x = (Tensor([1.0]) + 1).realize()
    assert self.x.tolist() == [2.0]
""", "--mockgpu=gfx1100")
  done.assert_outcomes(passed=3, errors=1)
  done.stdout.fnmatch_lines(["*ERROR at teardown of test_in_the_session*",
                             "the test still holds GPU memory*AMD, allocated at test_user.py:*"])
  done = run(project, "def test_leak(): leak(1)", "--mockgpu=gfx1100", "--mockgpu-leaks=ignore")
  done.assert_outcomes(passed=1)


def test_patience_and_weak_memory(project: pytest.Pytester) -> None:
  """The options reach the machine; one that lost its patience is good again."""
  done = run(project, """
@pytest.mark.mockgpu(timeout=0.3)
def test_long(): tinyhw.launch(CODE, "count", 1, 1, [np.zeros(1, np.int32)])
def test_shared_long(): tinyhw.launch(CODE, "count", 1, 1, [np.zeros(1, np.int32)])
def test_after(): good(4)
@pytest.mark.mockgpu(memory="weak")
def test_weak(mockgpu):
  good(2)
  assert mockgpu.machine.weak is not None
def test_strong(mockgpu):
  good(3)
  assert mockgpu.machine.weak is None
""", "--mockgpu=gfx1100", "--mockgpu-timeout=0.3")
  done.assert_outcomes(passed=3, failed=2)
  done.stdout.fnmatch_lines(["FAILED test_user.py::test_long - *", "FAILED test_user.py::test_shared_long - *"])


def test_bad_arguments(project: pytest.Pytester) -> None:
  done = run(project, "def test(): pass", "--mockgpu=gfx9999")
  assert done.ret == pytest.ExitCode.USAGE_ERROR
  done.stderr.fnmatch_lines(["*no card is called 'gfx9999'; the mock has gfx1100*"])


@pytest.mark.parametrize(("session", "workers"), [
  ((), ()), (("--mockgpu=gfx1100",), ()), (("--mockgpu=0",), ()), (("--mockgpu=gfx1100",), ("-n", "1"))])
def test_a_wrong_marker_fails_its_test_alone(project: pytest.Pytester, session: tuple[str, ...],
                                             workers: tuple[str, ...]) -> None:
  markers = {"'gfx9999'": "no card is called 'gfx9999'; the mock has gfx1100", "''": "no card is called ''",
             "chek=True": "there is no option chek; there are check, *", "check='rases'": "*rases*",
             "memory='wek'": "memory='wek'; it is one of strong, weak", "engine='fast'": "engine='fast'; it is one",
             "seed=-1": "seed=-1 is no count", "timeout='2'": "timeout='2' is no positive number of seconds"}
  tests = "\n".join(f"@pytest.mark.mockgpu({m})\ndef test_{i}(mockgpu): pass" for i, m in enumerate(markers))
  done = run(project, f"{tests}\ndef test_good(): assert 1 + 1 == 2\ndef test_after(): pass", *session, *workers)
  done.assert_outcomes(passed=2, errors=len(markers))
  assert done.ret == pytest.ExitCode.TESTS_FAILED
  done.stdout.fnmatch_lines_random([f"*{text}*" for text in markers.values()])


SEVERAL = """
import os
@pytest.mark.mockgpu("gfx1100")
def test_amd(mockgpu):
  assert Tensor([1]).device == "AMD"
  good(1)
@pytest.mark.mockgpu("sm_90")
def test_nvidia(mockgpu):
  assert Tensor([1]).device == "NV"
  good(2)
@pytest.mark.mockgpu("sm_90", "gfx1100")
def test_both(mockgpu):
  assert Tensor([1]).device == "NV" and mockgpu.devices == ("NV", "AMD")
  good(3)
@pytest.mark.mockgpu("gfx1153")
def test_emulated(): assert Device.chosen is None
"""


@pytest.mark.parametrize(("session", "workers"), [
  ("", ()), ("gfx1100", ("-n", "0")), ("gfx1152", ("--import-mode=append",)), ("", ("-n", "2")),
  ("gfx1100", ("-n", "1")), ("sm_80", ("-n", "1", "--dist=loadfile")), ("sm_80", ("--tx=2*popen", "--dist=each")),
  ("gfx1152", ("-n", "1", "--import-mode=importlib"))])
def test_each_test_has_the_machine_that_it_asks_for(project: pytest.Pytester, session: str,
                                                   workers: tuple[str, ...]) -> None:
  """In any process: what the plugin has set is no wish of the user's."""
  device = {"": "LLVM", "gfx1100": "AMD", "sm_80": "NV", "gfx1152": "LLVM"}[session]
  done = run(project, f"{SEVERAL}\ndef test_unmarked(): assert Tensor([1]).device == '{device}'",
             *([f"--mockgpu={session}"] if session else []), *workers)
  done.assert_outcomes(passed=10 if "--dist=each" in workers else 5, warnings=session == "gfx1152")


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
@pytest.mark.parametrize("session", [(), ("--mockgpu=sm_80",)])
def test_what_the_user_has_set_stays(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch,
                                     session: tuple[str, ...], workers: tuple[str, ...]) -> None:
  monkeypatch.setenv("DEV", "PYTHON")
  done = run(project, """
@pytest.mark.mockgpu("gfx1100")
def test_marked():
  assert Tensor([1]).device == "PYTHON" and Tensor([1], device="AMD").tolist() == [1]
@pytest.mark.mockgpu("gfx1153")
def test_emulated(): good(1)
def test_unmarked(): assert Tensor([1]).device == "PYTHON"
""", *session, *workers)
  done.assert_outcomes(passed=3, warnings=0)


@pytest.mark.parametrize("outer", [(), ("--mockgpu=gfx1100", "-n", "1")])
def test_runs_in_runs(project: pytest.Pytester, outer: tuple[str, ...]) -> None:
  """A test that runs pytest, in a process of its own or in its own process."""
  project.makeconftest("pytest_plugins = ['pytester']")
  inner = 'from tinyhw import Tensor\n{}def test(): assert Tensor([1]).device == "{}"'
  done = run(project, f"""
INNER = {inner!r}
MARK = 'import pytest\\n@pytest.mark.mockgpu("sm_90")\\n'
@pytest.mark.parametrize(("mark", "options", "device"), [("", ("--mockgpu=sm_90",), "NV"), (MARK, ("-n", "1"), "NV"),
                                                         (MARK, ("--mockgpu=gfx1100",), "NV"), ("", (), "AMD")])
@pytest.mark.mockgpu("gfx1100")
def test_nested(pytester, mark, options, device):
  pytester.makepyfile(test_inner=INNER.format(mark, device))
  within = "-n" not in options
  run = pytester.runpytest_inprocess if within else pytester.runpytest_subprocess
  run("-p", "no:cacheprovider", *options).assert_outcomes(passed=1)
""", *outer)
  done.assert_outcomes(passed=4)


def test_tensors_that_are_not_on_the_card_are_told(project: pytest.Pytester) -> None:
  """DEV=AMD is no card of gfx1152: only ready code runs there. What names its device is right, and so is the rest."""
  done = run(project, """
@pytest.mark.mockgpu("gfx1152")
def test_tensor():
  x = (Tensor([1.0]) + 1)
  assert (x + Tensor([2.0])).tolist() == [4.0]
@pytest.mark.mockgpu("gfx1100", "gfx1153")
def test_one_of_two(): Tensor([1])
@pytest.mark.mockgpu("gfx1152")
def test_named(): assert (Tensor([1.0], device="LLVM") + 1).tolist() == [2.0] and Tensor([1.0], device="PYTHON")
@pytest.mark.mockgpu("gfx1153")
def test_chosen():
  Device.DEFAULT = "PYTHON"
  try: good(1)
  finally: Device.default = None
@pytest.mark.mockgpu("gfx1152")
def test_launch():
  with pytest.raises(tinyhw.Error, match="the code is for gfx1100, the device is gfx1152"): fault()
@pytest.mark.mockgpu
def test_mock(): good(2)
def test_none(): good(3)
""")
  done.assert_outcomes(passed=7, warnings=2)
  text = "TensorElsewhere: mockgpu: this tensor is on LLVM, not on {}, which the emulator alone has: *tinyhw.launch*"
  done.stdout.fnmatch_lines_random(["*test_user.py:*: " + text.format("gfx1152"),
                                    "*test_user.py:*: " + text.format("gfx1153")])
  done = run(project, "def test(): good(1)", "--mockgpu=gfx1152", "-v")
  done.stdout.fnmatch_lines(["mock GPUs: gfx1152 (ready code objects; tensors are on LLVM)"])


def test_on_real_cards_or_not_at_all(project: pytest.Pytester) -> None:
  if os.path.exists("/dev/kfd"): pytest.skip("this machine has AMD's driver")
  done = run(project, "@pytest.mark.mockgpu('gfx1100', 'gfx1100')\ndef test(): good(1)", "--mockgpu=0", "-rs")
  done.assert_outcomes(skipped=1)
  done.stdout.fnmatch_lines(["*needs gfx1100, gfx1100, and this machine has no /dev/kfd*"])
