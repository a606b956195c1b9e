"""What programs, batches and reports ask of the runtime of an AMD GPU; `device` has the runtime itself."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tinyhw.arch import Arch
from tinyhw.core.layout import Register
from tinyhw.drive.amd.kfd import Buffer, Gpu, Kfd
from tinyhw.drive.queue import LoadedCode
from tinyhw.drive.suballocation import SuballocatingRuntime
from tinyhw.wire import codeobject


@dataclass(eq=False)
class CodeImage:
  """A code object in GPU memory."""
  buffer: Buffer
  code: codeobject.CodeObject
  device: str

  @property
  def address(self) -> int: return self.buffer.address

  @property
  def told(self) -> LoadedCode:
    """It for who records: of each kernel its name, its entry and the bytes of its arguments."""
    kernels = tuple((k.name, self.address + k.entry_offset, k.kernarg_size) for k in self.code.kernels.values())
    return LoadedCode(self.address, self.buffer.size, self.device, "amdgcn", self.code.file, kernels)


class GpuRuntime(SuballocatingRuntime[Buffer]):
  """See the module."""
  kfd: Kfd
  gpu: Gpu
  target: str
  arch: Arch
  queue_pointer: int  # address of an amd_queue_t
  scratch_generation: int  # grows whenever kernels get other scratch memory
  registers: Any  # the launch whose registers the compute queue holds (`program.Prepared`), if that is known
  unserved: dict[str, tuple[str, ...]]  # kernel -> hidden arguments that it asks for and gets as null

  @abstractmethod
  def require_scratch(self, wave_bytes: int, where: str) -> None:
    """Make sure that each wave can have `wave_bytes` of private memory."""

  @abstractmethod
  def scratch_registers(self, wave_bytes: int) -> tuple[int, Register]:
    """Base address of scratch, and the ring size, for a kernel whose waves need `wave_bytes`; zeros for none."""

  @abstractmethod
  def scratch_memory(self) -> tuple[int, int]:
    """Address and size of scratch; zeros for none."""

  @abstractmethod
  def elapsed(self) -> float:
    """Seconds between the two timestamps of the last profiled launch, on the GPU's clock."""

  @abstractmethod
  def loaded(self) -> list[tuple[int, codeobject.CodeObject]]:
    """(address, code object) of each code object in GPU memory."""

  @abstractmethod
  def live_buffers(self) -> Iterator[Buffer]:
    """All memory that this GPU has now."""

  @abstractmethod
  def peek(self, address: int) -> int | None:
    """The dword at a GPU address, if the host sees it."""
