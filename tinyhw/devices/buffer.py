"""Memory of tensors: a `Buffer` is typed memory on a device, and the graph's BUFFER nodes name it.

Memory is allocated on first use and goes back to its device when the last node or tensor that names it is
gone. It is lost when its device is closed: from then on every use of it raises `ValueLost`, also when a new
device has been opened under the same name.

Threads may share buffers: memory is given out once, with the device's lock. A finalizer takes no lock.
"""
from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tinyhw.core.errors import InvalidArgument, ValueLost
from tinyhw.core.locks import TABLES, shared_lock
from tinyhw.core.timeout import again
from tinyhw.devices.profile import span
from tinyhw.devices.registry import Device, OpenDevice
from tinyhw.drive.base import host_memory
from tinyhw.ir.dtype import DType
from tinyhw.ir.group import Cut, is_group, members
from tinyhw.ir.ops import Ops
from tinyhw.ir.size import highest, worth
from tinyhw.ir.uop import UOp

if TYPE_CHECKING:
  from tinyhw.drive.base import Allocation, Runtime

T = TypeVar("T")


class Buffer:
  """`size` elements of `dtype` on a device (by canonical name). Where launches decide the size there is memory for the
  most, `nbytes`; the elements come first in it, `filled` bytes."""
  __slots__ = ("device", "size", "dtype", "_allocation", "_owner", "_shared", "_stamp", "__weakref__")
  cut: Cut | None = None  # that of a group's

  def __init__(self, device: str, size: int, dtype: DType):
    self.device, self.size, self.dtype = device, size, dtype
    self._allocation: Allocation | None = None
    self._owner: OpenDevice | None = None
    self._shared: Buffer | None = None
    self._stamp = 0  # the device's timeline when something was last queued that writes it

  def __repr__(self) -> str:
    state = "" if self._allocation else ", no memory yet"
    return f"Buffer({self.device}, {self.size}, {self.dtype}{', lost' if self.lost else state})"

  @property
  def parts(self) -> tuple[Buffer, ...]:
    """The memory on each device: this one's own, but for a group's."""
    return (self,)

  @property
  def nbytes(self) -> int:
    """Bytes of the memory."""
    return highest(self.size) * self.dtype.itemsize

  @property
  def filled(self) -> int:
    """Bytes of all elements."""
    return worth(self.size) * self.dtype.itemsize

  @property
  def lost(self) -> bool:
    """Whether the device that held the memory was closed or reset, or what was to fill it was stopped."""
    return bool(self._fate())

  def _fate(self) -> str:
    """Why the value is lost, or nothing."""
    owner = self._owner
    if owner is None: return ""
    if owner.closed: return f"was lost when the device was {owner.closed}"
    if owner.runtime.dropped and owner.was_dropped((self._shared or self)._stamp):
      return "was never computed: its kernel was stopped, or one before it"
    return ""

  def overwritten(self) -> None:
    """Something is about to write all of the memory: what was in it is no matter."""
    self._stamp = 0

  def written(self) -> None:
    """Something that writes the memory was queued."""
    assert self._owner is not None
    self._stamp = self._owner.stamp()

  @property
  def allocation(self) -> Allocation:
    """The device memory, allocated now if it was not. Raises ValueLost."""
    found, owner = self._allocation, self._owner
    if found is not None and owner is not None and not owner.closed and not owner.runtime.dropped: return found
    if found is not None:
      self.check()
      return found
    owner = Device[self.device]
    if (shared := self._shared) is not None:
      self._allocation, self._owner = shared.allocation, shared._owner
      return shared.allocation
    with owner.memory:  # threads that share the buffer get one memory
      if self._allocation is None: self._owner, self._allocation = owner, owner.alloc(self.nbytes)
      return self._allocation

  def check(self) -> None:
    """Raise ValueLost where the memory is lost."""
    if why := self._fate():
      raise ValueLost(f"the value ({self.size:,} x {self.dtype}) {why}", where=self.device,
                      hint="make the tensor again, or read its value before Device.close()")

  def alias(self) -> Buffer:
    """Another buffer of the same memory: who sees one of the two in a launch knows by which name it was meant."""
    other = Buffer(self.device, self.size, self.dtype)
    other._allocation, other._owner, other._shared = self.allocation, self._owner, self
    return other

  def sharing(self, size: int, dtype: DType) -> Buffer:
    """A buffer in the memory of this one, which has to have room for it. Whoever makes several sees to it that their
    values are never needed at one time."""
    other = Buffer(self.device, size, dtype)
    other._shared = self
    return other

  def _runtime(self) -> tuple[Runtime, Allocation]:
    """The runtime that owns the memory, and the memory."""
    allocation = self.allocation
    assert self._owner is not None
    return self._owner.runtime, allocation

  def copyin(self, data: memoryview) -> Buffer:
    """Fill from host bytes."""
    if data.nbytes != self.filled: raise InvalidArgument(f"{data.nbytes} bytes for a buffer of {self.filled}")
    self.overwritten()
    runtime, allocation = self._runtime()
    with span("copy", f"copy to {self.device}", bytes=data.nbytes): runtime.copyin(allocation, data.cast("B"))
    self.written()
    return self

  def copyout(self, data: memoryview) -> memoryview:
    """Fill host bytes; waits for the work queued before."""
    if data.nbytes != self.filled:
      raise InvalidArgument(f"{self.filled} bytes of a buffer for {data.nbytes} bytes of host memory")
    runtime, allocation = self._runtime()
    with span("copy", f"copy from {self.device}", bytes=data.nbytes): runtime.copyout(data.cast("B"), allocation)
    return data

  def copy_from(self, source: Buffer) -> None:
    """Fill from a buffer on any device: by the driver where it can reach both, through the host otherwise."""
    if source.nbytes != self.nbytes: raise InvalidArgument(f"a copy from {source.nbytes} to {self.nbytes} bytes")
    self.overwritten()
    (there, origin), (here, target) = source._runtime(), self._runtime()
    if here is there or here.is_peer(there):
      if here is not there: there.synchronize()
      here.copy(target, origin, self.nbytes)
      self.written()
      if here is not there: here.synchronize()
    else:
      with host_memory("host memory of a copy", source.filled): raw = memoryview(bytearray(source.filled))
      here.copyin(target, source.copyout(raw))
      self.written()

  def __del__(self) -> None:
    if self._shared is None and self._allocation is not None and self._owner is not None:
      try: self._owner.free(self._allocation)
      except KeyboardInterrupt: again()


class BorrowedBuffer(Buffer):
  """Memory of this process that somebody else owns, and keeps for as long as this lives."""
  __slots__ = ()

  def __init__(self, device: str, size: int, dtype: DType, address: int):
    super().__init__(device, size, dtype)
    if not 0 <= address < 1 << 64:
      raise InvalidArgument(f"memory at {address:#x}", hint="an address is 64 bits")
    if address % dtype.itemsize:
      raise InvalidArgument(f"{dtype} at {address:#x}, which is no multiple of {dtype.itemsize}",
                            hint="kernels rely on it; copy the memory: Tensor(array)")
    self._owner = Device[device]
    self._allocation = self._owner.runtime.borrow(address, self.nbytes)

  def __del__(self) -> None: pass  # it is not ours to give back


class GroupBuffer(Buffer):
  """Memory of a group of devices: a buffer on each, which hold parts of the value (`cut`), or (None) all of it."""
  __slots__ = ("cut", "_parts")

  def __init__(self, device: str, size: int, dtype: DType, cut: Cut | None = None,
               parts: Sequence[Buffer] | None = None):
    super().__init__(device, size, dtype)
    self.cut: Cut | None = cut
    sizes = part_sizes(device, size, cut)
    self._parts = tuple(parts or (Buffer(d, n, dtype) for d, n in zip(members(device), sizes)))

  @property
  def parts(self) -> tuple[Buffer, ...]: return self._parts

  @property
  def nbytes(self) -> int: return sum(p.nbytes for p in self._parts)

  def _fate(self) -> str: return next((why for p in self._parts if (why := p._fate())), "")

  @property
  def allocation(self) -> Allocation:
    raise InvalidArgument(f"memory on {self.device} as a whole", hint="each device has a part of its own: `parts`")

  def alias(self) -> Buffer:
    return GroupBuffer(self.device, self.size, self.dtype, self.cut, [p.alias() for p in self._parts])

  def copyin(self, data: memoryview) -> Buffer:
    if self.cut is not None: raise InvalidArgument(f"bytes for memory that is cut on {self.device}")
    for p in self._parts: p.copyin(data)
    return self


def part_sizes(device: str, size: int, cut: Cut | None) -> list[int]:
  """The elements that each member of a group has of so many."""
  if cut is None: return [size] * len(members(device))
  return [size // sum(cut[1]) * n for n in cut[1]]


def memory(device: str, size: int, dtype: DType, cut: Cut | None = None) -> Buffer:
  """A buffer on a device or a group."""
  return GroupBuffer(device, size, dtype, cut) if is_group(device) else Buffer(device, size, dtype)


class ByNode(Generic[T]):
  """A value for some nodes, which goes with its node. Looking one up takes no lock and makes nothing."""

  def __init__(self) -> None: self._rows: dict[int, tuple[weakref.ref[UOp], T]] = {}  # by the node's id

  def __len__(self) -> int: return len(self._rows)

  def get(self, node: UOp) -> T | None:
    """The node's value."""
    row = self._rows.get(id(node))  # that of this very node: a row goes before its node's place is another's
    return None if row is None else row[1]

  def set(self, node: UOp, value: T) -> None:
    """Give the node a value."""
    rows, key = self._rows, id(node)
    def gone(reference: weakref.ref[UOp]) -> None:
      try:
        row = rows.get(key)
        if row is not None and row[0] is reference: del rows[key]
      except KeyboardInterrupt: again()
    rows[key] = weakref.ref(node, gone), value

  def first(self, node: UOp, value: T) -> T:
    """The node's value, which is this one where it had none."""
    with _setting:
      if (known := self.get(node)) is not None: return known
      self.set(node, value)
      return value

  def forget(self, node: UOp) -> None:
    """Take the node's value from it."""
    self._rows.pop(id(node), None)

  def items(self) -> list[tuple[UOp, T]]:
    """All nodes with their values, at this moment."""
    return [(node, value) for reference, value in list(self._rows.values()) if (node := reference()) is not None]


_setting = shared_lock(TABLES)
_buffers: ByNode[Buffer] = ByNode()


def buffer_of(node: UOp) -> Buffer:
  """The memory that a BUFFER node names."""
  if (known := _buffers.get(node)) is not None: return known
  if node.op is not Ops.BUFFER: raise InvalidArgument(f"{node.op.name} is not a BUFFER")
  return _buffers.first(node, memory(node.arg.device, node.arg.size, node.dtype, node.arg.cut))


def new_node(buffer: Buffer) -> UOp:
  """A fresh BUFFER node that names existing memory."""
  node = UOp.new_buffer(buffer.device, buffer.size, buffer.dtype, buffer.cut)
  _buffers.set(node, buffer)
  return node


class BufferView:
  """Movements of a buffer: what a value in memory looks like. `plain`: its elements in order."""
  __slots__ = ("moves", "shape", "dtype", "device", "plain")

  def __init__(self, graph: UOp) -> None:
    moves: list[tuple[Ops, DType, Any]] = []
    self.shape, self.dtype, self.device = graph.shape, graph.dtype, graph.device
    while graph.op is not Ops.BUFFER:
      moves.append((graph.op, graph.dtype, graph.arg))
      graph, = graph.src
    self.moves = tuple(reversed(moves))
    self.plain = all(op is Ops.RESHAPE for op, _, _ in moves)

  def node(self, buffer: Buffer) -> UOp:
    """The graph over this buffer."""
    node = new_node(buffer)
    for op, dtype, arg in self.moves: node = UOp(op, dtype, (node,), arg)
    return node


Held = tuple[Buffer, BufferView]
"""A value in memory that no node was made for."""


def from_host(data: bytes | bytearray | memoryview, device: str, size: int, dtype: DType) -> UOp:
  """A BUFFER node with memory on `device`, filled from host bytes."""
  return new_node(memory(device, size, dtype).copyin(memoryview(data)))
