"""Reports of kernels as emulated devices run them, and the code that these were loaded from."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhw.devices.registry import Device
from tinyhw.emulator.debug.amdgcn.code import MachineCode
from tinyhw.emulator.debug.ptx.code import PtxCode
from tinyhw.emulator.debug.record import Recorder
from tinyhw.emulator.debug.report import Report
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.ptx.launch.grid import Dispatch as PtxDispatch
from tinyhw.isa.amdgcn import table
from tinyhw.wire.codeobject import sources

if TYPE_CHECKING:
  from tinyhw.arch import Arch
  from tinyhw.core.memory import AddressSpace
  from tinyhw.emulator.debug.code import Code
  from tinyhw.emulator.simt import Stats
  from tinyhw.wire.codeobject import CodeObject, Kernel


class Reporter(Observer):
  """A recorder for each dispatch, and its report at the end; faults have none."""

  def __init__(self, seen: list[Report], exactness: bool) -> None:
    self.seen, self.exactness = seen, exactness

  def dispatch(self, space: AddressSpace, arch: Any, d: Any) -> Recorder:
    recorder = _Reported(self.seen, self.exactness)
    recorder.dispatch(space, arch, d)
    return recorder


class _Reported(Recorder):
  """The recorder of one dispatch."""

  def __init__(self, seen: list[Report], exactness: bool) -> None:
    super().__init__(exactness)
    self.seen = seen

  def end(self, stats: Stats) -> None:
    super().end(stats)
    assert self.space is not None and self.arch is not None
    if isinstance(self.dispatched, PtxDispatch):
      program = self.dispatched.program
      return self.seen.append(Report.of(self, PtxCode(program), program.entry_name))
    entry = self.dispatched.entry_pc
    found = kernel_at(entry)
    code = None if found is None else listing(self.space, self.arch, found[0], found[1], entry)
    self.seen.append(Report.of(self, code, "" if found is None else found[2].name))


def kernel_at(entry: int) -> tuple[CodeObject, int, Kernel] | None:
  """(code object, its address, kernel) of an entry point, among what is loaded on the devices in use."""
  for runtime in (device.runtime for device in Device.opened):
    for address, code in getattr(runtime, "loaded", list)():
      for kernel in code.kernels.values():
        if address + kernel.start_offset == entry: return code, address, kernel
  return None


def symbols(code: CodeObject, address: int) -> dict[str, int]:
  """Address of each symbol of a code object; a kernel's name is where its waves start."""
  found = {name: address + at for name, at in code.symbols.items()}
  return found | {k.name: address + k.start_offset for k in code.kernels.values()}


def ranges(code: CodeObject, address: int) -> list[tuple[int, int]]:
  """[start, end) of each executable segment."""
  return [(address + s.offset, address + s.offset + s.size) for s in code.segments if s.executable]


def listing(space: AddressSpace, arch: Arch, code: CodeObject, address: int, entry: int) -> Code:
  """The instructions and names of a code object in memory."""
  source = sources([(address, code)])
  return MachineCode(space, table(arch.table), ranges(code, address), symbols(code, address), entry, source)
