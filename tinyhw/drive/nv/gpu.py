"""What programs, runners and reports ask of the runtime of an NVIDIA GPU; `device` has the runtime itself."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct

from tinyhw.arch.nv import NvArch
from tinyhw.drive.base import Dim3
from tinyhw.drive.nv.bare import PtxKernel
from tinyhw.drive.nv.rm import Buffer, Gpu, Rm
from tinyhw.drive.queue import BoundStream, LoadedCode
from tinyhw.drive.signal import Signal
from tinyhw.drive.suballocation import SuballocatingRuntime
from tinyhw.wire.cubin import Cubin


@dataclass(eq=False)
class CodeImage:
  """A cubin in GPU memory."""
  buffer: Buffer
  code: Cubin
  device: str

  @property
  def address(self) -> int:
    """Of its ELF header."""
    return self.buffer.address

  @property
  def told(self) -> LoadedCode:
    """It for who records: of each kernel its name, its entry and the bytes of bank 0."""
    kernels = tuple((k.name, self.address + k.text, k.bank0) for k in self.code.kernels.values())
    return LoadedCode(self.address, self.buffer.size, self.device, "cubin", self.code.file, kernels)


@dataclass(frozen=True)
class Places:
  """Where the numbers of a launch lie, as dwords of its bytes: bank 0's address (from bit `bank_shift` on, `bank_at`
  bytes behind the QMD's), the timeline's value, the QMD's address (from bit `send_shift` on)."""
  bank: int
  bank_shift: int
  bank_at: int
  low: int
  high: int
  send: int
  send_shift: int


@dataclass(eq=False)
class Prepared:
  """One kernel with one block shape: what a launch writes into the argument ring, and the grid in it. `qmd` are the
  dwords of the QMD, `stream` the methods that schedule it, both in `bytes`; in a chain there are none."""
  bytes: bytearray
  qmd: memoryview[int]
  stream: BoundStream
  stream_at: int
  grid: Dim3 | None
  generation: int
  cluster: Dim3 | None
  releases: bool  # whether the QMD writes the timeline's value; the stream does where it is profiled
  dwords: memoryview[int]
  params_at: int
  places: Places | None


class GpuRuntime(SuballocatingRuntime[Buffer]):
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
  def launch_at_once(self, made: Prepared, packer: Struct, addresses: Sequence[int | None],
                     values: Sequence[int | float]) -> bool:
    """Launch with these arguments, if nothing has to be waited for, and nothing has changed since the last launch."""

  @abstractmethod
  def submit_placed(self, address: int, stream: BoundStream, value: int) -> None:
    """Queue a launch whose words lie at an address of the argument ring, behind all work queued so far. They have the
    value written, which was claimed for it."""

  @abstractmethod
  def require_local(self, thread_bytes: int, where: str) -> None:
    """Make sure that each thread can have so much local memory."""

  @abstractmethod
  def elapsed(self) -> float:
    """Seconds between the two timestamps of the last profiled launch, on the GPU's clock."""
