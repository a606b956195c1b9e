"""Memory of processes behind /dev/kfd: buffers of every kind, mappings, what is shared, and pages of the process.

Checks, their order and their errnos are those of Linux 6.12 `amdkfd/kfd_chardev.c` and `amdgpu/amdgpu_amdkfd_gpuvm.c`.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import kfd
from tinyhw.core.errors import InvalidArgument, OutOfMemory
from tinyhw.core.memory import PAGE, Access, AddressSpace, HostRegion, Region
from tinyhw.core.table import Handlers
from tinyhw.mock.amd.driver.process import KfdProcess, OpenFile, ProcessDevice
from tinyhw.mock.memory import BufferObject, Refused, access_of, page_align

if TYPE_CHECKING:
  from tinyhw.mock.amd.machine import Gpu, Machine

VM_PAGES: Final = 1 << 36  # amdgpu_vm_manager.max_pfn of four levels of page tables
PARTITIONED: Final = ((9, 4, 3), (9, 4, 4), (9, 5, 0))  # those with mem_partitions (gmc_v9_0_sw_init)
VRAM_ALIGN: Final = 1 << 21  # VRAM_AVAILABILITY_ALIGN

ioctls: Final[Handlers[int]] = Handlers("KFD ioctl", name=lambda request: kfd.IOCTLS[request].name)
"""Every call of the driver, by its number."""


class KfdMemory:
  """The memory that the driver has given out."""

  def __init__(self, machine: Machine) -> None:
    self.machine = machine
    self.mmio = {g.gpu_id: Region(f"GPU{g.index}.mmio_remap", PAGE) for g in machine.gpus}
    self.ttm_limit = self.system_limit = machine.system.size
    self.user_buffers: dict[BufferObject, KfdProcess] = {}
    self._user_bytes = 0  # of them
    self.shared_used: dict[int, int] = {}  # by GPU id

  @ioctls.handles(kfd.AMDKFD_IOC_AVAILABLE_MEMORY)
  def available_memory(self, process: KfdProcess, args: Any) -> None:
    gpu = process.device(args.gpu_id).gpu
    used = gpu.vram.size - gpu.vram_allocator.free_bytes
    if gpu.card.apu:
      left = min(self.system_limit - self._system_used(), self.machine.system_allocator.free_bytes,
                 self.machine.system.size - self._shared_used(gpu) - self._page_table_reserve())
      args.available = max(0, left // PAGE * PAGE)
      return
    args.available = max(0, (gpu.vram.size - used - self._page_table_reserve()) // VRAM_ALIGN * VRAM_ALIGN)

  def _shared_used(self, gpu: Gpu) -> int:
    """Bytes of system memory that clients have of an APU as its video memory (adev->kfd.vram_used)."""
    return self.shared_used.get(gpu.gpu_id, 0)

  def _shared(self, gpu: Gpu, size: int) -> int:
    """Where new video memory of an APU lies in system memory (amdgpu_amdkfd_reserve_mem_limit)."""
    left = self.machine.system.size - self._shared_used(gpu) - self._page_table_reserve()
    if self._system_used() + size > self.system_limit or size > left:
      raise Refused(errno.ENOMEM, f"{size:,} bytes of video memory of an APU, {max(left, 0):,} are left to it")
    return self.machine.system_allocator.alloc(size)

  def _page_table_reserve(self) -> int:
    """ESTIMATE_PT_SIZE: what the driver keeps for page tables."""
    total = self.machine.system.size + sum(g.vram.size for g in self.machine.gpus)
    reserve = max(total >> 14, 8 << 20)
    return min(reserve, min(g.vram.size for g in self.machine.gpus) // 16)

  def _backing(
    self, process: KfdProcess, device: ProcessDevice, args: Any, size: int
  ) -> tuple[str, Region | HostRegion, int, int]:
    """Kind, memory, offset in it and the mmap token of a new buffer."""
    flags, gpu = args.flags, device.gpu
    try:
      if flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM and gpu.card.apu:
        return "gtt", self.machine.system, self._shared(gpu, size), 0
      if flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM:
        if gpu.vram_allocator.free_bytes - self._page_table_reserve() < size:
          raise Refused(errno.ENOMEM, f"{size:,} bytes of video memory, {gpu.vram_allocator.free_bytes:,} are free")
        return "vram", gpu.vram, gpu.vram_allocator.alloc(size), 0
      if flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT:
        return "gtt", self.machine.system, self.machine.system_allocator.alloc(size), 0
    except OutOfMemory as full:
      raise Refused(errno.ENOMEM, str(full)) from None
    if flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR:
      if not args.mmap_offset:
        raise Refused(errno.EINVAL, "a user pointer of 0")
      start = args.mmap_offset & ~(PAGE - 1)
      writable = bool(flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE)
      if not process.user.mapped(start, size, writable):
        raise Refused(errno.EFAULT, f"user memory at {start:#x} is not mapped{' for writing' * writable}")
      if self._system_used() + size > self.system_limit:
        raise Refused(errno.ENOMEM, f"{size:,} bytes of user memory: GPUs would have more than the system's")
      return "userptr", process.places.user_region(start, size), 0, 0
    if flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL:
      return "doorbell", device.doorbell_region(), 0, 0
    if flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP:
      return "mmio", process.places.mmio(gpu), 0, process.places.mmio_offset(gpu)
    raise Refused(errno.EINVAL, f"flags {flags:#x} name no kind of memory")

  def _system_used(self) -> int:
    """kfd_mem_limit.system_mem_used: the system's memory that GPUs have, of either kind."""
    return self.machine.system.size - self.machine.system_allocator.free_bytes + self._user_bytes

  @ioctls.handles(kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU)
  def alloc_memory_of_gpu(self, process: KfdProcess, args: Any) -> None:
    if args.size == 0:
      raise Refused(errno.EINVAL, "a buffer of 0 bytes")
    device, flags = process.device(args.gpu_id), args.flags
    device.bind()
    if flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL and args.size != device.gpu.card.doorbell_slice:
      raise Refused(errno.EINVAL, f"doorbells are {device.gpu.card.doorbell_slice:#x} bytes, not {args.size:#x}")
    if flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP and args.size != PAGE:
      raise Refused(errno.EINVAL, "the remapped MMIO is one page")
    twice = bool(flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM)
    size = page_align(args.size >> 1 if twice else args.size)
    if not size:
      raise Refused(errno.EINVAL, "an AQL ring of 1 byte")
    kind, backing, offset, token = self._backing(process, device, args, size)
    access = access_of(
      bool(flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE), bool(flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE)
    )
    buffer = BufferObject(0, args.gpu_id, kind, args.va_addr, size, flags, backing, offset, token, access, twice)
    self._enter(device, buffer)
    if kind == "userptr":
      self.user_buffers[buffer] = process
      self._user_bytes += buffer.size
    if flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM:
      device.vram_used += size
      if device.gpu.card.apu:
        self.shared_used[args.gpu_id] = self._shared_used(device.gpu) + size
        buffer.extent.counted = args.gpu_id
    args.handle, args.mmap_offset = buffer.handle, buffer.mmap_offset

  @staticmethod
  def _enter(device: ProcessDevice, buffer: BufferObject) -> None:
    """Give a new buffer its handle and its place in the render node's file."""
    buffer.handle = buffer.gpu_id << 32 | device.enter(buffer)
    if buffer.kind != "mmio":
      buffer.mmap_offset = device.places.buffer_offset(device.gpu, buffer)
    device.by_mmap[buffer.mmap_offset] = buffer

  @ioctls.handles(kfd.AMDKFD_IOC_FREE_MEMORY_OF_GPU)
  def free_memory_of_gpu(self, process: KfdProcess, args: Any) -> None:
    if process.events.page_handle and process.events.page_handle == args.handle:
      raise Refused(errno.EPERM, "the event page stays until the process ends")
    device = process.device(args.handle >> 32)
    buffer = device.buffer(args.handle, errno.EINVAL)
    if buffer.mapped:
      raise Refused(errno.EBUSY, f"{buffer} is still mapped on {len(buffer.mapped)} GPUs")
    device.leave(args.handle & 0xFFFF_FFFF)
    device.by_mmap.pop(buffer.mmap_offset, None)  # one that was imported may have had the same
    self._give_back(device, buffer)

  def _give_back(self, device: ProcessDevice, buffer: BufferObject) -> None:
    """The mmap offset of a buffer is free again, and its memory, unless a dma-buf or another buffer holds it too."""
    if buffer.kind != "mmio":
      device.places.forget_offset(device.gpu, buffer)
    if buffer.flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM and not buffer.imported:
      device.vram_used -= buffer.size
    self.drop(buffer)

  def drop(self, buffer: BufferObject) -> None:
    """One holder of a buffer's memory goes; with the last one the memory is wiped and free."""
    buffer.extent.holders -= 1
    if buffer.kind == "userptr":
      if self.user_buffers.pop(buffer, None) is not None: self._user_bytes -= buffer.size
      if self.machine.weak is not None and not buffer.extent.holders:
        self.machine.weak.gone(buffer.backing, 0, buffer.size)
    if buffer.extent.holders or not isinstance(buffer.backing, Region) or buffer.kind not in ("vram", "gtt"):
      return
    if self.machine.weak is not None:
      self.machine.weak.gone(buffer.backing, buffer.offset, buffer.size)
    buffer.backing.discard(buffer.offset, buffer.size)
    if buffer.extent.counted: self.shared_used[buffer.extent.counted] -= buffer.size
    gpu = next((g for g in self.machine.gpus if g.vram is buffer.backing), None)
    (self.machine.system_allocator if gpu is None else gpu.vram_allocator).free(buffer.offset)

  def _devices_of(self, process: KfdProcess, args: Any) -> list[int]:
    """The GPU ids that a map or unmap names."""
    if not args.n_devices:
      raise Refused(errno.EINVAL, "no GPUs are named")
    if args.n_success > args.n_devices:
      raise Refused(errno.EINVAL, f"n_success {args.n_success} of {args.n_devices}")
    raw = process.user.read(args.device_ids_array_ptr, 4 * args.n_devices)
    return [int.from_bytes(raw[4 * i : 4 * i + 4], "little") for i in range(args.n_devices)]

  @ioctls.handles(kfd.AMDKFD_IOC_MAP_MEMORY_TO_GPU)
  def map_memory_to_gpu(self, process: KfdProcess, args: Any) -> None:
    ids = self._devices_of(process, args)
    device = process.device(args.handle >> 32)
    device.bind()
    buffer = device.buffer(args.handle, errno.ENOMEM)
    for i in range(args.n_success, args.n_devices):
      peer = process.device(ids[i])
      space = peer.bind()
      if ids[i] not in buffer.mapped:
        self._map(space, peer, buffer)
      args.n_success = i + 1

  def _map(self, space: AddressSpace, peer: ProcessDevice, buffer: BufferObject) -> None:
    """kfd_mem_attach and amdgpu_vm_bo_map: VA 0, misalignment, the end of the address space and overlaps are EINVAL."""
    if not buffer.va:
      raise Refused(errno.EINVAL, f"{buffer} has no address")
    total = buffer.size * (2 if buffer.twice else 1)
    if buffer.va % PAGE or buffer.va + total > VM_PAGES * PAGE:
      raise Refused(errno.EINVAL, f"{buffer}: misaligned, or past the end of the address space")
    done = 0
    try:
      for part in range(0, total, buffer.size):
        space.map(
          buffer.va + part, buffer.size, buffer.backing, buffer.offset, buffer.access, uncached=buffer.uncached
        )
        done += buffer.size
    except InvalidArgument as bad:
      if done:
        space.unmap(buffer.va, done)
      raise Refused(errno.EINVAL, str(bad)) from None
    buffer.mapped.add(peer.gpu.gpu_id)
    peer.by_address[buffer.va] = buffer

  @ioctls.handles(kfd.AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU)
  def unmap_memory_from_gpu(self, process: KfdProcess, args: Any) -> None:
    ids = self._devices_of(process, args)
    buffer = process.device(args.handle >> 32).buffer(args.handle, errno.ENOMEM)
    for i in range(args.n_success, args.n_devices):
      peer = process.device(ids[i])
      if ids[i] not in buffer.mapped:
        raise Refused(errno.EINVAL, f"{buffer} is not mapped on GPU {ids[i]:#x}")
      if buffer.queues.get(ids[i]):
        raise Refused(errno.EBUSY, f"{buffer} is held by a queue")
      if not buffer.gone:
        peer.bind().unmap(buffer.va, buffer.size * (2 if buffer.twice else 1))
        if self.machine.weak is not None:  # a heavyweight TLB flush (kfd_ioctl_unmap_memory_from_gpu)
          self.machine.weak.unmapped(peer.gpu, buffer.backing, buffer.offset, buffer.size)
      buffer.mapped.discard(ids[i])
      del peer.by_address[buffer.va]
      args.n_success = i + 1

  # ---- dma-bufs

  def _dmabuf(self, process: KfdProcess, fd: int) -> BufferObject:
    """The buffer behind a dma-buf's descriptor."""
    file = process.places.file(fd)
    if file is None:
      raise Refused(errno.EBADF, f"{fd} is not an open file")
    if file.buffer is None:
      raise Refused(errno.EINVAL, f"{fd} is not a dma-buf")
    return file.buffer

  @ioctls.handles(kfd.AMDKFD_IOC_EXPORT_DMABUF)
  def export_dmabuf(self, process: KfdProcess, args: Any) -> None:
    device = process.device(args.handle >> 32)
    buffer = device.buffer(args.handle, errno.EINVAL)
    if not isinstance(buffer.backing, Region):
      raise Refused(errno.EPERM, "user memory is not exported")
    args.dmabuf_fd = process.places.export(OpenFile(-1, "dmabuf", process.pid, device.gpu, buffer), buffer.backing)
    buffer.extent.holders += 1

  @ioctls.handles(kfd.AMDKFD_IOC_GET_DMABUF_INFO)
  def get_dmabuf_info(self, process: KfdProcess, args: Any) -> None:
    buffer = self._dmabuf(process, args.dmabuf_fd)
    if buffer.kind not in ("vram", "gtt"):
      raise Refused(errno.EINVAL, f"{buffer} is neither video nor system memory")
    # System memory of a GPU in partitions is of any of them: the first one of the system is told (amdgpu_bo_create's
    # xcp_id, kfd_ioctl_get_dmabuf_info).
    card = next(g for g in self.machine.gpus if g.gpu_id == buffer.gpu_id).card
    first = buffer.kind == "gtt" and card.gc_version in PARTITIONED
    args.size, args.gpu_id, args.metadata_size = buffer.size, self.machine.gpus[0].gpu_id if first else buffer.gpu_id, 0
    args.flags = kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM if buffer.kind == "vram" else kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT
    args.flags |= buffer.flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC

  @ioctls.handles(kfd.AMDKFD_IOC_IMPORT_DMABUF)
  def import_dmabuf(self, process: KfdProcess, args: Any) -> None:
    """The same memory as another buffer, writable and executable (import_obj_create)."""
    device = process.device(args.gpu_id)
    device.bind()
    source = self._dmabuf(process, args.dmabuf_fd)
    if source.kind not in ("vram", "gtt"):
      raise Refused(errno.EINVAL, f"{source} is neither video nor system memory")
    source.extent.holders += 1
    buffer = BufferObject(
      0,
      args.gpu_id,
      source.kind,
      args.va_addr,
      source.size,
      source.flags,
      source.backing,
      source.offset,
      0,
      access_of(True, True),
      imported=True,
      extent=source.extent,
    )
    self._enter(device, buffer)
    args.handle = buffer.handle

  # ---- user pointers

  def user_memory_gone(self, pid: int, start: int, end: int) -> None:
    """The client unmaps a range of its memory (the MMU notifier of user pointers): no GPU may reach it any more."""
    for buffer, process in self.user_buffers.items():
      backing = buffer.backing
      assert isinstance(backing, HostRegion)
      if process.pid == pid and not buffer.gone and backing.address < end and start < backing.address + buffer.size:
        self._gone(process, buffer)

  def check_user_memory(self) -> None:
    """Notice what the client has unmapped without this port (the kernel would have been told): before GPUs run."""
    for buffer, process in self.user_buffers.items():
      backing = buffer.backing
      assert isinstance(backing, HostRegion)
      if process.pid != os.getpid() or buffer.gone:
        continue
      if not process.user.mapped(backing.address, buffer.size, bool(buffer.access & Access.WRITE)):
        self._gone(process, buffer)

  def _gone(self, process: KfdProcess, buffer: BufferObject) -> None:
    buffer.gone = True
    if self.machine.weak is not None:
      self.machine.weak.gone(buffer.backing, 0, buffer.size)
    for gpu_id in buffer.mapped:
      process.devices[gpu_id].bind().unmap(buffer.va, buffer.size)
