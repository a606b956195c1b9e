"""gfx942: buffer_store_lds_dword against a model in NumPy, on each engine and under the checks."""
from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.amdgcn.test_gfx9_buffers import resource
from tests.emulator.checking import check
from tests.emulator.gfx9 import EXTRA, LANES, run
from tests.strength import seed
from tinyhw.core.errors import PageFault

LDS = 1024
SEED = np.random.default_rng(seed(61)).integers(0, 1 << 32, LANES, dtype=np.uint32)
FILL = "v_lshlrev_b32_e32 v2, 2, v0\n ds_write_b32 v2, v1 offset:{}\n s_waitcnt lgkmcnt(0)\n"


@pytest.mark.parametrize("engine", ["ref", "jit", "both", "auto"])
@pytest.mark.parametrize(("m0", "offset", "soffset", "mask"), [
  (0, 0, 0, -1), (256, 0, 64, -1), (64, 128, 0, -1), (0xABC0100, 0, 8, 0x0F0F_1234_FFFF_0001),
  (LDS - 40, 0, 0, -1), (LDS - 8, 8, 0, -1)])
def test_a_dword_of_each_lane(m0: int, offset: int, soffset: int, mask: int, engine: str) -> None:
  """The resource adds the lane's number: dword `lane` of the buffer gets LDS dword `lane` behind M0 + offset."""
  extra = np.full(512, 7, np.uint32)
  run(resource(4 * LANES + 512, stride=4, add_thread=1, dfmt=0) + FILL.format(256) + f"""
    s_mov_b32 m0, {m0:#x}
    s_mov_b32 s12, {soffset}
    s_mov_b32 exec_lo, {mask & 0xFFFFFFFF:#x}
    s_mov_b32 exec_hi, {mask >> 32 & 0xFFFFFFFF:#x}
    buffer_store_lds_dword s[8:11], s12 offset:{offset} lds
    s_waitcnt vmcnt(0)""", {1: SEED}, [], extra=extra, lds=LDS, engine=engine)
  lds = np.zeros(LDS // 4, np.uint32)
  lds[64:64 + LANES] = SEED
  want = np.full(512, 7, np.uint32)
  for lane in range(LANES):
    at = (m0 & 0xFFFF) + offset + 4 * lane
    if mask >> lane & 1 and at + 4 <= LDS: want[(soffset + offset) // 4 + lane] = lds[at // 4]
  assert np.array_equal(extra, want)


def test_without_the_lanes_number_the_last_lane_wins() -> None:
  extra = np.zeros(16, np.uint32)
  run(resource(16) + FILL.format(0) + "s_mov_b32 m0, 0\n buffer_store_lds_dword s[8:11], 0 offset:4 lds", {1: SEED}, [],
      extra=extra, lds=LDS)
  assert extra[1] == 0 and not extra[[0, *range(2, 16)]].any()  # lane 63 reads dword 64, which nobody wrote


def test_outside_the_buffer_nothing_is_stored_and_faults_are_told() -> None:
  extra = np.zeros(64, np.uint32)
  run(resource(8) + FILL.format(0) + "s_mov_b32 m0, 0\n buffer_store_lds_dword s[8:11], 0 offset:8 lds", {1: SEED}, [],
      extra=extra, lds=LDS)
  assert not extra.any()
  far = resource(1 << 20).replace(f"{EXTRA:#x}", "0x70000000")
  with pytest.raises(PageFault, match="write of 4 bytes at 0x70000000 .*lane 0"):
    run(far + FILL.format(0) + "s_mov_b32 m0, 0\n buffer_store_lds_dword s[8:11], 0 lds", {1: SEED}, [],
        extra=extra, lds=LDS)


def test_the_checks_know_it() -> None:
  """Dwords of LDS that nobody wrote go to memory: that decides nothing, but reading them is seen; M0 needs its wait."""
  text = """
    s_mov_b32 s4, s0
    s_mov_b32 s5, s1
    s_mov_b32 s6, 0x1000
    s_mov_b32 s7, 0x20000
    v_lshlrev_b32_e32 v2, 2, v0
    ds_write_b32 v2, v2
    s_waitcnt lgkmcnt(0)
    s_mov_b32 m0, 0
    {}
    buffer_store_lds_dword s[4:7], 0 lds
    s_waitcnt vmcnt(0)"""
  report = check(text.format("s_nop 1"), cpu="gfx942", lanes=64, lds=1024)
  assert not len(report), str(report)
  assert "buffer_store_lds_dword" in str(check(text.format(""), cpu="gfx942", lanes=64, lds=1024))
