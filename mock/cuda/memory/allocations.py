"""Memory: video memory, pinned and managed memory of the host, copies and fills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.autogen import cuda
from tinyhw.core.errors import OutOfMemory
from tinyhw.core.mapped import give_back, map_memory, unmap_memory
from tinyhw.core.memory import PAGE, Access, Backing, HostRegion
from tinyhw.mock.cuda.calls import Failed, invalid, only, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine, Gpu, Piece
from tinyhw.mock.cuda.streams.streams import queue, stream_of
from tinyhw.mock.cuda.watching import Doing, box_rows
from tinyhw.mock.memory import page_align
from tinyhw.mock.running import MOST_PIECES, PIECES

if TYPE_CHECKING:
  from tinyhw.mock.cuda.graphs.works import Reserved
  from tinyhw.mock.draws import Draws
  from tinyhw.mock.nv.chip.jobs import Turns

HOST, DEVICE = cuda.CU_MEMORYTYPE_HOST, cuda.CU_MEMORYTYPE_DEVICE
LAST: Final = 1 << 47  # no address of a process lies behind
UNIFIED: Final = cuda.CU_MEMORYTYPE_UNIFIED
PITCH: Final = 512
_COPY: Final = cuda.CU_GRAPH_NODE_TYPE_MEMCPY


def allocate(m: CudaMachine, context: Context, size: int, opaque: str = "", gpu: Gpu | None = None,
             reserved: Reserved | None = None, file: Backing | None = None) -> Piece:
  """Video memory at addresses of its own, an unmapped page behind it. What is `opaque` no call knows by its address.
  `gpu` is the card that has it, where that is not the context's; `reserved` a graph's addresses for it; `file` has
  its bytes in place of the card's memory."""
  if size <= 0:
    raise invalid(f"an allocation of {size} bytes")
  gpu, whole = gpu or context.gpu, page_align(size)
  offset = gpu.allocator.alloc(whole)
  address = addresses_for(m, whole) if reserved is None else reserved.address
  m.space.map(address, whole, file or gpu.vram, offset)
  m.space.used[address] = size, opaque or "memory of cuMemAlloc"
  piece = m.pieces[address] = Piece(address, size, DEVICE, gpu, context, file or gpu.vram, offset, opaque=bool(opaque),
                                    reserved=reserved, ends="" if opaque else "cuMemFree")
  return piece


def addresses_for(m: CudaMachine, whole: int) -> int:
  """Addresses for so many bytes of whole pages, and one page more."""
  return m.addresses.alloc(whole + PAGE, 1 << 9 if whole < 1 << 21 else 1 << 21)


def _pin(m: CudaMachine, context: Context, address: int, size: int, ends: str, managed: bool = False) -> Piece:
  """Let GPUs reach memory of the client by its own address."""
  start, end = address & -PAGE, page_align(address + size)
  if not m.user.mapped(start, end - start, True):
    raise invalid(f"host memory at {address:#x} is not mapped")
  region = HostRegion(start, end - start)
  m.space.map(start, end - start, region)
  m.space.used[address] = size, "memory of the host"
  piece = m.pieces[address] = Piece(address, size, HOST, context.gpu if managed else None, context, region,
                                    managed=managed, ends=ends)
  return piece


def release(m: CudaMachine, piece: Piece) -> None:
  """Memory goes."""
  del m.pieces[piece.address]
  m.gone(piece, m.space.used.pop(piece.address, (0, "memory"))[1])
  if piece.pool is not None: piece.pool.gave(piece.size)
  if piece.kind == DEVICE and piece.gpu is not None:
    whole = page_align(piece.size)
    m.space.unmap(piece.address, whole)
    if piece.reserved is None: m.addresses.free(piece.address)
    else: piece.gpu.graph_bytes -= whole
    if piece.opened is not None or piece.pool is not None and piece.pool.imported: return  # another process frees it
    give_back(piece.backing.u8.ctypes.data + piece.offset, whole)
    piece.gpu.allocator.free(piece.offset)
    return
  start, end = piece.address & -PAGE, page_align(piece.address + piece.size)
  m.space.unmap(start, end - start)


def drop(m: CudaMachine, piece: Piece) -> None:
  """Memory goes, with that of the host which the driver has mapped for it."""
  release(m, piece)
  if piece.kind == HOST and piece.ends != "cuMemHostUnregister": unmap_memory(piece.address, page_align(piece.size))


def settle(m: CudaMachine, context: Context) -> None:
  """Freeing waits for what is queued."""
  for stream in list(context.streams):
    if stream.queue:
      stream.wait()
    elif m.watch is not None and stream.last is not None: m.watch.waited([stream.last], True, 0, context)


# ---- allocation

@serves("cuMemAlloc_v2")
def mem_alloc(m: CudaMachine, out: int, size: int) -> None:
  m.out(out, "Q", allocate(m, m.working(), size).address)


@serves("cuMemAllocPitch_v2")
def mem_alloc_pitch(m: CudaMachine, out: int, pitch: int, width: int, height: int, element: int) -> None:
  if element not in (4, 8, 16):
    raise invalid(f"elements of {element} bytes: there are 4, 8, 16")
  row = -(-width // PITCH) * PITCH
  m.out(out, "Q", allocate(m, m.working(), row * height).address)
  m.out(pitch, "Q", row)


def _given_back(m: CudaMachine, address: int, call: str, refusal: Failed) -> None:
  """Memory that a call gives back goes once what is queued has ended; the refusal is for any other."""
  piece = m.pieces.get(address)
  if piece is None or piece.ends != call: raise refusal
  assert piece.context is not None
  settle(m, piece.context)
  drop(m, piece)


@serves("cuMemFree_v2")
def mem_free(m: CudaMachine, address: int) -> None:
  if address: _given_back(m, address, "cuMemFree", invalid(f"{address:#x} is not the start of an allocation"))


@serves("cuMemFreeAsync")
def mem_free_async(m: CudaMachine, address: int, handle: int) -> None:
  capture = stream_of(m, handle).capture
  if capture is not None:
    capture.take_free(stream_of(m, handle), address)
    return
  piece = m.pieces.get(address)
  if piece is None and address in m.reserved:  # a graph's, which a launch that is queued brings
    def gone() -> None:
      if address not in m.pieces: raise invalid(f"the graph's memory at {address:#x} is not there")
      release(m, m.pieces[address])
    queue(m, handle, "the end of an allocation", gone, doing=_freeing(address, 1))
    return
  if piece is None or piece.ends != "cuMemFree" or piece.managed:
    raise invalid(f"{address:#x} is not the start of an allocation")
  queue(m, handle, "the end of an allocation", lambda: release(m, piece), doing=_freeing(address, piece.size))


def _freeing(address: int, size: int) -> Doing:
  return Doing(cuda.CU_GRAPH_NODE_TYPE_MEM_FREE, writes=((address, size),))


@serves("cuMemGetInfo_v2")
def mem_get_info(m: CudaMachine, free: int, total: int) -> None:
  gpu = m.working().gpu
  m.out(free, "Q", gpu.allocator.free_bytes)
  m.out(total, "Q", gpu.vram.size)


@serves("cuMemGetAddressRange_v2")
def mem_get_address_range(m: CudaMachine, base: int, size: int, address: int) -> None:
  piece = m.piece_at(address)
  if piece is None:
    raise Failed(cuda.CUDA_ERROR_NOT_FOUND, f"{address:#x} is in no allocation", question=True)
  if base:
    m.out(base, "Q", piece.address)
  if size:
    m.out(size, "Q", piece.size)


def _host(m: CudaMachine, size: int, managed: bool) -> int: return _mapped(m, m.working(), size, managed)


def _mapped(m: CudaMachine, context: Context, size: int, managed: bool) -> int:
  if size <= 0:
    raise invalid(f"an allocation of {size} bytes")
  try:
    address = map_memory(-1, page_align(size))
  except OSError:
    raise OutOfMemory("host memory", size, 0) from None
  _pin(m, context, address, size, "cuMemFree" if managed else "cuMemFreeHost", managed)
  return address


def managed(m: CudaMachine, context: Context, size: int) -> Piece:
  """Memory that host and cards reach by one address."""
  return m.pieces[_mapped(m, context, size, True)]


_PINNED: Final = (cuda.CU_MEMHOSTALLOC_PORTABLE | cuda.CU_MEMHOSTALLOC_DEVICEMAP | cuda.CU_MEMHOSTALLOC_WRITECOMBINED)

_REGISTERED: Final = (cuda.CU_MEMHOSTREGISTER_PORTABLE | cuda.CU_MEMHOSTREGISTER_DEVICEMAP
                      | cuda.CU_MEMHOSTREGISTER_IOMEMORY | cuda.CU_MEMHOSTREGISTER_READ_ONLY)


@serves("cuMemAllocHost_v2")
def mem_alloc_host(m: CudaMachine, out: int, size: int) -> None:
  mem_host_alloc(m, out, size, 0)


@serves("cuMemHostAlloc")
def mem_host_alloc(m: CudaMachine, out: int, size: int, flags: int) -> None:
  only(flags, _PINNED, "pinned memory")
  address = _host(m, size, False)
  m.pieces[address].flags = flags
  m.out(out, "Q", address)


@serves("cuMemHostGetFlags")
def mem_host_get_flags(m: CudaMachine, out: int, address: int) -> None:
  """What pinned memory was asked for with; of memory that the program had, nobody is told."""
  piece = m.pieces.at(address)
  if piece is None or piece.flags is None: raise invalid(f"{address:#x} is no memory of cuMemHostAlloc")
  m.out(out, "I", piece.flags)


@serves("cuMemAllocManaged")
def mem_alloc_managed(m: CudaMachine, out: int, size: int, flags: int) -> None:
  if flags not in (cuda.CU_MEM_ATTACH_GLOBAL, cuda.CU_MEM_ATTACH_HOST):
    raise invalid(f"attachment {flags:#x} of managed memory")
  m.out(out, "Q", _host(m, size, True))


@serves("cuMemFreeHost")
def mem_free_host(m: CudaMachine, address: int) -> None:
  _given_back(m, address, "cuMemFreeHost", invalid(f"{address:#x} is no pinned memory of the driver's"))


@serves("cuMemHostRegister_v2")
def mem_host_register(m: CudaMachine, address: int, size: int, flags: int) -> None:
  context = m.working()
  only(flags, _REGISTERED, "pinned memory")
  if not address or size <= 0: raise invalid(f"{size:,} bytes at {address:#x}")
  start, end = address & -PAGE, page_align(address + size)
  if any(p.kind == HOST and p.address & -PAGE < end and start < page_align(p.address + p.size)
         for p in m.pieces.values()):
    raise Failed(cuda.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, f"{address:#x}")
  _pin(m, context, address, size, "cuMemHostUnregister")


@serves("cuMemHostUnregister")
def mem_host_unregister(m: CudaMachine, address: int) -> None:
  _given_back(m, address, "cuMemHostUnregister", Failed(cuda.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, f"{address:#x}"))


@serves("cuMemHostGetDevicePointer_v2")
def mem_host_get_device_pointer(m: CudaMachine, out: int, address: int, flags: int) -> None:
  piece = m.piece_at(address)
  only(flags, 0, "a pointer")
  if piece is None or not piece.host:
    raise invalid(f"{address:#x} is no pinned memory")
  m.out(out, "Q", address)


@serves("cuPointerGetAttribute")
def pointer_get_attribute(m: CudaMachine, out: int, attribute: int, address: int) -> None:
  piece = m.piece_at(address)
  if piece is None:
    raise Failed(cuda.CUDA_ERROR_INVALID_VALUE, f"{address:#x} is in no allocation", question=True)
  m.out(out, *_attribute(piece, attribute, address))


@serves("cuPointerGetAttributes")
def pointer_get_attributes(m: CudaMachine, count: int, attributes: int, data: int, address: int) -> None:
  piece = m.piece_at(address)
  for wanted, out in zip(m.get(attributes, f"{count}i"), m.get(data, f"{count}Q"), strict=True):
    form, value = ("Q", 0) if piece is None else _attribute(piece, wanted, address)
    m.out(out, form, value)


def _attribute(piece: Piece, attribute: int, address: int) -> tuple[str, int]:
  known: dict[int, tuple[str, int]] = {
    cuda.CU_POINTER_ATTRIBUTE_CONTEXT: ("Q", piece.context.handle if piece.context else 0),
    cuda.CU_POINTER_ATTRIBUTE_MEMORY_TYPE: ("I", piece.kind),
    cuda.CU_POINTER_ATTRIBUTE_DEVICE_POINTER: ("Q", address),
    cuda.CU_POINTER_ATTRIBUTE_HOST_POINTER: ("Q", address if piece.host else 0),
    cuda.CU_POINTER_ATTRIBUTE_IS_MANAGED: ("I", int(piece.managed)),
    cuda.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: ("i", piece.device),
    cuda.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: ("Q", piece.address),
    cuda.CU_POINTER_ATTRIBUTE_RANGE_SIZE: ("Q", piece.size),
    cuda.CU_POINTER_ATTRIBUTE_MAPPED: ("I", 1),
    cuda.CU_POINTER_ATTRIBUTE_BUFFER_ID: ("Q", piece.address),
    cuda.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: ("Q", piece.pool.handle if piece.pool else 0),
  }
  if attribute not in known:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"pointer attribute {attribute} is not modelled")
  return known[attribute]


# ---- copies

def read(m: CudaMachine, kind: int, address: int, size: int) -> bytes:
  """Bytes of the client or of the GPUs; UNIFIED is what the address says."""
  device = kind == DEVICE or kind == UNIFIED and m.piece_at(address) is not None
  if device:
    check(m, address, size, Access.READ)
    return m.space.read(address, size)
  return m.user.read(address, size)


def write(m: CudaMachine, kind: int, address: int, data: bytes) -> None:
  """Store bytes."""
  device = kind == DEVICE or kind == UNIFIED and m.piece_at(address) is not None
  if device:
    check(m, address, len(data), Access.WRITE)
    m.space.write(address, data)
  else:
    m.user.write(address, data)


def check(m: CudaMachine, address: int, size: int, access: int) -> None:
  """Raises Failed for what is not in one allocation."""
  piece = m.piece_at(address)
  while size and piece is not None and piece.mapped and address + size > piece.address + piece.size:
    size -= piece.address + piece.size - address  # mappings that lie together are one range
    address = piece.address + piece.size
    piece = m.piece_at(address)
  if size and (piece is None or address + size > piece.address + piece.size):
    where = "; ".join([f"{address:#x} is in no allocation", *m.was(address)[:1]]) if piece is None else (
      f"{size:,} bytes at {address:#x} pass the end of an allocation of {piece.size:,} bytes")
    raise invalid(where)


def _copy(m: CudaMachine, to: tuple[int, int], come: tuple[int, int], size: int, stream: int | None) -> None:
  """A copy of `size` bytes between two places, each (kind, address). Without a stream the call waits."""
  m.working()
  if not size:
    return
  wait = stream is None
  handle = stream or 0
  for (kind, address), access in ((to, Access.WRITE), (come, Access.READ)):
    if kind == DEVICE and stream_of(m, handle).capture is None:  # memory of a graph's own is not there yet
      check(m, address, size, access)

  doing = Doing(_COPY, ((come[1], size),), ((to[1], size),))

  def pageable(place: tuple[int, int]) -> bool:  # what a GPU has is in an allocation
    return m.piece_at(place[1]) is None
  if pageable(come) and stream_of(m, handle).capture is None:
    data = m.user.read(come[1], size)  # staged before the call returns, as a driver does
    job = queue(m, handle, "a copy", lambda: write(m, *to, data), _COPY, Doing(_COPY, writes=((to[1], size),)))
  elif m.draws is not None and stream_of(m, handle).capture is None:
    job = stream_of(m, handle).add("a copy", _pieces(m, to, come, size, m.draws), doing=doing)
  else:
    job = queue(m, handle, "a copy", lambda: write(m, *to, read(m, *come, size)), _COPY, doing)
  if wait or job is not None and pageable(to):
    stream_of(m, handle).wait()


def _pieces(m: CudaMachine, to: tuple[int, int], come: tuple[int, int], size: int, draws: Draws) -> Turns:
  """A copy that a schedule may have in parts, between which others come."""
  step = size
  if not come[1] - size < to[1] < come[1] + size:
    step = -(-size // (1 + draws.number("copies", PIECES, MOST_PIECES)))
  for at in range(0, size, step):
    if at: yield None
    write(m, to[0], to[1] + at, read(m, come[0], come[1] + at, min(step, size - at)))


@serves("cuMemcpyHtoD_v2")
def memcpy_htod(m: CudaMachine, to: int, come: int, size: int) -> None:
  _copy(m, (DEVICE, to), (HOST, come), size, None)


@serves("cuMemcpyDtoH_v2")
def memcpy_dtoh(m: CudaMachine, to: int, come: int, size: int) -> None:
  _copy(m, (HOST, to), (DEVICE, come), size, None)


@serves("cuMemcpyDtoD_v2")
def memcpy_dtod(m: CudaMachine, to: int, come: int, size: int) -> None:
  _copy(m, (DEVICE, to), (DEVICE, come), size, 0)


@serves("cuMemcpy")
def memcpy(m: CudaMachine, to: int, come: int, size: int) -> None:
  _copy(m, (UNIFIED, to), (UNIFIED, come), size, None)


@serves("cuMemcpyHtoDAsync_v2")
def memcpy_htod_async(m: CudaMachine, to: int, come: int, size: int, stream: int) -> None:
  _copy(m, (DEVICE, to), (HOST, come), size, stream)


@serves("cuMemcpyDtoHAsync_v2")
def memcpy_dtoh_async(m: CudaMachine, to: int, come: int, size: int, stream: int) -> None:
  _copy(m, (HOST, to), (DEVICE, come), size, stream)


@serves("cuMemcpyDtoDAsync_v2")
def memcpy_dtod_async(m: CudaMachine, to: int, come: int, size: int, stream: int) -> None:
  _copy(m, (DEVICE, to), (DEVICE, come), size, stream)


@serves("cuMemcpyAsync")
def memcpy_async(m: CudaMachine, to: int, come: int, size: int, stream: int) -> None:
  _copy(m, (UNIFIED, to), (UNIFIED, come), size, stream)


@serves("cuMemcpyPeerAsync")
def memcpy_peer_async(m: CudaMachine, to: int, there: int, come: int, here: int, size: int, stream: int) -> None:
  for handle in (there, here):
    m.find(handle, Context, cuda.CUDA_ERROR_INVALID_CONTEXT).check()
  _copy(m, (DEVICE, to), (DEVICE, come), size, stream)


@serves("cuMemcpyPeer")
def memcpy_peer(m: CudaMachine, to: int, there: int, come: int, here: int, size: int) -> None:
  memcpy_peer_async(m, to, there, come, here, size, 0)


# ---- fills

FILLED: Final = 1 << 20  # bytes that are written at a time: they stay in the processor's cache


def rectangle(pitch: int, width: int, rows: int) -> None:
  """Raises Failed for rows that lie in each other, or end behind all addresses."""
  if rows > 1 and pitch < width: raise invalid(f"a pitch of {pitch:,} bytes for rows of {width:,}")
  if (rows - 1) * pitch + width > LAST: raise invalid(f"{rows:,} rows of {width:,} bytes, {pitch:,} from each other")


def fill(m: CudaMachine, address: int, pitch: int, value: int, width: int, count: int, rows: int) -> None:
  """`rows` of `count` elements of `width` bytes."""
  kind: Any = {1: np.uint8, 2: np.uint16, 4: np.uint32}[width]
  piece = np.full(min(count, FILLED // width), value & (1 << 8 * width) - 1, kind).tobytes()
  size = count * width
  for at in range(address, address + rows * pitch, pitch) if rows > 1 else (address,):
    check(m, at, size, Access.WRITE)
    for done in range(0, size, len(piece)): m.space.write(at + done, piece[:size - done])


def filling(address: int, pitch: int, width: int, count: int) -> Doing:
  """What a fill of `count` rows of `width` bytes writes."""
  found = box_rows(address, width, pitch, count) if width * count else ()
  return Doing(cuda.CU_GRAPH_NODE_TYPE_MEMSET, writes=found or (), exact=found is not None)


def _fills(width: int) -> None:
  def plain(m: CudaMachine, address: int, value: int, count: int, stream: int | None = None) -> None:
    lines(m, address, count * width, value, count, 1, stream)

  def lines(m: CudaMachine, address: int, pitch: int, value: int, count: int, rows: int,
            stream: int | None = None) -> None:
    m.working()
    if address % width or rows > 1 and pitch % width:
      raise invalid(f"{address:#x} is no multiple of {width}")
    if not count * rows:
      return
    rectangle(pitch, count * width, rows)
    if stream_of(m, stream or 0).capture is None:
      check(m, address, (rows - 1) * pitch + count * width, Access.WRITE)
    queue(m, stream or 0, "a fill", lambda: fill(m, address, pitch, value, width, count, rows),
          cuda.CU_GRAPH_NODE_TYPE_MEMSET, filling(address, pitch, count * width, rows))
    piece = m.piece_at(address)
    if stream is None and piece is not None and piece.host:  # "API synchronization behavior" of the manual
      stream_of(m, 0).wait()

  name = f"D{8 * width}"
  serves(f"cuMemset{name}_v2", f"cuMemset{name}Async")(plain)
  serves(f"cuMemset{name.replace('D', 'D2D')}_v2", f"cuMemset{name.replace('D', 'D2D')}Async")(lines)


for _width in (1, 2, 4):
  _fills(_width)

