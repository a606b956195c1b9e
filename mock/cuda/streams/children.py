"""Launches by kernels (dynamic parallelism): what a grid has queued in its module's memory is run when it has ended.

A grid is over when all is that it has launched. The runtime lets children begin at any time, so they begin then: in the
order in which they were launched, each with all that it launches itself; those of `cudaStreamTailLaunch` come last.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import Failed
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.modules import devicelib
from tinyhw.mock.cuda.modules.modules import Module, function_of

if TYPE_CHECKING:
  from tinyhw.mock.cuda.streams.launches import Launch
  from tinyhw.mock.cuda.streams.streams import Stream

_RECORD: Final = struct.Struct("<Q8IQ")  # function, grid, block, shared memory, turn, stream
_MOVED: Final = struct.Struct("<4Q")  # COPY or FILL, where to, from where or with what, bytes


@dataclass(frozen=True)
class Record:
  """What a kernel has queued."""
  turn: int
  stream: int
  head: bytes
  params: bytes


def launches(module: Module) -> bool:
  """Whether a module's kernels may launch others."""
  return devicelib.LAUNCHES in module.linked.offsets


def _taken(m: CudaMachine, module: Module) -> list[Record]:
  """What was queued, in order; the queue is empty then."""
  assert module.queue is not None
  at, start = module.base + module.linked.offsets[devicelib.LAUNCHES], module.queue.address
  following, end, count, size = struct.unpack("<4Q", m.space.read(at, 32))
  m.space.write(at, struct.pack("<3Q", start, end, 0))
  if not count: return []
  data = m.space.read(start, min(following, end) - start)
  found = []
  for k in range(0, len(data), size):
    turn, stream = _RECORD.unpack_from(data, k)[-2:]
    if turn: found.append(Record(turn, stream, data[k:k + devicelib.RECORD], data[k + devicelib.RECORD:k + size]))
  return sorted(found, key=lambda r: r.turn)


def run(stream: Stream, launch: Launch, shaped: Callable[..., Launch]) -> Generator[Any, None, None]:
  """The turns of a launch of a module whose kernels launch others, until all of them have ended. `shaped` makes a
  launch of a kernel (`launches`)."""
  module = launch.function.module
  while module.busy is not None: yield None  # another stream's, whose kernels use the same queue
  module.busy = launch
  try: yield from _whole(stream, launch, shaped)
  finally: module.busy = None


def _whole(stream: Stream, launch: Launch, shaped: Callable[..., Launch]) -> Iterator[Any]:
  m, module = stream.machine, launch.function.module
  yield from launch.alone(stream)
  records = _taken(m, module)
  tail = [r for r in records if r.stream == devicelib.TAIL]
  for record in [r for r in records if r.stream != devicelib.TAIL] + tail:
    if int.from_bytes(record.head[:8], "little") in {devicelib.COPY, devicelib.FILL}: _move(m, record)
    else: yield from _whole(stream, _launch(m, module, record, shaped), shaped)


def _launch(m: CudaMachine, module: Module, record: Record, shaped: Callable[..., Launch]) -> Launch:
  function, gx, gy, gz, bx, by, bz, shared, _, _ = _RECORD.unpack(record.head[:_RECORD.size])
  addresses = module.program(next(iter(module.linked.lines))).functions
  name = next((n for n, at in addresses.items() if at == function), "")
  if not name: raise Failed(cuda.CUDA_ERROR_LAUNCH_FAILED, f"a kernel launches {function:#x}, which is no kernel")
  kernel = function_of(m, module, name)
  return shaped(kernel, (gx, gy, gz), (bx, by, bz), shared, record.params[:kernel.params_size])


def _move(m: CudaMachine, record: Record) -> None:
  """A copy or fill that a kernel has queued: generic addresses of device memory."""
  kind, to, what, count = _MOVED.unpack(record.head[:_MOVED.size])
  m.space.write(to, m.space.read(what, count) if kind == devicelib.COPY else bytes([what & 0xFF]) * count)

