"""PTX from LLVM and CUDA C++ through nvcc or nvrtc: NVIDIA's assembler takes both, and nothing may be contracted.

Values are not seen here: what PTX computes, LLVM's and nvrtc's too, is in `test_render_ptx`.
"""
from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.compile.families import per_element
from tests.compile.test_render_amdgcn import arithmetic
from tests.compile.test_render_differential import Program
from tests.compile.test_render_generations import turn
from tests.strength import THOROUGH, seeds
from tinyhw import Tensor
from tinyhw.compile import compile_kernel, schedule
from tinyhw.compile.nvidia import nvjitlink, nvrtc
from tinyhw.compile.render.base import Renderer
from tinyhw.compile.render.cuda import CUDARenderer
from tinyhw.compile.render.nvptx import NVPTXRenderer
from tinyhw.core.errors import DeviceError, InvalidArgument, MissingTool
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import UOp

PROCESSORS = ("sm_80", "sm_90")
SCALARS = [d for d in dtypes.all() if d.bits_type is None]
types = pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
processors = pytest.mark.parametrize("processor", PROCESSORS)
# A product of floats that does not say how it is rounded may become part of a sum.
UNROUNDED = re.compile(r"\b(mul|mad)(\.ftz)?\.f(16|32|64)\b|\.ftz|\.approx|\bmad\.rn")


def assembled(ptx: bytes, processor: str, folder: Path) -> None:
  """ptxas takes it, and it says how products are rounded."""
  text = ptx.decode()
  assert not (wrong := UNROUNDED.search(text)), text[max(0, wrong.start() - 200):wrong.end() + 50]
  if shutil.which("ptxas") is None:
    if (library := nvjitlink.find()) is None: pytest.skip("there is no ptxas and no nvJitLink")
    assert len(nvjitlink.linked(ptx, processor, library)) > 500
    return
  (folder / "k.ptx").write_bytes(ptx)
  made = subprocess.run(["ptxas", f"-arch={processor}", "-o", str(folder / "k.cubin"), str(folder / "k.ptx")],
                        capture_output=True, text=True)
  assert made.returncode == 0, made.stderr[:2000] + text
  assert (folder / "k.cubin").stat().st_size > 500


def all_of(dtype: DType) -> list[UOp]:
  """All arithmetic and conversions of a type."""
  ops, results = arithmetic(dtype)
  results = [r for op, r in zip(ops, results) if op not in GroupOp.LIBRARY]
  results += [(d, lambda a, b, c, q, d=d: a.cast(d)) for d in SCALARS]
  results += [(d, lambda a, b, c, q, d=d: a.bitcast(d)) for d in SCALARS if d.itemsize == dtype.itemsize]
  return per_element(results, [dtype, dtype, dtype, dtypes.bool], threads=True)


def check(made: Renderer, uops: Sequence[UOp], processor: str, folder: Path) -> None:
  assembled(made.compile(made.source("k", uops), "k"), processor, folder)


def needs_a_compiler() -> None:
  if shutil.which("nvcc") is None and nvrtc.find() is None: pytest.skip("there is no nvcc and no nvrtc")


@types
@processors
def test_ptx_of_all_arithmetic(dtype: DType, processor: str, tmp_path: Path) -> None:
  check(NVPTXRenderer(processor), all_of(dtype), processor, tmp_path)


@processors
@pytest.mark.parametrize("seed", seeds(range(400, 403)))
def test_ptx_of_random_programs(seed: int, processor: str, tmp_path: Path) -> None:
  check(NVPTXRenderer(processor), Program(seed).for_threads(), processor, tmp_path)


def workgroups(made: Renderer, processor: str, folder: Path) -> None:
  for dtype, count in ((dtypes.float32, 4), (dtypes.float16, 8), (dtypes.bool, 4), (dtypes.int8, 3)):
    check(made, turn(dtype, count), processor, folder)


@processors
def test_ptx_of_workgroups(processor: str, tmp_path: Path) -> None:
  workgroups(NVPTXRenderer(processor), processor, tmp_path)


@pytest.mark.parametrize("dtype", SCALARS if THOROUGH else [dtypes.float16, dtypes.float32, dtypes.int64],
                         ids=lambda d: d.name)
def test_cuda_of_all_arithmetic(dtype: DType, tmp_path: Path) -> None:
  needs_a_compiler()
  check(CUDARenderer("sm_90"), all_of(dtype), "sm_90", tmp_path)


def test_cuda_of_workgroups_and_random_programs(tmp_path: Path) -> None:
  needs_a_compiler()
  check(CUDARenderer("sm_80"), turn(dtypes.float32, 4), "sm_80", tmp_path)
  for seed in seeds([410]): check(CUDARenderer("sm_80"), Program(seed).for_threads(), "sm_80", tmp_path)
  if THOROUGH: workgroups(CUDARenderer("sm_90"), "sm_90", tmp_path)


def test_kernels_of_tensors(tmp_path: Path) -> None:
  """A matrix product, a softmax and a sine, as the compiler makes them for the target."""
  x = Tensor.empty(64, 64)
  for value in (x @ x, x.softmax(), x.sin()):
    for item in schedule([value.uop]):
      if item.ast.op is Ops.COPY: continue
      assembled(compile_kernel(item.ast, NVPTXRenderer("sm_90")).binary, "sm_90", tmp_path)


def test_cuda_text_of_kernels_says_how_it_is_rounded() -> None:
  source = CUDARenderer().source("k", all_of(dtypes.float32))
  assert "__fmul_rn(" in source and "__fdiv_rn(" in source and "__fsqrt_rn(" in source and "fmaf(" in source


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
  for name in ("sm_70", "gfx1100", "sm_"):
    with pytest.raises(InvalidArgument, match=f"no GPU is called '{name}' here; sm_80 or newer"): NVPTXRenderer(name)
    with pytest.raises(InvalidArgument, match=f"no GPU is called '{name}' here; sm_80 or newer"): CUDARenderer(name)
  if shutil.which("nvcc"):
    with pytest.raises(DeviceError, match="kernel k: nvcc refuses the source: .*error"):
      CUDARenderer().compile("nonsense!", "k")
  monkeypatch.setenv("PATH", "/nowhere")
  monkeypatch.setattr(nvrtc, "find", lambda: None)
  with pytest.raises(MissingTool, match="CUDA: there is no nvcc and no nvrtc"): CUDARenderer().compile("", "k")
