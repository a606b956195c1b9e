"""`tinyhw.launch`: run a kernel of a ready code object on a device, arrays in and arrays out."""
from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhw.core.errors import Error, InvalidArgument, LDSWarning, MachineFault, Unsupported, WaitTimeout
from tinyhw.devices.registry import Device, OpenDevice, mock_cards, nv_cards, stand_in
from tinyhw.drive.nv.bare import PtxKernel, is_ptx
from tinyhw.kernels.arguments import Array, Buffer, bind, fetch, handle_of
from tinyhw.kernels.parameters import asked_for
from tinyhw.kernels.sources import compiled, device_for, refuse_options, source_of
from tinyhw.kernels.textures import Texture
from tinyhw.wire.codeobject import CodeObject, Kernel, place, sources, unbundled

if TYPE_CHECKING:
  from tinyhw.emulator.check.report import Report as Findings
  from tinyhw.emulator.debug.report import Report

Binary = bytes | bytearray | memoryview | str | os.PathLike[str]
Counts = int | Sequence[int]


class Launched(list[Array]):
  """The arrays of a launch as they are after it, in the order of the arguments.

  `report` is what `report=True` asked for; `findings` is what `check="report"` found, None without a check; `warnings`
  are the texts of what was warned of.
  """

  def __init__(self, arrays: Sequence[Array] = ()) -> None:
    super().__init__(arrays)
    self.report: Report | None = None
    self.findings: Findings | None = None
    self.warnings: list[str] = []


def launch(binary: Binary, kernel: str, grid: Counts, block: Counts, args: Sequence[Any], device: str | None = None,
           shared: int = 0, *, check: bool | str = False, report: bool = False,
           timeout: float | None = None, cluster: Counts | None = None,
           textures: Mapping[str, Texture] | None = None, options: Sequence[str] = ()) -> Launched:
  """Run `kernel` of `binary` and wait for it: an AMDGPU code object, versions 4 to 6, or a PTX module, as bytes or the
  path of its file. PTX, which may be its text as well, runs on EMU, NV and CUDA; cubins on NV and CUDA. So does CUDA
  C++ (text, or a .cu file), of which nvrtc makes PTX: there `kernel` may be a template's (`scale<float>`), and
  `options` are nvrtc's (`-DN=4`). HIP C++ (a .hip file, text that includes HIP's header, or text for a device of AMD's)
  runs on AMD, HSA and EMU, by clang.

  `grid` counts workgroups and `block` work-items: an int, or one to three of them (x, y, z); missing ones are 1.
  `shared` is dynamic LDS in bytes: it begins where the kernel's own LDS ends (HIP's `extern __shared__`).

  `args` has one entry for each explicit parameter:

  - for a pointer to global or constant memory: a NumPy array (or what has `__array__`, such as a torch tensor on the
    CPU) is a buffer with a copy of it; None is a null pointer; an int is a raw GPU address;
  - for a pointer to LDS (OpenCL's `local`): an int, how many bytes of dynamic LDS it points to;
  - for a value: a NumPy scalar, int or float; for a structure or vector bytes, a NumPy record, a ctypes structure.

  `device` is "AMD", "AMD:1", "EMU"...; left out, it is `Device.DEFAULT` where the program or `DEV` has set it, else AMD
  (EMU where MOCKGPU names a generation that has no mock card).

  On an emulated device, `check=True` raises HazardFound after a run in which the hazard checks found something;
  "report" leaves them in the result's `findings`; names choose checks ("race,barrier"). `report=True` counts what the
  kernel executed and moved: the result's `report`. Both use the reference interpreter.

  `timeout` is how many seconds the launch may take on the host's clock, on EMU and the mock too: then it is taken off
  the device, which goes on, and WaitTimeout is raised. Without it a driver waits TINYHW_TIMEOUT_S for a card, and
  emulated devices end endless loops themselves (MOCKGPU_WATCHDOG).

  `cluster` is how many blocks a cluster of PTX has each way, where the kernel does not say it (.reqnctapercluster).

  A `Texture` or `Surface` is the argument for a 64-bit handle, a .texref or .surfref of a kernel of PTX; `textures` are
  those that the module's variables of these types are bound to, by name.

  LDS beyond what the launch has reads as 0 and takes no writes, as on the chip; emulated devices warn of it
  (LDSWarning), once a launch.

  Threads may launch at the same time, on one device or several. Checks, report and timeout are a launch's own.

  Returns every array's contents after the run, in order, as new arrays. Raises InvalidArgument for arguments that do
  not fit the kernel, DecodeError for a broken binary, DeviceError for what went wrong on the device (MachineFault on
  EMU), WaitTimeout, HazardFound, Unsupported for a device that runs no code objects.
  """
  source = source_of(binary, device or Device.chosen)
  if source is None: refuse_options(options)
  if device is None and Device.chosen is None and (source is not None or is_ptx(contents(binary))):
    device = device_for(source)
  opened = Device[device or default_device()]
  runtime: Any = opened.runtime
  if not hasattr(runtime, "load_kernel"):
    raise Unsupported("launch of ready code objects on", opened.name,
                      hint="use device='AMD', 'HSA', 'NV', 'CUDA' or 'EMU'")
  if source is not None: binary, kernel = compiled(source, kernel, runtime, opened.name, options)
  code = contents(binary, getattr(runtime, "target", None))
  sizes = dims(grid, "grid"), dims(block, "block")
  more = {} if cluster is None else {"cluster": dims(cluster, "cluster")}
  buffers: list[Buffer] = []
  with Device.agreeing() as terms, observed(opened.name, check, report) as result:
    program = runtime.load_kernel(code, kernel)
    if more and not getattr(program, "clusters", False): raise Unsupported("clusters of blocks on", opened.name)
    try:
      payload, lds = bind(runtime, program, code, args, shared, buffers)
      for name, texture in (textures or {}).items():
        if not hasattr(program, "bind"): raise Unsupported("textures on", opened.name)
        program.bind(name, handle_of(runtime, texture, name, buffers))
      with timed(opened, timeout, kernel), plain_faults(code, program.kernel):
        program.launch(payload, *sizes, dynamic_lds=lds, **more)
        runtime.synchronize()
      result += [fetch(runtime, value, allocation) for value, allocation in buffers if value is not None]
    finally:
      for _, allocation in buffers: runtime.free(allocation)
    result.warnings = told_outside(program.kernel, runtime.loaded(), terms.outside)
  for text in result.warnings: warn(text)
  return result


@contextmanager
def plain_faults(code: bytes, kernel: Kernel | PtxKernel) -> Iterator[None]:
  """Have faults name only those hidden arguments that the kernel's code may read."""
  try: yield
  except MachineFault as fault:
    if fault.hidden: fault.hidden = tuple(name for name in fault.hidden if name in asked_for(code, kernel))
    raise


@contextmanager
def timed(opened: OpenDevice, seconds: float | None, kernel: str) -> Iterator[None]:
  """Give what happens in the block so many seconds. Raises WaitTimeout, with the device ready for the next launch."""
  number = isinstance(seconds, (int, float, np.integer, np.floating)) and not isinstance(seconds, bool)
  if seconds is not None and not (number and 0 < seconds < float("inf")):
    raise InvalidArgument(f"{seconds!r} is no positive number of seconds", where="timeout")
  runtime: Any = opened.runtime
  with Device.limited(opened.name, seconds) as terms:
    try:
      yield
      if terms.interrupted is None: return
      raise WaitTimeout(opened.name, packet=f"kernel {kernel}", seconds=seconds or 0)
    except WaitTimeout as error:
      if seconds is None: raise  # TINYHW_TIMEOUT_S: whoever waits so long may want to look at the device
      stopped, where = terms.interrupted, ""
      if stopped is not None:
        named = stopped.at if stopped.pc is None else placed(runtime.loaded(), stopped.pc)
        if named is not None: where = f"; wave {stopped.wave} stood at {named} before '{stopped.instruction}'"
      elif hasattr(runtime, "reset"): runtime.reset()
      error.hint = f"the launch was taken off the device, which goes on{where}"
      if stopped is None and getattr(runtime, "lost", None) is not None:
        error.hint = f"the device still runs it; Device.reset({opened.name!r}) makes a new context"
      raise


def told_outside(kernel: Kernel | PtxKernel, loaded: list[tuple[int, CodeObject]],
                 outside: dict[int, Any]) -> list[str]:
  """What to warn of where a launch touched LDS that it does not have: the first of the instructions that did."""
  if not outside: return []
  pc = min(outside)
  locals_ = any(p.kind == "dynamic_shared_pointer" for p in kernel.arguments)
  way = "give its pointers to LDS more bytes" if locals_ else "shared=BYTES (--shared) gives a launch dynamic LDS"
  others = len(outside) - 1
  more = f", as did {others} more instruction{'s' if others > 1 else ''}" if others else ""
  return [f"kernel {kernel.name} at {placed(loaded, pc)}: {outside[pc]}{more}; {way}"]


def placed(loaded: list[tuple[int, CodeObject]], pc: int) -> str:
  """"add+0x10 (add.c:5)": where an instruction is, its line where that is known."""
  spot = sources(loaded).spot(pc)
  return f"{place(loaded, pc) or f'PC {pc:#x}'}{f' ({spot})' if spot else ''}"


def warn(text: str) -> None:
  """Warn at each launch, with the place of the caller: the usual filter would show a text once."""
  frame: Any = sys._getframe(2)
  warnings.warn_explicit(text, LDSWarning, frame.f_code.co_filename, frame.f_lineno)


@contextmanager
def observed(device: str, check: bool | str, report: bool) -> Iterator[Launched]:
  """What a launch in the block returns; the checks and the report that were asked for see it run."""
  from tinyhw.emulator.observe import Observer, Several
  result, watching, reports = Launched(), list[Observer](), list[Any]()
  fails = False
  if check or report:
    if device.startswith(("AMD", "NV", "CUDA")) and mock_cards() is None:
      raise Unsupported("hazard checks on" if check else "a report of", "a card",
                        hint="set MOCKGPU=1, or use device EMU")
  if check:
    from tinyhw.emulator.check.checker import checker
    text = "1" if check is True else check
    asked = checker(text)
    if asked is not None:
      fails, asked.fails, result.findings = asked.fails, False, asked.report  # raised when the device is at rest again
      asked.spot, asked.used = Device.spot, Device.used
      watching.append(asked)
  if report:
    from tinyhw.kernels.report import Reporter  # it loads the reports of both vendors
    watching.append(Reporter(reports, exactness=True))
  if not watching:
    yield result
    return
  with Device.observing(watching[0] if len(watching) == 1 else Several(watching)): yield result
  if reports:
    result.report = reports[-1]
    result.report.buffers = list(result)
  if fails and result.findings:
    raise result.findings.error("check='report' goes on and leaves them in the result's findings")


def contents(binary: Binary, arch: str | None = None) -> bytes:
  """The bytes of a code object, or of the file at its path; out of a bundle that for the generation `arch`, or the one.

  Raises InvalidArgument for a file that cannot be read.
  """
  if isinstance(binary, (bytes, bytearray, memoryview)): return unbundled(bytes(binary), arch)
  if isinstance(binary, str) and "\n" in binary and is_ptx(binary.encode()): return binary.encode()
  if not isinstance(binary, (str, os.PathLike)):
    raise InvalidArgument(f"{type(binary).__name__} given for a code object", hint="give its bytes or its file's path")
  try: return unbundled(Path(binary).read_bytes(), arch)
  except Error: raise
  except (OSError, ValueError) as error:
    why = getattr(error, "strerror", None) or error
    raise InvalidArgument(f"cannot be read: {why}", where=repr(os.fspath(binary))) from None


def default_device() -> str:
  """What the program or `DEV` has set, else AMD; EMU where MOCKGPU names generations that no mock card has yet."""
  if Device.chosen is not None: return Device.chosen
  if nv_cards(): return "NV"
  return "AMD" if stand_in() is None else "EMU"


def dims(counts: Counts, where: str) -> tuple[int, int, int]:
  """Three positive counts out of one to three."""
  try: given = (counts,) if isinstance(counts, (int, np.integer)) else tuple(counts)
  except TypeError: given = ()
  whole = all(isinstance(c, (int, np.integer)) and not isinstance(c, bool) and c > 0 for c in given)
  if not 1 <= len(given) <= 3 or not whole:
    raise InvalidArgument(f"{counts!r} is not one to three positive counts", where=where)
  x, y, z = (int(c) for c in (*given, 1, 1)[:3])
  return x, y, z
