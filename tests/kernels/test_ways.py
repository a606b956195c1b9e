"""Every way to say what `tinyhw.launch` takes, on the mock GPU and on the emulator."""
from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tinyhw
from tinyhw import Device
from tinyhw.cli import tinyhw as tinyhw_command
from tinyhw.core.errors import Error, HazardFound, InvalidArgument, Unsupported

Build = Callable[..., bytes]
POINTER = "ptr addrspace(1)"

# Reverses 64 floats through dynamic LDS (HIP's `extern __shared__`), behind 256 bytes of its own
DYNAMIC = f"""
@own = internal addrspace(3) global [64 x i32] poison
@dynamic = external addrspace(3) global [0 x float], align 16
define amdgpu_kernel void @reverse({POINTER} %p) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %j = sub i32 63, %i
  %mine = getelementptr i32, ptr addrspace(3) @own, i32 %i
  store volatile i32 7, ptr addrspace(3) %mine
  %from = getelementptr float, {POINTER} %p, i32 %i
  %to = getelementptr float, ptr addrspace(3) @dynamic, i32 %i
  %x = load float, {POINTER} %from
  store float %x, ptr addrspace(3) %to
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %back = getelementptr float, ptr addrspace(3) @dynamic, i32 %j
  %y = load float, ptr addrspace(3) %back
  store float %y, {POINTER} %from
  ret void
}}
"""
# Two OpenCL `local` pointers: p[i] = &a[i] | &b[i] << 16, and a's and b's dwords hold what the other lanes wrote
LOCALS = f"""
define amdgpu_kernel void @locals({POINTER} %p, ptr addrspace(3) align 2 %a, ptr addrspace(3) align 16 %b) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %ia = getelementptr i16, ptr addrspace(3) %a, i32 %i
  %ib = getelementptr i32, ptr addrspace(3) %b, i32 %i
  %h = trunc i32 %i to i16
  store i16 %h, ptr addrspace(3) %ia
  store i32 1000, ptr addrspace(3) %ib
  call void @llvm.amdgcn.s.barrier()
  %x = load i16, ptr addrspace(3) %ia
  %y = load i32, ptr addrspace(3) %ib
  %w = zext i16 %x to i32
  %s = add i32 %w, %y
  %at = ptrtoint ptr addrspace(3) %ib to i32
  %o = getelementptr [2 x i32], {POINTER} %p, i32 %i
  %o1 = getelementptr i32, {POINTER} %o, i32 1
  store i32 %s, {POINTER} %o
  store i32 %at, {POINTER} %o1
  ret void
}}
"""
# p[0..2] = the members of a structure by value: {{i32, float, i64}}; p[3] = whether q is null
STRUCT = f"""
define amdgpu_kernel void @members({POINTER} %p, {{i32, float, i64}} %s, {POINTER} %q) #0 {{
  %a = extractvalue {{i32, float, i64}} %s, 0
  %b = extractvalue {{i32, float, i64}} %s, 1
  %c = extractvalue {{i32, float, i64}} %s, 2
  %b2 = fmul float %b, 2.0
  %bi = fptosi float %b2 to i64
  %al = sext i32 %a to i64
  %null = icmp eq {POINTER} %q, null
  %n = zext i1 %null to i64
  %p1 = getelementptr i64, {POINTER} %p, i32 1
  %p2 = getelementptr i64, {POINTER} %p, i32 2
  %p3 = getelementptr i64, {POINTER} %p, i32 3
  store i64 %al, {POINTER} %p
  store i64 %bi, {POINTER} %p1
  store i64 %c, {POINTER} %p2
  store i64 %n, {POINTER} %p3
  ret void
}}
"""
# p[0] = hidden_dynamic_lds_size
SIZE = f"""
@dynamic = external addrspace(3) global [0 x float], align 16
define amdgpu_kernel void @size({POINTER} %p) #0 {{
  %h = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr i8, ptr addrspace(4) %h, i64 120
  %x = load i32, ptr addrspace(4) %at
  store i32 %x, {POINTER} %p
  store volatile i32 %x, ptr addrspace(3) @dynamic
  ret void
}}
"""
# without a barrier: lane 63 of one wave reads what another wave writes
RACE = DYNAMIC.replace("  call void @llvm.amdgcn.s.barrier()\n", "")
assert RACE != DYNAMIC


@pytest.fixture(autouse=True)
def mock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  monkeypatch.setenv("MOCKGPU", "1")
  monkeypatch.delenv("DEV", raising=False)
  yield
  Device.close()


both = pytest.mark.parametrize("device", ["AMD", "EMU"])
X = np.arange(64, dtype=np.float32)


@both
def test_dynamic_lds(code_object: Build, device: str) -> None:
  binary = code_object(DYNAMIC)
  assert (tinyhw.launch(binary, "reverse", 1, 64, [X], device, 256)[0] == X[::-1]).all()
  assert (tinyhw.launch(binary, "reverse", 1, 64, [X], device, shared=64 * 1024 - 256)[0] == X[::-1]).all()
  with pytest.raises(InvalidArgument, match=r"65,537 bytes of LDS \(256 of its own and 65,281 dynamic\).*most 65,536"):
    tinyhw.launch(binary, "reverse", 1, 64, [X], device, shared=64 * 1024 - 255)
  for wrong in (-1, 1.5, True, "256"):
    with pytest.raises(InvalidArgument, match="reverse, shared: .* is no number of bytes"):
      tinyhw.launch(binary, "reverse", 1, 64, [X], device, shared=wrong)  # type: ignore[arg-type]


@both
def test_hidden_dynamic_lds_size(device: str, code_object: Build) -> None:
  binary = code_object(SIZE, attributes='"amdgpu-flat-work-group-size"="1,64" "uniform-work-group-size"="true"')
  assert tinyhw.launch(binary, "size", 1, 1, [np.zeros(1, np.int32)], device, shared=1000)[0][0] == 1000


@both
def test_pointers_to_lds_take_bytes(code_object: Build, device: str) -> None:
  binary, p = code_object(LOCALS), np.zeros((64, 2), np.int32)
  (out,) = tinyhw.launch(binary, "locals", 1, 64, [p, 130, 256], device)
  assert (out[:, 0] == np.arange(64) + 1000).all()
  assert (out[:, 1] == 144 + 4 * np.arange(64)).all(), "b begins behind a, aligned"
  for wrong in (None, -1, 1.0, True, np.zeros(4, np.int16)):
    with pytest.raises(InvalidArgument, match="argument 1.*given for a pointer to LDS; give the number of bytes"):
      tinyhw.launch(binary, "locals", 1, 64, [p, wrong, 256], device)
  with pytest.raises(InvalidArgument, match="shared: 64 bytes, and the arguments that point to LDS have theirs"):
    tinyhw.launch(binary, "locals", 1, 64, [p, 128, 256], device, shared=64)
  with pytest.raises(InvalidArgument, match="needs 65,792 bytes of LDS, a workgroup has at most 65,536"):
    tinyhw.launch(binary, "locals", 1, 64, [p, 65536, 256], device)


class Record(ctypes.Structure):
  _fields_ = (("a", ctypes.c_int32), ("b", ctypes.c_float), ("c", ctypes.c_int64))


RECORD = np.dtype([("a", "i4"), ("b", "f4"), ("c", "i8")])
STRUCTS = {"bytes": np.array((-5, 1.5, 1 << 40), RECORD).tobytes(), "scalar": np.array((-5, 1.5, 1 << 40), RECORD)[()],
           "record": np.rec.array([(-5, 1.5, 1 << 40)], RECORD)[0], "array": np.array((-5, 1.5, 1 << 40), RECORD),
           "ctypes": Record(-5, 1.5, 1 << 40)}


@both
@pytest.mark.parametrize("how", STRUCTS)
def test_structures_by_value_and_null_pointers(code_object: Build, device: str, how: str) -> None:
  binary, p = code_object(STRUCT), np.zeros(4, np.int64)
  (out,) = tinyhw.launch(binary, "members", 1, 1, [p, STRUCTS[how], None], device)
  assert out.tolist() == [-5, 3, 1 << 40, 1]
  out, _ = tinyhw.launch(binary, "members", 1, 1, [p, STRUCTS[how], np.zeros(0, np.float32)], device)
  assert out[3] == 0, "an array without elements has an address"


@both
def test_structures_of_another_size_are_refused(code_object: Build, device: str) -> None:
  for wrong in (bytes(15), bytes(17), b"", np.zeros((), "i4,f4")[()], np.zeros(2, RECORD)):
    with pytest.raises(InvalidArgument, match=r"argument 1.*16 bytes"):
      tinyhw.launch(code_object(STRUCT), "members", 1, 1, [np.zeros(4, np.int64), wrong, None], device)


@both
def test_a_path_is_a_code_object(code_object: Build, add_source: str, device: str, tmp_path: Path) -> None:
  path = tmp_path / "add.co"
  path.write_bytes(code_object(add_source))
  whole: tuple[Any, ...] = str(path), path, bytearray(path.read_bytes()), memoryview(path.read_bytes())
  for binary in whole:
    out, _ = tinyhw.launch(binary, "add", 1, (64,), [np.zeros_like(X), X, np.float32(2)], device)
    assert (out == X + 2).all()
  with pytest.raises(InvalidArgument, match=r"none.co'.*No such file"):
    tinyhw.launch(tmp_path / "none.co", "add", 1, 64, [], device)
  with pytest.raises(InvalidArgument, match="Is a directory"): tinyhw.launch(tmp_path, "add", 1, 64, [], device)
  with pytest.raises(InvalidArgument, match="int given for a code object"):
    tinyhw.launch(7, "add", 1, 64, [], device)  # type: ignore[arg-type]


@both
@pytest.mark.parametrize("counts", [4, (4,), [4, 1], np.int32(4), np.array([4, 1, 1])])
def test_grid_and_block_as_ints_or_sequences(code_object: Build, add_source: str, device: str, counts: Any) -> None:
  x = np.arange(256, dtype=np.float32)
  args = [np.zeros_like(x), x, np.float32(1)]
  out, _ = tinyhw.launch(code_object(add_source), "add", counts, np.int64(64), args, device)
  assert (out == x + 1).all()


@pytest.mark.parametrize("wrong", [0, -1, True, 1.0, "4", None, (), (1, 1, 1, 1), (1, 0), (True,)])
def test_wrong_counts(code_object: Build, add_source: str, wrong: Any) -> None:
  for sizes, name in (((wrong, 64), "grid"), ((1, wrong), "block")):
    with pytest.raises(InvalidArgument, match=f"{name}: .*positive counts"):
      tinyhw.launch(code_object(add_source), "add", *sizes, [X, X, np.float32(1)], "EMU")


@both
def test_arrays_that_are_no_numpy_arrays(code_object: Build, add_source: str, device: str) -> None:
  class Tensor:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any: return X
  out, x = tinyhw.launch(code_object(add_source), "add", 1, 64, [np.zeros_like(X), Tensor(), np.float32(1)], device)
  assert (out == X + 1).all() and (x == X).all()


# ---- check and report

@both
def test_checks_and_a_report_of_one_launch(code_object: Build, device: str) -> None:
  good, bad = code_object(DYNAMIC, cpu="gfx1100"), code_object(RACE)
  done = tinyhw.launch(good, "reverse", 1, 64, [X], device, 256, check=True, report=True)
  assert (done[0] == X[::-1]).all() and done.findings is not None and not done.findings
  assert done.report is not None and done.report.kernel == "reverse" and done.report.units["LDS"]
  assert (done.report.buffers[0] == X[::-1]).all()
  with pytest.raises(HazardFound, match="the checks found 1 hazard: race.*check='report'") as caught:
    tinyhw.launch(bad, "reverse", 1, 64, [X], device, 256, check=True)
  assert caught.value.findings[0]["kind"] == "race"
  done = tinyhw.launch(bad, "reverse", 1, 64, [X], device, 256, check="report", report=True)
  assert done.findings is not None and [f.kind for f in done.findings] == ["race"] and done.report is not None
  assert not tinyhw.launch(bad, "reverse", 1, 64, [X], device, 256, check="bounds").findings
  plain = tinyhw.launch(bad, "reverse", 1, 64, [X], device, 256)
  assert plain.findings is None and plain.report is None
  with pytest.raises(InvalidArgument, match="no check is called nothing"):
    tinyhw.launch(bad, "reverse", 1, 64, [X], device, 256, check="nothing")


def test_checks_need_an_emulated_device(code_object: Build, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr("tinyhw.kernels.launch.mock_cards", lambda: None)
  with pytest.raises(Unsupported, match="hazard checks on a card; set MOCKGPU=1"):
    tinyhw.launch(code_object(RACE), "reverse", 1, 64, [X], "AMD", check=True)


@both
def test_debugger_and_report_take_what_launch_takes(code_object: Build, device: str, tmp_path: Path) -> None:
  path = tmp_path / "reverse.co"
  path.write_bytes(code_object(DYNAMIC))
  assert (tinyhw.report(path, "reverse", 1, 64, [X], shared=256).buffers[0] == X[::-1]).all()
  with tinyhw.debug(str(path), "reverse", 1, 64, [X], shared=256) as session:
    session.run()
    assert (session.buffers()[0] == X[::-1]).all()


# ---- which device

def test_the_device_is_the_one_that_DEV_names(code_object: Build, monkeypatch: pytest.MonkeyPatch) -> None:
  binary = code_object(DYNAMIC)
  monkeypatch.setenv("MOCKGPU", "gfx1100,gfx1100")
  for name, opened in (("", "AMD"), ("EMU", "EMU"), ("amd", "AMD"), ("AMD:1", "AMD:1")):
    monkeypatch.setenv("DEV", name)
    assert (tinyhw.launch(binary, "reverse", 1, 64, [X], shared=256)[0] == X[::-1]).all()
    assert [d.name for d in Device.opened] == [opened]
    Device.close()
  monkeypatch.setenv("DEV", "FOO")
  with pytest.raises(InvalidArgument, match="DEV: no device kind is called 'FOO'; there are LLVM"):
    tinyhw.launch(binary, "reverse", 1, 64, [X], shared=256)
  tinyhw.launch(binary, "reverse", 1, 64, [X], "EMU", 256)
  monkeypatch.setenv("DEV", "LLVM")
  with pytest.raises(Unsupported, match="launch of ready code objects on LLVM"):
    tinyhw.launch(binary, "reverse", 1, 64, [X], shared=256)


def shell(*words: str, **env: str) -> tuple[str, str]:
  """What the command prints, and the error that it ends with."""
  Device.close()
  done = CliRunner(env={"DEV": None, "MOCKGPU": None} | env).invoke(tinyhw_command, words)
  assert done.exception is None or isinstance(done.exception, Error), done.output
  return done.stdout, str(done.exception or "")


def test_the_same_from_the_shell(code_object: Build, tmp_path: Path) -> None:
  (tmp_path / "reverse.co").write_bytes(code_object(DYNAMIC))
  (tmp_path / "locals.co").write_bytes(code_object(LOCALS))
  np.save(tmp_path / "x.npy", X)
  words = ("launch", str(tmp_path / "reverse.co"), "--block", "64", "--arg", str(tmp_path / "x.npy"), "--json")
  for env in ({"DEV": "EMU"}, {"DEV": "AMD", "MOCKGPU": "1"}, {"DEV": "AMD:1", "MOCKGPU": "gfx1100,gfx1100"}):
    text, error = shell(*words, "--shared", "256", **env)
    assert not error and json.loads(text)["buffers"][0]["data"] == X[::-1].tolist()
  assert "at most 65,536" in shell(*words, "--shared", "70000", DEV="EMU")[1]
  assert "DEV: no device kind is called 'FOO'" in shell(*words, DEV="FOO")[1]
  assert "DEV: no device kind is called 'FOO'" in shell(*words, "--report", DEV="FOO")[1]
  assert "--device: no device kind is called 'BAR'" in shell(*words, "--device", "BAR", DEV="EMU")[1]
  assert "no /dev/kfd" in shell(*words, "--shared", "256", DEV="AMD")[1] or os.path.exists("/dev/kfd")
  assert not shell(*words, "--shared", "256", "--device", "EMU", DEV="AMD:7")[1]
  locals_ = "launch", str(tmp_path / "locals.co"), "--block", "4", "--arg", "out:i32:8", "--arg", "8", "--arg", "16"
  assert "[1000   16 1001   20 1002   24 1003   28]" in shell(*locals_, DEV="EMU")[0]


def test_the_command_runs_as_a_program(code_object: Build, tmp_path: Path) -> None:
  """Warnings are a line of the command's own on stderr; DEV counts."""
  (tmp_path / "reverse.co").write_bytes(code_object(DYNAMIC))
  command = [sys.executable, "-c", "from tinyhw.cli import main; main()", "launch", str(tmp_path / "reverse.co"),
             "--block", "200", "--arg", "out:f32:200"]
  done = subprocess.run(command, env=os.environ | {"DEV": "EMU"}, capture_output=True, text=True, timeout=60)
  assert done.returncode == 0 and done.stderr.startswith("tinyhw: warning: kernel reverse at reverse+0x"), done.stderr
  assert done.stderr.count("\n") == 1


def test_nothing_is_left_on_the_device_after_an_error(code_object: Build) -> None:
  runtime: Any = Device["EMU"].runtime
  tinyhw.launch(code_object(DYNAMIC), "reverse", 1, 64, [X], "EMU", 256)
  places = list(runtime.places)
  with pytest.raises(Error): tinyhw.launch(code_object(DYNAMIC), "reverse", 1, 64, [X, X], "EMU", 256)
  with pytest.raises(Error): tinyhw.launch(code_object(LOCALS), "locals", 1, 64, [X, -1, 0], "EMU")
  assert [p for p in runtime.places if p.name != "code"] == [p for p in places if p.name != "code"]
