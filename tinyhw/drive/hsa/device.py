"""An AMD GPU as ROCm's runtime has it: an agent with its memory, one AQL queue, code objects, copies.

Launches go into the queue without a signal of their own. Whoever waits queues a barrier packet behind them, a *fence*,
which counts down one signal; work is known by the number of the fence that it will be done with. A copy is the
runtime's (`hsa_amd_memory_async_copy`): it waits for a fence before it, and the queue waits for the copy.

Threads may share a device. `profiling`, `copying` and `lock` are taken in this order: one timed launch, one copy
between host and device (it owns the bounce buffer), one submission at a time. A device closes when nobody is amid a
call (`Users`).
"""
from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from tinyhw.arch import DECODED
from tinyhw.autogen import hsa
from tinyhw.core.errors import (
  DeviceError,
  InvalidArgument,
  MachineFault,
  OutOfMemory,
  PageFault,
  Unsupported,
  WaitTimeout,
)
from tinyhw.core.locks import lock
from tinyhw.core.timeout import HELD, within
from tinyhw.core.trace import Whose
from tinyhw.drive.allocate import BounceBuffer, KernargRing
from tinyhw.drive.base import Allocation, Launch, Runner, Runtime
from tinyhw.drive.hsa.library import NO_MEMORY, Agent, HsaSystem, MemoryPool, named, reasons
from tinyhw.drive.hsa.program import HsaProgram
from tinyhw.drive.hsa.queue import AqlQueue
from tinyhw.drive.hsa.runner import HsaRunner
from tinyhw.drive.queued import CLOSE_TIMEOUT_S, timeout_from_environment
from tinyhw.drive.users import Users
from tinyhw.wire import codeobject
from tinyhw.wire.codeobject import CodeObject

_KERNARG_BYTES: Final = 1 << 20
_BOUNCE_BYTES: Final = 8 << 20
_TOP: Final = 1 << 62  # the fence signal's first value
_LOOK_S: Final = 0.05  # between two looks for faults while the runtime waits


class LoadedObject:
  """A code object on the device: its handle, and where the runtime has put it."""

  def __init__(self, runtime: HSARuntime, binary: bytes) -> None:
    self.code = codeobject.load(binary, arch=runtime.target, features=runtime.agent.features)
    library, agent = runtime.library, runtime.agent.handle
    file = codeobject.shared(self.code)
    room = ctypes.create_string_buffer(file, len(file))
    reader = library.handle("hsa_code_object_reader_create_from_memory", room, len(file))
    try:
      self.handle = library.handle("hsa_executable_create_alt", hsa.HSA_PROFILE_FULL,
                                   hsa.HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, None)
      library.call("hsa_executable_load_agent_code_object", self.handle, agent, reader, None, None)
      library.call("hsa_executable_freeze", self.handle, None)
    finally: library.call("hsa_code_object_reader_destroy", reader)
    self._library, self._agent, self.address = library, agent, 0

  def kernel(self, name: str) -> tuple[codeobject.Kernel, int]:
    """A kernel, and the address of its descriptor. Raises InvalidArgument where there is none of the name."""
    kernel = self.code.kernel(name)
    library, agent = self._library, ctypes.c_uint64(self._agent)
    symbol = library.handle("hsa_executable_get_symbol_by_name", self.handle, f"{kernel.name}.kd".encode(),
                            ctypes.byref(agent))
    place = library.handle("hsa_executable_symbol_get_info", symbol, hsa.HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT)
    self.address = place - kernel.descriptor_offset
    return kernel, place


class HSARuntime(Runtime):
  """GPU number `index` of those that the runtime finds. Raises DeviceError where there is none.

  After a page fault or a hang the kernel driver keeps a process' queues off a card for as long as it lives: then the
  device does not open again.
  """
  clock = Whose.CARD

  def __init__(self, system: HsaSystem, index: int = 0, name: str = "HSA") -> None:
    self.name, self.index, self.system, self.closed = name, index, system, True
    system.check(name)
    if index >= len(system.gpus):
      raise DeviceError(f"ROCm's runtime has no GPU {index}; there are {len(system.gpus)}", where=name,
                        hint="a runtime knows the cards that are older than it is")
    self.library, self.agent = system.library, system.gpus[index]
    if (lost := system.lost.get(self.agent.handle)) is not None: raise lost.again()
    self.target = self.agent.target
    if self.target not in DECODED:
      raise Unsupported("GPU", self.target, where=name, hint=f"code is made for {', '.join(DECODED)}")
    self.arch = DECODED[self.target]
    self.timeout_s = timeout_from_environment()
    self.lost: DeviceError | None = None
    self.dropped: tuple[tuple[int, int], ...] = ()
    self.last_began: float | None = None
    self.profiling, self.copying, self.lock = lock(), lock(), lock()
    self._limits: dict[int, float] = {}  # by thread: how many seconds it waits
    self._objects: dict[bytes, LoadedObject] = {}
    self._allocated: dict[int, int] = {}  # bytes, by address
    self._reached: dict[int, list[Agent]] = {}  # by addresses: who else reaches them
    self._own: list[int] = []
    self._fault: hsa.hsa_amd_gpu_memory_fault_info_t | None = None
    self._stopped = hsa.HSA_STATUS_SUCCESS
    self._fenced, self._behind = 0, False  # fences that were queued, and whether work is behind the last of them
    self._resting: deque[tuple[int, tuple[int, ...]]] = deque()  # signals, with the fence after which they are free
    self._timing = 0
    self._memory = self._pool(self.agent, hsa.HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED)
    shared = self._pool(system.host, hsa.HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED)
    arguments = self._pool(system.host, hsa.HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT)
    try:
      self.kernargs = KernargRing(*self._host_memory(arguments, _KERNARG_BYTES), self.wait)
      self.bounce = BounceBuffer(*self._host_memory(shared, _BOUNCE_BYTES), self.wait)
      self._signal = system.signal(_TOP)
      self.queue = AqlQueue(system, self.agent, self._heard, self.check)
    except BaseException:
      for address in self._own: self.library.call("hsa_amd_memory_pool_free", address)
      raise
    system.told[self.agent.handle] = self._faulted
    self.closed = False
    self.users = Users(self)

  def _pool(self, agent: Agent, flags: int) -> MemoryPool:
    found = agent.pool(flags)
    if found is None: raise DeviceError(f"an agent has no pool of memory with the flags {flags:#x}", where=self.name)
    return found

  def _host_memory(self, pool: MemoryPool, nbytes: int) -> tuple[memoryview, int]:
    """Memory of the host that the device reaches: for the host, and its address for the device, which is the same."""
    address = self.system.allocate(pool, nbytes)
    self._own.append(address)
    self.system.allow(address, self.agent)
    return memoryview((ctypes.c_ubyte * nbytes).from_address(address)).cast("B"), address

  def describe(self) -> str:
    size = f"{self.agent.units} CUs, {self._memory.size >> 20:,} MiB"
    return f"{self.system.product(self.agent)} ({self.target}), {size}, by ROCm's runtime {self.system.version()}"

  def siblings(self) -> int: return len(self.system.gpus)

  # ---- trouble

  def _heard(self, status: int) -> None: self._stopped = status

  def _faulted(self, fault: hsa.hsa_amd_gpu_memory_fault_info_t) -> None: self._fault = fault

  def check(self) -> None:
    """Raise DeviceError where the device cannot be used from here."""
    self.system.check(self.name)
    if self.closed: raise DeviceError("the device was closed", where=self.name)
    if self.lost is None and (self._fault is not None or self._stopped != hsa.HSA_STATUS_SUCCESS):
      self.lost = self.system.lost[self.agent.handle] = self._told()
    if self.lost is not None: raise self.lost.again()  # a new one: an error that was raised keeps its frames

  def _told(self) -> DeviceError:
    fault = self._fault
    error: MachineFault
    if fault is not None:
      error = PageFault(fault.virtual_address, "access", 0, reason=reasons(fault.fault_reason_mask))
    else: error = MachineFault(f"the queue has stopped: {named(self._stopped)}")
    error.where = self.name
    error.hint = "go on in a new process: the kernel driver keeps this one off the card"
    return error

  def raise_faults(self) -> None:
    """Raise what queued work has left."""
    self.check()

  def began(self) -> float | None: return self.last_began

  # ---- order

  def queued(self) -> int:
    """Work was queued: the number of the fence that it is done with. The lock is held."""
    self._behind = True
    return self._fenced + 1

  def _fence(self, depends: int = 0) -> int:
    """Queue a fence, behind a signal that reaches 0; its number. The lock is held."""
    self.queue.barrier(depends, self._signal)
    self._fenced += 1
    self._behind = False
    return self._fenced

  def _done(self, value: int) -> bool: return self.system.value(self._signal) <= _TOP - value

  def wait(self, value: int) -> None:
    """Wait for the work that is done with this fence. Raises WaitTimeout, and what has stopped the device."""
    if value > self._fenced:
      with self.lock:
        if value > self._fenced: self._fence()
    self._await(value, self._patience())

  def _patience(self) -> float: return self._limits.get(threading.get_ident(), self.timeout_s)

  def _await(self, value: int, seconds: float, other: HSARuntime | None = None) -> None:
    waits, wanted = self.library.function("hsa_signal_wait_scacquire"), _TOP - value
    look, end = int(self.system.counter_hz * min(_LOOK_S, seconds)), time.monotonic() + seconds
    while (seen := waits(self._signal, hsa.HSA_SIGNAL_CONDITION_LT, wanted + 1, look,
                         hsa.HSA_WAIT_STATE_BLOCKED)) > wanted:
      self.check()
      if other is not None: other.check()
      if time.monotonic() < end: continue
      raise WaitTimeout(self.name, packet=f"queue {self.queue.told.hsa_queue.id}: {seen - wanted} fences are left",
                        seconds=seconds, hint=f"Device.reset({self.name!r}) takes it off the device")

  def synchronize(self) -> None:
    with self.users: self.wait(self._fenced + self._behind)

  @contextmanager
  def limited(self, seconds: float) -> Iterator[None]:
    """In the block the calling thread waits so long."""
    with within(self._limits, seconds): yield

  def reset(self) -> None:
    """Go on after a wait that did not end: a new queue, memory kept; what was queued is dropped."""
    with self.users, self.lock:
      for _, signals in self._resting:  # copies that waited go on, and their signals are not used again
        for signal in signals: self.library.function("hsa_signal_store_relaxed")(signal, 0)
      self._resting.clear()
      with suppress(DeviceError): self.queue.destroy()
      self.queue = AqlQueue(self.system, self.agent, self._heard, self.check)
      self.library.function("hsa_signal_store_relaxed")(self._signal, _TOP - self._fenced)
      self._stopped, self._behind = hsa.HSA_STATUS_SUCCESS, False

  # ---- signals

  def _take_signal(self) -> int:
    """A signal of value 1; `_rest` gives it back. The lock is held."""
    if self._resting and self._done(self._resting[0][0]):
      value, (signal, *others) = self._resting.popleft()
      if others: self._resting.appendleft((value, tuple(others)))
      self.library.function("hsa_signal_store_relaxed")(signal, 1)
      return signal
    return self.system.signal(1)

  def timing_signal(self) -> int:
    """The signal of timed launches; `profiling` is held."""
    if not self._timing: self._timing = self.system.signal(1)
    self.library.function("hsa_signal_store_relaxed")(self._timing, 1)
    return self._timing

  # ---- memory

  def alloc(self, nbytes: int) -> Allocation:
    if nbytes <= 0: raise InvalidArgument(f"cannot allocate {nbytes} bytes", where=self.name)
    with self.users:
      try: address = self.system.allocate(self._memory, nbytes)
      except DeviceError as error:
        if getattr(error, "status", 0) not in NO_MEMORY: raise
        free = max(self._memory.size - sum(list(self._allocated.values())), 0)
        raise OutOfMemory(self.name, nbytes, free) from None
      self._allocated[address] = nbytes
      return Allocation(address, nbytes, self)

  def free(self, allocation: Allocation) -> None:
    address, allocation.address, allocation.handle = allocation.address, None, None
    if address is None or self.closed: return
    if self.lost is None: self.synchronize()
    with self.lock:
      if self._allocated.pop(address, None) is None: return
      self._reached.pop(address, None)
      self.library.call("hsa_amd_memory_pool_free", address)

  def address(self, allocation: Allocation, nbytes: int = 0) -> int:
    """Where memory is, which has so many bytes."""
    if allocation.address is None: raise InvalidArgument("the allocation was freed", where=self.name)
    if nbytes > allocation.size:
      raise InvalidArgument(f"a copy of {nbytes:,} bytes, but the allocation has {allocation.size:,}", where=self.name)
    return allocation.address

  def _copied(self, target: int, to: Agent, source: int, of: Agent, nbytes: int) -> int:
    """Queue a copy behind what is queued; the fence that it is done with."""
    with HELD, self.lock:
      self.check()
      before = 0
      if self._behind or not self._done(self._fenced):
        before = self._take_signal()
        self.queue.barrier(0, before)
      copied = self._take_signal()
      waits = (ctypes.c_uint64 * 1)(before)
      self.library.call("hsa_amd_memory_async_copy", target, to.handle, source, of.handle, nbytes, int(before != 0),
                        waits if before else None, copied)
      value = self._fence(copied)
      self._resting.append((value, (copied, before) if before else (copied,)))
      return value

  def copyin(self, dst: Allocation, data: memoryview) -> None:
    with self.users:
      address, host, at = self.address(dst, data.nbytes), data.cast("B"), 0
      with self.copying:
        while at < host.nbytes:
          half = self.bounce.take()
          part = min(self.bounce.half_bytes, host.nbytes - at)
          half.memory[:part] = host[at:at + part]
          half.busy_until = self._copied(address + at, self.agent, half.address, self.system.host, part)
          at += part

  def copyout(self, dst: memoryview, src: Allocation) -> None:
    with self.users:
      address, host, at = self.address(src, dst.nbytes), dst.cast("B"), 0
      travelling: deque[tuple[Any, int, int]] = deque()

      def arrive() -> None:
        half, start, size = travelling.popleft()
        self.wait(half.busy_until)
        host[start:start + size] = half.memory[:size]
      with self.copying:
        while at < host.nbytes:
          if len(travelling) == self.bounce.halves: arrive()
          half = self.bounce.take()
          part = min(self.bounce.half_bytes, host.nbytes - at)
          half.busy_until = self._copied(half.address, self.system.host, address + at, self.agent, part)
          travelling.append((half, at, part))
          at += part
        while travelling: arrive()

  def copy(self, dst: Allocation, src: Allocation, nbytes: int) -> None:
    with self.users:
      target, source = self.address(dst, nbytes), self.address(src, nbytes)
      if not nbytes or source == target: return
      owner = src.handle
      if owner is self or not isinstance(owner, HSARuntime):
        self._copied(target, self.agent, source, self.agent, nbytes)
        return
      if not self.is_peer(owner): raise InvalidArgument(f"{owner.name} is no peer", where=self.name)
      owner.synchronize()
      owner._reach(source, self.agent)
      self._reach(target, owner.agent)  # whose engine copies, the runtime says
      value = self._copied(target, self.agent, source, owner.agent, nbytes)
      self._await(value, self._patience(), owner)

  def _reach(self, address: int, agent: Agent) -> None:
    """Have another agent reach an allocation of this device."""
    with self.lock:
      reached = self._reached.setdefault(address, [])
      if agent in reached: return
      self.system.allow(address, *reached, agent)
      reached.append(agent)

  def is_peer(self, other: Runtime) -> bool:
    if other is self: return True
    if not isinstance(other, HSARuntime) or other.system is not self.system: return False
    access = self.library.number(ctypes.c_int32, "hsa_amd_agent_memory_pool_get_info", self.agent.handle,
                                 other._memory.handle, hsa.HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS)
    return access != hsa.HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED

  # ---- programs

  def load(self, binary: bytes, kernel: str) -> HsaProgram: return self.load_kernel(binary, kernel)

  def load_kernel(self, binary: bytes, kernel: str) -> HsaProgram:
    """Have the runtime load a code object (once), and make one of its kernels ready."""
    with self.users, self.lock:
      loaded = self._objects.get(binary)
      if loaded is None:
        try: loaded = self._objects[binary] = LoadedObject(self, binary)
        except DeviceError as error:
          raise DeviceError(f"kernel {kernel!r} does not load: {error.message}", where=self.name) from None
      return HsaProgram(self, *loaded.kernel(kernel))

  def runner(self, launches: Sequence[Launch]) -> Runner:
    if any(not isinstance(l.program, HsaProgram) or l.program.runtime is not self for l in launches):
      raise InvalidArgument("a program of another device", where=self.name)
    return HsaRunner(self, launches)

  def loaded(self) -> list[tuple[int, CodeObject]]:
    """(address, code object) of each code object on the device."""
    return [(found.address, found.code) for found in list(self._objects.values())]

  # ---- the end

  def close(self) -> None:
    if self.closed: return
    if os.getpid() != self.system.pid:  # all is the parent's
      self.closed = True
      return
    if not self.users.shut(): return
    if self.lost is None:
      with suppress(DeviceError): self._await_closing()
    self.system.told.pop(self.agent.handle, None)
    library = self.library
    signals = [self._signal, *filter(None, [self._timing]), *(s for _, signals in self._resting for s in signals)]
    memory, objects = (*self._allocated, *self._own), [loaded.handle for loaded in self._objects.values()]
    steps: list[Callable[[], None]] = [self.queue.destroy]
    for name, things in (("hsa_executable_destroy", objects), ("hsa_amd_memory_pool_free", memory),
                         ("hsa_signal_destroy", signals)):
      steps += [partial(library.call, name, thing) for thing in things]
    for step in steps:
      with suppress(DeviceError): step()  # closing goes as far as the runtime lets it
    self._objects.clear()
    self._allocated.clear()

  def _await_closing(self) -> None:
    """Let what is queued end, for a while. `check`, which says that the device is closed, ends it too."""
    with self.lock:
      value = self._fence() if self._behind else self._fenced
    if not self._done(value): self._await(value, CLOSE_TIMEOUT_S)
