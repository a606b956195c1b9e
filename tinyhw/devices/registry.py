"""Composition root: from a device's name to its renderer (what compiles for it) and its runtime (what runs it).

The only place that reads `DEV` and `MOCKGPU` (`mocked` has the options beside it), and the only one that
knows that a mock exists: drivers are handed a `Port`, the real one or the mock's, and cannot tell which. Devices open
on first use and stay open until the process ends.
"""
from __future__ import annotations

import functools
import importlib
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tinyhw.core.ending import Step, at_end
from tinyhw.core.environment import count, variable
from tinyhw.core.errors import DeviceError, InvalidArgument, Unsupported
from tinyhw.core.kept import Kept
from tinyhw.core.lazy import cached_property
from tinyhw.core.locks import REGISTRY, lock, shared_lock
from tinyhw.core.nearest import offered
from tinyhw.core.timeout import Agreed
from tinyhw.core.trace import Whose
from tinyhw.devices import variables
from tinyhw.devices.captured import RECORDING
from tinyhw.devices.mocked import emulated_card, mock_machine, mock_options, stand_again
from tinyhw.devices.observed import Observed
from tinyhw.ir.group import is_group, members, named

if TYPE_CHECKING:
  from tinyhw.arch import Arch
  from tinyhw.core.port import Port
  from tinyhw.drive.amd.bare import BareRuntime
  from tinyhw.drive.base import Allocation, Runtime
  from tinyhw.ir.uop import UOp

KERNELS = 4096  # that a device keeps
KINDS: dict[str, str] = {
  "LLVM": "the host processor, through llvmlite's JIT",
  "PYTHON": "the UOp emulator, in Python and NumPy",
  "AMD": "AMD GPUs through /dev/kfd, or a mock GPU with MOCKGPU=1",
  "EMU": "AMD code objects and PTX, straight on the emulator",
  "C": "the host processor, through a C compiler",
  "NV": "NVIDIA GPUs through /dev/nvidiactl, or a mock GPU with MOCKGPU=sm_90",
  "CUDA": "NVIDIA GPUs through libcuda, or mock ones with MOCKGPU=sm_90",
  "HSA": "AMD GPUs through ROCm's runtime (libhsa-runtime64)",
  "CL": "OpenCL devices, through the installed drivers",
  "METAL": "Apple GPUs",
  "DISK": "a file that holds data: DISK:PATH",
  "NPY": "memory of the host that holds data",
  "NULL": "nothing: kernels are compiled and do not run; TINYHW_NULL names the target",
}
"""Every device kind that tinyhw plans, with what it is."""
_OTHER_NAMES = {"CPU": "LLVM", "CLANG": "C", "GPU": "CL", "HIP": "HSA"}
"""What other programs call them."""


@dataclass(frozen=True)
class Way:
  """How a kind of drivers reaches its cards: a `Port`, or a library's functions. `machine` is the mock behind it, None
  for the system's own."""
  to: Any
  machine: Any = None
  client: Any = None  # the mock's port, where it is one

  def end(self) -> None:
    """A mock machine ends, and what this process had mapped of it."""
    self.machine.close()
    if self.client is not None: self.client.end()


@dataclass(eq=False)
class OpenDevice:
  """A device in use: its canonical name and the runtime that runs programs on it.

  Threads may share it. `compiling` is held while a kernel is compiled and loaded, so that one thread does it for all;
  `memory` while memory is given out. Freeing takes no lock: finalizers do it, wherever they run.
  """
  name: str
  runtime: Runtime
  make_renderer: Callable[[], Any]

  def __post_init__(self) -> None:
    self.compiling, self.memory = lock(), lock()
    self._held_bytes = 0
    self.peak = 0  # the most bytes that buffers have held at one time
    self._spare: dict[int, list[Allocation]] = {}
    self._freed: deque[Allocation] = deque()  # not yet among the spare ones
    self.closed = ""  # what happened to it: "closed", "reset"
    self.held: dict[Allocation, str] = {}  # what somebody holds, with the user's line where that is asked for
    self.devices: Devices | None = None  # the registry that opened it
    self.kernels: Kept[UOp, Any] = Kept(KERNELS)  # what was compiled and loaded on it; the engine fills it
    self._timeline = getattr(self.runtime, "timeline", None)

  @cached_property
  def renderer(self) -> Any:
    """What makes programs for the device; loaded when the first one is compiled."""
    return self.make_renderer()

  def alloc(self, nbytes: int) -> Allocation:
    """Device memory: a freed allocation of that very size where there is one, else a new one."""
    with self.memory:
      if self.closed:
        raise DeviceError(f"the device was {self.closed}", where=self.name,
                          hint=f"open it again: Device[{self.name!r}]")
      if self._freed: self._collect()
      allocation = spare.pop() if (spare := self._spare.get(nbytes)) else self._allocated(nbytes)
      devices = self.devices
      self.held[allocation] = devices.notes_places() if devices and devices.notes_places else ""
      self._held_bytes += allocation.size
      if self._held_bytes > self.peak: self.peak = self._held_bytes
      return allocation

  def _allocated(self, nbytes: int) -> Allocation:
    try: return self.runtime.alloc(nbytes)
    except DeviceError:
      if not self._spare: raise
      self.trim()
      return self.runtime.alloc(nbytes)

  def free(self, allocation: Allocation) -> None:
    """Keep the memory for the next allocation of that size. Launches are in order, so queued work is not disturbed."""
    self.held.pop(allocation, None)
    if not self.closed: self._freed.append(allocation)  # else it went with the runtime

  def _collect(self) -> None:
    freed = self._freed
    while freed:
      allocation = freed.popleft()
      self._held_bytes -= allocation.size
      self._spare.setdefault(allocation.size, []).append(allocation)

  @property
  def used(self) -> int:
    """Bytes that buffers hold now."""
    with self.memory:
      self._collect()
      return self._held_bytes

  def forget_peak(self) -> None:
    """Count the most that is held at one time from now on."""
    self.peak = self.used

  def trim(self) -> None:
    """Give all spare memory back to the device."""
    with self.memory:
      self._collect()
      spare, self._spare = self._spare, {}
      for allocation in (a for allocations in spare.values() for a in allocations): self.runtime.free(allocation)

  def stamp(self) -> int:
    """Where the device's timeline is: work that is queued by now has at most this value. 0 where nothing is queued."""
    return 0 if self._timeline is None else self._timeline.last

  def was_dropped(self, stamp: int) -> bool:
    """Whether the work of that time will never be done, or may have used what was not done."""
    return any(first <= stamp <= last for first, last in self.runtime.dropped)

  def stopped(self) -> None:
    """The work that runs on the device at this moment was taken off it: what is queued behind may use its results."""
    if self._timeline is not None: self.runtime.dropped += ((self._timeline.signal.value + 1, self._timeline.last),)

  def synchronize(self) -> None:
    """Wait until everything queued on the device is done."""
    self.runtime.synchronize()

  def reset(self) -> OpenDevice:
    """Get on after a wait that did not end, a page fault or a hang, without the other devices: see `Devices.reset`."""
    return self if self.devices is None else self.devices.reset(self.name)

  def close(self, how: str = "closed") -> None:
    """Close the runtime: all memory on it is lost, which whoever still names it is told. Safe to call twice.

    `Device[name]` opens the device anew.
    """
    with self.memory:
      if self.closed: return
      self.closed = how
      Devices.lost = True
      self._spare, self.held, self._held_bytes = {}, {}, 0
      self.kernels.clear()
      self._freed.clear()
    if self.devices is not None: self.devices.forget(self)
    self.runtime.close()


class Devices(Observed):
  """`Device["AMD:1"]` opens a device; `Device.DEFAULT` is the one that `DEV` names (LLVM when it is not set).

  Threads may share it: `lock` is held while devices open, close or are reset; to look one up takes no lock.
  """

  lost = False  # whether any device of this process was ever closed

  def __init__(self) -> None:
    super().__init__()
    self._open: dict[str, OpenDevice] = {}
    self._told = False  # what the environment has that nothing reads
    self.lock = shared_lock(REGISTRY)
    self.default: str | None = None  # the name that the program has set
    self._ways: dict[str, Way] = {}  # by the kind of device ("AMD", "NV", "CUDA")
    self._own: dict[str, Way] = {}   # to this machine's cards: for as long as the process lives
    self.notes_places: Callable[[], str] | None = None  # says which line of the user's allocates
    self.notes_default: Callable[[], None] | None = None  # hears of a tensor whose device nobody has named

  @property
  def DEFAULT(self) -> str:
    """Canonical name of the device that new tensors use."""
    if self.default: return self.default
    text = variable("DEV", b"DEV")
    return self.canonicalize(text, "DEV") if text else "LLVM"

  @DEFAULT.setter
  def DEFAULT(self, name: str) -> None:
    self.default = self.canonicalize(name)

  @property
  def chosen(self) -> str | None:
    """Canonical name of the device that the program or `DEV` has set; None when nobody has."""
    return self.DEFAULT if self.default or os.environ.get("DEV") else None

  def canonicalize(self, name: str | Sequence[str] | None, where: str | None = None) -> str:
    """The one spelling of a device: "amd:0" and "AMD" are "AMD", "AMD:1" stays; several are a group, "(AMD, AMD:1)".
    `where` says who names it."""
    if name is None:
      if self.notes_default is not None: self.notes_default()
      return self.DEFAULT
    if not isinstance(name, str) or is_group(name):
      several = [self.canonicalize(n, where) for n in (members(name) if isinstance(name, str) else name)]
      if not several: raise InvalidArgument("a group of no devices", where=where)
      if any(n.partition(":")[0] in STORAGE for n in several):
        raise InvalidArgument(f"a group of {', '.join(several)}", where=where, hint="files do not compute")
      if len(set(several)) < len(several):
        raise InvalidArgument(f"a group of {', '.join(several)}", where=where, hint="it has each device once")
      return named(several)
    kind, _, index = name.partition(":")
    kind = kind.upper()
    kind = _OTHER_NAMES.get(kind, kind)
    if kind == "DISK" and index: return f"{kind}:{os.path.abspath(index)}"
    if kind not in KINDS:
      raise InvalidArgument(f"no device kind is called {name!r}", where=where, hint=offered(kind, KINDS))
    number = count(index or "0")
    if number is None:
      raise InvalidArgument(f"device {name!r} has no number after the colon", where=where,
                            hint=f'write "{kind}:1" for the second')
    return f"{kind}:{number}" if number else kind

  def __getitem__(self, name: str | None) -> OpenDevice:
    if name is not None and (device := self._open.get(name)) is not None: return device
    name = self.canonicalize(name)
    if (device := self._open.get(name)) is not None: return device
    with self.lock: return self._open.get(name) or self._opened(name)

  def _opened(self, name: str) -> OpenDevice:
    kind, _, index = name.partition(":")
    if (opener := _OPENERS.get(kind)) is None:
      raise Unsupported("device", kind, hint=f"it would be {KINDS[kind]}; built are {', '.join(_OPENERS)}")
    start = time.perf_counter()
    if not self._told:
      self._told = True
      variables.tell()
    if kind == "AMD" and self.machine is not None: self._renew(int(index or 0), only_lost=True)
    device = self._open[name] = opener(self, name, int(index or 0) if kind != "DISK" else 0)
    device.devices = self
    if debug_level() >= 1:
      print(f"{name:8s} opened in {(time.perf_counter() - start) * 1e3:.1f} ms: {KINDS[kind]}", file=sys.stderr)
    return device

  def get(self, name: str) -> OpenDevice | None:
    """The device of this canonical name, if it is open."""
    return self._open.get(name)

  @property
  def opened(self) -> tuple[OpenDevice, ...]:
    """The devices in use."""
    return tuple(self._open.values())

  def forget(self, device: OpenDevice) -> None:
    """The device is closed: its name means a new one from now on."""
    if self._open.get(device.name) is device: del self._open[device.name]

  def reset(self, name: str | None = None) -> OpenDevice:
    """Get on with one device after a wait that did not end, a page fault or a hang; returns the device to go on with.

    It is closed and opened anew: what is queued on it is dropped, what tensors had on it is lost (`ValueLost`);
    everything on other devices stays. After a page fault or a hang the kernel driver keeps this process off a card:
    then this raises DeviceError, and only a new process gets on. A card of the mock machine is as after a GPU reset and
    in a new process.
    """
    name = self.canonicalize(name)
    with self.lock:
      if (device := self._open.get(name)) is not None:
        runtime: Any = device.runtime
        if not hasattr(runtime, "raise_faults"): return device  # nothing is ever queued on it
        with suppress(DeviceError): runtime.raise_faults()  # what nobody has waited for is known now
        device.close("reset")
        if self.machine is not None and name.startswith("AMD"): self._renew(runtime.index)
      return self[name]

  def _stopped(self, gpu_id: int) -> None:
    """A signal has ended what a card of the mock machine runs."""
    for device in self.opened:
      gpu = getattr(device.runtime, "gpu", None)
      if gpu is not None and gpu.gpu_id == gpu_id: device.stopped()

  def _renew(self, index: int, only_lost: bool = False) -> None:
    """Give this process a card of the mock machine anew, with nothing in its memory: what only an administrator (a GPU
    reset) and a new process can do for a card."""
    from tinyhw.drive.amd.kfd import Kfd
    kfd = Kfd.of(self.amd_port())
    if index >= len(kfd.nodes): return  # whoever opens it is told
    gpu_id = kfd.nodes[index].gpu_id
    if only_lost and gpu_id not in kfd.faults: return
    self.machine.reset_gpu(gpu_id)
    kfd.forget(gpu_id)

  def runtimes(self) -> list[Runtime]: return [device.runtime for device in self.opened]
  def runtime(self, name: str) -> Runtime: return self[name].runtime

  def ready(self) -> None:
    if mock_cards("AMD"): self.amd_port()
    if mock_cards("NV") and os.environ.get("MOCKGPU") != "1": self.nv_port()

  def losses(self) -> bool:
    """Whether any value may be lost: of a device that was closed, or whose work was dropped."""
    return self.lost or any(d.runtime.dropped for d in self.opened)

  def synchronize(self) -> None:
    """Wait for every device in use."""
    for device in self.opened: device.synchronize()

  def close(self) -> None:
    """Close every device in use; buffers on them are lost. A mock machine ends with its devices: the next one is new.

    The system's port stays, for when `MOCKGPU` names no mock cards: the kernel gives a process one KFD connection for
    its lifetime.
    """
    with self.lock: self._close()

  def _close(self) -> None:
    devices, self._open = self._open, {}
    for device in devices.values(): device.close()
    if self.machines and os.environ.get("DEBUG", "0") not in ("", "0"):
      for line in self.report(): print(f"mock: {line}", file=sys.stderr)
    for way in self._leave_machines().values(): way.end()
    self._ways.clear()
    if self._checker is not None and not self.check:
      for finding in self._checker.untold: print(f"tinyhw: check: {finding}", file=sys.stderr)
    self._checker = None

  @property
  def machine(self) -> Any:
    """The mock machine (`mock.amd.machine.Machine`) that AMD devices are on, once one was opened, or None."""
    way = self._ways.get("AMD")
    return None if way is None else way.machine

  @property
  def machines(self) -> dict[str, Any]:
    """The mock machines in use, by the kind of their devices ("AMD", "NV", "CUDA")."""
    return {kind: way.machine for kind, way in self._ways.items() if way.machine is not None}

  def _leave_machines(self) -> dict[str, Way]:
    """Let go of the mock machines; the system's own ways stay."""
    left = {kind: way for kind, way in self._ways.items() if way.machine is not None}
    for kind in left: del self._ways[kind]
    return left

  def forked(self) -> None:
    """In a forked child: mock machines are its parent's, and it gets its own with the first device that it opens. (CUDA
    does not pass through fork; its library says so, until the child closes its devices.)"""
    for kind in self.machines:
      if kind != "CUDA": del self._ways[kind]
    self._checker = None  # what it has found is the parent's to tell

  @contextmanager
  def aside(self) -> Iterator[None]:
    """A block with emulated devices of its own: those in use rest meanwhile, and what the block opens ends with it.

    Other devices (LLVM, PYTHON) stay as they are.
    """
    def emulated() -> dict[str, OpenDevice]:
      kinds = {"EMU", *self.machines}
      return {n: d for n, d in self._open.items() if n.partition(":")[0] in kinds}
    with self.lock:
      resting = emulated()
      for name in resting: del self._open[name]
      kept, left = (self.default, self._checker), self._leave_machines()
      self._checker = None
    try: yield
    finally:
      with self.lock:
        for name, device in emulated().items():
          device.close()
          self._open.pop(name, None)
        for way in self._leave_machines().values(): way.end()
        self.default, self._checker = kept
        self._ways.update(left)
        self._open.update(resting)
        if "CUDA" in left: stand_again(left["CUDA"].machine)

  def report(self) -> list[str]:
    """What the mock machine accepted without modelling it, found doubtful, or stopped at; one line each.

    Empty without a mock. `DEBUG=1` prints it when the devices close.
    """
    return [line for machine in self.machines.values() for line in machine.report()]

  def amd_port(self) -> Port:
    """The port that AMD drivers reach their kernel driver through, one for the process: the system's or the mock's."""
    port: Port = self._way("AMD").to
    return port

  def nv_port(self) -> Port:
    """The same for NVIDIA's driver."""
    port: Port = self._way("NV").to
    return port

  def cuda_library(self) -> Any:
    """CUDA's driver API: the library of this machine, or the mock's."""
    return self._way("CUDA").to

  def hsa_system(self) -> Any:
    """ROCm's runtime, the library of this machine. It meets mock cards in another process alone."""
    if (cards := mock_cards("HSA")) is not None:
      raise DeviceError("ROCm's runtime meets the cards of MOCKGPU in a process of its own", where="HSA",
                        hint=f"tinyhw run --mockgpu {','.join(cards) or 'gfx1100'} -- python PROGRAM; "
                             "DEV=AMD takes them here")
    return self._way("HSA").to

  def clock(self, kind: str) -> Whose:
    """Whose clock the times of these drivers' cards are of."""
    return Whose.CARD if self._way(kind).machine is None else Whose.MOCK

  def _way(self, kind: str) -> Way:
    with self.lock:
      if (way := self._ways.get(kind)) is None:
        cards = mock_cards(kind)
        if cards is not None: way = self._mocked(kind, cards)
        else: way = self._own[kind] = self._own.get(kind) or system_way(kind)
        way = replace(way, to=RECORDING.wrap(kind, way.to, way.machine, self.runtimes))
        self._ways[kind] = way
      return way

  def _mocked(self, kind: str, cards: tuple[str, ...]) -> Way:
    machine, to = mock_machine(kind, cards, agreed=self.agreed, **mock_options(self.checker()))
    machine.when_stopped = self._stopped if kind == "AMD" else functools.partial(self._stopped_of, kind)
    return Way(to, machine, None if kind == "CUDA" else to)

  def _stopped_of(self, kind: str, index: int) -> None:
    """A signal has ended what a card of NVIDIA's mock machines runs."""
    for device in self.opened:
      if device.name.partition(":")[0] == kind and getattr(device.runtime, "index", -1) == index: device.stopped()


_SYSTEM = {"AMD": ("/dev/kfd", "an AMD GPU", "MOCKGPU=1 for a mock gfx1100"),
           "NV": ("/dev/nvidiactl", "an NVIDIA GPU", "MOCKGPU=sm_90 for a mock H200")}


def system_way(kind: str) -> Way:
  """This machine's own cards. Raises DeviceError where their driver is not there."""
  if kind == "CUDA": return Way(importlib.import_module("tinyhw.drive.cuda").system_library())
  if kind == "HSA":
    library = importlib.import_module("tinyhw.drive.hsa.library")
    return Way(library.HsaSystem(library.system_library()))
  path, card, mock = _SYSTEM[kind]
  if not os.path.exists(path):
    raise DeviceError(f"DEV={kind} needs a GPU, and this machine has no {path}",
                      hint=f"use a machine with {card} and its driver, or set {mock}")
  return Way(importlib.import_module("tinyhw.drive.linux").LinuxPort())


def debug_level() -> int:
  """The `DEBUG` variable; 0 when it is not a number."""
  return count(variable("DEBUG", b"DEBUG")) or 0


def mock_cards(kind: str | None = None) -> tuple[str, ...] | None:
  """The cards of the mock machine that `MOCKGPU` asks for ("1" is one gfx1100), or None without a mock.

  With a `kind` ("AMD", "NV", "CUDA"), those of this vendor, of which "1" is one too.
  """
  wanted = os.environ.get("MOCKGPU", "")
  if wanted in ("", "0"): return None
  nvidia = kind in ("NV", "CUDA")
  if wanted == "1": return ("sm_90",) if nvidia else ("gfx1100",)
  cards = tuple(card.strip() for card in wanted.split(","))
  if kind is None: return cards
  return tuple(card for card in cards if card.startswith("sm_") == nvidia)


def nv_cards() -> bool:
  """Whether the mock machine has NVIDIA's cards alone: `MOCKGPU=sm_90`."""
  cards = mock_cards()
  return bool(cards) and all(card.startswith("sm_") for card in cards or ())


def _open_llvm(devices: Devices, name: str, index: int) -> OpenDevice:
  from tinyhw.drive.cpu import HostRuntime
  def renderer() -> Any:
    from tinyhw.compile.render.host import HostRenderer
    return HostRenderer()
  return OpenDevice(name, HostRuntime(name), renderer)


def _open_c(devices: Devices, name: str, index: int) -> OpenDevice:
  from tinyhw.compile.render.c import CRenderer, compiler
  from tinyhw.drive.c import CRuntime
  chosen = compiler()
  return OpenDevice(name, CRuntime(chosen.version, name), lambda: CRenderer(chosen))


def _open_cl(devices: Devices, name: str, index: int) -> OpenDevice:
  from tinyhw.drive.cl import CLRuntime
  runtime = CLRuntime(index, name)
  def renderer() -> Any:
    from tinyhw.compile.render.opencl import OpenCLRenderer
    return OpenCLRenderer(runtime.double, runtime.exact, runtime.max_block, runtime.max_local, runtime.images)
  return OpenDevice(name, runtime, renderer)


def _open_null(devices: Devices, name: str, index: int) -> OpenDevice:
  from tinyhw.compile.render.targets import named
  from tinyhw.drive.null import NullRuntime
  target = os.environ.get("TINYHW_NULL") or "llvm"
  renderer = named(target, "TINYHW_NULL")
  return OpenDevice(name, NullRuntime(target, name), lambda: renderer)


def _open_disk(devices: Devices, name: str, index: int) -> OpenDevice:
  from tinyhw.drive.storage import DiskRuntime
  return _without_kernels(name, DiskRuntime(name.partition(":")[2], name))


def _open_npy(devices: Devices, name: str, index: int) -> OpenDevice:
  from tinyhw.drive.storage import ArrayRuntime
  return _without_kernels(name, ArrayRuntime(name))


def _without_kernels(name: str, runtime: Runtime) -> OpenDevice:
  from tinyhw.drive.storage import no_kernels
  def renderer() -> Any: raise no_kernels(name)
  return OpenDevice(name, runtime, renderer)


def _open_python(devices: Devices, name: str, index: int) -> OpenDevice:
  from tinyhw.drive.python import PythonRuntime
  from tinyhw.emulator.uops import load_program
  def renderer() -> Any:
    from tinyhw.compile.render.uops import UOpRenderer
    return UOpRenderer()
  return OpenDevice(name, PythonRuntime(load_program, name), renderer)


def _examiner(devices: Devices) -> Callable[[Any, int | None], Sequence[str]]:
  """What looks at the queues when a device stops; it loads then."""
  def examine(stopped: Any, fault: int | None) -> Sequence[str]:
    from tinyhw.devices.examined import lines_of
    return lines_of(stopped, devices.runtimes(), devices.machines.get(stopped.name.partition(":")[0]), fault)
  return examine


def _streams(devices: Devices) -> Sequence[str]:
  """What CUDA's mock has kept of who waits for whom."""
  picture = getattr(devices.machines.get("CUDA"), "picture", None)
  if picture is None: return []
  from tinyhw.devices.examined import streams_of
  return streams_of(picture)


def _open_amd(devices: Devices, name: str, index: int) -> OpenDevice:
  from tinyhw.drive.amd.device import AMDRuntime
  runtime = AMDRuntime(devices.amd_port(), index)
  runtime.examine = _examiner(devices)
  runtime.clock = devices.clock("AMD")
  def renderer() -> Any:
    from tinyhw.compile.render.amdgcn import AMDGCNRenderer
    return AMDGCNRenderer(runtime.arch)
  return OpenDevice(name, runtime, renderer)


def _open_hsa(devices: Devices, name: str, index: int) -> OpenDevice:
  from tinyhw.drive.hsa.device import HSARuntime
  runtime = HSARuntime(devices.hsa_system(), index, name)
  def renderer() -> Any:
    from tinyhw.compile.render.amdgcn import AMDGCNRenderer
    return AMDGCNRenderer(runtime.arch)
  return OpenDevice(name, runtime, renderer)


def _signature(ptx: bytes, kernel: str) -> Any:
  """What a launch has to know of a kernel of PTX."""
  from tinyhw.devices.ptx import signature
  return signature(ptx, kernel)


def _open_cuda(devices: Devices, name: str, index: int) -> OpenDevice:
  from tinyhw.drive.cuda import CudaRuntime
  runtime = CudaRuntime(devices.cuda_library(), index, name)
  runtime.examine = lambda: _streams(devices)
  runtime.clock = devices.clock("CUDA")
  runtime.signature = _signature
  def renderer() -> Any:
    from tinyhw.compile.render.targets import for_nvidia
    return for_nvidia(runtime.processor)
  return OpenDevice(name, runtime, renderer)


def _open_nv(devices: Devices, name: str, index: int) -> OpenDevice:
  from tinyhw.devices.assemble import Assembler
  from tinyhw.drive.nv.device import NVRuntime
  runtime = NVRuntime(devices.nv_port(), index)
  runtime.examine = _examiner(devices)
  runtime.clock = devices.clock("NV")
  runtime.assemble = assemble = Assembler(runtime.arch, mock_cards() is None)
  runtime.signature = _signature
  def renderer() -> Any:
    from tinyhw.compile.render.targets import for_nvidia
    return for_nvidia(runtime.arch.name, assemble)
  return OpenDevice(name, runtime, renderer)


def _open_emu(devices: Devices, name: str, index: int) -> OpenDevice:
  def renderer() -> Any:
    raise Unsupported("tensors on", name, hint="it runs ready code objects and PTX; DEV=AMD MOCKGPU=1 has tensors")
  return OpenDevice(name, emulated(name, index, devices.agreed), renderer)


def stand_in(index: int = 0) -> Arch | None:
  """The card of that index that MOCKGPU names, where the mock has none of them and the emulator runs them all."""
  return emulated_card(index, mock_cards() or ())


def emulated(name: str = "EMU", index: int = 0, agreed: Agreed | None = None) -> BareRuntime:
  """A runtime of its own that runs code objects of any generation on the emulator, without driver and mock.

  Where MOCKGPU names cards that the mock has not yet, it stands for the one of that index, and refuses other code.
  """
  from tinyhw.drive.amd.bare import BareRuntime
  from tinyhw.emulator.amdgcn import Dispatch
  from tinyhw.emulator.engines.amdgcn import dispatch
  options = mock_options(Device.checker())
  for option in ("seed", "memory"): options.pop(option, None)  # there are no queues to take turns, and no caches
  def ptx() -> Any:
    from tinyhw.devices.ptx import emulator
    return emulator(options)
  return BareRuntime(Dispatch, functools.partial(dispatch, **options), name, stand_in(index), agreed, ptx)


STORAGE = frozenset({"DISK", "NPY"})
"""Device kinds that hold data and run no kernels."""

Opener = Callable[[Devices, str, int], OpenDevice]
_OPENERS: dict[str, Opener] = {"LLVM": _open_llvm, "C": _open_c, "PYTHON": _open_python, "AMD": _open_amd,
                               "HSA": _open_hsa, "NV": _open_nv, "CUDA": _open_cuda, "EMU": _open_emu, "CL": _open_cl,
                               "DISK": _open_disk, "NPY": _open_npy, "NULL": _open_null}

Device = Devices()
at_end(Step.DEVICES, Device.close, inherited=True)
os.register_at_fork(after_in_child=Device.forked)
