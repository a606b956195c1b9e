"""RM behind /dev/nvidiactl and /dev/nvidiaN: clients, objects, memory, mappings, channels.

Calls, checks and status codes follow open-gpu-kernel-modules 580.142 (`arch/nvalloc/unix/src/escape.c`,
`kernel/rmapi/alloc_free.c`, `libraries/resserv`). RM answers with a status in the call's struct; an errno is for calls
that are none. A class that RM has and the mock has not is NV_ERR_NOT_SUPPORTED, and the report names it.
"""

from __future__ import annotations

import ctypes
import errno
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tinyhw.autogen import nv_rm as rm
from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_control as control
from tinyhw.autogen import nv_rm_status as status
from tinyhw.autogen.nv_rm_chips import RESOURCES
from tinyhw.core.errors import InvalidArgument, OutOfMemory
from tinyhw.core.memory import PAGE, Region
from tinyhw.core.table import Handlers
from tinyhw.mock.memory import Refused
from tinyhw.mock.nv import broken
from tinyhw.mock.nv.card import VENDOR
from tinyhw.mock.nv.driver.classes import Classes, bits
from tinyhw.mock.nv.driver.controls import CONTROLS
from tinyhw.mock.nv.driver.events import RmEvent
from tinyhw.mock.nv.driver.objects import (
  CLIENT_HANDLES,
  ChannelObject,
  Client,
  Context,
  MemoryObject,
  Node,
  NvFile,
  Physical,
  RmError,
  VaSpace,
  VirtualMemory,
  access_bits,
)

if TYPE_CHECKING:
  from tinyhw.mock.nv.machine import NvGpu, NvMachine

_ROOTS: Final = (alloc.NV01_ROOT, alloc.NV01_ROOT_NON_PRIV, alloc.NV01_ROOT_CLIENT)
_USERMODE_SIZE: Final = alloc.NVC361_NV_USERMODE__SIZE
# Which files calls are for (escape.c): NV_CTL_DEVICE_ONLY, NV_ACTUAL_DEVICE_ONLY.
_FILES: Final = {**dict.fromkeys((
  "NV_ESC_CARD_INFO", "NV_ESC_RM_FREE", "NV_ESC_RM_DUP_OBJECT", "NV_ESC_RM_CONTROL", "NV_ESC_RM_MAP_MEMORY_DMA",
  "NV_ESC_RM_UNMAP_MEMORY_DMA", "NV_ESC_RM_MAP_MEMORY", "NV_ESC_RM_UNMAP_MEMORY", "NV_ESC_RM_IDLE_CHANNELS"), "ctl"),
  "NV_ESC_RM_ALLOC_MEMORY": "gpu"}
_LINEAR: Final = 1 << 52  # what MAP_MEMORY gives as an address: it only names the mapping


def _asked(name: str, argument: Any) -> str:
  """What a call asks for: a control's name, a class's, or its own."""
  if name == "NV_ESC_RM_CONTROL" and (found := control.CONTROLS.get(argument.cmd)) is not None: return found.name
  if name == "NV_ESC_RM_ALLOC" and (made := RESOURCES.get(argument.hClass)) is not None: return made.name
  return name


class Rm(Classes):
  """RM of one machine."""

  calls: ClassVar[Handlers[str]] = Handlers("RM call")
  call = calls.handles
  version: ClassVar = rm.VERSION  # of the driver, as it tells it

  def __init__(self, machine: NvMachine) -> None:
    super().__init__(machine)
    self.clients: dict[int, Client] = {}
    self.usermode = [Region(f"GPU{g.index}.usermode", _USERMODE_SIZE) for g in machine.gpus]
    self._next_client = CLIENT_HANDLES
    self._next_linear = _LINEAR

  # ---- ioctls

  def ioctl(self, file: NvFile, request: int, argument: Any, pid: int) -> int:
    """One call on a ctl or gpu file."""
    row = rm.IOCTLS.get(request)
    number = request & 0xFF
    if row is None and number == rm.NV_ESC_CARD_INFO:
      row = rm.IOCTLS[next(r for r in rm.IOCTLS if r & 0xFF == number)]  # its size is that of the client's array
    if row is None:
      raise Refused(errno.EINVAL, f"no RM call has the number {request:#x}")
    if row.name == "NV_ESC_IOCTL_XFER_CMD":
      return self._transfer(file, argument, pid)
    return self._call(file, row.name, argument, pid)

  def _transfer(self, file: NvFile, x: Any, pid: int) -> int:
    """A call whose argument lies elsewhere."""
    row = next((r for n, r in rm.IOCTLS.items() if n & 0xFF == x.cmd and r.struct is not None
                and ctypes.sizeof(r.struct) == x.size), None)
    if row is None or row.struct is None:
      raise Refused(errno.EINVAL, f"NV_ESC_IOCTL_XFER_CMD of {x.cmd:#x} with {x.size} bytes")
    argument = row.struct.from_buffer_copy(self.user.read(x.ptr, x.size))
    result = self._call(file, row.name, argument, pid)
    self.user.write(x.ptr, bytes(argument))
    return result

  def _call(self, file: NvFile, name: str, argument: Any, pid: int) -> int:
    handler = self.calls.get(name)
    if handler is None:
      self.machine.doubt(f"RM call {name} is not modelled: EINVAL")
      raise Refused(errno.EINVAL, f"{name} is not modelled")
    if name in _FILES: self._only(file, _FILES[name])
    try:
      if file.gpu is not None and file.gpu.index in self.machine.injected.gone:
        raise RmError(status.NV_ERR_GPU_IS_LOST, "the card is gone from the bus")
      if self.machine.watched: broken.answer(self.machine, _asked(name, argument))
      handler(self, file, argument, pid)
    except RmError as refusal:
      self._set_status(argument, refusal.code)
      self.machine.trace.add("rm", "refused", f"{name}: {refusal}")
    except (OutOfMemory, MemoryError) as short:
      self._set_status(argument, status.NV_ERR_NO_MEMORY)
      self.machine.trace.add("rm", "refused", f"{name}: {short}")
    if self.machine.trace.enabled:
      self.machine.trace.add("rm", "ioctl", f"{name} {argument!r}"[:400])
    return 0

  @staticmethod
  def _set_status(argument: Any, code: int) -> None:
    place = argument.params if hasattr(argument, "params") and not isinstance(argument.params, int) else argument
    for field in ("status", "Status"):
      if hasattr(place, field):
        return setattr(place, field, code)
    raise Refused(errno.EINVAL, f"status {code:#x}")

  @staticmethod
  def _only(file: NvFile, kind: str) -> None:
    """NV_CTL_DEVICE_ONLY and NV_ACTUAL_DEVICE_ONLY."""
    if file.kind != kind:
      raise Refused(errno.EINVAL, f"this call is for {'nvidiactl' if kind == 'ctl' else 'nvidiaN'}")

  def client(self, file: NvFile, handle: int, missing: int = status.NV_ERR_INVALID_CLIENT) -> Client:
    """A client of the file that asks. `missing` is the status where there is none of that handle:
    NV_ERR_INVALID_OBJECT_HANDLE of what locks it first (_serverLockClientWithLockInfo)."""
    found = self.clients.get(handle)
    if found is None: raise RmError(missing, f"{handle:#x} is no client")
    if found.owner is not (file.registered or file):
      raise RmError(status.NV_ERR_INVALID_CLIENT, f"{handle:#x} is no client of this file")
    return found

  @call("NV_ESC_CHECK_VERSION_STR")
  def check_version(self, file: NvFile, p: Any, pid: int) -> None:
    """rm_perform_version_check."""
    asked = p.versionString.decode("ascii", "replace")
    p.versionString = self.version.encode()
    p.reply = rm.NV_RM_API_VERSION_REPLY_RECOGNIZED
    if p.cmd == rm.NV_RM_API_VERSION_CMD_STRICT and asked != self.version:
      p.reply = rm.NV_RM_API_VERSION_REPLY_UNRECOGNIZED
      raise Refused(errno.EINVAL, f"the client is for version {asked!r}, the driver is {self.version}")

  @call("NV_ESC_SYS_PARAMS")
  def sys_params(self, file: NvFile, p: Any, pid: int) -> None:
    p.memblock_size = 0

  @call("NV_ESC_WAIT_OPEN_COMPLETE")
  def wait_open_complete(self, file: NvFile, p: Any, pid: int) -> None:
    p.rc = 0
    p.adapterStatus = status.NV_OK

  @call("NV_ESC_CARD_INFO")
  def card_info(self, file: NvFile, p: Any, pid: int) -> None:
    """Each card in its place of the client's array."""
    rows = p if isinstance(p, ctypes.Array) else [p]
    for i, row in enumerate(rows):
      if i >= len(self.machine.gpus):
        row.valid = 0
        continue
      gpu = self.machine.gpus[i]
      row.valid, row.gpu_id, row.minor_number = 1, gpu.gpu_id, gpu.index
      pci = row.pci_info
      pci.bus, pci.vendor_id, pci.device_id = gpu.card.bus(gpu.index), VENDOR, gpu.card.device_id
      row.reg_size, row.fb_size = 16 << 20, gpu.vram.size

  @call("NV_ESC_REGISTER_FD")
  def register_fd(self, file: NvFile, p: Any, pid: int) -> None:
    """An nvidiaN file joins a ctl file."""
    ctl = self.machine.files_of(pid).get(p.ctl_fd)
    if file.registered is not None:
      raise Refused(errno.EINVAL, "the file is registered already")
    if ctl is None or ctl.kind != "ctl" or ctl is file or ctl.registered is not None:
      raise Refused(errno.EINVAL, f"{p.ctl_fd} is no nvidiactl file")
    file.registered = ctl

  @call("NV_ESC_ALLOC_OS_EVENT")
  def alloc_os_event(self, file: NvFile, p: Any, pid: int) -> None:
    p.Status = self.events.alloc(file, p.hClient, p.fd)

  @call("NV_ESC_FREE_OS_EVENT")
  def free_os_event(self, file: NvFile, p: Any, pid: int) -> None:
    p.Status = self.events.free(p.hClient, p.fd)

  # ---- objects

  @call("NV_ESC_RM_ALLOC")
  def alloc(self, file: NvFile, p: Any, pid: int) -> None:
    """Make an object."""
    p.status = status.NV_OK
    if p.hClass in _ROOTS:
      self._only(file, "ctl")
      p.hObjectNew = self._new_client(file, p.hObjectNew, pid).handle
      return
    if RESOURCES.get(p.hClass) is None or not RESOURCES[p.hClass].internal.startswith("Event"):
      self._only(file, "ctl")
    client = self.client(file, p.hRoot, status.NV_ERR_INVALID_OBJECT_HANDLE)
    p.hObjectNew = self.make(client, p.hObjectParent, p.hObjectNew, p.hClass, p.pAllocParms, p.paramsSize).handle

  def _new_client(self, file: NvFile, handle: int, pid: int) -> Client:
    if handle in self.clients:
      raise RmError(status.NV_ERR_INSERT_DUPLICATE_NAME, f"client {handle:#x} exists")
    if not handle:
      handle, self._next_client = self._next_client, self._next_client + 1
    client = self.clients[handle] = Client(handle, file, pid)
    client.objects[handle] = Node(client, handle, alloc.NV01_ROOT_CLIENT, None)
    return client

  def make(self, client: Client, parent_handle: int, handle: int, class_id: int, pointer: int, size: int) -> Node:
    """serverAllocResourceUnderLock and the object's constructor, in this order of checks."""
    row = RESOURCES.get(class_id)
    if row is None:
      raise RmError(status.NV_ERR_INVALID_CLASS, f"no class has the number {class_id:#x}")
    if row.privileged:
      raise RmError(status.NV_ERR_INSUFFICIENT_PERMISSIONS, f"{row.name} is for the kernel")
    parent = client.find(parent_handle or client.handle)
    if not row.several and any(c.internal == row.internal for c in parent.children):
      raise RmError(status.NV_ERR_STATE_IN_USE, f"{parent} has a {row.internal}, there is one at most")
    if row.parents != ("any",) and parent.internal not in row.parents:
      raise RmError(status.NV_ERR_INVALID_OBJECT_PARENT, f"{row.name} below {parent}: only below "
                    f"{', '.join(row.parents)}")
    gpu = parent.gpu
    if gpu is not None and class_id not in gpu.card.classes:
      raise RmError(status.NV_ERR_NOT_SUPPORTED, f"{gpu.card.chip} has no {row.name}")
    node = Node(client, client.new_handle(handle), class_id, parent, None, gpu)
    declared = alloc.PARAMETERS.get(class_id)
    params: Any = None
    if declared is not None and (pointer or row.required):
      params = self._params(row.name, declared, pointer, size, row.required)
    maker = self.classes.get(row.internal)
    if maker is None:
      self.machine.doubt(f"RM class {row.name} is not modelled: NV_ERR_NOT_SUPPORTED")
      raise RmError(status.NV_ERR_NOT_SUPPORTED, f"{row.name} is not modelled")
    try:
      node.data = maker(self, node, params)
    except BaseException:
      node.part()
      raise
    client.objects[node.handle] = node
    parent.children.append(node)
    if params is not None:
      self.user.write(pointer, bytes(params))
    return node

  def _params(self, name: str, declared: Any, pointer: int, size: int, required: bool) -> Any:
    if not pointer:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"{name} needs {declared.__name__}")
    if size and size != ctypes.sizeof(declared):
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"{name} with {size} bytes of parameters, "
                    f"{declared.__name__} has {ctypes.sizeof(declared)}")
    try:
      return declared.from_buffer_copy(self.user.read(pointer, ctypes.sizeof(declared)))
    except Refused as refusal:
      raise RmError(status.NV_ERR_INVALID_ADDRESS, refusal.why) from None

  @call("NV_ESC_RM_FREE")
  def free(self, file: NvFile, p: Any, pid: int) -> None:
    """Free an object, all below it, and what cannot be without it."""
    p.status = status.NV_OK
    client = self.client(file, p.hRoot, status.NV_ERR_INVALID_OBJECT_HANDLE)
    self.free_node(client.find(p.hObjectOld))

  def free_node(self, node: Node) -> None:
    """See `free`."""
    for below in list(node.tree()):
      if below.gone:
        continue
      below.gone = True
      for user in [*below.users]:
        if not user.gone:
          self.free_node(user)
      below.part()
      self._release(below)
      below.client.objects.pop(below.handle, None)
      if below.parent is not None and below in below.parent.children:
        below.parent.children.remove(below)
      if below.parent is None:
        self.clients.pop(below.client.handle, None)

  def _release(self, node: Node) -> None:
    data = node.data
    if isinstance(data, ChannelObject):
      data.channel.close()
      data.channel.gpu.forget(data.channel)
      if data.channel in self.machine.channels:
        self.machine.channels.remove(data.channel)
      if data.va.registered is not None:
        data.va.registered.channels.pop((node.client.handle, node.handle), None)
    elif isinstance(data, RmEvent):
      self.events.remove(data)
    elif isinstance(data, MemoryObject):
      for va in self.spaces():
        for address in [a for a, (_, _, owner) in va.maps.items() if owner is node]:
          self._unmap(va, address)
      data.physical.drop()
    elif isinstance(data, VirtualMemory):
      for address in [a for a in data.va.maps if data.base <= a < data.base + data.size]:
        self._unmap(data.va, address)
      if data.base in data.va.addresses._used:
        data.va.addresses.free(data.base)
    elif node in self.device_spaces:
      del self.device_spaces[node]
    elif isinstance(data, VaSpace):
      self.own_spaces.pop(node, None)
      for address in [*data.maps]:
        self._unmap(data, address)
      if data.registered is not None:
        data.registered.space_gone(data)

  def spaces(self) -> list[VaSpace]: return [*self.own_spaces.values(), *self.device_spaces.values()]

  def file_closed(self, file: NvFile) -> None:
    """The clients of a file go with it."""
    for client in [c for c in self.clients.values() if c.owner is file]:
      self.free_node(client.objects[client.handle])

  @call("NV_ESC_RM_DUP_OBJECT")
  def dup(self, file: NvFile, p: Any, pid: int) -> None:
    """Another handle for memory or an address space."""
    p.status = status.NV_OK
    client, source = self.client(file, p.hClient), self.client(file, p.hClientSrc).find(p.hObjectSrc)
    parent = client.find(p.hParent)
    if not isinstance(source.data, MemoryObject):
      raise RmError(status.NV_ERR_NOT_SUPPORTED, f"a second handle for {source}")
    if parent.internal not in source.row.parents:
      raise RmError(status.NV_ERR_INVALID_OBJECT_PARENT, f"{source} below {parent}")
    node = Node(client, client.new_handle(p.hObject), source.class_id, parent, None, parent.gpu)
    source.data.physical.hold()
    node.data = MemoryObject(source.data.physical, source.data.offset, source.data.size)
    client.objects[node.handle] = node
    parent.children.append(node)
    p.hObject = node.handle

  # ---- control

  @call("NV_ESC_RM_CONTROL")
  def control(self, file: NvFile, p: Any, pid: int) -> None:
    p.status = status.NV_OK
    client = self.client(file, p.hClient)
    CONTROLS.check(p)
    CONTROLS.run(self, client.find(p.hObject), p)

  # ---- memory

  @call("NV_ESC_RM_ALLOC_MEMORY")
  def alloc_memory(self, file: NvFile, p: Any, pid: int) -> None:
    """The older way to system memory, and the one to pages of the client."""
    a = p.params
    a.status = status.NV_OK
    client = self.client(file, a.hRoot)
    if a.hClass not in (alloc.NV01_MEMORY_SYSTEM_OS_DESCRIPTOR, alloc.NV01_MEMORY_SYSTEM):
      raise RmError(status.NV_ERR_NOT_SUPPORTED, f"NV_ESC_RM_ALLOC_MEMORY of class {a.hClass:#x}")
    parent = client.find(a.hObjectParent)
    row = RESOURCES[a.hClass]
    if parent.internal not in row.parents:
      raise RmError(status.NV_ERR_INVALID_OBJECT_PARENT, f"{row.name} below {parent}")
    pages = a.hClass == alloc.NV01_MEMORY_SYSTEM_OS_DESCRIPTOR
    if pages:
      self._check_user_flags(a.flags)
      if a.limit == (1 << 64) - 1:
        raise RmError(status.NV_ERR_INVALID_LIMIT, "pages of the client up to the end of all addresses")
    told = a.hObjectNew
    node = Node(client, client.new_handle(told), a.hClass, parent, None, parent.gpu)
    if pages:
      node.data = self._user_pages(node, a.pMemory, a.limit + 1)
    else:
      node.data = self._allocate(node, alloc.NV_MEMORY_ALLOCATION_PARAMS(size=a.limit + 1), None)
      a.limit = node.data.size - 1
    client.objects[node.handle] = node
    parent.children.append(node)
    a.hObjectNew = told if pages else node.handle  # of pages only the status comes back (RmAllocOsDescriptor)

  @staticmethod
  def _check_user_flags(flags: int) -> None:
    """What RmAllocOsDescriptor asks of NVOS02_FLAGS."""
    where, mapped, how = (bits(flags, place) for place in (
      rm.NVOS02_FLAGS_LOCATION, rm.NVOS02_FLAGS_MAPPING, rm.NVOS02_FLAGS_COHERENCY))
    if where != rm.NVOS02_FLAGS_LOCATION_PCI or mapped != rm.NVOS02_FLAGS_MAPPING_NO_MAP:
      raise RmError(status.NV_ERR_INVALID_FLAGS, "pages of the client have LOCATION_PCI and MAPPING_NO_MAP")
    if how not in (rm.NVOS02_FLAGS_COHERENCY_CACHED, rm.NVOS02_FLAGS_COHERENCY_WRITE_BACK,
                   rm.NVOS02_FLAGS_COHERENCY_UNCACHED):
      raise RmError(status.NV_ERR_INVALID_FLAGS, f"pages of the client with COHERENCY {how}")
    if bits(flags, rm.NVOS02_FLAGS_ALLOC_USER_READ_ONLY) or bits(flags, rm.NVOS02_FLAGS_ALLOC_DEVICE_READ_ONLY):
      raise RmError(status.NV_ERR_NOT_SUPPORTED, "pages of the client that are read only")

  def check_user_memory(self) -> None:
    """Pages that a client has unmapped behind our back are a page fault for GPUs, and no memory of others."""
    for row in [*self.user_memory]:
      _, physical, address, size = row
      if not physical.holders:
        self.user_memory.remove(row)
      elif not self.user.mapped(address, size):
        self.user_pages_gone(physical)

  def user_memory_gone(self, pid: int, start: int, end: int) -> None:
    """A client unmaps addresses."""
    for owner, physical, address, size in [*self.user_memory]:
      if physical.holders and owner == pid and address < end and start < address + size:
        self.user_pages_gone(physical)

  def user_pages_gone(self, physical: Physical) -> None:
    """A chip would keep the pages that the kernel has pinned; the mock has the client's own memory only."""
    physical.gone = True
    self.user_memory = [row for row in self.user_memory if row[1] is not physical]
    self.machine.doubt("memory of the client was unmapped while a GPU could reach it: GPUs fault there")
    for va in self.spaces():
      for address in [a for a, (_, memory, _) in va.maps.items() if memory is physical]:
        self._unmap(va, address)
      if va.registered is not None:
        va.registered.physical_gone(physical)

  # ---- mapping into GPUs

  @call("NV_ESC_RM_MAP_MEMORY_DMA")
  def map_dma(self, file: NvFile, p: Any, pid: int) -> None:
    """Map memory into a range of addresses, or into an address space."""
    p.status = status.NV_OK
    client = self.client(file, p.hClient)
    target, owner = client.find(p.hDma), client.find(p.hMemory)
    if not isinstance(owner.data, MemoryObject):
      raise RmError(status.NV_ERR_INVALID_OBJECT_HANDLE, f"{owner} is no memory")
    fixed = bool(bits(p.flags, rm.NVOS46_FLAGS_DMA_OFFSET_FIXED))
    if isinstance(target.data, VirtualMemory):
      va, low, high = target.data.va, target.data.base, target.data.base + target.data.size
      whole = target.internal == "VirtualMemory"  # a range of its own; the other names addresses of the space
    elif isinstance(target.data, VaSpace):
      va, low, high, whole = target.data, 0, 1 << 47, False
    else:
      raise RmError(status.NV_ERR_INVALID_OBJECT_HANDLE, f"{target} has no addresses")
    if va.external:
      raise RmError(status.NV_ERR_INVALID_OPERATION, f"{target}: UVM owns the page tables of this address space")
    if p.offset % PAGE or not p.length or p.offset + p.length > owner.data.size:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"{p.length:#x} bytes from {p.offset:#x} of {owner}, which has "
                    f"{owner.data.size:#x}")
    size = -(-p.length // PAGE) * PAGE
    if fixed or whole:
      address = p.dmaOffset if fixed else low
    else:
      address = va.addresses.alloc(size, max(PAGE, owner.data.physical.page_size))
    if address % PAGE or not low <= address <= high - size:
      raise RmError(status.NV_ERR_INVALID_OFFSET, f"{size:#x} bytes at {address:#x} of {target}")
    read_only = bits(p.flags, rm.NVOS46_FLAGS_ACCESS) == rm.NVOS46_FLAGS_ACCESS_READ_ONLY
    physical = owner.data.physical
    if physical.gpu is not None and physical.gpu is not va.gpu and not self._peers(client, va.gpu, physical.gpu):
      raise RmError(status.NV_ERR_INVALID_STATE, f"video memory of GPU {physical.gpu.index} without NV50_P2P")
    try:
      va.space.map(address, size, physical.backing, physical.offset + owner.data.offset + p.offset,
                   access_bits(read_only), uncached=physical.kind != "video")
    except InvalidArgument as taken:
      raise RmError(status.NV_ERR_STATE_IN_USE, str(taken)) from None
    va.maps[address] = size, physical, owner
    p.dmaOffset = address

  def _peers(self, client: Client, one: NvGpu, other: NvGpu) -> bool:
    return any(n.internal == "P2PApi" and {one, other} == n.data for n in client.objects.values()
               if isinstance(n.data, frozenset))

  @call("NV_ESC_RM_UNMAP_MEMORY_DMA")
  def unmap_dma(self, file: NvFile, p: Any, pid: int) -> None:
    p.status = status.NV_OK
    target = self.client(file, p.hClient).find(p.hDma)
    va = target.data.va if isinstance(target.data, VirtualMemory) else target.data
    if not isinstance(va, VaSpace):
      raise RmError(status.NV_ERR_INVALID_OBJECT_HANDLE, f"{target} has no addresses")
    if p.dmaOffset not in va.maps:
      raise RmError(status.NV_ERR_INVALID_OFFSET, f"nothing is mapped from {p.dmaOffset:#x} on")
    self._unmap(va, p.dmaOffset)

  def _unmap(self, va: VaSpace, address: int) -> None:
    size, _, _ = va.maps.pop(address)
    va.space.unmap(address, size)
    if address in va.addresses._used and not va.addresses._used[address] != size:
      va.addresses.free(address)

  # ---- mapping into the client

  @call("NV_ESC_RM_MAP_MEMORY")
  def map_memory(self, file: NvFile, p: Any, pid: int) -> None:
    """Say what the next mmap of another file maps."""
    m = p.params
    m.status = status.NV_OK
    client = self.client(file, m.hClient)
    client.find(m.hDevice)
    node = client.find(m.hMemory)
    target = self.machine.files_of(pid).get(p.fd)
    if target is None or target.kind not in ("ctl", "gpu"):
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"{p.fd} is no file of the driver")
    if target.context is not None:
      raise RmError(status.NV_ERR_STATE_IN_USE, f"file {p.fd} has a mapping already")
    read_only = bits(m.flags, rm.NVOS33_FLAGS_ACCESS) == rm.NVOS33_FLAGS_ACCESS_READ_ONLY
    if node.internal == "UserModeApi":
      gpu = self._gpu_of(node)
      context = Context(None, self.usermode[gpu.index], m.offset, m.length, access_bits(read_only), gpu)
      size, wanted = _USERMODE_SIZE, "gpu"
    elif isinstance(node.data, MemoryObject):
      region, start = node.data.at(m.offset)
      size, wanted = node.data.size, "ctl" if node.data.physical.kind == "system" else "gpu"
      context = Context(node.data.physical, region, start, m.length, access_bits(read_only))
    else:
      raise RmError(status.NV_ERR_INVALID_OBJECT_HANDLE, f"{node} cannot be mapped")
    if m.offset % PAGE or not m.length or m.offset + m.length > size:
      raise RmError(status.NV_ERR_INVALID_LIMIT, f"{m.length:#x} bytes from {m.offset:#x} of {node}, which has "
                    f"{size:#x}")
    if target.kind != wanted or wanted == "gpu" and target.gpu is not node.gpu:
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"{node} is mapped through a file of "
                    f"{'nvidiactl' if wanted == 'ctl' else 'its GPU'}, and {p.fd} is none")
    target.context = context
    self._next_linear += 1 << 30
    m.pLinearAddress = self._next_linear
    node.linear.add(self._next_linear)

  @call("NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO")
  def update_mapping(self, file: NvFile, p: Any, pid: int) -> None:
    p.status = status.NV_OK
    node = self.client(file, p.hClient).find(p.hMemory)
    if p.pOldCpuAddress not in node.linear:
      raise RmError(status.NV_ERR_OBJECT_NOT_FOUND, f"no mapping of {node} is at {p.pOldCpuAddress:#x}")
    node.linear.remove(p.pOldCpuAddress)
    node.linear.add(p.pNewCpuAddress)

  @call("NV_ESC_RM_UNMAP_MEMORY")
  def unmap_memory(self, file: NvFile, p: Any, pid: int) -> None:
    p.status = status.NV_OK
    node = self.client(file, p.hClient).find(p.hMemory)
    if p.pLinearAddress not in node.linear:
      raise RmError(status.NV_ERR_OBJECT_NOT_FOUND, f"no mapping of {node} is at {p.pLinearAddress:#x}")
    node.linear.remove(p.pLinearAddress)

  # ---- channels

  @call("NV_ESC_RM_IDLE_CHANNELS")
  def idle_channels(self, file: NvFile, p: Any, pid: int) -> None:
    p.status = status.NV_OK
    channel: ChannelObject = self.client(file, p.hClient).of(p.hChannel, ChannelObject)
    if channel.channel.busy or channel.channel.runnable():
      raise RmError(status.NV_ERR_TIMEOUT, f"{channel.channel.name} is not idle")

  def close(self) -> None:
    self.clients.clear()
    for region in self.usermode:
      region.close()
    self.user.close()
