"""Code for another GPU than the one that is there: refused, naming both; the emulator alone runs each on its own."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

import tinyhw
from tests.emulator.gpu import TRIPLE
from tests.strength import THOROUGH
from tinyhw.arch import DECODED
from tinyhw.core.errors import DeviceError, InvalidArgument, Unsupported
from tinyhw.devices.registry import Device
from tinyhw.mock.amd.card import CARDS

CLANG = shutil.which("clang-19")
KERNEL = """target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %n) {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr i32, ptr addrspace(1) %p, i32 %i
  %v = load i32, ptr addrspace(1) %g
  %s = add i32 %v, %n
  store i32 %s, ptr addrspace(1) %g
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
"""
X = np.arange(64, dtype=np.int32)


def compiled(cpu: str, features: str = "") -> bytes:
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=cpu, features=features, opt=2)
  return bytes(machine.emit_object(llvm.parse_assembly(KERNEL)))


def run(binary: bytes, device: str = "EMU") -> np.ndarray:
  return tinyhw.launch(binary, "k", 1, 64, [X, np.int32(7)], device)[0]


@pytest.fixture(autouse=True)
def new_devices(monkeypatch: pytest.MonkeyPatch) -> None:
  """No device stays open that another MOCKGPU has made."""
  monkeypatch.delenv("MOCKGPU", raising=False)
  Device.close()


@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize("cpu", [*DECODED, "gfx9-4-generic", "gfx11-generic", "gfx12-generic"])
def test_the_emulator_runs_each_on_its_own(cpu: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", engine)
  assert (run(compiled(cpu)) == X + 7).all()


SOURCE = """
#define GLOBAL __attribute__((address_space(1)))
__attribute__((amdgpu_kernel))
void k(GLOBAL float *out, const GLOBAL float *in, float scale, int n) {
  static __attribute__((address_space(3), loader_uninitialized)) float shared[64];
  unsigned i = __builtin_amdgcn_workitem_id_x();
  float offset = scale < 1.5f ? scale * 2.0f + (float)n : __builtin_ceilf(scale) - (float)n;
  shared[i] = in[i] * offset;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  float sum = 0;
  for (int j = 0; j < n; j++) sum += shared[i + j & 63];
  out[i] = sum;
}
"""
# Each kind in every run: scalar floats or not, the smaller and the larger file of registers, waves of 64 alone.
QUICK = ("gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx942")


@pytest.mark.skipif(CLANG is None, reason="clang-19 is not installed")
@pytest.mark.parametrize("cpu", [c for c in DECODED if (THOROUGH or c in QUICK) and c != "gfx1153"])
def test_objects_of_clang(cpu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """A kernel with uniform floats, LDS and a barrier, compiled and linked by clang 19, on both engines at once."""
  monkeypatch.setenv("EMU", "both")
  (tmp_path / "k.c").write_text(SOURCE)
  subprocess.run([str(CLANG), "-x", "c", "-target", TRIPLE, f"-mcpu={cpu}", "-nogpulib", "-O2", "-ffp-contract=off",
                  "-fuse-ld=lld", "-o", str(tmp_path / "k.co"), str(tmp_path / "k.c")], check=True, capture_output=True)
  given = np.arange(64, dtype=np.float32)
  for scale, offset in ((1.25, 2.5 + 5), (2.25, 3.0 - 5)):
    want = np.zeros(64, np.float32)
    for j in range(5): want += np.roll(given * np.float32(offset), -j)
    arguments = [np.zeros(64, np.float32), given, np.float32(scale), np.int32(5)]
    assert np.array_equal(tinyhw.launch(tmp_path / "k.co", "k", 1, 64, arguments, "EMU")[0], want)


@pytest.mark.parametrize("card, cpu, runs", [
  ("gfx942", "gfx1100", False), ("gfx1201", "gfx1100", False), ("gfx1201", "gfx1200", False),
  ("gfx1101", "gfx1100", False), ("gfx942", "gfx942", True), ("gfx1152", "gfx11-generic", True),
  ("gfx942", "gfx9-4-generic", True), ("gfx1201", "gfx12-generic", True), ("gfx1201", "gfx11-generic", False),
])
def test_a_card_runs_its_own_code(card: str, cpu: str, runs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
  """Cards of the mock, and those that it has not yet, which the emulator stands for."""
  monkeypatch.setenv("MOCKGPU", card)
  binary = compiled(cpu)
  for device in ("AMD" if card in CARDS else "EMU", None):
    words = {} if device is None else {"device": device}
    if runs: assert (tinyhw.launch(binary, "k", 1, 64, [X, np.int32(7)], **words)[0] == X + 7).all()
    else:
      with pytest.raises(InvalidArgument, match=f"the code is for {cpu}, the device is {card}"):
        tinyhw.launch(binary, "k", 1, 64, [X, np.int32(7)], **words)


def test_a_card_runs_code_with_its_features(monkeypatch: pytest.MonkeyPatch) -> None:
  """MI300X: error correction on, retry of page faults off."""
  assert (run(compiled("gfx942", "+xnack")) == X + 7).all()
  Device.close()
  monkeypatch.setenv("MOCKGPU", "gfx942")
  assert (run(compiled("gfx942", "-xnack,+sramecc"), "AMD") == X + 7).all()
  with pytest.raises(InvalidArgument, match=r"for gfx942:xnack\+, the device is gfx942:sramecc\+:xnack-"):
    run(compiled("gfx942", "+xnack"), "AMD")
  with pytest.raises(InvalidArgument, match=r"for gfx942:sramecc-, the device is gfx942:sramecc\+:xnack-"):
    run(compiled("gfx942", "-sramecc"), "AMD")


def test_the_mocks_card_refuses_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "gfx1100")
  for cpu in ("gfx1201", "gfx942", "gfx1101"):
    with pytest.raises(InvalidArgument, match=f"the code is for {cpu}, the device is gfx1100"):
      run(compiled(cpu), "AMD")
  assert (run(compiled("gfx11-generic"), "AMD") == X + 7).all()
  assert (run(compiled("gfx942")) == X + 7).all()  # the emulator beside a mock that has its card is its own


def test_a_card_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "gfx1153,gfx1152")
  with pytest.raises(InvalidArgument, match="gfx942, the device is gfx1152"): run(compiled("gfx942"), "EMU:1")
  assert (run(compiled("gfx1152"), "EMU:1") == X + 7).all()
  with pytest.raises(DeviceError, match="no GPU 2: MOCKGPU names gfx1153, gfx1152"): run(compiled("gfx942"), "EMU:2")
  with pytest.raises(Unsupported, match="gfx1153"): run(compiled("gfx942"), "AMD")
