"""Matrix units beyond halves on LLVM's GPUs, and in the texts of HIP C++ and CUDA C++: values on the emulators, whose
own idea it is which lane holds what; the vendors' compilers take the texts."""
from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from tests.compile.test_matrix_units import GPUS, Memory, launch_on
from tests.compile.test_render_cuda import assembled
from tests.compile.test_render_hip import CLANGS
from tests.compile.witness import buffer, matmul, realize
from tinyhw.arch import decoded
from tinyhw.compile import ProgramSpec, compile_kernel, schedule
from tinyhw.compile.nvidia import nvrtc
from tinyhw.compile.render.base import Renderer
from tinyhw.compile.render.cuda import CUDARenderer
from tinyhw.compile.render.hip import HIPRenderer
from tinyhw.compile.render.nvptx import NVPTXRenderer
from tinyhw.devices.registry import emulated
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.uop import Ops, UOp

KINDS = (dtypes.float16, dtypes.bfloat16, dtypes.int8, dtypes.float8_e4m3fn)
SOME = ((dtypes.float16, "sm_80"), (dtypes.int8, "sm_80"))
names = {"ids": lambda v: v.name if isinstance(v, DType) else None}


def factors(kind: DType, memory: Memory, size: int = 64) -> list[UOp]:
  """Two matrices of small whole numbers, whose sums of products are exact."""
  rng, made = np.random.default_rng(7), []
  for _ in range(2):
    values = rng.integers(-3, 4, (size, size))
    if kind is dtypes.int8: values = rng.integers(-128, 128, (size, size))
    if kind is dtypes.bfloat16: array = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    elif kind is dtypes.float8_e4m3fn:
      table = {-3: 0xC4, -2: 0xC0, -1: 0xB8, 0: 0, 1: 0x38, 2: 0x40, 3: 0x44}
      array = np.vectorize(table.get)(values).astype(np.uint8)
    else: array = values.astype(kind.numpy)
    made.append((buffer(array, memory, kind), values))
  return [made[0][0], made[1][0], made[0][1] @ made[1][1]]


def product(a: UOp, b: UOp) -> UOp:
  wide = dtypes.int32 if a.dtype is dtypes.int8 else dtypes.float32
  return matmul(a.cast(wide), b.cast(wide))


def launch(program: ProgramSpec, arrays: list[np.ndarray]) -> None:
  """On the emulator of what the binary is."""
  device = emulated()
  memory = [device.alloc(a.nbytes) for a in arrays]
  for m, a in zip(memory, arrays): device.copyin(m, memoryview(a.view(np.uint8)))
  loaded = device.load(program.binary, program.name)
  if program.binary.startswith(b"\x7fELF"): loaded(memory, (), program.grid, program.block)
  else: loaded.launch(struct.pack(f"<{len(memory)}Q", *(m.address for m in memory)), program.grid, program.block)
  for m, a in zip(memory, arrays): device.copyout(memoryview(a.view(np.uint8)), m)


def has_unit(renderer: Renderer, kind: DType) -> bool: return any(u.inputs is kind for u in renderer.units)


@pytest.mark.parametrize("kind", [dtypes.int8, dtypes.float8_e4m3fn], **names)
@pytest.mark.parametrize("cpu", GPUS)
def test_products_of_bytes(cpu: str, kind: DType) -> None:
  if not has_unit(GPUS[cpu], kind): pytest.skip(f"{cpu} has no unit for {kind.name}")
  memory: Memory = {}
  a, b, wanted = factors(kind, memory)
  program = compile_kernel(schedule([product(a, b)]).items[0].ast, GPUS[cpu])
  assert any(u.op is Ops.WMMA for u in program.uops)
  (found,) = realize([product(a, b)], memory, GPUS[cpu], launch_on(cpu))
  np.testing.assert_array_equal(found, wanted)


@pytest.mark.skipif(not CLANGS, reason="there is no clang 19 with lld")
@pytest.mark.parametrize("kind", KINDS, **names)
@pytest.mark.parametrize("cpu", GPUS)
def test_hip(cpu: str, kind: DType) -> None:
  new = [c for c in CLANGS if cpu != "gfx950" or int(c.partition("-")[2] or 99) >= 20]
  if not new: pytest.skip(f"clang 19 does not know {cpu}")
  renderer = HIPRenderer(decoded(cpu), new[0])
  if not has_unit(renderer, kind): pytest.skip(f"{cpu} has no unit for {kind.name}")
  memory: Memory = {}
  a, b, wanted = factors(kind, memory)
  (found,) = realize([product(a, b)], memory, renderer, launch)
  assert "__builtin_amdgcn_" in compile_kernel(schedule([product(a, b)]).items[0].ast, renderer).source
  np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", KINDS, **names)
def test_the_words_of_mma(kind: DType) -> None:
  a, b = (UOp.new_buffer("X", 64 * 64, kind).reshape((64, 64)) for _ in range(2))
  ast = schedule([product(a, b)]).items[0].ast
  source = UncompiledCUDA("sm_90").source("k", compile_kernel(ast, UncompiledCUDA("sm_90")).uops)
  word = {"float16": "f16", "bfloat16": "bf16", "int8": "s8", "float8_e4m3fn": "e4m3"}[kind.name]
  assert f".{word}.{word}." in source and source.count("mma.sync.aligned.m16n8k") >= 1


class UncompiledCUDA(CUDARenderer):
  """Its text alone."""
  key = "text of CUDA C++"
  def compile(self, source: str, name: str) -> bytes: return source.encode()


@pytest.mark.skipif(shutil.which("nvcc") is None and nvrtc.find() is None, reason="there is no nvcc and no nvrtc")
@pytest.mark.parametrize("kind", KINDS, **names)
def test_cuda(kind: DType, tmp_path: Path) -> None:
  memory: Memory = {}
  a, b, wanted = factors(kind, memory)
  renderer = CUDARenderer("sm_90")
  (found,) = realize([product(a, b)], memory, renderer, launch)
  np.testing.assert_array_equal(found, wanted)
  assembled(compile_kernel(schedule([product(a, b)]).items[0].ast, renderer).binary, "sm_90", tmp_path)


@pytest.mark.parametrize(("kind", "cpu"), [(k, c) for k in KINDS for c in ("sm_80", "sm_89", "sm_90", "sm_120")
                                          if c == "sm_90" or k is dtypes.float8_e4m3fn or (k, c) in SOME], **names)
def test_ptx(kind: DType, cpu: str, tmp_path: Path) -> None:
  memory: Memory = {}
  a, b, wanted = factors(kind, memory)
  renderer = NVPTXRenderer(cpu)
  program = compile_kernel(schedule([product(a, b)]).items[0].ast, renderer)
  assert (b"mma.sync.aligned.m16n8k" in program.binary) is has_unit(renderer, kind)
  called = set(re.findall(r"call [^@\n]*(@[\w.]+)\(", program.source))
  assert called and called <= set(re.findall(r"declare [^@]*(@[\w.]+)\(", program.source)), "older LLVMs want it"
  np.testing.assert_array_equal(realize([product(a, b)], memory, renderer, launch)[0], wanted)
  assembled(program.binary, cpu, tmp_path)
