"""v_mfma_* and v_smfmac_* of every type and shape, by LLVM's intrinsics, against NumPy.

The layouts here are written from the formulas of the CDNA3 ISA manual (7.1.4 and 7.4), element by element.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.emulator import gfx9
from tests.emulator.gpu import Gpu, compile_gpu, generation
from tests.strength import seed
from tinyhw.core.errors import Unsupported

LANES = 64
RNG = np.random.default_rng(seed(942))
EIGHT = ("bf8", "fp8")


@dataclass(frozen=True)
class Product:
  """An intrinsic: rows, columns, depth, blocks; types of A, B and C; LLVM's types of their vectors."""
  name: str
  m: int
  n: int
  k: int
  blocks: int
  a: str
  b: str
  c: str

  @property
  def sparse(self) -> bool: return self.name.startswith("smfmac")

  @property
  def held(self) -> int:
    """Elements of B in a lane (and of A, half of them where it is sparse)."""
    return self.k * self.m * self.blocks // LANES

  @property
  def outputs(self) -> int: return self.m * self.n * self.blocks // LANES


def dense() -> list[Product]:
  out = []
  for m, n, k, blocks in ((32, 32, 1, 2), (16, 16, 1, 4), (4, 4, 1, 16), (32, 32, 2, 1), (16, 16, 4, 1)):
    out.append(Product(f"mfma.f32.{m}x{n}x{k}f32", m, n, k, blocks, "f32", "f32", "f32"))
  for m, n, k, blocks in ((32, 32, 4, 2), (16, 16, 4, 4), (4, 4, 4, 16), (32, 32, 8, 1), (16, 16, 16, 1)):
    out.append(Product(f"mfma.f32.{m}x{n}x{k}f16", m, n, k, blocks, "f16", "f16", "f32"))
    out.append(Product(f"mfma.f32.{m}x{n}x{k}bf16.1k", m, n, k, blocks, "bf16", "bf16", "f32"))
    if blocks > 1: out.append(Product(f"mfma.i32.{m}x{n}x{k}i8", m, n, k, blocks, "i8", "i8", "i32"))
  for m, n, k in ((32, 32, 16), (16, 16, 32)):
    out.append(Product(f"mfma.i32.{m}x{n}x{k}.i8", m, n, k, 1, "i8", "i8", "i32"))
    for a in EIGHT: out += [Product(f"mfma.f32.{m}x{n}x{k}.{a}.{b}", m, n, k, 1, a, b, "f32") for b in EIGHT]
  for m, n, k in ((16, 16, 8), (32, 32, 4)):
    out.append(Product(f"mfma.f32.{m}x{n}x{k}.xf32", m, n, k, 1, "xf32", "xf32", "f32"))
  return [*out, Product("mfma.f64.16x16x4f64", 16, 16, 4, 1, "f64", "f64", "f64"),
          Product("mfma.f64.4x4x4f64", 4, 4, 4, 4, "f64", "f64", "f64")]


def sparse() -> list[Product]:
  out = []
  for m, n, k in ((16, 16, 32), (32, 32, 16)):
    out += [Product(f"smfmac.f32.{m}x{n}x{k}.{t}", m, n, k, 1, t, t, "f32") for t in ("f16", "bf16")]
  for m, n, k in ((16, 16, 64), (32, 32, 32)):
    out.append(Product(f"smfmac.i32.{m}x{n}x{k}.i8", m, n, k, 1, "i8", "i8", "i32"))
    for a in EIGHT: out += [Product(f"smfmac.f32.{m}x{n}x{k}.{a}.{b}", m, n, k, 1, a, b, "f32") for b in EIGHT]
  return out


def vector(kind: str, count: int, is_sparse: bool) -> str:
  """LLVM's type of `count` elements of a matrix in a lane."""
  if kind in {"i8", *EIGHT}:
    if is_sparse: return f"<{count // 4} x i32>"
    return "i32" if count == 4 else "i64"
  scalar = {"f32": "float", "xf32": "float", "f64": "double", "i32": "i32", "f16": "half", "bf16": "i16"}[kind]
  return scalar if count == 1 else f"<{count} x {scalar}>"


def module(p: Product, cbsz: int, abid: int, blgp: int) -> str:
  half = p.held // 2 if p.sparse else p.held
  a, b = vector(p.a, half, p.sparse), vector(p.b, p.held, p.sparse)
  c = vector(p.c, p.outputs, p.sparse)
  index, constants = ", i32 %x" if p.sparse else "", f"i32 {cbsz}, i32 {abid}{'' if p.sparse else f', i32 {blgp}'}"
  types = ", ".join([a, b, c, *(["i32"] if p.sparse else []), *["i32"] * (2 if p.sparse else 3)])
  loaded = (("a", a), ("b", b), ("c", c), ("x", "i32"))
  loads = "\n".join(f"  %g{v} = getelementptr {t}, ptr addrspace(1) %p{v}, i32 %i\n"
                    f"  %{v} = load {t}, ptr addrspace(1) %g{v}" for v, t in loaded)
  return f"""
define amdgpu_kernel void @k(ptr addrspace(1) %pa, ptr addrspace(1) %pb, ptr addrspace(1) %pc, ptr addrspace(1) %px,
                             ptr addrspace(1) %po) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
{loads}
  %d = call {c} @llvm.amdgcn.{p.name}({a} %a, {b} %b, {c} %c{index}, {constants})
  %go = getelementptr {c}, ptr addrspace(1) %po, i32 %i
  store {c} %d, ptr addrspace(1) %go
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
declare {c} @llvm.amdgcn.{p.name}({types})
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,64" }}"""


# ---- elements as stored

def small_float(code: int, fraction: int, bias: int) -> float:
  """A code of the FNUZ formats (7.2)."""
  if code == 0x80: return float("nan")
  exponent, low = code >> fraction & (1 << 7 - fraction) - 1, code & (1 << fraction) - 1
  size = low * 2.0 ** (1 - bias - fraction) if exponent == 0 else (1 + low / (1 << fraction)) * 2.0 ** (exponent - bias)
  return -size if code >> 7 else size


SMALL = {"fp8": np.array([small_float(c, 3, 8) for c in range(256)]),
         "bf8": np.array([small_float(c, 2, 16) for c in range(256)])}
STORED = {"f32": np.uint32, "xf32": np.uint32, "f64": np.uint64, "i32": np.uint32, "f16": np.uint16, "bf16": np.uint16,
          "i8": np.uint8, "fp8": np.uint8, "bf8": np.uint8}


def draw(kind: str, shape: tuple[int, ...], whole: bool) -> np.ndarray:
  """Stored elements: small whole numbers, whose sums are exact, or any of ordinary size."""
  if kind in SMALL:
    small = np.flatnonzero(np.isin(SMALL[kind], np.arange(-3, 4)))
    codes = np.flatnonzero((np.abs(SMALL[kind]) < 8) & (np.abs(SMALL[kind]) > 0.1))
    return RNG.choice(small if whole else codes, shape).astype(np.uint8)
  if kind == "i8": return RNG.integers(0, 256, shape).astype(np.uint8)
  if kind == "i32": return RNG.integers(-1000, 1000, shape).astype(np.int32).view(np.uint32)
  x: Any = RNG.integers(-3, 4, shape).astype(np.float64) if whole else RNG.normal(0, 1, shape)
  if kind == "bf16": return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
  if kind == "f64": return x.view(np.uint64)
  return x.astype(np.float16).view(np.uint16) if kind == "f16" else x.astype(np.float32).view(np.uint32)


def value(kind: str, raw: np.ndarray) -> np.ndarray:
  if kind in SMALL: return SMALL[kind][raw]
  if kind == "i8": return raw.view(np.int8).astype(np.int64)
  if kind == "i32": return raw.view(np.int32).astype(np.int64)
  if kind == "bf16": return (raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
  if kind == "f16": return raw.view(np.float16).astype(np.float64)
  if kind == "f64": return raw.view(np.float64)
  x = raw.view(np.float32).astype(np.float64)
  if kind != "xf32": return x
  fraction, exponent = np.frexp(x)  # 1 + 10 bits
  return np.ldexp(np.rint(fraction * 2048) / 2048, exponent)


# ---- the witness: where elements lie

def matrix(p: Product, kind: str, items: np.ndarray, size: int, lanes: Any) -> np.ndarray:
  """[block, k, row or column] out of items [lane, item]; `lanes` says which lane's values a lane has."""
  held = p.k // (LANES // (size * p.blocks))
  out = np.zeros((p.blocks, p.k, size), np.int64 if kind in {"i8", "i32"} else np.float64)
  values = value(kind, items)
  for b in range(p.blocks):
    for k in range(p.k):
      for i in range(size): out[b, k, i] = values[lanes(i + size * (b + p.blocks * (k // held))), k % held]
  return out


def place(p: Product, b: int, i: int, j: int) -> tuple[int, int]:
  """(lane, item) of an element of C and D."""
  h = 1 if p.c == "f64" else 4
  together = -(-LANES // (p.n * p.m // h))
  rows = LANES // together // p.n
  groups = p.m // (h * rows)
  return j + p.n * (i // h % rows + rows * (b % together)), i % h + h * (i // (h * rows) + groups * (b // together))


def expected(p: Product, a: np.ndarray, b: np.ndarray, c: np.ndarray, product: np.ndarray) -> np.ndarray:
  """C plus the product [block, row, column], as items [lane, item]."""
  old = value(p.c, c)
  out = np.zeros_like(old)
  for block in range(p.blocks):
    for i in range(p.m):
      for j in range(p.n):
        at = place(p, block, i, j)
        out[at] = old[at] + product[block, i, j]
  return out


def run(p: Product, a: np.ndarray, b: np.ndarray, c: np.ndarray, index: np.ndarray, cbsz: int = 0, abid: int = 0,
        blgp: int = 0) -> np.ndarray:
  with generation("gfx942"):
    gpu = Gpu()
    kernel = gpu.load(compile_gpu(module(p, cbsz, abid, blgp)))["k"]
    o = gpu.put(np.zeros_like(c))
    gpu.launch(kernel, (1, 1, 1), (LANES, 1, 1), [*map(gpu.put, (a, b, c, index)), o])
    return value(p.c, gpu.get(o, STORED[p.c], c.size).reshape(c.shape))


def agree(p: Product, got: np.ndarray, want: np.ndarray, whole: bool) -> bool:
  if whole or p.c == "i32": return np.array_equal(got, want)
  near = 1e-6 if p.c == "f32" else 1e-14
  return np.allclose(got, want, rtol=near, atol=near)


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "any"])
@pytest.mark.parametrize("p", dense(), ids=lambda p: p.name)
def test_dense(p: Product, whole: bool) -> None:
  a, b = (draw(t, (LANES, p.held), whole) for t in (p.a, p.b))
  c = draw(p.c, (LANES, p.outputs), whole)
  x, y = matrix(p, p.a, a, p.m, lambda lane: lane), matrix(p, p.b, b, p.n, lambda lane: lane)
  want = expected(p, a, b, c, np.einsum("bki,bkj->bij", x, y))
  assert agree(p, run(p, a, b, c, np.zeros(LANES, np.uint32)), want, whole)


def b_lane(blgp: int, lane: int) -> int:
  return [lane, lane % 32, lane % 32 + 32, (lane + 16) % 64, lane % 16, lane % 16 + 16, lane % 16 + 32,
          lane % 16 + 48][blgp]


BY_NAME = {p.name: p for p in dense()}


@pytest.mark.parametrize(("name", "cbsz", "abid", "blgp"), [
  ("mfma.f32.32x32x1f32", 1, 0, 0), ("mfma.f32.32x32x1f32", 1, 1, 0), ("mfma.f32.16x16x1f32", 2, 3, 0),
  ("mfma.f32.4x4x1f32", 4, 11, 0), ("mfma.f32.4x4x4f16", 3, 5, 0), ("mfma.i32.16x16x4i8", 2, 1, 0),
  *(("mfma.f32.32x32x4f16", 0, 0, blgp) for blgp in range(1, 8)), ("mfma.f32.32x32x4bf16.1k", 1, 1, 3)])
def test_broadcasts(name: str, cbsz: int, abid: int, blgp: int) -> None:
  p = BY_NAME[name]
  a, b = (draw(t, (LANES, p.held), True) for t in (p.a, p.b))
  c = draw(p.c, (LANES, p.outputs), True)
  size = LANES >> cbsz
  x = matrix(p, p.a, a, p.m, lambda lane: lane % size + size * abid)
  y = matrix(p, p.b, b, p.n, lambda lane: b_lane(blgp, lane))
  want = expected(p, a, b, c, np.einsum("bki,bkj->bij", x, y))
  assert np.array_equal(run(p, a, b, c, np.zeros(LANES, np.uint32), cbsz, abid, blgp), want)


@pytest.mark.parametrize("blgp", range(8))
@pytest.mark.parametrize("name", ["mfma.f64.16x16x4f64", "mfma.f64.4x4x4f64"])
def test_f64_negates_by_blgp(name: str, blgp: int) -> None:
  p = BY_NAME[name]
  a, b, c = draw(p.a, (LANES, 1), True), draw(p.b, (LANES, 1), True), draw(p.c, (LANES, p.outputs), True)
  signs = [-1 if blgp >> k & 1 else 1 for k in range(3)]
  x, y = matrix(p, p.a, a, p.m, lambda lane: lane), matrix(p, p.b, b, p.n, lambda lane: lane)
  negated = (value("f64", c) * signs[2]).view(np.uint64)
  want = expected(p, a, b, negated, np.einsum("bki,bkj->bij", x * signs[0], y * signs[1]))
  assert np.array_equal(run(p, a, b, c, np.zeros(LANES, np.uint32), 0, 0, blgp), want)


@pytest.mark.parametrize(("name", "cbsz", "abid"), [
  ("mfma.f32.32x32x4f16", 2, 0), ("mfma.f32.32x32x8f16", 1, 0), ("mfma.f32.4x4x1f32", 5, 0),
  ("mfma.f32.16x16x1f32", 1, 2), ("mfma.f32.16x16x1f32", 0, 1)])
def test_broadcasts_of_blocks_that_are_not_there(name: str, cbsz: int, abid: int) -> None:
  """What the manual calls undefined and not legal (7.1.5.1) is refused by name."""
  p = BY_NAME[name]
  a, b, c = (np.ones((LANES, n), np.float32) for n in (p.held, p.held, p.outputs))
  with pytest.raises(Unsupported, match=f"CBSZ {cbsz}"): run(p, a, b, c, np.zeros(LANES, np.uint32), cbsz, abid)


@pytest.mark.parametrize(("cbsz", "abid"), [(0, 0), (0, 1), (0, 3), (1, 1)])
@pytest.mark.parametrize("p", sparse(), ids=lambda p: p.name)
def test_sparse(p: Product, cbsz: int, abid: int) -> None:
  """Of 4 consecutive k of A the two that the index register names are stored, two bits for each."""
  wide = p.a in {"f16", "bf16"}
  stored, sets = p.held // 2, 4 if wide else 2
  abid %= sets
  a, b = draw(p.a, (LANES, stored), True), draw(p.b, (LANES, p.held), True)
  c = draw(p.c, (LANES, p.outputs), True)
  pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])[RNG.integers(0, 6, (LANES, 8))]  # first < second
  codes = pairs.reshape(LANES, 16)
  index = (codes.astype(np.uint64) << np.arange(0, 32, 2, dtype=np.uint64)).sum(axis=1).astype(np.uint32)
  first = 0 if cbsz else abid * stored
  values = value(p.a, a)
  x = np.zeros((1, p.k, p.m), values.dtype)
  for lane in range(LANES):
    for e in range(stored):
      k = lane // p.m * p.held + e // 2 * 4 + codes[lane, first + e]
      x[0, k, lane % p.m] = values[lane, e]
  y = matrix(p, p.b, b, p.n, lambda lane: lane)
  want = expected(p, a, b, c, np.einsum("bki,bkj->bij", x, y))
  assert np.array_equal(run(p, a, b, c, index, cbsz, abid), want)


def test_xf32_multiplies_numbers_of_ten_bits() -> None:
  p = BY_NAME["mfma.f32.32x32x4.xf32"]
  a = np.full((LANES, 2), 1 + 2.0 ** -10 + 2.0 ** -12, np.float32).view(np.uint32)  # the last bit is dropped
  b = np.ones((LANES, 2), np.float32).view(np.uint32)
  got = run(p, a, b, np.zeros((LANES, 16), np.uint32), np.zeros(LANES, np.uint32))
  assert (got == 4 * (1 + 2.0 ** -10)).all()


def test_every_lane_takes_part_whatever_exec_says() -> None:
  """Written as text: accumulation registers, and an EXEC of two lanes."""
  p = BY_NAME["mfma.f32.32x32x1f32"]
  a, b = (draw(t, (LANES, 1), True) for t in (p.a, p.b))
  zero = np.zeros((LANES, 32), np.uint32)
  x, y = matrix(p, p.a, a, 32, lambda lane: lane), matrix(p, p.b, b, 32, lambda lane: lane)
  want = expected(p, a, b, zero, np.einsum("bki,bkj->bij", x, y))
  moves = "\n".join(f"v_accvgpr_read_b32 v{10 + k}, a{k}" for k in range(32))
  got = gfx9.run(f"s_mov_b64 exec, 5\nv_mfma_f32_32x32x1_2b_f32 a[0:31], v1, v2, 0\ns_mov_b64 exec, -1\n{moves}",
                 {1: a[:, 0], 2: b[:, 0]}, list(range(10, 42)))
  assert np.array_equal(np.stack(got, axis=1).view(np.float32), want)


@pytest.mark.parametrize("limit", [False, True])
def test_overflow_and_denormals(limit: bool) -> None:
  """FP16_OVFL limits sums; f32 sources obey MODE's denormals, what is added to them does not (7.1.2, 7.3)."""
  setreg = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\n" if limit else ""
  text = "v_mfma_i32_4x4x4_16b_i8 v[4:7], v1, v1, v[8:11]\n" \
         "v_mfma_f32_4x4x1_16b_f32 v[12:15], v2, v2, v[16:19]\nv_mfma_f32_4x4x1_16b_f32 v[20:23], v3, v24, v[28:31]"
  big, tiny = np.float32(3e38).view(np.uint32), np.uint32(5)
  inputs = {1: np.full(LANES, 0x7F7F7F7F), 2: np.full(LANES, np.float32(1.8e19).view(np.uint32)),
            3: np.full(LANES, tiny), 24: np.full(LANES, np.float32(4).view(np.uint32))}
  for k in range(4):
    inputs |= {8 + k: np.full(LANES, 0x7FFFFFFF), 16 + k: np.full(LANES, big), 28 + k: np.full(LANES, tiny)}
  for mode, flushes in ((0xF0, False), (0, True)):
    whole, total, small = gfx9.run(setreg + text, inputs, [4, 12, 20], mode=mode)
    assert (whole == (0x7FFFFFFF if limit else (0x7FFFFFFF + 4 * 127 * 127 & 0xFFFFFFFF))).all()
    assert (total.view(np.float32) == (np.finfo(np.float32).max if limit else np.inf)).all()
    assert (small == (5 if flushes else 25)).all()


def test_a_product_by_tiles_in_a_loop() -> None:
  """64x96 = 64x128 by 128x96 in f16: a wave has a tile of 32x32 and goes along k in steps of 8."""
  m, n, depth = 64, 96, 128
  ir = f"""
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c) #0 {{
entry:
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %tile.j = call i32 @llvm.amdgcn.workgroup.id.x()
  %tile.i = call i32 @llvm.amdgcn.workgroup.id.y()
  %row = and i32 %l, 31
  %group = lshr i32 %l, 5
  %first.i = shl i32 %tile.i, 5
  %first.j = shl i32 %tile.j, 5
  %i = add i32 %first.i, %row
  %j = add i32 %first.j, %row
  %ai = mul i32 %i, {depth}
  %bj = mul i32 %j, {depth}
  %four = shl i32 %group, 2
  %a0 = add i32 %ai, %four
  %b0 = add i32 %bj, %four
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]
  %acc = phi <16 x float> [ zeroinitializer, %entry ], [ %sum, %loop ]
  %ak = add i32 %a0, %k
  %bk = add i32 %b0, %k
  %ap = getelementptr half, ptr addrspace(1) %a, i32 %ak
  %bp = getelementptr half, ptr addrspace(1) %b, i32 %bk
  %x = load <4 x half>, ptr addrspace(1) %ap
  %y = load <4 x half>, ptr addrspace(1) %bp
  %sum = call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half> %x, <4 x half> %y, <16 x float> %acc, i32 0,
                                                            i32 0, i32 0)
  %k.next = add i32 %k, 8
  %more = icmp ult i32 %k.next, {depth}
  br i1 %more, label %loop, label %done
done:
  %down = add i32 %first.i, %four
  br label %store
store:
  %r = phi i32 [ 0, %done ], [ %r.next, %store ]
  %v = extractelement <16 x float> %sum, i32 %r
  %high = and i32 %r, 12
  %twice = shl i32 %high, 1
  %low = and i32 %r, 3
  %step = or i32 %twice, %low
  %oi = add i32 %down, %step
  %line = mul i32 %oi, {n}
  %o = add i32 %line, %j
  %cp = getelementptr float, ptr addrspace(1) %c, i32 %o
  store float %v, ptr addrspace(1) %cp
  %r.next = add i32 %r, 1
  %again = icmp ult i32 %r.next, 16
  br i1 %again, label %store, label %end
end:
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half>, <4 x half>, <16 x float>, i32, i32, i32)
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,64" }}"""
  a, b = RNG.normal(0, 1, (m, depth)).astype(np.float16), RNG.normal(0, 1, (n, depth)).astype(np.float16)
  for optimization in (0, 3):
    with generation("gfx942"):
      gpu = Gpu()
      kernel = gpu.load(compile_gpu(ir, optimization))["k"]
      o = gpu.put(np.zeros((m, n), np.float32))
      gpu.launch(kernel, (n // 32, m // 32, 1), (64, 1, 1), [gpu.put(a), gpu.put(b), o])
      got = gpu.get(o, np.float32, m * n).reshape(m, n)
    assert np.allclose(got, a.astype(np.float64) @ b.T.astype(np.float64), rtol=1e-5, atol=1e-5)
