"""Recorded steps as a device runs them best: again and again, over other memory each time.

Launches of one device that follow each other are one `Runner` of its driver: prepared calls on processors, one
submission of a hardware queue. Copies stand between them. Who watches (`DEBUG`, listeners) is shown single steps.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tinyhw.devices.buffer import Buffer
from tinyhw.devices.registry import OpenDevice
from tinyhw.drive.base import Dim3, Launch, Runner
from tinyhw.engine.binding import bound_value
from tinyhw.engine.run import Step, run, shown


@dataclass(eq=False)
class ReplayBatch:
  """Launches that are queued together: places of what they write, and the steps they came from."""
  runner: Runner
  device: OpenDevice
  written: tuple[int, ...]
  steps: tuple[int, ...]
  changing: bool  # whether some take values of Variables
  sized: bool  # whether Variables decide how many workgroups some have


class Replay:
  """See the module. Threads that share it take turns."""

  def __init__(self, steps: Sequence[Step]) -> None:
    self._steps = steps
    self._number: dict[int, int] = {}
    self._memory: list[Buffer] = []
    for s in steps:
      for b in s.buffers:
        if id(b) not in self._number:
          self._number[id(b)] = len(self._memory)
          self._memory.append(b)
    self._places = [tuple(self._number[id(b)] for b in s.buffers) for s in steps]
    self._parts: list[ReplayBatch | int] = []  # a number: the step is a copy
    at = 0
    while at < len(steps):
      kernel, end = steps[at].kernel, at + 1
      if kernel is None: self._parts.append(at)
      else:
        while end < len(steps) and (k := steps[end].kernel) is not None and k.device is kernel.device: end += 1
        self._parts.append(self._part(kernel.device, range(at, end)))
      at = end

  def _part(self, device: OpenDevice, numbers: range) -> ReplayBatch:
    launches = []
    for n in numbers:
      kernel, places = self._steps[n].kernel, self._places[n]
      assert kernel is not None
      spec = kernel.spec
      launches.append(Launch(kernel.program, tuple(places[i] for i in spec.buffer_order), spec.grid, spec.block))
    written = {self._number[id(b)] for n in numbers for b in self._steps[n].written}
    return ReplayBatch(device.runtime.runner(launches), device, tuple(written), tuple(numbers),
                       any(self._steps[n].values for n in numbers),
                       any((k := self._steps[n].kernel) is not None and k.spec.extent is not None for n in numbers))

  def prepared(self, changing: Sequence[Buffer]) -> tuple[Callable[..., object], list[int]] | None:
    """All of it as one function of the addresses of some of these buffers, and the numbers of those; other memory stays
    what it is. None where there is none, or where Variables decide something."""
    if len(self._parts) != 1 or isinstance(part := self._parts[0], int) or part.changing: return None
    places = {self._number[id(b)]: n for n, b in enumerate(changing) if id(b) in self._number}
    memory = [None if k in places else b.allocation for k, b in enumerate(self._memory)]
    if any(b._owner is not part.device for k, b in enumerate(self._memory) if k not in places): return None
    launch = part.runner.prepared(memory, [*places])
    return None if launch is None else (launch, [*places.values()])

  def run(self, swap: Mapping[int, Buffer]) -> None:
    """Do it with other buffers in the places of those whose ids are named."""
    memory = self._memory.copy()
    for known, buffer in swap.items():
      if (place := self._number.get(known)) is not None: memory[place] = buffer
    if shown():
      return run([Step.of(s.kernel, tuple([memory[k] for k in places]))
                  for s, places in zip(self._steps, self._places)])
    allocations = [b.allocation for b in memory]
    for part in self._parts:
      if isinstance(part, int):
        Step.of(self._steps[part].kernel, tuple([memory[k] for k in self._places[part]])).run()
        continue
      values = self._values(part) if part.changing else None
      grids = self._grids(part, values) if part.sized and values is not None else None
      if grids is not None and any(0 in g for g in grids):      # a launch of nothing is none
        for n in part.steps: Step.of(self._steps[n].kernel, tuple([memory[k] for k in self._places[n]])).run()
        continue
      for k in part.written: memory[k].overwritten()
      part.runner(allocations, values, grids)
      for k in part.written: memory[k].written()

  def _grids(self, part: ReplayBatch, values: Sequence[tuple[int, ...]]) -> list[Dim3]:
    """The grids that the launches have with these values."""
    kernels = [self._steps[n].kernel for n in part.steps]
    return [k.spec.launch_grid(dict(zip(k.spec.variables, v))) for k, v in zip(kernels, values) if k is not None]

  def _values(self, part: ReplayBatch) -> list[tuple[int, ...]]:
    """The values that the kernels' variables have now."""
    values = []
    for n in part.steps:
      kernel = self._steps[n].kernel
      values.append(() if kernel is None else tuple(bound_value(v) for v in kernel.spec.variables))
    return values
