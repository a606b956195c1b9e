"""nvJitLink's stand-in: what it links runs on mock cards; of mistakes a program hears what NVIDIA's own says."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_cli import run
from tinyhw.compile.nvidia import nvjitlink, nvrtc
from tinyhw.mock.cuda.modules.jitlink import sm_of

PROGRAM = '''
import ctypes
from ctypes import byref, c_char_p, c_size_t, c_uint64, c_void_p

rtc, jit, cuda = ctypes.CDLL("libnvrtc.so.13"), ctypes.CDLL("libnvJitLink.so.13"), ctypes.CDLL("libcuda.so.1")
CUBIN, PTX, LTOIR, LIBRARY = 1, 2, 3, 6

def compiled(source, what, *options):
  program, size = c_void_p(), c_size_t()
  assert rtc.nvrtcCreateProgram(byref(program), source, b"a.cu", 0, None, None) == 0
  assert rtc.nvrtcCompileProgram(program, len(options), (c_char_p * len(options))(*options)) == 0
  assert getattr(rtc, f"nvrtcGet{what}Size")(program, byref(size)) == 0
  room = ctypes.create_string_buffer(size.value)
  assert getattr(rtc, f"nvrtcGet{what}")(program, room) == 0
  return room.raw

def begun(*options):
  handle = c_void_p()
  return handle, jit.nvJitLinkCreate(byref(handle), len(options), (c_char_p * len(options))(*options))

def added(handle, kind, data): return jit.nvJitLinkAddData(handle, kind, data, c_size_t(len(data)), b"an input")

def told(handle, what):
  size = c_size_t()
  if code := getattr(jit, f"nvJitLinkGet{what}Size")(handle, byref(size)): return code
  room = ctypes.create_string_buffer(size.value)
  assert getattr(jit, f"nvJitLinkGet{what}")(handle, room) == 0
  return room.raw

kernel = b"extern \\"C\\" { __device__ int f(int); __global__ void k(int *x) { x[threadIdx.x] = f(x[threadIdx.x]); } }"
other = b"extern \\"C\\" __device__ int f(int x) { return 3 * x + 1; }"
a, b = (compiled(s, "PTX", b"-arch=compute_90", b"-rdc=true") for s in (kernel, other))
ai, bi = (compiled(s, "LTOIR", b"-arch=compute_90", b"-dlto") for s in (kernel, other))

assert cuda.cuInit(0) == 0
context, memory = c_uint64(), c_uint64()
assert cuda.cuCtxCreate_v2(byref(context), 0, 0) == 0 and cuda.cuMemAlloc_v2(byref(memory), c_size_t(16)) == 0
parameters = (c_void_p * 1)(ctypes.addressof(memory))

def ran(cubin):
  module, function, numbers = c_uint64(), c_uint64(), (ctypes.c_int32 * 4)(1, 2, 3, 4)
  assert cubin[:4] == b"\\x7fELF" and cuda.cuModuleLoadData(byref(module), cubin) == 0
  assert cuda.cuModuleGetFunction(byref(function), module, b"k") == 0
  cuda.cuMemcpyHtoD_v2(memory, numbers, c_size_t(16))
  assert cuda.cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, None, parameters, None) == 0
  cuda.cuMemcpyDtoH_v2(numbers, memory, c_size_t(16))
  return list(numbers)

for inputs, options in ((((PTX, a), (PTX, b)), ()), (((LTOIR, ai), (LTOIR, bi)), (b"-lto",)),
                        (((LTOIR, ai), (PTX, b)), (b"-lto",)), (((PTX, a), (PTX, b)), (b"-lto",)),
                        (((LTOIR, ai), (LTOIR, bi), (LIBRARY, b"!<arch>")), (b"-lto",))):
  link, code = begun(b"-arch=sm_90", *options)
  assert code == 0 and all(added(link, *i) == 0 for i in inputs)
  assert jit.nvJitLinkComplete(link) == 0, told(link, "ErrorLog")
  print(ran(told(link, "LinkedCubin")), told(link, "LinkedPtx"))
  last = told(link, "LinkedCubin")
  assert jit.nvJitLinkDestroy(byref(link)) == 0
link, code = begun(b"-arch=sm_90")
assert added(link, CUBIN, last) == 0 and jit.nvJitLinkComplete(link) == 0
assert ran(told(link, "LinkedCubin")) == [4, 7, 10, 13]
link, code = begun(b"-arch=sm_90", b"-lto", b"-ptx")
assert not any(added(link, LTOIR, i) for i in (ai, bi)) and jit.nvJitLinkComplete(link) == 0
assert b".entry k" in told(link, "LinkedPtx") and told(link, "LinkedCubin") != 0
link, code = begun(b"-arch=sm_90")
assert added(link, PTX, b"nonsense") == 12 and b"does not match type" in told(link, "ErrorLog")
link, code = begun(b"-arch=sm_90")
assert added(link, PTX, a) == 0 and jit.nvJitLinkComplete(link) == 6
assert b"Undefined reference to \'f\'" in told(link, "ErrorLog")
link, code = begun(b"-arch=sm_90", b"-lto")
assert added(link, LTOIR, bi) == 0 and added(link, PTX, a) == 0 and jit.nvJitLinkComplete(link) == 9
assert b"Undefined reference to \'f\'" in told(link, "ErrorLog")  # NVIDIA\'s leaves out what LTO-IR alone does not call
link, code = begun(b"-arch=sm_90", b"-nothing")
assert code == 1
major, minor = ctypes.c_uint32(), ctypes.c_uint32()
assert jit.nvJitLinkVersion(byref(major), byref(minor)) == 0 and major.value == 13
'''


@pytest.mark.skipif(nvrtc.find() is None or nvjitlink.find() is None, reason="there is no nvrtc or no nvJitLink")
def test_what_is_linked_for_a_card_runs_on_its_mock(tmp_path: Path) -> None:
  (tmp_path / "program.py").write_text(PROGRAM)
  done = run("run", "--mockgpu", "sm_90", str(tmp_path / "program.py"))
  assert done.returncode == 0 and done.stdout == "[4, 7, 10, 13] 3\n" * 5, done.stderr + done.stdout


def test_the_sm_of_options() -> None:
  for given, wanted in (([b"-lto", b"-arch=sm_90"], 90), ([b"-arch=sm_100a"], 100), ([b"-arch=sm_120f"], 120),
                        ([b"-arch=compute_90"], None), ([b"-arch=sm_"], None), ([], None)):
    assert sm_of(given) == wanted
