"""Workgroups resident at once, against the occupancy that LLVM 19 states in its assembly listings."""
from __future__ import annotations

from dataclasses import replace

import pytest

from tinyhw.arch import decoded
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.amdgcn.occupancy import Occupancy, occupancy


def of(cpu: str, vgprs: int, lds: int = 0, block: int = 64, wgp: int = 1, sgprs: int = 0, **more: int) -> Occupancy:
  arch = decoded(cpu)
  lanes = 64 if cpu == "gfx942" else 32
  rsrc1 = (vgprs - 1) // arch.vgpr_unit[lanes] | sgprs << 6 | (wgp << 29 if lanes == 32 else 0)
  return occupancy(arch, replace(Dispatch(0, (1, 1, 1), (block, 1, 1), rsrc1, 0, wave32=lanes == 32), lds_size=lds,
                                 **more))


# clang-19 -O1 -S of kernels with so many live values, bytes of LDS and work-items: "; Occupancy:"
LISTED = {**dict.fromkeys(("gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201"), (16, 12, 10, 8, 5, 12, 16)),
          **dict.fromkeys(("gfx1102", "gfx1103", "gfx1150", "gfx1152"), (16, 9, 7, 5, 4, 12, 16)),
          "gfx942": (8, 4, 3, 2, 2, 3, 8)}
KERNELS = ((11, 0, 64), (101, 0, 64), (141, 0, 64), (191, 0, 64), (246, 0, 64), (11, 20000, 256), (11, 0, 1024))


@pytest.mark.parametrize("cpu", LISTED)
def test_waves_of_a_simd_are_what_llvm_lists(cpu: str) -> None:
  assert tuple(of(cpu, *kernel).waves_per_simd for kernel in KERNELS) == LISTED[cpu]


def test_what_limits_is_named() -> None:
  assert str(of("gfx1100", 141)) == ("10 waves a SIMD, limited by VGPRs (144 a wave of 1536); 960 workgroups of 2 "
                                     "waves resident at once on 96 compute units")
  assert "LDS (20,480 bytes a workgroup of 131,072 a workgroup processor)" in str(of("gfx1100", 8, 20000, 256))
  assert of("gfx1100", 8, 20000, 256, wgp=0).workgroups == 3 * 96 and of("gfx1100", 8, 20000, 256).workgroups == 6 * 48
  many = of("gfx942", 8, sgprs=12)  # 13 times 8 registers, taken by 16
  assert many.limit == "SGPRs (112 a wave of 800)" and many.waves_per_simd == 7


def test_the_card_and_its_scratch_memory_limit_too() -> None:
  assert of("gfx1100", 8, block=1024, compute_units=2).workgroups == 2
  few = of("gfx1100", 8, scratch_size=256, scratch_waves=64)
  assert few.workgroups == 32 and few.limit == "scratch memory (for 64 waves)"
  assert of("gfx1100", 256, 64 << 10, 1024).workgroups == 48  # what must fit, does
