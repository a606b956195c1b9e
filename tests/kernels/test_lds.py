"""LDS beyond what a launch has: values as on the chip, and the run says so, alike on every engine."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinyhw
from tinyhw import Device
from tinyhw.core.errors import LDSWarning

Build = Callable[..., bytes]
POINTER = "ptr addrspace(1)"
ENGINES = ("ref", "jit", "auto", "both")
X = np.arange(256, dtype=np.int32)

# Lane i stores to dword i of dynamic LDS, reads it back, adds to dword i by an atomic, and stores what it has read
TOUCH = f"""
@dynamic = external addrspace(3) global [0 x i32], align 16
define amdgpu_kernel void @touch({POINTER} %p) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %at = getelementptr i32, ptr addrspace(3) @dynamic, i32 %i
  %base = mul i32 %g, 256
  %n = add i32 %base, %i
  %from = getelementptr i32, {POINTER} %p, i32 %n
  %x = load i32, {POINTER} %from
  store volatile i32 %x, ptr addrspace(3) %at
  %y = load volatile i32, ptr addrspace(3) %at
  %old = atomicrmw add ptr addrspace(3) %at, i32 5 syncscope("workgroup") monotonic
  %z = load volatile i32, ptr addrspace(3) %at
  %s = add i32 %y, %z
  %t = add i32 %s, %old
  store i32 %t, {POINTER} %from
  ret void
}}
"""
# The same through flat addresses, in lanes below n alone
FLAT = f"""
@dynamic = external addrspace(3) global [0 x i32], align 16
define amdgpu_kernel void @flat({POINTER} %p, i32 %n) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %generic = addrspacecast ptr addrspace(3) @dynamic to ptr
  %at = getelementptr i32, ptr %generic, i32 %i
  %from = getelementptr i32, {POINTER} %p, i32 %i
  %few = icmp ult i32 %i, %n
  br i1 %few, label %do, label %done
do:
  store volatile i32 7, ptr %at
  %y = load volatile i32, ptr %at
  store i32 %y, {POINTER} %from
  br label %done
done:
  ret void
}}
"""


@pytest.fixture(autouse=True)
def mock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  monkeypatch.setenv("MOCKGPU", "1")
  monkeypatch.delenv("DEV", raising=False)
  yield
  Device.close()


def told(binary: bytes, kernel: str, block: int, args: list[Any], device: str, shared: int,
         grid: int = 1) -> tuple[np.ndarray[Any, Any], list[str]]:
  """The first array, and what was warned of."""
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("default")
    done = tinyhw.launch(binary, kernel, grid, block, args, device, shared)
  texts = [str(w.message) for w in caught if w.category is LDSWarning]
  assert done.warnings == texts and all(w.filename == __file__ for w in caught)
  return done[0], texts


@pytest.mark.parametrize("device", ["AMD", "EMU"])
@pytest.mark.parametrize("engine", ENGINES)
def test_lds_beyond_the_launch_is_told(code_object: Build, monkeypatch: pytest.MonkeyPatch, device: str,
                                       engine: str) -> None:
  monkeypatch.setenv("EMU", engine)
  binary = code_object(TOUCH)
  out, texts = told(binary, "touch", 256, [X], device, 1024)
  assert (out == 3 * X + 5).all() and not texts
  for _ in range(2):  # at each launch
    out, texts = told(binary, "touch", 256, [X], device, 512)
    assert (out == np.where(X < 128, 3 * X + 5, 0)).all()
    (text,) = texts
    assert text.startswith("kernel touch at touch+0x") and "'ds_store_b32 " in text
    assert "LDS at 0x200 to 0x3ff in 128 lanes, and its workgroup has 512 bytes" in text
    assert "reads gave 0 and writes were dropped" in text and "as did 3 more instructions" in text
    assert text.endswith("shared=BYTES (--shared) gives a launch dynamic LDS")
  out, texts = told(binary, "touch", 256, [np.tile(X, 9)], device, 0, 9)
  assert not out.any() and "LDS at 0x0 to 0x3ff in 2,304 lanes" in texts[0] and "has 0 bytes" in texts[0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [64, 129, 130, 256])
def test_flat_accesses_in_some_lanes(code_object: Build, monkeypatch: pytest.MonkeyPatch, engine: str, n: int) -> None:
  """Lanes that do not take part do not count."""
  monkeypatch.setenv("EMU", engine)
  out, texts = told(code_object(FLAT), "flat", 256, [np.zeros(256, np.int32), np.int32(n)], "EMU", 512)
  assert (out == np.where(X < min(n, 128), 7, 0)).all()
  assert bool(texts) == (n > 128)
  if n > 128:
    lanes = f"{n - 128} lanes" if n > 129 else "one lane"
    assert "'flat_store_b32 " in texts[0] and f"LDS at 0x200 to {n * 4 - 1:#x} in {lanes}" in texts[0]


@pytest.mark.parametrize("cpu", ["gfx1201", "gfx942"])
@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_other_generations(code_object: Build, monkeypatch: pytest.MonkeyPatch, cpu: str, engine: str) -> None:
  monkeypatch.setenv("EMU", engine)
  binary = code_object(TOUCH, cpu=cpu)
  assert "in 128 lanes" in told(binary, "touch", 256, [X], "EMU", 512)[1][0]
  assert not told(binary, "touch", 256, [X], "EMU", 1024)[1]


def test_a_report_tells_it_and_the_check_finds_it(code_object: Build) -> None:
  with pytest.warns(LDSWarning, match="128 lanes"):
    tinyhw.report(code_object(TOUCH), "touch", 1, 256, [X], shared=512)
  with pytest.warns(LDSWarning):
    done = tinyhw.launch(code_object(TOUCH), "touch", 1, 256, [X], "EMU", 512, check="report")
  assert done.findings is not None and {f.kind for f in done.findings} == {"bounds"}


def test_what_runs_without_launch_tells_the_mock(code_object: Build) -> None:
  runtime: Any = Device["AMD"].runtime
  p = runtime.alloc(1024)
  runtime.load(code_object(TOUCH), "touch")([p], [], (1, 1, 1), (256, 1, 1))
  runtime.synchronize()
  assert any("GPU0.PM4" in line and "touched LDS at 0x0" in line for line in Device.report())


MEET = """
define amdgpu_kernel void @meet(ptr addrspace(1) %out, ptr addrspace(1) %count, i32 %all) {
  %m = alloca [4 x i32], addrspace(5)
  %own = atomicrmw add ptr addrspace(1) %count, i32 1 syncscope("agent") monotonic
  %low = and i32 %own, 0
  %at = getelementptr [4 x i32], ptr addrspace(5) %m, i32 0, i32 %low
  store volatile i32 %own, ptr addrspace(5) %at
  br label %wait
wait:
  %arrived = load atomic volatile i32, ptr addrspace(1) %count syncscope("agent") monotonic, align 4
  %missing = icmp ult i32 %arrived, %all
  br i1 %missing, label %wait, label %go
go:
  %kept = load volatile i32, ptr addrspace(5) %at
  %place = getelementptr i32, ptr addrspace(1) %out, i32 %own
  store i32 %kept, ptr addrspace(1) %place
  ret void
}
"""


@pytest.mark.parametrize("device", ["AMD", "EMU"])
@pytest.mark.parametrize("grid", [(5, 1, 1), (1, 5, 1), (1, 1, 5), (2, 3, 2)])
def test_workgroups_that_wait_for_each_other_have_private_memory_of_their_own(
    code_object: Build, device: str, grid: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "1")
  groups = grid[0] * grid[1] * grid[2]
  out, _ = tinyhw.launch(code_object(MEET), "meet", grid, 1,
                         [np.zeros(groups, np.uint32), np.zeros(1, np.uint32), np.uint32(groups)], device)
  assert out.tolist() == list(range(groups))
