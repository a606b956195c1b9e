"""Launches that are replayed, as one submission of the compute channel: the words of all, made once.

A replay writes QMD, bank and arguments of all launches into the argument ring, patches where they are, and rings the
doorbell once. Each launch waits for the end of the one before.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyhw.drive.base import Allocation, Dim3, Launch
from tinyhw.drive.grouped import LAUNCHES, GroupedRunner, pack
from tinyhw.drive.nv.commands import ComputeCommands
from tinyhw.drive.nv.gpu import GpuRuntime
from tinyhw.drive.nv.program import NVProgram, Prepared
from tinyhw.drive.queue import BoundStream

ARGUMENT_BYTES = 64 << 10  # of one submission; a part of the argument ring holds two


@dataclass(eq=False)
class Group:
  """Launches of one submission: the words, and where each launch's bytes lie from the first one's on."""
  launches: tuple[Launch, ...]
  first: int
  stream: BoundStream
  at: tuple[int, ...]
  nbytes: int
  prepared: tuple[Prepared, ...]
  generation: int  # of the local memory that the QMDs count on


class NVRunner(GroupedRunner[Group]):
  """See the module. Made by `NVRuntime.runner`."""

  def __init__(self, runtime: GpuRuntime, launches: Sequence[Launch]) -> None:
    self._runtime = runtime
    super().__init__(launches)

  def group(self, first: int) -> Group:
    """As many of the launches from `first` on as one submission takes."""
    runtime = self._runtime
    c, at, end, prepared = ComputeCommands(runtime.arch.compute_class, "replayed kernels"), [], 0, []
    for k, launch in enumerate(self.launches[first:first + LAUNCHES]):
      program = launch.program
      assert isinstance(program, NVProgram)
      if k and end + program.argument_bytes > ARGUMENT_BYTES: break
      prepared.append(program.prepared(launch.block, 0))
      program.check_grid(launch.grid, prepared[-1].cluster)
      if k: c.wait_for_idle()
      c.launch(f"qmd#{k}")
      at.append(end)
      end += program.argument_bytes
    launches = self.launches[first:first + len(at)]
    stream = c.signal(runtime.timeline.signal.address, "timeline").bind()
    return Group(launches, first, stream, tuple(at), end, tuple(prepared), runtime.local_generation)

  def generation(self) -> int: return self._runtime.local_generation

  def submit(self, group: Group, memory: Sequence[Allocation], values: Sequence[Sequence[int]] | None,
             grids: Sequence[Dim3] | None) -> None:
    runtime, stream = self._runtime, group.stream
    ring = runtime.kernargs
    runtime.enter(runtime.compute, stream, group.nbytes)
    try:
      start = ring.take(group.nbytes)
      for k, (launch, offset, prepared) in enumerate(zip(group.launches, group.at, group.prepared, strict=True)):
        program, at = launch.program, start + offset
        assert isinstance(program, NVProgram)
        given = () if values is None else values[group.first + k]
        program.fill(prepared, ring.memory, at, ring.address + at,
                     launch.grid if grids is None else grids[group.first + k])
        arguments = at + program.bank_at + program.code.params
        pack(program.packer(len(launch.buffers), given), ring.memory, arguments, launch, memory, given)
        stream.set(f"qmd#{k}", ring.address + at)
      ring.used_by(runtime.submit_entered(runtime.compute, stream))
    finally: runtime.lock.release()
