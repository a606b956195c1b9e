"""Launches that are replayed, as one submission of the compute queue: the words of all, made once.

A replay writes the arguments of all launches into the argument ring, patches where they are, and rings the doorbell
once. What a launch of its own would check and make is checked and made when the words are.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyhw.drive.allocate import round_up
from tinyhw.drive.amd.commands import ComputeCommands
from tinyhw.drive.amd.gpu import GpuRuntime
from tinyhw.drive.amd.program import AMDProgram
from tinyhw.drive.base import Allocation, Dim3, Launch
from tinyhw.drive.grouped import LAUNCHES, GroupedRunner, pack
from tinyhw.drive.queue import BoundStream

ARGUMENT_BYTES = 32 << 10  # of one submission; a part of the argument ring holds several


@dataclass(eq=False)
class AmdSubmission:
  """Launches of one submission: the words, and the bytes of each launch's arguments from the first one's on."""
  launches: tuple[Launch, ...]
  first: int
  stream: BoundStream
  at: tuple[int, ...]
  nbytes: int
  generation: int  # of the scratch memory that the words name


class AMDRunner(GroupedRunner[AmdSubmission]):
  """See the module. Made by `AMDRuntime.runner`."""

  def __init__(self, runtime: GpuRuntime, launches: Sequence[Launch]) -> None:
    self._runtime = runtime
    super().__init__(launches)

  def group(self, first: int) -> AmdSubmission:
    """As many of the launches from `first` on as one submission takes."""
    c, at, end = ComputeCommands(self._runtime.arch, "replayed kernels"), list[int](), 0
    for k, launch in enumerate(self.launches[first:first + LAUNCHES]):
      program = launch.program
      assert isinstance(program, AMDProgram)
      size = round_up(program.argument_bytes, 64)
      if k and end + size > ARGUMENT_BYTES: break
      program.check_grid(launch.grid)
      program.record(c, launch.block, 0, f"#{k}")
      at.append(end)
      end += size
    launches = self.launches[first:first + len(at)]
    stream = c.signal(self._runtime.timeline.signal.address, "timeline").bind()
    for k, launch in enumerate(launches):
      for axis, groups in zip("xyz", launch.grid, strict=True): stream.set(f"grid_{axis}#{k}", groups)
    return AmdSubmission(launches, first, stream, tuple(at), end, self._runtime.scratch_generation)

  def generation(self) -> int: return self._runtime.scratch_generation

  def submit(self, group: AmdSubmission, memory: Sequence[Allocation], values: Sequence[Sequence[int]] | None,
             grids: Sequence[Dim3] | None) -> None:
    runtime, stream, ids = self._runtime, group.stream, False
    ring = runtime.kernargs
    runtime.enter(runtime.compute, stream, group.nbytes)
    try:
      start = ring.take(group.nbytes)
      for k, (launch, offset) in enumerate(zip(group.launches, group.at)):
        program, at = launch.program, start + offset
        assert isinstance(program, AMDProgram)
        given = () if values is None else values[group.first + k]
        pack(program.layout.packer(len(launch.buffers), given), ring.memory, at, launch, memory, given)
        grid = launch.grid
        if grids is not None:
          grid = grids[group.first + k]
          for axis, groups in zip("xyz", grid, strict=True): stream.set(f"grid_{axis}#{k}", groups)
        program.fill(stream, f"#{k}", ring.memory, at, ring.address + at, grid, launch.block, 0)
        ids = ids or program.takes_id
      if ids:  # all kernels of the submission have its id
        for name in stream.names:
          if name.startswith("timeline#"): stream.set(name, runtime.timeline.last + 1)
      runtime.registers = None
      ring.used_by(runtime.submit_entered(runtime.compute, stream))
    finally: runtime.lock.release()
