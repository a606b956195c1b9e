"""UVM behind /dev/nvidia-uvm: ranges of addresses that the client manages, mapped on GPUs that are registered.

Calls and status codes follow open-gpu-kernel-modules 580.142 (`kernel-open/nvidia-uvm`: uvm.c, uvm_va_space.c,
uvm_map_external.c). Managed memory (pages that migrate) is not modelled: such calls are NV_ERR_NOT_SUPPORTED by name.
"""

from __future__ import annotations

import errno
from bisect import bisect_right, insort
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tinyhw.autogen import nv_rm_status as status
from tinyhw.autogen import nv_uvm as uvm
from tinyhw.core.memory import PAGE
from tinyhw.core.table import Handlers
from tinyhw.mock.memory import Refused
from tinyhw.mock.nv import broken
from tinyhw.mock.nv.driver.controls import uuid_of
from tinyhw.mock.nv.driver.objects import ChannelObject, MemoryObject, NvFile, Physical, RmError, VaSpace, access_bits

if TYPE_CHECKING:
  from tinyhw.mock.nv.machine import NvGpu, NvMachine


_BASE: Final = attrgetter("base")
ADDRESSABLE: Final = 1 << 57  # of the largest address space (uvm_gpu_can_address)


@dataclass(eq=False)
class Range:
  """An external range [base, base + size): what is mapped where, by GPU and address."""

  base: int
  size: int
  maps: dict[tuple[int, int], tuple[int, Physical]] = field(default_factory=dict)  # (GPU, address) -> size, memory


@dataclass(eq=False)
class UvmSpace:
  """What one open file of UVM is: GPUs, their address spaces, ranges, peers."""

  gpus: set[int] = field(default_factory=set)
  spaces: dict[int, VaSpace] = field(default_factory=dict)
  ranges: list[Range] = field(default_factory=list)  # by address; none meets another
  peers: set[frozenset[int]] = field(default_factory=set)
  channels: dict[tuple[int, int], int] = field(default_factory=dict)
  flags: int = 0  # of UVM_INITIALIZE

  def find(self, base: int) -> Range | None:
    """The range that holds an address."""
    r = self.last(base)
    return r if r is not None and base < r.base + r.size else None

  def last(self, address: int) -> Range | None:
    """The last range that begins at an address or before it."""
    i = bisect_right(self.ranges, address, key=_BASE)
    return self.ranges[i - 1] if i else None

  def unmap(self, r: Range, key: tuple[int, int]) -> None:
    """Take one mapping away."""
    size, physical = r.maps.pop(key)
    va = self.spaces.get(key[0])
    if va is not None:
      va.space.unmap(key[1], size)
    physical.drop()

  def space_gone(self, va: VaSpace) -> None:
    """An address space is freed by RM: its mappings go."""
    for r in self.ranges:
      for key in [k for k in r.maps if self.spaces.get(k[0]) is va]:
        self.unmap(r, key)
    self.spaces = {k: v for k, v in self.spaces.items() if v is not va}

  def physical_gone(self, physical: Physical) -> None:
    """Memory of the client went."""
    for r in self.ranges:
      for key in [k for k, (_, memory) in r.maps.items() if memory is physical]:
        self.unmap(r, key)

  def close(self) -> None:
    for r in self.ranges:
      for key in [*r.maps]:
        self.unmap(r, key)
    for va in self.spaces.values():
      va.registered = None
    self.ranges.clear()


class Uvm:
  """UVM of one machine."""

  calls: ClassVar[Handlers[str]] = Handlers("UVM call")
  call = calls.handles
  calls.ignores("UVM_DEINITIALIZE", why="the file's end does it")
  calls.ignores("UVM_CLEAN_UP_ZOMBIE_RESOURCES", why="nothing is left of dead channels")

  def __init__(self, machine: NvMachine) -> None:
    self.machine = machine

  def ioctl(self, file: NvFile, request: int, p: Any, pid: int) -> int:
    """One call."""
    row = uvm.IOCTLS.get(request)
    if row is None:
      raise Refused(errno.EINVAL, f"no UVM call has the number {request:#x}")
    handler = self.calls.get(row.name)
    if file.uvm is None and row.name not in ("UVM_INITIALIZE", "UVM_MM_INITIALIZE", "UVM_DEINITIALIZE"):
      return self._refuse(p, row.name, RmError(status.NV_ERR_ILLEGAL_ACTION, "before UVM_INITIALIZE"))
    if handler is None:
      if (why := self.calls.why_ignored(row.name)) is not None:
        self.machine.ignored.note("UVM call", row.name, why)
        return 0
      self.machine.doubt(f"UVM call {row.name} is not modelled: NV_ERR_NOT_SUPPORTED")
      return self._refuse(p, row.name, RmError(status.NV_ERR_NOT_SUPPORTED, "not modelled"))
    try:
      p.rmStatus = status.NV_OK
      if self.machine.watched: broken.answer(self.machine, row.name)
      handler(self, file, p, pid)
    except RmError as refusal:
      self._refuse(p, row.name, refusal)
    if self.machine.trace.enabled:
      self.machine.trace.add("uvm", "ioctl", f"{row.name} {p!r}"[:400])
    return 0

  def _refuse(self, p: Any, name: str, refusal: RmError) -> int:
    self.machine.trace.add("uvm", "refused", f"{name}: {refusal}")
    if p is None or not hasattr(p, "rmStatus"):
      raise Refused(errno.EINVAL, str(refusal))
    p.rmStatus = refusal.code
    return 0

  def _gpu(self, identity: Any) -> NvGpu:
    found = next((g for g in self.machine.gpus if uuid_of(g) == bytes(identity.uuid)), None)
    if found is None:
      raise RmError(status.NV_ERR_INVALID_DEVICE, f"no GPU has the UUID {bytes(identity.uuid).hex()}")
    return found

  def _registered(self, space: UvmSpace, identity: Any) -> NvGpu:
    gpu = self._gpu(identity)
    if gpu.index not in space.gpus:
      raise RmError(status.NV_ERR_INVALID_DEVICE, f"GPU {gpu.index} is not registered")
    return gpu

  @call("UVM_INITIALIZE")
  def initialize(self, file: NvFile, p: Any, pid: int) -> None:
    if p.flags & ~uvm.UVM_INIT_FLAGS_MASK:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"flags {p.flags:#x}")
    if file.uvm is None:
      file.uvm = UvmSpace(flags=p.flags)
    elif p.flags != file.uvm.flags:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"flags {p.flags:#x}, they were {file.uvm.flags:#x}")

  @call("UVM_MM_INITIALIZE")
  def mm_initialize(self, file: NvFile, p: Any, pid: int) -> None:
    """A second file that keeps the address space alive; the mock needs none."""
    other = self.machine.files_of(pid).get(p.uvmFd)
    if other is None or other.kind != "uvm" or other.uvm is None or file.uvm is not None:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"{p.uvmFd} is no initialized file of UVM")

  @call("UVM_PAGEABLE_MEM_ACCESS")
  def pageable(self, file: NvFile, p: Any, pid: int) -> None:
    p.pageableMemAccess = 0

  @call("UVM_PAGEABLE_MEM_ACCESS_ON_GPU")
  def pageable_on_gpu(self, file: NvFile, p: Any, pid: int) -> None:
    self._registered(file.uvm, p.gpu_uuid)
    p.pageableMemAccess = 0

  @call("UVM_REGISTER_GPU")
  def register_gpu(self, file: NvFile, p: Any, pid: int) -> None:
    file.uvm.gpus.add(self._gpu(p.gpu_uuid).index)
    p.numaEnabled, p.numaNodeId = 0, -1

  @call("UVM_UNREGISTER_GPU")
  def unregister_gpu(self, file: NvFile, p: Any, pid: int) -> None:
    gpu = self._registered(file.uvm, p.gpu_uuid)
    self._forget_space(file.uvm, gpu.index)
    file.uvm.gpus.discard(gpu.index)

  def _forget_space(self, space: UvmSpace, index: int) -> None:
    va = space.spaces.get(index)
    if va is not None:
      space.space_gone(va)
      va.registered = None

  @call("UVM_REGISTER_GPU_VASPACE")
  def register_space(self, file: NvFile, p: Any, pid: int) -> None:
    """An address space of RM becomes UVM's."""
    space: UvmSpace = file.uvm
    gpu = self._registered(space, p.gpuUuid)
    va = self._object(p.rmCtrlFd, pid, p.hClient, p.hVaSpace, VaSpace)
    if not va.external:
      raise RmError(status.NV_ERR_INVALID_FLAGS, "an address space that is not IS_EXTERNALLY_OWNED")
    if va.gpu is not gpu or gpu.index in space.spaces or va.registered is not None:
      raise RmError(status.NV_ERR_INVALID_DEVICE, f"GPU {gpu.index} has an address space here, or this is another's")
    space.spaces[gpu.index], va.registered = va, space

  @call("UVM_UNREGISTER_GPU_VASPACE")
  def unregister_space(self, file: NvFile, p: Any, pid: int) -> None:
    gpu = self._registered(file.uvm, p.gpuUuid)
    if gpu.index not in file.uvm.spaces:
      raise RmError(status.NV_ERR_INVALID_DEVICE, f"GPU {gpu.index} has no address space here")
    self._forget_space(file.uvm, gpu.index)

  def _object(self, fd: int, pid: int, client: int, handle: int, kind: type[Any]) -> Any:
    """An object of RM, by the ctl file and handles that a call names."""
    ctl = self.machine.files_of(pid).get(fd)
    if ctl is None or ctl.kind != "ctl":
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"{fd} is no file of nvidiactl")
    return self.machine.rm.client(ctl, client).of(handle, kind)

  @call("UVM_REGISTER_CHANNEL")
  def register_channel(self, file: NvFile, p: Any, pid: int) -> None:
    space: UvmSpace = file.uvm
    gpu = self._registered(space, p.gpuUuid)
    if gpu.index not in space.spaces:
      raise RmError(status.NV_ERR_INVALID_DEVICE, f"GPU {gpu.index} has no address space here")
    channel: ChannelObject = self._object(p.rmCtrlFd, pid, p.hClient, p.hChannel, ChannelObject)
    if channel.va is not space.spaces[gpu.index]:
      raise RmError(status.NV_ERR_INVALID_CHANNEL, f"{channel.channel.name} is in another address space")
    space.channels[p.hClient, p.hChannel] = gpu.index
    channel.channel.unregistered = False

  @call("UVM_UNREGISTER_CHANNEL")
  def unregister_channel(self, file: NvFile, p: Any, pid: int) -> None:
    if file.uvm.channels.pop((p.hClient, p.hChannel), None) is None:
      raise RmError(status.NV_ERR_INVALID_CHANNEL, f"channel {p.hChannel:#x} is not registered")

  @call("UVM_ENABLE_PEER_ACCESS")
  def enable_peers(self, file: NvFile, p: Any, pid: int) -> None:
    space: UvmSpace = file.uvm
    pair = frozenset(self._registered(space, u).index for u in (p.gpuUuidA, p.gpuUuidB))
    if len(pair) < 2 or pair in space.peers:
      raise RmError(status.NV_ERR_INVALID_DEVICE, f"peer access between {sorted(pair)}")
    space.peers.add(pair)

  @call("UVM_DISABLE_PEER_ACCESS")
  def disable_peers(self, file: NvFile, p: Any, pid: int) -> None:
    space: UvmSpace = file.uvm
    pair = frozenset(self._registered(space, u).index for u in (p.gpuUuidA, p.gpuUuidB))
    if pair not in space.peers:
      raise RmError(status.NV_ERR_INVALID_DEVICE, f"no peer access between {sorted(pair)}")
    space.peers.discard(pair)
    for r in space.ranges:
      for key in [k for k, (_, m) in r.maps.items() if m.gpu is not None and frozenset((k[0], m.gpu.index)) == pair]:
        space.unmap(r, key)

  # ---- ranges

  @staticmethod
  def _check_range(base: int, length: int) -> None:
    """uvm_api_range_invalid_4k."""
    if not base or not length or (base | length) % PAGE or base + length >= 1 << 64:
      raise RmError(status.NV_ERR_INVALID_ADDRESS, f"{length:#x} bytes at {base:#x}")

  @call("UVM_CREATE_EXTERNAL_RANGE")
  def create_range(self, file: NvFile, p: Any, pid: int) -> None:
    self._check_range(p.base, p.length)
    space: UvmSpace = file.uvm
    before = space.last(p.base + p.length - PAGE)
    if before is not None and p.base < before.base + before.size:
      raise RmError(status.NV_ERR_UVM_ADDRESS_IN_USE, f"a range is in {p.base:#x}..{p.base + p.length:#x} already")
    insort(space.ranges, Range(p.base, p.length), key=_BASE)

  @call("UVM_MAP_EXTERNAL_ALLOCATION")
  def map_external(self, file: NvFile, p: Any, pid: int) -> None:
    """Map memory of RM into a range, on all GPUs that are named, or on none."""
    self._check_range(p.base, p.length)
    if not 0 < p.gpuAttributesCount <= len(p.perGpuAttributes):
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"{p.gpuAttributesCount} GPUs")
    space: UvmSpace = file.uvm
    r = space.find(p.base)
    if r is None or r.base + r.size < p.base + p.length:
      raise RmError(status.NV_ERR_INVALID_ADDRESS, f"no external range holds {p.base:#x}..{p.base + p.length:#x}")
    memory: MemoryObject = self._object(p.rmCtrlFd, pid, p.hClient, p.hMemory, MemoryObject)
    physical = memory.physical
    if p.offset % PAGE or p.offset + p.length > memory.size:
      raise RmError(status.NV_ERR_INVALID_OFFSET, f"{p.length:#x} bytes from {p.offset:#x} of {memory.size:#x}")
    if p.base + p.length > ADDRESSABLE:
      raise RmError(status.NV_ERR_OUT_OF_RANGE, f"no GPU has addresses to {p.base + p.length:#x}")
    made: list[tuple[int, int]] = []
    try:
      for attributes in p.perGpuAttributes[: p.gpuAttributesCount]:
        if attributes.gpuMappingType >= uvm.UvmGpuMappingTypeCount:
          raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"gpuMappingType {attributes.gpuMappingType}")
        gpu = self._registered(space, attributes.gpuUuid)
        va = space.spaces.get(gpu.index)
        if va is None:
          raise RmError(status.NV_ERR_INVALID_DEVICE, f"GPU {gpu.index} has no address space here")
        if physical.gpu is not None and physical.gpu is not gpu and frozenset(
            (gpu.index, physical.gpu.index)) not in space.peers:
          raise RmError(status.NV_ERR_INVALID_DEVICE, f"video memory of GPU {physical.gpu.index} on GPU {gpu.index} "
                        "without UVM_ENABLE_PEER_ACCESS")
        self._replace(space, r, gpu.index, p.base, p.length)
        va.space.map(p.base, p.length, physical.backing, physical.offset + memory.offset + p.offset,
                     access_bits(attributes.gpuMappingType == uvm.UvmGpuMappingTypeReadOnly),
                     uncached=physical.kind != "video")
        made.append((gpu.index, p.base))
        r.maps[gpu.index, p.base] = p.length, physical.hold()
    except RmError:
      for key in made:
        space.unmap(r, key)
      raise

  def _replace(self, space: UvmSpace, r: Range, index: int, base: int, length: int) -> None:
    """A new mapping takes the place of those that it covers as a whole."""
    for key in [k for k in r.maps if k[0] == index and k[1] < base + length and base < k[1] + r.maps[k][0]]:
      if key[1] < base or base + length < key[1] + r.maps[key][0]:
        raise RmError(status.NV_ERR_NOT_SUPPORTED, "a mapping over a part of another one: not modelled")
      space.unmap(r, key)

  @call("UVM_UNMAP_EXTERNAL")
  def unmap_external(self, file: NvFile, p: Any, pid: int) -> None:
    self._check_range(p.base, p.length)
    space: UvmSpace = file.uvm
    r = space.find(p.base)
    if r is None or r.base + r.size < p.base + p.length:
      raise RmError(status.NV_ERR_INVALID_ADDRESS, f"no external range holds {p.base:#x}..{p.base + p.length:#x}")
    gpu = self._registered(space, p.gpuUuid)
    self._replace(space, r, gpu.index, p.base, p.length)

  @call("UVM_FREE")
  def free(self, file: NvFile, p: Any, pid: int) -> None:
    """A range goes with all its mappings."""
    self._check_range(p.base, p.length)
    space: UvmSpace = file.uvm
    r = space.last(p.base)
    if r is None or r.base != p.base or p.length != r.size:
      raise RmError(status.NV_ERR_INVALID_ADDRESS, f"no range begins at {p.base:#x}")
    for key in [*r.maps]:
      space.unmap(r, key)
    space.ranges.remove(r)

  @call("UVM_VALIDATE_VA_RANGE")
  def validate(self, file: NvFile, p: Any, pid: int) -> None:
    r = file.uvm.find(p.base)
    if r is None or (r.base, r.size) != (p.base, p.length):
      raise RmError(status.NV_ERR_INVALID_ADDRESS, f"no range is {p.length:#x} bytes at {p.base:#x}")
