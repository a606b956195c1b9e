"""CUDA C++ as what is launched: on devices, in the debugger, in reports, from the shell."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests import command
from tinyhw import Device
from tinyhw.compile.nvidia import nvrtc
from tinyhw.core.errors import DecodeError, InvalidArgument, PageFault, Unsupported
from tinyhw.kernels.cuda_source import CudaSource

SOURCE = """template <typename T> __global__ void scale(T *x, T by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}
extern "C" __global__ void __launch_bounds__(128) plain(int *x) {
  x[threadIdx.x] += PLUS;
}
__global__ void total(const float *x, float *sum, int n) {
  __shared__ float part[32];
  float mine = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) mine += x[i];
  for (int d = 16; d; d >>= 1) mine += __shfl_down_sync(~0u, mine, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0) for (int w = 0; w < blockDim.x / 32; w++) atomicAdd(sum, part[w]);
}
__global__ void wild(int *x) {
  x[threadIdx.x + 100000000] = 2;
}
"""
X = np.arange(100, dtype=np.float32)

pytestmark = pytest.mark.skipif(nvrtc.find() is None, reason="there is no nvrtc")


@pytest.fixture(autouse=True)
def mock(monkeypatch: pytest.MonkeyPatch) -> Any:
  monkeypatch.setenv("MOCKGPU", "sm_90,gfx1100")
  monkeypatch.delenv("DEV", raising=False)
  yield
  Device.close()


@pytest.mark.parametrize("device", ["EMU", "NV", None])
@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_kernels_by_the_names_of_the_source(device: str | None, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", engine)
  def run(kernel: str, *args: Any, block: int = 128) -> list[Any]:
    return tinyhw.launch(SOURCE, kernel, 1, block, args, device, options=["-DPLUS=5"])
  assert (run("scale<float>", X, 3.0, 100)[0] == 3 * X).all()
  whole = np.arange(100, dtype=np.int64)
  assert (run("scale<long long>", whole, -7, 90)[0] == np.where(whole < 90, -7 * whole, whole)).all()
  assert run("plain", np.zeros(3, np.int32), block=3)[0].tolist() == [5, 5, 5]
  assert run("total", X, np.zeros(1, np.float32), 100)[1].tolist() == [4950]
  assert run("_Z5totalPKfPfi", X, np.zeros(1, np.float32), 100)[1].tolist() == [4950]  # as PTX has it


def test_files_bytes_and_what_is_none(tmp_path: Path) -> None:
  path = tmp_path / "a.cu"
  path.write_text(SOURCE)
  for given in (path, str(path), SOURCE.encode(), SOURCE):
    found = CudaSource.of(given)
    assert found is not None and found.kernels == ["scale", "plain", "total", "wild"]
    assert found.name == (str(path) if given in (path, str(path)) else "CUDA")
  ptx, name = CudaSource(SOURCE.encode()).compiled("total", "sm_80", ["-DPLUS=1"])
  for other in (ptx, ptx.decode(), b"\x7fELF__global__\0", b"__kernel void k() {}", "add.co", tmp_path, 7, None):
    assert CudaSource.of(other) is None
  with pytest.raises(InvalidArgument, match="none.cu.*No such file"): tinyhw.launch("none.cu", "k", 1, 1, [])
  with pytest.raises(InvalidArgument, match=r"options: are for CUDA C\+\+ and HIP C\+\+"):
    tinyhw.launch(ptx, name, 1, 1, [X, X, 0], options=["-DA"])


def test_faults_name_the_line(tmp_path: Path) -> None:
  path = tmp_path / "a.cu"
  path.write_text(SOURCE)
  line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if "100000000" in text)
  with pytest.raises(PageFault) as fault:
    tinyhw.launch(path, "wild", 1, 4, [np.zeros(4, np.int32)], "EMU", options=["-DPLUS=0"])
  assert f"a.cu:{line}\n" in str(fault.value)


def test_what_is_refused(tmp_path: Path) -> None:
  with pytest.raises(DecodeError, match='CUDA:6: nvrtc refuses it: identifier "PLUS" is undefined'):
    tinyhw.launch(SOURCE, "plain", 1, 1, [X])
  for name, why in (("none", "undefined"), ("scale", "cannot determine which instance"), ("scale<", "expected")):
    with pytest.raises(InvalidArgument, match=f"CUDA: no kernel is '{name}' .*{why}.*there are scale, plain, total"):
      tinyhw.launch(SOURCE, name, 1, 1, [X], options=["-DPLUS=0"])
  with pytest.raises(InvalidArgument, match="refuses an option.*-none"):
    tinyhw.launch(SOURCE, "plain", 1, 1, [X], options=["--none"])
  (path := tmp_path / "a.cu").write_text(SOURCE)  # text alone would be HIP's there
  with pytest.raises(Unsupported, match=r"CUDA C\+\+ on AMD"): tinyhw.launch(path, "plain", 1, 1, [X], "AMD")
  with pytest.raises(InvalidArgument, match="1.5 .float. given"):
    tinyhw.launch(SOURCE, "plain", 1, 1, [1.5], options=["-DPLUS=0"])


def test_debugger_and_report_take_it() -> None:
  what = SOURCE, "total", 1, 64, [X, np.zeros(1, np.float32), 100]
  with tinyhw.debug(*what, options=["-DPLUS=0"]) as session:
    session.run()
    assert session.buffers()[1].tolist() == [4950]
  report = tinyhw.report(*what, options=["-DPLUS=0"])
  assert report.buffers[1].tolist() == [4950] and "shfl.sync.down.b32" in str(report.to_dict()["instructions"])


def test_the_shell(tmp_path: Path) -> None:
  (tmp_path / "a.cu").write_text(SOURCE)
  np.save(tmp_path / "x.npy", X)

  def tool(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return command.tinyhw(*words, cwd=tmp_path, env=os.environ | more)

  done = tool("launch", "a.cu", "-k", "scale<float>", "-b", "128", "-a", "x.npy", "-a", "2", "-a", "100",
              "--option=-DPLUS=1", "-o", "0=y.npy")
  assert done.returncode == 0, done.stderr
  assert (np.load(tmp_path / "y.npy") == 2 * X).all()
  done = tool("launch", "a.cu", "-a", "x.npy")
  assert done.returncode and "has 4 kernels; choose with --kernel: scale, plain, total, wild" in done.stderr
  words = ["tinyhw", "launch", "a.cu", "--kernel", "t"]
  done = tool(_TINYHW_COMPLETE="bash_complete", COMP_WORDS=" ".join(words), COMP_CWORD="4")
  assert "total" in done.stdout and "scale" not in done.stdout


def test_text_is_text_also_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """A path stays a path, whatever its name has in it."""
  monkeypatch.chdir(tmp_path)
  line = "__global__ void one(int *x) { *x = 1; }"
  assert (found := CudaSource.of(line)) is not None and found.kernels == ["one"]
  (tmp_path / "a __global__ file").write_bytes(b"\x7fELF")
  assert CudaSource.of("a __global__ file") is None
