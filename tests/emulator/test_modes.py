"""The MODE register: denormals flushed or kept, rounding, clamp; and modifiers that the compiler folds in."""
from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.gpu import Gpu, compile_gpu
from tinyhw.core.errors import Unsupported


def kernel(lines: str, attributes: str = "nounwind", declare: str = "") -> str:
  """Kernel k: float %x and %y to float %r."""
  return f"""
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %o) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr float, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr float, ptr addrspace(1) %b, i32 %i
  %po = getelementptr float, ptr addrspace(1) %o, i32 %i
  %x = load float, ptr addrspace(1) %pa
  %y = load float, ptr addrspace(1) %pb
{lines}
  store float %r, ptr addrspace(1) %po
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
{declare}
attributes #0 = {{ {attributes} }}"""


def run(ir: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
  gpu = Gpu()
  k = gpu.load(compile_gpu(ir))["k"]
  o = gpu.put(np.zeros_like(a))
  gpu.launch(k, (1, 1, 1), (32, 1, 1), [gpu.put(a), gpu.put(b), o])
  return gpu.get(o, np.float32, 32)


RNG = np.random.default_rng(7)
X, Y = (RNG.standard_normal(32).astype(np.float32) * np.float32(2.0) ** RNG.integers(-74, -52, 32).astype(np.float32)
        for _ in range(2))


def flushed(x: np.ndarray) -> np.ndarray:
  return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


def test_denormals_are_kept_by_default() -> None:
  got = run(kernel("  %r = fmul float %x, %y"), X, Y)
  assert np.array_equal(got, X * Y) and (np.abs(got[got != 0]) < np.finfo(np.float32).tiny).any()


def test_denormals_are_flushed_where_the_kernel_says_so() -> None:
  attributes = '"denormal-fp-math-f32"="preserve-sign,preserve-sign"'
  assert np.array_equal(run(kernel("  %r = fmul float %x, %y", attributes), X, Y), flushed(X * Y))
  tiny = (X * Y).astype(np.float32)
  assert not run(kernel("  %r = fadd float %x, %y", attributes), tiny, np.zeros_like(tiny))[np.abs(tiny) < 1e-38].any()


def test_division_with_flushed_denormals_switches_the_mode() -> None:
  """The expansion of fdiv turns denormals on and off again around its steps."""
  attributes = '"denormal-fp-math-f32"="preserve-sign,preserve-sign"'
  a, b = (RNG.standard_normal(32).astype(np.float32) for _ in range(2))
  assert np.array_equal(run(kernel("  %r = fdiv float %x, %y", attributes), a, b), a / b)


def test_clamp_and_output_modifiers() -> None:
  declare = "declare float @llvm.minnum.f32(float, float)\ndeclare float @llvm.maxnum.f32(float, float)"
  a, b = (RNG.standard_normal(32).astype(np.float32) for _ in range(2))
  clamp = ("  %s = fadd nnan nsz float %x, %y\n  %m = call nnan nsz float @llvm.maxnum.f32(float %s, float 0.0)\n"
           "  %r = call nnan nsz float @llvm.minnum.f32(float %m, float 1.0)")
  assert np.array_equal(run(kernel(clamp, declare=declare), a, b), np.clip(a + b, 0, 1))
  double = "  %s = fadd nsz float %x, %y\n  %r = fmul nsz float %s, 2.0"
  attributes = '"denormal-fp-math-f32"="preserve-sign,preserve-sign"'
  assert np.array_equal(run(kernel(double, attributes), a, b), (a + b) * 2)


def test_negated_and_absolute_operands() -> None:
  declare = "declare float @llvm.fabs.f32(float)\ndeclare float @llvm.fma.f32(float, float, float)"
  lines = ("  %p = call float @llvm.fabs.f32(float %x)\n  %n = fneg float %p\n  %q = fneg float %y\n"
           "  %r = call float @llvm.fma.f32(float %n, float %q, float %q)")
  a, b = (RNG.integers(-99, 99, 32).astype(np.float32) for _ in range(2))
  assert np.array_equal(run(kernel(lines, declare=declare), a, b), -np.abs(a) * -b + -b)


def test_mixed_precision_fma() -> None:
  """f16 operands extended inside v_fma_mix_f32."""
  declare = "declare float @llvm.fma.f32(float, float, float)"
  lines = """  %xi = bitcast float %x to <2 x half>
  %l = extractelement <2 x half> %xi, i32 0
  %h = extractelement <2 x half> %xi, i32 1
  %le = fpext half %l to float
  %he = fpext half %h to float
  %r = call float @llvm.fma.f32(float %le, float %he, float %y)"""
  halves = RNG.standard_normal((32, 2)).astype(np.float16)
  b = RNG.standard_normal(32).astype(np.float32)
  want = (halves[:, 0].astype(np.float64) * halves[:, 1] + b).astype(np.float32)
  assert np.array_equal(run(kernel(lines, declare=declare), halves.view(np.float32).reshape(-1), b), want)


def test_another_rounding_mode_is_refused_by_name() -> None:
  declare = "declare void @llvm.amdgcn.s.setreg(i32, i32)"
  # hwreg(HW_REG_MODE, 0, 4): round toward +infinity
  lines = "  call void @llvm.amdgcn.s.setreg(i32 6145, i32 1)\n  %r = fadd float %x, %y"
  with pytest.raises(Unsupported, match="MODE rounds f32"): run(kernel(lines, '"strictfp"', declare), X, Y)
