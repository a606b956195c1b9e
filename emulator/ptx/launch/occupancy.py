"""How many blocks of a launch a multiprocessor holds at once, as far as PTX tells it.

PTX has as many registers as a function likes; ptxas decides how many a thread gets. At least those are needed that are
alive at once, so the count here is an upper bound. Limits are the generation's (`tinyhw.arch.nv`); registers are given
out by warps in units of 256 in each of a multiprocessor's four parts (cuda_occupancy.h of CUDA 13.0).
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tinyhw.arch.nv import NV_ARCHES, NvArch
from tinyhw.emulator.ptx.module.scope import STACK_LIMIT
from tinyhw.emulator.ptx.program import Code, touched
from tinyhw.isa.ptx.forms import SIZES

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.launch.grid import Dispatch

_UNIT: Final = 256  # registers of a warp
_PARTS: Final = 4  # of a multiprocessor
_DATACENTER: Final = range(100, 120)  # targets: sm_100, sm_101, sm_103, sm_110
_KIB: Final = 1024
STATIC: Final = 48 * _KIB  # bytes of shared memory that a kernel may declare


@dataclass(frozen=True)
class Occupancy:
  """`blocks` of `warps` warps each that a multiprocessor holds at most, `limit` in words what there is no more of;
  `alive` are the registers of 32 bits that a thread has at once, `most` the warps that a multiprocessor can have."""
  blocks: int
  warps: int
  most: int
  limit: str
  alive: int

  def __str__(self) -> str:
    each = "a block" if self.blocks == 1 else f"{self.blocks:,} blocks"
    return (f"at most {each} of {self.warps:,} warp{'s' if self.warps > 1 else ''} on a multiprocessor "
            f"({self.blocks * self.warps} of {self.most} warps), limited by {self.limit}; ptxas decides on registers")


def generation(sm: int) -> NvArch:
  """The first generation that runs code for a target; of sm_100's family, of which the table has one, that."""
  if sm in _DATACENTER: return NV_ARCHES["sm_100"]
  fits = [a for a in NV_ARCHES.values() if a.sm >= sm]
  return min(fits, key=lambda a: a.sm) if fits else max(NV_ARCHES.values(), key=lambda a: a.sm)


def unfit(d: Dispatch) -> list[str]:
  """What no card of the kernel's target could begin, in words: more shared memory than ptxas takes, or than a block
  has, more local memory than a thread has (CUDA C++ Programming Guide, "Technical Specifications per Compute
  Capability"; ptxas 13.0 says 0xc000). Registers are ptxas's to decide, which spills what does not fit."""
  arch, out = d.generation, list[str]()
  static, total = d.program.shared_size, d.program.shared_size + d.dynamic_shared
  if static > STATIC: out.append(f"{static:,} bytes of shared memory are declared; ptxas takes {STATIC:,}, and more by "
                                 "an extern array of the launch's size")
  elif total > arch.shared_per_block:
    out.append(f"{total:,} bytes of shared memory a block, which has {arch.shared_per_block:,} on {arch.name}")
  kernel = d.program.linked.kernel(d.program.entry_name)
  local = kernel.frame if kernel.stack is None else kernel.stack
  if local > STACK_LIMIT: out.append(f"{local:,} bytes of local memory a thread, which has {STACK_LIMIT:,}")
  return out


def occupancy(arch: NvArch, d: Dispatch) -> Occupancy:
  """What a multiprocessor holds of a launch; a block at least, since one that does not fit is refused elsewhere."""
  program = d.program
  warps = -(-d.block[0] * d.block[1] * d.block[2] // arch.warp_size)
  alive = max(alive_in(program.function(name)) for name in program.linked.reachable(program.entry_name))
  a_warp = max(_UNIT, -(-alive * arch.warp_size // _UNIT) * _UNIT)
  by_registers = arch.registers_per_sm // _PARTS // a_warp * _PARTS // warps
  shared = program.shared_size + d.dynamic_shared + arch.shared_reserved
  limits = [(arch.warps_per_sm // warps, f"the {arch.warps_per_sm} warps of a multiprocessor"),
            (arch.blocks_per_sm, f"the {arch.blocks_per_sm} blocks of a multiprocessor"),
            (by_registers, f"registers ({a_warp:,} a warp of {arch.registers_per_sm:,})"),
            (max(arch.shared_kib) * _KIB // shared, f"shared memory ({shared:,} bytes a block of "
                                                    f"{max(arch.shared_kib) * _KIB:,})")]
  blocks, why = min(limits, key=lambda row: row[0])
  return Occupancy(max(1, blocks), warps, arch.warps_per_sm, why, alive)


def alive_in(code: Code) -> int:
  """The most registers of 32 bits, without predicates, that are alive at once in a function."""
  weights = [0 if t == "pred" else -(-SIZES[t] // 4) for t in code.flat.types]

  def weight(bits: int) -> int:
    total = 0
    while bits:
      low = bits & -bits
      total += weights[low.bit_length() - 1]
      bits ^= low
    return total
  most = 0
  for start in code.cut.starts:
    live = 0
    for t in code.cut.successors[start]:
      for n in code.live(code.pc(t)): live |= 1 << n
    now = weight(live)
    for k in range(code.cut.ends[start] - 1, start - 1, -1):
      reads, writes = touched(code.flat.lines[k])
      gone = live & writes & ~reads
      most = max(most, now + weight(writes & ~live))
      now += weight(reads & ~live) - weight(gone)
      live = live & ~writes | reads
      most = max(most, now)
  return most
