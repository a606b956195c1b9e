"""Loops that end, however long they store nothing; loops that never do are told at once."""
from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.checking import code_of
from tests.emulator.gpu import Gpu
from tinyhw.core.errors import WatchdogExpired
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.engines.amdgcn import dispatch
from tinyhw.emulator.simt import BLOCKS_A_TURN

STEPS = 4 * BLOCKS_A_TURN + 1000  # the state that is kept is compared from the second turn on
HOWS = ("ref", "jit", "auto", "both", "check")


def run(how: str, text: str, waves: int = 1, watchdog: int = 10_000_000) -> int:
  """Run a program with s[0:1] the address of its result, which it returns."""
  gpu = Gpu(1 << 20)
  out = gpu.put(np.zeros(64, np.uint32))
  entry = gpu.put(np.frombuffer(code_of(text, "gfx11"), np.uint8))
  d = Dispatch(entry, (1, 1, 1), (32 * waves, 1, 1), 7 | 0xF0 << 12, 2 << 1 | 1 << 7,
               user_data=(out & 0xFFFFFFFF, out >> 32), lds_size=1024)
  observer = Checker() if how == "check" else None
  dispatch(gpu.space, gpu.arch, d, watchdog=watchdog, engine="ref" if how == "check" else how, observer=observer)
  return int(gpu.get(out, np.uint32, 1)[0])


STORE = """
  v_mov_b32 v2, 0
  v_mov_b32 v1, s3
  global_store_b32 v2, v1, s[0:1]
  s_endpgm"""
SCALAR = f"""
  s_mov_b32 s3, 0
again:
  s_add_u32 s3, s3, 1
  s_cmp_lg_u32 s3, {STEPS:#x}
  s_cbranch_scc1 again""" + STORE
VECTOR = f"""
  v_mov_b32 v1, 0
again:
  v_add_nc_u32 v1, 1, v1
  v_cmp_ne_u32 vcc_lo, {STEPS:#x}, v1
  s_cbranch_vccnz again
  v_readfirstlane_b32 s3, v1""" + STORE


@pytest.mark.parametrize("how", HOWS)
def test_a_long_loop_without_stores_ends(how: str) -> None:
  assert run(how, SCALAR) == STEPS
  if how != "check": assert run(how, VECTOR) == STEPS


# each lap leaves the registers as they were and ends a turn by its sleep: only the counter moves
SHARED = """
  s_mov_b32 m0, 0x1000
  v_mov_b32 v1, 0
  v_mov_b32 v4, 1
again:
  ds_add_rtn_u32 v3, v1, v4 gds
  s_waitcnt lgkmcnt(0)
  v_readfirstlane_b32 s3, v3
  s_cmp_lt_u32 s3, 20
  v_mov_b32 v3, 0
  s_mov_b32 s3, 0
  s_sleep 1
  s_cbranch_scc1 again
  ds_load_b32 v3, v1 gds
  s_waitcnt lgkmcnt(0)
  v_readfirstlane_b32 s3, v3""" + STORE


@pytest.mark.parametrize("how", ["ref", "jit", "check"])
def test_the_global_data_share_is_part_of_the_state(how: str) -> None:
  assert run(how, SHARED) == 21


CLOCK = """
  s_getreg_b32 s4, hwreg(HW_REG_SHADER_CYCLES, 0, 20)
again:
  s_getreg_b32 s5, hwreg(HW_REG_SHADER_CYCLES, 0, 20)
  s_sub_u32 s3, s5, s4
  s_lshr_b32 s3, s3, 8
  s_mov_b32 s5, 0
  s_sleep 1
  s_cmp_eq_u32 s3, 0
  s_cbranch_scc1 again""" + STORE


@pytest.mark.parametrize("how", ["ref", "jit", "check"])  # the engines' clocks differ
def test_time_goes_on_while_waves_wait_for_it(how: str) -> None:
  assert run(how, CLOCK) == 1


@pytest.mark.parametrize("how", HOWS[:-1])
def test_a_loop_that_repeats_its_state_is_endless(how: str) -> None:
  text = "again:\n s_xor_b32 s3, s3, 1\n s_branch again"
  with pytest.raises(WatchdogExpired, match="an endless loop"): run(how, text)
