"""The functions of ROCm's runtime, and what it says of the machine: agents, pools of memory, faults.

There is one `HsaSystem` for a library in a process: the runtime has one handler for events of the whole system, which
tells the device that an event is for. It does not pass through fork: its threads and mappings are the parent's.
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tinyhw.autogen import hsa
from tinyhw.core.called import Plain
from tinyhw.core.errors import DeviceError

NAMES: Final = ("libhsa-runtime64.so.1", "libhsa-runtime64.so", "/opt/rocm/lib/libhsa-runtime64.so.1")
NO_MEMORY: Final = {hsa.HSA_STATUS_ERROR_OUT_OF_RESOURCES, hsa.HSA_STATUS_ERROR_INVALID_ALLOCATION}
_TEXT: Final = 64  # bytes of a name, which hsa.h gives agents; names of ISAs say how long they are
_STATUSES: Final = {value: name for name, value in hsa.ENUMS["hsa_status_t"].items()}
_UNSIGNED: Final = 0xFFFFFFFF


def system_library() -> Any:
  """libhsa-runtime64 of this machine. Raises DeviceError where there is none."""
  why = ""
  for name in NAMES:
    try: return ctypes.CDLL(name)
    except OSError as error: why = why or str(error)
  raise DeviceError(f"ROCm's runtime cannot be loaded: {why}", where="HSA",
                    hint="install it (libhsa-runtime64-1 of Debian), or name its folder in LD_LIBRARY_PATH")


def named(status: int) -> str:
  """A status by its name."""
  return _STATUSES.get(status, f"status {status:#x}")


class HsaLibrary:
  """The runtime's functions. What one refuses raises DeviceError with its status' name, which is its `status`."""

  def __init__(self, library: Any) -> None:
    self.loaded = library
    self._functions: dict[str, Any] = {}

  def function(self, name: str) -> Any:
    """A function, with its types. Raises DeviceError where this runtime does not have it."""
    found = self._functions.get(name)
    if found is None:
      try: found = self.loaded[name]  # one of our own: the types are not for others who use the library
      except AttributeError:
        raise DeviceError(f"ROCm's runtime has no {name}", where="HSA", hint="it is older than ROCm 5.2") from None
      found.restype, found.argtypes = hsa.FUNCTIONS[name]
      self._functions[name] = found
    return found

  def call(self, name: str, *arguments: Any) -> None:
    """Call a function that returns a status."""
    if (status := self.function(name)(*arguments)) != hsa.HSA_STATUS_SUCCESS: raise failed(name, status)

  def number(self, kind: Any, name: str, *arguments: Any) -> int:
    """Call a function whose last parameter is where it puts a number of that ctypes class."""
    room = kind()
    self.call(name, *arguments, ctypes.byref(room))
    return int(room.value or 0)

  def handle(self, name: str, *arguments: Any) -> int:
    """Call a function whose last parameter is where it puts a handle, or an address."""
    return self.number(ctypes.c_uint64, name, *arguments)

  def text(self, size: int, name: str, *arguments: Any) -> str:
    """Call a function whose last parameter is where it puts a text of at most so many bytes."""
    room = ctypes.create_string_buffer(size)
    self.call(name, *arguments, room)
    return room.value.decode(errors="replace")

  def each(self, name: str, *arguments: Any) -> list[int]:
    """The handles that a function tells a callback, one after another."""
    found: list[int] = []

    def visit(handle: int, _: Any) -> int:
      found.append(handle)
      return hsa.HSA_STATUS_SUCCESS
    visitor = Plain(visit, ctypes.c_uint64, ctypes.c_void_p, failed=hsa.HSA_STATUS_ERROR)
    self.call(name, *arguments, visitor.address, None)
    return found


def failed(name: str, status: int) -> DeviceError:
  """The error of a function that returned this status."""
  error = DeviceError(f"{name}: {named(status)}", where="HSA")
  error.status = status  # type: ignore[attr-defined]
  return error


@dataclass(frozen=True)
class MemoryPool:
  """A pool of global memory that may be asked for memory: HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_*, and its bytes."""
  handle: int
  flags: int
  size: int
  granule: int


@dataclass(frozen=True)
class Agent:
  """A processor: `isa` is the name of what it executes ("amdgcn-amd-amdhsa--gfx1100"), "" for hosts."""
  handle: int
  is_gpu: bool
  isa: str
  units: int
  pools: tuple[MemoryPool, ...]

  def pool(self, flags: int) -> MemoryPool | None:
    """Its first pool with all of these flags."""
    return next((p for p in self.pools if p.flags & flags == flags), None)

  @property
  def target(self) -> str:
    """The processor that code is compiled for: "gfx1100"."""
    return self.isa.rpartition("--")[2].partition(":")[0]

  @property
  def features(self) -> dict[str, bool]:
    """What of its ISA is on, and what is off."""
    words = self.isa.rpartition("--")[2].split(":")[1:]
    return {word[:-1]: word[-1] == "+" for word in words}


class HsaSystem:
  """The runtime, initialized. Raises DeviceError where it finds no kernel driver."""

  def __init__(self, library: Any) -> None:
    self.library = HsaLibrary(library)
    self.pid = os.getpid()
    try: self.library.call("hsa_init")
    except DeviceError as error:
      raise DeviceError(f"ROCm's runtime finds no GPU: {error.message}", where="HSA",
                        hint="it needs /dev/kfd, which this user may open; `tinyhw run --mockgpu gfx1100 -- PROGRAM` "
                             "runs a program on mock cards") from None
    self.counter_hz = self.library.handle("hsa_system_get_info", hsa.HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY)
    found = [self._agent(handle) for handle in self.library.each("hsa_iterate_agents")]
    self.gpus = [agent for agent in found if agent.is_gpu]
    self.host = next(agent for agent in found if not agent.is_gpu)
    self.told: dict[int, Callable[[hsa.hsa_amd_gpu_memory_fault_info_t], None]] = {}  # by agents: who hears of faults
    self.lost: dict[int, DeviceError] = {}  # agents that the kernel driver keeps this process off, and why
    # The runtime keeps its address.
    self._heard = Plain(self._hears, ctypes.c_void_p, ctypes.c_void_p, failed=hsa.HSA_STATUS_ERROR)
    self.library.call("hsa_amd_register_system_event_handler", self._heard.address, None)

  def _hears(self, at: int, _: Any) -> int:
    """A thread of the runtime's comes with an event. What nobody hears ends the process, as it does without us."""
    event = hsa.hsa_amd_event_t.from_address(at)
    if event.event_type != hsa.HSA_AMD_GPU_MEMORY_FAULT_EVENT: return hsa.HSA_STATUS_ERROR
    fault = hsa.hsa_amd_gpu_memory_fault_info_t.from_buffer_copy(event.memory_fault)
    tell = self.told.get(fault.agent.handle)
    if tell is None: return hsa.HSA_STATUS_ERROR
    tell(fault)
    return hsa.HSA_STATUS_SUCCESS

  def _agent(self, handle: int) -> Agent:
    library = self.library
    kind = library.number(ctypes.c_int32, "hsa_agent_get_info", handle, hsa.HSA_AGENT_INFO_DEVICE)
    is_gpu, isa, units = kind == hsa.HSA_DEVICE_TYPE_GPU, "", 0
    if is_gpu:
      code = library.handle("hsa_agent_get_info", handle, hsa.HSA_AGENT_INFO_ISA)
      length = library.number(ctypes.c_uint32, "hsa_isa_get_info_alt", code, hsa.HSA_ISA_INFO_NAME_LENGTH)
      isa = library.text(length + 1, "hsa_isa_get_info_alt", code, hsa.HSA_ISA_INFO_NAME)
      units = library.number(ctypes.c_uint32, "hsa_agent_get_info", handle, hsa.HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT)
    pools = [self._pool(pool) for pool in library.each("hsa_amd_agent_iterate_memory_pools", handle)]
    return Agent(handle, is_gpu, isa, units, tuple(pool for pool in pools if pool is not None))

  def _pool(self, handle: int) -> MemoryPool | None:
    def asked(kind: Any, what: int) -> int:
      return self.library.number(kind, "hsa_amd_memory_pool_get_info", handle, what)
    if asked(ctypes.c_int32, hsa.HSA_AMD_MEMORY_POOL_INFO_SEGMENT) != hsa.HSA_AMD_SEGMENT_GLOBAL: return None
    if not asked(ctypes.c_bool, hsa.HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED): return None
    return MemoryPool(handle, asked(ctypes.c_uint32, hsa.HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS),
                      asked(ctypes.c_size_t, hsa.HSA_AMD_MEMORY_POOL_INFO_SIZE),
                      asked(ctypes.c_size_t, hsa.HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE))

  def check(self, where: str) -> None:
    """Raise DeviceError in a process that has not got the runtime itself."""
    if os.getpid() == self.pid: return
    raise DeviceError(f"opened by process {self.pid} and used by its fork {os.getpid()}", where=where,
                      hint="ROCm's runtime does not pass through fork: open it in the child alone")

  def version(self) -> str:
    """The runtime's own version."""
    place = self.library.handle("hsa_system_get_info", hsa.HSA_AMD_SYSTEM_INFO_BUILD_VERSION)
    return ctypes.string_at(place).decode(errors="replace") if place else "of an unknown version"

  def product(self, agent: Agent) -> str:
    """How a card is called."""
    return self.library.text(_TEXT, "hsa_agent_get_info", agent.handle, hsa.HSA_AMD_AGENT_INFO_PRODUCT_NAME)

  # ---- memory

  def allocate(self, pool: MemoryPool, nbytes: int) -> int:
    """Memory of a pool."""
    return self.library.handle("hsa_amd_memory_pool_allocate", pool.handle, nbytes, 0)

  def allow(self, address: int, *agents: Agent) -> None:
    """Have agents, and the owner, reach memory of a pool: these alone."""
    listed = (ctypes.c_uint64 * len(agents))(*(agent.handle for agent in agents))
    self.library.call("hsa_amd_agents_allow_access", len(agents), listed, None, address)

  # ---- signals

  def signal(self, value: int) -> int:
    """A signal, by which the host waits."""
    return self.library.handle("hsa_signal_create", value, 0, None)

  def value(self, signal: int) -> int: return int(self.library.function("hsa_signal_load_scacquire")(signal))


def reasons(mask: int) -> str:
  """Why memory could not be reached, in the header's words."""
  prefix = "HSA_AMD_MEMORY_FAULT_"
  said = [name.removeprefix(prefix).lower().replace("_", " ")
          for name, bit in hsa.ENUMS["hsa_amd_memory_fault_reason_t"].items() if mask & bit & _UNSIGNED]
  return ", ".join(said) or "no reason told"
