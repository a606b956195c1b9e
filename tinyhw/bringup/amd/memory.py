"""The address space and the memory in it, as kernel driver, page tables and host see it; no engine runs yet."""
from __future__ import annotations

import random

from tinyhw.autogen import kfd
from tinyhw.bringup.amd.bench import GTT, PAGE, VRAM, AmdBench, BenchMemory
from tinyhw.bringup.amd.ladder import AMD
from tinyhw.bringup.bench import check, first_wrong, same
from tinyhw.bringup.rung import Broken
from tinyhw.core.errors import DriverError

_GPUVM = "amdgpu_amdkfd_gpuvm.c"
_PAGES = 16
_BUFFERS = 12


@AMD.rung("memory.space", needs=("device.render",), seconds=5,
          why="A process has one address space on a GPU; memory and queues are in it.")
def space(b: AmdBench) -> str:
  _ = b.vm
  b.call("ACQUIRE_VM", kfd.AMDKFD_IOC_ACQUIRE_VM,
         kfd.kfd_ioctl_acquire_vm_args(drm_fd=b.drm, gpu_id=b.node.gpu_id))  # the same file again is no error
  other = b.port.open(b.node.render_node)
  try: b.call("ACQUIRE_VM", kfd.AMDKFD_IOC_ACQUIRE_VM,
              kfd.kfd_ioctl_acquire_vm_args(drm_fd=other, gpu_id=b.node.gpu_id))
  except DriverError: pass  # as it should be
  else: raise Broken("a second file's address space is taken too", "EBUSY", "kfd_process_device_init_vm")
  finally: b.port.close(other)
  return "ACQUIRE_VM takes the render node's file, and no second one"


@AMD.rung("memory.apertures", needs=("memory.space",), seconds=2,
          why="Flat addresses reach LDS and scratch through apertures that must lie where instructions look for them.")
def apertures(b: AmdBench) -> str:
  row = b.apertures
  rows = {name: (int(getattr(row, f"{name}_base")), int(getattr(row, f"{name}_limit")))
          for name in ("lds", "scratch", "gpuvm")}
  look = "kfd_flat_memory.c, MAKE_LDS_APP_BASE_V9 and its kin"
  for name, (base, limit) in rows.items():
    check(base < limit, f"{name}: base {base:#x}, limit {limit:#x}", "the base below the limit", look)
  spans = sorted(rows.values())
  check(all(a[1] < c[0] for a, c in zip(spans, spans[1:])),
        ", ".join(f"{n} {a:#x} to {z:#x}" for n, (a, z) in rows.items()), "apertures that do not overlap", look)
  for name, base in (("lds", b.arch.shared_aperture), ("scratch", b.arch.private_aperture)):
    same(rows[name][0], base, f"{name}_base", look + "; programs find it in SRC_SHARED_BASE and SRC_PRIVATE_BASE")
  return ", ".join(f"{n} at {a:#x}" for n, (a, _) in rows.items())


@AMD.rung("memory.available", needs=("memory.space", "device.banks"), seconds=2,
          why="Who asks for more than is free should learn it from a number, not from an error.")
def available(b: AmdBench) -> str:
  free = b.available()
  check(0 < free <= b.node.vram_bytes, f"AVAILABLE_MEMORY is {free:#x}", f"1 to {b.node.vram_bytes:#x}",
        "amdgpu_amdkfd_get_available_memory")
  return f"{free >> 20:,} of {b.node.vram_bytes >> 20:,} MiB"


@AMD.rung("memory.page", needs=("memory.space",), seconds=5,
          why="One page of system memory: allocated, mapped into the process, entered into the GPU's page tables.")
def page(b: AmdBench) -> str:
  made = b.take(PAGE)
  try: return f"handle {made.handle:#x}, one address for host and GPU"
  finally: b.free(made)


@AMD.rung("memory.host", needs=("memory.page",), seconds=5,
          why="What the processor wrote it reads again, in each page its own: mappings that alias show here.")
def host(b: AmdBench) -> str:
  made = b.take(_PAGES * PAGE)
  try:
    words = made.words
    for i in range(len(words)): words[i] = (0x9E37_79B1 * (i + 1)) & 0xFFFFFFFF
    step = PAGE // 4
    for at in range(0, len(words), step):
      first_wrong(words[at:at + step].tolist(), [(0x9E37_79B1 * (i + 1)) & 0xFFFFFFFF for i in range(at, at + step)],
                  f"page {at // step} of the buffer", "the mmap offset that ALLOC_MEMORY_OF_GPU gave")
    words.release()
  finally: b.free(made)
  return f"{_PAGES} pages hold {_PAGES * PAGE // 4:,} words"


@AMD.rung("memory.apart", needs=("memory.host",), seconds=5,
          why="Buffers that live together must not share pages.")
def apart(b: AmdBench) -> str:
  made = [b.take(PAGE * (1 + i % 3)) for i in range(_BUFFERS)]
  try:
    for i, buffer in enumerate(made): buffer.fill(i + 1)
    for i, buffer in enumerate(made):
      for at in range(0, buffer.size, PAGE):
        same(buffer.bytes[at], i + 1, f"byte {at:#x} of buffer {i}", _GPUVM + ": do two buffers have the same pages?")
  finally:
    for buffer in made: b.free(buffer)
  return f"{_BUFFERS} buffers keep their own values"


@AMD.rung("memory.vram", needs=("memory.host",), seconds=5,
          why="The host's window to video memory (BAR) shows the bytes that it should.")
def vram(b: AmdBench) -> str:
  made = b.take_vram(_PAGES * PAGE)
  try:
    draw = random.Random(7)
    data = draw.randbytes(made.size)
    made.bytes[:] = data
    check(bytes(made.bytes) == data, "bytes in video memory are not those that were stored", "the same",
          "the BAR's size, and HDP")
  finally: b.free(made)
  return f"{_PAGES * PAGE:,} bytes by BAR"


@AMD.rung("memory.again", needs=("memory.page", "memory.available"), seconds=10,
          why="What is freed is there again: a leak ends a long run.")
def again(b: AmdBench) -> str:
  before, size = b.available(), 4 << 20
  made = b.take(size, VRAM, host=False)
  during = b.available()
  b.free(made)
  after = b.available()
  check(during <= before - size, f"AVAILABLE_MEMORY goes from {before:#x} to {during:#x} by {size:#x} bytes",
        "at least so much less", "amdgpu_amdkfd_gpuvm.c, vram_used")
  same(after, before, "AVAILABLE_MEMORY behind FREE_MEMORY_OF_GPU", _GPUVM + ", amdgpu_amdkfd_gpuvm_free_memory_of_gpu")
  return f"{size >> 20} MiB taken and given back"


@AMD.rung("memory.user", needs=("memory.page",), seconds=5,
          why="Pages of the process itself can be the GPU's (USERPTR), without a copy.")
def user(b: AmdBench) -> str:
  address = b.port.mmap(-1, 2 * PAGE)
  memory = b.port.memory(address, 2 * PAGE)
  memory[:] = b"\x5a" * len(memory)
  flags = (kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | kfd.KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE
           | kfd.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT | kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE)
  handle, _ = b.allocate(2 * PAGE, flags, address, host=address)
  b.map(handle)
  check(bytes(memory) == b"\x5a" * len(memory), "registering changed the pages", "the bytes as they were", _GPUVM)
  b.unmap(handle)
  b.call("FREE_MEMORY_OF_GPU", kfd.AMDKFD_IOC_FREE_MEMORY_OF_GPU, kfd.kfd_ioctl_free_memory_of_gpu_args(handle=handle))
  del memory
  b.port.munmap(address, 2 * PAGE)
  return "2 pages registered and let go"


@AMD.rung("memory.refusals", needs=("memory.page",), seconds=5,
          why="A driver that takes what is wrong fails later, where nobody knows why.")
def refusals(b: AmdBench) -> str:
  def refused(what: str, size: int, flags: int, address: int) -> None:
    try: handle, _ = b.allocate(size, flags, address)
    except DriverError: return
    b.call("FREE_MEMORY_OF_GPU", kfd.AMDKFD_IOC_FREE_MEMORY_OF_GPU,
           kfd.kfd_ioctl_free_memory_of_gpu_args(handle=handle))
    raise Broken(f"{what} was taken", "an errno", "kfd_ioctl_alloc_memory_of_gpu")
  address = b.reserve(PAGE)
  refused("a buffer of 0 bytes", 0, GTT, address)
  refused("memory of no kind", PAGE, kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, address)
  refused("more video memory than there is", b.node.vram_bytes * 2, VRAM, address)
  made = b.take(PAGE)
  try: b.call("FREE_MEMORY_OF_GPU", kfd.AMDKFD_IOC_FREE_MEMORY_OF_GPU,
              kfd.kfd_ioctl_free_memory_of_gpu_args(handle=made.handle))
  except DriverError: pass  # as it should be
  else: raise Broken("a mapped buffer was freed", "EBUSY", "amdgpu_amdkfd_gpuvm_free_memory_of_gpu")
  b.free(made)
  return "0 bytes, no kind, too much, and a mapped buffer's end are refused"


def pattern(memory: BenchMemory, seed: int) -> bytes:
  """Fill host-visible memory with bytes of a seed; returns them."""
  data = random.Random(seed).randbytes(memory.size)
  memory.bytes[:] = data
  return data


