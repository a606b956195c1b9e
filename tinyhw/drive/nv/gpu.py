"""What programs, runners and reports ask of the runtime of an NVIDIA GPU; `device` has the runtime itself."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from tinyhw.arch.nv import NvArch
from tinyhw.drive.lending import LendingRuntime
from tinyhw.drive.nv.bare import PtxKernel
from tinyhw.drive.nv.rm import Buffer, Gpu, Rm
from tinyhw.drive.signal import Signal
from tinyhw.wire.cubin import Cubin


@dataclass(eq=False)
class CodeImage:
  """A cubin in GPU memory."""
  buffer: Buffer
  code: Cubin

  @property
  def address(self) -> int:
    """Of its ELF header."""
    return self.buffer.address


class GpuRuntime(LendingRuntime[Buffer]):
  """See the module."""
  rm: Rm
  gpu: Gpu
  arch: NvArch
  qmd_version: tuple[int, int]
  inline_qmd: bool  # QMDs of single launches travel in the pushbuffer
  chain: Signal  # what the last launch of a chain writes: how many chains there were
  chains: int
  times: int  # address of two semaphores of 16 bytes: what a profiled launch writes before and after it
  local_generation: int  # grows whenever kernels get other local memory
  signature: Callable[[bytes, str], PtxKernel] | None  # what a launch has to know of a kernel of PTX

  @abstractmethod
  def require_local(self, thread_bytes: int, where: str) -> None:
    """Make sure that each thread can have so much local memory."""

  @abstractmethod
  def elapsed(self) -> float:
    """Seconds between the two timestamps of the last profiled launch, on the GPU's clock."""
