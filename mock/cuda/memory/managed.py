"""Managed memory: what programs advise and prefetch, told back page by page.

The mock's managed memory is the client's own, which all GPUs reach as it is: nothing migrates, so advice and prefetches
change no value. What they ask is checked, and kept for cuMemRangeGetAttribute (driver API, "Unified Addressing").
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tinyhw.autogen import cuda
from tinyhw.core.memory import PAGE
from tinyhw.mock.cuda.calls import Failed, invalid, only, serves
from tinyhw.mock.cuda.machine import CudaMachine, Piece
from tinyhw.mock.cuda.streams.streams import queue, stream_of

CPU, NOWHERE = cuda.CU_DEVICE_CPU, cuda.CU_DEVICE_INVALID
_ATTACH: Final = (cuda.CU_MEM_ATTACH_GLOBAL, cuda.CU_MEM_ATTACH_HOST, cuda.CU_MEM_ATTACH_SINGLE)


@dataclass(eq=False)
class Hints:
  """What is known of each page of an allocation. Processors are numbers of devices, CPU or NOWHERE."""

  pages: int
  read_mostly: npt.NDArray[np.bool_] = field(init=False)
  preferred: npt.NDArray[np.int32] = field(init=False)
  prefetched: npt.NDArray[np.int32] = field(init=False)
  accessed: dict[int, npt.NDArray[np.bool_]] = field(default_factory=dict)

  def __post_init__(self) -> None:
    self.read_mostly = np.zeros(self.pages, bool)
    self.preferred = np.full(self.pages, NOWHERE, np.int32)
    self.prefetched = np.full(self.pages, NOWHERE, np.int32)


def _range(m: CudaMachine, address: int, count: int) -> tuple[Hints, slice]:
  """The pages of a range, which lies in one managed allocation."""
  piece: Piece | None = m.piece_at(address)
  if not count:
    raise invalid("a range of no bytes")
  if piece is None or not piece.managed or address + count > piece.address + piece.size:
    raise invalid(f"{count:,} bytes at {address:#x} are no managed memory")
  if piece.hints is None:
    piece.hints = Hints(-(-piece.size // PAGE))
  first = (address - piece.address) // PAGE
  return piece.hints, slice(first, -(-(address + count - piece.address) // PAGE))


def _processor(m: CudaMachine, device: int) -> int:
  """A GPU by its ordinal, or the CPU."""
  if device != CPU and not 0 <= device < len(m.gpus):
    raise Failed(cuda.CUDA_ERROR_INVALID_DEVICE, f"no device {device}")
  return device


def _located(m: CudaMachine, location: int) -> int:
  """The processor of a CUmemLocation, which is passed in one register: type, then id."""
  kind, number = location & 0xFFFF_FFFF, ctypes.c_int32(location >> 32).value
  if kind == cuda.CU_MEM_LOCATION_TYPE_DEVICE:
    m.gpu(number)
    return number
  if kind == cuda.CU_MEM_LOCATION_TYPE_HOST:
    return CPU
  if kind in (cuda.CU_MEM_LOCATION_TYPE_HOST_NUMA, cuda.CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT):
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "NUMA nodes of the host are not modelled")
  raise invalid(f"a location of type {kind}")


@serves("cuMemAdvise")
def mem_advise(m: CudaMachine, address: int, count: int, advice: int, device: int) -> None:
  m.working()
  hints, pages = _range(m, address, count)
  if advice in (cuda.CU_MEM_ADVISE_SET_READ_MOSTLY, cuda.CU_MEM_ADVISE_UNSET_READ_MOSTLY):
    hints.read_mostly[pages] = advice == cuda.CU_MEM_ADVISE_SET_READ_MOSTLY
  elif advice == cuda.CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
    hints.preferred[pages] = _processor(m, device)
  elif advice == cuda.CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
    hints.preferred[pages] = NOWHERE
  elif advice in (cuda.CU_MEM_ADVISE_SET_ACCESSED_BY, cuda.CU_MEM_ADVISE_UNSET_ACCESSED_BY):
    known = hints.accessed.setdefault(_processor(m, device), np.zeros(hints.pages, bool))
    known[pages] = advice == cuda.CU_MEM_ADVISE_SET_ACCESSED_BY
  else:
    raise invalid(f"advice {advice}")


@serves("cuMemAdvise_v2")
def mem_advise_2(m: CudaMachine, address: int, count: int, advice: int, location: int) -> None:
  needs = (cuda.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, cuda.CU_MEM_ADVISE_SET_ACCESSED_BY,
           cuda.CU_MEM_ADVISE_UNSET_ACCESSED_BY)
  mem_advise(m, address, count, advice, _located(m, location) if advice in needs else CPU)


@serves("cuMemPrefetchAsync", "cuMemPrefetchAsync_ptsz")
def mem_prefetch_async(m: CudaMachine, address: int, count: int, device: int, handle: int) -> None:
  stream_of(m, handle)
  hints, pages = _range(m, address, count)
  to = _processor(m, device)

  def go() -> None:
    hints.prefetched[pages] = to
  queue(m, handle, "a prefetch", go)


@serves("cuMemPrefetchAsync_v2", "cuMemPrefetchAsync_v2_ptsz")
def mem_prefetch_async_2(m: CudaMachine, address: int, count: int, location: int, flags: int, handle: int) -> None:
  only(flags, 0, "a prefetch")
  mem_prefetch_async(m, address, count, _located(m, location), handle)


@serves("cuStreamAttachMemAsync", "cuStreamAttachMemAsync_ptsz")
def stream_attach_mem(m: CudaMachine, handle: int, address: int, length: int, flags: int) -> None:
  """Cards that reach managed memory at any time (CONCURRENT_MANAGED_ACCESS) need no stream's leave."""
  stream_of(m, handle)
  piece = m.piece_at(address)
  if piece is None or not piece.managed or piece.address != address or length not in (0, piece.size):
    raise invalid(f"{address:#x} with {length:,} bytes is no managed allocation")
  if flags not in _ATTACH or flags == cuda.CU_MEM_ATTACH_SINGLE and not handle:
    raise invalid(f"attachment {flags:#x}")
  queue(m, handle, "an attachment", lambda: None)


def _told(hints: Hints, pages: slice, attribute: int, size: int) -> Sequence[int]:
  """The words of an attribute."""
  def common(values: npt.NDArray[Any], otherwise: int) -> int:
    part = values[pages]
    return int(part[0]) if (part == part[0]).all() else otherwise
  if attribute == cuda.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
    if size % 4 or not size:
      raise invalid(f"{size} bytes for a list of devices")
    found = [device for device, known in sorted(hints.accessed.items()) if known[pages].all()][: size // 4]
    return found + [NOWHERE] * (size // 4 - len(found))
  if size != 4:
    raise invalid(f"{size} bytes for an attribute of 4")
  if attribute == cuda.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
    return [int(hints.read_mostly[pages].all())]
  wanted = {cuda.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: hints.preferred,
            cuda.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: hints.preferred,
            cuda.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: hints.preferred,
            cuda.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: hints.prefetched,
            cuda.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: hints.prefetched,
            cuda.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: hints.prefetched}.get(attribute)
  if wanted is None:
    raise invalid(f"range attribute {attribute}")
  where = common(wanted, NOWHERE)
  if attribute in (cuda.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE,
                   cuda.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE):
    return [cuda.CU_MEM_LOCATION_TYPE_INVALID if where == NOWHERE else cuda.CU_MEM_LOCATION_TYPE_HOST if where == CPU
            else cuda.CU_MEM_LOCATION_TYPE_DEVICE]
  return [where]


@serves("cuMemRangeGetAttribute")
def mem_range_get_attribute(m: CudaMachine, data: int, size: int, attribute: int, address: int, count: int) -> None:
  words = _told(*_range(m, address, count), attribute, size)
  m.out(data, f"{len(words)}i", *words)


@serves("cuMemRangeGetAttributes")
def mem_range_get_attributes(m: CudaMachine, data: int, sizes: int, attributes: int, number: int, address: int,
                             count: int) -> None:
  if not number:
    raise invalid("no attributes")
  hints, pages = _range(m, address, count)
  for out, size, attribute in zip(m.get(data, f"{number}Q"), m.get(sizes, f"{number}Q"),
                                  m.get(attributes, f"{number}i"), strict=True):
    words = _told(hints, pages, attribute, size)
    m.out(out, f"{len(words)}i", *words)
