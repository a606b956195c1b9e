"""A kernel of an AMDGPU code object, ready to be launched: its arguments in memory, its user SGPRs, its queue commands.

What does not change between two launches is made into words once for each block shape; a launch fills in the argument
address, the grid and the timeline value. Source of the conventions: LLVM's AMDGPUUsage.rst, "Kernel Dispatch" and
"Initial Kernel Execution State".
"""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tinyhw.arch import DECODED
from tinyhw.autogen import amdhsa, hsa, sq
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.core.kept import Kept
from tinyhw.core.layout import Register
from tinyhw.drive.allocate import round_up
from tinyhw.drive.amd.commands import ComputeCommands, register
from tinyhw.drive.amd.gpu import CodeImage, GpuRuntime
from tinyhw.drive.base import ADDRESS, Allocation, Dim3, Program
from tinyhw.drive.queue import BoundStream
from tinyhw.wire.codeobject import Argument, Kernel

_DYNAMIC_STACK_BYTES = 4096  # a work-item's, where the code object says only that it needs a stack
_ENTRY_ALIGN = 256        # COMPUTE_PGM_LO and HI hold the address in units of 256 bytes
_DWORD = 0xFFFFFFFF
_GRID_LIMIT = _DWORD
USER_SGPR_LIMIT = 16  # COMPUTE_USER_DATA_0 to 15
_CACHE_LIMIT = 256
KERNARG_BYTES_LIMIT = 64 * 1024
NULL_PAGES = 1 << 16  # an access below this went through a null pointer


def _u32(value: int) -> bytes: return struct.pack("<I", value)
def _u16(value: int) -> bytes: return struct.pack("<H", value)
def _u64(value: int) -> bytes: return struct.pack("<Q", value)


@dataclass(frozen=True)
class LaunchShape:
  """Everything of a launch that hidden arguments may ask for."""
  grid: Dim3
  block: Dim3
  dynamic_lds: int
  private_base: int
  shared_base: int
  queue_pointer: int

  @property
  def dimensions(self) -> int:
    return 3 if self.grid[2] * self.block[2] > 1 else 2 if self.grid[1] * self.block[1] > 1 else 1


def _hidden_makers() -> dict[str, Callable[[LaunchShape], bytes]]:
  """value_kind of the metadata -> bytes. A grid counts whole workgroups, so there is no remainder; offsets are zero."""
  makers: dict[str, Callable[[LaunchShape], bytes]] = {
    "hidden_grid_dims": lambda s: _u16(s.dimensions),
    "hidden_private_base": lambda s: _u32(s.private_base >> 32),
    "hidden_shared_base": lambda s: _u32(s.shared_base >> 32),
    "hidden_queue_ptr": lambda s: _u64(s.queue_pointer),
    "hidden_dynamic_lds_size": lambda s: _u32(s.dynamic_lds),
  }
  for i, axis in enumerate("xyz"):
    def count(s: LaunchShape, i: int = i) -> bytes: return _u32(s.grid[i])
    def size(s: LaunchShape, i: int = i) -> bytes: return _u16(s.block[i])
    makers[f"hidden_block_count_{axis}"], makers[f"hidden_group_size_{axis}"] = count, size
    makers[f"hidden_remainder_{axis}"], makers[f"hidden_global_offset_{axis}"] = lambda s: _u16(0), lambda s: _u64(0)
  return makers


HIDDEN = _hidden_makers()
# Services of a language runtime that this driver does not run. The kernel finds a null pointer; reports name them.
UNSERVED = frozenset({"hidden_printf_buffer", "hidden_hostcall_buffer", "hidden_multigrid_sync_arg", "hidden_heap_v1",
                      "hidden_default_queue", "hidden_completion_action"})


class ArgumentLayout:
  """Where the explicit arguments and the hidden ones lie in the argument segment."""

  def __init__(self, kernel: Kernel) -> None:
    self.name, self.size = kernel.name, kernel.kernarg_size
    self.explicit: tuple[Argument, ...] = kernel.arguments
    self.hidden: tuple[Argument, ...] = tuple(a for a in kernel.hidden if a.kind != "hidden_none")
    self.unserved = tuple(sorted({a.kind for a in self.hidden} & UNSERVED))
    for argument in self.hidden:
      if argument.kind not in HIDDEN and argument.kind not in UNSERVED:
        raise Unsupported("hidden argument", argument.kind, where=f"kernel {kernel.name}")
    self.hidden_start = min((a.offset for a in self.hidden), default=self.size)
    self.structs: dict[int | tuple[int, ...], struct.Struct] = {}

  def hidden_bytes(self, shape: LaunchShape) -> bytes:
    """The argument segment from `hidden_start` on."""
    data = bytearray(max(self.size - self.hidden_start, 0))
    for argument in self.hidden:
      make = HIDDEN.get(argument.kind)
      if make is None: continue
      value = make(shape)
      at = argument.offset - self.hidden_start
      if len(value) != argument.size:
        raise InvalidArgument(
          f"{argument.kind} has {argument.size} bytes, expected {len(value)}", where=f"kernel {self.name}"
        )
      data[at:at + len(value)] = value
    return bytes(data)

  def packer(self, count: int, values: Sequence[int | float]) -> struct.Struct:
    """How to pack `count` addresses and then `values`; made once for each combination of kinds."""
    key = (count, *[isinstance(v, float) or v < 0 and -1 for v in values]) if values else count
    known = self.structs.get(key)
    if known is None: known = self.structs[key] = self._make_packer(count, values)
    return known

  def _make_packer(self, count: int, values: Sequence[int | float]) -> struct.Struct:
    if count + len(values) != len(self.explicit):
      raise InvalidArgument(
        f"takes {len(self.explicit)} arguments ({self._describe()}), got {count} buffers and {len(values)} values",
        where=f"kernel {self.name}",
      )
    code, at = "<", 0
    for i, argument in enumerate(self.explicit):
      is_value = i >= count
      if not is_value and argument.kind != "global_buffer":
        raise InvalidArgument(
          f"argument {i} '{argument.name}' is passed by value ({argument.size} bytes), got a buffer",
          where=f"kernel {self.name}",
        )
      code += f"{argument.offset - at}x" if argument.offset > at else ""
      code += _value_code(argument, values[i - count], self.name) if is_value else "Q"
      at = argument.offset + argument.size
    return struct.Struct(code)

  def _describe(self) -> str: return ", ".join(f"{a.name or a.kind}: {a.size} bytes" for a in self.explicit) or "none"


def _value_code(argument: Argument, value: int | float, kernel: str) -> str:
  if argument.pointer and isinstance(value, float):
    raise InvalidArgument(f"argument '{argument.name}' is a pointer, got {value!r}", where=f"kernel {kernel}")
  integers, floats = {1: "B", 2: "H", 4: "I", 8: "Q"}, {2: "e", 4: "f", 8: "d"}
  code = (floats if isinstance(value, float) else integers).get(argument.size)
  if code is None:
    raise InvalidArgument(
      f"argument '{argument.name}' has {argument.size} bytes; {type(value).__name__} {value!r} does not fill it",
      where=f"kernel {kernel}",
    )
  return code if isinstance(value, float) or value >= 0 else code.lower()


@dataclass(frozen=True)
class UserSgprs:
  """The user SGPRs that a kernel asks for, in the order of its properties.

  `values`: initial registers. `pairs`: register index -> name of the 64-bit value that a launch gives there. Behind
  these come the dwords of the arguments that the kernel wants preloaded.
  """
  values: tuple[int, ...]
  pairs: dict[int, str]
  preload: tuple[int, int] = (0, 0)  # the first dword of the arguments, and how many

  def preloaded(self, arguments: bytes | bytearray) -> tuple[int, ...]:
    """The registers behind `values`, of a launch with these arguments."""
    first, count = self.preload
    return struct.unpack_from(f"<{count}I", arguments, 4 * first)


def user_sgprs(kernel: Kernel, target: str, queue_pointer: int) -> UserSgprs:
  """Lay out the user SGPRs of a kernel (AMDGPUUsage, "Initial Kernel Execution State")."""
  d, where = kernel.descriptor, f"kernel {kernel.name}"
  known = DECODED.get(target)
  if d.kernarg_preload and not (known and known.kernarg_preload):
    raise Unsupported("kernel property", "kernarg preload", arch=target, where=where)
  flags = d.kernel_code_properties
  values: list[int] = []
  pairs: dict[int, str] = {}

  def asked(name: str) -> bool: return bool(flags & getattr(amdhsa, f"KERNEL_CODE_PROPERTY_{name}"))
  def pair(name: str) -> None:
    pairs[len(values)] = name
    values.extend((0, 0))

  # with architected flat scratch hardware sets FLAT_SCRATCH, and neither of the two older ways exists
  older = known is not None and known.scratch_in_sgprs
  for name in ("ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER", "ENABLE_SGPR_FLAT_SCRATCH_INIT"):
    if asked(name) and not older: raise Unsupported("kernel property", name, arch=target, where=where)
  if asked("ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER"):
    pair("scratch_buffer")
    pair("scratch_range")
  if asked("ENABLE_SGPR_DISPATCH_PTR"): pair("dispatch_packet")
  if asked("ENABLE_SGPR_QUEUE_PTR"): values.extend((queue_pointer & _DWORD, queue_pointer >> 32))
  if asked("ENABLE_SGPR_KERNARG_SEGMENT_PTR"): pair("kernarg")
  if asked("ENABLE_SGPR_DISPATCH_ID"): pair("timeline")
  if asked("ENABLE_SGPR_FLAT_SCRATCH_INIT"): pair("flat_scratch")
  if asked("ENABLE_SGPR_PRIVATE_SEGMENT_SIZE"): values.append(d.private_segment_fixed_size)
  field = next(f for f in amdhsa.COMPUTE_PGM_RSRC2_GFX11.FIELDS if f.name == "USER_SGPR_COUNT")  # in every generation
  count = d.compute_pgm_rsrc2 >> field.lo & field.limit
  first, length = kernel.preload
  if len(values) + length > count:
    raise InvalidArgument(f"its properties need {len(values) + length} user SGPRs, its descriptor has {count}",
                          where=where)
  if count > USER_SGPR_LIMIT:
    raise InvalidArgument(f"its descriptor has {count} user SGPRs, a wave gets at most {USER_SGPR_LIMIT}", where=where)
  if length and 4 * (first + length) > round_up(kernel.kernarg_size, 4):
    raise InvalidArgument(f"it preloads dwords {first} to {first + length - 1} of {kernel.kernarg_size} bytes of "
                          "arguments", where=where)
  return UserSgprs(tuple(values), pairs, (first, length))


# The last dword of the buffer that scratch is: four dwords of 64 lanes side by side, a lane's own by its number.
_BUFFER: Final = {"dst_sel_x": 4, "dst_sel_y": 5, "dst_sel_z": 6, "dst_sel_w": 7, "num_format": 4, "index_stride": 3,
                  "add_tid_enable": 1}
SCRATCH_PAIRS: Final = ("scratch_buffer", "scratch_range", "flat_scratch")


def scratch_pairs(base: int, size: int) -> dict[str, int]:
  """What kernels of processors that find their scratch in SGPRs get there: a buffer that lies by lanes, with its size,
  and its address (AMDGPUUsage, "Private Segment Buffer": swizzled, elements of 4 bytes, 64 lanes)."""
  fields = sq.BUFFER_RESOURCE["gfx9"]
  last = sum(value << fields[name][0] - 96 for name, value in _BUFFER.items())
  return {"scratch_buffer": base | 1 << fields["swizzle_enable"][0],
          "scratch_range": min(size, _DWORD) | last << 32, "flat_scratch": base}


def describe_launch(packet: hsa.hsa_kernel_dispatch_packet_t, kernel: Kernel, image: int, kernarg: int, grid: Dim3,
                    block: Dim3, dynamic_lds: int) -> None:
  """Fill the AQL packet that a kernel of the code object at `image` reads its launch from. No packet processor sees it.
  """
  d = kernel.descriptor
  packet.header, packet.setup = hsa.HSA_PACKET_TYPE_KERNEL_DISPATCH, len(grid)
  packet.workgroup_size_x, packet.workgroup_size_y, packet.workgroup_size_z = block
  threads = [g * b & _DWORD for g, b in zip(grid, block, strict=True)]
  packet.grid_size_x, packet.grid_size_y, packet.grid_size_z = threads
  packet.private_segment_size = d.private_segment_fixed_size
  packet.group_segment_size = d.group_segment_fixed_size + dynamic_lds
  packet.kernel_object = image + kernel.descriptor_offset
  packet.kernarg_address = kernarg
  packet.completion_signal.handle = 0


def check_lds(kernel: Kernel, dynamic: int, limit: int, where: str) -> int:
  """LDS bytes of a workgroup: what the kernel asks for itself, and `dynamic` more. Refuses more than `limit`."""
  static = kernel.group_segment_size
  if dynamic < 0: raise InvalidArgument(f"{dynamic:,} bytes of dynamic LDS", where=where)
  if static + dynamic > limit:
    parts = f" ({static:,} of its own and {dynamic:,} dynamic)" if static and dynamic else ""
    raise InvalidArgument(f"needs {static + dynamic:,} bytes of LDS{parts}, a workgroup has at most {limit:,}",
                          where=where)
  return static + dynamic


@dataclass(eq=False)
class Prepared:
  """One kernel with one block shape, as words. `grid` is the one filled in now.

  `full` writes all registers; `again` only the user SGPRs, for a launch that finds the registers as `full` left them (a
  queue's SH registers keep their values between packets).
  """
  full: BoundStream
  again: BoundStream
  grid: Dim3 | None
  scratch_generation: int


class AMDProgram(Program):
  """See the module. Made by `AMDRuntime.load`."""

  def __init__(self, runtime: GpuRuntime, image: CodeImage, kernel: Kernel) -> None:
    self.name, self.kernel, self.runtime, self.image = kernel.name, kernel, runtime, image
    self.layout = ArgumentLayout(kernel)
    self._packers = self.layout.structs
    if self.layout.size > KERNARG_BYTES_LIMIT:
      raise InvalidArgument(
        f"needs {self.layout.size} bytes of arguments, at most {KERNARG_BYTES_LIMIT}", where=f"kernel {kernel.name}"
      )
    self._where = f"{runtime.name}, kernel {kernel.name}"
    self.entry = image.address + kernel.entry_offset
    if self.entry % _ENTRY_ALIGN: raise InvalidArgument(f"its entry {self.entry:#x} is not aligned", where=self._where)
    self.sgprs = user_sgprs(kernel, runtime.target, runtime.queue_pointer)
    self._needs_packet = "dispatch_packet" in self.sgprs.pairs.values()
    self._packet_at = round_up(self.layout.size, 64)
    self.argument_bytes = max(self.layout.size, 1)
    if self._needs_packet: self.argument_bytes = self._packet_at + ctypes.sizeof(hsa.hsa_kernel_dispatch_packet_t)
    self.wave_lanes = kernel.wavefront_size
    self._takes_kernarg = "kernarg" in self.sgprs.pairs.values()
    self.takes_id = "timeline" in self.sgprs.pairs.values()
    self._prepared: dict[tuple[Dim3, int, bool], Prepared] = {}
    self._hidden: Kept[tuple[Dim3, Dim3, int], bytes] = Kept(_CACHE_LIMIT)
    if self.scratch_wave_bytes: runtime.require_scratch(self.scratch_wave_bytes, self._where)

  @property
  def scratch_wave_bytes(self) -> int:
    """Private memory of one wave; a kernel whose calls the compiler could not follow gets at least a small stack."""
    lane = self.kernel.private_segment_size
    return (max(lane, _DYNAMIC_STACK_BYTES) if self.kernel.dynamic_stack else lane) * self.wave_lanes

  # ---- launch

  def __call__(
    self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3, wait: bool = False
  ) -> float | None:
    packer = self._packers.get(len(buffers)) if not values else None
    if packer is None: packer = self.layout.packer(len(buffers), values)
    try: arguments = packer.pack(*map(ADDRESS, buffers), *values)
    except struct.error as e: raise InvalidArgument(f"an argument does not fit: {e}", where=self._where) from None
    if wait: return self._timed(arguments, grid, block, 0)
    self._submit(arguments, grid, block, 0)
    return None

  def launch(
    self, kernargs: bytes, grid: Dim3, block: Dim3, *, dynamic_lds: int = 0, wait: bool = False
  ) -> float | None:
    """Launch with the explicit arguments as bytes, laid out as the metadata says. Hidden ones are filled in here."""
    if len(kernargs) > self.layout.size:
      raise InvalidArgument(
        f"{len(kernargs)} bytes of arguments, the kernel takes {self.layout.size}", where=self._where
      )
    if wait: return self._timed(kernargs, grid, block, dynamic_lds)
    self._submit(kernargs, grid, block, dynamic_lds)
    return None

  def _timed(self, arguments: bytes, grid: Dim3, block: Dim3, dynamic_lds: int) -> float:
    """Launch and wait; returns how long it took, in seconds."""
    with self.runtime.profiling:  # there is one pair of timestamps
      self.runtime.wait(self._submit(arguments, grid, block, dynamic_lds, True))
      return self.runtime.elapsed()

  def _submit(self, arguments: bytes, grid: Dim3, block: Dim3, dynamic_lds: int, profile: bool = False) -> int:
    """Queue the launch, all of it with the device's lock; returns its timeline value."""
    runtime, size = self.runtime, self.argument_bytes
    ring = runtime.kernargs
    prepared = self._prepared.get((block, dynamic_lds, profile)) or self._prepare(block, dynamic_lds, profile)
    runtime.enter(runtime.compute, prepared.full, size)
    try:
      if prepared.scratch_generation != runtime.scratch_generation:
        prepared = self._prepare(block, dynamic_lds, profile)
      at = ring.take(size)
      ring.memory[at:at + len(arguments)] = arguments
      if prepared.grid != grid: self._set_grid(prepared, grid)
      stream = prepared.again if runtime.registers is prepared else prepared.full
      self.fill(stream, "", ring.memory, at, ring.address + at, grid, block, dynamic_lds)
      runtime.registers = None  # until it is known what the queue has got
      value = runtime.submit_entered(runtime.compute, stream)
      runtime.registers = prepared
      ring.used_by(value)
      return value
    finally: runtime.lock.release()

  def fill(
    self, stream: BoundStream, suffix: str, memory: memoryview, at: int, address: int, grid: Dim3, block: Dim3,
    dynamic_lds: int
  ) -> None:
    """Write the hidden arguments (and the dispatch packet) of a launch whose arguments begin at `memory[at:]`, which
    the GPU sees at `address`, and tell the stream where they are."""
    layout = self.layout
    if layout.hidden_start < layout.size:
      hidden = self._hidden.get((grid, block, dynamic_lds)) or self._make_hidden(grid, block, dynamic_lds)
      memory[at + layout.hidden_start:at + layout.size] = hidden
    if self._takes_kernarg: stream.set("kernarg" + suffix, address)
    if self._needs_packet:
      packet = hsa.hsa_kernel_dispatch_packet_t.from_buffer(memory, at + self._packet_at)
      describe_launch(packet, self.kernel, self.image.address, address, grid, block, dynamic_lds)
      stream.set("dispatch_packet" + suffix, address + self._packet_at)

  def check_grid(self, grid: Dim3) -> None:
    if len(grid) != 3 or not all(0 < g <= _GRID_LIMIT for g in grid):
      raise InvalidArgument(f"grid {grid}: three numbers of workgroups from 1 to {_GRID_LIMIT}", where=self._where)

  def _set_grid(self, prepared: Prepared, grid: Dim3) -> None:
    self.check_grid(grid)
    for stream in (prepared.full, prepared.again):
      for axis, groups in zip("xyz", grid, strict=True): stream.set(f"grid_{axis}", groups)
    prepared.grid = grid

  def _make_hidden(self, grid: Dim3, block: Dim3, dynamic_lds: int) -> bytes:
    gpu = self.runtime.gpu
    shape = LaunchShape(grid, block, dynamic_lds, gpu.scratch_base, gpu.lds_base, self.runtime.queue_pointer)
    return self._hidden.keep((grid, block, dynamic_lds), self.layout.hidden_bytes(shape))

  # ---- commands

  def _check(self, block: Dim3, dynamic_lds: int) -> int:
    """Refuse what the chip or the kernel cannot run; returns the LDS bytes of a workgroup."""
    limit, kernel = self.runtime.arch.workgroup_limit, self.kernel
    if len(block) != 3 or not all(0 < b <= limit for b in block):
      raise InvalidArgument(f"block {block}: three numbers of threads from 1 to {limit}", where=self._where)
    threads = block[0] * block[1] * block[2]
    if threads > limit:
      raise InvalidArgument(
        f"block {block} has {threads} threads, {self.runtime.target} runs at most {limit}", where=self._where
      )
    if kernel.max_workgroup_size and threads > kernel.max_workgroup_size:
      raise InvalidArgument(
        f"block {block} has {threads} threads, the kernel was compiled for at most {kernel.max_workgroup_size}",
        where=self._where,
        hint="compile it with a larger amdgpu_flat_work_group_size",
      )
    required = kernel.required_workgroup_size
    if required and tuple(required) != tuple(block):
      raise InvalidArgument(f"block {block}, the kernel was compiled for exactly {tuple(required)}", where=self._where)
    return check_lds(kernel, dynamic_lds, self.runtime.gpu.node.lds_bytes, self._where)

  def _prepare(self, block: Dim3, dynamic_lds: int, profile: bool) -> Prepared:
    """Make the words of a launch, with names for what changes: kernarg, grid_x/y/z, timeline (and dispatch_packet)."""
    runtime = self.runtime
    lds = self._check(block, dynamic_lds)
    full, again = (self._commands(block, lds, profile, registers) for registers in (True, False))
    prepared = Prepared(full, again, None, runtime.scratch_generation)
    self._prepared[block, dynamic_lds, profile] = prepared
    return prepared

  def _commands(self, block: Dim3, lds: int, profile: bool, registers: bool) -> BoundStream:
    signal = self.runtime.timeline.signal
    c = ComputeCommands(self.runtime.arch, f"kernel {self.name}")
    c.memory_barrier()
    if profile: c.timestamp(signal.start_address)
    self._emit(c, block, lds, registers)
    if profile: c.timestamp(signal.stop_address)
    return c.signal(signal.address, "timeline").bind()

  def record(self, c: ComputeCommands, block: Dim3, dynamic_lds: int, suffix: str) -> None:
    """Append a launch to commands that are submitted later, behind a barrier. The names of its values end in `suffix`:
    grid_x, grid_y, grid_z and, where the kernel takes them, kernarg, dispatch_packet and timeline."""
    self._emit(c.memory_barrier(), block, self._check(block, dynamic_lds), True, suffix)

  def _emit(self, c: ComputeCommands, block: Dim3, lds: int, registers: bool, suffix: str = "") -> None:
    if registers: self._set_registers(c, block, lds)
    elif not self.runtime.arch.rsrc3_kept: self._set_third(c)
    if self.sgprs.values: self._set_users(c, suffix)
    initiator: type[Register] = self.runtime.arch.gc.COMPUTE_DISPATCH_INITIATOR
    width = {"CS_W32_EN": int(self.wave_lanes == 32)} if self.runtime.arch.wave32 else {}
    c.dispatch(register(initiator, COMPUTE_SHADER_EN=1, FORCE_START_AT_000=1, **width), suffix)

  def _set_users(self, c: ComputeCommands, suffix: str) -> None:
    """The user SGPRs: those of scratch are known now, others have names."""
    values, pairs = list(self.sgprs.values), self.sgprs.pairs
    if any(name in SCRATCH_PAIRS for name in pairs.values()):
      known = scratch_pairs(*self.runtime.scratch_memory())
      for at, name in pairs.items():
        if name in known: values[at:at + 2] = known[name] & _DWORD, known[name] >> 32
    c.user_data(values, {i: name + suffix for i, name in pairs.items() if name not in SCRATCH_PAIRS})

  def _set_third(self, c: ComputeCommands) -> None:
    c.registers(self.runtime.arch.gc.COMPUTE_PGM_RSRC3.decode(self.kernel.descriptor.compute_pgm_rsrc3))

  def _set_registers(self, c: ComputeCommands, block: Dim3, lds: int) -> None:
    """Everything that the dispatch reads but the user SGPRs."""
    d, gc = self.kernel.descriptor, self.runtime.arch.gc
    rsrc1, rsrc2 = gc.COMPUTE_PGM_RSRC1.decode(d.compute_pgm_rsrc1), gc.COMPUTE_PGM_RSRC2.decode(d.compute_pgm_rsrc2)
    rsrc1.PRIV = int(self.runtime.arch.saved_privileged)  # which is the queue's to say, not the descriptor's
    rsrc2.LDS_SIZE = -(-lds // self.runtime.arch.lds_granule)
    scratch, ring_size = self.runtime.scratch_registers(self.scratch_wave_bytes)
    c.registers(register(gc.COMPUTE_PGM_LO, DATA=self.entry >> 8 & _DWORD),
                register(gc.COMPUTE_PGM_HI, DATA=self.entry >> 40))
    c.registers(register(gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO, DATA=scratch >> 8 & _DWORD),
                register(gc.COMPUTE_DISPATCH_SCRATCH_BASE_HI, DATA=scratch >> 40),
                rsrc1, rsrc2)
    self._set_third(c)
    c.registers(register(gc.COMPUTE_RESOURCE_LIMITS))
    c.registers(ring_size)
    c.registers(register(gc.COMPUTE_RESTART_X), register(gc.COMPUTE_RESTART_Y), register(gc.COMPUTE_RESTART_Z))
    c.registers(register(gc.COMPUTE_START_X), register(gc.COMPUTE_START_Y), register(gc.COMPUTE_START_Z),
                register(gc.COMPUTE_NUM_THREAD_X, NUM_THREAD_FULL=block[0]),
                register(gc.COMPUTE_NUM_THREAD_Y, NUM_THREAD_FULL=block[1]),
                register(gc.COMPUTE_NUM_THREAD_Z, NUM_THREAD_FULL=block[2]))
