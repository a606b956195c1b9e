"""Launches that are replayed: their packets and arguments are made once, and queued with one ring of the doorbell."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tinyhw.drive.allocate import round_up
from tinyhw.drive.base import Allocation, Dim3, Launch
from tinyhw.drive.grouped import LAUNCHES, GroupedRunner, pack
from tinyhw.drive.hsa.program import BODY, HsaProgram

if TYPE_CHECKING:
  import numpy.typing as npt

  from tinyhw.drive.hsa.device import HSARuntime

ARGUMENT_BYTES: Final = 32 << 10  # of one submission; a part of the argument ring holds several
_KERNARG: Final = 5  # of a packet's 8 quadwords


@dataclass(eq=False)
class HsaSubmission:
  """Launches of one submission: their packets, and the bytes of their arguments, each launch's from `at` on."""
  launches: tuple[Launch, ...]
  first: int
  packets: npt.NDArray[np.uint32]
  arguments: bytearray
  at: npt.NDArray[np.uint64]
  generation: int  # the queue that hidden arguments name


class HsaRunner(GroupedRunner[HsaSubmission]):
  """See the module. Made by `HSARuntime.runner`."""

  def __init__(self, runtime: HSARuntime, launches: Sequence[Launch]) -> None:
    self._runtime = runtime
    super().__init__(launches)

  def group(self, first: int) -> HsaSubmission:
    at, end, packets = list[int](), 0, bytearray()
    for k, launch in enumerate(self.launches[first:first + LAUNCHES]):
      program = launch.program
      assert isinstance(program, HsaProgram)
      size = round_up(program.argument_bytes, 64)
      if k and end + size > ARGUMENT_BYTES: break
      packets += self._packet(launch, launch.grid)
      at.append(end)
      end += size
    launches, arguments = self.launches[first:first + len(at)], bytearray(end)
    for launch, start in zip(launches, at): self._hidden(arguments, start, launch, launch.grid)
    return HsaSubmission(launches, first, np.frombuffer(packets, np.uint32).reshape(len(at), -1).copy(), arguments,
                         np.array(at, np.uint64), self.generation())

  def _packet(self, launch: Launch, grid: Dim3) -> bytes:
    program = launch.program
    assert isinstance(program, HsaProgram)
    shape = program.shape(grid, launch.block, program.dynamic_bytes)
    return shape.head.to_bytes(4, "little") + BODY.pack(*shape.sizes, program.kernel_object, 0, 0, 0)

  def _hidden(self, arguments: bytearray, at: int, launch: Launch, grid: Dim3) -> None:
    program = launch.program
    assert isinstance(program, HsaProgram)
    hidden, layout = program.shape(grid, launch.block, program.dynamic_bytes).hidden, program.layout
    if hidden: arguments[at + layout.hidden_start:at + layout.size] = hidden

  def generation(self) -> int: return self._runtime.queue.handle

  def submit(self, group: HsaSubmission, memory: Sequence[Allocation], values: Sequence[Sequence[int]] | None,
             grids: Sequence[Dim3] | None) -> None:
    runtime, arguments = self._runtime, group.arguments
    with runtime.users, runtime.lock:
      for k, (launch, at) in enumerate(zip(group.launches, map(int, group.at))):
        program, given = launch.program, () if values is None else values[group.first + k]
        assert isinstance(program, HsaProgram)
        pack(program.layout.packer(len(launch.buffers), given), arguments, at, launch, memory, given)
        if grids is not None:
          grid = grids[group.first + k]
          group.packets[k] = np.frombuffer(self._packet(launch, grid), np.uint32)
          self._hidden(arguments, at, launch, grid)
      ring = runtime.kernargs
      start = ring.take(len(arguments))
      ring.memory[start:start + len(arguments)] = arguments
      group.packets.view(np.uint64)[:, _KERNARG] = group.at + np.uint64(ring.address + start)
      runtime.queue.push_all(group.packets)
      ring.used_by(runtime.queued())
