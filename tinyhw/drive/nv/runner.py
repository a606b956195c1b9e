"""Launches that are replayed, as one submission of the compute channel: a chain of QMDs, each schedules the next.

The words are made once, and so are QMDs and banks but for where they lie. A replay writes them with the arguments into
the argument ring, patches where the first is, and rings the doorbell once. The last one's end is a semaphore that the
host engine waits for: what is submitted later comes after the whole chain.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyhw.drive.base import Allocation, Dim3, Launch
from tinyhw.drive.grouped import LAUNCHES, GroupedRunner, pack
from tinyhw.drive.nv.commands import ComputeCommands
from tinyhw.drive.nv.gpu import GpuRuntime, Prepared
from tinyhw.drive.nv.program import NVProgram
from tinyhw.drive.queue import BoundStream

ARGUMENT_BYTES = 64 << 10  # of one submission; a part of the argument ring holds two


@dataclass(eq=False)
class NvSubmission:
  """Launches of one submission: the words, and where each launch's bytes lie from the first one's on."""
  launches: tuple[Launch, ...]
  first: int
  stream: BoundStream
  at: tuple[int, ...]
  nbytes: int
  prepared: tuple[Prepared, ...]
  generation: int  # of the local memory that the QMDs count on


class NVRunner(GroupedRunner[NvSubmission]):
  """See the module. Made by `NVRuntime.runner`."""

  def __init__(self, runtime: GpuRuntime, launches: Sequence[Launch]) -> None:
    self._runtime = runtime
    super().__init__(launches)

  def group(self, first: int) -> NvSubmission:
    """As many of the launches from `first` on as one submission takes."""
    runtime, at, end = self._runtime, list[int](), 0
    for launch in self.launches[first:first + LAUNCHES]:
      program = self._program(launch)
      if at and end + program.argument_bytes > ARGUMENT_BYTES: break
      at.append(end)
      end += program.argument_bytes
    launches = self.launches[first:first + len(at)]
    c = ComputeCommands(runtime.arch.compute_class, "replayed kernels").wait_for_idle().launch("qmd")
    stream = c.wait(runtime.chain.address, "chain").signal(runtime.timeline.signal.address, "timeline").bind()
    prepared = []
    for k, launch in enumerate(launches):
      program = self._program(launch)
      prepared.append(program.link(launch.block, k == len(launches) - 1))
      program.check_grid(launch.grid, prepared[-1].cluster)
    return NvSubmission(launches, first, stream, tuple(at), end, tuple(prepared), runtime.local_generation)

  @staticmethod
  def _program(launch: Launch) -> NVProgram:
    assert isinstance(launch.program, NVProgram)
    return launch.program

  def generation(self) -> int: return self._runtime.local_generation

  def submit(self, group: NvSubmission, memory: Sequence[Allocation], values: Sequence[Sequence[int]] | None,
             grids: Sequence[Dim3] | None) -> None:
    runtime, stream = self._runtime, group.stream
    ring = runtime.kernargs
    runtime.enter(runtime.compute, stream, group.nbytes)
    try:
      start, chain = ring.take(group.nbytes), runtime.chains + 1
      runtime.chains = chain
      for k, (launch, offset, prepared) in enumerate(zip(group.launches, group.at, group.prepared, strict=True)):
        program, at = self._program(launch), start + offset
        given = () if values is None else values[group.first + k]
        if k + 1 < len(group.at): program.join(prepared, ring.address + start + group.at[k + 1])
        else: program.finish(prepared, chain)
        program.fill(prepared, ring.address + at, launch.grid if grids is None else grids[group.first + k])
        pack(program.packer(len(launch.buffers), given), prepared.bytes, program.params_at, launch, memory, given)
        ring.memory[at:at + len(prepared.bytes)] = prepared.bytes
      stream.set("qmd", ring.address + start)
      stream.set("chain", chain)
      ring.used_by(runtime.submit_entered(runtime.compute, stream))
    finally: runtime.lock.release()
