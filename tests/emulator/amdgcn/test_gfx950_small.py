"""gfx950's floats of 8, 6 and 4 bits: conversions with scales, matrix products, reads that transpose; sparse products.

LLVM compiles each; ml_dtypes and NumPy say what comes out, the manual's tables (CDNA4 ISA manual, 7.1.5 and 7.5) and
Composable Kernel's where a matrix lies.
"""
from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tinyhw
from tests.drive.conftest import compile_ir
from tinyhw.core.errors import Unsupported

KERNEL = """
@shared_dwords = internal addrspace(3) global [16 x [64 x i32]] poison
{declared}
define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) #0 {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr [{n} x i32], ptr addrspace(1) %in, i32 %t
  %x = load <{n} x i32>, ptr addrspace(1) %p, align 4
{body}
  %q = getelementptr [{m} x i32], ptr addrspace(1) %out, i32 %t
  store <{m} x i32> %result, ptr addrspace(1) %q, align 4
  ret void
}}
"""
SMALL = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2, "fp6": ml_dtypes.float6_e2m3fn,
         "bf6": ml_dtypes.float6_e3m2fn, "fp4": ml_dtypes.float4_e2m1fn}
LARGE = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
BITS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
TYPES = {"f32": "float", "f16": "half", "bf16": "bfloat"}
FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")
ENGINES = pytest.mark.parametrize("engine", ["ref", "jit"])


def run(body: str, given: np.ndarray, results: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
  """The `results` dwords of each lane of what `body` makes of the lanes' dwords `given` [64, n]."""
  monkeypatch.setenv("EMU", engine)
  calls = dict.fromkeys(re.findall(r"call (.+) (@llvm\.amdgcn\.[\w.]+)\((.*)\)", body))
  declared = []
  for result, name, arguments in calls:
    types = ", ".join(re.match(r"(<[^>]*>|ptr addrspace\(3\)|\w+)", a.strip())[0]  # type: ignore[index]
                      for a in re.split(r",(?![^<]*>)", arguments))
    declared.append(f"declare {result} {name}({types})")
  text = KERNEL.format(n=given.shape[1], m=results, body=body, declared="\n".join(dict.fromkeys(declared)))
  out = np.zeros(64 * results, np.uint32)
  return tinyhw.launch(compile_ir(text, "gfx950"), "k", 1, 64, [out, given.astype(np.uint32)], "EMU")[0].reshape(64, -1)


def packed(codes: np.ndarray, bits: int, unit: type = np.uint32) -> np.ndarray:
  """Codes [64, n] in the lanes' dwords, from the low bits on."""
  flat = np.unpackbits(codes.astype(np.uint8)[..., None], axis=-1, bitorder="little")[..., :bits]
  return np.packbits(flat.reshape(64, -1), axis=-1, bitorder="little").view(unit)


def unpacked(words: np.ndarray, bits: int) -> np.ndarray:
  flat = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")
  return np.packbits(flat.reshape(64, -1, bits), axis=-1, bitorder="little")[..., 0]


def values(codes: np.ndarray, name: str) -> np.ndarray:
  return codes.astype(np.uint8).view(SMALL[name]).astype(np.float64)


def same(got: np.ndarray, wanted: np.ndarray) -> None:
  """Equal but for which NaN it is."""
  a, b = got.astype(np.float64), wanted.astype(np.float64)
  np.testing.assert_array_equal(a, b)
  np.testing.assert_array_equal(np.signbit(a)[~np.isnan(a)], np.signbit(b)[~np.isnan(b)])


def scales(rng: np.random.Generator) -> np.ndarray:
  """f32 whose exponent alone counts [64], 255 among them."""
  exponent = rng.integers(117, 138, 64)
  exponent[5] = 255
  return (exponent << 23 | rng.integers(0, 1 << 22, 64)).astype(np.uint32)


def power(scale: np.ndarray) -> np.ndarray:
  exponent = (scale >> np.uint32(23) & np.uint32(0xFF)).astype(np.int64)
  return np.where(exponent == 255, np.nan, np.ldexp(1.0, np.where(exponent == 255, 0, exponent - 127)))


@ENGINES
@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
def test_two_numbers_of_a_register_grow(name: str, kind: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  rng = np.random.default_rng(1)
  word, scale = rng.integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32), scales(rng)
  select, at = ("i32 2", 2) if name == "fp4" else ("i1 true", 1)
  t = TYPES[kind]
  body = f"""  %w = extractelement <2 x i32> %x, i32 0
  %s = extractelement <2 x i32> %x, i32 1
  %f = bitcast i32 %s to float
  %y = call <2 x {t}> @llvm.amdgcn.cvt.scalef32.pk.{kind}.{name}(i32 %w, float %f, {select})
  %result = bitcast <2 x {t}> %y to <{2 if kind == 'f32' else 1} x i32>"""
  got = run(body, np.stack([word, scale], 1), 2 if kind == "f32" else 1, engine, monkeypatch).view(LARGE[kind])
  codes = unpacked(word[:, None], BITS[name])[:, 2 * at:2 * at + 2]
  with np.errstate(all="ignore"): wanted = (values(codes, name) * power(scale)[:, None]).astype(LARGE[kind])
  same(got, wanted)


@ENGINES
@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
def test_two_numbers_shrink(name: str, kind: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Divided by the scale, rounded to nearest even, put where op_sel says; the rest of the register stays."""
  rng = np.random.default_rng(2)
  old, scale, t = rng.integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32), scales(rng), TYPES[kind]
  if name == "fp4": scale[5] = 120 << 23  # it has no NaN
  x = (rng.integers(-4096, 4096, (64, 2)) * np.exp2(rng.integers(-16, 4, (64, 2)))).astype(LARGE[kind])
  pair = x.view(np.uint32).reshape(64, -1)
  bytes_ = 1 if name == "fp4" else 2
  holder = "i32" if name == "fp4" else "<2 x i16>"
  select = "i32 3" if name == "fp4" else "i1 true"
  n = 2 + pair.shape[1]
  inputs = ", ".join(f"i32 {k}" for k in range(2, n))
  two = f"{t} %a, {t} %b" if kind == "f32" else f"<2 x {t}> %v"
  body = f"""  %o = extractelement <{n} x i32> %x, i32 0
  %h = bitcast i32 %o to {holder}
  %s = extractelement <{n} x i32> %x, i32 1
  %f = bitcast i32 %s to float
  %i = shufflevector <{n} x i32> %x, <{n} x i32> poison, <{n - 2} x i32> <{inputs}>
  %v = bitcast <{n - 2} x i32> %i to <2 x {t}>
  %a = extractelement <2 x {t}> %v, i32 0
  %b = extractelement <2 x {t}> %v, i32 1
  %y = call {holder} @llvm.amdgcn.cvt.scalef32.pk.{name}.{kind}({holder} %h, {two}, float %f, {select})
  %result = bitcast {holder} %y to <1 x i32>"""
  got = run(body, np.concatenate([old[:, None], scale[:, None], pair], 1), 1, engine, monkeypatch)[:, 0]
  with np.errstate(all="ignore"):
    wanted = x.astype(np.float64) / power(scale)[:, None]
    if name == "fp4": wanted = np.clip(wanted, -6, 6)
    code = wanted.astype(SMALL[name]).view(np.uint8)
  top = np.uint32(32 - 8 * bytes_)
  np.testing.assert_array_equal(got & np.uint32((1 << int(top)) - 1), old & np.uint32((1 << int(top)) - 1))
  same(unpacked((got >> top)[:, None], BITS[name])[:, :2].view(SMALL[name]), code.view(SMALL[name]))


@ENGINES
@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("name", ["fp6", "bf6"])
def test_32_numbers_of_6_bits(name: str, kind: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """They grow, and shrink to what they were; of f32 two vectors are interleaved."""
  rng = np.random.default_rng(3)
  codes, scale, t = rng.integers(0, 64, (64, 32)), scales(rng), TYPES[kind]
  scale[5] = 127 << 23
  n = 32 if kind == "f32" else 16
  halves = ["<16 x i32> <" + ", ".join(f"i32 {2 * k + odd}" for k in range(16)) + ">" for odd in (0, 1)]
  split = "".join(f"  %h{k} = shufflevector <32 x {t}> %y, <32 x {t}> poison, {m}\n" for k, m in enumerate(halves))
  back = (f"{split}  %z = call <6 x i32> @llvm.amdgcn.cvt.scalef32.2xpk16.{name}.f32("
          "<16 x float> %h0, <16 x float> %h1, float %f)" if kind == "f32" else
          f"  %z = call <6 x i32> @llvm.amdgcn.cvt.scalef32.pk32.{name}.{kind}(<32 x {t}> %y, float %f)")
  order = ", ".join(f"i32 {k}" for k in range(6))
  whole = ", ".join(f"i32 {k}" if k < n else f"i32 {k}" for k in range(n + 6))
  body = f"""  %w = shufflevector <7 x i32> %x, <7 x i32> poison, <6 x i32> <{order}>
  %s = extractelement <7 x i32> %x, i32 6
  %f = bitcast i32 %s to float
  %y = call <32 x {t}> @llvm.amdgcn.cvt.scalef32.pk32.{kind}.{name}(<6 x i32> %w, float %f)
{back}
  %u = bitcast <32 x {t}> %y to <{n} x i32>
  %zz = shufflevector <6 x i32> %z, <6 x i32> poison, <{n} x i32> <{", ".join(f"i32 {min(k, 5)}" for k in range(n))}>
  %result = shufflevector <{n} x i32> %u, <{n} x i32> %zz, <{n + 6} x i32> <{whole}>"""
  words = packed(codes, 6)
  got = run(body, np.concatenate([words, scale[:, None]], 1), n + 6, engine, monkeypatch)
  same(np.ascontiguousarray(got[:, :n]).view(LARGE[kind]), values(codes, name) * power(scale)[:, None])
  np.testing.assert_array_equal(got[:, n:], words)


@ENGINES
@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
def test_seeds_round_up_as_often_as_what_is_cut_says(name: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """A quarter of the way between two numbers: a quarter of the seeds; at a number itself none."""
  seeds = (np.arange(64, dtype=np.uint64) << 26).astype(np.uint32)
  lower, upper = (1.0, 1.5) if name == "fp4" else (1.0, 1.125) if name == "fp8" else (1.0, 1.25)
  for share in (0.0, 0.25, 0.5):
    x = np.full(64, lower + share * (upper - lower), np.float32)
    one = "<2 x float> <float %a, float %a>"
    call = (f"call i32 @llvm.amdgcn.cvt.scalef32.sr.pk.fp4.f32(i32 0, {one[:11]} %v, i32 %r, float 1.0, i32 0)"
            if name == "fp4" else
            f"call i32 @llvm.amdgcn.cvt.scalef32.sr.{name}.f32(i32 0, float %a, i32 %r, float 1.0, i32 0)")
    body = f"""  %w = extractelement <2 x i32> %x, i32 0
  %a = bitcast i32 %w to float
  %r = extractelement <2 x i32> %x, i32 1
  %v0 = insertelement <2 x float> poison, float %a, i32 0
  %v = insertelement <2 x float> %v0, float %a, i32 1
  %y = {call}
  %result = bitcast i32 %y to <1 x i32>"""
    got = run(body, np.stack([x.view(np.uint32), seeds], 1), 1, engine, monkeypatch)
    numbers = values(unpacked(got, BITS[name])[:, 0], name)
    assert set(numbers) <= {lower, upper} and (numbers == upper).sum() == 64 * share


# ---- matrices

def lanes_of(matrix: np.ndarray, chunk: int) -> np.ndarray:
  """Codes [64, 32] of the lanes from [rows, k]: `chunk` k in a row, lanes of other k, then the next ones."""
  rows, depth = matrix.shape
  across = 64 // rows
  out = np.zeros((64, depth * rows // 64), matrix.dtype)
  for k in range(depth):
    lanes = np.arange(rows) + rows * (k // chunk % across)
    out[lanes, k // (chunk * across) * chunk + k % chunk] = matrix[:, k]
  return out


def result_of(words: np.ndarray, rows: int) -> np.ndarray:
  """The matrix [rows, rows] of f32 of the lanes' registers (CDNA4 ISA manual 7.1.4.2)."""
  d = words.view(np.float32)
  out = np.zeros((rows, rows))
  groups = 64 // rows
  for lane in range(64):
    for item in range(d.shape[1]):
      out[item % 4 + 4 * (lane // rows) + 4 * groups * (item // 4), lane % rows] = d[lane, item]
  return out


@ENGINES
@pytest.mark.parametrize("rows", [16, 32])
@pytest.mark.parametrize(("a", "b"), [("fp8", "fp8"), ("fp8", "fp4"), ("fp6", "bf8"), ("bf6", "fp6"), ("fp4", "bf6")])
def test_scaled_products(a: str, b: str, rows: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  rng = np.random.default_rng(4)
  depth = 2048 // rows
  codes = [rng.integers(0, 1 << BITS[t] - 1, (rows, depth)) & ~(64 if BITS[t] == 8 else 0) for t in (a, b)]  # no NaN
  codes = [c | rng.integers(0, 2, c.shape) << BITS[t] - 1 for c, t in zip(codes, (a, b))]
  words = [packed(lanes_of(c, 16 if BITS[t] == 8 else 32), BITS[t]) for c, t in zip(codes, (a, b))]
  scale = rng.integers(120, 134, (2, rows, depth // 32))
  bytes_ = [rng.integers(0, 256, (64, 4)).astype(np.uint8) for _ in range(2)]
  chosen = (2, 1)
  for k in range(2): bytes_[k][:, chosen[k]] = scale[k].T.reshape(-1)
  one, two = (w.shape[1] for w in words)
  n, m = one + two + 2, rows * rows // 64
  first = ", ".join(f"i32 {k}" for k in range(one))
  second = ", ".join(f"i32 {one + k}" for k in range(two))
  body = f"""  %a = shufflevector <{n} x i32> %x, <{n} x i32> poison, <{one} x i32> <{first}>
  %b = shufflevector <{n} x i32> %x, <{n} x i32> poison, <{two} x i32> <{second}>
  %sa = extractelement <{n} x i32> %x, i32 {n - 2}
  %sb = extractelement <{n} x i32> %x, i32 {n - 1}
  %d = call <{m} x float> @llvm.amdgcn.mfma.scale.f32.{rows}x{rows}x{depth}.f8f6f4.v{one}i32.v{two}i32(""" \
    f"<{one} x i32> %a, <{two} x i32> %b, <{m} x float> zeroinitializer, i32 {FORMATS.index(a)}, " \
    f"""i32 {FORMATS.index(b)}, i32 {chosen[0]}, i32 %sa, i32 {chosen[1]}, i32 %sb)
  %result = bitcast <{m} x float> %d to <{m} x i32>"""
  got = run(body, np.concatenate([*words, *(x.view(np.uint32) for x in bytes_)], 1), m, engine, monkeypatch)
  x, y = (values(c, t) * np.repeat(np.exp2(s - 127.0), 32, axis=1) for c, t, s in zip(codes, (a, b), scale))
  np.testing.assert_allclose(result_of(got, rows), x @ y.T, rtol=1e-6, atol=np.abs(x).max() * np.abs(y).max() * 1e-9)


@ENGINES
@pytest.mark.parametrize(("rows", "depth", "kind"),
                         [(16, 64, "f16"), (32, 32, "bf16"), (16, 128, "i8"), (32, 64, "i8")])
def test_deep_sparse_products(rows: int, depth: int, kind: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Two of four of A are stored; B lies in two halves, and so do A's (7.5.1.3)."""
  rng = np.random.default_rng(5)
  size = 1 if kind == "i8" else 2
  dtype = {"i8": np.int8, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[kind]
  stored = rng.integers(-8, 8, (rows, depth // 2)).astype(dtype)
  dense = rng.integers(-8, 8, (rows, depth)).astype(dtype)  # [column, k]
  pairs = np.array([(i, j) for j in range(4) for i in range(j)])[rng.integers(0, 6, (rows, depth // 4))]
  whole = np.zeros((rows, depth))
  for k in range(depth // 2): whole[np.arange(rows), k // 2 * 4 + pairs[:, k // 2, k % 2]] = stored[:, k].astype(float)
  chunk = 16 // size
  a = lanes_of(stored, chunk // 2).view(np.uint8).reshape(64, -1).view(np.uint32)
  b = lanes_of(dense, chunk).view(np.uint8).reshape(64, -1).view(np.uint32)
  chosen = 1 if size == 2 else 0  # of halves two sets of indices fit a register
  index = packed(lanes_of(pairs.reshape(rows, -1), chunk // 2), 2, np.uint16 if chosen else np.uint32)
  if chosen: index = index.astype(np.uint32) << np.uint32(16)
  m, floats = rows * rows // 64, kind != "i8"
  t = f"<8 x {TYPES[kind]}>" if floats else "<4 x i32>"
  u = f"<16 x {TYPES[kind]}>" if floats else "<8 x i32>"
  r = f"<{m} x float>" if floats else f"<{m} x i32>"
  result = "f32" if floats else "i32"
  body = f"""  %aa = shufflevector <13 x i32> %x, <13 x i32> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %a = bitcast <4 x i32> %aa to {t}
  %bb = shufflevector <13 x i32> %x, <13 x i32> poison, <8 x i32> <{", ".join(f"i32 {k}" for k in range(4, 12))}>
  %b = bitcast <8 x i32> %bb to {u}
  %i = extractelement <13 x i32> %x, i32 12
  %d = call {r} @llvm.amdgcn.smfmac.{result}.{rows}x{rows}x{depth}.{kind}({t} %a, {u} %b, """ \
    f"""{r} zeroinitializer, i32 %i, i32 0, i32 {chosen})
  %result = bitcast {r} %d to <{m} x i32>"""
  got = run(body, np.concatenate([a, b, index], 1), m, engine, monkeypatch)
  if not floats: got = got.view(np.int32).astype(np.float32).view(np.uint32)
  np.testing.assert_array_equal(result_of(got, rows), whole @ dense.astype(float).T)


@ENGINES
@pytest.mark.parametrize("bits", [16, 8, 6, 4])
def test_reads_of_lds_transpose(bits: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Of a matrix with 16 columns, row after row, each lane of sixteen gets a column."""
  dwords, count = (3, 16) if bits == 6 else (2, 64 // bits)
  rng = np.random.default_rng(6)
  codes = rng.integers(0, 1 << bits, (4, count, 16))  # [group of lanes, k, column]
  words = codes.astype(np.uint16)
  flat = np.unpackbits(words.view(np.uint8).reshape(-1, 2), axis=-1, bitorder="little")[:, :bits]
  given = np.packbits(flat.reshape(64, -1), axis=-1, bitorder="little").view(np.uint32)
  t = "<4 x half>" if bits == 16 else f"<{dwords} x i32>"
  width = "96" if bits == 6 else "64"
  body = f"""  %place = getelementptr [{dwords} x i32], ptr addrspace(3) @shared_dwords, i32 %t
  store <{dwords} x i32> %x, ptr addrspace(3) %place, align 4
  fence syncscope("workgroup") acq_rel
  %y = call {t} @llvm.amdgcn.ds.read.tr{bits}.b{width}(ptr addrspace(3) %place)
  %result = bitcast {t} %y to <{dwords} x i32>"""
  if bits == 16: body = body.replace("ds.read.tr16.b64(", "ds.read.tr16.b64.v4f16(")
  else: body = body.replace(f".b{width}(", f".b{width}.v{dwords}i32(")
  got = run(body, given, dwords, engine, monkeypatch)
  raw = np.unpackbits(np.ascontiguousarray(got).view(np.uint8), axis=-1, bitorder="little").reshape(64, count, bits)
  found = (raw.astype(np.int64) << np.arange(bits)).sum(axis=-1)
  np.testing.assert_array_equal(found.reshape(4, 16, count), np.moveaxis(codes, 1, 2))


def test_a_read_that_transposes_wants_all_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
  body = """  %place = getelementptr [2 x i32], ptr addrspace(3) @shared_dwords, i32 %t
  store <2 x i32> %x, ptr addrspace(3) %place, align 4
  %c = icmp ult i32 %t, 20
  br i1 %c, label %some, label %all
some:
  %y = call <2 x i32> @llvm.amdgcn.ds.read.tr8.b64.v2i32(ptr addrspace(3) %place)
  br label %all
all:
  %result = phi <2 x i32> [ %x, %0 ], [ %y, %some ]"""
  with pytest.raises(Unsupported, match="some lanes are inactive"):
    run(body, np.zeros((64, 2)), 2, "ref", monkeypatch)


@ENGINES
def test_numbers_without_a_scale(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  rng = np.random.default_rng(7)
  x = (rng.integers(-1 << 20, 1 << 20, (64, 2)) * np.exp2(rng.integers(-60, 8, (64, 2)))).astype(np.float32)
  x[:3] = [[np.nan, np.inf], [-0.0, 65519.9], [65520, 3.4e38]]
  body = """  %v = bitcast <2 x i32> %x to <2 x float>
  %a = fptrunc <2 x float> %v to <2 x half>
  %b = fptrunc <2 x float> %v to <2 x bfloat>
  %c = bitcast <2 x half> %a to i32
  %d = bitcast <2 x bfloat> %b to i32
  %f = fpext <2 x bfloat> %b to <2 x float>
  %g = bitcast <2 x float> %f to <2 x i32>
  %r0 = insertelement <4 x i32> poison, i32 %c, i32 0
  %r1 = insertelement <4 x i32> %r0, i32 %d, i32 1
  %g0 = extractelement <2 x i32> %g, i32 0
  %g1 = extractelement <2 x i32> %g, i32 1
  %r2 = insertelement <4 x i32> %r1, i32 %g0, i32 2
  %result = insertelement <4 x i32> %r2, i32 %g1, i32 3"""
  got = run(body, x.view(np.uint32), 4, engine, monkeypatch)
  with np.errstate(all="ignore"):
    same(np.ascontiguousarray(got[:, :1]).view(np.float16), x.astype(np.float16))
    same(np.ascontiguousarray(got[:, 1:2]).view(ml_dtypes.bfloat16), x.astype(ml_dtypes.bfloat16))
    same(np.ascontiguousarray(got[:, 2:]).view(np.float32), x.astype(ml_dtypes.bfloat16))


@ENGINES
@pytest.mark.parametrize(("name", "low", "high"), [("i8", -128, 127), ("u8", 0, 255)])
def test_shifted_bytes_saturate(name: str, low: int, high: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  rng = np.random.default_rng(8)
  given = rng.integers(0, 1 << 32, (64, 3), dtype=np.uint64).astype(np.uint32)
  given[:, 2] = rng.integers(20, 64, 64)
  parts = "".join(f"  %p{k} = extractelement <3 x i32> %x, i32 {k}\n" for k in range(3))
  body = parts + f"""  %y = call i16 @llvm.amdgcn.ashr.pk.{name}.i32(i32 %p0, i32 %p1, i32 %p2)
  %z = zext i16 %y to i32
  %result = bitcast i32 %z to <1 x i32>"""
  got = run(body, given, 1, engine, monkeypatch)[:, 0]
  x = np.clip(given[:, :2].view(np.int32) >> (given[:, 2:] & 31).astype(np.int32), low, high) & 0xFF
  np.testing.assert_array_equal(got, x[:, 0] | x[:, 1] << 8)
