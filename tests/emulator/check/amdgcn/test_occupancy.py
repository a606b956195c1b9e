"""What no chip could begin is a finding: registers that no wave has, workgroups that fit no compute unit."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.emulator.checking import code_of
from tests.emulator.gpu import Gpu
from tinyhw.arch import decoded
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.amdgcn.occupancy import unfit
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.engines.amdgcn import dispatch
from tinyhw.emulator.ptx.launch.grid import Dispatch as Launch
from tinyhw.emulator.ptx.launch.occupancy import unfit as unfit_ptx
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

WGP = {"gfx1100": 1 << 29, "gfx1201": 1 << 29, "gfx942": 0}


def asked(cpu: str, block: int, vgprs: int, lanes: int, wgp: bool = False) -> Dispatch:
  arch = decoded(cpu)
  return Dispatch(0x1000, (1, 1, 1), (block, 1, 1), vgprs // arch.vgpr_unit[lanes] - 1 | (WGP[cpu] if wgp else 0), 0,
                  wave32=lanes == 32)


@pytest.mark.parametrize(("cpu", "block", "vgprs", "lanes", "wgp", "found"), [
  ("gfx1100", 1024, 96, 32, False, ""),  # 1,536 registers of each of 2 SIMDs for 16 waves
  ("gfx1100", 1024, 104, 32, False, "a workgroup of 32 waves does not fit a compute unit of gfx1100, which holds 24"),
  ("gfx1100", 1024, 192, 32, True, ""),
  ("gfx1100", 1024, 200, 32, True, "does not fit a workgroup processor of gfx1100, which holds 28"),
  ("gfx1100", 1024, 96, 64, False, ""), ("gfx1100", 1024, 100, 64, False, "which holds 14"),
  ("gfx1100", 32, 256, 32, False, ""), ("gfx1100", 32, 264, 32, False, "asks for 264 VGPRs, a wave of gfx1100 has 256"),
  ("gfx1201", 1024, 96, 32, False, ""), ("gfx1201", 1024, 104, 32, False, "which holds 24"),
  ("gfx942", 1024, 128, 64, False, ""), ("gfx942", 1024, 136, 64, False, "which holds 12"),
  ("gfx942", 64, 512, 64, False, "")])
def test_what_fits(cpu: str, block: int, vgprs: int, lanes: int, wgp: bool, found: str) -> None:
  told = unfit(decoded(cpu), asked(cpu, block, vgprs, lanes, wgp))
  assert bool(told) == bool(found) and (not found or found in told[0]), told


def test_sgprs_of_gfx9() -> None:
  arch = decoded("gfx942")
  for count, fits in ((112, True), (120, False)):
    d = Dispatch(0x1000, (1, 1, 1), (64, 1, 1), count // 8 - 1 << 6, 0, wave32=False)
    assert (not unfit(arch, d)) == fits


@pytest.mark.parametrize(("cpu", "lanes", "most"), [
  ("gfx942", 64, 8_387_584), ("gfx1100", 32, 8_388_352), ("gfx1100", 64, 8_388_352), ("gfx1201", 32, 67_108_608)])
def test_scratch_of_a_wave(cpu: str, lanes: int, most: int) -> None:
  """Against LLVM 22: GCNSubtarget.h, getMaxWaveScratchSize."""
  d = asked(cpu, lanes, 16, lanes)
  def told(size: int) -> list[str]: return unfit(decoded(cpu), replace(d, scratch_size=size, scratch_waves=1))
  assert not told(most // lanes)
  message, = told(most // lanes + 4)
  assert message.endswith(f"bytes of scratch a wave, a wave of {cpu} has {most:,}")


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_it_is_a_finding_of_the_checks(engine: str) -> None:
  gpu, checker = Gpu(1 << 24, "gfx1100"), Checker()
  entry = gpu.put(np.frombuffer(code_of("s_nop 0\n s_endpgm", gpu.arch.isa), np.uint8))
  d = Dispatch(entry, (1, 1, 1), (1024, 1, 1), rsrc1=256 // 8 - 1, rsrc2=2 << 1 | 1 << 7, user_data=(0, 0))
  dispatch(gpu.space, gpu.arch, d, observer=checker, engine=engine)
  finding, = checker.report
  assert finding.kind == "occupancy" and finding.pc == entry
  assert "limited by VGPRs (264 a wave of 1536)" in finding.message
  other = Checker({"race"})
  dispatch(gpu.space, gpu.arch, d, observer=other, engine=engine)
  assert not len(other.report)


PTX = """.version 8.0
.target {target}
.address_size 64
{memory}
.visible .entry k() {{ .reg .b32 %r<2>; {use} ret; }}
"""


@pytest.mark.parametrize(("target", "declared", "dynamic", "found"), [
  ("sm_80", 49152, 0, ""), ("sm_80", 49156, 0, "ptxas takes 49,152"), ("sm_80", 0, 163 << 10, ""),
  ("sm_80", 0, 164 << 10, "a block, which has 166,912 on sm_80"), ("sm_90", 0, 227 << 10, ""),
  ("sm_86", 0, 100 << 10, "a block, which has 101,376 on sm_86")])
def test_shared_memory_of_ptx(target: str, declared: int, dynamic: int, found: str) -> None:
  memory = f".shared .align 4 .b8 m[{declared}];" if declared else ""
  use = "mov.u32 %r1, m;" if declared else ""
  program = Program(link(parse(PTX.format(target=target, memory=memory, use=use).encode())), "k", 0)
  d = Launch(program, (1, 1, 1), (32, 1, 1), 0, 0, dynamic)
  told = unfit_ptx(d)
  assert bool(told) == bool(found) and (not found or found in told[0]), told


@pytest.mark.parametrize(("declared", "called", "fits"), [(1 << 19, 0, True), (1 << 19, 4, False),
                                                          (1 << 18, 1 << 18, True), (1 << 18, (1 << 18) + 1, False)])
def test_local_memory_of_ptx(declared: int, called: int, fits: bool) -> None:
  """Of the kernel and all that it calls."""
  below = f".func f() {{ .local .align 4 .b8 l[{called}]; .reg .b32 %r; mov.u32 %r, l; ret; }}" if called else ""
  use = f".local .align 4 .b8 m[{declared}]; mov.u32 %r1, m;" + (" call f, ();" if called else "")
  program = Program(link(parse(PTX.format(target="sm_90", memory=below, use=use).encode())), "k", 0)
  told = unfit_ptx(Launch(program, (1, 1, 1), (32, 1, 1), 0, 0, 0))
  assert fits == (not told) and (fits or "local memory a thread, which has 524,288" in told[0]), told
