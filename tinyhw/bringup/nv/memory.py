"""The address space and the memory in it, as RM, UVM and the host see it; no engine runs yet."""
from __future__ import annotations

import random
from typing import Final

from tinyhw.autogen import nv_uvm
from tinyhw.bringup.bench import check, first_wrong, same
from tinyhw.bringup.nv.bench import PAGE, Aperture, NvBench
from tinyhw.bringup.nv.ladder import NV
from tinyhw.bringup.rung import Broken
from tinyhw.core.errors import DeviceError
from tinyhw.drive.nv.rm import BIG_PAGE

_UVM: Final = "uvm_map_external.c"
_PAGES: Final = 16
_BUFFERS: Final = 12


@NV.rung("memory.space", needs=("device.uvm", "device.classes"), seconds=5,
         why="An address space of RM whose page tables UVM owns, and the doorbell's page.")
def space(b: NvBench) -> str:
  gpu = b.gpu
  b.rm.uvm(nv_uvm.UVM_REGISTER_GPU, nv_uvm.UVM_REGISTER_GPU_PARAMS(
    gpu_uuid=gpu.identity(), rmCtrlFd=b.rm.fd, hClient=b.rm.root))  # once more is no error
  try: b.rm.uvm(nv_uvm.UVM_REGISTER_GPU_VASPACE, nv_uvm.UVM_REGISTER_GPU_VASPACE_PARAMS(
    gpuUuid=gpu.identity(), rmCtrlFd=b.rm.fd, hClient=b.rm.root, hVaSpace=gpu.va_space))
  except DeviceError: pass  # as it should be
  else: raise Broken("an address space is registered twice", "a status that says so", "uvm_va_space.c")
  return f"FERMI_VASPACE_A {gpu.va_space:#x}, registered with UVM once"


@NV.rung("memory.page", needs=("memory.space",), seconds=5,
         why="One page of system memory: allocated, mapped into the process, entered into the GPU's page tables.")
def page(b: NvBench) -> str:
  made = b.take(PAGE)
  try:
    check(made.address + made.size <= 1 << 40, f"{made.address:#x}", "an address of 40 bits", _UVM)
    return f"handle {made.handle:#x} at {made.address:#x}"
  finally: b.free(made)


@NV.rung("memory.host", needs=("memory.page",), seconds=5,
         why="What the processor wrote it reads again, in each page its own: mappings that alias show here.")
def host(b: NvBench) -> str:
  made = b.take(_PAGES * PAGE)
  words = made.bytes().cast("I")
  for i in range(len(words)): words[i] = (0x9E37_79B1 * (i + 1)) & 0xFFFFFFFF
  step = PAGE // 4
  for at in range(0, len(words), step):
    first_wrong(words[at:at + step].tolist(), [(0x9E37_79B1 * (i + 1)) & 0xFFFFFFFF for i in range(at, at + step)],
                f"page {at // step} of the buffer", "NV_ESC_RM_MAP_MEMORY, and the mmap behind it")
  words.release()
  b.free(made)
  return f"{_PAGES} pages hold {_PAGES * PAGE // 4:,} words"


@NV.rung("memory.apart", needs=("memory.host",), seconds=5, why="Buffers that live together must not share pages.")
def apart(b: NvBench) -> str:
  made = [b.take(PAGE * (1 + i % 3)) for i in range(_BUFFERS)]
  for i, buffer in enumerate(made): buffer.bytes()[:] = bytes([i + 1]) * buffer.size
  for i, buffer in enumerate(made):
    for at in range(0, buffer.size, PAGE):
      same(buffer.bytes()[at], i + 1, f"byte {at:#x} of buffer {i}", "RM's memory descriptors: do two have one page?")
  b.free(*made)
  return f"{_BUFFERS} buffers keep their own values"


@NV.rung("memory.vram", needs=("memory.host",), seconds=5,
         why="The host's window to video memory (BAR1) shows the bytes that it should.")
def vram(b: NvBench) -> str:
  made = b.take(2 * BIG_PAGE, Aperture.VRAM, host=True)
  data = random.Random(7).randbytes(made.size)
  made.bytes()[:] = data
  check(bytes(made.bytes()) == data, "bytes in video memory are not those that were stored", "the same", "BAR1")
  b.free(made)
  return f"{2 * BIG_PAGE:,} bytes by BAR1"


@NV.rung("memory.again", needs=("memory.page", "device.memory"), seconds=10,
         why="What is freed is there again: a leak ends a long run.")
def again(b: NvBench) -> str:
  before, size = b.free_vram(), 32 << 20
  made = b.take(size, Aperture.VRAM)
  during = b.free_vram()
  b.free(made)
  after = b.free_vram()
  check(during <= before - size, f"HEAP_FREE goes from {before:#x} to {during:#x} by {size:#x} bytes",
        "at least so much less", "NV2080_CTRL_FB_INFO_INDEX_HEAP_FREE")
  check(after >= before - (2 << 20), f"HEAP_FREE behind the free is {after:#x}", f"{before:#x}, but for page tables",
        "NV_ESC_RM_FREE, and UVM_FREE: who still holds it?")
  return f"{size >> 20} MiB taken and given back"


@NV.rung("memory.user", needs=("memory.page",), seconds=5,
         why="Pages of the process itself can be the GPU's (NV01_MEMORY_SYSTEM_OS_DESCRIPTOR), without a copy.")
def user(b: NvBench) -> str:
  address = b.port.mmap(-1, 2 * PAGE)
  memory = b.port.memory(address, 2 * PAGE)
  memory[:] = b"\x5a" * len(memory)
  made = b.rm.register_host(b.gpu, address, 2 * PAGE)
  check(bytes(memory) == b"\x5a" * len(memory), "registering changed the pages", "the bytes as they were", _UVM)
  b.free(made)
  memory.release()
  b.port.munmap(address, 2 * PAGE)
  return "2 pages registered and let go"


@NV.rung("memory.refusals", needs=("memory.page",), seconds=5,
         why="A driver that takes what is wrong fails later, where nobody knows why.")
def refusals(b: NvBench) -> str:
  made = b.take(2 * PAGE)
  def refused(what: str, base: int, length: int) -> None:
    try: b.rm.uvm(nv_uvm.UVM_CREATE_EXTERNAL_RANGE, nv_uvm.UVM_CREATE_EXTERNAL_RANGE_PARAMS(base=base, length=length))
    except DeviceError: return
    raise Broken(f"{what} was taken", "a status that says so", "uvm_api_create_external_range")
  refused("a range of 0 bytes", made.address + (1 << 20), 0)
  refused("a range that is no page", made.address + (1 << 20) + 1, PAGE)
  refused("a range over another one", made.address + PAGE, PAGE)
  b.free(made)
  return "0 bytes, half a page and an overlap are refused"
