"""HIP C++ as what is launched: on devices, in the debugger, in reports, from the shell, with NumPy beside it."""
from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests import command
from tests.kernels.test_cuda_source import SOURCE as CUDA
from tinyhw import Device
from tinyhw.compile.render.c import found
from tinyhw.core.errors import DecodeError, HazardFound, InvalidArgument, MissingTool, PageFault, Unsupported
from tinyhw.kernels.hip_source import HipSource
from tinyhw.kernels.sources import source_of

# CUDA's, for waves of any size.
SOURCE = CUDA.replace("__shfl_down_sync(~0u, mine, d)", "__shfl_down_sync(~0u, mine, d, 32)")
INCLUDE = "#include <hip/hip_runtime.h>\n"
X = np.arange(100, dtype=np.float32)
MATHEMATICS = """#include "hip/hip_runtime.h"
#define OF(f) *out++ = f(x);
__global__ void f32(float *out, float x) {
  OF(sqrtf) OF(fabsf) OF(floorf) OF(ceilf) OF(truncf) OF(rintf) OF(rsqrtf) OF(expf) OF(exp2f) OF(logf) OF(log2f)
  OF(log10f) OF(__sinf) OF(__cosf) OF(isnan)
  *out++ = fminf(x, 2); *out++ = fmodf(x, 0.75f); *out++ = copysignf(2, -x); *out++ = fmaf(x, x, 1);
  *out++ = ldexpf(x, 3); *out++ = max(x, 1.0f); *out++ = INFINITY;
}
__global__ void f64(double *out, double x) {
  OF(sqrt) OF(fabs) OF(floor) OF(ceil) OF(trunc) OF(rint) OF(rsqrt)
  *out++ = fmod(x, 0.75); *out++ = fma(x, x, 1.0); *out++ = fmax(x, 2.0); *out++ = ldexp(x, 3);
}
__global__ void bits(unsigned *out, unsigned x) {
  OF(__popc) OF(__clz) OF(__ffs) OF(__brev) OF(__popcll) OF(__clzll) OF(__ffsll)
  *out++ = min(x, 7u); *out++ = max((int)x, -1); *out++ = abs(-(int)x); *out++ = __float_as_uint(1.0f);
}
__global__ void lanes(unsigned *out) {
  unsigned t = threadIdx.x, n = blockDim.x;
  out[t] = __shfl_xor(t, 1); out[n + t] = __shfl_up(t, 3u, 32); out[2 * n + t] = __shfl_down(t, 3u, 16);
  out[3 * n + t] = __shfl(t, 5, 8); out[4 * n + t] = (unsigned)__shfl_xor((double)t, 2);
  out[5 * n + t] = __popcll(__ballot(t % 3 == 0)); out[6 * n + t] = __any(t == 40) + 2 * __all(t < 32);
  out[7 * n + t] = warpSize;
}
__global__ void counts(int *a, unsigned long long *b, float *c, double *d) {
  int t = threadIdx.x;
  atomicAdd(a, 3); atomicSub(a + 1, 2); atomicMax(a + 2, t); atomicMin(a + 3, -t); atomicAnd(a + 4, ~(1 << t % 31));
  atomicOr(a + 5, 1 << t % 31); atomicXor(a + 6, 1); atomicExch(a + 7, 9);
  for (int old = a[8], seen; (seen = atomicCAS(a + 8, old, old + 1)) != old; old = seen);
  atomicAdd(b, 1ull << 40); atomicAdd(c, 0.5f); atomicAdd(d, 0.25);
}
__constant__ float table[4] = {1, 2, 3, 4};
__device__ float4 twice(float4 v) { return v * 2.0f; }
__global__ void vectors(float4 *x) {
  float4 v = x[threadIdx.x];
  v.x += table[threadIdx.x];
  x[threadIdx.x] = twice(v) + make_float4(0, 0, 0, 1);
}
__global__ void places(unsigned *out) {
  extern __shared__ unsigned place[];
  dim3 block = blockDim, grid = gridDim;
  unsigned t = threadIdx.x + block.x * (threadIdx.y + block.y * threadIdx.z);
  unsigned b = blockIdx.x + grid.x * (hipBlockIdx_y + grid.y * blockIdx.z);
  place[t] = b * 1000 + t;
  __syncthreads();
  unsigned n = block.x * block.y * block.z;
  out[b * n + t] = place[n - 1 - t];
}
"""

CLANG = next(iter(found("clang")), "")
pytestmark = pytest.mark.skipif(shutil.which(CLANG.replace("clang", "ld.lld")) is None,
                                reason="there is no clang with its lld")


@pytest.fixture(autouse=True)
def mock(monkeypatch: pytest.MonkeyPatch) -> Any:
  monkeypatch.setenv("MOCKGPU", "gfx1100")
  monkeypatch.delenv("DEV", raising=False)
  yield
  Device.close()


@pytest.mark.parametrize("device", ["EMU", "AMD", None])
def test_kernels_by_the_names_of_the_source(device: str | None) -> None:
  """The text of CUDA's tests, which says that it is HIP's where the device does not."""
  source = SOURCE if device == "AMD" else INCLUDE + SOURCE

  def run(kernel: str, *args: Any, block: int = 128) -> list[Any]:
    return tinyhw.launch(source, kernel, 1, block, args, device, options=["-DPLUS=5"])
  assert (run("scale<float>", X, 3.0, 100)[0] == 3 * X).all()
  whole = np.arange(100, dtype=np.int64)
  assert (run("scale<long long>", whole, -7, 90)[0] == np.where(whole < 90, -7 * whole, whole)).all()
  assert run("plain", np.zeros(3, np.int32), block=3)[0].tolist() == [5, 5, 5]
  assert run("total", X, np.zeros(1, np.float32), 100)[1].tolist() == [4950]
  assert run("_Z5totalPKfPfi", X, np.zeros(1, np.float32), 100)[1].tolist() == [4950]  # as the code object has it


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
def test_what_the_header_has(arch: str) -> None:
  def run(kernel: str, block: Any, *args: Any, grid: Any = 1, shared: int = 0) -> list[Any]:
    options = [f"--offload-arch={arch}"]
    return tinyhw.launch(MATHEMATICS, kernel, grid, block, args, "EMU", shared, options=options)
  x = np.float32(1.3)
  one = np.float32(1)
  of = np.array([np.sqrt(x), x, 1, 2, 1, 1, one / np.sqrt(x), np.exp(x), np.exp2(x), np.log(x), np.log2(x), np.log10(x),
                 np.sin(x), np.cos(x), 0, x, np.fmod(x, np.float32(0.75)), -2, x * x + 1, 8 * x, x, np.inf], np.float32)
  assert np.allclose(run("f32", 1, np.zeros(22, np.float32), x)[0], of, rtol=2e-6, atol=0)
  y = 1.3
  of64 = [np.sqrt(y), y, 1, 2, 1, 1, 1 / np.sqrt(y), np.fmod(y, 0.75), y * y + 1, 2, 8 * y]
  assert np.allclose(run("f64", 1, np.zeros(11), np.float64(y))[0], of64, rtol=1e-15, atol=0)
  assert run("bits", 1, np.zeros(11, np.uint32), np.uint32(40))[0].tolist() == [
    2, 26, 4, 0x14000000, 2, 58, 4, 7, 40, 40, 0x3F800000]
  t, wave = np.arange(64), 64 if arch == "gfx942" else 32
  threes = np.array([sum(not i % 3 for i in range(w, w + wave)) for w in range(0, 64, wave)]).repeat(wave)
  rows = [t ^ 1, np.where(t % 32 >= 3, t - 3, t), np.where(t % 16 + 3 < 16, t + 3, t), t // 8 * 8 + 5, t ^ 2, threes,
          np.ones(64) if wave == 64 else np.where(t < 32, 2, 1), np.full(64, wave)]
  assert (run("lanes", 64, np.zeros((8, 64), np.uint32))[0] == np.array(rows)).all()
  a, b, c, d = run("counts", 64, np.array([0, 0, 0, 0, -1, 0, 0, 0, 0], np.int32), np.zeros(1, np.uint64),
                   np.zeros(1, np.float32), np.zeros(1))
  assert a.tolist() == [192, -128, 63, -63, -(1 << 31), (1 << 31) - 1, 0, 9, 64]
  assert (int(b[0]), float(c[0]), float(d[0])) == (64 << 40, 32, 16)
  assert run("vectors", 4, np.ones((4, 4), np.float32))[0].tolist() == [[2 * (2 + i), 2, 2, 3] for i in range(4)]
  at = np.arange(24)
  out = run("places", (4, 3, 2), np.zeros((8, 24), np.uint32), grid=(2, 2, 2), shared=96)[0]
  assert (out == np.arange(8)[:, None] * 1000 + 23 - at).all()


def test_files_text_and_what_is_none(tmp_path: Path) -> None:
  path = tmp_path / "a.hip"
  path.write_text('#include "own.h"\n' + SOURCE)
  (tmp_path / "own.h").write_text("#define PLUS 7\n")
  for given in (path, str(path)):
    source = HipSource.of(given)
    assert source is not None and source.name == str(path) and source.kernels == ["scale", "plain", "total", "wild"]
    assert tinyhw.launch(given, "plain", 1, 2, [np.zeros(2, np.int32)], "EMU")[0].tolist() == [7, 7]
  assert HipSource.of(SOURCE) is HipSource.of(SOURCE, "NV") is HipSource.of(SOURCE, "EMU") is None
  for text, device in ((INCLUDE + SOURCE, None), (SOURCE, "AMD:1"), (SOURCE.encode(), "HSA")):
    assert isinstance(source_of(text, device), HipSource)
  (tmp_path / "a.cu").write_text(SOURCE)
  for other in (b"\x7fELF__global__\0", b"__kernel void k() {}", tmp_path / "a.cu", "add.co", tmp_path, 7, None):
    assert HipSource.of(other, "AMD") is None
  with pytest.raises(InvalidArgument, match="none.hip.*No such file"): tinyhw.launch("none.hip", "k", 1, 1, [])


def test_faults_name_the_line(tmp_path: Path) -> None:
  path = tmp_path / "a.hip"
  path.write_text(SOURCE)
  line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if "100000000" in text)
  for given, name in ((path, "a.hip"), (INCLUDE + SOURCE, "HIP")):
    with pytest.raises(PageFault) as fault:
      tinyhw.launch(given, "wild", 1, 4, [np.zeros(4, np.int32)], "EMU", options=["-DPLUS=0"])
    assert f"{name}:{line + (name == 'HIP')}\n" in str(fault.value)


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  text = INCLUDE + SOURCE
  with pytest.raises(DecodeError, match="HIP:7: clang refuses it: use of undeclared identifier 'PLUS'"):
    tinyhw.launch(text, "plain", 1, 1, [X])
  for name, why in (("none", "undeclared"), ("scale", "overloaded"), ("scale<", "expected")):
    with pytest.raises(InvalidArgument, match=f"HIP: no kernel is '{name}' .*{why}.*there are scale, plain, total"):
      tinyhw.launch(text, name, 1, 1, [X], options=["-DPLUS=0"])
  with pytest.raises(InvalidArgument, match="refuses an option.*--none"):
    tinyhw.launch(text, "plain", 1, 1, [X], options=["--none"])
  with pytest.raises(InvalidArgument, match="float given for a pointer"):
    tinyhw.launch(text, "plain", 1, 1, [1.5], options=["-DPLUS=0"])
  monkeypatch.setenv("MOCKGPU", "sm_90")
  with pytest.raises(Unsupported, match=r"HIP C\+\+ on NV"): tinyhw.launch(text, "plain", 1, 1, [X], "NV")
  (tmp_path / "bin").mkdir()
  real = shutil.which(CLANG)
  assert real is not None
  monkeypatch.setenv("PATH", str(tmp_path / "bin"))
  with pytest.raises(MissingTool, match=r"^HIP: there is no clang; install clang and lld.*$"):
    tinyhw.launch(text, "plain", 1, 1, [X], "EMU")
  (tmp_path / "bin" / CLANG).symlink_to(real)
  with pytest.raises(MissingTool, match=r"^HIP: clang has no linker: .*; install clang and lld.*$"):
    tinyhw.launch(text, "plain", 1, 1, [X], "EMU", options=["-DPLUS=0"])


def test_debugger_report_and_checks_take_it() -> None:
  what = INCLUDE + SOURCE, "total", 1, 64, [X, np.zeros(1, np.float32), 100]
  with tinyhw.debug(*what, options=["-DPLUS=0"]) as session:
    session.run()
    assert session.buffers()[1].tolist() == [4950]
  report = tinyhw.report(*what, options=["-DPLUS=0"])
  assert report.buffers[1].tolist() == [4950] and "ds_bpermute_b32" in str(report.to_dict()["instructions"])
  checked = tinyhw.launch(*what, "EMU", options=["-DPLUS=0"], check="report")
  assert checked[1].tolist() == [4950] and checked.findings is not None and not checked.findings
  race = (what[0].replace("__syncthreads();", ""), *what[1:])
  with pytest.raises(HazardFound, match=r"race(.|\n)*HIP:1[4-8]"):
    tinyhw.launch(*race, "EMU", options=["-DPLUS=0"], check=True)


def test_the_shell(tmp_path: Path) -> None:
  (tmp_path / "a.hip").write_text(SOURCE)
  np.save(tmp_path / "x.npy", X)

  def tool(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return command.tinyhw(*words, cwd=tmp_path, env=os.environ | more)

  line = ("launch", "a.hip", "-k", "scale<float>", "-b", "128", "-a", "x.npy", "-a", "2", "-a", "100",
          "--option=-DPLUS=1")
  for more in ((), ("--device", "AMD"), ("--report",)):
    done = tool(*line, "-o", "0=y.npy", *more)
    assert done.returncode == 0, done.stderr
    assert (np.load(tmp_path / "y.npy") == 2 * X).all()
  done = tool("launch", "a.hip", "-a", "x.npy")
  assert done.returncode and "has 4 kernels; choose with --kernel: scale, plain, total, wild" in done.stderr
  done = tool("info", "a.hip")
  assert done.returncode == 0 and "HIP C++" in done.stdout and "MOCKGPU=gfx1100" in done.stdout, done.stderr
  assert "clang" in done.stdout and "total" in done.stdout
  words = ["tinyhw", "launch", "a.hip", "--kernel", "t"]
  done = tool(_TINYHW_COMPLETE="bash_complete", COMP_WORDS=" ".join(words), COMP_CWORD="4")
  assert "total" in done.stdout and "scale" not in done.stdout
