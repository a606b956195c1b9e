"""How many workgroups of a dispatch a chip holds at once, and what limits them.

A wave has a share of its SIMD's registers, a workgroup one of its compute unit's LDS. The limits are the
Arch's. Sources: LLVM's AMDGPUUsage (register granules, WGP_MODE), the ISA manuals (waves, LDS), and as a witness what
LLVM writes as "Occupancy" in its assembly listings.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tinyhw.emulator.amdgcn.allocation import first_block
from tinyhw.emulator.amdgcn.fields import SGPRS, VGPRS, limit, program_field

if TYPE_CHECKING:
  from tinyhw.arch import Arch
  from tinyhw.emulator.amdgcn.launch import Dispatch


@dataclass(frozen=True)
class Occupancy:
  """`waves_per_simd` a SIMD holds; `workgroups` the whole card of `compute_units`, of `waves` waves each.

  `limit` says in words what there is no more of.
  """
  waves_per_simd: int
  limit: str
  workgroups: int
  waves: int
  compute_units: int

  def __str__(self) -> str:
    return (f"{_count(self.waves_per_simd, 'wave')} a SIMD, limited by {self.limit}; "
            f"{_count(self.workgroups, 'workgroup')} of {_count(self.waves, 'wave')} resident at once on "
            f"{_count(self.compute_units, 'compute unit')}")


def _count(n: int, what: str) -> str: return f"{n:,} {what}{'s' if n != 1 else ''}"
def _up(n: int, granule: int) -> int: return -(-n // granule) * granule


def _pair(arch: Arch, d: Dispatch) -> int:
  """A workgroup's waves stay in one compute unit, or with WGP_MODE in a pair of them that share their LDS."""
  return arch.cus_per_wgp if program_field(arch.isa, "RSRC1", "WGP_MODE", d.rsrc1) else 1


def _place(pair: int) -> str: return "workgroup processor" if pair > 1 else "compute unit"


def _a_simd(arch: Arch, d: Dispatch) -> tuple[int, str]:
  """Waves that a SIMD holds, and what limits them."""
  lanes = 32 if d.wave32 else 64
  vgprs = _up(first_block(arch, d, lanes) or (VGPRS.of(d.rsrc1) + 1) * arch.vgpr_unit[lanes], arch.vgpr_granule[lanes])
  file = arch.simd_vgprs[lanes]
  limits = [(arch.waves_per_simd, f"the {arch.waves_per_simd} waves of a SIMD"),
            (file // vgprs, f"VGPRs ({vgprs} a wave of {file})")]
  if arch.simd_sgprs:
    # 8 registers a unit, of which the chip takes them by `sgpr_granule`
    sgprs = _up((SGPRS.of(d.rsrc1) + 1) * 8, arch.sgpr_granule)
    limits.append((arch.simd_sgprs // sgprs, f"SGPRs ({sgprs} a wave of {arch.simd_sgprs})"))
  return min(limits, key=lambda row: row[0])


def unfit(arch: Arch, d: Dispatch) -> list[str]:
  """What no chip of the generation could begin, in words: more registers than a wave has (LLVM's AMDGPUUsage,
  GRANULATED_WORKITEM_VGPR_COUNT and GRANULATED_WAVEFRONT_SGPR_COUNT), more scratch than a wave's size is told in
  (COMPUTE_TMPRING_SIZE.WAVESIZE), a workgroup that no compute unit holds."""
  lanes = 32 if d.wave32 else 64
  out, x, y, z = list[str](), *d.block
  asked = [("VGPRs", (VGPRS.of(d.rsrc1) + 1) * arch.vgpr_unit[lanes], arch.vgprs)]
  if arch.simd_sgprs:  # beside those of programs VCC, FLAT_SCRATCH and XNACK_MASK
    asked.append(("SGPRs", (SGPRS.of(d.rsrc1) + 1) * 8, _up(arch.sgprs + 6, arch.sgpr_granule)))
  if first_block(arch, d, lanes): del asked[0]  # such waves begin with a block of them
  for what, count, most in asked:
    if count > most: out.append(f"the kernel asks for {count} {what}, a wave of {arch.name} has {most}")
  scratch, most = d.scratch_size * lanes, limit(arch.isa, "TMPRING_SIZE", "WAVESIZE") * arch.scratch_granule
  if scratch > most:
    out.append(f"the kernel asks for {scratch:,} bytes of scratch a wave, a wave of {arch.name} has {most:,}")
  waves, pair = -(-x * y * z // lanes), _pair(arch, d)
  a_simd, why = _a_simd(arch, d)
  fits = a_simd * arch.simd_per_cu * pair
  if waves > fits:
    out.append(f"a workgroup of {_count(waves, 'wave')} does not fit a {_place(pair)} of {arch.name}, which holds "
               f"{fits}, limited by {why}: it never begins")
  return out


def occupancy(arch: Arch, d: Dispatch) -> Occupancy:
  """What the chip holds of a dispatch; a workgroup at least, also of one that does not fit (`unfit`)."""
  x, y, z = d.block
  waves = -(-x * y * z // (32 if d.wave32 else 64))
  units, pair = d.compute_units or arch.cu_count, _pair(arch, d)
  simds, lds = arch.simd_per_cu * pair, arch.lds_per_cu * pair
  a_simd, why = _a_simd(arch, d)
  groups, where = a_simd * simds // waves, _place(pair)
  if d.lds_size and (fits := lds // _up(d.lds_size, arch.lds_granule)) < groups:
    groups, why = fits, f"LDS ({_up(d.lds_size, arch.lds_granule):,} bytes a workgroup of {lds:,} a {where})"
  groups = max(1, groups)
  total = groups * (units // pair)
  fits = d.scratch_waves // d.shader_engines // waves * d.shader_engines
  if d.scratch_size and fits < total:
    total, why = max(1, fits), f"scratch memory (for {d.scratch_waves:,} waves)"
    groups = max(1, -(-total * pair // units))
  return Occupancy(min(a_simd, -(-groups * waves // simds)), why, max(1, total), waves, units)
