"""The checks as users meet them: EMU_CHECK and `tinyhw launch --check`, each in a process of its own."""
from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import command
from tests.emulator.gpu import compile_gpu
from tinyhw.emulator.check.report import KINDS

RACE = """
@l = internal addrspace(3) global [64 x i32] undef
define amdgpu_kernel void @k(ptr addrspace(1) %a) #0 {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %s = getelementptr [64 x i32], ptr addrspace(3) @l, i32 0, i32 %x
  store i32 %x, ptr addrspace(3) %s
  BARRIER
  %y = sub i32 63, %x
  %r = getelementptr [64 x i32], ptr addrspace(3) @l, i32 0, i32 %y
  %w = load i32, ptr addrspace(3) %r
  %p = getelementptr i32, ptr addrspace(1) %a, i32 %x
  store i32 %w, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
attributes #0 = { "amdgpu-flat-work-group-size"="64,64" }
"""
BARRIER = ('fence syncscope("workgroup") release\n  call void @llvm.amdgcn.s.barrier()\n'
           '  fence syncscope("workgroup") acquire')
ARGUMENTS = ("--kernel", "k", "--grid", "1", "--block", "64", "--arg", "out:u32:64")


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
  folder = tmp_path_factory.mktemp("objects")
  for name, text in (("race", ""), ("fine", BARRIER)):
    (folder / name).write_bytes(compile_gpu(RACE.replace("BARRIER", text)))
  return {name: folder / name for name in ("race", "fine")}


def run(file: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
  env = os.environ | {"MOCKGPU": "1"} | environment
  return command.tinyhw("launch", str(file), *ARGUMENTS, *options, env=env)


def test_a_launch_with_findings_fails_like_a_fault(objects: dict[str, Path]) -> None:
  done = run(objects["race"], EMU_CHECK="1")
  assert done.returncode == 1 and done.stdout == ""
  assert "the checks found 1 hazard: race: " in done.stderr and "ds_load_b32" in done.stderr
  done = run(objects["fine"], EMU_CHECK="1")
  assert done.returncode == 0 and done.stderr == "" and done.stdout.startswith("buffer 0: uint32[64] [63 62 61")


def test_report_goes_on(objects: dict[str, Path]) -> None:
  done = run(objects["race"], EMU_CHECK="report")
  assert done.returncode == 0 and done.stdout.startswith("buffer 0: ")
  line, = done.stderr.splitlines()
  assert line.startswith("tinyhw: check: race: ")
  assert run(objects["race"], EMU_CHECK="report,barrier").stderr == ""


def test_the_option_prints_a_table_and_json(objects: dict[str, Path]) -> None:
  done = run(objects["race"], "--check")
  assert done.returncode == 1 and done.stderr == ""
  assert [line.split()[0] for line in done.stdout.splitlines()] == ["buffer", "race", "+0x0020", "+0x0018"]
  finding, = json.loads(run(objects["race"], "--check", "--json").stdout)["findings"]
  assert finding["kind"] == "race" and finding["pc"] - finding["entry"] == 0x20 and finding["other_pc"]
  done = run(objects["fine"], "--check")
  assert done.returncode == 0 and done.stdout.endswith("checks: nothing found\n")


def test_the_option_takes_names_of_checks(objects: dict[str, Path]) -> None:
  done = run(objects["race"], "--check=wait,race")
  assert done.returncode == 1 and "\nrace " in done.stdout
  done = run(objects["race"], "--check=barrier")
  assert done.returncode == 0 and done.stdout.endswith("checks: nothing found\n")
  assert run(objects["race"], "--check", EMU_CHECK="report,barrier").returncode == 0
  assert run(objects["race"], "--check=race", EMU_CHECK="report,barrier").returncode == 1
  done = run(objects["race"], "--check=luck,race")
  told, = done.stderr.splitlines()
  assert done.returncode != 0 and done.stdout == "" and "--check=luck,race: no check is called luck" in told
  assert all(name in told for name in KINDS)


def test_names_of_checks_are_only_those_behind_the_equals_sign(tmp_path: Path) -> None:
  """What follows a plain --check is the verb's own; what follows the program of `tinyhw run` is that program's."""
  (tmp_path / "tell.py").write_text("import os, sys; print(sys.argv[1:], os.environ.get('EMU_CHECK'))")
  env = {k: v for k, v in os.environ.items() if k != "EMU_CHECK"}
  for options, expected in ((("--check", "tell.py", "--check", "x"), "['--check', 'x'] report"),
                            (("--check=race,wait", "tell.py"), "[] report,race,wait"),
                            (("--mockgpu", "sm_90", "--check", "--", "tell.py"), "[] report"),
                            (("tell.py", "--check=luck"), "['--check=luck'] None")):
    done = command.tinyhw("run", *options, env=env, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.strip() == expected, (options, done.stderr)
  done = command.tinyhw("run", "--check=luck", "tell.py", cwd=tmp_path)
  assert done.returncode != 0 and "--check=luck: no check is called luck" in done.stderr


def test_what_cannot_be_checked_is_refused(objects: dict[str, Path]) -> None:
  assert "no check is called luck" in run(objects["fine"], EMU_CHECK="luck").stderr
  assert "set MOCKGPU=1" in run(objects["fine"], "--check", "--device", "AMD", MOCKGPU="").stderr


def test_without_a_mock_the_emulator_itself_runs_the_kernel(objects: dict[str, Path]) -> None:
  done = run(objects["race"], "--check", MOCKGPU="")
  assert done.returncode == 1 and "ds_store_b32 v1, v0" in done.stdout
