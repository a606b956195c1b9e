"""pytest's plugin with NVIDIA's cards: what a test gets, what fails alone, through the NV driver and through CUDA."""
from __future__ import annotations

import pytest

from tests.testing import forked
from tinyhw.core.errors import InvalidArgument
from tinyhw.testing.machines import Wanted
from tinyhw.testing.plugin import need

pytest_plugins = ["pytester"]
HEAD = '''
import numpy as np, pytest, tinyhw
from tinyhw import Device, Tensor
PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry poke(.param .u64 p, .param .u64 by) {
  .reg .b64 %l<3>; ld.param.u64 %l1, [p]; ld.param.u64 %l2, [by]; add.u64 %l1, %l1, %l2; st.global.u32 [%l1], 7; ret;
}
.visible .entry spin(.param .u64 p) {
  .reg .b64 %l<2>; .reg .b32 %r<2>; .reg .pred %p; ld.param.u64 %l1, [p];
  again: ld.volatile.global.u32 %r1, [%l1]; setp.ne.u32 %p, %r1, 1; @%p bra again; ret;
}
.visible .entry race(.param .u64 p) {
  .reg .b64 %l<3>; .reg .b32 %r<6>; .shared .align 4 .b8 s[256];
  ld.param.u64 %l1, [p]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r4, %r3, %r2;
  st.shared.u32 [%r4], %r1; xor.b32 %r5, %r2, 128; add.u32 %r5, %r3, %r5; ld.shared.u32 %r5, [%r5];
  cvt.u64.u32 %l2, %r2; add.u64 %l1, %l1, %l2; st.global.u32 [%l1], %r5; ret;
}
"""
KEPT = []

def good(n):
  a = np.arange(64, dtype=np.float32) + n
  assert (Tensor(a) * 2 + 1).numpy().tolist() == (a * 2 + 1).tolist()
def fault(): tinyhw.launch(PTX, "poke", 1, 1, [np.zeros(4, np.int32), np.int64(1 << 40)], "NV")
def hang(): tinyhw.launch(PTX, "spin", 1, 1, [np.zeros(1, np.int32)], "NV")
def race(): tinyhw.launch(PTX, "race", 1, 64, [np.zeros(64, np.int32)], "NV")
def leak(): KEPT.append((Tensor([1.0, 2.0, 3.0]) + 1).realize())
def left_behind():
  device = Device["NV"]
  program, memory = device.runtime.load(PTX.encode(), "poke"), device.alloc(4096)
  program([memory], [1 << 40], (1, 1, 1), (1, 1, 1))
  device.free(memory)
'''


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
  for variable in ("MOCKGPU", "DEV", "EMU_CHECK", "PYTEST_ADDOPTS"): monkeypatch.delenv(variable, raising=False)
  monkeypatch.setenv("PYTHONPATH", str(pytest.importorskip("tinyhw").__path__[0]).removesuffix("tinyhw"))
  return pytester


def run(project: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
  project.makepyfile(test_user=HEAD + body)
  return forked.run(project, *options)


def test_each_fails_alone_with_its_own_cause(project: pytest.Pytester) -> None:
  done = run(project, """
@pytest.fixture(scope="module")
def weights(): return (Tensor([1.0, 2.0], device="NV:1") + 1).realize()
def test_shared():
  assert Tensor([1]).device == "NV"
  good(3)
  assert [c.name for c in Device.machines["NV"].cards] == ["sm_90", "sm_90"]
def test_fault(): fault()
def test_hang(): hang()
def test_leak(): leak()
def test_left_behind(): left_behind()
def test_expected(mockgpu):
  with pytest.raises(tinyhw.core.errors.DeviceError): fault()
  mockgpu.reset()
  good(2)
def test_good(weights): assert weights.tolist() == [2.0, 3.0]
def test_still_there(weights): assert weights.tolist() == [2.0, 3.0]
""", "--mockgpu=sm_90,sm_90", "-rA")
  done.assert_outcomes(passed=4, failed=4)
  text = done.stdout.str()
  causes = {"test_fault": "write of 4 bytes at", "test_hang": "deadlock|endless|wait",
            "test_leak": "still holds GPU memory.*NV, allocated at test_user.py",
            "test_left_behind": "left in the queues failed: NV: GPU page fault"}
  for test, cause in causes.items(): done.stdout.re_match_lines([f"_+ {test} _+", f".*({cause})"])
  assert "kernel log: NVRM: Xid" in text and "tinyhw/drive" not in text


def test_machines_of_their_own(project: pytest.Pytester) -> None:
  done = run(project, """
import os
def test_plain(): assert Tensor([1]).device == "LLVM"
@pytest.mark.mockgpu("sm_90", "sm_90", seed=7, engine="ref")
def test_two(mockgpu):
  assert mockgpu.devices == ("NV", "NV:1") and Tensor([1]).device == "NV"
  assert mockgpu.machine.seed == 7 and mockgpu.machine.engine == "ref"
  a = (Tensor([1, 2, 3]) + 1).realize()
  assert a.to("NV:1").tolist() == [2, 3, 4]
@pytest.mark.mockgpu("gfx1100", "sm_86", "sm_90")
def test_both_vendors(mockgpu):
  assert mockgpu.devices == ("AMD", "NV", "NV:1") and Tensor([1]).device == "AMD"
  assert [(Tensor([1, 2], device=d) + 1).tolist() for d in mockgpu.devices] == [[2, 3]] * 3
  assert mockgpu.machine is Device.machines["AMD"]
@pytest.mark.mockgpu("sm_90")
def test_cuda(mockgpu):
  assert (Tensor([1, 2], device="CUDA") + 1).tolist() == [2, 3]
  KEPT.append((Tensor([1.0], device="CUDA") + 1).realize())
@pytest.mark.mockgpu("sm_90")
def test_cuda_after_it():
  assert (Tensor([1, 2], device="CUDA") + 1).tolist() == [2, 3]
@pytest.mark.mockgpu("sm_90")
def test_fault(): fault()
@pytest.mark.mockgpu("sm_90", check=True)
def test_race(): race()
@pytest.mark.mockgpu("sm_80")
def test_good(mockgpu):
  assert Device["NV"].runtime.arch.name == "sm_80"
  good(1)
def test_plain_again(): assert "MOCKGPU" not in os.environ and not Device.machines
""")
  done.assert_outcomes(passed=6, failed=3)
  causes = {"test_cuda": "still holds GPU memory.*CUDA, allocated at test_user.py", "test_fault": "write of 4 bytes",
            "test_race": "the checks found 1 hazard"}
  for test, cause in causes.items(): done.stdout.re_match_lines([f"_+ {test} _+", f".*({cause})"])


def test_a_session_s_machine_of_cuda_is_good_again_after_a_test_s_own(project: pytest.Pytester) -> None:
  done = run(project, """
@pytest.fixture(scope="session")
def weights(): return (Tensor([1.0, 2.0], device="CUDA") + 1).realize()
def test_before(weights): assert weights.tolist() == [2.0, 3.0]
@pytest.mark.mockgpu("sm_86")
def test_own(): assert (Tensor([1, 2], device="CUDA") + 1).tolist() == [2, 3]
def test_after(weights): assert weights.tolist() == [2.0, 3.0]
""", "--mockgpu=sm_90")
  done.assert_outcomes(passed=3)


def test_a_card_that_is_none() -> None:
  with pytest.raises(InvalidArgument, match="no card is called 'sm_35'") as told: Wanted.named(("sm_90", "sm_35"))
  assert "sm_80, sm_86" in str(told.value.hint)


def test_a_real_card_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
  """--mockgpu=0: marked tests run on this machine's own GPUs, or are skipped."""
  monkeypatch.setattr("os.path.exists", lambda path: path == "/dev/kfd")
  with pytest.raises(pytest.skip.Exception, match="no /dev/nvidiactl"): need(("sm_90",))
