"""The records of processors against their page, docs/processors.md, and against what others say of them."""
from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tinyhw.arch import ARCHES, DECODED, arch, decoded
from tinyhw.arch.nv import NV_ARCHES, ClusterBank, NvArch, nv_arch
from tinyhw.autogen import nv_rm_chips
from tinyhw.core.errors import InvalidArgument
from tinyhw.wire import qmd

PAGE = Path(__file__).parents[2] / "docs" / "processors.md"


def tables() -> list[list[list[str]]]:
  """The cells of each table of the page: its heading first, then a row for each processor."""
  out: list[list[list[str]]] = [[]]
  for line in PAGE.read_text().splitlines():
    if not line.startswith("|"):
      if out[-1]: out.append([])
      continue
    cells = [c.strip().strip("`") for c in line.strip("|").split("|")]
    if set(cells[0]) != {"-"}: out[-1].append(cells)
  return [t for t in out if t]


def listed(values: Mapping[int, int]) -> str: return ", ".join(str(v) for v in values.values())


def yes(value: bool) -> str: return "yes" if value else "no"


def kib(nbytes: int) -> str: return f"{nbytes / 1024:g} KiB"


def hexes(*values: int) -> str: return ", ".join(f"{v:#x}" for v in values)


AMD: dict[str, Callable[[Any], str]] = {
  "card": lambda a: a.card,
  "KFD's version": lambda a: str(a.gfx_target_version),
  "ELF machine": lambda a: hexes(a.elf_machine),
  "instructions": lambda a: a.table,
  "meanings": lambda a: a.isa,
  "PM4, SDMA, registers": lambda a: ", ".join(n for n in (a.pm4, a.sdma, a.registers) if n) or "-",
  "compute units": lambda a: str(a.cu_count),
  "of a WGP": lambda a: str(a.cus_per_wgp),
  "SIMDs of one": lambda a: str(a.simd_per_cu),
  "waves of a SIMD": lambda a: str(a.waves_per_simd),
  "VGPRs of a SIMD": lambda a: listed(a.simd_vgprs),
  "SGPRs of a SIMD": lambda a: f"{a.simd_sgprs}, by {a.sgpr_granule}" if a.simd_sgprs else "enough",
  "LDS of one": lambda a: kib(a.lds_per_cu),
  "GDS": lambda a: kib(a.gds_size) if a.gds_size else "-",
  "saved privileged": lambda a: yes(a.saved_privileged),
  "lanes": lambda a: ", ".join(map(str, a.wave_sizes)),
  "VGPRs": lambda a: f"{a.vgprs // 2} + {a.vgprs // 2}" if a.accumulation else str(a.vgprs),
  "allocated by": lambda a: listed(a.vgpr_granule),
  "counted by": lambda a: listed({w: a.vgpr_unit[w] for w in a.wave_sizes}),
  "SGPRs": lambda a: str(a.sgprs),
  "threads of a workgroup": lambda a: str(a.workgroup_limit),
  "its LDS": lambda a: f"{kib(a.lds_per_workgroup)}, by {a.lds_granule}",
  "scratch by": lambda a: str(a.scratch_granule),
  "LDS, scratch apertures": lambda a: hexes(a.shared_aperture, a.private_aperture),
  "ids in TTMP": lambda a: yes(a.ids_in_ttmp),
  "kernarg preload": lambda a: yes(a.kernarg_preload),
  "features": lambda a: " ".join(f"{n}{'+' if on else '-'}" for n, on in a.features.items()) or "-",
  "scratch by engine": lambda a: yes(a.scratch_by_engine),
  "RSRC3 kept": lambda a: yes(a.rsrc3_kept),
}
NV: dict[str, Callable[[Any], str]] = {
  "chip": lambda a: a.chip,
  "card": lambda a: a.card,
  "compute, copy": lambda a: hexes(a.compute_class, a.copy_class),
  "channel, usermode": lambda a: hexes(a.channel_class, a.usermode_class),
  "QMD": lambda a: "{}.{}".format(*a.qmd),
  "RM's version": lambda a: hexes(a.told_as or a.version[0] << 8 | a.version[1]),
  "SMs of a TPC": lambda a: str(a.sms_per_tpc),
  "lanes": lambda a: str(a.warp_size),
  "warps of an SM": lambda a: str(a.warps_per_sm),
  "blocks of an SM": lambda a: str(a.blocks_per_sm),
  "registers of an SM": lambda a: str(a.registers_per_sm),
  "threads of a block": lambda a: str(a.block_limit),
  "shared memory of a block": lambda a: f"{kib(a.shared_per_block)}, {kib(a.shared_reserved)} kept",
  "in its symbols": lambda a: yes(a.shared_symbols_reserved),
  "of an SM, KiB": lambda a: ", ".join(map(str, a.shared_kib)),
  "ntid, nctaid": lambda a: hexes(a.bank0.ntid, a.bank0.nctaid),
  "shared, local window": lambda a: hexes(a.bank0.shared_window, a.bank0.local_window),
  "stack": lambda a: hexes(a.bank0.stack),
  "parameters": lambda a: hexes(a.bank0.params),
  "clusters": lambda a: clusters(a.bank0.clusters),
}


def clusters(told: ClusterBank | None) -> str:
  """Where bank 0 tells of clusters."""
  if told is None: return "-"
  places = hexes(*(told.at + part for part in (told.nctaid, told.factors, told.nclusterid, told.nctarank)))
  return places if told.copies == 1 else f"{places}, {told.copies} times -{told.apart:#x}"


def compare(known: Mapping[str, Any], columns: Mapping[str, Callable[[Any], str]]) -> None:
  """The page's tables of some processors have each of them in order, and all columns between them."""
  own = [t for t in tables() if t[1][0] in known]
  assert sorted(c for t in own for c in t[0][1:]) == sorted(columns)
  for heading, *rows in own:
    assert [r[0] for r in rows] == list(known)
    for row in rows:
      assert dict(zip(heading[1:], row[1:])) == {c: columns[c](known[row[0]]) for c in heading[1:]}, row[0]


def test_amd() -> None: compare(DECODED, AMD)


def test_nvidia() -> None: compare(NV_ARCHES, NV)


@pytest.mark.parametrize("look, known", [(arch, ARCHES), (decoded, DECODED), (nv_arch, NV_ARCHES)])
def test_another_name_is_refused(look: Callable[[str], Any], known: Mapping[str, Any]) -> None:
  assert [look(name) for name in known] == list(known.values())
  with pytest.raises(InvalidArgument, match="gfx1") as refused: look("gfx1")
  assert str(refused.value.hint).endswith(', '.join(known))


ENDS = {"compute_class": "_COMPUTE_", "copy_class": "_DMA_COPY_", "channel_class": "_CHANNEL_GPFIFO_",
        "usermode_class": "_USERMODE_"}


@pytest.mark.parametrize("a", NV_ARCHES.values(), ids=NV_ARCHES)
def test_classes_are_the_chips_newest(a: NvArch) -> None:
  """What RM's table of the chip has of each kind, and of its own generation where it has more than one."""
  named = [(number, nv_rm_chips.RESOURCES[number].name) for number, _ in nv_rm_chips.CHIPS[a.chip]
           if number in nv_rm_chips.RESOURCES]
  for field, end in ENDS.items():
    assert getattr(a, field) == max(number for number, name in named if end in name), field


@pytest.mark.parametrize("a", NV_ARCHES.values(), ids=NV_ARCHES)
def test_the_qmd_is_the_class_newest(a: NvArch) -> None:
  """Blackwell's headers state versions of both kinds of chip; GB100 and GB20x take the one of their own header."""
  assert a.qmd == max(qmd.versions(a.compute_class))


# What ptxas 13.0 has two kernels read of constant bank 0 (nvdisasm): `geo` writes blockDim, gridDim and a parameter of
# 4 bytes behind one of 8; `win` takes the addresses of an array in shared memory and of one on its stack. The word that
# is a descriptor of global memory is left out.
READ = {
  "sm_80": ("28 0 160 164 4 8 c 10 14 168", "28 168 160 20 164 24 18"),
  "sm_90": ("28 0 4 8 c 10 210 14 218", "28 218 20 210 24"),
  "sm_100": ("37c 360 364 368 370 374 380 378 388", "37c 388 2f8 2fc 380"),
  "sm_120": ("37c 360 380 364 368 370 374 378 388", "37c 388 2f8 2fc 380"),
}


@pytest.mark.parametrize("name", READ)
def test_bank_0_is_what_ptxas_reads(name: str) -> None:
  geo, win = ({int(word, 16) for word in read.split()} for read in READ[name])
  bank = nv_arch(name).bank0
  words = {bank.stack, bank.params, bank.params + 8}
  assert geo - {bank.params + 4} == words | {at + 4 * k for at in (bank.ntid, bank.nctaid) for k in range(3)}
  older = {bank.shared_window} if nv_arch(name).sm < 90 else set()  # newer ones have it in a special register
  assert win - {bank.params + 4} == words | {bank.local_window, bank.local_window + 4} | older


# The same of a kernel that writes %cluster_nctaid, %cluster_ctaid (each way), %nclusterid and %cluster_nctarank: what
# is read beside the stack, the parameter and the descriptor. sm_100 and sm_120 read them at -0xa0 * SR_CgaSize.
CLUSTERS = {"sm_90": "144 148 14c 150 154 158 15c 160 164 188", "sm_100": "2a0 2a4 2a8 2b0 2b4 2b8 2c0 2c4 2c8 2cc",
            "sm_120": "2a0 2a4 2a8 2b0 2b4 2b8 2c0 2c4 2c8 2cc"}


@pytest.mark.parametrize("name", NV_ARCHES)
def test_what_bank_0_tells_of_clusters_is_what_ptxas_reads(name: str) -> None:
  told = nv_arch(name).bank0.clusters
  assert (told is not None) == (name in CLUSTERS)
  if told is None: return
  places = [told.at + part + 4 * k for part in (told.nctaid, told.factors, told.nclusterid) for k in range(3)]
  assert sorted([*places, told.at + told.nctarank]) == [int(word, 16) for word in CLUSTERS[name].split()]
  assert (told.copies, told.apart) == ((1, 0) if name == "sm_90" else (5, 0xA0))
  assert told.at - (told.copies - 1) * told.apart >= 0


def test_occupancy_header_agrees(tmp_path: Path) -> None:
  """Blocks that fit an SM, by NVIDIA's own header (cuda_occupancy.h), where the machine has it."""
  headers = [p for root in ("/usr/local/cuda/include", "/usr/include", *sys.path)
             for p in (Path(root, "cuda_occupancy.h"), *Path(root).glob("nvidia/*/include/cuda_occupancy.h"),
                       Path(root, "triton/backends/nvidia/include/cuda_occupancy.h")) if p.exists()]
  cc = shutil.which("gcc") or shutil.which("clang")
  if not headers or cc is None: pytest.skip("cuda_occupancy.h or a C compiler is not installed")
  source = tmp_path / "occupancy.c"
  source.write_text(OCCUPANCY)
  subprocess.run([cc, "-x", "c", "-w", f"-I{headers[0].parent}", "-o", tmp_path / "occupancy", source, "-lm"],
                 check=True)
  for a in NV_ARCHES.values():
    for threads, registers, shared in ((32, 16, 0), (64, 255, 0), (1024, 32, 0), (128, 64, 40000), (1024, 16, 101376)):
      given = [*a.version, a.block_limit, a.warps_per_sm * a.warp_size, a.registers_per_sm, a.shared_kib[-1] << 10,
               a.shared_per_block, a.shared_reserved, threads, registers, shared]
      done = subprocess.run([tmp_path / "occupancy", *map(str, given)], capture_output=True, text=True, check=True)
      blocks, largest = map(int, done.stdout.split())
      assert blocks == fitting(a, threads, registers, shared), (a.name, threads, registers, shared)
      assert largest == a.blocks_per_sm, a.name


def fitting(a: NvArch, threads: int, registers: int, shared: int) -> int:
  """Blocks of an SM: registers are given to a warp by 256, in four parts of the file; shared memory by 128 bytes."""
  warps = -(-threads // a.warp_size)
  of_a_warp = -(-registers * a.warp_size // 256) * 256
  by_registers = a.registers_per_sm // 4 // of_a_warp * 4 // warps
  by_shared = (a.shared_kib[-1] << 10) // (-(-shared // 128) * 128 + a.shared_reserved)
  return min(a.blocks_per_sm, a.warps_per_sm // warps, by_registers, by_shared)


OCCUPANCY = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda_occupancy.h"
int main(int argc, char **argv) {
  int v[12];
  for (int i = 1; i < argc; i++) v[i] = atoi(argv[i]);
  cudaOccDeviceProp p; memset(&p, 0, sizeof p);
  p.computeMajor = v[1]; p.computeMinor = v[2]; p.maxThreadsPerBlock = v[3]; p.maxThreadsPerMultiprocessor = v[4];
  p.regsPerBlock = v[5]; p.regsPerMultiprocessor = v[5]; p.warpSize = 32; p.sharedMemPerBlock = 48 << 10;
  p.sharedMemPerMultiprocessor = v[6]; p.numSms = 1; p.sharedMemPerBlockOptin = v[7];
  p.reservedSharedMemPerBlock = v[8];
  cudaOccFuncAttributes a; memset(&a, 0, sizeof a);
  a.maxThreadsPerBlock = v[3]; a.numRegs = v[10]; a.sharedSizeBytes = 0; a.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  a.maxDynamicSharedSizeBytes = v[7];
  cudaOccDeviceState s; memset(&s, 0, sizeof s);
  s.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
  cudaOccResult r; memset(&r, 0, sizeof r);
  int rc = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, v[9], v[11]), most = 0;
  if (rc) { fprintf(stderr, "status %d\\n", rc); return 1; }
  if (cudaOccMaxBlocksPerMultiprocessor(&most, &p)) return 1;
  printf("%d %d\\n", r.activeBlocksPerMultiprocessor, most);
  return 0;
}
"""
