"""The report and the exactness record of the rarer memories: images, the global data share, allocated registers."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.emulator.checking import code_of
from tests.emulator.gpu import Gpu
from tests.emulator.images import Picture
from tinyhw.emulator.amdgcn import Dispatch, dispatch
from tinyhw.emulator.debug.record import Recorder
from tinyhw.emulator.debug.report import Report

U32 = np.uint32
IMAGE = """
  v_mov_b32_e32 v1, v0
  v_sin_f32_e32 v8, v0
  image_store v8, v1, s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_1D{unorm}
  image_load v9, v1, s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_1D{unorm}
  {wait}
  v_lshlrev_b32_e32 v3, 2, v0
  global_store_b32 v3, v9, s[0:1]"""
GDS = """
  s_mov_b32 m0, 0x1000
  v_mov_b32_e32 v1, 0
  v_sin_f32_e32 v8, v0
  ds_store_b32 v1, v8 gds
  s_waitcnt lgkmcnt(0)
  ds_load_b32 v9, v1 gds
  ds_append v2 gds
  s_waitcnt lgkmcnt(0)
  s_mov_b32 exec_lo, 1
  global_store_b32 v1, v9, s[0:1]"""
ALLOCATION = """
  s_alloc_vgpr 32
  v_sin_f32_e32 v31, v0
  s_alloc_vgpr 64
  v_mov_b32_e32 v60, v31
  s_alloc_vgpr 96
  v_lshlrev_b32_e32 v1, 2, v0
  global_store_b32 v1, v60, s[0:1]"""


def recorded(cpu: str, text: str, rsrc2: int = 0) -> Recorder:
  gpu = Gpu(1 << 22, cpu)
  at = gpu.put(np.zeros(1024, U32))
  words = Picture(cpu, "1D", "32_FLOAT", np.dtype("f4"), 64).words(at)
  lines = [f"s_mov_b32 s{8 + k}, {int(w):#x}" for k, w in enumerate(words)]
  code = gpu.put(np.frombuffer(code_of("\n".join([*lines, text, "s_endpgm"]), gpu.arch.isa), np.uint8))
  recorder = Recorder()
  dispatch(gpu.space, gpu.arch, Dispatch(
    code, (1, 1, 1), (32, 1, 1), 64 // 8 - 1 | 0xC0 << 12, 2 << 1 | rsrc2,
    user_data=(at & 0xFFFFFFFF, at >> 32)), observer=recorder)
  return recorder


CASES: list[tuple[str, str, int, dict[tuple[str, str], tuple[int, int]]]] = [
  ("gfx1100", IMAGE.format(unorm=" unorm", wait="s_waitcnt vmcnt(0)"), 0,
   {("global", "store"): (64, 256), ("global", "load"): (32, 128)}),
  ("gfx1201", IMAGE.format(unorm="", wait="s_wait_loadcnt 0"), 0,
   {("global", "store"): (64, 256), ("global", "load"): (32, 128)}),
  ("gfx1100", GDS, 0, {("gds", "store"): (1, 4), ("gds", "load"): (1, 4), ("gds", "atomic"): (1, 4),
                       ("global", "store"): (1, 4)}),
  ("gfx1201", ALLOCATION, 1 << 6, {("global", "store"): (32, 128)})]


@pytest.mark.parametrize(("cpu", "text", "rsrc2", "traffic"), CASES, ids=["image", "image12", "gds", "allocation"])
def test_the_report_counts_lanes_and_bytes(cpu: str, text: str, rsrc2: int,
                                           traffic: dict[tuple[str, str], tuple[int, int]]) -> None:
  """What is not exact here is v_sin; it is seen to arrive in memory, through images and the share too."""
  recorder = recorded(cpu, text, rsrc2)
  report = Report.of(recorder)
  found: dict[tuple[str, str], list[int]] = {}
  for i in report.instructions:
    for a in i.accesses:
      kept = found.setdefault((a.segment, a.kind), [0, 0])
      kept[0] += a.lanes
      kept[1] += a.bytes
  assert {k: tuple(v) for k, v in found.items()} == traffic
  told: Any = str(report)
  assert "v_sin_f32" in told
  assert recorder.exactness is not None
  reached = recorder.exactness.reached()
  assert any(r.sink == "memory" for r in reached), reached
