"""Forms that other makers' compilers write and our own corpora had not."""
from __future__ import annotations

import numpy as np
import pytest

import tinyhw

ROUNDINGS = [f"{mode}{flush}" for mode in ("rn", "rz", "rm", "rp") for flush in ("", ".ftz")]
SPECIAL = [0, 1 << 31, 1, (1 << 31) + 1, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7FFFFF,
           0x807FFFFF, 0x3F800001, 0xBF800001, 0x3F808000, 0x3F818000, 0xBF808000]
BITS = np.concatenate([np.random.default_rng(0).integers(0, 1 << 32, 240, np.uint32), np.array(SPECIAL, np.uint32)])


def bf16(bits: int, mode: str, flush: bool) -> int:
  """The bf16 of an f32, both as bits: its upper half, or the next one away from zero."""
  exponent, fraction, minus = bits >> 23 & 0xFF, bits & 0x7FFFFF, bits >> 31
  if exponent == 0xFF: return 0x7FFF if fraction else bits >> 16
  if flush and not exponent: bits &= 1 << 31
  upper, lower = bits >> 16, bits & 0xFFFF
  if mode == "rn": return upper + (lower > 0x8000 or lower == 0x8000 and upper & 1)
  return upper + (lower != 0 and mode == ("rm" if minus else "rp"))


@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_f32_to_bf16_in_all_roundings(rounding: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", engine)
  text = f""".version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b) {{
  .reg .u64 %a, %b, %x; .reg .u32 %i; .reg .f32 %f; .reg .b16 %h;
  ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; mov.u32 %i, %tid.x;
  mul.wide.u32 %x, %i, 4; add.u64 %a, %a, %x; ld.global.f32 %f, [%a];
  cvt.{rounding}.bf16.f32 %h, %f;
  mul.wide.u32 %x, %i, 2; add.u64 %b, %b, %x; st.global.b16 [%b], %h; ret; }}"""
  _, out = tinyhw.launch(text, "k", 1, len(BITS), [BITS, np.zeros(len(BITS), np.uint16)])
  mode, _, flush = rounding.partition(".")
  assert out.tolist() == [bf16(x, mode, bool(flush)) for x in BITS.tolist()]
