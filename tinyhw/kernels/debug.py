"""`tinyhw.debug` and `tinyhw.report`: a launch of a ready code object looked into, step by step or as a whole.

It runs on the emulator itself, for whatever generation the code object is: no driver, no queue and no mock GPU.
`tinyhw.reports` and `tinyhw.captures` do the same for whatever runs on mock GPUs, tensors included.
"""
from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import Unsupported
from tinyhw.devices.mocked import mock_options
from tinyhw.devices.registry import Device, emulated, mock_cards
from tinyhw.drive.amd.program import user_sgprs
from tinyhw.drive.nv.bare import PtxProgram, is_ptx
from tinyhw.emulator.amdgcn import dispatch
from tinyhw.emulator.check.checker import checker
from tinyhw.emulator.debug.amdgcn.debugger import AmdDebugger
from tinyhw.emulator.debug.code import Code
from tinyhw.emulator.debug.debugger import WATCHDOG
from tinyhw.emulator.debug.ptx.code import PtxCode
from tinyhw.emulator.debug.ptx.debugger import PtxDebugger
from tinyhw.emulator.debug.record import Recorder
from tinyhw.emulator.debug.report import Report
from tinyhw.emulator.debug.snapshot import copied_space
from tinyhw.emulator.observe import OBSERVED, Observer
from tinyhw.emulator.ptx.launch.grid import Dispatch as PtxDispatch
from tinyhw.emulator.ptx.launch.grid import check as check_launch
from tinyhw.kernels.arguments import Array, Buffer, bind, fetch
from tinyhw.kernels.launch import Binary, Counts, contents, dims, plain_faults, told_outside, warn
from tinyhw.kernels.parameters import declared
from tinyhw.kernels.report import Reporter, kernel_at, listing, ranges, symbols
from tinyhw.kernels.sources import translated
from tinyhw.triton.target import triton_target
from tinyhw.wire.codeobject import sources

if TYPE_CHECKING:
  from tinyhw.arch import Arch
  from tinyhw.core.memory import AddressSpace
  from tinyhw.core.source import Source
  from tinyhw.drive.amd.bare import Ready
  from tinyhw.wire.codeobject import CodeObject, Kernel


def debug(binary: Binary, kernel: str, grid: Counts, block: Counts, args: Sequence[Any], *, check: str = "",
          shared: int = 0, cluster: Counts | None = None, options: Sequence[str] = ()) -> Session | PtxSession:
  """Start a debugger on a launch; arguments as for `launch`. It stands before the kernel's first instruction.

  The kernel runs on the emulator itself (device EMU), whatever generation the code object is for. Leave the `with`
  block, or `close()`, to drop the run; `buffers()` gives the arrays as they are. With `check`, in the words of
  EMU_CHECK ("1", or names of checks), the run also stands where the hazard checks find something.
  """
  binary, kernel = translated(binary, kernel, options)
  if is_ptx(contents(binary)): return PtxSession(binary, kernel, grid, block, args, check, shared, cluster)
  return Session(binary, kernel, grid, block, args, check, shared, cluster)


def report(binary: Binary, kernel: str, grid: Counts, block: Counts, args: Sequence[Any], *, exactness: bool = True,
           shared: int = 0, cluster: Counts | None = None, options: Sequence[str] = ()) -> Report:
  """Run a kernel on the reference interpreter and report what it did; arguments as for `launch`.

  `exactness` follows the values of instructions that are not exact, which takes time. The report's `buffers` are the
  arrays after the run.
  """
  binary, kernel = translated(binary, kernel, options)
  start = _Start(binary, kernel, grid, block, args, shared, cluster)
  try:
    recorder = Recorder(exactness)
    if start.ptx is not None:
      start.run(recorder)
      made = Report.of(recorder, PtxCode(start.ptx.program), kernel)
      made.buffers = start.buffers()
      return made
    ready = start.ready
    with plain_faults(start.binary, ready.kernel), start.runtime.explained(ready):
      watchdog = int(mock_options().get("watchdog", OBSERVED))
      stats = dispatch(ready.space, ready.arch, ready.dispatch, watchdog=watchdog, observer=recorder)
    for text in told_outside(ready.kernel, start.runtime.loaded(), stats.outside): warn(text)
    made = Report.of(recorder, start.code(), kernel)
    made.buffers = start.buffers()
    return made
  finally: start.runtime.close()


@contextmanager
def reports(*, exactness: bool = True) -> Iterator[list[Report]]:
  """Report every kernel that emulated devices run inside the block, in order; the list fills while it runs.

  They run on the reference interpreter meanwhile. `exactness` as in `report`. Raises Unsupported without a mock GPU.
  """
  seen: list[Report] = []
  need_emulation("reports of")
  with Device.observing(Reporter(seen, exactness)): yield seen


@dataclass
class Captured:
  """A launch as it was before its first instruction: memory, registers, code; to be debugged as often as one likes."""
  kernel: str
  space: AddressSpace = field(repr=False)
  arch: Arch = field(repr=False)
  dispatch: Any = field(repr=False)
  symbols: dict[str, int] = field(repr=False)
  ranges: list[tuple[int, int]] = field(repr=False)
  buffers: list[tuple[str, int, int]] = field(repr=False)  # name, address, bytes to the end of its mapping
  source: Source | None = field(default=None, repr=False)
  text: tuple[str, ...] = field(default=(), repr=False)

  def debug(self, *, check: str = "") -> AmdDebugger | PtxDebugger:
    """A debugger on a copy of the memory; as `tinyhw.debug` else."""
    if isinstance(self.dispatch, PtxDispatch):
      return PtxDebugger(copied_space(self.space), self.arch, replace(self.dispatch, tick=None), {}, (), self.buffers,
                         watchdog=int(mock_options().get("watchdog", WATCHDOG)), checker=checker(check), text=self.text)
    return AmdDebugger(copied_space(self.space), self.arch, self.dispatch, self.symbols, self.ranges, self.buffers,
                    watchdog=int(mock_options().get("watchdog", WATCHDOG)), checker=checker(check), source=self.source)


  def shell(self, *, check: str = "") -> None:
    """The terminal debugger of `tinyhw launch --debug` on this launch."""
    from tinyhw.terminal.debugger import debug as terminal  # it loads where somebody wants it
    terminal(lambda: self.debug(check=check))[0].close()


@contextmanager
def captures(pattern: str = "*", limit: int = 16) -> Iterator[list[Captured]]:
  """Keep the launches of kernels on emulated devices whose name fits a pattern, to debug them later.

  Memory in use is copied at each launch kept, of which there are at most `limit`. Raises Unsupported without a mock
  GPU.
  """
  kept: list[Captured] = []
  need_emulation("captures of")
  with Device.observing(_Capturer(kept, pattern, limit)): yield kept


class _Capturer(Observer):
  def __init__(self, kept: list[Captured], pattern: str, limit: int) -> None:
    self.kept, self.pattern, self.limit = kept, pattern, limit

  def dispatch(self, space: AddressSpace, arch: Any, d: Any) -> None:
    found = None if isinstance(d, PtxDispatch) else kernel_at(d.entry_pc)
    name = d.program.entry_name if isinstance(d, PtxDispatch) else "" if found is None else found[2].name
    if len(self.kept) >= self.limit or not fnmatch.fnmatchcase(name, self.pattern): return
    self.kept.append(kept(space, arch, d, found))


def kept(space: AddressSpace, arch: Any, d: Any, found: tuple[CodeObject, int, Kernel] | None) -> Captured:
  """A dispatch that begins, with a copy of its memory; `found` as from `kernel_at`, for AMD's."""
  if isinstance(d, PtxDispatch):
    text = tuple(d.program.linked.text.decode(errors="replace").splitlines())
    return Captured(d.program.entry_name, copied_space(space), arch, d, {}, [], [], text=text)
  if found is None: return Captured("", copied_space(space), arch, d, {}, [], [])
  code, address, kernel = found
  return Captured(kernel.name, copied_space(space), arch, d, symbols(code, address), ranges(code, address),
                  _buffers(space, arch, d, kernel), sources([(address, code)]))


def _buffers(space: AddressSpace, arch: Arch, d: Any, kernel: Kernel) -> list[tuple[str, int, int]]:
  """The buffers that a launch's arguments point to."""
  at = next((i for i, name in user_sgprs(kernel, arch.name, 0).pairs.items() if name == "kernarg"), None)
  if at is None: return []
  kernarg, out = d.user_data[at] | d.user_data[at + 1] << 32, []
  for k, p in enumerate(kernel.arguments):
    if p.kind != "global_buffer": continue
    address = space.load(kernarg + p.offset, 8)
    m = space.find(address)
    if m is not None: out.append((p.name or f"arg{k}", address, m.end - address))
  return out


def need_emulation(what: str) -> None:
  """Raise Unsupported where kernels run on a card, or on the host."""
  if mock_cards() is not None: return
  triton = triton_target()
  if not Device.DEFAULT.startswith("EMU") and not (triton and triton[0] == "EMU"):
    raise Unsupported(what, "a device that is not emulated", hint="set MOCKGPU=1, or use device EMU")


class _Start:
  """A launch on a runtime of its own, with everything in memory."""

  def __init__(self, binary: Binary, kernel: str, grid: Counts, block: Counts, args: Sequence[Any],
               shared: int, cluster: Counts | None = None) -> None:
    self.runtime, self.arrays = emulated(), list[Buffer]()
    self.watchdog = int(mock_options().get("watchdog", WATCHDOG))
    try:
      self.binary = code = contents(binary)
      program = self.runtime.load_kernel(code, kernel)
      if cluster is not None and not isinstance(program, PtxProgram):
        raise Unsupported("clusters of blocks on", "AMD's GPUs")
      payload, lds = bind(self.runtime, program, code, args, shared, self.arrays)
      self.ptx = program if isinstance(program, PtxProgram) else None
      self.cluster = None if cluster is None else dims(cluster, "cluster")
      self.what = payload, dims(grid, "grid"), dims(block, "block"), lds
      if isinstance(program, PtxProgram): return
      self.ready: Ready = program.ready(payload, dims(grid, "grid"), dims(block, "block"), lds)
    except BaseException:
      self.runtime.close()
      raise

  def run(self, observer: Observer) -> None:
    """Run a kernel of PTX."""
    assert self.ptx is not None
    payload, grid, block, lds = self.what
    self.runtime.observer = observer
    with plain_faults(self.binary, self.ptx.kernel):
      self.ptx.launch(payload, grid, block, dynamic_lds=lds, cluster=self.cluster)

  def code(self) -> Code:
    """The code object's listing."""
    r = self.ready
    return listing(r.space, r.arch, r.loaded.code, r.loaded.address, r.dispatch.entry_pc)

  def buffers(self) -> list[Array]:
    """Every array's contents now."""
    return [fetch(self.runtime, value, allocation) for value, allocation in self.arrays if value is not None]


class PtxSession(PtxDebugger):
  """A debugger of a PTX kernel with the arrays of its launch."""

  def __init__(self, binary: Binary, kernel: str, grid: Counts, block: Counts, args: Sequence[Any], check: str = "",
               shared: int = 0, cluster: Counts | None = None) -> None:
    checks = checker(check)
    def again() -> _Start: return _Start(binary, kernel, grid, block, args, shared, cluster)
    self._again = again
    self._start = start = again()
    assert start.ptx is not None
    try:
      d, _ = start.ptx.ready(*start.what, start.cluster)
      check_launch(d)
      super().__init__(start.runtime.space, d.generation, d, {}, (),
                       [(p.name, p.start, p.size) for p in start.runtime.places], watchdog=start.watchdog,
                       checker=checks, closing=start.runtime.close, text=start.ptx.module.text)
    except BaseException:
      start.runtime.close()
      raise

  def buffers(self) -> list[Array]:
    """Every array's contents now, in order, as new arrays."""
    return self._start.buffers()

  def compare_engines(self) -> int:
    """Run the launch from its start on the reference and as compiled code, whose outcome and memory must agree; warp
    instructions executed. Raises MachineFault that names the first dwords that differ, or the launch's own fault."""
    start = self._again()
    try:
      assert start.ptx is not None
      d, _ = start.ptx.ready(*start.what, start.cluster)
      found: int = start.ptx.emulator.execute(start.runtime.space, d, engine="both").instructions
      return found
    finally: start.runtime.close()


class Session(AmdDebugger):
  """A debugger with the arrays of its launch."""

  def __init__(self, binary: Binary, kernel: str, grid: Counts, block: Counts, args: Sequence[Any], check: str = "",
               shared: int = 0, cluster: Counts | None = None) -> None:
    checks = checker(check)
    self._start = start = _Start(binary, kernel, grid, block, args, shared, cluster)
    r = start.ready
    source = sources([(r.loaded.address, r.loaded.code)])
    kernarg = next((p.start for p in reversed(start.runtime.places) if p.name == "kernarg"), 0)
    arguments = {name: (kernarg + a.offset, a.size)
                 for a, (name, _) in zip(r.kernel.arguments, declared(start.binary, r.kernel)) if name}
    if checks is not None: checks.spot = source.spot
    try:
      super().__init__(r.space, r.arch, r.dispatch, symbols(r.loaded.code, r.loaded.address),
                       ranges(r.loaded.code, r.loaded.address),
                       [(p.name, p.start, p.size) for p in start.runtime.places], watchdog=start.watchdog,
                       checker=checks, closing=start.runtime.close,
                       source=source, arguments=arguments)
    except BaseException:
      start.runtime.close()
      raise

  def buffers(self) -> list[Array]:
    """Every array's contents now, in order, as new arrays."""
    return self._start.buffers()
