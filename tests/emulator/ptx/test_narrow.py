"""Floats of 4, 6 and 8 bits of sm_100 and sm_120: conversions, products with scale factors, copies of tensors;
and what else sm_100 brought: gathered rows, clusters that take over others' work, extremes of a warp's floats."""
from __future__ import annotations

import random
import zlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.emulator.compiled import compiled_too
from tests.strength import THOROUGH, examples, seed
from tinyhw.core.errors import MachineFault
from tinyhw.emulator.ptx.memory.tensormap import TYPES, TensorMap

HEAD = ".version 9.0\n.target {target}\n.address_size 64\n"
FORMS = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "e2m3": (2, 3, 1), "e3m2": (3, 2, 3), "e2m1": (2, 1, 1)}
CODES = [t for t, _ in TYPES]


@pytest.fixture(autouse=True)
def engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
  """Both engines, for each test or, in the quick run, for some."""
  if THOROUGH or not zlib.crc32(request.node.name.encode()) % 2: compiled_too(monkeypatch)


def run(body: str, *args: Any, grid: int = 1, threads: int = 32, directives: str = "", declared: str = "",
        params: str = "", target: str = "sm_100a") -> list[Any]:
  """A kernel whose first parameter, `out`, has its address in %o; %t is a thread's index."""
  text = f"""{HEAD.format(target=target)}{declared}
  .visible .entry k (.param .u64 out, .param .u64 in{params}) {directives} {{
  .reg .pred %p<9>; .reg .b8 %b<9>; .reg .b16 %h<9>; .reg .b32 %r<40>, %t; .reg .f32 %f<20>; .reg .b64 %l<20>, %o, %i;
  .reg .b128 %q<3>;
  ld.param.u64 %o, [out]; ld.param.u64 %i, [in]; mov.u32 %t, %tid.x; setp.eq.u32 %p1, %t, 0;
  {body}
  ret; }}"""
  return list(tinyhw.launch(text, "k", grid, threads, list(args), "EMU"))


def value(code: int, t: str) -> Fraction:
  """The number of a code."""
  e, m, bias = FORMS[t]
  exponent, fraction = code >> m & (1 << e) - 1, code & (1 << m) - 1
  x = Fraction(fraction, 1 << m) + (exponent > 0)
  x *= Fraction(2) ** (max(exponent, 1) - bias)
  return -x if code >> e + m & 1 else x


def nearest(x: float, t: str, relu: bool) -> int:
  """The code of a float, rounded to nearest even; what is too large becomes the largest, NaN too."""
  e, m, _ = FORMS[t]
  top, sign = (1 << e + m) - 1, 1 << e + m
  if np.isnan(x): return top
  negative = bool(np.signbit(x))
  if relu and negative: return 0
  size = value(top, t) if np.isinf(x) else abs(Fraction(float(x)))
  best = min(range(top + 1), key=lambda c: (abs(value(c, t) - size), c & 1))
  return best | sign * negative


def floats(rng: random.Random, count: int) -> Any:
  values = [rng.choice([0.0, -0.0, float("inf"), -float("inf"), float("nan"), rng.uniform(-8, 8), rng.choice([-1, 1])
                        * rng.randrange(0, 65) / 8, rng.uniform(-40, 40),
                        rng.uniform(-1, 1) * 2.0 ** rng.randrange(-140, 127)])
            for _ in range(count)]
  return np.array(values, np.float32)


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("t", ["e2m1", "e2m3", "e3m2"])
def test_conversions_of_narrow_floats(t: str, relu: str) -> None:
  rng = random.Random(seed(len(t + relu)))
  x, register = floats(rng, 64 * examples(4)), "%b1" if t == "e2m1" else "%h1"
  wide = "mov.b16 %h1, {%b1, %b2};" if t == "e2m1" else ""
  n = len(x) // 2
  out = run(f"""mov.b16 %h2, 0; mov.b16 {{%b2, %b3}}, %h2; shl.b32 %r1, %t, 3;
    cvt.u64.u32 %l1, %r1; add.u64 %l2, %i, %l1; ld.global.v2.f32 {{%f1, %f2}}, [%l2];
    cvt.rn.satfinite{relu}.{t}x2.f32 {register}, %f1, %f2; {wide}
    cvt.u32.u16 %r2, %h1; add.u64 %l3, %o, %l1; cvt.rn{relu}.f16x2.{t}x2 %r3, {register};
    st.global.v2.u32 [%l3], {{%r2, %r3}};""", np.zeros(2 * n, np.uint32), x, threads=n)[0].reshape(n, 2)
  room = 4 if t == "e2m1" else 8
  for k in range(n):
    codes = [nearest(v, t, bool(relu)) for v in x[2 * k:2 * k + 2]]
    assert int(out[k, 0]) == codes[0] << room | codes[1], (x[2 * k:2 * k + 2], codes)
    halves = np.array([float(value(c, t)) for c in codes], np.float16)
    halves = np.where([bool(c >> sum(FORMS[t][:2])) for c in codes], -abs(halves), halves).astype(np.float16)
    assert int(out[k, 1]) == int(halves.view(np.uint16)[0]) << 16 | int(halves.view(np.uint16)[1])


def scale(x: float, up: bool, satfinite: bool) -> int:
  """The code of a power of two next to a number."""
  if np.isnan(x): return 255
  if np.isinf(x): return 254 if satfinite else 255
  size = abs(Fraction(float(x)))
  if up: code = next((c for c in range(255) if Fraction(2) ** (c - 127) >= size), 255)
  else: code = next((c for c in range(254, -1, -1) if Fraction(2) ** (c - 127) <= size), 0)
  return min(code, 254) if satfinite else code


@pytest.mark.parametrize("satfinite", ["", ".satfinite"])
@pytest.mark.parametrize("mode", ["rz", "rp"])
def test_conversions_of_scale_factors(mode: str, satfinite: str) -> None:
  rng = random.Random(seed(len(satfinite) + ord(mode[1])))
  x = floats(rng, 128)
  x[:4] = [2.0 ** -127, 2.0 ** -128, 2.0 ** -149, np.finfo(np.float32).max]
  out = run(f"""shl.b32 %r1, %t, 3; cvt.u64.u32 %l1, %r1; add.u64 %l2, %i, %l1; ld.global.v2.f32 {{%f1, %f2}}, [%l2];
    cvt.{mode}{satfinite}.ue8m0x2.f32 %h1, %f1, %f2; cvt.rn.bf16x2.ue8m0x2 %r3, %h1;
    mov.b32 %r4, %f1; shr.u32 %r4, %r4, 16; mov.b32 %r5, %f2; and.b32 %r5, %r5, -65536; or.b32 %r4, %r4, %r5;
    cvt.{mode}{satfinite}.ue8m0x2.bf16x2 %h2, %r4; mov.b32 %r2, {{%h1, %h2}}; shl.b32 %r1, %t, 3;
    add.u64 %l3, %o, %l1; st.global.v2.u32 [%l3], {{%r2, %r3}};""", np.zeros(128, np.uint32), x, threads=64)[0]
  cut = (x.view(np.uint32) & 0xFFFF0000).view(np.float32)
  for k in range(64):
    a, b = (scale(v, mode == "rp", bool(satfinite)) for v in x[2 * k:2 * k + 2])
    low, high = (scale(v, mode == "rp", bool(satfinite)) for v in cut[2 * k:2 * k + 2])
    assert int(out[2 * k]) == (high << 8 | low) << 16 | a << 8 | b, x[2 * k:2 * k + 2]
    brains = [0x7FFF if c == 255 else c << 7 or 0x40 for c in (a, b)]
    assert int(out[2 * k + 1]) == brains[0] << 16 | brains[1]


@pytest.mark.parametrize("t", ["e2m1", "e2m3", "e3m2", "e4m3", "e5m2"])
def test_random_rounding_is_right_in_the_mean(t: str) -> None:
  """Over all random bits (of 16 each 256th) a number becomes its two neighbours, and on average itself."""
  rng = random.Random(seed(len(t) + ord(t[1])))
  e, m, bias = FORMS[t]
  top = float(value((1 << e + m) - 2, t)) if t != "e5m2" else 57344.0
  x = np.array([rng.choice([rng.uniform(-top, top), rng.uniform(-1, 1), rng.uniform(-1, 1) * 2.0 ** (1 - bias)])
                for _ in range(64)], np.float32)
  bits = 8 if t == "e2m1" else 16
  given = np.repeat(x, 256)
  out = run(f"""mov.u32 %r9, %ctaid.x; shl.b32 %r1, %r9, 10; mad.lo.u32 %r1, %t, 4, %r1; cvt.u64.u32 %l1, %r1;
    add.u64 %l2, %i, %l1; ld.global.f32 %f1, [%l2]; mul.lo.u32 %r2, %t, {0x1010101 if bits == 8 else 0x1000100};
    cvt.rs.satfinite.{t}x4.f32 {'%h1' if bits == 8 else '%r3'}, {{%f1, %f1, %f1, %f1}}, %r2;
    {'cvt.u32.u16 %r3, %h1;' if bits == 8 else ''} add.u64 %l3, %o, %l1; st.global.u32 [%l3], %r3;""",
            np.zeros(len(given), np.uint32), given, grid=64, threads=256)[0].reshape(64, 256)
  room = 4 if bits == 8 else 8
  for number, codes in zip(x, out):
    for shift in range(0, 4 * room, room):
      found = [value(int(c) >> shift & (1 << room) - 1, t) for c in codes]
      low, high = min(found), max(found)
      assert low <= Fraction(float(number)) <= high and set(found) <= {low, high}
      assert abs(sum(found) / 256 - Fraction(float(number))) <= (high - low) / 128


def test_what_takes_other_halves_is_made_of_f32() -> None:
  """A sum of bf16 and f32 that f32 holds and bf16 does not; the halves have the first places."""
  out = run("""mov.f32 %f1, 0f3F800001; mov.b16 %h1, 0x4000; mov.b16 %h2, 0x4200; add.rz.f32.bf16.sat %f2, %h1, %f1;
    sub.f32.bf16 %f3, %h1, %f1; fma.rn.f32.f16 %f4, %h1, %h2, %f1; @!%p1 bra END;
    st.global.v2.f32 [%o], {%f2, %f3}; st.global.f32 [%o+8], %f4; END:""", np.zeros(3, np.float32), np.zeros(1),
            target="sm_100")[0]
  one = float(np.nextafter(np.float32(1), np.float32(2)))
  assert out.tolist() == [1.0, 2 - one, float(np.float32(6 + one))]


# ---- products of a warp

def kinds() -> list[tuple[str, str, str, str, int, str]]:
  every = [("f8f6f4", a, b, d, 0, "") for a, b, d in (("e4m3", "e2m1", "f32"), ("e3m2", "e2m3", "f16"))]
  every += [("mxf8f6f4", a, b, "f32", 1, "ue8m0") for a, b in (("e5m2", "e2m1"), ("e2m3", "e4m3"))]
  return [*every, ("mxf4", "e2m1", "e2m1", "f32", 2, "ue8m0"), ("mxf4nvf4", "e2m1", "e2m1", "f32", 2, "ue8m0"),
          ("mxf4nvf4", "e2m1", "e2m1", "f32", 4, "ue4m3")]


def thinned(rng: Any, x: Any, packed: bool) -> tuple[Any, Any]:
  """(a matrix with its zeros, metadata of the threads) of what is stored of it. The first and third thread of four have
  32 bits each of the upper rows, the others of the lower ones; a chunk of zeros has metadata that name nothing."""
  k, unit = 2 * x.shape[1], 2 if packed else 1
  chunk = 4 * unit
  out, words = np.zeros((16, k)), [0] * 32
  for row, j in np.ndindex(16, k // chunk):
    places = [int(v) for v in np.sort(rng.permutation(4)[:2])]
    mine = x[row, chunk // 2 * j:chunk // 2 * (j + 1)]
    if not mine.any(): places = [0, 0]
    for n, place in enumerate(places): out[row, chunk * j + unit * place:][:unit] += mine[unit * n:unit * (n + 1)]
    lane = 4 * (row % 8) + 2 * (j // 8) + row // 8
    words[lane] |= (places[0] | places[1] << 2) << 4 * (j % 8)
  return out, np.array(words, np.uint32)


@pytest.mark.left("mma.*block_scale")
@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize(("kind", "a", "b", "d", "count", "scales"), kinds())
def test_products_of_narrow_floats(kind: str, a: str, b: str, d: str, count: int, scales: str, thin: bool) -> None:
  """Elements of each thread are drawn; the matrices are read out of them as the figures of m16n8k32 and k64 say, of
  `thin` ones m16n8k64 and k128."""
  rng = np.random.default_rng(seed(zlib.crc32(f"{kind}{a}{b}{count}{scales}".encode())))
  packed = kind.startswith("mxf4")
  k, bits = (64 << thin, 4) if packed else (32 << thin, 8)
  words, matrices = [], []
  for t, rows, registers in ((a, 16, 4), (b, 8, 2 << thin)):
    e, m, bias = FORMS[t]
    codes = rng.integers(0, 1 << 1 + e + m, (rows, k >> (thin and rows == 16)))
    if thin: codes[rng.random(codes.shape) < 0.3] = 0
    if e > 3: codes = codes & ~(((1 << e) - 1) << m) | (codes > 0) * rng.integers(bias - 1, bias + 2, codes.shape) << m
    matrices.append(np.vectorize(lambda c, t=t: float(value(int(c), t)))(codes))
    raw = codes << 2 if t == "e2m1" and not packed else codes
    n = 32 // bits
    for lane in range(32):
      for r in range(registers):
        row = lane // 4 + (8 * (r & 1) if rows == 16 else 0)
        first = lane % 4 * n + (r >> 1 if rows == 16 else r) * 4 * n
        words.append(sum(int(raw[row, first + j]) << bits * j for j in range(n)))
  x, y = matrices
  left, right = np.array(words[:128], np.uint32).reshape(32, 4), np.array(words[128:], np.uint32).reshape(32, -1)
  right = np.pad(right, ((0, 0), (0, 4 - right.shape[1])))
  metadata = np.zeros(32, np.uint32)
  if thin: x, metadata = thinned(rng, x, packed)
  factors = rng.integers(0, 1 << 32, (32, 2), np.uint32)
  byte, thread = [int(rng.choice({1: [0, 1, 2, 3], 2: [0, 2]}.get(count, [0]))) for _ in "ab"], [1, 3]
  if count:
    codes = rng.integers(125, 130, (32, 2, 4)) if scales == "ue8m0" else rng.integers(0x30, 0x40, (32, 2, 4))
    factors = codes.astype(np.uint8).view(np.uint32).reshape(32, 2)
    real = 2.0 ** (codes - 127.0) if scales == "ue8m0" else np.vectorize(lambda c: float(value(int(c), "e4m3")))(codes)
    for g in range(8):
      for h in (0, 1):
        x[g + 8 * h] *= np.repeat(real[4 * g + 2 * thread[0] + h, 0, byte[0]:byte[0] + count], k // count)
      y[g] *= np.repeat(real[4 * g + thread[1], 1, byte[1]:byte[1] + count], k // count)
  c = rng.integers(-8, 9, (16, 8)).astype(np.float16 if d == "f16" else np.float32)
  place = [(lane // 4 + 8 * (r >> 1), 2 * (lane % 4) + (r & 1)) for lane in range(32) for r in range(4)]
  added = np.array([c[p] for p in place], c.dtype).reshape(32, 4)
  given = np.concatenate([left, right, factors, metadata[:, None], np.zeros((32, 1), np.uint32),
                          added.view(np.uint32).reshape(32, -1), np.zeros((32, 2), np.uint32)], axis=1)[:, :16]
  width = "b32" if d == "f16" else "f32"
  letters = ["%r20", "%r21"] if d == "f16" else ["%f1", "%f2", "%f3", "%f4"]
  sums = "{" + ", ".join(letters) + "}"
  scaled = "" if not count else f".block_scale.scale_vec::{count}X"
  more = "" if not count else f", %r10, {{{byte[0]}, {thread[0]}}}, %r11, {{{byte[1]}, {thread[1]}}}"
  tail = f".{scales}" if count else ""
  loads = "".join(f"ld.global.{width} {n}, [%l2+{48 + 4 * j}];" for j, n in enumerate(letters))
  stores = "".join(f"st.global.{width} [%l3+{4 * j}], {n};" for j, n in enumerate(letters))
  sparse, wide, which = "", "", ""
  if thin: sparse, wide, which = ".sp::ordered_metadata", ", %r14, %r15", ", %r12, 0"
  out = run(f"""mul.wide.u32 %l1, %t, 64; add.u64 %l2, %i, %l1; ld.global.v2.u32 {{%r4, %r5}}, [%l2];
    ld.global.v2.u32 {{%r6, %r7}}, [%l2+8]; ld.global.v2.u32 {{%r8, %r9}}, [%l2+16];
    ld.global.v2.u32 {{%r14, %r15}}, [%l2+24]; ld.global.v2.u32 {{%r10, %r11}}, [%l2+32];
    ld.global.u32 %r12, [%l2+40]; {loads}
    mma{sparse}.sync.aligned.m16n8k{k}.row.col.kind::{kind}{scaled}.{d}.{a}.{b}.{d}{tail} {sums},
      {{%r4, %r5, %r6, %r7}}, {{%r8, %r9{wide}}}, {sums}{which}{more};
    mul.wide.u32 %l1, %t, 16; add.u64 %l3, %o, %l1; {stores}""",
            np.zeros((32, 4), np.uint32), given, target="sm_120a")[0]
  wanted = (x @ y.T + c).astype(c.dtype)
  found = out.view(np.float16)[:, :4] if d == "f16" else out.view(np.float32)
  assert (found == np.array([wanted[p] for p in place], c.dtype).reshape(32, 4)).all()


@pytest.mark.left("ldmatrix.*b8x16")
@pytest.mark.parametrize("bits", [4, 6])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_that_unpacks(count: int, bits: int) -> None:
  rng = np.random.default_rng(seed(count + bits))
  rows = rng.integers(0, 256, (32, 16), np.uint8)
  kind, names = ("b4x16_p64" if bits == 4 else "b6x16_p32"), ["%r5", "%r6", "%r7", "%r8"][:count]
  out = run(f"""mul.wide.u32 %l1, %t, 16; add.u64 %l2, %i, %l1; ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%l2];
    mov.u32 %r9, s; shl.b32 %r10, %t, 4; add.u32 %r9, %r9, %r10; st.shared.v4.u32 [%r9], {{%r1, %r2, %r3, %r4}};
    bar.warp.sync -1;
    ldmatrix.sync.aligned.m8n16.x{count}.shared.b8x16.{kind} {{{', '.join(names)}}}, [%r9]; add.u64 %l3, %o, %l1;
    {''.join(f'st.global.u32 [%l3+{4 * j}], {n};' for j, n in enumerate(names))}""", np.zeros((32, 4), np.uint32), rows,
            declared=".shared .align 16 .b8 s[512];")[0]
  for lane in range(32):
    for j in range(count):
      whole = int.from_bytes(rows[8 * j + lane // 4].tobytes(), "little")
      codes = [whole >> bits * (4 * (lane % 4) + n) & (1 << bits) - 1 for n in range(4)]
      assert int(out[lane, j]) == sum(c << 8 * n for n, c in enumerate(codes))


@pytest.mark.left("ldmatrix.*b8x16")
@pytest.mark.parametrize("form", ["b8", "b8x16.b6x16_p32", "b8x16.b4x16_p64"])
@pytest.mark.parametrize("count", [1, 2])
def test_squares_of_bytes_are_loaded_transposed(count: int, form: str) -> None:
  """A thread has four columns of the transpose's rows g and g + 8: four rows of memory, at two places."""
  rng = np.random.default_rng(seed(count + len(form)))
  rows = rng.integers(0, 256, (32, 16), np.uint8)
  names = ["%r5", "%r6", "%r7", "%r8"][:2 * count]
  out = run(f"""mul.wide.u32 %l1, %t, 16; add.u64 %l2, %i, %l1; ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%l2];
    mov.u32 %r9, s; shl.b32 %r10, %t, 4; add.u32 %r9, %r9, %r10; st.shared.v4.u32 [%r9], {{%r1, %r2, %r3, %r4}};
    bar.warp.sync -1;
    ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.{form} {{{', '.join(names)}}}, [%r9]; add.u64 %l3, %o, %l1;
    {''.join(f'st.global.u32 [%l3+{4 * j}], {n};' for j, n in enumerate(names))}""", np.zeros((32, 4), np.uint32), rows,
            declared=".shared .align 16 .b8 s[512];")[0]
  bits = {"b8": 8, "b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}[form]

  def element(row: int, column: int) -> int:
    return int.from_bytes(rows[row].tobytes(), "little") >> bits * column & (1 << bits) - 1
  for lane in range(32):
    g, first = lane // 4, 4 * (lane % 4)
    for j in range(2 * count):
      wanted = [element(16 * (j // 2) + first + n, g + 8 * (j % 2)) for n in range(4)]
      assert int(out[lane, j]) == sum(c << 8 * n for n, c in enumerate(wanted))


@pytest.mark.left("stmatrix.sync.aligned.m16n8")
@pytest.mark.parametrize("count", [1, 2, 4])
def test_bytes_of_sums_are_stored_transposed(count: int) -> None:
  """A thread has two neighbours of row g and two of row g + 8, as of the sums of a product of 16 x 8."""
  rng = np.random.default_rng(seed(count))
  words = rng.integers(0, 1 << 32, (32, 4), np.uint32)
  names = ["%r1", "%r2", "%r3", "%r4"][:count]
  out = run(f"""mul.wide.u32 %l1, %t, 16; add.u64 %l2, %i, %l1; ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%l2];
    mov.u32 %r9, s; shl.b32 %r10, %t, 4; add.u32 %r9, %r9, %r10; mov.u32 %r11, 0;
    st.shared.v4.u32 [%r9], {{%r11, %r11, %r11, %r11}}; bar.warp.sync -1;
    stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8 [%r9], {{{', '.join(names)}}}; bar.warp.sync -1;
    ld.shared.v4.u32 {{%r1, %r2, %r3, %r4}}, [%r9]; add.u64 %l3, %o, %l1;
    st.global.v4.u32 [%l3], {{%r1, %r2, %r3, %r4}};""", np.zeros((32, 16), np.uint8), words,
            declared=".shared .align 16 .b8 s[512];")[0]
  wanted = np.zeros((32, 16), np.uint8)
  for lane, k, e in np.ndindex(32, count, 4):
    row, column = lane // 4 + 8 * (e // 2), 2 * (lane % 4) + e % 2
    wanted[8 * k + column, row] = int(words[lane, k]) >> 8 * e & 255
  assert (out == wanted).all()


def test_what_is_stored_with_a_release_is_in_memory() -> None:
  out = run("""shl.b32 %r1, %t, 3; cvt.u64.u32 %l1, %r1; add.u64 %l2, %o, %l1; cvt.u16.u32 %h1, %t;
    st.async.release.gpu.global.u32 [%l2], %r1; st.async.mmio.release.sys.b16 [%l2+4], %h1;""",
            np.zeros((32, 2), np.uint32), np.zeros(1), target="sm_100")[0]
  assert (out == np.stack([8 * np.arange(32), np.arange(32)], axis=1)).all()


@pytest.mark.left("st.bulk")
def test_shared_memory_is_cleared() -> None:
  """By two threads, of which one says its size in 32 bits and names a generic address."""
  out = run("""mov.u32 %r1, s; shl.b32 %r2, %t, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], -1; bar.warp.sync -1;
    setp.eq.u32 %p2, %t, 5; @%p1 st.bulk.weak.shared::cta [%r1+8], 16, 0; cvta.shared.u64 %l5, 0; cvt.u64.u32 %l6, %r1;
    add.u64 %l5, %l5, %l6; mov.u32 %r4, 24; @%p2 st.bulk [%l5+64], %r4, 0; bar.warp.sync -1; ld.shared.u32 %r5, [%r3];
    cvt.u64.u32 %l1, %r2; add.u64 %l2, %o, %l1; st.global.u32 [%l2], %r5;""", np.zeros(32, np.uint32), np.zeros(1),
            declared=".shared .align 8 .b8 s[128];", target="sm_100")[0]
  assert [k for k in range(32) if not out[k]] == [2, 3, 4, 5, *range(16, 22)]


@pytest.mark.parametrize(("line", "message"), [
  ("st.bulk [%r1], 12, 0;", "st.bulk of 12 bytes: a multiple of 8"),
  ("st.bulk [%o], 8, 0;", "outside of shared memory"),
  ("st.bulk.shared::cta [%r1], 136, 0;", "write of 136 bytes at 0x0 of shared memory, which has 128")])
def test_what_is_not_cleared(line: str, message: str) -> None:
  line = line.replace("%r1", "%l5") if "shared" not in line else line
  with pytest.raises(MachineFault, match=message):
    run(f"mov.u32 %r1, s; cvta.shared.u64 %l5, 0; @%p1 {line}", np.zeros(32, np.uint32), np.zeros(1),
        declared=".shared .align 8 .b8 s[128];", target="sm_100")


# ---- copies of tensors

def mapped(**fields: Any) -> Any:
  """Bytes of a tensor map; its address is the kernel's to fill in."""
  return np.frombuffer(TensorMap(**fields).encode(), np.uint8)


def copied(m: Any, tensor: Any, body: str, size: int) -> Any:
  """What is in shared memory, `size` bytes, when a body has copied there from the tensor that a map describes."""
  return run(f"""ld.param.u64 %l1, [map]; mov.u32 %r1, s; mov.u32 %r2, bar; @!%p1 bra WAIT;
    mbarrier.init.shared.b64 [bar], 1; tensormap.replace.tile.global_address.global.b1024.b64 [%l1], %i;
    {body}
WAIT: bar.sync 0; LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra LOOP;
    mov.u32 %r3, 0; mov.u64 %l5, %o;
OUT: add.u32 %r4, %r1, %r3; ld.shared.u32 %r5, [%r4]; st.global.u32 [%l5], %r5; add.u64 %l5, %l5, 4;
    add.u32 %r3, %r3, 4; setp.lt.u32 %p3, %r3, {size}; @%p3 bra OUT;""", np.zeros(size, np.uint8), tensor, m,
    declared=f".shared .align 1024 .b8 s[{size}]; .shared .align 8 .b64 bar;", params=", .param .u64 map")[0]


@pytest.mark.left("cp.*gather4")
def test_four_rows_are_gathered() -> None:
  rng = np.random.default_rng(seed(8))
  x = rng.integers(0, 1 << 16, (40, 64), np.uint16)
  m = mapped(dims=(64, 40, 0, 0, 0), strides=(128, 0, 0, 0), box=(64, 1, 0, 0, 0), steps=(1, 1, 0, 0, 0), rank=2,
             kind=CODES.index("u16"), swizzle=3)
  at = [int(v) for v in rng.integers(0, 44, 4)]
  out = copied(m, x, f"""mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
    cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1],
      [%l1, {{0, {', '.join(map(str, at))}}}], [%r2];""", 512).view(np.uint16)
  for k, row in enumerate(at):
    mine = x[row] if row < 40 else np.zeros(64, np.uint16)
    for chunk in range(8):
      place = 64 * k + 8 * (chunk ^ k)
      assert (out[place:place + 8] == mine[8 * chunk:8 * chunk + 8]).all()


def test_four_rows_are_scattered() -> None:
  x = np.zeros((16, 32), np.uint32)
  m = mapped(dims=(32, 16, 0, 0, 0), strides=(128, 0, 0, 0), box=(32, 1, 0, 0, 0), steps=(1, 1, 0, 0, 0), rank=2,
             kind=CODES.index("u32"))
  out = run("""ld.param.u64 %l1, [map]; mov.u32 %r1, s; shl.b32 %r3, %t, 4; add.u32 %r2, %r1, %r3;
    mul.lo.u32 %r4, %t, 7;
    st.shared.v4.u32 [%r2], {%r4, %t, %r4, %r3}; bar.sync 0; @!%p1 bra END;
    tensormap.replace.tile.global_address.global.b1024.b64 [%l1], %i;
    cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%l1, {0, 9, 3, 15, 4}], [%r1];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:""", np.zeros(4, np.uint32), x, m,
            declared=".shared .align 128 .b8 s[512];", params=", .param .u64 map")[1]
  t = np.arange(32)
  rows = np.stack([7 * t, t, 7 * t, 16 * t], axis=1).reshape(4, 32)
  wanted = np.zeros((16, 32))
  wanted[[9, 3, 15, 4]] = rows
  assert (out == wanted).all()


def test_rows_of_boxes_of_several_cannot_be_gathered() -> None:
  m = mapped(dims=(64, 40, 0, 0, 0), strides=(128, 0, 0, 0), box=(64, 2, 0, 0, 0), steps=(1, 1, 0, 0, 0), rank=2,
             kind=CODES.index("u16"))
  with pytest.raises(MachineFault, match="boxes of 2 rows, for four rows at places of their own"):
    copied(m, np.zeros((40, 64), np.uint16), """cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4
      .mbarrier::complete_tx::bytes [%r1], [%l1, {0, 1, 2, 3, 4}], [%r2];""".replace("\n      ", ""), 512)


@pytest.mark.left("cp.async.bulk.tensor")
@pytest.mark.parametrize("kind", ["b4x16", "b4x16_p64", "b6x16_p32"])
def test_narrow_elements_are_copied(kind: str) -> None:
  """A box of 32 by 6 elements from element 16 of row 1 on, of which two rows are outside."""
  rng = np.random.default_rng(seed(len(kind)))
  size, stored = {"b4x16": (8, 8), "b4x16_p64": (8, 16), "b6x16_p32": (12, 16)}[kind]
  x = rng.integers(0, 256, (5, 16 * 12), np.uint8)
  m = mapped(dims=(16 * 8, 5, 0, 0, 0), strides=(16 * 12, 0, 0, 0), box=(32, 6, 0, 0, 0), steps=(1, 1, 0, 0, 0), rank=2,
             kind=CODES.index(kind), swizzle=1 if stored == 16 else 0)
  total = 12 * stored
  out = copied(m, x, f"""mbarrier.arrive.expect_tx.shared.b64 _, [bar], {12 * size};
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%l1, {{16, 1}}], [%r2];""",
               total)
  for row in range(6):
    for unit in range(2):
      mine = x[row + 1, size * (unit + 1):size * (unit + 2)] if row < 4 else np.zeros(size, np.uint8)
      at = stored * (2 * row + unit)
      if stored == 16: at ^= (at >> 7 & 1) << 4
      assert (out[at:at + size] == mine).all()


@pytest.mark.parametrize("atomicity", [1, 3])
def test_more_bytes_stay_together(atomicity: int) -> None:
  rng = np.random.default_rng(seed(atomicity))
  x = rng.integers(0, 1 << 32, (16, 32), np.uint32)
  m = mapped(dims=(32, 16, 0, 0, 0), strides=(128, 0, 0, 0), box=(32, 16, 0, 0, 0), steps=(1, 1, 0, 0, 0), rank=2,
             kind=CODES.index("u32"), swizzle=3, atomicity=atomicity)
  out = copied(m, x, """mbarrier.arrive.expect_tx.shared.b64 _, [bar], 2048;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%l1, {0, 0}], [%r2];""", 2048)
  cells = out.view(np.uint32).reshape(16, 8, 4)
  tables = {1: ["01234567", "23016745", "45670123", "67452301"], 3: ["01234567", "45670123"]}[atomicity]
  for row in range(16):
    order = tables[row % len(tables)]
    for place, chunk in enumerate(order): assert (cells[row, place] == x[row].reshape(8, 4)[int(chunk)]).all()


# ---- clusters that take over, extremes of floats

@pytest.mark.left("clusterlaunchcontrol")
@pytest.mark.parametrize("cluster", [1, 2])
def test_clusters_take_over_what_has_not_begun(cluster: int) -> None:
  """Each block of a cluster marks the block's index that it works for, until nothing is left: each exactly once."""
  grid = 4000 if cluster == 1 else 3000
  multicast = ".multicast::cluster::all" if cluster > 1 else ""
  both = "barrier.cluster.arrive; barrier.cluster.wait;" if cluster > 1 else ""
  out = run(f"""mov.u32 %r1, %ctaid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r9, 0; setp.eq.and.u32 %p4, %r2, 0, %p1;
    @%p1 mbarrier.init.shared.b64 [bar], 1; mov.u32 %r5, s; mov.u32 %r6, bar; {both} bar.sync 0;
NEXT: @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
    @%p4 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{multicast}.b128 [%r5], [%r6];
    mul.wide.u32 %l1, %r1, 4; add.u64 %l2, %o, %l1; @%p1 red.global.add.u32 [%l2], 1;
LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [bar], %r9; @!%p2 bra LOOP; xor.b32 %r9, %r9, 1;
    ld.shared.b128 %q1, [s]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1; @!%p3 bra END;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%r1, %r3, %r4, _}}, %q1;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r7, %q1; setp.ne.u32 %p5, %r1, %r7; @%p5 trap;
    add.u32 %r1, %r1, %r2; {both} bar.sync 0; bra NEXT;
END: {both}""", np.zeros(grid, np.uint32), np.zeros(4, np.uint32), grid=grid, threads=64,
    directives=f".explicitcluster .reqnctapercluster {cluster}, 1, 1" if cluster > 1 else "",
    declared=".shared .align 16 .b8 s[16]; .shared .align 8 .b64 bar;")[0]
  assert (out == 1).all()


@pytest.mark.left("redux.*f32")
@pytest.mark.parametrize("mode", ["", ".NaN", ".abs", ".abs.NaN"])
@pytest.mark.parametrize("op", ["min", "max"])
def test_extremes_of_floats_of_a_warp(op: str, mode: str) -> None:
  rng = random.Random(seed(len(op + mode)))
  x = floats(rng, 256)
  x[:64] = [rng.choice([0.0, -0.0]) for _ in range(64)]
  x[64:96] = np.nan
  x[128:] = [rng.uniform(-5, 5) for _ in range(128)]
  out = run(f"""shl.b32 %r1, %t, 2; cvt.u64.u32 %l1, %r1; add.u64 %l2, %i, %l1; ld.global.f32 %f1, [%l2];
    redux.sync.{op}{mode}.f32 %f2, %f1, -1; add.u64 %l3, %o, %l1; st.global.f32 [%l3], %f2;""",
            np.zeros(256, np.uint32), x, threads=256)[0]
  for w in range(8):
    values = [abs(v) if "abs" in mode else v for v in x[32 * w:32 * w + 32]]
    real = [v for v in values if not np.isnan(v)]
    if not real or "NaN" in mode and len(real) < 32: wanted = 0x7FFFFFFF
    else:
      best = (min if op == "min" else max)(real, key=lambda v: (v, not np.signbit(v)))
      wanted = int(np.float32(best).view(np.uint32))
    assert (out[32 * w:32 * w + 32] == wanted).all()
