"""Matrices in shared memory as tcgen05 reads them: by descriptors, in chunks of 16 bytes (PTX ISA, 9.7.16.3 and 4)."""
from __future__ import annotations

from typing import Final

import numpy as np

from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.emulator.ptx.memory.ranges import Thread
from tinyhw.emulator.ptx.tensorcore.descriptors import SWIZZLES, MatrixDescriptor
from tinyhw.emulator.values.ops import Array as Value

CHUNK: Final = 16
ULTRA: Final = 103  # the target that has K of 96, whose rows may go on at an address of their own


class Chunks:
  """A matrix that a thread's descriptor describes. Raises MachineFault for a descriptor that is none."""

  def __init__(self, thread: Thread, descriptor: int) -> None:
    self.thread = thread
    try: d = MatrixDescriptor.decode((descriptor & 0xFFFFFFFF, descriptor >> 32))
    except DecodeError: raise self._fault(descriptor, "bits that have no meaning") from None
    if d.version != 1: raise self._fault(descriptor, f"{d.version} in bits 46 to 48, which are 1")
    if d.constant: raise self._fault(descriptor, f"{d.constant:#x} in bits 53 to 60, which are 0")
    if d.swizzle not in SWIZZLES: raise self._fault(descriptor, f"the swizzling mode {d.swizzle}")
    if d.absolute and (thread.cohort.program.linked.sm != ULTRA or d.swizzle != 2):
      raise self._fault(descriptor, "an absolute address in the place of a stride: sm_103 has that, for 128 bytes")
    self.d = d

  def _fault(self, descriptor: int, text: str) -> Exception:
    return self.thread.fault(f"a matrix descriptor ({descriptor:#018x}) with {text}")

  def rows(self, block: int, rows: int, chunks: int) -> Value:
    """Rows whose elements lie side by side (K-major) in a block's shared memory: bytes [rows, chunks, 16]."""
    d = self.d
    width, _, _ = SWIZZLES[d.swizzle]
    r, c = np.arange(rows)[:, None], np.arange(chunks)[None, :]
    if d.absolute:  # the row goes on at `leading` where the first one's 128 bytes end, as in CUTLASS's programs
      place = (d.start & 7) + c
      first = np.where(place < 8, d.start & ~7, d.leading) - d.start
      return self._read(block, r % 8 * width + r // 8 * (d.stride * CHUNK) + (first + place % 8) * CHUNK)
    if d.swizzle and chunks * CHUNK > width:  # of the wide operand of a sparse product
      raise Unsupported("matrix in shared memory", f"{chunks * CHUNK} bytes a row in a swizzle of {width}", where="PTX")
    apart = CHUNK if d.swizzle else d.leading * CHUNK
    return self._read(block, r % 8 * width + r // 8 * (d.stride * CHUNK) + c * apart)

  def columns(self, block: int, groups: int, k: int) -> Value:
    """Groups of rows that lie side by side (MN-major), one for each of k columns: bytes [groups, k, 16]."""
    d = self.d
    width, _, unit = SWIZZLES[d.swizzle]
    g, c = np.arange(groups)[:, None], np.arange(k)[None, :]
    leading, stride = d.leading * CHUNK, d.stride * CHUNK
    if not d.swizzle: return self._read(block, g * stride + c % 8 * CHUNK + c // 8 * leading)
    side, deep = width // CHUNK, 8 * CHUNK // unit
    return self._read(block, g % side * CHUNK + g // side * leading + c % deep * width + c // deep * stride)

  def _read(self, block: int, offsets: Value) -> Value:
    d, t = self.d, self.thread
    _, mask, unit = SWIZZLES[d.swizzle]
    at = (d.start * CHUNK + offsets).astype(np.int64)
    at = at ^ ((at >> 7) - d.base & mask) * unit
    end = int(at.max()) + CHUNK
    t.span(block, 0, end, "read")  # tells what is wrong
    t.show("lds", "load", np.unique(at).astype(np.uint64), CHUNK, block, "tcgen05")
    start = block * t.cohort.lds_size
    return t.cohort.lds[(start + at)[..., None] + np.arange(CHUNK)]
