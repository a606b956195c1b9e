"""PTX without a driver: a module's variables in memory, launches that go straight to the emulator.

The runtime is that of AMD's code objects (`drive.amd.bare`): memory, turns of threads and patience are the same.
"""
from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tinyhw.core.errors import Interrupted, InvalidArgument, MachineFault, PageFault, Unsupported, WaitTimeout
from tinyhw.core.memory import PAGE
from tinyhw.core.printf import Printed
from tinyhw.core.timeout import HELD, ticker
from tinyhw.drive.base import Allocation, Dim3, Program
from tinyhw.wire.codeobject import Argument
from tinyhw.wire.ctype import CType

if TYPE_CHECKING:
  from tinyhw.drive.amd.bare import BareRuntime

_PTX: Final = re.compile(rb"(?:\s|//[^\n]*\n|/\*.*?\*/|\xef\xbb\xbf)*\.version\s", re.DOTALL)
PARAMS_LIMIT: Final = 32764  # bytes of a kernel's parameters (PTX ISA, section 11.2.1)


def is_ptx(binary: bytes) -> bool:
  """Whether a file is the text of a PTX module."""
  return _PTX.match(binary) is not None


@dataclass(frozen=True)
class PtxKernel:
  """What a launch has to know of a kernel. `used` are the types that its code has for parameters."""
  name: str
  arguments: tuple[Argument, ...]
  kernarg_size: int
  group_segment_size: int
  used: tuple[CType | None, ...] = ()


@dataclass(frozen=True)
class Emulator:
  """The emulator's parts, handed in: a driver knows no emulator.

  `link` makes a module out of text, `kernel` what a launch has to know of a kernel, `program` its code with variables
  at an address, `dispatch` a launch, `execute` runs it.
  """
  link: Callable[[bytes], Any]
  kernel: Callable[[Any, str], PtxKernel]
  program: Callable[[Any, str, int], Any]
  dispatch: Callable[..., Any]
  execute: Callable[..., Any]


@dataclass(eq=False)
class PtxModule:
  """A module in memory: what the linker made, and where its variables are."""
  linked: Any
  text: tuple[str, ...]
  address: int
  programs: dict[str, Any] = field(default_factory=dict)


class PtxProgram(Program):
  """A kernel of a PTX module, for launches on the emulator."""

  clusters = True  # of blocks, that a launch may ask for

  def __init__(self, runtime: BareRuntime, emulator: Emulator, module: PtxModule, name: str) -> None:
    self.name, self.runtime, self.emulator, self.module = name, runtime, emulator, module
    self.kernel = emulator.kernel(module.linked, name)
    program = module.programs.get(name)
    if program is None: program = module.programs[name] = emulator.program(module.linked, name, module.address)
    self.program = program

  def __call__(self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3,
               wait: bool = False) -> float | None:
    raise Unsupported("tensors on", self.runtime.name)

  def bind(self, name: str, handle: int) -> None:
    """Bind a .texref or .surfref of the module to a texture or surface. Raises InvalidArgument for a name of none."""
    known = self.module.linked.opaque
    if name not in known:
      raise InvalidArgument(f"no texture or surface is called {name!r}", where=f"kernel {self.name}",
                            hint=f"the module has {', '.join(known) or 'none'}")
    self.runtime.space.write(self.module.address + self.module.linked.offsets[name], handle.to_bytes(8, "little"))

  def launch(self, params: bytes, grid: Dim3, block: Dim3, *, dynamic_lds: int = 0,
             cluster: Dim3 | None = None) -> None:
    """Run with the parameters as bytes, and so much dynamic shared memory, in clusters of so many blocks."""
    runtime = self.runtime
    terms = runtime.agreed.get(threading.get_ident())
    seen_by = runtime.observer if terms is None or terms.observer is None else terms.observer
    observer = {} if seen_by is None else {"observer": seen_by}
    printed = Printed()
    tick = ticker(terms, threading.current_thread() is threading.main_thread(), runtime.timeout_s)
    dispatch, memory = self.ready(params, grid, block, dynamic_lds, cluster, printed, tick)
    try:
      with runtime.lock, HELD:
        try: stats = self.emulator.execute(runtime.space, dispatch, **observer)
        except MachineFault as fault:
          self._explain(fault, grid, block, cluster)
          raise
        finally: printed.write(tick)
      runtime.executed += stats.instructions
    except Interrupted as stopped:
      seconds = runtime.timeout_s if terms is None or terms.seconds is None else terms.seconds
      if terms is not None: terms.interrupted = stopped
      raise WaitTimeout(runtime.name, packet=f"kernel {self.name}", seconds=seconds or 0) from None
    finally: runtime.free(memory)

  def ready(self, params: bytes, grid: Dim3, block: Dim3, dynamic_lds: int, cluster: Dim3 | None = None,
            printed: Printed | None = None, tick: Callable[[], None] | None = None) -> tuple[Any, Allocation]:
    """(the emulator's launch with its parameters in memory, that memory)."""
    if len(params) > PARAMS_LIMIT: raise InvalidArgument(f"{len(params):,} bytes of parameters", where=self.name)
    memory = self.runtime.take("params", max(len(params), 16))
    assert memory.address is not None
    self.runtime.space.write(memory.address, params)
    return self.emulator.dispatch(self.program, grid, block, memory.address, len(params), dynamic_lds, tick,
                                  Printed() if printed is None else printed, cluster), memory

  def _explain(self, fault: MachineFault, grid: Dim3, block: Dim3, cluster: Dim3 | None) -> None:
    """Say of a fault which line of the PTX it is, which thread, what memory."""
    fault.work, fault.kernel = f"kernel {self.name}", self.name
    self.program.explain(fault, grid, block, self.module.text, cluster)
    if isinstance(fault, PageFault): fault.memory = self.runtime.near(fault.address or 0)


def load(runtime: BareRuntime, emulator: Emulator, binary: bytes) -> PtxModule:
  """Place a module's variables in memory."""
  linked = emulator.link(binary)
  address = 0
  if linked.size:
    memory = runtime.take("variables", -(-linked.size // PAGE) * PAGE)
    assert memory.address is not None
    address = memory.address
  module = PtxModule(linked, tuple(binary.decode().splitlines()), address)
  if linked.size:
    functions = {}
    if linked.fixups and linked.lines:
      first = next(iter(linked.lines))
      functions = emulator.program(linked, first, address).functions
    runtime.space.write(address, linked.bytes_at(address, functions))
  return module
