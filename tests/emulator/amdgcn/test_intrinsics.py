"""Instructions that only intrinsics reach, against NumPy: matrix products, dot products, byte sums, bit operations."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.emulator.gpu import Gpu, compile_gpu
from tests.strength import seed

U32 = np.uint32


def launch(ir: str, inputs: list[np.ndarray], out: np.ndarray) -> np.ndarray:
  """Run kernel k on one wave: pointers to the inputs, then to the result."""
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(ir))["k"]
  o = gpu.put(out)
  gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [*map(gpu.put, inputs), o])
  return gpu.get(o, out.dtype, out.size)


@pytest.mark.parametrize(("kind", "element"), [("f16", "half"), ("bf16", "i16")])
def test_wmma_f32(kind: str, element: str) -> None:
  """D = A * B + C of 16x16 matrices; lane l loads row l % 16 of A and column l % 16 of B."""
  ir = f"""
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(1) %o) {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %r = and i32 %i, 15
  %pa = getelementptr <16 x {element}>, ptr addrspace(1) %a, i32 %r
  %pb = getelementptr <16 x {element}>, ptr addrspace(1) %b, i32 %r
  %pc = getelementptr <8 x float>, ptr addrspace(1) %c, i32 %i
  %po = getelementptr <8 x float>, ptr addrspace(1) %o, i32 %i
  %x = load <16 x {element}>, ptr addrspace(1) %pa
  %y = load <16 x {element}>, ptr addrspace(1) %pb
  %z = load <8 x float>, ptr addrspace(1) %pc
  %d = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.{kind}(<16 x {element}> %x, <16 x {element}> %y, <8 x float> %z)
  store <8 x float> %d, ptr addrspace(1) %po
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.{kind}(<16 x {element}>, <16 x {element}>, <8 x float>)"""
  rng = np.random.default_rng(seed(0))
  a, b = (rng.integers(-8, 8, (16, 16)).astype(np.float32) for _ in range(2))
  c = rng.integers(-8, 8, (16, 16)).astype(np.float32)

  def narrow(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float16) if kind == "f16" else (x.view(U32) >> 16).astype(np.uint16)
  lane, register = np.arange(32)[:, None], np.arange(8)[None, :]
  rows, columns = 2 * register + lane // 16, lane % 16 + 0 * register
  got = launch(ir, [narrow(a), narrow(np.ascontiguousarray(b.T)), c[rows, columns]], np.zeros(256, np.float32))
  assert np.array_equal(got.reshape(32, 8), (a @ b + c)[rows, columns])


def test_wmma_iu8() -> None:
  """Signed times unsigned bytes."""
  ir = """
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %o) {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %r = and i32 %i, 15
  %pa = getelementptr <4 x i32>, ptr addrspace(1) %a, i32 %r
  %pb = getelementptr <4 x i32>, ptr addrspace(1) %b, i32 %r
  %po = getelementptr <8 x i32>, ptr addrspace(1) %o, i32 %i
  %x = load <4 x i32>, ptr addrspace(1) %pa
  %y = load <4 x i32>, ptr addrspace(1) %pb
  %d = call <8 x i32> @llvm.amdgcn.wmma.i32.16x16x16.iu8(i1 true, <4 x i32> %x, i1 false, <4 x i32> %y,
    <8 x i32> zeroinitializer, i1 false)
  store <8 x i32> %d, ptr addrspace(1) %po
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare <8 x i32> @llvm.amdgcn.wmma.i32.16x16x16.iu8(i1, <4 x i32>, i1, <4 x i32>, <8 x i32>, i1)"""
  rng = np.random.default_rng(seed(1))
  a, b = rng.integers(-128, 128, (16, 16)).astype(np.int8), rng.integers(0, 256, (16, 16)).astype(np.uint8)
  lane, register = np.arange(32)[:, None], np.arange(8)[None, :]
  got = launch(ir, [a, np.ascontiguousarray(b.T)], np.zeros(256, np.int32))
  want = a.astype(np.int32) @ b.astype(np.int32)
  assert np.array_equal(got.reshape(32, 8), want[2 * register + lane // 16, lane % 16 + 0 * register])


def _bytes(x: np.ndarray, k: int) -> np.ndarray: return (x.astype(np.int64) >> 8 * k) & 255


def _nibbles(x: np.ndarray, k: int) -> np.ndarray: return (x.astype(np.int64) >> 4 * k) & 15


def _signed(x: np.ndarray, bits: int) -> np.ndarray: return np.where(x >> bits - 1, x - (1 << bits), x)


def _dot(part: Callable[[np.ndarray, int], np.ndarray], n: int, bits: int = 0) -> Callable[..., np.ndarray]:
  def dot(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    total = c.astype(np.int64)
    for k in range(n):
      x = part(a, k)
      total = total + (_signed(x, bits) if bits else x) * (_signed(part(b, k), bits) if bits else part(b, k))
    return total
  return dot


def _perm(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
  out = np.zeros(a.shape, np.int64)
  data = (a.astype(np.uint64) << np.uint64(32) | b).astype(object)
  for n, (d, s) in enumerate(zip(data, c)):
    for k in range(4):
      sel = int(s) >> 8 * k & 255
      if sel >= 13: byte = 255
      elif sel == 12: byte = 0
      elif sel >= 8: byte = 255 * (int(d) >> 16 * (sel - 8) + 15 & 1)
      else: byte = int(d) >> 8 * sel & 255
      out[n] |= byte << 8 * k
  return out


THREE: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
  "udot4": _dot(_bytes, 4), "udot8": _dot(_nibbles, 8),
  "perm": _perm,
  "sad.u8": lambda a, b, c: c + sum(abs(_bytes(a, k) - _bytes(b, k)) for k in range(4)),
  "sad.hi.u8": lambda a, b, c: c + (sum(abs(_bytes(a, k) - _bytes(b, k)) for k in range(4)) << 16),
  "sad.u16": lambda a, b, c: c + abs((a & 0xFFFF).astype(np.int64) - (b & 0xFFFF))
                             + abs((a >> 16).astype(np.int64) - (b >> 16)),
  "msad.u8": lambda a, b, c: c + sum(
    np.where(_bytes(b, k) == 0, 0, abs(_bytes(a, k) - _bytes(b, k))) for k in range(4)),
  "lerp": lambda a, b, c: sum((_bytes(a, k) + _bytes(b, k) + (_bytes(c, k) & 1) >> 1) << 8 * k for k in range(4)),
  "alignbyte": lambda a, b, c: ((a.astype(np.uint64) << np.uint64(32) | b) >> (8 * (c & 3)).astype(np.uint64)),
  "ubfe": lambda a, b, c: (a >> (b & 31)) & ((np.uint64(1) << (c & 31).astype(np.uint64)) - np.uint64(1)),
}


@pytest.mark.parametrize("name", THREE)
def test_three_operands(name: str) -> None:
  extra = ", i1 false" if name.startswith("udot") else ""
  suffix = ".i32" if name == "ubfe" else ""
  types = "i32, i32, i32" + (", i1" if extra else "")
  ir = f"""
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(1) %o) {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr i32, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr i32, ptr addrspace(1) %b, i32 %i
  %pc = getelementptr i32, ptr addrspace(1) %c, i32 %i
  %po = getelementptr i32, ptr addrspace(1) %o, i32 %i
  %x = load i32, ptr addrspace(1) %pa
  %y = load i32, ptr addrspace(1) %pb
  %z = load i32, ptr addrspace(1) %pc
  %d = call i32 @llvm.amdgcn.{name}{suffix}(i32 %x, i32 %y, i32 %z{extra})
  store i32 %d, ptr addrspace(1) %po
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.{name}{suffix}({types})"""
  rng = np.random.default_rng(seed(2))
  a, b, c = (rng.integers(0, 1 << 32, 32, dtype=np.uint64).astype(U32) for _ in range(3))
  if name == "perm": c = rng.integers(0, 16, (32, 4)).astype(np.uint8).view(U32).reshape(-1)
  got = launch(ir, [a, b, c], np.zeros(32, U32))
  want = THREE[name](a, b, c)
  assert np.array_equal(got, (want.astype(object) & 0xFFFFFFFF).astype(np.uint64).astype(U32))


@pytest.mark.parametrize("name", ["qsad.pk.u16.u8", "mqsad.pk.u16.u8"])
def test_quad_sums_of_differences(name: str) -> None:
  ir = f"""
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(1) %o) {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr i64, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr i32, ptr addrspace(1) %b, i32 %i
  %pc = getelementptr i64, ptr addrspace(1) %c, i32 %i
  %po = getelementptr i64, ptr addrspace(1) %o, i32 %i
  %x = load i64, ptr addrspace(1) %pa
  %y = load i32, ptr addrspace(1) %pb
  %z = load i64, ptr addrspace(1) %pc
  %d = call i64 @llvm.amdgcn.{name}(i64 %x, i32 %y, i64 %z)
  store i64 %d, ptr addrspace(1) %po
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
declare i64 @llvm.amdgcn.{name}(i64, i32, i64)"""
  rng = np.random.default_rng(seed(3))
  a, c = (rng.integers(0, 1 << 63, 32, dtype=np.uint64) for _ in range(2))
  b = rng.integers(0, 1 << 32, 32, dtype=np.uint64).astype(U32)
  want = np.zeros(32, np.uint64)
  for n in range(32):
    for k in range(4):
      x, y = int(a[n]) >> 8 * k, int(b[n])
      total = int(c[n]) >> 16 * k & 0xFFFF
      for j in range(4):
        p, q = x >> 8 * j & 255, y >> 8 * j & 255
        total += 0 if name[0] == "m" and q == 0 else abs(p - q)
      want[n] |= np.uint64((total & 0xFFFF) << 16 * k)
  assert np.array_equal(launch(ir, [a, b, c], np.zeros(32, np.uint64)), want)


def test_dot2_f32_f16() -> None:
  ir = """
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %o) {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr <2 x half>, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr <2 x half>, ptr addrspace(1) %b, i32 %i
  %po = getelementptr float, ptr addrspace(1) %o, i32 %i
  %x = load <2 x half>, ptr addrspace(1) %pa
  %y = load <2 x half>, ptr addrspace(1) %pb
  %d = call float @llvm.amdgcn.fdot2(<2 x half> %x, <2 x half> %y, float 1.0, i1 false)
  store float %d, ptr addrspace(1) %po
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare float @llvm.amdgcn.fdot2(<2 x half>, <2 x half>, float, i1)"""
  rng = np.random.default_rng(seed(4))
  a, b = (rng.integers(-9, 9, (32, 2)).astype(np.float16) for _ in range(2))
  want = (a.astype(np.float32) * b.astype(np.float32)).sum(1) + 1
  assert np.array_equal(launch(ir, [a, b], np.zeros(32, np.float32)), want)


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "umin", "smax", "fadd", "fmul", "fma", "minnum"])
def test_packed_16_bit(operation: str) -> None:
  """Vectors of two 16-bit elements, which become v_pk_* instructions."""
  kind = "half" if operation[0] == "f" or operation == "minnum" else "i16"
  t = f"<2 x {kind}>"
  if operation in {"umin", "smax", "fma", "minnum"}:
    count = 3 if operation == "fma" else 2
    suffix = "v2f16" if kind == "half" else "v2i16"
    operands = ", ".join(f"{t} %{v}" for v in "xyz"[:count])
    line = f"%d = call {t} @llvm.{operation}.{suffix}({operands})"
    declare = f"declare {t} @llvm.{operation}.{suffix}({', '.join([t] * count)})"
  else: line, declare = f"%d = {operation} {t} %x, %y", ""
  ir = f"""
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(1) %o) {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr {t}, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr {t}, ptr addrspace(1) %b, i32 %i
  %pc = getelementptr {t}, ptr addrspace(1) %c, i32 %i
  %po = getelementptr {t}, ptr addrspace(1) %o, i32 %i
  %x = load {t}, ptr addrspace(1) %pa
  %y = load {t}, ptr addrspace(1) %pb
  %z = load {t}, ptr addrspace(1) %pc
  {line}
  store {t} %d, ptr addrspace(1) %po
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
{declare}"""
  rng = np.random.default_rng(seed(6))
  dtype = np.float16 if kind == "half" else np.uint16
  a, b, c = ((rng.normal(0, 4, 64) if kind == "half" else rng.integers(0, 65536, 64)).astype(dtype) for _ in range(3))
  wants: dict[str, Callable[[], np.ndarray]] = {
    "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "umin": lambda: np.minimum(a, b),
    "smax": lambda: np.maximum(a.view(np.int16), b.view(np.int16)).view(np.uint16), "fadd": lambda: a + b,
    "fmul": lambda: a * b, "minnum": lambda: np.fmin(a, b),
    "fma": lambda: (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float16)}
  assert np.array_equal(launch(ir, [a, b, c], np.zeros(64, dtype)), wants[operation]())
