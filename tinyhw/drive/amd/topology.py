"""The GPUs of a machine as the KFD describes them in sysfs (kernel: amdkfd/kfd_topology.c, uapi kfd_sysfs.h)."""
from __future__ import annotations

from dataclasses import dataclass, field

from tinyhw.autogen import kfd_sysfs
from tinyhw.core.errors import DeviceError
from tinyhw.core.port import Port

TOPOLOGY = "/sys/devices/virtual/kfd/kfd/topology"
_PAGE = 4096


def properties(text: bytes) -> dict[str, int]:
  """A sysfs properties file: one "name value" a line, decimal."""
  rows = (line.split() for line in text.decode().splitlines())
  return {row[0]: int(row[1]) for row in rows if len(row) == 2}


@dataclass(frozen=True)
class Link:
  """A connection between two nodes (io_links and p2p_links)."""
  node_from: int
  node_to: int
  type: int
  flags: int

  @property
  def peer_dma(self) -> bool: return not self.flags & kfd_sysfs.HSA_IOLINK_FLAGS_NO_PEER_TO_PEER_DMA


@dataclass(frozen=True)
class GpuNode:
  """One GPU. `p` holds the node's properties by the kernel's names."""
  node: int
  gpu_id: int
  name: str
  p: dict[str, int] = field(repr=False)
  vram_bytes: int = 0
  public_vram: bool = False  # the whole of its memory is visible to the host ("large BAR")
  links: tuple[Link, ...] = ()

  @property
  def target(self) -> str:
    """The processor's name as LLVM writes it: gfx_target_version is major * 10000 + minor * 100 + stepping."""
    version = self.p["gfx_target_version"]
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"

  @property
  def render_node(self) -> str: return f"/dev/dri/renderD{self.p['drm_render_minor']}"

  @property
  def compute_units(self) -> int: return self.p["simd_count"] // self.p["simd_per_cu"]

  @property
  def shader_engines(self) -> int: return self.p["array_count"] // self.p["simd_arrays_per_engine"]

  @property
  def xccs(self) -> int:
    """Graphics cores that work as this one GPU; kernels before 6.5 tell none."""
    return self.p.get("num_xcc", 1)

  @property
  def max_waves(self) -> int:
    """Waves that may have scratch at one time, on the whole chip (max_slots_scratch_cu)."""
    return self.compute_units * self.p["max_slots_scratch_cu"]

  @property
  def lds_bytes(self) -> int: return self.p["lds_size_in_kb"] * 1024


def _read_links(port: Port, base: str) -> list[Link]:
  links = []
  for kind in ("io_links", "p2p_links"):
    try: names = port.listdir(f"{base}/{kind}")
    except FileNotFoundError: continue  # kernels without CONFIG_HSA_AMD_P2P have no p2p_links
    for name in names:
      row = properties(port.read(f"{base}/{kind}/{name}/properties"))
      links.append(Link(row["node_from"], row["node_to"], row["type"], row["flags"]))
  return links


def _read_node(port: Port, number: int) -> GpuNode | None:
  base = f"{TOPOLOGY}/nodes/{number}"
  try: gpu_id = int(port.read(f"{base}/gpu_id") or b"0")
  except PermissionError: return None  # the device's cgroup keeps it from this process
  if gpu_id == 0: return None  # a CPU
  p = properties(port.read(f"{base}/properties"))
  banks = [properties(port.read(f"{base}/mem_banks/{name}/properties")) for name in port.listdir(f"{base}/mem_banks")]
  local = [
    b
    for b in banks
    if b["heap_type"] in (kfd_sysfs.HSA_MEM_HEAP_TYPE_FB_PUBLIC, kfd_sysfs.HSA_MEM_HEAP_TYPE_FB_PRIVATE)
  ]
  return GpuNode(
    node=number,
    gpu_id=gpu_id,
    name=port.read(f"{base}/name").decode().strip(),
    p=p,
    vram_bytes=sum(b["size_in_bytes"] for b in local),
    public_vram=bool(local) and all(b["heap_type"] == kfd_sysfs.HSA_MEM_HEAP_TYPE_FB_PUBLIC for b in local),
    links=tuple(_read_links(port, base)),
  )


def gpus(port: Port) -> list[GpuNode]:
  """All GPUs, in the order of their nodes. Empty when the machine has no KFD.

  The kernel changes generation_id when the topology changes; a read that meets a change is made again.
  """
  for _ in range(3):
    try:
      before = port.read(f"{TOPOLOGY}/generation_id")
      numbers = sorted(int(n) for n in port.listdir(f"{TOPOLOGY}/nodes"))
    except FileNotFoundError: return []
    found = [node for node in (_read_node(port, n) for n in numbers) if node is not None]
    if port.read(f"{TOPOLOGY}/generation_id") == before: return found
  raise DeviceError("the KFD topology keeps changing while it is read", where=TOPOLOGY, hint="try again")


@dataclass(frozen=True)
class SaveArea:
  """Sizes, in bytes, that a compute queue must bring for context save and restore, each XCC of it."""
  control_stack: int
  save_restore: int
  debug: int
  xccs: int = 1

  @property
  def total(self) -> int:
    """Size that the buffer's mapping must have, exactly (kfd_queue_acquire_buffers)."""
    return -(-(self.save_restore + self.debug) * self.xccs // _PAGE) * _PAGE


# Per compute unit and per wave: kfd_queue.c, kfd_queue_ctx_save_restore_size and the macros above
# it.
_SGPR_BYTES, _LDS_BYTES, _HWREG_BYTES = 0x4000, 0x10000, 0x1000
_VGPR_BYTES, _LARGE_VGPR_BYTES = 0x40000, 0x60000
_LARGE_VGPR_VERSIONS = (110000, 110001, 110501, 120000, 120001)
_CONTROL_STACK_PER_WAVE, _USER_HEADER, _WAVES_PER_CU = 12, 40, 32
# Before gfx10, of which MI300 alone is driven here.
_GFX9_VGPR_BYTES, _GFX9_CONTROL_STACK_PER_WAVE, _GFX9_WAVES_PER_CU, _GFX9_WAVES_PER_ENGINE = 0x80000, 8, 40, 512
_DEBUG_PER_WAVE, _DEBUG_ALIGN = 32, 64


def save_area(node: GpuNode) -> SaveArea:
  """What the kernel expects: cwsr_size and ctl_stack_size of the node where it tells them, else computed as it does."""
  units, old = node.compute_units // node.xccs, node.p["gfx_target_version"] < 100000
  waves = min(units * _GFX9_WAVES_PER_CU, node.shader_engines * _GFX9_WAVES_PER_ENGINE) if old else (
    units * _WAVES_PER_CU)
  debug = -(-waves * _DEBUG_PER_WAVE // _DEBUG_ALIGN) * _DEBUG_ALIGN
  if node.p.get("cwsr_size") and node.p.get("ctl_stack_size"):
    return SaveArea(node.p["ctl_stack_size"], node.p["cwsr_size"], debug, node.xccs)
  large = node.p["gfx_target_version"] in _LARGE_VGPR_VERSIONS
  vgpr = _GFX9_VGPR_BYTES if old else _LARGE_VGPR_BYTES if large else _VGPR_BYTES
  data = -(-units * (vgpr + _SGPR_BYTES + _LDS_BYTES + _HWREG_BYTES) // _PAGE) * _PAGE
  each = _GFX9_CONTROL_STACK_PER_WAVE if old else _CONTROL_STACK_PER_WAVE
  stack = -(-(_USER_HEADER + waves * each + 8) // _PAGE) * _PAGE
  return SaveArea(stack, stack + data, debug, node.xccs)
