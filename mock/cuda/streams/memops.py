"""Streams that write values to memory and wait for values there: cuStreamWriteValue, cuStreamWaitValue, and batches.

A wait is a job that may have its turn when memory holds such a value, whoever has stored it: another stream, a kernel,
the host. Each operation of a batch is a job, in order. Flushes of remote writes are not supported, as the card's
attributes say; the functions of before CUDA 11.7 are not, as on a driver that did not ask for them.
"""
from __future__ import annotations

import ctypes
from typing import Final

from tinyhw.autogen import cuda
from tinyhw.core.errors import PageFault, Unsupported
from tinyhw.mock.cuda.calls import Failed, invalid, only, serves
from tinyhw.mock.cuda.graphs.works import Work
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.streams.streams import Job, OnHost, Stream, stream_of
from tinyhw.mock.cuda.watching import Doing, Order
from tinyhw.mock.nv.chip.jobs import Turns, at_once

MOST: Final = 256  # operations of a batch are fewer
_NODE: Final = cuda.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP
_HOW: Final = 3  # bits of a wait's flags
_WAITS: Final = {cuda.CU_STREAM_MEM_OP_WAIT_VALUE_32: 4, cuda.CU_STREAM_MEM_OP_WAIT_VALUE_64: 8}  # and their bytes
_WRITES: Final = {cuda.CU_STREAM_MEM_OP_WRITE_VALUE_32: 4, cuda.CU_STREAM_MEM_OP_WRITE_VALUE_64: 8}


def met(how: int, seen: int, value: int, size: int) -> bool:
  """Whether a wait is over when memory holds this (CUstreamWaitValue_flags)."""
  bits = 8 * size
  if how == cuda.CU_STREAM_WAIT_VALUE_GEQ: return (seen - value & (1 << bits) - 1) < 1 << bits - 1
  if how == cuda.CU_STREAM_WAIT_VALUE_EQ: return seen == value
  if how == cuda.CU_STREAM_WAIT_VALUE_AND: return bool(seen & value)
  return bool(~(seen | value) & (1 << bits) - 1)


def _checked(m: CudaMachine, waits: bool, address: int, value: int, flags: int, size: int) -> Order:
  """What a stream is asked for. Raises Failed for what it cannot be."""
  if waits and flags & cuda.CU_STREAM_WAIT_VALUE_FLUSH:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES is 0")
  only(flags, _HOW if waits else cuda.CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER, "a value in memory")
  if address % size: raise invalid(f"{size} bytes at {address:#x} are not aligned")
  if m.piece_at(address) is None: raise invalid(f"no memory is at {address:#x}")
  return Order(address, size, value & (1 << 8 * size) - 1, flags if waits else None)


class OrderWork(Work):
  """What a stream is asked for, which a graph may have as a node, too."""

  def __init__(self, m: CudaMachine, order: Order) -> None:
    self._machine, self.order = m, order
    super().__init__(_NODE, "a write of a value" if order.how is None else "a wait for a value",
                     self._store if order.how is None else self._look, order, Doing(_NODE, order=order))

  def _store(self) -> None:
    self._machine.space.write(self.order.address, self.order.value.to_bytes(self.order.size, "little"))

  def _seen(self) -> int:
    return int.from_bytes(self._machine.space.read(self.order.address, self.order.size), "little")

  def _look(self) -> None: self._seen()

  def _ready(self) -> bool:
    """Whether a wait is over."""
    assert self.order.how is not None
    try: return met(self.order.how, self._seen(), self.order.value, self.order.size)
    except PageFault: return True  # its turn says so

  def queue(self, stream: Stream, early: bool = False) -> Job | None:
    job = stream.add(self.what, at_once(self.do), doing=self.doing)
    if self.order.how is not None: job.ready = self._ready
    return job

  def turns(self, stream: Stream) -> Turns | OnHost:
    if self.order.how is not None:
      raise Unsupported("a wait for a value", "the body of a conditional node", where="cuGraphLaunch")
    return super().turns(stream)


def _queue(m: CudaMachine, handle: int, order: Order) -> None:
  """Have a stream do it behind all that is there, or the graph that it is captured into have a node."""
  stream, work = stream_of(m, handle), OrderWork(m, order)
  if stream.capture is not None: stream.capture.take(stream, work)
  else: work.queue(stream)


@serves("cuStreamWaitValue32_v2")
def stream_wait_value32(m: CudaMachine, handle: int, address: int, value: int, flags: int) -> None:
  _queue(m, handle, _checked(m, True, address, value, flags, 4))


@serves("cuStreamWaitValue64_v2")
def stream_wait_value64(m: CudaMachine, handle: int, address: int, value: int, flags: int) -> None:
  _queue(m, handle, _checked(m, True, address, value, flags, 8))


@serves("cuStreamWriteValue32_v2")
def stream_write_value32(m: CudaMachine, handle: int, address: int, value: int, flags: int) -> None:
  _queue(m, handle, _checked(m, False, address, value, flags, 4))


@serves("cuStreamWriteValue64_v2")
def stream_write_value64(m: CudaMachine, handle: int, address: int, value: int, flags: int) -> None:
  _queue(m, handle, _checked(m, False, address, value, flags, 8))


@serves("cuStreamBatchMemOp_v2")
def stream_batch_mem_op(m: CudaMachine, handle: int, count: int, operations: int, flags: int) -> None:
  only(flags, 0, "a batch of operations on memory")
  if count >= MOST: raise invalid(f"{count} operations, and a batch has fewer than {MOST}")
  kind = cuda.CUstreamBatchMemOpParams
  size = ctypes.sizeof(kind)
  rows = [kind.from_buffer_copy(m.user.read(operations + n * size, size)) for n in range(count)]
  orders = [order for row in rows if (order := _operation(m, row)) is not None]
  for order in orders: _queue(m, handle, order)


def _operation(m: CudaMachine, row: cuda.CUstreamBatchMemOpParams) -> Order | None:
  """An operation of a batch; None for a barrier: each write comes behind all before it."""
  if row.operation in _WAITS:
    w = row.waitValue
    return _checked(m, True, w.address, w.value64, w.flags, _WAITS[row.operation])
  if row.operation in _WRITES:
    v = row.writeValue
    return _checked(m, False, v.address, v.value64, v.flags, _WRITES[row.operation])
  if row.operation == cuda.CU_STREAM_MEM_OP_BARRIER:
    only(row.memoryBarrier.flags, cuda.CU_STREAM_MEMORY_BARRIER_TYPE_GPU, "a barrier")
    return None
  if row.operation == cuda.CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES is 0")
  raise invalid(f"operation {row.operation} of a batch")
