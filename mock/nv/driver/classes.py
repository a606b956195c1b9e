"""What RM's objects are: one maker for each internal class, with the checks of its constructor.

After open-gpu-kernel-modules 580.142: `kernel/gpu/fifo/kernel_channel*.c`, `kernel/mem_mgr`, `kernel/gpu/device`.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_status as status
from tinyhw.core.memory import PAGE, AddressSpace, HostRegion
from tinyhw.core.table import Handlers
from tinyhw.mock.memory import UserMemory
from tinyhw.mock.nv.chip.channel import USERD_SIZE, Channel, Group
from tinyhw.mock.nv.driver.events import OsEvents, RmEvent
from tinyhw.mock.nv.driver.objects import (
  ChannelObject,
  Client,
  GroupObject,
  MemoryObject,
  Node,
  Physical,
  RmError,
  ShareObject,
  VaSpace,
  VirtualMemory,
)
from tinyhw.wire.gpfifo import Notification

if TYPE_CHECKING:
  from tinyhw.mock.nv.machine import NvGpu, NvMachine

BIG_PAGE: Final = 64 << 10
HUGE_PAGE: Final = 2 << 20
_PAGES: Final = {alloc.NVOS32_ATTR_PAGE_SIZE_4KB: PAGE, alloc.NVOS32_ATTR_PAGE_SIZE_BIG: BIG_PAGE,
                 alloc.NVOS32_ATTR_PAGE_SIZE_HUGE: HUGE_PAGE}


def bits(value: int, where: tuple[int, int]) -> int:
  """A field (hi, lo) of a word."""
  hi, lo = where
  return value >> lo & (1 << hi - lo + 1) - 1


class Classes:
  """The makers. Each is given the new object, which stands in no tree yet, and its parameters, and returns what the
  object holds."""

  classes: ClassVar[Handlers[str]] = Handlers("RM class")
  makes = classes.handles

  def __init__(self, machine: NvMachine) -> None:
    self.machine = machine
    self.user = UserMemory()
    self.events = OsEvents(machine)
    self.user_memory: list[tuple[int, Physical, int, int]] = []  # (pid, memory, address, size) of pages of clients
    self.device_spaces: dict[Node, VaSpace] = {}  # the address spaces that devices have of themselves
    self.own_spaces: dict[Node, VaSpace] = {}  # those that clients have made

  # ---- what objects are

  def _gpu_of(self, node: Node) -> NvGpu:
    if node.parent is None or node.parent.gpu is None:
      raise RmError(status.NV_ERR_INVALID_OBJECT_PARENT, f"{node} without a device")
    return node.parent.gpu

  @makes("Device")
  def device(self, node: Node, p: Any) -> None:
    index = 0 if p is None else p.deviceId
    if index >= len(self.machine.gpus):
      raise RmError(status.NV_ERR_INVALID_DEVICE, f"deviceId {index} of {len(self.machine.gpus)} devices")
    node.gpu = self.machine.gpus[index]

  @makes("Subdevice")
  def subdevice(self, node: Node, p: Any) -> None:
    if p is not None and p.subDeviceId:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"subDeviceId {p.subDeviceId}: devices are not linked")

  @makes("VaSpaceApi")
  def va_space(self, node: Node, p: Any) -> VaSpace:
    gpu = self._gpu_of(node)
    external = bool(p.flags & alloc.NV_VASPACE_ALLOCATION_FLAGS_IS_EXTERNALLY_OWNED)
    if p.index == alloc.NV_VASPACE_ALLOCATION_INDEX_GPU_DEVICE:
      return self.default_space(node)
    if p.index != alloc.NV_VASPACE_ALLOCATION_INDEX_GPU_NEW:
      raise RmError(status.NV_ERR_NOT_SUPPORTED, f"an address space with index {p.index}")
    p.vaSize = p.vaSize or 1 << 49
    found = self.own_spaces[node] = VaSpace(gpu, AddressSpace(f"GPU{gpu.index}.{node.handle:#x}"), external)
    return found

  def default_space(self, node: Node) -> VaSpace:
    """The address space of a device itself."""
    device = node
    while device.internal != "Device":
      if device.parent is None:
        raise RmError(status.NV_ERR_INVALID_OBJECT_PARENT, f"{node} is below no device")
      device = device.parent
    found = self.device_spaces.get(device)
    if found is None:
      gpu = device.gpu
      assert gpu is not None
      found = self.device_spaces[device] = VaSpace(gpu, AddressSpace(f"GPU{gpu.index}.device"), False)
    return found

  def space_of(self, node: Node, handle: int) -> VaSpace:
    """An address space by its handle, or the device's own for 0; the object goes with it."""
    if not handle:
      return self.default_space(node)
    owner = node.client.find(handle)
    if not isinstance(owner.data, VaSpace):
      raise RmError(status.NV_ERR_INVALID_OBJECT_HANDLE, f"{owner} is no address space")
    node.goes_with(owner)
    return owner.data

  # ---- memory

  def _page_size(self, attributes: int, default: int) -> int:
    chosen = bits(attributes, alloc.NVOS32_ATTR_PAGE_SIZE)
    return _PAGES.get(chosen, default)

  def _allocate(self, node: Node, p: Any, gpu: NvGpu | None) -> MemoryObject:
    if not p.size:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"{node} of no bytes")
    if p.flags & alloc.NVOS32_ALLOC_FLAGS_FIXED_ADDRESS_ALLOCATE:
      raise RmError(status.NV_ERR_NOT_SUPPORTED, "memory at a place that the client chooses")
    page = self._page_size(p.attr, BIG_PAGE if gpu is not None else PAGE)
    size = -(-p.size // page) * page
    align = max(page, p.alignment if p.flags & alloc.NVOS32_ALLOC_FLAGS_ALIGNMENT_FORCE else 0)
    if align & align - 1:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"an alignment of {align:#x}")
    machine = self.machine
    allocator, region = (machine.system_allocator, machine.system) if gpu is None else (gpu.vram_allocator, gpu.vram)
    offset = allocator.alloc(size, align)
    p.size, p.offset, p.limit = size, offset, size - 1
    physical = Physical("system" if gpu is None else "video", gpu, region, offset, size, allocator, page)
    return MemoryObject(physical, 0, size)

  @makes("VideoMemory")
  def video_memory(self, node: Node, p: Any) -> MemoryObject:
    if p.flags & alloc.NVOS32_ALLOC_FLAGS_VIRTUAL:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, "video memory with the flag VIRTUAL")
    if bits(p.attr, alloc.NVOS32_ATTR_LOCATION) == alloc.NVOS32_ATTR_LOCATION_PCI:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, "video memory with LOCATION_PCI")
    return self._allocate(node, p, self._gpu_of(node))

  @makes("SystemMemory")
  def system_memory(self, node: Node, p: Any) -> MemoryObject:
    if bits(p.attr, alloc.NVOS32_ATTR_LOCATION) == alloc.NVOS32_ATTR_LOCATION_VIDMEM and p.attr:
      self.machine.doubt(f"NV01_MEMORY_SYSTEM {node.handle:#x} with LOCATION_VIDMEM: RM places it in system memory")
    return self._allocate(node, p, None)

  @makes("OsDescMemory")
  def os_memory(self, node: Node, p: Any) -> MemoryObject:
    return self._user_pages(node, p.descriptor, p.limit + 1)

  def _user_pages(self, node: Node, address: int, size: int) -> MemoryObject:
    if address % PAGE:
      raise RmError(status.NV_ERR_NOT_SUPPORTED, f"pages of the client at {address:#x}")
    size = -(-size // PAGE) * PAGE
    if not self.user.mapped(address, size, write=True):
      raise RmError(status.NV_ERR_INVALID_ADDRESS, f"{size:#x} bytes at {address:#x} are not all mapped")
    physical = Physical("user", None, HostRegion(address, size), 0, size, None, PAGE)
    self.user_memory.append((node.client.pid, physical, address, size))
    return MemoryObject(physical, 0, size)

  @makes("VirtualMemoryRange", "VirtualMemory")
  def virtual_memory(self, node: Node, p: Any) -> VirtualMemory:
    """Addresses to map memory into."""
    va = self.space_of(node, p.hVASpace)
    if isinstance(p, alloc.NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS):
      limit = p.limit or (1 << 47) - 1
      return VirtualMemory(va, p.offset, limit + 1 - p.offset)
    if not p.size:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"{node} of no bytes")
    page = self._page_size(p.attr, BIG_PAGE)
    size = -(-p.size // page) * page
    if p.flags & alloc.NVOS32_ALLOC_FLAGS_FIXED_ADDRESS_ALLOCATE:
      base = p.offset
    else:
      base = va.addresses.alloc(size, max(page, p.alignment))
    p.offset, p.size, p.limit = base, size, base + size - 1
    return VirtualMemory(va, base, size)

  # ---- channels

  def _engine(self, gpu: NvGpu, engine: int) -> tuple[str, int]:
    """(kind, number) of an NV2080_ENGINE_TYPE."""
    if engine in (alloc.NV2080_ENGINE_TYPE_NULL, alloc.NV2080_ENGINE_TYPE_GRAPHICS):
      return "compute", 0
    number = engine - alloc.NV2080_ENGINE_TYPE_COPY0
    if 0 <= number < len(gpu.card.engines(gpu.card.copy_class)):
      return "copy", number
    raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"engine type {engine:#x}")

  @makes("KernelChannelGroupApi")
  def channel_group(self, node: Node, p: Any) -> GroupObject:
    gpu = self._gpu_of(node)
    kind, _ = self._engine(gpu, p.engineType)
    return GroupObject(Group(kind), self.space_of(node, p.hVASpace), p.engineType)

  @makes("KernelCtxShareApi")
  def context_share(self, node: Node, p: Any) -> ShareObject:
    assert node.parent is not None
    va = self.space_of(node, p.hVASpace)
    p.subctxId = sum(isinstance(c.data, ShareObject) for c in node.parent.children)
    return ShareObject(va, p.subctxId)

  @makes("KernelChannel")
  def channel(self, node: Node, p: Any) -> ChannelObject:
    """KernelChannel's constructor: the ring, USERD, the notifier, the address space, the engine."""
    gpu, client = self._gpu_of(node), node.client
    assert node.parent is not None
    parent = node.parent.data
    if isinstance(parent, GroupObject):
      group, va, engine = parent.group, parent.va, parent.engine
      if p.engineType not in (alloc.NV2080_ENGINE_TYPE_NULL, engine) and engine:
        raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"a channel for engine {p.engineType:#x} in a group for "
                      f"{engine:#x}")
      engine = engine or p.engineType
      kind, number = self._engine(gpu, engine)
      group.kind = kind
    else:
      engine = p.engineType
      kind, number = self._engine(gpu, engine)
      group, va = Group(kind), None
    if p.hContextShare:
      share = client.of(p.hContextShare, ShareObject)
      node.goes_with(client.find(p.hContextShare))
      if p.hVASpace:
        raise RmError(status.NV_ERR_INVALID_ARGUMENT, "a context share and an address space")
      va = share.va
    elif p.hVASpace or va is None:
      va = self.space_of(node, p.hVASpace)
    assert va is not None
    if not p.gpFifoEntries or p.gpFifoEntries & p.gpFifoEntries - 1:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"a ring of {p.gpFifoEntries} entries: they are a power of two")
    if p.gpFifoOffset % 8:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"a ring at {p.gpFifoOffset:#x}")
    if not p.hUserdMemory[0]:
      raise RmError(status.NV_ERR_INVALID_OBJECT_HANDLE, "a channel without memory for USERD")
    memory: MemoryObject = client.of(p.hUserdMemory[0], MemoryObject)
    if p.userdOffset[0] % USERD_SIZE or p.userdOffset[0] + USERD_SIZE > memory.size:
      raise RmError(status.NV_ERR_INVALID_OFFSET, f"USERD at {p.userdOffset[0]:#x} of {memory.size:#x} bytes")
    node.goes_with(client.find(p.hUserdMemory[0]))
    notifier: MemoryObject | None = None
    if p.hObjectError:
      notifier = self.notifier(client, p.hObjectError)
      node.goes_with(client.find(p.hObjectError))
    channel = Channel(gpu, group, gpu.new_number(), va.space, p.gpFifoOffset, p.gpFifoEntries,
                      memory.at(p.userdOffset[0]), None if notifier is None else notifier.at(0), (), number)
    channel.unregistered = va.external
    self.machine.channels.append(channel)
    runlist = 0 if kind == "compute" else 1 + number
    token = runlist << 16 | channel.number
    gpu.by_token[token] = channel
    p.cid = channel.number
    return ChannelObject(channel, va, engine, token, notifier)

  def notifier(self, client: Client, handle: int) -> MemoryObject:
    """The memory of a notifier: a memory object or a context DMA."""
    node = client.find(handle)
    memory: MemoryObject | None = node.data if isinstance(node.data, MemoryObject) else None
    if memory is None:
      raise RmError(status.NV_ERR_INVALID_OBJECT_HANDLE, f"{node} is no memory for a notifier")
    if memory.size < ctypes.sizeof(Notification):
      raise RmError(status.NV_ERR_INVALID_LIMIT, f"a notifier of {memory.size} bytes")
    return memory

  @makes("ContextDma")
  def context_dma(self, node: Node, p: Any) -> MemoryObject:
    memory: MemoryObject = node.client.of(p.hMemory, MemoryObject)
    if p.offset + p.limit + 1 > memory.size:
      raise RmError(status.NV_ERR_INVALID_LIMIT, f"{p.limit + 1:#x} bytes from {p.offset:#x} of {memory.size:#x}")
    memory.physical.hold()
    node.goes_with(node.client.find(p.hMemory))
    return MemoryObject(memory.physical, memory.offset + p.offset, p.limit + 1)

  @makes("KernelGraphicsObject")
  def compute_object(self, node: Node, p: Any) -> None:
    self._engine_object(node, "compute")

  @makes("KernelCeContext")
  def copy_object(self, node: Node, p: Any) -> None:
    self._engine_object(node, "copy")

  def _engine_object(self, node: Node, kind: str) -> None:
    """An engine's class on a channel: from here on it takes the class's methods."""
    assert node.parent is not None and isinstance(node.parent.data, ChannelObject)
    channel = node.parent.data.channel
    card = channel.gpu.card
    if node.class_id not in (card.compute_class, card.copy_class):
      self.machine.doubt(f"RM class {node.row.name} is not modelled: NV_ERR_NOT_SUPPORTED")
      raise RmError(status.NV_ERR_NOT_SUPPORTED, f"{node.row.name} is not modelled")
    if kind == "compute" and channel.kind == "copy":
      raise RmError(status.NV_ERR_INVALID_CLASS, f"{node.row.name} on a channel of a copy engine")
    channel.classes = (*channel.classes, node.class_id)

  @makes("UserModeApi")
  def user_mode(self, node: Node, p: Any) -> None:
    """The page with the doorbell."""

  @makes("KernelSMDebuggerSession")
  def debugger(self, node: Node, p: Any) -> None:
    node.client.find(p.hClass3dObject)

  @makes("P2PApi")
  def peers(self, node: Node, p: Any) -> frozenset[NvGpu]:
    gpus = [node.client.find(h) for h in (p.hSubDevice, p.hPeerSubDevice)]
    if any(n.internal != "Subdevice" for n in gpus):
      raise RmError(status.NV_ERR_INVALID_OBJECT_HANDLE, "NV50_P2P is between two subdevices")
    for n in gpus:
      node.goes_with(n)
    return frozenset(n.gpu for n in gpus if n.gpu is not None)

  @makes("Event")
  def event(self, node: Node, p: Any) -> RmEvent:
    return self.events.make(node, p)
