"""AMD code objects without a driver: memory, a loader and dispatches that go straight to the emulator.

Runs what no device of this machine runs: any generation whose instructions the emulator executes, the code object's
own. There are no queues; a launch is done when it returns. Conventions: LLVM's AMDGPUUsage, "Initial Kernel Execution
State".
"""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tinyhw.arch import DECODED, Arch, generation
from tinyhw.autogen import hsa, sq
from tinyhw.core.errors import (
  Deadlock,
  DecodeError,
  Interrupted,
  InvalidArgument,
  MachineFault,
  OutOfMemory,
  PageFault,
  Unsupported,
  WaitTimeout,
)
from tinyhw.core.locks import lock
from tinyhw.core.memory import PAGE, Access, AddressSpace, Region
from tinyhw.core.timeout import HELD, Agreed, Terms, ticker
from tinyhw.drive.allocate import round_up
from tinyhw.drive.amd.explain import explain
from tinyhw.drive.amd.host import Span, mapped, merged
from tinyhw.drive.amd.program import (
  NULL_PAGES,
  ArgumentLayout,
  LaunchShape,
  check_lds,
  describe_launch,
  scratch_pairs,
  user_sgprs,
)
from tinyhw.drive.base import Allocation, Dim3, Program, Runtime, free_bytes
from tinyhw.drive.nv import bare as nv
from tinyhw.wire import codeobject
from tinyhw.wire.codeobject import CodeObject, Kernel

FIRST_ADDRESS: Final = 0x1_0000_0000
MEMORY_LIMIT: Final = 64 << 30
_STACK: Final = 4096  # bytes of a work-item's stack where the code object does not know how many it needs
_DWORD: Final = 0xFFFFFFFF

MakeDispatch = Callable[..., Any]
"""Makes the emulator's dispatch from keywords: entry_pc, grid, block, rsrc1 to rsrc3, user_data, scratch_*, lds_size,
wave32."""
Execute = Callable[..., Any]
"""Runs a dispatch to its end: (address space, generation, dispatch), and `observer=` where there is one."""


@dataclass(frozen=True)
class NamedRange:
  """A named range of memory: an argument's buffer, code, arguments, scratch."""
  name: str
  start: int
  size: int

  @property
  def end(self) -> int: return self.start + self.size


@dataclass(eq=False)
class Loaded:
  """A code object at its address, for the generation that it was compiled for."""
  address: int
  code: CodeObject
  arch: Arch


@dataclass(eq=False)
class Ready:
  """A launch with everything in memory, not run yet."""
  space: AddressSpace
  arch: Arch
  dispatch: Any
  kernel: Kernel
  loaded: Loaded
  terms: Terms | None
  temporary: list[Allocation] = field(default_factory=list)


class BareProgram(Program):
  """A kernel that the emulator runs without a device."""

  def __init__(self, runtime: BareRuntime, loaded: Loaded, kernel: Kernel) -> None:
    self.name, self.runtime, self.loaded, self.kernel = kernel.name, runtime, loaded, kernel
    self.layout = ArgumentLayout(kernel)
    self._where = f"{runtime.name}, kernel {kernel.name}"

  def __call__(self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3,
               wait: bool = False) -> float | None:
    packed = self.layout.packer(len(buffers), values).pack(*[b.address for b in buffers], *values)
    self.launch(packed, grid, block)
    return 0.0 if wait else None

  def launch(self, kernargs: bytes, grid: Dim3, block: Dim3, *, dynamic_lds: int = 0) -> None:
    """Run with the explicit arguments as bytes, laid out as the metadata says, and more LDS than it asks for."""
    ready = self.ready(kernargs, grid, block, dynamic_lds)
    try: self.runtime.run(ready)
    finally: self.release(ready)

  def release(self, ready: Ready) -> None:
    """Give back what a launch took for itself: arguments and scratch."""
    for allocation in ready.temporary: self.runtime.free(allocation)
    ready.temporary.clear()

  def _check(self, grid: Dim3, block: Dim3, dynamic_lds: int) -> None:
    threads, kernel, arch = block[0] * block[1] * block[2], self.kernel, self.loaded.arch
    if threads > arch.workgroup_limit:
      raise InvalidArgument(f"block {block} has {threads} threads, {arch.name} runs at most {arch.workgroup_limit}",
                            where=self._where)
    if max(grid) > _DWORD or any(g * b > _DWORD for g, b in zip(grid, block)):
      raise InvalidArgument(f"grid {grid} of blocks {block}: more than {_DWORD:,} work-items in a dimension",
                            where=self._where)
    if kernel.max_workgroup_size and threads > kernel.max_workgroup_size:
      raise InvalidArgument(f"block {block} has {threads} threads, the kernel was compiled for at most "
                            f"{kernel.max_workgroup_size}", where=self._where,
                            hint="compile it with a larger amdgpu_flat_work_group_size")
    required = kernel.required_workgroup_size
    if required and required != block:
      raise InvalidArgument(f"block {block}, the kernel was compiled for exactly {required}", where=self._where)
    check_lds(kernel, dynamic_lds, arch.lds_per_workgroup, self._where)

  def ready(self, kernargs: bytes, grid: Dim3, block: Dim3, dynamic_lds: int = 0) -> Ready:
    """Put arguments, hidden arguments and scratch in memory and make the dispatch."""
    self._check(grid, block, dynamic_lds)
    runtime, kernel, arch, layout = self.runtime, self.kernel, self.loaded.arch, self.layout
    d, temporary = kernel.descriptor, []

    def take(name: str, size: int) -> int:
      allocation = runtime.take(name, size)
      temporary.append(allocation)
      assert allocation.address is not None
      return allocation.address

    try:
      sgprs = user_sgprs(kernel, arch.name, 0)
      packet_at = round_up(layout.size, 64)
      size = packet_at + ctypes.sizeof(hsa.hsa_kernel_dispatch_packet_t)
      address = take("kernarg", size)
      shape = LaunchShape(grid, block, dynamic_lds, arch.private_aperture, arch.shared_aperture, 0)
      data = bytearray(kernargs[:layout.hidden_start].ljust(layout.hidden_start, b"\0"))
      data += layout.hidden_bytes(shape)
      data = data.ljust(size, b"\0")
      packet = hsa.hsa_kernel_dispatch_packet_t.from_buffer(data, packet_at)
      describe_launch(packet, kernel, self.loaded.address, address, grid, block, dynamic_lds)
      del packet
      runtime.space.write(address, data)
      users = [*sgprs.values, *sgprs.preloaded(data)]
      known = {"kernarg": address, "dispatch_packet": address + packet_at, "timeline": 1}
      low, bits = sq.PROGRAM[arch.isa]["RSRC2"]["USER_SGPR"]
      users += [0] * ((d.compute_pgm_rsrc2 >> low & (1 << bits) - 1) - len(users))
      lane = kernel.private_segment_size
      if kernel.dynamic_stack: lane = max(lane, _STACK)
      scratch: dict[str, int] = {}
      if lane:
        a_group = -(-block[0] * block[1] * block[2] // kernel.wavefront_size)
        waves = min(a_group * grid[0] * grid[1] * grid[2], arch.cu_count * arch.simd_per_cu * arch.waves_per_simd)
        lane = round_up(lane, arch.scratch_granule)
        base = take("scratch", lane * kernel.wavefront_size * waves)
        scratch = {"scratch_base": base, "scratch_size": lane, "scratch_waves": waves}
      if arch.scratch_in_sgprs:
        known |= scratch_pairs(scratch.get("scratch_base", 0),
                               lane * kernel.wavefront_size * scratch.get("scratch_waves", 0))
      for at, name in sgprs.pairs.items(): users[at:at + 2] = known[name] & _DWORD, known[name] >> 32
      terms = runtime.agreed.get(threading.get_ident())
      dispatch = runtime.make_dispatch(
        entry_pc=self.loaded.address + kernel.start_offset, grid=grid, block=block, rsrc1=d.compute_pgm_rsrc1,
        rsrc2=d.compute_pgm_rsrc2, rsrc3=d.compute_pgm_rsrc3, user_data=tuple(users),
        lds_size=kernel.group_segment_size + dynamic_lds, wave32=kernel.wavefront_size == 32,
        tick=ticker(terms, threading.current_thread() is threading.main_thread(), runtime.timeout_s), **scratch)
    except BaseException:
      for allocation in temporary: runtime.free(allocation)
      raise
    return Ready(runtime.space, arch, dispatch, kernel, self.loaded, terms, temporary)


class BareRuntime(Runtime):
  """See the module. `make_dispatch` and `execute` are the emulator's, handed in: a runtime knows no emulator.

  With a `card` it stands for that one and refuses code for others; else it runs each code object on its own GPU.

  Threads may share it: each call takes turns (`lock`), a launch for as long as it runs. `agreed` is what threads want
  of their own launches.
  """

  def __init__(self, make_dispatch: MakeDispatch, execute: Execute, name: str = "EMU",
               card: Arch | None = None, agreed: Agreed | None = None,
               ptx: Callable[[], nv.Emulator] | None = None) -> None:
    self.lock = lock()
    self._ptx = ptx
    self._modules: dict[bytes, nv.PtxModule] = {}
    self.agreed: Agreed = {} if agreed is None else agreed
    self.card = card
    self.name, self.make_dispatch, self.execute = name, make_dispatch, execute
    self.space = AddressSpace(name)
    self.places: list[NamedRange] = []
    self.observer: Any = None
    self.executed = 0  # instructions of all waves of all launches
    self.timeout_s: float | None = None  # how long a launch may take
    self._regions: dict[int, Region] = {}
    self._images: dict[bytes, Loaded] = {}
    self._top = FIRST_ADDRESS
    self._used = 0

  def describe(self) -> str: return f"runs {', '.join(DECODED) if self.card is None else self.card.name}"

  # ---- memory: a region for each allocation, with an unmapped page behind it

  def take(self, name: str, nbytes: int, access: int = Access.ALL) -> Allocation:
    """Zeroed memory that reports call `name`."""
    if nbytes <= 0: raise InvalidArgument(f"cannot allocate {nbytes} bytes", where=self.name)
    with self.lock: return self._take(name, nbytes, round_up(nbytes, PAGE), access)

  def _take(self, name: str, nbytes: int, size: int, access: int) -> Allocation:
    if self._used + size > MEMORY_LIMIT: raise OutOfMemory(self.name, nbytes, MEMORY_LIMIT - self._used)
    try: region = Region(name, size)
    except (OSError, ValueError): raise OutOfMemory(self.name, nbytes, free_bytes()) from None
    address, self._top = self._top, self._top + size + PAGE
    self.space.map(address, size, region, access=access)
    self._regions[address] = region
    self.places.append(NamedRange(name, address, nbytes))
    self.space.used[address] = nbytes, name
    self._used += size
    return Allocation(address, nbytes)

  def alloc(self, nbytes: int) -> Allocation: return self.take("buffer", nbytes)

  def rename(self, allocation: Allocation, name: str) -> None:
    """Let reports call an allocation by another name."""
    assert allocation.address is not None
    with self.lock:
      self.places = [replace(p, name=name) if p.start == allocation.address else p for p in self.places]
      self.space.used[allocation.address] = allocation.size, name

  def free(self, allocation: Allocation) -> None:
    assert allocation.address is not None
    with self.lock:
      region = self._regions.pop(allocation.address, None)
      if region is None: raise InvalidArgument(f"{allocation.address:#x} is not allocated", where=self.name)
      self.space.unmap(allocation.address, region.size)
      self._used -= region.size
      del self.space.used[allocation.address]
      self.places = [p for p in self.places if p.start != allocation.address]
      region.close()

  def copyin(self, dst: Allocation, data: memoryview) -> None:
    assert dst.address is not None
    with self.lock: self.space.write(dst.address, data.cast("B"))

  def copyout(self, dst: memoryview, src: Allocation) -> None:
    assert src.address is not None
    with self.lock: dst.cast("B")[:] = self.space.read(src.address, dst.nbytes)

  def copy(self, dst: Allocation, src: Allocation, nbytes: int) -> None:
    assert dst.address is not None and src.address is not None
    with self.lock: self.space.write(dst.address, self.space.read(src.address, nbytes))

  def synchronize(self) -> None: return None

  @contextmanager
  def borrowed(self, spans: Iterable[Span]) -> Iterator[None]:
    """Have arrays of this process in GPU memory at their own addresses while the block runs; see `host`."""
    whole = merged(spans)
    places = [NamedRange(s.name, s.start, s.size) for s in whole]
    with self.lock, mapped(self.space, whole):
      self.places += places
      try: yield
      finally: self.places = [p for p in self.places if p not in places]

  # ---- code

  def run(self, ready: Ready) -> None:
    """Execute a launch, shown to the observer where there is one. Raises WaitTimeout for one that takes too long, and
    what a signal's handler raises (KeyboardInterrupt) once the launch is off the emulator."""
    terms = ready.terms
    seen_by = self.observer if terms is None or terms.observer is None else terms.observer
    observer = {} if seen_by is None else {"observer": seen_by}
    try:
      with self.lock, HELD, self.explained(ready):
        stats = self.execute(ready.space, ready.arch, ready.dispatch, **observer)
    except Interrupted as stopped:
      seconds = self.timeout_s if terms is None or terms.seconds is None else terms.seconds
      if terms is not None: terms.interrupted = stopped
      raise WaitTimeout(self.name, packet=f"kernel {ready.kernel.name}", seconds=seconds or 0) from None
    if terms is not None: terms.outside |= stats.outside
    self.executed += stats.instructions

  @contextmanager
  def explained(self, ready: Ready) -> Iterator[None]:
    """Faults of the launch say what they are about."""
    try: yield
    except MachineFault as error:
      error.message = codeobject.with_places(self.loaded(), error.message)
      self._explain(error, ready)
      raise

  def _explain(self, fault: MachineFault, ready: Ready) -> None:
    """Say what a fault is about: the place in the code, the workgroup, the memory at or closest below the address."""
    explain(fault, self.loaded(), f"kernel {ready.kernel.name}")
    if fault.wave is not None:
      x, y, _ = ready.dispatch.grid
      threads = ready.dispatch.block[0] * ready.dispatch.block[1] * ready.dispatch.block[2]
      number = fault.wave // -(-threads // ready.kernel.wavefront_size)
      fault.workgroup = number % x, number // x % y, number // (x * y)
    if fault.address is None: return
    near = self.near(fault.address)
    if isinstance(fault, Deadlock) and near: fault.memory = f"what it waits for is {near}"
    if isinstance(fault, PageFault):
      fault.memory = near
      if fault.address < NULL_PAGES and fault.access != "execute": fault.hidden = ArgumentLayout(ready.kernel).unserved

  def near(self, address: int) -> str | None:
    """The memory that an address is in, or past the end of."""
    hidden = {"code", "kernarg", "scratch", "params"}
    own = [p for p in self.places if p.name not in hidden or p.start <= address < p.end]
    below = max((p for p in own if p.start <= address), key=lambda p: p.start, default=None)
    if below is None or address - below.start > 1 << 30: return None
    past = "in" if address < below.end else f"{address - below.end:,} bytes past the end of"
    return f"{past} {below.name} ({below.size:,} bytes)"

  def loaded(self) -> list[tuple[int, CodeObject]]:
    """(address, code object) of each code object in memory."""
    return [(image.address, image.code) for image in list(self._images.values())]

  def load(self, binary: bytes, kernel: str) -> BareProgram | nv.PtxProgram: return self.load_kernel(binary, kernel)

  def load_kernel(self, binary: bytes, kernel: str) -> BareProgram | nv.PtxProgram:
    """Place a code object, or the variables of a PTX module, in memory (once) and make one of its kernels ready."""
    if nv.is_ptx(binary): return self._load_ptx(binary, kernel)
    with self.lock: loaded = self._images.get(binary) or self._place(binary)
    return BareProgram(self, loaded, loaded.code.kernel(kernel))

  def _load_ptx(self, binary: bytes, kernel: str) -> nv.PtxProgram:
    if self._ptx is None: raise Unsupported("PTX on", self.name)
    if self.card is not None:
      raise InvalidArgument(f"PTX is for an NVIDIA GPU, the device is {self.card.name}", where=self.name)
    with self.lock:
      emulator = self._ptx()
      module = self._modules.get(binary)
      if module is None: module = self._modules[binary] = nv.load(self, emulator, binary)
      return nv.PtxProgram(self, emulator, module, kernel)

  def _place(self, binary: bytes) -> Loaded:
    code = codeobject.load(binary)
    if not code.image: raise DecodeError("no section or segment has anything to load", where="code object")
    if self.card is not None: code.check(self.card.name, self.card.features)
    arch = self.card or generation(code.arch)
    address = self.take("code", len(code.image))
    assert address.address is not None
    self.space.write(address.address, code.link(address.address))
    loaded = self._images[binary] = Loaded(address.address, code, arch)
    return loaded

  def close(self) -> None:
    with self.lock:
      for region in self._regions.values(): region.close()
    self._regions, self._images, self.places = {}, {}, []
    self._modules = {}
    self.space = AddressSpace(self.name)
