"""EMU_SUMS=chip: sums of matrix products against a model of the measured units in whole numbers, on both engines."""
from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.devices.mocked import mock_options
from tinyhw.emulator.values import chip_sums
from tinyhw.kernels.launch import launch

TYPES: dict[str, tuple[Any, int]] = {  # with the least exponent of a normal number
  "f16": (np.float16, -14), "bf16": (ml_dtypes.bfloat16, -126), "e4m3": (ml_dtypes.float8_e4m3fn, -6),
  "e5m2": (ml_dtypes.float8_e5m2, -14), "f32": (np.float32, -126)}


def exponent(x: Fraction, least: int) -> int:
  if x == 0: return -126
  e = (abs(x).numerator.bit_length() - abs(x).denominator.bit_length())
  while abs(x) < Fraction(2) ** e: e -= 1
  while abs(x) >= Fraction(2) ** (e + 1): e += 1
  return max(e, least)


def cut(x: Fraction, unit: Fraction) -> Fraction:
  """Towards zero to a multiple of a unit."""
  n = abs(x) / unit
  return unit * (n.numerator // n.denominator) * (1 if x >= 0 else -1)


def modelled(a: list[float], b: list[float], c: float, kinds: tuple[str, str], result: str, sizes: tuple[int, int, int],
             ) -> float:
  """One element: `sizes` are the products of a step, the bits kept, and those of an f32 that comes out."""
  steps, kept, bits = sizes
  total = Fraction(c)
  for first in range(0, len(a), steps):
    terms = [(total, exponent(total, TYPES[result][1]))]
    for x, y in zip(a[first:first + steps], b[first:first + steps]):
      u, v = Fraction(x), Fraction(y)
      terms.append((u * v, exponent(u, TYPES[kinds[0]][1]) + exponent(v, TYPES[kinds[1]][1])))
    unit = Fraction(2) ** (max(e for _, e in terms) - kept)
    total = sum((cut(t, unit) for t, _ in terms), Fraction(0))
    if result == "f16": total = Fraction(float(np.float16(float(total))))
    else: total = cut(total, Fraction(2) ** (exponent(total, -126) - bits))
  return float(total)


FORMS = {  # form of mma: elements of a step, bits kept, bits of the result; by sm
  ("f16", 16): {75: None, 80: (8, 24, 23), 89: (8, 24, 23), 90: (16, 25, 23), 120: (16, 25, 23)},
  ("bf16", 16): {80: (8, 24, 23), 90: (16, 25, 23), 100: (16, 25, 23)},
  ("e4m3", 32): {89: (16, 13, 13), 90: (32, 25, 23)}, ("e5m2", 32): {89: (16, 13, 13), 120: (32, 25, 23)}}
CASES = [(t, k, sm, sizes) for (t, k), by in FORMS.items() for sm, sizes in by.items() if sizes is not None]


def text(t: str, k: int, sm: int, result: str) -> bytes:
  c = 4 if result == "f32" else 2
  own = "f32" if result == "f32" else "b32"
  moves = "\n".join(f"  ld.global.b32 %a{n}, [%la + {4 * n}];" for n in range(4))
  moves += "\n" + "\n".join(f"  ld.global.b32 %b{n}, [%lb + {4 * n}];" for n in range(2))
  moves += "\n" + "\n".join(f"  ld.global.{own} %c{n}, [%lc + {4 * n}];" for n in range(c))
  stores = "\n".join(f"  st.global.{own} [%lc + {4 * n}], %c{n};" for n in range(c))
  cs = ", ".join(f"%c{n}" for n in range(c))
  return f""".version 8.7
.target sm_{sm}
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c) {{
  .reg .b32 %a<4>, %b<2>, %t; .reg .{own} %c<4>; .reg .b64 %la, %lb, %lc, %o;
  mov.u32 %t, %tid.x;
  ld.param.u64 %la, [a]; ld.param.u64 %lb, [b]; ld.param.u64 %lc, [c];
  mul.wide.u32 %o, %t, 16; add.u64 %la, %la, %o;
  mul.wide.u32 %o, %t, 8; add.u64 %lb, %lb, %o;
  mul.wide.u32 %o, %t, {4 * c}; add.u64 %lc, %lc, %o;
{moves}
  mma.sync.aligned.m16n8k{k}.row.col.{result}.{t}.{t}.{result}
    {{{cs}}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}}, {{{cs}}};
{stores}
  ret;
}}
""".encode()


def fragments(x: Any, y: Any, z: Any) -> tuple[Any, Any, Any]:
  """The registers [32, ...] of A [16, k], B [k, 8] and C [16, 8], as the manual's figures have them."""
  lane = np.arange(32)
  g, t = lane >> 2, lane & 3
  each = 4 // x.dtype.itemsize
  half = x.shape[1] // 2
  def word(matrix: Any, row: Any, column: Any) -> Any:
    return np.stack([matrix[row, column + e] for e in range(each)], axis=-1)
  a = np.stack([word(x, g + 8 * (r & 1), each * t + half * (r >> 1)) for r in range(4)], axis=1)
  b = np.stack([word(y.T, g, each * t + half * r) for r in range(2)], axis=1)
  c = np.stack([z[g + 8 * (e >> 1), 2 * t + (e & 1)] for e in range(4)], axis=1)
  return tuple(np.ascontiguousarray(m) for m in (a, b, c))


@pytest.mark.left("mma")
@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize(("t", "k", "sm", "sizes"), CASES)
def test_mma(t: str, k: int, sm: int, sizes: tuple[int, int, int], engine: str,
             monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", engine)
  monkeypatch.setenv("EMU_SUMS", "chip")
  rng = np.random.default_rng(sm + k)
  kind = TYPES[t][0]
  for result in ("f32", "f16") if t == "f16" else ("f32",):
    spread = 4 if result == "f32" and t != "e4m3" else 1
    x, y = ((rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)).astype(kind)
            for shape in ((16, k), (k, 8)))
    z = (rng.standard_normal((16, 8)) * 2.0 ** rng.integers(-9, 9, (16, 8))).astype(TYPES[result][0])
    a, b, c = fragments(x, y, z)
    got = launch(text(t, k, sm, result), "k", 1, 32, [a.view(np.uint32), b.view(np.uint32), c], device="EMU")[2]
    back = np.empty((16, 8), c.dtype)
    lane = np.arange(32)
    for e in range(4): back[(lane >> 2) + 8 * (e >> 1), 2 * (lane & 3) + (e & 1)] = got.reshape(32, 4)[:, e]
    for i, j in np.ndindex(16, 8):
      want = modelled([float(v) for v in x[i]], [float(v) for v in y[:, j]], float(z[i, j]), (t, t), result, sizes)
      assert float(back[i, j]) == want, (result, i, j)


FLOATS = {t: st.integers(0, (1 << 8 * np.dtype(kind).itemsize) - 1) for t, (kind, _) in TYPES.items()}


def number(t: str, raw: int) -> float:
  kind = np.dtype(TYPES[t][0])
  value = float(np.array([raw], f"u{kind.itemsize}").view(kind)[0])
  return value if np.isfinite(value) else 0.0


@settings(max_examples=examples(60))
@given(st.data(), st.sampled_from(["f16", "bf16", "e4m3", "e5m2"]), st.sampled_from([70, 75, 80, 89, 90, 120]))
def test_any_numbers(data: st.DataObject, t: str, sm: int) -> None:
  """All patterns, denormals too."""
  by = chip_sums.unit(sm, data.draw(st.sampled_from(["mma", "wgmma"])), t)
  assert by is not None
  k = data.draw(st.sampled_from([by.steps, 2 * by.steps]))
  result = data.draw(st.sampled_from(["f32", "f16"])) if t == "f16" else "f32"
  a, b = ([number(t, data.draw(FLOATS[t])) for _ in range(k)] for _ in "ab")
  c = number(result, data.draw(FLOATS[result]))
  got = chip_sums.product(np.array([a]), np.array(b)[:, None], np.array([[c]]), (t, t), result, by)
  want = modelled(a, b, c, (t, t), result, (by.steps, by.kept, by.result))
  if abs(want) < 2.0 ** (128 if result == "f32" else 16) * 0.999: assert float(got[0, 0]) == want
  else: assert abs(float(got[0, 0])) in {abs(want), float("inf")}


def test_what_is_no_number() -> None:
  by = chip_sums.unit(90, "mma", "f16")
  assert by is not None
  for a, c, want in (([np.inf, 1.0], 0.0, 0x7F800000), ([-np.inf, 1.0], 0.0, 0xFF800000),
                     ([np.nan, 1.0], 0.0, 0x7FFFFFFF), ([np.inf, -np.inf], 1.0, 0x7FFFFFFF)):
    x = np.array([a + [0.0] * 14])
    got = chip_sums.product(x, np.ones((16, 1)), np.array([[c]]), ("f16", "f16"), "f32", by)
    assert int(got.view(np.uint32)[0, 0]) == want


def test_what_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
  with pytest.raises(Unsupported, match="sparse"): chip_sums.unit(90, "mma", "f16", sparse=True)
  with pytest.raises(Unsupported, match="sm_61"): chip_sums.unit(61, "mma", "f16")
  assert chip_sums.unit(90, "mma", "s8") is None and chip_sums.unit(90, "mma", "f64") is None
  monkeypatch.setenv("EMU_SUMS", "some")
  with pytest.raises(InvalidArgument, match="'some' is no way to add"): chip_sums.wanted()
  with pytest.raises(InvalidArgument, match="'some' is no way to add"): mock_options()


@pytest.mark.left("mma")
def test_without_it_sums_are_rounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.delenv("EMU_SUMS", raising=False)
  x, y = np.full((16, 16), 2.0**-12, np.float16), np.full((16, 8), 2.0**-13, np.float16).T.copy().T
  z = np.ones((16, 8), np.float32)
  a, b, c = fragments(x, y[:16], z)
  args = [a.view(np.uint32), b.view(np.uint32), c]
  assert (launch(text("f16", 16, 80, "f32"), "k", 1, 32, args, device="EMU")[2] == 1 + 2.0**-21).all()
  monkeypatch.setenv("EMU_SUMS", "chip")
  assert (launch(text("f16", 16, 80, "f32"), "k", 1, 32, args, device="EMU")[2] == 1).all()  # 2**-25 is behind 24 bits


F8 = "{" + ", ".join(f"%f{n}" for n in range(8)) + "}"
UNMEASURED = [
  ("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1},"
   " {%r2, %r3}, {%f0, %f1, %f2, %f3}, %r4, 0;", "sparse"),
  ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3},"
   " {%r2, %r3}, {%f0, %f1, %f2, %f3};", "nobody has measured"),
  (f"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {F8}, {{%r0, %r1}}, {{%r2, %r3}}, {F8};", "has no unit for it")]


@pytest.mark.left("mma")
@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize(("line", "message"), UNMEASURED)
def test_what_is_not_known_is_refused_where_it_comes(line: str, message: str, engine: str,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
  """And computed where nobody asks for the chip's sums."""
  monkeypatch.setenv("EMU", engine)
  target = "sm_120a" if "kind" in line else "sm_90"
  source = f""".version 8.7\n.target {target}\n.visible .entry k(.param .u64 out) {{ .reg .b32 %r<5>; .reg .f32 %f<8>;
    .reg .b64 %o; ld.param.u64 %o, [out]; mov.u32 %r4, 0x44444444; mov.b32 %r0, 0x3C003C00; mov.b32 %r1, %r0;
    mov.b32 %r2, %r0; mov.b32 %r3, %r0; {' '.join(f'mov.f32 %f{n}, 0f3F800000;' for n in range(8))}
    {line} st.global.f32 [%o], %f0; ret; }}""".encode()
  monkeypatch.setenv("EMU_SUMS", "chip")
  with pytest.raises(Unsupported, match=message): launch(source, "k", 1, 32, [np.zeros(1, np.float32)], device="EMU")
  monkeypatch.delenv("EMU_SUMS")
  found = launch(source, "k", 1, 32, [np.zeros(1, np.float32)], device="EMU")[0]
  assert found == (1 + 16 * 1.5 * 1.5 if "kind" in line else 1 + 8 if "sp" in line else 1 + 4)
