"""What gfx9's vector instructions have of their own, against formulas on Python integers and NumPy.

From the CDNA3 ISA manual: sub-dword addressing (13.3.7), DPP (table 93), op_sel, packed f32, 8-bit floats (7.2).
"""
from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from tests.emulator.gfx9 import LANES, run
from tests.strength import seed

RNG = np.random.default_rng(seed(9))
SELECT = {"BYTE_0": (0, 8), "BYTE_1": (8, 8), "BYTE_2": (16, 8), "BYTE_3": (24, 8), "WORD_0": (0, 16),
          "WORD_1": (16, 16), "DWORD": (0, 32)}
M32 = (1 << 32) - 1


def words(count: int = LANES) -> np.ndarray: return RNG.integers(0, 1 << 32, count, dtype=np.uint32)


def halves(count: int = LANES) -> np.ndarray:
  """Two ordinary f16 in each."""
  return RNG.normal(0, 4, 2 * count).astype(np.float16).view(np.uint32)


def part(x: int, select: str, sign: bool) -> int:
  first, bits = SELECT[select]
  value = x >> first & (1 << bits) - 1
  return value - (1 << bits) & M32 if sign and value >> bits - 1 else value


def placed(value: int, old: int, select: str, unused: str) -> int:
  first, bits = SELECT[select]
  value &= (1 << bits) - 1
  if bits == 32: return value
  if unused == "UNUSED_PRESERVE": return old & ~((1 << bits) - 1 << first) & M32 | value << first
  if unused == "UNUSED_SEXT" and value >> bits - 1: return (value - (1 << bits) << first) & M32
  return value << first


# ---- sub-dword addressing

INTEGERS: dict[str, Callable[[int, int], int]] = {
  "v_add_u32": lambda a, b: a + b & M32, "v_sub_u32": lambda a, b: a - b & M32, "v_and_b32": lambda a, b: a & b,
  "v_xor_b32": lambda a, b: a ^ b, "v_max_u32": max, "v_add_u16": lambda a, b: a + b & 0xFFFF,
  "v_mul_lo_u16": lambda a, b: (a & 0xFFFF) * (b & 0xFFFF) & 0xFFFF,
  "v_lshlrev_b32": lambda a, b: b << (a & 31) & M32,
  "v_mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) & M32}


@pytest.mark.parametrize("name", INTEGERS)
def test_sdwa_of_integers(name: str) -> None:
  x, y, old = words(), words(), words()
  choices = list(itertools.product(SELECT, ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"), SELECT, (False, True)))
  lines, want, outputs = [], [], []
  for n, k in enumerate(RNG.choice(len(choices), 24, replace=False)):
    dst, unused, first, sign = choices[k]
    second = str(RNG.choice(list(SELECT)))
    if name.endswith("u16") and "DWORD" in (first, second): first, second = "WORD_1", "BYTE_2"
    source = "sext(v1), v2 " if sign else "v1, v2 "
    lines += [f"v_mov_b32_e32 v{10 + n}, v3", f"{name}_sdwa v{10 + n}, {source}dst_sel:{dst} dst_unused:{unused} "
              f"src0_sel:{first} src1_sel:{second}"]
    f = INTEGERS[name]
    want.append([placed(f(part(a, first, sign), part(b, second, False)), c, dst, unused)
                 for a, b, c in zip(x.tolist(), y.tolist(), old.tolist())])
    outputs.append(10 + n)
  got = run("\n".join(lines), {1: x, 2: y, 3: old}, outputs)
  for line, g, w in zip(lines[1::2], got, want): assert g.tolist() == w, line


@pytest.mark.parametrize(("a", "b", "dst"), [("WORD_0", "WORD_1", "WORD_1"), ("WORD_1", "WORD_1", "DWORD"),
                                             ("WORD_1", "WORD_0", "WORD_0")])
def test_sdwa_of_floats(a: str, b: str, dst: str) -> None:
  """neg and abs act after the selection."""
  x, y, old = halves(), halves(), words()
  text = f"v_add_f16_sdwa v3, -v1, |v2| dst_sel:{dst} dst_unused:UNUSED_PRESERVE src0_sel:{a} src1_sel:{b}"
  p, q = (v.view(np.float16).reshape(-1, 2)[:, int(s[-1])] for v, s in ((x, a), (y, b)))
  total = (-p + np.abs(q)).astype(np.float16).view(np.uint16)
  want = [placed(t, c, dst, "UNUSED_PRESERVE") for t, c in zip(total.tolist(), old.tolist())]
  assert run(text, {1: x, 2: y, 3: old}, [3])[0].tolist() == want


def test_sdwa_of_comparisons_conversions_and_scalars() -> None:
  x, y = words(), words()
  got = run("""
    v_cmp_lt_u32_sdwa s[10:11], v1, v2 src0_sel:BYTE_1 src1_sel:BYTE_2
    v_cmp_eq_u16_sdwa vcc, v1, v1 src0_sel:WORD_0 src1_sel:WORD_0
    s_mov_b32 s12, 0x12345678
    v_add_u32_sdwa v3, v1, s12 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:WORD_1
    v_cvt_f32_u32_sdwa v4, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_2""",
            {1: x, 2: y}, ["s10", "s11", "vcc_lo", 3, 4])
  less = (x >> 8 & 255) < (y >> 16 & 255)
  assert [int(got[0][0]), int(got[1][0])] == [sum(int(b) << k for k, b in enumerate(less[s:s + 32])) for s in (0, 32)]
  assert got[2][0] == M32
  assert np.array_equal(got[3], (x >> 24) + 0x1234)
  assert np.array_equal(got[4].view(np.float32), (x >> 16 & 255).astype(np.float32))


# ---- DPP

def dpp_source(control: str, n: int) -> int | None:
  """The lane that lane n reads (table 93); None where there is none."""
  name, _, value = control.partition(":")
  row, column = n & ~15, n & 15
  k = int(value) if value.isdigit() else 0
  if name == "quad_perm": return (n & ~3) + [int(c) for c in value.strip("[]").split(",")][n & 3]
  if name == "row_shl": return row + column + k if column + k < 16 else None
  if name == "row_shr": return row + column - k if column >= k else None
  if name == "row_ror": return row + (column - k) % 16
  if name == "wave_shl": return n + 1 if n < 63 else None
  if name == "wave_rol": return (n + 1) % 64
  if name == "wave_shr": return n - 1 if n > 0 else None
  if name == "wave_ror": return (n - 1) % 64
  if name == "row_mirror": return row + 15 - column
  if name == "row_half_mirror": return (n & ~7) + 7 - (n & 7)
  if name == "row_bcast" and k == 15: return row - 1 if n > 15 else None
  if name == "row_bcast": return (n & 32) - 1 if n > 31 else None
  return row + k


CONTROLS = ("quad_perm:[3,0,2,1]", *(f"row_{c}:{k}" for c in ("shl", "shr", "ror") for k in (1, 7, 15)), "wave_shl:1",
            "wave_rol:1", "wave_shr:1", "wave_ror:1", "row_mirror", "row_half_mirror", "row_bcast:15", "row_bcast:31",
            "row_newbcast:0", "row_newbcast:9")


@pytest.mark.parametrize("control", CONTROLS)
def test_dpp_controls(control: str) -> None:
  """With and without bound_ctrl and masks, with every lane and with some."""
  x, y, old = words(), words(), words()
  everyone = M32 << 32 | M32
  for rows, banks, bound, active in itertools.product((15, 10), (15, 6), (False, True), (everyone, 0xF0FF0F3355)):
    tail = f"row_mask:{rows:#x} bank_mask:{banks:#x}{' bound_ctrl:1' if bound else ''}"
    got = run(f"s_mov_b32 exec_lo, {active & M32:#x}\ns_mov_b32 exec_hi, {active >> 32:#x}\n"
              f"v_add_u32_dpp v3, v1, v2 {control} {tail}", {1: x, 2: y, 3: old}, [3])[0]
    want = []
    for n in range(LANES):
      source = dpp_source(control, n)
      if source is not None and not active >> source & 1: source = None
      enabled = active >> n & 1 and rows >> n // 16 & 1 and banks >> n // 4 % 4 & 1
      if not enabled or source is None and not bound: want.append(int(old[n]))
      else: want.append((int(x[source]) if source is not None else 0) + int(y[n]) & M32)
    assert got.tolist() == want, (control, tail, hex(active))


def test_dpp_of_64_bits() -> None:
  low, high = words(), words()
  got = run("v_mov_b64_dpp v[4:5], v[2:3] row_newbcast:5 row_mask:0xf bank_mask:0xf", {2: low, 3: high}, [4, 5])
  lane = np.arange(LANES) // 16 * 16 + 5
  assert np.array_equal(got[0], low[lane]) and np.array_equal(got[1], high[lane])


# ---- halves of registers

@pytest.mark.parametrize(("sel", "high"), list(itertools.product(itertools.product((0, 1), repeat=3), (0, 1))))
def test_op_sel_keeps_the_other_half(sel: tuple[int, int, int], high: int) -> None:
  x, y, z, old = words(), words(), words(), words()
  f = [halves() for _ in range(3)]
  op_sel = f"op_sel:[{sel[0]},{sel[1]},{sel[2]},{high}]"
  got = run(f"v_mov_b32_e32 v11, v10\nv_mov_b32_e32 v12, v10\nv_mad_u16 v11, v1, v2, v3 {op_sel}\n"
            f"v_fma_f16 v12, v4, v5, v6 {op_sel}", {1: x, 2: y, 3: z, 4: f[0], 5: f[1], 6: f[2], 10: old}, [11, 12])
  a, b, c = (v >> 16 * s & 0xFFFF for v, s in zip((x, y, z), sel))
  p, q, r = (v.view(np.float16).reshape(-1, 2)[:, s].astype(np.float64) for v, s in zip(f, sel))
  fused = (p * q + r).astype(np.float16).view(np.uint16).astype(np.uint32)
  for g, result in zip(got, (a * b + c & 0xFFFF, fused)):
    want = old & 0xFFFF | result << 16 if high else old & np.uint32(0xFFFF0000) | result
    assert np.array_equal(g, want)


def test_results_of_16_bits_clear_the_upper_half() -> None:
  x, y, old = halves(), halves(), words()
  got = run("""
    v_add_u16_e32 v3, v1, v2
    v_add_f16_e32 v4, v1, v2
    v_cvt_f16_f32_e32 v5, v1
    v_mac_f16_e32 v6, v1, v2
    v_mad_legacy_u16 v7, v1, v2, v2
    v_sat_pk_u8_i16_e32 v8, v1""", {1: x, 2: y, **{n: old for n in range(3, 9)}}, list(range(3, 9)))
  assert all((g >> 16 == 0).all() for g in got)
  low = [v.view(np.float16)[::2] for v in (x, y, old)]
  assert np.array_equal(got[1], (low[0] + low[1]).view(np.uint16))
  with np.errstate(all="ignore"):
    mac = (low[0] * low[1]).astype(np.float16) + low[2]
  same = (got[3] == mac.view(np.uint16)) | np.isnan(mac)
  assert same.all()


# ---- comparisons, carries, moves

def test_cmpx_writes_its_registers_and_exec() -> None:
  x, y = words(), words()
  got = run("""
    s_mov_b64 s[20:21], exec
    v_cmpx_lt_u32_e64 s[10:11], v1, v2
    s_mov_b64 s[12:13], exec
    s_mov_b64 exec, s[20:21]
    v_cmpx_gt_u32_e32 vcc, v1, v2
    s_mov_b64 s[14:15], exec""", {1: x, 2: y}, ["s10", "s11", "s12", "s13", "vcc_lo", "vcc_hi", "s14", "s15"])
  def bits(mask: np.ndarray) -> list[int]: return np.packbits(mask, bitorder="little").view(np.uint32).tolist()
  values = [int(g[0]) for g in got]
  assert values[0:2] == values[2:4] == bits(x < y) and values[4:6] == values[6:8] == bits(x > y)


def test_carries_go_through_vcc_and_pairs() -> None:
  x, y, p, q = words(), words(), words(), words()
  got = run("""
    v_add_co_u32_e32 v5, vcc, v1, v2
    v_addc_co_u32_e32 v6, vcc, v3, v4, vcc
    v_sub_co_u32_e64 v7, s[10:11], v1, v2
    v_subb_co_u32_e64 v8, s[12:13], v3, v4, s[10:11]
    v_subrev_co_u32_e32 v9, vcc, v1, v2
    v_subbrev_co_u32_e32 v10, vcc, v3, v4, vcc""", {1: x, 2: y, 3: p, 4: q}, [5, 6, 7, 8, 9, 10])
  a, b = x.astype(object) + (p.astype(object) << 32), y.astype(object) + (q.astype(object) << 32)
  top = 1 << 64
  for (low, high), want in zip(zip(got[::2], got[1::2]), ((a + b) % top, (a - b) % top, (b - a) % top)):
    assert ((low.astype(object) + (high.astype(object) << 32)) == want).all()


def test_accumulation_registers_are_moved() -> None:
  x = words()
  got = run("""
    v_accvgpr_write_b32 a7, v1
    v_accvgpr_mov_b32 a200, a7
    v_accvgpr_read_b32 v2, a200
    v_mov_b64_e32 v[4:5], v[2:3]
    v_swap_b32 v4, v6""", {1: x, 3: x + 1, 6: x + 2}, [2, 4, 5, 6])
  for g, want in zip(got, (x, x + 2, x + 1, x)): assert np.array_equal(g, want)


def test_shifted_addition_of_64_bits() -> None:
  a, b = words(), words()
  got = run("v_lshl_add_u64 v[6:7], v[2:3], 3, v[4:5]", {2: a, 3: b, 4: b, 5: a}, [6, 7])
  want = ((a.astype(object) + (b.astype(object) << 32)) * 8 + b.astype(object) + (a.astype(object) << 32)) % (1 << 64)
  assert (got[0].astype(object) + (got[1].astype(object) << 32) == want).all()


# ---- two f32

@pytest.mark.parametrize(("low", "high"), [((0, 0, 0), (1, 1, 1)), ((1, 0, 1), (0, 1, 0)), ((1, 1, 1), (1, 0, 0))])
def test_packed_f32(low: tuple[int, ...], high: tuple[int, ...]) -> None:
  v = [RNG.normal(0, 3, LANES).astype(np.float32) for _ in range(6)]
  inputs = {2 + k: x.view(np.uint32) for k, x in enumerate(v)}
  two = f"op_sel:[{low[0]},{low[1]}] op_sel_hi:[{high[0]},{high[1]}]"
  three = f"op_sel:[{low[0]},{low[1]},{low[2]}] op_sel_hi:[{high[0]},{high[1]},{high[2]}]"
  got = run(f"""
    v_pk_fma_f32 v[10:11], v[2:3], v[4:5], v[6:7] {three} neg_lo:[1,0,0] neg_hi:[0,0,1]
    v_pk_mul_f32 v[12:13], v[2:3], v[4:5] {two}
    v_pk_add_f32 v[14:15], v[2:3], v[4:5] {two} neg_lo:[0,1]
    v_pk_mov_b32 v[16:17], v[2:3], v[4:5] op_sel:[{low[0]},{low[1]}]
    v_pk_mul_f32 v[2:3], v[2:3], v[2:3] op_sel:[1,1] op_sel_hi:[0,0]""", inputs, [*range(10, 18), 2, 3])
  f = [g.view(np.float32) for g in got]
  a = [v[s[0]].astype(np.float64) for s in (low, high)]
  b = [v[2 + s[1]].astype(np.float64) for s in (low, high)]
  c = [v[4 + s[2]].astype(np.float64) for s in (low, high)]
  assert np.allclose(f[0], -a[0] * b[0] + c[0], rtol=1e-5, atol=1e-6)
  assert np.allclose(f[1], a[1] * b[1] - c[1], rtol=1e-5, atol=1e-6)
  for k in (0, 1): assert np.array_equal(f[2 + k], (a[k] * b[k]).astype(np.float32))
  assert np.array_equal(f[4], (a[0] - b[0]).astype(np.float32))
  assert np.array_equal(f[5], (a[1] + b[1]).astype(np.float32))
  assert np.array_equal(f[6], v[low[0]]) and np.array_equal(f[7], v[2 + low[1]])
  assert np.array_equal(f[8], v[1] * v[1]) and np.array_equal(f[9], v[0] * v[0])


# ---- 8-bit floats

def small(code: int, fraction: int, bias: int) -> float:
  exponent, low = code >> fraction & (1 << 7 - fraction) - 1, code & (1 << fraction) - 1
  if code == 0x80: return float("nan")
  size = low * 2.0 ** (1 - bias - fraction) if exponent == 0 else (1 + low / (1 << fraction)) * 2.0 ** (exponent - bias)
  return -size if code >> 7 else size


FORMATS = {"fp8": (3, 8), "bf8": (2, 16)}


@pytest.mark.parametrize("kind", FORMATS)
def test_every_8_bit_float_as_f32(kind: str) -> None:
  codes = np.arange(256, dtype=np.uint32).reshape(LANES, 4)
  packed = (codes << np.arange(0, 32, 8, dtype=np.uint32)).sum(axis=1).astype(np.uint32)
  lines = [f"v_cvt_f32_{kind}_sdwa v{10 + k}, v1 src0_sel:BYTE_{k}" for k in range(4)]
  lines += [f"v_cvt_pk_f32_{kind}_sdwa v[{14 + 2 * k}:{15 + 2 * k}], v1 src0_sel:WORD_{k}" for k in range(2)]
  lines += [f"v_cvt_f32_{kind}_e32 v18, v1", f"v_cvt_pk_f32_{kind}_e32 v[20:21], v1"]
  got = [g.view(np.float32) for g in run("\n".join(lines), {1: packed}, [*range(10, 19), 20, 21])]
  want = np.array([small(c, *FORMATS[kind]) for c in range(256)], np.float32).reshape(LANES, 4)
  for g, k in zip(got, (0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 1)): assert np.array_equal(g, want[:, k], equal_nan=True)


def nearest(x: float, kind: str, limit: bool) -> int:
  """The code of the nearest number, the even one of two."""
  values = [small(c, *FORMATS[kind]) for c in range(128)]
  if np.isnan(x): return 0x80
  size = abs(x)
  top = values[-1]
  half = (values[-1] - values[-2]) / 2
  if size >= top + half: code = 0x7F if limit else 0x80  # the number after the greatest would be even
  else: code = min(range(128), key=lambda c: (abs(values[c] - size), c & 1))
  return code if code in {0, 0x80} or x > 0 else code | 0x80


def f32_values() -> np.ndarray:
  exponents = RNG.integers(-20, 18, 40)
  x = RNG.normal(0, 1, 40) * 2.0 ** exponents
  ties = np.array([small(c, 3, 8) + (small(c + 1, 3, 8) - small(c, 3, 8)) / 2 for c in (0, 1, 2, 7, 8, 9, 50, 126)])
  special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 240, 248, 256, 57344, 61440, 65536, 1e-9, -57344, -247.9,
                      2.0 ** -11, -3 * 2.0 ** -11])
  return np.concatenate([x, ties, special]).astype(np.float32)[:LANES]


@pytest.mark.parametrize("limit", [False, True])
@pytest.mark.parametrize("kind", FORMATS)
def test_f32_as_8_bit_floats(kind: str, limit: bool) -> None:
  x, old = f32_values(), words()
  y = np.roll(x, 5)
  setreg = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\n" if limit else ""
  got = run(f"{setreg}v_mov_b32_e32 v4, v3\nv_cvt_pk_{kind}_f32 v3, v1, v2\n"
            f"v_cvt_pk_{kind}_f32 v4, -v1, |v2| op_sel:[0,0,1]",
            {1: x.view(np.uint32), 2: y.view(np.uint32), 3: old}, [3, 4])
  for n in range(LANES):
    a, b = float(x[n]), float(y[n])
    want = nearest(a, kind, limit) | nearest(b, kind, limit) << 8
    assert got[0][n] == int(old[n]) & 0xFFFF0000 | want, (a, b, hex(got[0][n]))
    want = nearest(-a, kind, limit) | nearest(abs(b), kind, limit) << 8
    assert got[1][n] == int(old[n]) & 0xFFFF | want << 16, (a, b, hex(got[1][n]))


# ---- dot products

@pytest.mark.parametrize("bits", [4, 8, 16])
def test_integer_dot_products(bits: int) -> None:
  x, y, z = words(), words(), words()
  count, mask = 32 // bits, (1 << bits) - 1
  def elements(v: int, signed: bool) -> list[int]:
    raw = [v >> k * bits & mask for k in range(count)]
    return [e - (1 << bits) if signed and e >> bits - 1 else e for e in raw]
  got = run(f"""
    v_dot{count}_i32_i{bits} v4, v1, v2, v3
    v_dot{count}_i32_i{bits} v5, v1, v2, v3 clamp
    v_dot{count}_u32_u{bits} v6, v1, v2, v3
    v_dot{count}_u32_u{bits} v7, v1, v2, v3 clamp
    v_mov_b32_e32 v8, v3
    v_dot{count}c_i32_i{bits}_e32 v8, v1, v2""", {1: x, 2: y, 3: z}, [4, 5, 6, 7, 8])
  for n in range(LANES):
    a, b, c = int(x[n]), int(y[n]), int(z[n])
    s = sum(p * q for p, q in zip(elements(a, True), elements(b, True))) + (c - (c >> 31 << 32))
    u = sum(p * q for p, q in zip(elements(a, False), elements(b, False))) + c
    want = [s & M32, max(-(1 << 31), min(s, (1 << 31) - 1)) & M32, u & M32, min(u, M32), s & M32]
    assert [int(g[n]) for g in got] == want


def test_f16_dot_product_flushes_denormals() -> None:
  x, y = halves(), halves()
  x[0], y[0] = 0x00010002, 0x3C003C00  # two denormals times one
  z = RNG.normal(0, 2, LANES).astype(np.float32)
  z[0] = 0
  got = run("v_dot2_f32_f16 v4, v1, v2, v3", {1: x, 2: y, 3: z.view(np.uint32)}, [4])[0].view(np.float32)
  p, q = (v.view(np.float16).reshape(-1, 2).astype(np.float64) for v in (x, y))
  want = (p * q).sum(axis=1) + z
  assert got[0] == 0 and np.allclose(got[1:], want[1:], rtol=1e-6, atol=1e-6)


def test_clamp_of_sdwa_counts_only_where_other_forms_can_clamp() -> None:
  x, y = words(), words()
  got = run("""
    v_add_u32_sdwa v3, v1, v2 clamp dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD
    v_xor_b32_sdwa v4, v1, v2 clamp dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD
    v_sat_pk_u8_i16_sdwa v5, v1 clamp dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD""", {1: x, 2: y}, [3, 4, 5])
  assert np.array_equal(got[0], np.minimum(x.astype(np.uint64) + y, M32).astype(np.uint32))
  assert np.array_equal(got[1], x ^ y)
  bytes_ = np.clip(x.view(np.int16).reshape(-1, 2), 0, 255).astype(np.uint32)
  assert np.array_equal(got[2], bytes_[:, 0] | bytes_[:, 1] << 8)
