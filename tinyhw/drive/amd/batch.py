"""Launches recorded once and submitted many times: an indirect buffer of packets, and arguments that stay in place.

A replay costs one packet in the ring, whatever the number of launches. What changes between two replays is patched:
bytes of an argument, a grid.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyhw.core.errors import InvalidArgument
from tinyhw.core.locks import lock
from tinyhw.drive.allocate import round_up
from tinyhw.drive.amd.commands import ComputeCommands
from tinyhw.drive.amd.gpu import GpuRuntime
from tinyhw.drive.amd.kfd import Buffer, Domain
from tinyhw.drive.amd.program import AMDProgram
from tinyhw.drive.base import Dim3
from tinyhw.drive.queue import BoundStream


@dataclass
class BatchedLaunch:
  """One launch of a batch. `arguments` are the explicit arguments as bytes, as `AMDProgram.launch` takes them."""
  program: AMDProgram
  arguments: bytes
  grid: Dim3
  block: Dim3
  dynamic_lds: int = 0


class Batch:
  """See the module. Launches run in order, each sees what those before it wrote. Close it to give its memory back.

  Threads may share it.
  """

  def __init__(self, runtime: GpuRuntime, launches: Sequence[BatchedLaunch], label: str = "batch") -> None:
    if not launches: raise InvalidArgument("no launches", where=label)
    self._lock = lock()
    self.runtime, self.launches, self.label = runtime, tuple(launches), label
    self._last, self._at, end = 0, [], 0
    for launch in self.launches:
      if launch.program.runtime is not runtime: raise InvalidArgument("a program of another device", where=label)
      if len(launch.arguments) > launch.program.layout.size:
        raise InvalidArgument(
          f"{len(launch.arguments)} bytes of arguments, the kernel takes {launch.program.layout.size}",
          where=launch.program.name,
        )
      self._at.append(end)
      end += round_up(launch.program.argument_bytes, 64)
    self._arguments: Buffer = runtime.kfd.alloc(runtime.gpu, end, Domain.GTT)
    for at, launch in zip(self._at, self.launches, strict=True):
      self._arguments.bytes()[at:at + len(launch.arguments)] = launch.arguments
    self._packets: Buffer | None = None
    self._record()

  def _record(self) -> None:
    """Make the packets, and the stream that executes them."""
    c = ComputeCommands(self.runtime.arch, self.label)
    for i, launch in enumerate(self.launches): launch.program.record(c, launch.block, launch.dynamic_lds, f"#{i}")
    self._stream: BoundStream = c.bind()
    self._generation = self.runtime.scratch_generation
    if self._packets is None:
      self._packets = self.runtime.kfd.alloc(self.runtime.gpu, 4 * len(self._stream.words), Domain.GTT, executable=True)
    for i in range(len(self.launches)): self._fill(i)
    signal = self.runtime.timeline.signal
    replay = ComputeCommands(self.runtime.arch, self.label).memory_barrier()
    replay.indirect_buffer(self._packets.address, len(self._stream.words))
    self._replay = replay.signal(signal.address, "timeline").bind()
    self._changed = True

  def _fill(self, index: int) -> None:
    launch, at = self.launches[index], self._at[index]
    launch.program.check_grid(launch.grid)
    for axis, groups in zip("xyz", launch.grid, strict=True): self._stream.set(f"grid_{axis}#{index}", groups)
    launch.program.fill(
      self._stream,
      f"#{index}",
      self._arguments.bytes(),
      at,
      self._arguments.address + at,
      launch.grid,
      launch.block,
      launch.dynamic_lds,
    )
    self._changed = True

  def set_argument(self, index: int, offset: int, data: bytes) -> None:
    """Replace bytes of the explicit arguments of launch `index`; waits until the last replay has read them."""
    if not 0 <= offset <= offset + len(data) <= self.launches[index].program.layout.hidden_start:
      raise InvalidArgument(
        f"bytes {offset} to {offset + len(data)} are outside its arguments", where=f"{self.label} launch {index}"
      )
    with self._lock:
      self.runtime.wait(self._last)
      at = self._at[index] + offset
      self._arguments.bytes()[at:at + len(data)] = data

  def set_grid(self, index: int, grid: Dim3) -> None:
    """Give launch `index` another grid, from the next replay on."""
    with self._lock:
      self.runtime.wait(self._last)
      self.launches[index].grid = grid
      self._fill(index)

  def submit(self) -> int:
    """Queue all launches; returns the timeline value after them."""
    with self._lock: return self._submit()

  def _submit(self) -> int:
    runtime = self.runtime
    if self._generation != runtime.scratch_generation:
      runtime.wait(self._last)
      self._record()
    ids = [name for name in self._stream.names if name.startswith("timeline#")]  # kernels that ask for a dispatch id
    if self._changed or ids:
      runtime.wait(self._last)
      for name in ids: self._stream.set(name, runtime.timeline.last + 1)
      assert self._packets is not None
      self._packets.bytes()[:4 * len(self._stream.words)] = memoryview(self._stream.words).cast("B")
      self._changed = False
    runtime.enter(runtime.compute, self._replay)
    try:
      runtime.registers = None
      self._last = runtime.submit_entered(runtime.compute, self._replay)
    finally: runtime.lock.release()
    return self._last

  def close(self) -> None:
    """Give the memory back, after the last replay."""
    with self._lock:
      if self._packets is None: return
      self.runtime.wait(self._last)
      for buffer in (self._packets, self._arguments): self.runtime.kfd.free(buffer)
      self._packets = None
