"""The MODE register: denormals flushed or kept, rounding, clamp; and modifiers that the compiler folds in."""
from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np
import pytest

from tests.emulator.gpu import Gpu, Host, compile_gpu
from tests.strength import seed


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


RNG = np.random.default_rng(seed(7))
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


# ---- directed rounding: the same constrained operations on this processor, with its own rounding mode set

ROUNDINGS = {1: 0x800, 2: 0x400, 3: 0xC00}  # MODE.FP_ROUND: up, down, toward zero -> fenv.h of x86-64
DYNAMIC = 'metadata !"round.dynamic", metadata !"fpexcept.ignore"'
TYPES = {"half": (np.float16, "f16"), "float": (np.float32, "f32"), "double": (np.float64, "f64")}
CONSTRAINED = {  # name -> (intrinsic, its operands)
  "add": ("fadd", "xy"), "sub": ("fsub", "xy"), "mul": ("fmul", "xy"), "fma": ("fma", "xyz"),
}


def constrained(operation: str, t: str) -> tuple[str, str]:
  """(body that makes %r from %x, %y and %z, declaration)."""
  intrinsic, operands = CONSTRAINED[operation]
  name = f"@llvm.experimental.constrained.{intrinsic}.{TYPES[t][1]}"
  arguments = ", ".join(f"{t} %{o}" for o in operands)
  kinds = ", ".join([t] * len(operands))
  return f"  %r = call {t} {name}({arguments}, {DYNAMIC}) strictfp", f"declare {t} {name}({kinds}, metadata, metadata)"


def narrowing(source: str, t: str) -> tuple[str, str]:
  name = f"@llvm.experimental.constrained.fptrunc.{TYPES[t][1]}.{TYPES[source][1]}"
  return f"  %r = call {t} {name}({source} %x, {DYNAMIC}) strictfp", f"declare {t} {name}({source}, metadata, metadata)"


def programs(source: str, t: str, body: str, declare: str, mode: int) -> tuple[str, str]:
  """(GPU kernel k, host function k) of three arrays of `source` to one of `t`."""
  loads = "".join(f"""
  %p{n} = getelementptr {source}, ptr SPACE %a{n}, i64 %i
  %{n} = load {source}, ptr SPACE %p{n}""" for n in "xyz")
  work = f"""{loads}
{body}
  %po = getelementptr {t}, ptr SPACE %o, i64 %i
  store {t} %r, ptr SPACE %po"""
  pointers = ", ".join(f"ptr SPACE %{n}" for n in ("ax", "ay", "az", "o"))
  gpu = f"""
define amdgpu_kernel void @k({pointers}) strictfp {{
  call void @llvm.amdgcn.s.setreg(i32 6145, i32 {mode * 5})
  %w = call i32 @llvm.amdgcn.workitem.id.x()
  %i = zext i32 %w to i64{work}
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.setreg(i32, i32)
{declare}"""
  host = f"""
define void @k({pointers}, i64 %n) strictfp {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]{work}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
{declare}"""
  return gpu.replace("SPACE", "addrspace(1)"), host.replace("SPACE ", "")


def numbers(dtype: type, rng: np.random.Generator) -> np.ndarray:
  """Random bits, numbers near each other, denormals, zeros, infinities: whatever rounds in its own way."""
  bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
  top = np.iinfo(bits).max
  wild = rng.integers(0, top, 64, bits, endpoint=True).view(dtype)
  near = (1 + rng.standard_normal(48) * 1e-3).astype(dtype) * dtype(2.0) ** rng.integers(-3, 3, 48).astype(dtype)
  tiny = rng.integers(0, 40, 8).astype(bits).view(dtype)
  special = np.array([0, -0.0, np.inf, -np.inf, 1, -1, np.finfo(dtype).max, -np.finfo(dtype).max], dtype)
  return rng.permutation(np.concatenate([wild, near, tiny, special]))


def agree(source: str, t: str, body: str, declare: str, mode: int) -> None:
  rng = np.random.default_rng(mode)
  gpu_ir, host_ir = programs(source, t, body, declare, mode)
  x, y, z = (numbers(TYPES[source][0], rng) for _ in range(3))
  with np.errstate(all="ignore"): z[:16] = (-x * y)[:16]  # sums that cancel
  y[16:24] = -x[16:24]
  gpu = Gpu(1 << 22)
  kernel = gpu.load(compile_gpu(gpu_ir))["k"]
  out = gpu.put(np.zeros(128, TYPES[t][0]))
  gpu.launch(kernel, (1, 1, 1), (128, 1, 1), [gpu.put(x), gpu.put(y), gpu.put(z), out])
  got = gpu.get(out, TYPES[t][0], 128)
  want = np.zeros_like(got)
  host, libm = Host(host_ir), ctypes.CDLL(ctypes.util.find_library("m"))
  libm.fesetround(ROUNDINGS[mode])
  try: host.call("k", x, y, z, want, count=128)
  finally: libm.fesetround(0)
  bits = f"u{got.itemsize}"
  same = (got.view(bits) == want.view(bits)) | np.isnan(got) & np.isnan(want)
  at = np.flatnonzero(~same)
  assert not at.size, [(x[k], y[k], z[k], got[k], want[k]) for k in at[:4]]
  nearest = np.zeros_like(got)
  host.call("k", x, y, z, nearest, count=128)
  assert (nearest.view(bits) != want.view(bits)).any(), "nothing here rounds differently"


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("t", ["float", "double"])
@pytest.mark.parametrize("operation", CONSTRAINED)
def test_directed_rounding(operation: str, t: str, mode: int) -> None:
  agree(t, t, *constrained(operation, t), mode)


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize(("source", "t"), [("float", "half"), ("double", "float")])
def test_directed_rounding_of_conversions(source: str, t: str, mode: int) -> None:
  agree(source, t, *narrowing(source, t), mode)
