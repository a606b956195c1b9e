"""`timeout=`: a launch that takes too long is taken off the device, which goes on."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyhw
from tinyhw import Device
from tinyhw.core.errors import InvalidArgument, WaitTimeout

Build = Callable[..., bytes]
# Counts for ever, and stores as it does: no state comes back
COUNT = """
define amdgpu_kernel void @count(ptr addrspace(1) %p) #0 {
  br label %loop
loop:
  %i = phi i32 [0, %0], [%next, %loop]
  %next = add i32 %i, 1
  store volatile i32 %next, ptr addrspace(1) %p
  br label %loop
}
"""
P = np.zeros(4, np.int32)


@pytest.fixture(autouse=True)
def mock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  monkeypatch.setenv("MOCKGPU", "1")
  monkeypatch.setenv("MOCKGPU_WATCHDOG", "1" + "0" * 15)
  monkeypatch.delenv("DEV", raising=False)
  yield
  Device.close()


@pytest.mark.parametrize("device", ["AMD", "EMU"])
@pytest.mark.parametrize("engine", ["ref", "jit", "auto", "both"])
def test_an_endless_launch_is_taken_off(code_object: Build, add_source: str, monkeypatch: pytest.MonkeyPatch,
                                        device: str, engine: str) -> None:
  monkeypatch.setenv("EMU", engine)
  x = np.arange(64, dtype=np.float32)
  for _ in range(2):
    with pytest.raises(WaitTimeout, match="no progress after 0.05 s: .*kernel count") as caught:
      tinyhw.launch(code_object(COUNT), "count", 1, 64, [P], device, timeout=0.05)
    assert "taken off the device, which goes on; wave 0 stood at count+0x" in str(caught.value)
    assert caught.value.seconds == 0.05 and caught.value.queue.startswith(device)
    out, _ = tinyhw.launch(code_object(add_source), "add", 1, 64, [x * 0, x, np.float32(1)], device, timeout=600)
    assert (out == x + 1).all()


PRINTS = """.version 8.0
.target sm_80
.address_size 64
.global .align 1 .b8 form[14] = {37, 50, 49, 52, 55, 52, 56, 51, 54, 52, 55, 100};
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.visible .entry prints() {
  .local .align 8 .b8 values[8];
  .reg .b64 %d<5>;
  .reg .b32 %r;
  mov.u64 %d1, form;
  cvta.global.u64 %d2, %d1;
  mov.u64 %d3, values;
  cvta.local.u64 %d4, %d3;
  st.local.u32 [%d3], 7;
  { .param .b64 a; .param .b64 b; .param .b32 r;
    st.param.b64 [a], %d2; st.param.b64 [b], %d4; call (r), vprintf, (a, b); ld.param.b32 %r, [r]; }
  ret;
}
"""


def test_a_launch_that_prints_without_end(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
  """Two thousand million spaces do not fit into what a chip keeps of its output: they are lost, and take no time."""
  monkeypatch.setenv("EMU", "ref")
  tinyhw.launch(PRINTS.encode(), "prints", 1, 32, [], "EMU", timeout=60)
  assert len(capfd.readouterr().out) < 1 << 20


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_a_loop_of_ptx_stands_at_its_line(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", engine)
  endless = PRINTS.replace("  ret;", "LOOP:\n  add.u32 %r, %r, 1;\n  bra LOOP;").replace("37, ", "")
  with pytest.raises(WaitTimeout, match=r"which goes on; wave 0 stood at PTX:1\d before '"):
    tinyhw.launch(endless.encode(), "prints", 1, 32, [], "EMU", timeout=0.2)


def test_waves_that_sleep(code_object: Build, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", "ref")
  asleep = COUNT.replace("  br label %loop\n}", "  call void @llvm.amdgcn.s.sleep(i32 8)\n  br label %loop\n}")
  binary = code_object(asleep + "declare void @llvm.amdgcn.s.sleep(i32)\n")
  with pytest.raises(WaitTimeout): tinyhw.launch(binary, "count", 1, 64, [P], "EMU", timeout=0.05)


PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry count(.param .u64 p) {
  .reg .u64 %rd; .reg .u32 %r;
  ld.param.u64 %rd, [p]; mov.u32 %r, 0;
loop: add.u32 %r, %r, 1; st.volatile.global.u32 [%rd], %r; bra loop;
}"""


def test_an_endless_launch_of_ptx() -> None:
  """By the launch's own time, and by that of the device."""
  for _ in range(2):
    with pytest.raises(WaitTimeout, match="EMU: no progress after 0.05 s: kernel count") as caught:
      tinyhw.launch(PTX, "count", 1, 1, [P], "EMU", timeout=0.05)
    assert caught.value.seconds == 0.05
  runtime = Device["EMU"].runtime
  runtime.timeout_s = 0.25  # type: ignore[attr-defined]
  program, memory = runtime.load(PTX, "count"), runtime.alloc(16)
  with pytest.raises(WaitTimeout, match="no progress after 0.25 s") as caught:
    program.launch(int(memory.address or 0).to_bytes(8, "little"), (1, 1, 1), (1, 1, 1))  # type: ignore[attr-defined]
  assert caught.value.seconds == 0.25


@pytest.mark.parametrize("device", ["AMD", "EMU"])
def test_also_a_launch_that_is_checked_or_reported(code_object: Build, device: str) -> None:
  for asked in ({"check": True}, {"report": True}):
    with pytest.raises(WaitTimeout):
      tinyhw.launch(code_object(COUNT), "count", 1, 64, [P], device, timeout=0.05, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [0, -1, True, "1", float("inf"), float("nan")])
def test_wrong_seconds(code_object: Build, wrong: Any) -> None:
  with pytest.raises(InvalidArgument, match="timeout: .* is no positive number of seconds"):
    tinyhw.launch(code_object(COUNT), "count", 1, 64, [P], "EMU", timeout=wrong)


def test_from_the_shell(code_object: Build, tmp_path: Path) -> None:
  (tmp_path / "count.co").write_bytes(code_object(COUNT))
  command = [sys.executable, "-c", "from tinyhw.cli import main; main()", "launch", str(tmp_path / "count.co"),
             "--arg", "out:i32:4", "--timeout", "0.05", "--device", "EMU"]
  done = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, timeout=60)
  assert done.returncode == 1 and "EMU: no progress after 0.05 s: kernel count" in done.stderr
