"""What `tinyhw bench` measures of PTX: a matrix product of our own compiler's, and first launches of new kernels."""
from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tinyhw.cli import cold
from tinyhw.cli.measure import Seconds, child, repeat
from tinyhw.core.errors import Error

SIZE = 256
TARGET = "sm_90"


@cache
def product(n: int = SIZE) -> tuple[bytes, str, tuple[int, int, int], tuple[int, int, int]]:
  """An n x n x n float32 product as PTX, as our compiler writes it for sm_90: text, kernel, blocks, threads.

  Parameters: the product, and its two factors.
  """
  from tinyhw import Device, Tensor
  from tinyhw.engine.run import Step, listening
  before = os.environ.get("TINYHW_NULL")
  os.environ["TINYHW_NULL"] = f"ptx:{TARGET}"
  name = "NULL:90"
  try:
    a, b = (Tensor.ones(n, n, device=name).contiguous().realize() for _ in range(2))
    steps: list[Step] = []
    with listening(steps.append): (a @ b).realize()
    spec = next(s.kernel.spec for s in reversed(steps) if s.kernel is not None)
    Device[name].close()
  finally:
    if before is None: del os.environ["TINYHW_NULL"]
    else: os.environ["TINYHW_NULL"] = before
  grid, block = (tuple(int(x) for x in size) for size in (spec.grid, spec.block))
  return spec.binary, spec.name, grid, block  # type: ignore[return-value]


def prepared(text: bytes, name: str, grid: Any, block: Any, arrays: list[np.ndarray],
             engine: str) -> tuple[Callable[[], Any], Callable[[int, np.dtype[Any]], np.ndarray]]:
  """(what launches a kernel of arrays on the emulator, without copies; what reads array k back)."""
  from tinyhw.core.memory import PAGE, AddressSpace, Region
  from tinyhw.emulator.engines.ptx import dispatch
  from tinyhw.emulator.ptx.launch.grid import Dispatch
  from tinyhw.emulator.ptx.module.link import link
  from tinyhw.emulator.ptx.program import Program
  from tinyhw.isa.ptx import parse
  space, at, places = AddressSpace("bench"), 1 << 32, list[int]()

  def put(data: bytes) -> int:
    nonlocal at
    region = Region("bench", -(-len(data) // PAGE) * PAGE)
    space.map(at, region.size, region)
    space.write(at, data)
    at += region.size
    return at - region.size
  linked = link(parse(text))
  program = Program(linked, name, put(bytes(max(linked.size, 1))))
  places += [put(x.tobytes()) for x in arrays]
  params = b"".join(p.to_bytes(8, "little") for p in places)
  d = Dispatch(program, grid, block, put(params), len(params))

  def read(k: int, dtype: np.dtype[Any]) -> np.ndarray:
    return np.frombuffer(space.read(places[k], arrays[k].nbytes), dtype).reshape(arrays[k].shape)
  return lambda: dispatch(space, d, engine=engine), read


def matmul(engine: str = "jit") -> tuple[Seconds, int]:
  """Seconds of warm launches of the product, and the instructions of warps in one."""
  text, name, grid, block = product()
  rng = np.random.default_rng(0)
  a, b = (rng.random((SIZE, SIZE), dtype=np.float32) for _ in range(2))
  run, read = prepared(text, name, grid, block, [np.zeros_like(a), a, b], engine)
  stats = run()
  if not np.allclose(read(0, a.dtype), a @ b, rtol=1e-4): raise Error("wrong product", where="PTX")
  return repeat(run, runs=15), stats.instructions


def by_units(unit: str, n: int = 512) -> Seconds:
  """Seconds of warm launches of an n x n x n product of bf16 by matrix units ("mma" or "wmma"), compiled."""
  from tinyhw.cli import units
  rng = np.random.default_rng(0)
  a, b = (rng.standard_normal((n, n)).astype(np.float32).view(np.uint32) & 0xFFFF0000 for _ in range(2))
  right = a.view(np.float32).astype(np.float64) @ b.view(np.float32).astype(np.float64).T
  halves = [(x >> 16).astype(np.uint16) for x in (a, b)]
  run, read = prepared(units.code(n, unit), "product", (n // 32, n // 32, 1), (32, 1, 1),
                       [*halves, np.zeros((n, n), np.float32)], "jit")
  run()
  found = read(2, np.dtype(np.float32))
  if not np.allclose(found, right, rtol=1e-4, atol=1e-4): raise Error("wrong product", where=unit)
  return repeat(run, runs=15)


def instruction() -> Seconds:
  """Time of one instruction of one warp in that, on one processor."""
  seconds, count = matmul()
  return [s / count for s in seconds]


@cache
def mixed(seed: int) -> bytes:
  """PTX of one of the kernels that `cold` makes for AMD's GPUs."""
  from tinyhw.compile.render.nvptx import TRIPLE
  from tinyhw.compile.render.objects import Processor, emit
  text = "\n".join(cold._kernel(random.Random(seed)))
  for theirs, ours in ((cold.TRIPLE, TRIPLE), ("amdgpu_kernel", "ptx_kernel"),
                       ("llvm.amdgcn.workitem.id.x", "llvm.nvvm.read.ptx.sreg.tid.x")):
    text = text.replace(theirs, ours)
  return emit(text, "mixed", Processor(TRIPLE, TARGET), 2, text=True)


def first_launch(seed: int) -> float:
  """Seconds of the first launch of this seed's kernel in a process that has launched another, very small one."""
  from tinyhw import launch
  small = (".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k (.param .u64 out) { .reg .b64 %l<2>; "
           "ld.param.u64 %l1, [out]; st.global.u32 [%l1], 1; ret; }")
  launch(small, "k", 1, 32, [np.zeros(1, np.uint32)], "EMU")
  x, out, kernel = np.ones(1024, np.float32), np.zeros(1024, np.float32), mixed(seed)
  start = time.perf_counter()
  launch(kernel, "mixed", 1, 256, [x, out], "EMU")
  return time.perf_counter() - start


def first_launches(cached: bool, folder: str) -> Seconds:
  """First launches in fresh processes; cached: of kernels that another process has compiled."""
  out = []
  for seed in range(5):
    code = f"from tinyhw.cli.ptx import first_launch; print(first_launch({seed}))"
    if cached: child(code, EMU="jit", TINYHW_CACHE=folder)
    out.append(float(child(code, EMU="auto", TINYHW_CACHE=folder)))
  return out


def mock_matmul(device: str) -> Seconds:
  """Warm runs of the product on the mock of a driver (NV, CUDA): graph, launch through its queues, wait."""
  from tinyhw import Device, Tensor
  rng = np.random.default_rng(0)
  a, b = (rng.random((SIZE, SIZE), dtype=np.float32) for _ in range(2))
  x, y = (Tensor(h, device=device).realize() for h in (a, b))
  def run() -> Tensor:
    product = (x @ y).realize()
    Device[device].synchronize()
    return product
  if not np.allclose(run().numpy(), a @ b, rtol=1e-4): raise Error("wrong product", where=device)
  return repeat(run)
