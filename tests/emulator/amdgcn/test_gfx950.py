"""gfx950's own instructions in programs that LLVM compiles, on both engines."""
from __future__ import annotations

import numpy as np
import pytest

import tinyhw
from tests.drive.conftest import compile_ir
from tinyhw.core.errors import InvalidArgument

IR = """
declare {{ i32, i32 }} @llvm.amdgcn.permlane16.swap(i32, i32, i1, i1)
declare {{ i32, i32 }} @llvm.amdgcn.permlane32.swap(i32, i32, i1, i1)
declare i32 @llvm.amdgcn.prng.b32(i32)
declare i32 @llvm.amdgcn.bitop3.i32(i32, i32, i32, i32)
declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x32.f16(<8 x half>, <8 x half>, <4 x float>, i32, i32, i32)
@large = internal addrspace(3) global [40960 x i32] poison
define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) #0 {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i32, ptr addrspace(1) %in, i32 %t
  %x = load i32, ptr addrspace(1) %p
  %q = getelementptr i32, ptr addrspace(1) %p, i32 64
  %y = load i32, ptr addrspace(1) %q
  {body}
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %a, ptr addrspace(1) %o
  %r = getelementptr i32, ptr addrspace(1) %o, i32 64
  store i32 %b, ptr addrspace(1) %r
  ret void
}}
"""
SWAP = """%s = call {{ i32, i32 }} @llvm.amdgcn.permlane{n}.swap(i32 %x, i32 %y, i1 false, i1 false)
  %a = extractvalue {{ i32, i32 }} %s, 0
  %b = extractvalue {{ i32, i32 }} %s, 1"""
X = np.random.default_rng(950).integers(0, 1 << 32, 128, dtype=np.uint64).astype(np.uint32)


def run(body: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
  monkeypatch.setenv("EMU", engine)
  out = tinyhw.launch(compile_ir(IR.format(body=body), "gfx950"), "k", 1, 64, [np.zeros(128, np.uint32), X], "EMU")[0]
  return out[:64], out[64:]


@pytest.mark.parametrize("engine", ["ref", "auto"])
@pytest.mark.parametrize("n", [16, 32])
def test_rows_change_places(n: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """LLVM: the odd rows of the first against the even rows of the second (AMDGPUUsage, llvm.amdgcn.permlane16.swap)."""
  a, b = run(SWAP.format(n=n), engine, monkeypatch)
  x, y = (v.reshape(-1, 2, n) for v in (X[:64], X[64:]))
  np.testing.assert_array_equal(a.reshape(-1, 2, n), np.stack([x[:, 0], y[:, 0]], axis=1))
  np.testing.assert_array_equal(b.reshape(-1, 2, n), np.stack([x[:, 1], y[:, 1]], axis=1))


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_bits(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  a, b = run("""%a = call i32 @llvm.amdgcn.prng.b32(i32 %x)
  %b = call i32 @llvm.amdgcn.bitop3.i32(i32 %x, i32 %y, i32 %t, i32 202)""", engine, monkeypatch)
  np.testing.assert_array_equal(a, X[:64] << 1 ^ np.where(X[:64] >> 31, np.uint32(197), np.uint32(0)))
  t = np.arange(64, dtype=np.uint32)
  np.testing.assert_array_equal(b, X[:64] & X[64:] | ~X[:64] & t)  # 0xca: x ? y : t


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_a_deep_product(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """A of ones: each element of D is the sum of a column of B, 32 halves of four lanes' eight."""
  ones = ", ".join(["half 1.0"] * 8)
  a, _ = run(f"""%h = trunc i32 %x to i8
  %i = uitofp i8 %h to half
  %v = insertelement <8 x half> poison, half %i, i32 0
  %w = shufflevector <8 x half> %v, <8 x half> poison, <8 x i32> zeroinitializer
  %d = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x32.f16(<8 x half> <{ones}>, <8 x half> %w, """
             """<4 x float> zeroinitializer, i32 0, i32 0, i32 0)
  %e = extractelement <4 x float> %d, i32 3
  %a = bitcast float %e to i32
  %b = add i32 0, 0""", engine, monkeypatch)
  columns = 8 * (X[:64] & 0xFF).reshape(4, 16).sum(axis=0)
  np.testing.assert_array_equal(a.view(np.float32).reshape(4, 16), np.broadcast_to(columns, (4, 16)))


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_all_of_its_lds(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """160 KiB in one workgroup; gfx942 has 64."""
  a, b = run("""%i = add i32 %t, 40896
  %l = getelementptr i32, ptr addrspace(3) @large, i32 %i
  store volatile i32 %x, ptr addrspace(3) %l
  %a = load volatile i32, ptr addrspace(3) %l
  %b = add i32 0, 0""", engine, monkeypatch)
  np.testing.assert_array_equal(a, X[:64])


def test_its_code_is_no_other_cards(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "gfx942")  # unless one is open
  code = compile_ir(IR.format(body="%a = add i32 %x, 1\n  %b = add i32 %y, 1"), "gfx950")
  with pytest.raises(InvalidArgument, match="the code is for gfx950, the device is gfx"):
    tinyhw.launch(code, "k", 1, 64, [np.zeros(128, np.uint32), X], "AMD")
