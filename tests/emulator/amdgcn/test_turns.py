"""v_sin and v_cos against the manuals' examples and mpmath; sources through DPP that name the upper half."""
from __future__ import annotations

import mpmath
import numpy as np
import pytest

from tests.emulator.checking import code_of
from tests.emulator.gpu import Gpu
from tests.strength import seed
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.engines.amdgcn import dispatch

CPUS = ("gfx1100", "gfx1201", "gfx942")
ENGINES = ("ref", "jit")
U32 = np.uint32


def run(cpu: str, engine: str, text: str, *inputs: np.ndarray) -> np.ndarray:
  """Values of v9 after a program that finds its inputs, a dword a lane each, in v1, v2, ...; every lane is active."""
  gpu = Gpu(1 << 22, cpu)
  lanes = 64 if cpu == "gfx942" else 32
  count = inputs[0].size
  data = np.concatenate([*inputs, np.zeros(count, U32)]).astype(U32)
  at = gpu.put(data)
  new = cpu == "gfx1201"
  dword = "dword" if cpu == "gfx942" else "b32"
  # each workgroup has its share of the numbers
  lines = [f"s_mul_i32 s3, {'ttmp9' if new else 's2'}, {4 * lanes}", "v_lshlrev_b32_e32 v60, 2, v0",
           f"v_add{'' if cpu == 'gfx942' else '_nc'}_u32_e32 v60, s3, v60"]
  for k in range(len(inputs)):
    lines += [f"global_load_{dword} v{k + 1}, v60, s[0:1]", f"s_add{'_co' if new else ''}_u32 s0, s0, {4 * count}"]
  lines += ["s_wait_loadcnt 0" if new else "s_waitcnt vmcnt(0)", text, f"global_store_{dword} v60, v9, s[0:1]",
            "s_endpgm"]
  code = gpu.put(np.frombuffer(code_of("\n".join(lines), gpu.arch.isa), np.uint8))
  d = Dispatch(code, (count // lanes, 1, 1), (lanes, 1, 1), 64 // 8 - 1 | 0xF0 << 12 | 1 << 21 | 1 << 23,
               2 << 1 | 1 << 7, rsrc3=15, user_data=(at & 0xFFFFFFFF, at >> 32), wave32=lanes == 32)
  dispatch(gpu.space, gpu.arch, d, engine=engine)
  return gpu.get(at, U32, data.size)[-count:]


EXAMPLES = {  # from the manuals: RDNA3, RDNA4 and CDNA3 have the same
  "v_sin_f32": {0xFF800000: 0xFFC00000, 0xFF7FFFFF: 0, 0x80000000: 0x80000000, 0x3E800000: 0x3F800000,
                0x7F800000: 0xFFC00000},
  "v_cos_f32": {0xFF800000: 0xFFC00000, 0xFF7FFFFF: 0x3F800000, 0x80000000: 0x3F800000, 0x3E800000: 0,
                0x7F800000: 0xFFC00000},
  "v_sin_f16": {0xFC00: 0xFE00, 0xFBFF: 0, 0x8000: 0x8000, 0x3400: 0x3C00, 0x7BFF: 0, 0x7C00: 0xFE00},
  "v_cos_f16": {0xFC00: 0xFE00, 0xFBFF: 0x3C00, 0x8000: 0x3C00, 0x3400: 0, 0x7BFF: 0x3C00, 0x7C00: 0xFE00}}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cpu", CPUS)
def test_the_manuals_examples(cpu: str, engine: str) -> None:
  for name, examples in EXAMPLES.items():
    x = np.resize(np.array(list(examples), U32), 64)
    got = run(cpu, engine, f"v_mov_b32_e32 v9, 0\n {name}_e32 v9, v1", x)
    for a, b in zip(x.tolist(), got.tolist()): assert b == examples[a], (name, hex(a), hex(b))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("function", ["sin", "cos"])
def test_f32_is_rounded_once(function: str, cpu: str, engine: str) -> None:
  """Denormals, small and large numbers, and what is next to halves and quarters of a turn."""
  rng = np.random.default_rng(seed(5))
  near = np.array([0.25, 0.5, 0.75, 1, 1.5, 100.25, 4097.5], np.float32)
  x = np.concatenate([
    rng.integers(1, 1 << 23, 16).astype(U32).view(np.float32), -np.ldexp(rng.random(16), -130).astype(np.float32),
    np.nextafter(near, np.float32(9e9)), np.nextafter(near, np.float32(0)), -np.nextafter(near, np.float32(0)),
    rng.uniform(-2, 2, 43).astype(np.float32),
    np.ldexp(rng.uniform(1, 2, 32), rng.integers(-60, 30, 32)).astype(np.float32)])
  x = np.concatenate([x, x[:-x.size % 64]]) if x.size % 64 else x
  got = run(cpu, engine, f"v_{function}_f32_e32 v9, v1", x.view(U32)).view(np.float32)
  with mpmath.workprec(300):
    for a, b in zip(x.tolist(), got.tolist()):
      want = getattr(mpmath, function)(2 * mpmath.pi * mpmath.mpf(a))
      low, high = sorted((float(np.float32(float(want))), b))
      assert low == high or abs(want) < mpmath.mpf(2) ** -280 and b == 0, (a, b, float(want))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cpu", ["gfx1100", "gfx1201"])
@pytest.mark.parametrize("name", ["v_cvt_pk_norm_i16_f16", "v_cvt_pk_norm_u16_f16"])
def test_the_half_that_op_sel_names_goes_through_dpp(name: str, cpu: str, engine: str) -> None:
  rng = np.random.default_rng(seed(3))
  a, b = (rng.uniform(-1, 1, 128).astype(np.float16).view(U32) for _ in "ab")
  order = [5, 0, 7, 2, 1, 6, 3, 4]
  lane = np.arange(64)
  index = lane & ~7 | np.array(order)[lane & 7]
  top = 32767 if "i16" in name else 65535
  for select in range(4):
    text = f"{name}_e64_dpp v9, v1, v2 op_sel:[{select & 1},{select >> 1},0] dpp8:[{','.join(map(str, order))}]"
    got = run(cpu, engine, text, a, b)
    x, y = (v.view(np.float16)[(select >> k & 1)::2].astype(np.float64) for k, v in enumerate((a, b)))
    parts = [np.rint(np.clip(v, -1 if "i16" in name else 0, 1) * top).astype(np.int64) & 0xFFFF
             for v in (x[index], y)]
    assert np.array_equal(got, (parts[0] | parts[1] << 16).astype(U32))
