"""Metal's text is C++ with Metal's words: clang takes it, with a stand-in for its library. No compiler of Metal has."""
from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.compile.families import per_element
from tests.compile.test_render_amdgcn import arithmetic
from tests.compile.test_render_differential import Program
from tests.compile.test_render_generations import turn
from tests.strength import seeds
from tinyhw import Tensor, dtypes
from tinyhw.compile import compile_kernel, schedule
from tinyhw.compile.render.c import found
from tinyhw.compile.render.metal import MetalRenderer
from tinyhw.core.errors import Unsupported
from tinyhw.ir.dtype import DType
from tinyhw.ir.ops import GroupOp
from tinyhw.ir.uop import UOp

METAL = MetalRenderer()
SCALARS = [d for d in dtypes.all() if METAL.supports(d)]
# What the texts use of Metal's standard library (Metal Shading Language Specification 3.2), for a compiler of C++.
LIBRARY = """
#define kernel
#define device
#define constant const
#define threadgroup
typedef _Float16 half;
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
struct uint3 { uint x, y, z; };
template <class T> struct two { T x, y; two(T, T); T operator[](int) const; };
template <class T> struct four { T x, y, z, w; four(T, T, T, T); T operator[](int) const; };
#define VECTORS(t) typedef two<t> t##2; typedef four<t> t##4;
VECTORS(char) VECTORS(uchar) VECTORS(short) VECTORS(ushort) VECTORS(int) VECTORS(uint) VECTORS(long) VECTORS(ulong)
VECTORS(float) VECTORS(half)
namespace metal {
enum class mem_flags { mem_threadgroup = 1, mem_device = 2 };
inline mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags((int)a | (int)b); }
void threadgroup_barrier(mem_flags);
template <class T, class S> T as_type(S) { static_assert(sizeof(T) == sizeof(S)); return T(); }
float fma(float, float, float); half fma(half, half, half);
float trunc(float); half trunc(half);
namespace precise {
float sqrt(float); float exp2(float); float exp(float); float log2(float); float log(float); float log10(float);
float sin(float); float cos(float); float tanh(float); float pow(float, float); float fmod(float, float);
}
}
"""


def check(source: str, folder: Path) -> None:
  """A compiler of C++ takes it."""
  clang = next((c for c in found("clang") if shutil.which(c)), None)
  if clang is None: pytest.skip("there is no clang")
  (folder / "metal_stdlib").write_text(LIBRARY)
  done = subprocess.run([clang, "-x", "c++", "-std=c++17", "-fsyntax-only", "-Wno-unknown-attributes",
                         "-Wno-unknown-pragmas", "-Wno-ignored-attributes", "-Wno-unused-value", f"-I{folder}", "-"],
                        input=source, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_arithmetic_and_conversions(dtype: DType, tmp_path: Path) -> None:
  ops, results = arithmetic(dtype)
  results = [r for op, r in zip(ops, results) if op not in GroupOp.LIBRARY]
  results += [(dtype, lambda a, b, c, q, op=op: a.alu(op) if op in GroupOp.UNARY else a.alu(op, b))
              for op in ops if op in GroupOp.LIBRARY and METAL.native(op, dtype)]
  results += [(d, lambda a, b, c, q, d=d: a.cast(d)) for d in SCALARS]
  results += [(d, lambda a, b, c, q, d=d: a.bitcast(d)) for d in SCALARS if d.itemsize == dtype.itemsize]
  check(METAL.source("k", per_element(results, [dtype, dtype, dtype, dtypes.bool], threads=True)), tmp_path)


def workgroups() -> Sequence[list[UOp]]: return [turn(d, n) for d, n in ((dtypes.float32, 4), (dtypes.half, 2),
                                                                         (dtypes.bool, 4), (dtypes.int8, 3))]


def test_workgroups_and_kernels_of_tensors(tmp_path: Path) -> None:
  for uops in workgroups(): check(METAL.source("k", uops), tmp_path)
  x = Tensor.empty(32, 32)
  for value in (x @ x, x.half().sum(0), x.exp()):
    for item in schedule([value.uop]): check(compile_kernel(item.ast, METAL).source, tmp_path)


@pytest.mark.parametrize("seed", seeds(range(500, 506)))
def test_random_programs(seed: int, tmp_path: Path) -> None:
  try: check(METAL.source("k", Program(seed).for_threads()), tmp_path)
  except Unsupported as error: assert "float64" in str(error)


def test_the_parameters_are_bound_in_order() -> None:
  source = METAL.source("k", turn(dtypes.float32, 4))
  assert "kernel void k(device float* data0 [[buffer(0)]], device const float* data1 [[buffer(1)]]," in source
  assert "[[max_total_threads_per_threadgroup(64)]] kernel" in source
