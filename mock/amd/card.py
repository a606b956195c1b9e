"""What a card is: the numbers that a kernel driver reads from its chip, board and firmware, one frozen row a card.

Sources: Linux 6.12 `amdkfd/kfd_crat.c` and `kfd_topology.c` say which numbers there are and how the others derive from
them, `kfd_queue.c` the sizes of a queue's save area, `kfd_device.c` and `amdgpu_doorbell.h` the queues and doorbells.
The values of gfx1100 are those of a Radeon RX 7900 XTX (Navi 31, IP discovery GC 11.0.0, SDMA 6.0.0). The others are an
RX 7800 XT (Navi 32, GC 11.0.3), an RX 7600 (Navi 33, GC 11.0.2), an RX 9060 XT (Navi 44, GC 12.0.0) and an RX 9070 XT
(Navi 48, GC 12.0.1): AMD's product pages for units, memory, caches and clocks, Linux 6.12 `kfd_queue.c`, `kfd_device.c`
and `soc24.c` for sizes, versions and doorbells, the public PCI ID list for devices. gfx12 has no GL1 that operations
reach (PAL, gfx12CmdUtil.cpp). gfx1103, gfx1150 and gfx1151
are a Radeon 780M (Phoenix, GC 11.0.1), an 890M (Strix Point, GC 11.5.0) and an 8060S (Strix Halo, GC 11.5.1): APUs,
whose video memory is a part of the system's that the firmware keeps for them (512 MiB unless its user says otherwise).
gfx942 is an MI300X in SPX mode: its eight XCCs are one GPU (`aqua_vanjaram.c` has its
doorbells, `kfd_crat.c` its caches' kinds, the CDNA3 white paper their sizes). gfx950 is an MI350X in SPX mode
(CDNA 4 white paper; torvalds/linux 1a2f09ae11b4, kfd_queue.c: its save area has its LDS). gfx90a is an MI210. Linux
6.12 has its PCI id (`amdgpu_drv.c`), its versions of blocks and five copy engines, two of them PCIe's
(`amdgpu_discovery.c`, aldebaran; kfd_get_num_sdma_engines), its caches (`kfd_crat.c`, aldebaran_cache_info, whose L2
counts the units of an array), VGPRs of a unit (`kfd_queue.c`), doorbells (`amdgpu_doorbell.h`, VEGA20) and external
revision (`soc15.c`); the CDNA 2 white paper its engines and units (8 of 14, 104 of them on), AMD's product page memory
and clocks. With its MEC firmware of 68 the driver debugs (`kfd_topology.c` asks for 51). Versions of firmware and of
NBIO are examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tinyhw.arch import lacking
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.lazy import cached_property

PAGE: Final = 4096


def page_align(size: int) -> int:
  return -(-size // PAGE) * PAGE


@dataclass(frozen=True)
class Cache:
  """One kind of cache: `size` in KiB, shared by `compute_units`; `kind` is "data" or "instruction"."""

  level: int
  kind: str
  size: int
  line: int
  compute_units: int


@dataclass(frozen=True)
class Card:
  """A card as its driver finds it. Sizes in bytes unless the name says otherwise, clocks in MHz, links in MB/s."""

  name: str
  gfx_target_version: int
  gc_version: tuple[int, int, int]
  sdma_version: tuple[int, int, int]
  nbio_version: tuple[int, int, int]
  marketing_name: str
  device_id: int
  revision_id: int
  asic_revision: int
  shader_engines: int
  arrays_per_engine: int
  compute_units_per_array: int
  simds_per_compute_unit: int
  max_waves_per_simd: int
  wave_size: int
  lds_kib: int
  scratch_slots_per_compute_unit: int
  vgpr_bytes_per_compute_unit: int
  control_stack_bytes_per_wave: int
  vram_size: int
  vram_width: int
  memory_clock: int
  engine_clock: int
  counter_clock_khz: int
  sdma_engines: int
  sdma_queues_per_engine: int
  sdma_queues_reserved: int
  sdma_doorbells: tuple[int, ...]
  non_cp_doorbells: tuple[int, int]
  cp_queues: int
  mec_firmware: int
  sdma_firmware: int
  eop_buffer_size: int
  caches: tuple[Cache, ...]
  link_bandwidth: tuple[int, int]
  vendor_id: int = 0x1002
  xccs: int = 1  # graphics cores that work as one GPU; engines, arrays and units are those of all
  apu: bool = False  # AMD_IS_APU: what clients get as video memory is the system's (amdgpu_amdkfd_gpuvm.c)
  external_revision: int = 1  # external_rev_id of soc15.c, soc21.c and soc24.c, with `asic_revision`
  units_off: int = 0  # compute units of the arrays that are fused off
  sdma_xgmi_engines: int = 0
  sdma_doorbell_step: int = 1  # a copy engine's doorbells begin at a multiple of it


  @property
  def arrays(self) -> int:
    return self.shader_engines * self.arrays_per_engine

  @property
  def compute_units(self) -> int:
    return self.arrays * self.compute_units_per_array - self.units_off

  @cached_property
  def simds(self) -> int:
    return self.compute_units * self.simds_per_compute_unit

  @property
  def waves(self) -> int:
    """Waves of an XCC that a context save must hold (kfd_queue_ctx_save_restore_size: before Navi 10, and since)."""
    units = self.compute_units // self.xccs
    return min(units * 40, self.shader_engines * 512) if self.gc_version < (10, 0, 0) else units * 32

  @property
  def control_stack_size(self) -> int:
    """What CREATE_QUEUE demands as ctl_stack_size; 40 is the save area's header."""
    return page_align(40 + self.waves * self.control_stack_bytes_per_wave + 8)

  @property
  def save_area_size(self) -> int:
    """The least ctx_save_restore_size (cwsr_size), that of an XCC: control stack and, a compute unit, VGPRs, SGPRs, LDS
    and hardware registers."""
    each = self.vgpr_bytes_per_compute_unit + 0x4000 + (self.lds_kib << 10) + 0x1000
    return self.control_stack_size + page_align(self.compute_units // self.xccs * each)

  @property
  def debug_memory_size(self) -> int:
    """What the debugger adds behind an XCC's save area: 32 bytes a wave, 64-byte aligned."""
    return -(-self.waves * 32 // 64) * 64

  @property
  def traps_off(self) -> bool:
    """Whether the driver maps queues with traps off (kfd_dbg_has_cwsr_workaround), except while one is debugged."""
    return (11, 0, 0) <= self.gc_version <= (11, 0, 3)

  @property
  def doorbell_slice(self) -> int:
    """Bytes of doorbells that a process gets on this card: 1024 of 8 bytes."""
    return 1024 * 8


GFX1100: Final = Card(
  name="gfx1100",
  gfx_target_version=110000,
  gc_version=(11, 0, 0),
  sdma_version=(6, 0, 0),
  nbio_version=(4, 3, 0),
  marketing_name="AMD Radeon RX 7900 XTX",
  device_id=0x744C,
  revision_id=0xC8,
  asic_revision=0,
  shader_engines=6,
  arrays_per_engine=2,
  compute_units_per_array=8,
  simds_per_compute_unit=2,
  max_waves_per_simd=16,
  wave_size=32,
  lds_kib=64,
  scratch_slots_per_compute_unit=32,
  vgpr_bytes_per_compute_unit=0x60000,
  control_stack_bytes_per_wave=12,
  vram_size=24 << 30,
  vram_width=384,
  memory_clock=1249,
  engine_clock=2304,
  counter_clock_khz=100_000,
  sdma_engines=2,
  sdma_queues_per_engine=8,
  sdma_queues_reserved=2,
  sdma_doorbells=(0x100, 0x10A),
  non_cp_doorbells=(0x100, 0x190),
  cp_queues=8,
  mec_firmware=550,
  sdma_firmware=19,
  eop_buffer_size=4096,
  caches=(
    Cache(1, "data", 32, 128, 1),
    Cache(1, "instruction", 32, 128, 2),
    Cache(1, "data", 16, 64, 2),
    Cache(1, "data", 256, 128, 8),
    Cache(2, "data", 6144, 128, 96),
    Cache(3, "data", 98304, 64, 96),
  ),
  link_bandwidth=(2500, 32000),
)


def _caches(units: int, array: int | None, l2: int, l3: int) -> tuple[Cache, ...]:
  """Of so many compute units; `array`: those of a shader array, which share a GL1. L2 and L3 in KiB, 0 for no L3."""
  return (Cache(1, "data", 32, 128, 1), Cache(1, "instruction", 32, 128, 2), Cache(1, "data", 16, 64, 2),
          *(() if array is None else (Cache(1, "data", 256, 128, array),)), Cache(2, "data", l2, 128, units),
          *((Cache(3, "data", l3, 64, units),) if l3 else ()))


GFX1101: Final = replace(
  GFX1100, name="gfx1101", gfx_target_version=110001, gc_version=(11, 0, 3), sdma_version=(6, 0, 3),
  marketing_name="AMD Radeon RX 7800 XT", device_id=0x747E, external_revision=0x20, shader_engines=3,
  compute_units_per_array=10, vram_size=16 << 30, vram_width=256, memory_clock=1219, engine_clock=2430,
  caches=_caches(60, 10, 4096, 65536))
GFX1102: Final = replace(
  GFX1100, name="gfx1102", gfx_target_version=110002, gc_version=(11, 0, 2), sdma_version=(6, 0, 2),
  marketing_name="AMD Radeon RX 7600", device_id=0x7480, revision_id=0xCF, external_revision=0x10, shader_engines=2,
  vgpr_bytes_per_compute_unit=0x40000, vram_size=8 << 30, vram_width=128, memory_clock=1125, engine_clock=2655,
  caches=_caches(32, 8, 2048, 32768))
GFX1103: Final = replace(
  GFX1102, name="gfx1103", gfx_target_version=110003, gc_version=(11, 0, 1), sdma_version=(6, 0, 1),
  nbio_version=(7, 7, 0), marketing_name="AMD Radeon 780M", device_id=0x15BF, revision_id=0xC4, external_revision=1,
  apu=True, shader_engines=1, compute_units_per_array=6, vram_size=512 << 20, vram_width=128, memory_clock=2800,
  engine_clock=2700, sdma_engines=1, sdma_doorbells=(0x100,), caches=_caches(12, 6, 2048, 0))
GFX1150: Final = replace(
  GFX1103, name="gfx1150", gfx_target_version=110500, gc_version=(11, 5, 0), sdma_version=(6, 1, 0),
  nbio_version=(7, 11, 0), marketing_name="AMD Radeon 890M", device_id=0x150E, revision_id=0xC1,
  compute_units_per_array=8, engine_clock=2900, caches=_caches(16, 8, 2048, 0))
GFX1151: Final = replace(
  GFX1150, name="gfx1151", gfx_target_version=110501, gc_version=(11, 5, 1), sdma_version=(6, 1, 1),
  nbio_version=(7, 11, 1), marketing_name="AMD Radeon 8060S", device_id=0x1586, external_revision=0xC1,
  shader_engines=2, compute_units_per_array=10, vgpr_bytes_per_compute_unit=0x60000, vram_width=256, memory_clock=1000,
  caches=_caches(40, 10, 2048, 32768))
GFX1201: Final = replace(
  GFX1100, name="gfx1201", gfx_target_version=120001, gc_version=(12, 0, 1), sdma_version=(7, 0, 1),
  nbio_version=(6, 3, 1), marketing_name="AMD Radeon RX 9070 XT", device_id=0x7550, revision_id=0xC0,
  external_revision=0x50, shader_engines=4, vram_size=16 << 30, vram_width=256, memory_clock=1258,
  engine_clock=2970, mec_firmware=2110, sdma_firmware=2400, caches=_caches(64, None, 8192, 65536))
GFX1200: Final = replace(
  GFX1201, name="gfx1200", gfx_target_version=120000, gc_version=(12, 0, 0), sdma_version=(7, 0, 0),
  marketing_name="AMD Radeon RX 9060 XT", device_id=0x7590, external_revision=0x40, shader_engines=2,
  vram_width=128, engine_clock=3130, caches=_caches(32, None, 4096, 32768))

GFX942: Final = Card(
  name="gfx942",
  gfx_target_version=90402,
  gc_version=(9, 4, 3),
  sdma_version=(4, 4, 2),
  nbio_version=(7, 9, 0),
  marketing_name="AMD Instinct MI300X",
  device_id=0x74A1,
  revision_id=0,
  asic_revision=1,
  shader_engines=32,
  arrays_per_engine=1,
  compute_units_per_array=10,
  simds_per_compute_unit=4,
  max_waves_per_simd=8,
  wave_size=64,
  lds_kib=64,
  scratch_slots_per_compute_unit=32,
  vgpr_bytes_per_compute_unit=0x80000,
  control_stack_bytes_per_wave=8,
  vram_size=192 << 30,
  vram_width=8192,
  memory_clock=1300,
  engine_clock=2100,
  counter_clock_khz=100_000,
  sdma_engines=2,
  sdma_queues_per_engine=8,
  sdma_queues_reserved=0,
  sdma_doorbells=tuple(0x100 + 10 * n for n in range(16)),
  non_cp_doorbells=(0x100, 0x1E8),
  cp_queues=24,
  mec_firmware=161,
  sdma_firmware=19,
  eop_buffer_size=4096,
  caches=(
    Cache(1, "data", 32, 128, 1),
    Cache(1, "instruction", 64, 128, 2),
    Cache(1, "data", 16, 64, 2),
    Cache(2, "data", 4096, 128, 38),
    Cache(3, "data", 262144, 64, 304),
  ),
  link_bandwidth=(2500, 64000),
  xccs=8,
  external_revision=0x46,
  units_off=16,
  sdma_xgmi_engines=14,
  sdma_doorbell_step=4,
)

GFX950: Final = replace(
  GFX942, name="gfx950", gfx_target_version=90500, gc_version=(9, 5, 0), sdma_version=(4, 4, 4),
  marketing_name="AMD Instinct MI350X", device_id=0x75A0, external_revision=0x50, compute_units_per_array=9,
  units_off=32, lds_kib=160, vram_size=288 << 30, memory_clock=2000, engine_clock=2200, mec_firmware=32,
  caches=(*GFX942.caches[:3], Cache(2, "data", 4096, 128, 32), Cache(3, "data", 262144, 64, 256)))

# A GCD of CDNA2: an MI210 is one, an MI250 two, which are two GPUs.
GFX90A: Final = replace(
  GFX942, name="gfx90a", gfx_target_version=90010, gc_version=(9, 4, 2), sdma_version=(4, 4, 0),
  nbio_version=(7, 4, 4), marketing_name="AMD Instinct MI210", device_id=0x740F, revision_id=0x02, asic_revision=1,
  external_revision=0x3D, shader_engines=8, compute_units_per_array=14, units_off=8, xccs=1, vram_size=64 << 30,
  vram_width=4096, memory_clock=1600, engine_clock=1700, mec_firmware=68, sdma_firmware=8, sdma_xgmi_engines=3,
  sdma_doorbells=tuple(0x100 + 10 * n for n in range(8)), sdma_doorbell_step=1, non_cp_doorbells=(0x100, 0x18F),
  caches=(Cache(1, "data", 16, 64, 1), Cache(1, "instruction", 32, 64, 2), Cache(1, "data", 16, 64, 2),
          Cache(2, "data", 8192, 128, 104)))

CARDS: Final[dict[str, Card]] = {c.name: c for c in (
  GFX1100, GFX1101, GFX1102, GFX1103, GFX1150, GFX1151, GFX1200, GFX1201, GFX90A, GFX942, GFX950)}


def _part(card: Card, count: int) -> Card:
  """One of `count` equal parts of an MI300 or MI350: its XCCs, memory and copy engines are shared out (aqua_vanjaram.c;
  kfd_device.c, kfd_get_num_sdma_engines, which takes the first two of a part's engines for PCIe)."""
  l1, code, scalar, l2, shared = card.caches
  units = (card.arrays * card.compute_units_per_array - card.units_off) // count
  return replace(card, xccs=card.xccs // count, shader_engines=card.shader_engines // count,
                 units_off=card.units_off // count, vram_size=card.vram_size // count,
                 sdma_xgmi_engines=16 // count - card.sdma_engines, caches=(
                   l1, code, scalar, l2, replace(shared, size=shared.size // count, compute_units=units)))


# The modes in which an MI300X or an MI350X can stand: one GPU, two, or one for each XCC.
PARTITIONED: Final[dict[str, tuple[Card, ...]]] = {
  "gfx942:spx": (GFX942,), "gfx942:dpx": (_part(GFX942, 2),) * 2, "gfx942:cpx": (_part(GFX942, 8),) * 8,
  "gfx950:spx": (GFX950,), "gfx950:dpx": (_part(GFX950, 2),) * 2, "gfx950:cpx": (_part(GFX950, 8),) * 8}
NAMES: Final = (*CARDS, *PARTITIONED)


def cards_named(names: str | Sequence[str]) -> tuple[Card, ...]:
  """The cards of a machine from "gfx1100", "gfx1100,gfx1100", "1" (one of the default) or a sequence of names. A
  mode's name ("gfx942:cpx") stands for all of its GPUs."""
  wanted = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
  wanted = [GFX1100.name if n == "1" else n for n in wanted if n]
  if not wanted:
    raise InvalidArgument("no card named", where="mock machine", hint="name cards, for example 'gfx1100,gfx1100'")
  for n in wanted:
    if n not in NAMES: raise lacking(n, NAMES, "card", "MOCKGPU")
  return tuple(card for n in wanted for card in (PARTITIONED.get(n) or (CARDS[n],)))
