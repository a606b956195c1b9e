"""What docs/cuda.md says of packages of PyPI, as data: which version was tried, whether it runs, and a program that
shows it. `test_packages` runs the program of each that is installed, and holds the page to this table.
"""
from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Claim:
  """A package at a version: `shown` is what its program prints, or what the report begins with where it is refused."""

  package: str
  version: str
  what: str
  runs: bool
  shown: str
  program: str
  environment: dict[str, str] = field(default_factory=dict)


REFUSED = "has NVIDIA's runtime linked into it"
TAICHI = """
import {0} as ti
ti.init(arch=ti.cuda)
x = ti.field(ti.f32, 100)
@ti.kernel
def k():
  for i in x: x[i] = i * 2
k()
print(x.to_numpy()[:4].tolist())
"""
CLAIMS = (
  Claim("numba-cuda", "0.30.4", "Numba's kernels, arrays, streams", True, "[0.0, 2.0, 4.0]", """
import numpy as np
from numba import cuda
@cuda.jit
def add(x, y, out):
  i = cuda.grid(1)
  if i < x.size: out[i] = x[i] + y[i]
x, out = np.arange(256, dtype=np.float32), cuda.device_array(256, np.float32)
add[2, 128](cuda.to_device(x), cuda.to_device(x), out)
print(out.copy_to_host()[:3].tolist())
"""),
  Claim("cuda-core", "1.2.2", "programs by nvrtc, launches, memory", True, "[0.0, 2.0, 4.0]", """
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
device = Device()
device.set_current()
stream = device.create_stream()
text = 'extern "C" __global__ void k(float *x) { x[threadIdx.x] = threadIdx.x * 2; }'
kernel = Program(text, "c++", ProgramOptions(arch="sm_90")).compile("cubin").get_kernel("k")
memory = device.allocate(256, stream=stream)
launch(stream, LaunchConfig(grid=1, block=64), kernel, memory)
stream.sync()
out = np.zeros(64, np.float32)
driver.cuMemcpyDtoH(out.ctypes.data, int(memory.handle), 256)
print(out[:3].tolist())
"""),
  Claim("cuda-bindings", "13.5.0", "`cuda.bindings.driver`", True, "(<CUresult.CUDA_SUCCESS: 0>, 1)", """
from cuda.bindings import driver
driver.cuInit(0)
print(driver.cuDeviceGetCount())
"""),
  Claim("cuda-bindings", "13.5.0", "`cuda.bindings.runtime`", False, REFUSED, """
from cuda.bindings import runtime
error, count = runtime.cudaGetDeviceCount()
raise SystemExit(f"{error.name}")
"""),
  Claim("taichi", "1.7.4", "fields and kernels; `TI_NUM_COMPILE_THREADS=0`", True, "[0.0, 2.0, 4.0, 6.0]",
        TAICHI.format("taichi"), {"TI_NUM_COMPILE_THREADS": "0"}),
  Claim("gstaichi", "4.6.0", "fields and kernels", True, "[0.0, 2.0, 4.0, 6.0]", TAICHI.format("gstaichi"),
        {"TI_NUM_COMPILE_THREADS": "0"}),
  Claim("halide", "21.0.0", "the target's feature `CUDA`", True, "[0, 2, 4]", """
import halide as hl, numpy as np
x, xo, xi, f = hl.Var("x"), hl.Var(), hl.Var(), hl.Func("f")
f[x] = x * 2
f.gpu_tile(x, xo, xi, 16)
target = hl.get_host_target().with_feature(hl.TargetFeature.CUDA)
f.compile_jit(target)
print(np.array(f.realize([64], target))[:3].tolist())
"""),
  Claim("tinygrad", "0.14.0", "tensors, by its PTX renderer (`DEV=CUDA:PTX`)", True, "[2, 3, 4]", """
from tinygrad import Tensor
print((Tensor([1, 2, 3]) + 1).tolist())
""", {"DEV": "CUDA:PTX"}),
  Claim("nvidia-ml-py", "13.615.71", "NVML: `pynvml`", True, "('NVIDIA H200', (9, 0), 0, 'Not Supported')", """
import pynvml
pynvml.nvmlInit()
card = pynvml.nvmlDeviceGetHandleByIndex(0)
try: pynvml.nvmlDeviceGetFanSpeed(card)
except pynvml.NVMLError as error: said = str(error)
print((pynvml.nvmlDeviceGetName(card), pynvml.nvmlDeviceGetCudaComputeCapability(card),
       pynvml.nvmlDeviceGetMemoryInfo(card).used, said))
"""),
  Claim("warp-lang", "1.19.0", "Warp: its CPU device runs without a mock", False, REFUSED, """
import warp as wp
wp.zeros(64, dtype=float, device="cuda:0")
"""),
  Claim("cupy-cuda13x", "14.2.0", "CuPy", False, REFUSED, """
import cupy
print((cupy.arange(8) + 1).tolist())
"""),
  Claim("nvidia-cutlass-dsl", "4.8.1", "CuTe's DSL; CuTe's C++ runs (see below)", False, REFUSED, """
import cutlass
import cutlass.cute as cute
@cute.kernel
def k():
  cute.printf("hello")
@cute.jit
def go(): k().launch(grid=(1, 1, 1), block=(32, 1, 1))
cutlass.cuda.initialize_cuda_context()
go()
"""),
)


def table() -> str:
  """The table of docs/cuda.md."""
  rows = [f"| {c.package} {c.version} | {c.what} | {'runs' if c.runs else 'refused'} |" for c in CLAIMS]
  return "\n".join(["| package | what was tried | |", "|---|---|---|", *rows])
