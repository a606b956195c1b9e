"""Buffers of gfx942: resources, ranges, swizzle, formats of the resource and of the instruction (CDNA3 ISA, 9.1)."""
from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.gfx9 import EXTRA, LANES, TABLE, run
from tests.strength import seed

RNG = np.random.default_rng(seed(91))
LANE = np.arange(LANES)
MEMORY = RNG.integers(0, 1 << 32, 4096, dtype=np.uint32)
IDENTITY = 4 | 5 << 3 | 6 << 6 | 7 << 9  # DST_SEL: R, G, B, A
DFMT = {"8": 1, "16": 2, "8_8": 3, "32": 4, "16_16": 5, "10_11_11": 6, "10_10_10_2": 8, "2_10_10_10": 9, "8_8_8_8": 10,
        "32_32": 11, "16_16_16_16": 12, "32_32_32": 13, "32_32_32_32": 14}
NFMT = {"UNORM": 0, "SNORM": 1, "USCALED": 2, "SSCALED": 3, "UINT": 4, "SINT": 5, "FLOAT": 7}


def resource(records: int, *, stride: int = 0, swizzle: int = 0, indices: int = 0, add_thread: int = 0, dfmt: int = 4,
             nfmt: int = 7, selects: int = IDENTITY) -> str:
  """Text that puts the four dwords of table 47 into s[8:11]."""
  w3 = selects | nfmt << 12 | dfmt << 15 | indices << 21 | add_thread << 23
  return f"""
    s_mov_b32 s8, {EXTRA:#x}
    s_mov_b32 s9, {(stride & 0x3FFF) << 16 | swizzle << 31:#x}
    s_mov_b32 s10, {records:#x}
    s_mov_b32 s11, {w3:#x}
"""


def test_raw_buffers_have_ranges_for_each_dword() -> None:
  """A dword past num_records bytes is 0, and not stored; the scalar offset is not checked."""
  records = 64 * 16 - 24
  extra = MEMORY.copy()
  got = run(resource(records) + """
    v_lshlrev_b32_e32 v1, 4, v0
    s_movk_i32 s12, 0x40
    buffer_load_dwordx4 v[4:7], v1, s[8:11], 0 offen
    buffer_load_dword v8, v1, s[8:11], s12 offen offset:8
    v_mov_b32_e32 v10, -1
    v_mov_b32_e32 v11, -1
    v_add_u32_e32 v2, 0x800, v1
    s_movk_i32 s10, 0x900
    buffer_store_dwordx2 v[10:11], v2, s[8:11], 0 offen offset:12""", {}, [4, 5, 6, 7, 8], extra=extra)
  for k in range(4):
    at = LANE * 4 + k
    assert np.array_equal(got[k], np.where(at * 4 + 4 <= records, MEMORY[at], 0))
  at = LANE * 4 + 2
  assert np.array_equal(got[4], np.where(at * 4 + 4 <= records, MEMORY[at + 16], 0))
  want = MEMORY.copy()
  for n in range(LANES):
    for k in (0, 1):
      byte = 0x800 + 16 * n + 12 + 4 * k
      if byte + 4 <= 0x900: want[byte // 4] = 0xFFFFFFFF
  assert np.array_equal(extra, want)


def test_structured_buffers_count_records() -> None:
  records, stride = 40, 12
  index = RNG.permutation(LANES).astype(np.uint32)
  got = run(resource(records, stride=stride) + """
    buffer_load_dwordx2 v[4:5], v1, s[8:11], 0 idxen offset:4
    v_mov_b32_e32 v2, v1
    v_mov_b32_e32 v3, 8
    buffer_load_ubyte v6, v[2:3], s[8:11], 0 idxen offen offset:1""", {1: index}, [4, 5, 6], extra=MEMORY.copy())
  inside = index < records
  for k in (0, 1): assert np.array_equal(got[k], np.where(inside, MEMORY[index * 3 + 1 + k], 0))
  assert np.array_equal(got[2], np.where(inside, MEMORY.view(np.uint8)[index * 12 + 9], 0))


@pytest.mark.parametrize("code", range(4))
def test_swizzled_buffers(code: int) -> None:
  """Elements of 4 bytes of 8, 16, 32 or 64 consecutive records lie together."""
  count, stride = 8 << code, 16
  offset = (RNG.integers(0, 4, LANES) * 4).astype(np.uint32)
  got = run(resource(LANES, stride=stride, swizzle=1, indices=code) + """
    v_mov_b32_e32 v2, v0
    v_mov_b32_e32 v3, v1
    buffer_load_dword v4, v[2:3], s[8:11], 0 idxen offen""", {1: offset}, [4], extra=MEMORY.copy())[0]
  at = (LANE // count * stride + offset // 4 * 4) * count + LANE % count * 4
  assert np.array_equal(got, MEMORY[at // 4])


@pytest.mark.parametrize("stride", [4, 0x40, 0x4010])
def test_resources_that_add_the_lane(stride: int) -> None:
  """A private buffer has no range, and 18 bits of stride, whose upper ones stand in the data format's place."""
  memory = RNG.integers(0, 1 << 32, 0x4010 * LANES // 4 + 64, dtype=np.uint32)
  got = run(resource(0, stride=stride, add_thread=1, dfmt=stride >> 14) +
            "buffer_load_dword v4, off, s[8:11], 0 offset:8", {}, [4], extra=memory)[0]
  assert np.array_equal(got, memory[(LANE * stride + 8) // 4])


def unpacked(fmt: str, raw: np.ndarray, number: str) -> list[np.ndarray]:
  """Components of a format, the first in the lowest bits, as stored in registers (u32)."""
  out = []
  first = 0
  for width in map(int, fmt.split("_")):
    word = raw[first // 32].astype(np.uint64) >> first % 32 & (1 << width) - 1
    signed = np.where(word >> width - 1, word.astype(np.int64) - (1 << width), word.astype(np.int64))
    if number == "UINT": x: np.ndarray = word.astype(np.uint32)
    elif number == "SINT": x = signed.astype(np.int32).view(np.uint32)
    elif number == "FLOAT" and width == 32: x = word.astype(np.uint32)
    elif number == "FLOAT": x = word.astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
    else:
      value = {"UNORM": word / ((1 << width) - 1), "SNORM": np.maximum(signed / ((1 << width - 1) - 1), -1),
               "USCALED": word.astype(np.float64), "SSCALED": signed.astype(np.float64)}[number]
      x = value.astype(np.float32).view(np.uint32)
    out.append(x)
    first += width
  return out


CASES = [("8", "UNORM"), ("8_8", "SNORM"), ("16", "USCALED"), ("16_16", "SSCALED"), ("8_8_8_8", "UINT"),
         ("16_16", "SINT"), ("16", "FLOAT"), ("32", "FLOAT"), ("32_32", "UINT"), ("16_16_16_16", "SNORM"),
         ("32_32_32", "SINT"), ("32_32_32_32", "FLOAT"), ("16_16_16_16", "FLOAT")]


@pytest.mark.parametrize(("fmt", "number"), CASES)
def test_formats_of_the_resource_and_of_the_instruction(fmt: str, number: str) -> None:
  size = sum(map(int, fmt.split("_"))) // 8
  row = next(r for r in TABLE.by_mnemonic["tbuffer_load_format_xyzw"] if r.variant == "idxen")
  typed = np.frombuffer(TABLE.encode(row, {
    "vdata": 8, "vaddr": 0, "srsrc": 8, "soffset": 128, "format": DFMT[fmt] | NFMT[number] << 4}), np.uint32)
  got = run(resource(LANES, stride=size, dfmt=DFMT[fmt], nfmt=NFMT[number]) + f"""
    buffer_load_format_xyzw v[4:7], v0, s[8:11], 0 idxen
    s_and_b32 s11, s11, 0xfff
    .long {typed[0]}
    .long {typed[1]}""", {}, list(range(4, 12)), extra=MEMORY.copy())
  data = np.zeros((LANES, 16), np.uint8)
  data[:, :size] = MEMORY.view(np.uint8)[:LANES * size].reshape(LANES, size)
  parts = unpacked(fmt, data.view(np.uint32).T, number)
  whole = parts + [np.zeros(LANES, np.uint32)] * (4 - len(parts))  # X000, XY00, XYZ0 (9.1.4)
  for k, want in enumerate(whole):
    nan = want & 0x7FFFFFFF > 0x7F800000 if number == "FLOAT" else np.zeros(LANES, bool)
    assert ((got[k] == want) | nan).all(), f"component {k} by the resource"
    assert ((got[4 + k] == want) | nan).all(), f"component {k} by the instruction"


def test_formatted_stores_and_selects() -> None:
  """The last load selects A, 1 and G."""
  extra = np.zeros(256, np.uint32)
  x = RNG.normal(0, 1, LANES).astype(np.float32)
  got = run(resource(LANES, stride=4, dfmt=DFMT["8_8_8_8"], nfmt=NFMT["SNORM"]) + """
    v_mov_b32_e32 v5, 0.5
    v_mov_b32_e32 v6, -4.0
    v_mov_b32_e32 v7, 0
    buffer_store_format_xyzw v[4:7], v0, s[8:11], 0 idxen
    s_and_b32 s11, s11, 0xfffff000
    s_or_b32 s11, s11, 0x14f
    buffer_load_format_xyz v[8:10], v0, s[8:11], 0 idxen""",
            {4: x.view(np.uint32)}, [8, 9, 10], extra=extra)
  stored = extra[:LANES].view(np.int8).reshape(LANES, 4)
  assert np.array_equal(stored[:, 0], np.rint(np.clip(x, -1, 1) * 127).astype(np.int8))
  assert (stored[:, 1] == 64).all() and (stored[:, 2] == -127).all() and (stored[:, 3] == 0).all()
  f = [g.view(np.float32) for g in got]
  assert (f[0] == 0).all() and (f[1] == 1).all() and np.allclose(f[2], 64 / 127)


def test_buffers_into_lds() -> None:
  got = run(resource(0x1000) + """
    s_mov_b32 m0, 0x200
    v_lshlrev_b32_e32 v1, 3, v0
    buffer_load_dword v1, s[8:11], 0 offen offset:4 lds
    buffer_load_ushort v1, s[8:11], 0 offen offset:512 lds
    v_lshlrev_b32_e32 v2, 2, v0
    ds_read_b32 v3, v2 offset:516
    ds_read_b32 v4, v2 offset:1024""", {}, [3, 4], extra=MEMORY.copy(), lds=4096)
  assert np.array_equal(got[0], MEMORY[LANE * 2 + 1])
  assert np.array_equal(got[1], MEMORY[LANE * 2 + 128] & 0xFFFF)


def test_atomics_outside_of_a_buffer_do_nothing() -> None:
  extra = np.zeros(64, np.uint32)
  x = RNG.integers(1, 100, LANES).astype(np.uint32)
  got = run(resource(128) + """
    v_lshlrev_b32_e32 v2, 2, v0
    v_mov_b32_e32 v3, v1
    buffer_atomic_add v3, v2, s[8:11], 0 offen sc0
    v_mov_b32_e32 v4, v1
    buffer_atomic_umax v4, off, s[8:11], 0 offset:252""", {1: x}, [3], extra=extra)
  assert np.array_equal(extra[:32], x[:32]) and not extra[32:].any() and not got[0].any()
