"""A port that records: every call of RM and UVM as text, with the struct behind its pointer as it was before."""
from __future__ import annotations

from typing import Any

from tinyhw.autogen import nv_rm
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.mock.nv.port import NvPort
from tinyhw.wire import rm, uvm


class RecordingPort(NvPort):
  """`calls` are (what, the argument, what its pointer leads to), each as it was before the call."""

  def __init__(self, machine: NvMachine) -> None:
    super().__init__(machine)
    self.calls: list[tuple[str, Any, Any]] = []
    self.rung: list[tuple[int, int, int]] = []

  def open(self, path: str, flags: int = 2) -> int:
    self.calls.append((f"open {path}", None, None))
    return super().open(path, flags)

  def ioctl(self, fd: int, request: int, argument: Any) -> int:
    name, inner = self._named(request, argument)
    self.calls.append((name, type(argument).from_buffer_copy(bytes(argument)), inner))
    return super().ioctl(fd, request, argument)

  @staticmethod
  def _named(request: int, argument: Any) -> tuple[str, Any]:
    if rm.find(request) is None: return uvm.name(request), None
    declared = rm.parameters(argument)
    inner = None
    pointer = getattr(argument, "pAllocParms", 0) or getattr(argument, "params", 0)
    if declared is not None and isinstance(pointer, int) and pointer:
      inner = declared.from_buffer_copy(declared.from_address(pointer))
    if isinstance(argument, nv_rm.NVOS54_PARAMETERS): return rm.command_name(argument.cmd), inner
    if isinstance(argument, nv_rm.NVOS64_PARAMETERS): return rm.class_name(argument.hClass), inner
    return rm.name(request), inner

  def doorbell(self, address: int, value: int, nbytes: int = 8) -> None:
    self.rung.append((address, value, nbytes))
    super().doorbell(address, value, nbytes)

  def names(self, since: int = 0) -> list[str]:
    """What was called, in order."""
    return [name for name, _, _ in self.calls[since:]]
