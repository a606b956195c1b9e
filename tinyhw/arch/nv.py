"""NVIDIA's generations: the classes that their chips take, where launches put things, and what blocks share.

Sources: classes by chip, open-gpu-kernel-modules 580.142 (`autogen/nv_rm_chips.py`); sizes, the CUDA C++ Programming
Guide 13.0, tables "Technical Specifications per Compute Capability" and "Shared Memory Capacity"; QMD versions,
open-gpu-doc (each compute class's newest one is that class's own); constant bank 0, as ptxas 13.0's code for
each of them reads it (`nvdisasm`).
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tinyhw.core.errors import InvalidArgument


@dataclass(frozen=True)
class ClusterBank:
  """What constant bank 0 tells of a launch in clusters, from `at` on, offsets in bytes behind it: a cluster's blocks
  each way, what a block's index is multiplied by to have its cluster's (f32, each way), clusters each way, the blocks
  of a cluster. `copies` of it lie `apart` bytes below each other: code picks one by the size of its cluster.
  """
  at: int
  nctaid: int
  factors: int
  nclusterid: int
  nctarank: int
  copies: int = 1
  apart: int = 0


@dataclass(frozen=True)
class Bank0:
  """Constant bank 0 of a launch: offsets in bytes of what the driver puts there, before the kernel's parameters.

  `ntid` and `nctaid` are three words each, the windows are addresses of 64 bits, `stack` is one word: where a thread's
  stack begins in its local memory. `params` is where parameters begin.
  """
  ntid: int
  nctaid: int
  shared_window: int
  local_window: int
  stack: int
  params: int
  clusters: ClusterBank | None = None


@dataclass(frozen=True)
class NvArch:
  """A generation as programs see it: `sm_90`. Sizes are in bytes unless a name says otherwise.

  `chip` is the first of RM's chips with it. `shared_kib` are the sizes that an SM's shared memory can have, in KiB;
  `shared_reserved` bytes at the start of a block's are kept by the system, and symbols of sm_90 and newer count them.
  `qmd` is the version of QMDs that the driver makes; `qmd_alone`: a card was seen to execute nothing of the class's
  others.
  """
  name: str
  chip: str
  compute_class: int
  copy_class: int
  channel_class: int
  usermode_class: int
  qmd: tuple[int, int]
  bank0: Bank0
  shared_kib: tuple[int, ...]
  shared_per_block: int
  warps_per_sm: int
  blocks_per_sm: int
  shared_reserved: int = 1024
  shared_symbols_reserved: bool = False
  sms_per_tpc: int = 2
  warp_size: int = 32
  block_limit: int = 1024
  registers_per_sm: int = 65536
  card: str = ""
  qmd_alone: bool = False
  told_as: int = 0  # what RM says for its SM version (NV2080_CTRL_GR_INFO_INDEX_SM_VERSION) where that is another one

  @property
  def sm(self) -> int:
    """90."""
    return int(self.name.removeprefix("sm_"))

  @property
  def version(self) -> tuple[int, int]:
    """(major, minor) of the compute capability."""
    return divmod(self.sm, 10)


# What ptxas for sm_80 to sm_90 reads; the parameters of sm_90 begin later.
_VOLTA: Final = Bank0(ntid=0x0, nctaid=0xC, shared_window=0x18, local_window=0x20, stack=0x28, params=0x160)
_HOPPER: Final = Bank0(ntid=0x0, nctaid=0xC, shared_window=0x18, local_window=0x20, stack=0x28, params=0x210,
                       clusters=ClusterBank(0x144, nctaid=0, factors=0xC, nclusterid=0x18, nctarank=0x44))
_BLACKWELL: Final = Bank0(ntid=0x360, nctaid=0x370, shared_window=0x2F0, local_window=0x2F8, stack=0x37C, params=0x380,
                          clusters=ClusterBank(0x2A0, nctaid=0, factors=0x10, nclusterid=0x20, nctarank=0x2C,
                                               copies=5, apart=0xA0))
_KIB: Final = 1024
_SMALL: Final = (0, 8, 16, 32, 64, 100)
_LARGE: Final = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)

NV_ARCHES: Final[dict[str, NvArch]] = {a.name: a for a in (
  NvArch("sm_80", "GA100", 0xC6C0, 0xC6B5, 0xC56F, 0xC561, (3, 0), _VOLTA, _LARGE[:8], 163 * _KIB, 64, 32,
         card="A100"),
  NvArch("sm_86", "GA102", 0xC7C0, 0xC7B5, 0xC56F, 0xC561, (3, 0), _VOLTA, _SMALL, 99 * _KIB, 48, 16,
         card="GeForce RTX 3090"),
  NvArch("sm_89", "AD102", 0xC9C0, 0xC7B5, 0xC56F, 0xC561, (3, 0), _VOLTA, _SMALL, 99 * _KIB, 48, 24,
         card="GeForce RTX 4090"),
  NvArch("sm_90", "GH100", 0xCBC0, 0xC8B5, 0xC86F, 0xC661, (4, 0), _HOPPER, _LARGE, 227 * _KIB, 64, 32,
         shared_symbols_reserved=True, card="H200", qmd_alone=True),
  NvArch("sm_100", "GB100", 0xCDC0, 0xC9B5, 0xC96F, 0xC661, (5, 0), _BLACKWELL, _LARGE, 227 * _KIB, 64, 32,
         shared_symbols_reserved=True, card="B200"),
  NvArch("sm_120", "GB202", 0xCEC0, 0xCAB5, 0xCA6F, 0xC761, (5, 0), _BLACKWELL, _SMALL, 99 * _KIB, 48, 24,
         shared_symbols_reserved=True, card="GeForce RTX 5090", told_as=0xA04),
)}
"""By name. Chips of a family that only differ in size are the same generation."""


def nv_arch(name: str) -> NvArch:
  """The generation with this name. Raises InvalidArgument that lists the known ones."""
  try: return NV_ARCHES[name]
  except KeyError: raise InvalidArgument(f"unknown GPU {name!r}", hint=f"known: {', '.join(NV_ARCHES)}") from None
