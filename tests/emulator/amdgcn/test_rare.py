"""Instructions that compilers seldom emit: global wave sync, ordered counts, relative moves, ends and halts."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.emulator.gpu import Gpu
from tinyhw.core.errors import DecodeError, MachineFault, Unsupported, WatchdogExpired
from tinyhw.emulator.amdgcn import Dispatch, DispatchStats, dispatch
from tinyhw.emulator.engines.amdgcn import dispatch as run_engine
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble

OUT = 0x8  # user SGPRs s[8:9] hold the address of the results
LANES = 32
TABLE = table("gfx11")


def run(gpu: Gpu, lines: Sequence[str], *, waves: int = 1, groups: int = 1, lanes: int = LANES,
        lds: int = 0) -> DispatchStats:
  """Run assembly on `groups` workgroups of `waves` waves; v0 is the lane, s8:s9 the results, s10 the workgroup."""
  code = b"".join(assemble(line, TABLE) for line in lines)
  entry = gpu.put(np.frombuffer(code + bytes(64), np.uint8))
  users = (0,) * 8 + (gpu.out & 0xFFFFFFFF, gpu.out >> 32)
  d = Dispatch(entry, (groups, 1, 1), (waves * lanes, 1, 1), 0xC0 << 12 | 7, len(users) << 1 | 1 << 7, 0, users,
               lds_size=lds, wave32=lanes == 32)
  return dispatch(gpu.space, gpu.arch, d, watchdog=100_000)


class Bench(Gpu):
  def __init__(self) -> None:
    super().__init__(1 << 22)
    self.out = self.put(np.zeros(4096, np.uint32))

  def results(self, count: int) -> np.ndarray: return self.get(self.out, np.uint32, count)


@pytest.fixture
def bench() -> Bench: return Bench()


STORE = ["v_lshlrev_b32 v1, 2, v0", "global_store_b32 v1, v2, s[8:9]", "s_endpgm"]


def test_a_global_barrier_holds_waves_of_all_workgroups(bench: Bench) -> None:
  """Each workgroup writes its cell, waits for all 6 and then sums the cells."""
  lines = [
    "v_mov_b32 v3, 5", "s_mov_b32 m0, 0",  # 6 waves, less one
    "s_cmp_lg_u32 s10, 0", "s_cbranch_scc1 2", "ds_gws_init v3 offset:1 gds",
    "s_lshl_b32 s11, s10, 2", "v_mov_b32 v4, s11", "v_mov_b32 v5, 7", "v_add_nc_u32 v5, s10, v5",
    "global_store_b32 v4, v5, s[8:9]",
    "s_sleep 1", "ds_gws_barrier v3 offset:1 gds",
    "v_mov_b32 v6, 0", "global_load_b128 v[8:11], v6, s[8:9]", "global_load_b64 v[12:13], v6, s[8:9] offset:16",
    "v_add3_u32 v2, v8, v9, v10", "v_add3_u32 v2, v2, v11, v12", "v_add_nc_u32 v2, v2, v13",
    "v_mov_b32 v4, s11", "global_store_b32 v4, v2, s[8:9] offset:64", "s_endpgm"]
  run(bench, lines, groups=6)
  got = bench.results(32)
  assert got[:6].tolist() == [7, 8, 9, 10, 11, 12] and got[16:22].tolist() == [57] * 6


def test_a_barrier_that_too_few_waves_reach_is_an_endless_wait(bench: Bench) -> None:
  lines = ["v_mov_b32 v3, 3", "s_mov_b32 m0, 0", "ds_gws_init v3 offset:1 gds", "ds_gws_barrier v3 offset:1 gds",
           "s_endpgm"]
  with pytest.raises(WatchdogExpired, match="ds_gws_barrier"): run(bench, lines)


def test_semaphores_let_as_many_waves_go_on_as_were_released(bench: Bench) -> None:
  """Workgroup 3 releases the three others, each of which passes once."""
  lines = [
    "v_mov_b32 v3, 2", "s_mov_b32 m0, 0x30000", "s_cmp_eq_u32 s10, 3", "s_cbranch_scc1 8",
    "ds_gws_sema_p offset:2 gds", "s_lshl_b32 s11, s10, 2", "v_mov_b32 v4, s11", "v_mov_b32 v5, 1",
    "global_store_b32 v4, v5, s[8:9]", "s_endpgm",
    "ds_gws_sema_v offset:2 gds", "ds_gws_sema_br v3 offset:2 gds", "s_endpgm"]
  run(bench, lines, groups=4)
  assert bench.results(4).tolist() == [1, 1, 1, 0]
  alone = [*lines[:-3], "s_nop 0", "s_nop 0", "s_endpgm"]
  with pytest.raises(WatchdogExpired, match="ds_gws_sema_p"): run(bench, alone, groups=4)


def test_ordered_counts_follow_the_creation_of_the_waves(bench: Bench) -> None:
  """Later waves come first (earlier ones sleep longer), yet each gets the sum of the increments before it."""
  lines = [
    "s_mov_b32 m0, 0", "v_readfirstlane_b32 s12, v0", "s_lshr_b32 s12, s12, 5",  # wave of the workgroup
    "s_lshl_b32 s13, s10, 1", "s_add_u32 s13, s13, s12", "s_add_u32 s14, s13, 1", "v_mov_b32 v3, s14",
    "s_cmp_gt_u32 s13, 2", "s_cbranch_scc1 2", "s_sleep 1", "s_sleep 1",
    "ds_ordered_count v2, v3 offset:260 gds",  # index 1, release
    "v_readfirstlane_b32 s15, v2", "v_mov_b32 v2, s15", "s_lshl_b32 s13, s13, 2", "v_mov_b32 v4, s13",
    "global_store_b32 v4, v2, s[8:9]", "s_endpgm"]
  run(bench, lines, waves=2, groups=3)
  assert bench.results(6).tolist() == [0, 1, 3, 6, 10, 15]


def test_v_swaprel(bench: Bench) -> None:
  lines = ["v_add_nc_u32 v4, 100, v0", "v_add_nc_u32 v6, 200, v0", "s_mov_b32 m0, 0x20001", "v_swaprel_b32 v4, v3",
           "v_mov_b32 v2, v6", "v_sub_nc_u32 v2, v2, v4", *STORE]
  run(bench, lines)
  assert (bench.results(32).view(np.int32) == -100).all()


def test_s_movrelsd_2(bench: Bench) -> None:
  lines = ["s_mov_b32 s20, 77", "s_mov_b32 s31, 5", "s_mov_b32 m0, 0x30002", "s_movrelsd_2_b32 s28, s18",
           "v_mov_b32 v2, s31", *STORE]
  run(bench, lines)
  assert (bench.results(32) == 77).all()
  with pytest.raises(MachineFault, match="past the wave's"):
    run(bench, ["s_mov_b32 m0, 0x3ff0000", "s_movrelsd_2_b32 s28, s18", "s_endpgm"])


def test_global_by_lane(bench: Bench) -> None:
  lines = ["v_mul_u32_u24 v2, 3, v0", "global_store_addtid_b32 v2, s[8:9] offset:16",
           "global_load_addtid_b32 v3, s[8:9] offset:20", "v_mov_b32 v2, v3",
           "global_store_addtid_b32 v2, s[8:9] offset:256", "s_endpgm"]
  run(bench, lines)
  got = bench.results(96)
  assert (got[4:36] == 3 * np.arange(32)).all() and (got[64:95] == 3 * np.arange(1, 32)).all()


def test_ds_condxchg32(bench: Bench) -> None:
  lines = ["v_lshlrev_b32 v3, 3, v0", "v_mov_b32 v4, 11", "v_mov_b32 v5, 22", "ds_store_b64 v3, v[4:5]",
           "v_mov_b32 v6, 0x80000021", "v_mov_b32 v7, 0x42", "ds_condxchg32_rtn_b64 v[8:9], v3, v[6:7]",
           "ds_load_b64 v[10:11], v3", "v_lshl_or_b32 v2, v8, 8, v9", "v_lshl_or_b32 v12, v10, 8, v11",
           "v_lshl_or_b32 v2, v2, 16, v12", *STORE]
  run(bench, lines, lds=512)
  assert (bench.results(32) == (11 << 8 | 22) << 16 | (0x21 << 8 | 22)).all()


@pytest.mark.parametrize(("line", "text"), [("s_sethalt 1", "s_sethalt"), ("s_sendmsghalt 0", "s_sendmsghalt")])
def test_a_wave_that_halts_itself_is_a_fault(bench: Bench, line: str, text: str) -> None:
  with pytest.raises(MachineFault, match=f"halted itself.*{text}"): run(bench, [line, "s_endpgm"])


def test_ends_and_what_does_nothing(bench: Bench) -> None:
  one = ["v_mov_b32 v2, 1", *STORE[:2]]
  two = ["v_mov_b32 v2, 2", *STORE]
  run(bench, ["s_sethalt 0", "s_setkill 0", *one, "s_setkill 1", *two])
  assert (bench.results(32) == 1).all()
  run(bench, [*two[:-1], "s_endpgm_saved", *one, "s_endpgm"])
  assert (bench.results(32) == 2).all()


@pytest.mark.parametrize("mask", [(0xFF, 0xF0F0), (0, 3), (7, 0), (0, 0)])
def test_a_subvector_loop_runs_its_body_for_each_half(bench: Bench, mask: tuple[int, int]) -> None:
  low, high = mask
  lines = ["v_mov_b32 v2, 0", "s_mov_b32 s20, 0", f"s_mov_b32 exec_lo, {low:#x}", f"s_mov_b32 exec_hi, {high:#x}",
           "s_subvector_loop_begin s21, 3",
           "v_add_nc_u32 v2, 1, v2", "s_add_u32 s20, s20, 1", "s_subvector_loop_end s21, 0xfffd",
           "s_mov_b32 s22, exec_lo", "s_mov_b32 s23, exec_hi", "s_mov_b64 exec, -1",
           "v_lshl_or_b32 v2, s20, 8, v2", "v_lshlrev_b32 v1, 2, v0", "global_store_b32 v1, v2, s[8:9]",
           "v_mov_b32 v3, s22", "v_mov_b32 v4, s23", "v_mov_b32 v5, 0",
           "global_store_b64 v5, v[3:4], s[8:9] offset:256", "s_endpgm"]
  run(bench, lines, lanes=64)
  got = bench.results(66)
  active = [(low >> k if k < 32 else high >> k - 32) & 1 for k in range(64)]
  assert (got[:64] & 0xFF).tolist() == active
  assert (got[:64] >> 8 == (low != 0) + (high != 0)).all() and tuple(got[64:66]) == mask


# ---- scalars that differ from wave to wave of a lockstep group

STORE_WAVES = ["v_lshl_add_u32 v1, s10, 5, v0", "v_lshlrev_b32 v1, 2, v1", *STORE[1:]]


def test_each_workgroup_has_a_buffer_of_its_own(bench: Bench) -> None:
  data = np.arange(4096, dtype=np.uint32)
  at = bench.put(data)
  lines = [f"s_mov_b32 s20, {at & 0xFFFFFFFF:#x}", "s_lshl_b32 s21, s10, 7", "s_add_u32 s20, s20, s21",
           f"s_addc_u32 s21, {at >> 32:#x}, 0", "s_lshl_b32 s22, s10, 5", "s_mov_b32 s23, 0x31014000",
           "v_lshlrev_b32 v3, 2, v0", "buffer_load_b32 v2, v3, s[20:23], 0 offen", *STORE_WAVES]
  run(bench, lines, groups=5)
  got = bench.results(160).reshape(5, 32)
  lane = np.arange(32)
  for group in range(5):  # workgroup g reads from dword 32 g on, and its buffer has 32 g bytes
    assert (got[group] == np.where(4 * lane + 4 <= 32 * group, 32 * group + lane, 0)).all()


def test_relative_moves_by_another_m0_in_each_workgroup(bench: Bench) -> None:
  lines = ["s_mov_b32 m0, s10", "s_mov_b32 s20, 70", "s_mov_b32 s21, 71", "s_mov_b32 s22, 72",
           "s_movrels_b32 s24, s20", "s_mov_b32 s30, 1", "s_mov_b32 s31, 2", "s_mov_b32 s32, 3", "s_movreld_b32 s30, 9",
           "v_mov_b32 v10, 5", "v_mov_b32 v11, 6", "v_mov_b32 v12, 7", "v_movrels_b32 v13, v10",
           "v_mov_b32 v2, s24", "v_lshl_or_b32 v2, v2, 8, s30", "v_lshl_or_b32 v2, v2, 4, s31",
           "v_lshl_or_b32 v2, v2, 4, s32", "v_lshl_or_b32 v2, v2, 4, v13", *STORE_WAVES]
  run(bench, lines, groups=3)
  got = bench.results(96).reshape(3, 32)
  want = [(70 << 8 | 9) << 12 | 0x235, (71 << 8 | 1) << 12 | 0x936, (72 << 8 | 1) << 12 | 0x297]
  assert (got == np.array(want, np.uint32)[:, None]).all()


def test_another_mode_in_each_workgroup(bench: Bench) -> None:
  """Workgroup g rounds by mode g: up, down and toward zero differ from nearest for 1 + 2^-24 and its negative."""
  lines = ["s_and_b32 s11, s10, 3", "s_setreg_b32 hwreg(HW_REG_MODE, 0, 2), s11",
           "v_mov_b32 v3, 0x33800000", "v_add_f32 v2, 1.0, v3", "v_add_f32 v4, -1.0, -v3", "v_sub_nc_u32 v2, v2, v4",
           *STORE_WAVES]
  run(bench, lines, groups=4)
  one, next_ = 0x3F800000, 0x3F800001
  want = [(a - (b | 1 << 31)) & 0xFFFFFFFF for a, b in ((one, one), (next_, one), (one, next_), (one, one))]
  assert (bench.results(128).reshape(4, 32) == np.array(want, np.uint32)[:, None]).all()


@pytest.mark.parametrize("code", [4, 253])
def test_a_matrix_in_scalar_registers_is_refused(bench: Bench, code: int) -> None:
  """The field of C has room for them; LLVM's assembler takes none either."""
  word = int.from_bytes(assemble("v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", TABLE), "little")
  position, _, width = TABLE.by_mnemonic["v_wmma_f32_16x16x16_f16"][0].fields["src2"][0]
  word = word & ~((1 << width) - 1 << position) | code << position
  entry = bench.put(np.frombuffer(word.to_bytes(8, "little") + bytes(64), np.uint8))
  d = Dispatch(entry, (1, 1, 1), (32, 1, 1), 0xC0 << 12 | 7, 0, 0, ())
  with pytest.raises((Unsupported, DecodeError)): dispatch(bench.space, bench.arch, d, watchdog=1000)


@pytest.mark.parametrize("engine", ["jit", "auto"])
def test_compiled_waves_that_wait_for_ever_are_found_at_once(bench: Bench, engine: str) -> None:
  """The waiting instruction is the reference's; that it is executed again and again is no progress."""
  code = b"".join(assemble(line, TABLE) for line in ["s_mov_b32 m0, 0", "ds_gws_sema_p offset:2 gds", "s_endpgm"])
  d = Dispatch(bench.put(np.frombuffer(code + bytes(64), np.uint8)), (2, 1, 1), (64, 1, 1), 0xC0 << 12 | 7, 0, 0, ())
  with pytest.raises(WatchdogExpired, match="repeat one state.*ds_gws_sema_p"):
    run_engine(bench.space, bench.arch, d, engine=engine)
