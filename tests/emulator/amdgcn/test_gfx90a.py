"""gfx90a's own instructions in programs that LLVM compiles, on both engines: matrix products, scratch in registers."""
from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tinyhw
from tests.drive.conftest import compile_ir
from tests.emulator.checking import check
from tinyhw.core.errors import DecodeError
from tinyhw.emulator.values.ops import Array
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble

# intrinsic -> (type of A and B in a lane, of C, how many of A a lane holds, its NumPy type)
KINDS = {
  "f32": ("float", "float", 1, np.float32), "f16": ("<4 x half>", "float", 4, np.float16),
  "bf16.1k": ("<4 x i16>", "float", 4, ml_dtypes.bfloat16), "bf16": ("<2 x i16>", "float", 2, ml_dtypes.bfloat16),
  "i8": ("i32", "i32", 4, np.int8), "f64": ("double", "double", 1, np.float64)}
SHAPES = {
  "f32": ("32x32x1", "16x16x1", "4x4x1", "32x32x2", "16x16x4"),
  "f16": ("32x32x4", "16x16x4", "4x4x4", "32x32x8", "16x16x16"),
  "bf16.1k": ("32x32x4", "16x16x4", "4x4x4", "32x32x8", "16x16x16"),
  "bf16": ("32x32x2", "16x16x2", "4x4x2", "32x32x4", "16x16x8"),
  "i8": ("32x32x4", "16x16x4", "4x4x4", "32x32x8", "16x16x16"), "f64": ("16x16x4", "4x4x4")}
ENGINES = pytest.mark.parametrize("engine", ["ref", "jit"])
CASES = [(kind, shape) for kind, shapes in SHAPES.items() for shape in shapes]


def program(kind: str, shape: str) -> tuple[bytes, int]:
  """A kernel of one product whose lanes load A, B and C and store D; and items of C in a lane."""
  given, c, held, _ = KINDS[kind]
  m, n, k = map(int, shape.split("x"))
  items = m * n * (held * 64 // (k * m)) // 64
  t, name = (f"<{items} x {c}>" if items > 1 else c), kind
  short = {"float": "f32", "i32": "i32", "double": "f64"}[c]
  call = f"llvm.amdgcn.mfma.{short}.{shape}{name}"
  text = f"""
define amdgpu_kernel void @k(ptr addrspace(1) %d, ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c) {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr {given}, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr {given}, ptr addrspace(1) %b, i32 %i
  %pc = getelementptr [{items} x {c}], ptr addrspace(1) %c, i32 %i
  %pd = getelementptr [{items} x {c}], ptr addrspace(1) %d, i32 %i
  %x = load {given}, ptr addrspace(1) %pa
  %y = load {given}, ptr addrspace(1) %pb
  %z = load {t}, ptr addrspace(1) %pc, align 4
  %r = call {t} @{call}({given} %x, {given} %y, {t} %z, i32 0, i32 0, i32 0)
  store {t} %r, ptr addrspace(1) %pd, align 4
  ret void
}}
declare {t} @{call}({given}, {given}, {t}, i32, i32, i32)
"""
  return compile_ir(text, "gfx90a"), items


def product(kind: str, shape: str, a: Array, b: Array, c: Array) -> Array:
  """The product by NumPy, from and to what lanes hold [lane, item] (CDNA2 ISA manual, matrix layouts: a lane has a row
  of A of one block, consecutive k; of D a column, four rows at a time, of f64 one)."""
  m, n, k = map(int, shape.split("x"))
  held = a.shape[1]
  blocks = held * 64 // (k * m)
  wide = np.int64 if kind == "i8" else np.float64
  left, right = (np.zeros((blocks, k, size), wide) for size in (m, n))
  for matrix, lanes, size in ((left, a, m), (right, b, n)):
    for lane in range(64):
      block, chunk = lane // size % blocks, lane // size // blocks
      for item in range(held): matrix[block, chunk * held + item, lane % size] = lanes[lane, item]
  dense = np.einsum("bki,bkj->bij", left, right)
  out = np.zeros(c.shape, c.dtype)
  height = 1 if kind == "f64" else 4
  for lane in range(64):
    for item in range(c.shape[1]):
      # lanes run over columns, then over groups of rows, then over blocks; items over rows of a group, then on
      column, group = lane % n, lane // n
      rows_at_once = min(m // height, 64 // n)
      row = item % height + height * (group % rows_at_once)
      rest = item // height
      block = group // rows_at_once
      per_item_blocks = 64 // n // rows_at_once
      steps = m // (height * rows_at_once)
      row += height * rows_at_once * (rest % steps)
      block += per_item_blocks * (rest // steps)
      out[lane, item] = dense[block, row, column] + c[lane, item]
  return out


@ENGINES
@pytest.mark.parametrize(("kind", "shape"), CASES)
def test_matrix_products(kind: str, shape: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Small integers: no rounding, so any order of sums gives the same."""
  monkeypatch.setenv("EMU", engine)
  rng = np.random.default_rng(len(shape) + len(kind))
  code, items = program(kind, shape)
  _, c_type, held, dtype = KINDS[kind]
  a, b = (rng.integers(-8, 9, (64, held)).astype(dtype) for _ in "ab")
  c = rng.integers(-99, 99, (64, items)).astype({"float": np.float32, "i32": np.int32, "double": np.float64}[c_type])
  raw = [x.view(np.uint8).reshape(-1) for x in (a, b)]
  found = tinyhw.launch(code, "k", 1, 64, [np.zeros_like(c), *raw, c], "EMU")[0]
  assert np.array_equal(found, product(kind, shape, a, b, c))


@ENGINES
def test_halves_of_a_product_have_no_denormals(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """PyTorch's notes on MI200: products of f16 and bf16 take and give zeros for denormals, with their sign."""
  monkeypatch.setenv("EMU", engine)
  code, items = program("f16", "16x16x16")
  a = np.full((64, 4), 2.0 ** -15, np.float16)  # a denormal
  b, c = np.full((64, 4), 2.0 ** 12, np.float16), np.full((64, items), 2.0 ** -130, np.float32)
  raw = [x.view(np.uint8).reshape(-1) for x in (a, b)]
  assert not tinyhw.launch(code, "k", 1, 64, [np.ones_like(c), *raw, c], "EMU")[0].any()
  raw[0] = np.full((64, 4), 2.0 ** -14, np.float16).view(np.uint8).reshape(-1)
  found = tinyhw.launch(code, "k", 1, 64, [np.zeros_like(c), *raw, c], "EMU")[0]
  assert (found == 16 * 2.0 ** -2).all()


SCRATCH = """
define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %n) {
  %a = alloca [16 x i32], addrspace(5)
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %at = mul i32 %g, 256
  %t = add i32 %at, %i
  %w = getelementptr [16 x i32], ptr addrspace(5) %a, i32 0, i32 %n
  store volatile i32 %t, ptr addrspace(5) %w
  %flat = addrspacecast ptr addrspace(5) %w to ptr
  %r = load volatile i32, ptr %flat
  %q = getelementptr i32, ptr addrspace(1) %p, i32 %t
  store i32 %r, ptr addrspace(1) %q
  ret void
}
"""


@ENGINES
def test_scratch_is_found_in_registers(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """A buffer with a lane's dwords side by side, and flat addresses, reach the same memory."""
  monkeypatch.setenv("EMU", engine)
  code = compile_ir(SCRATCH, "gfx90a")
  found = tinyhw.launch(code, "k", 8, 256, [np.zeros(8 * 256, np.uint32), np.int32(3)], "EMU")[0]
  assert np.array_equal(found, np.arange(8 * 256))


def test_what_gfx942_calls_otherwise() -> None:
  """Names of matrix products and of cache policies are CDNA2's; gfx942's are refused, by name."""
  old, new = table("gfx90a"), table("gfx9")
  assert "scc" in str(old.decode(assemble("global_load_dword v1, v2, s[0:1] glc slc scc", old)))
  code = assemble("v_mfma_f32_16x16x8bf16 v[0:3], v4, v5, v[0:3]", old)
  with pytest.raises(DecodeError, match=re.escape("(gfx90a has v_mfma_f32_16x16x8bf16)")): new.decode(code)
  with pytest.raises(DecodeError, match="no gfx90a instruction"):
    old.decode(assemble("v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10", new))


def test_checks_are_silent_over_scratch_in_registers() -> None:
  """The wave's offset is set up by hardware, and what a buffer stored a flat load finds."""
  arguments = [np.zeros(512, np.uint32), np.int32(3)]
  tinyhw.launch(compile_ir(SCRATCH, "gfx90a"), "k", 2, 256, arguments, "EMU", check=True)


def test_what_nobody_wrote_is_still_found_beside_scratch_in_registers() -> None:
  """Stored to scratch it is a copy (tests/emulator/check/amdgcn/test_right.py has clang's); to global memory a use."""
  program = "v_lshlrev_b32 v1, 2, v0\n{}global_store_dword v1, v5, s[0:1]"
  assert not list(check(program.format("v_mov_b32 v5, 0\n"), cpu="gfx90a", lanes=64, scratch=True))
  finding, = check(program.format(""), cpu="gfx90a", lanes=64, scratch=True)
  assert "the value stored to memory depends on v5" in str(finding)
