"""Faults say the line of the source, the calls that led there and the array, on the emulator and on the mock."""
from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyhw

CLANG = shutil.which("clang-19")
needs_clang = pytest.mark.skipif(CLANG is None, reason="clang-19 is not installed")
SOURCE = """\
#define GLOBAL __attribute__((address_space(1)))
typedef void (*action)(int);
__attribute__((noinline)) static void run(action what, int n) {
  what(n);
}
__attribute__((amdgpu_kernel)) void calls(GLOBAL float *out, action what) {
  run(what, 5);
  out[0] = 1;
}
static inline __attribute__((always_inline)) float twice(float x) { return 2 * x; }
__attribute__((noinline)) static float get(GLOBAL const float *p, int i) {
  return p[i];
}
__attribute__((amdgpu_kernel)) void deep(GLOBAL float *out, GLOBAL const float *in, int n) {
  int i = __builtin_amdgcn_workitem_id_x();
  out[i] = twice(get(in, i + n));
}
__attribute__((amdgpu_kernel)) void still(GLOBAL volatile float *out) {
  for (;;)
    out[0] = 1;
}
"""


def built(folder: Path, mcpu: str = "gfx1100", *options: str) -> str:
  """The code object of SOURCE, as a file in the folder that its source is in."""
  (folder / "bugs.c").write_text(SOURCE)
  subprocess.run(["clang-19", "-O2", "-g", "-x", "c", "--target=amdgcn-amd-amdhsa", f"-mcpu={mcpu}", "-nogpulib", "-c",
                  *options, "bugs.c", "-o", f"{mcpu}.o"], cwd=folder, check=True)
  return str(folder / f"{mcpu}.o")


@pytest.fixture(params=["EMU", "AMD"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
  """The emulator, and a machine of a mock GPU of the test's own."""
  tinyhw.Device.close()
  monkeypatch.setenv("MOCKGPU", "1")
  yield request.param
  tinyhw.Device.close()


@needs_clang
def test_a_fault_names_line_caller_array_and_wave(tmp_path: Path, device: str) -> None:
  arrays = [np.zeros(32, np.float32), np.zeros(32, np.float32), 200 << 20]
  with pytest.raises(tinyhw.DeviceError) as caught: tinyhw.launch(built(tmp_path), "deep", 1, 32, arrays, device)
  fault = caught.value
  assert isinstance(fault, tinyhw.PageFault)
  assert (fault.kernel, fault.access, fault.size, fault.lane, fault.wave) == ("deep", "read", 4, 0, 0)
  assert fault.file == str(tmp_path / "bugs.c") and fault.line == 12 and fault.source == "return p[i];"
  assert fault.pc and fault.address and fault.place and fault.place.startswith("get+0x")
  first, *facts = str(fault).splitlines()
  assert "GPU page fault: read of 4 bytes at" in first
  assert any(f"past the end of {name} (128 bytes)" in first for name in ("in", "out"))  # whichever lies higher
  assert "in kernel deep at bugs.c:12" in first and ("reset" in first or "Device.close" in first or device == "EMU")
  assert facts[0] == "  bugs.c:12: return p[i];" and "global_load_b32" in facts[1]
  assert facts[2].startswith("  called by deep+0x")
  assert facts[2].endswith("at bugs.c:16: out[i] = twice(get(in, i + n));")
  assert facts[3].startswith("  wave 0, lane 0") and "hidden" not in str(fault)
  assert sum("kernel log" in line for line in facts) == (2 if device == "AMD" else 0)


@needs_clang
@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_a_call_to_where_no_code_is_names_the_caller(tmp_path: Path, device: str, engine: str,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", engine)
  tinyhw.Device.close()
  with pytest.raises(tinyhw.PageFault) as caught:
    tinyhw.launch(built(tmp_path), "calls", 1, 32, [np.zeros(4, np.float32), np.uint64(0x7000)], device)
  text = str(caught.value)
  assert "execute of 4 bytes at 0x7000" in text and "in kernel calls at bugs.c:4" in text.splitlines()[0]
  assert "  called by run+0x" in text and "at bugs.c:4: what(n);" in text and "hidden" not in text


@needs_clang
@pytest.mark.parametrize("mcpu", ["gfx1201", "gfx942"])
def test_other_generations_say_their_lines(tmp_path: Path, mcpu: str) -> None:
  arrays = [np.zeros(32, np.float32), np.zeros(32, np.float32), 200 << 20]
  with pytest.raises(tinyhw.PageFault) as caught: tinyhw.launch(built(tmp_path, mcpu), "deep", 1, 32, arrays, "EMU")
  assert caught.value.line == 12 and "called by deep+0x" in str(caught.value)


@needs_clang
def test_an_endless_loop_and_a_launch_taken_off_say_their_line(tmp_path: Path, device: str) -> None:
  with pytest.raises(tinyhw.DeviceError) as caught:
    tinyhw.launch(built(tmp_path), "still", 1, 32, [np.zeros(4, np.float32)], device)
  first = str(caught.value).splitlines()[0]
  assert "an endless loop" in first and "in kernel still at bugs.c:20" in first, str(caught.value)


@needs_clang
def test_without_the_source_or_the_debug_information_the_rest_is_told(tmp_path: Path) -> None:
  arrays: list[Any] = [np.zeros(32, np.float32), np.zeros(32, np.float32), 200 << 20]
  file = built(tmp_path)
  (tmp_path / "bugs.c").unlink()
  with pytest.raises(tinyhw.PageFault, match=r"in kernel deep at bugs.c:12") as caught:
    tinyhw.launch(file, "deep", 1, 32, arrays, "EMU")
  assert caught.value.source is None and "return p[i]" not in str(caught.value)
  file = built(tmp_path, "gfx1100", "-g0")
  with pytest.raises(tinyhw.PageFault, match=r"in kernel deep at get\+0x[0-9a-f]+\n  get\+0x") as caught:
    tinyhw.launch(file, "deep", 1, 32, arrays, "EMU")
  assert caught.value.file is None and "called by deep+0x" in str(caught.value)


HAZARDS = """\
#define GLOBAL __attribute__((address_space(1)))
static __attribute__((address_space(3), loader_uninitialized)) float tile[64];
__attribute__((amdgpu_kernel)) void turn(GLOBAL float *out, GLOBAL const float *in) {
  int i = __builtin_amdgcn_workitem_id_x();
  tile[i] = in[i];
  out[i] = tile[63 - i];
}
__attribute__((amdgpu_kernel)) void mask(GLOBAL float *out, int n) {
  int i = __builtin_amdgcn_workitem_id_x();
  if (i < n && out[i] > 1) out[i] = i == n ? 5 : 6;
}
"""


@needs_clang
def test_findings_name_both_lines(tmp_path: Path, device: str) -> None:
  (tmp_path / "turn.c").write_text(HAZARDS)
  subprocess.run(["clang-19", "-O2", "-g", "-x", "c", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-nogpulib", "-c",
                  "turn.c"], cwd=tmp_path, check=True)
  arrays = [np.zeros(64, np.float32), np.ones(64, np.float32)]
  found = tinyhw.launch(tmp_path / "turn.o", "turn", 1, 64, arrays, device, check="report").findings
  assert found is not None
  race = next(f for f in found if f.kind == "race")
  assert race.line == "turn.c:6: out[i] = tile[63 - i];" and race.other_line == "turn.c:5: tile[i] = in[i];"
  assert race.row()["line"] == race.line
  with pytest.raises(tinyhw.HazardFound) as caught:
    tinyhw.launch(tmp_path / "turn.o", "turn", 1, 64, arrays, device, check=True)
  assert "(turn.c:6: out[i] = tile[63 - i];)" in str(caught.value).splitlines()[0]


@needs_clang
def test_a_missing_s_wait_alu_says_which_clang_inserts_it(tmp_path: Path) -> None:
  """clang 19 inserts none for gfx1201, clang 22 does."""
  (tmp_path / "turn.c").write_text(HAZARDS)
  waits, clangs = {}, [c for c in ("clang-19", "clang-22") if shutil.which(c)]
  for clang in clangs:
    subprocess.run([clang, "-O0", "-x", "c", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx1201", "-nogpulib", "-c", "turn.c",
                    "-o", f"{clang}.o"], cwd=tmp_path, check=True)
    found = tinyhw.launch(tmp_path / f"{clang}.o", "mask", 1, 64, [np.full(64, 2, np.float32), np.int32(40)], "EMU",
                          check="report,wait").findings
    assert found is not None
    waits[clang] = [f for f in found if "s_wait_alu" in f.message]
  assert waits["clang-19"] and not waits.get("clang-22")
  hint = waits["clang-19"][0].hint
  assert hint is not None and "s_wait_alu depctr_" in hint and "clang 19 and older do not insert" in hint


@needs_clang
def test_the_command_tells_the_cause_first_and_the_fields_as_json(tmp_path: Path) -> None:
  words = [sys.executable, "-c", "from tinyhw.cli import main; main()", "launch", built(tmp_path), "--kernel", "deep",
           "--block", "32", "--arg", "out:f32:32", "--arg", "out:f32:32", "--arg", str(200 << 20), "--device", "EMU"]
  done = subprocess.run([*words, "--json"], capture_output=True, text=True, check=False, timeout=60)
  assert done.returncode == 1
  first, *facts = done.stderr.splitlines()
  assert first.startswith("tinyhw: GPU page fault: read of 4 bytes at 0x") and "in kernel deep at bugs.c:12" in first
  assert facts[0] == "  bugs.c:12: return p[i];" and all(line.startswith("  ") for line in facts)
  row = json.loads(done.stdout)["error"]
  assert (row["type"], row["kernel"], row["line"], row["access"]) == ("PageFault", "deep", 12, "read")
  assert row["source"] == "return p[i];" and isinstance(row["pc"], int) and row["text"] in done.stderr
