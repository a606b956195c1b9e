"""What RM keeps for its clients: a tree of objects for each, named by handles, and the memory behind them.

A handle means something in its client only. What an object is (its internal class), and below which parents it may
stand, are facts (`autogen/nv_rm_chips.py`); what it holds is one of the classes here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import nv_rm_status as status
from tinyhw.autogen.nv_rm_chips import RESOURCES, Resource
from tinyhw.core.memory import Access, AddressSpace, Allocator, HostRegion, Region

if TYPE_CHECKING:
  from tinyhw.mock.nv.chip.channel import Channel, Group
  from tinyhw.mock.nv.machine import NvGpu

CLIENT_HANDLES: Final = 0xC1D0_0000  # RS_CLIENT_HANDLE_BASE: handles of clients that RM chooses
OBJECT_HANDLES: Final = 0xCAF0_0000  # RS_UNIQUE_HANDLE_BASE: the same of objects
FIRST_ADDRESS: Final = 0x1_0000_0000  # from where RM gives out virtual addresses
ADDRESS_BITS: Final = 47  # of those that it gives out


class RmError(Exception):
  """A refusal of RM: a status code, with the reason that only the mock tells."""

  def __init__(self, code: int, why: str) -> None:
    super().__init__(f"{status_name(code)}: {why}")
    self.code, self.why = code, why


def status_name(code: int) -> str:
  """NV_ERR_... of a status."""
  row = status.STATUS.get(code)
  return row[0] if row is not None else hex(code)


@dataclass(eq=False)
class Physical:
  """Memory that was allocated: `size` bytes of `backing` at `offset`. It is free again when its last holder goes.

  `kind` is "video", "system" or "user" (pages of the client).
  """

  kind: str
  gpu: NvGpu | None
  backing: Region | HostRegion
  offset: int
  size: int
  allocator: Allocator | None
  page_size: int
  holders: int = 1
  gone: bool = False

  def hold(self) -> Physical:
    self.holders += 1
    return self

  def drop(self) -> None:
    """One holder fewer."""
    self.holders -= 1
    if not self.holders and self.allocator is not None:
      assert isinstance(self.backing, Region)
      self.backing.discard(self.offset, self.size)
      self.allocator.free(self.offset)


@dataclass(eq=False)
class VaSpace:
  """A GPU's address space. `external`: UVM owns its page tables. `maps` are RM's own mappings by address."""

  gpu: NvGpu
  space: AddressSpace
  external: bool
  addresses: Allocator = field(default_factory=lambda: Allocator(
    FIRST_ADDRESS, (1 << ADDRESS_BITS) - FIRST_ADDRESS, name="GPU virtual addresses"))
  maps: dict[int, tuple[int, Physical, Node]] = field(default_factory=dict)
  registered: Any = None  # the UVM space that it is registered with


@dataclass(eq=False)
class VirtualMemory:
  """A range of addresses to map memory into."""

  va: VaSpace
  base: int
  size: int


@dataclass(eq=False)
class MemoryObject:
  """A memory object; several may share what is behind them (NV_ESC_RM_DUP_OBJECT). `parts` is (offset, size)."""

  physical: Physical
  offset: int
  size: int

  def at(self, offset: int) -> tuple[Region, int]:
    """A place in it, as host memory. Raises RmError for user memory."""
    if not isinstance(self.physical.backing, Region):
      raise RmError(status.NV_ERR_NOT_SUPPORTED, "user memory in this place")
    return self.physical.backing, self.physical.offset + self.offset + offset


@dataclass(eq=False)
class GroupObject:
  """A channel group (TSG), its address space, and the engine that it is for."""

  group: Group
  va: VaSpace | None
  engine: int
  timeslice_us: int = 0


@dataclass(eq=False)
class ShareObject:
  """A context share (sub-context) of a group."""

  va: VaSpace
  number: int


@dataclass(eq=False)
class ChannelObject:
  """A channel. `notifier` is the memory object of its error notifier."""

  channel: Channel
  va: VaSpace
  engine: int
  token: int
  notifier: MemoryObject | None
  token_index: int | None = None


@dataclass(eq=False)
class Node:
  """An object: its place in the tree, what it is, and what it holds. `users` are objects that go with it, `linear` the
  addresses under which it is mapped into its client."""

  client: Client
  handle: int
  class_id: int
  parent: Node | None
  data: Any = None
  gpu: NvGpu | None = None
  children: list[Node] = field(default_factory=list)
  users: dict[Node, None] = field(default_factory=dict)  # in the order in which they came
  uses: list[Node] = field(default_factory=list)
  linear: set[int] = field(default_factory=set)
  gone: bool = False

  def goes_with(self, other: Node) -> None:
    """This object is gone when another one is."""
    other.users[self] = None
    self.uses.append(other)

  def part(self) -> None:
    """It is gone, or came to nothing: nobody knows of it any more."""
    for other in self.uses:
      other.users.pop(self, None)
    self.uses.clear()

  @property
  def row(self) -> Resource:
    return RESOURCES[self.class_id]

  @property
  def internal(self) -> str:
    return self.row.internal

  def __repr__(self) -> str:
    return f"{self.row.name} {self.handle:#x}"

  def tree(self) -> Iterator[Node]:
    """Those below it and itself, the last made first."""
    for child in reversed(self.children):
      yield from child.tree()
    yield self


@dataclass(eq=False)
class Client:
  """A client (NV01_ROOT_CLIENT): its objects by handle. It belongs to the file that made it."""

  handle: int
  owner: Any
  pid: int
  objects: dict[int, Node] = field(default_factory=dict)
  generated: int = 0

  def find(self, handle: int) -> Node:
    """clientGetResourceRef."""
    found = self.objects.get(handle)
    if found is None:
      raise RmError(status.NV_ERR_OBJECT_NOT_FOUND, f"client {self.handle:#x} has no object {handle:#x}")
    return found

  def of(self, handle: int, kind: type[Any], code: int = status.NV_ERR_INVALID_OBJECT_HANDLE) -> Any:
    """What an object of this kind holds."""
    node = self.find(handle)
    if not isinstance(node.data, kind):
      raise RmError(code, f"{node} is no {kind.__name__}")
    return node.data

  def new_handle(self, handle: int) -> int:
    """clientAssignResourceHandle: the one that is asked for, or a new one for 0."""
    while not handle:
      candidate = OBJECT_HANDLES + self.generated
      self.generated += 1
      if candidate not in self.objects:
        handle = candidate
    if handle == self.handle:
      raise RmError(status.NV_ERR_INVALID_OBJECT_HANDLE, f"{handle:#x} is the client's own handle")
    if handle in self.objects:
      raise RmError(status.NV_ERR_INSERT_DUPLICATE_NAME, f"{handle:#x} is taken")
    return handle


@dataclass(eq=False)
class Context:
  """What the next mmap of a file maps, as NV_ESC_RM_MAP_MEMORY said."""

  physical: Physical | None
  region: Region
  offset: int
  size: int
  access: int
  usermode: NvGpu | None = None


@dataclass(eq=False)
class NvFile:
  """An open file. `kind` is "ctl", "gpu", "uvm" or "tools"; `registered` the ctl file of NV_ESC_REGISTER_FD."""

  fd: int
  kind: str
  pid: int
  gpu: NvGpu | None = None
  registered: NvFile | None = None
  context: Context | None = None
  uvm: Any = None
  pending: bool = False  # an event that carries no data has come, and nobody has polled since

  def close(self) -> None:
    if self.fd >= 0:
      os.close(self.fd)
    self.fd = -1

  def __del__(self) -> None:
    self.close()


def access_bits(read_only: bool) -> int:
  """Page-table permissions."""
  return Access.READ | Access.EXECUTE | (0 if read_only else Access.WRITE | Access.ATOMIC)
