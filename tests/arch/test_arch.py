"""Processors as data, against LLVM: the ELF's machine, and the occupancy that LLVM computes from registers and LDS."""
from __future__ import annotations

import io
import re
import shutil
import subprocess

import llvmlite.binding as llvm
import pytest
from elftools.elf.elffile import ELFFile

from tests.emulator.gpu import TRIPLE
from tinyhw.arch import ARCHES, DECODED, Arch
from tinyhw.autogen import elf_amdgpu, gc_11_0_0
from tinyhw.isa.amdgcn import table

LLC = shutil.which("llc-22") or shutil.which("llc-19")
NEWER = {"gfx950": 0x4F, "gfx1153": 0x58, "gfx1250": 0x49, "gfx1251": 0x5A, "gfx9-4-generic": 0x5F}  # than LLVM 19
KERNEL = """define amdgpu_kernel void @k{n}() #0 {{
  call void asm sideeffect "v_mov_b32 v{last}, 0", "~{{v{last}}}"()
  ret void
}}
"""
REGISTERS = (1, 24, 25, 49, 64, 65, 96, 97, 128, 129, 193, 200, 249, 256)


@pytest.mark.skipif(LLC is None, reason="LLVM is not installed")
@pytest.mark.parametrize("arch", DECODED.values(), ids=DECODED)
def test_occupancy_is_llvms(arch: Arch) -> None:
  """Waves that a SIMD holds by their vector registers: those of LLVM's listing."""
  if arch.name in NEWER and "19" in str(LLC): pytest.skip("LLVM 19 does not know it")
  kernels = "".join(KERNEL.format(n=n, last=n - 1) for n in REGISTERS)
  for lanes in arch.wave_sizes:
    size = "" if len(arch.wave_sizes) == 1 else f"+wavefrontsize{lanes},-wavefrontsize{96 - lanes}"
    given = f'{kernels}attributes #0 = {{ "amdgpu-flat-work-group-size"="1,64" "target-features"="{size}" }}\n'
    done = subprocess.run([str(LLC), f"-mtriple={TRIPLE}", f"-mcpu={arch.name}", "-o", "-"], input=given,
                          capture_output=True, text=True, check=True)
    shown = [int(n) for n in re.findall(r"; Occupancy: (\d+)", done.stdout)]
    granule = arch.vgpr_granule[lanes]
    held = [arch.simd_vgprs[lanes] // (-(-n // granule) * granule) for n in REGISTERS]
    assert shown == [min(arch.waves_per_simd, n) for n in held], lanes


@pytest.mark.parametrize("arch", DECODED.values(), ids=DECODED)
def test_names_are_the_elfs_and_kfds(arch: Arch) -> None:
  assert elf_amdgpu.MACHINES[arch.elf_machine] == arch.name
  major, minor, stepping = arch.version
  assert arch.name == f"gfx{major}{minor}{stepping:x}"
  assert machine_of(arch.name) == arch.elf_machine and table(arch.isa).mnemonics


def machine_of(processor: str) -> int:
  """EF_AMDGPU_MACH of an object that LLVM makes."""
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=processor)
  elf = ELFFile(io.BytesIO(machine.emit_object(llvm.parse_assembly(f'target triple = "{TRIPLE}"'))))
  return int(elf["e_flags"]) & elf_amdgpu.EF_AMDGPU_MACH


def test_newer_machines() -> None:
  """The corrections of LLVM 19's ELF.h: what LLVM 22 writes."""
  for name, machine in NEWER.items(): assert machine_of(name) == machine and elf_amdgpu.MACHINES[machine] == name


def test_devices_have_packets_and_registers() -> None:
  assert gc_11_0_0.REGISTERS and all(a.pm4 and a.sdma and a.registers for a in ARCHES.values())
  assert {a.isa for a in DECODED.values()} == {"gfx9", "gfx11", "gfx12"}
