"""Running a schedule: kernels are compiled once for each device and graph, loaded, and launched in order.

`DEBUG` prints what happens, each level more: 1 devices as they open, and what BEAM finds; 2 a line for each kernel with
its time, rates and the memory held; 3 its buffers, and the options of new kernels; 4 their source; 5 their graphs; 6
their linear UOps; 7 their machine code.
"""
from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tinyhw.core.environment import variable
from tinyhw.core.kept import Kept
from tinyhw.core.trace import Whose
from tinyhw.devices import watch
from tinyhw.devices.buffer import Buffer
from tinyhw.devices.profile import PROFILE, span, wants
from tinyhw.devices.registry import Device, OpenDevice, debug_level
from tinyhw.engine import viz
from tinyhw.engine.binding import bound_value
from tinyhw.engine.load import loaded
from tinyhw.ir import stages
from tinyhw.ir.size import Values
from tinyhw.ir.uop import UOp

if TYPE_CHECKING:
  from tinyhw.compile import Opt, ProgramSpec
  from tinyhw.compile.render.base import Renderer
  from tinyhw.drive.base import Program



@dataclass(eq=False)
class LoadedKernel:
  """A compiled kernel, loaded on its device."""
  spec: ProgramSpec
  program: Program
  device: OpenDevice


@dataclass(eq=False)
class Step:
  """One thing that a device does: a kernel over buffers, or (kernel None) a copy of the second buffer to the first."""
  kernel: LoadedKernel | None
  buffers: tuple[Buffer, ...]
  values: tuple[int, ...] = ()

  @staticmethod
  def of(kernel: LoadedKernel | None, buffers: tuple[Buffer, ...], values: Values | None = None) -> Step:
    """The step with these values of the kernel's variables, or those that they have now."""
    if kernel is None or not kernel.spec.variables: return Step(kernel, buffers)
    return Step(kernel, buffers, tuple([bound_value(v) if values is None or v not in values else values[v]
                                        for v in kernel.spec.variables]))

  @property
  def written(self) -> tuple[Buffer, ...]:
    """The buffers that it fills."""
    return self.buffers[:1 if self.kernel is None else self.kernel.spec.outputs]

  @property
  def grid(self) -> tuple[int, int, int]:
    """The workgroups of this launch."""
    assert self.kernel is not None
    spec = self.kernel.spec
    return spec.grid if spec.extent is None else spec.launch_grid(dict(zip(spec.variables, self.values)))

  @property
  def operations(self) -> int:
    """The arithmetic operations of this launch."""
    assert self.kernel is not None
    return self.kernel.spec.estimates.operations(dict(zip(self.kernel.spec.variables, self.values)))

  def run(self) -> None:
    """Queue it."""
    if self.kernel is None: return self.buffers[0].copy_from(self.buffers[1])
    spec, written = self.kernel.spec, self.written
    for b in written: b.overwritten()
    allocations = [self.buffers[i].allocation for i in spec.buffer_order]
    if spec.extent is None: self.kernel.program(allocations, self.values, spec.grid, spec.block)
    elif 0 not in (grid := self.grid): self.kernel.program(allocations, self.values, grid, spec.block)
    for b in written: b.written()

  def run_loudly(self, level: int) -> None:
    """Run it, wait, and say how long it took: print it, or put it into the profile."""
    start = time.perf_counter()
    what, seconds = f"copy from {self.buffers[1].device}" if self.kernel is None else self.kernel.spec.name, None
    if self.kernel is None: self.buffers[0].copy_from(self.buffers[1])
    else:
      spec = self.kernel.spec
      for b in self.written: b.overwritten()
      allocations = [self.buffers[i].allocation for i in spec.buffer_order]
      grid, seconds = self.grid, 0.0
      if 0 not in grid: seconds = self.kernel.program(allocations, self.values, grid, spec.block, wait=True) or 0.0
      for b in self.written: b.written()
    stop = time.perf_counter()
    if wants(): self._profiled(what, (start, stop), seconds)
    if viz.wants() and self.kernel is not None: viz.VIZ.ran(self.kernel.spec, seconds or 0.0, stop - start)
    if level >= 2: self._print(what, stop - start, seconds, level)

  def _profiled(self, what: str, host: tuple[float, float], seconds: float | None) -> None:
    own, clock, facts = None, Whose.HOST, dict[str, Any]()
    if self.kernel is not None and seconds is not None:
      spec, began = self.kernel.spec, self.kernel.device.runtime.began()
      own, clock = None if began is None else (began, began + seconds), self.kernel.device.runtime.clock
      facts = {"grid": _times(self.grid), "block": _times(spec.block), "operations": self.operations,
               "bytes": spec.estimates.bytes}
    else: facts = {"bytes": self.buffers[0].nbytes}
    PROFILE.kernel(self.buffers[0].device, what, host, own, facts, clock)

  def _print(self, what: str, host: float, own: float | None, level: int) -> None:
    """A line of the launch: the time that it took, and how fast that is; of a mock, what the host took and what the
    mock's clock says, of which nothing follows for a card."""
    ops, moved, sizes = 0, self.buffers[0].nbytes, ""
    if self.kernel is not None:
      spec = self.kernel.spec
      ops, moved, sizes = self.operations, spec.estimates.bytes, f"{_times(self.grid)} x {_times(spec.block)}"
    mocked = _clock(self.buffers[0].device) is Whose.MOCK
    seconds = host if mocked or own is None else own
    counters.steps += 1
    counters.seconds += seconds
    if mocked: rate = "of the host" if own is None else f"of the host ({own * 1e6:,.1f} us on the {Whose.MOCK.value})"
    else: rate = f"{ops / seconds * 1e-9:8.2f} GFLOPS {moved / seconds * 1e-9:8.2f} GB/s" if seconds else ""
    print(f"{self.buffers[0].device:8s} {counters.steps:5d}  {what:32s} {sizes:22s} {seconds * 1e3:9.3f} ms {rate}"
          f"  {counters.seconds * 1e3:9.1f} ms in all  {_held(self.buffers[0].device)}", file=sys.stderr)
    if level >= 3:
      for i, b in enumerate(self.buffers):
        print(f"{'':16s}{i}: {b.size} x {b.dtype}, {b.nbytes:,} bytes", file=sys.stderr)


@dataclass
class Counters:
  """What has run since the process began, for the lines that `DEBUG` prints."""
  steps: int = 0
  seconds: float = 0.0


counters = Counters()


def _clock(device: str) -> Whose:
  """Whose clock a device's times are of."""
  opened = Device.get(device)
  return Whose.HOST if opened is None else opened.runtime.clock


def _held(device: str) -> str:
  """What buffers hold of a device's memory."""
  opened = Device.get(device)
  return "" if opened is None else f"{opened.used / 1e6:,.2f} MB held"


def _times(sizes: Sequence[int]) -> str:
  return "*".join(str(s) for s in sizes)


def kernel_for(ast: UOp, device: str) -> LoadedKernel:
  """The kernel of a graph on a device: from the opened device's cache, or compiled and loaded now."""
  opened = Device[device]
  known: LoadedKernel | None = opened.kernels.get(ast)
  return known or _compiled(ast, opened)


def _compiled(ast: UOp, opened: OpenDevice) -> LoadedKernel:
  """The kernel, compiled and loaded by the first thread that wants it; the others wait for it."""
  with opened.compiling:
    kernels: Kept[UOp, LoadedKernel] = opened.kernels
    if (found := kernels.get(ast)) is not None: return found
    start = time.perf_counter()
    with span("compile", "compile", device=opened.name):
      if viz.wants():
        best = _searched(ast, opened)
        opts = None if best is None else best.opts
        with viz.VIZ.compiling(opened.name, opened.renderer) as page:
          page.clock = opened.runtime.clock
          spec = page.spec = compile_anew(ast, opened.renderer, opts)
      else: spec = program_of(ast, opened.renderer, opened)
    with span("compile", f"load {spec.name}"):
      kernel = LoadedKernel(spec, loaded(spec, opened.runtime), opened)
    if (level := debug_level()) >= 3: _show(spec, ast, opened.renderer, level, time.perf_counter() - start)
    return kernels.keep(ast, kernel)


def compile_anew(ast: UOp, renderer: Renderer, opts: Sequence[Opt] | None = None) -> ProgramSpec:
  """The program of a kernel graph, compiled now: who watches stages sees them."""
  from tinyhw.compile import compiler
  compiler.forget(ast, renderer, opts)
  return compiler.compile_kernel(ast, renderer, opts)


def _searched(ast: UOp, device: OpenDevice | None) -> ProgramSpec | None:
  """The program that `BEAM` finds on the device, where it is set."""
  if device is None or not variable("BEAM", b"BEAM"): return None
  from tinyhw.engine import beam
  return beam.searched(ast, device, lists) if (lists := beam.width()) else None


def program_of(ast: UOp, renderer: Renderer, device: OpenDevice | None = None) -> ProgramSpec:
  """The program of a kernel graph: from disk (without its uops, which nobody looks at), or compiled now and kept.
  With `BEAM` its options are searched for on the device."""
  from tinyhw.compile import compile_kernel
  from tinyhw.engine import kept
  def made() -> ProgramSpec: return _searched(ast, device) or compile_kernel(ast, renderer)
  if kept.store().folder is None or debug_level() >= 6: return made()
  name = kept.key(ast, renderer)
  if (found := kept.load(name)) is not None: return found
  kept.save(name, spec := made())
  return spec


def kernels_for(wanted: Sequence[tuple[UOp, str]]) -> list[LoadedKernel]:
  """Several kernels, each a graph on a device. Where nobody looks on, several are compiled at a time."""
  if len(wanted) > 1 and debug_level() < 4 and not viz.wants() and stages.watching() is None:
    for device in dict.fromkeys(device for _, device in wanted):
      _compile_ahead([ast for ast, its in wanted if its == device], Device[device])
  return [kernel_for(ast, device) for ast, device in wanted]


def _compile_ahead(asts: Sequence[UOp], opened: OpenDevice) -> None:
  """Compile those of the kernels that are neither on the device nor on disk, where that leaves Python free."""
  from tinyhw.engine import kept
  missing = [ast for ast in asts if ast not in opened.kernels]
  if len(missing) < 2 or not opened.renderer.leaves_python or variable("BEAM", b"BEAM"): return
  store = kept.store()
  if store.folder is not None:
    missing = [ast for ast in missing if not store.holds(kept.key(ast, opened.renderer))]
    if len(missing) < 2: return
  from tinyhw.compile.compiler import compile_ahead
  with opened.compiling, span("compile", f"compile {len(missing)} kernels", device=opened.name):
    compile_ahead(missing, opened.renderer)


def _show(spec: ProgramSpec, ast: UOp, renderer: Renderer, level: int, seconds: float) -> None:
  sizes = f"{len(spec.uops)} uops, {len(spec.binary)} bytes"
  opts = ", ".join(f"{o.kind.name} {o.axis} {o.amount}" for o in spec.opts) or "no options"
  print(f"-- {spec.name}: compiled in {seconds * 1e3:.1f} ms, {sizes}; {opts}", file=sys.stderr)
  if level >= 5: print(ast.text(), file=sys.stderr)
  if level >= 6:
    number = {u: i for i, u in enumerate(spec.uops)}
    for u, i in number.items():
      sources = str([number[s] for s in u.src])
      print(f"{i:4d} {u.op.name:13s} {u.dtype!r:30s} {sources:18s} {'' if u.arg is None else u.arg}", file=sys.stderr)
  if level >= 4: print(spec.source, file=sys.stderr)
  if level >= 7: print(viz.machine_code(spec, renderer), file=sys.stderr)


Listener = Callable[[Step], None]
_listeners: list[Listener] = []


def listened() -> bool:
  """Whether somebody listens to the steps that run."""
  return bool(_listeners)


def shown() -> bool:
  """Whether somebody is shown each step of this thread."""
  return bool(_listeners) or watch.watching() is not None or debug_level() >= 2 or bool(wants() or viz.wants())


def run(steps: Sequence[Step]) -> None:
  """Queue the steps in order; a watcher is told of each."""
  watcher, level = watch.watching(), debug_level()
  loud = level >= 2 or bool(wants() or viz.wants())
  for step in steps:
    if loud: step.run_loudly(level)
    else: step.run()
    if watcher is not None: watcher.ran(step)
    if _listeners:
      for listener in tuple(_listeners): listener(step)


class listening:
  """Calls `listener` with each step that runs inside."""

  def __init__(self, listener: Listener): self.listener = listener
  def __enter__(self) -> None: _listeners.append(self.listener)
  def __exit__(self, *exc: object) -> None: _listeners.remove(self.listener)
