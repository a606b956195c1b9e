"""gfx9's memory instructions and wave state that compilers seldom or never emit, from text, against NumPy."""
from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.gfx9 import LANES, run
from tests.strength import seed
from tinyhw.core.errors import MachineFault, Unsupported

RNG = np.random.default_rng(seed(39))
M32 = (1 << 32) - 1
LANE = np.arange(LANES, dtype=np.uint32)


def words(count: int = LANES) -> np.ndarray: return RNG.integers(0, 1 << 32, count, dtype=np.uint32)


# ---- loads of 16 bits, LDS

def test_loads_of_16_bits_clear_the_other_half() -> None:
  """MI300 has ECC: what a d16 load does not load becomes 0 (9.1.6)."""
  memory, old = words(), words()
  loads = [("ubyte_d16", 1, 0, False), ("sbyte_d16", 1, 0, True), ("short_d16", 2, 0, False),
           ("ubyte_d16_hi", 1, 16, False), ("sbyte_d16_hi", 1, 16, True), ("short_d16_hi", 2, 16, False)]
  lines, outputs = ["v_lshlrev_b32_e32 v1, 2, v0", "v_mov_b32_e32 v3, 0", "ds_write_b32 v1, v2"], []
  lines[2:2] = ["global_load_dword v2, v1, s[4:5]"]
  for k, (name, _, _, _) in enumerate(loads):
    ds = {"ubyte": "u8", "sbyte": "i8", "short": "u16"}[name.split("_")[0]] + "_" + name.partition("_")[2]
    lines += [f"v_mov_b32_e32 v{10 + k}, v9", f"v_mov_b32_e32 v{20 + k}, v9",
              f"global_load_{name} v{10 + k}, v1, s[4:5] offset:1", f"ds_read_{ds} v{20 + k}, v1 offset:1"]
    if name.startswith("short"): lines[-2:] = [x.replace("offset:1", "offset:2") for x in lines[-2:]]
    outputs.append(10 + k)
  got = run("\n".join(lines), {9: old}, [*outputs, *(n + 10 for n in outputs)], extra=memory, lds=512)
  for k, (name, width, shift, sign) in enumerate(loads):
    part = memory >> 16 & 0xFFFF if width == 2 else memory >> 8 & 0xFF
    if sign: part = np.where(part >> 7, part | 0xFF00, part)
    for g in (got[k], got[k + len(loads)]): assert np.array_equal(g, (part << shift).astype(np.uint32)), name


def test_lds_pairs_exchanges_and_compare_stores() -> None:
  x, y = words(), words()
  got = run("""
    v_lshlrev_b32_e32 v3, 3, v0
    ds_write2_b32 v3, v1, v2 offset0:0 offset1:1
    ds_read2_b32 v[4:5], v3 offset0:1 offset1:0
    ds_wrxchg_rtn_b32 v6, v3, v2
    ds_cmpst_rtn_b32 v7, v3, v2, v1
    ds_cmpst_rtn_b32 v8, v3, v2, v0
    ds_read_b64 v[10:11], v3
    s_mov_b32 m0, 16
    ds_read_addtid_b32 v12 offset:4
    ds_bpermute_b32 v13, v9, v1
    ds_swizzle_b32 v14, v1 offset:swizzle(SWAP,16)""", {1: x, 2: y, 9: (LANE ^ 63) * 4},
            [4, 5, 6, 7, 8, 10, 11, 12, 13, 14], lds=1024)
  # data0 is what is compared, data1 the new value (ds_cmpst, chapter 11)
  memory = np.stack([x, y], axis=1).reshape(-1)
  for g, want in zip(got, (y, x, x, y, x, x, y)): assert np.array_equal(g, want)
  assert np.array_equal(got[7], memory[5 + LANE]) and np.array_equal(got[8], x[::-1])
  assert np.array_equal(got[9], x[LANE ^ 16])


# ---- atomics

def bf16(x: np.ndarray) -> np.ndarray: return (x.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("space", ["global", "ds"])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_packed_float_atomics(space: str, kind: str) -> None:
  values = RNG.integers(-8, 9, (2, LANES, 2))
  if kind == "f16": raw = values.astype(np.float16).view(np.uint16)
  else: raw = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
  packed = np.ascontiguousarray(raw).view(np.uint32)[..., 0]
  extra = packed[0].copy()
  if space == "global":
    text = f"v_lshlrev_b32_e32 v2, 2, v0\nglobal_atomic_pk_add_{kind} v3, v2, v1, s[4:5] sc0\n" \
           "global_load_dword v4, v2, s[4:5]"
  else:
    text = f"v_lshlrev_b32_e32 v2, 2, v0\nglobal_load_dword v5, v2, s[4:5]\nds_write_b32 v2, v5\n" \
           f"ds_pk_add_rtn_{kind} v3, v2, v1\nds_read_b32 v4, v2"
  old, new = run(text, {1: packed[1]}, [3, 4], extra=extra, lds=256)
  assert np.array_equal(old, packed[0])
  parts = new.view(np.uint16).reshape(-1, 2)
  got = parts.view(np.float16).astype(np.float32) if kind == "f16" else bf16(parts)
  assert np.array_equal(got, (values[0] + values[1]).astype(np.float32))


def test_packed_bf16_sums_are_rounded_once() -> None:
  a, b = words(), words()
  a, b = (x & 0x7F7F7F7F | 0x30003000 for x in (a, b))  # positive and ordinary
  extra = a.copy()
  run("v_lshlrev_b32_e32 v2, 2, v0\nglobal_atomic_pk_add_bf16 v2, v1, s[4:5]", {1: b}, [], extra=extra)
  for k in (0, 16):
    x, y, got = (((v >> k & 0xFFFF) << 16).astype(np.uint32).view(np.float32).astype(np.float64) for v in (a, b, extra))
    fraction, exponent = np.frexp(x + y)
    assert np.array_equal(got, np.ldexp(np.rint(fraction * 256) / 256, exponent))


@pytest.mark.parametrize(("name", "ufunc"), [("add", np.add), ("min", np.fmin), ("max", np.fmax)])
def test_f64_atomics_meet_at_one_address(name: str, ufunc: np.ufunc) -> None:
  x = RNG.normal(0, 1, LANES)
  parts = x.view(np.uint32).reshape(-1, 2)
  extra = np.array([0.25, 0.0])
  data = {4: parts[:, 0], 5: parts[:, 1]}
  run(f"v_mov_b32_e32 v2, 0\nglobal_atomic_{name}_f64 v2, v[4:5], s[4:5]", data, [], extra=extra)
  want = 0.25
  for value in x: want = float(ufunc(want, value))
  assert extra[0] == want
  got = run(f"v_mov_b32_e32 v2, 0\nv_mov_b32_e32 v6, 0\nv_mov_b32_e32 v7, 0\nds_write_b64 v2, v[6:7]\n"
            f"ds_{name}_rtn_f64 v[8:9], v2, v[4:5]\nds_read_b64 v[10:11], v2", data, [10, 11], lds=256)
  want = 0.0
  for value in x: want = float(ufunc(want, value))
  assert np.stack([got[0], got[1]], axis=1).view(np.float64)[0, 0] == want


# ---- scalar stores and atomics, loads into LDS

def test_scalar_stores_act_for_each_wave() -> None:
  extra = np.zeros(64, np.uint32)
  run("""
    s_lshl_b32 s10, s6, 4
    s_add_u32 s11, s6, 100
    s_add_u32 s12, s6, 200
    s_mov_b32 m0, s10
    s_store_dword s11, s[4:5], m0
    s_store_dwordx2 s[12:13], s[4:5], 0x84
    s_dcache_wb""", {}, [], extra=extra, waves=3)
  assert extra[[0, 4, 8]].tolist() == [100, 101, 102] and extra[33] == 202


def test_scalar_atomics_are_served_one_after_the_other() -> None:
  extra = np.array([10, 0, 7, 0], np.uint32)
  got = run("""
    s_mov_b32 s10, 5
    s_atomic_add s10, s[4:5], 0x0 glc
    s_mov_b32 s12, 40
    s_mov_b32 s13, 7
    s_atomic_cmpswap s[12:13], s[4:5], 0x8 glc
    s_mov_b64 s[14:15], 1
    s_atomic_umax_x2 s[14:15], s[4:5], 0x0""", {}, ["s10", "s12"], extra=extra, waves=3)
  assert extra.tolist() == [25, 0, 40, 0]
  assert sorted(got[0].reshape(3, LANES)[:, 0].tolist()) == [10, 15, 20]
  assert sorted(got[1].reshape(3, LANES)[:, 0].tolist()) == [7, 40, 40]


def test_scalar_buffers_have_ranges() -> None:
  extra = np.zeros(16, np.uint32)
  run("""
    s_mov_b64 s[12:13], s[4:5]
    s_mov_b32 s14, 8
    s_mov_b32 s15, 0
    s_mov_b32 s20, 77
    s_buffer_store_dword s20, s[12:15], 0x4
    s_buffer_store_dword s20, s[12:15], 0x8
    s_or_b32 s13, s13, 0x80000
    s_buffer_store_dword s20, s[12:15], 0x3c
    s_mov_b32 s21, 3
    s_buffer_atomic_add s21, s[12:15], 0x40""", {}, [], extra=extra)
  assert extra[1] == 77 and extra[2] == 0 and extra[15] == 77


def test_loads_into_lds() -> None:
  memory = words(256)
  got = run("""
    v_lshlrev_b32_e32 v1, 2, v0
    s_mov_b32 m0, 0x100
    global_load_lds_dword v1, s[4:5] offset:16
    global_load_lds_sbyte v1, s[4:5] offset:512
    ds_read_b32 v2, v1 offset:272
    ds_read_b32 v3, v1 offset:768""", {}, [2, 3], extra=memory, lds=2048)
  assert np.array_equal(got[0], memory[4:4 + LANES])
  assert np.array_equal(got[1], (memory[128:128 + LANES] & 0xFF).astype(np.uint8).view(np.int8).astype(np.int32)
                        .view(np.uint32))


# ---- lanes

def test_lanes_of_a_wave_of_64() -> None:
  x, y = words(), words()
  got = run("""
    v_mov_b32_e32 v5, v2
    v_readlane_b32 s10, v1, 50
    s_mov_b32 s11, 0x7b
    v_readlane_b32 s12, v1, s11
    v_writelane_b32 v5, s10, 3
    v_mbcnt_lo_u32_b32 v3, -1, 0
    v_mbcnt_hi_u32_b32 v3, -1, v3
    v_cmp_lt_u32_e32 vcc, v1, v2
    v_mbcnt_lo_u32_b32 v4, vcc_lo, v3
    v_mbcnt_hi_u32_b32 v4, vcc_hi, v4
    s_mov_b32 exec_lo, 0
    v_readfirstlane_b32 s13, v1""", {1: x, 2: y}, ["s10", "s12", "s13", 3, 4, 5])
  assert [int(g[0]) for g in got[:3]] == [x[50], x[0x7B & 63], x[32]]
  assert np.array_equal(got[3], LANE)
  less = x < y
  assert np.array_equal(got[4], LANE + np.concatenate([[0], np.cumsum(less)[:-1]]))
  assert np.array_equal(got[5], np.where(LANE == 3, x[50], y))


# ---- MODE: register indexing, skipping, forks

def test_registers_are_indexed_by_m0() -> None:
  """The index may differ between waves; it counts for the operands that are chosen (6.6)."""
  v = [words(2 * LANES) for _ in range(4)]
  got = run("""
    s_add_u32 s10, s6, 1
    v_mov_b32_e32 v20, 0
    v_mov_b32_e32 v21, 0
    v_mov_b32_e32 v22, 0
    s_set_gpr_idx_on s10, gpr_idx(SRC0)
    v_mov_b32_e32 v5, v1
    s_set_gpr_idx_mode gpr_idx(SRC1,DST)
    v_add_u32_e32 v20, v1, v1
    s_set_gpr_idx_idx 2
    v_mov_b32_e32 v20, v1
    s_set_gpr_idx_off
    v_mov_b32_e32 v6, v1""", {1 + k: x for k, x in enumerate(v)}, [5, 6, 20, 21, 22], waves=2)
  first = np.arange(2 * LANES) < LANES
  assert np.array_equal(got[0], np.where(first, v[1], v[2])) and np.array_equal(got[1], v[0])
  assert not got[2].any()
  assert np.array_equal(got[3][first], (v[0] + v[1])[first]) and np.array_equal(got[4], v[0])


@pytest.mark.parametrize("index", ["s6", "0"])
@pytest.mark.parametrize("engine", ["ref", "both"])
def test_indexed_compares_write_masks_and_exec(index: str, engine: str) -> None:
  """Each wave's mask is its own, and lanes that v_cmpx turns off stay off."""
  x = np.arange(2 * LANES, dtype=np.uint32)
  got = run(f"""
    s_mov_b32 s30, 50
    s_mov_b32 s31, 150
    s_set_gpr_idx_on {index}, gpr_idx(SRC1)
    v_cmp_lt_u32_e64 s[20:21], s30, v8
    v_cmpx_gt_u32_e64 s[22:23], s31, v8
    v_mov_b32_e32 v20, 7
    s_set_gpr_idx_off
    v_mov_b32_e32 v21, 9""", {8: x, 9: x + 100, 20: x * 0, 21: x * 0}, ["s20", "s21", 20, 21], waves=2, engine=engine)
  seen = np.where(x < LANES, x, x + 100) if index == "s6" else x
  for wave in (0, 1):
    mask = int(got[0][wave * LANES]) | int(got[1][wave * LANES]) << 32
    assert mask == sum(int(v > 50) << k for k, v in enumerate(seen[wave * LANES:(wave + 1) * LANES]))
  assert np.array_equal(got[2], np.where(seen < 150, 7, 0)) and np.array_equal(got[3], np.where(seen < 150, 9, 0))


def test_an_index_past_the_last_register_is_refused() -> None:
  with pytest.raises(MachineFault, match="past the last"):
    run("s_mov_b32 s10, 200\ns_set_gpr_idx_on s10, gpr_idx(SRC0)\nv_mov_b32_e32 v5, v100\ns_set_gpr_idx_off", {}, [])


def test_vector_instructions_are_skipped() -> None:
  x = words(2 * LANES)
  got = run("""
    s_lshl_b32 s10, s6, 4
    s_setvskip s10, 4
    v_add_u32_e32 v1, 1, v1
    s_mov_b32 s11, 5
    s_setvskip 0, 0
    v_add_u32_e32 v1, 2, v1""", {1: x}, [1, "s11"], waves=2)
  assert np.array_equal(got[0], x + np.where(np.arange(2 * LANES) < LANES, 3, 2).astype(np.uint32))
  assert (got[1] == 5).all()


@pytest.mark.parametrize("instruction", ["i", "g"])
def test_forks_run_both_ways_and_join(instruction: str) -> None:
  """Waves whose lanes all go one way, or both: the fewer first; forks may be nested (4.6)."""
  masks = np.repeat(np.array([M32 << 32 | M32, 0, 0x3, M32 << 32 | 0xFFFFFF00], np.uint64), LANES)
  low, high = (masks & np.uint64(M32)).astype(np.uint32), (masks >> np.uint64(32)).astype(np.uint32)
  if instruction == "i": fork = "s_cbranch_i_fork s[20:21], 3"
  else:
    fork = "s_getpc_b64 s[22:23]\ns_add_u32 s22, s22, 24\ns_addc_u32 s23, s23, 0\ns_cbranch_g_fork s[20:21], s[22:23]"
  text = f"""
    v_readfirstlane_b32 s20, v1
    v_readfirstlane_b32 s21, v2
    s_mov_b32 s30, 0
    v_mov_b32_e32 v3, 0
    v_mov_b32_e32 v4, 0
    s_mov_b32 s50, 0
    {fork}
    v_add_u32_e32 v3, 1, v3
    s_add_u32 s50, s50, 1
    s_branch 2
    v_add_u32_e32 v4, 1, v4
    s_add_u32 s50, s50, 16
    s_cbranch_join s30"""
  got = run(text, {1: low, 2: high}, [3, 4, "s50"], waves=4)
  lane = np.tile(LANE, 4).astype(np.uint64)
  taken = (masks >> lane & np.uint64(1)).astype(np.uint32)
  assert np.array_equal(got[1], taken) and np.array_equal(got[0], 1 - taken)
  assert got[2].reshape(4, LANES)[:, 0].tolist() == [16, 1, 17, 17]


def test_reserved_operands_are_refused() -> None:
  with pytest.raises(Unsupported, match="src_lds_direct"): run("v_mov_b32_e32 v1, src_lds_direct", {}, [])


def test_hardware_registers() -> None:
  got = run("""
    s_getreg_b32 s10, hwreg(HW_REG_MODE)
    s_getreg_b32 s11, hwreg(HW_REG_STATUS)
    s_getreg_b32 s12, hwreg(HW_REG_GPR_ALLOC)
    s_getreg_b32 s13, hwreg(HW_REG_LDS_ALLOC, 12, 9)
    s_getreg_b32 s14, hwreg(HW_REG_XCC_ID)
    s_getreg_b32 s15, hwreg(HW_REG_MODE, 4, 4)
    s_memtime s[16:17]
    s_memrealtime s[18:19]""", {}, ["s10", "s11", "s12", "s13", "s14", "s15", "s16"], lds=1024)
  mode, status, registers, lds, xcc, denormals, _ = (int(g[0]) for g in got)
  assert mode == 0x3F0 and denormals == 15 and xcc == 0
  assert status >> 16 & 1 and not status >> 9 & 1 and not status >> 28 & 1
  assert registers >> 6 & 63 == (512 // 4 - 1) & 63 and lds == 1024 // 256
  with pytest.raises(Unsupported, match="HW_REG_SQ_PERF_SNAPSHOT_PC_LO"): run("s_getreg_b32 s10, hwreg(23)", {}, [])


def test_a_branch_into_the_middle_of_an_instruction_is_harmless_until_it_is_taken() -> None:
  """What lies there is an instruction of its own: here the literal 0xbf810000, which is s_endpgm."""
  got = run("s_cbranch_execz 1\ns_mov_b32 s10, 0xbf810000\ns_add_u32 s10, s10, 1", {}, ["s10"])
  assert (got[0] == 0xBF810001).all()
  got = run("s_cbranch_execnz 1\ns_mov_b32 s10, 0xbf810000", {}, ["s10"])
  assert not got[0].any()  # the wave ended before it stored
