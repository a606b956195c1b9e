"""Conversions of numbers to floats in every rounding, near every power of two, on both engines."""
from __future__ import annotations

import random
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.emulator.jit.ptx.test_jit import kernel, run
from tests.strength import seed
from tinyhw import launch
from tinyhw.isa.ptx.forms import SIZES

MODES = ("rn", "rz", "rm", "rp")
DIGITS = {"f16": (11, 15, -24), "f32": (24, 127, -149), "f64": (53, 1023, -1074),  # of it, greatest and least exponent
          "bf16": (8, 127, -133)}
TO = {"f16": "%h1", "f32": "%f2", "f64": "%d2", "bf16": "%h1"}


def rounded(x: Fraction, t: str, mode: str) -> float:
  """The number of a float type next to another one."""
  digits, most, least = DIGITS[t]
  if not x: return 0.0
  size = abs(x)
  exponent = size.numerator.bit_length() - size.denominator.bit_length()
  if size < Fraction(2) ** exponent: exponent -= 1
  unit = Fraction(2) ** max(exponent - digits + 1, least)
  low, rest = divmod(size / unit, 1)
  away = {"rn": rest > Fraction(1, 2) or rest == Fraction(1, 2) and low % 2 == 1, "rz": False,
          "rm": x < 0 and rest > 0, "rp": x > 0 and rest > 0}[mode]
  found = (low + away) * unit
  if found >= Fraction(2) ** (most + 1):
    end = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** most
    inward = {"rn": False, "rz": True, "rm": x > 0, "rp": x < 0}[mode]
    return float(end if inward else 0) * (1 if x > 0 else -1) if inward else float("inf") * (1 if x > 0 else -1)
  return float(found if x > 0 else -found)


@pytest.mark.parametrize("source", ["s64", "u64", "s32", "u32", "f64", "f32"])
def test_numbers_as_floats(source: str) -> None:
  """Beside fractions; what compiled code gives is the reference's, bit for bit."""
  rng, size = random.Random(seed(5)), int(source[1:])
  near = [sign * (1 << k) + e for k in (0, 10, 11, 15, 16, 23, 24, 31, 32, 52, 53, 62, 63) for e in
          (-1, 0, 1, 1 << max(k - 12, 0), (1 << max(k - 25, 0)) + 1) for sign in (1, -1)]
  near += [65504, 65519, 65520, 65521, -65519, -65520, rng.getrandbits(63), -rng.getrandbits(60), (1 << 64) - 1]
  if source[0] == "f":
    values = [float(n) / rng.choice([1, 1, 1 << 20, 3, 1 << 80]) for n in near]
    values = [float(np.float32(v)) if source == "f32" else v for v in values]
    raw = b"".join(struct.pack("<f" if size == 32 else "<d", v) for v in values)
    exact = [Fraction(v) for v in values]
  else:
    exact = [Fraction(n % (1 << size)) for n in near]
    if source[0] == "s": exact = [n - (1 << size) if n >= 1 << size - 1 else n for n in exact]
    raw = b"".join((int(n) % (1 << size)).to_bytes(size // 8, "little") for n in exact)
  to = [t for t in DIGITS if not (source[0] == "f" and SIZES[t] * 8 >= size)]
  forms = [(t, mode) for t in to for mode in MODES]
  r = {"s": "%l1" if size == 64 else "%r1", "u": "%l1" if size == 64 else "%r1", "f": "%d1" if size == 64 else "%f1"}
  body = f"mad.wide.u32 %l2, %t, {size // 8}, %in; ld.global.{source} {r[source[0]]}, [%l2]; " + "".join(
    f"cvt.{mode}.{t}.{source} {TO[t]}, {r[source[0]]}; mad.wide.u32 %l3, %t, 8, %out; "
    f"st.global.b{SIZES[t] * 8} [%l3+{2048 * k}], {TO[t]};" for k, (t, mode) in enumerate(forms))
  out = [run(kernel(body), "k", raw, how, block=len(exact))[0] for how in ("ref", "jit")]
  assert (out[0] == out[1]).all()
  for k, (t, mode) in enumerate(forms):
    cells = out[0][2048 * k:2048 * k + 8 * len(exact)].reshape(-1, 8)[:, :SIZES[t]]
    words = np.ascontiguousarray(cells).view(f"u{SIZES[t]}")[:, 0]
    floats = (words.astype(np.uint32) << 16).view(np.float32) if t == "bf16" else words.view(f"f{SIZES[t]}")
    found = floats.astype(np.float64).tolist()
    assert found == [rounded(Fraction(x), t, mode) for x in exact], (t, mode)


@pytest.mark.parametrize("kind", ["bf16.f16", "f16.bf16"])
@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_between_halves_without_a_rounding(kind: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """To nearest: ptxas makes the same code of both (Triton writes it so)."""
  monkeypatch.setenv("EMU", engine)
  every = np.arange(1 << 16, dtype=np.uint16)

  def found(rounding: str) -> Any:
    text = f""".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k (.param .u64 o) {{
      .reg .b16 %h<3>; .reg .b32 %r<4>; .reg .b64 %l<3>; ld.param.u64 %l1, [o]; mov.u32 %r1, %tid.x;
      mov.u32 %r2, %ctaid.x; mad.lo.u32 %r1, %r2, 256, %r1; mad.wide.u32 %l1, %r1, 2, %l1; ld.global.b16 %h1, [%l1];
      cvt{rounding}.{kind} %h2, %h1; st.global.b16 [%l1], %h2; ret; }}"""
    return launch(text, "k", 256, 256, [every], "EMU")[0]
  plain = found("")
  assert (plain == found(".rn")).all() and not (plain == found(".rz")).all()
