"""NVIDIA's nvrtc behind the stand-in: what it gives for machine code runs on mock cards."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_cli import run
from tinyhw.compile.nvidia import nvrtc
from tinyhw.mock.cuda.modules.rtc import virtual

PROGRAM = '''
import ctypes
from ctypes import byref, c_char_p, c_size_t, c_uint64, c_void_p

rtc, cuda = ctypes.CDLL("libnvrtc.so.13"), ctypes.CDLL("libcuda.so.1")
rtc.nvrtcGetErrorString.restype = c_char_p

def compiled(source, *options):
  program = c_void_p()
  assert rtc.nvrtcCreateProgram(byref(program), source, b"a.cu", 0, None, None) == 0
  code = rtc.nvrtcCompileProgram(program, len(options), (c_char_p * len(options))(*options))
  return program, code

def told(program, what):
  size = c_size_t()
  assert getattr(rtc, f"nvrtcGet{what}Size")(program, byref(size)) == 0
  room = ctypes.create_string_buffer(max(size.value, 1))
  if size.value: assert getattr(rtc, f"nvrtcGet{what}")(program, room) == 0
  return room.raw[:size.value]

source = b'extern "C" __global__ void k(int *x) { x[threadIdx.x] += N; }'
program, code = compiled(source, b"-DN=3", b"--gpu-architecture=sm_90")
assert code == 0
cubin, ptx = told(program, "CUBIN"), told(program, "PTX")
assert cubin[:4] == b"\\x7fELF" and b".target sm_90" in ptx and ptx.rstrip(b"\\0") in cubin
other, code = compiled(source, b"-DN=4", b"-arch", b"sm_90a")
assert code == 0 and b".target sm_90a" in told(other, "CUBIN") and told(program, "CUBIN") == cubin
alone, code = compiled(source, b"-DN=4", b"-arch=compute_80")
assert code == 0 and not told(alone, "CUBIN") and b".target sm_80" in told(alone, "PTX")
wrong, code = compiled(source, b"-arch=sm_90")
assert code == 6 and rtc.nvrtcGetErrorString(code) == b"NVRTC_ERROR_COMPILATION", code
assert b'identifier "N" is undefined' in told(wrong, "ProgramLog")
unknown, code = compiled(source, b"-arch=sm_12345")
assert code == 5 and rtc.nvrtcGetErrorString(5) == b"NVRTC_ERROR_INVALID_OPTION"

assert cuda.cuInit(0) == 0
context, module, function, memory = (c_uint64() for _ in range(4))
assert cuda.cuCtxCreate_v2(byref(context), 0, 0) == 0
assert cuda.cuModuleLoadData(byref(module), cubin) == 0
assert cuda.cuModuleGetFunction(byref(function), module, b"k") == 0
assert cuda.cuMemAlloc_v2(byref(memory), c_size_t(16)) == 0
numbers = (ctypes.c_int32 * 4)(1, 2, 3, 4)
cuda.cuMemcpyHtoD_v2(memory, numbers, c_size_t(16))
parameters = (c_void_p * 1)(ctypes.addressof(memory))
assert cuda.cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, None, parameters, None) == 0
cuda.cuMemcpyDtoH_v2(numbers, memory, c_size_t(16))
for p in (program, other, alone, wrong, unknown): assert rtc.nvrtcDestroyProgram(byref(p)) == 0
again, code = compiled(source, b"-DN=5", b"-arch=compute_90")
assert not told(again, "CUBIN")  # whatever had its handle before
print(list(numbers))
'''


@pytest.mark.skipif(nvrtc.find() is None, reason="there is no nvrtc")
def test_what_is_compiled_for_a_card_runs_on_its_mock(tmp_path: Path) -> None:
  (tmp_path / "program.py").write_text(PROGRAM)
  done = run("run", "--mockgpu", "sm_90", str(tmp_path / "program.py"))
  assert done.returncode == 0 and done.stdout == "[4, 5, 6, 7]\n", done.stderr


def test_real_architectures_become_virtual_ones() -> None:
  for given, wanted, real in (([b"-arch=sm_90"], [b"-arch=compute_90"], "sm_90"),
                              ([b"--gpu-architecture=sm_100a"], [b"--gpu-architecture=compute_100a"], "sm_100a"),
                              ([b"-arch", b"sm_80"], [b"-arch", b"compute_80"], "sm_80"),
                              ([b"-arch=compute_90"], [b"-arch=compute_90"], None), ([b"-arch"], [b"-arch"], None),
                              ([b"-Darch=sm_90", b"sm_90"], [b"-Darch=sm_90", b"sm_90"], None), ([], [], None)):
    assert virtual(given) == (wanted, real)
