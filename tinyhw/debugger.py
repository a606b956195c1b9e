"""`tinyhw.debug` and `tinyhw.report`: a launch of a ready code object looked into, step by step or as a whole.

It runs on the emulator itself, for whatever generation the code object is: no driver, no queue and no mock GPU.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhw.device import emulated, mock_options
from tinyhw.emulator.amdgcn import dispatch
from tinyhw.emulator.debug import Debugger, Recorder, Report
from tinyhw.emulator.debug.code import Code
from tinyhw.emulator.debug.debugger import WATCHDOG
from tinyhw.isa.amdgcn import table
from tinyhw.launcher import Array, Buffer, bind, dims, fetch

if TYPE_CHECKING:
  from tinyhw.drive.amd.bare import Ready


def debug(binary: bytes, kernel: str, grid: Sequence[int], block: Sequence[int], args: Sequence[Any]) -> Session:
  """Start a debugger on a launch; arguments as for `launch`. It stands before the kernel's first instruction.

  The kernel runs on the emulator itself (device EMU), whatever generation the code object is for. Leave the `with`
  block, or `close()`, to drop the run; `buffers()` gives the arrays as they are.
  """
  return Session(binary, kernel, grid, block, args)


def report(binary: bytes, kernel: str, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *,
           exactness: bool = True) -> Report:
  """Run a kernel on the reference interpreter and report what it did; arguments as for `launch`.

  `exactness` follows the values of instructions that are not exact, which takes time. The report's `buffers` are the
  arrays after the run.
  """
  start = _Start(binary, kernel, grid, block, args)
  try:
    ready, recorder = start.ready, Recorder(exactness)
    dispatch(ready.space, ready.arch, ready.dispatch, watchdog=start.watchdog, observer=recorder)
    made = Report.of(recorder, start.code(), kernel)
    made.buffers = start.buffers()
    return made
  finally: start.runtime.close()


class _Start:
  """A launch on a runtime of its own, with everything in memory."""

  def __init__(self, binary: bytes, kernel: str, grid: Sequence[int], block: Sequence[int],
               args: Sequence[Any]) -> None:
    self.runtime, self.arrays = emulated(), list[Buffer]()
    self.watchdog = int(mock_options().get("watchdog", WATCHDOG))
    try:
      program = self.runtime.load_kernel(binary, kernel)
      payload = bind(self.runtime, program, args, self.arrays)
      parameters = program.kernel.arguments
      names = [p.name or f"arg{k}" for k, (p, a) in enumerate(zip(parameters, args)) if isinstance(a, np.ndarray)]
      for name, (_, allocation) in zip(names, self.arrays): self.runtime.rename(allocation, name)
      self.ready: Ready = program.ready(payload, dims(grid, "grid"), dims(block, "block"))
    except BaseException:
      self.runtime.close()
      raise

  def code(self) -> Code:
    """The code object's listing."""
    r = self.ready
    return Code(r.space, table(r.arch.isa), r.loaded.code_ranges(), r.loaded.symbols(), r.dispatch.entry_pc)

  def buffers(self) -> list[Array]:
    """Every array's contents now."""
    return [fetch(self.runtime, value, allocation) for value, allocation in self.arrays]


class Session(Debugger):
  """A debugger with the arrays of its launch."""

  def __init__(self, binary: bytes, kernel: str, grid: Sequence[int], block: Sequence[int],
               args: Sequence[Any]) -> None:
    self._start = start = _Start(binary, kernel, grid, block, args)
    loaded, d = start.ready.loaded, start.ready.dispatch
    try:
      super().__init__(start.ready.space, loaded.arch, d, loaded.symbols(), loaded.code_ranges(),
                       [(p.name, p.start, p.size) for p in start.runtime.places], watchdog=start.watchdog,
                       closing=start.runtime.close)
    except BaseException:
      start.runtime.close()
      raise

  def buffers(self) -> list[Array]:
    """Every array's contents now, in order, as new arrays."""
    return self._start.buffers()
