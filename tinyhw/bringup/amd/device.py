"""Is there a device, and is what its kernel driver says of it plausible: nothing is put on the GPU here."""
from __future__ import annotations

from tinyhw.arch import ARCHES
from tinyhw.autogen import amdgpu_drm, kfd
from tinyhw.bringup.amd.bench import KFD, AmdBench
from tinyhw.bringup.amd.ladder import AMD
from tinyhw.bringup.bench import check, same
from tinyhw.drive.amd.topology import TOPOLOGY, gpus

_TOPOLOGY = "kfd_topology.c, and the files of " + TOPOLOGY
_CLOCKS_APART = 2_000_000_000  # ns between two looks at clocks, at most
_LEAST_KHZ, _MOST_KHZ = 1_000, 1_000_000


@AMD.rung("device.node", why="Without /dev/kfd there is no compute driver, or this user may not have it.", seconds=2)
def node(b: AmdBench) -> str:
  return f"{KFD} opens, file descriptor {b.fd}"


@AMD.rung("device.version", needs=("device.node",), seconds=2,
          why="Structs of another major version have other places for everything that follows.")
def version(b: AmdBench) -> str:
  major, minor = b.version
  same(major, kfd.KFD_IOCTL_MAJOR_VERSION, "the major version of GET_VERSION", "kfd_ioctl.h, KFD_IOCTL_MAJOR_VERSION")
  return f"KFD {major}.{minor}, declared here are {kfd.KFD_IOCTL_MAJOR_VERSION}.{kfd.KFD_IOCTL_MINOR_VERSION}"


@AMD.rung("device.topology", needs=("device.version",), seconds=5,
          why="All that comes asks the topology how large things are.")
def topology(b: AmdBench) -> str:
  found = b.node
  again = gpus(b.port)
  check(again == b.nodes, "two reads of the topology differ, and generation_id does not", "the same twice", _TOPOLOGY)
  ids = [n.gpu_id for n in b.nodes]
  check(len(set(ids)) == len(ids), f"GPUs share a gpu_id: {ids}", "one for each", _TOPOLOGY)
  return f"{len(b.nodes)} GPU(s); number {b.index} is node {found.node}, {found.name}"


@AMD.rung("device.units", needs=("device.topology",), seconds=2,
          why="Sizes of save areas and scratch are products of these numbers: one that is wrong hangs much later.")
def units(b: AmdBench) -> str:
  p, wanted = b.node.p, ("simd_count", "simd_per_cu", "array_count", "simd_arrays_per_engine", "max_waves_per_simd",
                         "max_slots_scratch_cu", "lds_size_in_kb", "wave_front_size")
  for name in wanted:
    check(p.get(name, 0) > 0, f"{name} is {p.get(name, 'missing')}", "at least 1", _TOPOLOGY)
  for whole, part in (("simd_count", "simd_per_cu"), ("array_count", "simd_arrays_per_engine")):
    check(p[whole] % p[part] == 0, f"{whole} {p[whole]} is no multiple of {part} {p[part]}", "whole units", _TOPOLOGY)
  check(b.node.compute_units % b.node.shader_engines == 0 or b.node.compute_units > b.node.shader_engines,
        f"{b.node.compute_units} compute units in {b.node.shader_engines} shader engines", "at least one each",
        _TOPOLOGY)
  check(p["wave_front_size"] in (32, 64), f"wave_front_size {p['wave_front_size']}", "32 or 64", _TOPOLOGY)
  return (f"{b.node.compute_units} compute units of {p['simd_per_cu']} SIMDs in {b.node.shader_engines} engines, "
          f"waves of {p['wave_front_size']}, {p['lds_size_in_kb']} KiB LDS")


@AMD.rung("device.target", needs=("device.units",), seconds=2,
          why="The generation says which packets, registers and instructions there are.")
def target(b: AmdBench) -> str:
  found = b.node.target
  check(found in ARCHES, f"gfx_target_version {b.node.p['gfx_target_version']} is {found}",
        f"one of {', '.join(ARCHES)}",
        "amdgpu_amdkfd_device.c, and an arch/ file for a new generation (CONTRIBUTING.md)")
  arch = b.arch
  size = b.node.p["wave_front_size"]
  check(size in arch.wave_sizes, f"wave_front_size {size}", f"one of {arch.wave_sizes} on {found}", _TOPOLOGY)
  return f"{found}: packets {arch.pm4}, copy engine {arch.sdma}, registers {arch.registers}"


@AMD.rung("device.render", needs=("device.topology",), seconds=2,
          why="The address space of a process is that of its render node's file.")
def render(b: AmdBench) -> str:
  working = amdgpu_drm.drm_amdgpu_info_device()
  b.info(amdgpu_drm.AMDGPU_INFO_DEV_INFO, working)
  told = b.node.p.get("device_id", working.device_id)
  same(int(working.device_id), told, "device_id of DRM's AMDGPU_INFO_DEV_INFO",
       "drm_render_minor of the topology: is it another card's render node?")
  return f"render node opens; device_id {working.device_id:#06x}, revision {working.pci_rev:#04x}"


@AMD.rung("device.banks", needs=("device.render",), seconds=2,
          why="Two interfaces tell the size of video memory; who believes the larger one writes past its end.")
def banks(b: AmdBench) -> str:
  size = b.node.vram_bytes
  heaps = b.info(amdgpu_drm.AMDGPU_INFO_MEMORY, amdgpu_drm.drm_amdgpu_memory_info())
  told = int((heaps.gtt if b.shared else heaps.vram).total_heap_size)
  check(size > 0, "the topology's banks have no video memory", "its size", _TOPOLOGY)
  check(abs(size - told) <= size // 16, f"banks of the topology sum to {size:#x} bytes, DRM tells {told:#x}",
        "the same, but for what the driver keeps", "mem_banks of the node, and AMDGPU_INFO_MEMORY")
  return f"{size >> 20:,} MiB, {'all' if b.node.public_vram else 'not'} visible to the host"


@AMD.rung("device.counter", needs=("device.render",), seconds=2,
          why="Times are differences of this counter divided by this frequency.")
def counter(b: AmdBench) -> str:
  khz = b.counter_khz
  check(_LEAST_KHZ <= khz <= _MOST_KHZ, f"gpu_counter_freq is {khz} kHz", f"{_LEAST_KHZ:,} to {_MOST_KHZ:,} kHz",
        "amdgpu_asic_get_xclk")
  return f"{khz:,} kHz"


@AMD.rung("device.clock", needs=("device.counter", "device.version"), seconds=5,
          why="A counter that stands still, or runs at another rate, makes every measurement a lie.")
def clock(b: AmdBench) -> str:
  first = b.clocks()
  begin, told = int(first.gpu_clock_counter), int(first.system_clock_counter)
  b.wait_a_little(0.02)
  last = b.clocks()
  ticks, ns = int(last.gpu_clock_counter) - begin, int(last.system_clock_counter) - told
  check(ns > 0 and ns < _CLOCKS_APART, f"the system's clock moved by {ns} ns", "a little", "GET_CLOCK_COUNTERS")
  check(ticks > 0, f"the GPU's counter moved by {ticks} in {ns / 1e6:.1f} ms", "forward",
        "get_gpu_clock_counter: is the counter latched, and its clock on?")
  khz = ticks * 1_000_000 / ns
  check(abs(ticks - ns * b.counter_khz / 1e6) <= ticks / 20 + 2, f"the counter runs at {khz:,.0f} kHz",
        f"{b.counter_khz:,} kHz, as DRM tells", "gpu_counter_freq, and which clock the counter counts")
  return f"{ticks:,} ticks in {ns / 1e6:.2f} ms: {khz:,.0f} kHz"


