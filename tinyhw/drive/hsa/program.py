"""A kernel that ROCm's runtime has loaded: its arguments in memory, its AQL packet."""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import hsa
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.kept import Kept
from tinyhw.drive.amd.program import ArgumentLayout, LaunchShape, check_lds
from tinyhw.drive.base import ADDRESS, Allocation, Dim3, Program
from tinyhw.drive.hsa.queue import DISPATCH_HEAD
from tinyhw.wire import aql

if TYPE_CHECKING:
  from tinyhw.drive.hsa.device import HSARuntime
  from tinyhw.wire.codeobject import Kernel

BODY: Final = aql.body(hsa.hsa_kernel_dispatch_packet_t)
_SETUP: Final = 16 + hsa.HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS  # the second half of the first dword
_DWORD: Final = 0xFFFFFFFF
_SHAPES: Final = 256  # that are kept
_STACK: Final = 4096  # bytes of a work-item's stack where the code object does not know how many it needs


@dataclass(frozen=True)
class DispatchShape:
  """What a launch of one grid and block has beside its arguments: the packet's first dword, sizes, hidden arguments."""
  head: int
  sizes: tuple[int, ...]
  hidden: bytes


class HsaProgram(Program):
  """See the module. Made by `HSARuntime.load_kernel`; `kernel_object` is the address of its descriptor."""

  def __init__(self, runtime: HSARuntime, kernel: Kernel, kernel_object: int) -> None:
    self.name, self.kernel, self.runtime, self.kernel_object = kernel.name, kernel, runtime, kernel_object
    self.layout = ArgumentLayout(kernel)
    self._packers = self.layout.structs
    self.argument_bytes = max(self.layout.size, 1)
    self._where = f"{runtime.name}, kernel {kernel.name}"
    self._shapes: Kept[Any, DispatchShape] = Kept(_SHAPES)
    lane = kernel.private_segment_size
    self._private = max(lane, _STACK) if kernel.dynamic_stack else lane

  def __call__(self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3,
               wait: bool = False) -> float | None:
    packer = self._packers.get(len(buffers)) if not values else None
    if packer is None: packer = self.layout.packer(len(buffers), values)
    try: arguments = packer.pack(*map(ADDRESS, buffers), *values)
    except struct.error as e: raise InvalidArgument(f"an argument does not fit: {e}", where=self._where) from None
    if wait: return self._timed(arguments, grid, block, self.dynamic_bytes)
    with self.runtime.users: self._submit(arguments, grid, block, self.dynamic_bytes, 0)
    return None

  def launch(self, kernargs: bytes, grid: Dim3, block: Dim3, *, dynamic_lds: int = 0,
             wait: bool = False) -> float | None:
    """Launch with the explicit arguments as bytes, laid out as the metadata says. Hidden ones are filled in here."""
    if len(kernargs) > self.layout.size:
      raise InvalidArgument(f"{len(kernargs)} bytes of arguments, the kernel takes {self.layout.size}",
                            where=self._where)
    if wait: return self._timed(kernargs, grid, block, dynamic_lds)
    with self.runtime.users: self._submit(kernargs, grid, block, dynamic_lds, 0)
    return None

  def _submit(self, arguments: bytes, grid: Dim3, block: Dim3, dynamic_lds: int, signal: int) -> int:
    """Queue a launch, behind which the signal is counted down; when it is done, as `HSARuntime.wait` takes it."""
    runtime, layout = self.runtime, self.layout
    with runtime.lock:
      shape = self.shape(grid, block, dynamic_lds)
      ring = runtime.kernargs
      at = ring.take(self.argument_bytes)
      memory = ring.memory
      memory[at:at + len(arguments)] = arguments
      if shape.hidden: memory[at + layout.hidden_start:at + layout.size] = shape.hidden
      runtime.queue.push(shape.head, BODY.pack(*shape.sizes, self.kernel_object, ring.address + at, 0, signal))
      value = runtime.queued()
      ring.used_by(value)
      return value

  def _timed(self, arguments: bytes, grid: Dim3, block: Dim3, dynamic_lds: int) -> float:
    runtime = self.runtime
    with runtime.users, runtime.profiling:
      signal = runtime.timing_signal()
      runtime.wait(self._submit(arguments, grid, block, dynamic_lds, signal))
      time = hsa.hsa_amd_profiling_dispatch_time_t()
      runtime.library.call("hsa_amd_profiling_get_dispatch_time", runtime.agent.handle, signal, ctypes.byref(time))
      hz = runtime.system.counter_hz
      runtime.last_began = time.start / hz
      return (time.end - time.start) / hz

  def shape(self, grid: Dim3, block: Dim3, dynamic_lds: int) -> DispatchShape:
    """What a launch of these sizes has; refuses what the card or the kernel cannot run."""
    key = grid, block, dynamic_lds, self.runtime.queue.handle
    return self._shapes.made(key, lambda: self._made(grid, block, dynamic_lds))

  def _made(self, grid: Dim3, block: Dim3, dynamic_lds: int) -> DispatchShape:
    kernel, arch, where = self.kernel, self.runtime.arch, self._where
    threads = block[0] * block[1] * block[2]
    if min(block) < 1 or threads > arch.workgroup_limit:
      raise InvalidArgument(f"block {block} has {threads} threads, {arch.name} runs 1 to {arch.workgroup_limit}",
                            where=where)
    items = [g * b for g, b in zip(grid, block, strict=True)]
    if min(grid) < 1 or max(items) > _DWORD:
      raise InvalidArgument(f"grid {grid} of blocks {block}: 1 to {_DWORD:,} work-items in each dimension",
                            where=where)
    if kernel.max_workgroup_size and threads > kernel.max_workgroup_size:
      raise InvalidArgument(f"block {block} has {threads} threads, the kernel was compiled for at most "
                            f"{kernel.max_workgroup_size}", where=where,
                            hint="compile it with a larger amdgpu_flat_work_group_size")
    required = kernel.required_workgroup_size
    if required and tuple(required) != tuple(block):
      raise InvalidArgument(f"block {block}, the kernel was compiled for exactly {tuple(required)}", where=where)
    lds = check_lds(kernel, dynamic_lds, arch.lds_per_workgroup, where)
    queue = self.runtime.queue
    shape = LaunchShape(grid, block, dynamic_lds, queue.told.private_segment_aperture_base_hi << 32,
                        queue.told.group_segment_aperture_base_hi << 32, queue.handle)
    hidden = self.layout.hidden_bytes(shape) if self.layout.hidden_start < self.layout.size else b""
    return DispatchShape(DISPATCH_HEAD | shape.dimensions << _SETUP, (*block, 0, *items, self._private, lds), hidden)
