"""`tinyhw.debug`: a launch of a ready code object under the kernel debugger.

It runs on the emulator itself, for whatever generation the code object is: no driver, no queue and no mock GPU.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhw.device import emulated, mock_options
from tinyhw.emulator.debug import Debugger
from tinyhw.emulator.debug.debugger import WATCHDOG
from tinyhw.launcher import Array, Buffer, bind, dims, fetch

if TYPE_CHECKING:
  from tinyhw.wire.codeobject import Argument


def debug(binary: bytes, kernel: str, grid: Sequence[int], block: Sequence[int], args: Sequence[Any]) -> Session:
  """Start a debugger on a launch; arguments as for `launch`. It stands before the kernel's first instruction.

  The kernel runs on the emulator itself (device EMU), whatever generation the code object is for. Leave the `with`
  block, or `close()`, to drop the run; `buffers()` gives the arrays as they are.
  """
  return Session(binary, kernel, grid, block, args)


class Session(Debugger):
  """A debugger with the arrays of its launch."""

  def __init__(self, binary: bytes, kernel: str, grid: Sequence[int], block: Sequence[int],
               args: Sequence[Any]) -> None:
    self._runtime, self._arrays = emulated(), list[Buffer]()
    try:
      program = self._runtime.load_kernel(binary, kernel)
      payload = bind(self._runtime, program, args, self._arrays)
      self._name_buffers(program.kernel.arguments, args)
      ready = program.ready(payload, dims(grid, "grid"), dims(block, "block"))
      super().__init__(ready.space, ready.arch, ready.dispatch, ready.loaded.symbols(), ready.loaded.code_ranges(),
                       [(p.name, p.start, p.size) for p in self._runtime.places],
                       watchdog=int(mock_options().get("watchdog", WATCHDOG)), closing=self._runtime.close)
    except BaseException:
      self._runtime.close()
      raise

  def _name_buffers(self, parameters: Sequence[Argument], args: Sequence[Any]) -> None:
    names = [p.name or f"argument {k}" for k, (p, a) in enumerate(zip(parameters, args)) if isinstance(a, np.ndarray)]
    for name, (_, allocation) in zip(names, self._arrays): self._runtime.rename(allocation, name)

  def buffers(self) -> list[Array]:
    """Every array's contents now, in order, as new arrays."""
    return [fetch(self._runtime, value, allocation) for value, allocation in self._arrays]
