"""Copies of rows and boxes, and all copies of CUDA arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tinyhw.autogen import cuda
from tinyhw.core.memory import Access
from tinyhw.mock.cuda.calls import invalid, serves
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.memory import allocations
from tinyhw.mock.cuda.memory.allocations import DEVICE, HOST, UNIFIED
from tinyhw.mock.cuda.memory.arrays import Array, given
from tinyhw.mock.cuda.streams.streams import queue, stream_of
from tinyhw.mock.cuda.watching import Doing, box_rows

ARRAY = cuda.CU_MEMORYTYPE_ARRAY
_NODE = cuda.CU_GRAPH_NODE_TYPE_MEMCPY
Box = tuple[int, int, int]
"""Bytes of a row, rows, slices."""


@dataclass(frozen=True)
class Side:
  """Where a box lies: its kind of memory, its first byte, bytes from row to row and from slice to slice."""

  kind: int
  first: int
  pitch: int = 0
  slice: int = 0

  def check(self, m: CudaMachine, box: Box, access: int) -> None:
    """Raises Failed for what does not lie in one allocation."""
    size = (box[2] - 1) * self.slice + (box[1] - 1) * self.pitch + box[0]
    if self.kind == DEVICE: allocations.check(m, self.first, size, access)
    elif self.kind != ARRAY:
      allocations.rectangle(0, size, 1)
      piece = m.piece_at(self.first)
      if piece is None or piece.host: m.user.read(self.first + size - 1, 1)  # the last byte is there
      else: allocations.check(m, self.first, size, access)

  def pageable(self, m: CudaMachine) -> bool:
    """Whether it is memory of the client that no GPU knows."""
    return self.kind in (HOST, UNIFIED) and m.piece_at(self.first) is None

  def _rows(self, box: Box) -> list[int]:
    return [self.first + z * self.slice + y * self.pitch for z in range(box[2]) for y in range(box[1])]

  def take(self, m: CudaMachine, box: Box) -> list[bytes]:
    """The rows that are there."""
    if self.kind == ARRAY:
      return [m.space.read(at, box[0]) for at in self._rows(box)]
    return [allocations.read(m, self.kind, at, box[0]) for at in self._rows(box)]

  def put(self, m: CudaMachine, box: Box, rows: list[bytes]) -> None:
    """Store rows."""
    for at, row in zip(self._rows(box), rows, strict=True):
      if self.kind == ARRAY:
        m.space.write(at, row)
      else:
        allocations.write(m, self.kind, at, row)


def copy(m: CudaMachine, to: Side, come: Side, box: Box, stream: int | None) -> None:
  """A copy of a box. Without a stream the call waits."""
  m.working()
  if not all(box):
    return
  handle = stream or 0
  if stream_of(m, handle).capture is None:  # memory of a graph's own is not there yet
    to.check(m, box, Access.WRITE)
    come.check(m, box, Access.READ)
  if come.pageable(m) and stream_of(m, handle).capture is None:
    rows = come.take(m, box)  # staged before the call returns, as a driver does
    job = queue(m, handle, "a copy of rows", lambda: to.put(m, box, rows), _NODE, doing(to, None, box))
  else:
    job = queue(m, handle, "a copy of rows", lambda: move(m, to, come, box), _NODE, doing(to, come, box))
  if stream is None or job is not None and to.pageable(m):
    stream_of(m, handle).wait()


def doing(to: Side, come: Side | None, box: Box) -> Doing:
  """What a copy of a box reads and writes."""
  sides = [box_rows(s.first, box[0], s.pitch, box[1], s.slice, box[2]) if s is not None and all(box) else ()
           for s in (come, to)]
  return Doing(_NODE, sides[0] or (), sides[1] or (), exact=None not in sides)


def move(m: CudaMachine, to: Side, come: Side, box: Box) -> None:
  """Copy a box now."""
  to.check(m, box, Access.WRITE)
  come.check(m, box, Access.READ)
  to.put(m, box, come.take(m, box))


# ---- lines of arrays

def _line(m: CudaMachine, handle: int, offset: int, size: int, whole: bool = True) -> Side:
  """Bytes of an array of one dimension; `whole`: only whole elements of it are copied."""
  array: Array = m.find(handle, Array, cuda.CUDA_ERROR_INVALID_VALUE)
  if array.rows * array.slices > 1:
    raise invalid(f"{handle:#x} is no array of one dimension")
  if whole and (offset % array.header.element or size % array.header.element):
    raise invalid(f"{size} bytes at {offset} are no elements of {array.header.element} bytes")
  if offset + size > array.row:
    raise invalid(f"{size:,} bytes at {offset:,} pass the end of an array of {array.row:,} bytes")
  return Side(ARRAY, array.header.address + offset)


def _row(size: int) -> tuple[int, int, int]:
  """What is copied: bytes of a row, rows, and slices."""
  return size, 1, 1


@serves("cuMemcpyHtoA_v2")
def memcpy_htoa(m: CudaMachine, to: int, offset: int, come: int, size: int) -> None:
  copy(m, _line(m, to, offset, size, False), Side(HOST, come), _row(size), None)


@serves("cuMemcpyAtoH_v2")
def memcpy_atoh(m: CudaMachine, to: int, come: int, offset: int, size: int) -> None:
  copy(m, Side(HOST, to), _line(m, come, offset, size, False), _row(size), None)


@serves("cuMemcpyHtoAAsync_v2")
def memcpy_htoa_async(m: CudaMachine, to: int, offset: int, come: int, size: int, stream: int) -> None:
  copy(m, _line(m, to, offset, size, False), Side(HOST, come), _row(size), stream)


@serves("cuMemcpyAtoHAsync_v2")
def memcpy_atoh_async(m: CudaMachine, to: int, come: int, offset: int, size: int, stream: int) -> None:
  copy(m, Side(HOST, to), _line(m, come, offset, size, False), _row(size), stream)


@serves("cuMemcpyDtoA_v2")
def memcpy_dtoa(m: CudaMachine, to: int, offset: int, come: int, size: int) -> None:
  copy(m, _line(m, to, offset, size), Side(DEVICE, come), _row(size), 0)


@serves("cuMemcpyAtoD_v2")
def memcpy_atod(m: CudaMachine, to: int, come: int, offset: int, size: int) -> None:
  copy(m, Side(DEVICE, to), _line(m, come, offset, size), _row(size), 0)


@serves("cuMemcpyAtoA_v2")
def memcpy_atoa(m: CudaMachine, to: int, at: int, come: int, offset: int, size: int) -> None:
  copy(m, _line(m, to, at, size), _line(m, come, offset, size), _row(size), 0)


# ---- rows and boxes

def side(m: CudaMachine, p: Any, which: str, box: Box) -> Side:
  """One end of what CUDA_MEMCPY2D or CUDA_MEMCPY3D says."""
  def said(name: str) -> int:
    return int(getattr(p, which + name, 0))
  kind, x, y, z = said("MemoryType"), said("XInBytes"), said("Y"), said("Z")
  if said("LOD"):
    raise invalid("a level of detail that is not 0")
  if kind == ARRAY:
    array: Array = m.find(said("Array"), Array, cuda.CUDA_ERROR_INVALID_VALUE)
    h = array.header
    if x % h.element or box[0] % h.element:
      raise invalid(f"{box[0]} bytes at {x} are no elements of {h.element} bytes")
    if x + box[0] > array.row or y + box[1] > array.rows or z + box[2] > array.slices:
      raise invalid(f"{box} at {x}, {y}, {z} passes the end of an array of {array.row} bytes, {array.rows} rows and "
                    f"{array.slices} slices")
    return Side(ARRAY, h.address + (z * array.rows + y) * h.row(0) + x, h.row(0), array.rows * h.row(0))
  if kind not in (HOST, DEVICE, UNIFIED):
    raise invalid(f"memory of type {kind}")
  pitch, height = said("Pitch") or x + box[0], said("Height") or y + box[1]
  if pitch < x + box[0] and (box[1] > 1 or box[2] > 1):
    raise invalid(f"a pitch of {pitch} bytes for rows of {x + box[0]}")
  if height < y + box[1] and box[2] > 1:
    raise invalid(f"slices of {height} rows for {y + box[1]}")
  first = said("Host" if kind == HOST else "Device") + z * height * pitch + y * pitch + x
  return Side(kind, first, pitch, height * pitch)


@serves("cuMemcpy2D_v2", "cuMemcpy2DUnaligned_v2")
def memcpy_2d(m: CudaMachine, pointer: int, stream: int | None = None) -> None:
  p = given(m, pointer, cuda.CUDA_MEMCPY2D_v2)
  box = (p.WidthInBytes, p.Height, 1)
  copy(m, side(m, p, "dst", box), side(m, p, "src", box), box, stream)


@serves("cuMemcpy2DAsync_v2")
def memcpy_2d_async(m: CudaMachine, pointer: int, stream: int) -> None:
  memcpy_2d(m, pointer, stream)


@serves("cuMemcpy3D_v2")
def memcpy_3d(m: CudaMachine, pointer: int, stream: int | None = None) -> None:
  p = given(m, pointer, cuda.CUDA_MEMCPY3D_v2)
  if p.reserved0 or p.reserved1:
    raise invalid("reserved fields that are not 0")
  box = (p.WidthInBytes, p.Height, p.Depth)
  copy(m, side(m, p, "dst", box), side(m, p, "src", box), box, stream)


@serves("cuMemcpy3DAsync_v2")
def memcpy_3d_async(m: CudaMachine, pointer: int, stream: int) -> None:
  memcpy_3d(m, pointer, stream)
