"""Is there a device, and is what RM says of it plausible: questions only, nothing is put on the GPU."""
from __future__ import annotations

from typing import Final

from tinyhw.arch.nv import NV_ARCHES
from tinyhw.autogen import nv_rm, nv_rm_alloc, nv_rm_control
from tinyhw.bringup.bench import check, same
from tinyhw.bringup.nv.bench import NvBench
from tinyhw.bringup.nv.ladder import NV
from tinyhw.drive.nv.rm import CTL
from tinyhw.wire import rm

_RM: Final = "the structs of the driver's branch (CONTRIBUTING.md says how another enters), and the kernel's log"
_LEAST_BYTES: Final = 64 << 20


@NV.rung("device.node", why="Without /dev/nvidiactl there is no kernel driver, or this user may not have it.",
         seconds=2)
def node(b: NvBench) -> str:
  return f"{CTL} opens, file descriptor {b.rm.fd}"


@NV.rung("device.version", needs=("device.node",), seconds=2,
         why="Structs of another branch of the driver have other places for everything that follows.")
def version(b: NvBench) -> str:
  return f"driver {b.rm.version}, structs are those of {nv_rm.VERSION}"


@NV.rung("device.cards", needs=("device.version",), seconds=2, why="The driver has bound a card.")
def cards(b: NvBench) -> str:
  card = b.card
  ids = [c.gpu_id for c in b.rm.cards]
  check(len(set(ids)) == len(ids), f"cards share a gpu_id: {ids}", "one for each", "NV_ESC_CARD_INFO")
  return f"{len(ids)} card(s); number {b.index} is /dev/nvidia{card.minor}"


@NV.rung("device.client", needs=("device.version",), seconds=2,
         why="Every object of RM is below a client, which is this process's.")
def client(b: NvBench) -> str:
  first = b.rm.begin_client()
  second = b.rm.alloc(0, nv_rm_alloc.NV01_ROOT_CLIENT)
  check(first != second and bool(second), f"two clients have the handles {first:#x} and {second:#x}", "one each", _RM)
  free = nv_rm.NVOS00_PARAMETERS(hRoot=second, hObjectParent=second, hObjectOld=second)
  b.rm.call(free)
  b.rm.check("NV_ESC_RM_FREE of a client", int(free.status))
  return f"client {first:#x}"


@NV.rung("device.uvm", needs=("device.version",), seconds=2,
         why="UVM owns the page tables of the process; another module of the driver, which may not be loaded.")
def uvm(b: NvBench) -> str:
  return f"UVM is initialized, file descriptor {b.rm.uvm_fd}"


@NV.rung("device.open", needs=("device.cards", "device.client"), seconds=10,
         why="The card's own node joins the client's file; RM wakes the GPU here.")
def opened(b: NvBench) -> str:
  info = b.opens()
  return f"/dev/nvidia{b.card.minor}, device instance {info.deviceInstance}"


@NV.rung("device.target", needs=("device.open",), seconds=10,
         why="Device and sub-device are made; the generation says which classes, methods and QMDs there are.")
def target(b: NvBench) -> str:
  gpu = b.bare_gpu
  check(gpu.arch.name in NV_ARCHES, gpu.arch.name, f"one of {', '.join(NV_ARCHES)}", _RM)
  return f"{gpu.arch.name}: chip {gpu.arch.chip}, QMD {'.'.join(map(str, gpu.arch.qmd))}"


@NV.rung("device.identity", needs=("device.target",), seconds=2,
         why="UVM and RM find the card by its UUID: zeros are nobody's.")
def identity(b: NvBench) -> str:
  gpu = b.bare_gpu
  check(any(gpu.uuid) and len(set(gpu.uuid)) > 4, "the UUID is nearly all one byte", "16 bytes of its own",
        "NV2080_CTRL_CMD_GPU_GET_GID_INFO")
  check(bool(gpu.name.strip()), "the card has no name", "one", "NV2080_CTRL_CMD_GPU_GET_NAME_STRING")
  return gpu.name


@NV.rung("device.units", needs=("device.target",), seconds=2,
         why="Local memory and the number of blocks at a time are products of these numbers.")
def units(b: NvBench) -> str:
  gpu = b.bare_gpu
  look = "NV2080_CTRL_CMD_GR_GET_INFO"
  check(gpu.sms > 0, f"{gpu.sms} SMs", "at least one", look)
  check(0 < gpu.sms <= gpu.tpcs * gpu.arch.sms_per_tpc, f"{gpu.sms} SMs in {gpu.tpcs} TPCs",
        f"at most {gpu.arch.sms_per_tpc} in each", look)
  same(gpu.warps_per_sm, gpu.arch.warps_per_sm, f"warps an SM of {gpu.arch.name}", look)
  return f"{gpu.sms} SMs of {gpu.warps_per_sm} warps, layout for {gpu.tpcs} TPCs"


@NV.rung("device.classes", needs=("device.target",), seconds=2,
         why="Channels, copies and launches are objects of these classes: RM must offer them on this chip.")
def classes(b: NvBench) -> str:
  gpu, wanted = b.bare_gpu, (b.arch.channel_class, b.arch.compute_class, b.arch.copy_class, b.arch.usermode_class)
  missing = [rm.class_name(c) for c in wanted if c not in gpu.classes]
  check(not missing, f"RM does not offer {', '.join(missing)}", "the generation's classes",
        "NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2")
  return ", ".join(rm.class_name(c) for c in wanted)


@NV.rung("device.engines", needs=("device.target",), seconds=2, why="A graphics engine for kernels, and copy engines.")
def engines(b: NvBench) -> str:
  found, a = b.bare_gpu.engines, nv_rm_alloc
  first, last = a.NV2080_ENGINE_TYPE_COPY0, a.NV2080_ENGINE_TYPE_COPY19
  copies = [e - first for e in found if first <= e <= last]
  look = "NV2080_CTRL_CMD_GPU_GET_ENGINES_V2"
  check(a.NV2080_ENGINE_TYPE_GRAPHICS in found, f"engines are {found}", "NV2080_ENGINE_TYPE_GR0 among them", look)
  check(bool(copies), f"engines are {found}", "a copy engine among them", look)
  return f"graphics, copy engines {', '.join(map(str, copies))}"


@NV.rung("device.memory", needs=("device.target",), seconds=2,
         why="The size of video memory, and how much is free: who believes too much writes past the end.")
def memory(b: NvBench) -> str:
  gpu, c = b.bare_gpu, nv_rm_control
  free = b.free_vram()
  usable = b.rm.fb_info(gpu.subdevice, c.NV2080_CTRL_FB_INFO_INDEX_USABLE_RAM_SIZE) << 10
  look = "NV2080_CTRL_CMD_FB_GET_INFO_V2"
  check(gpu.vram_bytes >= _LEAST_BYTES, f"RAM_SIZE is {gpu.vram_bytes:#x} bytes", "the card's", look)
  check(0 < free <= usable <= gpu.vram_bytes,
        f"HEAP_FREE {free:#x}, USABLE_RAM_SIZE {usable:#x}, RAM_SIZE {gpu.vram_bytes:#x}", "in this order", look)
  return f"{free >> 20:,} of {gpu.vram_bytes >> 20:,} MiB are free"


@NV.rung("device.clock", needs=("device.target",), seconds=5,
         why="PTIMER counts nanoseconds; semaphores and launches are timed by it.")
def clock(b: NvBench) -> str:
  before, told = b.time_ns(), b.port.now_ns()
  b.wait_a_little(0.02)
  after, now = b.time_ns(), b.port.now_ns()
  check(after > before, f"PTIMER moved by {after - before} ns", "forward", "NV2080_CTRL_CMD_TIMER_GET_TIME")
  spent = now - told
  check(abs(after - before - spent) <= max(spent // 10, 1000), f"PTIMER moved by {after - before:,} ns",
        f"{spent:,} ns, as the host's clock", "NV2080_CTRL_CMD_TIMER_GET_TIME: its numerator and denominator")
  return f"{after - before:,} ns, the host counts {spent:,}"
