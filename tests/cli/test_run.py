"""`tinyhw run`: programs of CUDA's driver in a process of their own."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import run

if sys.platform != "linux": pytest.skip("the stand-in is made for Linux", allow_module_level=True)

PROGRAM = '''
"""Adds 1 to 64 numbers on a GPU."""
import ctypes, os, sys

cuda = ctypes.CDLL("libcuda.so.1")
assert ctypes.CDLL(os.environ["CUDA_PATH"]).cuInit(0) == 0 and os.path.isfile(os.environ["CUDA_PATH"])
def checked(code):
  if code: raise SystemExit(f"CUDA error {code}")
def made(function, *arguments):
  handle = ctypes.c_uint64()
  checked(function(ctypes.byref(handle), *arguments))
  return handle
device, context = ctypes.c_int(), ctypes.c_uint64()
checked(cuda.cuDeviceGet(ctypes.byref(device), int(sys.argv[1])))
checked(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
text = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .u64 %rd<3>; .reg .u32 %r<3>;
  ld.param.u64 %rd0, [p];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd1, %r0, 4;
  add.u64 %rd0, %rd0, %rd1;
  ld.global.u32 %r1, [%rd0];
  add.u32 %r1, %r1, 1;
  st.global.u32 [%rd0], %r1;
  ret;
}"""
module = made(cuda.cuModuleLoadData, text)
kernel = made(cuda.cuModuleGetFunction, module, b"k")
memory = made(cuda.cuMemAlloc_v2, ctypes.c_size_t(256))
numbers = (ctypes.c_uint32 * 64)(*range(64))
checked(cuda.cuMemcpyHtoD_v2(memory, numbers, ctypes.c_size_t(256)))
if sys.argv[3:] == ["freed"]: checked(cuda.cuMemFree_v2(memory))
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
checked(cuda.cuLaunchKernel(kernel, 1, 1, 1, int(sys.argv[2]), 1, 1, 0, None, parameters, None))
checked(cuda.cuCtxSynchronize())
checked(cuda.cuMemcpyDtoH_v2(numbers, memory, ctypes.c_size_t(256)))
print(list(numbers) == [k + 1 for k in range(64)], __name__, sys.argv[1:])
cuda.cuGraphicsMapResources(0, None, None)
'''


@pytest.fixture
def program(tmp_path: Path) -> str:
  (tmp_path / "add_one.py").write_text(PROGRAM)
  return str(tmp_path / "add_one.py")


def test_a_program_runs_as_it_is(program: str) -> None:
  done = run("run", "--mockgpu", "sm_90,sm_80", program, "1", "64")
  assert (done.returncode, done.stdout) == (0, "True __main__ ['1', '64']\n"), done.stderr
  assert done.stderr == "tinyhw: cuGraphicsMapResources: cuGraphicsMapResources is not modelled\n"


def test_what_a_kernel_does_wrong_is_told(program: str) -> None:
  done = run("run", program, "0", "64", "freed", MOCKGPU="sm_80")
  assert done.returncode == 1 and "CUDA error 700" in done.stderr and not done.stdout
  assert "GPU page fault" in done.stderr and "in kernel k at PTX:1" in done.stderr


def test_a_module_runs_by_its_name(tmp_path: Path) -> None:
  (tmp_path / "one.py").write_text("import sys, ctypes\nprint(ctypes.CDLL('libcuda.so.1').cuInit(0), sys.argv[1:])\n")
  done = run("run", "-m", "one", "--mockgpu", PYTHONPATH=str(tmp_path))
  assert (done.returncode, done.stdout) == (0, "0 ['--mockgpu']\n"), done.stderr


def test_its_exit_status_is_the_programs(tmp_path: Path) -> None:
  (tmp_path / "bad.py").write_text("raise SystemExit(7)\n")
  assert run("run", str(tmp_path / "bad.py")).returncode == 7
  (tmp_path / "raises.py").write_text("raise KeyError('x')\n")
  done = run("run", str(tmp_path / "raises.py"))
  assert done.returncode == 1 and "KeyError" in done.stderr


def test_what_cannot_run_is_said() -> None:
  done = run("run", "nothing.py")
  assert done.returncode == 1
  assert done.stderr == "tinyhw: nothing.py: there is no such file; -m runs a module by its name\n"
  done = run("run", "--mockgpu", "gfx1100", __file__)
  assert done.returncode == 1 and "no card is called 'gfx1100'" in done.stderr
