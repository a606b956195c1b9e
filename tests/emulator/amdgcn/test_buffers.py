"""Buffers: ranges, swizzle and typed formats, through the compiler's buffer intrinsics; NumPy is the witness."""
from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from tests.emulator.gpu import Gpu, compile_gpu
from tests.strength import seed
from tinyhw.autogen import buffer_formats
from tinyhw.emulator.amdgcn.memory import formats

N = 64
CPUS = ("gfx1100", "gfx1201")
UNIFIED = {"8_UNORM": 1, "8_8_SNORM": 15, "16_USCALED": 9, "16_16_SSCALED": 26, "8_8_8_8_UINT": 46, "16_16_SINT": 28,
           "16_FLOAT": 13, "10_11_11_FLOAT": 30, "10_10_10_2_UNORM": 32, "2_10_10_10_SINT": 41, "32_32_FLOAT": 50,
           "16_16_16_16_SNORM": 52, "32_32_32_32_UINT": 61, "32_FLOAT": 22}


def resource(base: int, records: int, *, stride: int = 0, fmt: int = 20, swizzle: int = 0, indices: int = 0,
             out_of_range: int = 3, selects: tuple[int, ...] = (4, 5, 6, 7)) -> np.ndarray:
  """The four dwords of gfx11's and gfx12's buffer resource (RDNA3 ISA manual, table 47)."""
  chosen = sum(s << 3 * k for k, s in enumerate(selects))
  return np.array([base & 0xFFFFFFFF, base >> 32 | stride << 16 | swizzle << 30, records,
                   chosen | fmt << 12 | indices << 21 | out_of_range << 28], np.uint32)


def run(cpu: str, body: str, declare: str, rsrc: np.ndarray, gpu: Gpu, index: np.ndarray, offset: np.ndarray,
        data: np.ndarray) -> np.ndarray:
  """Four dwords a lane that `body` stores from %d, which it makes from %r, %x (index), %v (offset) and %i4 (data)."""
  ir = f"""
define amdgpu_kernel void @k(ptr addrspace(1) %rp, ptr addrspace(1) %xp, ptr addrspace(1) %vp, ptr addrspace(1) %ip,
                             ptr addrspace(1) %op) {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %r = load <4 x i32>, ptr addrspace(1) %rp
  %xa = getelementptr i32, ptr addrspace(1) %xp, i32 %t
  %x = load i32, ptr addrspace(1) %xa
  %va = getelementptr i32, ptr addrspace(1) %vp, i32 %t
  %v = load i32, ptr addrspace(1) %va
  %ia = getelementptr <4 x i32>, ptr addrspace(1) %ip, i32 %t
  %i4 = load <4 x i32>, ptr addrspace(1) %ia
{body}
  %oa = getelementptr <4 x i32>, ptr addrspace(1) %op, i32 %t
  store <4 x i32> %d, ptr addrspace(1) %oa
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
{declare}"""
  kernel = gpu.load(compile_gpu(ir, cpu=cpu))["k"]
  out = gpu.put(np.zeros((N, 4), np.uint32))
  gpu.launch(kernel, (1, 1, 1), (N, 1, 1), [gpu.put(rsrc), gpu.put(index), gpu.put(offset), gpu.put(data), out])
  return gpu.get(out, np.uint32, 4 * N).reshape(N, 4)


def load(kind: str, t: str, arguments: str, widen: str) -> tuple[str, str]:
  name = f"@llvm.amdgcn.{kind}"
  types = "<4 x i32>" + ", i32" * arguments.count(",")
  return f"  %l = call {t} {name}({arguments})\n{widen}", f"declare {t} {name}({types})"


ZEROS = np.zeros(N, np.uint32)
RNG = np.random.default_rng(seed(5))


@pytest.mark.parametrize("cpu", CPUS)
def test_a_raw_buffer_gives_zero_dword_by_dword_past_its_end(cpu: str) -> None:
  gpu = Gpu(1 << 22, cpu)
  memory = RNG.integers(0, 1 << 32, 256, np.uint32)
  base = gpu.put(memory)
  records = 4 * N + 8
  offset = (np.arange(N) * 16).astype(np.uint32)
  body, declare = load("raw.buffer.load.v4i32", "<4 x i32>", "<4 x i32> %r, i32 %v, i32 0, i32 0",
                       "  %d = add <4 x i32> %l, zeroinitializer")
  got = run(cpu, body, declare, resource(base, records), gpu, ZEROS, offset, np.zeros((N, 4), np.uint32))
  at = offset[:, None] // 4 + np.arange(4)
  want = np.where(4 * at + 4 <= records, memory[np.minimum(at, 255)], 0)
  assert np.array_equal(got, want) and (want[16] != 0).tolist() == [True, True, False, False] and not want[17:].any()


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize(("select", "inside"), [
  (0, lambda x, v: (x < 20) & (v + 4 <= 24)), (1, lambda x, v: x < 20), (2, lambda x, v: x >= 0)])
def test_structured_buffers_check_the_index_and_the_offset(cpu: str, select: int, inside: Any) -> None:
  gpu = Gpu(1 << 22, cpu)
  memory = RNG.integers(1, 1 << 32, 4096, np.uint32)
  base = gpu.put(memory)
  index, offset = RNG.integers(0, 40, N, np.uint32), RNG.integers(0, 10, N, np.uint32) * 4
  body, declare = load("struct.buffer.load.i32", "i32", "<4 x i32> %r, i32 %x, i32 %v, i32 0, i32 0",
                       "  %d = insertelement <4 x i32> zeroinitializer, i32 %l, i32 0")
  got = run(cpu, body, declare, resource(base, 20, stride=24, out_of_range=select), gpu, index, offset,
            np.zeros((N, 4), np.uint32))
  want = np.where(inside(index, offset), memory[(index * 24 + offset) // 4], 0)
  assert np.array_equal(got[:, 0], want)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize(("swizzle", "element"), [(1, 4), (3, 16)])
@pytest.mark.parametrize("indices", [0, 2])
def test_swizzled_buffers(cpu: str, swizzle: int, element: int, indices: int) -> None:
  """Elements of consecutive indices lie together (section 9.4.2)."""
  gpu = Gpu(1 << 22, cpu)
  memory = RNG.integers(1, 1 << 32, 8192, np.uint32)
  base = gpu.put(memory)
  index, offset = RNG.integers(0, 100, N, np.uint32), RNG.integers(0, 8, N, np.uint32) * 4
  body, declare = load("struct.buffer.load.i32", "i32", "<4 x i32> %r, i32 %x, i32 %v, i32 0, i32 0",
                       "  %d = insertelement <4 x i32> zeroinitializer, i32 %l, i32 0")
  got = run(cpu, body, declare, resource(base, 1000, stride=32, swizzle=swizzle, indices=indices), gpu, index, offset,
            np.zeros((N, 4), np.uint32))
  want = []
  for x, v in zip(index.tolist(), offset.tolist()):
    block, row = divmod(x, 8 << indices)
    column, rest = divmod(v, element)
    want.append(memory[((block * 32 + column * element) * (8 << indices) + row * element + rest) // 4])
  assert np.array_equal(got[:, 0], np.array(want))


def small_float(raw: int, fraction: int) -> float:
  """An unsigned float of 5 bits of exponent."""
  exponent, rest = raw >> fraction, raw & (1 << fraction) - 1
  if exponent == 31: return float("nan") if rest else float("inf")
  return rest * 2.0 ** (-14 - fraction) if not exponent else (1 + rest / (1 << fraction)) * 2.0 ** (exponent - 15)


def component(kind: str, raw: int, bits: int) -> Any:
  signed = raw - (raw >> bits - 1 << bits)
  if kind == "UINT": return raw
  if kind == "SINT": return signed & 0xFFFFFFFF
  if kind == "FLOAT" and bits == 32: return raw
  if kind == "FLOAT" and bits == 16: value = struct.unpack("<e", raw.to_bytes(2, "little"))[0]
  elif kind == "FLOAT": value = small_float(raw, bits - 5)
  else:
    value = {"UNORM": raw / ((1 << bits) - 1), "SNORM": max(signed / ((1 << bits - 1) - 1), -1.0),
             "USCALED": float(raw), "SSCALED": float(signed)}[kind]
  return int(np.float32(value).view(np.uint32))


def expected(name: str, element: bytes) -> list[int]:
  *widths, kind = name.split("_")
  word, out = int.from_bytes(element, "little"), []
  for bits in map(int, reversed(widths)):
    out.append(component(kind, word & (1 << bits) - 1, bits))
    word >>= bits
  return out


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """Equal, or both a NaN."""
  return (a == b) | ((a & 0x7FFFFFFF) > 0x7F800000) & ((b & 0x7FFFFFFF) > 0x7F800000)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", UNIFIED)
def test_typed_loads(cpu: str, name: str) -> None:
  size = sum(map(int, name.split("_")[:-1])) // 8
  gpu = Gpu(1 << 22, cpu)
  raw = RNG.integers(0, 256, N * size, np.uint8)
  base = gpu.put(raw)
  body, declare = load("struct.buffer.load.format.v4f32", "<4 x float>", "<4 x i32> %r, i32 %x, i32 0, i32 0, i32 0",
                       "  %d = bitcast <4 x float> %l to <4 x i32>")
  index = np.arange(N, dtype=np.uint32)
  selects = (5, 4, 1, 7)
  got = run(cpu, body, declare, resource(base, N - 1, stride=size, fmt=UNIFIED[name], out_of_range=0, selects=selects),
            gpu, index, ZEROS, np.zeros((N, 4), np.uint32))
  one = 1 if name.endswith("INT") else 0x3F800000
  want = []
  for k in range(N):
    there = (expected(name, raw[k * size:(k + 1) * size].tobytes()) + [0] * 4)[:4]
    want.append([(one if s == 1 else there[s - 4]) if k < N - 1 or s == 1 else 0 for s in selects])
  want = np.array(want, np.uint32)
  bad = np.argwhere(~same(got, want))
  assert not bad.size, [(int(k), hex(got[k, c]), hex(want[k, c]), raw[k * size:(k + 1) * size]) for k, c in bad[:3]]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", [n for n in UNIFIED if not n.startswith("32_32")])
def test_a_typed_store_of_what_was_loaded_restores_the_bytes(cpu: str, name: str) -> None:
  size = sum(map(int, name.split("_")[:-1])) // 8
  gpu = Gpu(1 << 22, cpu)
  raw = RNG.integers(0, 256, N * size, np.uint8)
  if "FLOAT" in name: raw = (raw.view(np.uint16) & 0xBBDF).view(np.uint8) if size == 2 else raw & 0x3B
  base, there = gpu.put(raw), gpu.put(np.zeros(N * size, np.uint8))
  arguments = "<4 x i32> %r, i32 %x, i32 0, i32 0, i32 0"
  body, declare = load("struct.buffer.load.format.v4f32", "<4 x float>", arguments, f"""
  %r0 = insertelement <4 x i32> %r, i32 {there & 0xFFFFFFFF}, i32 0
  call void @llvm.amdgcn.struct.buffer.store.format.v4f32(<4 x float> %l, <4 x i32> %r0, i32 %x, i32 0, i32 0, i32 0)
  %d = bitcast <4 x float> %l to <4 x i32>""")
  declare += """
declare void @llvm.amdgcn.struct.buffer.store.format.v4f32(<4 x float>, <4 x i32>, i32, i32, i32, i32)"""
  index = np.arange(N, dtype=np.uint32)
  run(cpu, body, declare, resource(base, N, stride=size, fmt=UNIFIED[name], out_of_range=0), gpu, index, ZEROS,
      np.zeros((N, 4), np.uint32))
  got = gpu.get(there, np.uint8, N * size)
  want = raw
  if name.endswith("SNORM"):  # the most negative code and its neighbour both mean -1
    unit = f"i{int(name.split('_')[0]) // 8}"
    want = np.maximum(raw.view(unit), -np.iinfo(unit).max).view(np.uint8)
  assert np.array_equal(got, want)


@pytest.mark.parametrize("cpu", CPUS)
def test_typed_stores_clamp_and_round(cpu: str) -> None:
  gpu = Gpu(1 << 22, cpu)
  there = gpu.put(np.zeros(N, np.uint32))
  values = np.array([-2.0, 0.5, 0.001, 7.0, np.nan, 1.0, 254.5 / 255, 0.0] * (N // 2), np.float32).reshape(N, 4)
  body = """  %f = bitcast <4 x i32> %i4 to <4 x float>
  call void @llvm.amdgcn.struct.buffer.store.format.v4f32(<4 x float> %f, <4 x i32> %r, i32 %x, i32 0, i32 0, i32 0)
  %d = add <4 x i32> %i4, zeroinitializer"""
  declare = "declare void @llvm.amdgcn.struct.buffer.store.format.v4f32(<4 x float>, <4 x i32>, i32, i32, i32, i32)"
  run(cpu, body, declare, resource(there, N, stride=4, fmt=42, out_of_range=0), gpu, np.arange(N, dtype=np.uint32),
      ZEROS, values.view(np.uint32))
  with np.errstate(invalid="ignore"): want = np.rint(np.clip(np.nan_to_num(values.astype(float), nan=0), 0, 1) * 255)
  assert np.array_equal(gpu.get(there, np.uint8, 4 * N).reshape(N, 4), want.astype(np.uint8))


@pytest.mark.parametrize("cpu", CPUS)
def test_typed_loads_of_sixteen_bits_truncate(cpu: str) -> None:
  gpu = Gpu(1 << 22, cpu)
  memory = RNG.standard_normal((N, 2)).astype(np.float32)
  base = gpu.put(memory)
  body, declare = load("struct.tbuffer.load.v2f16", "<2 x half>", "<4 x i32> %r, i32 %x, i32 0, i32 0, i32 50, i32 0",
                       "  %h = bitcast <2 x half> %l to i32\n"
                       "  %d = insertelement <4 x i32> zeroinitializer, i32 %h, i32 0")
  got = run(cpu, body, declare, resource(base, N, stride=8, out_of_range=0), gpu, np.arange(N, dtype=np.uint32), ZEROS,
            np.zeros((N, 4), np.uint32))[:, 0]
  halves = np.ascontiguousarray(got).view(np.float16).reshape(N, 2).astype(np.float64)
  exact = memory.astype(np.float64)
  assert (np.abs(halves) <= np.abs(exact)).all()
  assert (np.abs(exact - halves) < np.abs(exact) * 2.0**-10 + 2.0**-24).all()


def test_formats_that_no_chip_has_are_refused() -> None:
  known = [n for n in {*buffer_formats.UNIFIED.values()} if n != "INVALID"]
  assert all(formats.parse(n).size in (1, 2, 4, 8, 12, 16) for n in known)
  for data in buffer_formats.DATA.values():
    for number in buffer_formats.NUMBER.values():
      try: f = formats.parse(f"{data}_{number}")
      except ValueError: continue
      words = [np.arange(8, dtype=np.uint32)] * max(1, f.size // 4)
      assert len(formats.load(f, words, (4, 5, 6, 7), False)) == 4
      formats.store(f, [np.arange(8, dtype=np.uint32)] * 4, False)
  for bad in ("8_8_8_8_FLOAT", "32_UNORM_UINT", "INVALID_UNORM"):
    with pytest.raises(ValueError): formats.parse(bad)
